"""pgbench at full speed beside a paced load, and what a row that all update is to either."""

from collections.abc import Iterator

from pgrerun.chapters.measuring import loads
from pgrerun.lab.instruments import server_log
from pgrerun.lab.testbed import ENOUGH_PAIRS, Block, Row, Testbed, experiment

EXTREME, PACED = "pgbench at full speed", "an application, paced"
OWN_ROW, HOT_ROW = "a row for each client", "one row for all"
ROWS = {OWN_ROW: 1, HOT_ROW: 0}  # a variable of sql/transaction.pgbench
PACE = 0.1  # share of the full speed at which the application asks
# The server logs a wait for a lock once it takes longer than this, and how long it took in the end.
SETTINGS = {"log_lock_waits": "on", "deadlock_timeout": "1ms"}


def changed(bed: Testbed, load: str, row: str) -> loads.Load:
    """One of the two loads under one of `ROWS`; pgbench's relations are made if need be.

    The application looks a few accounts up before each transaction.
    """
    server, clients = bed.cluster(), bed.parameters.clients
    variables = loads.bank(server, clients).variables | {"own_branch": ROWS[row]}
    script = loads.SQL.script("transaction")
    if load == PACED:
        script = loads.SQL.script("look_up") + script
    return loads.Load(server, script, "", clients, {"variables": variables})


@experiment(
    units={"latency": "ms", "stalls": "per thousand transactions"},
    needs=["restart"],
)
def changes(bed: Testbed) -> Iterator[Row]:
    """Both changes under both loads, in one interleaved comparison."""
    given = bed.parameters
    speed = changed(bed, EXTREME, OWN_ROW).throughput(given.seed)
    seconds, least = given.milliseconds / 1000, 4 * given.clients
    pace = max(PACE * speed, 20.0)  # a second
    many = {EXTREME: round(speed * seconds), PACED: round(pace * seconds)}
    options = {EXTREME: {}, PACED: {"more": ["-R", pace]}}

    def measure(block: Block, load: str, row: str) -> dict[str, float]:
        running = changed(bed, load, row)
        before = len(running.server.log())
        done = running.run(max(many[load], least), block.seed, **options[load])
        stalls = server_log.lock_waits(running.server.log()[before:])
        return {"latency": done.latency_ms, "stalls": 1000 * len(stalls) / done.transactions}

    with bed.cluster().reloaded(**SETTINGS):
        yield from bed.compare(
            measure,
            {"load": [EXTREME, PACED], "row": [*ROWS]},
            pairs=ENOUGH_PAIRS,
            warmup=0,
            positive=["latency"],
            milliseconds=given.milliseconds,
        )
