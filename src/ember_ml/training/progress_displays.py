"""Show how far training is: a bar on a terminal, a bar in a notebook, a line for each epoch everywhere else."""

from __future__ import annotations

import html
import sys
from typing import Any, Protocol

__all__ = ["Display", "choose_display"]


class Display(Protocol):
    """Something that shows the progress of ``fit``."""

    def update(self, epoch: str, steps: int, total: int | None, loss: str) -> None:
        """Show how many of the steps of an epoch are done, and the latest loss."""
        ...

    def add_line(self, line: str) -> None:
        """Show the line of an epoch that is done."""
        ...

    def close(self) -> None:
        """End, with the lines left in place."""
        ...


def choose_display() -> Display:
    """Return the display that suits where the program runs."""
    if _is_notebook():
        return _NotebookBar()
    return _TerminalBar() if sys.stderr.isatty() else _Lines()


def _is_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


class _Lines:
    """Lines on the standard error stream: for files, pipes and the logs of jobs."""

    def update(self, epoch: str, steps: int, total: int | None, loss: str) -> None:
        pass

    def add_line(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class _TerminalBar:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("loss {task.fields[loss]}"),
        )
        self._bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=None, epoch="", loss="")

    def update(self, epoch: str, steps: int, total: int | None, loss: str) -> None:
        self._bar.update(self._task, total=total, completed=steps, epoch=epoch, loss=loss)

    def add_line(self, line: str) -> None:
        self._bar.console.print(line, highlight=False, markup=False)

    def close(self) -> None:
        self._bar.stop()


class _NotebookBar:
    """One output of the cell that changes while training goes on; it needs nothing but IPython."""

    def __init__(self) -> None:
        from IPython.display import display

        self._lines: list[str] = []
        self._shown: Any = display({"text/plain": "", "text/html": ""}, raw=True, display_id=True)

    def _show(self, bar: str) -> None:
        lines = "\n".join(self._lines)
        page = f"{bar}<pre>{html.escape(lines)}</pre>"
        self._shown.update({"text/plain": lines, "text/html": page}, raw=True)

    def update(self, epoch: str, steps: int, total: int | None, loss: str) -> None:
        share = f'value="{steps}" max="{total}"' if total else ""
        self._show(f"<div>epoch {epoch} <progress {share}></progress> {steps}/{total or '?'} loss {loss}</div>")

    def add_line(self, line: str) -> None:
        self._lines.append(line)
        self._show("")

    def close(self) -> None:
        self._show("")
