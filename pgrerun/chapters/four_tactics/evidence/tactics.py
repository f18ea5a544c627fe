"""The closing table: which tactics paid in 1981, and what stands for each of them today."""

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.evidence import compilation, operating_system
from pgrerun.chapters.four_tactics.experiments.microcode import NEW, OLD
from pgrerun.chapters.four_tactics.experiments.reading import SYNC_ONE, WORKER_LARGE
from pgrerun.errors import CannotMeasure
from pgrerun.record.statistics import Interval

# tactic, in the order of what it gained in 1981, to its row of the print's closing table
PRINTED = {
    "compilation (query d)": "DC",
    "file system (cold scan)": "FS",
    "microcode (sorting)": "M",
    "operating system (short)": "MANGOS",
}


def effort(chapter: Chapter) -> dict[str, Interval]:
    """What stands for each tactic today, old time over new; of those tactics that were measured.

    Compiled qualifications on many tuples, large asynchronous reads, newer instructions, and no
    switches and messages in a short command.
    """
    gains = (
        chapter.show(compilation.gain, "d_3360"),
        chapter.show(chapter.ratio, "asynchronous", "scan", SYNC_ONE, WORKER_LARGE),
        chapter.show(chapter.ratio, "instructions", "sort", OLD, NEW),
        chapter.show(operating_system.short_without_system),
    )
    return {name: gain for name, gain in zip(PRINTED, gains) if gain is not None}


def ranking(effort: dict[str, Interval], least: float = 1.25) -> dict[str, bool]:
    """Whether the two tactics that paid in 1981 pay by a quarter and more today, and two don't."""
    first, second, *others = effort.items()
    return {f"{name} pays": value.low >= least for name, value in (first, second)} | {
        f"{name} doesn't": value.high < least for name, value in others
    }


# claims that nothing here can try: capability and reason
OUT_OF_REACH = {
    "ston-010": ("man-months", "what a compiler takes to build can't be measured by running one"),
    "ston-034": (
        "catalogs of INGRES",
        "the miniature keeps its catalogs in memory, and PostgreSQL caches its own before a first"
        " command ends",
    ),
    "ston-045": (
        "disk with a moving head",
        "storage without a head that moves has no middle to be near to",
    ),
}


def out_of_reach(chapter: Chapter) -> None:
    """Set those claims aside, each for its reason."""
    for claim, (capability, reason) in OUT_OF_REACH.items():
        chapter.set_aside(CannotMeasure(capability, reason), [claim])
