"""However the process that owns a server ends, nothing of it stays behind.

After kill -9 its processes end with it, and the next run removes its directory.

The owners are child processes: run as this user, as an ordinary user, from a checkout
that the server's account can't enter.
"""

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import psycopg
import pytest
from servers import as_root, left, mapped, until

from pgrerun.lab.server import Cluster, bundled, private, processes, sweep

# This checkout, and the packages of this Python: other Pythons run owners as well.
PYTHONPATH = [
    str(Path(private.__file__).resolve().parents[3]),
    str(Path(psycopg.__file__).parents[1]),
]
OWNER = """
import os, sys, time
from pgrerun.lab.server import Cluster
server = Cluster()
print(os.getpid(), *server.pids(), flush=True)
sys.stdin.readline()
{after}
"""
SLEEP = "print('asleep', flush=True); time.sleep(3600)"


class Owner:
    """A child process that owns a cluster below `place`."""

    def __init__(self, place: Path, after=SLEEP, python=sys.executable, code=OWNER, **popen):
        environment = os.environ | {
            "PGRERUN_TMPDIR": str(place),
            "PYTHONPATH": os.pathsep.join(PYTHONPATH),
        }
        self.place = place
        self.process = subprocess.Popen(
            [python, "-c", code.format(after=after)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd="/",
            **popen,
        )

    def ready(self) -> "Owner":
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.servers = []
        for pid in line.split()[1:]:
            with contextlib.suppress(
                psutil.NoSuchProcess
            ):  # the backend that listed them ends soon after
                self.servers.append(psutil.Process(int(pid)))
        assert self.servers, "the server ended before its owner did"
        return self

    def go(self) -> str:
        """Let it do what it is to do `after`; returns the first line it prints, if any."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def finish(self) -> tuple[int, str]:
        """Wait for its end: exit status and what it wrote to stderr."""
        _, errors = self.process.communicate(timeout=300)
        return self.process.returncode, errors

    def kill(self) -> None:
        self.process.kill()
        self.finish()

    def alive(self) -> list:
        return [process for process in self.servers if not processes.has_ended(process)]

    def left(self) -> list:
        return self.alive() + list(self.place.iterdir())


def assert_ends_with_owner(owner: Owner):
    """Of a killed owner's cluster nothing runs any more, and the next sweep removes its files."""
    assert processes.await_end(owner.servers, patience=120) == []
    sweep(owner.place)
    assert owner.left() == []


ENDINGS = {
    # name: (what the owner does, the signal it gets, how it ends)
    "end of the program": ("", None, 0),
    "an exception": ("raise RuntimeError('the experiment failed')", None, 1),
    "os._exit": ("os._exit(4)", None, 4),
    "Ctrl-C": (SLEEP, signal.SIGINT, -signal.SIGINT),
    "Ctrl-C in a with block": ("with server: " + SLEEP, signal.SIGINT, -signal.SIGINT),
    "SIGTERM": (SLEEP, signal.SIGTERM, -signal.SIGTERM),
    "SIGHUP": (SLEEP, signal.SIGHUP, -signal.SIGHUP),
    "kill -9": (SLEEP, signal.SIGKILL, -signal.SIGKILL),
}


@pytest.fixture(scope="module")
def owners():
    """One owner for each ending, all at once: most of their time is start-up."""
    with tempfile.TemporaryDirectory(prefix="rerun-test-", dir="/var/tmp") as top:
        Path(top).chmod(0o755)
        started = {}
        for number, (ending, (what, _, _)) in enumerate(ENDINGS.items()):
            place = Path(top, str(number))
            place.mkdir()
            started[ending] = Owner(place, after=what)
        yield started


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left_after(owners, ending):
    what, number, status = ENDINGS[ending]
    owner = owners[ending].ready()
    assert len(owner.servers) > 3
    said = owner.go()
    if number:
        assert said == "asleep\n"
        owner.process.send_signal(number)
    returned, errors = owner.finish()
    assert returned == status, errors
    if ending in ("kill -9", "os._exit"):
        assert_ends_with_owner(owner)
    else:
        assert owner.left() == []


def test_a_port_is_closed_when_its_owner_is_killed_in_the_block(base):
    block = (
        "block = server.listening(); print(block.__enter__().port, flush=True); time.sleep(3600)"
    )
    owner = Owner(base, after=block).ready()
    port = int(owner.go())
    with socket.create_connection(("127.0.0.1", port)):
        pass
    owner.kill()
    assert_ends_with_owner(owner)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_cluster_started_in_a_thread_outlives_the_thread(base):
    in_a_thread = (
        "import threading; found = []; thread = threading.Thread(target=lambda:"
        " found.append(Cluster()))\nthread.start(); thread.join(); time.sleep(0.1); server ="
        " found[0]"
    )
    code = OWNER.replace("server = Cluster()", in_a_thread)
    owner = Owner(
        base, code=code, after="print(server.tool('psql', '-Atc', 'SELECT 41 + 1').stdout)"
    ).ready()
    assert owner.go() == "42\n"
    assert owner.finish() == (0, "") and owner.left() == []


def orphan(place: Path) -> Owner:
    """A cluster that runs on after its owner was killed, as on a kernel that ends no children."""
    unbound = "from pgrerun.lab.server import cluster, private; cluster.end_with_us = private.drop"
    owner = Owner(place, code=unbound + OWNER).ready()
    owner.kill()
    assert owner.servers[0].is_running()
    return owner


def test_sweep_removes_what_a_killed_run_left_and_spares_a_live_one(base):
    (base / "live").mkdir()
    live = Owner(base / "live")
    leftover = orphan(base)
    shared = mapped(leftover.servers[0].pid)
    live.ready()
    next((base / "live").iterdir()).rename(base / "pgrerun-alivealv")  # where sweep() looks
    assert len(shared) > 1 and [path.parent for path in sweep()] == [base]
    assert left(shared) == set() and leftover.alive() == []
    assert live.servers[0].is_running()
    assert [entry.name for entry in base.glob("pgrerun-*")] == ["pgrerun-alivealv"]
    assert sweep() == []
    (base / "pgrerun-alivealv").rename(base / "live" / "pgrerun-back")
    live.kill()
    assert processes.await_end(live.servers, patience=120) == []


def test_the_next_cluster_sweeps_first_also_what_kill_9_has_stopped_dead(base):
    leftover = Owner(base).ready()
    shared = mapped(leftover.servers[0].pid)
    for process in leftover.servers:
        with contextlib.suppress(psutil.Error):
            process.kill()
    leftover.kill()
    assert processes.await_end(leftover.servers, patience=120) == []
    assert len(left(shared)) >= 2, "nobody was left to return it"
    with Cluster() as server:
        assert list(base.iterdir()) == [server.data_directory.parent]
    assert left(shared) == set()


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_a_backend_under_valgrind_ends_with_its_owner(base):
    endless = """server.stop()
said = dict(input="SELECT count(*) FROM generate_series(1, 1000000000)\\n", capture_output=True)
import threading
work = lambda: server.single_user(under=("valgrind", "--tool=callgrind"), **said)
threading.Thread(target=work).start()
while not (server.data_directory / "postmaster.pid").exists(): time.sleep(0.05)
time.sleep(0.2)
print((server.data_directory / "postmaster.pid").read_text().split()[0], flush=True)"""
    owner = Owner(base, after=endless).ready()
    backend = psutil.Process(abs(int(owner.go())))
    until(lambda: len(mapped(backend.pid)) > 1)
    shared = mapped(backend.pid)
    owner.kill()
    assert_ends_with_owner(owner)
    assert processes.await_end([backend], patience=120) == []
    assert left(shared) == set()


def fake_leftover(base: Path, name: str) -> Path:
    folder = base / name
    (folder / "data").mkdir(parents=True)
    (folder / private.MARKER).touch()
    return folder


def test_sweep_goes_by_marker_and_lock(base):
    dead, held = fake_leftover(base, "pgrerun-dead0001"), fake_leftover(base, "pgrerun-held0001")
    unmarked = base / "pgrerun-unmarked"
    (unmarked / "data").mkdir(parents=True)
    other_name = fake_leftover(base, "precious")
    killed_at_once = base / "pgrerun-empty001"  # before it was marked
    killed_at_once.mkdir()
    with open(held / private.MARKER) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sweep() == [dead, killed_at_once]
    assert all(folder.exists() for folder in (held, unmarked, other_name))
    assert sweep() == [held]


def test_a_sweep_that_removes_a_new_directory_first_makes_its_owner_take_another(base, monkeypatch):
    make, made = tempfile.mkdtemp, []

    def swept_once(**keywords):
        made.append(Path(make(**keywords)))
        if len(made) == 1:
            assert sweep() == made
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", swept_once)
    with private.PrivateDirectory(base) as directory:
        assert len(made) == 2 and directory.path == made[1] and sweep() == []
    assert list(base.iterdir()) == []


def test_a_sweep_makes_nothing_in_a_directory_that_its_owner_is_removing(base, monkeypatch):
    """It made the marker anew to lock it, and the owner's rmdir failed: Directory not empty."""
    remove, directory = Path.unlink, private.PrivateDirectory(base)

    def killed(folder: Path):
        raise private.ServerError(f"This sweep ends before it has removed {folder}.")

    def looked_at_by_a_sweep(path: Path, **keywords):
        remove(path, **keywords)
        if path.name == private.MARKER:
            monkeypatch.setattr(private, "end_processes", killed)
            assert sweep() == [directory.path]

    monkeypatch.setattr(Path, "unlink", looked_at_by_a_sweep)
    directory.close()
    assert list(base.iterdir()) == []


def test_what_could_not_be_removed_keeps_its_marker_for_the_next_sweep(base, monkeypatch):
    left = fake_leftover(base, "pgrerun-stubborn")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *arguments, **keywords: None)
        assert sweep() == [] and (left / private.MARKER).exists()
    assert sweep() == [left]


@as_root
def test_sweep_leaves_another_users_directory(base):
    theirs = fake_leftover(base, "pgrerun-theirs01")
    os.chown(theirs / private.MARKER, 65534, 65534)
    assert sweep() == [] and theirs.exists()
    os.chown(theirs / private.MARKER, 0, 0)
    elsewhere = base / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    (theirs / "data" / "link").symlink_to(elsewhere)
    assert sweep() == [theirs] and (elsewhere / "kept").exists(), "links aren't followed"


# -- who and where --


@as_root
def test_an_ordinary_user_needs_no_dropping_and_no_copy(base):
    nobody = pwd.getpwnam("nobody")
    who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    os.chown(base, nobody.pw_uid, nobody.pw_gid)
    # this one, or one that may stand in if it lies in root's home
    pythons = (os.path.realpath(sys.executable), "/usr/bin/python{}.{}".format(*sys.version_info))
    python = next(filter(lambda python: runs(python, who), pythons), None)
    if python is None:
        pytest.skip(
            f"an ordinary user can't run {' or '.join(pythons)} with what is in {PYTHONPATH}"
        )
    after = (
        """
assert os.geteuid() != 0 and server.tool("psql", "-Atc", "SELECT 1").stdout == "1\\n"
assert len(os.listdir(os.environ["PGRERUN_TMPDIR"])) == 1, "programs were copied without need"
"""
        + SLEEP
    )
    owner = Owner(base, python=python, after=after, **who).ready()
    users = set()
    for process in owner.servers:
        with contextlib.suppress(psutil.NoSuchProcess):  # a server's worker, which comes and goes
            users.add(process.uids().real)
    assert users == {nobody.pw_uid}
    assert Path(owner.servers[0].exe()).is_relative_to(bundled().bindir.resolve())
    said = owner.go()
    owner.process.send_signal(signal.SIGINT)
    status, errors = owner.finish()
    assert said == "asleep\n" and status == -signal.SIGINT, errors
    assert owner.left() == []


def runs(python: str, who: dict) -> bool:
    """Whether a user can run this Python, with our package and what it needs."""
    command = [python, "-c", "from pgrerun.lab.server import Cluster"]
    environment = {"PYTHONPATH": os.pathsep.join(PYTHONPATH)}
    with contextlib.suppress(OSError):
        how = {"cwd": "/", "env": environment, "capture_output": True}
        return not subprocess.run(command, **how, **who).returncode
    return False
