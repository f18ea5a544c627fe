"""The plan cache: when a prepared query gets a plan for its parameters, and a case in which it
should and doesn't.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from pgrerun.chapters.access_paths.accounts import KEYED, SQL, build, ready, repeated, timed
from pgrerun.lab.instruments import plans
from pgrerun.lab.relations import loading
from pgrerun.lab.server import releases, set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened

RARE, COMMON = 1, 0
ONE_IN = 1000  # rows is rare
BEFORE, CALLS = 6, 6  # executions before those that count, and those at least


AUTO, CUSTOM, GENERIC, LURED = (
    "auto, rare values",
    "always planned anew",
    "one plan for all",
    "auto, common first",
)
# By variant the setting plan_cache_mode, and the value that is asked for beforehand.
VARIANTS = {
    AUTO: ("auto", RARE),
    CUSTOM: ("force_custom_plan", RARE),
    GENERIC: ("force_generic_plan", RARE),
    LURED: ("auto", COMMON),
}


@experiment(units={"seconds": "s"})
def prepared(bed: Testbed) -> Iterator[Row]:
    """A prepared join of the jobs in a state, two of which are common, for the rare one."""
    rows = bed.parameters.accounts
    with session(bed, rows) as connection:

        def measure(block: Block, variant: str) -> dict[str, float]:
            length = shortened(bed.parameters.milliseconds)
            return {"seconds": repeated(lambda: ask(connection, rows // ONE_IN), length)}

        yield from bed.compare(
            measure,
            {"variant": list(VARIANTS)},
            pairs=bed.fewer_pairs,
            prepare=lambda block, variant: prepare(connection, variant),
            against=AUTO,
        )


@contextmanager
def session(bed: Testbed, rows: int) -> Iterator[psycopg.Connection]:
    """A session on the server under test; CannotMeasure where no plan can be asked for."""
    releases.require_settings(bed.server.version, ["plan_cache_mode"])
    ready(bed.server, rows, KEYED)
    with bed.server.connect() as connection:
        open_session(connection, rows)
        yield connection


def open_session(connection: psycopg.Connection, rows: int) -> None:
    """So many jobs, made if they aren't there, and a session that prepares nothing by itself."""
    connection.prepare_threshold = None
    if not loading.holds(connection, "jobs", rows):
        build(connection, "jobs", "plan_cache.jobs", rows=rows)
    set_session(connection, {"max_parallel_workers_per_gather": 0})


def prepare(connection: psycopg.Connection, name: str) -> None:
    """Prepare the query anew and execute it, as the variant says."""
    mode, before = VARIANTS[name]
    set_session(connection, {"plan_cache_mode": mode})
    SQL.run(connection, "plan_cache.prepare")
    for _ in range(BEFORE):
        SQL.run(connection, "plan_cache.execute", state=before)


def ask(connection: psycopg.Connection, expected: int) -> float:
    """Seconds of an execution for the rare value; RerunError if it finds other than `expected`."""
    query = SQL.text("plan_cache.execute", state=RARE)
    return sum(timed(connection, query, expected) for _ in range(CALLS)) / CALLS


@experiment(
    units={"custom": "plans", "generic": "plans", "shape": "text", "pages": "page accesses"}
)
def choices(bed: Testbed) -> Iterator[Row]:
    """How often each variant's query was planned anew, and the plan that the rare value gets."""
    rows = bed.parameters.accounts
    with session(bed, rows) as connection:
        for name in VARIANTS:
            prepare(connection, name)
            ask(connection, rows // ONE_IN)
            [(custom, generic)] = SQL.run(connection, "plan_cache.plans_made").fetchall()
            yield {
                "variant": name,
                "custom": custom,
                "generic": generic,
                **plan_of_rare(connection),
            }


def plan_of_rare(connection: psycopg.Connection) -> Row:
    """The plan by which the rare value is found, and the pages that it accesses."""
    plan = plans.explain(connection, SQL.text("plan_cache.execute", state=RARE), execute=True)
    return {"shape": plan.shape().replace(" using ", " by "), "pages": plan.page_accesses}
