"""Runs QUEL on a PostgreSQL server, statement by statement, as INGRES's terminal monitor did."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pgrerun.errors import QueryError
from pgrerun.lab.quel import tree
from pgrerun.lab.quel.reading import pointed, written
from pgrerun.lab.quel.sql import Translator

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True)
class Answer:
    """What became of one statement.

    text: the statement as it was written, on one line; sql: what was sent ("" for a declaration);
    columns and tuples: what a retrieve brought to the screen; count: tuples retrieved or changed,
    None where there is no such number.
    """

    statement: tree.Statement
    text: str
    sql: str
    columns: tuple[str, ...] = ()
    tuples: tuple[tuple[Any, ...], ...] = ()
    count: int | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """The tuples as a frame; columns of the same name get numbers."""
        seen: dict[str, int] = {}
        labels = []
        for column in self.columns:
            seen[column] = seen.get(column, 0) + 1
            labels.append(column if seen[column] == 1 else f"{column} ({seen[column]})")
        return pd.DataFrame(self.tuples, columns=labels)


class Session:
    """QUEL on one connection; range variables hold until they are declared again.

    connection: psycopg's, with autocommit, so that `begin` and `end` are the transaction's. `copy`
    reads and writes files of the client's disk.
    """

    def __init__(self, connection: "psycopg.Connection"):
        self.connection = connection
        self.translator = Translator()

    def run(self, text: str, *values: str | int | float) -> list[Answer]:
        """Run the statements of `text` in order, `values` in place of $1, $2, ...

        The whole text is read first: nothing runs if it isn't QUEL. QueryError with
        line and column, also for what the server refuses; statements before it stay done.
        """
        statements = written(text)
        self.translator.values = values
        answers = []
        for statement, line in statements:
            try:
                answers.append(self._answer(statement, line, self.translator.sql(statement)))
            except QueryError as error:
                raise pointed(error, text) from None
            except Exception as error:
                if not hasattr(error, "diag"):  # only the server's own errors are about the query
                    raise
                raise pointed(_refused(error, statement, self.translator), text) from None
        return answers

    def _answer(self, statement: tree.Statement, text: str, sql: str) -> Answer:
        if not sql:
            return Answer(statement, text, sql)
        if isinstance(statement, tree.Copy):
            return Answer(statement, text, sql, count=self._copy(statement, sql))
        cursor = self.connection.execute(sql)
        count = cursor.rowcount if cursor.rowcount >= 0 else None
        if cursor.description is None:
            return Answer(statement, text, sql, count=count)
        columns = tuple(column.name for column in cursor.description)
        return Answer(statement, text, sql, columns, tuple(map(tuple, cursor.fetchall())), count)

    def _copy(self, statement: tree.Copy, sql: str) -> int:
        with self.connection.cursor() as cursor:
            try:
                if statement.incoming:
                    content = Path(statement.file).read_bytes()
                    with cursor.copy(sql) as copy:
                        copy.write(content)
                else:
                    with open(statement.file, "wb") as file, cursor.copy(sql) as copy:
                        for data in copy:
                            file.write(data)
            except OSError as error:
                raise QueryError(
                    f"The file {statement.file} can't be used: {error.strerror}. Files are those of"
                    " this machine, not of the server's.",
                    *statement.at,
                ) from None
            return cursor.rowcount


def _refused(error: Any, statement: tree.Statement, translator: Translator) -> QueryError:
    """What the server said, at the attribute it is about, or else at the statement.

    `error` is psycopg's own, which is known here by its `diag` only.
    """
    diagnosis = error.diag
    said = (diagnosis.message_primary or str(error)).rstrip(".")
    sql = translator.sql(statement)
    line, column = statement.at
    if diagnosis.statement_position:
        word = re.match(r'[\w."]+', sql[int(diagnosis.statement_position) - 1 :])
        found = [
            node for node in statement.nodes() if word and _names(node, word[0].replace('"', ""))
        ]
        line, column = found[0].at if found else (line, column)
    return QueryError(f"PostgreSQL says: {said}. As SQL the statement is: {sql}", line, column)


def _names(node: tree.Node, word: str) -> bool:
    match node:
        case tree.Attribute(variable, attribute):
            return word == f"{variable}.{attribute}"
        case tree.Call(function):
            return word == function
        case tree.Assignment(name):
            return word == name
    return False


def described(answers: Sequence[Answer]) -> pd.DataFrame:
    """What was run, one row per statement: postquel, sql, tuples."""
    rows = [(answer.text, answer.sql, answer.count) for answer in answers]
    return pd.DataFrame(rows, columns=["postquel", "sql", "tuples"]).astype({"tuples": "Int64"})
