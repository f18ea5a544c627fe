"""What claims are judged by, made of the times and plans; and the tables that show the same."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin import experiments
from pgrerun.chapters.wisconsin.contenders import (
    COMPILED,
    CONFINED,
    DUCKDB,
    INTERPRETED,
    PLAIN,
    POSTGRESQL,
    SEQUENTIAL,
)
from pgrerun.chapters.wisconsin.queries import KEYS, RUNNABLE_IN_1990, SPECIFIED, label
from pgrerun.page import narrate
from pgrerun.record import printed, statistics
from pgrerun.record.printed import wisconsin as figure
from pgrerun.record.statistics import Interval

MATTERS = 1.05  # a query is won from here on
JOINS = tuple(f"q{number}" for number in range(9, 18))
WITHOUT_INDEX = JOINS[:3]
READING, COMPUTING = "q1", "q18"  # both read every page of a relation; the second computes more
FIGURE = "wisconsin_figure_3_11"


def times(
    chapter: Chapter, contender: str, keys: Sequence[str], name: str = experiments.REPORT
) -> pd.DataFrame:
    """Seconds of one contender in an experiment: a row per block, a column per query."""
    return pd.DataFrame({key: chapter.table(name, key)[contender] for key in keys})


def mean(frame: pd.DataFrame) -> pd.Series:
    """Geometric mean over queries, block by block."""
    return np.exp(np.log(frame).mean(axis=1))


def over(
    chapter: Chapter, one: str, other: str, keys: Sequence[str] = KEYS, n: int = SPECIFIED
) -> Interval:
    """One contender's times over another's: median over blocks of the geometric mean of queries."""
    a, b = (mean(times(chapter, name, keys, experiments.at(n))) for name in (one, other))
    return statistics.ratio(a, b, seed=chapter.parameters.seed)


def within(chapter: Chapter, above: Sequence[str], below: Sequence[str]) -> Interval:
    """Geometric mean of queries' times over that of others: PostgreSQL's, at the largest size."""
    name = experiments.at(experiments.all_sizes(chapter)[-1])
    a, b = (mean(times(chapter, POSTGRESQL, keys, name)) for keys in (above, below))
    return statistics.ratio(a, b, seed=chapter.parameters.seed)


def of_single_tuples(chapter: Chapter, above: Sequence[str], below: Sequence[str]) -> Interval:
    """Mean time of some queries of one tuple over that of others."""
    a, b = (
        times(chapter, POSTGRESQL, keys, experiments.SINGLE).mean(axis=1) for keys in (above, below)
    )
    return statistics.ratio(a, b, seed=chapter.parameters.seed)


# ---- who wins


def about_three() -> dict[str, bool]:
    """Whether each summary of the printed column rounds to what the prose says."""
    said = printed.cell("wisconsin_said", "slower", "value")
    return {
        f"by the {name} it is": round(value) == said for name, value in figure.summaries().items()
    }


def _over_duckdb(chapter: Chapter) -> dict[int, tuple[pd.Series, pd.Series]]:
    """Median seconds of PostgreSQL and of DuckDB by query, for each size."""
    found = {}
    for n in experiments.all_sizes(chapter):
        both = (times(chapter, name, KEYS, experiments.at(n)) for name in (POSTGRESQL, DUCKDB))
        one, other = (frame.median() for frame in both)
        found[n] = one, other
    return found


def summaries(chapter: Chapter) -> pd.DataFrame:
    """PostgreSQL over DuckDB by three summaries, at each size; POSTGRES over INGRES above them.

    Columns: pair, tuples, and the names of `figure.summaries()`.
    """
    rows = [("POSTGRES over INGRES, 1990", SPECIFIED, *figure.summaries().values())]
    for n, (one, other) in _over_duckdb(chapter).items():
        ratios = one / other
        geometric = float(np.exp(np.log(ratios).mean()))
        total = float(one.sum() / other.sum())
        rows.append((f"{POSTGRESQL} over {DUCKDB}", n, geometric, float(ratios.median()), total))
    return pd.DataFrame(rows, columns=["pair", "tuples", *figure.summaries()])


def by_kind(chapter: Chapter) -> pd.DataFrame:
    """PostgreSQL over DuckDB by kind of query (geometric means), a column for each size.

    POSTGRES over INGRES stands before them.
    """
    in_print = printed.derived(FIGURE)
    columns = {"POSTGRES over INGRES, 1990": in_print.recomputed_ratio}
    for n, (one, other) in _over_duckdb(chapter).items():
        columns[f"{POSTGRESQL} over {DUCKDB}, {n:,} tuples"] = one / other
    frame = np.log(pd.DataFrame(columns).reindex(list(KEYS)))
    grouped = np.exp(frame.groupby(in_print.kind.reindex(list(KEYS)), sort=False).mean())
    return grouped.rename_axis("kind of query").reset_index()


def exponents(chapter: Chapter) -> pd.DataFrame:
    """How time grows with the relation, over all sizes: query, and each contender's exponent."""
    rows: dict[str, dict[str, str]] = {label(key): {} for key in KEYS}
    for name in (POSTGRESQL, DUCKDB):
        frames = []
        for n in experiments.all_sizes(chapter):
            frames.append(times(chapter, name, KEYS, experiments.at(n)).assign(size=n))
        seconds = pd.concat(frames)
        for key in KEYS:
            found = statistics.exponent(seconds["size"], seconds[key])
            rows[label(key)][name] = str(narrate.interval(found))
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("query").reset_index()


def compiled_by_kind(chapter: Chapter) -> pd.DataFrame:
    """The miniature's time interpreted over compiled, by kind of query, with its interval."""
    kinds, n = printed.table(FIGURE).kind, chapter.parameters.miniature
    rows = []
    for kind in dict.fromkeys(kinds):
        keys = [key for key in KEYS if kinds[key] == kind]
        found = over(chapter, INTERPRETED, COMPILED, keys, n)
        rows.append((kind, len(keys), str(narrate.interval(found))))
    return pd.DataFrame(rows, columns=["kind of query", "queries", "interpreted over compiled"])


# ---- joins, indices


def joins_without_an_index(chapter: Chapter) -> Interval:
    """Nested loops over PostgreSQL as it chooses, the three joins without an index."""
    return over(chapter, CONFINED, POSTGRESQL, WITHOUT_INDEX)


def only_circumstance(chapter: Chapter, chosen: pd.DataFrame) -> dict[str, bool]:
    """Where PostgreSQL bests PostgreSQL confined to nested loops.

    `chosen` is of `chosen_plans`: where confinement leaves the plan as it is nothing can be won.
    """
    changed = chosen.loc[chosen["nested_loops_only"] != "", "query"]
    others = [key for key in KEYS if label(key) in set(changed) and key not in WITHOUT_INDEX]
    won = {key: over(chapter, CONFINED, POSTGRESQL, [key]).low > MATTERS for key in KEYS}
    return {
        "every join without an index is won": all(won[key] for key in WITHOUT_INDEX),
        "no join with an index is": not any(won[key] for key in others if key in JOINS),
        "no other query is run otherwise": set(others) <= set(JOINS),
    }


def tenth_by_index(chapter: Chapter) -> dict[str, Interval]:
    """A tenth of the relation by an index that isn't clustered, over a full scan.

    By the scan of 1990, and as the planner chooses.
    """
    return {
        PLAIN: chapter.ratio(experiments.FORCED, "q6", PLAIN, SEQUENTIAL),
        "as PostgreSQL chooses": within(chapter, ["q6"], ["q2"]),
    }


def min_by_index(chapter: Chapter) -> dict[str, bool]:
    """Whether an index leaves MIN as it is, and slows grouped MIN down."""
    scalar, grouped = within(chapter, ["q23"], ["q20"]), within(chapter, ["q24"], ["q21"])
    return {
        "an index does not make MIN faster": scalar.high >= 1 / MATTERS,
        "it makes MIN by group slower": grouped.low > MATTERS,
    }


def checking_versions(chapter: Chapter) -> Interval:
    """Time of a scan that has to check versions over that of one that hasn't."""
    name = experiments.VERSIONS
    return chapter.ratio(name, "seconds", experiments.CHECKED, experiments.SEEN)


# ---- machines


def two_factors(chapter: Chapter) -> Interval:
    """The factor between the machines of a query that mostly reads over one's that computes."""
    reading, computing = (
        frame[experiments.UNCACHED] / frame[POSTGRESQL]
        for frame in (chapter.table(experiments.MACHINES, key) for key in (READING, COMPUTING))
    )
    return statistics.ratio(reading, computing, seed=chapter.parameters.seed)


def speedup(chapter: Chapter) -> Interval:
    """POSTGRES's printed seconds over PostgreSQL's here: geometric mean of what both could run."""
    in_print = printed.table(FIGURE).postgres
    now = times(chapter, POSTGRESQL, RUNNABLE_IN_1990)
    ratios = in_print[list(RUNNABLE_IN_1990)] / now
    return statistics.median(mean(ratios), seed=chapter.parameters.seed)


def beyond_the_processor(chapter: Chapter, factor: float) -> Interval:
    """The speed-up over what the processor alone explains; `factor` is of `processor_factor`."""
    return speedup(chapter).times(1 / factor)
