"""What is measured: claims on each release, counts on each release, throughput of one builder's."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from pgrerun import replay
from pgrerun.chapter import Chapter, experiment
from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters, pgbench, plans, sizes, wal
from pgrerun.lab.relations.pgbench import Index, Pgbench
from pgrerun.lab.relations.wisconsin import Wisconsin
from pgrerun.lab.server import Cluster, bundled, fetched, releases
from pgrerun.progress import track
from pgrerun.record import claims
from pgrerun.record.statistics import ENOUGH
from pgrerun.record.verdicts import Verdict

SQL = statements.beside(__file__)
WORDS = list(map(str, Verdict))
# Chapters whose claims are judged side by side: what is counted doesn't mind, and old releases,
# which hand in their counts late, mostly wait.
AT_ONCE = 4


# ---- the releases that are compared


def number(release: str) -> int:
    """The release's place in time: 90300 for "9.3"."""
    return releases.number(tuple(map(int, release.split("."))))


def here() -> dict[str, str]:
    """The releases on this machine, oldest first, and what `programs` takes for each.

    CannotMeasure if none was fetched: the bundled one alone has nothing to be compared with.
    """
    there = {one.release: one.release for one in fetched.here()}
    if not there:
        raise CannotMeasure(
            "releases side by side",
            "it needs older releases of PostgreSQL beside the bundled one, and none was fetched:"
            " `pgrerun releases fetch` brings them",
        )
    newest = releases.named(bundled().number)
    there.setdefault(newest, "")
    return {name: there[name] for name in sorted(there, key=number)}


def compared(chapter: Chapter) -> dict[str, str]:
    """As many of them as the parameter says, evenly from the oldest to the newest."""
    there = here()
    names = list(there)
    wanted = min(chapter.parameters.releases, len(names))
    places = np.linspace(0, len(names) - 1, wanted).round().astype(int)
    return {names[place]: there[names[place]] for place in places}


def cluster(chapter: Chapter, programs: str) -> Cluster:
    """A throwaway cluster of a release, where nobody waits for the disk when he commits."""
    return chapter.beside(fetched.chosen(programs), synchronous_commit="off")


# ---- claims


@cache
def _asked() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "claims.toml").read_text(encoding="utf-8"))


def judged(thorough: bool = True) -> dict[str, str]:
    """The claims that are judged on each release, in the ledger's order, and their chapters."""
    kinds = ("quick", "thorough") if thorough else ("quick",)
    wanted = {claim for one in _asked().values() for kind in kinds for claim in one.get(kind, [])}
    return {claim.id: claim.chapter for claim in claims.ledger().values() if claim.id in wanted}


@experiment()
def lives(chapter: Chapter) -> None:
    """Judge claims of all chapters on each release, by the chapters' own experiments.

    Observation per claim and release: the word's place in `WORDS`, the word itself in the flags.
    """
    asked = judged(bool(chapter.parameters.thorough))
    order = {claim: place for place, claim in enumerate(judged())}
    done = chapter.run.finished("lives")
    todo = {
        release: [claim for claim in asked if (order[claim], release) not in done]
        for release in compared(chapter)
    }
    todo = {release: wanted for release, wanted in todo.items() if wanted}
    many = sum(map(len, todo.values()))
    found = replay.answers(
        {release: _request(here()[release], wanted) for release, wanted in todo.items()}, AT_ONCE
    )
    for _ in track(many, "claims on each release"):
        answer = next(found, None)
        if answer is not None:
            _keep(chapter, order, *answer)


def _request(programs: str, wanted: list[str]) -> dict[str, Any]:
    """What `replay` is asked for: claims by chapter, in the order and with the parameters of
    claims.toml.
    """
    chapters = {
        name: {
            "parameters": given["parameters"],
            "claims": [claim for claim in wanted if judged()[claim] == name],
        }
        for name, given in _asked().items()
    }
    asked = {name: one for name, one in chapters.items() if one["claims"]}
    return {"release": programs, "pairs": ENOUGH, "chapters": asked}


def _keep(chapter: Chapter, order: dict[str, int], release: str, answer: dict[str, Any]) -> None:
    if "failed" in answer:
        chapter.run.notes.append(f"{answer['chapter']} on {release}: {answer['failed']}")
        return
    verdict = answer["verdict"]
    kept = ("claim", "verdict", "note", "reason", "capability")
    chapter.run.observe(
        "lives",
        release,
        order[verdict["claim"]],
        {"word": WORDS.index(verdict["verdict"]), "seconds": answer["seconds"]},
        units={"word": "place among the words", "seconds": "s"},
        seed=chapter.parameters.seed,
        position=0,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        flags={name: verdict[name] for name in kept},
    )


# ---- counts


@dataclass(frozen=True)
class Count:
    """Something that is counted on each release.

    what     the metric's name
    unit     of the number
    count    counts it on a connection, in relations of so many tuples; None where the release has
             nothing of the kind
    since    the release whose notes tell of a change, "" if none that we know does
    claim    the ledger's claim about that
    shows    whether a number is one from after that change; None where no number tells by itself
    """

    what: str
    unit: str
    count: Callable[[psycopg.Connection, int], float | None]
    since: str
    claim: str
    shows: Callable[[float], bool] | None


def updated(server: Cluster, tuples: int, seed: int) -> dict[str, float]:
    """Pages that a primary key gains, and WAL, when no update is heap-only and nobody vacuums."""
    with server.connect() as connection:
        SQL.run(connection, "counts.updated", tuples=tuples)
        before = sizes.pages(connection, "updated_pkey")
        times = tuples * 3 // 2
        variables = {"tuples": tuples}
        with wal.written(connection) as written:
            pgbench.run(
                server,
                SQL.script("updated"),
                transactions=times,
                variables=variables,
                seed=seed,
                protocol="prepared",
            )
        after = sizes.pages(connection, "updated_pkey")
    return {GAINED: after - before, LOG: written.bytes / times}


KEYS = "{" + ",".join(map(str, range(1, 201))) + "}"  # of a list that is looked up
GAINED, LOG = "pages that the primary key gains", "WAL per update"


def hot_share(connection: psycopg.Connection, tuples: int) -> float | None:
    """Share of heap-only updates of a column that only a BRIN index is on."""
    if not releases.writes(connection.info.server_version, "access method brin"):
        return None
    SQL.run(connection, "counts.summarized")
    found = counters.counts(connection, "summarized")
    return (found["hot_updated"] or 0) / (found["updated"] or 1)


def duplicates(connection: psycopg.Connection, tuples: int) -> float:
    """Bytes that an entry of an index with twenty different keys takes."""
    SQL.run(connection, "counts.duplicates", tuples=tuples)
    return sizes.pages(connection, "duplicates_kind") * 8192 / tuples


def estimate(connection: psycopg.Connection, tuples: int) -> float:
    """Actual rows over estimated ones, of a condition on two columns that say the same."""
    SQL.run(connection, "counts.correlated", tuples=tuples)
    if releases.writes(connection.info.server_version, "CREATE STATISTICS"):
        SQL.run(connection, "counts.with_statistics")
    connection.execute("ANALYZE correlated")
    plan = plans.explain(connection, SQL.text("counts.by_correlated").rstrip(";\n"), execute=True)
    return (plan.rows_actual or 0) / plan.rows_estimated


def planned(
    connection: psycopg.Connection, statement: str, settings: str = "", execute: bool = False
) -> plans.Plan:
    """The plan of a statement of sql/counts.sql under the settings of another."""
    with connection.transaction(force_rollback=True):
        if settings:
            SQL.run(connection, f"counts.{settings}")
        values = {"keys": KEYS} if statement == "listed" else {}
        text = SQL.text(f"counts.{statement}", **values).rstrip(";\n")
        return plans.explain(connection, text, execute=execute)


def spilled(connection: psycopg.Connection, tuples: int) -> float:
    """Pages that a hash aggregate writes which is larger than work_mem; 0 if there is none."""
    plan = planned(connection, "grouped", "little_memory", execute=True)
    hashed = [node for node in plan.find("Aggregate") if node.properties["Strategy"] == "Hashed"]
    return sum(node.properties.get("Temp Written Blocks", 0) for node in hashed)


def nodes(
    statement: str, kind: str, settings: str, connection: psycopg.Connection, tuples: int
) -> float:
    """Nodes of a kind in a statement's plan."""
    return len(planned(connection, statement, settings).find(kind))


def accesses(
    statement: str, settings: str, connection: psycopg.Connection, tuples: int
) -> float | None:
    """Accesses to pages of a statement."""
    return planned(connection, statement, settings, execute=True).page_accesses


def fast_path(connection: psycopg.Connection, tuples: int) -> float:
    """Locks that a transaction over forty tables holds on the fast path."""
    SQL.run(connection, "counts.locked")
    with connection.transaction():
        [[held]] = SQL.run(connection, "counts.lock").fetchall()
    return float(held)


COUNTS = (
    Count(GAINED, "pages", lambda c, n: None, "14", "since-001", lambda n: n == 0),
    Count(LOG, "bytes", lambda c, n: None, "9.4", "", None),
    Count(
        "parallel nodes",
        "nodes",
        partial(nodes, "summed", "Gather", "parallel"),
        "9.6",
        "since-002",
        lambda n: n > 0,
    ),
    Count(
        "estimate of correlated columns",
        "actual / estimated",
        estimate,
        "10",
        "since-003",
        lambda n: n < 2,
    ),
    Count(
        "scans of a common table expression",
        "nodes",
        partial(nodes, "named", "CTE Scan", ""),
        "12",
        "since-004",
        lambda n: n == 0,
    ),
    Count(
        "pages that a hash aggregate writes", "pages", spilled, "13", "since-005", lambda n: n > 0
    ),
    Count(
        "partitions planned for groups",
        "partitions",
        lambda c, n: planned(c, "grouped", "tight_memory").properties.get("Planned Partitions"),
        "18",
        "",
        lambda n: n == 0,
    ),
    Count(
        "incremental sorts",
        "nodes",
        partial(nodes, "ordered", "Incremental Sort", ""),
        "13",
        "since-006",
        lambda n: n > 0,
    ),
    Count(
        "bytes of a duplicate in an index", "bytes", duplicates, "13", "since-007", lambda n: n < 12
    ),
    Count(
        "heap-only updates beside a BRIN index",
        "share",
        hot_share,
        "16",
        "since-008",
        lambda n: n == 1,
    ),
    Count(
        "page accesses for a list of keys",
        "accesses",
        partial(accesses, "listed", "by_index"),
        "17",
        "since-009",
        lambda n: n < 100,
    ),
    Count(
        "page accesses for a second column",
        "accesses",
        partial(accesses, "skipped", "by_index"),
        "18",
        "since-010",
        lambda n: n < 20,
    ),
    Count("locks on the fast path", "locks", fast_path, "18", "since-011", lambda n: n > 16),
)


@experiment(claims=[one.claim for one in COUNTS if one.claim])
def counts(chapter: Chapter) -> None:
    """Count on each release what the release notes say has changed, once: nothing of it varies."""
    variants = [
        Variant(release, partial(counted, chapter, programs))
        for release, programs in compared(chapter).items()
    ]
    units = {one.what: one.unit for one in COUNTS}
    chapter.compare("counts", variants, units, pairs=1, warmup=0)


def counted(chapter: Chapter, programs: str, block: Block) -> dict[str, float]:
    """All counts on one release."""
    server, tuples = cluster(chapter, programs), chapter.parameters.tuples
    found: dict[str, float | None] = dict(updated(server, tuples, block.seed))
    with server.connect() as connection:
        SQL.run(connection, "counts.numbers", tuples=tuples)
        for one in COUNTS:
            if one.what not in found:
                found[one.what] = one.count(connection, tuples)
    return {what: float(value) for what, value in found.items() if value is not None}


# ---- throughput

INDEXED, JOINS = "updates, with an index on the balance", "Wisconsin joins"
LOADS = {
    "lookups": "lookup",
    "TPC-B-like": "transaction",
    "updates, heap-only": "update",
    INDEXED: "update",
    JOINS: "joins",
}
LONGER = 100  # times as long as a transaction of the others takes one of the joins, about
JOINED = (
    *(Wisconsin("tenktup1", 10_000), Wisconsin("tenktup2", 10_000, order=2)),
    *(Wisconsin("bprime", 1_000), Wisconsin("onektup", 1_000, order=2)),
)
BALANCE = Index("accounts", "balance", "(abalance)")


def one_builder(chapter: Chapter) -> dict[str, str]:
    """Those of the compared releases that one builder compiled: the one of most of them."""
    builders = {one.release: one.builder for one in fetched.here()}
    chosen = [name for name in compared(chapter) if name in builders]
    many = [builders[name] for name in chosen]
    most = max(dict.fromkeys(many), key=many.count)
    names = [name for name in chosen if builders[name] == most]
    if len(names) < 2:
        raise CannotMeasure(
            "two releases of one builder",
            "times compare only between releases that one builder compiled, and there is only one:"
            " `pgrerun releases fetch` brings more",
        )
    return {name: here()[name] for name in names}


@experiment()
def throughput(chapter: Chapter) -> None:
    """Transactions per second on each release of one builder, one client, interleaved."""
    chosen = one_builder(chapter)
    servers = {name: cluster(chapter, programs) for name, programs in chosen.items()}
    plain, indexed = (
        Pgbench(accounts_per_branch=10_000),
        Pgbench(accounts_per_branch=10_000, prefix="indexed_"),
    )
    for server in servers.values():
        plain.load(server, fillfactor={"accounts": 90})
        indexed.load(server, fillfactor={"accounts": 90}, indexes=[BALANCE])
        for relation in JOINED:
            relation.load(server)
    variants = [
        Variant(name, partial(_transactions, chapter, server, (plain, indexed)))
        for name, server in servers.items()
    ]
    units = dict.fromkeys(LOADS, "transactions/s")
    chapter.compare("throughput", variants, units, positive=units)


def _transactions(
    chapter: Chapter, server: Cluster, relations: tuple[Pgbench, Pgbench], block: Block
) -> dict[str, float]:
    found, many = {}, chapter.parameters.transactions
    for what, script in LOADS.items():
        bank = relations[what == INDEXED]
        done = pgbench.run(
            server,
            SQL.script(script).replace("pgbench_", bank.prefix),
            transactions=max(5, many // LONGER) if what == JOINS else many,
            variables=bank.variables,
            protocol="prepared",
            seed=block.seed,
        )
        found[what] = done.tps
    return found
