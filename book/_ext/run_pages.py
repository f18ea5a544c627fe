"""Sphinx extension: what the pages say about runs, computed from the run records when the site is
built.

Directives: `headline`, `findings PART`, `advice SETTING`, `made-from`, `overview`, `scoreboard`,
`disagreements`, `your-run`, `durations`, `noise-floors`, `agreement`, `quietness`, and those of the
page about all runs. The records lie beside the executed chapters (see `pgrerun/site/book.py`); the
words and pictures come from `pgrerun.site.scoreboard`, `advice`, `all_runs` and `published_runs`.
Each chapter tells after its introduction what was found, and shows the chart that it opens with.
Long tables, and statements of many lines, are folded.
Each chapter ends with what it was made from and what can be downloaded.
Wherever a verdict stands, its word leads to the rule that decides it.
"""

import html
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.parsers.rst import Directive

from pgrerun import parameters
from pgrerun.page import narrate
from pgrerun.record import claims
from pgrerun.record.gather import Gathered
from pgrerun.record.machines import findings
from pgrerun.site import (
    advice,
    all_runs,
    downloads,
    durations,
    excerpts,
    layout,
    published_runs,
    scoreboard,
)

_PRINTED = 12  # and of statements that a notebook prints
_ROWS, _WORDS = 12, 50  # of a table that a page shows without being asked
_FORETOLD = re.compile(r"Prediction \(([^)]*)\)")  # claims, those not to hold behind a "not"
_TABLE = re.compile('<div [^>]*class="result-table[ "]')
_RULES, _RULED = "measure", ("Verdict", "Basis")  # the page with the rules, what heads its tables
# as templates and `shown` write it; with the line that it begins, since that can't hold a link
_CHIP = re.compile(
    r'(<summary>)?<span class="chip"([^>]*)>([^<]+)</span>((?(1).*?</summary>))', re.DOTALL
)
_BASIS = re.compile(r'<span class="basis">([^<,]+)')
_LINE = re.compile(r'<div class="verdict-line" id="([a-z]+-\d{3})"')  # as `page.shown` writes it


class computed(nodes.General, nodes.Element):
    """A place that is filled when all pages are read and all places of verdicts known."""


class Computed(Directive):
    optional_arguments = 1

    def run(self):
        return [computed(kind=self.name, argument=" ".join(self.arguments))]


def setup(app):
    app.add_node(computed)
    for name in PAGES:
        app.add_directive(name, Computed)
    app.connect("builder-inited", read_records)
    app.connect("doctree-read", close_predictions)
    app.connect("doctree-read", place_verdicts)
    app.connect("doctree-read", show_printed_statements)
    app.connect("doctree-read", redraw_tables)
    app.connect("doctree-read", fold_tables)
    app.connect("doctree-read", tell_what_was_found)
    app.connect("doctree-read", join_code)
    app.connect("doctree-read", name_rules)
    app.connect("doctree-read", keep_units, priority=700)
    app.connect("doctree-resolved", fill)
    app.connect("doctree-resolved", link_rules, priority=600)
    app.connect("doctree-resolved", add_record)
    app.connect("build-finished", write_archives)


def read_records(app) -> None:
    app.env.run_records = scoreboard.records(Path(app.srcdir) / "results")
    # not in the environment, which is pickled: it holds databases
    app.teller = advice.Teller(app.env.run_records, scoreboard.judgements(app.env.run_records))
    app.env.verdict_pages = {}
    kept = Path(app.srcdir) / "all-runs.json"  # where the book laid out what it has
    app.env.gathered = Gathered.load(kept) if kept.exists() else None
    app.env.gathered_findings = findings(app.env.gathered) if app.env.gathered else None


def place_verdicts(app, doctree) -> None:
    """Note on which page each claim has its line, which the scoreboard links to."""
    for shown in doctree.findall(nodes.raw):
        for claim in _LINE.findall(shown.astext()):
            app.env.verdict_pages[claim] = app.env.docname


def close_predictions(app, doctree) -> None:
    """After the last verdict on what a prediction names, or else below it, what became of it."""
    record = app.env.run_records.get(app.env.docname.removeprefix("results/"))
    judged = scoreboard.judgements({app.env.docname: record} if record else {})
    paragraphs = list(doctree.findall(nodes.paragraph))
    places: dict[str, tuple[int, nodes.raw]] = {}
    for shown in doctree.findall(nodes.raw):
        for claim in _LINE.findall(shown.astext()):
            places.setdefault(claim, (len(places), shown))
    for paragraph in paragraphs:
        found = _FORETOLD.search(paragraph.astext())
        if not record or not found:
            continue
        words = [one.split() for one in found.group(1).split(", ")]
        foretold = {word[-1]: word[0] != "not" for word in words}
        reached = [places[claim] for claim in foretold if claim in places]
        last = max(reached, key=lambda place: place[0])[1] if reached else paragraph
        said = nodes.paragraph("", "", classes=["outcome"])
        said += nodes.strong("", "Prediction. ")
        said += nodes.Text(narrate.outcome(foretold, judged))
        last.parent.insert(last.parent.index(last) + 1, said)


def tell_what_was_found(app, doctree) -> None:
    """Tell after a chapter's introduction what was found, above the chart that it opens with."""
    chapter = app.env.docname.removeprefix("results/")
    title = doctree.next_node(nodes.title)
    if chapter not in app.env.run_records or title is None:
        return
    text = advice.what_we_found(app.teller, chapter)
    chart = _taken_out(doctree, parameters.info(chapter).opens_with)
    if not text and not chart:
        return
    section = title.parent
    sections = [one for one in section.children if isinstance(one, nodes.section)]
    place = section.index(sections[0]) if sections else len(section)
    section.insert(place, [nodes.raw("", text, format="html"), *chart])


def _taken_out(doctree, name: str) -> list[nodes.Node]:
    """The chart of that name, in whose place the page says where it stands; nothing without one."""
    begin = f'<figure class="vl-figure" id="chart-{name}">'
    for place in doctree.findall(nodes.raw):
        figure = place.astext()
        if begin in figure:
            link = f'<a href="#chart-{name}">The chart that this page opens with</a>'
            place.replace_self(nodes.raw("", f"<p>{link} is from here.</p>", format="html"))
            return [nodes.raw("", figure, format="html")]
    return []


def show_printed_statements(app, doctree) -> None:
    """What a notebook prints are statements and scripts of its chapter: in their colours, and no
    more than the first ones; of a statement that is too long for that, none.
    """
    for code in list(doctree.findall(nodes.literal_block)):
        if "stream" not in code.get("classes", []):
            continue
        code["language"], code["force"] = "postgresql", True
        text = code.astext().strip("\n")
        begun = excerpts.begin(text, _PRINTED)
        if begun.strip() == text.strip():
            continue
        rest = text[len(begun) :].strip("\n")
        said = f"{len(rest.splitlines())} {'more ' if begun else ''}lines of SQL"
        begin = f'<details class="supporting"><summary>{said}</summary>'
        folded = [nodes.raw("", begin, format="html"), _part(code, rest)]
        folded += [nodes.raw("", "</details>", format="html")]
        place = code.parent.index(code)  # `replace_self` would give the fold the block's classes
        code.parent[place : place + 1] = [*([_part(code, begun)] if begun else []), *folded]


def _part(code: nodes.literal_block, text: str) -> nodes.literal_block:
    """Some lines of a block, shown as the whole was."""
    return nodes.literal_block(text, text, **code.attributes)


def redraw_tables(app, doctree) -> None:
    """Lay out the tables that their run has drawn."""
    for place in _tables(doctree):
        place.replace_self(nodes.raw("", layout.stacked(place.astext()), format="html"))


def _tables(doctree) -> list[nodes.raw]:
    return [
        place
        for place in doctree.findall(nodes.raw)
        if place.get("format") == "html" and _TABLE.match(place.astext())
    ]


def fold_tables(app, doctree) -> None:
    """Put each long table below its caption."""
    for place in _tables(doctree):
        text = place.astext()
        table = BeautifulSoup(text, "html.parser")
        rows, caption = len(table.select("tbody tr")), table.find("caption")
        if rows > _ROWS or len(table.get_text(" ").split()) > _WORDS:
            columns = ", ".join(one.get_text() for one in table.select("thead th"))
            words = caption.get_text() if caption else f"Table: {columns}"
            if str(rows) not in words.split():  # of claims the caption has counted them
                words += f" ({narrate.count(rows, 'row')})"
            begin = f'<details class="long-table"><summary>{html.escape(words)}</summary>'
            place.replace_self(nodes.raw("", f"{begin}{text}</details>", format="html"))


def join_code(app, doctree) -> None:
    """Make one fold of code cells that stand below one another and show nothing."""
    for cell in [one for one in doctree.findall(nodes.container) if _is_folded_code(one)]:
        place = cell.parent.index(cell)
        before = [one for one in cell.parent.children[:place] if not _is_empty_cell(one)]
        if before and _is_folded_code(before[-1]):
            before[-1].children[0].extend(cell.children[0].children)
            cell.parent.remove(cell)


def _is_folded_code(node: nodes.Node) -> bool:
    """Whether a page shows of a cell only that it has code."""
    folded = isinstance(node, nodes.container) and node.get("hide_mode") == "input"
    return folded and [one.get("nb_element") for one in node.children] == ["cell_code_source"]


def _is_empty_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "nb_element" in node and not node.children


def keep_units(app, doctree) -> None:
    """Let no line end between a number and its unit, in sentences and in tables."""
    for text in list(doctree.findall(nodes.Text)):
        parent = text.parent
        if isinstance(parent, nodes.raw):
            if parent.get("format") == "html":
                parent.replace(text, nodes.Text(_with_units(text.astext())))
        elif not isinstance(parent, (nodes.FixedTextElement, nodes.literal, nodes.math)):
            parent.replace(text, nodes.Text(layout.unparted(text.astext())))


def _with_units(text: str) -> str:
    """HTML whose numbers stay with their units; charts and scripts hold data."""
    return text if "<script" in text or "<figure" in text else layout.unparted_markup(text)


def fill(app, doctree, docname) -> None:
    for place in list(doctree.findall(computed)):
        given = [place["argument"]] if place["argument"] else []
        text = PAGES[place["kind"]](app, docname, *given)
        place.replace_self(nodes.raw("", _with_units(text), format="html"))


# ---- from a word to its rule


def name_rules(app, doctree) -> None:
    """Give each row of the tables of rules an anchor of its own: verdict-not-so, basis-timed."""
    if app.env.docname == _RULES:
        for (head, word), (row, _) in _rules(doctree).items():
            row["ids"].append(nodes.make_id(f"{head}-{word}"))


def _rules(doctree) -> dict[tuple[str, str], tuple[nodes.row, str]]:
    """Row and meaning of each word of the tables that a word's kind heads."""
    found = {}
    for table in doctree.findall(nodes.table):
        head, *rows = [[one.astext() for one in row.children] for row in table.findall(nodes.row)]
        if head[0] in _RULED:
            _, *places = table.findall(nodes.row)
            for row, (word, meaning) in zip(places, rows):
                found[head[0], word] = row, meaning
    return found


def link_rules(app, doctree, docname) -> None:
    """Make each verdict's chip a link to its rule, which it tells a reader who points at it; of a
    line that unfolds, the link stands below it. What a verdict rests on is labelled there.
    """
    places = [one for one in doctree.findall(nodes.raw) if _CHIP.search(one.astext())]
    if not places or _RULES not in app.env.found_docs:
        return
    if not hasattr(app, "rules"):  # the same for every page of a build
        app.rules = _rules(app.env.get_doctree(_RULES))
    address = app.builder.get_relative_uri(docname, _RULES)

    def linked(chip: re.Match[str]) -> str:
        fold, attributes, said, rest = chip.groups()
        word = said.partition(" (")[0]
        if ("Verdict", word) not in app.rules:  # of a claim that was not run
            return chip[0]
        _, meaning = app.rules["Verdict", word]
        to = f'href="{address}#{nodes.make_id(f"verdict-{word}")}"'
        attributes += f' title="{html.escape(f"{word}: {meaning}")}"'
        if not fold:
            return f'<a class="chip"{attributes} {to}>{said}</a>'
        below = f'<p class="rule"><a {to}>What “{word}” means</a></p>'
        return f'{fold}<span class="chip"{attributes}>{said}</span>{rest}{below}'

    def labelled(basis: re.Match[str]) -> str:
        if ("Basis", basis[1]) not in app.rules:  # a caution alone
            return basis[0]
        _, meaning = app.rules["Basis", basis[1]]
        title = html.escape(f"{basis[1]}: {meaning}")
        return f'<span class="basis" title="{title}">basis: {basis[1]}'

    for place in places:
        text = _BASIS.sub(labelled, _CHIP.sub(linked, place.astext()))
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


def _address(app, docname) -> Callable[[str], str]:
    """From CHAPTER#ANCHOR to its address as seen from a page."""

    def address(place: str) -> str:
        chapter, hash_, anchor = place.partition("#")
        return app.builder.get_relative_uri(docname, f"results/{chapter}") + hash_ + anchor

    return address


def _scoreboard(app, docname) -> str:
    """The board; a claim that was judged but stands in no page leads to its chapter."""

    def link(claim: claims.Claim) -> str:
        page = app.env.verdict_pages.get(claim.id)
        anchor = f"#{claim.id}" if page else ""
        return app.builder.get_relative_uri(docname, page or f"results/{claim.chapter}") + anchor

    page = app.builder.get_relative_uri(docname, "what-to-do")
    concerned = advice.concerned(app.teller, Path(app.srcdir) / "settings.toml")
    what_to_do = {
        claim: {words: f"{page}#{anchor}" for words, anchor in each.items()}
        for claim, each in concerned.items()
    }
    measured_on = scoreboard.measured_on(app.env.run_records)
    return scoreboard.board(_judgements(app), link, _titles(app), measured_on, what_to_do)


def _on_the_board(app, docname) -> Callable[[str], str]:
    """From a claim's id to its address as seen from a page."""
    board = app.builder.get_relative_uri(docname, "scoreboard")
    return lambda claim: f"{board}#{claim}"


def _all_runs(part: Callable[..., str], otherwise: str = ""):
    """A part of the page about all runs; `otherwise` where there are none."""

    def drawn(app, docname) -> str:
        if not app.env.gathered:
            return otherwise
        address = _on_the_board(app, docname)
        return part(app.env.gathered, app.env.gathered_findings, address)

    return drawn


PAGES = {
    "headline": lambda app, docname: scoreboard.headline(_judgements(app)),
    "findings": lambda app, docname, part: advice.findings(
        app.teller, Path(app.srcdir) / "findings.toml", part, _address(app, docname)
    ),
    "advice": lambda app, docname, setting: advice.setting(
        app.teller, Path(app.srcdir) / "settings.toml", setting, _address(app, docname)
    ),
    "made-from": lambda app, docname: advice.made_from(app.env.run_records, _judgements(app)),
    "overview": lambda app, docname: scoreboard.overview(_judgements(app), _titles(app)),
    "scoreboard": _scoreboard,
    "disagreements": lambda app, docname: scoreboard.disagreement_tables(
        _titles(app), _address(app, docname)
    ),
    "your-run": lambda app, docname: scoreboard.your_run(
        app.env.run_records, _on_the_board(app, docname)
    ),
    "durations": lambda app, docname: durations.table(_titles(app)),
    "noise-floors": lambda app, docname: scoreboard.noise_floors(_judgements(app), _titles(app)),
    "agreement": lambda app, docname: published_runs.agreeing(),
    "quietness": lambda app, docname: published_runs.quiet(_titles(app)),
    "all-runs": _all_runs(lambda gathered, *_: all_runs.summary(gathered), all_runs.NOTHING),
    "all-runs-dependences": _all_runs(all_runs.dependences),
    "all-runs-words": _all_runs(lambda gathered, _, address: all_runs.board(gathered, address)),
    "all-runs-unlike": _all_runs(all_runs.unlike),
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
        downloads = {
            "This chapter as a notebook": f"../_sources/{docname}.ipynb",
            "Data of its charts (CSV)": f"{chapter}-charts.zip",
            "Run record (Parquet, JSON)": f"{chapter}-record.zip",
        }
        text = scoreboard.page_record(app.env.run_records[chapter], downloads)
        sections[-1].insert(1, nodes.raw("", _with_units(text), format="html"))


def write_archives(app, exception) -> None:
    """The run records and the charts' data beside the chapters' pages."""
    if exception or app.builder.name != "html":
        return
    results = Path(app.srcdir) / "results"
    for chapter in app.env.run_records:
        notebook = nbformat.read(results / f"{chapter}.ipynb", as_version=4)
        downloads.archive(
            Path(app.outdir) / "results" / f"{chapter}-charts.zip",
            downloads.chart_data(notebook),
        )
        files = {
            f"{chapter}/{file.name}": file.read_bytes()
            for file in sorted((results / chapter).iterdir())
            if file.is_file() and not file.is_symlink()
        }
        downloads.archive(Path(app.outdir) / "results" / f"{chapter}-record.zip", files)
