"""How runs get on: one line that is written over on a terminal, or an output that is updated in a notebook."""

import sys
import time
from typing import Any


class Progress:
    """Shows where runs stand, at most a few times a second; as a context it tidies up after itself."""

    def __init__(self, show: bool | None = None) -> None:
        self._display: Any = _notebook() if show is not False else None
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = show if show is not None else (terminal or self._display is not None)
        self._width = 0
        self._last = 0.0
        self._handle: Any = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        elif self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()

    def one(self, step: int, log10_loss: float) -> None:
        """News of a single run."""
        self.line(f"step {step}  log10 L {log10_loss:.2f}")

    def many(self, lines: list[tuple[str, int, float, float]], notes: list[str]) -> None:
        """News of several runs: name, step, log₁₀ of the loss, how much is done; and what else is worth knowing."""
        if self._shown:
            for note in notes:
                sys.stderr.write(note + "\n")
        going = [line for line in lines if line[3] < 1.0]
        done = len(lines) - len(going)
        words = [f"{name} {100 * part:.0f} % (log10 L {log10_loss:.1f})" for name, _, log10_loss, part in going[:3]]
        self.line("  ".join([f"{done} done", *words]))

    def line(self, text: str) -> None:
        """Writes over what was there."""
        now = time.monotonic()
        if not self._shown or now - self._last < 0.2:
            return
        self._last = now
        if self._display is not None:
            if self._handle is None:
                self._handle = self._display({"text/plain": text}, raw=True, display_id=True)
            else:
                self._handle.update({"text/plain": text}, raw=True)
            return
        text = text[:150]
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


def _notebook() -> Any:
    """The function that shows things in a notebook; nothing elsewhere."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    return display if shell is not None and type(shell).__name__ == "ZMQInteractiveShell" else None
