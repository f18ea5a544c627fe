"""How far a long measurement has come.

`track` wraps a loop and reports each finished step where somebody can see it:

- on a terminal, as a bar on standard error;
- in a kernel (Jupyter, papermill, nbval), nowhere in the outputs, because a bar
  there would be published with the page; the steps are instead appended as JSON
  lines to the file that the environment variable PGRERUN_PROGRESS names.

`book.py` sets that variable, reads the lines with `Steps` and draws them.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

VARIABLE = "PGRERUN_PROGRESS"
_INTERVAL = 0.1  # seconds between reports of a loop whose steps are shorter than that
_console = Console(stderr=True, emoji=False)  # one for all: nested loops then share its display

T = TypeVar("T")
Step = dict[str, str | int | None]  # {"description", "done", "total"}


def bars() -> Progress:
    """An unstarted rich display on standard error, in the one style of this package."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        console=_console,
        transient=True,
    )


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield from `items`, reporting each finished step.

    A step counts as finished when the loop asks for the next one, so a loop left
    by an exception stays reported as unfinished.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with _reporter(description) as report:
        report(0, total)
        done, reported_at = 0, 0.0
        for item in items:
            yield item
            done += 1
            if time.monotonic() - reported_at >= _INTERVAL:
                reported_at = time.monotonic()
                report(done, total)
        report(done, done)


@contextmanager
def _reporter(description: str) -> Iterator[Callable[[int, int | None], None]]:
    """Give a function of (done, total) that reports to the file, the terminal, or both."""
    path = os.environ.get(VARIABLE)
    with ExitStack() as opened:
        # A kernel's standard error is a stream of its own, which says that it is no terminal.
        display = opened.enter_context(bars()) if sys.stderr.isatty() else None
        task = display.add_task(description, total=None) if display else None

        def report(done: int, total: int | None) -> None:
            step: Step = {"description": description, "done": done, "total": total}
            # losing the display must not lose the measurement
            if path:
                with suppress(OSError), open(path, "a") as lines:
                    lines.write(json.dumps(step) + "\n")  # short and appended: lines never mix
            if display and task is not None:
                display.update(task, completed=done, total=total)

        yield report


class Steps:
    """The other end of the file: what was reported since the last call of `new`."""

    def __init__(self, path: Path):
        self.path = path
        self._offset = 0

    def new(self) -> list[Step]:
        """Steps in order, each {"description", "done", "total"}; a half-written line waits."""
        try:
            with open(self.path, "rb") as lines:
                lines.seek(self._offset)
                whole, newline, _ = lines.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._offset += len(whole) + len(newline)
        return [json.loads(line) for line in whole.splitlines()]
