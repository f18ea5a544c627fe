"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun import narrate, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.bank import AS_BEFORE, HOT, INDEXED, NO_HOT, PAGE, REDUCED, bank, printed_updates
from pgrerun.chapters.hot.budget import SCANS
from pgrerun.chapters.hot.growth import DELETES_FROM, ENTRIES_PER_LEAF, over_hot, pick
from pgrerun.chapters.hot.speed import hot_over, merlin_over, twins
from pgrerun.chapters.hot.worries import BESIDE, CLUSTERED, FULL_VACUUM, LOOKS


def noise(chapter: Chapter) -> narrate.Sentence | None:
    """The noise floor from the arm that ran twice."""
    both = twins(chapter)
    if both.empty:
        return None
    return narrate.noise(statistics.noise_floor(*(both[arm] for arm in both)))


def not_merely_hot(grown: pd.DataFrame | None) -> narrate.Sentence | None:
    """How much of the growth that the thread credits to HOT is owed to pruning."""
    if grown is None:
        return None
    table, index = ((over_hot(grown, name, NO_HOT), over_hot(grown, name, AS_BEFORE)) for name in ("accounts", "accounts_pkey"))
    said = (
        f"With neither HOT nor pruning accounts ends at {narrate.number(table[1])} times its size with HOT, and its index at {narrate.number(index[1])} times. "
        f"With pruning alone the factors are {narrate.number(table[0])} and {narrate.number(index[0])}: "
    )
    alone = max(table[0], index[0]) - 1 < 0.05 * (min(table[1], index[1]) - 1)
    conclusion = "to stay small neither needs its updates to be heap-only" if alone else "pruning alone doesn't keep the sizes stable"
    return narrate.Sentence(f"{said}{conclusion}.")


def index_split(grown: pd.DataFrame | None) -> narrate.Sentence | None:
    """The print's doubled index, and this run's."""
    if grown is None:
        return None
    printed, now = published.derived("hot_growth").loc["reduced_accounts_pkey"], pick(grown, REDUCED, AS_BEFORE, "accounts_pkey")
    return narrate.Sentence(
        f"In print the index grows by {narrate.number(printed['increase_head'])} pages, exactly as many as there are when each full leaf and each full page above "
        f"splits once ({narrate.number(printed['one_split_each'])}). Here {narrate.number(now['before'])} pages become {narrate.number(now['after'])}."
    )


def helps_itself(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """How long an index without HOT keeps its size while nobody vacuums, and what ends that."""
    if found is None:
        return None
    first, last = found.iloc[0], found.iloc[-1]
    grown = found[found["accounts_pkey"] > 1.05 * first["accounts_pkey"]]
    pages = f"the entries of a leaf lead to {narrate.count(first['per_leaf'], 'page')} of accounts after loading and to {narrate.number(last['per_leaf'])} at the end"
    if grown.empty:
        return narrate.Sentence(f"In {narrate.count(last['updates'], 'update')} per account the index keeps its {narrate.count(first['accounts_pkey'], 'page')}; {pages}.")
    return narrate.Sentence(
        f"By {narrate.count(grown.iloc[0]['updates'], 'update')} per account the index has grown, in the end from {narrate.number(first['accounts_pkey'])} to "
        f"{narrate.count(last['accounts_pkey'], 'page')}: {pages}, and the deletion before a split looks at no more than {narrate.number(DELETES_FROM)} of them."
    )


def long_enough(chapter: Chapter, steady: pd.DataFrame | None) -> narrate.Sentence | None:
    """How long a run would have to be until growth reaches this machine's memory."""
    if steady is None:
        return None
    own = steady[steady["arm"] == AS_BEFORE]
    per_update = (own["accounts"].iloc[-1] - own["accounts"].iloc[0]) / own["updates"].iloc[-1]
    here, memory = bank(chapter), chapter.run.environment["machine"]["memory_bytes"]
    size = own["accounts"].iloc[0]
    updates = (memory / PAGE - size) / per_update
    printed = published.derived("hot_growth").loc["reduced_accounts"]
    scaled = printed["tuples"] / here.tuples
    updates_printed = (memory / PAGE - size * scaled) / (per_update * scaled)
    return narrate.Sentence(
        f"This run's accounts fills {narrate.number(size * PAGE / 2**20, 1)} MB of this machine's {narrate.number(memory / 2**30, 0)} GB of memory. With neither HOT nor pruning it would take "
        f"{narrate.number(round(updates))} updates per account to outgrow memory, and {narrate.number(max(0, round(updates_printed)))} with as many accounts as in print, where {printed_updates():g} were made. "
        "Until then growth costs memory and log, not waiting for the disk."
    )


def speed_at_equal_size(chapter: Chapter) -> narrate.Sentence | None:
    """HOT against updates that are pruned but not heap-only."""
    ratio = hot_over(chapter, REDUCED, NO_HOT)
    return None if ratio is None else narrate.ratio_sentence(ratio, "throughput", "the reduced script with HOT", "the same where updates are pruned but not heap-only")


def merlins_baseline(chapter: Chapter) -> narrate.Sentence | None:
    """Whether an index on abalance makes pgbench faster, as it did in print."""
    ratio = merlin_over(chapter, chapter.parameters.clients, INDEXED, NO_HOT)
    if ratio is None:
        return None
    tps = published.table("hot_abalance")["tps"]
    odd = tps["indexed_10_head"] / tps["plain_10_head"]
    said = narrate.then_and_now(odd, ratio, "ratio of the throughput with the index on abalance to that without it, both without HOT,")
    doubt = "An index more can't make updates that much faster: the run that HOT “doubles” is itself in doubt." if odd > 1 + 0.05 and ratio.low < odd else ""
    return narrate.Sentence(f"{said} {doubt}".strip())


def readers(chapter: Chapter) -> narrate.Sentence | None:
    """What a grown relation costs those who read all of it."""
    ratio = chapter.ratio("reading", SCANS, AS_BEFORE, HOT)
    return None if ratio is None else narrate.ratio_sentence(ratio, "time to scan accounts", "the grown relation", "the one kept stable by HOT")


def rewriting(chapter: Chapter) -> narrate.Sentence | None:
    """Which of the two rewrites is faster."""
    ratio = chapter.ratio("compaction", "seconds", FULL_VACUUM, CLUSTERED)
    return None if ratio is None else narrate.ratio_sentence(ratio, "time", "VACUUM FULL", "CLUSTER")


def small_growth(small: pd.DataFrame | None) -> narrate.Sentence | None:
    """What branches' growth in print amounts to, and what holds its index here."""
    if small is None:
        return None
    branches = published.derived("hot_growth").loc["full_branches"]
    tps = published.cell("hot_throughput", "full_head", "tps_including")
    seconds = branches["increase_head"] * branches["per_page"] / tps
    now = small.set_index(["arm", "relation"]).loc[(NO_HOT, "branches_pkey")]
    leaves = now["updates"] / ENTRIES_PER_LEAF
    kept = now["after"] - now["before"] < leaves / 2
    end = "deleted again when their leaf was full" if kept else "not deleted in time"
    return narrate.Sentence(
        f"In print branches gains {narrate.count(branches['increase_head'], 'page')}, which is what {narrate.number(seconds)} s of transactions leave at the printed throughput; "
        f"autovacuum came every {narrate.number(published.cell('hot_setup', 'autovacuum_naptime', 'value'))} s. Without HOT each update makes an index entry, here "
        f"{narrate.number(now['updates'])} of them, which would fill {narrate.count(round(leaves), 'leaf', 'leaves')}; branches\\_pkey went from {narrate.number(now['before'])} "
        f"to {narrate.count(now['after'], 'page')}: the entries of dead versions were {end}."
    )


def snapshot_cost(found: pd.DataFrame | None) -> narrate.Sentence | None:
    """What a lookup touches after many updates beside an old snapshot."""
    if found is None:
        return None
    last = found[found["updates"] == max(LOOKS)].set_index("arm")["pages"]
    chain = found.loc[found["arm"] == BESIDE, "chain"].max()
    return narrate.Sentence(
        f"Beside an old snapshot the chain ends at {narrate.count(chain, 'version')}, because the page is full: the next version goes to another page, with index entries of its own. After "
        f"{narrate.count(max(LOOKS), 'update')} a lookup touches {narrate.count(last[BESIDE], 'page')}, without HOT {narrate.number(last[AS_BEFORE])}, and with nobody in the way {narrate.number(last[HOT])}."
    )
