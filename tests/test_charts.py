"""The charts' specifications, marks and outputs; how they look is tested in tests/site."""

import base64
import functools
import itertools
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import altair as alt
import nbformat
import pandas as pd
import pytest
import vl_convert
from nbformat.v4 import new_code_cell, new_notebook, new_output

from pgrerun.errors import BookError
from pgrerun.page import charts
from pgrerun.page.charts import figure as figure_module
from pgrerun.record import statistics

TALLEST = 700
STATIC = Path(__file__).parents[1] / "book" / "_static"
WORDS = {"question": "Which is faster?", "caption": "A caption.", "description": "Two rows."}
SAID = charts.Words(**WORDS)


def ladder(panel: bool = False, own_scales: bool = False, **changes) -> charts.Figure:
    frame = pd.DataFrame(
        {
            "label": [
                "first step",
                "first step",
                "a second step with a longer name",
                "a second step with a longer name",
            ],
            "kind": ["printed", "measured", "printed", "measured"],
            "value": [1.0, 1.1, 0.7, 0.8],
            "low": [None, 1.0, None, 0.75],
            "high": [None, 1.2, None, 0.86],
        }
    )
    if panel:
        frame["panel"] = frame["kind"]
    return charts.compare(
        frame,
        charts.Words(**WORDS | changes),
        charts.Axis("relative throughput"),
        reference=charts.Reference(1, "step one"),
        own_scales=own_scales,
    )


def marks_of(node, kind: str) -> list[dict]:
    """The parts of a specification that are drawn as `kind`, at any depth."""
    if isinstance(node, list):
        return [found for one in node for found in marks_of(one, kind)]
    if not isinstance(node, dict):
        return []
    mark = node.get("mark", {})
    own = [node] if isinstance(mark, dict) and mark.get("type") == kind else []
    return own + [found for one in node.values() for found in marks_of(one, kind)]


def pages() -> charts.Figure:
    frame = pd.DataFrame(
        [
            {"label": label, "kind": kind, "part": page, "value": value, "panel": operation}
            for operation in ("read", "written")
            for label, kind, value in (
                ("bound", "printed", 1.0),
                ("now", "measured", 1.5),
                ("model", "simulated", 1.3),
            )
            for page in ("accounts: heap", "accounts: index leaf")
        ]
    )
    return charts.stacked(frame, SAID, charts.Axis("pages"), reference=charts.Reference(2, "least"))


def repetitions() -> charts.Figure:
    frame = pd.DataFrame(
        {"label": ["a"] * 5 + ["b"] * 5, "block": [*range(5)] * 2, "value": [*range(1, 11)]}
    )
    intervals = pd.DataFrame({"label": ["a", "b"], "value": [3, 8], "low": [1, 6], "high": [5, 10]})
    return charts.observations(frame, SAID, charts.Axis("latency", "ms"), intervals=intervals)


def sweep(series: tuple[str, ...] = ("",)) -> charts.Figure:
    frame = pd.DataFrame(
        [
            {
                "x": x,
                "value": factor * x,
                "kind": kind,
                "low": 0.9 * x,
                "high": 1.1 * x,
                "series": one,
            }
            for one in series
            for kind, factor in (("measured", 1.0), ("simulated", 0.8))
            for x in (1, 2, 4)
        ]
    )
    clients = charts.Axis("clients", log=True)
    return charts.lines(frame, SAID, clients, charts.Axis("throughput", "transactions/s"))


def two_pages(rows: list[tuple] | None = None, per_row: int = 5) -> charts.Figure:
    columns = ["page", "line_pointer", "state", "to", "tuple", "old", "heap_only", "entries"]
    frame = pd.DataFrame(
        rows
        or [
            ("before", 1, "normal", 2, "A v1", True, False, 1),
            ("before", 2, "normal", None, "A v2", False, True, 0),
            ("after a prune", 1, "redirect", 2, "", False, False, 1),
            ("after a prune", 2, "normal", None, "A v2", False, True, 0),
            ("after a prune", 3, "dead", None, "", False, False, 1),
            ("after a prune", 4, "unused", None, "", False, False, 0),
        ],
        columns=columns,
    )
    return charts.heap_pages(frame, SAID, per_row=per_row)


def scattered() -> charts.Figure:
    frame = pd.DataFrame(
        {"label": list("abc"), "x": [1, 10, 50], "value": [2, 9, 500], "kind": "measured"}
    )
    return charts.scatter(frame, SAID, charts.Axis("pages"), charts.Axis("time", "s"), most=1)


def joined() -> charts.Figure:
    frame = pd.DataFrame(
        {
            "label": ["a", "a", "b", "b"],
            "series": ["with", "without"] * 2,
            "value": [1.0, 2.0, 3.0, 2.5],
            "kind": "printed",
        }
    )
    return charts.compare(frame, SAID, charts.Axis("throughput", "transactions/s"), joined=True)


FEW = pd.DataFrame(
    {
        "label": ["a", "a"],
        "kind": ["printed", "measured"],
        "value": [1.0, 2.0],
        "low": [None, 1.5],
        "high": [None, 2.5],
    }
)

FIGURES = [
    ladder,
    pages,
    repetitions,
    sweep,
    lambda: sweep(("read", "write")),
    lambda: ladder(panel=True),
    two_pages,
    lambda: plan_grid(),
    scattered,
    joined,
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
    asked = figure()._repr_mimebundle_({"image/png"})
    assert base64.b64decode(asked["image/png"]).startswith(b"\x89PNG")
    assert all(word in outputs["text/plain"] for word in WORDS.values())
    assert outputs[charts.VEGALITE_MIME]["description"] == WORDS["description"]
    names = (outputs[charts.VEGALITE_MIME]["$schema"], "http://www.w3.org/2000/svg")
    assert "http" not in functools.reduce(
        lambda s, name: s.replace(name, ""), names, outputs["text/html"]
    )


@pytest.mark.parametrize("figure", FIGURES)
def test_every_column_of_the_table_is_in_the_data(figure):
    spec = figure().spec()
    (rows,) = spec["datasets"].values()
    columns = spec["usermeta"]["columns"]
    assert columns and all(any(column["field"] in row for row in rows) for column in columns)
    assert "config" not in spec  # the theme is the page's


def test_the_table_shows_labels_as_they_were_given():
    (rows,) = ladder().spec()["datasets"].values()
    assert rows[-1]["label"] == "a second step with a longer name"
    assert "\n" in rows[-1]["lines"]


def test_legend_names_each_kind_once_and_only_those_present():
    assert sorted(
        w for w in words(svg(ladder())) if w in {mark.title for mark in charts.MARKS.values()}
    ) == [
        "printed",
        "this run",
    ]
    assert words(svg(sweep(("read", "write")))).count("this run") == 1


def test_bars_add_up_and_the_bound_is_named_in_each_panel():
    shown = words(svg(pages()))
    assert [shown.count(total) for total in ("2.6", "3")] == [4, 4]  # each with its halo
    assert shown.count("least") == 2
    assert [shown.count(panel) for panel in ("read", "written")] == [1, 1]


@pytest.mark.parametrize(("whole", "shown"), [(1.0, 0), (2.0, 4)])
def test_bars_of_shares_have_no_totals(whole, shown):
    rows = [
        charts.row(label, "measured", share * whole, part=part)
        for label, first in (("a", 0.3), ("b", 0.45))
        for part, share in (("run", first), ("wait", 1 - first))
    ]
    drawn = words(svg(charts.stacked(rows, SAID, charts.Axis("share of the time"))))
    assert drawn.count("2") == shown  # of two bars, each with its halo


def test_a_line_is_broken_between_its_pieces():
    frame = pd.DataFrame({"x": [1, 2, 3, 4], "value": [1, 2, 3, 4], "kind": "measured"})

    def paths(frame: pd.DataFrame) -> int:
        drawn = charts.lines(frame, SAID, charts.Axis("time", "s"), charts.Axis("throughput"))
        return charts.svg(drawn).count("mark-line")

    assert [paths(frame), paths(frame.assign(piece=[0, 0, 1, 1]))] == [1, 2]


def test_no_repetition_is_left_out():
    (rows,) = repetitions().spec()["datasets"].values()
    assert sum(row["row"] == "repetition" for row in rows) == 10
    assert (
        charts.svg(repetitions()).count('aria-roledescription="point"') == 10 + 2
    )  # the two medians


def test_repetitions_of_two_runs_keep_lanes_and_marks_of_their_own():
    frame = pd.DataFrame(
        {"label": ["a"] * 4, "kind": ["published"] * 2 + ["measured"] * 2, "value": [1, 2, 3, 4]}
    )
    intervals = pd.DataFrame(
        {
            "label": ["a", "a"],
            "kind": ["published", "measured"],
            "value": [1.5, 3.5],
            "low": [1, 3],
            "high": [2, 4],
        }
    )
    figure = charts.observations(frame, SAID, charts.Axis("latency", "ms"), intervals=intervals)
    (rows,) = figure.spec()["datasets"].values()
    assert len({row["lane"] for row in rows}) == 4
    picture = svg(figure)
    assert {"published run", "this run"} < set(words(picture))
    assert all(charts.MARKS[kind].colour in picture for kind in ("published", "measured"))


def test_series_are_named_at_the_end_of_the_readers_own_line():
    (rows,) = sweep(("read", "write")).spec()["datasets"].values()
    named = [(row["ending"], row["x"], row["provenance"]) for row in rows if row.get("named")]
    assert named == [("read, write", 4, "this run")]  # of lines that end in one point


def tooltips(spec) -> list[dict]:
    """Every tooltip of a specification."""
    if isinstance(spec, list):
        return [one for part in spec for one in tooltips(part)]
    if not isinstance(spec, dict):
        return []
    own = spec.get("tooltip", [])
    inner = [one for key, part in spec.items() if key != "datasets" for one in tooltips(part)]
    return [*(own if isinstance(own, list) else [own]), *inner]


@pytest.mark.parametrize("figure", FIGURES)
def test_a_tooltip_has_no_raw_field_names(figure):
    for one in tooltips(figure().spec()):
        assert one["title"] and one["title"] not in ("label", "series", "provenance", "value", "x")
        assert "_" not in one["title"]


@pytest.mark.parametrize("word", ["value", "Median", "number", "printed value"])
def test_an_axis_names_a_quantity(word):
    with pytest.raises(BookError, match="name the quantity"):
        charts.Axis(word)


@pytest.mark.parametrize("kinds", [["measured"], ["printed", "published", "measured"]])
@pytest.mark.parametrize("cases", [3, 26])
def test_no_chart_of_many_cases_is_too_tall(kinds, cases):
    rows = [charts.row(f"query {n}", kind, n + 1.0) for n in range(cases) for kind in kinds]
    assert height(charts.compare(rows, SAID, charts.Axis("time", "s"))) <= TALLEST


def height(figure: charts.Figure) -> float:
    return float(re.search(r'height="([0-9.]+)"', charts.svg(figure))[1])


def test_a_caption_begins_with_the_result_and_its_number():
    assert joined().caption.startswith(
        "As printed, throughput ranged from 1 transactions/s (a) to 3 transactions/s (b)."
    )
    words = charts.Words("Which?", "A caption.", result=lambda frame: f"All {len(frame)}.")
    rows = [charts.row("a", "measured", 2.0)]
    assert charts.compare(rows, words, charts.Axis("time")).caption == "All 1. A caption."


def test_lines_have_colours_of_their_own_and_the_published_run_stays_grey():
    rows = [
        {"x": x, "value": x + n, "kind": kind, "series": name}
        for kind in ("published", "measured")
        for n, name in enumerate("ab")
        for x in (1, 2)
    ]
    drawn = charts.lines(rows, SAID, charts.Axis("clients"), charts.Axis("time", "s"))
    (data,) = drawn.spec()["datasets"].values()
    hues = {(row["kind"], row["series"]): row["hue"] for row in data}
    assert hues["measured", "a"] != hues["measured", "b"]
    assert hues["published", "a"] == hues["published", "b"] == charts.MARKS["published"].colour


def test_panels_share_an_axis_unless_they_have_units_of_their_own():
    title = "relative throughput"
    assert words(svg(ladder(panel=True))).count(title) == 1
    assert words(svg(ladder(panel=True, own_scales=True))).count(title) == 2


def test_kinds_have_marks_of_their_own():
    for a, b in itertools.combinations(charts.MARKS.values(), 2):
        assert a.colour != b.colour and a.title != b.title
        # only the two kinds of run share a shape; a grey one and a coloured one
        runs = {title.split(",")[0] for title in (a.title, b.title)} == {
            "published run",
            "this run",
        }
        assert (a.shape, a.fill, a.dash) != (b.shape, b.fill, b.dash) or runs


def test_the_site_shows_the_same_marks_as_the_charts():
    for kind, mark in charts.MARKS.items():
        assert mark.colour in (STATIC / f"mark-{kind}.svg").read_text()


def test_altair_and_the_bundled_vega_are_of_one_version():
    assert vl_convert.get_vegalite_versions()[-1] == charts.VEGALITE_VERSION
    assert vl_convert.get_vega_version().split(".")[0] == alt.VEGA_VERSION
    assert vl_convert.get_vega_embed_version().split(".")[0] == alt.VEGAEMBED_VERSION


def test_words_cannot_end_the_script_element_or_the_attribute():
    outputs = ladder(
        caption='</script><img src=x onerror="boom()">', description='"><b>'
    )._repr_mimebundle_()
    html = outputs["text/html"]
    assert html.count("</script>") == 1 and "<b>" not in html and "<img src=x" not in html
    spec = re.search(
        r'<script type="application/json" class="vl-spec">(.*?)</script>', html, re.DOTALL
    )[1]
    assert "</script>" in json.loads(spec)["usermeta"]["caption"]


@pytest.mark.parametrize("word", ["question", "caption"])
def test_a_chart_without_words_is_refused(word):
    with pytest.raises(BookError, match=word):
        ladder(**{word: " "})


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
            lambda words: charts.observations(FEW, words, charts.Axis("x"), intervals=FEW[1:]),
            "This run: a 2.0 [1.5, 2.5].",
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


def test_a_chart_s_own_description_wins():
    figure = charts.compare(FEW, charts.Words("Q?", "C.", description="Mine."), charts.Axis("x"))
    assert figure.description == "Mine."


def test_a_plain_altair_chart_is_drawn_offline_once_enabled_and_described():
    chart = alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x:Q")
    before = alt.renderers.active
    try:
        charts.enable()
        outputs = chart.properties(description="One point.")._repr_mimebundle_()
        assert 'class="vl-chart"' in outputs["text/html"] and "cdn" not in outputs["text/html"]
        with pytest.raises(BookError, match="description"):
            chart._repr_mimebundle_()
    finally:
        alt.renderers.enable(before)


@pytest.mark.parametrize(
    "frame, complaint",
    [
        (pd.DataFrame({"label": ["a"], "value": [1]}), "lacks kind"),
        (
            pd.DataFrame({"label": ["a"], "value": [1], "kind": ["guessed"]}),
            "unknown kind of number: guessed",
        ),
        (pd.DataFrame({"label": [], "value": [], "kind": []}), "empty"),
    ],
)
def test_a_frame_that_cannot_be_drawn_is_refused(frame, complaint):
    with pytest.raises(ValueError, match=complaint):
        charts.compare(frame, SAID, charts.Axis("x"))


def test_a_chart_is_drawn_from_rows_and_frames_in_the_order_asked_for():
    measured = pd.DataFrame([charts.row("b", "measured", statistics.Interval(2.0, 1.0, 3.0, 9))])
    parts = [*charts.rows({"a": 1.0, "b": 4.0}, "printed"), measured]
    rows = charts.together(parts, order=["b", "a"])
    assert list(rows["label"]) == ["b", "b", "a"]
    assert list(rows["kind"]) == ["printed", "measured", "printed"]
    assert rows.loc[1, ["low", "high"]].tolist() == [1.0, 3.0] and rows["low"].isna().sum() == 2
    drawn = charts.compare(parts, SAID, charts.Axis("ratio"))
    assert drawn.spec() == charts.compare(charts.together(parts), SAID, charts.Axis("ratio")).spec()


def test_points_of_a_line_stand_at_their_x():
    points = charts.points(pd.Series({1: 10.0, 2: 20.0}), "simulated", series="model")
    one = {"x": 1, "kind": "simulated", "value": 10.0, "series": "model"}
    assert points == [one, one | {"x": 2, "value": 20.0}]


def test_units_stand_in_the_axis_title():
    assert "latency (ms)" in words(svg(repetitions()))
    assert "throughput (transactions/s)" in words(svg(sweep()))


def page_rows(figure: charts.Figure) -> pd.DataFrame:
    (rows,) = figure.spec()["datasets"].values()
    return pd.DataFrame(rows)


def test_a_page_shows_what_each_line_pointer_is_and_whose_tuple():
    shown = words(svg(two_pages()))
    assert {"current version", "replaced version", "redirect", "dead", "unused"} <= set(shown)
    assert shown.count("2  A v2") == 2 and "1  A v1" in shown and "3" in shown
    assert {"before", "after aprune"} <= set(shown)  # the long title on two lines


def test_a_legend_names_only_the_states_that_occur():
    shown = words(svg(two_pages([("p", 1, "normal", None, "A", False, False, 1)])))
    assert "current version" in shown and not {
        "redirect",
        "dead",
        "unused",
        "replaced version",
    } & set(shown)


def test_arrows_lead_from_a_version_to_the_middle_of_the_next_on_its_own_page():
    rows = page_rows(two_pages()).set_index(["page", "line_pointer"])
    linked = rows[rows["to"].notna()]
    assert len(linked) == 2
    for (page, _), row in linked.iterrows():
        assert row["target"] == pytest.approx(rows.loc[(page, row["to"]), "middle"])
        assert row["right"] < row["lane"]
    assert rows["target"].isna().sum() == 4


def test_a_heap_only_tuple_is_dashed_and_an_index_entry_is_a_triangle():
    dashed = [
        layer["mark"]["strokeDash"]
        for layer in two_pages().spec()["layer"]
        if layer["mark"]["type"] == "rect"
    ]
    assert dashed == [[1, 0], [4, 2.5]]
    rows = page_rows(two_pages())
    drawn = rows.loc[rows["entries"] > 0]
    assert len(drawn) == 3 and (drawn["pointed"] < drawn["left"]).all()
    # two arrowheads and three entries
    assert charts.svg(two_pages()).count('aria-roledescription="point"') == 5


@pytest.mark.parametrize(
    "frame, complaint",
    [
        (pd.DataFrame({"page": ["p"], "line_pointer": [1], "state": ["normal"]}), "lacks to"),
        (
            pd.DataFrame({"page": ["p"], "line_pointer": [1], "state": ["frozen"], "to": [None]}),
            "unknown state of a line pointer: frozen",
        ),
        (pd.DataFrame({"page": [], "line_pointer": [], "state": [], "to": []}), "empty"),
    ],
)
def test_a_page_that_cannot_be_drawn_is_refused(frame, complaint):
    with pytest.raises(ValueError, match=complaint):
        charts.heap_pages(frame, SAID)


def test_a_page_needs_nothing_but_its_line_pointers():
    frame = pd.DataFrame(
        {
            "page": ["p"] * 2,
            "line_pointer": [1, 2],
            "state": ["redirect", "normal"],
            "to": [2, None],
        }
    )
    assert {"redirect", "current version"} <= set(words(svg(charts.heap_pages(frame, SAID))))


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


def test_keyed_lines_are_named_in_a_legend_and_nowhere_else():
    rows = [
        charts.row("", "measured", value, x=x, series=series, low=value - 0.1, high=value + 0.1)
        for series, more in (("one line", 0), ("another line", 1))
        for x, value in ((1, 1.0 + more), (2, 2.0 + more))
    ]
    frame = pd.DataFrame(rows).drop(columns="label")
    axes = charts.Axis("clients"), charts.Axis("throughput")
    plain, keyed = (charts.lines(frame, SAID, *axes, keyed=keyed) for keyed in (False, True))
    assert "one line" in words(svg(plain)) and "one line" in words(svg(keyed))
    assert not any(row.get("named") for rows in keyed.spec()["datasets"].values() for row in rows)
    layers = [layer["encoding"] for layer in keyed.spec()["layer"] if "color" in layer["encoding"]]
    scales = [layer["color"]["scale"] for layer in layers if layer["color"]["scale"]]
    assert [scale["domain"] for scale in scales] == [["one line", "another line"]]


def test_neighbours_of_one_plan_are_one_rectangle_and_cover_the_grid():
    (rows,) = plan_grid().spec()["datasets"].values()
    cells = pd.DataFrame(rows)
    # the left half; the right half below the corner; its last row, left of the corner; the corner
    assert len(cells) == 4
    assert (
        (cells["right"] - cells["left"]) * (cells["top"] - cells["bottom"])
    ).sum() == pytest.approx(1)
    assert cells.set_index("letter").loc[
        "A", ["left", "right", "least_cost", "most_cost"]
    ].tolist()[2:] == [0, 13]
    assert (
        sorted(set(cells["letter"])) == ["A", "B", "C"]
        and cells.groupby("letter")["first_of_plan"].count().eq(1).all()
    )


def test_each_plan_has_its_letter_once_inside_its_region():
    (rows,) = plan_grid().spec()["datasets"].values()
    cells = pd.DataFrame(rows)
    named = cells[cells["named"].notna()].set_index("letter")
    assert sorted(named.index) == ["A", "B", "C"]
    for letter, place in named.iterrows():
        own = cells[cells["letter"] == letter]
        across = (own["left"] < place["middle_x"]) & (place["middle_x"] < own["right"])
        up = (own["bottom"] < place["middle_y"]) & (place["middle_y"] < own["top"])
        assert (across & up).any()


def test_a_plan_is_spelt_out_only_where_its_region_is_clicked():
    spec = plan_grid().spec()
    tree = spec["layer"][-1]
    assert {"filter": {"param": "region", "empty": False}} in tree["transform"]
    assert spec["params"][0]["name"] == "region" and spec["params"][0]["select"]["fields"] == [
        "letter"
    ]
    shown = words(svg(plan_grid()))
    assert (
        "A: hash join" in shown
        and "Click a region to see its plan." in shown
        and not [word for word in shown if "Seq Scan" in word]
    )


def test_more_plans_than_colours_share_the_last_one():
    points = 4
    figure = plan_grid(
        points, change=lambda f: f.assign(plan=[f"plan {n}" for n in range(points**2)])
    )
    (rows,) = figure.spec()["datasets"].values()
    assert len({row["legend"] for row in rows}) == len(charts.CATEGORIES)
    assert sum(row["letter"] == "+" for row in rows) == points**2 - len(charts.CATEGORIES) + 1


@pytest.mark.parametrize(
    "changes, complaint",
    [
        ({"without": ["cost"]}, "lacks cost"),
        ({"change": lambda f: f.iloc[1:]}, "every point of its grid"),
        ({"change": lambda f: pd.concat([f, f])}, "every point of its grid"),
    ],
)
def test_a_grid_that_cannot_be_drawn_is_refused(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        plan_grid(**changes)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("panel", [False, True])
def test_a_picture_of_its_own_has_the_width_and_the_theme_asked_for(panel, dark):
    figure = ladder(panel=panel)
    narrow, wide = (ET.fromstring(charts.svg(figure, width, dark)) for width in (330, 640))
    for picture, width in ((narrow, 330), (wide, 640)):
        assert width * 0.8 < float(picture.get("width")) < width * 1.35
    colours = {element.get("fill") for element in wide.iter("{http://www.w3.org/2000/svg}text")}
    assert (figure_module.DARK if dark else figure_module.LIGHT)["axis"]["labelColor"] in colours
    assert figure.spec() == ladder(panel=panel).spec()


def painted(node, paint=(), x=0.0, y=0.0):
    """What is seen of a picture, wherever its groups say it: kind, text, paint, place."""
    names = ("fill", "stroke", "stroke-width", "font-family", "font-size", "text-anchor")
    paint = tuple((node.attrib | {"": ""}).get(n, dict(paint).get(n)) for n in names)
    paint = tuple(zip(names, paint))
    moved = re.match(r"translate\((-?[0-9.e-]+),(-?[0-9.e-]+)\)", node.get("transform", ""))
    x, y = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
    colours = [dict(paint)[name] or "none" for name in ("fill", "stroke")]
    if not len(node) and colours != ["none"] * 2 and node.get("opacity") != "0":
        points = node.get("d") != "" and not node.tag.endswith("}g")
        if points:
            yield node.tag, node.text, paint, x, y
    for child in node:
        yield from painted(child, paint, x, y)


def test_an_interval_that_one_pair_leaves_open_is_not_drawn():
    rows = [
        {"label": label, "kind": "measured", "panel": panel, "value": 2.0, "low": low, "high": high}
        for label, panel, low, high in (
            ("one pair", "few", 0.0, float("inf")),
            ("many", "enough", 1.5, 2.5),
            ("again", "enough", 1.6, float("inf")),
        )
    ]
    alone = charts.compare(rows[:1], SAID, charts.Axis("time", "s"))
    assert "low" not in json.dumps(alone.spec()) and "\u221e" not in alone.description
    own = charts.compare(rows, SAID, charts.Axis("time", "s"), own_scales=True)
    [drawn] = own.spec()["datasets"].values()
    ends = {row["label"]: (row["low"], row["high"]) for row in drawn}
    # a panel with a scale of its own has something to make it of
    assert ends == {"one pair": (2, 2), "many": (1.5, 2.5), "again": (None, None)}


def test_of_a_long_line_some_points_are_read_aloud_and_all_are_drawn():
    measured = charts.points({float(x): x**2 for x in range(100)}, "measured", series="many")
    printed = charts.points({3.0: 9.0, 4.0: 16.0}, "printed", series="few")
    axes = charts.Axis("clients"), charts.Axis("throughput")
    figure = charts.lines([*measured, *printed], replace(SAID, description=""), *axes)
    spoken = figure.description
    assert spoken.count("many at") == 8 and spoken.count("few at") == 2
    assert "many at 0 0" in spoken and "many at 99 9,801" in spoken
    assert spoken.endswith("Of longer lines 8 points are told.")
    (rows,) = figure.spec()["datasets"].values()
    assert len(rows) == 102


def test_numbers_of_a_chart_have_nine_digits():
    measured = charts.points({0.1 + 0.2: 1 / 3, 2.0: 2**53 / 10**6}, "measured")
    axes = charts.Axis("clients"), charts.Axis("throughput")
    (rows,) = charts.lines(measured, SAID, *axes).spec()["datasets"].values()
    assert [(row["x"], row["value"]) for row in rows] == [(0.3, 0.333333333), (2, 9007199250)]
