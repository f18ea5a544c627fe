"""Chapter `measuring`: how to run a benchmark, from the last minutes of the 2012 talk, as claims.

`experiments` measures, `evidence` makes of that what claims are judged by, `charts.py` draws, and
`sentences.py` has the sentences. What is run stands in `sql/`.
"""

from pgrerun.chapters.measuring import charts, evidence, experiments, sentences
from pgrerun.chapters.measuring.experiments.load import SQL

__all__ = ["SQL", "charts", "evidence", "experiments", "sentences"]
