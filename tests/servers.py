"""What tests say about servers in more than one file."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from pgrerun.errors import ServerError
from pgrerun.lab.server import Cluster, Programs, Server, builds, from_folder
from pgrerun.parameters import info

SMALL = {"shared_buffers": "8MB", "max_connections": 40}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def builds_here() -> dict[str, Programs]:
    """Programs of the builds on this machine, by name: those in the folder that PGRERUN_BUILDS
    names, else those that are registered. Other systems than PostgreSQL aren't among them.
    """
    found = {}
    folder = os.environ.get("PGRERUN_BUILDS", "")
    places = {place.name: place for place in sorted(Path(folder).glob("*"))} if folder else {}
    for name, build in ({} if folder else builds.registered()).items():
        if build.block_size:
            places[name] = Path(build.folder)
    for name, place in places.items():
        with contextlib.suppress(ServerError):
            found[name] = from_folder(place, f"the build {name}")
    return found


def script(path: Path, lines: str) -> None:
    """Make it a program, of these lines of the shell's, that everybody may run."""
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


def url_of(server: Cluster, user: str = "postgres", database: str = "postgres") -> str:
    """The URL by which somebody else would borrow `server`."""
    host = server.connection_parameters()["host"]
    return f"postgresql://{user}@/{database}?host={quote(host, safe='')}"


@contextlib.contextmanager
def running(server: Server, *command: str) -> Iterator[Future]:
    """A client program of the server's that runs beside the block; the end waits for it."""
    with ThreadPoolExecutor(1) as beside:
        yield beside.submit(server.tool, *command, check=False)


def tell(server: Server, *statements: str) -> None:
    with server.connect() as connection:
        for statement in statements:
            connection.execute(statement)


def shared_memory(maps: str) -> set[str]:
    """Shared memory in a text of /proc/PID/maps: files, and ids of System V segments, which their
    inodes are.
    """
    return {*re.findall(r"/dev/shm/[^ \n]+", maps), *re.findall(r" (\d+) +/SYSV", maps)}


def mapped(*pids: int) -> set[str]:
    """The shared memory that these processes have in use, as far as they are there."""
    maps = ""
    for pid in pids:
        with contextlib.suppress(OSError):
            maps += Path(f"/proc/{pid}/maps").read_text()
    return shared_memory(maps)


def left(shared: set[str]) -> set[str]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    segments = {line.split()[1] for line in lines}
    return {one for one in shared if one in segments or (one[0] == "/" and Path(one).exists())}


def until(condition: Callable[[], object], alive: Callable[[], object] = lambda: True) -> None:
    """Wait for something that comes by itself, of what is `alive`."""
    end = time.monotonic() + 120
    while not condition():
        assert alive() and time.monotonic() < end, "it hasn't come"
        time.sleep(0.02)


def leave(server: Cluster) -> None:
    """Wait until the server's client backends are gone, which they are some time after clients."""
    until(lambda: "client backend" not in server.pids().values())


def admit(server: Cluster, *lines: str) -> None:
    """Make these lines the server's pg_hba.conf; returns when it lets in by them."""

    def loaded():
        with (
            server.connect() as connection
        ):  # forked by the postmaster, which has read its files by then
            return connection.execute("SELECT pg_conf_load_time()").fetchone()

    before = loaded()
    (server.data_directory / "pg_hba.conf").write_text("\n".join(lines) + "\n")
    with server.connect() as connection:
        connection.execute("SELECT pg_reload_conf()")
    until(lambda: loaded() != before)


def smallest(chapter: str) -> dict[str, int | float]:
    """The least value of each parameter of the chapter's own, and of the repeats."""
    own = info(chapter).parameters.items()
    return {"pairs": 5} | {name: one.range[0] for name, one in own if one.range is not None}
