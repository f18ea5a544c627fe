"""Microcode: where PostgreSQL spends its instructions, and what an instruction of its own gives."""

from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.four_tactics.experiments.parts import (
    BENCHMARK,
    STATEMENTS,
    load_benchmark,
)
from pgrerun.chapters.four_tactics.miniature import LONG
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import callgrind, clock
from pgrerun.lab.relations import Parts
from pgrerun.lab.server import Server, releases

TEN_TIMES, EACH = "d_33600", "d_3360, logarithm for every tuple"
AS_TEXT, PARSED_AHEAD = "a lookup as text", "a lookup parsed ahead, planned when it runs"
# the least buffer pool, so that most pages have to be read, as INGRES read them from UNIX
_SETTINGS = {"shared_buffers": "128kB"}


@experiment(
    claims=[
        "ston-001",
        "ston-002",
        "ston-003",
        "ston-007",
        "ston-023",
        "ston-024",
        "ston-025",
        "ston-030",
    ]
)
def profile(chapter: Chapter) -> pd.DataFrame:
    """Instructions of PostgreSQL outside of the kernel, by function, for each long run.

    Answers go into a file, as INGRES's did. Also for query d on ten times the tuples, for query d
    when its logarithm is hidden from the planner, and for a lookup as text and prepared, which is
    planned anew by each execution. Columns: run, function,
    inclusive and exclusive (instructions), calls; exact to some parts in a thousand. CannotMeasure
    for somebody's server, and without valgrind.
    """
    callgrind.require()
    cluster = chapter.cluster(cluster_name="counted")
    load_benchmark(cluster)
    Parts(33_600).load(cluster, "parts_33600")
    with cluster.connect() as connection:
        STATEMENTS.run(connection, "microcode.log_each_time")
    work = {run: BENCHMARK[run] for run in LONG} | {
        TEN_TIMES: _line("benchmark.d", relation="parts_33600"),
        EACH: _line("microcode.computed_for_every_tuple"),
    }
    into_file = [f"COPY ({query}) TO '/dev/null'" for query in work.values()]
    work |= {AS_TEXT: _line("microcode.as_text"), PARSED_AHEAD: "EXECUTE lookup (17)"}
    into_file += list(work.values())[len(into_file) :]
    settings = [*STATEMENTS.each("benchmark.as_ingres"), *STATEMENTS.each("microcode.ahead")]
    first = [*settings, *into_file]  # fills the catalog caches
    cluster.stop()
    try:
        found = callgrind.profile(cluster, first + into_file, settings=_SETTINGS)
    finally:
        cluster.start()
    runs = {len(first) + number: run for number, run in enumerate(work)}
    found = found[found["statement"].isin(runs)].assign(run=found["statement"].map(runs))
    return found[["run", "function", "inclusive", "exclusive", "calls"]]


def _line(name: str, **values: str) -> str:
    """A statement on one line, as a single-user backend takes it."""
    [statement] = STATEMENTS.each(name, **values)
    return " ".join(statement.split())


# ---- checksums

BY_INSTRUCTION, BY_TABLE = "by an instruction", "by a table"
# variant to PostgreSQL's function; its WAL is protected by the first
CHECKSUMS = {BY_INSTRUCTION: "crc32c", BY_TABLE: "crc32"}


@experiment(claims=["ston-028"])
def checksums(chapter: Chapter, kilobytes: int = 256) -> None:
    """A cyclic redundancy check for which processors have an instruction, and one without.

    Milliseconds per MB of the same bytes by the same server. The bytes are made once per
    observation, and that counts. CannotMeasure before PostgreSQL 18, which made functions of both.
    """
    server = chapter.server
    releases.require(server.version, "crc32c")
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
