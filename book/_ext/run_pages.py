"""Sphinx extension: what the pages say about runs, computed from the run records when the site is
built.

Directives, each without arguments: `headline`, `then-and-now`, `scoreboard`, `disagreements`,
`your-run`. The records lie beside the executed chapters (see `pgrerun/site/book.py`); the words and
pictures come from `pgrerun.site.scoreboard`. Every sentence with a verdict in a chapter is folded
below one line, which the scoreboard links to, and each chapter ends with what it was made from and
what can be downloaded.
"""

import re
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive

from pgrerun.record import claims
from pgrerun.site import executed_pages, scoreboard

_JUDGED = re.compile(r"; ([a-z]+-\d{3})\): ")  # as `narrate.judgement` writes it


class computed(nodes.General, nodes.Element):
    """A place that is filled when all pages are read and all places of verdicts known."""


class Computed(Directive):
    def run(self):
        return [computed(kind=self.name)]


def setup(app):
    app.add_node(computed)
    for name in PAGES:
        app.add_directive(name, Computed)
    app.connect("builder-inited", read_records)
    app.connect("doctree-read", fold_verdicts)
    app.connect("doctree-resolved", fill)
    app.connect("doctree-resolved", add_record)
    app.connect("build-finished", write_archives)
    app.connect("html-page-context", link_scripts, priority=400)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": False}


def read_records(app) -> None:
    app.env.run_records = scoreboard.records(Path(app.srcdir) / "results")
    app.env.verdict_pages = {}


def fold_verdicts(app, doctree) -> None:
    """Put each sentence with a verdict below its line, whose anchor is the claim's id."""
    docname = app.env.docname
    record = app.env.run_records.get(docname.removeprefix("results/"))
    judged = scoreboard.judgements({docname: record} if record else {})
    board = app.builder.get_relative_uri(docname, "scoreboard")
    for sentence in list(doctree.findall(nodes.paragraph)):
        found = _JUDGED.search(sentence.astext())
        if found and found.group(1) in judged:
            begin, end = scoreboard.verdict_line(judged[found.group(1)], board)
            framed = [nodes.raw("", text, format="html") for text in (begin, end)]
            sentence.replace_self([framed[0], sentence.deepcopy(), framed[1]])
            app.env.verdict_pages[found.group(1)] = docname


def fill(app, doctree, docname) -> None:
    for place in list(doctree.findall(computed)):
        text = PAGES[place["kind"]](app, docname)
        place.replace_self(nodes.raw("", text, format="html"))


# ---- the pages


def _judgements(app) -> scoreboard.Judgements:
    return scoreboard.judgements(app.env.run_records)


def _titles(app) -> dict[str, str]:
    """Chapters in words: a title up to its colon."""
    pages = {
        name.partition("/")[2]: title
        for name, title in app.env.titles.items()
        if name.startswith("results/")
    }
    return {name: title.astext().partition(":")[0] for name, title in pages.items()}


def _headline(app, docname) -> str:
    return scoreboard.headline(_judgements(app))


def _then_and_now(app, docname) -> str:
    figure = scoreboard.then_and_now(app.env.run_records)
    return figure._repr_mimebundle_()["text/html"] if figure else ""


def _scoreboard(app, docname) -> str:
    """The board; a claim that was judged but stands in no page leads to its chapter."""

    def link(claim: claims.Claim) -> str:
        page = app.env.verdict_pages.get(claim.id)
        anchor = f"#{claim.id}" if page else ""
        return app.builder.get_relative_uri(docname, page or f"results/{claim.chapter}") + anchor

    return scoreboard.board(_judgements(app), link, _titles(app))


def _disagreements(app, docname) -> str:
    return scoreboard.disagreement_tables(
        _titles(app), lambda chapter: app.builder.get_relative_uri(docname, f"results/{chapter}")
    )


def _your_run(app, docname) -> str:
    board = app.builder.get_relative_uri(docname, "scoreboard")
    return scoreboard.your_run(app.env.run_records, lambda claim: f"{board}#{claim}")


PAGES = {
    "headline": _headline,
    "then-and-now": _then_and_now,
    "scoreboard": _scoreboard,
    "disagreements": _disagreements,
    "your-run": _your_run,
}


# ---- the end of each chapter


def add_record(app, doctree, docname) -> None:
    """Below the heading of a chapter's provenance: what it was made from, and the downloads."""
    chapter = docname.removeprefix("results/")
    if docname == chapter or chapter not in app.env.run_records:
        return
    sections = [
        one
        for one in doctree.findall(nodes.section)
        if one.next_node(nodes.title).astext() == "Provenance"
    ]
    if sections:
        downloads = {"This chapter as a notebook": f"../_sources/{docname}.ipynb"} | {
            words: f"{chapter}-{name}.zip"
            for name, words in (
                ("charts", "Data of its charts (CSV)"),
                ("record", "Run record (Parquet, JSON)"),
            )
        }
        text = scoreboard.page_record(app.env.run_records[chapter], downloads)
        sections[-1].insert(1, nodes.raw("", text, format="html"))


def write_archives(app, exception) -> None:
    """The run records and the charts' data beside the chapters' pages."""
    if exception or app.builder.name != "html":
        return
    results = Path(app.srcdir) / "results"
    for chapter in app.env.run_records:
        notebook = nbformat.read(results / f"{chapter}.ipynb", as_version=4)
        executed_pages.archive(
            Path(app.outdir) / "results" / f"{chapter}-charts.zip",
            executed_pages.chart_data(notebook),
        )
        files = {
            f"{chapter}/{file.name}": file.read_bytes()
            for file in sorted((results / chapter).iterdir())
            if file.is_file() and not file.is_symlink()
        }
        executed_pages.archive(Path(app.outdir) / "results" / f"{chapter}-record.zip", files)


def link_scripts(app, pagename, templatename, context, doctree) -> None:
    if 'class="scoreboard"' in (context.get("body") or ""):
        app.add_js_file("scoreboard.js", loading_method="defer")
