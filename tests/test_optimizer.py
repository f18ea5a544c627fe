"""The optimizer chapter's own verbs: what they say of a server, and what they make of numbers."""

import math

import numpy as np
import pandas as pd
import pytest
from servers import SMALL, small_chapter

from pgrerun import parameters
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer import charts, evidence, queries, sentences, variants
from pgrerun.chapters.optimizer.experiments import (
    diagrams,
    faults,
    joins,
    ranges,
    scans,
    suggestions,
)
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import callgrind, plans
from pgrerun.lab.quel import figures
from pgrerun.lab.relations import Wisconsin, duck
from pgrerun.record import claims, printed, statistics, verdicts
from pgrerun.record.printed.optimizer import interpolated
from pgrerun.record.verdicts import Part, supporting

# ---- the print


@pytest.mark.parametrize(
    ("operator", "constant", "share"),
    [("<", 502, 502 / 9999), (">", 500, 9499 / 9999), ("<", -5, 0), (">", -5, 1), ("<", 20_000, 1)],
)
def test_the_equations_of_figure_3_13(operator, constant, share):
    assert interpolated(operator, constant, 0, 9999) == pytest.approx(share)


def test_figure_3_13_has_two_operators():
    with pytest.raises(ValueError, match="'='"):
        interpolated("=", 1, 0, 2)


def test_what_the_print_implies():
    rows = printed.recomputed("optimizer").set_index("where")
    assert rows.index.is_unique
    assert rows.agrees.sum() == 8 and len(printed.disagreements("optimizer")) == 4
    assert rows.at["3.3.1, the best switch", "recomputed"] == "0.70"
    # The “unreasonably small” cost: the sequential scan's times the constant selectivity, squared.
    assert rows.at["Figure 3.12, the cost of the index scan", "recomputed"] == "9.19e-05"
    assert rows.at["3.3.1, the switch after the correction", "recomputed"] == "0.55"
    assert printed.derived("optimizer_set1")["index_s"].tolist()[:2] == [141, 202]
    assert printed.derived("optimizer_ranges")["product_tuples"].round(2).tolist() == [
        476.95,
        25.11,
        100.99,
        1.02,
    ]


def test_thousands_are_found_with_their_comma():
    from pgrerun.record.printed.text import states

    assert (
        states("unique2 was 10,000, so", 10_000)
        and not states("unique2 was 110,000", 10_000)
        and not states("10,0001", 10_000)
    )


def test_a_number_of_a_figure_at_a_lines_start_is_no_heading():
    from pgrerun.record.printed.text import sections

    assert list(
        sections(" 3.3.2 Results\nshown in Figure\n3.15. The results verify\n 4. Suggestions\n")
    ) == ["", "3.3.2", "4"]


# ---- numbers


def essential(facts):
    """The facts that decide: name to value."""
    return {name: fact for name, fact in facts.items() if not isinstance(fact, Part)}


@pytest.mark.parametrize(
    ("slope", "start", "at"),
    [(2.0, -1.0, 0.5), (2.0, -3.0, 1.0), (1.0, 0.5, 0.0), (-1.0, -1.0, 1.0), (-1.0, 2.0, 0.0)],
)
def test_the_crossing_of_two_scans(slope, start, at):
    steps = np.arange(0.1, 1, 0.1)
    assert evidence.scans.crossing(steps, start + slope * steps) == pytest.approx(at)


def test_one_disturbed_time_does_not_move_the_crossing():
    steps = np.arange(0.1, 1, 0.1)
    difference = 2 * steps - 1
    difference[3] += 40
    assert evidence.scans.crossing(steps, difference) == pytest.approx(0.5, abs=0.05)


def test_the_switch_is_found_to_the_tuple():
    for first in (1, 2, 777, 1000):
        assert scans.switch(first.__le__, 1000) == max(first, 2) / 1000
    assert scans.switch((1001).__le__, 1000) == 1


def test_the_first_set_is_figure_2_4_as_printed():
    for tenths, selectivity in enumerate(queries.steps(), start=1):
        text = figures.queries("2.4", X=tenths)[0].text
        assert queries.scan("tenk1", 10_000, selectivity) == figures.translated(text)[0][1]
    other = queries.scan("scanned", 20_000, 0.1, "unique1")
    assert (
        other
        == "CREATE TABLE temp1 AS SELECT tenk1.* FROM scanned AS tenk1 WHERE tenk1.unique1 < 2002"
        " AND tenk1.unique1 > 1"
    )


@pytest.mark.parametrize("query", figures.queries("2.5"), ids=lambda query: query.label)
def test_the_second_set_is_figure_2_5_with_the_names_of_its_relations(chapter, query):
    number = int(query.label)
    here, printed = (
        queries.join(chapter, number, queries.SMALL),
        figures.translated(query.text)[0][1],
    )
    assert (
        here.partition(" FROM ")[0] == printed.partition(" FROM ")[0]
        and here.partition(" WHERE ")[2] == printed.partition(" WHERE ")[2]
    )
    assert here.count(" AS ") == 1 + 32 + 2 * query.indexed and ("indexed" in here) == query.indexed
    assert ("< 1000" in queries.join(chapter, number, queries.LARGE)) == (number in (3, 4))


def test_the_third_set_is_figure_2_6():
    where = {
        key: f"unique2 < {row.less} AND unique2 {row.operator} {row.bound}"
        for key, row in printed.table("optimizer_ranges").iterrows()
    }
    assert {
        key: queries.qualification(statement) for key, statement in queries.ranges().items()
    } == where


# ---- on a server


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The chapter with a throwaway server and the relations of the first two sets, small."""
    with small_chapter(
        "optimizer", tmp_path_factory.mktemp("runs"), points=5, tuples=10_000, times=10, grid=10
    ) as found:
        found.cluster = lambda **settings: Chapter.cluster(found, **SMALL | settings)
        scans.prepared(found)
        joins.prepared(found)
        yield found


def test_every_method_can_be_forced_and_leaves_no_trace(chapter):
    with variants.session(chapter.server) as connection:
        for method in variants.SCANS:
            statement = queries.scan_of(chapter, variants.REPORT, variants.CLUSTERED, 0.5)
            with variants.forced(connection, method):
                plan = plans.explain(connection, queries.discarded(statement))
            assert variants.method_of(plan) == method
        for method in variants.JOINS:
            with variants.forced(connection, method):
                assert (
                    variants.method_of(
                        plans.explain(
                            connection,
                            queries.selected(queries.join(chapter, 2, queries.SMALL)),
                        )
                    )
                    == method
                )
        changed = connection.execute(
            "SELECT name FROM pg_settings WHERE name LIKE 'enable%' AND setting <> boot_val"
        ).fetchall()
        assert changed == []


def test_stored_results_are_temporary_and_go(chapter):
    with variants.session(chapter.server) as connection:
        queries.store_in_memory(connection)
        connection.execute(queries.scan_of(chapter, variants.REPORT, variants.CLUSTERED, 0.1))
        assert (
            connection.execute(
                "SELECT relpersistence, reltuples FROM pg_class WHERE relname = 'temp1'"
            ).fetchone()[0]
            == "t"
        )
        assert connection.execute("SELECT count(*) FROM temp1").fetchone() == (1000,)
        queries.destroy(connection)
        assert connection.execute("SELECT to_regclass('temp1')").fetchone() == (None,)


def test_scans_are_timed_from_the_reports_first_to_its_last_selectivity(chapter):
    assert scans.timed_at(chapter) == [0.1, 0.3, 0.5, 0.7, 0.9]


def test_forcing_ends_with_an_error(chapter):
    with variants.session(chapter.server) as connection:
        with pytest.raises(ZeroDivisionError), variants.forced(connection, variants.INDEX):
            raise ZeroDivisionError
        assert connection.execute("SHOW enable_seqscan").fetchone()[0] == "on"


def test_the_planned_switch_lies_where_the_costs_cross(chapter):
    found, switches = scans.planned(chapter), scans.switches(chapter)
    chosen = found[found["chosen"]].set_index(["layout", "selectivity"])["method"]
    for layout, switch in switches.items():
        for selectivity in queries.steps():
            assert (chosen[layout, selectivity] == variants.SEQUENTIAL) == (selectivity >= switch)
    assert found.groupby(["layout", "selectivity"])["chosen"].sum().eq(1).all()


def test_dearer_random_pages_move_the_switch_down(chapter):
    with variants.session(chapter.server) as connection:
        at = [
            scans.planned_switch(chapter, connection, variants.SHUFFLED, random_page_cost=cost)
            for cost in (1, 4, 16)
        ]
        assert at[0] > at[1] > at[2]
        assert connection.execute("SHOW random_page_cost").fetchone()[0] == "4"


def test_a_fitting_cost_puts_the_switch_where_it_was_asked_to_be(chapter):
    cost = scans.fitting_cost(chapter, variants.SHUFFLED, 0.3)
    with variants.session(chapter.server) as connection:
        assert scans.planned_switch(
            chapter, connection, variants.SHUFFLED, variants.TIMED, random_page_cost=cost
        ) == pytest.approx(0.3, abs=0.01)
    assert math.isnan(scans.fitting_cost(chapter, variants.CLUSTERED, 0.99))


def test_a_fault_is_there_inside_and_gone_outside(chapter):
    query = f"SELECT * FROM {variants.REPORT} WHERE unique2 > 4999 AND unique2 < 5001"
    with variants.session(chapter.server) as connection:

        def rows() -> float:
            return plans.explain(connection, query).rows_estimated

        assert rows() == 1
        with variants.fault(connection, variants.MULTIPLIED):
            assert rows() == pytest.approx(2500, rel=0.01)
        assert rows() == 1
    assert not evidence.estimates.wrongly_registered(faults.registered(chapter))


def test_a_wrong_registration_is_seen():
    right = pd.DataFrame({"operator": ["<", ">"], "estimator": ["scalarltsel", "scalargtsel"]})
    assert not evidence.estimates.wrongly_registered(right)
    assert evidence.estimates.wrongly_registered(right.assign(estimator="scalarltsel"))


def test_the_constant_selectivity_makes_one_plan_at_one_cost(chapter):
    found = faults.first_set(chapter)
    assert evidence.estimates.always_by_index(
        found, variants.CONSTANT
    ) and not evidence.estimates.always_by_index(found)


def test_the_third_set_with_and_without_its_fault(chapter):
    estimates, multiplied = ranges.estimates(chapter), ranges.multiplied(chapter)
    assert not evidence.estimates.one_row_dearer(
        estimates
    ) and not evidence.estimates.redundant_multiplied(estimates)
    assert all(essential(evidence.estimates.product_facts(estimates, multiplied)).values())
    broken = estimates.assign(
        **{
            "cost here": multiplied["cost with the fault"],
            "rows here": multiplied["rows with the fault"],
        }
    )
    assert (
        evidence.estimates.one_row_dearer(broken)
        and evidence.estimates.redundant_multiplied(broken)
        and evidence.estimates.depends_on_bound(broken, ranges.sweep(chapter))
    )


def test_extended_statistics_are_gone_afterwards(chapter):
    found = ranges.two_attributes(chapter).set_index("condition")
    assert (
        found.at["two = 1 AND four = 3", "dependencies"] == found.at["two = 1 AND four = 3", "rows"]
    )
    with chapter.server.connect() as connection:
        assert connection.execute("SELECT count(*) FROM pg_statistic_ext").fetchone()[0] == 0


def test_a_diagram_has_a_plan_at_every_point(chapter):
    found = diagrams.diagram(chapter)
    assert len(found) == 2 * chapter.parameters.grid**2
    shares = evidence.joins.regions(found).set_index("selectivity")
    assert shares.at[variants.CONSTANT, "plans"] == 1 < shares.at[variants.NONE, "plans"]
    assert shares.drop(columns="plans").sum(axis=1).tolist() == pytest.approx([1, 1])


def test_only_nested_loops_join_by_less_than(chapter):
    found = joins.planned(chapter)
    assert set(found.loc[found["query"].isin((5, 6)) & found["obeyed"], "method"]) == {
        variants.NESTED
    }
    assert evidence.joins.method_facts(scans.planned(chapter), found) == dict.fromkeys(
        evidence.joins.method_facts(scans.planned(chapter), found), True
    )
    pages = joins.non_equal_pages(chapter)
    gain = evidence.joins.pages_gain
    assert gain(pages, joins.ANEW) > gain(pages) > 1
    facts = evidence.joins.only_nested(found, joins.elsewhere(chapter))
    assert essential(facts) == {"PostgreSQL can be forced to nothing but a nested loop": True}
    assert [part.value for part in facts.values() if isinstance(part, Part)] == [False]  # DuckDB


def test_times_of_joins_stand_beside_by_what_was_timed(chapter):
    joins.timed(chapter)
    beside = evidence.joins.times(chapter, 1)
    assert [set(found) for found in beside.values()] == [
        {variants.NESTED, variants.MERGE},
        {variants.MERGE},  # between larger relations the loop takes too long
    ]
    assert set(evidence.joins.stored(chapter, 1)) == {variants.NESTED, variants.MERGE}
    executed = pd.DataFrame({"query": [5, 6], variants.NESTED: [30.0, 10.0]})
    gains = evidence.joins.other_gains(chapter, joins.non_equal_pages(chapter), executed)
    assert len(gains) == 5 and gains["in instructions, nothing stored"] == 3
    assert evidence.joins.index_gain(chapter).n == 7


def test_instructions_of_joins_are_counted_but_for_loops_without_index(chapter):
    if reason := callgrind.unavailable():
        pytest.skip(reason)
    found = joins.instructions(chapter)
    assert found[variants.NESTED].isna().tolist() == [True, False, True, False, False, False]
    assert found["query"].tolist() == list(range(1, 7))
    assert found[variants.NESTED].iloc[4] > found[variants.NESTED].iloc[5]
    ratios = evidence.joins.instructions
    assert set(ratios(found, 1)) == {variants.MERGE}
    assert set(ratios(found, 4)) == {variants.HASH, variants.MERGE}
    assert ratios(found, 2)[variants.NESTED] > 1


def test_indices_bring_no_statistics(chapter):
    facts = evidence.suggestions.creation_facts(suggestions.index_creation(chapter))
    assert essential(facts) == {"CREATE INDEX gathers statistics": False}


def test_the_extremes_by_hand_make_the_estimates_of_figure_3_13(chapter):
    found = ranges.interpolation(chapter)
    facts = evidence.estimates.interpolation_facts(found)
    assert all(fact.value if isinstance(fact, Part) else fact for fact in facts.values())
    assert all(essential(evidence.estimates.evenness_facts(found)).values())
    mistaken = found.assign(estimated=2 * found["estimated"])
    assert not any(essential(evidence.estimates.interpolation_facts(mistaken)).values())


def test_clustering_is_seen_once_analyzed_and_believed_if_declared(chapter):
    found = suggestions.clustering(chapter)
    facts = evidence.suggestions.clustering_facts(found)
    assert list(essential(facts).values()) == [False]
    assert all(essential(evidence.suggestions.declared_facts(found)).values())
    unheard = found[found["relation"] != suggestions.DECLARED]
    assert not any(essential(evidence.suggestions.declared_facts(unheard)).values())


def test_any_attribute_can_be_clustered_on(chapter):
    found = suggestions.clusterable(chapter)
    assert len(found) == 16 and all(evidence.suggestions.cluster_facts(found).values())


def test_a_false_order_is_believed_and_taken_back(chapter):
    found = suggestions.assumed(chapter)
    assert (found["right"] != found["wrong"]).any()
    assert suggestions.assumed(chapter).equals(found)


def test_relations_of_somebody_else_are_left_alone(chapter):
    with chapter.server.connect() as connection:
        connection.execute("ALTER TABLE fresh RENAME TO ours")
        connection.execute("CREATE TABLE fresh (theirs int)")
        with pytest.raises(ServerError, match="not made by this package"):
            suggestions.index_creation(chapter)
        connection.execute("DROP TABLE fresh")


def test_on_a_borrowed_server_faults_are_set_aside(borrowed_url, tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    chapter = Chapter(
        "optimizer", parameters.chapter_parameters("optimizer", {"server": borrowed_url})
    )
    try:
        for verb in (
            faults.first_set,
            faults.greater_than,
            ranges.multiplied,
            scans.timed_cold,
            suggestions.daemon,
        ):
            with pytest.raises(CannotMeasure):
                verb(chapter)
    finally:
        chapter.server.close()


def _moved(clustered: float, scattered: float) -> pd.DataFrame:
    """What `scans.tuned` returns, if all CPU costs move the switch-over so far in each relation."""
    ends = {
        (variants.CLUSTERED, scans.RANDOM_PAGE): (0.9, 0.3),
        (variants.CLUSTERED, scans.CPU): (0.7, 0.7 + clustered),
        (variants.SHUFFLED, scans.RANDOM_PAGE): (1, 0.1),
        (variants.SHUFFLED, scans.CPU): (0.1, 0.1 + scattered),
    }
    rows = [(*key, factor, at) for key, both in ends.items() for factor, at in zip((0.1, 8), both)]
    return pd.DataFrame(rows, columns=["layout", "knob", "factor", "switch"])


def test_cpu_costs_are_judged_in_the_clustered_relation_alone():
    for clustered in (0.01, 0.2):
        facts = evidence.scans.tuning_facts(_moved(clustered, scattered=0.5))
        (words, found), *beside = facts.items()
        assert found == (clustered == 0.2)
        assert f"of the clustered relation, from 0.70 to {0.7 + clustered:.2f}," in words
        assert [part.value for _, part in beside] == [True, True, True]
        assert not any(part.essential for _, part in beside)


def test_the_chart_of_costs_tells_of_both_relations_how_far_each_cost_goes():
    best = pd.DataFrame(
        [
            (layout, variants.WARM, at, statistics.Interval(at, at - 0.01, at + 0.01, n=9))
            for layout, at in ((variants.CLUSTERED, 0.8), (variants.SHUFFLED, 0.05))
        ],
        columns=["layout", "cache", "estimate", "interval"],
    )
    drawn = charts.tuned(_moved(0.01, 0.5), best)
    clustered, scattered = drawn.caption.split("Where the relation is ")[1:]
    assert clustered.startswith(
        "clustered, the planned switch-over goes with random_page_cost from"
    )
    assert "with all CPU costs from 0.70 to 0.71" in clustered
    assert "within reach of random_page_cost (warm)." in clustered
    assert "with all CPU costs from 0.10 to 0.60" in scattered
    assert "within reach of neither (warm)." in scattered
    switches = {variants.CLUSTERED: 0.7, variants.SHUFFLED: 0.4}
    assert charts.switch_overs(switches, best).caption.startswith(
        "Where the relation is clustered, the sequential scan is planned from a selectivity of 0.70"
        " on, and is the faster one from 0.800 [0.790, 0.810] (warm) on. Where the relation is not"
    )


def test_the_legend_of_plans_tells_apart_what_only_the_scans_differ_in():
    join = "Hash Join\n· {} {}\n· Hash\n· · Bitmap Heap Scan tenk2\n· · · Bitmap Index Scan using i"
    grid = pd.DataFrame(
        [
            (x, y, join.format(scan, "tenk1"), "hash join", 1.0, variants.NONE)
            for x, scan in ((0.1, "Seq Scan"), (0.2, "Index Scan"))
            for y in (0.1, 0.2)
        ],
        columns=["x", "y", "plan", "title", "cost", "panel"],
    )
    (rows,) = charts.plan_diagram(grid).spec()["datasets"].values()
    assert {row["legend"] for row in rows} == {
        "A: hash join, tenk1 full, tenk2 bitmap",
        "B: hash join, tenk1 index, tenk2 bitmap",
    }


def test_duckdb_names_its_joins():
    with duck.in_memory() as connection:
        for name in ("one", "two"):
            Wisconsin(name, 1000, attributes="1990").load_duckdb(connection)
        join = "SELECT count(*) FROM one a, two b WHERE a.unique2 {} b.unique2"
        assert duck.joins_of(connection, join.format("=")) == ["HASH_JOIN"]
        assert duck.joins_of(connection, join.format("<")) == ["PIECEWISE_MERGE_JOIN"]
        assert duck.joins_of(connection, "SELECT 1") == []


def test_what_was_never_timed_is_not_drawn(chapter):
    planned = scans.switches(chapter)
    best = chapter.show(evidence.scans.best_switches)
    assert best is None
    assert chapter.show(charts.switch_overs, planned, best) is None
    assert chapter.show(evidence.suggestions.prices, suggestions.assumed(chapter)) is None


def test_charts_of_plans_say_what_the_frames_hold(chapter):
    planned = scans.planned(chapter)
    costs = charts.costs(planned).description
    chosen = evidence.scans.choices(planned).set_index(["layout", "selectivity"])
    row = chosen.loc[(variants.CLUSTERED, 0.5)]
    ratio = row[variants.INDEX] / row[variants.SEQUENTIAL]
    assert f"{variants.INDEX} at 0.5 {ratio:.4g}" in costs
    moved = charts.moved_range(ranges.sweep(chapter)).description
    assert f"{variants.NONE} at 100 1" in moved
    assert f"Printed: {variants.MULTIPLIED} at 500 476.9" in moved


def test_what_was_timed_in_memory_alone_is_drawn_and_told(tmp_path):
    with small_chapter("optimizer", tmp_path, points=5, tuples=10_000, pairs=5) as small:
        scans.prepared(small)
        small.attempt(scans.timed)
        small.attempt(scans.timed_stored)
        planned = small.attempt(scans.planned, variants.TIMED)
        switches = small.attempt(scans.switches, variants.TIMED)
        best = small.show(evidence.scans.best_switches)
        assert best["layout"].tolist() == list(variants.ATTRIBUTES)
        assert set(best["cache"]) == {variants.WARM}
        regret = small.show(evidence.scans.regret, planned)
        assert len(regret) == 2 * len(scans.timed_at(small))
        tuned = small.attempt(scans.tuned)
        fitted = small.attempt(scans.fitting, best)
        assert fitted["planned"].tolist() == list(switches.values())
        for chart, given in {
            charts.scan_times: (variants.WARM,),
            charts.stored: (),
            charts.switch_overs: (switches, best),
            charts.regret: (regret,),
            charts.tuned: (tuned, best),
            charts.prices: (suggestions.assumed(small),),
        }.items():
            assert "This run" in small.show(chart, *given).description
        cold = small.show(charts.scan_times, variants.COLD).description
        assert "Printed" in cold and "This run" not in cold
        for told, given in {
            sentences.noise: (),
            sentences.best_switch: (best,),
            sentences.planned_and_best: (switches, best),
            sentences.fitting: (fitted,),
            sentences.fitting_means: (fitted,),
        }.items():
            assert "nan" not in small.show(told, *given)
        facts = small.show(evidence.scans.once_facts, planned, scans.scanned_pages(small))
        assert all(essential(facts).values())
        assert len(small.show(evidence.suggestions.harm, suggestions.assumed(small))) == 2


def test_the_printed_best_switch_over_stands_beside_both_measured_ones():
    best = pd.DataFrame(
        [
            (variants.CLUSTERED, state, statistics.Interval(0.5, 0.4, 0.6, n=9))
            for state in ("warm", "cold")
        ],
        columns=["layout", "cache", "interval"],
    )
    said = charts.switch_overs({variants.CLUSTERED: 0.7}, best).description
    assert "Printed, clustered: planned 0.6, best, warm 0.7, best, cold 0.7." in said


def test_of_the_claim_that_a_nested_loop_is_best_the_fastest_other_method_decides():
    rows = {"query": [1, 4], "nested loop": [9.0, 1.0], "hash join": [1.0, 1.2]}
    counted = pd.DataFrame(rows | {"merge join": [2.0, 0.4]})
    found = evidence.joins.instructions(counted, 4)
    assert found["merge join"] == 0.4 and found["hash join"] == supporting(1.2)
    judged = verdicts.judge(claims.ledger()["lai-075"], found)
    assert judged.verdict is verdicts.Verdict.REVERSED
    assert evidence.joins.instructions(counted, 1) == {"nested loop": 9, "merge join": 2}
