"""Files that the operating system has forgotten, and what reading them fetches from storage.

Of a running server's relation, the pages in its buffer pool are forgotten as well.
"""

import mmap
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import pages, process_table
from pgrerun.lab.server import Cluster, private
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.lab.server.private import forget as forget

BLOCK = 4096  # bytes; the kernel's page


@contextmanager
def scratch(megabytes: int) -> Iterator[Path]:
    """A file of so many MB on the disk, of random bytes and flushed; gone afterwards."""
    with PrivateDirectory(base_directory()) as directory:
        path = directory.path / "file"
        with open(path, "wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        yield path


@contextmanager
def opened(path: Path, *, direct: bool = False) -> Iterator[int]:
    """A descriptor for reading a file of which the operating system has been told to forget all.

    direct: read past the operating system's cache, by aligned blocks into aligned memory;
    CannotMeasure where files can't be read so.
    """
    try:
        descriptor = private.opened(path, os.O_DIRECT if direct else 0)
    except OSError as error:
        if not direct:
            raise
        raise CannotMeasure(
            "direct I/O",
            f"Files in {base_directory()} can't be read past the operating system's cache"
            f" ({error.strerror}). Name another place in PGRERUN_TMPDIR.",
        ) from None
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        yield descriptor
    finally:
        os.close(descriptor)


def forget_relation(server: Cluster, connection: psycopg.Connection, relation: str) -> None:
    """Put a relation and its indexes out of the buffer pool and of the operating system's cache.

    Its pages must have been written before (CHECKPOINT), as a file's dirty ones stay. Takes a
    superuser and pg_buffercache.
    """
    pages.evict_all(connection)
    forget_files(server, connection, relation)


def forget_files(server: Cluster, connection: psycopg.Connection, relation: str) -> None:
    """Put a relation and its indexes out of the operating system's cache alone, as after a restart,
    which empties the pool.
    """
    files = connection.execute(
        "SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid = %s::regclass OR oid IN"
        " (SELECT indexrelid FROM pg_index WHERE indrelid = %s::regclass)",
        (relation, relation),
    )
    for (path,) in files.fetchall():
        for part in sorted(server.data_directory.glob(f"{path}*")):
            with opened(part):
                pass  # opening it is what makes it forgotten


@dataclass(frozen=True)
class Spent:
    """Seconds of wall clock and CPU, and voluntary task switches: how often it had to wait."""

    wall: float
    cpu: float
    waits: int


def read(
    path: Path,
    places: Sequence[int],
    size: int,
    *,
    direct: bool = False,
    warm: bool = False,
    ahead: bool = True,
) -> Spent:
    """Read `size` bytes at each of these places (bytes) of a forgotten file; see `opened`.

    warm: of a file that the operating system has in memory, all of it. ahead: whether it may read
    ahead of what it is asked for, as it does of a file that is read in order.
    """
    # memory of its own is aligned, as direct I/O wants it
    with mmap.mmap(-1, size) as buffer, opened(path, direct=direct) as file:
        if not ahead:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        if warm:
            path.read_bytes()
        waits = process_table.count_own_sleeps()
        wall, cpu = time.perf_counter(), time.process_time()
        for place in places:
            os.preadv(file, [buffer], place)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Spent(wall, cpu, process_table.count_own_sleeps() - waits)


def fetched(path: Path, blocks: Sequence[int]) -> int:
    """Bytes fetched from storage while blocks of 4 kB of a forgotten file are read in order."""
    with opened(path) as descriptor:
        before = process_table.bytes_fetched()
        for block in blocks:
            os.pread(descriptor, BLOCK, block * BLOCK)
        return process_table.bytes_fetched() - before


def require_forgettable() -> None:
    """CannotMeasure where the operating system keeps what it is asked to forget."""
    with scratch(1) as path:
        if fetched(path, [50]) == 0:
            raise CannotMeasure(
                "cold files",
                f"files in {base_directory()} can't be forgotten by the operating system: a memory"
                " file system, perhaps. Name another place in PGRERUN_TMPDIR",
            )
