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


def said(notebook: Path) -> str:
    """Everything that the executed notebook shows as text."""
    cells = nbformat.read(notebook, as_version=4).cells
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    bundles = [output.get("data", {}) for output in outputs]
    return "\n".join(bundle.get("text/plain", "") for bundle in bundles)


@pytest.mark.parametrize("inside", [False, True])
def test_a_folder_s_chapter_runs_wherever_papermill_is_called(tmp_path, inside):
    folder = scaffold.here("full_pages", tmp_path)
    given = "full_pages.ipynb" if inside else "full_pages/full_pages.ipynb"
    done = papermill(given, "mine.ipynb", "-p", "rows", "500", cwd=folder if inside else tmp_path)
    assert done.returncode == 0, done.stderr
    text = said((folder if inside else tmp_path) / "mine.ipynb")
    assert "fullpages-001: holds. A table" in text
    assert (folder / "runs" / "ci" / "full_pages" / "load.parquet").exists()


def test_a_folder_s_chapter_runs_on_somebody_s_server(tmp_path, borrowed_url):
    scaffold.here("full_pages", tmp_path)
    notebook = "full_pages/full_pages.ipynb"
    done = papermill(notebook, "mine.ipynb", "-p", "server", borrowed_url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fullpages-001: holds. A table" in said(tmp_path / "mine.ipynb")


def test_a_wrong_parameter_is_refused_there_as_well(tmp_path):
    scaffold.here("full_pages", tmp_path)
    notebook = "full_pages/full_pages.ipynb"
    done = papermill(notebook, "mine.ipynb", "-p", "row", "500", cwd=tmp_path)
    assert done.returncode != 0 and "did you mean rows?" in done.stderr


def test_what_is_written_is_short(tmp_path):
    folder = scaffold.here("full_pages", tmp_path)
    written = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".ipynb"]
    lines = [len(path.read_text().splitlines()) for path in written]
    assert len(written) == 7 and sum(lines) <= 80
    text = "".join(path.read_text() for path in written)
    assert not {"NAME", "TITLE", "PLACE", "CLAIM"} & set(text.replace('"', " ").split())


def test_a_chapter_of_the_book_is_a_folder_a_notebook_and_a_line_of_the_ledger(tmp_path):
    for part in ("pgrerun/chapters", "notebooks"):
        (tmp_path / part).mkdir(parents=True)
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data" / "claims.csv", tmp_path / "data")
    before = claims.ledger(tmp_path / "data" / "claims.csv")
    folder, notebook, ledger = scaffold.in_the_book("full_pages", tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [
        "__init__.py",
        "chapter.toml",
        "charts.toml",
        "evidence.toml",
        "experiments.py",
        "findings.toml",
        "sql",
    ]
    now = claims.ledger(ledger)
    assert set(now) - set(before) == {"fullpages-001"}
    assert now["fullpages-001"].chapter == "full_pages"
    nbformat.validate(nbformat.read(notebook, as_version=4))
    with pytest.raises(ParameterError, match="exists already. Nothing was written"):
        scaffold.in_the_book("full_pages", tmp_path)


@pytest.mark.parametrize("name", ["Caps", "two words", "x" * 41, "../up", "1st", "größe", ""])
def test_a_name_that_cannot_be_is_refused(tmp_path, name):
    with pytest.raises(ParameterError, match="can't name a chapter"):
        scaffold.here(name, tmp_path)
    assert not os.listdir(tmp_path)


def test_a_chapter_that_is_there_is_left_alone(tmp_path):
    with pytest.raises(ParameterError, match=f"is a chapter {parameters.chapters()[0]} already"):
        scaffold.here(parameters.chapters()[0], tmp_path)
