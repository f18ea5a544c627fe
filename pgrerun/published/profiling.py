"""The profiles of 1990: what the printed tables of sections 3.1.1 to 3.1.7 imply, and where they disagree."""

import pandas as pd

from pgrerun.published.reading import table

_SCANS = ("first", "second", "third", "fourth", "fifth", "sixth")


def _totals() -> pd.DataFrame:
    """Adds, for the profiles of Figure 2.1: gain (cycles of the profile before over these) and gain_in_all (of the first over these)."""
    t = table("profiling_totals")
    cycles = t.cycles[list(_SCANS)]
    t["gain"] = cycles.shift() / cycles
    t["gain_in_all"] = cycles["first"] / cycles
    return t


def _routines() -> pd.DataFrame:
    """Adds: total (cycles of the whole profile), rank (from 1), calls (cycles over cycles per call) and
    the share and cumulative share (percent) that follow from the cycles."""
    t = table("profiling_routines")
    t["total"] = t.stage.map(table("profiling_totals").cycles)
    t["rank"] = t.groupby("stage", sort=False).cumcount() + 1
    t["calls"] = t.cycles / t.per_call
    t["recomputed_share"] = 100 * t.cycles / t.total
    t["recomputed_cumulative"] = 100 * t.groupby("stage", sort=False).cycles.cumsum() / t.total
    return t


DERIVED = {"profiling_totals": _totals, "profiling_routines": _routines}


def checks() -> list[tuple]:
    """Print against print: (where, printed, recomputed, agrees, note)."""
    totals, routines, subsystems = _totals(), _routines(), table("profiling_subsystems")
    said = table("profiling_said").value
    rows = [
        (f"{row.figure} against the one before, faster", f"{row.speedup:g} %", f"{100 * (row.gain - 1):.2f} %", abs(100 * (row.gain - 1) - row.speedup) < 0.006, "Ratio of the total cycles.")
        for row in totals.dropna(subset="speedup").itertuples()
    ]
    in_all = 100 * (totals.gain_in_all["sixth"] - 1)
    fifth = 100 * (totals.gain["fifth"] - 1)
    debug = routines.recomputed_share["fourth_BM_debug"]
    calls = routines.calls
    saved = 100 * (1 - calls["second_fastgetattr"] / calls["first_fastgetattr"])
    rank = routines["rank"]["second_fastgetattr"]
    worst = (routines.recomputed_share - routines.share).abs().max()
    worst_cumulative = (routines.recomputed_cumulative - routines.cumulative).abs().max()
    rows += [
        ("3.1.7, faster altogether", f"{said.total_gain:g} %", f"{in_all:.2f} %", abs(in_all - said.total_gain) < 0.006, "First profile over the last."),
        ("3.1.6, overhead of the useless calls", f"{said.debug_overhead:g} %", f"{fifth:.2f} %", abs(fifth - said.debug_overhead) < 0.1,
         f"By the total cycles their removal gained twice as much: BM_debug alone is {debug:.2f} %, and flag_print, which called it, is not in the top ten."),
        ("3.1.1, calls of fastgetattr saved", f"{said.calls_saved:g} %", f"{saved:.2f} %", abs(saved - said.calls_saved) < 0.01,
         f"Cycles over cycles per call: {calls['first_fastgetattr']:,.0f} calls and {calls['second_fastgetattr']:,.0f}."),
        ("3.1.1 and 3.1.2, fastgetattr “from top to fifth”", "5", f"{rank}", rank == 5, "Figure 3.3 lists it fourth."),
        ("Figures 3.1 to 3.10, share of a routine", f"{len(routines)} shares", f"off by at most {worst:.3f}", worst < 0.0051, "Cycles of the routine over total cycles."),
        ("Figures 3.1 to 3.10, cumulative share", f"{len(routines)} shares", f"off by at most {worst_cumulative:.3f}", worst_cumulative < 0.0101, "Running sums of the routines' cycles."),
    ]
    for stage, figure in (("first", "Figure 3.2"), ("second", "Figure 3.4"), ("transactions", "Figure 3.6")):
        total = subsystems[stage].sum()
        rows.append((f"{figure}, subsystems together", "100 %", f"{total:.2f} %", abs(total - 100) < 0.1, "" if abs(total - 100) < 0.1 else "Something is missing from the list, or a share is misprinted."))
    node = totals.cycles["second"] - totals.cycles["third"]
    fewer = routines.cycles["second_NodeIsType"] - routines.cycles["third_NodeIsType"]
    rows.append(
        ("3.1.4, cycles that skipped node checks saved", f"{node:,.0f}", f"{fewer:,.0f}", fewer <= node,
         "What NodeIsType itself lost between Figures 3.3 and 3.7; the rest was spent around the calls.")
    )  # fmt: skip
    return rows
