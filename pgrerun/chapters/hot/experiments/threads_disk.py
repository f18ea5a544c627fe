"""The thread's two scripts on a disk on which the server before HOT does what the thread prints.

Which disk the thread had isn't told, but what its server did with it is: so the disk is sought on
which the commit before HOT does as many transactions a second, and then both commits run on it.

The size of branches and tellers goes by the updates between two visits of autovacuum, a second's
at the least, and not by the accounts. So there are more accounts than in the chapter's other timed
runs, whose share for the pool is then large enough for both; and of the thread's run only its
middle is timed.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from pgrerun.chapters.hot.experiments.builds import BEFORE, BESIDE, WITH
from pgrerun.chapters.hot.experiments.throughput import POOL, VACUUMED, pool_of, small_pool_cluster
from pgrerun.chapters.hot.variants import (
    FILLFACTOR,
    FULL,
    REDUCED,
    SCALE_FACTOR,
    UPDATES,
    run_script,
    updates,
)
from pgrerun.lab.disk import Disk, Slowed
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, fetched
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

LARGER = 3  # times `timed_accounts`, of each branch
WEAR = UPDATES / 2  # updates per account before the disk is slowed: the middle of the thread's run
TIMED = UPDATES / 10  # updates per account that are timed
# The pauses that autovacuum makes are of July 2007, after the thread; with them a visit to accounts
# outlasts the run, and branches and tellers wait for theirs.
SETTINGS = VACUUMED | {
    "fsync": "off",
    "autovacuum_vacuum_scale_factor": f"{SCALE_FACTOR:g}",
    "autovacuum_vacuum_cost_delay": 0,
}
ATTEMPTS = 3  # each comes nearer by the quotient of what is wanted and what was found
THEN = printed.cell("hot_throughput", "reduced_head", "tps_including")  # before HOT
UNITS = {
    "tps": "transactions/s",
    "request_ms": "ms",
    "requests": "requests/transaction",
    "busy": "share of the time",
    **POOL,
}


@experiment(units=UNITS, needs=["restart"])
def seeking_the_threads_disk(bed: Testbed) -> Iterator[Row]:
    """Look for the time of a request with which the commit before HOT does the printed throughput.

    The reduced script with the thread's pool and fillfactor, in the middle of its updates per
    account; data files alone are slow, since WAL may have had a disk of its own. CannotMeasure
    unless both commits are registered.
    """
    taken = 0.25 / THEN  # four requests for a transaction, to begin with
    with ExitStack() as stack:
        load = _Load(bed, stack)
        for attempt in range(1, ATTEMPTS + 1):
            load.prepare(BEFORE)
            found = load.measure(BEFORE, REDUCED, taken, bed.parameters.seed)
            yield {"attempt": attempt, **found}
            taken = _nearer(found)


def _nearer(found: Mapping[str, float]) -> float:
    """Seconds for a request by which what was found would have been what is wanted."""
    return found["request_ms"] / 1000 * found["tps"] / THEN


@experiment(units=UNITS, needs=["restart"], after=["seeking_the_threads_disk"])
def on_the_threads_disk(bed: Testbed) -> Iterator[Row]:
    """Both scripts on both commits and on the disk that was found, from relations loaded anew.

    The thread's updates until the middle of its run are the reduced script's for both, so that
    branches and tellers are as loaded when the disk gets slow.
    """
    with ExitStack() as stack:
        load = _Load(bed, stack)  # which says what is missing where no disk could be sought
        taken = _nearer(bed.rows_of("seeking_the_threads_disk")[-1])

        def prepare(block: Block, server: str, script: str) -> None:
            load.prepare(server)

        def measure(block: Block, server: str, script: str) -> Mapping[str, float]:
            return load.measure(server, script, taken, block.seed)

        yield from bed.compare(
            measure,
            {"server": [BEFORE, WITH], "script": [REDUCED, FULL]},
            pairs=bed.fewer_pairs,
            warmup=0,
            prepare=prepare,
            fixed=True,
        )


class _Load:
    """The thread's scripts on both commits, each on a disk of its own that can be slowed."""

    def __init__(self, bed: Testbed, stack: ExitStack):
        found = {name: fetched.build(name) for name in (BEFORE, WITH)}
        self.seed = bed.parameters.seed
        self.ours = Pgbench(
            bed.parameters.clients, LARGER * bed.parameters.timed_accounts, prefix=""
        )
        self.servers: dict[str, Cluster] = {}
        self.disks: dict[str, Slowed] = {}
        connections = self.ours.branches + BESIDE
        settings = SETTINGS | {"max_connections": connections}
        least = 2 * (connections + BESIDE)  # old servers want two buffers for each
        for name, one in found.items():
            disk = self.disks[name] = stack.enter_context(Slowed())
            cluster = stack.enter_context(Cluster(one, {"fsync": "off"}, disk=disk))
            pool = small_pool_cluster(cluster, self.ours, least, settings)
            self.servers[name] = stack.enter_context(pool)

    def prepare(self, server: str) -> None:
        """Load anew, and go to the middle of the thread's run at the machine's own speed."""
        fillfactor = {"accounts": FILLFACTOR}
        self.ours.load(self.servers[server], fillfactor=fillfactor, autovacuum=True)
        self._run(server, REDUCED, WEAR, self.seed)

    def measure(self, server: str, script: str, taken: float, seed: int) -> dict[str, float]:
        """`UNITS` of `TIMED` updates per account, where each request takes so many seconds."""
        disk = Disk(taken, taken, only="base/")
        with self.disks[server].serving(disk) as stretch:
            done = self._run(server, script, TIMED, seed)
            asked = stretch.counts().all
        return {
            "tps": done.tps,
            "request_ms": 1000 * taken,
            "requests": asked.requests / done.transactions,
            "busy": asked.busy * done.tps / done.transactions,
            **pool_of(self.servers[server]),
        }

    def _run(
        self, server: str, script: str, per_account: float, seed: int
    ) -> pgbench.PgbenchResult:
        return run_script(
            self.servers[server],
            self.ours,
            script,
            updates(self.ours, per_account),
            seed=seed,
            clients=self.ours.branches,
        )
