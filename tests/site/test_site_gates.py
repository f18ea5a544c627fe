"""Each gate lets a good book through and stops each kind of bad one."""

import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import nbformat
import pytest
import toy_chapter
from nbformat.v4 import new_markdown_cell, new_notebook, new_output

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.site import gates


@pytest.fixture(scope="module")
def toy() -> nbformat.NotebookNode:
    return toy_chapter.chapter()


@pytest.fixture
def executed(toy, tmp_path):
    """Writes the toy chapter after `change` has been made to a copy of it."""

    def write(change=lambda notebook: None) -> Path:
        notebook = nbformat.from_dict(toy)
        change(notebook)
        path = tmp_path / "toy.ipynb"
        nbformat.write(notebook, path)
        return path

    return write


def charts_of(notebook):
    return [cell for cell in notebook.cells if "chart" in cell.metadata.get("tags", [])]


# --- executed chapters


def test_an_executed_chapter_passes(executed):
    gates.check_chapter(executed())
    gates.check_chapter(executed(lambda n: n.metadata.update(pgrerun={"charts": 5})))


SAID = {"text/markdown": "Its words don't matter."}
REASON = new_output("display_data", SAID, metadata={CannotMeasure.METADATA: "restart"})
RAISED = new_output("error", ename="ValueError", evalue="no pages", traceback=[])


def bare(notebook, after=None, output=REASON):
    """Without its third chart; below the chart `after` stands an output, perhaps with a reason."""
    charts_of(notebook)[2].outputs = []
    if after is not None:
        charts_of(notebook)[after].outputs.append(output)


def test_a_chart_whose_experiment_was_set_aside_may_be_missing(executed):
    gates.check_chapter(executed(lambda notebook: bare(notebook, after=0)))


@pytest.mark.parametrize(
    "fault, complaint",
    [
        (lambda n: n.metadata.papermill.update(exception=True), "papermill did not finish"),
        (lambda n: n.metadata.pop("papermill"), "papermill did not finish"),
        (
            lambda n: charts_of(n)[0].update(execution_count=None),
            r"experiment.chart\(0\)\) was not executed",
        ),
        (lambda n: charts_of(n)[1].outputs.append(RAISED), "raised ValueError: no pages"),
        (bare, "shows no chart"),
        # the reason comes later, or is words alone
        (lambda n: bare(n, after=3), "shows no chart"),
        (lambda n: bare(n, 0, new_output("display_data", SAID)), "shows no chart"),
        (
            lambda n: n.metadata.update(pgrerun={"charts": 6}),
            "5 charts, and its metadata promises 6",
        ),
    ],
)
def test_a_bad_chapter_is_refused(executed, fault, complaint):
    with pytest.raises(BookError, match=complaint):
        gates.check_chapter(executed(fault))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cells": 1, "nbformat": 4}'])
def test_a_damaged_notebook_is_a_clear_error(tmp_path, content):
    path = tmp_path / "damaged.ipynb"
    path.write_text(content)
    with pytest.raises(BookError, match="can't be read as a notebook"):
        gates.check_chapter(path)


# --- prose

NAMES = [
    "As section 3.2.2, Figures 2.2 and 2.3 and page 14 say",
    "In 1990, 1981–2012 and the 1980s; on 27 August 1981",
    "PostgreSQL 18, Python 3.11 and INGRES 5 run TP1 and a B-tree",
    "# 3. Results\n\n1. first\n2. second",
    "Run `pgbench -c 12` for $x = 3$ with {cite}`anon1985` ([there](results/tp1.ipynb#step-3))",
    "```python\nclients = 12\n```",
    "```{code-block} sql\nselect 12\n```",
    "$$\nX = \\frac{1}{2}\n$$",
    "doi 10.5446/19029",
    "95<!-- typed: the confidence level is a convention --> percent",
    "1 000<!-- typed: the benchmark's own scale rule --> branches",
    "```{list-table}\n:widths: 12 58\n\n* - 1981\n  - INGRES\n```",
]
RESULTS = [
    "It took 12 ms",
    "throughput rose by 40%",
    "with 2007 pages read",
    "| rung | 0.699 |\n|---|---|\n| next | one |",
    "see section 3.2.2: 0.893 of it",
    "**1.25** times",
    "about 1,000 tuples",
    "95<!-- typed: --> percent",
    ":::{note}\nOnly 5 are left\n:::",
    "```{list-table}\n* - 1990\n  - 45 pages\n```",
    '<p class="lead">Now 3.07 times as fast</p>',
    "> a quotation with 206.86 in it",
    "[12 pages](there)",
    "![a chart of 12 pages](x.png)",
]


@pytest.mark.parametrize("text", NAMES)
def test_numbers_that_name_something_may_be_typed(tmp_path, text):
    (tmp_path / "page.md").write_text(text)
    gates.check_prose(tmp_path)


@pytest.mark.parametrize("text", RESULTS)
def test_numbers_that_are_results_may_not_be_typed(tmp_path, text):
    cells = [new_markdown_cell("# Title"), new_markdown_cell(text)]
    nbformat.write(new_notebook(cells=cells), tmp_path / "a.ipynb")
    with pytest.raises(BookError, match=r"a\.ipynb, cell 1, line \d"):
        gates.check_prose(tmp_path / "a.ipynb")


def test_outputs_and_code_of_a_notebook_are_not_prose(executed):
    gates.check_prose(executed())


def test_a_folder_is_searched_but_not_its_builds(tmp_path):
    for folder in ("_build", ".ipynb_checkpoints", "results"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "page.md").write_text("It took 12 ms")
    with pytest.raises(BookError) as error:
        gates.check_prose(tmp_path)
    assert str(error.value).count("12 ms") == 1


# --- the built site


def test_the_built_site_passes_and_an_unbuilt_one_is_refused(toy_site, tmp_path):
    gates.check_site(toy_site)
    with pytest.raises(BookError, match="not built"):
        gates.check_site(tmp_path)


@pytest.fixture
def small(executed, tmp_path) -> Callable[[Mapping[str, str]], Path]:
    """Writes files and the toy chapter, as it was executed, into a folder."""

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            (tmp_path / "small" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "small" / name).write_text(text)
        for folder in ("_sources/results", "results"):  # where a site has it, and where a book has
            (tmp_path / "small" / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(executed(), tmp_path / "small" / folder / "tp1.ipynb")
        return tmp_path / "small"

    return write


@pytest.fixture(scope="module")
def site(toy) -> dict[str, str]:
    """A site that passes: three pages, one of them of the toy chapter."""
    charts = [cell.outputs[0].data["text/html"] for cell in charts_of(toy)]
    return {
        "index.html": (
            "<html><head></head><body><article><a href='glossary.html#term-page'>a page</a>"
            '<a href="results/tp1.html">TP1</a><img alt="hollow diamond" src="mark-printed.svg">'
            "</article></body></html>"
        ),
        "glossary.html": "<html><body><p id='term-page'>A page.</p></body></html>",
        "results/tp1.html": f"<html><body>{''.join(charts)}</body></html>",
        "mark-printed.svg": "<svg/>",
        "style.css": "p { color: red }",
    }


HEAD, END = "</head>", "</article>"
DAMAGES = [  # page, what is put for what there, complaint
    ("results/tp1.html", 'class="vl-chart"', 'class="gone"', "4 charts, its notebook has 5"),
    ("results/tp1.html", 'class="vl-spec">{', 'class="vl-spec">', "lost its specification"),
    ("results/tp1.html", '"description":"Four', '"was":"Four', "has no text description"),
    *(
        ("index.html", place, added + place, complaint)
        for place, added, complaint in (
            (HEAD, '<script src="https://a.test/v.js"></script>', "<script> fetches"),
            (HEAD, '<link rel="stylesheet" href="//a.test/f.css">', "<link> fetches //a.test"),
            (END, '<img alt="x" src="http://a.test/p">', "<img> fetches"),
            (END, '<iframe src="https://a.test/"></iframe>', "<iframe> fetches"),
            (HEAD, '<script src="gone.js?v=1"></script>', "gone.js?v=1, which is not there"),
            (END, '<img alt="x" src="gone.svg">', "gone.svg, which is not there"),
            (END, '<img alt="x" srcset="mark-printed.svg 1x, gone.svg 2x">', "fetches gone.svg,"),
            (END, '<a href="nowhere.html">x</a>', "nowhere.html leads nowhere"),
            (END, '<a href="../../book">x</a>', "leads nowhere"),
            (END, '<a href="glossary.html#term-x">x</a>', "anchor in glossary.html#term-x"),
            (END, '<a href="#nothing">x</a>', "anchor in #nothing"),
        )
    ),
    ("index.html", 'alt="hollow diamond"', "", "mark-printed.svg has no alternative text"),
    ("index.html", "hollow diamond", "mark-printed.svg", "no alternative text"),
    ("style.css", "p {", '@import "https://fonts.test/css"; p {', "fetches https://fonts.test"),
]


@pytest.mark.parametrize(("page", "old", "new", "complaint"), DAMAGES)
def test_a_damaged_site_is_refused(small, site, page, old, new, complaint):
    gates.check_site(small(site))
    assert old in site[page]
    with pytest.raises(BookError) as error:
        gates.check_site(small(site | {page: site[page].replace(old, new, 1)}))
    assert complaint in str(error.value) and page in str(error.value)


# --- the printed book


def test_the_printed_book_passes(toy_book, toy_epub):
    gates.check_epub(toy_epub, toy_book / "book")


EPUB = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": "<container/>",
    "content.opf": "<package>{}</package>",
    "index.xhtml": '<html><body><a href="glossary.xhtml#term-page">a page</a></body></html>',
    "glossary.xhtml": '<html><body><p id="term-page">A page.</p></body></html>',
    "results/tp1.xhtml": "<html><body>{}</body></html>".format(
        '<div class="vl-chart"><img alt="Two rows." src="../chart.svg"/></div>' * 5
    ),
    "chart.svg": "<svg/>",
}
LISTED = [name for name in EPUB if name not in ("mimetype", "META-INF/container.xml")]
EPUB["content.opf"] = EPUB["content.opf"].format(
    "".join(f'<item id="{name}" href="{name}"/>' for name in LISTED if name != "content.opf")
)
BODY = "</body>"


def packed(target: Path, files: Mapping[str, str], first: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(target, "w") as package:
        for name, text in files.items():
            package.writestr(name, text, first if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return target


@pytest.mark.parametrize(
    ("page", "old", "new", "complaint"),
    [
        ("mimetype", "", "", "mimetype is not its first"),
        ("index.xhtml", BODY, "<br></body>", "index.xhtml is not well-formed"),
        ("index.xhtml", BODY, '<a href="nowhere.xhtml">x</a></body>', "xhtml leads nowhere"),
        ("index.xhtml", BODY, '<a href="glossary.xhtml#no">x</a></body>', "glossary.xhtml#no"),
        ("results/tp1.xhtml", 'class="vl-chart"', 'class="gone"', "4 charts, its notebook has 5"),
        ("index.xhtml", BODY, "<script>1</script></body>", "has a script"),
        ("index.xhtml", BODY, '<img alt="x" src="https://a.test/p"/></body>', "<img> fetches"),
        ("results/tp1.xhtml", 'alt="Two rows."', 'alt=""', "no alternative text"),
        ("content.opf", 'href="chart.svg"', 'href="other.svg"', "chart.svg is in the package but"),
    ],
)
def test_a_damaged_epub_is_refused(small, tmp_path, page, old, new, complaint):
    source = small({})
    gates.check_epub(packed(tmp_path / "whole.epub", EPUB), source)
    assert old in EPUB[page]
    damaged = EPUB | {page: EPUB[page].replace(old, new, 1)}
    first = zipfile.ZIP_DEFLATED if page == "mimetype" else zipfile.ZIP_STORED
    with pytest.raises(BookError) as error:
        gates.check_epub(packed(tmp_path / "broken.epub", damaged, first), source)
    assert complaint in str(error.value)
