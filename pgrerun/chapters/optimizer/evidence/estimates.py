"""The third set and the faults: what estimates make of ranges."""

import pandas as pd

from pgrerun.chapters.optimizer.experiments import ranges
from pgrerun.chapters.optimizer.experiments.ranges import FIGURE, SKEWED, UNIFORM
from pgrerun.chapters.optimizer.variants import NONE
from pgrerun.record import printed

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


def interpolation_facts(interpolated: pd.DataFrame) -> dict[str, bool]:
    """Whether the equations are right where values are even."""
    largest = worst_of_print(interpolated).set_index("attribute")["largest"]
    return {"no estimate on even values is off by more than a hundredth": largest[UNIFORM] <= 1.01}


def evenness_facts(interpolated: pd.DataFrame) -> dict[str, bool]:
    """Whether the equations need even values."""
    largest = worst_of_print(interpolated).set_index("attribute")["largest"]
    return {
        "on even values the equations are right to a hundredth": largest[UNIFORM] <= 1.01,
        "on skewed values they are off by more than a factor of two": largest[SKEWED] > 2,
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


def product_facts(multiplied: pd.DataFrame) -> dict[str, bool]:
    """Whether multiplying makes the report's wrong numbers, on paper and in a server."""
    in_print, said = printed.derived("optimizer_ranges"), printed.table("optimizer_said")["value"]
    products = in_print["product"]
    right = [abs(products[f"q{n}"] / said[f"product_{n}"] - 1) < 0.01 for n in (1, 2)]
    expected = multiplied["rows by Figure 3.13"].clip(lower=1)
    order = multiplied["cost with the fault"].sort_values().index
    return {
        "the products of the equations are the printed selectivities": all(right),
        "a server that multiplies estimates these products": (
            (multiplied["rows with the fault"] - expected).abs().max() <= 1
        ),
        "its costs have the printed order": order.equals(in_print["cost"].sort_values().index),
    }


def modification_facts(multiplied: pd.DataFrame, pairs: pd.DataFrame) -> dict[str, bool]:
    """Whether what PostgreSQL does about correlated ranges is more than one special case."""
    other = pairs.set_index("condition").loc[ranges.RANGES_OF_TWO]
    known = (multiplied["rows with the fault"] / multiplied["rows"]).between(0.5, 2).all()
    share = other[ranges.PLAIN] / other["rows"]
    return {
        "ranges are recognized by more than the names of two estimators": known,
        "ranges on two correlated attributes are recognized as well": 0.5 <= share <= 2,
    }
