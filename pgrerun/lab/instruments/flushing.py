"""How long a flush takes, and how to make a flush or a read take longer on purpose.

Neither can be slowed from inside PostgreSQL. `slowed` compiles a library of a few lines that
waits in front of every `fdatasync`, `slow_page` one that waits in front of reading one page of one
file, and hands it to the servers started while it is in place; what is measured on such a server
is labelled as such wherever it is shown.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np

from pgrerun.errors import CannotMeasure
from pgrerun.lab.server.private import PrivateDirectory, account, base_directory

_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int fdatasync(int file)
{
    static int (*real)(int);
    struct timespec wait = {%(seconds)d, %(nanoseconds)d};
    if (!real)
        real = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    nanosleep(&wait, 0);
    return real(file);
}
"""


# The offset is compared first: nearly all reads are of another page, and cost nothing more.
_PAGE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
ssize_t pread(int file, void *buffer, size_t size, off_t offset)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real)
        real = (ssize_t (*)(int, void *, size_t, off_t)) dlsym(RTLD_NEXT, "pread");
    if (offset == %(offset)d) {
        char link[40], path[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%%d", file);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length < 0 ? 0 : length] = 0;
        if (strstr(path, "%(file)s")) {
            struct timespec wait = {%(seconds)d, %(nanoseconds)d};
            nanosleep(&wait, 0);
        }
    }
    return real(file, buffer, size, offset);
}
/* the name under which glibc has it for programs made for large files */
ssize_t pread64(int file, void *buffer, size_t size, off_t offset) __attribute__((alias("pread")));
"""


def slowed(microseconds: int) -> AbstractContextManager[None]:
    """Servers started in this block wait so long in front of every fdatasync, until they are
    stopped.

    CannotMeasure without a C compiler.
    """
    return _preloaded("a flush is made slow", _SOURCE % _wait(microseconds))


def slow_page(file: str, offset: int, microseconds: int) -> AbstractContextManager[None]:
    """Servers started in this block wait so long whenever they read at `offset` (bytes) of a file
    whose path ends like `file`.

    CannotMeasure without a C compiler. Reads by pread only: those of PostgreSQL's small caches
    (commit log and the like), on Linux.
    """
    return _preloaded(
        "reading a page is made slow",
        _PAGE % (_wait(microseconds) | {"offset": offset, "file": file}),
    )


def _wait(microseconds: int) -> dict[str, int]:
    return {"seconds": microseconds // 1_000_000, "nanoseconds": microseconds % 1_000_000 * 1000}


@contextmanager
def _preloaded(what: str, code: str) -> Iterator[None]:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise CannotMeasure(
            "C compiler",
            f"{what} by a library of a few lines of C, and there is no compiler to make it",
        )
    before = os.environ.get("LD_PRELOAD")
    with PrivateDirectory(base_directory(), account()) as place:  # which the server may enter
        source, library = place.path / "shim.c", place.path / "shim.so"
        source.write_text(code)
        done = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise CannotMeasure(
                "C compiler",
                f"the compiler {compiler} can't make a shared library:"
                f" {done.stderr.strip()[-300:]}",
            )
        library.chmod(0o755)
        try:
            os.environ["LD_PRELOAD"] = " ".join(filter(None, [str(library), before]))
            yield
        finally:
            del os.environ["LD_PRELOAD"]
            if before is not None:
                os.environ["LD_PRELOAD"] = before


def flushes(folder: Path, seconds: float, size: int = 8192) -> np.ndarray:
    """Seconds that each flush of a small file took: write `size` bytes, fsync, again, for
    `seconds`.
    """
    path = Path(folder) / f"flushed-{os.getpid()}"
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    taken: list[float] = []
    try:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until or not taken:
            os.pwrite(file, os.urandom(size), 0)
            began = time.perf_counter()
            os.fsync(file)
            taken.append(time.perf_counter() - began)
    finally:
        os.close(file)
        path.unlink()
    return np.array(taken)


@contextmanager
def copying(folder: Path, megabytes: int) -> Iterator[None]:
    """Somebody else writes a large file into the same file system for as long as the block runs,
    and never flushes it.
    """
    path = Path(folder) / f"copied-{os.getpid()}"
    script = (
        f"while :; do dd if=/dev/zero of='{path}' bs=1M count={megabytes} conv=notrunc 2>/dev/null"
        " || exit; done"
    )
    writer = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    try:
        yield
    finally:
        os.killpg(writer.pid, 15)
        writer.wait()
        path.unlink(missing_ok=True)
