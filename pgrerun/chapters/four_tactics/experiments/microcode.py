"""Microcode: where PostgreSQL spends its instructions, and what an instruction of its own gives."""

from collections.abc import Iterator

from pgrerun.chapters.four_tactics.experiments.parts import (
    LONG,
    SQL,
    benchmark,
    load_benchmark,
    run_text,
)
from pgrerun.lab.instruments import callgrind, clock, single_user
from pgrerun.lab.relations import Parts
from pgrerun.lab.server import releases
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

# the least buffer pool, so that most pages have to be read, as INGRES read them from UNIX
_SETTINGS = {"shared_buffers": "128kB"}


@experiment(
    units={"inclusive": "instructions", "exclusive": "instructions", "calls": "calls"},
)
def profile(bed: Testbed) -> Iterator[Row]:
    """Instructions of PostgreSQL outside of the kernel, by function, for each long run.

    `how` is "as printed", with the answer into a file, as INGRES's was; for query d also
    "logarithm hidden" from the planner, and for a lookup "sent as text" and "prepared", which each
    execution plans anew; both find its pages in the pool. Exact to some parts in a thousand.
    CannotMeasure for somebody's server, and without valgrind.
    """
    callgrind.require()
    cluster = bed.cluster(cluster_name="counted")
    load_benchmark(cluster)
    Parts(33_600).load(cluster, "parts_33600")
    with cluster.connect() as connection:
        SQL.run(connection, "microcode.log_each_time")
    work = {(query, tuples, "as printed"): run_text(query, tuples) for query, tuples in LONG}
    work["d", 33_600, "as printed"] = benchmark("d", "parts_33600")
    work["d", 3360, "logarithm hidden"] = SQL.line("microcode.computed_for_every_tuple")
    work = {run: f"COPY ({query}) TO '/dev/null'" for run, query in work.items()}
    lookups = {
        ("lookup", 3360, "sent as text"): SQL.line("microcode.as_text"),
        ("lookup", 3360, "prepared"): "EXECUTE lookup (17)",
    }
    settings = [*SQL.each("benchmark.as_ingres"), *SQL.each("microcode.ahead")]
    # fills the catalog caches, and ends with what brings a lookup's pages into so small a pool
    first = [*settings, *work.values(), *lookups.values()]
    counted = lookups | work
    with single_user.stopped(cluster):
        found = callgrind.profile(cluster, [*first, *counted.values()], settings=_SETTINGS)
    for number, (query, tuples, how) in enumerate(counted, start=len(first)):
        for row in found[found["statement"] == number].to_dict("records"):
            yield {
                "query": query,
                "tuples": tuples,
                "how": how,
                "function": row["function"],
                **{name: int(row[name]) for name in ("inclusive", "exclusive", "calls")},
            }


@experiment(units={"time": "ms/MB"})
def checksums(bed: Testbed, kilobytes: int = 256, times: int = 64) -> Iterator[Row]:
    """A cyclic redundancy check for which processors have an instruction, and one without.

    Of the same bytes by the same server. The bytes are made once per measurement, and that counts.
    CannotMeasure before PostgreSQL 18, which made functions of both.
    """
    releases.require(bed.server.version, "crc32c")
    functions = {"by an instruction": "crc32c", "by a table": "crc32"}  # WAL has the first

    def measure(block: Block, computed: str) -> dict[str, float]:
        values = {"seed": block.seed, "kilobytes": kilobytes, "times": times}
        with bed.server.connect() as connection, clock.stopwatch() as watch:
            SQL.run(connection, f"microcode.{functions[computed]}", **values)
        return {"time": 1e3 * watch.seconds / (times * kilobytes / 1024)}

    yield from bed.compare(measure, {"computed": list(functions)})
