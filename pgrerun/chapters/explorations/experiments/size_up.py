"""Experiment 3: the same query on relations of growing size, with an index and without."""

from collections.abc import Iterator

from pgrerun.chapters.explorations.relations import (
    LARGE,
    ONE_PROCESS,
    SMALL,
    SQL,
    connected,
    explained,
    heap_pages,
    keyed,
    milliseconds,
    name,
    sizes,
    workers,
)
from pgrerun.lab.disk import Disk
from pgrerun.lab.instruments import plans
from pgrerun.lab.server import releases, set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened
from pgrerun.record import printed, statistics

KEY = 99_999  # the one that the slides look up
INDEXED, NOT_INDEXED = "unique2", "unique3"
RESTARTS = 7
LOOKUPS = 10_000  # of one statement, so that its own messages and planning are few


def statement(tuples: int, attribute: str, times: int = 1) -> str:
    """The slides' query, or a loop of so many; on a relation too small for their key, its last."""
    asked = {"relation": name(tuples), "attribute": attribute, "key": min(KEY, tuples - 1)}
    if times == 1:
        return SQL.text("size_up.point_query", **asked)
    return SQL.text("size_up.look_up", times=times, **asked)


# ---- plans


@experiment(units={"plan": "text", "workers": "", "pages": "page accesses"})
def point_plans(bed: Testbed) -> Iterator[Row]:
    """The queries' plans on 100 000 and a million tuples, the largest relation and a hundredth.

    `pages` are what a lookup accesses, after it ran before.
    """
    smallest, *_, largest = sizes(bed)
    chosen = sorted({smallest, SMALL, LARGE, largest})
    with connected(bed, *chosen) as connection:
        for attribute in (INDEXED, NOT_INDEXED):
            for tuples in chosen:
                query = statement(tuples, attribute)
                plan = plans.explain(connection, query)
                row: Row = {"relation": name(tuples), "tuples": tuples, "attribute": attribute}
                row |= {"plan": plan.shape(), "workers": workers(plan, "Planned")}
                if attribute == INDEXED:
                    plans.explain(connection, query, execute=True)  # fills the caches of catalogs
                    row["pages"] = plans.explain(connection, query, execute=True).page_accesses
                yield row


@experiment(units={"planned": "workers", "launched": "workers"})
def planned_workers(bed: Testbed) -> Iterator[Row]:
    """Workers for a scan of miltup, by the two settings that limit them."""
    with connected(bed, LARGE) as connection:
        for most, per_gather in ((8, 2), (1, 2), (0, 2), (8, 1), (8, 0)):
            limits = {"max_parallel_workers": most, "max_parallel_workers_per_gather": per_gather}
            plan = explained(connection, statement(LARGE, NOT_INDEXED), limits, execute=True)
            yield {
                **limits,
                "planned": workers(plan, "Planned"),
                "launched": workers(plan, "Launched"),
            }


# ---- time


@experiment(units={"time": "ms"})
def point_times(bed: Testbed) -> Iterator[Row]:
    """Mean time of a lookup by the key and of a scan for one tuple, in relations of every size.

    Of a lookup it is its execution alone, as in print, and of a scan all that a client waits for.
    Lookups differ little and scans by far, so that these take fewer blocks. The sizes
    between the smallest and the largest decide no word, and are timed a fifth as long.
    """
    smallest, *_, largest = sizes(bed)
    # of lookups half as many again, as a word asks for a small difference, or for none
    many = {"lookup": 3 * int(bed.parameters.pairs) // 2, "scan": statistics.ENOUGH}
    with connected(bed, *sizes(bed)) as connection:
        for query in many:

            def measure(block: Block, tuples: int, query: str = query) -> dict[str, float]:
                seconds = shortened(bed.parameters.seconds, told=tuples not in (smallest, largest))
                if query == "lookup":
                    # many in a loop within the server: to and fro, and planning, take longer and
                    # the same time in any relation. EXPLAIN tells it by the microsecond, of which
                    # it takes two or three.
                    loop = statement(tuples, INDEXED, LOOKUPS)
                    return {"time": milliseconds(connection, loop, {}, seconds) / LOOKUPS}
                scan = statement(tuples, NOT_INDEXED)
                return {"time": milliseconds(connection, scan, {}, seconds)}

            yield from bed.compare(
                measure,
                {"tuples": sizes(bed)},
                pairs=bed.timed_pairs(many[query]),
                warmup=0,
                query=query,
            )


@experiment(units={"planning": "ms", "execution": "ms"})
def planning(bed: Testbed) -> Iterator[Row]:
    """Planning and execution of a new session's first point query, and of another's second.

    By EXPLAIN ANALYZE, as in print.
    """
    releases.require(bed.server.version, "EXPLAIN that times planning")
    query = statement(SMALL, INDEXED)
    with connected(bed):
        pass

    def measure(block: Block, number: int) -> dict[str, float]:
        with bed.server.connect() as connection:
            for _ in range(number):
                plan = plans.explain(connection, query, execute=True, buffers=False)
        return {"planning": plan.planning_ms or 0, "execution": plan.execution_ms or 0}

    yield from bed.compare(
        measure, {"number": [1, 2]}, pairs=bed.timed_pairs(int(bed.parameters.pairs))
    )


STATES = ("cold", "warm")
SCANS = [f"{state}_{words}" for state in STATES for words in ("small", "large")]


@experiment(units=dict.fromkeys(SCANS, "ms"), needs=["restart"])
def cold(bed: Testbed) -> Iterator[Row]:
    """Scans right after a restart with nothing cached, and again from memory.

    `large` is the largest relation, `small` one of a hundredth. From memory a scan is repeated, as
    it may take milliseconds; the large one, which decides no word then, a fifth as long.
    """
    smallest, *_, largest = sizes(bed)
    with connected(bed, smallest, largest):
        pass
    server = bed.cluster()

    def measure(block: Block) -> dict[str, float]:
        server.cold_restart()
        with server.connect() as connection:
            set_session(connection, ONE_PROCESS)
            found, seconds = {}, bed.parameters.seconds
            for words, tuples, warm in (
                ("small", smallest, seconds),
                ("large", largest, shortened(seconds)),
            ):
                query = statement(tuples, NOT_INDEXED)
                for state, repeated in zip(STATES, (0, warm), strict=True):
                    found[f"{state}_{words}"] = milliseconds(connection, query, {}, repeated)
        return found

    yield from bed.compare(
        measure,
        [{}],
        pairs=bed.timed_pairs(RESTARTS),
        warmup=0,
        small=smallest,
        large=largest,
    )


IN_USE, EMPTIED, RESTARTED, OPENED = (
    "a session in use",
    "restarted with nothing cached",
    "restarted with its files cached",
    "a new session of a warm server",
)


@experiment(units={"first": "ms", "later": "ms"}, needs=["restart"])
def first_lookups(bed: Testbed) -> Iterator[Row]:
    """Execution of a session's first lookup in the largest relation, and the median of five more,
    by EXPLAIN, as in print.

    Before that the server was restarted and nothing is cached, or the kernel has kept what it read
    before the restart, or another session has just looked the same tuple up. Or, as in print, the
    session of a restarted server has looked one up in the smallest relation as often.
    """
    smallest, *_, largest = sizes(bed)
    with connected(bed, smallest, largest):
        pass
    server = bed.cluster()

    def looked_up(times: int, *relations: int) -> list[float]:
        """Of the last of these relations."""
        with server.connect() as connection:
            set_session(connection, ONE_PROCESS)
            found = [
                plans.explain(
                    connection, statement(one, INDEXED), execute=True, buffers=False
                ).execution_ms
                or 0
                for one in relations
                for _ in range(times)
            ]
        return found[-times:]

    def prepare(block: Block, state: str) -> None:
        if state == EMPTIED:
            server.cold_restart()
            return
        looked_up(1, smallest, largest)
        if state != OPENED:
            server.restart()

    def measure(block: Block, state: str) -> dict[str, float]:
        first, *later = looked_up(6, *[smallest] * (state == IN_USE), largest)
        return {"first": first, "later": statistics.median(later).estimate}

    yield from bed.compare(
        measure,
        {"state": [IN_USE, EMPTIED, RESTARTED, OPENED]},
        pairs=bed.timed_pairs(RESTARTS),
        warmup=0,
        prepare=prepare,
        fixed=True,
    )


@experiment(units={"time": "ms", "waiting": "share"}, needs=["restart"])
def scan_from_slow_disk(bed: Testbed) -> Iterator[Row]:
    """A scan of a large relation from a disk of the slides' rate, and of a hundredth from memory.

    The disk serves one page at a time, to three processes as on the slides; the pool is smaller
    than the large relation and larger than the small one.
    """
    large = bed.parameters.slowed_largest
    small = large // 100
    pages = max(16, heap_pages(large) // 8)
    server, disk = bed.cluster_on_slow_disk(
        shared_buffers=f"{8 * pages}kB", **bed.programs.synchronous_io
    )
    for tuples in (small, large):
        keyed(server, name(tuples), tuples, logged=False)
    # as the slides' scan of ten million tuples came from their disk
    seconds = printed.cell("explorations_sizeup_averages", "average", "q4") / 1000
    page = Disk(1 / (heap_pages(10_000_000) / seconds))

    def measure(block: Block, tuples: int) -> dict[str, float]:
        scan = statement(tuples, NOT_INDEXED)
        with server.connect() as connection:
            if releases.knows(server.version, "io_combine_limit"):
                connection.execute("SET io_combine_limit = 1")
            if tuples == small:
                milliseconds(connection, scan, {})  # into the pool
                seconds = shortened(bed.parameters.seconds)
                return {"time": milliseconds(connection, scan, {}, seconds), "waiting": 0}
            with disk.serving(page) as stretch:
                time = milliseconds(connection, scan, {})
        return {"time": time, "waiting": 1000 * stretch.counts().reads.busy / time}

    yield from bed.compare(
        measure,
        {"tuples": [small, large]},
        pairs=bed.timed_pairs(statistics.ENOUGH),
        warmup=0,
        large=large,
    )
