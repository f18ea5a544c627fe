"""The reduced script on a disk with the thread's memory beside it: what size has to do with speed.

The thread's machine had 2 GB, of which its pool took 128 MB. What the pool lacked lay in the rest
as long as it fitted in, and only then on the disk; so tables get slow when they outgrow it.
Here the disk has a memory of the same share of the loaded relations, all that the pool left, as the
thread doesn't tell what else was in there. How long a request takes isn't told either: it is sought
by what the thread's server did before HOT. The thread's two commits run so, and today's server as
well, as pruning alone is a variant of it only; there neither HOT nor pruning stands in for the
commit before HOT. The disk serves reads, flushes, and what its memory has no more room for. Of a
flush each of the thread's ninety clients had its share; with fewer it takes so much less time, or
commits would wait for flushes far longer than there. All of the thread's updates run, as it is the
last of them that find the memory too small.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from pgrerun.chapters.hot.experiments.builds import BEFORE, WITH
from pgrerun.chapters.hot.experiments.threads_disk import (
    ATTEMPTS,
    SERVED,
    THEN,
    Commits,
    nearer,
    served,
)
from pgrerun.chapters.hot.experiments.throughput import (
    PINS,
    SMALLEST_POOL,
    of_loaded,
    pages_of_pool,
)
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    HOT,
    NO_HOT,
    REDUCED,
    SQL,
    UNPRUNED,
    UPDATES,
    is_unpruned,
    load,
    run_script,
    updates,
)
from pgrerun.lab.disk import Disk
from pgrerun.lab.instruments import sessions, sizes
from pgrerun.lab.models.heap_growth import PAGE
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

FEWER = 3  # a third of `timed_accounts` a branch: a run with HOT then takes five seconds and more
CLIENTS = printed.cell("hot_setup", "clients", "value")
AS_THERE, ALL_OF_IT = "as in the thread", "all of it"  # how much of the data the pool holds
UNITS = SERVED | {"data_over_pool": "times", "data_over_memory": "times"}


@experiment(units=UNITS, needs=["restart"])
def seeking_a_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """Look for the time of a request with which neither does what the thread prints before HOT.

    The disk has the thread's share for its memory, and the server for its pool. At profile ci,
    where no time decides, the first guess is as good as any.
    """
    load_ = _Load(bed)

    def measure(taken: float) -> dict[str, float]:
        load_.prepare(UNPRUNED, AS_THERE)
        return load_.measure(UNPRUNED, taken, bed.parameters.seed)

    yield from _seek(bed, measure)


@experiment(units=UNITS, needs=["restart"], after=["seeking_a_disk_with_memory"])
def in_the_threads_memory(bed: Testbed) -> Iterator[Row]:
    """All of the thread's updates with HOT, with pruning alone and with neither, on that disk.

    And with a pool that holds all of the data to the end, which then asks the disk for nothing but
    the flushes of commits. `data_over_memory` counts history as well, at the end.
    """
    load_ = _Load(bed)
    taken = nearer(bed.rows_of("seeking_a_disk_with_memory")[-1])

    def prepare(block: Block, variant: str, pool: str) -> None:
        load_.prepare(variant, pool)

    def measure(block: Block, variant: str, pool: str) -> Mapping[str, float]:
        return load_.measure(variant, taken, block.seed)

    small = [{"variant": one, "pool": AS_THERE} for one in (HOT, NO_HOT, UNPRUNED)]
    yield from bed.compare(
        measure,
        [*small, *({"variant": one, "pool": ALL_OF_IT} for one in (HOT, UNPRUNED))],
        pairs=bed.timed_pairs(bed.fewest_pairs),
        warmup=0,
        prepare=prepare,
        fixed=True,
    )


@experiment(units=UNITS, needs=["restart"])
def seeking_the_threads_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """The same by the commit before HOT. CannotMeasure unless both commits are registered."""
    with ExitStack() as stack:
        load_ = _Commits(bed, stack)

        def measure(taken: float) -> dict[str, float]:
            load_.prepare(BEFORE)
            return load_.measure(BEFORE, taken, bed.parameters.seed)

        yield from _seek(bed, measure)


@experiment(units=UNITS, needs=["restart"], after=["seeking_the_threads_disk_with_memory"])
def on_the_threads_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """All of the thread's updates by the reduced script, on both commits and on that disk.

    Without autovacuum: what the thread prints of growth before HOT is nearly what it is without
    any, and it would come in one run and not in another.
    """
    with ExitStack() as stack:
        load_ = _Commits(bed, stack)  # which says what is missing where no disk could be sought
        taken = nearer(bed.rows_of("seeking_the_threads_disk_with_memory")[-1])

        def prepare(block: Block, server: str) -> None:
            load_.prepare(server)

        def measure(block: Block, server: str) -> Mapping[str, float]:
            return load_.measure(server, taken, block.seed)

        yield from bed.compare(
            measure,
            {"server": [BEFORE, WITH]},
            pairs=bed.timed_pairs(bed.fewest_pairs),
            warmup=0,
            prepare=prepare,
            fixed=True,
        )


def _seek(bed: Testbed, measure: Callable[[float], Mapping[str, float]]) -> Iterator[Row]:
    taken = 10 / THEN  # about what a disk of then takes
    for attempt in range(1, (1 if bed.parameters.profile == "ci" else ATTEMPTS) + 1):
        found = measure(taken)
        yield {"attempt": attempt, **found}
        taken = nearer(found)


def _pages_beside_pool() -> float:
    """Pages of the thread's memory that its pool left."""
    return printed.cell("hot_setup", "memory", "value") * 2**30 / PAGE - pages_of_pool()


def _slow_disk(taken: float, clients: int, memory: int) -> Disk:
    """A disk with so many pages of memory, of a flush of which each client has its share."""
    return Disk(taken, taken, taken * clients / CLIENTS, memory=memory * PAGE)


def _outgrown(server: Cluster, memory: int) -> dict[str, float]:
    """How many times the relations have the pool's pages, and those of so large a memory."""
    with server.connect() as connection:
        pool = value(connection, int, SQL.text("reading.pool"))
        pages = sizes.pages_of(connection, [*ACCOUNTS, "history"])
    return {
        "data_over_pool": sum(pages[name] for name in ACCOUNTS) / pool,
        "data_over_memory": sum(pages.values()) / memory,
    }


class _Commits(Commits):
    """The reduced script on the thread's commits, by as many clients as branches."""

    def __init__(self, bed: Testbed, stack: ExitStack):
        super().__init__(bed, stack, branches=bed.parameters.clients)
        with self.servers[BEFORE].connect() as connection:
            data = sum(sizes.pages_of(connection, ACCOUNTS).values())
        self.memory = round(of_loaded(_pages_beside_pool()) * data)

    def prepare(self, server: str) -> None:
        """Load anew, with nothing left to write."""
        self.start(server, "off")
        with self.servers[server].connect() as connection:
            connection.execute("CHECKPOINT")

    def measure(self, server: str, taken: float, seed: int) -> dict[str, float]:
        """`UNITS` of all of the thread's updates, where a read or write takes `taken` seconds."""
        slow = _slow_disk(taken, self.ours.branches, self.memory)
        with self.disks[server].serving(slow) as stretch:
            done = self.run(server, REDUCED, UPDATES, seed)
            asked = stretch.counts()
        return served(done, asked, taken) | _outgrown(self.servers[server], self.memory)


class _Load:
    """The reduced script by as many clients as branches, on a disk with memory."""

    def __init__(self, bed: Testbed):
        branches = bed.parameters.clients
        self.ours = Pgbench(branches, bed.parameters.timed_accounts // FEWER, prefix="")
        # commits wait for the disk, and WAL that nobody waits for stays in its buffers
        self.server, self.disk = bed.cluster_on_slow_disk(fsync="on", wal_buffers="8MB")
        load(self.ours, self.server)
        with self.server.connect() as connection:
            data = sum(sizes.pages_of(connection, ACCOUNTS).values())
        least = max(SMALLEST_POOL, PINS * branches)
        as_there = max(least, round(of_loaded(pages_of_pool()) * data))
        self.pools = {AS_THERE: as_there, ALL_OF_IT: 4 * data + least}
        self.memory = round(of_loaded(_pages_beside_pool()) * data)

    def prepare(self, variant: str, pool: str) -> None:
        """Load anew, with nothing left to write, in a pool of this size."""
        self.server.restart({"shared_buffers": f"{PAGE // 1024 * self.pools[pool]}kB"})
        load(self.ours, self.server, variant)
        with self.server.connect() as connection:
            connection.execute("CHECKPOINT")

    def measure(self, variant: str, taken: float, seed: int) -> dict[str, float]:
        """`UNITS` of all of the thread's updates, where a read or write takes `taken` seconds."""
        slow = _slow_disk(taken, self.ours.branches, self.memory)
        held = sessions.snapshot(self.server, is_unpruned(variant))
        with held, self.disk.serving(slow) as stretch:
            done = run_script(
                self.server,
                self.ours,
                REDUCED,
                updates(self.ours),
                seed=seed,
                clients=self.ours.branches,
            )
            asked = stretch.counts()
        return served(done, asked, taken) | _outgrown(self.server, self.memory)
