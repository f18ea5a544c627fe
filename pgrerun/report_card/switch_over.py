"""Where the planner leaves an index for the sequential scan, and where it should, on somebody's
server: what the optimizer chapter's experiments tell, judged by no claim.
"""

from typing import Any

from pgrerun.chapters.optimizer.experiments import scans
from pgrerun.chapters.optimizer.queries import ATTRIBUTES, CLUSTERED, SHUFFLED, TIMED
from pgrerun.errors import CannotMeasure
from pgrerun.page import narrate
from pgrerun.page.narrate import Sentence
from pgrerun.record.database import Database
from pgrerun.record.statistics import Interval
from pgrerun.report_card.visit import Visit

LAYOUTS = {CLUSTERED: "Rows stored in the index's order", SHUFFLED: "Rows stored in no order"}


def measure(visit: Visit, *, fitting: bool) -> None:
    """Time the scans, as far as the section's time goes, and ask for plans.

    With `fitting` ask also which random_page_cost would fit, which takes hundreds of plans.
    CannotMeasure if the time wasn't enough for one block.
    """
    with visit.watchdog.measuring():
        visit.measure(scans.timed_scans)
    visit.require(scans.timed_scans.name)
    visit.measure(scans.planned_scans, relations=(TIMED,))
    visit.measure(scans.switches, relations=(TIMED,))
    visit.measure(scans.crossings)
    visit.measure(scans.price_of_choice)
    if fitting:
        visit.measure(scans.fitting_costs)


def sides(visit: Visit, found: Database) -> Sentence:
    """On which side of the best switch-over the planner errs, for each layout."""
    told = []
    for layout in ATTRIBUTES:
        here = visit.value(found, f"switches.selectivity[layout = '{layout}']").estimate
        best = visit.value(found, f"crossings.selectivity[layout = '{layout}', cache = 'warm']")
        told.append(f"**{LAYOUTS[layout]}.** {side(here, best)}")
    return Sentence(" ".join(told))


def fitting(found: Database) -> Sentence:
    """Which random_page_cost would put the planned switch-over onto the measured one."""
    fitted = found.query("FROM fitting_costs")
    own = narrate.number(fitted["own"].iloc[0])
    costs = [f"{LAYOUTS[row.layout].lower()}: {_cost(row)}" for row in fitted.itertuples()]
    return Sentence(
        f"The server's `random_page_cost` is {own}. The value at which the planner would switch"
        f" where the two scans are equally fast: {'; '.join(costs)}."
    )


def dearest(visit: Visit, found: Database) -> Sentence:
    """What the worst of the planner's choices costs."""
    choices = found.query(
        "SELECT DISTINCT layout, selectivity, planned_scan, fastest_scan FROM price_of_choice"
    )
    prices = [
        (visit.value(found, f"price_of_choice.planned[{at}] / price_of_choice.fastest[{at}]"), row)
        for row in choices.itertuples()
        for at in [f"layout = '{row.layout}', selectivity = {row.selectivity}"]
    ]
    slower = [(price, row) for price, row in prices if price.enough and price.low > 1]
    if not slower:
        return Sentence(
            "At none of the selectivities was the planned scan significantly slower than the"
            " fastest."
        )
    price, worst = max(slower, key=lambda one: one[0].estimate)
    return Sentence(
        f"The dearest choice: at {narrate.percent(worst.selectivity)} of the rows"
        f" ({LAYOUTS[worst.layout].lower()}) the {worst.planned_scan} that is planned takes"
        f" {narrate.interval(price)} times as long as the {worst.fastest_scan}."
    )


def cold(visit: Visit) -> Sentence | None:
    """Why nothing is told of reading from storage."""
    try:
        visit.measure(scans.cold_scans)  # which takes a restart, that the card abstains from
    except CannotMeasure as reason:
        return narrate.set_aside(scans.cold_scans.name, reason)
    return None


def side(here: float, best: Interval) -> str:
    """On which side of the best switch-over the planned one is, in a sentence."""
    judged = "the planner may be right"
    if best.enough and best.high < here:
        judged = "it stays with the index for too long"
    elif best.enough and best.low > here:
        judged = "it gives the index up too soon"
    return (
        "The planner leaves the index for the sequential scan at"
        f" {narrate.percent(here)} of the rows. With the table in memory the two are equally fast"
        f" at {narrate.interval(best.times(100), '%')} of them: {judged}."
    )


def _cost(row: Any) -> str:
    """A random_page_cost to two digits, and the range that the interval allows."""
    cost, least, most = (
        narrate.number(float(f"{one:.2g}")) if one == one and one else ""
        for one in (row.cost, row.least, row.most)
    )
    if not cost:
        return "none that was tried"
    between = f"from {least or 'the least tried'} to {most or 'the most tried'}"
    return f"{cost} (the interval allows any {between})"
