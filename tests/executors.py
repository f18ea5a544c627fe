"""Tests that start executors of Spark, and why they can't here, where they can't."""

import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.spark import require


def missing() -> str:
    """What a second executor lacks on this machine; empty where it lacks nothing."""
    try:
        require(2)
    except CannotMeasure as reason:
        return f"{reason.capability}: {reason}"
    return ""


with_executors = pytest.mark.skipif(bool(missing()), reason=missing())
