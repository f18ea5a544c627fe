"""Throughput, in interleaved blocks: the thread's two set-ups with HOT and without, and Merlin's runs."""

from functools import partial

import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.bank import AS_BEFORE, FULL, HOT, INDEXED, NO_HOT, REDUCED, Bank, drive, printed_updates, snapshot
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.server import Server

UNITS = {"throughput": "transactions/s"}
AGAIN = "HOT, again"
PAVAN = ((REDUCED, HOT), (REDUCED, AGAIN), (REDUCED, NO_HOT), (REDUCED, AS_BEFORE), (FULL, HOT), (FULL, NO_HOT))
TEN = 10  # clients of Merlin's runs that aren't of one
SPEED_CLAIMS = ("hot-001", "hot-004", "hot-012", "hot-026", "hot-035")
MERLIN_CLAIMS = ("hot-021", "hot-024")


def name(script: str, arm: str) -> str:
    """The arm's name in the run record."""
    return f"{script}: {arm}"


def merlins(clients: int, arm: str) -> str:
    """The same for Merlin's runs."""
    return f"{arm}, {clients} client{'s' if clients > 1 else ''}"


def throughput(chapter: Chapter) -> None:
    """Both scripts, as many clients as branches, as many updates per account as in print; fsync is on.

    The relations have the parameter `timed_accounts` for each branch.
    """
    arms = [Arm(name(script, arm), partial(_run, chapter, chapter.server, script, arm, chapter.parameters.clients, 90)) for script, arm in PAVAN]
    chapter.compare("throughput", arms, UNITS, warmup=0)  # every run has relations of its own


def merlin(chapter: Chapter) -> None:
    """pgbench's own transaction without fsync and at the stock fillfactor: with HOT, without, and with the index on abalance."""
    server, clients = chapter.server, chapter.parameters.clients
    arms = [
        Arm(merlins(number, arm), partial(_run, chapter, server, FULL, arm, number, 100))
        for number in (1, clients) for arm in (HOT, NO_HOT, INDEXED)
    ]  # fmt: skip
    with server.reloaded(fsync="off"):
        chapter.compare("merlin", arms, UNITS, warmup=0)
    if clients != TEN:
        chapter.set_aside(CannotMeasure(f"clients = {TEN}", f"the print ran ten clients, and this run {clients}"), ["hot-024"])


def _run(chapter: Chapter, server: Server, script: str, arm: str, clients: int, fillfactor: int, block: Block) -> dict[str, float]:
    here = Bank(chapter.parameters.clients, chapter.parameters.timed_accounts)
    here.load(server, HOT if arm == AGAIN else arm, fillfactor)
    with snapshot(server, arm == AS_BEFORE):
        done = drive(server, here, script, here.updates(printed_updates()), seed=block.seed, clients=clients)
    return {"throughput": done.tps}


def over(chapter: Chapter, arm: str, base: str) -> statistics.Interval | None:
    """Throughput of one arm over another's; both by the names of `name`."""
    return chapter.ratio("throughput", "throughput", arm, base)


def hot_over(chapter: Chapter, script: str, base: str) -> statistics.Interval | None:
    """Throughput of a script with HOT over that of the arm `base`."""
    return over(chapter, name(script, HOT), name(script, base))


def merlin_over(chapter: Chapter, clients: int, arm: str = HOT, base: str = NO_HOT) -> statistics.Interval | None:
    """The same for Merlin's runs."""
    return chapter.ratio("merlin", "throughput", merlins(clients, arm), merlins(clients, base))


def improvements(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """HOT over no HOT, by clients, in Merlin's set-up."""
    found = {f"{number} client{'s' if number > 1 else ''}": merlin_over(chapter, number) for number in (1, chapter.parameters.clients)}
    return None if None in found.values() else found


def fewer_statements(chapter: Chapter) -> statistics.Interval | None:
    """Throughput of the reduced script over that of the full one, both without HOT."""
    return over(chapter, name(REDUCED, NO_HOT), name(FULL, NO_HOT))


def a_server_without_the_patch(chapter: Chapter) -> None:
    """What HOT's code costs where it can't help: it takes a server that doesn't have the code (CannotMeasure)."""
    raise CannotMeasure(
        "server without HOT",
        "HOT came with PostgreSQL 8.3, and no release from before that can be installed here; without an index on the updated column the code can't be kept from running",
    )


def twins(chapter: Chapter) -> pd.DataFrame:
    """Throughput of the two identical arms, a row per block; empty if they did not run."""
    frame = chapter.table("throughput", "throughput")
    return frame if frame.empty else frame[[name(REDUCED, HOT), name(REDUCED, AGAIN)]]


def volatility(chapter: Chapter) -> statistics.Interval | None:
    """The faster of two identical runs over the slower."""
    frame = twins(chapter)
    return None if frame.empty else statistics.ratio(frame.max(axis=1), frame.min(axis=1), seed=chapter.parameters.seed)
