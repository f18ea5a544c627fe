"""What is counted of the queries: answers, plans, pages, WAL records, instructions, bytes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pgrerun.chapters.wisconsin import contenders, queries
from pgrerun.chapters.wisconsin.contenders import (
    CONFINED,
    PLAIN,
    POSTGRESQL,
    SCANS,
    SEQUENTIAL,
    SQL,
    DuckDB,
    PostgreSQL,
)
from pgrerun.chapters.wisconsin.queries import BY_KEY, KEYS, QUERIES, SPECIFIED, Instance
from pgrerun.lab.instruments import callgrind, plans, sizes
from pgrerun.lab.relations import Wisconsin
from pgrerun.lab.relations.checksum import Answers
from pgrerun.lab.testbed import Row, Testbed, experiment

INSERTS = ("q26", "q29")
CHANGES = (*INSERTS, "q27", "q30", "q28", "q31", "q32", "plain")
# each query's tuples on a page, seen by all or to be looked at one by one
SEEN, CHECKED = "all visible", "to be checked"


def explain(
    engine: PostgreSQL, instance: Instance, execute: bool = True, stored: bool = True
) -> plans.Plan:
    """The plan of a query; unless `stored`, of one that shows its result."""
    sql = engine.sql(instance) if stored else contenders.shown(instance)
    return plans.explain(engine.connection, sql, execute=execute)


@experiment(units={"postquel": "text", "tuples": "tuples", "checksum": ""})
def answers(bed: Testbed, tuples: int = SPECIFIED) -> Iterator[Row]:
    """Every query as specified, with the answer on which PostgreSQL and DuckDB agree.

    RerunError if they don't.
    """
    known = Answers()
    with PostgreSQL(bed.server) as postgresql, DuckDB() as duckdb:
        for engine in (postgresql, duckdb):
            engine.load(tuples)
        for query in QUERIES:
            instance = queries.instance(query, tuples)
            for engine in (postgresql, duckdb):
                engine.run(instance)
                found = engine.answer(instance)
                engine.tidy(instance)
                known.compare(f"Query {query.key}", engine.name, found)
            yield {
                "query": query.key,
                "postquel": queries.as_specified(query.key),
                "tuples": found[0],
                "checksum": found[1],
            }


@experiment(units={"as_it_chooses": "text", "nested_loops_only": "text"})
def chosen_plans(bed: Testbed, tuples: int = SPECIFIED) -> Iterator[Row]:
    """The plans at the report's size, as PostgreSQL chooses and confined to nested loops."""
    with PostgreSQL(bed.server) as free, PostgreSQL(bed.server, CONFINED) as confined:
        free.load(tuples)
        for key in KEYS:
            instance = queries.instance(BY_KEY[key], tuples)
            yield {
                "query": key,
                "as_it_chooses": explain(free, instance, execute=False).shape(),
                "nested_loops_only": explain(confined, instance, execute=False).shape(),
            }


@experiment(units={"rejected": "pairs", "joined": "tuples"})
def pairs_compared(bed: Testbed, tuples: int = SPECIFIED) -> Iterator[Row]:
    """Pairs of tuples that nested loops found not to match, and tuples that they joined.

    A restricted relation is its first tenth, so that joinABprime counts as joinAselB.
    """
    with PostgreSQL(bed.server, CONFINED) as confined:
        confined.load(tuples)
        for key in ("q9", "q11", "q12", "q14"):
            executed = explain(confined, queries.instance(BY_KEY[key], tuples))
            rejected = sum(
                int(node.properties.get("Rows Removed by Join Filter", 0) * (node.loops or 0))
                for node in executed.walk()
            )
            yield {"query": key, "rejected": rejected, "joined": int(executed.rows_actual or 0)}


@experiment(units={"node": "text", "pages": "pages", "tuples": "tuples"})
def pages_touched(bed: Testbed, tuples: int = SPECIFIED) -> Iterator[Row]:
    """Pages of relation and index that selections and MIN touch, and a tenth by each scan."""
    chosen = [(POSTGRESQL, f"q{number}") for number in (*range(1, 7), 20, 23, 21, 24)]
    for name, key in [*chosen, *((scan, "q6") for scan in SCANS)]:
        with PostgreSQL(bed.server, name) as engine:
            engine.load(tuples)
            found = explain(engine, queries.instance(BY_KEY[key], tuples), stored=False)
        yield {
            "query": key,
            "scan": "as it chooses" if name == POSTGRESQL else name,
            "node": found.node_type,
            "pages": found.page_accesses,
            "tuples": int(found.rows_actual or 0),
        }


@experiment(units={"found_by": "text", "pages": "pages", "wal_records": "records"})
def changes(bed: Testbed, tuples: int = SPECIFIED) -> Iterator[Row]:
    """Pages touched and WAL records of the changes of one tuple, at the report's size.

    The relation is loaded anew for each, so that none finds room that another has left.
    """
    with PostgreSQL(bed.server) as engine:
        engine.load(tuples)
        for key in CHANGES:
            engine.load_relation("tenk1", tuples, BY_KEY[key].state)
            instance = queries.instance(BY_KEY[key], tuples)
            engine.run_quel(instance.before)
            sql = engine.sql(instance)
            with engine.connection.transaction(force_rollback=True):
                engine.execute(sql)  # the session learns the relation's catalog entries
            executed = plans.explain(engine.connection, sql, execute=True, wal=True)
            yield {
                "query": key,
                "found_by": executed.children[0].shape() if executed.children else "",
                "pages": executed.page_accesses,
                "wal_records": executed.properties.get("WAL Records", 0),
            }
            if instance.before:  # its tuple is still there: the plan's own execution was undone
                engine.run(replace(instance, before=""))


@experiment(units={"instructions": "instructions"})
def instructions(bed: Testbed) -> Iterator[Row]:
    """Instructions of scans at the report's size, with nothing stored, and of inserting a tuple.

    A tenth by each scan through the index that isn't clustered. A count over the same tuples: from
    pages that say that all of them are visible to all, and from pages that don't. There one tuple
    of each was deleted by a transaction that was rolled back. An insert without an index, and with.
    """
    cluster = bed.cluster()
    instance = queries.instance(BY_KEY["q6"], SPECIFIED)
    inserts = [queries.instance(BY_KEY[key], SPECIFIED) for key in INSERTS]
    relations = {SEEN: "seen", CHECKED: "checked"}
    with PostgreSQL(cluster) as engine:
        engine.load(SPECIFIED)
        for name in relations.values():
            Wisconsin(name, SPECIFIED).load(engine.connection, vacuum=False)
            SQL.run(engine.connection, "relations.vacuum", relation=name)
        per_page = SPECIFIED // sizes.pages(engine.connection, "checked")
        with engine.connection.transaction(force_rollback=True):
            SQL.run(engine.connection, "versions.delete", relation="checked", per_page=per_page)
    free: Mapping[str, str] = dict.fromkeys(contenders.SETTINGS[PLAIN], "on")
    tenth = f"{contenders.shown(instance)} OFFSET {SPECIFIED}"
    counted = {("q6", scan, SEEN): (contenders.SETTINGS[scan], tenth) for scan in SCANS}
    counted |= {
        ("count", SEQUENTIAL, pages): (free, SQL.text("versions.scan", relation=name))
        for pages, name in relations.items()
    }
    counted |= {(one.query.key, "", ""): (free, engine.sql(one)) for one in inserts}
    found = callgrind.executed(cluster, counted)
    with PostgreSQL(cluster) as engine:
        for one in inserts:
            engine.tidy(one)
        for name in relations.values():
            engine.execute(f"DROP TABLE {name}")
    for query, scan, pages in counted:
        number = int(found[query, scan, pages])
        yield {"query": query, "scan": scan, "tuples_are": pages, "instructions": number}


@experiment(units={"bytes": "bytes"})
def tuple_bytes(bed: Testbed) -> Iterator[Row]:
    """What a tuple takes on its page."""
    with PostgreSQL(bed.server) as engine:
        engine.load(SPECIFIED)
        bed.server.extension("pageinspect")
        [(length, header)] = engine.execute(SQL.text("relations.tuple_on_page"))
    attributes = 13 * 4 + 3 * 52
    yield {"part": "attributes", "bytes": attributes}
    yield {"part": "lengths of the strings", "bytes": length - header - attributes}
    yield {"part": "header: versions and the like", "bytes": header}
    yield {"part": "line pointer", "bytes": 4}


@experiment(units={"touched": "pages", "read": "pages"})
def miniature_pages(bed: Testbed, tuples: int = SPECIFIED // 10) -> Iterator[Row]:
    """Pages of 1024 bytes that the miniature of INGRES touches and reads.

    Read are those that its cache hasn't, which is empty before each query.
    """
    base = contenders.miniature(tuples)
    for key in KEYS:
        touched, read = contenders.pages_of(base, queries.instance(BY_KEY[key], tuples))
        yield {"query": key, "tuples": tuples, "touched": touched, "read": read}
