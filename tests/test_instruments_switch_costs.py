"""Costs of switches and messages: how they hang together, and that nothing is left behind."""

import math
import os

import psutil
import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import switch_costs


def test_a_round_trip_is_divided_into_its_parts():
    found = switch_costs.ipc_costs(rounds=50)
    assert set(found) == set(switch_costs.COSTS)
    # a message takes a write, a read and the switch to whoever reads
    assert math.isclose(found["message"], found["switch"] + 2 * found["call"])


def test_nothing_is_left_behind():
    def held():
        process = psutil.Process()
        return os.sched_getaffinity(0), process.num_fds(), process.children()

    before = held()
    switch_costs.ipc_costs(rounds=5)
    assert held() == before


def test_a_system_that_keeps_no_process_on_a_processor_is_told(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity")
    with pytest.raises(CannotMeasure, match="one processor"):
        switch_costs.ipc_costs(rounds=5)
