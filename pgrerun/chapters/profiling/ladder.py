"""What bookkeeping costs today: each kind switched off for real, one after the other; counted, and timed on live servers."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import pandas as pd
import psycopg

from pgrerun import narrate, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import checks, counted, queries
from pgrerun.chapters.profiling.counted import POOL_1990
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import callgrind, clock
from pgrerun.server import Cluster, set_session

EXPERIMENT, TIMED = "bookkeeping", "bookkeeping, timed"
TRANSACTIONS_TIMED = 10  # in one observation


@dataclass(frozen=True)
class Step:
    """One step down: settings that change for it and stay; `checksums` and `prepared` from it on."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    checksums: bool = True
    prepared: bool = False


EVERYTHING, DEFAULTS, BARE = "everything on", "timing of I/O off", "data checksums off"
PRELOAD = "shared_preload_libraries"
STEPS = (
    Step(
        EVERYTHING,
        {
            "log_statement": "all", "log_duration": "on", PRELOAD: "pg_stat_statements", "pg_stat_statements.track": "top",
            "pg_stat_statements.track_planning": "on", "track_io_timing": "on", "track_wal_io_timing": "on", "compute_query_id": "on",
        },
    ),  # fmt: skip
    Step("statement log off", {"log_statement": "none", "log_duration": "off"}),
    Step("pg_stat_statements off", {PRELOAD: "", "pg_stat_statements.track": "none", "pg_stat_statements.track_planning": "off", "compute_query_id": "off"}),
    Step(DEFAULTS, {"track_io_timing": "off", "track_wal_io_timing": "off"}),
    Step("activity tracking off", {"track_activities": "off", "track_counts": "off"}),
    Step(BARE, checksums=False),
    Step("prepared statements", checksums=False, prepared=True),
)


def settings_at(step: Step) -> dict[str, str]:
    """All settings in force at a step."""
    return {name: value for each in STEPS[: STEPS.index(step) + 1] for name, value in each.settings.items()}


def bookkeeping(chapter: Chapter) -> None:
    """Count both sets' instructions at each step, with the report's buffer pool of 16 pages.

    The step with PostgreSQL's own settings was counted when the verification of pages was. Prepared statements run in
    the backend of the step before them, which has the same settings; no scan is prepared, so their scans are that step's.
    """
    callgrind.require()
    cluster = counted.pool(chapter)
    if len(chapter.run.finished(EXPERIMENT)) == len(STEPS):
        return
    counts = _counted_before(chapter)
    todo = [step for step in STEPS if step.name not in counts and not step.prepared]
    with counted.stopped(cluster):
        # the last runs the most commands: begun first, it doesn't leave the other processor idle at the end
        counts |= zip((step.name for step in reversed(todo)), counted.in_turn(partial(_count, chapter, cluster), reversed(todo)))
    counts[STEPS[-1].name] = {SCANS: counts[BARE][SCANS], TRANSACTIONS: counts[BARE].pop(counted.PREPARED)}
    for step in STEPS:
        counted.keep(chapter, EXPERIMENT, step.name, counts[step.name], "instructions")


def _counted_before(chapter: Chapter) -> dict[str, dict[str, float]]:
    found = chapter.run.observations(checks.EXPERIMENT)
    if found.empty:
        return {}
    return {DEFAULTS: found[found["arm"] == checks.WITH].set_index("metric")["value"].to_dict()}


def _count(chapter: Chapter, cluster: Cluster, step: Step) -> dict[str, float]:
    settings = settings_at(step)
    known = {name: value for name, value in settings.items() if settings[PRELOAD] or not name.startswith("pg_stat_statements.")}
    return counted.of_both_sets(chapter, cluster, known, checksums=step.checksums, prepared=step.name == BARE)


# ---- the same by the clock


def timed(chapter: Chapter) -> None:
    """Time both sets on live servers at each step, the steps in turn; of the scans those of tenk1.

    Two servers, one with and one without data checksums, both with the report's buffer pool and without waiting for a disk;
    everything else is switched in the session. pg_stat_statements stays loaded where it is off, since to load it takes a restart.
    """
    servers = {on: live(chapter, on) for on in (True, False)}
    with ExitStack() as open_until_the_end:
        arms, sweeping = [], [open_until_the_end.enter_context(server.connect()) for server in servers.values()]
        for step in STEPS:
            connection = open_until_the_end.enter_context(servers[step.checksums].connect())
            connection.prepare_threshold = None  # the protocol is part of what is compared
            set_session(connection, {name: value for name, value in settings_at(step).items() if name != PRELOAD})
            for statement in [*queries.warm_up(), *(queries.prepare() if step.prepared else ())]:
                connection.execute(statement)
            arms.append(Arm(step.name, partial(_time, chapter, connection, step.prepared), partial(_swept, sweeping)))
        chapter.compare(TIMED, arms, {SCANS: "s", TRANSACTIONS: "s"}, warmup=0)  # each session is warm


def live(chapter: Chapter, checksums: bool = True) -> Cluster:
    """A running server with the relations, the report's buffer pool and pg_stat_statements, with or without data checksums.

    Backends read their pages themselves, as in 1990: handing nearly every page of a scan to an I/O worker, as PostgreSQL 18
    does by default, takes ten times what the scan does, and hides what is compared here.
    """
    name = "verifying" if checksums else "not verifying"
    own_reads = chapter.programs.synchronous_io
    cluster = chapter.cluster(shared_buffers=POOL_1990, fsync="off", shared_preload_libraries="pg_stat_statements", cluster_name=name, **own_reads)
    cluster.require("contrib:pg_stat_statements")
    with cluster.connect() as connection:
        verifying = connection.execute("SHOW data_checksums").fetchone()[0] == "on"
    if verifying != checksums:
        with counted.stopped(cluster):
            counted.set_checksums(cluster, checksums)
    cluster.extension("pg_stat_statements")
    queries.at_hand(chapter, cluster)
    return cluster


def _swept(connections: Sequence[psycopg.Connection], block: Block) -> None:
    """Before each block remove what the one before left behind: more arms run on one server than on the other."""
    for connection in connections if block.position == 0 else ():
        queries.swept(connection)


def _time(chapter: Chapter, connection: psycopg.Connection, prepared: bool, block: Block) -> dict[str, float]:
    sets = {
        SCANS: (queries.scans_of_tenk1(), queries.UNDO[:1]),
        TRANSACTIONS: (queries.transactions(chapter, TRANSACTIONS_TIMED, seed=block.seed % 1000, prepared=prepared), ()),
    }
    seconds = {}
    for workload, (commands, after) in sets.items():
        with clock.stopwatch() as watch:
            for command in commands:
                connection.execute(command)
        seconds[workload] = watch.seconds
        for command in after:
            connection.execute(command)
    return seconds


def relative(chapter: Chapter, workload: str, step: str, base: str = EVERYTHING) -> statistics.Interval | None:
    """Time of a query set at one step over that at another; None if it wasn't timed."""
    return chapter.ratio(TIMED, workload, step, base)


def found(chapter: Chapter) -> pd.DataFrame:
    """A row per step, in order: instructions of each set; from this run or else the published one."""
    wide = counted.by_arm(chapter, EXPERIMENT)
    if wide.empty:
        return wide
    return wide.reindex([step.name for step in STEPS])[[SCANS, TRANSACTIONS]].rename_axis("step").reset_index()


def beside(chapter: Chapter) -> pd.DataFrame:
    """A row per step: instructions of each set, and its time relative to the first step with the interval. Empty if neither is known."""
    steps = [step.name for step in STEPS]
    frame, counts = pd.DataFrame({"step": steps}), found(chapter)
    for workload in (SCANS, TRANSACTIONS):
        if not counts.empty:
            frame[f"{workload}: instructions"] = counts[workload].astype(int)
            frame[f"{workload}: relative"] = counts[workload] / counts[workload].iloc[0]
        if relative(chapter, workload, BARE) is not None:
            frame[f"{workload}: time"] = [narrate.interval(relative(chapter, workload, step)) if step != EVERYTHING else "1" for step in steps]
    return frame if len(frame.columns) > 1 else pd.DataFrame()


def in_all(chapter: Chapter) -> statistics.Interval | float | None:
    """Figure 2.1 with all bookkeeping on over the same with all that can be switched off: instructions, or else time."""
    if chapter.run.observations(EXPERIMENT).empty:
        return relative(chapter, SCANS, EVERYTHING, BARE)
    scans = found(chapter).set_index("step")[SCANS]
    return scans[EVERYTHING] / scans[BARE]


def each_step(chapter: Chapter) -> dict[str, bool] | None:
    """Whether each step lowers the instructions, for the set that it has most to do with."""
    if chapter.run.observations(EXPERIMENT).empty:
        return None
    frame = found(chapter).set_index("step")
    lowered = frame.diff().iloc[1:] < 0
    return {f"{step} lowers the instructions": bool(row.any()) for step, row in lowered.iterrows()}


def printed() -> pd.DataFrame:
    """The report's six stages of Figure 2.1: label, cycles, relative to the first."""
    return published.derived("profiling_totals").dropna(subset="gain_in_all")
