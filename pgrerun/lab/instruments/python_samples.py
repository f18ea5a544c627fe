"""Where Python spends its CPU time, by samples."""

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pgrerun.errors import CannotMeasure


def require() -> None:
    """CannotMeasure outside of a program's main thread, where no signal comes."""
    if threading.current_thread() is not threading.main_thread():
        raise CannotMeasure(
            "profiling signals",
            "Samples come by a signal, and only the main thread of a program gets it.",
        )


@contextmanager
def sampled(package: str, interval: float = 0.001) -> Iterator[Counter[str]]:
    """Count samples by function while the block runs, one every `interval` seconds of CPU time.

    Under "" those outside of files whose path contains `package`. A function's own time, what it
    calls left out; a call into Python's own library written in C counts for its caller.
    """
    seen: Counter[str] = Counter()

    def sample(number: int, frame: FrameType | None) -> None:
        if frame is not None and package in frame.f_code.co_filename:
            seen[frame.f_code.co_name] += 1
        else:
            seen[""] += 1

    require()
    earlier = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, interval, interval)
    try:
        yield seen
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)
