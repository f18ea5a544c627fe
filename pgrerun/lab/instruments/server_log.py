"""What a server's log (`Cluster.log`) tells of checkpoints, of autovacuum, of waits for locks, and
of lightweight locks where the build counts them.
"""

import re
from collections.abc import Mapping
from datetime import datetime

import pandas as pd


def checkpoints(log: str) -> list[float]:
    """When checkpoints began, in seconds since the epoch; the log's times are UTC."""
    return _times(log, "checkpoint starting")


def autovacuums(log: str, table: str) -> list[float]:
    """When visits of autovacuum to a table were over, in seconds since the epoch.

    With log_autovacuum_min_duration = 0, from PostgreSQL 8.3 on; in its development log_autovacuum.
    """
    return _times(log, rf'automatic (?:aggressive )?vacuum of table "[^"]*\.{re.escape(table)}"')


def _times(log: str, said: str) -> list[float]:
    """When what begins so was logged, in seconds since the epoch."""
    stamps = re.findall(rf"^(\S+ \S+) UTC \[\d+\] LOG:  {said}", log, re.MULTILINE)
    return [datetime.fromisoformat(f"{stamp}+00:00").timestamp() for stamp in stamps]


def lock_waits(log: str) -> list[float]:
    """How long each wait for a lock took that the log tells the end of, in ms.

    With log_lock_waits on these are the waits longer than deadlock_timeout.
    """
    found = re.findall(r"LOG:  process \d+ acquired \w+ on .* after ([\d.]+) ms", log)
    return [float(milliseconds) for milliseconds in found]


_COUNTED = re.compile(
    r"^PID \d+ lwlock (\d+): shacq (\d+) exacq (\d+) blk (\d+)(?: spindelay (\d+))?", re.MULTILINE
)


def lightweight_locks(log: str) -> Mapping[int, dict[str, int | None]]:
    """What processes print by LWLOCK_STATS when they end, summed by the number of the lock.

    How often it was `taken`, how often of that `exclusively`, `waits` and `spins`. Before the
    commit by which spins are counted too (June 2012) these are None.
    """
    found = pd.DataFrame(
        _COUNTED.findall(log), columns=["lock", "shared", "alone", "waits", "spins"]
    )
    sums = found.apply(pd.to_numeric).groupby("lock").sum(min_count=1)
    return {
        int(lock): {
            "waits": int(row["waits"]),
            "spins": None if pd.isna(row["spins"]) else int(row["spins"]),
            "taken": int(row["shared"] + row["alone"]),
            "exclusively": int(row["alone"]),
        }
        for lock, row in sums.iterrows()
    }
