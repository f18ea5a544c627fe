"""A toy book in a temporary folder: what is rerun and why, what fails, what Ctrl-C leaves."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import papermill.engines
import psutil
import pytest
from servers import until

from pgrerun import parameters
from pgrerun.errors import BookError, ParameterError, RecordError, RerunError
from pgrerun.record import runs
from pgrerun.site import book as book_module
from pgrerun.site.execution import ChapterFailed

CI = {"server": "", "programs": "", "seed": 1990, "pairs": 7}
TOML = """
title = "A toy"
document = "hot-2007"
place = 1
about = "A toy."
minutes = { ci = 1, laptop = 2, overnight = 3 }
[parameters.pairs]
profiles = { ci = 7, laptop = 15, overnight = 41 }
"""


def notebook(*sources, tags=()):
    """A chapter: prose, the parameters cell, then `sources`; `tags` go to the last one."""
    first = "\n".join(f"{name} = {value!r}" for name, value in {"profile": "ci", **CI}.items())
    cells = [
        nbformat.v4.new_markdown_cell("# A toy", id="title"),
        nbformat.v4.new_code_cell(first, id="parameters", metadata={"tags": ["parameters"]}),
        *(nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)),
    ]
    cells[-1].metadata.tags = [*cells[-1].metadata.get("tags", []), *tags]
    kernel = {"name": "python3", "language": "python", "display_name": "Python 3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def checkout(root: Path, toy) -> book_module.Book:
    """A small checkout with one chapter and a package of its own to depend on."""
    (root / "data/runs/published/toy").mkdir(parents=True)
    files = {
        "requirements.txt": "numpy==2.4.6\n",
        "_config.yml": (
            "title: Toy\nonly_build_toc_files: true\nexecute: {execute_notebooks: 'off'}\n"
        ),
        "book/_toc.yml": "format: jb-book\nroot: index\nchapters:\n- file: results/toy\n",
        "book/index.md": "# A book\n\nHello.\n",
        "data/claims.csv": "id,chapter,claim\na-1,toy,It is fast.\nb-1,other,It is slow.\n",
        "data/printed/figure.csv": "x,y\n1,2\n",
        "pgrerun/__init__.py": '"""The library."""\nfrom pgrerun.verbs import measure\n',
        "pgrerun/verbs.py": (
            'def measure():\n    """Words."""\n    from .rooms import table\n    return table.N\n'
        ),
        "pgrerun/rooms/__init__.py": "",
        "pgrerun/rooms/table.py": "N = 1\n",
        "pgrerun/rooms/script.sql": "SELECT 1;\n",
        "pgrerun/cli.py": "import pgrerun.site.gates\n",
        "pgrerun/site/gates.py": "LEAST = 1\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    book = book_module.Book(root)
    book.notebooks.mkdir()
    nbformat.write(toy, book.notebooks / "toy.ipynb")
    return book


@pytest.fixture
def gates(monkeypatch):
    """Gates that let everything through; the names of those that were asked."""
    asked = []
    for name in ("chapter", "prose", "site", "epub"):
        gate = f"pgrerun.site.gates.check_{name}"
        monkeypatch.setattr(gate, lambda *words, name=name: asked.append(name))
    return asked


@pytest.fixture(autouse=True)
def toy_chapter(monkeypatch, tmp_path_factory):
    monkeypatch.setattr(parameters, "elsewhere", {})
    folder = tmp_path_factory.mktemp("toy")
    (folder / "chapter.toml").write_text(TOML)
    parameters.at("toy", folder)
    monkeypatch.setattr(book_module, "server_version", lambda parameters: "18.6")


@pytest.fixture
def book(tmp_path, gates):
    return checkout(tmp_path, notebook("import pgrerun", "print(pairs, profile)"))


def ran(book, given=None):
    book.run(book.state("toy", given))
    return nbformat.read(book.result("toy"), as_version=4)


def written(book, *sources, **more):
    nbformat.write(notebook(*sources, **more), book.notebook("toy"))


def retitled(book):
    source = nbformat.read(book.notebook("toy"), as_version=4)
    source.cells[0].source = "# Another title"
    nbformat.write(source, book.notebook("toy"))


def refuse(*words):
    raise BookError("A chart is missing.")


def left_running(book):
    return list((book.build / "running").iterdir())


def stamped(book, given=None, seconds=12.0):
    """As if the toy had just been run, without the seconds that costs."""
    book.results.mkdir(exist_ok=True)
    book.result("toy").write_text((book.notebooks / "toy.ipynb").read_text())
    book.write_stamp(book.state("toy", given or {}), seconds)
    assert book.state("toy").reasons == []
    return book


# ---- a run


def test_a_run_is_executed_gated_and_stamped(book, gates):
    executed = ran(book, {"pairs": 9})
    assert executed.cells[-1].outputs[0].text == "9 ci\n"
    assert executed.metadata.papermill.parameters.pairs == 9
    assert gates == ["chapter"]
    state = book.state("toy")
    assert (state.reasons, state.given, left_running(book)) == ([], {"pairs": 9}, [])
    assert 0 < state.seconds != 60  # measured, no longer the estimate


def test_out_and_name_leave_the_book_alone(book, tmp_path):
    written(book, f"import os; print(os.environ[{book_module.RUN_NAME!r}])")
    out = tmp_path / "mine.ipynb"
    assert book.run(book.state("toy", {}), out=out, name="mine") == out
    assert nbformat.read(out, as_version=4).cells[-1].outputs[0].text == "mine\n"
    assert not book.results.exists() and book_module.RUN_NAME not in os.environ


@pytest.mark.parametrize(
    ("out", "told"), [("missing/mine.ipynb", "no folder"), ("", "it is a folder")]
)
def test_out_needs_a_folder_and_the_checkout_no_other_run_before_anything_runs(
    book, tmp_path, out, told
):
    with pytest.raises(ParameterError, match=told):
        book.run(book.state("toy"), out=tmp_path / out)
    with book.alone(), pytest.raises(BookError, match="Another run"):
        book.run(book.state("toy"))


def test_a_page_that_cannot_be_delivered_is_named(book, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    taken = f"Path({str(folder)!r}).rmdir()\nPath({str(folder)!r}).touch()"
    written(book, f"from pathlib import Path\n{taken}")
    with pytest.raises(BookError, match="ran to its end and its record is in .* It is in") as told:
        book.run(book.state("toy"), out=folder / "toy.ipynb")
    assert Path(str(told.value).split("It is in ")[1].rstrip(".")).is_file()


# ---- what makes it stale


USED = (
    'def measure():\n    "Others."\n    # why\n    from .rooms import table\n    return table.N\n'
)


@pytest.mark.parametrize(
    "path, text, reason",
    [
        # imported inside a function
        ("pgrerun/rooms/table.py", "N = 2\n", "library rooms/table.py changed"),
        ("data/printed/figure.csv", "x,y\n1,3\n", "data figure.csv changed"),
        ("data/printed/more.csv", "x\n", "data more.csv is new"),
        ("data/runs/published/toy/environment.json", "{}", "published run environment.json is new"),
        ("requirements.txt", "numpy==2.4.7\n", "requirements.txt changed"),
        ("data/claims.csv", "id,chapter,claim\na-1,toy,It was fast.\n", "claim a-1 changed"),
        # what a chapter does not use leaves it alone
        ("pgrerun/cli.py", "import pgrerun.verbs\n", None),
        ("pgrerun/site/gates.py", "LEAST = 2\n", None),
        ("pgrerun/verbs.py", USED, None),
        (
            "data/claims.csv",
            "id,chapter,claim\na-1,toy,It is fast.\nb-1,other,It was slow.\n",
            None,
        ),
        ("book/index.md", "# Another\n", None),
    ],
)
def test_says_what_changed_of_what_a_chapter_uses(book, path, text, reason):
    stamped(book)
    (book.root / path).write_text(text)
    assert book.state("toy").reasons == ([reason] if reason else [])


def test_parameters_and_server_are_told_with_their_values(book, monkeypatch):
    stamped(book)
    assert book.state("toy", {"pairs": 9}).reasons == ["parameter pairs 7 → 9"]
    monkeypatch.setattr(book_module, "server_version", lambda parameters: "18.7")
    assert book.state("toy").reasons == ["PostgreSQL 18.6 → 18.7"]


def test_the_last_profile_stands_until_another_is_asked_for(book):
    stamped(book, {"profile": "laptop"}, seconds=100.0)
    assert book.state("toy").parameters.pairs == 15
    asked = book.state("toy", {"profile": "ci"})
    assert "parameter profile laptop → ci" in asked.reasons
    assert asked.seconds == 60  # an estimate: ci was never run here


def test_a_parameter_that_is_gone_does_not_stand_in_the_way(book):
    stamp = stamped(book, {"pairs": 9}).result("toy").with_suffix(".json")
    stamp.write_text(stamp.read_text().replace('"pairs": 9', '"pares": 9'))
    assert book.state("toy").reasons == ["parameter pairs 9 → 7"]


def test_a_result_changed_behind_our_back_is_stale(book):
    stamped(book)
    book.result("toy").write_text("{}")
    assert "changed by something else" in book.state("toy").reasons[0]
    book.result("toy").unlink()
    assert "missing" in book.state("toy").reasons[0]


def test_prose_is_retold_around_the_same_outputs(recording):
    before = ran(recording, {"pairs": 9})
    retitled(recording)
    state = recording.state("toy")
    assert state.only_prose
    recording.retell(state)
    after = nbformat.read(recording.result("toy"), as_version=4)
    assert after.cells[0].source == "# Another title" and recording.state("toy").reasons == []
    kept = [[(cell.id, cell.get("outputs")) for cell in page.cells] for page in (before, after)]
    assert kept[0] == kept[1]


# ---- what fails


def test_a_chapter_s_own_error_keeps_its_words_and_status(book):
    written(book, "from pgrerun.errors import *\nraise ParameterError('pairs must be odd.')")
    done = subprocess.run(command(book, "run", "toy"), capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "pairs must be odd." in done.stderr
    assert (book.build / "failed" / "toy.ipynb").exists() and not book.result("toy").exists()


def test_any_other_exception_is_a_bug_with_a_traceback_and_says_how_to_go_on(recording):
    append = "run.append('e', {'variant': 'one', 'seconds': 1.0})"
    failing = RECORDING.replace("run.add", f"{append}\n        1 / 0\n        run.add")
    written(stamped(recording), failing)
    with pytest.raises(ChapterFailed, match="keeps 1 observation") as caught:
        recording.run(recording.state("toy"), name="mine")
    assert "ZeroDivisionError" in caught.value.traceback
    failed = recording.build / "failed" / "toy.ipynb"
    partial = recording.data / "runs" / "mine" / "toy.partial"
    assert str(failed) in str(caught.value) and failed.exists()
    assert f"To start anew, delete {partial}" in str(caught.value) and partial.is_dir()
    assert recording.result("toy").exists()  # the last good one stays,
    assert "code changed" in recording.state("toy").reasons  # and is known to be old


def test_a_kernel_that_dies_is_told_with_its_last_words(book):
    dying = "import os, sys\nos.write(2, b'out of memory\\n')\nos.kill(os.getpid(), 9)"
    written(book, dying)
    with pytest.raises(BookError, match="died in the middle.*out of memory") as died:
        book.run(book.state("toy"))
    assert "goes on from there" not in str(died.value)  # as nothing is kept


def test_a_full_disk_ends_the_kernel_and_keeps_the_last_result(book, monkeypatch):
    stamped(book)
    before = book.result("toy").read_bytes()
    written(book, "1")
    write = papermill.engines.write_ipynb

    def full(written, path):
        if written.cells[-1].execution_count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(written, path)

    monkeypatch.setattr(papermill.engines, "write_ipynb", full)
    with pytest.raises(OSError, match="No space left"):
        book.run(book.state("toy"))
    assert (book.result("toy").read_bytes(), left_running(book)) == (before, [])
    mine = psutil.Process().children()
    assert not [child for child in mine if "ipykernel" in " ".join(child.cmdline())]


def test_what_the_gate_refuses_is_not_published(book, monkeypatch):
    monkeypatch.setattr("pgrerun.site.gates.check_chapter", refuse)
    with pytest.raises(BookError, match="A chart is missing"):
        book.run(book.state("toy"))
    assert not book.result("toy").exists() and book.state("toy").reasons == ["never run"]


DRIVER = """
import sys
from pathlib import Path
from pgrerun.site import book, gates
from pgrerun import cli, parameters
parameters.at("toy", Path({folder!r}))
book.server_version = lambda parameters: "18.6"
gates.check_chapter = lambda *words: None
root = Path(sys.argv.pop(1))
cli.Book = lambda: book.Book(root)
cli.main()
"""


def command(book, *words):
    driver = DRIVER.format(folder=str(parameters.folder("toy")))
    return [sys.executable, "-c", driver, str(book.root), *words]


def started(book):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command(book, "run", "toy"), **pipes)


# Stands for a server: a child process and a directory that the kernel removes at its end.
SERVER = """
import atexit, os, shutil, subprocess, tempfile, time
folder = tempfile.mkdtemp(dir={folder!r})
child = subprocess.Popen(["sleep", "1000"], cwd=folder)
def remove():
    time.sleep(1)
    child.terminate(); child.wait(); shutil.rmtree(folder)
atexit.register(remove)
open({marker!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
"""


@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]], ids=["term", "int-int"]
)
def test_a_stopped_run_leaves_nothing_behind(book, tmp_path, signals):
    marker, folder = tmp_path / "marker", tmp_path / "clusters"
    folder.mkdir()
    written(book, SERVER.format(folder=str(folder), marker=str(marker)), "time.sleep(1000)")
    running = started(book)
    until(lambda: marker.exists() and marker.read_text(), lambda: running.poll() is None)
    time.sleep(0.5)
    for number in signals:
        running.send_signal(number)
        time.sleep(0.3)
    _, words = running.communicate(timeout=300)
    assert running.returncode == 130 and "Traceback" not in words, words
    assert "Task" not in words and "goes on from there" in words, words
    pids = marker.read_text().split()
    assert pids and not any(psutil.pid_exists(int(pid)) for pid in pids)
    assert [*folder.iterdir(), *left_running(book)] == []


def test_a_run_that_is_stopped_while_its_kernel_starts_says_no_more_than_that(book):
    running = started(book)
    running.stdout.readline()  # it is running
    time.sleep(0.5)
    children = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGINT)
    _, words = running.communicate(timeout=300)
    assert running.returncode in (0, 130) and "Traceback" not in words, words
    assert psutil.wait_procs(children, timeout=120)[1] == []


# ---- the site


def test_the_site_is_built_once_and_its_changes_are_named(book, gates):
    by_which_pages_are_made = book.root / "pgrerun" / "notebook.py"
    by_which_pages_are_made.write_text("ROWS = 6\n")
    stamped(book)
    assert book.site_reasons() == ["never built"]
    assert book.build_site() == book.site / "index.html"
    assert gates == ["prose", "prose", "site"]
    assert (book.site / "results" / "toy.html").exists()
    assert book.site_reasons() == []
    book.write_stamp(book.state("toy", {}), 1.0)
    assert book.site_reasons() == []  # a stamp is no page
    (book.source / "index.md").write_text("# A book\n\nGood day.\n")
    assert book.site_reasons() == ["page index.md changed"]
    book.result("toy").write_text(book.result("toy").read_text().replace("A toy", "A top"))
    book.printed.mkdir()
    (book.printed / "postgres-rerun.epub").write_text("")
    by_which_pages_are_made.write_text("ROWS = 5\n")
    changed = ["chapter toy changed", "library notebook.py changed", "page index.md changed"]
    changed += ["postgres-rerun.epub is new"]
    assert sorted(book.site_reasons()) == changed
    (book.site / "index.html").unlink()
    assert book.site_reasons() == ["never built"]


def test_a_warning_stops_the_site_and_is_shown(book):
    stamped(book)
    (book.source / "index.md").write_text("# A book\n\n{numref}`nowhere`\n")
    with pytest.raises(BookError, match="nowhere"):
        book.build_site()
    assert book.site_reasons() == ["never built"]


@pytest.fixture
def unbuilt(monkeypatch):
    """Sites of one empty page, without the seconds that Sphinx takes."""

    def sphinx(book, what, source, *options):
        book.site.mkdir(parents=True, exist_ok=True)
        (book.site / "index.html").touch()

    monkeypatch.setattr(book_module.Book, "sphinx", sphinx)


def test_pages_that_a_gate_refuses_are_not_left_as_the_site(book, monkeypatch, unbuilt):
    monkeypatch.setattr("pgrerun.site.gates.check_site", refuse)
    for _ in range(2):
        with pytest.raises(BookError, match=r"is missing\. The pages are in .*refused\."):
            stamped(book).build_site()
        assert not book.site.exists() and (book.build / "refused" / "index.html").exists()
    assert book.site_reasons() == ["never built"]


# ---- the printed book (built for real in tests/site)


def test_what_the_site_shows_is_printed(book):
    assert book.shown_run() == "published"  # there is nothing else
    stamped(book)
    assert book.shown_run() == ""
    book.build.mkdir(exist_ok=True)
    (book.build / "site.json").write_text('{"run": "mine"}')
    assert book.shown_run() == "mine"


# ---- pages from records

EVIL = "<script>alert(1)</script>"
PAGE = "page.ipynb"  # which records of the form before have
RECORDING = """
import os
from pgrerun.record import runs
name = os.environ.get("PGRERUN_RUN") or profile
if record := os.environ.get("PGRERUN_RECORD"):
    runs.load(record)
else:
    with runs.Run.open(name, "toy", key="k", environment={"parameters": {"pairs": pairs}}) as run:
        run.add_verdict({"claim": "a-1", "verdict": "holds"})
"""


@pytest.fixture
def recording(book, monkeypatch):
    """The toy with a run record, kept in its own checkout."""
    monkeypatch.setenv("PGRERUN_RUNS", str(book.data / "runs"))
    monkeypatch.setattr(runs, "CHECKOUT", book.data / "runs")
    written(book, RECORDING, "print(6 * 7)", tags=["nbval-ignore-output"])
    return book


def files(record: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in record.iterdir()}


def test_a_run_leaves_its_record_beside_its_page(recording, tmp_path):
    recording.run(recording.state("toy"), name="mine")
    beside = files(recording.record("toy"))
    assert beside == files(recording.data / "runs" / "mine" / "toy") and runs.VERDICTS in beside
    recording.run(recording.state("toy", {"pairs": 9}), out=tmp_path / "other.ipynb")
    assert (recording.data / "runs" / "ci" / "toy").exists()
    assert runs.load(recording.record("toy")).name == "mine"  # the book's page is still that run's


@pytest.mark.parametrize(
    ("server", "keep"),
    [
        ("postgresql://me@db.example/bench", False),
        ("host='db.example'", True),
    ],
)
def test_a_page_says_where_somebodys_server_is_only_if_asked_to(recording, server, keep):
    written(recording, RECORDING, "print('at', server)", tags=["nbval-ignore-output"])
    page = recording.run(recording.state("toy", {"server": server}), keep_address=keep)
    assert ("db.example" in page.read_text()) == keep
    assert nbformat.read(page, as_version=4).cells[-1].outputs[0].text.startswith("at ")
    assert recording.state("toy").reasons == []


def recorded(book, name):
    """As if the toy had been run under this name, without the seconds that costs."""
    given = {"parameters": {"pairs": 9}}
    with runs.Run.open(name, "toy", key="k", environment=given) as run:
        run.add_verdict({"claim": "a-1", "verdict": "holds", "note": EVIL})


def test_a_chapter_without_a_record_leaves_none_of_an_older_one(book, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path / "runs"))
    book.record("toy").mkdir(parents=True)
    ran(book)
    assert not book.record("toy").exists()


def shown(book, run):
    page = nbformat.read(book.lay_out(run) / "results" / "toy.ipynb", as_version=4)
    return page, "\n".join(str(cell.get("outputs", "")) + cell.source for cell in page.cells)


def test_the_site_shows_a_recorded_run_with_the_prose_of_today_and_all_code_folded(recording):
    recorded(recording, "mine")
    retitled(recording)
    page, text = shown(recording, "mine")
    assert page.cells[0].source == "# Another title" and "42" in text
    assert runs.load(recording.build / "source" / "book" / "results" / "toy").name == "mine"
    assert not recording.results.exists()  # what was executed here is left alone
    code = [set(cell.metadata.get("tags", [])) for cell in page.cells if cell.cell_type == "code"]
    assert all({"hide-input", "remove-input"} & tags for tags in code), code


# ---- records that somebody has made


def forged(book, place: Path) -> Path:
    """A record as a stranger may send it, with a page, files and words of their choice."""
    recorded(book, "theirs")
    record = shutil.move(book.data / "runs" / "theirs", place) / "toy"
    page = nbformat.read(book.notebook("toy"), as_version=4)
    page.cells[0].source = f"# A toy\n\n```{{raw}} html\n:file: /etc/hostname\n```\n{EVIL}"
    page.metadata.mystnb = {"execution_mode": "force"}
    nbformat.write(page, record / PAGE)
    return record


@pytest.mark.parametrize("where", ["elsewhere", "data/runs/mine"])
def test_nothing_that_a_stranger_wrote_is_markup_on_a_page(recording, where):
    """Wherever the record lies: an archive may have been unpacked among our own runs."""
    record = forged(recording, recording.root / where)
    page, text = shown(recording, "mine" if where.endswith("mine") else str(record.parent))
    assert not [word for word in ("<script", "{raw}", "hostname") if word in text]
    assert "mystnb" not in page.metadata and "pairs = 9" in text and "42" in text
    copied = files(recording.build / "source" / "book" / "results" / "toy")
    assert set(copied) == {runs.ENVIRONMENT, runs.VERDICTS}


@pytest.mark.parametrize("name", [runs.VERDICTS, "more"])
def test_a_link_in_a_record_is_not_followed(recording, tmp_path, name):
    record = forged(recording, recording.root / "elsewhere")
    secret = tmp_path / "secret"
    secret.write_text("a private key")
    (record / name).unlink(missing_ok=True)
    (record / name).symlink_to(secret)
    with pytest.raises(RecordError, match=name):
        shown(recording, str(record.parent))
    book_module.copy_folder(record, tmp_path / "copied")
    assert name not in files(tmp_path / "copied")


def test_a_chapter_that_the_run_lacks_is_the_published_one_and_else_says_so(recording):
    recorded(recording, "published")
    mine, published = (recording.data / "runs" / name for name in ("mine", "published"))
    mine.mkdir()
    with pytest.raises(RerunError, match="no run record 'mine'"):
        recording.lay_out("mine")
    shutil.copytree(published / "toy", mine / "other")
    assert "42" in shown(recording, "mine")[1]
    shutil.rmtree(published / "toy")
    for run in ("mine", "published"):
        assert "no run of this chapter" in shown(recording, run)[1]


def test_a_site_from_a_run_is_another_site(recording, unbuilt):
    recorded(recording, "published")
    stamped(recording).build_site("published")
    assert recording.site_reasons("published") == []
    assert "run is gone" in recording.site_reasons()
    assert "run changed" in recording.site_reasons("mine")


# ---- cleaning


def test_clean_removes_only_what_can_be_built_again(book):
    (stamped(book).build / "html").mkdir(parents=True)
    mine, published = book.data / "runs" / "ci" / "toy", book.data / "runs" / "published" / "toy"
    another = book.data / "runs" / "published-2"  # is committed, too
    for folder in (mine, another):
        folder.mkdir(parents=True)
    assert set(book.clean()) == {book.results, book.build} and book.clean() == []
    kept = [published, another, book.notebook("toy")]
    assert all(path.exists() for path in [mine, *kept])
    assert book.clean(runs=True) == [book.data / "runs" / "ci"]
    assert all(path.exists() for path in kept)


# ---- the committed form


def test_only_facts_are_committed(book):
    source = notebook("import os", "7 * 6", tags=["fact"])
    timing = {"id": "t", "metadata": {"tags": ["nbval-ignore-output"]}}
    source.cells.append(nbformat.v4.new_code_cell("import time; time.time()", **timing))
    nbformat.write(source, book.notebook("toy"))
    book.refresh("toy")
    kept = nbformat.read(book.notebook("toy"), as_version=4)
    executed = [(cell.id, cell.get("execution_count")) for cell in kept.cells]
    assert executed == [("title", None), ("parameters", 1), ("c0", 2), ("c1", 3), ("t", 4)]
    assert kept.cells[3].outputs[0].data["text/plain"] == "42" and kept.cells[4].outputs == []
    assert set(kept.metadata) == {"kernelspec", "language_info"}
    first = book.notebook("toy").read_bytes()
    book.refresh("toy")
    assert book.notebook("toy").read_bytes() == first and b"papermill" not in first


def test_an_output_without_a_tag_is_refused():
    executed = notebook("7 * 6")
    executed.cells[-1].outputs = [nbformat.v4.new_output("stream", text="42\n")]
    with pytest.raises(BookError, match="'7 \\* 6'.*nbval-ignore-output"):
        book_module.committed(executed)
