"""A chapter of one's own: made, run by plain papermill, and ending in a verdict."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from pgrerun import parameters
from pgrerun.errors import ParameterError
from pgrerun.record import claims
from pgrerun.site import scaffold

ROOT = Path(__file__).resolve().parents[1]


def papermill(*words, cwd):
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def shown(notebook: Path) -> str:
    outputs = [one for cell in nbformat.read(notebook, 4).cells for one in cell.get("outputs", [])]
    return "\n".join(one.get("data", {}).get("text/plain", "") for one in outputs)


@pytest.mark.parametrize("where", ["inside", "on somebody's server"])
def test_a_folder_s_chapter_runs_wherever_papermill_is_called(tmp_path, where, request):
    folder = scaffold.here("full_pages", tmp_path)
    place = folder if where == "inside" else tmp_path
    given = ["rows", "500"]
    if where == "on somebody's server":
        given = ["server", request.getfixturevalue("borrowed_url")]
    source = (folder / "full_pages.ipynb").relative_to(place)
    done = papermill(source, "mine.ipynb", "-p", *given, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "fullpages-001: holds. A table" in shown(place / "mine.ipynb")
    assert (folder / "runs" / "ci" / "full_pages" / "load.parquet").exists()


def test_a_chapter_of_the_book_is_a_folder_a_notebook_and_a_line_of_the_ledger(tmp_path):
    for part in ("pgrerun/chapters", "notebooks", "data"):
        (tmp_path / part).mkdir(parents=True)
    shutil.copy(ROOT / "data" / "claims.csv", tmp_path / "data")
    before = claims.ledger(tmp_path / "data" / "claims.csv")
    _, notebook, ledger = scaffold.in_the_book("full_pages", tmp_path)
    new = {id: one.chapter for id, one in claims.ledger(ledger).items() if id not in before}
    assert new == {"fullpages-001": "full_pages"}
    nbformat.validate(nbformat.read(notebook, as_version=4))
    with pytest.raises(ParameterError, match="exists already. Nothing was written"):
        scaffold.in_the_book("full_pages", tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *(
            (name, "can't name a chapter")
            for name in ("Caps", "two words", "x" * 41, "../up", "1st", "größe", "")
        ),
        (parameters.chapters()[0], "is a chapter .* already"),
    ],
)
def test_a_name_that_cannot_be_or_is_taken_is_refused(tmp_path, name, said):
    with pytest.raises(ParameterError, match=said):
        scaffold.here(name, tmp_path)
    assert not os.listdir(tmp_path)
