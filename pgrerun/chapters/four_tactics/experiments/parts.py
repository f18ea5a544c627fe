"""PARTS on PostgreSQL, and its commands."""

from pgrerun.lab.relations import Parts
from pgrerun.lab.server import Server
from pgrerun.lab.statements import sql_folder
from pgrerun.lab.testbed import Testbed

SQL = sql_folder(__file__)
SERIAL = {"max_parallel_workers_per_gather": 0}
COMMANDS = {name: SQL.text(f"commands.{name}") for name in ("short", "long")}
# Queries on the relation with a key.
KEYED = "efghi"
BRIEF = [("a", 0), ("b", 1), ("c", 1), ("d", 1)]
SCANS = [("b", 3360), ("c", 3360), ("d", 3360)]
JOINS = [("f", 3360), ("g", 3360), ("h", 3360), ("i", 3360)]
LONG = [*SCANS, ("e", 3360), *JOINS]


def load(bed: Testbed, server: Server) -> None:
    """PARTS, as large as the parameter says, keyed on pnum."""
    Parts(bed.parameters.tuples).load(server, "parts", "btree")


def load_benchmark(server: Server) -> None:
    """The relations of 1981: `parts_1`, `parts_210`, `parts_3360`, and `parts_wide` with a key."""
    for tuples in (1, 210, 3360):
        Parts(tuples).load(server, f"parts_{tuples}")
    Parts(wide=True).load(server, "parts_wide", "btree")


def relation(query: str, tuples: int) -> str:
    """The relation of one of the memorandum's runs."""
    return "parts_wide" if query in KEYED else f"parts_{tuples}"


def benchmark(query: str, name: str) -> str:
    """One of the benchmark's queries on the relation of this name, in SQL, on one line."""
    return SQL.line(f"benchmark.{query}", relation=name)


def run_text(query: str, tuples: int) -> str:
    """One of the memorandum's runs in SQL."""
    return benchmark(query, relation(query, tuples))
