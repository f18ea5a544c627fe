"""The plan cache: when a prepared query gets a plan for its parameters, and a case in which it
should and doesn't.
"""

from dataclasses import dataclass
from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import SQL, build, timed
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import plans
from pgrerun.lab.relations import loading
from pgrerun.lab.server import set_session

RARE, COMMON = 1, 0
ONE_IN = 1000  # rows is rare
# Executions before those that are timed, and those.
BEFORE, CALLS = 6, 6


@dataclass(frozen=True)
class Cached:
    """A variant: the setting plan_cache_mode, and the value that is asked for beforehand."""

    mode: str
    before: int = RARE


AUTO, CUSTOM, GENERIC, LURED = (
    "auto, rare values",
    "always planned anew",
    "one plan for all",
    "auto, common first",
)
VARIANTS = {
    AUTO: Cached("auto"),
    CUSTOM: Cached("force_custom_plan"),
    GENERIC: Cached("force_generic_plan"),
    LURED: Cached("auto", before=COMMON),
}


@experiment(claims=["haas-064", "haas-065"])
def skewed(chapter: Chapter) -> pd.DataFrame:
    """A prepared query on a column with one common value and one rare, asked for the rare one.

    The rare ones have a partial index. The observations.
    """
    rows = chapter.parameters.accounts
    with chapter.server.connect() as connection:
        open_session(connection, rows)
        variants = [
            Variant(
                name,
                partial(ask, connection, rows // ONE_IN),
                prepare=partial(prepare, connection, name),
            )
            for name in VARIANTS
        ]
        return chapter.compare("plan_cache", variants, {"seconds": "s"})


def open_session(connection: psycopg.Connection, rows: int) -> None:
    """So many jobs, made if they aren't there, and a session that prepares nothing by itself."""
    connection.prepare_threshold = None
    if not loading.holds(connection, "jobs", rows):
        build(connection, "jobs", "plan_cache.jobs", rows=rows)
    set_session(connection, {"max_parallel_workers_per_gather": 0})


def prepare(connection: psycopg.Connection, name: str, block: Block | None = None) -> None:
    """Prepare the query anew and execute it, as the variant says."""
    variant = VARIANTS[name]
    set_session(connection, {"plan_cache_mode": variant.mode})
    SQL.run(connection, "plan_cache.prepare")
    for _ in range(BEFORE):
        SQL.run(connection, "plan_cache.execute", done=variant.before)


def ask(
    connection: psycopg.Connection, expected: int, block: Block | None = None
) -> dict[str, float]:
    """Seconds of one execution for the rare value; RerunError if it finds other than `expected`."""
    query = SQL.text("plan_cache.execute", done=RARE)
    times = [timed(connection, query, expected) for _ in range(CALLS)]
    return {"seconds": sum(times) / CALLS}


@experiment(claims=["haas-064", "haas-065"])
def choices(chapter: Chapter) -> pd.DataFrame:
    """How often each variant's query was planned anew, and the plan that the rare value gets.

    Columns: variant, custom, generic (plans), node.
    """
    rows, tuples = [], chapter.parameters.accounts
    with chapter.server.connect() as connection:
        open_session(connection, tuples)
        for name in VARIANTS:
            prepare(connection, name)
            ask(connection, tuples // ONE_IN)
            [made] = SQL.run(connection, "plan_cache.plans_made").fetchall()
            plan = plans.explain(connection, SQL.text("plan_cache.execute", done=RARE))
            scan = plan.scan_of("jobs")
            index = f" using {scan.index}" if scan.index else ""
            rows.append((name, *made, f"{scan.node_type}{index} on jobs"))
    return pd.DataFrame(rows, columns=["variant", "custom", "generic", "node"])
