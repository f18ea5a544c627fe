"""Two releases side by side: the server under test and another one, by the same verbs.

When the reader gives a folder with another release's programs, that release is under test and what pip installed
stands beside it. Otherwise the oldest release installed on the machine does, unless time is short.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations import dirt, grouping, joins, relations, sizeup
from pgrerun.chapters.explorations.pools import DIRTY, EQUAL
from pgrerun.chapters.explorations.relations import LARGE, SMALL
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm
from pgrerun.server import Cluster, Programs, bundled, installed


class Place:
    """What this chapter's verbs want of a chapter, for one release: servers, and parameters with sizes no larger than they must be."""

    def __init__(self, chapter: Chapter, programs: Programs):
        self._chapter, self._programs = chapter, programs
        self.parameters = chapter.parameters.model_copy(update={"largest": LARGE, "per_decade": 1})
        self.name = f"PostgreSQL {programs.version}"

    @property
    def server(self) -> Cluster:
        return self.cluster()

    def cluster(self, **settings: str | int) -> Cluster:
        return self._chapter.beside(self._programs, **settings)


def other(chapter: Chapter) -> Programs:
    """The release to set beside the one under test; CannotMeasure if there is none."""
    if chapter.borrowed:
        raise CannotMeasure("restart", "two releases are compared on throwaway servers of the same machine, and the server under test is somebody's")
    if chapter.programs != bundled():
        return bundled()
    older = [programs for programs in installed() if programs.major != bundled().major]
    if chapter.parameters.profile == "ci" or not older:
        raise CannotMeasure("another release", "only the release that pip installed is used here; name a folder with another one's programs (the parameter `programs`) to see both")
    return older[-1]


def places(chapter: Chapter) -> list[Place]:
    """Both releases, the one under test first, with the relations of Experiments 2 to 4 loaded."""
    found = [Place(chapter, chapter.programs), Place(chapter, other(chapter))]
    for place in found:
        relations.complete(place)
    return found


def side_by_side(chapter: Chapter) -> pd.DataFrame:
    """Count and then time on both releases; what was counted: column what, and a column per release."""
    both = places(chapter)
    found = pd.DataFrame({place.name: dict(_counts(place)) for place in both})
    _timing(chapter, both)
    return found.rename_axis("what").reset_index()


# ---- counted


def _counts(place: Place) -> Iterator[tuple[str, str]]:
    """What the chapter's experiments counted, in words short enough for a table."""
    row = dirt.pick(dirt.written(place, [EQUAL]), EQUAL, DIRTY)
    yield "dirty pages of miltup2 that the reader of miltup1 meets, and pages that it writes", f"{row['dirty_before']:,}, {row['written']:,}"
    log = dirt.log_of_an_update(place)["bytes per tuple"]
    yield "log of an update, bytes per tuple: after a checkpoint, later", ", ".join(f"{value:,.0f}" for value in log)
    yield "pages that the updated relation's first reader makes dirty", _first_reader(place)
    plans = grouping.picks(place)
    for work_mem in grouping.WORK_MEM:
        yield f"GROUP BY unique2 with {work_mem}", grouping.picked(plans, grouping.UNIQUE, work_mem)
    spills = grouping.spills(place)
    least, most = spills.iloc[0], spills.iloc[-1]
    yield f"batches when it is hashed with {least['work_mem']}", "can't spill" if pd.isna(least["batches"]) else f"{least['batches']:,.0f}"
    yield f"its hash table with {most['work_mem']}, MB", "not told" if pd.isna(most["memory_kb"]) else f"{most['memory_kb'] / 1024:.1f}"
    grid = joins.grid(place)
    yield "join of hundredktup with miltup", joins.over_memory(joins.printed_range(grid))
    yield "joins of the grid that memory alone changes", f"{len(joins.flips(grid))} of {grid.groupby(['small', 'large', 'attributes', 'multiplier']).ngroups}"
    scan = sizeup.workers_by_size(place).iloc[-1]
    yield f"workers planned for a scan of {scan['relation']}", str(scan["workers"])


def _first_reader(place: Place) -> str:
    try:
        return f"{dirt.first_reader(place).iloc[0]['dirtied']:,}"
    except CannotMeasure:
        return "not counted"


# ---- timed


def statements(place: Place) -> dict[str, tuple[Callable, tuple]]:
    """What is timed on both releases, by name: a verb that takes a connection and a block, and what it takes in between."""
    small, large = joins.timed_pair(place)
    by = {
        "GROUP BY unique2, hashed, 30MB": (grouping.UNIQUE, grouping.HASHED, "30MB"),
        "GROUP BY unique2, index order": (grouping.UNIQUE, grouping.ORDERED, "4MB"),
        "GROUP BY twenty, 4MB": (grouping.TWENTY, grouping.PICKED, "4MB"),
    }
    return {
        **{words: (grouping.timed, (*one, grouping.NEW, grouping.KEPT)) for words, one in by.items()},
        "scan of hundredktup": (sizeup.scanned, (sizeup.ONE_PROCESS, SMALL)),
        **{f"{how}, 30MB": (joins.timed, (small, large, how, "30MB")) for how in (joins.HASH, joins.MERGE)},
    }


def _timing(chapter: Chapter, both: list[Place]) -> None:
    """Time of the slides' statements on both releases, interleaved."""
    with both[0].server.connect() as first, both[1].server.connect() as second:
        arms = [
            Arm(f"{words}: {place.name}", partial(verb, connection, *arguments))
            for words, (verb, arguments) in statements(both[0]).items() for place, connection in zip(both, (first, second))
        ]  # fmt: skip
        chapter.compare("releases", arms, {"time": "ms"}, warmup=0)


def ratios(chapter: Chapter) -> dict[str, tuple[statistics.Interval, str, str]] | None:
    """By statement: time on the first release over that on the second, and both names; None if only one was there."""
    times = chapter.table("releases", "time")
    if times.empty:
        return None
    under_test, beside = (Place(chapter, programs).name for programs in (chapter.programs, other(chapter)))
    found = {}
    for words in dict.fromkeys(arm.split(": ")[0] for arm in times):
        ratio = chapter.ratio("releases", "time", f"{words}: {under_test}", f"{words}: {beside}")
        found[words] = ratio, under_test, beside
    return found
