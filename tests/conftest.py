"""Servers that the tests share. A test that restarts, crashes or fills one makes its own."""

import pytest

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
        yield f"postgresql://postgres@/postgres?host={server.conninfo().split('host=')[1].split()[0]}"
