"""University INGRES by its protocol: a stand-in that answers as a build would."""

import re
import stat
from pathlib import Path

import pytest

from pgrerun.chapters.wisconsin import queries
from pgrerun.chapters.wisconsin.experiments import university_ingres as wisconsin
from pgrerun.errors import CannotMeasure, QueryError
from pgrerun.lab.university_ingres import VARIABLE, Pages, UniversityIngres

# Answers each command with one process that has as many instructions as the command has letters.
STAND_IN = """#!/usr/bin/env python3
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
commands = [None] + [c.strip() for c in sys.stdin.read().split("\\\\g") if c.strip()]
zero = dict.fromkeys("read_bytes writes write_bytes messages_read message_bytes_read"
    " messages_written message_bytes_written terminal_writes terminal_bytes".split(), 0)
with open(os.environ["INGRES_COUNTERS"], "a") as file:
    for number, command in enumerate(commands):
        rows = (folder / "files/rows").read_bytes().hex() if "copy" in (command or "") else ""
        line = {"command": number, "quel": command or "", "rows": [rows] if rows else [],
            "errors": ["2100"] if "foo" in (command or "") else [], "processes": [{
                "process": "decomp70", "instructions": len(command or ""), "reads": 3, **zero,
                "calls": {"read": 3}, "routines": {"getsymbol": [5, 1, 7, 2, 1, 3]}, "pages": {
                "parts": {"reads": 3, "pages_read": 2, "writes": 0, "pages_written": 0}}}]}
        if "--requests" in sys.argv:
            line["requests"] = [["decomp70", "r", "parts", 1]]
        file.write(json.dumps(line) + "\\n")
print("2100: line 1, Attribute 'foo' not in relation 'parts'")
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "ingres-run"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def test_each_command_is_counted_apart_and_by_kind_of_file(stand_in: Path) -> None:
    with UniversityIngres(stand_in) as ingres:
        first, second = ingres.run("retrieve (a = 1)", "range of p is parts", requests=True)
    assert [one.processes[0].counts["instructions"] for one in (first, second)] == [16, 19]
    assert [first.calls("getsymbol"), first.calls("log")] == [1, 0]
    assert [first.reads("parts"), first.reads("stock")] == [3, 0]
    [process] = first.processes
    assert process.routines["getsymbol"].inclusive == 7
    assert process.pages == {"parts": Pages(3, 2, 0, 0)}
    assert first.requests == (("decomp70", "r", "parts", 1),)
    told = {"relation_reads": 3, "relation_pages": 2, "catalog_reads": 0}
    assert told.items() <= process.row().items()


def test_rows_are_copied_as_the_pdp_11_has_them(stand_in: Path) -> None:
    with UniversityIngres(stand_in) as ingres:
        attributes = {"pnum": "i2", "pname": "c4", "cost": "i4"}
        ingres.append("parts", attributes, [(258, "ab", 0x01020304), (-1, "c", -2)])
        [command] = ingres.run("copy again")
    assert command.rows == (b"\x02\x01ab  \2\1\4\3\xff\xffc   \xff\xff\xfe\xff".hex(),)


def test_a_refused_command_is_told_in_ingres_words(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = pytest.raises(QueryError, match="Attribute 'foo' not in relation")
    with UniversityIngres(stand_in) as ingres, refused:
        ingres.run("retrieve (p.foo)")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "elsewhere"))
    with pytest.raises(CannotMeasure, match="bin/ingres-run"):
        UniversityIngres()


def test_a_build_of_an_earlier_protocol_is_told_so(stand_in: Path) -> None:
    program = stand_in / "bin" / "ingres-run"
    program.write_text(STAND_IN.replace("[5, 1, 7, 2, 1, 3]", "[5, 1, 7, 2]"))
    with UniversityIngres(stand_in) as ingres, pytest.raises(CannotMeasure, match="make it anew"):
        ingres.run("retrieve (a = 1)")


@pytest.mark.parametrize("query", queries.QUERIES, ids=lambda query: query.key)
def test_wisconsin_has_names_that_ingres_can_keep(query: queries.Query) -> None:
    text = wisconsin.quel(queries.instance(query, 10_000).text, query.state)
    assert max(map(len, re.findall(r"\w+", text))) <= 12
    assert "unique into" not in text
