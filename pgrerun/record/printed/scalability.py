"""Scalability: what the printed numbers of the 2012 talk imply, and where the transcript must have
misheard.
"""

import pandas as pd

from pgrerun.record.printed.reading import Check, table


def _read() -> pd.DataFrame:
    """Adds, per row, the share of the processors at hand that the number of clients or the speed-up
    makes.
    """
    t = table("scalability_read")
    of = {
        "peak_before": "cores",
        "clients": "cores",
        "first_patch_falls": "cores",
        "speedup": "cores_large",
    }
    t["share"] = pd.Series({row: t.value[row] / t.value[whole] for row, whole in of.items()})
    return t


def _idle() -> pd.DataFrame:
    """Adds, per row, 9.1's wake-ups per second over the row's."""
    t = table("scalability_idle")
    rates = ["wakeups_before", "wakeups_after", "demanded", "vmware"]
    t["times_fewer"] = pd.Series({row: t.value["wakeups_before"] / t.value[row] for row in rates})
    return t


DERIVED = {"scalability_read": _read, "scalability_idle": _idle}


def checks() -> list[Check]:
    """Print against print for the scalability chapter."""
    read, write, idle = _read(), table("scalability_write").value, _idle()
    fewer = idle.times_fewer["wakeups_after"]
    runs = idle.value["repeats"] * idle.value["write_minutes"]
    return [
        Check(
            "minute 46:04, “more than 20x”",
            f"{idle.value['improvement']:g}",
            f"{fewer:.2f}",
            agrees=fewer > idle.value["improvement"],
            note="Wake-ups per second before over those after.",
        ),
        Check(
            "minute 10:24, “in the end, at the limit, it's linear”",
            f"{read.value['speedup']:g} times",
            f"{read.share['speedup']:.1%} of linear",
            agrees=read.share["speedup"] > 0.99,
            note="The speed-up over the number of processors.",
        ),
        Check(
            "minute 47:24, the next demand",
            f"{idle.value['demanded']:g} per second",
            f"{idle.value['wakeups_after'] / idle.value['demanded']:g} times fewer",
            agrees=idle.value["demanded"] < idle.value["wakeups_after"],
            note=(
                "Wake-ups of 9.2 over those that somebody will demand; the step from 9.1 to 9.2 was"
                " smaller."
            ),
        ),
        Check(
            "minute 04:23, “around two clients, it levels off”",
            "two clients",
            f"after {read.value['peak_before']:g}, if {read.value['peak_before']:g} is the peak",
            agrees=False,
            note=(
                "A curve can't level off before its peak and degrade after it; the transcript must"
                " have lost a word."
            ),
        ),
        Check(
            "minute 17:42, “a median of 330 minutes runs”",
            f"{write['run_minutes']:g} minutes",
            (
                f"{idle.value['repeats']:g} runs of {idle.value['write_minutes']:g} minutes,"
                f" {runs:g} together"
            ),
            agrees=False,
            note=(
                "Minute 50:04 recommends half an hour for a test that writes, and minute 50:23"
                " three repeats: the transcript joins two numerals."
            ),
        ),
    ]
