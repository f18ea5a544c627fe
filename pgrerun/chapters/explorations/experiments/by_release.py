"""The same on several releases: what is counted, which plans are picked, and how fast it is.

What is counted is of each release as initdb leaves it. What is timed has the same settings and no
data checksums, which initdb of PostgreSQL 18 would switch on and that of older releases not.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing

import numpy as np

from pgrerun.chapters.explorations.experiments import buffer_pool, planner
from pgrerun.chapters.explorations.relations import LARGE, SMALL, SQL, keyed, name
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.server import Cluster, Programs, fetched, releases
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened, side_by_side

SETTINGS = {"shared_buffers": "512MB", "synchronous_commit": "off"}
CLIENTS = (1, 8)


def compared(bed: Testbed, many: int, needed: str = "") -> Mapping[str, Programs]:
    """So many releases by name, evenly from the oldest here to the one under test, which is last.

    Only those count that have what is `needed`, if any. CannotMeasure where there is no other, or
    time is short.
    """
    there = {one: fetched.chosen(one) for one in fetched.comparable()}
    there = {one: p for one, p in there.items() if not needed or releases.has(p.number, needed)}
    if bed.borrowed or not there or bed.parameters.profile == "ci":
        raise CannotMeasure(
            "another release",
            "releases are compared on throwaway servers of this machine, and not at profile ci;"
            " `pgrerun releases fetch` brings older ones",
        )
    newest = releases.named(bed.programs.number)
    older = {one: p for one, p in there.items() if p.number < bed.programs.number and one != newest}
    every = {**older, newest: bed.programs}
    names = sorted(every, key=lambda one: every[one].number)
    places = np.linspace(0, len(names) - 1, min(many, len(names))).round().astype(int)
    return {names[place]: every[names[place]] for place in places}


@experiment(units={"plan": "text"})
def plans_by_release(bed: Testbed) -> Iterator[Row]:
    """The grouping by the unique attribute as each release plans it."""
    for release, beside in _beside(bed):
        for row in planner.grouping_plans(beside):
            if row["state"] == planner.NEW:
                yield {"release": release, **row}


@experiment(
    units={"dirty": "pages", "written": "pages", "wal_first": "bytes/tuple", "wal": "bytes/tuple"}
)
def writes_by_release(bed: Testbed) -> Iterator[Row]:
    """Dirty pages that the reader meets and pages that it writes, and the WAL of an update.

    The reader's in a pool as large as its relation; the WAL right after a checkpoint and later.
    From 9.0 on, which tells a relation's file without reading a catalog: that would take pages.
    """
    for release, beside in _beside(bed, "pg_relation_filenode"):
        reads = buffer_pool.counted_reads(beside, buffer_pool.EQUAL, buffer_pool.READ, ())
        [row] = [row for row in reads if row["before"] == buffer_pool.DIRTY]
        first, later = (row["bytes"] for row in buffer_pool.wal_of_an_update(beside))
        yield {
            "release": release,
            "dirty": row["dirty_before"],
            "written": row["written"],
            "wal_first": first,
            "wal": later,
        }


def _beside(bed: Testbed, needed: str = "") -> Iterator[tuple[str, Testbed]]:
    """Each release with a testbed of its own, whose relations are no larger than they must be."""
    least = bed.parameters.model_copy(update={"largest": LARGE, "per_decade": 1, "tuples": 20_000})
    for release, programs in compared(bed, bed.parameters.releases, needed).items():
        with closing(Testbed(least, programs)) as beside:
            yield release, beside


@experiment(units={"tps": "transactions/s"})
def speed_by_release(bed: Testbed) -> Iterator[Row]:
    """Transactions per second of lookups by the key and of groupings, by clients and size.

    All is in the buffer pool and nothing is written, so that nobody waits for a disk. As no word
    is decided by it, a run lasts a fifth of what others do.
    """
    unchecked = lambda one: ("--no-data-checksums",) if one.release >= (18,) else ()
    with side_by_side(
        (release, Cluster(one, SETTINGS, initdb=unchecked(one)))
        for release, one in compared(bed, bed.parameters.releases).items()
    ) as servers:
        for server in servers.values():
            for tuples in (SMALL, LARGE):
                keyed(server, name(tuples), tuples)

        def measure(
            block: Block, release: str, script: str, clients: int, tuples: int
        ) -> dict[str, float]:
            done = pgbench.run(
                servers[release],
                SQL.script(script),
                clients=clients,
                seconds=max(1, round(shortened(bed.parameters.seconds))),
                variables={"relation": name(tuples), "tuples": tuples},
                seed=block.seed,
            )
            return {"tps": done.tps}

        variants = {
            "release": list(servers),
            "script": ["lookup", "grouping"],
            "clients": CLIENTS,
            "tuples": [SMALL, LARGE],
        }
        yield from bed.compare(measure, variants, pairs=5, against=next(iter(servers)))
