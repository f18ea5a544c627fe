"""Dynamic compilation, as in 1981: the interpreter against compiled qualifications, on the miniature."""

import sys
from collections import Counter
from collections.abc import Mapping
from functools import partial
from types import FrameType

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.miniature import NARROW, RUNS, Miniature, texts
from pgrerun.experiment import Arm, Block
from pgrerun.ingres import INLINE, INTERPRETER, THREADED
from pgrerun.ingres.compiled import Compiler, Evaluate
from pgrerun.ingres.symbols import program
from pgrerun.quel import read
from pgrerun.relations import Parts

UNITS = {run: "s of CPU" for run in RUNS}
BRIEF = ("a_0", "b_1", "c_1", "d_1")
LONG = tuple(run for run in RUNS if run.endswith(("_210", "_3360")))
QUALIFIED = ("c_3360", "d_3360")
JOINS = ("f_3360", "g_3360", "h_3360", "i_3360")
CLAIMS = (
    "ston-008", "ston-011", "ston-012", "ston-014", "ston-015", "ston-016", "ston-017", "ston-019", "ston-020", "ston-021", "ston-022", "ston-058",
)  # fmt: skip
REPEATS = {"_0": 100, "_1": 60, "_210": 5}
"""Runs of a short command that are timed together: one alone is near the clock's grain."""


def engines(chapter: Chapter) -> None:
    """The runs of Tables 1 and 2 with each engine on warm relations: CPU seconds of one run of a command.

    A block measures both engines of the print on all runs, and code in line where the qualification has operators. The
    order of engines rotates. Reading is the same for all of them.
    """
    with Miniature() as mini:
        arms = [Arm(engine, partial(_all_runs, mini, engine)) for engine in (INTERPRETER, THREADED, INLINE)]
        chapter.compare("engines", arms, UNITS, warmup=0)  # the relations have just been written, and nothing else is cached


def _all_runs(mini: Miniature, engine: str, block: Block) -> dict[str, float]:
    base, spent = mini.base(engine), {}
    for run in QUALIFIED if engine == INLINE else RUNS:
        times = next((count for size, count in REPEATS.items() if run.endswith(size)), 1)
        spent[run] = sum(mini.run(base, run)["cpu"] for _ in range(times)) / times
    return spent


def gain(chapter: Chapter, run: str, engine: str = THREADED) -> statistics.Interval | None:
    """CPU time of the interpreter over that of compiled code, for one run of the tables."""
    return chapter.ratio("engines", run, INTERPRETER, engine)


def gains(chapter: Chapter, runs: tuple[str, ...] = RUNS, engine: str = THREADED) -> dict[str, statistics.Interval] | None:
    """The same for several runs; None if they did not run."""
    found = {run: gain(chapter, run, engine) for run in runs}
    return None if None in found.values() else found


def losses(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """CPU time of compiled code over that of the interpreter, for commands on one tuple."""
    found = gains(chapter, BRIEF[1:])
    return found and {run: ratio.inverse() for run, ratio in found.items()}


def threaded_over_inline(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """CPU time of threaded code over that of code in line, where the qualification has operators."""
    found = {run: chapter.ratio("engines", run, THREADED, INLINE) for run in QUALIFIED}
    return None if None in found.values() else found


def per_tuple(chapter: Chapter, engine: str, query: str = "c") -> pd.Series:
    """Seconds for one more tuple, from the runs with 210 and 3360: one value per block. Empty if it did not run."""
    few, many = (chapter.table("engines", f"{query}_{size}") for size in (210, 3360))
    return pd.Series(dtype=float) if few.empty else (many[engine] - few[engine]) / (3360 - 210)


def cheaper_tuple(chapter: Chapter) -> statistics.Interval | None:
    """Cost of one more tuple of query c, interpreted over compiled."""
    costs = [per_tuple(chapter, engine) for engine in (INTERPRETER, THREADED)]
    return None if costs[0].empty else statistics.ratio(*costs, seed=chapter.parameters.seed)


def break_even(chapter: Chapter, query: str = "c") -> statistics.Interval | None:
    """Tuples after which compiling pays: what it costs on one tuple, over what it saves on each more."""
    one = chapter.table("engines", f"{query}_1")
    if one.empty:
        return None
    saved = per_tuple(chapter, INTERPRETER, query) - per_tuple(chapter, THREADED, query)
    # both commands of one tuple evaluate that tuple as well
    return statistics.median((one[THREADED] - one[INTERPRETER]) / saved + 1, seed=chapter.parameters.seed)


def complexity_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether compiling gains more, the more complex the qualification: intervals that don't overlap."""
    found = gains(chapter, ("b_3360", "c_3360", "d_3360"))
    if found is None:
        return None
    b, c, d = found.values()
    return {"three comparisons gain more than no qualification": c.low > b.high, "arithmetic gains more than three comparisons": d.low > c.high}


def rank_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether d and e gain the most of all commands that examine many tuples of one relation."""
    found = gains(chapter)
    if found is None:
        return None
    order = sorted((run for run in RUNS if run.endswith("_3360") and run not in JOINS), key=lambda run: -found[run].estimate)
    return {f"query {query} is among the two that gain most": f"{query}_3360" in order[:2] for query in "de"}


def reuse() -> pd.DataFrame:
    """What decomposition makes of each join: commands over one relation, compilations, tuples evaluated. Exact."""
    rows = []
    with Miniature() as mini:
        base = mini.base(THREADED)
        for run in JOINS:
            base.work.__init__()
            mini.run(base, run, warm=False)
            rows.append((run[0], base.work.commands, base.work.compilations, base.work.tuples))
    return pd.DataFrame(rows, columns=["query", "commands", "compilations", "tuples evaluated"])


def reuse_facts(found: pd.DataFrame, chapter: Chapter) -> dict[str, bool] | None:
    """Whether the compiled form is reused, and every join gains."""
    joins = gains(chapter, JOINS)
    if joins is None:
        return None
    alike = bool((found["compilations"] == 2).all() and (found["commands"] > found["compilations"]).all())
    return {"commands that differ in a constant are compiled once": alike} | {f"query {run[0]} gains": ratio.low > 1 for run, ratio in joins.items()}


def steps() -> pd.DataFrame:
    """What each engine does for one tuple of a qualification: query, symbols fetched, type decisions, logarithms; interpreted and compiled. Exact.

    Interpreted, every operator looks at the types of its operands; compiled, none does. A logarithm of a
    constant is computed for every tuple or once.
    """
    rows = []
    for query in "cd":
        [_, command] = read(f"range of p is parts {texts()[query]}")
        symbols = program(command.where, NARROW).symbols
        operators = sum(symbol.kind == "o" for symbol in symbols)
        logs = sum(symbol.kind == "u" for symbol in symbols)
        rows.append((query, "interpreted", len(symbols), operators, logs))
        rows.append((query, "compiled", 0, 0, Compiler().source(program(command.where, NARROW)).count("log(")))
    return pd.DataFrame(rows, columns=["query", "engine", "symbols fetched", "type decisions", "logarithms"])


def extra_instructions() -> pd.DataFrame:
    """Instructions of Python's own machine for one tuple: query, in line, threaded, nodes (of threaded code's tree), extra per node.

    The program that is compiled here runs on that machine as INGRES ran on a VAX. Exact for a release of Python.
    """
    page, rows = NARROW.pack(Parts(1).row(1)), []
    for query in "cd":
        [_, command] = read(f"range of p is parts {texts()[query]}")
        where = program(command.where, NARROW)
        inline, _ = _executed(Compiler().inline(where), page)
        threaded, nodes = _executed(Compiler().threaded(where), page)
        rows.append((query, inline, threaded, nodes, (threaded - inline) / nodes))
    return pd.DataFrame(rows, columns=["query", "in line", "threaded", "nodes", "extra per node"])


def _executed(evaluate: Evaluate, page: bytes) -> tuple[int, int]:
    """Instructions executed, and functions of ours called, for one tuple."""
    seen: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, argument: object):
        frame.f_trace_opcodes = True
        seen[event] += 1
        return trace

    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        evaluate(page, 0)
    finally:
        sys.settrace(earlier)
    return seen["opcode"], seen["call"]


def extra_facts(found: pd.DataFrame, most: int = 3) -> dict[str, bool]:
    """Whether threaded code costs no more than two or three instructions a node."""
    return {f"query {query}: {most} or fewer": bool(extra <= most) for query, extra in zip(found["query"], found["extra per node"])}


def constant_facts(found: pd.DataFrame) -> dict[str, bool]:
    """Whether the interpreter computes the logarithm of a constant for every tuple, and nothing that is compiled does."""
    logs = found[found["query"] == "d"].set_index("engine")["logarithms"]
    return {"interpreted, it is computed for every tuple": bool(logs["interpreted"] == 1), "compiled, it isn't": bool(logs["compiled"] == 0)}


def printed_gains(table: str = "four_tactics_compiled_cpu") -> Mapping[str, float]:
    """Old time over new of each run of a table, as printed."""
    return published.derived(table)["speed_up"].to_dict()
