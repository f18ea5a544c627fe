"""What tests say about servers in more than one file."""

import contextlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.server import Cluster, Programs, Server, builds, from_folder
from pgrerun.parameters import info

SMALL = {"shared_buffers": "8MB", "max_connections": 40}


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


def url_of(server: Cluster, user: str = "postgres", database: str = "postgres") -> str:
    """The URL by which somebody else would borrow `server`."""
    host = conninfo_to_dict(server.conninfo())["host"]
    return f"postgresql://{user}@/{database}?host={quote(host, safe='')}"


@contextlib.contextmanager
def running(server: Server, *command: str) -> Iterator[Future]:
    """A client program of the server's that runs beside the block; the end waits for it."""
    with ThreadPoolExecutor(1) as beside:
        yield beside.submit(server.tool, *command, check=False)


def leave(server: Cluster) -> None:
    """Wait until the server's client backends are gone, which they are some time after clients."""
    end = time.monotonic() + 60
    while "client backend" in server.pids().values():
        assert time.monotonic() < end, "a client backend is still there"
        time.sleep(0.01)


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
    while loaded() == before:
        time.sleep(0.02)


@contextlib.contextmanager
def unless_disturbed() -> Iterator[None]:
    """A block that measures times; skipped, with the reason, if each came out as one that can't
    be, which a busy machine may do.
    """
    try:
        yield
    except CannotMeasure as reason:
        if reason.capability != "undisturbed measurements":
            raise
        pytest.skip(str(reason))


def smallest(chapter: str) -> dict[str, int | float]:
    """The least value of each parameter of the chapter's own, and of the repeats."""
    own = info(chapter).parameters.items()
    return {"pairs": 5} | {name: one.range[0] for name, one in own if one.range is not None}
