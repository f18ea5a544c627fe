"""On somebody's server as an ordinary user: counters and load work, the rest is set aside with its
reason.
"""

import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import pages, pgbench, plans, wal
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
    script = "UPDATE t SET id = id + 0 WHERE id = 7;"
    with guest.connect() as conn, Counters(guest) as probe:
        conn.execute("CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 100) g")
        with probe.measured(conn) as delta:
            result = pgbench.run(guest, script, clients=2, transactions=20)
        found = delta.relations.set_index("relation").loc["t"]
        assert result.transactions == found["updated"] == 40 and found["schema"] == guest.schema
        assert delta.wal_bytes > 0 and delta.reads is not None
        assert plans.explain(conn, "SELECT * FROM t").shape() == "Seq Scan t"


@pytest.mark.parametrize(
    "look",
    [
        lambda conn: wal.records(conn, "0/1500000", "0/1500100"),
        lambda conn: pages.heap_page(conn, "looked_at", 0),
        lambda conn: pages.evict_all(conn),
    ],
    ids=["WAL", "page", "eviction"],
)
def test_what_takes_a_superuser_says_so(guest, look):
    with guest.connect() as conn:
        conn.execute("SET search_path = pgrerun, public")
        conn.execute("CREATE TABLE IF NOT EXISTS looked_at (id int)")
        with pytest.raises(CannotMeasure) as missing:
            look(conn)
    assert missing.value.capability == "superuser"
