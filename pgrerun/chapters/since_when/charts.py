"""The chapter's charts."""

from dataclasses import replace

from pgrerun.chapter import Chapter
from pgrerun.chapters.since_when import evidence
from pgrerun.chapters.since_when.experiments import LOADS, number
from pgrerun.page import charts

LIVES = charts.Words(
    "Since when does a claim no longer hold?",
    "Each row is a claim's life from the oldest release that ran to the newest, judged by its own"
    " chapter's experiment at the smallest size; the rows are sorted by document.",
    "lives",
)
THROUGHPUT = charts.Words(
    "Is a newer release faster?",
    "Transactions per second of one client that doesn't wait for the disk, on releases that one"
    " builder compiled, with intervals.",
    "throughput-by-release",
)


def lives(chapter: Chapter) -> charts.Figure:
    """Claims by releases."""
    found, changed = evidence.lives(chapter), evidence.changes(chapter)
    said = (
        f"The word of {changed['claim'].nunique()} of {found['claim'].nunique()} claims changes"
        " from one release to another."
    )
    return charts.lives(found, replace(LIVES, caption=f"{said} {LIVES.caption}"))


def throughput(chapter: Chapter) -> charts.Figure:
    """Transactions per second over the releases of one builder."""
    rows = chapter.medians("throughput", {name: name for name in LOADS})
    rows = rows.assign(place=rows["label"].map(number)).sort_values("place", kind="stable")
    axis = charts.Axis("throughput", "transactions/s", zero=True)
    return charts.compare(rows.drop(columns="place"), THROUGHPUT, axis, own_scales=True)
