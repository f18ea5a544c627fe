"""Who runs the queries: PostgreSQL, DuckDB, and the miniature of university INGRES.

An engine is used in a `with` block. It has the public methods of `Sql`, and `load(n)` has the
relations of n tuples in every state, at once if they are there already.
"""

import re
from collections.abc import Callable, Mapping

from pgrerun.chapters.wisconsin import queries
from pgrerun.lab import ingres, statements
from pgrerun.lab.instruments import clock, pages
from pgrerun.lab.quel import Translator, read
from pgrerun.lab.relations import Wisconsin, loading
from pgrerun.lab.relations.duck import Duck
from pgrerun.lab.server import Server, set_session
from pgrerun.lab.server.private import Closing

SQL = statements.sql_folder(__file__)
POSTGRESQL, AGAIN = "PostgreSQL", "PostgreSQL, again"
CONFINED, DUCKDB = "nested loops only", "DuckDB"
SEQUENTIAL, PLAIN, BITMAP = "sequential scan", "plain index scan", "bitmap scan"
# What sets the variants of PostgreSQL apart: settings of their sessions.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    POSTGRESQL: {},
    # the joins of university INGRES
    CONFINED: {"enable_nestloop": "on", "enable_hashjoin": "off", "enable_mergejoin": "off"},
    # each scan switched on by name: a reader's server may have it off
    SEQUENTIAL: {"enable_seqscan": "on", "enable_indexscan": "off", "enable_bitmapscan": "off"},
    PLAIN: {"enable_seqscan": "off", "enable_indexscan": "on", "enable_bitmapscan": "off"},
    BITMAP: {"enable_seqscan": "off", "enable_indexscan": "off", "enable_bitmapscan": "on"},
}
SCANS = (SEQUENTIAL, PLAIN, BITMAP)
MORE = 1_000_000_000  # tuples than any result has


def population(role: str, n: int, state: str = "none") -> Wisconsin:
    """A relation as generated: the second large one in an order unrelated to the first's."""
    size = n // 10 if role == "onek" else n
    return Wisconsin(queries.relation(role, state), size, order=2 if role == "tenk2" else 1)


class Sql:
    """What engines share that take SQL."""

    name: str
    execute: Callable[[str], list[tuple]]

    def run_quel(self, text: str) -> None:
        """Run POSTQUEL that isn't timed."""
        for statement in read(text):
            self.execute(Translator().sql(statement))

    def prepare(self, instance: queries.Instance) -> None:
        """Do what comes before a query, and read the whole relation that it will change.

        So whatever undid the last change, and by which index, a change begins with the relation in
        the caches, alike in every state.
        """
        self.run_quel(instance.before)
        if instance.answer.among:
            self.execute(f"SELECT max(fiftypercent) FROM {instance.answer.source}")

    def run(self, instance: queries.Instance, stored: bool = True) -> float:
        """Run a query, and what comes before it; seconds of the query alone, its answer fetched.

        Unless `stored`, what it finds is neither stored nor committed within that time.
        """
        if not stored:
            raise NotImplementedError(f"{self.name} is only asked to store.")
        self.prepare(instance)
        sql = self.sql(instance)
        with clock.stopwatch() as watch:
            self.execute(sql)
        return watch.seconds

    def sql(self, instance: queries.Instance) -> str:
        """What is sent for the query itself."""
        return Translator().sql(instance.statement)

    def answer(self, instance: queries.Instance) -> tuple[int, int]:
        """(tuples, checksum) of what the query left or showed; see `relations.checksum`."""
        [(tuples, checksum)] = self.execute(instance.answer.sql)
        return int(tuples), int(checksum)

    def tidy(self, instance: queries.Instance) -> None:
        """Destroy the result and undo the change."""
        if getattr(instance.statement, "into", ""):
            self.execute(f"DROP TABLE {queries.RESULT}")
        self.run_quel(instance.after)


class PostgreSQL(Sql, Closing):
    """PostgreSQL as one of `SETTINGS`, on relations that several contenders share.

    Any other name is PostgreSQL as it chooses, on another server.
    """

    def __init__(self, server: Server, name: str = POSTGRESQL):
        self.name = name
        self.connection = server.connect()
        self.connection.prepare_threshold = None  # every statement is planned for its own constants
        set_session(self.connection, SETTINGS.get(name, {}))
        self.connection.execute(f"DROP TABLE IF EXISTS {queries.RESULT}")

    def close(self) -> None:
        self.connection.close()

    def execute(self, sql: str) -> list[tuple]:
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def load(self, n: int) -> None:
        complete = f"complete at {n}"
        if self.execute(SQL.text("relations.said")) == [(complete,)]:
            return
        for state in queries.STATES:
            for role in queries.ROLES if state != "with" else ("tenk1", "tenk2"):
                self.load_relation(role, n, state)
        SQL.run(self.connection, "relations.complete", said=complete)

    def load_relation(self, role: str, n: int, state: str) -> None:
        """Have one relation as it was at first."""
        if role == "bprime":
            self._load_bprime(n, state)
        else:
            indexed = queries.STATES[state]
            population(role, n, state).load(self.connection, indexes=indexed, vacuum=False)
        SQL.run(self.connection, "relations.vacuum", relation=queries.relation(role, state))

    def _load_bprime(self, n: int, state: str) -> None:
        name = queries.relation("bprime", state)
        given = {"relation": name, "source": queries.relation("tenk2", state), "tuples": n // 10}
        loading.make(self.connection, name, *SQL.each("relations.bprime", **given))
        for attribute in queries.STATES[state]:
            index = {"index": f"{name}_{attribute}", "relation": name, "attribute": attribute}
            SQL.run(self.connection, "relations.index", **index)

    def run(self, instance: queries.Instance, stored: bool = True) -> float:
        """Where nothing is stored, the result is made and skipped, and a change not committed.

        It is stored or committed afterwards, so that it can be checked.
        """
        into = getattr(instance.statement, "into", "")
        if stored or not (into or instance.answer.among):
            return super().run(instance)
        self.prepare(instance)
        sql = self.sql(instance)
        if not into:
            with self.connection.transaction(), clock.stopwatch() as watch:
                self.execute(sql)
            return watch.seconds
        skipped = f"{shown(instance)} OFFSET {MORE}"  # parsing POSTQUEL is not the server's work
        with clock.stopwatch() as watch:
            self.execute(skipped)
        self.execute(sql)
        return watch.seconds


class ColdPostgreSQL(PostgreSQL):
    """PostgreSQL whose pool is empty before each query; it remembers what it knows of catalogs.

    On a server that reads past the operating system's cache a query waits for each page then.
    """

    def __init__(self, server: Server, name: str):
        server.extension("pg_buffercache")
        super().__init__(server, name)

    def prepare(self, instance: queries.Instance) -> None:
        super().prepare(instance)
        self.execute(f"EXPLAIN {self.sql(instance)}")  # which fills the caches of catalogs
        pages.evict_all(self.connection)


def shown(instance: queries.Instance) -> str:
    """The SQL of a query that stores its result, showing it instead."""
    [statement] = read(instance.text.replace("into tmp ", ""))
    return Translator().sql(statement)


class DuckDB(Sql, Duck):
    """DuckDB on a file of its own. It has no indices: its zone maps are the same in every state."""

    name = DUCKDB

    def load(self, n: int) -> None:
        for role in ("tenk1", "tenk2", "onek"):
            super().load(population(role, n))
        super().execute(SQL.text("relations.bprime_in_duckdb", tuples=n // 10))

    def execute(self, sql: str) -> list[tuple]:
        return super().execute(without_states(sql))

    def answer(self, instance: queries.Instance) -> tuple[int, int]:
        # planning a checksum of thirty terms takes DuckDB several times as long as giving away what
        # it is made of
        columns = self.columns(without_states(instance.answer.columns_sql))
        return instance.answer.checksum(columns.__getitem__)


def without_states(sql: str) -> str:
    """One copy of a relation stands for all its states."""
    return re.sub(r"\b(tenk1|tenk2|onek|bprime)_(clustered|nonclustered|with)\b", r"\1", sql)


# ---- the miniature of INGRES, whose times would be Python's: what counts is pages


def miniature(n: int) -> ingres.DataBase:
    """Heaps where nothing is indexed; ISAM on unique2 where it is; else secondary indices."""
    base = ingres.DataBase()
    for state, indexed in queries.STATES.items():
        for role in queries.ROLES:
            source = population("tenk2" if role == "bprime" else role, n)
            lengths = dict.fromkeys(source.integers, 4) | dict.fromkeys(source.texts, 52)
            tuples = source.tuples(n // 10 if role == "bprime" else None)
            rows = [dict(zip(lengths, row)) for row in tuples]
            stored: ingres.Heap | ingres.Isam
            if "unique2" in indexed:
                stored = ingres.Isam(base.cache, lengths, "unique2", rows)
            else:
                stored = ingres.Heap(base.cache, lengths, rows)
            for attribute in indexed:
                if attribute != "unique2":
                    stored.index(attribute)
            base.relations[queries.relation(role, state)] = stored
    return base


def pages_of(base: ingres.DataBase, instance: queries.Instance) -> tuple[int, int]:
    """Pages that a query touches, and that it reads from an empty cache; it is undone."""
    base.run(instance.before)
    base.cache.empty()
    base.run(instance.text)
    counted = base.cache.touched, base.cache.read
    if getattr(instance.statement, "into", ""):
        base.run(f"destroy {queries.RESULT}")
    base.run(instance.after)
    return counted
