"""Python's own machine: instructions counted exactly."""

import sys

import pytest

from pgrerun.lab.instruments import opcodes


def passes(times: int) -> None:
    for _ in range(times):
        pass


def nested(depth: int) -> None:
    if depth:
        nested(depth - 1)


def test_each_pass_of_a_loop_takes_the_same_instructions():
    found = [opcodes.executed(passes, times)[0] for times in (1, 2, 3, 13)]
    each = found[1] - found[0]
    assert each > 0
    assert found == [found[0] + more * each for more in (0, 1, 2, 12)]
    assert opcodes.executed(passes, 3) == opcodes.executed(passes, 3)


def test_functions_called_are_counted_and_those_in_c_are_not():
    assert [opcodes.executed(nested, depth)[1] for depth in (0, 3)] == [1, 4]
    assert opcodes.executed(len, "text") == (0, 0)


def test_whoever_traced_before_traces_again():
    def trace(frame, event, argument):
        return None

    def fail():
        raise ValueError("told")

    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        opcodes.executed(passes, 1)
        after = sys.gettrace()
        with pytest.raises(ValueError, match="told"):
            opcodes.executed(fail)
        after_failure = sys.gettrace()
    finally:
        sys.settrace(earlier)
    assert after is trace and after_failure is trace
