"""Two releases side by side: the server under test and another one, by the same experiments.

When the reader gives a folder with another release's programs, that release is under test and what
pip installed stands beside it. Otherwise the oldest other release installed on the machine does,
unless time is short.
"""

from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.explorations import relations
from pgrerun.chapters.explorations.experiments import (
    buffer_pool,
    planner,
    size_up,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Variant
from pgrerun.lab.server import Cluster, Programs, bundled, installed


class Release:
    """What this chapter's experiments want of a chapter, for one release.

    That is servers, and parameters with sizes no larger than they must be.
    """

    def __init__(self, chapter: Chapter, programs: Programs):
        least = {"largest": relations.LARGE, "per_decade": 1}
        self._chapter, self.programs = chapter, programs
        self.parameters = chapter.parameters.model_copy(update=least)
        self.name = f"PostgreSQL {programs.version}"

    @property
    def server(self) -> Cluster:
        """A throwaway server with PostgreSQL's defaults."""
        return self.cluster()

    def cluster(self, **settings: str | int) -> Cluster:
        """As `Chapter.cluster`."""
        return self._chapter.beside(self.programs, **settings)


def other(chapter: Chapter) -> Programs:
    """The release to set beside the one under test; CannotMeasure if there is none."""
    if chapter.borrowed:
        raise CannotMeasure(
            "restart",
            "two releases are compared on throwaway servers of the same machine, and the server"
            " under test is somebody's",
        )
    if chapter.programs != bundled():
        return bundled()
    others = [programs for programs in installed() if programs.major != bundled().major]
    if chapter.parameters.profile == "ci" or not others:
        raise CannotMeasure(
            "another release",
            "only the release that pip installed is used here; name a folder with another one's"
            " programs (the parameter `programs`) to see both",
        )
    return others[-1]


def both(chapter: Chapter) -> tuple[Release, Release]:
    """The release under test, and the one beside it."""
    return Release(chapter, chapter.programs), Release(chapter, other(chapter))


@experiment()
def side_by_side(chapter: Chapter) -> pd.DataFrame:
    """Count and then time on both releases.

    What was counted: column what, and a column per release.
    """
    pair = both(chapter)
    for release in pair:
        relations.load(release, replacing=False)
    counts = {release.name: _counts(release) for release in pair}
    first, second = pair
    with first.server.connect() as one, second.server.connect() as another:
        timed, beside = _statements(first, one), _statements(second, another)
        variants = []
        for words in timed:
            variants.append(Variant(f"{words}: {first.name}", timed[words]))
            variants.append(Variant(f"{words}: {second.name}", beside[words]))
        chapter.compare("releases", variants, {"time": "ms"}, warmup=0)  # in turns
    return pd.DataFrame(counts).rename_axis("what").reset_index()


def _counts(release: Release) -> dict[str, str]:
    """What the chapter's experiments counted, in words short enough for a table."""
    written = buffer_pool.written(release, [buffer_pool.EQUAL])
    row = written.set_index("variant").loc[buffer_pool.DIRTY]
    plans, grid = planner.picks(release), planner.grid(release)
    combinations = grid.groupby(planner.JOINED).ngroups
    wal = buffer_pool.wal_of_an_update(release)["bytes per tuple"]
    by_work_mem = {
        f"GROUP BY unique2 with {work_mem}": planner.picked(plans, work_mem)
        for work_mem in planner.WORK_MEM
    }
    return {
        "dirty pages of miltup2 that the reader of miltup1 meets, and pages that it writes": (
            f"{row['dirty_before']:,}, {row['written']:,}"
        ),
        "WAL of an update, bytes per tuple: after a checkpoint, later": (
            ", ".join(f"{value:,.0f}" for value in wal)
        ),
        **by_work_mem,
        **_counted_from_13_on(release),
        "join of hundredktup with miltup": planner.over_memory(planner.printed_range(grid)),
        "joins of the grid, here of fewer sizes, that memory alone changes": (
            f"{len(planner.plan_changes(grid))} of {combinations}"
        ),
    }


def _counted_from_13_on(release: Release) -> dict[str, str]:
    """What EXPLAIN tells from PostgreSQL 13 on: the first reader's pages, and what spills."""
    least, most = planner.GRID[0], planner.GRID[-1]
    try:
        reader = buffer_pool.first_reader(release).iloc[0]
        spills = planner.spills(release).set_index("work_mem")
    except CannotMeasure:
        dirtied, batches, size = "not counted", "can't spill", "not told"
    else:
        dirtied, batches = f"{reader['dirtied']:,}", f"{spills.at[least, 'batches']:,.0f}"
        size = f"{spills.at[most, 'memory_kb'] / 1024:.1f}"
    return {
        "pages that the updated relation's first reader makes dirty": dirtied,
        f"batches when GROUP BY unique2 is hashed with {least}": batches,
        f"its hash table with {most}, MB": size,
    }


def _statements(release: Release, connection: psycopg.Connection) -> dict[str, partial]:
    """What is timed on both releases, by name: what takes a block and times one statement."""
    pair = planner.timed_pair(release)
    found = {
        "GROUP BY unique2, hashed, 30MB": planner.Grouping(planner.UNIQUE, planner.HASHED, "30MB"),
        "GROUP BY unique2, index order": planner.Grouping(planner.UNIQUE, planner.ORDERED, "4MB"),
        "GROUP BY twenty, 4MB": planner.Grouping(planner.TWENTY, planner.PICKED, "4MB"),
    }
    return {
        **{words: partial(variant.time, connection) for words, variant in found.items()},
        "scan of hundredktup": partial(
            size_up.timed_scan, connection, size_up.SERIAL, relations.SMALL
        ),
        **{
            f"{how}, 30MB": partial(planner.timed_join, connection, *pair, how, "30MB")
            for how in planner.FORCED_JOINS
        },
    }
