"""The machine, the clock and the profilers; times are never compared with a constant."""

import os
import subprocess
import sys
import threading
import time

import psutil
import pytest
from servers import leave, running, tell

from pgrerun.errors import CannotMeasure, RerunError
from pgrerun.lab.instruments import callgrind, clock, machine, perf, pgbench
from pgrerun.lab.server import Cluster, installed, processes
from pgrerun.lab.server.processes import children

SPENT = 1  # second of processor time
SPINNING = [sys.executable, "-c", f"import time\nwhile time.process_time() < {SPENT}: pass"]
# a reading of the machine's clocks that says nothing
NOTHING = psutil.cpu_times()._replace(**dict.fromkeys(psutil.cpu_times()._fields, 0.0))


@pytest.fixture(scope="module")
def server():
    with Cluster(settings={"autovacuum": "off"}) as cluster:  # whose workers come when they like
        made = "CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 1000) g"
        tell(cluster, made, "VACUUM ANALYZE t")
        yield cluster


def test_what_is_too_short_is_repeated_and_runs_once_at_least():
    assert clock.repeated(lambda: 0.5, 0) == [0.5]
    assert clock.repeated(lambda: 0.5, 1.2) == [0.5] * 3


def test_others_load_is_told_from_ours_and_the_servers(server, monkeypatch):
    """What the whole machine did is made up, since other people decide it: it worked for two
    seconds of four.
    """

    def others(work):
        readings = iter([NOTHING, NOTHING._replace(user=2.0, idle=2.0)])
        monkeypatch.setattr(machine.psutil, "cpu_times", lambda: next(readings))
        with machine.other_load() as load:
            work()
            time.sleep(0.1)  # shorter blocks aren't judged
        return load.fraction

    def own_child():
        subprocess.run(SPINNING, check=True)

    def orphan():  # a grandchild whose parent has gone is nobody's descendant
        read, write = os.pipe()
        code = f"import subprocess; subprocess.Popen({SPINNING!r}, pass_fds=[{write}])"
        subprocess.run([sys.executable, "-c", code], pass_fds=[write], check=True)
        os.close(write)
        os.read(read, 1)  # until the last who holds it has ended
        os.close(read)

    def queries():
        pgbench.run(server, "SELECT sum(i) FROM generate_series(1, 1000000) i;", transactions=5)

    idle, ours = others(lambda: None), others(own_child)
    assert 0 <= ours <= (2 - SPENT) / 4 + 0.01 < others(orphan) <= idle <= 2 / 4
    assert others(queries) < idle


def test_the_time_of_a_child_that_ends_while_it_is_read_is_not_lost(monkeypatch):
    """As a backend's that is still leaving when its block ends."""
    reading, ended = machine.cpu_seconds, []

    def leaving(pid):
        if pid == child.pid and not ended:  # after its parent was read
            ended.append(child.wait())
        return reading(pid)

    monkeypatch.setattr(machine, "cpu_seconds", leaving)
    before = reading(os.getpid())
    with subprocess.Popen(SPINNING) as child:
        # the kernel counts in ticks, of which each reading may lose one
        assert machine.tree_seconds() >= before + SPENT - 0.05
    assert ended == [0]


def test_what_the_kernel_does_itself_is_nobodys(monkeypatch):
    """As it flushes what a server wrote: in interrupts, and in threads, one of which ends."""

    def others(after):
        worked = NOTHING._replace(user=4.0, system=3.0, idle=2.0, softirq=1.0)
        times, threads = iter([NOTHING, worked]), iter([{3: 50.0, 4: 1.0}, after])
        monkeypatch.setattr(machine.psutil, "cpu_times", lambda: next(times))
        monkeypatch.setattr(machine, "kernel_threads", lambda: next(threads))
        with machine.other_load() as load:
            time.sleep(0.1)
        return load.fraction

    assert others({3: 50.0, 4: 1.0}) == pytest.approx(0.7, abs=0.02)
    assert others({3: 52.0, 4: 1.0, 5: 1.0}) == pytest.approx(0.4, abs=0.02)
    assert others({4: 2.0}) == pytest.approx(0.6, abs=0.02)


def test_the_kernels_threads_have_a_time_and_are_none_of_ours():
    threads = machine.kernel_threads()  # none in a container
    assert all(spent >= 0 for spent in threads.values())
    assert not {os.getpid(), *machine.descendants(os.getpid())} & set(threads)


def test_the_tree_is_what_psutil_finds_in_the_whole_process_table(server):
    def known():
        return {child.pid for child in psutil.Process().children(recursive=True)}

    started = []
    thread = threading.Thread(target=lambda: started.append(subprocess.Popen(["sleep", "600"])))
    thread.start()  # its child belongs to the thread
    thread.join()
    with started[0]:
        before, found, after = set(), set(), {0}
        while before != after:  # a process of the server that ends meanwhile is in one of them
            before, found, after = known(), set(machine.descendants(os.getpid())), known()
        started[0].kill()
    assert found == before and started[0].pid in found and len(found) > 4


@pytest.fixture
def counted(server):
    if reason := callgrind.unavailable():
        pytest.skip(reason)
    server.stop()
    yield server
    server.start()


def test_instructions_repeat_and_follow_the_work(counted):
    count = "SELECT count(*)\nFROM t"
    half = "SELECT count(*) FROM t WHERE id <= 500"
    frame = callgrind.profile(counted, [count, count, count, half])
    totals = frame.groupby("statement")["exclusive"].sum()
    assert totals[0] > totals[1]  # caches were filled by the first
    assert abs(totals[1] - totals[2]) < 0.01 * totals[1]
    second = frame[frame["statement"] == 2].set_index("function")
    assert second.loc["exec_simple_query", "inclusive"] == totals[2]
    assert second.loc["heap_getnextslot", "calls"] == 1001  # and one that finds no more
    assert second["inclusive"].max() == totals[2]


def test_a_folder_for_temporary_files_that_the_account_cannot_write_is_no_matter(
    counted, tmp_path, monkeypatch
):
    """valgrind, run by the server's account, would make its pipes there (audit, row 17)."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert not callgrind.profile(counted, ["SELECT 1"]).empty


def test_a_statement_that_fails_is_no_profile(counted):
    with pytest.raises(RerunError, match="division by zero"):
        callgrind.profile(counted, ["SELECT 1/0"])
    assert list(counted.scratch.glob("callgrind-*")) == []


def test_a_stripped_program_cant_be_profiled(counted):
    stripped = [p for p in installed() if b".symtab" not in (p.bindir / "postgres").read_bytes()]
    if not stripped:
        pytest.skip("no stripped release is installed here")
    with Cluster(stripped[0]) as cluster:
        with pytest.raises(RerunError, match="stop"):
            callgrind.profile(cluster, ["SELECT 1"])
        cluster.stop()
        with pytest.raises(CannotMeasure, match="stripped"):
            callgrind.profile(cluster, ["SELECT 1"])


@pytest.mark.usefixtures("sampling")
def test_what_a_process_starts_is_recorded_exactly_while_perf_is_told_to_count(server, tmp_path):
    postmaster = next(pid for pid, role in server.pids().items() if role == "postmaster")

    def backend() -> str:
        """The process of a session that has used the processor."""
        busy = "SELECT max(pg_backend_pid() + 0 * g) FROM generate_series(1, 1000000) g"
        return server.tool("psql", "-Atc", busy).stdout.strip()

    with perf.attached(postmaster, tmp_path / "data", "-e", "cpu-clock", "-F", "1999") as counting:
        before = backend()
        leave(server)
        with counting():
            counted = backend()
        after = backend()
    samples = perf.perf("script", "-i", tmp_path / "data", "-F", "pid,comm").stdout.split()
    # the postmaster itself may be among them, for the moment that it takes to start one
    assert set(samples) - {str(postmaster)} == {"postgres", counted}
    assert len({before, counted, after}) == 3


@pytest.mark.usefixtures("sampling")
def test_a_process_that_is_gone_cant_be_followed(tmp_path):
    attached = perf.attached(2**22 + 12345, tmp_path / "data", "-e", "cpu-clock")
    with pytest.raises(CannotMeasure, match="follow"), attached:
        raise AssertionError("the block must not run")


@pytest.mark.usefixtures("sampling")
def test_sampling_leaves_nothing_in_the_users_home(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with running(server, "psql", "-c", "SELECT pg_sleep(1)"):
        assert perf.sample(server.pids(), 0.2).columns.tolist() == perf.COLUMNS
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_ends_during_a_reading_hides_no_other(monkeypatch):
    readings = iter([[7], [7, 9], [7, 9]])
    monkeypatch.setattr(processes, "listed_children", lambda pid: next(readings))
    assert children(os.getpid()) == [7, 9]
