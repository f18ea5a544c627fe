"""Waits, cache lines, handoffs, and flushes made slow: the instruments behind the scalability
chapter.
"""

import os
import threading
import time

import numpy as np
import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import (
    cachelines,
    flushing,
    pgbench,
    sleeps,
    switches,
    switching,
    waits,
)

needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")


def test_a_wait_for_a_lock_is_seen_with_its_name(cluster):
    with waits.sampled(cluster) as found:
        pgbench.run(
            cluster,
            "BEGIN;\nSELECT pg_advisory_xact_lock(7), pg_sleep(0.01);\nEND;\n",
            clients=4,
            transactions=10,
        )
    assert found.samples > 5
    # one holds the lock and sleeps, the others wait for it
    assert found.backends("Lock", "advisory") == pytest.approx(3, abs=1)
    assert found.backends(event="PgSleep") == pytest.approx(1, abs=0.5)
    assert found.backends() <= 4


def test_an_idle_server_has_no_samples(cluster):
    with waits.sampled(cluster) as found:
        time.sleep(0.1)
    assert found.samples == 0 and found.backends() == 0
    with pytest.raises(CannotMeasure, match="sample"):
        found.seen()


def test_naps_are_sleeps_and_so_is_waiting_for_the_next_message(cluster):
    script = "SELECT " + ", ".join(["pg_sleep(0.001)"] * 4) + ";\n"
    with switches.counted(cluster, 2) as found:
        pgbench.run(cluster, script, clients=2, jobs=2, transactions=40)
    assert found.backends == 2
    assert 3.5 < found.per_transaction(40)["voluntary"] < 6


def test_a_load_that_never_had_so_many_clients_has_no_switches(cluster):
    with switches.counted(cluster, 3) as found:
        pgbench.run(cluster, "SELECT 1;", clients=1, transactions=1)
    assert found.per_transaction(1) == {}


def test_switches_need_a_server_whose_processes_can_be_seen(monkeypatch, cluster):
    monkeypatch.setattr(type(cluster), "_missing", lambda server, capability: "hidden")
    with pytest.raises(CannotMeasure, match="hidden"), switches.counted(cluster, 1):
        pass


def test_perfs_samples_are_told_apart_by_their_times():
    script = (
        "postgres  12.500000:\n\t ffff schedule\n\npostgres  13.250000:\n\t ffff epoll_wait\n\n"
    )
    assert sleeps.read(sleeps.between(script, 13.0, 14.0))["chain"].tolist() == [("epoll_wait",)]
    assert sleeps.read(sleeps.between(script, 14.0, 15.0)).empty


@needs_two
def test_neighbours_in_one_line_are_slower_than_far_ones():
    near, far = (min(cachelines.beside(distance) for _ in range(7)) for distance in (8, 256))
    crowded = max(cachelines.beside(8) for _ in range(7))
    assert 0 < far <= near * 1.5 and crowded > far


@pytest.mark.parametrize("distance", [0, 7, 512])
def test_a_distance_that_the_layout_has_no_room_for_is_refused(distance):
    with pytest.raises(ValueError, match="multiple of 8"):
        cachelines.beside(distance)


@needs_two
def test_a_scan_of_packed_words_takes_no_longer():
    spread, packed = (min(cachelines.scanned(packed) for _ in range(5)) for packed in (False, True))
    assert 0 < packed < spread * 1.2


@needs_two
def test_a_handoff_takes_time_and_leaves_the_affinity_as_it_was():
    before = os.sched_getaffinity(0)
    found = switching.handoff(rounds=100)
    assert 0 < found.elapsed < 0.1 and 0 < found.processor < 0.1
    assert os.sched_getaffinity(0) == before


def test_one_processor_is_not_enough(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    with pytest.raises(CannotMeasure, match="a processor each"):
        cachelines.beside(8)


def test_flushes_and_copies_leave_no_file_behind(tmp_path):
    with flushing.copying(tmp_path, 1):
        taken = flushing.flushes(tmp_path, 0.05)
    assert len(taken) > 0 and np.all(taken > 0)
    assert list(tmp_path.iterdir()) == [] and threading.active_count() < 20
