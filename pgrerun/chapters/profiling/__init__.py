"""Chapter `profiling`: where the 1990 report found POSTGRES's cycles, and where PostgreSQL's
instructions go. Sections 2.2 and 3.1, Figures 3.1 to 3.10.

`queries.py` has the two query sets, `subsystems.py` the way from routine to subsystem;
`experiments` counts and samples, `evidence.py` makes of that what claims are judged by,
`charts.py` draws, and `sentences.py` has the sentences. What is run beside the two query sets
stands in `sql/`.
"""

from pgrerun.chapters.profiling import (
    charts,
    evidence,
    experiments,
    queries,
    sentences,
    subsystems,
)

__all__ = ["charts", "evidence", "experiments", "queries", "sentences", "subsystems"]
