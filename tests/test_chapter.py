"""A chapter as its readers run it: refused parameters, somebody's server, a death, a resume."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import nbformat
import psutil
import psycopg
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from IPython.utils.capture import capture_output

from pgrerun import parameters
from pgrerun.chapter import Chapter, commit, experiment, wide
from pgrerun.chapters.hot.experiments import throughput
from pgrerun.chapters.measuring.experiments import over_time
from pgrerun.chapters.scalability.experiments import idle
from pgrerun.chapters.tp1.experiments import slow_disk
from pgrerun.errors import BookError, CannotMeasure, ServerError
from pgrerun.lab.disk import Disk
from pgrerun.lab.experiment import Variant
from pgrerun.lab.server import Borrowed, passwords
from pgrerun.page import charts, narrate
from pgrerun.parameters import chapter_parameters
from pgrerun.record import claims, runs, statistics

ROOT = Path(__file__).resolve().parent.parent
SMALL = {
    "pairs": 5,
    "milliseconds": 100,
    "counted": 10,
    "cycles": 10,
    "simulated_transactions": 100,
}


@pytest.fixture
def records(tmp_path, monkeypatch):
    """A folder of its own for run records."""
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def papermill(target: Path, **parameters) -> subprocess.CompletedProcess:
    given = [word for name, value in parameters.items() for word in ("-p", name, str(value))]
    command = [
        sys.executable,
        "-m",
        "papermill",
        "notebooks/tp1.ipynb",
        str(target),
        *given,
        "--no-progress-bar",
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cliens": 2}, ["'cliens'", "did you mean clients?"]),
        ({"clients": 1}, ["clients must be a whole number from 2 to 64"]),
        ({"server": "postgresql://me:s3cret@nowhere/db"}, ["carries a password", "PGPASSFILE"]),
    ],
)
def test_a_parameter_that_cannot_be_used_stops_before_any_server(
    given, told, tmp_path, records, base
):
    done = papermill(tmp_path / "mine.ipynb", **given)
    assert done.returncode != 0
    last = nbformat.read(tmp_path / "mine.ipynb", as_version=4)
    [error] = [
        o
        for cell in last.cells
        if cell.cell_type == "code"
        for o in cell.outputs
        if o.output_type == "error"
    ]
    assert error.ename == "ParameterError" and len(error.traceback) == 1
    for words in told:
        assert words in error.evalue and words in done.stderr
    assert "s3cret" not in error.evalue + done.stderr.replace(json.dumps(given), "")
    assert not any(base.iterdir()) and not records.exists()


@pytest.mark.parametrize(
    "fault", ["nobody answers", "may not log in", "a schema of somebody else's"]
)
def test_a_server_that_cannot_be_borrowed_ends_the_command_with_one_paragraph(
    fault, borrowed_url, tmp_path, records, base
):
    url, said = borrowed_url, "no run of ours made"
    if fault == "nobody answers":
        url, said = "postgresql://me@127.0.0.1:1/theirs", "127.0.0.1"
    elif fault == "may not log in":
        url, said = borrowed_url.replace("postgres@", "stranger@"), "stranger"
    with psycopg.connect(borrowed_url, autocommit=True) as owner:
        owner.execute("CREATE SCHEMA pgrerun" if url == borrowed_url else "SELECT 1")
        try:
            command = [
                sys.executable,
                "-m",
                "pgrerun.cli",
                "run",
                "tp1",
                "--server",
                url,
                "--out",
                str(tmp_path / "mine.ipynb"),
            ]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        finally:
            owner.execute("DROP SCHEMA IF EXISTS pgrerun")
    assert done.returncode == 1 and said in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert not any(base.iterdir()) and not records.exists()


def test_a_borrowed_server_is_left_as_found_and_its_limits_are_told(
    borrowed_url, tmp_path, records
):
    def schemas():
        with psycopg.connect(borrowed_url) as connection:
            return connection.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall()

    before = schemas()
    done = papermill(tmp_path / "mine.ipynb", server=borrowed_url, **SMALL)
    assert done.returncode == 0, done.stderr
    assert schemas() == before
    verdicts = {verdict["claim"]: verdict for verdict in runs.load("ci", "tp1").verdicts}
    assert verdicts.keys() == {
        claim.id for claim in claims.ledger().values() if claim.chapter == "tp1"
    }
    aside = {
        claim for claim, verdict in verdicts.items() if verdict["verdict"] == "not testable here"
    }
    # What needs no other settings, no crash and no extension is measured on anybody's server.
    assert verdicts.keys() - aside == {"lai-048", "lai-051", "lai-060"}
    assert all(verdicts[claim]["capability"] for claim in aside)
    page = nbformat.read(tmp_path / "mine.ipynb", as_version=4)
    told = [
        o.data.get("text/markdown", "")
        for c in page.cells
        if c.cell_type == "code"
        for o in c.outputs
        if "data" in o
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
            words = everything_said_of(url, monkeypatch) + "".join(
                path.read_text() for path in (records / "ci" / "tp1").glob("*.json")
            )
        finally:
            owner.execute("DROP DATABASE where_it_is")
            owner.execute("DROP ROLE who_asks")
    host = psycopg.conninfo.conninfo_to_dict(url)["host"]
    assert {word in words for word in (host, "who_asks", "where_it_is")} == {kept}
    assert (passwords.LEFT_OUT in words) is not kept


def everything_said_of(url: str, monkeypatch) -> str:
    """What a chapter on this server shows, which can do nothing there; its record is finished."""
    shown = []
    monkeypatch.setattr("pgrerun.chapter.display", lambda said, metadata=None: shown.append(said))
    chapter = Chapter("tp1", chapter_parameters("tp1", {"server": url}))
    claimed = [claim.id for claim in claims.ledger().values() if claim.chapter == "tp1"]
    lacking = [
        missing
        for capability in ("superuser", "checkpoint", "restart", "contrib:nothing")
        if (missing := pytest.raises(CannotMeasure, chapter.server.require, capability).value)
    ]
    lacking.append(pytest.raises(CannotMeasure, chapter.cluster).value)
    for number, claim in enumerate(claimed):
        chapter.set_aside(lacking[number % len(lacking)], [claim])
        chapter.judge(claim, True)
    shown += [chapter.provenance()._repr_html_(), chapter.verdicts()._repr_html_()]
    chapter.close()
    return "".join(map(str, shown))


RUN = """
import sys
from pgrerun.chapter import Chapter
from pgrerun.chapters import tp1
from pgrerun.errors import RerunError
from pgrerun.parameters import chapter_parameters
chapter = Chapter("tp1", chapter_parameters("tp1", {given}))
try:
    tp1.experiments.throughput.reuse(chapter)
except RerunError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_status)
print("\\n".join(chapter.run.notes))
"""


def start_run() -> subprocess.Popen:
    code = RUN.format(given=SMALL)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_observations(records: Path, least: int, process: subprocess.Popen) -> int:
    journal = records / "ci" / "tp1.partial" / runs.JOURNAL
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        seen = len(journal.read_text().splitlines()) - 1 if journal.exists() else 0
        if seen >= least:
            return seen
        time.sleep(0.1)
    raise AssertionError(f"no {least} observations: {process.communicate()}")


def postmaster_of(process: subprocess.Popen) -> psutil.Process:
    """The server that this run has started: a child of it, by its id."""
    found = []
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a pgbench that has just ended
            found += [child] if child.name() == "postgres" else []
    [postmaster] = found
    return postmaster


def test_a_server_that_dies_ends_the_run_and_the_next_one_resumes(records, base):
    process = start_run()
    wait_for_observations(records, 3, process)
    postmaster_of(process).kill()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in said
    assert "server" in said and len(said.strip()) > 40
    assert not any(base.iterdir()), "a directory was left behind"
    assert_resumed(records)
    assert not any(base.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_disk_that_fills_up_ends_the_run_and_the_next_one_resumes(records, small_disk):
    disk = small_disk("500M")  # room for the log of a whole run
    process = start_run()
    wait_for_observations(records, 1, process)
    with pytest.raises(OSError), (disk / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in said
    assert "No space left on device" in said or "disk is full" in said
    assert list(disk.iterdir()) == [disk / "ballast"], "a directory was left behind"
    (disk / "ballast").unlink()
    assert_resumed(records)
    assert not any(disk.iterdir())


def assert_resumed(records: Path) -> None:
    """A run after one that broke off measures what was missing, and says how much was there."""
    finished = len((records / "ci" / "tp1.partial" / runs.JOURNAL).read_text().splitlines()) - 1
    again = start_run()
    out, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert finished >= 1 and f"Resumed an interrupted run: {finished} observations" in out


def test_whatever_fails_when_the_server_dies_is_told_as_its_death(chapter, base):
    def killed_in_between(chapter):
        server = chapter.server
        for pid in server.pids():
            os.kill(pid, signal.SIGKILL)
        raise KeyError("a count that is no longer there")

    with pytest.raises(ServerError, match="killed by signal 9"):
        chapter.attempt(killed_in_between)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "load.sql"),
        psycopg.errors.DiskFull("could not extend file"),
    ],
)
def test_a_full_disk_is_told_with_the_way_out_whoever_finds_it_full(chapter, base, error):
    def fill(chapter):
        assert chapter.server.owned
        raise error

    with pytest.raises(
        ServerError,
        match="The disk is full: .*(load.sql|could not extend).*PGRERUN_TMPDIR.*is kept",
    ):
        chapter.attempt(fill)


def test_an_error_of_our_own_is_not_blamed_on_a_living_server(chapter, base):
    def wrong(chapter):
        chapter.server.stop()
        raise KeyError("a count that is no longer there")

    with pytest.raises(KeyError):
        chapter.attempt(wrong)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_keeps_what_it_has_and_leaves_no_server(number, records, base):
    process = start_run()
    finished = wait_for_observations(records, 1, process)
    server = postmaster_of(process)
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode != 0
    deadline = time.monotonic() + 120  # a killed run's guardian needs a moment
    while (server.is_running() or any(base.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(base.iterdir())
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    kept = (records / "ci" / "tp1.partial" / runs.JOURNAL).read_text().splitlines()
    assert len(kept) - 1 >= finished
    if number == signal.SIGINT:  # Ctrl-C, after which a reader starts again
        assert_resumed(records)


@pytest.fixture
def chapter(records, base, monkeypatch):
    """A chapter without a server: nothing here measures."""
    shown = []
    monkeypatch.setattr("pgrerun.chapter.display", lambda said, metadata=None: shown.append(said))
    opened = Chapter("tp1", chapter_parameters("tp1", SMALL))
    opened.shown = shown
    yield opened
    for server in opened.clusters.values():
        server.close()
    opened.run.release()


@experiment(claims=["lai-048"])
def no_such_disk(chapter):
    """An experiment that nothing here can show."""
    raise CannotMeasure("direct I/O", "this disk can't be asked")


def test_an_experiment_that_cannot_run_sets_its_claims_aside(chapter):
    assert chapter.attempt(no_such_disk) is None
    assert "this disk can't be asked" in chapter.shown[-1]
    chapter.judge("lai-048", lambda chapter: chapter.ratio("disk", "time", "a", "b"))
    assert "**not testable here**" in chapter.shown[-1]
    [judgement] = chapter.evidence.judgements
    assert judgement.capability == "direct I/O"


@experiment(claims=["lai-048"])
def modern():
    raise psycopg.errors.UndefinedFunction("function to_regclass(unknown) does not exist")


def modern_evidence():
    modern()


def test_what_a_release_cannot_read_is_set_aside_with_the_first_that_can(chapter):
    chapter.programs = replace(chapter.programs, version="9.3.5", major=9)
    assert chapter.attempt(modern) is None and "PostgreSQL 9.4 or later" in chapter.shown[-1]
    chapter.judge("lai-049", modern_evidence)
    assert str(chapter.evidence.judgements[-1].verdict) == "not testable here"
    assert "PostgreSQL 9.4" in chapter.evidence.judgements[-1].note
    assert chapter.show(modern_evidence) is None and "9.4" in chapter.shown[-1]


def test_what_every_release_can_read_is_an_error_of_the_book(chapter):
    with pytest.raises(psycopg.errors.UndefinedFunction):
        chapter.attempt(modern)
    with pytest.raises(psycopg.errors.UndefinedFunction):
        chapter.judge("lai-049", modern_evidence)


def test_what_goes_on_from_an_experiment_that_was_set_aside_is_set_aside_too(chapter):
    @experiment(claims=["lai-049"])
    def goes_on(chapter, disk):
        raise AssertionError("called without what it goes on from")

    disk = chapter.attempt(no_such_disk)
    assert chapter.attempt(goes_on, disk) is None
    chapter.judge("lai-049", lambda disk: disk / 0, disk)
    [judgement] = chapter.evidence.judgements
    assert judgement.capability == "direct I/O" and "goes on from" in judgement.note
    assert chapter.show(lambda disk: disk / 0, disk) is None
    functions = [one["function"] for one in chapter.run.environment["sent"].values()]
    assert ["def no_such_disk" in functions[0], "def goes_on" in functions[1]] == [True, True]


@pytest.mark.parametrize(
    "ask",
    [
        lambda chapter: chapter.table("apart", "x"),
        lambda chapter: chapter.ratio("apart", "x", "a", "b"),
        lambda chapter: chapter.median("apart", "x", "a"),
        lambda chapter: chapter.by_provenance("apart"),
        lambda chapter: chapter.medians("apart", "x"),
        lambda chapter: chapter.repetitions("apart", "x"),
        lambda chapter: chapter.ratios("apart", "x", {"a over b": ("a", "b")}),
    ],
)
def test_nothing_is_shown_of_what_was_never_measured(chapter, ask):
    assert chapter.show(ask) is None
    with pytest.raises(BookError, match="lai-048 has no evidence: apart was never measured"):
        chapter.judge("lai-048", ask)


def test_what_an_experiment_needs_of_the_server_is_asked_first(chapter, monkeypatch):
    @experiment(claims=["lai-048"], needs=["contrib:nosuchthing"])
    def unreached(chapter):
        raise AssertionError("called on a server without the extension")

    assert chapter.attempt(unreached) is None
    assert "nosuchthing" in chapter.shown[-1]


def test_a_function_gets_the_chapter_if_it_asks_for_it(chapter):
    assert chapter.show(lambda chapter, x: (chapter.name, x), 1) == ("tp1", 1)
    assert chapter.show(lambda x: x, 1) == 1


def test_a_claim_that_nothing_here_can_reach_needs_no_evidence(records, monkeypatch):
    monkeypatch.setattr("pgrerun.chapter.display", lambda said, metadata=None: None)
    opened = Chapter("scalability", chapter_parameters("scalability", {}))
    try:
        opened.judge("haas-067")
        [judgement] = opened.evidence.judgements
        assert judgement.capability in claims.OUT_OF_REACH
        with pytest.raises(BookError, match="names nothing that is out of reach"):
            opened.judge("haas-002")
    finally:
        opened.run.release()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.5, "not run in this profile: profile overnight reaches it; "), (60, "")],
)
def test_a_regime_that_another_profile_reaches_is_told_at_the_verdict(
    records, monkeypatch, seconds, said
):
    monkeypatch.setattr("pgrerun.chapter.display", lambda said, metadata=None: None)
    given = chapter_parameters("measuring", {"seconds": float(seconds)})
    opened = Chapter("measuring", given)
    try:
        opened.judge("haas-070", 2.0, regime={"steady state": 0})
        [judgement] = opened.evidence.judgements
        assert judgement.reason.startswith(f"{said}it speaks of another regime")
    finally:
        opened.run.release()


@pytest.mark.parametrize(
    ("tuples", "said"),
    [(20_000, "not run in this profile: profile overnight reaches it; it"), (1_000_000, "it")],
)
def test_so_is_a_size_that_another_profile_reaches(records, monkeypatch, tuples, said):
    monkeypatch.setattr("pgrerun.chapter.display", lambda said, metadata=None: None)
    opened = Chapter("explorations", chapter_parameters("explorations", {"tuples": tuples}))
    try:
        opened.set_aside(CannotMeasure("tuples = 1000000", "it is small"), ["expl-002"])
        beside = {"smaller": statistics.exact(2), "uncalled": lambda: 1 / 0}
        opened.judge("expl-002", lambda: 1 / 0, beside=beside)
        [judgement] = opened.evidence.judgements
        assert judgement.note == f"{said} is small"
        assert list(judgement.beside) == ["smaller"]
    finally:
        opened.run.release()


def test_the_parameters_that_regimes_name_are_those_that_experiments_go_by():
    asked = {name: claims.parameter(name) for name, one in claims.REGIMES.items() if one.parameter}
    assert asked == {
        "small tables in the pool": ("timed_accounts", throughput.VACUUMED_IN_TIME),
        "steady state": ("seconds", over_time.LONG),
        "idle for minutes": ("idle_seconds", idle.FEW_MINUTES / 2),
    }
    for name, wanted in asked.items():
        own = {claim.chapter for claim in claims.ledger().values() if name in claim.regimes}
        assert all(parameters.reaching(chapter, *wanted) for chapter in own)


def test_an_opinion_needs_no_evidence(records, monkeypatch):
    monkeypatch.setattr("pgrerun.chapter.display", lambda said, metadata=None: None)
    opened = Chapter("hot", chapter_parameters("hot", {}))
    try:
        opened.judge("hot-034")
        [judgement] = opened.evidence.judgements
        assert str(judgement.verdict) == "not testable here" and "opinion" in judgement.note
    finally:
        opened.run.release()


def test_the_output_that_says_so_is_marked_for_the_gates(chapter, monkeypatch):
    monkeypatch.setattr("pgrerun.chapter.display", display)
    InteractiveShell.instance()
    try:
        with capture_output() as captured:
            chapter.attempt(no_such_disk)
    finally:
        InteractiveShell.clear_instance()
    [output] = captured.outputs
    assert output.metadata == {CannotMeasure.METADATA: "direct I/O"}


def test_a_claim_without_evidence_and_without_reason_is_refused(chapter):
    with pytest.raises(BookError, match="lai-048 has no evidence"):
        chapter.judge("lai-048")


def test_a_chapter_with_claims_left_over_is_not_finished(chapter, records):
    with pytest.raises(BookError, match="left unjudged"):
        chapter.close()
    assert not (records / "ci" / "tp1").exists()


def test_other_numbers_of_backends_are_not_held_against_the_print(chapter):
    # The report ran two; a chapter with eight must not call its ratio the report's.
    reasons = {}
    chapter.set_aside = lambda reason, ids: reasons.update(dict.fromkeys(ids, reason))
    chapter.compare = lambda *arguments, **words: None
    object.__setattr__(chapter, "parameters", chapter.parameters.model_copy(update={"clients": 8}))
    slow_disk.ladder(chapter)
    assert set(reasons) == set(slow_disk.BACKEND_CLAIMS)


def test_the_record_names_the_settings_that_differ_from_the_defaults(chapter, records):
    chapter.cluster(shared_buffers=16)
    for claim in chapter.evidence.unjudged():
        chapter.evidence.set_aside(claim, CannotMeasure("a disk", "there is none"))
    chapter.close()
    record = runs.load("ci", "tp1")
    assert any("shared_buffers = 16" in words for words in record.environment["settings"].values())
    assert "every throwaway server" in record.environment["settings"]
    assert record.started <= record.finished
    rows = dict(zip(*(chapter.provenance().frame[column] for column in ("what", "value"))))
    assert any(
        name.startswith("settings of throwaway server") and "shared_buffers = 16" in words
        for name, words in rows.items()
    )


def test_a_run_that_is_to_be_published_is_not_drawn_beside_the_one_it_replaces(chapter, records):
    (records / "published").mkdir(parents=True)
    with runs.Run.open("published", "tp1", key="k", environment={}) as older:
        older.observe(
            "ladder",
            "one",
            0,
            {"tps": 1.0},
            units={"tps": "1/s"},
            seed=1,
            position=0,
            started_at="now",
        )
    assert len(chapter.published_run("ladder")) == 1
    chapter.run.name = "published"
    assert chapter.published_run("ladder").empty


def test_observations_become_a_column_per_variant(chapter):
    how = {"units": {"x": "s"}, "seed": 1, "started_at": "2020-01-01T00:00:00", "position": 0}
    for block in (1, 0):
        for variant, value in (("a", 1.0), ("b", 2.0)):
            chapter.run.observe("toy", variant, block, {"x": value + block}, **how)
    table = wide(chapter.run.observations("toy"), "x")
    assert table.index.tolist() == [0, 1] and table["b"].tolist() == [2.0, 3.0]
    assert chapter.ratio("toy", "x", "b", "a").n == 2


def test_what_a_slowed_disk_gave_is_kept_apart(chapter, monkeypatch):
    cluster, slow = chapter.on_slow_disk()
    assert chapter.on_slow_disk()[0] is cluster and cluster.disk is slow

    def flushed(disk, block):
        with (
            cluster.connect() as connection,
            slow.serving(disk) if disk else contextlib.nullcontext(),
        ):
            connection.execute("SELECT 1")
        return {"x": 1.0 + block.index}

    slowed = Disk(flush=0.001)
    variants = [Variant("own", partial(flushed, None)), Variant("other", partial(flushed, slowed))]
    chapter.compare("toy", variants, {"x": "s"}, pairs=5, warmup=0)
    rows = chapter.medians("toy", "x")
    assert rows[["label", "kind"]].values.tolist() == [["own", "measured"], ["other", "slowed"]]
    assert chapter.disk("toy") == chapter.disk("toy", "other") == slowed.words
    assert chapter.disk("toy", "own") == chapter.median("toy", "x", "own").disk == ""
    ratio = chapter.ratio("toy", "x", "other", "own")
    assert ratio.inverse().times(2).disk == slowed.words
    assert {"slowed", "published-slowed"} <= set(charts.MARKS)
    timed = next(
        c
        for c in claims.ledger().values()
        if c.chapter == chapter.name and c.printed and c.basis == "timed"
    )
    regime = {name: claims.regime(name).at_least for name in timed.regimes}
    judged = chapter.evidence.judge(timed.id, ratio, regime=regime)
    assert slowed.words in judged.as_dict()["evidence"]["method"]
    assert f"(timed, {slowed.words})" in str(narrate.judgement(chapter.evidence.judgements[-1]))


def test_rows_for_charts_come_by_provenance(chapter, monkeypatch):
    how = {"units": {"x": "s"}, "seed": 1, "started_at": "2020-01-01T00:00:00", "position": 0}
    for block in range(6):
        for variant, value in (("a", 1.0), ("b", 2.0)):
            chapter.run.observe("toy", variant, block, {"x": value}, **how)
    older = chapter.run.observations("toy")
    monkeypatch.setattr(
        chapter, "published_run", lambda name: older.assign(value=older["value"] * 10)
    )
    medians = chapter.medians("toy", {"x": "time (s)"}, {"b": "second"})
    assert medians[["label", "kind", "value", "panel"]].values.tolist() == [
        ["second", "published", 20.0, "time (s)"],
        ["second", "measured", 2.0, "time (s)"],
    ]
    assert list(chapter.medians("toy", "x")["label"]) == ["a", "b", "a", "b"]
    every = chapter.repetitions("toy", "x", {"b": "second"})
    assert every.values.tolist() == [[block, "second", 2.0, "measured"] for block in range(6)]
    ratios = chapter.ratios("toy", "x", {"b over a": ("b", "a"), "c": ("c", "a")})
    assert ratios[["label", "kind", "value", "low"]].values.tolist() == [
        ["b over a", "published", 2.0, 2.0],
        ["b over a", "measured", 2.0, 2.0],
    ]


def test_a_chapter_on_a_server_that_is_open_already_leaves_it_open_and_records_elsewhere(
    borrowed_url, tmp_path, records
):
    with Borrowed(borrowed_url) as guest:
        chapter = Chapter(
            "tp1", chapter_parameters("tp1", SMALL), guest=guest, records=tmp_path / "apart"
        )
        assert chapter.borrowed and chapter.server is guest
        chapter.run.close()
        guest.connect().close()
    assert not records.exists() and [
        path.name for path in (tmp_path / "apart" / "ci").iterdir()
    ] == ["tp1"]


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
    assert commit(code.parent) == head
    code.write_text("changed")
    assert commit(code.parent) == f"{head} with changes"
