"""The chapter's charts."""

import textwrap
from dataclasses import replace

from pgrerun.chapter import Chapter
from pgrerun.chapters.since_when import evidence, sentences
from pgrerun.chapters.since_when.experiments import LOADS
from pgrerun.page import charts, narrate

LIVES = charts.Words(
    "Which verdicts changed, and with which release?",
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


_LABEL = 38  # letters of a claim's id and words


def lives(chapter: Chapter) -> charts.Figure:
    """Claims by releases: those whose verdict changes, or all where none does."""
    found, changed = evidence.lives(chapter), evidence.changes(chapter)
    said = (
        f"The verdict on {changed['claim'].nunique()} of"
        f" {narrate.count(found['claim'].nunique(), 'claim')} changes from one release to another"
    )
    drawn = found
    if len(changed):
        drawn = found[found["claim"].isin(changed["claim"])]
        words = (drawn["claim"] + ": " + drawn["says"]).map(_shortened)
        drawn, said = drawn.assign(claim=words), f"{said}; these are drawn"
    return charts.lives(drawn, replace(LIVES, caption=f"{said}. {LIVES.caption}"))


def _shortened(words: str) -> str:
    return textwrap.shorten(words, _LABEL, placeholder="…")


def throughput(chapter: Chapter) -> charts.Figure:
    """Transactions per second over the releases of one builder."""
    rows = chapter.medians("throughput", {name: name for name in LOADS})
    said = sentences.faster(chapter)
    return charts.lines(
        rows.assign(x=rows["label"].astype(float)).drop(columns="label"),
        replace(THROUGHPUT, result=lambda _: said),
        charts.Axis("release", even=True),
        charts.Axis("throughput", "transactions/s", zero=True),
        own_scales=True,
    )
