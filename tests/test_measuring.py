"""Chapter `measuring`: its statistics on noise of known kind, its readings of logs and profiles, and its plants live."""

import numpy as np
import pandas as pd
import pytest

from pgrerun import parameters, statistics
from pgrerun.chapters import measuring
from pgrerun.chapters.measuring import artificial, axes, load, reasons, repeats, sleeping, steadiness, twins, watching
from pgrerun.errors import ServerError
from pgrerun.experiment import Block
from pgrerun.instruments import perf, sleeps


class Small:
    """What of a chapter these verbs ask for."""

    borrowed = False

    def __init__(self, server):
        self.server = server
        self.parameters = parameters.chapter_parameters("measuring", {"clients": 2, "milliseconds": 50})


@pytest.fixture
def chapter(cluster):
    return Small(cluster)


# ---- planted effects


def test_planted_scans_count_exactly_as_many_tuples_more(chapter):
    found = twins.planted(chapter).set_index("arm")["tuples counted"]
    assert found[twins.ONE] == found[twins.OTHER] == load.TUPLES
    assert [found[twins.named(effect)] for effect in twins.EFFECTS] == [20_400, 21_000, 22_000]


def noise(spread: float, size: int = 400) -> np.ndarray:
    return np.random.default_rng(7).lognormal(0, spread, size)


def test_equal_arms_raise_few_alarms_and_planted_effects_are_found_in_quiet():
    low, high = twins.drawn_intervals(noise(0.02), 11, 300, seed=1).T
    assert np.mean((low > 1) | (high < 1)) <= 0.08  # 5 % and three standard errors of 300
    assert np.mean(low * 1.05 > 1) > 0.95 and np.mean(low * 1.02 > 1) > np.mean(low > 1)


def test_a_biased_recording_does_not_pass_for_noise():
    """The two equal arms are called by chance: a ratio off 1 is noise in both directions, not an effect."""
    low, high = twins.drawn_intervals(1.3 * noise(0.001), 11, 100, seed=1).T
    assert np.mean(low > 1) < 0.1


def test_five_pairs_miss_one_in_sixteen():
    low, high = twins.drawn_intervals(noise(0.02), 5, 600, seed=1).T
    share = statistics.share(int(((low > 1) | (high < 1)).sum()), 600)
    assert share.low <= twins.unavoidable(5) == 0.0625 <= share.high


def test_more_pairs_find_smaller_effects():
    reach = [twins.smallest(noise(0.05), pairs, 100, seed=1) for pairs in (5, 11, 41)]
    assert reach[0] > reach[1] > reach[2] > 1


def test_pairs_needed_is_missing_where_nothing_suffices():
    found = pd.DataFrame({"effect": [1.0, 1.02, 1.1, 1.1], "pairs": [5, 5, 5, 7], "found": [0.9, 0.1, 0.85, 0.9]})
    needed = twins.pairs_needed(found).set_index("effect")["pairs"]
    assert needed[1.1] == 5 and pd.isna(needed[1.02]) and pd.isna(needed[1.05])


# ---- repeats


def test_two_repeats_never_name_the_spoilt_one_and_three_do_in_quiet():
    runs = noise(0.005)
    shares = {n: repeats.noticed(runs, n, 1.5, 500, seed=1) for n in (2, 3, 7)}
    assert shares[2] == {repeats.BY_ITSELF: 0, repeats.BY_NOISE: 0}
    assert shares[3][repeats.BY_NOISE] > 0.8 and shares[7][repeats.BY_ITSELF] > 0.9


def test_three_repeats_by_themselves_need_the_others_to_agree_closely():
    runs = noise(0.05)
    assert repeats.noticed(runs, 3, 1.25, 500, seed=1)[repeats.BY_ITSELF] < 0.5


def test_dixons_test_knows_only_its_first_value():
    drawn = np.array([[1.0, 1.01, 1.02, 1.0, 9.0], [9.0, 1.01, 1.02, 1.0, 1.0], [0.1, 1.01, 1.02, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0]])
    assert repeats._dixon(drawn).tolist() == [False, True, True, False]


@pytest.mark.parametrize("third, verdict", [(0.9, True), (0.5, False)])
def test_the_advice_on_repeats_is_judged_by_what_three_name(third, verdict):
    rows = [("25 % off", n, rule, share) for rule in (repeats.BY_ITSELF, repeats.BY_NOISE) for n, share in ((2, 0.0), (3, third))]
    facts = repeats.facts(pd.DataFrame(rows, columns=["spoilt", "repeats", "rule", "share"]))
    assert list(facts.values()) == [True, verdict, verdict]


# ---- throughput over time


def test_slots_count_every_transaction_of_whole_slots():
    found = steadiness.slots(np.arange(0, 2, 0.001) + 100.0)
    assert found["throughput"].between(975, 1025).all() and len(found) == 39


def test_a_wave_needs_longer_runs_than_independent_noise():
    rng = np.random.default_rng(3)
    independent = 1000 + 50 * rng.standard_normal(400)
    wave = 1000 + 50 * np.sqrt(2) * np.sin(np.arange(400) / 20)
    assert steadiness.swing(independent) == pytest.approx(steadiness.swing(wave), rel=0.1)
    assert steadiness.length(wave) > 3 * steadiness.length(independent)


def test_checkpoints_are_found_in_the_log():
    log = "2026-11-21 10:00:00.250 UTC [12] LOG:  checkpoint starting: wal\n2026-11-21 10:00:01 UTC [12] LOG:  checkpoint complete: wrote 3 buffers\n"
    assert steadiness.checkpoints(log) == [pytest.approx(1795255200.25)]


def test_what_follows_a_checkpoint_is_compared_with_the_rest():
    rate = np.full(20, 100.0)
    rate[3:9] = 50
    shown = pd.DataFrame({"time": np.arange(20) / 10, "throughput": rate, "log": 300 - rate, "load": "writes", "run": np.arange(20) // 10, "checkpoint": np.arange(20) == 3})
    assert steadiness.after_checkpoints(shown) == {"checkpoints": 1, "throughput": 0.5, "log": 1.25}
    assert steadiness.after_checkpoints(shown.assign(checkpoint=False)) is None
    late = steadiness.after_checkpoints(shown.assign(checkpoint=np.arange(20) == 9))
    assert late["throughput"] > 1, "what the next run begins with follows no checkpoint of the last one's"


def test_a_stretch_lies_within_one_run():
    frames = [pd.DataFrame({"throughput": np.full(9, level), "checkpoint": False}) for level in (100.0, 110.0, 120.0, 130.0)]
    shown = steadiness._end_to_end(frames).assign(load="reads")
    assert shown["time"].is_monotonic_increasing and shown["time"].max() == pytest.approx(35 * steadiness.SLOT)
    found = steadiness.spread_by_length(shown).set_index("length")["spread"]
    assert list(found.index) == pytest.approx([n * steadiness.SLOT for n in (1, 2, 4, 8)])
    assert found.to_numpy() == pytest.approx(np.full(4, found.iloc[-1]), rel=0.15), "runs differ, stretches of one run don't"


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
    assert chains["samples"].sum() == 3 and ("schedule", "LWLockAcquireOrWait", "XLogFlush") in list(chains["chain"])
    shares = sleeps.by_cause(chains, sleeping.CAUSES)
    assert {cause: round(share, 3) for cause, share in shares.items()} == dict.fromkeys([*sleeping.LOCKS, "its turn on a processor"], 0.333)
    assert sleeps.by_cause(sleeps.read(""), sleeping.CAUSES).empty


def test_a_profile_with_columns_for_branches_is_read():
    """perf 6.1 prints two of them after the symbol, if only as dashes."""
    found = perf._read("50.00%|10|postgres|postgres|[.] LockAcquire   |-      -   \n50.00%|10|postgres|[kernel.kallsyms]|[k] schedule\n")
    assert set(found["symbol"]) == {"LockAcquire", "schedule"}


def seen(tps, lock_code, lock_sleeps):
    rest = 1 - lock_sleeps
    return sleeping.Seen(tps, pd.Series({"LockAcquire": lock_code, "x": 1 - lock_code}), pd.Series({sleeping.LOCKS[0]: lock_sleeps, "the client": rest}), pd.Series(dtype=float))


def test_profile_facts_can_fail_one_by_one():
    free = seen(1000, 0.01, 0.0)
    judge = lambda queued: list(sleeping.profile_facts({sleeping.FREE: free, sleeping.QUEUED: queued}).values())
    assert judge(seen(500, 0.02, 0.4)) == [True, True, True]
    assert judge(seen(900, 0.02, 0.4)) == [False, True, True]
    assert judge(seen(500, 0.30, 0.4)) == [True, False, True]
    assert judge(seen(500, 0.02, 0.0)) == [True, True, False]


def test_a_load_that_was_over_too_soon_is_run_again_for_longer(monkeypatch):
    tried = []

    def watched(chapter, server, load, seconds):
        tried.append(seconds)
        if seconds == 1:
            raise ServerError("the processes are gone")
        return "seen", (1000, 3 if seconds == 2 else 1000)

    monkeypatch.setattr(sleeping, "_watched", watched)
    assert sleeping._seen(None, None, sleeping.FREE) == "seen" and tried == [1, 2, 4]
    monkeypatch.setattr(sleeping, "_watched", lambda *_: ("seen", (0, 0)))
    assert sleeping._seen(None, None, sleeping.FREE) == "seen", "an instrument that sees nothing is no reason to go on for ever"


def test_every_profiler_lets_the_scan_through(chapter):
    if perf.unavailable():
        pytest.skip(perf.unavailable())
    load.scanned(chapter.server)
    with watching.watchers(chapter.server) as watchers:
        for name, prefix in watching.PROFILERS.items():
            assert watching._profiled(chapter, chapter.server, 6, watchers[name], prefix, Block(0, 1, 0))["time"] > 0


def test_the_log_is_written_and_removed(chapter):
    load.bank(chapter.server, 2)
    how = {"builtin": load.READ, "clients": 2, "variables": {"scale": 2}}
    before = set(chapter.server.scratch.iterdir())
    for log, more in watching.LOGS.values():
        assert watching._lookups(chapter, chapter.server, 10, how, log, more, Block(0, 1, 0))["throughput"] > 0
    with watching._written_log(chapter.server) as options:
        load.drive(chapter, chapter.server, transactions=10, seed=1, more=options, **how)
        written = set(chapter.server.scratch.iterdir()) - before
        assert written and all(path.stat().st_size for path in written)
    assert set(chapter.server.scratch.iterdir()) == before


def test_todays_views_know_locks_and_spins_but_count_neither(chapter):
    assert list(sleeping.tool_facts(chapter).values()) == [False, False, True]


# ---- artificial loads, axes, reasons


def test_a_change_changes_what_it_says_and_nothing_else():
    plain = artificial.script(artificial.EXTREME, artificial.PLAIN)
    assert artificial.script(artificial.EXTREME, artificial.HOT_ROW) == plain.replace(":client_id + 1", "1")
    assert artificial.script(artificial.EXTREME, artificial.NO_WAIT) == plain.replace("synchronous_commit = on", "synchronous_commit = off")
    assert artificial.script(artificial.EXTREME, artificial.NO_PLAN) == plain


def test_every_script_runs(chapter):
    load.bank(chapter.server, 2)
    for kind in (artificial.EXTREME, artificial.PACED):
        for change in artificial.CHANGES:
            done = load.drive(chapter, chapter.server, artificial.script(kind, change), transactions=8, clients=2, seed=1, variables={"scale": 2})
            assert done.transactions == 8 and done.failed == 0


def test_stalls_are_read_from_the_log():
    log = (
        "2026-11-21 10:00:00.1 UTC [7] LOG:  process 7 still waiting for ShareLock on transaction 9 after 1.05 ms\n"
        "2026-11-21 10:00:00.2 UTC [7] LOG:  process 7 acquired ShareLock on transaction 9 after 4.25 ms\n"
    )
    assert axes.lock_stalls(log) == [4.25]


def test_updates_in_either_way_reach_only_rows_that_exist():
    assert "random(1, 30)" in axes.script(axes.SINGLY) and "AND :first + 0" in axes.script(axes.SINGLY)
    assert f"random(1, {axes.ROWS - axes.MANY + 1})" in axes.script(axes.TOGETHER)


def test_an_index_helps_without_being_scanned(chapter):
    found = reasons.witnessed(chapter).set_index("arm")
    assert found["answer"].nunique() == 1
    assert "Nested Loop" in found.at[reasons.BEFORE, "plan"]
    assert found["plan"][reasons.INDEXED] == found["plan"][reasons.STATISTICS] == "Hash Join, Seq Scan"
    assert (found["scans of the new index"] == 0).all()
    assert found.at[reasons.BEFORE, "orders expected"] < 10 < found.at[reasons.INDEXED, "orders expected"] / 100


def test_the_count_of_scans_can_rise(chapter):
    """Otherwise the chapter's zero would mean nothing."""
    reasons.orders(chapter)
    name = reasons.TABLES[reasons.INDEXED]
    with chapter.server.connect() as connection:
        before = reasons._scans(connection, f"{name}_fix")
        connection.execute(f"SELECT count(*) FROM {name} WHERE lower(state) = 'none' AND lower(kind) = 'none'")
        assert reasons._scans(connection, f"{name}_fix") == before + 1


def test_the_general_order_sorts_the_same_without_sort_support(chapter):
    found = reasons.comparisons(chapter).set_index("operator class")
    assert found["compares by"].nunique() == 1
    assert found.at["int4_ops", "sort support"] == "btint4sortsupport" and pd.isna(found.at["general_ops", "sort support"])
    with chapter.server.connect() as connection:
        orders = [connection.execute(f"SELECT n FROM numbers ORDER BY n USING {operator}").fetchall() for operator in ("<", "OPERATOR(public.<#)")]
    assert orders[0] == orders[1] and len(orders[0]) == reasons.NUMBERS


def test_comparisons_can_be_made_twice(chapter):
    assert reasons.comparisons(chapter).equals(reasons.comparisons(chapter))


def test_all_modules_are_named_in_the_chapter():
    assert all(hasattr(measuring, name) for name in measuring.__all__)
