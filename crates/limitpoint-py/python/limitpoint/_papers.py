"""Statements of papers, tried out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _core
from ._progress import Progress


@dataclass(frozen=True)
class Claims:
    """Claims of papers that were tried out."""

    claims: list[dict[str, Any]] = field(repr=False)
    """Each with its statement, status, comparisons and figures."""
    as_recorded: bool
    """Whether every claim came to the status that is on record for it."""
    page: str = field(repr=False)

    def report(self, path: str | Path = "gallery.html") -> Path:
        """Writes the page."""
        page = Path(path)
        page.write_text(self.page, encoding="utf-8")
        return page

    def __str__(self) -> str:
        return "\n".join(f"{claim['id']:<20} {claim['status']}" for claim in self.claims)


def reproduce(
    *ids: str, scale: str = "quick", mnist: str | Path | None = None, progress: bool | None = None
) -> Claims:
    """Tries claims of papers, such as `reproduce("B.thm5")` or `reproduce("B")`; `list_claims` has them all."""
    if not ids:
        raise _core.Error("name claims or papers, such as \"B.thm5\" or \"B\"; limitpoint.list_claims() has them")
    with Progress(progress) as shown:
        found = _core.claims(
            list(ids), scale, None if mnist is None else Path(mnist), lambda record: shown.line(str(record["id"]))
        )
    return Claims(claims=found["claims"], as_recorded=all(found["as_recorded"]), page=found["page"])


def list_claims() -> dict[str, str]:
    """Statements of all claims that can be tried, by id."""
    return dict(_core.list_claims())
