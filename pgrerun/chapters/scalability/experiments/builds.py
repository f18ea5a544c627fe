"""The releases that the talk compares, and single patches, as builds: counted, and timed.

None of them comes in a package: an experiment takes those that are registered by their names in
data/builds.csv, and sets itself aside without those that it is about.
"""

import resource
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pgrerun.chapters.scalability.experiments.clients import SCRIPTS, on_one_and_on_all
from pgrerun.chapters.scalability.experiments.large_machines import PROCESSORS, SMALL, SWEEP
from pgrerun.chapters.scalability.experiments.wal import COPY, bytes_of_rows
from pgrerun.chapters.scalability.load import (
    SMALL_POOL,
    SQL,
    TPS,
    Load,
    compare_loads,
    in_memory,
    loaded,
    ours,
    processors,
    several,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab import disk
from pgrerun.lab.instruments import callgrind, clock, counters, process_table, sessions
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, Programs, builds, fetched, value
from pgrerun.lab.server.binaries import ask, c_compiler
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened, side_by_side

RELEASES = ("9.1", "9.2")
PATCHES = ("lazyvxid", "sinval", "pgxact", "fastpath")  # each has its NAME-before


# A build's programs by its name. CannotMeasure, with the word by which the ledger asks, where it
# isn't there.
programs = partial(fetched.build, lacking="PostgreSQL 9.1")
# Those of some pairs of builds of which both start; CannotMeasure if none does.
complete = partial(builds.complete, require=programs)


def patched(names: Sequence[str] = PATCHES) -> list[tuple[str, str]]:
    return [(f"{name}-before", name) for name in names]


def load_counted(server: Cluster, rows: int) -> None:
    with server.connect() as connection:
        loading.replace(connection, "counted", SQL.text("builds.counted"))
        SQL.run(connection, "builds.fill_counted", rows=rows)


# ---- counted, with one session

CALLED = ("LWLockAcquire", "hash_search_with_hash_value")  # told apart by who calls them
TODAY = "today"
ROWS = 10_000


@experiment(
    units={"calls": "calls/lookup", "instructions": "instructions/lookup"}, needs=["restart"]
)
def lookup_calls(bed: Testbed) -> Iterator[Row]:
    """What a prepared lookup by primary key calls, counted in a single-user backend.

    On 9.1 and 9.2, on the commits before and after patches that are registered, and on today's
    server: each lightweight lock that it takes, each search of a shared hash table, and each time
    that it asks for invalidation messages, by the routine that does. `instructions` are those of
    the whole lookup. Counted once, as they repeat.
    """
    callgrind.require()
    every = {name: programs(name) for name in complete([RELEASES, *patched()])}
    for name, found in (every | {TODAY: bed.programs}).items():
        with Cluster(found) as cluster:
            load_counted(cluster, ROWS)
            cluster.stop()
            rows = callgrind.repeated(
                cluster,
                [SQL.text("builds.prepare").rstrip(";\n")],
                SQL.text("builds.lookup").rstrip(";\n"),
                callers=CALLED,
            )
        called = rows["function"].str.partition("'")
        for function, by, calls in zip(called[0], called[2], rows["calls"]):
            if (function in CALLED and by != "hash_search") or function == "SIGetDataEntries":
                yield {
                    "build": name,
                    "function": function,
                    "called_by": by or "",
                    "calls": int(calls),
                    "instructions": int(rows["exclusive"].sum()),
                }


WAITING, FLUSHED = "not flushed yet", "flushed"


@experiment(units={"questions": "questions/tuple"}, needs=["restart"])
def dead_tuples(bed: Testbed, tuples: int = 40) -> Iterator[Row]:
    """How often an index scan asks the commit log for each of so many deleted tuples.

    Each was inserted and deleted by transactions of its own, whose commits were flushed or not:
    before that no hint of them may be set. Counted in a single-user backend, where nobody flushes
    for others, on the commits before and after the patch, and on 9.1 and 9.2.
    """
    callgrind.require()
    for name in complete([("surelydead-before", "surelydead"), RELEASES]):
        for commits, setting in {FLUSHED: "on", WAITING: "off"}.items():
            with Cluster(programs(name)) as cluster:
                with cluster.connect() as connection:
                    loading.replace(connection, "dead", SQL.text("builds.dead"))
                cluster.stop()
                lines = [f"SET synchronous_commit = {setting}"]
                for statement in ("builds.insert_dead", "builds.delete_dead"):
                    lines += [SQL.text(statement, id=n).rstrip(";\n") for n in range(tuples)]
                lines += SQL.text("builds.scan_by_index").rstrip(";\n").split(";\n")
                found = callgrind.repeated(
                    cluster, lines, SQL.text("builds.scan_dead").rstrip(";\n"), times=2
                )
            asked = found.loc[found["function"] == "TransactionIdGetStatus", "calls"].sum()
            yield {"build": name, "commits": commits, "questions": float(asked) / tuples}


@experiment(units={"bytes_per_row": "bytes/row"}, needs=["restart"])
def copied_on_builds(bed: Testbed, tuples: int = 5_000) -> Iterator[Row]:
    """Bytes of WAL that COPY writes for the same rows in 9.1 and in 9.2."""
    for name in complete([RELEASES]):
        with Cluster(programs(name)) as cluster, cluster.connect() as connection:
            yield {
                "build": name,
                "bytes_per_row": bytes_of_rows(connection, COPY, tuples) / tuples,
            }


# ---- snapshots

IDLE = 1_000  # sessions, and at profile ci, where no time decides, a tenth of them


@experiment(units={"lookups": "lookups/s"}, needs=["restart"])
def idle_sessions(bed: Testbed) -> Iterator[Row]:
    """Lookups by a session for each processor, beside many idle sessions and beside none.

    Before and after the commit that packs what snapshots read of every session, idle ones too. Each
    lookup takes a snapshot of its own; they run in a loop within the server, without a client's
    messages, which all variants have alike. It is told.
    """
    many = IDLE // 10 if bed.parameters.profile == "ci" else IDLE
    names = complete(patched(["pgxact"]))

    def rate(build: str, idle: int, each: int) -> float:
        """Lookups a second, on a server of their own: starts differ by more than loops do."""
        settings = {"max_connections": many + processors() + 20}
        with Cluster(programs(build), settings) as server, ExitStack() as idlers:
            load_counted(server, ROWS)
            _leave_idle(idlers, server, idle)
            sent = [SQL.text("builds.look_up", rows=ROWS, first=1, last=each)] * processors()
            return sum(each / one for one in sessions.at_once(server, sent))

    each = {}  # lookups that take every build long enough
    for idle in (0, many):
        quickest = max(rate(name, idle, 10 * ROWS) for name in names) / processors()
        each[idle] = max(ROWS, round(quickest * shortened(bed.parameters.seconds)))

    yield from bed.compare(
        lambda block, build, idle: {"lookups": rate(build, idle, each[idle])},
        {"build": names, "idle": (0, many)},
        pairs=bed.timed_pairs(),
        warmup=0,
        positive=["lookups"],
        processors=processors(),
    )


def _leave_idle(stack: ExitStack, server: Cluster, many: int) -> None:
    """Open so many sessions that do nothing until the stack ends."""
    enough, (allowed, most) = 4 * IDLE, resource.getrlimit(resource.RLIMIT_NOFILE)
    if many and 0 <= allowed < enough:  # below zero there is no limit
        if 0 <= most < enough:
            raise CannotMeasure(f"{enough} open files", f"a process may have {most} of them here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, most))
    for _ in range(many):
        stack.enter_context(server.connect())


# ---- group commit

USUAL = "as set"
FLUSHES = {"brief": 1.0, "long": 10.0}  # milliseconds, beside the parameter's
PAIR = ("groupcommit-before", "groupcommit")


@experiment(
    units=TPS | {"per_flush": "commits", "computing": "share of the processors"}, needs=["restart"]
)
def commits_on_builds(bed: Testbed) -> Iterator[Row]:
    """Single inserts by two clients and by the most, on a disk that takes its time for a flush.

    On 9.1 and 9.2 with three times of a flush, and on the commits before and after group commit
    with the parameter's, which is what a flush takes longer than on this machine's own disk. The
    disk counts the flushes. `computing` is the server's share of all processors' time: near one,
    it has none left to wait with.
    """
    names, most = complete([PAIR, RELEASES]), bed.parameters.commit_clients
    lasting = FLUSHES | {USUAL: bed.parameters.flush_delay / 1000}
    cases = [(name, number, USUAL) for name in names for number in (2, most)]
    cases += [(name, most, flush) for name in names if name in RELEASES for flush in FLUSHES]
    settings = ours(bed) | {"wal_sync_method": "fdatasync"}
    with (
        side_by_side((name, disk.Slowed()) for name in names) as disks,
        side_by_side(
            (name, Cluster(programs(name), settings, disk=disks[name])) for name in names
        ) as servers,
    ):
        for one in servers.values():
            loaded(bed, one)
        loads = {  # what the commits do alone is told
            (name, n): Load(bed, one, "insert", n, told=name in PAIR)
            for name, one in servers.items()
            for n in (2, most)
        }

        def measure(
            block: Block, build: str, clients: int, flush: str, flush_ms: float
        ) -> dict[str, float]:
            load = loads[build, clients]
            with disks[build].serving(disk.Disk(flush=flush_ms * 1e-3)) as stretch:
                load.lasting()  # as long with this flush as with any
                flushed, used = stretch.counts().flushes, process_table.usage(load.server)
                with clock.stopwatch() as watch:
                    done = load.run(block.seed)
                computed = process_table.usage(load.server).cpu_seconds - used.cpu_seconds
                flushes = stretch.counts().flushes.requests - flushed.requests
            return {
                "tps": done.tps,
                "per_flush": done.transactions / max(1, flushes),
                "computing": computed / watch.seconds / processors(),
            }

        yield from bed.compare(
            measure,
            [
                {"build": name, "clients": n, "flush": flush, "flush_ms": lasting[flush]}
                for name, n, flush in cases
            ],
            pairs=bed.timed_pairs(),
            warmup=0,
            positive=["tps"],
        )


# ---- over clients


@experiment(units=TPS, needs=["restart"])
def releases_over_clients(bed: Testbed) -> Iterator[Row]:
    """Lookups on 9.1 and 9.2 by up to twice as many clients as processors."""
    here = processors()
    swept = sorted({1, here, 2 * here, *(n for n in SWEEP if n <= 2 * here)})
    many = [(name, "lookups", n) for name in complete([RELEASES]) for n in swept]
    yield from over_clients(bed, many, told=here < SMALL)


FLUSHING: dict[str, dict[str, str | int]] = {"as set": {}, "none": {"fsync": "off"}}


@experiment(units=TPS, needs=["restart"])
def writers_of_releases(bed: Testbed) -> Iterator[Row]:
    """pgbench's transaction on 9.1 and 9.2, by as many clients as processors.

    No commit waits for the flush, but the WAL is flushed all the same; with no flush of anything
    is told. What only the first seconds after loading have is kept out, by which brief runs are of
    two kinds: keys are made without WAL, so that a page of them is logged in full when it is first
    changed, several times the WAL of the rest, and new files of the WAL are made and flushed. So no
    page is logged in full, and before each run a checkpoint gives used files out again.
    """
    here = processors()
    settings = in_memory(bed) | {"full_page_writes": "off"}
    with side_by_side(
        ((name, flushes), Cluster(programs(name), settings | more))
        for name in complete([RELEASES])
        for flushes, more in FLUSHING.items()
    ) as servers:
        loads = {
            case: Load(bed, loaded(bed, one), SCRIPTS["writers"], here, told=here < PROCESSORS)
            for case, one in servers.items()
        }

        def prepare(block: Block, build: str, flushes: str) -> None:
            load = loads[build, flushes]
            load.lasting()  # tried out before the checkpoint
            with load.server.connect() as connection:
                connection.execute("CHECKPOINT")

        yield from compare_loads(
            bed,
            ("build", "flushes"),
            loads,
            bed.timed_pairs(),
            prepare=prepare,
            clients=here,
            processors=here,
        )


@experiment(units=TPS, needs=["restart"])
def first_patch_over_clients(bed: Testbed) -> Iterator[Row]:
    """Lookups on 9.1 and with the first patch alone, by as many clients as processors and twice."""
    here = processors()
    names = complete([("9.1", "fastpath")])
    many = [(name, "lookups", n) for name in names for n in (here, 2 * here)]
    yield from over_clients(bed, many, told=here < PROCESSORS)


@experiment(units=TPS, needs=["restart"])
def patches(bed: Testbed) -> Iterator[Row]:
    """Lookups before and after each patch, by as many clients as processors; writers of one.

    What a patch gains comes from processors that no longer wait for each other: with fewer than the
    talk's machine had it is told. Of writers the talk tells that the small array gains them much.
    """
    here, names = processors(), complete(patched())
    array = [name for pair in patched(["pgxact"]) for name in pair if name in names]
    lookups = [(name, "lookups", here) for name in names]
    yield from over_clients(bed, lookups, told=here < PROCESSORS)
    yield from over_clients(bed, [(name, "writers", here) for name in array])


# What lookups gain over what writers gain is a ratio of two ratios, and on two processors nearly
# one: on 7 pairs it was 1.04 [0.97, 1.33]. An interval narrows with the root of its pairs, so that
# three times as many bring its ends within a tenth.
ENOUGH = 20


@experiment(units=TPS, needs=["restart"])
def by_processors_on_builds(bed: Testbed) -> Iterator[Row]:
    """Both loads on 9.2, kept on one processor and on all, with as many clients for each.

    All is in the pool, no commit waits for the flush, and no checkpoint comes. In more blocks than
    other comparisons, and in all of them: a look at what each load gains would end before it is
    plain which one gains more.
    """
    new, many = RELEASES[1], max(ENOUGH, int(bed.parameters.pairs))
    with Cluster(programs(new), in_memory(bed)) as tested:
        yield from on_one_and_on_all(bed, tested, bed.timed_pairs(many), build=new)


IN_TURN = 50


@experiment(units={"lookups": "lookups/s"}, needs=["restart"])
def in_turn(bed: Testbed) -> Iterator[Row]:
    """Lookups before and after the patch of invalidation messages, by one client and by many.

    By as many as processors, and all in the pool. A client sends `IN_TURN` of them before it waits
    for the answers, each a transaction, so that one alone keeps a processor as busy as many do: a
    patch gains nothing of the time for which a processor has nothing to do.
    """
    both = (1, several())
    with in_memory_on(bed, complete(patched(["sinval"]))) as servers:
        yield from compare_loads(
            bed,
            ("build", "clients"),
            {
                (name, n): Load(bed, one, "lookup", n, together=IN_TURN)
                for name, one in servers.items()
                for n in both
            },
            bed.timed_pairs(max(ENOUGH // 2, int(bed.parameters.pairs))),
            lambda load, block: {"lookups": IN_TURN * load.run(block.seed).tps},
            fixed=True,  # a look at each gain would end before it is plain which one is greater
            processors=both[1],
        )


@contextmanager
def in_memory_on(bed: Testbed, names: Iterable[str]) -> Iterator[dict[str, Cluster]]:
    """Servers of builds, loaded, on which all is in the pool and commits don't wait for the disk.

    As on the talk's machines; no checkpoint comes.
    """
    with side_by_side((name, Cluster(programs(name), in_memory(bed))) for name in names) as servers:
        for one in servers.values():
            loaded(bed, one)
        yield servers


FITS, DOESNT_FIT = "fits", "does not fit"
IN_POOLS = 100_000  # rows


@experiment(units={"lookups": "lookups/s", "reads": "pages/lookup"}, needs=["restart"])
def in_pools(bed: Testbed) -> Iterator[Row]:
    """Lookups by one session and by one for each processor, in a pool that holds all, and a small.

    In a loop within the server, so that a session waits for nobody but other sessions; each draws
    its rows, so that however many there are as many pages of a lookup are found in the pool. In the
    small one every page that is read takes the place of another, and the system caches it: `reads`
    is how many a lookup has read so. On 9.2, and on today's server, which is told.
    """
    new = RELEASES[1]
    yield from _in_pools(bed, new, programs(new))
    yield from _in_pools(bed, TODAY, bed.programs)


def _in_pools(bed: Testbed, name: str, found: Programs) -> Iterator[Row]:
    both, each = (1, several()), {}
    long = shortened(bed.parameters.seconds, name == TODAY)
    with side_by_side(
        (data, Cluster(found, {"shared_buffers": pool}))
        for data, pool in ((FITS, "64MB"), (DOESNT_FIT, SMALL_POOL))
    ) as servers:
        for data, server in servers.items():
            load_counted(server, IN_POOLS)
            with server.connect() as connection:  # has read every row
                SQL.run(connection, "builds.look_up", rows=IN_POOLS, first=1, last=IN_POOLS)
            each[data] = max(ROWS, round(long * in_loops(server, 1, IN_POOLS)["lookups"]))

        yield from bed.compare(
            lambda block, data, sessions: in_loops(servers[data], sessions, each[data]),
            {"data": list(servers), "sessions": both},
            pairs=bed.timed_pairs(),  # of a loop in the server an interval is narrow
            warmup=0,
            positive=["lookups"],
            fixed=True,  # as of in_turn
            server=name,
            processors=both[1],
        )


def in_loops(server: Cluster, number: int, each: int) -> dict[str, float]:
    """Lookups a second by so many sessions that begin together, `each` by every one of them, and
    how many pages one reads.
    """
    look_up = SQL.text("builds.look_up_drawn", rows=IN_POOLS, lookups=each)
    before = pages_read(server)
    seconds = sessions.at_once(server, [look_up] * number)
    return {
        "lookups": sum(each / one for one in seconds),
        "reads": (pages_read(server) - before) / (number * each),
    }


def pages_read(server: Cluster) -> int:
    """Pages that its sessions have read into the pool so far."""
    with server.connect() as connection:
        counters.force_flush(connection)
        return value(connection, int, SQL.text("builds.pages_read"))


def over_clients(
    bed: Testbed,
    many: Sequence[tuple[str, str, int]],
    told: bool = False,
) -> Iterator[Row]:
    """Throughput of loads by so many clients on builds, as of `in_memory_on`."""
    with in_memory_on(bed, dict.fromkeys(name for name, _, _ in many)) as servers:
        loads = {
            case: Load(bed, servers[case[0]], SCRIPTS[case[1]], case[2], told=told) for case in many
        }
        factors = ("build", "load", "clients")
        yield from compare_loads(bed, factors, loads, bed.timed_pairs(), processors=processors())


# ---- a spinlock of Itanium

# By what the header knows a compiler of HP on an Itanium, and that there are spinlocks.
ITANIUM = ("-undef", "-nostdinc", "-D__hpux", "-D__ia64", "-DHAVE_SPINLOCKS")
SPINNING = """#include "storage/s_lock.h"
#ifdef TAS_SPIN
spinning: TAS_SPIN(lock)
#else
spinning: TAS(lock)
#endif
"""


@experiment(units={"spinning": "text", "guide": "yes or no"}, needs=["restart"])
def itanium_spinlock(bed: Testbed) -> Iterator[Row]:
    """By what a process of 9.1 and of 9.2 goes on trying for a taken spinlock on an Itanium.

    What the C preprocessor makes of the header that either installs, told that it is HP's compiler
    there; and whether the header names HP's guide. CannotMeasure without both builds and their
    headers, or without a C compiler.
    """
    compiler = c_compiler("a header is read by the preprocessor of one")
    for name in complete([RELEASES]):
        said = ask(programs(name).bindir / "pg_config", "--includedir-server").stdout.strip()
        header = Path(said) / "storage" / "s_lock.h"
        if not header.is_file():
            raise CannotMeasure("server headers", f"the build {name} has none beside its programs")
        with TemporaryDirectory() as folder:  # what only HP-UX has is empty here
            inline = Path(folder, "ia64", "sys", "inline.h")
            inline.parent.mkdir(parents=True)
            inline.touch()
            done = subprocess.run(
                [compiler, "-E", "-P", *ITANIUM, "-I", said, "-I", folder, "-"],
                input=SPINNING,
                capture_output=True,
                text=True,
                timeout=60,
            )
        if done.returncode:
            raise CannotMeasure(
                "server headers",
                f"{compiler} doesn't read that of {name}: {done.stderr.strip()[:300]}",
            )
        [_, spinning] = done.stdout.rsplit("spinning:", 1)
        guide = "Spinlocks on the Intel Itanium" in header.read_text("latin-1")
        yield {"build": name, "spinning": " ".join(spinning.split()), "guide": guide}
