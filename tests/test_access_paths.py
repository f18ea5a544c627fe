"""The verbs of the chapter on access paths: on a small cluster, each with something that would break them."""

import math
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psycopg
import pytest
from servers import SMALL

from pgrerun import claims, published, statistics
from pgrerun.chapters.access_paths import accounts, arrays, covering, joins, lookups, opclass, plan_cache, planner, sorting, trees, visibility, words
from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.instruments import plans
from pgrerun.published import access_paths as printed
from pgrerun.server import Cluster

ROWS = 20_000


@pytest.fixture(scope="module")
def server():
    with Cluster(settings=SMALL) as server:
        yield server


@pytest.fixture(scope="module")
def chapter(server):
    """As much of a chapter as a verb that only counts needs."""
    parameters = SimpleNamespace(accounts=ROWS, objects=10_000, lookups=500, clients=2, pairs=5, seed=1, crashes=1)
    return SimpleNamespace(server=server, parameters=parameters, borrowed=False, cluster=lambda **settings: server)


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


# ---- the print


def test_the_layout_of_a_page_gives_the_talks_sizes():
    pages, leaves = printed.tree_pages(printed.accounts())
    assert (pages, leaves, round(pages * 8192 / 2**20)) == (274_194, 273_225, 2142)
    assert printed.tree_pages(366) == (2, 1) and printed.tree_pages(367) == (4, 2)  # a second leaf needs a root
    assert printed.table_pages(61) == 1 and printed.table_pages(62) == 2
    assert printed.map_coverage(1) == 2 * printed.map_coverage(2) == 65_344 * 8192


def test_print_against_print():
    rows = published.recomputed("access_paths").set_index("where")
    assert rows.agrees.sum() == 5
    [(where, row)] = rows[~rows.agrees].iterrows()
    assert "entire test case in memory" in where and row.recomputed == "90,600 lookups"
    join = published.derived("access_paths_join").before_over
    assert join["later_ms"] == 250_000 and join["first_ms"] == pytest.approx(431.03, abs=0.01) and math.isnan(join["rows"])


def test_every_claim_can_be_judged_and_printed_effects_come_from_the_tables():
    own = [c for c in claims.ledger().values() if c.chapter == "access_paths"]
    assert len(own) == 33 and all(c.predicate for c in own)
    assert {c.id: c.printed for c in own if c.printed is not None} == pytest.approx(
        {"haas-029": 1, "haas-035": 302 / 63, "haas-036": 1, "haas-038": 700, "haas-046": 1, "haas-049": 2500, "haas-055": 1, "haas-057": 1.1}
    )


def test_the_ledgers_words_stand_in_the_talk():
    folder = os.environ.get("PGRERUN_DOCUMENTS")
    if not folder:
        pytest.skip("PGRERUN_DOCUMENTS names no folder with the documents' texts")
    text = " ".join(published.sections((Path(folder) / published.DOCUMENTS["postgres92-2012"][1]).read_text("utf-8")).values()).lower()
    for c in claims.ledger().values():
        if c.chapter == "access_paths":
            for value in filter(None, re.split("; ", c.published_value.lower())):
                assert value in text, (c.id, value)


# ---- accounts


def test_accounts_lie_in_order_or_scattered(server, connection):
    accounts.Accounts(ROWS).load(server, accounts.COVERED, accounts.SCATTERED)
    correlation = "SELECT correlation FROM pg_stats WHERE tablename = %s AND attname = 'aid'"
    ordered, scattered = (connection.execute(correlation, [name]).fetchone()[0] for name in (accounts.COVERED, accounts.SCATTERED))
    assert ordered == 1 and abs(scattered) < 0.05
    assert accounts.blocks(connection, accounts.COVERED) == printed.table_pages(ROWS)
    assert accounts.blocks(connection, f"{accounts.COVERED}_covering") == printed.tree_pages(ROWS)[0]


def test_ready_relations_are_left_alone_and_others_made_anew(server, connection):
    relation = "SELECT 'accounts'::regclass::oid"
    accounts.Accounts(100).load(server, accounts.KEYED)
    before = connection.execute(relation).fetchone()
    accounts.Accounts(100).ready(server, accounts.KEYED)
    assert connection.execute(relation).fetchone() == before
    accounts.Accounts(200).ready(server, accounts.KEYED)
    assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (200,)


def test_a_wrong_answer_has_no_time(connection):
    assert accounts.timed(connection, "SELECT 1", 1) > 0
    with pytest.raises(RerunError, match="gave 1 instead of 2"):
        accounts.timed(connection, "SELECT 1", 2)


def test_a_statement_is_planned_anew_after_settings_change(server, connection):
    """A prepared statement would keep the plan that it had: every comparison of two scans would then compare one with itself."""
    accounts.Accounts(ROWS).ready(server, accounts.COVERED)
    scans = "SELECT pg_stat_force_next_flush(), pg_stat_get_tuples_fetched('covered_covering'::regclass) + pg_stat_get_tuples_fetched('covered_pkey'::regclass)"
    query = "SELECT count(abalance) FROM covered WHERE aid BETWEEN 1 AND 1000"
    for _ in range(8):
        accounts.only(connection, "indexonlyscan")
        accounts.timed(connection, query, 1000)
    connection.execute(scans)
    before = connection.execute(scans).fetchone()[1]
    accounts.only(connection, "indexscan")
    accounts.timed(connection, query, 1000)
    connection.execute(scans)
    assert connection.execute(scans).fetchone()[1] - before == 1000


@pytest.mark.parametrize("node, scan", [("Seq Scan", "seqscan"), ("Index Scan", "indexscan"), ("Index Only Scan", "indexonlyscan"), ("Bitmap Heap Scan", "bitmapscan")])
def test_only_one_way_is_left(server, connection, node, scan):
    accounts.Accounts(ROWS).ready(server, accounts.COVERED)
    accounts.only(connection, scan)
    assert plans.explain(connection, "SELECT sum(abalance) FROM covered WHERE aid < 500").find(node)


def test_the_pool_is_to_the_table_what_the_laptops_memory_was():
    pool = accounts.pool_of_print(1_000_000)
    assert pool / printed.table_pages(1_000_000) == pytest.approx(4096 / 12807.4, rel=1e-3)
    assert printed.tree_pages(1_000_000)[0] < pool < printed.table_pages(1_000_000)
    assert accounts.pool_of_print(100) == 64  # less won't start


# ---- the visibility map


def test_bits_follow_the_rule_and_a_broken_rule_would_show(chapter):
    found = visibility.bits(chapter)
    assert all(visibility.bit_facts(found).values())
    found.loc[found["step"] == "one row updated", "all_visible"] += 1
    assert not visibility.bit_facts(found)["changing a tuple clears its page's bit, even if it is rolled back"]


def test_vacuum_skips_only_long_runs(chapter):
    found = visibility.skipped(chapter).set_index("every")
    assert (found["scanned"] == found["computed"]).all()
    assert found.at[33, "scanned"] < 0.05 * found.at[32, "scanned"]
    assert visibility._computed(100, 50) == 2 + 1 and visibility._computed(100, 33) == 4 and visibility._computed(66, 32) == 66


def test_a_wrong_map_would_be_told():
    frame = pd.DataFrame([(1, 5, 9, 0, 0, 0)], columns=["crash", "updated", "marked", "wrong_visible", "wrong_frozen", "differing"])
    assert visibility.wrong_after_crash(frame) is False and visibility.wrong_after_crash(None) is None
    for column in ("wrong_visible", "wrong_frozen", "differing"):
        assert visibility.wrong_after_crash(frame.assign(**{column: 1})) is True


def test_a_crash_under_updates_leaves_a_right_map():
    with Cluster(settings=SMALL) as own:
        found = visibility.crashes(SimpleNamespace(cluster=lambda **settings: own, parameters=SimpleNamespace(accounts=ROWS, crashes=1, seed=1)))
    assert found.at[0, "updated"] > 0 and visibility.wrong_after_crash(found) is False


# ---- covering indexes


def test_padding_makes_two_columns_as_small_as_one(chapter):
    found = covering.sizes(chapter)
    assert covering.size_ratio(found) == 1 and all(covering.padding_facts(found).values())
    assert (found["pages"] == found["computed"]).tolist() == [True, True, True, False]


def test_an_index_outgrows_its_table_when_grown_sooner_than_when_built(chapter):
    found = covering.widths(chapter)
    assert all(covering.width_facts(found).values())
    larger = found[found["index"] > found["table"]].groupby("way")["columns"].min()
    assert larger[covering.GROWN] < larger[covering.BUILT]


def test_an_index_only_scan_touches_the_table_only_without_the_map(chapter):
    found = covering.reads(chapter)
    for facts in (covering.reading_facts(found), covering.buffer_facts(found), covering.explain_facts(found)):
        assert all(facts.values())
    worse = found.assign(table=[1, *found["table"][1:]])
    assert not covering.reading_facts(worse)["on a vacuumed table an index-only scan touches no page of it"]


# ---- gains


def test_bits_are_taken_away_without_changing_the_table(server, connection):
    server.extension("pg_visibility")
    accounts.Accounts(ROWS).load(server, accounts.COVERED)
    pages, visible = accounts.blocks(connection, accounts.COVERED), "SELECT all_visible FROM pg_visibility_map_summary('covered')"
    for percent, expected in ((100, pages), (0, 0), (50, pages / 2)):
        connection.execute("VACUUM covered")
        lookups._unmark(connection, accounts.COVERED, percent)
        assert connection.execute(visible).fetchone()[0] == pytest.approx(expected, abs=0.1 * pages)
    assert connection.execute("SELECT count(*) FROM covered").fetchone() == (ROWS,)


def test_breakeven_is_interpolated_where_the_times_cross():
    x = np.log([0.001, 0.01, 0.1])
    assert lookups._crossing(x, np.log([0.1, 1, 10])) == pytest.approx(0.01)
    assert lookups._crossing(x, np.log([0.2, 0.5, 2])) == pytest.approx(0.01 * 10**0.5)
    assert lookups._crossing(x, np.log([0.01, 0.1, 0.5])) > 0.1  # beyond the last share


def test_memory_cant_be_made_short_on_somebodys_server():
    def refuse(**settings):
        raise CannotMeasure("restart", "not ours")

    somebody = SimpleNamespace(borrowed=True, server="theirs", cluster=refuse, parameters=SimpleNamespace(accounts=ROWS))
    assert lookups.place(somebody, lookups.AMPLE) == "theirs"
    with pytest.raises(CannotMeasure):
        lookups.place(somebody, lookups.DIRECT)


def test_somebodys_server_is_measured_where_memory_is_ample():
    """The arms that need a server of ours are set aside, after the others have run."""
    compared = []

    def refuse(**settings):
        raise CannotMeasure("restart", "not ours")

    with Cluster(settings=SMALL) as theirs:
        somebody = SimpleNamespace(
            borrowed=True, server=theirs, cluster=refuse, parameters=SimpleNamespace(accounts=ROWS, clients=2, lookups=500, seed=1, pairs=5),
            compare=lambda name, arms, units, **more: compared.extend(arm.name for arm in arms),
        )  # fmt: skip
        for verb in (lookups.lookups, lookups.breakeven):
            with pytest.raises(CannotMeasure):
                verb(somebody)
    assert compared[:2] == [lookups.arm(lookups.AMPLE, index) for index in (lookups.KEY, lookups.COVERING)]
    assert lookups.SEQUENTIAL in compared and len(compared) == 3 + len(lookups.SHARES[lookups.WARM]) + 1


def test_a_sequential_scan_reads_pages_together_and_an_index_scan_does_not():
    with Cluster(settings={"debug_io_direct": "data", "shared_buffers": "64MB"}) as cold, cold.connect() as connection:
        cold.extension("pg_buffercache")
        accounts.Accounts(ROWS).load(connection, accounts.SCATTERED)
        found = lookups._reads_together(connection, ROWS)
    pages, reads = found[lookups.SEQUENTIAL]
    assert pages >= printed.table_pages(ROWS) and reads < pages / 4
    pages, reads = found[lookups.INDEX]
    assert 100 < pages < printed.table_pages(ROWS) and reads > 0.9 * pages


def test_updates_are_computed_as_pages_hit():
    assert lookups.Updated(0, 0).computed == 0 and lookups.Updated(1, 0.6).computed == pytest.approx(1 - 1 / math.e)
    right = [lookups.Updated(0, 0), lookups.Updated(3, 0.95)]
    assert all(lookups.update_facts(right).values())
    assert not any(list(lookups.update_facts([lookups.Updated(0, 0.1), lookups.Updated(3, 0.5)]).values()))


@pytest.mark.parametrize(
    "lows, said",
    [
        ((1.1, 1.05, 0.9, 0.8, 0.7, 0.6), "between 25 and 75 %"),  # at 50 % the interval holds 1
        ((0.9, 0.9, 0.9, 0.8, 0.7, 0.6), "pays from 75 % of all-visible pages on, if not before"),
        ((1.1, 1.1, 1.1, 1.1, 1.1, 1.1), "No share"),
        ((1.1, 0.5, 0.5, 0.5, 0.95, 0.5), "between 0 and 100 %"),  # what pays must pay from there on
    ],
)
def test_an_index_only_scan_pays_where_intervals_say_so(monkeypatch, lows, said):
    ratios = {percent: statistics.Interval(low + 0.05, low, low + 0.15, n=7) for percent, low in zip(lookups.FRACTIONS, lows)}
    monkeypatch.setattr(lookups, "only_over_plain", lambda chapter, percent: ratios[percent])
    found = words.visible_enough(None)
    assert said in found and ("asks the map in vain" in found) == (lows[0] > 1)


def test_between_two_vacuums_the_average_counts():
    few = SimpleNamespace(parameters=SimpleNamespace(accounts=ROWS))
    said = words.autovacuums_threshold(few, [lookups.Updated(0, 0), lookups.Updated(3, 0.95)])
    until = 0.2 * ROWS / printed.table_pages(ROWS)
    average = np.mean([lookups.Updated(updates, 0).computed for updates in np.linspace(0, until, 1001)])
    assert f"{100 * average:.0f} % of the rows are looked up on average" in said


def test_memory_is_short_only_after_loading():
    """Loaded past the kernel's cache, accounts would take several times as long; read over it, they would cost nothing."""
    with Cluster(settings={"debug_io_direct": "data", "shared_buffers": "2MB"}) as short:
        chapter = SimpleNamespace(borrowed=False, cluster=lambda **settings: short, parameters=SimpleNamespace(accounts=ROWS))
        seen, load = [], accounts.Accounts.load
        settings = "SELECT current_setting('debug_io_direct'), current_setting('shared_buffers')"

        def watched(self, server, *names):
            with server.connect() as connection:
                seen.append((*connection.execute(settings).fetchone(), names))
            load(self, server, *names)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(accounts.Accounts, "load", watched)
            for _ in range(2):
                assert lookups.filled(chapter, lookups.DIRECT, accounts.KEYED) is short
        with short.connect() as connection:
            assert connection.execute(settings).fetchone() == ("data", "2MB")
            assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (ROWS,)
    assert seen == [("", f"{lookups._ample(chapter)}kB", (accounts.KEYED,))]


# ---- the planner


def test_a_false_share_of_visible_pages_changes_cost_and_plan(chapter):
    found = planner.told(chapter)
    assert all(planner.cost_facts(found).values())
    assert not any(planner.refined_facts(found).values())
    bent = found.assign(**{"index-only scan": found["index-only scan"] ** 0.5})
    assert planner.refined_facts(bent)["the cost is no longer that of a plain index scan minus the all-visible share of its pages"]
    blind = found.assign(chosen="Seq Scan")
    assert not planner.cost_facts(blind)["a false share changes the plan"]


# ---- joins


def test_a_key_is_handed_through_a_join(chapter):
    joins.load(chapter)
    forms = joins.forms(chapter).set_index("form")
    assert forms["through"].to_dict() == {
        "left join over an inner join": True, "inner joins only": False, "left joins in a row": False,
        "NOT EXISTS over an inner join": True, "LATERAL over an inner join": True,
    }  # fmt: skip
    assert (forms["rows_read"] == 20).all()


def test_the_talks_plans_are_made(chapter):
    joins.load(chapter)
    found = joins.shapes(chapter)
    read = found.set_index("arm")["rows_read"]
    assert read[joins.PARAMETERIZED] == 20 and read[joins.BEFORE] == 2 * ROWS and read[joins.DEFAULT] == 10
    assert read[joins.EARLY] < 100  # the merge join stops
    assert all(joins.order_facts(found, ROWS).values())
    assert joins.plan_facts(found, ROWS)["it does so wherever the keys lie"] is False


def test_keys_are_spread_over_the_table():
    assert "generate_series(2000, 20000, 2000)" in joins._of(joins.BEFORE, "t", ROWS)
    assert "generate_series(1, 10, 1)" in joins._of(joins.EARLY, "t", ROWS)


# ---- arrays, indexes, sorting, prepared queries


def test_a_list_is_read_in_order_and_neighbours_in_one_descent(chapter):
    found = arrays.lists(chapter)
    assert all(arrays.list_facts(found).values())
    plain = found[found["way"] == "indexscan"].set_index(["keys", "asked"])["searches"]
    assert plain["neighbouring keys", arrays.ALL] == 1 < plain["keys far apart", arrays.ALL]


def test_statistics_on_elements_make_estimates_better(chapter):
    found = arrays.selectivity(chapter)
    by = found.groupby(["operator", "statistics"])["q_error"].max()
    assert (by.xs(arrays.WITH, level="statistics") < 3).all() and (by.xs(arrays.WITHOUT, level="statistics") > 50).all()
    assert arrays.selectivity_gain(found).low > 1


def test_a_copied_array_is_flat_and_slow(connection):
    with connection.transaction(force_rollback=True):
        connection.execute(arrays.SETTER)
        assert connection.execute("SELECT pgrerun_set(ARRAY[7, 8, 9], 2)").fetchone() == ([7, 2, 9],)


def test_a_copied_operator_class_sorts_alike_without_sort_support(connection):
    opclass.without_sort_support(connection, "btree", "int4_ops", "int4_copy")
    opclass.without_sort_support(connection, "btree", "int4_ops", "int4_copy")  # once is enough
    functions = "SELECT array_agg(amprocnum ORDER BY 1) FROM pg_amproc JOIN pg_opclass ON opcfamily = amprocfamily JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'btree' AND opcname = %s AND amproclefttype = 'int4'::regtype AND amprocrighttype = 'int4'::regtype"
    own, original = (connection.execute(functions, [name]).fetchone()[0] for name in ("int4_copy", "int4_ops"))
    assert 2 in original and own == [number for number in original if number != 2]
    values = "(VALUES (3), (1), (2)) AS v (i)"
    assert connection.execute(f"SELECT i FROM {values} ORDER BY i USING <#").fetchall() == [(1,), (2,), (3,)]


def test_a_copied_gist_class_finds_the_same_points(connection):
    opclass.without_sort_support(connection, "gist", "point_ops", "points_copy")
    connection.execute("CREATE TABLE spots AS SELECT point(n, n) AS p FROM generate_series(1, 500) AS n")
    connection.execute("CREATE INDEX spots_p ON spots USING gist (p points_copy)")
    accounts.only(connection, "indexonlyscan")
    query = "SELECT count(*) FROM spots WHERE p <@ box(point(100, 100), point(199, 199))"
    assert plans.explain(connection, query).find("Index Only Scan")
    assert connection.execute(query).fetchone() == (100,)
    connection.execute("DROP TABLE spots")


def test_what_abbreviated_keys_add_is_the_gain_that_one_beginning_takes_away():
    seconds = {sorting.UNSORTED: 1.0}
    for key, gain in ((sorting.BYTES, 3.0), (sorting.ALIKE, 1.5)):
        seconds |= {sorting.name(key, sorting.SUPPORTED): 2.0, sorting.name(key, sorting.UNSUPPORTED): 1.0 + gain}
    table = pd.DataFrame([seconds] * 7)
    chapter = SimpleNamespace(table=lambda *_: table, parameters=SimpleNamespace(seed=1))
    assert sorting.abbreviated(chapter).estimate == 2
    assert len(sorting._BEGINNING) > 8, "an abbreviated key holds a Datum's eight bytes"


def test_operator_classes_are_for_superusers(server):
    with server.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute("CREATE ROLE somebody")
        connection.execute("SET LOCAL ROLE somebody")
        with pytest.raises(CannotMeasure, match="superuser"):
            opclass.without_sort_support(connection, "btree", "int4_ops", "int4_refused")


def test_a_random_tree_is_emptier_and_no_deeper(chapter):
    facts = trees.btree_facts(trees.btrees(chapter))
    assert list(facts.values()) == [True, False, False, False]


def test_the_plan_cache_chooses_by_what_it_saw_first(chapter):
    found = plan_cache.choices(chapter).set_index("arm")
    executions = 6 + plan_cache._CALLS
    assert found["generic"].to_dict() == {plan_cache.AUTO: 0, plan_cache.CUSTOM: 0, plan_cache.GENERIC: executions, plan_cache.LURED: executions - 5}
    assert found["node"].str.startswith("Seq Scan").to_dict() == {plan_cache.AUTO: False, plan_cache.CUSTOM: False, plan_cache.GENERIC: True, plan_cache.LURED: True}


def test_what_did_not_run_gives_no_evidence():
    for verb in (
        visibility.bit_facts, visibility.upgrade_facts, covering.width_facts, covering.explain_facts, planner.cost_facts, planner.autovacuum_facts,
        joins.form_facts, arrays.list_facts, arrays.selectivity_gain, trees.btree_facts, lookups.update_facts,
    ):  # fmt: skip
        assert verb(None) is None


def test_the_prepared_query_is_asked_for_the_rare_value(chapter, connection):
    connection.prepare_threshold = None
    plan_cache._ready(connection, ROWS)
    plan_cache._prepare(connection, plan_cache.CUSTOM, None)
    assert plan_cache._asked(connection, plan_cache.CUSTOM, ROWS // 1000, None)["seconds"] > 0
    with pytest.raises(RerunError):
        plan_cache._asked(connection, plan_cache.CUSTOM, ROWS, None)


def test_scratch_tables_are_gone(chapter, connection):
    """Wide ones would fill a disk: they are dropped, and so are functions that only an experiment needs."""
    covering.widths(chapter, rows=100)
    arrays.selectivity(chapter)
    left = connection.execute("SELECT to_regclass('wide_keys'), to_regclass('tagged')").fetchone()
    assert left == (None, None)
    with pytest.raises(psycopg.errors.UndefinedFunction):
        connection.execute("SELECT pgrerun_set(ARRAY[1], 1)")
