"""What the page "Ask the record" loads into the PostgreSQL that runs in it: every row, as CSV.

`tables.json` lists the tables with their columns, and what to ask for each chart; beside it lies a
CSV file for each table. Schemas are the chapters, `printed`, `claims` and `charts`. The last has
what each chart draws as a table: its own query is DuckDB's, of which PostgreSQL can't answer all.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd

from pgrerun import parameters
from pgrerun.page import declared
from pgrerun.record.database import Database, NotMeasured
from pgrerun.site.advice import Teller

LISTING = "tables.json"
_TYPES = {"i": "bigint", "u": "bigint", "f": "double precision", "b": "boolean"}
# DuckDB has it, and so has every query of this book's pages.
FUNCTIONS = """
CREATE FUNCTION public.median_of(double precision[]) RETURNS double precision
    LANGUAGE sql IMMUTABLE AS
    'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM unnest($1) AS x';
CREATE AGGREGATE public.median(double precision) (
    SFUNC = array_append, STYPE = double precision[], FINALFUNC = public.median_of);
"""


def frames(teller: Teller) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Schema, name and rows of every table: of records, charts, what is printed, and claims."""
    for chapter, record in teller.records.items():
        for name, table in record.tables.get(chapter, {}).items():
            yield chapter, name, table
        for name, query in _charts(chapter).items():
            with suppress(NotMeasured):
                yield "charts", f"{chapter}/{name}", teller.database(chapter).query(query)
    with Database() as database:
        for record in teller.records.values():
            database.add_verdicts("run", record)
        listed = database.query(
            "SELECT database_name AS schema, table_name AS name FROM duckdb_tables()"
            " WHERE database_name IN ('printed', 'claims') ORDER BY 1, 2"
        )
        for schema, name in listed.itertuples(index=False):
            yield schema, name, database.query(f'FROM {schema}."{name}"')


def write(folder: Path, teller: Teller) -> None:
    """Write the files for the page into `folder`, which must not have any."""
    folder.mkdir(parents=True)
    tables = []
    for schema, name, frame in frames(teller):
        file = f"{schema}.{name}.csv".replace("/", ".")
        frame.to_csv(folder / file, index=False)
        columns = [(str(column), _type(frame[column])) for column in frame]
        made_of = ", ".join(f'"{column}" {kind}' for column, kind in columns)
        tables.append(
            {
                "schema": schema,
                "name": name,
                "columns": columns,
                "file": file,
                "rows": len(frame),
                "statement": f'CREATE TABLE {schema}."{name}" ({made_of})',
            }
        )
    listing = {
        "functions": FUNCTIONS,
        "tables": tables,
        "charts": {
            table["name"]: _question(table["name"])
            for table in tables
            if table["schema"] == "charts"
        },
    }
    (folder / LISTING).write_text(json.dumps(listing), "utf-8")


def _charts(chapter: str) -> dict[str, str]:
    """The query of each chart that a chapter declares."""
    known = declared.charts_of(parameters.folder(chapter))
    return {name: chart.query.strip() for name, chart in known.items() if chart.query}


def _question(chart: str) -> str:
    """What the page asks for CHAPTER/CHART, below the query that DuckDB was asked for it."""
    chapter, _, name = chart.partition("/")
    asked = "".join(f"\n-- {line}" for line in _charts(chapter)[name].splitlines())
    return f'-- Made of the rows of {chapter} by:{asked}\nSELECT * FROM charts."{chart}"'


def _type(column: "pd.Series[object]") -> str:
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all() and column.isna().any():
        return "double precision"  # a count that some rows lack
    return _TYPES.get(column.dtype.kind, "text")
