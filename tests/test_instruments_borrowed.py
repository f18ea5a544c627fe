"""On somebody's server as an ordinary user: what takes more is set aside with its reason.

That counters and loads work there is for the report card, all of whose sections such a user makes.
"""

import pytest
from servers import tell, url_of

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import pages, wal
from pgrerun.lab.server import open_server


@pytest.fixture
def connection(cluster):
    for name in ("pg_walinspect", "pageinspect", "pg_buffercache"):
        cluster.extension(name)
    tell(cluster, "CREATE ROLE reader LOGIN", "GRANT CREATE ON DATABASE postgres TO reader")
    with open_server(url_of(cluster, "reader")) as guest, guest.connect() as found:
        yield found
    tell(cluster, "DROP OWNED BY reader", "DROP ROLE reader")


@pytest.mark.parametrize(
    "look",
    [
        lambda conn: wal.records(conn, "0/1500000", "0/1500100"),
        lambda conn: pages.heap_page(conn, "looked_at", 0),
        lambda conn: pages.evict_all(conn),
    ],
    ids=["WAL", "page", "eviction"],
)
def test_what_takes_a_superuser_says_so(connection, look):
    connection.execute("SET search_path = pgrerun, public")
    connection.execute("CREATE TABLE looked_at (id int)")
    with pytest.raises(CannotMeasure) as missing:
        look(connection)
    assert missing.value.capability == "superuser"
