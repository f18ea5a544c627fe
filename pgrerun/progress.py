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
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar, overload

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
        console=Console(stderr=True, emoji=False),
        transient=True,
    )


@overload
def track(iterable: int, description: str, total: int | None = None) -> Iterator[int]: ...
@overload
def track(iterable: Iterable[T], description: str, total: int | None = None) -> Iterator[T]: ...
def track(
    iterable: Iterable[object] | int, description: str, total: int | None = None
) -> Iterator[object]:
    """Yield from `iterable` (a number n stands for range(n)), reporting each finished step.

    A step counts as finished when the loop asks for the next one, so a loop left
    by an exception stays reported as unfinished.
    """
    items: Iterable[object] = range(iterable) if isinstance(iterable, int) else iterable
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
    # A kernel's standard error is a stream of its own, which says that it is no terminal.
    with _bar(description) if sys.stderr.isatty() else nullcontext() as draw:

        def report(done: int, total: int | None) -> None:
            if path:
                _append(path, {"description": description, "done": done, "total": total})
            if draw:
                draw(completed=done, total=total)

        yield report


def _append(path: str, step: Step) -> None:
    try:
        with open(path, "a") as lines:
            lines.write(json.dumps(step) + "\n")  # short, and opened for appending: lines never mix
    except OSError:
        pass  # losing the display must not lose the measurement


_display: Progress | None = None  # one for all nested loops: rich allows one live display at a time


@contextmanager
def _bar(description: str) -> Iterator[Callable[..., None]]:
    """Draw one bar; the outermost loop opens and closes the display."""
    global _display
    outermost = _display is None
    display = _display = _display or bars()
    if outermost:
        display.start()
    task = display.add_task(description, total=None)
    try:
        yield partial(display.update, task)
    finally:
        display.remove_task(task)
        if outermost:
            display.stop()
            _display = None


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
