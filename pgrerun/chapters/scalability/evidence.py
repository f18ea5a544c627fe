"""What is judged: numbers and facts made of what the experiments found.

Where a parameter is called `simulated` it is a frame of `experiments.large_machines`, and an
interval made of it is marked as simulated.
"""

from dataclasses import replace

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability import model
from pgrerun.chapters.scalability.experiments import clients, commits, idle, load, locks, wal
from pgrerun.chapters.scalability.experiments.large_machines import HERE, LARGE, PROCESSORS, THERE
from pgrerun.record import printed, statistics

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


def bend(chapter: Chapter, sweep: str) -> int:
    """The fewest clients that come near the greatest throughput of a sweep."""
    swept = chapter.table(sweep, "throughput").filter(regex="clients?$").median()
    return min(int(variant.split()[0]) for variant in swept.index[swept >= NEAR * swept.max()])


def degraded(chapter: Chapter) -> statistics.Interval:
    """Throughput with as many clients as processors over that with the most clients."""
    few, most = load.one_per_processor(chapter), load.client_counts(chapter)[-1]
    return chapter.ratio("read", "throughput", load.by_clients(few), load.by_clients(most))


def short_of_linear(chapter: Chapter) -> statistics.Interval:
    """Linear throughput with as many clients as processors over the measured one."""
    throughput, busy = chapter.table("write", "throughput"), load.one_per_processor(chapter)
    linear, measured = throughput[load.by_clients(1)] * busy, throughput[load.by_clients(busy)]
    return statistics.ratio(linear, measured, seed=chapter.parameters.seed)


def gain_over(
    chapter: Chapter, experiment: str, pair: tuple[str, str], base: tuple[str, str]
) -> statistics.Interval:
    """The ratio of two ratios of throughputs, each of a variant over another."""
    throughput = chapter.table(experiment, "throughput")
    gain, other = (throughput[above] / throughput[below] for above, below in (pair, base))
    return statistics.ratio(gain, other, seed=chapter.parameters.seed)


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


def _loads(written: pd.DataFrame, read: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What backends wait for with the most clients, by load."""
    loads = {"lookups": read[read["clients"] == read["clients"].max()]}
    return loads | {f"{load} commits": written[written["load"] == load] for load in clients.COMMITS}


def process_array(written: pd.DataFrame, read: pd.DataFrame) -> dict[str, bool]:
    """Whether the process array is the worst bottleneck among the lightweight locks."""
    facts = {}
    for name, waits in _loads(written, read).items():
        light = waits[waits["type"].isin(["LWLock", "IPC"])].groupby("event")["backends"].sum()
        waited = light.reindex(PROC_ARRAY).sum()
        others = max(light.drop(list(PROC_ARRAY), errors="ignore"), default=0.0)
        fact = f"{name}: no lightweight lock is waited for longer than the process array's"
        facts[fact] = waited > 0 and waited >= others
    return facts


def light_locks(
    written: pd.DataFrame, read: pd.DataFrame, locking: pd.DataFrame
) -> dict[str, bool]:
    """Under which loads of this chapter backends still wait for lightweight locks."""
    loads = _loads(written, read)
    for variant, waits in locking.groupby("variant", sort=False):
        loads[f"many relations, {variant}"] = waits
    fact = "one in a hundred active backends waits for a lightweight lock"
    return {
        f"{name}: {fact}": waits_for(waits, "type", ("LWLock",)) for name, waits in loads.items()
    }


# ---- locks


def weak_and_strong(shown: pd.DataFrame) -> dict[str, bool]:
    """What the talk says of weak and strong locks, of what `locks.weak_and_strong` measured."""
    states = dict(list(shown.groupby("state")))
    readers, writer = states[locks.READERS], states[locks.READER_AND_WRITER]
    drop = states[locks.READER_AND_DROP]
    return {
        "readers don't wait for each other": readers["granted"].all(),
        "a reader and a writer don't wait for each other": writer["granted"].all(),
        "their locks are on the fast path": pd.concat([readers, writer])["fastpath"].all(),
        "a DROP waits for a reader": not drop["granted"].all(),
        "the DROP has moved the reader's lock into the lock table": not drop["fastpath"].any(),
    }


def virtual_transactions(shown: pd.DataFrame) -> dict[str, bool]:
    """Whether a virtual transaction's lock is on the fast path until somebody waits for it."""
    before, waited_for = shown["fastpath"]
    return {
        "a virtual transaction's lock is on the fast path": before,
        "who waits for it moves it into the lock table": not waited_for,
    }


# ---- commit log, commits and WAL

# Release notes of 9.4, general performance: "Allow multiple backends to insert into WAL buffers
# concurrently".
DIVIDED_IN = 9.4


def kilobytes(buffers: pd.DataFrame) -> dict[str, float]:
    """Memory for the commit log by the size of the buffer pool, in kilobytes."""
    return {
        f"shared_buffers {row.shared_buffers}": float(row.kilobytes) for row in buffers.itertuples()
    }


def lookups_per_tuple(scans: pd.DataFrame) -> dict[str, float]:
    """Lookups per tuple, by scan."""
    return {f"{row.scan} scan": row.lookups / row.tuples for row in scans.itertuples()}


def everybody_waits(sessions: pd.DataFrame) -> bool:
    """Whether who needs another page waits for the slow one."""
    return sessions.set_index("session")["waits"][wal.OTHER_PAGE]


def clients_of_the_talk(chapter: Chapter) -> str:
    """What to remark on a gain with fewer or more clients than the talk had; "" with as many."""
    here, talks = commits.clients(chapter, commits.MANY), commits.TALK_CLIENTS
    return "" if here == talks else f"with {here} clients, where the talk had {talks}"


def copy_saves(copied: pd.DataFrame) -> float:
    """WAL of single INSERTs over that of COPY."""
    written = copied.set_index("way")["bytes"]
    return written[wal.INSERTED] / written[wal.COPIED]


def inserting_scales(chapter: Chapter) -> statistics.Interval:
    """Records that several sessions insert over those of one."""
    several, one = load.by_clients(wal.several()), load.by_clients(1)
    return chapter.ratio("insertion", "records", several, one)


def insertion(chapter: Chapter, waits: pd.DataFrame) -> dict[str, bool]:
    """Is WAL insertion single-threaded, and worst right after a checkpoint.

    `waits` is what writers wait for.
    """
    slower = chapter.ratio("checkpointed", "throughput", wal.LATER, wal.AFTER)
    more = chapter.ratio("checkpointed", "log", wal.AFTER, wal.LATER)
    asynchronous = waits[waits["load"] == clients.ASYNCHRONOUS]
    return {
        "several sessions insert no more records than one": inserting_scales(chapter).high < 1.05,
        "writers wait to insert": waits_for(asynchronous, "event", ("WALInsert",)),
        "right after a checkpoint a transaction writes more log": more.low > 1.05,
        "right after a checkpoint throughput is lower": slower.low > 1.05,
    }


def divided(chapter: Chapter) -> dict[str, bool]:
    """Whether the WAL's insertion was divided, and as early as the talk thought."""
    talks = printed.cell("scalability_idle", "wal_fixed_in", "value")
    return {
        "here it can't be shown that several sessions insert no more records than one": (
            not inserting_scales(chapter).high < 1.05
        ),
        "PostgreSQL's release notes have it no later than the talk": talks >= DIVIDED_IN,
    }


def longest_flush(chapter: Chapter) -> statistics.Interval:
    """Seconds of the longest flush of a small file while somebody copies a large one."""
    return chapter.median("flushes", "longest", wal.BUSY).times(1e-3)


# ---- simulated machines


def relative(
    simulated: pd.DataFrame, above: tuple[str, str, int, int], below: tuple[str, str, int, int]
) -> statistics.Interval:
    """Throughput of one simulated point over another's, paired by block.

    A point is lines, release, processors, clients; the interval is from the measured costs' spread.
    """
    point = ["lines", "release", "processors", "clients"]
    throughput = simulated.set_index([*point, "block"])["throughput"].sort_index()
    return statistics.simulated(statistics.ratio(throughput[above], throughput[below]))


def gain(
    simulated: pd.DataFrame,
    lines: str,
    processors: int = PROCESSORS,
    release: str = model.AFTER,
    base: str = model.BEFORE,
) -> statistics.Interval:
    """Throughput of one release over another's, with as many clients as processors."""
    machine = processors, processors
    return relative(simulated, (lines, release, *machine), (lines, base, *machine))


def peak(simulated: pd.DataFrame) -> statistics.Interval:
    """Processors over the clients at which 9.1 is fastest, with the talk's cache lines."""
    swept = simulated[_on_talks_machine(simulated) & (simulated["release"] == model.BEFORE)]
    best = swept.pivot(index="clients", columns="block", values="throughput").idxmax()
    return statistics.simulated(statistics.median(PROCESSORS / best))


def _on_talks_machine(simulated: pd.DataFrame) -> pd.Series:
    return (simulated["lines"] == THERE) & (simulated["processors"] == PROCESSORS)


def curves(simulated: pd.DataFrame) -> pd.DataFrame:
    """Median throughput on the talk's machine: a row per number of clients, a column per release.

    Only those that the talk draws have a column.
    """
    points = simulated[_on_talks_machine(simulated)].groupby(["clients", "release"])
    return points["throughput"].median().unstack()[list(model.RELEASES)]


def kept_beyond(simulated: pd.DataFrame) -> pd.Series:
    """The least that each release keeps of its best with more clients than processors."""
    throughput = curves(simulated)
    return throughput[throughput.index > PROCESSORS].min() / throughput.max()


def falling(simulated: pd.DataFrame) -> dict[str, bool]:
    """What becomes of the first patch alone beyond as many clients as processors."""
    before, first, after = kept_beyond(simulated)[list(model.RELEASES)]
    tried = curves(simulated)[model.FIRST].dropna().index
    points = [(PROCESSORS, number) for number in tried[tried > PROCESSORS]]
    least = min(
        relative(simulated, (THERE, model.FIRST, *point), (THERE, model.BEFORE, *point)).high
        for point in points
    )
    return {
        "simulated, the first patch alone loses throughput with more clients than processors": (
            first < 1 / 1.05
        ),
        "simulated, it loses a larger share of its best than 9.1": first < before,
        "simulated, it drops below 9.1": least < 1,
        "simulated, all patches together lose a smaller share": after > first,
    }


def largest(simulated: pd.DataFrame, measured: statistics.Interval) -> dict[str, bool]:
    """Whether the fast path is the largest single gain; `measured` is what it gains here."""
    first = gain(simulated, HERE, release=model.FIRST, base=model.BEFORE)
    rest = gain(simulated, HERE, release=model.AFTER, base=model.FIRST)
    return {
        "measured here, locks on the fast path give more throughput than locks in the lock table": (
            measured.low > 1
        ),
        "simulated with as many processors as in the talk, the fast path alone gives more": (
            first.low > 1.05
        ),
        "simulated, it gives more than all later patches give on top of it": first.low > rest.high,
    }


def messages(simulated: pd.DataFrame) -> dict[str, bool]:
    """What asking for invalidation messages under a lock costs, alone and with many clients."""
    one, many = (
        relative(simulated, (THERE, model.AFTER, *point), (THERE, model.NO_MESSAGES, *point))
        for point in ((PROCESSORS, 1), (PROCESSORS, PROCESSORS))
    )
    return {
        "simulated with one client, not locking gains less than one percent": one.high < 1.01,
        "simulated with as many clients as processors, it gains more than five percent": (
            many.low > 1.05
        ),
    }


def speedup(simulated: pd.DataFrame, release: str = model.AFTER) -> statistics.Interval:
    """Throughput of a release with all of the large machine's processors over 9.2's with one."""
    return relative(simulated, (HERE, release, LARGE, LARGE), (HERE, model.AFTER, LARGE, 1))


def needs_both(simulated: pd.DataFrame) -> dict[str, bool]:
    """Whether many processors need both, the patches and a kernel that tells sizes unlocked."""
    before, old_linux, after = (
        speedup(simulated, release).estimate / LARGE
        for release in (model.BEFORE, model.OLD_LINUX, model.AFTER)
    )
    return {
        "simulated, 9.1 on a kernel without that lock stays below nine tenths of linear": (
            before < 0.9
        ),
        "simulated, 9.2 on a kernel with it stays below nine tenths of linear": old_linux < 0.9,
        "simulated, 9.2 on a kernel without it reaches nine tenths": after >= 0.9,
    }


# ---- an idle server


def wakeup_rate(woken: pd.DataFrame) -> statistics.Interval:
    """Wake-ups per second of all auxiliary processes together, of what `wakeups` measured."""
    mean = statistics.mean(woken.drop(columns="role").sum())
    return replace(mean, low=max(0.0, mean.low))


def busiest_program(watched: idle.Watch, woken: pd.DataFrame) -> dict[str, bool]:
    """Whether some other program of this machine wakes up more often than the idle server."""
    seconds = watched.readings[-1][0] - watched.readings[0][0]
    busiest = max(watched.others.values(), default=0) / seconds
    fact = "some other program on this machine wakes up more often than the idle server"
    return {fact: busiest > wakeup_rate(woken).estimate}
