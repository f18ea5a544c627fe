"""The scalability chapter on small servers, and what its rules make of rows."""

import os
from contextlib import closing, suppress
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from servers import tell

from pgrerun.chapters.scalability import load
from pgrerun.chapters.scalability.experiments import (
    builds,
    clients,
    commit_log,
    commits,
    flushes,
    idle,
    large_machines,
    light_locks,
    locks,
    scheduler,
    wal,
    wal_writer,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import callgrind, pgbench, sessions
from pgrerun.lab.models import lookups as model
from pgrerun.lab.models.contention import play
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, bundled, open_server
from pgrerun.lab.server.builds import registered
from pgrerun.lab.testbed import Block, Testbed
from pgrerun.parameters import chapter_parameters
from tests.judging import UNTESTED, counted, judged, measured, repeated, timed, word

COSTS = model.Costs(work=50e-6, visit=0.1e-6, line=0.05e-6, switch=5e-6, rouse=20e-6)
BLOCK = Block(index=0, seed=1, position=0)
CHAPTER = "scalability"
SMALL = {"pairs": 5, "most_clients": 16, "seconds": 0.05, "commit_clients": 8}


def opened(guest=None, rows=None, **given):
    kept = rows or {}
    return Testbed(
        chapter_parameters("scalability", SMALL | given),
        bundled(),
        guest,
        rows=lambda name: kept.get(name, []),
    )


def on_builds(bed, experiment, **changed):
    """The rows of an experiment; skipped where its builds aren't registered."""
    try:
        return measured(bed, experiment, **changed)
    except CannotMeasure as reason:
        pytest.skip(str(reason))


# ---- loads


@pytest.mark.parametrize(
    ("processors", "most", "counts", "one_each"),
    [
        (2, 64, [1, 2, 8, 32, 64], 2),
        (128, 16, [1, 2, 4, 8, 16], 16),
        (6, 16, [1, 2, 4, 6, 8, 16], 6),
    ],
)
def test_numbers_of_clients_double_up_to_one_per_processor_and_end_in_the_most(
    monkeypatch, processors, most, counts, one_each
):
    monkeypatch.setattr(load, "processors", lambda: processors)
    bed = opened(most_clients=most)
    assert (load.client_counts(bed), load.one_per_processor(bed)) == (counts, one_each)


def test_clients_on_a_borrowed_server_leave_room_for_its_owner(borrowed_url):
    with open_server(borrowed_url, bundled()) as guest:
        lent = opened(guest, most_clients=64)
        assert max(load.client_counts(lent) + commits.sizes(lent)) <= 30  # it allows 40
        with (
            pytest.raises(CannotMeasure, match="not ours"),
            sessions.configured(guest, synchronous_commit="off"),
        ):
            pass


def test_a_load_is_tried_out_once_and_longer_until_its_time_tells_something(bed, monkeypatch):
    asked = []

    def run(server, script, *, transactions, clients, **how):
        asked.append(transactions)
        return SimpleNamespace(tps=10_000.0 * clients, transactions=transactions * clients)

    monkeypatch.setattr(pgbench, "run", run)
    tried = load.Load(bed, None, "lookup", 2)
    for seed in (1, 2):
        tried.run(seed)
    assert asked == [load.LEAST, 10 * load.LEAST, 500, 500]
    load.Load(bed, None, "lookup", 2, told=True).run(1)  # briefer, as nothing rests on it
    assert asked[-1] == 100


def test_a_server_that_cannot_be_looked_into_has_a_throughput_only(monkeypatch, bed):
    tested = load.loaded(bed)
    monkeypatch.setattr(type(tested), "can", lambda server, capability: False)
    assert set(load.Load(bed, tested, "lookup", 2).observe(BLOCK)) == {"tps"}


# ---- lookups


def test_a_law_is_fitted_to_four_numbers_of_clients_and_not_to_three():
    def fitted(tps, blocks=5):
        swept = [{"clients": number, "again": False, "tps": x} for number, x in tps.items()]
        return next(clients.law_of_lookups(opened(rows={"lookups": repeated(swept, blocks)})))

    rising = {1: 100.0, 2: 190.0, 8: 500.0, 32: 700.0}
    law = fitted(rising)
    assert law["scale"] == pytest.approx(100, rel=0.2) and law["fits"]
    assert "sigma_low" in law and "sigma_low" not in fitted(rising, blocks=1)
    peaked = fitted({1: 100.0, 2: 210.0, 8: 205.0, 16: 200.0, 32: 190.0})
    assert peaked["measured_peak"] == 2 and not peaked["fits"]  # that peaks elsewhere
    with pytest.raises(CannotMeasure, match="four"):
        fitted({1: 100.0, 2: 190.0, 8: 500.0})


# ---- locks


def test_strong_locks_elsewhere_push_all_others_off_the_fast_path(bed):
    share = {row["locks"]: row["fastpath"] for row in measured(bed, locks.overflow)}
    assert share[locks.FAST] == 1 and 0 < share[locks.TABLE] < 1 and share[locks.HELD] < 0.1


def test_locks_of_2012_are_counted_as_often_as_they_are_taken(bed):
    replaced = on_builds(bed, light_locks.page_replacement, lookups=500)
    taken = {(row["build"], row["data"]): row["exclusively"] for row in replaced}
    read = {(row["build"], row["data"]): row["reads"] for row in replaced}
    for build in light_locks.COUNTING:
        assert taken[build, "don't fit"] == pytest.approx(read[build, "don't fit"], rel=0.1)
        assert taken[build, "fit"] < 100
    inserted = on_builds(bed, light_locks.insertion_lock, rows=2000)
    assert {row["sessions"] for row in inserted} >= {1, 2}
    assert all(row["exclusively"] == pytest.approx(row["records"], rel=0.02) for row in inserted)
    looked_up = on_builds(bed, light_locks.lookup_locks)
    taken = {(row["build"], row["lock"]): row["exclusively"] for row in looked_up}
    before, after = (taken[one, "a partition of the lock table"] for one in light_locks.COUNTING)
    assert before > after
    assert not any(row["blocked"] for row in looked_up)


def test_headers_tell_how_a_spinlock_is_waited_for_on_itanium(bed):
    rows = on_builds(bed, builds.itanium_spinlock)
    assert all("_Asm_xchg" in row["spinning"] for row in rows)


def test_waits_are_told_by_what_is_waited_for():
    waits = {0: 99, 4: 3, 7: 5, 11: 2, 40: 6, 41: 7, 49: 1, 50: 4, 81: 10, 88: 20, 89: 8, 500: 1}
    found = light_locks.waited_for(waits, log_buffers=8)
    assert found == {
        "process_array": 3,
        "invalidations": 0,
        "wal_insertion": 5,
        "wal_write": 0,
        "lock_table": 4,
        "commit_log": 32,
        "any_other": 8,
    }
    assert set(found) == set(light_locks.BY_WRITERS)


def test_writers_on_builds_wait_for_what_is_told(bed):
    rows = on_builds(bed, light_locks.writer_contention)
    assert {(row["build"][:3], row["accounts"]) for row in rows} == {
        ("9.1", light_locks.RECENT),
        ("9.1", light_locks.LONG),
        ("9.2", light_locks.LONG),
    }


# ---- the commit log and the WAL


@pytest.mark.skipif("9.1" not in registered(), reason="the build 9.1 isn't registered here")
def test_aged_rows_come_from_all_pages_of_the_log_and_none_has_a_hint():
    with Cluster(builds.programs("9.1")) as tested:
        Pgbench(1, 20_000, prefix="aged_").load(tested)
        tell(tested, "UPDATE aged_accounts SET abalance = 1 WHERE aid <= 100")
        commit_log.age_rows(tested, "aged_accounts", pages=40, seed=1)
        assert commit_log.kept(tested) == 8
        hinted = """SELECT sum((t_infomask & 256 <> 0)::int) FROM heap_page_items(
            get_raw_page('aged_accounts', 100))"""
        asked = """SELECT count(*), count(DISTINCT xmin::text::bigint / 32768), sum(abalance)
            FROM aged_accounts"""
        assert [tested.fetch(one) for one in (hinted, asked)] == [(0,), (20_000, 40, 100)]
        tell(tested, "UPDATE aged_accounts SET abalance = 2")


def test_ageing_leaves_updated_rows_and_what_is_no_row():
    page = np.zeros(8192, np.uint8)
    halves, words = page.view(np.uint16), page.view(np.uint32)
    halves[5], halves[6] = 0x0004, 24 + 4 * 4  # all visible, and four line pointers
    places = (8000, 7800, 7600)
    words[6:9] = [place | 1 << 15 | 100 << 17 for place in places]  # the fourth is unused
    for place, mask in zip(places, (0x0900, 0x2900, 0x0100)):  # loaded, updated, being deleted
        words[place // 4], halves[place // 2 + 10] = 2, mask
    commit_log.age(page, 4, np.random.default_rng(1))
    assert halves[5] == 0
    assert [halves[place // 2 + 10] for place in places] == [0x0800, 0x2900, 0x0100]
    assert 1000 <= words[2000] < 4 * commit_log.ON_A_PAGE
    assert [words[place // 4] for place in places[1:]] == [2, 2]


def test_wal_waits_for_the_disk_from_when_it_was_inserted_until_it_is_seen_there():
    looks = [(1.0, 20, 10), (2.0, 30, 20), (4.0, 30, 30), (5.0, 40, 30)]
    assert [list(wal_writer.waited(looks[k:])) for k in (0, 1, 3)] == [[1.0], [2.0], []]


def test_a_woken_wal_writer_brings_commits_to_the_disk_sooner(monkeypatch, bed):
    monkeypatch.setattr(wal_writer, "PATCH", [])  # the two releases alone
    rows = {row["build"]: row for row in on_builds(bed, wal_writer.commits_reach_disk)}
    assert rows["9.2"]["unflushed"] < rows["9.1"]["unflushed"] / 2
    assert rows["9.2"]["unknown"] < rows["9.1"]["unknown"] <= 1


def test_index_scans_ask_the_commit_log_for_nothing_that_they_know(bed):
    rows = list(bed.measure(wal.index_scans, {}))
    unseen, *seen = (row["questions"] for row in rows)
    assert unseen < 10 and seen == [2000, 0]


def test_what_is_kept_of_the_commit_log_is_what_the_sources_say(bed):
    rows = on_builds(bed, commit_log.clog_buffers_on_builds)
    pages = {(row["build"], row["shared_buffers"]): row["kilobytes"] // 8 for row in rows}
    assert [pages["9.1", pool] for pool in commit_log.POOLS] == [8, 8, 8]  # NUM_CLOG_BUFFERS
    assert [pages["9.2", pool] for pool in commit_log.POOLS] == [4, 32, 32]  # CLOGShmemBuffers


# Who waits for a slow page of the commit log: who needs it, and on some servers others.
SLOW_PAGE = """
server  session                                         waits
'9.1'   reads the slow page                             True
'9.1'   needs the same page                             True
'9.1'   needs one page after another, but not that one  {0}
'9.2'   reads the slow page                             True
'9.2'   needs the same page                             True
'9.2'   needs one page after another, but not that one  {1}
today   reads the slow page                             True
today   needs the same page                             True
today   needs one page after another, but not that one  {2}
"""


def test_who_needs_other_pages_waits_for_the_slow_one_in_9_1_alone(monkeypatch, bed):
    monkeypatch.setattr(commit_log, "DELAY", 3.0)  # longer than a busy machine makes anybody wait
    found = on_builds(bed, commit_log.slow_clog_page)
    assert sorted(found, key=str) == sorted(counted(SLOW_PAGE, True, False, False), key=str)


@pytest.mark.parametrize(
    ("waits", "why"),
    [(set(), "wasn't"), ({commit_log.READER, commit_log.SAME_PAGE}, "didn't show it")],
)
def test_a_page_that_is_not_slow_or_a_bug_that_9_1_hides_gives_no_verdict(
    monkeypatch, bed, waits, why
):
    every = (commit_log.READER, commit_log.SAME_PAGE, commit_log.OTHER_PAGES)
    ends = {session: commit_log.DELAY * (session in waits) for session in every}
    stand_ins = {
        "complete": lambda pairs: ["9.1"],
        "programs": lambda name: bed.programs,
        "many_transactions": lambda tested, pages: None,
        "_while_slow_page_is_read": lambda tested, slow: ends,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(commit_log, name, stand_in)
    with pytest.raises(CannotMeasure, match=why):
        list(bed.measure(commit_log.slow_clog_page, {}))


def test_later_no_page_is_logged_in_full_and_a_record_takes_its_lock_as_before(bed):
    rows = on_builds(bed, light_locks.insertion_after_checkpoint)
    later, after = (
        next(row for row in rows if row["moment"] == moment)
        for moment in (light_locks.LATER, light_locks.AFTER)
    )
    assert later["wal"] < after["wal"] / 1.5
    # an eighth fewer in each of five runs: of the same accounts again HOT may spare entries
    assert later["exclusively"] == pytest.approx(after["exclusively"], rel=0.25)


def test_a_flush_carries_one_commit_of_one_client_and_more_of_many(bed):
    # whether a quick flush is shared is the schedule's; at a slow one all others arrive
    rows = {row["clients"]: row for row in measured(bed, commits.slowed_commits) if row["waits"]}
    assert rows[1]["per_flush"] <= 1 < rows[8]["per_flush"]
    assert rows[8]["disk"] and 0 < rows[1]["flushing"] <= 1


def test_a_small_file_is_flushed_while_a_large_one_is_copied(bed, monkeypatch):
    rows = measured(bed, flushes.small_flushes, gigabytes=0.05)
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1)) != []
    assert all(row["seconds"] > 0 and row["dirty"] >= 0 for row in rows)
    monkeypatch.setattr(flushes.machine, "filesystem", lambda place: {"type": "tmpfs"})
    with pytest.raises(CannotMeasure, match="in memory"):
        measured(bed, flushes.small_flushes)


# ---- simulated machines


def test_the_simulated_single_client_is_what_play_comes_to():
    lookup = model.lookup(model.BEFORE, COSTS)
    played = play(model.machine(32, COSTS), lookup, 1, transactions=3000).throughput
    point = model.Point(model.BEFORE, 32, 1, COSTS)
    assert point.play(100, seed=1).throughput == pytest.approx(played, rel=0.01)


def calibrated(quick):
    """The costs from made-up rows of all that they are made of.

    In the first `quick` of five blocks a lock takes less than the empty loop.
    """
    times = {locks.EMPTY: 40.0, locks.ALONE: 240.0, locks.SAME: 900.0, locks.OTHER: 300.0}
    looped = repeated([{"together": name, "time": time} for name, time in times.items()])
    for row in looped:
        if row["together"] == locks.ALONE and row["block"] < quick:
            row["time"] = 30.0
    swept = [
        {"clients": number, "again": False, "tps": 1e4 * number}
        for number in load.client_counts(opened())
    ]
    made = {
        "lock_costs": looped,
        "handoffs": repeated([{"handed": "through a pipe", "elapsed": 20.0, "processor": 5.0}]),
        "lookups": repeated(swept),
    }
    return large_machines.calibrated(opened(rows=made))


def test_costs_are_calibrated_on_the_blocks_in_which_a_lock_took_time():
    found = calibrated(quick=2)
    expected = {"visit": 100e-9, "line": 25e-9, "switch": 5e-6, "rouse": 20e-6, "work": 1e-4}
    assert len(found) == 3 and vars(model.typical(found)) == pytest.approx(expected, rel=0.02)
    with pytest.raises(CannotMeasure, match="in no block"):
        calibrated(quick=5)
    with pytest.raises(CannotMeasure, match="lock_costs"):
        large_machines.calibrated(opened())


def test_server_and_clients_are_kept_on_one_processor_and_let_go_again(bed):
    usable = os.sched_getaffinity(0)
    rows = measured(bed, clients.by_processors)
    assert {row["processors"] for row in rows} == {1, len(usable)}
    assert os.sched_getaffinity(0) == usable
    roles = bed.cluster(**load.in_memory(bed)).pids()
    kept = {}
    for pid, role in roles.items():
        with suppress(ProcessLookupError):  # autovacuum's worker may have ended since
            kept[role, pid] = os.sched_getaffinity(pid)
    assert {"postmaster", "checkpointer"} <= {role for role, _ in kept}
    assert set(map(frozenset, kept.values())) == {frozenset(usable)}


# ---- writers


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
    monkeypatch.setattr(idle.builds, "registered", dict)
    with closing(opened(idle_seconds=5)) as watching:
        assert {row["name"] for row in idle.idle_server(watching)} >= {"wal_writer_delay"}
        rows = pd.DataFrame(measured(watching, idle.wakeups))
    rates = rows.pivot(index="block", columns="role", values="per_second")
    assert {"checkpointer", "walwriter"} <= set(rates) and "postmaster" not in rates
    everybody = rates.pop(idle.EVERYBODY)
    assert list(rates.sum(axis=1)) == pytest.approx(list(everybody)) and len(everybody) > 1


def test_the_seconds_in_which_the_postmaster_starts_a_process_are_left_out(monkeypatch, bed):
    roles, so_far = ["postmaster", "walwriter"], np.zeros(2)
    readings = []
    for second in range(61):  # every twentieth has a round, which wakes the WAL writer as well
        so_far = so_far + ([1, 30] if second % 20 == 5 else [0, 5])
        readings.append((float(second), pd.DataFrame({"role": roles, "switches": so_far})))
    watched = SimpleNamespace(rested=210.0, end=lambda least: readings)
    monkeypatch.setattr(idle, "_watched", {bed: {"9.2": watched}})
    rows = measured(bed, idle.wakeups_between_rounds)
    assert len(rows) == 5 and {row["server"] for row in rows} == {"9.2"}
    assert all(row["per_second"] == 5 for row in rows)
    assert sum(row["quiet"] for row in rows) / 5 == pytest.approx(57 / 60)


# ---- builds


def test_lookups_on_builds_by_one_and_by_many(bed):
    here = load.processors()
    rows = on_builds(bed, builds.in_pools)
    assert {(row["server"], row["data"], row["sessions"]) for row in rows} == {
        (server, data, sessions)
        for server in ("9.2", builds.TODAY)
        for data in (builds.FITS, builds.DOESNT_FIT)
        for sessions in (1, here)
    }
    reads = {(row["data"], row["sessions"]): row["reads"] for row in rows if row["server"] == "9.2"}
    assert reads[builds.FITS, here] < 0.01 < 0.5 < reads[builds.DOESNT_FIT, here]
    rows = on_builds(bed, builds.in_turn)
    turns = {(row["build"], row["clients"]): row["lookups"] for row in rows}
    assert set(turns) == {(name, n) for name in ("sinval-before", "sinval") for n in (1, here)}
    assert min(turns.values()) > 1000


def test_clients_are_placed_on_processors_of_their_own(monkeypatch, bed):
    monkeypatch.setattr(scheduler, "LARGE", 2)
    monkeypatch.setattr(scheduler, "MIDDLE", ())
    usable = os.sched_getaffinity(0)
    rows = on_builds(bed, scheduler.placed_clients)
    assert {row["placed"] for row in rows} == {scheduler.KEPT, scheduler.LEFT}
    assert os.sched_getaffinity(0) == usable


@pytest.mark.skipif(bool(callgrind.unavailable()), reason=str(callgrind.unavailable()))
def test_what_a_repeated_statement_calls_is_counted_by_who_calls_it(stopped):
    found = callgrind.repeated(stopped, ["SELECT 1"], "SELECT 2", 3, ["LWLockAcquire"])
    assert found["exclusive"].sum() > 1000
    assert any(name.startswith("LWLockAcquire'") for name in found["function"])
    assert found.loc[found["function"] == "raw_parser", "calls"].sum() == 1


# ---- what the rules make of rows

CROWD = """
clients  tps
2        100.0
16       {0}
"""
TWICE = """
clients  again  tps
2        False  100.0
2        True   100.0
"""

WEAK_AND_STRONG = """
state                  lock                 granted  fastpath
two readers            AccessShareLock      True     {1}
a reader and a writer  RowExclusiveLock     {2}      {1}
a reader and an ALTER  AccessExclusiveLock  {0}      False
a reader and a DROP    AccessExclusiveLock  {0}      False
"""
VIRTUAL = """
build            function                     called_by                   calls  instructions
lazyvxid-before  LWLockAcquire                LockAcquireExtended         3      1000
lazyvxid-before  hash_search_with_hash_value  {0}                         2      1000
lazyvxid         LWLockAcquire                VirtualXactLockTableInsert  1      1000
lazyvxid         hash_search_with_hash_value  {1}                         2      1000
"""

# How often sessions wait for lightweight locks, and were seen to wait for one of SQL's.
LOOKUP_LOCKS = """
build             lock                           transactions  waits  blocked
9.1-lwlock-stats  a partition of the lock table  900           {0}    {2}
9.1-lwlock-stats  any other                      900           {1}    {2}
9.2-lwlock-stats  a partition of the lock table  900           {3}    {2}
9.2-lwlock-stats  any other                      900           9      {2}
"""
# How often writers wait in 1,000 transactions, by where their accounts come from.
CONTENTION = """
build             accounts                         processors  commit_log  any_other
9.1-lwlock-stats  as loaded                        {0}         2.0         9.0
9.1-lwlock-stats  by half an hour of transactions  {0}         {1}         {2}
9.2-lwlock-stats  by half an hour of transactions  {0}         5.0         9.0
"""
# Before insertion into the WAL was divided, and after.
DIVIDED = """
build                         processors  process_array  wal_insertion  commit_log  any_other
walslots-before-lwlock-stats  {0}         20.0           {1}            9.0         3.0
walslots-lwlock-stats         {0}         {2}            {3}            9.0         3.0
"""

# With as many clients as processors.
OVER_CLIENTS = """
build  load     clients  processors  tps
'9.1'  lookups  {0}      {0}         100.0
'9.2'  lookups  {0}      {0}         {1}
"""
# By few clients, by so many in between, and by all of the processors.
PEAK = """
build  load     clients  processors  tps
'9.1'  lookups  8        {0}         100.0
'9.1'  lookups  {1}      {0}         {2}
'9.1'  lookups  {0}      {0}         200.0
"""
OF_RELEASES = """
build  flushes  clients  processors  tps
'9.1'  as set   32       32          100.0
'9.2'  as set   32       32          {0}
'9.1'  none     32       32          100.0
'9.2'  none     32       32          150.0
"""

# By so many clients in the middle, and by as many as the talk's larger machine had processors.
DISH = """
build  load     clients  processors  tps
'9.2'  lookups  1        64          100.0
'9.2'  lookups  24       64          {0}
'9.2'  lookups  64       64          {1}
"""

CALLS = """
build          function       called_by            calls  instructions
sinval-before  LWLockAcquire  {1}                  1      {0}
sinval         LWLockAcquire  LockAcquireExtended  1      1000
"""
IN_TURN = """
build          clients  processors  lookups
sinval-before  1        {0}         100.0
sinval         1        {0}         101.0
sinval-before  {0}      {0}         1000.0
sinval         {0}      {0}         {1}
"""

# How long commits wait for the WAL writer, what scans miss by it, and what a writer costs them.
REACH_DISK = """
build  unflushed  unknown
'9.1'  {0}        {1}
'9.2'  20.0       0.1
"""
BESIDE_A_WRITER = """
build                    beside                 scans
'9.1'                    nobody                 100.0
'9.1'                    a client that updates  70.0
9.1, looking more often  a client that updates  71.0
'9.2'                    nobody                 200.0
'9.2'                    a client that updates  {0}
"""

ON_ALL_PROCESSORS = """
build  load     processors  tps
'9.2'  lookups  1           100.0
'9.2'  lookups  {0}         {1}
'9.2'  writers  1           100.0
'9.2'  writers  {0}         {2}
"""

# By the commit that packs what snapshots read, and before it.
PGXACT = """
build          load     processors  tps
pgxact-before  lookups  {0}         100.0
pgxact         lookups  {0}         150.0
pgxact-before  writers  {0}         100.0
pgxact         writers  {0}         {1}
"""
# So many of the talk's clients in the middle, placed by the scheduler or kept.
PLACED = """
placed                          clients  processors  tps
by the scheduler                1        64          100.0
by the scheduler                24       64          {0}
each on a processor of its own  1        64          100.0
each on a processor of its own  24       64          {1}
"""

CLOG_BUFFERS = """
build  shared_buffers  kilobytes
'9.1'  2MB             {0}
'9.1'  1GB             {0}
'9.2'  2MB             32
'9.2'  1GB             {1}
"""

DEAD_TUPLES = """
build  commits          questions
'9.1'  not flushed yet  4
'9.2'  not flushed yet  {0}
'9.1'  flushed          1
'9.2'  flushed          1
"""

COPIED = """
build  bytes_per_row
'9.1'  {0}
'9.2'  25.0
"""

WAKEUPS = """
role          server  per_second  rested  quiet
all together  today   0.6         {0}     1
all together  '9.1'   {1}         {0}     1
all together  '9.2'   {2}         {0}     1
"""

SPINLOCK = """
build  spinning  guide
'9.1'  {0}       False
'9.2'  {1}       False
"""
EXCHANGED, READ_FIRST = "_Asm_xchg(lock)", "(*(lock) ? 1 : _Asm_xchg(lock))"

# How often a lock was taken for pages and for records; by 9.1 for each of them.
REPLACEMENT = """
build             data       lookups  reads  exclusively  waits
9.1-lwlock-stats  fit        2000     5      {1}          3
9.1-lwlock-stats  don't fit  2000     {2}    1001         3
9.2-lwlock-stats  fit        2000     5      {1}          3
9.2-lwlock-stats  don't fit  2000     {2}    {0}          3
"""
INSERTION = """
build             sessions  records  exclusively  waits
9.1-lwlock-stats  1         1000     1002         0
9.1-lwlock-stats  2         1000     1002         0
9.2-lwlock-stats  1         1000     {0}          0
9.2-lwlock-stats  2         1000     {0}          0
"""
FLUSHED = """
number  seconds  watched  dirty
1       0.1      0.1      0.0
2       {0}      {1}      4000.0
"""
CHECKPOINTED = """
moment                    processors  waits  exclusively  wal
right after a checkpoint  {0}         {1}    6.0          9.0
later                     {0}         1.0    6.0          3.0
"""

# By one session and by one for each processor.
IN_POOLS = """
server  data          sessions  processors  reads  lookups
'9.2'   fits          1         {0}         0.0    1.0
'9.2'   fits          {0}       {0}         0.0    16.0
'9.2'   does not fit  1         {0}         1.3    1.0
'9.2'   does not fit  {0}       {0}         1.3    {1}
"""
# The second session takes hits of the first one away.
APART = IN_POOLS.replace("{0}       {0}         1.3", "{0}       {0}         1.6")


def commits_of(gain, brief, few, computing, longest=0.5, carried=90.0):
    """`gain` is that of 9.2 with the usual flush, with the longest one so much of it is.

    So many commits a flush of 9.2 has `carried`.
    """
    return repeated(
        {"build": build, "clients": number, "flush": flush, "flush_ms": milliseconds}
        | {"tps": tps, "computing": computing, "per_flush": 6.0 if build == "9.1" else carried}
        for number, flush, milliseconds, gained in (
            (2, "as set", 5, few),
            (250, "as set", 5, gain),
            (250, "brief", 1, brief),
            (250, "long", 10, gain * longest),
        )
        for build, tps in (("9.1", 100.0), ("9.2", 100.0 * gained))
    )


def last_differs(text, *values, **found):
    """Rows of a table, of whose last block others were found."""
    return [row | (found if row["block"] == 4 else {}) for row in timed(text, *values)]


@pytest.mark.parametrize(
    ("claim", "processors", "tables", "said"),
    [
        # a crowd that costs, one that gains
        *(
            ("haas-002", 0, {"crowd": timed(CROWD, tps), "lookups": timed(TWICE)}, said)
            for tps, said in ((80.0, "holds"), (120.0, "reversed"), (101.0, "no effect"))
        ),
        # around twenty of thirty-two, and not of ninety-six
        *(
            ("haas-001", here, {"releases_over_clients": timed(PEAK, here, clients, tps)}, said)
            for here, clients, tps, said in (
                (32, 20, 300.0, "holds"),
                (32, 24, 300.0, "holds"),
                (32, 28, 300.0, "weaker"),
                (32, 20, 150.0, "no effect"),
                (32, 20, 90.0, "no effect"),
                (96, 64, 300.0, UNTESTED),
            )
        ),
        # lookups contend where 9.1 waits for the lock table, not for a lock, and 9.2 for neither
        ("haas-003", 2, {"lookup_locks": counted(LOOKUP_LOCKS, 50, 3, 0, 2)}, "holds"),
        ("haas-003", 2, {"lookup_locks": counted(LOOKUP_LOCKS, 50, 51, 0, 2)}, "holds"),
        ("haas-003", 2, {"lookup_locks": counted(LOOKUP_LOCKS, 50, 3, 0, 49)}, "partly"),
        ("haas-003", 2, {"lookup_locks": counted(LOOKUP_LOCKS, 5, 3, 0, 0)}, "partly"),
        ("haas-003", 2, {"lookup_locks": counted(LOOKUP_LOCKS, 50, 3, 1, 2)}, "partly"),
        ("haas-003", 2, {"lookup_locks": counted(LOOKUP_LOCKS, 0, 0, 1, 2)}, "not so"),
        ("haas-005", 2, {"releases_over_clients": timed(OVER_CLIENTS, 32, 300.0)}, UNTESTED),
        ("haas-005", 32, {"releases_over_clients": timed(OVER_CLIENTS, 32, 400.0)}, "holds"),
        ("haas-005", 32, {"releases_over_clients": timed(OVER_CLIENTS, 32, 200.0)}, "not so"),
        # eight processors, and not the talk's thirty-two
        ("haas-006", 2, {"releases_over_clients": timed(OVER_CLIENTS, 2, 130.0)}, UNTESTED),
        ("haas-006", 8, {"releases_over_clients": timed(OVER_CLIENTS, 8, 130.0)}, "holds"),
        ("haas-006", 8, {"releases_over_clients": timed(OVER_CLIENTS, 8, 100.0)}, "no effect"),
        ("haas-006", 32, {"releases_over_clients": timed(OVER_CLIENTS, 32, 130.0)}, UNTESTED),
        # where a lock is kept isn't what the talk says of weak and strong ones
        *(
            ("haas-008", 0, {"weak_and_strong": counted(WEAK_AND_STRONG, *how)}, said)
            for *how, said in (
                (False, True, True, "holds"),
                (False, False, True, "holds"),
                (True, True, True, "partly"),
                (False, True, False, "partly"),
            )
        ),
        # a lock that the commit keeps out of the lock table
        *(
            ("haas-009", 0, {"lookup_calls": counted(VIRTUAL, before, after)}, said)
            for before, after, said in (
                ("SetupLockInTable", "BufTableLookup", "holds"),
                ("SetupLockInTable", "SetupLockInTable", "partly"),
                ("BufTableLookup", "BufTableLookup", "partly"),
                ("BufTableLookup", "SetupLockInTable", "not so"),
            )
        ),
        # what is spared is a lock, and some instructions, but few
        ("haas-010", 0, {"lookup_calls": counted(CALLS, 1010, "SIGetDataEntries")}, "holds"),
        ("haas-010", 0, {"lookup_calls": counted(CALLS, 1010, "ReadBuffer_common")}, "partly"),
        ("haas-010", 0, {"lookup_calls": counted(CALLS, 1200, "SIGetDataEntries")}, "partly"),
        ("haas-010", 0, {"lookup_calls": counted(CALLS, 1000, "SIGetDataEntries")}, "partly"),
        # what few clients gain more than one isn't taken back by many
        *(
            ("haas-087", 0, {"in_turn": timed(IN_TURN, processors, lookups)}, said)
            for processors, lookups, said in (
                (32, 1200.0, "holds"),
                (32, 1010.0, "no effect"),
                (32, 900.0, "reversed"),
                (2, 1200.0, "holds"),
                (2, 1010.0, UNTESTED),
                (2, 900.0, UNTESTED),
            )
        ),
        # contention shows on two processors where lookups have none, or it is not decided there;
        # lookups scale out where 9.2 uses every processor
        *(
            (
                claim,
                processors,
                {"by_processors_on_builds": timed(ON_ALL_PROCESSORS, many, lookups, writers)},
                said,
            )
            for claim, processors, many, lookups, writers, said in (
                ("haas-011", 64, 64, 6370.0, 100.0, "holds"),
                ("haas-011", 64, 64, 4000.0, 100.0, "different now"),
                ("haas-011", 2, 2, 190.0, 100.0, UNTESTED),
                ("haas-014", 64, 64, 6370.0, 100.0, "holds"),
                ("haas-014", 64, 64, 4000.0, 100.0, "not so"),
                ("haas-014", 2, 64, 6370.0, 100.0, UNTESTED),
                ("haas-025", 0, 2, 190.0, 120.0, "holds"),
                ("haas-025", 0, 2, 190.0, 185.0, UNTESTED),
                ("haas-025", 0, 2, 120.0, 120.0, UNTESTED),
                ("haas-025", 0, 32, 3100.0, 3100.0, "no effect"),
                ("haas-025", 0, 32, 2000.0, 2000.0, "holds"),
            )
        ),
        # a dish is lower in the middle, and at the end not
        *(
            ("haas-012", processors, {"releases_over_clients": timed(DISH, middle, end)}, said)
            for processors, middle, end, said in (
                (64, 1800.0, 6370.0, "holds"),
                (64, 1800.0, 4800.0, "partly"),
                (64, 2390.0, 6370.0, "not so"),
                (2, 1800.0, 6370.0, UNTESTED),
            )
        ),
        ("haas-012", 2, {"releases_over_clients": timed(OVER_CLIENTS, 2, 130.0)}, UNTESTED),
        # a saddle that is gone where there is nothing to schedule was the scheduler's
        *(
            ("haas-013", processors, {"placed_clients": timed(PLACED, left, kept)}, said)
            for processors, left, kept, said in (
                (64, 1800.0, 2390.0, "holds"),
                (64, 1800.0, 1800.0, "not so"),
                (64, 2390.0, 2390.0, "inconclusive"),
                (2, 1800.0, 2390.0, UNTESTED),
            )
        ),
        # writers gain by the small array, and few processors that don't show it refute nothing
        ("haas-015", 0, {"patches": timed(PGXACT, 32, 120.0)}, "holds"),
        ("haas-015", 0, {"patches": timed(PGXACT, 32, 101.0)}, "no effect"),
        ("haas-015", 0, {"patches": timed(PGXACT, 32, 90.0)}, "reversed"),
        ("haas-015", 0, {"patches": timed(PGXACT, 2, 120.0)}, "holds"),
        ("haas-015", 0, {"patches": timed(PGXACT, 2, 101.0)}, UNTESTED),
        # the commit log is major where no lock beyond the talk's is waited for more
        *(
            ("haas-017", 0, {"writer_contention": timed(CONTENTION, processors, log, other)}, said)
            for processors, log, other, said in (
                (32, 50.0, 49.0, "holds"),
                (32, 50.0, 51.0, "not so"),
                (32, 0.2, 0.1, "not so"),
                (2, 50.0, 49.0, "holds"),
                (2, 50.0, 0.0, "holds"),
                (2, 50.0, 51.0, UNTESTED),
                (2, 0.2, 0.1, UNTESTED),
            )
        ),
        # runs that differ decide nothing
        *(
            ("haas-017", 0, {"writer_contention": last_differs(*rows, any_other=60.0)}, said)
            for *rows, said in (
                (CONTENTION, 32, 50.0, 49.0, "inconclusive"),
                (CONTENTION, 2, 50.0, 49.0, UNTESTED),
            )
        ),
        # sooner on the disk, fewer questions of a scan, and more of its throughput left
        *(
            (
                "haas-018",
                0,
                {
                    "commits_reach_disk": timed(REACH_DISK, unflushed, unknown),
                    "scans_beside_a_writer": timed(BESIDE_A_WRITER, scans),
                },
                said,
            )
            for unflushed, unknown, scans, said in (
                (200.0, 0.9, 180.0, "holds"),
                (200.0, 0.9, 141.0, "partly"),
                (200.0, 0.09, 180.0, "partly"),
                (19.0, 0.09, 141.0, "not so"),
            )
        ),
        # what was fixed, and the cap that the largest pool reaches
        ("haas-019", 0, {"clog_buffers_on_builds": counted(CLOG_BUFFERS, 64, 256)}, "holds"),
        ("haas-019", 0, {"clog_buffers_on_builds": counted(CLOG_BUFFERS, 64, 2048)}, "partly"),
        ("haas-019", 0, {"clog_buffers_on_builds": counted(CLOG_BUFFERS, 128, 256)}, "partly"),
        ("haas-019", 0, {"clog_buffers_on_builds": counted(CLOG_BUFFERS, 32, 32)}, "different now"),
        # a bug that 9.1 shows is fixed where no later server does
        ("haas-020", 0, {"slow_clog_page": counted(SLOW_PAGE, True, False, False)}, "fixed"),
        ("haas-020", 0, {"slow_clog_page": counted(SLOW_PAGE, False, False, False)}, UNTESTED),
        ("haas-020", 0, {"slow_clog_page": counted(SLOW_PAGE, True, True, False)}, "still there"),
        ("haas-020", 0, {"slow_clog_page": counted(SLOW_PAGE, True, False, True)}, "still there"),
        # questions that are asked once are spared where no hint can be set
        ("haas-021", 0, {"dead_tuples": counted(DEAD_TUPLES, 2)}, "holds"),
        ("haas-021", 0, {"dead_tuples": counted(DEAD_TUPLES, 4)}, "not so"),
        # group commit is judged on both releases, where 9.1 waits
        *(
            (claim, 0, {"commits_on_builds": commits_of(*how)}, said)
            for *how, words in (
                (7.0, 6.5, 1.0, 0.2, 1.1, ["holds", "holds", "holds"]),
                (14.0, 7.0, 1.0, 0.2, ["holds", "partly", "holds"]),  # twice what is printed
                (14.0, 4.0, 1.0, 0.2, ["holds", "partly", "holds"]),
                (20.0, 9.0, 1.0, 0.2, ["holds", "stronger", "holds"]),
                (3.0, 4.0, 1.0, 0.2, ["holds", "weaker", "holds"]),
                (14.0, 7.0, 1.0, 0.7, ["holds", UNTESTED, "holds"]),  # 9.1 computes
                (14.0, 7.0, 1.5, 0.2, ["holds", "partly", "partly"]),  # a huge benefit with few
                (1.01, 1.0, 1.0, 0.2, ["partly", "", "partly"]),  # half of it is a loss
                (1.01, 1.0, 1.5, 0.2, ["partly", "", "not so"]),
                (1.5, 1.0, 1.0, 0.2, 0.5, 5.0, ["not so", "", "partly"]),  # no flush carries more
                (14.0, 7.0, 1.0, 0.2, 0.5, 5.0, ["partly", "partly", "holds"]),
            )
            for claim, said in zip(("haas-022", "haas-026", "haas-027"), words)
            if said
        ),
        # before is 9.1 itself
        ("haas-023", 0, {"copied_on_builds": counted(COPIED, 80.0)}, "holds"),
        ("haas-023", 0, {"copied_on_builds": counted(COPIED, 25.0)}, "no effect"),
        ("haas-023", 0, {"copied_on_builds": counted(COPIED, 12.5)}, "reversed"),
        # with the flushes that PostgreSQL sets, and not without any
        ("haas-024", 32, {"writers_of_releases": timed(OF_RELEASES, 120.0)}, "weaker"),
        ("haas-024", 32, {"writers_of_releases": timed(OF_RELEASES, 150.0)}, "holds"),
        ("haas-024", 2, {"writers_of_releases": timed(OF_RELEASES, 150.0)}, UNTESTED),
        # only a server that was idle for minutes is the talk's
        *(
            (claim, 0, {"wakeups_between_rounds": timed(WAKEUPS, rested, before, after)}, said)
            for claim, rested, before, after, said in (
                ("haas-060", 27, 11.5, 0.41, UNTESTED),
                ("haas-060", 210, 11.5, 0.41, "holds"),
                ("haas-060", 210, 11.6, 0.56, "partly"),
                ("haas-060", 210, 5.0, 0.41, "partly"),
                ("haas-060", 210, 5.0, 0.56, "different now"),
                ("haas-061", 27, 11.5, 0.41, UNTESTED),
                ("haas-061", 210, 11.5, 0.41, "holds"),
                ("haas-061", 210, 4.1, 0.41, "not so"),
            )
        ),
        # a spinlock of Itanium is judged by what is done while it is taken
        ("haas-068", 0, {"itanium_spinlock": counted(SPINLOCK, EXCHANGED, READ_FIRST)}, "holds"),
        ("haas-068", 0, {"itanium_spinlock": counted(SPINLOCK, EXCHANGED, EXCHANGED)}, "partly"),
        ("haas-068", 0, {"itanium_spinlock": counted(SPINLOCK, READ_FIRST, READ_FIRST)}, "partly"),
        ("haas-068", 0, {"itanium_spinlock": counted(SPINLOCK, READ_FIRST, EXCHANGED)}, "not so"),
        # replacement is single-threaded where each page takes the lock alone
        ("haas-080", 0, {"page_replacement": counted(REPLACEMENT, 1002, 10, 1000)}, "holds"),
        ("haas-080", 0, {"page_replacement": counted(REPLACEMENT, 400, 10, 1000)}, "not so"),
        # which is told and decides nothing
        ("haas-080", 0, {"page_replacement": counted(REPLACEMENT, 1002, 900, 1000)}, "holds"),
        # a pool that isn't too small
        ("haas-080", 0, {"page_replacement": counted(REPLACEMENT, 70, 10, 70)}, "inconclusive"),
        # insertion, by its lock, and by who waits for it after a checkpoint
        ("haas-081", 0, {"insertion_lock": counted(INSERTION, 1002)}, "holds"),
        ("haas-081", 0, {"insertion_lock": counted(INSERTION, 130)}, "not so"),
        # that a session does more while it has a lock doesn't say that others wait for it
        *(
            ("haas-088", 0, {"insertion_after_checkpoint": timed(CHECKPOINTED, *how)}, said)
            for *how, said in (
                (2, 1.2, "holds"),
                (2, 0.6, UNTESTED),
                (32, 1.2, "holds"),
                (32, 1.0, "no effect"),
                (32, 0.6, "reversed"),
            )
        ),
        # the release that divided insertion is not the one that was hoped for
        ("haas-082", 0, {}, "different now"),
        # one flush shows it, and only a long watch that none comes
        *(
            ("haas-083", 0, {"small_flushes": counted(FLUSHED, longest, watched)}, said)
            for longest, watched, said in (
                (11.0, 60.0, "holds"),
                (3.0, 60.0, UNTESTED),
                (3.0, 90000.0, "not so"),
            )
        ),
        # far ahead is twice the next, and what came before decides nothing
        *(
            ("haas-084", 0, {"divided_insertion": timed(DIVIDED, processors, *waits)}, said)
            for processors, *waits, said in (
                (32, 90.0, 50.0, 8.0, "holds"),
                (32, 10.0, 50.0, 8.0, "holds"),
                (32, 90.0, 50.0, 30.0, "partly"),
                (32, 90.0, 50.0, 60.0, "not so"),
                (32, 90.0, 8.0, 4.0, "not so"),
                (2, 90.0, 50.0, 8.0, "holds"),
                (2, 90.0, 50.0, 30.0, UNTESTED),
            )
        ),
        *(
            ("haas-084", 0, {"divided_insertion": last_differs(*rows, process_array=12.0)}, said)
            for *rows, said in (
                (DIVIDED, 32, 90.0, 50.0, 8.0, "inconclusive"),
                (DIVIDED, 2, 90.0, 50.0, 8.0, UNTESTED),
            )
        ),
        # a pool that is too small, on 9.2
        *(
            ("haas-086", 0, {"in_pools": timed(IN_POOLS, processors, lookups)}, said)
            for processors, lookups, said in (
                (32, 8.0, "holds"),
                (32, 15.9, "no effect"),
                (32, 17.0, "reversed"),
                (2, 8.0, "holds"),
                (2, 15.9, UNTESTED),
            )
        ),
        ("haas-086", 0, {"in_pools": timed(APART, 32, 8.0)}, UNTESTED),
    ],
)
def test_what_the_rules_make_of_rows(claim, processors, tables, said):
    assert word(claim, "scalability", processors=processors, **tables) == said


@pytest.mark.parametrize(
    ("claim", "processors", "tables", "wanted", "beside"),
    [
        # nothing is told of numbers of clients that never ran
        ("haas-001", 2, {"releases_over_clients": timed(OVER_CLIENTS, 2, 130.0)}, 32, []),
        ("haas-012", 2, {"releases_over_clients": timed(OVER_CLIENTS, 2, 130.0)}, 64, []),
        # what few processors don't show stands beside
        ("haas-086", 0, {"in_pools": timed(IN_POOLS, 2, 15.9)}, 32, ["no effect"]),
    ],
)
def test_what_takes_more_processors_says_how_many(claim, processors, tables, wanted, beside):
    found = judged(claim, "scalability", processors=processors, **tables)
    assert found.untested == f"more processors than here ({wanted})"
    outside = [str(one.verdict) for words, one in found.beside.items() if "outside" in words]
    assert (found.verdict, outside) == (UNTESTED, beside)


def test_a_claim_whose_builds_this_run_lacks_names_them():
    """It was told that this run has no rows of larger relations."""
    others = [row | {"build": "9.2"} for row in counted(CALLS, 1010, "SIGetDataEntries")]
    found = judged("haas-010", "scalability", lookup_calls=others)
    assert found.capability == "the build sinval-before"
    assert "the build sinval," in found.remarks and "releases add NAME FOLDER" in found.remarks
