"""What an update writes to the WAL: by kind of record, and by when pages are pruned."""

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.hot.variants import (
    HOT,
    REDUCED,
    SCRIPTS,
    UPDATES,
    VARIANTS,
    load,
    relations,
    run_in_server,
    updates,
)
from pgrerun.lab.instruments import wal
from pgrerun.lab.instruments.sessions import snapshot

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


@experiment(claims=["hot-004"], needs=["checkpoint"])
def by_part(chapter: Chapter) -> pd.DataFrame:
    """The WAL of as many updates of the reduced script as in the thread, by one session.

    A row per variant, phase (`FRESH`: the first half, which begins with a checkpoint; `LATER`: the
    second) and part (one of `PARTS`), with bytes and records per transaction.
    """
    server, ours = chapter.server, relations(chapter)
    server.extension("pg_walinspect")
    transactions = updates(ours, UPDATES / 2)
    parts = []
    for name, variant in VARIANTS.items():
        load(ours, server, name)
        with server.connect() as connection, snapshot(server, variant.old_snapshot):
            connection.execute("CHECKPOINT")
            for number, phase in enumerate((FRESH, LATER)):
                seed = chapter.parameters.seed + number
                with wal.written(connection) as log:
                    run_in_server(connection, ours, SCRIPTS[REDUCED], transactions, seed)
                own = _by_part(connection, log) / transactions
                parts.append(own.reset_index().assign(variant=name, phase=phase))
    return pd.concat(parts, ignore_index=True)


def _by_part(connection: psycopg.Connection, log: wal.Written) -> pd.DataFrame:
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


@experiment(claims=["hot-020"])
def when_to_prune(chapter: Chapter) -> pd.DataFrame:
    """WAL per update of the same relation when pruning waits for a full page and when it doesn't.

    The fillfactor is also the threshold of pruning: with less free than it leaves, a visit prunes.
    So pages are loaded with room, and the fillfactor is then raised for one of the two. Columns:
    pruned, bytes (per update), updates.
    """
    ours, rows = relations(chapter), []
    number = updates(ours, 2)
    with chapter.server.connect() as connection:
        for name, fillfactor in ((AT_EVERY_VISIT, ROOMY), (WITHOUT_ROOM, 100)):
            load(ours, connection, HOT, ROOMY)
            connection.execute(f"ALTER TABLE accounts SET (fillfactor = {fillfactor})")
            with wal.written(connection) as log:
                run_in_server(connection, ours, "update_account", number, chapter.parameters.seed)
            rows.append((name, log.bytes / number, number))
    return pd.DataFrame(rows, columns=["pruned", "bytes", "updates"])
