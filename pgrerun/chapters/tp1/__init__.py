"""Chapter `tp1`: the debit-credit benchmark of the 1990 report, section 3.2.2.

`variants.py` has the relations and the steps of the report's ladder; `experiments` measures,
`evidence.py` makes of that what claims are judged by and tables show, `charts.py` draws, and
`sentences.py` has the sentences. What is run stands in `sql/`.
"""

from pgrerun.chapters.tp1 import charts, evidence, experiments, sentences, variants
from pgrerun.chapters.tp1.variants import SQL

__all__ = ["SQL", "charts", "evidence", "experiments", "sentences", "variants"]
