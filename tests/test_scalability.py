"""The scalability chapter on small servers, and what its rules make of rows."""

import os
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pandas as pd
import pytest

from pgrerun.chapters.scalability import load
from pgrerun.chapters.scalability.experiments import (
    builds,
    clients,
    commit_log,
    commits,
    idle,
    large_machines,
    light_locks,
    locks,
    wal,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import callgrind, sessions
from pgrerun.lab.models import lookups as model
from pgrerun.lab.models.contention import play
from pgrerun.lab.server import Cluster, bundled, open_server
from pgrerun.lab.testbed import Block, Testbed
from pgrerun.parameters import chapter_parameters
from tests.judging import judged, word

COSTS = model.Costs(work=50e-6, visit=0.1e-6, line=0.05e-6, switch=5e-6, rouse=20e-6)
BLOCK = Block(index=0, seed=1, position=0)
SMALL = {"pairs": 5, "most_clients": 16, "seconds": 0.05, "commit_clients": 8}


def opened(guest=None, rows=None, **given):
    kept = rows or {}
    return Testbed(
        chapter_parameters("scalability", SMALL | given),
        bundled(),
        guest,
        rows=lambda name: kept.get(name, []),
    )


@pytest.fixture(scope="module")
def bed():
    found = opened()
    yield found
    found.close()


def measured(bed, experiment, **changed):
    """The rows of an experiment, which finds them as those that it has."""
    found = []
    bed._rows = lambda name: found if name == experiment.name else []
    for row in bed.measure(experiment, changed):
        found.append(row)
    return found


def rows_of(observed):
    """Made-up rows of a comparison: five blocks of each variant, nearly the same in each."""
    return [
        factors | {name: x * (1 + block / 1000) for name, x in metrics.items()} | {"block": block}
        for block in range(5)
        for factors, metrics in observed
    ]


# ---- loads


@pytest.mark.parametrize(
    ("processors", "most", "counts", "one_each"),
    [(2, 64, [1, 2, 8, 32, 64], 2), (128, 16, None, 16), (6, 16, None, 6)],
)
def test_numbers_of_clients_double_up_to_one_per_processor_and_end_in_the_most(
    monkeypatch, processors, most, counts, one_each
):
    monkeypatch.setattr(load, "processors", lambda: processors)
    bed = opened(most_clients=most)
    found = load.client_counts(bed)
    assert counts in (found, None) and found[-1] == most
    assert load.one_per_processor(bed) == one_each and one_each in found


def test_clients_on_a_borrowed_server_leave_room_for_its_owner(borrowed_url):
    with open_server(borrowed_url, bundled()) as guest:
        lent = opened(guest, most_clients=64)
        assert max(load.client_counts(lent)) <= 30  # it allows 40
        assert max(commits.sizes(lent)) <= 30
        with (
            pytest.raises(CannotMeasure, match="not ours"),
            sessions.configured(guest, synchronous_commit="off"),
        ):
            pass


def test_a_load_lasts_as_long_as_it_is_asked_to(bed):
    statement = SimpleNamespace(script=lambda name: "SELECT pg_sleep(0.001);\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "SQL", statement)
        sleeping = load.Load(bed, load.loaded(bed), "sleep", 2)
        # a sleep takes a little longer, on a busy machine much; never less
        assert load.LEAST <= sleeping.lasting() <= 50
        began = time.monotonic()
        done = sleeping.run(seed=1)
    assert done.transactions == 2 * sleeping.transactions
    assert time.monotonic() - began >= 0.001 * sleeping.transactions


def test_a_server_that_cannot_be_looked_into_has_a_throughput_only(monkeypatch, bed):
    tested = load.loaded(bed)
    monkeypatch.setattr(type(tested), "can", lambda server, capability: False)
    assert set(load.Load(bed, tested, "lookup", 2).observe(BLOCK)) == {"tps"}


def test_messages_and_repeats_are_as_many_as_script_and_profile_say(bed):
    scripts = {"lookup": (10, 1.2), "tpcb": (8, 8)}
    found = {name: load.messages(load.SQL.script(name), n) for name, (n, _) in scripts.items()}
    assert found == pytest.approx({name: many for name, (_, many) in scripts.items()})
    assert (load.pairs(bed, 9), load.pairs(opened(profile="laptop"), 9)) == (1, 9)


# ---- lookups


def lookups(**tps):
    """Rows of `lookups`, by a number of clients."""
    observed = [({"clients": int(n[1:]), "again": False}, {"tps": x}) for n, x in tps.items()]
    return [row | {"disturbed": ""} for row in rows_of(observed)]


def test_a_law_is_fitted_to_four_numbers_of_clients_and_not_to_three():
    many = lookups(n1=100.0, n2=190.0, n8=500.0, n32=700.0)
    early = lookups(n1=100.0, n2=210.0, n8=205.0, n16=200.0, n32=190.0)
    once = [row for row in many if row["block"] == 0]
    law, blind, peaked = (
        next(iter(clients.law_of_lookups(opened(rows={"lookups": rows}))))
        for rows in (many, once, early)
    )
    assert law["scale"] == pytest.approx(100, rel=0.2) and law["fits"]
    assert "sigma_low" in law and "sigma_low" not in blind
    assert peaked["measured_peak"] == 2 and not peaked["fits"]  # that peaks elsewhere
    few = [row for row in many if row["clients"] < 32]
    with pytest.raises(CannotMeasure, match="four"):
        list(clients.law_of_lookups(opened(rows={"lookups": few})))


# ---- locks


def test_locks_that_are_taken_decide(bed):
    weak, virtual = (
        list(bed.measure(one, {})) for one in (locks.weak_and_strong, locks.virtual_transactions)
    )
    asked = [
        ("haas-008", {"weak_and_strong": weak}, "holds"),
        ("haas-008", {"weak_and_strong": [row | {"granted": True} for row in weak]}, "partly"),
        # where a lock is kept isn't what the talk says of weak and strong ones
        ("haas-008", {"weak_and_strong": [row | {"fastpath": False} for row in weak]}, "holds"),
        # a virtual transaction that is waited for
        ("haas-009", {"virtual_transactions": virtual}, "holds"),
        (
            "haas-009",
            {"virtual_transactions": [row | {"fastpath": not row["fastpath"]} for row in virtual]},
            "not so",
        ),
    ]
    found = [word(claim, "scalability", **tables) for claim, tables, _ in asked]
    assert found == [said for *_, said in asked]


def test_strong_locks_elsewhere_push_all_others_off_the_fast_path(bed):
    share = {row["locks"]: row["fastpath"] for row in measured(bed, locks.overflow)}
    assert share[locks.FAST] == 1 and 0 < share[locks.TABLE] < 1 and share[locks.HELD] < 0.1


def test_the_costs_of_a_lock_are_taken_alone_and_in_company(bed):
    rows = measured(bed, locks.lock_costs, loops=1000)
    assert [row["together"] for row in rows if row["time"] > 0] == [
        *(locks.EMPTY, locks.ALONE, locks.SAME, locks.OTHER)
    ]


# ---- lightweight locks of 2012


def replaced(of_9_2, fits=10, reads=1000):
    """How often the lock was taken for a thousand pages, and for hardly any; by 9.1 for each."""
    return [
        {
            "build": build,
            "data": data,
            "lookups": 2000,
            "reads": reads,
            "exclusively": taken,
            "waits": 3,
        }
        for build, missed in (("9.1-lwlock-stats", 1001), ("9.2-lwlock-stats", of_9_2))
        for data, read, taken in (("fit", 5, fits), ("don't fit", reads, missed))
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (replaced(1002), "holds"),
        (replaced(400), "not so"),
        (replaced(1002, fits=900), "holds"),  # which is told and decides nothing
        (replaced(70, reads=70), "inconclusive"),  # a pool that isn't too small
    ],
)
def test_a_lock_that_each_page_takes_alone_makes_replacement_single_threaded(rows, said):
    assert word("haas-080", "scalability", page_replacement=rows) == said


def test_pages_that_are_read_into_a_full_pool_take_the_lock(bed):
    rows = on_builds(bed, light_locks.page_replacement, lookups=500)
    full = [row for row in rows if row["data"] == "don't fit"]
    assert full and all(row["exclusively"] == pytest.approx(row["reads"], rel=0.1) for row in full)
    assert all(row["exclusively"] < 100 for row in rows if row["data"] == "fit")


def waited(log, other, processors=32):
    """The verdict on the commit log where 9.1 waits so often for its lock, and for another."""
    rows = [
        {"build": build, "lock": lock, "transactions": 900, "exclusively": 900, "waits": waits}
        for build, *both in (("9.1-lwlock-stats", log, other), ("9.2-lwlock-stats", 5, 9))
        for lock, waits in zip(("CLogControlLock", light_locks.OTHER), both)
    ]
    return word("haas-017", "scalability", processors=processors, writer_locks=rows)


def test_the_commit_log_is_major_where_no_lock_beyond_the_talks_is_waited_for_more():
    assert waited(50, 49) == "holds"
    assert waited(50, 51) == waited(0, 0) == "not so"
    assert waited(50, 49, processors=2) == "not tested here"


def test_writers_tell_what_they_waited_for(bed):
    found = {(row["build"], row["lock"]) for row in on_builds(bed, light_locks.writer_locks)}
    assert found >= {(build, "CLogControlLock") for build in light_locks.COUNTING}


LOCK_TABLE = "a partition of the lock table"


def looked_up(lock_table, other, blocked=0, of_9_2=2):
    """The verdict where lookups of 9.1 wait so often for the lock table, and for another lock."""
    rows = [
        {"build": build, "lock": lock, "transactions": 900, "exclusively": 900}
        | {"waits": waits, "blocked": blocked}
        for build, *both in (
            ("9.1-lwlock-stats", lock_table, other),
            ("9.2-lwlock-stats", of_9_2, 9),
        )
        for lock, waits in zip((LOCK_TABLE, light_locks.OTHER), both)
    ]
    return word("haas-003", "scalability", processors=2, lookup_locks=rows)


def test_lookups_contend_where_9_1_waits_for_the_lock_table_and_not_for_a_lock():
    assert looked_up(50, 3) == looked_up(50, 3, of_9_2=49) == "holds"
    assert looked_up(50, 51) == looked_up(50, 3, blocked=1) == "partly"
    assert looked_up(0, 0, blocked=1) == "not so"


def test_lookups_tell_what_they_waited_for(bed):
    rows = on_builds(bed, light_locks.lookup_locks)
    taken = {row["build"]: row["exclusively"] for row in rows if row["lock"] == LOCK_TABLE}
    assert taken["9.1-lwlock-stats"] > taken["9.2-lwlock-stats"]
    assert not any(row["blocked"] for row in rows)


READ_FIRST = "(*(lock) ? 1 : _Asm_xchg(lock))"


@pytest.mark.parametrize(
    ("of_9_1", "of_9_2", "said"),
    [
        ("_Asm_xchg(lock)", READ_FIRST, "holds"),
        ("_Asm_xchg(lock)", "_Asm_xchg(lock)", "partly"),
        (READ_FIRST, READ_FIRST, "partly"),
        (READ_FIRST, "_Asm_xchg(lock)", "not so"),
    ],
)
def test_a_spinlock_of_itanium_is_judged_by_what_is_done_while_it_is_taken(of_9_1, of_9_2, said):
    rows = [
        {"build": build, "spinning": spinning, "guide": False}
        for build, spinning in (("9.1", of_9_1), ("9.2", of_9_2))
    ]
    assert word("haas-068", "scalability", itanium_spinlock=rows) == said


def test_headers_tell_how_a_spinlock_is_waited_for_on_itanium(bed):
    rows = on_builds(bed, builds.itanium_spinlock)
    assert all("_Asm_xchg" in row["spinning"] for row in rows)


@pytest.mark.parametrize(
    ("of_all", "processors", "said"),
    [(63.7, 64, "holds"), (40.0, 64, "not so"), (63.7, 2, "not tested here")],
)
def test_lookups_scale_out_where_9_2_uses_every_processor(of_all, processors, said):
    rows = rows_of(
        [
            ({"build": "9.2", "load": "lookups", "processors": 1}, {"tps": 1.0}),
            ({"build": "9.2", "load": "lookups", "processors": 64}, {"tps": of_all}),
        ]
    )
    found = word("haas-014", "scalability", processors=processors, by_processors_on_builds=rows)
    assert found == said


@pytest.mark.parametrize(
    ("many", "processors", "said"),
    [(8.0, 16, "holds"), (15.9, 16, "no effect"), (8.0, 2, "not tested here")],
)
def test_a_pool_that_is_too_small_is_judged_on_9_2(many, processors, said):
    each = (("fits", 1, 1.0), ("fits", 64, 16.0), ("does not fit", 1, 1.0))
    rows = rows_of(
        [
            ({"data": data, "clients": number}, {"tps": tps})
            for data, number, tps in (*each, ("does not fit", 64, many))
        ]
    )
    found = word("haas-086", "scalability", processors=processors, pools_on_builds=rows)
    assert found == said


def inserted(of_9_2):
    """How often the lock was taken for a thousand records, by 9.1 for each."""
    return [
        {"build": build, "sessions": sessions, "records": 1000, "exclusively": taken, "waits": 0}
        for build, taken in (("9.1-lwlock-stats", 1002), ("9.2-lwlock-stats", of_9_2))
        for sessions in (1, 2)
    ]


@pytest.mark.parametrize(
    ("taken", "server", "gained", "said"),
    [
        (1002, "9.2", 1.2, "holds"),
        (1002, "9.2", 0.95, "partly"),
        (130, "9.2", 1.2, "partly"),
        (130, "9.2", 0.95, "not so"),
        (1002, "today", 1.2, "not tested here"),
    ],
)
def test_insertion_is_judged_by_its_lock_and_by_what_9_2_loses_after_a_checkpoint(
    taken, server, gained, said
):
    moments = rows_of(
        [
            ({"server": server, "moment": wal.AFTER}, {"tps": 1.0, "wal": 9.0}),
            ({"server": server, "moment": wal.LATER}, {"tps": gained, "wal": 3.0}),
        ]
    )
    rule = {"insertion_lock": inserted(taken), "checkpointed": moments}
    assert word("haas-081", "scalability", **rule) == said


def test_each_record_that_is_inserted_takes_the_lock(bed):
    rows = on_builds(bed, light_locks.insertion_lock, rows=2000)
    assert {row["sessions"] for row in rows} >= {1, 2}
    assert all(row["exclusively"] == pytest.approx(row["records"], rel=0.02) for row in rows)


def on_builds(bed, experiment, **changed):
    """The rows of an experiment; skipped where its builds aren't registered."""
    try:
        return measured(bed, experiment, **changed)
    except CannotMeasure as reason:
        pytest.skip(str(reason))


# ---- the commit log and the WAL


def test_index_scans_ask_the_commit_log_for_nothing_that_they_know(bed):
    rows = list(bed.measure(wal.index_scans, {}))
    unseen, *seen = (row["questions"] for row in rows)
    assert unseen < 10 and seen == [2000, 0]


def test_what_is_kept_of_the_commit_log_is_what_the_sources_say(bed):
    rows = on_builds(bed, commit_log.clog_buffers_on_builds)
    pages = {(row["build"], row["shared_buffers"]): row["kilobytes"] // 8 for row in rows}
    assert [pages["9.1", pool] for pool in commit_log.POOLS] == [8, 8, 8]  # NUM_CLOG_BUFFERS
    assert [pages["9.2", pool] for pool in commit_log.POOLS] == [4, 32, 32]  # CLOGShmemBuffers


def slow_page(*waiting):
    """Who waits for a slow page of the commit log: who needs it, and on some servers others."""
    return [
        {
            "server": server,
            "session": session,
            "waits": session != commit_log.OTHER_PAGES or server in waiting,
        }
        for server in ("9.1", "9.2", "today")
        for session in (commit_log.READER, commit_log.SAME_PAGE, commit_log.OTHER_PAGES)
    ]


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (("9.1",), "fixed"),
        (("9.1", "9.2"), "still there"),
        (("9.1", "today"), "still there"),
    ],
)
def test_a_bug_that_9_1_shows_is_fixed_where_no_later_server_does(waiting, said):
    assert word("haas-020", "scalability", slow_clog_page=slow_page(*waiting)) == said


def test_who_needs_other_pages_waits_for_the_slow_one_in_9_1_alone(monkeypatch, bed):
    monkeypatch.setattr(commit_log, "DELAY", 3.0)  # longer than a busy machine makes anybody wait
    assert sorted(on_builds(bed, commit_log.slow_clog_page), key=str) == sorted(
        slow_page("9.1"), key=str
    )


@pytest.mark.parametrize(
    ("waits", "why"),
    [(set(), "wasn't"), ({commit_log.READER, commit_log.SAME_PAGE}, "didn't show it")],
)
def test_a_page_that_is_not_slow_or_a_bug_that_9_1_hides_gives_no_verdict(
    monkeypatch, bed, waits, why
):
    ends = dict.fromkeys((commit_log.READER, commit_log.SAME_PAGE, commit_log.OTHER_PAGES), 0.0)
    ends |= dict.fromkeys(waits, commit_log.DELAY)
    for name, stand_in in {
        "complete": lambda pairs: ["9.1"],
        "programs": lambda name: bed.programs,
        "_many_transactions": lambda tested: None,
        "_while_slow_page_is_read": lambda tested, slow: ends,
    }.items():
        monkeypatch.setattr(commit_log, name, stand_in)
    with pytest.raises(CannotMeasure, match=why):
        list(bed.measure(commit_log.slow_clog_page, {}))


def test_later_no_page_is_logged_in_full(bed):
    log = {row["moment"]: row["wal"] for row in measured(bed, wal.checkpointed)}
    assert log[wal.LATER] < log[wal.AFTER] / 1.5


def test_copy_writes_less_log_than_single_inserts(bed):
    log = {row["way"]: row["bytes"] for row in bed.measure(wal.copied, {})}
    assert log["COPY"] < log["one INSERT for each row"] / 1.5


def test_a_flush_carries_one_commit_of_one_client_and_more_of_many(bed):
    for sweep in (commits.commits, commits.slowed_commits):
        rows = {row["clients"]: row for row in measured(bed, sweep) if row["waits"]}
        # whether a quick flush is shared is the schedule's; at a slow one all others arrive
        assert rows[1]["per_flush"] <= 1
        assert sweep is commits.commits or rows[8]["per_flush"] > 1
    assert rows[8]["disk"] and 0 < rows[1]["flushing"] <= 1


# ---- simulated machines


def test_one_client_hardly_sees_the_patches_and_many_do():
    def gain(clients):
        machine = model.machine(32, COSTS)
        before, after = (
            play(machine, model.lookup(release, COSTS), clients, transactions=500).throughput
            for release in (model.BEFORE, model.AFTER)
        )
        return after / before

    assert gain(1) < 1.05 and gain(32) > 1.3


def test_the_simulated_single_client_is_what_play_comes_to():
    lookup = model.lookup(model.BEFORE, COSTS)
    played = play(model.machine(32, COSTS), lookup, 1, transactions=3000).throughput
    point = model.Point(model.BEFORE, 32, 1, COSTS)
    assert point.play(100, seed=1).throughput == pytest.approx(played, rel=0.01)


def calibrating():
    """Made-up rows of all that the simulation's costs are made of."""
    times = {locks.EMPTY: 40.0, locks.ALONE: 240.0, locks.SAME: 900.0, locks.OTHER: 300.0}
    made = {
        "lock_costs": [({"together": name}, {"time": x}) for name, x in times.items()],
        "handoffs": [({"handed": "through a pipe"}, {"elapsed": 20.0, "processor": 5.0})],
        "lookups": [
            ({"clients": n, "again": False}, {"tps": 1e4 * n}) for n in load.client_counts(opened())
        ],
    }
    return {
        name: [row | {"disturbed": ""} for row in rows_of(observed)]
        for name, observed in made.items()
    }


def test_costs_are_calibrated_on_what_was_measured():
    costs = model.typical(large_machines.calibrated(opened(rows=calibrating())))
    expected = {"visit": 100e-9, "line": 25e-9, "switch": 5e-6, "rouse": 20e-6, "work": 1e-4}
    found = {name: getattr(costs, name) for name in expected}
    assert found == pytest.approx(expected, rel=0.01)
    with pytest.raises(CannotMeasure, match="lock_costs"):
        large_machines.calibrated(opened())


def test_costs_are_made_up_of_no_block_in_which_a_lock_took_no_time():
    def quick(blocks):  # in which a lock takes less than the empty loop
        rows = calibrating()
        rows["lock_costs"] = [
            row
            | (
                {"time": 30.0}
                if (row["together"], row["block"] < blocks) == (locks.ALONE, True)
                else {}
            )
            for row in rows["lock_costs"]
        ]
        return large_machines.calibrated(opened(rows=rows))

    kept = quick(2)
    assert len(kept) == 3 and all(costs.visit > 1e-9 and costs.line > 0 for costs in kept)
    with pytest.raises(CannotMeasure, match="in no block"):
        quick(5)


def test_the_curve_is_played_with_the_line_that_comes_nearest_to_the_talks_gain(monkeypatch):
    monkeypatch.setattr(large_machines, "calibrated", lambda bed: [COSTS])
    played = pd.DataFrame(large_machines.simulated_lookups(opened()))
    swept = played[played["varied"] == "line"].pivot(
        index="line_ns", columns="release", values="tps"
    )
    nearest = (
        (swept[model.AFTER] / swept[model.BEFORE] - large_machines.TALK["gain"]).abs().idxmin()
    )
    assert set(played.loc[played["varied"] == "clients", "line_ns"]) == {nearest}


def test_server_and_clients_are_kept_on_one_processor_and_let_go_again(bed):
    usable = os.sched_getaffinity(0)
    rows = measured(bed, clients.by_processors)
    assert {(row["load"], row["processors"]) for row in rows} == {
        (name, number) for name in clients.SCRIPTS for number in (1, len(usable))
    }
    pids = [os.getpid(), *bed.cluster(**load.ours(bed)).pids()]
    assert all(os.sched_getaffinity(pid) == usable for pid in pids)


def test_9_2_runs_on_one_processor_and_on_all(bed):
    rows = on_builds(bed, builds.by_processors_on_builds)
    both = {1, len(os.sched_getaffinity(0))}
    assert {(row["build"], row["processors"]) for row in rows} == {("9.2", n) for n in both}


@pytest.mark.parametrize(("pairs", "blocks"), [(5, 15), (9, 21), (30, 30)])
def test_9_2_is_given_the_pairs_that_a_ratio_of_ratios_takes(pairs, blocks, monkeypatch):
    found = []
    monkeypatch.setattr(builds, "programs", lambda name: name)
    monkeypatch.setattr(builds, "Cluster", lambda *_: nullcontext())
    monkeypatch.setattr(
        builds, "on_one_and_on_all", lambda bed, tested, many, **_: found.append(many) or []
    )
    list(opened(profile="laptop", pairs=pairs).measure(builds.by_processors_on_builds, {}))
    assert found == [blocks]


# ---- writers


@pytest.mark.parametrize(
    ("claim", "event", "facts"),
    [
        ("haas-084", "XactSLRU", [False, False]),
        ("haas-084", "ProcArray", [True, False]),
    ],
)
def test_waits_become_facts_only_where_there_are_waits(claim, event, facts):
    rows = [
        {"commits": "asynchronous", "type": "LWLock", "event": event, "backends": 1.0},
        {"commits": "asynchronous", "type": "CPU", "event": "running", "backends": 9.0},
        {"commits": "synchronous", "type": "IO", "event": "WalSync", "backends": 5.0},
    ]
    found = judged(claim, "scalability", processors=32, writer_waits=rows)
    assert [part.value for part in found.parts.values()] == facts


def test_call_chains_become_causes_and_the_postmasters_are_left_out():
    backend, postmaster = ("PostgresMain", "BackendMain", "ServerLoop"), ("ServerLoop.isra.0",)
    chains = pd.DataFrame(
        [
            (("schedule", "epoll_wait", "WaitEventSetWait", "secure_read", "PostgresMain"), 6),
            (("schedule", "PGSemaphoreLock", "LWLockAcquire", *backend), 3),
            (("schedule", "irqentry_exit_to_user_mode", "_bt_first", "[unknown]"), 1),
            (("schedule", "epoll_wait", "WaitEventSetWait", *postmaster, "PostmasterMain"), 90),
        ],
        columns=["chain", "samples"],
    )
    assert clients.by_cause(chains).to_dict() == {
        "the client": 6,
        "a lightweight lock": 3,
        clients.PREEMPTED: 1,
    }
    assert clients.by_cause(chains.tail(1)).empty  # the postmaster alone


# ---- an idle server


def test_a_watch_counts_the_wakeups_of_a_live_server(monkeypatch):
    monkeypatch.setattr(idle, "SETTLE", 0.0)
    watching = opened(idle_seconds=5)
    try:
        assert {row["name"] for row in idle.idle_server(watching)} >= {"wal_writer_delay"}
        rows = pd.DataFrame(measured(watching, idle.wakeups))
    finally:
        watching.close()
    assert {"checkpointer", "walwriter", idle.EVERYBODY} <= set(rows["role"])
    assert "postmaster" not in set(rows["role"])
    assert idle.TODAY in set(rows["server"])  # and 9.1 and 9.2 where they are registered
    for _, of_one in rows.groupby("server"):
        by_block = of_one.pivot(index="block", columns="role", values="per_second")
        everybody = by_block.pop(idle.EVERYBODY)
        assert list(by_block.sum(axis=1)) == pytest.approx(list(everybody)) and len(everybody) > 1


# ---- builds


def test_lookups_run_beside_idle_sessions_and_beside_none(bed):
    rows = on_builds(bed, builds.idle_sessions)
    assert {row["idle"] for row in rows} == {0, 100} and all(row["lookups"] > 0 for row in rows)


def asked(**questions):
    commits = {"early": "not flushed yet", "late": "flushed"}
    return [
        {"build": build, "commits": commits[when], "questions": number}
        for when, each in questions.items()
        for build, number in zip(("9.1", "9.2"), each, strict=True)
    ]


def crowd(tps):
    again = [({"clients": 2, "again": twice}, {"tps": 100.0}) for twice in (False, True)]
    crowded = [({"clients": n}, {"tps": x}) for n, x in ((2, 100.0), (16, tps))]
    return {"crowd": rows_of(crowded), "lookups": rows_of(again)}


def kept(before, largest):
    sizes = {"9.1": (before, before), "9.2": (32, largest)}
    return [
        {"build": build, "shared_buffers": pool, "kilobytes": size}
        for build, both in sizes.items()
        for pool, size in zip(("2MB", "1GB"), both)
    ]


def rested(seconds, before=11.5, after=0.41):
    per_second = {"today": 0.6, "9.2": after, "9.1": before}
    rows = rows_of(
        [
            ({"role": role, "server": server}, {"per_second": found * share})
            for server, found in per_second.items()
            for role, share in (
                (idle.EVERYBODY, 1.0),
                ("background writer", 0.4),
                ("walwriter", 0.4),
            )
        ]
    )
    return [row | {"rested": seconds} for row in rows]


def copied_on_builds(before):
    per_row = {"9.1": before, "9.2": 25.0}
    return [{"build": build, "bytes_per_row": found} for build, found in per_row.items()]


def snapshots(gained, alone=1.0):
    """Lookups after the commit that packs what snapshots read, over those before it."""
    return rows_of(
        [
            ({"build": build, "idle": idle}, {"lookups": 100.0 * gain})
            for idle, gain in ((0, alone), (1000, gained))
            for build, gain in (("pgxact-before", 1.0), ("pgxact", gain))
        ]
    )


def by_processors(lookups, writers, processors=2):
    """Throughput on all processors, by that on one."""
    loads = {"lookups": lookups, "writers": writers}
    return rows_of(
        [
            ({"build": "9.2", "load": load, "processors": number}, {"tps": 100.0 * gain})
            for load, gained in loads.items()
            for number, gain in ((1, 1.0), (processors, gained))
        ]
    )


def releases(processors, gain):
    """Lookups by as many clients as processors; 9.2 has `gain` times the throughput of 9.1."""
    common = {"load": "lookups", "clients": processors, "processors": processors}
    return rows_of(
        [
            (common | {"build": build}, {"tps": tps})
            for build, tps in (("9.1", 100.0), ("9.2", 100.0 * gain))
        ]
    )


def calls(alone):
    """A lookup's instructions before the patch, as a multiple of those after it."""
    counts = (("sinval-before", 1000 * alone), ("sinval", 1000))
    other = {"function": "LWLockAcquire", "called_by": "LockAcquireExtended", "calls": 1}
    return [other | {"build": build, "instructions": count} for build, count in counts]


def sinval(gain):
    return rows_of(
        [
            ({"build": build, "load": "lookups", "clients": 32}, {"tps": tps})
            for build, tps in (("sinval-before", 100.0), ("sinval", 100.0 * gain))
        ]
    )


RELEASES = rows_of(
    [
        ({"build": build, "load": load, "clients": 32, "processors": 32}, {"tps": tps})
        for build, load, tps in (
            *(("9.1", "lookups", 100.0), ("9.2", "lookups", 300.0)),
            *(("9.1", "writers", 100.0), ("9.2", "writers", 120.0)),
        )
    ]
)


@pytest.mark.parametrize(
    ("claim", "processors", "tables", "said"),
    [
        # a crowd that costs, one that gains
        ("haas-002", 0, crowd(80.0), "holds"),
        ("haas-002", 0, crowd(120.0), "reversed"),
        ("haas-002", 0, crowd(101.0), "no effect"),
        # what was fixed, and the cap that the largest pool reaches
        *(
            ("haas-019", 0, {"clog_buffers_on_builds": kept(*sizes)}, said)
            for sizes, said in (
                ((64, 256), "holds"),
                ((64, 2048), "partly"),
                ((128, 256), "partly"),
                ((32, 32), "different now"),
            )
        ),
        # questions that are asked once are spared where no hint can be set
        ("haas-021", 0, {"dead_tuples": asked(early=(4, 2), late=(1, 1))}, "holds"),
        ("haas-021", 0, {"dead_tuples": asked(early=(2, 2), late=(1, 1))}, "not so"),
        # only a server that was idle for minutes is the talk's
        *(
            ("haas-060", 0, {"wakeups": rested(*x)}, y)
            for x, y in (
                ((27,), "not tested here"),
                ((210,), "holds"),
                ((210, 11.6, 0.56), "partly"),
                ((210, 5.0, 0.41), "partly"),
                ((210, 5.0, 0.56), "different now"),
            )
        ),
        *(
            ("haas-061", 0, {"wakeups": rested(x, before)}, y)
            for x, before, y in (
                (27, 11.5, "not tested here"),
                (210, 11.5, "holds"),
                (210, 4.1, "not so"),
            )
        ),
        # before is 9.1 itself
        *(
            ("haas-023", 0, {"copied_on_builds": copied_on_builds(x)}, y)
            for x, y in ((80.0, "holds"), (25.0, "no effect"), (12.5, "reversed"))
        ),
        # a snapshot is dear beside many sessions
        *(
            ("haas-015", 0, {"idle_sessions": snapshots(x, alone)}, y)
            for x, alone, y in (
                (1.2, 1.0, "holds"),
                (1.02, 1.2, "no effect"),
                (0.9, 1.0, "reversed"),
            )
        ),
        # contention shows on two processors where lookups have none, or it is not decided there
        *(
            ("haas-025", 0, {"by_processors_on_builds": by_processors(*gains)}, said)
            for gains, said in (
                ((1.9, 1.2), "holds"),
                ((1.9, 1.85), "not tested here"),
                ((1.2, 1.2), "not tested here"),
                ((31.0, 31.0, 32), "no effect"),
                ((20.0, 20.0, 32), "holds"),
            )
        ),
        ("haas-005", 2, {"releases_over_clients": RELEASES}, "not tested here"),
        # eight processors, and not the talk's thirty-two
        *(
            ("haas-006", many, {"releases_over_clients": releases(many, gain)}, said)
            for many, gain, said in (
                (2, 1.3, "not tested here"),
                (8, 1.3, "holds"),
                (8, 1.0, "no effect"),
                (32, 1.3, "not tested here"),
            )
        ),
        ("haas-005", 32, {"releases_over_clients": releases(32, 4.0)}, "holds"),
        ("haas-005", 32, {"releases_over_clients": releases(32, 2.0)}, "not so"),
        *(
            ("haas-010", 32, {"lookup_calls": calls(alone), "patches": sinval(gain)}, said)
            for alone, gain, said in (
                (1.01, 1.2, "holds"),
                (1.01, 1.0, "partly"),
                (1.2, 1.2, "partly"),
                (1.2, 1.0, "not so"),
            )
        ),
        ("haas-024", 32, {"releases_over_clients": RELEASES}, "weaker"),
        # the release that divided insertion is not the one that was hoped for
        ("haas-082", 0, {}, "different now"),
    ],
)
def test_what_the_rules_make_of_rows(claim, processors, tables, said):
    assert word(claim, "scalability", processors=processors, **tables) == said


def commits_of(gain, waiting=("as set", "long")):
    """`waiting` are the flushes that commits mostly wait for; with the longest it gains half."""
    return rows_of(
        [
            (
                {"build": build, "clients": clients, "flush": flush, "flush_ms": milliseconds},
                {"tps": tps, "per_flush": clients * (0.4 if flush in waiting else 0.1)},
            )
            for clients, flush, milliseconds, gained in (
                (2, "as set", 5.0, 1.0),
                (250, "as set", 5.0, gain),
                (250, "brief", 1.0, 4.0),
                (250, "long", 10.0, gain / 2),
            )
            for build, tps in (("9.1", 100.0), ("9.2", 100.0 * gained))
        ]
    )


@pytest.mark.parametrize(
    ("gain", "waiting", "words"),
    [
        (7.0, ("as set", "long"), ["holds", "partly", "holds"]),
        (7.0, ("long",), ["holds", "weaker", "holds"]),
        (20.0, ("as set", "long"), ["holds", "stronger", "holds"]),
        (20.0, ("brief", "as set", "long"), ["holds", "partly", "holds"]),
        (20.0, (), ["holds", "not tested here", "holds"]),
        (3.0, ("as set", "long"), ["holds", "weaker", "holds"]),
        (1.01, ("as set", "long"), ["no effect", None, "no effect"]),  # half of it is a loss
    ],
)
def test_group_commit_is_judged_on_both_releases_where_commits_wait(gain, waiting, words):
    rows = commits_of(gain, waiting)
    claims = ("haas-022", "haas-026", "haas-027")
    found = [word(claim, "scalability", commits_on_builds=rows) for claim in claims]
    assert [one and said for one, said in zip(words, found)] == words


def test_builds_that_are_not_registered_set_their_experiments_aside(monkeypatch, bed):
    monkeypatch.setattr(builds.builds, "registered", dict)
    for one in (builds.lookup_calls, builds.dead_tuples, builds.commits_on_builds):
        with pytest.raises(CannotMeasure, match="registered"):
            list(bed.measure(one, {}))


def test_what_a_repeated_statement_calls_is_counted_by_who_calls_it():
    try:
        callgrind.require()
    except CannotMeasure as reason:
        pytest.skip(str(reason))
    with Cluster(bundled()) as cluster:
        cluster.stop()
        found = callgrind.repeated(cluster, ["SELECT 1"], "SELECT 2", 3, ["LWLockAcquire"])
    assert found["exclusive"].sum() > 1000
    assert any(name.startswith("LWLockAcquire'") for name in found["function"])
    assert found.loc[found["function"] == "raw_parser", "calls"].sum() == 1
