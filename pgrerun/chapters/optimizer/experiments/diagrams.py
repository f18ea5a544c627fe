"""Plan diagrams: which plan the optimizer takes over a grid of two selectivities.

After Reddy and Haritsa, "Analyzing plan diagrams of database query optimizers", VLDB 2005, whose
tool was Picasso.
"""

from collections.abc import Iterator

from pgrerun.chapters.optimizer import queries, variants
from pgrerun.lab.instruments import plans
from pgrerun.lab.testbed import Row, Testbed, experiment

INDENT = "· "  # spaces at a line's start would be trimmed when the chart is drawn
OTHER = "tenk2"


def axis(points: int) -> list[float]:
    """Selectivities in equal steps of their square root: denser where few tuples qualify."""
    return [((n + 0.5) / points) ** 2 for n in range(points)]


@experiment(units={"plan": "text", "join_by": "text", "cost": "", "rows": "rows"})
def diagram(bed: Testbed) -> Iterator[Row]:
    """The plan at every point of a grid, and with CONSTANT where that can be put back.

    x and y are the selectivities of tenk1 and tenk2 by unique1, which is indexed and not clustered;
    `plan` is its tree, `join_by` its join.
    """
    tuples = queries.LARGE_TUPLES
    points = [(x, y) for y in axis(bed.parameters.grid) for x in axis(bed.parameters.grid)]
    statements = [
        variants.SQL.text(
            "queries.two_selectivities", bound1=round(x * tuples), bound2=round(y * tuples)
        )
        for x, y in points
    ]
    with variants.session(queries.load_scanned(bed, queries.REPORT, OTHER)) as connection:
        for fault in (variants.NONE,) if bed.borrowed else (variants.NONE, variants.CONSTANT):
            with variants.fault(connection, fault):
                for (x, y), plan in zip(points, plans.explain_many(connection, statements)):
                    yield {
                        "fault": fault,
                        "x": x,
                        "y": y,
                        "plan": tree(plan),
                        "join_by": variants.method_of(plan),
                        "cost": plan.total_cost,
                        "rows": plan.rows_estimated,
                    }


def tree(plan: plans.Plan, depth: int = 0) -> str:
    """A plan as EXPLAIN's tree, one node a line, without costs."""
    words = [plan.node_type, plan.relation, f"using {plan.index}" if plan.index else ""]
    lines = [INDENT * depth + " ".join(filter(None, words))]
    return "\n".join(lines + [tree(child, depth + 1) for child in plan.children])
