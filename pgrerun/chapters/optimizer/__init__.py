"""Chapter `optimizer`: the three sets of optimizer tests of the 1990 report, and its suggestions.

`queries.py` has the report's queries, `variants.py` forces a plan, puts a fault of 1990 back or
tells wrong statistics; `experiments` measures, `evidence` makes of that what claims are judged by,
`charts.py` draws, and `sentences.py` has the sentences. What is run stands in `sql/`.
"""

from pgrerun.chapters.optimizer import (
    charts,
    evidence,
    experiments,
    queries,
    sentences,
    variants,
)
from pgrerun.chapters.optimizer.variants import SQL

__all__ = ["SQL", "charts", "evidence", "experiments", "queries", "sentences", "variants"]
