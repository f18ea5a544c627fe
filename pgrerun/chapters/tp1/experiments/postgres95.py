"""TP1 by Postgres95 of 1996: pages that it reads, writes and flushes for a transaction.

It has no log but of the transactions' status, and forces a transaction's pages before it commits,
unless it is told that main memory is stable: the switch that the report added (3.2.2). Its
replacement routine appends to the last page, as the report left it; two builds look for room at
random pages before, as the report found it. What is counted is what the
operating system was asked for, in pages of 8 kB; the report's are requests to the disk, from which
the operating system's own cache may have kept some reads.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from pgrerun.chapters.profiling.experiments.postgres95 import load_bank, transactions
from pgrerun.chapters.tp1.variants import (
    ALONE,
    ENLARGED,
    INDEXES,
    POOL_1990,
    POOL_ENLARGED,
    RELATIONS,
    REPORT_BATCH,
    STABLE,
    relations,
)
from pgrerun.errors import ServerError
from pgrerun.lab.postgres95 import Backend, started
from pgrerun.lab.relations.debit_credit import DebitCredit
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

BUILD = "postgres95-no-assertions"
UNINDEXED = "postgres95-unindexed-catalogs"  # which looks its catalogs up by scans alone
# Rung to the report's stage, pages of the pool, and what the backend is told.
RUNGS = {
    ALONE: ("one", POOL_1990, ""),
    ENLARGED: ("append", POOL_ENLARGED, ""),
    STABLE: ("stable", POOL_ENLARGED, " -S"),
}
FIRST, LOOKED, APPENDED = "first stage", "random looks", "appended"
OWN = "appended, a page each"
# How a replacement finds its place to the build, pages of the pool, and what the backend is told.
#
# The first stage looks at three random pages and then appends a page of its own; random looks
# append to the last page. All of them try the old version's page before. These two stand side by
# side in forty-eight pages as well, with a flush at commit and with stable memory. Once the report
# had done away with looks, each appended version still had a page of its own.
PLACED = {
    FIRST: ("postgres95-first-stage", POOL_1990, ""),
    LOOKED: ("postgres95-random-looks", POOL_ENLARGED, ""),
    APPENDED: (BUILD, POOL_ENLARGED, ""),
    OWN: ("postgres95-own-pages", POOL_ENLARGED, ""),
    f"{FIRST}, {ENLARGED}": ("postgres95-first-stage", POOL_ENLARGED, ""),
    f"{FIRST}, {STABLE}": ("postgres95-first-stage", POOL_ENLARGED, " -S"),
    f"{LOOKED}, {STABLE}": ("postgres95-random-looks", POOL_ENLARGED, " -S"),
}
REPLACED = ("branch", "teller", "account")
SEEDS = 7  # of the keys
# of transactions, of the times of their ends, and of the identifiers to be given out next
STATUS = ("pg_log", "pg_time", "pg_variable")
KINDS = {
    **dict.fromkeys(RELATIONS, "relation"),
    **dict.fromkeys(INDEXES, "index"),
    **dict.fromkeys(STATUS, "status"),
}
# Transactions before those that are counted as the steady state.
WARM = 20
_SMALL = DebitCredit(10, 100, 1000)
_COMMANDS = ("begin", "retrieve", "account", "teller", "branch", "history", "end")


def kind(file: str) -> str:
    """What a file is: relation, index, status (of transactions), catalog."""
    return KINDS.get(file, "catalog")


@experiment(units={"reads": "pages", "writes": "pages", "flushes": "calls"})
def postgres95_ladder(bed: Testbed) -> Iterator[Row]:
    """Pages by rung, transaction, command and file, on three rungs of the report's ladder.

    One session of transactions for each rung. The first (0) begins with an empty pool and empty
    catalog caches, those from the twentieth on are steady. A command that asks for nothing has a
    row without a file.
    """
    yield from ladder(WARM + bed.parameters.counted, relations(bed))


def ladder(
    count: int, bank: DebitCredit, build: str = BUILD, rungs: Sequence[str] = tuple(RUNGS)
) -> Iterator[Row]:
    """The rows of so many transactions of a build."""
    with Backend.of(build) as loaded:
        load_bank(loaded, bank)
        loaded.run([loaded.release.analyze])
        for rung in rungs:
            stage, buffers, told = RUNGS[rung]
            work = transactions(count, 1, bank)
            with loaded.copied(f"-B {buffers}{told}") as backend:
                found = backend.pages(sum(work, []))
            for row in complete(found, count).itertuples(index=False):
                number, place = divmod(row.statement, len(_COMMANDS))
                yield {
                    "rung": rung,
                    "stage": stage,
                    "buffers": buffers,
                    "transaction": number,
                    "steady": number >= WARM,
                    "command": _COMMANDS[place],
                    "file": row.file,
                    "kind": kind(row.file) if row.file else "",
                    "reads": row.reads,
                    "writes": row.writes,
                    "flushes": row.flushes,
                }


STEADY = {
    "reads": "pages/transaction",
    "reads_anew": "pages/transaction",
    "most_reads": "pages",
    "over_bound": "share of transactions",
    "writes": "pages/transaction",
}


@experiment(units=STEADY)
def postgres95_steady(bed: Testbed) -> Iterator[Row]:
    """Pages of a steady transaction on the later two rungs, with other keys in each block.

    So many transactions as the report ran together, after those that fill pool and caches.
    `most_reads` are those of the one that reads most, `over_bound` tells how many read more than
    the report's bound; `reads_anew` as in `postgres95_looks`.
    """
    rungs = {rung: (BUILD, *RUNGS[rung][1:]) for rung in (ENLARGED, STABLE)}
    yield from _sessions(bed, rungs, tuple(STEADY), [{"rung": rung} for rung in rungs])


PLACING = {
    "reads": "pages/transaction",
    "reads_anew": "pages/transaction",
    "writes": "pages/transaction",
    "growth": "pages/transaction",
    "left_to_vacuum": "versions/transaction",
}


@experiment(units=PLACING)
def postgres95_looks(bed: Testbed) -> Iterator[Row]:
    """What random looks for room take and save, and what the report's first stage took.

    `reads_anew` are reads of pages that neither the transaction nor the one before had asked for:
    the others any cache of an operating system still has. Keys and looks are others in each block.
    `growth` is that of the three relations whose tuples are replaced, `left_to_vacuum` versions in
    them that are no longer valid, as their files have them: with stable memory not all are written.
    `vacuumed` are sessions after one of the same length and a vacuum: until then packed pages have
    no room that a look could find. A rung whose build is missing or can't be started has no rows.
    """
    variants = [{"rung": rung, "vacuumed": False} for rung in PLACED]
    variants += [{"rung": rung, "vacuumed": True} for rung in (LOOKED, APPENDED)]
    yield from _sessions(bed, PLACED, tuple(PLACING), variants)


def _sessions(
    bed: Testbed,
    rungs: Mapping[str, tuple[str, int, str]],
    metrics: tuple[str, ...],
    variants: Sequence[Row],
) -> Iterator[Row]:
    bank = relations(bed)
    count = min(REPORT_BATCH, 10 * bed.parameters.counted)
    with started(build for build, _, _ in rungs.values()) as loaded:
        for backend in loaded.values():
            load_bank(backend, bank)
            backend.run([backend.release.analyze])

        def measure(block: Block, rung: str, vacuumed: bool = False) -> dict[str, float]:
            build, buffers, told = rungs[rung]
            with loaded[build].copied(f"-B {buffers}{told}") as backend:
                found = session(backend, bank, count, block.seed, vacuumed)
            return {name: found[name] for name in metrics}

        there = [one for one in variants if rungs[one["rung"]][0] in loaded]
        yield from bed.compare(measure, there, pairs=SEEDS, warmup=0, fixed=True)


def session(
    backend: Backend, bank: DebitCredit, count: int, seed: int, vacuumed: bool = False
) -> dict[str, float]:
    """Metrics as `STEADY` and `PLACING` of so many transactions of a session, after `WARM` ones.

    What grows and what is left is of all of them. If vacuumed, as many run before, and a vacuum.
    """
    every = WARM + count
    work = transactions((1 + vacuumed) * every, seed, bank)
    if vacuumed:
        backend.run(sum(work[:every], []))
        time.sleep(1)  # a vacuum keeps what was replaced in the second in which it begins
        backend.run(["vacuum"])  # of all relations: it forgets the name of one
    before = _pages_of(backend)
    found = backend.requests(sum(work[-every:], []))
    after = _pages_of(backend)
    found["transaction"] = found["statement"] // len(_COMMANDS)
    steady = found[found["transaction"] >= WARM]
    asked = steady["kind"].value_counts()
    reads = steady.loc[steady["kind"] == "reads", "transaction"].value_counts()
    left = sum(backend.versions(name) - bank.tuples[name] for name in REPLACED)
    return {
        "reads": int(asked.get("reads", 0)) / count,
        "reads_anew": anew(found, WARM) / count,
        "most_reads": int(reads.max()) if len(reads) else 0,
        "over_bound": int((reads > printed.cell("tp1_bound", "total", "reads")).sum()) / count,
        "writes": int(asked.get("writes", 0)) / count,
        "growth": sum(after[name] - before[name] for name in REPLACED) / every,
        "left_to_vacuum": left / every,
    }


def anew(requests: pd.DataFrame, since: int) -> int:
    """Reads of pages for which neither their transaction nor the one before has asked."""
    asked = requests[requests["kind"] != "flushes"]
    before = asked.groupby(["file", "page"])["transaction"].shift(fill_value=-2)
    new = (asked["kind"] == "reads") & (before < asked["transaction"] - 1)
    return int((new & (asked["transaction"] >= since)).sum())


def complete(found: pd.DataFrame, count: int) -> pd.DataFrame:
    """What `Backend.pages` found, with a row of zeros for each command that isn't there."""
    every = pd.DataFrame({"statement": range(count * len(_COMMANDS))})
    filled = every.merge(found, how="left", on="statement").fillna({"file": ""}).fillna(0)
    return filled.astype({"reads": int, "writes": int, "flushes": int})


@experiment(units={"pages": "pages"})
def postgres95_sizes(bed: Testbed) -> Iterator[Row]:
    """Pages of the catalogs and of the bank as the report has it, as transactions find them.

    So after loading the bank and a vacuum. `indexed` is a catalog that has an index; another can
    only be scanned.
    """
    with Backend.of(BUILD) as backend:
        load_bank(backend, DebitCredit.report())
        indexed = {row["relname"] for row in backend.run([_INDEXED, backend.release.analyze])[0]}
        for file, number in _pages_of(backend).items():
            yield {
                "file": file,
                "kind": kind(file),
                "index": file.endswith("ind") or file in INDEXES,
                "indexed": file in indexed,
                "pages": number,
            }


_INDEXED = "SELECT pg_class.relname FROM pg_class, pg_index WHERE pg_class.oid = pg_index.indrelid"


def _pages_of(backend: Backend) -> dict[str, int]:
    files = [path for path in backend.data.rglob("*") if "files" not in path.parts]
    hidden = ("PG_VERSION", "pg_hba", "pg_internal.init")
    return {
        path.name: path.stat().st_size // 8192
        for path in files
        if path.is_file() and path.name not in hidden
    }


@experiment(units={"balance": "", "versions": "versions", "ahead": "files"})
def postgres95_crash(bed: Testbed) -> Iterator[Row]:
    """What is left of a transaction whose backend is killed before its end, and after it.

    `when` is before, open (as it was killed) or after the next backend has looked; forced or stable
    is what the next one finds where it was killed after its end, with a flush at commit or with
    stable memory. `balance` is the sum of all balances, as that transaction or a backend without it
    sees them; `versions` those that lie in the relation's file by then, and `bytes` a digest of it.
    A pool of sixteen pages and a scan push the changed pages of the open one out, the others' pool
    holds all. `ahead` are relations and indices that a transaction of the bank has flushed when it
    first writes its status.
    """
    change = "UPDATE account SET balance = account.balance + 10.0 WHERE account.aid = 7"
    look = "SELECT sum(account.balance) AS found FROM account"
    with Backend.of(BUILD, f"-B {POOL_1990}") as backend:
        load_bank(backend, _SMALL)

        def row(when: str, balance: float, own: Backend = backend) -> Row:
            digest = hashlib.sha256(own.file("account").read_bytes()).hexdigest()
            versions = own.versions("account")
            return {"when": when, "balance": balance, "versions": versions, "bytes": digest}

        yield row("before", _balance(backend, look))
        for when, told in {"forced": "", "stable": " -S"}.items():
            with backend.copied(f"-B 1024{told}") as own:
                own.killed(["BEGIN", change, "END"], "account", _SMALL.accounts)
                found = row(when, _balance(own, look), own)
                [work] = transactions(1, 1, _SMALL)
                yield found | {"ahead": ahead(own.requests(work, seeks=False))}
        seen = backend.killed(["BEGIN", change, look], "account", _SMALL.accounts)
        yield row("open", sum(float(balance) for _, balance, _ in seen))
        yield row("after", _balance(backend, look))


def _balance(backend: Backend, look: str) -> float:
    return float(backend.run([look])[0][0]["found"])


def ahead(requests: pd.DataFrame) -> int:
    """How many relations and indices are flushed for good before a status is first written."""
    status = requests[(requests["file"] == "pg_log") & (requests["kind"] == "writes")]
    flushes = requests[requests["kind"] == "flushes"].drop_duplicates("file", keep="last")
    before = flushes[flushes.index < status.index.min()]
    return int(before["file"].map(kind).isin(["relation", "index"]).sum())


# The catalogs that a first transaction reads, and a field by which each is looked up.
LOOKED_UP = {
    "pg_am": "oid",
    "pg_amop": "amopid",
    "pg_amproc": "amid",
    "pg_attribute": "attrelid",
    "pg_class": "oid",
    "pg_index": "indexrelid",
    "pg_operator": "oid",
    "pg_proc": "oid",
    "pg_type": "oid",
}


@experiment(
    units={
        "index_pages": "pages",
        "catalog_pages": "pages",
        "catalog_pages_without": "pages",
        "query_pages": "pages",
    }
)
def postgres95_own_index(bed: Testbed) -> Iterator[Row]:
    """Pages that a first transaction reads of a catalog, and of a B-tree that one defined on it.

    Without it as well. `query_pages` are the B-tree's that a query of one's own on its field reads.
    Once a catalog has an index, its look-ups are made by one (SearchSysCache), by a routine that
    only some look-ups have: a backend without one ends, and its transaction doesn't run.
    """
    [work] = transactions(1, 1, _SMALL)
    with Backend.of(BUILD, f"-B {POOL_ENLARGED}") as loaded:
        load_bank(loaded, _SMALL)
        loaded.run([loaded.release.analyze])
        without = _reads(loaded, work)
        for catalog, field in LOOKED_UP.items():
            row = {
                "catalog": catalog,
                "field": field,
                "catalog_pages_without": int(without.get(catalog, 0)),
            }
            query = f"SELECT {catalog}.oid FROM {catalog} WHERE {catalog}.{field} = '1'::oid"
            with loaded.copied() as own:
                own.run([f"CREATE INDEX {BTREE} ON {catalog} USING btree ({field} oid_ops)"])
                try:
                    reads = _reads(own, work)
                except ServerError:
                    yield row | {"runs": False}
                    continue
                yield row | {
                    "runs": True,
                    "index_pages": int(reads.get(BTREE, 0)),
                    "catalog_pages": int(reads.get(catalog, 0)),
                    "query_pages": int(_reads(own, [query]).get(BTREE, 0)),
                }


def _reads(loaded: Backend, work: list[str]) -> "pd.Series[int]":
    """Pages read by file, from an empty pool, on a copy."""
    with loaded.copied() as own:
        return own.pages(work).groupby("file")["reads"].sum()


# the executor's routines that scan what a query is about
_OF_RELATIONS = ("ExecBeginScan", "ExecOpenScanR", "ExecSort", "ExecMaterial")
_CALLED = {"planned": "planner", "looked_up": "SearchSysCache", "scans": "heap_beginscan"}


@experiment(units={"planned": "calls", "looked_up": "calls", "scans": "calls"})
def postgres95_planning(bed: Testbed) -> Iterator[Row]:
    """Calls of the planner, of look-ups in catalogs, and of sequential scans of catalogs.

    For each query of a first transaction.
    """
    yield from planning(BUILD)


def planning(build: str) -> Iterator[Row]:
    """The rows of a build."""
    [work] = transactions(1, 1, _SMALL)
    with Backend.of(build) as backend:
        load_bank(backend, _SMALL)
        found = backend.instructions(work, callers=1)
    names = found["function"].str.split("'")
    found["routine"], executing = names.str[0], names.str[1].isin(_OF_RELATIONS)
    kept = found[~(executing & (found["routine"] == "heap_beginscan"))]
    calls = kept.pivot_table("calls", "statement", "routine", "sum", 0)
    for place in range(1, len(_COMMANDS) - 1):
        yield {
            "command": _COMMANDS[place],
            **{name: int(calls.at[place, routine]) for name, routine in _CALLED.items()},
        }


@experiment(units={"reads": "pages", "scans": "calls"})
def postgres95_unindexed(bed: Testbed) -> Iterator[Row]:
    """Pages that a first transaction reads where catalogs are looked up by scans alone.

    By command and file, from an empty pool of sixteen pages. `scans` are all that the command, a
    query, makes of catalogs.
    """
    scans = {row["command"]: {"scans": row["scans"]} for row in planning(UNINDEXED)}
    for row in ladder(1, relations(bed), UNINDEXED, [ALONE]):
        told = {name: row[name] for name in ("command", "file", "kind", "reads")}
        yield told | scans.get(row["command"], {})


SEQUENTIAL, BTREE, HASH = "sequential", "btree", "hash"
# Relations of the catalogs whose first attribute is fetched.
FETCHES = 10


@experiment(units={"index_pages": "pages", "heap_pages": "pages", "found": "tuples"})
def postgres95_lookup(bed: Testbed) -> Iterator[Row]:
    """Pages read to fetch an attribute's entry by its relation, from a copy of pg_attribute.

    The copy has no index, a B-tree or a hash index on attrelid, and each fetch is the first of its
    session, whose pool is empty. `relation` is an identifier.
    """
    with Backend.of(BUILD) as backend:
        backend.run(
            [
                "SELECT attrelid, attnum, attname INTO TABLE attributes FROM pg_attribute",
                f"CREATE INDEX {BTREE} ON attributes USING btree (attrelid oid_ops)",
                backend.release.analyze,
            ]
        )
        rows = backend.run(["SELECT DISTINCT attrelid FROM attributes"])[0]
        looked_up = sorted({int(row["attrelid"]) for row in rows})[:FETCHES]
        for access in (SEQUENTIAL, BTREE, HASH):
            with backend.copied() as own:
                if access != BTREE:
                    own.run([f"DROP INDEX {BTREE}"])
                if access == HASH:
                    index = f"CREATE INDEX {HASH} ON attributes USING hash (attrelid oid_ops)"
                    own.run([index, own.release.analyze])
                for relation in looked_up:
                    fetch = (
                        "SELECT attributes.attname FROM attributes WHERE attributes.attrelid ="
                        f" '{relation}'::oid AND attributes.attnum = 1"
                    )
                    read = own.pages([fetch]).set_index("file")["reads"]
                    yield {
                        "access": access,
                        "relation": relation,
                        "plan": own.plan(fetch),
                        "index_pages": int(read.get(access, 0)),
                        "heap_pages": int(read.get("attributes", 0)),
                        "found": len(own.run([fetch])[0]),
                    }
