"""The card as one HTML page: no script, no network, light and dark, from a phone to a desk.

Every chart is drawn four times, for both themes and for two widths, and the browser takes the one
that fits.
"""

import base64
import hashlib
import html
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pandas as pd
from markdown_it import MarkdownIt

from pgrerun.lab.instruments import machine
from pgrerun.lab.server import Borrowed
from pgrerun.page import charts, narrate, tables
from pgrerun.record import runs

if TYPE_CHECKING:
    from pgrerun.report_card import Card, Outcome

WIDE, NARROW = 640, 330  # pixels of a chart on a desk and on a phone
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
_PROSE = MarkdownIt("commonmark", {"html": False}).disable("image")


def described(guest: Borrowed) -> dict[str, str]:
    """Which server this is, and those of its settings that bear on the card."""
    # null for one that the release doesn't know
    shown = "SELECT max(current_setting(name)) FROM pg_settings WHERE name = %s"
    with guest.connect() as connection:
        values = {name: connection.execute(shown, [name]).fetchone()[0] for name in SETTINGS}
    return {"server": guest.address} | {
        name: value for name, value in values.items() if value is not None
    }


def html_page(title: str, body: str) -> str:
    """A whole page around its body."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def drawn(card: "Card", seconds: float) -> str:
    """The page. Nothing on it is a password, whatever the server's words contain."""
    name = card.server.get("server", "a server")
    parts = [
        f"<h1>Report card</h1><p class=lead>{html.escape(runs.scrub(name))}</p>",
        prose(_about(card, seconds)),
        _summary(card),
        *(section_html(outcome) for outcome in card.outcomes),
        _provenance(card, seconds),
    ]
    return html_page(f"Report card of {runs.scrub(name)}", "\n".join(parts))


def _about(card: "Card", seconds: float) -> str:
    told = sum(bool(outcome.pieces) for outcome in card.outcomes)
    return (
        f"What the experiments of *Postgres, Rerun* find on this server. {told} of"
        f" {narrate.count(len(card.outcomes), 'section')} have something to tell, after"
        f" {narrate.number(seconds, 0)} s of the {narrate.number(60 * card.minutes, 0)} that were"
        " allowed. Intervals cover the true value nineteen times in twenty. Filled blue marks were"
        " measured here; grey ones, if any, are of the run that was published with the book, on"
        " another machine; hollow diamonds are printed numbers, and what is dashed is a model's."
    )


def _summary(card: "Card") -> str:
    rows = []
    for outcome in card.outcomes:
        finding = str(outcome.pieces[0]) if outcome.pieces else _aside(outcome)
        rows.append(
            "<li><a"
            f' href="#{outcome.section.name}">{html.escape(outcome.section.title)}</a>'
            f"{prose(finding)}</li>"
        )
    return f'<ul class="summary">{"".join(rows)}</ul>'


def _aside(outcome: "Outcome") -> str:
    return f"Set aside. {_plain(outcome.reason)}"


def _plain(text: str) -> str:
    """Somebody's words for Markdown: nothing in them is markup."""
    return re.sub(r"([\\*_`$|\[\]<>#])", r"\\\1", runs.scrub(text))


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
    return (
        "<section"
        f' id="{section.name}"><h2>{html.escape(section.title)}</h2>{"".join(map(_piece, words))}<p'
        f' class="how">{html.escape(section.does)} {html.escape(took)}</p></section>'
    )


def _piece(piece: object) -> str:
    if isinstance(piece, charts.Figure):
        return _figure(piece)
    if isinstance(piece, tables.Table):
        return piece._repr_html_()
    return prose(str(piece))


def prose(text: str) -> str:
    return _PROSE.render(runs.scrub(text))


def _figure(figure: charts.Figure) -> str:
    def address(width: int, dark: bool) -> str:
        return (
            "data:image/svg+xml;base64,"
            + base64.b64encode(charts.svg(figure, width, dark).encode()).decode()
        )

    phone, dark = "(max-width: 599px)", "(prefers-color-scheme: dark)"
    return (
        f'<figure><p class="question">{html.escape(figure.question)}</p><picture>'
        f'<source media="{phone} and {dark}" srcset="{address(NARROW, True)}">'
        f'<source media="{phone}" srcset="{address(NARROW, False)}">'
        f'<source media="{dark}" srcset="{address(WIDE, True)}">'
        f'<img alt="{html.escape(figure.description)}" src="{address(WIDE, False)}"></picture>'
        f"<figcaption>{html.escape(figure.caption)}</figcaption>{_data(figure)}</figure>"
    )


def _data(figure: charts.Figure) -> str:
    """The chart's numbers as a table, for whoever would rather read them."""
    rows = next(iter(figure.spec()["datasets"].values()))
    frame = pd.DataFrame(rows)[list(figure.columns)].rename(columns=dict(figure.columns))
    return f"<details><summary>Numbers</summary>{tables.Table(frame)._repr_html_()}</details>"


def _provenance(card: "Card", seconds: float) -> str:
    here = machine.describe()
    rows = card.server | {
        "schema looked at": card.schema,
        "measured from": (
            f"{here['cpu_model']}, {here['cpus_usable']} usable processors,"
            f" {here['distribution'] or here['system']}"
        ),
        "written": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, after {narrate.number(seconds, 0)} s",
    }
    frame = pd.DataFrame(
        {"what": list(rows), "value": [runs.scrub(str(value)) for value in rows.values()]}
    )
    shown = tables.Table(frame, "Server, settings, machine and time")
    return (
        f'<section id="provenance"><h2>Where this was measured</h2>{shown._repr_html_()}</section>'
    )


_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --text: #1c2024; --muted: #565e68; --line:
  #dde1e6; --link: #1d5d99; --card: #f5f7f9; }
@media (prefers-color-scheme: dark) {
  :root { --page: #16191d; --text: #e8eaed; --muted: #a8b0ba; --line: #343a42; --link: #7db8ec;
    --card: #1f242a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 1.02rem/1.58 Charter,
  "Bitstream Charter", Cambria, "Liberation Serif", Georgia, serif; }
main { max-width: 46rem; margin: 0 auto; padding: 1.6rem 1rem 4rem; overflow-wrap: break-word; }
h1, h2, .lead, .summary a, figure, .how, table, summary { font-family: system-ui, -apple-system,
  "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
h1 { font-size: 2rem; line-height: 1.15; margin: 0 0 0.3rem; letter-spacing: -0.015em; }
h2 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 0.6rem; letter-spacing: -0.01em; }
p { margin: 0.6rem 0; }
a { color: var(--link); }
code { font-size: 0.9em; }
.lead { color: var(--muted); margin: 0 0 1rem; }
section { border-top: 1px solid var(--line); margin-top: 2.4rem; padding-top: 1.6rem; }
.summary { list-style: none; margin: 1.4rem 0 0; padding: 0.4rem 1rem; background: var(--card);
  border-radius: 8px; }
.summary li { padding: 0.6rem 0; border-top: 1px solid var(--line); }
.summary li:first-child { border-top: 0; }
.summary a { font-weight: 600; }
.summary p { margin: 0.15rem 0 0; font-size: 0.96rem; }
figure { margin: 1.4rem 0; }
figure img { display: block; max-width: 100%; height: auto; }
.question { font-weight: 600; margin: 0 0 0.6rem; }
figcaption, .how { color: var(--muted); font-size: 0.88rem; line-height: 1.45; }
.how { border-left: 3px solid var(--line); padding-left: 0.8rem; }
details { margin-top: 0.5rem; font-size: 0.88rem; }
summary { color: var(--link); cursor: pointer; }
.result-table { overflow-x: auto; margin: 0.8rem 0; }
.result-table:focus-visible { outline: 2px solid var(--link); outline-offset: 3px; }
table { border-collapse: collapse; font-size: 0.86rem; line-height: 1.4; font-variant-numeric:
  tabular-nums lining-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.4rem; }
td, th { text-align: left; vertical-align: top; padding: 0.32rem 1rem 0.32rem 0; border-bottom: 1px
  solid var(--line); }
:is(td, th).number { text-align: right; }
td.number { white-space: nowrap; }
@media print { body { font-size: 0.9rem; } section { break-inside: avoid-page; } details { display:
  none; } }
"""

# No script, no request, no style but the page's own: the charts are pictures within it.
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; img-src data:; style-src 'sha256-{_DIGEST}'; base-uri 'none';"
    " form-action 'none'"
)
