"""The report's queries as printed, and the SQL that `pgrerun.lab.quel` makes of them.

Set 1 is Figure 2.4, set 2 Figure 2.5, set 3 Figure 2.6.
"""

import re

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.variants import ATTRIBUTES, REPORT
from pgrerun.lab.quel import figures
from pgrerun.record import printed

SMALL, LARGE = "report", "large"  # sizes of set 2: the report's, and as many times that


def small_tuples() -> int:
    """Tuples of onek1 and onek2 in print."""
    return int(printed.cell("optimizer_said", "small_tuples", "value"))


def large_tuples() -> int:
    """Tuples of tenk1 and tenk2 in print."""
    return int(printed.cell("optimizer_said", "large_tuples", "value"))


def tuples(chapter: Chapter, relation: str) -> int:
    """Tuples of one of the two relations of set 1."""
    return large_tuples() if relation == REPORT else chapter.parameters.tuples


def sizes(chapter: Chapter) -> dict[str, int]:
    """Tuples of the relations of set 2 at either size."""
    return {SMALL: small_tuples(), LARGE: chapter.parameters.times * small_tuples()}


def joined(size: str, indexed: bool) -> tuple[str, str]:
    """The two relations of set 2: with and without B-trees they are relations of their own."""
    stem = ("onek" if size == SMALL else "manyk") + ("_indexed" if indexed else "")
    return f"{stem}1", f"{stem}2"


def steps() -> list[float]:
    """The selectivities of Figure 2.4: 0.1 to 0.9."""
    return printed.derived("optimizer_set1")["selectivity"].round(4).tolist()


def scan(relation: str, tuples: int, selectivity: float, attribute: str = "unique2") -> str:
    """Figure 2.4's first query, which stores a share of a relation whose keys count from 0.

    As printed for tenk1 and the tenths of 10 000 tuples; else with the relation, the upper bound
    and the attribute in their places.
    """
    text = figures.printed("2.4").splitlines()[0]
    text = text.replace("X002", f" {round(selectivity * tuples) + 2}")
    [(_, sql)] = figures.translated(text.replace("unique2", attribute), tenk1=relation)
    return sql


def scan_of(chapter: Chapter, relation: str, layout: str, selectivity: float) -> str:
    """The same on one of the chapter's relations, by the attribute with this layout."""
    return scan(relation, tuples(chapter, relation), selectivity, ATTRIBUTES[layout])


JOIN_QUERIES = (1, 2, 3, 4, 5, 6)
EQUAL = (1, 2, 3, 4)  # those that join by equality
UNINDEXED = (1, 3)  # of those, the ones without B-trees: their nested loop grows with the square


def join(chapter: Chapter, query: int, size: str) -> str:
    """One of Figure 2.5's six queries, which stores all 32 attributes.

    With larger relations than the report's, the bound 100 of queries 3 and 4 grows with them and
    their selectivity stays; in queries 5 and 6 the bounds stay, or the result would grow with the
    square.
    """
    figure = figures.queries("2.5")[query - 1]
    one, two = joined(size, figure.indexed)
    text = figure.text
    if query in (3, 4):
        text = text.replace("< 100)", f"< {100 * sizes(chapter)[size] // small_tuples()})")
    [(_, sql)] = figures.translated(text, onek1=one, onek2=two)
    return sql


def ranges() -> dict[str, str]:
    """Figure 2.6's four queries, which look at estimates: q1 to q4 -> SQL."""
    return {
        f"q{query.label}": figures.translated(query.text)[0][1] for query in figures.queries("2.6")
    }


def qualification(statement: str) -> str:
    """What stands after WHERE in one of Figure 2.6's queries, without the relation's name."""
    return statement.partition(" WHERE ")[2].replace(f"{REPORT}.", "")


def selected(statement: str) -> str:
    """The SELECT of a statement that stores its result: what the planner plans."""
    return statement.partition(" AS ")[2] if statement.startswith("CREATE TABLE") else statement


def discarded(statement: str) -> str:
    """The same tuples, made by the executor and then skipped: neither stored nor sent."""
    return f"{selected(statement)} OFFSET 1000000000"


def counted(statement: str) -> str:
    """The same tuples, counted instead of stored."""
    return f"SELECT count(*) FROM ({selected(statement)}) AS found"


def store_in_memory(connection: psycopg.Connection) -> None:
    """Have CREATE TABLE make temporary relations, which write no log; the statements stay."""
    connection.execute(
        "SELECT set_config('search_path', 'pg_temp, ' || current_setting('search_path'), false)"
    )


def destroy(connection: psycopg.Connection) -> None:
    """Drop the relations into which queries have stored, outside of any measurement."""
    connection.execute("DROP TABLE IF EXISTS pg_temp.temp1, pg_temp.temp2, pg_temp.temp3")


def in_sql() -> pd.DataFrame:
    """The report's queries beside what is run here, the lists of attributes cut short.

    Columns: query, POSTQUEL, as printed, SQL.
    """
    first = figures.printed("2.4").splitlines()[0]
    listed = [("set 1", first, scan("tenk1", large_tuples(), steps()[0]))]
    for number, figure in ((2, "2.5"), (3, "2.6")):
        for query in figures.queries(figure):
            if number == 3 or not query.indexed:
                name = f"set {number}, query {query.label}"
                listed.append((name, *figures.translated(query.text)[0]))
    rows = [(name, _short(text), _short(sql)) for name, text, sql in listed]
    return pd.DataFrame(rows, columns=["query", "POSTQUEL, as printed", "SQL"])


def _short(text: str) -> str:
    return re.sub(r", (two1 = |onek1.two AS ).*(string4\)|AS st42)", ", …", text)


def apparatus(chapter: Chapter) -> pd.DataFrame:
    """What was there in 1990 and what is here: a row per thing."""
    said, given = printed.table("optimizer_said")["value"], chapter.parameters
    small = f"{said['small_tuples']:,.0f} tuples each"
    large = f"{given.times * said['small_tuples']:,.0f} tuples each"
    planned = f"{said['large_tuples']:,.0f} tuples of {said['tuple_bytes']:.0f} bytes"
    stored = "made and then skipped; stored (in a temporary relation) where storing is the question"
    rows = [
        ("relation whose scans are planned", planned, "the same"),
        ("relation whose scans are timed", "the same", f"{given.tuples:,} tuples"),
        ("relations that are joined", small, f"the same, and {large}"),
        ("alternatives", "forced by internal flags", "forced by planner settings (enable_…)"),
        ("results", "stored in a relation", stored),
        ("repeats", "not said", f"up to {given.pairs} blocks, methods in turn"),
        ("processes at work on a statement", "one", "one (parallel plans are switched off)"),
    ]
    return pd.DataFrame(rows, columns=["what", "1990", "here"])
