"""Dynamic compilation on the miniature of INGRES, as in 1981: interpreted, threaded, in line."""

from collections import Counter
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.miniature import RUNS, Miniature
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.ingres import INLINE, INTERPRETER, THREADED
from pgrerun.lab.ingres.benchmark import NARROW, texts
from pgrerun.lab.ingres.compiled import Compiler
from pgrerun.lab.ingres.symbols import Program, program
from pgrerun.lab.instruments import opcodes
from pgrerun.lab.quel import read
from pgrerun.lab.relations import Parts

UNITS = dict.fromkeys(RUNS, "s of CPU")
QUALIFIED = ("c_3360", "d_3360")
JOINS = ("f_3360", "g_3360", "h_3360", "i_3360")
# engine to runs: code in line only where the qualification has operators
ENGINES = {INTERPRETER: RUNS, THREADED: RUNS, INLINE: QUALIFIED}
# runs of a short command that are timed together: one alone is near the clock's grain
REPEATS = {"0": 100, "1": 60, "210": 5, "3360": 1}


@experiment(
    claims=[
        "ston-008",
        "ston-011",
        "ston-012",
        "ston-014",
        "ston-015",
        "ston-016",
        "ston-017",
        "ston-019",
        "ston-020",
        "ston-021",
        "ston-022",
        "ston-057",
        "ston-058",
    ]
)
def engines(chapter: Chapter) -> None:
    """The runs of Tables 1 and 2 with each engine on warm relations: CPU seconds of one run.

    Reading is the same for all of them.
    """
    with Miniature() as mini:
        variants = [Variant(engine, partial(_all_runs, mini, engine)) for engine in ENGINES]
        # the relations have just been written, and nothing else is cached: no warm-up
        chapter.compare("engines", variants, UNITS, warmup=0)


def _all_runs(mini: Miniature, engine: str, block: Block) -> dict[str, float]:
    base, spent = mini.base(engine), {}
    for run in ENGINES[engine]:
        times = REPEATS[run.split("_")[1]]
        spent[run] = sum(mini.run(base, run)["cpu"] for _ in range(times)) / times
    return spent


def reuse() -> pd.DataFrame:
    """What decomposition makes of each join. Exact.

    Columns: query, commands (over one relation), compilations, tuples evaluated.
    """
    rows = []
    with Miniature() as mini:
        for run in JOINS:
            base = mini.base(THREADED)
            mini.run(base, run, warm=False)
            rows.append((run[0], base.work.commands, base.work.compilations, base.work.tuples))
    return pd.DataFrame(rows, columns=["query", "commands", "compilations", "tuples evaluated"])


def _qualifications() -> dict[str, Program]:
    """The symbols of queries c and d, by their letter."""
    found = {}
    for query in "cd":
        [_, command] = read(f"range of p is parts {texts()[query]}")
        found[query] = program(command.where, NARROW)
    return found


def steps() -> pd.DataFrame:
    """What each engine does for one tuple of a qualification. Exact.

    Interpreted, every operator looks at the types of its operands; compiled, none does. A
    logarithm of a constant is computed for every tuple or once. Columns: query, engine, symbols
    fetched, type decisions, logarithms.
    """
    rows = []
    for query, where in _qualifications().items():
        kinds = Counter(symbol.kind for symbol in where.symbols)
        rows.append((query, "interpreted", len(where.symbols), kinds["o"], kinds["u"]))
        rows.append((query, "compiled", 0, 0, Compiler().source(where).count("log(")))
    columns = ["query", "engine", "symbols fetched", "type decisions", "logarithms"]
    return pd.DataFrame(rows, columns=columns)


def extra_instructions() -> pd.DataFrame:
    """Instructions of Python's own machine for one tuple. Exact for a release of Python.

    The program that is compiled here runs on that machine as INGRES ran on a VAX. Columns: query,
    in line, threaded, nodes (of threaded code's tree), extra per node.
    """
    page, rows = NARROW.pack(Parts(1).row(1)), []
    for query, where in _qualifications().items():
        inline, _ = opcodes.executed(Compiler().inline(where), page, 0)
        threaded, nodes = opcodes.executed(Compiler().threaded(where), page, 0)
        rows.append((query, inline, threaded, nodes, (threaded - inline) / nodes))
    return pd.DataFrame(rows, columns=["query", "in line", "threaded", "nodes", "extra per node"])
