"""What became of compilation: parsing ahead, constants folded, unknown constants, JIT, vectors."""

from functools import partial
from pathlib import Path

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import (
    BENCHMARK,
    SERIAL,
    STATEMENTS,
    load,
    load_benchmark,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock, plans, proc
from pgrerun.lab.relations import Parts, loading
from pgrerun.lab.relations.duck import in_memory
from pgrerun.lab.server import Programs, Server, installed, set_session

QUERY_D = STATEMENTS.text("commands.query_d")

WITH_CONSTANT, WITHOUT_CONSTANT = "planned at run time", "planned ahead"
PLAN_CACHE_MODES = {
    WITH_CONSTANT: "force_custom_plan",
    WITHOUT_CONSTANT: "force_generic_plan",
}

SMALL, GROWN, ANALYZED = "small", "grown", "grown and analyzed"
GROWTH = {
    SMALL: (),
    GROWN: (STATEMENTS.text("compilation_today.grow"),),
    ANALYZED: ("ANALYZE growing_parts",),
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


@experiment(claims=["ston-005"])
def growing(chapter: Chapter) -> pd.DataFrame:
    """The plan of one prepared command before its relation grows, after, and with new statistics.

    Columns: relation (its state), when (the command is planned), path, tuples (of the relation).
    """
    rows = []
    for when, mode in PLAN_CACHE_MODES.items():
        with chapter.server.connect() as connection:
            with connection.transaction():
                create = STATEMENTS.text("compilation_today.growing")
                loading.replace(connection, "growing_parts", create)
                STATEMENTS.run(connection, "compilation_today.fill_growing")
            connection.execute("ANALYZE growing_parts")
            set_session(connection, {"plan_cache_mode": mode})
            STATEMENTS.run(connection, "compilation_today.whites")
            for state, change in GROWTH.items():
                for statement in change:
                    connection.execute(statement)
                execute = STATEMENTS.text("compilation_today.execute_whites")
                path = plans.explain(connection, execute).node_type
                tuples = connection.execute("SELECT count(*) FROM growing_parts").fetchone()[0]
                rows.append((state, when, path, tuples))
            connection.execute("DEALLOCATE whites")
    return pd.DataFrame(rows, columns=["relation", "when", "path", "tuples"])


@experiment(claims=["ston-005"], after=["compilation_today.run_time_plans"])
def partial_results(chapter: Chapter) -> pd.DataFrame:
    """A join of what half of a command finds, once foreseen and once not. Goes on from there.

    Columns: first half, foreseen, found (its tuples), join.
    """
    rows = []
    with chapter.server.connect() as connection:
        for name in ("foreseen", "unforeseen"):
            query = STATEMENTS.text(f"compilation_today.{name}")
            plan = plans.explain(connection, query, execute=True)
            [first] = [node for node in plan.walk() if node.properties.get("Alias") == "p"]
            found = int((first.rows_actual or 0) * (first.loops or 0))
            rows.append((name, round(first.rows_estimated), found, plan.joins[0]))
    return pd.DataFrame(rows, columns=["first half", "foreseen", "found", "join"])


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


# ---- vectors

TUPLEWISE, VECTORWISE = "PostgreSQL, a tuple at a time", "DuckDB, a vector at a time"


@experiment()
def vectors(chapter: Chapter) -> None:
    """Query d by a system that takes each step for one tuple, and by one that does for thousands.

    The second needs no compiler: what it decides once per step is spread over as many tuples.
    Seconds; one thread each.
    """
    load(chapter, chapter.server)
    with in_memory() as duck, chapter.server.connect() as connection:
        set_session(connection, SERIAL)
        duck.execute(f"CREATE TABLE parts AS {Parts(chapter.parameters.tuples).select()}")
        systems = {TUPLEWISE: connection, VECTORWISE: duck}
        variants = [Variant(name, partial(_query_d, system)) for name, system in systems.items()]
        chapter.compare("vectors", variants, {"seconds": "s"})


def _query_d(system, block: Block) -> dict[str, float]:
    with clock.stopwatch() as watch:
        for _ in range(10):
            system.execute(QUERY_D).fetchall()
    return {"seconds": watch.seconds / 10}


# ---- JIT

JITTED, INTERPRETED = "compiled (JIT)", "interpreted"
FORCED = {
    "jit_above_cost": 0,
    "jit_optimize_above_cost": 0,
    "jit_inline_above_cost": 0,
} | SERIAL
JIT_SETTINGS = {INTERPRETED: FORCED | {"jit": False}, JITTED: FORCED | {"jit": True}}
# of a compiler's work only that it leaves out the dispatch between the steps of an expression
IN_LINE = {"jit_inline_above_cost": -1, "jit_tuple_deforming": False}
LARGE = "d_many"
"""Query d on as many tuples as the parameter says."""
JIT_RUNS = {**BENCHMARK, LARGE: STATEMENTS.text("benchmark.d", relation="parts").rstrip(";")}
JOINS = ("f_3360", "g_3360", "h_3360", "i_3360")
COMPILED = ("d_1", "d_210", "d_3360", *JOINS)
EVALUATIONS = 1_000_000


ELSEWHERE = "server with JIT"
"""What the run's environment calls the release that JIT was measured on if it isn't the one under
test: its name and version."""


def stand_in(chapter: Chapter) -> Programs | None:
    """The installed release that JIT is measured on because the one under test has no LLVM.

    None if that has it, or is borrowed. CannotMeasure if no release with LLVM is installed.
    """
    if chapter.borrowed or chapter.programs.jit:
        return None
    candidates = [programs for programs in installed() if programs.jit]
    if not candidates:
        raise CannotMeasure(
            "jit",
            "no PostgreSQL with LLVM is at hand: the server under test has none, and none is"
            " installed beside it (on Debian: apt install postgresql)",
        )
    return max(candidates, key=lambda programs: programs.major)


def _with_jit(chapter: Chapter) -> Server:
    """A server whose release brings LLVM: the borrowed one, the chapter's own, or one installed.

    The benchmark's relations are in it. CannotMeasure if there is none.
    """
    if other := stand_in(chapter):
        chapter.run.environment[ELSEWHERE] = {"name": other.source, "version": other.version}
        server = chapter.beside(other)
    else:
        chapter.server.require("jit")  # a borrowed one may lack it; its settings are the session's
        server = chapter.server
    load_benchmark(server)
    load(chapter, server)
    return server


@experiment(claims=["ston-004", "ston-008"])
def compiling(chapter: Chapter) -> pd.DataFrame:
    """The runs of Tables 1 and 2, interpreted and with JIT forced, and what one more tuple costs.

    "jit" has seconds of each run, and of CPU; joins by tuple substitution, and query d also on as
    many tuples as the parameter says. "evaluating" has seconds of compiling queries c and d, and of
    evaluating them for a tuple, by EXPLAIN, which tells both apart. There their qualifications are
    turned over, so that hardly any tuple gets further, and operators are called as the interpreter
    calls them: what is left is threaded code against code in line. Returned is what JIT compiles,
    exact: columns run, evaluated (executions of what is compiled: tuples of query d, substituted
    tuples of a join), functions (compiled). CannotMeasure where the backend can't be watched.
    """
    server = _with_jit(chapter)
    server.require("processes")
    variants = [Variant(name, partial(_runs, server, name)) for name in JIT_SETTINGS]
    units = {f"{what} {run}": "s" for what in ("wall", "cpu") for run in JIT_RUNS}
    chapter.compare("jit", variants, units, warmup=0)
    variants = [Variant(name, partial(_evaluated, chapter, server, name)) for name in JIT_SETTINGS]
    units = {f"{what} {query}": "s" for what in ("compiling", "tuple") for query in "cd"}
    chapter.compare("evaluating", variants, units, warmup=0)
    return _compiled(server)


def _runs(server: Server, variant: str, block: Block) -> dict[str, float]:
    spent = {}
    with server.connect() as connection:
        STATEMENTS.run(connection, "benchmark.as_ingres")
        set_session(connection, JIT_SETTINGS[variant])
        STATEMENTS.run(connection, "compilation_today.no_tuples")  # loads the library
        backend = Path(f"/proc/{connection.info.backend_pid}")
        for run, query in JIT_RUNS.items():
            before = proc.processor_seconds(backend)
            with clock.stopwatch() as watch:
                connection.execute(query).fetchall()
            spent[f"wall {run}"] = watch.seconds
            spent[f"cpu {run}"] = proc.processor_seconds(backend) - before
    return spent


def _compiled(server: Server) -> pd.DataFrame:
    rows = []
    with server.connect() as connection:
        STATEMENTS.run(connection, "benchmark.as_ingres")
        set_session(connection, JIT_SETTINGS[JITTED])
        for run in COMPILED:
            plan = plans.explain(connection, JIT_RUNS[run], execute=True)
            loops = max(node.loops or 0 for node in plan.walk())
            evaluated = int(loops) if run in JOINS else int(run.split("_")[1])
            rows.append((run, evaluated, plan.properties["JIT"]["Functions"]))
    return pd.DataFrame(rows, columns=["run", "evaluated", "functions"])


def _evaluated(chapter: Chapter, server: Server, variant: str, block: Block) -> dict[str, float]:
    tuples, spent = chapter.parameters.tuples, {}
    times = max(1, EVALUATIONS // tuples)
    with server.connect() as connection:
        STATEMENTS.run(connection, "benchmark.as_ingres")
        set_session(connection, JIT_SETTINGS[variant] | IN_LINE)
        STATEMENTS.run(connection, "compilation_today.no_tuples")
        STATEMENTS.run(connection, "reading.sequential_only")
        for query in "cd":
            text = STATEMENTS.text(f"compilation_today.evaluate_{query}", times=times)
            plan = plans.explain(connection, text, execute=True, timing=True)
            spent[f"compiling {query}"] = plan.jit_ms / 1000
            running = (plan.execution_ms - plan.jit_ms) / 1000
            spent[f"tuple {query}"] = running / (times * tuples)
    return spent
