"""pgbench at full speed beside a paced load: do they rank settings alike, and how large do they make a problem?"""

from functools import partial

import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring.load import ACCOUNTS, bank, drive
from pgrerun.experiment import Arm, Block

UNITS = {"latency": "ms", "throughput": "transactions/s"}
EXTREME, PACED = "pgbench at full speed", "an application, paced"
PLAIN, HOT_ROW, NO_WAIT, NO_PLAN = "as it is", "one row for all", "no wait for a flush", "plans not kept"
CHANGES = (PLAIN, HOT_ROW, NO_WAIT, NO_PLAN)
LOAD = 0.1  # share of the full speed at which the application asks

_DRAW = f"\\set aid random(1, {ACCOUNTS} * :scale)\n\\set bid random(1, :scale)\n\\set tid random(1, 10 * :scale)\n\\set delta random(1, 5000)\n"
_UPDATE = (
    "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
    "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n"
    "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = {branch};\n"
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n"
)
# Somebody looks a few accounts up and then books once: what the paced load adds to pgbench's transaction.
_LOOK = "".join(f"\\set look{n} random(1, {ACCOUNTS} * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :look{n};\n" for n in range(3))


def named(load: str, change: str) -> str:
    """The arm's name in the run record."""
    return f"{load}: {change}"


def script(load: str, change: str) -> str:
    """The transaction of a load under a change; each client has a branch of its own unless all share one."""
    branch = "1" if change == HOT_ROW else ":client_id + 1"
    flush = "off" if change == NO_WAIT else "on"
    look = _LOOK if load == PACED else ""
    return f"{_DRAW}{look}BEGIN;\nSET LOCAL synchronous_commit = {flush};\n{_UPDATE.format(branch=branch)}END;\n"


def loads(chapter: Chapter) -> None:
    """Every change under both loads, in one interleaved comparison; the pace is a share of the full speed here."""
    server, clients = chapter.server, chapter.parameters.clients
    bank(server, clients)
    options = {"clients": clients, "variables": {"scale": clients}}
    warm = drive(chapter, server, script(EXTREME, PLAIN), transactions=50 * clients, seed=chapter.parameters.seed, **options)
    rate = max(LOAD * warm.tps, 20.0)
    many = {EXTREME: round(warm.tps * chapter.parameters.milliseconds / 1000), PACED: round(rate * 2 * chapter.parameters.milliseconds / 1000)}
    arms = [
        Arm(named(load, change), partial(_run, chapter, server, load, change, many[load], rate if load == PACED else None, options))
        for load in (EXTREME, PACED) for change in CHANGES
    ]  # fmt: skip
    chapter.compare("loads", arms, UNITS, warmup=0)  # that was tried out just now


def _run(chapter: Chapter, server, load: str, change: str, transactions: int, rate: float | None, options: dict, block: Block) -> dict[str, float]:
    protocol = "simple" if change == NO_PLAN else "prepared"
    done = drive(chapter, server, script(load, change), transactions=max(transactions, 4 * options["clients"]), seed=block.seed, rate=rate, protocol=protocol, **options)
    return {"latency": done.latency_ms, "throughput": done.tps}


def effect(chapter: Chapter, load: str, change: str) -> statistics.Interval | None:
    """Latency under a change over that without it."""
    return chapter.ratio("loads", "latency", named(load, change), named(load, PLAIN))


def effects(chapter: Chapter) -> pd.DataFrame:
    """All of them: load, change, value, low, high; empty if they did not run."""
    rows = []
    for load in (EXTREME, PACED):
        for change in CHANGES[1:]:
            found = effect(chapter, load, change)
            if found:
                rows.append((load, change, found.estimate, found.low, found.high))
    return pd.DataFrame(rows, columns=["load", "change", "value", "low", "high"])


def exaggeration(chapter: Chapter, change: str = HOT_ROW) -> statistics.Interval | None:
    """How many times longer a change makes pgbench's transaction, over the same for the paced load."""
    latency = chapter.table("loads", "latency")
    if latency.empty:
        return None
    slower = {load: latency[named(load, change)] / latency[named(load, PLAIN)] for load in (EXTREME, PACED)}
    return statistics.ratio(slower[EXTREME], slower[PACED], seed=chapter.parameters.seed)


def ranking(chapter: Chapter) -> dict[str, bool] | None:
    """Whether pgbench puts the settings in the same order as the paced load, and whether it is the same measure.

    An order counts where an interval excludes 1; what neither decides contradicts nothing.
    """
    latency = chapter.table("loads", "latency")
    if latency.empty:
        return None
    sign = {load: {pair: _surely(chapter, load, *pair) for pair in _pairs()} for load in (EXTREME, PACED)}
    decided = [pair for pair in _pairs() if sign[EXTREME][pair]]
    return {
        "pgbench tells settings apart": bool(decided),
        "the paced load never puts them surely the other way round": all(sign[PACED][pair] != -sign[EXTREME][pair] for pair in decided),
        "how large an effect is depends on the load": any(not _overlap(chapter, change) for change in CHANGES[1:]),
    }


def _pairs() -> list[tuple[str, str]]:
    return [(one, other) for number, one in enumerate(CHANGES) for other in CHANGES[number + 1 :]]


def _surely(chapter: Chapter, load: str, one: str, other: str) -> int:
    """1 if the first is surely slower than the other, -1 if surely faster, 0 if that can't be told."""
    found = chapter.ratio("loads", "latency", named(load, one), named(load, other))
    return int(found.low > 1) - int(found.high < 1)


def _overlap(chapter: Chapter, change: str) -> bool:
    """Whether a change may be worth the same to both loads: the ratio of its effects, block by block, includes 1."""
    found = exaggeration(chapter, change)
    return found.low <= 1 <= found.high
