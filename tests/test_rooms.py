"""The house's one rule: a lower room never imports a higher one, and libraries stay in their rooms.

Imports are parsed, not executed, so that one inside a function counts. Imports under
`if TYPE_CHECKING:` don't: they name a type and depend on nothing at run time. None is relative,
which the linter holds.
"""

import ast
import graphlib
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "pgrerun"

EVERYWHERE = {"credentials", "errors", "progress", "stopping"}

# What each room may import beside itself and EVERYWHERE, lower rooms first. A package whose
# name stands in FLOORS is a floor: its modules and packages are rooms of their own.
FLOORS = ("lab", "record", "page", "site")
LAB: dict[str, set[str]] = {
    "lab.statement_log": set(),
    "lab.server": {"lab.statement_log"},
    "lab.disk": {"lab.server"},
    "lab.statements": {"lab.statement_log"},
    "lab.quel": set(),
    "lab.ingres": {"lab.quel", "lab.models"},
    "lab.university_ingres": {"lab.server"},
    "lab.models": set(),
    "lab.relations": {"lab.server"},
    "lab.spark": {"lab.server", "lab.relations"},
    "lab.instruments": {"lab.statement_log", "lab.server"},
    "lab.postgres95": {"lab.statement_log", "lab.server", "lab.instruments"},
    "lab.testbed": {"lab.statement_log", "lab.server", "lab.instruments", "lab.disk"},
}
RECORD: dict[str, set[str]] = {
    "record.statistics": set(),
    "record.printed": set(),
    "record.reached": set(),
    "record.schema": set(),
    "record.rows": {"record.schema", "record.sequential"},
    "record.reader": {"record.schema", "record.statistics", "record.rows"},
    "record.runs": {"record.statistics", "record.schema", "record.reader", "record.rows"},
    "record.database": {
        f"record.{room}" for room in ("claims", "printed", "rows", "runs", "verdicts")
    },
    "record.evidence": {
        f"record.{room}" for room in ("claims", "database", "statistics", "verdicts")
    },
    "record.claims": {"record.printed"},
    "record.verdicts": {"record.statistics", "record.claims"},
    "record.sequential": {"record.statistics", "record.claims", "record.verdicts"},
    "record.lives": {f"record.{room}" for room in ("claims", "printed", "runs", "verdicts")},
    "record.sources": {"record.schema", "record.reader"},
    "record.agreement": {"record.claims", "record.runs", "record.verdicts"},
    "record.history": {f"record.{room}" for room in ("agreement", "claims", "runs", "verdicts")},
    "record.gather": {
        f"record.{room}"
        for room in ("schema", "reader", "runs", "sources", "claims", "verdicts", "agreement")
    },
    "record.machines": {"record.statistics", "record.verdicts", "record.gather"},
}
PAGE: dict[str, set[str]] = {
    "page.markup": set(),
    "page.tables": set(),
    "page.provenance": set(),
    "page.narrate": {"record.statistics", "record.printed", "record.claims", "record.verdicts"},
    "page.declared": {
        *("record.database", "record.evidence", "record.statistics", "record.verdicts"),
        *("page.charts", "page.narrate"),
    },
    "page.shown": {
        *("record.rows", "record.verdicts"),
        *("page.charts", "page.markup", "page.narrate", "page.provenance", "page.tables"),
    },
    "page.charts": {"record.statistics", "record.printed", "record.claims", "page.narrate"},
}
MAY_USE: dict[str, set[str]] = {
    "credentials": set(),
    "errors": set(),
    "forking": set(),
    "progress": set(),
    "stopping": set(),
    **LAB,
    **RECORD,
    **PAGE,
    "parameters": {"lab.server"},
}
MEASURING = set(MAY_USE)
MAY_USE |= {
    "notebook": MEASURING,
    "registry": MEASURING | {"chapters"},
    # a chapter's claims, judged elsewhere
    "replay": MEASURING | {"notebook"},
    "chapters": MEASURING | {"notebook", "replay"},
    # executing notebooks from outside: none of it may reach into a chapter
    "site.inputs": {"record.reached"},
    "site.gates": {"site.printing"},
    "site.execution": set(),
    "site.downloads": {"page.charts"},
    "site.durations": {"parameters", "record.printed", "site.scoreboard"},
    "site.contents": {"parameters", "record.printed"},
    "site.printing": set(),
    "site.doctor": MEASURING | {"site.printing"},
    "site.excerpts": set(),
    "site.template": MEASURING,
    "site.scaffold": {"parameters"},
    "site.scoreboard": set(RECORD)
    | {f"page.{room}" for room in ("charts", "markup", "narrate", "provenance", "shown")}
    | {"parameters"},
    "site.layout": {"site.scoreboard"},
    "site.advice": set(RECORD)
    | {f"page.{room}" for room in ("charts", "declared", "markup", "narrate", "provenance")}
    | {"parameters"},
    "site.ask": set(RECORD) | {"page.declared", "parameters", "site.advice"},
    "site.all_runs": set(RECORD)
    | {"page.charts", "page.markup", "page.narrate", "site.scoreboard"},
    "site.samples": set(RECORD)
    | {f"page.{room}" for room in ("charts", "declared", "provenance")}
    | {"parameters", "site.scoreboard"},
    "site.published_runs": set(RECORD) | {"page.narrate", "site.scoreboard"},
    "site.book": MEASURING
    | {f"site.{room}" for room in ("inputs", "gates", "execution", "contents")},
    "site.pages": MEASURING | {"notebook", "site.book", "site.execution"},
    # chapters' experiments on somebody's server, outside of any notebook
    "report_card": MEASURING | {"chapters"},
}
MAY_USE["cli"] = set(MAY_USE)
MAY_USE["__main__"] = {"cli"}
MAY_USE |= {floor: set() for floor in ("__init__", *FLOORS)}  # their __init__ holds words alone

# Libraries that one kind of work is confined to.
HOMES = {
    "altair": {"page.charts"},
    "vl_convert": {"page.charts"},
    "jinja2": {"page.markup"},
    "lark": {"lab.quel"},
    "pyspark": {"lab.spark"},
    "simpy": {"lab.models"},
    "sqlparse": {"lab.statements"},
    "duckdb": {
        *("lab.relations", "record.runs", "record.reader", "record.sources"),
        *("record.printed", "record.claims", "record.rows", "record.database"),
    },
    "psycopg": {
        *("lab.statement_log", "lab.server", "lab.statements", "lab.relations", "lab.instruments"),
        *("credentials", "parameters", "chapters", "report_card"),
    },
    "papermill": {"site.execution"},
    "typer": {"cli"},
    "scipy": {"record.statistics", "lab.models", "page.charts"},
}


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module, given by its dotted name's parts below the package."""
    if not parts:
        return "__init__"
    inside = parts[0] in FLOORS and len(parts) > 1 and parts[1] != "__init__"
    return ".".join(parts[: 2 if inside else 1])


def imports(source: str) -> list[tuple[int, str]]:
    """(line, dotted name) of each import in `source`.

    Of `from PACKAGE import NAME` the dotted name has NAME where that is a module or a room.
    """
    tree = ast.parse(source)
    branches = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    guarded = [one.body for one in branches if ast.unparse(one.test) == "TYPE_CHECKING"]
    skipped = {inner for body in guarded for one in body for inner in ast.walk(one)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and node not in skipped:
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node not in skipped:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(node.lineno, name if name in KNOWN else f"{node.module}") for name in names]
    return found


def dotted(module: str) -> str:
    return ".".join(["pgrerun", *Path(module).with_suffix("").parts]).removesuffix(".__init__")


MODULES = sorted(p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py"))
KNOWN = {dotted(module) for module in MODULES} | {f"pgrerun.{room}" for room in MAY_USE}


def imported(module: str) -> set[str]:
    return {name for _, name in imports((PACKAGE / module).read_text("utf-8"))}


def trespasses(name: str, source: str) -> list[str]:
    """Forbidden imports of the module `name` ("record/runs.py", "lab/server/cluster.py")."""
    room = room_of(Path(name).with_suffix("").parts)
    wrong = []
    for line, target in imports(source):
        top, *rest = target.split(".")
        if top == "pgrerun":
            used = room_of(tuple(rest))
            if used not in MAY_USE[room] | EVERYWHERE | {room}:
                wrong.append(f"{name}:{line}: {room} may not import {used}")
        elif top in HOMES and room not in HOMES[top]:
            wrong.append(f"{name}:{line}: {top} belongs into {' and '.join(sorted(HOMES[top]))}")
    return wrong


def test_every_module_belongs_to_a_room():
    rooms = {room_of(Path(module).with_suffix("").parts) for module in MODULES}
    unknown = rooms - set(MAY_USE)
    assert not unknown, f"say in MAY_USE which room this is: {unknown}"
    assert {"record.statistics", "record.claims", "page.narrate", "lab.server"} <= rooms


def test_the_rule_has_one_direction():
    graph = {room: used - {room} for room, used in MAY_USE.items()}
    graphlib.TopologicalSorter(graph).prepare()


def test_no_circle_of_modules():
    """Inside of a room as well, nothing is imported that imports its importer."""
    graph = {
        dotted(module): (imported(module) & KNOWN)
        - {dotted(module), ".".join(["pgrerun", *Path(module).parts[:-1]])}
        for module in MODULES
    }
    graphlib.TopologicalSorter(graph).prepare()


def test_the_picture_in_contributing_is_true():
    """What one part imports of another, an arrow or several lead to."""
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text("utf-8")
    arrows = re.findall(r"^    (\w+) --> (\w+)$", text, re.MULTILINE)
    leads = {part: {part} for part in re.findall(r'^    (\w+)\["', text, re.MULTILINE)}
    for _ in leads:  # as often as arrows can follow each other
        for start, end in arrows:
            leads[start] |= leads[end]
    for module in MODULES:
        part = Path(module).with_suffix("").parts[0]
        if part in leads and not module.startswith("site/template"):  # that becomes a chapter
            used = {name.split(".")[1] for name in imported(module) if name.startswith("pgrerun.")}
            assert used & set(leads) <= leads[part], module


@pytest.mark.parametrize("module", MODULES)
def test_no_room_imports_a_higher_one(module):
    assert trespasses(module, (PACKAGE / module).read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source", "caught"),
    [
        ("record/statistics.py", "from pgrerun.record.runs import Run", 1),
        ("record/statistics.py", "import pgrerun.record.runs", 1),
        ("record/runs.py", "from pgrerun.record import statistics, claims", 1),
        ("lab/relations/parts.py", "def f():\n    from pgrerun.lab.instruments import clock", 1),
        ("record/claims.py", "from pgrerun import open_chapter", 1),
        ("page/narrate.py", "from pgrerun.page.charts import MARKS", 1),
        ("page/narrate.py", "import altair as alt", 1),
        ("record/claims.py", "from scipy import stats", 1),
        ("notebook.py", "if not TYPE_CHECKING:\n    import pgrerun.site.book", 1),
        ("site/book.py", "if TYPE_CHECKING:\n    pass\nelse:\n    import pgrerun.cli", 1),
        # what is allowed passes
        ("record/runs.py", "from pgrerun.record import statistics\nimport duckdb", 0),
        ("lab/experiment.py", "if TYPE_CHECKING:\n    from pgrerun.record.runs import Run", 0),
        (
            "cli.py",
            "def f():\n    from pgrerun.record import runs\n    from pgrerun.site import book",
            0,
        ),
        ("record/statistics.py", "import numpy\nfrom scipy import stats", 0),
    ],
)
def test_a_trespass_is_caught_and_what_is_allowed_passes(module, source, caught):
    assert len(trespasses(module, source)) == caught
