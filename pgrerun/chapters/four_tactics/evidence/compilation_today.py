"""What parsing ahead, folding and JIT say on PostgreSQL."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.experiments.compilation_today import (
    AHEAD,
    INTERPRETED,
    JITTED,
    PARSED,
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
)
from pgrerun.record import statistics
from pgrerun.record.statistics import Interval


def executing_share(chapter: Chapter) -> Interval:
    """Of a long command, the part that isn't parsing and planning.

    What these take is what a short command gains by being parsed ahead.
    """
    long, short = (chapter.table("parsing", name) for name in ("long", "short"))
    planning = (short[PARSED] - short[AHEAD]).clip(lower=0)
    return statistics.ratio(long[PARSED] - planning, long[PARSED], seed=chapter.parameters.seed)


def run_time_plans(found: pd.DataFrame) -> dict[str, bool]:
    """Whether planning with the constant known chooses by it, and planning ahead can't."""
    paths = found.groupby("when")["path"].nunique()
    return {
        "planned at run time, the path depends on the constant": paths[WITH_CONSTANT] > 1,
        "planned ahead, it doesn't": paths[WITHOUT_CONSTANT] == 1,
    }


def conversions(found: pd.DataFrame) -> dict[str, bool]:
    """Whether constants are converted, and a logarithm of one computed, for every tuple."""
    beside_float, query_d = found["filter in the plan"]
    return {
        "integer constants are converted for every tuple": "(13)::" in beside_float,
        "expressions of constants are computed for every tuple": "ln(" in query_d,
    }


def one_compilation(found: pd.DataFrame) -> dict[str, bool]:
    """Whether one compilation serves all tuples (`experiments.compilation_today.compile_times`)."""
    functions = found["functions"]
    return {
        "as many functions are compiled for one tuple as for many": functions.nunique() == 1,
        "something is compiled": (functions > 0).all(),
    }


def compile_seconds(found: pd.DataFrame) -> Interval:
    """Seconds that compiling query d takes, over the sizes."""
    return statistics.median(found["compiling (ms)"] / 1000)


def jit_break_even(chapter: Chapter) -> Interval | None:
    """Tuples from which on JIT pays: what compiling costs, over what each tuple saves.

    None if the compiled form isn't quicker for certain: then there is no such number.
    """
    if chapter.ratio("jit", "running", INTERPRETED, JITTED).low <= 1:
        return None
    running, compiling = chapter.table("jit", "running"), chapter.table("jit", "compiling")
    saved = (running[INTERPRETED] - running[JITTED]) / chapter.parameters.tuples
    tuples = compiling[JITTED].median() / saved[saved > 0]
    return statistics.median(tuples, seed=chapter.parameters.seed)
