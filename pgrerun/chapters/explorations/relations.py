"""The slides' relations: Wisconsin tuples with a primary key on unique2, and one that no VACUUM has visited."""

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.published.explorations import TUPLES
from pgrerun.relations import loading
from pgrerun.relations.wisconsin import Wisconsin
from pgrerun.server import Server
from pgrerun.tables import Table, table

SMALL, LARGE = TUPLES["hundredktup"], TUPLES["miltup"]
THIRD = SMALL // 3
"""Of a relation that no slide has: joined with one of three times its size, where both joins cost about the same."""
UNVACUUMED = "hundredktup_new"
KEY = 99_999  # the one that the slides look up
_NAMES = {tuples: name for name, tuples in TUPLES.items()}


def name(tuples: int) -> str:
    """The slides' name of the relation of this size, or one made of the size."""
    return _NAMES.get(tuples, f"tup{tuples}")


def sizes(chapter: Chapter) -> list[int]:
    """Of the size-up, in tuples: evenly spaced powers up to the largest, a hundredfold in all; the middle one is a tenth."""
    steps = 2 * chapter.parameters.per_decade
    return [_two_digits(chapter.parameters.largest / 100 ** (step / steps)) for step in reversed(range(steps + 1))]


def _two_digits(tuples: float) -> int:
    return round(tuples) if round(tuples) % 100 == 0 else int(float(f"{tuples:.1e}"))


def load(chapter: Chapter) -> Table:
    """Load every relation of Experiments 2, 3 and 4 into the server under test; pages of each.

    The primary key is on unique2, and the heap is in its order: the slides' "clustered index".
    """
    with chapter.server.connect() as connection:
        for tuples in loaded(chapter):
            keyed(connection, name(tuples), tuples, logged=False)
        unvacuumed(connection)
        return table(_pages(connection, {name(tuples): tuples for tuples in loaded(chapter)} | {UNVACUUMED: SMALL}), "The relations as loaded")


def loaded(chapter: Chapter) -> list[int]:
    """Sizes of all relations of Experiments 2, 3 and 4, in tuples."""
    return sorted({THIRD, SMALL, LARGE, *sizes(chapter)})


def complete(chapter: Chapter) -> None:
    """Load those of the relations that the server under test doesn't have yet."""
    with chapter.server.connect() as connection:
        missing = lambda relation: connection.execute("SELECT to_regclass(%s) IS NULL", [relation]).fetchone()[0]
        for tuples in loaded(chapter):
            if missing(name(tuples)):
                keyed(connection, name(tuples), tuples, logged=False)
        if missing(UNVACUUMED):
            unvacuumed(connection)


def keyed(server_or_connection: Server | psycopg.Connection, relation: str, tuples: int, order: int = 1, logged: bool = True) -> None:
    """Load one relation with its primary key, vacuumed and analyzed. One that is only read needs no log."""
    with loading.session(server_or_connection) as connection:
        Wisconsin(relation, tuples, order=order).load(connection, logged=logged)
        connection.execute(f"ALTER TABLE {relation} ADD PRIMARY KEY (unique2)")


def unvacuumed(connection: psycopg.Connection) -> None:
    """A copy of hundredktup as CREATE TABLE leaves it: analyzed, but no page is marked all-visible."""
    with connection.transaction():
        loading.replace(connection, UNVACUUMED, f"CREATE TABLE {UNVACUUMED} WITH (autovacuum_enabled = off) AS SELECT * FROM {name(SMALL)}")
    connection.execute(f"ALTER TABLE {UNVACUUMED} ADD PRIMARY KEY (unique2)")
    connection.execute(f"ANALYZE {UNVACUUMED}")


def _pages(connection: psycopg.Connection, tuples: dict[str, int]) -> pd.DataFrame:
    # by our own count: that of ANALYZE is estimated from a sample
    rows = [
        connection.execute(
            "SELECT c.relname, %s::bigint, c.relpages, c.relpages / 128.0, c.relallvisible, i.relpages"
            " FROM pg_class c JOIN pg_index x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid WHERE c.oid = %s::regclass",
            [number, one],
        ).fetchone()
        for one, number in tuples.items()
    ]
    columns = ["relation", "tuples", "pages", "MB", "pages all visible", "pages of the key"]
    return pd.DataFrame(rows, columns=columns).astype({"MB": float})


def unset(connection: psycopg.Connection, settings: dict[str, str]) -> None:
    """Take them back."""
    for setting in settings:
        connection.execute(f"RESET {setting}")
