"""A watchdog that ends a section of the card at its time limit and loses nothing finished."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Share of a section's time after which measuring ends; the rest is for telling what was found.
MEASURING = 0.85
AGAIN = 5.0  # seconds until it barks again, should cleaning up take longer


class TimeIsUp(KeyboardInterrupt):
    """The limit was reached. As with Ctrl-C, a statement under way is cancelled, and a tool under
    way is ended.
    """


class Watchdog:
    """Of one section: `seconds` in all; `ended` says whether measuring was ended before it was
    over.
    """

    def __init__(self, seconds: float):
        self.seconds, self.ended = seconds, False
        self._start = time.monotonic()

    @property
    def measurable(self) -> float:
        """Seconds after which measuring is ended."""
        return MEASURING * self.seconds

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Raise TimeIsUp in the block when the section's time is over. Only the main thread can be
        watched.
        """
        before = signal.signal(signal.SIGALRM, _bark)
        self._start = time.monotonic()
        try:
            self._set_alarm(self.seconds)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Leave the block early, without an error, when the time for measuring is over."""
        try:
            self._set_alarm(self.measurable)
            yield
        except TimeIsUp:
            self.ended = True
        finally:
            self._set_alarm(self.seconds)

    def _set_alarm(self, seconds: float) -> None:
        """Bark so many seconds after the start."""
        left = self._start + seconds - time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3), AGAIN)


def _bark(number: int, frame: object) -> None:
    raise TimeIsUp
