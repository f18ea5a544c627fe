"""Keys inserted in ascending order and in none: the size of their index, and WAL for each key."""

from collections.abc import Iterator

from pgrerun.lab import statements
from pgrerun.lab.instruments import sizes, wal
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

SQL = statements.sql_folder(__file__)


@experiment(
    units={"index_pages": "pages", "wal_per_key": "bytes/key"},
    needs=["checkpoint"],
)
def insert(bed: Testbed) -> Iterator[Row]:
    """Insert nine tenths of the keys, checkpoint, insert the rest: pages, and WAL of the rest.

    The checkpoint makes the first change of each page write the whole page to the WAL, as it does
    on a server that has been at work for a while.
    """
    rows = bed.parameters.rows
    before = rows - rows // 10

    def measure(block: Block, keys: str) -> dict[str, float]:
        with bed.server.connect() as connection:
            SQL.run(connection, "keys.table")
            SQL.run(connection, f"keys.{keys}", first=1, last=before, seed=block.seed)
            connection.execute("CHECKPOINT")
            with wal.written(connection) as written:
                SQL.run(connection, f"keys.{keys}", first=before + 1, last=rows, seed=block.seed)
            pages = sizes.pages(connection, "item_pkey")
        return {"index_pages": pages, "wal_per_key": written.bytes / (rows - before)}

    yield from bed.compare(measure, {"keys": ["sequential", "random"]}, warmup=0)
