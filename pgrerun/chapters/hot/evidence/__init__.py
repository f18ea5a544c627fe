"""What the experiments say about the claims, modules as in `experiments`."""

from pgrerun.chapters.hot.evidence import (
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
