"""Where the planner leaves an index for the sequential scan, and where it should, on somebody's
server: what the optimizer chapter's experiments tell, judged by no claim.
"""

from pgrerun.chapters.optimizer.experiments import scans
from pgrerun.chapters.optimizer.queries import ATTRIBUTES, TIMED
from pgrerun.errors import CannotMeasure
from pgrerun.page import narrate
from pgrerun.page.narrate import Sentence
from pgrerun.record.database import Database
from pgrerun.record.statistics import Interval
from pgrerun.report_card.visit import Visit


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
        told.append(f"**Tuples {layout}.** {side(here, best)}")
    return Sentence(" ".join(told))


def fitting(found: Database) -> Sentence:
    """Which random_page_cost would put the planned switch-over onto the measured one."""
    fitted = found.query("FROM fitting_costs")
    costs = [
        f"{_cost(row.cost)} (from {_cost(row.least)} to {_cost(row.most)}, tuples {row.layout})"
        for row in fitted.itertuples()
    ]
    return Sentence(
        f"The server's `random_page_cost` is {narrate.number(fitted['own'].iloc[0])}. To have"
        f" the planner switch where the measurement does, it would take: {'; '.join(costs)}."
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
        f"The dearest choice: at a selectivity of {narrate.number(worst.selectivity)} (tuples"
        f" {worst.layout}) the {worst.planned_scan} that is planned takes"
        f" {narrate.interval(price)} times as long as the {worst.fastest_scan}."
    )


def cold(visit: Visit) -> Sentence | None:
    """Why nothing is told of reading from storage."""
    try:
        next(visit.bed.measure(scans.cold_scans, {}))
    except CannotMeasure as reason:
        return narrate.set_aside(scans.cold_scans.name, reason)
    return None


def side(here: float, best: Interval) -> str:
    """On which side of the best switch-over the planned one is, in a sentence."""
    errs = "can't be shown to be wrong"
    if best.enough and best.high < here:
        errs = "stays with the index for too long"
    elif best.enough and best.low > here:
        errs = "gives the index up too soon"
    return (
        f"With the relation in memory the planner, which switches at {narrate.number(here)},"
        f" {errs}: the two scans are equally fast at {narrate.interval(best)}."
    )


def _cost(found: float | None) -> str:
    """A random_page_cost to two digits."""
    return (
        narrate.number(float(f"{found:.2g}")) if found == found and found else "none that was tried"
    )
