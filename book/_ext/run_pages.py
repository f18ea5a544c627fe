"""Sphinx extension: what the pages say about runs, computed from the run records when the site is
built.

Directives, each without arguments: `headline`, `findings`, `then-and-now`, `scoreboard`,
`disagreements`, `your-run`, `agreement`, `quietness`, and those of the page about all runs. The
records lie beside the executed chapters (see `pgrerun/site/book.py`); the words and pictures come
from `pgrerun.site.scoreboard`, `all_runs` and `published_runs`. Each chapter opens with what was
found and the chart that shows it. A cell that attempts an experiment shows the SQL that it runs
and the line that a reader changes, with all the rest of what was done folded below, and every
sentence with a verdict is folded below one line, which the scoreboard links to. Long tables are
folded below their captions.
Each chapter ends with what it was made from and what can be downloaded.
"""

import ast
import html
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.parsers.rst import Directive

from pgrerun import parameters
from pgrerun.lab import sent
from pgrerun.page import narrate
from pgrerun.record import claims
from pgrerun.record.gather import Gathered
from pgrerun.record.machines import findings
from pgrerun.site import (
    all_runs,
    excerpts,
    executed_pages,
    layout,
    published_runs,
    scoreboard,
)

_CHANGE = re.compile("# Change ")
_ATTEMPT = re.compile(r"\battempt\(\s*((?:\w+\.)*\w+)")  # an experiment in a cell's code
_PARAMETER = re.compile(r"\bparameters\.(\w+)")  # which a function reads
_MOST, _LONGEST = 15, 600  # statements that a page shows of an experiment, characters of each
_ENGINE = re.compile("(duckdb|spark)", re.IGNORECASE)  # beside PostgreSQL, in names of its own
_ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}
# how an experiment calls what gives statements to a backend without a client
_SINGLE_USER = re.compile(r"\b(?:callgrind|single_user)\.")
_WATCHING = re.compile("pg_stat_activity WHERE application_name = 'pgbench'")
_OPEN = 8  # lines of SQL that a page shows before the reader unfolds the rest
_PRINTED = 12  # and of statements that a notebook prints
_ROWS, _WORDS = 12, 50  # of a table that a page shows without being asked
_FORETOLD = re.compile(r"Prediction \(([^)]*)\)")  # claims, those not to hold behind a "not"
_TABLE = re.compile('<div [^>]*class="result-table[ "]')
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
    app.connect("doctree-read", close_predictions)
    app.connect("doctree-read", fold_verdicts)
    app.connect("doctree-read", colour_printed_statements)
    app.connect("doctree-read", show_what_was_run)
    app.connect("doctree-read", fold_printed_statements)
    app.connect("doctree-read", redraw_tables)
    app.connect("doctree-read", fold_tables)
    app.connect("doctree-read", tell_what_was_found)
    app.connect("doctree-read", join_code)
    app.connect("doctree-read", keep_units, priority=700)
    app.connect("doctree-resolved", fill)
    app.connect("doctree-resolved", add_record)
    app.connect("build-finished", write_archives)
    app.connect("html-page-context", link_scripts, priority=400)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": False}


def read_records(app) -> None:
    app.env.run_records = scoreboard.records(Path(app.srcdir) / "results")
    app.env.verdict_pages = {}
    kept = Path(app.srcdir) / "all-runs.json"  # where the book laid out what it has
    app.env.gathered = Gathered.load(kept) if kept.exists() else None
    app.env.gathered_findings = findings(app.env.gathered) if app.env.gathered else None


def fold_verdicts(app, doctree) -> None:
    """Put each sentence with a verdict below its line, whose anchor is the claim's id."""
    docname = app.env.docname
    record = app.env.run_records.get(docname.removeprefix("results/"))
    judged = scoreboard.judgements({docname: record} if record else {})
    board = app.builder.get_relative_uri(docname, "scoreboard")
    for sentence in list(doctree.findall(nodes.paragraph)):
        found = _JUDGED.search(sentence.astext())
        if found and found.group(1) in judged:
            given = record.given.get(found.group(1), ())
            begin, end = scoreboard.verdict_line(judged[found.group(1)], board, given)
            framed = [nodes.raw("", text, format="html") for text in (begin, end)]
            sentence.replace_self([framed[0], sentence.deepcopy(), framed[1]])
            app.env.verdict_pages[found.group(1)] = docname


def close_predictions(app, doctree) -> None:
    """After the last verdict on what a prediction names, or else below it, what became of it."""
    record = app.env.run_records.get(app.env.docname.removeprefix("results/"))
    judged = scoreboard.judgements({app.env.docname: record} if record else {})
    paragraphs = list(doctree.findall(nodes.paragraph))
    places = {}
    for sentence in paragraphs:
        if found := _JUDGED.search(sentence.astext()):
            places.setdefault(found.group(1), (len(places), sentence))
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
    """Open each chapter with its answer, below the title."""
    record = app.env.run_records.get(app.env.docname.removeprefix("results/"))
    judged = scoreboard.judgements({app.env.docname: record} if record else {})
    title = doctree.next_node(nodes.title)
    if judged and title is not None:
        board = app.builder.get_relative_uri(app.env.docname, "scoreboard")
        changed = scoreboard.what_changed(record, lambda claim: f"{board}#{claim}")
        text = scoreboard.what_we_found(judged, changed)
        chart = _taken_out(doctree, parameters.info(record.chapters[0]).opens_with)
        title.parent.insert(1, [nodes.raw("", text, format="html"), *chart])


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


def colour_printed_statements(app, doctree) -> None:
    """What a notebook prints are statements and scripts of its chapter."""
    for code in doctree.findall(nodes.literal_block):
        if "stream" in code.get("classes", []):
            code["language"], code["force"] = "postgresql", True


def fold_printed_statements(app, doctree) -> None:
    """Of what a notebook prints, the first statements; of a statement that is too long for that,
    none.
    """
    for code in list(doctree.findall(nodes.literal_block)):
        text = code.astext().strip("\n")
        if "stream" not in code.get("classes", []) or len(text.splitlines()) <= _PRINTED:
            continue
        begun = excerpts.begin(text, _PRINTED)
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


def show_what_was_run(app, doctree) -> None:
    """In place of each cell that attempts an experiment its SQL, and all the rest folded.

    The record has experiments as "module.function"; one that was attempted before has a number
    behind, by which they are in the order in which they were attempted. Statements that the page
    has shown already are folded, too.
    """
    chapter = app.env.docname.removeprefix("results/")
    record = app.env.run_records.get(chapter)
    accounts = record.environment.get("sent", {}) if record else {}
    left = {name: accounts[name] for name in sorted(accounts, key=_turn)}
    shown: list[str] = []
    for code in list(doctree.findall(nodes.literal_block)):
        if "cell_input" not in code.parent.get("classes", []):
            shown.append(code.astext())
            continue
        calls = _ATTEMPT.findall(code.astext())
        names = [_attempted(called, left) for called in calls]
        accounts = {name: left.pop(name) for name in dict.fromkeys(names) if name}
        cell = code.parent
        if accounts:
            cell.remove(code)
            cell.extend(_what_was_run(chapter, accounts, code, shown))
            cell["classes"].append("what-was-run")
        elif calls and record:  # set aside, and not in the record
            functions = dict.fromkeys(called.rpartition(".")[2] for called in calls)
            lines = "\n".join(f"pgrerun run {chapter} --only {one}" for one in functions)
            cell += [_said("To run it:"), _code(lines, "text")]


def _turn(name: str) -> tuple[str, int]:
    one, _, number = name.partition(", ")
    return one, int(number or 0)


def _attempted(called: str, left: Mapping[str, object]) -> str | None:
    """The first experiment left whose module and function are called so, else whose function is.

    Two modules of a chapter may have functions of the same name, and a chapter its own names for
    modules.
    """
    dotted = [(name, f".{name.partition(',')[0]}") for name in left]
    whole = [name for name, full in dotted if f".{called}".endswith(full)]
    function = "." + called.rpartition(".")[2]
    return next(iter(whole or [name for name, full in dotted if full.endswith(function)]), None)


def _what_was_run(chapter, accounts, code, shown: list[str]) -> list[nodes.Node]:
    """The first lines of the SQL of a cell's experiments, the lines of the cell that a reader
    changes, and, folded, how each was done.

    `shown` are the texts that the page has shown, to which these files are added.
    """
    begun = [_code(text, "postgresql") for text in [_first_lines(accounts, shown)] if text]
    for account in accounts.values():
        shown += account["files"].values()
    cell = code.astext().strip()
    lines, rest = _divided(cell)
    begun += [_code(lines, "python")] if lines else []
    raw = lambda text: nodes.raw("", text, format="html")
    folded = [_said("The rest of the cell:" if lines else "The cell:"), _code(rest, "python")]
    folded = folded if rest else []
    for name, account in accounts.items():
        folded += _how(chapter, name.partition(",")[0], account)
    begin = '<details class="what-was-run"><summary>How this was done</summary>'
    return [*begun, raw(begin), *folded, raw("</details>")]


def _first_lines(accounts, shown: list[str]) -> str:
    """The first statements of a cell's experiments that the page hasn't shown, as they were sent.

    Of those that only watch pgbench's sessions none, unless there are no others.
    """
    files: dict[str, str] = {}
    for account in accounts.values():
        own = {name: text.strip() for name, text in account["files"].items()}
        scripts = [load["script"] for load in account["loads"]]
        order = excerpts.in_order(own, [text for text, _ in account["statements"]], scripts)
        files |= {name: own[name] for name in order if name not in files}
    telling = [name for name, text in files.items() if not _WATCHING.search(text)]
    above = {name for name, text in files.items() if any(text in one for one in shown)}
    return excerpts.excerpt(files, telling or list(files), above, _OPEN)


def _divided(cell: str) -> tuple[str, str]:
    """What a cell says to change with the statements below that which attempt the experiments, and
    the rest of it.
    """
    lines = cell.splitlines()
    found: list[int] = []
    for statement in ast.parse(cell).body:
        first = statement.lineno - 1
        if first and _CHANGE.match(lines[first - 1]):
            found += range(first - 1, statement.end_lineno)
    rest = [line for number, line in enumerate(lines) if number not in found]
    return "\n".join(lines[number] for number in found), "\n".join(rest).strip("\n")


def _how(chapter: str, name: str, account) -> list[nodes.Node]:
    """How to run one experiment again, what it sent, and the function that does it."""
    given = ", ".join(f"{name} = {value}" for name, value in account.get("given", {}).items())
    account = account | {"statements": sent.distinct(account["statements"])}
    ran = [narrate.run(account), _elsewhere(account)]
    told = [
        *([_said(f"It ran with {given}.")] if given else []),
        *([_said(" ".join(filter(None, ran)))] if any(ran) else []),
        _said("To run it again:"),
        _code(f"pgrerun run {chapter} --only {name}", "text"),
        _said(f"To make a variant of it: {_to_change(chapter, account)}. Then run it again."),
    ]
    if account["files"]:
        files = "\n\n".join(f"-- {file}\n{text}" for file, text in account["files"].items())
        # without colours, which would weigh more than the words: the page shows its first lines
        told += [_said("As it stands in the chapter's files:"), _code(files, "text")]
    told += [*_scripts(account), *_statements(account)]
    if account.get("settings"):
        told.append(_said(f"Settings that differ from PostgreSQL's: {account['settings']}."))
    return [*told, _said("The function that does it:"), _code(account["function"], "text")]


def _elsewhere(account) -> str:
    """What else was asked that the account doesn't have."""
    names = " ".join([*account["files"], account["function"]])
    engines = sorted({_ENGINES[found.lower()] for found in _ENGINE.findall(names)})
    said = [f"{narrate.listed(engines)} answered, too; counted is what PostgreSQL was sent."]
    # a record that tells how many statements were sent has those as well
    alone = "times" not in account and _SINGLE_USER.search(account["function"])
    words = (
        f"{'That prepared it. ' if account['statements'] else ''}What was measured ran in a"
        " single-user backend, which reads its statements without a client: the function below"
        " gives them."
    )
    return " ".join([*(said if engines else []), *([words] if alone else [])])


def _scripts(account) -> list[nodes.Node]:
    """Each of pgbench's scripts and how it was run, once; of one that is a file, how alone."""
    names = {text.strip(): name for name, text in account["files"].items()}
    told = []
    for script in dict.fromkeys(load["script"] for load in account["loads"]):
        how = narrate.loads([load for load in account["loads"] if load["script"] == script])
        if name := names.get(script.strip()):
            told.append(_said(f"pgbench ran {name}: {how}."))
        else:
            told += [_said(f"pgbench, {how}:"), _code(script, "postgresql")]
    return told


def _statements(account) -> list[nodes.Node]:
    """The first of the distinct statements, and how often each was sent."""
    first, kept = account["statements"][:_MOST], len(account["statements"])
    told = "\n".join(f"{_whole(text)}  -- {narrate.count(n, 'time')}" for text, n in first)
    where = f"has the first {kept}" if account["left_out"] else "has them all"
    most = kept + account["left_out"]
    cut = f" (the first {len(first)} of {most}; the run record {where})"
    words = f"What was sent, and how often{cut if len(first) < most else ''}:"
    return [_said(words), _code(told, "text")] if first else []


def _whole(text: str) -> str:
    """A statement with its semicolon; of a long one the beginning, without."""
    text = text.strip()
    return f"{text.rstrip(';')};" if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} …"


def _to_change(chapter: str, account) -> str:
    """Where what an experiment runs is written: its parameters, its statements, or else itself."""
    of_all = ", ".join(dict.fromkeys(_PARAMETER.findall(account["function"])))
    files = ", ".join(dict.fromkeys(name.partition(".")[0] for name in account["files"]))
    ways = []
    if of_all:
        ways.append(f"give another value in the notebook's first cell ({of_all})")
    if files:
        ways.append(f"edit its statements in pgrerun/chapters/{chapter}/sql ({files})")
    return ", or ".join(ways) or f"edit its function below pgrerun/chapters/{chapter}"


def redraw_tables(app, doctree) -> None:
    """Lay out the tables as their run has drawn them, verdicts in the words of the page's lines."""
    record = app.env.run_records.get(app.env.docname.removeprefix("results/"))
    judged = scoreboard.judgements({app.env.docname: record} if record else {})
    for place in _tables(doctree):
        text = layout.verdicts(place.astext(), judged)
        text = layout.stacked(layout.provenance_in_words(text))
        place.replace_self(nodes.raw("", text, format="html"))


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
            folded = nodes.raw("", f"{begin}{text}</details>", format="html")
            place.replace_self(folded)


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


def _said(words: str) -> nodes.paragraph:
    return nodes.paragraph("", words)


def _code(text: str, language: str) -> nodes.literal_block:
    """Highlighted as far as it can be: psql's variables are no SQL."""
    return nodes.literal_block(text, text, language=language, force=True)


def fill(app, doctree, docname) -> None:
    for place in list(doctree.findall(computed)):
        text = PAGES[place["kind"]](app, docname)
        place.replace_self(nodes.raw("", _with_units(text), format="html"))


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


def _findings(app, docname) -> str:
    """The front page's ten; each leads to the place in its chapter."""

    def link(claim: claims.Claim) -> str:
        page = app.env.verdict_pages.get(claim.id, f"results/{claim.chapter}")
        return f"{app.builder.get_relative_uri(docname, page)}#{claim.id}"

    found = scoreboard.findings(_judgements(app), most=10, of_a_chapter=2, numbered=True)
    return scoreboard.finding_list(found, link) if found else ""


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


def _all_runs(app, docname) -> str:
    gathered = app.env.gathered
    return all_runs.summary(gathered) if gathered else all_runs.NOTHING


def _all_runs_part(part: Callable[..., str], *, with_findings: bool = True):
    """A part of the page about all runs, empty where there are none."""

    def drawn(app, docname) -> str:
        if not app.env.gathered:
            return ""
        board = app.builder.get_relative_uri(docname, "scoreboard")
        given = (app.env.gathered_findings,) if with_findings else ()
        return part(app.env.gathered, *given, lambda claim: f"{board}#{claim}")

    return drawn


PAGES = {
    "headline": _headline,
    "findings": _findings,
    "then-and-now": _then_and_now,
    "scoreboard": _scoreboard,
    "disagreements": _disagreements,
    "your-run": _your_run,
    "agreement": lambda app, docname: published_runs.agreeing(),
    "quietness": lambda app, docname: published_runs.quiet(_titles(app)),
    "all-runs": _all_runs,
    "all-runs-dependences": _all_runs_part(all_runs.dependences),
    "all-runs-words": _all_runs_part(all_runs.board, with_findings=False),
    "all-runs-unlike": _all_runs_part(all_runs.unlike),
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
        sections[-1].insert(1, nodes.raw("", _with_units(text), format="html"))


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
