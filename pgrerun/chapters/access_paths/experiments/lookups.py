"""The talk's experiment: lookups by key with the primary key alone and with a covering index."""

import time
from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import (
    AMPLE,
    COVERED,
    DIRECT,
    KEYED,
    PLACES,
    SCATTERED,
    SQL,
    allow_only,
    filled,
    place,
    pool_pages,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.server import Server, seed_random

KEY, COVERING = "primary key", "covering index"
# The relation that a variant looks up; its script is lookup_RELATION.pgbench.
RELATIONS = {KEY: KEYED, COVERING: COVERED}
AGAIN = f"{COVERING}, {AMPLE}, again"
_UNITS = {
    "throughput": "transactions/s",
    "heap_reads": "pages per lookup",
    "index_reads": "pages per lookup",
    "waiting": "of the sessions' time",
}


def variant(where: str, index: str) -> str:
    """The variant's name in the run record."""
    return f"{index}, {where}"


@experiment(claims=["haas-035", "haas-042"])
def lookups(chapter: Chapter) -> pd.DataFrame:
    """pgbench's SELECT by key from as many sessions as in print, in every place; observations.

    On somebody's server only what memory holds is measured, and CannotMeasure tells why.
    """
    variants = []
    for where in (AMPLE,) if chapter.borrowed else PLACES:
        # what comes after needs the third form, past the kernel's cache
        more = [SCATTERED] if where == DIRECT else []
        server = filled(chapter, where, KEYED, COVERED, *more)
        for index, relation in RELATIONS.items():
            warm = partial(_warm_up, chapter, server, relation)
            if where == AMPLE:  # whose pool holds all that lookups will need
                with server.connect() as connection:
                    allow_only(connection, "indexonlyscan")
                    SQL.run(connection, "scans.bring_in", relation=relation)
                warm = None
            look_up = partial(_looked_up, chapter, server, relation)
            variants.append(Variant(variant(where, index), look_up, prepare=warm))
    again = partial(_looked_up, chapter, place(chapter, AMPLE), COVERED)
    variants.append(Variant(AGAIN, again))
    observations = chapter.compare("lookups", variants, _UNITS, warmup=0)
    if chapter.borrowed:
        place(chapter, DIRECT)
    return observations


def _warm_up(chapter: Chapter, server: Server, relation: str, block: Block) -> None:
    """Fill a small pool with the variant's own pages, by lookups for others than the timed keys."""
    rows = chapter.parameters.accounts
    enough = min(2 * pool_pages(rows), chapter.parameters.lookups)
    with server.connect() as connection:
        seed_random(connection, block.seed)
        SQL.run(connection, "scans.warm_up", relation=relation, rows=rows, lookups=enough)


def _looked_up(chapter: Chapter, server: Server, relation: str, block: Block) -> dict[str, float]:
    given = chapter.parameters
    with server.connect() as connection:
        before = _read(connection, relation)
        done = pgbench.run(
            server,
            SQL.script(f"lookup_{relation}"),
            clients=given.clients,
            jobs=min(2, given.clients),
            transactions=max(1, given.lookups // given.clients),
            variables={"rows": given.accounts},
            seed=block.seed,
            protocol="prepared",
        )
        after = _read(connection, relation)
    heap, index, waited = (now - earlier for now, earlier in zip(after, before, strict=True))
    return {
        "throughput": done.tps,
        "heap_reads": heap / done.transactions,
        "index_reads": index / done.transactions,
        "waiting": waited / (given.clients * done.transactions / done.tps),
    }


def _read(connection: psycopg.Connection, relation: str) -> tuple[int, int, float]:
    """Pages of a table and of its indexes read into the pool, once pgbench has left, and how long
    all sessions waited for reads (s; 0 where track_io_timing is off).
    """
    while SQL.run(connection, "scans.lookups_under_way").fetchone() != (0,):
        time.sleep(0.001)
    return SQL.run(connection, "scans.pages_read", relation=relation).fetchone()
