"""Chapter `explorations`: what small live servers count, and what is made of outcomes."""

import contextlib
import re

import numpy as np
import pandas as pd
import pytest
from servers import small_chapter

from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations import charts, evidence, relations, sentences
from pgrerun.chapters.explorations.experiments import (
    buffer_pool,
    clock_sweep,
    planner,
    size_up,
    two_releases,
)
from pgrerun.chapters.explorations.experiments.planner import HASH, MERGE
from pgrerun.errors import CannotMeasure, ParameterError
from pgrerun.lab.models.replacement import MAX_USAGE
from pgrerun.lab.server import Programs, bundled
from pgrerun.parameters import chapter_parameters
from pgrerun.record import claims, printed, verdicts
from pgrerun.record.printed import explorations as in_print


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The chapter with relations so small that its own servers start and load in a few seconds."""
    with small_chapter(
        "explorations", tmp_path_factory.mktemp("runs"), tuples=5000, wait=1
    ) as found:
        yield found


@pytest.fixture
def opened(tmp_path):
    """Opens chapters with these parameters, which start a server only if they are asked for one."""
    with contextlib.ExitStack() as stack:

        def one(**values: int) -> Chapter:
            records = tmp_path / str(len(list(tmp_path.iterdir())))
            return stack.enter_context(small_chapter("explorations", records, **values))

        yield one


@pytest.fixture
def borrowed(cluster, tmp_path):
    """The chapter on a server that isn't ours to restart."""
    chapter = Chapter(
        "explorations", chapter_parameters("explorations", {}), guest=cluster, records=tmp_path
    )
    yield chapter
    chapter.run.release()


def observe(chapter: Chapter, experiment: str, times: pd.DataFrame) -> None:
    """Put times (ms; a row per block, a column per variant) into the run record."""
    for block, row in times.iterrows():
        for position, (variant, value) in enumerate(row.items()):
            chapter.run.observe(
                experiment,
                variant,
                block,
                {"time": value},
                units={"time": "ms"},
                seed=1,
                position=position,
                started_at="2020-01-01T00:00:00.000+00:00",
            )


def judged(claim: str, found) -> str:
    """The word that the ledger's predicate gives for this evidence."""
    return str(verdicts.judge(claims.ledger()[claim], found).verdict)


@pytest.fixture(scope="module")
def grouped(chapter):
    """The chapter, whose server holds hundredktup, vacuumed and never vacuumed."""
    with chapter.server.connect() as connection:
        relations.keyed(connection, "hundredktup", relations.SMALL)
        relations.never_vacuumed(connection)
    return chapter


# ---- the print


def test_printed_effects_come_from_the_tables():
    own = [c for c in claims.ledger().values() if c.chapter == "explorations"]
    assert all(c.predicate for c in own)
    assert {c.id: c.printed for c in own if c.printed is not None} == pytest.approx(
        {
            "expl-002": 218.2118 / 210.9082,
            "expl-004": 1,
            "expl-016": 161.940 / 111.732,
            "expl-017": 191.674 / 108.167,
            "expl-020": 100_000,
            "expl-022": 127298.392 / 76.759,
        }
    )
    numerals = re.compile(r"(?<![\w.])\d+(?![\w.])")
    assert {n for c in own for n in numerals.findall(c.expression)} <= {"1"}  # no slow-down


def test_every_printed_average_is_that_of_its_readings():
    for name in ("pool_averages", "grouping_averages", "sizeup_averages"):
        t = printed.derived(f"explorations_{name}")
        for column in printed.table(f"explorations_{name}"):
            assert t[f"recomputed_{column}"].tolist() == pytest.approx(
                t[column].tolist(), abs=0.002
            ), (name, column)


def test_print_against_print():
    rows = printed.recomputed("explorations").set_index("where")
    assert rows.index.is_unique and rows.note.str.len().min() > 10
    contradictions = printed.disagreements("explorations").set_index("where").recomputed
    expected = {
        "small but consistent": "4 and 5 of 5 rounds",
        "suspect": "2 of 5",
        "number of runs": "5 runs",
        "group by twenty": "117.223 ms",
        "indexed point": "1.821 ms",
        "a pool of": "237 MB",
        "size of hundredktup": "23.7 MB",
        "tenmiltup": "18.6 MB/s",
        "20%": "0.02 %",
        "almost double": "1.77",
        "optimal": "191.674 ms",
        "expectations": "close",
    }
    for part, words in expected.items():
        [found] = contradictions[contradictions.index.str.contains(part, regex=False)]
        assert words in found, part
    assert len(contradictions) == len(expected)


def test_the_layout_gives_the_pages_of_a_loaded_relation(cluster):
    with cluster.connect() as connection:
        relations.keyed(connection, "few", 1000)
        assert (
            connection.execute("SELECT pg_relation_size('few') / 8192").fetchone()[0]
            == in_print.heap_pages(1000)
            == 31
        )
        connection.execute("DROP TABLE few")


def test_pools_are_shares_of_the_heap_and_named_as_the_code_names_them():
    pools = buffer_pool.SHARES
    assert list(pools.values()) == sorted(pools.values()) and {
        buffer_pool.BELOW,
        buffer_pool.EQUAL,
        buffer_pool.ABOVE,
    } <= set(pools)
    assert pools[buffer_pool.printed_pool("mb208")] == pytest.approx(208 * 128 / 30304)


# ---- dirty pages


def test_a_ring_bounds_what_its_reader_writes_and_a_reader_without_one_pays_for_every_page(chapter):
    found = buffer_pool.beside_the_ring(chapter).set_index(["reader", "variant"])
    pages = in_print.heap_pages(5000)
    through, without = (found.loc[reader] for reader in (buffer_pool.THROUGH, buffer_pool.WITHOUT))
    assert (
        through.at[buffer_pool.DIRTY, "read"] == pages
        and 0 < through.at[buffer_pool.DIRTY, "written"] <= 33
    )  # 256 kB
    assert without.at[buffer_pool.DIRTY, "read"] == in_print.heap_pages(1000)
    assert without.at[buffer_pool.DIRTY, "written"] >= 0.9 * without.at[buffer_pool.DIRTY, "read"]
    assert not found.drop(buffer_pool.DIRTY, level="variant")["written"].any()


def test_no_other_process_reads_for_the_reader(chapter):
    """Handed to I/O workers, each page of a small ring would wait for another process."""
    server = buffer_pool.cluster(chapter, buffer_pool.EQUAL)
    with server.connect() as connection:
        methods = connection.execute("SELECT setting FROM pg_settings WHERE name = 'io_method'")
        assert [method for (method,) in methods] in ([], ["sync"])  # none before PostgreSQL 18


def test_what_the_reader_writes_is_no_longer_dirty(chapter):
    server = buffer_pool.cluster(chapter, buffer_pool.EQUAL)
    server.extension("pg_buffercache")
    with server.reloaded(**buffer_pool.QUIET), server.connect() as connection:
        buffer_pool.prepare(connection, buffer_pool.DIRTY)
        assert buffer_pool.dirty_pages(connection) > in_print.heap_pages(5000) / 2
        buffer_pool.prepare(connection, buffer_pool.CHECKPOINTED)
        assert buffer_pool.dirty_pages(connection) == 0
    with server.connect() as connection:  # the settings of the block are gone
        assert connection.execute("SHOW bgwriter_lru_maxpages").fetchone()[0] == "100"


def test_the_clock_keeps_what_was_used_and_a_ring_spares_it(chapter):
    found = clock_sweep.survivors(chapter)
    kept, replay = found.pages, clock_sweep.replayed(found)
    assert list(kept) == ["flood", "history", "pages_read", "kept", "usage"]
    last = kept[kept["kept"] == 1].groupby(["flood", "history"])["pages_read"].max()
    assert last[clock_sweep.CROWD, clock_sweep.OFTEN] > last[clock_sweep.CROWD, clock_sweep.ONCE]
    assert (
        last[clock_sweep.RING, clock_sweep.ONCE]
        == kept["pages_read"].max()
        == replay["pages_read"].max()
    )
    start = kept[kept["pages_read"] == 0]
    assert set(start.loc[start["history"] == clock_sweep.OFTEN, "usage"]) == {MAX_USAGE}
    here, clock, recency = evidence.stays(found, replay).set_index("label")[clock_sweep.OFTEN]
    assert abs(here - clock) <= 0.2 and here > 1.5 * recency  # a step of the flood
    assert re.search(
        r"when [12][.\d]* pools .*: it loses [12]\.\d for each pool\. The hand has to go round"
        r" twice",
        sentences.passes_of_the_hand(found),
    )
    assert judged("expl-005", evidence.clock(found, replay)) == "holds"


def test_what_is_never_displaced_stays_for_the_whole_flood():
    rows = [
        (history, read, 1 - read * (history == clock_sweep.ONCE))
        for history in clock_sweep.HISTORIES
        for read in (0, 0.5, 1)
    ]
    kept = pd.DataFrame(rows, columns=["history", "pages_read", "kept"])
    seen = clock_sweep.Survivors(kept.assign(flood=clock_sweep.CROWD), [])
    replayed = pd.concat(kept.assign(strategy=name) for name in clock_sweep.STRATEGIES)
    stays = evidence.stays(seen, replayed)
    assert "stay for 1.0 and 1.0 pools on this server, " in charts.strategies(stays).caption
    left = "none after 1.0 pools of those read once and 100 % after 1.0 pools of those read six"
    usage = clock_sweep.Survivors(seen.pages.assign(usage=1.0), [])
    assert left in charts.usage_counts(usage).caption
    assert (stays[list(clock_sweep.HISTORIES)] == 1).all(axis=None)
    assert stays["kind"].tolist() == ["measured", "simulated", "simulated"]


def test_a_ring_is_all_that_a_scan_leaves_in_the_pool(chapter):
    written = buffer_pool.written(chapter)
    assert list(written) == [
        *("pool", "variant", "read", "hit", "written", "dirty_before", "dirty_after", "left")
    ]
    own = written[
        (written["variant"] != buffer_pool.CLEAN)
        & written["pool"].isin([buffer_pool.BELOW, buffer_pool.EQUAL])
    ].set_index("pool")
    for pool in (buffer_pool.BELOW, buffer_pool.EQUAL):  # an eighth of the pool at the most
        assert set(own.loc[pool, "left"]) == {
            min(buffer_pool.RING_OF_11, buffer_pool.buffers(chapter.parameters.tuples, pool) // 8)
        }
    said = sentences.ring(chapter, written)
    assert (
        "small ring of buffers" in said
        and "of the 30,304 pages of the slides' relation that is 0.1 %" in said
    )
    assert "ring" not in sentences.ring(chapter, written.assign(left=in_print.heap_pages(5000)))
    table = evidence.by_pool(written).set_index("pool / relation")
    assert (
        table.at[buffer_pool.EQUAL, "written after an update"]
        > table.at[buffer_pool.EQUAL, "written after update, checkpoint"]
        == 0
    )
    words = {
        "expl-001": evidence.reader_writes,
        "expl-010": evidence.other_relation,
    }
    found = {claim: judged(claim, facts(written)) for claim, facts in words.items()}
    assert found == dict.fromkeys(words, "holds")
    equal = written["pool"] == buffer_pool.EQUAL
    most = lambda rows: next(iter(evidence.peak(rows).values()))
    assert not most(written.assign(written=32))
    as_said = written.assign(written=written["written"] * equal)
    assert most(as_said) and all(evidence.avoided(as_said).values())


def test_the_suspect_readings_are_judged_by_the_print():
    assert judged("expl-007", evidence.suspect()) == "holds"


def test_how_often_the_hand_goes_round_is_said_of_what_was_seen():
    def crowd(*usage: float) -> clock_sweep.Survivors:
        pages = {"pages_read": [0.0, 1.0, 2.0, 3.0], "usage": usage}
        history = {"flood": clock_sweep.CROWD, "history": clock_sweep.OFTEN}
        return clock_sweep.Survivors(pd.DataFrame(pages | history), [])

    assert sentences.passes_of_the_hand(crowd(5, 4, 3, 2)).endswith(
        "some of it is left at the end."
    )
    assert "it loses 2.5 for each pool" in sentences.passes_of_the_hand(crowd(5, 3, 0, 0))
    slow = sentences.passes_of_the_hand(crowd(3, 2, 1, 0))
    assert slow.endswith("of zero when 3 pools of them have been read.")


def test_only_the_first_reader_of_an_updated_relation_writes(chapter):
    found = buffer_pool.first_reader(chapter)
    assert list(found) == ["read", "pages", "dirtied", "wal_records", "wal_fpi", "wal_bytes"]
    first, second, third = (row for _, row in found.iterrows())
    assert (
        first["dirtied"] >= in_print.heap_pages(5000) and second["dirtied"] == third["dirtied"] == 0
    )
    assert first["wal_fpi"] > 0 and second["wal_bytes"] == 0


def test_an_update_right_after_a_checkpoint_writes_page_images_too(chapter):
    found = buffer_pool.wal_of_an_update(chapter)
    fresh, later = found["bytes per tuple"]
    assert fresh > later > 208  # the bytes of a tuple's attributes


def outcome(dirty, checkpointer, reader, at_once=0):
    return pd.DataFrame(
        {
            "event": [buffer_pool.DIRTY, buffer_pool.WAITED],
            "dirty": [100, dirty],
            "checkpointer": [at_once, checkpointer],
            "background_writer": [0, 0],
            "reader": [32, reader],
        }
    )


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (outcome(100, 0, 32), "gone"),
        (outcome(60, 0, 0), "weaker"),
        (outcome(60, 50, 0, at_once=100), "weaker"),
        (outcome(0, 100, 0), "holds"),
    ],
)
def test_a_delay_is_judged_by_who_wrote(found, word):
    assert judged("expl-008", evidence.delay(found)) == word


def test_a_checkpoint_leaves_nothing_dirty_after_the_update(chapter):
    waiting = buffer_pool.waiting(chapter)
    assert set(waiting) == {
        *("seconds", "event", "dirty", "checkpointer", "background_writer", "reader")
    }
    assert waiting["event"].tolist() == [
        *(buffer_pool.DIRTY, buffer_pool.WAITED, buffer_pool.CHECKPOINTED)
    ]
    assert waiting.set_index("event").at[buffer_pool.CHECKPOINTED, "dirty"] == 0
    assert "dirty pages left" in charts.waiting(waiting).description


def test_provisions_for_another_strategy_are_looked_up_in_the_program(chapter):
    found = clock_sweep.provisions(chapter)
    assert found.set_index("way")["found"][clock_sweep.FUNCTION] == "StrategyGetBuffer"
    hook = found.assign(found=["", "victim_buffer_hook", "", ""])
    for provisions, hooked, word in ((found, False, "holds"), (hook, True, "gone")):
        facts = evidence.swapped_in(provisions)
        assert [*facts.values()][-1].value is hooked
        assert judged("expl-036", facts) == word


def test_the_program_of_a_borrowed_server_is_not_looked_into(borrowed):
    with pytest.raises(CannotMeasure, match="by its address"):
        clock_sweep.provisions(borrowed)


# ---- plans


def test_the_key_is_visited_alone_only_after_a_vacuum(grouped):
    fetches = planner.heap_fetches(grouped).set_index("state")
    assert fetches["heap_fetches"].tolist() == [100_000, 0]
    assert fetches.at[planner.NEW, "pages"] > 10 * fetches.at[planner.VACUUMED, "pages"]


def test_the_print_s_plans_at_both_ends_of_work_mem(grouped):
    plans = planner.picks(grouped)
    assert planner.picked(plans, "64kB") == planner.GROUPED
    assert planner.picked(plans, "300MB") == planner.BY_HASH
    assert planner.picked(plans, "300MB", planner.VACUUMED) == planner.GROUPED
    assert list(plans) == ["state", "work_mem", "plan"]
    spills = pd.DataFrame(
        {"work_mem": planner.WORK_MEM, "batches": [5, 1, 1], "disk_kb": [9, 0, 0]}
    )
    assert judged("expl-011", evidence.unfit(plans, spills)) == "holds"
    hashed = plans.assign(plan=planner.BY_HASH)
    assert judged("expl-011", evidence.unfit(hashed, spills.assign(batches=5))) == "gone"
    names = [planner.forced(planner.HASHED, work_mem).name for work_mem in ("64kB", "30MB")]
    observe(grouped, "grouping", pd.DataFrame({name: [100.0] * 7 for name in names}))
    assert judged("expl-019", evidence.inefficient(grouped, spills)) == "holds"
    assert judged("expl-019", evidence.inefficient(grouped, spills.assign(disk_kb=0))) == "weaker"
    with grouped.server.connect() as connection:  # sessions of their own: nothing sticks
        assert connection.execute("SHOW work_mem").fetchone()[0] == "4MB"


def picks(*plans):
    return pd.DataFrame({"state": planner.NEW, "work_mem": planner.WORK_MEM, "plan": plans})


def test_the_picked_plan_is_timed_as_the_forced_one_that_it_is():
    g = planner
    plans = picks(g.GROUPED, g.BY_HASH, "GroupAggregate(Sort(Seq Scan))")
    assert {work_mem: g.timed_as(plans, work_mem).name for work_mem in g.WORK_MEM} == {
        "64kB": "by unique2, in index order, 64kB",
        "4MB": "by unique2, hashed, 4MB",
        "30MB": "by unique2, picked, 30MB",
    }
    always = picks(g.GROUPED, g.GROUPED, g.GROUPED)
    assert g.timed_as(always, "30MB").name == "by unique2, in index order, 4MB"


def test_a_picked_plan_is_regretted_only_if_the_other_is_faster(opened):
    chapter = opened()
    times = {
        variant.name: [100.0 if variant.plan == planner.HASHED else 50.0] * 7
        for variant in planner.VARIANTS
    }
    observe(chapter, "grouping", pd.DataFrame(times))
    plans = picks(planner.GROUPED, planner.BY_HASH, planner.BY_HASH)
    regrets = evidence.regrets(chapter, plans)
    assert regrets["ratio"].tolist() == [0.5, 2, 2]
    assert [*evidence.optimal(chapter, regrets).values()] == [True, False]


@pytest.mark.parametrize(
    ("unique", "twenty", "word"),
    [
        ((100.0, 50.0), (100.0, 50.0), "holds"),
        ((50.0, 100.0), (100.0, 100.0), "gone"),
        ((50.0, 100.0), (50.0, 100.0), "reversed"),
    ],
)
def test_one_statement_that_is_slower_with_more_memory_reverses_nothing(
    opened, unique, twenty, word
):
    chapter, plans = opened(), picks(planner.GROUPED, planner.BY_HASH, planner.BY_HASH)
    groupings = [planner.timed_as(plans, work_mem) for work_mem in planner.WORK_MEM[:2]]
    groupings += [
        planner.Grouping(planner.TWENTY, planner.PICKED, work_mem)
        for work_mem in planner.WORK_MEM[:2]
    ]
    times = zip(groupings, unique + twenty, strict=True)
    observe(chapter, "grouping", pd.DataFrame({one.name: [time] * 7 for one, time in times}))
    assert judged("expl-015", evidence.both_better(chapter, plans)) == word


def test_settings_that_change_nothing_are_one_variant(opened):
    chapter, plans = opened(), picks(planner.GROUPED, planner.BY_HASH, planner.BY_HASH)
    milliseconds = {(planner.ORDERED, "64kB"): 30.0, (planner.ORDERED, "4MB"): 50.0}
    times = {
        one.name: [milliseconds.get((one.plan, one.work_mem), 20.0)] * 7 for one in planner.VARIANTS
    }
    observe(chapter, "grouping", pd.DataFrame(times))
    assert evidence.unique_over_twenty(chapter, plans).estimate == 2


def test_fewer_pools_are_timed_than_counted_and_the_slides_ends_always_are(opened):
    few, all_five = opened(timed_pools=3), opened(timed_pools=5)
    pools = list(buffer_pool.SHARES)
    largest = buffer_pool.printed_pool("mb500")
    assert buffer_pool.timed(few) == [buffer_pool.BELOW, buffer_pool.EQUAL, largest]
    assert buffer_pool.timed(few, 4) == [*buffer_pool.timed(few), buffer_pool.ABOVE]
    assert buffer_pool.timed(all_five) == buffer_pool.timed(all_five, 4) == pools


def test_forced_hashing_spills_below_what_it_needs_and_not_above(grouped):
    spills = planner.spills(grouped).set_index("work_mem")
    assert spills.at["64kB", "batches"] > 1 and spills.at["64kB", "disk_kb"] > 0
    assert spills.at["30MB", "batches"] == 1 and spills.at["30MB", "disk_kb"] == 0


def costs(*picked):
    settings = planner.JOIN_GRID[: len(picked)]
    return pd.DataFrame(
        {
            "small": 100_000,
            "large": 1_000_000,
            "attributes": "unique1 = unique1",
            "multiplier": 1,
            "work_mem": settings,
            "picked": picked,
            HASH: 1.0,
            MERGE: 2.0,
        }
    )


def test_a_change_of_plan_over_memory_is_found():
    assert planner.plan_changes(costs(*[HASH] * 8)).empty
    [row] = planner.plan_changes(costs(HASH, HASH, MERGE, MERGE, HASH)).itertuples()
    assert row.picked == "Hash Join from 64kB; Merge Join from 1MB; Hash Join from 16MB"
    assert judged("expl-031", evidence.ignored(costs(*[HASH] * 8))) == "holds"
    changed = costs(*[HASH] * 4, *[MERGE] * 4)
    assert judged("expl-031", evidence.ignored(changed)) == "weaker"
    dearer = changed.assign(**{HASH: range(8)})
    assert judged("expl-031", evidence.ignored(dearer)) == "gone"
    assert judged("expl-030", evidence.merge_joins(costs(MERGE, *[HASH] * 6, MERGE))) == "holds"


def test_the_clustered_index_is_judged_on_other_sizes_too():
    def clustered(picked, small):
        return costs(*picked).assign(attributes="unique2 = unique2", small=small)

    own, others = clustered([MERGE] * 8, 100_000), clustered([MERGE] * 7 + [HASH], 950_000)
    facts = evidence.clustered(pd.concat([own, others]))
    assert judged("expl-032", facts) == "holds"
    assert facts["tup950000 with miltup: Merge Join"].value == False  # noqa: E712
    assert judged("expl-032", evidence.clustered(own.assign(picked=HASH))) == "gone"


def test_sentences_fit_either_outcome():
    never = sentences.plan_changes(costs(*[HASH] * 8))
    assert "Nowhere in the grid" in never
    assert "In 1 of 1 combination" in sentences.plan_changes(costs(HASH, MERGE))
    assert (
        "excludes no effect" in sentences.printed_intervals()
        and "includes no effect" in sentences.printed_intervals()
    )


@pytest.mark.parametrize(
    ("on", "words"),
    [
        (
            (8, 4, 1),
            (
                "With 4MB parallel hash needs fewer batches than one process, with 64kB and 1MB no"
                " fewer: it puts the memory of its processes together"
            ),
        ),
        (
            (2, 2, 1),
            (
                "With 64kB and 1MB and 4MB parallel hash needs fewer batches than one process,"
                " wherever one process needs several."
            ),
        ),
        ((8, 4, 2), "At none of these settings"),
        ((8, 2, 2), "no fewer."),
    ],
)
def test_parallel_hash_s_memory_in_words(on, words):
    rows = [
        (work_mem, parallel, n)
        for work_mem, pair in zip(("64kB", "1MB", "4MB"), zip((8, 4, 2), on))
        for parallel, n in zip(("off", "on"), pair)
    ]
    assert words in sentences.shared_memory(
        pd.DataFrame(rows, columns=["work_mem", "parallel_hash", "batches"])
    )


def test_the_joins_costs_are_drawn_as_a_ratio():
    found = costs(HASH, MERGE).assign(**{HASH: [1.0, 4.0]})
    drawn = charts.costs(found)
    assert "0.0625 MB 2, 0.25 MB 0.5." in drawn.description
    assert "the hash join with 64kB and the merge join with 256kB. The planner" in drawn.caption
    dearer = costs(*[HASH] * 8).assign(**{HASH: [1, 1, 3, 3, 1, 1, 1, 1]})
    turns = (
        "the hash join from 64kB to 256kB, the merge join from 1MB to 4MB and the hash join from"
    )
    assert turns in charts.costs(dearer).caption
    assert "at every setting the hash join" in charts.costs(costs(*[HASH] * 8)).caption


def test_twenty_groups_take_the_same_with_any_memory(grouped, opened):
    found = planner.twenty(grouped)
    assert len(found) == 3 and found["plan"].nunique() == 1
    twenty = [planner.Grouping(planner.TWENTY, planner.PICKED, w).name for w in planner.WORK_MEM]
    timed = opened()
    observe(timed, "grouping", pd.DataFrame({name: [100.0] * 7 for name in twenty}))
    assert judged("expl-018", evidence.flat(timed, found)) == "holds"
    more = found.assign(memory_kb=[1, 2, 3], plan=["a", "b", "c"])
    assert judged("expl-018", evidence.flat(timed, more)) == "gone"


@pytest.mark.parametrize(
    ("slower", "many", "word"),
    [(2.0, 4, "holds"), (1.0, 4, "holds"), (2.0, 3, "weaker"), (40.0, 4, "weaker")],
)
def test_a_lookup_has_more_to_do_by_its_pages_and_far_less_so_by_its_time(
    opened, slower, many, word
):
    chapter = opened(largest=1_000_000)
    small, *_, large = relations.sizes(chapter)
    times = {small: [1.0] * 7, large: [slower] * 7}
    named = {size_up.variant(size_up.LOOKUP, size): own for size, own in times.items()}
    observe(chapter, "size-up", pd.DataFrame(named))
    plans = pd.DataFrame({"attribute": "unique2", "tuples": [small, large], "pages": [3, many]})
    assert judged("expl-021", evidence.lookups(chapter, plans)) == word


@pytest.mark.parametrize(
    ("slowdowns", "peak", "none_above"),
    [
        ((1.03, 1.09, 1.0), "holds", "holds"),
        ((1.09, 1.03, 1.0), "weaker", "holds"),
        ((1.0, 1.0, 1.0), "gone", "weaker"),
        ((1.03, 1.09, 1.2), "weaker", "weaker"),
    ],
)
def test_a_peak_and_its_absence_are_judged_by_the_times_in_each_pool(
    opened, slowdowns, peak, none_above
):
    chapter = opened(timed_pools=3)
    times = {}
    for pool, slowdown in zip(buffer_pool.timed(chapter), slowdowns, strict=True):
        times[f"{pool}: {buffer_pool.CLEAN}"] = [100.0] * 7
        times[f"{pool}: {buffer_pool.DIRTY}"] = [100.0 * slowdown] * 7
    observe(chapter, buffer_pool.SWEEP, pd.DataFrame(times))
    assert judged("expl-003", evidence.peaks(chapter)) == peak
    assert judged("expl-009", evidence.spared(chapter)) == none_above


def test_small_relations_set_every_claim_of_the_slow_down_aside(chapter):
    buffer_pool.sweep(chapter)
    reasons = {chapter.reasons[claim].capability for claim in buffer_pool.BY_TIME}
    assert reasons == {"tuples = 1000000"}


def test_every_series_of_the_size_up_has_sizes_enough_for_an_exponent(opened, monkeypatch):
    chapter, variants = opened(largest=1_000_000, per_decade=1), []
    monkeypatch.setattr(
        chapter, "compare", lambda name, given, units, warmup: variants.extend(given)
    )
    size_up.times(chapter)
    times = {
        variant.name: [float(variant.name.split(" ")[-2])] * 7  # as many ms as tuples
        for variant in variants
    }
    observe(chapter, "size-up", pd.DataFrame(times))
    for what in (size_up.LOOKUP, size_up.SCAN, size_up.SERIAL):
        assert evidence.exponent(chapter, what).estimate == pytest.approx(1)


def test_the_size_up_spans_a_hundredfold_and_never_less_than_the_slides_joins(opened):
    def at(largest, per_decade=1):
        return relations.sizes(opened(largest=largest, per_decade=per_decade))

    assert at(1_000_000) == at(1_000_000, 2)[::2] == [10_000, 100_000, 1_000_000]
    assert at(1_000_000, 2)[1::2] == [32_000, 320_000]
    for largest, per_decade in ((30_000_000, 2), (1_234_567, 5), (100_000_000, 3)):
        found = at(largest, per_decade)
        assert found == sorted(set(found)) and len(found) == 2 * per_decade + 1
        assert found[0] * 100 == pytest.approx(largest, rel=0.05) and found[
            per_decade
        ] * 10 == pytest.approx(largest, rel=0.05)
    assert relations.name(100_000) == "hundredktup" and relations.name(320_000) == "tup320000"
    with pytest.raises(ParameterError, match="largest must be a whole number from 1000000"):
        chapter_parameters("explorations", {"largest": 999_999})


# ---- two releases


def test_one_release_alone_is_set_aside(opened, borrowed):
    chapter = opened()
    with pytest.raises(CannotMeasure, match="name a folder"):
        two_releases.both(chapter)
    with pytest.raises(CannotMeasure, match="somebody's"):
        two_releases.both(borrowed)
    assert chapter.show(sentences.between_releases) is chapter.show(charts.two_releases) is None


OLD = Programs("an old release", bundled().bindir, "11.10", 11)


def test_what_pip_installed_stands_beside_the_release_under_test(opened):
    chapter = opened()
    chapter.programs = OLD
    under_test, beside = two_releases.both(chapter)
    assert under_test.name == "PostgreSQL 11.10"
    assert beside.name == f"PostgreSQL {bundled().version}"
    assert beside.cluster(work_mem="1MB") is chapter.beside(bundled(), work_mem="1MB")
    assert relations.sizes(beside)[-1] == relations.LARGE
    for release in (under_test, beside):
        assert buffer_pool.cluster(release, buffer_pool.EQUAL).programs is release.programs


def test_both_releases_are_compared_by_statement(opened):
    chapter = opened()
    chapter.programs = OLD
    times = {}
    for words in ("scan", "join"):
        for number, release in enumerate(two_releases.both(chapter), 1):
            times[f"{words}: {release.name}"] = [float(number)] * 7
    observe(chapter, "releases", pd.DataFrame(times))
    said = sentences.between_releases(chapter)
    assert said.frame.to_numpy().tolist() == [["join", "0.5", 7], ["scan", "0.5", 7]]
    assert said.caption.startswith("Time on PostgreSQL 11.10 over that on PostgreSQL 18")
    drawn = charts.two_releases(chapter)
    assert "PostgreSQL 11.10 1" in drawn.description
    found = "PostgreSQL 18.* takes less time than PostgreSQL 11.10 for none of 2 statements and"
    assert re.match(f"{found} more for 2: from 2.00 times as much", drawn.caption)


@pytest.mark.parametrize(
    ("slowdowns", "words"),
    [
        (
            (0.9, 1, 1),
            r"Whether there is a slow-down can't be told: the intervals reach from 0\.\d+ to 1",
        ),
        (
            (1.5, 1, 1),
            r"the read takes 1.50 .* in a pool of 0.54 \(128 MB\)\. Whether .* in pools of 1.00 .*"
            r" can't be told",
        ),
        ((1.5, 1.5, 0.5), r"(times as long in a pool of .*){3}\. Time to read"),
    ],
)
def test_the_lead_chart_says_whether_there_is_a_slow_down(opened, slowdowns, words):
    chapter, times = opened(), {}
    spread = np.linspace(-0.2, 0.2, 7)
    for pool, slowdown in zip(buffer_pool.timed(chapter), slowdowns, strict=True):
        times[f"{pool}: {buffer_pool.CLEAN}"] = [1.0] * 7
        times[f"{pool}: {buffer_pool.DIRTY}"] = slowdown + spread
    observe(chapter, buffer_pool.SWEEP, pd.DataFrame(times))
    assert re.search(words, charts.slowdowns(chapter).caption)


def test_no_slow_down_is_said_of_pools_whose_interval_ends_below_what_counts(opened):
    chapter, times = opened(), {}
    for pool in buffer_pool.timed(chapter):
        times[f"{pool}: {buffer_pool.CLEAN}"] = [1.0] * 7
        times[f"{pool}: {buffer_pool.DIRTY}"] = 1 + np.linspace(-0.01, 0.01, 7)
    observe(chapter, buffer_pool.SWEEP, pd.DataFrame(times))
    assert charts.slowdowns(chapter).caption.startswith("In any pool no slow-down of 3 % is found.")


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ((26, 32, 0), "for 26 to 32 of its 90 pages, but in a pool of 4.00 for none; after a read"),
        ((32, 32, 32), "for 32 of its 90 pages; after a read"),
        ((0, 0, 0), "for none of its 90 pages, whatever the pool; after a read"),
    ],
)
@pytest.mark.parametrize(("otherwise", "few"), [(0, "for none."), (3, "for 3 at most.")])
def test_the_pages_written_first_are_those_after_an_update(pages, words, otherwise, few):
    rows = [
        (pool, variant, n if variant == buffer_pool.DIRTY else otherwise, 80, 10)
        for pool, n in zip((buffer_pool.BELOW, buffer_pool.EQUAL, buffer_pool.ABOVE), pages)
        for variant in buffer_pool.VARIANTS
    ]
    written = pd.DataFrame(rows, columns=["pool", "variant", "written", "read", "hit"])
    said = charts.reader_writes(written).caption
    assert words in said and few in said


@pytest.mark.parametrize(
    ("at_once", "waited", "words"),
    [
        ((132, 1500, 4316), (0, 5049, 2756), "helps: the reader writes 132 pages at once and no"),
        ((32, 10, 10), (32, 10, 12), "doesn't help: the reader writes 32 pages at once and 32"),
    ],
)
def test_what_waiting_does_is_told_of_all_who_write(at_once, waited, words):
    columns = ["reader", "background_writer", "checkpointer"]
    found = pd.DataFrame([at_once, waited, (0, 0, 99)], columns=columns)
    found["event"] = [buffer_pool.DIRTY, buffer_pool.WAITED, buffer_pool.CHECKPOINTED]
    said = charts.waiting(found.assign(seconds=[0, 5, 0], dirty=1)).caption
    assert words in said
    for column, who in zip(columns[1:], ("background writer", "checkpointer"), strict=True):
        before, after = (dict(zip(columns, one))[column] for one in (at_once, waited))
        many = f"{abs(after - before):,} page" if before != after else "as many"
        assert f"the {who} wrote {many}" in said
