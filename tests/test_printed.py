"""The printed tables: typed twice, found in the text, recomputed from each other."""

import csv
import os
import re
from pathlib import Path

import document_text
import pandas as pd
import pytest
from document_text import states

from pgrerun.errors import RecordError
from pgrerun.record import printed

TABLES = printed.names()
UNTYPED = {"label", "unit"}  # our words, not the document's


def test_every_table_has_a_second_entry_and_no_entry_lacks_its_table():
    entries = sorted(p.stem for p in (printed.DATA / "second_entry").glob("*.csv"))
    assert entries == TABLES and "tp1_stages" in TABLES


@pytest.mark.parametrize("name", TABLES)
def test_both_transcriptions_agree_cell_by_cell(name):
    first = printed.printed(name)
    second = printed.second_entry(name)
    assert set(first.columns) - UNTYPED == set(second.columns)
    assert set(first.index) == set(second.index)
    second = second.loc[first.index]
    differing = [
        f"{key}.{column}: {first.at[key, column]!r} / {second.at[key, column]!r}"
        for column in second.columns
        for key in first.index
        if first.at[key, column] != second.at[key, column]
    ]
    assert not differing


@pytest.mark.parametrize("name", TABLES)
def test_every_number_stands_in_the_cited_section(name):
    folder = os.environ.get("PGRERUN_DOCUMENTS")
    if not folder:
        pytest.skip("PGRERUN_DOCUMENTS names no folder with the documents' texts")
    assert document_text.missing_from_text(name, Path(folder)) == []


TEXT = """ Abstract
Its rating was dou-
bled to 2.
2.1 Test Environment
a disk of 35 to 40 I/O accesses per sec-
ond and over eighty
 4. Suggestions
4.66 executor
The 10-K relation took 7:44, 1.250 in all, as seen in Figure
3.4. Note that it is slow
"""


THREAD = """Thread: HOT

From
"A Person"
Date:
Ran pgbench -c10 with 90 scaling
factor.

Re: HOT

From
B Person
Date:
> with 90 scaling factor

2 Numbers of mine: -c100 and 7.5
"""


TALK = """PGCon 10 / 20
1
00:00
Science
Transcript: English
00:22
It takes five minutes, and a half. Am I
muted?
50:04
Scale factor 1000 and 2,142 megabytes, over eighty reads of 110,000
"""


@pytest.mark.parametrize(
    ("text", "section", "number", "found"),
    [
        (TEXT, "2.1", 40, True),
        (TEXT, "4", 4.66, True),
        (THREAD, "msg 1", 10, True),
        (THREAD, "msg 1", 90, True),
        (THREAD, "msg 2", 90, False),  # a quotation
        (THREAD, "msg 2", 7.5, True),
        (TALK, "00:22", 5, True),
        (TALK, "00:22", 0.5, True),
        (TALK, "50:04", 5, False),
        (TALK, "50:04", 2142, True),
        (TALK, "50:04", 8, False),
        (TALK, "50:04", 10_000, False),
    ],
)
def test_a_number_stands_in_one_section(text, section, number, found):
    assert states(document_text.sections(text)[section], number) == found


def test_numbers_that_the_text_lacks_are_reported(tmp_path, monkeypatch):
    (tmp_path / "1990-postgres-performance-report.txt").write_text(TEXT)
    (tmp_path / "t.csv").write_text(
        "# document: postgres-1990\n# section: Abstract; 2.1; 4\n"
        "key,tuples,elapsed,rate,reads,said\n"
        "right,10000,7:44,35,80,x\n"
        "wrong,1000,7:45,5,8,x\n"
    )
    monkeypatch.setattr(printed, "DATA", tmp_path)
    wrong = {"tuples": "1000", "elapsed": "7:45", "rate": "5", "reads": "8"}
    assert document_text.missing_from_text("t", tmp_path) == [
        f"wrong.{name} = {value}" for name, value in wrong.items()
    ]


DOCUMENTS = (printed.DATA.parent / "documents.csv").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        *(
            (f"{DOCUMENTS}{line}\n", f"line {len(printed.DOCUMENTS) + 2}")
            for line in (
                "hot-2007,again,a.txt,A,B,2007,",
                ",no id,a.txt,A,B,2007,",
                "own,no year,a.txt,A,B,soon,",
                "own,,a.txt,A,B,2007,",
                "own,too few",
                "own,too many,a.txt,A,B,2007,,,",
            )
        ),
        ("id,name\n", "columns"),
    ],
)
def test_a_damaged_list_of_documents_is_named_with_its_line(tmp_path, text, named):
    damaged = tmp_path / "documents.csv"
    damaged.write_text(text)
    with pytest.raises(RecordError, match=named):
        printed.documents(damaged)


def test_values_are_typed_and_blanks_stay_blank():
    stages = printed.table("tp1_stages")
    assert stages.tp1["one"] == 0.699 and pd.isna(stages.tp1["pool"])
    assert stages.random_probes.tolist() == [True, True, True, False, False]
    stages.loc["one", "tp1"] = 7  # a copy: the next reader sees the print again
    assert printed.cell("tp1_stages", "one", "tp1") == 0.699


def test_value_column_repeats_what_the_printed_words_say():
    said = [printed.table(name) for name in TABLES if "printed" in printed.table(name)]
    rows = [row for frame in said for row in frame.itertuples()]
    assert [row for row in rows if not states(row.printed.lower(), row.value)] == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: printed.table("tp1_stagse"),
        lambda: printed.table("../claims"),
        lambda: printed.cell("tp1_stages", "three", "tp1"),
        lambda: printed.cell("tp1_stages", "one", "tps"),
        lambda: printed.cell("tp1_stages", "pool", "tp1"),
        lambda: printed.cell("tp1_stages", "one", "label"),
        lambda: printed.recomputed("tp2"),
    ],
)
def test_what_isnt_there_is_named(call):
    with pytest.raises(RecordError, match=r"(?s)Tables:|Rows:|doesn't print|Chapters:"):
        call()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\nx,1\n", "source"),
        ("# document: lost-1970\n# section: 1\na,b\nx,1\n", "source"),
        ("# document: postgres-1990\n# section: 1\na,b\nx,1\nx,2\n", "unique"),
        ("# document: postgres-1990\n# section: 1\na,b\nx y,1\n", "x y"),
        ('# document: postgres-1990\n# section: 1\na,b\nx,1,2\nz,"1\n', "readable"),
    ],
)
def test_a_damaged_table_is_named(tmp_path, monkeypatch, text, complaint):
    name = tmp_path.name  # of its own, as what was read of a table is kept
    (tmp_path / f"{name}.csv").write_text(text)
    monkeypatch.setattr(printed, "DATA", tmp_path)
    with pytest.raises(RecordError, match=complaint) as caught:
        printed.table(name)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("table", "column", "expected"),
    [
        ("tp1_stages", "relative", {"stable": 1.78829}),
        ("tp1_stages", "pool_kb", {"one": 128, "stable": 384}),
        ("tp1_stages", "cpu_s", {"one": 0.42 / 0.699}),
        ("tp1_stages", "implied_disk", {"one": 25.65 / (0.58 / 0.699)}),
        ("tp1_stages", "recomputed_perfect_tp1", {"two": 0.699 / 0.58}),
        ("tp1_stages", "recomputed_perfect_cpu_percent", {"two": 100 * 42 / 58}),
        ("tp1_relations", "implied_pages", {"branch": 21.8}),
        ("hot_growth", "growth_percent_head", {"reduced_accounts": 31.2131}),
        ("hot_growth", "times_hot", {"full_branches": 67, "full_tellers": 18.4}),
        ("hot_growth", "increase_ratio", {"full_accounts_pkey": float("inf")}),
        ("hot_growth", "megabytes_head", {"reduced_accounts": 207179 / 128}),
        (
            "hot_growth",
            "one_split_each",
            {"reduced_accounts_pkey": 19705, "full_accounts_pkey": 19705},
        ),
        ("hot_throughput", "elapsed_s", {"reduced_hot": 2243.16}),
        ("scalability_idle", "times_fewer", {"wakeups_after": 28.75}),
        ("scalability_read", "share", {"speedup": 63.7 / 64}),
    ],
)
def test_derived_columns_follow_from_printed_ones(table, column, expected):
    found = printed.derived(table)[column]
    assert found[list(expected)].to_dict() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("table", "column", "expected"),
    [
        ("tp1_overlap", "elapsed_s", [464, 646]),
        ("tp1_overlap", "shortfall", [1, 646 / (2 * 0.57 * 464)]),
        ("hot_throughput", "over_head", [1, 2006.098739 / 1007.451264, 1, 1024 / 976]),
        ("hot_throughput", "over_full", [1007.451264 / 976, 2006.098739 / 1024, 1, 1]),
    ],
)
def test_a_derived_column_compares_the_rows_of_its_table(table, column, expected):
    assert printed.derived(table)[column].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("chapter", "agreeing", "contradictions"),
    [
        (
            "tp1",
            ("perfect overlap, throughput", "perfect overlap, CPU", "six reads", "2.2, commands"),
            {
                "5, “doubled”": "1.79",
                "one backend": "30.9",
                "program alone": "50.1",
                "six writes": "10",
                "pages of a 10-K": "122",
                "pages of branch": "22",
                "CPU time of two": "529 s",
                "single record": "1,200",
            },
        ),
        (
            "hot",
            (),
            {
                "IO bound": "1,388 MB",
                "easily explains": "4.9 %",
                "removed other": "95.9 % with HOT",
                "small table size": "67 and 18.4 times",
                "beside tellers": "1,813",
                "autovacuum": "every 1,787 s",
                "index on abalance": "416.66 tps",
                "most cases": "105 %",
                "should be close": "14 %",
            },
        ),
        (
            "explorations",
            (),
            {
                "small but consistent": "4 and 5 of 5 rounds",
                "suspect": "2 of 5 rounds",
                "number of runs": "5 runs, 3 of them averaged",
                "group by twenty": "117.223 ms",
                "indexed point": "1.821 ms",
                "a pool of": "237 MB",
                "size of hundredktup": "23.7 MB",
                "tenmiltup": "18.6 MB/s",
                "20%": "0.02 %",
                "almost double": "1.77",
                "optimal": "191.674 ms at 30 MB",
                "expectations": "run time will be close",
            },
        ),
        (
            "optimizer",
            ("the best switch", "the cost of the index scan"),
            {
                "switch after the correction": "0.55",
                "same scan timed twice": "1.08 to 1.93 times as long",
                "relations of the third set": "10,000 tuples",
                "what a tuple costs": "0.288",
            },
        ),
    ],
)
def test_print_against_print(chapter, agreeing, contradictions):
    rows = printed.recomputed(chapter).set_index("where")
    assert rows.index.is_unique and rows.note.str.len().min() > 10
    assert len(printed.disagreements(chapter)) == (~rows.agrees).sum() >= len(contradictions)
    assert all(rows[rows.index.str.contains(part)].agrees.any() for part in agreeing)
    wrong = rows[~rows.agrees].recomputed
    for part, recomputed in contradictions.items():
        assert recomputed in wrong[wrong.index.str.contains(part, regex=False)].tolist(), part


def test_the_layout_of_2007_gives_the_printed_blocks():
    growth = printed.derived("hot_growth")
    initial = growth[["recomputed_initial", "initial_head", "initial_hot"]]
    assert (initial.nunique(axis=1) == 1).all()


CHECKED = list(csv.DictReader(printed.CHECKS.read_text("utf-8").splitlines()))


@pytest.mark.parametrize("check", CHECKED, ids=lambda check: check["place"])
def test_print_decides_whether_print_agrees_and_not_the_author(check):
    numbers = "{" in check["printed"] + check["recomputed"]
    assert bool(check["agrees"]) == (numbers or bool(check["rows"]))
    if check["agrees"]:
        expressions = check["agrees"] + check["printed"] + check["recomputed"] + check["rows"]
        assert f"{check['chapter']}_" in expressions
        assert not re.fullmatch(r"(?i)\W*(true|false|\d+ *[<>=]+ *\d+)\W*", check["agrees"])


def check(**cells):
    ours = {"place": "page {tp1_stages.one.backends:g}", "note": "", "rows": ""}
    ours |= {"printed": "{tp1_stages.one.tp1:g} per s", "recomputed": "{0.7:.2f}"}
    return ours | {"agrees": "abs(recomputed / printed - 1) < 0.01"} | cells


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ({}, [("page 1", "0.699 per s", "0.70", True)]),
        ({"recomputed": "{0.71:g}"}, [("page 1", "0.699 per s", "0.71", False)]),
        (
            {"printed": "fast", "recomputed": "fast", "agrees": ""},
            [("page 1", "fast", "fast", True)],
        ),
        (
            {"printed": "slow", "recomputed": "fast", "agrees": ""},
            [("page 1", "slow", "fast", False)],
        ),
        (
            {"rows": "tp1_stages WHERE tp1 < 0.9", "place": "{label}", "printed": "{tp1:g}"},
            [("one backend", "0.699", "0.70", True), ("two backends", "0.893", "0.70", False)],
        ),
    ],
)
def test_a_check_is_computed_from_cells(cells, found):
    rows = printed.evaluate_checks([check(**cells)]).itertuples(index=False, name=None)
    assert [row[:4] for row in rows] == found


@pytest.mark.parametrize(
    "cells",
    [
        {"printed": "{x:g}"},
        {"printed": "{tp1_stages.one.tps:g}"},
        {"rows": "nowhere"},
        {"agrees": "1 +"},
    ],
)
def test_a_damaged_check_is_named(cells):
    with pytest.raises(RecordError, match=r"checks.csv, 'page|no cell tp1_stages.one.tps"):
        printed.evaluate_checks([check(**cells)])
