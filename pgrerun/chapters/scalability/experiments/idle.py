"""An idle server: how often its processes wake up, while the chapter runs on other servers."""

import threading
import time

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability.experiments.load import require_own
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import wakeups as wakeup_counts
from pgrerun.lab.server import Borrowed

SETTLE = 15.0  # seconds until the WAL writer has noticed that nothing happens
# Seconds instead, where there is the time: the background writer looks at every buffer once, and
# autovacuum's first rounds write to the WAL (the talk's server had been idle for a few minutes).
FEW_MINUTES = 210.0
WINDOWS = 5


class Watch:
    """Reads the wake-ups of an idle server's processes once a second, in the background.

    It is left alone for `settle` seconds before: minutes, where it is watched for as long.
    """

    def __init__(self, chapter: Chapter):
        hurried = chapter.parameters.idle_seconds < FEW_MINUTES / 2
        self.cluster = chapter.cluster(autovacuum="on")
        self.settle = SETTLE if hurried else FEW_MINUTES
        self.readings: list[wakeup_counts.Reading] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        over = self._over.wait(self.settle)
        while not over:
            self.readings.append(wakeup_counts.reading(self.cluster.pids()))
            over = self._over.wait(1.0)

    def end(self, least: float) -> None:
        """Stop watching as soon as it has lasted `least` seconds."""
        while not self.readings or time.monotonic() - self.readings[0][0] < least:
            if not self._thread.is_alive():
                raise CannotMeasure("processes", "the idle server's processes couldn't be watched")
            time.sleep(0.1)
        self._over.set()
        self._thread.join()


@experiment(claims=["haas-060", "haas-061", "haas-062"])
def watch(chapter: Chapter) -> Watch:
    """Start an idle server and watch it; nobody connects to it from here on."""
    require_own(chapter)
    return Watch(chapter)


@experiment()
def wakeups(chapter: Chapter, watched: Watch) -> pd.DataFrame:
    """Wake-ups per second of each auxiliary process: role, windows of time as columns 0 to 4.

    For how many seconds it had been idle before stands in `attrs` as "rested".
    """
    watched.end(chapter.parameters.idle_seconds)
    last = len(watched.readings) - 1
    found = wakeup_counts.rates(
        [watched.readings[round(k * last / WINDOWS)] for k in range(WINDOWS + 1)]
    )
    found.attrs["rested"] = watched.settle
    return found


def glance(server: Borrowed, settle: float, seconds: float) -> pd.DataFrame:
    """The same of somebody's server on this machine, under its own settings.

    Whatever others have it do counts as well. It is left alone for `settle` seconds, and watched
    for `seconds` more. CannotMeasure if it runs elsewhere.
    """
    roles = server.background()
    time.sleep(settle)
    readings = [wakeup_counts.reading(roles)]
    for _ in range(WINDOWS):
        time.sleep(seconds / WINDOWS)
        readings.append(wakeup_counts.reading(roles))
    return wakeup_counts.rates(readings)
