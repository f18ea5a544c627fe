"""Sentences that only this chapter has; judgements are put into words by `narrate`."""

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin import evidence, experiments
from pgrerun.chapters.wisconsin.contenders import AGAIN, DUCKDB, POSTGRESQL
from pgrerun.chapters.wisconsin.queries import BESIDE, KEYS, label
from pgrerun.page import narrate
from pgrerun.page.tables import Table, table
from pgrerun.parameters import time_to_run
from pgrerun.record import printed, statistics

_GEOMETRIC = "geometric mean of the ratios"


def apparatus(chapter: Chapter) -> Table:
    """The report's set-up and this run's."""
    then, now = printed.table("wisconsin_said")["value"], chapter.run.environment
    machine, flush = now["machine"], now["machine"]["fdatasync_8k_seconds"]
    engines = (
        f"PostgreSQL {now['server']['version']}; DuckDB {now['packages']['duckdb']}; a miniature of"
        " INGRES"
    )
    sizes = ", ".join(f"{n:,}" for n in experiments.all_sizes(chapter))
    sizes += f"; {experiments.COUNTED:,} for the miniature"
    rows = [
        ("systems", "POSTGRES; university INGRES of 1987", engines),
        ("machine", "SUN 3/280", f"{machine['cpus_usable']} processors ({machine['cpu_model']})"),
        ("memory", "not said", f"{machine['memory_bytes'] / 2**30:,.0f} GB"),
        ("disk", "not said", f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"),
        ("tuples of a large relation", f"{then['tuples']:,.0f}", sizes),
        ("bytes of a tuple's attributes", f"{then['tuple_bytes']:g}", f"{then['tuple_bytes']:g}"),
        ("time to run", "", time_to_run("wisconsin")),
    ]
    return table(pd.DataFrame(rows, columns=["", "1990", "this run"]), "Apparatus then and now")


def noise(chapter: Chapter) -> narrate.Sentence:
    """The noise floor, from the contender that ran twice."""
    both = (evidence.mean(evidence.times(chapter, name, KEYS)) for name in (POSTGRESQL, AGAIN))
    return narrate.noise(statistics.noise_floor(*both))


def elsewhere(chapter: Chapter) -> narrate.Sentence | None:
    """A caution where PostgreSQL and DuckDB may run on different machines; else nothing to say."""
    if experiments.on_this_machine(chapter):
        return None
    return narrate.Sentence(
        f"{DUCKDB} runs on the machine of this notebook, and {chapter.server.name} may run on"
        " another: the ratios between the two then compare machines as well, and every query of"
        " PostgreSQL's pays for the way over the network."
    )


def decided_by_the_summary(summaries: pd.DataFrame) -> narrate.Sentence:
    """How far the summaries lie apart, and whether they agree on who is faster.

    Of `evidence.summaries`: pair and tuples, then a column for each summary.
    """
    parts = []
    for pair, tuples, *values in summaries.itertuples(index=False):
        low, high = min(values), max(values)
        if low > 1:
            side = "all above one"
        elif high < 1:
            side = "all below one"
        else:
            side = "on both sides of one, so that the choice of the summary makes the winner"
        parts.append(
            f"{pair}, {narrate.number(tuples)} tuples: the summaries go from"
            f" {narrate.number(low, 2)} to {narrate.number(high, 2)}, {side}."
        )
    return narrate.Sentence(" ".join(parts))


def who_wins(summaries: pd.DataFrame) -> str:
    """How long PostgreSQL takes relative to DuckDB at each size, by the geometric mean.

    Of `evidence.summaries`, whose first summary that is.
    """
    told = [
        f"at {narrate.number(row.tuples)} tuples PostgreSQL takes"
        f" {narrate.number(row[_GEOMETRIC], 2)} times as long as DuckDB"
        for _, row in summaries[summaries["pair"] == f"{POSTGRESQL} over {DUCKDB}"].iterrows()
    ]
    return f"By the geometric mean over all queries, {narrate.listed(told)}."


def unindexed_update(changes: pd.DataFrame) -> narrate.Sentence:
    """Whether the update of an attribute without an index left the indices alone."""
    records = changes.set_index("query")["wal_records"]
    update, insert = records[BESIDE["plain"]], records[label("q29")]
    if update >= insert:
        even, why = (
            " all the same",
            (
                "the page had no room for the new version, so every index got an entry for its new"
                " place. Room on the page saves that; the chapter on HOT is about little else."
            ),
        )
    else:
        even, why = (
            "",
            (
                "the new version found room on the page of the old one, and no index got an entry."
                " The chapter on HOT is about little else."
            ),
        )
    return narrate.Sentence(
        f"It takes {narrate.count(update, 'record')} of WAL{even}, against"
        f" {narrate.count(insert, 'record')} for an insert: {why}"
    )


# ---- the miniature of INGRES


def substitution(pages: pd.DataFrame) -> narrate.Sentence:
    """What tuple substitution costs in pages, by what leads to the inner tuples."""
    touched = pages.set_index("query")["touched"]
    without, clustered, other = (
        touched[[label(f"q{number}") for number in range(first, first + 3)]].sum()
        for first in (9, 12, 15)
    )
    return narrate.Sentence(
        f"With {narrate.number(experiments.COUNTED)} tuples in the large relations the three joins"
        f" touch {narrate.count(int(without), 'page')} without an index,"
        f" {narrate.count(int(clustered), 'page')} where the relations are kept in the order of the"
        f" joining attribute, and {narrate.count(int(other), 'page')} through an index on it: a"
        f" factor of {narrate.number(without / clustered, 0)} and one of"
        f" {narrate.number(without / other, 0)}."
    )


def agreement(pages: pd.DataFrame) -> float:
    """Rank correlation between the miniature's pages and INGRES's printed seconds."""
    return float(pages[["touched", "seconds_1990"]].rank().corr().iloc[0, 1])


def explained(pages: pd.DataFrame) -> narrate.Sentence:
    """How far the miniature's pages order the queries as INGRES's printed seconds do.

    And where the two are furthest apart, by the power law that fits them best.
    """
    both = pages.set_index("query")[["touched", "seconds_1990"]]
    slope, level = np.polyfit(*np.log(both).to_numpy().T, 1)
    off = np.log(both["seconds_1990"]) - slope * np.log(both["touched"]) - level
    longest, shortest = (
        "{} ({})".format(*query.split(": ", 1)) for query in (off.idxmax(), off.idxmin())
    )
    return narrate.Sentence(
        "The rank correlation between the pages that the miniature touches and the seconds that"
        f" the report prints for INGRES is {narrate.number(agreement(pages), 2)} over"
        f" {narrate.count(len(both), 'query', 'queries')}. Compared with a power law fitted to all"
        f" of them, which the chart doesn't draw, query {longest} took the longest for its pages,"
        f" and query {shortest} the shortest."
    )
