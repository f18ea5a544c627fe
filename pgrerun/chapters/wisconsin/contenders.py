"""Who runs the queries: PostgreSQL as it chooses, PostgreSQL confined to certain plans, DuckDB, and whoever comes.

A contender is anything with the methods of `Contender`. It is given trees of POSTQUEL, so that an
engine which interprets QUEL itself takes its seat like any other: write the class, and put it into
the list that `race.contenders` makes.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import psycopg

from pgrerun.chapters.wisconsin.queries import RESULT, ROLES, STATES, Variant, relation
from pgrerun.instruments import clock
from pgrerun.quel import Translator, read
from pgrerun.relations import Wisconsin, loading
from pgrerun.relations.duck import Duck
from pgrerun.server import Server, set_session

POSTGRESQL, AGAIN, CONFINED, DUCKDB = "PostgreSQL", "PostgreSQL, again", "nested loops only", "DuckDB"
NESTED_LOOPS = {"enable_nestloop": "on", "enable_hashjoin": "off", "enable_mergejoin": "off"}  # the joins of university INGRES


class Contender(AbstractContextManager, Protocol):
    """Runs the queries on relations of its own; used in a `with` block."""

    name: str

    def load(self, n: int) -> None:
        """Have the relations of n tuples in every state; at once if they are there already."""

    def run(self, variant: Variant) -> float:
        """Run a query, with what comes before it; seconds of the query alone, its answer fetched."""

    def answer(self, variant: Variant) -> tuple[int, int]:
        """(tuples, checksum) of what the query left or showed; see `relations.checksum`."""

    def tidy(self, variant: Variant) -> None:
        """Destroy the result and undo the change."""


def population(role: str, n: int, state: str = "none") -> Wisconsin:
    """A relation as generated: the second large one in an order unrelated to the first's."""
    size = n // 10 if role == "onek" else n
    return Wisconsin(relation(role, state), size, order=2 if role == "tenk2" else 1)


class _Sql:
    """What contenders share that take SQL."""

    name: str

    def execute(self, sql: str) -> list[tuple]:
        raise NotImplementedError

    def run_quel(self, text: str) -> None:
        """Run POSTQUEL that isn't timed."""
        for statement in read(text):
            self.execute(Translator().sql(statement))

    def run(self, variant: Variant) -> float:
        self.run_quel(variant.before)
        sql = self.sql(variant)
        with clock.stopwatch() as watch:
            self.execute(sql)
        return watch.seconds

    def sql(self, variant: Variant) -> str:
        """What is sent for the query itself."""
        return Translator().sql(variant.statement)

    def answer(self, variant: Variant) -> tuple[int, int]:
        [(tuples, checksum)] = self.execute(variant.answer.sql)
        return int(tuples), int(checksum)

    def tidy(self, variant: Variant) -> None:
        if getattr(variant.statement, "into", ""):
            self.execute(f"DROP TABLE {RESULT}")
        self.run_quel(variant.after)


class PostgreSQL(_Sql):
    """PostgreSQL with these settings for the session, on relations that several contenders share."""

    def __init__(self, server: Server, name: str = POSTGRESQL, settings: Mapping[str, str] | None = None):
        self.name, self._server, self._settings = name, server, dict(settings or {})
        self.connection: psycopg.Connection

    def __enter__(self) -> "PostgreSQL":
        self.connection = self._server.connect()
        self.connection.prepare_threshold = None  # every statement is planned for its own constants
        set_session(self.connection, self._settings)
        self.connection.execute(f"DROP TABLE IF EXISTS {RESULT}")
        return self

    def __exit__(self, *exception: object) -> None:
        self.connection.close()

    def execute(self, sql: str) -> list[tuple]:
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def load(self, n: int) -> None:
        if self._holds(n):
            return
        for state, indexes in STATES.items():
            for role in ROLES if state != "with" else ("tenk1", "tenk2"):
                if role == "bprime":
                    self._bprime(n, state)
                else:
                    population(role, n, state).load(self.connection, indexes=indexes, vacuum=False)
                name = relation(role, state)
                if role == "bprime":
                    for attribute in indexes:
                        self.execute(f"CREATE INDEX {name}_{attribute} ON {name} ({attribute})")
                self.execute(f"VACUUM (FREEZE, ANALYZE) {name}")
        self.execute(f"COMMENT ON INDEX {relation('tenk2', 'with')}_onepercent IS 'complete at {n}'")

    def _bprime(self, n: int, state: str) -> None:
        """The first tenth of the second large relation, in the order of unique2."""
        name, source = relation("bprime", state), relation("tenk2", state)
        with self.connection.transaction():
            loading.replace(self.connection, name, f"CREATE TABLE {name} AS SELECT * FROM {source} WHERE unique2 < {n // 10} ORDER BY unique2")

    def _holds(self, n: int) -> bool:
        last = f"{relation('tenk2', 'with')}_onepercent"
        [(said,)] = self.execute(f"SELECT obj_description(to_regclass('{last}'), 'pg_class')")
        return said == f"complete at {n}"


class DuckDB(_Sql):
    """DuckDB on a file of its own. It has no indices: its zone maps are the same in every state."""

    name = DUCKDB

    def __enter__(self) -> "DuckDB":
        self._duck = Duck()
        return self

    def __exit__(self, *exception: object) -> None:
        self._duck.close()

    def load(self, n: int) -> None:
        for role in ("tenk1", "tenk2", "onek"):
            self._duck.load(population(role, n))
        self._duck.execute(f"CREATE OR REPLACE TABLE bprime AS SELECT * FROM tenk2 WHERE unique2 < {n // 10} ORDER BY unique2")

    def execute(self, sql: str) -> list[tuple]:
        return self._duck.execute(_without_states(sql))

    def answer(self, variant: Variant) -> tuple[int, int]:
        # planning a checksum of thirty terms takes DuckDB several times as long as giving away what it is made of
        columns = self._duck.columns(_without_states(variant.answer.columns_sql))
        return variant.answer.checksum(columns.__getitem__)


def _without_states(sql: str) -> str:
    """One copy of a relation stands for all its states."""
    for role in ROLES:
        for state in STATES:
            if state != "none":
                sql = sql.replace(relation(role, state), role)
    return sql
