"""What the run record says: profiles, shares, gains, and the facts that claims are judged by.

Where this run has counted nothing, tables and charts read the published run. Claims are then set
aside, so that no claim is judged from there.
"""

from collections.abc import Collection

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import queries, subsystems
from pgrerun.chapters.profiling.experiments import checks, instructions, samples
from pgrerun.chapters.profiling.queries import SCANS, SETS, TRANSACTIONS
from pgrerun.lab.instruments.instructions import ERROR_CHECK, TYPE_TEST
from pgrerun.page import narrate
from pgrerun.record import printed
from pgrerun.record.verdicts import Part, fact, supporting

NEGLIGIBLE = 5  # percent

# ---- reading the record


def latest(chapter: Chapter, experiment: str) -> tuple[str, pd.DataFrame]:
    """Provenance and observations of an experiment: this run's, or else the published one's."""
    return chapter.by_provenance(experiment)[-1]


def recorded(chapter: Chapter, experiment: str, variant: str, kind: str = "") -> pd.Series:
    """Metric to value of one recorded variant: of the run that `kind` names ("measured" or
    "published"), or the latest.
    """
    kind = kind or latest(chapter, experiment)[0]
    frame = dict(chapter.by_provenance(experiment))[kind]
    return frame[frame["variant"] == variant].set_index("metric")["value"]


def by_variant(chapter: Chapter, experiment: str, variants: Collection[str]) -> pd.DataFrame:
    """A row for each of `variants` and a column per metric, from the latest run."""
    _, frame = latest(chapter, experiment)
    return frame.pivot(index="variant", columns="metric", values="value").reindex(variants)


def over(chapter: Chapter, experiment: str, metric: str, variant: str, base: str) -> float:
    """A number of one variant over that of another, from the latest run."""
    values = by_variant(chapter, experiment, [variant, base])[metric]
    return values[variant] / values[base]


def routines(chapter: Chapter, workload: str, kind: str = "") -> pd.DataFrame:
    """The profile of a query set, most instructions first; `kind` as for `recorded`.

    Columns: function (as the symbol table has it), routine (without what the compiler put behind
    a "."), file, directory, subsystem, object, instructions, share (percent), cumulative
    (percent), per_call, calls.
    """
    counts = recorded(chapter, instructions.INSTRUCTIONS, workload, kind)
    calls = recorded(chapter, instructions.CALLS, workload, kind)
    frame = pd.DataFrame(
        [name.split(subsystems.SEPARATOR) for name in counts.index],
        columns=["function", "file", "directory", "subsystem", "object"],
    )
    frame["routine"] = frame["function"].str.partition(".")[0]
    frame["instructions"] = counts.to_numpy()
    frame["calls"] = calls.reindex(counts.index).to_numpy()
    frame = frame.sort_values("instructions", ascending=False, ignore_index=True)
    frame["share"] = 100 * frame["instructions"] / frame["instructions"].sum()
    frame["cumulative"] = frame["share"].cumsum()
    frame["per_call"] = frame["instructions"] / frame["calls"].where(frame["calls"] > 0)
    return frame


def shares(chapter: Chapter, workload: str, kind: str = "") -> pd.Series:
    """Percent of the instructions by subsystem, in the report's order, then what its figures don't
    list.
    """
    by = routines(chapter, workload, kind).groupby("subsystem")["share"].sum()
    return by.reindex(subsystems.NAMES).fillna(0.0)


def share_of(chapter: Chapter, workload: str, column: str, names: Collection[str]) -> float:
    """Percent of the instructions that routines execute themselves, of those that have one of
    `names` in a column of `routines` ("routine", "directory", "subsystem").
    """
    frame = routines(chapter, workload)
    return frame.loc[frame[column].isin(names), "share"].sum()


def subsystem_of(chapter: Chapter, workload: str) -> dict[str, str]:
    """Routine to its subsystem, in words."""
    by = routines(chapter, workload).drop_duplicates("routine").set_index("routine")["subsystem"]
    return by.map(subsystems.NAMES).to_dict()


def sampled_shares(chapter: Chapter, workload: str, user_only: bool = False) -> pd.DataFrame:
    """Percent of the samples by subsystem: value, low, high (95 %, by the binomial's normal
    approximation), samples (of all subsystems). `user_only` leaves the kernel out.
    """
    taken = recorded(chapter, samples.SAMPLES, workload)
    by = taken.groupby([name.rpartition(subsystems.SEPARATOR)[2] for name in taken.index]).sum()
    by = by.reindex(subsystems.NAMES).fillna(0.0)
    if user_only:
        by = by.drop("kernel")
    share = by / by.sum()
    error = 1.96 * np.sqrt(share * (1 - share) / by.sum())
    low, high = (share - error).clip(lower=0), share + error
    return (
        pd.DataFrame({"value": share, "low": low, "high": high}).mul(100).assign(samples=by.sum())
    )


# ---- tables


def printed_routines(stage: str) -> pd.DataFrame:
    """One of the report's profiles with its columns, and the calls that follow from them."""
    frame = printed.derived("profiling_routines")
    frame = frame[frame["stage"] == stage]
    columns = {
        "cycles": "cycles",
        "share": "% cycles",
        "cumulative": "cum %",
        "per_call": "cycles/call",
        "calls": "calls (computed)",
        "routine": "routine",
        "file": "file",
    }
    frame = frame.assign(calls=frame["calls"].round().astype(int))
    return frame[list(columns)].rename(columns=columns)


def top_routines(chapter: Chapter, workload: str) -> pd.DataFrame:
    """The first ten routines of a query set with the report's columns, but for the shares' sum.

    A library stands for its file; of the program's own, some files the symbol table doesn't tell.
    """
    frame = routines(chapter, workload).head(10).astype({"instructions": int, "calls": int})
    library = frame["object"].where(frame["subsystem"] == "system_functions", "not told")
    frame["file"] = frame["file"].where(frame["file"] != "", library)
    frame["subsystem"] = frame["subsystem"].map(subsystems.NAMES)
    columns = {
        "instructions": "instructions",
        "share": "% instructions",
        "per_call": "instructions/call",
        "calls": "calls",
        "function": "routine",
        "file": "file",
        "subsystem": "subsystem",
    }
    return frame[list(columns)].rename(columns=columns)


def phase_table(chapter: Chapter) -> pd.DataFrame:
    """Instructions per command by phase: a row per phase, a column per query set."""
    profile = routines(chapter, TRANSACTIONS)
    read = profile.loc[profile["routine"] == instructions.ENTRY, "calls"].sum()
    # one of the commands is the DISCARD that ends the batch
    commands = {SCANS: len(queries.scans()), TRANSACTIONS: read - 1}
    frame = pd.DataFrame(
        {
            workload: recorded(chapter, instructions.PHASES, workload) / commands[workload]
            for workload in SETS
        }
    )
    frame = frame.round().astype(int)
    for workload in SETS:
        frame[f"{workload} (%)"] = 100 * frame[workload] / frame[workload].sum()
    return frame.rename_axis("phase").reset_index()


def rules_table(chapter: Chapter) -> pd.DataFrame:
    """A row per command: instructions of the rule manager and of all."""
    frame = by_variant(chapter, instructions.RULES, list(instructions.RULE_COMMANDS))
    return (
        frame.rename(narrate.with_commas)
        .rename_axis("one command over")
        .reset_index()[["one command over", "rule manager", "in all"]]
    )


def checks_by_kind(chapter: Chapter) -> pd.DataFrame:
    """A row per query set and kind: how many were executed, how many instructions, share of all in
    percent.
    """
    rows = []
    for workload in SETS:
        counts = recorded(chapter, checks.KINDS, workload)
        total = counts[counts.index.str.endswith(": instructions")].sum()
        for kind in (ERROR_CHECK, TYPE_TEST):
            executed, cost = (
                counts.get(f"{kind}: {column}", 0.0) for column in ("executed", "instructions")
            )
            rows.append((workload, kind, int(executed), int(cost), 100 * cost / total))
    return pd.DataFrame(
        rows, columns=["query set", "kind", "executed", "instructions", "% instructions"]
    )


def busiest_checks(chapter: Chapter) -> pd.DataFrame:
    """The routines that make most error checks in Figure 2.1's commands."""
    counts = recorded(chapter, checks.KINDS, SCANS)
    counts = counts[counts.index.str.startswith(checks.CHECKED)].sort_values(ascending=False)
    names = counts.index.str.removeprefix(checks.CHECKED)
    return pd.DataFrame({"routine": names, "error checks": counts.to_numpy().astype(int)})


# ---- evidence: the print


def falling() -> dict[str, bool]:
    """Whether each of the report's changes lowered the cycles of the same commands."""
    stages = printed.derived("profiling_totals").dropna(subset="gain_in_all").set_index("label")
    fewer = stages["cycles"].diff().iloc[1:] < 0
    return {f"fewer cycles with the change “{name}”": bool(so) for name, so in fewer.items()}


# ---- evidence: the profiles of the two query sets


def gain(percent: float) -> float:
    """How much faster everything would be if this share of it cost nothing (Amdahl's law)."""
    return 1 / (1 - percent / 100)


def gain_without(chapter: Chapter, workload: str, column: str, names: Collection[str]) -> float:
    """How much faster a query set would be if some routines cost nothing; see `share_of`."""
    return gain(share_of(chapter, workload, column, names))


def executing_over_rest(chapter: Chapter) -> float:
    """Figure 2.1: instructions of executing over those of parsing, planning and all else."""
    phases = recorded(chapter, instructions.PHASES, SCANS)
    return phases["execute"] / (phases.sum() - phases["execute"])


def all_over_executing(chapter: Chapter) -> float:
    """Figure 2.3: instructions of all phases of a command over those of executing it."""
    phases = recorded(chapter, instructions.PHASES, TRANSACTIONS)
    return phases.sum() / phases["execute"]


def _low(ratio: float, than: str) -> dict[str, Part]:
    """Whether parsing and planning take less than half of something; the opposite is more of it."""
    return {f"parsing and planning take less than half of {than}": fact(ratio < 0.5, ratio > 1)}


def planning_over_data(chapter: Chapter) -> float:
    """Figure 2.3: own instructions of parser and optimizer over those of the subsystems that
    process data.
    """
    own = shares(chapter, TRANSACTIONS)
    data = own[["executor", "access_methods", "storage_manager"]].sum()
    return own[["parser", "optimizer"]].sum() / data


def planning_over_executing(chapter: Chapter) -> float:
    """The same of the phases of a command, with all that each calls."""
    phases = recorded(chapter, instructions.PHASES, TRANSACTIONS)
    return phases[["parse", "plan"]].sum() / phases["execute"]


def planning_facts(chapter: Chapter) -> dict[str, Part]:
    """Whether the parser's and the optimizer's own routines are little beside those that process
    data, in Figure 2.3's commands.
    """
    return _low(planning_over_data(chapter), "processing data")


def phase_facts(chapter: Chapter) -> dict[str, Part]:
    """The same of the phases of a command, with all that each calls."""
    return _low(planning_over_executing(chapter), "executing")


def optimizer_facts(chapter: Chapter) -> dict[str, bool]:
    """Whether the optimizer's share is negligible, by query set."""
    found = {workload: shares(chapter, workload)["optimizer"] for workload in SETS}
    return {
        f"the optimizer takes less than {NEGLIGIBLE} percent of the {workload}"
        f" ({narrate.number(share, 1)} %)": share < NEGLIGIBLE
        for workload, share in found.items()
    }


def shift_facts(chapter: Chapter) -> dict[str, bool]:
    """Which shares rise, and which fall, from scans to transactions."""
    change = shares(chapter, TRANSACTIONS) - shares(chapter, SCANS)
    return {
        "the share of the parser rises": change["parser"] > 0,
        "the share of the optimizer rises": change["optimizer"] > 0,
        "the share of system functions rises": change["system_functions"] > 0,
        "the share of the storage manager falls": change["storage_manager"] < 0,
        "the share of the executor falls": change["executor"] < 0,
    }


def system_functions_ratio(chapter: Chapter) -> float:
    """Share of system functions in the transactions over that in the scans."""
    scans, transactions = (shares(chapter, workload)["system_functions"] for workload in SETS)
    return transactions / scans


def allocation_facts(chapter: Chapter) -> dict[str, bool]:
    """Whether memory allocation is among the first ten routines."""
    return {
        f"a routine for memory is in the top ten of the {workload}": (
            routines(chapter, workload)["function"]
            .head(10)
            .isin(subsystems.group("allocation"))
            .any()
        )
        for workload in SETS
    }


def node_type_facts(chapter: Chapter) -> dict[str, bool]:
    """Whether testing nodes' types takes as much as the second routine of the profiles."""
    tests = checks_by_kind(chapter).set_index(["query set", "kind"])["% instructions"]
    return {
        f"testing types takes as much of the {workload} as the second routine": (
            tests[workload, TYPE_TEST] >= routines(chapter, workload)["share"].iloc[1]
        )
        for workload in SETS
    }


# ---- evidence: attributes and rules


def routine_gain(chapter: Chapter) -> float:
    """How much faster Figure 2.1's commands would be if the most expensive attribute routine cost
    nothing.
    """
    frame = routines(chapter, SCANS)
    own = frame.loc[frame["function"].isin(subsystems.group("attributes")), "share"]
    return gain(own.max())


def caller_shares(chapter: Chapter) -> pd.Series:
    """Percent of the attribute routines' calls in Figure 2.1's commands, by the subsystem that
    asked.
    """
    calls = recorded(chapter, instructions.CALLERS, SCANS)
    known, unknown = subsystem_of(chapter, SCANS), subsystems.NAMES["unknown"]
    by = calls.groupby([known.get(routine, unknown) for routine in calls.index]).sum()
    return (100 * by / by.sum()).sort_values(ascending=False)


def _commands(chapter: Chapter) -> pd.DataFrame:
    """What was counted of each of `instructions.ATTRIBUTE_COMMANDS`, a row each."""
    return by_variant(chapter, instructions.ATTRIBUTES, list(instructions.ATTRIBUTE_COMMANDS))


def call_facts(chapter: Chapter) -> dict[str, Part | bool]:
    """Why the attribute routines are hot, if they are: because everybody calls them, all the time.

    Beside it whether a call is as long for one attribute as for another.
    """
    frame = _commands(chapter)
    first, last = (
        frame.at[f"attribute {instructions.PLACES[place]}", "in routine"] for place in (0, -1)
    )
    one, many = (frame.at[f"{instructions.USES[uses]} uses", "calls"] for uses in (0, -1))
    asking = (caller_shares(chapter) > 0).sum()
    return {
        "most subsystems call the routine": (
            asking > len(printed.table("profiling_subsystems")) / 2
        ),
        "an attribute that is used again is fetched again": many > 1.5 * one,
        "a call costs much the same whichever attribute it is for": supporting(last < 1.25 * first),
    }


def caching_facts(chapter: Chapter) -> dict[str, Part | bool]:
    """Whether what was fetched is kept: the same calls for one use of an attribute as for many."""
    calls, (one, *_, many) = _commands(chapter)["calls"], instructions.USES
    return {
        f"{many} uses of an attribute cost no more calls than {one}": (
            calls[f"{many} uses"] <= calls[f"{one} uses"]
        ),
    }


def rule_facts(chapter: Chapter) -> dict[str, Part | bool]:
    """Whether the rule manager is out of the first ten routines of Figure 2.1's commands."""
    share = share_of(chapter, SCANS, "subsystem", ["rule_manager"])
    at_most = printed.cell("profiling_subsystems", "rule_manager", "second")
    first_ten = routines(chapter, SCANS)["subsystem"].head(10)
    return {
        "no routine of the rule manager is among the first ten": (
            not first_ten.eq("rule_manager").any()
        ),
        f"the share is no more than the printed {at_most:g} percent": supporting(share <= at_most),
    }


def per_tuple_facts(chapter: Chapter) -> dict[str, bool]:
    """Whether the test for rules is still made for each tuple and attribute."""
    three = [instructions.FEW, instructions.MANY, instructions.WIDE]
    few, many, wide_ones = by_variant(chapter, instructions.RULES, three)["rule manager"]
    return {
        "ten times the tuples make the rule manager work more": many > 1.1 * few,
        "more attributes make the rule manager work more": wide_ones > 1.1 * many,
    }


# ---- evidence: checks


def separated_facts(assertions: pd.DataFrame) -> dict[str, bool]:
    """Whether debug-only checks are apart from the others and can be compiled out."""
    internal = assertions["context"].iloc[0] == "internal"
    return {"debug-only checks are switched as one, when the server is compiled": internal}


def decisive_facts(asked: pd.DataFrame) -> dict[str, bool]:
    """Whether some checks drive decisions, so that without them the system breaks, and others
    don't. `asked` as `checks.always_true` returns it.
    """
    answer = asked.set_index("routine")["answer"]
    return {
        "without a check that decides whether a page must be fetched there is no right answer": (
            answer["StartBufferIO"] != "right"
        ),
        "without a check that only defends there is a right answer": (
            answer["PageIsVerified"] == "right"
        ),
    }
