"""What the chapter measures, and what it simulates: a module for each part of the document."""

from pgrerun.chapters.scalability.experiments import (
    clients,
    commits,
    idle,
    large_machines,
    load,
    locks,
    wal,
)

__all__ = ["clients", "commits", "idle", "large_machines", "load", "locks", "wal"]
