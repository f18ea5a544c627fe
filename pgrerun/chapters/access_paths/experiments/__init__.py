"""What the chapter measures, a module for each thing."""

from pgrerun.chapters.access_paths.experiments import (
    arrays,
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
