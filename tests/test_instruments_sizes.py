"""Sizes: pages as the server's own functions and files have them."""

import psycopg
import pytest

from pgrerun.lab.instruments import sizes

RELATIONS = """
CREATE SCHEMA sized;
SET search_path = sized;
CREATE TABLE "Odd name" (id int PRIMARY KEY, filler char(500));
INSERT INTO "Odd name" SELECT g, '' FROM generate_series(1, 150) g;
CREATE TABLE empty (n int);
CREATE VIEW looked AS SELECT 1;
"""


@pytest.fixture
def connection(cluster):
    with cluster.connect() as connection:
        connection.execute(RELATIONS)
        connection.execute('VACUUM ANALYZE "Odd name"')
        yield connection
        connection.execute("DROP SCHEMA sized CASCADE")


def test_pages_by_relation_and_fork(connection):
    named = sizes.pages_of(connection, ["empty", '"Odd name"', "empty"])
    assert named == {"empty": 0, '"Odd name"': 10}  # fifteen tuples a page
    forks = {fork: sizes.pages(connection, '"Odd name"', fork) for fork in ("main", "fsm", "init")}
    assert forks == {"main": 10, "fsm": 3, "init": 0}
    with pytest.raises(psycopg.errors.UndefinedTable):
        sizes.pages(connection, "nowhere")


def test_a_schema_has_its_relations_and_no_others(connection):
    found = sizes.in_schema(connection).set_index("relation")
    assert set(found.index) == {"Odd name", "Odd name_pkey", "empty"}
    assert found.loc["Odd name", ["kind", "pages", "tuples"]].tolist() == ["table", 10, 150]
    assert found.loc["Odd name_pkey", ["kind", "table"]].tolist() == ["index", "Odd name"]
    assert "pg_class" in set(sizes.in_schema(connection, "pg_catalog")["relation"])
