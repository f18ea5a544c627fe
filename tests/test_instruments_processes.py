"""The process table: nothing is lost with the backends that end, and both accounts agree."""

import os
import signal
import threading
import time

import pandas as pd
import psutil
import pytest

from pgrerun.errors import ServerError
from pgrerun.lab.instruments import pgbench, processes
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
    before = processes.usage(server)
    with server.connect() as conn:
        conn.execute("SET max_parallel_workers_per_gather = 0")
        conn.execute("SELECT sum(abalance) FROM pgbench_accounts")
        alive = processes.usage(server) - before
        # asynchronous reads are the I/O workers', though PostgreSQL counts them for the backend
        readers = alive.processes["role"].isin(["client backend", "io worker"])
        assert alive.processes.loc[readers, "rchar"].sum() > 1000 * PAGE
    leave(server)
    gone = processes.usage(server) - before
    assert "client backend" not in set(gone.processes["role"])
    assert gone.processes["rchar"].sum() >= alive.processes["rchar"].sum()
    assert gone.processes["rchar"].sum() - alive.processes["rchar"].sum() < 20 * PAGE


def test_a_reading_waits_until_the_ended_are_reaped(server):
    [postmaster, *_] = server.pids()
    before = processes.usage(server)
    with server.connect() as conn:
        conn.execute("SET max_parallel_workers_per_gather = 0")
        conn.execute("SELECT sum(abalance) FROM pgbench_accounts")
        alive = processes.usage(server) - before
        backend = psutil.Process(conn.info.backend_pid)
        os.kill(postmaster, signal.SIGSTOP)  # it reaps nobody
    try:
        deadline = time.monotonic() + 120
        while backend.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.pids()[backend.pid] == "ended"
        threading.Timer(0.2, os.kill, (postmaster, signal.SIGCONT)).start()
        gone = processes.usage(server) - before
    finally:
        os.kill(postmaster, signal.SIGCONT)
    assert gone.processes["rchar"].sum() >= alive.processes["rchar"].sum()


def test_what_the_ended_used_before_the_window_is_left_out(server):
    with server.connect() as conn:
        conn.execute("SELECT count(*) FROM pgbench_accounts")
        before = processes.usage(server)
    used = processes.usage(server) - before
    assert 0 <= used.processes["rchar"].sum() < 20 * PAGE
    assert used.cpu_seconds > -1e-6  # a difference of floats, which may fall short by a rounding


def test_both_accounts_of_a_load_agree(server):
    with Counters(server) as counters:
        cost = processes.connection_cost(server, counters)
        with counters.measured() as delta:
            pgbench.run(server, builtin="tpcb-like", clients=2, transactions=100, seed=3)
    frame = processes.reconcile(delta, cost)
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
        row = together(processes.reconcile(delta), "write")
    # the control file, what the log says of the checkpoint, an empty list of replication origins
    assert row["difference"] == 8192 + logged + 8 and "control file" in row["explanation"]


def test_a_restart_between_two_readings_is_refused():
    with Cluster() as cluster:
        before = processes.usage(cluster)
        cluster.restart()
        with pytest.raises(ServerError, match="restarted"):
            processes.usage(cluster) - before


def test_a_server_that_is_gone_has_no_processes_to_read():
    with Cluster() as cluster:
        cluster.stop("immediate")
        with pytest.raises(ServerError, match="isn't running"):
            processes.usage(cluster)


def test_the_kernels_share_is_that_of_one_role():
    rows = {
        "role": ["postmaster", "client backend", "client backend"],
        "cpu_user": [9.0, 1.0, 0.5],
        "cpu_system": [9.0, 0.5, 0.0],
    }
    used = processes.Usage(pd.DataFrame(rows))
    assert used.kernel_share("client backend") == pytest.approx(0.25)
    assert used.kernel_share("checkpointer") == 0
