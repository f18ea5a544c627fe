"""How long a trace of requests takes on a disk of 1981, with UNIX's reading ahead or without.

One process computes and waits for one disk, which serves a request at a time and takes the same
time for each: UNIX placed the blocks of a file anywhere (1981 memorandum, 1.3), so that every
request is a seek. What comes out is simulated.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from scipy.optimize import brentq


class Request(NamedTuple):
    """What is asked of the disk: so many pages of a file from `first` on, after `touched` pages
    were worked on.
    """

    touched: int
    file: Hashable
    first: int
    pages: int = 1


def response(
    trace: Iterable[Request],
    touched: int,
    computing: float,
    service: Callable[[int], float],
    *,
    ahead: bool,
) -> float:
    """Seconds until a command has its last page and has worked on it.

    touched, computing: pages that it works on, and seconds that it computes on all of them, as much
    on each. service: seconds of a request for so many pages. ahead: after two pages of a file in a
    row the next one is fetched while the process computes; a page of another place in between ends
    the row (4.3).
    """
    now = disk_free = 0.0
    done, each = 0, computing / max(touched, 1)
    fetched: dict[tuple[Hashable, int], float] = {}
    last: dict[Hashable, int] = {}
    for request in trace:
        now += each * (request.touched - done)
        done = request.touched
        key = (request.file, request.first)
        if key in fetched:
            now = max(now, fetched.pop(key))
        else:
            now = disk_free = max(now, disk_free) + service(request.pages)
        if ahead and last.get(request.file) == request.first - 1:
            disk_free = max(now, disk_free) + service(1)
            fetched[request.file, request.first + 1] = disk_free
        last[request.file] = request.first
    return now + each * (touched - done)


def calibrated(seconds: Callable[[float], float], printed: float) -> float:
    """The service time (s) with which `seconds`, growing with it, gives a printed response time.

    ValueError if none between 1 microsecond and 1 second does.
    """
    return float(brentq(lambda service: seconds(service) - printed, 1e-6, 1.0))
