"""Plans: shapes as EXPLAIN's text format names them, and what an executed plan tells."""

import pytest

from pgrerun.errors import RerunError
from pgrerun.lab import statement_log
from pgrerun.lab.instruments import plans

RELATIONS = """
CREATE TABLE big AS SELECT g AS id, g % 10 AS ten FROM generate_series(1, 20000) g;
CREATE TABLE small AS SELECT g AS id FROM generate_series(1, 100) g;
CREATE UNIQUE INDEX big_id ON big (id);
"""


@pytest.fixture(scope="module")
def conn(cluster):
    with cluster.connect() as conn:
        conn.execute(f"CREATE SCHEMA planned; SET search_path = planned; {RELATIONS}")
        conn.execute("VACUUM ANALYZE big, small")
        yield conn
        conn.execute("DROP SCHEMA planned CASCADE")


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ("SELECT * FROM big WHERE ten = 3", "Seq Scan big"),
        ("SELECT id FROM big WHERE id = 3", "Index Only Scan big using big_id"),
        ("SELECT * FROM big ORDER BY id DESC", "Index Scan Backward big using big_id"),
        ("SELECT ten, count(*) FROM big GROUP BY ten", "HashAggregate(Seq Scan big)"),
        (
            "SELECT s.id FROM small s LEFT JOIN big b ON b.ten = s.id",
            "Hash Right Join(Seq Scan big, Hash(Seq Scan small))",
        ),
        ("UPDATE big SET ten = 0 WHERE id = 1", "Update big(Index Scan big using big_id)"),
    ],
)
def test_shapes(conn, sql, shape):
    assert plans.explain(conn, sql).shape() == shape


def test_executing_gives_rows_and_buffers_but_leaves_nothing_behind(conn):
    with statement_log.record() as account:
        plan = plans.explain(conn, "UPDATE big SET ten = -1 WHERE id <= 50", execute=True)
    [[told, _]] = account.statements()
    assert told.startswith("EXPLAIN (FORMAT JSON, analyze ON") and told.endswith("id <= 50")
    [scan] = plan.children
    assert scan.rows_actual == 50 and plan.buffers["shared_hit"] > 0
    assert "Actual Total Time" not in scan.properties
    assert conn.execute("SELECT count(*) FROM big WHERE ten = -1").fetchone() == (0,)


def test_estimates_are_judged_in_either_direction(conn):
    # two columns that depend on each other: the planner multiplies their selectivities
    plan = plans.explain(conn, "SELECT * FROM big WHERE ten = id % 10", execute=True)
    assert (
        plan.q_error == pytest.approx(plan.rows_actual / plan.rows_estimated) and plan.q_error > 10
    )
    assert plans.explain(conn, "SELECT * FROM big").q_error is None


def test_many_plans_come_in_order_and_are_those_of_single_explains(conn):
    statements = [f"SELECT * FROM big WHERE id < {bound}" for bound in (1, 10, 1000, 20001)]
    many, single = (
        [(plan.shape(), plan.total_cost) for plan in found]
        for found in (
            plans.explain_many(conn, statements, batch=3),
            [plans.explain(conn, sql) for sql in statements],
        )
    )
    assert many == single and many[0] != many[-1]
    assert list(plans.explain_many(conn, [])) == []


def test_scans_joins_and_page_accesses_of_an_executed_plan(conn):
    sql = "SELECT s.id FROM small s LEFT JOIN big b ON b.ten = s.id"
    plan = plans.explain(conn, sql, execute=True, summary=True)
    assert plan.joins == ["Hash Join"] and plan.planning_ms >= 0 and plan.jit_ms == 0
    pages = "SELECT (pg_relation_size('big') + pg_relation_size('small')) / 8192"
    assert conn.execute(pages).fetchone() == (plan.page_accesses,)
    planned = plans.explain(conn, sql)
    assert (planned.page_accesses, planned.execution_ms, planned.jit_ms) == (None, None, None)
    with pytest.raises(RerunError, match="no scan of nowhere"):
        plan.scan_of("nowhere")
