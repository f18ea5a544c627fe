"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import evidence, subsystems
from pgrerun.chapters.profiling.experiments import checks, instructions, samples
from pgrerun.chapters.profiling.queries import SCANS, SETS, TRANSACTIONS
from pgrerun.lab.instruments.instructions import ERROR_CHECK, TYPE_TEST
from pgrerun.page import narrate
from pgrerun.record import printed


def source(chapter: Chapter) -> narrate.Sentence:
    """Whose profile this page shows."""
    kind, _ = evidence.latest(chapter, instructions.INSTRUCTIONS)
    if kind == "measured":
        return narrate.Sentence("The tables and charts below show this run's own count.")
    return narrate.Sentence(
        "This run counts no instructions: the tables and charts below show the published run."
    )


def leader(chapter: Chapter, workload: str) -> narrate.Sentence:
    """The routine at the top of a profile, beside the one that led in 1990."""
    first = evidence.routines(chapter, workload).iloc[0]
    stage = {SCANS: "first", TRANSACTIONS: "transactions"}[workload]
    then = evidence.printed_routines(stage).iloc[0]
    fetches = first["routine"] in subsystems.group("attributes")
    return narrate.Sentence(
        f"At the top of the {workload} is {first['function']} with"
        f" {narrate.number(first['share'], 1)} % of the instructions. In the report it was"
        f" {then['routine']} with {narrate.number(then['% cycles'], 1)} % of the cycles."
        f"{' It fetches attributes, as fastgetattr did.' if fetches else ''}"
    )


def coverage(chapter: Chapter) -> narrate.Sentence:
    """How much of the instructions could be placed in a subsystem."""
    said = []
    for workload in SETS:
        frame = evidence.routines(chapter, workload)
        unknown = frame[frame["subsystem"] == "unknown"]
        said.append(
            f"{narrate.number(100 - unknown['share'].sum(), 2)} % of the instructions of the"
            f" {workload} (all but {narrate.count(len(unknown), 'routine')} of {len(frame):,})"
        )
    return narrate.Sentence(
        f"Placed in a subsystem: {' and '.join(said)}. The rest is shown as"
        f" “{subsystems.NAMES['unknown']}”."
    )


def memory(chapter: Chapter) -> narrate.Sentence:
    """How much work it is to hand memory out and to take it back."""
    scans, transactions = (
        evidence.share_of(chapter, workload, "routine", subsystems.group("allocation"))
        for workload in SETS
    )
    return narrate.Sentence(
        f"All routines that give memory out or take it back together: {narrate.number(scans, 1)} %"
        f" of the scans' instructions and {narrate.number(transactions, 1)} % of the transactions'."
    )


def kernel(chapter: Chapter) -> narrate.Sentence:
    """What pixie couldn't see: the kernel's share of the backend's time."""
    kind, _ = evidence.latest(chapter, samples.SAMPLES)
    said = []
    for workload in SETS:
        row = evidence.sampled_shares(chapter, workload).loc["kernel"]
        said.append(
            f"{narrate.number(row.value, 0)} % of the {workload} ({narrate.number(row.low, 0)} to"
            f" {narrate.number(row.high, 0)} %, by {row.samples:,.0f} samples)"
        )
    where = " of the published run" if kind == "published" else ""
    return narrate.Sentence(
        f"Neither pixie nor callgrind sees the kernel. Of the time that a live backend{where}"
        f" spends on a processor, it has {' and '.join(said)}."
    )


def apart(chapter: Chapter) -> narrate.Sentence:
    """Whether instructions and samples agree on the subsystem that has most, and where they differ
    most.
    """
    agreed, said = [], []
    for workload in SETS:
        counted = evidence.shares(chapter, workload).drop("kernel")
        sampled = evidence.sampled_shares(chapter, workload, user_only=True)["value"]
        agreed.append(counted.idxmax() == sampled.idxmax())
        most = (counted / counted.sum() * 100 - sampled).abs().idxmax()
        said.append(
            f"for {subsystems.NAMES[most]} in the {workload}"
            f" ({narrate.number(counted[most], 1)} % of the instructions,"
            f" {narrate.number(sampled[most], 1)} % of the time)"
        )
    if all(agreed) or not any(agreed):
        found = "agree for both sets" if all(agreed) else "agree for neither set"
    else:
        found = f"agree for the {SETS[agreed.index(True)]} alone"
    return narrate.Sentence(
        f"On the subsystem with the largest share instructions and time {found}. They lie farthest"
        f" apart {narrate.listed(said)}."
    )


def before_executing(chapter: Chapter) -> narrate.Sentence:
    """How much of each set's instructions goes into parsing and planning, and what that leaves to
    gain.
    """
    said = []
    for workload in SETS:
        phases = evidence.recorded(chapter, instructions.PHASES, workload)
        share = 100 * phases[["parse", "plan"]].sum() / phases.sum()
        said.append(f"{narrate.number(share, 1)} % for the {workload}")
    return narrate.Sentence(
        "The share of the instructions that parsing and planning take, with all that they call,"
        f" is {' and '.join(said)}. A planner that cost nothing could save no more than its part of"
        f" that. {_planning(chapter)}"
    )


def _planning(chapter: Chapter) -> str:
    """The two ratios that the verdicts on parsing and planning rest on."""
    own, phases = evidence.planning_over_data(chapter), evidence.planning_over_executing(chapter)
    return (
        "In the transactions the parser's and the optimizer's own routines take"
        f" {narrate.number(own, 2)} times the instructions of executor, access methods and storage"
        f" manager; parsing and planning with all that they call take {narrate.number(phases, 2)}"
        " times those of executing."
    )


def fetching(chapter: Chapter) -> narrate.Sentence:
    """Calls and instructions per tuple with one use of an attribute and with many."""
    few, many = instructions.USES[0], instructions.USES[-1]
    variants = [f"{few} uses", f"{many} uses"]
    calls = evidence.by_variant(chapter, instructions.ATTRIBUTES, variants)["calls"]
    by = evidence.caller_shares(chapter)
    return narrate.Sentence(
        f"A condition that uses one attribute {many} times makes {narrate.number(calls.iloc[1], 2)}"
        f" fetching calls per tuple; one that uses it once makes"
        f" {narrate.number(calls.iloc[0], 2)}. Of all calls in the scans,"
        f" {narrate.number(by.iloc[0], 1)} % come from the {by.index[0]}."
    )


def checks_per_tuple(chapter: Chapter) -> narrate.Sentence:
    """How many error checks a tuple of a scan costs, and what checks take beside the report's."""
    # tuples of the same run as the checks: it may have another scale
    kind, _ = evidence.latest(chapter, checks.KINDS)
    calls = evidence.routines(chapter, SCANS, kind).groupby("function")["calls"].sum()
    found = evidence.checks_by_kind(chapter).set_index(["query set", "kind"]).loc[SCANS]
    per_tuple = found.at[ERROR_CHECK, "executed"] / calls["ExecStoreBufferHeapTuple"]
    speedup = printed.table("profiling_totals")["speedup"]
    told = [
        f"{kind}s take {narrate.percent(found.at[kind, '% instructions'] / 100)} of the scans'"
        f" instructions; the report gained {narrate.number(speedup[stage], 1)} % by leaving out"
        f" {which}"
        for kind, stage, which in (
            (TYPE_TEST, "third", "those whose answer is known"),
            (ERROR_CHECK, "fourth", "assertions"),
        )
    ]
    return narrate.Sentence(
        f"That is {narrate.number(per_tuple, 1)} error checks for each tuple that the scans look"
        f" at. {'. '.join(words[:1].upper() + words[1:] for words in told)}."
    )
