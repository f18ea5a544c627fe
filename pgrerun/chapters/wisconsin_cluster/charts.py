"""The chapter's charts."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin.queries import label
from pgrerun.chapters.wisconsin_cluster import evidence
from pgrerun.chapters.wisconsin_cluster.experiments import QUESTIONS
from pgrerun.page import charts


def metrics(chapter: Chapter) -> charts.Figure:
    """Speed-up and scale-up of each question."""
    rows = [
        charts.row(label(key), run.kind, run.metrics(key)[metric], panel=metric)
        for metric in (evidence.SPEED_UP, evidence.SCALE_UP)
        for run in evidence.seen(chapter)
        for key in QUESTIONS
    ]
    words = charts.Words(
        "What does a second executor bring?",
        "Speed-up: time of one executor over that of all on the same relation. Scale-up: time of"
        " one executor over that of all on a relation as many times as large. Right of the rule"
        " there is a gain of speed; a scale-up reaches it at best.",
        "cluster-metrics",
    )
    axis = charts.Axis("ratio of times", zero=True)
    return charts.compare(rows, words, axis, reference=charts.Reference(1))


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
    )
    size = charts.Axis("large relations", "tuples", log=True)
    return charts.lines(pd.DataFrame(rows), words, size, charts.Axis("time", "s", log=True))
