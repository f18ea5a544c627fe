"""How long each chapter runs, and how much disk it takes meanwhile, by profile."""

import csv
from collections.abc import Mapping

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
    minutes = {name: parameters.info(name).minutes for name in parameters.chapters()}
    taken = disk_space()
    seen = [one for one in parameters.PROFILES if any(one == profile for _, profile in taken)]
    rows = [
        (
            {},
            [
                titles.get(name, name),
                *(f"{minutes[name][one]:g}" for one in parameters.PROFILES),
                *(_gigabytes([taken.get((name, one))]) for one in seen),
            ],
        )
        for name in minutes
    ]
    all_together = [
        *(f"{sum(each[one] for each in minutes.values()):g}" for one in parameters.PROFILES),
        *(_gigabytes([taken.get((name, one)) for name in minutes]) for one in seen),
    ]
    heads = [
        "chapter",
        *(f"{one} (min)" for one in parameters.PROFILES),
        *(f"{one} (GB)" for one in seen),
    ]
    disk = f"; disk: the most that it took at once, {UNKNOWN} where nobody has looked"
    caption = f"Minutes on a machine with two processors{disk if seen else ''}"
    return scoreboard.table(caption, heads, [*rows, ({}, ["all", *all_together])])


def disk_space() -> dict[tuple[str, str], int]:
    """The most bytes that a chapter had on the disk at once, by chapter and profile."""
    with SPACE.open(newline="", encoding="utf-8") as rows:
        return {(row["chapter"], row["profile"]): int(row["bytes"]) for row in csv.DictReader(rows)}


def _gigabytes(taken: list[int | None]) -> str:
    """The most of them to a digit or two; unknown where one is."""
    known = [size for size in taken if size is not None]
    return f"{max(known) / 1e9:.2g}" if len(known) == len(taken) else UNKNOWN
