"""The chapter's charts."""

from dataclasses import replace

from pgrerun.chapter import Chapter
from pgrerun.chapters.since_when import evidence
from pgrerun.chapters.since_when.experiments import LOADS, number
from pgrerun.page import charts, narrate

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
    # the rows are the published run's, too, which may have more releases
    releases = sorted(chapter.table("throughput", next(iter(LOADS))), key=number)
    first, last = releases[0], releases[-1]
    gains = [
        f"{name} {narrate.interval(chapter.ratio('throughput', name, last, first))}"
        for name in LOADS
    ]
    said = f"Throughput of {last} over that of {first}: {'; '.join(gains)}."
    return charts.lines(
        rows.assign(x=rows["label"].astype(float)).drop(columns="label"),
        replace(THROUGHPUT, result=lambda _: said),
        charts.Axis("release", even=True),
        charts.Axis("throughput", "transactions/s", zero=True),
        own_scales=True,
    )
