"""What an update writes to the WAL: by kind of record, and by when pages are pruned."""

from collections.abc import Iterator

import pandas as pd
import psycopg

from pgrerun.chapters.hot.variants import (
    HOT,
    INDEXES,
    REDUCED,
    UPDATES,
    load,
    loaded,
    relations,
    run_in_server,
    updates,
)
from pgrerun.lab.instruments import wal
from pgrerun.lab.testbed import Row, Testbed, experiment

IMAGES, TABLES, PRUNED, ENTRIES, REMOVED, COMMITS, REST = (
    "full page images",
    "new versions (tables)",
    "pruning",
    "index entries",
    "index entries removed",
    "commit",
    "other",
)
PARTS = (TABLES, PRUNED, ENTRIES, REMOVED, IMAGES, COMMITS, REST)
FRESH, LATER = "right after a checkpoint", "later"
_MANAGERS = {
    "Heap": TABLES,
    "Heap2": TABLES,
    "Btree": ENTRIES,
    "BRIN": ENTRIES,
    "Transaction": COMMITS,
}
_PRUNE = {"PRUNE_ON_ACCESS", "PRUNE_VACUUM_SCAN", "PRUNE_VACUUM_CLEANUP", "PRUNE"}


@experiment(
    units={"bytes": "bytes/transaction", "records": "records/transaction"}, needs=["checkpoint"]
)
def wal_by_part(bed: Testbed) -> Iterator[Row]:
    """The WAL of as many updates of the reduced script as in the thread, by one session.

    In two halves: the first begins with a checkpoint.
    """
    server, ours = bed.server, relations(bed)
    server.extension("pg_walinspect")
    transactions = updates(ours, UPDATES / 2)
    for variant in INDEXES:
        with loaded(ours, server, variant) as (connection, _):
            connection.execute("CHECKPOINT")
            for number, phase in enumerate((FRESH, LATER)):
                with wal.written(connection) as log:
                    run_in_server(
                        connection, ours, REDUCED, transactions, bed.parameters.seed + number
                    )
                for part, row in by_part(connection, log).iterrows():
                    yield {
                        "variant": variant,
                        "phase": phase,
                        "part": part,
                        "bytes": row["bytes"] / transactions,
                        "records": row["records"] / transactions,
                    }


def by_part(connection: psycopg.Connection, log: wal.Written) -> pd.DataFrame:
    """Bytes and records of each of `PARTS`."""
    records = wal.records(connection, log.start, log.end)
    part = records["resource_manager"].map(_MANAGERS).fillna(REST)
    part = part.mask(records["record_type"].isin(_PRUNE), PRUNED)
    part = part.mask((part == ENTRIES) & (records["record_type"] == "DELETE"), REMOVED)
    without_images = records.assign(bytes=records["bytes"] - records["fpi_bytes"])
    own = without_images.groupby(part)[["bytes", "records"]].sum()
    own.loc[IMAGES] = (records["fpi_bytes"].sum(), 0)
    return own.reindex(list(PARTS), fill_value=0).rename_axis("part")


ROOMY = 70  # per cent of a page filled: room for a dozen versions
AT_EVERY_VISIT, WITHOUT_ROOM = "at every visit", "when a tenth of the page is left"


@experiment(units={"bytes": "bytes/update", "updates": "updates"})
def when_to_prune(bed: Testbed) -> Iterator[Row]:
    """WAL of the same updates when pruning waits for a full page and when it doesn't.

    The fillfactor is also the threshold of pruning: with less free than it leaves, a visit prunes.
    So pages are loaded with room, and the fillfactor is then raised for one of the two.
    """
    ours = relations(bed)
    number = updates(ours, 2)
    with bed.server.connect() as connection:
        for pruned, fillfactor in ((AT_EVERY_VISIT, ROOMY), (WITHOUT_ROOM, 100)):
            load(ours, connection, HOT, ROOMY)
            connection.execute(f"ALTER TABLE accounts SET (fillfactor = {fillfactor})")
            with wal.written(connection) as log:
                run_in_server(connection, ours, "update_account", number, bed.parameters.seed)
            yield {"pruned": pruned, "bytes": log.bytes / number, "updates": number}
