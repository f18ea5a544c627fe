"""Lookups by PostgreSQL 9.1, 9.2 and the first patch between them, on costs that are measured.

What a lookup does is counted in the sources of the releases (`lookup`), what it costs is measured
on the machine at hand (`Costs`), how locks meet is `contention`'s.
"""

from dataclasses import astuple, dataclass

import numpy as np

from pgrerun.lab.models import contention
from pgrerun.lab.models.contention import Machine, Played, Transaction, Visit

BEFORE, FIRST, AFTER = "9.1", "first patch", "9.2"
RELEASES = (BEFORE, FIRST, AFTER)

# the lightweight lock, the hash bucket, the lock, and the two ends of its list of holders
LOCK_LINES = 5
AGAIN = 32  # clients for which as many transactions are played again: few for each do
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
    visits = {BEFORE: own + relations + messages + rest, FIRST: own + messages + rest, AFTER: rest}
    return Transaction(costs.work, visits[release])


@dataclass(frozen=True)
class Point:
    """One run of the simulation: a release's lookups by so many clients; `block` varies chance."""

    release: str
    processors: int
    clients: int
    costs: Costs
    block: int = 0

    def play(self, transactions: int, seed: int) -> Played:
        """Lookups per second, and how many clients wait for each lock.

        With more clients more transactions are played than the given ones: it takes each client a
        few until the curve is where it stays.
        """
        played = lookup(self.release, self.costs)
        if self.clients == 1:
            return Played(contention.alone(played), {visit.lock: 0.0 for visit in played.visits})
        return contention.play(
            machine(self.processors, self.costs),
            played,
            self.clients,
            transactions=round(transactions * (1 + self.clients / AGAIN)),
            seed=seed + self.block,
        )
