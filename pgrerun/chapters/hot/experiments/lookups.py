"""Lookups by key on the commit before HOT and on the one with it.

Beside a transaction that isn't over, which keeps every version; and after the thread's updates,
which autovacuum has cleared away as far as it came.
"""

from collections.abc import Iterator

from pgrerun.chapters.hot.experiments.builds import BESIDE, both_commits, least_pool
from pgrerun.chapters.hot.experiments.throughput import (
    POOL,
    VACUUMED,
    pool_of,
    small_pool_cluster,
)
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FILLFACTOR,
    REDUCED,
    SCALE_FACTOR,
    SQL,
    run_in_server,
    run_script,
    updates,
)
from pgrerun.lab.instruments import callgrind, counters, pages, single_user
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import seed_random, set_session, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, side_by_side

BY_INDEX = {"enable_seqscan": "off", "enable_bitmapscan": "off"}
LOOKS = (0, 60, 500)  # updates of one account, whose page is full after some sixty


@experiment(
    units={"chain": "versions", "executed": "instructions", "whole": "instructions"},
    needs=["restart"],
)
def beside_an_old_transaction(bed: Testbed) -> Iterator[Row]:
    """Update the only account over and over beside a transaction that isn't over, on both commits.

    Versions in the chain on the first page of accounts, and instructions of a lookup by primary
    key: to execute it, and with parsing and planning. A single-user backend counts them, beside
    which nobody can be, so the transaction is a prepared one. CannotMeasure without valgrind, and
    unless both commits are registered.
    """
    callgrind.require()
    ours = Pgbench(1, 1, prefix="")
    settings = [f"SET {name} = {setting}" for name, setting in BY_INDEX.items()]
    lookup = SQL.text("lookups.lookup").rstrip(";\n")
    with both_commits({"max_prepared_transactions": 1}) as servers:
        for name, server in servers.items():
            server.extension("pageinspect")
            ours.load(server)
            with server.connect() as connection:
                SQL.run(connection, "lookups.old_transaction")
            done = 0
            for number in LOOKS:
                with server.connect() as connection:
                    set_session(connection, BY_INDEX)
                    run_in_server(connection, ours, "update_first", number - done, 0)
                    chain = pages.longest_chain(pages.linked(connection, "accounts", 0))
                done = number
                with single_user.stopped(server):
                    found = callgrind.repeated(server, settings, lookup)
                [executed] = found.loc[found["function"] == "ExecutorRun", "inclusive"]
                yield {
                    "server": name,
                    "updates": number,
                    "chain": chain,
                    "executed": int(executed),
                    "whole": int(found["exclusive"].sum()),
                }


# Without the pauses that autovacuum makes since July 2007, after the thread
SETTINGS = VACUUMED | {
    "synchronous_commit": "off",
    "autovacuum_vacuum_scale_factor": f"{SCALE_FACTOR:g}",
    "autovacuum_vacuum_cost_delay": 0,
}


@experiment(
    units={
        "reads": "pages/lookup",
        "accesses": "page accesses/lookup",
        "vacuumed": "visits",
        **POOL,
    },
    needs=["restart"],
)
def lookups_after_updates(bed: Testbed, accounts: int = 20_000) -> Iterator[Row]:
    """Pages that a lookup of an account reads after the reduced script, on both commits.

    In a pool of the thread's share, after its updates per account by as many clients as branches,
    each of which has so many `accounts`; autovacuum comes every second meanwhile. Then as many
    lookups as there are accounts, drawn as pgbench draws, without autovacuum, whose own reads would
    be counted; `accesses` are reads and what the pool holds. CannotMeasure unless both commits are
    registered.
    """
    ours = Pgbench(bed.parameters.thread_scale, accounts, prefix="")
    connections = ours.branches + BESIDE
    with (
        both_commits({"fsync": "off", "max_connections": connections}) as both,
        side_by_side(
            (name, small_pool_cluster(one, ours, least_pool(connections), SETTINGS))
            for name, one in both.items()
        ) as servers,
    ):

        def prepare(block: Block, server: str) -> None:
            one = servers[server]
            one.restart({"autovacuum": "on"})
            ours.load(one, fillfactor={"accounts": FILLFACTOR}, autovacuum=True)
            run_script(one, ours, REDUCED, updates(ours), seed=block.seed, clients=ours.branches)
            one.restart({"autovacuum": "off"})

        def measure(block: Block, server: str) -> dict[str, float]:
            with servers[server].connect() as connection:
                vacuumed = value(connection, bool, SQL.text("servers.vacuumed"))
                set_session(connection, BY_INDEX)
                before = counters.counts(connection, *ACCOUNTS)
                seed_random(connection, block.seed)
                SQL.run(connection, "lookups.drawn_accounts", accounts=ours.accounts)
                after = counters.counts(connection, *ACCOUNTS)
            fetched, hit = (after[name] - before[name] for name in ("fetched", "hit"))
            each = {"reads": fetched - hit, "accesses": fetched}
            found = {name: pages_ / ours.accounts for name, pages_ in each.items()}
            return found | {"vacuumed": float(vacuumed)} | pool_of(servers[server])

        yield from bed.compare(
            measure,
            {"server": list(servers)},
            pairs=bed.timed_pairs(),
            warmup=0,
            prepare=prepare,
            fixed=True,
        )
