"""Experiments: order, seeds, answers, flags, and what survives an interruption."""

import json
import time
from collections import Counter
from contextlib import contextmanager

import pandas as pd
import pytest

from pgrerun.errors import CannotMeasure, ParameterError, RerunError
from pgrerun.lab import experiment
from pgrerun.lab.experiment import Block, Variant, interleave
from pgrerun.lab.instruments.machine import Load
from pgrerun.record import runs, statistics
from pgrerun.record.runs import Run


@pytest.fixture
def opened(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    return lambda: Run.open("mine", "tp1", key="k", environment={})


class Tape:
    """Variants that note when they are called."""

    def __init__(self, names="AB"):
        self.calls: list[tuple[str, Block]] = []
        self.prepared: list[str] = []
        self.variants = [self.variant(name) for name in names]

    def variant(self, name, value=1.0):
        def measure(block):
            self.calls.append((name, block))
            return {"tps": value}

        return Variant(name, measure, lambda block: self.prepared.append(name))

    def order(self):
        return "".join(name for name, block in self.calls if block.index >= 0)


def go(run, variants, pairs=4, **more):
    return interleave(run, "ladder", variants, pairs=pairs, units={"tps": "1/s"}, seed=7, **more)


def test_two_variants_alternate_so_that_a_drift_cancels(opened):
    tape = Tape("AB")
    with opened() as run:
        frame = go(run, tape.variants, pairs=4)
    assert tape.order() == "ABBABAAB"
    assert tape.prepared == [name for name, _ in tape.calls]
    assert len(frame) == 8 and set(frame["unit"]) == {"1/s"}
    assert frame.loc[frame["block"] == 1, "position"].tolist() == [0, 1]
    assert frame.loc[frame["block"] == 1, "variant"].tolist() == ["B", "A"]


def test_three_variants_take_every_position_equally_often(opened):
    tape = Tape("ABC")
    with opened() as run:
        frame = go(run, tape.variants, pairs=6)
    assert set(Counter(zip(frame["variant"], frame["position"])).values()) == {2}
    predecessors = {
        tape.order()[i : i + 2] for block in range(6) for i in (3 * block, 3 * block + 1)
    }
    assert {"AB", "BA", "BC", "CB", "CA", "AC"} == predecessors


def test_warm_up_is_discarded_but_recorded(opened):
    tape = Tape("AB")
    with opened() as run:
        frame = go(run, tape.variants, pairs=1, warmup=2)
    assert [block.index for _, block in tape.calls] == [-2, -2, -1, -1, 0, 0]
    assert len(frame) == 2
    assert {json.loads(flags)["warmup"] for flags in frame["flags"]} == {2}


def test_seeds_differ_by_block_repeat_by_run_and_are_shared_by_the_variants(opened, tmp_path):
    frames = []
    for name in ("one", "two"):
        with Run.open(name, "tp1", key="k", environment={}) as run:
            frames.append(go(run, Tape("AB").variants, pairs=5))
    assert frames[0]["seed"].tolist() == frames[1]["seed"].tolist()
    assert frames[0].groupby("block")["seed"].nunique().eq(1).all()
    assert frames[0]["seed"].nunique() == 5
    assert frames[0]["seed"].between(0, 2**31 - 1).all()


def test_ctrl_c_keeps_what_is_finished_and_the_next_call_does_the_rest(opened):
    tape = Tape("AB")

    def interrupted(block):
        if block.index == 2:
            raise KeyboardInterrupt
        return tape.variants[1].measure(block)

    with pytest.raises(KeyboardInterrupt), opened() as run:
        go(run, [tape.variants[0], Variant("B", interrupted)], pairs=4)
    assert run.finished("ladder") == {(0, "A"), (0, "B"), (1, "B"), (1, "A")}
    again = Tape("AB")
    with opened() as run:
        frame = go(run, again.variants, pairs=4)
        assert len(frame) == 8 and not frame.duplicated(["block", "variant"]).any()
        assert again.order() == "BAAB"
        calls = len(again.calls)
        go(run, again.variants, pairs=4)  # all there: not even a warm-up
        assert len(again.calls) == calls


def test_answers_that_differ_stop_the_experiment(opened):
    state = {}

    def variant(name, rows):
        return Variant(name, lambda block: state.update(rows=rows) or {"tps": 1.0})

    with pytest.raises(RerunError, match="hash join.*nested loop"), opened() as run:
        go(
            run,
            [variant("nested loop", 10), variant("hash join", 11)],
            answer=lambda block: state["rows"],
        )
    assert run.finished("ladder") == {(0, "nested loop")}


def test_answers_are_compared_with_those_of_an_interrupted_run_too(opened):
    state = {}

    def variant(name, rows, fail=False):
        def measure(block):
            if fail and block.index == 0:
                raise KeyboardInterrupt
            state["rows"] = rows
            return {"tps": 1.0}

        return Variant(name, measure)

    with pytest.raises(KeyboardInterrupt), opened() as run:
        go(
            run,
            [variant("A", 10), variant("B", 10, fail=True)],
            answer=lambda block: state["rows"],
        )
    with pytest.raises(RerunError, match="another answer"), opened() as run:
        go(run, [variant("A", 10), variant("B", 12)], answer=lambda block: state["rows"])


def test_long_answers_are_compared_to_their_end(opened):
    frames = {"A": pd.DataFrame({"x": range(1000)}), "B": pd.DataFrame({"x": [*range(999), 5]})}
    frames["B"].loc[500, "x"] = -1
    seen = {}
    variants = [
        Variant(name, lambda block, name=name: seen.update(now=name) or {"tps": 1.0})
        for name in frames
    ]
    with pytest.raises(RerunError, match="another answer"), opened() as run:
        go(run, variants, answer=lambda block: frames[seen["now"]])


def test_checkpoints_and_other_load_are_flags(opened, monkeypatch):
    class Busy:
        def __enter__(self):
            return Load(fraction=0.25, seconds=1.0)

        def __exit__(self, *exception):
            pass

    monkeypatch.setattr(experiment.machine, "other_load", lambda server: Busy())
    variants = [Variant("A", lambda block: {"tps": 1.0, "checkpoints": block.index})]
    with opened() as run:
        frame = go(run, variants, pairs=2)
    flags = [json.loads(text) for text in frame["flags"]]
    assert [flag.get("checkpoint") for flag in flags] == [None, 1]
    assert all(flag["busy"] and flag["other_load"] == 0.25 for flag in flags)
    assert set(frame["metric"]) == {"tps"}


@pytest.mark.parametrize(
    ("variants", "more", "complaint"),
    [
        ("AA", {}, "names that differ"),
        ("", {}, "none at all"),
        ("AB", {"pairs": 0}, "at least one pair"),
        ("AB", {"warmup": -1}, "warm-up"),
    ],
)
def test_experiments_that_make_no_sense(opened, variants, more, complaint):
    with opened() as run, pytest.raises(ParameterError, match=complaint):
        go(run, Tape(variants).variants, **more)


def test_metrics_need_units(opened):
    with opened() as run, pytest.raises(ParameterError, match="latency"):
        go(run, [Variant("A", lambda block: {"latency": 1.0})])


def disturbed_at(*calls, value=-1.0, name="A"):
    """A variant whose measurements of these numbers (from 0, warm-up not counted) can't be."""
    made = []

    def measure(block):
        if block.index < 0:
            return {"tps": 1.0}
        made.append(block.index)
        return {"tps": value if len(made) - 1 in calls else 2.0}

    return Variant(name, measure)


def flags_of(frame):
    return [json.loads(flags) for flags in frame["flags"]]


@pytest.mark.parametrize("value", [-15.5, float("nan"), float("inf"), -float("inf")])
def test_a_value_that_cannot_be_is_kept_as_disturbed_and_measured_again(opened, value):
    with opened() as run:
        frame = go(run, [disturbed_at(1, value=value), Tape().variant("B")], pairs=3)
        assert set(frame["value"]) == {1.0, 2.0} and len(frame) == 6
        assert run.disturbances("ladder") == 1 and run.left_out("ladder") == set()
        assert "A was disturbed (tps = " in run.notes[0] and "measured again" in run.notes[0]
    record = runs.load("mine")
    pd.testing.assert_frame_equal(record.observations, frame)
    assert record.environment == {} and len(record.disturbed) == 1
    kept = record.disturbed.iloc[0]
    assert kept["variant"] == "A" and kept["block"] == 1
    assert kept["value"] == value or pd.isna(kept["value"])
    (flags,) = flags_of(record.disturbed)
    assert flags["attempt"] == 1 and flags["budget"] == 3 and flags["warmup"] == 1
    assert flags["disturbed"] == f"tps = {value:g} 1/s" and "left_out" not in flags


def test_zero_is_a_value_unless_the_metric_must_be_positive(opened):
    with opened() as run:
        frame = go(run, [disturbed_at(0, value=0.0)], pairs=2)
        assert frame["value"].tolist() == [0.0, 2.0]
    with Run.open("other", "tp1", key="k", environment={}) as run:
        frame = go(run, [disturbed_at(0, value=0.0)], pairs=2, positive={"tps"})
        assert frame["value"].tolist() == [2.0, 2.0] and run.disturbances("ladder") == 1


def test_a_block_is_left_out_when_its_attempts_are_used_up(opened):
    tape = Tape()
    with opened() as run:
        frame = go(run, [tape.variant("B"), disturbed_at(1, 2, 3)], pairs=5)
        assert run.left_out("ladder") == {1}
        assert sorted(set(frame["block"])) == [0, 2, 3, 4]
        assert set(frame.groupby("block")["variant"].nunique()) == {2}
        assert "The block is left out." in run.notes[-1]
    record = runs.load("mine")
    assert sorted(set(record.observations["block"])) == [0, 2, 3, 4]
    assert len(record.disturbed) == 3  # the other variant of that block was spared


def test_what_was_measured_of_a_block_left_out_counts_no_more_but_is_kept(opened):
    with opened() as run:
        # block 0 measures B first, so that its value is there when A is given up
        frame = go(run, [Tape().variant("B"), disturbed_at(0, 1, 2)], pairs=2)
        assert set(frame["block"]) == {1}
    record = runs.load("mine")
    assert record.disturbed["variant"].tolist() == ["B", "A", "A", "A"]
    assert [flag.get("left_out", False) for flag in flags_of(record.disturbed)] == [
        False,
        False,
        False,
        True,
    ]


def test_the_budget_bounds_all_repeats_of_an_experiment(opened):
    calls = []

    def measure(block):
        calls.append(block.index)
        return {"tps": -1.0 if block.index in (0, 1, 2) else 1.0}

    with opened() as run:
        frame = go(run, [Variant("A", measure)], pairs=4, warmup=0, budget=2)
        # three times in all for the first block, then there is nothing left to repeat with
        assert calls == [0, 0, 0, 1, 2, 3] and run.left_out("ladder") == {0, 1, 2}
    assert set(frame["block"]) == {3}


def test_an_experiment_without_an_undisturbed_block_is_set_aside(opened):
    for _ in range(2):  # the second call measures nothing more, and says the same
        with opened() as run, pytest.raises(CannotMeasure, match="every block of 'ladder'"):
            go(run, [disturbed_at(*range(20))], pairs=2)
        assert run.disturbances("ladder") == 4 and run.observations("ladder").empty


def test_a_run_resumes_after_disturbed_values_without_repeating_what_is_left_out(opened):
    def interrupted(block):
        if block.index == 2:
            raise KeyboardInterrupt
        return {"tps": -1.0 if block.index == 0 else 1.0}

    with pytest.raises(KeyboardInterrupt), opened() as run:
        go(run, [Variant("A", interrupted), Tape().variant("B")], pairs=4)
    again = Tape()
    with opened() as run:
        assert run.left_out("ladder") == {0} and run.disturbances("ladder") == 3
        assert "Resumed" in run.notes[-1] and "disturbed" in run.notes[0]
        frame = go(run, again.variants, pairs=4)
    assert {block.index for _, block in again.calls if block.index >= 0} == {2, 3}
    assert set(frame["block"]) == {1, 2, 3} and len(runs.load("mine").disturbed) == 3


def test_a_disturbed_measurement_that_was_cut_off_is_repeated_on_resuming(opened):
    def broken_off(block):
        if block.index >= 0 and run.disturbances("ladder"):
            raise KeyboardInterrupt
        return {"tps": float("nan")}

    with pytest.raises(KeyboardInterrupt), opened() as run:
        go(run, [Variant("A", broken_off)], pairs=2)
    assert run.finished("ladder") == set()
    with opened() as run:
        frame = go(run, [disturbed_at()], pairs=2)
        assert len(frame) == 2 and run.disturbances("ladder") == 1


def test_few_pairs_left_give_an_interval_that_carries_no_verdict(opened):
    variants = [Tape().variant("B"), disturbed_at(0, 1, 2, 4, 5, 6)]
    with opened() as run:
        wide = go(run, variants, pairs=6).pivot(index="block", columns="variant", values="value")
    assert not statistics.ratio(wide["A"], wide["B"]).enough and len(wide) == 4


def test_preparation_and_answers_are_outside_the_measured_window(opened, monkeypatch):
    events = []

    class Window:
        def __enter__(self):
            events.append("open")
            return Load(0.0, 0.0)

        def __exit__(self, *exception):
            events.append("close")

    monkeypatch.setattr(experiment.machine, "other_load", lambda server: Window())
    variant = Variant(
        "A",
        lambda block: events.append("measure") or {"tps": 1.0},
        lambda block: events.append("prepare"),
    )
    with opened() as run:
        go(run, [variant], pairs=1, warmup=0, answer=lambda block: events.append("answer"))
    assert events == ["prepare", "open", "measure", "close", "answer"]


def test_a_finished_observation_is_on_disk_at_once(opened):
    seen = []
    with opened() as run:

        def measure(block):
            seen.append(len(run.finished("ladder")))
            time.sleep(0)
            return {"tps": 1.0}

        go(run, [Variant("A", measure)], pairs=3, warmup=0)
    assert seen == [0, 1, 2]


def loads(monkeypatch, *shares):
    """Others use these shares of the machine, one measurement after the other, then nothing."""
    coming = iter(shares)

    @contextmanager
    def other_load(server):
        yield Load(next(coming, 0.0), 1.0)

    monkeypatch.setattr(experiment.machine, "other_load", other_load)


def test_a_busy_measurement_is_made_again_only_for_a_quiet_run(opened, monkeypatch):
    loads(monkeypatch, 0.5, 0.0)
    with opened() as run:
        frame = go(run, Tape("A").variants, pairs=2, warmup=0)
        assert run.disturbances("ladder") == 0
    assert [json.loads(flags).get("busy") for flags in frame["flags"]] == [True, None]
    loads(monkeypatch, 0.5, 0.0)
    with Run.open("quiet", "tp1", key="k", environment={}) as run:
        frame = go(run, Tape("A").variants, pairs=2, warmup=0, quiet=True)
        assert "others used 50 % of the machine" in run.notes[0]
    assert len(frame) == 2 and not frame["flags"].str.contains("busy").any()
    kept = runs.load("quiet", "tp1")
    assert len(kept.disturbed) == 1 and len(kept.observations) == 2


def test_the_last_try_and_what_the_budget_no_longer_covers_stay_as_they_are(opened, monkeypatch):
    loads(monkeypatch, *[0.5] * experiment.ATTEMPTS, 0.5)
    with opened() as run:
        frame = go(run, Tape("A").variants, pairs=3, warmup=0, quiet=True, budget=2)
        assert run.disturbances("ladder") == 2 and not run.left_out("ladder")
    assert [json.loads(flags).get("busy") for flags in frame["flags"]] == [True, True, None]


def test_a_measurement_that_cannot_be_is_left_out_of_a_quiet_run_too(opened, monkeypatch):
    loads(monkeypatch, *[0.5] * 9)
    broken = Variant("A", lambda block: {"tps": -1.0 if block.index == 0 else 1.0})
    with opened() as run:
        frame = go(run, [broken], pairs=2, warmup=0, quiet=True, budget=5)
        assert run.left_out("ladder") == {0}
    assert set(frame["block"]) == {1}
