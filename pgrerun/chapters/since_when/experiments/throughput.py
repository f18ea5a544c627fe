"""Is a newer release faster? Throughput of one client on releases of one builder."""

from collections.abc import Iterator

from pgrerun.chapters.since_when.experiments.counts import SQL
from pgrerun.chapters.since_when.here import one_builder, version
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.relations.pgbench import Index, Pgbench
from pgrerun.lab.relations.wisconsin import Wisconsin
from pgrerun.lab.server import Cluster, fetched
from pgrerun.lab.testbed import ENOUGH_PAIRS, Block, Row, Testbed, experiment, side_by_side

INDEXED, JOINS = "updates of an indexed column", "Wisconsin joins"
LOADS = {
    "lookups": "lookup",
    "TPC-B-like": "transaction",
    "updates, heap-only": "update",
    INDEXED: "update",
    JOINS: "joins",
}
READING = ("lookups", JOINS)
JOINED = (
    *(Wisconsin("tenktup1", 10_000), Wisconsin("tenktup2", 10_000, order=2)),
    *(Wisconsin("bprime", 1_000), Wisconsin("onektup", 1_000, order=2)),
)
PLAIN = Pgbench(accounts_per_branch=10_000)
ON_BALANCE = Pgbench(accounts_per_branch=10_000, prefix="indexed_")
BALANCE = Index("accounts", "balance", "(abalance)")
CHECKED = 180000  # the release from which on pages have checksums unless they are refused


def fill(server: Cluster, what: str) -> None:
    """Load anew what a load reads or writes."""
    if what == JOINS:
        for relation in JOINED:
            relation.load(server)
    elif what == INDEXED:
        ON_BALANCE.load(server, fillfactor={"accounts": 90}, indexes=[BALANCE])
    else:
        PLAIN.load(server, fillfactor={"accounts": 90})


@experiment(units={"tps": "transactions/s"})
def throughput(bed: Testbed) -> Iterator[Row]:
    """Transactions per second on releases of one builder, one client, interleaved.

    No release has checksums on its pages; the newest runs a second time with them, as it comes,
    under loads that write: what is read here never comes from the disk.
    What a load writes is loaded anew before each measurement. Of each load every release does as
    many transactions as the oldest needs for one measurement.
    """
    given = bed.parameters
    with side_by_side(_clusters(one_builder(bed))) as servers:
        first = next(iter(servers.values()))
        for server in servers.values():
            for what in READING:
                fill(server, what)
        many = {what: _lasting(first, what, given.milliseconds, given.seed) for what in LOADS}

        def prepare(block: Block, release: str, checksums: bool, load: str, **_: object) -> None:
            if load not in READING:
                fill(servers[release, checksums], load)

        for what in LOADS:
            yield from bed.compare(
                lambda block, release, checksums, load, **_: {
                    "tps": _run(servers[release, checksums], load, many[load], block.seed)
                },
                [
                    {
                        "release": name,
                        "version": version(name),
                        "checksums": checksums,
                        "load": what,
                    }
                    for name, checksums in servers
                    if not (checksums and what in READING)
                ],
                pairs=ENOUGH_PAIRS,
                warmup=0,
                positive=["tps"],
                prepare=prepare,
                fixed=True,
                milliseconds=given.milliseconds,
            )


def _clusters(specs: dict[str, str]) -> Iterator[tuple[tuple[str, bool], Cluster]]:
    for name, spec in specs.items():
        unchecked = ["--no-data-checksums"] if version(name) >= CHECKED else []
        settings = {"synchronous_commit": "off"}
        yield (name, False), Cluster(fetched.chosen(spec), settings, initdb=unchecked)
        if unchecked:
            yield (name, True), Cluster(fetched.chosen(spec), settings)


def _run(server: Cluster, what: str, transactions: int, seed: int) -> float:
    bank = ON_BALANCE if what == INDEXED else PLAIN
    return pgbench.run(
        server,
        SQL.script(LOADS[what]).replace("pgbench_", bank.prefix),
        transactions=transactions,
        variables=bank.variables,
        protocol="prepared",
        seed=seed,
    ).tps


def _lasting(server: Cluster, what: str, milliseconds: float, seed: int) -> int:
    """How many transactions of a load take so long and a little more, tried on a tenth of that."""
    fill(server, what)
    tried, seconds = 5, max(0.05, milliseconds / 10_000)
    tps = _run(server, what, tried, seed)
    while tried / tps < seconds:
        tried = max(2 * tried, round(tps * seconds))
        tps = _run(server, what, tried, seed)
    return max(5, round(1.1 * tps * milliseconds / 1000))
