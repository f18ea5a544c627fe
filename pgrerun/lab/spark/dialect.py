"""What the queries say in PostgreSQL's SQL, said in Spark's."""

import re

_INTO = re.compile(r"^CREATE TABLE (\S+) AS ")
_NAME = re.compile(r'"(\w+)"')


def spark_sql(sql: str) -> str:
    """A statement of `quel.Translator` or of `relations.checksum_sql` for Spark.

    A stored result is Parquet, as the relations are; names that SQL reserves stand in backticks.
    Everything else in the retrievals is the same in both.
    """
    return _NAME.sub(r"`\1`", _INTO.sub(r"CREATE TABLE \1 USING parquet AS ", sql))
