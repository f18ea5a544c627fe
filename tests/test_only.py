"""One experiment alone: what it goes on from is found in the notebook, and the rest is left out."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from pgrerun import parameters
from pgrerun.chapter import WHOLE, Chapter, experiment
from pgrerun.chapters import scalability
from pgrerun.errors import BookError, ParameterError
from pgrerun.parameters import ONLY
from pgrerun.record.verdicts import Verdict
from pgrerun.site.execution import execute
from pgrerun.site.only import experiments, needed

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
CELLS = """from pgrerun.chapters import hot, scalability
page = hot.experiments.page

states = chapter.attempt(page.states)
table(states)

shown = chapter.show(hot.evidence.summary, states)
when = chapter.attempt(hot.experiments.page.pruned_when, shown)

%%postquel
retrieve (t.unique1)

chapter.attempt(hot.experiments.growth.sizes, when)
chapter.attempt(scalability.experiments.commits.simulate)"""


@pytest.fixture
def notebook(tmp_path):
    cells = [new_code_cell(source) for source in CELLS.split("\n\n")]
    nbformat.write(new_notebook(cells=cells), tmp_path / "toy.ipynb")
    return tmp_path / "toy.ipynb"


def test_what_an_experiment_goes_on_from_comes_with_it(notebook):
    every = {"growth.sizes", "page.pruned_when", "page.states"}
    assert set(needed(notebook, "growth.sizes")) == every
    assert needed(notebook, "states") == ["page.states"]
    declared = scalability.experiments.commits.simulate.declared.after
    assert needed(notebook, "simulate") == ["commits.simulate", *declared]


def test_what_loads_a_chapters_relations_comes_with_each_of_its_experiments():
    loading = {"scans.prepared", "joins.prepared"}
    for one, before in experiments(nbformat.read(NOTEBOOKS / "optimizer.ipynb", 4)).items():
        assert one in loading or loading <= set(before)
    assert needed(NOTEBOOKS / "optimizer.ipynb", "joins.instructions")[0] == "joins.instructions"


def test_an_unknown_name_is_answered_by_the_nearest(notebook):
    with pytest.raises(ParameterError, match="did you mean page.states?"):
        needed(notebook, "page.state")


def test_a_name_that_several_have_is_refused():
    with pytest.raises(ParameterError, match="Several.*throughput.ladder, slow_disk.ladder"):
        needed(NOTEBOOKS / "tp1.ipynb", "ladder")


@pytest.mark.parametrize("chapter", parameters.chapters())
def test_what_is_gone_on_from_is_attempted_too(chapter):
    found = experiments(nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4))
    assert found
    for before in found.values():
        assert set(before) <= set(found)


@experiment(claims=["lai-048"])
def one(chapter):
    return 1


@experiment(claims=["lai-055"])
def other(chapter):
    return 2


def test_experiments_that_were_not_asked_for_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    monkeypatch.setenv(ONLY, "test_only.other")
    monkeypatch.setattr("pgrerun.chapter.display", lambda *said, **metadata: None)
    chapter = Chapter("tp1", parameters.chapter_parameters("tp1", {}))
    assert chapter.attempt(one) is None and chapter.attempt(other) == 2
    chapter.judge("lai-055", lambda chapter: chapter.median("never", "time", "x"))
    chapter.close()
    judged = {j.claim.id: j for j in chapter.evidence.judgements}
    assert {j.verdict for j in judged.values()} == {Verdict.NOT_TESTABLE}
    assert judged["lai-048"].capability == WHOLE


def test_cells_in_postquel_need_what_was_not_asked_for(tmp_path):
    cells = [new_code_cell("x = 1"), new_code_cell("%%postquel\nretrieve (t.a)")]
    nbformat.write(new_notebook(cells=cells), tmp_path / "toy.ipynb")

    def run(whole):
        return execute(
            tmp_path / "toy.ipynb",
            tmp_path / "out.ipynb",
            {},
            title="toy",
            scratch=tmp_path,
            whole=whole,
        )

    assert [cell.execution_count for cell in run(whole=False).cells] == [1, None]
    with pytest.raises(BookError, match="postquel"):
        run(whole=True)
