"""What the chapter measures, a module for each thing."""

from pgrerun.chapters.access_paths.experiments import (
    arrays,
    breakeven,
    covering,
    joins,
    lookups,
    plan_cache,
    planner,
    ranges,
    sorting,
    trees,
    visibility,
)

__all__ = [
    "arrays",
    "breakeven",
    "covering",
    "joins",
    "lookups",
    "plan_cache",
    "planner",
    "ranges",
    "sorting",
    "trees",
    "visibility",
]
