"""The flame graphs of the chapter."""

import pandas as pd

from pgrerun.chapters.profiling import subsystems
from pgrerun.page import charts, narrate


def flame(stacks: pd.DataFrame, routines: pd.DataFrame, query_set: str) -> charts.Figure:
    """Who calls whom in one query set, by instructions.

    `stacks` has name and instructions, `routines` name, routine, subsystem and share (of all
    instructions), the largest first.
    """
    part_of = routines.drop_duplicates("routine").set_index("routine")["subsystem"]
    last = stacks["name"].str.rpartition(";")[2]
    rows = pd.DataFrame({"stack": stacks["name"], "value": stacks["instructions"].astype(float)})
    rows["group"] = last.map(part_of).fillna(subsystems.NAMES["unknown"])
    costly = [
        f"{row.name} ({narrate.percent(row.share)})"
        for row in routines.head(5)[["name", "share"]].itertuples(index=False)
    ]
    parts = routines.groupby("subsystem")["share"].sum().nlargest(3)
    largest = [f"{part} ({narrate.percent(share)})" for part, share in parts.items()]
    return charts.flame(
        rows,
        charts.Words(
            question=f"Where the instructions of the {query_set} go, and who calls whom",
            caption=(
                f"Most instructions of the {query_set} belong to {narrate.listed(largest)}. The"
                f" costliest routines by themselves are {narrate.listed(costly[:3])}. A frame is as"
                " wide as its share of the instructions, with all that it calls. Click a frame to"
                " look into it, click twice to see all again. Frames too small to be seen are drawn"
                " as part of their caller."
            ),
            name=f"profiling-flame-{query_set}",
            description=(
                f"A flame graph of the instructions of the {query_set}. The routines with most"
                f" instructions of their own: {', '.join(costly)}."
            ),
        ),
        charts.Axis("of all instructions"),
        groups=subsystems.NAMES.values(),
    )
