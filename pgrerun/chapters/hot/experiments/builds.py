"""The thread's load on the servers that the thread compares, and on what stands in for them."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FILLFACTOR,
    FULL,
    HOT,
    INDEXES,
    REDUCED,
    SQL,
    UNPRUNED,
    run_pgbench,
    updates,
)
from pgrerun.lab.instruments import counters, pgbench, sessions, sizes
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, Programs, builds, fetched, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, side_by_side
from pgrerun.record import printed

BEFORE, WITH = "before-hot", "hot"
BESIDE = 20  # connections, not the clients': up to 11 the reserve and ten WAL senders count

AS_SMALL = ("before-hot-32", "hot-32")  # as the thread's, with pointers of 32 bits
OF_TODAY = {"stand-in": UNPRUNED, "today": HOT}


@experiment(
    units={
        "before": "pages",
        "after": "pages",
        "updated": "tuples",
        "hot_updated": "tuples",
        "vacuumed": "yes or no",
        "tps": "transactions/s",
    },
    needs=["restart"],
)
def on_the_threads_servers(bed: Testbed, accounts: int = 100_000) -> Iterator[Row]:
    """Run the thread's reduced script on PostgreSQL's commit before HOT and on the commit with it.

    With the thread's pool, fillfactor and autovacuum, as many updates per account and as many
    clients as branches, each of which has so many `accounts`: at a scale of 90 it is the thread's
    run; a smaller one doesn't wait for flushes. Then the same on today's server, with HOT and as it
    stands in for the one before. CannotMeasure unless both commits are registered; those for
    32 bits run as well where they are.
    """
    found = {name: fetched.build(name) for name in (BEFORE, WITH)}
    every = builds.complete([[name] for name in (*found, *AS_SMALL)], fetched.build)
    found |= {name: fetched.build(name) for name in every}
    for name, programs in found.items():
        yield from _run(bed, name, programs, HOT, accounts)
    for name, variant in OF_TODAY.items():
        yield from _run(bed, name, bed.programs, variant, accounts)


def least_pool(connections: int) -> int:
    """The fewest buffers that servers of then start with: two for each connection."""
    return 2 * (connections + BESIDE)


def both_commits(settings: Mapping[str, str | int]) -> AbstractContextManager[dict[str, Cluster]]:
    """Servers of the commit before HOT and of the one with it, by name, until the block ends.

    CannotMeasure, and none is started, unless both are registered.
    """
    found = {name: fetched.build(name) for name in (BEFORE, WITH)}
    return side_by_side((name, Cluster(one, settings)) for name, one in found.items())


MANY = 10  # clients in Merlin's runs of more than one
WHOLE = 6  # branches from which on all of the message's transactions are run: half a minute each


UNITS = {
    "tps": "transactions/s",
    "hot_share": "share",
    "transactions": "transactions of the run",
    "part": "of the run, from 0",
}
PARTS = {1: 5, MANY: 2}  # by clients; each takes five seconds and more


@experiment(units=UNITS, needs=["restart"])
def merlins_servers(bed: Testbed, accounts: int = 100_000) -> Iterator[Row]:
    """Merlin's comparisons with an index on abalance, on the commit before HOT and the one with it.

    pgbench's whole transaction without fsync at the stock fillfactor, one client and ten. The
    message doesn't tell the scale: here it is pgbench's advice, as many branches as the most
    clients, of so many `accounts`, and the message's transactions from a thread_scale of WHOLE on,
    below it their share. Each run starts from relations loaded anew, and both servers take turns by
    PARTS of it: so there are as many pairs as decide whether one within a twentieth is no
    difference, each of the same stage of a run, and what drifts on the machine falls on both.
    CannotMeasure unless both commits are registered.
    """
    ours = Pgbench(MANY, accounts, prefix="")
    with both_commits({"fsync": "off", "max_connections": MANY + BESIDE}) as servers:

        def load(server: str) -> None:
            ours.load(servers[server])
            with servers[server].connect() as connection:
                SQL.run(connection, "servers.index_on_abalance")

        for clients, parts in PARTS.items():
            turns = _Turns(servers, load, ours, clients, _as_many(bed), parts)
            yield from bed.compare(
                turns.measure,
                {"server": list(servers)},
                pairs=parts * math.ceil(5 * bed.parameters.pairs / 4 / parts),
                warmup=0,
                prepare=turns.prepare,
                fixed=True,
                index="on abalance",
                clients=clients,
            )


@dataclass
class _Turns:
    """Runs of so many transactions in all on two servers, which take turns by parts of a run."""

    servers: Mapping[str, Cluster]
    load: Callable[[str], None]
    ours: Pgbench
    clients: int
    transactions: float
    parts: int = 1
    done: dict[str, tuple[int, int]] = field(default_factory=dict)  # run, parts of it, by server

    def prepare(self, block: Block, server: str) -> None:
        """Load for a new run, or where another run was broken off, and go as far as the part."""
        run, part = divmod(block.index, self.parts)
        if part and self.done.get(server) == (run, part):
            return
        self.load(server)
        for _ in range(part):
            self._part(server, block.seed)

    def measure(self, block: Block, server: str) -> dict[str, float]:
        run, part = divmod(block.index, self.parts)
        found = self._part(server, block.seed)
        self.done[server] = run, part + 1
        return found | {"transactions": self.parts * found["transactions"], "part": part}

    def _part(self, server: str, seed: int) -> dict[str, float]:
        return _whole(
            self.servers[server], self.ours, self.clients, seed, self.transactions / self.parts
        )


def _as_many(bed: Testbed) -> float:
    """The message's transactions, by all clients, or their share below a thread_scale of WHOLE."""
    alone = printed.cell("hot_abalance", "indexed_1_head", "transactions_per_client")
    return alone * min(1, bed.parameters.thread_scale / WHOLE)


def _whole(
    server: Cluster, ours: Pgbench, clients: int, seed: int, transactions: float
) -> dict[str, float]:
    """Throughput of pgbench's whole transaction, and the share of HOT updates of accounts."""
    each = math.ceil(transactions / clients)  # three clients would lack one of a hundred thousand
    done = pgbench.run(
        server,
        SQL.script(FULL),
        clients=clients,
        transactions=each,
        variables=ours.variables,
        seed=seed,
    )
    with server.connect() as connection:
        counted = counters.counts(connection, ACCOUNTS[0])
    share = counted["hot_updated"] / counted["updated"]
    return {"tps": done.tps, "hot_share": share, "transactions": each * clients}


# ---- Merlin's wide variety

SCALES = (1, 3, 10)
PARTS_VACUUMED = {1: 3, 3: 3, MANY: 2}  # by clients, as PARTS; six pairs are whole runs of each


@experiment(units=UNITS, needs=["restart"])
def merlins_setups(bed: Testbed) -> Iterator[Row]:
    """pgbench's whole transaction in several set-ups, on the commit before HOT and the one with it.

    Without fsync, at the stock fillfactor and without an index on abalance, as Merlin ran it. He
    prints neither scale nor autovacuum: here are three scales, each with his ten clients without
    autovacuum, and with as many clients as branches, as pgbench's documentation advises, under
    autovacuum; all with as many transactions as in merlins_servers. Autovacuum, where it is on,
    comes every second, as a run is shorter than the minute that it waits by default: then a run is
    much alike from end to end, and both servers take turns by parts of it. Without it a run leaves
    more behind the longer it is, and is measured whole. Each starts from relations loaded anew.
    CannotMeasure unless both commits are registered.
    """
    settings = {"fsync": "off", "max_connections": MANY + BESIDE, "autovacuum_naptime": "1s"}
    with both_commits(settings) as servers:
        for autovacuum in ("on", "off"):
            for one in servers.values():
                one.restart({"autovacuum": autovacuum})
            for scale in SCALES:
                ours = Pgbench(scale, prefix="")
                clients = scale if autovacuum == "on" else MANY
                parts = PARTS_VACUUMED[clients] if autovacuum == "on" else 1
                turns = _Turns(
                    servers, partial(_loaded, servers, ours), ours, clients, _as_many(bed), parts
                )
                yield from bed.compare(
                    turns.measure,
                    {"server": list(servers)},
                    pairs=bed.timed_pairs(parts * math.ceil(bed.fewest_pairs / parts)),
                    warmup=0,
                    prepare=turns.prepare,
                    fixed=True,
                    scale=scale,
                    clients=clients,
                    autovacuum=autovacuum,
                )


def _loaded(servers: Mapping[str, Cluster], ours: Pgbench, server: str) -> None:
    if servers[server].settings["autovacuum"] == "on":
        # ends a visit to what the run before has left; to drop that waits for minutes
        servers[server].restart()
    ours.load(servers[server], autovacuum=True)


def _run(bed: Testbed, name: str, programs: Programs, variant: str, accounts: int) -> Iterator[Row]:
    """Rows of accounts and its index on one server, which ends afterwards, as its data is large."""
    scale = bed.parameters.thread_scale
    ours = Pgbench(scale, accounts, prefix="")
    then = printed.table("hot_setup")["value"]
    settings = {  # the thread's, as far as it tells them
        "synchronous_commit": "on" if scale >= then["scale"] else "off",
        "shared_buffers": f"{then['shared_buffers']:g}MB",
        "autovacuum": "on",
        "autovacuum_naptime": f"{then['autovacuum_naptime']:g}s",
        "autovacuum_vacuum_scale_factor": f"{then['autovacuum_scale_factor']:g}",
        "max_connections": scale + BESIDE,
    }
    with Cluster(programs, settings) as server:
        ours.load(server, fillfactor={"accounts": FILLFACTOR}, autovacuum=True)
        with server.connect() as connection, sessions.snapshot(server, variant == UNPRUNED):
            if ddl := INDEXES[variant]:
                SQL.run(connection, ddl)
            before = sizes.pages_of(connection, ACCOUNTS)
            done = run_pgbench(
                server,
                ours,
                REDUCED,
                updates(ours),
                seed=bed.parameters.seed,
                clients=ours.branches,
            )
            after = sizes.pages_of(connection, ACCOUNTS)
            counted = counters.counts_each(connection, *ACCOUNTS)
            vacuumed = value(connection, bool, SQL.text("servers.vacuumed"))
        for relation in ACCOUNTS:
            yield {
                "server": name,
                "relation": relation,
                "before": before[relation],
                "after": after[relation],
                "updated": counted[relation]["updated"],
                "hot_updated": counted[relation]["hot_updated"],
                "vacuumed": vacuumed,
                "tps": done.tps,
            }
