"""The third set of tests, and what an estimate rests on: ranges on one attribute, and on two."""

from collections.abc import Iterator

import psycopg

from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.variants import MULTIPLIED, NONE, SQL
from pgrerun.lab.instruments import plans
from pgrerun.lab.relations import loading
from pgrerun.lab.server import releases, value
from pgrerun.lab.testbed import Row, Testbed, experiment

ESTIMATE = {"rows": "rows", "expected": "rows"}


def estimated(connection: psycopg.Connection, relation: str, where: str) -> int:
    """Rows that the planner expects of a relation under a condition."""
    plan = plans.explain(connection, f"SELECT * FROM {relation} WHERE {where}")
    return int(plan.rows_estimated)


def actual(connection: psycopg.Connection, relation: str, where: str) -> int:
    """Rows that there are."""
    return value(connection, int, f"SELECT count(*) FROM {relation} WHERE {where}")


@experiment(units={"qualification": "text", "cost": ""} | ESTIMATE)
def ranges(bed: Testbed) -> Iterator[Row]:
    """Rows, expected rows and costs of the third set's four queries."""
    with variants.session(queries.load_scanned(bed, queries.REPORT)) as connection:
        yield from _four(connection)


@experiment(units={"qualification": "text", "cost": ""} | ESTIMATE)
def multiplied_ranges(bed: Testbed) -> Iterator[Row]:
    """The same on a server that has the fault of 1990 again."""
    with variants.session(bed.cluster()) as connection:
        queries.load_scanned(bed, queries.REPORT)
        with variants.fault(connection, MULTIPLIED):
            yield from _four(connection)


def _four(connection: psycopg.Connection) -> Iterator[Row]:
    for key, statement in queries.ranges().items():
        plan = plans.explain(connection, statement)
        yield {
            "query": key,
            "qualification": queries.qualification(statement),
            "rows": value(connection, int, queries.counted(statement)),
            "expected": int(plan.rows_estimated),
            "cost": plan.total_cost,
        }


@experiment(units={"expected": "rows", "cost": ""})
def moved_range(bed: Testbed, width: int = 2) -> Iterator[Row]:
    """A range of one tuple moved through the relation, with the fault where it can be put back."""
    able = releases.writes(bed.server.version, "ALTER OPERATOR ... SET") and not bed.borrowed
    with variants.session(queries.load_scanned(bed, queries.REPORT)) as connection:
        for fault in (NONE, MULTIPLIED) if able else (NONE,):
            with variants.fault(connection, fault):
                for lower in range(100, queries.LARGE_TUPLES - 1, 400):
                    bounds = {"attribute": "unique2", "lower": lower, "upper": lower + width}
                    query = SQL.text("queries.range", relation=queries.REPORT, **bounds)
                    plan = plans.explain(connection, query)
                    yield {
                        "fault": fault,
                        "bound": lower,
                        "expected": plan.rows_estimated,
                        "cost": plan.total_cost,
                    }


# ---- interpolation between the least and the greatest value

UNIFORM, SKEWED = "even", "skewed"  # attributes: every value once; a few values very often
PARTS = (1, 10, 100)  # of a histogram


@experiment(
    units={"actual": "rows", "expected": "rows", "equation": "rows", "error_factor": "times"}
)
def interpolation(bed: Testbed) -> Iterator[Row]:
    """How far estimates of attribute < constant are off: when the server was told the least and the
    greatest value by hand (`parts` 0), as in 1990, and when it has gathered a histogram.

    `constant` is the share of the greatest value, `equation` the rows by Figure 3.13; the error is
    in either direction, both at least one row.
    """
    tuples = queries.LARGE_TUPLES
    with variants.session(bed.server) as connection:
        rows = SQL.each("relations.spread_rows", tuples=tuples)
        loading.make(connection, "spread", *SQL.each("relations.spread"), *rows)
        connection.execute("VACUUM spread")  # counts the rows, and no more
        for parts in (0, *PARTS):
            for attribute in (UNIFORM, SKEWED):
                query = f"SELECT min({attribute}), max({attribute}) FROM spread"
                least, most = connection.execute(query).fetchone()
                if parts:
                    SQL.run(connection, "statistics.gather", attribute=attribute, target=parts)
                else:
                    known = {"attribute": attribute, "bounds": f"{{{least},{most}}}"}
                    variants.tell(connection, "extremes", relation="spread", **known)
                for c in (least + (most - least) * step // 100 for step in range(1, 100)):
                    where = f"{attribute} < {c}"
                    found = actual(connection, "spread", where)
                    expected = estimated(connection, "spread", where)
                    off = max(expected, 1) / max(found, 1)
                    yield {
                        "attribute": attribute,
                        "parts": parts,
                        "constant": c / most,
                        "actual": found,
                        "expected": expected,
                        "equation": tuples * (c - least) / (most - least),
                        "error_factor": max(off, 1 / off),
                    }


@experiment(units=ESTIMATE)
def hidden_constant(bed: Testbed) -> Iterator[Row]:
    """Rows expected when the planner sees the constant, and when a generic plan hides it."""
    modes = {True: "force_custom_plan", False: "force_generic_plan"}
    with variants.session(queries.load_scanned(bed, queries.REPORT)) as connection:
        SQL.run(connection, "queries.below", relation=queries.REPORT)
        for tenth in range(1, 10):
            bound = queries.LARGE_TUPLES * tenth // 10
            for seen, mode in modes.items():
                connection.execute(f"SET plan_cache_mode = {mode}")
                plan = plans.explain(connection, f"EXECUTE below({bound})")
                yield {
                    "selectivity": tenth / 10,
                    "seen": seen,
                    "rows": bound,
                    "expected": int(plan.rows_estimated),
                }


# ---- two attributes

# `tenthousand` equals `unique1` in a relation of this size; `twenty` follows from `hundred`, and
# `two` from `four`.
CONDITIONS = {
    "unique2 < 1000 AND unique2 < 1000": ("unique2",),
    "hundred < 10 AND twenty < 10": ("hundred", "twenty"),
    "two = 1 AND four = 3": ("two", "four"),
    "unique1 < 1000 AND tenthousand < 1000": ("unique1", "tenthousand"),
}
NO_STATISTICS = "none"


@experiment(units=ESTIMATE)
def two_attributes(
    bed: Testbed, more_conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
) -> Iterator[Row]:
    """Conditions on two attributes that go together, without and with each kind of extended
    statistics.

    `more_conditions` are a reader's, each with its attributes.
    """
    with (
        variants.session(queries.load_scanned(bed, queries.REPORT)) as connection,
        connection.transaction(force_rollback=True),
    ):
        for where, attributes in (CONDITIONS | dict(more_conditions)).items():
            rows = actual(connection, queries.REPORT, where)
            for kind in (NO_STATISTICS, "dependencies", "mcv"):
                with connection.transaction(force_rollback=True):
                    if kind != NO_STATISTICS and len(attributes) == 2:
                        together = f"({kind}) ON {', '.join(attributes)} FROM {queries.REPORT}"
                        connection.execute(f"CREATE STATISTICS together {together}")
                        connection.execute(f"ANALYZE {queries.REPORT}")
                    expected = estimated(connection, queries.REPORT, where)
                yield {
                    "condition": where,
                    "extended_statistics": kind,
                    "rows": rows,
                    "expected": expected,
                }
