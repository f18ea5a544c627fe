"""What an update costs: log, full page images, changed pages and index entries, and what a reader pays afterwards."""

from dataclasses import dataclass
from functools import partial

import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.hot import ways
from pgrerun.claims import MARGIN
from pgrerun.chapters.hot.bank import (
    ARMS, AS_BEFORE, HOT, INDEXED, NO_HOT, PAGE, REDUCED, SIZED, bank, blocks, churn, drive, printed_updates, replay, snapshot,
)  # fmt: skip
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, counters

IMAGES, TABLES, PRUNED, ENTRIES, REMOVED, COMMITS, REST = (
    "full page images", "new versions (tables)", "pruning", "index entries", "index entries removed", "commit", "other",
)  # fmt: skip
PARTS = (TABLES, PRUNED, ENTRIES, REMOVED, IMAGES, COMMITS, REST)
FRESH, LATER = "right after a checkpoint", "later"
_PRUNE = {"PRUNE_ON_ACCESS", "PRUNE_VACUUM_SCAN", "PRUNE_VACUUM_CLEANUP", "PRUNE"}


@dataclass(frozen=True)
class Written:
    """What transactions of the reduced script write, each arm's first half beginning with a checkpoint.

    `log`: a row per arm, phase (`FRESH`: the first half, `LATER`: the second) and part (one of `PARTS`), with
    bytes and records per transaction. `pages`: distinct pages that the first half changes, per
    transaction, a row per arm and a column per relation or index.
    """

    log: pd.DataFrame
    pages: pd.DataFrame


def budget(chapter: Chapter) -> Written:
    """Account for as many updates as in print, by one session with a fixed seed, in every arm."""
    server, here = chapter.server, bank(chapter)
    server.require("checkpoint")
    server.extension("pg_walinspect")
    transactions = here.updates(printed_updates() / 2)
    log, pages = [], {}
    for arm in ARMS:
        here.load(server, arm)
        with server.connect() as connection, snapshot(server, arm == AS_BEFORE):
            connection.execute("CHECKPOINT")
            for number, phase in enumerate((FRESH, LATER)):
                start = _position(connection)
                replay(connection, here, REDUCED, transactions, seed=chapter.parameters.seed + number)
                end = _position(connection)
                log.append((_log_by_part(connection, start, end) / transactions).reset_index().assign(arm=arm, phase=phase))
                if phase == FRESH:
                    pages[arm] = _changed(connection, start, end) / transactions
    changed = pd.DataFrame(pages).T.fillna(0).rename_axis("arm").reset_index()
    return Written(pd.concat(log, ignore_index=True), changed)


def _position(connection: psycopg.Connection) -> str:
    return connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()[0]


def _log_by_part(connection: psycopg.Connection, start: str, end: str) -> pd.DataFrame:
    records = counters.wal_records(connection, start, end)
    part = records["resource_manager"].map({"Heap": TABLES, "Heap2": TABLES, "Btree": ENTRIES, "BRIN": ENTRIES, "Transaction": COMMITS}).fillna(REST)
    part = part.mask(records["record_type"].isin(_PRUNE), PRUNED)
    part = part.mask((part == ENTRIES) & (records["record_type"] == "DELETE"), REMOVED)
    own = records.assign(part=part, bytes=records["bytes"] - records["fpi_bytes"]).groupby("part")[["bytes", "records"]].sum()
    own.loc[IMAGES] = (records["fpi_bytes"].sum(), 0)
    return own.reindex(list(PARTS), fill_value=0).rename_axis("part")


def _changed(connection: psycopg.Connection, start: str, end: str) -> pd.Series:
    changed = counters.wal_blocks(connection, start, end)
    changed = changed[(changed["fork"] == "main") & changed["relation"].str.startswith(("accounts", "history"), na=False)]
    return changed.set_index("relation")["blocks_distinct"].sort_index()


def log_of(found: Written, arm: str, phase: str = LATER) -> float:
    """Bytes of log per transaction of an arm in a phase."""
    rows = found.log[(found.log["arm"] == arm) & (found.log["phase"] == phase)]
    return float(rows["bytes"].sum())


def changed_pages(found: Written | None) -> pd.DataFrame | None:
    """The pages of `Written`, for the page."""
    return None if found is None else found.pages


def per_arm(found: Written | None) -> pd.DataFrame | None:
    """The budget in short: bytes and records of log per transaction in each phase, index entries, and bytes over those of HOT."""
    if found is None:
        return None
    rows = []
    for arm in ARMS:
        records = found.log[(found.log["arm"] == arm) & (found.log["phase"] == LATER)].set_index("part")["records"]
        row = {"arm": arm} | {f"bytes {phase}": log_of(found, arm, phase) for phase in (FRESH, LATER)}
        row |= {"bytes later, HOT = 1": log_of(found, arm) / log_of(found, HOT), "records": records.sum()}
        rows.append(row | {part: records[part] for part in (PRUNED, ENTRIES, REMOVED)})
    return pd.DataFrame(rows)


def indicative_facts(found: Written | None, kinds: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether there is a workload that HOT does nothing for, and whether what came with HOT costs it something.

    `kinds` is from `ways.ways`.
    """
    if found is None or kinds is None:
        return None
    pruning = found.log.set_index(["arm", "phase", "part"]).at[(INDEXED, LATER, PRUNED), "bytes"]
    return {
        "with the updated column indexed no update is HOT": ways.of(kinds, ways.BTREE)["heap_only"] == 0,
        "pruning, which came with HOT, writes log there nevertheless": bool(pruning > 0),
    }


def jump_facts(grown_ratio: float | None, found: Written | None, speed: statistics.Interval | None) -> dict[str, bool] | None:
    """What has to be true if stable sizes explain the jump of throughput.

    `grown_ratio`: pages without HOT (as in 2007) over those with it; `speed`: throughput of HOT over that of
    updates without HOT whose relations don't grow, since they are pruned. It counts only if it is resolved.
    """
    if None in (grown_ratio, speed) or found is None:
        return None
    facts = {
        "with neither HOT nor pruning accounts grows": grown_ratio > 1,
        "apart from sizes both do the same: HOT writes no less log": bool(log_of(found, HOT) >= log_of(found, NO_HOT)),
    }
    if not jump_note(speed):
        facts["where sizes are stable without HOT, HOT isn't faster"] = statistics.equivalent(speed, MARGIN)
    return facts


def jump_note(speed: statistics.Interval | None) -> str:
    """Says that `speed` (see `jump_facts`) doesn't decide, or nothing."""
    decided = speed is not None and speed.enough and (statistics.equivalent(speed, MARGIN) or speed.low > 1 + MARGIN)
    return "" if decided else "whether HOT is faster where sizes are stable without it isn't resolved in this run"


# ---- when to prune


ROOMY = 70  # per cent of a page filled: room for a dozen versions
AT_EVERY_VISIT, WITHOUT_ROOM = "at every visit", "when a tenth of the page is left"


def when_to_prune(chapter: Chapter) -> pd.DataFrame:
    """Log per update of the same relation when pruning waits for a full page and when it doesn't: columns pruned, bytes, updates.

    The fillfactor is also the threshold of pruning: below the room that it leaves, a visit prunes. So pages are
    loaded with room, and the fillfactor is then raised for one of the two.
    """
    here, rows = bank(chapter), []
    with chapter.server.connect() as connection:
        for name, fillfactor in ((AT_EVERY_VISIT, ROOMY), (WITHOUT_ROOM, 100)):
            here.load(connection, HOT, ROOMY)
            connection.execute(f"ALTER TABLE accounts SET (fillfactor = {fillfactor})")
            updates, start = 2 * here.tuples, _position(connection)
            churn(connection, here, updates, seed=chapter.parameters.seed)
            log = connection.execute("SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", [start]).fetchone()[0]
            rows.append((name, float(log) / updates, updates))
    return pd.DataFrame(rows, columns=["pruned", "bytes", "updates"])


def eager_over_lazy(found: pd.DataFrame | None) -> float | None:
    """Log per update with pruning at every visit over that with pruning only without room."""
    if found is None:
        return None
    log = found.set_index("pruned")["bytes"]
    return float(log[AT_EVERY_VISIT] / log[WITHOUT_ROOM])


# ---- reading: a pool as small as the print's, and relations that have grown


SMALLEST_POOL = 16  # pages


def pools(chapter: Chapter) -> pd.DataFrame:
    """What it costs to have a buffer pool of the print's share of the data, and one that holds everything.

    Columns: pool ("as in print", "holds everything"), pages (its size), data (pages of accounts and index), reads
    (of their pages, per transaction of the reduced script), waiting (share of the backends' active time that reading
    takes). The pool is empty at first. CannotMeasure where PostgreSQL's smallest pool holds most of the data.
    """
    here = bank(chapter)
    size = published.derived("hot_growth").loc[["reduced_accounts", "reduced_accounts_pkey"], "initial_hot"].sum()
    share = published.cell("hot_setup", "shared_buffers", "value") * 2**20 / PAGE / size
    here.load(chapter.server)
    with chapter.server.connect() as connection:
        data = sum(blocks(connection, *SIZED[:2]))
    if 2 * SMALLEST_POOL > data:
        raise CannotMeasure("larger relations", f"accounts and its index have {data} pages, and PostgreSQL's smallest buffer pool holds most of them; set accounts higher")
    transactions, rows = here.updates(printed_updates()), []
    cluster = chapter.cluster()
    for name, pages in (("as in print", max(SMALLEST_POOL, round(share * data))), ("holds everything", max(1024, 4 * data))):
        here.load(cluster)
        settings = {"shared_buffers": f"{PAGE // 1024 * pages}kB", "synchronous_commit": "off", "track_io_timing": "on"}
        with cluster.restarted(settings), cluster.connect() as probe, counters.Counters(cluster, settle=0.05) as counter:
            before = _reading_time(probe)
            with counter.measured() as delta:
                drive(cluster, here, REDUCED, transactions, seed=chapter.parameters.seed)
            waiting, active = (after - start for after, start in zip(_reading_time(probe), before))
        own = delta.relations[delta.relations["relation"].isin(SIZED[:2])]
        rows.append((name, pages, data, own["read"].sum() / transactions, waiting / active))
    return pd.DataFrame(rows, columns=["pool", "pages", "data", "reads", "waiting"])


def _reading_time(probe: psycopg.Connection) -> tuple[float, float]:
    """Milliseconds that backends of the database have spent reading blocks, and executing."""
    probe.execute("SELECT pg_stat_clear_snapshot()")
    return probe.execute("SELECT blk_read_time, active_time FROM pg_stat_database WHERE datname = current_database()").fetchone()


def bound_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the print's pool makes transactions read, and whether reading is then what they wait for.

    That all of it fitted into the print's memory is recomputed in `published.disagreements`.
    """
    if found is None:
        return None
    small, large = (found.loc[row] for row in (0, 1))
    return {
        "from the print's share of pool a transaction reads a page and more": bool(small["reads"] >= 1),
        "from a pool that holds everything it reads less than a tenth of that": bool(large["reads"] < 0.1 * small["reads"]),
        "reading takes most of the time that backends are at work": bool(small["waiting"] > 0.5),
    }


SCANS, LOOKUPS = "scans", "lookups"
_READERS = {SCANS: "PERFORM sum(abalance) FROM accounts", LOOKUPS: "PERFORM abalance FROM accounts WHERE aid = drawn"}


def reading(chapter: Chapter) -> None:
    """Time to scan accounts and to look up one, after as many updates as in print, with HOT and as before it.

    The reads run in the server, one after another, so that no message's way counts.
    """
    arms = [Arm(arm, partial(_read, chapter, arm)) for arm in (HOT, AS_BEFORE)]
    chapter.compare("reading", arms, {name: "ms" for name in _READERS}, warmup=0)


def _read(chapter: Chapter, arm: str, block: Block) -> dict[str, float]:
    server, here = chapter.server, bank(chapter)
    here.load(server, arm)
    with server.connect() as connection, snapshot(server, arm == AS_BEFORE):
        churn(connection, here, here.updates(printed_updates()), seed=block.seed)
        found = {}
        for name, statement in _READERS.items():
            times = 50 if name == SCANS else 3 * here.tuples
            loop = f"FOR n IN 1..{times} LOOP drawn := floor(random() * {here.tuples})::int + 1; {statement}; END LOOP;"
            with clock.stopwatch() as watch:
                connection.execute(f"DO $$ DECLARE drawn int; BEGIN {loop} END $$")
            found[name] = 1000 * watch.seconds / times
    return found
