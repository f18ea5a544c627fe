"""Steps reach the file and the terminal, and never a notebook's outputs."""

import json
import os
import pty
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from nbclient import NotebookClient

from pgrerun.progress import VARIABLE, Steps, track


@pytest.fixture
def steps(tmp_path, monkeypatch):
    path = tmp_path / "steps"
    monkeypatch.setenv(VARIABLE, str(path))
    return Steps(path)


def test_yields_everything_in_order():
    assert list(track("abc", "letters")) == ["a", "b", "c"]
    assert list(track(3, "numbers")) == [0, 1, 2]


def test_reports_beginning_and_end(steps, monkeypatch):
    monkeypatch.setattr("pgrerun.progress.time", SimpleNamespace(monotonic=lambda: 1000.0))
    list(track(range(1000), "pairs"))
    lines = steps.new()
    assert lines[0] == {"description": "pairs", "done": 0, "total": 1000}
    assert lines[-1] == {"description": "pairs", "done": 1000, "total": 1000}
    assert len(lines) == 3  # quick steps are not written one by one
    assert steps.new() == []


def test_unknown_length_ends_at_what_was_done(steps):
    list(track((n for n in range(4)), "blocks"))
    lines = steps.new()
    assert lines[0]["total"] is None
    assert lines[-1] == {"description": "blocks", "done": 4, "total": 4}


def test_a_loop_left_by_an_exception_stays_unfinished(steps):
    with pytest.raises(ZeroDivisionError):
        for n in track(5, "pairs"):
            1 / (n - 2)
    assert steps.new()[-1]["done"] < 5


def test_half_a_line_waits_for_its_other_half(steps):
    steps.path.write_text('{"description": "a", "done": 1, "total": 2}\n{"descr')
    assert [step["done"] for step in steps.new()] == [1]
    with open(steps.path, "a") as lines:
        lines.write('iption": "a", "done": 2, "total": 2}\n')
    assert [step["done"] for step in steps.new()] == [2]


def test_an_unwritable_file_does_not_stop_the_loop(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing" / "steps"))
    assert list(track(2, "pairs")) == [0, 1]


def test_draws_nested_bars_on_a_terminal():
    code = (
        "import time; from pgrerun.progress import track\n"
        "for _ in track(2, 'outer'):\n    for _ in track(2, 'inner'): time.sleep(0.15)\n"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env=environment)
    os.close(theirs)
    drawn = b""
    try:
        while chunk := os.read(ours, 65536):
            drawn += chunk
    except OSError:  # Linux reports the closed other end as an error
        pass
    os.close(ours)
    assert process.wait() == 0
    assert b"outer" in drawn and b"inner" in drawn


def test_writes_nothing_into_a_notebook(tmp_path):
    path = tmp_path / "steps"
    code = (
        f"import os; os.environ[{VARIABLE!r}] = {str(path)!r}\nfrom pgrerun.progress import"
        " track\nfor _ in track(3, 'pairs'): pass"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, kernel_name="python3").execute()
    assert notebook.cells[0].outputs == []
    assert json.loads(path.read_text().splitlines()[-1])["done"] == 3
