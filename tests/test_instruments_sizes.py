"""Sizes: pages as the server's own functions and files have them."""

import psycopg
import pytest

from pgrerun.lab.instruments import sizes


@pytest.fixture
def connection(cluster):
    with cluster.connect() as connection:
        connection.execute("CREATE SCHEMA sized")
        connection.execute("SET search_path = sized")
        connection.execute('CREATE TABLE "Odd name" (id int PRIMARY KEY, filler char(500))')
        connection.execute("INSERT INTO \"Odd name\" SELECT g, '' FROM generate_series(1, 150) g")
        connection.execute("CREATE TABLE empty (n int)")
        connection.execute("CREATE VIEW looked AS SELECT 1")
        connection.execute('VACUUM ANALYZE "Odd name"')
        yield connection
        connection.execute("DROP SCHEMA sized CASCADE")


def test_pages_by_relation_and_fork(connection):
    assert sizes.pages(connection, '"Odd name"') == 10  # fifteen tuples a page
    assert sizes.pages_of(connection, ["empty", '"Odd name"', "empty"]) == {
        "empty": 0,
        '"Odd name"': 10,
    }
    forks = {fork: sizes.pages(connection, '"Odd name"', fork) for fork in ("fsm", "vm", "init")}
    assert forks == {"fsm": 3, "vm": 1, "init": 0}


def test_a_schema_has_its_relations_and_no_others(connection):
    found = sizes.in_schema(connection).set_index("relation")
    assert set(found.index) == {"Odd name", "Odd name_pkey", "empty"}
    assert found.loc["Odd name", ["kind", "pages", "tuples"]].tolist() == ["table", 10, 150]
    assert found.loc["Odd name_pkey", ["kind", "table"]].tolist() == ["index", "Odd name"]
    catalogs = sizes.in_schema(connection, "pg_catalog")
    assert catalogs["pages"].is_monotonic_decreasing and "pg_class" in set(catalogs["relation"])


def test_a_relation_that_isnt_there(connection):
    with pytest.raises(psycopg.errors.UndefinedTable):
        sizes.pages(connection, "nowhere")
