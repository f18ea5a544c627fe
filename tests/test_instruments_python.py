"""Python's own machine: instructions counted exactly, and samples that find their function."""

import signal
import sys
import threading

import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import opcodes, python_samples


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


def burn(seen, name: str) -> None:
    """Work until a sample has found the function of this name."""
    while not seen.get(name):
        pass


def test_samples_find_the_function_and_put_others_together():
    with python_samples.sampled("test_instruments_python") as seen:
        burn(seen, "burn")
    assert seen["burn"] >= 1
    with python_samples.sampled("no such folder") as seen:
        burn(seen, "")
    assert set(seen) == {""}


def test_no_signal_comes_after_the_block():
    earlier = signal.getsignal(signal.SIGPROF)
    with pytest.raises(ValueError, match="told"), python_samples.sampled("pgrerun"):
        raise ValueError("told")
    assert signal.getsignal(signal.SIGPROF) == earlier
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def test_samples_need_the_main_thread():
    told = []

    def elsewhere():
        try:
            python_samples.require()
        except CannotMeasure as reason:
            told.append(reason)

    python_samples.require()
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(told) == 1
