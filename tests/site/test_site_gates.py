"""Each gate lets a good book through and stops each kind of bad one."""

from pathlib import Path

import nbformat
import pytest
import toy_chapter
from nbformat.v4 import new_markdown_cell, new_notebook, new_output

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.site import gates

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.mark.parametrize("pattern", ["book/*.md", "notebooks/*.ipynb"])
def test_the_books_own_pages_hold_the_rule(pattern):
    found = sorted(ROOT.glob(pattern))
    assert found
    for page in found:
        gates.check_prose(page)


# --- the built site


def change(page: Path, old: str, new: str) -> None:
    assert old in page.read_text()
    page.write_text(page.read_text().replace(old, new, 1))


def test_the_built_site_passes_and_an_unbuilt_one_is_refused(toy_site, tmp_path):
    gates.check_site(toy_site)
    with pytest.raises(BookError, match="not built"):
        gates.check_site(tmp_path)


DAMAGES = {
    "a chart is lost": (
        "results/tp1.html",
        'class="vl-chart"',
        'class="gone"',
        "shows 4 charts, its notebook has 5",
    ),
    "a specification is lost": (
        "results/tp1.html",
        'class="vl-spec">{',
        'class="vl-spec">',
        "lost its specification",
    ),
    "no description": (
        "results/tp1.html",
        '"description":"Four',
        '"was":"Four',
        "has no text description",
    ),
    "a script from elsewhere": (
        "index.html",
        "</head>",
        '<script src="https://a.test/v.js"></script></head>',
        "<script> fetches",
    ),
    "without a scheme": (
        "index.html",
        "</head>",
        '<link rel="stylesheet" href="//a.test/f.css"></head>',
        "<link> fetches //a.test",
    ),
    "a picture from elsewhere": (
        "index.html",
        "</article>",
        '<img alt="x" src="http://a.test/p"></article>',
        "<img> fetches",
    ),
    "a frame": (
        "index.html",
        "</article>",
        '<iframe src="https://a.test/"></iframe></article>',
        "<iframe> fetches",
    ),
    "a lost script": (
        "index.html",
        "</head>",
        '<script src="_static/gone.js?v=1"></script></head>',
        "fetches _static/gone.js?v=1, which is not there",
    ),
    "a lost picture": (
        "index.html",
        "</article>",
        '<img alt="x" src="_images/gone.svg"></article>',
        "_images/gone.svg, which is not there",
    ),
    "a lost second picture": (
        "index.html",
        "</article>",
        '<img alt="x" srcset="_static/logo.svg 1x, gone.svg 2x"></article>',
        "fetches gone.svg, which is not there",
    ),
    "a dead link": (
        "index.html",
        "</article>",
        '<a href="nowhere.html">x</a></article>',
        "nowhere.html leads nowhere",
    ),
    "a link out of the site": (
        "index.html",
        "</article>",
        '<a href="../../book">x</a></article>',
        "leads nowhere",
    ),
    "a dead anchor": (
        "index.html",
        "</article>",
        '<a href="glossary.html#term-x">x</a></article>',
        "anchor in glossary.html#term-x",
    ),
    "a dead anchor here": (
        "index.html",
        "</article>",
        '<a href="#nothing">x</a></article>',
        "anchor in #nothing",
    ),
    "no alternative text": (
        "index.html",
        'alt="hollow diamond"',
        "",
        "mark-printed.svg has no alternative text",
    ),
    "a file's name for it": (
        "index.html",
        'alt="hollow diamond"',
        'alt="mark-printed.svg"',
        "no alternative text",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_site_is_refused(copied_site, damage):
    page, old, new, complaint = DAMAGES[damage]
    change(copied_site / page, old, new)
    with pytest.raises(BookError) as error:
        gates.check_site(copied_site)
    assert complaint in str(error.value) and page in str(error.value)


def test_a_style_that_fetches_a_font_is_refused_in_a_list_that_is_cut(copied_site):
    style = copied_site / "_static" / "pgrerun.css"
    style.write_text('@import "https://fonts.test/css?family=X";')
    with pytest.raises(BookError, match="pgrerun.css: fetches https://fonts.test"):
        gates.check_site(copied_site)
    links = '<a href="nowhere.html">x</a>' * 19
    change(copied_site / "index.html", "</article>", f"{links}</article>")
    with pytest.raises(BookError, match=r"and \d+ more"):
        gates.check_site(copied_site)
