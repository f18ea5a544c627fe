"""Which source file each routine of a program comes from, read from its ELF symbol table.

A profile names routines; to add them up by part of the system one must know where a routine
was written. A program that isn't stripped says so without debug information, if one listens:

* a static routine's symbol stands behind the symbol of its source file;
* `__func__`, which the C compiler makes for a routine that reports errors, is static data of the
  source file and holds the routine's name;
* a part split off a routine (`name.cold`, `name.part.0`) is static;
* an object file's code is one piece, so that what lies between two routines of one file is its own.

Of a routine that none of these tells, the files of its nearest neighbours on both sides are known:
the linker keeps the order of directories, so it often can be told where it belongs all the same.
Nothing is guessed.
"""

import struct
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pandas as pd

from pgrerun.errors import CannotMeasure

COLUMNS = ["routine", "file", "before", "after"]

# ELF-64 Object File Format, version 1.5, figures 3, 8 and 14 to 17
SYMTAB, _FUNC, _OBJECT, _FILE = 2, 2, 1, 4
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class _Symbol:
    name: str
    kind: int
    static: bool
    section: int
    address: int
    size: int
    file: tuple[str, int] | None  # name of the source file and how many files stand before it


def routines(program: Path) -> pd.DataFrame:
    """Every routine of the program, by address: routine, file (None if unknown), before, after.

    A source file is written as (name, how many files stand before it), since names may occur twice;
    before and after are the files of the nearest routines with a known one, and of a routine with a
    known file that file. A routine's name may occur several times with different files.
    CannotMeasure for a stripped program or one that isn't 64-bit little-endian ELF.
    """
    image = program.read_bytes()
    sections, symbols = _symbols(image, program)
    functions = sorted(
        (s for s in symbols if s.kind == _FUNC and s.size),
        key=lambda s: (s.section, s.address, not s.static),
    )
    told = _told(image, sections, symbols)
    files = [s.file if s.static else told.get(s.name) for s in functions]
    latest = lambda known, file: file or known
    before = accumulate(files, latest)
    after = reversed([*accumulate(files[::-1], latest)])
    rows = zip((s.name for s in functions), files, before, after)
    return pd.DataFrame(
        [(name, file or (a if a == b else None), a, b) for name, file, a, b in rows],
        columns=COLUMNS,
    )


def file_offset(program: Path, routine: str) -> int:
    """Where in the program's file the code of a routine begins.

    CannotMeasure if it isn't exactly one.
    """
    image = program.read_bytes()
    sections, symbols = _symbols(image, program)
    found = [s for s in symbols if s.kind == _FUNC and s.name == routine and s.size]
    if len(found) != 1:
        raise CannotMeasure(
            "symbols",
            f"the program {program.name} has {len(found)} routines named {routine}, not one",
        )
    _, _, _, address, offset, *_ = sections[found[0].section]
    return int(found[0].address - address + offset)


def _symbols(image: bytes, program: Path) -> tuple[list[tuple[int, ...]], list[_Symbol]]:
    if image[:6] != b"\x7fELF\x02\x01":
        raise CannotMeasure(
            "symbols",
            f"the symbol table of {program.name} can't be read here: it is no 64-bit ELF program",
        )
    (start,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [_SECTION.unpack_from(image, start + number * size) for number in range(count)]
    table = next((section for section in sections if section[1] == SYMTAB), None)
    if table is None:
        raise CannotMeasure(
            "symbols",
            f"{program.name} is stripped of its symbols, so its routines have no names. The bundled"
            " release isn't",
        )
    texts = sections[table[6]][4]
    symbols, file = [], None
    nth = -1
    for name, info, _, section, address, length in _SYMBOL.iter_unpack(
        image[table[4] : table[4] + table[5]]
    ):
        kind, static = info & 15, info >> 4 == 0
        if kind not in (_FUNC, _OBJECT, _FILE):
            continue
        word = image[texts + name : image.index(b"\0", texts + name)].decode(errors="replace")
        if kind == _FILE:
            nth += 1
            file = (word, nth)
        symbols.append(
            _Symbol(word, kind, static, section, address, length, file if static else None)
        )
    return sections, symbols


def _told(
    image: bytes, sections: list[tuple[int, ...]], symbols: list[_Symbol]
) -> dict[str, tuple[str, int]]:
    """Routines whose file is told by its static data `__func__` or by a static part of theirs.

    Those that are told twice are left out.
    """
    found: dict[str, set[tuple[str, int]]] = {}
    for symbol in symbols:
        if not symbol.static or symbol.file is None:
            continue
        if symbol.kind == _OBJECT and symbol.name.startswith("__func__"):
            _, _, _, address, offset, *_ = sections[symbol.section]
            at = symbol.address - address + offset
            found.setdefault(image[at : at + symbol.size - 1].decode(errors="replace"), set()).add(
                symbol.file
            )
        elif symbol.kind == _FUNC and "." in symbol.name:
            found.setdefault(symbol.name.partition(".")[0], set()).add(symbol.file)
    return {name: files.pop() for name, files in found.items() if len(files) == 1}
