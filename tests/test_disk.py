"""The disk that makes one wait: its arithmetic by a clock of ours, and what programs meet on it.

Nothing here says how long something took at most: only counts, and that nobody is served sooner
than the disk can.
"""

import contextlib
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from servers import SMALL, tell

from pgrerun.errors import CannotMeasure
from pgrerun.lab import disk
from pgrerun.lab.disk import Disk, library
from pgrerun.lab.instruments import overlap
from pgrerun.lab.server import Cluster

MS = 1e-3


@pytest.fixture
def slow():
    with disk.Slowed() as made:
        yield made


# ---- its arithmetic


def test_it_serves_one_at_a_time_in_the_order_of_arrival_and_lets_other_kinds_pass(slow):
    slow.set(Disk(read=10 * MS, write=20 * MS))
    asked = (("read", 1.0), ("write", 1.001), ("read", 1.002), ("flush", 1.003), ("read", 2.0))
    served = [slow.serve(kind, now) for kind, now in asked]
    # nothing slows flushes, and at last nobody is there any more
    assert served == pytest.approx([1.010, 1.030, 1.040, 1.003, 2.010])


def test_a_stretch_of_time_counts_its_own_requests(slow):
    slow.set(Disk(read=10 * MS))
    slow.serve("read", 1.0, size=8192)
    with attached(slow).serving(Disk(read=10 * MS, write=30 * MS)) as stretch:
        for kind, size in (("read", 8192), ("read", 8192), ("write", 100), ("flush", 0)):
            slow.serve(kind, 1.0, size=size)
        assert stretch.counts().reads.requests == 2
    slow.serve("read", 5.0)
    counts = stretch.counts()
    kinds = (counts.reads, counts.writes, counts.flushes, counts.all)
    assert [kind.requests for kind in kinds] == [2, 1, 1, 4] and counts.reads.bytes == 16384
    assert (counts.reads.busy, counts.all.busy) == pytest.approx((0.020, 0.050))
    # one read behind the other, and the write behind both
    assert (counts.reads.queued, counts.writes.queued) == pytest.approx((0.010, 0.020))


def draws(slow, seed, number=4000):
    slow.set(Disk(read=5 * MS, drawn=True, seed=seed))
    return np.array([slow.serve("read", float(turn)) - turn for turn in range(number)])


def test_drawn_times_are_exponential_and_their_seeds(slow):
    first = draws(slow, seed=1)
    assert np.array_equal(first, draws(slow, seed=1))
    assert not np.array_equal(first, draws(slow, seed=2))
    # of 4 000 draws the mean is off by 1.6 % and the share beyond the mean by 0.8 points
    assert first.mean() == pytest.approx(5 * MS, rel=0.06)
    assert np.mean(first > 5 * MS) == pytest.approx(math.exp(-1), abs=0.03)
    assert np.mean(first > 15 * MS) == pytest.approx(math.exp(-3), abs=0.012)


# ---- what programs meet

PROGRAM = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
{}
"""


def run(slow, path, code, below=None):
    """Run Python code with `file` open, files beside it or below a folder on the disk.

    Seconds that it took.
    """
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM.format(code), str(path)],
        check=True,
        env=os.environ | slow.environment(below or path.parent),
    )
    return time.monotonic() - began


def attached(slow):
    """The disk, with a program having been started on it."""
    subprocess.run(["true"], env=os.environ | slow.environment(library.compiled().parent))
    return slow


@pytest.fixture
def page_file(tmp_path):
    path = tmp_path / "files" / "pages"
    path.parent.mkdir()
    path.write_bytes(bytes(4 * 8192))
    return path


CALLS = {
    "os.pread(file, 8192, 0)": (1, 0, 0),
    "os.preadv(file, [bytearray(4096), bytearray(4096)], 0)": (1, 0, 0),
    "os.read(file, 8192)": (1, 0, 0),
    "os.pwrite(file, bytes(8192), 0)": (0, 1, 0),
    "os.pwritev(file, [bytes(4096), bytes(4096)], 0)": (0, 1, 0),
    "os.write(file, bytes(8192))": (0, 1, 0),
    "os.fsync(file)": (0, 0, 1),
    "os.fdatasync(file)": (0, 0, 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_waits_and_is_counted_once(slow, page_file, call):
    with attached(slow).serving(Disk(200 * MS, 200 * MS, 200 * MS)) as stretch:
        assert run(slow, page_file, call) >= 0.2
    counts = stretch.counts()
    kinds = (counts.reads, counts.writes, counts.flushes)
    assert tuple(kind.requests for kind in kinds) == CALLS[call]
    assert counts.all.bytes == (0 if CALLS[call][2] else 8192)
    assert counts.all.busy == pytest.approx(0.2)


def test_a_call_returns_what_it_does_without_the_disk(slow, page_file):
    page_file.write_bytes(b"abcdefgh")
    code = """
assert os.pread(file, 3, 2) == b"cde" and os.read(file, 100) == b"abcdefgh"
try:
    os.pread(file, -1 + 1, -5)
except OSError as error:
    assert error.errno == 22
else:
    raise SystemExit("no error")
"""
    with attached(slow).serving(Disk(1 * MS, 1 * MS, 1 * MS)):
        run(slow, page_file, code)


def test_other_directories_and_other_times_are_left_alone(slow, page_file, tmp_path):
    other = tmp_path / "files-of-others"
    other.write_bytes(bytes(8192))
    attached(slow)
    with slow.serving(Disk(read=1 * MS)) as stretch:
        run(slow, page_file, f"os.pread(os.open({str(other)!r}, os.O_RDONLY), 8192, 0)")
    run(slow, page_file, "os.pread(file, 8192, 0)")
    assert stretch.counts().all.requests == 0


@pytest.mark.parametrize(
    ("where", "requests"),
    [
        ({"offset": 8192}, 2),
        ({"only": "pages"}, 4),
        ({"only": "ages"}, 0),
        ({"flushed": "pages"}, 4),
        ({"flushed": "ages"}, 3),
    ],
)
def test_only_the_files_and_the_place_that_were_named_are_slow(slow, page_file, where, requests):
    code = "os.pread(file, 8192, 0), os.pread(file, 8192, 8192), os.pread(file, 8192, 8192)"
    code += ", os.fsync(file)"
    with attached(slow).serving(Disk(read=1 * MS, flush=1 * MS, **where)) as stretch:
        run(slow, page_file, code)
    assert stretch.counts().all.requests == requests


@pytest.mark.parametrize(("gathering", "requests"), [("in range", 4), ("autovacuum", 10), ("", 4)])
def test_requests_of_some_processes_come_in_pieces(slow, page_file, gathering, requests):
    # two pieces of reads and two of writes; each flush is one by itself
    code = "[os.pwrite(file, os.pread(file, 8192, 0), 8192 * page) for page in range(4)]"
    code += ", os.fsync(file), os.fsync(file)"
    with attached(slow).serving(
        Disk(1 * MS, 1 * MS, 1 * MS, ahead=2, gathering=gathering)
    ) as stretch:
        run(slow, page_file, code)
    assert stretch.counts().all.requests == requests + 2 * (gathering != "autovacuum")


@pytest.mark.parametrize(
    ("code", "reads", "writes"),
    [
        # as many as fit were there before; the page that was used longest ago makes room
        ("[os.pread(file, 8192, 8192 * page) for page in (0, 1, 0, 1)]", 0, 0),
        ("[os.pread(file, 8192, 8192 * page) for page in (0, 1, 2, 2, 1)]", 1, 0),
        ("[os.pread(file, 8192, 8192 * page) for page in (0, 1, 0, 2, 0, 1)]", 2, 0),
        # what was written is written by the disk when its place is needed
        ("os.pwrite(file, bytes(16384), 0), os.pread(file, 16384, 16384)", 1, 2),
        ("os.pwrite(file, bytes(8192), 0), os.pread(file, 8192, 0)", 0, 0),
    ],
)
def test_memory_beside_it_holds_what_was_used_last(slow, tmp_path, code, reads, writes):
    pages = tmp_path / "base" / "5" / "16384"
    pages.parent.mkdir(parents=True)
    pages.write_bytes(bytes(4 * 8192))
    for _ in range(2):  # it begins anew with each stretch
        with attached(slow).serving(Disk(1 * MS, 1 * MS, memory=2 * 8192)) as stretch:
            run(slow, pages, code, below=tmp_path)
        counts = stretch.counts()
        assert (counts.reads.requests, counts.writes.requests) == (reads, writes)


@pytest.mark.parametrize("name", ["pg_wal/16385", "base/5/1259", "16385"])
def test_with_memory_other_files_cost_flushes_alone(slow, tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(4 * 8192))
    code = "os.pwrite(file, bytes(32768), 0), os.pread(file, 32768, 0), os.fsync(file)"
    with attached(slow).serving(Disk(1 * MS, 1 * MS, 1 * MS, memory=8192)) as stretch:
        run(slow, path, code, below=tmp_path)
    counts = stretch.counts()
    assert counts.all.requests == counts.flushes.requests == 1


def test_two_programs_wait_for_each_other(slow, page_file):
    code = "print(flush=True), sys.stdin.readline(), os.pread(file, 8192, 0)"
    command = [sys.executable, "-S", "-c", PROGRAM.format(code), str(page_file)]
    environment = os.environ | slow.environment(page_file.parent)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # both are told to read when both are there, and one's read lasts until the other's has begun
    with attached(slow).serving(Disk(read=1000 * MS)) as stretch, contextlib.ExitStack() as stack:
        open_one = lambda: stack.enter_context(subprocess.Popen(command, env=environment, **pipes))
        both = [open_one() for _ in range(2)]
        assert [program.stdout.readline() for program in both] == [b"\n", b"\n"]
        began = time.monotonic()
        for program in both:
            program.stdin.close()
        assert [program.wait() for program in both] == [0, 0]
        assert time.monotonic() - began >= 2
    reads = stretch.counts().reads
    assert reads.requests == 2 and reads.queued > 0


HOLDER = """
import ctypes, mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
shared = mmap.mmap(file, 0)
lock = ctypes.addressof(ctypes.c_char.from_buffer(shared))
assert ctypes.CDLL(None).pthread_mutex_lock(ctypes.c_void_p(lock)) == 0
print("held", flush=True)
sys.stdin.read()
"""


def test_who_is_killed_with_the_lock_stops_nobody(slow, page_file):
    state = slow.environment(page_file.parent)["PGRERUN_DISK"]
    command = [sys.executable, "-c", HOLDER, state]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with attached(slow).serving(Disk(read=1 * MS)) as stretch:
        run(slow, page_file, "os.pread(file, 8192, 0), os.pread(file, 8192, 0)")
    assert stretch.counts().reads.requests == 2


def test_it_is_slow_once_at_a_time_and_says_so_to_who_asks(slow):
    slowed = attached(slow).serving(Disk(1 / 40, 1 / 40, 1 / 40))
    again = pytest.raises(ValueError, match="once")
    with disk.told() as outside, slowed, disk.told() as inside, again:
        slow.set(Disk())
    with disk.told() as later, slow.serving(Disk()):
        pass
    assert outside == inside == {"disk slowed to 40 requests/s"} and later == set()


@pytest.mark.parametrize(
    ("compiler", "told"), [(None, "compiler"), ("cc", "loaded")], ids=["none", "makes nothing"]
)
def test_without_a_compiler_whose_library_can_be_loaded_there_is_none(
    base, monkeypatch, compiler, told
):
    (base / "cc").write_text("#!/bin/sh\nwhile [ $1 != -o ]; do shift; done\n: > $2\n")
    (base / "cc").chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: compiler and str(base / compiler))
    with pytest.raises(CannotMeasure, match=told):
        disk.Slowed()


def test_where_no_program_takes_the_library_nothing_is_measured(slow):
    with (
        pytest.raises(CannotMeasure, match="no program"),
        slow.serving(Disk(1 / 40, 1 / 40, 1 / 40)),
    ):
        pass


# ---- servers


@pytest.fixture(scope="module")
def on_disk():
    with disk.Slowed() as slow, Cluster(settings=SMALL, disk=slow) as server:
        yield slow, server


def test_what_the_server_reads_is_what_the_disk_was_asked_for(on_disk):
    (slow, server), environment = on_disk, dict(os.environ)
    made = "CREATE TABLE read AS SELECT generate_series(1, 20000) AS number"
    flush = "SELECT pg_stat_force_next_flush()"
    tell(server, "DROP TABLE IF EXISTS read", made, "CHECKPOINT")
    server.restart()
    tell(server, "SELECT count(*) FROM read WHERE number < 0", flush)  # its catalogs
    [pages] = server.fetch("SELECT pg_relation_size('read') / 8192")
    server.restart()
    with server.connect() as connection:
        assert connection.execute("SHOW io_method").fetchone() == ("sync",)
        with slow.serving(Disk(read=1 * MS, only="base/")) as stretch:
            began = time.monotonic()
            connection.execute("SELECT count(*) FROM read")
            taken = time.monotonic() - began
        connection.execute(flush)
        query = (
            "SELECT sum(read_bytes) FROM pg_stat_io"
            " WHERE backend_type = 'client backend' AND object = 'relation'"
        )
        [counted] = connection.execute(query).fetchone()
    reads = stretch.counts().reads
    assert taken >= reads.requests * MS and reads.late <= reads.requests
    # before the stretch and after it catalogs are read as well, at full speed
    assert pages * 8192 <= reads.bytes <= counted and dict(os.environ) == environment


def test_each_commit_waits_for_its_flush_and_other_servers_do_not(on_disk, cluster):
    slow, server = on_disk
    with server.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS flushed (id int)")
        with slow.serving(Disk(flush=50 * MS)) as stretch, cluster.connect() as other:
            other.execute("CREATE TEMP TABLE elsewhere (id int)")
            began = time.monotonic()
            for _ in range(10):
                connection.execute("INSERT INTO flushed VALUES (1)")
            assert time.monotonic() - began >= 0.5
    assert stretch.counts().flushes.requests >= 10


def test_a_server_that_crashed_on_it_recovers_on_it(on_disk):
    slow, server = on_disk
    with slow.serving(Disk(flush=20 * MS)):
        server.crash()
    server.start()
    with slow.serving(Disk(flush=1 * MS)) as stretch:
        tell(server, "CREATE TABLE recovered (id int)", "DROP TABLE recovered")
    assert stretch.counts().flushes.requests > 0


def test_requests_that_would_pass_it_by_are_refused(slow):
    with pytest.raises(CannotMeasure, match="io_uring"):
        Cluster(settings=SMALL | {"io_method": "io_uring"}, disk=slow)


def test_a_released_disk_leaves_nothing_behind(base):
    with disk.Slowed() as slow:
        place = slow.environment(base)["PGRERUN_DISK"]
        assert os.path.exists(place)
    assert not os.path.exists(os.path.dirname(place))


# ---- the report's program on it


def test_two_copies_of_the_read_compute_write_program_share_it(slow, base):
    with attached(slow).serving(Disk(5 * MS, 5 * MS)) as stretch:
        found = overlap.run(base, copies=2, cycles=20, disk=slow)
    counts = stretch.counts()
    assert (counts.reads.requests, counts.writes.requests) == (40, 40)
    assert counts.all.busy == pytest.approx(0.4) and counts.all.queued > 0
    assert found.elapsed >= 0.4 and found.request >= 5 * MS and 0 < found.processor < 1
    assert list(base.glob("overlap-*")) == []
