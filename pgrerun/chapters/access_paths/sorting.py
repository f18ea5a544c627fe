"""Sorting with and without what PostgreSQL 9.2 brought: a comparison function that sorting calls without the detour of a function call."""

from functools import partial

import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import timed
from pgrerun.chapters.access_paths.opclass import own, without_sort_support
from pgrerun.experiment import Arm, Block
from pgrerun.relations import loading

BYTES, ALIKE = "text, collation C", "the same, one beginning"
KEYS = {"integer": "i", "numeric": "m", BYTES: 't COLLATE "C"', ALIKE: 'p COLLATE "C"', "text, the system's collation": "t COLLATE sorted_by_system"}
_BEGINNING = "the same bytes "  # in front of the same text: more of them than an abbreviated key holds
_CLASSES = {"int4_ops": "int4_unsupported", "numeric_ops": "numeric_unsupported", "text_ops": "text_unsupported"}
SUPPORTED, UNSUPPORTED, UNSORTED = "with sort support", "without", "not sorted"


def name(key: str, how: str) -> str:
    """The arm's name in the run record."""
    return f"{key}, {how}"


def sorts(chapter: Chapter) -> None:
    """Sort the same rows by keys of several types, with each type's sort support and with an operator class that has none.

    Nothing is sent: the query skips all rows. The same query without ORDER BY tells how much of the time is not sorting.
    """
    server = chapter.server
    with server.connect() as connection:
        for original, copy in _CLASSES.items():
            without_sort_support(connection, "btree", original, copy)
        rows = chapter.parameters.objects
        with connection.transaction():
            loading.replace(connection, "unsorted", "CREATE TABLE unsorted (i int, m numeric, t text, p text) WITH (autovacuum_enabled = off)")
            connection.execute(f"INSERT INTO unsorted SELECT hashint4(n), hashint4(n)::numeric / 1000, md5(n::text), '{_BEGINNING}' || md5(n::text) FROM generate_series(1, {rows}) AS n")
        connection.execute("VACUUM (FREEZE, ANALYZE) unsorted")
        connection.execute("SET work_mem = '1GB'")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        connection.execute("DROP COLLATION IF EXISTS sorted_by_system")
        connection.execute("CREATE COLLATION sorted_by_system (provider = libc, locale = 'C.UTF-8')")
        arms = [Arm(UNSORTED, partial(_sorted, connection, ""))]
        for key, expression in KEYS.items():
            arms.append(Arm(name(key, SUPPORTED), partial(_sorted, connection, f" ORDER BY {expression}")))
            arms.append(Arm(name(key, UNSUPPORTED), partial(_sorted, connection, f" ORDER BY {expression} USING {own('<')}")))
        chapter.compare("sorting", arms, {"seconds": "s"})


def _sorted(connection: psycopg.Connection, order: str, block: Block) -> dict[str, float]:
    return {"seconds": timed(connection, f"SELECT FROM unsorted{order} OFFSET 2000000000 LIMIT 1")}


def gain(chapter: Chapter, key: str) -> statistics.Interval | None:
    """Time of a sort without sort support over that with it, for one type of key, the time to read the rows taken off both."""
    table = chapter.table("sorting", "seconds")
    if table.empty:
        return None
    unsorted = table[UNSORTED].min()  # on a busy machine a single block may read more slowly than another sorts
    return statistics.ratio(table[name(key, UNSUPPORTED)] - unsorted, table[name(key, SUPPORTED)] - unsorted, seed=chapter.parameters.seed)


def abbreviated(chapter: Chapter) -> statistics.Interval | None:
    """The gain by sort support for text that differs from the first byte on, over that for the same text behind one beginning.

    Both are compared by the same function, called in the same way; only abbreviated keys are useless for the second.
    """
    table = chapter.table("sorting", "seconds")
    if table.empty:
        return None
    unsorted = table[UNSORTED].min()
    gain = {key: (table[name(key, UNSUPPORTED)] - unsorted) / (table[name(key, SUPPORTED)] - unsorted) for key in (BYTES, ALIKE)}
    return statistics.ratio(gain[BYTES], gain[ALIKE], seed=chapter.parameters.seed)


def gains(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """The same for every type of key."""
    found = {key: gain(chapter, key) for key in KEYS}
    return None if None in found.values() else found
