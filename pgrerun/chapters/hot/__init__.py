"""Chapter `hot`: the first results of heap-only tuples (HOT), mail thread of March 2007.

`variants.py` has the thread's relations and the variants with and without HOT; `experiments`
measures, `evidence` makes of that what claims are judged by, `charts.py` draws, and `sentences.py`
has the sentences. What is run stands in `sql/`.
"""

from pgrerun.chapters.hot import charts, evidence, experiments, sentences, variants
from pgrerun.chapters.hot.variants import SQL

__all__ = ["SQL", "charts", "evidence", "experiments", "sentences", "variants"]
