"""Where pages live: one file of a relation as UNIX gives it, or extents on one preallocated file.

Both are real files. `UnixFile` reads a page at a time; `Extents` reads a track of 16 pages at a
time where the reader goes through a relation in order, as FS-INGRES did (4.1). In front of either
stands a cache of a few pages with the least recently used thrown out, which stands for UNIX's own
buffers: what it can't serve is counted as a read. Close what you open; both are context managers.
"""

import os
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from pgrerun.errors import RerunError
from pgrerun.lab.ingres.pages import PAGE

TRACK = 16  # pages
EXTENTS = 8  # at most, of a relation


class Request(NamedTuple):
    """One request to the disk: pages touched until then, the file, its first page, and how many."""

    touched: int
    file: Path
    first: int
    pages: int


@dataclass
class Reads:
    """What was asked for: pages touched, requests of the disk in their order, pages written."""

    touched: int = 0
    written: int = 0
    trace: list[Request] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many requests there were."""
        return len(self.trace)

    @property
    def pages(self) -> int:
        """How many pages they fetched."""
        return sum(request.pages for request in self.trace)

    def request(self, file: Path, first: int, pages: int = 1) -> None:
        """Note a request of the disk."""
        self.trace.append(Request(self.touched, file, first, pages))

    def clear(self) -> None:
        """Count from here on."""
        self.touched = self.written = 0
        self.trace = []


class Cache:
    """The last `size` pages that were used, of all relations of a data base; counts what it has to
    read.
    """

    def __init__(self, size: int = 64):
        self.size, self.reads = size, Reads()
        self._pages: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> bytes | None:
        """A page that is here, now the most recently used one; None if it isn't."""
        self.reads.touched += 1
        if key in self._pages:
            self._pages.move_to_end(key)
            return self._pages[key]
        return None

    def put(self, key: tuple[Any, ...], page: bytes) -> None:
        """Keep a page; the least recently used one has to go."""
        self._pages[key] = page
        self._pages.move_to_end(key)
        while len(self._pages) > self.size:
            self._pages.popitem(last=False)

    def empty(self) -> None:
        """Start cold."""
        self._pages.clear()
        self.reads.clear()


def _evict(descriptor: int) -> None:
    os.fsync(descriptor)  # only what is on the disk can be forgotten
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


class PageFile:
    """Where a relation's pages are kept."""

    def __init__(self, cache: Cache):
        self.cache, self.pages = cache, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        raise NotImplementedError

    def evict(self) -> None:
        """Write the file out and have the operating system's cache forget it."""
        raise NotImplementedError

    def read(self, number: int, sequential: bool = False) -> bytes:
        """A page by its number."""
        raise NotImplementedError

    def write(self, number: int, page: bytes) -> None:
        """Write a page, at the end or in place."""
        raise NotImplementedError


class UnixFile(PageFile):
    """A file of a relation's own, read and written page by page.

    `read_ahead`: let the operating system fetch what it expects to be asked for next.
    """

    def __init__(self, path: Path, cache: Cache, read_ahead: bool = True):
        super().__init__(cache)
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.pages = os.fstat(self._descriptor).st_size // PAGE
        if not read_ahead:
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def evict(self) -> None:
        """Write the file out and have the operating system's cache forget it."""
        _evict(self._descriptor)

    def read(self, number: int, sequential: bool = False) -> bytes:
        """A page by its number. RerunError if the file is shorter."""
        key = (self._path, number)
        if (page := self.cache.get(key)) is None:
            page = os.pread(self._descriptor, PAGE, number * PAGE)
            if len(page) != PAGE:
                raise RerunError(
                    f"Page {number} of {self._path.name} is missing: the file is damaged. Build the"
                    " relation again."
                )
            self.cache.reads.request(self._path, number)
            self.cache.put(key, page)
        return page

    def write(self, number: int, page: bytes) -> None:
        """Write a page, at the end or in place."""
        os.pwrite(self._descriptor, page, number * PAGE)
        self.pages = max(self.pages, number + 1)
        self.cache.reads.written += 1
        self.cache.put((self._path, number), page)

    def close(self) -> None:
        os.close(self._descriptor)


class Disk:
    """A "raw disk": one preallocated file without read-ahead, given out in extents of whole tracks
    by a bit map in memory.
    """

    def __init__(self, path: Path, tracks: int):
        self.path = path
        self._free = [True] * tracks
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.posix_fallocate(self.descriptor, 0, tracks * TRACK * PAGE)
        os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def __enter__(self) -> "Disk":
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.descriptor)

    def allocate(self, tracks: int) -> int:
        """The first track of the first free run of so many. RerunError if there is none."""
        run = 0
        for track, free in enumerate(self._free):
            run = run + 1 if free else 0
            if run == tracks:
                self._free[track - tracks + 1 : track + 1] = [False] * tracks
                return track - tracks + 1
        raise RerunError(
            f"{self.path.name} has no {tracks} free tracks in a row. Make the disk larger."
        )

    def release(self, first: int, tracks: int) -> None:
        """Give an extent back."""
        self._free[first : first + tracks] = [True] * tracks


class Extents(PageFile):
    """A relation in up to 8 extents of a `Disk`, each twice as long as the one before, the first
    one track.
    """

    def __init__(self, disk: Disk, cache: Cache):
        super().__init__(cache)
        self._disk = disk
        self._extents: list[tuple[int, int]] = []  # first track, tracks

    def _place(self, number: int) -> int:
        """Where on the disk a page is, in pages."""
        track, page = divmod(number, TRACK)
        for first, tracks in self._extents:
            if track < tracks:
                return (first + track) * TRACK + page
            track -= tracks
        raise RerunError(f"Page {number} is beyond the relation's extents.")

    def read(self, number: int, sequential: bool = False) -> bytes:
        """A page by its number; with `sequential`, its whole track comes along."""
        key = (self._disk.path, self._place(number))
        if (page := self.cache.get(key)) is None:
            first = number - number % TRACK if sequential else number
            pages = TRACK if sequential else 1
            start = self._place(first)
            track = os.pread(self._disk.descriptor, pages * PAGE, start * PAGE)
            self.cache.reads.request(self._disk.path, start, pages)
            for place in range(pages):
                self.cache.put(
                    (self._disk.path, start + place), track[place * PAGE : (place + 1) * PAGE]
                )
            page = track[(number - first) * PAGE : (number - first + 1) * PAGE]
        return page

    def write(self, number: int, page: bytes) -> None:
        """Write a page, in place or behind the last; takes another extent when the last is full."""
        while number >= sum(tracks for _, tracks in self._extents) * TRACK:
            if len(self._extents) == EXTENTS:
                raise RerunError(f"A relation has at most {EXTENTS} extents.")
            tracks = 2 ** len(self._extents)
            self._extents.append((self._disk.allocate(tracks), tracks))
        place = self._place(number)
        os.pwrite(self._disk.descriptor, page, place * PAGE)
        self.pages = max(self.pages, number + 1)
        self.cache.reads.written += 1
        self.cache.put((self._disk.path, place), page)

    def evict(self) -> None:
        """Write the disk out and have the operating system's cache forget it."""
        _evict(self._disk.descriptor)

    def close(self) -> None:
        """Give the extents back; the disk stays open."""
        for extent in self._extents:
            self._disk.release(*extent)
        self._extents.clear()
