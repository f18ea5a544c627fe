"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import math

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.access_paths import evidence
from pgrerun.chapters.access_paths.accounts import AMPLE, DIRECT, KERNEL, pool_pages
from pgrerun.chapters.access_paths.experiments import joins, ranges, trees
from pgrerun.chapters.access_paths.experiments.lookups import AGAIN, COVERING, KEY, variant
from pgrerun.chapters.access_paths.experiments.sorting import KEYS
from pgrerun.lab.instruments import PAGE
from pgrerun.lab.models import visibility as model
from pgrerun.page import narrate, tables
from pgrerun.parameters import time_to_run
from pgrerun.record import printed, statistics
from pgrerun.record.printed import access_paths as in_print

_MIB = 2**20


def apparatus(chapter: Chapter) -> tables.Table:
    """The talk's machine and data, and this run's."""
    then, now = printed.table("access_paths_setup")["value"], chapter.run.environment["machine"]
    accounts = chapter.parameters.accounts
    pool = pool_pages(accounts) * PAGE / _MIB
    version = chapter.run.environment["server"]["version"]
    memory = (
        f"{now['memory_bytes'] / 2**30:,.0f} GB, of which a server may use {pool:,.1f} MB where"
        " memory must be short"
    )
    processors = f"{now['cpus_usable']} processors ({now['cpu_model']})"
    rows = [
        ("system", "PostgreSQL 9.1 and 9.2", f"PostgreSQL {version}"),
        ("machine", "a laptop", processors),
        ("memory", f"{then['memory']:g} GB", memory),
        ("accounts", f"{in_print.accounts():,}", f"{accounts:,}"),
        ("size of accounts", _size(in_print.accounts()), _size(accounts)),
        ("sessions", f"{then['clients']:g}", f"{chapter.parameters.clients}"),
        ("one run", f"{then['minutes']:g} minutes", f"{chapter.parameters.lookups:,} lookups"),
        ("time to run", "", time_to_run("access_paths")),
    ]
    frame = pd.DataFrame(rows, columns=["", "2012", "this run"])
    return tables.table(frame, "Apparatus then and now")


def _size(rows: int) -> str:
    table, (index, _) = in_print.table_pages(rows), in_print.tree_pages(rows)
    return f"{table * PAGE / _MIB:,.0f} MB, each index {index * PAGE / _MIB:,.0f} MB"


def noise(chapter: Chapter) -> narrate.Sentence:
    """The noise floor from the variant that ran twice."""
    return narrate.noise(_floor(chapter))


def _floor(chapter: Chapter) -> statistics.NoiseFloor:
    throughput = chapter.table("lookups", "throughput")
    return statistics.noise_floor(throughput[variant(AMPLE, COVERING)], throughput[AGAIN])


def vacuum_skips(found: pd.DataFrame) -> narrate.Sentence:
    """At how few changed pages VACUUM reads everything."""
    pages = found["scanned"].max()
    everything = found[found["scanned"] == pages].iloc[0]
    before = found[found["scanned"] < pages].iloc[-1]
    return narrate.Sentence(
        f"With one page in {narrate.number(before['every'])} changed, vacuum scans"
        f" {narrate.number(before['scanned'])} of {narrate.count(pages, 'page')}. With one in"
        f" {narrate.number(everything['every'])}, which is {100 / everything['every']:.1f} %, it"
        " scans all of them."
    )


# ---- lookups


_FITS = 0.2  # pages that a lookup reads at most, once its working set is in memory


def _reads(lookups: pd.DataFrame, name: str) -> float:
    """Pages that one lookup of a variant reads, of table and index; the median."""
    return float((wide(lookups, "heap_reads") + wide(lookups, "index_reads"))[name].median())


def reads_per_lookup(chapter: Chapter, lookups: pd.DataFrame) -> narrate.Sentence:
    """What a lookup reads from the disk in either variant, and what the talk's numbers imply."""
    key, covering = (_reads(lookups, variant(DIRECT, index)) for index in (KEY, COVERING))
    implied = printed.derived("access_paths_lookups").reads_per_lookup["covering"]
    pool = pool_pages(chapter.parameters.accounts)
    waited = chapter.median("lookups", "waiting", variant(DIRECT, KEY))
    waiting = narrate.interval(waited.times(100), "%")
    if covering < _FITS < key:
        fits = "its working set fits, that of the other doesn't"
    elif key < _FITS:
        fits = "both working sets fit"
    else:
        fits = "not even its working set fits"
    return narrate.Sentence(
        f"In the pool of {narrate.count(pool, 'page')} a lookup reads {narrate.number(key, 2)}"
        f" pages by the primary key and {narrate.number(covering, 2)} by the covering index:"
        f" {fits}. Lookups by the primary key wait for reads {waiting} of their time. By the talk's"
        f" numbers the covering index still cost about"
        f" {narrate.number(implied, 2)} reads per lookup, if the same disk served both runs."
    )


def kernels_cache(chapter: Chapter, lookups: pd.DataFrame) -> narrate.Sentence:
    """What the kernel's cache makes of the same experiment."""
    gain = chapter.ratio("lookups", "throughput", variant(KERNEL, COVERING), variant(KERNEL, KEY))
    same = narrate.ratio_sentence(
        gain,
        "throughput",
        "lookups by the covering index",
        "lookups by the primary key, both in the small pool over the kernel's cache",
    )
    if max(gain.estimate, 1 / gain.estimate) < _floor(chapter).floor:
        same += "That is within the noise of this run."
    misses = wide(lookups, "heap_reads").median()
    cached, direct = (narrate.number(misses[variant(where, KEY)], 2) for where in (KERNEL, DIRECT))
    return same + (
        f"By the primary key a lookup misses the pool for {cached} pages of the table,"
        f" against {direct} with direct I/O, but here a miss is a copy from the kernel's"
        " memory and not a read."
    )


# ---- index-only scans


def visible_enough(chapter: Chapter) -> narrate.Sentence:
    """Between which shares of all-visible pages an index-only scan begins to pay.

    From the last share at which it loses to the first from which on it gains.
    """
    ratios = {percent: evidence.only_over_plain(chapter, percent) for percent in ranges.FRACTIONS}
    losing = [percent for percent, ratio in ratios.items() if ratio.low > 1]
    undecided = [percent for percent, ratio in ratios.items() if ratio.high >= 1]
    gaining = [percent for percent in ratios if percent > max(undecided, default=-1)]
    if not gaining:
        said = "No share of all-visible pages can be told from which on the index-only scan pays."
    elif not losing:
        said = (
            f"The index-only scan pays from {min(gaining)} % of all-visible pages on, if not"
            " before."
        )
    else:
        said = (
            f"Somewhere between {max(losing)} and {min(gaining)} % of all-visible pages the"
            " index-only scan begins to pay."
        )
    if 0 in losing:
        said += (
            f" With none it takes {narrate.interval(ratios[0])} times as long as a plain index"
            " scan: for every row it asks the map in vain and then does what the other does."
        )
    return narrate.Sentence(said)


def autovacuums_threshold(chapter: Chapter, found: pd.DataFrame) -> narrate.Sentence:
    """When autovacuum comes, counted in updates per page, and what is all-visible by then.

    `found` is what `ranges.updates` returns.
    """
    accounts = chapter.parameters.accounts
    per_page = accounts / in_print.table_pages(accounts)
    updates, last = 0.2 * per_page, found.iloc[-1]
    on_average = model.average_share_unmarked(updates)
    return narrate.Sentence(
        f"After {narrate.number(last['updates'])} updates per page"
        f" {narrate.number(100 * last['fetched'], 1)} % of the rows are looked up in the table"
        f" again, although only {narrate.number(100 * last['updates'] / per_page, 1)} % of them"
        " were updated. Autovacuum at its stock scale factor comes when a fifth of the rows has"
        f" changed. On a page of {narrate.number(per_page, 0)} rows that takes"
        f" {narrate.number(updates, 0)} updates, and one page in"
        f" {narrate.number(round(math.exp(updates), -3))} is still all-visible then. It counts"
        " changes and not time. So if it comes at once each time, from one vacuum to the next"
        f" {narrate.number(100 * on_average, 0)} % of the rows are looked up on average, however"
        " fast or slow the updates come."
    )


# ---- planner


def cost_shape(costs: pd.DataFrame) -> narrate.Sentence:
    """What the estimated cost of an index-only scan is made of."""
    bent, estimated = evidence.refined(costs).values()
    line = "doesn't fall" if bent else "falls"
    left = "another than that" if estimated else "exactly that"
    said = (
        f"The estimated cost {line} in a straight line with the share, and where no page is"
        f" all-visible it is {left} of a plain index scan."
    )
    if not bent and not estimated:
        said += (
            " That is what PostgreSQL 9.2 computed, and it leaves out what was measured above: a"
            " look into the map that finds nothing isn't free."
        )
    return narrate.Sentence(said)


# ---- joins


def stops_early(shapes: pd.DataFrame) -> narrate.Sentence:
    """What the place of the keys does to 9.1's plan."""
    read = shapes.set_index("variant")["rows_read"]
    early, spread = read[joins.EARLY], read[joins.BEFORE]
    if early >= spread:
        return narrate.Sentence("Where the keys lie makes no difference to the merge joins.")
    return narrate.Sentence(
        f"Keys at the table's beginning make 9.1's plan read {narrate.number(early)} rows instead"
        f" of {narrate.number(spread)}: a merge join ends when its shorter side does. If the"
        " slide's series joined its first ten numbers to the key, 9.1's plan as shown would have"
        " been fast as well, so its keys must have lain elsewhere, or its plan wasn't just this"
        " one. The transcript doesn't say."
    )


def one_copy_less(shapes: pd.DataFrame) -> narrate.Sentence:
    """Whether today's planner removes the self-join."""
    read = shapes.set_index("variant")["rows_read"]
    if read[joins.DEFAULT] >= read[joins.PARAMETERIZED]:
        return narrate.Sentence(
            "Today's own plan probes both copies of the table, as that of 9.2 did."
        )
    return narrate.Sentence(
        f"Today's own plan reads {narrate.number(read[joins.DEFAULT])} rows where that of 9.2 reads"
        f" {narrate.number(read[joins.PARAMETERIZED])}: since PostgreSQL 18 the planner notices"
        " that a table joined to itself by its key is the same table. The query that was made up"
        " “to make the planner think harder” has become too easy, and the other variants have that"
        " switched off."
    )


def at_the_talks_size(chapter: Chapter) -> narrate.Sentence:
    """How both plans' times grow, and what that makes of the talk's size."""
    before, after = (
        narrate.interval(evidence.growth(chapter, plan))
        for plan in (joins.BEFORE, joins.PARAMETERIZED)
    )
    times = in_print.accounts() / chapter.parameters.accounts
    said = printed.derived("access_paths_join").before_over
    gains = evidence.speedups(chapter).values()
    measured = " and ".join(map(narrate.interval, gains))
    told = [
        f"{narrate.interval(gain.times(times))} {where} (the talk has {narrate.number(size, 0)})"
        for gain, where, size in zip(
            gains,
            ("over an execution in a new session with nothing in the pool", "over a later one"),
            (said["first_ms"], said["later_ms"]),
        )
    ]
    return narrate.Sentence(
        f"The time of 9.1's plan grows with the table to the power {before}, that of 9.2's to the"
        f" power {after}. Were the one in proportion to the table and the other not to grow at all,"
        f" the gain that was measured short of memory, {measured} times, would be, with"
        f" {narrate.number(times, 0)} times the rows, {narrate.listed(told)}."
    )


# ---- index types and sorting


def gist_quality(chapter: Chapter) -> narrate.Sentence:
    """What sorting does to a GiST index's quality."""
    build, accesses = (
        chapter.ratio("points", metric, trees.SORTED, trees.ONE_BY_ONE)
        for metric in ("build", "accesses")
    )
    return narrate.ratio_sentence(
        build, "time to build", "the sorted index", "one made row by row"
    ) + narrate.ratio_sentence(
        accesses, "number of pages visited by a search", "the sorted index", "the other"
    )


def abbreviation(chapter: Chapter) -> narrate.Sentence:
    """What is left of the gain where abbreviated keys are useless."""
    early, late = "text that differs from its first byte on", "the same text behind one beginning"
    return narrate.ratio_sentence(
        evidence.abbreviated(chapter), "gain by sort support", early, late
    )


def what_sorting_is(chapter: Chapter) -> narrate.Sentence:
    """The gain of sort support by type of key."""
    ratios = [
        f"{key} {narrate.interval(evidence.sorting_gain(chapter, key), against=(1,))}"
        for key in KEYS
    ]
    said = "Without sort support sorting takes, relative to with it: "
    return narrate.Sentence(f"{said}{', '.join(ratios)}.")
