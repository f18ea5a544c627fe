"""Checks: how many are executed, and what happens without them."""

import subprocess
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.profiling import queries
from pgrerun.chapters.profiling.queries import SETS
from pgrerun.errors import CannotMeasure
from pgrerun.lab import sent
from pgrerun.lab.instruments import callgrind, instructions, patching, single_user
from pgrerun.lab.server import Cluster

KINDS = "kinds of instruction"
CHECKED = "checks in "  # before a routine, in a metric's name


def assertions(chapter: Chapter) -> pd.DataFrame:
    """What the server says about its assertions: setting, value, context."""
    with chapter.server.connect() as connection:
        cursor = connection.execute(
            "SELECT name AS setting, setting AS value, context FROM pg_settings"
            " WHERE name = 'debug_assertions'"
        )
        return pd.DataFrame(cursor.fetchall(), columns=["setting", "value", "context"])


@experiment(claims=["lai-014"])
def kinds_of_instruction(chapter: Chapter) -> None:
    """Count the instructions of both query sets by what they are for: error checks, tests of a
    node's type, the rest.
    """
    if reason := instructions.unavailable():
        raise CannotMeasure("callgrind" if callgrind.unavailable() else "objdump", reason)
    cluster = queries.loaded_cluster(chapter)
    if chapter.run.finished(KINDS):
        return
    work = queries.groups(chapter, queries.BATCH, *SETS)
    with single_user.stopped(cluster), single_user.copied(cluster) as own:
        both = instructions.kinds(own, work, unreported={queries.WARM_UP})
    for workload, counted in both.groupby("group"):
        by_kind = counted.groupby("kind")[["executed", "instructions"]].sum().stack()
        metrics = {f"{kind}: {column}": float(value) for (kind, column), value in by_kind.items()}
        checks = counted[counted["kind"] == instructions.ERROR_CHECK]
        checks = checks.assign(function=checks["function"].str.partition("'")[0])
        for row in checks.nlargest(8, "executed").itertuples():
            metrics[CHECKED + row.function] = float(row.executed)
        chapter.keep(KINDS, workload, metrics, "")


PATCHES = (
    ("as built", "", 0),
    ("each page passes its verification", "PageIsVerified", 1),
    ("each page is in its buffer already", "StartBufferIO", 0),
)
"""A check in words, the routine that makes it, and what the routine always answers."""

_QUERY = "SELECT count(*) AS tuples FROM tenk1"


@experiment(claims=["lai-017"])
def always_true(chapter: Chapter) -> pd.DataFrame:
    """Ask one question of servers in which one check always says that all is well.

    Columns: check, routine, answer ("right", "wrong" or "none"), last words (what the server said
    at its end). Each gets a copy of the cluster's files, since it may write nonsense.
    """
    cluster = queries.loaded_cluster(chapter)
    with single_user.stopped(cluster):
        rows = single_user.three_at_a_time(partial(_ask, chapter, cluster), PATCHES)
    return pd.DataFrame(rows, columns=["check", "routine", "answer", "last words"])


def _ask(
    chapter: Chapter, cluster: Cluster, patch: tuple[str, str, int]
) -> tuple[str, str, str, str]:
    check, routine, answer = patch
    sent.statement(_QUERY)
    with single_user.copied(cluster) as own:
        if routine:
            with patching.answering(chapter.programs, routine, answer) as program:
                done = own.single_user(
                    program=program, input=f"{_QUERY}\n", capture_output=True, timeout=120
                )
        else:
            done = own.single_user(input=f"{_QUERY}\n", capture_output=True, timeout=120)
    expected = f'tuples = "{10_000 * chapter.parameters.scale}"'
    if expected in done.stdout and not done.returncode:
        return check, routine, "right", ""
    return check, routine, "wrong" if "tuples = " in done.stdout else "none", _last_words(done)


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    errors = [
        line.partition("] ")[2]
        for line in done.stderr.splitlines()
        if any(word in line for word in ("FATAL:", "PANIC:", "ERROR:"))
    ]
    return errors[-1] if errors else f"exit status {done.returncode}"
