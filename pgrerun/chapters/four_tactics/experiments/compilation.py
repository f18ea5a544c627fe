"""What became of compilation: parsing ahead, constants folded, unknown constants, JIT, vectors."""

from collections.abc import Iterator
from typing import Any

from pgrerun.chapters.four_tactics.experiments.parts import (
    JOINS,
    SERIAL,
    SQL,
    load,
    load_benchmark,
    run_text,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import clock, instructions, plans
from pgrerun.lab.relations import Parts, loading
from pgrerun.lab.relations.duck import in_memory
from pgrerun.lab.server import Cluster, Server, installed, set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

PLANNED = {"at run time": "force_custom_plan", "ahead": "force_generic_plan"}
GROWTH = {
    "small": (),
    "grown": (SQL.text("compilation.grow"),),
    "grown and analyzed": ("ANALYZE growing_parts",),
}


@experiment(units={"path": "text", "tuples": "tuples"})
def plans_by_constant(bed: Testbed) -> Iterator[Row]:
    """The plan of a command for a rare and a frequent constant, known when it is planned or not."""
    with bed.server.connect() as connection:
        made = [*SQL.each("compilation.skewed"), *SQL.each("compilation.fill_skewed")]
        loading.make(connection, "skewed_parts", *made)
        connection.execute("VACUUM (FREEZE, ANALYZE) skewed_parts")
        SQL.run(connection, "compilation.by_color")
        for planned, mode in PLANNED.items():
            set_session(connection, {"plan_cache_mode": mode})
            for color in ("black", "gray"):
                execute = SQL.text("compilation.execute", color=color)
                counting = SQL.run(connection, "compilation.tuples", color=color)
                yield {
                    "planned": planned,
                    "constant": color,
                    "path": plans.explain(connection, execute).node_type,
                    "tuples": counting.fetchone()[0],
                }
        connection.execute("DEALLOCATE by_color")


@experiment(units={"path": "text", "tuples": "tuples"})
def plans_by_growth(bed: Testbed) -> Iterator[Row]:
    """The plan of a prepared command before its relation grows, after, and with new statistics."""
    for planned, mode in PLANNED.items():
        with bed.server.connect() as connection:
            made = [*SQL.each("compilation.growing"), *SQL.each("compilation.fill_growing")]
            loading.make(connection, "growing_parts", *made)
            connection.execute("ANALYZE growing_parts")
            set_session(connection, {"plan_cache_mode": mode})
            SQL.run(connection, "compilation.whites")
            for state, change in GROWTH.items():
                for statement in change:
                    connection.execute(statement)
                execute = SQL.text("compilation.execute_whites")
                counting = connection.execute("SELECT count(*) FROM growing_parts")
                yield {
                    "planned": planned,
                    "relation": state,
                    "path": plans.explain(connection, execute).node_type,
                    "tuples": counting.fetchone()[0],
                }
            connection.execute("DEALLOCATE whites")


@experiment(units={"estimated": "tuples", "found": "tuples", "path": "text"})
def plans_by_partial_result(bed: Testbed) -> Iterator[Row]:
    """A join of what half of a command finds, once foreseen and once not.

    Goes on from `plans_by_constant`.
    """
    with bed.server.connect() as connection:
        for name in ("foreseen", "unforeseen"):
            query = SQL.text(f"compilation.{name}")
            plan = plans.explain(connection, query, execute=True)
            [first] = [node for node in plan.walk() if node.properties.get("Alias") == "p"]
            yield {
                "partial_result": name,
                "estimated": round(first.rows_estimated),
                "found": int((first.rows_actual or 0) * (first.loops or 0)),
                "path": plan.joins[0],
            }


CONVERSIONS = {
    "an integer beside a float": "integer_beside_float",
    "query d": "logarithm_of_a_constant",
}


@experiment(units={"filter": "text"})
def conversions(bed: Testbed) -> Iterator[Row]:
    """The qualifications as PostgreSQL's executor gets them."""
    Parts(210).load(bed.server)
    with bed.server.connect() as connection:
        for what, name in CONVERSIONS.items():
            query = SQL.text(f"compilation.{name}")
            plan = plans.explain(connection, query, verbose=True)
            yield {"qualification": what, "filter": plan.properties["Filter"]}


@experiment(units={"seconds": "s"})
def vectors(bed: Testbed) -> Iterator[Row]:
    """Query d by a system that takes each step for one tuple, and by one that does for thousands.

    The second needs no compiler: what it decides once per step is spread over as many tuples. One
    thread each; ten times a measurement.
    """
    query = SQL.text("commands.query_d")
    load(bed, bed.server)
    with in_memory() as duck, bed.server.connect() as connection:
        set_session(connection, SERIAL)
        duck.execute(f"CREATE TABLE parts AS {Parts(bed.parameters.tuples).select()}")
        systems: dict[str, Any] = {"PostgreSQL": connection, "DuckDB": duck}

        def measure(block: Block, system: str) -> dict[str, float]:
            with clock.stopwatch() as watch:
                for _ in range(10):
                    systems[system].execute(query).fetchall()
            return {"seconds": watch.seconds / 10}

        pairs = bed.timed_pairs(bed.parameters.pairs)
        yield from bed.compare(measure, {"system": list(systems)}, pairs=pairs)


# ---- JIT

FORCED = {
    "jit_above_cost": 0,
    "jit_optimize_above_cost": 0,
    "jit_inline_above_cost": 0,
} | SERIAL
EXECUTORS = {"interpreted": FORCED | {"jit": False}, "compiled": FORCED | {"jit": True}}
# of a compiler's work only that it leaves out the dispatch between the steps of an expression
IN_LINE = {"jit_inline_above_cost": -1, "jit_tuple_deforming": False}
COMPILED = [("d", 1), ("d", 210), ("d", 3360), *JOINS]


def _with_jit(bed: Testbed) -> tuple[Server, str]:
    """A server whose release brings LLVM with the benchmark's relations, and its version.

    The borrowed one, the one under test, or one installed. CannotMeasure if there is none.
    """
    if bed.borrowed or bed.programs.jit:
        server = bed.server
        server.require("jit")  # a borrowed one may lack it; its settings are the session's
    else:
        candidates = [programs for programs in installed() if programs.jit]
        if not candidates:
            raise CannotMeasure(
                "jit",
                "no PostgreSQL with LLVM is at hand: the server under test has none, and none is"
                " installed beside it (on Debian: apt install postgresql)",
            )
        server = bed.release(max(candidates, key=lambda programs: programs.release[0]))
    load_benchmark(server)
    load(bed, server)
    return server, server.version_text


@experiment(units={"evaluated": "evaluations", "functions": "functions"})
def jit_functions(bed: Testbed) -> Iterator[Row]:
    """What JIT compiles for a command, and how often that is evaluated.

    For tuples of query d, and substituted tuples of joins.
    """
    server, version = _with_jit(bed)
    with server.connect() as connection:
        SQL.run(connection, "benchmark.as_ingres")
        set_session(connection, EXECUTORS["compiled"])
        for query, tuples in COMPILED:
            plan = plans.explain(connection, run_text(query, tuples), execute=True)
            loops = max(node.loops or 0 for node in plan.walk())
            yield {
                "server": version,
                "query": query,
                "tuples": tuples,
                "evaluated": tuples if query == "d" else int(loops),
                "functions": plan.properties["JIT"]["Functions"],
            }


@experiment(units={"compiling": "ms", "tuple": "ns"})
def jit_tuple(bed: Testbed) -> Iterator[Row]:
    """What compiling a qualification takes, and evaluating it for one more tuple.

    By EXPLAIN, which tells both apart. The qualifications of queries c and d are turned over, so
    that hardly any tuple gets further, and operators are called as the interpreter calls them: what
    is left is threaded code against code in line. "long" is query d by operators that take long. A
    single comparison with the last attribute stands for what a scan takes anyway.
    """
    server, version = _with_jit(bed)
    tuples = bed.parameters.tuples
    times = max(1, bed.parameters.evaluations // tuples)

    def measure(block: Block, executor: str, query: str) -> dict[str, float]:
        with server.connect() as connection:
            SQL.run(connection, "benchmark.as_ingres")
            set_session(connection, EXECUTORS[executor] | IN_LINE)
            SQL.run(connection, "compilation.no_tuples")
            SQL.run(connection, "reading.sequential_only")
            text = SQL.text(f"compilation.evaluate_{query}", times=times)
            plan = plans.explain(connection, text, execute=True, timing=True)
        running = 1e6 * (plan.execution_ms - plan.jit_ms)
        return {"compiling": plan.jit_ms, "tuple": running / (times * tuples)}

    variants = {"query": ["c", "d", "long", "least"], "executor": list(EXECUTORS)}
    # each takes seconds where it is to count
    few = bed.timed_pairs(min(bed.parameters.pairs, 9))
    yield from bed.compare(measure, variants, pairs=few, warmup=0, server=version)


@experiment(
    units={"steps": "steps/tuple"}
    | dict.fromkeys(("leading", "fetching", "instructions"), "instructions/tuple"),
    needs=["restart"],
)
def dispatch(bed: Testbed, tuples: int = 2000) -> Iterator[Row]:
    """Steps that PostgreSQL's interpreter takes for a tuple of the qualifications of `jit_tuple`.

    It is threaded code: each step jumps to the code of the next. With the instructions that only
    lead there, those that fetch from a step where its operands are, and all of the scan. Counted
    once, as they repeat. CannotMeasure as `instructions.threaded`.
    """
    names = {name: f"compilation.evaluate_{name}" for name in ("least", "d", "long")}
    work = {name: SQL.each(text, times=1) for name, text in names.items()}
    with Cluster(bed.programs) as cluster:
        Parts(tuples).load(cluster, "parts", "btree")
        cluster.stop()
        first = [*SQL.each("reading.sequential_only"), *(one for [one] in work.values())]
        found = instructions.threaded(
            cluster,
            {"first": first} | work,
            "ExecInterpExpr",
            settings=SERIAL | {"search_path": cluster.schema},
            unreported={"first"},
        )
    for row in found.to_dict("records"):
        yield {
            "query": row["group"],
            **{name: int(row[name]) / tuples for name in instructions.THREADED[1:]},
        }
