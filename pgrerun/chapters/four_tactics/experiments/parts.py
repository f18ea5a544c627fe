"""PARTS on PostgreSQL, and its commands."""

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.miniature import RUNS
from pgrerun.lab.ingres.benchmark import WIDE_QUERIES
from pgrerun.lab.relations import Parts
from pgrerun.lab.server import Server
from pgrerun.lab.statements import beside

STATEMENTS = beside(__file__)
SERIAL = {"max_parallel_workers_per_gather": 0}
COMMANDS = {name: STATEMENTS.text(f"commands.{name}") for name in ("short", "long")}
WIDE = "parts_wide"


def load(chapter: Chapter, server: Server) -> None:
    """PARTS, as large as the parameter says, keyed on pnum."""
    Parts(chapter.parameters.tuples).load(server, "parts", "btree")


def load_benchmark(server: Server) -> None:
    """The relations of 1981: `parts_1`, `parts_210` and `parts_3360`, and `WIDE` with a key."""
    for tuples in (1, 210, 3360):
        Parts(tuples).load(server, f"parts_{tuples}")
    Parts(wide=True).load(server, WIDE, "btree")


def relation(run: str) -> str:
    """The relation of one of the memorandum's runs ("c_210")."""
    query, tuples = run.split("_")
    return WIDE if query in WIDE_QUERIES else f"parts_{tuples}"


def benchmark(run: str) -> str:
    """One of the memorandum's runs in SQL, on one line."""
    text = STATEMENTS.text(f"benchmark.{run[0]}", relation=relation(run))
    return " ".join(text.split()).rstrip(";")


BENCHMARK = {run: benchmark(run) for run in RUNS}
