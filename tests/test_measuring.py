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
from pgrerun.lab.instruments import off_cpu, perf, pgbench
from pgrerun.lab.instruments.pgbench import PgbenchResult
from pgrerun.lab.models import repeated_runs
from pgrerun.lab.server import bundled
from pgrerun.lab.testbed import Block, Testbed
from pgrerun.parameters import chapter_parameters
from tests.judging import judged, word

TINY = {"pairs": 5, "clients": 2, "milliseconds": 50, "blocks": 8, "seconds": 0.5, "resamples": 50}
BLOCK = Block(0, 1, 0)
SLOT = 0.05  # seconds


@pytest.fixture(scope="module")
def bed():
    kept: dict[str, list[dict]] = {}
    found = Testbed(
        chapter_parameters("measuring", TINY), bundled(), rows=lambda name: kept.get(name, [])
    )
    found.kept = kept
    yield found
    found.close()


def measured(bed, wanted):
    """The rows of an experiment, kept as a notebook keeps them."""
    kept = bed.kept[wanted.name] = []
    for row in bed.measure(wanted, {}):
        kept.append(row)
    return kept


# ---- planted effects and repeats


def noise(spread: float, size: int = 400) -> np.ndarray:
    return np.random.default_rng(7).lognormal(0, spread, size)


def test_planted_scans_count_exactly_as_many_tuples_more(bed):
    counted = [row["counted"] for row in measured(bed, aa_runs.planted)]
    assert counted == [20_000, 20_000, 20_400, 21_000, 22_000]


def test_equal_variants_raise_few_alarms_and_planted_effects_are_found_in_quiet():
    low, high = aa_runs.drawn_intervals(noise(0.02), 11, 300, seed=1).T
    assert np.mean((low > 1) | (high < 1)) <= 0.08  # 5 % and three standard errors of 300
    assert np.mean(low * 1.05 > 1) > 0.95 and np.mean(low * 1.02 > 1) > np.mean(low > 1)


def test_a_biased_recording_does_not_pass_for_noise():
    """The equal variants are called by chance: a ratio off 1 is noise in both directions."""
    low, _ = aa_runs.drawn_intervals(1.3 * noise(0.001), 11, 100, seed=1).T
    assert np.mean(low > 1) < 0.1


def test_power_and_repeats_are_drawn_from_the_recorded_runs(bed):
    assert len(measured(bed, aa_runs.twins)) == 8 * len(aa_runs.VARIANTS)
    power = pd.DataFrame(measured(bed, aa_runs.power))
    least = power[power["effect"] == 1].sort_values("pairs")["least"]
    assert least.iloc[0] >= least.iloc[-1] > 1, "more pairs find smaller effects"
    assert power["found"].between(power["low"], power["high"]).all()
    spoilt = pd.DataFrame(measured(bed, aa_runs.spoilt_runs))
    assert (spoilt.loc[spoilt["repeats"] == 2, "share"] == 0).all()


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


def runs_of(cycles: int) -> list[dict]:
    """Runs of both loads, of which a write test swings and needs to last twice as much."""
    return [
        {"load": load, "block": block, "swing": much, "length": 60 * much, "cycles": cycles}
        for block in range(7)
        for load, much in ((over_time.READS, 0.1 + block / 1000), (over_time.WRITES, 0.2))
    ]


@pytest.mark.parametrize("claim", ["haas-070", "haas-072"])
@pytest.mark.parametrize(("cycles", "expected"), [(2, "holds"), (0, "not tested here")])
def test_cycles_made_short_on_purpose_are_no_steady_state(claim, cycles, expected):
    assert word(claim, "measuring", over_time=runs_of(cycles=cycles)) == expected


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


def profile(load: str, tps: float, lock_code: float, lock_sleeps: float) -> list[dict]:
    def part(instrument: str, name: str, share: float) -> dict:
        ends = {"share": share, "low": share - 0.01, "high": share + 0.01}
        return {"load": load, "instrument": instrument, "part": name, **ends}

    return [
        {"load": load, "instrument": "pgbench", "part": "throughput", "tps": tps},
        part(lock_waits.PROFILE, lock_waits.IN_MANAGER, lock_code),
        part(lock_waits.SWITCHES, lock_waits.HEAVYWEIGHT, lock_sleeps),
    ]


@pytest.mark.parametrize(
    ("queued", "said"),
    [
        ((500, 0.02, 0.4), "holds"),
        ((900, 0.02, 0.4), "holds"),  # that waiting costs throughput isn't what is claimed
        ((500, 0.30, 0.4), "partly"),
        ((500, 0.02, 0.0), "partly"),
        ((500, 0.11, 0.4), "inconclusive"),
        ((500, 0.30, 0.0), "not so"),
    ],
)
def test_profile_facts_can_fail_one_by_one(queued, said):
    rows = profile(lock_waits.FREE, 1000, 0.01, 0.0) + profile(lock_waits.QUEUED, *queued)
    assert word("haas-076", "measuring", profiles=rows) == said


CHAINS = pd.DataFrame({"chain": [("LockAcquire",)], "samples": [50]})
TOO_LATE = ServerError("the processes are gone")


def profiled(bed, monkeypatch, load, *samples):
    """The rows of a profile where perf's samples are these, one after the other."""
    sample = Mock(side_effect=samples)
    monkeypatch.setattr(perf, "sample", sample)
    monkeypatch.setattr(off_cpu, "sample_stacks", lambda pids, seconds: CHAINS)
    loads.create(bed.server, "counted", "relations.counted", clients=2)
    return list(lock_waits.profile(bed, load)), sample


def test_profiles_that_hold_next_to_nothing_are_no_profiles(sampling, bed, monkeypatch):
    """An idle instrument would otherwise say that nobody is in the lock manager."""
    nothing = pd.DataFrame({"symbol": ["x"], "samples": [3]})
    with pytest.raises(CannotMeasure, match="samples"):
        profiled(bed, monkeypatch, lock_waits.FREE, *[nothing] * 9)


def test_a_profiler_that_came_too_late_is_given_a_longer_run(bed, monkeypatch):
    many = pd.DataFrame({"symbol": ["LockAcquire", "x"], "samples": [25, 75]})
    rows, sample = profiled(bed, monkeypatch, lock_waits.QUEUED, TOO_LATE, many)
    assert [len(called.args[0]) for called in sample.call_args_list] == [2, 2]
    shares = {row["part"]: row.get("share") for row in rows}
    assert shares[lock_waits.IN_MANAGER] == 0.25


@pytest.mark.parametrize(("milliseconds", "expected"), [(5000, "holds"), (50, "not tested here")])
def test_gprof_and_perf_are_compared_on_builds_of_2012(milliseconds, expected):
    times = {observers.UNWATCHED: 1, observers.PERF: 1.01, observers.GPROF: 2}
    rows = [
        {"profiler": name, "block": n, "time": time + n / 1000, "milliseconds": milliseconds}
        for n in range(7)
        for name, time in times.items()
    ]
    assert word("haas-075", "measuring", profilers_of_2012=rows) == expected


# ---- lightweight locks


@pytest.mark.parametrize(
    ("views", "counted", "said"), [(0, 42, "holds"), (9, 42, "not so"), (0, 0, "inconclusive")]
)
def test_views_of_2012_hide_a_wait_only_where_somebody_waits(views, counted, said):
    today = {"server": lock_waits.TODAY, "lock": lock_waits.TOTAL, "instrument": lock_waits.VIEWS}
    build = {"server": "9.2-lwlock-stats", "lock": lock_waits.TOTAL}
    rows = [
        today | {"waits": 9, "spins": 0, "taken": 0},
        build | {"instrument": lock_waits.VIEWS, "waits": views},
        build | {"instrument": lock_waits.STATS, "lock": "lock 7", "waits": counted},
    ]
    found = judged("haas-074", "measuring", lightweight_locks=rows)
    assert found.verdict == said
    assert {str(beside.verdict) for beside in found.beside.values()} == {"partly"}


# ---- artificial loads, mechanisms


@pytest.mark.parametrize("how", observers.LOGS.values(), ids=list(observers.LOGS))
def test_the_log_is_written_and_removed(bed, monkeypatch, how):
    lookups = loads.Load(
        bed.server, "", loads.READ, 2, {"variables": loads.bank(bed.server, 2).variables}
    )
    before, written, run = set(bed.server.scratch.iterdir()), [], pgbench.run

    def watched(*arguments, **options):
        done = run(*arguments, **options)
        new = set(bed.server.scratch.iterdir()) - before
        written.extend(path for folder in new for path in folder.glob("log*"))
        return done

    monkeypatch.setattr(pgbench, "run", watched)
    assert observers.logged_lookups(lookups, 1000, how, BLOCK)["processor"] > 0
    assert set(bed.server.scratch.iterdir()) == before and bool(written) == bool(how)


# ---- values that can't be


@pytest.mark.parametrize("tps", [0.0, -1.0, math.inf, math.nan])
def test_a_throughput_that_cannot_be_is_no_number(bed, monkeypatch, tps):
    reported = PgbenchResult(tps, 10, 1.0, failed=0, log=None)
    monkeypatch.setattr(pgbench, "run", lambda *arguments, **options: reported)
    running = loads.Load(bed.server, "SELECT 1;")
    assert math.isnan(running.times(10, BLOCK)["time"])
    with pytest.raises(CannotMeasure, match="can't be"):
        running.lasting(50, seed=1)
