"""The book: executed chapters in book/results and the site built around them.

Nothing is rerun or rebuilt unless something it is made from has changed, and the
reason is said (`inputs.py` finds it, `execution.py` runs a notebook, `gates.py`
refuses what must not be published). Beside each executed chapter lies a stamp, a
JSON file with what it was made from, what was asked for and how long it took, and a
copy of its run record, from which the scoreboard is made. The record itself keeps the
executed page (`executed_pages.py`), so that a site can be built from any recorded run.
"""

import ast
import copy
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from pgrerun.errors import BookError, ParameterError, RerunError
from pgrerun.lab.server import passwords
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.parameters import (
    ONLY,
    ChapterParameters,
    addresses,
    chapter_parameters,
    chapters,
    folder,
    info,
    unknown,
)
from pgrerun.site import inputs
from pgrerun.stopping import stoppable

if TYPE_CHECKING:
    from pgrerun.record.gather import Gathered

ROOT = Path(__file__).resolve().parents[2]
RUN_NAME = (  # the kernel finds the name of the run record here, where the reader gave one
    "PGRERUN_RUN"
)

PUBLISHED = "published"  # as `runs.PUBLISHED`, whose module takes long to import

_INJECTED = "injected-parameters"
_HIDDEN = "remove-input"  # jupyter-book's tags
_FOLDED, _OUTPUT_FOLDED = "hide-input", "hide-output"
_NEVER = "never run"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class State:
    """One chapter as it stands. Fresh when there is no reason to run it."""

    chapter: str
    given: Mapping[str, Any]
    parameters: ChapterParameters
    inputs: Mapping[str, Any]
    reasons: list[str] = field(default_factory=list)
    seconds: float = (
        0.0  # expected duration: as measured by the last run of this profile, else an estimate
    )

    @property
    def only_prose(self) -> bool:
        """Whether the executed outputs still fit and only the text around them is old."""
        return self.reasons == ["prose changed"]


@dataclass(frozen=True)
class Stopped:
    """A run of a chapter that was stopped: its name, its folder, and how much it keeps."""

    run: str
    folder: Path
    observations: int

    def sentence(self) -> str:
        return (
            f"The run {self.run} keeps {self.observations}"
            f" observation{'s' * (self.observations != 1)}: the same command goes on from there. To"
            f" start anew, delete {self.folder}."
        )


class Book:
    """The checkout at `root`."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        self.notebooks = root / "notebooks"
        self.source = root / "book"
        self.results = root / "book" / "results"
        self.data = root / "data"
        self.build = root / "_build"
        self.site = root / "_build" / "html"
        self.printed = root / "_build" / "print"

    # ---- chapters

    def chapters(self) -> list[str]:
        """Their names, in the order of the contents."""
        order = {name: place for place, name in enumerate(chapters())}
        found = (path.stem for path in self.notebooks.glob("*.ipynb"))
        return sorted(found, key=lambda name: (order.get(name, len(order)), name))

    def notebook(self, chapter: str) -> Path:
        """Where a chapter's source is; ParameterError for a name that is no chapter."""
        if chapter not in self.chapters():
            raise ParameterError(f"There is no chapter {unknown(chapter, self.chapters())}.")
        return self.notebooks / f"{chapter}.ipynb"

    def result(self, chapter: str) -> Path:
        return self.results / f"{chapter}.ipynb"

    def record(self, chapter: str) -> Path:
        """The copy of the run record that belongs to the executed chapter."""
        return self.results / chapter

    def state(self, chapter: str, given: Mapping[str, Any] | None = None) -> State:
        """What a run with `given` would be made from, against what the executed chapter was made
        from.

        Without `given` the parameters of the last run stand, so that building the
        book never replaces an overnight run by a short one.
        """
        source = self.notebook(chapter)
        stamp = self._stamp(chapter)
        given = self._last_given(chapter, stamp) if given is None else dict(given)
        parameters = chapter_parameters(chapter, given)
        now = self._inputs(source, chapter, parameters)
        if not stamp:
            reasons = [_NEVER]
        elif not self.result(chapter).exists() or stamp["result"] != inputs.digest(
            self.result(chapter).read_bytes()
        ):
            reasons = ["the executed notebook is missing or was changed by something else"]
        else:
            reasons = inputs.changes(stamp["inputs"], now)
        expected = info(chapter).minutes[parameters.profile] * 60
        seconds = stamp.get("seconds", {}).get(parameters.profile, expected)
        return State(chapter, given, parameters, now, reasons, seconds)

    def run(
        self,
        state: State,
        *,
        out: Path | None = None,
        name: str = "",
        keep_address: bool = False,
        only: Sequence[str] = (),
    ) -> Path:
        """Execute a chapter and return the executed notebook's path.

        It lands in book/results with its stamp, or only at `out`. What fails, is
        stopped, or doesn't pass the gate replaces nothing; a failed copy stays
        under _build/failed, where it can't be published. Where somebody's server is stands in it
        and in its record only if `keep_address` says so, or the environment (passwords.py). `only`
        names the experiments to attempt, where not all are; such a page isn't gated.
        """
        from pgrerun.site.execution import execute

        chapter = state.chapter
        if out is not None:
            _require_writable(out)
        running = self.build / "running" / f"{chapter}.ipynb"
        environment = {RUN_NAME: name} if name else {}
        keep_address = keep_address or passwords.keeps_address()
        environment |= {passwords.KEEP_ADDRESS: "1"} if keep_address else {}
        environment |= {ONLY: ",".join(only)} if only else {}
        with self.alone() as scratch:
            started = time.monotonic()
            try:
                executed = execute(
                    self.notebook(chapter),
                    running,
                    state.parameters.model_dump(),
                    title=chapter,
                    scratch=scratch,
                    environment=environment,
                    whole=not only,
                )
                seconds = time.monotonic() - started
                for address in () if keep_address else addresses(state.parameters).values():
                    executed = _without_address(executed, address)
                _write(_presentable(executed), running)
                self._gate(running, whole=not only)
            except RerunError as error:
                error = self._kept(running, error)
                if stopped := self.stopped(chapter, name or _run_name(state)):
                    error.args = (f"{error} {stopped[0].sentence()}",)
                raise error from None
            except BaseException:
                running.unlink(missing_ok=True)
                running.with_suffix(".log").unlink(missing_ok=True)
                raise
            record = self.keep_page(state, running, name)
            target = out or self.result(chapter)
            self._deliver(running, target, record)
            if out is None:
                copy_folder(record, self.record(chapter))
                self.write_stamp(state, seconds)
        return target

    def _deliver(self, executed: Path, target: Path, record: Path) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(executed, target)
        except OSError as error:
            raise BookError(
                f"The chapter ran to its end and its record is in {record}, but the executed"
                f" notebook can't be written to {target}: {error.strerror}. It is in {executed}."
            ) from None

    @stoppable("the page to be kept")
    def keep_page(self, state: State, executed: Path, name: str) -> Path:
        """Put the executed page into the record that its run has written, and return the record's
        folder.
        """
        from pgrerun.record import runs
        from pgrerun.site import executed_pages

        name = name or _run_name(state)
        record = runs.root() / name / state.chapter
        if (record / runs.ENVIRONMENT).is_file():  # a notebook that opens no chapter leaves none
            _write(
                executed_pages.compact(nbformat.read(executed, as_version=4)),
                record / executed_pages.PAGE,
            )
        return record

    def stopped(self, chapter: str, run: str = "*") -> list["Stopped"]:
        """What unfinished runs of a chapter keep, of one run or of all."""
        from pgrerun.record import runs

        return [
            Stopped(journal.parent.parent.name, journal.parent, lines - 1)
            for journal in sorted(runs.root().glob(f"{run}/{chapter}.partial/{runs.JOURNAL}"))
            if (lines := journal.read_bytes().count(b"\n")) > 1
        ]

    def retell(self, state: State) -> None:
        """Put changed prose around the outputs of the last run."""
        executed = nbformat.read(self.result(state.chapter), as_version=4)
        source = nbformat.read(self.notebook(state.chapter), as_version=4)
        running = self.build / "running" / f"{state.chapter}.ipynb"
        running.parent.mkdir(parents=True, exist_ok=True)
        _write(_transplanted(source, executed), running)
        self._gate(running)
        shutil.move(running, self.result(state.chapter))
        self.write_stamp(state, None)

    def refresh(self, chapter: str) -> Path:
        """Run the committed notebook as it is and write its facts back into it.

        Only outputs of cells tagged `fact` are kept: nbval compares those. Charts and
        timings would differ on every machine.
        """
        from pgrerun.site.execution import execute

        source = self.notebook(chapter)
        running = self.build / "running" / f"{chapter}.ipynb"
        with self.alone() as scratch:
            try:
                execute(source, running, {}, title=chapter, scratch=scratch)
                # papermill adds to the notebook's metadata; the committed one keeps its own.
                executed = nbformat.read(running, as_version=4)
                _write(committed(executed), source)
            except RerunError as error:
                raise self._kept(running, error) from None
            finally:
                running.unlink(missing_ok=True)
        return source

    def _inputs(self, source: Path, chapter: str, parameters: ChapterParameters) -> dict[str, Any]:
        notebook = nbformat.read(source, as_version=4)
        code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        return (
            {
                "code": inputs.code(notebook),
                "prose": inputs.prose(notebook),
                "PostgreSQL": server_version(parameters),
            }
            | {f"parameter {name}": value for name, value in parameters.model_dump().items()}
            | inputs.environment(self.root)
            | inputs.library(self.root, code)
            | inputs.claims(self.data, chapter)
            | inputs.files(self.data / "printed", "data")
            | inputs.files(self.data / "runs" / PUBLISHED / chapter, "published run")
            # whose record every chapter's section on what changed is written from
            | inputs.files(self.data / "runs" / PUBLISHED / "since_when", "published releases")
        )

    def _last_given(self, chapter: str, stamp: Mapping[str, Any]) -> dict[str, Any]:
        """What the last run was asked for, unless the chapter has other parameters now."""
        given = dict(stamp.get("given", {}))
        try:
            chapter_parameters(chapter, given)
        except ParameterError:
            return {}
        return given

    def _stamp(self, chapter: str) -> dict[str, Any]:
        try:
            return json.loads(self.result(chapter).with_suffix(".json").read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def write_stamp(self, state: State, seconds: float | None) -> None:
        stamp = self._stamp(state.chapter)
        measured = {} if seconds is None else {state.parameters.profile: round(seconds, 1)}
        stamp = {
            "given": dict(state.given),
            "inputs": dict(state.inputs),
            "result": inputs.digest(self.result(state.chapter).read_bytes()),
            "seconds": stamp.get("seconds", {}) | measured,
        }
        self.result(state.chapter).with_suffix(".json").write_text(
            json.dumps(stamp, indent=1) + "\n", "utf-8"
        )

    def _gate(self, executed: Path, whole: bool = True) -> None:
        """Refuse what must not be published, which what lacks cells isn't meant for."""
        from pgrerun.site import gates

        if whole:
            gates.check_chapter(executed)

    def _kept(self, running: Path, error: RerunError) -> RerunError:
        """Move a failed copy aside, and let the error name the place it has now."""
        failed = self.build / "failed" / running.name
        if running.exists():
            failed.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(running, failed)
        error.args = tuple(str(word).replace(str(running), str(failed)) for word in error.args)
        return error

    @contextmanager
    def alone(self) -> Iterator[Path]:
        """Refuse a second run, as two at once would measure each other; a folder for this one.

        What is in the folder goes also if this process is killed, at once or with the next run.
        """
        self.build.mkdir(parents=True, exist_ok=True)
        with open(self.build / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BookError(
                    "Another run of this checkout is under way, and two at once would measure each"
                    " other. Wait for it to end or stop it with Ctrl-C there."
                ) from None
            with PrivateDirectory(base_directory()) as scratch:
                yield scratch.path

    # ---- the runs of many machines

    @property
    def gathered(self) -> Path:
        """What `pgrerun gather` found last, for the page about all runs."""
        return self.build / "gathered.json"

    def gather(self, sources: Sequence[str]) -> "Gathered":
        """Read the records below the sources; nothing is written (see `pgrerun/record/gather.py`).

        Copies of what lies in archives go also if this process is killed.
        """
        from pgrerun.record import gather

        with PrivateDirectory(base_directory()) as scratch:
            return gather.gather(sources, scratch.path)

    def _lay_out_gathered(self, target: Path) -> None:
        """What the page about all runs is made of: what was gathered, else what is committed."""
        if self.gathered.exists():
            shutil.copyfile(self.gathered, target)
            return
        runs = self.data / "runs"
        committed = [runs / PUBLISHED, *sorted(runs.glob(f"{PUBLISHED}-[2-9]"))]
        committed.append(self.data / "submitted")
        places = [str(place) for place in committed if any(place.glob("**/environment.json"))]
        if places:
            self.gather(places).save(target)

    # ---- the site

    def proofread(self) -> None:
        """Refuse typed numbers in prose, before anything is run for it."""
        from pgrerun.site import gates

        gates.check_prose(self.notebooks)
        gates.check_prose(self.source)

    def site_reasons(self, run: str = "") -> list[str]:
        """Why the site must be built from the executed chapters, or from `run`; empty when it is up
        to date.
        """
        try:
            before = json.loads((self.build / "site.json").read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            before = None
        if before is None or not (self.site / "index.html").exists():
            return ["never built"]
        return inputs.changes(before, self._site_inputs(run))

    def build_site(self, run: str = "") -> Path:
        """Build the site from the executed chapters, or with `run` from a recorded run, and return
        its first page.

        BookError when a gate or Sphinx finds fault with a page; the site as it was
        before is gone then, and the stamp with it, so that it isn't taken for current. Pages that a
        gate refuses lie where nobody takes them for the site's.
        """
        from pgrerun.site import gates

        stamp = self.build / "site.json"
        stamp.unlink(missing_ok=True)
        built_from = self._site_inputs(run)
        self.proofread()
        self.sphinx("site", self.lay_out(run))
        refused = self.build / "refused"
        shutil.rmtree(refused, ignore_errors=True)
        try:
            gates.check_site(self.site)
        except BookError as fault:
            self.site.rename(refused)
            raise BookError(f"{fault} The pages are in {refused}.") from fault
        stamp.write_text(json.dumps(built_from, indent=1) + "\n", "utf-8")
        return self.site / "index.html"

    def shown_run(self) -> str:
        """The recorded run that the site was last built from; "" for the executed chapters."""
        try:
            return json.loads((self.build / "site.json").read_text("utf-8")).get("run", "")
        except (FileNotFoundError, json.JSONDecodeError):
            return (
                ""
                if all(self.result(chapter).exists() for chapter in self.chapters())
                else PUBLISHED
            )

    def build_epub(self, run: str = "") -> Path:
        """Build the ePub from the executed chapters, or with `run` from a recorded run, and return
        its path.

        BookError when a gate or Sphinx finds fault with it. `printing.pdf` makes a PDF of it.
        """
        from pgrerun.site import gates

        shutil.rmtree(self.printed, ignore_errors=True)  # whatever lies there would be packed
        self.proofread()
        source = self.lay_out(run)
        self.sphinx("ePub", source, "--builder", "custom", "--custom-builder", "print")
        [epub] = self.printed.glob("*.epub")
        gates.check_epub(epub, source)
        return epub

    def sphinx(self, what: str, source: Path, *options: str) -> None:
        # All pages: Sphinx itself sees no change in the extensions or in the data that they read.
        command = "from jupyter_book.cli.main import main; main()"
        build = subprocess.run(
            [
                sys.executable,
                "-c",
                command,
                "build",
                str(source),
                "--path-output",
                str(self.root),
                "--all",
                "-W",
                "-n",
                "--keep-going",
                *options,
            ],
            cwd=self.root,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=os.environ | {"PYTHONUTF8": "1"},  # pages are UTF-8, whatever the locale
        )
        log = self.build / f"{what.lower()}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(_COLOURS.sub("", build.stdout + build.stderr), "utf-8")
        if build.returncode:
            raise BookError(
                f"The {what} can't be built; the whole log is in"
                f" {log}.\n{_complaints(log.read_text('utf-8'))}"
            )

    def lay_out(self, run: str) -> Path:
        """A copy of the site's sources with their contents and the chapters, and return its folder.

        The chapters are as they were executed last, or with `run` as that run found them. One that
        the run lacks is shown as it was published, and one that was not published either as it is
        committed: with its prose and its facts.
        """
        from pgrerun.record import runs
        from pgrerun.site import contents

        if run and run != PUBLISHED:
            runs.load(run)  # which says what runs there are, and what is wrong with this one
        place = self.build / "source"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(
            self.source,
            place / "book",
            ignore=shutil.ignore_patterns("results", "_build", "__pycache__"),
        )
        shutil.copy(self.root / "_config.yml", place)
        self._lay_out_gathered(place / "book" / "all-runs.json")
        contents.write(place / "book", self.chapters())
        results = place / "book" / "results"
        results.mkdir()
        for chapter in self.chapters():
            if run:
                self._lay_out_recorded(chapter, run, results)
            elif self.result(chapter).exists():
                shutil.copy(self.result(chapter), results)
                copy_folder(self.record(chapter), results / chapter)
        return place / "book"

    def _lay_out_recorded(self, chapter: str, run: str, results: Path) -> None:
        from pgrerun.record import runs

        for name in (run, PUBLISHED):
            record = runs.folder(name) / chapter
            if (record / runs.ENVIRONMENT).is_file():
                page = self._page(chapter, record, published=name == PUBLISHED)
                copy_folder(record, results / chapter)
                break
        else:
            page = _told_not_run(nbformat.read(self.notebook(chapter), as_version=4))
        _write(page, results / f"{chapter}.ipynb")

    def _page(self, chapter: str, record: Path, *, published: bool) -> nbformat.NotebookNode:
        """A chapter as a record keeps it, with today's prose if its code is still the same.

        A record that nobody here has made may hold anything, and so may one that lies among ours.
        What its page says in words or code never reaches a page of ours, and its outputs only if
        they lie among this checkout's runs and are plain. Otherwise the chapter tells the
        record's verdicts and observations in tables of our own.
        """
        from pgrerun.site import executed_pages

        source = nbformat.read(self.notebook(chapter), as_version=4)
        kept = record / executed_pages.PAGE
        if not kept.is_file() or kept.is_symlink():
            return _told_not_run(source) if published else _told_by_record(source, record)
        if not published and not _among_ours(record):
            return _told_by_record(source, record)
        page = nbformat.read(kept, as_version=4)
        same = inputs.same_code(source, _without_injected(page))
        if not published and not (same and executed_pages.is_plain(page)):
            return _told_by_record(source, record)
        page = executed_pages.redrawn(page)
        _show_what_was_given(page)
        page = _transplanted(source, page) if same else page
        _fold(page)
        return page

    def _site_inputs(self, run: str = "") -> dict[str, str]:
        extensions = [
            path.read_text("utf-8") for path in sorted((self.source / "_ext").rglob("*.py"))
        ]
        return (
            self._chapters_shown(run)
            | inputs.files(self.source, "page", skip=("results", "_build"))
            | {"_config.yml": inputs.digest((self.root / "_config.yml").read_bytes())}
            | inputs.environment(self.root)
            | inputs.library(
                self.root,
                [
                    *extensions,
                    "from pgrerun.site import book, contents, executed_pages, gates",
                ],
            )
            | {
                f"chapter.toml of {name}": inputs.digest(
                    (folder(name) / "chapter.toml").read_bytes()
                )
                for name in self.chapters()
            }
            | inputs.files(self.data, "data", skip=("runs",))
            | inputs.files(self.data / "runs" / PUBLISHED, "published run")
            | {
                name: digest
                for other in sorted((self.data / "runs").glob(f"{PUBLISHED}-[2-9]"))
                for name, digest in inputs.files(other, f"{other.name} run").items()
            }
            | (
                {"gathered runs": inputs.digest(self.gathered.read_bytes())}
                if self.gathered.exists()
                else {}
            )
            | {
                path.name: inputs.digest(path.read_bytes())
                for path in sorted(self.printed.glob("postgres-rerun.*"))
            }
        )

    def _chapters_shown(self, run: str) -> dict[str, str]:
        if not run:
            return {
                f"chapter {path.stem}": inputs.digest(path.read_bytes())
                for path in sorted(self.results.glob("*.ipynb"))
            }
        from pgrerun.record import runs

        notebooks = {
            f"chapter {name}": inputs.digest(self.notebook(name).read_bytes())
            for name in self.chapters()
        }
        return {"run": run} | notebooks | inputs.files(runs.folder(run), "run")

    # ---- cleaning

    def clean(self, *, runs: bool = False) -> list[Path]:
        """Remove what can be built again, and with `runs` the reader's own run records; return what
        is gone.
        """
        doomed = [path for path in (self.results, self.build) if path.exists()]
        if runs:
            from pgrerun.record.runs import is_published

            doomed += sorted(
                path for path in (self.data / "runs").glob("*") if not is_published(path.name)
            )
        for path in doomed:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return doomed


def _run_name(state: State) -> str:
    """A run's name where the reader gave none on the command line."""
    return os.environ.get(RUN_NAME) or state.parameters.profile


def _require_writable(out: Path) -> None:
    """ParameterError, before anything runs, unless an executed notebook can be written there."""
    problem = ""
    if out.is_dir():
        problem = "it is a folder"
    elif not out.parent.is_dir():
        problem = f"there is no folder {out.parent}"
    elif not os.access(out if out.exists() else out.parent, os.W_OK):
        problem = "this account may not write there"
    if problem:
        raise ParameterError(f"The executed notebook can't be written to {out}: {problem}.")


def server_version(parameters: ChapterParameters) -> str:
    """The PostgreSQL version a run would use. A borrowed server is not asked: its address stands
    for it.
    """
    from pgrerun.lab.server import fetched

    if parameters.server:
        return parameters.server
    return fetched.chosen(parameters.programs).version


def _presentable(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Make papermill's copy the same from run to run."""
    for cell in notebook.cells:
        if _is_injected(cell):
            cell.id = _INJECTED
    _show_what_was_given(notebook)
    _fold(notebook)
    # Paths of this machine are nobody's business.
    for key in ("input_path", "output_path"):
        notebook.metadata.papermill[key] = Path(notebook.metadata.papermill[key]).name
    return notebook


def _without_address(notebook: nbformat.NotebookNode, server: str) -> nbformat.NotebookNode:
    """The notebook with something else in the place of an address, wherever it stands."""
    text = nbformat.writes(notebook)
    # as JSON has it, and as Python and then JSON have it
    for quoted in (json.dumps(json.dumps(server)[1:-1])[1:-1], json.dumps(server)[1:-1]):
        text = text.replace(quoted, passwords.LEFT_OUT)
    return nbformat.reads(text, as_version=4)


def _show_what_was_given(notebook: nbformat.NotebookNode) -> None:
    """Have the page show papermill's injected cell if it changes a parameter, and hide it if it
    repeats what stands above it.
    """
    standing: dict[str, object] = {}
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            standing = _assigned(cell.source)
        elif _is_injected(cell):
            changes = any(
                standing.get(name) != value for name, value in _assigned(cell.source).items()
            )
            cell.metadata.tags = [tag for tag in tags if tag != _HIDDEN] + [_HIDDEN] * (not changes)


def _fold(notebook: nbformat.NotebookNode) -> None:
    """Fold on the page all code but cells in another language.

    Cells that attempt an experiment are left to the page, which shows what they run.
    """
    for cell in notebook.cells:
        if cell.cell_type != "code" or not _folds(cell):
            continue
        tags = [tag for tag in cell.metadata.get("tags", []) if tag not in _FOLDING]
        cell.metadata.tags = [*tags, _FOLDED]


_FOLDING = {_FOLDED, _OUTPUT_FOLDED}


def _folds(cell: nbformat.NotebookNode) -> bool:
    tells = not cell.source.startswith("%%") and "chapter.attempt(" not in cell.source
    return tells and _HIDDEN not in cell.metadata.get("tags", [])


def _assigned(source: str) -> dict[str, object]:
    """The parameters that a cell sets, by name."""
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
    }


def _transplanted(
    source: nbformat.NotebookNode, executed: nbformat.NotebookNode
) -> nbformat.NotebookNode:
    """The source with the outputs of a run whose code cells are the same."""
    told = copy.deepcopy(source)
    # Only papermill's: the rest tells MyST-NB how to build the page, and that is the source's to
    # say.
    if "papermill" in executed.metadata:
        told.metadata.papermill = executed.metadata.papermill
    injected = [_as_injected(cell) for cell in executed.cells if _is_injected(cell)]
    pairs = zip(
        (cell for cell in told.cells if cell.cell_type == "code"),
        (cell for cell in _without_injected(executed).cells if cell.cell_type == "code"),
        strict=True,
    )
    for cell, before in pairs:
        cell.outputs, cell.execution_count = before.outputs, before.execution_count
        _caption(cell)
        _align(cell)
        cell.metadata.papermill = before.metadata.papermill
    place = next(
        i for i, cell in enumerate(told.cells) if "parameters" in cell.metadata.get("tags", [])
    )
    told.cells[place + 1 : place + 1] = injected
    _fold(told)
    return told


def _caption(cell: nbformat.NotebookNode) -> None:
    """Give the one table of a cell the caption that its code has today."""
    from pgrerun.page import tables

    shown = [
        one for one in cell.outputs if "result-table" in one.get("data", {}).get("text/html", "")
    ]
    if len(found := inputs.captions(cell.source)) == len(shown) == 1:
        data = shown[0].data
        data["text/html"] = tables.captioned(data["text/html"], found[0])


def _align(cell: nbformat.NotebookNode) -> None:
    """Give the tables of a cell that ran earlier the heads that tables have today."""
    from pgrerun.page import tables

    for one in cell.outputs:
        markup = one.get("data", {}).get("text/html", "")
        if markup.startswith('<div class="result-table"'):
            one.data["text/html"] = tables.aligned(markup)


def _told_not_run(source: nbformat.NotebookNode) -> nbformat.NotebookNode:
    note = (
        ":::{note}\nThere is no run of this chapter behind these pages: charts and measured"
        " sentences are missing, and what stands under a cell is what comes out the same on every"
        " machine. [Rerun it](../rerun.md) to see the rest.\n:::"
    )
    told = copy.deepcopy(source)
    told.cells.insert(1, nbformat.v4.new_markdown_cell(note, id="not-run"))
    return told


def _told_by_record(source: nbformat.NotebookNode, record: Path) -> nbformat.NotebookNode:
    """The chapter as committed, with tables of a record's verdicts and observations."""
    from pgrerun.record import runs
    from pgrerun.site import executed_pages

    note = (
        ":::{note}\nThis run's charts and sentences are not shown: it was not recorded by this"
        " checkout, or the chapter's code has changed since. What it found follows in tables; what"
        " stands under a cell is what comes out the same on every machine.\n:::"
    )
    told = copy.deepcopy(source)
    told.cells[1:1] = [
        nbformat.v4.new_markdown_cell(note, id="not-shown"),
        executed_pages.tables_of(runs.load(record)),
    ]
    return told


def _among_ours(record: Path) -> bool:
    """Whether a record lies among the runs of this checkout, where our own runs are written."""
    from pgrerun.record import runs

    place = record.resolve()
    return any(home.resolve() in place.parents for home in (runs.root(), runs.CHECKOUT))


def _is_injected(cell: nbformat.NotebookNode) -> bool:
    return _INJECTED in cell.metadata.get("tags", [])


def _as_injected(cell: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """papermill's cell with the given parameters, with nothing else that it may have brought."""
    clean = nbformat.v4.new_code_cell(cell.source, id=_INJECTED)
    hidden = _HIDDEN in cell.metadata.get("tags", [])
    clean.metadata.tags = [_INJECTED, *([_HIDDEN] if hidden else [])]
    return clean


def _without_injected(executed: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return nbformat.from_dict(
        {**executed, "cells": [cell for cell in executed.cells if not _is_injected(cell)]}
    )


def committed(executed: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The form in which a chapter is committed: outputs of `fact` cells, and nothing of this run or
    machine.
    """
    notebook = copy.deepcopy(executed)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    ours = {key: value for key, value in notebook.metadata.items() if key == "pgrerun"}
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": kernel, "language_info": {"name": "python"}} | ours
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.metadata = {
            key: value
            for key, value in cell.metadata.items()
            if key in ("tags", "mystnb") and value
        }
        cell.setdefault("id", f"cell-{number:02d}")
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.get("tags", [])
        if "fact" not in tags:
            if cell.outputs and "nbval-ignore-output" not in tags:
                raise BookError(
                    f"The cell that begins {cell.source.splitlines()[0]!r} has an output but no tag"
                    " that says what becomes of it: `fact` if it is the same on every machine,"
                    " else `nbval-ignore-output`."
                )
            cell.outputs = []
        for output in cell.outputs:
            output.pop("execution_count", None) if output.output_type == "display_data" else None
            if "metadata" in output:
                output.metadata = {}
    return notebook


def _write(notebook: nbformat.NotebookNode, path: Path) -> None:
    text = nbformat.writes(notebook)
    beside = path.with_name(path.name + ".new")
    beside.write_text(text if text.endswith("\n") else text + "\n", "utf-8")
    os.replace(beside, path)


def copy_folder(record: Path, target: Path) -> None:
    """Put a record's copy in the place of an older one; none where there is no record.

    Only what a record consists of, without the page that it stands beside, and never a file that
    a link leads to: it may be any file of this machine.
    """
    from pgrerun.record import runs

    shutil.rmtree(target, ignore_errors=True)
    for name in (runs.ENVIRONMENT, runs.OBSERVATIONS, runs.VERDICTS):
        if (record / name).is_file() and not (record / name).is_symlink():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(record / name, target / name)


def _complaints(log: str) -> str:
    """The lines of a Sphinx log that say what is wrong; its last lines if none does."""
    lines = log.splitlines()
    told = [line for line in lines if "WARNING:" in line or "ERROR:" in line or "Error:" in line]
    return "\n".join(dict.fromkeys(told)) or "\n".join(lines[-15:])
