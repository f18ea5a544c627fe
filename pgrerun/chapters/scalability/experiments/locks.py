"""The lock manager: who is on its fast path, and what the lock table costs."""

from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability.experiments.load import (
    CROWD,
    SQL,
    THROUGHPUT,
    Load,
    second_server,
    server,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import sessions
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Server

# ---- what pg_locks shows

READER, READERS = "one reader", "two readers"
READER_AND_WRITER = "a reader and a writer"
FORCEFUL = {"a reader and an ALTER": "locks.alter", "a reader and a DROP": "locks.drop"}


@experiment(claims=["haas-008"])
def weak_and_strong(chapter: Chapter) -> pd.DataFrame:
    """One session reads a relation, others want stronger locks on it.

    Columns: state (who is there), lock, granted, fastpath; a row for each lock on the relation.
    """
    tested = server(chapter)
    with tested.connect() as maker, maker.transaction():
        loading.replace(maker, "scaling_guarded", SQL.text("locks.guarded"))
    rows = []
    with (
        tested.connect(autocommit=False) as reader,
        tested.connect(autocommit=False) as other,
        tested.connect() as watch,
    ):

        def look(state: str) -> None:
            rows.extend((state, *row) for row in SQL.run(watch, "locks.on_relation"))

        SQL.run(reader, "locks.read")
        look(READER)
        SQL.run(other, "locks.read")
        look(READERS)
        SQL.run(other, "locks.write")
        look(READER_AND_WRITER)
        other.rollback()
        for state, statement in FORCEFUL.items():
            SQL.run(reader, "locks.read")
            with sessions.waiting(tested, SQL.text(statement)):
                look(state)
                reader.rollback()
    return pd.DataFrame(rows, columns=["state", "lock", "granted", "fastpath"])


@experiment(claims=["haas-009"])
def virtual_transactions(chapter: Chapter) -> pd.DataFrame:
    """A session's virtual transaction lock before and while CREATE INDEX CONCURRENTLY waits for it.

    Columns: state, fastpath; a row each.
    """
    tested = server(chapter)
    with tested.connect() as maker, maker.transaction():
        loading.replace(maker, "scaling_indexed", SQL.text("locks.indexed"))
    with tested.connect(autocommit=False) as writer, tested.connect() as watch:
        SQL.run(writer, "locks.write_indexed")
        pid = writer.info.backend_pid
        [before] = SQL.run(watch, "locks.virtual_transaction", pid=pid).fetchone()
        with sessions.waiting(tested, SQL.text("locks.create_index")):
            [waited_for] = SQL.run(watch, "locks.virtual_transaction", pid=pid).fetchone()
            writer.rollback()
    rows = [
        ("nobody waits for the transaction", before),
        ("CREATE INDEX CONCURRENTLY waits for it", waited_for),
    ]
    return pd.DataFrame(rows, columns=["state", "fastpath"])


# ---- what the lock table costs

PARTITIONS = 100  # relations locked beside their parent; PostgreSQL 9.2 to 17 had sixteen slots
FEW_SLOTS = {"max_locks_per_transaction": 10}
FAST, TABLE, HELD = "fast path", "lock table", "strong lock elsewhere"
LOCK_PARTITIONS = SQL.script("lock_partitions")


@experiment()
def overflow(chapter: Chapter) -> None:
    """A statement that locks many relations, with room for all of them on the fast path or not.

    The server with few slots differs in max_locks_per_transaction alone. The strong locks that
    push all others off the fast path are SHARE locks, held by another session on the same
    relations: no reader has to wait for them.
    """
    few = second_server(chapter, **FEW_SLOTS)
    variants = {
        FAST: (server(chapter), False),
        TABLE: (few, False),
        HELD: (server(chapter), True),
    }
    for tested in (server(chapter), few):
        _partitioned(tested)
    chapter.compare(
        "locks",
        [Variant(name, partial(_locked, chapter, *how)) for name, how in variants.items()],
        THROUGHPUT | {"fastpath": "share of relation locks"},
        warmup=0,
    )


def _partitioned(server: Server) -> None:
    with server.connect() as connection, connection.transaction():
        if loading.is_ours(connection, "scaling_parts"):
            return
        loading.replace(connection, "scaling_parts", SQL.text("locks.partitioned"))
        for part in range(PARTITIONS):
            name = f"scaling_part_{part}"
            SQL.run(connection, "locks.partition", partition=name, low=part, high=part + 1)


def _locked(chapter: Chapter, server: Server, strong: bool, block: Block) -> dict[str, float]:
    with server.connect() as holder, holder.transaction():
        if strong:
            SQL.run(holder, "locks.strong_locks")
        with server.connect() as reader, reader.transaction():
            SQL.run(reader, "locks.weak_locks")
            [fast] = SQL.run(reader, "locks.share_on_fast_path").fetchone()
        each = chapter.parameters.transactions / 8
        locking = Load(chapter, server, LOCK_PARTITIONS, CROWD, each)
        return locking.throughput(block) | {"fastpath": fast}


# ---- what the model needs to know

ALONE, SAME, OTHER, EMPTY = "alone", "both the same lock", "each its own lock", "no lock"
LOOPS = 50_000


@experiment(claims=["haas-003"])
def costs(chapter: Chapter, loops: int = LOOPS) -> None:
    """Nanoseconds to take and give back a lock through the lock table, in a loop in the server.

    Alone, and with a second session. Advisory locks in shared mode never wait for each other and
    have no fast path, as relation locks had none in PostgreSQL 9.1.
    """
    first, second = (SQL.text("locks.lock_loop", key=key, loops=loops) for key in (1, 2))
    together = {
        EMPTY: [SQL.text("locks.loop", loops=loops)],
        ALONE: [first],
        SAME: [first, first],
        OTHER: [first, second],
    }

    def measure(together: list[str], block: Block) -> dict[str, float]:
        taken = sessions.at_once(server(chapter), together)
        return {"time": 1e9 * sum(taken) / len(taken) / loops}

    variants = [Variant(name, partial(measure, loops)) for name, loops in together.items()]
    chapter.compare("lock costs", variants, {"time": "ns"}, warmup=0)
