"""The slides' relations, and how their statements are planned and timed under settings.

They hold Wisconsin tuples, with a primary key on unique2; one is never vacuumed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pandas as pd
import psycopg
from psycopg import sql

from pgrerun.chapter import Chapter
from pgrerun.lab import statements
from pgrerun.lab.instruments import clock, plans
from pgrerun.lab.relations import loading
from pgrerun.lab.relations.wisconsin import Wisconsin
from pgrerun.lab.server import Server, releases, set_session
from pgrerun.page.tables import Table, table
from pgrerun.record.printed.explorations import TUPLES

SQL = statements.beside(__file__)
SMALL, LARGE = TUPLES["hundredktup"], TUPLES["miltup"]
#: of a relation that no slide has: joined with one of three times its size, where the hash join
#: and the merge join cost about the same
THIRD = SMALL // 3
NEVER_VACUUMED = "hundredktup_new"
ONE_PROCESS = {"max_parallel_workers_per_gather": 0}  # nothing to set before 9.6
_NAMES = {tuples: name for name, tuples in TUPLES.items()}


def name(tuples: int) -> str:
    """The slides' name of the relation of this size, or one made of the size."""
    return _NAMES.get(tuples, f"tup{tuples}")


def sizes(chapter: Chapter) -> list[int]:
    """Of the size-up, in tuples: evenly spaced powers, a hundredfold in all, up to the largest.

    The middle one is a tenth of the largest.
    """
    steps = 2 * chapter.parameters.per_decade
    exact = [chapter.parameters.largest / 100 ** (step / steps) for step in range(steps, -1, -1)]
    return [
        round(size) if round(size) % 100 == 0 else int(float(f"{size:.1e}"))  # two digits
        for size in exact
    ]


def wanted(chapter: Chapter) -> dict[str, int]:
    """All relations of Experiments 2, 3 and 4, by name: their tuples."""
    loaded = {name(tuples): tuples for tuples in sorted({THIRD, SMALL, LARGE, *sizes(chapter)})}
    return loaded | {NEVER_VACUUMED: SMALL}


def load(chapter: Chapter, replacing: bool = True) -> Table:
    """Load the relations into the server under test, all of them or the missing; pages of each."""
    columns = ["relation", "pages", "MB", "pages all visible", "pages of the key"]
    rows = []
    with chapter.server.connect() as connection:
        for relation, tuples in wanted(chapter).items():
            if replacing or not loading.is_ours(connection, relation):
                if relation == NEVER_VACUUMED:
                    never_vacuumed(connection)
                else:
                    keyed(connection, relation, tuples, logged=False)
            rows.append(SQL.run(connection, "relations.pages", relation=relation).fetchone())
    pages = pd.DataFrame(rows, columns=columns).astype({"MB": float})
    pages.insert(1, "tuples", list(wanted(chapter).values()))
    return table(pages, "The relations as loaded")


def keyed(
    server_or_connection: Server | psycopg.Connection,
    relation: str,
    tuples: int,
    order: int = 1,
    logged: bool = True,
) -> None:
    """Load one relation with its primary key, vacuumed and analyzed. One only read needs no WAL."""
    with loading.session(server_or_connection) as connection:
        Wisconsin(relation, tuples, order=order).load(connection, logged=logged)
        SQL.run(connection, "relations.key", relation=relation)


def never_vacuumed(connection: psycopg.Connection) -> None:
    """A copy of hundredktup as CREATE TABLE leaves it: analyzed, but no page marked all-visible."""
    with connection.transaction():
        loading.replace(connection, NEVER_VACUUMED, SQL.text("relations.never_vacuumed"))
    SQL.run(connection, "relations.key", relation=NEVER_VACUUMED)
    SQL.run(connection, "relations.analyze", relation=NEVER_VACUUMED)


# ---- their statements

Settings = Mapping[str, str | int]


@contextmanager
def with_settings(connection: psycopg.Connection, settings: Settings) -> Iterator[None]:
    """Give a session these settings, and take them back afterwards."""
    set_session(connection, settings)
    try:
        yield
    finally:
        version = connection.info.server_version
        for setting in settings:
            if not releases.knows(version, setting):
                continue  # left out above, as what it switches off isn't there
            connection.execute(sql.SQL("RESET {}").format(sql.Identifier(setting)))


def explained(
    connection: psycopg.Connection, statement: str, settings: Settings, execute: bool = False
) -> plans.Plan:
    """The plan of a statement under these settings."""
    with with_settings(connection, settings):
        return plans.explain(connection, statement, execute=execute)


def workers(plan: plans.Plan, which: str) -> int:
    """How many workers are "Planned" or were "Launched" for a plan's Gather; 0 without one."""
    return max(node.properties.get(f"Workers {which}", 0) for node in plan.walk())


def milliseconds(
    connection: psycopg.Connection, statement: str, settings: Mapping[str, str | int]
) -> float:
    """Time of one statement under these settings, tuples fetched and all."""
    text = statement.encode()
    with with_settings(connection, settings), clock.stopwatch() as watch:
        cursor = connection.execute(text)
        if cursor.description:
            cursor.fetchall()
    return 1000 * watch.seconds
