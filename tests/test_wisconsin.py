"""The Wisconsin chapter: queries at any size, engines, experiments, and claims that can fail."""

import contextlib
import itertools
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from judging import UNTESTED, counted, opened, word

from pgrerun.chapters.wisconsin import contenders, queries
from pgrerun.chapters.wisconsin.experiments import counts, postgres95, times, university_ingres
from pgrerun.errors import RerunError, ServerError
from pgrerun.lab.quel import read, tree
from pgrerun.lab.relations.duck import Duck
from pgrerun.lab.server import builds
from pgrerun.lab.testbed import Block, Testbed
from pgrerun.parameters import chapter_parameters

SMALL = 1000
TINY = {"pairs": 5, "largest": 20_000, "sizes": 3, "repeats": 1}


@pytest.fixture(scope="module")
def both(cluster):
    with contenders.PostgreSQL(cluster) as postgresql, contenders.DuckDB() as duckdb:
        for one in (postgresql, duckdb):
            one.load(SMALL)
        yield postgresql, duckdb


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("runs"), "wisconsin", TINY) as found:
        yield found


# ---- queries


def test_relations_alternate_so_that_none_is_cached_for_the_next_query():
    blocks = [Block(index, index, 0) for index in range(10)]
    texts = {queries.instance(queries.BY_KEY["q2"], SMALL, block).text for block in blocks}
    found = {("tenk1" in text, "tenk2" in text) for text in texts}
    assert len(texts) > 8 and found == {(True, False), (False, True)}


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
@pytest.mark.parametrize("block", [None, Block(0, 7, 0), Block(1, 8, 0), Block(-1, 9, 1)])
def test_a_variant_stays_within_the_relation(query, block):
    for n in (SMALL, 12_345):
        one = queries.instance(query, n, block)
        [statement] = read(one.text)
        constants = [int(node.text) for node in statement.nodes() if isinstance(node, tree.Number)]
        assert all(0 <= constant <= n + 1 for constant in constants)
        assert one == queries.instance(query, n, block)


@pytest.mark.parametrize(
    ("n", "block", "lettered"),
    [
        (queries.SPECIFIED, None, True),
        (SMALL, Block(0, 7, 0), True),
        (SMALL, Block(1, 7, 0), False),
        (queries.SPECIFIED, Block(0, 7, 0), False),
    ],
)
def test_strings_count_as_specified_and_where_relations_are_small(n, block, lettered):
    one = queries.instance(queries.BY_KEY["q1"], n, block)
    assert bool(one.answer.texts) == lettered


# ---- engines


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
def test_engines_agree_and_leave_the_relations_as_they_were(both, query, stored):
    tuples = {"q1": 10, "q2": 100, "q5": 10, "q6": 100, "q7": 1, "q8": 10, "q9": 100, "q10": 100}
    tuples |= {"q11": 100, "q19": 1000, "q20": 1, "q21": 100}
    look = "SELECT count(*), sum(unique1), sum(unique2), sum(fiftypercent) FROM tenk1_with"
    for block in (None, Block(0, 3, 0), Block(1, 4, 0)):
        one, found = queries.instance(query, SMALL, block), []
        for engine in both:
            before = engine.execute(look)
            assert engine.run(one, stored or engine.name == contenders.DUCKDB) > 0
            found.append(engine.answer(one))
            engine.tidy(one)
            assert engine.execute(look) == before
        assert found[0] == found[1]
        assert found[0][0] == tuples.get(query.key, found[0][0])


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("key", ["q1", "q7", "q31"])
def test_no_postquel_is_read_on_the_clock(both, monkeypatch, key, stored):
    stopwatch = contenders.clock.stopwatch

    @contextlib.contextmanager
    def watched():
        with stopwatch() as watch, monkeypatch.context() as patch:
            for module in (contenders, queries):
                patch.setattr(module, "read", None)
            yield watch

    monkeypatch.setattr(contenders.clock, "stopwatch", watched)
    one = queries.instance(queries.BY_KEY[key], SMALL)
    for engine in both:
        assert engine.run(one, stored or engine.name == contenders.DUCKDB) > 0
        engine.tidy(one)


@pytest.mark.parametrize("key", ["q1", "q7", "q11", "q19", "q22", "q31"])
def test_an_answer_given_away_has_the_checksum_of_the_engine(both, key):
    one = queries.instance(queries.BY_KEY[key], SMALL)
    for engine in both:
        untouched = key == "q31" and engine.answer(one)
        engine.run(one)
        done = engine.answer(one)
        assert tuple(map(int, engine.execute(one.answer.sql)[0])) == done != untouched
        engine.tidy(one)
        assert key != "q31" or engine.answer(one) == untouched


@pytest.mark.parametrize("key", counts.CHANGES)
def test_a_change_begins_after_a_scan_and_is_undone_by_one_in_every_state(both, monkeypatch, key):
    one, sent, postgresql = queries.instance(queries.BY_KEY[key], SMALL), [], both[0]
    kept = postgresql.execute
    with monkeypatch.context() as patch:
        patch.setattr(postgresql, "execute", lambda sql: sent.append(sql) or kept(sql))
        postgresql.run(one, stored=False)
        before = sent[-2]
        sent.clear()
        postgresql.tidy(one)
    for sql in (before, *sent):
        assert "Index" not in str(kept(f"EXPLAIN {sql}")), sql


def test_relations_are_loaded_once_for_a_size(cluster, both):
    def made():
        return both[0].execute("SELECT oid FROM pg_class WHERE relname = 'tenk1'")

    seen = [made()]
    with contenders.PostgreSQL(cluster) as other:
        for n in (SMALL, 2000):
            other.load(n)
            seen.append(made())
        assert other.execute("SELECT count(*) FROM bprime_clustered") == [(200,)]
        other.load(SMALL)
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize(
    ("name", "key", "node"),
    [
        (contenders.CONFINED, "q10", "Nested Loop"),
        (contenders.SEQUENTIAL, "q6", "Seq Scan"),
        (contenders.PLAIN, "q6", "Index Scan"),
        (contenders.BITMAP, "q6", "Bitmap Heap Scan"),
    ],
)
def test_a_method_is_forced_whatever_the_servers_default(cluster, both, name, key, node):
    with contenders.PostgreSQL(cluster, name) as forced:
        one = queries.instance(queries.BY_KEY[key], SMALL)
        assert counts.explain(forced, one).shape().startswith(node)


def test_an_engine_leaves_nothing_behind(base):
    with Duck() as duck:
        duck.execute("CREATE TABLE t (a int4)")
        assert len(list(base.iterdir())) == 1
    assert list(base.iterdir()) == []


# ---- the race


def told(name, answer=(1, 1), first=1):
    """An engine of this answer whose every run takes a hundredth of a second longer."""
    engine = MagicMock()
    engine.__enter__.return_value, engine.name = engine, name
    engine.run.side_effect = (0.01 * run for run in itertools.count(first))
    engine.answer.return_value = answer
    return engine


def raced(*engines, names=()):
    bed = Testbed(SimpleNamespace(pairs=5, repeats=3, seed=7, profile="laptop"), programs=None)
    kept = []
    bed._now, bed._rows = times.times, lambda experiment: kept
    names = names or [one.name for one in engines]
    variants = [v for name in names for v in times.of(name, ("q1", "q2"), True)]
    for row in times.race(bed, SMALL, engines, variants):
        kept.append(row)
    return kept


def test_the_same_once_more_is_run_by_the_same_session():
    one = told(contenders.POSTGRESQL)
    found = raced(one, names=(contenders.POSTGRESQL, contenders.AGAIN))
    # it tells a longer time with every run, whoever asks
    assert len(found) == 5 * 2 * 2 and len({row["seconds"] for row in found}) == len(found)
    assert {row["engine"] for row in found} == {contenders.POSTGRESQL, contenders.AGAIN}


def test_a_race_ends_where_answers_differ():
    with pytest.raises(RerunError, match="is answered differently: by one"):
        raced(told("one"), told("other", (2, 1)))


@pytest.mark.parametrize(("first", "runs", "seconds"), [(1, 3, 0.02), (100, 1, 1.0)])
def test_short_queries_are_repeated_and_the_median_counts(first, runs, seconds):
    one = told("one", first=first)
    assert times.timed(one, "q1", SMALL, Block(0, 7, 0), True, 3) == pytest.approx(seconds)
    assert one.run.call_count == runs == one.tidy.call_count + 1


# ---- what is counted


def test_what_is_counted_in_instructions_leaves_no_relation_and_no_tuple(chapter):
    found = chapter.run("instructions").frame
    added = "SELECT (SELECT count(*) FROM tenk1) + (SELECT count(*) FROM tenk1_with)"
    assert chapter.bed.server.fetch(added) == (2 * queries.SPECIFIED,)
    assert len(found) == 7 and found["instructions"].min() > 0
    query = "SELECT count(*) FROM pg_class WHERE relname IN ('tmp', 'seen', 'checked')"
    assert chapter.bed.server.fetch(query) == (0,)


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("QueryRewrite'pg_plan", "rules"),
        ("fmgr_c'ExecMakeFunctionResult", "types"),
        ("FunctionCall2Coll'_bt_compare", "types"),
        ("HeapTupleSatisfiesTimeQual'heap_tuple_satisfies", "versions"),
        ("HeapTupleSatisfiesNow'HeapTupleSatisfiesTimeQual", None),  # counted with its caller
        ("DefineQueryRewrite'ProcessUtility", None),
    ],
)
def test_a_routine_serves_a_feature(name, feature):
    found = [one for one, (_, routines) in postgres95.FEATURES.items() if routines.match(name)]
    assert found == ([feature] if feature else [])


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("Nested Loop, Seq Scan, Index Scan", "nested loop"),
        ("Merge Join, Nested Loop, Merge Join, Seq Scan, Sort", "merge join and nested loop"),
        ("Hash Join, Seq Scan, Hash, Seq Scan", "hash join"),
        ("Seq Scan", ""),
    ],
)
def test_a_plan_tells_its_ways_to_join_once(plan, expected):
    assert postgres95.ways_to_join(plan) == expected


def test_joins_with_a_clustered_index_run_on_the_build_that_takes_it_for_one(monkeypatch):
    asked = []
    monkeypatch.setattr(builds, "registered", dict)
    monkeypatch.setattr(postgres95, "load", lambda backend, tuples: None)
    monkeypatch.setattr(postgres95.Backend, "of", lambda name, *more: contextlib.nullcontext(name))

    def queried(name, key, tuples, without):
        asked.append((name, key))
        if key == "q10" and "hash joins" not in without:
            raise ServerError("a hash table that was moved")
        return {"plan": "Nested Loop, Seq Scan, Seq Scan"}

    monkeypatch.setattr(postgres95, "_queried", queried)
    bed = Testbed(chapter_parameters("wisconsin", TINY), programs=None)
    found = list(postgres95.postgres95_joins(bed))
    assert {key for name, key in asked if "clustered" in name} == set(postgres95.CLUSTERED)
    assert len(found) == 2 * 9 and {row["joins"] for row in found} == {"nested loop"}
    then, now = postgres95.PLANNERS
    assert {
        *((then, "q9", "nothing"), (then, "q10", "hash joins"), (now, "q15", "nothing")),
        *((now, "q9", "nested loops"), (now, "q10", "nested loops and hash joins")),
    } <= {(row["costs"], row["query"], row["forbidden"]) for row in found}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        *((name, True) for name in ("tenk1", "onek_clustered", "tenk1_with_unique1")),
        *((name, False) for name in ("pg_class", "temp_1", "HJ71.0", "sort", queries.RESULT)),
    ],
)
def test_a_relation_of_the_benchmark_is_told_from_other_files(file, expected):
    assert postgres95.of_relation(file) is expected


@pytest.mark.parametrize("tuples", [SMALL, 2 * SMALL])
def test_ingres_runs_at_the_reports_size_what_claims_speak_of(monkeypatch, tuples):
    command = SimpleNamespace(rows=["|    1|"], processes=[SimpleNamespace(row=dict)])
    made = MagicMock()
    run = made.return_value.__enter__.return_value.run
    run.side_effect = lambda *commands: [command] * len(commands)
    monkeypatch.setattr(university_ingres, "UniversityIngres", made)
    given = chapter_parameters("wisconsin", TINY | {"report_tuples": tuples})
    found = list(university_ingres.ingres_queries(Testbed(given, programs=None)))
    asked = {tuples: university_ingres.TOLD} | {SMALL: [query.key for query in queries.QUERIES]}
    wanted = [(n, key) for n, keys in asked.items() for key in keys]
    assert sorted((row["tuples"], row["query"]) for row in found) == sorted(wanted)


# ---- the miniature of INGRES


@pytest.fixture(scope="module")
def ingres():
    return contenders.miniature(SMALL)


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
def test_the_miniature_answers_as_the_others(both, ingres, query):
    duckdb = both[1]
    for block in (None, Block(0, 3, 0), Block(1, 4, 0)):
        one = queries.instance(query, SMALL, block)
        ingres.run(one.before)
        found = ingres.run(one.text)
        if stored := ingres.relations.get(one.answer.source):
            found = [tuple(row.values()) for row in stored.rows()]
        duckdb.run(one)
        theirs = duckdb.execute(f"SELECT * FROM {one.answer.source}")
        assert sorted(found) == sorted(theirs) != []
        duckdb.tidy(one)
        if one.answer.source == queries.RESULT:
            ingres.run(f"destroy {queries.RESULT}")
        ingres.run(one.after)


def test_the_miniatures_pages_are_those_that_its_structures_imply(ingres):
    def touched(key):
        return contenders.pages_of(ingres, queries.instance(queries.BY_KEY[key], SMALL))[0]

    pages = len(ingres.relations["tenk1"].file)
    assert touched("q1") == pages >= SMALL // 4  # an insert may have made it a page longer
    # a nested loop scans the other relation once for each tuple of the first, which it has read,
    # stored and read again
    assert touched("q10") == len(ingres.relations["bprime"].file) * 2 + SMALL // 10 * pages
    assert touched("q7") == 3 and touched("q12") < touched("q9") / 50


# ---- what the rules make of rows

SEQ, INDEX = "Seq Scan", "Index Scan"


def of_postgres95(*each, tuples=queries.SPECIFIED):
    """Queries, what each executes, pages that it reads, and writes as many, and its plan."""
    kinds = ("reads", "writes", "relation_reads")
    found = [
        {"query": query, "tuples": tuples, "instructions": instructions, "plan": plan}
        | dict.fromkeys(kinds, pages)
        for query, instructions, pages, plan in each
    ]
    return {"postgres95_queries": found}


def slower(pairs, executed, read, tuples=queries.SPECIFIED):
    """The first half of some queries by the second, in instructions and in pages."""
    times = [(executed, read), (1, 1)]
    half = len(pairs) // 2
    each = [
        (query, round(1000 * more), round(1000 * pages), SEQ)
        for some, (more, pages) in zip((pairs[:half], pairs[half:]), times)
        for query in some
    ]
    return of_postgres95(*each, tuples=tuples)


SELECTED, PROJECTED = ("q5", "q6", "q3", "q4"), ("q18", "onek")
DELETED, INSERTED = ("q27", "q30"), counts.INSERTS


def saved(scan, apart, plan=INDEX, tuples=queries.SPECIFIED):
    """A scan, and a tenth by an index that isn't clustered, which reads so many pages."""
    each = (("q1", *scan, SEQ), ("q3", 1000, 33, SEQ), ("q4", 3000, 45, SEQ))
    return of_postgres95(*each, ("q6", 3000, apart, plan), tuples=tuples)


def updated(by_index, by_scan, scanned=SEQ):
    """An update without an index, with one, and with its tuple found by a scan."""
    asked = (("q31", (1, 1), INDEX), ("q32", by_index, INDEX), ("scanned", by_scan, scanned))
    return of_postgres95(*((key, 1000 * n, 10 * pages, plan) for key, (n, pages), plan in asked))


def joined(slow, quick, executed, touched, costs=0, tuples=queries.SPECIFIED):
    """Joins as planned with the costs of 1990, or with Postgres95's own."""
    both = (*((one, executed, touched) for one in slow), *((one, 1, 1) for one in quick))
    each = [(one, round(1000 * more), round(1000 * pages), "") for one, more, pages in both]
    how = {"costs": [*postgres95.PLANNERS][costs], "forbidden": "nothing"}
    how |= {"plan": "Nested Loop", "joins": "nested loop"}
    [found] = of_postgres95(*each, tuples=tuples).values()
    return {"postgres95_joins": [row | how for row in found]}


OF_CLUSTERED = (postgres95.CLUSTERED, postgres95.UNINDEXED)
OF_SCATTERED = (("q13",), ("q16",))
MINIMA = ("q20", "q23", "q21", "q24")  # of all, and by group: without an index, and with one


def minima(instructions, pages, tuples=queries.SPECIFIED):
    """Half of the pages are temporaries', and of another process, which executes a third."""
    kinds = ("catalog_reads", "temporary_reads", "temporary_writes", "relation_reads")
    none = dict.fromkeys((*kinds, "relation_writes"), 0)
    found = [
        none
        | {"query": query, "tuples": tuples, "instructions": share * executed}
        | {kind: touched // 2}
        for query, executed, touched in zip(MINIMA, instructions, pages, strict=True)
        for kind, share in (("relation_reads", 2), ("temporary_writes", 1))
    ]
    return {"ingres_queries": found}


# Instructions without what serves a feature, which today mustn't decide.
THIRTY_YEARS = """
build                     year  query  instructions  without_rules  without_types  without_versions
postgres95-no-assertions  1996  q1     {0}           {1}            {2}            {3}
postgres95-no-assertions  1996  q9     {0}           {1}            {2}            {3}
bundled                   2025  q1     1000          500            500            500
bundled                   2025  q9     1000          500            500            500
"""


def featured(*without):
    """What is left of a thousand without looking for rules, without users' types, and versions."""
    together = 1000 - sum(1000 - left for left in without)
    rows = counted(THIRTY_YEARS, 1000, *without)
    return {"thirty_years": [row | {"without_features": together} for row in rows]}


@pytest.mark.parametrize(
    ("claim", "tables", "said"),
    [
        # what sums up the printed column is recomputed from it
        *((claim, {}, "holds") for claim in ("lai-027", "lai-029", "lai-030")),
        # what a clustered index saves is weighed by the waiting that the figure tells
        ("lai-031", saved((9350, 310), 968), "holds"),
        ("lai-031", saved((5960, 371), 968), "weaker"),
        # by fewer pages more, each waited longer, and more of query 3's time was waiting
        ("lai-031", saved((5960, 371), 260), "holds"),
        ("lai-031", saved((30_000, 900), 968), "stronger"),
        ("lai-031", saved((500, 16), 968), "reversed"),
        ("lai-031", saved((1000, 33), 968), "no effect"),
        ("lai-031", saved((9350, 310), 968, plan=SEQ), UNTESTED),
        ("lai-031", saved((9350, 310), 968, tuples=SMALL), UNTESTED),
        # a tenth by index is weighed by the report's waiting
        *(
            ("lai-032", of_postgres95(("q2", 1000, 345, SEQ), ("q6", *by_index, plan)), said)
            for *by_index, plan, said in (
                (1000, 345, INDEX, "holds"),
                (800, 1000, INDEX, "holds"),
                (400, 1000, INDEX, "not so"),
                (400, 345, INDEX, "not so"),
                (1000, 345, SEQ, UNTESTED),
            )
        ),
        ("lai-033", slower(SELECTED, 1.51, 9.0), "holds"),
        ("lai-033", slower(SELECTED, 1.14, 9.0), "holds"),  # less of either is less time
        ("lai-033", slower(SELECTED, 0.9, 0.9), "reversed"),
        ("lai-033", slower(SELECTED, 1.0, 9.0), "partly"),
        ("lai-033", slower(SELECTED, 1.0, 0.5), "no effect"),
        ("lai-033", slower(SELECTED, 1.51, 9.0, tuples=SMALL), UNTESTED),
        # in print, three joins with a clustered index over the same without one
        ("lai-034", joined(*OF_CLUSTERED, 1.19, 1.19), "holds"),
        ("lai-034", joined(*OF_CLUSTERED, 2.0, 2.0), "stronger"),
        ("lai-034", joined(*OF_CLUSTERED, 1.08, 1.08), "weaker"),
        ("lai-034", joined(*OF_CLUSTERED, 0.5, 0.1), "reversed"),
        ("lai-034", joined(*OF_CLUSTERED, 1.19, 0.1), "partly"),
        ("lai-034", joined(*OF_CLUSTERED, 1.0, 1.0), "no effect"),
        ("lai-034", joined(*OF_CLUSTERED, 1.19, 1.19, costs=1), UNTESTED),
        ("lai-034", joined(*OF_CLUSTERED, 1.19, 1.19, tuples=SMALL), UNTESTED),
        # and query 13 over 16
        ("lai-035", joined(*OF_SCATTERED, 1.39, 1.39), "holds"),
        ("lai-035", joined(*OF_SCATTERED, 2.0, 2.0), "stronger"),
        ("lai-035", joined(*OF_SCATTERED, 1.1, 1.1), "weaker"),
        ("lai-035", joined(*OF_SCATTERED, 0.9, 0.1), "reversed"),
        ("lai-035", joined(*OF_SCATTERED, 1.39, 0.1), "partly"),
        ("lai-035", joined(*OF_SCATTERED, 1.0, 1.0), "no effect"),
        ("lai-035", joined(*OF_SCATTERED, 1.39, 1.39, costs=1), UNTESTED),
        ("lai-035", joined(*OF_SCATTERED, 1.39, 1.39, tuples=SMALL), UNTESTED),
        ("lai-036", slower(PROJECTED, 3.07, 3.07), "holds"),
        ("lai-036", slower(PROJECTED, 9.0, 4.6), "stronger"),
        ("lai-036", slower(PROJECTED, 1.0, 3.07), "partly"),
        ("lai-036", slower(PROJECTED, 3.07, 3.07, tuples=SMALL), UNTESTED),
        ("lai-037", slower(DELETED, 20, 20), "holds"),
        ("lai-037", slower(DELETED, 38, 88), "stronger"),
        ("lai-037", slower(DELETED, 5, 38), "partly"),
        ("lai-037", slower(DELETED, 20, 20, tuples=SMALL), UNTESTED),
        ("lai-038", slower(INSERTED, 1.43, 1.43), "holds"),
        ("lai-038", slower(INSERTED, 2.0, 2.0), "stronger"),
        ("lai-038", slower(INSERTED, 1.2, 1.2), "weaker"),
        ("lai-038", slower(INSERTED, 1.43, 0.3), "partly"),
        # parsing is most of an insert's instructions, and they are exact
        ("lai-038", slower(INSERTED, 0.95, 0.3), "reversed"),
        ("lai-038", slower(INSERTED, 1.04, 1.04), "weaker"),
        ("lai-038", slower(INSERTED, 1.0, 1.0), "no effect"),
        ("lai-038", slower(INSERTED, 1.43, 1.43, tuples=SMALL), UNTESTED),
        # an update is judged as its printed time has it, found by a scan
        ("lai-039", updated((1, 1), (15, 15)), "holds"),
        ("lai-039", updated((1, 1), (15, 36)), "partly"),
        ("lai-039", updated((1, 1), (19, 36)), "stronger"),
        ("lai-039", updated((15, 15), (1, 1)), "no effect"),
        ("lai-039", updated((2, 2), (3, 40)), "partly"),
        ("lai-039", updated((2, 2), (3, 4)), "weaker"),
        ("lai-039", updated((1, 1), (15, 36), scanned=INDEX), UNTESTED),
        # what an index does for MIN is read off instructions and pages
        ("lai-040", minima((9000, 9000, 4700, 6000), (9000, 9000, 4700, 6000)), "holds"),
        # no printed difference
        ("lai-040", minima((9000, 9500, 4700, 9000), (9000, 8910, 4700, 5990)), "holds"),
        ("lai-040", minima((9000, 9000, 4700, 6000), (9000, 9000, 4700, 4700)), "partly"),
        ("lai-040", minima((9000, 9000, 4700, 4700), (9000, 9000, 4700, 6000)), "partly"),
        # more, not so much
        ("lai-040", minima((9000, 9000, 4700, 5500), (9000, 9000, 4700, 5500)), "partly"),
        ("lai-040", minima((9000, 8800, 4700, 5500), (9000, 90, 4700, 4700)), "not so"),
        ("lai-040", minima((9000, 8800, 4700, 4500), (9000, 90, 4700, 4000)), "reversed"),
        (
            "lai-040",
            minima((9000, 9000, 4700, 6000), (9000, 9000, 4700, 6000), tuples=SMALL),
            UNTESTED,
        ),
        # what features cost who does not use them is read off Postgres95
        ("lai-041", featured(900, 950, 800), "holds"),
        ("lai-041", featured(990, 990, 990), "holds"),  # together a fiftieth, none by itself
        ("lai-041", featured(1000, 1000, 990), "not so"),
        # by the instructions of then
        *(
            ("lai-042", {"thirty_years": counted(THIRTY_YEARS, then, 1, 1, 1)}, said)
            for then, said in ((3000, "holds"), (1000, "no effect"), (333, "reversed"))
        ),
    ],
)
def test_what_the_rules_make_of_rows(claim, tables, said):
    assert word(claim, "wisconsin", **tables) == said
