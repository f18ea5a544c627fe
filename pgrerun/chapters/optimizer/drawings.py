"""What is drawn once: plan diagrams."""

import pandas as pd

from pgrerun.chapters.optimizer.experiments.diagrams import INDENT
from pgrerun.chapters.optimizer.variants import NONE
from pgrerun.page import charts, narrate

_TITLES = {
    True: "The optimizer takes {} as each side of a join is restricted",
    False: "With the selectivity of 1990 it would take {}",
}
_SCANS = {
    "Seq Scan": "full",
    "Index Scan": "index",
    "Index Only Scan": "index",
    "Bitmap Heap Scan": "bitmap",
}


def plan_diagram(found: pd.DataFrame) -> charts.Figure:
    """The plans over the grid of one fault, of rows of the experiment `diagram`."""
    shares = found["plan"].value_counts(normalize=True)
    words = [
        f"{plan.replace(INDENT, '').replace(chr(10), ', ')}: {narrate.percent(share)} of the grid"
        for plan, share in shares.items()
    ]
    here = found["fault"].iloc[0] == NONE
    many = narrate.count(len(shares), "plan")
    return charts.plan_diagram(
        found.assign(title=found["join_by"] + found["plan"].map(scans_of)),
        charts.Words(
            question=_TITLES[here].format(many),
            caption=(
                f"{many} for {narrate.count(len(found), 'pair')} of selectivities, the most"
                f" frequent for {narrate.percent(shares.iloc[0])} of them; none was executed. The"
                " legend names each table with the scan that reads it, second the one that is"
                " hashed or that a nested loop comes back to. Both axes are of the square root."
                " The tooltip gives a region's costs."
            ),
            name="optimizer-plans" if here else "optimizer-plans-1990",
            description=f"{many}. {'; '.join(words)}.",
        ),
        charts.Axis("selectivity on tenk1"),
        charts.Axis("selectivity on tenk2"),
    )


def scans_of(plan: str) -> str:
    """By which scan a plan's tree reads each relation: ", tenk1 full, tenk2 bitmap"."""
    told = []
    for line in plan.replace(INDENT, "").splitlines():
        node = next((node for node in _SCANS if line.startswith(f"{node} ")), None)
        if node:
            relation = line.removeprefix(f"{node} ").partition(" using ")[0]
            told.append(f", {relation} {_SCANS[node]}")
    return "".join(told)
