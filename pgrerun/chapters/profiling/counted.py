"""Instructions of both query sets by routine, from callgrind: the modern `pixie`.

Single-user backends run a warm-up and then Figure 2.1 or Figure 2.3; what every routine executed,
how often it was called and by whom goes into the record. Everything else here reads the record.
"""

import copy
import shutil
import subprocess
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pandas as pd

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import breakdown, queries
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.instruments import callgrind
from pgrerun.server import Cluster

EXPERIMENT = "instructions"
# Frames of the flame graph with less than this share are drawn as their caller's own.
LEAST_FRAME = 0.002
_SEP = " | "  # between routine, file, directory, subsystem and object in a metric's name
_ENTRY = "exec_simple_query"
WARM_UP = "warm-up"  # the group of statements that fill catalog caches and pool
PREPARED, _PLANNING = "transactions, prepared", "first transactions, prepared"
POOL_1990 = "128kB"  # 16 pages: the report's buffer pool
_TEMPLATES = {"1", "4"}  # object identifiers of template1 and, since PostgreSQL 15, template0 (src/include/catalog/pg_database.dat)
BATCH = 5  # transactions where whole sets are counted; instructions per transaction don't vary much

# A single-user backend begins with an empty pool.
_WARM = "SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"


def pool(chapter: Chapter) -> Cluster:
    """A cluster that holds both sets' relations; the buffer pool keeps all of them."""
    cluster = chapter.cluster(shared_buffers="64MB", min_wal_size="32MB", cluster_name="profiled")
    cluster.start()
    cluster.extension("pg_prewarm")
    queries.at_hand(chapter, cluster)
    return cluster


@contextmanager
def stopped(cluster: Cluster) -> Iterator[None]:
    """The cluster's files belong to single-user backends for the length of a block."""
    cluster.stop()
    try:
        yield
    finally:
        cluster.start()


@contextmanager
def twin(cluster: Cluster, checksums: bool = True) -> Iterator[Cluster]:
    """A stopped cluster's copy for one single-user backend, so that each begins with the same pages and some can run at a time.

    The template databases are the same files as the cluster's: no backend of another database opens them, and to make
    files, not to fill them, is what a copy costs.
    """
    found = copy.copy(cluster)
    found.data_directory = cluster.scratch / f"twin-{uuid.uuid4().hex[:12]}"
    try:
        _copy(cluster.data_directory, found.data_directory)
        set_checksums(found, checksums)
        yield found
    finally:
        shutil.rmtree(found.data_directory, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-al", source, target], check=True)  # with owners and rights
    for folder, shared in ((".", {"base"}), ("base", _TEMPLATES)):
        own = [path for path in (source / folder).iterdir() if path.name not in shared]
        subprocess.run(["cp", "-a", "--remove-destination", *own, target / folder], check=True)


def set_checksums(cluster: Cluster, on: bool) -> None:
    """Switch a stopped cluster's data checksums; CannotMeasure for programs that can't."""
    try:
        cluster.offline("pg_checksums", "--enable" if on else "--disable")
    except ServerError as error:
        if "already" not in str(error):
            raise CannotMeasure("checksums", f"data checksums can't be switched here: {error}") from None


def in_turn(job: Callable, items: Iterable) -> list:
    """The job's results in the items' order, three at a time: counts don't mind busy processors, and two of them don't wait for the last job."""
    with ThreadPoolExecutor(3) as few:
        return list(few.map(job, items))


def instructions(chapter: Chapter) -> None:
    """Count the instructions of Figure 2.1's commands and of Figure 2.3's transactions, by routine.

    A command of each kind runs before any is counted, so that catalog caches are filled. The server is the
    report's: a single-user backend, each command parsed and planned anew.
    """
    callgrind.require()
    cluster = pool(chapter)  # a borrowed server can't be run under callgrind
    if chapter.run.finished(EXPERIMENT):
        return

    with stopped(cluster):
        found = in_turn(partial(_followed, chapter, cluster), (SCANS, TRANSACTIONS))
    for workload, stacks in zip((SCANS, TRANSACTIONS), found):
        _record(chapter, workload, stacks[stacks["group"] == workload], cluster._executable("postgres"))


def _followed(chapter: Chapter, cluster: Cluster, workload: str, late: bool = True) -> pd.DataFrame:
    """A query set's instructions by stack; where callgrind can't be switched on after the warm-up it takes twice as long."""
    work = groups(chapter, chapter.parameters.transactions, workload)
    try:
        with twin(cluster) as own:
            return callgrind.stacks(own, work, unreported={WARM_UP}, late=late)
    except callgrind.NotSwitchedOn:
        return _followed(chapter, cluster, workload, late=False)


def groups(chapter: Chapter, count: int, *sets: str) -> dict[str, Sequence[str]]:
    """Statements of query sets, so many transactions, with a warm-up before them: catalog caches are filled, and the pool."""
    first = {SCANS: queries.warm_up(), TRANSACTIONS: queries.transactions(chapter, 3, seed=1)}
    work = {SCANS: queries.scans(), TRANSACTIONS: queries.transactions(chapter, count)}
    return {WARM_UP: [*(command for each in sets for command in first[each]), _WARM]} | {each: work[each] for each in sets}


def of_both_sets(
    chapter: Chapter, cluster: Cluster, settings: Mapping[str, str], *, checksums: bool = True, prepared: bool = False, program: Path | None = None
) -> dict[str, float]:
    """Instructions of each query set with the report's buffer pool and these settings, on a stopped cluster's twin.

    With `prepared` the same transactions follow as prepared statements, and are one more set: `PREPARED`.
    """
    work = {
        WARM_UP: [*queries.warm_up(), *queries.transactions(chapter, 2, seed=1)],
        SCANS: queries.scans(),
        TRANSACTIONS: queries.transactions(chapter, BATCH),
    }
    if prepared:
        work[_PLANNING] = [*queries.prepare(), *queries.transactions(chapter, 6, seed=1, prepared=True)]  # five until a plan is kept
        work[PREPARED] = queries.transactions(chapter, BATCH, prepared=True)
    unreported = {WARM_UP, _PLANNING}
    with twin(cluster, checksums) as own:
        found = callgrind.stacks(own, work, settings={"shared_buffers": POOL_1990, **settings}, callers=0, program=program, unreported=unreported)
    by = found.groupby("group")["exclusive"].sum()
    return {name: float(by[name]) for name in work if name not in unreported}


def by_command(cluster: Cluster, commands: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Profiles of single commands, each planned once before it is counted; the cluster must be running and is stopped meanwhile."""
    names = list(commands)

    def count(half: list[str]) -> dict[str, pd.DataFrame]:
        with twin(cluster) as own:
            found = callgrind.profile(own, [_WARM, *(text for name in half for text in (f"EXPLAIN {commands[name]}", commands[name]))])
        return {name: found[found["statement"] == 2 * number + 2] for number, name in enumerate(half)}

    with stopped(cluster):
        halves = in_turn(count, (names[::2], names[1::2]))
    return {name: frame for half in halves for name, frame in half.items()}


def _record(chapter: Chapter, workload: str, stacks: pd.DataFrame, program) -> None:
    """One observation per kind of number, a metric per routine or stack."""
    flat = stacks.groupby(["function", "object"], as_index=False)[["exclusive", "calls"]].sum()
    flat = breakdown.placed(flat[flat["exclusive"] > 0], program)
    names = [_SEP.join("" if pd.isna(part) else part for part in row) for row in flat[["function", "file", "directory", "subsystem", "object"]].itertuples(index=False)]
    kept = {
        EXPERIMENT: (dict(zip(names, flat["exclusive"].astype(float))), "instructions"),
        "calls": (dict(zip(names, flat["calls"].astype(float))), "calls"),
        "callers": (_callers(stacks), "calls"),
        "flame": (_pruned(stacks), "instructions"),
        "phases": (_phases(stacks), "instructions"),
    }
    # the experiment that `instructions` asks for comes last: an interrupted record is made anew
    for experiment in reversed(kept):
        metrics, unit = kept[experiment]
        keep(chapter, experiment, workload, metrics, unit)


def keep(chapter: Chapter, experiment: str, arm: str, metrics: Mapping[str, float], units: str | Mapping[str, str]) -> None:
    """Record what was counted for one arm, unless it is there: a count has neither block nor clock."""
    if (0, arm) in chapter.run.finished(experiment):
        return
    units = dict.fromkeys(metrics, units) if isinstance(units, str) else units
    position = len(chapter.run.finished(experiment))
    chapter.run.observe(experiment, arm, 0, metrics, units=units, seed=chapter.parameters.seed, position=position, started_at="", flags={})


def _frames(stack: str) -> list[str]:
    """A stack from the statement on, without how the process came to it; split-off parts under their routine's name."""
    names = [name.partition(".")[0] for name in stack.split(";")]
    return names[names.index(_ENTRY) :] if _ENTRY in names else ["(callers cut off)", *names]


def _pruned(stacks: pd.DataFrame) -> dict[str, float]:
    """Instructions by stack; what lies below frames of less than LEAST_FRAME counts as its caller's own."""
    inclusive: dict[tuple, int] = defaultdict(int)
    owned = [(tuple(_frames(stack)), cost) for stack, cost in zip(stacks["stack"], stacks["exclusive"])]
    for frames, cost in owned:
        for depth in range(1, len(frames) + 1):
            inclusive[frames[:depth]] += cost
    least = LEAST_FRAME * sum(cost for _, cost in owned)
    kept: dict[str, float] = defaultdict(float)
    for frames, cost in owned:
        while len(frames) > 1 and inclusive[frames] < least:
            frames = frames[:-1]
        kept[";".join(frames)] += cost
    return dict(kept)


ATTRIBUTE_ROUTINES = frozenset(
    {
        "slot_getsomeattrs_int", "slot_getattr", "slot_deform_heap_tuple", "tts_buffer_heap_getsomeattrs", "tts_heap_getsomeattrs",
        "tts_minimal_getsomeattrs", "tts_virtual_getsomeattrs", "nocachegetattr", "heap_getattr", "fastgetattr", "heap_deform_tuple",
        "nocache_index_getattr", "index_getattr", "index_deform_tuple", "index_deform_tuple_internal", "getmissingattr", "heap_getsysattr",
    }
)  # fmt: skip
"""Today's relatives of fastgetattr and amgetattr: routines that return attributes of a stored tuple."""


def _callers(stacks: pd.DataFrame) -> dict[str, float]:
    """Calls of the attribute routines by the routine that asked."""
    found: dict[str, float] = defaultdict(float)
    for stack, function, calls in zip(stacks["stack"], stacks["function"], stacks["calls"]):
        if function.partition(".")[0] in ATTRIBUTE_ROUTINES and calls:
            asking = [name for name in _frames(stack) if name not in ATTRIBUTE_ROUTINES]
            if asking and _frames(stack)[-2:-1] == asking[-1:]:
                found[asking[-1]] += calls
    return dict(found)


PHASES = {
    "parse": ("pg_parse_query", "pg_analyze_and_rewrite_fixedparams", "parse_analyze_fixedparams", "pg_rewrite_query"),
    "plan": ("pg_plan_queries", "pg_plan_query"),
    "execute": ("CreatePortal", "PortalStart", "PortalRun", "PortalDrop"),
    "begin and commit": ("start_xact_command", "finish_xact_command", "CommitTransactionCommand", "StartTransactionCommand"),
}


def _phases(stacks: pd.DataFrame) -> dict[str, float]:
    """Instructions by phase of a command: the outermost routine below the statement decides.

    What a utility command plans for itself (CREATE TABLE AS) counts as plan.
    """
    owner = {routine: phase for phase, routines in PHASES.items() for routine in routines}
    found = dict.fromkeys([*PHASES, "dispatch"], 0.0)
    for stack, cost in zip(stacks["stack"], stacks["exclusive"]):
        frames = _frames(stack)
        phases = [owner[name] for name in frames if name in owner]
        found["plan" if "plan" in phases else phases[0] if phases else "dispatch"] += cost
    return found


# ---- reading the record


def routines(chapter: Chapter, workload: str, provenance: str = "") -> pd.DataFrame:
    """The profile of a workload, most instructions first, from this run or else from the published one.

    Or from the one that `provenance` names: "measured" or "published".

    Columns: routine, file, directory, subsystem, object, instructions, share (percent), cumulative
    (percent), per_call, calls. Empty if neither has counted.
    """
    counted, called = (_of(chapter, experiment, workload, provenance) for experiment in (EXPERIMENT, "calls"))
    if counted.empty:
        return counted
    frame = pd.DataFrame([name.split(_SEP) for name in counted.index], columns=["routine", "file", "directory", "subsystem", "object"])
    frame["instructions"] = counted.to_numpy()
    frame["calls"] = called.reindex(counted.index).to_numpy()
    frame = frame.sort_values("instructions", ascending=False, ignore_index=True)
    frame["share"] = 100 * frame["instructions"] / frame["instructions"].sum()
    frame["cumulative"] = frame["share"].cumsum()
    frame["per_call"] = frame["instructions"] / frame["calls"].where(frame["calls"] > 0)
    return frame


def _of(chapter: Chapter, experiment: str, workload: str, provenance: str = "") -> pd.Series:
    """Metric to value of one recorded arm; of the published run where this one has none."""
    runs = {"measured": chapter.run.observations, "published": chapter.published_run}
    for name in [provenance] if provenance else runs:
        observations = runs[name](experiment)
        if not observations.empty:
            chosen = observations[observations["arm"] == workload]
            return pd.Series(chosen["value"].to_numpy(), index=chosen["metric"].to_numpy(), dtype=float)
    return pd.Series(dtype=float)


def by_arm(chapter: Chapter, experiment: str) -> pd.DataFrame:
    """A row per arm and a column per metric, from this run or else from the published one; empty if neither has counted."""
    for frame in (chapter.run.observations(experiment), chapter.published_run(experiment)):
        if not frame.empty:
            return frame.pivot(index="arm", columns="metric", values="value")
    return pd.DataFrame()


def measured(chapter: Chapter) -> bool:
    """Whether this run itself has counted instructions."""
    return not chapter.run.observations(EXPERIMENT).empty


def shares(chapter: Chapter, workload: str, provenance: str = "") -> pd.Series:
    """Percent of the instructions by subsystem, in the report's order, then what its figures don't list."""
    frame = routines(chapter, workload, provenance)
    if frame.empty:
        return pd.Series(dtype=float)
    return frame.groupby("subsystem")["share"].sum().reindex(breakdown.SUBSYSTEMS).fillna(0.0)


def share_of(chapter: Chapter, workload: str, names: Iterable[str]) -> float:
    """Percent of the instructions that routines of these names execute themselves."""
    frame = routines(chapter, workload)
    return float(frame.loc[frame["routine"].str.partition(".")[0].isin(set(names)), "share"].sum())


def gain(percent: float) -> float:
    """How much faster everything would be if this share of it cost nothing (Amdahl's law)."""
    return 1 / (1 - percent / 100)


def top(chapter: Chapter, workload: str, count: int = 10) -> pd.DataFrame:
    """The first routines with the report's columns."""
    frame = routines(chapter, workload).head(count)
    columns = {
        "instructions": "instructions", "share": "% instructions", "cumulative": "cum %", "per_call": "instructions/call",
        "calls": "calls", "routine": "routine", "file": "file", "subsystem": "subsystem",
    }  # fmt: skip
    if frame.empty:
        return frame
    frame = frame.assign(subsystem=frame["subsystem"].map(breakdown.SUBSYSTEMS), file=frame["file"].where(frame["file"] != "", frame["object"]))
    return frame.astype({"instructions": int, "calls": int})[list(columns)].rename(columns=columns)


def printed(stage: str) -> pd.DataFrame:
    """One of the report's profiles with its columns, and the calls that follow from them."""
    frame = published.derived("profiling_routines")
    frame = frame[frame["stage"] == stage]
    columns = {"cycles": "cycles", "share": "% cycles", "cumulative": "cum %", "per_call": "cycles/call", "calls": "calls (computed)", "routine": "routine", "file": "file"}
    return frame.assign(calls=frame["calls"].round().astype(int))[list(columns)].rename(columns=columns)


def phases(chapter: Chapter, workload: str) -> pd.Series:
    """Instructions by phase of a command."""
    return _of(chapter, "phases", workload)


def batch_commands(chapter: Chapter) -> int:
    """Commands of the counted batch, by the calls of what reads one; it counts the DISCARD that ends it as well."""
    frame = routines(chapter, TRANSACTIONS)
    return int(frame.loc[frame["routine"] == _ENTRY, "calls"].sum()) - 1


def callers(chapter: Chapter, workload: str) -> pd.Series:
    """Calls of the attribute routines by who asked."""
    return _of(chapter, "callers", workload)
