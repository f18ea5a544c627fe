"""Section 4: which of its wishes were granted."""

from dataclasses import asdict

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.evidence.scans import sweeps
from pgrerun.chapters.optimizer.experiments.suggestions import ByHand, Declared
from pgrerun.chapters.optimizer.variants import CLUSTERED, COLD, SHUFFLED
from pgrerun.record import statistics
from pgrerun.record.statistics import Interval

_WORDS = {
    "values": "values to be given for one attribute",
    "rows": "rows of the range",
    "unknown": "estimated, nothing known",
    "fed": "estimated, fed by hand",
    "mistaken": "estimated, fed a wrong greatest value",
    "warnings": "warnings about it",
    "analyzed": "estimated after ANALYZE",
    "correlation": "correlation that ANALYZE finds in a relation loaded in order",
    "declarable": "can another one be declared?",
    "unsorted": "is the relation read in order without a sort?",
}


def findings(result: ByHand | Declared) -> pd.DataFrame:
    """What `experiments.suggestions` found, a row per field: finding, value."""
    values = asdict(result)
    if not values.get("warnings", True):
        values["warnings"] = "none"
    rows = [(words, values[field]) for field, words in _WORDS.items() if field in values]
    return pd.DataFrame(rows, columns=["finding", "value"], dtype=object)


def creation_facts(created: pd.DataFrame) -> dict[str, bool]:
    """Whether an index brings the least and the greatest value with it."""
    by_step = created.set_index("step")
    far = (by_step["estimated"] / by_step["rows"] - 1).abs()
    return {
        "CREATE INDEX gathers statistics": by_step.at["CREATE INDEX", "statistics"] > 0,
        "the optimizer takes the greatest value from an index": (
            far["rows added above, CREATE INDEX"] < far["rows added above, no index"]
        ),
    }


def daemon_facts(daemon: pd.DataFrame) -> dict[str, bool]:
    """Whether the daemon gathers statistics and keeps them up."""
    known = daemon["greatest value"] == daemon["known to the optimizer"]
    return {
        "the daemon gathers the extremes of a new relation": known[0],
        "it gathers them again after a change": known[1],
    }


def burden_facts(fed: ByHand) -> dict[str, bool]:
    """What makes it a burden: much to say, nobody checks it, and a command knows it all."""
    near = {rows: abs(rows / fed.rows - 1) < 0.05 for rows in (fed.mistaken, fed.analyzed, fed.fed)}
    return {
        "as much has to be given as in 1990, five values or more": fed.values >= 5,
        "a wrong value is believed without a warning": not near[fed.mistaken] and not fed.warnings,
        "ANALYZE finds the same without being told anything": near[fed.analyzed] and near[fed.fed],
    }


def clustering_facts(laid_out: pd.DataFrame) -> dict[str, bool]:
    """Whether clustered and shuffled tuples cost the same."""
    cost = laid_out.set_index(["relation", "layout"])["cost"]
    return {
        f"{state}: the clustered relation costs what the other one does": (
            0.95 <= cost[state, CLUSTERED] / cost[state, SHUFFLED] <= 1.05
        )
        for state in ("analyzed", "never analyzed")
    }


def cluster_facts(clustered: pd.DataFrame) -> dict[str, bool]:
    """Whether any attribute can be clustered on, and whether the optimizer hears of it."""
    jumps = clustered["jumps after"]
    return {
        f"CLUSTER orders the relation by each of its {len(clustered)} attributes": (
            (jumps == jumps.min()).all()
        ),
        "the optimizer knows the order afterwards": (clustered["correlation after"] > 0.99).all(),
    }


def declared_facts(declared: Declared) -> dict[str, bool]:
    """What became of the wish for a declaration."""
    return {
        "an order can be declared": declared.declarable,
        "without a declaration the order goes unnoticed": declared.correlation < 0.99,
    }


def prices(chapter: Chapter, assumed: pd.DataFrame) -> dict[tuple[str, str], Interval]:
    """What planning with the wrong order costs, by layout and state of the caches.

    Time of the whole sweep with the plans of the wrong assumption over that with the right ones,
    where scans were timed.
    """
    found = {}
    for (layout, cache), seconds in sweeps(chapter).items():
        rows = assumed[assumed["layout"] == layout]
        totals = [
            seconds[list(zip(rows[which], rows["selectivity"], strict=True))].sum(axis=1)
            for which in ("wrong", "right")
        ]
        found[layout, cache] = statistics.ratio(*totals, seed=chapter.parameters.seed)
    return found


def dearest(chapter: Chapter, assumed: pd.DataFrame) -> Interval:
    """The dearer of the two wrong assumptions, cold where that was timed, as in 1990, else warm."""
    found = prices(chapter, assumed)
    cold = [price for (_, cache), price in found.items() if cache == COLD]
    return max(cold or list(found.values()), key=lambda price: price.estimate)
