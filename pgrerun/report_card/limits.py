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
        self._barked = False
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
        before = signal.signal(signal.SIGALRM, self._bark)
        self._start, self._barked = time.monotonic(), False
        try:
            self._set_alarm(self.seconds)
            with self._whatever_it_hits():
                yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Leave the block early, without an error, when the time for measuring is over."""
        try:
            self._set_alarm(self.measurable)
            with self._whatever_it_hits():
                yield
        except TimeIsUp:
            self.ended, self._barked = True, False
        finally:
            self._set_alarm(self.seconds)

    @contextmanager
    def _whatever_it_hits(self) -> Iterator[None]:
        """TimeIsUp, too, where a library made something else of it; Python's own parser does."""
        try:
            yield
        except Exception:
            if self._barked:
                raise TimeIsUp from None
            raise

    def _bark(self, number: int, frame: object) -> None:
        self._barked = True
        raise TimeIsUp

    def _set_alarm(self, seconds: float) -> None:
        """Bark so many seconds after the start."""
        left = self._start + seconds - time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3), AGAIN)
