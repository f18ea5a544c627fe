"""A disk that clusters and programs are started on, and that can be slowed while they run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pgrerun.errors import CannotMeasure
from pgrerun.lab.disk import library
from pgrerun.lab.server.private import Closing, PrivateDirectory, account, base_directory

PAGE = 8192
MOST = 65536 * PAGE  # `PLACES` in disk.c
KINDS = ("read", "write", "flush")
_NANO = 1_000_000_000
_TALLY = ("requests", "bytes", "busy", "queued", "late")

# `struct disk` in disk.c; times in nanoseconds
_LAYOUT = np.dtype(
    [
        ("lock", "V64"),
        ("serving", "i8"),
        ("mean", "i8", len(KINDS)),
        *[(name, "i8") for name in ("drawn", "seed", "offset", "early", "blocks", "ahead")],
        ("only", "S128"),
        ("flushed", "S128"),
        ("gathering", "S128"),
        *[(name, "i8") for name in ("attached", "free_at", "draws")],
        ("tally", [(name, "i8") for name in _TALLY], len(KINDS)),
        ("memory", "V2359312"),
    ]
)


@dataclass(frozen=True)
class Disk:
    """Seconds that a disk takes for a read, a write and a flush; it serves one at a time.

    read, write, flush  0 passes the disk by, and waits for nobody
    drawn               times are drawn: exponential, with those as means
    seed                of the draws
    only                only files whose path below the data directory begins so ("base/")
    flushed             flushes of such files alone
    offset              only requests at this place (bytes) of a file
    memory              bytes beside it, as of a kernel's: pages of relations that were used last
                        lie there, of all before as many as fit. What is there is read at once, and
                        what is written stays there until its place is needed: then the disk writes
                        it, and nobody waits. All else (catalogs, WAL) costs flushes alone
    ahead, gathering    of the processes whose title has this, so many reads and so many writes are
                        served as one: as a kernel reads ahead for who goes through a file, and
                        gathers what he writes
    """

    read: float = 0.0
    write: float = 0.0
    flush: float = 0.0
    drawn: bool = False
    seed: int = 0
    only: str = ""
    flushed: str = ""
    offset: int | None = None
    memory: int = 0
    ahead: int = 1
    gathering: str = ""

    def __post_init__(self) -> None:
        if min(self.read, self.write, self.flush) < 0:
            raise ValueError("a disk takes no negative time")
        if not 0 <= self.memory <= MOST:
            raise ValueError(f"memory beside a disk has {MOST} bytes at most")

    @property
    def words(self) -> str:
        """How it differs from the machine's own: "disk slowed to 40 requests/s". Empty if not."""
        times = {"reads": self.read, "writes": self.write, "flushes": self.flush}
        if self.read and len(set(times.values())) == 1:
            times = {"requests": self.read}
        rates = [f"{_per_second(taken)} {kind}/s" for kind, taken in times.items() if taken]
        place = f" of {self.only.strip('/')}" if self.only else ""
        beside = f" beside {self.memory / 2**20:.3g} MB of memory" if self.memory else ""
        return f"disk slowed to {' and '.join(rates)}{place}{beside}" if rates else ""


def _per_second(seconds: float) -> str:
    """How often something of so many seconds fits into one."""
    return f"{1 / seconds:,.0f}" if seconds <= 0.01 else f"{1 / seconds:.3g}"


@dataclass(frozen=True)
class Requests:
    """Requests of one kind, or of all: how many, their bytes, and seconds of the disk's time.

    busy is what the disk worked for them, queued what they stood behind others. late counts those
    that the machine's own disk took longer for than this one. What its memory answers, or comes
    along with another request, isn't one.
    """

    requests: int = 0
    bytes: int = 0
    busy: float = 0.0
    queued: float = 0.0
    late: int = 0

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(
            self.requests + other.requests,
            self.bytes + other.bytes,
            self.busy + other.busy,
            self.queued + other.queued,
            self.late + other.late,
        )


@dataclass(frozen=True)
class Counts:
    """What was asked of a disk, by kind."""

    reads: Requests
    writes: Requests
    flushes: Requests

    @property
    def all(self) -> Requests:
        return self.reads + self.writes + self.flushes


class Serving:
    """One stretch of time in which a disk was slow."""

    def __init__(self, slow: "Slowed"):
        self._slow = slow
        self._before, self._after = slow._tally(), None

    def end(self) -> None:
        self._after = self._slow._tally()

    def counts(self) -> Counts:
        """Requests since it began: until now, or until it ended."""
        change = (self._slow._tally() if self._after is None else self._after) - self._before
        kinds = [
            Requests(requests, bytes, busy / _NANO, queued / _NANO, late)
            for requests, bytes, busy, queued, late in change.tolist()
        ]
        return Counts(*kinds)


_told: list[set[str]] = []  # a set for each `told` that is open
_serving: list[str] = []


@contextmanager
def told() -> Iterator[set[str]]:
    """The words (`Disk.words`) of every disk that is slow at any time of the block."""
    words = set(_serving)
    _told.append(words)
    try:
        yield words
    finally:
        _told.remove(words)


class Slowed(Closing):
    """A disk that processes are started on, as fast as the machine's until `serving` slows it.

    `Cluster(disk=...)` starts a server on it, `environment` any program. CannotMeasure without a
    C compiler. A context manager that removes what it made; processes that were started on it
    keep it as it was, fast.
    """

    def __init__(self) -> None:
        self._library = library.compiled()
        self._home = PrivateDirectory(base_directory(), account())
        path = self._home.path / "disk"
        state = np.memmap(path, _LAYOUT, "w+", shape=(1,))
        if who := account():
            os.chown(path, who.pw_uid, who.pw_gid)
        path.chmod(0o600)
        if library.functions().disk_size() != _LAYOUT.itemsize:
            raise CannotMeasure("C compiler", "its numbers have other sizes than ours")
        self._state: Any = state[0]
        self._address: int = state.ctypes.data
        self._path = path
        self._state["offset"], self._state["early"] = -1, library.lateness()
        library.functions().disk_make(self._address)

    def close(self) -> None:
        self._state["serving"] = 0
        self._home.close()

    def environment(self, directory: Path) -> dict[str, str]:
        """Environment variables that put a program's files below `directory` on this disk."""
        before = os.environ.get("LD_PRELOAD")
        return {
            "LD_PRELOAD": " ".join(filter(None, [str(self._library), before])),
            "PGRERUN_DISK": str(self._path),
            "PGRERUN_DISK_FILES": str(directory.resolve()),
        }

    @contextmanager
    def serving(self, disk: Disk) -> Iterator[Serving]:
        """Be as slow as `disk` for the length of a block, for whoever was started on it.

        CannotMeasure at its end if nobody was by then, as programs that are linked statically take
        no library.
        """
        self.set(disk)
        stretch = Serving(self)
        words = [disk.words] if disk.words else []  # one at full speed is the machine's own
        for telling in _told:
            telling.update(words)
        _serving.extend(words)
        self._state["serving"] = 1
        try:
            yield stretch
        finally:
            self._state["serving"] = 0
            stretch.end()
            for word in words:
                _serving.remove(word)
        if not self._state["attached"]:
            raise CannotMeasure(
                "C compiler", "no program could be started with the library that slows its disk"
            )

    def set(self, disk: Disk) -> None:
        """Be idle as `disk`, with no draw made. ValueError while it serves."""
        if self._state["serving"]:
            raise ValueError("a disk is slowed once at a time")
        state = self._state
        state["mean"] = [round(_NANO * taken) for taken in (disk.read, disk.write, disk.flush)]
        state["drawn"], state["seed"] = disk.drawn, disk.seed
        state["draws"] = state["free_at"] = 0
        state["offset"] = -1 if disk.offset is None else disk.offset
        state["only"], state["flushed"] = disk.only.encode(), disk.flushed.encode()
        state["blocks"], state["ahead"] = disk.memory // PAGE, disk.ahead
        state["gathering"] = disk.gathering.encode()
        library.functions().disk_forget(self._address)

    def serve(self, kind: str, now: float, size: int = 0) -> float:
        """When it would be done with a request that arrives at `now`, by a clock of the caller's.

        Seconds. The request is booked and counted, and nobody waits. No later call may have an
        earlier `now`: requests are served as they come. kind: one of KINDS.
        """
        done: int = library.functions().disk_serve(
            self._address, KINDS.index(kind), size, round(now * _NANO)
        )
        return done / _NANO if done else now

    def _tally(self) -> Any:
        """Requests so far: a row for each kind, a column for each of _TALLY."""
        return np.array(self._state["tally"].tolist(), dtype=np.int64)
