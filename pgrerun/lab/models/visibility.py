"""The visibility map as arithmetic: what VACUUM reads along, what random updates leave marked."""

import math

SKIP_PAGES_THRESHOLD = 32
"""Pages in a row that VACUUM must be able to skip to do so (vacuumlazy.c)."""


def pages_scanned(pages: int, every: int) -> int:
    """Pages that VACUUM scans of a table of which every nth page, from the first, isn't marked.

    Runs shorter than the threshold are read along, and the last page always is.
    """
    must: list[int] = sorted({*range(0, pages, every), pages - 1})
    gaps = [after - before - 1 for before, after in zip(must, must[1:], strict=False)]
    return len(must) + sum(gap for gap in gaps if gap < SKIP_PAGES_THRESHOLD)


def share_unmarked(updates: float) -> float:
    """The share of pages that so many updates per page have hit at least once, at random."""
    return 1 - math.exp(-updates)


def average_share_unmarked(updates: float) -> float:
    """The average of `share_unmarked` while updates per page go from 0 to so many (above 0)."""
    return 1 + math.expm1(-updates) / updates
