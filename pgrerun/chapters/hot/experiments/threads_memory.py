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

from collections.abc import Iterator
from contextlib import ExitStack

from pgrerun.chapters.hot.experiments.builds import BEFORE, WITH
from pgrerun.chapters.hot.experiments.threads_disk import (
    ATTEMPTS,
    SERVED,
    THEN,
    Commits,
    nearer,
    served,
    sought,
)
from pgrerun.chapters.hot.experiments.throughput import (
    PINS,
    SMALLEST_POOL,
    loaded_pages,
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
    load,
    run_script,
    updates,
)
from pgrerun.lab.disk import Disk, Slowed
from pgrerun.lab.instruments import sessions, sizes
from pgrerun.lab.models.heap_growth import PAGE
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

FEWER = 3  # a third of `timed_accounts` a branch: a run with HOT then takes five seconds and more
FIRST = 10 / THEN  # seconds of a request that are tried first: about what a disk of then takes
CLIENTS = printed.cell("hot_setup", "clients", "value")
AS_THERE, ALL_OF_IT = "as in the thread", "all of it"  # how much of the data the pool holds
UNITS = SERVED | {"data_over_pool": "times", "data_over_memory": "times"}


@experiment(units=UNITS, needs=["restart"])
def seeking_a_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """Look for the time of a request with which neither does what the thread prints before HOT.

    The disk has the thread's share for its memory, and the server for its pool. At profile ci,
    where no time decides, the first guess is as good as any.
    """
    attempts = bed.timed_pairs(ATTEMPTS)
    yield from sought(_Load(bed), bed.parameters.seed, attempts, variant=UNPRUNED, pool=AS_THERE)


@experiment(units=UNITS, needs=["restart"], after=["seeking_a_disk_with_memory"])
def in_the_threads_memory(bed: Testbed) -> Iterator[Row]:
    """All of the thread's updates with HOT, with pruning alone and with neither, on that disk.

    And with a pool that holds all of the data to the end, which then asks the disk for nothing but
    the flushes of commits. `data_over_memory` counts history as well, at the end.
    """
    load_ = _Load(bed)
    load_.taken = nearer(bed.rows_of("seeking_a_disk_with_memory")[-1])
    small = [{"variant": one, "pool": AS_THERE} for one in (HOT, NO_HOT, UNPRUNED)]
    yield from bed.compare(
        load_.measure,
        [*small, *({"variant": one, "pool": ALL_OF_IT} for one in (HOT, UNPRUNED))],
        pairs=bed.timed_pairs(bed.fewest_pairs),
        warmup=0,
        prepare=load_.prepare,
        fixed=True,
    )


@experiment(units=UNITS, needs=["restart"])
def seeking_the_threads_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """The same by the commit before HOT. CannotMeasure unless both commits are registered."""
    with ExitStack() as stack:
        load_ = _Commits(bed, stack)
        attempts = bed.timed_pairs(ATTEMPTS)
        yield from sought(load_, bed.parameters.seed, attempts, server=BEFORE)


@experiment(units=UNITS, needs=["restart"], after=["seeking_the_threads_disk_with_memory"])
def on_the_threads_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """All of the thread's updates by the reduced script, on both commits and on that disk.

    Without autovacuum: what the thread prints of growth before HOT is nearly what it is without
    any, and it would come in one run and not in another.
    """
    with ExitStack() as stack:
        load_ = _Commits(bed, stack)  # which says what is missing where no disk could be sought
        load_.taken = nearer(bed.rows_of("seeking_the_threads_disk_with_memory")[-1])
        yield from bed.compare(
            load_.measure,
            {"server": [BEFORE, WITH]},
            pairs=bed.timed_pairs(bed.fewest_pairs),
            warmup=0,
            prepare=load_.prepare,
            fixed=True,
        )


def _pages_beside_pool() -> float:
    """Pages of the thread's memory that its pool left."""
    return printed.cell("hot_setup", "memory", "value") * 2**30 / PAGE - pages_of_pool()


def _measured(
    server: Cluster, disk: Slowed, ours: Pgbench, memory: int, taken: float, seed: int
) -> dict[str, float]:
    """`UNITS` of all of the thread's updates on a disk with so many pages of memory.

    A read or write takes `taken` seconds, and of a flush each client has its share.
    """
    slow = Disk(taken, taken, taken * ours.branches / CLIENTS, memory=memory * PAGE)
    with disk.serving(slow) as stretch:
        done = run_script(server, ours, REDUCED, updates(ours), seed=seed, clients=ours.branches)
        asked = stretch.counts()
    with server.connect() as connection:
        pool = value(connection, int, SQL.text("reading.pool"))
        pages = sizes.pages_of(connection, [*ACCOUNTS, "history"])
    return served(done, asked, taken) | {
        "data_over_pool": sum(pages[name] for name in ACCOUNTS) / pool,
        "data_over_memory": sum(pages.values()) / memory,
    }


class _Commits(Commits):
    """The reduced script on the thread's commits, by as many clients as branches."""

    taken = FIRST

    def __init__(self, bed: Testbed, stack: ExitStack):
        super().__init__(bed, stack, branches=bed.parameters.clients)
        self.memory = round(of_loaded(_pages_beside_pool()) * loaded_pages(self.servers[BEFORE]))

    def prepare(self, block: Block, server: str) -> None:
        """Load anew, with nothing left to write."""
        self.start(server, "off")
        with self.servers[server].connect() as connection:
            connection.execute("CHECKPOINT")

    def measure(self, block: Block, server: str) -> dict[str, float]:
        """`UNITS` of one commit."""
        on = self.servers[server], self.disks[server]
        return _measured(*on, self.ours, self.memory, self.taken, block.seed)


class _Load:
    """The reduced script by as many clients as branches, on a disk with memory."""

    taken = FIRST

    def __init__(self, bed: Testbed):
        branches = bed.parameters.clients
        self.ours = Pgbench(branches, bed.parameters.timed_accounts // FEWER, prefix="")
        # commits wait for the disk, and WAL that nobody waits for stays in its buffers
        self.server, self.disk = bed.cluster_on_slow_disk(fsync="on", wal_buffers="8MB")
        load(self.ours, self.server)
        data = loaded_pages(self.server)
        least = max(SMALLEST_POOL, PINS * branches)
        as_there = max(least, round(of_loaded(pages_of_pool()) * data))
        self.pools = {AS_THERE: as_there, ALL_OF_IT: 4 * data + least}
        self.memory = round(of_loaded(_pages_beside_pool()) * data)

    def prepare(self, block: Block, variant: str, pool: str) -> None:
        """Load anew, with nothing left to write, in a pool of this size."""
        self.server.restart({"shared_buffers": f"{PAGE // 1024 * self.pools[pool]}kB"})
        load(self.ours, self.server, variant)
        with self.server.connect() as connection:
            connection.execute("CHECKPOINT")

    def measure(self, block: Block, variant: str, pool: str) -> dict[str, float]:
        """`UNITS` of a variant."""
        with sessions.snapshot(self.server, variant == UNPRUNED):
            return _measured(self.server, self.disk, self.ours, self.memory, self.taken, block.seed)
