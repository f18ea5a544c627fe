"""Read-only throughput over clients, the law fitted to it, and what backends wait for."""

import threading
from contextlib import suppress
from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability.bench import LOOKUP, WATCHED, busy, drive, levels, load, processors, server, watched
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import waits
from pgrerun.relations import loading

UNITS = {"throughput": "transactions/s"}
AGAIN = "again"
RESAMPLES = 100  # of the law's fit: its intervals are told and not judged


def clients(number: int) -> str:
    """An arm's name by its clients."""
    return f"{number} client{'s' if number > 1 else ''}"


def read(chapter: Chapter) -> None:
    """Primary key lookups by each number of clients; repeats are outside of clients, one level runs twice."""
    on = server(chapter)
    load(chapter, on)

    def measure(number: int, block: Block) -> dict[str, float]:
        return watched(chapter, on, LOOKUP, number, chapter.parameters.transactions, block.seed)

    arms = [Arm(clients(number), partial(measure, number)) for number in levels(chapter)]
    arms.append(Arm(AGAIN, partial(measure, busy(chapter))))
    chapter.compare("read", arms, WATCHED, warmup=0)


def _lookups(chapter: Chapter, number: int, block: Block) -> dict[str, float]:
    return {"throughput": drive(chapter, server(chapter), LOOKUP, number, chapter.parameters.transactions, block.seed).tps}


TOLD_NOBODY, TOLD_OTHERS, TOLD_READERS = "change rolled back", "another relation", "the relation read"
_CHANGE = """DO $$ BEGIN LOOP
    EXECUTE 'ALTER TABLE {} ALTER bid SET STATISTICS ' || (100 * random())::int; {};
    PERFORM pg_sleep(0.001);
END LOOP; END $$"""


def schema_changes(chapter: Chapter) -> None:
    """Lookups while another session changes schemas without end: rolled back, which tells nobody, or committed, which sends messages to all.

    The changes are the same in all arms and lock nobody out; only those of the relation that is
    read concern its readers, who have to look at it and to plan anew.
    """
    on = server(chapter)
    load(chapter, on)
    ways = {TOLD_NOBODY: ("scaling_other", "ROLLBACK"), TOLD_OTHERS: ("scaling_other", "COMMIT"), TOLD_READERS: ("scaling_accounts", "COMMIT")}
    with on.connect() as connection, connection.transaction():
        loading.replace(connection, "scaling_other", "CREATE TABLE scaling_other (LIKE scaling_accounts)")

    def measure(way: tuple[str, str], block: Block) -> dict[str, float]:
        with on.connect() as changing:
            changer = threading.Thread(target=_without_end, args=(changing, _CHANGE.format(*way)))
            changer.start()
            try:
                return _lookups(chapter, 2 * processors(), block)
            finally:
                while changer.is_alive():  # a cancellation that comes before the statement is lost
                    changing.cancel_safe()
                    changer.join(0.1)

    chapter.compare("schema changes", [Arm(name, partial(measure, way)) for name, way in ways.items()], UNITS, warmup=0)


def _without_end(connection: psycopg.Connection, statement: str) -> None:
    with suppress(psycopg.errors.QueryCanceled):
        connection.execute(statement)


def law(chapter: Chapter, experiment: str, metric: str = "throughput") -> statistics.USL | None:
    """The universal scalability law fitted to a sweep over clients; None if it did not run, or over too few numbers of them."""
    frame = chapter.table(experiment, metric)
    if frame.empty:
        return None
    swept = frame.melt(var_name="arm", value_name="value")
    swept = swept[swept["arm"].str.endswith(("client", "clients"))]
    if swept["arm"].nunique() < 4:
        return None
    return statistics.scalability(swept["arm"].str.split().str[0].astype(int), swept["value"], seed=chapter.parameters.seed, resamples=RESAMPLES)


def degraded(chapter: Chapter) -> statistics.Interval | None:
    """Throughput with as many clients as processors over that with the most clients."""
    frame = chapter.table("read", "throughput")
    if frame.empty:
        return None
    return statistics.ratio(frame[clients(busy(chapter))], frame[clients(levels(chapter)[-1])], seed=chapter.parameters.seed)


def processor_time(chapter: Chapter) -> pd.Series:
    """Seconds of one processor that a lookup takes, pgbench's part included, per block: with every processor at work."""
    frame = chapter.table("read", "throughput")
    return busy(chapter) / frame[clients(busy(chapter))]


def waiting(chapter: Chapter) -> pd.DataFrame:
    """What active backends wait for where the processors are used up and at the end, in a pass of its own: clients, type, event, backends (on average)."""
    on, frames = server(chapter), []
    load(chapter, on)
    for number in sorted({busy(chapter), levels(chapter)[-1]}):
        with waits.sampled(on) as found:
            drive(chapter, on, LOOKUP, number, 4 * chapter.parameters.transactions, chapter.parameters.seed)  # enough samples
        frames.append(found.seen().assign(clients=number))
    return pd.concat(frames, ignore_index=True)
