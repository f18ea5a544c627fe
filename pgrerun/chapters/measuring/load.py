"""The loads: pgbench's own relations and scripts, and a scan whose length is set to the tuple."""

import pandas as pd
import psycopg

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.instruments import pgbench
from pgrerun.parameters import MINUTES, PROFILES
from pgrerun.relations import loading
from pgrerun.server import Server

ACCOUNTS = 100_000  # of each branch, as pgbench has them
_TABLES = {
    "pgbench_branches": ("bid int NOT NULL, bbalance int, filler char(88)", "bid", "SELECT n, 0, NULL", 1),
    "pgbench_tellers": ("tid int NOT NULL, bid int, tbalance int, filler char(84)", "tid", "SELECT n, (n - 1) / 10 + 1, 0, NULL", 10),
    "pgbench_accounts": ("aid int NOT NULL, bid int, abalance int, filler char(84)", "aid", f"SELECT n, (n - 1) / {ACCOUNTS} + 1, 0, ''", ACCOUNTS),
}
_HISTORY = "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))"

SCAN = "SELECT count(*) FROM (SELECT FROM scanned LIMIT :tuples) AS few;\n"
TUPLES = 20_000  # that a scan reads if nothing is planted
_SCANNED = TUPLES * 3 // 2

READ, WRITE = "select-only", "tpcb-like"


def bank(server: Server, scale: int) -> None:
    """pgbench's relations at a scale, as `pgbench -i` makes them, vacuumed and frozen, in our schema; left as they are if they are there."""
    with loading.session(server) as connection:
        if _there(connection, scale):
            return
        with connection.transaction():
            for name, (columns, key, select, per_branch) in _TABLES.items():
                loading.replace(connection, name, f"CREATE TABLE {name} ({columns}) WITH (autovacuum_enabled = off)")
                connection.execute(f"INSERT INTO {name} {select} FROM generate_series(1, {scale * per_branch}) AS n")
                connection.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({key})")
            loading.replace(connection, "pgbench_history", f"{_HISTORY} WITH (autovacuum_enabled = off)")
        for name in (*_TABLES, "pgbench_history"):
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {name}")


def _there(connection: psycopg.Connection, scale: int) -> bool:
    return loading.is_ours(connection, "pgbench_history") and connection.execute("SELECT count(*) FROM pgbench_branches").fetchone()[0] == scale


def scanned(server: Server) -> None:
    """The relation of `SCAN`: narrow tuples, frozen, so that every scan reads them alike. Left as it is if it is there."""
    with loading.session(server) as connection:
        if loading.is_ours(connection, "scanned"):
            return
        with connection.transaction():
            loading.replace(connection, "scanned", "CREATE TABLE scanned (n int) WITH (autovacuum_enabled = off)")
            connection.execute(f"INSERT INTO scanned SELECT generate_series(1, {_SCANNED})")
        connection.execute("VACUUM (FREEZE, ANALYZE) scanned")


def drive(chapter: Chapter, server: Server, script: str = "", *, builtin: str = "", transactions: int, seed: int, **more) -> pgbench.PgbenchResult:
    """So many transactions in all, spread over the clients, prepared; `more` goes to `pgbench.run`."""
    clients = more.pop("clients", 1)
    options = {"clients": clients, "jobs": min(clients, 2), "protocol": "prepared"} | more
    return pgbench.run(server, script or None, builtin=builtin or None, transactions=max(1, transactions // clients), seed=seed, **options)


def lasting(chapter: Chapter, server: Server, script: str = "", *, milliseconds: float = 0, **more) -> int:
    """How many transactions take as long as one observation should; tried on a tenth of a second.

    The number goes into an experiment's arms, so that all do equal work.
    """
    wanted = milliseconds or chapter.parameters.milliseconds
    clients = more.get("clients", 1)
    tried = 5 * clients
    for _ in range(4):
        done = drive(chapter, server, script, transactions=tried, seed=chapter.parameters.seed, **more)
        if tried / done.tps > 0.05:
            break
        tried = round(done.tps * 0.1)
    return max(5 * clients, round(done.tps * wanted / 1000))


def apparatus(chapter: Chapter) -> pd.DataFrame:
    """What the talk's benchmarks ran on, what runs here, and how long it takes."""
    given, machine, said = chapter.parameters, chapter.run.environment["machine"], published.table("measuring_said")["value"]
    minutes = MINUTES["measuring"][PROFILES.index(given.profile)]
    rows = {
        "server": ("PostgreSQL 9.1 and 9.2devel", chapter.run.environment["server"]["version"]),
        "processors": (f"{said.cores_first:g} and {said.cores_later:g} cores", f"{machine['cpus_usable']} usable"),
        "load": ("pgbench, select-only and TPC-B", "the same, and loads of known size"),
        "length of a run": (f"about {said.read_run:g} min, {said.write_run:g} for writes", f"{given.milliseconds} ms in a pair, {given.seconds:g} s over time"),
        "repeats": (f"about {said.repeats:g}", f"{given.pairs} pairs, {given.blocks} for the noise floor"),
        "one flush of 8 kB": ("not said", f"{1e6 * (machine['fdatasync_8k_seconds'] or float('nan')):.0f} µs"),
        "time to run": ("", f"about {minutes:g} min with profile {given.profile}"),
    }
    return pd.DataFrame([(what, *values) for what, values in rows.items()], columns=["what", "the talk", "here"])
