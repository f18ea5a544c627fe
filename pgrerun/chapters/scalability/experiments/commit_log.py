"""The commit log's cache in 9.1, in 9.2 and today: what it holds, and who waits for its reads.

Whoever reads a row without a hint asks for the page of the commit log that has its transaction.
So 9.1 and 9.2 get rows that seem to be written by transactions on all of its pages; a server of
today can be asked for a transaction by its number.
"""

import os
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg

from pgrerun.chapters.scalability.experiments.builds import RELEASES, TODAY, complete, programs
from pgrerun.chapters.scalability.load import SMALL_POOL, SQL
from pgrerun.errors import CannotMeasure
from pgrerun.lab import disk
from pgrerun.lab.instruments import PAGE, single_user
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, private, releases, value
from pgrerun.lab.testbed import Row, Testbed, experiment

ON_A_PAGE, IN_A_FILE = 32_768, 32  # transactions of a page, and pages of a file
PAGES = 44  # that are asked for: more than the talk's bound
COMMITTED = b"\x55"  # four transactions
HEADER = 24  # bytes of a page before its line pointers
SCANS = 7  # each asks by rows of its own, whose hints it sets
POOLS = (SMALL_POOL, "128MB", "1GB")


@experiment(units={"kilobytes": "kB"}, needs=["restart"])
def clog_buffers_on_builds(bed: Testbed) -> Iterator[Row]:
    """Memory for the commit log by the size of the buffer pool, in 9.1 and in 9.2.

    Neither tells it. So page after page of the log is asked for, and then all of them backwards:
    those that aren't read again were still there.
    """
    for name in complete([RELEASES]):
        with disk.Slowed() as watched, Cluster(programs(name), disk=watched) as tested:
            many_transactions(tested, PAGES)
            _rows_that_ask(tested)
            for number, pool in enumerate(POOLS):
                with tested.restarted({"shared_buffers": pool}), tested.connect() as connection:
                    SQL.run(connection, "commit_log.prepare_asking")
                    SQL.run(connection, "commit_log.ask_forwards", scan=2 * number)
                    with watched.serving(disk.Disk(only=_log(tested))) as stretch:
                        SQL.run(connection, "commit_log.ask_backwards", scan=2 * number + 1)
                        again = stretch.counts().reads.requests
                yield {
                    "build": name,
                    "shared_buffers": pool,
                    "kilobytes": (PAGES - again) * PAGE // 1024,
                }


FILLING, SLOW, OTHERS = range(1, 21), 21, range(22, PAGES)  # pages
DELAY = 1.0  # seconds that the slow page takes to be read
READER, SAME_PAGE, OTHER_PAGES = (
    "reads the slow page",
    "needs the same page",
    "needs one page after another, but not that one",
)


@experiment(units={"waits": "yes or no"}, needs=["restart"])
def slow_clog_page(bed: Testbed) -> Iterator[Row]:
    """Who waits while a page of the commit log is read into a full cache by somebody else.

    The page was made slow on purpose. In 9.1, once as many other pages have been read as the cache
    holds, its place is the next to be used, and whoever needs another waits there for a reading
    that is none of his. CannotMeasure where the page isn't slow, or where 9.1 doesn't show it.
    """
    servers = {name: programs(name) for name in complete([RELEASES])} | {TODAY: bed.programs}
    for name, found in servers.items():
        with (
            disk.Slowed() as slow,
            Cluster(found, {"shared_buffers": SMALL_POOL}, disk=slow) as tested,
        ):
            many_transactions(tested, PAGES)
            if not _tells_status(tested.version):
                _rows_that_ask(tested)
            seconds = _while_slow_page_is_read(tested, slow)
        waits = {session: taken >= 0.9 * DELAY for session, taken in seconds.items()}
        if not (waits[READER] and waits[SAME_PAGE]):
            raise CannotMeasure(
                "C compiler",
                "the page that was to be slow wasn't, not even for those who needed it",
            )
        if name == RELEASES[0] and not waits[OTHER_PAGES]:
            raise CannotMeasure(
                "the talk's bug", "9.1 didn't show it here, so that nobody can see it gone"
            )
        for session, waited in waits.items():
            yield {"server": name, "session": session, "waits": waited}


def _while_slow_page_is_read(tested: Cluster, slow: disk.Slowed) -> dict[str, float]:
    """Seconds after the slow page was first asked for at which each session has its pages."""
    slow_page = disk.Disk(read=DELAY, only=f"{_log(tested)}0000", offset=SLOW * PAGE)
    with (
        ThreadPoolExecutor(2) as pool,
        tested.connect() as first,
        tested.connect() as same,
        tested.connect() as other,
    ):
        if not _tells_status(tested.version):
            for session in (first, same, other):
                SQL.run(session, "commit_log.prepare_asking")
        for page in FILLING:
            _ask(first, page)
        with slow.serving(slow_page) as stretch:
            began = time.monotonic()
            reading = pool.submit(_ask, first, SLOW)
            while not (stretch.counts().reads.requests or reading.done()):
                time.sleep(0.005)
            waiting = pool.submit(_ask, same, SLOW)
            ended = {OTHER_PAGES: max(_ask(other, page) for page in OTHERS)}
            ended |= {READER: reading.result(), SAME_PAGE: waiting.result()}
    return {session: end - began for session, end in ended.items()}


def _tells_status(version: int) -> bool:
    """Whether a release tells a transaction's status, for which it asks for a page."""
    return releases.has(version, "xid8")


def _ask(connection: psycopg.Connection, page: int) -> float:
    """Ask for the status of a transaction on a page; when the answer came (time.monotonic)."""
    if _tells_status(connection.info.server_version):
        SQL.run(connection, "commit_log.status", transaction=str(_transaction(page)))
    else:
        SQL.run(connection, "commit_log.ask", scan=SCANS - 1, page=page)
    return time.monotonic()


def _transaction(page: int) -> int:
    return page * ON_A_PAGE + 1_000


def _log(tested: Cluster) -> str:
    return f"{releases.commit_log(tested.version)}/"


def many_transactions(tested: Cluster, pages: int) -> None:
    """Move the transaction counter on, so that the log has so many pages that nobody has read.

    All of their transactions seem to have committed.
    """
    tested.stop()
    tested.offline(releases.wal_resetter(tested.version), "-x", str(_transaction(pages) + 1_000))
    file = tested.data_directory / _log(tested) / "0000"
    with open(private.opened(file, os.O_RDWR), "wb") as log:
        log.write(COMMITTED * IN_A_FILE * PAGE)
    for number in range(1, pages // IN_A_FILE + 1):
        tested.copy_files(str(file), str(file.with_name(f"{number:04X}")))
    # what was reset looks so old that an autovacuum would come at once, and set hints
    single_user.run(tested, ["VACUUM pg_database"])
    tested.start()


def _rows_that_ask(tested: Cluster) -> None:
    """Make rows without hints of transactions on each page of the log, for each scan one.

    The transactions are written into the stopped server's file: 9.1 and 9.2 have no checksums.
    """
    with tested.connect() as connection:
        loading.replace(connection, "asking", SQL.text("commit_log.asking"))
        SQL.run(connection, "commit_log.fill_asking", scans=SCANS, pages=PAGES)
        file = value(connection, str, SQL.text("commit_log.file", relation="asking"))
    tested.stop()
    with open(private.opened(tested.data_directory / file, os.O_RDWR), "r+b") as relation:
        data = bytearray(relation.read())
        for start in range(0, len(data), PAGE):
            [lower] = struct.unpack_from("=H", data, start + 12)  # where line pointers end
            for [pointer] in struct.iter_unpack("=I", data[start + HEADER : start + lower]):
                row = start + (pointer & 0x7FFF)
                [page] = struct.unpack_from("=i", data, row + 28)  # the second attribute
                struct.pack_into("=I", data, row, _transaction(page))  # t_xmin
        relation.seek(0)
        relation.write(data)
    tested.start()


# Of a row's header and of a page's, in src/include/access/htup.h and src/include/storage/bufpage.h
XMIN_COMMITTED, XMAX_INVALID, UPDATED = 0x0100, 0x0800, 0x2000
INFOMASK, FLAGS = 20, 10  # bytes from its beginning
ALL_VISIBLE = 0x0004
NORMAL = 1  # a line pointer with a row


def age_rows(tested: Cluster, relation: str, pages: int, seed: int) -> None:
    """Have a relation's rows seem to come from transactions anywhere on so many pages of the log.

    None has a hint, so that whoever reads it first asks the log. As by half an hour of updates; a
    row that was updated by now stays as it is. Written into the stopped server's files, as in
    `_rows_that_ask`; afterwards all is read into the pool, which asks nothing.
    """
    many_transactions(tested, pages)
    with tested.connect() as connection:
        first = tested.data_directory / value(
            connection, str, SQL.text("commit_log.file", relation=relation)
        )
    tested.stop()
    random = np.random.default_rng(seed)
    parts = sorted(first.parent.glob(f"{first.name}.[0-9]*"), key=lambda one: int(one.suffix[1:]))
    for file in (first, *parts):
        with open(private.opened(file, os.O_RDWR), "r+b") as part:
            data = bytearray(part.read())
            age(np.frombuffer(data, np.uint8), pages, random)
            part.seek(0)
            part.write(data)
    visible = first.with_name(f"{first.name}_vm")
    if visible.exists():  # made by the first vacuum that finds a page all visible
        with open(private.opened(visible, os.O_RDWR), "r+b") as bits:
            bits.truncate(0)
    tested.start()
    tested.extension("pageinspect")
    with tested.connect() as connection:
        SQL.run(connection, "commit_log.read_all", relation=relation)


def kept(tested: Cluster) -> int:
    """Pages of the log that a release of 2011 to 2013 keeps."""
    with tested.connect() as connection:
        pool = value(connection, int, SQL.text("commit_log.pages_of_the_pool"))
    return releases.commit_log_buffers(tested.version, pool)


def age(data: np.ndarray, pages: int, random: np.random.Generator) -> None:
    """Change the pages of a relation, given as bytes, as `age_rows` says."""
    halves, words = data.view(np.uint16), data.view(np.uint32)
    halves[FLAGS // 2 :: PAGE // 2] &= ~np.uint16(ALL_VISIBLE)
    rows = [np.empty(0, np.int64)]
    for start in range(0, len(data), PAGE):
        lower = int(halves[(start + 12) // 2])  # where line pointers end
        pointers = words[(start + HEADER) // 4 : (start + lower) // 4]
        normal = pointers[(pointers >> 15) & 3 == NORMAL]
        rows.append(start + (normal & 0x7FFF).astype(np.int64))
    row = np.concatenate(rows)
    mask = halves[(row + INFOMASK) // 2]
    row = row[(mask & XMAX_INVALID != 0) & (mask & UPDATED == 0)]
    halves[(row + INFOMASK) // 2] &= ~np.uint16(XMIN_COMMITTED)
    words[row // 4] = random.integers(_transaction(0), pages * ON_A_PAGE, len(row))
