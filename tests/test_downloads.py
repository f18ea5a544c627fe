"""What a page offers to take along: the data that its charts draw, and archives."""

import csv
import io
import zipfile

import altair as alt
import nbformat
import pandas as pd
import pytest

from pgrerun.page import charts
from pgrerun.site import downloads


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
    plain = {charts.VEGALITE_MIME: alt.Chart(frame).mark_point().to_dict()}
    bundle = figure._repr_mimebundle_()
    # as it comes back from a file
    return nbformat.reads(
        nbformat.writes(notebook(bundle, plain, {"text/markdown": "It is **1.5**."})), as_version=4
    )


def test_chart_data_is_what_the_page_offers(executed):
    data = downloads.chart_data(executed)
    assert list(data) == ["much.csv"]  # a chart without columns has no download on the page either
    rows = list(csv.reader(io.StringIO(data["much.csv"])))
    assert rows == [
        ["case", "provenance", "time (s)", "from", "to"],
        ["one, two", "this run", "1.5", "1.0", "2.0"],
        ["three", "this run", "2.0", "", ""],
    ]


def test_archives_of_the_same_files_are_the_same(tmp_path):
    for name in ("a.zip", "b.zip"):
        downloads.archive(tmp_path / name, {"x/one.csv": "1\n", "x/two": b"\0"})
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "a.zip").read("x/two") == b"\0"
