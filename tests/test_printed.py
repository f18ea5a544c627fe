"""The printed tables: typed twice, found in the text, recomputed from each other."""

import csv
import os
import re
from pathlib import Path

import document_text
import duckdb
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


def test_sections_are_found_by_their_headings():
    found = document_text.sections(TEXT)
    assert list(found) == ["", "Abstract", "2.1", "4"]
    assert "40 I/O" in found["2.1"] and "4.66 executor" in found["4"]


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


def test_a_thread_is_divided_into_messages_and_quotes_are_left_out():
    found = document_text.sections(THREAD)
    assert [key for key in found if key] == ["msg 1", "msg 2"]
    assert (
        "90 scaling factor" in found["msg 1"]
        and "90" not in found["msg 2"]
        and "7.5" in found["msg 2"]
    )
    assert states(found["msg 1"], 10) and not states(found["msg 2"], 10)


TALK = """PGCon 10 / 20
1
00:00
Science
Transcript: English
00:22
It takes five minutes, and a half. Am I
muted?
50:04
Scale factor 1000 and 2,142 megabytes, over eighty reads
"""


def test_a_talk_is_divided_at_its_time_stamps():
    found = document_text.sections(TALK)
    assert [key for key in found if key] == ["00:22", "50:04"]
    assert "Am I muted?" in found["00:22"]
    assert (
        states(found["00:22"], 5) and states(found["00:22"], 0.5) and not states(found["50:04"], 5)
    )
    assert states(found["50:04"], 2142) and not states(found["50:04"], 8)


def test_places_are_said_in_words():
    assert printed.cited("3.2.2; Abstract; VI") == "section 3.2.2 and Abstract and section VI"
    assert printed.cited("msg 4; msg 5") == "message 4 and message 5"
    assert printed.cited("24:44; 1:25:02") == "minute 24:44 and minute 1:25:02"


def test_numbers_that_the_text_lacks_are_reported(tmp_path, monkeypatch):
    (tmp_path / "1990-postgres-performance-report.txt").write_text(TEXT)
    (tmp_path / "t.csv").write_text(
        "# document: postgres-1990\n# section: Abstract; 2.1; 4\n"
        "key,tuples,elapsed,rate,reads,said\n"
        "right,10000,7:44,35,80,x\n"
        "wrong,1000,7:45,5,8,x\n"
    )
    monkeypatch.setattr(printed, "DATA", tmp_path)
    missing = document_text.missing_from_text("t", tmp_path)
    assert missing == [
        "wrong.tuples = 1000",
        "wrong.elapsed = 7:45",
        "wrong.rate = 5",
        "wrong.reads = 8",
    ]
    assert not states("1.250", 1.25) and states("is 1.25.", 1.25)


def test_the_documents_are_those_of_the_bibliography():
    bibliography = (printed.DATA.parents[1] / "book" / "references.bib").read_text("utf-8")
    plain = bibliography.replace("{", "").replace("}", "")
    for id, document in printed.DOCUMENTS.items():
        if not document.file:
            continue
        assert str(document.year) in id and str(document.year) in document.name
        assert f"= {document.title}" in plain and f"= {document.year}" in plain
        for author in document.authors.split(", "):
            assert author.split()[-1] in plain
        assert document.address == "" or document.address.startswith("https://")
    assert {printed.source(name).document for name in TABLES} <= set(printed.DOCUMENTS)


def test_another_document_is_a_line_in_the_file(tmp_path):
    lines = (printed.DATA.parent / "documents.csv").read_text("utf-8")
    more = tmp_path / "documents.csv"
    more.write_text(lines + "own-2026,the note of 2026,note.txt,A note,Somebody,2026,\n")
    found = printed.documents(more)
    assert list(found)[:-1] == list(printed.DOCUMENTS)
    assert found["own-2026"] == printed.Document(
        "the note of 2026", "note.txt", "A note", "Somebody", 2026, ""
    )


@pytest.mark.parametrize(
    "line",
    [
        "hot-2007,again,a.txt,A,B,2007,",
        ",no id,a.txt,A,B,2007,",
        "own,no year,a.txt,A,B,soon,",
        "own,,a.txt,A,B,2007,",
        "own,too few",
        "own,too many,a.txt,A,B,2007,,,",
    ],
)
def test_a_damaged_list_of_documents_is_named_with_its_line(tmp_path, line):
    lines = (printed.DATA.parent / "documents.csv").read_text("utf-8")
    damaged = tmp_path / "documents.csv"
    damaged.write_text(f"{lines}{line}\n")
    with pytest.raises(RecordError, match=f"line {len(printed.DOCUMENTS) + 2}"):
        printed.documents(damaged)
    damaged.write_text("id,name\n")
    with pytest.raises(RecordError, match="columns"):
        printed.documents(damaged)


def test_values_are_typed_and_blanks_stay_blank():
    stages = printed.table("tp1_stages")
    assert stages.tp1["one"] == 0.699 and pd.isna(stages.tp1["pool"])
    assert stages.random_probes.tolist() == [True, True, True, False, False]
    assert stages.attrs["source"] == "the POSTGRES report of 1990, section 3.2.2"
    stages.loc["one", "tp1"] = 7  # a copy: the next reader sees the print again
    assert printed.cell("tp1_stages", "one", "tp1") == 0.699


def test_value_column_repeats_what_the_printed_words_say():
    for name in TABLES:
        frame = printed.table(name)
        if "printed" in frame:
            for row in frame.itertuples():
                assert states(row.printed.lower(), row.value), (name, row)


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
    (tmp_path / "broken.csv").write_text(text)
    monkeypatch.setattr(printed, "DATA", tmp_path)
    printed.source.cache_clear()
    printed.read_table.cache_clear()
    with pytest.raises(RecordError, match=complaint) as caught:
        printed.table("broken")
    assert "broken" in str(caught.value)
    printed.source.cache_clear()
    printed.read_table.cache_clear()


def test_derived_columns_follow_from_printed_ones():
    stages, overlap = printed.derived("tp1_stages"), printed.derived("tp1_overlap")
    assert stages.relative["stable"] == pytest.approx(1.7883, abs=1e-4)
    assert stages.pool_kb.tolist() == [128, 128, 384, 384, 384]
    assert stages.cpu_s["one"] == pytest.approx(0.42 / 0.699)
    assert stages.implied_disk["one"] == pytest.approx(25.65 / (0.58 / 0.699))
    assert stages.recomputed_perfect_tp1["two"] == pytest.approx(0.699 / 0.58)
    assert stages.recomputed_perfect_cpu_percent["two"] == pytest.approx(100 * 42 / 58)
    assert overlap.elapsed_s.tolist() == [464, 646]
    assert overlap.shortfall.tolist() == pytest.approx([1, 646 / (2 * 0.57 * 464)])
    assert printed.derived("tp1_relations").implied_pages["branch"] == pytest.approx(21.8)
    assert printed.derived("tp1_machine").equals(printed.table("tp1_machine"))


def test_print_against_print():
    rows = printed.recomputed("tp1").set_index("where")
    assert rows.index.is_unique and rows.note.str.len().min() > 10
    agreeing = rows[rows.agrees].index
    for part in (
        "perfect overlap, throughput",
        "perfect overlap, CPU",
        "six reads",
        "2.2, commands",
    ):
        assert any(part in where for where in agreeing), part
    contradictions = printed.disagreements("tp1").set_index("where")
    assert contradictions.loc["Abstract and 5, “doubled”", ["printed", "recomputed"]].tolist() == [
        "2",
        "1.79",
    ]
    expected = {
        "one backend": "30.9",
        "program alone": "50.1",
        "six writes": "10",
        "pages of a 10-K": "122",
        "pages of branch": "22",
        "CPU time of two": "529 s",
        "single record": "1,200",
    }
    for part, recomputed in expected.items():
        matching = contradictions[contradictions.index.str.contains(part, regex=False)]
        assert recomputed in matching.recomputed.tolist(), part
    assert len(agreeing) + len(contradictions) == len(rows)


def test_the_layout_of_2007_gives_the_printed_blocks():
    growth = printed.derived("hot_growth")
    assert (
        growth.recomputed_initial.tolist()
        == growth.initial_head.tolist()
        == growth.initial_hot.tolist()
    )
    assert growth.one_split_each[["reduced_accounts_pkey", "full_accounts_pkey"]].tolist() == [
        19705,
        19705,
    ]
    # Nine million entries of 16 bytes: 458 on a leaf filled to nine tenths, 355 on a page above
    # filled to seven.
    assert printed.value("entries_per_leaf()") == 458 and printed.value("entries_above()") == 355
    assert printed.value("tuples_per_page(100, 90)") == 57
    assert printed.value("tuples_per_page(100, 100)") == 63


def test_derived_columns_of_the_hot_thread():
    growth, throughput, abalance = (
        printed.derived(f"hot_{x}") for x in ("growth", "throughput", "abalance")
    )
    assert growth.growth_percent_head["reduced_accounts"] == pytest.approx(31.21, abs=0.01)
    assert growth.times_hot[["full_branches", "full_tellers"]].tolist() == [67, 18.4]
    assert growth.increase_ratio["full_accounts_pkey"] == float("inf")
    assert growth.megabytes_head["reduced_accounts"] == 207179 / 128
    assert throughput.over_head.tolist() == pytest.approx(
        [1, 2006.098739 / 1007.451264, 1, 1024 / 976]
    )
    assert throughput.over_full.tolist() == pytest.approx(
        [1007.451264 / 976, 2006.098739 / 1024, 1, 1]
    )
    assert throughput.elapsed_s["reduced_hot"] == pytest.approx(2243.16, abs=0.01)
    assert abalance.over_head.tolist() == pytest.approx(
        [
            448.104436 / 448.120719,
            1,
            363.444429 / 416.659906,
            415.854569 / 416.659906,
            1,
            659.870628 / 321.88984,
            1,
        ]
    )


def test_print_against_print_in_the_hot_thread():
    rows = printed.recomputed("hot").set_index("where")
    assert rows.index.is_unique and rows.note.str.len().min() > 10
    assert rows.agrees.sum() == 8
    contradictions = printed.disagreements("hot").set_index("where").recomputed
    expected = {
        "IO bound": "1,388 MB",
        "easily explains": "4.9 %",
        "removed other": "95.9 % with HOT",
        "small table size": "67 and 18.4 times",
        "beside tellers": "1,813",
        "autovacuum": "every 1,787 s",
        "index on abalance": "416.66 tps",
        "most cases": "105 %",
        "should be close": "14 %",
    }
    for part, recomputed in expected.items():
        assert contradictions[contradictions.index.str.contains(part, regex=False)].tolist() == [
            recomputed
        ], part
    assert len(contradictions) == len(expected)


def test_the_printed_tables_and_their_checks_can_be_queried():
    with duckdb.connect() as connection:
        printed.load(connection)
        for name in TABLES:
            keys = connection.execute(f"SELECT key FROM printed.{name}").fetchall()
            assert [key for (key,) in keys] == printed.table(name).index.tolist(), name
        asked = "SELECT tp1, backends FROM printed.tp1_stages WHERE key IN ('one', 'pool')"
        assert connection.execute(asked).fetchall() == [(0.699, 1), (None, None)]
        asked = "SELECT count(*) FROM printed.checks WHERE chapter = ? AND NOT agrees"
        for chapter in printed.CHAPTERS:
            [(found,)] = connection.execute(asked, [chapter]).fetchall()
            assert found == len(printed.disagreements(chapter)), chapter
        asked = "SELECT DISTINCT document FROM printed.checks WHERE chapter = 'hot'"
        assert connection.execute(asked).fetchall() == [("hot-2007",)]


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


def test_a_check_is_computed_from_cells():
    [found] = printed.evaluate_checks([check()]).itertuples(index=False, name=None)
    assert found[:4] == ("page 1", "0.699 per s", "0.70", True)
    assert not printed.evaluate_checks([check(recomputed="{0.71:g}")]).agrees[0]
    words = printed.evaluate_checks(
        [check(printed=x, recomputed="fast", agrees="") for x in ("fast", "slow")]
    )
    assert words.agrees.tolist() == [True, False]
    rows = {"rows": "tp1_stages WHERE tp1 < 0.9", "place": "{label}", "printed": "{tp1:g}"}
    found = printed.evaluate_checks([check(**rows)])
    assert found["where"].tolist() == ["one backend", "two backends"]
    assert found.agrees.tolist() == [True, False]


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
