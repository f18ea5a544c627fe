"""Records that a test damages, or makes as they were before experiments had tables."""

import hashlib
import json
from pathlib import Path

import duckdb

from pgrerun.record import reader
from pgrerun.record.schema import ENVIRONMENT, OBSERVATIONS, VERDICTS


def changed(folder: Path, change) -> None:
    """Change what `environment.json` says by a function that may do it in place."""
    head = json.loads((folder / ENVIRONMENT).read_text())
    head = change(head) or head
    (folder / ENVIRONMENT).write_text(json.dumps(head, indent=1) + "\n")


def reseal(folder: Path) -> None:
    """Make the checksums those of the files as they are now."""
    sealed = [*folder.glob("*.parquet"), folder / VERDICTS]
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sealed}
    changed(folder, lambda head: head["sha256"].update(sums))


def rewrite(folder: Path, select: str, file: str = OBSERVATIONS) -> None:
    """Make a table of a record, or its observations, what a query gives over `o`, as they were."""
    path, new = folder / file, folder / "new.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW o AS SELECT * FROM '{path}'")
        connection.execute(f"COPY ({select}) TO '{new}' (FORMAT parquet)")
        (rows,) = connection.execute(f"SELECT count(*) FROM '{new}'").fetchone()
    new.replace(path)
    about = lambda head: head if file == OBSERVATIONS else head["tables"][path.stem]
    changed(folder, lambda head: about(head).update(rows=rows))
    reseal(folder)


def older(folder: Path) -> None:
    """Make a record as it was up to format 2: all numbers in one file of observations."""
    found = reader.read(folder).observations
    with duckdb.connect() as connection:
        connection.register("o", found)
        target = folder / OBSERVATIONS
        connection.execute(f"COPY (SELECT * FROM o) TO '{target}' (FORMAT parquet)")

    def change(head):
        for name in head.pop("tables", {}):
            (folder / f"{name}.parquet").unlink(missing_ok=True)
            head["sha256"].pop(f"{name}.parquet", None)
        head.update(format=2, rows=len(found))

    changed(folder, change)
    reseal(folder)
