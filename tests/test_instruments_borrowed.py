"""On somebody's server as an ordinary user: counters and load work, the rest is set aside with its
reason.
"""

import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import machine, pages, pgbench, plans, process_table, wal
from pgrerun.lab.instruments.counters import Counters
from pgrerun.lab.server import Cluster, open_server


@pytest.fixture(scope="module")
def guest():
    with Cluster() as host:
        for name in ("pg_walinspect", "pageinspect", "pg_buffercache"):
            host.extension(name)
        with host.connect() as conn:
            conn.execute("CREATE ROLE reader LOGIN")
            conn.execute("GRANT CREATE ON DATABASE postgres TO reader")
        with open_server(host.conninfo().replace("user=postgres", "user=reader")) as server:
            yield server


def test_an_ordinary_user_counts_and_loads(guest):
    with guest.connect() as conn, Counters(guest) as probe:
        conn.execute("CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 100) g")
        with machine.other_load(guest) as load, probe.measured(conn) as delta:
            result = pgbench.run(
                guest, "UPDATE t SET id = id + 0 WHERE id = 7;", clients=2, transactions=20
            )
        found = delta.relations.set_index("relation").loc["t"]
        assert result.transactions == found["updated"] == 40
        assert found["schema"] == guest.schema
        assert delta.wal_bytes > 0 and delta.reads is not None
        assert plans.explain(conn, "SELECT * FROM t").shape() == "Seq Scan t"
        assert (delta.usage is None) == (load.fraction is None)
        if delta.usage is None:
            with pytest.raises(CannotMeasure) as missing:
                process_table.reconcile(delta)
            assert missing.value.capability == "processes"


def test_what_takes_a_superuser_says_so(guest):
    with guest.connect() as conn:
        conn.execute("SET search_path = pgrerun, public")
        conn.execute("CREATE TABLE IF NOT EXISTS looked_at (id int)")
        for look in (
            lambda: wal.records(conn, "0/1500000", "0/1500100"),
            lambda: pages.resident(conn),
            lambda: pages.heap_page(conn, "looked_at", 0),
            lambda: pages.evict_all(conn),
        ):
            with pytest.raises(CannotMeasure) as missing:
                look()
            assert missing.value.capability == "superuser"
