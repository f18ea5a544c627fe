"""TP1: the relations and the transaction of DebitCredit, as the 1990 report has them.

`DebitCredit` loads the relations, checks the benchmark's invariant, runs a transaction's statements
singly and tells how it differs from pgbench's own. The transaction is a pgbench script of whoever
runs it (`chapters/tp1/sql/`); running scripts is `instruments/pgbench.py`'s job.

Sources
-------
- The POSTGRES performance report of 1990, sections 2.2 and 3.2.2, Figures 2.2 and 2.3.
- Anon et al., "A Measure of Transaction Processing Power", Datamation, April 1985, and TPC
  Benchmark B, revision 2.0, 1994, for the 85/15 rule and the sizes per transaction per second.

What a tuple's size means
-------------------------
The report says 100 bytes in branch, teller and account and 50 in history. That is the size
of the attribute values: 4 (int4) + 8 (float8) + 88 letters of text, and 3 * 4 + 8 + 30, the
30 being the x's that Figure 2.3 prints. The report counts 218 pages of 8 kB for 10 000
tuples (3.2.2), 46 a page and 178 bytes each with everything around the values. PostgreSQL 18
needs 173 pages: 58 tuples a page, 140 bytes each, of which 24 are the tuple's header and 4
its line pointer. `facts` measures it on the server at hand.
"""

import contextlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.errors import CannotMeasure, ParameterError
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Server, releases, row, value

AMOUNT = 10.0  # what every transaction adds, in Figure 2.3
_TEXT = 100 - 4 - 8  # letters

# Relation, its key, and the variable that draws it; in the order of Figure 2.2.
_KEYS = {"branch": "bid", "teller": "tid", "account": "aid"}
_HISTORY = "history (bid int4, tid int4, aid int4, amount float8, string text)"


@dataclass(frozen=True)
class DebitCredit:
    """Relations of so many tuples, keys counted from 1.

    Tellers and accounts belong to branches in equal, contiguous ranges: teller t to branch
    1 + (t - 1) // (tellers / branches). Only scripts with a branch rule make use of it; as in
    Figure 2.2, no relation stores it. ParameterError unless the numbers are positive and
    divisible by the number of branches.
    """

    branches: int
    tellers: int
    accounts: int

    def __post_init__(self) -> None:
        if min(self.branches, self.tellers, self.accounts) < 1:
            raise ParameterError(
                f"DebitCredit needs at least one branch, teller and account, not {self}."
            )
        if self.tellers % self.branches or self.accounts % self.branches:
            raise ParameterError(
                f"Each of {self.branches} branches has equally many tellers and accounts:"
                f" {self.tellers} tellers and {self.accounts} accounts can't be shared out. Use"
                f" multiples of {self.branches}."
            )

    @classmethod
    def report(cls, scale: int = 1) -> "DebitCredit":
        """The report's relations (section 2.2): 1 000 branches, 10 000 tellers, 10 000 accounts per
        scale.
        """
        return cls(1_000 * scale, 10_000 * scale, 10_000 * scale)

    @property
    def tuples(self) -> dict[str, int]:
        """Tuples by relation after loading."""
        return {
            "branch": self.branches,
            "teller": self.tellers,
            "account": self.accounts,
            "history": 0,
        }

    # --- relations ----------------------------------------------------------------------------

    def load(self, server_or_connection: Server | psycopg.Connection) -> None:
        """Create branch, teller, account and history in the current schema, replacing earlier ones
        of ours.

        Figure 2.2's attributes, types and B-trees (plain, not unique); every balance is 0 and
        every string the same. Frozen and analyzed, so that repeated loads give the same pages
        and no later read writes hint bits.
        Takes a server or an autocommit connection. ServerError if a name is somebody else's.
        """
        with loading.session(server_or_connection) as connection:
            with connection.transaction():
                for relation, key in _KEYS.items():
                    attributes = (
                        f"({key} int4, balance float8, string text) WITH (fillfactor = 100)"
                    )
                    loading.replace(connection, relation, f"CREATE TABLE {relation} {attributes}")
                    # frozen as they come: a vacuum would write every page a second time
                    how = releases.copied(connection)
                    with (
                        connection.cursor() as cursor,
                        cursor.copy(f"COPY {relation} FROM STDIN{how}") as copy,
                    ):
                        for tuples in self._generated(relation):
                            copy.write(tuples)
                    connection.execute(
                        f"CREATE INDEX {relation}_index ON {relation} USING btree ({key})"
                    )
                loading.replace(connection, "history", f"CREATE TABLE {_HISTORY}")
            for relation in self.tuples:
                connection.execute(f"VACUUM FREEZE ANALYZE {relation}")

    def _generated(self, relation: str) -> Iterator[str]:
        """The tuples of a relation with balances, as COPY reads them, some thousand at a time."""
        number = self.tuples[relation]
        for first in range(1, number + 1, 10_000):
            yield "".join(
                f"{key}\t0\t{'x' * _TEXT}\n"
                for key in range(first, min(first + 10_000, number + 1))
            )

    def facts(self, server: Server) -> pd.DataFrame:
        """Pages of the relations and their indices, one row each, as they are now.

        Columns: relation (its name, or the index's), kind ("relation", "index"), tuples (live),
        pages (8 kB unless built otherwise; main fork), levels (of a B-tree as the report counts
        them: root and leaves are two) and tuples_per_page.
        """
        indexes = (
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass ORDER BY"
            " indexrelid"
        )
        with contextlib.suppress(CannotMeasure):  # levels are then told from the sizes
            server.extension("pageinspect")
        rows: list[tuple[str, str, int, int, int | None]] = []
        with server.connect() as connection:
            for relation in self.tuples:
                tuples = value(connection, int, f"SELECT count(*) FROM {relation}")
                pages = _pages(connection, relation)
                rows.append((relation, "relation", tuples, pages, None))
                for (index,) in connection.execute(indexes, (relation,)).fetchall():
                    pages, levels = _pages(connection, index), _levels(connection, index)
                    rows.append((index, "index", tuples, pages, levels))
        frame = pd.DataFrame(rows, columns=["relation", "kind", "tuples", "pages", "levels"])
        frame["tuples_per_page"] = frame["tuples"] / frame["pages"].where(frame["pages"] > 0)
        return frame.astype({"levels": "Int64"})

    def is_consistent(self, connection: psycopg.Connection) -> bool:
        """DebitCredit's invariant: every transaction has added 10.0 to one tuple of each relation.

        Balances start at 0, and history holds the amounts. Asked in one snapshot; sums are exact:
        multiples of 10 below 2^53.
        """
        sums = ", ".join(
            f"(SELECT coalesce(sum(balance), 0) FROM {name}) AS {name}" for name in _KEYS
        )
        query = f"SELECT {sums}, coalesce(sum(amount), 0), count(*) FROM history"
        *found, transactions = row(connection, query)
        return set(found) == {AMOUNT * transactions}

    # --- the transaction ----------------------------------------------------------------------

    def variables(self, server_or_connection: Server | psycopg.Connection) -> dict[str, int]:
        """The -D variables of the scripts: numbers of tuples, and of the relations' pages as
        they are now.
        """
        with loading.session(server_or_connection) as connection:
            pages = {f"{relation}_pages": _pages(connection, relation) for relation in _KEYS}
        return {
            "branches": self.branches,
            "tellers": self.tellers,
            "accounts": self.accounts,
        } | pages

    def run_once(self, connection: psycopg.Connection, draws: random.Random, script: str) -> None:
        """The statements of a pgbench script once, one by one, on an autocommit connection.

        A statement is a line. Keys (:aid, :tid, :bid) are drawn uniformly and independently,
        whatever the script's own rule, and so are pages (:account_page_1). For counting what
        single transactions touch; load comes from pgbench.
        """
        values = {key: draws.randint(1, self.tuples[relation]) for relation, key in _KEYS.items()}
        lines = script.splitlines()
        statements = [line for line in lines if line and not line.startswith(("\\", "--"))]
        drawn = sorted(set(_PAGE_VARIABLE.findall("\n".join(statements))))
        for relation in _KEYS if drawn else ():
            pages = _pages(connection, relation)
            for name, of in drawn:
                if of == relation:
                    values[name] = draws.randrange(pages)
        for statement in statements:
            connection.execute(
                re.sub(r"(?<!:):(\w+)", lambda found: str(values[found[1]]), statement)
            )


_PAGE_VARIABLE = re.compile(r":((\w+)_page_\d+)")


def _pages(connection: psycopg.Connection, relation: str) -> int:
    size = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int"
    return value(connection, int, size, (relation,))


def _levels(connection: psycopg.Connection, index: str) -> int:
    """Levels of a B-tree, from its metapage or else from its size."""
    where = connection.execute(
        "SELECT quote_ident(n.nspname) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE p.proname = 'bt_metap' AND current_setting('is_superuser') = 'on'"
    ).fetchone()
    if where:
        query = f"SELECT level::int + 1 FROM {where[0]}.bt_metap(%s)"
        return value(connection, int, query, (index,))
    # Inner pages are built 70 % full of entries of 20 bytes; one page of the index is its metapage.
    levels, width = 1, _pages(connection, index) - 1
    while width > 1:
        levels, width = levels + 1, -(-width // 285)
    return levels
