"""What became of compilation: parsing ahead, constants folded, unknown constants, JIT, vectors."""

from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import SERIAL, STATEMENTS, load, timed
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock, pgbench, plans
from pgrerun.lab.relations import Parts, loading
from pgrerun.lab.relations.duck import in_memory
from pgrerun.lab.server import Server, installed, set_session

QUERY_D = STATEMENTS.text("commands.query_d")

PARSED, AHEAD = "parsed every time", "parsed ahead"
# variant to pgbench's name of the protocol
PROTOCOLS = {PARSED: "extended", AHEAD: "prepared"}


@experiment(claims=["ston-001", "ston-002", "ston-003"])
def parsing(chapter: Chapter) -> None:
    """Short and long commands by pgbench, parsed and planned with every execution or once: ms."""
    server = chapter.server
    load(chapter, server)
    variants = [
        Variant(name, partial(_latency, chapter, server, protocol))
        for name, protocol in PROTOCOLS.items()
    ]
    chapter.compare("parsing", variants, {"short": "ms", "long": "ms"})


def _latency(chapter: Chapter, server: Server, protocol: str, block: Block) -> dict[str, float]:
    tuples = chapter.parameters.tuples
    spent = {}
    for script, transactions in (("short", 250), ("long", max(2, 100_000 // tuples))):
        done = pgbench.run(
            server,
            STATEMENTS.script(script),
            transactions=transactions,
            protocol=protocol,
            seed=block.seed,
            variables={"tuples": tuples},
        )
        spent[script] = 1000 / done.tps
    return spent


def prepared(chapter: Chapter) -> dict[str, bool]:
    """Whether a server can keep a parsed command, and its plan."""
    with chapter.server.connect() as connection:
        STATEMENTS.run(connection, "compilation_today.prepare")
        known, generic = STATEMENTS.run(connection, "compilation_today.prepared").fetchone()
    return {"a command can be parsed before it is run": known, "its plan can be kept": generic}


WITH_CONSTANT, WITHOUT_CONSTANT = "planned at run time", "planned ahead"
PLAN_CACHE_MODES = {
    WITH_CONSTANT: "force_custom_plan",
    WITHOUT_CONSTANT: "force_generic_plan",
}


@experiment(claims=["ston-005"])
def run_time_plans(chapter: Chapter) -> pd.DataFrame:
    """The plan of one command for a rare and a frequent constant, known when it is planned or not.

    Columns: constant, when (it is planned), path, tuples (found).
    """
    rows = []
    with chapter.server.connect() as connection:
        with connection.transaction():
            create = STATEMENTS.text("compilation_today.skewed")
            loading.replace(connection, "skewed_parts", create)
            STATEMENTS.run(connection, "compilation_today.fill_skewed")
        connection.execute("VACUUM (FREEZE, ANALYZE) skewed_parts")
        STATEMENTS.run(connection, "compilation_today.by_color")
        for when, mode in PLAN_CACHE_MODES.items():
            set_session(connection, {"plan_cache_mode": mode})
            for color in ("black", "gray"):
                execute = STATEMENTS.text("compilation_today.execute", color=color)
                counting = STATEMENTS.run(connection, "compilation_today.tuples", color=color)
                path = plans.explain(connection, execute).node_type
                rows.append((color, when, path, counting.fetchone()[0]))
        connection.execute("DEALLOCATE by_color")
    return pd.DataFrame(rows, columns=["constant", "when", "path", "tuples"])


CONVERSIONS = {
    "an integer beside a float": "integer_beside_float",
    "query d": "logarithm_of_a_constant",
}


@experiment(claims=["ston-006"])
def conversions(chapter: Chapter) -> pd.DataFrame:
    """The qualifications as the executor gets them: qualification, filter in the plan."""
    rows = []
    Parts(210).load(chapter.server)
    with chapter.server.connect() as connection:
        for what, name in CONVERSIONS.items():
            query = STATEMENTS.text(f"compilation_today.{name}")
            plan = plans.explain(connection, query, verbose=True)
            rows.append((what, plan.properties["Filter"]))
    return pd.DataFrame(rows, columns=["qualification", "filter in the plan"])


FOLDED, EACH = "computed once", "computed for every tuple"


@experiment(claims=["ston-007"], needs=["superuser"])
def folding(chapter: Chapter) -> None:
    """Query d with its logarithm folded into a constant, and hidden from the planner: seconds."""
    server = chapter.server
    load(chapter, server)
    with server.connect() as connection:
        STATEMENTS.run(connection, "compilation_today.log_each_time")
    queries = {FOLDED: "computed_once", EACH: "computed_for_every_tuple"}
    variants = [
        timed(server, name, STATEMENTS.text(f"compilation_today.{query}"))
        for name, query in queries.items()
    ]
    chapter.compare("folding", variants, {"seconds": "s"})


# ---- vectors

TUPLEWISE, VECTORWISE = "PostgreSQL, a tuple at a time", "DuckDB, a vector at a time"


@experiment()
def vectors(chapter: Chapter) -> None:
    """Query d by a system that takes each step for one tuple, and by one that does for thousands.

    The second needs no compiler: what it decides once per step is spread over as many tuples.
    Seconds; one thread each.
    """
    load(chapter, chapter.server)
    with in_memory() as duck:
        duck.execute(f"CREATE TABLE parts AS {Parts(chapter.parameters.tuples).select()}")
        variants = [
            timed(chapter.server, TUPLEWISE, QUERY_D),
            Variant(VECTORWISE, partial(_in_duckdb, duck)),
        ]
        chapter.compare("vectors", variants, {"seconds": "s"})


def _in_duckdb(duck, block: Block) -> dict[str, float]:
    with clock.stopwatch() as watch:
        for _ in range(10):
            duck.execute(QUERY_D).fetchall()
    return {"seconds": watch.seconds / 10}


# ---- JIT

JITTED, INTERPRETED = "compiled (JIT)", "interpreted"
FORCED = {
    "jit_above_cost": 0,
    "jit_optimize_above_cost": 0,
    "jit_inline_above_cost": 0,
} | SERIAL
JIT_SETTINGS = {INTERPRETED: FORCED | {"jit": False}, JITTED: FORCED | {"jit": True}}
SIZES = (1, 210, 3360)


def _with_jit(chapter: Chapter) -> Server:
    """A server whose release brings LLVM: the borrowed one, the chapter's own, or one installed.

    CannotMeasure if there is none.
    """
    if chapter.borrowed:
        chapter.server.require("jit")  # its settings are the session's
        return chapter.server
    if chapter.programs.jit:
        return chapter.cluster()
    candidates = [programs for programs in installed() if programs.jit]
    if not candidates:
        raise CannotMeasure(
            "jit",
            "no PostgreSQL with LLVM is at hand: the server under test has none, and none is"
            " installed beside it (on Debian: apt install postgresql)",
        )
    return chapter.beside(max(candidates, key=lambda programs: programs.major))


@experiment(claims=["ston-004", "ston-013"])
def compile_times(chapter: Chapter) -> pd.DataFrame:
    """JIT compilation forced on query d for relations of the print's sizes and larger.

    Columns: tuples, functions, compiling (ms), execution (ms); several rows a size.
    """
    server, rows = _with_jit(chapter), []
    query = STATEMENTS.text("compilation_today.logarithm_of_a_constant")
    Parts(1).load(server)
    with server.connect() as connection:
        set_session(connection, JIT_SETTINGS[JITTED])
        connection.execute(query)  # the first loads the library
        for tuples in (*SIZES, chapter.parameters.tuples):
            Parts(tuples).load(server)
            for _ in range(-(-chapter.parameters.pairs // 2)):  # of each of several sizes
                top = plans.explain(connection, query, execute=True, timing=True).properties
                jit = top["JIT"]
                compiling = jit["Timing"]["Total"]
                rows.append((tuples, jit["Functions"], compiling, top["Execution Time"]))
    return pd.DataFrame(rows, columns=["tuples", "functions", "compiling (ms)", "execution (ms)"])


@experiment()
def jit(chapter: Chapter) -> None:
    """Query d on all tuples, interpreted and compiled, on the release with LLVM.

    Seconds, and in a pass of its own seconds of compiling and of running (all else).
    """
    server = _with_jit(chapter)
    Parts(chapter.parameters.tuples).load(server)
    variants = [Variant(name, partial(_jit, server, name)) for name in JIT_SETTINGS]
    chapter.compare("jit", variants, {"seconds": "s", "compiling": "s", "running": "s"})


def _jit(server: Server, variant: str, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        set_session(connection, JIT_SETTINGS[variant])
        STATEMENTS.run(connection, "compilation_today.no_tuples")  # loads the library
        with clock.stopwatch() as watch:
            connection.execute(QUERY_D).fetchall()
        top = plans.explain(connection, QUERY_D, execute=True, timing=True).properties
    compiling = top.get("JIT", {}).get("Timing", {}).get("Total", 0)
    return {
        "seconds": watch.seconds,
        "compiling": compiling / 1000,
        "running": (top["Execution Time"] - compiling) / 1000,
    }
