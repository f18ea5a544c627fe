"""Plan diagrams: which plan the optimizer takes over a grid of two selectivities.

After Reddy and Haritsa, "Analyzing plan diagrams of database query optimizers", VLDB 2005, whose
tool was Picasso.
"""

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments import scans
from pgrerun.chapters.optimizer.variants import CONSTANT, NONE, SQL
from pgrerun.lab.instruments import plans

INDENT = "· "  # spaces at a line's start would be trimmed when the chart is drawn


def axis(points: int) -> list[float]:
    """Selectivities in equal steps of their square root: denser where few tuples qualify."""
    return [((n + 0.5) / points) ** 2 for n in range(points)]


@experiment()
def diagram(chapter: Chapter) -> pd.DataFrame:
    """The plan at every point of the grid, and with CONSTANT where that can be put back.

    Columns: panel (the fault), x, y (selectivities of tenk1 and tenk2 by unique1, which is indexed
    and not clustered), plan (its tree), title (its join), cost, rows.
    """
    scans.load(chapter.server, "tenk2", queries.large_tuples(), order=2)
    found = []
    with variants.session(chapter.server) as connection:
        for name in (NONE,) if chapter.borrowed else (NONE, CONSTANT):
            with variants.fault(connection, name):
                found.append(_grid(connection, chapter.parameters.grid).assign(panel=name))
    return pd.concat(found, ignore_index=True)


def _grid(connection: psycopg.Connection, edge: int) -> pd.DataFrame:
    points = [(x, y) for y in axis(edge) for x in axis(edge)]
    tuples = queries.large_tuples()
    statements = [
        SQL.text("queries.two_selectivities", bound1=round(x * tuples), bound2=round(y * tuples))
        for x, y in points
    ]
    found = pd.DataFrame(points, columns=["x", "y"])
    each = list(plans.explain_many(connection, statements))
    return found.assign(
        plan=[tree(plan) for plan in each],
        title=[variants.method_of(plan) for plan in each],
        cost=[plan.total_cost for plan in each],
        rows=[plan.rows_estimated for plan in each],
    )


def tree(plan: plans.Plan, depth: int = 0) -> str:
    """A plan as EXPLAIN's tree, one node a line, without costs."""
    words = [plan.node_type, plan.relation, f"using {plan.index}" if plan.index else ""]
    lines = [INDENT * depth + " ".join(filter(None, words))]
    return "\n".join(lines + [tree(child, depth + 1) for child in plan.children])
