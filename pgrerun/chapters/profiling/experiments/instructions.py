"""Instructions of both query sets by routine, from callgrind: the modern `pixie`; and of single
commands that fetch attributes, or are concerned by no rule.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import pandas as pd

from pgrerun.chapters.profiling import queries, subsystems
from pgrerun.lab.instruments import callgrind, single_user
from pgrerun.lab.relations import Wisconsin, loading
from pgrerun.lab.server import Cluster
from pgrerun.lab.testbed import Row, Testbed, experiment

# Frames of the flame graph with less than this share are drawn as their caller's own.
LEAST_FRAME = 0.002
ENTRY = "exec_simple_query"

ATTRIBUTE_ROUTINES = subsystems.GROUPS["attributes"]

# Routine to the phase of a command that it begins; what none of them calls is dispatch.
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


@experiment(units={"instructions": "instructions", "calls": "calls"})
def profile(bed: Testbed) -> Iterator[Row]:
    """Count the instructions of Figure 2.1's commands and of Figure 2.3's transactions.

    Rows of four kinds: "routine" (with its place in the source; instructions that it executes
    itself, and calls), "phase" of a command, "caller" of the routines that fetch attributes, and
    "stack" (for the flame graph; frames too small to be seen count as their caller's own). A
    command of each kind runs before any is counted, so that catalog caches are filled. `commands`
    is how many ran.
    """
    callgrind.require()
    cluster = queries.loaded_cluster(bed)
    with single_user.stopped(cluster):
        counted = single_user.three_at_a_time(partial(_stacks, bed, cluster), queries.SETS)
    for query_set, stacks in zip(queries.SETS, counted, strict=True):
        own = stacks[stacks["group"] == query_set]
        for row in _rows(own, bed.programs.path("postgres")):
            yield {"query_set": query_set} | row


def _stacks(bed: Testbed, cluster: Cluster, query_set: str, late: bool = True) -> pd.DataFrame:
    """A query set's instructions by stack.

    Where callgrind can't be switched on after the warm-up it takes twice as long.
    """
    work = queries.groups(bed, bed.parameters.transactions, query_set)
    try:
        with single_user.copied(cluster) as own:
            return callgrind.stacks(own, work, unreported={queries.WARM_UP}, late=late)
    except callgrind.NotSwitchedOn:
        return _stacks(bed, cluster, query_set, late=False)


def _rows(stacks: pd.DataFrame, program: object) -> Iterator[Row]:
    flat = stacks.groupby(["function", "object"], as_index=False)[["exclusive", "calls"]].sum()
    placed = subsystems.placed(flat[flat["exclusive"] > 0], program)
    for row in placed.sort_values("exclusive", ascending=False).itertuples():
        routine = row.function.partition(".")[0]
        yield {
            "kind": "routine",
            "name": row.function,
            "routine": routine,
            "routine_group": subsystems.GROUP_OF.get(routine),
            "file": row.file,
            "directory": row.directory,
            "subsystem": subsystems.NAMES[row.subsystem],
            "object": row.object,
            "instructions": int(row.exclusive),
            "calls": int(row.calls),
        }
    for phase, cost in phases(stacks).items():
        yield {"kind": "phase", "name": phase, "instructions": int(cost)}
    for stack, cost in pruned(stacks).items():
        yield {"kind": "stack", "name": stack, "instructions": int(cost)}
    for caller, calls in attribute_callers(stacks).items():
        yield {"kind": "caller", "name": caller, "calls": int(calls)}


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


@experiment(units={"commands": "commands"})
def batch(bed: Testbed) -> Iterator[Row]:
    """How many commands the report's batch of transactions has."""
    commands = queries.transactions(bed, queries.REPORT_TRANSACTIONS)
    yield {"query_set": queries.TRANSACTIONS, "commands": len(commands)}


# ---- single commands: fetching attributes, and rules that concern nobody

PLACES = (1, 2, 4, 8, 13)
USES = (1, 2, 3, 5, 9)
_INTEGERS = Wisconsin("tenk1", 10_000, attributes="1990").integers
_BY_PLACE = {
    place: queries.SQL.line("attributes.one_use", attribute=_INTEGERS[place - 1])
    for place in PLACES
}
_BY_USES = {uses: queries.SQL.line(f"attributes.uses_{uses}") for uses in USES}
# Tuples and attributes that a command looks at, whether the relation has rules (none for this kind
# of command), and the statement.
RULE_COMMANDS = {
    "few tuples": (1_000, 1, False, "rules.few_tuples"),
    "many tuples": (10_000, 1, False, "rules.many_tuples"),
    "many attributes": (10_000, 13, False, "rules.many_attributes"),
    "rules on the relation": (10_000, 1, True, "rules.ruled"),
}


@experiment(
    units={
        "calls": "calls/tuple",
        "in_routine": "instructions/tuple",
        "in_all": "instructions/tuple",
    }
)
def attributes(bed: Testbed) -> Iterator[Row]:
    """Count conditions on the attribute at each of `PLACES`, and `USES` conditions on one.

    Calls of the routines that fetch attributes, and instructions in them, per tuple; no tuple
    qualifies.
    """
    commands = {("place", number): sql for number, sql in _BY_PLACE.items()}
    commands |= {("uses", number): sql for number, sql in _BY_USES.items()}
    tuples, profiles = _by_command(bed, {f"{by} {n}": sql for (by, n), sql in commands.items()})
    for by, number in commands:
        found = profiles[f"{by} {number}"]
        fetching = found[found["function"].str.partition(".")[0].isin(ATTRIBUTE_ROUTINES)]
        yield {
            "varied": by,
            "number": number,
            # the outermost is called as often as the ones below it
            "calls": float(fetching["calls"].max()) / tuples if len(fetching) else 0.0,
            "in_routine": float(fetching["exclusive"].sum()) / tuples,
            "in_all": float(found["exclusive"].sum()) / tuples,
        }


@experiment(units={"in_rule_manager": "instructions", "in_all": "instructions"})
def rules(bed: Testbed) -> Iterator[Row]:
    """Count the rule manager's instructions in one command each of `RULE_COMMANDS`."""
    commands = {name: queries.SQL.line(found[-1]) for name, found in RULE_COMMANDS.items()}
    _, profiles = _by_command(bed, commands)
    for name, (tuples, many, ruled, _) in RULE_COMMANDS.items():
        found = subsystems.placed(profiles[name], bed.programs.path("postgres"))
        of_rules = found[found["subsystem"] == "rule_manager"]
        yield {
            "tuples": tuples,
            "attributes": many,
            "ruled": ruled,
            "in_rule_manager": int(of_rules["exclusive"].sum()),
            "in_all": int(found["exclusive"].sum()),
        }


def _by_command(bed: Testbed, commands: dict[str, str]) -> tuple[int, dict[str, pd.DataFrame]]:
    """The number of tuples in tenk1, and the profile of each command.

    Beside it there is `ruled`, with rules for DELETE and UPDATE.
    """
    callgrind.require()
    cluster = queries.loaded_cluster(bed)
    with cluster.connect() as connection:
        made = [*queries.SQL.each("relations.ruled"), *queries.SQL.each("relations.rules")]
        loading.make(connection, "ruled", *made)
        connection.execute("VACUUM (FREEZE, ANALYZE) ruled")
        [tuples] = connection.execute("SELECT count(*) FROM tenk1").fetchone()
    return tuples, callgrind.by_command(cluster, commands, queries.SQL.line("relations.prewarm"))


@experiment(units={"postquel": "text", "sql": "text"})
def commands(bed: Testbed) -> Iterator[Row]:
    """The commands of both figures as printed, and in SQL; long ones cut short."""
    for figure, pairs in (("2.1", queries.FIGURE_2_1), ("2.3", queries.FIGURE_2_3)):
        for number, pair in enumerate(pairs, start=1):
            postquel, sql = (text if len(text) < 110 else text[:100] + " …" for text in pair)
            yield {"figure": figure, "command": number, "postquel": postquel, "sql": sql}
