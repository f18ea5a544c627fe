"""Machines with more processors than there are here: the talk's releases, simulated on this machine's costs.

What a transaction does is counted in the sources of the releases (`visits`), what it costs is
measured here (`Costs`), how locks meet is `models.contention`'s.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from multiprocessing import get_context

import numpy as np
import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability import locks, reading
from pgrerun.chapters.scalability.bench import busy
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import switching
from pgrerun.models import contention
from pgrerun.models.contention import Machine, Transaction, Visit

BEFORE, FIRST, AFTER = "9.1", "first patch", "9.2"
RELEASES = (BEFORE, FIRST, AFTER)
NO_MESSAGES, OLD_LINUX = "9.2, messages locked", "9.2, old Linux"

LOCK_LINES = 5  # the lightweight lock, the hash bucket, the lock, and the two ends of its list of holders
PARTITIONS = 16  # of the lock table and of the buffer table, lock.h and lwlock.h of 9.1
TALK = published.table("scalability_read").value


@dataclass(frozen=True)
class Costs:
    """Seconds, measured here: a lookup's processor time without its locks (`work`), one visit of the
    lock table (`visit`), one cache line fetched from another processor (`line`), a sleep and its
    end (`switch`), the delay until a sleeper runs (`rouse`)."""

    work: float
    visit: float
    line: float
    switch: float
    rouse: float


def handoffs(chapter: Chapter) -> None:
    """What one process pays to wake another on the next processor."""

    def measure(block: Block) -> dict[str, float]:
        found = switching.handoff(rounds=400)
        return {"elapsed": found.elapsed * 1e6, "processor": found.processor * 1e6}

    chapter.compare("handoff", [Arm("handoff", measure)], {"elapsed": "µs", "processor": "µs"})


def calibrated(chapter: Chapter) -> list[Costs] | None:
    """The model's costs, one set for each block in which they were measured; None if they weren't.

    A visit is half of what taking and releasing a lock costs a session alone. Two sessions that
    want the same lock take turns, so the lock is passed on four times while each takes and releases
    it once; what that takes longer than four visits is the fetching of the lock's cache lines.
    """
    loops, handed = chapter.table("lock costs", "time"), {m: chapter.table("handoff", m) for m in ("elapsed", "processor")}
    if loops.empty or handed["elapsed"].empty:
        return None
    visit = (loops[locks.ALONE] - loops[locks.EMPTY]).clip(lower=1) / 2
    line = (loops[locks.SAME] / 4 - visit).clip(lower=1) / LOCK_LINES
    work = reading.processor_time(chapter)
    return [
        Costs(work[block], visit[block] * 1e-9, line[block] * 1e-9, handed["processor"]["handoff"][block] * 1e-6, handed["elapsed"]["handoff"][block] * 1e-6)
        for block in loops.index.intersection(work.index)
    ]


def visits(release: str, costs: Costs) -> tuple[Visit, ...]:
    """The shared locks that a prepared lookup by primary key takes, in a release or a state of it.

    Two relations are locked, the table and its index; each lock is taken and given back. The
    virtual transaction's lock is another one each time. Whether there are invalidation messages is
    asked when a transaction begins and for each relation locked. Taking a lightweight lock in
    shared mode, and giving it back, each asks for the spinlock in front of it.
    """
    spin = dict(held=costs.line / 2, spins=True)  # a few instructions on a line that has been fetched
    table = dict(times=2, held=costs.visit, lines=LOCK_LINES)
    own = (Visit("lock of the virtual transaction", ways=PARTITIONS, **table),)
    relations = (Visit("lock of the table", **table), Visit("lock of the index", **table))
    messages = (Visit("invalidation messages", times=6, **spin),)
    rest = (Visit("snapshot", times=2, **spin), Visit("root page", times=4, **spin), Visit("other pages", times=4, ways=PARTITIONS, **spin))
    # lseek took the mutex of the file's inode before Linux 3.2; a lookup asks for the size of two files
    seeks = (Visit("lseek", times=2, held=4 * costs.line, spins=True),)
    return {
        BEFORE: own + relations + messages + rest,
        FIRST: own + messages + rest,
        AFTER: rest,
        NO_MESSAGES: messages + rest,
        OLD_LINUX: seeks + rest,
    }[release]


def machine(processors: int, costs: Costs) -> Machine:
    """So many of this machine's processors."""
    return Machine(processors, transfer=costs.line, switch=costs.switch, rouse=costs.rouse)


def _throughput(task: tuple) -> float:
    release, processors, clients, costs, transactions, seed = task
    lookup = Transaction(costs.work, visits(release, costs))
    if clients == 1:
        return contention.alone(lookup)
    return contention.play(machine(processors, costs), lookup, clients, transactions=transactions, seed=seed).throughput


def _play(chapter: Chapter, points: Iterable[tuple], play=_throughput) -> list[float]:
    """Throughput of many simulated points (release, processors, clients, costs, what else `play` takes, and a block), on all processors.

    With more clients more transactions are played: it takes each a few until the curve is where it stays.
    """
    given = chapter.parameters
    length = lambda clients: round(given.simulated_transactions * (1 + clients / TALK["cores"]))
    tasks = [(*point, length(point[2]), given.seed + block) for *point, block in points]
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        return list(pool.map(play, tasks, chunksize=1))


# What is judged on simulated machines.
CLAIMS = ("haas-001", "haas-004", "haas-005", "haas-006", "haas-007", "haas-010", "haas-011", "haas-014", "haas-024")
LINES = tuple(nanoseconds * 1e-9 for nanoseconds in (10, 40, 80, 120, 150))


def by_line(chapter: Chapter) -> pd.DataFrame:
    """The talk's machine with a dearer and dearer cache line, all else as measured: line (seconds), release, clients, throughput.

    How long a line takes from one processor to another depends on how far they are apart. On the
    talk's machine they sat in four sockets, and how long it took there can't be known here.
    """
    each = calibrated(chapter)
    if each is None:
        raise CannotMeasure("2 processors", "the simulation's costs were not measured")
    typical = _median(each)
    cores = int(TALK["cores"])
    wanted = [(BEFORE, cores), (AFTER, cores), (BEFORE, 2 * cores), (FIRST, 2 * cores)]
    points = [(release, cores, clients, replace(typical, line=line)) for line in LINES for release, clients in wanted]
    found = _play(chapter, [(*point, 0) for point in points])
    rows = [(costs.line, release, clients, value) for (release, _, clients, costs), value in zip(points, found)]
    return pd.DataFrame(rows, columns=["line", "release", "clients", "throughput"])


def _median(each: list[Costs]) -> Costs:
    return Costs(*(float(np.median([getattr(costs, field.name) for costs in each])) for field in fields(Costs)))


def gains_by_line(swept: pd.DataFrame) -> pd.Series:
    """Throughput of 9.2 over 9.1 with as many clients as processors, by the cost of a cache line."""
    at = swept[swept["clients"] == TALK["cores"]].pivot(index="line", columns="release", values="throughput")
    return at[AFTER] / at[BEFORE]


def talks_line(swept: pd.DataFrame) -> float:
    """The cost of a cache line at which the model comes nearest to the one figure it is calibrated on, the gain at 32 clients."""
    return float((gains_by_line(swept) - TALK["gain"]).abs().idxmin())


SWEEP = (1, 8, 16, 20, 24, 32, 64)
SEEDS = 5
HERE, THERE = "cache lines as here", "cache lines as the talk's gain asks"


def simulate(chapter: Chapter, swept: pd.DataFrame | None) -> pd.DataFrame | None:
    """All simulated machines: lines (`HERE` or `THERE`), release, processors, clients, block, throughput.

    The costs of `THERE` are the medians, and its blocks differ in what is drawn at random; of points
    that are only drawn there is one. `HERE` has a block for each of as many sets of measured costs; its
    curves come from the first set.
    """
    if swept is None:
        return None
    each = calibrated(chapter)
    there = replace(_median(each), line=talks_line(swept))
    cores, small, large = (int(TALK[row]) for row in ("cores", "cores_small", "cores_large"))
    curves = [(release, cores, clients) for release in RELEASES for clients in SWEEP]
    judged = [(BEFORE, cores, clients) for clients in SWEEP if clients >= cores / 2] + [(FIRST, cores, clients) for clients in SWEEP if clients > cores]
    judged += [(release, cores, clients) for release in (AFTER, NO_MESSAGES) for clients in (1, cores)]
    judged += [(release, small, small) for release in (BEFORE, AFTER)]
    points = [(THERE, *point, there, block) for block in range(SEEDS) for point in judged]
    points += [(THERE, *point, there, 0) for point in curves if point not in judged]
    points += [(HERE, *point, each[0], 0) for point in curves if point[2] != cores]
    larger = [(AFTER, large, 1), *((release, large, large) for release in (AFTER, OLD_LINUX, BEFORE))]
    points += [(HERE, *point, costs, block) for block, costs in enumerate(each[:SEEDS]) for point in [*larger, *((release, cores, cores) for release in RELEASES)]]
    found = _play(chapter, [point[1:] for point in points])
    rows = [(*point[:4], point[5], value) for point, value in zip(points, found)]
    return pd.DataFrame(rows, columns=["lines", "release", "processors", "clients", "block", "throughput"])


def on(simulated: pd.DataFrame | None, lines: str) -> pd.DataFrame | None:
    """The points of one kind of machine."""
    return None if simulated is None else simulated[simulated["lines"] == lines]


def pick(simulated: pd.DataFrame, release: str, processors: float, clients: float) -> pd.Series:
    """Throughput of one simulated point, by block."""
    chosen = simulated[(simulated["release"] == release) & (simulated["processors"] == processors) & (simulated["clients"] == clients)]
    return chosen.set_index("block")["throughput"]


def ratio(above: pd.Series, below: pd.Series) -> statistics.Interval:
    """The ratio of two simulated throughputs, its interval from the measured costs' spread; marked as simulated."""
    return statistics.simulated(statistics.ratio(above, below))


def gain(simulated: pd.DataFrame | None, cores: float, release: str = AFTER, base: str = BEFORE) -> statistics.Interval | None:
    """Throughput of one release over another's, with as many clients as processors."""
    if simulated is None:
        return None
    return ratio(pick(simulated, release, cores, cores), pick(simulated, base, cores, cores))


def peak(simulated: pd.DataFrame | None) -> statistics.Interval | None:
    """Processors over the clients at which 9.1 is fastest."""
    if simulated is None:
        return None
    cores = TALK["cores"]
    swept = simulated[(simulated["release"] == BEFORE) & (simulated["processors"] == cores)]
    best = swept.loc[swept.groupby("block")["throughput"].idxmax()].set_index("block")["clients"]
    return statistics.simulated(statistics.median(cores / best))


def speedup(simulated: pd.DataFrame | None) -> statistics.Interval | None:
    """Throughput of 9.2 with all of the large machine's processors over that of one client."""
    if simulated is None:
        return None
    large = TALK["cores_large"]
    return ratio(pick(simulated, AFTER, large, large), pick(simulated, AFTER, large, 1))


def curve(simulated: pd.DataFrame, release: str) -> pd.Series:
    """Median throughput of a release on the talk's machine, by clients."""
    chosen = simulated[(simulated["release"] == release) & (simulated["processors"] == TALK["cores"])]
    return chosen.groupby("clients")["throughput"].median()


def kept_beyond(simulated: pd.DataFrame, release: str) -> float:
    """The least that a release keeps of its best throughput with more clients than processors."""
    throughput = curve(simulated, release)
    return float(throughput[throughput.index > TALK["cores"]].min() / throughput.max())


def falling_facts(simulated: pd.DataFrame | None) -> dict[str, bool] | None:
    """What becomes of the first patch alone beyond as many clients as processors."""
    if simulated is None:
        return None
    cores, beyond = TALK["cores"], [clients for clients in SWEEP if clients > TALK["cores"]]
    kept = {release: kept_beyond(simulated, release) for release in RELEASES}
    lowest = min(ratio(pick(simulated, FIRST, cores, n), pick(simulated, BEFORE, cores, n)).high for n in beyond)
    return {
        "simulated, the first patch alone loses throughput with more clients than processors": kept[FIRST] < 1 / 1.05,
        "simulated, it loses a larger share of its best than 9.1": kept[FIRST] < kept[BEFORE],
        "simulated, it drops below 9.1": lowest < 1,
        "simulated, all patches together lose a smaller share": kept[AFTER] > kept[FIRST],
    }


def largest_facts(simulated: pd.DataFrame | None, gained: statistics.Interval | None) -> dict[str, bool] | None:
    """Whether the fast path is the largest single gain."""
    if simulated is None or gained is None:
        return None
    cores = TALK["cores"]
    first, rest = gain(simulated, cores, FIRST, BEFORE), gain(simulated, cores, AFTER, FIRST)
    return {
        "measured here, locks on the fast path give more throughput than locks in the lock table": gained.low > 1,
        "simulated with as many processors as in the talk, the fast path alone gives more": first.low > 1.05,
        "simulated, it gives more than all later patches give on top of it": first.low > rest.high,
    }


def message_facts(simulated: pd.DataFrame | None) -> dict[str, bool] | None:
    """What asking for invalidation messages under a lock costs, alone and with many clients."""
    if simulated is None:
        return None
    cores = TALK["cores"]
    cost = {n: ratio(pick(simulated, AFTER, cores, n), pick(simulated, NO_MESSAGES, cores, n)) for n in (1, cores)}
    return {
        "simulated with one client, not locking gains less than one percent": cost[1].high < 1.01,
        "simulated with as many clients as processors, it gains more than five percent": cost[cores].low > 1.05,
    }


def both_facts(simulated: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether many processors need both, the patches and a kernel that doesn't lock a file to tell its size."""
    if simulated is None:
        return None
    large = TALK["cores_large"]
    alone = pick(simulated, AFTER, large, 1)
    share = {name: ratio(pick(simulated, name, large, large), alone * large).estimate for name in (BEFORE, OLD_LINUX, AFTER)}
    return {
        "simulated, 9.1 on a kernel without that lock stays below nine tenths of linear": share[BEFORE] < 0.9,
        "simulated, 9.2 on a kernel with it stays below nine tenths of linear": share[OLD_LINUX] < 0.9,
        "simulated, 9.2 on a kernel without it reaches nine tenths": share[AFTER] >= 0.9,
    }


# ---- writers

WRITERS = published.table("scalability_write").value


def write_visits(release: str, clients: int, costs: Costs, record: float) -> tuple[Visit, ...]:
    """The same for pgbench's transaction without waiting for the flush; `record` is the time to insert one record.

    Seven relations are locked. Every one of five statements takes a snapshot, which reads an entry
    per client: in 9.1 each in a line of its own, in 9.2 five to a line. The process array and the
    commit log are locked once, at the commit, and five records go into the log.
    """
    spin = dict(held=costs.line / 2, spins=True)
    table = dict(times=2, held=costs.visit, lines=LOCK_LINES)
    entries = clients / (1 if release == BEFORE else 5)
    log = Visit("insertion into the log", times=5, held=record, lines=2)
    ends = (Visit("process array", times=1, held=costs.visit, lines=entries), Visit("commit log", times=1, held=costs.visit, lines=2))
    snapshots = (Visit("snapshots", times=10, **spin), Visit("entries of the snapshots", times=5, held=costs.line / 2, lines=entries, ways=max(1, clients)))
    own = (Visit("lock of the virtual transaction", ways=PARTITIONS, **table),)
    relations = tuple(Visit(f"lock of relation {number}", **table) for number in range(7))
    messages = (Visit("invalidation messages", times=16, **spin),)
    return (own + relations + messages if release == BEFORE else ()) + snapshots + (log,) + ends


def _written(task: tuple) -> float:
    release, processors, clients, costs, work, record, transactions, seed = task
    transaction = Transaction(work, write_visits(release, clients, costs, record))
    return contention.play(machine(processors, costs), transaction, clients, transactions=transactions, seed=seed).throughput


def simulate_writes(chapter: Chapter, swept: pd.DataFrame | None) -> pd.DataFrame | None:
    """pgbench's transaction on the talk's machine, over clients: release, processors, clients, block, throughput."""
    each, written, inserted = calibrated(chapter), chapter.table("write", "throughput"), chapter.table("insertion", "records")
    if each is None or swept is None or written.empty or inserted.empty:
        return None
    work = busy(chapter) / written[reading.clients(busy(chapter))].median()
    record = 1 / inserted[reading.clients(1)].median() - chapter.median("lock costs", "time", locks.EMPTY).estimate * 1e-9
    cores = int(TALK["cores"])
    points = [
        (release, cores, clients, replace(_median(each), line=talks_line(swept)), work, max(record, 1e-8), block)
        for block in range(SEEDS) for release in (BEFORE, AFTER) for clients in (cores,)
    ]  # fmt: skip
    rows = [(*point[:3], point[-1], value) for point, value in zip(points, _play(chapter, points, _written))]
    return pd.DataFrame(rows, columns=["release", "processors", "clients", "block", "throughput"])


def a_dish(chapter: Chapter) -> None:
    """The dish lies between a quarter and half of 64 processors: with fewer than eight there is nothing between (CannotMeasure)."""
    raise CannotMeasure(
        "64 processors",
        "the dish lies between a quarter and half of the processors of a large machine and is credited to Linux's scheduler, of which the simulation has no model",
    )
