"""Sphinx extension: what readers of their own run get to see before they run anything.

The role `sample-card` links to a report card, which is drawn by the template that draws a
reader's; the directive `sample-run` fills the page of a reader's run with a run of ours. Both are
kept as text in `data/samples`, and drawn anew with the site.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

from pgrerun import report_card
from pgrerun.record import printed
from pgrerun.site import samples

KEPT = printed.DATA.parent / "samples"
CARD = "sample-report-card.html"
SAID = "Its database holds pgbench's tables, read and updated by pgbench for less than a minute."


class SampleRun(Directive):
    def run(self):
        text = samples.your_run(
            samples.load(KEPT / "run.json"), lambda claim: f"scoreboard.html#{claim}"
        )
        return [nodes.raw("", text, format="html")]


def setup(app):
    def card(name, rawtext, text, lineno, inliner, options=None, content=None):
        """A link to the card, which isn't printed."""
        on_site = app.builder.name == "html"
        return [nodes.reference("", text, refuri=CARD) if on_site else nodes.Text(text)], []

    app.add_role("sample-card", card)
    app.add_directive("sample-run", SampleRun)
    app.connect("builder-inited", begin_card)
    # after `content_policy`, as the card has a policy of its own
    app.connect("build-finished", write_card, priority=900)


def begin_card(app) -> None:
    """Draw the card beside the pages in a process of its own, as it takes as long as they do."""
    if app.builder.name == "html":
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        app.card = pool.submit(report_card.sample, KEPT / "report-card.jsonl", SAID)
        pool.shutdown(wait=False)  # once that is done


def write_card(app, exception) -> None:
    """The card beside the pages."""
    if not exception and app.builder.name == "html":
        Path(app.outdir, CARD).write_text(app.card.result(), "utf-8")
