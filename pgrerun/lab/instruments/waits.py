"""What backends wait for: samples of pg_stat_activity taken while a load runs.

A sample sees who waits, not how often; shares of many samples are shares of time. Sampling costs
the server a little, so loads that are sampled aren't the ones that are timed.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pandas as pd

from pgrerun.errors import CannotMeasure
from pgrerun.lab.server import Server, releases

COLUMNS = ["type", "event", "backends"]

_SAMPLE = """
    SELECT coalesce(wait_event_type, 'CPU'), coalesce(wait_event, 'running'), count(*)
    FROM pg_stat_activity
    WHERE {clients} AND state = 'active' AND pid <> pg_backend_pid()
      AND application_name = current_setting('application_name')
    GROUP BY 1, 2"""


@dataclass
class Waits:
    """Samples of a `sampled()` block; complete when the block ends.

    `frame`: type and event as in pg_stat_activity ("CPU", "running" for a backend that doesn't
    wait) and backends, their number on average over `samples`.
    """

    samples: int = 0
    frame: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))

    def seen(self) -> pd.DataFrame:
        """The frame, or CannotMeasure if not a single sample found anybody at work."""
        if not self.samples:
            raise CannotMeasure(
                "wait samples",
                "the load was over before a sample of what its backends wait for could be taken",
            )
        return self.frame

    def backends(self, type: str = "", event: str = "") -> float:
        """Backends on average of one type of wait, or of one event, or of all active ones."""
        chosen = self.frame
        if type:
            chosen = chosen[chosen["type"] == type]
        if event:
            chosen = chosen[chosen["event"] == event]
        return float(chosen["backends"].sum())


@contextmanager
def sampled(server: Server, every: float = 0.005) -> Iterator[Waits]:
    """Sample the active backends of our own tools and connections every so many seconds while the
    block runs. CannotMeasure before PostgreSQL 9.6, which doesn't say what they wait for.
    """
    releases.require(server.version, "wait_event")
    sample = _SAMPLE.format(clients=releases.clients(server.version))
    waits, over = Waits(), threading.Event()
    seen: list[tuple[str, str, int]] = []

    def watch() -> None:
        with server.connect() as connection:
            # seen by all its functions at once, and a reading of its own each time
            while not over.wait(every):
                rows = connection.execute(sample, prepare=True).fetchall()
                if rows:  # before and after the load there is nobody to see
                    waits.samples += 1
                    seen.extend(rows)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield waits
    finally:
        over.set()
        watcher.join()
    if seen:
        frame = (
            pd.DataFrame(seen, columns=COLUMNS)
            .groupby(["type", "event"], as_index=False)["backends"]
            .sum()
        )
        frame["backends"] /= waits.samples
        waits.frame = frame.sort_values("backends", ascending=False, ignore_index=True)
