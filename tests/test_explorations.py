"""Chapter `explorations`: what is counted on small live servers, and what its verdicts and sentences make of outcomes."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest
from servers import small_chapter

from pgrerun import claims, published
from pgrerun.chapters import explorations as ex
from pgrerun.chapters.explorations.joins import HASH, MERGE
from pgrerun.errors import CannotMeasure, ParameterError
from pgrerun.parameters import chapter_parameters
from pgrerun.published import explorations as printed


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
    kept = ex.dirt.survivors(chapter)
    last = kept[kept["kept"] == 1].groupby(["flood", "history"])["pages_read"].max()
    assert last[ex.dirt.CROWD, ex.dirt.OFTEN] > last[ex.dirt.CROWD, ex.dirt.ONCE]
    assert last[ex.dirt.RING, ex.dirt.ONCE] == kept["pages_read"].max()
    start = kept[kept["pages_read"] == 0]
    assert set(start.loc[start["history"] == ex.dirt.OFTEN, "usage"]) == {5}  # BM_MAX_USAGE_COUNT


def test_only_the_first_reader_of_an_updated_relation_writes(chapter):
    first, second, third = (row for _, row in ex.dirt.first_reader(chapter).iterrows())
    assert first["dirtied"] >= printed.heap_pages(5000) and second["dirtied"] == third["dirtied"] == 0
    assert first["wal_fpi"] > 0 and second["wal_bytes"] == 0


def outcome(dirty, checkpointer, reader):
    return pd.DataFrame({"event": [ex.pools.DIRTY, ex.pools.WAITED], "dirty": [100, dirty], "checkpointer": [0, checkpointer], "background_writer": [0, 0], "reader": [32, reader]})


@pytest.mark.parametrize(("found", "true"), [(outcome(100, 0, 32), 0), (outcome(60, 0, 0), 2), (outcome(0, 100, 0), 3)])
def test_a_delay_is_judged_by_who_wrote(found, true):
    assert sum(ex.dirt.delay_facts(found).values()) == true


def test_eviction_is_set_aside_with_its_reason(grouped):
    with pytest.raises(CannotMeasure) as caught:
        ex.dirt.lru(grouped)
    assert caught.value.capability == "source code" and "compiled in" in str(caught.value)


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


def test_sentences_fit_either_outcome():
    never = ex.words.flipped(costs(*[HASH] * 8))
    assert "Nowhere in the grid" in never
    assert "In 1 of 1 combination" in ex.words.flipped(costs(HASH, MERGE))
    assert "excludes no effect" in ex.words.printed_intervals() and "includes no effect" in ex.words.printed_intervals()
    assert ex.words.first_reader(None) is ex.words.spilled(None) is ex.words.checkpoint_suspected(None) is None


def test_the_size_up_spans_a_hundredfold_and_never_less_than_the_slides_joins():
    at = lambda largest: ex.relations.sizes(SimpleNamespace(parameters=SimpleNamespace(largest=largest)))
    assert at(1_000_000)[::2] == [10_000, 100_000, 1_000_000] and at(30_000_000)[-1] == 100 * at(30_000_000)[0]
    assert ex.relations.name(100_000) == "hundredktup" and ex.relations.name(333_333) == "tup333333"
    with pytest.raises(ParameterError, match="largest must be a whole number from 1000000"):
        chapter_parameters("explorations", {"largest": 999_999})
