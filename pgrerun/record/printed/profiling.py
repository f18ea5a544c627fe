"""The profiles of 1990: what the printed tables of sections 3.1.1 to 3.1.7 imply, and where they
disagree.
"""

import pandas as pd

from pgrerun.record.printed.reading import Check, table

_SCANS = ("first", "second", "third", "fourth", "fifth", "sixth")


def _totals() -> pd.DataFrame:
    """Adds, for the profiles of Figure 2.1: gain (cycles of the profile before over these) and
    gain_in_all (of the first over these).
    """
    t = table("profiling_totals")
    cycles = t.cycles[list(_SCANS)]
    t["gain"] = cycles.shift() / cycles
    t["gain_in_all"] = cycles["first"] / cycles
    return t


def _routines() -> pd.DataFrame:
    """Adds: total (cycles of the whole profile), rank (from 1), calls (cycles over cycles per call)
    and the share and cumulative share (percent) that follow from the cycles.
    """
    t = table("profiling_routines")
    t["total"] = t.stage.map(table("profiling_totals").cycles)
    t["rank"] = t.groupby("stage", sort=False).cumcount() + 1
    t["calls"] = t.cycles / t.per_call
    t["recomputed_share"] = 100 * t.cycles / t.total
    t["recomputed_cumulative"] = 100 * t.groupby("stage", sort=False).cycles.cumsum() / t.total
    return t


DERIVED = {"profiling_totals": _totals, "profiling_routines": _routines}


def checks() -> list[Check]:
    """Print against print."""
    return [
        *_check_stages(),
        *_check_gains(),
        *_check_shares(),
        *_check_subsystems(),
        *_check_node_checks(),
    ]


def _check_stages() -> list[Check]:
    return [
        Check(
            f"{row.figure} against the one before, faster",
            f"{row.speedup:g} %",
            f"{100 * (row.gain - 1):.2f} %",
            agrees=abs(100 * (row.gain - 1) - row.speedup) < 0.006,
            note="Ratio of the total cycles.",
        )
        for row in _totals().dropna(subset="speedup").itertuples()
    ]


def _check_gains() -> list[Check]:
    totals = _totals()
    routines = _routines()
    said = table("profiling_said").value
    in_all = 100 * (totals.gain_in_all["sixth"] - 1)
    fifth = 100 * (totals.gain["fifth"] - 1)
    debug = routines.recomputed_share["fourth_BM_debug"]
    calls = routines.calls
    saved = 100 * (1 - calls["second_fastgetattr"] / calls["first_fastgetattr"])
    rank = routines["rank"]["second_fastgetattr"]
    return [
        Check(
            "3.1.7, faster altogether",
            f"{said.total_gain:g} %",
            f"{in_all:.2f} %",
            agrees=abs(in_all - said.total_gain) < 0.006,
            note="First profile over the last.",
        ),
        Check(
            "3.1.6, overhead of the useless calls",
            f"{said.debug_overhead:g} %",
            f"{fifth:.2f} %",
            agrees=abs(fifth - said.debug_overhead) < 0.1,
            note=(
                "By the total cycles their removal gained twice as much: BM_debug alone is"
                f" {debug:.2f} %, and flag_print, which called it, is not in the top ten."
            ),
        ),
        Check(
            "3.1.1, calls of fastgetattr saved",
            f"{said.calls_saved:g} %",
            f"{saved:.2f} %",
            agrees=abs(saved - said.calls_saved) < 0.01,
            note=(
                f"Cycles over cycles per call: {calls['first_fastgetattr']:,.0f} calls and"
                f" {calls['second_fastgetattr']:,.0f}."
            ),
        ),
        Check(
            "3.1.1 and 3.1.2, fastgetattr “from top to fifth”",
            "5",
            f"{rank}",
            agrees=rank == 5,
            note="Figure 3.3 lists it fourth.",
        ),
    ]


def _check_shares() -> list[Check]:
    routines = _routines()
    worst = (routines.recomputed_share - routines.share).abs().max()
    worst_cumulative = (routines.recomputed_cumulative - routines.cumulative).abs().max()
    return [
        Check(
            "Figures 3.1 to 3.10, share of a routine",
            f"{len(routines)} shares",
            f"off by at most {worst:.3f}",
            agrees=worst < 0.0051,
            note="Cycles of the routine over total cycles.",
        ),
        Check(
            "Figures 3.1 to 3.10, cumulative share",
            f"{len(routines)} shares",
            f"off by at most {worst_cumulative:.3f}",
            agrees=worst_cumulative < 0.0101,
            note="Running sums of the routines' cycles.",
        ),
    ]


def _check_subsystems() -> list[Check]:
    subsystems = table("profiling_subsystems")
    rows = []
    for stage, figure in (
        ("first", "Figure 3.2"),
        ("second", "Figure 3.4"),
        ("transactions", "Figure 3.6"),
    ):
        total = subsystems[stage].sum()
        rows.append(
            Check(
                f"{figure}, subsystems together",
                "100 %",
                f"{total:.2f} %",
                agrees=abs(total - 100) < 0.1,
                note=(
                    ""
                    if abs(total - 100) < 0.1
                    else "Something is missing from the list, or a share is misprinted."
                ),
            )
        )
    return rows


def _check_node_checks() -> list[Check]:
    totals = _totals()
    routines = _routines()
    node = totals.cycles["second"] - totals.cycles["third"]
    fewer = routines.cycles["second_NodeIsType"] - routines.cycles["third_NodeIsType"]
    return [
        Check(
            "3.1.4, cycles that skipped node checks saved",
            f"{node:,.0f}",
            f"{fewer:,.0f}",
            agrees=fewer <= node,
            note=(
                "What NodeIsType itself lost between Figures 3.3 and 3.7; the rest was spent around"
                " the calls."
            ),
        )
    ]
