"""The third set and the faults: what estimates make of ranges."""

import pandas as pd

from pgrerun.chapters.optimizer.experiments import ranges
from pgrerun.chapters.optimizer.experiments.ranges import FIGURE, SKEWED, UNIFORM
from pgrerun.chapters.optimizer.variants import NONE
from pgrerun.record import printed
from pgrerun.record.verdicts import Part, about, supporting

_ESTIMATORS = {"<": "scalarltsel", "<=": "scalarlesel", ">": "scalargtsel", ">=": "scalargesel"}


def wrongly_registered(registered: pd.DataFrame) -> bool:
    """Whether any operator has another's estimator.

    Before PostgreSQL 11, <= and >= shared those of < and >.
    """
    own = registered["operator"].map(_ESTIMATORS)
    shared = registered["operator"].str[0].map(_ESTIMATORS)
    estimator = registered["estimator"]
    return ((estimator != own) & (estimator != shared)).any()


def always_by_index(broken: pd.DataFrame, fault: str = NONE) -> bool:
    """Whether every plan of the sweep is the same one at the same cost."""
    rows = broken[broken["fault"] == fault]
    return rows["planned"].nunique() == 1 and rows["cost"].nunique() == 1


def one_guess(hidden: pd.DataFrame) -> bool:
    """Whether the estimate of a range is the same whatever the constant that the planner sees."""
    return hidden["constant seen"].nunique() == 1


def worst(interpolated: pd.DataFrame) -> pd.DataFrame:
    """The q-errors of each estimator: attribute, estimator, median, largest."""
    errors = interpolated.groupby(["attribute", "estimator"], sort=False)["q_error"]
    found = errors.agg(["median", "max"]).rename(columns={"max": "largest"})
    return found.reset_index()


def worst_of_print(interpolated: pd.DataFrame) -> pd.DataFrame:
    """The same for the report's equations alone."""
    return worst(interpolated[interpolated["estimator"] == FIGURE])


def interpolation_facts(interpolated: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether a server that knows the extremes alone is right where values are even."""
    told = interpolated[interpolated["estimator"] == FIGURE]
    even = told[told["attribute"] == UNIFORM]
    off = (told["estimated"] - told["equation"].clip(lower=1)).abs()
    return {
        "on even values every estimate is right to a row": (
            (even["estimated"] - even["actual"]).abs().max() <= 1
        ),
        "the estimates are those of the equations, to a row": supporting(off.max() <= 1),
    }


def evenness_facts(interpolated: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether such estimates need even values."""
    largest = worst_of_print(interpolated).set_index("attribute")["largest"]
    return {
        "on skewed values estimates are off by more than a factor of two": largest[SKEWED] > 2,
        "on even values by less than a fiftieth": supporting(largest[UNIFORM] < 1.02),
    }


def one_row_dearer(estimates: pd.DataFrame) -> bool:
    """Whether a range of one row costs more than one of five hundred, or of a hundred."""
    cost = estimates["cost here"]
    return cost["q1"] > cost["q2"] or cost["q3"] > cost["q4"]


def depends_on_bound(estimates: pd.DataFrame, sweep: pd.DataFrame) -> bool:
    """Whether one row costs another number elsewhere, by more than a hundredth."""
    costs = estimates.loc[["q1", "q3"], "cost here"].tolist()
    costs += sweep.loc[sweep["fault"] == NONE, "cost"].tolist()
    return max(costs) > 1.01 * min(costs)


def redundant_multiplied(estimates: pd.DataFrame) -> bool:
    """Whether two bounds in one direction are estimated below the tighter one's rows.

    By more than a hundredth.
    """
    rows = estimates.loc[["q2", "q4"]]
    return (rows["rows here"] < 0.99 * rows["rows"]).any()


def product_facts(estimates: pd.DataFrame, multiplied: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether multiplying makes the report's wrong numbers, on paper and in a server."""
    in_print, said = printed.derived("optimizer_ranges"), printed.table("optimizer_said")["value"]
    right = [abs(in_print["product"][f"q{n}"] / said[f"product_{n}"] - 1) < 0.01 for n in (1, 2)]
    then = in_print["cost"].sort_values().index
    with_fault, without = (
        costs.sort_values().index.equals(then)
        for costs in (multiplied["cost with the fault"], estimates["cost here"])
    )
    return {
        "a server that multiplies puts the four costs into the printed order": with_fault,
        "without the fault the four costs have another order": not without,
        "the products of the equations are the printed selectivities": supporting(all(right)),
    }


def unrecognized(pairs: pd.DataFrame) -> dict[str, bool]:
    """What PostgreSQL's modification leaves out: the report's two bounds on one attribute are
    recognized, two attributes that go together aren't.
    """
    other = pairs.set_index("condition").loc[ranges.RANGES_OF_TWO]
    known = about(other[ranges.PLAIN], other["rows"], 1)
    return {"ranges on two correlated attributes are still multiplied": not known}
