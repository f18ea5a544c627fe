"""What the chapter measures, a module for each thing that is measured."""

from pgrerun.chapters.tp1.experiments import (
    catalogs,
    commit,
    heap,
    overlap,
    page_counts,
    slow_disk,
    throughput,
)

__all__ = ["catalogs", "commit", "heap", "overlap", "page_counts", "slow_disk", "throughput"]
