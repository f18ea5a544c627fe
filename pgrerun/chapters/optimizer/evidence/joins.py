"""The second set: what joins cost and take, and which is right."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer import queries
from pgrerun.chapters.optimizer.experiments import joins
from pgrerun.chapters.optimizer.experiments.joins import DUCKDB
from pgrerun.chapters.optimizer.queries import EQUAL, LARGE, SMALL
from pgrerun.chapters.optimizer.variants import HASH, JOINS, NESTED
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, supporting

# In print the fastest: what a query's other methods are compared with.
BASE = {1: HASH, 2: HASH, 4: NESTED}
BEST = 4  # whose base is claimed to be the best, which the fastest other method decides


def chosen(planned: pd.DataFrame) -> pd.Series:
    """The planned method by query, of `experiments.joins.planned`."""
    return planned[planned["chosen"]].set_index("query")["method"]


def choices(planned: pd.DataFrame) -> pd.DataFrame:
    """A row per query: planned in 1990 and here, rows estimated and actual, each method's cost.

    A cost is missing where the method can't be had.
    """
    in_print = printed.derived("optimizer_joins")
    rows = planned[planned["chosen"]].set_index("query")[["method", "rows", "actual"]]
    rows.columns = ["planned here", "rows estimated", "rows"]
    then = in_print[in_print["planned"]].set_index("query")["method"]
    rows.insert(0, "planned in 1990", then)
    costs = planned.pivot(index="query", columns="method", values="cost")[list(JOINS)]
    return rows.join(costs).reset_index()


def over(chapter: Chapter, query: int, method: str, base: str, way: str = SMALL) -> Interval:
    """Time of one method over that of another for a query."""
    return chapter.ratio(joins.name(way), joins.metric(query), method, base)


def _claimed(query: int, ratios: dict[str, Any], size: Callable[[Any], float]) -> dict[str, Any]:
    """Of the BEST query the least ratio decides, and the others are told beside it."""
    least = min(ratios, key=lambda method: size(ratios[method]), default="")
    return {
        method: supporting(ratio) if query == BEST and method != least else ratio
        for method, ratio in ratios.items()
    }


def instructions(executed: pd.DataFrame, query: int) -> dict[str, float | Part]:
    """Instructions of each other method that was counted over those of the BASE, by method."""
    own, base = executed.set_index("query").loc[query].dropna(), BASE[query]
    ratios = {method: own[method] / own[base] for method in own.index if method != base}
    return _claimed(query, ratios, float)


def stored(chapter: Chapter, query: int, way: str = joins.STORED) -> dict[str, Interval | Part]:
    """The same in time, with the result stored, as in the report, or by another way of timing.

    A loop that takes too long isn't among them.
    """
    timed, base = chapter.table(joins.name(way), joins.metric(query)).dropna(axis=1), BASE[query]
    ratios = {method: over(chapter, query, method, base, way) for method in timed if method != base}
    return _claimed(query, ratios, lambda ratio: ratio.estimate)


def compared(chapter: Chapter, *numbers: int) -> Interval:
    """The share of the queries' time that isn't storing the result: the least of all methods.

    Both ways are timed in blocks of their own, so that these are no pairs.
    """
    shares = []
    for query in numbers:
        alone, whole = (
            chapter.table(joins.name(way), joins.metric(query)).dropna(axis=1)
            for way in (SMALL, joins.STORED)
        )
        for method in whole:
            share = statistics.ratio_of_medians(
                alone[method], whole[method], chapter.parameters.seed
            )
            shares.append(share)
    return min(shares, key=lambda share: share.estimate)


def times(chapter: Chapter, query: int) -> dict[str, dict[str, Interval | Part]]:
    """The same without storing, at the report's size and between larger relations."""
    ways = {
        "in time, nothing stored": SMALL,
        f"in time, nothing stored, at {queries.sizes(chapter)[LARGE]:,} tuples": LARGE,
    }
    return {words: stored(chapter, query, way) for words, way in ways.items()}


def index_gain(chapter: Chapter, way: str = joins.STORED) -> Interval:
    """Time of query 5, which has no B-tree, over that of query 6, which has.

    With the result stored, as in print, or by another way of timing.
    """
    five, six = (chapter.table(joins.name(way), joins.metric(n))[NESTED] for n in (5, 6))
    return statistics.ratio(five, six, seed=chapter.parameters.seed)


def pages_gain(touched: pd.DataFrame, without: str = joins.KEPT) -> float:
    """Pages that query 5 touches over those of query 6."""
    pages = touched.set_index("plan")["pages"]
    return pages[without] / pages[joins.INDEXED]


def other_gains(
    chapter: Chapter, touched: pd.DataFrame, executed: pd.DataFrame
) -> dict[str, float | Interval]:
    """The same by what decides nothing: pages, instructions, and time without storing."""
    counted = executed.set_index("query")[NESTED]
    return {
        "in pages": pages_gain(touched),
        "in pages, nothing kept in memory between scans, as in 1990": pages_gain(
            touched, joins.ANEW
        ),
        "in instructions, nothing stored": counted[5] / counted[6],
        "in time, nothing stored": index_gain(chapter, SMALL),
        f"in time, nothing stored, at {queries.sizes(chapter)[LARGE]:,} tuples": index_gain(
            chapter, LARGE
        ),
    }


def regrets(chapter: Chapter, planned: pd.DataFrame, size: str) -> pd.DataFrame:
    """What the planner's choice costs.

    Columns: query, planned, fastest (by median), ratio of their times with low and high.
    """
    methods, rows = chosen(planned), []
    for query in EQUAL:
        times = chapter.table(joins.name(size), joins.metric(query)).dropna(axis=1)
        fastest = times.median().idxmin()
        ratio = over(chapter, query, methods[query], fastest, size)
        rows.append((query, methods[query], fastest, ratio.estimate, ratio.low, ratio.high))
    return pd.DataFrame(rows, columns=["query", "planned", "fastest", "ratio", "low", "high"])


def wrong_choice(planned: pd.DataFrame) -> bool:
    """Whether query 3, a range restriction and no index, is still joined by a nested loop."""
    return chosen(planned)[3] == NESTED


def only_nested(planned: pd.DataFrame, elsewhere: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether nothing but a nested loop joins by `<`, here and elsewhere."""
    possible = planned.loc[~planned["query"].isin(EQUAL) & planned["obeyed"], "method"]
    operators = elsewhere.set_index("engine")["join"]
    return {
        "PostgreSQL can be forced to nothing but a nested loop": (possible == NESTED).all(),
        "no engine here takes another method for it": supporting(
            "nested loop" in operators[DUCKDB]
        ),
    }


def method_facts(scans_planned: pd.DataFrame, joins_planned: pd.DataFrame) -> dict[str, bool]:
    """Whether any plan can be had by flags."""
    equal = joins_planned[joins_planned["query"].isin(EQUAL)]
    return {
        "every scan of the first set can be forced": scans_planned["obeyed"].all(),
        "every join by equality can be forced": equal["obeyed"].all(),
    }


def regions(diagram: pd.DataFrame) -> pd.DataFrame:
    """How many plans a diagram has, and the share of the grid that each join method takes.

    Columns: selectivity (how it is estimated), plans, one per method.
    """
    by_panel = diagram.groupby("panel", sort=False)
    shares = by_panel["title"].value_counts(normalize=True).unstack(fill_value=0.0)
    shares = shares.reindex(columns=[method for method in JOINS if method in shares])
    shares.insert(0, "plans", by_panel["plan"].nunique())
    return shares.rename_axis("selectivity").reset_index()
