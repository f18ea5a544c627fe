"""What the engines of the miniature say: what compiling gains, and from how many tuples on."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.experiments.compilation import JOINS, QUALIFIED
from pgrerun.chapters.four_tactics.miniature import RUNS
from pgrerun.lab.ingres import INLINE, INTERPRETER, THREADED
from pgrerun.record import statistics
from pgrerun.record.statistics import Interval

BRIEF = ("a_0", "b_1", "c_1", "d_1")
LONG = tuple(run for run in RUNS if run.endswith(("_210", "_3360")))


def gain(chapter: Chapter, run: str, engine: str = THREADED) -> Interval:
    """CPU time of the interpreter over that of compiled code, for one run of the tables."""
    return chapter.ratio("engines", run, INTERPRETER, engine)


def gains(chapter: Chapter, runs: tuple[str, ...] = RUNS) -> dict[str, Interval]:
    """The same for several runs."""
    return {run: gain(chapter, run) for run in runs}


def losses(chapter: Chapter) -> dict[str, Interval]:
    """CPU time of compiled code over that of the interpreter, for commands on one tuple."""
    return {run: ratio.inverse() for run, ratio in gains(chapter, BRIEF[1:]).items()}


def threaded_over_inline(chapter: Chapter) -> dict[str, Interval]:
    """CPU time of threaded code over code in line, where the qualification has operators."""
    return {run: chapter.ratio("engines", run, THREADED, INLINE) for run in QUALIFIED}


def per_tuple(chapter: Chapter, engine: str, query: str = "c") -> pd.Series:
    """Seconds for one more tuple, from the runs with 210 and 3360: one value per block."""
    few, many = (chapter.table("engines", f"{query}_{size}")[engine] for size in (210, 3360))
    return (many - few) / (3360 - 210)


def cheaper_tuple(chapter: Chapter) -> Interval:
    """Cost of one more tuple of query c, interpreted over compiled."""
    costs = (per_tuple(chapter, engine) for engine in (INTERPRETER, THREADED))
    return statistics.ratio(*costs, seed=chapter.parameters.seed)


def break_even(chapter: Chapter, query: str = "c") -> Interval:
    """Tuples after which compiling pays: what it costs on one tuple over what each more saves."""
    one = chapter.table("engines", f"{query}_1")
    saved = per_tuple(chapter, INTERPRETER, query) - per_tuple(chapter, THREADED, query)
    # both commands of one tuple evaluate that tuple as well
    tuples = (one[THREADED] - one[INTERPRETER]) / saved + 1
    return statistics.median(tuples, seed=chapter.parameters.seed)


def complexity(chapter: Chapter) -> dict[str, bool]:
    """Whether compiling gains more, the more complex the qualification: intervals lie apart."""
    b, c, d = gains(chapter, ("b_3360", "c_3360", "d_3360")).values()
    return {
        "three comparisons gain more than no qualification": c.low > b.high,
        "arithmetic gains more than three comparisons": d.low > c.high,
    }


def ranks(chapter: Chapter) -> dict[str, bool]:
    """Whether d and e gain the most of all commands that examine many tuples of one relation."""
    runs = tuple(run for run in RUNS if run.endswith("_3360") and run not in JOINS)
    found = gains(chapter, runs)
    first_two = sorted(runs, key=lambda run: -found[run].estimate)[:2]
    return {
        f"query {query} is among the two that gain most": f"{query}_3360" in first_two
        for query in "de"
    }


def reuse(chapter: Chapter, reused: pd.DataFrame) -> dict[str, bool]:
    """Whether the compiled form is reused (`experiments.compilation.reuse`), and joins gain."""
    fewer = reused["commands"] > reused["compilations"]
    once = (reused["compilations"] == 2).all() and fewer.all()
    joins = gains(chapter, JOINS)
    return {"commands that differ in a constant are compiled once": once} | {
        f"query {run[0]} gains": ratio.low > 1 for run, ratio in joins.items()
    }


def extra_instructions(found: pd.DataFrame, most: int = 3) -> dict[str, bool]:
    """Whether threaded code costs no more than two or three instructions a node."""
    extra = found.set_index("query")["extra per node"]
    return {f"query {query}: {most} or fewer": value <= most for query, value in extra.items()}


def constants(steps: pd.DataFrame) -> dict[str, bool]:
    """Whether the logarithm of a constant is computed per tuple by the interpreter alone."""
    logs = steps[steps["query"] == "d"].set_index("engine")["logarithms"]
    return {
        "interpreted, it is computed for every tuple": logs["interpreted"] == 1,
        "compiled, it isn't": logs["compiled"] == 0,
    }


def cached_joins(access: pd.DataFrame) -> dict[str, bool]:
    """Whether joins read fewer pages than they touch (`miniature.reads`)."""
    joins = access[access["run"].isin(JOINS)]
    return {"every join reads fewer pages than it touches": (joins.read < joins.touched).all()}
