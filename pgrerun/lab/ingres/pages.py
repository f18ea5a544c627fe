"""Tuples and pages as university INGRES stored them: fixed-length tuples on pages of 1024 bytes.

A page starts with 12 bytes (its main and its overflow successor, counts), tuples follow from the
front, and a line table of two bytes for each tuple grows from the end. From that follow the
sizes that section 1.5 of the memorandum prints: 28 tuples of 34 bytes on a page, or 5 of 200.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pgrerun.errors import QueryError

PAGE = 1024
_HEADER = struct.Struct("<iihh")  # next main page, overflow page, tuples, end of the tuples
_LINE = struct.Struct("<h")
NONE = 0  # no page follows: page 0 never follows another

_CODES = {("i", 1): "b", ("i", 2): "h", ("i", 4): "i", ("f", 4): "f", ("f", 8): "d"}


@dataclass(frozen=True)
class Domain:
    """An attribute of a relation: kind "i", "f" or "c" (integer, float, characters) and length in
    bytes.
    """

    name: str
    kind: str
    length: int

    @property
    def code(self) -> str:
        """Its format for `struct`."""
        return f"{self.length}s" if self.kind == "c" else _CODES[self.kind, self.length]

    @property
    def empty(self) -> object:
        """What a tuple holds where nothing is given: a zero or blanks."""
        return "" if self.kind == "c" else 0


@dataclass(frozen=True)
class Layout:
    """The attributes of a relation, in the order in which a tuple stores them."""

    domains: tuple[Domain, ...]

    @cached_property
    def _struct(self) -> struct.Struct:
        return struct.Struct("<" + "".join(domain.code for domain in self.domains))

    @cached_property
    def _places(self) -> dict[str, tuple[Domain, int]]:
        offsets = [
            sum(domain.length for domain in self.domains[:number])
            for number in range(len(self.domains))
        ]
        return {domain.name: (domain, offset) for domain, offset in zip(self.domains, offsets)}

    @property
    def width(self) -> int:
        """Bytes of a tuple."""
        return self._struct.size

    @property
    def per_page(self) -> int:
        """Tuples that fit on a page."""
        return (PAGE - _HEADER.size) // (self.width + _LINE.size)

    def place(self, name: str) -> tuple[Domain, int]:
        """An attribute and its offset in a tuple. QueryError if there is none of that name."""
        if name not in self._places:
            raise QueryError(
                f"The relation has no attribute {name}; it has {', '.join(self._places)}."
            )
        return self._places[name]

    def unpack(self, page: bytes, offset: int) -> tuple[Any, ...]:
        """A tuple's values."""
        values = self._struct.unpack_from(page, offset)
        return tuple(
            value.rstrip().decode("ascii") if d.kind == "c" else value
            for d, value in zip(self.domains, values)
        )

    def pack(self, values: Sequence[Any]) -> bytes:
        """A tuple's bytes; text is padded with blanks, or cut.

        QueryError for a number that doesn't fit its attribute.
        """
        try:
            return self._struct.pack(
                *(
                    value.encode("ascii").ljust(d.length) if d.kind == "c" else value
                    for d, value in zip(self.domains, values)
                )
            )
        except struct.error as error:
            raise QueryError(
                "A value doesn't fit its attribute of"
                f" ({', '.join(f'{d.name} = {d.kind}{d.length}' for d in self.domains)}): {error}."
            ) from None


@dataclass
class Page:
    """A page as it is read and written; `tuples` are their bytes."""

    tuples: list[bytes]
    main: int = NONE
    overflow: int = NONE

    def pack(self) -> bytes:
        """The 1024 bytes. ValueError if the tuples don't fit."""
        body, lines, end = b"".join(self.tuples), b"", _HEADER.size
        for stored in self.tuples:
            lines = _LINE.pack(end) + lines
            end += len(stored)
        if end + len(lines) > PAGE:
            raise ValueError(
                f"{len(self.tuples)} tuples of {len(body)} bytes don't fit on a page of {PAGE}"
            )
        return (
            _HEADER.pack(self.main, self.overflow, len(self.tuples), end)
            + body
            + bytes(PAGE - end - len(lines))
            + lines
        )


def following(page: bytes) -> tuple[int, int]:
    """The main and the overflow page that follow a page; `NONE` for none."""
    main, overflow, *_ = _HEADER.unpack_from(page)
    return main, overflow


def lines(page: bytes) -> tuple[int, ...]:
    """Where each tuple of a page starts, by its line table; the line of a deleted one is 0 and left
    out.
    """
    entries = _entries(page)
    return entries if 0 not in entries else tuple(filter(None, entries))


def _entries(page: bytes) -> tuple[int, ...]:
    count = _HEADER.unpack_from(page)[2]
    return struct.unpack_from(f"<{count}h", page, PAGE - count * _LINE.size)[::-1]


def packed(page: bytes, width: int) -> range:
    """Where each tuple of a page starts if none of them was ever deleted."""
    return range(_HEADER.size, _HEADER.size + _HEADER.unpack_from(page)[2] * width, width)


def linked(page: bytes, main: int | None = None, overflow: int | None = None) -> bytes:
    """The page with another successor."""
    before = following(page)
    changed = bytearray(page)
    struct.pack_into(
        "<ii",
        changed,
        0,
        before[0] if main is None else main,
        before[1] if overflow is None else overflow,
    )
    return bytes(changed)


def added(page: bytes, stored: bytes) -> tuple[bytes, int] | None:
    """The page with one more tuple, in the place of a deleted one or behind the last, and where it
    starts; None if it is full.
    """
    entries = _entries(page)
    line = entries.index(0) if 0 in entries else len(entries)
    count = max(len(entries), line + 1)
    start = _HEADER.size + line * len(stored)
    end = _HEADER.size + count * len(stored)
    if end + count * _LINE.size > PAGE:
        return None
    changed = bytearray(page)
    _HEADER.pack_into(changed, 0, *following(page), count, end)
    changed[start : start + len(stored)] = stored
    _LINE.pack_into(changed, PAGE - (line + 1) * _LINE.size, start)
    return bytes(changed), start


def removed(page: bytes, offset: int) -> bytes:
    """The page without the tuple that starts there; the others stay where they are."""
    changed = bytearray(page)
    _LINE.pack_into(changed, PAGE - (_entries(page).index(offset) + 1) * _LINE.size, 0)
    return bytes(changed)


def rewritten(page: bytes, offset: int, stored: bytes) -> bytes:
    """The page with other values in the tuple that starts there."""
    return page[:offset] + stored + page[offset + len(stored) :]


def filled(tuples: Iterable[bytes], per_page: int) -> Iterator[list[bytes]]:
    """The tuples in portions that fill a page each."""
    page: list[bytes] = []
    for stored in tuples:
        page.append(stored)
        if len(page) == per_page:
            yield page
            page = []
    if page:
        yield page
