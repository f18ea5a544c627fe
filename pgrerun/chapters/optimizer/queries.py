"""The report's queries as printed, the SQL that `pgrerun.lab.quel` makes of them, and the relations
that they need.

Set 1 is Figure 2.4, set 2 Figure 2.5, set 3 Figure 2.6.
"""

from collections.abc import Sequence

import psycopg

from pgrerun.chapters.optimizer.variants import SQL
from pgrerun.lab.postgres95 import Backend, in_all_releases
from pgrerun.lab.quel import figures
from pgrerun.lab.relations import Wisconsin, loading
from pgrerun.lab.server import Server
from pgrerun.lab.testbed import Testbed
from pgrerun.record import printed

# The relations of set 1: of the report's size, and of the size that the parameter says.
REPORT, TIMED = "tenk1", "scanned"
CLUSTERED, SHUFFLED = "clustered", "not clustered"
ATTRIBUTES = {CLUSTERED: "unique2", SHUFFLED: "unique1"}
SMALL, LARGE = "report", "large"  # sizes of set 2: the report's, and as many times that
# in print, of onek1 and onek2, and of tenk1 and tenk2
SMALL_TUPLES, LARGE_TUPLES = (
    int(printed.cell("optimizer_said", key, "value")) for key in ("small_tuples", "large_tuples")
)


def tuples(bed: Testbed, relation: str) -> int:
    """Tuples of one of the relations of set 1."""
    return int(bed.parameters.tuples) if relation == TIMED else LARGE_TUPLES


def sizes(bed: Testbed) -> dict[str, int]:
    """Tuples of the relations of set 2 at either size."""
    return {SMALL: SMALL_TUPLES, LARGE: bed.parameters.times * SMALL_TUPLES}


def joined(size: str, indexed: bool) -> tuple[str, str]:
    """The two relations of set 2: with and without B-trees they are relations of their own."""
    stem = ("onek" if size == SMALL else "manyk") + ("_indexed" if indexed else "")
    return f"{stem}1", f"{stem}2"


# ---- loading


def load_scanned(bed: Testbed, *relations: str) -> Server:
    """The server under test with relations of set 1, which have B-trees on unique2, the order of
    their tuples, and on unique1, a random one.
    """
    for relation in relations:
        order = 2 if relation.endswith("2") else 1
        _load_once(bed, relation, tuples(bed, relation), ("unique2", "unique1"), order)
    return bed.server


def load_joined(bed: Testbed, *only: str) -> Server:
    """The server under test with the relations of set 2, with and without B-trees, at all sizes or
    these only.
    """
    for size in only or (SMALL, LARGE):
        for indexes in ((), ("unique2",)):
            for order, name in enumerate(joined(size, bool(indexes)), start=1):
                _load_once(bed, name, sizes(bed)[size], indexes, order)
    return bed.server


def _load_once(bed: Testbed, name: str, tuples: int, indexes: Sequence[str], order: int) -> None:
    with bed.server.connect() as connection:
        if loading.holds(connection, name, tuples):
            return
    relation = Wisconsin(name, tuples, attributes="1990", order=order)
    relation.load(bed.server, indexes=indexes)
    if bed.server.can("checkpoint"):  # nothing of the load is written while something is timed
        with bed.server.connect() as connection:
            connection.execute("CHECKPOINT")


# ---- set 1


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


def scan_of(bed: Testbed, relation: str, layout: str, selectivity: float) -> str:
    """The same on one of the chapter's relations, by the attribute with this layout."""
    return scan(relation, tuples(bed, relation), selectivity, ATTRIBUTES[layout])


# ---- set 2

JOIN_QUERIES = (1, 2, 3, 4, 5, 6)
EQUAL = (1, 2, 3, 4)  # those that join by equality
UNINDEXED = (1, 3)  # of those, the ones without B-trees: their nested loop grows with the square
UNEQUAL = (5, 6)  # those that join by "less than"


def join(bed: Testbed, query: int, size: str) -> str:
    """One of Figure 2.5's six queries, which stores all 32 attributes.

    With larger relations than the report's, the bound 100 of queries 3 and 4 grows with them and
    their selectivity stays; in queries 5 and 6 the bounds stay, or the result would grow with the
    square.
    """
    figure = figures.queries("2.5")[query - 1]
    one, two = joined(size, figure.indexed)
    text = figure.text
    if query in (3, 4):
        text = text.replace("< 100)", f"< {100 * sizes(bed)[size] // SMALL_TUPLES})")
    [(_, sql)] = figures.translated(text, onek1=one, onek2=two)
    return sql


def load_joined_postgres95(backend: Backend) -> None:
    """The relations of set 2 at the report's size on Postgres95."""
    for indexed in (False, True):
        for order, name in enumerate(joined(SMALL, indexed), start=1):
            _load_postgres95(backend, name, SMALL_TUPLES, indexed, order)
    backend.run([backend.release.analyze])


def load_scanned_postgres95(backend: Backend) -> None:
    """The first relation of set 1 at the report's size on Postgres95, with a B-tree on unique2."""
    _load_postgres95(backend, REPORT, LARGE_TUPLES, True, 1)
    backend.run([backend.release.analyze])


def _load_postgres95(backend: Backend, name: str, tuples: int, indexed: bool, order: int) -> None:
    """Load a relation, and tell the catalog its least and its greatest key, which the report's
    correction has users insert.
    """
    source = Wisconsin(name, tuples, attributes="1990", order=order)
    index = f"CREATE INDEX {name}_key ON {name} USING btree (unique2 int4_ops)"
    further = [index] if indexed else []
    for operator in ("<", ">"):
        ends = {"relation": name, "greatest": str(tuples - 1), "operator": operator}
        further.append(SQL.line("statistics.ends_of_postgres95", **ends))
    backend.load(source.create_sql, source.tuples(), *further)


BOUNDS = (AS_PRINTED, UPPER) = ("as printed", "the upper alone")


def scan_of_postgres95(selectivity: float, bounds: str) -> str:
    """The first query of set 1 in the words of Postgres95, with both its bounds or the upper one:
    the lower leaves out two tuples.
    """
    found = in_all_releases(scan(REPORT, LARGE_TUPLES, selectivity))
    return found if bounds == AS_PRINTED else found.partition(" AND ")[0]


# ---- set 3


def ranges() -> dict[str, str]:
    """Figure 2.6's four queries, which look at estimates: q1 to q4 -> SQL."""
    return {
        f"q{query.label}": figures.translated(query.text)[0][1] for query in figures.queries("2.6")
    }


def qualification(statement: str) -> str:
    """What stands after WHERE in one of Figure 2.6's queries, without the relation's name."""
    return statement.partition(" WHERE ")[2].replace(f"{REPORT}.", "")


# ---- what becomes of results


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
