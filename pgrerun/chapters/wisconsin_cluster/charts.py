"""The chapter's charts."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin.queries import label
from pgrerun.chapters.wisconsin_cluster import evidence, sentences
from pgrerun.chapters.wisconsin_cluster.experiments import QUESTIONS
from pgrerun.page import charts, narrate


def metrics(chapter: Chapter) -> charts.Figure:
    """Speed-up and scale-up of each question."""
    rows = [
        charts.row(label(key), run.kind, run.metrics(key)[metric], panel=metric)
        for metric in (evidence.SPEED_UP, evidence.SCALE_UP)
        for run in evidence.seen(chapter)
        for key in QUESTIONS
    ]
    words = charts.Words(
        "What do more executors bring?",
        "Speed-up: time of one executor over that of all on the same relation. Scale-up: time of"
        " one executor over that of all on a relation as many times as large. Right of the rule"
        " there is a gain of speed; a scale-up reaches it at best.",
        "cluster-metrics",
        result=lambda _: sentences.speed_up(chapter),
    )
    axis = charts.Axis("ratio of times", zero=True)
    return charts.compare(rows, words, axis, reference=charts.Reference(1, "as one executor"))


def growth(chapter: Chapter) -> charts.Figure:
    """Time over size, engine by engine."""
    rows = [
        {"kind": kind, "panel": question, "series": name, "x": n}
        | {"value": value.estimate, "low": value.low, "high": value.high}
        for kind, question, name, n, value in evidence.lines(chapter)
    ]
    words = charts.Words(
        "From which size on does a cluster pay?",
        "Median time of each question over the size of its large relations, with intervals, on all"
        " executors of Spark, on one thread of DuckDB and on PostgreSQL.",
        "cluster-growth",
        result=_ahead,
    )
    size = charts.Axis("large relations", "tuples", log=True)
    return charts.lines(pd.DataFrame(rows), words, size, charts.Axis("time", "s", log=True))


def _ahead(frame: pd.DataFrame) -> str:
    """From which size on Spark is ahead, and its time over the shortest of the others'.

    `frame` is that of `growth`; of several runs the last is told, which is the reader's. The ratio
    is that at the largest size, question by question.
    """
    run = frame[frame["kind"] == frame["kind"].iloc[-1]]
    seconds = run.pivot(index=["panel", "x"], columns="series", values="value")
    spark = seconds.columns.str.startswith("Spark")
    all_ratios = seconds.loc[:, spark].min(axis=1) / seconds.loc[:, ~spark].min(axis=1)
    by_size = all_ratios.dropna().unstack("x")
    if by_size.empty:
        return ""
    by_size = by_size.reindex([name for name in run["panel"].unique() if name in by_size.index])
    ahead = []
    for name, ratios in by_size.iterrows():
        faster = (ratios.dropna()[::-1] < 1).cummin()  # from this size to the largest
        if faster.any():
            ahead.append(f"{narrate.count(min(faster.index[faster]), 'tuple')} on ({name})")
    most = max(by_size)
    told = narrate.listed(
        [f"{narrate.number(x, 1)} ({name})" for name, x in by_size[most].dropna().items()]
    )
    first = (
        f"By medians Spark takes less time than both others from {narrate.listed(ahead)}."
        if ahead
        else "At the largest size that was measured Spark takes less time than both others for no"
        " question."
    )
    return (
        f"{first} With {narrate.count(most, 'tuple')} its time over that of the faster of the other"
        f" two is {told}."
    )
