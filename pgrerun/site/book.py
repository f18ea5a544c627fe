"""The book: executed chapters in book/results and the site built around them.

Nothing is rerun or rebuilt unless something it is made from has changed, and the
reason is said (`inputs.py` finds it, `execution.py` runs a notebook, `gates.py`
refuses what must not be published). Beside each executed chapter lies a stamp, a
JSON file with what it was made from, what was asked for and how long it took, and a
copy of its run record, from which the scoreboard is made. The page of any other record is
the chapter's notebook executed against it (`Page`).
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from pgrerun import forking
from pgrerun.errors import BookError, ParameterError, RerunError
from pgrerun.lab import university_ingres
from pgrerun.lab.server import passwords
from pgrerun.lab.server.private import PrivateDirectory, base_directory, sweep
from pgrerun.parameters import (
    ChapterParameters,
    addresses,
    chapter_parameters,
    chapters,
    folder,
    info,
    modules,
    profile_values,
    require_writable,
    unknown,
)
from pgrerun.progress import track
from pgrerun.site import inputs

if TYPE_CHECKING:
    from pgrerun.record.gather import Gathered

ROOT = Path(__file__).resolve().parents[2]
RUN_NAME = (  # the kernel finds the name of the run record here, where the reader gave one
    "PGRERUN_RUN"
)

PUBLISHED = "published"  # as `runs.PUBLISHED`, whose module takes long to import

_INJECTED = "injected-parameters"
_ADDRESSES = {"spark", "storage"}
_HIDDEN = "remove-input"  # jupyter-book's tags
_FOLDED = "hide-input"
_FOLDING = {_FOLDED, "hide-output"}
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
class Page:
    """The page of a chapter's record: its notebook and parameters, and where it is kept.

    The notebook is executed against the record: no server, nothing measured. What a record says is
    data, whoever made it: it fills our notebook and nothing else. The page is kept until the
    record, the notebook or the library changes. Of plain values, so that another process can be
    told to make it.
    """

    chapter: str
    source: str
    record: str
    kept: str
    given: dict[str, Any]


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
        # what `pgrerun gather` found last, for the page about all runs
        self.gathered = root / "_build" / "gathered.json"

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
            reasons = ["never run"]
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
    ) -> Path:
        """Execute a chapter and return the executed notebook's path.

        It lands in book/results with its stamp, or only at `out`. What fails, is
        stopped, or doesn't pass the gate replaces nothing; a failed copy stays
        under _build/failed, where it can't be published. Where somebody's server is stands in it
        and in its record only if `keep_address` says so, or the environment (passwords.py).
        """
        from pgrerun.record import runs
        from pgrerun.site import gates
        from pgrerun.site.execution import execute

        chapter = state.chapter
        run = name or os.environ.get(RUN_NAME) or state.parameters.profile
        if out is not None:
            require_writable(out, "The executed notebook")
        running = self.build / "running" / f"{chapter}.ipynb"
        environment = {RUN_NAME: name} if name else {}
        keep_address = keep_address or passwords.keeps_address()
        environment |= {passwords.KEEP_ADDRESS: "1"} if keep_address else {}
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
                )
                seconds = time.monotonic() - started
                for address in () if keep_address else addresses(state.parameters).values():
                    executed = _without_address(executed, address)
                write_notebook(presentable(executed), running)
                gates.check_chapter(running)
            except RerunError as error:
                error = self._kept(running, error)
                if stopped := self.stopped(chapter, run):
                    error.args = (f"{error} {stopped[0]}",)
                raise error from None
            except BaseException:
                running.unlink(missing_ok=True)
                running.with_suffix(".log").unlink(missing_ok=True)
                raise
            target, record = out or self.result(chapter), runs.root() / run / chapter
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

    def stopped(self, chapter: str, run: str = "*") -> list[str]:
        """What unfinished runs of a chapter keep, of one run or of all, each in a paragraph."""
        from pgrerun.record import runs

        return [
            f"The run {journal.parent.parent.name} keeps {kept} observation{'s' * (kept != 1)}: the"
            f" same command goes on from there. To start anew, delete {journal.parent}."
            for journal in sorted(runs.root().glob(f"{run}/{chapter}.partial/{runs.JOURNAL}"))
            if (kept := journal.read_bytes().count(b'"row": {'))
        ]

    def retell(self, state: State) -> None:
        """Put changed prose around the outputs of the last run."""
        page = self._page(state.chapter, self.record(state.chapter))
        self._make_pages([page])
        # in place at once: of half a notebook the stamp says that something else has changed it
        write_notebook(nbformat.read(page.kept, as_version=4), self.result(state.chapter))
        self.write_stamp(state, None)

    def refresh(self, chapter: str) -> Path:
        """Run the committed notebook as it is and write its facts back into it.

        Only outputs of cells tagged `fact` are kept: nbval compares those. Charts and
        timings would differ on every machine. It runs without what this account has registered or
        fetched, which `make test` hides as well: lai-068 tells more where there is a Postgres95.
        """
        from pgrerun.site.execution import execute

        source = self.notebook(chapter)
        running = self.build / "running" / f"{chapter}.ipynb"
        cache = str((self.build / "cache").absolute())
        hidden = {"XDG_CACHE_HOME": cache, university_ingres.VARIABLE: ""}
        with self.alone() as scratch:
            try:
                execute(source, running, {}, title=chapter, scratch=scratch, environment=hidden)
                # papermill adds to the notebook's metadata; the committed one keeps its own.
                executed = nbformat.read(running, as_version=4)
                write_notebook(committed(executed), source)
            except RerunError as error:
                raise self._kept(running, error) from None
            finally:
                running.unlink(missing_ok=True)
        return source

    def _inputs(self, source: Path, chapter: str, parameters: ChapterParameters) -> dict[str, Any]:
        notebook = nbformat.read(source, as_version=4)
        code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        # whose experiments the notebook calls by their names
        code += [f"import {name}" for name in modules(chapter)]
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
        return _kept_json(self.result(chapter).with_suffix(".json"))

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

    def gather(self, sources: Sequence[str]) -> "Gathered":
        """Read the records below the sources; nothing is written (see `pgrerun/record/gather.py`).

        Copies of what lies in archives go also if this process is killed: by the next run.
        """
        from pgrerun.record import gather

        sweep()
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
        before = _kept_json(self.build / "site.json")
        if not before or not (self.site / "index.html").exists():
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
        if built_from := _kept_json(self.build / "site.json"):
            return built_from.get("run", "")
        executed = all(self.result(chapter).exists() for chapter in self.chapters())
        return "" if executed else PUBLISHED

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
        shown = self._shown(run)
        for chapter in self.chapters():
            target = results / f"{chapter}.ipynb"
            if chapter in shown:
                page, record = shown[chapter]
                shutil.copy(page, target)
                copy_folder(record, results / chapter)
            elif run:
                source = nbformat.read(self.notebook(chapter), as_version=4)
                write_notebook(_told_not_run(source), target)
        return place / "book"

    def _shown(self, run: str) -> dict[str, tuple[Path, Path]]:
        """Page and record of each chapter that has one."""
        if not run:
            executed = [name for name in self.chapters() if self.result(name).exists()]
            return {name: (self.result(name), self.record(name)) for name in executed}
        recorded = {name: self._recorded(name, run) for name in self.chapters()}
        pages = [self._page(name, record) for name, record in recorded.items() if record]
        self._make_pages(pages)
        return {page.chapter: (Path(page.kept), Path(page.record)) for page in pages}

    def _recorded(self, chapter: str, run: str) -> Path | None:
        """The chapter's record in this run, or else in the published one."""
        from pgrerun.record import runs

        records = (runs.folder(name) / chapter for name in (run, PUBLISHED))
        return next((one for one in records if (one / runs.ENVIRONMENT).is_file()), None)

    def _make_pages(self, pages: Sequence[Page]) -> None:
        """Make the pages that aren't kept yet, in the place of older ones."""
        missing = [page for page in pages if not Path(page.kept).is_file()]
        for page in missing:
            kept = Path(page.kept)
            kept.parent.mkdir(parents=True, exist_ok=True)
            for old in kept.parent.glob(f"{page.chapter}-*.ipynb"):
                old.unlink()
        for chapter in track(make_pages(missing), "pages of chapters", len(missing)):
            if not sys.stderr.isatty():
                print(f"  {chapter}: its page is made", file=sys.stderr)

    def _page(self, chapter: str, record: Path) -> Page:
        """What makes the page of a record: it takes reading all of the record and of our code."""
        from pgrerun.record import runs

        shown = runs.load(record, None)
        known = profile_values(chapter, "ci").keys() - {"server", "programs"}
        given = {
            name: value
            for name, value in shown.environment["parameters"].items()
            if name in known and name not in _ADDRESSES
        }
        source = self.notebook(chapter)
        made_from = self._inputs(source, chapter, chapter_parameters(chapter, given))
        made_from |= inputs.files(record, "record")
        key = inputs.digest(json.dumps([made_from, str(record)], sort_keys=True, default=str))
        kept = self.build / "pages" / f"{chapter}-{key}.ipynb"
        return Page(
            chapter, str(source.resolve()), str(record.resolve()), str(kept.resolve()), given
        )

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
                    "from pgrerun.site import book, contents, gates",
                    # what makes a page of a record, with the chapters' charts and sentences
                    "import pgrerun.notebook",
                    *(f"import {name}" for chapter in self.chapters() for name in modules(chapter)),
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


def make_pages(pages: Sequence[Page]) -> Iterator[str]:
    """Make pages in another process (`pages.py`); their chapters, as each is made.

    What a notebook raised is raised here once the others are made: its own RerunError, or
    ChapterFailed.
    """
    if not pages:
        return
    failed = []
    try:
        for answer in forking.answers("pgrerun.site.pages", [asdict(page) for page in pages]):
            if "failed" in answer:
                failed.append(answer)
            else:
                yield answer["chapter"]
    except ChildProcessError as ended:
        raise BookError(f"The process that makes pages didn't come to its end: {ended}.") from None
    if failed:
        from pgrerun.site.execution import raised

        raise raised(**failed[0])


def _kept_json(path: Path) -> dict[str, Any]:
    """What a file of JSON holds; nothing of one that isn't there, or isn't whole."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def server_version(parameters: ChapterParameters) -> str:
    """The PostgreSQL version a run would use. A borrowed server is not asked: its address stands
    for it.
    """
    from pgrerun.lab.server import fetched

    if parameters.server:
        return parameters.server
    return fetched.chosen(parameters.programs).version


def presentable(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Make papermill's copy the same from run to run."""
    for cell in notebook.cells:
        if _is_injected(cell):
            cell.id = _INJECTED
    _show_what_was_given(notebook)
    _fold(notebook)
    # Paths of this machine are nobody's business.
    told = notebook.metadata.papermill
    for key in told.keys() & {"input_path", "output_path"}:
        told[key] = Path(told[key]).name
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
    """Fold on the page all code but cells in another language."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code" and not cell.source.startswith("%%") and _HIDDEN not in tags:
            cell.metadata.tags = [*(tag for tag in tags if tag not in _FOLDING), _FOLDED]


def _assigned(source: str) -> dict[str, object]:
    """The parameters that a cell sets, by name."""
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
    }


def _told_not_run(source: nbformat.NotebookNode) -> nbformat.NotebookNode:
    note = (
        ":::{note}\nThere is no run of this chapter behind these pages: charts and measured"
        " sentences are missing, and what stands under a cell is what comes out the same on every"
        " machine. [Rerun it](../rerun.md) to see the rest.\n:::"
    )
    told = copy.deepcopy(source)
    told.cells.insert(1, nbformat.v4.new_markdown_cell(note, id="not-run"))
    return told


def _is_injected(cell: nbformat.NotebookNode) -> bool:
    return _INJECTED in cell.metadata.get("tags", [])


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


def write_notebook(notebook: nbformat.NotebookNode, path: Path) -> None:
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
    tables = sorted(path.name for path in record.glob("*.parquet"))
    for name in (runs.ENVIRONMENT, runs.VERDICTS, *tables):
        if (record / name).is_file() and not (record / name).is_symlink():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(record / name, target / name)


def _complaints(log: str) -> str:
    """The lines of a Sphinx log that say what is wrong; its last lines if none does."""
    lines = log.splitlines()
    told = [line for line in lines if "WARNING:" in line or "ERROR:" in line or "Error:" in line]
    return "\n".join(dict.fromkeys(told)) or "\n".join(lines[-15:])
