"""Which pages a transaction needs, which it reads, and how two accounts of that agree.

With what is run: the rungs of the ladder, and the relations as loaded.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial

import pandas as pd

from pgrerun.chapters.tp1.experiments.throughput import load_anew
from pgrerun.chapters.tp1.variants import (
    ALONE,
    APPEND,
    ENLARGED,
    INDEXES,
    RELATIONS,
    RUNGS,
    SMALL,
    SQL,
    STABLE,
    TOGETHER,
    TRANSACTION,
    backends_of,
    pooled,
    relations,
)
from pgrerun.lab.instruments import counters, pages, sizes
from pgrerun.lab.server import Cluster, set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

COUNTED_RUNGS = (ALONE, TOGETHER, ENLARGED, APPEND, STABLE, SMALL)
JUDGED_RUNGS = {APPEND, STABLE, SMALL}  # against a printed number, so more exactly
MORE_EXACTLY = 10  # times as many transactions
OURS = (*RELATIONS, *INDEXES)
PLACES = (*OURS, "catalogs", "other_relations")
UNITS = {
    "reads": "pages/transaction",
    "writes": "pages/transaction",
    "wal": "bytes/transaction",
    **{f"reads_of_{place}": "pages/transaction" for place in PLACES},
}
# Transactions that fill the pool with changed pages, and the sessions' caches, before any are
# counted; each changes some ten pages.
FILLING = 8


@experiment(units={"shared_buffers": "pages", "backends": "backends", "settings": "text"})
def rungs(bed: Testbed) -> Iterator[Row]:
    """What is different on each rung of the ladder; `stage` is the report's beside it."""
    for name, rung in RUNGS.items():
        yield {
            "rung": name,
            "stage": rung.stage,
            "script": f"{rung.script}.pgbench",
            "shared_buffers": rung.buffers,
            "backends": backends_of(bed, rung),
            "settings": ", ".join(f"{setting} = {to}" for setting, to in rung.settings.items()),
        }


@experiment(
    units={
        "tuples": "rows",
        "pages": "pages",
        "tuples_per_page": "rows/page",
        "levels": "levels",
    }
)
def relation_sizes(bed: Testbed) -> Iterator[Row]:
    """The relations and their indices as loaded."""
    bank = relations(bed)
    bank.load(bed.server)
    columns = ["relation", "kind", "tuples", "pages", "tuples_per_page", "levels"]
    facts = bank.facts(bed.server)[columns]  # an index has no rows to a page
    yield from facts.astype(object).where(facts.notna(), None).to_dict("records")


@experiment(units=UNITS)
def io(bed: Testbed) -> Iterator[Row]:
    """Pages read and written per transaction in steady state, on the rungs of the ladder.

    A count, not a race: transactions run one after the other on connections that have run
    some before (taking turns where a rung has several), so that neither the machine's speed
    nor the first transaction's catalogs enter. Each rung begins with relations loaded anew.
    """
    counting: dict[Cluster, counters.Counters] = {}
    with ExitStack() as stack:

        def count(block: Block, rung: str) -> dict[str, float]:
            cluster = pooled(bed, RUNGS[rung].buffers)
            if cluster not in counting:
                counter = counters.Counters(cluster, settle=0.02)
                counting[cluster] = stack.enter_context(counter)
                # the same pages are written, and nobody waits until a disk has them
                stack.enter_context(cluster.reloaded(fsync="off"))
            load_anew(bed, cluster)
            counting[cluster].learn()  # which reads catalogs: before the pool is filled
            return per_transaction(bed, rung, cluster, counting[cluster], block)

        yield from bed.compare(count, {"rung": COUNTED_RUNGS}, pairs=5, warmup=0)


def per_transaction(
    bed: Testbed, name: str, cluster: Cluster, counter: counters.Counters, block: Block
) -> dict[str, float]:
    """One observation of a rung, with metrics as in `UNITS`, on a cluster that is prepared."""
    rung, bank, draws = RUNGS[name], relations(bed), random.Random(block.seed)
    number = backends_of(bed, rung)
    counted = bed.parameters.counted * (MORE_EXACTLY if name in JUDGED_RUNGS else 1)
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
    frame = delta.relations
    place = frame["relation"].where(frame["relation"].isin(PLACES), "other_relations")
    place = place.where(~frame["kind"].str.startswith("catalog"), "catalogs")
    read = frame.groupby(place)["read"].sum().reindex(PLACES, fill_value=0) / counted
    metrics = {"reads": delta.reads.sum(), "writes": delta.writes.sum(), "wal": delta.wal_bytes}
    metrics = {name: float(found) / counted for name, found in metrics.items()}
    return metrics | read.add_prefix("reads_of_").to_dict()


# The report's bound counts the first two and assumes the next two to be in the pool.
LEAF, OLD_VERSION = "leaf", "replaced_tuple"
ROOT, LAST_PAGE = "root", "last_page"
ROOMY, CATALOG = "page_with_room", "catalog"
_KINDS = {
    "btree leaf": LEAF,
    "heap": OLD_VERSION,
    "btree root": ROOT,
    "btree inner": "inner",
    "btree meta": "meta",
    "vm": "visibility_map",
    "fsm": "free_space_map",
}
KINDS = (LEAF, OLD_VERSION, ROOT, LAST_PAGE, ROOMY, *list(_KINDS.values())[3:], CATALOG)


@experiment(
    units={f"{verb}_{kind}": "pages" for verb in ("read", "changed") for kind in KINDS},
    needs=["superuser"],
)
def touched(bed: Testbed) -> Iterator[Row]:
    """The distinct pages of single transactions, each from an empty pool: read, and changed.

    The connection has run a transaction before, so its caches of the catalogs are warm:
    the steady state of the report's bound. A row per transaction, a metric per kind of page.
    """
    server, bank, script = bed.server, relations(bed), SQL.script(TRANSACTION)
    bank.load(server)

    def transaction(block: Block, sample: str) -> dict[str, float]:
        draws = random.Random(block.seed)
        found = pages.touched(server, partial(bank.run_once, draws=draws, script=script))
        with server.connect() as connection:
            kinds = kinds_of(found, sizes.pages_of(connection, OURS))
        metrics = {}
        for verb, chosen in (("read", found.index), ("changed", found.index[found["dirty"]])):
            counted = kinds[chosen].value_counts().reindex(KINDS, fill_value=0)
            metrics |= counted.add_prefix(f"{verb}_").astype(int).to_dict()
        return metrics

    many = bed.parameters.counted
    yield from bed.compare(transaction, {"sample": ["a transaction"]}, pairs=many, warmup=0)


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
