"""What a reader changes is said at each experiment, in the notebook, and changing it works."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import nbformat
import pytest

from pgrerun import cells, parameters
from pgrerun.chapter import GIVEN, Chapter, experiment
from pgrerun.chapters.hot.experiments import growth
from pgrerun.errors import ParameterError
from pgrerun.lab import sent
from pgrerun.lab.experiment import Variant
from pgrerun.parameters import ONLY
from pgrerun.record import runs
from pgrerun.site import inputs

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
SAID = re.compile(r"# Change (.+)")
PARAMETER = re.compile(r"\b(?:parameters|given)\.(\w+)")


def attempts(chapter: str):
    """Each call of `chapter.attempt` with the experiment and the comment above the statement."""
    notebook = nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    known: dict = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.source.startswith("%"):
            continue
        lines = cell.source.splitlines()
        for statement in ast.parse(cell.source).body:
            if "parameters" in cell.metadata.get("tags", []) or cells.learn(statement, known):
                continue
            above = SAID.fullmatch(lines[statement.lineno - 2]) if statement.lineno > 1 else None
            for call in ast.walk(statement):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "chapter.attempt":
                    measure = cells.value(call.args[0], known)
                    yield call, measure, above and above.group(1)


def named_in(function) -> set[str]:
    """The dotted names of other things in the code of a function or class, none of its words."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    local = {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    stored = (one for one in ast.walk(tree) if isinstance(one, ast.Name))
    local |= {one.id for one in stored if isinstance(one.ctx, ast.Store)}
    found = {
        ast.unparse(one) for one in ast.walk(tree) if isinstance(one, ast.Name | ast.Attribute)
    }
    plain = (one for one in found if re.fullmatch(r"[a-zA-Z_][\w.]*", one))
    return {one for one in plain if one.split(".")[0] not in local or PARAMETER.search(one)}


def reads(measure) -> set[str]:
    """Names of parameters in the code of a function and of whatever of its chapter it names."""
    found, seen, left = set(), set(), [measure]
    while left:
        function = left.pop()
        if function in seen:
            continue
        seen.add(function)
        names = named_in(function)
        found |= {one[1] for name in names if (one := PARAMETER.search(name))}
        known = inspect.getmodule(function).__dict__
        for name in names:
            owner, _, member = name.partition(".")
            one = known.get(owner)
            if inspect.ismodule(one) and one.__name__.startswith("pgrerun.chapters"):
                one = getattr(one, member, None)
            ours = inspect.isfunction(one) or inspect.isclass(one)
            if ours and one.__module__.startswith("pgrerun.chapters"):
                left.append(one)
    return found


@pytest.mark.parametrize("chapter", parameters.chapters())
def test_every_experiment_says_what_to_change(chapter):
    sql = parameters.folder(chapter) / "sql"
    found = list(attempts(chapter))
    assert found
    named = {sent.name_of(measure): measure for _, measure, _ in found}
    for call, measure, said in found:
        name = sent.name_of(measure)
        assert said, f"{name}: no comment says which line to change"
        ways = said.split(", or ")
        own = inspect.signature(measure).parameters
        given = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        for way in ways:
            words, _, place = way.partition(" below")[0].partition(" in ")
            names = re.split(" and | or ", words)
            if " below" in way:
                assert names == list(given), f"{name}: {way}"
            elif place == "the first cell":
                before = [named[one] for one in measure.declared.after]
                assert set(names) <= set().union(*map(reads, [measure, *before])), f"{name}: {way}"
                assert set(names) <= set(parameters.profile_values(chapter, "ci")), name
            elif place.endswith(".py"):
                code = (sql.parent / place).read_text("utf-8")
                assert set(names) <= set(re.findall(r"(?m)^(\w+) = ", code)), f"{name}: {way}"
            else:
                file = sql / (place or words).removeprefix("sql/")
                assert file.is_file(), f"{name}: {way}"
                headings = set(re.findall(r"-- name: (\w+)", file.read_text("utf-8")))
                assert not place or set(names) <= headings, f"{name}: {way}"
        # what the cell shows is what the experiment does by itself
        assert given == {one: own[one].default for one in given}, name


def changed(tmp_path, chapter: str, *changes: tuple[str, str], only: str = "") -> runs.Record:
    """The record of a chapter's notebook in which a reader has changed lines."""
    text = (NOTEBOOKS / f"{chapter}.ipynb").read_text("utf-8")
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    (tmp_path / "mine.ipynb").write_text(text, "utf-8")
    command = [sys.executable, "-m", "papermill", str(tmp_path / "mine.ipynb"), "done.ipynb"]
    environment = {"PGRERUN_RUNS": str(tmp_path / "runs"), "PYTHONPATH": str(ROOT), ONLY: only}
    done = subprocess.run(
        [*command, "--no-progress-bar"],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return runs.load(tmp_path / "runs" / "ci" / chapter)


@pytest.mark.slow
def test_a_parameter_changed_in_the_first_cell_is_what_runs(tmp_path):
    record = changed(tmp_path, "uuid_keys", ("rows = 20000", "rows = 1000"))
    pages = record.observations[record.observations["metric"] == "size of the index"]
    assert pages["value"].max() < 20 and record.environment["parameters"]["rows"] == 1000


@pytest.mark.slow
def test_an_argument_changed_in_the_cell_is_what_runs(tmp_path):
    only = "growth.queue,page.pruned_when"
    changes = ("jobs=1000, batches=40", "jobs=50, batches=4"), ("rows=40, updates=60", "rows=40")
    record = changed(tmp_path, "hot", *changes, only=only)
    accounts = record.environment["sent"]
    assert accounts["growth.queue"][GIVEN] == {"jobs": 50, "batches": 4}
    assert GIVEN not in accounts["page.pruned_when"]
    [[_, batches]] = [
        one for one in accounts["growth.queue"]["statements"] if one[0].startswith("VACUUM jobs")
    ]
    assert batches == len(growth.QUEUES) * 4 / 2  # after every second of the batches that are given


# ---- how


@experiment()
def weighed(chapter, stones: int = 3):
    chapter.keep("counted", "all", {"stones": stones}, "")
    measured = Variant("all", lambda block: {"weight": stones})
    chapter.compare("weighed", [measured], {"weight": "kg"}, warmup=0)
    return stones


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    opened = Chapter("uuid_keys", parameters.chapter_parameters("uuid_keys", {"pairs": 5}))
    yield opened
    opened.leave()
    opened.run.release()


def test_what_was_measured_with_another_argument_is_dropped(chapter):
    assert chapter.attempt(weighed) == 3
    assert chapter.attempt(weighed, stones=7) == 7
    assert set(chapter.run.observations()["value"]) == {7}
    assert len(chapter.run.observations("weighed")) == 5
    assert any("run again with other arguments" in note for note in chapter.run.notes)
    chapter.run.release()  # killed, and taken up again: by the same argument nothing is dropped
    again = Chapter("uuid_keys", chapter.parameters)
    assert set(again.run.observations()["value"]) == {7}
    assert again.attempt(weighed, stones=7) == 7 and len(again.run.observations("weighed")) == 5
    assert again.attempt(weighed) == 3 and set(again.run.observations()["value"]) == {3}
    again.run.release()


def test_an_argument_that_repeats_the_experiments_own_marks_nothing(chapter):
    chapter.attempt(weighed, stones=3)
    assert not any(GIVEN in json.loads(one) for one in chapter.run.observations()["flags"])


def test_an_argument_that_an_experiment_lacks_is_refused(chapter):
    with pytest.raises(ParameterError, match="weighed has no argument 'stone'.*stones"):
        chapter.attempt(weighed, stone=3)


# ---- whose page it is


def notebook(*sources: str) -> nbformat.NotebookNode:
    made = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=made)


IMPORT = "from pgrerun.chapters import hot"
QUEUE = "chapter.attempt(hot.experiments.growth.queue{})"


@pytest.mark.parametrize(
    ("said", "was", "same"),
    [
        ("# Change jobs below\n" + QUEUE.format(", jobs=1000"), QUEUE.format(""), True),
        (QUEUE.format(", jobs=1000"), QUEUE.format(", jobs=1000"), True),
        (QUEUE.format(", jobs=1000"), QUEUE.format(", jobs=10"), False),
        (QUEUE.format(", jobs=10"), QUEUE.format(""), False),
        (QUEUE.format(""), QUEUE.format(", jobs=1000"), False),
        (QUEUE.format(""), "chapter.attempt(", False),
        ('table(found, "Pages, by size")', "table(found)", True),
        ('table(found, "Pages, by size")', 'table(found, "Pages")', True),
        ('table(found, "Pages")', 'table(other, "Pages")', False),
    ],
)
def test_a_page_is_of_the_notebooks_code_whatever_its_comments(said, was, same):
    assert inputs.same_code(notebook(IMPORT, said), notebook(IMPORT, was)) is same


def test_nothing_of_a_page_is_executed(tmp_path):
    spoken = f"chapter.attempt(open({str(tmp_path / 'written')!r}, 'w'), jobs=1000)"
    assert not inputs.same_code(notebook(IMPORT, QUEUE.format("")), notebook(spoken))
    assert not list(tmp_path.iterdir())
