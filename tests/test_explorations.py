"""Chapter `explorations`: what small live servers count, and what its rules make of rows."""

from types import SimpleNamespace

import pytest

from pgrerun.chapters.explorations import relations
from pgrerun.chapters.explorations.experiments import buffer_pool, by_release, clock_sweep, planner
from pgrerun.lab.server import releases
from tests.judging import UNTESTED, counted, judged, timed, word

CHAPTER = "explorations"
SMALL = {"tuples": 5000, "pairs": 5}
CLEAN, AGAIN, DIRTY = buffer_pool.CLEAN, buffer_pool.AGAIN, buffer_pool.DIRTY


@pytest.mark.parametrize(
    ("largest", "per_decade"), [(1_000_000, 1), (30_000_000, 2), (1_234_567, 5), (100_000_000, 3)]
)
def test_the_size_up_spans_a_hundredfold(largest, per_decade):
    given = SimpleNamespace(largest=largest, per_decade=per_decade)
    found = relations.sizes(SimpleNamespace(parameters=given))
    assert found == sorted(set(found)) and len(found) == 2 * per_decade + 1
    assert found[0] * 100 == pytest.approx(largest, rel=0.05)


def test_a_clock_sweep_is_told_by_the_usage_that_it_counts(bed):
    found = list(bed.measure(clock_sweep.survivors, {}))
    alike = [row | {"usage": 1} if "usage" in row else row for row in found]
    words = [word("expl-005", "explorations", survivors=rows) for rows in (found, alike)]
    assert words == ["holds", "partly"]


def test_releases_are_taken_evenly_from_the_oldest_to_the_one_under_test(bed, monkeypatch):
    there = {one: SimpleNamespace(number=n) for one, n in (("9.3", 90300), ("11", 110000))}
    monkeypatch.setattr(by_release.fetched, "comparable", lambda: dict.fromkeys(there, ""))
    monkeypatch.setattr(by_release.fetched, "chosen", there.get)
    slow = SimpleNamespace(
        borrowed=False, programs=bed.programs, parameters=SimpleNamespace(profile="laptop")
    )
    newest = releases.named(bed.programs.number)
    assert list(by_release.compared(slow, 2)) == ["9.3", newest]
    assert list(by_release.compared(slow, 5)) == ["9.3", "11", newest]


def test_what_a_reader_is_told_to_ask_his_own_server_can_be_asked(bed):
    with bed.server.connect() as connection:
        for name in ("yours_all_visible", "yours_who_writes"):
            relations.SQL.run(connection, f"tables.{name}").fetchall()


# ---- what the rules make of rows


def in_blocks(rows, blocks=7):
    """Rows that are found alike in each block, their factors with a fraction as well."""
    return [row | {"block": block, "comparison": 0} for block in range(blocks) for row in rows]


# Dirty pages in a pool as large as the relation that is read, and pages that its readers write.
READER_PAGES = """
pool  ring   before                            dirty_before  read  written
1     True   after an update                   90            100   {0}
1     False  after an update                   90            20    {1}
1     True   after an update and a checkpoint  0             100   {2}
1     False  after an update and a checkpoint  0             20    {2}
"""


def pools(below=1.0, equal=1.0, twice=1.0, again=1.0, tuples=1_000_000):
    """Slow-downs by pool; the second read without an update takes `again` times as long."""
    slower = {0.54: below, 0.88: 1.0, 1.0: equal, 2.11: twice, 4.0: 1.0}
    found = [
        {"pool": pool, "before": before, "tuples": tuples, "time": time}
        for pool, slow in slower.items()
        for before, time in ((CLEAN, 100.0), (AGAIN, 100.0 * again), (DIRTY, 100.0 * slow))
    ]
    return {"reads_in_pools": in_blocks(found, 40)}


def without_a_ring(twice, above):
    """Slow-downs of readers without a ring by pool, each with a checkpoint as 1."""
    times = [
        *((pool, buffer_pool.CHECKPOINTED, 1.0) for pool in (1.0, 2.11, 4.0)),
        *((pool, DIRTY, slower) for pool, slower in ((1.0, 1.4), (2.11, twice), (4.0, above))),
    ]
    found = [
        {"pool": pool, "before": before, "tuples": 1_000_000, "time": 200.0 * time}
        | {"written": 10 if before == DIRTY else 0}
        for pool, before, time in times
    ]
    return {"readers_without_a_ring": in_blocks(found)}


def small_pool(slower, differ=(1.0,), tuples=1_000_000):
    """A slow-down; the second read after a read takes turns in differing from the first."""
    found = [
        {"pool": 0.54, "before": before, "tuples": tuples, "block": block, "comparison": 0}
        | {"time": 200.0 * times}
        for block in range(40)
        for before, times in ((CLEAN, 1), (AGAIN, differ[block % len(differ)]), (DIRTY, slower))
    ]
    return {"reads_in_pools": found}


def waiting(
    faster,
    meanwhile=(80, 90),
    spared=((32, 0), (30, 2)),
    tuples=1_000_000,
    with_nothing_to_write=70.0,
    seconds=10,
):
    """A delay before a read that so makes it faster.

    Of blocks in turn what the checkpointer writes meanwhile, and the pages that the reader writes
    at once and after the delay.
    """
    found = [
        {"tuples": tuples, "block": block, "comparison": 0, "bgwriter": bgwriter, "event": event}
        | {"seconds": seconds if event == "update, wait" else 0}
        | {"dirty": 1, "background_writer": 0, "client_backend": 0, "checkpointer": 0}
        | {"reader": reader, "meanwhile": written, "time": time}
        for bgwriter in ("as by default", "off")
        for block in range(6)
        for event, reader, written, time in (
            ("update", spared[block % 2][0], 0, 100.0),
            ("update, wait", spared[block % 2][1], meanwhile[block % 2], 100.0 * faster),
            ("update, checkpoint", 0, 0, with_nothing_to_write),
        )
    ]
    return {"waiting": found}


NOTHING_SPARED = ((24, 158), (158, 24))


def spilling(with_index, without):
    """Plans where hashing would spill with the first four settings, which those given evade."""
    plans = [
        {"state": state, "work_mem_kb": kb, "plan": SORTED if kb in evaded else HASHED}
        for state, evaded in ((planner.NEW, with_index), (planner.NO_INDEX, without))
        for kb in planner.GRID
    ]
    spills = [
        {"work_mem_kb": kb, "batches": 1 + 4 * (kb in planner.GRID[:4])} for kb in planner.GRID
    ]
    return {"grouping_plans": plans, "hash_spills": spills}


def groupings(unique=(50.0, 100.0), other=80.0, twenty=(), blocks=7):
    """Times at the two smaller settings: of the picked plan and of the other.

    And of twenty groups, where their times are given.
    """
    times = [
        (planner.UNIQUE, kb, picked, time)
        for kb, one in zip(planner.WORK_MEM, unique)
        for picked, time in ((True, one), (False, other))
    ]
    times += [("twenty", kb, True, time) for kb, time in zip(planner.WORK_MEM, twenty)]
    found = [
        {"work_mem_kb": kb, "attribute": attribute, "plan": "a plan", "picked": picked}
        | {"time": time}
        for attribute, kb, picked, time in times
    ]
    return {"grouping_times": in_blocks(found, blocks)}


def twenties(times, open_by=(1, 1)):
    """Times by setting; `open_by` takes turns in multiplying the first."""
    found = [
        {"work_mem_kb": kb, "time": time * factors[block % 2], "block": block, "comparison": 0}
        for kb, time, factors in zip(planner.WORK_MEM, times, (open_by, (1, 1), (1, 1)))
        for block in range(7)
    ]
    return {"twenty_times": found}


PICKED = """
state           work_mem_kb  plan
never vacuumed  64           {0}
never vacuumed  4096         {1}
"""
HASHED, SORTED = "HashAggregate(Seq Scan)", "GroupAggregate(Sort(Seq Scan))"
IN_ORDER = "GroupAggregate(Index Only Scan its key)"
TWENTY_GROUPS = """
work_mem_kb  plan    batches  disk_kb  memory_kb  pages
64           a plan  1        0        32         9
4096         a plan  1        0        32         9
30720        a plan  1        0        32         {0}
"""
# Query 1 made to hash: by work_mem batches, those on disk, and times.
HASH_SPILLS = """
work_mem_kb  batches  disk_kb
64           {0}      {1}
30720        1        0
"""
HASHING = """
work_mem_kb  attribute  plan    picked  time
64           unique2    hashed  False   {0}
4096         unique2    hashed  False   100.0
30720        unique2    hashed  False   100.0
"""

PLANNING = """
number  planning  execution
1       {0}       0.1
2       {1}       0.1
"""
FIRST_LOOKUPS = """
state                            first  later
restarted with nothing cached    {0}    0.01
restarted with its files cached  {0}    0.01
a session in use                 {1}    0.01
a new session of a warm server   0.01   0.01
"""


def joins(*picked, dearer=False, **changed):
    """Joins by work_mem; with the print's sizes if they aren't changed."""
    return [
        {"small": 100_000, "large": 1_000_000, "multiplier": 1, "work_mem_kb": kb}
        | {"of_small": "unique1", "of_large": "unique1", "picked": join}
        | {"hash_cost": 1.0 + place * dearer, "merge_cost": 2.0}
        | changed
        for place, (kb, join) in enumerate(zip(planner.JOIN_GRID, picked))
    ]


HASH, MERGE = "Hash Join", "Merge Join"
KEYED = {"of_small": "unique2", "of_large": "unique2"}


def tipping():
    """Joins of other sizes, whose choice changes with the memory."""
    return joins(*[HASH] * 4, *[MERGE] * 4, small=planner.THIRD, large=100_000)


def fitting(without_memory, in_memory, *larger):
    """Joins where the small table has memory from 30 MB on, and others that decide nothing."""
    own = joins(*[without_memory] * 5, *[in_memory] * 3)
    hardly_larger = joins(*[MERGE] * 8, small=planner.THIRD, large=100_000)
    return {"join_plans": own + hardly_larger + joins(*[MERGE] * 8, **KEYED) + [*larger]}


# Pages written, by whom.
WRITERS = """
bgwriter       client_backend  background_writer  checkpointer
as by default  {0}             {1}                5
off            90              0                  5
"""
# Pages that a reader through a ring writes after a read and after an update, and dirty ones.
AFFECTED = """
pool  ring  before           dirty_before  written  dirty_after
1     True  after a read     0             {0}      0
1     True  after an update  90            {1}      {2}
"""
POINTS = """
relation  attribute  tuples  plan
a         unique2    100     {0}
b         unique2    1000    {1}
a         unique3    100     Seq Scan a
b         unique3    1000    Seq Scan b
"""
PROVISIONS = """
way                                         found
a setting that chooses                      ''
a hook for extensions                       {0}
a function of its own in the program        {1}
another strategy that a caller may ask for  {1}
"""


@pytest.mark.parametrize(
    ("claim", "tables", "said"),
    [
        # either reader has to write for most of its pages, and after a checkpoint for none
        ("expl-001", {"reader_pages": counted(READER_PAGES, 90, 18, 0)}, "holds"),
        ("expl-001", {"reader_pages": counted(READER_PAGES, 14, 18, 0)}, "partly"),
        ("expl-001", {"reader_pages": counted(READER_PAGES, 90, 2, 0)}, "partly"),
        ("expl-001", {"reader_pages": counted(READER_PAGES, 90, 18, 5)}, "partly"),
        ("expl-002", small_pool(1.035), "holds"),
        ("expl-002", small_pool(1.0), "no effect"),
        ("expl-002", small_pool(1.2), "stronger"),
        ("expl-002", small_pool(0.9), "reversed"),
        ("expl-002", small_pool(1.035, (0.9, 1.11)), "inconclusive"),  # two alike differ by more
        ("expl-002", small_pool(2.0, tuples=20_000), UNTESTED),
        ("expl-003", pools(1.03, 1.09), "holds"),
        # a pool with more leaves no peak, whatever the others have
        ("expl-003", pools(1.09, 1.05), "not so"),
        ("expl-003", pools(1.03, 1.09, 1.2), "not so"),
        ("expl-003", pools(1.03, 1.3, 1.2), "holds"),
        ("expl-003", pools(), "not so"),
        ("expl-003", pools(equal=1.02), "not so"),  # no more than what is called none
        ("expl-003", pools(equal=1.05), "holds"),
        # a pool speaks against a peak only by both reads without an update
        ("expl-003", pools(1.0, 1.05, 1.1), "not so"),
        ("expl-003", pools(1.0, 1.05, 1.1, again=0.98), "not so"),
        ("expl-003", pools(1.0, 1.05, 1.1, again=0.9), "inconclusive"),
        ("expl-003", pools(2.0, 2.0, 1.0, tuples=20_000), UNTESTED),
        ("expl-004", pools(1.0, 1.1), "holds"),
        ("expl-004", pools(1.0, 1.1, 1.05), "partly"),
        ("expl-004", pools(2.0, 2.0, 1.0, tuples=20_000), UNTESTED),
        # at a time that is neither's the background writer writes, some pages or most
        ("expl-006", {"writers": counted(WRITERS, 90, 0)}, "holds"),
        ("expl-006", {"writers": counted(WRITERS, 90, 9)}, "partly"),
        ("expl-006", {"writers": counted(WRITERS, 0, 90)}, "not so"),
        # a delay is judged by the time that it saves and by what the checkpointer spares
        ("expl-008", waiting(0.9), "holds"),
        # the background writer's merit, or by chance, as the checkpointer wrote none
        ("expl-008", waiting(0.9, spared=((32, 32), (32, 32))), "partly"),
        ("expl-008", waiting(0.9, meanwhile=(0, 0)), "partly"),
        ("expl-008", waiting(1.0), "partly"),
        ("expl-008", waiting(1.0, (0, 0), NOTHING_SPARED), "not so"),
        ("expl-008", waiting(0.9, spared=NOTHING_SPARED), "inconclusive"),
        ("expl-008", waiting(0.9, meanwhile=(0, 90)), "inconclusive"),
        ("expl-008", waiting(0.9, tuples=5000), UNTESTED),
        ("expl-008", waiting(0.9, seconds=320), UNTESTED),  # not several seconds
        # as long as with nothing left to write: nothing that a delay could spare
        ("expl-008", waiting(0.9, with_nothing_to_write=100.0), UNTESTED),
        # a pool avoids what an update costs readers without a ring
        ("expl-009", without_a_ring(1.0, 1.0) | waiting(0.9), "holds"),
        ("expl-009", without_a_ring(0.9, 1.0) | waiting(0.9), "holds"),
        ("expl-009", without_a_ring(1.2, 1.0) | waiting(0.9), "not so"),  # any such pool should
        ("expl-009", without_a_ring(1.3, 1.3) | waiting(0.9), "not so"),
        # where there is nothing to avoid, whether it is avoided can't be asked
        *(
            ("expl-009", without_a_ring(1.0, above) | nothing_to_avoid, UNTESTED)
            for above in (1.0, 1.2)
            for nothing_to_avoid in (
                waiting(0.9, with_nothing_to_write=100.0),
                waiting(0.9, tuples=5000),
            )
        ),
        # an update affects a reader who writes after it, but not after a read
        ("expl-010", {"reader_pages": counted(AFFECTED, 0, 14, 76)}, "holds"),
        ("expl-010", {"reader_pages": counted(AFFECTED, 14, 14, 76)}, "partly"),
        ("expl-010", {"reader_pages": counted(AFFECTED, 0, 0, 90)}, "not so"),
        # a plan is looked at wherever hashing would spill, with an index and without
        ("expl-011", spilling(planner.GRID[:4], planner.GRID[:4]), "holds"),
        ("expl-011", spilling(planner.GRID[:4], (64,)), "partly"),
        ("expl-011", spilling((), ()), "not so"),
        # a picked plan is regretted only if the other is faster
        ("expl-014", groupings(other=80.0), "partly"),
        ("expl-014", groupings(other=200.0), "holds"),
        ("expl-014", groupings(other=200.0, blocks=1), "inconclusive"),
        # both statements are expected to gain, and both have to lose for the opposite
        ("expl-015", groupings((100.0, 50.0)) | twenties((100.0, 50.0)), "holds"),
        ("expl-015", groupings((50.0, 100.0)) | twenties((100.0, 50.0)), "not so"),
        ("expl-015", groupings((50.0, 100.0)) | twenties((50.0, 100.0)), "reversed"),
        # one without a gain decides, whatever is open of the other
        ("expl-015", groupings((50.0, 100.0)) | twenties((100.0, 95.0), (0.8, 1.25)), "not so"),
        (
            "expl-015",
            groupings((100.0, 50.0)) | twenties((100.0, 95.0), (0.8, 1.25)),
            "inconclusive",
        ),
        # many groups are expected to be slower, and a hash table to be why
        *(
            (
                "expl-016",
                {"grouping_plans": counted(PICKED, *plans)}
                | groupings((50.0, with_4mb), twenty=(20.0, 20.0)),
                said,
            )
            for with_4mb, *plans, said in (
                (50.0, HASHED, HASHED, "holds"),
                (50.0, IN_ORDER, HASHED, "partly"),  # what is slower has another cause
                (50.0, IN_ORDER, IN_ORDER, "partly"),
                (20.0, HASHED, HASHED, "partly"),
                (20.0, IN_ORDER, HASHED, "not so"),
            )
        ),
        # few groups take as much time with any memory, and do the same
        *(
            (
                "expl-018",
                {"twenty_groups": counted(TWENTY_GROUPS, pages)} | twenties((100.0, time, 100.0)),
                said,
            )
            for time, pages, said in (
                (100.0, 9, "holds"),
                (120.0, 9, "partly"),
                (100.0, 8, "partly"),
            )
        ),
        # little memory has to make the planner hash, and hashing slow
        *(
            (
                "expl-019",
                {
                    "grouping_plans": counted(PICKED, plan, plan),
                    "hash_spills": counted(HASH_SPILLS, batches, batches - 1),
                    "grouping_times": timed(HASHING, time),
                },
                said,
            )
            for plan, batches, time, said in (
                (HASHED, 5, 150.0, "holds"),
                (HASHED, 5, 100.0, "partly"),
                (HASHED, 1, 150.0, "holds"),  # that it spills is told
                (IN_ORDER, 5, 150.0, "partly"),
                (IN_ORDER, 5, 100.0, "not so"),
            )
        ),
        # an index scan is asked for where an index is there
        ("expl-025", {"point_plans": counted(POINTS, "Index Scan a", "Index Scan b")}, "holds"),
        ("expl-025", {"point_plans": counted(POINTS, "Index Scan a", "Seq Scan b")}, "partly"),
        ("expl-025", {"point_plans": counted(POINTS, "Seq Scan a", "Seq Scan b")}, "not so"),
        # planning exceeds execution also where the catalogs are cached
        ("expl-027", {"planning": timed(PLANNING, 0.4, 0.3)}, "holds"),
        ("expl-027", {"planning": timed(PLANNING, 0.4, 0.1)}, "partly"),
        ("expl-027", {"planning": timed(PLANNING, 0.1, 0.1)}, "no effect"),
        # the first lookup is judged in a session that has looked up elsewhere
        ("expl-028", {"first_lookups": timed(FIRST_LOOKUPS, 1.0, 0.03)}, "holds"),
        ("expl-028", {"first_lookups": timed(FIRST_LOOKUPS, 1.0, 0.015)}, "not so"),
        ("expl-028", {"first_lookups": timed(FIRST_LOOKUPS, 0.01, 0.03)}, "holds"),
        # a hash join is asked for where the small table fits in memory
        ("expl-029", fitting(HASH, HASH), "holds"),
        ("expl-029", fitting(MERGE, HASH), "holds"),
        ("expl-029", fitting(HASH, MERGE), "not so"),
        ("expl-029", fitting(HASH, HASH, *joins(*[MERGE] * 8, small=10_000)), "partly"),
        # memory is ignored if no choice depends on it, and a cost decides nothing
        ("expl-031", {"join_plans": joins(*[HASH] * 8, dearer=True)}, "holds"),
        ("expl-031", {"join_plans": joins(*[HASH] * 8) + tipping()}, "partly"),
        ("expl-031", {"join_plans": joins(*[HASH] * 4, *[MERGE] * 4)}, "not so"),
        *(
            (
                "expl-035",
                {
                    "grouping_plans": counted(PICKED, plan, HASHED),
                    "join_plans": joins(*[HASH] * 8, dearer=True),
                },
                said,
            )
            for plan, said in ((HASHED, "holds"), (IN_ORDER, "not so"))
        ),
        # the clustered index is judged on the slides' sizes
        *(
            (
                "expl-032",
                {
                    "join_plans": joins(*[picked] * 8, **KEYED)
                    + joins(*[MERGE] * 7, HASH, small=950_000, **KEYED)
                },
                said,
            )
            for picked, said in ((MERGE, "holds"), (HASH, "not so"))
        ),
        # a hook for another strategy is looked up in the program
        ("expl-036", {"provisions": counted(PROVISIONS, "''", "a_function")}, "holds"),
        ("expl-036", {"provisions": counted(PROVISIONS, "a_hook", "''")}, "not so"),
    ],
)
def test_what_the_rules_make_of_rows(claim, tables, said):
    assert word(claim, "explorations", **tables) == said


def test_what_a_reader_through_a_ring_takes_stands_beside():
    tables = pools() | without_a_ring(1.2, 1.0) | waiting(0.9)
    found = judged("expl-009", "explorations", **tables)
    beside = found.beside["of a reader through a ring"]
    assert (found.verdict, beside.verdict) == ("not so", "partly")


# By the relation's size: a lookup's time, and its pages.
POINT_TIMES = """
query   tuples   time
lookup  10000    1.0
lookup  1000000  {0}
"""
POINT_PLANS = """
attribute  relation  plan        workers  tuples   pages
unique2    a         Index Scan  0        10000    3
unique2    a         Index Scan  0        1000000  {0}
"""


@pytest.mark.parametrize(
    ("slower", "pages", "blocks", "expected"),
    [
        (1.5, 3, 7, "holds"),
        (1.0, 4, 7, "partly"),
        (2.5, 4, 7, "partly"),
        (1.5, 4, 1, "inconclusive"),
    ],
)
def test_a_lookup_gets_slower_by_its_time_and_its_pages_stand_beside(
    slower, pages, blocks, expected
):
    tables = {"point_times": timed(POINT_TIMES, slower, blocks=blocks)}
    found = judged("expl-021", "explorations", point_plans=counted(POINT_PLANS, pages), **tables)
    beside = [one.verdict for one in found.beside.values()]
    assert (found.verdict, beside) == (expected, ["holds" if pages > 3 else "partly"])


COLD = """
small  large  cold_small  warm_small  warm_large  cold_large
{0}    {1}    5.0         2.0         180.0       {2}
"""
AT_THE_PRINTED_RATE = """
large  tuples  time    waiting
{1}    {0}     1.0     0.9
{1}    {1}     1658.0  0.9
"""


@pytest.mark.parametrize(
    ("cold_large", "largest", "expected"),
    [
        (3316.0, 10_000_000, "holds"),
        (400.0, 10_000_000, "weaker"),
        (40_000.0, 10_000_000, "stronger"),
        (2.0, 10_000_000, "no effect"),
        (1.0, 10_000_000, "reversed"),
        (400.0, 1_000_000, UNTESTED),
    ],
)
def test_a_scan_a_hundred_times_as_large_is_judged_on_this_machine_s_own_disk(
    cold_large, largest, expected
):
    sizes = (largest // 100, largest)
    slow = timed(AT_THE_PRINTED_RATE, *sizes)
    cold = timed(COLD, *sizes, cold_large)
    found = judged("expl-022", "explorations", cold=cold, scan_from_slow_disk=slow)
    beside = [str(one.verdict) for one in found.beside.values()]
    assert (found.verdict, beside) == (expected, ["weaker", "holds"])
