"""Every chapter, as short as it can be, on somebody's server: nothing of it is left there."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from servers import smallest, until, url_of
from strangers import dump

from pgrerun import parameters
from pgrerun.lab.server import Cluster

ROOT = Path(__file__).resolve().parents[2]
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_LEFT = """
SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
       (SELECT count(*) FROM pg_replication_slots),
       (SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings
        WHERE source NOT IN ('default', 'override', 'client'))
"""


@pytest.fixture(scope="module")
def server():
    with Cluster(settings={"shared_buffers": "32MB"}) as found:
        with found.connect() as connection:
            connection.execute("CREATE TABLE public.theirs AS SELECT 1 AS kept")
        yield found


def state(server: Cluster) -> tuple:
    """All that is in the cluster, and what sessions have left."""
    text = dump(server)
    with psycopg.connect(url_of(server), autocommit=True) as connection:
        # a session, as the dump's, ends on the server a moment after its client has gone
        until(lambda: connection.execute(_OTHERS).fetchone() == (0,))
        return text, connection.execute(_LEFT).fetchone()


@pytest.mark.parametrize("chapter", parameters.chapters())
def test_nothing_of_a_chapter_is_left(server, chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path / "runs"))
    before = state(server)
    given = [
        word for name, value in smallest(chapter).items() for word in ("-p", f"{name}={value}")
    ]
    command = [sys.executable, "-m", "pgrerun", "run", chapter, "--server", url_of(server)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "mine.ipynb"), *given],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr
    assert state(server) == before
