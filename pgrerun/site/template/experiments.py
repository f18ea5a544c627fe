"""One experiment that compares two variants."""

from collections.abc import Iterator

from pgrerun.lab import statements
from pgrerun.lab.instruments import sizes, wal
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

SQL = statements.sql_folder(__file__)


@experiment(units={"pages": "pages", "wal": "bytes/row"})
def load(bed: Testbed) -> Iterator[Row]:
    """Load the same rows into each variant: pages of the relation, and WAL for each row."""
    rows = bed.parameters.rows

    def measure(block: Block, variant: str) -> dict[str, float]:
        with bed.server.connect() as connection:
            SQL.run(connection, f"variants.{variant}")
            with wal.written(connection) as written:
                SQL.run(connection, "variants.load", rows=rows)
            return {"pages": sizes.pages(connection, "item"), "wal": written.bytes / rows}

    yield from bed.compare(measure, {"variant": ["first", "second"]})
