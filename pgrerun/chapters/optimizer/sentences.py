"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.evidence import scans
from pgrerun.chapters.optimizer.experiments.scans import RANDOM_PAGE, cost_of
from pgrerun.chapters.optimizer.variants import CLUSTERED, CONSTANT, NONE, SHUFFLED
from pgrerun.page import narrate
from pgrerun.page.narrate import Sentence
from pgrerun.record import printed


def noise(chapter: Chapter) -> Sentence:
    """The noise floor from the sequential scan that was swept twice."""
    return narrate.noise(scans.noise_floor(chapter))


def planned_switch(planned: dict[str, float]) -> Sentence:
    """Where the planner switches, in print and here, and what order has to do with it."""
    in_print = printed.cell("optimizer_said", "revised_switch", "value")
    what = "selectivity from which on a sequential scan is planned"
    earlier = ": sooner, since the planner knows that the tuples lie apart."
    return narrate.then_and_now(in_print, planned[CLUSTERED], what) + (
        "Where the index order isn't the order of the tuples, the sequential scan is planned from"
        f" {narrate.number(planned[SHUFFLED])} on"
        f"{earlier if planned[SHUFFLED] < planned[CLUSTERED] else '.'}"
    )


def best_switch(best: pd.DataFrame) -> Sentence:
    """Where the sequential scan becomes the faster one, in print and here, clustered."""
    in_print = printed.cell("optimizer_said", "best_switch", "value")
    what = "selectivity from which on the sequential scan is faster"
    said = [
        narrate.then_and_now(in_print, row.interval, f"{what} ({row.cache} here)")
        for row in best[best["layout"] == CLUSTERED].itertuples()
    ]
    return Sentence(" ".join(said))


def reading(chapter: Chapter) -> Sentence:
    """How much of a cold scan's time is reading: whether it computes as the report's did."""
    told = [
        f"{narrate.interval(scans.reading_share(chapter, method))} by {method}"
        for method in (scans.SEQUENTIAL, scans.INDEX)
    ]
    return Sentence(
        "With the relation in no cache, the share of a scan's time that goes into reading from"
        f" storage is {' and '.join(told)}."
    )


def planned_and_best(
    planned: dict[str, float], best: pd.DataFrame, layout: str = CLUSTERED
) -> Sentence:
    """On which side of the best switch-over the planner errs, with the relation in memory."""
    warm = best.set_index(["layout", "cache"]).at[(layout, scans.WARM), "interval"]
    here = planned[layout]
    side = "can't be shown to be wrong"
    if warm.high < here:
        side = "stays with the index for too long"
    elif warm.low > here:
        side = "gives the index up too soon"
    return Sentence(
        f"With the relation in memory the planner, which switches at {narrate.number(here)},"
        f" {side}: the two scans are equally fast at {narrate.interval(warm)}."
    )


def fitting(chapter: Chapter, fitted: pd.DataFrame) -> Sentence:
    """Which random_page_cost would put the planned switch-over onto the measured one."""
    with chapter.server.connect() as connection:
        own = cost_of(connection, RANDOM_PAGE)
    said = []
    for row in fitted.itertuples():
        cost = "no value that was tried does it"
        if pd.notna(row.cost):
            cost = narrate.number(float(f"{row.cost:.2g}"))
        said.append(f"{cost} ({row.layout}, {row.cache})")
    return Sentence(
        f"The server's random_page_cost is {narrate.number(own)}. To have the planner switch where"
        f" the measurement does, it would take: {'; '.join(said)}."
    )


def fitting_means(fitted: pd.DataFrame) -> Sentence:
    """Whether one random_page_cost could serve all."""
    costs = fitted["cost"]
    if costs.notna().all() and costs.max() <= 2 * costs.min():
        return Sentence("One value would serve all of them within a factor of two.")
    return Sentence(
        "No single value serves all: the same number prices the pages of an index that are read in"
        " order, and heap pages that aren't."
    )


def constant(broken: pd.DataFrame) -> Sentence:
    """What the constant selectivity does to the first set."""
    in_print = printed.table("optimizer_set1")
    said = {}
    for fault, rows in broken.groupby("fault"):
        plans, costs = rows["planned"].nunique(), rows["cost"].nunique()
        said[fault] = f"{narrate.count(plans, 'plan')} at {narrate.count(costs, 'cost')}"
    return Sentence(
        f"In the report {narrate.count(len(in_print), 'query', 'queries')} have one plan and one"
        f" cost, {in_print['index_cost'].iloc[0]:g}. PostgreSQL with the fault gives"
        f" {(broken['fault'] == CONSTANT).sum()} queries {said[CONSTANT]}; without it,"
        f" {said[NONE]}."
    )
