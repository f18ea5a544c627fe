"""The charts' specifications, marks and outputs; how they look is tested in tests/site."""

import functools
import json
import re
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import altair as alt
import nbformat
import pandas as pd
import pytest
import vl_convert
from nbformat.v4 import new_code_cell, new_notebook, new_output

from pgrerun.errors import BookError
from pgrerun.page import charts

WORDS = {"question": "Which is faster?", "caption": "A caption.", "description": "Two rows."}
SAID = charts.Words(**WORDS)


FEW = pd.DataFrame(
    {
        "label": ["a", "a"],
        "kind": ["printed", "measured"],
        "value": [1.0, 2.0],
        "low": [None, 1.5],
        "high": [None, 2.5],
    }
)
JOINED = pd.DataFrame(
    {
        "label": ["a", "a", "b", "b"],
        "series": ["with", "without"] * 2,
        "value": [1.0, 2.0, 3.0, 2.5],
        "kind": "printed",
    }
)


def compared(frame: pd.DataFrame = FEW, **changes) -> charts.Figure:
    words, step = charts.Words(**WORDS | changes), charts.Reference(1, "step one")
    return charts.compare(frame, words, charts.Axis("relative throughput"), reference=step)


def repetitions() -> charts.Figure:
    frame = pd.DataFrame(
        {"label": ["a"] * 5 + ["b"] * 5, "block": [*range(5)] * 2, "value": [*range(1, 11)]}
    )
    return charts.observations(frame.assign(kind="measured"), SAID, charts.Axis("latency", "ms"))


def two_pages() -> charts.Figure:
    columns = ["page", "line_pointer", "state", "to", "tuple", "old", "heap_only", "entries"]
    rows = [
        ("before", 1, "normal", 2, "A v1", True, False, 1),
        ("before", 2, "normal", None, "A v2", False, True, 0),
        ("after a prune", 1, "redirect", 2, "", False, False, 1),
        ("after a prune", 2, "normal", None, "A v2", False, True, 0),
        ("after a prune", 3, "dead", None, "", False, False, 1),
        ("after a prune", 4, "unused", None, "", False, False, 0),
    ]
    return charts.heap_pages(pd.DataFrame(rows, columns=columns), SAID)


def line_pointers(**changes) -> charts.Figure:
    columns = {"page": ["p", "p"], "line_pointer": [1, 2], "state": ["redirect", "normal"]}
    columns |= {"to": [2, None], "tuple": "", "old": False, "heap_only": False, "entries": 0}
    return charts.heap_pages(pd.DataFrame(columns | changes), SAID)


FIGURES = [
    compared,
    lambda: compared(FEW.assign(panel=FEW["kind"])),
    lambda: charts.compare(JOINED, SAID, charts.Axis("throughput", "transactions/s"), joined=True),
    lambda: charts.stacked(
        FEW.assign(part="heap", panel="read"),
        SAID,
        charts.Axis("pages"),
        reference=charts.Reference(2, "least"),
    ),
    repetitions,
    lambda: charts.lines(
        FEW.assign(x=[8, 8], series="read"),
        SAID,
        charts.Axis("clients", log=True),
        charts.Axis("throughput", "transactions/s"),
    ),
    two_pages,
    line_pointers,
    lambda: plan_grid(),
    lambda: charts.scatter(
        pd.DataFrame({"label": list("ab"), "x": [1, 50], "value": [2, 500], "kind": "measured"}),
        SAID,
        charts.Axis("pages"),
        charts.Axis("time", "s"),
        most=1,
    ),
]


def svg(figure: charts.Figure) -> str:
    outputs = figure._repr_mimebundle_()
    source = re.search(r"src='data:image/svg\+xml,([^']+)'", outputs["text/html"])
    return unquote(source[1])


def words(picture: str) -> list[str]:
    root = ET.fromstring(picture)
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("figure", FIGURES)
def test_outputs_are_complete_and_valid_in_a_notebook(figure):
    outputs = figure()._repr_mimebundle_()
    # Altair's own type, application/vnd.vegalite.v6.json, stops papermill in this very check.
    nbformat.validate(
        new_notebook(cells=[new_code_cell("", outputs=[new_output("display_data", data=outputs)])])
    )
    assert set(outputs) == {charts.VEGALITE_MIME, "text/html", "text/plain"}
    assert all(word in outputs["text/plain"] for word in WORDS.values())
    assert outputs[charts.VEGALITE_MIME]["description"] == WORDS["description"]
    names = (outputs[charts.VEGALITE_MIME]["$schema"], "http://www.w3.org/2000/svg")
    assert "http" not in functools.reduce(
        lambda s, name: s.replace(name, ""), names, outputs["text/html"]
    )


@pytest.mark.parametrize("figure", FIGURES)
def test_every_column_of_the_table_is_in_the_data_and_nothing_is_titled_by_a_raw_field(figure):
    spec = figure().spec()
    (rows,) = spec.pop("datasets").values()
    columns = spec.pop("usermeta")["columns"]
    assert columns and all(any(column["field"] in row for row in rows) for column in columns)
    assert "config" not in spec  # the theme is the page's
    raw = re.compile(r'"title": "(label|series|provenance|value|x|[^" ]*_[^" ]*)"')
    assert not raw.search(json.dumps(spec))


def test_no_repetition_is_left_out():
    (rows,) = repetitions().spec()["datasets"].values()
    assert sum(row["row"] == "repetition" for row in rows) == 10


@pytest.mark.parametrize("word", ["value", "Median", "number", "printed value"])
def test_an_axis_names_a_quantity(word):
    with pytest.raises(BookError, match="name the quantity"):
        charts.Axis(word)


def test_altair_and_the_bundled_vega_are_of_one_version():
    bundled = vl_convert.get_vega_version(), vl_convert.get_vega_embed_version()
    assert vl_convert.get_vegalite_versions()[-1] == charts.VEGALITE_VERSION
    assert [one.split(".")[0] for one in bundled] == [alt.VEGA_VERSION, alt.VEGAEMBED_VERSION]


def test_words_cannot_end_the_script_element_or_the_attribute():
    outputs = compared(
        caption='</script><img src=x onerror="boom()">', description='"><b>'
    )._repr_mimebundle_()
    html = outputs["text/html"]
    assert html.count("</script>") == 1 and "<b>" not in html and "<img src=x" not in html
    spec = re.search(
        r'<script type="application/json" class="vl-spec">(.*?)</script>', html, re.DOTALL
    )[1]
    assert "</script>" in json.loads(spec)["usermeta"]["caption"]


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (
            lambda words: charts.compare(FEW, words, charts.Axis("x")),
            "Printed: a 1. This run: a 2.0 [1.5, 2.5].",
        ),
        (
            lambda words: charts.stacked(FEW.assign(part="heap"), words, charts.Axis("x")),
            "a, heap 2",
        ),
        (
            lambda words: charts.lines(
                FEW.assign(x=[8, 8], series="s"), words, charts.Axis("x"), charts.Axis("y")
            ),
            "Printed: s at 8 1. This run: s at 8 2.0 [1.5, 2.5].",
        ),
        (
            lambda words: charts.flame(
                pd.DataFrame({"stack": ["a;b", "a"], "value": [3, 1], "group": ["B", "A"]}),
                words,
                charts.Axis("of all"),
            ),
            "Share of each part: B 75 %, A 25 %.",
        ),
    ],
)
def test_a_chart_is_read_aloud_from_its_data(figure, expected):
    assert expected in figure(charts.Words("Q?", "C.")).description


def test_a_page_shows_what_each_line_pointer_is_and_whose_tuple():
    shown = words(svg(two_pages()))
    assert {"current version", "replaced version", "redirect", "dead", "unused"} <= set(shown)
    assert shown.count("2  A v2") == 2 and "1  A v1" in shown and "3" in shown
    assert not {"dead", "unused"} & set(words(svg(line_pointers())))


def plan_grid(points: int = 4, **changes) -> charts.Figure:
    """A grid whose left half takes one plan and whose right half another, but for one corner."""
    at = [((n + 0.5) / points) ** 2 for n in range(points)]
    rows = [
        {
            "x": x,
            "y": y,
            "cost": 10 * i + j,
            "title": "hash join" if i < points // 2 else "nested loop",
            "plan": "Hash Join\n\u2003Seq Scan" if i < points // 2 else "Nested Loop",
        }
        for i, x in enumerate(at)
        for j, y in enumerate(at)
    ]
    rows[-1] |= {"plan": "Merge Join", "title": "merge join"}
    frame = pd.DataFrame(rows).drop(columns=changes.pop("without", []))
    return charts.plan_diagram(
        changes.pop("change", lambda f: f)(frame),
        SAID,
        charts.Axis("selectivity of a"),
        charts.Axis("selectivity of b"),
    )


def test_neighbours_of_one_plan_are_one_rectangle_and_cover_the_grid():
    (rows,) = plan_grid().spec()["datasets"].values()
    cells = pd.DataFrame(rows)
    # the left half; the right half below the corner; its last row, left of the corner; the corner
    assert len(cells) == 4 and sorted(set(cells["letter"])) == ["A", "B", "C"]
    area = (cells["right"] - cells["left"]) * (cells["top"] - cells["bottom"])
    assert area.sum() == pytest.approx(1)
    left_half = cells.set_index("letter").loc["A"]
    assert (left_half["least_cost"], left_half["most_cost"]) == (0, 13)


@pytest.mark.parametrize(
    ("draw", "complaint"),
    [
        (lambda: compared(question=" "), "question"),
        (lambda: compared(caption=" "), "caption"),
        (lambda: compared(FEW.drop(columns="value")), "lacks value"),
        (lambda: compared(FEW.assign(kind="guessed")), "unknown kind of number: guessed"),
        (lambda: compared(FEW[:0]), "empty"),
        (lambda: line_pointers(state="frozen"), "unknown state of a line pointer: frozen"),
        (lambda: line_pointers(page=[], line_pointer=[], state=[], to=[]), "empty"),
        (lambda: plan_grid(without=["cost"]), "lacks cost"),
        (lambda: plan_grid(change=lambda f: f.iloc[1:]), "every point of its grid"),
        (lambda: plan_grid(change=lambda f: pd.concat([f, f])), "every point of its grid"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, complaint):
    with pytest.raises((BookError, ValueError), match=complaint):
        draw()


def test_an_interval_that_one_pair_leaves_open_is_not_drawn():
    rows = pd.DataFrame(
        {"label": label, "kind": "measured", "panel": panel, "value": 2.0, "low": low, "high": high}
        for label, panel, low, high in (
            ("one pair", "few", 0.0, float("inf")),
            ("many", "enough", 1.5, 2.5),
            ("again", "enough", 1.6, float("inf")),
        )
    )
    alone = charts.compare(rows[:1], SAID, charts.Axis("time", "s"))
    assert "low" not in json.dumps(alone.spec()) and "\u221e" not in alone.description
    own = charts.compare(rows, SAID, charts.Axis("time", "s"), own_scales=True)
    [drawn] = own.spec()["datasets"].values()
    ends = {row["label"]: (row["low"], row["high"]) for row in drawn}
    # a panel with a scale of its own has something to make it of
    assert ends == {"one pair": (2, 2), "many": (1.5, 2.5), "again": (None, None)}
