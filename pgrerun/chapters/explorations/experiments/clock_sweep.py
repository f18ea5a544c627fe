"""Experiment 1, the clock: which pages stay in the pool, and which would under another strategy.

Pages in the pool are counted in pg_buffercache; the same requests are replayed by
`models.replacement`.
"""

import re
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.explorations.experiments.buffer_pool import (
    EQUAL,
    QUIET,
    buffers,
    cluster,
    look,
)
from pgrerun.chapters.explorations.relations import ONE_PROCESS, SQL
from pgrerun.errors import CannotMeasure
from pgrerun.lab.models.replacement import LRU, MAX_USAGE, Clock
from pgrerun.lab.server import exists, set_session

RING, CROWD = "one large relation", "many small relations"
ONCE, OFTEN = "read once", "read six times"
HISTORIES = {ONCE: 1, OFTEN: MAX_USAGE + 1}
WATCHED = {ONCE: "read_once", OFTEN: "read_six_times"}
#: Relations in the crowd, each of a tenth of the pool: two pools in all.
MEMBERS = [f"crowd{number}" for number in range(20)]
#: Relations read between two looks, and looks: a fifth of the pool, and four pools.
STEP, STEPS = 2, 20

STRATEGIES = {"a clock": Clock, "a list by last use (LRU)": LRU}
SETTING, HOOK, FUNCTION, CALLER = (
    "a setting that chooses",
    "a hook for extensions",
    "a function of its own in the program",
    "another strategy that a caller may ask for",
)

Page = tuple[str | int, int, int]


@dataclass(frozen=True)
class Survivors:
    """What was seen in a pool while it was flooded.

    pages    columns flood, history, pages_read (since the flood began, in pools), kept (share of
             the watched relation's pages), usage (mean usage count of those)
    buffers  when the crowd's flood began: each buffer's page (relation, fork, block) and usage
             count, None for an empty one
    """

    pages: pd.DataFrame
    buffers: list[tuple[Page, int] | None]


def _pages(size: int) -> dict[str, int]:
    """All relations and their pages, in a pool of `size`."""
    watched = dict.fromkeys(WATCHED.values(), size // 16)
    return watched | dict.fromkeys(MEMBERS, size // 10) | {"large": 4 * size}


def _crowd(step: int) -> list[str]:
    """The members that are read in one step of the flood."""
    return [MEMBERS[(STEP * step + number) % len(MEMBERS)] for number in range(STEP)]


@experiment(claims=["expl-005"])
def survivors(chapter: Chapter) -> Survivors:
    """How much of two small relations, read once and six times, stays while others are read.

    The flood is one relation of four times the pool, which is read through a ring, or small ones
    of a tenth of it, which get none.
    """
    server, size = cluster(chapter, EQUAL), buffers(chapter.parameters.tuples, EQUAL)
    server.extension("pg_buffercache")
    with server.connect() as connection:
        for relation, pages in _pages(size).items():
            if not exists(connection, relation):
                SQL.run(connection, "clock_sweep.one_page_a_row", relation=relation, pages=pages)
        SQL.run(connection, "buffer_pool.checkpoint")
        names = dict(SQL.run(connection, "clock_sweep.files").fetchall())
    rows = []
    for flood in (RING, CROWD):
        server.restart()  # the watched relations are read last, the hand stands right behind them
        with server.reloaded(**QUIET), server.connect() as connection, server.connect() as probe:
            _held(probe, names), _kept(probe, flood, 0, size)  # planned before they count
            set_session(connection, ONE_PROCESS)
            reads = MEMBERS + [
                WATCHED[history] for history, times in HISTORIES.items() for _ in range(times)
            ]
            for relation in reads:  # a pool full of pages used once, and then the watched ones
                SQL.run(connection, "clock_sweep.read", relation=relation)
            held = _held(probe, names)
            rows += _kept(probe, flood, 0, size)
            with connection.transaction():
                SQL.run(connection, "clock_sweep.large_scan")
                for step in range(STEPS):
                    _read_more(connection, flood, step, size)
                    rows += _kept(probe, flood, step + 1, size)
    return Survivors(pd.DataFrame(rows), held)


def _read_more(connection: psycopg.Connection, flood: str, step: int, size: int) -> None:
    if flood == RING:  # a row is a page
        SQL.run(connection, "clock_sweep.large_scan_on", pages=STEP * (size // 10))
        return
    for member in _crowd(step):
        SQL.run(connection, "clock_sweep.read", relation=member)


def _kept(probe: psycopg.Connection, flood: str, step: int, size: int) -> list[dict]:
    rows = []
    for history in HISTORIES:
        pages, usage = look(probe, "clock_sweep.kept", relation=WATCHED[history])
        row = {"flood": flood, "history": history, "pages_read": step * STEP / 10}
        rows.append(row | {"kept": pages / _pages(size)[WATCHED[history]], "usage": usage})
    return rows


def _held(probe: psycopg.Connection, names: dict[int, str]) -> list[tuple[Page, int] | None]:
    query = SQL.text("clock_sweep.buffers").encode()
    return [
        ((names.get(file, file), fork, block), usage) if file else None
        for file, fork, block, usage in probe.execute(query, prepare=True)
    ]


# ---- the same requests under other strategies


def replayed(found: Survivors) -> pd.DataFrame:
    """The requests of the crowd's flood, replayed: what each strategy keeps.

    Each begins with the pool as the server's was. Columns: strategy, history, pages_read (pools),
    kept (share of the watched relation's pages).
    """
    size, rows = len(found.buffers), []
    pages_of = {
        relation: [(relation, 0, block) for block in range(pages)]
        for relation, pages in _pages(size).items()
    }
    last_read = pages_of[WATCHED[OFTEN]][-1]
    pages_held = [held and held[0] for held in found.buffers]
    hand = (pages_held.index(last_read) + 1) % size
    for name, strategy in STRATEGIES.items():
        pool = strategy.holding(found.buffers, hand=hand)
        for step in range(STEPS + 1):
            for history in HISTORIES:
                pages = pages_of[WATCHED[history]]
                rows.append((name, history, step * STEP / 10, pool.kept(pages) / len(pages)))
            for member in _crowd(step):
                pool.use_all(pages_of[member])
    return pd.DataFrame(rows, columns=["strategy", "history", "pages_read", "kept"])


# ---- provisions for another strategy


@experiment(claims=["expl-036"])
def provisions(chapter: Chapter) -> pd.DataFrame:
    """What the server offers to whoever wants another strategy: columns way, found.

    Settings are looked up in the server, hooks and functions by their names in its program's table
    of symbols (`postgres` exports all of them, for extensions).
    """
    if chapter.borrowed:
        raise CannotMeasure(
            "symbols",
            "hooks and functions are looked up in the server's program, and a server by its address"
            " doesn't show it",
        )
    with chapter.server.connect() as connection:
        settings = [name for [name] in SQL.run(connection, "clock_sweep.settings")]
    program = chapter.programs.path("postgres").read_bytes()
    names = sorted(
        symbol.decode("ascii", "replace") for symbol in set(re.findall(rb"\w{4,}", program))
    )
    hook = re.compile("(?i)(buffer|strategy|evict|victim).*_hook$")
    found = {
        SETTING: settings,
        HOOK: [name for name in names if hook.search(name)],
        FUNCTION: [name for name in names if name.lstrip("_") == "StrategyGetBuffer"],
        CALLER: [name for name in names if name.lstrip("_") == "GetAccessStrategy"],
    }
    rows = [(way, ", ".join(symbols)) for way, symbols in found.items()]
    return pd.DataFrame(rows, columns=["way", "found"])
