"""What became of compilation: parsing ahead, folded constants, plans for constants that aren't known yet, and JIT."""

from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.system import COMMANDS, load
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, pgbench, plans
from pgrerun.relations import Parts, loading
from pgrerun.relations.duck import in_memory
from pgrerun.server import Server, installed, set_session

# ---- parsing ahead

_SHORT = r"""\set n random(1, :tuples)
SELECT qoh FROM parts WHERE pnum = :n;
"""
_LONG = f"{COMMANDS['long']};\n"
PARSED, AHEAD = "parsed every time", "parsed ahead"


def parsing(chapter: Chapter) -> None:
    """Short and long commands by pgbench, parsed and planned with every execution or once: milliseconds of one command."""
    server = chapter.server
    load(chapter, server)
    arms = [Arm(words, partial(_latency, chapter, server, protocol)) for words, protocol in ((PARSED, "extended"), (AHEAD, "prepared"))]
    chapter.compare("parsing", arms, {"short": "ms", "long": "ms"})


def _latency(chapter: Chapter, server: Server, protocol: str, block: Block) -> dict[str, float]:
    def run(script: str, transactions: int) -> float:
        done = pgbench.run(server, script, transactions=transactions, protocol=protocol, seed=block.seed, variables={"tuples": chapter.parameters.tuples})
        return 1000 / done.tps

    ready = "SET max_parallel_workers_per_gather = 0;\n"
    return {"short": run(_SHORT, 250), "long": run(ready + _LONG, max(2, 100_000 // chapter.parameters.tuples))}


def parsed_over_ahead(chapter: Chapter, command: str) -> statistics.Interval | None:
    """Time of a command ("short", "long") that is parsed every time over that of one parsed ahead."""
    return chapter.ratio("parsing", command, PARSED, AHEAD)


def executing_share(chapter: Chapter) -> statistics.Interval | None:
    """Of a long command, the part that isn't parsing and planning: the time parsed ahead over the whole."""
    table = chapter.table("parsing", "long")
    if table.empty:
        return None
    short = chapter.table("parsing", "short")
    planning = (short[PARSED] - short[AHEAD]).clip(lower=0)
    return statistics.ratio((table[PARSED] - planning).clip(lower=1e-6), table[PARSED], seed=chapter.parameters.seed)


def prepared_facts(chapter: Chapter) -> dict[str, bool]:
    """Whether a server can keep a parsed command, and its plan."""
    with chapter.server.connect() as connection:
        connection.execute("PREPARE of_1981 (int) AS SELECT $1 + 1")
        [(known, generic)] = connection.execute("SELECT count(*), bool_or(to_jsonb(p) ? 'generic_plans') FROM pg_prepared_statements AS p WHERE name = 'of_1981'").fetchall()
    return {"a command can be parsed before it is run": known == 1, "its plan can be kept": bool(generic)}


# ---- access paths at run time

_SKEWED = "skewed_parts"


def run_time_plans(chapter: Chapter) -> pd.DataFrame:
    """The plan of one command for a rare and a frequent constant: known when it is planned, and not. Columns: constant, plan, path, rows (found).

    Nine tuples of ten are of one colour.
    """
    with chapter.server.connect() as connection:
        with connection.transaction():
            loading.replace(connection, _SKEWED, f"CREATE TABLE {_SKEWED} (pnum int, color text) WITH (autovacuum_enabled = off)")
            connection.execute(f"INSERT INTO {_SKEWED} SELECT n, CASE WHEN n % 10 > 0 THEN 'gray' WHEN n % 1000 = 0 THEN 'black' ELSE 'white' END FROM generate_series(1, 20000) AS n")
            connection.execute(f"CREATE INDEX {_SKEWED}_color ON {_SKEWED} (color)")
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {_SKEWED}")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        connection.execute(f"PREPARE by_color (text) AS SELECT pnum FROM {_SKEWED} WHERE color = $1")
        rows = []
        for mode, when in (("force_custom_plan", "planned at run time"), ("force_generic_plan", "planned ahead")):
            connection.execute(f"SET plan_cache_mode = {mode}")
            for color in ("black", "gray"):
                plan = plans.explain(connection, f"EXECUTE by_color ('{color}')")
                [found] = connection.execute(f"SELECT count(*) FROM {_SKEWED} WHERE color = %s", [color]).fetchone()
                rows.append((color, when, plan.node_type, found))
        connection.execute("DEALLOCATE by_color")
    return pd.DataFrame(rows, columns=["constant", "when", "path", "tuples"])


def run_time_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether planning with the constant known chooses by it, and planning ahead can't."""
    if found is None:
        return None
    kinds = found.groupby("when")["path"].nunique()
    return {"planned at run time, the path depends on the constant": bool(kinds["planned at run time"] > 1), "planned ahead, it doesn't": bool(kinds["planned ahead"] == 1)}


# ---- types and constants

CONVERSIONS = {
    "an integer beside a float": "SELECT pnum FROM parts WHERE weight::float8 + 13 = 100",
    "query d": "SELECT pnum FROM parts WHERE qoh < ln(9.5::float8) * weight",
}


def conversions(chapter: Chapter) -> pd.DataFrame:
    """The qualifications as the executor gets them: what, filter."""
    server = chapter.server
    Parts(210).load(server)
    with server.connect() as connection:
        rows = [(what, plans.explain(connection, query, verbose=True).properties["Filter"]) for what, query in CONVERSIONS.items()]
    return pd.DataFrame(rows, columns=["qualification", "filter in the plan"])


def conversion_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether constants are still converted, and a logarithm of one computed, for every tuple."""
    if found is None:
        return None
    first, second = found["filter in the plan"]
    return {"integer constants are converted for every tuple": "(13)::" in first, "expressions of constants are computed for every tuple": "ln(" in second}


FOLDED, EACH = "computed once", "computed for every tuple"


def folding(chapter: Chapter) -> None:
    """Query d with its logarithm folded into a constant, and hidden from the planner so that each tuple computes it: seconds."""
    server = chapter.server
    server.require("superuser")  # to make a function of the server's own code
    load(chapter, server)
    with server.connect() as connection:
        connection.execute("CREATE OR REPLACE FUNCTION log_each_time(float8) RETURNS float8 LANGUAGE internal VOLATILE STRICT AS 'dlog1'")
    arms = [Arm(name, partial(_timed, server, f"SELECT count(*) FROM parts WHERE qoh < {call} * weight")) for name, call in ((FOLDED, "ln(9.5::float8)"), (EACH, "log_each_time(9.5)"))]
    chapter.compare("folding", arms, {"seconds": "s"})


def _timed(server: Server, query: str, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        with clock.stopwatch() as watch:
            for _ in range(10):
                connection.execute(query).fetchall()
    return {"seconds": watch.seconds / 10}


def folding_pays(chapter: Chapter) -> statistics.Interval | None:
    """Time with the logarithm computed for every tuple over that with it computed once."""
    return chapter.ratio("folding", "seconds", EACH, FOLDED)


# ---- vectors

_D = "SELECT count(*) FROM parts WHERE qoh < ln(9.5::float8) * weight"
TUPLEWISE, VECTORWISE = "PostgreSQL, a tuple at a time", "DuckDB, a vector at a time"


def vectors(chapter: Chapter) -> None:
    """Query d by a system that takes each step of the qualification for one tuple, and by one that takes it for thousands before the next: seconds.

    The second needs no compiler: what it decides once per step is spread over as many tuples. One thread each.
    """
    server = chapter.server
    load(chapter, server)
    with in_memory() as duck:
        duck.execute(f"CREATE TABLE parts AS {Parts(chapter.parameters.tuples).select()}")
        arms = [Arm(TUPLEWISE, partial(_timed, server, _D)), Arm(VECTORWISE, partial(_in_duckdb, duck))]
        chapter.compare("vectors", arms, {"seconds": "s"})


def _in_duckdb(duck, block: Block) -> dict[str, float]:
    with clock.stopwatch() as watch:
        for _ in range(10):
            duck.execute(_D).fetchall()
    return {"seconds": watch.seconds / 10}


def vectors_gain(chapter: Chapter) -> statistics.Interval | None:
    """Time a tuple at a time over time a vector at a time."""
    return chapter.ratio("vectors", "seconds", TUPLEWISE, VECTORWISE)


# ---- branches

PREDICTABLE, MIXED = "in the order of the qualification", "in no order"


def branches(chapter: Chapter) -> None:
    """One qualification, which half of the tuples pass, on the same tuples sorted by it and in no order: seconds.

    All that differs is whether the processor can guess how the branch goes for the next tuple.
    """
    server, order = chapter.server, {PREDICTABLE: "qoh < 100, pnum", MIXED: "md5(pnum::text)"}
    load(chapter, server)
    with server.connect() as connection:
        for number, by in enumerate(order.values()):
            with connection.transaction():
                loading.replace(connection, f"branches_{number}", f"CREATE TABLE branches_{number} AS SELECT * FROM parts ORDER BY {by}")
            connection.execute(f"VACUUM (FREEZE, ANALYZE) branches_{number}")
    arms = [Arm(name, partial(_timed, server, f"SELECT count(*) FROM branches_{number} WHERE qoh < 100")) for number, name in enumerate(order)]
    chapter.compare("branches", arms, {"seconds": "s"})


def failed_branches(chapter: Chapter) -> statistics.Interval | None:
    """Time with branches that can't be guessed over that with branches that can."""
    return chapter.ratio("branches", "seconds", MIXED, PREDICTABLE)


# ---- checksums

BY_INSTRUCTION, BY_TABLE = "by an instruction", "by a table"
_CHECKSUMS = {BY_INSTRUCTION: "crc32c", BY_TABLE: "crc32"}


def checksums(chapter: Chapter, kilobytes: int = 256) -> None:
    """A cyclic redundancy check for which processors have an instruction (CRC-32C), and one without (CRC-32), of the same bytes by the same server: ms per MB.

    PostgreSQL's WAL is protected by the first. The bytes are made once per observation, and that counts. CannotMeasure
    before PostgreSQL 18, which made functions of both.
    """
    server = chapter.server
    if server.version < 180000:
        raise CannotMeasure("PostgreSQL 18", "The functions crc32 and crc32c came with PostgreSQL 18.")
    arms = [Arm(name, partial(_checked, server, function, kilobytes)) for name, function in _CHECKSUMS.items()]
    chapter.compare("checksums", arms, {"time": "ms per MB"})


def _checked(server: Server, function: str, kilobytes: int, block: Block, times: int = 64) -> dict[str, float]:
    with server.connect() as connection, clock.stopwatch() as watch:
        connection.execute(f"SELECT max({function}((SELECT convert_to(repeat(md5('{block.seed}'), {kilobytes} * 32), 'UTF8')))) FROM generate_series(1, {times})")
    return {"time": 1e3 * watch.seconds / (times * kilobytes / 1024)}


def checksum_gain(chapter: Chapter) -> statistics.Interval | None:
    """Time of the check without an instruction of its own over that of the one with it."""
    return chapter.ratio("checksums", "time", BY_TABLE, BY_INSTRUCTION)


# ---- JIT

JIT_CLAIMS = ("ston-004", "ston-013")
SIZES = (1, 210, 3360)
ON, OFF = "compiled (JIT)", "interpreted"


def with_jit(chapter: Chapter) -> Server:
    """A server whose release brings LLVM: the borrowed one, the chapter's own, or one that is installed here. CannotMeasure if there is none."""
    if chapter.borrowed:
        chapter.server.require("jit")  # its settings are the session's
        return chapter.server
    if chapter.programs.jit:
        return chapter.cluster()
    candidates = [programs for programs in installed() if programs.jit]
    if not candidates:
        raise CannotMeasure("jit", "no PostgreSQL with LLVM is at hand: the server under test has none, and none is installed beside it (on Debian: apt install postgresql)")
    return chapter.beside(max(candidates, key=lambda programs: programs.major))


_ANALYZED = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT pnum FROM parts WHERE qoh < ln(9.5::float8) * weight"


def compile_times(chapter: Chapter) -> pd.DataFrame:
    """JIT compilation forced on query d for relations of the print's sizes and larger: tuples, functions, compiling (ms), all (ms); several rows a size."""
    server, rows = with_jit(chapter), []
    Parts(1).load(server)
    with server.connect() as connection:
        _force(connection, ON)
        connection.execute(_ANALYZED)  # the first loads the library
        for tuples in (*SIZES, chapter.parameters.tuples):
            Parts(tuples).load(server)
            for _ in range(-(-chapter.parameters.pairs // 2)):  # of each of several sizes
                [(document,)] = connection.execute(_ANALYZED).fetchall()
                jit = document[0]["JIT"]
                rows.append((tuples, jit["Functions"], jit["Timing"]["Total"], document[0]["Execution Time"]))
    return pd.DataFrame(rows, columns=["tuples", "functions", "compiling (ms)", "execution (ms)"])


def _force(connection: psycopg.Connection, arm: str) -> None:
    on = arm == ON
    set_session(connection, {"jit": on, "jit_above_cost": 0, "jit_optimize_above_cost": 0, "jit_inline_above_cost": 0, "max_parallel_workers_per_gather": 0})


def once_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether one compilation serves all tuples."""
    if found is None:
        return None
    return {"as many functions are compiled for one tuple as for many": found["functions"].nunique() == 1, "something is compiled": bool((found["functions"] > 0).all())}


def compile_seconds(found: pd.DataFrame | None) -> statistics.Interval | None:
    """Seconds that compiling query d takes, over the sizes."""
    return None if found is None else statistics.median(found["compiling (ms)"] / 1000)


def jit(chapter: Chapter) -> None:
    """Query d on all tuples, interpreted and compiled, on the release with LLVM: seconds; in a pass of its own those of compiling and of all else."""
    server = with_jit(chapter)
    Parts(chapter.parameters.tuples).load(server)
    chapter.compare("jit", [Arm(arm, partial(_with_jit, server, arm)) for arm in (OFF, ON)], {"seconds": "s", "compiling": "s", "running": "s"})


def _with_jit(server: Server, arm: str, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        _force(connection, arm)
        connection.execute("SELECT pnum FROM parts WHERE pnum < 0")  # loads the library
        with clock.stopwatch() as watch:
            connection.execute(_D).fetchall()
        [(document,)] = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {_D}").fetchall()
    compiling = document[0].get("JIT", {}).get("Timing", {}).get("Total", 0)
    return {"seconds": watch.seconds, "compiling": compiling / 1000, "running": (document[0]["Execution Time"] - compiling) / 1000}


def jit_break_even(chapter: Chapter) -> statistics.Interval | None:
    """Tuples from which on JIT pays: what compiling query d costs, over what the compiled form saves per tuple.

    None if it did not run, or if the compiled form isn't quicker for certain: then there is none.
    """
    running, compiling = chapter.table("jit", "running"), chapter.table("jit", "compiling")
    if running.empty or statistics.ratio(running[OFF], running[ON], seed=chapter.parameters.seed).low <= 1:
        return None
    saved = (running[OFF] - running[ON]) / chapter.parameters.tuples
    return statistics.median(compiling[ON].median() / saved[saved > 0], seed=chapter.parameters.seed)


def jit_gain(chapter: Chapter) -> statistics.Interval | None:
    """Time interpreted over time compiled, compiling included."""
    return chapter.ratio("jit", "seconds", OFF, ON)
