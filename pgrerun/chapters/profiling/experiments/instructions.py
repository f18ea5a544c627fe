"""Instructions of both query sets by routine, from callgrind: the modern `pixie`; and of single
commands that fetch attributes, or are concerned by no rule.
"""

from collections import defaultdict
from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.profiling import queries, subsystems
from pgrerun.chapters.profiling.queries import SETS, SQL
from pgrerun.lab.instruments import callgrind, single_user
from pgrerun.lab.relations import loading
from pgrerun.lab.relations.wisconsin import Wisconsin
from pgrerun.lab.server import Cluster

INSTRUCTIONS, CALLS, CALLERS, FLAME, PHASES = (
    "instructions",
    "calls",
    "callers",
    "flame",
    "phases",
)
ATTRIBUTES, RULES = "attributes", "rules"
# Frames of the flame graph with less than this share are drawn as their caller's own.
LEAST_FRAME = 0.002
ENTRY = "exec_simple_query"

ATTRIBUTE_ROUTINES = subsystems.group("attributes")

PHASE_OF = {
    "pg_parse_query": "parse",
    "pg_analyze_and_rewrite_fixedparams": "parse",
    "parse_analyze_fixedparams": "parse",
    "pg_rewrite_query": "parse",
    "pg_plan_queries": "plan",
    "pg_plan_query": "plan",
    "CreatePortal": "execute",
    "PortalStart": "execute",
    "PortalRun": "execute",
    "PortalDrop": "execute",
    "start_xact_command": "begin and commit",
    "finish_xact_command": "begin and commit",
    "CommitTransactionCommand": "begin and commit",
    "StartTransactionCommand": "begin and commit",
}
"""Routine to the phase of a command that it begins; what none of them calls is dispatch."""


@experiment(
    claims=[
        *("lai-002", "lai-003", "lai-005", "lai-006", "lai-009"),
        *("lai-014", "lai-016", "lai-019", "lai-020", "lai-021", "lai-022", "lai-023", "lai-024"),
        "lai-025",
    ]
)
def instructions_by_routine(chapter: Chapter) -> None:
    """Count the instructions of Figure 2.1's commands and of Figure 2.3's transactions, by routine.

    A command of each kind runs before any is counted, so that catalog caches are filled.
    """
    callgrind.require()
    cluster = queries.loaded_cluster(chapter)
    if chapter.run.finished(INSTRUCTIONS):
        return
    with single_user.stopped(cluster):
        stacks = single_user.three_at_a_time(partial(_stacks, chapter, cluster), SETS)
    for workload, counted in zip(SETS, stacks, strict=True):
        _record(chapter, workload, counted[counted["group"] == workload])


def _stacks(chapter: Chapter, cluster: Cluster, workload: str, late: bool = True) -> pd.DataFrame:
    """A query set's instructions by stack.

    Where callgrind can't be switched on after the warm-up it takes twice as long.
    """
    work = queries.groups(chapter, chapter.parameters.transactions, workload)
    try:
        with single_user.copied(cluster) as own:
            return callgrind.stacks(own, work, unreported={queries.WARM_UP}, late=late)
    except callgrind.NotSwitchedOn:
        return _stacks(chapter, cluster, workload, late=False)


def _record(chapter: Chapter, workload: str, stacks: pd.DataFrame) -> None:
    """One observation per kind of number, a metric per routine or stack."""
    flat = stacks.groupby(["function", "object"], as_index=False)[["exclusive", "calls"]].sum()
    flat = flat[flat["exclusive"] > 0].astype({"exclusive": float, "calls": float})
    flat = subsystems.placed(flat, chapter.programs.path("postgres"))
    parts = flat[["function", "file", "directory", "subsystem", "object"]].fillna("")
    flat.index = pd.Index(parts.agg(subsystems.SEPARATOR.join, axis="columns"))
    # what the experiment asks for comes last: an interrupted record is made anew
    for name, metrics, unit in (
        (PHASES, phases(stacks), "instructions"),
        (FLAME, pruned(stacks), "instructions"),
        (CALLERS, attribute_callers(stacks), "calls"),
        (CALLS, flat["calls"].to_dict(), "calls"),
        (INSTRUCTIONS, flat["exclusive"].to_dict(), "instructions"),
    ):
        chapter.keep(name, workload, metrics, unit)


def _frames(stack: str) -> list[str]:
    """A stack from the statement on, without how the process came to it; split-off parts under
    their routine's name.
    """
    names = [name.partition(".")[0] for name in stack.split(";")]
    return names[names.index(ENTRY) :] if ENTRY in names else ["(callers cut off)", *names]


def pruned(stacks: pd.DataFrame) -> dict[str, float]:
    """Instructions by stack; what lies below frames of less than LEAST_FRAME counts as its caller's
    own. `stacks` as `callgrind.stacks` gives them.
    """
    inclusive: dict[tuple[str, ...], int] = defaultdict(int)
    own = [
        (tuple(_frames(stack)), cost)
        for stack, cost in zip(stacks["stack"], stacks["exclusive"], strict=True)
    ]
    for frames, cost in own:
        for depth in range(1, len(frames) + 1):
            inclusive[frames[:depth]] += cost
    least = LEAST_FRAME * stacks["exclusive"].sum()
    kept: dict[str, float] = defaultdict(float)
    for frames, cost in own:
        while len(frames) > 1 and inclusive[frames] < least:
            frames = frames[:-1]
        kept[";".join(frames)] += cost
    return dict(kept)


def attribute_callers(stacks: pd.DataFrame) -> dict[str, float]:
    """Calls of the attribute routines by the routine that asked."""
    calls_by: dict[str, float] = defaultdict(float)
    called = stacks[stacks["calls"] > 0]
    for stack, calls in zip(called["stack"], called["calls"], strict=True):
        *callers, function = _frames(stack)
        asked = function in ATTRIBUTE_ROUTINES and callers
        if asked and callers[-1] not in ATTRIBUTE_ROUTINES:
            calls_by[callers[-1]] += calls
    return dict(calls_by)


def phases(stacks: pd.DataFrame) -> dict[str, float]:
    """Instructions by phase of a command: the outermost routine below the statement decides.

    What a utility command plans for itself (CREATE TABLE AS) counts as plan.
    """
    cost_of = dict.fromkeys([*PHASE_OF.values(), "dispatch"], 0.0)
    for stack, cost in zip(stacks["stack"], stacks["exclusive"], strict=True):
        begun = [PHASE_OF[name] for name in _frames(stack) if name in PHASE_OF]
        phase = "plan" if "plan" in begun else [*begun, "dispatch"][0]
        cost_of[phase] += cost
    return cost_of


# ---- single commands: fetching attributes, and rules that concern nobody

PLACES = (1, 2, 4, 8, 13)
USES = (1, 2, 3, 5, 9)
FEW, MANY, WIDE, RULED = "1 000 tuples", "10 000 tuples", "13 attributes", "rules on the relation"

_INTEGERS = Wisconsin("tenk1", 10_000, attributes="1990").integers
ATTRIBUTE_COMMANDS = {
    f"attribute {place}": queries.one_line("attributes.one_use", attribute=_INTEGERS[place - 1])
    for place in PLACES
}
ATTRIBUTE_COMMANDS |= {f"{uses} uses": queries.one_line(f"attributes.uses_{uses}") for uses in USES}
"""Variants: a condition on the attribute at each of `PLACES`; `USES` conditions on one attribute.
No tuple qualifies.
"""

RULE_COMMANDS = {
    FEW: queries.one_line("rules.few_tuples"),
    MANY: queries.one_line("rules.many_tuples"),
    WIDE: queries.one_line("rules.many_attributes"),
    RULED: queries.one_line("rules.ruled"),
}
"""Variants: few and many tuples, one and 13 attributes; a relation that has rules, none for this
kind of command.
"""


@experiment(claims=["lai-006", "lai-007", "lai-010"])
def attributes_and_rules(chapter: Chapter) -> None:
    """Count each of `ATTRIBUTE_COMMANDS` and `RULE_COMMANDS` by itself.

    Of the first: instructions and calls per tuple of the routines that fetch attributes. Of the
    others: instructions of the rule manager.
    """
    callgrind.require()
    cluster = queries.loaded_cluster(chapter)
    if chapter.run.finished(ATTRIBUTES):
        return
    with cluster.connect() as connection:
        make_relations(connection)
        tuples = connection.execute("SELECT count(*) FROM tenk1").fetchone()[0]
    profiles = callgrind.by_command(
        cluster, ATTRIBUTE_COMMANDS | RULE_COMMANDS, queries.one_line("relations.prewarm")
    )
    for variant in RULE_COMMANDS:
        profile = subsystems.placed(profiles[variant], chapter.programs.path("postgres"))
        of_rules = profile[profile["subsystem"] == "rule_manager"]
        metrics = {
            "rule manager": float(of_rules["exclusive"].sum()),
            "in all": float(profile["exclusive"].sum()),
        }
        chapter.keep(RULES, variant, metrics, "instructions")
    for variant in ATTRIBUTE_COMMANDS:
        profile = profiles[variant]
        fetching = profile[profile["function"].str.partition(".")[0].isin(ATTRIBUTE_ROUTINES)]
        metrics = {
            # the outermost is called as often as the ones below it
            "calls": fetching["calls"].max() / tuples if len(fetching) else 0.0,
            "in routine": fetching["exclusive"].sum() / tuples,
            "in all": profile["exclusive"].sum() / tuples,
        }
        units = dict.fromkeys(metrics, "instructions/tuple") | {"calls": "calls/tuple"}
        chapter.keep(ATTRIBUTES, variant, metrics, units)


def make_relations(connection: psycopg.Connection) -> None:
    """Make what the commands need beside tenk1: ruled, with rules for DELETE and UPDATE."""
    with connection.transaction():
        loading.replace(connection, "ruled", SQL.each("relations.ruled")[0])
        SQL.run(connection, "relations.rules")
    connection.execute("VACUUM (FREEZE, ANALYZE) ruled")
