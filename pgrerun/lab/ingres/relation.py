"""Heaps, hashed and indexed sequential (ISAM) relations over page files, their secondary indices,
and how they are read.

A relation is read page by page, INGRES's GET: each page comes with the places on it where tuples
start that may be wanted. Which pages that touches follows from the structure alone, so page counts
are exact.
"""

import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pgrerun.errors import QueryError
from pgrerun.lab.ingres.files import UnixFile
from pgrerun.lab.ingres.pages import (
    NONE,
    PAGE,
    Domain,
    Layout,
    Page,
    added,
    filled,
    following,
    lines,
    linked,
    packed,
    removed,
    rewritten,
)

Bisect = Callable[..., int]
Found = tuple[int, bytes, Sequence[int]]
"""A page's number, its bytes, and where on it the tuples start that may be wanted."""
Place = tuple[int, int]
"""Of a tuple: the page's number, and where on the page it starts. It never moves."""


class _Stored:
    """What all structures share.

    `key` is the attribute that determines a tuple's page, if one does.
    """

    key: str = ""
    ordered = False  # by the key, so that a range of it is found

    def __init__(self, file: UnixFile, layout: Layout):
        self.file, self.layout = file, layout
        self.indices: dict[str, Secondary] = {}

    @property
    def pages(self) -> int:
        """Pages of the relation, those of a directory and of overflow included."""
        return self.file.pages

    def close(self) -> None:
        """Close its file, and those of its indices."""
        for file in (self.file, *(index.entries.file for index in self.indices.values())):
            file.close()

    def scan(self) -> Iterator[Found]:
        """All pages with tuples."""
        raise NotImplementedError

    def lookup(self, value: float) -> Iterator[Found]:
        """The pages that may have tuples with this value of the key."""
        raise NotImplementedError

    def range(self, low: float | None, high: float | None) -> Iterator[Found]:
        """The pages that may have tuples with a value of the key between the bounds."""
        raise NotImplementedError

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The values of every tuple."""
        for _, page, offsets in self.scan():
            for offset in offsets:
                yield self.layout.unpack(page, offset)

    def by(self, attribute: str) -> "_Stored | Secondary | None":
        """What finds tuples by the attribute: the relation itself, an index, or nothing."""
        return self if attribute == self.key else self.indices.get(attribute)

    def index(self, file: UnixFile, attribute: str) -> None:
        """Keep a secondary index: a relation of the attribute and of places, in ISAM, in a file of
        its own.
        """
        domain, _ = self.layout.place(attribute)
        number = [each.name for each in self.layout.domains].index(attribute)
        entries = (
            (self.layout.unpack(page, offset)[number], page_number * PAGE + offset)
            for page_number, page, offsets in self.scan()
            for offset in offsets
        )
        self.indices[attribute] = Secondary(
            self,
            Isam.build(
                file, Layout((domain, Domain("tidp", "i", 4))), attribute, entries, repeats=True
            ),
        )

    def insert(self, values: Sequence[Any]) -> None:
        """Store a tuple, and enter it into the indices."""
        place = self._store(self.layout.pack(values))
        for attribute, index in self.indices.items():
            index.enter(dict(zip(self._names, values))[attribute], place)

    def delete(self, place: Place) -> None:
        """Remove a tuple, from the indices as well."""
        number, offset = place
        page = self.file.read(number)
        values = dict(zip(self._names, self.layout.unpack(page, offset)))
        for attribute, index in self.indices.items():
            index.remove(values[attribute], place)
        self.file.write(number, removed(page, offset))

    def replace(self, place: Place, values: Sequence[Any]) -> None:
        """Give a tuple other values, where it is if no key and no index knows of it, or else
        elsewhere.
        """
        number, offset = place
        page = self.file.read(number)
        changed = {
            name
            for name, old, new in zip(self._names, self.layout.unpack(page, offset), values)
            if old != new
        }
        if changed & {self.key, *self.indices}:
            self.delete(place)
            self.insert(values)
        elif changed:
            self.file.write(number, rewritten(page, offset, self.layout.pack(values)))

    @property
    def _names(self) -> list[str]:
        return [domain.name for domain in self.layout.domains]

    def _store(self, stored: bytes) -> Place:
        raise NotImplementedError

    def _add(self, number: int, stored: bytes) -> Place | None:
        """Add a tuple to this page, if it has room."""
        if (more := added(self.file.read(number), stored)) is None:
            return None
        self.file.write(number, more[0])
        return number, more[1]

    def _new(self, stored: bytes) -> Place:
        """A tuple on a page of its own behind the last."""
        number, page = self.file.pages, Page([stored]).pack()
        self.file.write(number, page)
        return number, lines(page)[0]


class Heap(_Stored):
    """Tuples in the order in which they were appended; found by reading all of them."""

    @classmethod
    def build(cls, file: UnixFile, layout: Layout, tuples: Iterable[Sequence[Any]]) -> "Heap":
        """Fill pages one after another. A relation without tuples has one page."""
        pages = [
            Page(portion) for portion in filled(map(layout.pack, tuples), layout.per_page)
        ] or [Page([])]
        for number, page in enumerate(pages):
            page.main = number + 1 if number + 1 < len(pages) else NONE
            file.write(number, page.pack())
        return cls(file, layout)

    def scan(self) -> Iterator[Found]:
        for number in range(self.file.pages):
            page = self.file.read(number)
            yield number, page, lines(page)

    def _store(self, stored: bytes) -> Place:
        """On the last page, or on a new one behind it."""
        last = self.file.pages - 1
        if place := self._add(last, stored):
            return place
        self.file.write(last, linked(self.file.read(last), main=last + 1))
        return self._new(stored)


class _Keyed(_Stored):
    """A relation of `main` pages that are found by a key, each with a chain of overflow pages."""

    def __init__(self, file: UnixFile, layout: Layout, key: str, main: int):
        super().__init__(file, layout)
        self.key, self.main = key, main
        self._domain, self._offset = layout.place(key)
        self._value = struct.Struct("<" + self._domain.code)

    @property
    def directory(self) -> int:
        """Pages of the directory."""
        return 0

    @property
    def overflow(self) -> int:
        """Overflow pages."""
        return self.file.pages - self.main - self.directory

    def scan(self) -> Iterator[Found]:
        """Main pages in order, each with its overflow chain. A directory isn't read."""
        return self._between(0, self.main - 1)

    def lookup(self, value: float) -> Iterator[Found]:
        """The main page, and its chain, where tuples with this key are; others among them."""
        number = self._main_page(value)
        return self._between(number, number)

    def _main_page(self, value: float) -> int:
        raise NotImplementedError

    def _between(self, first: int, last: int) -> Iterator[Found]:
        for main in range(first, last + 1):
            number, page = main, self.file.read(main)
            yield number, page, lines(page)
            while (number := following(page)[1]) != NONE:
                page = self.file.read(number)
                yield number, page, lines(page)

    def _store(self, stored: bytes) -> Place:
        """On the main page of its key, or where that is full in the page's overflow chain."""
        number = self._main_page(self._value.unpack_from(stored, self._offset)[0])
        while (place := self._add(number, stored)) is None:
            page = self.file.read(number)
            if (overflow := following(page)[1]) == NONE:
                self.file.write(number, linked(page, overflow=self.file.pages))
                return self._new(stored)
            number = overflow
        return place


def _number(layout: Layout, key: str) -> int:
    """Which attribute is the key. QueryError if it is text."""
    if layout.place(key)[0].kind == "c":
        raise QueryError(f"The miniature keys a relation on numbers, and {key} is text.")
    return [each.name for each in layout.domains].index(key)


class Hash(_Keyed):
    """A fixed number of main pages, the one of a tuple determined by its key, and overflow pages
    chained to them.

    An integer's page is its remainder, so that keys without gaps fill all pages alike; a float's
    goes by a checksum.
    """

    @classmethod
    def build(
        cls,
        file: UnixFile,
        layout: Layout,
        key: str,
        tuples: Iterable[Sequence[Any]],
        filling: float = 1.0,
    ) -> "Hash":
        """So many main pages that tuples, spread evenly, fill this part of them.

        QueryError for a key that is text.
        """
        number, rows = _number(layout, key), list(tuples)
        main = max(1, -int(-len(rows) // (layout.per_page * filling)))
        relation = cls(file, layout, key, main)
        buckets: list[list[bytes]] = [[] for _ in range(main)]
        for row in rows:
            buckets[relation._main_page(row[number])].append(layout.pack(row))
        chains = [list(filled(bucket, layout.per_page)) or [[]] for bucket in buckets]
        free = main
        for bucket, chain in enumerate(chains):
            places = [bucket, *range(free, free + len(chain) - 1)]
            free += len(chain) - 1
            for place, portion, overflow in zip(places, chain, [*places[1:], NONE]):
                file.write(place, Page(portion, overflow=overflow).pack())
        return relation

    def _main_page(self, value: float) -> int:
        if self._domain.kind == "i":  # what is no integer no tuple has, and any page will do
            return int(value) % self.main
        return zlib.crc32(self._value.pack(value)) % self.main


class Isam(_Keyed):
    """Main pages in the order of a key, a directory of each page's first key, and overflow pages
    chained to main pages.

    In the file: main pages, the directory with its root last, then overflow pages as inserts come.
    The directory is static, as INGRES's was: an insert that finds its main page full goes to that
    page's overflow chain.
    """

    ordered = True

    def __init__(
        self,
        file: UnixFile,
        layout: Layout,
        key: str,
        main: int,
        levels: Sequence[tuple[int, int]],
        repeats: bool = False,
    ):
        super().__init__(file, layout, key, main)
        self._levels = levels  # of the directory: first page and pages, root last
        self._repeats = repeats
        self._fanout = Layout((layout.place(key)[0],)).per_page

    @classmethod
    def build(
        cls,
        file: UnixFile,
        layout: Layout,
        key: str,
        tuples: Iterable[Sequence[Any]],
        repeats: bool = False,
    ) -> "Isam":
        """Fill main pages with the tuples, sorted by the key here.

        repeats: a key may occur on several main pages, and a search begins one page earlier to find
        all. QueryError for a key that is text, or that occurs more than once without `repeats`.
        """
        position = _number(layout, key)
        rows = sorted(tuples, key=lambda row: row[position])
        if not repeats and len({row[position] for row in rows}) < len(rows):
            raise QueryError(
                f"Build the relation from tuples whose {key} differ, and insert those that repeat"
                " one."
            )
        portions = list(filled(map(layout.pack, rows), layout.per_page)) or [[]]
        for number, portion in enumerate(portions):
            file.write(
                number,
                Page(portion, main=number + 1 if number + 1 < len(portions) else NONE).pack(),
            )
        entries = Layout((layout.place(key)[0],))
        first, firsts, levels = (
            len(portions),
            [rows[i][position] for i in range(0, len(rows), layout.per_page)] or [0],
            [],
        )
        while True:
            level = [
                Page(portion).pack()
                for portion in filled(
                    (entries.pack((value,)) for value in firsts), entries.per_page
                )
            ]
            for number, page in enumerate(level):
                file.write(first + number, page)
            levels.append((first, len(level)))
            if len(level) == 1:
                return cls(file, layout, key, len(portions), levels, repeats)
            first, firsts = first + len(level), firsts[:: entries.per_page]

    @property
    def directory(self) -> int:
        return sum(pages for _, pages in self._levels)

    def _main_page(self, value: float, bisect: Bisect = bisect_right) -> int:
        """Down the directory: the last main page whose first key isn't above the value (or, with
        `bisect_left`, is below it).
        """
        entry = 0
        for first, _ in reversed(self._levels):
            entry = entry * self._fanout + self._search(
                self.file.read(first + entry), value, bisect
            )
        return entry

    def _search(self, page: bytes, value: float, bisect: Bisect) -> int:
        """Which entry of a directory page leads to the value: only those that are compared are
        fetched.
        """
        fetch = self._value.unpack_from
        entry: int = max(
            bisect(packed(page, self._value.size), value, key=lambda place: fetch(page, place)[0])
            - 1,
            0,
        )
        return entry

    def lookup(self, value: float) -> Iterator[Found]:
        return self.range(value, value) if self._repeats else super().lookup(value)

    def range(self, low: float | None, high: float | None) -> Iterator[Found]:
        """All main pages, and their chains, that may hold keys between the bounds."""
        first = (
            0
            if low is None
            else self._main_page(low, bisect_left if self._repeats else bisect_right)
        )
        last = self.main - 1 if high is None else self._main_page(high)
        return self._between(first, last)


class Secondary:
    """Finds tuples of a relation by another attribute than its key; `entries` holds the attribute
    and each tuple's place.
    """

    ordered = True

    def __init__(self, relation: _Stored, entries: Isam):
        self._relation, self.entries = relation, entries

    def lookup(self, value: float) -> Iterator[Found]:
        """Page and place of every tuple with this value."""
        return self.range(value, value)

    def range(self, low: float | None, high: float | None) -> Iterator[Found]:
        """Page and place of every tuple between the bounds: one visit to a page for each."""
        for value, (number, offset), _ in self._entered(low, high):
            if (low is None or value >= low) and (high is None or value <= high):
                yield number, self._relation.file.read(number), (offset,)

    def _entered(
        self, low: float | None, high: float | None
    ) -> Iterator[tuple[float, Place, Place]]:
        """Of the entries that may be between the bounds: value, tuple's place, entry's place."""
        for number, page, offsets in self.entries.range(low, high):
            for offset in offsets:
                value, tidp = self.entries.layout.unpack(page, offset)
                yield value, divmod(tidp, PAGE), (number, offset)

    def enter(self, value: float, place: Place) -> None:
        """A tuple has been stored."""
        self.entries.insert((value, place[0] * PAGE + place[1]))

    def remove(self, value: float, place: Place) -> None:
        """A tuple is to be deleted."""
        entry = next(
            entry
            for found, entered, entry in self._entered(value, value)
            if found == value and entered == place
        )
        self.entries.delete(entry)
