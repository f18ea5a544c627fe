"""What a measurement depends on: pgbench beside a paced load, and throughput beside other axes."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments import load
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import server_log
from pgrerun.lab.server import Server

# ---- pgbench at full speed beside a paced load

EXTREME, PACED = "pgbench at full speed", "an application, paced"
PLAIN, HOT_ROW = "as it is", "one row for all"
PACE = 0.1  # share of the full speed at which the application asks


@dataclass(frozen=True)
class Change:
    """What differs from pgbench's transaction: variables of sql/transaction.pgbench, protocol."""

    own_branch: int = 1
    flush: int = 1
    protocol: str = "prepared"


CHANGES = {
    PLAIN: Change(),
    HOT_ROW: Change(own_branch=0),
    "no wait for a flush": Change(flush=0),
    "plans not kept": Change(protocol="simple"),
}


def named(kind: str, change: str) -> str:
    """The variant's name in the run record."""
    return f"{kind}: {change}"


def changed(chapter: Chapter, kind: str, change: str) -> load.Load:
    """One of the two loads under one of `CHANGES`; pgbench's relations are made if need be.

    The application looks a few accounts up before each transaction.
    """
    clients, how = chapter.parameters.clients, CHANGES[change]
    variables = load.bank(chapter.server, clients).variables
    variables |= {"own_branch": how.own_branch, "flush": how.flush}
    script = load.SQL.script("transaction")
    if kind == PACED:
        script = load.SQL.script("look_up") + script
    options = {"variables": variables, "protocol": how.protocol}
    return load.Load(chapter.server, script, "", clients, options)


@experiment(claims=["haas-069", "haas-077"])
def changes(chapter: Chapter) -> None:
    """Every change under both loads, in one interleaved comparison."""
    given = chapter.parameters
    speed, seconds = (
        changed(chapter, EXTREME, PLAIN).throughput(given.seed),
        given.milliseconds / 1000,
    )
    pace = max(PACE * speed, 20.0)  # a second
    least = 4 * given.clients
    many, paced = max(round(speed * seconds), least), max(round(pace * 2 * seconds), least)
    how = {EXTREME: (many, {}), PACED: (paced, {"rate": pace})}
    variants = [
        Variant(named(kind, change), partial(_changed, changed(chapter, kind, change), *how[kind]))
        for kind in how
        for change in CHANGES
    ]
    units = {"latency": "ms", "throughput": "transactions/s"}
    chapter.compare("loads", variants, units, warmup=0, positive=units)


def _changed(
    running: load.Load, transactions: int, options: dict[str, float], block: Block
) -> dict[str, float]:
    done = running.run(transactions, block.seed, **options)
    return {"latency": done.latency_ms, "throughput": load.rate(done)}


# ---- the same updates, one row a transaction or many, on several axes

ROWS = 30
MANY = 20  # rows of one transaction in the second variant
SINGLY, TOGETHER = "a row at a time", f"{MANY} rows at a time"
PER_TRANSACTION = {SINGLY: 1, TOGETHER: MANY}
# The server logs a wait for a lock once it takes longer than this, and how long it took in the end.
SETTINGS = {"log_lock_waits": "on", "deadlock_timeout": "1ms"}
AXES = {
    "throughput": "rows/s",
    "median latency": "ms",
    "99th percentile of latency": "ms",
    "lock stalls": "per thousand rows",
    "length of a stall": "ms",
}
POSITIVE = list(AXES)[:3]  # without a stall the others are zero


@experiment(claims=["haas-079"])
def axes(chapter: Chapter) -> None:
    """Both variants in turn, as many rows in each run."""
    cluster, given = chapter.cluster(), chapter.parameters
    load_stock(cluster)
    running = {name: updates(cluster, name, max(2, given.clients)) for name in PER_TRANSACTION}
    with cluster.reloaded(**SETTINGS):
        rows = running[SINGLY].lasting(given.milliseconds, given.seed)
        variants = [
            Variant(name, partial(_updated, running[name], rows, PER_TRANSACTION[name]))
            for name in running
        ]
        chapter.compare("axes", variants, AXES, warmup=0, positive=POSITIVE)


def load_stock(server: Server) -> None:
    """The rows to update, not analyzed: a plan that scans all of them locks them in any order."""
    load.create(server, "stock", "relations.stock", analyzed=False, rows=ROWS)


def updates(server: Server, variant: str, clients: int) -> load.Load:
    """The updates of stock in one of the variants; every transaction is logged."""
    variables = {"rows": ROWS, "together": PER_TRANSACTION[variant]}
    options = {"variables": variables, "log": True}
    return load.Load(server, load.SQL.script("update_stock"), "", clients, options)


def _updated(running: load.Load, rows: int, together: int, block: Block) -> dict[str, float]:
    before = len(running.server.log())
    done = running.run(max(rows // together, 10 * running.clients), block.seed)
    stalls = server_log.lock_waits(running.server.log()[before:])
    return {
        "throughput": load.rate(done) * together,
        "median latency": done.percentile(50),
        "99th percentile of latency": done.percentile(99),
        "lock stalls": 1000 * len(stalls) / (done.transactions * together),
        "length of a stall": float(np.mean(stalls)) if stalls else 0.0,
    }
