"""What every committed notebook must be, so that nbval compares something and papermill can run it.

nbval silently passes a cell without an execution count, so a notebook stripped of its
outputs would test nothing.
"""

import re
from pathlib import Path

import nbformat
import pytest

from pgrerun import parameters
from pgrerun.parameters import profile_values
from pgrerun.record import claims, evidence
from pgrerun.record.database import Database
from pgrerun.site.book import Book, committed

TAGS = {
    "parameters",
    "fact",
    "chart",
    "nbval-ignore-output",
    "hide-input",
    "remove-input",
    "hide-output",
}
NOTEBOOKS = sorted(Book().notebooks.glob("*.ipynb"))


def faults(notebook: nbformat.NotebookNode, ci: dict, judged: set[str]) -> list[str]:
    """What is wrong with a notebook that must set `ci` as parameters and may foretell these claims.

    That it holds nothing else of a machine or a run is for `committed`, that it judges each claim
    once for test_endings.py, which runs its cells.
    """
    return [
        *_of_the_parameters(notebook, ci),
        *(
            fault
            for cell in notebook.cells
            if cell.cell_type == "code"
            for fault in _of_the_cell(cell)
        ),
        *_of_the_predictions(notebook, judged),
    ]


def _of_the_predictions(notebook, judged):
    """Each names the claims that decide about it, so that the page can tell its outcome."""
    for cell in notebook.cells:
        for named in re.findall(r"\*\*Prediction\*{0,2}(.{0,80})", cell.source):
            found = re.match(r"\*{0,2} \(([^)]+)\)\.", named)
            words = {one.split()[-1] for one in found.group(1).split(", ")} if found else {"none"}
            if unknown := words - judged:
                yield f"a prediction names no claim of the chapter: {sorted(unknown)}"


def _of_the_parameters(notebook, ci):
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    if "parameters" not in first.metadata.get("tags", []):
        yield "the first code cell is not tagged parameters"
        return
    values = {}
    exec(first.source, values)
    del values["__builtins__"]
    if values != ci or list(map(type, values.values())) != [type(ci.get(name)) for name in values]:
        yield f"the parameters cell sets {values} and the ci profile is {ci}"


def _of_the_cell(cell):
    tags = set(cell.metadata.get("tags", []))
    ignored = "nbval-ignore-output" in tags
    rules = {
        "has unknown tags": tags - TAGS,
        "steers nbval by a comment; the tags are enough": "NBVAL_" in cell.source,
        "failed": any(output.output_type == "error" for output in cell.outputs),
        "has no execution count, so nbval would not compare it": cell.execution_count is None,
        "is a fact that nbval ignores": "fact" in tags and ignored,
        "is a fact without an output": "fact" in tags and not cell.outputs,
        "is a chart that nbval would compare": "chart" in tags and not ignored,
    }
    name = f"cell {cell.id} ({cell.source.splitlines()[0] if cell.source else 'empty'})"
    return [f"{name} {fault}" for fault, broken in rules.items() if broken]


# ---- the chapters


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebook(path: Path):
    expected = {claim.id for claim in claims.ledger().values() if claim.chapter == path.stem}
    found = faults(nbformat.read(path, as_version=4), profile_values(path.stem, "ci"), expected)
    assert expected and found == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_as_refresh_writes_it(path: Path):
    """Otherwise the next refresh would change lines that nobody touched."""
    text = path.read_text()
    written = nbformat.writes(committed(nbformat.read(path, as_version=4)))
    assert text == (written if written.endswith("\n") else written + "\n")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_claim_is_judged_after_the_experiments_that_it_rests_on(path: Path):
    """lai-050 was set aside in a published run because its last experiment came further down."""
    rules = evidence.rules(parameters.folder(path.stem))
    with Database(path.stem) as database:
        rests_on = {claim: evidence.needed(rule, database) for claim, rule in rules.items()}
    assert not list(early(nbformat.read(path, as_version=4), rests_on))


def early(notebook, rests_on):
    """Claims and the experiments that run only after they were judged, or in no cell."""
    ran: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            ran |= set(re.findall(r"chapter\.run\(\s*\"(\w+)\"", cell.source))
            for judged in re.findall(r"chapter\.verdicts\(([^)]*)\)", cell.source):
                for claim in re.findall(r"\"([^\"]+)\"", judged):
                    yield from ((claim, one) for one in rests_on.get(claim, ()) if one not in ran)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_reader_may_change_stands_where_it_is_said_to(path: Path):
    cells = nbformat.read(path, as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    ways = [
        (way, source)
        for source in sources
        for said in re.findall(r"# Change (.+)", source)
        for way in said.split(", or ")
    ]
    assert ways
    for way, source in ways:
        words, _, place = way.removesuffix(" below").partition(" in ")
        if place == "the first cell":
            text = sources[0]
        elif way.endswith(" below"):
            text = source
        else:
            text = (parameters.folder(path.stem) / (place or words)).read_text("utf-8")
        names = [] if words.startswith("sql/") else re.split(" and | or ", words)
        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == [], way
