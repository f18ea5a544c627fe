"""What tests say about servers in more than one file."""

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgrerun.chapter import Chapter
from pgrerun.errors import CannotMeasure
from pgrerun.lab.server import Cluster, Server
from pgrerun.parameters import chapter_parameters

SMALL = {"shared_buffers": "8MB", "max_connections": 40}


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


@contextlib.contextmanager
def small_chapter(name: str, runs: Path, **values: int) -> Iterator[Chapter]:
    """A chapter with servers of its own and a run record under `runs`, with these parameters and no
    published run beside it; gone afterwards.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGRERUN_RUNS", str(runs))
        chapter = Chapter(name, chapter_parameters(name, values))
        chapter.published_run = lambda experiment: (
            pd.DataFrame()
        )  # what is published must not change what is tested
        try:
            yield chapter
        finally:
            for server in chapter.clusters.values():
                server.close()
            chapter.run.release()
