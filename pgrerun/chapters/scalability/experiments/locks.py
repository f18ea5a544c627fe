"""The lock manager: who is on its fast path, and what the lock table costs."""

from collections.abc import Iterator

from pgrerun.chapters.scalability.load import (
    SQL,
    TPS,
    Load,
    crowd_size,
    ours,
    server,
)
from pgrerun.lab.instruments import sessions
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Server
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened

# ---- what pg_locks shows

FORCEFUL = {"a reader and an ALTER": "locks.alter", "a reader and a DROP": "locks.drop"}


@experiment(units={"granted": "yes or no", "fastpath": "yes or no"})
def weak_and_strong(bed: Testbed) -> Iterator[Row]:
    """One session reads a relation, others want stronger locks on it.

    A row for each lock on the relation; `state` says who is there.
    """
    tested = server(bed)
    with tested.connect() as maker:
        loading.make(maker, "scaling_guarded", SQL.text("locks.guarded"))
    with (
        tested.connect(autocommit=False) as reader,
        tested.connect(autocommit=False) as other,
        tested.connect() as watch,
    ):

        def look(state: str) -> Iterator[Row]:
            for lock, granted, fastpath in SQL.run(watch, "locks.on_relation").fetchall():
                yield {"state": state, "lock": lock, "granted": granted, "fastpath": fastpath}

        SQL.run(reader, "locks.read")
        yield from look("one reader")
        SQL.run(other, "locks.read")
        yield from look("two readers")
        SQL.run(other, "locks.write")
        yield from look("a reader and a writer")
        other.rollback()
        for state, statement in FORCEFUL.items():
            SQL.run(reader, "locks.read")
            with sessions.waiting(tested, SQL.text(statement)):
                yield from look(state)
                reader.rollback()


@experiment(units={"fastpath": "yes or no"})
def virtual_transactions(bed: Testbed) -> Iterator[Row]:
    """A session's virtual transaction lock before and while CREATE INDEX CONCURRENTLY waits."""
    tested = server(bed)
    with tested.connect() as maker:
        loading.make(maker, "scaling_indexed", SQL.text("locks.indexed"))
    with tested.connect(autocommit=False) as writer, tested.connect() as watch:
        SQL.run(writer, "locks.write_indexed")

        def look(state: str) -> Row:
            [[fastpath]] = SQL.run(
                watch, "locks.virtual_transaction", pid=writer.info.backend_pid
            ).fetchall()
            return {"state": state, "fastpath": fastpath}

        yield look("nobody waits for the transaction")
        with sessions.waiting(tested, SQL.text("locks.create_index")):
            yield look("CREATE INDEX CONCURRENTLY waits for it")
            writer.rollback()


# ---- what the lock table costs

PARTITIONS = 100  # relations locked beside their parent; PostgreSQL 9.2 to 17 had sixteen slots
FEW_SLOTS = 10  # max_locks_per_transaction
FAST, TABLE, HELD = "fast path", "lock table", "strong lock elsewhere"


@experiment(units=TPS | {"fastpath": "share of relation locks"}, needs=["restart"])
def overflow(bed: Testbed) -> Iterator[Row]:
    """A statement that locks many relations, with room for all of them on the fast path or not.

    The server with few slots differs in max_locks_per_transaction alone. The strong locks that
    push all others off the fast path are SHARE locks, held by another session on the same
    relations: no reader has to wait for them.
    """
    roomy = bed.cluster(**ours(bed))
    few = bed.cluster(**ours(bed) | {"max_locks_per_transaction": FEW_SLOTS})
    for tested in (roomy, few):
        _partitioned(tested)
    loads = {
        name: Load(bed, tested, "lock_partitions", crowd_size(), told=True)
        for name, tested in {FAST: roomy, TABLE: few, HELD: roomy}.items()
    }

    def measure(block: Block, locks: str) -> dict[str, float]:
        tested = loads[locks].server
        with tested.connect() as holder, holder.transaction():
            if locks == HELD:
                SQL.run(holder, "locks.strong_locks")
            with tested.connect() as reader, reader.transaction():
                SQL.run(reader, "locks.weak_locks")
                [[fast]] = SQL.run(reader, "locks.share_on_fast_path").fetchall()
            return loads[locks].throughput(block) | {"fastpath": fast}

    yield from bed.compare(
        measure, {"locks": list(loads)}, pairs=bed.timed_pairs(), warmup=0, positive=["tps"]
    )


def _partitioned(tested: Server) -> None:
    with tested.connect() as connection, connection.transaction():
        if loading.is_ours(connection, "scaling_parts"):
            return
        loading.replace(connection, "scaling_parts", SQL.text("locks.partitioned"))
        for part in range(PARTITIONS):
            SQL.run(
                connection,
                "locks.partition",
                partition=f"scaling_part_{part}",
                low=part,
                high=part + 1,
            )


# ---- what two sessions cost each other

ALONE, SAME, OTHER, EMPTY = "alone", "both the same lock", "each its own lock", "no lock"
LOOPS = 50_000


@experiment(units={"time": "ns"})
def lock_costs(bed: Testbed, loops: int = LOOPS) -> Iterator[Row]:
    """Nanoseconds to take and give back a lock through the lock table, in a loop in the server.

    Alone, and with a second session. Advisory locks in shared mode never wait for each other and
    have no fast path, as relation locks had none in PostgreSQL 9.1.
    """
    tested = server(bed)

    def lasts(together: str, times: int) -> float:
        empty = SQL.text("locks.loop", loops=times)
        first, second = (SQL.text("locks.lock_loop", key=key, loops=times) for key in (1, 2))
        sent = {EMPTY: [empty], ALONE: [first], SAME: [first, first], OTHER: [first, second]}
        taken = sessions.at_once(tested, sent[together])
        return sum(taken) / len(taken)

    lasting = max(loops, round(loops * shortened(bed.parameters.seconds) / lasts(ALONE, loops)))

    yield from bed.compare(
        lambda block, together: {"time": 1e9 * lasts(together, lasting) / lasting},
        {"together": [EMPTY, ALONE, SAME, OTHER]},
        pairs=bed.timed_pairs(bed.parameters.pairs),
        warmup=0,
    )
