"""The closing table: which tactics paid in 1981, and what stands for each of them today."""

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.evidence import compilation_today, files, operating_system
from pgrerun.chapters.four_tactics.experiments.microcode import BY_INSTRUCTION, BY_TABLE
from pgrerun.chapters.four_tactics.miniature import LONG
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, fact, greater, less

COMPILATION, FILES, MICROCODE, SYSTEM = (
    "compilation (query d)",
    "file system (long commands, cold)",
    "microcode (a checksum)",
    "operating system (short)",
)
# tactic, in the order of what it gained in 1981, to its row of the print's closing table
PRINTED = {COMPILATION: "DC", FILES: "FS", MICROCODE: "M", SYSTEM: "MANGOS"}


def effort(chapter: Chapter) -> dict[str, Interval]:
    """What stands for each tactic today, old time over new; of those tactics that were measured.

    JIT for query d on the print's tuples, raw reads by tracks, an instruction for a checksum, and
    short commands without what their messages cost.
    """
    gains = (
        chapter.show(compilation_today.gain, "wall", "d_3360"),
        chapter.show(files.gain, "wall", *LONG),
        chapter.show(chapter.ratio, "checksums", "time", BY_TABLE, BY_INSTRUCTION),
        (chapter.show(operating_system.without_messages) or {}).get("short"),
    )
    return {name: gain for name, gain in zip(PRINTED, gains) if gain is not None}


def ranking(effort: dict[str, Interval], least: float = 1.25) -> dict[str, Part] | None:
    """Whether of two tactics one pays today by a quarter and more, and the other doesn't.

    What stands for compilation is another tactic, what stands for microcode no routine of the
    benchmark: neither is asked. None where one of the two wasn't measured.
    """
    if not {FILES, SYSTEM} <= set(effort):
        return None
    files_gain, system_gain = effort[FILES], effort[SYSTEM]
    return {
        f"{FILES} pays": fact(greater(files_gain, least), less(files_gain, least)),
        f"{SYSTEM} doesn't": fact(less(system_gain, least), greater(system_gain, least)),
    }
