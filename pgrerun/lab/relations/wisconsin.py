"""The relations of the Wisconsin benchmark, any tuple computable from its number.

`unique1` is the random order, `Wisconsin` a relation with its attributes, its loading
into PostgreSQL and DuckDB, and its indices. Checksums are in `checksum.py`.

Sources
-------
- D. J. DeWitt, "The Wisconsin Benchmark: Past, Present, and Future", in J. Gray (ed.),
  The Benchmark Handbook, 2nd ed., 1993, chapter 4: the scalable relations.
- The POSTGRES performance report of 1990, sections 2.2 and 2.4 and Figures 2.1 and 2.5:
  the attribute set of 1983 with 4-byte integers, 208 bytes per tuple.

Traps of the specifications, and what is done about each
--------------------------------------------------------
1. The string routine printed in 1993 left-justifies the base-26 digits and fills up
   with "A", which is the digit 0, so that 1 and 26 both give "BAAAAAA": of N = 10 000
   strings only 9 616 differ, and stringu1 is no key although the text calls it one.
   Ours are right-justified and unique.
2. The specification has one random order per size. Two relations of the same order
   make a "non-clustered" join on unique1 a walk along both heaps side by side, and
   starting the second elsewhere in the same cycle only shifts that walk.
   Give relation 2 `order=2`, a cycle of another prime: its tuples lie where a
   random order would put them.
3. Figure 2.1 of 1990 appends (hundred = 0, odd = 1, even = 0): odd is odd there, and here.
   The data in PostgreSQL's regression tests has the two attributes exchanged.
4. Figure 2.1's strings are those of 1983: three significant letters, the 1st, 27th and
   52nd, in a field of "X". The figure's own values (M..G..C for 10001) don't follow from
   its integers by any rule of the sources. Ours are those of 1993 there, too.
5. "Clustered" means that the index order is the order of the heap: relations are loaded
   in the order of unique2 by one writer, and pg_stats shows correlation 1.
6. The projection on "1 %" (two, four, ten, twenty, onePercent, string4) has 400 distinct
   tuples, not 100: string4 goes by the tuple's number, the others by unique1.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, repeat

import duckdb
import numpy as np
import psycopg

from pgrerun.errors import ParameterError
from pgrerun.lab.relations import loading
from pgrerun.lab.relations.checksum import checksum_sql
from pgrerun.lab.server import Server, releases
from pgrerun.progress import track

MOST_TUPLES = 10**8

# (largest N, primitive root g, prime p). Order 1 is the table of 1993; order 2 is ours: the
# next prime above p, and the primitive root near 0.382 p with the least serial correlation.
CYCLES = {
    1: (
        (10**3, 279, 1_009),
        (10**4, 2_969, 10_007),
        (10**5, 21_395, 100_003),
        (10**6, 2_107, 1_000_003),
        (10**7, 211, 10_000_019),
        (10**8, 21, 100_000_007),
    ),
    2: (
        (10**3, 463, 1_013),
        (10**4, 3_971, 10_009),
        (10**5, 38_295, 100_019),
        (10**6, 382_123, 1_000_033),
        (10**7, 3_819_746, 10_000_079),
        (10**8, 38_196_645, 100_000_037),
    ),
}

_BLOCK = 2**16  # steps of a cycle that are generated at once


def unique1(n: int, first: int, count: int, order: int = 1) -> np.ndarray:
    """A slice of the random order of 0..n-1, without the tuples before: int32, shape (count,).

    DeWitt 1993: seed = g; repeat seed = g * seed mod p until seed <= N; unique1 = seed - 1.
    `order` is 1 (the source's) or 2 (an unrelated one, for a second relation). ParameterError if n
    is out of range. 10 ns per tuple, blocks of 2^16 at a time. The first call for an n also pays
    for `kept_before`: one walk around the whole cycle (10 ms at 1e6, 1 s at 1e8).
    """
    g, p = _generator(n, order)
    before = kept_before(n, g, p)
    result = np.empty(count, np.int32)
    done = 0
    while done < count:
        tuple_number = first + done
        block = int(np.searchsorted(before, tuple_number, "right")) - 1
        part = _kept(block, n, g, p)[tuple_number - before[block] :][: count - done]
        result[done : done + len(part)] = part
        done += len(part)
    return result


def _generator(n: int, order: int) -> tuple[int, int]:
    if not 1 <= n <= MOST_TUPLES:
        raise ParameterError(f"A Wisconsin relation has 1 to {MOST_TUPLES} tuples, not {n}.")
    if order not in CYCLES:
        raise ParameterError(f"A Wisconsin relation has order 1 or 2, not {order}.")
    return next((g, p) for largest, g, p in CYCLES[order] if n <= largest)


@lru_cache(maxsize=4)
def _powers(g: int, p: int) -> np.ndarray:
    """g^0 .. g^(_BLOCK - 1) mod p: int64; products stay below 2^54."""
    powers = accumulate(repeat(g, _BLOCK - 1), lambda power, _: power * g % p, initial=1)
    return np.fromiter(powers, np.int64, _BLOCK)


def _steps(block: int, g: int, p: int) -> np.ndarray:
    """The seeds of one block of the cycle; the last block is shorter. The first seed is g^2."""
    length = min(_BLOCK, p - 1 - block * _BLOCK)
    return _powers(g, p)[:length] * pow(g, block * _BLOCK + 2, p) % p


@lru_cache(maxsize=4)  # a sequential reader asks for the same block several times
def _kept(block: int, n: int, g: int, p: int) -> np.ndarray:
    seeds = _steps(block, g, p)
    return seeds[seeds <= n] - 1


@lru_cache(maxsize=8)
def kept_before(n: int, g: int, p: int) -> np.ndarray:
    """How many tuples precede each block, and their number at the end: int64, shape (blocks + 1,).

    The rule skips seeds above n, so a tuple's place in the cycle depends on the skips before it.
    """
    blocks = range(-(-(p - 1) // _BLOCK))
    kept = [np.count_nonzero(_steps(block, g, p) <= n) for block in blocks]
    return np.concatenate(([0], np.cumsum(kept)))


def cycle_blocks(n: int, order: int = 1) -> tuple[int, int, list[tuple[int, int, int]]]:
    """The random order for whoever walks it elsewhere: generator, prime, and its blocks.

    A block is (tuples before it, seed it begins with, steps): multiply the seed by powers 0, 1, ...
    of the generator modulo the prime, leave out what exceeds n, and `unique1` is what is left, less
    one. ParameterError as for `unique1`.
    """
    g, p = _generator(n, order)
    before = kept_before(n, g, p)
    blocks = [
        (int(kept), pow(g, number * _BLOCK + 2, p), min(_BLOCK, p - 1 - number * _BLOCK))
        for number, kept in enumerate(before[:-1])
    ]
    return g, p, blocks


# Attribute -> rule over unique1, in the order of the source. Names as PostgreSQL folds them.
_SMALL = {"two": 2, "four": 4, "ten": 10, "twenty": 20}
_MODULI = {
    "1993": _SMALL | {"onepercent": 100, "tenpercent": 10, "twentypercent": 5, "fiftypercent": 2},
    "1990": (
        _SMALL
        | {
            "hundred": 100,
            "thousand": 1_000,
            "twothousand": 2_000,
            "fivethousand": 5_000,
            "tenthousand": 10_000,
        }
    ),
}
_INTEGERS = {
    "1993": ("unique1", "unique2", *_MODULI["1993"], "unique3", "evenonepercent", "oddonepercent"),
    "1990": ("unique1", "unique2", *_MODULI["1990"], "odd", "even"),
}
_STRINGS = ("stringu1", "stringu2", "string4")

_WIDTH, _FILLER = 52, ord("x")


@dataclass(frozen=True)
class Wisconsin:
    """One relation of n tuples with 13 int4 attributes and three strings of 52 letters: 208 bytes.

    attributes: "1993", the scalable set of DeWitt's chapter 4 (onepercent .. oddonepercent), or
        "1990", the set of the report's Figures 2.1 and 2.5 (hundred .. even).
    order: of unique1, 1 or 2; see trap 2 above.

    Raises ParameterError for a name that isn't a plain lower-case identifier and for
    anything else out of range.
    """

    name: str
    n: int
    attributes: str = "1993"
    order: int = 1

    def __post_init__(self) -> None:
        _generator(self.n, self.order)
        if not re.fullmatch("[a-z_][a-z0-9_]{0,62}", self.name):
            raise ParameterError(
                f"A relation's name is made of a-z, 0-9 and _, which {self.name!r} is not."
            )
        if self.attributes not in _INTEGERS:
            raise ParameterError(f"Wisconsin attributes are 1993 or 1990, not {self.attributes!r}.")

    @property
    def integers(self) -> tuple[str, ...]:
        """The int4 attributes, in order."""
        return _INTEGERS[self.attributes]

    @property
    def moduli(self) -> Mapping[str, int]:
        """The attributes that are unique1 modulo a number, and that number."""
        return _MODULI[self.attributes]

    @property
    def texts(self) -> tuple[str, ...]:
        """The char(52) attributes, in order."""
        return _STRINGS

    @property
    def create_sql(self) -> str:
        """CREATE TABLE, for PostgreSQL and DuckDB alike."""
        return self._create("TABLE")

    def _create(self, kind: str) -> str:
        attributes = [f"{name} int4" for name in self.integers] + [
            f"{name} char({_WIDTH})" for name in self.texts
        ]
        return f"CREATE {kind} {self.name} ({', '.join(attributes)})"

    @property
    def checksum_sql(self) -> str:
        """The query that gives (tuples, checksum) over all attributes: `checksum.checksum_sql`."""
        return checksum_sql(self.name, self.integers, self.texts)

    # --- tuples -------------------------------------------------------------------------------

    def columns(self, first: int = 0, count: int | None = None) -> dict[str, np.ndarray]:
        """Tuples first .. first + count - 1 as columns: int32 and S52, each of shape (count,).

        Any slice is computed by itself and equals that slice of the whole; without count, up
        to the end. See `unique1` for what the first call costs.
        """
        count = self.n - first if count is None else count
        columns = {name: np.empty(count, np.int32) for name in self.integers}
        columns |= {name: np.full((count, _WIDTH), _FILLER, np.uint8) for name in self.texts}
        self.fill(columns, first, count)
        return columns | {name: columns[name].view(f"S{_WIDTH}").ravel() for name in self.texts}

    def tuples(self, count: int | None = None) -> Iterator[tuple[int | str, ...]]:
        """The first of them, or all, one by one."""
        columns = self.columns(0, count)
        text = {name: columns[name].astype(str) for name in self.texts}
        return zip(*(column.tolist() for column in (columns | text).values()), strict=True)

    def fill(self, out: Mapping[str, np.ndarray] | np.ndarray, first: int, count: int) -> None:
        """Write the tuples into arrays (or fields of a record array) whose strings hold the filler
        already.
        """
        if first < 0 or count < 0 or first + count > self.n:
            raise IndexError(
                f"tuples {first} to {first + count - 1} of relation {self.name}, which has {self.n}"
            )
        u1 = unique1(self.n, first, count, self.order)
        u2 = np.arange(first, first + count, dtype=np.int32)
        out["unique1"][:] = u1
        out["unique2"][:] = u2
        for name, modulus in self.moduli.items():
            out[name][:] = u1 % modulus
        percent = u1 % 100 * 2
        if self.attributes == "1993":
            out["unique3"][:] = u1
            out["evenonepercent"][:] = percent
            out["oddonepercent"][:] = percent + 1
        else:
            out["even"][:] = percent
            out["odd"][:] = percent + 1
        _right_justified(out["stringu1"], u1)
        _right_justified(out["stringu2"], u2)
        for number, letter in enumerate(b"AHOV"):
            out["string4"][(number - first) % 4 :: 4, :4] = letter

    # --- PostgreSQL ---------------------------------------------------------------------------

    def load(
        self,
        server_or_connection: Server | psycopg.Connection,
        *,
        indexes: Sequence[str] = (),
        vacuum: bool = True,
        logged: bool = True,
    ) -> None:
        """Create the relation in the current schema and fill it, replacing an earlier one of ours.

        The tuples are sent by one binary COPY in the order of unique2, so that the order of the
        heap is the order of unique2, and frozen, so that no later read writes hint bits.
        indexes: attributes, each of a B-tree NAME_ATTRIBUTE. By unique2 it is clustered: its order
            is the heap's. Plain, not unique, as in the sources.
        logged: whether its changes go into the WAL; before PostgreSQL 9.1 they always do.
        Memory stays at a few megabytes for any n. Takes a server or an autocommit connection.
        """
        with loading.session(server_or_connection) as connection:
            able = releases.writes(connection.info.server_version, "UNLOGGED")
            kind = "TABLE" if logged or not able else "UNLOGGED TABLE"
            with connection.transaction():
                loading.replace(connection, self.name, self._create(kind))
                self._copy(connection)
            if indexes:
                for one in track(indexes, f"indexing {self.name}"):
                    connection.execute(
                        f"CREATE INDEX {self.name}_{one} ON {self.name} USING btree ({one})"
                    )
            if vacuum:
                connection.execute(f"VACUUM FREEZE ANALYZE {self.name}")

    def _copy(self, connection: psycopg.Connection) -> None:
        how = releases.copied(connection, binary=True)
        command = f"COPY {self.name} FROM STDIN{how}"
        with connection.cursor() as cursor, cursor.copy(command) as copy:
            copy.write(COPY_HEADER)
            for records in self.records():
                copy.write(records.view(np.uint8).data)
            copy.write(COPY_TRAILER)

    def records(self) -> Iterator[np.ndarray]:
        """The relation as tuples of PostgreSQL's binary COPY format, 274 bytes each, in chunks.

        Every chunk is the same memory, overwritten by the next: only what varies from tuple to
        tuple is written again, not the lengths and the filler.
        """
        # PostgreSQL documentation, "COPY", "Binary Format": big-endian, a length before each value
        widths = dict.fromkeys(self.integers, 4) | dict.fromkeys(self.texts, _WIDTH)
        fields = [("attributes", ">i2")]
        for name, width in widths.items():
            fields += [(f"{name} length", ">i4"), (name, ">i4" if width == 4 else f"{width}u1")]
        chunk = np.zeros(min(_CHUNK, self.n), np.dtype(fields))
        chunk["attributes"] = len(widths)
        for name, width in widths.items():
            chunk[f"{name} length"] = width
        for name in self.texts:
            chunk[name] = _FILLER
        for first in track(range(0, self.n, _CHUNK), f"loading {self.name}"):
            part = chunk[: self.n - first]
            self.fill(part, first, len(part))
            yield part

    # --- DuckDB -------------------------------------------------------------------------------

    def load_duckdb(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the relation in DuckDB, replacing one of that name, and fill it in the order of
        unique2.

        Some 1 s per million tuples, half of it for strings, which DuckDB takes from NumPy as
        objects only; memory beside the database's own stays below 150 MB.
        """
        connection.execute(self._create("OR REPLACE TABLE"))
        for first in track(range(0, self.n, _DUCKDB_CHUNK), f"loading {self.name} into DuckDB"):
            chunk = self.columns(first, min(_DUCKDB_CHUNK, self.n - first))
            chunk |= {name: chunk[name].astype(str).astype(object) for name in self.texts}
            connection.execute(f"INSERT INTO {self.name} SELECT * FROM chunk")


_CHUNK = 2**12  # tuples; 1.1 MB of records, which stay in the processor's cache
_DUCKDB_CHUNK = 120 * 1024  # tuples; one row group of DuckDB
COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"


def _right_justified(out: np.ndarray, values: np.ndarray) -> None:
    """Seven base-26 digits A..Z, right-justified, into columns 0 to 6."""
    for place in range(7):
        out[:, 6 - place] = ord("A") + values // 26**place % 26
