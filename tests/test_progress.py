"""Steps reach the file and the terminal, and never a notebook's outputs."""

import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from pgrerun.progress import VARIABLE, Steps, track


@pytest.fixture
def steps(tmp_path, monkeypatch):
    path = tmp_path / "steps"
    monkeypatch.setenv(VARIABLE, str(path))
    return Steps(path)


@pytest.mark.parametrize(
    ("items", "total"), [("abcd", 4), (range(4), 4), ((n for n in range(4)), None)]
)
def test_a_loop_is_reported_from_its_beginning_to_its_end(steps, items, total):
    assert len(list(track(items, "blocks"))) == 4
    first, *_, last = steps.new()
    assert first == {"description": "blocks", "done": 0, "total": total}
    assert last == {"description": "blocks", "done": 4, "total": 4}
    assert steps.new() == []


def test_half_a_line_waits_for_its_other_half(steps):
    steps.path.write_text('{"description": "a", "done": 1, "total": 2}\n{"descr')
    assert [step["done"] for step in steps.new()] == [1]
    with open(steps.path, "a") as lines:
        lines.write('iption": "a", "done": 2, "total": 2}\n')
    assert [step["done"] for step in steps.new()] == [2]


def test_an_unwritable_file_does_not_stop_the_loop(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing" / "steps"))
    assert list(track(range(2), "pairs")) == [0, 1]


def test_writes_nothing_into_a_notebook(steps):
    code = "from pgrerun.progress import track\nfor _ in track(range(3), 'pairs'): pass"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, kernel_name="python3").execute()
    assert notebook.cells[0].outputs == [] and steps.new()[-1]["done"] == 3


def test_draws_nested_bars_on_a_terminal(tmp_path):
    (tmp_path / "loops.py").write_text(
        "import time; from pgrerun.progress import track\n"
        "for _ in track(range(2), 'outer'):\n"
        "    for _ in track(range(2), 'inner'): time.sleep(0.15)\n"
    )
    terminal = ["script", "-qec", f"{sys.executable} {tmp_path}/loops.py", "/dev/null"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(terminal, capture_output=True, env=environment)
    assert done.returncode == 0 and b"outer" in done.stdout and b"inner" in done.stdout
