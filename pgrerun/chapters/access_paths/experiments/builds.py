"""The same on PostgreSQL 9.1 and 9.2 themselves, as somebody compiled them, beside today's server.

They are registered by `pgrerun releases add`. What stands in for 9.1 elsewhere in the chapter can
be held against them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg

from pgrerun.chapters.access_paths.accounts import (
    COVERED,
    KEYED,
    SQL,
    allow_only,
    build,
    load,
    noted,
    ready,
    repeated,
    timed,
)
from pgrerun.chapters.access_paths.experiments import (
    arrays,
    joins,
    plan_cache,
    sorting,
    trees,
    visibility,
)
from pgrerun.lab.instruments import cold_files, plans, process_table, sizes, wal
from pgrerun.lab.server import Cluster, fetched, set_session, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened

BUILDS = ("9.1", "9.2")
TODAY = "today's"


def servers(bed: Testbed, **settings: str | int) -> dict[str, Cluster]:
    """9.1 and 9.2 by name. CannotMeasure unless both builds are registered."""
    return {name: bed.release(fetched.build(name), **settings) for name in BUILDS}


def sessions(bed: Testbed, *relations: str) -> Iterator[tuple[str, psycopg.Connection]]:
    """A session on 9.1, on 9.2 and on today's server in turn, by name.

    Each has these relations of accounts. CannotMeasure unless both builds are registered.
    """
    for name, cluster in {**servers(bed), TODAY: bed.cluster()}.items():
        ready(cluster, bed.parameters.accounts, *relations)
        with cluster.connect() as connection:
            yield name, connection


LEFT_ALONE, NESTED = "left alone", "made to use nested loops"
_OFF = {LEFT_ALONE: (), NESTED: ("enable_mergejoin", "enable_hashjoin")}


@experiment(units={"table_rows": "rows", **joins.SHAPE}, needs=["restart"])
def join_on_releases(bed: Testbed) -> Iterator[Row]:
    """The talk's join by the planners of 9.1, 9.2 and today, left alone and with nested loops only.

    Today's planner doesn't notice that the table is joined to itself, as the others don't.
    """
    rows = bed.parameters.accounts
    for server, connection in sessions(bed, KEYED):
        for plan, off in _OFF.items():
            if server == TODAY:
                joins.switch(connection, joins.PROBES)
            settings = {name: "off" if name in off else "on" for name in _OFF[NESTED]}
            set_session(connection, settings | {"max_parallel_workers_per_gather": 0})
            found = plans.explain(connection, joins.spread(KEYED, rows), execute=True)
            yield {"server": server, "plan": plan, "table_rows": rows, **joins.described(found)}


@experiment(units=joins.SHAPE, needs=["restart"])
def forms_on_releases(bed: Testbed, rows: int = 300_000) -> Iterator[Row]:
    """The talk's join and its relatives by the planners of 9.1 and 9.2, left alone.

    They expect a thousand keys of a function, and look so many up only in a table that is large
    for that.
    """
    for server, cluster in servers(bed).items():
        ready(cluster, rows, "joined")
        with cluster.connect() as connection:
            for form, name in joins.OLD_FORMS.items():
                found = plans.explain(connection, joins.spread("joined", rows, name), execute=True)
                yield {"server": server, "form": form, **joins.described(found)}


EVERY, FIRST, LATER = "every execution", "first execution", "later executions"


@experiment(units={"seconds": "s", "millions": "million rows"}, needs=["restart"])
def join_from_files(bed: Testbed) -> Iterator[Row]:
    """The talk's join on 9.1 and 9.2, of a large table that isn't in memory.

    The server is started anew, and the operating system has forgotten the table's files: before
    each execution on 9.1, which in print reads more than memory holds, and before a first one on
    9.2. Later ones find what that has read. The operating system reads ahead as it likes.
    """
    cold_files.require_forgettable()
    rows = bed.parameters.joined
    name = f"joined_{rows}"
    clusters = servers(bed)
    for cluster in clusters.values():
        ready(cluster, rows, name)
    statement = joins.spread(name, rows)

    def from_files(cluster: Cluster) -> float:
        cluster.restart()
        with cluster.connect() as connection:
            cold_files.forget_files(cluster, connection, name)
            return timed(connection, statement)

    def measure(block: Block, server: str, execution: str) -> dict[str, float]:
        cluster, milliseconds = clusters[server], bed.parameters.milliseconds
        if execution != LATER:
            seconds = repeated(lambda: from_files(cluster), milliseconds)
        else:
            with cluster.connect() as connection:
                timed(connection, statement)
                seconds = repeated(lambda: timed(connection, statement), milliseconds)
        return {"seconds": seconds, "millions": rows / 1e6}

    yield from bed.compare(
        measure,
        [
            {"server": server, "execution": execution}
            for server, execution in (("9.1", EVERY), ("9.2", FIRST), ("9.2", LATER))
        ],
        pairs=bed.fewer_pairs,
        warmup=0,
        against="9.1",
    )


@experiment(units=visibility.COSTS, needs=["restart"])
def costs_on_releases(bed: Testbed) -> Iterator[Row]:
    """What 9.2 estimates while its relallvisible is falsified; see `costs`."""
    server = bed.release(fetched.build("9.2"))
    yield from visibility.costs_of(server, bed.parameters.accounts, "planner.claim_visible_by_hand")


@experiment(units=arrays.LOOKED_UP, needs=["restart"])
def lists_on_releases(bed: Testbed) -> Iterator[Row]:
    """Accounts by a list of keys on 9.1, 9.2 and today's server; see `lists`."""
    for server, connection in sessions(bed, KEYED):
        for row in arrays.looked_up(connection, bed.parameters.accounts):
            yield {"server": server, **row}


@experiment(units=arrays.ESTIMATES, needs=["restart"])
def selectivity_on_releases(bed: Testbed) -> Iterator[Row]:
    """Estimates of conditions on arrays after ANALYZE on 9.1, 9.2 and today's server."""
    for server, connection in sessions(bed):
        arrays.fill_tags(connection, bed.parameters.seed)
        SQL.run(connection, arrays.STATISTICS[arrays.WITH])
        for row in arrays.estimates(connection):
            yield {"server": server, **row}


@experiment(units={"shape": "text", "pages": "page accesses"}, needs=["restart"])
def prepared_on_releases(bed: Testbed) -> Iterator[Row]:
    """The prepared join for the rare value on 9.1, 9.2 and today's server, asked for it before."""
    rows = bed.parameters.accounts
    for server, connection in sessions(bed, KEYED):
        plan_cache.open_session(connection, rows)
        SQL.run(connection, "plan_cache.prepare")
        plan_cache.ask(connection, rows // plan_cache.ONE_IN)
        yield {"server": server, **plan_cache.plan_of_rare(connection)}


@experiment(units=trees.UNITS, needs=["restart"])
def texts_on_releases(bed: Testbed) -> Iterator[Row]:
    """Addresses searched by prefix on 9.2, whose SP-GiST the talk tried; see `texts`."""
    yield from trees.texts_of(bed, bed.release(fetched.build("9.2")), bed.parameters.milliseconds)


@experiment(units={"seconds": "s"}, needs=["restart"])
def sorts_on_releases(bed: Testbed) -> Iterator[Row]:
    """Sort doubles on 9.2, with what it brought and by a class without it; see `sorts`."""
    with bed.release(fetched.build("9.2")).connect() as connection:
        yield from sorting.sorts_of(
            bed, connection, [sorting.DOUBLE], ["float8_ops"], bed.parameters.milliseconds
        )


@experiment(units={"seconds": "s"}, needs=["restart"])
def array_assignments(bed: Testbed, times: int = 20_000) -> Iterator[Row]:
    """A loop in PL/pgSQL that assigns to elements of an array so many `times`, on 9.1 and 9.2.

    And the same loop with plain assignments, so that one can tell what the element takes. As these
    decide no word, they are timed a fifth as long.
    """
    clusters = servers(bed)

    def measure(block: Block, server: str, assigned: str) -> dict[str, float]:
        statement = SQL.text(f"assignments.{assigned}", times=times)
        length = shortened(bed.parameters.milliseconds, told=assigned != "element")
        with clusters[server].connect() as connection:
            return {"seconds": repeated(lambda: timed(connection, statement), length)}

    variants = {"server": list(clusters), "assigned": ["element", "variable"]}
    yield from bed.compare(measure, variants, pairs=bed.fewer_pairs, warmup=0)


@experiment(units={"build": "s", "pages": "pages", "accesses": "pages/search"}, needs=["restart"])
def gist_on_releases(bed: Testbed) -> Iterator[Row]:
    """Build a GiST index over the same points on 9.1 and 9.2, and search it with the same boxes.

    It is built again and again for as long as a measurement has to last.
    """
    clusters = servers(bed)
    boxes = [SQL.text("trees.search_box", number=number) for number in range(trees.SEARCHES)]
    for cluster in clusters.values():
        with cluster.connect() as connection:
            build(connection, "points", "trees.points", objects=bed.parameters.objects)

    def measure(block: Block, server: str) -> dict[str, float]:
        with clusters[server].connect() as connection:

            def once() -> float:
                SQL.run(connection, "trees.drop_index")
                return timed(connection, SQL.text("trees.gist"))

            seconds = repeated(once, bed.parameters.milliseconds)
            allow_only(connection, "indexscan", "bitmapscan")
            searched = [plans.explain(connection, box, execute=True) for box in boxes]
            scans = [plan.find("Bitmap Index Scan") for plan in searched]
            return {
                "build": seconds,
                "pages": sizes.pages(connection, "searched"),
                "accesses": sum(scan.page_accesses for [scan] in scans) / trees.SEARCHES,
            }

    yield from bed.compare(measure, {"server": list(clusters)}, pairs=bed.fewer_pairs, warmup=0)


@experiment(
    units={"build": "s", "pages": "pages", "calls": "reads and writes", "buffered": "yes or no"},
    needs=["restart"],
)
def gist_short_of_memory(bed: Testbed, memory: str = "8MB") -> Iterator[Row]:
    """Build a GiST index over points that outgrows the pool by far, on 9.1 and 9.2.

    9.2 is told that there is no more memory than the pool. Whether it collects entries in buffers
    instead of descending for each, it decides by itself, and says so. `calls` are those by which
    the session reads and writes files.
    """
    process_table.require()
    clusters = servers(
        bed,
        shared_buffers=memory,
        effective_cache_size=memory,
        checkpoint_segments=64,  # a build's WAL brings no checkpoint
    )
    objects = min(20 * bed.parameters.objects, 1_000_000)
    for cluster in clusters.values():
        with cluster.connect() as connection:
            build(connection, "points", "trees.points", objects=objects)

    def measure(block: Block, server: str) -> dict[str, float]:
        with clusters[server].connect() as connection:
            said = noted(connection)
            process, calls = Path(f"/proc/{connection.info.backend_pid}"), 0

            def once() -> float:
                nonlocal calls
                SQL.run(connection, "trees.drop_index")
                SQL.run(connection, "trees.checkpoint")
                before = process_table.count_calls(process)
                seconds = timed(connection, SQL.text("trees.gist"))
                calls = process_table.count_calls(process) - before
                return seconds

            return {
                "build": repeated(once, bed.parameters.milliseconds),
                "calls": calls,
                "pages": sizes.pages(connection, "searched"),
                "buffered": any("switched to buffered" in text for text in said),
            }

    yield from bed.compare(measure, {"server": list(clusters)}, pairs=bed.fewer_pairs, warmup=0)


@experiment(units={"bits": "bits", "bytes": "bytes"}, needs=["restart"])
def logged_on_releases(bed: Testbed, pages: tuple[int, ...] = (64, 640)) -> Iterator[Row]:
    """What VACUUM writes into the WAL on 9.1 and 9.2 where it only has to set bits of the map.

    Of tables of so many pages, a tuple on each; whatever a vacuum writes besides is the same for
    all of them. Full pages aren't logged: where a checkpoint had come between, as on 9.1 in one of
    two runs, a vacuum of the larger table logged a page of pg_class whole.
    """
    for server, cluster in servers(bed, full_page_writes="off").items():
        cluster.extension("pageinspect")
        with cluster.connect() as connection:
            for number in pages:
                build(connection, "wide", "visibility.wide_read", pages=number)
                with wal.written(connection) as written:
                    SQL.run(connection, "visibility.vacuum_wide")
                bits = visibility.bits_set(connection)
                yield {"server": server, "pages": number, "bits": bits, "bytes": written.bytes}
            SQL.run(connection, "visibility.drop_wide")


NOTHING = 0
_SCANNED = re.compile(r'"sparse": found .* in (\d+) out of (\d+) pages')


@experiment(units={"pages": "pages", "scanned": "pages", "without": "pages"}, needs=["restart"])
def vacuums_on_releases(
    bed: Testbed, every: tuple[int, ...] = (NOTHING, 1000, 100, 33, 32)
) -> Iterator[Row]:
    """Pages that VACUUM says it scanned on 9.1 and 9.2 when every nth page of a table has changed.

    Of 0 none has. Without the map it reads all for VACUUM (FREEZE), which these releases let it.
    """
    for server, cluster in servers(bed).items():
        with cluster.connect() as connection:
            build(connection, "sparse", "visibility.sparse")
            said = noted(connection)
            for number in every:
                for _ in range(2):  # the first cleans changed pages, the second marks them
                    SQL.run(connection, "visibility.vacuum_sparse")
                if number:
                    SQL.run(connection, "visibility.change_every", every=number)
                row: Row = {"server": server, "every": number}
                for name, how in (("scanned", "tell_sparse"), ("without", "tell_all_of_sparse")):
                    said.clear()
                    SQL.run(connection, f"visibility.{how}")
                    [found] = _SCANNED.findall("\n".join(said))
                    row[name], row["pages"] = map(int, found)
                yield row


@experiment(
    units={"map_pages": "pages", "total": "", "rows": "rows", "heap_fetches": "rows"},
    needs=["restart"],
)
def upgraded(bed: Testbed) -> Iterator[Row]:
    """A vacuumed table of 9.1 before and after pg_upgrade of 9.2, and vacuumed again after that.

    Counted are pages of its visibility map, and on 9.2 the rows that an index-only scan of all of
    it returns and those that it looks up in the table; `total` is what it sums up.
    """
    programs = {name: fetched.build(name) for name in BUILDS}
    with Cluster(programs["9.1"]) as old, Cluster(programs["9.2"]) as new:
        load(old, bed.parameters.accounts, COVERED)
        with old.connect() as connection:
            yield {"step": "vacuumed on 9.1", **_summed_up(connection)}
        new.upgrade_from(old)
        with new.connect() as connection:
            allow_only(connection, "indexonlyscan")
            yield {"step": "upgraded to 9.2", **_summed_up(connection), **_looked_up(connection)}
            SQL.run(connection, "covering.vacuum")
            yield {"step": "vacuumed on 9.2", **_summed_up(connection), **_looked_up(connection)}


def _summed_up(connection: psycopg.Connection) -> dict[str, int]:
    total = value(connection, int, SQL.text("covering.total"))
    return {"map_pages": sizes.pages(connection, COVERED, "vm"), "total": total}


def _looked_up(connection: psycopg.Connection) -> dict[str, int]:
    scan = plans.explain(connection, SQL.text("covering.total"), execute=True).scan_of(COVERED)
    return {"rows": round(scan.rows_actual), "heap_fetches": scan.properties["Heap Fetches"]}
