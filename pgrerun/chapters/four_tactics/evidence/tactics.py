"""The closing table: which tactics paid in 1981, and what stands for each of them today."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.evidence import (
    compilation_today,
    files,
    microcode,
    operating_system,
)
from pgrerun.chapters.four_tactics.miniature import LONG
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, fact, greater, less

COMPILATION, FILES, MICROCODE, SYSTEM, SYSTEM_LONG = (
    "compilation (long commands)",
    "file system (long commands, cold)",
    "microcode (all that checksums take)",
    "operating system (short)",
    "operating system (long)",
)
# tactic, in the order of what it gained in 1981, to its row of the print's closing table, whose
# range for an operating system is of all commands
PRINTED = {
    COMPILATION: "DC",
    FILES: "FS",
    MICROCODE: "M",
    SYSTEM: "MANGOS",
    SYSTEM_LONG: "MANGOS",
}
PAYS, HARDLY = 1.25, 1.05
"""From which gain on a tactic is said to pay, and up to which it is hardly one."""
LOSS = "a loss"


def effort(chapter: Chapter, profiled: pd.DataFrame | None) -> dict[str, Interval | float]:
    """What stands for each tactic today, old over new; of those tactics that were measured.

    Each is of whole commands, as the memorandum's are. JIT and raw reads by tracks by the response
    time of the long ones, checksums by the instructions of those (`experiments.microcode.profile`),
    and messages by the CPU time of the short and of the long.
    """
    messages = chapter.show(operating_system.without_messages) or {}
    gains = (
        chapter.show(compilation_today.gain, "wall", *LONG),
        chapter.show(files.gain, "wall", *LONG),
        chapter.show(microcode.without_checksums, profiled),
        messages.get("short"),
        messages.get("long"),
    )
    return {name: gain for name, gain in zip(PRINTED, gains) if gain is not None}


def pays(gain: Interval | float) -> str:
    """Whether a gain is one, and pays, in words."""
    if greater(gain, PAYS):
        return "a gain of a quarter and more"
    if less(gain, 1):
        return LOSS
    if greater(gain, 1) and less(gain, HARDLY):
        return "a gain of less than a twentieth"
    if greater(gain, 1) and less(gain, PAYS):
        return "a gain of less than a quarter"
    if less(gain, PAYS):
        return "no sure gain, and less than a quarter"
    return "a gain, perhaps of a quarter" if greater(gain, 1) else "which may be a gain or none"


def ranking(effort: Mapping[str, Interval | float], least: float = PAYS) -> dict[str, Part] | None:
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
