"""What is drawn once: the map of claims by releases."""

import textwrap

import pandas as pd

from pgrerun.page import charts, narrate
from pgrerun.record import lives

_LABEL = 38  # letters of a claim's id and words


def claims_by_release(table: pd.DataFrame) -> charts.Figure:
    """Claims by releases, of rows of `lives`: those whose word changes, or all where none does."""
    found = lives.read(table)
    changed = lives.changes(found)
    number = changed["claim"].nunique()
    verdicts = narrate.count(number, "verdict") if number else "No verdict"
    said = (
        f"The verdict on {number} of"
        f" {narrate.count(found['claim'].nunique(), 'claim')} changes from one release to another"
    )
    drawn = found
    if len(changed):
        drawn = found[found["claim"].isin(changed["claim"])]
        words = (drawn["claim"] + ": " + drawn["says"]).map(
            lambda text: textwrap.shorten(text, _LABEL, placeholder="…")
        )
        drawn, said = drawn.assign(claim=words), f"{said}; these are drawn"
    return charts.lives(
        drawn,
        charts.Words(
            f"{verdicts} changed from one release to another",
            f"{said}. Each row is a claim's life from the oldest release that ran to the newest,"
            " judged by its own chapter's experiment at the smallest size; the rows are sorted by"
            " document. Grey is what a release can't show.",
            "lives",
        ),
    )
