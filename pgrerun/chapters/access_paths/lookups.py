"""The talk's experiment, and what index-only scans gain or lose elsewhere: lookups by key and ranges, with short and ample memory.

Memory is made short with a small buffer pool and direct I/O, so that a page which isn't in the pool comes from the disk.
With a small pool alone it comes from the kernel's cache, whatever is set.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import COVERED, KEYED, PAGE, SCATTERED, accounts, blocks, only, pool_of_print, timed
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import pages, pgbench, plans
from pgrerun.server import Cluster, Server

DIRECT, KERNEL, AMPLE = "small pool, direct I/O", "small pool, kernel's cache", "ample pool"
PLACES = (DIRECT, KERNEL, AMPLE)
KEY, COVERING = "primary key", "covering index"
AGAIN = f"{COVERING}, {AMPLE}, again"
_SCRIPT = "\\set aid random(1, :rows)\nSELECT abalance FROM {} WHERE aid = :aid;\n"


def place(chapter: Chapter, name: str) -> Server:
    """A server with as much memory as the name says; somebody's server has ample memory, as far as we know.

    CannotMeasure where memory is to be short and the server is somebody's, or files can't be read past the kernel's cache.
    """
    pool = pool_of_print(chapter.parameters.accounts)
    if name == AMPLE:
        if chapter.borrowed:
            return chapter.server
        stock = _ample(chapter) <= _STOCK
        return chapter.cluster() if stock else chapter.cluster(shared_buffers=f"{_ample(chapter)}kB")
    if name == KERNEL:
        return chapter.cluster(shared_buffers=f"{pool * PAGE // 1024}kB")
    return _without_kernels_cache(chapter, pool * PAGE // 1024)


def filled(chapter: Chapter, where: str, *names: str) -> Server:
    """The server of that name, with these relations of accounts.

    Past the kernel's cache and through a small pool, every page would be written on its own: they are loaded before that.
    """
    server, rows = place(chapter, where), accounts(chapter)
    missing = rows.missing(server, *names)
    if missing and where == DIRECT:
        with server.restarted({"debug_io_direct": "", "shared_buffers": f"{_ample(chapter)}kB"}):
            rows.load(server, *missing)
    elif missing:
        rows.load(server, *missing)
    return server


def _without_kernels_cache(chapter: Chapter, kilobytes: int) -> Cluster:
    """A server with such a pool and direct I/O. CannotMeasure where it doesn't start."""
    try:
        return chapter.cluster(shared_buffers=f"{kilobytes}kB", debug_io_direct="data")
    except ServerError as error:
        raise CannotMeasure(
            "direct I/O", f"memory can't be made short without cgroups unless files are read past the kernel's cache, and a server with direct I/O does not start here ({error})"
        ) from None


_STOCK = 128 * 1024  # kB of shared_buffers that initdb sets


def _ample(chapter: Chapter) -> int:
    """kB of buffers that hold accounts in all its forms, twice over."""
    return 8 * 1024 + 8 * 128 * chapter.parameters.accounts // 1024


# ---- the talk's experiment


def arm(where: str, index: str) -> str:
    """The arm's name in the run record."""
    return f"{index}, {where}"


def lookups(chapter: Chapter) -> None:
    """pgbench's SELECT by key from as many sessions as in print, with the primary key alone and with the covering index.

    On somebody's server only what memory holds is measured, and CannotMeasure tells why.
    """
    places = (AMPLE,) if chapter.borrowed else PLACES
    arms = []
    for where in places:
        server = filled(chapter, where, KEYED, COVERED, *((SCATTERED,) if where == DIRECT else ()))  # the third for what comes after
        for index, relation in ((KEY, KEYED), (COVERING, COVERED)):
            warm = None if where == AMPLE else partial(_warm_up, chapter, server, relation)
            if where == AMPLE:
                _bring_in(server, relation)
            arms.append(Arm(arm(where, index), partial(_looked_up, chapter, server, relation), prepare=warm))
    arms.append(Arm(AGAIN, partial(_looked_up, chapter, place(chapter, AMPLE), COVERED)))
    chapter.compare("lookups", arms, {"throughput": "transactions/s", "heap_reads": "pages per lookup", "index_reads": "pages per lookup"}, warmup=0)
    if chapter.borrowed:
        place(chapter, DIRECT)


def _bring_in(server: Server, relation: str) -> None:
    """Read all that lookups will need into a pool that holds it: of accounts with the primary key alone, index and table."""
    with server.connect() as connection:
        only(connection, "indexonlyscan")
        connection.execute(f"SELECT count(abalance) FROM {relation} WHERE aid > 0")


def _warm_up(chapter: Chapter, server: Server, relation: str, block: Block) -> None:
    """Fill a small pool with this arm's own pages, by lookups for other keys than those that will be timed."""
    rows = chapter.parameters.accounts
    enough = min(2 * pool_of_print(rows), chapter.parameters.lookups)
    with server.connect() as connection:
        connection.execute("SELECT setseed(%s::float8 / 2147483648)", [block.seed])
        keys = f"SELECT floor(random() * {rows})::int + 1 AS key FROM generate_series(1, {enough}) OFFSET 0"
        connection.execute(f"SELECT count((SELECT abalance FROM {relation} WHERE aid = key)) FROM ({keys}) AS keys")
        connection.execute("SELECT pg_stat_force_next_flush()")  # else its reads might be counted among those that come next


def _looked_up(chapter: Chapter, server: Server, relation: str, block: Block) -> dict[str, float]:
    given = chapter.parameters
    with server.connect() as connection:
        before = _reads(connection, relation)
        done = pgbench.run(
            server, _SCRIPT.format(relation), clients=given.clients, jobs=min(2, given.clients), transactions=max(1, given.lookups // given.clients),
            variables={"rows": given.accounts}, seed=block.seed, protocol="prepared",
        )  # fmt: skip
        heap, index = (after - earlier for after, earlier in zip(_reads(connection, relation), before))
    return {"throughput": done.tps, "heap_reads": heap / done.transactions, "index_reads": index / done.transactions}


def _reads(connection: psycopg.Connection, relation: str) -> tuple[int, int]:
    """Pages of a table and of its indexes read into the pool, once pgbench's sessions have left and reported."""
    own = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench' AND datname = current_database()"
    while connection.execute(own).fetchone()[0]:
        pass
    connection.execute("SELECT pg_stat_clear_snapshot()")
    return connection.execute("SELECT heap_blks_read, idx_blks_read FROM pg_statio_user_tables WHERE relid = %s::text::regclass", [relation]).fetchone()


def covering_over_key(chapter: Chapter, where: str = DIRECT) -> statistics.Interval | None:
    """Throughput with the covering index over that with the primary key alone."""
    if arm(where, KEY) not in chapter.table("lookups", "throughput"):
        return None
    return chapter.ratio("lookups", "throughput", arm(where, COVERING), arm(where, KEY))


# ---- ranges: where an index-only scan gains and where it loses

FRACTIONS = (0, 25, 50, 75, 90, 100)  # per cent of the pages all-visible
ONLY, PLAIN = "index-only scan", "plain index scan"
_CHEAP = 2  # times as many blocks at both ends, on which claims are judged


def marked(percent: int, scan: str) -> str:
    """The arm's name in the run record."""
    return f"{scan}, {percent} % all-visible"


def fractions(chapter: Chapter) -> None:
    """Sum a column over all of accounts in index order, by an index-only scan and by a plain one, with ever more pages all-visible.

    In memory throughout, and the rows lie in the index's order: what is left is the processor's work.
    """
    server = filled(chapter, AMPLE, COVERED)
    with server.connect() as connection:
        for percent in FRACTIONS:
            connection.execute(f"VACUUM {COVERED}")
            _unmark(connection, COVERED, percent)
            arms = [Arm(marked(percent, scan), partial(_summed, connection, COVERED, scan, 1, chapter.parameters.accounts)) for scan in (ONLY, PLAIN)]
            more = _CHEAP if percent in (min(FRACTIONS), max(FRACTIONS)) else 1
            chapter.compare(f"fractions_{percent}", arms, {"seconds": "s"}, pairs=more * chapter.parameters.pairs)
        connection.execute(f"VACUUM {COVERED}")


def _unmark(connection: psycopg.Connection, relation: str, percent: int) -> None:
    """Leave about so many per cent of the pages all-visible: a deletion clears a page's bit, also when it is rolled back."""
    with connection.transaction(force_rollback=True):
        connection.execute(
            f"DELETE FROM {relation} WHERE ctid IN (SELECT format('(%%s,1)', page)::tid FROM generate_series(0, {blocks(connection, relation) - 1}) AS page"
            f" WHERE mod(abs(hashint4(page::int)::bigint), 100) >= {percent})", []
        )  # fmt: skip


def _summed(connection: psycopg.Connection, relation: str, scan: str, first: int, rows: int, block: Block) -> dict[str, float]:
    """One range of keys, read by the given scan; which one moves from block to block is none of the time's business."""
    only(connection, "indexonlyscan" if scan == ONLY else "indexscan")
    last = first + rows - 1
    return {"seconds": timed(connection, f"SELECT count(abalance) FROM {relation} WHERE aid BETWEEN {first} AND {last}", rows)}


def plain_over_only(chapter: Chapter, percent: int) -> statistics.Interval | None:
    """Time of the plain index scan over that of the index-only scan: the gain."""
    return chapter.ratio(f"fractions_{percent}", "seconds", marked(percent, PLAIN), marked(percent, ONLY))


def only_over_plain(chapter: Chapter, percent: int = 0) -> statistics.Interval | None:
    """The other way round: the loss."""
    return chapter.ratio(f"fractions_{percent}", "seconds", marked(percent, ONLY), marked(percent, PLAIN))


FAR = "in random order, direct I/O"
RANGES = {"in index order, ample pool": (AMPLE, COVERED), "in random order, ample pool": (AMPLE, SCATTERED), FAR: (DIRECT, SCATTERED)}
_RANGE = 2000  # rows


def ranges(chapter: Chapter) -> None:
    """Sum a column over a few thousand neighbours in the index, which lie together on the table's pages or anywhere."""
    for name, (where, relation) in RANGES.items():
        server = filled(chapter, where, relation)
        with server.connect() as connection:
            arms = [Arm(f"{scan}, {name}", partial(_neighbours, connection, relation, scan, chapter.parameters.accounts)) for scan in (ONLY, PLAIN)]
            chapter.compare(f"ranges {name}", arms, {"seconds": "s"})


def _neighbours(connection: psycopg.Connection, relation: str, scan: str, rows: int, block: Block) -> dict[str, float]:
    """A range that no earlier block has read. The index-only scan's comes once before: its few leaves belong into the pool."""
    first = 1 + block.seed % (rows - _RANGE)
    if scan == ONLY:
        _summed(connection, relation, scan, first, _RANGE, block)
    return _summed(connection, relation, scan, first, _RANGE, block)


def range_gain(chapter: Chapter, name: str) -> statistics.Interval | None:
    """Time of the plain index scan over that of the index-only scan."""
    return chapter.ratio(f"ranges {name}", "seconds", f"{PLAIN}, {name}", f"{ONLY}, {name}")


# ---- updates

UPDATES = (0, 0.1, 0.3, 1, 3)  # per page of the table, since it was vacuumed


@dataclass(frozen=True)
class Updated:
    """What is left of an index-only scan after so many updates per page: rows looked up in the table as a share of all."""

    updates: float
    fetched: float

    @property
    def computed(self) -> float:
        """Of pages hit at random: the share that was hit at least once."""
        return 1 - math.exp(-self.updates)


def updates(chapter: Chapter) -> list[Updated]:
    """Update rows drawn at random, then sum all of accounts by an index-only scan and by a plain one; and count heap fetches."""
    server, found, rows = place(chapter, AMPLE), [], chapter.parameters.accounts
    with server.connect() as connection:
        accounts(chapter).load(connection, COVERED)
        size = blocks(connection, COVERED)
        for number in UPDATES:
            connection.execute(f"VACUUM {COVERED}")
            _update(connection, round(number * size), rows, chapter.parameters.seed)
            only(connection, "indexonlyscan")
            for _ in range(2):  # the first one marks the entries of dead versions
                plan = plans.explain(connection, f"SELECT count(abalance) FROM {COVERED} WHERE aid BETWEEN 1 AND {rows}", execute=True)
            found.append(Updated(number, plan.children[0].properties["Heap Fetches"] / rows))
            arms = [Arm(updated(number, scan), partial(_summed, connection, COVERED, scan, 1, rows)) for scan in (ONLY, PLAIN)]
            chapter.compare(f"updates_{number}", arms, {"seconds": "s"})
    return found


def _update(connection: psycopg.Connection, number: int, rows: int, seed: int) -> None:
    """Update that many rows, drawn with setseed."""
    connection.execute("SELECT setseed(%s::float8 / 2147483648)", [seed])
    connection.execute("CREATE TEMP TABLE drawn AS SELECT DISTINCT floor(random() * %s)::int + 1 AS aid FROM generate_series(1, %s)", [rows, number])
    connection.execute("ANALYZE drawn")
    connection.execute(f"UPDATE {COVERED} SET abalance = abalance + 1 FROM drawn WHERE {COVERED}.aid = drawn.aid")
    connection.execute("DROP TABLE drawn")


def updated(number: float, scan: str) -> str:
    """The arm's name in the run record."""
    return f"{scan} after {number:g} updates per page"


def gain_after(chapter: Chapter, number: float) -> statistics.Interval | None:
    """Time of the plain index scan over that of the index-only scan, after so many updates per page."""
    return chapter.ratio(f"updates_{number}", "seconds", updated(number, PLAIN), updated(number, ONLY))


def update_facts(found: list[Updated] | None) -> dict[str, bool] | None:
    """Whether updates make an index-only scan visit the table again for nearly every row."""
    if found is None:
        return None
    return {
        "on a vacuumed table no row has to be looked up in the table": found[0].fetched == 0,
        "a few updates per page later more than nine rows in ten have to be": found[-1].fetched > 0.9,
        "they are as many as there are rows on pages hit at random": all(abs(one.fetched - one.computed) < 0.05 for one in found),
    }


def gains(chapter: Chapter) -> dict[str, statistics.Interval]:
    """Every gain of index-only scans in this chapter, by case; those that did not run are left out."""
    found: dict[str, statistics.Interval | None] = {f"lookups, {where}": covering_over_key(chapter, where) for where in PLACES}
    found |= {f"range {name}": range_gain(chapter, name) for name in RANGES}
    found |= {f"whole table, {percent} % of its pages all-visible": plain_over_only(chapter, percent) for percent in (100, 0)}
    return {name: gain for name, gain in found.items() if gain is not None}


def short_over_ample(chapter: Chapter) -> statistics.Interval | None:
    """The gain of the covering index where the table doesn't fit into memory, over its gain where it does."""
    table = chapter.table("lookups", "throughput")
    if arm(DIRECT, KEY) not in table:
        return None
    short, ample = (table[arm(where, COVERING)] / table[arm(where, KEY)] for where in (DIRECT, AMPLE))
    return statistics.ratio(short, ample, seed=chapter.parameters.seed)


# ---- an index scan against a sequential one

WARM, COLD = "everything in memory", "everything on the disk"
SHARES = {WARM: (0.001, 0.003, 0.01, 0.03, 0.1, 0.3), COLD: (0.0003, 0.001, 0.003, 0.01)}  # of the rows
SEQUENTIAL, INDEX = "sequential scan", "index scan"


def breakeven(chapter: Chapter) -> dict[str, tuple[int, int]] | None:
    """Read ever more of the rows, which lie on the pages in random order, by an index scan and by a sequential scan; with the pool full of them, and empty.

    Returns what `_reads_together` does. The pool holds everything, and what isn't in it is read past the kernel's cache: in a small
    pool a session may hold few pages at once, and a sequential scan couldn't read several of them together.
    """
    if chapter.borrowed:
        with filled(chapter, AMPLE, SCATTERED).connect() as connection:
            _compared(chapter, connection, WARM)
        place(chapter, DIRECT)  # CannotMeasure: the kernel's cache can't be avoided there
    server = filled(chapter, DIRECT, SCATTERED)
    server.extension("pg_buffercache")
    with server.restarted({"shared_buffers": f"{_ample(chapter)}kB"}), server.connect() as connection:
        for where in SHARES:
            _compared(chapter, connection, where)
        return _reads_together(connection, chapter.parameters.accounts)


def _compared(chapter: Chapter, connection: psycopg.Connection, where: str) -> None:
    rows, shares, cold = chapter.parameters.accounts, SHARES[where], partial(_emptied, connection) if where == COLD else None
    arms = [Arm(f"{INDEX}, {share:g}", partial(_shared, connection, INDEX, round(share * rows), rows), cold) for share in shares]
    arms.append(Arm(SEQUENTIAL, partial(_shared, connection, SEQUENTIAL, round(shares[1] * rows), rows), cold))  # it reads all pages, however few rows count
    chapter.compare(f"breakeven {where}", arms, {"seconds": "s"}, warmup=0 if cold else 1)  # what has been emptied isn't warm


def _emptied(connection: psycopg.Connection, block: Block | None = None) -> None:
    pages.evict_all(connection)
    connection.execute(f"EXPLAIN SELECT FROM {SCATTERED} WHERE aid = 1")  # so that the catalogs are in the pool again


def _shared(connection: psycopg.Connection, scan: str, rows: int, all_rows: int, block: Block) -> dict[str, float]:
    only(connection, "indexscan" if scan == INDEX else "seqscan")
    first = 1 + block.seed % (all_rows - rows)
    return {"seconds": timed(connection, f"SELECT count(bid) FROM {SCATTERED} WHERE aid BETWEEN {first} AND {first + rows - 1}", rows)}


def _reads_together(connection: psycopg.Connection, rows: int) -> dict[str, tuple[int, int]] | None:
    """Of a sequential scan, and of an index scan for a hundredth of the rows, from an empty pool: pages brought in, and read operations.

    None before PostgreSQL 18, which doesn't count the bytes of a read.
    """
    if connection.info.server_version < 180000:
        return None
    found, counted = {}, "SELECT pg_stat_force_next_flush(), sum(reads), sum(read_bytes) / %s FROM pg_stat_io WHERE object = 'relation'"
    for scan, number in ((SEQUENTIAL, rows), (INDEX, rows // 100)):
        _emptied(connection)
        readings = []
        for _ in range(2):
            if readings:
                _shared(connection, scan, number, rows + 1, Block(0, 0, 0))
            connection.execute(counted, [PAGE])  # what was done before is reported when a statement ends
            readings.append(connection.execute(counted, [PAGE]).fetchone())
        found[scan] = tuple(int(readings[1][column] - readings[0][column]) for column in (2, 1))
    return found


def measured_breakeven(chapter: Chapter, where: str) -> statistics.Interval | None:
    """The share of rows from which on the index scan is slower, interpolated in each block between the shares measured (on a logarithmic scale)."""
    table = chapter.table(f"breakeven {where}", "seconds")
    if table.empty:
        return None
    shares = SHARES[where]
    ratios = np.array([table[f"{INDEX}, {share:g}"] / table[SEQUENTIAL] for share in shares])
    return statistics.median([_crossing(np.log(shares), np.log(block)) for block in ratios.T])


def _crossing(x: np.ndarray, y: np.ndarray) -> float:
    """exp of where y passes 0, extended linearly beyond the ends."""
    after = next((i for i in range(1, len(x)) if y[i] >= 0), len(x) - 1)
    slope = (y[after] - y[after - 1]) / (x[after] - x[after - 1])
    return float(np.exp(x[after] - y[after] / slope))


def planned_breakeven(chapter: Chapter) -> float | None:
    """The share of rows from which on the planner, at its stock costs, takes the index scan for the slower one."""
    if chapter.borrowed:
        return None
    rows = chapter.parameters.accounts
    with filled(chapter, AMPLE, SCATTERED).connect() as connection:

        def dearer(share: float) -> bool:
            query, costs = f"SELECT count(bid) FROM {SCATTERED} WHERE aid BETWEEN 1 AND {round(share * rows)}", []
            for scan in ("indexscan", "seqscan"):
                only(connection, scan)
                costs.append(plans.explain(connection, query).total_cost)
            return costs[0] > costs[1]

        low, high = 1e-5, 1.0
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if dearer(middle) else (middle, high)
    return high


def over_planned(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """The share of rows from which on the index scan is slower, over the share from which on the planner thinks so."""
    planned, found = planned_breakeven(chapter), {where: measured_breakeven(chapter, where) for where in SHARES}
    if planned is None or None in found.values():
        return None
    return {where: share.times(1 / planned) for where, share in found.items()}
