"""Heaps, hashed and indexed sequential (ISAM) relations over pages, their secondary indices, and
how they are read.

A relation is read page by page, INGRES's GET. Which pages that touches follows from the structure
alone, so page counts are exact.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from pgrerun.lab.ingres.pages import Cache, File, Page, Row, per_page

Place = tuple[int, int]
"""Of a tuple: the page's number, and which one on the page it is. It never moves."""
Found = Iterator[tuple[Place, Row]]
"""Tuples that may be wanted, read from their pages as one goes on."""
_PLACE = "tidp"  # the attribute of an index that holds its tuples' places, in four bytes


def portions(rows: Sequence[Row], size: int) -> list[list[Row]]:
    """The tuples of one page each."""
    return [list(rows[start : start + size]) for start in range(0, len(rows), size)]


class _Stored:
    """What all structures share.

    `lengths` are those of the attributes, in bytes; `key` is the attribute that determines a
    tuple's page, if one does; `main` are the pages in the file that aren't a directory's and none
    of overflow.
    """

    key: str = ""
    main: int
    ordered = False  # by the key, so that a range of it is found

    def __init__(self, cache: Cache, lengths: Mapping[str, int]):
        self.file = File(cache)
        self.lengths = lengths
        self.per_page = per_page(sum(lengths.values()))
        self.indices: dict[str, Secondary] = {}

    def scan(self) -> Found:
        """All tuples: main pages in order, each with its overflow chain. A directory isn't read."""
        return self._between(0, self.main - 1)

    def rows(self) -> Iterator[Row]:
        """The same without their places."""
        for _, row in self.scan():
            yield row

    def _between(self, first: int, last: int) -> Found:
        """The tuples of some main pages, and of their overflow chains."""
        for main in range(first, last + 1):
            number: int | None = main
            while number is not None:
                page = self.file.read(number)
                for place, row in enumerate(page.rows):
                    if row:
                        yield (number, place), row
                number = page.overflow

    def by(self, attribute: str) -> Any:
        """What finds tuples by the attribute: the relation itself, an index, or None."""
        return self if attribute == self.key else self.indices.get(attribute)

    def index(self, attribute: str) -> None:
        """Keep a secondary index on an attribute."""
        self.indices[attribute] = Secondary(self, attribute)

    def insert(self, row: Row) -> None:
        """Store a tuple, and enter it into the indices."""
        place = self._store(row)
        for attribute, index in self.indices.items():
            index.enter(row[attribute], place)

    def delete(self, place: Place) -> None:
        """Remove a tuple, from the indices as well."""
        number, at = place
        page = self.file.read(number)
        for attribute, index in self.indices.items():
            index.remove(page.rows[at][attribute], place)
        page.rows[at] = {}
        self.file.write(number)

    def replace(self, place: Place, row: Row) -> None:
        """Give a tuple other values, where it is if no key and no index knows of it, or else
        elsewhere.
        """
        number, at = place
        page = self.file.read(number)
        changed = {name for name, value in row.items() if page.rows[at][name] != value}
        if changed & {self.key, *self.indices}:
            self.delete(place)
            self.insert(row)
        elif changed:
            page.rows[at] = row
            self.file.write(number)

    def _store(self, row: Row) -> Place:
        raise NotImplementedError

    def _add(self, number: int, row: Row) -> Place | None:
        """Put a tuple onto a page, in the place of a deleted one or behind the last; None if it is
        full.
        """
        page = self.file.read(number)
        at = page.rows.index({}) if {} in page.rows else len(page.rows)
        if at == self.per_page:
            return None
        page.rows[at : at + 1] = [row]
        self.file.write(number)
        return number, at


class Heap(_Stored):
    """Tuples in the order in which they were appended; found by reading all of them."""

    def __init__(self, cache: Cache, lengths: Mapping[str, int], rows: Sequence[Row]):
        """Fills pages one after another. A relation without tuples has one page."""
        super().__init__(cache, lengths)
        for portion in portions(rows, self.per_page) or [[]]:
            self.file.add(Page(portion))
        self.main = len(self.file)

    def _store(self, row: Row) -> Place:
        """On the last page, or on a new one behind it."""
        last = self.main - 1
        if place := self._add(last, row):
            return place
        self.file.read(last)  # to write its successor onto it
        self.main += 1
        return self.file.add(Page([row])), 0


class Hash(_Stored):
    """Main pages, of which the remainder of a tuple's key determines its own.

    They are filled by a tenth, so that a lookup meets few other tuples.
    """

    def __init__(self, cache: Cache, lengths: Mapping[str, int], key: str, rows: Sequence[Row]):
        super().__init__(cache, lengths)
        self.key = key
        self.main = max(1, math.ceil(10 * len(rows) / self.per_page))
        buckets: list[list[Row]] = [[] for _ in range(self.main)]
        for row in rows:
            buckets[row[key] % self.main].append(row)
        assert max(map(len, buckets)) <= self.per_page, "no page is so full that it overflows"
        for bucket in buckets:
            self.file.add(Page(bucket))

    def lookup(self, value: int) -> Found:
        """The tuples of the page on which those with this key are."""
        number = value % self.main
        return self._between(number, number)


class Isam(_Stored):
    """Main pages in the order of a key, a directory of each page's first key, and overflow pages
    chained to main pages.

    In the file: main pages, the directory with its root last, then overflow pages as inserts come.
    The directory is static, as INGRES's was: an insert that finds its main page full goes to that
    page's overflow chain.
    """

    ordered = True

    def __init__(
        self,
        cache: Cache,
        lengths: Mapping[str, int],
        key: str,
        rows: Iterable[Row],
        repeats: bool = False,
    ):
        """Fills main pages with the tuples, sorted by the key here.

        repeats: a key may occur on several main pages, and a search begins one page earlier to find
        all.
        """
        super().__init__(cache, lengths)
        self.key = key
        self._repeats = repeats
        self._fanout = per_page(lengths[key])
        self._levels: list[int] = []  # of the directory: the first page of each, root last
        entries = self._fill(sorted(rows, key=itemgetter(key)), self.per_page)
        self.main = len(self.file)
        while not self._levels or len(entries) > 1:
            self._levels.append(len(self.file))
            entries = self._fill(entries, self._fanout)

    def _fill(self, rows: Sequence[Row], size: int) -> list[Row]:
        """Add pages of so many tuples, or of their keys; the first of each page."""
        pages = portions(rows, size)
        for portion in pages:
            self.file.add(Page(portion))
        return [portion[0] for portion in pages]

    def _main_page(self, value: int, bisect: Callable[..., int] = bisect_right) -> int:
        """Down the directory: the last main page whose first key isn't above the value (or, with
        `bisect_left`, is below it).
        """
        entry = 0
        for level in reversed(self._levels):
            keys = self.file.read(level + entry).rows
            below = bisect(keys, value, key=itemgetter(self.key)) - 1
            entry = entry * self._fanout + max(below, 0)
        return entry

    def lookup(self, value: int) -> Found:
        """The tuples of the main pages, and their chains, where those with this key are."""
        if self._repeats:
            return self.range(value, value)
        number = self._main_page(value)
        return self._between(number, number)

    def range(self, low: int | None, high: int | None) -> Found:
        """The tuples of all main pages, and their chains, that may hold keys between the bounds."""
        bisect = bisect_left if self._repeats else bisect_right
        first = 0 if low is None else self._main_page(low, bisect)
        last = self.main - 1 if high is None else self._main_page(high)
        return self._between(first, last)

    def _store(self, row: Row) -> Place:
        """On the main page of its key, or where that is full in the page's overflow chain."""
        number = self._main_page(row[self.key])
        while (place := self._add(number, row)) is None:
            page = self.file.read(number)
            if page.overflow is None:
                page.overflow = self.file.add(Page([row]))
                return page.overflow, 0
            number = page.overflow
        return place


class Secondary:
    """Finds tuples of a relation by another attribute than its key: an ISAM relation of the
    attribute and of places, in a file of its own.
    """

    ordered = True

    def __init__(self, relation: _Stored, attribute: str):
        self._relation = relation
        self._attribute = attribute
        lengths = {attribute: relation.lengths[attribute], _PLACE: 4}
        entries = (self._entry(row[attribute], place) for place, row in relation.scan())
        self.entries = Isam(relation.file.cache, lengths, attribute, entries, repeats=True)

    def _entry(self, value: int, place: Place) -> Row:
        return {self._attribute: value, _PLACE: place}

    def lookup(self, value: int) -> Found:
        """Every tuple with this value."""
        return self.range(value, value)

    def range(self, low: int | None, high: int | None) -> Found:
        """Every tuple between the bounds: one visit to a page for each."""
        for _, entry in self.entries.range(low, high):
            value = entry[self._attribute]
            if (low is None or value >= low) and (high is None or value <= high):
                number, at = entry[_PLACE]
                yield (number, at), self._relation.file.read(number).rows[at]

    def enter(self, value: int, place: Place) -> None:
        """A tuple has been stored."""
        self.entries.insert(self._entry(value, place))

    def remove(self, value: int, place: Place) -> None:
        """A tuple is to be deleted."""
        wanted = self._entry(value, place)
        entry = next(at for at, row in self.entries.range(value, value) if row == wanted)
        self.entries.delete(entry)


Relation = Heap | Hash | Isam
"""Any structure."""
