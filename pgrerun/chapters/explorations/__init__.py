"""Chapter `explorations`: the slides on PostgreSQL's buffer manager and planner, about 2020.

`relations` loads; `experiments` measures, with a module for each of the slides' experiments, and
`evidence` says what that means for the claims; `charts` and `sentences` are what the page shows of
both. What is run stands in `sql/`.
"""

from pgrerun.chapters.explorations import charts, evidence, experiments, relations, sentences

__all__ = ["charts", "evidence", "experiments", "relations", "sentences"]
