"""Commits that wait for one log, simulated."""

import pytest

from pgrerun.lab.models.group_commit import ALONE, QUEUE, TOGETHER, commit

COSTS = {"work": 100e-6, "flush": 1e-3, "switch": 20e-6, "processors": 16}


def test_one_client_makes_a_flush_for_each_commit_whatever_the_way():
    found = [commit(way, 1, **COSTS) for way in (ALONE, QUEUE, TOGETHER)]
    assert {round(one.throughput) for one in found} == {round(found[0].throughput)}
    assert found[0].throughput == pytest.approx(1 / 1.1e-3, rel=0.03) and found[2].per_flush == 1


def test_alone_the_disk_is_the_bound_for_any_number_of_clients():
    assert commit(ALONE, 100, **COSTS).throughput == pytest.approx(1 / COSTS["flush"], rel=0.02)


def test_together_a_flush_carries_about_half_of_the_clients():
    found = commit(TOGETHER, 32, **COSTS)  # the others' records come while it is under way
    assert 10 < found.per_flush < 32


def test_the_queue_is_bound_by_letting_its_waiters_go_one_by_one():
    assert commit(QUEUE, 250, **COSTS).throughput < 1 / COSTS["switch"]
    assert commit(TOGETHER, 250, **COSTS).throughput > 1.5 * commit(QUEUE, 250, **COSTS).throughput


def test_the_slower_the_flush_the_less_the_queue_matters():
    gains = []
    for flush in (0.1e-3, 10e-3):
        given = COSTS | {"flush": flush}
        gains.append(
            commit(TOGETHER, 250, **given).throughput / commit(QUEUE, 250, **given).throughput
        )
    assert gains[0] > 2 * gains[1]
