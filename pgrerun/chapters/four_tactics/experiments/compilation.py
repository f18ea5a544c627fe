"""Dynamic compilation on the miniature of INGRES, as in 1981: interpreted, threaded, in line.

Instructions of Python's own machine are counted, on which the miniature runs as INGRES ran on a
VAX: exact for a release of Python.
"""

import pandas as pd

from pgrerun.chapters.four_tactics.miniature import RUNS, Miniature
from pgrerun.lab.ingres import INTERPRETER, THREADED, DataBase
from pgrerun.lab.ingres.benchmark import NARROW, texts
from pgrerun.lab.ingres.compiled import Compiler
from pgrerun.lab.ingres.symbols import Program, interpret, program
from pgrerun.lab.instruments import opcodes
from pgrerun.lab.quel import read
from pgrerun.lab.relations import Parts
from pgrerun.progress import track


def _qualifications() -> dict[str, Program]:
    """The symbols of queries c and d, by their letter."""
    found = {}
    for query in "cd":
        [_, command] = read(f"range of p is parts {texts()[query]}")
        found[query] = program(command.where, NARROW)
    return found


def instructions() -> pd.DataFrame:
    """Instructions of Python's machine for one tuple, and for compiling.

    Columns: query, interpreted, threaded, in line, compiling (to threaded code), nodes (of its
    tree), extra per node (of threaded code, over code in line).
    """
    page, rows = NARROW.pack(Parts(1).row(1)), []
    for query, where in _qualifications().items():
        interpreted, _ = opcodes.executed(interpret, where, page, 0)
        compiling, _ = opcodes.executed(Compiler().threaded, where)
        threaded, nodes = opcodes.executed(Compiler().threaded(where), page, 0)
        inline, _ = opcodes.executed(Compiler().inline(where), page, 0)
        extra = (threaded - inline) / nodes
        rows.append((query, interpreted, threaded, inline, compiling, nodes, extra))
    columns = ["query", "interpreted", "threaded", "in line", "compiling", "nodes"]
    return pd.DataFrame(rows, columns=[*columns, "extra per node"])


def runs() -> pd.DataFrame:
    """Instructions of Python's machine for each run of Tables 1 and 2, compiling included. Exact.

    Columns: run, interpreted, compiled (to threaded code). What a command takes before its first
    tuple isn't INGRES's here: it is parsed already, and there are no catalogs.
    """
    with Miniature() as mini:
        bases = mini.base(INTERPRETER), mini.base(THREADED)
        rows = [
            (run, *(_executed(mini, base, run) for base in bases))
            for run in track(RUNS, "counting Python's instructions")
        ]
    return pd.DataFrame(rows, columns=["run", "interpreted", "compiled"])


def _executed(mini: Miniature, base: DataBase, run: str) -> int:
    return opcodes.executed(base.execute, mini.warm(base, run))[0]
