"""What the chapter measures, a module for each part of the thread."""

from pgrerun.chapters.hot.experiments import (
    eligibility,
    growth,
    page,
    side_effects,
    throughput,
    wal_volume,
)

__all__ = [
    "eligibility",
    "growth",
    "page",
    "side_effects",
    "throughput",
    "wal_volume",
]
