"""What the chapter measures: a module for each set of tests, the faults, and section 4."""

from pgrerun.chapters.optimizer.experiments import (
    diagrams,
    faults,
    joins,
    ranges,
    scans,
    suggestions,
)

__all__ = ["diagrams", "faults", "joins", "ranges", "scans", "suggestions"]
