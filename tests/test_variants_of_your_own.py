"""What a reader changes is said at each experiment, in the notebook, and changing it works."""

import ast
import inspect
import re
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

from pgrerun import parameters
from pgrerun.errors import ParameterError
from pgrerun.lab.testbed import experiment, experiments_of
from pgrerun.notebook import CHANGED, Notebook

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
SAID = re.compile(r"# Change (.+)")
PARAMETER = re.compile(r"\b(?:parameters|given)\.(\w+)")


def runs_of(chapter: str):
    """Each call of `chapter.run` in a notebook, its experiment, and the comment above it."""
    notebook = nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.source.startswith("%"):
            continue
        lines = cell.source.splitlines()
        for statement in ast.parse(cell.source).body:
            above = SAID.fullmatch(lines[statement.lineno - 2]) if statement.lineno > 1 else None
            for call in ast.walk(statement):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "chapter.run":
                    measure = experiments_of(chapter)[ast.literal_eval(call.args[0])].function
                    yield call, measure, above and above.group(1)


@pytest.mark.parametrize("chapter", parameters.chapters())
def test_every_experiment_says_what_to_change(chapter):
    folder = parameters.folder(chapter)
    sources = (file.read_text("utf-8") for file in folder.rglob("*.py"))
    known = {name for source in sources for name in PARAMETER.findall(source)}
    found = list(runs_of(chapter))
    assert found
    for call, measure, said in found:
        name = measure.__name__
        own = inspect.signature(measure).parameters
        if not said:  # what only counts what is there, or computes
            code = inspect.getsource(measure)
            assert len(own) == 1 and not PARAMETER.search(code), f"{name}: say which line to change"
            assert "SQL." not in code, f"{name}: say which line to change"
            continue
        ways = said.split(", or ")
        given = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        for way in ways:
            words, _, place = way.partition(" below")[0].partition(" in ")
            names = re.split(" and | or ", words)
            if " below" in way:
                assert names == list(given), f"{name}: {way}"
            elif place == "the first cell":
                assert set(names) <= known, f"{name}: {way}"
                assert set(names) <= set(parameters.profile_values(chapter, "ci")), name
            elif place.endswith(".py"):
                code = (folder / place).read_text("utf-8")
                assert set(names) <= set(re.findall(r"(?m)^(\w+) = ", code)), f"{name}: {way}"
            else:
                file = folder / "sql" / (place or words).removeprefix("sql/")
                assert file.is_file(), f"{name}: {way}"
                headings = set(re.findall(r"-- name: (\w+)", file.read_text("utf-8")))
                assert not place or set(names) <= headings, f"{name}: {way}"
        # what the cell shows is what the experiment does by itself
        assert given == {one: own[one].default for one in given}, name


# ---- how


def weighed(bed, stones: int = 3):
    yield from bed.compare(lambda block, keys: {"index_pages": stones}, {"keys": ["one"]}, warmup=0)


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """A function that opens a chapter whose experiment takes an argument."""
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    monkeypatch.setattr(weighed, "__name__", "insert")
    module = ModuleType("toy")
    module.insert = experiment(units={"index_pages": "pages"})(weighed)
    made = []

    def opened():
        for one in made:
            one.record.release()  # as a kill does
        given = parameters.chapter_parameters("uuid_keys", {"pairs": 5})
        made.append(Notebook("uuid_keys", given, module=module))
        return made[-1]

    yield opened
    for one in made:
        one.leave()
        one.record.release()


def test_what_was_measured_with_another_argument_is_dropped(opened):
    def pages(**changed):
        return chapter.run("insert", **changed).frame["index_pages"].tolist()

    chapter = opened()
    assert pages() == [3] * 5 and pages(stones=7) == [7] * 5
    chapter = opened()  # by the same argument nothing is measured again
    before = chapter.record.rows("insert")
    assert pages(stones=7) == [7] * 5 and chapter.record.rows("insert") == before
    assert pages() == [3] * 5 and len(chapter.record.rows("insert")) == 5


def test_an_argument_that_repeats_the_experiments_own_marks_nothing(opened):
    chapter = opened()
    chapter.run("insert", stones=3)
    assert CHANGED not in chapter.record.about("insert")
    chapter.run("insert", stones=4)
    assert chapter.record.about("insert")[CHANGED] == {"stones": 4}


def test_an_argument_that_an_experiment_lacks_is_refused(opened):
    with pytest.raises(ParameterError, match="insert has no argument 'stone'.*stones"):
        opened().run("insert", stone=3)
