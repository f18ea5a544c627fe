"""The process table: nothing is lost with the backends that end, and both accounts agree."""

import os
import signal
import threading
import time

import pandas as pd
import psutil
import pytest

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import pgbench, process_table
from pgrerun.lab.instruments.counters import PAGE, Counters
from pgrerun.lab.server import Cluster
from tests.servers import leave


@pytest.fixture(scope="module")
def server():
    with Cluster(settings={"shared_buffers": "128kB", "max_connections": 20}) as cluster:
        cluster.tool("pgbench", "-i", "-q")
        yield cluster


def together(frame, direction):
    [row] = frame[(frame["source"] == "together") & (frame["direction"] == direction)].to_dict(
        "records"
    )
    return row


def test_a_backend_that_ended_is_counted_with_the_postmaster(server):
    before = process_table.usage(server)
    with server.connect() as conn:
        conn.execute("SET max_parallel_workers_per_gather = 0")
        conn.execute("SELECT sum(abalance) FROM pgbench_accounts")
        alive = process_table.usage(server) - before
        # asynchronous reads are the I/O workers', though PostgreSQL counts them for the backend
        readers = alive.processes["role"].isin(["client backend", "io worker"])
        assert alive.processes.loc[readers, "rchar"].sum() > 1000 * PAGE
    leave(server)
    gone = process_table.usage(server) - before
    assert "client backend" not in set(gone.processes["role"])
    assert gone.processes["rchar"].sum() >= alive.processes["rchar"].sum()
    assert gone.processes["rchar"].sum() - alive.processes["rchar"].sum() < 20 * PAGE


def test_a_reading_waits_until_the_ended_are_reaped(server):
    [postmaster, *_] = server.pids()
    before = process_table.usage(server)
    with server.connect() as conn:
        conn.execute("SET max_parallel_workers_per_gather = 0")
        conn.execute("SELECT sum(abalance) FROM pgbench_accounts")
        alive = process_table.usage(server) - before
        backend = psutil.Process(conn.info.backend_pid)
        os.kill(postmaster, signal.SIGSTOP)  # it reaps nobody
    try:
        deadline = time.monotonic() + 120
        while backend.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.pids()[backend.pid] == "ended"
        threading.Timer(0.2, os.kill, (postmaster, signal.SIGCONT)).start()
        gone = process_table.usage(server) - before
    finally:
        os.kill(postmaster, signal.SIGCONT)
    assert gone.processes["rchar"].sum() >= alive.processes["rchar"].sum()


def test_what_the_ended_used_before_the_window_is_left_out(server):
    with server.connect() as conn:
        conn.execute("SELECT count(*) FROM pgbench_accounts")
        before = process_table.usage(server)
    used = process_table.usage(server) - before
    assert 0 <= used.processes["rchar"].sum() < 20 * PAGE
    assert used.cpu_seconds > -1e-6  # a difference of floats, which may fall short by a rounding


def test_both_accounts_of_a_load_agree(server):
    with Counters(server) as counters:
        cost = process_table.connection_cost(server, counters)
        with counters.measured() as delta:
            pgbench.run(server, builtin="tpcb-like", clients=2, transactions=100, seed=3)
    frame = process_table.reconcile(delta, cost)
    for direction, floor in (("read", 1000), ("write", 500)):
        row = together(frame, direction)
        assert row["pages"] > floor
        assert abs(row["difference"]) < 0.03 * row["processes"], frame.to_string()
    assert delta.usage.cpu_seconds > 0
    assert frame.loc[frame["source"] == "WAL", "counters"].max() > 100 * PAGE


def test_a_checkpoint_shows_the_control_file_as_the_only_difference(server):
    with Counters(server) as counters, server.connect() as conn:
        conn.execute("UPDATE pgbench_branches SET bbalance = bbalance + 1")
        logged = len(server.log())
        with counters.measured(conn) as delta:
            conn.execute("CHECKPOINT")
        logged = len(server.log()) - logged
        row = together(process_table.reconcile(delta), "write")
    # the control file, what the log says of the checkpoint, an empty list of replication origins
    assert row["difference"] == 8192 + logged + 8 and "control file" in row["explanation"]


def test_a_restart_between_two_readings_is_refused():
    with Cluster() as cluster:
        before = process_table.usage(cluster)
        cluster.restart()
        with pytest.raises(ServerError, match="restarted"):
            process_table.usage(cluster) - before


def test_a_server_that_is_gone_has_no_processes_to_read():
    with Cluster() as cluster:
        cluster.stop("immediate")
        with pytest.raises(ServerError, match="isn't running"):
            process_table.usage(cluster)


def test_the_kernels_share_is_that_of_one_role():
    rows = {
        "role": ["postmaster", "client backend", "client backend"],
        "cpu_user": [9.0, 1.0, 0.5],
        "cpu_system": [9.0, 0.5, 0.0],
    }
    used = process_table.Usage(pd.DataFrame(rows))
    assert used.kernel_share("client backend") == pytest.approx(0.25)
    assert used.kernel_share("checkpointer") == 0


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
    (tmp_path / "status").write_text(STATUS)
    (tmp_path / "io").write_text(IO)
    (tmp_path / "schedstat").write_text("2500000000 77 30\n")
    return tmp_path


def test_the_kernels_words_are_read(process):
    assert process_table.count_switches(process) == 34
    assert process_table.count_calls(process) == 34
    assert process_table.bytes_fetched(process) == 8192
    assert process_table.processor_seconds(process) == 2.5


def test_counts_are_those_of_every_process_in_a_text():
    assert process_table.parse_counts("syscr", IO + IO.replace("30", "31")) == [30, 31]
    assert process_table.parse_counts("sysc[rw]", IO) == [30, 4]
    assert process_table.parse_counts("nothing", IO) == []


def test_a_kernel_that_does_not_say_is_told(process):
    (process / "io").write_text(IO.replace("read_bytes", "others"))
    with pytest.raises(CannotMeasure, match="fetched from storage"):
        process_table.bytes_fetched(process)
    (process / "io").unlink()
    with pytest.raises(CannotMeasure, match="fetched from storage"):
        process_table.bytes_fetched(process)


def test_a_system_without_a_process_table_is_told(process, monkeypatch):
    monkeypatch.setattr(process_table, "THREAD", process)
    process_table.require()
    (process / "io").unlink()
    with pytest.raises(CannotMeasure, match="process table"):
        process_table.require()


def test_a_threads_reads_are_counted_each():
    def calls_of(reads: int) -> int:
        before = process_table.count_calls(process_table.THREAD)
        for _ in range(reads):
            os.read(zeros, 1)
        return process_table.count_calls(process_table.THREAD) - before

    zeros = os.open("/dev/zero", os.O_RDONLY)
    try:
        assert calls_of(25) - calls_of(0) == 25  # looking is a call or two itself
    finally:
        os.close(zeros)


def test_whoever_sleeps_gives_up_the_processor():
    waits, switches = (
        process_table.count_own_sleeps(),
        process_table.count_switches(process_table.THREAD),
    )
    time.sleep(0.001)
    assert (
        process_table.count_own_sleeps() > waits
        and process_table.count_switches(process_table.THREAD) > switches
    )
