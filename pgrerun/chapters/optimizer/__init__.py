"""Chapter `optimizer`: the three sets of optimizer tests of the 1990 report, and its suggestions.

`queries.py` has the report's relations and queries and forces a plan, `scans.py` runs the
first set, `joins.py` the second, `ranges.py` the third; `faults.py` puts the faults of 1990
back into a server, `diagrams.py` takes plans over a grid of selectivities, `suggestions.py`
looks for what section 4 asked for; `drawn.py` draws, `words.py` says what only this chapter says.
"""

from pgrerun.chapters.optimizer import diagrams, drawn, faults, joins, queries, ranges, scans, suggestions, words

__all__ = ["diagrams", "drawn", "faults", "joins", "queries", "ranges", "scans", "suggestions", "words"]
