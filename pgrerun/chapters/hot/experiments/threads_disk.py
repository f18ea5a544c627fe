"""The thread's scripts on a disk on which the server before HOT does what the thread prints.

Which disk the thread had isn't told, but what its server did with it is: so the disk is sought on
which the commit before HOT does as many transactions a second, and then both commits run on it.
All lies on it, the WAL as well, and fsync is on: a commit waits for its flush among the requests
for pages, and holds its branch and teller for so long. There are as many clients as branches, as in
the thread. Its ninety would need its pool as well: in one of a thirtieth they evict pages whose WAL
isn't flushed yet, and versions that one of them may still see make the small tables a large part.
All of the thread's updates run, but where the disk for autovacuum's visits is sought: there a tenth
of them is enough.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

from pgrerun.chapters.hot.experiments.builds import BEFORE, BESIDE, WITH, least_pool
from pgrerun.chapters.hot.experiments.throughput import (
    PINS,
    POOL,
    SMALLEST_POOL,
    VACUUMED,
    loaded_pages,
    of_loaded,
    pages_of_pool,
    pool_of,
    small_pool_cluster,
)
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FILLFACTOR,
    FULL,
    HOT,
    NO_HOT,
    REDUCED,
    SCALE_FACTOR,
    SQL,
    UNPRUNED,
    UPDATES,
    load,
    run_script,
    updates,
)
from pgrerun.lab.disk import Counts, Disk, Slowed
from pgrerun.lab.instruments import pgbench, server_log, sessions, sizes
from pgrerun.lab.models.heap_growth import PAGE
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, fetched, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

MORE = 3  # times `clients`, clients and branches of `timed_accounts` each
TIMED = UPDATES / 10  # updates per account that are timed
# Before the disk is slowed. Autovacuum is due at accounts when what is timed ends: in the middle of
# it, it would come in one run and not in another. What the fillfactor left free is used up by then.
WEAR = SCALE_FACTOR - TIMED
# The pauses that autovacuum makes are of July 2007, after the thread; with them a visit to accounts
# outlasts the run, and branches and tellers wait for theirs. ANALYZE reads as many pages however
# few accounts there are, so it stays away. WAL that nobody waits for stays in its buffers: the
# kernel would take it at once, but on this disk whoever writes waits.
SETTINGS = VACUUMED | {
    "fsync": "on",
    "wal_buffers": "8MB",
    "autovacuum_vacuum_scale_factor": f"{SCALE_FACTOR:g}",
    "autovacuum_analyze_scale_factor": 1,
    "autovacuum_vacuum_cost_delay": 0,
    "log_autovacuum": 0,  # log_autovacuum_min_duration since PostgreSQL 8.3
}
ATTEMPTS = 3  # each comes nearer by the quotient of what is wanted and what was found
THEN = printed.cell("hot_throughput", "reduced_head", "tps_including")  # before HOT
SERVED = {
    "tps": "transactions/s",
    "request_ms": "ms",
    "requests": "requests/transaction",
    "flushes": "flushes/transaction",
    "busy": "share of the time",
    "serving": "share of the time",
}
UNITS = SERVED | POOL


@experiment(units=UNITS, needs=["restart"])
def seeking_the_threads_disk(bed: Testbed) -> Iterator[Row]:
    """Look for the time of a request with which the commit before HOT does the printed throughput.

    The reduced script with the thread's share for the pool and its fillfactor. A read, a write and
    a flush take that time each, of whatever file. CannotMeasure unless both commits are registered.
    """
    with ExitStack() as stack:
        load_ = Commits(bed, stack)
        yield from sought(load_, bed.parameters.seed, ATTEMPTS, server=BEFORE, script=REDUCED)


def sought(load_: Any, seed: int, attempts: int, **variant: str) -> Iterator[Row]:
    """Rows of a load (`prepare`, `measure`) as a variant, each with a `taken` that is nearer."""
    block = Block(0, seed, 0)
    for attempt in range(1, attempts + 1):
        load_.prepare(block, **variant)
        found = load_.measure(block, **variant)
        yield {"attempt": attempt, **found}
        load_.taken = nearer(found)


def nearer(found: Mapping[str, float]) -> float:
    """Seconds for a request by which what was found would have been what is wanted."""
    return found["request_ms"] / 1000 * found["tps"] / THEN


def served(done: pgbench.PgbenchResult, asked: Counts, taken: float) -> dict[str, float]:
    """`SERVED` of a run and what it asked of a disk that takes so many seconds for a request.

    `busy` is the disk's time for reads and writes, `serving` that for flushes as well.
    """
    return {
        "tps": done.tps,
        "request_ms": 1000 * taken,
        "requests": asked.all.requests / done.transactions,
        "flushes": asked.flushes.requests / done.transactions,
        "busy": (asked.reads + asked.writes).busy * done.tps / done.transactions,
        "serving": asked.all.busy * done.tps / done.transactions,
    }


FEWER = 4  # a quarter of `timed_accounts`: all of the thread's updates then take forty seconds
# A visit goes through its relations page after page, which a disk serves in far less time than what
# is drawn: a kernel reads ahead, 128 kB as Linux does, and gathers as much of what is written. In a
# pool of a thousandth of the thread's buffers the few of the visit are soon taken by others, and it
# writes theirs; so what it asks for comes in such pieces wherever it lies.
AHEAD, VISIT = 128 * 1024 // PAGE, "autovacuum worker"


@experiment(
    units={
        "before": "pages",
        "after": "pages",
        "visits": "visits",
        "remaining": "share of the run",
        "tps": "transactions/s",
        "request_ms": "ms",
    },
    needs=["restart"],
    after=["seeking_the_threads_disk"],
)
def autovacuum_on_the_threads_disk(bed: Testbed) -> Iterator[Row]:
    """Pages of accounts around the whole reduced script before HOT, with autovacuum and without.

    From relations loaded anew, with all of the thread's updates per account. Under autovacuum they
    run on a disk so slow that its visits wait for pages as the clients do, but in pieces of AHEAD
    pages, as a visit asks for nearly all of them in their order.
    Flushes of relations pass the disk by: these servers keep note of as many as their pool has
    pages, and who writes when there is no room flushes himself, which in the thread's pool nobody
    did.
    Autovacuum comes as many times in a run as in the thread's, but each second at most. The disk
    that was found is too slow for that, as a visit takes some of its time: so one run first tells
    the time of a request by which the throughput, too, is the thread's; not at profile ci, where no
    time decides. Without autovacuum the updates run at the machine's own speed. `visits` to
    accounts are those that the server's log tells the end of; `remaining` is the share of the run
    that was left when the first was over. CannotMeasure unless both commits are registered, without
    which no disk is sought.
    """
    with ExitStack() as stack:
        load_ = Commits(bed, stack, [BEFORE], accounts=bed.parameters.timed_accounts // FEWER)
        load_.taken = nearer(bed.rows_of("seeking_the_threads_disk")[-1])
        if bed.parameters.profile != "ci":
            load_.start(BEFORE, "on")
            load_.taken = nearer(load_.measure_sizes(Block(0, bed.parameters.seed, 0), "on"))
        yield from bed.compare(
            load_.measure_sizes,
            {"autovacuum": ["on", "off"]},
            pairs=bed.timed_pairs(bed.fewest_pairs),
            warmup=0,
            prepare=lambda block, autovacuum: load_.start(BEFORE, autovacuum),
            fixed=True,
        )


class Commits:
    """The thread's scripts on commits, each on a disk of its own that can be slowed.

    With MORE branches than `clients`, and as many `accounts` of each as the timed ones, unless
    told. Each request takes `taken` seconds of a disk while it is slowed.
    """

    taken = 0.25 / THEN  # four requests for a transaction, to begin with

    def __init__(
        self,
        bed: Testbed,
        stack: ExitStack,
        commits: Sequence[str] = (BEFORE, WITH),
        *,
        branches: int = 0,
        accounts: int = 0,
    ):
        found = {name: fetched.build(name) for name in commits}
        self.seed = bed.parameters.seed
        self.ours = Pgbench(
            branches or MORE * bed.parameters.clients,
            accounts or bed.parameters.timed_accounts,
            prefix="",
        )
        self.servers: dict[str, Cluster] = {}
        self.disks: dict[str, Slowed] = {}
        connections = self.ours.branches + BESIDE
        settings = SETTINGS | {"max_connections": connections}
        for name, one in found.items():
            disk = self.disks[name] = stack.enter_context(Slowed())
            cluster = stack.enter_context(Cluster(one, {"fsync": "off"}, disk=disk))
            pool = small_pool_cluster(cluster, self.ours, least_pool(connections), settings)
            self.servers[name] = stack.enter_context(pool)

    def prepare(self, block: Block, server: str, script: str) -> None:
        """Load anew, and go to where it gets slow at the machine's own speed, without flushes."""
        self.ours.load(self.servers[server], fillfactor={"accounts": FILLFACTOR}, autovacuum=True)
        with sessions.configured(self.servers[server], synchronous_commit="off"):
            self.run(server, REDUCED, WEAR, self.seed)

    def measure(self, block: Block, server: str, script: str) -> dict[str, float]:
        """`UNITS` of `TIMED` updates per account on the slowed disk."""
        with self.disks[server].serving(Disk(self.taken, self.taken, self.taken)) as stretch:
            done = self.run(server, script, TIMED, block.seed)
            asked = stretch.counts()
        return served(done, asked, self.taken) | pool_of(self.servers[server])

    def start(self, server: str, autovacuum: str) -> None:
        """Load anew, with autovacuum as often in the thread's updates as there, or "off".

        A visit to what the run before has left ends with the restart.
        """
        then = printed.table("hot_setup")["value"]
        nap = then["autovacuum_naptime"] * updates(self.ours) / then["transactions"]
        settings = {"autovacuum": autovacuum, "autovacuum_naptime": f"{max(1, round(nap))}s"}
        self.servers[server].restart(settings)
        self.ours.load(self.servers[server], fillfactor={"accounts": FILLFACTOR}, autovacuum=True)

    def measure_sizes(self, block: Block, autovacuum: str) -> dict[str, float]:
        """Pages of accounts before HOT around all of the thread's updates by the reduced script.

        Without autovacuum the disk is as fast as the machine's.
        """
        table, cluster = ACCOUNTS[0], self.servers[BEFORE]
        taken = self.taken if autovacuum == "on" else 0.0
        slow = Disk(taken, taken, taken, flushed="pg_xlog/", ahead=AHEAD, gathering=VISIT)
        with cluster.connect() as connection:
            before = sizes.pages(connection, table)
            with self.disks[BEFORE].serving(slow) if taken else nullcontext():
                logged, began = len(cluster.log()), time.time()
                tps = self.run(BEFORE, REDUCED, UPDATES, block.seed).tps
                ended = time.time()
                every = server_log.autovacuums(cluster.log()[logged:], table)
                over = [moment for moment in every if moment < ended]
                return {
                    "before": before,
                    "after": sizes.pages(connection, table),
                    "visits": len(over),
                    "remaining": (ended - min(over, default=ended)) / (ended - began),
                    "tps": tps,
                    "request_ms": 1000 * taken,
                }

    def run(self, server: str, script: str, per_account: float, seed: int) -> pgbench.PgbenchResult:
        """So many updates per account, by as many clients as branches."""
        return run_script(
            self.servers[server],
            self.ours,
            script,
            updates(self.ours, per_account),
            seed=seed,
            clients=self.ours.branches,
        )


# ---- with the thread's memory beside it

# What size has to do with speed. The thread's machine had 2 GB, of which its pool took 128 MB. What
# the pool lacked lay in the rest as long as it fitted in, and only then on the disk; so tables get
# slow when they outgrow it. Here the disk has a memory of the same share of the loaded relations,
# all that the pool left, as the thread doesn't tell what else was in there. How long a request
# takes isn't told either: it is sought by what the thread's server did before HOT. The thread's two
# commits run so, and today's server as well, as pruning alone is a variant of it only; there
# neither HOT nor pruning stands in for the commit before HOT. The disk serves reads, flushes, and
# what its memory has no more room for. Of a flush each of the thread's ninety clients had its
# share; with fewer it takes so much less time, or commits would wait for flushes far longer than
# there. All of the thread's updates run, as it is the last of them that find the memory too small.
THIRD = 3  # a third of `timed_accounts` a branch: a run with HOT then takes five seconds and more
FIRST = 10 / THEN  # seconds of a request that are tried first: about what a disk of then takes
CLIENTS = printed.cell("hot_setup", "clients", "value")
AS_THERE, MOST = "as in the thread", "most of the memory"  # how large the pool is
IN_MEMORY = SERVED | {"data_over_pool": "times", "data_over_memory": "times"}
# Accounts isn't due in a run: what the thread prints of its growth before HOT is nearly what it is
# without any visit, and one would come in one run and not in another. Branches and tellers are due
# each second.
SMALL_TABLES_ALONE = {"autovacuum": "on", "autovacuum_vacuum_scale_factor": f"{2 * UPDATES:g}"}


@experiment(units=IN_MEMORY, needs=["restart"])
def seeking_a_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """Look for the time of a request with which neither does what the thread prints before HOT.

    The disk has the thread's share for its memory, and the server for its pool. At profile ci,
    where no time decides, the first guess is as good as any.
    """
    attempts = bed.timed_pairs(ATTEMPTS)
    yield from sought(
        TodayWithMemory(bed), bed.parameters.seed, attempts, variant=UNPRUNED, pool=AS_THERE
    )


@experiment(units=IN_MEMORY, needs=["restart"], after=["seeking_a_disk_with_memory"])
def in_the_threads_memory(bed: Testbed) -> Iterator[Row]:
    """All of the thread's updates with HOT, with pruning alone and with neither, on that disk.

    And with a pool that takes most of the same memory, and leaves beside it what the thread's pool
    takes. `data_over_memory` is of what is beside the pool, and counts history as well, at the end.
    """
    load_ = TodayWithMemory(bed)
    load_.taken = nearer(bed.rows_of("seeking_a_disk_with_memory")[-1])
    small = [{"variant": one, "pool": AS_THERE} for one in (HOT, NO_HOT, UNPRUNED)]
    yield from bed.compare(
        load_.measure,
        [*small, *({"variant": one, "pool": MOST} for one in (HOT, UNPRUNED))],
        pairs=bed.timed_pairs(bed.fewest_pairs),
        warmup=0,
        prepare=load_.prepare,
        fixed=True,
    )


ON_COMMITS = IN_MEMORY | {"pool_over_small_tables": "times"}


@experiment(units=ON_COMMITS, needs=["restart"])
def seeking_the_threads_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """The same by the commit before HOT. CannotMeasure unless both commits are registered."""
    with ExitStack() as stack:
        yield from sought(
            CommitsWithMemory(bed, stack),
            bed.parameters.seed,
            bed.timed_pairs(ATTEMPTS),
            server=BEFORE,
            script=REDUCED,
        )


@experiment(units=ON_COMMITS, needs=["restart"], after=["seeking_the_threads_disk_with_memory"])
def on_the_threads_disk_with_memory(bed: Testbed) -> Iterator[Row]:
    """All of the thread's updates by both scripts, on both commits and on that disk.

    Autovacuum comes to branches and tellers, and not to accounts.
    """
    with ExitStack() as stack:
        # which says what is missing where no disk could be sought
        load_ = CommitsWithMemory(bed, stack)
        load_.taken = nearer(bed.rows_of("seeking_the_threads_disk_with_memory")[-1])
        yield from bed.compare(
            load_.measure,
            {"server": [BEFORE, WITH], "script": [REDUCED, FULL]},
            pairs=bed.timed_pairs(bed.fewest_pairs),
            warmup=0,
            prepare=load_.prepare,
            fixed=True,
        )


def _pages_beside_pool() -> float:
    """Pages of the thread's memory that its pool left."""
    return printed.cell("hot_setup", "memory", "value") * 2**30 / PAGE - pages_of_pool()


def _measured(
    server: Cluster,
    disk: Slowed,
    ours: Pgbench,
    script: str,
    memory: int,
    taken: float,
    seed: int,
    flushed: str = "",
) -> dict[str, float]:
    """`IN_MEMORY` of all of the thread's updates on a disk with so many pages of memory.

    A read or write takes `taken` seconds, and of a flush each client has its share. Only files of
    which `flushed` is the beginning are flushed by the disk; "" is all.
    """
    flush = taken * ours.branches / CLIENTS
    slow = Disk(taken, taken, flush, flushed=flushed, memory=memory * PAGE)
    with disk.serving(slow) as stretch:
        done = run_script(server, ours, script, updates(ours), seed=seed, clients=ours.branches)
        asked = stretch.counts()
    with server.connect() as connection:
        pool = value(connection, int, SQL.text("reading.pool"))
        pages = sizes.pages_of(connection, [*ACCOUNTS, "history"])
    return served(done, asked, taken) | {
        "data_over_pool": sum(pages[name] for name in ACCOUNTS) / pool,
        "data_over_memory": sum(pages.values()) / memory,
    }


class CommitsWithMemory(Commits):
    """The thread's scripts on its commits, by as many clients as branches."""

    taken = FIRST

    def __init__(self, bed: Testbed, stack: ExitStack):
        super().__init__(bed, stack, branches=bed.parameters.clients)
        self.memory = round(of_loaded(_pages_beside_pool()) * loaded_pages(self.servers[BEFORE]))

    def prepare(self, block: Block, server: str, script: str) -> None:
        """Load anew, with nothing left to write."""
        cluster = self.servers[server]
        cluster.restart(SMALL_TABLES_ALONE)  # ends a visit to what the run before has left
        self.ours.load(cluster, fillfactor={"accounts": FILLFACTOR}, autovacuum=True)
        with cluster.connect() as connection:
            connection.execute("CHECKPOINT")

    def measure(self, block: Block, server: str, script: str) -> dict[str, float]:
        """`ON_COMMITS` of all of the thread's updates.

        Flushes of relations pass the disk by. Until January 2011 (7f242d880b, PostgreSQL 9.1) each
        page that is written takes a place in a queue of as many as the pool has, the same relation
        again and again, and who finds it full flushes the relation himself (ForwardFsyncRequest).
        In a pool of a thousandth of the thread's that was a whole flush per transaction before HOT,
        where commits took a quarter of one; in the thread's pool nobody did.
        """
        cluster, on = self.servers[server], (self.ours, script, self.memory, self.taken, block.seed)
        return _measured(cluster, self.disks[server], *on, flushed="pg_xlog/") | pool_of(cluster)


class TodayWithMemory:
    """The reduced script by as many clients as branches, on a disk with memory."""

    taken = FIRST

    def __init__(self, bed: Testbed):
        branches = bed.parameters.clients
        self.ours = Pgbench(branches, bed.parameters.timed_accounts // THIRD, prefix="")
        # commits wait for the disk, and WAL that nobody waits for stays in its buffers
        self.server, self.disk = bed.cluster_on_slow_disk(fsync="on", wal_buffers="8MB")
        load(self.ours, self.server)
        data = loaded_pages(self.server)
        least = max(SMALLEST_POOL, PINS * branches)
        small = max(least, round(of_loaded(pages_of_pool()) * data))
        large = round(of_loaded(_pages_beside_pool()) * data)
        self.pages = {AS_THERE: (small, large), MOST: (large, small)}  # of the pool, and beside it

    def prepare(self, block: Block, variant: str, pool: str) -> None:
        """Load anew in a pool of this size, which then holds what it can, with nothing to write."""
        self.server.restart({"shared_buffers": f"{PAGE // 1024 * self.pages[pool][0]}kB"})
        load(self.ours, self.server, variant)
        with self.server.connect() as connection:
            SQL.run(connection, "reading.into_the_pool")
            connection.execute("CHECKPOINT")

    def measure(self, block: Block, variant: str, pool: str) -> dict[str, float]:
        on = self.server, self.disk, self.ours, REDUCED, self.pages[pool][1]
        with sessions.snapshot(self.server, variant == UNPRUNED):
            return _measured(*on, self.taken, block.seed)
