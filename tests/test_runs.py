"""Run records survive kills, full disks and second writers; damage is named, passwords never
stored.
"""

import json
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
from pgrerun.record.runs import COLUMNS, Run

ENVIRONMENT = {"machine": {"cores": 2}, "server": {"version": "18.6"}}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def start(name="mine", chapter="tp1", key="k", environment=ENVIRONMENT):
    return Run.open(name, chapter, key=key, environment=environment)


def observe(run, block=0, variant="a", tps=1.0, experiment="ladder", **more):
    run.observe(
        experiment,
        variant,
        block,
        {"tps": tps, "reads": 3},
        units={"tps": "1/s", "reads": "pages", "x": "s"},
        seed=7 + block,
        position=0,
        started_at="2026-01-02T03:04:05+00:00",
        **more,
    )


def finished_run(name="mine", values=(1, 2, 3), scale=1.0, **kw):
    with start(name, **kw) as run:
        for block, value in enumerate(values):
            observe(run, block, tps=scale * value)
        run.add_verdict({"claim": "lai-059", "verdict": "holds"})
    return run


def test_a_record_reads_back_as_written(folder):
    with start() as run:
        observe(run, 0, "a", np.float64(1.5), flags={"busy": True, "plan": "é\nx"})
        observe(run, np.int64(1), "b", 2)
        run.add_verdict({"claim": "lai-059", "verdict": "partly", "low": 1.1})
        live = run.observations()
    record = runs.load("mine", "tp1")
    pd.testing.assert_frame_equal(record.observations, live)
    assert list(live.columns) == list(COLUMNS) and len(live) == 4
    first = live.iloc[0]
    assert (first.run, first.chapter, first.metric, first.value, first.unit, first.seed) == (
        "mine",
        "tp1",
        "tps",
        1.5,
        "1/s",
        7,
    )
    assert json.loads(first["flags"]) == {"busy": True, "plan": "é\nx"}
    (verdict,) = record.verdicts
    given = {"claim": "lai-059", "verdict": "partly", "low": 1.1, "chapter": "tp1"}
    assert given.items() <= verdict.items() and verdict["evidence"] is None
    assert record.environment == ENVIRONMENT and record.keys == {"tp1": "k"}
    assert not (folder / "mine" / "tp1.partial").exists()
    assert sorted(p.name for p in (folder / "mine" / "tp1").iterdir()) == sorted(
        [runs.OBSERVATIONS, runs.VERDICTS, runs.ENVIRONMENT]
    )
    for given in (folder / "mine", folder / "mine" / "tp1", str(folder / "mine")):
        assert runs.load(given).observations.equals(live)


def test_a_run_without_observations_can_be_finished():
    with start():
        pass
    record = runs.load("mine")
    assert record.observations.empty and list(record.observations.columns) == list(COLUMNS)


def test_an_exception_keeps_what_was_finished_and_the_same_key_resumes():
    with pytest.raises(KeyboardInterrupt), start() as run:
        observe(run, 0)
        raise KeyboardInterrupt
    with pytest.raises(RecordError, match="never finished"):
        runs.load("mine", "tp1")
    with start() as run:
        assert run.finished("ladder") == {(0, "a")} and run.finished("other") == set()
        assert "1 observations were finished" in run.notes[0]
        observe(run, 1)
    assert len(runs.load("mine").observations) == 4


def test_another_key_moves_the_unfinished_run_aside(folder):
    run = start()
    observe(run, 0)
    run.release()
    with start(key="other") as other:
        assert other.finished("ladder") == set() and "moved aside" in other.notes[0]
        observe(other, 5)
    aside = [p for p in (folder / "mine").iterdir() if "aside" in p.name]
    assert len(aside) == 1 and len((aside[0] / runs.JOURNAL).read_text().splitlines()) == 2
    assert runs.load("mine").observations.block.unique().tolist() == [5]


def test_an_older_record_stays_until_the_new_one_is_complete():
    finished_run(values=[1])
    run = start(key="new")
    observe(run, 0, tps=9)
    assert runs.load("mine").observations.value[0] == 1
    run.close()
    assert runs.load("mine").observations.value[0] == 9


def test_a_crash_inside_the_swap_leaves_the_older_record(folder):
    finished_run(values=[1])
    final = folder / "mine" / "tp1"
    final.rename(runs.superseded_folder(final))  # the state between the two renames
    assert runs.load("mine").observations.value[0] == 1
    assert runs.chapters("mine") == ["tp1"]
    finished_run(values=[2])
    assert (
        runs.load("mine", "tp1").observations.value[0] == 2
        and not runs.superseded_folder(final).exists()
    )


def test_kill_in_the_middle_of_writing_loses_only_that_line(folder):
    script = """
        import os, sys, signal
        from pgrerun.record.runs import Run
        run = Run.open("mine", "tp1", key="k", environment={})
        def observe(block):
            more = dict(seed=1, position=0, started_at="now")
            run.observe("ladder", "a", block, {"tps": 1.0}, units={"tps": "1/s"}, **more)
        observe(0); observe(1)
        write = os.write
        def torn(descriptor, data):
            write(descriptor, bytes(data)[:20])
            os.kill(os.getpid(), signal.SIGKILL)
        os.write = torn
        observe(2)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=300)
    assert done.returncode == -signal.SIGKILL
    journal = folder / "mine" / "tp1.partial" / runs.JOURNAL
    assert not journal.read_bytes().endswith(b"\n")
    with start() as run:
        assert run.finished("ladder") == {(0, "a"), (1, "a")}
        assert any("torn" in note for note in run.notes)
        observe(run, 2)
    assert runs.load("mine").observations.block.nunique() == 3


def limited(size):
    """A file size limit: the kernel writes what still fits and then fails, like a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_reported_and_what_was_finished_stays(folder):
    script = """
        from pgrerun.errors import RecordError
        from pgrerun.record.runs import Run
        run = Run.open("mine", "tp1", key="k", environment={})
        try:
            for block in range(1000):
                more = dict(seed=1, position=0, started_at="now")
                run.observe("ladder", "a", block, {"tps": 1.0}, units={"tps": "1/s"}, **more)
        except RecordError as error:
            print(block, len(run.finished("ladder")), error)
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
    journal = folder / "mine" / "tp1.partial" / runs.JOURNAL
    assert journal.read_bytes().endswith(b"}\n")  # the half line was taken back
    run = start()
    assert len(run.finished("ladder")) == int(kept) and not any(
        "torn" in note for note in run.notes
    )
    run.close()


def test_a_disk_that_fills_up_while_closing_keeps_the_observations(folder, monkeypatch):
    run = start()
    observe(run)

    def full(path, text):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch, pytest.raises(RecordError, match="No space left"):
        patch.setattr(runs, "write_text", full)
        run.close()
    assert [p.name for p in (folder / "mine").iterdir()] == [
        "tp1.partial"
    ]  # nothing half-built stays
    run.close()
    assert len(runs.load("mine").observations) == 2
    with pytest.raises(RecordError, match="closed"):
        observe(run, 1)


def test_a_tiny_tmpfs_fills_up_for_real(tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("this account may not mount a tmpfs")
    try:
        monkeypatch.setenv("PGRERUN_RUNS", str(disk))
        run = start()
        with pytest.raises(RecordError, match="No space left"):
            for block in range(2000):
                observe(run, block)
        kept = len(run.finished("ladder"))
        with pytest.raises(RecordError, match="kept"):
            run.close()
        run.release()
        again = start()
        assert len(again.finished("ladder")) == kept > 10
        again.release()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_only_one_writer_at_a_time():
    run = start()
    with pytest.raises(RecordError, match="Another process is writing"):
        start()
    other = start("elsewhere")
    other.close()
    run.close()
    start().close()


@pytest.mark.parametrize(
    ("line", "text", "advice"),
    [
        (1, "{not json", "start over"),
        (1, '{"format": 99, "key": "k"}', "format 99"),
        (2, '{"variant": "a"}', "Delete that line"),
        (2, "[1]", "Line 2"),
        (3, "\x00\x00", "Line 3"),
    ],
)
def test_a_damaged_journal_is_refused_with_file_line_and_way_out(folder, line, text, advice):
    run = start()
    for block in range(3):
        observe(run, block)
    run.release()
    journal = folder / "mine" / "tp1.partial" / runs.JOURNAL
    lines = journal.read_text().splitlines()
    lines[line - 1] = text
    journal.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordError, match=advice) as caught:
        start()
    assert str(journal) in str(caught.value)
    assert journal.read_text().splitlines()[line - 1] == text  # nothing was thrown away


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def rewrite_head(path, **changes):
    head = json.loads(path.read_text())
    head.update(changes)
    path.write_text(json.dumps({k: v for k, v in head.items() if v is not None}))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda d: flip(d / runs.OBSERVATIONS), "checksum"),
        (lambda d: (d / runs.OBSERVATIONS).unlink(), "No such file"),
        (lambda d: flip(d / runs.VERDICTS), "checksum"),
        (lambda d: (d / runs.ENVIRONMENT).write_text("{"), "damaged"),
        (lambda d: (d / runs.ENVIRONMENT).write_text("[]"), "format"),
        (lambda d: rewrite_head(d / runs.ENVIRONMENT, format=99), "format 99"),
        (lambda d: rewrite_head(d / runs.ENVIRONMENT, key=None), "key: Field required"),
        (lambda d: rewrite_head(d / runs.ENVIRONMENT, rows=5), "6 rows instead of 5"),
    ],
)
def test_a_damaged_record_is_refused(folder, damage, complaint):
    finished_run()
    damage(folder / "mine" / "tp1")
    with pytest.raises(RecordError, match=complaint) as caught:
        runs.load("mine", "tp1")
    assert "Restore" in str(caught.value)


def test_a_record_with_other_columns_is_refused(folder):
    import duckdb

    finished_run()
    path = folder / "mine" / "tp1" / runs.OBSERVATIONS
    duckdb.sql(
        f"COPY (SELECT * RENAME (value AS worth) FROM '{path}') TO '{path}.new' (FORMAT parquet)"
    )
    Path(f"{path}.new").replace(path)
    sums = {
        runs.OBSERVATIONS: runs.digest_of(path),
        runs.VERDICTS: runs.digest_of(path.with_name(runs.VERDICTS)),
    }
    rewrite_head(path.with_name(runs.ENVIRONMENT), sha256=sums)
    with pytest.raises(RecordError, match="value, worth"):
        runs.load("mine", "tp1")


def test_records_that_do_not_exist_are_named_with_those_that_do():
    finished_run("yours")
    with pytest.raises(RecordError, match="Runs: yours"):
        runs.load("nobodys")
    with pytest.raises(RecordError, match="chapter 'hot'"):
        runs.load("yours", "hot")


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "a b", "x.partial"])
def test_names_that_would_leave_the_folder_are_refused(name):
    with pytest.raises(ParameterError):
        start(name)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [({}, "no metrics"), ({"tps": float("nan")}, "finite"), ({"y": 1}, "no unit for y")],
)
def test_observations_that_mean_nothing_are_refused(metrics, message):
    with start() as run:
        with pytest.raises(ValueError, match=message):
            run.observe(
                "e", "a", 0, metrics, units={"tps": "1/s"}, seed=1, position=0, started_at="now"
            )
        observe(run)
        with pytest.raises(RecordError, match="observed before"):
            observe(run)


@pytest.mark.parametrize("where", ["write", "fsync"])
def test_an_interrupt_inside_an_append_keeps_a_whole_line_and_takes_half_a_one_back(
    where, monkeypatch, folder
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


def test_no_password_reaches_the_disk(folder):
    secret = "s3cret"
    environment = {
        "address": f"postgresql://me:{secret}@db.example/x?sslmode=require&password={secret}",
        "conninfo": f"host=db password='{secret}\\' x' sslpassword={secret} user=me",
        "PGPASSWORD": secret,
        "nested": [{"db_password": secret}],
        "settings": {"password_encryption": "scram-sha-256"},
    }
    run = start(environment=environment)
    observe(run, flags={"url": f"postgres://me:{secret}@h/"})
    run.add_verdict({"claim": "c", "verdict": "holds", "note": f"with password={secret}"})
    assert secret not in (folder / "mine" / "tp1.partial" / runs.JOURNAL).read_text()
    run.close()
    stored = b"".join(p.read_bytes() for p in (folder / "mine").rglob("*") if p.is_file())
    assert secret.encode() not in stored
    kept = runs.load("mine").environment
    assert (
        kept["address"].startswith("postgresql://me:***@db.example/x")
        and kept["settings"]["password_encryption"] == "scram-sha-256"
    )
    assert kept["conninfo"].startswith("host=db password=***") and kept["conninfo"].endswith(
        "user=me"
    )
    assert secret not in runs.load("mine").observations.to_json()


@pytest.mark.parametrize("keyword", sorted(credentials.SECRETS))
def test_no_value_that_libpq_calls_a_secret_is_stored(keyword):
    kept = runs.scrub(
        {
            keyword: "hunter2",
            "url": f"postgresql://h/b?{keyword}=hunter2&user=me",
            "conninfo": f"host=h {keyword} = 'hunter2 x' user=me",
        }
    )
    assert kept == {
        keyword: "***",
        "url": f"postgresql://h/b?{keyword}=***&user=me",
        "conninfo": f"host=h {keyword} = *** user=me",
    }


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
        "a": 1.5,
        "b": None,
        "c": True,
        "url": "http://h:5432/x",
        "guest": "postgresql://me@h:5432/b",
        "keys": "a token, a key=1",
        "mail": "a@b",
        "n": np.int64(3),
    }
    assert runs.scrub(innocent) == innocent and type(runs.scrub(innocent)["n"]) is int
    assert runs.scrub({"x": float("inf"), "p": Path("/a")}) == {"x": "inf", "p": "/a"}


def test_compare_two_runs():
    finished_run("a", np.arange(10, 17), scale=2.0)
    finished_run(
        "b", np.arange(10, 17), environment={"machine": {"cores": 8}, "server": {"version": "18.6"}}
    )
    with start("b", "hot") as extra:
        observe(extra)
    frame = runs.compare("a", runs.load("b"))
    tps, reads = (
        frame.loc[("tp1", "ladder", "a", "tps")],
        frame.loc[("tp1", "ladder", "a", "reads")],
    )
    assert len(frame) == 2  # hot has no partner
    assert (tps.a, tps.b, tps.ratio, tps.unit, tps.n_a) == (26, 13, 2, "1/s", 7)
    assert tps.low < 2 < tps.high and tps.differs and not reads.differs
    difference = runs.environment_differences("a", "b")
    assert difference.loc[("tp1", "machine.cores")].tolist() == ["2", "8"] and len(difference) == 1


def test_compare_gives_no_interval_for_few_blocks_or_other_units():
    finished_run("a", [1, 2, 3, 4])
    finished_run("b", [1, 2, 3, 4])
    row = runs.compare("a", "b").loc[("tp1", "ladder", "a", "tps")]
    assert row.ratio == 1 and np.isnan(row.low) and not row.differs
    with start("c") as run:
        run.observe(
            "ladder",
            "a",
            0,
            {"tps": 5},
            units={"tps": "1/min"},
            seed=1,
            position=0,
            started_at="now",
        )
    row = runs.compare("a", "c").loc[("tp1", "ladder", "a", "tps")]
    assert row.unit == "1/s / 1/min" and np.isnan(row.ratio)


def test_changed_verdicts_come_with_what_may_explain_them():
    finished_run("a")
    with start("b", environment={"machine": {"cores": 8}, "server": {"version": "18.6"}}) as run:
        run.add_verdict({"claim": "lai-059", "verdict": "holds"})
        run.add_verdict(
            {"claim": "lai-059", "verdict": "reversed"}
        )  # judged again: the later counts
        run.add_verdict({"claim": "lai-060", "verdict": "fixed"})
    changed = runs.verdict_changes("a", "b")
    assert changed.loc["lai-059", ["a", "b", "environment"]].tolist() == [
        "holds",
        "reversed",
        "machine.cores: 2 / 8",
    ]
    assert changed.loc["lai-060", "a"] == ""
    assert runs.verdict_changes("a", "a").empty and runs.environment_differences("a", "a").empty
