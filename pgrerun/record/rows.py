"""The rows of one experiment: factors, metrics, and how each row came about.

An experiment yields rows: mappings from names to values. What is named in the experiment's `units`
is a metric, what is named in HOW tells how the row came about, and all else is a factor (variant,
clients, release). `frame` makes a typed table of them, `write` and `read` keep one as Parquet, and
`observations` gives the long form that records before format 3 had, in which records are compared.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from pgrerun.record import sequential
from pgrerun.record.schema import COLUMNS, typed

HOW: Mapping[str, str] = {
    "comparison": "INTEGER",  # of several in one experiment, from 0; empty where none is repeated
    "block": "INTEGER",  # from 0
    "position": "INTEGER",  # of the variant in this block's order, from 0
    "seed": "BIGINT",
    "started_at": "VARCHAR",  # ISO 8601
    "disk": "VARCHAR",  # in words, if it was slowed; empty for the machine's own
    "looks": "VARCHAR",  # after how many pairs one looked, as in "7,15,31"; empty for once
    "alpha": "DOUBLE",  # share of an interval's error that belongs to the look it ended at
    "other_load": "DOUBLE",  # share of the machine that others used meanwhile
    "answer": "VARCHAR",  # digest of what must be equal for all variants of a block
    "checkpoints": "INTEGER",  # that fell into the measurement
    "disturbed": "VARCHAR",  # which values can't be, in words
    "left_out": "BOOLEAN",  # whether its block counts no more
}
"""The columns that tell how a row came about, and their types in Parquet."""

TEXT, TRUTH = "text", "yes or no"
"""Units of metrics that are no numbers."""

_EMPTY: Mapping[str, Any] = {
    "started_at": "",
    "disk": "",
    "looks": "",
    "alpha": 1.0,
    "answer": "",
    "disturbed": "",
    "left_out": False,
}
_BUSY = 0.10  # share of the machine that others may use, as `testbed.BUSY`, which has no record
_FACTOR_TYPES = (str, bool, int, float, type(None))


def check(experiment: str, row: Mapping[str, Any], units: Mapping[str, str]) -> dict[str, Any]:
    """The row with plain values; ValueError if it can't be recorded.

    Numbers must be finite unless the row is disturbed; factors are texts, numbers or truth values.
    """
    if not set(row) & set(units):
        raise ValueError(f"{experiment}: a row without any of {', '.join(units)}: {dict(row)!r}")
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}
    # pandas has no other word for a text that isn't there
    plain = {n: None if n not in units and x != x else x for n, x in plain.items()}
    for name, value in plain.items():
        unit = units.get(name)
        kinds = {TEXT: str, TRUTH: bool}.get(unit or "", int | float if unit is not None else None)
        if not name.isidentifier():
            raise ValueError(f"{experiment}: {name!r} can't name a column")
        if name in HOW or value is None:
            continue
        if kinds is None and not isinstance(value, _FACTOR_TYPES):
            raise ValueError(f"{experiment}: factor {name} is {value!r:.80}")
        if kinds is not None and not isinstance(value, kinds):
            raise ValueError(f"{experiment}: {name} ({unit or 'a number'}) is {value!r:.80}")
        if isinstance(value, float) and not math.isfinite(value) and not plain.get("disturbed"):
            raise ValueError(f"{experiment}: {name} is no finite number")
    return plain


def frame(rows: Iterable[Mapping[str, Any]], units: Mapping[str, str]) -> pd.DataFrame:
    """A table of rows: factors, then metrics, then HOW, each column of one type.

    `alpha` is filled in: of what could have ended at an earlier look, the share of the error that
    the look has at which it did (see `sequential`).
    """
    # of what isn't finite JSON kept a text
    numbers = {name for name, unit in units.items() if unit != TEXT}
    found = [
        {n: float(x) if n in numbers and isinstance(x, str) else x for n, x in row.items()}
        for row in rows
    ]
    names = dict.fromkeys(name for row in found for name in row)
    factors = [name for name in names if name not in units and name not in HOW]
    columns = [*factors, *(name for name in units if name in names or not found), *HOW]
    kinds = {
        name: DTYPES[HOW[name]] if name in HOW else _kind([row.get(name) for row in found])
        for name in columns
    }
    table = pd.DataFrame(
        {
            name: pd.array([row.get(name, _EMPTY.get(name)) for row in found], dtype=kinds[name])
            for name in columns
        }
    )
    for (looks, _), part in table[table["looks"] != ""].groupby(["looks", "comparison"]):
        planned = [int(n) for n in looks.split(",")]
        blocks = int(part["block"].max()) + 1
        table.loc[part.index, "alpha"] = sequential.share(planned, blocks)
    return table


DTYPES = {  # in Parquet, and in a table
    "VARCHAR": "string",
    "INTEGER": "Int64",
    "BIGINT": "Int64",
    "DOUBLE": "Float64",
    "BOOLEAN": "boolean",
}


def _kind(values: list[Any]) -> str:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return "boolean"
    if known and all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return "Int64"
    if known and all(isinstance(value, int | float) for value in known):
        return "Float64"
    return "string"


def write(table: pd.DataFrame, path: Path) -> None:
    """Keep a table as Parquet."""
    columns = ", ".join(
        f'CAST("{name}" AS {HOW[name]}) AS "{name}"' if name in HOW else f'"{name}"'
        for name in table
    )
    with duckdb.connect() as connection:
        connection.register("frame", table)
        target = str(path).replace("'", "''")
        connection.execute(
            f"COPY (SELECT {columns} FROM frame) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )


def counted(table: pd.DataFrame, place: Sequence[str] = ("comparison", "block")) -> pd.DataFrame:
    """The rows that count: neither disturbed nor of a block that was left out.

    `place` are the columns that tell blocks apart.
    """
    if table.empty:
        return table
    out = table["disturbed"].fillna("") != ""
    blocks = table[list(place)]
    lost = pd.MultiIndex.from_frame(blocks[table["left_out"].fillna(False)])
    out |= pd.MultiIndex.from_frame(blocks).isin(lost) & table["block"].notna()
    return table[~out].reset_index(drop=True)


def undisturbed(observations: pd.DataFrame) -> pd.DataFrame:
    """The observations of an older record (see `schema.COLUMNS`) that count, by their flags."""
    flags = {text: json.loads(text) for text in observations["flags"].unique()}
    if not any({"disturbed", "left_out"} & set(found) for found in flags.values()):
        return observations
    marked = observations.assign(
        disturbed=[
            "disturbed" if "disturbed" in flags[one] else "" for one in observations["flags"]
        ],
        left_out=["left_out" in flags[one] for one in observations["flags"]],
    )
    return counted(marked, ("chapter", "experiment", "block"))[list(COLUMNS)]


def busy(table: pd.DataFrame) -> tuple[int, int]:
    """How many rows that count were measured while others used more than a tenth of the machine,
    and of how many that is known.
    """
    known = counted(table)["other_load"].dropna()
    return int((known > _BUSY).sum()), len(known)


def observations(
    run: str, chapter: str, experiment: str, table: pd.DataFrame, units: Mapping[str, str]
) -> pd.DataFrame:
    """The numbers of a table's rows that count, in the long form of `schema.COLUMNS`.

    A variant is called by the values of its factors.
    """
    factors = [name for name in table if name not in units and name not in HOW]
    rows = []
    for row in counted(table).to_dict("records"):
        variant = ", ".join(
            f"{row[name]}" if isinstance(row[name], str) else f"{name} {row[name]}"
            for name in factors
            if not pd.isna(row[name])
        )
        block, position, seed = (
            0 if pd.isna(row[name]) else int(row[name]) for name in ("block", "position", "seed")
        )
        head = (run, chapter, experiment, variant or experiment, block, position)
        for metric, unit in units.items():
            if unit in (TEXT, TRUTH) or metric not in row or pd.isna(row[metric]):
                continue
            rows.append((*head, metric, float(row[metric]), unit, seed, row["started_at"], "{}"))
    long = pd.DataFrame(rows, columns=list(COLUMNS))
    if long.empty:
        return long
    # what has no block may have many rows of one variant: they are told apart by their number
    same = long.duplicated(["variant", "block", "metric"], keep=False)
    numbers = long[same].groupby(["variant", "block", "metric"]).cumcount() + 1
    long.loc[same, "variant"] = long.loc[same, "variant"] + ", row " + numbers.astype(str)
    return typed(long)
