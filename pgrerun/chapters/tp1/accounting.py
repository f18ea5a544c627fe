"""Which pages a transaction needs, which it reads, and how two accounts of that agree."""

import random
from contextlib import ExitStack
from collections.abc import Callable, Mapping
from functools import cache, partial

import pandas as pd

from pgrerun import published, statistics, tables
from pgrerun.chapter import Chapter
from pgrerun.chapters.tp1.ladder import (
    ALONE,
    APPEND,
    ENLARGED,
    INDEXES,
    NOT_WAITING,
    POOL_ENLARGED,
    RELATIONS,
    STABLE,
    TOGETHER,
    Fresh,
    Rung,
    named,
    pool,
    relations,
)
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import counters, pages, pgbench, processes
from pgrerun.server import Cluster, Server, set_session


IO_RUNGS = (ALONE, TOGETHER, ENLARGED, APPEND, STABLE)
PLACES = (*RELATIONS, *INDEXES, "catalogs", "other relations")
IO_UNITS = {
    "reads": "pages/transaction",
    "writes": "pages/transaction",
    "wal": "bytes/transaction",
    **{f"reads of {place}": "pages/transaction" for place in PLACES},
}


def io(chapter: Chapter) -> None:
    """Pages read and written per transaction in steady state, on the rungs of the ladder.

    A count, not a race: transactions run one after the other on connections that have run
    some before (taking turns where a rung has several), so that neither the machine's speed
    nor the first transaction's catalogs enter.
    """
    fresh = Fresh(chapter, restart=False)
    with ExitStack() as stack:
        counter_of = cache(lambda cluster: stack.enter_context(counters.Counters(cluster, settle=0.02)))

        def prepare(rung: Rung, block: Block) -> None:
            if fresh(rung, block):  # the counter reads catalogs to learn of new relations: before the pool is filled
                counter_of(pool(chapter, rung)).idle_noise()

        arms = [Arm(name, partial(_account, chapter, counter_of, named(name)), partial(prepare, named(name))) for name in IO_RUNGS]
        chapter.compare("io", arms, IO_UNITS, pairs=5, warmup=0)


FILLING = 4  # transactions that fill the pool, and the sessions' caches, before any are counted; each needs some twenty pages


def as_it_is(chapter: Chapter) -> None:
    """Pages looked at and read per transaction, and the log, in the server's own pool and under its own settings.

    For somebody's server. Pages are those of our own relations, by place; the log is everybody's.
    """
    relations(chapter).load(chapter.server)
    units = {f"{verb} {place}": "pages/transaction" for verb in (LOOKED_AT, READ) for place in OURS}
    arm = Arm(AS_IT_IS, partial(_accessed, chapter))
    chapter.compare(AS_IT_IS, [arm], units | {"wal": "bytes/transaction", "others": "transactions"}, warmup=0)


AS_IT_IS, LOOKED_AT, READ = "as it is", "looked at", "read"
OURS = (*RELATIONS, *INDEXES)


def _accessed(chapter: Chapter, block: Block) -> dict[str, float]:
    server, tp1, draws = chapter.server, relations(chapter), random.Random(block.seed)
    transactions = chapter.parameters.counted
    with counters.Counters(server) as counter, server.connect() as backend:
        for _ in range(FILLING):
            tp1.run_once(backend, draws)
        with counter.measured(backend) as delta:
            for _ in range(transactions):
                tp1.run_once(backend, draws)
    frame = delta.relations
    ours = frame[(frame["schema"] == server.schema) & frame["relation"].isin(OURS)].set_index("relation")
    metrics = {}
    for verb, pages_of in ((LOOKED_AT, ours["read"] + ours["hit"]), (READ, ours["read"])):
        metrics |= {f"{verb} {place}": float(pages_of.get(place, 0)) / transactions for place in OURS}
    # each autocommit statement outside of a block is a transaction as well: the probe's own are a handful
    return metrics | {"wal": delta.wal_bytes / transactions, "others": max(0.0, delta.database["commits"] - transactions)}


def _account(chapter: Chapter, counter_of: Callable[[Cluster], counters.Counters], rung: Rung, block: Block) -> dict[str, float]:
    cluster, tp1 = pool(chapter, rung), relations(chapter)
    counted, draws = chapter.parameters.counted, random.Random(block.seed)
    with ExitStack() as stack:
        backends = [stack.enter_context(cluster.connect()) for _ in range(rung.backends or chapter.parameters.clients)]

        for backend in backends if rung.stable else ():
            set_session(backend, NOT_WAITING)

        def run(transactions: int) -> None:
            for number in range(transactions):
                backend = backends[number % len(backends)]
                tp1.run_once(backend, draws, probes=rung.probes, checkpoint=rung.force)

        run(max(FILLING, len(backends)))
        with counter_of(cluster).measured(*backends) as delta:
            run(counted)
    each = delta.per(counted)
    metrics = {"reads": each["reads"], "writes": each["writes"], "wal": each["wal_bytes"]}
    return metrics | (_by_place(delta) / counted).add_prefix("reads of ").to_dict()


def _by_place(delta: counters.Delta) -> pd.Series:
    """Pages read, one row for each of `PLACES`."""
    frame = delta.relations
    place = frame["relation"].where(frame["relation"].isin(PLACES), "other relations")
    place = place.where(~frame["kind"].str.startswith("catalog"), "catalogs")
    return frame.groupby(place)["read"].sum().reindex(PLACES, fill_value=0)


def touched_pages(chapter: Chapter) -> None:
    """The distinct pages of single transactions, each from an empty pool: read, and changed.

    The connection has run a transaction before, so its caches of the catalogs are warm:
    the steady state of the report's bound. One observation per transaction; metrics are
    named "read: KIND" and "changed: KIND", by kind of page.
    """
    server, tp1 = chapter.server, relations(chapter)
    server.require("superuser")
    tp1.load(server)

    def one(block: Block) -> dict[str, float]:
        draws = random.Random(block.seed)
        found = pages.touched(server, lambda connection: tp1.run_once(connection, draws))
        kind = _kinds(found, _pages(server))
        read = kind.value_counts().reindex(KINDS, fill_value=0).add_prefix("read: ")
        changed = kind[found["dirty"]].value_counts().reindex(KINDS, fill_value=0).add_prefix("changed: ")
        place = found["relation"].where(found["relation"].isin(PLACES), "catalogs")
        read_of = place.value_counts().reindex(PLACES, fill_value=0).add_prefix("read of ")
        changed_of = place[found["dirty"]].value_counts().reindex(PLACES, fill_value=0).add_prefix("changed of ")
        return {**read, **changed, **read_of, **changed_of}

    units = {f"{verb}: {kind}": "pages" for verb in ("read", "changed") for kind in KINDS}
    units |= {f"{verb} of {place}": "pages" for verb in ("read", "changed") for place in PLACES}
    chapter.compare("touched", [Arm("one transaction", one)], units, pairs=chapter.parameters.counted, warmup=0)


def _pages(server: Server) -> dict[str, int]:
    """Pages of each relation and index as they are now."""
    with server.connect() as connection:
        query = "SELECT relname, pg_relation_size(oid) / 8192 FROM pg_class WHERE relname = ANY(%s) AND relnamespace = current_schema()::regnamespace"
        return dict(connection.execute(query, [[*RELATIONS, *INDEXES]]).fetchall())


# The report's bound counts the first two and assumes the next two to be in the pool.
LEAF, OLD_VERSION, ROOT, LAST_PAGE = "B-tree leaf", "heap, replaced tuple", "B-tree root", "heap, last page"
ROOMY = "heap, page with room"
_KINDS = {"btree leaf": LEAF, "heap": OLD_VERSION, "btree root": ROOT, "btree inner": "B-tree inner"}
_KINDS |= {"btree meta": "B-tree meta", "vm": "visibility map", "fsm": "free space map"}
KINDS = (LEAF, OLD_VERSION, ROOT, LAST_PAGE, ROOMY, *list(_KINDS.values())[3:], "catalog")


def _kinds(found: pd.DataFrame, pages_now: Mapping[str, int]) -> pd.Series:
    """What each touched page is, one of `KINDS`.

    Of the heap pages of one relation the last is where tuples are appended; of the others
    the first holds the tuple that was replaced, and any more were found to have room.
    """
    last = found["relation"].map(pages_now) - 1
    kind = found["kind"].map(_KINDS).where(found["relation"].isin([*RELATIONS, *INDEXES]), "catalog")
    heap = kind == OLD_VERSION
    kind = kind.mask(heap & (found["block"] >= last), LAST_PAGE)
    others = found[heap & (kind == OLD_VERSION)].groupby("relation").cumcount()
    return kind.mask(others.reindex(found.index) > 0, ROOMY)


def accounts_of_io(chapter: Chapter) -> tables.Table:
    """I/O of the rung without probing, by PostgreSQL's counters and by the process table.

    See `processes.reconcile` for the columns; bytes are per transaction.
    """
    cluster, tp1 = pool(chapter, named(APPEND)), relations(chapter)
    tp1.load(cluster)
    with counters.Counters(cluster) as counter:
        cost = processes.connection_cost(cluster, counter)
        with counter.measured() as delta:
            done = pgbench.run(
                cluster, tp1.script(checkpoint=True), transactions=5 * chapter.parameters.counted,
                variables=tp1.variables(cluster), seed=chapter.parameters.seed,
            )
    frame = processes.reconcile(delta, cost)
    frame[["counters", "processes", "difference", "pages"]] /= done.transactions
    return tables.table(frame, "Bytes per transaction by two accounts; pages are those of the counters")


def touched_range(chapter: Chapter, kinds: tuple[str, ...] = KINDS) -> tables.Table | None:
    """Per kind of page, how many a transaction touches and changes: least and most over the sample."""
    rows = []
    for kind in kinds:
        read, changed = (chapter.table("touched", f"{verb}: {kind}") for verb in ("read", "changed"))
        if not read.empty:
            spread = [int(value) for frame in (read, changed) for value in (frame.min().min(), frame.max().max())]
            rows.append((kind, *spread))
    columns = ["kind of page", "touched, least", "touched, most", "changed, least", "changed, most"]
    return tables.table(pd.DataFrame(rows, columns=columns), "Pages of one transaction, over the sample")


def by_relation(chapter: Chapter) -> tables.Table | None:
    """Pages per transaction by relation and index: touched, changed, and read from disk without probing.

    Touched and changed are means over single transactions from an empty pool; maps of a
    relation count as its own. What is changed is what a forced commit has to write.
    """
    rows = []
    for place in PLACES:
        touched, changed = (chapter.table("touched", f"{verb} of {place}") for verb in ("read", "changed"))
        read = chapter.table("io", f"reads of {place}")
        if not touched.empty and not read.empty:
            rows.append((place, *(float(frame.mean().iloc[0]) for frame in (touched, changed)), read[APPEND].mean()))
    columns = ["relation", "pages touched", "pages changed", "pages read, no probing"]
    return tables.table(pd.DataFrame(rows, columns=columns), "Pages per transaction, by relation and index")


def bound_touched(chapter: Chapter) -> tables.Table | None:
    """The pages that the report's bound counts, as touched by every transaction of the sample."""
    rows = []
    for kind in (LEAF, OLD_VERSION, ROOT):
        read = chapter.table("touched", f"read: {kind}")
        if not read.empty:
            rows.append((kind, int(read.min().min()), int(read.max().max())))
    return tables.table(pd.DataFrame(rows, columns=["kind of page", "least", "most"]), "Touched by each transaction")


def over_bound(chapter: Chapter, rung: str) -> statistics.Interval | None:
    """Pages read per transaction on a rung over the report's bound of reads."""
    reads = chapter.table("io", "reads")
    return None if reads.empty else statistics.median(reads[rung] / published.cell("tp1_bound", "total", "reads"))


def bounded(chapter: Chapter, rung: str) -> dict[str, statistics.Interval] | None:
    """Pages read and pages written per transaction on a rung."""
    medians = {metric: chapter.median("io", metric, rung) for metric in ("reads", "writes")}
    return None if None in medians.values() else medians


def pool_facts(chapter: Chapter) -> dict[str, bool] | None:
    """What the report says of sixteen and forty-eight pages, each checked by a count."""
    reads = chapter.ratio("io", "reads", TOGETHER, ENLARGED)
    touched = sum((chapter.table("touched", f"read: {kind}") for kind in KINDS), start=0)
    catalogs = chapter.table("io", "reads of catalogs")
    if reads is None or chapter.table("touched", f"read: {LEAF}").empty:
        return None
    return {
        "a pool of sixteen pages reads more than one of forty-eight": reads.low > 1,
        "forty-eight pages hold all that a transaction touches": bool((touched <= POOL_ENLARGED).all().all()),
        "catalogs are read again in steady state": bool(catalogs[ALONE].median() >= 1),
    }
