"""A simulated server with many processors, whose clients meet at shared locks.

Nobody reading this has the talk's machines of 32 and 64 processors. The model plays transactions
on as many processors as wanted. A transaction computes on its own and visits locks on the way; a
visit holds its lock for a measured time, and what holds it longer than on one processor is named:

- a lock's data must be fetched from the processor that had it last (`Machine.transfer`);
- who waits for a *spinlock* keeps its processor and keeps asking, and the more ask, the longer
  the answer takes, because they fight for the cache line that says whether it is free
  (Boyd-Wickizer, Kaashoek, Morris and Zeldovich, "Non-scalable locks are dangerous", 2012);
- who waits for a *lightweight lock* gives its processor away and has to be woken
  (`Machine.switch`); the lock is free meanwhile, and whoever comes by may take it.

Throughput thus stays flat behind a crowded lightweight lock and falls behind a crowded spinlock.
What comes out is simulated.
"""

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from simpy.resources.resource import Request


@dataclass(frozen=True)
class Visit:
    """A lock that every transaction takes `times` times, `held` seconds each on one processor.

    `lines`: cache lines behind the lock that are fetched if another client had it last. `ways`:
    among how many equal locks the visit chooses at random (1: everybody's is the same). `spins`:
    whether who waits keeps its processor.
    """

    lock: str
    times: int
    held: float
    lines: float = 1
    ways: int = 1
    spins: bool = False


@dataclass(frozen=True)
class Transaction:
    """`work` seconds of computing without a shared lock, spread between the visits in order."""

    work: float
    visits: tuple[Visit, ...]


@dataclass(frozen=True)
class Machine:
    """What a transaction runs on; all but `processors` in seconds.

    transfer    to fetch a cache line that another processor has changed
    switch      of processor time that a sleep costs, half of it who wakes the sleeper and half
                the sleeper
    rouse       until a processor that had nothing to do runs who was woken
    patience    for which a spinlock is asked for before its waiter goes to sleep
    nap         how long it then sleeps
    slice       of computing after which a processor is given to the next, if one waits
    """

    processors: int
    transfer: float
    switch: float
    rouse: float
    patience: float = 100e-6  # s_lock.c: about a hundred loops of ever longer spinning
    nap: float = 1e-3  # s_lock.c: MIN_DELAY_USEC
    slice: float = 3e-3  # the Linux scheduler's granularity at its default


@dataclass(frozen=True)
class Played:
    """Throughput in transactions per second; `waiting`: mean of clients waiting per lock."""

    throughput: float
    waiting: dict[str, float]


def play(
    machine: Machine,
    transaction: Transaction,
    clients: int,
    *,
    transactions: int = 2000,
    seed: int = 0,
) -> Played:
    """Play `transactions` transactions of `clients` clients without think time.

    The first, as many as there are clients, are not counted: all start at once.
    """
    if clients < 1 or transactions < 1 or machine.processors < 1:
        raise ValueError("at least one client, one transaction and one processor are needed")
    return _Simulation(machine, transaction, clients, seed).run(transactions)


def alone(transaction: Transaction) -> float:
    """Transactions per second of a single client, which meets nobody: what `play` comes to in the
    long run.
    """
    return 1 / (transaction.work + sum(visit.times * visit.held for visit in transaction.visits))


Turns = Generator[simpy.Event, Any, Request]
"""Steps that end with the turn on a processor that one has then."""


class _Lock:
    def __init__(self) -> None:
        self.owner: int | None = None  # the client that has it
        self.last: int | None = None  # the client that had it last
        self.waiters: deque[simpy.Event] = deque()


class _Simulation:
    def __init__(self, machine: Machine, transaction: Transaction, clients: int, seed: int):
        self.machine, self.clients = machine, clients
        self.env = simpy.Environment()
        self.rng = np.random.default_rng(seed)
        self.processors = simpy.Resource(self.env, machine.processors)
        self.locks = {
            visit.lock: [_Lock() for _ in range(visit.ways)] for visit in transaction.visits
        }
        self.steps: Sequence[Visit] = [
            visit for visit in transaction.visits for _ in range(visit.times)
        ]
        self.piece = transaction.work / (len(self.steps) + 1)
        self.waited = dict.fromkeys(self.locks, 0.0)
        self.done = 0

    def run(self, transactions: int) -> Played:
        warm, until = self.clients, self.clients + transactions
        start: list[tuple[float, dict[str, float]]] = []
        finished = self.env.event()

        def client(number: int) -> Generator[simpy.Event, Any, None]:
            while self.done < until:
                yield from self.transaction(number)
                self.done += 1
                if self.done == warm:
                    start.append((self.env.now, dict(self.waited)))
                if self.done == until:
                    finished.succeed()

        for number in range(self.clients):
            self.env.process(client(number))
        self.env.run(finished)
        [(began, before)] = start
        elapsed = self.env.now - began
        waiting = {
            lock: (seconds - before[lock]) / elapsed for lock, seconds in self.waited.items()
        }
        return Played(transactions / elapsed, waiting)

    def transaction(self, client: int) -> Generator[simpy.Event, Any, None]:
        turn = yield from self.on_processor()
        for visit in self.steps:
            yield self.env.timeout(self.piece * self.rng.gamma(4, 0.25))
            turn = yield from (self.spin if visit.spins else self.sleep)(client, visit, turn)
        yield self.env.timeout(self.piece)
        self.processors.release(turn)

    def on_processor(self) -> Turns:
        turn = self.processors.request()
        yield turn
        return turn

    def chosen(self, visit: Visit) -> _Lock:
        ways = self.locks[visit.lock]
        return ways[int(self.rng.integers(len(ways)))] if len(ways) > 1 else ways[0]

    def hold(self, client: int, visit: Visit, lock: _Lock) -> float:
        """Take the free lock; how long it will be held."""
        fetched = self.machine.transfer * visit.lines if lock.last not in (client, None) else 0.0
        lock.owner = lock.last = client
        return visit.held + fetched

    def give_back(self, lock: _Lock) -> bool:
        """Leave the lock free and tell the first who waits; whether somebody does."""
        lock.owner = None
        if lock.waiters:
            lock.waiters.popleft().succeed()
            return True
        return False

    def held(self, held: float, turn: Request) -> Turns:
        """Be busy with the lock, perhaps interrupted by somebody else's turn on the processor."""
        if self.processors.queue and self.rng.random() < held / self.machine.slice:
            self.processors.release(turn)
            turn = yield from self.on_processor()
        yield self.env.timeout(held)
        return turn

    def sleep(self, client: int, visit: Visit, turn: Request) -> Turns:
        lock, arrived = self.chosen(visit), self.env.now
        while lock.owner is not None:
            woken = self.env.event()
            lock.waiters.append(woken)
            self.processors.release(turn)
            yield woken
            if self.processors.count < self.processors.capacity:
                yield self.env.timeout(self.machine.rouse)
            turn = yield from self.on_processor()
            yield self.env.timeout(self.machine.switch / 2)
        self.waited[visit.lock] += self.env.now - arrived
        turn = yield from self.held(self.hold(client, visit, lock), turn)
        if self.give_back(lock):
            yield self.env.timeout(self.machine.switch / 2)
        return turn

    def spin(self, client: int, visit: Visit, turn: Request) -> Turns:
        lock, arrived = self.chosen(visit), self.env.now
        while lock.owner is not None:
            free = self.env.event()
            lock.waiters.append(free)
            given_up = self.env.timeout(self.machine.patience)
            yield free | given_up
            if not free.triggered:
                lock.waiters.remove(free)
                self.processors.release(turn)
                yield self.env.timeout(self.machine.nap)
                turn = yield from self.on_processor()
        self.waited[visit.lock] += self.env.now - arrived
        # every processor that keeps asking takes the line away once, half of them before the owner
        # gets it
        disturbed = self.machine.transfer * len(lock.waiters) / 2
        turn = yield from self.held(self.hold(client, visit, lock) + disturbed, turn)
        self.give_back(lock)
        return turn
