"""What one page says about pruning and fragmentation."""

import pandas as pd

from pgrerun.chapters.hot.experiments.page import Defragmented, longest_chain
from pgrerun.lab.models.heap_growth import PAGE

NEARLY_FULL = PAGE // 10  # bytes: with less free a visit prunes (heap_page_prune_opt)


def summary(states: pd.DataFrame) -> pd.DataFrame:
    """A row per step: line pointers of each state, heap-only tuples, the longest chain."""
    rows = []
    for title, page in states.groupby("page", sort=False):
        counts = page["state"].value_counts()
        row = {"step": title}
        row |= {state: counts.get(state, 0) for state in ("normal", "redirect", "dead", "unused")}
        row |= {"heap_only": page["heap_only"].sum(), "index_entries": page["entries"].sum()}
        rows.append(row | {"longest_chain": longest_chain(page)})
    return pd.DataFrame(rows)


def pruning(when: pd.DataFrame) -> pd.DataFrame:
    """`experiments.page.pruned_when` in five numbers."""
    by_update = when.set_index("update")
    first = by_update["pruned"].idxmax()
    rows = {
        "updates of one row before the first that pruned": first - 1,
        "free bytes at the last update that pruned nothing": by_update.at[first - 1, "free"],
        "free bytes at the first update that pruned": by_update.at[first, "free"],
        "a tenth of a page, in bytes": NEARLY_FULL,
        "bytes that a new version needs": by_update.at[first, "needed"],
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())})


def when_facts(when: pd.DataFrame) -> dict[str, bool]:
    """Whether updates leave dead versions alone while there is room, and until nothing fits."""
    pruned = when[when["pruned"]]
    roomy = when["free"] >= NEARLY_FULL
    return {
        "an update of a page with room to spare prunes nothing": not when["pruned"][roomy].any(),
        "it prunes only when the new version doesn't fit": (
            (pruned["free"] < pruned["needed"]).all()
        ),
    }


def all_chains_facts(states: pd.DataFrame) -> dict[str, bool]:
    """Of the first SELECT, which reads another row: whether every chain was shortened by it."""
    titles = list(states["page"].unique())
    select = next(number for number, title in enumerate(titles) if "SELECT" in title)
    by_page = states.set_index(["page", "line_pointer"])
    before, after = by_page.loc[titles[select - 1]], by_page.loc[titles[select]]
    roots = before.index[before["old"] & ~before["heap_only"]]
    inside = before.index[before["old"] & before["heap_only"]]
    return {
        "the first line pointer of every chain became a redirect": (
            len(roots) > 1 and (after.loc[roots, "state"] == "redirect").all()
        ),
        "the dead versions inside the chains are gone": (
            (after.loc[inside, "state"] == "unused").all()
        ),
    }


def defragmentation(found: Defragmented) -> pd.DataFrame:
    """`experiments.page.defragmented`, a row per finding."""
    rows = {
        "bytes that dead versions fill between the tuples": found.hole,
        "did a SELECT prune while another session had the page pinned?": found.pinned,
        "did it wait for that session?": found.waited,
        "bytes left between the tuples after a SELECT that had the page alone": found.hole_left,
        "its locks on the table": ", ".join(found.locks),
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())}, dtype=object)


def defragmentation_facts(found: Defragmented) -> dict[str, bool]:
    """Whether row-level fragmentation goes without a lock that keeps anybody out."""
    return {
        "a SELECT leaves no holes": found.hole > 0 and found.hole_left == 0,
        "all it holds on the table is what any SELECT holds": found.locks == ("AccessShareLock",),
    }
