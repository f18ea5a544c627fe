"""The SQL that a page shows of an experiment: its order, and that nothing in it is cut."""

import pytest

from pgrerun.site import excerpts

FILES = {
    "a.index": 'CREATE INDEX "t_v" ON :"relation" (v);',
    "a.look": "SELECT pg_temp.seen(1) FROM t WHERE v = :value::int;",
    "a.table": "-- of two\nCREATE TABLE t (id int,\n    v int);\nINSERT INTO t SELECT :rows;",
    "b.pgbench": "\\set id random(1, :rows)\nBEGIN;\nSELECT 1 FROM t;\nUPDATE t SET v = :id;\nEND;",
    "c.pgbench": "SELECT 2 AS other;",
}
SENT = [
    "BEGIN",
    "CREATE TABLE t (id int, v int)",
    "INSERT INTO t SELECT 700",
    "DO $pgrerun$ BEGIN\nPERFORM 1 FROM t;\nUPDATE t SET v = drawn_id;\nEND $pgrerun$",
    "VACUUM t",
    '-- again\nCREATE INDEX "t_v" ON "t" (v)',
    "EXPLAIN (ANALYZE) SELECT pg_temp.seen(9) FROM t\n  WHERE v = 4::int",
]
BLOCK = "DO $$ BEGIN\n    PERFORM 1;\n    COMMIT;\nEND $$;"


def test_files_come_in_the_order_in_which_they_were_sent():
    whole = ["a.table", "b.pgbench", "a.index", "a.look", "c.pgbench"]
    assert excerpts.in_order(FILES, SENT) == whole
    assert excerpts.in_order(FILES, [*reversed(SENT)]) == [*reversed(whole[:-1]), "c.pgbench"]


def test_what_was_not_sent_comes_last_and_then_what_pgbench_ran():
    scripts = [FILES["c.pgbench"] + "\n", FILES["b.pgbench"]]
    assert excerpts.in_order(FILES, SENT[5:], scripts) == [
        *("a.index", "a.look", "a.table", "c.pgbench", "b.pgbench")
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT count(*) FROM pg_stat_activity;", -1),
        ("SELECT 1 FROM pg_class JOIN pg_index ON true;\nSELECT lp FROM heap_page_items('x');", -1),
        ("SELECT set_config(name, 'off', false) FROM pg_settings;", 0),
        ("SELECT pg_buffercache_evict(bufferid) FROM pg_buffercache;", 0),
        ("SELECT 1 FROM pg_class JOIN accounts ON true;", 0),
        ("SELECT 1;", 0),
        ("UPDATE accounts SET aid = 1 FROM pg_class;", 0),
    ],
)
def test_what_only_measures_comes_after_what_is_measured(text, place):
    files = {"measures": text, **FILES}
    sent = [*text.split("\n"), *SENT]
    order = excerpts.in_order(files, sent, [FILES["c.pgbench"]])
    assert order.index("measures") == place % len(files)


@pytest.mark.parametrize(
    ("text", "wholes"),
    [
        ("SELECT 1;\n\n-- two\nSELECT 2;", ["SELECT 1;", "-- two\nSELECT 2;"]),
        ("SELECT 1;  -- one\nSELECT\n  2", ["SELECT 1;  -- one", "SELECT\n  2"]),
        ("SELECT 1;\n-- of what comes next", ["SELECT 1;"]),
        (f"SELECT 1;\n{BLOCK}\nSELECT 2;", ["SELECT 1;", BLOCK, "SELECT 2;"]),
        (FILES["b.pgbench"], [FILES["b.pgbench"]]),
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


def test_an_excerpt_ends_between_statements():
    files = {"a": "SELECT 1;\n" * 4, "b": f"{BLOCK}\n" * 3}
    shown = excerpts.excerpt(files, ["a", "b"], set(), 8)
    assert shown == "SELECT 1;\n" * 4 + f"\n{BLOCK}\n{excerpts.MORE}"
    assert excerpts.excerpt(files, ["a", "b"], set(), 7) == "SELECT 1;\n" * 4 + (
        f"\n{BLOCK}\n{excerpts.MORE}"
    )
    assert excerpts.excerpt(files, ["a", "b"], set(), 6) == "SELECT 1;\n" * 4 + excerpts.MORE
    assert excerpts.excerpt(files, ["b"], set(), 2) == f"{BLOCK}\n{excerpts.MORE}"
    assert excerpts.excerpt(files, ["a"], set(), 4) == ("SELECT 1;\n" * 4).strip()


def test_what_the_page_shows_above_is_named_in_its_place():
    files = {name: f"SELECT '{name}';" for name in "abcdef"}
    assert excerpts.excerpt(files, list("abcdef"), set("abcde"), 8) == (
        "-- shown above: a, b, c and 2 more\n\nSELECT 'f';"
    )
    assert excerpts.excerpt(files, list("fab"), {"a"}, 8) == (
        "SELECT 'f';\n\n-- shown above: a\n\nSELECT 'b';"
    )
    assert excerpts.excerpt(files, list("ab"), set("abc"), 8) == ""
    assert excerpts.excerpt({}, [], set(), 8) == ""
