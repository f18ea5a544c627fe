"""What planning at run time, folding and JIT say on PostgreSQL."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.experiments.compilation_today import (
    ANALYZED,
    ELSEWHERE,
    GROWN,
    INTERPRETED,
    JITTED,
    JOINS,
    SMALL,
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
)
from pgrerun.record import printed, runs, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, supporting


def run_time_plans(
    chosen: pd.DataFrame, grown: pd.DataFrame, joined: pd.DataFrame
) -> dict[str, bool | Part]:
    """Whether a plan follows what is known when it is made, and what is found while it runs.

    Of `experiments.compilation_today`: `run_time_plans`, `growing` and `partial_results`.
    """
    paths = chosen.groupby("when")["path"].nunique()
    path = grown.set_index(["when", "relation"])["path"]
    foreseen, unforeseen = joined["join"]
    return {
        "planned at run time, the path follows the relation's growth and new statistics": (
            path[WITH_CONSTANT, SMALL] != path[WITH_CONSTANT, ANALYZED]
        ),
        "planned ahead, it keeps its path while the relation grows": supporting(
            path[WITHOUT_CONSTANT, SMALL] == path[WITHOUT_CONSTANT, GROWN]
        ),
        "planned ahead, it keeps its path with new statistics": supporting(
            path[WITHOUT_CONSTANT, GROWN] == path[WITHOUT_CONSTANT, ANALYZED]
        ),
        "planned at run time, the path depends on the constant": supporting(
            paths[WITH_CONSTANT] > 1
        ),
        "the join follows the size of a partial result that nobody foresaw": supporting(
            unforeseen == foreseen
        ),
        "planned ahead, the path depends on the constant": supporting(paths[WITHOUT_CONSTANT] > 1),
    }


def conversions(found: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether the executor gets operands' types undecided, constants unconverted and uncomputed.

    Query d compares an integer with a float and doesn't say how: its plan does, or not.
    """
    beside_float, query_d = found["filter in the plan"]
    return {
        "how an integer is compared with a float is decided for every tuple": (
            "qoh)::double precision" not in query_d
        ),
        "an integer constant beside a float is converted for every tuple": "(13)::" in beside_float,
        "an expression of constants is computed for every tuple": supporting("ln(" in query_d),
    }


# ---- JIT


def gain(chapter: Chapter, what: str, *runs: str) -> Interval:
    """Time interpreted over that compiled, of runs together; `what`: "wall" or "cpu"."""
    total = sum(chapter.table("jit", f"{what} {run}") for run in runs)
    return statistics.ratio(total[INTERPRETED], total[JITTED], seed=chapter.parameters.seed)


def one_compilation(found: pd.DataFrame) -> dict[str, bool]:
    """Whether one compilation serves all tuples (`experiments.compilation_today.compiling`)."""
    functions = found[~found["run"].isin(JOINS)]["functions"]
    return {
        "as many functions are compiled for one tuple as for many": functions.nunique() == 1,
        "something is compiled": (functions > 0).all(),
    }


def elsewhere(chapter: Chapter) -> str:
    """On which release JIT was measured if not on the one under test, without a period; else "".

    Of this run's timings, or of the published one's if this run has none.
    """
    own = "measured" in dict(chapter.by_provenance("jit"))
    run = chapter.run if own else runs.load(runs.PUBLISHED, chapter.name)
    if (other := run.environment.get(ELSEWHERE)) is None:
        return ""
    return (
        f"PostgreSQL's JIT was measured{'' if own else ', in the published run,'} on PostgreSQL"
        f" {other['version']} ({other['name']}), as the server under test, PostgreSQL"
        f" {run.environment['server']['version']}, has no LLVM"
    )


def note(chapter: Chapter, *_: object) -> str:
    """`elsewhere`, behind a verdict."""
    return elsewhere(chapter)


def cheaper_tuple(chapter: Chapter, query: str = "c") -> Interval:
    """Time for one more tuple in threaded code over that in machine code, not counting the time to
    compile.
    """
    return chapter.ratio("evaluating", f"tuple {query}", INTERPRETED, JITTED)


def least_break_even(chapter: Chapter, query: str = "c") -> Interval:
    """Tuples that could be interpreted while they are being compiled for.

    With fewer JIT can't pay, even if what it compiles took no time.
    """
    compiling = chapter.table("evaluating", f"compiling {query}")[JITTED]
    a_tuple = chapter.table("evaluating", f"tuple {query}")[INTERPRETED]
    return statistics.ratio(compiling, a_tuple, seed=chapter.parameters.seed)


def jit_break_even(chapter: Chapter, query: str = "c") -> Interval | None:
    """Tuples from which on JIT pays: what compiling costs, over what each tuple saves.

    None if the compiled form isn't quicker for certain: then there is no such number.
    """
    a_tuple = chapter.table("evaluating", f"tuple {query}")
    compiling = chapter.table("evaluating", f"compiling {query}")[JITTED]
    saved = a_tuple[INTERPRETED] - a_tuple[JITTED]
    # the other way round, as a block may save nothing
    share = statistics.median(saved / compiling.median(), seed=chapter.parameters.seed)
    return share.inverse() if share.low > 0 else None


def printed_dilution() -> Mapping[str, bool]:
    """Whether in print each command on many tuples gains less response than CPU time."""
    wall, cpu = (
        printed.derived(f"four_tactics_compiled_{what}").speed_up for what in ("wall", "cpu")
    )
    return {
        f"query {run[0]} with {int(run.split('_')[1]):,} tuples": wall[run] < cpu[run]
        for run in wall.index
        if run.endswith(("_210", "_3360"))
    }
