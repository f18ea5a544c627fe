"""The first statements of a long text: nothing in them is cut."""

import pytest

from pgrerun.site import excerpts

SCRIPT = "\\set id random(1, :rows)\nBEGIN;\nSELECT 1 FROM t;\nUPDATE t SET v = :id;\nEND;"
BLOCK = "DO $$ BEGIN\n    PERFORM 1;\n    COMMIT;\nEND $$;"


@pytest.mark.parametrize(
    ("text", "wholes"),
    [
        ("SELECT 1;\n\n-- two\nSELECT 2;", ["SELECT 1;", "-- two\nSELECT 2;"]),
        ("SELECT 1;  -- one\nSELECT\n  2", ["SELECT 1;  -- one", "SELECT\n  2"]),
        ("SELECT 1;\n-- of what comes next", ["SELECT 1;"]),
        (f"SELECT 1;\n{BLOCK}\nSELECT 2;", ["SELECT 1;", BLOCK, "SELECT 2;"]),
        (SCRIPT, [SCRIPT]),
        ("\\if :x\nSELECT 1;\n\\endif\nSELECT 2;", ["\\if :x\nSELECT 1;\n\\endif", "SELECT 2;"]),
        ("SELECT 1;\n\\sleep 1 ms\nSELECT 2;", ["SELECT 1;", "\\sleep 1 ms", "SELECT 2;"]),
    ],
)
def test_what_is_one_stays_whole(text, wholes):
    assert excerpts.units(text) == wholes


def test_what_a_text_begins_with_ends_with_a_statement():
    text = f"SELECT 1;\n\n{BLOCK}\nSELECT 2;"
    lines = len([line for line in BLOCK.splitlines() if line.strip()])
    assert excerpts.begin(text, lines) == "SELECT 1;"
    assert excerpts.begin(text, lines + 1) == f"SELECT 1;\n\n{BLOCK}"
    assert excerpts.begin(text, lines + 2) == text
    assert excerpts.begin(BLOCK, lines - 1) == ""
