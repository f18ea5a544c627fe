"""The library that the notebooks speak."""

from pgrerun import published
from pgrerun.chapter import open_chapter
from pgrerun.tables import table

__all__ = ["open_chapter", "published", "table"]
