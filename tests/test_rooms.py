"""The house's one rule: a lower room never imports a higher one, and libraries stay in their rooms.

Imports are parsed, not executed, so that one inside a function counts. Imports under
`if TYPE_CHECKING:` don't: they name a type and depend on nothing at run time.
"""

import ast
import graphlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "pgrerun"

EVERYWHERE = {"errors", "progress"}

# What each room may import beside itself and EVERYWHERE, lower rooms first.
MAY_USE: dict[str, set[str]] = {
    "errors": set(),
    "progress": set(),
    "server": set(),
    "quel": set(),
    "ingres": {"quel"},
    "relations": {"server"},
    "instruments": {"server"},
    "experiment": {"instruments"},
    "statistics": set(),
    "runs": {"statistics"},
    "published": set(),
    "claims": {"statistics", "runs", "published"},
    "models": set(),
    "tables": set(),
    "charts": {"statistics", "published", "claims"},
    "narrate": {"statistics", "published", "claims"},
    "parameters": {"server"},
}
MEASURING = set(MAY_USE)
MAY_USE |= {
    "chapter": MEASURING,
    "chapters": MEASURING | {"chapter"},
    "scoreboard": {"statistics", "runs", "claims", "published", "charts", "narrate"},
    # executing notebooks from outside: none of it may reach into a chapter
    "inputs": set(),
    "gates": set(),
    "execution": set(),
    "pages": {"charts"},
    "printing": set(),
    "book": MEASURING | {"inputs", "gates", "execution", "pages"},
    "doctor": MEASURING,
    # chapters' experiments on somebody's server, outside of any notebook
    "report_card": MEASURING | {"chapter", "chapters"},
}
MAY_USE["cli"] = set(MAY_USE)
MAY_USE["__init__"] = set(MAY_USE) - {"cli"}

# Libraries that one kind of work is confined to.
HOMES = {
    "altair": {"charts"},
    "vl_convert": {"charts"},
    "lark": {"quel"},
    "simpy": {"models"},
    "duckdb": {"relations", "runs", "ingres"},
    "psycopg": {"server", "relations", "instruments", "parameters", "chapters", "report_card"},
    "papermill": {"execution"},
    "typer": {"cli"},
    "scipy": {"statistics", "models"},
}


def type_only(tree: ast.AST) -> set[ast.AST]:
    """Nodes below `if TYPE_CHECKING:`."""
    guarded = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")]
    return {inner for guard in guarded for statement in guard.body for inner in ast.walk(statement)}


def imports(source: str, package: tuple[str, ...], known: set[str]) -> list[tuple[int, str]]:
    """(line, dotted name) of each import in `source`, a module of `package`; `known` are our rooms."""
    tree = ast.parse(source)
    skipped = type_only(tree)
    found = []
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])]) if node.level else node.module
            if base == "pgrerun":  # from pgrerun import runs; a name that is no room comes from __init__
                found += [(node.lineno, f"pgrerun.{a.name}" if a.name in known else "pgrerun.__init__") for a in node.names]
            else:
                found.append((node.lineno, base))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            found += [(node.lineno, a.value) for a in node.args[:1] if isinstance(a, ast.Constant)]
    return found


def trespasses(name: str, source: str) -> list[str]:
    """Forbidden imports of the module `name` ("runs.py", "server/cluster.py")."""
    path = Path(name)
    room = path.parts[0].removesuffix(".py")
    wrong = []
    for line, target in imports(source, ("pgrerun", *path.parts[:-1]), set(MAY_USE)):
        top, *rest = target.split(".")
        if top == "pgrerun":
            used = rest[0] if rest else "__init__"
            if used not in MAY_USE[room] | EVERYWHERE | {room}:
                wrong.append(f"{name}:{line}: {room} may not import {used}")
        elif top in HOMES and room not in HOMES[top]:
            wrong.append(f"{name}:{line}: {top} belongs into {' and '.join(sorted(HOMES[top]))}")
    return wrong


MODULES = sorted(p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py"))


def test_every_module_belongs_to_a_room():
    rooms = {Path(m).parts[0].removesuffix(".py") for m in MODULES}
    assert rooms <= set(MAY_USE), f"say in MAY_USE which room this is: {rooms - set(MAY_USE)}"
    assert {"statistics", "runs", "claims", "narrate", "server"} <= rooms


def test_the_rule_has_one_direction():
    order = list(graphlib.TopologicalSorter({room: used - {room} for room, used in MAY_USE.items()}).static_order())
    assert order.index("server") < order.index("experiment") and order.index("runs") < order.index("claims") < order.index("narrate")


@pytest.mark.parametrize("module", MODULES)
def test_no_room_imports_a_higher_one(module):
    assert trespasses(module, (PACKAGE / module).read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("statistics.py", "from pgrerun.runs import Run"),
        ("statistics.py", "import pgrerun.runs"),
        ("runs.py", "from pgrerun import statistics, claims"),
        ("runs.py", "from . import claims"),
        ("runs.py", "from .claims import ledger"),
        ("server/cluster.py", "from ..instruments import clock"),
        ("server/cluster.py", "from ..instruments.clock import stopwatch"),
        ("relations/parts.py", "def f():\n    from pgrerun.instruments import clock"),
        ("claims.py", "importlib.import_module('pgrerun.narrate')"),
        ("claims.py", "from pgrerun import open_chapter"),
        ("narrate.py", "from pgrerun.charts import MARKS"),
        ("narrate.py", "import altair as alt"),
        ("claims.py", "from scipy import stats"),
        ("chapter.py", "if not TYPE_CHECKING:\n    import pgrerun.book"),
        ("book.py", "if TYPE_CHECKING:\n    pass\nelse:\n    import pgrerun.cli"),
    ],
)
def test_a_trespass_is_caught(module, source):
    assert len(trespasses(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("runs.py", "from pgrerun import statistics\nfrom pgrerun.errors import RecordError\nimport duckdb"),
        ("server/cluster.py", "from . import client\nfrom .client import Server\nfrom ..errors import ServerError"),
        ("experiment.py", "if TYPE_CHECKING:\n    from pgrerun.runs import Run"),
        ("cli.py", "def f():\n    from pgrerun import runs, book"),
        ("statistics.py", "import numpy\nfrom scipy import stats"),
    ],
)
def test_what_is_allowed_passes(module, source):
    assert trespasses(module, source) == []
