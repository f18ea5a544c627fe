"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.evidence import throughput
from pgrerun.chapters.hot.evidence.growth import over_hot, pick
from pgrerun.chapters.hot.experiments.growth import NAPTIME
from pgrerun.chapters.hot.experiments.side_effects import (
    CLUSTERED,
    FULL_VACUUM,
    LOOKS,
    OLD_SNAPSHOT,
)
from pgrerun.chapters.hot.experiments.throughput import SCANS
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    HOT,
    INDEXED,
    NO_HOT,
    REDUCED,
    UNPRUNED,
    UPDATES,
    relations,
)
from pgrerun.lab.models.heap_growth import ENTRIES_PER_LEAF, PAGE
from pgrerun.page import narrate
from pgrerun.record import printed, statistics
from pgrerun.record.claims import MARGIN

# pages of a table on which one leaf's deletion looks for dead versions: BOTTOMUP_MAX_NBLOCKS
DELETES_FROM = 6


def noise(chapter: Chapter) -> narrate.Sentence:
    """The noise floor from the variant that ran twice."""
    both = throughput.aa_runs(chapter)
    return narrate.noise(statistics.noise_floor(*(both[variant] for variant in both)))


def not_merely_hot(sizes: pd.DataFrame) -> narrate.Sentence:
    """How much of the growth that the thread credits to HOT is owed to pruning."""
    pruned, unpruned = (
        [over_hot(sizes, relation, variant) for relation in ACCOUNTS]
        for variant in (NO_HOT, UNPRUNED)
    )
    said = (
        f"With neither HOT nor pruning accounts ends at {narrate.number(unpruned[0])} times its"
        f" size with HOT, and its index at {narrate.number(unpruned[1])} times. With pruning"
        f" alone the factors are {narrate.number(pruned[0])} and {narrate.number(pruned[1])}: "
    )
    alone = max(pruned) - 1 < 0.05 * (min(unpruned) - 1)
    conclusion = (
        "to stay small neither needs its updates to be heap-only"
        if alone
        else "pruning alone doesn't keep the sizes stable"
    )
    return narrate.Sentence(f"{said}{conclusion}.")


def index_split(sizes: pd.DataFrame) -> narrate.Sentence:
    """The print's doubled index, and this run's."""
    in_print = printed.derived("hot_growth").loc["reduced_accounts_pkey"]
    now = pick(sizes, REDUCED, UNPRUNED, "accounts_pkey")
    return narrate.Sentence(
        f"In print the index grows by {narrate.number(in_print['increase_head'])} pages, exactly as"
        " many as there are when each full leaf and each full page above splits once"
        f" ({narrate.number(in_print['one_split_each'])}). Here {narrate.number(now['before'])}"
        f" pages become {narrate.number(now['after'])}."
    )


def index_without_hot(scattered: pd.DataFrame) -> narrate.Sentence:
    """How long an index without HOT keeps its size while nobody vacuums, and what ends that."""
    first, last = scattered.iloc[0], scattered.iloc[-1]
    grown = scattered[scattered["accounts_pkey"] > 1.05 * first["accounts_pkey"]]
    pages = (
        f"the entries of a leaf lead to {narrate.count(first['per_leaf'], 'page')} of accounts"
        f" after loading and to {narrate.number(last['per_leaf'])} at the end"
    )
    if grown.empty:
        return narrate.Sentence(
            f"In {narrate.count(last['updates'], 'update')} per account the index keeps its"
            f" {narrate.count(first['accounts_pkey'], 'page')}; {pages}."
        )
    return narrate.Sentence(
        f"By {narrate.count(grown.iloc[0]['updates'], 'update')} per account the index has grown,"
        f" in the end from {narrate.number(first['accounts_pkey'])} to"
        f" {narrate.count(last['accounts_pkey'], 'page')}: {pages}, and the deletion before a split"
        f" looks at no more than {narrate.number(DELETES_FROM)} of them."
    )


def long_enough(chapter: Chapter, steady: pd.DataFrame) -> narrate.Sentence:
    """How long a run would have to be until growth reaches this machine's memory."""
    own = steady[steady["variant"] == UNPRUNED]
    memory = chapter.run.environment["machine"]["memory_bytes"]
    size, final = own["accounts"].iloc[0], own["accounts"].iloc[-1]
    if final <= size:
        return narrate.Sentence("With neither HOT nor pruning accounts did not grow in this run.")
    per_update = (final - size) / own["updates"].iloc[-1]
    updates = (memory / PAGE - size) / per_update
    in_print = printed.derived("hot_growth").loc["reduced_accounts"]
    scaled = in_print["tuples"] / relations(chapter).accounts
    updates_printed = (memory / PAGE - size * scaled) / (per_update * scaled)
    return narrate.Sentence(
        f"This run's accounts fills {narrate.number(size * PAGE / 2**20, 1)} MB of this machine's"
        f" {narrate.number(memory / 2**30, 0)} GB of memory. With neither HOT nor pruning it would"
        f" take {narrate.number(round(updates))} updates per account to outgrow memory, and"
        f" {narrate.number(max(0, round(updates_printed)))} with as many accounts as in print,"
        f" where {UPDATES:g} were made. Until then growth costs memory and WAL, not"
        " waiting for the disk."
    )


def speed_at_equal_size(chapter: Chapter) -> narrate.Sentence:
    """HOT against updates that are pruned but not heap-only."""
    return narrate.ratio_sentence(
        throughput.equal_sizes(chapter),
        "throughput",
        "the reduced script with HOT",
        "the same where updates are pruned but not heap-only",
    )


def merlins_baseline(chapter: Chapter) -> narrate.Sentence:
    """Whether an index on abalance makes pgbench faster, as it did in print."""
    ratio = throughput.merlin_over(chapter, chapter.parameters.clients, INDEXED, NO_HOT)
    tps = printed.table("hot_abalance")["tps"]
    odd = tps["indexed_10_head"] / tps["plain_10_head"]
    said = narrate.then_and_now(
        odd,
        ratio,
        "ratio of the throughput with the index on abalance to that without it, both without HOT,",
    )
    doubt = (
        "One more index can't make updates that much faster: the run that HOT “doubles” is itself"
        " in doubt."
        if odd > 1 + MARGIN and ratio.low < odd
        else ""
    )
    return narrate.Sentence(f"{said} {doubt}".strip())


def readers(chapter: Chapter) -> narrate.Sentence:
    """What a grown relation costs those who read all of it."""
    ratio = chapter.ratio("reading", SCANS, UNPRUNED, HOT)
    return narrate.ratio_sentence(
        ratio, "time to scan accounts", "the grown relation", "the one kept stable by HOT"
    )


def rewriting(chapter: Chapter) -> narrate.Sentence:
    """Which of the two rewrites is faster."""
    ratio = chapter.ratio("compaction", "seconds", FULL_VACUUM, CLUSTERED)
    return narrate.ratio_sentence(ratio, "time", "VACUUM FULL", "CLUSTER")


def small_growth(small: pd.DataFrame) -> narrate.Sentence:
    """What branches' growth in print amounts to, and what holds its index here."""
    branches = printed.derived("hot_growth").loc["full_branches"]
    tps = printed.cell("hot_throughput", "full_head", "tps_including")
    seconds = branches["increase_head"] * branches["per_page"] / tps
    without = small[small["variant"] == NO_HOT].set_index("relation")
    updates, now = without.at["branches", "updated"], without.loc["branches_pkey"]
    leaves = updates / ENTRIES_PER_LEAF
    kept = now["after"] - now["before"] < leaves / 2
    end = "deleted again when their leaf was full" if kept else "not deleted in time"
    return narrate.Sentence(
        f"In print branches gains {narrate.count(branches['increase_head'], 'page')}, which is what"
        f" {narrate.number(seconds)} s of transactions leave at the printed throughput; autovacuum"
        f" came every {narrate.number(NAPTIME)} s."
        f" Without HOT each update makes an index entry, here {narrate.number(updates)} of"
        f" them, which would fill {narrate.count(round(leaves), 'leaf', 'leaves')}; branches\\_pkey"
        f" went from {narrate.number(now['before'])} to {narrate.count(now['after'], 'page')}: the"
        f" entries of dead versions were {end}."
    )


def snapshot_cost(chains: pd.DataFrame) -> narrate.Sentence:
    """What a lookup touches after many updates beside an old snapshot."""
    last = chains[chains["updates"] == max(LOOKS)].set_index("variant")["pages"]
    chain = chains.loc[chains["variant"] == OLD_SNAPSHOT, "chain"].max()
    return narrate.Sentence(
        f"Beside an old snapshot the chain ends at {narrate.count(chain, 'version')}, because the"
        " page is full: the next version goes to another page, with index entries of its own."
        f" After {narrate.count(max(LOOKS), 'update')} a lookup touches"
        f" {narrate.count(last[OLD_SNAPSHOT], 'page')}, without HOT"
        f" {narrate.number(last[UNPRUNED])}, and with nobody in the way"
        f" {narrate.number(last[HOT])}."
    )
