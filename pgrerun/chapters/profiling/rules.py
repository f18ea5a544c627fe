"""What rules cost a command that they don't concern: per statement, per tuple, per attribute."""

from collections.abc import Mapping

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import breakdown, counted
from pgrerun.chapters.profiling.queries import SCANS
from pgrerun.instruments import callgrind
from pgrerun.relations import loading
from pgrerun.relations.wisconsin import Wisconsin
from pgrerun.server import Cluster

EXPERIMENT = "rules"
FEW, MANY, WIDE, RULED = "1 000 tuples", "10 000 tuples", "13 attributes", "rules on the relation"


def rules(chapter: Chapter) -> None:
    """Count the rule manager's instructions in one command, over few and many tuples, one and 13 attributes.

    And over a relation that has rules, none for this kind of command. Does nothing where they were counted with the attributes.
    """
    callgrind.require()
    cluster = counted.pool(chapter)
    if chapter.run.finished(EXPERIMENT):
        return
    with cluster.connect() as connection:
        arms = commands(connection)
    record(chapter, counted.by_command(cluster, arms), cluster)


def record(chapter: Chapter, profiles: Mapping[str, pd.DataFrame], cluster: Cluster) -> None:
    """Keep the rule manager's instructions and all of them, by arm."""
    for arm, profile in profiles.items():
        one = breakdown.placed(profile, cluster._executable("postgres"))
        metrics = {"rule manager": float(one.loc[one["subsystem"] == "rule_manager", "exclusive"].sum()), "in all": float(one["exclusive"].sum())}
        counted.keep(chapter, EXPERIMENT, arm, metrics, "instructions")


def commands(connection: psycopg.Connection) -> dict[str, str]:
    """The arms and their commands; makes the relation that has rules."""
    integers = Wisconsin("onek", 1000, attributes="1990").integers
    with connection.transaction():
        loading.replace(connection, "ruled", "CREATE TABLE ruled AS SELECT * FROM tenk1")
        for event in ("DELETE", "UPDATE"):
            connection.execute(f"CREATE RULE on_{event} AS ON {event} TO ruled DO ALSO NOTHING")
    connection.execute("VACUUM (FREEZE, ANALYZE) ruled")
    query = "SELECT count(*) FROM {} WHERE {}"
    return {
        FEW: query.format("onek", "unique2 >= 0"),
        MANY: query.format("tenk1", "unique2 >= 0"),
        WIDE: query.format("tenk1", " AND ".join(f"{name} >= 0" for name in integers)),
        RULED: query.format("ruled", "unique2 >= 0"),
    }


def found(chapter: Chapter) -> pd.DataFrame:
    """A row per arm: instructions of the rule manager and of all, from this run or else the published one."""
    wide = counted.by_arm(chapter, EXPERIMENT)
    if wide.empty:
        return wide
    return wide.reindex([FEW, MANY, WIDE, RULED]).rename_axis("one command over").reset_index()[["one command over", "rule manager", "in all"]]


def without_rules_gain(chapter: Chapter) -> float | None:
    """How much faster Figure 2.1's commands would be if the rule manager cost nothing; no rule exists."""
    return counted.gain(counted.shares(chapter, SCANS)["rule_manager"]) if counted.measured(chapter) else None


def per_tuple_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether the test for rules is still made for each tuple and attribute."""
    frame = found(chapter)
    if frame.empty or chapter.run.observations(EXPERIMENT).empty:
        return None
    cost = frame.set_index("one command over")["rule manager"]
    return {
        "ten times the tuples make the rule manager work more": bool(cost[MANY] > 1.1 * cost[FEW]),
        "more attributes make it work more": bool(cost[WIDE] > 1.1 * cost[MANY]),
    }


def share(chapter: Chapter) -> float | None:
    """Percent of Figure 2.1's instructions that the rule manager takes."""
    return counted.shares(chapter, SCANS)["rule_manager"] if counted.measured(chapter) else None
