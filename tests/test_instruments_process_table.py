"""The process table: nothing is lost with the backends that end, and both accounts agree."""

import os
import signal
import threading

import psutil
import pytest
from servers import leave, until

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import process_table
from pgrerun.lab.instruments.counters import PAGE
from pgrerun.lab.server import Cluster


@pytest.fixture(scope="module")
def server():
    with Cluster(settings={"shared_buffers": "128kB", "max_connections": 20}) as cluster:
        cluster.tool("pgbench", "-i", "-q")
        yield cluster


def read_all(conn):
    """Let a backend read more than a thousand pages by itself."""
    conn.execute("SET max_parallel_workers_per_gather = 0")
    conn.execute("SELECT sum(abalance) FROM pgbench_accounts")


def bytes_read(usage):
    return usage.processes["rchar"].sum()


def test_a_backend_that_ended_is_counted_with_the_postmaster(server):
    before = process_table.usage(server)
    with server.connect() as conn:
        read_all(conn)
        alive = process_table.usage(server) - before
    # asynchronous reads are the I/O workers', though PostgreSQL counts them for the backend
    readers = alive.processes["role"].isin(["client backend", "io worker"])
    assert alive.processes.loc[readers, "rchar"].sum() > 1000 * PAGE
    leave(server)
    gone = process_table.usage(server) - before
    assert "client backend" not in set(gone.processes["role"])
    assert 0 <= bytes_read(gone) - bytes_read(alive) < 20 * PAGE


def test_a_reading_waits_until_the_ended_are_reaped(server):
    [postmaster, *_] = server.pids()
    before = process_table.usage(server)
    with server.connect() as conn:
        read_all(conn)
        alive = process_table.usage(server) - before
        backend = psutil.Process(conn.info.backend_pid)
        os.kill(postmaster, signal.SIGSTOP)  # it reaps nobody
    try:
        until(lambda: backend.status() == psutil.STATUS_ZOMBIE)
        assert server.pids()[backend.pid] == "ended"
        threading.Timer(0.2, os.kill, (postmaster, signal.SIGCONT)).start()
        gone = process_table.usage(server) - before
    finally:
        os.kill(postmaster, signal.SIGCONT)
    assert bytes_read(gone) >= bytes_read(alive)


def test_what_the_ended_used_before_the_window_is_left_out(server):
    with server.connect() as conn:
        read_all(conn)
        before = process_table.usage(server)
    used = process_table.usage(server) - before
    assert 0 <= bytes_read(used) < 20 * PAGE
    assert used.cpu_seconds > -1e-6  # a difference of floats, which may fall short by a rounding


def test_a_restart_between_two_readings_is_refused_and_so_is_a_server_that_is_gone(server):
    before = process_table.usage(server)
    server.restart()
    with pytest.raises(ServerError, match="restarted"):
        process_table.usage(server) - before
    server.stop("immediate")
    with pytest.raises(ServerError, match="isn't running"):
        process_table.usage(server)
    server.start()


# -- of one process --

STATUS = "Name:\tpostgres\nvoluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t4\n"
IO = """rchar: 1
wchar: 2
syscr: 30
syscw: 4
read_bytes: 8192
write_bytes: 4096
cancelled_write_bytes: 5
"""


@pytest.fixture
def process(tmp_path):
    """A process as the kernel would describe it."""
    for name, text in {"status": STATUS, "io": IO, "schedstat": "2500000000 77 30\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_kernels_words_are_read(process):
    kinds = ("count_switches", "count_calls", "bytes_fetched", "processor_seconds")
    assert [getattr(process_table, one)(process) for one in kinds] == [34, 34, 8192, 2.5]


@pytest.mark.parametrize(
    ("name", "text", "counts"),
    [
        ("syscr", IO + IO.replace("30", "31"), [30, 31]),
        ("sysc[rw]", IO, [30, 4]),
        ("nothing", IO, []),
    ],
)
def test_counts_are_those_of_every_process_in_a_text(name, text, counts):
    assert process_table.parse_counts(name, text) == counts


def test_a_kernel_that_does_not_say_is_told(process, monkeypatch):
    monkeypatch.setattr(process_table, "THREAD", process)
    process_table.require()
    (process / "io").write_text(IO.replace("read_bytes", "others"))
    with pytest.raises(CannotMeasure, match="fetched from storage"):
        process_table.bytes_fetched(process)
    (process / "io").unlink()
    with pytest.raises(CannotMeasure, match="fetched from storage"):
        process_table.bytes_fetched(process)
    with pytest.raises(CannotMeasure, match="process table"):
        process_table.require()


def test_a_threads_reads_are_counted_each():
    def calls_of(reads: int) -> int:
        before = process_table.count_calls(process_table.THREAD)
        with open("/dev/zero", "rb", buffering=0) as zeros:
            for _ in range(reads):
                zeros.read(1)
        return process_table.count_calls(process_table.THREAD) - before

    assert calls_of(25) - calls_of(0) == 25  # looking is a call or two itself
