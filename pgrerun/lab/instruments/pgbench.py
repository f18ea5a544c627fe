"""Client load: pgbench, run once and read carefully.

Every load on a server comes from here; a loop in Python would measure Python.
Throughput leaves connecting out. Under a rate, latency counts from the moment a
transaction was scheduled (so a stall isn't hidden by the waiting that it causes),
and the schedule lag and the transactions never started are reported beside it.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import pandas as pd

from pgrerun.errors import CannotMeasure, ParameterError, Refused, ServerError
from pgrerun.lab import statement_log
from pgrerun.lab.server import Server, private

_FIELDS = {
    "tps": (
        r"^tps = ([\d.]+) \((?:without initial connection time|excluding connections"
        r" establishing)\)"
    ),
    "transactions": r"^number of transactions actually processed: (\d+)",
    "failed": r"^number of failed transactions: (\d+)",
    "latency_ms": r"^latency average = ([\d.]+) ms",
}
_LOG = ["client", "transaction", "latency_us", "script", "epoch_s", "epoch_us"]


@dataclass(frozen=True)
class PgbenchResult:
    """What one run of pgbench reported.

    tps                transactions per second, connecting left out
    latency_ms         mean; from the scheduled start if `more` gives a rate
    transactions       that succeeded
    failed             that ended in a serialization failure or deadlock
    log                with `log=True`: one row per transaction with client,
                       transaction, latency_ms, script, time_s (end, since the
                       epoch), outcome ("done", "skipped", "failed"); else None
    """

    tps: float
    transactions: int
    latency_ms: float
    failed: int
    log: pd.DataFrame | None


def run(
    server: Server,
    script: str = "",
    *,
    builtin: str = "",
    clients: int = 1,
    jobs: int | None = None,
    seconds: int | None = None,
    transactions: int | None = None,
    protocol: str = "simple",
    variables: Mapping[str, int | float | str] | None = None,
    seed: int | None = None,
    log: bool = False,
    more: Sequence[str] = (),
) -> PgbenchResult:
    """Run pgbench against a server and return what it measured.

    The load is the text of a `script` or one of pgbench's `builtin`s; it lasts whole `seconds` or
    `transactions` per client. `jobs` (pgbench's threads, default 1), `seed` (of its random
    functions); `more` goes to pgbench as it is. Nothing is vacuumed first. ParameterError for
    arguments that make no sense, ServerError if a client aborts or the server goes away: then there
    is no number.
    """
    _check(script, builtin, clients, seconds, transactions)
    server.require_connections(clients)
    with private.passing(server.scratch, "pgbench") as stem:
        arguments = ["-n", "-c", clients, "-j", jobs or 1, "-M", protocol, *more]
        arguments += ["-T", seconds] if seconds else ["-t", transactions]
        if seed is not None:
            arguments += [f"--random-seed={seed}"]
        for name, value in (variables or {}).items():
            arguments += ["-D", f"{name}={value}"]
        if log:
            arguments += ["-l", f"--log-prefix={stem}-log"]
        if knows(server, "--exit-on-abort"):
            arguments += ["--exit-on-abort"]
        if builtin:
            arguments += ["-b", builtin]
        else:
            file = Path(f"{stem}.sql")
            private.create(file, script)  # pgbench may run as another account than we do
            # a weight, so that an @ in the path isn't taken for one
            arguments += ["-f", f"{file}@1"]
        length = f"{seconds} s" if seconds else f"{transactions:,} transactions of each client"
        statement_log.log_load(script or f"pgbench -b {builtin}", protocol, clients, length)
        # transactions have no known duration; seconds have, but the slowest may overstay
        done = server.tool(
            "pgbench", *arguments, check=False, timeout=seconds and seconds * 2 + 120
        )
        _raise_if_broken(done)
        return _result(done.stdout, _rows(stem) if log else None)


def _check(
    script: str,
    builtin: str,
    clients: int,
    seconds: int | None,
    transactions: int | None,
) -> None:
    length = seconds if transactions is None else transactions
    problem = None
    if bool(script) == bool(builtin):
        problem = "give either a script or the name of a builtin"
    elif length is None or None not in (seconds, transactions):
        problem = "give either seconds or transactions per client"
    elif length != int(length) or length < 1:
        problem = "seconds or transactions must be a whole number of at least 1"
    elif clients < 1:
        problem = f"at least one client is needed, not {clients}"
    if problem:
        raise ParameterError(f"pgbench can't be run like this: {problem}.")


_help: WeakKeyDictionary[Server, str] = WeakKeyDictionary()  # a server's programs never change


def knows(server: Server, option: str) -> bool:
    """Whether this server's pgbench has an option; asked once per server."""
    if server not in _help:
        _help[server] = server.tool("pgbench", "--help").stdout
    return option in _help[server]


def _raise_if_broken(done: subprocess.CompletedProcess[str]) -> None:
    aborted = re.search(r"Run was aborted|client \d+ (?:script \d+ )?aborted", done.stderr)
    if done.returncode == 0 and not aborted:
        return
    said = [
        line
        for line in done.stderr.splitlines()
        if not line.startswith(("pgbench (", "transaction type"))
    ]
    told = " ".join(said[-6:]).strip() or f"it said nothing and left with status {done.returncode}"
    if "too many clients" in told or "remaining connection slots" in told:
        told += " Use fewer clients, or raise max_connections."
    raise Refused(f"pgbench didn't finish, so its numbers don't count: {told}")


def _result(output: str, log: pd.DataFrame | None) -> PgbenchResult:
    found = {name: re.search(pattern, output, re.MULTILINE) for name, pattern in _FIELDS.items()}
    values = {name: float(match[1]) if match else None for name, match in found.items()}
    tps, transactions, latency = (values[name] for name in ("tps", "transactions", "latency_ms"))
    if tps is None or transactions is None or latency is None:
        raise ServerError(f"pgbench's report can't be understood; it said: {output.strip()[-500:]}")
    return PgbenchResult(
        tps=tps,
        transactions=int(transactions),
        latency_ms=latency,
        failed=int(values["failed"] or 0),
        log=log,
    )


def _rows(stem: Path) -> pd.DataFrame:
    """The per-transaction log of all threads, in the order of the transactions' ends."""
    frames = []
    for path in sorted(stem.parent.glob(f"{stem.name}-log.*")):
        with open(private.opened(path)) as file:
            frames.append(pd.read_csv(file, sep=" ", names=_LOG, usecols=range(len(_LOG))))
    if not frames:
        raise CannotMeasure(
            "pgbench log", f"pgbench left no log of single transactions in {stem.parent}."
        )
    rows = pd.concat(frames, ignore_index=True)
    latency = pd.to_numeric(rows["latency_us"], errors="coerce")
    log = pd.DataFrame(
        {
            "client": rows["client"],
            "transaction": rows["transaction"],
            "latency_ms": latency / 1000,
            "script": rows["script"],
            "time_s": rows["epoch_s"] + rows["epoch_us"] / 1e6,
            # in place of a time stands "skipped", or why a transaction failed
            "outcome": rows["latency_us"].where(latency.isna(), "done"),
        }
    )
    return log.sort_values("time_s", ignore_index=True, kind="stable")
