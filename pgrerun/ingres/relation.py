"""Heaps and indexed sequential (ISAM) relations over page files, and how they are read.

Tuples come one at a time as (page, offset): INGRES's GET. Which pages that touches follows from
the structure alone, so page counts are exact.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from pgrerun.errors import QueryError
from pgrerun.ingres.pages import NONE, Domain, Layout, Page, filled, following, lines

Found = tuple[bytes, int]
"""A page's bytes and where on it a tuple starts."""


class Heap:
    """Tuples in the order in which they were appended; found by reading all of them."""

    key: str = ""

    def __init__(self, file, layout: Layout):
        self.file, self.layout = file, layout

    @classmethod
    def build(cls, file, layout: Layout, tuples: Iterable[Sequence]) -> "Heap":
        """Fill pages one after another. A relation without tuples has one page."""
        pages = [Page(portion) for portion in filled(map(layout.pack, tuples), layout.per_page)] or [Page([])]
        for number, page in enumerate(pages):
            page.main = number + 1 if number + 1 < len(pages) else NONE
            file.write(number, page.pack())
        return cls(file, layout)

    @property
    def pages(self) -> int:
        """Pages of the relation, those of its directory included."""
        return self.file.pages

    def scan(self) -> Iterator[Found]:
        """Every tuple."""
        for number in range(self.file.pages):
            page = self.file.read(number, sequential=True)
            for offset in lines(page):
                yield page, offset


class Isam:
    """Main pages in the order of a key, a directory of each page's first key, and overflow pages chained to main pages.

    In the file: main pages, the directory with its root last, then overflow pages as inserts come. The directory
    is static, as INGRES's was: an insert that finds its main page full goes to that page's overflow chain.
    """

    def __init__(self, file, layout: Layout, key: str, main: int, levels: Sequence[tuple[int, int]]):
        self.file, self.layout, self.key = file, layout, key
        self.main = main
        self._levels = levels  # of the directory: first page and pages, root last
        self._domain, self._offset = layout.place(key)
        self._value = struct.Struct("<" + self._domain.code)
        self._fanout = Layout((self._domain,)).per_page

    @classmethod
    def build(cls, file, layout: Layout, key: str, tuples: Iterable[Sequence]) -> "Isam":
        """Fill main pages with the tuples, sorted by the key here.

        QueryError for a key that is text, or that repeats: the directory would lead to the last page of several.
        """
        domain, _ = layout.place(key)
        if domain.kind == "c":
            raise QueryError(f"The miniature keys a relation on numbers, and {key} is text.")
        position = [each.name for each in layout.domains].index(key)
        rows = sorted(tuples, key=lambda row: row[position])
        if len({row[position] for row in rows}) < len(rows):
            raise QueryError(f"Build the relation from tuples whose {key} differ, and insert those that repeat one.")
        portions = list(filled(map(layout.pack, rows), layout.per_page)) or [[]]
        for number, portion in enumerate(portions):
            file.write(number, Page(portion, main=number + 1 if number + 1 < len(portions) else NONE).pack())
        entries = Layout((Domain(key, domain.kind, domain.length),))
        first, firsts, levels = len(portions), [rows[i][position] for i in range(0, len(rows), layout.per_page)] or [0], []
        while True:
            level = [Page(portion).pack() for portion in filled((entries.pack((value,)) for value in firsts), entries.per_page)]
            for number, page in enumerate(level):
                file.write(first + number, page)
            levels.append((first, len(level)))
            if len(level) == 1:
                return cls(file, layout, key, len(portions), levels)
            first, firsts = first + len(level), firsts[:: entries.per_page]

    @property
    def pages(self) -> int:
        """Pages of the file: main, directory and overflow."""
        return self.file.pages

    @property
    def directory(self) -> int:
        """Pages of the directory."""
        return sum(pages for _, pages in self._levels)

    @property
    def overflow(self) -> int:
        """Overflow pages."""
        return self.file.pages - self.main - self.directory

    def insert(self, values: Sequence) -> None:
        """Append a tuple to the main page of its key, or where that is full to the page's overflow chain."""
        stored = self.layout.pack(values)
        number = self._main_page(self._value.unpack_from(stored, self._offset)[0])
        while True:
            page = self.file.read(number)
            main, overflow = following(page)
            kept = [page[offset : offset + self.layout.width] for offset in lines(page)]
            if len(kept) < self.layout.per_page:
                self.file.write(number, Page([*kept, stored], main, overflow).pack())
                return
            if overflow == NONE:
                new = self.file.pages
                self.file.write(number, Page(kept, main, new).pack())
                self.file.write(new, Page([stored], NONE, NONE).pack())
                return
            number = overflow

    def _main_page(self, value: float) -> int:
        """Down the directory: the last main page whose first key isn't above the value."""
        entry = 0
        for first, _ in reversed(self._levels):
            entry = entry * self._fanout + max(bisect_right(self._keys(self.file.read(first + entry)), value) - 1, 0)
        return entry

    def _keys(self, page: bytes) -> Sequence[float]:
        """The entries of a directory page; they fill it from the front without gaps."""
        places = list(lines(page))
        return struct.unpack_from(f"<{len(places)}{self._domain.code}", page, places[0])

    def _chain(self, number: int) -> Iterator[bytes]:
        """A main page and its overflow pages."""
        page = self.file.read(number, sequential=True)
        yield page
        while (number := following(page)[1]) != NONE:
            page = self.file.read(number)
            yield page

    def _between(self, first: int, last: int) -> Iterator[Found]:
        for number in range(first, last + 1):
            for page in self._chain(number):
                for offset in lines(page):
                    yield page, offset

    def scan(self) -> Iterator[Found]:
        """Every tuple: main pages in order, each with its overflow chain. The directory isn't read."""
        yield from self._between(0, self.main - 1)

    def lookup(self, value: float) -> Iterator[Found]:
        """The tuples of the main page, and its chain, where tuples with this key are; others among them."""
        number = self._main_page(value)
        yield from self._between(number, number)

    def range(self, low: float | None, high: float | None) -> Iterator[Found]:
        """The tuples of all main pages, and their chains, that may hold keys between the bounds."""
        first = 0 if low is None else self._main_page(low)
        last = self.main - 1 if high is None else self._main_page(high)
        yield from self._between(first, last)
