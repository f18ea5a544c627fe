"""The chapter on access paths, on a small cluster: each function with what would break it."""

import math
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from servers import small_chapter, url_of

from pgrerun.chapters.access_paths import accounts, charts, evidence, sentences
from pgrerun.chapters.access_paths.experiments import (
    arrays,
    covering,
    joins,
    lookups,
    plan_cache,
    planner,
    ranges,
    sorting,
    trees,
    visibility,
)
from pgrerun.errors import CannotMeasure, RerunError, ServerError
from pgrerun.lab.instruments import callgrind, plans, sizes
from pgrerun.lab.models import visibility as model
from pgrerun.record import claims, printed, verdicts
from pgrerun.record.printed import access_paths as in_print
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part

ROWS = 20_000


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The chapter with as little of everything as its parameters allow."""
    small = {"accounts": ROWS, "objects": 10_000, "lookups": 500, "clients": 2, "crashes": 1}
    runs = tmp_path_factory.mktemp("runs")
    with small_chapter("access_paths", runs, **small, pairs=5, seed=1) as chapter:
        yield chapter


@pytest.fixture(scope="module")
def server(chapter):
    return chapter.server


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


# ---- the print


def decided(facts):
    """The values of the facts that decide."""
    return [fact for fact in facts.values() if not isinstance(fact, Part)]


def test_the_layout_of_a_page_gives_the_talks_sizes():
    pages, leaves = in_print.tree_pages(in_print.accounts())
    assert (pages, leaves, round(pages * 8192 / 2**20)) == (274_194, 273_225, 2142)
    assert in_print.tree_pages(366) == (2, 1) and in_print.tree_pages(367) == (
        4,
        2,
    )  # a second leaf needs a root
    assert in_print.table_pages(61) == 1 and in_print.table_pages(62) == 2
    assert in_print.map_coverage(1) == 2 * in_print.map_coverage(2) == 65_344 * 8192


def test_print_against_print():
    rows = printed.recomputed("access_paths").set_index("where")
    assert rows.agrees.sum() == 5
    [(where, row)] = rows[~rows.agrees].iterrows()
    assert "entire test case in memory" in where and row.recomputed == "90,600 lookups"
    join = printed.derived("access_paths_join").before_over
    assert (
        join["later_ms"] == 250_000
        and join["first_ms"] == pytest.approx(431.03, abs=0.01)
        and math.isnan(join["rows"])
    )


def test_every_claim_can_be_judged_and_printed_effects_come_from_the_tables():
    own = [c for c in claims.ledger().values() if c.chapter == "access_paths"]
    assert len(own) == 33 and all(c.predicate for c in own)
    assert {c.id: c.printed for c in own if c.printed is not None} == pytest.approx(
        {
            "haas-029": 1,
            "haas-035": 302 / 63,
            "haas-036": 1,
        }
    )


def test_the_ledgers_words_stand_in_the_talk():
    folder = os.environ.get("PGRERUN_DOCUMENTS")
    if not folder:
        pytest.skip("PGRERUN_DOCUMENTS names no folder with the documents' texts")
    text = " ".join(
        printed.sections(
            (Path(folder) / printed.DOCUMENTS["postgres92-2012"][1]).read_text("utf-8")
        ).values()
    ).lower()
    for c in claims.ledger().values():
        if c.chapter == "access_paths":
            for value in filter(None, re.split("; ", c.published_value.lower())):
                assert value in text, (c.id, value)


# ---- accounts


def test_accounts_lie_in_order_or_scattered(server, connection):
    accounts.load(server, ROWS, accounts.COVERED, accounts.SCATTERED)
    correlation = "SELECT correlation FROM pg_stats WHERE tablename = %s AND attname = 'aid'"
    ordered, scattered = (
        connection.execute(correlation, [name]).fetchone()[0]
        for name in (accounts.COVERED, accounts.SCATTERED)
    )
    assert ordered == 1 and abs(scattered) < 0.05
    assert sizes.pages(connection, accounts.COVERED) == in_print.table_pages(ROWS)
    assert sizes.pages(connection, f"{accounts.COVERED}_covering") == in_print.tree_pages(ROWS)[0]


def test_ready_relations_are_left_alone_and_others_made_anew(server, connection):
    relation = "SELECT 'accounts'::regclass::oid"
    accounts.load(server, 100, accounts.KEYED)
    before = connection.execute(relation).fetchone()
    accounts.ready(server, 100, accounts.KEYED)
    assert connection.execute(relation).fetchone() == before
    accounts.ready(server, 200, accounts.KEYED)
    assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (200,)


def test_a_wrong_answer_has_no_time(connection):
    assert accounts.timed(connection, "SELECT 1", 1) > 0
    with pytest.raises(RerunError, match="gave 1 instead of 2"):
        accounts.timed(connection, "SELECT 1", 2)


def test_a_statement_is_planned_anew_after_settings_change(server, connection):
    """Prepared, it would keep its plan: two scans compared would then be one."""
    accounts.ready(server, ROWS, accounts.COVERED)
    scans = (
        "SELECT pg_stat_force_next_flush(),"
        " pg_stat_get_tuples_fetched('covered_covering'::regclass) +"
        " pg_stat_get_tuples_fetched('covered_pkey'::regclass)"
    )
    query = "SELECT count(abalance) FROM covered WHERE aid BETWEEN 1 AND 1000"
    for _ in range(8):
        accounts.allow_only(connection, "indexonlyscan")
        accounts.timed(connection, query, 1000)
    connection.execute(scans)
    before = connection.execute(scans).fetchone()[1]
    accounts.allow_only(connection, "indexscan")
    accounts.timed(connection, query, 1000)
    connection.execute(scans)
    assert connection.execute(scans).fetchone()[1] - before == 1000


@pytest.mark.parametrize(
    "node, scan",
    [
        ("Seq Scan", "seqscan"),
        ("Index Scan", "indexscan"),
        ("Index Only Scan", "indexonlyscan"),
        ("Bitmap Heap Scan", "bitmapscan"),
    ],
)
def test_only_one_way_is_left(server, connection, node, scan):
    accounts.ready(server, ROWS, accounts.COVERED)
    accounts.allow_only(connection, scan)
    assert plans.explain(connection, "SELECT sum(abalance) FROM covered WHERE aid < 500").find(node)


def test_the_pool_is_to_the_table_what_the_laptops_memory_was():
    pool = accounts.pool_pages(1_000_000)
    assert pool / in_print.table_pages(1_000_000) == pytest.approx(4096 / 12807.4, rel=1e-3)
    assert in_print.tree_pages(1_000_000)[0] < pool < in_print.table_pages(1_000_000)
    assert accounts.pool_pages(100) == 64  # less won't start


# ---- the visibility map


def test_bits_follow_the_rule_and_a_broken_rule_would_show(chapter):
    found = visibility.bits(chapter)
    assert decided(evidence.map_bits(found)) == [True] * 3
    found.loc[found["step"] == "one row updated", "all_visible"] += 1
    assert not evidence.map_bits(found)[
        "changing a tuple clears its page's bit, even if it is rolled back"
    ]


def test_the_log_has_every_change_of_the_map(chapter):
    found = visibility.logged(chapter)
    assert found["change"].tolist() == ["set", "cleared"]
    assert (found["records"] == found["bits"]).all() and found["bits"].iloc[1] == 1
    sound = pd.DataFrame([{"wrong_visible": 0, "wrong_frozen": 0, "differing": 0}])
    assert not evidence.unsafe(sound, found)
    assert evidence.unsafe(sound, found.assign(records=[found["records"].iloc[0], 0]))
    assert evidence.unsafe(sound.assign(differing=1), found)


def test_vacuum_skips_a_static_table(chapter):
    assert evidence.skipped(visibility.skipping(chapter)) == in_print.table_pages(ROWS)


def test_vacuum_skips_only_long_runs(chapter):
    found = visibility.skipped(chapter).set_index("every")
    assert (found["scanned"] == found["computed"]).all()
    assert found.at[33, "scanned"] < 0.05 * found.at[32, "scanned"]
    assert model.pages_scanned(100, 50) == 2 + 1
    assert model.pages_scanned(100, 33) == 4
    assert model.pages_scanned(66, 32) == 66


def test_a_wrong_map_would_be_told():
    frame = pd.DataFrame(
        [(1, 5, 9, 0, 0, 0)],
        columns=["crash", "updated", "marked", "wrong_visible", "wrong_frozen", "differing"],
    )
    assert not evidence.wrong_after_crash(frame)
    for column in ("wrong_visible", "wrong_frozen", "differing"):
        assert evidence.wrong_after_crash(frame.assign(**{column: 1}))


def test_a_crash_under_updates_leaves_a_right_map(monkeypatch, chapter):
    monkeypatch.setattr(visibility, "CHURN_SECONDS", 2.0)  # so that a busy machine updates as well
    found = visibility.crashes(chapter)
    assert found.at[0, "updated"] > 0 and not evidence.wrong_after_crash(found)


# ---- covering indexes


def test_padding_makes_two_columns_as_small_as_one(chapter):
    found = covering.sizes(chapter)
    assert evidence.size_ratio(found) == 1 and all(evidence.padding(found).values())
    assert (found["pages"] == found["computed"]).tolist() == [True, True, True, False]


def test_an_index_outgrows_its_table_when_grown_sooner_than_when_built(chapter):
    found = covering.widths(chapter)
    assert all(decided(evidence.widths(found)))
    larger = found[found["index"] > found["table"]].groupby("way")["columns"].min()
    assert larger[covering.GROWN] < larger[covering.BUILT]


def test_an_index_only_scan_touches_the_table_only_without_the_map(chapter):
    found = covering.reads(chapter)
    for facts in (
        evidence.pages_of_table(found),
        evidence.pages_of_index(found),
        evidence.explained(found),
    ):
        assert all(facts.values())
    worse = found.assign(table=[1, *found["table"][1:]])
    assert not evidence.pages_of_table(worse)[
        "on a vacuumed table an index-only scan touches no page of it"
    ]


# ---- gains


def test_instructions_tell_a_vain_look_into_the_map(chapter):
    """Counts: the same again gives the same, and more rows take more."""
    if reason := callgrind.unavailable():
        pytest.skip(reason)
    more = evidence.more_instructions(ranges.instructions(chapter))
    assert 1 < more < 2
    assert evidence.fewer_instructions(sorting.instructions(chapter)) > 1
    searched = trees.instructions(chapter)
    assert set(searched.index) == {trees.SPACE, trees.BTREE} and (searched > 0).all()
    with chapter.server.connect() as connection:  # it was started again
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_bits_are_taken_away_without_changing_the_table(server, connection):
    server.extension("pg_visibility")
    accounts.load(server, ROWS, accounts.COVERED)
    pages, visible = (
        sizes.pages(connection, accounts.COVERED),
        "SELECT all_visible FROM pg_visibility_map_summary('covered')",
    )
    for percent, expected in ((100, pages), (0, 0), (50, pages / 2)):
        connection.execute("VACUUM covered")
        ranges.unmark(connection, accounts.COVERED, percent)
        assert connection.execute(visible).fetchone()[0] == pytest.approx(expected, abs=0.1 * pages)
    assert connection.execute("SELECT count(*) FROM covered").fetchone() == (ROWS,)


@pytest.fixture(scope="module")
def borrowing(chapter, tmp_path_factory):
    """The chapter on somebody's server, in a database of its own and without a superuser."""
    with chapter.server.connect() as connection:
        connection.execute("CREATE ROLE somebody LOGIN")
        connection.execute("CREATE DATABASE theirs OWNER somebody")
    url = url_of(chapter.server, user="somebody", database="theirs")
    small = {"accounts": ROWS, "objects": 10_000, "lookups": 500, "clients": 2, "pairs": 5}
    runs = tmp_path_factory.mktemp("borrowing")
    with small_chapter("access_paths", runs, **small, server=url) as chapter:
        yield chapter


def test_memory_cant_be_made_short_on_somebodys_server(borrowing):
    assert accounts.place(borrowing, accounts.AMPLE) is borrowing.server
    for where in (accounts.DIRECT, accounts.KERNEL):
        with pytest.raises(CannotMeasure):
            accounts.place(borrowing, where)


def test_somebodys_server_is_measured_where_memory_is_ample(borrowing):
    """The variants that need a server of ours are set aside, after the others have run."""
    with pytest.raises(CannotMeasure):
        lookups.lookups(borrowing)
    assert set(borrowing.run.observations("lookups")["variant"]) == {
        lookups.variant(accounts.AMPLE, lookups.KEY),
        lookups.variant(accounts.AMPLE, lookups.COVERING),
        lookups.AGAIN,
    }


def test_what_is_set_aside_stops_nothing(borrowing):
    """Claims are set aside with their reason, and sentences and charts are left out."""
    for measure in (lookups.lookups, ranges.instructions, sorting.instructions, trees.points):
        assert borrowing.attempt(measure) is None
        for claim in measure.declared.claims:
            borrowing.judge(claim, evidence.more_instructions, None)
    assert borrowing.show(sentences.reads_per_lookup, None) is None
    assert borrowing.show(sentences.abbreviation) is None
    assert {j.capability for j in borrowing.evidence.judgements} == {"restart"}


def test_a_server_that_does_not_start_is_told_without_its_log(chapter):
    """The log's lines would publish temporary paths in a verdict."""

    def refuse(**settings):
        raise ServerError("FATAL: in /tmp/somewhere/postgresql.conf")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(CannotMeasure) as caught:
        patch.setattr(chapter, "cluster", refuse)
        accounts.place(chapter, accounts.DIRECT)
    assert "/tmp" not in str(caught.value) and "debug_io_direct" in str(caught.value)


def updates_found(*rows: tuple[float, float]) -> pd.DataFrame:
    """What `ranges.updates` returns, from updates per page and shares fetched."""
    frame = pd.DataFrame(rows, columns=["updates", "fetched"])
    return frame.assign(computed=frame["updates"].map(model.share_unmarked))


def test_updates_are_computed_as_pages_hit():
    assert model.share_unmarked(0) == 0
    assert model.share_unmarked(1) == pytest.approx(1 - 1 / math.e)
    assert decided(evidence.updates(updates_found((0, 0), (3, 0.95)))) == [True]
    assert decided(evidence.updates(updates_found((0, 0.1), (3, 0.5)))) == [False]


@pytest.mark.parametrize(
    "ratios, said",
    [
        ((1.2, 1.15, 1.0, 0.9, 0.8, 0.7), "between 25 and 75 %"),  # at 50 % the interval holds 1
        ((1.0, 1.0, 1.0, 0.9, 0.8, 0.7), "pays from 75 % of all-visible pages on, if not before"),
        ((1.2, 1.2, 1.2, 1.2, 1.2, 1.2), "No share"),
        ((1.2, 0.6, 0.6, 0.6, 1.0, 0.6), "between 0 and 100 %"),  # it must pay from there on
    ],
)
def test_an_index_only_scan_pays_where_intervals_say_so(tmp_path, ratios, said):
    with small_chapter("access_paths", tmp_path, accounts=ROWS) as chapter:
        for percent, ratio in zip(ranges.FRACTIONS, ratios, strict=True):
            for block in range(7):
                for scan, seconds in ((ranges.PLAIN, 1), (ranges.ONLY, ratio + 0.02 * (block - 3))):
                    observe(
                        chapter,
                        f"fractions_{percent}",
                        ranges.marked(percent, scan),
                        block,
                        seconds,
                    )
        found = chapter.show(sentences.visible_enough)
    assert said in found and ("asks the map in vain" in found) == (ratios[0] > 1)


def test_the_chart_of_gains_tells_the_largest_and_the_losses(tmp_path):
    """Lookups gain threefold, ranges nothing, all of a table eightfold or lose a fifth."""
    took = {(100, ranges.ONLY): 1.0, (100, ranges.PLAIN): 8.0}
    took |= {(0, ranges.ONLY): 1.25, (0, ranges.PLAIN): 1.0}
    timed = {
        (f"fractions_{percent}", ranges.marked(percent, scan)): seconds
        for (percent, scan), seconds in took.items()
    }
    for name in ranges.RANGES:
        timed |= {
            (f"ranges {name}", f"{scan}, {name}"): 1.0 for scan in (ranges.PLAIN, ranges.ONLY)
        }
    for place in accounts.PLACES:
        for index, tps in ((lookups.COVERING, 3.0), (lookups.KEY, 1.0)):
            timed["lookups", lookups.variant(place, index)] = tps
    with small_chapter("access_paths", tmp_path, accounts=ROWS) as chapter:
        for (experiment, variant), value in timed.items():
            metric = "throughput" if experiment == "lookups" else "seconds"
            for block in range(7):
                observe(chapter, experiment, variant, block, {metric: value})
        caption = charts.gains(chapter).caption
    assert caption.startswith(
        "In this run an index-only scan gains most, 8 times, in “whole table, 100 % of its pages"
        " all-visible”. It loses in “whole table, 0 % of its pages all-visible” (0.8 times). In"
        f" “lookups, {accounts.DIRECT}” it gains 3 times (printed: 4.794)."
    )


@pytest.mark.parametrize(("again", "within"), [(2.0, True), (1.15, False)])
def test_a_gain_below_the_noise_is_told_as_such(tmp_path, again, within):
    tps = {lookups.AGAIN: again}
    for place in accounts.PLACES:
        tps[lookups.variant(place, lookups.COVERING)] = 1.2
        tps[lookups.variant(place, lookups.KEY)] = 1.0
    with small_chapter("access_paths", tmp_path, accounts=ROWS) as chapter:
        for variant, value in tps.items():
            for block in range(7):
                values = {"throughput": value, "heap_reads": 1.0}
                observe(chapter, "lookups", variant, block, values)
        said = sentences.kernels_cache(chapter, chapter.run.observations("lookups"))
    assert ("within the noise" in said) is within


def observe(chapter, experiment: str, variant: str, block: int, found: float | dict) -> None:
    """Put seconds, or what was measured at once by metric, into the chapter's record."""
    values = found if isinstance(found, dict) else {"seconds": found}
    chapter.run.observe(
        experiment,
        variant,
        block,
        values,
        units=dict.fromkeys(values, "s"),
        seed=1,
        position=0,
        started_at="2026-01-01T00:00:00.000",
        flags={},
    )


def test_between_two_vacuums_the_average_counts(chapter):
    said = sentences.autovacuums_threshold(chapter, updates_found((0, 0), (3, 0.95)))
    until = 0.2 * ROWS / in_print.table_pages(ROWS)
    average = np.mean([model.share_unmarked(updates) for updates in np.linspace(0, until, 1001)])
    assert f"{100 * average:.0f} % of the rows are looked up on average" in said


def test_memory_is_short_only_after_loading(chapter):
    """Loaded past the kernel's cache, accounts would take several times as long."""
    seen, load = [], accounts.load
    settings = "SELECT current_setting('debug_io_direct'), current_setting('shared_buffers')"

    def watched(server, tuples, *names):
        if names:
            with server.connect() as connection:
                seen.append((*connection.execute(settings).fetchone(), names))
        load(server, tuples, *names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "load", watched)
        for _ in range(2):
            short = accounts.filled(chapter, accounts.DIRECT, accounts.KEYED)
    with short.connect() as connection:
        direct, pool = connection.execute(settings).fetchone()
        assert direct == "data" and int(pool.removesuffix("kB")) < accounts.ample_kilobytes(ROWS)
        assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (ROWS,)
    assert seen == [("", f"{accounts.ample_kilobytes(ROWS)}kB", (accounts.KEYED,))]


# ---- the planner


def test_a_false_share_of_visible_pages_changes_cost_and_plan(chapter):
    found = planner.costs(chapter)
    assert all(evidence.costs(found).values())
    assert not any(evidence.refined(found).values())
    bent = found.assign(**{"index-only scan": found["index-only scan"] ** 0.5})
    assert evidence.refined(bent)[
        "the cost is no longer that of a plain index scan minus the all-visible share of its pages"
    ]
    blind = found.assign(chosen="Seq Scan")
    assert not evidence.costs(blind)["a false share changes the plan"]


# ---- joins


def test_a_key_is_handed_through_a_join(chapter):
    forms = joins.forms(chapter).set_index("form")
    assert forms["through"].to_dict() == {
        "left join over an inner join": True,
        "inner joins only": False,
        "left joins in a row": False,
        "NOT EXISTS over an inner join": True,
        "LATERAL over an inner join": True,
    }
    assert (forms["rows_read"] == 20).all()


def test_the_talks_plans_are_made(chapter):
    found = joins.shapes(chapter)
    read = found.set_index("variant")["rows_read"]
    assert (
        read[joins.PARAMETERIZED] == 20
        and read[joins.BEFORE] == 2 * ROWS
        and read[joins.DEFAULT] == 10
    )
    assert read[joins.EARLY] < 100  # the merge join stops
    assert decided(evidence.join_plans(found)) == [True, True]
    swapped = found.assign(rows_read=found["rows_read"].to_numpy()[::-1])
    assert decided(evidence.join_plans(swapped)) == [True, False]


def test_keys_are_spread_over_the_table():
    assert "generate_series(2000, 20000, 2000)" in joins.query_of(joins.BEFORE, "t", ROWS)
    assert "generate_series(1, 10, 1)" in joins.query_of(joins.EARLY, "t", ROWS)


# ---- arrays, indexes, sorting, prepared queries


def test_a_list_is_read_in_order_and_neighbours_in_one_descent(chapter):
    found = arrays.lists(chapter)
    assert all(evidence.lists(found).values())
    plain = found[found["way"] == arrays.PLAIN].set_index(["keys", "asked"])["searches"]
    assert plain["neighbouring keys", arrays.ALL] == 1 < plain["keys far apart", arrays.ALL]


def test_statistics_on_elements_make_estimates_better(chapter):
    found = arrays.selectivity(chapter)
    by = found.groupby(["operator", "statistics"])["q_error"].max()
    assert (by.xs(arrays.WITH, level="statistics") < 3).all() and (
        by.xs(arrays.WITHOUT, level="statistics") > 50
    ).all()
    assert evidence.selectivity_gain(found).low > 1


def test_evidence_is_made_of_what_was_timed(chapter):
    """Whatever the times: the shapes that predicates take, and a share of the time that is one."""
    ranges.ranges(chapter)
    ranges.fractions(chapter)
    joins.short_of_memory(chapter)
    trees.texts(chapter)
    share = chapter.median(*joins.WAITED)
    assert 0 <= share.low <= share.high <= 1
    assert list(evidence.speedups(chapter)) == ["first execution", "later executions"]
    executed = pd.Series({ranges.ONLY: 12, ranges.PLAIN: 10})
    assert next(iter(evidence.spread(chapter, executed).values()))
    assert not next(iter(evidence.spread(chapter, 1 / executed).values()))
    assert "the largest gain is" in evidence.largest_gain(chapter, executed)
    assert len(evidence.order(chapter)) == 1
    spoiled = pd.DataFrame({"updates": [0, 3], "fetched": [0.0, 0.95], "computed": [0.0, 0.95]})
    suited = evidence.suited(chapter, spoiled)
    assert sum(not isinstance(part, Part) for part in suited.values()) == 2


@pytest.mark.parametrize(
    ("waiting", "memory", "word"),
    [((90, 110), (4, 5), "holds"), ((4, 5), (90, 110), "weaker"), ((4, 9), (5, 7), "inconclusive")],
)
def test_a_tool_for_data_beyond_memory_gains_more_there(waiting, memory, word):
    gains = {ranges.FAR: waiting, ranges.ANYWHERE: memory}
    found = {name: Interval(sum(ends) / 2, *ends, n=7) for name, ends in gains.items()}
    given = SimpleNamespace(ratio=lambda name, *_: found.get(name.removeprefix("ranges ")))
    spoiled = pd.DataFrame({"updates": [0, 3], "fetched": [0.0, 0.95], "computed": [0.0, 0.95]})
    facts = evidence.suited(given, spoiled)
    assert verdicts.judge(claims.ledger()["haas-042"], facts).verdict == word


def test_a_copied_operator_class_sorts_alike_without_sort_support(connection):
    sorting.copy_without_sort_support(connection, "btree", "int4_ops", sorting.CLASSES["int4_ops"])
    sorting.copy_without_sort_support(
        connection, "btree", "int4_ops", sorting.CLASSES["int4_ops"]
    )  # once is enough
    functions = (
        "SELECT array_agg(amprocnum ORDER BY 1) FROM pg_amproc JOIN pg_opclass ON opcfamily ="
        " amprocfamily JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'btree' AND opcname = %s"
        " AND amproclefttype = 'int4'::regtype AND amprocrighttype = 'int4'::regtype"
    )
    own, original = (
        connection.execute(functions, [name]).fetchone()[0]
        for name in (sorting.CLASSES["int4_ops"], "int4_ops")
    )
    assert 2 in original and own == [number for number in original if number != 2]
    values = "(VALUES (3), (1), (2)) AS v (i)"
    assert connection.execute(f"SELECT i FROM {values} ORDER BY i USING <#").fetchall() == [
        (1,),
        (2,),
        (3,),
    ]


def test_a_copied_gist_class_finds_the_same_points(connection):
    sorting.copy_without_sort_support(connection, "gist", "point_ops", "points_copy")
    connection.execute(
        "CREATE TABLE spots AS SELECT point(n, n) AS p FROM generate_series(1, 500) AS n"
    )
    connection.execute("CREATE INDEX spots_p ON spots USING gist (p points_copy)")
    accounts.allow_only(connection, "indexonlyscan")
    query = "SELECT count(*) FROM spots WHERE p <@ box(point(100, 100), point(199, 199))"
    assert plans.explain(connection, query).find("Index Only Scan")
    assert connection.execute(query).fetchone() == (100,)
    connection.execute("DROP TABLE spots")


def test_what_abbreviated_keys_add_is_the_gain_that_one_beginning_takes_away(tmp_path):
    with small_chapter("access_paths", tmp_path, accounts=ROWS) as chapter:
        for block in range(7):
            observe(chapter, "sorting", sorting.UNSORTED, block, 1.0)
            for key in sorting.KEYS:
                gain = 3.0 if key == sorting.BYTES else 1.5
                observe(chapter, "sorting", sorting.variant(key, sorting.SUPPORTED), block, 2.0)
                without = sorting.variant(key, sorting.UNSUPPORTED)
                observe(chapter, "sorting", without, block, 1.0 + gain)
        assert chapter.show(evidence.abbreviated).estimate == 2
        assert chapter.show(evidence.sorting_gain).estimate == 1.5


def test_a_random_tree_is_emptier_and_no_deeper(chapter):
    facts = evidence.btrees(trees.btrees(chapter))
    assert decided(facts) == [True]
    assert [fact.value for fact in facts.values() if isinstance(fact, Part)] == [False] * 3


def test_the_plan_cache_chooses_by_what_it_saw_first(chapter):
    found = plan_cache.choices(chapter).set_index("variant")
    executions = plan_cache.BEFORE + plan_cache.CALLS
    assert found["generic"].to_dict() == {
        plan_cache.AUTO: 0,
        plan_cache.CUSTOM: 0,
        plan_cache.GENERIC: executions,
        plan_cache.LURED: executions - 5,
    }
    assert found["node"].str.startswith("Seq Scan").to_dict() == {
        plan_cache.AUTO: False,
        plan_cache.CUSTOM: False,
        plan_cache.GENERIC: True,
        plan_cache.LURED: True,
    }


def test_the_prepared_query_is_asked_for_the_rare_value(connection):
    plan_cache.open_session(connection, ROWS)
    plan_cache.prepare(connection, plan_cache.CUSTOM)
    assert plan_cache.ask(connection, ROWS // plan_cache.ONE_IN)["seconds"] > 0
    with pytest.raises(RerunError):
        plan_cache.ask(connection, ROWS)


def test_scratch_tables_are_gone(chapter, connection):
    """Wide ones would fill a disk."""
    covering.widths(chapter, rows=100)
    arrays.selectivity(chapter)
    left = connection.execute("SELECT to_regclass('wide_keys'), to_regclass('tagged')").fetchone()
    assert left == (None, None)
