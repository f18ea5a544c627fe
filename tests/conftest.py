"""Servers that the tests share. A test that restarts, crashes or fills one makes its own."""

import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from pgrerun.server import Cluster

SMALL = {"shared_buffers": "8MB", "max_connections": 40}


@pytest.fixture(scope="session")
def cluster():
    """One small running cluster for the whole session; leave it running, drop what you make."""
    with Cluster(settings=SMALL) as server:
        yield server


@pytest.fixture(scope="session")
def borrowed_url():
    """The URL of 'somebody's server': reached by a Unix socket, no password needed."""
    with Cluster(settings=SMALL) as server:
        yield url_of(server)


def url_of(server: Cluster, user: str = "postgres", database: str = "postgres") -> str:
    """The URL by which somebody else would borrow `server`."""
    return f"postgresql://{user}@/{database}?host={quote(conninfo_to_dict(server.conninfo())['host'], safe='')}"


@pytest.fixture
def base(monkeypatch):
    """An empty PGRERUN_TMPDIR that the server's account may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="rerun-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("PGRERUN_TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)
