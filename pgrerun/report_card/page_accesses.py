"""Pages looked at and read per debit-credit transaction, and WAL, in a server's own pool."""

import random
from collections.abc import Iterator

from pgrerun.chapters.tp1.experiments.page_counts import FILLING, OURS
from pgrerun.chapters.tp1.variants import SQL, TRANSACTION, relations
from pgrerun.lab.instruments import counters
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

LOOKED_AT, READ = "looked_at", "read"


def metric(verb: str, place: str) -> str:
    """What the pages of one place are called in the rows."""
    return f"{verb}_{place.replace(' ', '_')}"


@experiment(
    units={metric(verb, place): "pages/transaction" for verb in (LOOKED_AT, READ) for place in OURS}
    | {"wal": "bytes/transaction", "others": "transactions"}
)
def as_it_is(bed: Testbed) -> Iterator[Row]:
    """Pages looked at and read per transaction, and WAL, in the server's own pool and settings.

    Pages are those of our own relations, by place; the WAL is everybody's.
    """
    server, bank, script = bed.server, relations(bed), SQL.script(TRANSACTION)
    bank.load(server)

    def count(block: Block, pool: str) -> dict[str, float]:
        draws, counted = random.Random(block.seed), bed.parameters.counted
        with counters.Counters(server) as counter, server.connect() as backend:
            for _ in range(FILLING):
                bank.run_once(backend, draws, script)
            with counter.measured(backend) as delta:
                for _ in range(counted):
                    bank.run_once(backend, draws, script)
        own = delta.relations[delta.relations["schema"] == server.schema].set_index("relation")
        read = own["read"].reindex(OURS, fill_value=0) / counted
        looked_at = read + own["hit"].reindex(OURS, fill_value=0) / counted
        # each autocommit statement outside of a block is a transaction as well: the probe's own
        # are a handful
        others = max(0.0, delta.database["commits"] - counted)
        return {
            **{metric(LOOKED_AT, place): looked_at[place] for place in OURS},
            **{metric(READ, place): read[place] for place in OURS},
            "wal": delta.wal_bytes / counted,
            "others": others,
        }

    yield from bed.compare(count, {"pool": ["as it is"]}, warmup=0)
