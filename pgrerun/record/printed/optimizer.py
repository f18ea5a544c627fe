"""The optimizer tests of 1990: what the printed numbers imply, and where they disagree."""

import pandas as pd

from pgrerun.record.printed.reading import Check, cell, table


def interpolated(operator: str, constant: float, least: float, most: float) -> float:
    """Selectivity of `key operator constant` by the equations of Figure 3.13, held between 0 and 1.

    `least` and `most` are the smallest and the largest key. ValueError for an operator that the
    figure hasn't.
    """
    if operator not in ("<", ">"):
        raise ValueError(f"Figure 3.13 has equations for < and >, not for {operator!r}")
    share = (constant - least) / (most - least)
    return min(1.0, max(0.0, share if operator == "<" else 1 - share))


def _seconds(t: pd.DataFrame, prefix: str = "") -> pd.Series:
    return 60 * t[f"{prefix}minutes"] + t[f"{prefix}seconds"]


def _crossing(x: pd.Series, difference: pd.Series) -> float:
    """The x at which `difference` passes from below to above zero, on the straight line between two
    points.
    """
    at = next(i for i in range(1, len(x)) if difference.iloc[i - 1] < 0 <= difference.iloc[i])
    (x0, x1), (d0, d1) = x.iloc[[at - 1, at]], difference.iloc[[at - 1, at]]
    return float(x0 - d0 * (x1 - x0) / (d1 - d0))


def _set1() -> pd.DataFrame:
    """Adds, per step: selectivity, time of both scans (s), and that of the index scan over the
    sequential one.
    """
    t = table("optimizer_set1")
    t["selectivity"] = t.x * cell("optimizer_said", "step", "value")
    t["index_s"], t["seq_s"] = _seconds(t, "index_"), _seconds(t, "seq_")
    t["index_over_seq"] = t.index_s / t.seq_s
    return t


def _revised() -> pd.DataFrame:
    """Adds, per step: selectivity and time (s)."""
    t = table("optimizer_revised")
    t["selectivity"] = t.x * cell("optimizer_said", "step", "value")
    t["time_s"] = _seconds(t)
    return t


def _joins() -> pd.DataFrame:
    """Adds the time (s); none where the print has words."""
    t = table("optimizer_joins")
    t["time_s"] = _seconds(t)
    return t


def _ranges() -> pd.DataFrame:
    """Adds, per query: the selectivity of each bound by Figure 3.13, their product, the right
    selectivity of both together, and what the four rows would have been taken for (tuples).
    """
    t = table("optimizer_ranges")
    tuples = cell("optimizer_said", "distinct", "value")
    ends = (0, tuples - 1)
    t["first"] = [interpolated("<", less, *ends) for less in t.less]
    t["second"] = [interpolated(op, bound, *ends) for op, bound in zip(t.operator, t.bound)]
    t["product"] = t["first"] * t["second"]
    t["right"] = [
        (less - bound - 1) / tuples if op == ">" else min(less, bound) / tuples
        for less, op, bound in zip(t.less, t.operator, t.bound)
    ]
    t["product_tuples"], t["right_tuples"] = t["product"] * tuples, t["right"] * tuples
    return t


DERIVED = {
    "optimizer_set1": _set1,
    "optimizer_revised": _revised,
    "optimizer_joins": _joins,
    "optimizer_ranges": _ranges,
}


def checks() -> list[Check]:
    """Print against print for the optimizer tests."""
    return [*_check_switch(), *_check_times_and_costs(), *_check_ranges(), *_check_relations()]


def _check_switch() -> list[Check]:
    first = DERIVED["optimizer_set1"]()
    revised = DERIVED["optimizer_revised"]()
    said = table("optimizer_said").value
    best = _crossing(first.selectivity, first.index_s - first.seq_s)
    by_index = revised[revised.plan == "index scan"]
    steps = by_index.cost.diff().dropna()
    per_unit = steps.mean() / said.step
    seq_cost = first.seq_cost.iloc[0]
    planned = by_index.selectivity.iloc[0] + (seq_cost - by_index.cost.iloc[0]) / per_unit
    return [
        Check(
            "3.3.1, the best switch",
            f"{said.best_switch:g}",
            f"{best:.2f}",
            agrees=abs(best - said.best_switch) < 0.05,
            note="Where the times of Figure 3.12 cross, on straight lines between its points.",
        ),
        Check(
            "3.3.1, the switch after the correction",
            f"over {said.revised_switch:g}",
            f"{planned:.2f}",
            agrees=planned > said.revised_switch,
            note=(
                "Where the costs of Figure 3.14 cross. The figure itself has a sequential scan at"
                f" {revised.selectivity[revised.plan != 'index scan'].min():g}."
            ),
        ),
        Check(
            "Figure 3.14, the cost of a tenth more",
            f"{steps.iloc[0]:.1f}",
            f"{steps.min():.1f} to {steps.max():.1f}",
            agrees=bool(steps.max() - steps.min() < 0.001),
            note="The calculated cost of the index scan is a straight line.",
        ),
    ]


def _check_times_and_costs() -> list[Check]:
    first = DERIVED["optimizer_set1"]()
    revised = DERIVED["optimizer_revised"]()
    said = table("optimizer_said").value
    by_index = revised[revised.plan == "index scan"]
    seq_cost = first.seq_cost.iloc[0]
    constant = said.constant_numerator / said.distinct
    same_plan = by_index.index
    return [
        Check(
            "3.3.1, “very close to zero”",
            f"{said.constant_numerator:g} / {said.distinct:,.0f}",
            f"{constant:g}",
            agrees=constant < 0.001,
            note="The selectivity that any range condition had before the correction.",
        ),
        Check(
            "Figure 3.12, the cost of the index scan",
            f"{first.index_cost.iloc[0]:g}",
            f"{seq_cost * constant**2:.3g}",
            agrees=abs(seq_cost * constant**2 / first.index_cost.iloc[0] - 1) < 0.002,
            note=(
                "The cost of the sequential scan, times that selectivity once for each of the"
                " query's two conditions: the “unreasonably small” cost is a product as well, the"
                " third set's fault seen in the first."
            ),
        ),
        Check(
            "Figures 3.12 and 3.14, the same scan timed twice",
            "the same plan",
            (
                f"{(first.index_s[same_plan] / revised.time_s[same_plan]).min():.2f} to "
                f"{(first.index_s[same_plan] / revised.time_s[same_plan]).max():.2f} times as long"
            ),
            agrees=False,
            note=(
                "The index scans of the first run against those of the revised one. The corrections"
                " changed estimates and not the scan, so something else changed too."
            ),
        ),
    ]


def _check_ranges() -> list[Check]:
    ranges = DERIVED["optimizer_ranges"]()
    said = table("optimizer_said").value
    q1 = ranges.loc["q1"]
    q2 = ranges.loc["q2"]
    q3 = ranges.loc["q3"]
    return [
        Check(
            "3.3.3, the product of query 1",
            f"{said.product_1:g}",
            f"{said.below_502 * said.above_500:g}",
            agrees=abs(said.below_502 * said.above_500 - said.product_1) < 1e-9,
            note=f"From the printed factors; Figure 3.13 gives {q1['product']:.4g}.",
        ),
        Check(
            "3.3.3, the product of query 2",
            f"{said.product_2:g}",
            f"{said.below_502**2:g}",
            agrees=abs(said.below_502**2 - said.product_2) < 1e-9,
            note=f"From the printed factor twice; Figure 3.13 gives {q2['product']:.4g}.",
        ),
        Check(
            "3.3.3, the right selectivities",
            f"{said.actual_1:g} and {said.actual_2:g}",
            f"{q1.right:g} and {q2.right:g}",
            agrees=abs(q1.right - said.actual_1) < 1e-9 and abs(q2.right - said.actual_2) < 1e-9,
            note="One tuple and five hundred of ten thousand.",
        ),
        Check(
            "3.3.3, queries 1 and 3",
            f"a factor of {said.factor:g}",
            f"{q1.cost / q3.cost:.2f}",
            agrees=abs(q1.cost / q3.cost - said.factor) < 0.5,
            note="Quotient of their costs.",
        ),
    ]


def _check_relations() -> list[Check]:
    revised = DERIVED["optimizer_revised"]()
    ranges = DERIVED["optimizer_ranges"]()
    said = table("optimizer_said").value
    by_index = revised[revised.plan == "index scan"]
    steps = by_index.cost.diff().dropna()
    per_unit = steps.mean() / said.step
    q1 = ranges.loc["q1"]
    q2 = ranges.loc["q2"]
    slope = (q1.cost - q2.cost) / (said.product_1 - said.product_2)
    return [
        Check(
            "2.4 against Figure 2.6, the relations of the third set",
            f"{said.small_tuples:,.0f} tuples",
            f"{said.distinct:,.0f} tuples",
            agrees=False,
            note=(
                "Section 2.4 runs the third set on the database of the second, whose relations are"
                " the small ones; the queries name tenk1, and the selectivities of section 3.3.3"
                " are of the large one."
            ),
        ),
        Check(
            "Figure 3.14 against Figure 3.16, what a tuple costs",
            f"{per_unit / said.distinct:.3f}",
            f"{slope / said.distinct:.3f}",
            agrees=False,
            note=(
                "Cost per tuple that an index scan was thought to return. By section 4, clustering"
                " was declared by changing the cost function by hand; the two figures can't come"
                " from the same function."
            ),
        ),
    ]
