"""Pages: what a warm transaction touches is exactly known for a B-tree lookup."""

import pytest
from servers import tell

from pgrerun.errors import RerunError, ServerError
from pgrerun.lab.instruments import pages
from pgrerun.lab.server import Cluster

ACCOUNT = """
CREATE TABLE account (id int, balance int, filler char(80)) WITH (fillfactor = 50);
INSERT INTO account SELECT g, 0, 'x' FROM generate_series(1, 20000) g;
-- of three levels
CREATE INDEX account_id ON account (id) WITH (fillfactor = 10);
"""


@pytest.fixture(scope="module")
def server():
    with Cluster(settings={"shared_buffers": "32MB"}) as cluster:
        for name in ("pageinspect", "pg_buffercache", "pg_freespacemap"):
            cluster.extension(name)
        tell(cluster, ACCOUNT, "VACUUM (FREEZE, ANALYZE) account")
        yield cluster


@pytest.fixture
def conn(server):
    with server.connect() as conn:
        yield conn


def test_a_warm_lookup_touches_one_page_per_level_and_one_of_the_heap(server):
    found = pages.touched(server, ["SELECT balance FROM account WHERE id = 12345"])
    levels = ["btree inner", "btree leaf", "btree root", "heap"]
    assert sorted(found["kind"]) == levels and not found["dirty"].any()
    assert set(found["relation"]) == {"account", "account_id"}


def test_an_update_dirties_the_heap_page_alone_if_hot(server):
    def update(conn):
        conn.execute("UPDATE account SET balance = balance + 1 WHERE id = 500")

    found = pages.touched(server, update)
    assert found.loc[found["dirty"], "kind"].tolist() == ["heap"]


def test_a_pool_too_small_is_no_answer():
    small = Cluster(settings={"shared_buffers": "128kB", "max_connections": 10})
    with small, pytest.raises(ServerError, match="larger shared_buffers"):
        pages.touched(small, ["SELECT count(*) FROM pg_attribute"])


def test_two_bits_that_mean_one_thing_together_are_told_as_that(conn):
    conn.execute("VACUUM (FREEZE) account")
    page = pages.heap_page(conn, "account", 0)
    flags = page.loc[page["state"] == "normal", "flags"].iloc[0]
    assert "HEAP_XMIN_FROZEN" in flags
    assert not {"HEAP_XMIN_COMMITTED", "HEAP_XMIN_INVALID"} & set(flags)


def test_free_space_follows_the_fill_factor(conn):
    space = pages.free_space(conn, "account")
    assert 3000 < space["actual"].median() < 5000
    assert (space["recorded"] <= space["actual"] + 64).mean() > 0.9


@pytest.mark.parametrize(
    ("look", "complaint"),
    [
        (lambda conn: pages.heap_page(conn, "nowhere", 0), "does not exist"),
        (lambda conn: pages.heap_page(conn, "account", 10**6), "out of range"),
        (lambda conn: pages.heap_page(conn, "account_id", 1), "isn't a table"),
    ],
)
def test_pages_that_arent_there(conn, look, complaint):
    with pytest.raises(RerunError, match=complaint):
        look(conn)
