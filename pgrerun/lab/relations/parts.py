"""PARTS: the relation of the 1981 benchmark, narrow as a heap, or wide and keyed on pnum (1.5).

Any tuple is computed from its number by the same SQL, so that PostgreSQL, DuckDB and, through
DuckDB, INGRES and its miniature have the same. The memorandum gives the attributes, the widths (34
and 200 bytes) and the numbers of tuples; of the values only that some parts are black and that few
are. How many follows from its Table 8 (about one in nine and a half, for so many lookups does query
g make), and so does that nearly all parts meet the qualification of queries d and i, which reads as
much as g.
"""

from dataclasses import dataclass

import duckdb
import psycopg

from pgrerun.errors import ParameterError
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Server

Row = tuple[int | str, ...]  # pnum, pname, color, weight, qoh, and of the wide relation filler
WIDE_FILLER = 166  # bytes that widen 34 to 200
LOADED, INSERTED = 3230, 130
"""Of the wide relation: tuples of "a perfectly built keyed structure", and the "random inserts"
that follow.
"""

_NAMES = (
    "processor",
    "memory",
    "disk drive",
    "tape drive",
    "line printer",
    "terminal",
    "paper tape reader",
    "card reader",
    "card punch",
    "tapes",
    "printer paper",
    "cable",
    "cabinet",
    "power supply",
)
_COLOURS = ("gray", "white", "blue", "yellow")
_PER_PAGE = 5  # wide tuples on a page of INGRES; an insert goes to a page of its own
_STEP = 401  # prime, so that the inserts meet pages all over the relation, and none twice


@dataclass(frozen=True)
class Parts:
    """PARTS of so many tuples; the wide one has the memorandum's 3360 unless it says otherwise.

    Attributes: pnum, pname, color, weight, qoh, and of the wide relation filler. pnum counts from
    1. Of the wide relation the last tuples, 130 in 3360, are inserts: they repeat the pnum of a
    tuple loaded before. About one part in ten is black. ParameterError for fewer than one tuple.
    """

    tuples: int = LOADED + INSERTED
    wide: bool = False

    def __post_init__(self) -> None:
        if self.tuples < 1:
            raise ParameterError(f"PARTS needs at least one tuple, not {self.tuples}.")

    @property
    def loaded(self) -> int:
        """Tuples that a keyed structure is built from; the others are inserted afterwards."""
        return self.tuples * LOADED // (LOADED + INSERTED) if self.wide else self.tuples

    def rows(self) -> list[Row]:
        """All tuples, the inserted ones last."""
        with duckdb.connect() as engine:
            return engine.execute(self.select()).fetchall()

    def select(self) -> str:
        """SQL for all tuples, in PostgreSQL or DuckDB: computed, not read."""
        loaded, pages = self.loaded, -(-self.loaded // _PER_PAGE)
        insert = f"(n - {loaded} - 1)"
        pnum = (
            f"CASE WHEN n <= {loaded} THEN n ELSE least({insert} * {_STEP} % {pages} * {_PER_PAGE}"
            f" + {insert} % {_PER_PAGE} + 1, {loaded}) END"
        )
        filler = (
            f", CAST(repeat(' ', {WIDE_FILLER}) AS char({WIDE_FILLER})) AS filler"
            if self.wide
            else ""
        )
        # few are black, and qoh < ln(9.5) * weight
        return (
            f"SELECT CAST({pnum} AS int) AS pnum, {_chosen(_NAMES, 'n * 7')} AS pname, CASE WHEN"
            f" n % 19 in (0, 9) THEN 'black' ELSE {_chosen(_COLOURS, 'n')} END AS color,"
            " CAST(n * 37 % 1000 + 100 AS int) AS weight, CAST(n * 101 % 199 AS int) AS qoh"
            f"{filler} FROM (SELECT CAST(n AS bigint) AS n"
            f" FROM generate_series(1, {self.tuples}) AS g(n)) AS numbers"
        )

    def load(
        self,
        server_or_connection: Server | psycopg.Connection,
        name: str = "parts",
        index: str = "",
    ) -> None:
        """Create the relation in the current schema, replacing an earlier one of ours.

        Vacuumed, frozen and analyzed.

        index: an access method ("btree", "hash") for an index on pnum. Of a wide relation the
        inserted tuples come behind the loaded ones, on pages of their own.
        """
        filler = f", filler char({WIDE_FILLER})" if self.wide else ""
        attributes = f"(pnum int, pname varchar(20), color varchar(8), weight int, qoh int{filler})"
        with loading.session(server_or_connection) as connection:
            made = [f"CREATE TABLE {name} {attributes}", f"INSERT INTO {name} {self.select()}"]
            if index:
                made.append(f"CREATE INDEX {name}_pnum ON {name} USING {index} (pnum)")
            loading.make(connection, name, *made)
            connection.execute(f"VACUUM FREEZE ANALYZE {name}")


def _chosen(words: tuple[str, ...], number: str) -> str:
    cases = " ".join(f"WHEN {place} THEN '{word}'" for place, word in enumerate(words))
    return f"CASE {number} % {len(words)} {cases} END"
