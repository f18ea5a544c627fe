"""What a record of a run is made of: its files, its columns, its flags, and the names it may have.

`runs` writes it, `reader` reads and checks it.
"""

import re

import pandas as pd

FORMAT = 3
READABLE = (1, 2, FORMAT)
"""Format 1 calls a variant an arm; from format 3 on an experiment has a table of its own."""
COLUMNS = {
    "run": "VARCHAR",
    "chapter": "VARCHAR",
    "experiment": "VARCHAR",
    "variant": "VARCHAR",
    "block": "INTEGER",
    "position": "INTEGER",  # of the variant in this block's order, from 0
    "metric": "VARCHAR",
    "value": "DOUBLE",
    "unit": "VARCHAR",
    "seed": "BIGINT",
    "started_at": "VARCHAR",  # ISO 8601
    "flags": "VARCHAR",  # JSON object
}
"""The columns of an observation and their types in Parquet."""

OBSERVATIONS, VERDICTS, ENVIRONMENT, JOURNAL = (
    "observations.parquet",
    "verdicts.json",
    "environment.json",
    "journal.jsonl",
)

NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
"""Names of runs and chapters: of folders, with room for our own prefixes and suffixes."""


def is_name(text: str) -> bool:
    return re.fullmatch(NAME, text) is not None


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of `COLUMNS`, each with its type."""
    kinds = {"VARCHAR": "str", "INTEGER": "int32", "BIGINT": "int64", "DOUBLE": "float64"}
    return frame.astype({name: kinds[kind] for name, kind in COLUMNS.items()})
