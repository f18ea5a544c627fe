"""Every chapter where nothing can be measured: each claim still gets its word, and a reason.

So it is on somebody's server whose role may do nothing, or whose release lacks it all. What this
finds is a claim that an experiment forgets to name (see `chapter.experiment`).
"""

from pathlib import Path

import nbformat
import pytest

from pgrerun.chapter import Chapter, Declaration
from pgrerun.errors import CannotMeasure
from pgrerun.record import claims

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
NOTHING = CannotMeasure("anything", "nothing can be measured here")


def _set_aside(chapter, measure, *given, **changed):
    chapter.set_aside(NOTHING, getattr(measure, "declared", Declaration()).claims)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_claim_gets_its_word_where_every_experiment_is_set_aside(path, monkeypatch, tmp_path):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    monkeypatch.setattr(Chapter, "attempt", _set_aside)
    judged = {}
    monkeypatch.setattr("pgrerun.chapter.display", lambda *shown, **more: None)
    close = Chapter.close
    monkeypatch.setattr(
        Chapter,
        "close",
        lambda chapter: (
            (judged.update({j.claim.id: j for j in chapter.evidence.judgements})) or close(chapter)
        ),
    )
    namespace = {"__name__": "__main__"}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.startswith("%%"):
            exec(compile(cell.source, f"{path.stem} {cell.id}", "exec"), namespace)
    expected = {one.id: one for one in claims.ledger().values() if one.chapter == path.stem}
    assert set(judged) == set(expected)
