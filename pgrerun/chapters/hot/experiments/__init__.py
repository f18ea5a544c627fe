"""What the chapter measures, a module for each part of the thread."""

from pgrerun.chapters.hot.experiments import (
    builds,
    growth,
    page,
    side_effects,
    threads_disk,
    throughput,
    wal,
)

__all__ = ["builds", "growth", "page", "side_effects", "threads_disk", "throughput", "wal"]
