"""Run records survive kills, full disks and second writers; damage is named, passwords never
stored.
"""

import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgrerun import credentials
from pgrerun.errors import ParameterError, RecordError
from pgrerun.record import runs

pytestmark = pytest.mark.usefixtures("records")
ENVIRONMENT = {"machine": {"cores": 2}, "server": {"version": "18.6"}}


def start(name="mine", chapter="tp1", key="k", environment=ENVIRONMENT):
    return runs.Run.open(name, chapter, key=key, environment=environment)


UNITS = {"tps": "1/s", "reads": "pages"}
BEGAN = "2026-01-02T03:04:05+00:00"


def append(run, block=0, variant="a", tps=1.0, **more):
    how = {"block": block, "position": 0, "seed": 7 + block, "started_at": BEGAN}
    run.append("ladder", {"variant": variant, "tps": tps, "reads": 3, **how, **more})


def finished_run(name="mine", values=(1, 2, 3), scale=1.0, units=UNITS, **kw):
    with start(name, **kw) as run:
        for block, value in enumerate(values):
            append(run, block, tps=scale * float(value))
        run.complete("ladder", {"units": units})
        run.add_verdict({"claim": "lai-059", "verdict": "holds"})
    return run


def test_a_finished_run_is_completed_by_what_it_had_set_aside():
    with start() as run:
        append(run, 0, share=None)
        append(run, 1, share=0.5)
        run.complete("ladder", {"units": UNITS})
        run.complete("upgrade", {"units": UNITS, "capability": "pg_upgrade", "reason": "none"})
        began, rows = run.started_at, run.rows("ladder")
    assert runs.Run.reopen("mine", "tp1") == ["upgrade"]
    with start() as run:
        assert run.started_at == began and run.about("upgrade") is None
        kept = run.rows("ladder")
        assert [{n: row[n] for n in rows[0]} for row in kept] == rows
        assert run.about("ladder")["units"] == UNITS
        run.append("upgrade", rows[0])
        run.complete("upgrade", {"units": UNITS})
    assert measured() == [1.0, 1.0] and len(runs.load("mine").tables["tp1"]["upgrade"]) == 1


def test_a_completion_that_was_killed_keeps_what_it_has_measured():
    finished_run()
    runs.Run.reopen("mine", "tp1")
    with pytest.raises(KeyboardInterrupt), start() as run:
        row = run.rows("ladder")[0]
        run.append("upgrade", row)
        raise KeyboardInterrupt
    assert runs.Run.reopen("mine", "tp1") == []
    with start() as run:
        assert run.rows("upgrade") == [row] and blocks(run) == [0, 1, 2]


def test_a_run_of_other_code_is_not_completed_and_stays():
    finished_run()
    runs.Run.reopen("mine", "tp1")
    with pytest.raises(RecordError, match="nothing can be added to it"):
        start(key="changed since")
    assert measured() == [1.0, 2.0, 3.0]
    with start(key="changed since") as run:
        assert blocks(run) == []


def test_no_run_that_was_not_finished_is_completed():
    with pytest.raises(RecordError, match="mine"):
        runs.Run.reopen("mine", "tp1")


def blocks(run):
    return [row["block"] for row in run.rows("ladder")]


def measured(column="tps"):
    return runs.load("mine").tables["tp1"]["ladder"][column].tolist()


def test_a_record_reads_back_as_written(records):
    with start() as run:
        append(run, 0, "é\nx", 1.5)
        append(run, 1, "b", 2.0)
        run.complete("ladder", {"units": UNITS})
        run.add_verdict({"claim": "lai-059", "verdict": "partly", "low": 1.1})
        live, _ = run.tables()["ladder"]
    record = runs.load("mine", "tp1")
    table = record.tables["tp1"]["ladder"]
    pd.testing.assert_frame_equal(table, live, check_dtype=False)
    assert table["variant"].tolist() == ["é\nx", "b"] and table["tps"].tolist() == [1.5, 2]
    assert list(record.observations.columns) == list(runs.COLUMNS) and len(record.observations) == 4
    (verdict,) = record.verdicts
    given = {"claim": "lai-059", "verdict": "partly", "low": 1.1, "chapter": "tp1"}
    assert (given | {"evidence": None}).items() <= verdict.items()
    assert record.environment == ENVIRONMENT
    for place in (records / "mine", records / "mine" / "tp1", str(records / "mine")):
        assert runs.load(place).tables["tp1"]["ladder"].equals(table)


def test_a_record_is_read_again_when_its_files_have_changed(records):
    finished_run()
    assert measured() == [1, 2, 3]
    (records / "mine" / "tp1" / runs.VERDICTS).write_text("[]")
    with pytest.raises(RecordError, match="is not what was written"):
        runs.load("mine")
    finished_run(values=[4])
    assert measured() == [4]


def test_another_key_moves_the_unfinished_run_aside(records):
    run = start()
    append(run, 0)
    run.release()
    with start(key="other") as other:
        assert other.rows("ladder") == [] and "moved aside" in other.notes[0]
        append(other, 5)
        other.complete("ladder", {"units": UNITS})
    aside = [p for p in (records / "mine").iterdir() if "aside" in p.name]
    assert len(aside) == 1 and len((aside[0] / runs.JOURNAL).read_text().splitlines()) == 2
    assert measured("block") == [5]


def test_an_older_record_stays_until_the_new_one_is_complete_and_through_a_crash(records):
    finished_run(values=[1])
    final = records / "mine" / "tp1"
    final.rename(runs.superseded_folder(final))  # the state between the two renames
    run = start(key="new")
    append(run, 0, tps=9)
    run.complete("ladder", {"units": UNITS})
    assert measured() == [1] and runs.chapters("mine") == ["tp1"]
    run.close()
    assert measured() == [9]
    assert not runs.superseded_folder(final).exists()


def test_kill_in_the_middle_of_writing_loses_only_that_line(records):
    script = """
        import os, sys, signal
        from pgrerun.record.runs import Run
        run = Run.open("mine", "tp1", key="k", environment={})
        def append(block):
            run.append("ladder", {"variant": "a", "block": block, "tps": 1.0})
        append(0); append(1)
        write = os.write
        def torn(descriptor, data):
            write(descriptor, bytes(data)[:20])
            os.kill(os.getpid(), signal.SIGKILL)
        os.write = torn
        append(2)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=300)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(RecordError, match="never finished"):
        runs.load("mine", "tp1")
    journal = records / "mine" / "tp1.partial" / runs.JOURNAL
    assert not journal.read_bytes().endswith(b"\n")
    with start() as run:
        assert blocks(run) == [0, 1]
        assert any("torn" in note for note in run.notes)
        append(run, 2)
        run.complete("ladder", {"units": UNITS})
    assert measured("block") == [0, 1, 2]


def limited(size):
    """A file size limit: the kernel writes what still fits and then fails, like a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_reported_and_what_was_finished_stays(records):
    script = """
        from pgrerun.errors import RecordError
        from pgrerun.record.runs import Run
        run = Run.open("mine", "tp1", key="k", environment={})
        try:
            for block in range(1000):
                run.append("ladder", {"variant": "a", "block": block, "tps": 1.0})
        except RecordError as error:
            print(block, len(run.rows("ladder")), error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        preexec_fn=lambda: limited(2000),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    block, kept, message = done.stdout.split(" ", 2)
    assert block == kept and int(kept) > 3
    assert "kept" in message and "again" in message and "Traceback" not in done.stderr
    journal = records / "mine" / "tp1.partial" / runs.JOURNAL
    assert journal.read_bytes().endswith(b"}\n")  # the half line was taken back
    run = start()
    assert len(blocks(run)) == int(kept) and not any("torn" in note for note in run.notes)
    run.close()


def test_a_disk_that_fills_up_while_closing_keeps_the_observations(records, monkeypatch):
    run = start()
    append(run)
    run.complete("ladder", {"units": UNITS})

    def full(path, *text):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch, pytest.raises(RecordError, match="No space left"):
        patch.setattr(Path, "write_text", full)
        run.close()
    assert [p.name for p in (records / "mine").iterdir()] == [
        "tp1.partial"
    ]  # nothing half-built stays
    run.close()
    assert len(runs.load("mine").observations) == 2
    with pytest.raises(RecordError, match="closed"):
        append(run, 1)


def test_only_one_writer_at_a_time():
    run = start()
    with pytest.raises(RecordError, match="Another process is writing"):
        start()
    start("elsewhere").close()
    run.close()
    start().close()


@pytest.mark.parametrize(
    ("line", "text", "advice"),
    [
        (1, "{not json", "start over"),
        (1, '{"format": 99, "key": "k"}', "format 99"),
        (2, '{"row": {}}', "Delete that line"),
        (2, "[1]", "Line 2"),
        (3, "\x00\x00", "Line 3"),
    ],
)
def test_a_damaged_journal_is_refused_with_file_line_and_way_out(records, line, text, advice):
    run = start()
    for block in range(3):
        append(run, block)
    run.release()
    journal = records / "mine" / "tp1.partial" / runs.JOURNAL
    lines = journal.read_text().splitlines()
    lines[line - 1] = text
    journal.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordError, match=advice) as caught:
        start()
    assert str(journal) in str(caught.value)
    assert journal.read_text().splitlines()[line - 1] == text  # nothing was thrown away


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "a b", "x.partial"])
def test_names_that_would_leave_the_folder_are_refused(name):
    with pytest.raises(ParameterError):
        start(name)


@pytest.mark.parametrize("where", ["write", "fsync"])
def test_an_interrupt_inside_an_append_keeps_a_whole_line_and_takes_half_a_one_back(
    where, monkeypatch, records
):
    run, write = start(), os.write

    def interrupted(descriptor, data=b""):
        write(descriptor, data[: len(data) // 2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runs.os, where, interrupted)
        run.append("insert", {"block": 0, "pages": 7.0})
    kept = [{"block": 0, "pages": 7.0}] if where == "fsync" else []
    assert run.rows("insert") == kept, "memory and disk differ"
    run.release()
    with start() as run:
        assert run.rows("insert") == kept


def test_no_password_reaches_the_disk(records):
    secret = "s3cret"
    environment = {
        "address": f"postgresql://me:{secret}@db.example/x?sslmode=require&password={secret}",
        "nested": [{"db_password": secret}],
    }
    run = start(environment=environment)
    append(run, variant=f"postgres://me:{secret}@h/")
    run.complete("ladder", {"units": UNITS, "reason": f"password={secret}"})
    run.add_verdict({"claim": "c", "verdict": "holds", "note": f"with password={secret}"})
    assert secret not in (records / "mine" / "tp1.partial" / runs.JOURNAL).read_text()
    run.close()
    stored = b"".join(p.read_bytes() for p in (records / "mine").rglob("*") if p.is_file())
    assert secret.encode() not in stored and b"me:***@db.example/x" in stored
    assert secret not in runs.load("mine").observations.to_json()


@pytest.mark.parametrize("keyword", [*sorted(credentials.SECRETS), "PGPASSWORD"])
def test_no_value_that_libpq_calls_a_secret_is_stored(keyword):
    form = {
        keyword: "{}",
        "url": f"postgresql://h/b?{keyword}={{}}&user=me",
        "conninfo": f"host=h {keyword} = {{}} user=me",
    }
    said = {name: text.format("hunter2") for name, text in form.items()}
    said["conninfo"] = form["conninfo"].format("'hunter2\\' x'")
    assert runs.scrub(said) == {name: text.format("***") for name, text in form.items()}


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:p/hunter2@h/b",
        "postgresql://u:12/x#hunter2@h/b",
        "postgresql://u@x:p@hunter2@h/b",
        "dbname=postgresql://u:hunter2@h/b",
        "PGPASSWORD=hunter2",
        "s3://bucket/runs?s3_secret_access_key=hunter2",
    ],
)
def test_no_password_of_a_text_is_stored(text):
    assert "hunter2" not in runs.scrub(text) and "***" in runs.scrub(text)


def test_scrub_leaves_the_innocent_alone():
    innocent = {
        "passfile": "/x/.pgpass",
        "settings": {"password_encryption": "scram-sha-256"},
        "a": 1.5,
        "b": None,
        "c": True,
        "url": "http://h:5432/x",
        "guest": "postgresql://me@h:5432/b",
        "keys": "a token, a key=1",
        "mail": "a@b",
    }
    given = innocent | {"n": np.int64(3), "x": float("inf"), "p": Path("/a")}
    found, expected = runs.scrub(given), innocent | {"n": 3, "x": "inf", "p": "/a"}
    assert found == expected and type(found["n"]) is int


def test_two_runs_are_compared_by_intervals_where_blocks_and_units_allow():
    finished_run("a", np.arange(10, 17), scale=2.0)
    finished_run("b", np.arange(10, 17))
    finished_run("few", [5], units=UNITS | {"tps": "1/min"})
    frame = runs.compare(runs.load("a"), runs.load("b"))
    tps, reads = (frame.loc[("tp1", "ladder", "a", name)] for name in ("tps", "reads"))
    assert (tps.a, tps.b, tps.ratio, tps.unit, tps.n_a) == (26, 13, 2, "1/s", 7)
    assert tps.low < 2 < tps.high and tps.differs and not reads.differs
    frame = runs.compare(runs.load("a"), runs.load("few"))
    tps, reads = (frame.loc[("tp1", "ladder", "a", name)] for name in ("tps", "reads"))
    assert tps.unit == "1/s / 1/min" and np.isnan(tps.ratio)
    assert reads.ratio == 1 and np.isnan(reads.low) and not reads.differs
