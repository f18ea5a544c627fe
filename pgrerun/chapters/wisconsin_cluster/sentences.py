"""Sentences that only this chapter has."""

import re

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin.queries import label
from pgrerun.chapters.wisconsin_cluster import evidence
from pgrerun.chapters.wisconsin_cluster.experiments import ANSWERED, JOIN, QUESTIONS
from pgrerun.lab.quel import Translator
from pgrerun.lab.spark import spark_sql
from pgrerun.page import narrate
from pgrerun.page.tables import Table, table
from pgrerun.record.scaling import NEVER
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import greater, less


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


def statement(key: str) -> str:
    """A question's statement for Spark, in lines, and of a long list of columns the first two."""
    query = queries.instance(queries.BY_KEY[key], queries.SPECIFIED)
    sql = spark_sql(Translator().sql(query.statement))
    head, columns, rest = re.fullmatch(r"(.*?SELECT )(.*?)( FROM .*)", sql, re.DOTALL).groups()
    first, second, *more = [*columns.split(", "), ""]
    shown = f"{first}, {second}, …" if len(more) > 2 else columns
    lines = re.sub(r" (?=(?:SELECT|FROM|WHERE|AND|GROUP BY) )", "\n", f"{head}{shown}{rest}")
    return f"-- {label(key)}\n{lines};\n"


def speed_up(chapter: Chapter) -> narrate.Sentence:
    """Which questions all executors answer faster than one does, and which gains most."""
    run = evidence.seen(chapter)[-1]
    found = {key: run.metrics(key)[evidence.SPEED_UP] for key in QUESTIONS}
    how: dict[str, list[str]] = {}
    for key, ratio in found.items():
        slower = "slower than one" if less(ratio) else "not significantly faster or slower than one"
        words = "faster than one" if greater(ratio) else slower
        how.setdefault(words, []).append(f"{label(key)} {narrate.interval(ratio)}")
    told = "; ".join(f"{words} for {narrate.listed(asked)}" for words, asked in how.items())
    most = max(found, key=lambda key: found[key].estimate)
    return narrate.Sentence(
        f"By speed-up {narrate.count(run.executors, 'executor')} are {told}. What gains most, or"
        f" loses least, is {label(most)}."
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
    """A crossing in words."""
    if np.isnan(x.estimate):
        return "not to be told: Spark's times don't grow beyond their noise here"
    if x.estimate == NEVER:
        least = f"; {_some(x.low)} can't be excluded" if np.isfinite(x.low) else ""
        return f"at no size{least}"
    if x.estimate == 0:
        return "at any size"
    high = _some(x.high) if np.isfinite(x.high) else "no size"
    if x.estimate <= largest:
        return f"{_some(x.estimate)} [{_some(x.low)}, {high}]"
    return (
        f"beyond the {narrate.number(largest)} that were measured: some {_some(x.estimate)}"
        f" [{_some(x.low)}, {high}]"
    )


def _some(x: float) -> str:
    """A number with no more digits than a straight line has."""
    return narrate.number(float(f"{x:.2g}"))


def plan(chapter: Chapter) -> narrate.Sentence:
    """What a billion tuples would take, from bytes and seconds measured here."""
    found, run = evidence.planned(chapter), evidence.seen(chapter)[-1]
    growing = [key for key in QUESTIONS if run.grows(key)]
    told = _growth(run, growing)
    if not growing:
        return narrate.Sentence(
            f"The relations of this run are too small for it. {told} Larger relations, which two"
            " parameters give, have a line."
        )
    found = found[found["question"].isin(map(label, growing))]
    size = evidence.stored(chapter) * evidence.BILLION
    slow = found.loc[found["seconds"].idxmax()]
    minutes = float(found["seconds"].sum()) / 60
    wanted = int(np.ceil(minutes * run.executors / 10))
    moved = "; ".join(
        f"{one.question}: {_some(one.bytes_moved / 1e9)} GB" for one in found.itertuples()
    )
    asked = "all questions" if len(growing) == len(QUESTIONS) else "those that grow"
    breaks = f" {_first_to_break(chapter, size, run.sizes[-1])}" if JOIN in growing else ""
    return narrate.Sentence(
        f"{told} A billion tuples are {_some(size / 1e9)} GB of Parquet for each large relation,"
        f" {narrate.number(evidence.BILLION / run.sizes[-1])} times the largest measured here. By"
        f" straight lines, one run of {asked} would take"
        f" some {_some(minutes)} minutes on {run.executors} executors like these, and ten"
        f" minutes on {_some(wanted)}, which is"
        f" some {_some(minutes * run.executors / 60)} hours of a core either way, if scale-up"
        " stayed ideal and no disk or network was in the way. The longest is"
        f" {slow.question}, with some {_some(slow.seconds / 60)}"
        f" minutes. As measured here, executors would write for each other ({moved}).{breaks}"
    )


def _growth(run: evidence.Seen, growing: list[str]) -> str:
    """For which questions Spark's time grows with the relation, and for which it isn't known to."""
    least, most = (narrate.number(n) for n in (run.sizes[0], run.sizes[-1]))

    def times(keys: list[str]) -> str:
        grown = (run.metrics(key)[evidence.SIZE_UP] for key in keys)
        return narrate.listed(
            [
                f"{label(key)} ({narrate.interval(ratio, 'times', against=(1,))})"
                for key, ratio in zip(keys, grown, strict=True)
            ]
        )

    flat = [key for key in QUESTIONS if key not in growing]
    told = [f"grows for {times(growing)}"] if growing else []
    told += [f"does not grow beyond its noise for {times(flat)}"] if flat else []
    nothing = " A line through times that don't grow would say nothing." if flat else ""
    return f"From {least} to {most} tuples Spark's time {', and '.join(told)}.{nothing}"


def _first_to_break(chapter: Chapter, size: float, largest: int) -> str:
    """What becomes of the join, whose plan depends on sizes."""
    until = evidence.broadcast_until(chapter)
    both = _some(1.1 * size / 1e9)
    beyond = "Nothing of that was measured here, so" if largest < until else "So"
    return (
        f"The join breaks first: up to some {_some(until)} tuples Spark sends the small"
        " relation whole to every executor, and from there on both relations are moved between"
        f" them, {both} GB for a billion tuples, which wait on the executors' disks and cross the"
        f" network. {beyond} its line is the least to be trusted."
    )
