"""The database over all records: what every claim, chart and table is a query of.

    run.CHAPTER.EXPERIMENT          the rows of a run: the one under way, or the one that is shown
    published.CHAPTER.EXPERIMENT    those of the published runs: published, published_2, published_3
    printed.TABLE                   what the documents print
    claims.ledger, claims.verdicts  what is claimed, and what the runs said

Inside of a chapter's own queries an experiment is called by its name alone. A table holds the rows
that count; `EXPERIMENT_all` holds disturbed ones as well. DuckDB answers, and may read no files.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from pgrerun.errors import BookError, ParameterError
from pgrerun.record import claims, printed, rows, runs, verdicts

RUN = "run"
"""The schema of the run that is under way, or that is shown."""
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_TYPES = {rows.TEXT: "string", rows.TRUTH: "boolean"}  # of metrics that are no numbers


class NotMeasured(Exception):
    """A query asks for an experiment of which this run has no rows."""

    def __init__(self, table: str, where: str, why: str = ""):
        super().__init__(f"{where} has no rows of the experiment {table}{why}")
        self.table = table


class Database:
    """DuckDB in memory with the schemas above; a context manager.

    `chapter` is the one whose experiments are called by their names alone.
    """

    def __init__(self, chapter: str = ""):
        self.connection = duckdb.connect()
        self.chapter = chapter
        self._units: dict[tuple[str, str, str], Mapping[str, str]] = {}
        self._replayed = False  # whether the rows of `RUN` are those of a finished record
        printed.load(self.connection)
        claims.load(self.connection)
        for name in (RUN, *map(schema_of, runs.published())):
            self.connection.execute(f"ATTACH ':memory:' AS {name}")
        # nothing in a query may read or write files: a stranger's record is data
        self.connection.execute("SET enable_external_access = false")
        if chapter:
            self._schema(RUN, chapter)

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    # ---- filling

    def _schema(self, run: str, chapter: str) -> None:
        self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {run}.{chapter}")

    def add(
        self, run: str, chapter: str, experiment: str, table: pd.DataFrame, units: Mapping[str, str]
    ) -> None:
        """Add the rows of an experiment, or put them in the place of its older ones.

        A metric that no row has, as an old release hasn't what it is counted by, is there as null.
        """
        if not all(map(_NAME.match, (run, chapter, experiment))):
            raise BookError(f"{run}.{chapter}.{experiment} can't name a table.")
        self._schema(run, chapter)
        place = f"{run}.{chapter}.{experiment}"
        table = table.assign(
            **{
                name: pd.array([None] * len(table), dtype=_TYPES.get(unit, "Float64"))
                for name, unit in units.items()
                if name not in table
            }
        )
        self.connection.register("incoming", table)
        self.connection.execute(f"CREATE OR REPLACE TABLE {place}_all AS FROM incoming")
        kept, source = rows.counted(table), f"{place}_all"  # handing them over takes longest
        if len(kept) < len(table):
            self.connection.register(source := "incoming", kept)
        self.connection.execute(f"CREATE OR REPLACE TABLE {place} AS FROM {source}")
        self.connection.unregister("incoming")
        self._units[run, chapter, experiment] = dict(units)

    def add_record(self, run: str, record: runs.Record) -> None:
        """Add all tables of a record as those of `run`, and its verdicts."""
        self.add_verdicts(run, record)
        self._replayed |= run == RUN
        for chapter, tables in record.tables.items():
            for experiment, table in tables.items():
                self.add(
                    run, chapter, experiment, table, record.about[chapter][experiment]["units"]
                )

    def add_verdicts(self, run: str, record: runs.Record) -> None:
        """Add a record's verdicts, in the words of today's rules; `evidence` is JSON."""
        judged = [
            [run, v["chapter"], v["claim"], verdicts.word(v), v["basis"], json.dumps(v["evidence"])]
            for v in record.verdicts
        ]
        if judged:
            self.connection.executemany(
                "INSERT INTO claims.verdicts VALUES (?, ?, ?, ?, ?, ?)", judged
            )

    def add_published(self, chapters: Iterable[str]) -> None:
        """Add what the published runs have of these chapters."""
        for name in runs.published():
            for chapter in chapters:
                if chapter in runs.chapters(name):
                    self.add_record(schema_of(name), runs.load(name, chapter))

    # ---- asking

    def query(self, text: str, run: str = RUN) -> pd.DataFrame:
        """The rows of a query, whose bare tables are the chapter's experiments of `run`.

        NotMeasured where there is no such experiment, or where rows of another run or of a record
        were measured when it had other columns; ParameterError for what can't be answered.
        """
        if self.chapter:
            self._schema(run, self.chapter)
            self.connection.execute(f"USE {run}.{self.chapter}")
            asked = self.tables_in(text)
            for table in sorted(asked - self.experiments(run)):
                raise NotMeasured(table, f"The run {run!r}")
        try:
            return self.connection.execute(text).df()
        except duckdb.Error as error:
            # A run of an older commit, or one beside it, would end at its first chart or claim.
            older = self.chapter and (run != RUN or self._replayed)
            if older and isinstance(error, duckdb.BinderException):
                column = re.search(r'column (?:named )?"(\w+)"', str(error))
                then = f"measured before {column[1]} was recorded" if column else _explained(error)
                why = f" for this query: {then}; measure it again"
                raise NotMeasured(", ".join(sorted(asked)), f"The run {run!r}", why) from None
            raise ParameterError(_explained(error)) from None

    def latest(self, text: str) -> tuple[pd.DataFrame, bool]:
        """The rows of a query over this run or, where that has none, over the published one; and
        whether they are the published one's.
        """
        try:
            return self.query(text), False
        except NotMeasured as missing:
            try:
                return self.query(text, runs.PUBLISHED), True
            except NotMeasured:
                raise missing from None

    def tables_in(self, text: str) -> set[str]:
        """The experiments that a query names without a schema; BookError if it can't be read."""
        [(told,)] = self.connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
        parsed = json.loads(told)
        if parsed.get("error"):
            raise BookError(f"A query can't be read: {parsed.get('error_message')}\n{text}")
        objects = list(_objects(parsed))
        tables = [one for one in objects if one.get("type") == "BASE_TABLE"]
        named = {one["table_name"] for one in tables if not one["schema_name"]}
        own = {made["key"] for one in objects for made in one.get("cte_map", {}).get("map", ())}
        return {name.removesuffix("_all") for name in named - own}

    def experiments(self, run: str = RUN) -> set[str]:
        """The chapter's experiments of which a run has rows."""
        return {name for r, c, name in self._units if (r, c) == (run, self.chapter)}

    def metric(self, table: str, name: str, condition: str) -> pd.DataFrame:
        """Values of one metric: columns value, block, alpha, disk. `condition` is SQL, or empty."""
        if table not in self.experiments():
            raise NotMeasured(table, f"The run {RUN!r}")
        # commas separate the conditions outside of quotes and brackets
        conditions = re.findall(r"(?:'[^']*'|\([^)]*\)|[^,'(])+", condition)
        where = " AND ".join(f"({one})" for one in conditions if one.strip()) or "true"
        return self.query(
            f'SELECT CAST("{name}" AS DOUBLE) AS value, block, alpha, disk FROM {table}'
            f' WHERE {where} AND "{name}" IS NOT NULL ORDER BY block'
        )

    def listing(self) -> pd.DataFrame:
        """Every table with its columns and units: columns table, rows, columns."""
        others = self.connection.execute(
            "SELECT database_name || '.' || table_name FROM duckdb_tables()"
            " WHERE database_name IN ('printed', 'claims')"
            " ORDER BY database_name = 'claims', table_name"
        ).fetchall()
        places = {".".join(names): units for names, units in self._units.items()}
        found = []
        for place, units in (places | {place: {} for (place,) in others}).items():
            [(many,)] = self.connection.execute(f"SELECT count(*) FROM {place}").fetchall()
            names = [row[0] for row in self.connection.execute(f"DESCRIBE {place}").fetchall()]
            told = [
                f"{name} ({units[name]})" if units.get(name) else name
                for name in names
                if not units or name not in rows.HOW
            ]
            found.append((place, many, ", ".join(told)))
        return pd.DataFrame(found, columns=["table", "rows", "columns"])


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    """All objects in a JSON value."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for one in node if isinstance(node, list) else ():
        yield from _objects(one)


def schema_of(run: str) -> str:
    """What a run is called in queries: "published_2" for "published-2"."""
    return re.sub(r"\W", "_", run)


def _explained(error: duckdb.Error) -> str:
    """DuckDB's message on one line, which names the nearest name by itself."""
    return " ".join(str(error).split())


def open_database(run: str | Path = "") -> Database:
    """The database over the published runs, what is printed, and a run by its name or folder.

    RecordError where a record is damaged.
    """
    found = Database()
    found.add_published(runs.chapters(runs.PUBLISHED))
    if run:
        found.add_record(RUN, runs.load(run))
    return found
