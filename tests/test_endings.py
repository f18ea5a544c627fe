"""A chapter as its readers run it: refused parameters, somebody's server, a death, a resume."""

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import nbformat
import psutil
import psycopg
import pytest
from servers import as_root, until

from pgrerun import notebook, parameters
from pgrerun.errors import BookError, CannotMeasure, ParameterError, ServerError
from pgrerun.lab import university_ingres
from pgrerun.lab.disk import Disk
from pgrerun.lab.server import passwords, sweep
from pgrerun.lab.server.processes import await_end
from pgrerun.lab.testbed import Testbed, experiment
from pgrerun.record import claims, runs

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = "uuid_keys"
CLAIMS = ["uuidkeys-001", "uuidkeys-002"]
SMALL = {"pairs": 25, "rows": 20_000}  # some hundred milliseconds for each of fifty measurements
SMALL_TP1 = {
    "pairs": 5,
    "milliseconds": 100,
    "counted": 10,
    "cycles": 10,
    "simulated_transactions": 100,
}


def papermill(target: Path, **parameters) -> subprocess.CompletedProcess:
    given = [word for name, value in parameters.items() for word in ("-p", name, str(value))]
    command = [sys.executable, "-m", "papermill", "notebooks/tp1.ipynb", str(target), *given]
    return subprocess.run(
        [*command, "--no-progress-bar"], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def outputs(page: Path) -> list[nbformat.NotebookNode]:
    cells = nbformat.read(page, as_version=4).cells
    return [output for cell in cells for output in cell.get("outputs", [])]


# ---- before anything is measured


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cliens": 2}, "'cliens'.*did you mean clients?"),
        ({"server": "postgresql://me:s3cret@nowhere/db"}, "carries a password.*PGPASSFILE"),
    ],
)
def test_a_parameter_that_cannot_be_used_stops_before_any_server(
    given, told, tmp_path, records, base
):
    done = papermill(tmp_path / "mine.ipynb", **given)
    [error] = [one for one in outputs(tmp_path / "mine.ipynb") if one.output_type == "error"]
    assert done.returncode != 0 and error.ename == "ParameterError" and len(error.traceback) == 1
    assert re.search(told, error.evalue, re.DOTALL) and re.search(told, done.stderr, re.DOTALL)
    assert "s3cret" not in error.evalue + done.stderr.replace(json.dumps(given), "")
    assert not any(base.iterdir()) and not records.exists()


def test_a_server_that_cannot_be_borrowed_ends_the_command_with_one_paragraph(
    tmp_path, records, base
):
    url, out = "postgresql://me@127.0.0.1:1/theirs", str(tmp_path / "mine.ipynb")
    command = [sys.executable, "-m", "pgrerun.cli", "run", CHAPTER, "--server", url, "--out", out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "127.0.0.1" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert not any(base.iterdir()) and not records.exists()


# ---- somebody's server


def test_a_borrowed_server_is_left_as_found_and_its_limits_are_told(
    borrowed_url, tmp_path, records, monkeypatch
):
    def schemas():
        with psycopg.connect(borrowed_url) as connection:
            return connection.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall()

    # Without builds, whose measurements have to do with no server of anybody's.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.delenv(university_ingres.VARIABLE, raising=False)
    before = schemas()
    done = papermill(tmp_path / "mine.ipynb", server=borrowed_url, **SMALL_TP1)
    assert done.returncode == 0, done.stderr
    assert schemas() == before
    verdicts = {verdict["claim"]: verdict for verdict in runs.load("ci", "tp1").verdicts}
    assert verdicts.keys() == {one.id for one in claims.ledger().values() if one.chapter == "tp1"}
    aside = {id: one for id, one in verdicts.items() if one["verdict"] == "not tested here"}
    assert all(one["capability"] for one in aside.values())
    # What needs no other settings, no crash and no extension is measured on anybody's server.
    assert verdicts.keys() - aside.keys() == {"lai-048"}
    told = [
        one.get("data", {}).get("text/markdown", "") for one in outputs(tmp_path / "mine.ipynb")
    ]
    assert any("was set aside" in words for words in told)


@pytest.mark.parametrize("kept", [False, True])
def test_a_record_says_where_somebodys_server_is_only_if_the_reader_wants_it(
    kept, borrowed_url, records, monkeypatch
):
    monkeypatch.setenv(passwords.KEEP_ADDRESS, "1" if kept else "")
    url = borrowed_url.replace("postgres@/postgres", "who_asks@/where_it_is")
    with psycopg.connect(borrowed_url, autocommit=True) as owner:
        owner.execute("CREATE ROLE who_asks LOGIN")
        owner.execute("CREATE DATABASE where_it_is OWNER who_asks")
        try:
            words = everything_said_of(url, monkeypatch)
            words += "".join(path.read_text() for path in (records / "ci").glob("*/*.json"))
        finally:
            owner.execute("DROP DATABASE where_it_is")
            owner.execute("DROP ROLE who_asks")
    host = psycopg.conninfo.conninfo_to_dict(url)["host"]
    assert {word in words for word in (host, "who_asks", "where_it_is")} == {kept}
    assert (passwords.LEFT_OUT in words) is not kept


def everything_said_of(url: str, monkeypatch) -> str:
    """What a chapter on this server shows, which can do nothing there; its record is finished."""
    shown = []
    monkeypatch.setattr(notebook, "display", lambda said, metadata=None: shown.append(said))
    chapter = notebook.Notebook(CHAPTER, parameters.chapter_parameters(CHAPTER, {"server": url}))
    server = chapter.bed.server
    assert chapter.run("insert") is None, "this role may let nobody checkpoint"
    for capability in ("superuser", "restart", "contrib:nothing"):
        shown.append(pytest.raises(CannotMeasure, server.require, capability).value)
    shown.append(pytest.raises(CannotMeasure, chapter.bed.cluster).value)
    shown.append(chapter.verdicts(*CLAIMS)._repr_html_())
    shown += [chapter.provenance()._repr_html_(), chapter.summary()._repr_html_()]
    chapter.close()
    return "".join(map(str, shown))


# ---- a run that is killed

RUN = f"""
import sys
from pgrerun.errors import RerunError
from pgrerun.notebook import Notebook, commit
from pgrerun.parameters import chapter_parameters
chapter = Notebook("{CHAPTER}", chapter_parameters("{CHAPTER}", {SMALL}))
try:
    chapter.run("insert")
except RerunError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_status)
print("\\n".join(chapter.record.notes))
"""


def start_run() -> subprocess.Popen:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", RUN], cwd=ROOT, **pipes)


def kept(records: Path) -> int:
    """The rows in the journal of a run."""
    journal = records / "ci" / f"{CHAPTER}.partial" / runs.JOURNAL
    return journal.read_text().count('"row":') if journal.exists() else 0


def wait_for_rows(records: Path, least: int, process: subprocess.Popen) -> int:
    until(lambda: kept(records) >= least, lambda: process.poll() is None)
    return kept(records)


def postmaster_of(process: subprocess.Popen) -> psutil.Process:
    """The server that this run has started: a child of it, by its id."""
    found = []
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # one that has just ended
            found += [child] if child.name() == "postgres" else []
    [postmaster] = found
    return postmaster


def assert_resumed(records: Path) -> None:
    """A run after one that broke off measures what was missing, and says how much was there."""
    finished = kept(records)
    again = start_run()
    out, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert finished >= 1 and f"Resumed an interrupted run: {finished} observations" in out


def test_a_server_that_dies_ends_the_run_and_the_next_one_resumes(records, base):
    process = start_run()
    wait_for_rows(records, 3, process)
    postmaster_of(process).kill()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in said
    assert "server" in said and len(said.strip()) > 40
    assert not any(base.iterdir()), "a directory was left behind"
    assert_resumed(records)
    assert not any(base.iterdir())


@as_root
def test_a_disk_that_fills_up_ends_the_run_and_the_next_one_resumes(records, small_disk):
    disk = small_disk("500M")  # room for the log of a whole run
    process = start_run()
    wait_for_rows(records, 1, process)
    deadline = time.monotonic() + 300
    with (disk / "ballast").open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):  # the run takes space as well
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - (16 << 20))
        file.seek(0, os.SEEK_END)
        while process.poll() is None:  # also what the run frees meanwhile, or it could go on in it
            assert time.monotonic() < deadline
            try:
                file.write(bytes(1 << 16))
            except OSError:
                time.sleep(0.01)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in said
    assert "No space left on device" in said or "disk is full" in said
    assert list(disk.iterdir()) == [disk / "ballast"], "a directory was left behind"
    (disk / "ballast").unlink()
    assert_resumed(records)
    assert not any(disk.iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_keeps_what_it_has_and_leaves_no_server(number, records, base):
    process = start_run()
    finished = wait_for_rows(records, 1, process)
    server = postmaster_of(process)
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode != 0
    assert await_end([server], patience=120) == []
    if number == signal.SIGKILL:
        sweep()  # as the next run does
    assert not any(base.iterdir())
    assert kept(records) >= finished
    if number == signal.SIGINT:  # Ctrl-C, after which a reader starts again
        assert_resumed(records)


# ---- an experiment that ends before its rows are there


@pytest.fixture
def chapter(records, base, monkeypatch):
    """A function that opens a chapter: ours with another experiment in the place of its own, or
    another one as it is.
    """
    shown, opened = [], []
    monkeypatch.setattr(notebook, "display", lambda said, metadata=None: shown.append(said))

    def opened_with(insert, needs=(), name=CHAPTER, **given) -> notebook.Notebook:
        module = None
        if insert:
            insert.__name__ = "insert"
            module = ModuleType("toy")
            module.insert = experiment(units={"index_pages": "pages"}, needs=needs)(insert)
            given = {"rows": 1000} | given
        found = notebook.Notebook(name, parameters.chapter_parameters(name, given), module=module)
        found.shown = shown
        opened.append(found)
        return found

    yield opened_with
    for one in opened:
        one.leave()
        one.record.release()


def test_whatever_fails_when_the_server_dies_is_told_as_its_death(chapter):
    def killed_in_between(bed):
        for pid in bed.server.pids():
            os.kill(pid, signal.SIGKILL)
        raise KeyError("a count that is no longer there")
        yield

    with pytest.raises(ServerError, match="killed by signal 9"):
        chapter(killed_in_between).run("insert")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "load.sql"),
        psycopg.errors.DiskFull("could not extend file"),
    ],
)
def test_a_full_disk_is_told_with_the_way_out_whoever_finds_it_full(chapter, error):
    def fill(bed):
        assert bed.server.owned
        raise error
        yield

    told = "The disk is full: .*(load.sql|could not extend).*PGRERUN_TMPDIR.*is kept"
    with pytest.raises(ServerError, match=told):
        chapter(fill).run("insert")


def no_such_disk(bed):
    """An experiment that nothing here can show."""
    raise CannotMeasure("direct I/O", "this disk can't be asked")
    yield


def nothing(bed, *_):
    raise CannotMeasure("anything", "nothing can be measured here")
    yield


@pytest.mark.parametrize("name", parameters.chapters())
def test_each_claim_gets_its_word_where_every_experiment_is_set_aside(name, monkeypatch, records):
    """So it is on somebody's server whose role may do nothing, or whose release lacks it all. What
    this finds is a cell that needs rows, or a claim that is judged nowhere.
    """
    monkeypatch.setattr(Testbed, "measure", nothing)
    monkeypatch.setattr(notebook, "display", lambda *shown, **more: None)
    judged, changed, close = set(), [], notebook.Notebook.close

    def closed(chapter):
        judged.update(one.claim.id for one in chapter.evidence.judgements)
        about = {one: chapter.record.about(one) or {} for one in chapter.experiments}
        changed.extend(one for one in about if notebook.CHANGED in about[one])
        close(chapter)

    monkeypatch.setattr(notebook.Notebook, "close", closed)
    namespace = {"__name__": "__main__"}
    for cell in nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.startswith("%%"):
            exec(compile(cell.source, f"{name} {cell.id}", "exec"), namespace)
    assert judged == {one.id for one in claims.ledger().values() if one.chapter == name}
    assert changed == []  # what a cell shows is what the experiment does by itself


def modern(bed):
    raise psycopg.errors.UndefinedFunction("function to_regclass(unknown) does not exist")
    yield


def wrong_after_a_stop(bed):
    bed.server.stop()
    raise KeyError("a count that is no longer there")
    yield


@pytest.mark.parametrize(
    ("insert", "error"),
    [(wrong_after_a_stop, KeyError), (modern, psycopg.errors.UndefinedFunction)],
    ids=["a living server", "what every release can read"],
)
def test_an_error_of_our_own_is_blamed_on_nobody_else(chapter, insert, error):
    with pytest.raises(error):
        chapter(insert).run("insert")


def test_an_experiment_that_cannot_run_sets_its_claims_and_charts_aside(chapter):
    opened = chapter(no_such_disk)
    assert opened.run("insert") is None
    assert "this disk can't be asked" in opened.shown[-1]
    assert "not tested here" in repr(opened.verdicts(*CLAIMS))
    assert {j.capability for j in opened.evidence.judgements} == {"direct I/O"}
    opened.chart("uuid-keys")


def test_the_output_that_says_so_is_marked_for_the_gates(chapter, monkeypatch):
    opened, marks = chapter(no_such_disk), []
    monkeypatch.setattr(notebook, "display", lambda said, metadata=None: marks.append(metadata))
    opened.run("insert")
    assert marks == [{CannotMeasure.METADATA: "direct I/O"}]


def test_what_an_experiment_needs_of_the_server_is_asked_first(chapter):
    def unreached(bed):
        raise AssertionError("called on a server without the extension")
        yield

    opened = chapter(unreached, needs=["contrib:nosuchthing"])
    assert opened.run("insert") is None and "nosuchthing" in opened.shown[-1]


def test_what_a_release_cannot_read_is_set_aside_with_the_first_that_can(chapter):
    opened = chapter(modern)
    opened.bed.programs = replace(opened.bed.programs, version="9.3.5")
    assert opened.run("insert") is None and "PostgreSQL 9.4 or later" in opened.shown[-1]
    judged = opened.judge(CLAIMS[0])
    assert str(judged.verdict) == "not tested here" and "PostgreSQL 9.4" in judged.note


def weighed(bed, stones: int = 3):
    yield from bed.compare(lambda block, keys: {"index_pages": stones}, {"keys": ["one"]}, warmup=0)


def test_what_was_measured_with_another_argument_is_dropped_and_that_argument_told(chapter):
    def pages(**changed):
        return opened.run("insert", **changed).frame["index_pages"].tolist()

    opened = chapter(weighed, pairs=5)
    assert pages(stones=3) == [3] * 5 and notebook.CHANGED not in opened.record.about("insert")
    assert pages(stones=7) == [7] * 5
    assert opened.record.about("insert")[notebook.CHANGED] == {"stones": 7}
    opened.record.release()  # as a kill does
    opened = chapter(weighed, pairs=5)  # by the same argument nothing is measured again
    before = opened.record.rows("insert")
    assert pages(stones=7) == [7] * 5 and opened.record.rows("insert") == before
    assert pages() == [3] * 5 and len(opened.record.rows("insert")) == 5
    with pytest.raises(ParameterError, match="insert has no argument 'stone'.*stones"):
        pages(stone=3)


# ---- the end of a chapter


def test_a_chapter_with_claims_left_over_is_not_finished(chapter, records):
    opened = chapter(no_such_disk)
    with pytest.raises(BookError, match="left unjudged"):
        opened.close()
    assert not (records / "ci" / CHAPTER).exists()


def test_the_record_names_the_settings_that_differ_from_the_defaults(chapter):
    def insert(bed):
        bed.cluster(shared_buffers=16)
        yield {"keys": "random", "index_pages": 1}

    opened = chapter(insert)
    opened.run("insert")
    for claim in opened.evidence.unjudged():
        opened.evidence.set_aside(claim, CannotMeasure("a disk", "there is none"))
    opened.close()
    record = runs.load("ci", CHAPTER)
    told = record.environment["settings"]
    assert "every throwaway server" in told
    assert any("shared_buffers = 16" in words for words in told.values())
    assert record.about[CHAPTER]["insert"]["settings"] == "shared_buffers = 16"


@pytest.mark.parametrize(("tuples", "reached"), [(20_000, False), (1_000_000, True)])
def test_a_size_that_another_profile_reaches_is_told_at_the_verdict(chapter, tuples, reached):
    opened = chapter(None, name="explorations", tuples=tuples)
    note = opened.evidence.set_aside("expl-002", CannotMeasure("tuples = 1000000", "small")).note
    assert note.endswith("small") and reached == (note == "small")
    assert reached or re.match("not run in this profile: profiles? .*overnight reach", note)


def test_what_a_regime_asks_for_is_reached_by_a_profile_of_each_chapter_that_names_it():
    asked = {
        (claim.chapter, *wanted)
        for claim in claims.ledger().values()
        for name in claim.regimes
        if (wanted := claims.parameter(name))
    }
    assert asked and [one for one in asked if not parameters.reaching(*one)] == []


def test_what_a_slowed_disk_gave_is_kept_apart(chapter):
    slowed = Disk(flush=0.001)

    def insert(bed):
        cluster, disk = bed.cluster_on_slow_disk()
        assert bed.cluster_on_slow_disk() == (cluster, disk)

        def measure(block, keys):
            serving = disk.serving(slowed) if keys == "random" else contextlib.nullcontext()
            with cluster.connect() as connection, serving:
                connection.execute("SELECT 1")
            return {"index_pages": 1 + block.index}

        yield from bed.compare(measure, {"keys": ["sequential", "random"]}, pairs=5, warmup=0)

    found = chapter(insert).run("insert").frame
    kept = set(zip(found["keys"], found["disk"]))
    assert kept == {("random", slowed.words), ("sequential", "")}


def test_a_checkout_that_differs_in_its_records_alone_is_that_commit(tmp_path):
    git = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    record, code = tmp_path / "data/runs/published/run.json", tmp_path / "pgrerun/chapter.py"
    for file in (record, code):
        file.parent.mkdir(parents=True)
        file.write_text("first")
    git(["git", "init", "-q"])
    git(["git", "add", "."])
    who = ["-c", "user.name=A reader", "-c", "user.email=reader@example.org"]
    git(["git", *who, "commit", "-q", "-m", "First"])
    head = git(["git", "rev-parse", "HEAD"]).stdout.strip()
    record.write_text("published since")
    assert notebook.commit(code.parent) == head
    code.write_text("changed")
    assert notebook.commit(code.parent) == f"{head} with changes"
