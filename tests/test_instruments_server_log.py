"""The server's log: when checkpoints began and visits of autovacuum were over, and how long and how
often locks were waited for.
"""

import re

import pytest

from pgrerun.lab.instruments import server_log


@pytest.mark.parametrize(
    ("read", "log", "found"),
    [
        (
            server_log.checkpoints,
            "2026-11-21 10:00:00.250 UTC [12] LOG:  checkpoint starting: wal\n2026-11-21 10:00:01"
            " UTC [12] LOG:  checkpoint complete: wrote 3 buffers\n",
            [1795255200.25],
        ),
        (
            server_log.lock_waits,
            "2026-11-21 10:00:00.1 UTC [7] LOG:  process 7 still waiting for ShareLock on"
            " transaction 9 after 1.05 ms\n2026-11-21 10:00:00.2 UTC [7] LOG:  process 7 acquired"
            " ShareLock on transaction 9 after 4.25 ms\n",
            [4.25],
        ),
        (  # of the table alone, and when a visit is over
            lambda log: server_log.autovacuums(log, "accounts"),
            '2026-11-21 10:00:00.250 UTC [9] LOG:  automatic vacuum of table "postgres.public'
            '.accounts": index scans: 1\n\tpages: 0 removed, 1818 remain\n2026-11-21 10:00:01 UTC'
            ' [9] LOG:  automatic vacuum of table "postgres.public.branches": index scans: 0\n'
            '2026-11-21 10:00:02 UTC [9] LOG:  automatic analyze of table "postgres.public'
            '.accounts"\n',
            [1795255200.25],
        ),
    ],
)
def test_what_is_over_or_begins_is_found_in_the_log(read, log, found):
    assert read(log) == pytest.approx(found)


def test_a_server_writes_its_checkpoints_as_they_are_read(cluster):
    before = len(cluster.log())
    with cluster.connect() as connection:
        connection.execute("CHECKPOINT")
    assert len(server_log.checkpoints(cluster.log()[before:])) == 1


COUNTED = """PID 7 lwlock 7: shacq 0 exacq 3000 blk 12 spindelay 1
2012-06-01 10:00:00 UTC [8] LOG:  checkpoint starting
PID 8 lwlock 7: shacq 1 exacq 2000 blk 30 spindelay 0
PID 8 lwlock 9: shacq 5 exacq 0 blk 0 spindelay 0
"""


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (COUNTED, {"waits": 42, "spins": 1, "taken": 5001, "exclusively": 5000}),
        (
            re.sub(" spindelay .", "", COUNTED),
            {"waits": 42, "spins": None, "taken": 5001, "exclusively": 5000},
        ),
        ("", None),
    ],
)
def test_what_processes_count_is_summed_by_lock_and_spins_are_missing_before_they_were_counted(
    log, expected
):
    assert server_log.lightweight_locks(log).get(7) == expected
