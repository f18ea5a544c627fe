"""Sentences and facts that only this chapter has; judgements are put into words by `narrate`."""

import numpy as np
import pandas as pd

from pgrerun import narrate, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin import machines, race, scans
from pgrerun.chapters.wisconsin.contenders import AGAIN, CONFINED, DUCKDB, POSTGRESQL
from pgrerun.chapters.wisconsin.miniature import COMPILED, INTERPRETED
from pgrerun.chapters.wisconsin.queries import KEYS, SPECIFIED
from pgrerun.errors import CannotMeasure
from pgrerun.parameters import time_to_run
from pgrerun.published import wisconsin as figure
from pgrerun.tables import Table, table

MATTERS = 1.05  # a query is won from here on


def apparatus(chapter: Chapter) -> Table:
    """The report's set-up and this run's."""
    then, now = published.table("wisconsin_said")["value"], chapter.run.environment["machine"]
    flush = now["fdatasync_8k_seconds"]
    rows = [
        ("systems", "POSTGRES; university INGRES of 1987", f"PostgreSQL {chapter.run.environment['server']['version']}; DuckDB {chapter.run.environment['packages']['duckdb']}; a miniature of INGRES"),
        ("machine", "SUN 3/280", f"{now['cpus_usable']} processors ({now['cpu_model']})"),
        ("memory", "not said", f"{now['memory_bytes'] / 2**30:,.0f} GB"),
        ("disk", "not said", f"{1 / flush:,.0f} flushed writes per second" if flush else "unknown"),
        ("tuples of a large relation", f"{then['tuples']:,.0f}", ", ".join(f"{n:,}" for n in race.sizes(chapter)) + f"; {chapter.parameters.miniature:,} for the miniature"),
        ("bytes of a tuple's attributes", f"{then['tuple_bytes']:g}", f"{then['tuple_bytes']:g}"),
        ("time to run", "", time_to_run("wisconsin")),
    ]  # fmt: skip
    return table(pd.DataFrame(rows, columns=["", "1990", "this run"]), "Apparatus then and now")


def noise(chapter: Chapter) -> narrate.Sentence | None:
    """The noise floor, from the contender that ran twice."""
    both = [race.seconds(chapter, SPECIFIED, name) for name in (POSTGRESQL, AGAIN)]
    if any(frame.empty for frame in both):
        return None
    return narrate.noise(statistics.noise_floor(*(race.mean(frame, KEYS) for frame in both)))


def elsewhere(chapter: Chapter) -> narrate.Sentence | None:
    """A caution where PostgreSQL and DuckDB may run on different machines; None where they don't."""
    if machines.here(chapter):
        return None
    return narrate.Sentence(
        f"{DUCKDB} runs on the machine of this notebook, and {chapter.server.name} may run on another: the ratios between the two then compare machines as well, "
        "and every query of PostgreSQL's pays for the way over the network."
    )


# ---- about three times slower


def about_three() -> dict[str, bool]:
    """Whether each summary of the printed column rounds to what the prose says."""
    said = published.cell("wisconsin_said", "slower", "value")
    return {f"by the {name} it is": round(value) == said for name, value in figure.summaries().items()}


def summaries(chapter: Chapter) -> pd.DataFrame | None:
    """PostgreSQL over DuckDB by the same three summaries, at each size; POSTGRES over INGRES above them."""
    rows = [("POSTGRES over INGRES, 1990", SPECIFIED, *figure.summaries().values())]
    for n in race.sizes(chapter):
        one, other = (race.seconds(chapter, n, name) for name in (POSTGRESQL, DUCKDB))
        if not (one.empty or other.empty):
            one, other = (frame[list(KEYS)].median() for frame in (one, other))
            ratios = one / other
            rows.append((f"{POSTGRESQL} over {DUCKDB}", n, float(np.exp(np.log(ratios).mean())), float(ratios.median()), float(one.sum() / other.sum())))
    return pd.DataFrame(rows, columns=["pair", "tuples", *figure.summaries()]) if len(rows) > 1 else None


def decided_by_the_summary(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """How far the summaries lie apart, and whether they agree on who is faster."""
    if found is None:
        return None
    parts = []
    for pair, tuples, *values in found.itertuples(index=False):
        low, high = min(values), max(values)
        side = "all above one" if low > 1 else "all below one" if high < 1 else "on both sides of one, so that the choice of the summary makes the winner"
        parts.append(f"{pair}, {narrate.number(tuples)} tuples: from {narrate.number(low, 2)} to {narrate.number(high, 2)}, {side}")
    return narrate.Sentence("; ".join(parts) + ".")


def ways_to_store(chapter: Chapter) -> narrate.Sentence | None:
    """What a new relation for the result costs against one that is there."""
    found = chapter.ratio(race.STORED, "seconds", race.INTO, race.APPENDED)
    return None if found is None else narrate.ratio_sentence(found, "time", f"query 2 with its result in {race.INTO}", f"query 2 with its result in {race.APPENDED}")


# ---- joins and their opponents


def joins_without_an_index(chapter: Chapter) -> statistics.Interval | None:
    """Nested loops over PostgreSQL as it chooses, the three joins without an index."""
    return race.over(chapter, CONFINED, POSTGRESQL, scans.WITHOUT_INDEX)


def only_circumstance(chapter: Chapter, other_plans: list[str] | None) -> dict[str, bool] | None:
    """Where PostgreSQL bests PostgreSQL confined to nested loops.

    `other_plans`: the queries for which confinement changes the plan; elsewhere nothing can be won.
    """
    won = {key: race.over(chapter, CONFINED, POSTGRESQL, [key]) for key in KEYS}
    if other_plans is None or None in won.values():
        return None
    rest = [key for key in other_plans if key not in scans.WITHOUT_INDEX]
    return {
        "every join without an index is won": all(won[key].low > MATTERS for key in scans.WITHOUT_INDEX),
        "no join with an index is": not any(won[key].low > MATTERS for key in rest if key in scans.JOINS),
        "no other query is run otherwise": set(rest) <= set(scans.JOINS),
    }


def by_kind(chapter: Chapter) -> pd.DataFrame | None:
    """PostgreSQL over DuckDB at each size beside POSTGRES over INGRES, by kind of query: geometric means."""
    t = published.derived("wisconsin_figure_3_11")
    columns = {"POSTGRES over INGRES, 1990": t.recomputed_ratio}
    for n in race.sizes(chapter):
        one, other = (race.seconds(chapter, n, name) for name in (POSTGRESQL, DUCKDB))
        if not (one.empty or other.empty):
            columns[f"{POSTGRESQL} over {DUCKDB}, {n:,} tuples"] = one.median() / other.median()
    if len(columns) == 1:
        return None
    frame = pd.DataFrame({name: values.reindex(list(KEYS)) for name, values in columns.items()})
    grouped = np.exp(np.log(frame).groupby(t.kind.reindex(list(KEYS)), sort=False).mean())
    return grouped.rename_axis("kind of query").reset_index()


def min_by_index(chapter: Chapter) -> dict[str, bool] | None:
    """Whether an index leaves MIN as it is, and slows grouped MIN down."""
    scalar, grouped = race.within(chapter, ["q23"], ["q20"]), race.within(chapter, ["q24"], ["q21"])
    if None in (scalar, grouped):
        return None
    return {"an index does not make MIN faster": scalar.high >= 1 / MATTERS, "it makes MIN by group slower": grouped.low > MATTERS}


def unindexed_update(changes: pd.DataFrame) -> narrate.Sentence:
    """Whether the update of an attribute without an index left the indices alone."""
    records = changes.set_index("query")["log_records"]
    update, insert = records[race.BESIDE["plain"]], records[race.label("q29")]
    if update >= insert:
        return narrate.Sentence(
            f"It takes {narrate.count(update, 'record')} of log all the same, against {narrate.count(insert, 'record')} for an insert: the page had no room for the new version, "
            "so every index got an entry for its new place. Room on the page saves that; the chapter on HOT is about little else."
        )
    return narrate.Sentence(
        f"It takes {narrate.count(update, 'record')} of log, against {narrate.count(insert, 'record')} for an insert: the new version found room on the page of the old one, "
        "and no index got an entry. The chapter on HOT is about little else."
    )


# ---- the miniature of INGRES


def substitution(pages: pd.DataFrame) -> narrate.Sentence:
    """What tuple substitution costs in pages, by what leads to the inner tuples."""
    touched = pages.set_index("query")["touched"]
    without, clustered, other = (touched[[race.label(f"q{number}") for number in range(first, first + 3)]].sum() for first in (9, 12, 15))
    return narrate.Sentence(
        f"With {narrate.number(scans.COUNTED)} tuples in the large relations the three joins touch {narrate.count(int(without), 'page')} without an index, "
        f"{narrate.count(int(clustered), 'page')} where the relations are kept in the order of the joining attribute, and {narrate.count(int(other), 'page')} through an index on it: "
        f"a factor of {narrate.number(without / clustered, 0)} and one of {narrate.number(without / other, 0)}."
    )


def explained(pages: pd.DataFrame) -> narrate.Sentence:
    """How far the miniature's pages order the queries as INGRES's seconds did in print, and where they are furthest apart."""
    both = pages.set_index("query")[["touched", "seconds_1990"]]
    agreement = both.rank().corr().iloc[0, 1]
    slope, level = np.polyfit(*np.log(both).to_numpy().T, 1)
    off = np.log(both["seconds_1990"]) - slope * np.log(both["touched"]) - level
    return narrate.Sentence(
        f"The rank correlation between the pages that the miniature touches and the seconds that INGRES took in print is {narrate.number(agreement, 2)} over {narrate.count(len(both), 'query', 'queries')}. "
        f"Furthest above what its pages let expect lies query {off.idxmax()}; furthest below, query {off.idxmin()}."
    )


def compiled(chapter: Chapter) -> narrate.Sentence | None:
    """What compilation is worth over all queries."""
    found = race.over(chapter, INTERPRETED, COMPILED, n=chapter.parameters.miniature)
    return None if found is None else narrate.ratio_sentence(found, "geometric mean of the times", "the miniature with its interpreter", "the miniature compiled")


def compiled_by_kind(chapter: Chapter) -> pd.DataFrame | None:
    """The interpreter's time over the compiled form's, by kind of query: kind, queries, ratio with its interval."""
    kinds, rows = published.table("wisconsin_figure_3_11").kind, []
    for kind in dict.fromkeys(kinds):
        keys = [key for key in KEYS if kinds[key] == kind]
        found = race.over(chapter, INTERPRETED, COMPILED, keys, chapter.parameters.miniature)
        if found is None:
            return None
        rows.append((kind, len(keys), str(narrate.interval(found))))
    return pd.DataFrame(rows, columns=["kind of query", "queries", "interpreted over compiled"])


# ---- growth


def exponents(chapter: Chapter) -> pd.DataFrame | None:
    """How time grows with the relation: query, and for each contender the exponent with its interval, over all sizes."""
    sizes = race.sizes(chapter)
    rows = {}
    for name in (POSTGRESQL, DUCKDB):
        frames = {n: race.seconds(chapter, n, name) for n in sizes}
        if any(frame.empty for frame in frames.values()):
            return None
        for key in KEYS:
            points = [(n, value) for n, frame in frames.items() for value in frame[key]]
            rows.setdefault(race.label(key), {})[name] = str(narrate.interval(statistics.exponent(*zip(*points))))
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("query").reset_index()


def no_print_of_1983(chapter: Chapter) -> None:
    """The INGRES of 1987 beside that of the benchmark's first publication: neither is here, nor the earlier numbers."""
    raise CannotMeasure("the INGRES numbers of 1983", "the earlier numbers aren't printed in the report, were measured on another machine, and neither release of INGRES runs today")


def owed_to_the_processor(chapter: Chapter, factor: float | None) -> narrate.Sentence | None:
    """The speed-up since 1990 and the processor's share in it."""
    found = machines.speedup(chapter)
    if None in (found, factor):
        return None
    return narrate.Sentence(
        f"POSTGRES took {narrate.interval(found)} times as long for the queries of 1990 as PostgreSQL does here (geometric mean). "
        f"This processor adds integers {narrate.number(round(factor, -1))} times as fast as the report's Sun executed instructions at its maker's rating, which the report doesn't print."
    )
