"""The talk's releases as the simulation plays them, on costs that are measured here.

What a transaction does is counted in the sources of the releases (`lookup`, `tpcb`), what it
costs is measured on the machine at hand (`Costs`), how locks meet is `lab.models.contention`'s.
"""

from dataclasses import astuple, dataclass

import numpy as np

from pgrerun.lab.models.contention import Machine, Transaction, Visit
from pgrerun.record import printed

TALK = printed.table("scalability_read").value

BEFORE, FIRST, AFTER = "9.1", "first patch", "9.2"
RELEASES = (BEFORE, FIRST, AFTER)
NO_MESSAGES, OLD_LINUX = "9.2, messages locked", "9.2, old Linux"

# the lightweight lock, the hash bucket, the lock, and the two ends of its list of holders
LOCK_LINES = 5
PARTITIONS = 16  # of the lock table and of the buffer table, lock.h and lwlock.h of 9.1


@dataclass(frozen=True)
class Costs:
    """What steps cost here, in seconds.

    work    processor time of a lookup without its locks
    visit   one visit of the lock table
    line    one cache line fetched from another processor
    switch  processor time of a sleep and its end
    rouse   until a sleeper runs
    """

    work: float
    visit: float
    line: float
    switch: float
    rouse: float

    @property
    def spinlock(self) -> float:
        """Seconds that a spinlock is held: a few instructions on a line that was fetched."""
        return self.line / 2


def typical(measured: list[Costs]) -> Costs:
    """The median of each cost."""
    return Costs(*np.median([astuple(costs) for costs in measured], axis=0).tolist())


def machine(processors: int, costs: Costs) -> Machine:
    """So many of this machine's processors."""
    return Machine(processors, transfer=costs.line, switch=costs.switch, rouse=costs.rouse)


def _spinlock(name: str, times: int, costs: Costs, ways: int = 1) -> Visit:
    return Visit(name, times, costs.spinlock, ways=ways, spins=True)


def _heavyweight(name: str, costs: Costs, ways: int = 1) -> Visit:
    """A lock in the lock table, taken and given back."""
    return Visit(name, 2, costs.visit, LOCK_LINES, ways)


def lookup(release: str, costs: Costs) -> Transaction:
    """A prepared lookup by primary key, with the shared locks of a release or a state of it.

    Two relations are locked, the table and its index; each lock is taken and given back. The
    virtual transaction's lock is another one each time. Whether there are invalidation messages is
    asked when a transaction begins and for each relation locked. Taking a lightweight lock in
    shared mode, and giving it back, each asks for the spinlock in front of it.
    """
    own = (_heavyweight("lock of the virtual transaction", costs, PARTITIONS),)
    relations = (_heavyweight("lock of the table", costs), _heavyweight("lock of the index", costs))
    messages = (_spinlock("invalidation messages", 6, costs),)
    rest = (
        _spinlock("snapshot", 2, costs),
        _spinlock("root page", 4, costs),
        _spinlock("other pages", 4, costs, PARTITIONS),
    )
    # lseek took the mutex of the file's inode before Linux 3.2; a lookup asks for the size of two
    # files
    seeks = (Visit("lseek", times=2, held=4 * costs.line, spins=True),)
    visits = {
        BEFORE: own + relations + messages + rest,
        FIRST: own + messages + rest,
        AFTER: rest,
        NO_MESSAGES: messages + rest,
        OLD_LINUX: seeks + rest,
    }
    return Transaction(costs.work, visits[release])


def tpcb(release: str, clients: int, costs: Costs, work: float, record: float) -> Transaction:
    """The same for pgbench's transaction without waiting for the flush.

    `work` is its processor time and `record` the time to insert one record into the WAL, both in
    seconds. Seven relations are locked. Every one of five statements takes a snapshot, which reads
    an entry per client: in 9.1 each in a line of its own, in 9.2 five to a line. The process array
    and the commit log are locked once, at the commit, and five records go into the WAL.
    """
    entries = clients / (1 if release == BEFORE else 5)
    shared = (
        _spinlock("snapshots", 10, costs),
        Visit("entries of the snapshots", 5, costs.spinlock, entries, max(1, clients)),
        Visit("insertion into the log", times=5, held=record, lines=2),
        Visit("process array", times=1, held=costs.visit, lines=entries),
        Visit("commit log", times=1, held=costs.visit, lines=2),
    )
    if release != BEFORE:
        return Transaction(work, shared)
    own = (_heavyweight("lock of the virtual transaction", costs, PARTITIONS),)
    relations = tuple(_heavyweight(f"lock of relation {number}", costs) for number in range(7))
    messages = (_spinlock("invalidation messages", 16, costs),)
    return Transaction(work, own + relations + messages + shared)
