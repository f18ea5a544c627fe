"""Where processes go to sleep: context switches with their call chains, taken by perf.

A profile of the CPU clock (`perf.py`) sees a process only while it runs. This one sees the
moment at which it stops: `perf record -e context-switches -g`. The chain is copied from the
stack (DWARF), because programs without frame pointers break perf's cheaper chains; that costs
some kilobytes a switch, so only every so many switches are taken.
"""

import re
from collections.abc import Iterable, Mapping

import pandas as pd

from pgrerun.errors import ServerError
from pgrerun.lab.instruments import perf
from pgrerun.lab.server.private import PrivateDirectory, base_directory

STACK = 4096  # bytes copied of each: enough for the inner dozen calls
COLUMNS = ["chain", "samples"]

# What a chain of PostgreSQL's calls means: the innermost of these functions decides.
CAUSES = {
    "LockAcquireExtended": "a heavyweight lock",
    "LockAcquire": "a heavyweight lock",
    "LWLockAcquire": "a lightweight lock",
    "LWLockAcquireOrWait": "a lightweight lock",
    "LWLockWaitForVar": "a lightweight lock",
    "issue_xlog_fsync": "the log's flush",
    "pg_fdatasync": "the log's flush",
    "fdatasync": "the log's flush",
    "secure_read": "the client",
    "pq_getbyte": "the client",
    "exit_to_user_mode_loop": "its turn on a processor",
}


def sample(pids: Iterable[int], seconds: float, *, every: int = 20) -> pd.DataFrame:
    """Call chains of every so-manieth context switch of processes while something else keeps them
    busy.

    Columns: chain (function names from the innermost outwards, a tuple), samples; most first. Empty
    if nobody slept. CannotMeasure without perf, ServerError if the processes are gone.
    """
    perf.require()
    listed = ",".join(map(str, pids))
    with PrivateDirectory(base_directory()) as place:
        data = place.path / "data"
        done = perf.perf(
            *perf.RECORD, *options(every), "-p", listed, "-o", data, "--", "sleep", seconds
        )
        if not data.exists():
            raise ServerError(
                f"The context switches of processes {listed} can't be sampled:"
                f" {done.stderr.strip()[-300:]}"
            )
        script = perf.perf("script", "-i", data, "-F", "comm,ip,sym")
    return read(script.stdout)


def options(every: int = 20) -> tuple[str, ...]:
    """What makes perf take the call chain of every so-manieth context switch."""
    return "-e", "context-switches", "-c", str(every), "--call-graph", f"dwarf,{STACK}"


def between(script: str, began: float, ended: float) -> str:
    """The samples of perf script (with -F time, recorded with -k mono) between two readings of
    `time.monotonic`.
    """
    times = ((re.search(r"(\d+\.\d+):", block), block) for block in script.split("\n\n"))
    return "\n\n".join(block for time, block in times if time and began <= float(time[1]) <= ended)


def read(script: str) -> pd.DataFrame:
    """perf script's samples, separated by empty lines: a name, then an address and a function a
    line.
    """
    chains = []
    for block in script.split("\n\n"):
        functions = [
            match[1]
            for line in block.splitlines()
            if (match := re.match(r"\s+[0-9a-f]+ (.+?)(?: \(inlined\))?$", line))
        ]
        if functions:
            chains.append(tuple(functions))
    counted = pd.Series(chains, dtype=object).value_counts()
    return pd.DataFrame({"chain": counted.index, "samples": counted.to_numpy()}, columns=COLUMNS)


def by_cause(
    chains: pd.DataFrame, causes: Mapping[str, str], otherwise: str = "other"
) -> pd.Series:
    """Share of the switches by cause: `causes` maps a function to a name, and the innermost
    function that it knows decides.
    """
    names = [
        next((causes[function] for function in chain if function in causes), otherwise)
        for chain in chains["chain"]
    ]
    counted = chains["samples"].groupby(pd.Series(names, index=chains.index, dtype=object)).sum()
    return (counted / max(counted.sum(), 1)).sort_values(ascending=False)
