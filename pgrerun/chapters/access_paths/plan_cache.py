"""The plan cache: when a prepared query gets a plan for its parameters, and a case in which it should and doesn't."""

from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import timed
from pgrerun.experiment import Arm, Block
from pgrerun.relations import loading

RARE, COMMON = 1, 0
_EVERY = 1000  # one row in so many is rare
AUTO, CUSTOM, GENERIC, LURED = "auto, rare values", "always planned anew", "one plan for all", "auto, common first"
_MODES = {AUTO: "auto", CUSTOM: "force_custom_plan", GENERIC: "force_generic_plan", LURED: "auto"}
_CALLS = 6


def skewed(chapter: Chapter) -> None:
    """A prepared query on a column that has one common value and one rare, asked for the rare one; the rare ones have a partial index."""
    server = chapter.server
    with server.connect() as connection:
        connection.prepare_threshold = None  # the statements prepared here are ours alone
        _ready(connection, chapter.parameters.accounts)
        arms = [Arm(name, partial(_asked, connection, name, chapter.parameters.accounts // _EVERY), prepare=partial(_prepare, connection, name)) for name in _MODES]
        chapter.compare("plan_cache", arms, {"seconds": "s"})


def _ready(connection: psycopg.Connection, rows: int) -> None:
    """So many jobs, made anew if they aren't there, and a session in which nothing is done in parallel."""
    if not loading.holds(connection, "jobs", rows):
        _load(connection, rows)
    connection.execute("SET max_parallel_workers_per_gather = 0")


def _load(connection: psycopg.Connection, rows: int) -> None:
    with connection.transaction():
        loading.replace(connection, "jobs", "CREATE TABLE jobs (id int, done int, filler char(84)) WITH (autovacuum_enabled = off)")
        connection.execute(f"INSERT INTO jobs SELECT n, CASE WHEN mod(n, {_EVERY}) = 0 THEN {RARE} ELSE {COMMON} END, '' FROM generate_series(1, {rows}) AS n")
        # the open jobs are few, and only they are worth an index; a plan for any value can't use it
        connection.execute(f"CREATE INDEX jobs_open ON jobs (id) WHERE done = {RARE}")
    connection.execute("VACUUM (ANALYZE) jobs")


def _prepare(connection: psycopg.Connection, name: str, block: Block) -> None:
    connection.execute("DEALLOCATE ALL", prepare=False)
    connection.execute(f"SET plan_cache_mode = {_MODES[name]}")
    connection.execute("PREPARE asked (int) AS SELECT count(filler) FROM jobs WHERE done = $1")
    for _ in range(6):
        connection.execute(f"EXECUTE asked ({COMMON if name == LURED else RARE})", prepare=False)


def _asked(connection: psycopg.Connection, name: str, expected: int, block: Block) -> dict[str, float]:
    return {"seconds": sum(timed(connection, f"EXECUTE asked ({RARE})", expected) for _ in range(_CALLS)) / _CALLS}


def choices(chapter: Chapter) -> pd.DataFrame:
    """How often each arm's query was planned anew, and the plan that the rare value gets. Columns: arm, custom, generic (plans), node."""
    with chapter.server.connect() as connection:
        connection.prepare_threshold = None
        _ready(connection, chapter.parameters.accounts)
        rows = []
        for name in _MODES:
            _prepare(connection, name, Block(0, 0, 0))
            for _ in range(_CALLS):
                connection.execute(f"EXECUTE asked ({RARE})", prepare=False)
            custom, generic = connection.execute("SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE name = 'asked'").fetchone()
            plan = [line for (line,) in connection.execute(f"EXPLAIN (COSTS OFF) EXECUTE asked ({RARE})", prepare=False)]
            rows.append((name, custom, generic, plan[1].split("->")[-1].strip()))
    return pd.DataFrame(rows, columns=["arm", "custom", "generic", "node"])


def lowered(chapter: Chapter) -> statistics.Interval | None:
    """Time with one plan for all, as every prepared query had it before 9.2, over that with the plan cache's own choice."""
    return chapter.ratio("plan_cache", "seconds", GENERIC, AUTO)


def still_wrong(chapter: Chapter) -> statistics.Interval | None:
    """Time of the plan cache's own choice after five common values, over that of a plan made for the rare one."""
    return chapter.ratio("plan_cache", "seconds", LURED, CUSTOM)
