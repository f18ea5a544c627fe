"""The slides' relations, and how their statements are planned and timed under settings.

They hold Wisconsin tuples, with a primary key on unique2; one is never vacuumed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg import sql

from pgrerun.lab import statements
from pgrerun.lab.instruments import clock, plans
from pgrerun.lab.relations import Wisconsin, loading
from pgrerun.lab.server import Server, releases, set_session
from pgrerun.lab.testbed import Testbed
from pgrerun.record import printed

SQL = statements.sql_folder(__file__)
SMALL, LARGE = 100_000, 1_000_000
# Of a relation that no slide has: joined with one of three times its size, where the hash join and
# the merge join cost about the same.
THIRD = SMALL // 3
NEVER_VACUUMED = "hundredktup_new"
ONE_PROCESS = {"max_parallel_workers_per_gather": 0}  # nothing to set before 9.6
_NAMES = {SMALL: "hundredktup", LARGE: "miltup", 10_000_000: "tenmiltup"}

Settings = Mapping[str, str | int]


def name(tuples: int) -> str:
    """The slides' name of the relation of this size, or one made of the size."""
    return _NAMES.get(tuples, f"tup{tuples}")


def heap_pages(tuples: int) -> int:
    """Pages of a freshly loaded relation, by its layout."""
    return int(printed.value("wisconsin_pages(?)", tuples))


def sizes(bed: Testbed) -> list[int]:
    """Of the size-up, in tuples: evenly spaced powers, a hundredfold in all, up to the largest."""
    steps = 2 * bed.parameters.per_decade
    exact = [bed.parameters.largest / 100 ** (step / steps) for step in range(steps, -1, -1)]
    return [
        round(size) if round(size) % 100 == 0 else int(float(f"{size:.1e}"))  # two digits
        for size in exact
    ]


def keyed(
    server_or_connection: Server | psycopg.Connection,
    relation: str,
    tuples: int,
    order: int = 1,
    logged: bool = True,
) -> None:
    """Load one relation with its primary key, vacuumed and analyzed. One only read needs no WAL."""
    with loading.session(server_or_connection) as connection:
        if loading.is_ours(connection, relation):
            return
        Wisconsin(relation, tuples, order=order).load(connection, logged=logged)
        SQL.run(connection, "relations.key", relation=relation)


@contextmanager
def connected(bed: Testbed, *tuples: int) -> Iterator[psycopg.Connection]:
    """A connection to the server under test, which has the relations of these sizes.

    And the copy of hundredktup as CREATE TABLE leaves it: no page is marked all-visible.
    """
    with bed.server.connect() as connection:
        for size in {SMALL: "", **dict.fromkeys(tuples)}:
            keyed(connection, name(size), size, logged=False)
        if not loading.is_ours(connection, NEVER_VACUUMED):
            loading.make(connection, NEVER_VACUUMED, SQL.text("relations.never_vacuumed"))
            SQL.run(connection, "relations.key", relation=NEVER_VACUUMED)
            SQL.run(connection, "relations.analyze", relation=NEVER_VACUUMED)
        yield connection


# ---- their statements


@contextmanager
def with_settings(connection: psycopg.Connection, settings: Settings) -> Iterator[None]:
    """Give a session these settings, and take them back afterwards."""
    set_session(connection, settings)
    try:
        yield
    finally:
        for setting in settings:
            # one that the release doesn't know was left out, as what it switches off isn't there
            if releases.knows(connection.info.server_version, setting):
                connection.execute(sql.SQL("RESET {}").format(sql.Identifier(setting)))


def explained(
    connection: psycopg.Connection, statement: str, settings: Settings, execute: bool = False
) -> plans.Plan:
    with with_settings(connection, settings):
        return plans.explain(connection, statement, execute=execute)


def workers(plan: plans.Plan, which: str) -> int:
    """How many workers are "Planned" or were "Launched" for a plan's Gather; 0 without one."""
    return max(node.properties.get(f"Workers {which}", 0) for node in plan.walk())


def milliseconds(
    connection: psycopg.Connection,
    statement: str,
    settings: Settings,
    seconds: float = 0,
    before: Callable[[], object] = lambda: None,
) -> float:
    """Mean time of a statement repeated for so long, tuples fetched and all; once at least.

    `before` isn't timed and runs before each.
    """
    text = statement.encode()

    def once() -> float:
        before()
        with clock.stopwatch() as watch:
            cursor = connection.execute(text)
            if cursor.description:
                cursor.fetchall()
        return watch.seconds

    with with_settings(connection, settings):
        times = clock.repeated(once, seconds)
    return 1000 * sum(times) / len(times)
