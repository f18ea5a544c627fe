"""Estimators that could come out impossible on a busy machine: values that can't be, put in."""

import numpy as np
import pandas as pd
import pytest

from pgrerun.chapters.access_paths import evidence as access_paths
from pgrerun.chapters.access_paths.experiments import sorting
from pgrerun.chapters.explorations import evidence as explorations
from pgrerun.chapters.explorations.experiments import planner
from pgrerun.chapters.four_tactics.evidence import compilation_today
from pgrerun.chapters.four_tactics.experiments.compilation_today import INTERPRETED, JITTED
from pgrerun.chapters.optimizer.evidence import scans
from pgrerun.chapters.scalability.experiments import large_machines, load, locks
from pgrerun.chapters.tp1 import evidence as tp1
from pgrerun.chapters.tp1.variants import LONE, PAIR
from pgrerun.errors import CannotMeasure
from pgrerun.record import statistics

BLOCKS = 7


class Told:
    """A chapter whose tables are these: by metric, or by experiment and metric."""

    class parameters:
        seed, clients, pairs = 1, 2, BLOCKS

    def __init__(self, tables):
        self.tables = tables

    def table(self, name, metric):
        return self.tables.get((name, metric), self.tables.get(metric))

    def ratio(self, name, metric, variant, base):
        found = self.table(name, metric)
        return statistics.ratio(found[variant], found[base])

    def disk(self, *names):
        return ""


def columns(**values):
    return pd.DataFrame({name: np.broadcast_to(x, BLOCKS).copy() for name, x in values.items()})


def sorts(least):
    names = [
        sorting.variant(key, way)
        for key in (sorting.BYTES, sorting.ALIKE)
        for way in (sorting.UNSUPPORTED, sorting.SUPPORTED)
    ]
    frame = columns(**dict.fromkeys(names, 2.0), **{sorting.UNSORTED: 1.0})
    frame.loc[3, names[:2]] = least
    return Told({"seconds": frame})


def test_two_sorts_that_took_less_than_reading_make_no_ratio():
    assert access_paths.abbreviated(sorts(2.0)).enough
    found = access_paths.abbreviated(sorts(0.5))  # -0.5 over -0.5 is 1, and says nothing
    assert found.disturbed and not found.enough


@pytest.mark.parametrize("wrong", [0.0, np.nan])
def test_a_picked_plan_whose_time_cannot_be_leaves_its_fact_open(wrong):
    frame = pd.DataFrame({"work_mem": ["4MB"], "ratio": [wrong], "low": [0.0], "high": [np.inf]})
    told = Told({"time": columns(one=1.0)})
    assert planner.WORK_MEM and list(explorations.optimal(told, frame).values()) == [None]


def machine(alone, same=400.0):
    return Told(
        {
            ("lock costs", "time"): columns(
                **{locks.ALONE: alone, locks.EMPTY: 50.0, locks.SAME: same}
            ),
            ("read", "throughput"): columns(**{load.by_clients(load.processors()): 1000.0}),
            "processor": columns(handoff=3.0),
            "elapsed": columns(handoff=5.0),
        }
    )


def test_costs_are_made_up_of_no_block_in_which_a_lock_took_no_time(monkeypatch):
    monkeypatch.setattr(large_machines, "one_per_processor", lambda chapter: load.processors())
    disturbed = np.array([90.0] * 5 + [40.0, 50.0])
    assert len(large_machines.calibrated(machine(90.0))) == BLOCKS
    kept = large_machines.calibrated(machine(disturbed))
    assert len(kept) == 5 and all(costs.visit > 1e-9 and costs.line > 0 for costs in kept)
    with pytest.raises(CannotMeasure, match="in no block"):
        large_machines.calibrated(machine(40.0))
    with pytest.raises(CannotMeasure, match="in no block"):
        large_machines.calibrated(machine(90.0, same=20.0))


def test_a_switch_over_is_unknown_where_a_time_cannot_be(monkeypatch):
    at = [0.1, 0.5, 0.9]
    monkeypatch.setattr(scans.scans, "timed_at", lambda chapter: at)
    other = columns(**{str(x): x for x in at}).set_axis(at, axis=1)
    flat = columns(**{str(x): 0.4 for x in at}).set_axis(at, axis=1)
    seconds = pd.concat({"index": other, scans.SEQUENTIAL: flat}, axis=1)
    assert scans.crossings(Told({}), seconds, "index").estimate == pytest.approx(0.4)
    for wrong in (0.0, np.nan, np.inf):
        seconds.loc[2, ("index", 0.5)] = wrong
        found = scans.crossings(Told({}), seconds, "index")
        assert found.disturbed and not found.enough


def test_nothing_is_predicted_from_a_backend_that_did_nothing():
    shares = columns(**{LONE: 0.4, PAIR: 0.8})
    rates = columns(**{LONE: 10.0, PAIR: 18.0})
    told = Told({"throughput": rates, "processor": shares})
    [found] = tp1.short_of_perfect(told).values()
    assert found.enough
    rates.loc[1, LONE] = 0.0
    [found] = tp1.short_of_perfect(told).values()
    assert found.disturbed


def test_compiling_that_saves_nothing_in_some_blocks_leaves_the_break_even_open():
    a_tuple = columns(**{INTERPRETED: 2.0, JITTED: 1.0})
    told = Told({"tuple c": a_tuple, "compiling c": columns(**{JITTED: 1000.0})})
    assert compilation_today.jit_break_even(told).estimate == 1000
    a_tuple.loc[0, JITTED] = 3.0  # inside of what the interval leaves out
    assert compilation_today.jit_break_even(told).high > 1000
    a_tuple.loc[:1, JITTED] = 3.0
    assert compilation_today.jit_break_even(told) is None
