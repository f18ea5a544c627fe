"""What it takes to fetch an attribute: by its place in the tuple, by how often it is used, by what lies before it."""

from functools import partial
from statistics import median

import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.profiling import breakdown, counted, rules
from pgrerun.chapters.profiling.queries import SCANS
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import callgrind, clock
from pgrerun.relations import loading
from pgrerun.relations.wisconsin import Wisconsin

EXPERIMENT, TIMED = "attributes", "attributes and rules, timed"
REPEATS = 5  # of a command in one observation of its time
PLACES = (1, 2, 4, 8, 13)
USES = (1, 2, 3, 5, 9)
FIXED, VARYING = "fixed width before", "varying width before"
_UNITS = {"calls": "calls/tuple", "in routine": "instructions/tuple", "in all": "instructions/tuple"}


def attributes(chapter: Chapter) -> None:
    """Count instructions and calls per tuple of the routines that fetch attributes.

    Arms: a condition on the attribute at each of `PLACES`; `USES` conditions on one attribute;
    a condition on the last attribute behind one of fixed and of varying width. No tuple qualifies.
    The commands of the experiment on rules are counted along with them.
    """
    callgrind.require()
    cluster = counted.pool(chapter)
    if chapter.run.finished(EXPERIMENT):
        return
    with cluster.connect() as connection:
        arms, others = commands(connection), rules.commands(connection)
        tuples = connection.execute("SELECT count(*) FROM tenk1").fetchone()[0]
    found = counted.by_command(cluster, arms | others)
    rules.record(chapter, {name: found[name] for name in others}, cluster)
    for arm in arms:
        one = found[arm]
        routine = one[one["function"].str.partition(".")[0].isin(counted.ATTRIBUTE_ROUTINES)]
        fetched = routine["calls"].max() if len(routine) else 0  # the outermost is called as often as the ones below it
        metrics = {"calls": fetched / tuples, "in routine": routine["exclusive"].sum() / tuples, "in all": one["exclusive"].sum() / tuples}
        counted.keep(chapter, EXPERIMENT, arm, metrics, _UNITS)


def commands(connection: psycopg.Connection) -> dict[str, str]:
    """The arms and their commands; makes the relations that they need beside tenk1."""
    names = Wisconsin("onek", 1000, attributes="1990").integers
    for table, first in (("tight", "0::int4"), ("loose", "'x'::text")):
        with connection.transaction():
            loading.replace(connection, table, f"CREATE TABLE {table} AS SELECT {first} AS first, {', '.join(names)} FROM tenk1")
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
    arms = {f"attribute {place}": _where("tenk1", [f"{names[place - 1]} < 0"]) for place in PLACES}
    arms |= {f"{uses} uses": _where("tenk1", [f"{names[-1]} < {-use}" for use in range(1, uses + 1)]) for uses in USES}
    return arms | {FIXED: _where("tight", [f"{names[-1]} < 0"]), VARYING: _where("loose", [f"{names[-1]} < 0"])}


def _where(table: str, conditions: list[str]) -> str:
    return f"SELECT count(*) FROM {table} WHERE {' OR '.join(conditions)}"


CONTRASTS = {
    "last place, not first": (f"attribute {PLACES[-1]}", f"attribute {PLACES[0]}"),
    "many uses, not one": (f"{USES[-1]} uses", f"{USES[0]} uses"),
    "behind a string": (VARYING, FIXED),
    "rules on the relation": (rules.RULED, rules.MANY),
}
"""What is compared, in words, and the two arms."""


def timed(chapter: Chapter) -> None:
    """Time the commands of `CONTRASTS` on the server under test, in turn."""
    with chapter.server.connect() as connection:
        both = commands(connection) | rules.commands(connection)
        connection.prepare_threshold = None  # every command is parsed and planned, as in a single-user backend
        connection.execute("SET max_parallel_workers_per_gather = 0")
        arms = [Arm(arm, partial(_time, connection, both[arm])) for pair in CONTRASTS.values() for arm in pair]
        chapter.compare(TIMED, arms, {"time": "s"})


def _time(connection: psycopg.Connection, command: str, block: Block) -> dict[str, float]:
    seconds = []
    for _ in range(REPEATS):
        with clock.stopwatch() as watch:
            connection.execute(command)
        seconds.append(watch.seconds)
    return {"time": median(seconds)}


def contrasts(chapter: Chapter) -> pd.DataFrame:
    """Each contrast by instructions and by time: label, panel, kind, value (a ratio), low, high."""
    rows, found = [], {name: dict(chapter.by_provenance(name)) for name in (EXPERIMENT, rules.EXPERIMENT, TIMED)}
    for kind in ("published", "measured"):
        counts = {}
        for experiment in (EXPERIMENT, rules.EXPERIMENT):
            if kind in found[experiment]:
                frame = found[experiment][kind]
                counts |= frame[frame["metric"] == "in all"].set_index("arm")["value"].to_dict()
        times = wide(found[TIMED].get(kind, pd.DataFrame()), "time")
        for label, (arm, base) in CONTRASTS.items():
            if arm in counts:
                rows.append({"panel": "instructions", "label": label, "kind": kind, "value": counts[arm] / counts[base]})
            if arm in times and base in times:
                ratio = statistics.ratio(times[arm], times[base], seed=chapter.parameters.seed)
                rows.append({"panel": "time", "label": label, "kind": kind, "value": ratio.estimate, "low": ratio.low, "high": ratio.high})
    return pd.DataFrame(rows).sort_values("panel", kind="stable", ignore_index=True) if rows else pd.DataFrame()


def found(chapter: Chapter) -> pd.DataFrame:
    """A row per arm with the numbers per tuple, from this run or else the published one; empty if neither has it."""
    return counted.by_arm(chapter, EXPERIMENT)


def routine_gain(chapter: Chapter) -> float | None:
    """How much faster Figure 2.1's commands would be if the most expensive attribute routine cost nothing."""
    if not counted.measured(chapter):
        return None
    frame = counted.routines(chapter, SCANS)
    return counted.gain(frame.loc[frame["routine"].isin(counted.ATTRIBUTE_ROUTINES), "share"].max())


def call_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Why the attribute routines are hot, if they are: because everybody calls them, or because a call is long."""
    frame = found(chapter)
    asking = counted.callers(chapter, SCANS)
    if frame.empty or asking.empty or not counted.measured(chapter):
        return None
    first, last = (frame.at[f"attribute {place}", "in routine"] for place in (PLACES[0], PLACES[-1]))
    one, many = (frame.at[f"{uses} uses", "calls"] for uses in (USES[0], USES[-1]))
    by = caller_shares(chapter)
    return {
        "most subsystems account for a tenth or more of the calls": bool((by >= 10).sum() > len(published.table("profiling_subsystems")) / 2),
        "an attribute that is used again is fetched again": bool(many > 1.5 * one),
        "a call costs much the same whichever attribute it is for": bool(last < 1.25 * first),
    }


def caller_shares(chapter: Chapter) -> pd.Series:
    """Percent of the attribute routines' calls in Figure 2.1's commands, by the subsystem that asked."""
    frame = counted.routines(chapter, SCANS)
    asking = counted.callers(chapter, SCANS)
    subsystem = frame.assign(routine=frame["routine"].str.partition(".")[0]).drop_duplicates("routine").set_index("routine")["subsystem"]
    by = asking.groupby(asking.index.map(lambda name: subsystem.get(name, "unknown"))).sum()
    return (100 * by / by.sum()).sort_values(ascending=False).rename(index=breakdown.SUBSYSTEMS)


COMPARISONS = frozenset({"int4eq", "int4lt", "int4gt", "int4le", "int4ge", "int4ne"})


def uses_per_fetch(chapter: Chapter) -> float | None:
    """Attribute values that conditions of Figure 2.1's commands compare, per call that fetches attributes.

    Every condition of Figure 2.1 compares one attribute with a constant, so a call of an int4
    comparison is a use. Without caching there would be a fetch for each.
    """
    if not counted.measured(chapter):
        return None
    frame = counted.routines(chapter, SCANS)
    uses = frame.loc[frame["routine"].isin(COMPARISONS), "calls"].sum()
    calls = frame.loc[frame["routine"].isin(counted.ATTRIBUTE_ROUTINES), "calls"].max()
    return uses / calls


def evaluated_again(chapter: Chapter) -> float | None:
    """Instructions per fetch where the place of an attribute has to be worked out for each tuple, over those where it is remembered."""
    frame = found(chapter)
    if frame.empty or chapter.run.observations(EXPERIMENT).empty:
        return None
    return frame.at[VARYING, "in routine"] / frame.at[FIXED, "in routine"]


def left_to_gain(chapter: Chapter) -> float | None:
    """How much faster Figure 2.1's commands would be if attributes and the rule manager cost nothing."""
    if not counted.measured(chapter):
        return None
    shares = counted.shares(chapter, SCANS)
    return counted.gain(counted.share_of(chapter, SCANS, counted.ATTRIBUTE_ROUTINES) + shares["rule_manager"])
