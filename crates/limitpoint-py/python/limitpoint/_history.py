"""Measurements over time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class History(dict[str, NDArray[np.float64]]):
    """Columns by name, such as `step`, `log10_loss` and `margin.l2`, one entry per measured step."""

    def to_pandas(self) -> Any:
        """The columns as a frame of pandas."""
        import pandas

        return pandas.DataFrame(dict(self))

    def to_polars(self) -> Any:
        """The columns as a frame of polars."""
        import polars

        return polars.DataFrame(dict(self))

    def margins(self) -> "History":
        """The columns `margin.NORM` by the names of their norms."""
        prefix = "margin."
        return History({name[len(prefix) :]: column for name, column in self.items() if name.startswith(prefix)})

    def __repr__(self) -> str:
        rows = len(next(iter(self.values()))) if self else 0
        return f"<History of {rows} rows: {', '.join(self)}>"
