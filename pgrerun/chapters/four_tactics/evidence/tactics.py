"""The closing table: which tactics paid in 1981, and what stands for each of them today."""

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.evidence import compilation_today, operating_system
from pgrerun.chapters.four_tactics.experiments.microcode import BY_INSTRUCTION, BY_TABLE
from pgrerun.chapters.four_tactics.experiments.reading import SYNC_ONE, WORKER_LARGE
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, greater, less

COMPILATION, FILES, MICROCODE, SYSTEM = (
    "compilation (query d)",
    "file system (cold scan)",
    "microcode (a checksum)",
    "operating system (short)",
)
# tactic, in the order of what it gained in 1981, to its row of the print's closing table
PRINTED = {COMPILATION: "DC", FILES: "FS", MICROCODE: "M", SYSTEM: "MANGOS"}


def effort(chapter: Chapter) -> dict[str, Interval]:
    """What stands for each tactic today, old time over new; of those tactics that were measured.

    JIT for query d on the print's tuples, large asynchronous reads, an instruction for a checksum,
    and a short command without a client to wait for.
    """
    gains = (
        chapter.show(compilation_today.gain, "wall", "d_3360"),
        chapter.show(chapter.ratio, "asynchronous", "scan", SYNC_ONE, WORKER_LARGE),
        chapter.show(chapter.ratio, "checksums", "time", BY_TABLE, BY_INSTRUCTION),
        None if chapter.borrowed else chapter.show(operating_system.without_client),
    )
    return {name: gain for name, gain in zip(PRINTED, gains) if gain is not None}


def ranking(effort: dict[str, Interval], least: float = 1.25) -> dict[str, bool | Part | None]:
    """Whether the two tactics that paid in 1981 pay by a quarter and more today, and one doesn't.

    What stands for microcode is no routine of the benchmark, and isn't asked.
    """
    return {
        f"{COMPILATION} pays": greater(effort[COMPILATION], least),
        f"{FILES} pays": greater(effort[FILES], least),
        f"{SYSTEM} doesn't": less(effort[SYSTEM], least),
    }
