"""The second set: what joins cost and take, and which is right."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.experiments import joins
from pgrerun.chapters.optimizer.experiments.faults import UNSIZED
from pgrerun.chapters.optimizer.queries import EQUAL, LARGE, SMALL
from pgrerun.chapters.optimizer.variants import CONSTANT, HASH, JOINS, MERGE, NESTED, NONE
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval


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


def over(chapter: Chapter, query: int, method: str, base: str, size: str = LARGE) -> Interval:
    """Time of one method over that of another for a query."""
    return chapter.ratio(joins.name(size), joins.metric(query), method, base)


def index_gain(chapter: Chapter, size: str = SMALL) -> Interval:
    """Time of query 5's nested loop, which has no B-tree, over that of query 6's, which has."""
    without, with_index = (
        chapter.table(joins.name(size), joins.metric(query))[NESTED] for query in (5, 6)
    )
    return statistics.ratio(without, with_index, seed=chapter.parameters.seed)


def restriction_ratios(chapter: Chapter) -> pd.DataFrame:
    """Time of nested loop and merge join over that of the hash join, by share of the relation.

    Columns: share, method, ratio, low, high.
    """
    rows = []
    for share in joins.SHARES:
        for method in (NESTED, MERGE):
            ratio = chapter.ratio(joins.RESTRICTION, joins.share_metric(share), method, HASH)
            rows.append((share, method, ratio.estimate, ratio.low, ratio.high))
    return pd.DataFrame(rows, columns=["share", "method", "ratio", "low", "high"])


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


def only_nested(planned: pd.DataFrame, elsewhere: pd.DataFrame) -> dict[str, bool]:
    """Whether nothing but a nested loop joins by `<`, here and elsewhere."""
    possible = planned.loc[~planned["query"].isin(EQUAL) & planned["obeyed"], "method"]
    operators = elsewhere.set_index("engine")["join"]
    return {
        "PostgreSQL can be forced to nothing but a nested loop": (possible == NESTED).all(),
        "DuckDB has nothing but a nested loop either": "nested loop" in operators[joins.DUCKDB],
    }


def fault_facts(third: pd.DataFrame) -> dict[str, bool]:
    """Whether each fault alone makes query 3's hash join a nested loop, at the report's size."""
    planned = third[third["tuples"] == third["tuples"].min()].set_index("fault")["planned"]
    words = {"the constant selectivity": CONSTANT, "the missing size": UNSIZED}
    return {
        f"{what} alone leads to a nested loop": planned[fault] == NESTED != planned[NONE]
        for what, fault in words.items()
    }


def method_facts(scans_planned: pd.DataFrame, joins_planned: pd.DataFrame) -> dict[str, bool]:
    """Whether the report's way of testing works.

    Any plan can be had by flags, and the planner's own is the one it thinks cheapest.
    """
    equal = joins_planned[joins_planned["query"].isin(EQUAL)]
    groups = [rows for _, rows in scans_planned.groupby(["layout", "selectivity"])]
    groups += [rows for _, rows in equal.groupby("query")]
    # The planner takes costs within a hundredth for equal, and then looks at the start-up cost
    # (STD_FUZZ_FACTOR in pathnode.c).
    least = [
        rows.loc[rows["chosen"], "cost"].iloc[0] <= 1.01 * rows["cost"].min() for rows in groups
    ]
    return {
        "every scan of the first set can be forced": scans_planned["obeyed"].all(),
        "every join by equality can be forced": equal["obeyed"].all(),
        "left to itself the planner takes the plan that costs least, to a hundredth": all(least),
    }


def regions(diagram: pd.DataFrame) -> pd.DataFrame:
    """How many plans a diagram has, and the share of the grid that each join method takes.

    Columns: panel, plans, one per method.
    """
    by_panel = diagram.groupby("panel", sort=False)
    shares = by_panel["title"].value_counts(normalize=True).unstack(fill_value=0.0)
    shares = shares.reindex(columns=[method for method in JOINS if method in shares])
    shares.insert(0, "plans", by_panel["plan"].nunique())
    return shares.reset_index()
