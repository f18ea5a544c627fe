"""The report card: what the book's experiments find on somebody's server, on one page that needs no
network.

`sections.py` has the experiments, `visit.py` lends them the chapters' verbs, `catalogs.py` reads
what the server has counted about its owner's relations, `limits.py` ends what takes too long,
`page.py` writes the page, and `kept.py` keeps what was measured, so that a page can be drawn again.
"""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from pgrerun.errors import CannotMeasure, ParameterError, RerunError
from pgrerun.lab.server import Borrowed, place
from pgrerun.page import narrate
from pgrerun.parameters import require_writable
from pgrerun.record.database import NotMeasured
from pgrerun.record.evidence import NoRows
from pgrerun.record.statistics import TooFew
from pgrerun.report_card import catalogs, kept, page
from pgrerun.report_card.limits import TimeIsUp, Watchdog
from pgrerun.report_card.sections import SECTIONS, Piece, Section
from pgrerun.report_card.visit import Visit, is_far
from pgrerun.stopping import stoppable

MINUTES = (0.2, 120.0)  # range of what may be asked for
SPARE = 0.06  # share of the time that writing the page and leaving the server get
LEAVING = 30.0  # seconds at most for leaving the server
LOCKED = 5  # seconds that a session of ours waits for somebody's lock
# What everybody on the server would feel, or only its owner should do, even where the user may.
ABSTAINS = ("checkpoint", "superuser", "files", "restart")


@dataclass
class Outcome:
    """What came of a section: `pieces` to show, or the reason why there are none; `ended` if its
    time was over first.
    """

    section: Section
    limit: float
    pieces: Sequence[Piece] = ()
    reason: str = "It was not reached."
    seconds: float = 0.0
    ended: bool = False


def planned(minutes: float) -> list[Outcome]:
    """The sections with the seconds that each may take; ParameterError unless `minutes` is in its
    range.
    """
    if not MINUTES[0] <= minutes <= MINUTES[1]:
        raise ParameterError(
            f"The card's time must be from {MINUTES[0]:g} to {MINUTES[1]:g} minutes, and"
            f" {minutes:g} was given."
        )
    whole = sum(section.share for section in SECTIONS)
    seconds = 60 * minutes * (1 - SPARE)
    return [Outcome(section, seconds * section.share / whole) for section in SECTIONS]


def in_order(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The sections as they run: first those that a load would disturb."""
    return sorted(outcomes, key=lambda one: not one.section.undisturbed)


def steps(server: str, minutes: float) -> tuple[str, list[dict[str, str]]]:
    """Where the card would be made, and what each section would do, touch and take at most; nothing
    is touched, not even by a connection.
    """
    rows = [
        {
            "section": one.section.title,
            "what it does": one.section.does,
            "what it touches": one.section.touches,
            "at most": f"{one.limit:.0f} s",
        }
        for one in in_order(planned(minutes))
    ]
    return place(server), rows


@dataclass
class Card:
    """A card under way: what came of each section so far, in the order of the page; `said` of one
    that is only a sample.
    """

    schema: str
    minutes: float
    outcomes: list[Outcome] = field(default_factory=list)
    server: dict[str, str] = field(default_factory=dict)
    far: bool = False  # so that round trips make up much of what a client measures
    machine: str = ""  # that the clients run on
    load: list[float] = field(default_factory=list)  # average there, before and after
    written: str = ""  # when
    seconds: float = 0.0
    said: str = ""


def write(
    server: str,
    schema: str = "public",
    minutes: float = 5.0,
    out: Path = Path("report-card.html"),
    keep: Path | None = None,
) -> Path:
    """Run the sections on somebody's server, at most so many minutes in all, and write the page;
    its path. What was measured is also kept in the file `keep`, if one is named.

    What was finished is on the page, whatever ends the rest. RerunError for what the reader can
    mend: a schema that isn't there, a server that doesn't answer or lets us make no schema, a place
    that can't be written to.
    """
    card = Card(schema, minutes, planned(minutes))
    for file in filter(None, (out, keep)):
        require_writable(file, "The page")
    # what a section's end interrupts is told as that, and not by the driver with an address
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    try:
        with stoppable("the server to be as it was found"):
            _make(card, server, out, keep)
    except KeyboardInterrupt as stop:
        kept = f"What was finished is in {out}. " if card.server else ""
        left = " ".join(getattr(stop, "__notes__", [])) or "The server is as it was found."
        raise RerunError(f"Stopped. {kept}{left}") from None
    return out


def _make(card: Card, server: str, out: Path, keep: Path | None) -> None:
    """Run the sections, and write the page whatever ends them."""
    started = time.monotonic()
    longest = max(outcome.limit for outcome in card.outcomes)
    with _guest(server, longest, 60 * card.minutes) as guest:
        chapters = {outcome.section.chapter for outcome in card.outcomes}
        visits = {name: Visit(name, guest, card.schema) for name in sorted(chapters)}
        catalogs.require_schema(guest, card.schema)
        try:
            card.server, card.far = page.described(guest), is_far(guest)
            card.machine, card.load = page.machine_here(), [os.getloadavg()[0]]
            for outcome in in_order(card.outcomes):
                left = started + 60 * card.minutes * (1 - SPARE) - time.monotonic()
                run_section(outcome, visits[outcome.section.chapter], min(outcome.limit, left))
        finally:
            card.seconds = time.monotonic() - started
            card.written = datetime.now(UTC).isoformat(timespec="seconds")
            card.load.append(os.getloadavg()[0])
            _put(out, page.drawn(card))
            if keep:
                kept.write(card, visits.values(), guest, keep)


TELLING = 600.0  # seconds that a section may take to tell what was kept


def sample(file: Path, said: str) -> str:
    """The page of a card that was kept, with what is said of its server on top."""
    head, lines = kept.read(file)
    sections, given = head.pop("sections"), head.pop("given")
    known = [section for section in SECTIONS if section.name in sections]
    outcomes = [Outcome(one, sections[one.name]["limit"]) for one in known]
    card = Card(**head | {"outcomes": outcomes, "said": said})
    visits = {name: kept.KeptVisit(card, name, given[name], lines[name]) for name in given}
    for outcome in in_order(card.outcomes):
        was = sections[outcome.section.name]
        outcome.reason = was["reason"]
        if not was["reason"]:
            run_section(outcome, visits[outcome.section.chapter], TELLING)
        outcome.seconds, outcome.ended = was["seconds"], was["ended"]
    return page.drawn(card)


@contextmanager
def _guest(server: str, longest: float, whole: float) -> Iterator[Borrowed]:
    """Sessions whose statements the server itself ends, should nobody be left here to do so.

    Neither coming nor going takes longer than it may, whatever the server does.
    """
    milliseconds = {
        "statement_timeout": round(1000 * (longest + LOCKED)),
        "lock_timeout": 1000 * LOCKED,
    }
    try:
        with Watchdog(whole).watching():
            guest = Borrowed(server, settings=milliseconds, abstains=ABSTAINS)
    except TimeIsUp as late:
        raise RerunError(_late(server, "let us in", late)) from None
    try:
        yield guest
    except BaseException as error:
        _leave(guest, server, error)
        raise
    _leave(guest, server)


def _leave(guest: Borrowed, server: str, error: BaseException | None = None) -> None:
    try:
        with Watchdog(LEAVING).watching():
            guest.__exit__(type(error), error, None)
    except TimeIsUp as late:
        raise RerunError(_late(server, "let our schema be dropped", late)) from error


def _late(server: str, what: str, late: TimeIsUp) -> str:
    notes = " ".join(getattr(late, "__notes__", []))
    return (
        f"The server at {place(server)} hasn't {what} in time. {notes} If there is a schema"
        f" `{Borrowed.schema}` of ours there, the next run drops it."
    )


def run_section(outcome: Outcome, visit: Visit, seconds: float) -> None:
    """Run one section for so many seconds at most, and note what came of it."""
    if seconds < 1:
        outcome.reason = "No time was left for it; give the card more minutes."
        return
    visit.watchdog, started = Watchdog(seconds), time.monotonic()
    try:
        with visit.watchdog.watching():
            found = outcome.section.experiment(visit)
            outcome.pieces = [piece for piece in found if piece is not None]
    except TimeIsUp:
        outcome.reason = (
            f"Its time of {narrate.number(seconds, 0)} s was over before there was anything to"
            " tell; give the card more minutes."
        )
    except CannotMeasure as reason:
        outcome.reason = f"{reason} (missing: {reason.capability})."
    except (TooFew, NotMeasured, NoRows):
        outcome.reason = "It got too few numbers to tell anything; give the card more minutes."
    except RerunError as error:
        outcome.reason = str(error)
    except psycopg.Error as error:  # the server's own word: a permission, a lock, a shutdown
        outcome.reason = f"The server refused: {' '.join(str(error).split())}"
    outcome.seconds, outcome.ended = time.monotonic() - started, visit.watchdog.ended


def _put(out: Path, text: str) -> None:
    """Write the page in one step, so that an older one is replaced by a whole one or stays."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
