"""What the commit log's cache holds in 9.1 and in 9.2.

Whoever reads a row without a hint asks for the page of the commit log that has its transaction.
So there are rows that seem to be written by transactions on all of its pages.
"""

import os
import struct
from collections.abc import Iterator

from pgrerun.chapters.scalability.experiments.builds import RELEASES, complete, programs
from pgrerun.chapters.scalability.load import SMALL_POOL, SQL
from pgrerun.lab import disk
from pgrerun.lab.instruments import single_user
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, private, value
from pgrerun.lab.testbed import Row, Testbed, experiment

PAGE, ON_A_PAGE, IN_A_FILE = 8192, 32_768, 32  # bytes, transactions, and pages of a file
PAGES = 44  # that are asked for: more than the talk's bound
COMMITTED = b"\x55"  # four transactions
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
            _many_transactions(tested)
            _rows_that_ask(tested)
            for number, pool in enumerate(POOLS):
                with tested.restarted({"shared_buffers": pool}), tested.connect() as connection:
                    SQL.run(connection, "commit_log.prepare_asking")
                    SQL.run(connection, "commit_log.ask_forwards", scan=2 * number)
                    with watched.serving(disk.Disk(only=_log(tested))) as stretch:
                        SQL.run(connection, "commit_log.ask_backwards", scan=2 * number + 1)
                        again = stretch.counts().reads.requests
                kilobytes = (PAGES - again) * PAGE // 1024
                yield {"build": name, "shared_buffers": pool, "kilobytes": kilobytes}


def _transaction(page: int) -> int:
    return page * ON_A_PAGE + 1_000


def _log(tested: Cluster) -> str:
    return "pg_xact/" if tested.version >= 100000 else "pg_clog/"


def _many_transactions(tested: Cluster) -> None:
    """Move the transaction counter on, so that the log has pages that nobody has read."""
    tested.stop()
    reset = "pg_resetwal" if tested.version >= 100000 else "pg_resetxlog"
    tested.offline(reset, "-x", str(_transaction(PAGES) + 1_000))
    file = tested.data_directory / _log(tested) / "0000"
    with open(private.opened(file, os.O_RDWR), "wb") as log:
        log.write(COMMITTED * IN_A_FILE * PAGE)
    tested.copy_files(str(file), str(file.with_name("0001")))
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
        file = tested.data_directory / value(connection, str, SQL.text("commit_log.file_of_asking"))
    tested.stop()
    with open(private.opened(file, os.O_RDWR), "r+b") as relation:
        data = bytearray(relation.read())
        for start in range(0, len(data), PAGE):
            [lower] = struct.unpack_from("=H", data, start + 12)  # where line pointers end
            for [pointer] in struct.iter_unpack("=I", data[start + 24 : start + lower]):
                row = start + (pointer & 0x7FFF)
                [page] = struct.unpack_from("=i", data, row + 28)  # the second attribute
                struct.pack_into("=I", data, row, _transaction(page))  # t_xmin
        relation.seek(0)
        relation.write(data)
    tested.start()
