"""The chapter `hot`: pages, kinds of update, growth and its model, side effects, and sentences."""

import contextlib
from collections.abc import Iterable, Iterator

import pandas as pd
import pytest

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot import charts, evidence, sentences
from pgrerun.chapters.hot.experiments import (
    eligibility,
    growth,
    page,
    side_effects,
    throughput,
    wal_volume,
)
from pgrerun.chapters.hot.variants import (
    BRIN,
    FULL,
    HOT,
    INDEXED,
    NO_HOT,
    REDUCED,
    SCRIPTS,
    UNPRUNED,
    UPDATES,
    load,
    relations,
    run_in_server,
    run_pgbench,
    updates,
    vacuum,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Variant
from pgrerun.lab.instruments.counters import counts
from pgrerun.lab.instruments.pages import longest_chain
from pgrerun.lab.instruments.sessions import snapshot
from pgrerun.lab.instruments.sizes import pages
from pgrerun.lab.relations.pgbench import ACCOUNTS, BRANCHES, TELLERS, Pgbench
from pgrerun.record import claims, printed, statistics, verdicts
from tests.servers import small_chapter

BALANCED = (BRANCHES, TELLERS, ACCOUNTS)
# versions beside each tuple's first, heap-only ones, and chains that leave their page
ON_PAGES = """
SELECT count(*) FILTER (WHERE lp_flags = 1) - %s,
       count(*) FILTER (WHERE t_infomask2 & 32768 <> 0),
       count(*) FILTER (WHERE t_xmax <> '0' AND (t_ctid::text::point)[0] <> block)
FROM generate_series(0, pg_relation_size('accounts') / 8192 - 1) AS block,
     LATERAL heap_page_items(get_raw_page('accounts', block::int))
"""
TINY = {"pairs": 5, "clients": 2, "accounts": 300, "timed_accounts": 50, "rounds": 1}


@pytest.fixture(scope="module")
def chapter(tmp_path_factory) -> Iterator[Chapter]:
    with small_chapter("hot", tmp_path_factory.mktemp("runs"), **TINY) as chapter:
        yield chapter


@pytest.fixture
def other_chapter(tmp_path) -> Iterator[Chapter]:
    """One whose record and parameters a test may change."""
    with small_chapter("hot", tmp_path, **TINY) as chapter:
        yield chapter


@pytest.fixture(scope="module")
def server(chapter):
    return chapter.server


def ours(branches: int, accounts: int) -> Pgbench:
    return Pgbench(branches, accounts, prefix="")


def record(chapter: Chapter, experiment: str, **values: Iterable[float]) -> None:
    """Put throughputs into a chapter's record, a value per block of each variant.

    A value may be a pair, of a throughput and of how many times the pool the data is.
    """
    variants = []
    for name, series in values.items():
        pairs = [one if isinstance(one, tuple) else (one, 9.0) for one in series]
        following = iter(dict(zip(("throughput", throughput.DATA), pair)) for pair in pairs)
        run = lambda block, it=following: next(it)
        variants.append(Variant(name, run))
    units = throughput.UNITS | {throughput.DATA: "times"}
    chapter.compare(experiment, variants, units, pairs=7, warmup=0)


# ---- the page


@pytest.fixture(scope="module")
def states(chapter):
    return page.states(chapter)


def judged(claim: str, found) -> str:
    """The word that the ledger's predicate gives for this evidence."""
    return str(verdicts.judge(claims.ledger()[claim], found).verdict)


def by_pointer(states: pd.DataFrame, step: int) -> dict[int, str]:
    title = states["page"].unique()[step - 1]
    return states[states["page"] == title].set_index("line_pointer")["state"].to_dict()


def chained(*rows: tuple) -> pd.DataFrame:
    """A page from (line pointer, state, to)."""
    frame = pd.DataFrame(rows, columns=["line_pointer", "state", "to"])
    return frame.assign(to=frame["to"].astype("Int64"))


def test_a_page_is_pruned_where_nothing_is_written(states):
    before, after = by_pointer(states, 4), by_pointer(states, 5)
    assert set(before.values()) == {"normal"} and len(before) == 7
    assert after == {
        1: "redirect",
        2: "redirect",
        3: "normal",
        4: "normal",
        5: "unused",
        6: "normal",
        7: "normal",
    }


def test_an_update_of_an_indexed_column_leaves_a_dead_line_pointer_until_vacuum(states):
    assert by_pointer(states, 9)[3] == "dead" and by_pointer(states, 10)[3] == "unused"
    last = states[states["page"] == states["page"].iloc[-1]]
    assert sorted(last.loc[last["state"] == "normal", "tuple"]) == ["A v4", "B v3", "C v2", "D v1"]
    assert int(last["entries"].sum()) == 4


def test_the_index_goes_on_pointing_to_the_root_of_a_chain(states):
    entries = states[states["entries"] > 0].groupby("page", sort=False)["line_pointer"].agg(set)
    assert entries.iloc[0] == entries.iloc[5] == {1, 2, 3, 4}
    assert entries.iloc[6] == {1, 2, 3, 4, 8}


def test_the_summary_counts_what_the_pictures_show(states):
    found = evidence.summary(states).set_index("step")
    assert found["longest_chain"].tolist() == [1, 2, 3, 3, 1, 2, 2, 2, 1, 1]
    assert found[["normal", "redirect", "dead", "unused"]].sum(axis=1).tolist() == [
        4,
        5,
        6,
        7,
        7,
        7,
        8,
        9,
        9,
        9,
    ]


def test_an_update_that_finds_its_page_full_shortens_every_chain(chapter, states):
    full = page.states(chapter, page.UNTIL_FULL)
    assert chains(states, full) == [True, True, True]
    roomy = page.states(chapter, [*page.UNTIL_FULL[:2], *page.UNTIL_FULL[3:]])
    assert chains(states, roomy) == [False, False, True]


def chains(states, full):
    facts = evidence.all_chains_facts(states, full).values()
    return [one.value if isinstance(one, verdicts.Part) else one for one in facts]


def test_a_chain_that_was_not_shortened_is_noticed(chapter, states):
    titles = list(dict.fromkeys(states["page"]))
    untouched = states.copy()
    before = states[states["page"] == titles[3]]
    untouched = pd.concat(
        [untouched[untouched["page"] != titles[4]], before.assign(page=titles[4])]
    )
    untouched["page"] = pd.Categorical(untouched["page"], titles)
    untouched = untouched.sort_values("page", kind="stable").astype({"page": str})
    full = page.states(chapter, page.UNTIL_FULL)
    assert chains(untouched, full) == [True, True, False]


@pytest.mark.parametrize(
    "rows, length",
    [
        ([(1, "normal", None)], 1),
        ([(1, "normal", 2), (2, "normal", 3), (3, "normal", None)], 3),
        ([(1, "redirect", 2), (2, "normal", 3), (3, "normal", None)], 2),
        ([(1, "dead", None), (2, "unused", None)], 0),
        ([(1, "normal", 2), (2, "normal", 1)], 2),  # damaged: it still ends
    ],
)
def test_the_longest_chain(rows, length):
    assert longest_chain(chained(*rows)) == length


def test_updates_prune_when_less_than_a_tenth_of_the_page_is_free(chapter):
    when = page.pruned_when(chapter)
    pruned = when[when["pruned"]]
    assert len(pruned) >= 2
    assert (pruned["free"] < evidence.NEARLY_FULL).all()
    assert (when.loc[~when["pruned"], "free"] >= evidence.NEARLY_FULL).all()
    assert list(evidence.when_facts(when).values()) == [True, False]


def test_a_server_that_waits_until_nothing_fits_would_fulfil_the_claim():
    late = pd.DataFrame(
        {
            "update": [1, 2, 3],
            "free": [900, 200, 100],
            "needed": 124,
            "pruned": [False, False, True],
        }
    )
    assert all(evidence.when_facts(late).values())


def test_a_select_defragments_a_page_alone_and_passes_by_a_pinned_one(chapter):
    found = page.defragmented(chapter)
    assert found.hole > 2 * page.WIDTH and found.hole_left == 0
    assert not found.pinned and not found.waited and found.locks == ("AccessShareLock",)


# ---- kinds of update


@pytest.fixture(scope="module")
def cases(chapter):
    return eligibility.cases(chapter)


def test_every_update_went_somewhere(cases):
    assert (cases[list(charts.PLACES)].sum(axis=1) == eligibility.ROWS).all()
    assert cases["case"].tolist() == [case.name for case in eligibility.CASES]


@pytest.mark.parametrize(
    "case, column",
    [
        (eligibility.PLAIN, "heap_only"),
        (eligibility.BRIN_INDEX, "heap_only"),
        (eligibility.BTREE, "same_page"),
        (eligibility.FULL_PAGE, "other_page"),
        (eligibility.NEW_TOAST, "heap_only"),
        (eligibility.MOVED, "other_partition"),
        (eligibility.LONGER, "heap_only"),
    ],
)
def test_where_new_versions_go(cases, case, column):
    assert cases.set_index("case").at[case, column] == eligibility.ROWS


def test_index_facts_can_fail(cases):
    assert judged("hot-007", evidence.unused_facts(cases)) == "holds"
    assert judged("hot-025", evidence.worst_facts(cases)) == "holds"
    hot = cases.copy()
    hot.loc[hot["case"] == eligibility.BTREE, ["heap_only", "same_page"]] = (eligibility.ROWS, 0)
    assert judged("hot-007", evidence.unused_facts(hot)) == "gone"
    assert judged("hot-025", evidence.worst_facts(hot)) == "gone"


def test_a_fillfactor_decides_for_one_statement_as_arithmetic_says(chapter):
    found = eligibility.fillfactors(chapter).set_index("fillfactor")
    assert found.at[90, "tuples"] == 55 and found.at[90, "room"] == 6
    # the last page isn't full, so it has more room than the arithmetic allows
    assert (found["at_once"] - found["at_once_expected"]).between(0, 0.05).all()
    assert found.at[100, "one_by_one"] > 0.9 and found.at[100, "at_once"] < 0.05
    assert judged("hot-006", evidence.room_facts(found.reset_index())) == "holds"
    without = found.reset_index().assign(room=0, at_once=0.0)
    assert judged("hot-006", evidence.room_facts(without)) == "gone"


def test_counters_agree_with_the_pages(chapter):
    ours, server = Pgbench(1, 300, prefix=""), chapter.server
    server.extension("pageinspect")
    load(ours, server)
    # an old snapshot keeps every version where it is, so that all can be found
    with server.connect() as connection, snapshot(server):
        run_in_server(connection, ours, "update_shuffled", 400, 0, step=7919)
        counted = counts(connection, "accounts")
        on_pages = connection.execute(ON_PAGES, (ours.accounts,)).fetchone()
    kinds = ("updated", "hot_updated", "newpage_updated")
    assert tuple(counted[kind] for kind in kinds) == on_pages and min(on_pages) > 0


def test_changing_widths_cost_few_hot_updates(chapter):
    found = eligibility.widths(chapter, rows=200, rounds=2)
    assert found["new_width"].tolist() == list(eligibility.WIDTHS.values())
    assert found["hot"].iloc[0] == 1 and (found["pages_before"] <= found["pages_after"]).all()
    left = page.Defragmented(hole=100, hole_left=8, locks=(), pinned=False, waited=False)
    facts = evidence.width_facts(found.assign(hot=[1.0, 1.0, 0.9]), left)
    assert judged("hot-008", facts) == "holds"
    none = page.Defragmented(hole=100, hole_left=0, locks=(), pinned=False, waited=False)
    assert judged("hot-008", evidence.width_facts(found, none)) == "gone"


def test_what_is_said_of_the_patch_alone_is_set_aside_with_its_counts_beside(other_chapter):
    chapter = other_chapter
    chapter.judge("hot-008", beside={"in what was released": {"holes stay": False}})
    [judgement] = chapter.evidence.judgements
    assert str(judgement.verdict) == "not testable here"
    assert str(judgement.beside["in what was released"].verdict) == "gone"


# ---- the variants


@pytest.mark.parametrize("variant, share", [(HOT, 1), (BRIN, 1), (NO_HOT, 0), (INDEXED, 0)])
def test_variants_take_hot_away_or_leave_it(server, variant, share):
    few = ours(1, 500)
    with server.connect() as connection:
        load(few, connection, variant)
        before = pages(connection, "accounts")
        run_in_server(connection, few, "update_account", 250, seed=1)
        done = counts(connection, "accounts")
        assert (done["updated"], done["hot_updated"]) == (250, 250 * share)
        assert pages(connection, "accounts") == before  # pruned in any case


@pytest.mark.parametrize("variant, hot", [(NO_HOT, 0), (INDEXED, 0), (BRIN, 40)])
def test_a_variant_without_hot_has_none_in_any_table(server, variant, hot):
    few = ours(2, 100)
    with server.connect() as connection:
        load(few, connection, variant)
        run_in_server(connection, few, SCRIPTS[FULL], 40, seed=1)
        found = {name: counts(connection, name)["hot_updated"] for name in BALANCED}
        assert found == dict.fromkeys(BALANCED, hot)


def test_an_old_snapshot_keeps_versions_and_vacuum_as_before_hot_removes_them(server):
    few = ours(1, 500)
    load(few, server, UNPRUNED)
    dead = "SELECT count(*) FROM heap_page_items(get_raw_page('accounts', 0)) WHERE t_xmax <> '0'"
    server.extension("pageinspect")
    with server.connect() as connection, snapshot(server) as old:
        run_in_server(connection, few, "update_account", 200, seed=1)
        assert connection.execute(dead).fetchone()[0] > 0
        connection.execute("VACUUM accounts")
        assert connection.execute(dead).fetchone()[0] > 0
        vacuum(connection, "accounts", old)
        assert connection.execute(dead).fetchone()[0] == 0
        # the new snapshot keeps what dies from now on
        run_in_server(connection, few, "update_account", 200, seed=2)
        connection.execute("VACUUM accounts")
        assert connection.execute(dead).fetchone()[0] > 0


@pytest.mark.parametrize(
    "script, tables", [(REDUCED, {"accounts"}), (FULL, {"accounts", "tellers", "branches"})]
)
def test_what_runs_inside_the_server_does_what_pgbench_does(server, script, tables):
    few = ours(2, 300)
    for by_pgbench in (True, False):
        load(few, server)
        with server.connect() as connection:
            if by_pgbench:
                run_pgbench(server, few, SCRIPTS[script], 120, seed=1)
            else:
                run_in_server(connection, few, SCRIPTS[script], 120, seed=1)
            assert {name: counts(connection, name)["updated"] for name in BALANCED} == {
                name: 120 * (name in tables) for name in BALANCED
            }
            total = "SELECT sum(delta), count(*), (SELECT sum(abalance) FROM accounts) FROM history"
            deltas, inserted, balance = connection.execute(total).fetchone()
            assert deltas == balance > 120 and inserted == 120


def test_the_printed_updates_per_account():
    assert UPDATES == 0.5
    assert updates(ours(10, 300)) == 1500


# ---- growth and its model


def test_model_and_measurement_agree(chapter):
    measured, computed = growth.steady(chapter), growth.model(chapter)
    assert set(measured["variant"]) == set(growth.STEADY)
    both = measured.merge(computed, on=["variant", "updates"], suffixes=("", "_computed"))
    assert len(both) == len(measured) == len(computed)
    for relation in ("accounts", "accounts_pkey"):
        assert ((both[relation] - both[f"{relation}_computed"]).abs() <= 1).all()
    agreement = evidence.agreement(measured, computed)
    assert agreement.groupby("relation")["variant"].agg(list).tolist() == 2 * [list(growth.STEADY)]
    assert evidence.differences(measured, computed)["predicted"].all()
    assert "predicts the sizes" in charts.steady_state(measured, computed).caption
    doubled = computed["accounts_pkey"].where(
        computed["variant"] != NO_HOT, 0.5 * computed.accounts_pkey
    )
    missed = charts.steady_state(measured, computed.assign(accounts_pkey=doubled)).caption
    assert (
        "does not predict the size of the index of accounts in “no HOT”, which lies 100.0 % off"
        in missed
    )
    assert "leaves out" in missed
    assert f"accounts grows most in “{UNPRUNED}”, to" in missed
    assert "both keep their sizes" in missed and "“HOT”" in missed
    last = measured.groupby("variant")["accounts"].last()
    assert last[HOT] < last[growth.UNPRUNED_VACUUMED] < last[UNPRUNED]
    assert evidence.grown_although_vacuumed(measured) == pytest.approx(1.1, abs=0.1)


def test_sizes_are_seen_at_the_threads_updates_and_vacuums(chapter):
    stops = growth.stops(chapter, growth.UNPRUNED_VACUUMED)
    assert [(stop.until, stop.seen, stop.vacuum) for stop in stops] == [
        (0.2, False, True),
        (0.4, False, True),
        (0.5, True, False),
        (0.6, False, True),
        (0.8, False, True),
        (1.0, True, True),
    ]
    assert not any(stop.vacuum for stop in growth.stops(chapter, HOT))


def test_without_hot_an_index_deletes_entries_until_they_are_scattered(other_chapter):
    # of two branches, as many as fill eight leaves and a bit
    changed = other_chapter.parameters.model_copy(update={"accounts": 1500})
    other_chapter.parameters = changed
    found = growth.scattered(other_chapter)
    assert found["per_leaf"].iloc[0] == 8 and found["per_leaf"].iloc[-1] > 2 * 8
    index = found["accounts_pkey"]
    assert index.iloc[3] == index.iloc[0] < index.iloc[-1]
    assert "keeps its" in sentences.index_without_hot(found.assign(accounts_pkey=5))
    said = sentences.index_without_hot(found.assign(accounts_pkey=[11, 11, 11, 11, 11, 19, 19]))
    assert said.startswith(
        "By 5 updates per account the index has grown, in the end from 11 to 19 pages"
    )
    assert f"and accounts from {found['accounts'].iloc[0]} to" in said


@pytest.fixture(scope="module")
def sizes(chapter):
    return growth.sizes(chapter)


def test_growth_as_in_2007_without_hot_and_pruning(sizes):
    assert evidence.times(sizes, NO_HOT, "accounts") == 1
    assert judged("hot-002", evidence.constant(sizes)) == "holds"
    assert judged("hot-003", evidence.index_facts(sizes)) == "holds"
    assert judged("hot-033", evidence.stock_facts(sizes)) == "holds"
    never = sizes.assign(after=sizes["before"])
    assert judged("hot-002", evidence.constant(never)) == "weaker"
    assert judged("hot-003", evidence.index_facts(never)) == "weaker"
    said = sentences.not_merely_hot(sizes)
    assert f"after {UPDATES:g} updates per account both stay small even if" in said
    all_grown = sizes.assign(after=sizes["before"] * (1 + (sizes["variant"] != HOT)))
    assert "pruning alone doesn't" in sentences.not_merely_hot(all_grown)


def test_growth_stands_beside_that_of_2007(sizes):
    reduced = evidence.then_and_now(sizes, "reduced").set_index("relation")
    assert list(reduced.index) == ["accounts", "accounts_pkey"]
    assert reduced.at["accounts", "2007 without"] == "157,895 + 49,284"
    assert reduced.at["accounts", f"here, {HOT}"] == "11 + 0"
    assert len(evidence.then_and_now(sizes, "full")) == 2


def test_small_tables_between_two_vacuums(chapter):
    assert growth.BETWEEN_VACUUMS == 60 * 976
    found = growth.small_tables(chapter, transactions=3000)
    tables = found[~found["relation"].str.endswith("_pkey")]
    assert (tables["updated"] == 3000).all()
    assert judged("hot-013", evidence.small_growth(found)) == "holds"
    assert judged("hot-014", evidence.small_index_facts(found)) == "holds"
    alike = found.assign(after=found["before"] + 5)
    assert judged("hot-013", evidence.small_growth(alike)) == "gone"
    said = sentences.small_growth(found)
    assert "were deleted again" in said
    swollen = found.assign(after=found["after"].mask(found["relation"] == "branches_pkey", 600))
    assert judged("hot-014", evidence.small_index_facts(swollen)) == "weaker"
    assert "not deleted in time" in sentences.small_growth(swollen)


def test_a_queue_that_is_vacuumed_stops_growing(chapter):
    found = growth.queue(chapter, jobs=200, batches=20).set_index("variant")
    assert list(found.index) == [HOT, NO_HOT, growth.UNPRUNED_VACUUMED, growth.BESIDE_OLD]
    ends = found["table_end"]
    assert ends[growth.BESIDE_OLD] > found.at[growth.BESIDE_OLD, "table_halfway"]
    assert ends[growth.UNPRUNED_VACUUMED] >= ends[HOT] >= found.at[HOT, "table_clustered"]


@pytest.mark.parametrize("end, word", [(20, "weaker"), (40, "weaker")])
def test_queue_facts(end, word):
    sizes = {"table_halfway": 20, "table_end": end, "table_clustered": 15}
    sizes |= {"index_halfway": 5, "index_end": 5, "index_clustered": 5}
    variants = [HOT, NO_HOT, growth.UNPRUNED_VACUUMED, growth.BESIDE_OLD]
    frame = pd.DataFrame([{"variant": variant} | sizes for variant in variants])
    assert judged("hot-032", evidence.queue_facts(frame)) == word
    frame.loc[0, "table_end"], frame.loc[2, "table_end"] = 20, 60
    frame.loc[3, "table_end"] = 60
    assert judged("hot-032", evidence.queue_facts(frame)) == "weaker"  # not beside what is open
    frame.loc[3, "table_end"] = 20
    assert judged("hot-032", evidence.queue_facts(frame)) == "holds"


# ---- WAL and throughput


def test_pruning_at_every_visit_writes_more_wal(chapter):
    assert evidence.eager_over_lazy(wal_volume.when_to_prune(chapter)) > 1.2


@pytest.fixture(scope="module")
def written(chapter):
    return wal_volume.by_part(chapter)


def test_the_wal_of_a_transaction(written):
    later = written[written["phase"] == wal_volume.LATER]
    records = later.pivot(index="variant", columns="part", values="records")
    entries, removed = records[wal_volume.ENTRIES], records[wal_volume.REMOVED]
    assert entries[HOT] == 0
    assert entries[NO_HOT] == pytest.approx(1, abs=0.15)
    assert entries[INDEXED] == pytest.approx(2, abs=0.3)
    assert removed[NO_HOT] > 0 == removed[UNPRUNED]
    assert records.at[UNPRUNED, wal_volume.PRUNED] == 0


@pytest.mark.parametrize(
    "hot, jump, alike",
    [
        ([108, 112, 115, 110, 118, 112, 113], True, False),
        ([100, 101, 99, 100, 101, 99, 100], False, True),
        ([90, 120, 95, 115, 88, 121, 104], None, None),
    ],
)
def test_an_unresolved_ratio_is_no_fact(other_chapter, written, hot, jump, alike):
    names = [throughput.pavans(REDUCED, variant) for variant in (HOT, NO_HOT, UNPRUNED)]
    values = zip(names, (hot, [100] * 7, [100] * 7), strict=True)
    record(other_chapter, "throughput", **dict(values))
    facts = evidence.jump_facts(other_chapter, written)
    assert facts["there is a jump"] is jump
    assert facts["where sizes are stable without HOT, HOT isn't faster"] is alike


@pytest.mark.parametrize("late, faster", [(0, False), (2, False), (3, None), (7, None)])
def test_blocks_with_a_late_vacuum_say_nothing_about_stable_sizes(
    other_chapter, written, late, faster
):
    record(
        other_chapter,
        "throughput",
        **{
            throughput.pavans(REDUCED, HOT): [150] * 7,
            throughput.pavans(REDUCED, NO_HOT): [(80, 12.0)] * late + [(100, 9.2)] * (7 - late),
            throughput.pavans(REDUCED, UNPRUNED): [(70, 13.0)] * 7,
        },
    )
    facts = evidence.jump_facts(other_chapter, written)
    assert facts["where sizes are stable without HOT, HOT isn't faster"] is faster


@pytest.mark.parametrize(
    "waiting, data, word",
    [(0.1, 11, "not testable here"), (0.9, 2, "not testable here"), (0.9, 11, "holds")],
)
def test_throughput_is_judged_where_the_work_waits_for_pages(other_chapter, waiting, data, word):
    def run(tps: float) -> dict[str, float]:
        values = {"throughput": tps, "waiting": waiting, "writing": 0.0, "reads": 2.0}
        return values | {throughput.DATA: data}

    variants = [
        Variant(throughput.pavans(REDUCED, variant), lambda block, tps=tps: run(tps))
        for variant, tps in ((HOT, 200.0), (UNPRUNED, 100.0))
    ]
    units = throughput.UNITS | {throughput.DATA: "times"}
    other_chapter.compare("throughput", variants, units, pairs=7, warmup=0)
    regime = {
        "waiting for pages": evidence.waiting,
        "data larger than the pool": evidence.larger,
    }
    other_chapter.judge("hot-001", evidence.over, *evidence.JUMP, "throughput", regime=regime)
    [judgement] = other_chapter.evidence.judgements
    assert str(judgement.verdict) == word


def test_the_chart_of_throughput_tells_its_result_beside_the_print(other_chapter):
    runs = {HOT: 200.0, throughput.AGAIN: 200.0, NO_HOT: 160.0, UNPRUNED: 100.0}
    values = {"waiting": 0.5, "writing": 0.25, "reads": 2.0, throughput.DATA: 9.0}
    variants = [
        Variant(
            throughput.pavans(REDUCED, variant),
            lambda block, tps=tps: {"throughput": tps} | values,
        )
        for variant, tps in runs.items()
    ]
    units = throughput.UNITS | {throughput.DATA: "times"}
    other_chapter.compare("throughput", variants, units, pairs=7, warmup=0)
    assert charts.throughput(other_chapter).caption.startswith(
        "In this run the throughput of the reduced script with HOT is 2 times that with neither HOT"
        " nor pruning (printed: 1.991) and 1.25 times that with pruning alone."
    )
    assert "wait for pages 75 % of their time" in sentences.noise(other_chapter)


@pytest.mark.parametrize(
    "content, pin, said",
    [
        (
            0.007,
            0.0,
            "In 0.70 % of the samples a backend waits for the page's content lock; in none",
        ),
        (0.0, 0.0, "In none of the samples a backend waits for the page's content lock; in none"),
    ],
)
def test_waits_for_a_page_are_told_by_their_reason(content, pin, said):
    names = [side_effects.WAITS[event] for event in ("LWLock:BufferContent", "BufferPin:BufferPin")]
    shares = {"not waiting": 1 - content - pin} | dict(zip(names, (content, pin)))
    frame = pd.DataFrame({"waiting": list(shares), "share": list(shares.values())})
    assert charts.waiting(frame).caption.startswith(said)


def test_the_full_script_is_left_out_where_its_small_tables_outgrow_the_pool(other_chapter):
    with pytest.raises(CannotMeasure, match="over before autovacuum comes"):
        throughput.full(other_chapter)


def test_each_run_says_how_long_it_waited_and_on_which_disk(other_chapter, monkeypatch):
    monkeypatch.setattr(throughput, "VACUUMED_IN_TIME", 0)
    throughput.full(other_chapter)
    for metric in ("waiting", "writing", throughput.DATA, throughput.FITS):
        found = other_chapter.table("merlin", metric)
        assert len(found.columns) == 2 and (found >= 0).all(axis=None)
    compared = (FULL, HOT), (FULL, NO_HOT), "merlin"
    for judge in (evidence.over, evidence.waiting, evidence.larger, evidence.fits):
        found = judge(other_chapter, *compared)
        assert found.n == other_chapter.parameters.pairs
        assert found.disk == statistics.told_disk(throughput.SLOW.words)


def test_reading_touches_more_pages_where_versions_stay(chapter):
    pages = throughput.reading(chapter)
    assert judged("hot-017", evidence.reading(pages)) == "holds"
    assert judged("hot-017", evidence.reading(pages.assign(lookup=3.0))) == "gone"


def test_volatility():
    assert judged("hot-026", evidence.volatile_in_print()) == "holds"
    assert judged("hot-026", evidence.volatile(1.01)) == "gone"


def test_a_pool_that_holds_most_of_the_data_is_no_small_pool(chapter):
    with pytest.raises(CannotMeasure, match="set accounts higher"):
        throughput.pools(chapter)


@pytest.mark.parametrize("waiting, bound", [(0.4, True), (0.05, False)])
def test_what_makes_a_load_bound_by_the_disk(other_chapter, waiting, bound):
    values = {"throughput": 100.0, "waiting": waiting, "writing": 0.2, "reads": 1.5}
    variants = [Variant(throughput.POOLED, lambda block: values)]
    other_chapter.compare("pools", variants, throughput.UNITS, pairs=5, warmup=0)
    assert evidence.bound_facts(other_chapter)["reading and writing take most of the time"] is bound


# ---- side effects


def test_a_chain_beside_an_old_snapshot_ends_with_its_page(chapter):
    found = side_effects.long_transaction(chapter)
    facts = evidence.chain_facts(found)
    assert judged("hot-010", facts) == "holds"
    assert not facts["the chain goes on where its page is full"].value
    assert judged("hot-010", evidence.chain_facts(found.assign(chain=1))) == "weaker"
    beside = found[found["variant"] == side_effects.OLD_SNAPSHOT]
    assert beside["chain"].is_monotonic_increasing and beside["chain"].max() == 61
    assert "ends at 61 versions" in sentences.snapshot_cost(found)


def test_an_index_over_broken_chains_answers_both(chapter):
    found = side_effects.broken_chains(chapter)
    assert found.marked and found.unmarked_without_snapshot and not found.warnings
    assert not found.old_uses and found.new_uses and found.old_finds and found.new_finds
    assert evidence.index_bug(found) is False
    wrong = side_effects.BrokenChains((), True, True, True, False, True, True)
    assert evidence.index_bug(wrong) is True
    words = ("found a HOT-updated tuple",)
    warned = side_effects.BrokenChains(words, True, False, True, True, True, True)
    assert evidence.index_bug(warned) is True


def test_which_rewrites_an_old_snapshot_survives(chapter):
    found = side_effects.rewrites(chapter).set_index("command")
    assert found["old_sees"].to_dict() == {
        "CLUSTER": 100,
        "VACUUM FULL": 100,
        "ALTER TABLE, another type": 0,
        "TRUNCATE": 0,
    }
    assert found["new_sees"].tolist() == [50, 50, 50, 0] and not found["heap_only"].any()
    assert evidence.loses_rows(found.reset_index()) is False
    assert evidence.loses_rows(found.reset_index(), "TRUNCATE") is True


@pytest.mark.parametrize(
    "pinned, waited, share, word",
    [(False, False, 0.0, "weaker"), (False, False, 0.1, "weaker"), (False, True, 0.1, "holds")],
)
def test_contention_facts(pinned, waited, share, word):
    waiting = side_effects.WAITS["LWLock:BufferContent"]
    frame = pd.DataFrame({"waiting": ["not waiting", waiting], "share": [1 - share, share]})
    beside_pin = page.Defragmented(100, 0, ("AccessShareLock",), pinned, waited)
    assert judged("hot-011", evidence.contention_facts(frame, beside_pin)) == word


def test_which_rewrite_compacts_better(chapter):
    found = side_effects.compaction(chapter)
    assert judged("hot-030", evidence.compaction_facts(found)) == "gone"
    assert judged("hot-031", evidence.second_best(found)) == "gone"
    worse = found.assign(accounts=[50, 60])
    assert judged("hot-030", evidence.compaction_facts(worse)) == "holds"
    assert judged("hot-031", evidence.second_best(worse)) == "holds"


def test_shares_of_a_tiny_tables_samples_add_up(chapter):
    found, transactions = None, 1000
    while found is None:  # it was over before anybody had taken a sample
        transactions *= 2
        with contextlib.suppress(CannotMeasure):
            found = side_effects.tiny_table(chapter, transactions=transactions)
    assert found["share"].sum() == pytest.approx(1) and found["waiting"].is_unique


# ---- other outcomes


def test_print_would_hold_against_its_own_numbers():
    """The judged quantity, computed from the print's own cells, is the printed one."""
    in_print = printed.derived("hot_growth").loc["reduced_accounts"]
    assert judged("hot-015", float(in_print["times_head"])) == "holds"


def test_as_many_branches_as_clients(chapter):
    assert relations(chapter).tuples == {
        "branches": 2,
        "tellers": 20,
        "accounts": 600,
        "history": 0,
    }
