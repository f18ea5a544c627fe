"""Pages as university INGRES filled them, and UNIX's cache of the last few, which counts them.

A page of 1024 bytes starts with 12 of its own, tuples of a fixed length follow from the front, and
a line table of two bytes for each tuple grows from the end. From that follow the sizes that section
1.5 of the memorandum prints: 28 tuples of 34 bytes on a page, or 5 of 200. What is asked for is how
many pages are touched, so what is on one is kept as values and not as bytes.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from pgrerun.lab.models.replacement import LRU

PAGE, _HEADER, _LINE = 1024, 12, 2  # bytes
CACHED = 64  # pages

Row = dict[str, Any]
"""A tuple: its values by attribute."""


def per_page(width: int) -> int:
    """Tuples of so many bytes that fit on a page."""
    return (PAGE - _HEADER) // (width + _LINE)


@dataclass
class Page:
    """Tuples, an empty one in the place of each that was deleted, and the number of the overflow
    page that follows, if there is one.
    """

    rows: list[Row]
    overflow: int | None = None


class Cache:
    """The pages of all relations that were used last; counts those that are touched, and those of
    them that have to be read.
    """

    def __init__(self) -> None:
        self.empty()

    def empty(self) -> None:
        """Start cold, and count from nothing."""
        self._pages = LRU(CACHED)
        self.touched = 0
        self.read = 0

    def touch(self, page: Hashable) -> None:
        """A page is asked for."""
        self.touched += 1
        self.read += not self._pages.kept([page])
        self._pages.use(page)

    def put(self, page: Hashable) -> None:
        """A page is written."""
        self._pages.use(page)


class File:
    """The pages of one relation, through the cache."""

    def __init__(self, cache: Cache):
        self.cache = cache
        self._pages: list[Page] = []

    def __len__(self) -> int:
        return len(self._pages)

    def read(self, number: int) -> Page:
        """A page by its number, to look at or to change."""
        self.cache.touch((self, number))
        return self._pages[number]

    def write(self, number: int) -> None:
        """Have a page back that was read and changed."""
        self.cache.put((self, number))

    def add(self, page: Page) -> int:
        """Write a page behind the last; its number."""
        self._pages.append(page)
        self.write(len(self) - 1)
        return len(self) - 1
