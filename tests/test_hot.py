"""The chapter `hot`: what its experiments find on a server, and that its claims can fail."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from judging import UNTESTED, changed_word, counted, opened, repeated, timed, where, word

from pgrerun.chapters.hot.experiments import builds, growth, threads_disk
from pgrerun.chapters.hot.experiments.wal import AT_EVERY_VISIT, WITHOUT_ROOM
from pgrerun.chapters.hot.variants import (
    BRIN,
    FULL,
    HOT,
    INDEXED,
    NO_HOT,
    REDUCED,
    UNPRUNED,
    load,
    run_in_server,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments.counters import counts
from pgrerun.lab.instruments.sizes import pages
from pgrerun.lab.relations.pgbench import ACCOUNTS, BRANCHES, TELLERS, Pgbench
from pgrerun.lab.server.builds import registered
from pgrerun.lab.testbed import Block
from pgrerun.record import printed

BALANCED = (BRANCHES, TELLERS, ACCOUNTS)
TINY = {
    "pairs": 5,
    "clients": 2,
    "accounts": 300,
    "timed_accounts": 50,
    "rounds": 1,
    "thread_scale": 1,
}


on_both_commits = pytest.mark.skipif(
    not {builds.BEFORE, builds.WITH} <= set(registered()),
    reason="the builds before-hot and hot aren't registered here (`pgrerun releases add`)",
)


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("runs"), "hot", TINY) as found:
        yield found


@pytest.fixture(scope="module")
def server(chapter):
    return chapter.bed.server


# ---- what is counted can come out otherwise


BTREE = {"what": "a column in a B-tree"}


def waited_for(frame):
    """A twentieth more of the samples waits where any visit may prune."""
    return where({"pruned": AT_EVERY_VISIT}, content_lock=0.25)(frame.assign(content_lock=0.2))


@pytest.mark.parametrize(
    ("claim", "changes", "expected"),
    [
        ("hot-006", {"fillfactors": lambda f: f.assign(room=0, at_once=0.0)}, "not so"),
        ("hot-007", {"cases": where(BTREE, heap_only=100, same_page=0)}, "not so"),
        ("hot-025", {"cases": where(BTREE, heap_only=100, same_page=0)}, "not so"),
        ("hot-027", {"broken_chains": lambda f: f.assign(old_finds=False)}, "still there"),
        ("hot-027", {"broken_chains": lambda f: f.assign(warnings="spam")}, "still there"),
        ("hot-029", {"rewrites": lambda f: f.assign(old_sees=0)}, "still there"),
        ("hot-033", {"stock_pgbench": lambda f: f.assign(inserted=0)}, "not so"),
        ("hot-011", {"select_prunes": lambda f: f.assign(waited=True)}, "holds"),
        ("hot-011", {"page_waits": waited_for}, "holds"),
        ("hot-011", {"page_waits": lambda f: f.assign(content_lock=0.2)}, "partly"),
        (
            "hot-011",
            {
                "select_prunes": lambda f: f.assign(hole_left=0),
                "page_waits": lambda f: f.assign(content_lock=0.2),
            },
            "not so",
        ),
        *(
            pytest.param("hot-019", {"page_steps_then": change}, said, marks=on_both_commits)
            for change, said in (
                (lambda f: f.assign(state="normal"), "partly"),
                (lambda f: f.assign(state="normal", made=1), "not so"),
            )
        ),
    ],
)
def test_other_rows_give_another_word(chapter, claim, changes, expected):
    assert changed_word(chapter, claim, **changes) == expected


def test_the_least_fillfactor_lets_any_visit_prune(chapter):
    prunings = chapter.run("page_waits").frame.groupby("pruned")["prunings"].median()
    assert prunings[AT_EVERY_VISIT] > 2 * prunings[WITHOUT_ROOM]


# ---- what the experiments do


def ours(branches: int, accounts: int) -> Pgbench:
    return Pgbench(branches, accounts, prefix="")


@pytest.mark.parametrize(("variant", "hot"), [(HOT, 40), (BRIN, 40), (NO_HOT, 0), (INDEXED, 0)])
def test_variants_take_hot_away_or_leave_it_in_every_table(server, variant, hot):
    few = ours(2, 100)
    with server.connect() as connection:
        load(few, connection, variant)
        before = pages(connection, "accounts")
        run_in_server(connection, few, FULL, 40, seed=1)
        each = {name: counts(connection, name)["hot_updated"] for name in BALANCED}
        assert each == dict.fromkeys(BALANCED, hot)
        assert pages(connection, "accounts") == before  # pruned in any case


@pytest.mark.parametrize(
    ("name", "capability"),
    [("full_script", "timed_accounts = 20000"), ("pools", "larger relations")],
)
def test_what_is_too_small_to_tell_is_set_aside(chapter, name, capability):
    with pytest.raises(CannotMeasure) as lacking:
        list(chapter.bed.measure(chapter.experiments[name], {}))
    assert lacking.value.capability == capability


# pairs of whole runs without autovacuum, and of so many that all parts of a run are there with it
@pytest.mark.parametrize(("profile", "enough"), [("ci", [1] * 6), ("laptop", [6] * 3 + [5] * 3)])
def test_merlins_set_ups_run_in_few_pairs_where_no_time_decides(monkeypatch, profile, enough):
    """With few pairs a ratio lacked those that it needs, whatever the profile."""
    asked = []
    monkeypatch.setattr(builds, "both_commits", lambda *_: nullcontext({}))
    bed = SimpleNamespace(
        parameters=SimpleNamespace(pairs=7, profile=profile, thread_scale=6),
        fewest_pairs=5,
        timed_pairs=lambda many: 1 if profile == "ci" else many,
        compare=lambda *_, pairs, **more: asked.append(pairs) or (),
    )
    assert list(builds.merlins_setups(bed)) == [] and asked == enough


def test_servers_that_take_turns_go_on_where_they_stopped_and_begin_anew_after_a_break(monkeypatch):
    done = []

    def whole(server, ours, clients, seed, transactions):
        done.append((server, seed, transactions))
        return {"tps": 1.0, "hot_share": 0.0, "transactions": transactions}

    monkeypatch.setattr(builds, "_whole", whole)
    loaded = lambda server: done.append((server, "loaded"))
    turns = builds._Turns({"old": "old", "new": "new"}, loaded, ours(1, 1), 1, 100, parts=2)
    for index, server in ((0, "old"), (0, "new"), (1, "new"), (1, "old"), (2, "old")):
        block = Block(index, 70 + index, 0)
        turns.prepare(block, server)
        assert turns.measure(block, server)["transactions"] == 100
    parts = [("old", 70, 50), ("new", 70, 50), ("new", 71, 50), ("old", 71, 50), ("old", 72, 50)]
    assert [one for one in done if one[1] != "loaded"] == parts
    assert [server for server, what, *_ in done if what == "loaded"] == ["old", "new", "old"]
    done.clear()
    turns.prepare(Block(3, 73, 0), "new")  # of a run that it hasn't begun
    assert done == [("new", "loaded"), ("new", 73, 50)]


@on_both_commits
def test_the_servers_of_the_thread_are_run_on_relations_loaded_anew(chapter, monkeypatch):
    monkeypatch.setattr(builds, "AS_SMALL", ())  # which run alike
    rows = chapter.run("on_the_threads_servers", accounts=2000).frame
    each = rows.set_index(["server", "relation"])[["before", "after", "updated", "hot_updated"]]
    for relation in ("accounts", "accounts_pkey"):
        then, with_hot = each.loc[("before-hot", relation)], each.loc[("hot", relation)]
        assert then["after"] > then["before"] == with_hot["before"] == with_hot["after"]
        # what stands in for the server before HOT grows as that did
        assert each.loc[("stand-in", relation)].tolist()[:3] == then.tolist()[:3]
        assert each.loc[("today", relation)].tolist() == with_hot.tolist()
    assert each.loc[("hot", "accounts"), "hot_updated"] == 1000
    looked_up_ = chapter.run("lookups_after_updates", accounts=2000).frame
    found = looked_up_.groupby("server")[["reads", "accesses"]].median()
    assert found.loc["hot", "accesses"] >= 2 and (found["reads"] <= found["accesses"]).all()
    assert found.loc["before-hot", "reads"] > found.loc["hot", "reads"] > 0


@on_both_commits
def test_a_page_is_pruned_on_the_commit_with_hot_as_it_is_today(chapter):
    one, other = (
        chapter.run(name).frame.set_index(["sequence", "step", "line_pointer"])
        for name in ("page_steps", "page_steps_then")
    )
    common = ["title", "state", "heap_only", "old"]
    assert one[common].equals(other[common])
    today, then = (
        chapter.run(name, rows=40, updates=60).frame[["update", "needed", "pruned"]]
        for name in ("update_prunes", "update_prunes_then")
    )
    assert today.equals(then)


@on_both_commits
def test_accounts_grows_under_autovacuum_and_without_it(tmp_path):
    with opened(tmp_path, "hot", TINY | {"timed_accounts": 400}) as chapter:
        rows = chapter.run("autovacuum_on_the_threads_disk").frame
    assert rows["before"].nunique() == 1 and (rows["after"] > rows["before"]).all()
    assert set(rows["autovacuum"]) == {"on", "off"}
    assert (rows["request_ms"] > 0).eq(rows["autovacuum"] == "on").all()
    assert rows.loc[rows["autovacuum"] == "off", ["visits", "remaining"]].eq(0).all(axis=None)
    assert rows["remaining"].between(0, 1).all()


@on_both_commits
def test_before_hot_data_outgrow_memory_on_the_threads_commits(tmp_path):
    with opened(tmp_path, "hot", TINY | {"timed_accounts": 4000}) as chapter:
        chapter.run("seeking_the_threads_disk_with_memory")
        run = chapter.run("on_the_threads_disk_with_memory")
    rows = run.frame.set_index(["script", "server"])
    for script in (REDUCED, FULL):
        found = rows.loc[script]
        assert found["data_over_memory"][builds.BEFORE] > 1
        assert found["data_over_memory"][builds.BEFORE] > found["data_over_memory"][builds.WITH]
    assert rows["busy"][REDUCED, builds.BEFORE] > rows["busy"][REDUCED, builds.WITH]


def test_data_that_outgrow_memory_are_asked_of_the_disk(tmp_path):
    with opened(tmp_path, "hot", TINY | {"timed_accounts": 8000}) as chapter:
        sought = chapter.run("seeking_a_disk_with_memory").frame
        rows = chapter.run("in_the_threads_memory").frame.set_index(["pool", "variant"])
    assert len(sought) == 1 and (sought["request_ms"] > 0).all()
    assert rows["data_over_memory"][threads_disk.AS_THERE, UNPRUNED] > 1
    asked = rows["requests"] - rows["flushes"]
    # what memory holds costs flushes alone; a pool of most of it holds the catalogs as well
    assert (asked[threads_disk.AS_THERE].drop(UNPRUNED) == 0).all()
    assert rows["data_over_pool"][threads_disk.MOST, HOT] < 1
    assert asked[threads_disk.MOST, HOT] < asked[threads_disk.MOST, UNPRUNED]


@on_both_commits
def test_beside_an_old_transaction_every_version_is_passed(chapter):
    rows = chapter.run("beside_an_old_transaction").frame
    each = rows.set_index(["server", "updates"])["executed"].unstack()
    assert (each[60] > each[0]).all() and (each[500] > each[60]).all()
    assert rows.set_index(["server", "updates"])["chain"].unstack()[60].eq(61).all()


@on_both_commits
def test_a_queue_keeps_what_an_open_transaction_may_read_until_cluster_runs_without_it(chapter):
    rows = chapter.run("queue_then", jobs=500, batches=10).frame
    case = rows["vacuumed"].where(~rows["transaction_left_open"], "beside a transaction")
    pages_ = rows.assign(case=case).set_index(["moment", "server", "case"])["jobs"]
    assert pages_["after CLUSTER"].nunique() == 1 and len(pages_["after CLUSTER"]) == 6
    at_the_end = pages_["at the end"].unstack()
    assert (at_the_end["beside a transaction"] > 1.5 * at_the_end[growth.IN_TIME]).all()
    assert (at_the_end[growth.LATE] > at_the_end[growth.IN_TIME]).all()


# ---- what the rules make of rows

# Throughput with HOT and with pruning alone, by a hundred with neither, where so much of the time
# is spent waiting and the data are so many times the pool; and what the first two write to the WAL.
IN_MEMORY = """
variant                  pool                tps     busy  data_over_pool  data_over_memory
HOT                      as in the thread    {0}     0.0   {5}             0.9
no HOT                   as in the thread    {1}     0.1   {5}             0.9
neither HOT nor pruning  as in the thread    {2}     {3}   15.0            1.2
HOT                      most of the memory  9000.0  0.0   0.9             12.0
neither HOT nor pruning  most of the memory  8000.0  {4}   1.2             16.0
"""
WAL = """
variant  phase  part  bytes  records
HOT      later  heap  9      1
no HOT   later  heap  9      1
"""

# Pages of a relation around the thread's transactions.
SIZES = """
server      relation  before  after  updated  hot_updated
hot         {0}       {1}     {2}    0        0
before-hot  {0}       {3}     {4}    0        0
"""

BROKEN_CHAINS = """
server      mark        marked  old_uses  old_finds
before-hot  as made     False   True      True
hot         as made     {0}     {1}       {2}
hot         taken away  True    True      {3}
"""

# What small tables and an index of one grow by; and in a session on today's server, which stands
# beside.
SMALL_TABLES = """
server      tellers  branches  tellers_pkey  branches_pkey
before-hot  {0}      {2}       0             {4}
hot         {1}      {3}       0             {5}
"""
ALONE_TODAY = """
variant                  relation  before  after  updated  hot_updated
HOT                      tellers   1       8      9        0
neither HOT nor pruning  tellers   1       8      9        0
HOT                      branches  1       8      9        0
neither HOT nor pruning  branches  1       8      9        0
"""

# Pages of accounts around the reduced script before HOT, and its throughput.
UNDER_AUTOVACUUM = """
autovacuum  before  after  visits  remaining  tps
on          10000   {0}    {2}     {3}        {1}
off         10000   13600  0       0.0        5000.0
"""
UNVACUUMED = """
variant                  vacuumed  updates  accounts  accounts_pkey
neither HOT nor pruning  False     0.0      10000     1000
neither HOT nor pruning  False     0.5      13600     1000
neither HOT nor pruning  True      0.0      10000     1000
neither HOT nor pruning  True      0.5      11000     1000
"""

# By updates of an account beside an old transaction; a lookup before HOT takes 4,000 instructions,
# and with parsing and planning 100,000.
OLD_TRANSACTION = """
server      updates  chain  executed  whole
before-hot  0        1      4000      100000
hot         0        1      4000      100000
before-hot  60       61     4000      100000
hot         60       {0}    {2}       {4}
before-hot  500      61     4000      100000
hot         500      {1}    {3}       {4}
"""

# Pages that a lookup reads, and accesses to pages.
LOOKUPS = """
server      reads  accesses  vacuumed  data_over_pool  pool_over_small_tables
before-hot  {0}    4.4       {1}       12.0            9.0
hot         1.0    4.0       0         {2}             9.0
"""

COMPACTED = """
command      accounts  accounts_pkey  loaded
CLUSTER      55        11             60
VACUUM FULL  {0}       {1}            60
"""

MOMENTS = ("halfway", "at the end", "after CLUSTER")
TODAYS_QUEUE = """
variant  transaction_left_open  moment         jobs  jobs_pkey
HOT      False                  halfway        17    5
HOT      False                  at the end     17    5
HOT      False                  after CLUSTER  15    5
"""

# By HOT's own VACUUM FULL, by the one of before, and by that with assertions.
VACUUM_FULL = """
server               assertions  chains        ended  error  committed  scanned  found  missed
hot                  False       updated once  {0}
hot-old-vacuum-full  False       updated once  {1}
hot-old-vacuum-full  True        updated once  {2}
"""
GOOD = "False  ''  5  5  5  0"
MISSED = "False  ''  5  5  3  2"
ENDED = "True  ''  5  -  -  -"

THREADS = printed.table("hot_throughput")["tps_including"]  # by run: script and server


def in_memory(hot, pruned, neither=1.0, busy=0.8, whole=0.0, data=11.0):
    """Times that HOT and pruning alone do the transactions of neither, which does a share of the
    thread's; of its time the disk is busy with neither, in the thread's pool and in a larger one.
    """
    tps = [neither * THREADS["reduced_head"] * gain for gain in (hot, pruned, 1.0)]
    found = timed(IN_MEMORY, *tps, busy, whole, data)
    return {"in_the_threads_memory": found, "wal_by_part": counted(WAL)}


def on_disk(hot=1.0, full_hot=1.0, before=1.0, full_before=1.0, **given):
    """Rows of both scripts on the thread's disk, from shares of the printed throughputs."""
    shares = {
        (builds.BEFORE, REDUCED): (before, "reduced_head"),
        (builds.WITH, REDUCED): (hot, "reduced_hot"),
        (builds.BEFORE, FULL): (full_before, "full_head"),
        (builds.WITH, FULL): (full_hot, "full_hot"),
    }
    usual = {"request_ms": 6.0, "requests": 0.3, "flushes": 0.25, "busy": 0.62, "serving": 0.95}
    usual |= {"data_over_pool": 11.0, "data_over_memory": 1.2, "pool_over_small_tables": 9.0}
    found = repeated(
        usual | given | {"server": server, "script": script, "tps": share * THREADS[run]}
        for (server, script), (share, run) in shares.items()
    )
    return {"on_the_threads_disk_with_memory": found}


def growing(*runs):
    """Of each run in turn the values in `SMALL_TABLES`."""
    found = [
        row | {"block": block}
        for block, run in enumerate(runs)
        for row in counted(SMALL_TABLES, *run)
    ]
    return {"small_tables_by_clients": found}


def under_autovacuum(grows, throughput=1.0, visits=2, remaining=0.5):
    """Growth under autovacuum, whose first visit is over in time, at a share of the printed
    throughput.
    """
    tps = throughput * THREADS["reduced_head"]
    found = timed(UNDER_AUTOVACUUM, 10_000 * grows, tps, visits, remaining)
    return {"autovacuum_on_the_threads_disk": found, "steady": counted(UNVACUUMED)}


def beside_old(full=61, last=61, executed=4000, executed_last=4000, whole=100_000):
    found = counted(OLD_TRANSACTION, full, last, executed, executed_last, whole)
    return {"beside_an_old_transaction": found}


def queued(alone, alone_then, beside, beside_then, late=(40, 40, 20), late_then=(40, 40, 20)):
    """Pages of a queue at `MOMENTS` with HOT and before it: alone, beside a transaction, and
    vacuumed late.
    """
    each = {
        (builds.WITH, growth.IN_TIME, False): alone,
        (builds.BEFORE, growth.IN_TIME, False): alone_then,
        (builds.WITH, growth.IN_TIME, True): beside,
        (builds.BEFORE, growth.IN_TIME, True): beside_then,
        (builds.WITH, growth.LATE, False): late,
        (builds.BEFORE, growth.LATE, False): late_then,
    }
    rows = [
        {"server": server, "vacuumed": vacuumed, "transaction_left_open": left_open}
        | {"moment": moment, "jobs": total - 5, "jobs_pkey": 5}
        for (server, vacuumed, left_open), totals in each.items()
        for moment, total in zip(MOMENTS, totals, strict=True)
    ]
    return {"queue_then": rows}


def looked_up(reads, vacuumed=1, data_over_pool=10.8):
    return {"lookups_after_updates": timed(LOOKUPS, reads, vacuumed, data_over_pool)}


def merlins(gain, transactions=100_000, pairs=5, before=320.0, hot_share=0.0, **factors):
    """Rows of one of Merlin's comparisons, with these factors."""
    usual = factors | {"hot_share": hot_share, "transactions": transactions}
    tps = {builds.BEFORE: before, builds.WITH: before * gain}
    return repeated([usual | {"server": server, "tps": one} for server, one in tps.items()], pairs)


def indexed(clients, gain, **given):
    return {"merlins_servers": merlins(gain, index="on abalance", clients=clients, **given)}


def by_scale(*gains, **given):
    """Ten clients without the index: gains by scale, and more where autovacuum runs, which is
    another claim's.
    """
    vacuumed = merlins(9.0, pairs=2, scale=1, clients=10, autovacuum="on", **given)
    each = [
        row
        for scale, gain in zip(builds.SCALES, gains, strict=True)
        for row in merlins(gain, scale=scale, clients=10, autovacuum="off", **given)
    ]
    return {"merlins_setups": vacuumed + each}


def setups(*gains, pairs=5, **given):
    """A set-up for each gain, or for the gains of its pairs of runs in turn."""
    each = [gain if isinstance(gain, tuple) else (gain,) * pairs for gain in gains]
    found = [
        row | {"block": block}
        for scale, in_turn in enumerate(each)
        for block, gain in enumerate(in_turn)
        for row in merlins(gain, pairs=1, scale=scale, clients=1, autovacuum="off", **given)
    ]
    return {"merlins_setups": found}


SHORT = {"transactions": 20_000}  # a fifth of Merlin's
TODAY = {"compaction": counted(COMPACTED, 99, 11)}
USUAL, LUCKY = (300, 290, 256, 250), (450, 290, 384, 250)  # by chance tables grow further


@pytest.mark.parametrize(
    ("claim", "tables", "expected"),
    [
        ("hot-001", on_disk(), "holds"),
        ("hot-001", on_disk(0.7), "weaker"),
        ("hot-001", on_disk(1.3), "stronger"),
        ("hot-001", on_disk(0.5), "no effect"),
        ("hot-001", on_disk(0.4), "reversed"),
        ("hot-001", on_disk(busy=0.3), UNTESTED),
        ("hot-001", on_disk(data_over_pool=2.0), UNTESTED),
        # twice as fast, and neither is what the thread had
        ("hot-001", on_disk(0.5, before=0.5), UNTESTED),
        ("hot-001", on_disk(2.0, before=2.0), UNTESTED),
        # the table by the printed growth, its index by the pages that can split; first as printed
        *(
            ("hot-002", {"on_the_threads_servers": counted(SIZES, "accounts", *pages_)}, said)
            for pages_, said in (
                ((157_895, 157_938, 157_895, 207_179), "holds"),
                ((10_000, 10_000, 10_000, 13_600), "holds"),
                ((10_000, 10_010, 10_000, 13_600), "partly"),
                ((10_000, 10_000, 10_000, 12_700), "partly"),
                ((10_000, 12_700, 10_000, 12_700), "not so"),
            )
        ),
        *(
            ("hot-003", {"on_the_threads_servers": counted(SIZES, "accounts_pkey", *pages_)}, said)
            for pages_, said in (
                ((19_709, 19_709, 19_709, 39_414), "holds"),
                ((19_709, 19_709, 19_709, 39_413), "partly"),
                ((19_709, 19_710, 19_709, 39_414), "partly"),
                ((200, 200, 200, 397), "holds"),
                ((200, 300, 200, 300), "not so"),
            )
        ),
        # stable sizes explain a jump if pruning alone has most of it, in the thread's memory
        ("hot-004", in_memory(2.0, 1.8), "holds"),
        ("hot-004", in_memory(2.0, 2.0), "holds"),
        ("hot-004", in_memory(2.0, 1.3), "partly"),
        ("hot-004", in_memory(2.0, 1.0), "not so"),
        ("hot-004", in_memory(1.0, 1.0), "not so"),
        ("hot-004", in_memory(2.0, 1.8, data=2.0), UNTESTED),
        ("hot-004", in_memory(2.0, 1.8, neither=0.5), UNTESTED),
        # the pool makes the disk busy if a larger one doesn't
        ("hot-005", in_memory(2.0, 1.8), "holds"),
        ("hot-005", in_memory(2.0, 1.8, whole=0.7), "partly"),
        ("hot-005", in_memory(2.0, 1.8, busy=0.3), "partly"),
        ("hot-005", in_memory(2.0, 1.8, busy=0.3, whole=0.7), "not so"),
        ("hot-005", in_memory(2.0, 1.8, neither=2.0), UNTESTED),
        ("hot-012", on_disk(), "holds"),
        ("hot-012", on_disk(full_hot=1.15), "different now"),
        ("hot-012", on_disk(full_hot=0.8), "different now"),
        # what HOT gains on the other script is another claim's
        ("hot-012", on_disk(0.7), "holds"),
        ("hot-012", on_disk(0.7, full_hot=1.15), "different now"),
        # the set-up isn't the thread's: of what it printed before HOT one isn't reached
        ("hot-012", on_disk(before=0.7), UNTESTED),
        ("hot-012", on_disk(full_before=1.3), UNTESTED),
        ("hot-012", on_disk(pool_over_small_tables=2.0), UNTESTED),
        ("hot-035", on_disk(), "holds"),
        ("hot-035", on_disk(full_before=0.8), "different now"),
        ("hot-035", on_disk(full_before=1.1), "different now"),
        ("hot-035", on_disk(before=0.7, full_before=0.7), UNTESTED),
        ("hot-035", on_disk(busy=0.3), UNTESTED),
        ("hot-013", growing(*[(2017, 87, 256, 66, 3, 0)] * 5), "holds"),
        ("hot-013", growing(*[(300, 87, 256, 1, 3, 0)] * 5), "holds"),
        ("hot-013", growing(*[(300, 87, 256, 0, 3, 0), (450, 87, 384, 0, 3, 0)] * 3), "holds"),
        ("hot-013", growing(*[(300, 87, 60, 66, 3, 0)] * 5), "partly"),
        ("hot-013", growing(*[(300, 300, 256, 256, 3, 0)] * 5), "no effect"),
        ("hot-013", growing(*[(20, 87, 50, 66, 3, 0)] * 5), "reversed"),
        ("hot-013", growing(*[(*USUAL, 3, 0), (*LUCKY, 3, 0)] * 2, (*USUAL, 3, 0)), "inconclusive"),
        ("hot-013", growing(*[(300, 87, 256, 66, 3, 0)] * 3), "inconclusive"),
        ("hot-013", {"small_tables": counted(ALONE_TODAY)}, UNTESTED),
        ("hot-014", growing((*USUAL, 3, 0)), "holds"),
        ("hot-014", growing((*USUAL, 3, 3)), "partly"),
        ("hot-014", growing((*USUAL, 0, 0)), "partly"),
        ("hot-014", growing((*USUAL, 0, 3)), "not so"),
        ("hot-014", growing((*USUAL, 3, 0), (*USUAL, 0, 0)), "inconclusive"),
        ("hot-014", growing((*USUAL, 0, 3), (*USUAL, 3, 3)), "inconclusive"),
        # a chain that ends with its page, and what it costs at either length
        ("hot-010", beside_old(), "holds"),
        ("hot-010", beside_old(executed=4900, executed_last=4900), "holds"),
        ("hot-010", beside_old(executed=5100), "partly"),
        ("hot-010", beside_old(executed_last=5100), "partly"),
        ("hot-010", beside_old(executed=5100, executed_last=5100, whole=100_001), "partly"),
        ("hot-010", beside_old(whole=200_000), "holds"),
        # it is pruned, or goes on where its page is full
        ("hot-010", beside_old(full=6), "partly"),
        ("hot-010", beside_old(last=501), "partly"),
        ("hot-010", beside_old(6, 6, 5100, 5100), "not so"),
        # under an autovacuum that was over in time, by 36 % without it
        ("hot-015", under_autovacuum(1.31), "holds"),
        # some growth, and that most of it was prevented
        ("hot-015", under_autovacuum(1.14), "partly"),
        ("hot-015", under_autovacuum(1.2), "holds"),
        ("hot-015", under_autovacuum(1.18), "inconclusive"),
        ("hot-015", under_autovacuum(1.0), "not so"),
        ("hot-015", under_autovacuum(1.36), "holds"),  # it was over and spared nothing
        ("hot-015", under_autovacuum(1.31, visits=1), "holds"),
        # none was over, or late: nothing that is spared says nothing of what it can
        ("hot-015", under_autovacuum(1.36, visits=0, remaining=0.0), UNTESTED),
        ("hot-015", under_autovacuum(1.31, visits=1, remaining=0.15), UNTESTED),
        ("hot-015", under_autovacuum(1.31, throughput=2.0), UNTESTED),  # on a quicker disk
        ("hot-017", looked_up(1.2), "holds"),
        ("hot-017", looked_up(1.02), "no effect"),
        ("hot-017", looked_up(0.8), "reversed"),
        ("hot-017", looked_up(1.2, vacuumed=0), UNTESTED),
        ("hot-017", looked_up(1.2, data_over_pool=4.0), UNTESTED),
        # most set-ups are more than half of them
        ("hot-021", setups(*[1.2] * 13, *[1.0] * 11), "holds"),
        ("hot-021", setups(*[1.046] * 13, *[1.0] * 11), "holds"),  # five per cent, as printed
        ("hot-021", setups(*[1.044] * 13, *[1.2] * 11), "not so"),
        ("hot-021", setups(*[1.6] * 20, *[1.2] * 4), "not so"),
        ("hot-021", setups(*[1.0] * 20, *[1.2] * 4), "not so"),
        # within the range, whatever is true of those that gain at least so much
        ("hot-021", setups(*[1.0] * 12, *[1.6] * 10, *[1.2] * 2), "not so"),
        ("hot-021", setups(*[1.0] * 12, *[1.2] * 12), "not so"),
        ("hot-021", setups(*[1.2] * 24, pairs=4), "inconclusive"),
        # where one pair of a set-up lies elsewhere, the set-up is open, and decides nothing
        ("hot-021", setups(*[1.2] * 13, *[(1.2, 1.2, 1.2, 1.2, 1.5)] * 11), "holds"),
        ("hot-021", setups(*[1.2] * 12, *[(1.2, 1.2, 1.2, 1.2, 1.5)] * 12), "inconclusive"),
        ("hot-021", setups(*[1.0] * 12, *[(1.2, 1.2, 1.2, 1.2, 1.0)] * 12), "not so"),
        ("hot-021", setups(*[1.2] * 24, **SHORT), UNTESTED),
        ("hot-022", indexed(1, 1.0), "holds"),
        ("hot-022", indexed(1, 1.2), "different now"),
        ("hot-022", indexed(1, 1.0, **SHORT), UNTESTED),
        # 13 % fewer to as many, either within a twentieth, and nothing is HOT
        ("hot-023", indexed(10, 1.02), "holds"),
        ("hot-023", indexed(10, 0.85), "holds"),
        ("hot-023", indexed(10, 0.8), "not so"),
        ("hot-023", indexed(10, 1.02, hot_share=0.001), "not so"),
        ("hot-023", indexed(10, 1.2), "not so"),
        ("hot-023", indexed(10, 1.02, **SHORT), UNTESTED),
        # at ten branches, whatever fewer gain
        ("hot-024", by_scale(1.0, 1.1, 2.05), "holds"),
        ("hot-024", by_scale(2.05, 2.05, 1.0), "no effect"),
        ("hot-024", by_scale(1.0, 1.5, 3.0), "stronger"),
        ("hot-024", by_scale(3.0, 2.0, 1.5), "weaker"),
        ("hot-024", by_scale(2.05, 2.05, 0.7), "reversed"),
        ("hot-024", by_scale(1.0, 1.1, 2.05, **SHORT), UNTESTED),
        # whatever a machine does before HOT
        ("hot-024", by_scale(1.0, 1.1, 2.05, before=6000.0), "holds"),
        ("hot-026", {}, "holds"),
        # CREATE INDEX had to change if old snapshots miss rows without its mark
        *(
            ("hot-028", {"broken_chains_then": counted(BROKEN_CHAINS, *looked_up)}, said)
            for looked_up, said in (
                ((True, False, True, False), "holds"),
                ((True, False, True, True), "partly"),  # nothing is lost without the mark
                ((True, True, False, False), "partly"),
                ((False, True, True, True), "not so"),
            )
        ),
        # either command on the commit before HOT; today's server says something else
        *(
            (claim, {"compaction_before_hot": counted(COMPACTED, *pages_)} | TODAY, said)
            for pages_, *words in (
                ((55, 30), "holds", "holds"),
                ((55, 12), "holds", "no effect"),
                ((55, 11), "not so", "no effect"),
                ((40, 11), "not so", "reversed"),
            )
            for claim, said in zip(("hot-030", "hot-031"), words)
        ),
        ("hot-030", TODAY, UNTESTED),
        ("hot-031", TODAY, UNTESTED),
        # some of the cases are solved, and all: no queue grows in the second half of the work
        *(
            ("hot-032", queued(*pages_), said)
            for *pages_, said in (
                ((22, 22, 20), (30, 40, 20), (60, 62, 20), (100, 180, 20), "holds"),
                ((22, 22, 20), (30, 40, 20), (60, 100, 20), (100, 180, 20), "partly"),
                ((22, 30, 20), (30, 40, 20), (60, 62, 20), (100, 180, 20), "partly"),
                # less by a page isn't less
                ((40, 40, 20), (30, 41, 20), (99, 99, 20), (95, 100, 20), "partly"),
                # neither grew before HOT: there was nothing to solve
                ((40, 40, 20), (40, 40, 20), (99, 99, 20), (100, 100, 20), "inconclusive"),
                ((22, 24, 20), (30, 40, 20), (60, 100, 20), (100, 180, 20), "not so"),
                ((30, 40, 20), (30, 40, 20), (100, 180, 20), (100, 180, 20), "not so"),
                # only where vacuum comes late it is solved, or grows on
                (*[(40, 40, 20)] * 4, (60, 60, 20), (100, 180, 20), "holds"),
                (*[(40, 40, 20)] * 4, (60, 70, 20), (100, 180, 20), "not so"),
                (*[(22, 22, 20), (30, 40, 20)] * 2, (60, 70, 20), (100, 180, 20), "partly"),
            )
        ),
        ("hot-032", {"queue": counted(TODAYS_QUEUE)}, UNTESTED),
        # VACUUM FULL had to change if only its own finds all rows
        *(
            ("hot-036", {"vacuum_full_of_before": counted(VACUUM_FULL, *rows)}, said)
            for *rows, said in (
                (GOOD, MISSED, ENDED, "holds"),
                (GOOD, GOOD, ENDED, "holds"),
                (GOOD, MISSED, GOOD, "holds"),
                (GOOD, GOOD, GOOD, "partly"),
                (MISSED, MISSED, ENDED, "partly"),
                (ENDED, GOOD, GOOD, "not so"),
            )
        ),
    ],
)
def test_what_the_rules_make_of_rows(claim, tables, expected):
    assert word(claim, "hot", **tables) == expected
