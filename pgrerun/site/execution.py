"""Executes one notebook with papermill and shows how far it has come.

What papermill leaves open is settled here: an interrupted kernel gets the time to
remove its server, the display never reaches an output, and a chapter's own error
arrives as the paragraph it wrote. `book.py` decides what is executed and where it goes.
"""

import asyncio
import logging
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_core.utils import ensure_event_loop, run_sync
from nbclient.exceptions import DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from rich.console import Console
from traitlets.config import Config

from pgrerun import errors
from pgrerun.errors import BookError, RerunError
from pgrerun.progress import VARIABLE, Steps, bars
from pgrerun.stopping import stoppable

# Seconds for a kernel to end its servers when asked to leave, and again after SIGTERM; then
# SIGKILL.
_PATIENCE = 6.0
_PATIENCE_AFTER_SUCCESS = 2.0  # a chapter that reached its end has ended its servers itself
_POLL_SECONDS = 0.2
_SAVE_SECONDS = 10.0


class ChapterFailed(BookError):
    """A cell raised something that is not the reader's to mend: a bug of ours, with traceback."""

    def __init__(self, message: str, traceback: str):
        super().__init__(message)
        self.traceback = traceback


class _Client(PapermillNotebookClient):
    """papermill's client with an end that doesn't depend on ipykernel's.

    About one ipykernel 7.4 in fifteen hangs at its end for ten seconds or for good: its
    control thread flushes an output stream whose own thread is gone already. Exit
    handlers have run by then, so the process may be killed.
    """

    def execute(self, **words):
        self.reset_execution_trackers()
        with self.setup_kernel(**words):
            self.papermill_execute_cells()
            kernel = self.wait_for_reply(self.kc.kernel_info())
            self.nb.metadata["language_info"] = kernel["content"]["language_info"]
            run_sync(self._leave)(
                _PATIENCE if self.nb.metadata.papermill.exception else _PATIENCE_AFTER_SUCCESS
            )
        return self.nb

    async def _leave(self, patience: float) -> None:
        await self.km.request_shutdown()
        deadline = time.monotonic() + patience
        while await self.km.is_alive() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        await self.km.shutdown_kernel(now=True)


class _Manager(NotebookExecutionManager):
    """papermill's keeper of the notebook, with fewer saves.

    papermill writes the whole notebook before and after each cell, which takes a chapter with its
    pictures longer than many a cell. Its engines have no option for that (`autosave_cell_every` is
    for long cells), but the keeper is theirs to choose. What is measured is kept by the run record;
    the notebook is saved now and then, and when it ends.
    """

    def save(self, **words) -> None:
        since = (self.now() - self.last_save_time).total_seconds()
        if self.end_time is not None or since > _SAVE_SECONDS:
            super().save(**words)


class _Engine(NBClientEngine):
    """papermill's engine, with a patient shutdown and the kernel's own noise in a file."""

    @classmethod
    def execute_notebook(cls, nb, kernel_name, output_path=None, **ours):
        keeper = _Manager(nb, output_path=output_path, progress_bar=False, autosave_cell_every=0)
        keeper.notebook_start()
        try:
            cls.execute_managed_notebook(keeper, kernel_name, **ours)
        finally:
            keeper.notebook_complete()
        return keeper.nb

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, *, on_cell, kernel_log, scratch, **_):
        # Its keys and ports, which jupyter_client would leave in $TMPDIR if this process is killed.
        connection = str(scratch / "kernel.json")
        kernel = {"shutdown_wait_time": 2 * _PATIENCE, "connection_file": connection}
        client = _Client(
            nb_man,
            kernel_name=kernel_name,
            timeout=None,
            startup_timeout=600,  # on a machine that does much else
            config=Config({"KernelManager": kernel}),
            on_cell_start=lambda cell, cell_index: on_cell(nb_man.nb.cells, cell_index),
        )
        try:
            return client.execute(stdout=kernel_log, stderr=kernel_log)
        except KeyboardInterrupt:
            # The interrupted cell's own failure arrives after nobody waits for it any more.
            ensure_event_loop().set_exception_handler(lambda loop, context: None)
            raise
        finally:
            _end(client)


def _end(client: _Client) -> None:
    """End a kernel that was stopped while it was starting; the client may know half of it."""
    if client.km is None or not client.km.has_kernel:
        return
    process = getattr(client.km.provisioner, "process", None)
    try:
        client._cleanup_kernel()
    except Exception:
        # Whatever it stumbles over, the process must not stay.
        if process is None:
            raise
    if process is not None and process.poll() is None:
        process.kill()


papermill_engines.register("pgrerun", _Engine)


def parameterized(source: Path, parameters: Mapping[str, Any]) -> nbformat.NotebookNode:
    """A notebook with parameters in a cell of their own, as papermill runs it."""
    return parameterize_notebook(load_notebook_node(str(source)), dict(parameters))


def execute(
    source: Path,
    target: Path,
    parameters: Mapping[str, Any],
    *,
    title: str,
    scratch: Path,
    environment: Mapping[str, str] = {},
) -> nbformat.NotebookNode:
    """Run `source` in its own folder and return the executed notebook, which is also written to
    `target`.

    `parameters` go into a cell of their own (none: the notebook runs as it is);
    `environment` is added to the kernel's; `scratch` is an empty folder for what goes with the
    run and is of no use after it. Raises the chapter's own RerunError
    where a cell raised one, ChapterFailed for any other exception, BookError for a
    kernel that died, and KeyboardInterrupt after Ctrl-C, SIGTERM or SIGHUP, by then
    without the kernel.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        open(target.with_suffix(".log"), "w+", encoding="utf-8", errors="replace") as kernel_log,
        _quiet(),
        _environment({**environment, VARIABLE: str(scratch / "steps")}),
        stoppable("the server to be removed"),
        _display(title, Steps(scratch / "steps")) as on_cell,
    ):
        try:
            executed = papermill.execute_notebook(
                source,
                target,
                dict(parameters),
                engine_name="pgrerun",
                kernel_name="python3",
                progress_bar=False,
                cwd=source.parent,
                on_cell=on_cell,
                kernel_log=kernel_log,
                scratch=scratch,
            )
        except PapermillExecutionError as error:
            raise _explained(title, target, error) from None
        except RuntimeError as error:  # jupyter_client's, of a kernel that never answered
            if not isinstance(error, DeadKernelError) and "Kernel died" not in str(error):
                raise
            kernel_log.seek(0)
            raise BookError(
                f"The kernel that ran {title} died in the middle: it was killed, or the machine ran"
                " out of memory. What was measured so far is kept. Its last words:"
                f" {_last_words(kernel_log.read())}"
            ) from None
    target.with_suffix(".log").unlink(missing_ok=True)
    return executed


def _explained(title: str, target: Path, error: PapermillExecutionError) -> BaseException:
    """What a cell raised, as an exception of this process."""
    if error.ename == "KeyboardInterrupt":
        return KeyboardInterrupt()
    if error.ename in _OURS:
        return raised(error.ename, error.evalue)
    return ChapterFailed(
        f"{title} failed in cell [{error.exec_count}] with {error.ename}, which is a bug of this"
        " book and not yours. What was measured so far is kept. The notebook as far as it came:"
        f" {target}",
        traceback="\n".join(error.traceback),
    )


def raised(failed: str, message: str, traceback: str = "") -> RerunError:
    """An exception that another process told of, by the name of its class."""
    if failed == ChapterFailed.__name__:
        return ChapterFailed(message, traceback)
    error = RerunError(message)
    error.exit_status = _OURS.get(failed, BookError).exit_status
    return error


_OURS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, RerunError)
}


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip() and not _NOISE.search(line)]
    return " / ".join(lines[-3:]) or "none."


_NOISE = re.compile(
    r"Kernel is running over TCP|CryptographyDeprecation|frozen modules|PYDEVD|Debugger warning"
)


@contextmanager
def _quiet() -> Iterator[None]:
    """papermill, nbclient and asyncio log what is either shown here already or follows from an
    interrupt.
    """
    before = logging.root.manager.disable
    logging.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(before)


@contextmanager
def _environment(added: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(added)
    # Many a container forbids Python to write down what it has compiled. Then each kernel would
    # compile all packages again, which takes longer than all else at a chapter's opening.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _display(title: str, steps: Steps) -> Iterator[Callable[[list, int], None]]:
    """Give a function to be told the cells and the index of the one that starts.

    A terminal gets two bars, the chapter's cells and the running measurement;
    anything else gets a line whenever a new section begins.
    """
    console = Console(stderr=True, emoji=False)
    if not console.is_terminal:
        told: set[str] = set()

        def tell(cells: list, index: int) -> None:
            section = _section(cells, index)
            if section not in told:
                told.add(section)
                console.print(
                    f"  {title}: {section}", highlight=False, markup=False, soft_wrap=True
                )

        yield tell
        return

    with bars() as display:
        chapter = display.add_task(title, total=None)
        measurement = display.add_task("", total=None, visible=False)
        finished = threading.Event()

        def draw(cells: list, index: int) -> None:
            section = _section(cells, index)
            display.update(
                chapter, completed=index, total=len(cells), description=f"{title}: {section}"
            )
            display.update(measurement, visible=False)

        def follow() -> None:
            while not finished.wait(_POLL_SECONDS):
                for step in steps.new()[-1:]:
                    display.update(
                        measurement,
                        description=f"  {step['description']}",
                        completed=step["done"],
                        total=step["total"],
                        visible=step["done"] != step["total"],
                    )

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield draw
        finally:
            finished.set()
            follower.join()


def _section(cells: list, index: int) -> str:
    """The heading above a cell."""
    above = "\n".join(cell.source for cell in cells[: index + 1] if cell.cell_type == "markdown")
    headings = re.findall(r"^#{1,3} +(.+)$", above, flags=re.MULTILINE)
    return headings[-1] if headings else "start"
