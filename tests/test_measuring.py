"""The chapter `measuring`: statistics on noise of known kind, readings of logs, planted effects."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
import pytest

from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring import charts, evidence, sentences
from pgrerun.chapters.measuring.experiments import (
    aa_runs,
    load,
    lock_waits,
    mechanisms,
    observers,
    over_time,
    workloads,
)
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters, perf, pgbench, sleeps
from pgrerun.lab.instruments.pgbench import PgbenchResult
from pgrerun.lab.models import repeated_runs
from pgrerun.record import claims, statistics, verdicts
from tests.servers import small_chapter

TINY = {
    "pairs": 5,
    "clients": 2,
    "milliseconds": 50,
    "blocks": 8,
    "seconds": 0.5,
    "resamples": 50,
}
BLOCK = Block(0, 1, 0)
SLOT = 0.05  # seconds


@pytest.fixture(scope="module")
def chapter(tmp_path_factory) -> Iterator[Chapter]:
    with small_chapter("measuring", tmp_path_factory.mktemp("runs"), **TINY) as chapter:
        yield chapter


# ---- planted effects


def test_planted_scans_count_exactly_as_many_tuples_more(chapter):
    found = aa_runs.planted(chapter).set_index("variant")["tuples counted"]
    assert found[aa_runs.ONE] == found[aa_runs.OTHER] == load.TUPLES
    assert list(found)[2:] == [20_400, 21_000, 22_000]


def noise(spread: float, size: int = 400) -> np.ndarray:
    return np.random.default_rng(7).lognormal(0, spread, size)


def test_equal_variants_raise_few_alarms_and_planted_effects_are_found_in_quiet():
    low, high = aa_runs.drawn_intervals(noise(0.02), 11, 300, seed=1).T
    assert np.mean((low > 1) | (high < 1)) <= 0.08  # 5 % and three standard errors of 300
    assert np.mean(low * 1.05 > 1) > 0.95 and np.mean(low * 1.02 > 1) > np.mean(low > 1)


def test_a_biased_recording_does_not_pass_for_noise():
    """The equal variants are called by chance: a ratio off 1 is noise in both directions."""
    low, high = aa_runs.drawn_intervals(1.3 * noise(0.001), 11, 100, seed=1).T
    assert np.mean(low > 1) < 0.1


def test_five_pairs_miss_one_in_sixteen():
    low, high = aa_runs.drawn_intervals(noise(0.02), 5, 600, seed=1).T
    share = statistics.share(int(((low > 1) | (high < 1)).sum()), 600)
    assert share.low <= evidence.unavoidable(5) == 0.0625 <= share.high


def test_more_pairs_find_smaller_effects():
    reach = [aa_runs.smallest(noise(0.05), pairs, 100, seed=1) for pairs in (5, 11, 41)]
    assert reach[0] > reach[1] > reach[2] > 1


def test_pairs_needed_is_missing_where_nothing_suffices():
    found = pd.DataFrame(
        {"effect": [1.0, 1.02, 1.1, 1.1], "pairs": [5, 5, 5, 7], "found": [0.9, 0.1, 0.85, 0.9]}
    )
    needed = evidence.pairs_needed(found).set_index("effect")
    assert needed.loc[1.1].tolist() == [0, 5] and needed.loc[[1.02, 1.05]].isna().all(axis=None)


def test_an_effect_is_found_by_a_number_of_pairs_and_not_by_the_next_smaller_one(recorded):
    found = pd.DataFrame(
        {"effect": [1.0, 1.02, 1.1, 1.1], "pairs": [5, 5, 5, 7], "found": [0.1, 0.1, 0.7, 0.9]}
    )
    assert evidence.pairs_needed(found).set_index("effect").loc[1.1].tolist() == [5, 7]
    assert (
        "one of 10 % by 7 pairs, and not by 5"
        in charts.power(found.assign(low=0.0, high=1.0)).caption
    )
    scans = dict.fromkeys(aa_runs.VARIANTS, 1.0)
    record(recorded, "twins", scans, 0.05)
    said = sentences.needed(recorded, found)
    assert "one of 10 % takes more than 5 pairs and at most 7." in said
    assert "an effect of 2 % takes more than 7 pairs;" in said


# ---- repeats


def test_two_repeats_never_name_the_spoilt_one_and_three_do_in_quiet():
    runs = noise(0.005)
    shares = {n: repeated_runs.noticed(runs, n, 1.5, 500, seed=1) for n in (2, 3, 7)}
    assert shares[2] == {repeated_runs.BY_DIXON: 0, repeated_runs.BY_NOISE: 0}
    assert shares[3][repeated_runs.BY_NOISE] > 0.8 and shares[7][repeated_runs.BY_DIXON] > 0.9


def test_three_repeats_by_themselves_need_the_others_to_agree_closely():
    runs = noise(0.05)
    assert repeated_runs.noticed(runs, 3, 1.25, 500, seed=1)[repeated_runs.BY_DIXON] < 0.5


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


def word(claim: str, found: object) -> str:
    """The word that the ledger's predicate gives this evidence."""
    return str(verdicts.judge(claims.ledger()[claim], found).verdict)


@pytest.mark.parametrize(
    "third, said", [(0.9, "holds"), (0.5, "gone"), (evidence.ENOUGH, "inconclusive")]
)
def test_the_advice_on_repeats_is_judged_by_what_three_name(chapter, third, said):
    rows = [
        ("25 % off", n, rule, share)
        for rule in (repeated_runs.BY_DIXON, repeated_runs.BY_NOISE)
        for n, share in ((2, 0.0), (3, third))
    ]
    noticed = pd.DataFrame(rows, columns=["spoilt", "repeats", "rule", "share"])
    found = evidence.repeat_facts(chapter, noticed)
    assert word("haas-071", found) == "not testable here"  # advice is an opinion
    drawn = claims.ledger()["haas-071"].model_copy(update={"basis": claims.Basis.SIMULATED})
    assert str(verdicts.judge(drawn, found).verdict) == said


# ---- throughput over time


def test_slots_count_every_transaction_of_whole_slots():
    found = over_time.slots(np.arange(0, 2, 0.001) + 100.0, SLOT)
    assert found["throughput"].between(975, 1025).all() and len(found) == 39


def test_a_wave_needs_longer_runs_than_independent_noise():
    rng = np.random.default_rng(3)
    independent = 1000 + 50 * rng.standard_normal(400)
    wave = 1000 + 50 * np.sqrt(2) * np.sin(np.arange(400) / 20)
    assert over_time.swing(independent) == pytest.approx(over_time.swing(wave), rel=0.1)
    assert over_time.length(wave, SLOT) > 3 * over_time.length(independent, SLOT)


def test_what_follows_a_checkpoint_is_compared_with_the_rest():
    rate = np.full(20, 100.0)
    rate[3:9] = 50
    shown = pd.DataFrame(
        {
            "time": np.arange(20) / 10,
            "throughput": rate,
            "wal": 300 - rate,
            "load": "writes",
            "run": np.arange(20) // 10,
            "checkpoint": np.arange(20) == 3,
        }
    )
    assert evidence.after_checkpoints(shown) == {"checkpoints": 1, "throughput": 0.5, "wal": 1.25}
    nothing = evidence.after_checkpoints(shown.assign(checkpoint=False))
    assert nothing["checkpoints"] == 0 and math.isnan(nothing["throughput"])
    late = evidence.after_checkpoints(shown.assign(checkpoint=np.arange(20) == 9))
    assert late["throughput"] > 1, (
        "what the next run begins with follows no checkpoint of the last one's"
    )


def test_cycles_made_short_on_purpose_are_no_steady_state(tmp_path):
    watched = pd.DataFrame(
        {"throughput": 1.0, "wal": 1.0, "load": "writes", "run": 0, "checkpoint": [True] * 4}
    )
    for number, (seconds, cycles) in enumerate(((4.0, 0), (300.0, 3))):
        given = TINY | {"seconds": seconds}
        with small_chapter("measuring", tmp_path / str(number), **given) as chapter:
            assert evidence.cycles(chapter, watched) == cycles


def test_a_stretch_lies_within_one_run():
    frames = [
        pd.DataFrame({"throughput": np.full(9, level), "checkpoint": False})
        for level in (100.0, 110.0, 120.0, 130.0)
    ]
    shown = over_time.end_to_end(frames, SLOT).assign(load="reads")
    assert shown["time"].is_monotonic_increasing and shown["time"].max() == pytest.approx(35 * SLOT)
    found = evidence.spread_by_length(shown).set_index("length")["spread"]
    assert list(found.index) == pytest.approx([n * SLOT for n in (1, 2, 4, 8)])
    assert found.to_numpy() == pytest.approx(np.full(4, found.iloc[-1]), rel=0.15), (
        "runs differ, stretches of one run don't"
    )


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
    chains = sleeps.read(SCRIPT)
    assert chains["samples"].sum() == 3 and (
        "schedule",
        "LWLockAcquireOrWait",
        "XLogFlush",
    ) in list(chains["chain"])
    shares = sleeps.by_cause(chains, sleeps.CAUSES)
    assert {cause: round(share, 3) for cause, share in shares.items()} == dict.fromkeys(
        [lock_waits.HEAVYWEIGHT, lock_waits.LIGHTWEIGHT, "its turn on a processor"], 0.333
    )
    assert sleeps.by_cause(sleeps.read(""), sleeps.CAUSES).empty


def test_a_profile_with_columns_for_branches_is_read():
    """perf 6.1 prints two of them after the symbol, if only as dashes."""
    found = perf.read_samples(
        "50.00%|10|postgres|postgres|[.] LockAcquire   |-      -  "
        " \n50.00%|10|postgres|[kernel.kallsyms]|[k] schedule\n"
    )
    assert set(found["symbol"]) == {"LockAcquire", "schedule"}


def profile(tps: float, lock_code: float, lock_sleeps: float) -> lock_waits.Profile:
    code, asleep = (statistics.share(round(1000 * x), 1000) for x in (lock_code, lock_sleeps))
    nothing = pd.Series(dtype=float)
    return lock_waits.Profile(tps, code, asleep, nothing, nothing)


@pytest.mark.parametrize(
    "queued, said",
    [
        (profile(500, 0.02, 0.4), "holds"),
        (profile(900, 0.02, 0.4), "holds"),  # that waiting costs throughput isn't what is claimed
        (profile(500, 0.30, 0.4), "weaker"),
        (profile(500, 0.02, 0.0), "weaker"),
        (profile(500, 0.11, 0.4), "inconclusive"),
        (profile(500, 0.30, 0.0), "gone"),
    ],
)
def test_profile_facts_can_fail_one_by_one(queued, said):
    profiles = {lock_waits.FREE: profile(1000, 0.01, 0.0), lock_waits.QUEUED: queued}
    assert word("haas-076", evidence.profile_facts(profiles)) == said


def test_profiles_that_hold_next_to_nothing_are_no_profiles(chapter, monkeypatch):
    """An idle instrument would otherwise say that nobody is in the lock manager."""
    if perf.unavailable():
        pytest.skip(perf.unavailable())
    nothing = pd.DataFrame({"symbol": ["x"], "samples": [3]})
    monkeypatch.setattr(perf, "sample", lambda pids, seconds, frequency: nothing)
    monkeypatch.setattr(sleeps, "sample", lambda pids, seconds: sleeps.read(SCRIPT))
    load.create(chapter.server, "counted", "relations.counted", clients=2)
    with pytest.raises(CannotMeasure, match="samples"):
        lock_waits.profile(chapter, lock_waits.FREE)


def test_a_profiler_that_came_too_late_is_given_a_longer_run(chapter, monkeypatch):
    tried, many = [], pd.DataFrame({"symbol": ["LockAcquire", "x"], "samples": [25, 75]})

    def sample(pids, seconds, frequency):
        tried.append(list(pids))
        if len(tried) == 1:
            raise ServerError("the processes are gone")
        return many

    monkeypatch.setattr(perf, "sample", sample)
    chains = pd.DataFrame({"chain": [("LockAcquire",)], "samples": [50]})
    monkeypatch.setattr(sleeps, "sample", lambda pids, seconds: chains)
    load.create(chapter.server, "counted", "relations.counted", clients=2)
    seen = lock_waits.profile(chapter, lock_waits.QUEUED)
    assert [len(pids) for pids in tried] == [2, 2] and seen.lock_code.estimate == 0.25
    assert seen.asleep.estimate == 1
    assert seen.chains[lock_waits.HEAVYWEIGHT] == 1
    assert seen.events.sum() == pytest.approx(1)


def test_every_profiler_lets_the_scan_through(chapter):
    if perf.unavailable():
        pytest.skip(perf.unavailable())
    scan = load.scan(chapter.server)
    with observers.watchers(chapter.server) as watching:
        for name in observers.PROFILERS:
            assert observers.profiled(scan, 6, name, watching[name], BLOCK)["time"] > 0


def test_the_log_is_written_and_removed(chapter, monkeypatch):
    relations = load.bank(chapter.server, 2)
    lookups = load.Load(chapter.server, "", load.READ, 2, {"variables": relations.variables})
    before = set(chapter.server.scratch.iterdir())
    written = []
    run = pgbench.run

    def watched(*arguments, **options):
        done = run(*arguments, **options)
        new = set(chapter.server.scratch.iterdir()) - before
        written.append([path for folder in new for path in folder.glob("log*")])
        return done

    monkeypatch.setattr(pgbench, "run", watched)
    for options in observers.LOGS.values():
        assert observers.logged(lookups, 1000, options, BLOCK)["processor"] > 0
    assert set(chapter.server.scratch.iterdir()) == before
    assert [bool(paths) for paths in written] == [bool(how) for how in observers.LOGS.values()]


def test_todays_views_know_locks_and_spins_but_count_neither(chapter):
    assert list(evidence.tool_facts(chapter).values()) == [False, False, True]


# ---- artificial loads, axes, mechanisms


@pytest.mark.parametrize("kind", [workloads.EXTREME, workloads.PACED])
@pytest.mark.parametrize("change", workloads.CHANGES)
def test_every_script_runs(chapter, kind, change):
    done = workloads.changed(chapter, kind, change).run(8, seed=1)
    assert done.transactions == 8 and done.failed == 0


def test_waits_for_a_row_are_counted_under_either_load(chapter):
    workloads.changes(chapter)
    stalls = chapter.table("loads", "stalls")
    assert len(stalls.columns) == 4 and (stalls >= 0).all(axis=None)
    assert len(evidence.exaggerated(chapter)) == 2
    assert "latency" in charts.exaggerated(chapter).description


def test_an_index_helps_without_being_scanned(chapter):
    seen = mechanisms.index_scans(chapter).set_index("variant")
    assert seen["answer"].nunique() == 1
    assert "Nested Loop" in seen.at[mechanisms.BEFORE, "plan"]
    fixed = seen["plan"][[mechanisms.INDEXED, mechanisms.STATISTICS]]
    assert set(fixed) == {"Hash Join, Seq Scan"}
    assert (seen[mechanisms.SCANS] == 0).all()
    expected = seen["orders expected"]
    assert expected[mechanisms.BEFORE] < 10 < expected[mechanisms.INDEXED] / 100


def test_the_count_of_scans_can_rise(chapter):
    """Otherwise the chapter's zero would mean nothing."""
    mechanisms.index_scans(chapter)
    with chapter.server.connect() as connection:
        before = counters.counts(connection, mechanisms.INDEX)["scans"]
        load.SQL.run(connection, "orders.rare")
        assert counters.counts(connection, mechanisms.INDEX)["scans"] == before + 1


# ---- values that can't be


def reported(tps: float) -> PgbenchResult:
    return PgbenchResult(tps, 10, 1.0, None, 0, 0, None, None, None, "")


@pytest.mark.parametrize("tps", [0.0, -1.0, math.inf, math.nan])
def test_a_throughput_that_cannot_be_is_no_number(chapter, monkeypatch, tps):
    monkeypatch.setattr(pgbench, "run", lambda *arguments, **options: reported(tps))
    running = load.Load(chapter.server, "SELECT 1;")
    assert math.isnan(running.times(10, BLOCK)["time"])
    with pytest.raises(CannotMeasure, match="can't be"):
        running.lasting(50, seed=1)


@pytest.mark.parametrize("ends", [[0.0], [0.0, 0.01], [0.0, 0.06]])
def test_a_run_too_short_for_slots_has_neither_swing_nor_length(ends):
    throughput = over_time.slots(np.array(ends), SLOT)["throughput"].to_numpy()
    assert math.isnan(over_time.swing(throughput))
    assert math.isnan(over_time.length(throughput, SLOT))


def test_what_was_disturbed_throughout_is_set_aside_and_its_claims_with_it(tmp_path, monkeypatch):
    with small_chapter("measuring", tmp_path, **TINY) as chapter:
        monkeypatch.setattr(load, "rate", lambda done: math.nan)
        assert chapter.attempt(aa_runs.planted_differences) is None
        noticed = chapter.attempt(aa_runs.spoilt_runs)
        chapter.judge("haas-071", evidence.repeat_facts, noticed)
        watched = chapter.attempt(over_time.over_time)
        pair = over_time.WRITES, over_time.READS
        cycles = chapter.show(evidence.cycles, watched)
        regime = {"steady state": cycles}
        chapter.judge("haas-072", chapter.ratio, "over time", "swing", *pair, regime=regime)
        assert noticed is None and watched is None
        found = [judgement.verdict for judgement in chapter.evidence.judgements]
    assert found == [verdicts.Verdict.NOT_TESTABLE] * 2


def test_a_time_that_cannot_be_is_drawn_from_by_nobody(chapter, monkeypatch):
    time = pd.DataFrame({aa_runs.ONE: [1.0, 0.0], aa_runs.OTHER: [1.0, 1.0]})
    monkeypatch.setattr(chapter, "table", lambda experiment, metric: time)
    with pytest.raises(CannotMeasure, match="nothing is drawn"):
        aa_runs.power(chapter)


def test_the_caption_of_power_says_how_many_pairs_each_effect_needs():
    found = pd.DataFrame(
        [
            (effect, pairs, share, share - 0.02, share + 0.02)
            for effect, shares in ((1.0, (0.05, 0.04)), (1.02, (0.1, 0.37)), (1.1, (0.9, 1.0)))
            for pairs, share in zip((7, 41), shares)
        ]
        + [(1.05, 7, 0.4, 0.3, 0.5), (1.05, 41, 0.99, 0.9, 1.0)],
        columns=["effect", "pairs", "found", "low", "high"],
    )
    said = charts.power(found).caption
    assert "of 2 % not even by 41 pairs, which find it in 37 %; one of 5 % by 41 pairs" in said
    assert "of 10 % by 7 pairs" in said and "False alarms come in at most 5 %" in said


# ---- what captions say


@pytest.fixture
def recorded(tmp_path) -> Iterator[Chapter]:
    """A small chapter whose observations are made up."""
    with small_chapter("measuring", tmp_path, **TINY) as chapter:
        yield chapter


def record(chapter: Chapter, experiment: str, medians: dict[str, float], noise: float) -> None:
    """Times of variants: the first one's as given, the others' above and below by turns."""

    def measure(median: float, turn: int, block: Block) -> dict[str, float]:
        return {"time": median * (1 + noise * bool(turn)) ** (1 if block.index % 2 else -1)}

    variants = [
        Variant(name, partial(measure, median, turn))
        for turn, (name, median) in enumerate(medians.items())
    ]
    chapter.compare(experiment, variants, {"time": "ms"}, pairs=8, warmup=0, fixed=True)


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        (0.0, "all planted differences are found"),
        (0.07, "what is found is 10 % more tuples, and not 2 % more tuples and 5 % more tuples"),
        (0.2, "none of the planted differences is found"),
    ],
)
def test_the_caption_of_planted_differences_says_which_are_found(recorded, noise, said):
    planted = (1.0, 1.0, *aa_runs.EFFECTS)
    record(recorded, "twins", dict(zip(aa_runs.VARIANTS, planted, strict=True)), noise)
    caption = charts.told_apart(recorded).caption
    assert f"In this run, with 8 pairs, {said}" in caption and "where there is none" not in caption


def test_a_difference_that_is_told_where_there_is_none_is_owned_up_to(recorded):
    planted = (1.0, 1.2, *aa_runs.EFFECTS)
    record(recorded, "twins", dict(zip(aa_runs.VARIANTS, planted, strict=True)), 0.0)
    assert "told where there is none" in charts.told_apart(recorded).caption


@pytest.mark.parametrize(
    ("slowed", "said", "shown"),
    [
        (3.0, "outside of the interval of the runs compared one after the other;", "is for this."),
        (1.0, "both intervals include the truth;", "this run doesn't show"),
    ],
)
def test_the_caption_of_the_neighbour_says_which_comparison_misses_the_truth(
    recorded, slowed, said, shown
):
    half = aa_runs.NEIGHBOUR_BLOCKS // 2
    slower = np.repeat([1.0, slowed], half)
    uneven = 1 + 0.01 * np.tile([1, -1], half)
    time = pd.DataFrame({aa_runs.FIRST: slower * uneven, aa_runs.SECOND: slower / uneven})
    assert said in charts.neighbour(recorded, time).caption
    assert shown in sentences.beside_neighbour(recorded, time)


def test_the_caption_of_repeats_tells_the_advised_number():
    rows = [
        ("25 % off", repeats, rule, share)
        for rule, share in ((repeated_runs.BY_DIXON, 0.125), (repeated_runs.BY_NOISE, 0.5))
        for repeats, share in ((2, 0.0), (evidence.repeats(), share))
    ]
    noticed = pd.DataFrame(rows, columns=["spoilt", "repeats", "rule", "share"])
    said = charts.spoilt(noticed).caption
    assert "With 3 repeats" in said
    assert "25 % off, 12.5 % by Dixon's test and 50 % by the known noise." in said


def test_throughput_over_time_breaks_between_runs_and_says_which_load_swings_more():
    def runs(spread: float) -> pd.DataFrame:
        rng = np.random.default_rng(1)
        one = {"time": SLOT * np.arange(100), "checkpoint": False, "wal": 100.0}
        frames = [
            pd.DataFrame(one | {"throughput": 1000 * rng.lognormal(0, spread, 100)})
            for _ in range(3)
        ]
        return over_time.end_to_end(frames, SLOT)

    def drawn(reads: float, writes: float) -> charts.charts.Figure:
        loads = {over_time.READS: reads, over_time.WRITES: writes}
        frames = [runs(spread).assign(load=load) for load, spread in loads.items()]
        return charts.throughput(pd.concat(frames, ignore_index=True))

    figure = drawn(0.3, 0.1)
    assert "reads swing more" in figure.caption and "in slots of 0.15 s (3 of" in figure.caption
    assert "writes swing more" in drawn(0.1, 0.3).caption
    [rows] = figure.spec()["datasets"].values()
    pieces = pd.DataFrame(rows).groupby("panel")["piece"].value_counts()
    assert set(pieces) == {34} and len(pieces) == 9  # three runs of three panels


def test_what_the_fix_gains_is_told_in_times(recorded):
    medians = dict(zip(mechanisms.FIXES, (10.0, 1.0, 2.0), strict=True))
    record(recorded, "fixes", medians, 0.001)
    said = sentences.faster(recorded)
    assert "is 10" in said and "with an index on the expressions" in said
    assert "with statistics on the expressions and no index" in said
