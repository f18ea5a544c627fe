"""What is judged: numbers and facts made of what the experiments found.

Where a parameter is called `simulated` it is a frame of `experiments.large_machines`, and an
interval made of it is marked as simulated.
"""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability.experiments import (
    clients,
    commits,
    large_machines,
    load,
    locks,
    wal,
)
from pgrerun.chapters.scalability.experiments.large_machines import PROCESSORS
from pgrerun.lab.models import group_commit
from pgrerun.lab.models import lookups as model
from pgrerun.record import claims, printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, greater, less, supporting

# ---- sweeps over clients

RESAMPLES = 100  # of the law's fit: its intervals are told and not judged
NEAR = 0.9  # of the greatest throughput, which the curve reaches where it bends


def law(chapter: Chapter, sweep: str) -> statistics.USL | None:
    """The universal scalability law fitted to a sweep over clients.

    None where no law can be: over too few blocks or numbers of clients, or where none fits.
    """
    swept = chapter.table(sweep, "throughput").melt(var_name="variant", value_name="value")
    swept = swept[swept["variant"].str.endswith(("client", "clients"))]
    if swept["variant"].nunique() < 4 or swept["variant"].value_counts().min() < statistics.ENOUGH:
        return None
    numbers, seed = swept["variant"].str.split().str[0].astype(int), chapter.parameters.seed
    try:
        return statistics.scalability(numbers, swept["value"], seed=seed, resamples=RESAMPLES)
    except (ValueError, RuntimeError):  # what scipy and we say where no law fits
        return None


def misses(chapter: Chapter, fitted: statistics.USL, sweep: str) -> int | None:
    """The number of clients of greatest throughput, where the law's peak isn't near it.

    Near are the numbers up to the next ones that were measured; None if the peak lies among them.
    """
    swept = chapter.table(sweep, "throughput").filter(regex="clients?$").median()
    measured = swept.rename(lambda variant: int(variant.split()[0])).sort_index()
    steps, most = list(measured.index), int(measured.idxmax())
    below = max((step for step in steps if step < most), default=0)
    above = min((step for step in steps if step > most), default=float("inf"))
    peak = fitted.peak.estimate
    return most if peak < below or peak > above else None


def bend(chapter: Chapter, sweep: str) -> int:
    """The fewest clients that come near the greatest throughput of a sweep."""
    swept = chapter.table(sweep, "throughput").filter(regex="clients?$").median()
    return min(int(variant.split()[0]) for variant in swept.index[swept >= NEAR * swept.max()])


def degraded(chapter: Chapter) -> Interval:
    """Throughput with as many clients as processors over that with the most clients."""
    few, most = load.one_per_processor(chapter), load.client_counts(chapter)[-1]
    return chapter.ratio("crowd", "throughput", load.by_clients(few), load.by_clients(most))


def linear(chapter: Chapter, load_name: str) -> Interval:
    """Throughput of a load on one processor, times the processors, over that on all of them."""
    alone = chapter.ratio("by processors", "throughput", *clients.scaled(load_name)[::-1])
    return alone.times(load.processors())


def speed_up_lost(chapter: Chapter) -> Interval:
    """What more clients gain where the pool holds the data over what they gain where it doesn't."""
    throughput = chapter.table("pools", "throughput")
    fits, small = (
        throughput[many] / throughput[one]
        for many, one in (clients.pool(clients.FITS), clients.pool(clients.SMALL))
    )
    return statistics.ratio(fits, small, seed=chapter.parameters.seed)


# ---- what backends wait for

COMMIT_LOG = ("XactSLRU", "XactBuffer", "XactGroupUpdate", "SLRURead", "SLRUWrite")
PROC_ARRAY = ("ProcArray", "ProcArrayGroupUpdate", "XidGen")


def waits_for(waits: pd.DataFrame, column: str, names: tuple[str, ...]) -> bool:
    """Whether at least one in a hundred active backends waits for something so named.

    `column` is "type" or "event".
    """
    waiting = waits.loc[waits[column].isin(names), "backends"].sum()
    return waiting > 0 and waiting >= 0.01 * waits["backends"].sum()


def commit_log(waits: pd.DataFrame) -> dict[str, bool]:
    """Whether writers wait for the commit log, by the load."""
    return {
        f"{load} commits: at least one in a hundred active writers waits for the commit log": (
            waits_for(waits[waits["load"] == load], "event", COMMIT_LOG)
        )
        for load in clients.COMMITS
    }


def process_array(written: pd.DataFrame) -> dict[str, bool]:
    """Whether writers wait for no lightweight lock longer than for the process array's."""
    facts = {}
    for name, waits in written.groupby("load", sort=False):
        light = waits[waits["type"].isin(["LWLock", "IPC"])].groupby("event")["backends"].sum()
        waited = light.reindex(PROC_ARRAY).sum()
        others = max(light.drop(list(PROC_ARRAY), errors="ignore"), default=0.0)
        fact = f"{name} commits: no lightweight lock is waited for longer than the process array's"
        facts[fact] = waited > 0 and waited >= others
    return facts


# ---- locks


def weak_and_strong(shown: pd.DataFrame) -> dict[str, bool | Part]:
    """What the talk says of weak and strong locks, of what `locks.weak_and_strong` measured."""
    states = dict(list(shown.groupby("state")))
    readers, writer = states[locks.READERS], states[locks.READER_AND_WRITER]
    alter, drop = (states[state] for state in locks.FORCEFUL)
    return {
        "readers don't wait for each other": readers["granted"].all(),
        "an ALTER waits for a reader": not alter["granted"].all(),
        "a DROP waits for a reader": not drop["granted"].all(),
        "a reader and a writer don't wait for each other": supporting(writer["granted"].all()),
        "their locks are on the fast path": supporting(
            pd.concat([readers, writer])["fastpath"].all()
        ),
        "the DROP has moved the reader's lock into the lock table": supporting(
            not drop["fastpath"].any()
        ),
    }


def virtual_transactions(shown: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether a virtual transaction's lock is on the fast path until somebody waits for it."""
    before, waited_for = shown["fastpath"]
    return {
        "a virtual transaction's lock is on the fast path": before,
        "who waits for it moves it into the lock table": supporting(not waited_for),
    }


def cache_lines(chapter: Chapter) -> dict[str, Interval | Part]:
    """What a word costs more with a neighbour in its line, and mixed with words not wanted."""
    pairs = {
        "beside a word of its line": (large_machines.SAME_LINE, large_machines.OTHER_LINE),
        "mixed with words not wanted": (large_machines.SPREAD, large_machines.PACKED),
    }
    # what is only spread over more lines, without anybody who takes them away
    alone = large_machines.UNDISTURBED, large_machines.PACKED
    return {name: chapter.ratio("cache lines", "time", *pair) for name, pair in pairs.items()} | {
        "spread, and changed by nobody": supporting(chapter.ratio("cache lines", "time", *alone))
    }


# ---- commit log, commits and WAL

# Release notes of 9.4, general performance: "Allow multiple backends to insert into WAL buffers
# concurrently".
DIVIDED_IN = 9.4


def kilobytes(buffers: pd.DataFrame) -> dict[str, float | Part]:
    """Memory for the commit log by the size of the buffer pool, in kilobytes.

    The cap shows where the size adapts to the largest pool; the others are told beside.
    """
    sizes = {
        f"shared_buffers {row.shared_buffers}": float(row.kilobytes) for row in buffers.itertuples()
    }
    most = max(sizes.values())
    return {name: size if size == most else supporting(size) for name, size in sizes.items()}


def asked_once(scans: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether index scans look up nothing in the commit log that they know already."""
    unseen, first, again = scans["lookups"]
    return {
        # it may look up one of the catalogs'
        "in the commit log an index scan looks up at most one in a hundred of the tuples that are"
        " too new for its snapshot": unseen <= 0.01 * scans["tuples"].iloc[0],
        "one whose snapshot sees them looks up each no more than once": supporting(
            first <= scans["tuples"].iloc[1]
        ),
        "the next one looks up none again": supporting(again == 0),
    }


def wal_writer(chapter: Chapter) -> dict[str, Interval | Part]:
    """Asynchronous commits with a WAL writer as it comes and one that sleeps, as ratios."""
    responsive = (wal.RESPONSIVE, wal.SLUGGISH)
    return {
        "throughput": chapter.ratio("wal writer", "throughput", *responsive),
        "CLOG lookups saved": supporting(chapter.ratio("wal writer", "lookups", *responsive[::-1])),
    }


def everybody_waits(sessions: pd.DataFrame) -> bool:
    """Whether who needs another page waits for the slow one."""
    return sessions.set_index("session")["waits"][wal.OTHER_PAGE]


def shared_flushes(chapter: Chapter) -> Interval:
    """Commits that a slowed flush carries with the most clients, over those with two."""
    two, most = (commits.swept(commits.PLAIN, number) for number in (2, commits.sizes(chapter)[-1]))
    return chapter.ratio("slowed sweep", "per flush", most, two)


def copy_saves(copied: pd.DataFrame) -> float:
    """WAL of single INSERTs over that of COPY."""
    written = copied.set_index("way")["bytes"]
    return written[wal.INSERTED] / written[wal.COPIED]


def insertion(chapter: Chapter) -> dict[str, bool | None | Part]:
    """Is WAL insertion single-threaded, and worst right after a checkpoint."""
    several, one = load.by_clients(wal.several()), load.by_clients(1)
    inserted = chapter.ratio("insertion", "records", several, one)
    slower = chapter.ratio("checkpointed", "throughput", wal.LATER, wal.AFTER)
    more = chapter.ratio("checkpointed", "log", wal.AFTER, wal.LATER)
    return {
        "several sessions insert no more records than one": less(inserted, 1.05),
        "right after a checkpoint throughput is lower": greater(slower),
        "right after a checkpoint a transaction writes more WAL": supporting(greater(more)),
    }


# ---- simulated machines


def validation(swept: pd.DataFrame) -> str:
    """How to call the simulation, which fails where no line cost gives the talk's gain."""
    if large_machines.gains_by_line(swept).max() >= large_machines.TALK["gain"]:
        return "in the simulation"
    return "in the simulation, which fails its validation"


def _played(simulated: pd.DataFrame, *point: str | int) -> pd.Series:
    """Throughput of a simulated point (release, processors, clients), by block."""
    points = simulated.set_index(["release", "processors", "clients", "block"])["throughput"]
    return points.sort_index()[point]


def gain(
    simulated: pd.DataFrame,
    release: str = model.AFTER,
    processors: int = PROCESSORS,
    over: int = 1,
) -> Interval:
    """A release's throughput over 9.1's, with `over` clients per processor."""
    where = processors, over * processors
    both = (_played(simulated, name, *where) for name in (release, model.BEFORE))
    return statistics.simulated(statistics.ratio(*both))


def peak(simulated: pd.DataFrame) -> Interval:
    """Processors over the clients at which 9.1 is fastest."""
    machine = simulated["processors"] == PROCESSORS
    swept = simulated[machine & (simulated["release"] == model.BEFORE)]
    best = swept.pivot(index="clients", columns="block", values="throughput").idxmax()
    return statistics.simulated(statistics.median(PROCESSORS / best))


def falling(simulated: pd.DataFrame) -> dict[str, bool | None]:
    """What becomes of the first patch alone beyond as many clients as processors."""
    first, before = (
        _played(simulated, release, PROCESSORS, 2 * PROCESSORS)
        / _played(simulated, release, PROCESSORS, PROCESSORS)
        for release in (model.FIRST, model.BEFORE)
    )
    return {
        "the first patch alone loses throughput": less(statistics.median(first), margin=0.05),
        "it loses more than 9.1": less(statistics.ratio(first, before)),
        "it drops below 9.1": less(gain(simulated, model.FIRST, over=2)),
    }


COMMIT_GAIN = claims.Size(
    printed.cell("scalability_write", "commit_gain_low", "value"),
    printed.cell("scalability_write", "commit_gain_high", "value"),
)
"""What the talk's group commit gains with its clients, from and to."""


def queue_gains(simulated: pd.DataFrame) -> pd.Series:
    """Throughput of 9.2's commits over that of 9.1's, by flush (seconds) and clients.

    Of what `commits.simulate` played.
    """
    ways = simulated.pivot_table(index=["flush", "clients"], columns="way", values="throughput")
    return ways[group_commit.TOGETHER] / ways[group_commit.QUEUE]


# ---- an idle server


def wakeup_rate(woken: pd.DataFrame) -> Interval:
    """Wake-ups per second of all auxiliary processes together, of what `wakeups` measured."""
    each, seconds = woken.drop(columns="role").sum(), woken.attrs["seconds"]
    return statistics.rate(each * seconds / len(each), seconds)
