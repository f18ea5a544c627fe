"""An idle server: how often its processes wake up, watched while the rest of the chapter runs elsewhere."""

import threading
import time
from contextlib import suppress

import pandas as pd
import psutil

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.errors import CannotMeasure
from pgrerun.instruments import processes
from pgrerun.server import Borrowed

SETTLE = 15.0  # seconds until the WAL writer has noticed that nothing happens
# Seconds more on a fresh server: when it is 15 old the background writer logs the running transactions (bgwriter.c),
# which keeps the WAL writer awake for another ten (walwriter.c).
FRESH = 12.0
LAP = 120.0  # seconds that the background writer takes to look at every buffer once, before it lies down (bufmgr.c)
WINDOWS = 5


class Watch:
    """Reads the wake-ups of an idle server's processes once a second, in the background.

    Where there is no time to let the background writer finish its first lap, it is told to do
    without (bgwriter_lru_maxpages = 0), and `hurried` is true.
    """

    def __init__(self, chapter: Chapter):
        self.hurried = chapter.parameters.idle_seconds < LAP
        self.cluster = chapter.cluster(autovacuum="on", **({"bgwriter_lru_maxpages": 0} if self.hurried else {}))
        self.settle = SETTLE + FRESH + (0 if self.hurried else LAP)
        self.readings: list[tuple[float, pd.DataFrame]] = []
        self.others: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        if self._over.wait(self.settle):
            return
        self._others_before = _programs()
        while True:
            self.readings.append((time.monotonic(), processes.usage(self.cluster).processes[["role", "switches"]]))
            if self._over.wait(1.0):
                return

    def end(self, least: float) -> None:
        """Stop watching as soon as it has lasted `least` seconds."""
        while not self.readings or time.monotonic() - self.readings[0][0] < least:
            if not self._thread.is_alive():
                raise CannotMeasure("processes", "the idle server's processes couldn't be watched")
            time.sleep(0.1)
        self._over.set()
        self._thread.join()
        after = _programs()
        self.others = {name: after[name] - before for name, before in self._others_before.items() if name in after}


def _programs() -> dict[str, int]:
    """Voluntary context switches of every program on this machine that isn't PostgreSQL's, by name."""
    found: dict[str, int] = {}
    for process in psutil.process_iter(["name"]):
        try:
            if process.info["name"] not in ("postgres", "pgbench", "initdb"):
                found[process.info["name"]] = found.get(process.info["name"], 0) + process.num_ctx_switches().voluntary
        except psutil.Error:
            continue
    return found


def watch(chapter: Chapter) -> Watch:
    """Start an idle server and watch it; nobody connects to it from here on."""
    if chapter.borrowed:
        chapter.cluster()
    return Watch(chapter)


def wakeups(chapter: Chapter, watched: Watch | None) -> pd.DataFrame | None:
    """Wake-ups per second of each auxiliary process: role, windows of time as columns 0 to 4."""
    if watched is None:
        return None
    watched.end(chapter.parameters.idle_seconds)
    ends = [watched.readings[round(k * (len(watched.readings) - 1) / WINDOWS)] for k in range(WINDOWS + 1)]
    return _rates(ends)


def glance(server: Borrowed, settle: float, seconds: float) -> pd.DataFrame:
    """The same of somebody's server on this machine, as it is: under its own settings, and whatever others have it do.

    It is left alone for `settle` seconds, and watched for `seconds` more. CannotMeasure if it runs elsewhere.
    """
    roles = server.background()
    time.sleep(settle)
    readings = [_reading(roles)]
    for _ in range(WINDOWS):
        time.sleep(seconds / WINDOWS)
        readings.append(_reading(roles))
    return _rates(readings)


def _reading(roles: dict[int, str]) -> tuple[float, pd.DataFrame]:
    switches = {}
    for pid in roles:
        with suppress(psutil.Error):  # a worker that has ended since
            switches[pid] = psutil.Process(pid).num_ctx_switches().voluntary
    return time.monotonic(), pd.DataFrame({"role": pd.Series(roles), "switches": pd.Series(switches, dtype=float)})


def _rates(ends: list[tuple[float, pd.DataFrame]]) -> pd.DataFrame:
    """Wake-ups per second between each two readings, a column each, by role."""
    columns = {k: (after[1]["switches"] - before[1]["switches"]).dropna() / (after[0] - before[0]) for k, (before, after) in enumerate(zip(ends, ends[1:]))}
    frame = pd.DataFrame(columns)
    frame.insert(0, "role", ends[0][1]["role"])
    return frame[~frame["role"].isin(["postmaster", "client backend"])].groupby("role", as_index=False).sum()


def rate(found: pd.DataFrame | None) -> statistics.Interval | None:
    """Wake-ups per second of all auxiliary processes together."""
    if found is None:
        return None
    mean = statistics.mean(found.drop(columns="role").sum())
    return statistics.Interval(mean.estimate, max(0.0, mean.low), mean.high, mean.n, mean.confidence, mean.method)


def top_facts(watched: Watch | None, found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether some other program of this machine wakes up more often than the idle server."""
    if watched is None or found is None:
        return None
    seconds = watched.readings[-1][0] - watched.readings[0][0]
    busiest = max(watched.others.values(), default=0) / seconds
    return {"some other program on this machine wakes up more often than the idle server": busiest > rate(found).estimate}


def no_selinux(chapter: Chapter) -> None:
    """sepgsql needs a kernel with SELinux and a server built for it (CannotMeasure)."""
    raise CannotMeasure("SELinux", "it takes a kernel with SELinux and a server built with sepgsql")


def no_itanium(chapter: Chapter) -> None:
    """Nobody here has the processor (CannotMeasure)."""
    raise CannotMeasure("Itanium", "it takes an Itanium processor, and PostgreSQL no longer supports it")
