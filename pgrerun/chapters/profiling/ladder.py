"""What bookkeeping costs today: each kind switched off for real, one after the other."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pandas as pd

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import checks, counted, queries
from pgrerun.chapters.profiling.checks import POOL_1990
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.instruments import callgrind
from pgrerun.server import Cluster

EXPERIMENT = "bookkeeping"
BATCH = 10  # transactions per count; instructions per transaction don't vary much


@dataclass(frozen=True)
class Step:
    """One step down: settings that change for it and stay; `checksums` and `prepared` from it on."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    checksums: bool = True
    prepared: bool = False


EVERYTHING, BARE = "everything on", "data checksums off"
STEPS = (
    Step(
        EVERYTHING,
        {
            "log_statement": "all", "log_duration": "on", "shared_preload_libraries": "pg_stat_statements",
            "pg_stat_statements.track_planning": "on", "track_io_timing": "on", "track_wal_io_timing": "on", "compute_query_id": "on",
        },
    ),  # fmt: skip
    Step("statement log off", {"log_statement": "none", "log_duration": "off"}),
    Step("pg_stat_statements off", {"shared_preload_libraries": "", "pg_stat_statements.track_planning": "off", "compute_query_id": "off"}),
    Step("timing of I/O off", {"track_io_timing": "off", "track_wal_io_timing": "off"}),
    Step("activity and counts off", {"track_activities": "off", "track_counts": "off"}),
    Step(BARE, checksums=False),
    Step("prepared statements", checksums=False, prepared=True),
)


def bookkeeping(chapter: Chapter) -> None:
    """Count both sets' instructions at each step, with the report's buffer pool of 16 pages."""
    callgrind.require()
    counted.pool(chapter)
    if len(chapter.run.finished(EXPERIMENT)) == len(STEPS):
        return
    # Two clusters at a time: counts don't mind that the other processor is busy as well.
    with ThreadPoolExecutor(2) as both:
        halves = [both.submit(_half, chapter, checksums) for checksums in (True, False)]
        counts = {name: metrics for half in halves for name, metrics in half.result().items()}
    for position, step in enumerate(STEPS):
        if (0, step.name) not in chapter.run.finished(EXPERIMENT):
            units = dict.fromkeys(counts[step.name], "instructions")
            chapter.run.observe(EXPERIMENT, step.name, 0, counts[step.name], units=units, seed=chapter.parameters.seed, position=position, started_at="", flags={})


def _half(chapter: Chapter, checksums: bool) -> dict[str, dict[str, float]]:
    """Counts of the steps with, or of those without data checksums, by name."""
    settings: dict[str, str] = {}
    counts = {}
    with _stopped(chapter, checksums) as cluster:
        for step in STEPS:
            settings |= step.settings
            if step.checksums == checksums:
                preloaded = bool(settings["shared_preload_libraries"])
                known = {name: value for name, value in settings.items() if preloaded or not name.startswith("pg_stat_statements.")}
                counts[step.name] = _count(chapter, cluster, known, step.prepared)
    return counts


def _stopped(chapter: Chapter, checksums: bool) -> Cluster:
    """A cluster with the relations, with or without data checksums."""
    cluster = Cluster(chapter.programs, {"shared_buffers": POOL_1990}, initdb=("--data-checksums",) if checksums else ("--no-data-checksums",))
    checks.keep(chapter, cluster)
    return cluster


def _count(chapter: Chapter, cluster: Cluster, settings: Mapping[str, str], prepared: bool) -> dict[str, float]:
    commands, warm_up = queries.transactions(chapter, BATCH), queries.transactions(chapter, 2, seed=1)
    prepare: list[str] = []
    if prepared:
        prepare, commands, warm_up = queries.prepare(), queries.executed(commands), queries.executed(warm_up) * 3
    checks.restore(cluster)
    groups = {"warm-up": [*queries.warm_up(), *prepare, *warm_up], SCANS: queries.scans(), TRANSACTIONS: commands}
    found = callgrind.stacks(cluster, groups, settings=dict(settings), callers=0).groupby("group")["exclusive"].sum()
    return {SCANS: float(found[SCANS]), TRANSACTIONS: float(found[TRANSACTIONS])}


def found(chapter: Chapter) -> pd.DataFrame:
    """A row per step, in order: instructions of each set; from this run or else the published one."""
    for frame in (chapter.run.observations(EXPERIMENT), chapter.published_run(EXPERIMENT)):
        if not frame.empty:
            wide = frame.pivot(index="arm", columns="metric", values="value").reindex([step.name for step in STEPS])
            return wide[[SCANS, TRANSACTIONS]].rename_axis("step").reset_index()
    return pd.DataFrame()


def in_all(chapter: Chapter) -> float | None:
    """Figure 2.1: instructions with all bookkeeping on over those with all that can be switched off."""
    if chapter.run.observations(EXPERIMENT).empty:
        return None
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
