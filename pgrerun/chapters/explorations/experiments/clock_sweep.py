"""Experiment 1, the clock: which pages stay in the pool, and which would under another strategy.

Pages in the pool are counted in pg_buffercache; the same requests are replayed by
`models.replacement`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import psycopg

from pgrerun.chapters.explorations.experiments.buffer_pool import QUIET, look
from pgrerun.chapters.explorations.relations import ONE_PROCESS, SQL, heap_pages
from pgrerun.errors import CannotMeasure
from pgrerun.lab.models.replacement import LRU, MAX_USAGE, Clock
from pgrerun.lab.server import Cluster, exists, set_session
from pgrerun.lab.testbed import Row, Testbed, experiment

RING, CROWD = "one large scan", "many small relations"
#: The relations that are watched, and how often each is read.
WATCHED = {"read_once": 1, "read_six_times": MAX_USAGE + 1}
#: Relations in the crowd, each of a tenth of the pool: two pools in all.
MEMBERS = [f"crowd{number}" for number in range(20)]
#: Relations read between two looks, and looks: a fifth of the pool, and four pools.
STEP, STEPS = 2, 20
LARGEST = 50_000  # tuples: a pool of their pages shows all there is to see

STRATEGIES = {"a clock": Clock, "a list by last use (LRU)": LRU}
SERVER = "this server"

Page = tuple[str | int, int, int]
Held = Sequence[tuple[Page, int] | None]


def _pages(size: int) -> dict[str, int]:
    """All relations and their pages, in a pool of `size`."""
    return {
        **dict.fromkeys(WATCHED, size // 16),
        **dict.fromkeys(MEMBERS, size // 10),
        "large": 4 * size,
    }


def _crowd(step: int) -> list[str]:
    """The members that are read in one step of the flood."""
    return [MEMBERS[(STEP * step + number) % len(MEMBERS)] for number in range(STEP)]


@experiment(units={"kept": "share of the pages", "usage": "usage count"}, needs=["restart"])
def survivors(bed: Testbed) -> Iterator[Row]:
    """How much of two small relations, read once and six times, stays while others are read.

    The flood is one relation of four times the pool, which is read through a ring, or small ones
    of a tenth of it, which get none; `pages_read` counts it in pools. The requests of the small
    ones are replayed under each of `STRATEGIES`, beginning with the pool as the server's was.
    """
    size = heap_pages(min(bed.parameters.tuples, LARGEST))
    server = bed.cluster(shared_buffers=f"{8 * size}kB", **bed.programs.synchronous_io)
    server.extension("pg_buffercache")
    with server.connect() as connection:
        for relation, pages in _pages(size).items():
            if not exists(connection, relation):
                SQL.run(connection, "clock_sweep.one_page_a_row", relation=relation, pages=pages)
        SQL.run(connection, "buffer_pool.checkpoint")
        names = dict(SQL.run(connection, "clock_sweep.files").fetchall())
    held: Held = []
    for flood in (RING, CROWD):
        server.restart()  # the watched relations are read last, the hand stands right behind them
        with server.reloaded(**QUIET), server.connect() as connection, server.connect() as probe:
            held = _filled(connection, probe, size, names)
            yield from _kept(probe, flood, 0, size)
            with connection.transaction():
                SQL.run(connection, "clock_sweep.large_scan")
                for step in range(STEPS):
                    _read_more(connection, flood, step, size)
                    yield from _kept(probe, flood, step + 1, size)
    yield from replayed(held)


def _filled(
    connection: psycopg.Connection, probe: psycopg.Connection, size: int, names: Mapping[int, str]
) -> Held:
    """What the pool holds once it is full of pages used once, and then the watched relations."""
    _held(probe, names), list(_kept(probe, "", 0, size))  # planned before they count
    set_session(connection, ONE_PROCESS)
    for relation in MEMBERS + [name for name, times in WATCHED.items() for _ in range(times)]:
        SQL.run(connection, "clock_sweep.read", relation=relation)
    return _held(probe, names)


def _read_more(connection: psycopg.Connection, flood: str, step: int, size: int) -> None:
    if flood == RING:  # a row is a page
        SQL.run(connection, "clock_sweep.large_scan_on", pages=STEP * (size // 10))
        return
    for member in _crowd(step):
        SQL.run(connection, "clock_sweep.read", relation=member)


def _row(strategy: str, flood: str, watched: str, step: int) -> Row:
    return {
        "strategy": strategy,
        "flood": flood,
        "watched": watched.replace("_", " "),
        "pages_read": step * STEP / 10,
    }


def _kept(probe: psycopg.Connection, flood: str, step: int, size: int) -> Iterator[Row]:
    for watched in WATCHED:
        pages, usage = look(probe, "clock_sweep.kept", relation=watched)
        kept = {"kept": pages / _pages(size)[watched], "usage": usage}
        yield _row(SERVER, flood, watched, step) | kept


def _held(probe: psycopg.Connection, names: Mapping[int, str]) -> Held:
    """Each buffer's page (relation, fork, block) and usage count, None for an empty one."""
    query = SQL.text("clock_sweep.buffers").encode()
    return [
        ((names.get(file, file), fork, block), usage) if file else None
        for file, fork, block, usage in probe.execute(query, prepare=True)
    ]


def replayed(held: Held) -> Iterator[Row]:
    """What each strategy keeps of a pool that held this, when the crowd is read."""
    pages_of = {
        relation: [(relation, 0, block) for block in range(pages)]
        for relation, pages in _pages(len(held)).items()
    }
    last_read = pages_of["read_six_times"][-1]
    hand = ([one and one[0] for one in held].index(last_read) + 1) % len(held)
    for name, strategy in STRATEGIES.items():
        pool = strategy.holding(held, hand=hand)
        for step in range(STEPS + 1):
            for watched in WATCHED:
                pages = pages_of[watched]
                yield _row(name, CROWD, watched, step) | {"kept": pool.kept(pages) / len(pages)}
            for member in _crowd(step):
                for page in pages_of[member]:
                    pool.use(page)


# ---- provisions for another strategy


#: How one could be chosen, and what the names in the program then are.
WAYS = {
    "a hook for extensions": r"(?i)\w*(buffer|strategy|evict|victim)\w*_hook",
    "a function of its own in the program": "_*StrategyGetBuffer",
    "another strategy that a caller may ask for": "_*GetAccessStrategy",
}


@experiment(units={"found": "text"})
def provisions(bed: Testbed) -> Iterator[Row]:
    """What the server offers to whoever wants another strategy, by ways to choose one.

    Settings are looked up in the server, hooks and functions by their names in its program's table
    of symbols (`postgres` exports all of them, for extensions).
    """
    if not isinstance(bed.server, Cluster):
        raise CannotMeasure(
            "symbols",
            "hooks and functions are looked up in the server's program, and a server by its address"
            " doesn't show it",
        )
    with bed.server.connect() as connection:
        settings = [name for [name] in SQL.run(connection, "clock_sweep.settings")]
    program = bed.programs.path("postgres").read_bytes()
    names = sorted({one.decode("ascii", "replace") for one in re.findall(rb"\w{4,}", program)})
    yield {"way": "a setting that chooses", "found": ", ".join(settings)}
    for way, pattern in WAYS.items():
        found = [name for name in names if re.fullmatch(pattern, name)]
        yield {"way": way, "found": ", ".join(found)}
