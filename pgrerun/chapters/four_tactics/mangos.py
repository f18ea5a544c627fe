"""Table 9 again: the memorandum's arithmetic for an operating system of its own, with the costs of today."""

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.heirs import TUPLEWISE
from pgrerun.chapters.four_tactics.system import UNITS

_RUN = "d_3360"  # the qualification whose evaluation per tuple is measured on PostgreSQL as well


def cheaper(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """How many times what it costs here a switch and a message cost in 1981, and evaluating query d on one tuple by an interpreter."""
    costs, seconds = {name: chapter.median("costs", name, "here") for name in ("switch", "message")}, chapter.table("vectors", "seconds")
    if None in costs.values() or seconds.empty:
        return None
    said = published.table("four_tactics_said").value
    evaluating = statistics.median(seconds[TUPLEWISE] / chapter.parameters.tuples / _tuple_then(), seed=chapter.parameters.seed)
    return {
        "a task switch": _times(costs["switch"], 1e-3 / said.switch_ms),
        "a message": _times(costs["message"], 1e-3 / said.message_ms),
        "query d for one tuple": evaluating.inverse(),
    }  # fmt: skip


def _times(cost: statistics.Interval, over: float) -> statistics.Interval:
    """What it cost in print over what it costs here; `over`: one over the print."""
    return statistics.Interval(cost.estimate * over, cost.low * over, cost.high * over, cost.n).inverse()


def _tuple_then() -> float:
    return published.cell("four_tactics_mangos_cpu", _RUN, "ingres") / int(_RUN[2:])


def again(chapter: Chapter) -> pd.DataFrame | None:
    """Improvement by MANGOS (%), by run: in print, and for a machine that switches, sends and evaluates at today's costs.

    As many reads and messages as in Table 8. What INGRES needed beside these is scaled by what evaluating one tuple
    takes here; MANGOS's own costs are those of a switch of tasks, and of a pointer. None if they weren't measured.
    """
    factors = cheaper(chapter)
    if factors is None:
        return None
    cost = {name: chapter.median("costs", name, "here").estimate / 1e6 for name in UNITS}
    table, said, access = published.table("four_tactics_mangos_cpu"), published.table("four_tactics_said").value, published.table("four_tactics_access")
    rows = []
    for run, row in table.iterrows():
        counts = access.loc[run if run in access.index else f"bcd_{run[2:]}"]
        rest = (row.ingres - counts.reads * said.switch_ms / 1e3 - counts.messages * said.message_ms / 1e3) / factors["query d for one tuple"].estimate
        old, new = (rest + counts.reads * cost[switch] + counts.messages * cost[message] for switch, message in (("switch", "message"), ("task", "pointer")))
        rows.append((run.replace("_", " "), int(counts.reads), int(counts.messages), row.improvement, 100 * (old / new - 1)))
    return pd.DataFrame(rows, columns=["run", "reads", "messages", "in print (%)", "with today's costs (%)"])
