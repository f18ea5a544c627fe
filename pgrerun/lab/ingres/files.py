"""Where pages live: a file for each relation, as UNIX gives it, read a page at a time.

In front of it stands a cache of a few pages with the least recently used thrown out, which stands
for UNIX's own buffers: what it can't serve is counted as a read. Close what you open.
"""

import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgrerun.errors import RerunError
from pgrerun.lab.ingres.pages import PAGE


@dataclass
class Reads:
    """What was asked for: pages touched, and requests of the disk."""

    touched: int = 0
    requests: int = 0


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
        self.reads = Reads()


class UnixFile:
    """A file of a relation's own, read and written page by page."""

    def __init__(self, path: Path, cache: Cache):
        self.cache = cache
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.pages = os.fstat(self._descriptor).st_size // PAGE

    def read(self, number: int) -> bytes:
        """A page by its number. RerunError if the file is shorter."""
        key = (self._path, number)
        if (page := self.cache.get(key)) is None:
            page = os.pread(self._descriptor, PAGE, number * PAGE)
            if len(page) != PAGE:
                raise RerunError(
                    f"Page {number} of {self._path.name} is missing: the file is damaged. Build the"
                    " relation again."
                )
            self.cache.reads.requests += 1
            self.cache.put(key, page)
        return page

    def write(self, number: int, page: bytes) -> None:
        """Write a page, at the end or in place."""
        os.pwrite(self._descriptor, page, number * PAGE)
        self.pages = max(self.pages, number + 1)
        self.cache.put((self._path, number), page)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
