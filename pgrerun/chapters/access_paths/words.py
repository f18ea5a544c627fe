"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import math

import pandas as pd

from pgrerun import narrate, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths import joins, lookups, planner, sorting, trees
from pgrerun.chapters.access_paths.accounts import accounts, pool_of_print
from pgrerun.chapters.access_paths.lookups import AGAIN, AMPLE, COLD, COVERING, DIRECT, FRACTIONS, KERNEL, KEY, WARM, Updated, arm
from pgrerun.published import access_paths as printed


def noise(chapter: Chapter) -> narrate.Sentence | None:
    """The noise floor from the arm that ran twice."""
    table = chapter.table("lookups", "throughput")
    if table.empty:
        return None
    return narrate.noise(statistics.noise_floor(table[arm(AMPLE, COVERING)], table[AGAIN]))


def vacuum_skips(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """At how few changed pages vacuum reads everything."""
    if found is None:
        return None
    pages = found["scanned"].max()
    everything = found[found["scanned"] == pages].iloc[0]
    before = found[found["scanned"] < pages].iloc[-1]
    return narrate.Sentence(
        f"With one page in {narrate.number(before['every'])} changed, vacuum scans {narrate.number(before['scanned'])} of {narrate.count(pages, 'page')}. With one in {narrate.number(everything['every'])}, which is "
        f"{100 / everything['every']:.1f} %, it scans all of them."
    )


_FITS = 0.2  # pages that a lookup reads at most, once its working set is in memory


def reads_per_lookup(chapter: Chapter) -> narrate.Sentence | None:
    """What a lookup reads from the disk in either arm, and what the print implies."""
    heap, index = (chapter.table("lookups", name) for name in ("heap_reads", "index_reads"))
    if arm(DIRECT, KEY) not in heap:
        return None
    key, covering = (float((heap[arm(DIRECT, which)] + index[arm(DIRECT, which)]).median()) for which in (KEY, COVERING))
    implied = published.derived("access_paths_lookups").reads_per_lookup["covering"]
    pool = pool_of_print(chapter.parameters.accounts)
    fits = "its working set fits, that of the other doesn't" if covering < _FITS < key else "both working sets fit" if key < _FITS else "not even its working set fits"
    return narrate.Sentence(
        f"In the pool of {narrate.count(pool, 'page')} a lookup reads {narrate.number(key, 2)} pages by the primary key and {narrate.number(covering, 2)} by the covering index: {fits}. "
        f"In print the covering index still cost about {narrate.number(implied, 2)} reads per lookup, if the same disk served both runs."
    )


def kernels_cache(chapter: Chapter) -> narrate.Sentence | None:
    """What the kernel's cache makes of the same experiment."""
    hidden, seen = (lookups.covering_over_key(chapter, where) for where in (KERNEL, DIRECT))
    if None in (hidden, seen):
        return None
    same = narrate.ratio_sentence(hidden, "throughput", "lookups by the covering index", "lookups by the primary key, both in the small pool over the kernel's cache")
    misses = {where: narrate.number(float(chapter.table("lookups", "heap_reads")[arm(where, KEY)].median()), 2) for where in (KERNEL, DIRECT)}
    return same + f"By the primary key a lookup misses the pool for {misses[KERNEL]} pages of the table, against {misses[DIRECT]} with direct I/O, but here a miss is a copy from the kernel's memory and not a read."


def slower_disk(chapter: Chapter) -> narrate.Sentence | None:
    """What the measured reads per lookup would make of the talk's disk."""
    heap, index = (chapter.table("lookups", name) for name in ("heap_reads", "index_reads"))
    if arm(DIRECT, KEY) not in heap:
        return None
    key = float((heap[arm(DIRECT, KEY)] + index[arm(DIRECT, KEY)]).median())
    then = 2 * published.cell("access_paths_lookups", "primary_key", "tps")
    now = chapter.median("lookups", "throughput", arm(DIRECT, KEY))
    waiting = chapter.ratio("lookups", "throughput", arm(AMPLE, KEY), arm(DIRECT, KEY))
    return narrate.Sentence(
        f"The print's {published.cell('access_paths_lookups', 'primary_key', 'tps'):g} lookups per second, at two reads each, took a disk of some {then:g} reads per second. "
        f"This one serves {narrate.number(round(now.estimate * key, -2))} at the least."
    ) + narrate.ratio_sentence(waiting, "throughput", "the same lookups in the ample pool", "those that wait for this disk")


def visible_enough(chapter: Chapter) -> narrate.Sentence | None:
    """Between which shares of all-visible pages an index-only scan begins to pay: from the last at which it loses to the first from which on it gains."""
    ratios = {percent: lookups.only_over_plain(chapter, percent) for percent in FRACTIONS}
    if None in ratios.values():
        return None
    losing = [percent for percent, ratio in ratios.items() if ratio.low > 1]
    gaining = [percent for percent in FRACTIONS if all(ratios[more].high < 1 for more in FRACTIONS if more >= percent)]
    if not gaining:
        said = "No share of all-visible pages can be told from which on the index-only scan pays."
    elif not losing:
        said = f"The index-only scan pays from {min(gaining)} % of all-visible pages on, if not before."
    else:
        said = f"Somewhere between {max(losing)} and {min(gaining)} % of all-visible pages the index-only scan begins to pay."
    if 0 in losing:
        said += f" With none it takes {narrate.interval(ratios[0])} times as long as a plain index scan: for every row it asks the map in vain and then does what the other does."
    return narrate.Sentence(said)


def autovacuums_threshold(chapter: Chapter, found: list[Updated] | None) -> narrate.Sentence | None:
    """When autovacuum comes, counted in updates per page, and what is all-visible by then."""
    if found is None:
        return None
    per_page = accounts(chapter).rows / printed.table_pages(accounts(chapter).rows)
    updates = 0.2 * per_page
    on_average = 1 + math.expm1(-updates) / updates  # of 1 - exp(-u), while u goes from 0 to `updates`
    last = found[-1]
    return narrate.Sentence(
        f"After {narrate.number(last.updates)} updates per page {narrate.number(100 * last.fetched, 1)} % of the rows are looked up in the table again, although only {narrate.number(100 * last.updates / per_page, 1)} % of them were updated. "
        f"Autovacuum at its stock scale factor comes when a fifth of the rows has changed. On a page of {narrate.number(per_page, 0)} rows that takes {narrate.number(updates, 0)} updates, and one page in {narrate.number(round(math.exp(updates), -3))} is still all-visible then. "
        f"It counts changes and not time. So if it comes at once each time, from one vacuum to the next {narrate.number(100 * on_average, 0)} % of the rows are looked up on average, however fast or slow the updates come."
    )


def breakevens(chapter: Chapter, counted: dict[str, tuple[int, int]] | None) -> narrate.Sentence | None:
    """The planner's break-even and the measured ones, and what `lookups.breakeven` counted."""
    planned = lookups.planned_breakeven(chapter)
    measured = {where: lookups.measured_breakeven(chapter, where) for where in (WARM, COLD)}
    if planned is None or None in measured.values():
        return None
    percent = {where: narrate.interval(share.times(100), "%") for where, share in measured.items()}
    said = f"At its stock costs the planner gives an index scan up at {narrate.number(100 * planned, 2)} % of the rows. Measured, a sequential scan is faster from {percent[WARM]} on with everything in memory, and from {percent[COLD]} on with everything on the disk."
    if counted is not None:
        each = {scan: narrate.number(pages / max(1, reads), 1) for scan, (pages, reads) in counted.items()}
        said += f" From there a sequential scan brings in {each[lookups.SEQUENTIAL]} pages with each read, and an index scan {each[lookups.INDEX]}."
    return narrate.Sentence(said)


def cost_shape(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """What the estimated cost of an index-only scan is made of."""
    if found is None:
        return None
    facts = list(planner.refined_facts(found).values())
    line = "falls in a straight line with the share" if not facts[0] else "doesn't fall in a straight line with the share"
    left = "exactly that of a plain index scan" if not facts[1] else "another than that of a plain index scan"
    said = f"The estimated cost {line}, and where no page is all-visible it is {left}."
    return narrate.Sentence(said + (" That is what PostgreSQL 9.2 computed, and it leaves out what was measured above: a look into the map that finds nothing isn't free." if not any(facts) else ""))


def misled(chapter: Chapter) -> narrate.Sentence | None:
    """What false statistics cost."""
    ratio = planner.regret(chapter)
    return None if ratio is None else narrate.ratio_sentence(ratio, "time", "the plan made with false statistics", "the one made with true ones")


def stops_early(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """What the place of the keys does to 9.1's plan."""
    if found is None:
        return None
    read = found.set_index("arm")["rows_read"]
    early, spread = read[joins.EARLY], read[joins.BEFORE]
    if early >= spread:
        return narrate.Sentence("Where the keys lie makes no difference to the merge joins.")
    return narrate.Sentence(
        f"Keys at the table's beginning make 9.1's plan read {narrate.number(early)} rows instead of {narrate.number(spread)}: a merge join ends when its shorter side does. "
        "If the slide's series joined its first ten numbers to the key, 9.1's plan as shown would have been fast as well, so its keys must have lain elsewhere, or its plan wasn't just this one. The transcript doesn't say."
    )


def one_copy_less(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """Whether today's planner removes the self-join."""
    if found is None:
        return None
    read = found.set_index("arm")["rows_read"]
    if read[joins.DEFAULT] >= read[joins.PARAMETERIZED]:
        return narrate.Sentence("Today's own plan probes both copies of the table, as that of 9.2 did.")
    return narrate.Sentence(
        f"Today's own plan reads {narrate.number(read[joins.DEFAULT])} rows where that of 9.2 reads {narrate.number(read[joins.PARAMETERIZED])}: since PostgreSQL 18 the planner notices that a table joined to itself by its key is the same table. "
        "The query that was made up “to make the planner think harder” has become too easy, and the other arms have that switched off."
    )


def at_the_prints_size(chapter: Chapter) -> narrate.Sentence | None:
    """How both plans' times grow, and what that makes of the print's size."""
    before, after = (joins.growth(chapter, name) for name in (joins.BEFORE, joins.PARAMETERIZED))
    ratio, first = joins.speedup(chapter), joins.speedup(chapter, joins.FIRST)
    if None in (before, after, ratio, first):
        return None
    millions = printed.accounts() / 1e6
    return narrate.Sentence(
        f"The time of 9.1's plan grows with the table to the power {narrate.interval(before)}, that of 9.2's to the power {narrate.interval(after)}. If that goes on, the gain at the print's size is {narrate.number(round(ratio.estimate * millions, -3))}, "
        f"and {narrate.number(round(first.estimate * millions, -2))} over an execution in a new session with nothing in the pool. In print: {narrate.number(published.derived('access_paths_join').before_over['later_ms'])} and {narrate.number(published.derived('access_paths_join').before_over['first_ms'], 0)}."
    )


def gist_quality(chapter: Chapter) -> narrate.Sentence | None:
    """What sorting does to a GiST index's quality."""
    build, accesses = (trees.over_row_by_row(chapter, metric, trees.SORTED) for metric in ("build", "accesses"))
    if None in (build, accesses):
        return None
    return narrate.ratio_sentence(build, "time to build", "the sorted index", "one made row by row") + narrate.ratio_sentence(
        accesses, "number of pages visited by a search", "the sorted index", "the other"
    )


def abbreviation(chapter: Chapter) -> narrate.Sentence | None:
    """What is left of the gain where abbreviated keys are useless."""
    found = sorting.abbreviated(chapter)
    return None if found is None else narrate.ratio_sentence(found, "gain by sort support", "text that differs from its first byte on", "the same text behind one beginning")


def what_sorting_is(chapter: Chapter) -> narrate.Sentence | None:
    """The gain of sort support by type of key."""
    found = sorting.gains(chapter)
    if found is None:
        return None
    return narrate.Sentence("Without sort support sorting takes, relative to with it: " + ", ".join(f"{key} {narrate.interval(ratio, against=(1,))}" for key, ratio in found.items()) + ".")
