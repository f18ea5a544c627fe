"""Section 4: which of its wishes were granted."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.evidence.scans import sweeps
from pgrerun.chapters.optimizer.experiments.suggestions import ANALYZED, DECLARED, NEVER
from pgrerun.chapters.optimizer.variants import CLUSTERED, COLD, SHUFFLED, WARM
from pgrerun.record import statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, about, supporting


def creation_facts(created: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether an index brings the least and the greatest value with it."""
    by_step = created.set_index("step")
    expected = by_step["estimated"]
    return {
        "CREATE INDEX gathers statistics": by_step.at["CREATE INDEX", "statistics"] > 0,
        "an index tells the optimizer that there are greater values than it knows of": supporting(
            expected["rows added above, CREATE INDEX"] > expected["rows added above, no index"]
        ),
    }


def daemon_facts(daemon: pd.DataFrame) -> dict[str, bool]:
    """Whether the daemon gathers statistics and keeps them up."""
    known = daemon["greatest value"] == daemon["known to the optimizer"]
    return {
        "the daemon gathers the extremes of a new relation": known[0],
        "the daemon gathers them again after a change": known[1],
    }


def clustering_facts(laid_out: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether clustered and shuffled tuples cost the same, to a twentieth."""
    cost = laid_out.set_index(["relation", "layout"])["cost"]
    same = {
        state: about(cost[state, CLUSTERED], cost[state, SHUFFLED], 0.05)
        for state in (ANALYZED, NEVER)
    }
    one, other = (f"{cost[ANALYZED, layout]:,.0f}" for layout in (CLUSTERED, SHUFFLED))
    return {
        f"once analyzed, a range costs the same in a clustered relation ({one}) as in a shuffled"
        f" one ({other})": same[ANALYZED],
        "it does before it is analyzed": supporting(same[NEVER]),
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


def declared_facts(laid_out: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether an order can be declared, and costs go by it."""
    found = laid_out.set_index(["relation", "layout"])
    cost, analyzed = found["cost"], found.loc[(ANALYZED, CLUSTERED)]
    declared = (DECLARED, CLUSTERED) in cost.index
    return {
        "an order can be declared, and an index scan then costs less": (
            declared and cost[DECLARED, CLUSTERED] < cost[NEVER, CLUSTERED]
        ),
        "ANALYZE finds the order without being told": supporting(analyzed["correlation"] > 0.99),
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


_WRONG = {
    CLUSTERED: "what is clustered taken as not clustered",
    SHUFFLED: "what isn't clustered taken as clustered",
}


def harm(chapter: Chapter, assumed: pd.DataFrame, cache: str = "") -> dict[str, Interval]:
    """`prices` of both wrong assumptions; cold where that was timed, as in 1990, else warm."""
    found = prices(chapter, assumed)
    cache = cache or (COLD if any(state == COLD for _, state in found) else WARM)
    return {words: found[layout, cache] for layout, words in _WRONG.items()}
