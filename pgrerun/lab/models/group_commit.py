"""Simulated commits that wait for one log: alone, one after the other, or in groups.

A transaction computes, then needs the log flushed up to its own record. Three ways to get there:

- `ALONE`: every commit makes a flush of its own;
- `QUEUE`: as in PostgreSQL 9.1, who gets the log's lock flushes for all that have their record in
  it by then, but those wait in line for the lock and are let in one by one, each to find that
  its record has been flushed;
- `TOGETHER`: as from 9.2 on, a flush that ends wakes all who wait; who is covered goes on, and
  one of the others leads the next flush.

What comes out is simulated.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

Steps = Generator[simpy.Event, Any, None]
ALONE, QUEUE, TOGETHER = "alone", "queue", "together"


@dataclass(frozen=True)
class Committed:
    """`throughput` in transactions per second, `per_flush` transactions per flush."""

    throughput: float
    per_flush: float


def commit(
    way: str,
    clients: int,
    *,
    work: float,
    flush: float,
    switch: float,
    processors: int,
    transactions: int = 2000,
    seed: int = 0,
) -> Committed:
    """Play `transactions` commits of so many clients without think time.

    In seconds: `work`, a transaction's processor time; `flush`, one flush of the log; `switch`, to
    let the next of those who wait go on. ValueError for an unknown way.
    """
    if way not in (ALONE, QUEUE, TOGETHER):
        raise ValueError(f"a commit goes {ALONE}, {QUEUE} or {TOGETHER}, not {way!r}")
    env, rng = simpy.Environment(), np.random.default_rng(seed)
    cores, log = simpy.Resource(env, processors), _Log(env, flush, switch)
    wait = {ALONE: log.alone, QUEUE: log.in_line, TOGETHER: log.together}[way]
    done, finished = 0, env.event()

    def client() -> Steps:
        nonlocal done
        while done < transactions:
            with cores.request() as turn:
                yield turn
                yield env.timeout(work * rng.gamma(4, 0.25))
            log.inserted += 1
            yield from wait(log.inserted)
            done += 1
            if done == transactions:
                finished.succeed()

    for _ in range(clients):
        env.process(client())
    env.run(finished)
    return Committed(transactions / env.now, transactions / max(1, log.flushes))


class _Log:
    """The log: how far records were inserted and flushed, and the three ways to wait for it."""

    def __init__(self, env: simpy.Environment, flush: float, switch: float):
        self._env, self._flush, self._switch = env, flush, switch
        self._lock = simpy.Resource(env)
        self._over = env.event()  # the flush under way
        self.inserted = self.flushed = self.flushes = 0

    def alone(self, record: int) -> Steps:
        with self._lock.request() as turn:
            yield turn
            yield from self._flush_up_to(record)

    def in_line(self, record: int) -> Steps:
        with self._lock.request() as turn:
            waited = not turn.triggered
            yield turn
            if waited:  # the lock was given back; it takes this long until its next owner runs
                yield self._env.timeout(self._switch)
            if self.flushed < record:
                yield from self._flush_up_to(self.inserted)

    def together(self, record: int) -> Steps:
        while self.flushed < record:
            if self._lock.count:
                yield self._over
                yield self._env.timeout(self._switch)
                continue
            with self._lock.request() as turn:
                yield turn
                yield from self._flush_up_to(self.inserted)
            over, self._over = self._over, self._env.event()
            over.succeed()

    def _flush_up_to(self, record: int) -> Steps:
        yield self._env.timeout(self._flush)
        self.flushes += 1
        self.flushed = max(self.flushed, record)
