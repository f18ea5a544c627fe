"""Postgres95 and its successors by the single-user backend: what is read from them.

The bundled release stands for all of them where none of the others is here.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from pgrerun.chapters.profiling.experiments import postgres95 as profiling
from pgrerun.chapters.tp1.experiments import postgres95 as tp1
from pgrerun.chapters.wisconsin.experiments import postgres95 as wisconsin
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.postgres95 import BUNDLED, Backend, Release, in_all_releases, started
from pgrerun.lab.relations.debit_credit import DebitCredit
from pgrerun.lab.server.builds import registered

POSTGRES95 = Release((1, 1))
needs_postgres95 = pytest.mark.skipif(
    tp1.BUILD not in registered(), reason=f"the build {tp1.BUILD} isn't registered"
)
needs_valgrind = pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind isn't installed")
needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace isn't installed")


@pytest.fixture(scope="module", params=[BUNDLED, pytest.param(tp1.BUILD, marks=needs_postgres95)])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with Backend.of(request.param) as backend:
        tuples = ((number, f"t{number}") for number in range(500))
        backend.load("CREATE TABLE numbered (number int4, name text)", tuples)
        yield backend


def test_answers_belong_to_their_statements(backend: Backend) -> None:
    found = backend.run(
        [
            "BEGIN",
            "SELECT name FROM numbered WHERE number > 497",
            "END",
            "SELECT number FROM numbered WHERE name = 't7'",
        ]
    )
    assert found == [[], [{"name": "t498"}, {"name": "t499"}], [], [{"number": "7"}]]
    scan = "SELECT name FROM numbered WHERE number = 7"
    assert backend.plan(scan) == "Seq Scan" and backend.cost(scan) >= 0  # of no tuples, unanalyzed
    with pytest.raises(ServerError, match="nowhere"):
        backend.run(["SELECT name FROM nowhere"])


@needs_valgrind
def test_instructions_grow_with_the_tuples_looked_at(backend: Backend) -> None:
    nothing, scan = "SELECT 1 AS one", "SELECT name FROM numbered WHERE number = 7"
    found = backend.instructions([nothing, nothing, scan, scan])
    _, none, first, again = found.groupby("statement")["exclusive"].sum().loc[[0, 1, 2, 3]]
    assert none + 500 * 50 < again < first  # as it fills no caches


@needs_strace
def test_pages_are_counted_and_what_a_copy_changes_stays_there(backend: Backend) -> None:
    scan, count = "SELECT name FROM numbered WHERE number = 7", "SELECT number FROM numbered"
    with backend.copied() as own:
        found = own.pages([scan, scan]).groupby("statement")["reads"].sum()
        own.run(["INSERT INTO numbered VALUES (500, 'more')"])
        assert len(own.run([count])[0]) == 501
    assert found.get(0) > 2 and not found.get(1)  # a pool that is empty at first
    assert len(backend.run([count])[0]) == 500 and not own.data.exists()


def test_what_is_no_build_is_refused_and_files_are_removed(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="bin/postgres"):
        Backend(tmp_path, POSTGRES95)
    with pytest.raises(CannotMeasure, match="pgrerun releases add none-such"):
        Backend.of("none-such")
    with started([BUNDLED, "none-such"]) as backends:
        assert [*backends] == [BUNDLED] and backends[BUNDLED].data.exists()
    assert not backends[BUNDLED].data.exists()


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("CREATE TABLE t AS SELECT a.b FROM a", "SELECT a.b INTO TABLE t FROM a"),
        (
            "CREATE TABLE t AS SELECT (SELECT min(a.b) FROM a) AS c",
            "SELECT min(a.b) AS c INTO TABLE t FROM a",
        ),
        ("COMMIT", "END"),
        ("DROP TABLE t", "DROP TABLE t"),
    ],
)
def test_sql_is_written_as_all_releases_read_it(given: str, taken: str) -> None:
    assert in_all_releases(given) == taken


@pytest.mark.parametrize(
    ("file", "program", "subsystem"),
    [
        ("access/common/heaptuple.c", "postgres", "access_methods"),
        ("storage/buffer/bufmgr.c", "postgres", "storage_manager"),
        ("lex.yy.c", "postgres", "parser"),
        ("", "libc.so.6", "system_functions"),
        ("", "postgres", "system_functions"),
    ],
)
def test_routines_are_placed_in_the_subsystems_of_the_report(
    file: str, program: str, subsystem: str
) -> None:
    where = f"/any/where/src/backend/{file}" if file else ""
    assert profiling.place(where, program)[1] == subsystem


@needs_valgrind
def test_a_query_by_the_bundled_release() -> None:
    [row] = wisconsin.by_build(BUNDLED, ["q1"], 500)
    assert row["plan"] == "Seq Scan"
    assert row["answered"] == 5
    assert 0 < row["found"] < row["executor"] < row["instructions"]


@needs_postgres95
@needs_strace
def test_postgres95_forces_a_transaction_and_undoes_none() -> None:
    rows = pd.DataFrame(tp1.ladder(4, DebitCredit(20, 200, 200)))
    last = rows[(rows["transaction"] == 3) & (rows["rung"] == tp1.ENLARGED)]
    assert last[last["command"] == "end"]["flushes"].sum() >= 7
    stable = rows[(rows["transaction"] == 3) & (rows["rung"] == tp1.STABLE)]
    assert stable[stable["kind"] == "status"]["writes"].sum() == 0
    states = {row["when"]: row for row in tp1.postgres95_crash(None)}
    assert (
        states["forced"]["balance"] == states["open"]["balance"] and states["forced"]["ahead"] == 7
    )
    assert states["stable"]["balance"] == states["before"]["balance"]
    assert states["before"]["versions"] == 1000 < states["open"]["versions"]
    assert states["before"]["balance"] == states["after"]["balance"] != states["open"]["balance"]


@needs_postgres95
@needs_strace
def test_a_request_names_its_page_and_a_file_tells_its_versions() -> None:
    bank = DebitCredit(20, 200, 2000)
    with Backend.of(tp1.BUILD, "-B 16") as backend:
        profiling.load_bank(backend, bank)
        pages = backend.file("account").stat().st_size // 8192
        assert pages > 16
        found = backend.requests(["SELECT sum(account.balance) AS found FROM account"])
        read = found[(found["file"] == "account") & (found["kind"] == "reads")]
        assert read["page"].tolist() == list(range(pages))
        told = tp1.session(backend, bank, 5, seed=1)
        assert 0 < told["reads_anew"] <= told["reads"] and told["writes"] > 0
        assert told["left_to_vacuum"] == 3  # none of which has been taken away
        again = tp1.session(backend, bank, 5, seed=2, vacuumed=True)
        assert again["left_to_vacuum"] == 3  # all from before are gone
