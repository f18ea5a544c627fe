"""How long each chapter runs, and how much disk it takes meanwhile, by profile."""

import math
from collections.abc import Mapping

import pandas as pd

from pgrerun import parameters
from pgrerun.record import printed
from pgrerun.site import scoreboard

SPACE = printed.DATA.parent / "disk_space.csv"
"""What was measured; `benchmarks/disk_space.py` writes it."""
UNKNOWN = "-"


def table(titles: Mapping[str, str]) -> str:
    """Minutes as each chapter.toml says, and gigabytes as far as they were measured.

    One chapter runs after another and leaves nothing behind: all of them together take the time of
    all, and the disk of the one that takes most.
    """
    told = {name: parameters.info(name).minutes for name in parameters.chapters()}
    minutes = pd.DataFrame(told, index=list(parameters.PROFILES)).T
    taken = pd.read_csv(SPACE).pivot(index="chapter", columns="profile", values="bytes")
    measured = [one for one in parameters.PROFILES if one in taken]
    disk = taken.reindex(index=minutes.index, columns=measured)
    both = [(name, minutes.loc[name], disk.loc[name]) for name in minutes.index]
    both.append(("all", minutes.sum(), disk.max(skipna=False)))
    rows = [
        ({}, [titles.get(name, name), *map("{:g}".format, long), *map(_gigabytes, large)])
        for name, long, large in both
    ]
    heads = ["chapter", *(f"{one} (min)" for one in minutes), *(f"{one} (GB)" for one in disk)]
    caption = (
        "Minutes on a machine with two processors, and the most disk that was held at once;"
        f" {UNKNOWN} where it wasn't measured"
    )
    return scoreboard.table(caption, heads, rows)


def _gigabytes(size: float) -> str:
    return UNKNOWN if math.isnan(size) else f"{size / 1e9:.2g}"
