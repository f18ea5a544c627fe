"""TP1: what the printed tables of the 1990 report (3.2.2) imply, and where they disagree."""

import pandas as pd

from pgrerun.record.printed.reading import Check, cell, table


def seconds(elapsed: str) -> float:
    """'7:44' (minutes:seconds) as seconds."""
    minutes, rest = elapsed.split(":")
    return 60.0 * int(minutes) + float(rest)


def _stages() -> pd.DataFrame:
    """Adds, per stage: throughput against stage one and against twice it, pool size (kB), time per
    transaction (s; all backends together), its CPU and its other part (s), I/O requests per
    transaction and per second, and the disk's speed (I/O per second) that a run of one backend
    implies when it waits for the disk in all time that isn't CPU time.
    """
    t = table("tp1_stages")
    t["relative"] = t.tp1 / t.tp1["one"]
    t["pool_kb"] = t.buffers * cell("tp1_catalogs", "page_size", "value")
    t["elapsed_s"] = 1 / t.tp1
    t["cpu_s"] = t.elapsed_s * t.cpu_percent / 100
    t["wait_s"] = t.elapsed_s - t.cpu_s
    t["ios"] = t.reads + t.writes
    t["ios_per_s"] = t.ios * t.tp1
    t["implied_disk"] = (t.ios / t.wait_s).where(t.backends == 1)
    # Two backends that overlap perfectly keep the busier of CPU and disk busy all the time.
    one = t.loc["one"]
    busier = max(one.cpu_s, one.wait_s)
    ideal = min(2 * one.tp1, 1 / busier)
    t.loc["two", "recomputed_perfect_tp1"] = ideal
    t.loc["two", "recomputed_perfect_cpu_percent"] = 100 * one.cpu_s * ideal
    t["shortfall_of_doubling"] = (2 * one.tp1 / t.tp1).where(t.index == "two")
    return t


def _overlap() -> pd.DataFrame:
    """Adds, per run: elapsed, CPU and other time (s), CPU per copy (s), the elapsed time (s) and
    the CPU use (%) of perfect overlap, how far the run falls short of it, and I/O requests (each
    iteration reads once and writes once), the disk speed that one copy implies, and requests per
    second of elapsed time.
    """
    t = table("tp1_overlap")
    t["elapsed_s"] = t.elapsed.map(seconds)
    t["cpu_s"] = t.elapsed_s * t.cpu_percent / 100
    t["wait_s"] = t.elapsed_s - t.cpu_s
    t["cpu_s_per_copy"] = t.cpu_s / t.copies
    one = t.loc["one"]
    # Copies overlap with each other, never one with itself.
    t["perfect_s"] = [max(one.elapsed_s, n * one.cpu_s, n * one.wait_s) for n in t.copies]
    t["recomputed_perfect_cpu_percent"] = 100 * t.copies * one.cpu_s / t.perfect_s
    t["shortfall"] = t.elapsed_s / t.perfect_s
    t["ios"] = 2 * t.iterations * t.copies
    t["implied_disk"] = (t.ios / t.wait_s).where(t.copies == 1)
    t["ios_per_s"] = t.ios / t.elapsed_s
    return t


def _relations() -> pd.DataFrame:
    """Adds size (MB of 10^6 bytes), the fewest pages that the tuples' bytes fill, and the pages at
    as many stored bytes per tuple as the printed 218 pages of a 10-K relation imply."""
    t = table("tp1_relations")
    page = 1024 * cell("tp1_catalogs", "page_size", "value")
    stored = cell("tp1_catalogs", "relation_pages", "value") * page / t.tuples.max()
    t["megabytes"] = t.tuples * t.tuple_bytes / 1e6
    t["least_pages"] = t.tuples * t.tuple_bytes / page
    t["implied_pages"] = t.tuples * stored / page
    t["implied_tuple_bytes"] = stored
    return t


def _bound() -> pd.DataFrame:
    """Adds what the parts sum to, in the total row."""
    t = table("tp1_bound")
    for column in ("reads", "writes"):
        t.loc["total", f"recomputed_{column}"] = t[column].drop("total").sum()
    return t


DERIVED = {
    "tp1_stages": _stages,
    "tp1_overlap": _overlap,
    "tp1_relations": _relations,
    "tp1_bound": _bound,
}


def checks() -> list[Check]:
    """Print against print for the TP1 chapter."""
    return [
        *_check_perfect_overlap(),
        *_check_disk_of_stages(),
        *_check_overlapping_programs(),
        *_check_least_requests(),
        *_check_database_size(),
        *_check_transactions(),
    ]


def _check_perfect_overlap() -> list[Check]:
    stages = _stages()
    two = stages.loc["two"]
    stable = stages.loc["stable"]
    factor = cell("tp1_summary", "rating_factor", "value")
    return [
        Check(
            "3.2.2, perfect overlap, throughput",
            f"{two.perfect_tp1:g}",
            f"{two.recomputed_perfect_tp1:.3f}",
            agrees=abs(two.recomputed_perfect_tp1 - two.perfect_tp1) <= 0.005,
            note=(
                "The disk, busy all the time, allows one transaction per wait time of the single"
                " backend."
            ),
        ),
        Check(
            "3.2.2, perfect overlap, CPU",
            f"{two.perfect_cpu_percent:g} %",
            f"{two.recomputed_perfect_cpu_percent:.2f} %",
            agrees=abs(two.recomputed_perfect_cpu_percent - two.perfect_cpu_percent) <= 0.005,
            note=(
                "It is the ratio of CPU to wait time of the single backend; two of its four digits"
                " come from a CPU use printed as a whole percentage."
            ),
        ),
        Check(
            "Abstract and 5, “doubled”",
            f"{factor:g}",
            f"{stable.relative:.2f}",
            agrees=abs(stable.relative - factor) <= 0.05,
            note=(
                "Last stage over first. If the last stage ran two backends, which the text doesn't"
                f" say, the fair comparison is with the second stage: {stable.tp1 / two.tp1:.2f}."
            ),
        ),
    ]


def _check_disk_of_stages() -> list[Check]:
    stages = _stages()
    overlap = _overlap()
    one = stages.loc["one"]
    two = stages.loc["two"]
    stable = stages.loc["stable"]
    alone = overlap.loc["one"]
    machine = table("tp1_machine").value
    slow = machine.disk_low
    fast = machine.disk_high
    disk = f"{slow:g} to {fast:g} I/O per second"
    return [
        Check(
            "2.1 against 3.2.2, one backend",
            disk,
            f"{one.implied_disk:.1f}",
            agrees=slow <= one.implied_disk <= fast,
            note=(
                f"{one.ios:.2f} requests in the {one.wait_s:.3f} s per transaction that aren't CPU"
                " time: slower than the disk."
            ),
        ),
        Check(
            "2.1 against 3.2.2, the program alone",
            disk,
            f"{alone.implied_disk:.1f}",
            agrees=slow <= alone.implied_disk <= fast,
            note=(
                f"{alone.ios:,.0f} requests (one read, one write per iteration) in"
                f" {alone.wait_s:.0f} s that aren't CPU time: faster than the disk, so that many a"
                " write can't have waited for it."
            ),
        ),
        Check(
            "2.1 against 3.2.2, two backends",
            f"at most {fast:g} I/O per second",
            f"{two.ios_per_s:.1f}",
            agrees=two.ios_per_s <= fast,
            note="Requests per second of elapsed time.",
        ),
        Check(
            "2.1 against 3.2.2, last stage",
            f"at most {fast:g} I/O per second",
            f"{stable.ios_per_s:.1f}",
            agrees=stable.ios_per_s <= fast,
            note="Requests per second of elapsed time: the disk isn't what limits the last stage.",
        ),
        Check(
            "3.2.2, last stage with one backend",
            disk,
            f"{stable.ios / (stable.elapsed_s - one.cpu_s):.1f}",
            agrees=slow <= stable.ios / (stable.elapsed_s - one.cpu_s) <= fast,
            note=(
                f"If it ran one backend with the first stage's {one.cpu_s:.2f} s of CPU per"
                f" transaction, its {stable.ios:.2f} requests would have had to be this fast:"
                " either two backends ran, or CPU time fell as well."
            ),
        ),
    ]


def _check_overlapping_programs() -> list[Check]:
    overlap = _overlap()
    alone = overlap.loc["one"]
    both = overlap.loc["two"]
    # CPU seconds as far as whole percentages can tell them
    least_alone = 2 * alone.elapsed_s * (alone.cpu_percent - 0.5) / 100
    most_both = both.elapsed_s * (both.cpu_percent + 0.5) / 100
    return [
        Check(
            "3.2.2, the program's share of I/O",
            f"around {alone.intended_io_percent:g} %",
            f"{100 - alone.cpu_percent:g} %",
            agrees=abs(alone.intended_io_percent - (100 - alone.cpu_percent)) <= 5,
            note="What its CPU use leaves over.",
        ),
        Check(
            "3.2.2, CPU of two programs in perfect overlap",
            f"{both.perfect_cpu_percent:g} %",
            f"{both.recomputed_perfect_cpu_percent:.0f} %",
            agrees=abs(both.recomputed_perfect_cpu_percent - both.perfect_cpu_percent) < 0.5,
            note=(
                f"The CPU is the busier device, so perfect overlap would take {both.perfect_s:.0f}"
                f" s instead of {both.elapsed_s:.0f} s."
            ),
        ),
        Check(
            "3.2.2, CPU time of two programs",
            f"{both.cpu_s:.0f} s",
            f"{2 * alone.cpu_s:.0f} s",
            agrees=least_alone <= most_both,
            note=(
                "Twice the program alone. Two copies used less CPU than that, also within rounding"
                f" (at most {most_both:.0f} s against at least {least_alone:.0f} s), although the"
                " text has them paging more."
            ),
        ),
    ]


def _check_least_requests() -> list[Check]:
    relations = _relations()
    bound = _bound()
    total = bound.loc["total"]
    tails = relations.shape[0]
    return [
        Check(
            "3.2.2, six reads",
            f"{total.reads:g}",
            f"{total.recomputed_reads:g}",
            agrees=total.reads == total.recomputed_reads,
            note="Leaf and heap page of three relations.",
        ),
        Check(
            "3.2.2, six writes",
            f"{total.writes:g}",
            f"{total.writes + tails:g}",
            agrees=False,
            note=(
                "The bound lets the last page of a relation stay in the pool, while the same"
                f" section has every dirty page flushed at commit: the tails of {tails} relations"
                " have to be added (the status log isn't counted)."
            ),
        ),
    ]


def _check_database_size() -> list[Check]:
    relations = _relations()
    catalogs = table("tp1_catalogs").value
    machine = table("tp1_machine").value
    megabytes = relations.implied_pages.sum() * catalogs.page_size / 1024
    return [
        Check(
            "2.2 against 3.2.2, pages of a 10-K relation",
            f"{catalogs.relation_pages:g}",
            f"{relations.least_pages.max():.0f}",
            agrees=abs(relations.least_pages.max() / catalogs.relation_pages - 1) < 0.1,
            note=(
                f"100-byte tuples fill fewer pages; {catalogs.relation_pages:g} pages mean"
                f" {relations.implied_tuple_bytes.iloc[0]:.0f} bytes stored per tuple, so the"
                " printed size leaves out the tuple's header."
            ),
        ),
        Check(
            "2.2 against 3.2.2, pages of branch",
            f"{catalogs.relation_pages:g} per relation",
            f"{relations.implied_pages['branch']:.0f}",
            agrees=False,
            note=(
                "At the same stored bytes per tuple; branch has a tenth of the tuples of the"
                " others."
            ),
        ),
        Check(
            "2.1 against 3.2.2, “the database used is large”",
            f"{machine.memory:g} MB of memory",
            f"{megabytes:.1f} MB",
            agrees=megabytes > machine.memory,
            note=(
                "The three relations together: they fit into main memory, only not into the buffer"
                " pool."
            ),
        ),
    ]


def _check_transactions() -> list[Check]:
    stages = _stages()
    bound = _bound()
    one = stages.loc["one"]
    append = stages.loc["append"]
    transaction = table("tp1_transaction").value
    machine = table("tp1_machine").value
    total = bound.loc["total"]
    user_s = transaction.cycles / transaction.transactions / (machine.processor * 1e6)
    return [
        Check(
            "2.2, commands",
            f"{transaction.commands_total:g}",
            f"{transaction.transactions * transaction.commands:g}",
            agrees=transaction.commands_total == transaction.transactions * transaction.commands,
            note="Figure 2.3 has seven commands, begin and end counted.",
        ),
        Check(
            "2.2, “each requiring the fetching of a single record”",
            f"{transaction.commands_total:,g}",
            f"{transaction.transactions * 4:,g}",
            agrees=False,
            note=(
                "Of the seven commands of Figure 2.3 four find a tuple through a B-tree: begin, end"
                " and append find none."
            ),
        ),
        Check(
            "2.1 and 3.1.3 against 3.2.2, CPU per transaction",
            f"{one.cpu_s:.2f} s",
            f"{user_s:.2f} s",
            agrees=user_s / one.cpu_s > 0.5,
            note=(
                f"{transaction.cycles / transaction.transactions / 1e6:.2f} million profiled cycles"
                f" per transaction at {machine.processor:g} MIPS (at about one cycle per"
                " instruction). The profiler saw user mode only: as printed, most CPU time of a"
                " transaction was spent outside it."
            ),
        ),
        Check(
            "3.2.2, reads of the fourth stage",
            f"at most {total.reads:g}",
            f"{append.reads:g}",
            agrees=append.reads <= total.reads,
            note="Below the bound, as some pages are still in the pool.",
        ),
    ]
