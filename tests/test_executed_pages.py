"""A page survives its record: nothing but pictures is left out, and they are drawn again."""

import csv
import io
import zipfile

import altair as alt
import nbformat
import pandas as pd
import pytest

from pgrerun.page import charts
from pgrerun.record import runs
from pgrerun.site import executed_pages


def notebook(*bundles):
    cells = [
        nbformat.v4.new_code_cell(
            "chart", outputs=[nbformat.v4.new_output("execute_result", bundle, execution_count=1)]
        )
        for bundle in bundles
    ]
    return nbformat.v4.new_notebook(cells=cells)


@pytest.fixture(scope="module")
def executed():
    frame = pd.DataFrame(
        {
            "label": ["one, two", "three"],
            "kind": "measured",
            "value": [1.5, 2.0],
            "low": [1.0, None],
            "high": [2.0, None],
        }
    )
    words = charts.Words("How much?", "So much.", "much", "One and a half, and two.")
    figure = charts.compare(frame, words, charts.Axis("time", "s"))
    plain = charts.mimebundle(
        alt.Chart(frame).mark_point().properties(description="A chart of a reader's own.").to_dict()
    )
    bundle = figure._repr_mimebundle_()
    # as it comes back from a file
    return nbformat.reads(
        nbformat.writes(notebook(bundle, plain, {"text/markdown": "It is **1.5**."})), as_version=4
    )


def test_a_page_comes_back_whole_from_a_part_of_its_size(executed):
    kept = executed_pages.compact(executed)
    assert len(nbformat.writes(kept)) < 0.6 * len(nbformat.writes(executed))
    again = executed_pages.redrawn(nbformat.reads(nbformat.writes(kept), as_version=4))
    for before, after in zip(executed.cells, again.cells):
        before, after = before.outputs[0].data, after.outputs[0].data
        assert {key: value for key, value in before.items() if key != "text/html"} == {
            k: v for k, v in after.items() if k != "text/html"
        }
        # keys come back in another order; question, caption and picture don't
        assert (
            before.get("text/html", "").partition("<script")[0]
            == after.get("text/html", "").partition("<script")[0]
        )


def test_chart_data_is_what_the_page_offers(executed):
    data = executed_pages.chart_data(executed)
    assert list(data) == ["much.csv"]  # a chart without columns has no download on the page either
    rows = list(csv.reader(io.StringIO(data["much.csv"])))
    assert rows == [
        ["case", "provenance", "time (s)", "from", "to"],
        ["one, two", "this run", "1.5", "1.0", "2.0"],
        ["three", "this run", "2.0", "", ""],
    ]


def test_archives_of_the_same_files_are_the_same(tmp_path):
    for name in ("a.zip", "b.zip"):
        executed_pages.archive(tmp_path / name, {"x/one.csv": "1\n", "x/two": b"\0"})
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "a.zip").read("x/two") == b"\0"


# ---- pages of strangers

TABLE = '<div class="result-table" role="region"><table><tr><td>1</td></tr></table></div>'


@pytest.mark.parametrize(
    "bundle",
    [
        {"text/markdown": "It is **1.5** \\[1, 2\\] on shared\\_buffers; see [that](#lai-001)."},
        {"text/html": TABLE, "text/plain": "<script>"},
        {charts.VEGALITE_MIME: {"data": {"values": [{"x": 1}]}, "usermeta": {"name": "x"}}},
    ],
)
def test_what_our_chapters_put_out_is_plain(bundle):
    assert executed_pages.is_plain(notebook(bundle))


@pytest.mark.parametrize(
    "bundle",
    [
        {"text/markdown": "It is <b>so</b>."},
        {"text/markdown": "\\\\<script>"},
        {"text/markdown": "```{raw} html\n:file: /etc/passwd\n```"},
        {"text/markdown": ":::{include} /etc/passwd\n:::"},
        {"text/markdown": "{doc}`index`"},
        {"text/markdown": "![x](http://a.test/x.png)"},
        {"text/markdown": "[x](javascript:alert)"},
        {"text/markdown": "[x]\n\n[x]: http://a.test"},
        {"text/html": TABLE + "<script>1</script>"},
        {"text/html": TABLE.replace("<td>", '<td onclick="x">')},
        {"text/html": TABLE + "<!--><script>1</script>-->"},
        {"text/html": '<img src="http://a.test/x.png">'},
        {"image/svg+xml": "<svg/>"},
        {"text/latex": "x"},
        {charts.VEGALITE_MIME: {"data": {"url": "file:///etc/passwd"}}},
        {charts.VEGALITE_MIME: {"layer": [{"encoding": {"href": {"value": "javascript:x"}}}]}},
        {charts.VEGALITE_MIME: {"usermeta": {"embedOptions": {"patch": "x"}}}},
    ],
)
def test_what_could_fetch_or_run_something_is_not_plain(bundle):
    assert not executed_pages.is_plain(notebook(bundle))


def test_an_error_or_a_way_to_show_an_output_is_not_plain():
    page = notebook({"text/plain": "1"})
    page.cells[0].outputs[0].metadata = {"mystnb": {}}
    assert not executed_pages.is_plain(page)
    page.cells[0].outputs = [nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]
    assert not executed_pages.is_plain(page)


ROOT = runs.CHECKOUT.parent.parent
MADE_HERE = [
    *(runs.CHECKOUT / "published").glob(f"*/{executed_pages.PAGE}"),
    *(ROOT / "book" / "results").glob("*.ipynb"),  # those of `make book`, where it ran
]


@pytest.mark.parametrize("page", MADE_HERE, ids=lambda page: str(page.relative_to(ROOT)))
def test_our_own_pages_are_plain(page):
    """Otherwise nobody's own run could be shown as a page: its sentences would count as a
    stranger's markup."""
    executed = executed_pages.compact(nbformat.read(page, as_version=4))
    assert [
        output
        for cell in executed.cells
        for output in cell.get("outputs", [])
        if not executed_pages.is_plain(nbformat.v4.new_notebook(cells=[shown(output)]))
    ] == []


def shown(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(outputs=[output])
