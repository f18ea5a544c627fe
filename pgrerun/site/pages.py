"""Pages of records: a chapter's notebook executed against a record, where nothing is measured.

No kernel is started for it, whose start and imports take longer than most pages: this process
imports what all of them need, and in one forked from it IPython runs the cells of one notebook.
"""

import contextlib
import io
import json
import os
import sys
import traceback
from pathlib import Path

import nbformat
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_output
from traitlets import Type
from traitlets.config import Config

from pgrerun import forking, notebook
from pgrerun.errors import BookError, RerunError
from pgrerun.lab.server import private
from pgrerun.site.book import Page, presentable, write_notebook
from pgrerun.site.execution import ChapterFailed, parameterized


def _main() -> None:
    """Make the pages that standard input tells of; a line of JSON for each."""
    pages = [Page(**one) for one in json.load(sys.stdin)]
    for page, status in forking.run_each(pages, os.cpu_count() or 1, _make):
        if status:
            why = f"The page of {page.chapter} can't be made: its process ended with {status}."
            forking.tell(_told(BookError(why)))


def _make(page: Page) -> None:
    try:
        os.environ[notebook.RECORD] = page.record
        with private.PrivateDirectory(private.base_directory()) as scratch:
            executed = _execute(page, scratch.path)
        write_notebook(presentable(executed), Path(page.kept))
    except (RerunError, OSError) as error:
        forking.tell(_told(error))
    else:
        forking.tell({"chapter": page.chapter})
    finally:
        private.close_all()  # a process that was forked ends without `atexit`


def _told(error: Exception) -> dict[str, str]:
    """An exception as another process raises it again (`execution.raised`)."""
    return {
        "failed": type(error).__name__,
        "message": str(error),
        "traceback": getattr(error, "traceback", ""),
    }


def _execute(page: Page, scratch: Path) -> nbformat.NotebookNode:
    """The notebook with the page's parameters, executed in its own folder by this process."""
    source = Path(page.source)
    executed = parameterized(source, page.given)
    os.chdir(source.parent)
    shell = _Shell.instance(ipython_dir=str(scratch), config=_CONFIG)
    for cell in executed.cells:
        if cell.cell_type != "code":
            continue
        cell.execution_count = shell.execution_count
        try:
            cell.outputs = shell.run(cell.source)
        except RerunError:
            raise
        except Exception as error:
            raise ChapterFailed(
                f"The page of {page.chapter} failed in cell [{cell.execution_count}] with"
                f" {type(error).__name__}, which is a bug of this book and not yours.",
                traceback="".join(traceback.format_exception(error)),
            ) from None
    executed.metadata.papermill["exception"] = None
    return executed


_CONFIG = Config({"HistoryManager": {"enabled": False}})


class _Hook(DisplayHook):
    """Keeps what a cell's last expression is shown as."""

    def start_displayhook(self) -> None: ...

    def write_output_prompt(self) -> None: ...

    def write_format_data(self, format_dict, md_dict=None) -> None:
        how = {"metadata": md_dict, "execution_count": self.shell.execution_count}
        self.shell.outputs.append(new_output("execute_result", format_dict, **how))

    def finish_displayhook(self) -> None: ...


class _Publisher(DisplayPublisher):
    """Keeps what a cell displays."""

    def publish(self, data, metadata=None, **_) -> None:
        self.shell.outputs.append(new_output("display_data", data, metadata=metadata or {}))


class _Stream(io.TextIOBase):
    """Keeps what a cell prints, in its place between what it displays."""

    def __init__(self, name: str, outputs: list[nbformat.NotebookNode]):
        self.name, self.outputs = name, outputs

    def write(self, text: str) -> int:
        last = self.outputs[-1] if self.outputs else {}
        if last.get("name") == self.name:
            last["text"] += text
        else:
            self.outputs.append(new_output("stream", name=self.name, text=text))
        return len(text)


class _Shell(InteractiveShell):
    """IPython without a terminal and without a kernel."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)
    outputs: list[nbformat.NotebookNode]

    def run(self, source: str) -> list[nbformat.NotebookNode]:
        """The outputs of a cell; its exception if it raises one."""
        self.outputs = []
        with (
            contextlib.redirect_stdout(_Stream("stdout", self.outputs)),  # type: ignore[type-var]
            contextlib.redirect_stderr(_Stream("stderr", self.outputs)),  # type: ignore[type-var]
        ):
            done = self.run_cell(source, store_history=True)
        if error := done.error_before_exec or done.error_in_exec:
            raise error
        return self.outputs


if __name__ == "__main__":
    _main()
