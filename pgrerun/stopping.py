"""How something long ends when it is asked to: Ctrl-C, SIGTERM and SIGHUP alike, once.

`stoppable` is for what has something to put away: a kernel with its server, a schema on somebody's
server, a half-written page.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = 0.05  # seconds: the finalizer has ended by then, or the signal is sent once more


@contextmanager
def stoppable(waiting_for: str) -> Iterator[None]:
    """The first of the signals raises KeyboardInterrupt; later ones wait for its clean-up.

    A second one would otherwise leave behind what the first has begun to put away; the reader is
    told that `waiting_for` is still to be done. Whatever another exception the first one causes in
    a library that it happens to hit leaves here as KeyboardInterrupt, too. One that hits a
    finalizer is told to nobody by Python, so it is sent again. In a thread other than the main
    one, which alone may handle signals, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stopping = threading.Event()

    def stop(number, frame):
        if not stopping.is_set():
            stopping.set()
            raise KeyboardInterrupt
        print(f"Already stopping: waiting for {waiting_for}.", file=sys.stderr)

    def unraisable(met):
        if not (stopping.is_set() and isinstance(met.exc_value, KeyboardInterrupt)):
            hook(met)
            return
        stopping.clear()
        threading.Timer(_AGAIN, os.kill, (os.getpid(), signal.SIGINT)).start()

    hook, sys.unraisablehook = sys.unraisablehook, unraisable
    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    except Exception:
        if stopping.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
