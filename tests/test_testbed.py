"""What makes repeats comparable: order, seeds, answers, disturbed values, and taking up again."""

import itertools
import math
from collections import Counter
from types import SimpleNamespace

import pytest

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.lab import testbed
from pgrerun.lab.instruments import machine
from pgrerun.lab.server import bundled
from pgrerun.lab.testbed import ATTEMPTS, Testbed, experiment
from pgrerun.record import rows, sequential


class Run:
    """Measures one comparison and keeps its rows as a record does, maybe to take it up again."""

    def __init__(self, measure, variants=("a", "b"), pairs=7, seed=1, **given):
        own = {name: given.pop(name) for name in ("settled", "looks", "quiet") if name in given}

        @experiment(units={"time": "s", "answered": ""})
        def planted(bed):
            yield from bed.compare(measure, {"variant": list(variants)}, **{"warmup": 0} | given)

        self.experiment, self.rows = planted, []
        parameters = SimpleNamespace(pairs=pairs, seed=seed)
        self.bed = lambda: Testbed(parameters, bundled(), rows=lambda _: self.rows, **own)

    def go(self):
        for row in self.bed().measure(self.experiment, {}):
            self.rows.append(rows.check("planted", row, self.experiment.units))
        return self

    def column(self, name):
        return [row[name] for row in self.rows]


def steady(block, variant):
    return {"time": 1.0}


def spoilt(*which):
    """Measures nothing in these pairs of block and variant."""

    def measure(block, variant):
        return {"time": math.nan if (block.index, variant) in which else 1.0}

    return measure


class Load:
    """The load of others during an observation, in place of the real one."""

    fraction, told = 0.5, []

    def __enter__(self):
        self.told.append("begin")
        return self

    def __exit__(self, *_):
        self.told.append("end")


def test_two_variants_alternate_so_that_a_drift_cancels():
    assert "".join(Run(steady, pairs=4).go().column("variant")) == "ab" + "ba" + "ba" + "ab"


def test_three_variants_take_every_position_equally_often():
    run = Run(steady, "abc", pairs=6).go()
    places = Counter(zip(run.column("variant"), run.column("position")))
    assert places == dict.fromkeys(itertools.product("abc", range(3)), 2)


def test_seeds_differ_by_block_repeat_by_run_and_are_shared_by_the_variants():
    first, again, other = (Run(steady, seed=seed).go() for seed in (1, 1, 2))
    seeds = {row["block"]: row["seed"] for row in first.rows}
    assert len(set(seeds.values())) == 7
    assert all(row["seed"] == seeds[row["block"]] for row in first.rows)
    assert again.column("seed") == first.column("seed") != other.column("seed")


def test_warm_up_is_discarded():
    blocks = []

    def measure(block, variant):
        blocks.append(block.index)
        return {"time": 1.0}

    run = Run(measure, warmup=2).go()
    assert blocks[:4] == [-2, -2, -1, -1] and set(run.column("block")) == set(range(7))


def test_what_is_finished_is_not_measured_again():
    calls = []

    def measure(block, variant):
        calls.append((block.index, variant))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return {"time": 1.0}

    run = Run(measure)
    with pytest.raises(KeyboardInterrupt):
        run.go()
    assert len(run.rows) == 3
    run.go()
    assert len(run.rows) == 14 and len(set(calls)) == 14 and len(calls) == 15


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_value_that_cannot_be_is_kept_as_disturbed_and_measured_again(value):
    values = iter([value])
    run = Run(lambda block, variant: {"time": next(values, 1.0)}).go()
    assert len(run.rows) == 15 and "time" in run.rows[0]["disturbed"]
    assert not any(run.column("disturbed")[1:]) and not any(run.column("left_out"))


def test_zero_is_a_value_unless_the_metric_must_be_positive():
    zero = lambda block, variant: {"time": 0.0}
    assert not any(Run(zero).go().column("disturbed"))
    with pytest.raises(CannotMeasure, match="disturbed"):
        Run(zero, positive=["time"]).go()
    with pytest.raises(BookError, match="no unit for pages"):
        Run(lambda block, variant: {"pages": 1.0}).go()


def test_a_block_is_left_out_when_its_attempts_are_used_up_and_counts_no_more():
    run = Run(spoilt((2, "b"))).go()
    assert [row["block"] for row in run.rows if row["left_out"]] == [2]
    assert sum(bool(one) for one in run.column("disturbed")) == ATTEMPTS
    frame = rows.counted(rows.frame(run.rows, run.experiment.units))
    assert set(frame["block"]) == set(range(7)) - {2}
    before = len(run.rows)
    assert len(run.go().rows) == before  # and isn't tried again by the next run


def test_the_budget_bounds_all_repeats_of_a_comparison():
    run = Run(spoilt((0, "b"), (1, "b"), (2, "b")), pairs=4).go()
    assert [row["block"] for row in run.rows if row["left_out"]] == [0, 1, 2]
    assert sum(bool(one) for one in run.column("disturbed")) == ATTEMPTS + 2 + 1


def test_a_busy_measurement_is_made_again_only_for_a_quiet_run(monkeypatch):
    monkeypatch.setattr(machine, "other_load", Load)
    assert len(Run(steady, pairs=5).go().rows) == 10
    quiet = Run(steady, pairs=5, quiet=True).go()
    assert any("others used 50 %" in one for one in quiet.column("disturbed") if one)
    assert not any(quiet.column("left_out"))  # the last try counts: it can be


def test_preparation_is_outside_of_what_is_measured(monkeypatch):
    order = []
    load = type("Quiet", (Load,), {"fraction": 0.0, "told": order})
    monkeypatch.setattr(machine, "other_load", load)
    Run(
        lambda block, variant: order.append("measure") or {"time": 1.0},
        pairs=1,
        fixed=True,
        prepare=lambda block, variant: order.append("prepare"),
    ).go()
    assert order[:4] == ["prepare", "begin", "measure", "end"]


@pytest.mark.parametrize("at_once", [True, False])
def test_it_ends_at_the_first_look_if_the_words_are_plain(at_once):
    asked = []

    def settled(name, found, looks, against):
        asked.append((name, len(found), tuple(looks), against))
        return at_once

    run = Run(steady, pairs=15, looks=sequential.looks, settled=settled, against="a").go()
    assert len(set(run.column("block"))) == (7 if at_once else 15)
    assert asked == [("planted", 14, (7, 15), "a")] and set(run.column("looks")) == {"7,15"}


def test_experiments_of_one_name_are_refused():
    def same(bed):
        yield {}

    one, other = (experiment(units={})(same) for _ in range(2))
    module = SimpleNamespace(__name__="two", __path__=[], first=one, second=other)
    with pytest.raises(BookError, match="two experiments called 'same'"):
        testbed.collected(module)
