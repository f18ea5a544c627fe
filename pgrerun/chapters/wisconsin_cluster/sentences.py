"""Sentences that only this chapter has."""

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin.queries import label
from pgrerun.chapters.wisconsin_cluster import evidence
from pgrerun.chapters.wisconsin_cluster.experiments import ANSWERED, QUESTIONS
from pgrerun.page import narrate
from pgrerun.page.tables import Table, table
from pgrerun.record.scaling import NEVER
from pgrerun.record.statistics import Interval


def apparatus(chapter: Chapter) -> narrate.Sentence:
    """Who shares what."""
    run, now = evidence.seen(chapter)[-1], chapter.run.environment
    told = now.get("spark")
    if told is None:
        return narrate.Sentence("Below is the published run; its provenance is on its own page.")
    machine = now["machine"]
    place = (
        f"Executors and their driver share the {machine['cpus_usable']} processors, the memory and"
        " the disk of this machine with each other, so that a second executor brings a second core"
        " and nothing else."
        if told["executors"] == "on this machine"
        else "The executors are another cluster's; DuckDB runs on the machine of this notebook."
    )
    server = (
        "PostgreSQL is one server."
        if told["postgresql"] == "one server"
        else "PostgreSQL's relations are spread over its servers by unique2."
    )
    return narrate.Sentence(
        f"Spark {told['version']} on Java {told['java']}, with one executor and with"
        f" {run.executors}, of one core each. {place} {server}"
    )


def answers(chapter: Chapter) -> Table | None:
    """How many tuples each query gave, on all engines alike."""
    _, frame = chapter.by_provenance(ANSWERED)[-1]
    return table(
        pd.DataFrame({"query": frame["variant"].map(label), "tuples": frame["value"]}),
        "Answers that Spark, DuckDB and PostgreSQL have in common",
    )


def metrics(chapter: Chapter) -> Table | None:
    """The three metrics and the fractions with their intervals."""
    found = evidence.three_metrics(chapter)
    for column in found.columns[1:]:
        found[column] = found[column].map(narrate.interval)
    return table(found, "Three metrics of Spark, and the fraction that more executors don't help")


def crossings(chapter: Chapter) -> Table | None:
    """From which size on Spark would be the faster engine, in words."""
    largest = evidence.seen(chapter)[-1].sizes[-1]
    found = evidence.crossings(chapter)
    found["tuples"] = [_from(x, largest) for x in found["tuples"]]
    found = found.rename(columns={"engine": "faster than", "tuples": "from"})
    return table(found, "From how many tuples on Spark takes less time, by straight lines")


def _from(x: Interval, largest: int) -> str:
    if np.isnan(x.estimate):
        return "not to be told: Spark's times don't grow beyond their noise here"
    if x.estimate == NEVER:
        least = f" (perhaps from {narrate.number(x.low)})" if np.isfinite(x.low) else ""
        return f"never here{least}"
    if x.estimate == 0:
        return "at any size"
    high = narrate.number(x.high) if np.isfinite(x.high) else "never"
    beyond = ", farther than was measured" if x.estimate > largest else ""
    return f"{narrate.number(x.estimate)} [{narrate.number(x.low)}, {high}]{beyond}"


def plan(chapter: Chapter) -> narrate.Sentence:
    """What a billion tuples would take, from bytes and seconds measured here."""
    found, run = evidence.planned(chapter), evidence.seen(chapter)[-1]
    if not run.grows(*QUESTIONS):
        return narrate.Sentence(
            "The relations of this run are too small for it: the times of Spark don't grow beyond"
            " their noise between the smallest and the largest, and a line through them would say"
            " nothing. Larger relations, which two parameters give, have one."
        )
    size = evidence.stored(chapter) * evidence.BILLION
    slow = found.loc[found["seconds"].idxmax()]
    minutes = float(found["seconds"].sum()) / 60
    wanted = int(np.ceil(minutes * run.executors / 10))
    moved = "; ".join(
        f"{one.question}: {narrate.number(one.bytes_moved / 1e9)} GB" for one in found.itertuples()
    )
    return narrate.Sentence(
        f"A billion tuples are {narrate.number(size / 1e9)} GB of Parquet for each large relation,"
        f" {narrate.number(evidence.BILLION / run.sizes[-1])} times the largest measured here. By"
        " straight lines, one run of all questions would take"
        f" {narrate.number(minutes)} minutes on {run.executors} executors like these, and ten"
        f" minutes on {narrate.number(wanted)}, which is"
        f" {narrate.number(minutes * run.executors / 60)} hours of a core either way, if scale-up"
        " stayed ideal and no disk or network was in the way. The longest is"
        f" {slow.question}, with {narrate.number(slow.seconds / 60)}"
        f" minutes. As measured here, executors would write for each other ({moved})."
        f" {_first_to_break(chapter, size, run.sizes[-1])}"
    )


def _first_to_break(chapter: Chapter, size: float, largest: int) -> str:
    """What becomes of the join, whose plan depends on sizes."""
    until = evidence.broadcast_until(chapter)
    both = narrate.number(1.1 * size / 1e9)
    beyond = "Nothing of that was measured here, so" if largest < until else "So"
    return (
        f"The join breaks first: up to some {narrate.number(until)} tuples Spark sends the small"
        " relation whole to every executor, and from there on both relations are moved between"
        f" them, {both} GB for a billion tuples, which wait on the executors' disks and cross the"
        f" network. {beyond} its line is the least to be trusted."
    )
