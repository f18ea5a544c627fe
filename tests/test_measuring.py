"""The chapter `measuring`: what is drawn from noise of known kind, and what its rules say."""

import math
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from pgrerun.chapters.measuring import loads
from pgrerun.chapters.measuring.experiments import (
    aa_runs,
    lock_waits,
    observers,
    over_time,
)
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import callgrind, off_cpu, perf, pgbench
from pgrerun.lab.instruments.pgbench import PgbenchResult
from pgrerun.lab.models import repeated_runs
from pgrerun.lab.testbed import Block
from tests.judging import UNTESTED, counted, measured, timed, word

CHAPTER = "measuring"
SMALL = {"pairs": 5, "clients": 2, "milliseconds": 50, "blocks": 8, "seconds": 0.5, "resamples": 50}
BLOCK = Block(0, 1, 0)
SLOT = 0.05  # seconds


# ---- repeats


def noise(spread: float, size: int = 400) -> np.ndarray:
    return np.random.default_rng(7).lognormal(0, spread, size)


def test_equal_variants_raise_few_alarms_and_planted_effects_are_found_in_quiet():
    low, high = aa_runs.drawn_intervals(noise(0.02), 11, 300, seed=1).T
    assert np.mean((low > 1) | (high < 1)) <= 0.08  # 5 % and three standard errors of 300
    assert np.mean(low * 1.05 > 1) > 0.95 and np.mean(low * 1.02 > 1) > np.mean(low > 1)


def test_a_biased_recording_does_not_pass_for_noise():
    """The equal variants are called by chance: a ratio off 1 is noise in both directions."""
    low, _ = aa_runs.drawn_intervals(1.3 * noise(0.001), 11, 100, seed=1).T
    assert np.mean(low > 1) < 0.1


@pytest.mark.parametrize("time", [0.0, None])
def test_from_times_that_cannot_be_nothing_is_drawn(bed, time):
    row = {"block": 0, "disturbed": "", "left_out": False}
    kept = [row | {"variant": aa_runs.ONE, "time": 1.0}]
    kept += [row | {"variant": aa_runs.OTHER, "time": time}] if time is not None else []
    with pytest.raises(CannotMeasure, match="nothing is drawn"):
        aa_runs.equal_runs(SimpleNamespace(rows_of=lambda name: kept))


def test_two_repeats_never_name_the_spoilt_one_and_three_do_in_quiet():
    runs = noise(0.005)
    shares = {n: repeated_runs.noticed(runs, n, 1.5, 500, seed=1) for n in (2, 3, 7)}
    assert shares[2] == {repeated_runs.BY_DIXON: 0, repeated_runs.BY_NOISE: 0}
    assert shares[3][repeated_runs.BY_NOISE] > 0.8 and shares[7][repeated_runs.BY_DIXON] > 0.9
    # by themselves, and where the others don't agree closely, three name it rarely
    noisy = repeated_runs.noticed(noise(0.05), 3, 1.25, 500, seed=1)
    assert noisy[repeated_runs.BY_DIXON] < 0.5


def test_dixons_test_knows_only_its_first_value():
    drawn = np.array(
        [
            [1.0, 1.01, 1.02, 1.0, 9.0],
            [9.0, 1.01, 1.02, 1.0, 1.0],
            [0.1, 1.01, 1.02, 1.0, 1.0],
            [1.0, 1.0, 1.0, 1.0, 1.0],
        ]
    )
    assert repeated_runs.names_first(drawn).tolist() == [False, True, True, False]


def test_a_neighbour_comes_halfway_and_goes(bed, monkeypatch):
    """Its programs are counted, not what they do to times: the machine may be crowded anyway."""
    started, running = [], aa_runs.subprocess.Popen

    def start(command, *arguments, **options):
        process = running(command, *arguments, **options)
        started.extend([process] if "while True: pass" in command else [])
        return process

    monkeypatch.setattr(aa_runs.subprocess, "Popen", start)
    rows = pd.DataFrame(measured(bed, aa_runs.neighbour))
    late = rows["after_over_before"].notna()
    assert (late == ((rows["variant"] == aa_runs.SECOND) & (rows["block"] >= aa_runs.HALF))).all()
    assert len(started) >= aa_runs.CROWD and all(one.poll() is not None for one in started)


# ---- throughput over time


def test_a_run_over_time_ends_with_its_quickest_client():
    ends = {0: np.arange(1, 11), 1: np.arange(2, 21, 2)}
    log = pd.concat(pd.DataFrame({"client": one, "time_s": at}) for one, at in ends.items())
    found = over_time.of_all_clients(log.sort_values("time_s", ignore_index=True))
    assert found.tolist() == sorted([*range(1, 11), *range(2, 11, 2)])


def test_slots_count_every_transaction_of_whole_slots():
    found = over_time.slots(np.arange(0, 2, 0.001) + 100.0, SLOT)
    assert found["in_slot"].between(975, 1025).all() and len(found) == 39


def test_a_wave_needs_longer_runs_than_independent_noise():
    rng = np.random.default_rng(3)
    independent = 1000 + 50 * rng.standard_normal(400)
    wave = 1000 + 50 * np.sqrt(2) * np.sin(np.arange(400) / 20)
    assert over_time.swing(independent) == pytest.approx(over_time.swing(wave), rel=0.1)
    assert over_time.length(wave, SLOT) > 3 * over_time.length(independent, SLOT)


@pytest.mark.parametrize("ends", [[0.0], [0.0, 0.01], [0.0, 0.06]])
def test_a_run_too_short_for_slots_has_neither_swing_nor_length(ends):
    throughput = over_time.slots(np.array(ends), SLOT)["in_slot"].to_numpy()
    assert math.isnan(over_time.swing(throughput))
    assert math.isnan(over_time.length(throughput, SLOT))


# ---- profiles


SCRIPT = """postgres
\t    ffffffff8 schedule
\t    7f1 epoll_wait
\t    55a ProcSleep
\t    55b LockAcquireExtended
\t    55c LockAcquire (inlined)
\t    55d heap_update

postgres
\t    ffffffff8 schedule
\t    55f LWLockAcquireOrWait
\t    55e XLogFlush

postgres
\t    ffffffff8 exit_to_user_mode_loop
"""


def test_chains_are_read_and_the_innermost_known_function_decides():
    chains = off_cpu.parse_stacks(SCRIPT)
    known = ("schedule", "LWLockAcquireOrWait", "XLogFlush")
    assert chains["samples"].sum() == 3 and known in list(chains["chain"])
    shares = off_cpu.share_by_cause(chains, off_cpu.CAUSES)
    causes = [lock_waits.HEAVYWEIGHT, lock_waits.LIGHTWEIGHT, "its turn on a processor"]
    assert dict(shares) == pytest.approx(dict.fromkeys(causes, 1 / 3))
    assert off_cpu.share_by_cause(off_cpu.parse_stacks(""), off_cpu.CAUSES).empty


def test_a_profile_with_columns_for_branches_is_read():
    """perf 6.1 prints two of them after the symbol, if only as dashes."""
    found = perf.read_samples(
        "50.00%|10|postgres|postgres|[.] LockAcquire   |-      -  "
        " \n50.00%|10|postgres|[kernel.kallsyms]|[k] schedule\n"
    )
    assert set(found["symbol"]) == {"LockAcquire", "schedule"}


def profiled(bed, monkeypatch, load, *samples):
    """The rows of a profile where perf's samples are these, one after the other."""
    chains = pd.DataFrame({"chain": [("LockAcquire",)], "samples": [50]})
    sample = Mock(side_effect=samples)
    monkeypatch.setattr(perf, "sample", sample)
    monkeypatch.setattr(off_cpu, "sample_stacks", lambda pids, seconds: chains)
    return list(lock_waits.profile(bed, load)), sample


def test_profiles_that_hold_next_to_nothing_are_no_profiles(bed, monkeypatch):
    """An idle instrument would otherwise say that nobody is in the lock manager."""
    monkeypatch.setattr(pgbench, "run", Mock())  # all tries would take a quarter of a minute
    nothing = pd.DataFrame({"dso": ["postgres"], "symbol": ["x"], "samples": [3]})
    with pytest.raises(CannotMeasure, match="samples"):
        profiled(bed, monkeypatch, lock_waits.FREE, *[nothing] * 9)


def test_a_profiler_that_came_too_late_is_given_a_longer_run(bed, monkeypatch):
    late = ServerError("the processes are gone")
    programs = ["postgres", "[kernel.kallsyms]", "[vdso]"]
    many = pd.DataFrame({"dso": programs, "symbol": "x", "samples": [25, 60, 15]})
    rows, sample = profiled(bed, monkeypatch, lock_waits.QUEUED, late, many)
    assert [len(called.args[0]) for called in sample.call_args_list] == [2, 2]
    shares = {row["part"]: row.get("share") for row in rows}
    assert shares[lock_waits.POSTGRES] == 0.25 and shares[lock_waits.KERNEL] == 0.6


def test_profiles_share_what_is_in_both_whatever_their_length():
    one = pd.Series({"heap_update": 12_000, "XLogInsert": 8000})
    assert lock_waits.overlap(one, pd.Series({"schedule": 30_000}), seed=1) == 0
    longer = pd.Series({"heap_update": 60_000, "XLogInsert": 40_000})
    assert lock_waits.overlap(one, longer, seed=1) == pytest.approx(1, abs=0.03)
    waiting = pd.Series({"heap_update": 6000, "XLogInsert": 4000, "LockAcquire": 10_000})
    assert lock_waits.overlap(one, waiting, seed=1) == pytest.approx(0.5, abs=0.03)


def test_a_profile_by_function_is_as_long_as_it_is_compared(bed, monkeypatch):
    """And what perf can't name counts as its program's."""
    few = pd.DataFrame({"dso": "postgres", "symbol": ["x"], "samples": lock_waits.DRAWN - 1})
    names, programs = ["0x01", "0x02", "x"], ["[kernel.kallsyms]"] * 2 + ["postgres"]
    many = pd.DataFrame({"dso": programs, "symbol": names, "samples": lock_waits.DRAWN})
    monkeypatch.setattr(perf, "sample", Mock(side_effect=[few, many]))
    monkeypatch.setattr(pgbench, "run", Mock())
    found = lock_waits.by_function(bed, lock_waits.FREE)
    assert found.to_dict() == {"[kernel.kallsyms]": 2 * lock_waits.DRAWN, "x": lock_waits.DRAWN}


# ---- artificial loads


@pytest.mark.parametrize("how", observers.LOGS.values(), ids=list(observers.LOGS))
def test_the_log_is_written_out_meanwhile_and_removed(bed, how):
    variables = loads.bank(bed.server, 2).variables
    lookups = loads.Load(bed.server, "", loads.READ, 2, {"variables": variables})
    before = set(bed.server.scratch.iterdir())
    found = observers.logged_lookups(lookups, 20_000, how, BLOCK, every=0.01)
    assert set(bed.server.scratch.iterdir()) == before
    assert found["throughput"] > 0 and (found["bytes"] > 20) == bool(how)
    assert 0 < found["written"] <= 1 if how else "written" not in found


def test_what_ends_before_the_log_is_written_out_has_nothing_of_it_on_the_disk(tmp_path):
    with observers.written_out(tmp_path, every=60) as written:
        (tmp_path / "log").write_text("a line\n")
    assert written == [0]


@pytest.mark.skipif(callgrind.unavailable() is not None, reason=str(callgrind.unavailable()))
def test_a_line_of_the_log_takes_the_same_in_every_run(bed):
    first, again = (measured(bed, observers.log_lines) for _ in range(2))
    (plain, _), (logged, size) = ((row["instructions"], row["bytes"]) for row in first)
    assert first[0]["bytes"] == 0 and 20 < size < 60
    lines = [rows[1]["instructions"] - rows[0]["instructions"] for rows in (first, again)]
    # an answer that comes in two parts is waited for twice, which is the schedule's
    assert plain < logged and lines[1] == pytest.approx(lines[0], rel=0.25)


@pytest.mark.parametrize("tps", [0.0, -1.0, math.inf, math.nan])
def test_a_throughput_that_cannot_be_is_no_number(bed, monkeypatch, tps):
    reported = PgbenchResult(tps, 10, 1.0, failed=0, log=None)
    monkeypatch.setattr(pgbench, "run", lambda *arguments, **options: reported)
    running = loads.Load(bed.server, "SELECT 1;")
    assert math.isnan(running.times(10, BLOCK)["time"])
    with pytest.raises(CannotMeasure, match="can't be"):
        running.lasting(50, seed=1)


# ---- what the rules make of rows

OVER_TIME = """
load    swing  length  cycles
reads   {1}    6.0     {0}
writes  0.3    12.0    {0}
"""

# Waits of 9.2 that its views show, and those that its processes counted; today's views show some.
LIGHTWEIGHT_LOCKS = """
server                 lock          instrument    waits  spins  taken
the server under test  all together  views         9      0      0
9.2-lwlock-stats       all together  views         {0}    -      -
9.2-lwlock-stats       lock 7        LWLOCK_STATS  {1}    -      -
9.2-lwlock-stats       lock 8        LWLOCK_STATS  {2}    -      -
"""

# Throughput with the log by 1000 without, and the share of it that is on the disk in time.
LOGS = """
logged    throughput  written  milliseconds
none      1000.0      -        5000
all (-l)  {0}         {1}      5000
"""

PROFILERS = """
profiler                      time  milliseconds
no profiler                   1.0   {0}
perf -g at 1,000 Hz           1.01  {0}
perf -g at its own frequency  1.1   {0}
gprof                         2.0   {0}
"""


OVERLAP = """
compared        overlap
both loads      {0}
one load twice  0.8
"""


def profiles(tps, in_common, lock_sleeps, **given):
    """Throughput of queued sessions by a thousand of free ones, the share of samples that profiles
    of both loads have in common, and of sleeps for the lock, of which free sessions have none.
    """
    found = [
        {"load": load, "instrument": "pgbench", "part": "throughput", "tps": throughput}
        for load, throughput in ((lock_waits.FREE, 1000), (lock_waits.QUEUED, tps))
    ]
    found += [
        {"load": load, "instrument": lock_waits.SWITCHES, "part": lock_waits.HEAVYWEIGHT}
        | {"share": share, "low": share - 0.01, "high": share + 0.01}
        for load, share in ((lock_waits.FREE, 0.0), (lock_waits.QUEUED, lock_sleeps))
    ]
    return {"profiles": found, "profile_overlap": timed(OVERLAP, in_common, **given)}


@pytest.mark.parametrize(
    ("claim", "tables", "said"),
    [
        # cycles made short on purpose are no steady state
        ("haas-070", {"over_time": timed(OVER_TIME, 3, 0.05)}, "holds"),
        ("haas-070", {"over_time": timed(OVER_TIME, 2, 0.05)}, UNTESTED),
        ("haas-072", {"over_time": timed(OVER_TIME, 3, 0.05)}, "holds"),
        ("haas-072", {"over_time": timed(OVER_TIME, 3, 0.12)}, "partly"),
        ("haas-072", {"over_time": timed(OVER_TIME, 3, 0.2)}, "not so"),
        ("haas-072", {"over_time": timed(OVER_TIME, 2, 0.05)}, UNTESTED),
        # a log that stays in memory while its run lasts isn't the talk's
        ("haas-073", {"logs": timed(LOGS, 900.0, 0.9)}, "holds"),
        ("haas-073", {"logs": timed(LOGS, 1000.0, 0.9)}, "no effect"),
        ("haas-073", {"logs": timed(LOGS, 900.0, 0.1)}, UNTESTED),
        # views of 2012 hide a wait only where somebody waits
        ("haas-074", {"lightweight_locks": counted(LIGHTWEIGHT_LOCKS, 0, 2, 42)}, "holds"),
        ("haas-074", {"lightweight_locks": counted(LIGHTWEIGHT_LOCKS, 0, 42, 2)}, "not so"),
        ("haas-074", {"lightweight_locks": counted(LIGHTWEIGHT_LOCKS, 9, 2, 42)}, "not so"),
        ("haas-074", {"lightweight_locks": counted(LIGHTWEIGHT_LOCKS, 0, 0, 0)}, "inconclusive"),
        ("haas-075", {"profilers_of_2012": timed(PROFILERS, 5000)}, "holds"),
        ("haas-075", {"profilers_of_2012": timed(PROFILERS, 50)}, UNTESTED),
        ("haas-076", profiles(500, 0.79, 0.4), "holds"),
        # that waiting costs throughput isn't what is claimed
        ("haas-076", profiles(900, 0.79, 0.4), "holds"),
        ("haas-076", profiles(500, 0.7, 0.4), "partly"),
        ("haas-076", profiles(500, 0.79, 0.0), "partly"),
        ("haas-076", profiles(500, 0.79, 0.105), "inconclusive"),
        # one pair, as at profile ci, tells nothing of profiles
        ("haas-076", profiles(500, 0.79, 0.4, blocks=1), "inconclusive"),
        ("haas-076", profiles(500, 0.7, 0.0), "not so"),
    ],
)
def test_what_the_rules_make_of_rows(claim, tables, said):
    assert word(claim, "measuring", **tables) == said
