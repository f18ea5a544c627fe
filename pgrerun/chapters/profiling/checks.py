"""Checks: which can be compiled out, which are called for nothing, and what happens without them."""

import subprocess
from pathlib import Path

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import counted
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.errors import CannotMeasure
from pgrerun.instruments import callgrind, instructions, patching
from pgrerun.server import Cluster

TRACE_ROUTINES = frozenset(
    {"errstart", "message_level_is_interesting", "ShowTransactionState", "check_log_statement", "check_log_duration", "should_output_to_server",
     "should_output_to_client", "log_status_format", "errfinish", "errmsg_internal", "errmsg", "BgBufferSync", "TraceTransaction"}
)  # fmt: skip
"""Routines that a statement calls to write a message that nobody asked for, and that return at once."""


def build(chapter: Chapter) -> pd.DataFrame:
    """What the server says about its assertions: setting, value, context."""
    with chapter.server.connect() as connection:
        rows = connection.execute(
            "SELECT name AS setting, setting AS value, context FROM pg_settings WHERE name = 'debug_assertions'"
        ).fetchall()
    return pd.DataFrame(rows, columns=["setting", "value", "context"])


def separated(assertions: pd.DataFrame) -> dict[str, bool]:
    """Whether debug-only checks are apart from the others and can be compiled out."""
    row = assertions.iloc[0]
    return {
        "debug-only checks are switched as one, when the server is compiled": row["context"] == "internal",
        "this server is built without them": row["value"] == "off",
    }


KINDS = "kinds of instruction"


def kinds(chapter: Chapter) -> None:
    """Count the instructions of both query sets by what they are for: error checks, tests of a node's type, the rest."""
    if reason := instructions.unavailable():
        raise CannotMeasure("callgrind" if callgrind.unavailable() else "objdump", reason)
    cluster = counted.pool(chapter)
    if chapter.run.finished(KINDS):
        return

    with counted.stopped(cluster), counted.twin(cluster) as own:
        both = instructions.kinds(own, counted.groups(chapter, counted.BATCH, SCANS, TRANSACTIONS), unreported={counted.WARM_UP})
    for workload, chosen in both.groupby("group"):
        by = chosen.groupby("kind")[["executed", "instructions"]].sum()
        metrics = {f"{kind}: {column}": float(by.at[kind, column]) for kind in by.index for column in by.columns}
        busiest = chosen[chosen["kind"] == instructions.ERROR_CHECK].nlargest(8, "executed")
        metrics |= {f"{_CHECKED}{row.function.partition(chr(39))[0]}": float(row.executed) for row in busiest.itertuples()}
        counted.keep(chapter, KINDS, workload, metrics, "")


_CHECKED = "checks in "


def by_kind(chapter: Chapter) -> pd.DataFrame:
    """A row per query set and kind: how many were executed, how many instructions, share of all in percent."""
    rows = []
    for workload in (SCANS, TRANSACTIONS):
        found = counted._of(chapter, KINDS, workload)
        for kind in (instructions.ERROR_CHECK, instructions.TYPE_TEST):
            if f"{kind}: instructions" in found:
                total = found[[name for name in found.index if name.endswith(": instructions")]].sum()
                cost = found[f"{kind}: instructions"]
                rows.append((workload, kind, int(found[f"{kind}: executed"]), int(cost), 100 * cost / total))
    return pd.DataFrame(rows, columns=["query set", "kind", "executed", "instructions", "% instructions"])


def busiest(chapter: Chapter) -> pd.DataFrame:
    """The routines that make most error checks in Figure 2.1's commands."""
    found = counted._of(chapter, KINDS, SCANS)
    rows = [(name.removeprefix(_CHECKED), int(value)) for name, value in found.items() if name.startswith(_CHECKED)]
    return pd.DataFrame(rows, columns=["routine", "error checks"]).sort_values("error checks", ascending=False)


def kind_gain(chapter: Chapter, kind: str) -> float | None:
    """How much faster Figure 2.1's commands would be if instructions of this kind cost nothing."""
    if chapter.run.observations(KINDS).empty:
        return None
    frame = by_kind(chapter)
    return counted.gain(frame.loc[(frame["query set"] == SCANS) & (frame["kind"] == kind), "% instructions"].sum())


def error_check_gain(chapter: Chapter) -> float | None:
    """How much faster Figure 2.1's commands would be without any check that can end in an error."""
    return kind_gain(chapter, instructions.ERROR_CHECK)


def type_test_gain(chapter: Chapter) -> float | None:
    """How much faster Figure 2.1's commands would be if testing types of nodes cost nothing."""
    return kind_gain(chapter, instructions.TYPE_TEST)


def trace_gain(chapter: Chapter) -> float | None:
    """How much faster Figure 2.1's commands would be without calls that might write a message and don't."""
    return counted.gain(counted.share_of(chapter, SCANS, TRACE_ROUTINES)) if counted.measured(chapter) else None


_ALWAYS = (
    ("as built", "", 0),
    ("each page passes its verification", "PageIsVerified", 1),
    ("each page is in its buffer already", "StartBufferIO", 0),
    ("each buffer is valid", "PinBuffer", 1),
)
_QUERY = "SELECT count(*) AS tuples FROM tenk1"


def always_true(chapter: Chapter) -> pd.DataFrame:
    """Ask one question of servers in which one check always says that all is well.

    Columns: check, routine, answer ("right", "wrong" or "none"), what it said at its end. Each gets a
    copy of the cluster's files, since it may write nonsense.
    """
    if chapter.borrowed:
        raise CannotMeasure("restart", "it needs a server program that may be changed")
    cluster = counted.pool(chapter)
    with counted.stopped(cluster):
        rows = counted.in_turn(lambda row: _asked(chapter, cluster, *row), _ALWAYS)
    return pd.DataFrame(rows, columns=["check", "routine", "answer", "last words"])


def _asked(chapter: Chapter, cluster: Cluster, check: str, routine: str, answer: int) -> tuple[str, str, str, str]:
    with counted.twin(cluster) as own:
        if not routine:
            done = _single_user(own)
        else:
            with patching.answering(chapter.programs, routine, answer) as program:
                done = _single_user(own, program)
    expected = f'tuples = "{10_000 * chapter.parameters.scale}"'
    right = expected in done.stdout and not done.returncode
    said = "right" if right else "wrong" if "tuples = " in done.stdout else "none"
    return check, routine, said, "" if right else _last_words(done)


def _single_user(cluster: Cluster, program: Path | None = None) -> subprocess.CompletedProcess:
    return cluster.single_user(program=program, input=_QUERY + "\n", capture_output=True, timeout=120)


def _last_words(done: subprocess.CompletedProcess) -> str:
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    errors = [line.partition("] ")[2] for line in done.stderr.splitlines() if any(word in line for word in ("FATAL:", "PANIC:", "ERROR:"))]
    return errors[-1] if errors else f"exit status {done.returncode}"


def decisive(asked: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether some checks drive decisions, so that without them the system breaks, and others don't."""
    if asked is None:
        return None
    answer = asked.set_index("routine")["answer"]
    return {
        "without a check that decides whether a page must be fetched there is no right answer": answer["PinBuffer"] != "right" and answer["StartBufferIO"] != "right",
        "without a check that only defends there is": answer["PageIsVerified"] == "right",
    }


EXPERIMENT = "page verification"
WITH, WITHOUT = "pages verified", "never verified"


def page_verification(chapter: Chapter) -> None:
    """Count both sets' instructions with and without the check of each page that is read.

    With the report's buffer pool of 16 pages, so that pages are read again and again.
    """
    callgrind.require()
    cluster = counted.pool(chapter)
    if chapter.run.finished(EXPERIMENT):
        return
    with patching.answering(chapter.programs, "PageIsVerified", 1) as patched, counted.stopped(cluster):
        both = counted.in_turn(lambda program: counted.of_both_sets(chapter, cluster, {}, program=program), (None, patched))
    for arm, metrics in zip((WITH, WITHOUT), both):
        counted.keep(chapter, EXPERIMENT, arm, metrics, "instructions")


def verified_over_not(chapter: Chapter) -> float | None:
    """Instructions with the pages verified over those without."""
    frame = chapter.run.observations(EXPERIMENT)
    if frame.empty:
        return None
    value = frame[frame["metric"] == SCANS].set_index("arm")["value"]
    return value[WITH] / value[WITHOUT]
