"""What the experiments say about the claims, and tables of what was counted."""

from functools import partial
from typing import Any

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.tp1.experiments import catalogs, commit, overlap, page_counts, slow_disk
from pgrerun.chapters.tp1.experiments.throughput import NOT_REUSED, REUSED
from pgrerun.chapters.tp1.variants import (
    ALONE,
    APPEND,
    ENLARGED,
    FLUSHING,
    LONE,
    PAIR,
    POOL_1990,
    POOL_ENLARGED,
    PROBING,
    REPORT_BATCH,
    RUNGS,
    STABLE,
    TOGETHER,
    printed_ladder,
)
from pgrerun.lab.models import closed_network, workstation
from pgrerun.page import tables
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, fact, greater, less, supporting

OWN = "on the machine's own disk"
CALIBRATED = 6_000  # cycles of the simulated program that are as good as any more


# ---- throughput, on the machine's own disk and where backends wait for one


def last_over_first(chapter: Chapter, measured: str = slow_disk.LADDER) -> Interval:
    """Throughput of the last rung that the report climbed over that of the first."""
    return chapter.ratio(measured, "throughput", STABLE, ALONE)


def lone_share(chapter: Chapter, rung: str = LONE) -> Interval:
    """Share of its time that a rung's lone backend computes on the slowed disk."""
    return chapter.median(slow_disk.LADDER, "processor", rung)


def short_of_doubling(chapter: Chapter, measured: str = slow_disk.LADDER) -> dict[str, Interval]:
    """Twice the throughput of one backend over that of several, nobody waiting for checkpoints.

    Named, since a bare number reads like the gain of which the claim speaks.
    """
    ratio = chapter.ratio(measured, "throughput", LONE, PAIR).times(2)
    return {"twice the throughput of one backend, relative to that of several:": ratio}


def reads_of_a_second(chapter: Chapter) -> Interval:
    """Requests to read per transaction on the slowed disk, of several backends over one's."""
    return chapter.ratio(slow_disk.LADDER, "reads", PAIR, LONE)


def short_of_perfect(chapter: Chapter, measured: str = slow_disk.LADDER) -> dict[str, Interval]:
    """Throughput under perfect overlap, predicted from one backend, over that of several.

    Named as in `short_of_doubling`.
    """
    throughput, share = chapter.table(measured, "throughput"), chapter.table(measured, "processor")
    predicted = []
    rates = throughput[LONE].where(throughput[LONE] > 0)  # of no transactions nothing is predicted
    for rate, busy in zip(rates, share[LONE].clip(upper=1), strict=True):
        demands = {"processor": busy / rate, "disk": (1 - busy) / rate}
        solution = closed_network.perfect_overlap(demands, chapter.parameters.clients)
        predicted.append(solution.throughput)
    found = statistics.ratio(predicted, throughput[PAIR], seed=chapter.parameters.seed)
    words = "throughput that perfect overlap predicts, relative to that of several:"
    return {words: statistics.on_disk(found, chapter.disk(measured))}


def program_short_of_perfect(chapter: Chapter) -> Interval:
    """Perfect overlap's processor share of two copies of the program over the measured one."""
    share = chapter.table("overlap", "processor")
    one, two = overlap.COPIES
    return statistics.ratio(
        (2 * share[one]).clip(upper=1), share[two], seed=chapter.parameters.seed
    )


def overlap_predicted(chapter: Chapter) -> pd.DataFrame:
    """Processor share of two copies as three models predict it from one copy's, then and now.

    Rows for a chart: panel ("1990", "now"), label, value, kind.
    """
    one_copy = overlap.COPIES[0]
    alone = {"1990": printed.table("tp1_overlap").at["one", "cpu_percent"] / 100}
    measured = dict(chapter.by_provenance("overlap")).get("measured")
    if measured is not None:
        alone["now"] = wide(measured, "processor")[one_copy].median()
    rows = []
    for when, share in alone.items():
        demands = {"processor": share, "disk": 1 - share}
        models = {
            "perfect overlap": closed_network.perfect_overlap(demands, 2),
            "queueing, disk serves one": closed_network.solve(demands, 2),
            "queueing, disk serves all": closed_network.solve(demands, 2, delays={"disk"}),
        }
        for name, solution in models.items():
            rows.append((when, name, solution.utilization["processor"], "simulated"))
    return pd.DataFrame(rows, columns=["panel", "label", "value", "kind"])


def simulated_ladder(chapter: Chapter) -> pd.DataFrame:
    """The report's rungs on its own disk, by simulation, for one backend and for two.

    The disk's rate follows from the first rung, the variability of service from the
    report's test program; the throughputs of the later rungs are predicted, not fitted.
    The processor's demand is printed for the first two rungs only; later ones keep the
    second's. Columns: name, backends, printed, simulated (transactions/s), off (relative).
    """
    stages = printed_ladder()
    # What the text doesn't print of a stage, it has from the stage before.
    demands = stages[["cpu_s", "writes"]].ffill()
    program = printed.table("tp1_overlap")["cpu_percent"] / 100
    transactions = chapter.parameters.simulated_transactions
    variability = workstation.calibrate_variability(
        program["one"], program["two"], transactions=min(4 * transactions, CALIBRATED)
    )
    rows = []
    for stage, in_print in stages.iterrows():
        demand = workstation.Demand(
            processor=demands.at[stage, "cpu_s"],
            reads=in_print["reads"],
            writes=demands.at[stage, "writes"],
            force=RUNGS[in_print["name"]].script in (PROBING, FLUSHING),
        )
        for backends in [in_print["backends"]] if pd.notna(in_print["backends"]) else [1, 2]:
            simulated = workstation.simulate(
                demand,
                backends=int(backends),
                disk_rate=stages.at["one", "implied_disk"],
                variability=variability,
                transactions=transactions,
                seed=chapter.parameters.seed,
            ).throughput
            off = simulated / in_print["tp1"] - 1
            rows.append((in_print["name"], int(backends), in_print["tp1"], simulated, off))
    return pd.DataFrame(rows, columns=["name", "backends", "printed", "simulated", "off"])


# ---- pages


def _spread(chapter: Chapter, verb: str, kind: str) -> tuple[int, int]:
    """The least and the most pages of a kind that a transaction of the sample reads or changes."""
    pages = chapter.table("touched", f"{verb}: {kind}")[page_counts.ONE]
    return int(pages.min()), int(pages.max())


def bound_touched(chapter: Chapter) -> tables.Table:
    """The pages that the report's bound counts, as touched by every transaction of the sample."""
    kinds = (page_counts.LEAF, page_counts.OLD_VERSION, page_counts.ROOT)
    rows = [(kind, *_spread(chapter, "read", kind)) for kind in kinds]
    frame = pd.DataFrame(rows, columns=["kind of page", "least", "most"])
    return tables.table(frame, "Touched by each transaction")


def counted(chapter: Chapter, rung: str, *metrics: str) -> dict[str, Interval]:
    """Pages "reads" and "writes" per transaction on a rung, or one of them."""
    return {metric: chapter.median("io", metric, rung) for metric in metrics or ("reads", "writes")}


def pool_facts(chapter: Chapter) -> dict[str, bool | None]:
    """What the report says of sixteen and forty-eight pages, each checked by a count."""
    reads = chapter.ratio("io", "reads", TOGETHER, ENLARGED)
    catalogs_read = chapter.table("io", "reads of catalogs")[LONE]
    touched = sum(chapter.table("touched", f"read: {kind}") for kind in page_counts.KINDS)
    return {
        "a pool of sixteen pages reads more than one of forty-eight": greater(reads),
        "forty-eight pages hold all that a transaction touches": (
            touched[page_counts.ONE].max() <= POOL_ENLARGED
        ),
        "catalogs are read again in steady state": catalogs_read.median() >= 1,
    }


def probe_facts(
    chapter: Chapter, room: pd.DataFrame, batches: int = 1, found: str = "with_room"
) -> dict[str, Part]:
    """Whether a random page has no room after so many of the report's batches, and what looking
    costs; that the pages are read is the script's command.

    room: of `heap.pages_with_room`, whose column `found` counts. Each
    relation is probed as often as any other.
    """
    then = room[room["transactions"] == batches * REPORT_BATCH]
    extra = chapter.ratio("io", "reads", ENLARGED, APPEND)
    fails = 1 - (then[found] / then["pages"]).mean()
    return {
        "a random page mostly has no room for another version": fact(fails > 0.5, fails < 0.5),
        "most pages that are looked at have to be read": supporting(greater(extra)),
    }


def reuse_facts(chapter: Chapter) -> dict[str, Part]:
    """Whether reusing space costs work, and whether it is space worth having.

    Less than a tenth of the growth saved would be "little improvement".
    """
    ratio = partial(chapter.ratio, "reuse", variant=REUSED, base=NOT_REUSED)
    accesses, wal, growth = (ratio(metric) for metric in ("accesses", "wal", "growth"))
    return {
        "reusing space takes more page accesses": fact(greater(accesses), less(accesses)),
        "reusing space writes more WAL": fact(greater(wal), less(wal)),
        "reusing space hardly slows growth": fact(greater(growth, 0.9), less(growth, 0.9)),
        "reusing space costs throughput": supporting(less(ratio("throughput"))),
    }


def replaced_by_insertion(versions: pd.DataFrame) -> dict[str, bool]:
    """The two halves of a replacement, as found on the page (`heap.versions_of_one_tuple`)."""
    after = versions[versions["when"] == "after"]
    old = after["line_pointer"].isin(versions.loc[versions["when"] == "before", "line_pointer"])
    return {
        "the replaced version stays, marked invalid by the replacing transaction": (
            after.loc[old, "ended_by"].tolist() == [True]
        ),
        "a new version was inserted by that transaction": (
            after.loc[~old, "made_by"].tolist() == [True]
        ),
    }


# ---- catalogs


def catalog_pages(catalog_sizes: pd.DataFrame) -> dict[str, float]:
    """Pages of the catalog that the report names, and of all."""
    pages = catalog_sizes.set_index("catalog")["pages"]
    return {"pg_attribute": pages["pg_attribute"], "all system catalogs": pages.sum()}


def first_facts(chapter: Chapter) -> dict[str, bool]:
    """Whether a first transaction still reads as much with the pool of 1990, and why."""
    pool = next(name for name, size in catalogs.POOLS.items() if size == POOL_1990)
    reads = chapter.table("first transaction", "first: pages read")[pool]
    scans = chapter.table("first transaction", "first: scans of named catalogs")[pool]
    many = printed.cell("tp1_catalogs", "first_transaction_reads", "value")
    named = ", ".join(catalogs.SCANNED)
    return {
        "a first transaction reads more than eighty pages": (reads > many).all(),
        f"a first transaction scans {named} from end to end": (scans > 0).all(),
    }


def scan_over_index(chapter: Chapter) -> float:
    """Catalog pages fetched without the catalogs' indexes over those with them, catalogs grown.

    The least of the blocks. A count and no sample: the keys that a transaction draws don't change
    which catalogs it reads.
    """
    fetched = chapter.table("catalog access", "first: catalog pages fetched")
    by_scan, by_index = (
        fetched[f"{access}, {catalogs.GROWN}"] for access in (catalogs.BY_SCAN, catalogs.BY_INDEX)
    )
    return (by_scan / by_index).min()


def hard_wired(chapter: Chapter) -> dict[str, bool]:
    """Whether access to catalogs is still planned by nobody, and still passes indexes by."""
    fetched = chapter.table("catalog access", "first: catalog pages fetched")
    scans = chapter.table("catalog access", "first: scans of named catalogs")
    usual, unwanted = (
        f"{access}, {catalogs.SMALL}" for access in (catalogs.BY_INDEX, catalogs.NOT_PLANNED)
    )
    return {
        "the planner's settings don't change how catalogs are reached": (
            (fetched[usual] == fetched[unwanted]).all()
        ),
        "useful indexes are passed by": (scans[usual] > 0).all(),
    }


def accesses_by_hash(chapter: Chapter, lookup: pd.DataFrame) -> dict[str, Any]:
    """Page accesses that lead to one attribute: by a hash index, by a backend's hashed cache.

    The second is what PostgreSQL made of the proposal: each backend keeps catalog tuples it
    has seen in memory, hashed on relation and attribute number, and no access method finds them. It
    is left out on a server whose pool can't be emptied. lookup: of `catalogs.attribute_lookup`.
    """
    of_hash = lookup.loc["hash", ["index pages", "heap pages"]].sum()
    found = {"pages of a hash index and of what it leads to": of_hash}
    observations = chapter.run.observations("first transaction")
    if not observations.empty:
        again = wide(observations, "second: catalog pages fetched")
        what = "catalog pages of a whole transaction whose backend has cached what it needs"
        found[what] = supporting(again.to_numpy().max())
    return found


# ---- commit


def recovery_seen(recovery: commit.Recovery) -> pd.DataFrame:
    """What the crash showed, one row per finding, for the page."""
    rows = {
        "transactions committed before the crash": recovery.committed,
        "history tuples after recovery": recovery.kept,
        "balances of the four relations agree": recovery.balanced,
        "pages of relations written before the crash": int(recovery.data_pages_written),
        "the open transaction's versions on the disk at the crash": recovery.uncommitted_on_disk,
        "of them on the disk after recovery": recovery.uncommitted_left,
        "of them visible after recovery": recovery.uncommitted_visible,
        "versions before them that are visible": recovery.former_visible,
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())}, dtype=object)


def flush_facts(recovery: commit.Recovery) -> dict[str, bool]:
    """The report's rule that a transaction's pages must be on disk before it commits."""
    lost = recovery.kept < recovery.committed or not recovery.balanced
    return {
        "a commit writes the pages it changed": recovery.data_pages_written > 0,
        "without that a crash loses committed changes": lost,
    }


def undo_facts(recovery: commit.Recovery, written: pd.DataFrame) -> dict[str, bool]:
    """The report's claim for storage that never overwrites: nothing to undo, only status to log.

    written: of `commit.wal_by_kind`.
    """
    others = written.set_index("resource_manager")["bytes"].drop("Transaction")
    on_disk = recovery.uncommitted_on_disk
    return {
        "recovery leaves an open transaction's versions where the crash left them": (
            0 < on_disk == recovery.uncommitted_left
        ),
        "none of them is visible, and all that they were to replace are": (
            recovery.uncommitted_visible == 0 and recovery.former_visible == on_disk
        ),
        "the log holds transaction status and nothing else": supporting(others.sum() == 0),
    }
