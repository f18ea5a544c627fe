"""Experiments: order, seeds, answers, flags, and what survives an interruption."""

import json
import time
from collections import Counter

import pandas as pd
import pytest

from pgrerun import experiment
from pgrerun.errors import ParameterError, RerunError
from pgrerun.experiment import Arm, Block, interleave
from pgrerun.instruments.machine import Load
from pgrerun.runs import Run


@pytest.fixture
def opened(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    return lambda: Run.open("mine", "tp1", key="k", environment={})


class Tape:
    """Arms that note when they are called."""

    def __init__(self, names="AB"):
        self.calls: list[tuple[str, Block]] = []
        self.prepared: list[str] = []
        self.arms = [self.arm(name) for name in names]

    def arm(self, name, value=1.0):
        def measure(block):
            self.calls.append((name, block))
            return {"tps": value}

        return Arm(name, measure, lambda block: self.prepared.append(name))

    def order(self):
        return "".join(name for name, block in self.calls if block.index >= 0)


def go(run, arms, pairs=4, **more):
    return interleave(run, "ladder", arms, pairs=pairs, units={"tps": "1/s"}, seed=7, **more)


def test_two_arms_alternate_so_that_a_drift_cancels(opened):
    tape = Tape("AB")
    with opened() as run:
        frame = go(run, tape.arms, pairs=4)
    assert tape.order() == "ABBABAAB"
    assert tape.prepared == [name for name, _ in tape.calls]
    assert len(frame) == 8 and set(frame["unit"]) == {"1/s"}
    assert frame.loc[frame["block"] == 1, "position"].tolist() == [0, 1]
    assert frame.loc[frame["block"] == 1, "arm"].tolist() == ["B", "A"]


def test_three_arms_take_every_position_equally_often(opened):
    tape = Tape("ABC")
    with opened() as run:
        frame = go(run, tape.arms, pairs=6)
    assert set(Counter(zip(frame["arm"], frame["position"])).values()) == {2}
    predecessors = {tape.order()[i : i + 2] for block in range(6) for i in (3 * block, 3 * block + 1)}
    assert {"AB", "BA", "BC", "CB", "CA", "AC"} == predecessors


def test_warm_up_is_discarded_but_recorded(opened):
    tape = Tape("AB")
    with opened() as run:
        frame = go(run, tape.arms, pairs=1, warmup=2)
    assert [block.index for _, block in tape.calls] == [-2, -2, -1, -1, 0, 0]
    assert len(frame) == 2
    assert {json.loads(flags)["warmup"] for flags in frame["flags"]} == {2}


def test_seeds_differ_by_block_repeat_by_run_and_are_shared_by_the_arms(opened, tmp_path):
    frames = []
    for name in ("one", "two"):
        with Run.open(name, "tp1", key="k", environment={}) as run:
            frames.append(go(run, Tape("AB").arms, pairs=5))
    assert frames[0]["seed"].tolist() == frames[1]["seed"].tolist()
    assert frames[0].groupby("block")["seed"].nunique().eq(1).all()
    assert frames[0]["seed"].nunique() == 5
    assert frames[0]["seed"].between(0, 2**31 - 1).all()


def test_ctrl_c_keeps_what_is_finished_and_the_next_call_does_the_rest(opened):
    tape = Tape("AB")

    def interrupted(block):
        if block.index == 2:
            raise KeyboardInterrupt
        return tape.arms[1].measure(block)

    with pytest.raises(KeyboardInterrupt):
        with opened() as run:
            go(run, [tape.arms[0], Arm("B", interrupted)], pairs=4)
    assert run.finished("ladder") == {(0, "A"), (0, "B"), (1, "B"), (1, "A")}
    again = Tape("AB")
    with opened() as run:
        frame = go(run, again.arms, pairs=4)
        assert len(frame) == 8 and not frame.duplicated(["block", "arm"]).any()
        assert again.order() == "BAAB"
        calls = len(again.calls)
        go(run, again.arms, pairs=4)  # all there: not even a warm-up
        assert len(again.calls) == calls


def test_answers_that_differ_stop_the_experiment(opened):
    state = {}

    def arm(name, rows):
        return Arm(name, lambda block: state.update(rows=rows) or {"tps": 1.0})

    with pytest.raises(RerunError, match="hash join.*nested loop"):
        with opened() as run:
            go(run, [arm("nested loop", 10), arm("hash join", 11)], answer=lambda block: state["rows"])
    assert run.finished("ladder") == {(0, "nested loop")}


def test_answers_are_compared_with_those_of_an_interrupted_run_too(opened):
    state = {}

    def arm(name, rows, fail=False):
        def measure(block):
            if fail and block.index == 0:
                raise KeyboardInterrupt
            state["rows"] = rows
            return {"tps": 1.0}

        return Arm(name, measure)

    with pytest.raises(KeyboardInterrupt):
        with opened() as run:
            go(run, [arm("A", 10), arm("B", 10, fail=True)], answer=lambda block: state["rows"])
    with pytest.raises(RerunError, match="another answer"):
        with opened() as run:
            go(run, [arm("A", 10), arm("B", 12)], answer=lambda block: state["rows"])


def test_long_answers_are_compared_to_their_end(opened):
    frames = {"A": pd.DataFrame({"x": range(1000)}), "B": pd.DataFrame({"x": [*range(999), 5]})}
    frames["B"].loc[500, "x"] = -1
    seen = {}
    arms = [Arm(name, lambda block, name=name: seen.update(now=name) or {"tps": 1.0}) for name in frames]
    with pytest.raises(RerunError, match="another answer"):
        with opened() as run:
            go(run, arms, answer=lambda block: frames[seen["now"]])


def test_checkpoints_and_other_load_are_flags(opened, monkeypatch):
    class Busy:
        def __enter__(self):
            return Load(fraction=0.25, seconds=1.0)

        def __exit__(self, *exception):
            pass

    monkeypatch.setattr(experiment.machine, "other_load", lambda server: Busy())
    arms = [Arm("A", lambda block: {"tps": 1.0, "checkpoints": block.index})]
    with opened() as run:
        frame = go(run, arms, pairs=2)
    flags = [json.loads(text) for text in frame["flags"]]
    assert [flag.get("checkpoint") for flag in flags] == [None, 1]
    assert all(flag["busy"] and flag["other_load"] == 0.25 for flag in flags)
    assert set(frame["metric"]) == {"tps"}


@pytest.mark.parametrize(
    ("arms", "more", "complaint"),
    [
        ("AA", {}, "names that differ"),
        ("", {}, "none at all"),
        ("AB", {"pairs": 0}, "at least one pair"),
        ("AB", {"warmup": -1}, "warm-up"),
    ],
)
def test_experiments_that_make_no_sense(opened, arms, more, complaint):
    with opened() as run, pytest.raises(ParameterError, match=complaint):
        go(run, Tape(arms).arms, **more)


def test_metrics_need_units_and_finite_values(opened):
    with opened() as run:
        with pytest.raises(ParameterError, match="latency"):
            go(run, [Arm("A", lambda block: {"latency": 1.0})])
        with pytest.raises(RerunError, match="finite"):
            go(run, [Arm("A", lambda block: {"tps": float("nan")})])
        assert not run.finished("ladder")


def test_preparation_and_answers_are_outside_the_measured_window(opened, monkeypatch):
    events = []

    class Window:
        def __enter__(self):
            events.append("open")
            return Load(0.0, 0.0)

        def __exit__(self, *exception):
            events.append("close")

    monkeypatch.setattr(experiment.machine, "other_load", lambda server: Window())
    arm = Arm("A", lambda block: events.append("measure") or {"tps": 1.0}, lambda block: events.append("prepare"))
    with opened() as run:
        go(run, [arm], pairs=1, warmup=0, answer=lambda block: events.append("answer"))
    assert events == ["prepare", "open", "measure", "close", "answer"]


def test_a_finished_observation_is_on_disk_at_once(opened):
    seen = []
    with opened() as run:

        def measure(block):
            seen.append(len(run.finished("ladder")))
            time.sleep(0)
            return {"tps": 1.0}

        go(run, [Arm("A", measure)], pairs=3, warmup=0)
    assert seen == [0, 1, 2]
