"""Plan diagrams: which plan the optimizer takes over a grid of two selectivities.

After Reddy and Haritsa, "Analyzing plan diagrams of database query optimizers", VLDB 2005, whose tool was Picasso.
"""

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.faults import CONSTANT, NONE, fault
from pgrerun.chapters.optimizer.queries import JOINS, large_tuples, load_scanned, method_of, session
from pgrerun.chapters.optimizer.scans import REPORT
from pgrerun.instruments import plans

OTHER = "tenk2"


def query(share1: float, share2: float) -> str:
    """Join tenk1 and tenk2, so many of either by unique1, which is indexed and not clustered."""
    bounds = [round(share * large_tuples()) for share in (share1, share2)]
    return (
        f"SELECT * FROM {REPORT} a, {OTHER} b WHERE a.unique2 = b.unique2 AND a.unique1 < {bounds[0]} AND b.unique1 < {bounds[1]}"
    )


def axis(points: int) -> list[float]:
    """Selectivities in equal steps of their square root: denser where few tuples qualify, as plans change there."""
    return [((n + 0.5) / points) ** 2 for n in range(points)]


def diagram(chapter: Chapter) -> pd.DataFrame:
    """The plan at every point of the grid, as the server is, and with the constant selectivity of 1990 where that can be put into it.

    Columns: panel, x, y (selectivities of tenk1 and tenk2), plan (its tree), title (its join), cost, rows.
    """
    load_scanned(chapter.server, OTHER, large_tuples(), order=2)
    with session(chapter.server) as connection:
        found = [_grid(chapter, connection, NONE)]
    if not chapter.borrowed:
        with session(chapter.cluster()) as connection, fault(connection, CONSTANT):
            found.append(_grid(chapter, connection, CONSTANT))
    return pd.concat(found, ignore_index=True)


def _grid(chapter: Chapter, connection: psycopg.Connection, panel: str) -> pd.DataFrame:
    at = axis(chapter.parameters.grid)
    points = [(x, y) for y in at for x in at]
    found = plans.explain_many(connection, [query(x, y) for x, y in points])
    rows = [(panel, x, y, tree(plan), method_of(plan), plan.total_cost, plan.rows_estimated) for (x, y), plan in zip(points, found)]
    return pd.DataFrame(rows, columns=["panel", "x", "y", "plan", "title", "cost", "rows"])


INDENT = "· "  # spaces at a line's start would be trimmed when the chart is drawn


def tree(plan: plans.Plan, depth: int = 0) -> str:
    """A plan as EXPLAIN's tree, one node a line, without costs."""
    name = " ".join(filter(None, [plan.node_type, plan.relation, f"using {plan.index}" if plan.index else ""]))
    return "\n".join([INDENT * depth + name, *(tree(child, depth + 1) for child in plan.children)])


def regions(found: pd.DataFrame) -> pd.DataFrame:
    """How many plans a diagram has, and the share of the grid that each join method takes: panel, plans, then one column per method."""
    titles = found.groupby("panel", sort=False)["title"].value_counts(normalize=True).unstack(fill_value=0.0)
    titles = titles.reindex(columns=[method for method in JOINS if method in titles])
    titles.insert(0, "plans", found.groupby("panel", sort=False)["plan"].nunique())
    return titles.reset_index()
