"""What every committed notebook must be, so that nbval compares something and papermill can run it.

nbval silently passes a cell without an execution count, so a notebook stripped of its
outputs would test nothing. That a notebook judges each claim once is for test_endings.py, which
runs its cells.
"""

import re
from pathlib import Path

import nbformat
import pytest

from pgrerun import parameters
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
each_notebook = pytest.mark.parametrize(
    "path", sorted(Book().notebooks.glob("*.ipynb")), ids=lambda path: path.stem
)


@each_notebook
def test_the_first_code_cell_sets_what_profile_ci_does(path: Path):
    notebook = nbformat.read(path, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert "parameters" in first.metadata.tags
    values = {}
    exec(first.source, values)
    del values["__builtins__"]
    ci = parameters.profile_values(path.stem, "ci")
    assert {name: (type(value), value) for name, value in values.items()} == {
        name: (type(value), value) for name, value in ci.items()
    }


@each_notebook
def test_nbval_compares_facts_and_only_facts(path: Path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        tags = set(cell.metadata.get("tags", []))
        ignored = "nbval-ignore-output" in tags
        rules = {
            "has unknown tags": not tags <= TAGS,
            "steers nbval by a comment; the tags are enough": "NBVAL_" in cell.source,
            "failed": any(output.output_type == "error" for output in cell.outputs),
            "has no execution count, so nbval would not compare it": cell.execution_count is None,
            "is a fact that nbval ignores": "fact" in tags and ignored,
            "is a fact without an output": "fact" in tags and not cell.outputs,
            "is a chart that nbval would compare": "chart" in tags and not ignored,
        }
        assert [fault for fault, broken in rules.items() if broken] == [], cell.id


@each_notebook
def test_a_prediction_names_the_claims_that_decide_about_it(path: Path):
    """So that the page can tell its outcome."""
    known = {claim.id for claim in claims.ledger().values() if claim.chapter == path.stem}
    assert known
    for cell in nbformat.read(path, as_version=4).cells:
        for foretold in re.findall(r"\*\*Prediction\*{0,2}(.{0,80})", cell.source):
            named = re.match(r"\*{0,2} \(([^)]+)\)\.", foretold)
            assert named, foretold
            assert {one.split()[-1] for one in named[1].split(", ")} <= known, foretold


@each_notebook
def test_committed_as_refresh_writes_it(path: Path):
    """Otherwise the next refresh would change lines that nobody touched."""
    text = path.read_text()
    written = nbformat.writes(committed(nbformat.read(path, as_version=4)))
    assert text == (written if written.endswith("\n") else written + "\n")


@each_notebook
def test_a_claim_is_judged_after_the_experiments_that_it_rests_on(path: Path):
    """lai-050 was set aside in a published run because its last experiment came further down."""
    rules = evidence.rules(parameters.folder(path.stem))
    with Database(path.stem) as database:
        rests_on = {claim: evidence.needed(rule, database) for claim, rule in rules.items()}
    ran: set[str] = set()
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            ran |= set(re.findall(r"chapter\.run\(\s*\"(\w+)\"", cell.source))
            judged = re.findall(r"chapter\.verdicts\(([^)]*)\)", cell.source)
            for claim in re.findall(r"\"([^\"]+)\"", " ".join(judged)):
                assert set(rests_on.get(claim, ())) <= ran, claim


@each_notebook
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
            text = re.sub(r"(?m)^\s*# Change .*", "", source)
        else:
            text = (parameters.folder(path.stem) / (place or words)).read_text("utf-8")
        names = [] if words.startswith("sql/") else re.split(" and | or ", words)
        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == [], way
