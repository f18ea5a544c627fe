"""The third set of tests, and what an estimate rests on: ranges on one attribute, and on two."""

import pandas as pd
import psycopg

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.faults import MULTIPLIED, NONE, fault
from pgrerun.chapters.optimizer.queries import counted, large_tuples, ranges, session
from pgrerun.chapters.optimizer.scans import REPORT
from pgrerun.instruments import plans
from pgrerun.published.optimizer import interpolated
from pgrerun.relations import loading


def _where(statement: str) -> str:
    """The qualification of one of Figure 2.6's queries, without the relation's name."""
    return statement.partition(" WHERE ")[2].replace(f"{REPORT}.", "")


def _explained(connection: psycopg.Connection, where: str) -> plans.Plan:
    return plans.explain(connection, f"SELECT * FROM {REPORT} WHERE {where}")


def _actual(connection: psycopg.Connection, where: str, relation: str = REPORT) -> int:
    return connection.execute(f"SELECT count(*) FROM {relation} WHERE {where}").fetchone()[0]


def estimates(chapter: Chapter) -> pd.DataFrame:
    """Estimated rows and costs of the four queries: qualification, rows, in 1990 (tuples by Figure 3.13, and the printed cost), and here."""
    printed = published.derived("optimizer_ranges")
    found = []
    with session(chapter.server) as connection:
        for key, statement in ranges().items():
            plan, actual = plans.explain(connection, statement), connection.execute(counted(statement)).fetchone()[0]
            then = printed.loc[key]
            found.append((_where(statement), actual, round(then["product_tuples"]), then["cost"], int(plan.rows_estimated), plan.total_cost))
    columns = ["qualification", "rows", "rows in 1990", "cost in 1990", "rows here", "cost here"]
    return pd.DataFrame(found, columns=columns, index=list(ranges()))


def multiplied(chapter: Chapter) -> pd.DataFrame:
    """The same on a server that has the fault of 1990 again: qualification, rows, by Figure 3.13, rows and cost here."""
    printed = published.derived("optimizer_ranges")
    found = []
    with session(chapter.cluster()) as connection, fault(connection, MULTIPLIED):
        for key, statement in ranges().items():
            plan, actual = plans.explain(connection, statement), connection.execute(counted(statement)).fetchone()[0]
            found.append((_where(statement), actual, printed.at[key, "product_tuples"], int(plan.rows_estimated), plan.total_cost))
    columns = ["qualification", "rows", "rows by Figure 3.13", "rows with the fault", "cost with the fault"]
    return pd.DataFrame(found, columns=columns, index=list(ranges()))


def product_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether multiplying makes the report's wrong numbers, on paper and in a server."""
    if found is None:
        return None
    printed, said = published.derived("optimizer_ranges"), published.table("optimizer_said")["value"]
    order = lambda costs: costs.sort_values().index.tolist()  # noqa: E731
    products = {"q1": said["product_1"], "q2": said["product_2"]}
    return {
        "the products of the equations are the printed selectivities": all(abs(printed.at[q, "product"] / x - 1) < 0.01 for q, x in products.items()),
        "a server that multiplies estimates these products": bool((found["rows with the fault"] - found["rows by Figure 3.13"].clip(lower=1)).abs().max() <= 1),
        "its costs have the printed order": order(found["cost with the fault"]) == order(printed["cost"]),
    }


def sweep(chapter: Chapter) -> pd.DataFrame:
    """A one-tuple range moved through the relation, as it is and with the fault: columns fault, bound, rows, cost."""
    found = []
    with session(chapter.cluster()) as connection:
        for name in (NONE, MULTIPLIED):
            with fault(connection, name):
                for bound in range(100, large_tuples() - 1, 400):
                    plan = _explained(connection, f"unique2 < {bound + 2} AND unique2 > {bound}")
                    found.append((name, bound, plan.rows_estimated, plan.total_cost))
    return pd.DataFrame(found, columns=["fault", "bound", "rows", "cost"])


def one_row_dearer(found: pd.DataFrame) -> bool:
    """Whether a range of one row costs more than one of five hundred, or of a hundred."""
    cost = found["cost here"]
    return bool(cost["q1"] > cost["q2"] or cost["q3"] > cost["q4"])


def depends_on_bound(found: pd.DataFrame, sweep: pd.DataFrame | None) -> bool:
    """Whether one row costs another number elsewhere, by more than a hundredth."""
    costs = found.loc[["q1", "q3"], "cost here"].tolist()
    if sweep is not None:
        costs += sweep.loc[sweep["fault"] == NONE, "cost"].tolist()
    return max(costs) > 1.01 * min(costs)


def redundant_multiplied(found: pd.DataFrame) -> bool:
    """Whether two bounds in one direction are estimated below the tighter one's rows, by more than a hundredth."""
    return bool((found.loc[["q2", "q4"], "rows here"] < 0.99 * found.loc[["q2", "q4"], "rows"]).any())


# ---- interpolation between the least and the greatest value

_SPREAD = "spread"  # relation
UNIFORM, SKEWED = "even", "skewed"
TARGETS = (1, 10, 100)


def interpolation(chapter: Chapter) -> pd.DataFrame:
    """How far estimates of attribute < constant are off: by Figure 3.13, and by PostgreSQL with histograms of some sizes.

    A row per attribute (`even`: every value once; `skewed`: a few values very often), estimator and constant: attribute,
    estimator, constant (share of the greatest value), actual and estimated (rows), q_error (in either direction, both at least 1).
    """
    tuples, found = large_tuples(), []
    with session(chapter.server) as connection:
        with connection.transaction():
            loading.replace(connection, _SPREAD, f"CREATE TABLE {_SPREAD} ({UNIFORM} int4, {SKEWED} int4) WITH (autovacuum_enabled = off)")
            connection.execute(
                f"INSERT INTO {_SPREAD} SELECT n, floor({tuples} * power((n + 0.5) / {tuples}, 4)) FROM generate_series(0, {tuples - 1}) AS n"
            )
        for attribute in (UNIFORM, SKEWED):
            least, most = connection.execute(f"SELECT min({attribute}), max({attribute}) FROM {_SPREAD}").fetchone()
            constants = [least + (most - least) * step // 100 for step in range(1, 100)]
            actual = {c: _actual(connection, f"{attribute} < {c}", _SPREAD) for c in constants}
            found += [(attribute, FIGURE, c / most, actual[c], tuples * interpolated("<", c, least, most)) for c in constants]
            for target in TARGETS:
                connection.execute(f"ALTER TABLE {_SPREAD} ALTER {attribute} SET STATISTICS {target}")
                connection.execute(f"ANALYZE {_SPREAD}")
                rows = {c: plans.explain(connection, f"SELECT * FROM {_SPREAD} WHERE {attribute} < {c}").rows_estimated for c in constants}
                found += [(attribute, histogram(target), c / most, actual[c], rows[c]) for c in constants]
    frame = pd.DataFrame(found, columns=["attribute", "estimator", "constant", "actual", "estimated"])
    estimated, rows = frame["estimated"].clip(lower=1), frame["actual"].clip(lower=1)
    return frame.assign(q_error=pd.concat([estimated / rows, rows / estimated], axis=1).max(axis=1))


FIGURE = "Figure 3.13"


def histogram(target: int) -> str:
    """Name of PostgreSQL's estimate with a histogram of so many parts."""
    return f"histogram, {target}" + (" part" if target == 1 else " parts")


def worst(found: pd.DataFrame | None, figure_only: bool = False) -> pd.DataFrame | None:
    """The largest and the median q-error of each estimator: attribute, estimator, median, largest."""
    if found is None:
        return None
    rows = found[found["estimator"] == FIGURE] if figure_only else found
    return rows.groupby(["attribute", "estimator"], sort=False)["q_error"].agg(["median", "max"]).rename(columns={"max": "largest"}).reset_index()


def _largest(found: pd.DataFrame, attribute: str, estimator: str = FIGURE) -> float:
    return float(found.loc[(found["attribute"] == attribute) & (found["estimator"] == estimator), "q_error"].max())


def interpolation_facts(found: pd.DataFrame) -> dict[str, bool]:
    """Whether the equations are right where values are even."""
    return {"no estimate on even values is off by more than a hundredth": _largest(found, UNIFORM) <= 1.01}


def evenness_facts(found: pd.DataFrame) -> dict[str, bool]:
    """Whether the equations need even values."""
    return {
        "on even values the equations are right to a hundredth": _largest(found, UNIFORM) <= 1.01,
        "on skewed values they are off by more than a factor of two": _largest(found, SKEWED) > 2,
    }


# ---- a hidden constant


def hidden_constant(chapter: Chapter) -> pd.DataFrame:
    """Rows estimated when the planner sees the constant, and when a generic plan hides it: selectivity, rows, seen, hidden."""
    found = []
    with session(chapter.server) as connection:
        connection.execute(f"PREPARE below(int) AS SELECT * FROM {REPORT} WHERE unique2 < $1")
        for tenth in range(1, 10):
            bound = large_tuples() * tenth // 10
            row = [tenth / 10, bound]
            for mode in ("force_custom_plan", "force_generic_plan"):
                connection.execute(f"SET plan_cache_mode = {mode}")
                row.append(int(plans.explain(connection, f"EXECUTE below({bound})").rows_estimated))
            found.append(row)
    return pd.DataFrame(found, columns=["selectivity", "rows", "constant seen", "constant hidden"])


# ---- two attributes

_PAIRS = {
    "unique2, twice": "unique2 < 1000 AND unique2 < 1000",
    "hundred and twenty": "hundred < 10 AND twenty < 10",
    "two and four": "two = 1 AND four = 3",
    "unique1 and tenthousand": "unique1 < 1000 AND tenthousand < 1000",
}
STATISTICS = {"no extended statistics": None, "dependencies": "dependencies", "most common values": "mcv"}


def two_attributes(chapter: Chapter) -> pd.DataFrame:
    """Conditions on two attributes that go together: condition, rows, and the rows estimated without and with extended statistics.

    `tenthousand` equals `unique1` in a relation of this size; `twenty` follows from `hundred`, and `two` from `four`.
    """
    found = []
    with session(chapter.server) as connection, connection.transaction(force_rollback=True):
        for where in _PAIRS.values():
            row: dict[str, object] = {"condition": where, "rows": _actual(connection, where)}
            names = list(dict.fromkeys(word for word in where.replace("AND", "").split() if word.isidentifier()))
            for title, kind in STATISTICS.items():
                if kind and len(names) == 2:
                    connection.execute(f"CREATE STATISTICS together ({kind}) ON {', '.join(names)} FROM {REPORT}")
                    connection.execute(f"ANALYZE {REPORT}")
                row[title] = int(_explained(connection, where).rows_estimated)
                connection.execute("DROP STATISTICS IF EXISTS together")
            found.append(row)
    return pd.DataFrame(found)


def modification_facts(multiplied: pd.DataFrame | None, pairs: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether what PostgreSQL does about correlated ranges is more than one special case."""
    if multiplied is None or pairs is None:
        return None
    other = pairs.set_index("condition").loc[_PAIRS["unique1 and tenthousand"]]
    known = (multiplied["rows with the fault"] / multiplied["rows"]).between(0.5, 2).all()
    return {
        "ranges are recognized by more than the names of two estimators": bool(known),
        "ranges on two correlated attributes are recognized as well": bool(0.5 <= other["no extended statistics"] / other["rows"] <= 2),
    }
