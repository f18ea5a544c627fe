"""pgbench at full speed beside a paced load, and what a row that all update is to either."""

from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments import load
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import server_log

EXTREME, PACED = "pgbench at full speed", "an application, paced"
OWN_ROW, HOT_ROW = "a row for each client", "one row for all"
CHANGES = {OWN_ROW: 1, HOT_ROW: 0}  # a variable of sql/transaction.pgbench
PACE = 0.1  # share of the full speed at which the application asks
# The server logs a wait for a lock once it takes longer than this, and how long it took in the end.
SETTINGS = {"log_lock_waits": "on", "deadlock_timeout": "1ms"}


def named(kind: str, change: str) -> str:
    """The variant's name in the run record."""
    return f"{kind}: {change}"


def changed(chapter: Chapter, kind: str, change: str) -> load.Load:
    """One of the two loads under one of `CHANGES`; pgbench's relations are made if need be.

    The application looks a few accounts up before each transaction.
    """
    clients = chapter.parameters.clients
    variables = load.bank(chapter.server, clients).variables | {"own_branch": CHANGES[change]}
    script = load.SQL.script("transaction")
    if kind == PACED:
        script = load.SQL.script("look_up") + script
    return load.Load(chapter.server, script, "", clients, {"variables": variables})


@experiment(claims=["haas-077"])
def changes(chapter: Chapter) -> None:
    """Both changes under both loads, in one interleaved comparison.

    The paced load runs twice as long, for it makes a tenth of the transactions.
    """
    cluster, given = chapter.cluster(), chapter.parameters
    speed = changed(chapter, EXTREME, OWN_ROW).throughput(given.seed)
    seconds, least = 3 * given.milliseconds / 1000, 4 * given.clients
    pace = max(PACE * speed, 20.0)  # a second
    many, paced = max(round(speed * seconds), least), max(round(pace * 2 * seconds), least)
    how = {EXTREME: (many, {}), PACED: (paced, {"rate": pace})}
    variants = [
        Variant(named(kind, change), partial(_changed, changed(chapter, kind, change), *how[kind]))
        for kind in how
        for change in CHANGES
    ]
    units = {"latency": "ms", "stalls": "per thousand transactions"}
    with cluster.reloaded(**SETTINGS):
        chapter.compare("loads", variants, units, warmup=0, positive=["latency"])


def _changed(
    running: load.Load, transactions: int, options: dict[str, float], block: Block
) -> dict[str, float]:
    before = len(running.server.log())
    done = running.run(transactions, block.seed, **options)
    stalls = server_log.lock_waits(running.server.log()[before:])
    return {"latency": done.latency_ms, "stalls": 1000 * len(stalls) / done.transactions}
