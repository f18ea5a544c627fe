"""Clients who meet at locks: what must come out whatever the costs are."""

import pytest

from pgrerun.lab.models.contention import Machine, Transaction, Visit, play

CHEAP = {"transfer": 0.0, "switch": 0.0, "rouse": 0.0}


def speedup(machine, transaction, clients, **more):
    one = play(machine, transaction, 1, transactions=600, **more).throughput
    return play(machine, transaction, clients, transactions=600, **more).throughput / one


def test_without_a_shared_lock_throughput_is_linear_up_to_the_processors_and_flat_beyond():
    lookup = Transaction(50e-6, ())
    assert play(Machine(8, **CHEAP), lookup, 1).throughput == pytest.approx(1 / 50e-6)
    assert speedup(Machine(8, **CHEAP), lookup, 8) == pytest.approx(8, rel=0.02)
    assert speedup(Machine(8, **CHEAP), lookup, 64) == pytest.approx(8, rel=0.02)


def test_a_lock_that_everybody_takes_bounds_throughput_by_the_time_it_is_held():
    lookup = Transaction(10e-6, (Visit("lock", 2, 1e-6),))
    assert play(Machine(64, **CHEAP), lookup, 64).throughput == pytest.approx(1 / 2e-6, rel=0.05)


def test_a_client_alone_fetches_no_cache_line_and_wakes_nobody():
    lookup = Transaction(
        10e-6, (Visit("light", 2, 1e-6, lines=5), Visit("spin", 2, 1e-6, spins=True))
    )
    free, dear = Machine(4, **CHEAP), Machine(4, transfer=1e-6, switch=1e-5, rouse=1e-5)
    assert play(free, lookup, 1, seed=3).throughput == play(dear, lookup, 1, seed=3).throughput


def test_lwlock_plateaus_and_spinlock_collapses():
    machine = Machine(32, transfer=0.3e-6, switch=2e-6, rouse=0.0)
    asleep, asking = (
        Transaction(20e-6, (Visit("lock", 4, 0.2e-6, spins=spins),)) for spins in (False, True)
    )
    few, many = (
        {kind: play(machine, kind, clients).throughput for kind in (asleep, asking)}
        for clients in (8, 64)
    )
    assert many[asleep] > 0.5 * few[asleep]
    assert many[asking] < 0.5 * few[asking]


def test_who_waits_is_counted_at_the_crowded_lock():
    transaction = Transaction(5e-6, (Visit("crowded", 1, 2e-6), Visit("empty", 1, 1e-9, ways=64)))
    waiting = play(Machine(16, **CHEAP), transaction, 16).waiting
    assert waiting["crowded"] > 5 and waiting["empty"] < 0.1
