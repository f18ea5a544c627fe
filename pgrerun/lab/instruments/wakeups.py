"""How often processes wake up: the kernel's counts of their voluntary context switches."""

import itertools
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pandas as pd
import psutil

# when it was read (time.monotonic, seconds); by pid the columns role, switches
Reading = tuple[float, pd.DataFrame]


def reading(roles: Mapping[int, str]) -> Reading:
    """The counts of processes, given with their roles, and when they were read."""
    switches = {}
    for pid in roles:
        with suppress(psutil.Error):  # a worker that has ended since
            switches[pid] = psutil.Process(pid).num_ctx_switches().voluntary
    return time.monotonic(), pd.DataFrame(
        {"role": pd.Series(roles), "switches": pd.Series(switches, dtype=float)}
    )


def rates(readings: Sequence[Reading]) -> pd.DataFrame:
    """Wake-ups per second by role: role, and a column (0, 1, ...) for each two readings in turn.

    Only of auxiliary processes: the postmaster and client backends are left out. How long they were
    watched, in seconds, stands in `attrs`.
    """
    columns = {}
    for k, ((began, before), (ended, after)) in enumerate(itertools.pairwise(readings)):
        columns[k] = (after["switches"] - before["switches"]).dropna() / (ended - began)
    frame = pd.DataFrame(columns)
    frame.insert(0, "role", readings[0][1]["role"])
    auxiliary = frame[~frame["role"].isin(["postmaster", "client backend"])]
    found = auxiliary.groupby("role", as_index=False).sum()
    found.attrs["seconds"] = readings[-1][0] - readings[0][0]
    return found
