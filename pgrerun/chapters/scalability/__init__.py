"""Chapter `scalability`: many clients at once, from the 2012 talk on PostgreSQL 9.2.

`sql/` has what is run: relations, statements, and pgbench's scripts. `experiments/` measures, a
module for each part of the document, and records its observations in the chapter's run; what the
simulation of large machines plays is `lab.models.lookups`. `evidence.py` makes of both what is
judged, `charts.py` what is drawn, `sentences.py` what is told.
"""

from pgrerun.chapters.scalability import charts, evidence, experiments, sentences

__all__ = ["charts", "evidence", "experiments", "sentences"]
