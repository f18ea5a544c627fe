"""What the chapter measures: `load` has the loads, the others try the talk's advice on them."""

from pgrerun.chapters.measuring.experiments import (
    aa_runs,
    load,
    lock_waits,
    mechanisms,
    observers,
    over_time,
    slow_disk,
    workloads,
)

__all__ = [
    "aa_runs",
    "load",
    "lock_waits",
    "mechanisms",
    "observers",
    "over_time",
    "slow_disk",
    "workloads",
]
