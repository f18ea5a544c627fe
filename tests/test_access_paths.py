"""The chapter `access_paths`: what its experiments find, and that its claims can fail."""

import math
import os
import re
from pathlib import Path

import document_text
import judging
import pytest
from servers import builds_here, url_of

from pgrerun.chapters.access_paths import accounts
from pgrerun.chapters.access_paths.experiments import (
    arrays,
    joins,
    plan_cache,
    ranges,
    sorting,
    visibility,
)
from pgrerun.errors import CannotMeasure, RerunError, ServerError
from pgrerun.lab.instruments import plans, sizes
from pgrerun.lab.models import visibility as model
from pgrerun.record import claims, printed

ROWS = 20_000
SMALL = {
    "accounts": ROWS,
    "joined": ROWS,
    "objects": 10_000,
    "lookups": 500,
    "milliseconds": 1,
    "clients": 2,
    "crashes": 1,
    "pairs": 5,
    "seed": 1,
}


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The chapter with as little of everything as its parameters allow."""
    with judging.opened(tmp_path_factory.mktemp("runs"), "access_paths", SMALL) as found:
        yield found


@pytest.fixture(scope="module")
def server(chapter):
    return chapter.bed.server


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


def where(name, value, **values):
    """A change of rows: where the column `name` has a value, others get these."""

    def change(frame):
        frame.loc[frame[name] == value, list(values)] = list(values.values())
        return frame

    return change


# ---- the print


def test_the_layout_of_a_page_gives_the_talks_sizes():
    pages, leaves = (
        printed.value(f"tree_{what}(?)", accounts.in_print()) for what in ("pages", "leaves")
    )
    assert (pages, leaves, round(pages * 8192 / 2**20)) == (274_194, 273_225, 2142)
    assert printed.value("tree_pages(?)", 366) == 2 and printed.value("tree_pages(?)", 367) == 4
    assert accounts.table_pages(61) == 1 and accounts.table_pages(62) == 2
    assert printed.value("map_coverage(?)", 1) == 65_344 * 8192


def test_print_against_print():
    rows = printed.recomputed("access_paths").set_index("where")
    assert rows.agrees.sum() == 5
    [(where_, row)] = rows[~rows.agrees].iterrows()
    assert "entire test case in memory" in where_ and row.recomputed == "90,600 lookups"


def test_every_claim_can_be_judged_and_printed_effects_come_from_the_tables():
    own = [c for c in claims.ledger().values() if c.chapter == "access_paths"]
    assert len(own) == 33 and all(c.predicate for c in own)
    assert {c.id: c.printed for c in own if c.printed is not None} == pytest.approx(
        {"haas-029": 1, "haas-035": 302 / 63, "haas-036": 1}
    )
    join = claims.ledger()["haas-049"].sizes
    assert {name: round(size.low) for name, size in join.items()} == {
        "first execution": 431,
        "later executions": 250_000,
    }


def test_the_ledgers_words_stand_in_the_talk():
    folder = os.environ.get("PGRERUN_DOCUMENTS")
    if not folder:
        pytest.skip("PGRERUN_DOCUMENTS names no folder with the documents' texts")
    text = " ".join(
        document_text.sections(
            (Path(folder) / printed.DOCUMENTS["postgres92-2012"][1]).read_text("utf-8")
        ).values()
    ).lower()
    for c in claims.ledger().values():
        if c.chapter == "access_paths":
            for value in filter(None, re.split("; ", c.published_value.lower())):
                assert value in text, (c.id, value)


# ---- what is counted, and that it can come out otherwise


@pytest.mark.parametrize(
    ("claim", "expected"),
    {
        "haas-029": "different now",
        "haas-030": "holds",
        "haas-032": "holds",
        "haas-033": "holds",
        "haas-034": "holds",
        "haas-036": "holds",
        "haas-037": "holds",
        "haas-039": "holds",
        "haas-040": "partly",
        "haas-041": "holds",
        "haas-043": "holds",
        "haas-044": "holds",
        "haas-045": "holds",
        "haas-047": "not so",
        "haas-051": "holds",
        "haas-052": "holds",
        "haas-053": "holds",
        "haas-054": "holds",
        "haas-056": "holds",
        "haas-058": "holds",
        "haas-064": "holds",
    }.items(),
)
def test_what_counts_say(chapter, claim, expected):
    assert judging.changed_word(chapter, claim) == expected


CHANGED = [
    ("haas-029", {"map_size": lambda f: f.assign(bits=1.0)}, "holds"),
    ("haas-030", {"bits": where("step", "one row updated", all_visible=286)}, "partly"),
    ("haas-030", {"bits": where("step", visibility.BESIDE, all_visible=286)}, "partly"),
    ("haas-032", {"vacuums": lambda f: f.assign(scanned=300)}, "no effect"),
    ("haas-033", {"reads": where("scan", accounts.ONLY, table_pages=1)}, "partly"),
    ("haas-034", {"updates": lambda f: f.assign(fetched=f["fetched"] / 2)}, "not so"),
    ("haas-036", {"index_sizes": where("columns", "(aid)", bytes=8192)}, "different now"),
    ("haas-037", {"index_sizes": lambda f: f.assign(entry=24)}, "partly"),
    ("haas-040", {"autovacuum": lambda f: f.assign(marked=0)}, "holds"),
    ("haas-041", {"widths": lambda f: f.assign(index_pages=1)}, "not so"),
    ("haas-043", {"reads": where("scan", accounts.ONLY, index_pages=0)}, "not so"),
    ("haas-044", {"costs": lambda f: f.assign(chosen="Seq Scan")}, "partly"),
    ("haas-045", {"reads": lambda f: f.assign(heap_fetches=7)}, "partly"),
    ("haas-047", {"costs": lambda f: f.assign(index_only=f["index_only"] ** 0.5)}, "holds"),
    ("haas-051", {"join_plans": where("plan", joins.PROBES, rows_read=21)}, "partly"),
    ("haas-052", {"forms": lambda f: f.assign(through=True)}, "partly"),
    ("haas-053", {"lists": lambda f: f.assign(sorts=True)}, "partly"),
    ("haas-054", {"selectivity": lambda f: f.assign(q_error=2.0)}, "no effect"),
    ("haas-056", {"btrees": where("way", "built at once", lookup=9)}, "not so"),
    ("haas-064", {"choices": lambda f: f.assign(pages=9)}, "no effect"),
]


@pytest.mark.parametrize(("claim", "changes", "expected"), CHANGED)
def test_other_rows_give_another_word(chapter, claim, changes, expected):
    assert judging.changed_word(chapter, claim, **changes) == expected


def map_rows(records=1, wrong=0):
    crash = {"crash": 1, "updated": 5, "marked": 9, "wrong_visible": 0, "wrong_frozen": 0}
    return {
        "crashes": [crash | {"differing": wrong}],
        "logged": [{"change": "cleared", "bits": 1, "records": records}],
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "fixed"), ({"records": 0}, "still there"), ({"wrong": 1}, "still there")],
)
def test_a_wrong_map_or_one_that_isnt_logged_would_be_told(given, expected):
    assert judging.word("haas-031", "access_paths", **map_rows(**given)) == expected


def test_a_crash_under_updates_leaves_a_right_map(monkeypatch, chapter):
    monkeypatch.setattr(visibility, "CHURN_SECONDS", 2.0)  # so that a busy machine updates as well
    [row] = chapter.bed.measure(chapter.experiments["crashes"], {})
    assert row["updated"] > 0
    assert row["wrong_visible"] == row["wrong_frozen"] == row["differing"] == 0


# ---- what is timed


def blocks(experiment_rows, blocks_=7):
    """Rows of variants in so many blocks that hardly differ."""
    return [
        {**row, **{name: value * (1 + b / 1000) for name, value in metrics.items()}}
        | {"comparison": 0, "block": b, "disturbed": "", "left_out": False}
        for row, metrics in experiment_rows
        for b in range(blocks_)
    ]


def range_rows(far, near):
    lie = {"rows_lie": ranges.ANYWHERE}
    seconds = {accounts.DIRECT: far, accounts.AMPLE: near}
    return blocks(
        ({**lie, "memory": memory, "scan": scan}, {"seconds": value})
        for memory, gain in seconds.items()
        for scan, value in ((accounts.PLAIN, gain), (accounts.ONLY, 1.0))
    )


@pytest.mark.parametrize(
    ("far", "near", "most", "suited"),
    [(100, 4, "partly", "holds"), (700, 4, "holds", "holds"), (4, 100, "partly", "partly")],
)
def test_gains_are_held_against_the_talks_number_and_one_another(far, near, most, suited):
    counted = [{"scan": accounts.ONLY, "instructions": 12}]
    counted.append({"scan": accounts.PLAIN, "instructions": 10})
    updates = [{"updates": 3.0, "fetched": 0.95, "computed": 0.95}]
    tables = {"ranges": range_rows(far, near), "updates": updates, "scan_instructions": counted}
    assert judging.word("haas-038", "access_paths", **tables) == most
    assert judging.word("haas-042", "access_paths", **tables) == suited


def join_rows(before, first, later, waiting=0.9, growth=10.0):
    plan = {joins.MERGE: before, joins.FIRST: first, joins.PROBES: later}
    short = blocks(
        ({"plan": name, "millions": 1.0}, {"seconds": value, "waiting": waiting})
        for name, value in plan.items()
    )
    for row in short:
        row["waiting"] = waiting
    grown = blocks(
        ({"plan": name, "parts": parts, "rows": 1000 // parts}, {"seconds": 1.0, "pages": value})
        for parts in (1, 10)
        for name, value in ((joins.MERGE, growth if parts == 1 else 1.0), (joins.PROBES, 1.0))
    )
    return {"short_of_memory": short, "join_growth": grown}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((2.5, 0.58, 0.001), "holds"),  # on a hundredth of the talk's table
        ((25, 0.58, 0.001), "stronger"),
        ((2.5, 0.58, 0.01), "partly"),
        ((2.5, 0.58, 0.001, 0.1), "not tested here"),
        ((2.5, 0.58, 0.001, 0.9, 2.0), "not tested here"),
    ],
)
def test_the_join_is_judged_by_its_numbers_at_the_talks_size(given, expected):
    assert judging.word("haas-049", "access_paths", **join_rows(*given)) == expected


# ---- on 9.1 and 9.2 themselves, where they are registered


@pytest.mark.parametrize(
    ("alone", "nested", "expected"),
    [(2000, 2000, "holds"), (2000, 20, "partly"), (20, 20, "not so")],
)
def test_what_9_1_could_not_do_only_9_1_shows(alone, nested, expected):
    words = {"shape": "", "joins": "", "through": False, "table_rows": 1000}
    read = {("9.1", "left alone"): alone, ("9.1", "made to use nested loops"): nested}
    read |= {("9.2", "left alone"): 20}
    found = [{"server": s, "plan": p, "rows_read": n, **words} for (s, p), n in read.items()]
    assert judging.word("haas-050", "access_paths", join_on_releases=found) == expected


@pytest.mark.parametrize(
    ("element", "variable", "expected"), [(4.0, 1.0, "holds"), (2.0, 1.0, "no effect")]
)
def test_only_what_the_element_takes_is_compared(element, variable, expected):
    """The loop itself may have become faster as well."""
    seconds = {("9.1", "element"): element, ("9.1", "variable"): variable}
    seconds |= {("9.2", "element"): 1.5, ("9.2", "variable"): 0.5}
    found = blocks(
        ({"server": s, "assigned": a}, {"seconds": value}) for (s, a), value in seconds.items()
    )
    assert judging.word("haas-066", "access_paths", array_assignments=found) == expected


@pytest.mark.parametrize(
    ("build", "accesses", "expected"),
    [(2.0, 2.0, "holds"), (1.0, 2.0, "partly"), (0.5, 0.5, "not so")],
)
def test_gist_is_built_faster_and_better_or_not(build, accesses, expected):
    found = blocks(
        ({"server": s}, {"build": b, "pages": 9.0, "accesses": a})
        for s, b, a in (("9.1", build, accesses), ("9.2", 1.0, 1.0))
    )
    assert judging.word("haas-055", "access_paths", gist_on_releases=found) == expected


def test_without_the_builds_what_they_decide_is_set_aside(chapter):
    if not builds_here().keys() >= {"9.1", "9.2"}:
        assert chapter.run("join_on_releases") is None
        assert chapter.judge("haas-050").capability.startswith("the build 9.")
    else:
        assert judging.changed_word(chapter, "haas-050") == "holds"
        own = chapter.run("join_on_releases").frame.set_index(["server", "plan"])["shape"]
        forced = chapter.run("join_plans").frame.set_index("plan")["shape"]
        assert own["9.1", "left alone"] == forced[joins.MERGE]


# ---- what the experiments do


def test_accounts_lie_in_order_or_scattered(server, connection):
    accounts.load(server, ROWS, accounts.COVERED, accounts.SCATTERED)
    correlation = "SELECT correlation FROM pg_stats WHERE tablename = %s AND attname = 'aid'"
    ordered, scattered = (
        connection.execute(correlation, [name]).fetchone()[0]
        for name in (accounts.COVERED, accounts.SCATTERED)
    )
    assert ordered == 1 and abs(scattered) < 0.05
    assert sizes.pages(connection, accounts.COVERED) == accounts.table_pages(ROWS)


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


def test_a_measurement_lasts_as_long_as_it_has_to():
    calls = []
    assert accounts.repeated(lambda: calls.append(1) or 3.0, 0) == 3.0 and len(calls) == 1
    accounts.repeated(lambda: calls.append(1) or 3.0, 5)
    assert len(calls) > 10


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
    assert pool / accounts.table_pages(1_000_000) == pytest.approx(4096 / 12807.4, rel=1e-3)
    assert printed.value("tree_pages(?)", 1_000_000) < pool < accounts.table_pages(1_000_000)
    assert accounts.pool_pages(100) == 64  # less won't start


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
            short = accounts.filled(chapter.bed, accounts.DIRECT, 2 * ROWS, accounts.KEYED)
    with short.connect() as connection:
        direct, pool = connection.execute(settings).fetchone()
        assert direct == "data" and int(pool.removesuffix("kB")) < accounts.ample_kilobytes(ROWS)
    assert seen == [("", f"{accounts.ample_kilobytes(2 * ROWS)}kB", (accounts.KEYED,))]


def test_a_server_that_does_not_start_is_told_without_its_log(chapter):
    """The log's lines would publish temporary paths in a verdict."""

    def refuse(**settings):
        raise ServerError("FATAL: in /tmp/somewhere/postgresql.conf")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(CannotMeasure) as caught:
        patch.setattr(chapter.bed, "cluster", refuse)
        accounts.place(chapter.bed, accounts.DIRECT, ROWS)
    assert "/tmp" not in str(caught.value) and "debug_io_direct" in str(caught.value)


def test_vacuum_skips_only_long_runs(chapter):
    found = {row["every"]: row for row in chapter.experiments["skipped"](chapter.bed)}
    assert all(row["scanned"] == row["computed"] for row in found.values())
    assert found[33]["scanned"] < 0.05 * found[32]["scanned"]
    assert model.pages_scanned(100, 50) == 2 + 1 and model.pages_scanned(66, 32) == 66


def test_bits_are_taken_away_without_changing_the_table(server, connection):
    server.extension("pg_visibility")
    accounts.load(server, ROWS, accounts.COVERED)
    pages, visible = (
        sizes.pages(connection, accounts.COVERED),
        "SELECT all_visible FROM pg_visibility_map_summary('covered')",
    )
    for percent, expected in ((100, pages), (0, 0), (50, pages / 2)):
        ranges.unmark(connection, accounts.COVERED, percent)
        assert connection.execute(visible).fetchone()[0] == pytest.approx(expected, abs=0.1 * pages)
    assert connection.execute("SELECT count(*) FROM covered").fetchone() == (ROWS,)


def test_updates_are_computed_as_pages_hit():
    assert model.share_unmarked(0) == 0
    assert model.share_unmarked(1) == pytest.approx(1 - 1 / math.e)


def test_the_talks_lookups_begin_in_either_way(chapter):
    found = chapter.run("first_lookups").frame
    reads = (found["table_reads"] + found["index_reads"]).tolist()
    assert reads[0] > reads[1] > reads[2]
    assert reads[0] == pytest.approx(2, abs=0.2)  # nothing is in memory: leaf and page


def test_keys_are_spread_over_the_table():
    assert "generate_series(2000, 20000, 2000)" in joins.spread("t", ROWS)
    assert "generate_series(1, 10, 1)" in joins.query("free", "t", "t")


def test_the_talks_plans_are_made(chapter):
    read = chapter.run("join_plans").frame.set_index("plan")["rows_read"]
    assert (read[joins.PROBES], read[joins.MERGE], read[joins.DEFAULT]) == (20, 2 * ROWS, 10)
    assert read[joins.EARLY] < 100  # the merge join stops


def test_neighbours_are_looked_up_in_one_descent(chapter):
    found = chapter.run("lists").frame
    plain = found[(found["way"] == arrays.PLAIN) & (found["asked"] == "all of them")]
    searches = plain.set_index("keys")["searches"]
    assert searches["neighbouring keys"] == 1 < searches["keys far apart"]


def test_a_copied_operator_class_sorts_alike_without_sort_support(connection):
    own = sorting.CLASSES["int4_ops"]
    for _ in range(2):  # once is enough
        sorting.copy_without_sort_support(connection, "btree", "int4_ops", own)
    functions = (
        "SELECT array_agg(amprocnum ORDER BY 1) FROM pg_amproc JOIN pg_opclass ON opcfamily ="
        " amprocfamily JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'btree' AND opcname = %s"
        " AND amproclefttype = 'int4'::regtype AND amprocrighttype = 'int4'::regtype"
    )
    copied, original = (
        connection.execute(functions, [name]).fetchone()[0] for name in (own, "int4_ops")
    )
    assert 2 in original and copied == [number for number in original if number != 2]
    query = "SELECT i FROM (VALUES (3), (1), (2)) AS v (i) ORDER BY i USING <#"
    assert connection.execute(query).fetchall() == [(1,), (2,), (3,)]


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


def test_the_plan_cache_chooses_by_what_it_saw_first(chapter):
    found = chapter.run("choices").frame.set_index("variant")
    executions = plan_cache.BEFORE + plan_cache.CALLS
    assert found["generic"].to_dict() == {
        plan_cache.AUTO: 0,
        plan_cache.CUSTOM: 0,
        plan_cache.GENERIC: executions,
        plan_cache.LURED: executions - 5,
    }


def test_the_prepared_query_is_asked_for_the_rare_value(server, connection):
    accounts.ready(server, ROWS, accounts.KEYED)
    plan_cache.open_session(connection, ROWS)
    plan_cache.prepare(connection, plan_cache.CUSTOM)
    assert plan_cache.ask(connection, ROWS // plan_cache.ONE_IN) > 0
    with pytest.raises(RerunError):
        plan_cache.ask(connection, ROWS)


def test_scratch_tables_are_gone(chapter, connection):
    """Wide ones would fill a disk."""
    list(chapter.bed.measure(chapter.experiments["widths"], {"rows": 100}))
    list(chapter.bed.measure(chapter.experiments["selectivity"], {}))
    left = connection.execute("SELECT to_regclass('wide_keys'), to_regclass('tagged')").fetchone()
    assert left == (None, None)


# ---- on somebody's server


@pytest.fixture(scope="module")
def borrowing(chapter, tmp_path_factory):
    """The chapter on somebody's server, in a database of its own and without a superuser."""
    with chapter.bed.server.connect() as connection:
        connection.execute("CREATE ROLE somebody LOGIN")
        connection.execute("CREATE DATABASE theirs OWNER somebody")
    url = url_of(chapter.bed.server, user="somebody", database="theirs")
    given = SMALL | {"server": url}
    with judging.opened(tmp_path_factory.mktemp("borrowing"), "access_paths", given) as found:
        yield found


def test_memory_cant_be_made_short_on_somebodys_server(borrowing):
    bed = borrowing.bed
    assert accounts.place(bed, accounts.AMPLE, ROWS) is bed.server
    for memory in (accounts.DIRECT, accounts.KERNEL):
        with pytest.raises(CannotMeasure):
            accounts.place(bed, memory, ROWS)


def test_what_is_set_aside_stops_nothing(borrowing):
    for name in ("lookups", "scan_instructions", "points", "reads"):
        assert borrowing.run(name) is None
    assert borrowing.judge("haas-039").capability == "restart"
    assert borrowing.judge("haas-033").capability == "superuser"
    # what can't be measured here is drawn from the published run, and from nothing else
    rows = borrowing.chart("access-paths-gains").spec()["datasets"].values()
    assert {row["provenance"] for name in rows for row in name} == {"printed", "published run"}
