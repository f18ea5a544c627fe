"""What the profile says of microcode, and what the memorandum's own numbers do."""

import math

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.experiments.microcode import OTHERS, ROUTINES
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval

EVALUATING = ("GETSYMBOL", "INTERPRET")
# all that evaluates commands over one relation: processor, interpreter, fetching, scanning
ONE_VARIABLE = tuple(name for name in ROUTINES if name != OTHERS)


def share(chapter: Chapter, routines: tuple[str, ...] = EVALUATING) -> Interval:
    """The share of several routines together in all samples."""
    shares = [chapter.table("profile", name)["interpreter"] for name in routines]
    return statistics.median(sum(shares), seed=chapter.parameters.seed)


def bound(chapter: Chapter) -> Interval:
    """Amdahl's bound: what is gained if GETSYMBOL and INTERPRET took no time at all.

    Infinite where all samples of a block were theirs.
    """
    of = share(chapter)
    sides = (of.estimate, of.low, of.high)
    gains = [1 / (1 - side) if side < 1 else math.inf for side in sides]
    return Interval(*gains, of.n)


def printed_bound() -> float:
    """The same by the memorandum's profile."""
    percent = printed.table("four_tactics_profile").percent
    return 1 / (1 - percent[list(EVALUATING)].sum() / 100)


def table_4() -> pd.DataFrame:
    """Table 4 recomputed: a row per routine, microseconds and percent."""
    columns = {
        "percent": "CPU (%)",
        "saved_us": "saved per call (us)",
        "net_us": "less the call (us)",
        "recomputed_routine": "gain of the routine (%)",
        "recomputed_overall": "gain of all (%)",
    }
    found = printed.derived("four_tactics_microcode")
    found["percent"] = printed.table("four_tactics_profile").percent
    found = found[list(columns)].rename(columns=columns)
    return found.rename_axis("routine").reset_index()


def estimate() -> dict[str, bool]:
    """Whether the sum follows from the table, and is as small as the memorandum says."""
    gain = printed.derived("four_tactics_microcode").recomputed_overall.sum()
    in_print = printed.cell("four_tactics_said", "gain_percent", "value")
    of_files = printed.cell("four_tactics_conclusions", "FS", "high")
    return {
        "the sum of both routines is as printed, to a tenth": abs(gain - in_print) <= 0.15,
        "it is no more than a quarter of what files gave": gain < of_files / 4,
    }


def losses() -> dict[str, bool]:
    """Whether the call of a microroutine costs more than the microcode saves."""
    net = printed.derived("four_tactics_microcode").net_us
    return {f"{name} would lose": value < 0 for name, value in net.items()}
