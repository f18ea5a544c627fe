"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import math

import pandas as pd

from pgrerun import narrate, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer import joins, scans
from pgrerun.chapters.optimizer.faults import CONSTANT, NONE
from pgrerun.chapters.optimizer.queries import HASH, INDEX, INDEX_ONLY, LARGE, NESTED, REPORT
from pgrerun.chapters.optimizer.scans import CLUSTERED, COLD, COUNTED, SHUFFLED, WARM
from pgrerun.narrate import Sentence


def noise(chapter: Chapter) -> Sentence | None:
    """The noise floor from the sequential scan that was swept twice."""
    both = scans.twins(chapter)
    return None if both is None else narrate.noise(statistics.noise_floor(*both))


def planned_switch(planned: dict[str, float]) -> Sentence:
    """Where the planner switches, in print and here, and what order has to do with it."""
    printed = published.cell("optimizer_said", "revised_switch", "value")
    said = narrate.then_and_now(printed, planned[CLUSTERED], "selectivity from which on a sequential scan is planned")
    other = f"Where the index order isn't the order of the tuples, the sequential scan is planned from {narrate.number(planned[SHUFFLED])} on"
    earlier = ": sooner, since the planner knows that the tuples lie apart." if planned[SHUFFLED] < planned[CLUSTERED] else "."
    return said + f"{other}{earlier}"


def best_switch(chapter: Chapter) -> Sentence | None:
    """Where the sequential scan becomes the faster one, in print and here."""
    printed = published.cell("optimizer_said", "best_switch", "value")
    found = {cache: scans.measured_switch(chapter, CLUSTERED, cache) for cache in (WARM, COLD)}
    said = [
        narrate.then_and_now(printed, x, f"selectivity from which on the sequential scan is faster ({cache} here)") for cache, x in found.items() if x is not None
    ]
    return Sentence(" ".join(said)) if said else None


def index_only(chapter: Chapter) -> Sentence | None:
    """What it is worth to count in the index alone."""
    found = scans.times(chapter, COUNTED, "")
    if found is None:
        return None
    total = lambda method: sum(found[method, selectivity] for selectivity in scans.timed_at(chapter))  # noqa: E731
    ratio = statistics.ratio(total(INDEX_ONLY), total(INDEX), seed=chapter.parameters.seed)
    return narrate.ratio_sentence(ratio, "time to count all ranges", "the index-only scan, a fourth way that came later,", "the index scan")


def planned_and_best(chapter: Chapter, planned: dict[str, float], layout: str = CLUSTERED, method: str = INDEX) -> Sentence | None:
    """On which side of the best switch-over the planner errs; `method` is the scan that the sequential one is compared with."""
    best = scans.measured_switch(chapter, layout, WARM, method)
    if best is None:
        return None
    here = planned[layout]
    side = "stays with the index for too long" if best.high < here else "gives the index up too soon" if best.low > here else "can't be shown to be wrong"
    return Sentence(f"With the relation in memory the planner, which switches at {narrate.number(here)}, {side}: the two scans are equally fast at {narrate.interval(best)}.")


def fitting(chapter: Chapter, fitted: pd.DataFrame) -> Sentence | None:
    """Which random_page_cost would put the planned switch-over onto the measured one."""
    if fitted.empty:
        return None
    with chapter.server.connect() as connection:
        own = float(connection.execute("SHOW random_page_cost").fetchone()[0])
    said = []
    for row in fitted.itertuples():
        where = f"{row.layout}, {row.cache}"
        if row.cost is None or math.isnan(row.cost):
            said.append(f"no value that was tried does it ({where})")
        else:
            said.append(f"{narrate.number(float(f'{row.cost:.2g}'))} ({where})")
    return Sentence(f"The server's random_page_cost is {narrate.number(own)}. To have the planner switch where the measurement does, it would take: {'; '.join(said)}.")


def fitting_means(fitted: pd.DataFrame) -> Sentence | None:
    """Whether one random_page_cost could serve all."""
    costs = fitted["cost"].dropna()
    if fitted.empty:
        return None
    if len(costs) == len(fitted) and costs.max() <= 2 * costs.min():
        return Sentence("One value would serve all of them within a factor of two.")
    return Sentence("No single value serves all: the same number prices the pages of an index that are read in order, and heap pages that aren't.")


def constant(found: pd.DataFrame | None) -> Sentence | None:
    """What the constant selectivity does to the first set."""
    if found is None:
        return None
    broken, whole = (found[found["fault"] == name] for name in (CONSTANT, NONE))
    printed = published.table("optimizer_set1")
    what = f"{narrate.count(broken['planned'].nunique(), 'plan')} at {narrate.count(broken['cost'].nunique(), 'cost')}"
    healthy = f"{narrate.count(whole['planned'].nunique(), 'plan')} at {narrate.count(whole['cost'].nunique(), 'cost')}"
    return Sentence(
        f"In print {narrate.count(len(printed), 'query', 'queries')} have one plan and one cost, {printed['index_cost'].iloc[0]:g}. "
        f"PostgreSQL with the fault gives {len(broken)} queries {what}; without it, {healthy}."
    )


def too_long(found: pd.DataFrame) -> Sentence:
    """The nested loops that were ended, or how long they took."""
    said = []
    for row in found.itertuples():
        if math.isnan(row.seconds):
            said.append(f"that of query {row.query} was ended after {narrate.number(row.limit)} s, {narrate.number(row.least)} times what the hash join takes")
        else:
            said.append(f"that of query {row.query} took {narrate.number(row.seconds)} s, {narrate.number(row.least)} times as long as the hash join")
    return Sentence(f"The nested loops without an index were run once at the larger size: {'; '.join(said)}.")


def compared(chapter: Chapter, query: int, method: str, base: str) -> tuple[statistics.Interval | None, str]:
    """Time of one join method over another's for a query at the larger size, and as a note the same at the report's size."""
    small = joins.over(chapter, query, method, base, REPORT)
    return joins.over(chapter, query, method, base), "" if small is None else f"with relations of the report's size it is {narrate.interval(small)}"


def index_gain(chapter: Chapter) -> tuple[statistics.Interval | None, str]:
    """Time of query 5 over that of query 6 at the report's size, and as a note the same between the larger relations."""
    large = joins.index_gain(chapter, LARGE)
    return joins.index_gain(chapter), "" if large is None else f"with the larger relations, and the same bounds, it is {narrate.interval(large)}"


def tie(chapter: Chapter) -> Sentence | None:
    """Whether nested loop and hash join of query 2 take the same time, as in print."""
    ratio = joins.over(chapter, 2, NESTED, HASH)
    if ratio is None:
        return None
    return Sentence("In print nested loop and hash join of query 2 tie.") + narrate.ratio_sentence(ratio, "time", "the nested loop", "the hash join")


def taken_over(chapter: Chapter, planned: pd.DataFrame) -> Sentence | None:
    """Up to which share the nested loop was faster than the hash join, and up to which it is planned."""
    found = joins.restriction_ratios(chapter)
    if found is None:
        return None
    nested = found[found["method"] == NESTED]
    faster, slower = (nested.loc[where, "share"] for where in (nested["high"] < 1, nested["low"] > 1))
    looped = planned.loc[planned["planned"] == NESTED, "share"]
    said = f"The nested loop was surely faster than the hash join up to a share of {narrate.number(faster.max())}" if len(faster) else "At no share was the nested loop surely faster than the hash join"
    said += f", and surely slower from {narrate.number(slower.min())} on" if len(slower) else ", and at none surely slower"
    return Sentence(f"{said}. The planner takes it " + (f"up to {narrate.number(looped.max())}." if len(looped) else "at none of them."))


def diagram(found: pd.DataFrame | None) -> Sentence | None:
    """How many plans the diagrams have."""
    if found is None:
        return None
    counts = found.groupby("panel", sort=False)["plan"].nunique()
    said = f"The grid of {narrate.count(len(found[found['panel'] == NONE]), 'pair')} of selectivities has {narrate.count(counts[NONE], 'plan')}"
    if CONSTANT not in counts:
        return Sentence(f"{said}.")
    return Sentence(f"{said}. With the constant selectivity of 1990 it has {narrate.count(counts[CONSTANT], 'plan')}.")
