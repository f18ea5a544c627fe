"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.evidence import JUMP, aa_runs, pick, times, waiting
from pgrerun.chapters.hot.experiments.side_effects import (
    LOOKS,
    OLD_SNAPSHOT,
)
from pgrerun.chapters.hot.experiments.throughput import POOLED, pavans_share
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    HOT,
    NO_HOT,
    UNPRUNED,
    UPDATES,
)
from pgrerun.lab.models.heap_growth import ENTRIES_PER_LEAF
from pgrerun.page import narrate
from pgrerun.record import printed, statistics

# pages of a table on which one leaf's deletion looks for dead versions: BOTTOMUP_MAX_NBLOCKS
DELETES_FROM = 6


def noise(chapter: Chapter) -> narrate.Sentence:
    """The noise floor from the variant that ran twice, and how long the work waits for pages."""
    both = aa_runs(chapter)
    waits = waiting(chapter, None, JUMP[1], "throughput").times(100)
    return narrate.noise(statistics.noise_floor(*(both[variant] for variant in both))) + (
        "With neither HOT nor pruning backends wait for pages"
        f" {narrate.interval(waits, '%')} of their time."
    )


def not_merely_hot(sizes: pd.DataFrame) -> narrate.Sentence:
    """How much of the growth that the thread credits to HOT is owed to pruning."""
    pruned, unpruned = (
        [times(sizes, variant, relation) / times(sizes, HOT, relation) for relation in ACCOUNTS]
        for variant in (NO_HOT, UNPRUNED)
    )
    said = (
        f"With neither HOT nor pruning accounts ends at {narrate.number(unpruned[0])} times its"
        f" size with HOT, and its index at {narrate.number(unpruned[1])} times. With pruning"
        f" alone the factors are {narrate.number(pruned[0])} and {narrate.number(pruned[1])}: "
    )
    alone = max(pruned) - 1 < 0.05 * (min(unpruned) - 1)
    conclusion = (
        f"after {narrate.number(UPDATES)} updates per account both stay small even if no update is"
        " heap-only"
        if alone
        else "pruning alone doesn't keep the sizes stable"
    )
    return narrate.Sentence(f"{said}{conclusion}.")


def index_split(sizes: pd.DataFrame) -> narrate.Sentence:
    """The printed index, which doubled, and this run's."""
    then = printed.derived("hot_growth").loc["reduced_accounts_pkey"]
    now = pick(sizes, UNPRUNED, "accounts_pkey")
    return narrate.Sentence(
        f"The thread's index grew by {narrate.number(then['increase_head'])} pages. If each of its"
        " full leaves and full pages above them splits once, that makes"
        f" {narrate.number(then['one_split_each'])}. Here {narrate.number(now['before'])}"
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
    table = (
        f", and accounts from {narrate.number(first['accounts'])} to"
        f" {narrate.number(last['accounts'])}"
        if last["accounts"] > first["accounts"]
        else ""
    )
    if grown.empty:
        return narrate.Sentence(
            f"In {narrate.count(last['updates'], 'update')} per account the index keeps its"
            f" {narrate.count(first['accounts_pkey'], 'page')}; {pages}."
        )
    return narrate.Sentence(
        f"By {narrate.count(grown.iloc[0]['updates'], 'update')} per account the index has grown,"
        f" in the end from {narrate.number(first['accounts_pkey'])} to"
        f" {narrate.count(last['accounts_pkey'], 'page')}{table}: {pages}. Before a split"
        f" entries are deleted for at most {narrate.count(DELETES_FROM, 'page')} of the table."
    )


def pool(chapter: Chapter) -> narrate.Sentence:
    """What the work reads in a pool of the thread's share, and how long it waits for that."""
    reads, waiting = (chapter.median("pools", what, POOLED) for what in ("reads", "waiting"))
    return narrate.Sentence(
        f"In {POOLED}, {narrate.number(100 * pavans_share(), 1)} %, a transaction reads"
        f" {narrate.interval(reads)} pages, for which its client waits {narrate.interval(waiting)}"
        " of its time."
    )


def small_growth(small: pd.DataFrame) -> narrate.Sentence:
    """What keeps the index of branches small here."""
    without = small[small["variant"] == NO_HOT].set_index("relation")
    updates, now = without.at["branches", "updated"], without.loc["branches_pkey"]
    leaves = updates / ENTRIES_PER_LEAF
    kept = now["after"] - now["before"] < leaves / 2
    end = "deleted again when their leaf was full" if kept else "not deleted in time"
    after = narrate.count(now["after"], "page")
    grew = now["after"] != now["before"]
    went = f"went from {narrate.number(now['before'])} to {after}" if grew else f"kept its {after}"
    return narrate.Sentence(
        f"Without HOT each update makes an index entry, here {narrate.number(updates)} of"
        f" them, which would fill {narrate.count(round(leaves), 'leaf', 'leaves')}; branches\\_pkey"
        f" {went}: the entries of dead versions were {end}."
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
