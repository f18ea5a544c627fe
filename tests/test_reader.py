"""A stranger's record is data: whatever it holds, it is read, or refused in a sentence."""

import json
import os
import shutil
import socket
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sealed import older, reseal, rewrite

from pgrerun.errors import RecordError
from pgrerun.record import agreement, reader, runs
from pgrerun.record.runs import ENVIRONMENT, OBSERVATIONS, VERDICTS, Run

INTERVAL = {"estimate": 2.0, "low": 1.5, "high": "inf", "n": 7, "confidence": 0.95, "method": "t"}


@pytest.fixture(scope="module")
def in_order(tmp_path_factory):
    """The folder of all records, with one that is in order, of before experiments had tables."""
    records = tmp_path_factory.mktemp("records")
    environment = {"machine": {"cpus": 2}, "server": {"version": "18.6"}}
    with Run.open("theirs", "tp1", key="k", environment=environment, records=records) as run:
        for block in range(3):
            how = {"block": block, "seed": 1, "started_at": "2026-01-02T03:04:05+00:00"}
            run.append("ladder", {"tps": 1.0 + block, "disk": "x", **how})
        run.complete("ladder", {"units": {"tps": "1/s"}})
        run.add_verdict({"claim": "lai-001", "verdict": "holds", "evidence": INTERVAL})
    older(records / "theirs" / "tp1")
    return records


@pytest.fixture
def record(in_order, tmp_path, monkeypatch):
    """A copy of it: the folder of one chapter's record, to be damaged."""
    shutil.copytree(in_order, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    return tmp_path / "theirs" / "tp1"


def write_head(folder, **changes):
    head = json.loads((folder / ENVIRONMENT).read_text())
    (folder / ENVIRONMENT).write_text(json.dumps(head | changes))


def write_verdicts(folder, text):
    (folder / VERDICTS).write_text(text if isinstance(text, str) else json.dumps(text))
    reseal(folder)


def verdict(**more):
    return [{"claim": "lai-001", "verdict": "holds"} | more]


def test_a_record_in_order_is_read(record):
    found = runs.load("theirs", "tp1")
    assert found.observations["value"].tolist() == [1, 2, 3]
    assert found.verdicts[0]["evidence"] == INTERVAL and found.name == "theirs"


# ---- files


def link(target):
    return lambda path: (path.unlink(missing_ok=True), path.symlink_to(target))


def listen(path):
    os.chdir(path.parent)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def grow(path):
    with open(path, "ab") as file:
        file.truncate(reader.MAX_FILE + 1)


FILES = {
    "link to a secret": (ENVIRONMENT, link("/etc/passwd")),
    "link of observations": (OBSERVATIONS, link("/etc/passwd")),
    "another file's link": ("extra.txt", link("/etc/passwd")),
    "dangling link": ("page.ipynb", link("nowhere")),
    "FIFO": (VERDICTS, lambda path: (path.unlink(), os.mkfifo(path))),
    "another FIFO": ("pipe", os.mkfifo),
    "socket": ("socket", listen),
    "folder": ("inner", os.mkdir),
    "huge environment": (ENVIRONMENT, grow),
    "huge page": ("page.ipynb", grow),
}


@pytest.mark.parametrize("case", FILES)
def test_only_regular_files_of_some_size_are_read(record, case, monkeypatch):
    monkeypatch.chdir(record)
    name, damage = FILES[case]
    damage(record / name)
    with pytest.raises(RecordError, match="is no regular file|has more than"):
        runs.load("theirs", "tp1")
    with pytest.raises(RecordError):
        reader.files(record)


def test_too_many_files_are_refused(record):
    for number in range(reader.MAX_FILES):
        (record / f"{number}.txt").touch()
    with pytest.raises(RecordError, match="files"):
        runs.load("theirs")


def test_a_chapter_must_not_be_a_link_to_elsewhere(record, tmp_path):
    (record.parent / "hot").symlink_to(record)
    with pytest.raises(RecordError, match="must not be a link"):
        runs.load("theirs", "hot")
    (tmp_path / "mine").symlink_to(record.parent)  # the reader's own way to a run may be one
    assert runs.load("mine", "tp1").name == "theirs"


# ---- JSON


DEEP = "[" * 100_000 + "]" * 100_000
NESTED = "[" * 50 + "]" * 50

JSON = {
    "no JSON": lambda d: write_verdicts(d, "{"),
    "nothing": lambda d: write_verdicts(d, ""),
    "deep": lambda d: write_verdicts(d, DEEP),
    "nested": lambda d: write_verdicts(d, NESTED),
    "deep environment": lambda d: (d / ENVIRONMENT).write_text(DEEP),
    "object": lambda d: write_verdicts(d, {}),
    "list of lists": lambda d: write_verdicts(d, [[]]),
    "claim a list": lambda d: write_verdicts(d, verdict(claim=["lai-001"])),
    "claim an object": lambda d: write_verdicts(d, verdict(claim={"a": 1})),
    "claim with markup": lambda d: write_verdicts(d, verdict(claim="<script>")),
    "verdict a number": lambda d: write_verdicts(d, verdict(verdict=1)),
    "verdict with an escape": lambda d: write_verdicts(d, verdict(verdict="holds\x1b[2J")),
    "chapter an object": lambda d: write_verdicts(d, verdict(chapter={})),
    "chapter with a path": lambda d: write_verdicts(d, verdict(chapter="../../etc")),
    "note a list": lambda d: write_verdicts(d, verdict(note=[])),
    "evidence a text": lambda d: write_verdicts(d, verdict(evidence="<b>")),
    "evidence a list": lambda d: write_verdicts(d, verdict(evidence=[1, 2])),
    "interval of texts": lambda d: write_verdicts(
        d, verdict(evidence=INTERVAL | {"estimate": "many"})
    ),
    "interval inside out": lambda d: write_verdicts(d, verdict(evidence=INTERVAL | {"low": 9})),
    "interval with more": lambda d: write_verdicts(d, verdict(evidence=INTERVAL | {"x": 1})),
    "not a number": lambda d: write_verdicts(d, '[{"claim": "a", "verdict": "b", "printed": NaN}]'),
    "beyond numbers": lambda d: write_verdicts(d, '[{"claim": "a", "verdict": "b", "p": 1e999}]'),
    "endless integer": lambda d: write_verdicts(d, "[" + "9" * 10_000 + "]"),
    "no UTF-8": lambda d: ((d / VERDICTS).write_bytes(b'["\xff"]'), reseal(d)),
    "wrong checksum": lambda d: (d / VERDICTS).write_text("[]"),
    "checksum a number": lambda d: write_head(d, sha256=7),
    "no checksums": lambda d: write_head(d, sha256={}),
    "format of tomorrow": lambda d: write_head(d, format=99),
    "format true": lambda d: write_head(d, format=True),
    "format a list": lambda d: write_head(d, format=[2]),
    "run with a path": lambda d: write_head(d, run="../x"),
    "run a list": lambda d: write_head(d, run=["x"]),
    "endless run": lambda d: write_head(d, run="x" * 300),
    "chapter with a tag": lambda d: write_head(d, chapter="<img>"),
    "key a list": lambda d: write_head(d, key=[]),
    "rows a text": lambda d: write_head(d, rows="3"),
    "fewer rows": lambda d: write_head(d, rows=-3),
    "billions of rows": lambda d: write_head(d, rows=10**12),
    "a row too many": lambda d: write_head(d, rows=4),
    "no key": lambda d: write_head(d, key=None),
    "no observations": lambda d: (d / OBSERVATIONS).unlink(),
    "other observations": lambda d: (d / OBSERVATIONS).write_bytes(b"PAR1"),
    "environment a list": lambda d: write_head(d, environment=[]),
    "machine a list": lambda d: write_head(d, environment={"machine": []}),
    "started when": lambda d: write_head(d, started_at="yesterday"),
    "notes a text": lambda d: write_head(d, notes="x"),
}


@pytest.mark.parametrize("case", JSON)
def test_json_of_another_shape_is_refused(record, case):
    JSON[case](record)
    with pytest.raises(RecordError, match="is damaged: ") as caught:
        runs.load("theirs", "tp1")
    assert printable(str(caught.value)) and len(str(caught.value)) < 1000


# ---- Parquet

PARQUET = {
    "empty file": lambda d: ((d / OBSERVATIONS).write_bytes(b""), reseal(d)),
    "one more column": lambda d: rewrite(d, "SELECT *, 1 AS more FROM o"),
    "list for text": lambda d: rewrite(d, "SELECT * REPLACE ([variant] AS variant) FROM o"),
    "another chapter": lambda d: rewrite(d, "SELECT * REPLACE ('hot' AS chapter) FROM o"),
    "flags no JSON": lambda d: rewrite(d, "SELECT * REPLACE ('{' AS flags) FROM o"),
    "many rows": lambda d: (
        rewrite(d, "SELECT o.* FROM o, range(200001)"),
        write_head(d, rows=3),
    ),
    # a few hundred kB that would be gigabytes of texts
    "bomb": lambda d: rewrite(
        d,
        "SELECT o.* REPLACE (repeat('x', 60000) AS unit, range::INTEGER AS block)"
        " FROM o, range(30000) WHERE o.block = 0",
    ),
}


@pytest.mark.parametrize("case", PARQUET)
def test_parquet_of_another_shape_or_size_is_refused(record, case):
    PARQUET[case](record)
    assert (record / OBSERVATIONS).stat().st_size < 2**20
    with pytest.raises(RecordError, match="is damaged: ") as caught:
        runs.load("theirs", "tp1")
    assert printable(str(caught.value)) and len(str(caught.value)) < 1000


# ---- at random


def places(value):
    """Each list and object in a JSON value, with the place of each thing in it."""
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield value, key
        yield from places(value[key])


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(data=st.data(), name=st.sampled_from([ENVIRONMENT, VERDICTS]), value=ANYTHING)
@settings(max_examples=100, deadline=None)
def test_any_value_in_any_place_is_read_or_refused(in_order, data, name, value):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(in_order / "theirs" / "tp1", Path(place) / "tp1"))
        content = json.loads((folder / name).read_text())
        inside, key = data.draw(st.sampled_from(list(places(content))))
        inside[key] = value
        (folder / name).write_text(json.dumps(content))
        if name == VERDICTS:
            reseal(folder)
        refused_or_read(folder)


@pytest.mark.slow
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255))))
@settings(max_examples=100, deadline=None)
def test_parquet_with_any_bytes_flipped_is_read_or_refused(in_order, flips):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(in_order / "theirs" / "tp1", Path(place) / "tp1"))
        content = bytearray((folder / OBSERVATIONS).read_bytes())
        for where, change in flips:
            content[int(where * len(content))] ^= change
        (folder / OBSERVATIONS).write_bytes(content)
        reseal(folder)
        refused_or_read(folder)


def refused_or_read(folder):
    try:
        found = runs.load(folder)
    except RecordError as error:
        assert printable(str(error)) and len(str(error)) < 1500
        return
    assert list(found.observations.columns) == list(runs.COLUMNS)
    assert not runs.compare(found, found)["differs"].any()
    assert agreement.changes(found, found).empty


# ---- texts and names

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202egnp.exe\u2028"


def printable(text):
    """Whether a terminal only writes it, from left to right."""
    unseen = {"Cc", "Cs", "Zl", "Zp"}
    return not any(
        (unicodedata.category(c) in unseen and c not in "\n\t") or 0x202A <= ord(c) <= 0x202E
        for c in text
    )


def test_control_characters_become_visible_wherever_they_stand(record):
    write_head(record, environment={"machine": {ESCAPES: ESCAPES}}, notes=[ESCAPES])
    write_verdicts(record, verdict(note=f"first\nsecond {ESCAPES}", evidence={ESCAPES: 1.0}))
    flags = json.dumps({"plan": ESCAPES}).replace("'", "''")
    raw = ESCAPES.replace("'", "''")
    rewrite(
        record,
        f"SELECT * REPLACE ('{flags}' AS flags, '{raw}' AS unit, '{raw}' AS variant) FROM o",
    )
    found = runs.load("theirs", "tp1")
    for frame in (found.observations, runs.compare(found, found).reset_index()):
        texts = [text for column in frame.select_dtypes("str") for text in frame[column]]
        assert texts and all(printable(text) for text in texts)
    decoded = json.loads(found.observations["flags"].iloc[0])["plan"]
    (machine,) = found.environment["machine"].items()
    (evidence,) = found.verdicts[0]["evidence"]
    for text in (decoded, *machine, evidence, found.verdicts[0]["note"]):
        assert printable(text) and "\\x1b[2J" in text
    assert "first\nsecond" in found.verdicts[0]["note"]


@pytest.mark.parametrize("name", ["x" * 300, "x" * 5000, "a\0b", "\x1b[2J"])
def test_names_that_no_run_can_have_are_refused_in_a_sentence(record, name):
    for call in (runs.load, runs.chapters):
        try:
            assert call(name) == []  # an unknown run has no chapters
        except RecordError as error:
            assert printable(str(error)) and len(str(error)) < 1000


def test_a_folder_that_can_be_no_chapter_is_named(record):
    record.rename(record.parent / "tp1 <b>")
    with pytest.raises(RecordError, match="tp1 <b>"):
        runs.load("theirs")


def test_a_record_is_whole_whatever_ends_its_lines(record):
    """As git makes it with core.autocrlf; of Parquet every byte counts."""
    before = reader.read(record)
    for path in record.glob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert b"\r\n" in (record / ENVIRONMENT).read_bytes()
    assert reader.read(record).verdicts == before.verdicts
    (record / VERDICTS).write_bytes((record / VERDICTS).read_bytes() + b"\n")
    with pytest.raises(RecordError, match="is damaged"):
        reader.read(record)


def test_tables_of_one_size_are_not_taken_for_each_other(tmp_path):
    one, two = (
        {"first": "text", "second": "a longer text"},
        {"first": "a longer text", "second": "text"},
    )
    with Run.open("ours", "tp1", key="k", environment={}, records=tmp_path) as run:
        for table, row in {"one": one, "two": two}.items():
            run.append(table, row)
            run.complete(table, {"units": {}})
    folder = tmp_path / "ours" / "tp1"
    assert len({file.stat().st_size for file in folder.glob("*.parquet")}) == 1
    assert reader.read(folder).tables["two"][[*two]].to_dict("records") == [two]
