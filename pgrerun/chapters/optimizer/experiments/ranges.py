"""The third set of tests, and what an estimate rests on: ranges on one attribute, and on two."""

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.variants import MULTIPLIED, NONE, REPORT, SQL
from pgrerun.lab.instruments import plans
from pgrerun.lab.relations import loading
from pgrerun.lab.server import releases, value
from pgrerun.record import printed
from pgrerun.record.printed.optimizer import interpolated


def estimated(connection: psycopg.Connection, relation: str, where: str) -> int:
    """Rows that the planner expects of a relation under a condition."""
    plan = plans.explain(connection, f"SELECT * FROM {relation} WHERE {where}")
    return int(plan.rows_estimated)


def actual(connection: psycopg.Connection, relation: str, where: str) -> int:
    """Rows that there are."""
    return value(connection, int, f"SELECT count(*) FROM {relation} WHERE {where}")


@experiment(claims=["lai-079", "lai-080", "lai-082"])
def estimates(chapter: Chapter) -> pd.DataFrame:
    """Estimated rows and costs of the four queries, a row each (q1 to q4).

    Columns: qualification, rows, rows in 1990 (by Figure 3.13), cost in 1990 (as printed), rows
    here, cost here.
    """
    in_print = printed.derived("optimizer_ranges")
    with variants.session(chapter.server) as connection:
        found = _four(connection, "here")
    found.insert(2, "rows in 1990", in_print["product_tuples"].round().astype(int))
    found.insert(3, "cost in 1990", in_print["cost"])
    return found


@experiment(claims=["lai-081", "lai-083"])
def multiplied(chapter: Chapter) -> pd.DataFrame:
    """The same on a server that has the fault of 1990 again.

    Columns: qualification, rows, rows by Figure 3.13, rows with the fault, cost with the fault.
    """
    in_print = printed.derived("optimizer_ranges")
    with (
        variants.session(chapter.cluster()) as connection,
        variants.fault(connection, MULTIPLIED),
    ):
        found = _four(connection, "with the fault")
    found.insert(2, "rows by Figure 3.13", in_print["product_tuples"])
    return found


def _four(connection: psycopg.Connection, where: str) -> pd.DataFrame:
    """Figure 2.6's queries: qualification, rows, and the rows and cost that are expected."""
    rows = {}
    for key, statement in queries.ranges().items():
        plan = plans.explain(connection, statement)
        count = value(connection, int, queries.counted(statement))
        expected = int(plan.rows_estimated), plan.total_cost
        rows[key] = (queries.qualification(statement), count, *expected)
    columns = ["qualification", "rows", f"rows {where}", f"cost {where}"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


@experiment()
def sweep(chapter: Chapter, width: int = 2) -> pd.DataFrame:
    """A one-tuple range moved through the relation, with the fault where it can be put back.

    Columns: fault, bound, rows, cost.
    """
    rows = []
    able = releases.writes(chapter.server.version, "ALTER OPERATOR ... SET")
    with variants.session(chapter.server) as connection:
        for name in (NONE, MULTIPLIED) if able and not chapter.borrowed else (NONE,):
            with variants.fault(connection, name):
                for lower in range(100, queries.large_tuples() - 1, 400):
                    bounds = {"attribute": "unique2", "lower": lower, "upper": lower + width}
                    query = SQL.text("queries.range", relation=REPORT, **bounds)
                    plan = plans.explain(connection, query)
                    rows.append((name, lower, plan.rows_estimated, plan.total_cost))
    return pd.DataFrame(rows, columns=["fault", "bound", "rows", "cost"])


# ---- interpolation between the least and the greatest value

UNIFORM, SKEWED = "even", "skewed"  # attributes: every value once; a few values very often
TARGETS = {1: "histogram, 1 part", 10: "histogram, 10 parts", 100: "histogram, 100 parts"}
FIGURE = "the extremes alone, by hand"


@experiment(claims=["lai-066", "lai-067"])
def interpolation(chapter: Chapter) -> pd.DataFrame:
    """How far estimates of attribute < constant are off: when the server was told the least and the
    greatest value by hand, as in 1990, and when it has gathered histograms.

    Columns: attribute, estimator, constant (share of the greatest value), actual and estimated
    (rows), equation (rows by Figure 3.13), q_error (in either direction, both at least 1).
    """
    tuples, found = queries.large_tuples(), []
    with variants.session(chapter.server) as connection:
        with connection.transaction():
            loading.replace(connection, "spread", SQL.text("relations.spread"))
            SQL.run(connection, "relations.spread_rows", tuples=tuples)
        connection.execute("VACUUM spread")  # counts the rows, and no more
        for target, estimator in {0: FIGURE, **TARGETS}.items():
            for attribute in (UNIFORM, SKEWED):
                query = f"SELECT min({attribute}), max({attribute}) FROM spread"
                least, most = connection.execute(query).fetchone()
                if target:
                    SQL.run(connection, "statistics.gather", attribute=attribute, target=target)
                else:
                    known = {"attribute": attribute, "bounds": f"{{{least},{most}}}"}
                    variants.tell(connection, "extremes", relation="spread", **known)
                for c in (least + (most - least) * step // 100 for step in range(1, 100)):
                    where, equation = f"{attribute} < {c}", interpolated("<", c, least, most)
                    rows = (
                        actual(connection, "spread", where),
                        estimated(connection, "spread", where),
                    )
                    found.append((attribute, estimator, c / most, *rows, tuples * equation))
    columns = ["attribute", "estimator", "constant", "actual", "estimated", "equation"]
    frame = pd.DataFrame(found, columns=columns)
    off = frame["estimated"].clip(lower=1) / frame["actual"].clip(lower=1)
    return frame.assign(q_error=off.where(off >= 1, 1 / off))


@experiment(claims=["lai-065"])
def hidden_constant(chapter: Chapter) -> pd.DataFrame:
    """Rows estimated when the planner sees the constant, and when a generic plan hides it.

    Columns: selectivity, rows, constant seen, constant hidden.
    """
    rows = []
    modes = {"constant seen": "force_custom_plan", "constant hidden": "force_generic_plan"}
    with variants.session(chapter.server) as connection:
        SQL.run(connection, "queries.below", relation=REPORT)
        for tenth in range(1, 10):
            bound = queries.large_tuples() * tenth // 10
            row = {"selectivity": tenth / 10, "rows": bound}
            for title, mode in modes.items():
                connection.execute(f"SET plan_cache_mode = {mode}")
                plan = plans.explain(connection, f"EXECUTE below({bound})")
                row[title] = int(plan.rows_estimated)
            rows.append(row)
    return pd.DataFrame(rows)


# ---- two attributes

# `tenthousand` equals `unique1` in a relation of this size; `twenty` follows from `hundred`, and
# `two` from `four`.
RANGES_OF_TWO = "unique1 < 1000 AND tenthousand < 1000"
CONDITIONS = {
    "unique2 < 1000 AND unique2 < 1000": ("unique2",),
    "hundred < 10 AND twenty < 10": ("hundred", "twenty"),
    "two = 1 AND four = 3": ("two", "four"),
    RANGES_OF_TWO: ("unique1", "tenthousand"),
}
PLAIN = "no extended statistics"
EXTENDED = {"dependencies": "dependencies", "most common values": "mcv"}


@experiment(claims=["lai-083"])
def two_attributes(
    chapter: Chapter, more_conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
) -> pd.DataFrame:
    """Conditions on two attributes that go together.

    `more_conditions` are a reader's, each with its attributes. Columns: condition, rows, and the
    rows estimated without and with extended statistics.
    """
    found = []
    with (
        variants.session(chapter.server) as connection,
        connection.transaction(force_rollback=True),
    ):
        for where, attributes in (CONDITIONS | dict(more_conditions)).items():
            row: dict[str, object] = {"condition": where}
            row["rows"] = actual(connection, REPORT, where)
            row[PLAIN] = estimated(connection, REPORT, where)
            for title, kind in EXTENDED.items():
                with connection.transaction(force_rollback=True):
                    if len(attributes) == 2:
                        together = f"({kind}) ON {', '.join(attributes)} FROM {REPORT}"
                        connection.execute(f"CREATE STATISTICS together {together}")
                        connection.execute(f"ANALYZE {REPORT}")
                    row[title] = estimated(connection, REPORT, where)
            found.append(row)
    return pd.DataFrame(found)
