"""Sorting with and without what PostgreSQL 9.2 brought: a comparison function that sorting calls
without the detour of a function call.
"""

from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import SQL, build, measured
from pgrerun.lab.experiment import Variant
from pgrerun.lab.instruments import callgrind

INTEGER, DOUBLE = "integer", "double precision"
BYTES, ALIKE = "text, collation C", "the same, one beginning"
KEYS = {
    INTEGER: "sorting.integer",
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


def variant(key: str, how: str) -> str:
    """The variant's name in the run record."""
    return f"{key}, {how}"


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


@experiment(needs=["superuser"])
def sorts(chapter: Chapter) -> pd.DataFrame:
    """Sort the same rows by keys of several types, with sort support and by a class without it.

    Nothing is sent: the query skips all rows. The same query without ORDER BY tells how much of
    the time is not sorting. The observations.
    """
    with chapter.server.connect() as connection:
        for original, copy in CLASSES.items():
            copy_without_sort_support(connection, "btree", original, copy)
        build(connection, "unsorted", "sorting.unsorted", objects=chapter.parameters.objects)
        SQL.run(connection, "sorting.session")
        names = {UNSORTED: "sorting.not_sorted"}
        for key, statement in KEYS.items():
            names[variant(key, SUPPORTED)] = statement
            names[variant(key, UNSUPPORTED)] = f"{statement}_without"
        variants = [
            Variant(name, partial(measured, connection, SQL.text(statement)))
            for name, statement in names.items()
        ]
        return chapter.compare("sorting", variants, {"seconds": "s"})


@experiment(claims=["haas-058"])
def instructions(chapter: Chapter) -> pd.Series:
    """What sorting doubles executes: SUPPORTED, UNSUPPORTED and UNSORTED to instructions.

    Since PostgreSQL 15 the comparison of integers is compiled into the sort itself, that of doubles
    is called as in 9.2.
    """
    cluster, session = chapter.cluster(), {"work_mem": "1GB", "max_parallel_workers_per_gather": 0}
    with cluster.connect() as connection:
        copy_without_sort_support(connection, "btree", "float8_ops", CLASSES["float8_ops"])
        build(connection, "unsorted", "sorting.unsorted", objects=chapter.parameters.objects)
    names = {
        UNSORTED: "sorting.not_sorted",
        SUPPORTED: KEYS[DOUBLE],
        UNSUPPORTED: f"{KEYS[DOUBLE]}_without",
    }
    return callgrind.executed(
        cluster, {how: (session, SQL.text(name)) for how, name in names.items()}
    )
