"""Exact mean value analysis of a closed queueing network.

A fixed number of customers (backends, copies of a program) circulate between stations
(processor, disk) without think time. The simulation with the disk's own rate and
variability is next door, in `workstation.py`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Solution:
    """Steady state of the network.

    `throughput` is in cycles per second, `utilization` the busy share (0 to 1) of
    each station, by name.
    """

    throughput: float
    utilization: dict[str, float]


def solve(demands: Mapping[str, float], customers: int, delays: Collection[str] = ()) -> Solution:
    """Mean value analysis (Reiser and Lavenberg 1980).

    `demands` gives the seconds of service that one cycle asks of each station. A
    station named in `delays` serves everybody at once, as a solid-state disk nearly
    does; every other station serves one customer at a time, as one disk variant did.
    Exact for exponential service or processor sharing; less variable service queues
    less, so a real system of constant service times lies above this throughput and
    below `perfect_overlap`.
    """
    if customers < 1 or not demands or min(demands.values()) < 0 or sum(demands.values()) <= 0:
        raise ValueError("a closed network needs a customer and a positive demand")
    queue = dict.fromkeys(demands, 0.0)
    throughput = 0.0
    for n in range(1, customers + 1):
        residence = {
            station: demand if station in delays else demand * (1 + queue[station])
            for station, demand in demands.items()
        }
        throughput = n / sum(residence.values())
        queue = {station: throughput * seconds for station, seconds in residence.items()}
    busy = {station: throughput * demand for station, demand in demands.items()}
    return Solution(throughput, busy)


def perfect_overlap(demands: Mapping[str, float], customers: int) -> Solution:
    """The bound that the 1990 report compares with: no customer ever waits for another.

    Source: 1990 report, section 3.2.2 ("overlap perfectly").
    """
    throughput = min(customers / sum(demands.values()), 1 / max(demands.values()))
    busy = {station: throughput * demand for station, demand in demands.items()}
    return Solution(throughput, busy)
