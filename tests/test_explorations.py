"""Chapter `explorations`: what is counted on small live servers, and what its verdicts and sentences make of outcomes."""

import re
from types import SimpleNamespace
from unittest.mock import MagicMock

import pandas as pd
import pytest
from servers import small_chapter

from pgrerun import claims, published, statistics
from pgrerun.chapters import explorations as ex
from pgrerun.chapters.explorations.joins import HASH, MERGE
from pgrerun.errors import CannotMeasure, ParameterError
from pgrerun.models.replacement import MAX_USAGE
from pgrerun.parameters import chapter_parameters
from pgrerun.published import explorations as printed
from pgrerun.server import Programs, bundled


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The chapter with relations so small that its own servers start and load in a few seconds."""
    with small_chapter("explorations", tmp_path_factory.mktemp("runs"), tuples=5000, wait=1) as found:
        yield found


@pytest.fixture(scope="module")
def grouped(cluster):
    """A server that holds hundredktup, vacuumed and never vacuumed; gone afterwards."""
    with cluster.connect() as connection:
        ex.relations.keyed(connection, "hundredktup", ex.relations.SMALL)
        ex.relations.unvacuumed(connection)
        yield SimpleNamespace(server=cluster)
        connection.execute(f"DROP TABLE hundredktup, {ex.relations.UNVACUUMED}")


# ---- the print


def test_printed_effects_come_from_the_tables():
    own = [c for c in claims.ledger().values() if c.chapter == "explorations"]
    assert all(c.predicate for c in own)
    assert {c.id: c.printed for c in own if c.printed is not None} == pytest.approx({
        "expl-002": 218.2118 / 210.9082, "expl-003": 1, "expl-004": 218.2118 / 210.9082, "expl-013": 191.674 / 158.69, "expl-015": 111.732 / 109.977,
        "expl-016": 161.940 / 111.732, "expl-017": 191.674 / 108.167, "expl-018": 111.732 / 108.167, "expl-020": 100_000, "expl-021": 4.888 / 2.819,
        "expl-022": 127298.392 / 76.759, "expl-027": 4.185 / 1.812, "expl-028": 12.362 / 4.888,
    })  # fmt: skip
    numerals = re.compile(r"(?<![\w.])\d+(?![\w.])")
    assert {n for c in own for n in numerals.findall(c.expression)} <= {"1"}  # no slow-down


def test_every_printed_average_is_that_of_its_readings():
    for name in ("pool_averages", "grouping_averages", "sizeup_averages"):
        t = published.derived(f"explorations_{name}")
        for column in published.table(f"explorations_{name}"):
            assert t[f"recomputed_{column}"].tolist() == pytest.approx(t[column].tolist(), abs=0.002), (name, column)


def test_print_against_print():
    rows = published.recomputed("explorations").set_index("where")
    assert rows.index.is_unique and rows.note.str.len().min() > 10
    contradictions = published.disagreements("explorations").set_index("where").recomputed
    expected = {"small but consistent": "4 and 5 of 5 rounds", "suspect": "2 of 5", "number of runs": "5 runs", "group by twenty": "117.223 ms", "indexed point": "1.821 ms",
                "a pool of": "237 MB", "size of hundredktup": "23.7 MB", "tenmiltup": "18.6 MB/s", "20%": "0.02 %", "almost double": "1.77", "optimal": "191.674 ms", "expectations": "close"}
    for part, words in expected.items():
        [found] = contradictions[contradictions.index.str.contains(part, regex=False)]
        assert words in found, part
    assert len(contradictions) == len(expected)


def test_the_layout_gives_the_pages_of_a_loaded_relation(cluster):
    with cluster.connect() as connection:
        ex.relations.keyed(connection, "few", 1000)
        assert connection.execute("SELECT pg_relation_size('few') / 8192").fetchone()[0] == printed.heap_pages(1000) == 31
        connection.execute("DROP TABLE few")


def test_pools_are_shares_of_the_heap_and_named_as_the_code_names_them():
    pools = ex.pools.pools()
    assert list(pools.values()) == sorted(pools.values()) and {ex.pools.BELOW, ex.pools.EQUAL, ex.pools.ABOVE} <= set(pools)
    assert pools[ex.pools.printed_pool("mb208")] == pytest.approx(208 * 128 / 30304)


# ---- dirty pages


def test_a_ring_bounds_what_its_reader_writes_and_a_reader_without_one_pays_for_every_page(chapter):
    found = ex.dirt.beside_the_ring(chapter).set_index(["reader", "arm"])
    pages = printed.heap_pages(5000)
    through, without = (found.loc[reader] for reader in (ex.dirt.THROUGH, ex.dirt.WITHOUT))
    assert through.at[ex.pools.DIRTY, "read"] == pages and 0 < through.at[ex.pools.DIRTY, "written"] <= 33  # 256 kB
    assert without.at[ex.pools.DIRTY, "read"] == printed.heap_pages(1000)
    assert without.at[ex.pools.DIRTY, "written"] >= 0.9 * without.at[ex.pools.DIRTY, "read"]
    assert not found.drop(ex.pools.DIRTY, level="arm")["written"].any()


def test_what_the_reader_writes_is_no_longer_dirty(chapter):
    server = ex.pools.cluster(chapter, ex.pools.EQUAL)
    server.extension("pg_buffercache")
    with server.reloaded(**ex.dirt.QUIET), server.connect() as connection:
        ex.pools.before(connection, ex.pools.DIRTY)
        assert ex.dirt.dirty_of(connection) > printed.heap_pages(5000) / 2
        ex.pools.before(connection, ex.pools.CHECKPOINTED)
        assert ex.dirt.dirty_of(connection) == 0
    with server.connect() as connection:  # the settings of the block are gone
        assert connection.execute("SHOW bgwriter_lru_maxpages").fetchone()[0] == "100"


def test_the_clock_keeps_what_was_used_and_a_ring_spares_it(chapter):
    found = ex.clock.survivors(chapter)
    kept, replay = found.pages, ex.clock.replayed(found)
    last = kept[kept["kept"] == 1].groupby(["flood", "history"])["pages_read"].max()
    assert last[ex.clock.CROWD, ex.clock.OFTEN] > last[ex.clock.CROWD, ex.clock.ONCE]
    assert last[ex.clock.RING, ex.clock.ONCE] == kept["pages_read"].max() == replay["pages_read"].max()
    start = kept[kept["pages_read"] == 0]
    assert set(start.loc[start["history"] == ex.clock.OFTEN, "usage"]) == {MAX_USAGE}
    here, clock, recency = ex.clock.stays(found, replay).set_index("who")[ex.clock.OFTEN]
    assert abs(here - clock) <= 0.2 and here > 1.5 * recency  # a step of the flood
    assert re.search(r"when [12][.\d]* pools .*: it loses [12]\.\d for each pool\. The hand has to go round twice", ex.words.turns(found))
    assert list(ex.clock.clock_facts(found, replay).values()) == [True] * 4 + [False]


def test_what_is_never_displaced_stays_for_the_whole_flood():
    found = pd.DataFrame([(history, read, 1 - read * (history == ex.clock.ONCE)) for history in ex.clock.HISTORIES for read in (0, 0.5, 1)], columns=["history", "pages_read", "kept"])
    assert ex.clock.stay(found).to_dict() == {ex.clock.ONCE: 1, ex.clock.OFTEN: 1}
    assert ex.clock.stays(None, found) is ex.clock.clock_facts(None, found) is ex.clock.swap_facts(None) is None


def test_a_ring_is_all_that_a_scan_leaves_in_the_pool(chapter):
    written = ex.dirt.written(chapter)
    own = written[(written["arm"] != ex.pools.CLEAN) & written["pool"].isin([ex.pools.BELOW, ex.pools.EQUAL])].set_index("pool")
    for pool in (ex.pools.BELOW, ex.pools.EQUAL):  # an eighth of the pool at the most
        assert set(own.loc[pool, "left"]) == {min(ex.dirt.RING_OF_11, ex.pools.buffers(chapter, pool) // 8)}
    said = ex.words.ring(chapter, written)
    assert "small ring of buffers" in said and "of the 30,304 pages of the slides' relation that is 0.1 %" in said
    assert "ring" not in ex.words.ring(chapter, written.assign(left=printed.heap_pages(5000)))
    table = ex.dirt.by_pool(written).set_index("pool / relation")
    assert table.at[ex.pools.EQUAL, "written after an update"] > table.at[ex.pools.EQUAL, "written after update, checkpoint"] == 0


def test_how_often_the_hand_goes_round_is_said_of_what_was_seen():
    crowd = lambda *usage: ex.clock.Survivors(pd.DataFrame({"flood": ex.clock.CROWD, "history": ex.clock.OFTEN, "pages_read": [0.0, 1.0, 2.0, 3.0], "usage": usage}), [])
    assert ex.words.turns(crowd(5, 4, 3, 2)).endswith("some of it is left at the end.")
    assert "it loses 2.5 for each pool" in ex.words.turns(crowd(5, 3, 0, 0))
    assert ex.words.turns(crowd(3, 2, 1, 0)).endswith("of zero when 3 pools of them have been read.") and ex.words.turns(None) is None


def test_only_the_first_reader_of_an_updated_relation_writes(chapter):
    first, second, third = (row for _, row in ex.dirt.first_reader(chapter).iterrows())
    assert first["dirtied"] >= printed.heap_pages(5000) and second["dirtied"] == third["dirtied"] == 0
    assert first["wal_fpi"] > 0 and second["wal_bytes"] == 0


def outcome(dirty, checkpointer, reader):
    return pd.DataFrame({"event": [ex.pools.DIRTY, ex.pools.WAITED], "dirty": [100, dirty], "checkpointer": [0, checkpointer], "background_writer": [0, 0], "reader": [32, reader]})


@pytest.mark.parametrize(("found", "true"), [(outcome(100, 0, 32), 0), (outcome(60, 0, 0), 2), (outcome(0, 100, 0), 3)])
def test_a_delay_is_judged_by_who_wrote(found, true):
    assert sum(ex.dirt.delay_facts(found).values()) == true


def test_the_delay_is_watched_from_moment_to_moment(chapter):
    waiting = ex.dirt.waiting(chapter)
    meanwhile = waiting[waiting["event"] == ex.dirt.MEANWHILE]
    assert meanwhile["seconds"].tolist() == [number / ex.dirt.LOOKS for number in range(ex.dirt.LOOKS)]
    assert (waiting["unused"] <= waiting["dirty"]).all() and meanwhile["dirty"].is_monotonic_decreasing
    assert waiting.set_index("event").at[ex.pools.CHECKPOINTED, "dirty"] == 0
    assert "of usage count 0 after 1 s" in ex.drawn.fading(waiting).description
    assert ex.drawn.waits(waiting).description.count("while waiting") == 0
    assert ex.drawn.fading(None) is ex.words.fading(None) is None


@pytest.mark.parametrize(("dirty", "cleans"), [(304, False), (250, True)])
def test_what_the_background_writer_cleans_is_said_only_if_it_did(dirty, cleans):
    waiting = pd.DataFrame({"event": [ex.dirt.MEANWHILE, ex.pools.WAITED], "seconds": [0, 1], "dirty": [304, dirty], "unused": [54, 0]})
    said = ex.words.fading(waiting)
    assert said.startswith(f"Right after the update 304 pages are dirty, 54 of them with a usage count of zero; after 1 s it is {dirty}, none of them") and ("cleans ahead" in said) == cleans


def test_provisions_for_another_strategy_are_looked_up_in_the_program(chapter, tmp_path):
    found = ex.clock.provisions(chapter)
    assert [*ex.clock.swap_facts(found).values()] == [True, False, False]
    assert found.set_index("way")["found"][ex.clock.FUNCTION] == "StrategyGetBuffer"
    (tmp_path / "postgres").write_bytes(b"\0replace_victim_buffer_hook\0planner_hook\0")  # a program with a hook and no such function
    programs = SimpleNamespace(path=lambda name: tmp_path / name)
    other = ex.clock.provisions(SimpleNamespace(borrowed=False, server=chapter.server, programs=programs))
    with pytest.raises(CannotMeasure, match="by its address"):
        ex.clock.provisions(SimpleNamespace(borrowed=True))
    assert [*ex.clock.swap_facts(other).values()] == [False, True, False]


# ---- plans


def test_the_key_is_visited_alone_only_after_a_vacuum(grouped):
    fetches = ex.grouping.heap_fetches(grouped).set_index("state")
    assert fetches["heap_fetches"].tolist() == [100_000, 0]
    assert fetches.at[ex.grouping.NEW, "pages"] > 10 * fetches.at[ex.grouping.VACUUMED, "pages"]


def test_the_print_s_plans_at_both_ends_of_work_mem(grouped):
    plans = ex.grouping.picks(grouped)
    assert ex.grouping.picked(plans, "unique2", "64kB") == ex.grouping.GROUPED
    assert ex.grouping.picked(plans, "unique2", "300MB") == ex.grouping.BY_HASH
    assert ex.grouping.picked(plans, "unique2", "300MB", ex.grouping.VACUUMED) == ex.grouping.GROUPED
    assert set(plans.loc[plans["attribute"] == "twenty", "plan"]) == {ex.grouping.BY_HASH}
    facts = ex.grouping.unfit_facts(plans)
    assert facts[next(iter(facts))] is True
    with grouped.server.connect() as connection:  # sessions of their own: nothing sticks
        assert connection.execute("SHOW work_mem").fetchone()[0] == "4MB"


def picks(*plans):
    return pd.DataFrame({"attribute": "unique2", "state": ex.grouping.NEW, "work_mem": ex.grouping.WORK_MEM, "plan": plans})


def test_the_picked_plan_is_timed_as_the_forced_one_that_it_is():
    g = ex.grouping
    found = picks(g.GROUPED, g.BY_HASH, "GroupAggregate(Sort(Seq Scan))")
    assert g.ways(found) == {"64kB": g.ORDERED, "4MB": g.HASHED, "30MB": g.PICKED}
    assert g.of_pick(found, "64kB") == g.arm(g.UNIQUE, g.ORDERED, "64kB") and g.of_pick(found, "30MB") == g.arm(g.UNIQUE, g.PICKED, "30MB")
    assert g.of_pick(picks(*[g.GROUPED] * 3), "30MB") == g.arm(g.UNIQUE, g.ORDERED, "4MB")


def test_a_picked_plan_is_regretted_only_if_the_other_is_faster():
    g = ex.grouping
    times = pd.DataFrame({g.arm(*one): [100.0 if one[1] == g.HASHED else 50.0] * 7 for one in g.ARMS})
    chapter = SimpleNamespace(table=lambda *_: times, parameters=SimpleNamespace(seed=1))
    found = g.regrets(chapter, picks(g.GROUPED, g.BY_HASH, g.BY_HASH)).set_index("work_mem")["picked / faster"]
    assert found.tolist() == [1, 2, 2]
    assert [*g.optimal_facts(g.regrets(chapter, picks(g.GROUPED, g.BY_HASH, g.BY_HASH))).values()] == [True, False]


def test_fewer_pools_are_timed_than_counted_and_the_slides_ends_always_are():
    at = lambda number: SimpleNamespace(parameters=SimpleNamespace(timed_pools=number))
    assert ex.pools.timed(at(3)) == [ex.pools.BELOW, ex.pools.EQUAL, ex.pools.printed_pool("mb500")]
    assert ex.pools.counted(at(3)) == [*ex.pools.timed(at(3)), ex.pools.ABOVE]
    assert ex.pools.timed(at(5)) == ex.pools.counted(at(5)) == list(ex.pools.pools())


def test_forced_hashing_spills_below_what_it_needs_and_not_above(grouped):
    spills = ex.grouping.spills(grouped).set_index("work_mem")
    assert spills.at["64kB", "batches"] > 1 and spills.at["64kB", "disk_kb"] > 0
    assert spills.at["30MB", "batches"] == 1 and spills.at["30MB", "disk_kb"] == 0


def costs(*picked):
    settings = ex.joins.GRID[: len(picked)]
    return pd.DataFrame({"small": 100_000, "large": 1_000_000, "attributes": "unique1 = unique1", "multiplier": 1, "work_mem": settings, "picked": picked, HASH: 1.0, MERGE: 2.0})


def test_a_change_of_plan_over_memory_is_found():
    assert ex.joins.flips(costs(*[HASH] * 8)).empty
    [row] = ex.joins.flips(costs(HASH, HASH, MERGE, MERGE, HASH)).itertuples()
    assert row.picked == "Hash Join from 64kB; Merge Join from 1MB; Hash Join from 16MB"
    assert all(ex.joins.ignored_facts(costs(*[HASH] * 8)).values())
    changed = ex.joins.ignored_facts(costs(*[HASH] * 4, *[MERGE] * 4))
    assert [*changed.values()] == [False, False, True]
    assert all(ex.joins.merge_facts(costs(MERGE, *[HASH] * 6, MERGE)).values())


def test_the_clustered_index_is_judged_on_other_sizes_too():
    clustered = lambda picked, small: costs(*picked).assign(attributes="unique2 = unique2", small=small)
    facts = ex.joins.clustered_facts(pd.concat([clustered([MERGE] * 8, 100_000), clustered([MERGE] * 7 + [HASH], 950_000), clustered([MERGE] * 8, 10_000)]))
    assert [*facts.values()] == [True] * 8 + [True, False] and "tup950000 with miltup, with any: Merge Join" in facts


def test_sentences_fit_either_outcome():
    never = ex.words.flipped(costs(*[HASH] * 8))
    assert "Nowhere in the grid" in never
    assert "In 1 of 1 combination" in ex.words.flipped(costs(HASH, MERGE))
    assert "excludes no effect" in ex.words.printed_intervals() and "includes no effect" in ex.words.printed_intervals()
    assert "has no hash_mem_multiplier" in ex.words.multiplied(None)
    by = pd.concat([costs(HASH, MERGE), costs(MERGE, MERGE).assign(multiplier=2)])
    assert "it moves the settings" in ex.words.multiplied(by) and "With 2: Merge Join from 64kB." in ex.words.multiplied(by)
    assert "doesn't change what is picked" in ex.words.multiplied(pd.concat([costs(HASH), costs(HASH).assign(multiplier=8)]))
    assert ex.words.first_reader(None) is ex.words.spilled(None) is ex.words.checkpoint_suspected(None) is None


@pytest.mark.parametrize(("on", "words"), [
    ((8, 4, 1), "With 4MB parallel hash needs fewer batches than one process, with 64kB and 1MB no fewer: it puts the memory of its processes together"),
    ((2, 2, 1), "With 64kB and 1MB and 4MB parallel hash needs fewer batches than one process, wherever one process needs several."),
    ((8, 4, 2), "At none of these settings"), ((8, 2, 2), "no fewer."),
])  # fmt: skip
def test_parallel_hash_s_memory_in_words(on, words):
    rows = [(work_mem, parallel, n) for work_mem, pair in zip(("64kB", "1MB", "4MB"), zip((8, 4, 2), on)) for parallel, n in zip(("off", "on"), pair)]
    assert words in ex.words.shared_memory(pd.DataFrame(rows, columns=["work_mem", "parallel_hash", "batches"]))


def test_the_joins_costs_are_drawn_as_a_ratio_by_multiplier():
    found = pd.concat([costs(HASH, HASH), costs(HASH, MERGE).assign(multiplier=8, **{HASH: [1.0, 4.0]})])
    chart = ex.drawn.multipliers(found)
    assert "hash_mem_multiplier 1: 0.0625 MB 2, 0.25 MB 2." in chart.description
    assert "hash_mem_multiplier 8: 0.0625 MB 2, 0.25 MB 0.5." in chart.description
    assert ex.drawn.multipliers(None) is ex.drawn.costs(None) is ex.drawn.stays(None) is None


def test_every_series_of_the_size_up_has_sizes_enough_for_an_exponent():
    asked = []
    chapter = SimpleNamespace(parameters=SimpleNamespace(largest=1_000_000, per_decade=1), server=MagicMock(), compare=lambda name, arms, *_, **__: asked.extend(arms))
    ex.sizeup.sizeup(chapter)
    times = pd.DataFrame({arm.name: [float(arm.name.split(" ")[-2])] * 7 for arm in asked})
    chapter.table = lambda *_: times
    for what in (ex.sizeup.LOOKUP, ex.sizeup.SCAN, ex.sizeup.SERIAL):
        assert ex.sizeup.exponent(chapter, what).estimate == pytest.approx(1)


def test_the_size_up_spans_a_hundredfold_and_never_less_than_the_slides_joins():
    at = lambda largest, per_decade=1: ex.relations.sizes(SimpleNamespace(parameters=SimpleNamespace(largest=largest, per_decade=per_decade)))
    assert at(1_000_000) == at(1_000_000, 2)[::2] == [10_000, 100_000, 1_000_000]
    assert at(1_000_000, 2)[1::2] == [32_000, 320_000]
    for largest, per_decade in ((30_000_000, 2), (1_234_567, 5), (100_000_000, 3)):
        found = at(largest, per_decade)
        assert found == sorted(set(found)) and len(found) == 2 * per_decade + 1
        assert found[0] * 100 == pytest.approx(largest, rel=0.05) and found[per_decade] * 10 == pytest.approx(largest, rel=0.05)
    assert ex.relations.name(100_000) == "hundredktup" and ex.relations.name(320_000) == "tup320000"
    with pytest.raises(ParameterError, match="largest must be a whole number from 1000000"):
        chapter_parameters("explorations", {"largest": 999_999})


def test_every_plan_of_the_appendix_has_todays_beside_it():
    rows = [("unique2", 100_000, "Index Scan", 0), ("unique2", 2_000_000, "Index Scan", 0), ("unique3", 100_000, "Seq Scan", 0), ("unique3", 2_000_000, "Gather(Parallel Seq Scan)", 2)]
    found = pd.DataFrame(rows, columns=["attribute", "tuples", "plan", "workers"])
    t = ex.sizeup.appendix(SimpleNamespace(parameters=SimpleNamespace(largest=2_000_000)), found)
    assert len(t) + 4 == len(published.table("explorations_plans"))  # four are the groupings'
    assert t["then"].tolist() == ["Index Scan hundredktup using hundredktup_pkey", "Index Scan tenmiltup using tenmiltup_pkey", "Seq Scan hundredktup", "Gather(Parallel Seq Scan tenmiltup)"]
    assert t["workers then"].tolist() == t["workers now"].tolist() == [0, 0, 0, 2] and ex.sizeup.appendix(None, None) is None


# ---- two releases


def test_one_release_alone_is_set_aside(chapter):
    with pytest.raises(CannotMeasure, match="name a folder"):
        ex.releases.other(chapter)
    with pytest.raises(CannotMeasure, match="somebody's"):
        ex.releases.other(SimpleNamespace(borrowed=True))
    assert ex.releases.ratios(chapter) is ex.words.between_releases(chapter) is ex.drawn.releases(chapter) is None


def test_what_pip_installed_stands_beside_the_release_under_test(chapter):
    old = Programs("an old release", bundled().bindir, "11.10", 11)
    parameters = chapter.parameters
    assert ex.releases.other(SimpleNamespace(borrowed=False, programs=old)) == bundled()
    place = ex.releases.Place(SimpleNamespace(parameters=parameters, beside=lambda programs, **settings: (programs, settings)), old)
    assert place.name == "PostgreSQL 11.10" and place.cluster(work_mem="1MB") == (old, {"work_mem": "1MB"}) and place.server == (old, {})
    assert ex.relations.sizes(place)[-1] == ex.relations.LARGE


def test_both_releases_are_timed_in_turns_and_compared_by_statement(chapter):
    old = Programs("an old release", bundled().bindir, "11.10", 11)
    names = [f"PostgreSQL {programs.version}" for programs in (old, bundled())]
    times = pd.DataFrame({f"{words}: {name}": [1.0 + number] * 7 for words in ("scan", "join") for number, name in enumerate(names)})
    ratio = lambda experiment, metric, arm, base: statistics.ratio(times[arm], times[base])
    both = SimpleNamespace(parameters=chapter.parameters, borrowed=False, programs=old, table=lambda *_: times, ratio=ratio)
    found = ex.releases.ratios(both)
    assert [*found] == ["scan", "join"] and found["join"][0].estimate == 0.5 and found["join"][1:] == tuple(names)
    assert "The time of “scan” of PostgreSQL 11.10 is 0.5 times" in ex.words.between_releases(both)
    assert "PostgreSQL 11.10 1" in ex.drawn.releases(both).description
