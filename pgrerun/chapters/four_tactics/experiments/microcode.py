"""Microcode: where the miniature spends its time, and what special instructions give today."""

from contextlib import ExitStack
from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import STATEMENTS, load, timed
from pgrerun.chapters.four_tactics.miniature import Miniature
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.ingres import INTERPRETER
from pgrerun.lab.instruments import clock, python_samples, simd
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Server

# the miniature's functions under the names of Table 3; the others are added up
FUNCTIONS = {
    "GETSYMBOL": ["getsymbol"],
    "INTERPRET": ["interpret", "_operate", "_typed", "_fetch"],
    "READ": ["read", "get", "put"],
    "GET": ["lines", "_entries", "following", "_between"],
    "SCAN": ["scan", "lookup", "range"],
    "directory search": ["_main_page", "_search", "<lambda>", "packed"],
    "one-variable processor": ["run", "found", "_evaluators", "_candidates"],
}
OTHERS = "all else"
ROUTINES = (*FUNCTIONS, OTHERS)
QUERIES = ("b_3360", "c_3360", "d_3360", "e_3360", "f_3360", "g_3360", "h_3360", "i_3360")


@experiment(claims=["ston-023", "ston-030"])
def profile(chapter: Chapter, queries: tuple[str, ...] = QUERIES, interval: float = 0.001) -> None:
    """The share of samples in each routine while the interpreter runs all queries.

    A sample every `interval` seconds of CPU time. A routine's own time, what it calls left out; a
    call into Python's own library counts for its caller. CannotMeasure outside of a main thread.
    """
    python_samples.require()
    with Miniature() as mini:
        variants = [Variant("interpreter", partial(_sampled, mini, queries, interval))]
        units = dict.fromkeys(ROUTINES, "share of samples")
        chapter.compare("profile", variants, units, warmup=0)


def _sampled(
    mini: Miniature, queries: tuple[str, ...], interval: float, block: Block
) -> dict[str, float]:
    base = mini.base(INTERPRETER)
    with python_samples.sampled("ingres", interval) as seen:
        for run in queries:
            mini.run(base, run)
    total = max(seen.total(), 1)
    shares = {
        name: sum(seen[function] for function in functions) / total
        for name, functions in FUNCTIONS.items()
    }
    return shares | {OTHERS: 1 - sum(shares.values())}


# ---- branches

PREDICTABLE, MIXED = "in the order of the qualification", "in no order"
BRANCHES = {PREDICTABLE: "predictable", MIXED: "mixed"}


@experiment(claims=["ston-027"])
def branches(chapter: Chapter) -> None:
    """A qualification that half of the tuples pass, on tuples sorted by it and in no order.

    Seconds. All that differs is whether the processor can guess how the branch goes next.
    """
    server, variants = chapter.server, []
    load(chapter, server)
    with server.connect() as connection:
        for name, order in BRANCHES.items():
            relation = f"branches_{order}"
            with connection.transaction():
                loading.replace(connection, relation, STATEMENTS.text(f"microcode.{order}"))
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {relation}")
            query = STATEMENTS.text("microcode.count_half", relation=relation)
            variants.append(timed(server, name, query))
    chapter.compare("branches", variants, {"seconds": "s"})


# ---- instructions of a special purpose

NEW, OLD = "all instructions", "without the newer ones"


@experiment(claims=["ston-028", "ston-057"])
def instructions(chapter: Chapter) -> None:
    """A sort of integers by one library with the processor's newer instructions, and without.

    Seconds of CPU. CannotMeasure where the processor has none of these instructions, or they can't
    be switched off.
    """
    features = simd.features()
    if not features:
        raise CannotMeasure(
            "SIMD",
            "This processor has none of the instructions for which the numerical library has code"
            " of its own.",
        )
    disabled = {NEW: [], OLD: features}
    with ExitStack() as running:
        variants = []
        for name, off in disabled.items():
            sorter = running.enter_context(simd.sorter(off))
            variants.append(Variant(name, partial(_sorted, sorter)))
        chapter.compare("instructions", variants, {"sort": "s of CPU"})


def _sorted(sorter: simd.Sorter, block: Block) -> dict[str, float]:
    return {"sort": sorter.sort(block.seed)}


# ---- checksums

BY_INSTRUCTION, BY_TABLE = "by an instruction", "by a table"
# variant to PostgreSQL's function; its WAL is protected by the first
CHECKSUMS = {BY_INSTRUCTION: "crc32c", BY_TABLE: "crc32"}


@experiment()
def checksums(chapter: Chapter, kilobytes: int = 256) -> None:
    """A cyclic redundancy check for which processors have an instruction, and one without.

    Milliseconds per MB of the same bytes by the same server. The bytes are made once per
    observation, and that counts. CannotMeasure before PostgreSQL 18, which made functions of both.
    """
    server = chapter.server
    if server.version < 180000:
        raise CannotMeasure(
            "PostgreSQL 18", "The functions crc32 and crc32c came with PostgreSQL 18."
        )
    variants = [
        Variant(name, partial(_checked, server, function, kilobytes))
        for name, function in CHECKSUMS.items()
    ]
    chapter.compare("checksums", variants, {"time": "ms per MB"})


def _checked(
    server: Server, function: str, kilobytes: int, block: Block, times: int = 64
) -> dict[str, float]:
    values = {"seed": block.seed, "kilobytes": kilobytes, "times": times}
    with server.connect() as connection, clock.stopwatch() as watch:
        STATEMENTS.run(connection, f"microcode.{function}", **values)
    return {"time": 1e3 * watch.seconds / (times * kilobytes / 1024)}
