"""SQL in files: headings, variables as psql writes them, statements one by one."""

import pytest
import sqlparse

from pgrerun.errors import BookError
from pgrerun.lab.statements import Statements, fill, split

FILE = """
-- name: table
CREATE TABLE :"relation" (a int, b text DEFAULT 'x :a y');

-- name: load
-- as many rows as :"no_variable" says
INSERT INTO :"relation" SELECT n::int, :'what' FROM generate_series(1, :rows) AS n;
ANALYZE :"relation";

-- name: block
DO $$ BEGIN FOR n IN 1..:rows LOOP
    PERFORM 1; COMMIT;
END LOOP; END $$;
"""


@pytest.fixture
def statements(tmp_path):
    (tmp_path / "small.sql").write_text(FILE)
    (tmp_path / "plain.sql").write_text("SELECT :x;")
    (tmp_path / "script.pgbench").write_text("\\set x random(1, :rows)\nSELECT :x;\n")
    return Statements(tmp_path)


def test_a_section_is_filled_in_as_psql_would(statements):
    assert statements.text("small.load", relation="t", what="it's", rows=3) == (
        '-- as many rows as :"no_variable" says\n'
        "INSERT INTO \"t\" SELECT n::int, 'it''s' FROM generate_series(1, 3) AS n;\n"
        'ANALYZE "t";'
    )
    assert statements.text("small.table", relation="s.t").startswith('CREATE TABLE "s"."t" (')
    assert [statements.text("plain", x=x) for x in (2.5, None)] == [
        *("SELECT 2.5;", "SELECT NULL;")
    ]
    assert "random(1, :rows)" in statements.script("script")  # which is left to pgbench
    text = fill('DROP TABLE :"name"', {"name": 't"; DROP DATABASE d; --'})
    assert len(sqlparse.split(text)) == 1, "an identifier can hold no statement"


def test_statements_come_one_by_one_and_blocks_stay_whole(statements):
    insert, analyze = statements.each("small.load", relation="t", what="w", rows=3)
    assert insert.endswith("AS n") and analyze == 'ANALYZE "t"'
    (block,) = statements.each("small.block", rows=2)
    assert block.endswith("END $$") and "1..2" in block
    assert split("-- nothing but words\n;") == ()


@pytest.mark.parametrize(
    ("name", "values", "complaint"),
    [
        ("plain", {}, "needs a value for the variable 'x'"),
        ("plain", {"x": "1; DROP TABLE t"}, "is a text: write :'name'"),
        ("small.other", {}, "has nothing called 'other'; it has table, load, block"),
        ("small", {}, "has nothing called ''"),
        ("missing", {}, "can't be read: No such file"),
        ("twice.a", {}, "two sections of one name"),
    ],
)
def test_what_is_wrong_is_named(statements, name, values, complaint):
    twice = "-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;"
    (statements.folder / "twice.sql").write_text(twice)
    with pytest.raises(BookError, match=complaint):
        statements.text(name, **values)
