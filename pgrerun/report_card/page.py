"""The card as one HTML page: no script, no network, light and dark, from a phone to a desk.

Every chart is drawn four times, for both themes and for two widths, and the browser takes the one
that fits.
"""

import base64
import hashlib
import re
from typing import TYPE_CHECKING

import pandas as pd
from markdown_it import MarkdownIt

from pgrerun.lab.instruments import machine
from pgrerun.lab.server import Borrowed
from pgrerun.page import charts, narrate, provenance, tables
from pgrerun.page.markup import Markup, macros, source
from pgrerun.record import runs

if TYPE_CHECKING:
    from pgrerun.report_card import Card, Outcome

WIDE, NARROW = 640, 330  # pixels of a chart on a desk and on a phone
TRIP = "a round trip to it takes"
SETTINGS = (
    "random_page_cost",
    "seq_page_cost",
    "effective_cache_size",
    "shared_buffers",
    "work_mem",
    "synchronous_commit",
    "fsync",
    "commit_delay",
    "wal_sync_method",
    "full_page_writes",
    "autovacuum",
    "max_connections",
)
# No HTML and no pictures: the page fetches nothing, whatever a server calls its tables.
_HTML = macros("report_card")
_PROSE = MarkdownIt("commonmark", {"html": False}).disable("image")


def described(guest: Borrowed) -> dict[str, str]:
    """Which server this is, and those of its settings that bear on the card."""
    # null for one that the release doesn't know
    shown = "SELECT max(current_setting(name)) FROM pg_settings WHERE name = %s"
    with guest.connect() as connection:
        values = {name: connection.execute(shown, [name]).fetchone()[0] for name in SETTINGS}
    trip = f"{narrate.number(1000 * guest.seen.round_trip)} ms"
    return {"server": guest.address, TRIP: trip} | {
        name: value for name, value in values.items() if value is not None
    }


def html_page(title: str, body: Markup) -> str:
    """A whole page around its body."""
    return _HTML.page(title, _POLICY, Markup(_STYLE), body)


def machine_here() -> str:
    """The machine that the clients run on, in words."""
    here = machine.describe()
    return (
        f"{here['cpu_model']}, {here['cpus_usable']} usable processors,"
        f" {here['distribution'] or here['system']}"
    )


def drawn(card: "Card") -> str:
    """The page. Nothing on it is a password, whatever the server's words contain."""
    name = runs.scrub(card.server.get("server", "a server"))
    outcomes = [
        (
            outcome.section,
            prose(str(outcome.pieces[0]) if outcome.pieces else _aside(outcome)),
            section_html(outcome),
        )
        for outcome in card.outcomes
    ]
    about = [_sample(card), _about(card)] if card.said else [_about(card)]
    body = _HTML.body(name, map(prose, about), outcomes, _provenance(card))
    return html_page(f"Report card of {name}", body)


def _sample(card: "Card") -> str:
    """That this isn't the reader's server, but which."""
    before, after = (narrate.number(load, 1) for load in card.load)
    others = ", as others were at work on it" if card.load[0] > 1 else ""
    return (
        f"> **This is a sample, not your server.** {card.said} It was measured on"
        f" {provenance.when(card.written)}, on {card.machine}, while that machine's load average"
        f" was {before} before and {after} after{others}."
        " `pgrerun report-card` makes the same page of your own server."
    )


def _about(card: "Card") -> str:
    far = (
        f" **A round trip to the server takes {card.server[TRIP]}**, and the"
        " times of single statements include one: what counts pages, bytes and commits is told in"
        " spite of it, and fewer repeats than on a near server have to do."
        if card.far
        else ""
    )
    told = sum(bool(outcome.pieces) for outcome in card.outcomes)
    return (
        f"What the experiments of *Postgres, Rerun* find on this server. {told} of"
        f" {narrate.count(len(card.outcomes), 'section')} have something to tell, after"
        f" {narrate.number(card.seconds, 0)} s of the {narrate.number(60 * card.minutes, 0)} that"
        " were allowed. Intervals cover the true value nineteen times in twenty. Filled blue marks"
        " were measured here; grey ones, if any, are of the run that was published with the book,"
        " on another machine; hollow diamonds are printed numbers, and what is dashed is a model's."
        f"{far}"
    )


def _aside(outcome: "Outcome") -> str:
    # somebody's words: nothing in them is markup
    return "Set aside. " + re.sub(r"([\\*_`$|\[\]<>#])", r"\\\1", runs.scrub(outcome.reason))


def section_html(outcome: "Outcome") -> str:
    section = outcome.section
    took = (
        f"It touches {section.touches}. It took {narrate.number(outcome.seconds, 0)} s; its limit"
        f" was {narrate.number(outcome.limit, 0)} s."
    )
    cut = (
        ["*Its limit ended it early: what follows is from what was finished by then.*"]
        if outcome.ended and outcome.pieces
        else []
    )
    words = [*cut, *outcome.pieces] if outcome.pieces else [_aside(outcome)]
    return _HTML.section(section, map(_piece, words), took)


def _piece(piece: object) -> str:
    if isinstance(piece, charts.Figure):
        return _figure(piece)
    if isinstance(piece, tables.Table):
        return Markup(piece._repr_html_())
    return prose(str(piece))


def prose(text: str) -> Markup:
    return Markup(_PROSE.render(runs.scrub(text)))


def _figure(figure: charts.Figure) -> str:
    def address(width: str, dark: bool) -> str:
        pixels = {"wide": WIDE, "narrow": NARROW}[width]
        return (
            "data:image/svg+xml;base64,"
            + base64.b64encode(charts.svg(figure, pixels, dark).encode()).decode()
        )

    # the chart's numbers as a table, for whoever would rather read them
    rows = next(iter(figure.spec()["datasets"].values()))
    frame = pd.DataFrame(rows)[list(figure.columns)].rename(columns=dict(figure.columns))
    return _HTML.figure(figure, address, Markup(tables.Table(frame)._repr_html_()))


def _provenance(card: "Card") -> str:
    rows = card.server | {
        "schema looked at": card.schema,
        "measured from": card.machine,
        "load average there, before and after": " and ".join(
            narrate.number(load, 1) for load in card.load
        ),
        "written": f"{provenance.when(card.written)}, after {narrate.number(card.seconds, 0)} s",
    }
    frame = pd.DataFrame(
        {"what": list(rows), "value": [runs.scrub(str(value)) for value in rows.values()]}
    )
    return Markup(tables.Table(frame, "Server, settings, machine and time")._repr_html_())


_STYLE = source("report_card.css")

# No script, no request, no style but the page's own: the charts are pictures within it.
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; img-src data:; style-src 'sha256-{_DIGEST}'; base-uri 'none';"
    " form-action 'none'"
)
