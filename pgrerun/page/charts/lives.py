"""What became of claims from release to release: a row is a claim's life."""

import math

import altair as alt
import pandas as pd

from pgrerun.page.charts import encodings
from pgrerun.page.charts.figure import VERDICTS, Figure, Words, figure_of

_ROW = 13  # pixels
_MANY = 40  # rows from which on the second half stands beside the first, lest it be too tall


def lives(frame: pd.DataFrame, words: Words) -> Figure:
    """Squares in the colour of a verdict, a row for each claim and a column for each release.

    `frame` has a row for each claim on a release, in the order of rows and columns: `claim` (its
    id), `says`, `document`, `release` and `word`. ValueError if a column is missing.
    """
    needed = ["claim", "says", "document", "release", "word"]
    encodings.require(frame, needed)
    rows = frame[needed].reset_index(drop=True)
    known = [word for word in VERDICTS if word in set(rows["word"])]
    colours = alt.Scale(domain=known, range=[VERDICTS[word] for word in known])
    claims, releases = (list(dict.fromkeys(rows[name])) for name in ("claim", "release"))
    titles = {"claim": "claim", "says": "what it says", "document": "document"}
    titles |= {"release": "PostgreSQL", "word": "verdict"}
    base = alt.Chart().encode(
        x=alt.X(
            "release:N",
            sort=releases,
            title="PostgreSQL",
            axis=alt.Axis(orient="top", labelAngle=0),
        ),
        y=alt.Y("claim:N", sort=claims, title=None, axis=alt.Axis(labelOverlap=False)),
        tooltip=[alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()],
    )
    squares = base.mark_rect(style="apart").encode(
        color=alt.Color(
            "word:N", scale=colours, title="verdict", legend=encodings.legend("bottom", 4)
        )
    )
    chart = _in_halves(squares, rows, claims)
    return figure_of(chart, words, titles, _in_words(rows))


def _in_halves(squares: alt.Chart, rows: pd.DataFrame, claims: list[str]) -> alt.TopLevelMixin:
    """The chart, or one of each half of its claims beside each other."""
    if len(claims) < _MANY:
        return squares.properties(data=rows, width="container", height=_ROW * len(claims))
    middle = math.ceil(len(claims) / 2)
    first, second = claims[:middle], claims[middle:]
    names = [f"{half[0]} to {half[-1]}" for half in (first, second)]
    part = rows["claim"].map(lambda claim: names[claim in second])
    header = alt.Header(title=None, labelAnchor="start", labelFontWeight="bold")
    panel = alt.Facet("part:N", sort=names, header=header)
    sized = squares.properties(width=300, height=_ROW * len(first))
    halves = sized.facet(facet=panel, columns=2, data=rows.assign(part=part))
    return halves.resolve_scale(x="independent", y="independent")


def _in_words(rows: pd.DataFrame) -> str:
    """How many claims have which verdict on the first and the last release."""
    said = []
    for release in dict.fromkeys(rows["release"].iloc[[0, -1]]):
        counted = rows.loc[rows["release"] == release, "word"].value_counts()
        parts = ", ".join(f"{word} {many}" for word, many in counted.items())
        said.append(f"On {release}: {parts}.")
    return " ".join(said)
