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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import simpy

ALONE, QUEUE, TOGETHER = "alone", "queue", "together"


@dataclass(frozen=True)
class Committed:
    """`throughput` in transactions per second, `per_flush` transactions per flush."""

    throughput: float
    per_flush: float


def commit(
    way: str, clients: int, *, work: float, flush: float, switch: float, processors: int, transactions: int = 2000, seed: int = 0
) -> Committed:
    """Play `transactions` commits of so many clients without think time.

    In seconds: `work`, a transaction's processor time; `flush`, one flush of the log; `switch`, to
    let the next of those who wait go on. ValueError for an unknown way.
    """
    if way not in (ALONE, QUEUE, TOGETHER):
        raise ValueError(f"a commit goes {ALONE}, {QUEUE} or {TOGETHER}, not {way!r}")
    env, rng = simpy.Environment(), np.random.default_rng(seed)
    cores, log = simpy.Resource(env, processors), simpy.Resource(env)
    state = {"inserted": 0, "flushed": 0, "flushes": 0, "over": env.event()}
    done, finished = 0, env.event()

    def compute(seconds: float) -> Iterator[simpy.Event]:
        with cores.request() as turn:
            yield turn
            yield env.timeout(seconds)

    def flush_log(up_to: int) -> Iterator[simpy.Event]:
        yield env.timeout(flush)
        state["flushes"] += 1
        state["flushed"] = max(state["flushed"], up_to)

    def alone(record: int) -> Iterator[simpy.Event]:
        with log.request() as turn:
            yield turn
            yield from flush_log(record)

    def in_line(record: int) -> Iterator[simpy.Event]:
        with log.request() as turn:
            waited = not turn.triggered
            yield turn
            if waited:  # the lock was given back; it takes this long until its next owner runs
                yield env.timeout(switch)
            if state["flushed"] < record:
                yield from flush_log(state["inserted"])

    def together(record: int) -> Iterator[simpy.Event]:
        while state["flushed"] < record:
            if log.count:
                yield state["over"]
                yield env.timeout(switch)
                continue
            with log.request() as turn:
                yield turn
                yield from flush_log(state["inserted"])
            over, state["over"] = state["over"], env.event()
            over.succeed()

    wait = {ALONE: alone, QUEUE: in_line, TOGETHER: together}[way]

    def client() -> Iterator[simpy.Event]:
        nonlocal done
        while done < transactions:
            yield from compute(work * rng.gamma(4, 0.25))
            state["inserted"] += 1
            yield from wait(state["inserted"])
            done += 1
            if done == transactions:
                finished.succeed()

    for _ in range(clients):
        env.process(client())
    env.run(finished)
    return Committed(transactions / env.now, transactions / max(1, state["flushes"]))
