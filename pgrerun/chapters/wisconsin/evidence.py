"""What claims are judged by, made of the times and plans; and the tables that show the same."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.wisconsin import experiments
from pgrerun.chapters.wisconsin.contenders import (
    BITMAP,
    CONFINED,
    DUCKDB,
    PLAIN,
    POSTGRESQL,
    SEQUENTIAL,
    UNSTORED,
)
from pgrerun.chapters.wisconsin.queries import KEYS, SPECIFIED, label
from pgrerun.record import printed, statistics
from pgrerun.record.printed import wisconsin as figure
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, every, fact, greater, less, some, supporting

BESTS = 1.25  # a query is won from here on
ABOUT = 0.05  # times this close are the same
JOINS = tuple(f"q{number}" for number in range(9, 18))
WITHOUT_INDEX = JOINS[:3]
READING, COMPUTING = "q1", "q18"  # both read every page of a relation; the second computes more
FIGURE = "wisconsin_figure_3_11"
NO_LESS = "a tenth by the index takes no less than a full scan"


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


def within(
    chapter: Chapter, above: Sequence[str], below: Sequence[str], n: int = SPECIFIED
) -> Interval:
    """Geometric mean of queries' times over that of others: PostgreSQL's."""
    a, b = (mean(times(chapter, POSTGRESQL, keys, experiments.at(n))) for keys in (above, below))
    return statistics.ratio(a, b, seed=chapter.parameters.seed)


def larger(chapter: Chapter, above: Sequence[str], below: Sequence[str]) -> Interval:
    """The same at the largest size."""
    return within(chapter, above, below, experiments.all_sizes(chapter)[-1])


def not_stored(chapter: Chapter, above: Sequence[str], below: Sequence[str]) -> Interval:
    """`within`, without storing and committing."""
    a, b = (mean(times(chapter, UNSTORED, keys, experiments.FINDING)) for keys in (above, below))
    return statistics.ratio(a, b, seed=chapter.parameters.seed)


def compared(chapter: Chapter, above: Sequence[str], below: Sequence[str]) -> Interval:
    """The share of the time that is neither storing nor committing: the lesser of the two."""
    shares = []
    for keys in (above, below):
        alone, whole = (
            mean(times(chapter, name, keys, experiments.FINDING)) for name in (UNSTORED, POSTGRESQL)
        )
        shares.append(statistics.ratio(alone, whole, seed=chapter.parameters.seed))
    return min(shares, key=lambda share: share.estimate)


# ---- who wins


def about_three() -> dict[str, Part]:
    """Whether each summary of the printed column rounds to what the prose says.

    The geometric mean is the one that summarizes ratios (Fleming and Wallace, CACM 29(3), 1986).
    """
    said = printed.cell("wisconsin_said", "slower", "value")
    return {
        f"the {name} rounds to {said:g}": Part(
            round(value) == said, essential=name == "geometric mean of the ratios"
        )
        for name, value in figure.summaries().items()
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


# ---- joins, indices


def joins_without_an_index(chapter: Chapter) -> Interval:
    """Nested loops over PostgreSQL as it chooses, the two joins that the print has it win."""
    return over(chapter, CONFINED, POSTGRESQL, [query for query in WITHOUT_INDEX if query != "q11"])


def only_circumstance() -> dict[str, bool | Part]:
    """Whether the printed column has POSTGRES ahead of INGRES in joins without an index alone."""
    ahead = figure_ratios()[lambda ratio: ratio < 1].index
    return {
        "whatever POSTGRES wins in the figure is a join without an index": set(ahead)
        <= set(WITHOUT_INDEX),
        "every join without an index is won": supporting(set(WITHOUT_INDEX) <= set(ahead)),
    }


def figure_ratios() -> pd.Series:
    """POSTGRES's printed time over INGRES's, by query."""
    return printed.derived(FIGURE).recomputed_ratio.reindex(list(KEYS))


def changes_over_retrievals() -> dict[str, float]:
    """POSTGRES's printed times over INGRES's: median of each kind of change over retrievals'."""
    figure_rows = printed.derived(FIGURE).reindex(list(KEYS))
    by_kind, by_group = (
        figure_ratios().groupby(figure_rows[column]).median() for column in ("kind", "group")
    )
    return {kind: by_kind[kind] / by_group["retrieval"] for kind in ("insert", "delete")}


def won_here(chapter: Chapter, chosen: pd.DataFrame) -> dict[str, bool | None]:
    """Where PostgreSQL bests PostgreSQL confined to nested loops, by a quarter or more.

    `chosen` is of `chosen_plans`: only where confinement changes the plan can anything be won, so
    other queries than joins can't tell.
    """
    changed = set(chosen.loc[chosen["nested_loops_only"] != "", "query"])
    won = {
        key: greater(over(chapter, CONFINED, POSTGRESQL, [key]), than=BESTS)
        for key in JOINS
        if label(key) in changed
    }
    with_index = [won[key] for key in JOINS if key in won and key not in WITHOUT_INDEX]
    return {
        "every join without an index is won": every(won.get(key, False) for key in WITHOUT_INDEX),
        "no join with an index is": denied(some(with_index)),
    }


def denied(found: bool | None) -> bool | None:
    """The opposite of a fact; what is unresolved stays so."""
    return None if found is None else not found


def without_memory(chapter: Chapter, above: Sequence[str], below: Sequence[str]) -> Interval:
    """`within`, where reads are waited for."""
    found = [
        mean(
            pd.DataFrame(
                {k: chapter.table(experiments.MACHINES, k)[experiments.UNCACHED] for k in keys}
            )
        )
        for keys in (above, below)
    ]
    return statistics.ratio(*found, seed=chapter.parameters.seed)


def waiting(chapter: Chapter) -> Interval:
    """Share of waiting for reads, of a tenth by an index that isn't clustered."""
    return chapter.median(experiments.WAITING, "share", PLAIN)


def tenth_by_index(chapter: Chapter, name: str = experiments.FORCED_READS) -> dict:
    """Whether a tenth by an index that isn't clustered takes no less time than a full scan.

    What is within a twentieth is the same.
    """
    return {NO_LESS: denied(less(chapter.ratio(name, "q6", PLAIN, SEQUENTIAL), margin=ABOUT))}


def in_instructions(counted: pd.Series, scan: str = PLAIN) -> dict[str, bool]:
    """The same in instructions, of `instructions`."""
    return {NO_LESS: counted[scan] >= counted[SEQUENTIAL] / (1 + ABOUT)}


def tenth_otherwise(chapter: Chapter, counted: pd.Series, touched: pd.DataFrame) -> dict:
    """The same by other measures and another scan, which decide nothing, by their words."""
    pages = touched.set_index("query")["pages"]
    of_plain, of_full = (pages[f"{label('q6')}, {scan}"] for scan in (PLAIN, SEQUENTIAL))
    largest = experiments.all_sizes(chapter)[-1]
    return {
        "in instructions": in_instructions(counted),
        "in instructions, by a bitmap scan": in_instructions(counted, BITMAP),
        "in pages": {NO_LESS: of_plain >= of_full},
        "in memory": tenth_by_index(chapter, experiments.forced_at(SPECIFIED)),
        f"in memory, at {largest:,} tuples": tenth_by_index(
            chapter, experiments.forced_at(largest)
        ),
    }


def min_by_index(touched: pd.DataFrame) -> dict[str, Part | bool]:
    """Whether an index leaves MIN as it is, and makes MIN by group dearer: in pages."""
    pages = touched.set_index("query")["pages"][[label(f"q{n}") for n in (20, 23, 21, 24)]]
    scalar, by_index, grouped, grouped_by_index = map(int, pages)
    return {
        "an index saves MIN no page": fact(by_index >= scalar, by_index < scalar),
        "MIN by group touches more pages with an index": fact(
            grouped_by_index > grouped, grouped_by_index < grouped
        ),
    }


def of_changes(changes: pd.DataFrame, above: str, below: str) -> dict[str, float]:
    """What one change touches and logs over what another does, of `changes`."""
    counts = changes.set_index("query")[["pages", "wal_records"]]
    ratios = counts.loc[label(above)] / counts.loc[label(below)]
    return {"pages touched": ratios["pages"], "WAL records": ratios["wal_records"]}


def checking_versions(counted: pd.Series) -> float:
    """Instructions of a scan that has to check versions over those of one that hasn't."""
    return counted[experiments.CHECKED] / counted[experiments.SEEN]


# ---- machines


def two_factors(chapter: Chapter) -> Interval:
    """The factor between the machines of a query that mostly reads over one's that computes."""
    reading, computing = (
        frame[experiments.UNCACHED] / frame[POSTGRESQL]
        for frame in (chapter.table(experiments.MACHINES, key) for key in (READING, COMPUTING))
    )
    return statistics.ratio(reading, computing, seed=chapter.parameters.seed)
