"""Waits, cache lines, switches and handoffs: the instruments behind the scalability chapter."""

import contextlib
import os
import time
from pathlib import Path

import psutil
import psycopg
import pytest
from servers import until

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import cachelines, off_cpu, pgbench, sessions, switch_costs

needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")


def test_a_session_repeats_its_commands_until_the_block_ends(cluster):
    look = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND query = 'SELECT 1 AS again'"
    with cluster.connect() as connection:
        with sessions.repeating(cluster, ["SELECT 1 AS again"]) as backend:
            until(lambda: connection.execute(look, (backend,)).fetchone() == (1,))
        until(lambda: connection.execute(look, (backend,)).fetchone() == (0,))
    failing = sessions.repeating(cluster, ["SELECT * FROM nowhere"])
    with pytest.raises(psycopg.errors.UndefinedTable), failing:
        pass


def test_what_an_instrument_does_in_its_thread_fails_where_it_was_begun():
    with pytest.raises(ZeroDivisionError), sessions.meanwhile(lambda over: 1 / over.wait(0)):
        pass
    with pytest.raises(KeyError), sessions.meanwhile(lambda over: 1 / over.wait(0)):
        raise KeyError("the block's own")


def test_a_wait_for_a_lock_is_seen_with_its_name(cluster):
    with cluster.connect() as holder, contextlib.ExitStack() as opened:
        holder.execute("SELECT pg_advisory_lock(7)")
        for _ in range(3):
            opened.enter_context(sessions.waiting(cluster, "SELECT pg_advisory_xact_lock(7)"))
        looker = opened.enter_context(cluster.connect())
        looker.execute("SET application_name = 'not ours'")  # it is in no sample
        with off_cpu.sample_wait_events(cluster) as found:
            until(lambda: _sampled(looker))
        holder.execute("SELECT pg_advisory_unlock(7)")
    counted = found.require_frame().set_index(["type", "event"])["backends"].to_dict()
    assert counted == {("Lock", "advisory"): 3}


def _sampled(looker):
    """Whether a session has finished a reading of what sessions wait for."""
    query = (
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND state = 'idle' AND query LIKE '%coalesce(wait_event_type%'"
    )
    return looker.execute(query).fetchone()[0]


def test_an_idle_server_has_no_samples(cluster):
    with off_cpu.sample_wait_events(cluster) as found:
        time.sleep(0.1)
    assert found.samples == 0
    with pytest.raises(CannotMeasure, match="sample"):
        found.require_frame()


def test_naps_are_sleeps_and_so_is_waiting_for_the_next_message(cluster):
    script = "SELECT " + ", ".join(["pg_sleep(0.001)"] * 4) + ";\n"
    transactions = 100
    found = {}
    while not found:  # the load was over before anybody had looked at it
        transactions *= 2
        with off_cpu.count_context_switches(cluster, 2) as found:
            pgbench.run(cluster, script, clients=2, jobs=2, transactions=transactions)
    # Each nap is a sleep, but from when to when the load ran is told by readings that a busy
    # machine puts off.
    assert found["voluntary"] / transactions > 1


def test_a_load_that_never_had_so_many_clients_has_no_switches(cluster):
    with off_cpu.count_context_switches(cluster, 3) as found:
        pgbench.run(cluster, "SELECT 1;", clients=1, transactions=1)
    assert found == {}


@pytest.mark.parametrize(("start", "chains"), [(13.0, [("epoll_wait",)]), (14.0, [])])
def test_perfs_samples_are_told_apart_by_their_times(start, chains):
    samples = "postgres  12.50:\n\t ffff schedule\n\npostgres  13.25:\n\t ffff epoll_wait\n\n"
    found = off_cpu.parse_stacks(off_cpu.samples_between(samples, start, start + 1))
    assert list(found["chain"]) == chains


def held():
    """What a measurement takes from the machine and has to give back."""
    process = psutil.Process()
    shared = set(Path("/dev/shm").glob("psm_*"))
    return os.sched_getaffinity(0), process.num_fds(), process.children(), shared


@needs_two
@pytest.mark.parametrize(
    "measure",
    [
        lambda: cachelines.false_sharing_cost(8, rounds=10),
        lambda: cachelines.false_sharing_cost(256, rounds=10),
        lambda: cachelines.scan_cost(packed=True, rounds=10),
        lambda: cachelines.scan_cost(packed=False, rounds=10),
        lambda: switch_costs.handoff_latency(10)["elapsed"],
        lambda: switch_costs.handoff_latency(10)["processor"],
        lambda: switch_costs.ipc_costs(rounds=5)["switch"],
    ],
)
def test_two_processors_are_used_and_left_as_they_were(measure):
    measure()  # multiprocessing keeps a process and pipes of its own from its first use on
    before = held()
    assert measure() > 0 and held() == before


@pytest.mark.parametrize("distance", [0, 7, 512])
def test_a_distance_that_the_layout_has_no_room_for_is_refused(distance):
    with pytest.raises(ValueError, match="multiple of 8"):
        cachelines.false_sharing_cost(distance)


def test_one_processor_is_not_enough(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    with pytest.raises(CannotMeasure, match="a processor each"):
        cachelines.false_sharing_cost(8)


def test_a_system_that_keeps_no_process_on_a_processor_is_told(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity")
    with pytest.raises(CannotMeasure, match="one processor"):
        switch_costs.ipc_costs(rounds=5)
