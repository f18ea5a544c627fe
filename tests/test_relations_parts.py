"""PARTS of 1981: the same tuples in PostgreSQL and by DuckDB, and the inserts of the memorandum."""

import pytest

from pgrerun.errors import ParameterError
from pgrerun.lab.relations import Parts


@pytest.mark.parametrize(
    "parts", [Parts(210), Parts(wide=True), Parts(7, wide=True), Parts(40_000)]
)
def test_every_engine_has_the_same_tuples(connection, parts):
    parts.load(connection, "parts_of_1981", "hash")
    ordered = "SELECT pnum, pname, color, weight, qoh FROM parts_of_1981 ORDER BY ctid"
    stored = connection.execute(ordered).fetchall()
    computed = [row[:5] for row in parts.rows()]
    assert stored == computed
    # what is inserted after the load meets the pages of tuples with the same pnum
    assert len({row[0] for row in computed}) == parts.loaded


def test_the_inserts_meet_pages_all_over_the_relation_and_none_twice():
    parts = Parts(wide=True)
    assert parts.loaded == 3230
    pages = [(row[0] - 1) // 5 for row in list(parts.rows())[parts.loaded :]]
    assert len(set(pages)) == 130 and min(pages) < 20 and max(pages) > 620


def test_few_parts_are_black_and_there_is_at_least_one_part():
    rows = list(Parts().rows())
    assert 0.08 < sum(row[2] == "black" for row in rows) / len(rows) < 0.12
    with pytest.raises(ParameterError, match="at least one"):
        Parts(0)


def test_somebody_elses_parts_are_left_alone(connection):
    connection.execute("CREATE TABLE parts_of_1981 (kept) AS SELECT 7")
    with pytest.raises(Exception, match="left alone"):
        Parts(1).load(connection, "parts_of_1981")
    assert connection.execute("SELECT kept FROM parts_of_1981").fetchall() == [(7,)]
