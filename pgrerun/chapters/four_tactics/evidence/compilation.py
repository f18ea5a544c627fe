"""What the engines of the miniature say: instructions of Python's machine, all exact."""

import pandas as pd

from pgrerun.record import printed
from pgrerun.record.verdicts import Part, fact, greater, less, supporting


def over_threaded(found: pd.DataFrame, query: str = "c") -> float:
    """Instructions that interpreting a tuple takes over those of threaded code.

    `found` is of `experiments.compilation.instructions`.
    """
    row = found.set_index("query").loc[query]
    return row["interpreted"] / row["threaded"]


def break_even(found: pd.DataFrame) -> dict[str, float]:
    """Tuples of a query for which compiling takes what it saves; `found` likewise."""
    even = found["compiling"] / (found["interpreted"] - found["threaded"])
    return dict(zip("query " + found["query"], even, strict=True))


def gains(counted: pd.DataFrame, *runs: str) -> dict[str, float]:
    """Instructions of runs interpreted over compiled, by their letters.

    `counted` is of `experiments.compilation.runs`.
    """
    by_run = counted.set_index("run")
    gain = by_run["interpreted"] / by_run["compiled"]
    return {run[0]: float(gain[run]) for run in runs}


def a_tuple(counted: pd.DataFrame, query: str = "c") -> float:
    """Instructions of one more tuple, interpreted over compiled: without what a command costs."""
    by_run = counted.set_index("run")
    more = by_run.loc[f"{query}_3360"] - by_run.loc[f"{query}_210"]
    return float(more["interpreted"] / more["compiled"])


def more_complex(counted: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether by Tables 1 and 2 the gain grows with the qualification: b, c and d.

    In the miniature that c gains more than b is told. Of d it says nothing, whose logarithm is one
    instruction of Python's machine.
    """
    found: dict[str, bool | Part] = {}
    for what, words in (("wall", "response"), ("cpu", "CPU")):
        gain = printed.derived(f"four_tactics_compiled_{what}").speed_up
        grows = gain["b_3360"] < gain["c_3360"] < gain["d_3360"]
        found[f"d gains more {words} time than c, and c more than b"] = bool(grows)
    gain = gains(counted, "b_3360", "c_3360")
    return found | {"c gains more than b in the miniature": supporting(gain["c"] > gain["b"])}


def dramatic() -> dict[str, Part]:
    """Whether by Tables 1 and 2 queries d and e gain as much as the closing table's least.

    Section 2.4 speaks of CPU time, and of response time says itself that it gains less.
    """
    percent = printed.cell("four_tactics_conclusions", "DC", "low")
    return {
        f"query {run[0]} gains {percent:g} % and more of its {words}": Part(
            bool(
                printed.derived(f"four_tactics_compiled_{what}").speed_up[run] >= 1 + percent / 100
            ),
            essential=what == "cpu",
        )
        for run in ("d_3360", "e_3360")
        for what, words in (("cpu", "CPU time"), ("wall", "response time"))
    }


def concluded(margin: float = 0.05) -> dict[str, bool]:
    """Whether by Tables 1 and 2 commands gain what the closing table says, the long ones together.

    A short command has no effect that changes its time by less than the margin.
    """
    said, found = printed.table("four_tactics_conclusions").loc["DC"], {}
    for what, words in (("cpu", "CPU"), ("wall", "response")):
        times = printed.table(f"four_tactics_compiled_{what}")
        short, long = times[times["size"] <= 1], times[times["size"] == max(times["size"])]
        speed_up = short["ingres"] / short["dc"]
        gain = long["ingres"].sum() / long["dc"].sum()
        least, most = (1 + said[end] / 100 for end in ("low", "high"))
        found[f"no short command changes its {words} time"] = bool(
            speed_up.between(1 / (1 + margin), 1 + margin).all()
        )
        found[f"long ones gain {said.low:g} to {said.high:g} % of {words} time"] = bool(
            least <= gain <= most
        )
    return found


def joins(counted: pd.DataFrame, margin: float = 0.05) -> dict[str, Part]:
    """Whether each join gains; the opposite is that it takes more compiled."""
    found = gains(counted, "f_3360", "g_3360", "h_3360", "i_3360")
    return {
        f"query {query} gains": fact(greater(x, 1, margin), less(x, 1, margin))
        for query, x in found.items()
    }
