"""The chapter's experiments.

`instructions.py` counts the query sets by routine and single commands on attributes and rules;
`checks.py` counts checks and leaves some out; `samples.py` samples a live server. What they find
goes into the run record, from where `evidence.py` reads it.
"""

from pgrerun.chapters.profiling.experiments import (
    checks,
    instructions,
    samples,
)

__all__ = ["checks", "instructions", "samples"]
