"""What a page offers to take along: the data that its charts draw, and archives."""

import nbformat
import pandas as pd

from pgrerun.page import charts
from pgrerun.site import downloads


def test_chart_data_is_what_the_page_offers():
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
    drawn = charts.compare(frame, words, charts.Axis("time", "s"))._repr_mimebundle_()
    plain = {"text/markdown": "It is **1.5**."}
    cells = [
        nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", bundle)])
        for bundle in (drawn, plain)
    ]
    # as it comes back from a file
    notebook = nbformat.v4.new_notebook(cells=cells)
    read = nbformat.reads(nbformat.writes(notebook), as_version=4)
    [(name, text)] = downloads.chart_data(read).items()
    assert name == "much.csv" and text.splitlines() == [
        "case,provenance,time (s),from,to",
        '"one, two",this run,1.5,1.0,2.0',
        "three,this run,2.0,,",
    ]
