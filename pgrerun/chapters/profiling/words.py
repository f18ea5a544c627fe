"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

from pgrerun import narrate
from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import attributes, breakdown, checks, counted, judged, ladder, sampled
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS


def source(chapter: Chapter) -> narrate.Sentence:
    """Whose profile this page shows."""
    if counted.measured(chapter):
        return narrate.Sentence("The tables and charts below show this run's own count.")
    if counted.routines(chapter, SCANS).empty:
        return narrate.Sentence("Neither this run nor the published one has counted instructions: tables and charts that need the count are left out.")
    return narrate.Sentence("This run counts no instructions: the tables and charts below show the published run.")


def leader(chapter: Chapter, workload: str) -> narrate.Sentence | None:
    """The routine at the top of a profile, beside the one that led in print."""
    frame = counted.routines(chapter, workload)
    if frame.empty:
        return None
    first, then = frame.iloc[0], counted.printed({SCANS: "first", TRANSACTIONS: "transactions"}[workload]).iloc[0]
    heir = " It fetches attributes, as fastgetattr did." if first["routine"].partition(".")[0] in counted.ATTRIBUTE_ROUTINES else ""
    return narrate.Sentence(
        f"At the top of the {workload} is {first['routine']} with {narrate.number(first['share'], 1)} % of the instructions. "
        f"In print it was {then['routine']} with {narrate.number(then['% cycles'], 1)} % of the cycles.{heir}"
    )


def coverage(chapter: Chapter) -> narrate.Sentence | None:
    """How much of the instructions could be placed in a subsystem."""
    said = []
    for workload in (SCANS, TRANSACTIONS):
        frame = counted.routines(chapter, workload)
        if frame.empty:
            return None
        unknown = frame[frame["subsystem"] == "unknown"]
        said.append(f"{narrate.number(100 - unknown['share'].sum(), 2)} % of the instructions of the {workload} (all but {narrate.count(len(unknown), 'routine')} of {len(frame):,})")
    return narrate.Sentence(f"Placed in a subsystem: {' and '.join(said)}. The rest is shown as “{breakdown.SUBSYSTEMS['unknown']}”.")


def memory(chapter: Chapter) -> narrate.Sentence | None:
    """How much work it is to hand memory out and to take it back."""
    if counted.routines(chapter, SCANS).empty:
        return None
    scans, transactions = (counted.share_of(chapter, workload, judged.ALLOCATION) for workload in (SCANS, TRANSACTIONS))
    return narrate.Sentence(
        f"All routines that give memory out or take it back together: {narrate.number(scans, 1)} % of the scans' instructions and {narrate.number(transactions, 1)} % of the transactions'."
    )


def kernel(chapter: Chapter) -> narrate.Sentence | None:
    """What pixie couldn't see: the kernel's share of the backend's time."""
    said = []
    for workload in (SCANS, TRANSACTIONS):
        shares = sampled.shares(chapter, workload)
        if shares.empty:
            return None
        row = shares.loc["kernel"]
        said.append(f"{narrate.number(row.value, 0)} % of the {workload} (of {sampled.count(chapter, workload):,} samples, give or take {narrate.number(row.high - row.value, 0)})")
    where = " of the published run" if chapter.run.observations(sampled.EXPERIMENT).empty else ""
    return narrate.Sentence(f"Neither pixie nor callgrind sees the kernel. Of the time that a live backend{where} spends on a processor, it has {' and '.join(said)}.")


def before_executing(chapter: Chapter) -> narrate.Sentence | None:
    """How much of each set's instructions goes into parsing and planning, and what that leaves to gain."""
    found = {workload: counted.phases(chapter, workload) for workload in (SCANS, TRANSACTIONS)}
    if any(phases.empty for phases in found.values()):
        return None
    said = [f"{narrate.number(100 * phases[['parse', 'plan']].sum() / phases.sum(), 1)} % for the {workload}" for workload, phases in found.items()]
    return narrate.Sentence(f"The share of the instructions that parsing and planning take is {' and '.join(said)}. A planner that cost nothing could save no more than its part of that.")


def fetching(chapter: Chapter) -> narrate.Sentence | None:
    """Calls and instructions per tuple with one use of an attribute and with many."""
    frame = attributes.found(chapter)
    if frame.empty:
        return None
    few, many = (frame.loc[f"{uses} uses"] for uses in (attributes.USES[0], attributes.USES[-1]))
    by = attributes.caller_shares(chapter)
    return narrate.Sentence(
        f"A condition that uses one attribute {attributes.USES[-1]} times makes {narrate.number(many['calls'], 2)} fetching calls per tuple; "
        f"one that uses it once makes {narrate.number(few['calls'], 2)}. Of all calls in the scans, {narrate.number(by.iloc[0], 1)} % come from the {by.index[0]}."
    )


def paid_twice(chapter: Chapter) -> narrate.Sentence | None:
    """The same check with a pool that keeps every page."""
    frame = counted.routines(chapter, SCANS)
    if frame.empty:
        return None
    share = counted.share_of(chapter, SCANS, {"PageIsVerified", "pg_checksum_page"})
    return narrate.Sentence(
        f"That is with the sixteen pages of the report, where each scan reads its pages anew. Where the pool keeps them, verifying takes {narrate.number(share, 2)} % of the instructions."
    )


def counted_checks(chapter: Chapter) -> narrate.Sentence | None:
    """How many error checks a tuple of a scan costs."""
    frame = checks.by_kind(chapter)
    # tuples of the same run as the checks: it may have another scale
    routines = counted.routines(chapter, SCANS, "published" if chapter.run.observations(checks.KINDS).empty else "measured")
    if frame.empty or routines.empty:
        return None
    made = frame.loc[(frame["query set"] == SCANS) & (frame["kind"] == "error check"), "executed"].sum()
    tuples = routines.loc[routines["routine"] == "ExecStoreBufferHeapTuple", "calls"].sum()
    return narrate.Sentence(f"That is {narrate.number(made / tuples, 1)} error checks for each tuple that the scans look at.") if tuples else None


def by_the_clock(chapter: Chapter) -> narrate.Sentence | None:
    """What all bookkeeping costs in time, and what prepared statements save."""
    scans, prepared = ladder.relative(chapter, SCANS, ladder.BARE), ladder.relative(chapter, TRANSACTIONS, ladder.STEPS[-1].name, ladder.BARE)
    if scans is None or prepared is None:
        return None
    return narrate.ratio_sentence(scans, "time for Figure 2.1's commands", "a server without bookkeeping", "one with all of it") + narrate.ratio_sentence(
        prepared, "time for Figure 2.3's transactions", "prepared statements", "parsing and planning each command"
    )


def how_judged(chapter: Chapter) -> str:
    """Whether the ladder is judged by instructions or by time."""
    return "by time, as instructions couldn't be counted" if chapter.run.observations(ladder.EXPERIMENT).empty else "by instructions"
