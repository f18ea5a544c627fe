"""Experiment 1, the clock: which pages stay in the pool, and which would under another strategy.

Pages in the pool are counted in pg_buffercache; the same requests are replayed by `models.replacement`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations.dirt import QUIET
from pgrerun.chapters.explorations.pools import EQUAL, buffers, cluster
from pgrerun.errors import CannotMeasure
from pgrerun.models.replacement import LRU, MAX_USAGE, Clock

RING, CROWD = "one large relation", "many small relations"
HISTORIES = {"read once": 1, "read six times": MAX_USAGE + 1}
ONCE, OFTEN = HISTORIES
MEMBERS = 20
"""Relations in the crowd, each of a tenth of the pool: two pools in all."""
STEP, STEPS = 2, 20
"""Relations read between two looks, and looks: a fifth of the pool, and four pools."""


def small(size: int) -> int:
    """Pages of each of the two relations that are watched, in a pool of `size`."""
    return size // 16


def relation(history: str) -> str:
    return history.replace(" ", "_")


class Survivors(NamedTuple):
    """What was seen in a pool while it was flooded.

    pages    columns flood, history, pages_read (since the flood began, in pools), kept (share of the watched relation's pages),
             usage (mean usage count of those)
    buffers  when the crowd's flood began: each buffer's page (relation, fork, block) and usage count, None for an empty one
    """

    pages: pd.DataFrame
    buffers: list[tuple[tuple, int] | None]


def survivors(chapter: Chapter) -> Survivors:
    """How much of two small relations stays in the pool while others are read: one was read once, one six times.

    The flood is one relation of four times the pool, which is read through a ring, or small ones of a tenth of it,
    which get none.
    """
    found, size = cluster(chapter, EQUAL), buffers(chapter, EQUAL)
    found.extension("pg_buffercache")
    with found.connect() as connection:
        names, rows = _load(connection, size), []
    for flood in (RING, CROWD):
        found.restart()  # so that the watched relations are read last, and the hand stands right behind them
        with found.reloaded(**QUIET), found.connect() as connection, found.connect() as probe:
            _held(probe, names), [*_kept(probe, flood, 0, small(size))]  # planned before they count
            _fill(connection)
            held = _held(probe, names)
            rows += _flooded(connection, probe, flood, size)
    return Survivors(pd.DataFrame(rows, columns=["flood", "history", "pages_read", "kept", "usage"]), held)


def _fill(connection: psycopg.Connection) -> None:
    """The pool is full of pages used once, and then come the watched ones."""
    connection.execute("SET max_parallel_workers_per_gather = 0")
    for member in range(MEMBERS):
        _count(connection, f"crowd{member}")
    for history, times in HISTORIES.items():
        for _ in range(times):
            _count(connection, relation(history))


def _flooded(connection: psycopg.Connection, probe: psycopg.Connection, flood: str, size: int) -> Iterator[tuple]:
    yield from _kept(probe, flood, 0, small(size))
    with connection.transaction():
        connection.execute("DECLARE flood NO SCROLL CURSOR FOR SELECT i FROM large")  # one scan, so one ring
        for step in range(STEPS):
            if flood == RING:
                connection.execute(f"MOVE FORWARD {STEP * (size // 10)} IN flood")  # a row is a page
            else:
                for member in range(STEP):
                    _count(connection, f"crowd{(STEP * step + member) % MEMBERS}")
            yield from _kept(probe, flood, step + 1, small(size))


def _load(connection: psycopg.Connection, size: int) -> dict[int, str]:
    """Relations whose every row fills a page: the two that are watched, the crowd, and one of four pools; names by file."""
    watched = {relation(history): small(size) for history in HISTORIES}
    all_of_them = watched | {f"crowd{member}": size // 10 for member in range(MEMBERS)} | {"large": 4 * size}
    for name, pages in all_of_them.items():
        if not connection.execute("SELECT to_regclass(%s)", [name]).fetchone()[0]:
            connection.execute(f"CREATE TABLE {name} (i int, filler text)")
            connection.execute(f"ALTER TABLE {name} ALTER filler SET STORAGE PLAIN")  # a page a row, whatever could be compressed
            connection.execute(f"INSERT INTO {name} SELECT i, repeat('x', 7900) FROM generate_series(1, {pages}) AS i")
            connection.execute(f"VACUUM (ANALYZE) {name}")
    connection.execute("CHECKPOINT")
    return {connection.execute("SELECT pg_relation_filenode(%s)::bigint", [name]).fetchone()[0]: name for name in all_of_them}


def _held(probe: psycopg.Connection, names: dict[int, str]) -> list[tuple[tuple, int] | None]:
    query = "SELECT relfilenode::bigint, relforknumber, relblocknumber, usagecount FROM pg_buffercache ORDER BY bufferid"
    return [((names.get(file, file), fork, block), usage) if file else None for file, fork, block, usage in probe.execute(query, prepare=True)]


def _count(connection: psycopg.Connection, name: str) -> None:
    connection.execute(f"SELECT count(*) FROM {name}")


def _kept(probe: psycopg.Connection, flood: str, step: int, pages: int) -> Iterator[tuple]:
    query = "SELECT count(*), coalesce(avg(usagecount), 0)::float FROM pg_buffercache WHERE relfilenode = pg_relation_filenode(%s) AND relforknumber = 0"
    for history in HISTORIES:
        kept, usage = probe.execute(query, [relation(history)], prepare=True).fetchone()
        yield flood, history, step * STEP / 10, kept / pages, usage


# ---- the same requests under other strategies


STRATEGIES = {"a clock": Clock, "a list by last use (LRU)": LRU}
CLOCK, RECENCY = STRATEGIES


def replayed(found: Survivors | None) -> pd.DataFrame | None:
    """The requests of the crowd's flood, replayed: what each strategy keeps. Columns: strategy, history, pages_read (pools), kept.

    Each begins with the pool as the server's was.
    """
    if found is None:
        return None
    size, rows = len(found.buffers), []
    pages_of = lambda name, pages: [(name, 0, page) for page in range(pages)]
    crowd = [pages_of(f"crowd{member}", size // 10) for member in range(MEMBERS)]
    watched = {history: pages_of(relation(history), small(size)) for history in HISTORIES}
    last = next(number for number, held in enumerate(found.buffers) if held and held[0] == watched[OFTEN][-1])
    for name, strategy in STRATEGIES.items():
        pool = strategy.holding(found.buffers, hand=(last + 1) % size)
        for step in range(STEPS + 1):
            rows += [(name, history, step * STEP / 10, pool.kept(pages) / len(pages)) for history, pages in watched.items()]
            for member in range(STEP):
                pool.use_all(crowd[(STEP * step + member) % MEMBERS])
    return pd.DataFrame(rows, columns=["strategy", "history", "pages_read", "kept"])


def stay(found: pd.DataFrame) -> pd.Series:
    """How many pools have to be read until half of each relation's pages are gone, by history; the whole flood if they never are."""
    gone = found[found["kept"] < 0.5].groupby("history")["pages_read"].min()
    return gone.reindex(list(HISTORIES)).fillna(found["pages_read"].max())


def stays(found: Survivors | None, replay: pd.DataFrame | None) -> pd.DataFrame | None:
    """`stay` of the server and of each strategy: columns who, kind, and the histories."""
    if found is None:
        return None
    rows = [("this server", "measured", stay(found.pages[found.pages["flood"] == CROWD]))]
    rows += [(name, "simulated", stay(replay[replay["strategy"] == name])) for name in STRATEGIES]
    return pd.DataFrame([{"who": who, "kind": kind, **pools} for who, kind, pools in rows])


# ---- verdicts


def clock_facts(found: Survivors | None, replay: pd.DataFrame | None) -> dict[str, bool] | None:
    """What shows that victims are chosen by the clock sweep, and that it matters to whoever reads next."""
    if found is None:
        return None
    kept = found.pages
    crowd, ring = kept[kept["flood"] == CROWD], kept[kept["flood"] == RING]
    often = crowd[crowd["history"] == OFTEN].set_index("pages_read")
    once = crowd[crowd["history"] == ONCE].set_index("pages_read")
    here, clock, recency = stays(found, replay)[list(HISTORIES)].to_numpy()
    return {
        "a page's usage count grows with its uses": bool(often["usage"][0] > once["usage"][0]),
        "the sweep lowers it": bool(often["usage"][often["kept"] > 0].min() < often["usage"][0] - 1),
        "pages used often outlive pages used once": bool(here[1] > here[0]),
        "by about as much as under a simulated clock": bool(abs((here - clock)[1]) < abs((here - recency)[1])),
        "a large scan displaces them as well": bool(ring.groupby("pages_read")["kept"].mean().iloc[-1] < 0.5),
    }


def provisions(chapter: Chapter) -> pd.DataFrame:
    """What the server offers to whoever wants another strategy, by way: columns way, found.

    Settings are looked up in the server, hooks and functions by their names in its program's table of symbols
    (`postgres` exports all of them, for extensions).
    """
    if chapter.borrowed:
        raise CannotMeasure("symbols", "hooks and functions are looked up in the server's program, and a server by its address doesn't show it")
    with chapter.server.connect() as connection:
        settings = [name for [name] in connection.execute("SELECT name FROM pg_settings WHERE name ~ '(evict|replacement|victim|clock|lru_policy)' ORDER BY name")]
    symbols = set(re.findall(rb"\w{4,}", chapter.programs.path("postgres").read_bytes()))
    names = sorted(symbol.decode("ascii", "replace") for symbol in symbols)
    hooks = [name for name in names if re.search("(?i)(buffer|strategy|evict|victim).*_hook$", name)]
    functions = [name for name in names if name.lstrip("_") == "StrategyGetBuffer"]
    return pd.DataFrame([(SETTING, ", ".join(settings)), (HOOK, ", ".join(hooks)), (FUNCTION, ", ".join(functions))], columns=["way", "found"])


SETTING, HOOK, FUNCTION = "a setting that chooses", "a hook for extensions", "a function of its own in the program"


def swap_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether another strategy can be swapped in: without a change, by an extension, by another version of one function."""
    if found is None:
        return None
    names = found.set_index("way")["found"]
    return {
        "the choice of a victim is a function of its own, so that another can be compiled in": bool(names[FUNCTION]),
        "an extension can take it over": bool(names[HOOK]),
        "a setting chooses": bool(names[SETTING]),
    }
