"""Chapter `wisconsin`: the Wisconsin benchmark of the 1990 report, sections 2.3 and 3.2.1.

`queries.toml` has the 32 queries in POSTQUEL, which `queries.py` fills in; `contenders.py` who runs
them; `experiments.py` measures, `evidence.py` makes of that what claims are judged by, `charts.py`
draws, and `sentences.py` has the sentences. Further SQL stands in `sql/`.
"""

from pgrerun.chapters.wisconsin import (
    charts,
    contenders,
    evidence,
    experiments,
    queries,
    sentences,
)

__all__ = ["charts", "contenders", "evidence", "experiments", "queries", "sentences"]
