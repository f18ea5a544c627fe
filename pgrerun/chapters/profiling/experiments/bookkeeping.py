"""What bookkeeping costs today: each kind switched off, one after the other; counted in
single-user backends, and timed on live servers.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.profiling import queries
from pgrerun.chapters.profiling.experiments import checks, single_user
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import callgrind, clock
from pgrerun.lab.server import Cluster, set_session

BOOKKEEPING, TIMED = "bookkeeping", "bookkeeping, timed"
TRANSACTIONS_TIMED = 10  # in one observation


@dataclass(frozen=True)
class Step:
    """One step down: settings that change for it and stay.

    `checksums` and `prepared` hold from it on.
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    checksums: bool = True
    prepared: bool = False


EVERYTHING, DEFAULTS, BARE = "everything on", "timing of I/O off", "data checksums off"
PREPARED = "prepared statements"
PRELOAD = "shared_preload_libraries"
STEPS = (
    Step(
        EVERYTHING,
        {
            "log_statement": "all",
            "log_duration": "on",
            PRELOAD: "pg_stat_statements",
            "pg_stat_statements.track": "top",
            "pg_stat_statements.track_planning": "on",
            "track_io_timing": "on",
            "track_wal_io_timing": "on",
            "compute_query_id": "on",
        },
    ),
    Step("statement log off", {"log_statement": "none", "log_duration": "off"}),
    Step(
        "pg_stat_statements off",
        {
            PRELOAD: "",
            "pg_stat_statements.track": "none",
            "pg_stat_statements.track_planning": "off",
            "compute_query_id": "off",
        },
    ),
    Step(DEFAULTS, {"track_io_timing": "off", "track_wal_io_timing": "off"}),
    Step("activity tracking off", {"track_activities": "off", "track_counts": "off"}),
    Step(BARE, checksums=False),
    Step(PREPARED, checksums=False, prepared=True),
)
NAMES = tuple(step.name for step in STEPS)


def settings_at(step: Step) -> dict[str, str]:
    """All settings in force at a step."""
    settings: dict[str, str] = {}
    for earlier in STEPS[: STEPS.index(step) + 1]:
        settings |= earlier.settings
    return settings


@experiment(claims=["lai-026"])
def bookkeeping_counted(chapter: Chapter) -> None:
    """Count both sets' instructions at each step, with the report's buffer pool of 16 pages.

    The step with PostgreSQL's own settings was counted when the verification of pages was.
    Prepared statements run in the backend of the step before them, which has the same settings;
    no scan is prepared, so their scans are that step's.
    """
    callgrind.require()
    cluster = single_user.loaded_cluster(chapter)
    if len(chapter.run.finished(BOOKKEEPING)) == len(STEPS):
        return
    verified = chapter.run.observations(checks.VERIFICATION)
    counts = {}
    if not verified.empty:
        own = verified[verified["variant"] == checks.WITH]
        counts[DEFAULTS] = own.set_index("metric")["value"].to_dict()
    # the last runs the most commands: begun first, it doesn't leave a processor idle at the end
    todo = [step for step in reversed(STEPS) if step.name not in counts and not step.prepared]
    with single_user.stopped(cluster):
        found = single_user.three_at_a_time(partial(_count, chapter, cluster), todo)
    counts |= {step.name: metrics for step, metrics in zip(todo, found, strict=True)}
    prepared = counts[BARE].pop(single_user.PREPARED)
    counts[PREPARED] = {SCANS: counts[BARE][SCANS], TRANSACTIONS: prepared}
    for name in NAMES:
        single_user.keep(chapter, BOOKKEEPING, name, counts[name], "instructions")


def _count(chapter: Chapter, cluster: Cluster, step: Step) -> dict[str, float]:
    settings = settings_at(step)
    if not settings[PRELOAD]:  # the backend doesn't know the library's settings
        settings = {
            name: value
            for name, value in settings.items()
            if not name.startswith("pg_stat_statements.")
        }
    return single_user.of_both_sets(
        chapter, cluster, settings, checksums=step.checksums, prepared=step.name == BARE
    )


@experiment(claims=["lai-001"])
def bookkeeping_timed(chapter: Chapter) -> None:
    """Time both sets on live servers at each step, the steps in turn; of the scans those of tenk1.

    Two servers, one with and one without data checksums, both with the report's buffer pool and
    without waiting for a disk; everything else is switched in the session. pg_stat_statements
    stays loaded where it is off, since to load it takes a restart.
    """
    servers = {checksums: live(chapter, checksums) for checksums in (True, False)}
    with ExitStack() as connections:
        vacuuming = [connections.enter_context(server.connect()) for server in servers.values()]
        variants = []
        for step in STEPS:
            connection = connections.enter_context(servers[step.checksums].connect())
            connection.prepare_threshold = None  # the protocol is part of what is compared
            settings = settings_at(step)
            del settings[PRELOAD]
            set_session(connection, settings)
            for statement in [*queries.warm_up(), *(queries.prepare() if step.prepared else ())]:
                connection.execute(statement)
            measure = partial(_time, chapter, connection, step.prepared)
            variants.append(Variant(step.name, measure, partial(_vacuum, vacuuming)))
        # each session is warm
        chapter.compare(TIMED, variants, {SCANS: "s", TRANSACTIONS: "s"}, warmup=0)


def live(chapter: Chapter, checksums: bool = True) -> Cluster:
    """A running server with the relations, the report's buffer pool and pg_stat_statements, with or
    without data checksums.

    Backends read their pages themselves, as in 1990: handing nearly every page of a scan to an I/O
    worker, as PostgreSQL 18 does by default, takes ten times what the scan does, and hides what is
    compared here.
    """
    cluster = chapter.cluster(
        shared_buffers=single_user.POOL_1990,
        fsync="off",
        shared_preload_libraries="pg_stat_statements",
        cluster_name="verifying" if checksums else "not verifying",
        **chapter.programs.synchronous_io,
    )
    cluster.require("contrib:pg_stat_statements")
    with cluster.connect() as connection:
        verifying = connection.execute("SHOW data_checksums").fetchone()[0] == "on"
    if verifying != checksums:
        with single_user.stopped(cluster):
            single_user.set_checksums(cluster, checksums)
    cluster.extension("pg_stat_statements")
    queries.load_once(chapter, cluster)
    return cluster


def _vacuum(connections: Sequence[psycopg.Connection], block: Block) -> None:
    """Before each block remove what the one before left behind: more variants run on one server
    than on the other.
    """
    if block.position == 0:
        for connection in connections:
            queries.vacuum(connection)


def _time(
    chapter: Chapter, connection: psycopg.Connection, prepared: bool, block: Block
) -> dict[str, float]:
    seed = block.seed % 1000
    batch = queries.transactions(chapter, TRANSACTIONS_TIMED, seed=seed, prepared=prepared)
    seconds = {}
    for workload, commands in ((SCANS, queries.scans_of_tenk1()), (TRANSACTIONS, batch)):
        with clock.stopwatch() as watch:
            for command in commands:
                connection.execute(command)
        seconds[workload] = watch.seconds
    connection.execute(queries.UNDO[0])
    return seconds


@experiment(claims=["lai-004"])
def batch_commands(chapter: Chapter) -> int:
    """Run the report's batch one command at a time; the number of them by pg_stat_statements."""
    server = live(chapter)
    with server.connect() as watching, server.connect() as working:
        working.prepare_threshold = None  # pg_stat_statements counts a prepared BEGIN only once
        watching.execute("TRUNCATE history")
        watching.execute("SELECT pg_stat_statements_reset()")
        for command in queries.transactions(chapter, queries.REPORT_TRANSACTIONS):
            working.execute(command)
        counted = "SELECT sum(calls)::int FROM pg_stat_statements WHERE query !~ 'pg_stat'"
        return working.execute(counted).fetchone()[0]
