"""Clients that Linux's scheduler places, and clients that leave it nothing to place.

The talk takes the dish in its graph of 64 processors for the scheduler's. So each client and its
backend are given a processor of theirs, or left alone.
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from pgrerun.chapters.scalability.experiments.builds import RELEASES, programs
from pgrerun.chapters.scalability.experiments.large_machines import LARGE
from pgrerun.chapters.scalability.load import SQL, TPS, in_memory, loaded, relations
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.server import Cluster
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

MIDDLE = (16, 24, 32)  # clients, where the talk sees a dish
KEPT, LEFT = "each on a processor of its own", "by the scheduler"
PATIENCE = 60  # seconds


@experiment(units=TPS, needs=["restart"])
def placed_clients(bed: Testbed) -> Iterator[Row]:
    """Lookups on 9.2 by one client, by those in the talk's dish, and by as many as processors.

    A client is a pgbench of its own, which is kept on one processor with its backend, as no other
    client is, or is left where the scheduler puts it. CannotMeasure on fewer processors than the
    talk's larger machine had.
    """
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < LARGE:
        raise CannotMeasure(
            f"{LARGE} processors",
            f"the dish lies between a quarter and half of {LARGE}, and {len(usable)} are here",
        )
    with Cluster(programs(RELEASES[1]), in_memory(bed)) as tested:
        loaded(bed, tested)

        def measure(block: Block, clients: int, placed: str) -> dict[str, float]:
            chosen = usable[:clients] if placed == KEPT else []
            return {"tps": throughput(bed, tested, clients, chosen, block.seed)}

        yield from bed.compare(
            measure,
            {"clients": [1, *MIDDLE, len(usable)], "placed": [KEPT, LEFT]},
            pairs=bed.timed_pairs(),
            warmup=0,
            positive=["tps"],
            processors=len(usable),
        )


def throughput(bed: Testbed, tested: Cluster, clients: int, chosen: list[int], seed: int) -> float:
    """Lookups a second of so many pgbenches, the first of them on the first processor `chosen`."""
    with ThreadPoolExecutor(clients) as pool:
        running = [
            pool.submit(_one_client, bed, tested, number, chosen[number : number + 1], seed)
            for number in range(clients)
        ]
        if chosen:
            _keep_backends(tested, chosen)
        return sum(one.result() for one in running)


def _one_client(
    bed: Testbed, tested: Cluster, number: int, processor: list[int], seed: int
) -> float:
    usable = os.sched_getaffinity(0)
    try:
        if processor:  # of this thread, from which pgbench has it
            os.sched_setaffinity(0, processor)
        return pgbench.run(
            tested,
            SQL.script("lookup"),
            seconds=max(1, round(bed.parameters.seconds)),
            protocol="prepared",
            seed=seed + number,
            variables=relations(bed).variables,
            more=[f"application_name={_name(number)}"],
        ).tps
    finally:
        os.sched_setaffinity(0, usable)


def _name(number: int) -> str:
    return f"client_{number}"


def _keep_backends(tested: Cluster, chosen: list[int]) -> None:
    """Keep each client's backend on its processor, as soon as it is there."""
    waiting, until = {_name(k): processor for k, processor in enumerate(chosen)}, time.monotonic()
    with tested.connect() as connection:
        while waiting and time.monotonic() < until + PATIENCE:
            for name, pid in connection.execute(SQL.text("builds.backends")).fetchall():
                if name in waiting:
                    os.sched_setaffinity(pid, {waiting.pop(name)})
            time.sleep(0.01)
    if waiting:
        raise CannotMeasure("pg_stat_activity", f"it doesn't tell the backends of {len(waiting)}")
