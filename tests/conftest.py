"""Servers that the tests share. A test that restarts, crashes or fills one makes its own."""

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from servers import SMALL, url_of

from pgrerun import cli, notebook
from pgrerun.lab.instruments import perf
from pgrerun.lab.server import Cluster, bundled
from pgrerun.lab.testbed import Testbed
from pgrerun.parameters import chapter_parameters
from pgrerun.record import runs

# A job in the background, or under nohup, has these ignored, and so would the programs that tests
# stop by them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


# What `make quick` runs: no server of its own to start and stop, no chapter, no built site. The
# tests there of several hundred made-up cases have the mark themselves.
QUICK = {
    *("test_charts", "test_claims", "test_ingres", "test_models"),
    *("test_models_group_commit", "test_models_heap_growth", "test_models_replacement"),
    *("test_narrate", "test_parameters", "test_printed", "test_project", "test_quel"),
    *("test_reached", "test_reader", "test_relations_parts", "test_rooms", "test_runs"),
    *("test_scoreboard", "test_statements", "test_statistics", "test_tables"),
}


# The files that take longest, which `make test` starts with (and which xdist would put anywhere, as
# they have few tests), so that no process is still busy with one when the others have finished.
LONGEST = (
    *("test_old_releases", "test_site_real", "test_site_print", "test_server_releases"),
    *("test_endings", "test_scalability", "test_hot"),
)


def pytest_itemcollected(item):
    # marked before pytest leaves out what `-m` doesn't name
    if item.path.stem not in QUICK or "cluster" in item.fixturenames:
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)  # when pytest has put those together that share a fixture
def pytest_collection_modifyitems(items):
    places = {stem: place for place, stem in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONGEST)))


@pytest.fixture(scope="session")
def cluster():
    """One small running cluster for the whole session; leave it running, drop what you make."""
    with Cluster(settings=SMALL) as server:
        yield server


@pytest.fixture
def connection(cluster):
    """A connection to the session's cluster, with a schema that is called own and is gone later."""
    with cluster.connect() as connection:
        connection.execute("CREATE SCHEMA own; SET search_path = own")
        yield connection
        connection.execute("DROP SCHEMA own CASCADE")


@pytest.fixture(scope="session")
def stopped():
    """A cluster for single-user backends; leave it stopped."""
    with Cluster() as server:
        server.stop()
        yield server


@pytest.fixture(scope="module")
def bed(request):
    """The servers of the module's CHAPTER with its parameters, which make it SMALL."""
    given = chapter_parameters(request.module.CHAPTER, request.module.SMALL)
    with contextlib.closing(Testbed(given, bundled())) as found:
        yield found


@pytest.fixture(scope="session")
def borrowed_url():
    """The URL of 'somebody's server': reached by a Unix socket, no password needed."""
    # which needn't outlive the machine: a chapter's commits would wait half a minute for its disk
    with Cluster(settings=SMALL | {"fsync": "off"}) as server:
        yield url_of(server)


@pytest.fixture
def records(tmp_path, monkeypatch):
    """A folder of its own for run records."""
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv(notebook.RECORD, raising=False)
    return tmp_path / "runs"


@pytest.fixture
def own_runs(records, monkeypatch):
    """The same, for published runs as well."""
    monkeypatch.setattr(runs, "CHECKOUT", records)
    return records


@pytest.fixture
def call(monkeypatch, capsys):
    """The command in this process: (status, output, errors)."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["pgrerun", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return call


@pytest.fixture
def sampling():
    if reason := perf.unavailable():
        pytest.skip(reason)


@pytest.fixture
def base(monkeypatch):
    """An empty PGRERUN_TMPDIR that the server's account may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="rerun-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("PGRERUN_TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def small_disk(base, monkeypatch):
    """A function that mounts a tmpfs of some size and makes it the base directory."""
    place = base / "disk"
    place.mkdir()

    def mount(size):
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", place],
            capture_output=True,
        )
        if done.returncode:
            pytest.skip("may not mount a tmpfs: " + done.stderr.decode().strip())
        monkeypatch.setenv("PGRERUN_TMPDIR", str(place))
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", place], check=True)
