"""Chapter `explorations`: what small live servers count, and what its rules make of rows."""

from types import SimpleNamespace

import pytest

from pgrerun.chapters.explorations import relations
from pgrerun.chapters.explorations.experiments import (
    buffer_pool,
    by_release,
    clock_sweep,
    planner,
    size_up,
)
from pgrerun.lab.server import bundled
from pgrerun.lab.testbed import Testbed
from pgrerun.parameters import chapter_parameters
from tests.judging import judged, word

CLEAN, AGAIN, DIRTY = buffer_pool.CLEAN, buffer_pool.AGAIN, buffer_pool.DIRTY


@pytest.fixture(scope="module")
def bed():
    """Relations so small that its servers start and load in a few seconds."""
    small = {"tuples": 5000, "slowed_tuples": 5000, "wait": 1, "pairs": 5}
    found = Testbed(chapter_parameters("explorations", small), bundled())
    yield found
    found.close()


def rows(experiment, bed):
    return list(bed.measure(experiment, {}))


@pytest.mark.parametrize(
    ("largest", "per_decade"), [(1_000_000, 1), (30_000_000, 2), (1_234_567, 5), (100_000_000, 3)]
)
def test_the_size_up_spans_a_hundredfold(largest, per_decade):
    given = SimpleNamespace(largest=largest, per_decade=per_decade)
    found = relations.sizes(SimpleNamespace(parameters=given))
    assert found == sorted(set(found)) and len(found) == 2 * per_decade + 1
    assert found[0] * 100 == pytest.approx(largest, rel=0.05)


# ---- dirty pages


def test_a_ring_s_reader_writes_as_much_as_it_is_said_to(bed):
    found = rows(buffer_pool.reader_pages, bed)
    as_said = [row | {"written": row["read"] if row["before"] == DIRTY else 0} for row in found]
    nothing = [row | {"written": 0} for row in found]
    words = [word("expl-001", "explorations", reader_pages=r) for r in (found, as_said, nothing)]
    assert words == ["partly", "holds", "partly"]


def pools(again=1.0, **slowdowns):
    """Rows of `reads_in_pools` whose slow-down by pool is this, in seven blocks.

    The second read without an update takes `again` times as long as the first.
    """
    place = {"below": 0.54, "slides": 0.88, "equal": 1.0, "twice": 2.11, "above": 4.0}
    return [
        {"pool": place[pool], "before": before, "tuples": 1_000_000}
        | {"time": time, "block": block, "comparison": 0}
        for pool, slower in slowdowns.items()
        for block in range(7)
        for before, time in ((CLEAN, 100.0), (AGAIN, 100.0 * again), (DIRTY, 100.0 * slower))
    ]


@pytest.mark.parametrize(
    ("slowdowns", "peak"),
    [
        ((1.03, 1.09, 1.0), "holds"),
        # a pool with more leaves no peak, whatever the others have
        ((1.09, 1.05, 1.0), "not so"),
        ((1.03, 1.09, 1.2), "not so"),
        ((1.03, 1.3, 1.2), "holds"),
        ((1.0, 1.0, 1.0), "not so"),
        ((1.0, 1.02, 1.0), "holds"),
    ],
)
def test_a_peak_is_judged_by_the_times_in_each_pool(slowdowns, peak):
    below, equal, above = slowdowns
    given = {"below": below, "slides": 1.0, "equal": equal, "twice": above, "above": 1.0}
    assert word("expl-003", "explorations", reads_in_pools=pools(**given)) == peak


def without_a_ring(equal, twice, above, again=1.0, tuples=1_000_000):
    """Rows of `readers_without_a_ring`: slow-downs by pool, each with a checkpoint as 1."""
    checkpointed = "after an update and a checkpoint"
    times = [
        (1.0, checkpointed, 1.0),
        (1.0, f"{checkpointed}, again", again),
        *((pool, DIRTY, slower) for pool, slower in ((1.0, equal), (2.11, twice), (4.0, above))),
        *((pool, checkpointed, 1.0) for pool in (2.11, 4.0)),
    ]
    return [
        {"pool": pool, "before": before, "tuples": tuples, "written": 10 if before == DIRTY else 0}
        | {"time": 200.0 * time, "block": block, "comparison": 0}
        for block in range(7)
        for pool, before, time in times
    ]


@pytest.mark.parametrize(
    ("slowdowns", "expected"),
    [
        ((1.4, 1.0, 1.0), "holds"),
        ((1.4, 1.2, 1.0), "partly"),
        ((1.4, 1.3, 1.3), "not so"),
        # where there is nothing to avoid, whether it is avoided can't be asked
        ((1.02, 1.0, 1.0), "not tested here"),
        ((1.02, 1.0, 1.2), "not tested here"),
        ((1.1, 1.0, 1.0, 1.09), "not tested here"),  # as two alike differ by as much
    ],
)
def test_a_pool_avoids_what_an_update_costs_readers_without_a_ring(slowdowns, expected):
    found = without_a_ring(*slowdowns)
    assert word("expl-009", "explorations", readers_without_a_ring=found) == expected


@pytest.mark.parametrize(
    ("again", "expected"), [(1.0, "not so"), (0.98, "not so"), (0.9, "inconclusive")]
)
def test_a_pool_speaks_against_a_peak_only_by_both_reads_without_an_update(again, expected):
    found = pools(again, below=1.0, slides=1.0, equal=1.05, twice=1.1, above=1.0)
    assert word("expl-003", "explorations", reads_in_pools=found) == expected


def test_what_a_reader_through_a_ring_takes_stands_beside():
    given = {"below": 1.0, "slides": 1.0, "equal": 1.0, "twice": 1.0, "above": 1.0}
    tables = {"reads_in_pools": pools(**given)}
    tables["readers_without_a_ring"] = without_a_ring(1.4, 1.2, 1.0)
    found = judged("expl-009", "explorations", **tables)
    assert (found.verdict, str(found.beside["of a reader through a ring"].verdict)) == (
        "partly",
        "partly",
    )


def small_pool(slower, differ=(1.0,), blocks=40):
    """Rows of `reads_in_a_small_pool`; the second read after a read takes turns in differing."""
    return [
        {"pool": 0.54, "before": before, "tuples": 1_000_000}
        | {"time": time, "block": block, "comparison": 0}
        for block in range(blocks)
        for before, time in (
            (CLEAN, 200.0),
            (AGAIN, 200.0 * differ[block % len(differ)]),
            (DIRTY, 200.0 * slower),
        )
    ]


@pytest.mark.parametrize(
    ("slower", "differ", "expected"),
    [
        (1.035, (1.0,), "holds"),
        (1.0, (1.0,), "no effect"),
        (1.2, (1.0,), "stronger"),
        (0.9, (1.0,), "reversed"),
        (1.035, (0.9, 1.11), "inconclusive"),  # two alike differ by more
    ],
)
def test_a_small_slow_down_is_told_where_two_reads_alike_differ_by_less(slower, differ, expected):
    found = small_pool(slower, differ)
    assert word("expl-002", "explorations", reads_in_a_small_pool=found) == expected


def test_small_relations_set_every_claim_of_the_slow_down_aside():
    found = [row | {"tuples": 20_000} for row in pools(below=2.0, slides=2, equal=2.0, twice=1.0)]
    for claim in ("expl-003", "expl-004"):
        assert word(claim, "explorations", reads_in_pools=found) == "not tested here"
    found = without_a_ring(2.0, 1.0, 1.0, tuples=20_000)
    assert word("expl-009", "explorations", readers_without_a_ring=found) == "not tested here"
    found = [row | {"tuples": 20_000} for row in small_pool(2.0)]
    assert word("expl-002", "explorations", reads_in_a_small_pool=found) == "not tested here"


@pytest.mark.parametrize(
    ("faster", "meanwhile", "spared", "expected"),
    [
        (0.9, (80, 90), [(32, 0), (30, 2)], "holds"),
        (0.9, (80, 90), [(32, 32), (32, 32)], "partly"),  # the background writer's merit
        (0.9, (0, 0), [(32, 0), (30, 2)], "partly"),  # by chance, as the checkpointer wrote none
        (1.0, (80, 90), [(32, 0), (30, 2)], "partly"),
        (1.0, (0, 0), [(24, 158), (158, 24)], "not so"),
        (0.9, (80, 90), [(24, 158), (158, 24)], "inconclusive"),
        (0.9, (0, 90), [(32, 0), (30, 2)], "inconclusive"),
    ],
)
def test_a_delay_is_judged_by_the_time_that_it_saves_and_by_what_the_checkpointer_spares(
    faster, meanwhile, spared, expected
):
    """`meanwhile` takes turns, `spared` are the reader's pages at once and after the delay."""
    found = [
        {"tuples": 1_000_000, "block": block, "comparison": 0, "bgwriter": bgwriter, "event": event}
        | {"dirty": 1, "background_writer": 0, "client_backend": 0, "checkpointer": 0}
        | {"reader": reader, "meanwhile": written, "time": time}
        for bgwriter in ("as by default", "off")
        for block in range(6)
        for event, reader, written, time in (
            ("update", spared[block % 2][0], 0, 100.0),
            ("update, wait", spared[block % 2][1], meanwhile[block % 2], 100.0 * faster),
            ("update, checkpoint", 0, 0, 70.0),
        )
    ]
    assert word("expl-008", "explorations", waiting=found) == expected
    fewer = [row | {"tuples": 5000} for row in found]
    # as long as with nothing left to write: nothing that a delay could spare
    none = [row | {"time": 100.0} if "checkpoint" in row["event"] else row for row in found]
    for waits in (fewer, none):
        assert word("expl-008", "explorations", waiting=waits) == "not tested here"


def test_a_clock_sweep_is_told_by_the_usage_that_it_counts(bed):
    found = rows(clock_sweep.survivors, bed)
    alike = [row | {"usage": 1} if "usage" in row else row for row in found]
    words = [word("expl-005", "explorations", survivors=r) for r in (found, alike)]
    assert words == ["holds", "partly"]


def test_a_hook_for_another_strategy_is_looked_up_in_the_program(bed):
    found = rows(clock_sweep.provisions, bed)
    hooked = [row | {"found": "a_hook" if "hook" in row["way"] else ""} for row in found]
    words = [word("expl-036", "explorations", provisions=r) for r in (found, hooked)]
    assert words == ["holds", "not so"]


# ---- plans


@pytest.mark.parametrize(
    ("with_index", "without", "expected"),
    [
        (planner.GRID[:4], planner.GRID[:4], "holds"),
        (planner.GRID[:4], (64,), "partly"),
        ((), (), "not so"),
    ],
)
def test_a_plan_is_looked_at_wherever_hashing_would_spill_with_an_index_and_without(
    with_index, without, expected
):
    hashed, other = "HashAggregate(Seq Scan)", "GroupAggregate(Sort(Seq Scan))"
    plans = [
        {"state": state, "work_mem_kb": kb, "plan": other if kb in evaded else hashed}
        for state, evaded in ((planner.NEW, with_index), (planner.NO_INDEX, without))
        for kb in planner.GRID
    ]
    spills = [
        {"work_mem_kb": kb, "batches": 1 + 4 * (kb in planner.GRID[:4])} for kb in planner.GRID
    ]
    found = word("expl-011", "explorations", grouping_plans=plans, hash_spills=spills)
    assert found == expected


def groupings(unique=(50.0, 100.0), other=80.0, twenty=()):
    """Rows of `grouping_times` at the two smaller settings: of the picked plan and of the other.

    And of twenty groups, where their times are given.
    """
    times = [
        (planner.UNIQUE, kb, picked, time)
        for kb, one in zip(planner.WORK_MEM, unique)
        for picked, time in ((True, one), (False, other))
    ]
    times += [("twenty", kb, True, time) for kb, time in zip(planner.WORK_MEM, twenty)]
    return [
        {"work_mem_kb": kb, "attribute": attribute, "plan": "a plan", "picked": picked}
        | {"time": time, "block": block, "comparison": 0}
        for attribute, kb, picked, time in times
        for block in range(7)
    ]


HASHED, IN_ORDER = "HashAggregate(Seq Scan)", "GroupAggregate(Index Only Scan its key)"


@pytest.mark.parametrize(
    ("unique", "plans", "expected"),
    [
        ((50.0, 50.0), (HASHED, HASHED), "holds"),
        ((50.0, 50.0), (IN_ORDER, HASHED), "partly"),  # what is slower has another cause
        ((50.0, 50.0), (IN_ORDER, IN_ORDER), "partly"),
        ((50.0, 20.0), (HASHED, HASHED), "partly"),
        ((50.0, 20.0), (IN_ORDER, HASHED), "not so"),
    ],
)
def test_many_groups_are_expected_to_be_slower_and_a_hash_table_to_be_why(unique, plans, expected):
    picked = [
        {"state": planner.NEW, "work_mem_kb": kb, "plan": plan}
        for kb, plan in zip(planner.WORK_MEM, plans)
    ]
    times = groupings(unique, twenty=(20.0, 20.0))
    tables = {"grouping_plans": picked, "grouping_times": times}
    assert word("expl-016", "explorations", **tables) == expected


def twenties(times, open_by=(1, 1)):
    """Rows of `twenty_times`; `open_by` takes turns in multiplying the first time."""
    return [
        {"work_mem_kb": kb, "time": time * factors[block % 2], "block": block, "comparison": 0}
        for kb, time, factors in zip(planner.WORK_MEM, times, (open_by, (1, 1), (1, 1)))
        for block in range(7)
    ]


@pytest.mark.parametrize(
    ("unique", "twenty", "open_by", "expected"),
    [
        ((100.0, 50.0), (100.0, 50.0), (1, 1), "holds"),
        ((50.0, 100.0), (100.0, 50.0), (1, 1), "not so"),
        ((50.0, 100.0), (50.0, 100.0), (1, 1), "reversed"),
        # one without a gain decides, whatever is open of the other
        ((50.0, 100.0), (100.0, 95.0), (0.8, 1.25), "not so"),
        ((100.0, 50.0), (100.0, 95.0), (0.8, 1.25), "inconclusive"),
    ],
)
def test_both_statements_are_expected_to_gain_and_both_have_to_lose_for_the_opposite(
    unique, twenty, open_by, expected
):
    tables = {"grouping_times": groupings(unique), "twenty_times": twenties(twenty, open_by)}
    assert word("expl-015", "explorations", **tables) == expected


@pytest.mark.parametrize(
    ("times", "pages", "expected"),
    [
        ((100.0, 100.0, 100.0), (9, 9, 9), "holds"),
        ((100.0, 120.0, 100.0), (9, 9, 9), "partly"),
        ((100.0, 100.0, 100.0), (9, 9, 8), "partly"),
    ],
)
def test_few_groups_take_as_much_time_with_any_memory_and_do_the_same(times, pages, expected):
    same = {"plan": "a plan", "batches": 1, "disk_kb": 0, "memory_kb": 32}
    counted = [same | {"work_mem_kb": kb, "pages": n} for kb, n in zip(planner.WORK_MEM, pages)]
    tables = {"twenty_groups": counted, "twenty_times": twenties(times)}
    assert word("expl-018", "explorations", **tables) == expected


@pytest.mark.parametrize(
    ("picked", "batches", "slower", "expected"),
    [
        ("HashAggregate(Seq Scan)", 5, 1.5, "holds"),
        ("HashAggregate(Seq Scan)", 5, 1.0, "partly"),
        ("HashAggregate(Seq Scan)", 1, 1.5, "partly"),
        ("GroupAggregate(Index Only Scan its key)", 5, 1.5, "partly"),
    ],
)
def test_little_memory_has_to_make_the_planner_hash_and_hashing_slow(
    picked, batches, slower, expected
):
    spilt = {64: batches, 30720: 1}
    counted = [{"work_mem_kb": kb, "batches": n, "disk_kb": n - 1} for kb, n in spilt.items()]
    times = [
        {"work_mem_kb": kb, "attribute": planner.UNIQUE, "plan": planner.HASHED, "picked": False}
        | {"time": time, "block": block, "comparison": 0}
        for kb, time in ((64, 100.0 * slower), (4096, 100.0), (30720, 100.0))
        for block in range(7)
    ]
    plans = [{"state": planner.NEW, "work_mem_kb": 64, "plan": picked}]
    tables = {"grouping_plans": plans, "hash_spills": counted, "grouping_times": times}
    assert word("expl-019", "explorations", **tables) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(4, 3, "holds"), (4, 1, "partly"), (1, 1, "no effect")]
)
def test_planning_exceeds_execution_also_where_the_catalogs_are_cached(first, second, expected):
    found = [
        {"number": number, "planning": 0.1 * longer, "execution": 0.1}
        | {"block": block, "comparison": 0}
        for number, longer in ((1, first), (2, second))
        for block in range(7)
    ]
    assert word("expl-027", "explorations", planning=found) == expected


@pytest.mark.parametrize(
    ("emptied", "restarted", "expected"),
    [(100, 3, "holds"), (100, 1.5, "not so"), (1, 3, "holds")],
)
def test_the_first_lookup_is_judged_after_a_restart_that_keeps_the_kernels_cache(
    emptied, restarted, expected
):
    longer = {size_up.EMPTIED: emptied, size_up.RESTARTED: restarted, size_up.OPENED: 1}
    found = [
        {"state": state, "first": 0.01 * times, "later": 0.01, "block": block, "comparison": 0}
        for state, times in longer.items()
        for block in range(7)
    ]
    assert word("expl-028", "explorations", first_lookups=found) == expected


@pytest.mark.parametrize(
    ("other", "blocks", "expected"),
    [(80.0, 7, "partly"), (200.0, 7, "holds"), (200.0, 1, "inconclusive")],
)
def test_a_picked_plan_is_regretted_only_if_the_other_is_faster(other, blocks, expected):
    found = [row for row in groupings(other=other) if row["block"] < blocks]
    assert word("expl-014", "explorations", grouping_times=found) == expected


def joins(*picked, dearer=False, **changed):
    """Rows of `join_plans`, by work_mem; with the print's sizes if they aren't changed."""
    return [
        {"small": 100_000, "large": 1_000_000, "multiplier": 1, "work_mem_kb": kb}
        | {"of_small": "unique1", "of_large": "unique1", "picked": join}
        | {"hash_cost": 1.0 + place * dearer, "merge_cost": 2.0}
        | changed
        for place, (kb, join) in enumerate(zip(planner.JOIN_GRID, picked))
    ]


HASH, MERGE = "Hash Join", "Merge Join"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (joins(*[HASH] * 8), "holds"),
        (joins(*[HASH] * 4, *[MERGE] * 4), "partly"),
        (joins(*[HASH] * 4, *[MERGE] * 4, dearer=True), "not so"),
    ],
)
def test_memory_is_ignored_only_if_neither_cost_nor_choice_depends_on_it(given, expected):
    assert word("expl-031", "explorations", join_plans=given) == expected


@pytest.mark.parametrize(
    ("without_memory", "in_memory", "expected"),
    [(HASH, HASH, "holds"), (MERGE, HASH, "holds"), (HASH, MERGE, "not so")],
)
def test_a_hash_join_is_asked_for_where_the_small_table_fits_in_memory(
    without_memory, in_memory, expected
):
    own = joins(*[without_memory] * 5, *[in_memory] * 3)  # from 30 MB on it fits
    hardly_larger = joins(*[MERGE] * 8, small=planner.THIRD, large=100_000)
    clustered = joins(*[MERGE] * 8, of_small="unique2", of_large="unique2")
    found = own + hardly_larger + clustered
    assert word("expl-029", "explorations", join_plans=found) == expected
    larger = joins(*[MERGE] * 8, small=10_000)
    several = word("expl-029", "explorations", join_plans=found + larger)
    assert several == {"holds": "partly"}.get(expected, expected)


def test_the_clustered_index_is_judged_on_the_slides_sizes():
    keyed = {"of_small": "unique2", "of_large": "unique2"}
    own = joins(*[MERGE] * 8, **keyed)
    others = joins(*[MERGE] * 7, HASH, small=950_000, **keyed)
    assert word("expl-032", "explorations", join_plans=own + others) == "holds"
    hashed = [row | {"picked": HASH} for row in own]
    assert word("expl-032", "explorations", join_plans=hashed) == "not so"


@pytest.mark.parametrize(
    ("slower", "many", "blocks", "expected"),
    [
        (2.0, 3, 7, "holds"),
        (1.0, 4, 7, "partly"),
        (40.0, 4, 7, "partly"),
        (2.0, 4, 1, "inconclusive"),
    ],
)
def test_a_lookup_gets_slower_by_its_time_and_its_pages_stand_beside(
    slower, many, blocks, expected
):
    times = [
        {"query": "lookup", "tuples": tuples, "time": time, "block": block, "comparison": 0}
        for tuples, time in ((10_000, 1.0), (1_000_000, slower))
        for block in range(blocks)
    ]
    same = {"attribute": "unique2", "relation": "a", "plan": "Index Scan", "workers": 0}
    plans = [
        same | {"tuples": tuples, "pages": n} for tuples, n in ((10_000, 3), (1_000_000, many))
    ]
    found = judged("expl-021", "explorations", point_times=times, point_plans=plans)
    [pages] = found.beside.values()
    assert (found.verdict, pages.verdict) == (expected, "holds" if many > 3 else "partly")


@pytest.mark.parametrize(
    ("longer", "largest", "expected"),
    [
        (1658.0, 10_000_000, "holds"),
        (200.0, 10_000_000, "weaker"),
        (20_000.0, 10_000_000, "stronger"),
        (1.0, 10_000_000, "no effect"),
        (0.5, 10_000_000, "reversed"),
        (200.0, 1_000_000, "not tested here"),
    ],
)
def test_a_scan_a_hundred_times_as_large_is_judged_on_this_machine_s_own_disk(
    longer, largest, expected
):
    small = largest // 100
    same = {"comparison": 0, "cold_small": 5.0}
    cold = [
        same
        | {"small": small, "large": largest, "block": block}
        | {"warm_small": 2.0, "warm_large": 180.0, "cold_large": 2.0 * longer}
        for block in range(7)
    ]
    set_to_the_printed_rate = [
        {"comparison": 0, "large": largest, "tuples": tuples, "block": block}
        | {"time": time, "waiting": 0.9}
        for tuples, time in ((small, 1.0), (largest, 1658.0))
        for block in range(7)
    ]
    tables = {"cold": cold, "scan_from_slow_disk": set_to_the_printed_rate}
    found = judged("expl-022", "explorations", **tables)
    assert found.verdict == expected
    assert [str(one.verdict) for one in found.beside.values()] == ["weaker", "holds"]


def test_releases_are_taken_evenly_from_the_oldest_to_the_one_under_test(bed, monkeypatch):
    there = {one: SimpleNamespace(number=n) for one, n in (("9.3", 90300), ("11", 110000))}
    monkeypatch.setattr(by_release.fetched, "comparable", lambda: dict.fromkeys(there, ""))
    monkeypatch.setattr(by_release.fetched, "chosen", there.get)
    slow = SimpleNamespace(
        borrowed=False, programs=bed.programs, parameters=SimpleNamespace(profile="laptop")
    )
    newest = str(bed.programs.release[0])
    assert list(by_release.compared(slow, 2)) == ["9.3", newest]
    assert list(by_release.compared(slow, 5)) == ["9.3", "11", newest]


def test_what_a_reader_is_told_to_ask_his_own_server_can_be_asked(bed):
    with bed.server.connect() as connection:
        for name in ("yours_all_visible", "yours_who_writes"):
            relations.SQL.run(connection, f"tables.{name}").fetchall()
