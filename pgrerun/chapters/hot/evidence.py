"""What the experiments say about the claims, and the tables beside them, part by part.

Parts as in `experiments`: a page, kinds of update, growth, WAL, throughput, side effects.
"""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.experiments.eligibility import BRIN_INDEX, BTREE, ROWS
from pgrerun.chapters.hot.experiments.growth import BESIDE_OLD, UNPRUNED_VACUUMED
from pgrerun.chapters.hot.experiments.page import Defragmented
from pgrerun.chapters.hot.experiments.side_effects import (
    CLUSTERED,
    FULL_VACUUM,
    LOOKS,
    OLD_SNAPSHOT,
    WAITS,
    BrokenChains,
)
from pgrerun.chapters.hot.experiments.throughput import AGAIN, DATA, FITS, POOLED, pavans
from pgrerun.chapters.hot.experiments.wal_volume import (
    AT_EVERY_VISIT,
    LATER,
    WITHOUT_ROOM,
)
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FILLFACTOR,
    HOT,
    NO_HOT,
    REDUCED,
    UNPRUNED,
    UPDATES,
)
from pgrerun.lab.instruments import pages
from pgrerun.lab.models.heap_growth import PAGE, PAGES_PER_PARENT
from pgrerun.record import printed, statistics, verdicts
from pgrerun.record.claims import MARGIN
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, supporting

Facts = dict[str, bool | None | Part]

# ---- one page

NEARLY_FULL = PAGE // 10  # bytes: with less free a visit prunes (heap_page_prune_opt)


def summary(states: pd.DataFrame) -> pd.DataFrame:
    """A row per step: line pointers of each state, heap-only tuples, the longest chain."""
    rows = []
    for title, page in states.groupby("page", sort=False):
        counts = page["state"].value_counts()
        row = {"step": title}
        row |= {state: counts.get(state, 0) for state in ("normal", "redirect", "dead", "unused")}
        row |= {"heap_only": page["heap_only"].sum(), "index_entries": page["entries"].sum()}
        rows.append(row | {"longest_chain": pages.longest_chain(page)})
    return pd.DataFrame(rows)


def pruning(when: pd.DataFrame) -> pd.DataFrame:
    """`experiments.page.pruned_when` in five numbers."""
    by_update = when.set_index("update")
    first = by_update["pruned"].idxmax()
    rows = {
        "updates of one row before the first that pruned": first - 1,
        "free bytes at the last update that pruned nothing": by_update.at[first - 1, "free"],
        "free bytes at the first update that pruned": by_update.at[first, "free"],
        "a tenth of a page, in bytes": NEARLY_FULL,
        "bytes that a new version needs": by_update.at[first, "needed"],
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())})


def when_facts(when: pd.DataFrame) -> Facts:
    """Whether updates leave dead versions alone while there is room, and until nothing fits."""
    pruned = when[when["pruned"]]
    roomy = when["free"] >= NEARLY_FULL
    return {
        "an update of a page with room to spare prunes nothing": not when["pruned"][roomy].any(),
        "an update prunes only when the new version doesn't fit": (
            (pruned["free"] < pruned["needed"]).all()
        ),
    }


def all_chains_facts(states: pd.DataFrame, full: pd.DataFrame) -> Facts:
    """Whether every chain was shortened by an update that found the page full, and by a SELECT."""
    roots, inside = _shortened(full, "UPDATE D")
    return {
        "an update that finds the page full makes each chain's root a redirect": roots,
        "the dead versions inside the chains are gone": inside,
        "a SELECT does both as well": supporting(all(_shortened(states, "SELECT D"))),
    }


def _shortened(states: pd.DataFrame, title: str) -> tuple[bool, bool]:
    """Of the first step of that title, by another row: of several chains' roots, and inside."""
    titles = list(states["page"].unique())
    step = next(number for number, one in enumerate(titles) if title in one)
    by_page = states.set_index(["page", "line_pointer"])
    before, after = by_page.loc[titles[step - 1]], by_page.loc[titles[step]]
    roots = before.index[before["old"] & ~before["heap_only"]]
    inside = before.index[before["old"] & before["heap_only"]]
    redirected = (after.loc[roots, "state"] == "redirect").all()
    # an update's own new version may have taken the place of one
    gone = (after.loc[inside, "tuple"] != before.loc[inside, "tuple"]).all()
    return len(roots) > 1 and bool(redirected), len(inside) > 0 and bool(gone)


def defragmentation(found: Defragmented) -> pd.DataFrame:
    """`experiments.page.defragmented`, a row per finding."""
    rows = {
        "bytes that dead versions fill between the tuples": found.hole,
        "did a SELECT prune while another session had the page pinned?": found.pinned,
        "did it wait for that session?": found.waited,
        "bytes left between the tuples after a SELECT that had the page alone": found.hole_left,
        "its locks on the table": ", ".join(found.locks),
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())}, dtype=object)


# ---- kinds of update


def heap_only(cases: pd.DataFrame, case: str) -> int:
    """HOT updates among the `ROWS` of one kind."""
    return cases.set_index("case").at[case, "heap_only"]


def unused_facts(cases: pd.DataFrame) -> Facts:
    """If indexed columns change: HOT unused."""
    return {"no update of a column in a B-tree is HOT": heap_only(cases, BTREE) == 0}


def worst_facts(cases: pd.DataFrame) -> Facts:
    """Whether the index on the updated column is the worst case for HOT."""
    return {
        "with a B-tree on the updated column no update is HOT": heap_only(cases, BTREE) == 0,
        "a BRIN index, which came later, leaves none either": supporting(
            heap_only(cases, BRIN_INDEX) == 0
        ),
        "without an index on it all are": supporting(cases["heap_only"].iloc[0] == ROWS),
    }


def room_facts(fillfactors: pd.DataFrame) -> Facts:
    """Whether first updates have room at the thread's fillfactor, and none without it."""
    at = fillfactors.set_index("fillfactor")
    share, at_once = at["one_by_one"], at["at_once"]
    return {
        f"pages loaded at a fillfactor of {FILLFACTOR} have room for further versions, full ones"
        " none": at.at[FILLFACTOR, "room"] > 0 == at.at[100, "room"],
        "of first updates by one statement more are HOT than on full pages": (
            at_once[FILLFACTOR] > at_once[100]
        ),
        "one by one every first update is HOT": supporting(share[FILLFACTOR] == 1),
        "on full pages fewer than half are": supporting(share[100] < 0.5),
    }


def width_facts(widths: pd.DataFrame, defragmented: Defragmented) -> Facts:
    """Whether changing widths cost HOT updates, and whether they leave holes that stay."""
    same, *_, much = widths["hot"]
    return {
        "with changing widths noticeably fewer updates are HOT": (
            verdicts.less(much / same, margin=MARGIN)
        ),
        "holes between the tuples stay": defragmented.hole_left > 0,
    }


# ---- growth


def pick(sizes: pd.DataFrame, variant: str, relation: str) -> pd.Series:
    """One row of `experiments.growth.sizes` or `small_tables`."""
    return sizes.set_index(["variant", "relation"]).loc[(variant, relation)]


def then_and_now(sizes: pd.DataFrame, script: str) -> pd.DataFrame:
    """Pages before and growth of one set-up, a row per relation and index: in 2007 and here.

    `script` is "reduced" or "full", as the print's table has it.
    """
    in_print = printed.derived("hot_growth").filter(like=f"{script}_", axis="index")
    in_print.index = in_print.index.str.partition("_").get_level_values(2)
    own, rows = sizes[sizes["relation"].isin(in_print.index)], []
    for relation, now in own.groupby("relation", sort=False):
        row, then = {"relation": relation}, in_print.loc[relation]
        for server, words in (("head", "without"), ("hot", HOT)):
            before, added = then[f"initial_{server}"], then[f"increase_{server}"]
            row[f"2007 {words}"] = f"{before:,.0f} + {added:,.0f}"
        for found in reversed(list(now.itertuples())):
            added = found.after - found.before
            row[f"here, {found.variant}"] = f"{found.before:,.0f} + {added:,.0f}"
        rows.append(row)
    return pd.DataFrame(rows)


def times(sizes: pd.DataFrame, variant: str, relation: str) -> float:
    """Pages afterwards over pages before."""
    found = pick(sizes, variant, relation)
    return found["after"] / found["before"]


def constant(sizes: pd.DataFrame) -> Facts:
    """Whether accounts keeps its size with HOT, and doesn't with neither HOT nor pruning."""
    hot, without = (times(sizes, variant, "accounts") for variant in (HOT, UNPRUNED))
    then = printed.derived("hot_growth").at["reduced_accounts", "times_head"]
    return {
        "with HOT accounts keeps its size": verdicts.about(hot, 1, MARGIN),
        "with neither HOT nor pruning accounts grows": verdicts.greater(without, margin=MARGIN),
        "without any vacuum it grows as far as printed": supporting(
            verdicts.about(without, then, MARGIN)
        ),
    }


def index_facts(sizes: pd.DataFrame) -> Facts:
    """Whether accounts' primary key grows without HOT only, each full page splitting once."""
    without = pick(sizes, UNPRUNED, "accounts_pkey")
    added, before = without["after"] - without["before"], without["before"]
    # its meta page and the last page of each level needn't split
    unsplit = 3 + (before > PAGES_PER_PARENT) + (before > PAGES_PER_PARENT**2)
    return {
        "accounts_pkey doesn't grow with HOT": times(sizes, HOT, "accounts_pkey") == 1,
        "with neither HOT nor pruning each of its full pages splits, which doubles a large index": (
            added >= before - unsplit
        ),
        "with pruning but no HOT it doesn't grow either": supporting(
            times(sizes, NO_HOT, "accounts_pkey") == 1
        ),
    }


def stock_facts(sizes: pd.DataFrame) -> Facts:
    """Whether pgbench as it is ran both statements of the reduced script, every time."""
    run = pick(sizes, HOT, "accounts")
    return {
        "pgbench ran the reduced script from a file, each statement once per transaction": (
            0 < run["updated"] == run["history"] == run["transactions"]
        )
    }


def grown(small: pd.DataFrame, relation: str) -> dict[str, int]:
    """Pages that a relation of the small ones gained, by variant."""
    return {
        variant: pick(small, variant, relation)["after"] - pick(small, variant, relation)["before"]
        for variant in (HOT, NO_HOT, UNPRUNED)
    }


def small_growth(small: pd.DataFrame) -> dict[str, float | Part]:
    """Growth without HOT over that with it, of tellers and branches; a page at least with it."""
    both = {name: grown(small, name) for name in ("tellers", "branches")}
    return {name: own[UNPRUNED] / max(1, own[HOT]) for name, own in both.items()} | {
        f"{name}, pruned": supporting(own[NO_HOT] / max(1, own[HOT])) for name, own in both.items()
    }


def small_index_facts(small: pd.DataFrame) -> Facts:
    """Whether HOT keeps the primary key of branches from growing."""
    own = grown(small, "branches_pkey")
    return {
        "with HOT branches_pkey doesn't grow": own[HOT] == 0,
        "with neither HOT nor pruning branches_pkey grows": own[UNPRUNED] > 0,
        "with pruning but no HOT it doesn't grow either": supporting(own[NO_HOT] == 0),
    }


def differences(measured: pd.DataFrame, computed: pd.DataFrame) -> pd.DataFrame:
    """How far the measured sizes lie from the computed ones at most, by relation and variant.

    Columns: relation, variant, share (of the computed pages), predicted: whether all are within
    the smallest effect of interest, or a page.
    """
    both = measured.merge(computed, on=["variant", "updates"], suffixes=("", " computed"))
    rows = []
    for relation in ACCOUNTS:
        for variant, own in both.groupby("variant", sort=False):
            pages = (own[relation] - own[f"{relation} computed"]).abs()
            shares = pages / own[f"{relation} computed"]
            predicted = ((shares <= MARGIN) | (pages <= 1)).all()
            rows.append((relation, variant, shares.max(), predicted))
    return pd.DataFrame(rows, columns=["relation", "variant", "share", "predicted"])


def agreement(measured: pd.DataFrame, computed: pd.DataFrame) -> pd.DataFrame:
    """Measured and computed pages of accounts and its index in each variant.

    Columns: relation, variant, updates, initial_pages, pages, computed (at the end),
    largest_difference (at any time, as a share of the computed pages).
    """
    shares = differences(measured, computed).set_index(["relation", "variant"])["share"]
    rows = []
    for relation in ACCOUNTS:
        for variant, own in measured.groupby("variant", sort=False):
            pages = own.set_index("updates")[relation]
            model = computed[computed["variant"] == variant].set_index("updates")[relation]
            row = {"relation": relation, "variant": variant, "updates": pages.index[-1]}
            row |= {"initial_pages": pages.iloc[0], "pages": pages.iloc[-1]}
            row["computed"] = model.iloc[-1]
            rows.append(row | {"largest_difference": f"{shares[relation, variant]:.1%}"})
    return pd.DataFrame(rows)


def grown_although_vacuumed(measured: pd.DataFrame) -> float:
    """Pages of accounts after the thread's updates over those before, unpruned but vacuumed."""
    own = measured[measured["variant"] == UNPRUNED_VACUUMED].set_index("updates")["accounts"]
    return own[UPDATES] / own[0.0]


def queue_facts(queue: pd.DataFrame) -> Facts:
    """Whether a vacuumed queue stops growing with HOT, and CLUSTER has less to give back there.

    Alone, and beside a transaction that stays open, which is what the thread's habit was for.
    """
    rows = queue.set_index("variant")
    halfway, end, clustered = (
        rows[f"table_{when}"] + rows[f"index_{when}"] for when in ("halfway", "end", "clustered")
    )
    saved = end - clustered
    return {
        "with HOT the table and its index stop growing": end[HOT] <= halfway[HOT],
        "with neither HOT nor pruning the table and its index go on growing": (
            end[UNPRUNED_VACUUMED] > halfway[UNPRUNED_VACUUMED]
        ),
        "CLUSTER then gives less back with HOT": saved[HOT] < saved[UNPRUNED_VACUUMED],
        "with HOT they stop growing beside a transaction that stays open, too": (
            end[BESIDE_OLD] <= halfway[BESIDE_OLD]
        ),
        "with HOT CLUSTER gives nothing back": supporting(saved[HOT] <= 0),
        "with pruning but no HOT they end larger than with both": supporting(
            end[NO_HOT] > end[HOT]
        ),
    }


# ---- WAL


def bytes_of(written: pd.DataFrame, variant: str, phase: str = LATER) -> float:
    """Bytes of WAL per transaction of a variant in a phase."""
    return written.groupby(["variant", "phase"])["bytes"].sum()[variant, phase]


def eager_over_lazy(pruning: pd.DataFrame) -> float:
    """WAL per update with pruning at every visit over that with pruning only without room."""
    by_when = pruning.set_index("pruned")["bytes"]
    return by_when[AT_EVERY_VISIT] / by_when[WITHOUT_ROOM]


JUMP = (REDUCED, HOT), (REDUCED, UNPRUNED)

# ---- throughput on the slowed disk, and whether that is where the claims speak


def over(
    chapter: Chapter,
    variant: tuple[str, str],
    base: tuple[str, str],
    measured: str = "throughput",
) -> Interval:
    """Throughput of one variant of `PAVAN` (script and variant) over another's.

    measured: the experiment, "full" for the full script and "merlin" for Merlin's runs.
    """
    return chapter.ratio(measured, "throughput", pavans(*variant), pavans(*base))


def waiting(chapter: Chapter, variant: object, base: tuple[str, str], measured: str) -> Interval:
    """Share of waiting for pages in the run that is compared with."""
    name = pavans(*base)
    both = (chapter.table(measured, what)[name] for what in ("waiting", "writing"))
    return statistics.on_disk(statistics.median(sum(both)), chapter.disk(measured, name))


def larger(chapter: Chapter, variant: tuple[str, str], base: object, measured: str) -> Interval:
    """How many times the pool accounts and its index had at the end, where they stayed small."""
    return chapter.median(measured, DATA, pavans(*variant))


def fits(chapter: Chapter, variant: object, base: tuple[str, str], measured: str) -> Interval:
    """How many times the pool held the small tables at the end of the run compared with."""
    return chapter.median(measured, FITS, pavans(*base))


def equally_fast_at_equal_sizes(chapter: Chapter) -> bool | None:
    """Whether HOT is no faster than pruning alone; None where that isn't resolved.

    In the blocks where pruning alone kept the size as well: it doesn't where a vacuum comes late.
    """
    hot, pruned = (pavans(REDUCED, variant) for variant in (HOT, NO_HOT))
    data = chapter.table("throughput", DATA)
    stable = chapter.table("throughput", "throughput")[data[pruned] < (1 + MARGIN) * data[hot]]
    if stable.empty:
        return None
    faster = statistics.ratio(stable[hot], stable[pruned], seed=chapter.parameters.seed)
    return verdicts.about(faster, 1, MARGIN)


def jump_facts(chapter: Chapter, written: pd.DataFrame) -> Facts:
    """What has to be true if stable sizes explain the jump of throughput."""
    return {
        "there is a jump": verdicts.greater(over(chapter, *JUMP), margin=MARGIN),
        "where sizes are stable without HOT, HOT isn't faster": (
            equally_fast_at_equal_sizes(chapter)
        ),
        "with HOT an update writes at least as much WAL as with pruning alone": supporting(
            bytes_of(written, HOT) >= bytes_of(written, NO_HOT)
        ),
    }


def aa_runs(chapter: Chapter) -> pd.DataFrame:
    """Throughput of the two identical variants, a row per block."""
    found = chapter.table("throughput", "throughput")
    return found[[pavans(REDUCED, HOT), pavans(REDUCED, AGAIN)]]


def volatile(ratio: Interval | float) -> Facts:
    """Whether two runs of the same, the faster over the slower, differ by an effect of interest."""
    return {
        "two runs of the same differ by more than the smallest effect of interest": (
            verdicts.greater(ratio, margin=MARGIN)
        )
    }


def volatile_in_print() -> Facts:
    """`volatile` of the two runs that are printed."""
    tps = printed.table("hot_abalance")["tps"]
    return volatile(tps["indexed_10_hot_2"] / tps["indexed_10_hot_1"])


def volatile_here(chapter: Chapter) -> Facts:
    """`volatile` of this run's two identical variants."""
    both = aa_runs(chapter)
    seed = chapter.parameters.seed
    return volatile(statistics.ratio(both.max(axis=1), both.min(axis=1), seed=seed))


def bound_facts(chapter: Chapter) -> Facts:
    """Whether the thread's pool makes transactions read, and whether that takes their time.

    That all of it fitted into the thread's memory is recomputed in `printed.disagreements`.
    """
    waits = chapter.table("pools", "waiting") + chapter.table("pools", "writing")
    return {
        "reading and writing take most of the time": (
            verdicts.greater(statistics.median(waits[POOLED]), 0.5)
        ),
        "a transaction reads a page and more": supporting(
            verdicts.greater(chapter.median("pools", "reads", POOLED))
        ),
    }


def reading(pages: pd.DataFrame) -> dict[str, float | Part]:
    """Pages accessed after growth over those after HOT; `experiments.throughput.reading`."""
    by_variant = pages.set_index("variant")
    ratio = by_variant.loc[UNPRUNED] / by_variant.loc[HOT]
    return {"a lookup by key": ratio["lookup"], "a scan": supporting(ratio["scan"])}


# ---- side effects


def chain_facts(chains: pd.DataFrame) -> Facts:
    """Whether an old snapshot makes chains long, and lookups no worse than without HOT."""
    last = chains[chains["updates"] == max(LOOKS)].set_index("variant")
    beside = chains[chains["variant"] == OLD_SNAPSHOT]
    end = last.loc[OLD_SNAPSHOT]
    return {
        "beside an old snapshot a chain is never shortened": (
            beside["chain"].is_monotonic_increasing
        ),
        "beside an old snapshot a chain ends longer than without": (
            end["chain"] > last.at[HOT, "chain"]
        ),
        "a lookup touches no more pages than without HOT": (
            end["pages"] <= last.at[UNPRUNED, "pages"]
        ),
        "the chain goes on where its page is full": supporting(end["chain"] > max(LOOKS)),
    }


def contention_facts(waits: pd.DataFrame, beside_pin: Defragmented) -> Facts:
    """Whether pruning takes the page for itself, and whether anybody is seen to wait for that."""
    share = waits.set_index("waiting")["share"]
    return {
        "a SELECT that can't have the page for itself waits for it": beside_pin.waited,
        "pruning needs the page for itself": not beside_pin.pinned,
        "backends wait for its content lock, which updates take as well": supporting(
            share[WAITS["LWLock:BufferContent"]] > 0
        ),
    }


def broken_chains(found: BrokenChains) -> pd.DataFrame:
    """`experiments.side_effects.broken_chains`, a row per finding."""
    rows = {
        "warnings of CREATE INDEX": ", ".join(found.warnings) or "none",
        "is the index marked as not for old snapshots (indcheckxmin)?": found.marked,
        "does the old session's plan use it?": found.old_uses,
        "does the old session find the old version by its value?": found.old_finds,
        "does a new session's plan use it?": found.new_uses,
        "does the new session find the new version by its value?": found.new_finds,
        "is an index marked when nobody has an old snapshot?": not found.unmarked_without_snapshot,
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())}, dtype=object)


def index_bug(found: BrokenChains) -> bool:
    """Whether CREATE INDEX on HOT-updated tuples warns or gives wrong answers."""
    return bool(found.warnings) or not (found.old_finds and found.new_finds)


def change_facts(found: BrokenChains) -> Facts:
    """Whether CREATE INDEX treats HOT chains in a way of its own."""
    return {
        "CREATE INDEX marks an index over broken chains": found.marked,
        "old snapshots are kept from it": not found.old_uses and found.old_finds,
    }


def loses_rows(rewrites: pd.DataFrame, command: str = CLUSTERED) -> bool:
    """Whether an old snapshot misses rows after the command."""
    row = rewrites.set_index("command").loc[command]
    return bool(row["old_sees"] < row["committed"])


def compaction_facts(compacted: pd.DataFrame) -> Facts:
    """Whether CLUSTER compacts better; of `experiments.side_effects.compaction`."""
    total = compacted.set_index("command").sum(axis=1)
    return {"CLUSTER leaves fewer pages than VACUUM FULL": total[CLUSTERED] < total[FULL_VACUUM]}


def second_best(compacted: pd.DataFrame) -> float:
    """Pages of accounts and its index that VACUUM FULL leaves, over those that CLUSTER leaves."""
    total = compacted.set_index("command").sum(axis=1)
    return total[FULL_VACUUM] / total[CLUSTERED]
