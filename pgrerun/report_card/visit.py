"""A chapter's experiments on somebody's server: without claims, record and other servers."""

from collections.abc import Callable, Mapping
from typing import Any

from pgrerun import parameters
from pgrerun.errors import CannotMeasure
from pgrerun.lab.server import Borrowed
from pgrerun.lab.testbed import Experiment, Row, Testbed
from pgrerun.page import charts, declared
from pgrerun.parameters import chapter_parameters
from pgrerun.record import evidence, rows, runs
from pgrerun.record.database import Database, NotMeasured
from pgrerun.report_card.limits import TimeIsUp, Watchdog

# What each chapter's experiments are to do in the minutes that there are; the rest is as in ci.
PARAMETERS = {
    "optimizer": {"points": 7, "tuples": 40_000, "pairs": 9},
    "tp1": {"scale": 1, "counted": 20},
    "scalability": {
        "profile": "laptop",  # which measures times more than once
        "pairs": 7,
        "scale": 1,
        "most_clients": 32,
        "commit_clients": 32,
        "seconds": 0.4,
        "idle_seconds": 10,
    },
}


OVER = "its time was over before everything had been measured once; give it more minutes"
FAR = 0.002  # seconds of a round trip from which on those decide how much can be done
# The least that still can be told, in place of the above on a server that is so far away.
PARAMETERS_FAR = {
    "optimizer": {"points": 5, "tuples": 20_000, "pairs": 5},
    "tp1": {"scale": 1, "counted": 5, "pairs": 5},
    "scalability": PARAMETERS["scalability"]
    | {"most_clients": 16, "commit_clients": 16, "seconds": 0.2, "pairs": 5},
}


def is_far(guest: Borrowed) -> bool:
    """Whether round trips to the server decide how much can be done in the card's time."""
    return guest.seen.round_trip > FAR


class Visit:
    """What a section of the card sees: a chapter's experiments on somebody's server.

    `schema` is the one that the reader has chosen, `watchdog` the section's; the server is its
    opener's. All that a section learns of the server it measures or reads through its visit, so
    that a card can be kept, and drawn again without the server (`kept.py`).
    """

    watchdog: Watchdog

    def __init__(self, name: str, guest: Borrowed, schema: str):
        self.far = is_far(guest)
        self._open(name, (PARAMETERS_FAR if self.far else PARAMETERS)[name], schema)
        self.server = guest
        self.bed = Testbed(
            self.parameters,
            guest.programs,
            guest,
            rows=lambda name: self.rows.get(name, []),
        )

    def _open(self, name: str, given: Mapping[str, Any], schema: str) -> None:
        self.name, self.given, self.schema = name, given, schema
        self.parameters = chapter_parameters(name, given)
        self.rows: dict[str, list[Row]] = {}
        self.aside: dict[str, CannotMeasure] = {}
        self.reads: dict[str, list[Any]] = {}
        self._units: dict[str, Mapping[str, str]] = {}

    def measure(self, wanted: Experiment, **changed: Any) -> None:
        """Keep each row of an experiment; of the block in which its time is over, none."""
        kept = self.rows[wanted.name] = []
        self._units[wanted.name] = wanted.units
        try:
            for row in self.bed.measure(wanted, changed):
                kept.append(rows.check(wanted.name, row, wanted.units))
        except TimeIsUp:
            last = max((row["block"] for row in kept if row.get("block") is not None), default=-1)
            kept[:] = [row for row in kept if row.get("block") != last]
            raise
        except CannotMeasure as reason:
            self.aside[wanted.name] = reason
            raise

    def read(self, what: Callable[..., Any], *given: Any) -> Any:
        """What a function reads off the server."""
        found = what(self.server, *given)
        self.reads.setdefault(what.__name__, []).append(found)
        return found

    def require(self, name: str) -> None:
        """CannotMeasure unless everything of an experiment has been measured once."""
        if not self.rows.get(name):
            raise CannotMeasure("time", OVER)

    def database(self, *, published: bool = True) -> Database:
        """What was measured, and if wanted what the published runs have beside it."""
        found = Database(self.name)
        if published and self.name in runs.chapters(runs.PUBLISHED):
            found.add_published([self.name])
        for name, kept in self.rows.items():
            if kept:
                units = self._units[name]
                found.add("run", self.name, name, rows.frame(kept, units), units)
        return found

    def told(self, database: Database, name: str) -> str:
        """A finding of the chapter with its values filled in; "" where one is missing."""
        found = declared.findings_of(parameters.folder(self.name))
        return found.told(name, lambda text: self.value(database, text))

    def value(self, database: Database, expression: str) -> Any:
        """The value of an expression over what was measured."""
        return evidence.evaluate(database, expression, self.parameters.seed)

    def declared(self, database: Database, name: str) -> charts.Figure | None:
        """A chart of the chapter; None where the time was over before it had its rows."""
        chart = declared.charts_of(parameters.folder(self.name))[name]
        try:
            return chart.figure(database, lambda claim: "", self.parameters.seed)
        except NotMeasured:
            return None
