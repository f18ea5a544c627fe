"""Checks: how many are executed, and what happens without them."""

import subprocess
from collections.abc import Iterator
from functools import partial

from pgrerun.chapters.profiling import queries
from pgrerun.errors import CannotMeasure
from pgrerun.lab import statement_log
from pgrerun.lab.instruments import callgrind, instructions, patching, single_user
from pgrerun.lab.server import Cluster, releases
from pgrerun.lab.testbed import Row, Testbed, experiment

KINDS = {instructions.ERROR_CHECK: "error check", instructions.TYPE_TEST: "type test"}


@experiment(units={"value": "text", "context": "text"})
def assertions(bed: Testbed) -> Iterator[Row]:
    """What the server says about its assertions."""
    with bed.server.connect() as connection:
        [(value, context)] = connection.execute(
            "SELECT setting, context FROM pg_settings WHERE name = 'debug_assertions'"
        ).fetchall()
    yield {"setting": "debug_assertions", "value": value, "context": context}


@experiment(units={"executed": "checks", "instructions": "instructions"})
def kinds_of_instruction(bed: Testbed) -> Iterator[Row]:
    """Count the instructions of both query sets by what they are for: error checks, tests of a
    node's type, the rest; and error checks by routine, of those that make most.

    `routine` is empty where all of a kind are counted.
    """
    if reason := instructions.unavailable():
        raise CannotMeasure("callgrind" if callgrind.unavailable() else "objdump", reason)
    cluster = queries.loaded_cluster(bed)
    work = queries.groups(bed, queries.BATCH, *queries.SETS)
    with single_user.stopped(cluster), single_user.copied(cluster) as own:
        both = instructions.kinds(own, work, unreported={queries.WARM_UP})
    for query_set, counted in both.groupby("group"):
        for kind, cost in counted.groupby("kind")[["executed", "instructions"]].sum().iterrows():
            yield {
                "query_set": query_set,
                "kind": KINDS.get(kind, "other"),
                "routine": None,
                "executed": int(cost["executed"]),
                "instructions": int(cost["instructions"]),
            }
        checks = counted[counted["kind"] == instructions.ERROR_CHECK]
        checks = checks.assign(function=checks["function"].str.partition("'")[0])
        for row in checks.nlargest(8, "executed").itertuples():
            yield {
                "query_set": query_set,
                "kind": KINDS[instructions.ERROR_CHECK],
                "routine": row.function,
                "executed": int(row.executed),
            }


# A check in words, the routine that makes it, and what the routine always answers.
PATCHES = (
    ("as built", "", 0),
    ("each page passes its verification", "PageIsVerified", 1),
    ("each page is in its buffer already", "StartBufferIO", 0),
)

_QUERY = "SELECT count(*) AS tuples FROM tenk1"


@experiment(units={"answer": "text", "last_words": "text"})
def always_true(bed: Testbed) -> Iterator[Row]:
    """Ask one question of servers in which one check always says that all is well.

    The answer is "right", "wrong" or "none", with what the server said at its end. Each gets a copy
    of the cluster's files, since it may write nonsense.
    """
    cluster = queries.loaded_cluster(bed)
    with single_user.stopped(cluster):
        yield from single_user.three_at_a_time(partial(_ask, bed, cluster), PATCHES)


def _ask(bed: Testbed, cluster: Cluster, patch: tuple[str, str, int]) -> Row:
    check, routine, answer = patch
    statement_log.log_statement(_QUERY)
    given = {"input": f"{_QUERY}\n", "capture_output": True, "timeout": 120}
    with single_user.copied(cluster) as own:
        if routine:
            named = releases.routine(bed.programs.number, routine)
            with patching.answering(bed.programs, named, answer) as program:
                done = own.single_user(program=program, **given)
        else:
            done = own.single_user(**given)
    row = {"check_left_out": check, "routine": routine}
    if f'tuples = "{10_000 * bed.parameters.scale}"' in done.stdout and not done.returncode:
        return row | {"answer": "right", "last_words": ""}
    wrong = "wrong" if "tuples = " in done.stdout else "none"
    return row | {"answer": wrong, "last_words": _last_words(done)}


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    errors = [
        line.partition("] ")[2]
        for line in done.stderr.splitlines()
        if any(word in line for word in ("FATAL:", "PANIC:", "ERROR:"))
    ]
    return errors[-1] if errors else f"exit status {done.returncode}"
