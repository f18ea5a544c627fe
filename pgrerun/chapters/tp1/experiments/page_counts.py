"""Which pages a transaction needs, which it reads, and how two accounts of that agree."""

import random
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.tp1.experiments.throughput import Fresh
from pgrerun.chapters.tp1.variants import (
    ALONE,
    APPEND,
    ENLARGED,
    INDEXES,
    LONE,
    RELATIONS,
    RUNGS,
    SQL,
    STABLE,
    TOGETHER,
    TRANSACTION,
    pooled,
    relations,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters, pages, sizes
from pgrerun.lab.server import Cluster, set_session

COUNTED_RUNGS = (ALONE, TOGETHER, ENLARGED, APPEND, STABLE, LONE)
JUDGED_RUNGS = {APPEND, STABLE, LONE}  # against a printed number, so more exactly
MORE_EXACTLY = 10  # times as many transactions
OURS = (*RELATIONS, *INDEXES)
PLACES = (*OURS, "catalogs", "other relations")
UNITS = {
    "reads": "pages/transaction",
    "writes": "pages/transaction",
    "wal": "bytes/transaction",
    **{f"reads of {place}": "pages/transaction" for place in PLACES},
}
AS_IT_IS, LOOKED_AT, READ = "as it is", "looked at", "read"
# Transactions that fill the pool with changed pages, and the sessions' caches, before any are
# counted; each changes some ten pages.
FILLING = 8


@experiment(claims=["lai-045", "lai-049", "lai-052", "lai-053", "lai-054", "lai-058"])
def io(chapter: Chapter) -> None:
    """Pages read and written per transaction in steady state, on the rungs of the ladder.

    A count, not a race: transactions run one after the other on connections that have run
    some before (taking turns where a rung has several), so that neither the machine's speed
    nor the first transaction's catalogs enter.
    """
    fresh, counting = Fresh(chapter, restart=False), {}
    with ExitStack() as stack:

        def count(name: str, block: Block) -> dict[str, float]:
            cluster = pooled(chapter, RUNGS[name].buffers)
            if cluster not in counting:
                counter = counters.Counters(cluster, settle=0.02)
                counting[cluster] = stack.enter_context(counter)
                # the same pages are written, and nobody waits until a disk has them
                stack.enter_context(cluster.reloaded(fsync="off"))
            if fresh.prepare(name, block):
                counting[cluster].learn()  # which reads catalogs: before the pool is filled
            return per_transaction(chapter, name, cluster, counting[cluster], block)

        variants = [Variant(name, partial(count, name)) for name in COUNTED_RUNGS]
        chapter.compare("io", variants, UNITS, pairs=5, warmup=0)


def per_transaction(
    chapter: Chapter, name: str, cluster: Cluster, counter: counters.Counters, block: Block
) -> dict[str, float]:
    """One observation of a rung, with metrics as in `UNITS`, on a cluster that is prepared."""
    rung, bank, draws = RUNGS[name], relations(chapter), random.Random(block.seed)
    number = rung.backends or chapter.parameters.clients
    counted = chapter.parameters.counted * (MORE_EXACTLY if name in JUDGED_RUNGS else 1)
    script, filling = SQL.script(rung.script), max(FILLING, number)
    with ExitStack() as stack:
        backends = [stack.enter_context(cluster.connect()) for _ in range(number)]
        for backend in backends:
            set_session(backend, rung.settings)
        for turn in range(filling):
            bank.run_once(backends[turn % number], draws, script)
        with counter.measured(*backends) as delta:
            for turn in range(counted):
                bank.run_once(backends[turn % number], draws, script)
    each, frame = delta.per(counted), delta.relations
    place = frame["relation"].where(frame["relation"].isin(PLACES), "other relations")
    place = place.where(~frame["kind"].str.startswith("catalog"), "catalogs")
    read = frame.groupby(place)["read"].sum().reindex(PLACES, fill_value=0) / counted
    metrics = {"reads": each["reads"], "writes": each["writes"], "wal": each["wal_bytes"]}
    return metrics | read.add_prefix("reads of ").to_dict()


@experiment()
def as_it_is(chapter: Chapter) -> None:
    """Pages looked at and read per transaction, and WAL, in the server's own pool and settings.

    For somebody's server. Pages are those of our own relations, by place; the WAL is everybody's.
    """
    server, bank, script = chapter.server, relations(chapter), SQL.script(TRANSACTION)
    bank.load(server)
    units = {f"{verb} {place}": "pages/transaction" for verb in (LOOKED_AT, READ) for place in OURS}
    units |= {"wal": "bytes/transaction", "others": "transactions"}

    def count(block: Block) -> dict[str, float]:
        draws, counted = random.Random(block.seed), chapter.parameters.counted
        with counters.Counters(server) as counter, server.connect() as backend:
            for _ in range(FILLING):
                bank.run_once(backend, draws, script)
            with counter.measured(backend) as delta:
                for _ in range(counted):
                    bank.run_once(backend, draws, script)
        own = delta.relations[delta.relations["schema"] == server.schema].set_index("relation")
        read = own["read"].reindex(OURS, fill_value=0) / counted
        looked_at = read + own["hit"].reindex(OURS, fill_value=0) / counted
        metrics = looked_at.add_prefix(f"{LOOKED_AT} ").to_dict()
        metrics |= read.add_prefix(f"{READ} ").to_dict()
        # each autocommit statement outside of a block is a transaction as well: the probe's own
        # are a handful
        others = max(0.0, delta.database["commits"] - counted)
        return metrics | {"wal": delta.wal_bytes / counted, "others": others}

    chapter.compare(AS_IT_IS, [Variant(AS_IT_IS, count)], units, warmup=0)


# The report's bound counts the first two and assumes the next two to be in the pool.
LEAF, OLD_VERSION = "B-tree leaf", "heap, replaced tuple"
ROOT, LAST_PAGE = "B-tree root", "heap, last page"
ROOMY, CATALOG = "heap, page with room", "catalog"
_KINDS = {
    "btree leaf": LEAF,
    "heap": OLD_VERSION,
    "btree root": ROOT,
    "btree inner": "B-tree inner",
    "btree meta": "B-tree meta",
    "vm": "visibility map",
    "fsm": "free space map",
}
KINDS = (LEAF, OLD_VERSION, ROOT, LAST_PAGE, ROOMY, *list(_KINDS.values())[3:], CATALOG)
ONE = "one transaction"


@experiment(claims=["lai-052"], needs=["superuser"])
def touched_pages(chapter: Chapter) -> None:
    """The distinct pages of single transactions, each from an empty pool: read, and changed.

    The connection has run a transaction before, so its caches of the catalogs are warm:
    the steady state of the report's bound. One observation per transaction; metrics are
    named "read: KIND" and "changed: KIND", by kind of page, and "read of PLACE".
    """
    server, bank, script = chapter.server, relations(chapter), SQL.script(TRANSACTION)
    bank.load(server)
    units = {}
    for verb in ("read", "changed"):
        units |= {f"{verb}: {kind}": "pages" for kind in KINDS}
        units |= {f"{verb} of {place}": "pages" for place in PLACES}

    def transaction(block: Block) -> dict[str, float]:
        draws = random.Random(block.seed)
        found = pages.touched(server, partial(bank.run_once, draws=draws, script=script))
        with server.connect() as connection:
            kinds = kinds_of(found, sizes.pages_of(connection, OURS))
        places = found["relation"].where(found["relation"].isin(PLACES), "catalogs")
        metrics = {}
        for verb, chosen in (("read", found.index), ("changed", found.index[found["dirty"]])):
            for values, names, prefix in ((kinds, KINDS, ": "), (places, PLACES, " of ")):
                counted = values[chosen].value_counts().reindex(names, fill_value=0)
                metrics |= counted.add_prefix(f"{verb}{prefix}").to_dict()
        return metrics

    variants = [Variant(ONE, transaction)]
    chapter.compare("touched", variants, units, pairs=chapter.parameters.counted, warmup=0)


def kinds_of(touched: pd.DataFrame, pages_now: Mapping[str, int]) -> pd.Series:
    """What each touched page is, one of `KINDS`.

    Of the heap pages of one relation the last is where tuples are appended; of the others
    the first holds the tuple that was replaced, and any more were found to have room.
    touched: columns as of `pages.touched`. pages_now: pages of our relations and indexes.
    """
    kind = touched["kind"].map(_KINDS).where(touched["relation"].isin(OURS), CATALOG)
    heap = kind == OLD_VERSION
    last = heap & (touched["block"] >= touched["relation"].map(pages_now) - 1)
    nth = touched[heap & ~last].groupby("relation").cumcount().reindex(touched.index)
    return kind.mask(last, LAST_PAGE).mask(nth > 0, ROOMY)
