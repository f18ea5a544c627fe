"""Sorting with and without what PostgreSQL 9.2 brought: a comparison function that sorting calls
without the detour of a function call.
"""

from collections.abc import Iterable, Iterator, Sequence

import psycopg

from pgrerun.chapters.access_paths.accounts import SQL, build, repeated, timed
from pgrerun.lab.instruments import callgrind
from pgrerun.lab.server import set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened

DOUBLE, BYTES, ALIKE = "double precision", "text, collation C", "the same, one beginning"
KEYS = {
    "integer": "sorting.integer",
    DOUBLE: "sorting.double",
    "numeric": "sorting.numeric",
    BYTES: "sorting.bytes",
    ALIKE: "sorting.one_beginning",
    "text, the system's collation": "sorting.system_collation",
}
CLASSES = {
    "int4_ops": "int4_unsupported",
    "float8_ops": "float8_unsupported",
    "numeric_ops": "numeric_unsupported",
    "text_ops": "text_unsupported",
}
SUPPORTED, UNSUPPORTED, UNSORTED = "with sort support", "without", "not sorted"
SESSION: dict[str, str | int] = {"work_mem": "1GB", "max_parallel_workers_per_gather": 0}


def copy_without_sort_support(
    connection: psycopg.Connection, method: str, original: str, copy: str
) -> None:
    """Make operator class `copy`, which is `original` without sort support, unless it is there.

    `method` is "btree" or "gist". Takes a superuser.
    """
    if SQL.run(connection, "opclass.exists", method=method, copy=copy).fetchone():
        return
    made = SQL.run(connection, "opclass.copy", method=method, original=original, copy=copy)
    with connection.transaction():
        for (statement,) in made.fetchall():
            connection.execute(statement)


def _statement(key: str, how: str) -> str:
    """The query that sorts by a key, or reads what it would sort."""
    if how == UNSORTED:
        return SQL.text("sorting.not_sorted")
    return SQL.text(KEYS[key] if how == SUPPORTED else f"{KEYS[key]}_without")


@experiment(units={"seconds": "s"}, needs=["superuser"])
def sorts(bed: Testbed) -> Iterator[Row]:
    """Sort the same rows by keys of several types, with sort support and by a class without it.

    Nothing is sent: the query skips all rows. The same query without ORDER BY tells how much of
    the time is not sorting.
    """
    with bed.server.connect() as connection:
        SQL.run(connection, "sorting.collation")
        yield from sorts_of(
            bed, connection, list(KEYS), CLASSES, shortened(bed.parameters.milliseconds)
        )


def sorts_of(
    bed: Testbed,
    connection: psycopg.Connection,
    keys: Sequence[str],
    classes: Iterable[str],
    milliseconds: float,
) -> Iterator[Row]:
    """The same by some of the keys on any server, each timed for so long; `classes` are those of
    CLASSES that the keys' types have.
    """
    for original in classes:
        copy_without_sort_support(connection, "btree", original, CLASSES[original])
    build(connection, "unsorted", "sorting.unsorted", objects=bed.parameters.objects)
    set_session(connection, SESSION)

    def measure(block: Block, key: str, how: str) -> dict[str, float]:
        return {"seconds": repeated(lambda: timed(connection, _statement(key, how)), milliseconds)}

    variants = [{"key": key, "how": how} for key in keys for how in (SUPPORTED, UNSUPPORTED)]
    variants.append({"key": "none", "how": UNSORTED})
    yield from bed.compare(measure, variants, pairs=bed.fewer_pairs, warmup=0, fixed=True)


@experiment(units={"instructions": "instructions"}, needs=["restart"])
def sort_instructions(bed: Testbed) -> Iterator[Row]:
    """What sorting doubles executes, with sort support and without, and reading them alone.

    Since PostgreSQL 15 the comparison of integers is compiled into the sort itself, that of doubles
    is called as in 9.2.
    """
    cluster = bed.cluster()
    with cluster.connect() as connection:
        copy_without_sort_support(connection, "btree", "float8_ops", CLASSES["float8_ops"])
        build(connection, "unsorted", "sorting.unsorted", objects=bed.parameters.objects)
    hows = (UNSORTED, SUPPORTED, UNSUPPORTED)
    found = callgrind.executed(cluster, {how: (SESSION, _statement(DOUBLE, how)) for how in hows})
    for how, instructions in found.items():
        yield {"how": how, "instructions": int(instructions)}
