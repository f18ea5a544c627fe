"""Sessions that wait, several at once, with settings of their own, or beside what is measured."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import psycopg

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import clock
from pgrerun.lab.server import Server, releases, set_session, value

T = TypeVar("T")


@contextmanager
def configured(server: Server, **settings: str | int) -> Iterator[None]:
    """Sessions that begin while the block runs have these settings.

    pgbench begins its sessions for each load, and the server's other processes needn't read their
    configuration again. CannotMeasure on a server that isn't ours.
    """
    if not server.owned:
        raise CannotMeasure(
            "restart",
            f"it needs a server whose settings may be changed, and {server.name} is not ours",
        )
    with server.connect() as connection:
        # by its name, as before 9.5 CURRENT_USER is no role to this statement
        [[role]] = connection.execute("SELECT quote_ident(current_user)").fetchall()
        for name, setting in settings.items():
            connection.execute(f"ALTER ROLE {role} SET {name} = '{setting}'")
        try:
            yield
        finally:
            for name in settings:
                connection.execute(f"ALTER ROLE {role} RESET {name}")


def at_once(server: Server, sent: Sequence[str]) -> list[float]:
    """Seconds that each statement takes, in sessions of their own that begin together."""
    start = threading.Barrier(len(sent))
    off = {"jit": "off", "max_parallel_workers_per_gather": 0}
    settings = {name: value for name, value in off.items() if releases.knows(server.version, name)}

    def run(statement: str) -> float:
        with server.connect() as connection:
            set_session(connection, settings | {"synchronous_commit": "off"})
            start.wait(timeout=60)
            began = time.perf_counter()
            connection.execute(statement)
            return time.perf_counter() - began

    with ThreadPoolExecutor(len(sent)) as pool:
        return list(pool.map(run, sent))


def count_meanwhile(
    server: Server, statement: str, pause: float, work: Callable[[], T]
) -> tuple[T, int]:
    """What `work` returns, and what a statement counts meanwhile, each `pause` seconds, in sum."""
    with ThreadPoolExecutor(1) as pool, server.connect() as connection:
        running, counted = pool.submit(work), 0
        while not running.done():
            counted += value(connection, int, statement)
            time.sleep(pause)
        return running.result(), counted


@contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Have `work` done in a thread while the block runs; its event is set when the block ends.

    Raises what `work` does, unless the block does.
    """
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work, over)
        try:
            yield
        finally:
            over.set()
        running.result()


@contextmanager
def waiting(server: Server, statement: str) -> Iterator[None]:
    """A statement in a session of its own waits for a lock; the block has to let it go on.

    The block begins after half a minute as well: whoever looks then sees that it doesn't wait.
    """
    with server.connect() as session, server.connect() as watch:
        pool = ThreadPoolExecutor(1)
        sent = pool.submit(session.execute, statement)
        pool.shutdown(wait=False)
        waits = releases.waits_for(server.version, "Lock")
        activity = releases.activity(watch)
        asked = f"SELECT EXISTS (SELECT 1 FROM {activity} WHERE {waits} AND pid = %s)"
        pid = session.info.backend_pid
        clock.until(lambda: sent.done() or value(watch, bool, asked, (pid,)), 30, 0.005)
        try:
            yield
        finally:
            wait([sent], timeout=30)


@contextmanager
def repeating(server: Server, commands: Sequence[str]) -> Iterator[int]:
    """A session runs the commands over and over while the block runs: its backend's process id.

    Every command is parsed and planned anew. The block ends when the last one has; psycopg's error
    if one failed.
    """
    with server.connect() as connection:
        connection.prepare_threshold = None

        def work(over: threading.Event) -> None:
            while not over.is_set():
                for command in commands:
                    connection.execute(command)

        with meanwhile(work):
            yield connection.info.backend_pid


@contextmanager
def snapshot(server: Server, held: bool = True) -> Iterator[psycopg.Connection | None]:
    """A session that goes on seeing what was committed before (REPEATABLE READ), if `held`."""
    if not held:
        yield None
        return
    with server.connect(autocommit=False) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute("SELECT 1")
        yield session
        session.rollback()
