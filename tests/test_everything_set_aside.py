"""Every chapter where nothing can be measured: each claim still gets its word, and a reason.

So it is on somebody's server whose role may do nothing, or whose release lacks it all. What this
finds is a cell that needs rows, or a claim that is judged nowhere.
"""

from pathlib import Path

import nbformat
import pytest

from pgrerun import notebook, parameters
from pgrerun.errors import CannotMeasure
from pgrerun.lab.testbed import Testbed
from pgrerun.notebook import Notebook
from pgrerun.record import claims

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def nothing(bed, *_):
    raise CannotMeasure("anything", "nothing can be measured here")
    yield


@pytest.mark.parametrize("name", parameters.chapters())
def test_each_claim_gets_its_word_where_every_experiment_is_set_aside(name, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    monkeypatch.delenv(notebook.RECORD, raising=False)
    monkeypatch.setattr(Testbed, "measure", nothing)
    monkeypatch.setattr(notebook, "display", lambda *shown, **more: None)
    judged, close = {}, Notebook.close

    def closed(chapter):
        judged.update({j.claim.id: j for j in chapter.evidence.judgements})
        close(chapter)

    monkeypatch.setattr(Notebook, "close", closed)
    namespace = {"__name__": "__main__"}
    for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.startswith("%%"):
            exec(compile(cell.source, f"{name} {cell.id}", "exec"), namespace)
    expected = {one.id: one for one in claims.ledger().values() if one.chapter == name}
    assert set(judged) == set(expected)
