"""The report's relations and queries as printed, the SQL that `pgrerun.quel` makes of them, and how a plan is forced.

Set 1 is Figure 2.4, set 2 Figure 2.5, set 3 Figure 2.6. Forcing works today as it did then, by flags that
take a method away (PostgreSQL documentation, "Planner Method Configuration").
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import psycopg

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.instruments import plans
from pgrerun.quel import figures
from pgrerun.relations import Wisconsin
from pgrerun.server import set_session

# ---- forcing

SEQUENTIAL, INDEX, BITMAP, INDEX_ONLY = "sequential scan", "index scan", "bitmap scan", "index-only scan"
NESTED, HASH, MERGE = "nested loop", "hash join", "merge join"
# Method -> the settings that allow it; all others of its family are switched off.
SCANS = {
    SEQUENTIAL: {"enable_seqscan"}, INDEX: {"enable_indexscan"}, BITMAP: {"enable_bitmapscan"},
    INDEX_ONLY: {"enable_indexonlyscan", "enable_indexscan"},
}  # fmt: skip
JOINS = {NESTED: {"enable_nestloop"}, HASH: {"enable_hashjoin"}, MERGE: {"enable_mergejoin"}}
NODES = {
    SEQUENTIAL: "Seq Scan", INDEX: "Index Scan", BITMAP: "Bitmap Heap Scan", INDEX_ONLY: "Index Only Scan",
    NESTED: "Nested Loop", HASH: "Hash Join", MERGE: "Merge Join",
}  # fmt: skip
# One process, as in 1990; a statement's first execution is like every other.
SESSION = {"max_parallel_workers_per_gather": 0, "jit": "off"}


@contextmanager
def session(server) -> Iterator[psycopg.Connection]:
    """A connection whose statements run in one process."""
    with server.connect() as connection:
        set_session(connection, SESSION)
        yield connection


@contextmanager
def forced(connection: psycopg.Connection, method: str) -> Iterator[None]:
    """Leave the planner no other scan, or no other join, than `method` for the length of a block."""
    family = SCANS if method in SCANS else JOINS
    others = set().union(*family.values()) - family[method]
    for name in others:
        connection.execute(f"SET {name} = off")
    try:
        yield
    finally:
        for name in others:
            connection.execute(f"RESET {name}")


def method_of(plan: plans.Plan) -> str:
    """The scan (of a single relation) or the join (the topmost) of a plan, in the report's words."""
    names = {node: method for method, node in NODES.items()}
    found = next((names[node.node_type] for node in plan.walk() if node.node_type in names), plan.node_type)
    return found


# ---- the relations

REPORT = "report"  # relations of the report's size
LARGE = "large"  # as many times that as the parameter says


def small_tuples() -> int:
    """Tuples of onek1 and onek2 in print."""
    return int(published.cell("optimizer_said", "small_tuples", "value"))


def large_tuples() -> int:
    """Tuples of tenk1 and tenk2 in print."""
    return int(published.cell("optimizer_said", "large_tuples", "value"))


def load_scanned(server, name: str, tuples: int, order: int = 1) -> None:
    """A relation of set 1 with B-trees on unique2, the order of its tuples, and on unique1, which has nothing to do with it."""
    Wisconsin(name, tuples, attributes="1990", order=order).load(server)
    with server.connect() as connection:
        for attribute in ("unique2", "unique1"):
            connection.execute(f"CREATE INDEX {name}_{attribute} ON {name} ({attribute})")
        connection.execute(f"VACUUM (ANALYZE) {name}")
        if server.can("checkpoint"):
            connection.execute("CHECKPOINT")  # nothing of the load is left to be written while scans are timed


def joined(size: str, indexed: bool) -> tuple[str, str]:
    """Names of the two relations of set 2: with and without B-trees they are relations of their own."""
    stem = ("onek" if size == REPORT else "manyk") + ("_indexed" if indexed else "")
    return f"{stem}1", f"{stem}2"


def load_joined(server, size: str, tuples: int) -> None:
    """The relations of set 2, twice: as they are loaded, and with a clustered B-tree on unique2."""
    for indexed in (False, True):
        for number, name in enumerate(joined(size, indexed), start=1):
            Wisconsin(name, tuples, attributes="1990", order=number).load(server)
            with server.connect() as connection:
                if indexed:
                    connection.execute(f"CREATE INDEX {name}_unique2 ON {name} (unique2)")
                connection.execute(f"VACUUM (ANALYZE) {name}")


# ---- the queries


def steps() -> list[float]:
    """The selectivities of Figure 2.4: 0.1 to 0.9."""
    return published.derived("optimizer_set1")["selectivity"].round(4).tolist()


def scan(relation: str, tuples: int, selectivity: float, attribute: str = "unique2") -> str:
    """Figure 2.4's first query, which stores a share of a relation whose keys count from 0.

    As printed for tenk1 and the tenths of 10 000 tuples; else with the relation, the upper bound and the attribute in their places.
    """
    text = figures.printed("2.4").splitlines()[0].replace("X002", f" {round(selectivity * tuples) + 2}").replace("unique2", attribute)
    [(_, sql)] = figures.translated(text, tenk1=relation)
    return sql


JOIN_QUERIES = (1, 2, 3, 4, 5, 6)


def join_query(query: int, size: str, tuples: int) -> str:
    """One of Figure 2.5's six queries, which stores all 32 attributes.

    With larger relations than the report's, the bound 100 of queries 3 and 4 grows with them and their selectivity
    stays; in queries 5 and 6 the bounds stay, or the result would grow with the square.
    """
    found = figures.queries("2.5")[query - 1]
    one, two = joined(size, found.indexed)
    text = found.text
    if query in (3, 4):
        text = text.replace("< 100)", f"< {100 * tuples // small_tuples()})")
    [(_, sql)] = figures.translated(text, onek1=one, onek2=two)
    return sql


def selected(statement: str) -> str:
    """The SELECT of a statement that stores its result: what the planner plans."""
    return statement.partition(" AS ")[2] if statement.startswith("CREATE TABLE") else statement


def counted(statement: str) -> str:
    """The same tuples, counted instead of stored."""
    return f"SELECT count(*) FROM ({selected(statement)}) AS found"


def store_in_memory(connection: psycopg.Connection) -> None:
    """Have CREATE TABLE make temporary relations from here on, which write no log; the statements stay as they are."""
    connection.execute("SELECT set_config('search_path', 'pg_temp, ' || current_setting('search_path'), false)")


def destroy(connection: psycopg.Connection) -> None:
    """Drop the relations into which queries have stored, outside of any measurement."""
    connection.execute("DROP TABLE IF EXISTS pg_temp.temp1, pg_temp.temp2, pg_temp.temp3")


def ranges() -> dict[str, str]:
    """Figure 2.6's four queries, which look at estimates: q1 to q4 -> SQL."""
    return {f"q{query.label}": figures.translated(query.text)[0][1] for query in figures.queries("2.6")}


def in_sql() -> pd.DataFrame:
    """The report's queries (Figures 2.4 to 2.6) beside what is run here: query, POSTQUEL, SQL; the lists of attributes cut short."""
    listed = [("set 1", figures.printed("2.4").splitlines()[0], scan("tenk1", large_tuples(), steps()[0]))]
    listed += [(f"set 2, query {query.label}", *figures.translated(query.text)[0]) for query in figures.queries("2.5") if not query.indexed]
    listed += [(f"set 3, query {query.label}", *figures.translated(query.text)[0]) for query in figures.queries("2.6")]
    short = lambda text: re.sub(r", (two1 = |onek1.two AS ).*(string4\)|AS st42)", ", …", text)  # noqa: E731
    rows = [(name, short(text), short(sql)) for name, text, sql in listed]
    return pd.DataFrame(rows, columns=["query", "POSTQUEL, as printed", "SQL"])


def apparatus(chapter: Chapter) -> pd.DataFrame:
    """What was there in 1990 and what is here: a row per thing."""
    said, given = published.table("optimizer_said")["value"], chapter.parameters
    rows = [
        ("relation whose scans are planned", f"{said['large_tuples']:,.0f} tuples of {said['tuple_bytes']:.0f} bytes", "the same"),
        ("relation whose scans are timed", "the same", f"{given.tuples:,} tuples"),
        ("relations that are joined", f"{said['small_tuples']:,.0f} tuples each", f"the same, and {given.times * said['small_tuples']:,.0f} tuples each"),
        ("alternatives", "forced by internal flags", "forced by planner settings (enable_…)"),
        ("results", "stored in a relation", "stored in a temporary relation, which writes no log"),
        ("repeats", "not said", f"{given.pairs} blocks, methods in turn"),
        ("processes at work on a statement", "one", "one (parallel plans are switched off)"),
    ]
    return pd.DataFrame(rows, columns=["what", "1990", "here"])
