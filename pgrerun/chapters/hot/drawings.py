"""What is drawn once: a page of a table after every step."""

import pandas as pd

from pgrerun.page import charts, narrate


def page_by_page(steps: pd.DataFrame) -> charts.Figure:
    """The page after every step, of rows of the experiment `page_steps`."""
    states = steps.rename(columns={"leads_to": "to"})
    states["page"] = steps["step"].astype(str) + " " + steps["title"]
    normal = states[states["state"] == "normal"]
    loaded = normal.loc[normal["step"] == normal["step"].min(), "tuple"]
    new = normal[~normal["tuple"].isin(loaded)].drop_duplicates("tuple")
    last = states[states["step"] == states["step"].max()]
    left = last["state"].value_counts()
    return charts.heap_pages(
        states,
        charts.Words(
            question="What becomes of a page while its tuples are updated, read and vacuumed?",
            caption=(
                f"Of {narrate.count(len(new), 'new version')}"
                f" {narrate.number(int(new['heap_only'].sum()))} are heap-only and have no index"
                f" entry; at the end {narrate.number(int(left.get('unused', 0)))} of"
                f" {narrate.count(len(last), 'line pointer')} are free again and"
                f" {narrate.number(int(left.get('redirect', 0)))} redirect. One page after each"
                " step, a box for each line pointer. Arrows lead from a version to the next and"
                " from a redirect to its target; a dashed box is a heap-only tuple; a triangle"
                " marks a line pointer that the primary key points to."
            ),
            name="hot-page",
        ),
    )
