"""Every chapter, as short as it can be, on somebody's server: nothing of it is left there."""

import subprocess
import sys
from pathlib import Path

import pytest
from servers import smallest, url_of
from strangers import untouched

from pgrerun import parameters
from pgrerun.lab.server import Cluster

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server():
    with Cluster(settings={"shared_buffers": "32MB"}) as found:
        with found.connect() as connection:
            connection.execute("CREATE TABLE public.theirs AS SELECT 1 AS kept")
        yield found


@pytest.mark.parametrize("chapter", parameters.chapters())
def test_nothing_of_a_chapter_is_left(server, chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path / "runs"))
    given = [
        word for name, value in smallest(chapter).items() for word in ("-p", f"{name}={value}")
    ]
    command = [sys.executable, "-m", "pgrerun", "run", chapter, "--server", url_of(server)]
    with untouched(server):
        done = subprocess.run(
            [*command, "--out", str(tmp_path / "mine.ipynb"), *given],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=1800,
        )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr
