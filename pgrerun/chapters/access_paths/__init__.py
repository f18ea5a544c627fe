"""Chapter `access_paths`: how PostgreSQL 9.2 finds rows, from the talk of 2012.

`sql/` has what is run. `accounts.py` has the relations and servers that most experiments share;
`experiments/` has a module for each thing that is measured: the visibility map, covering indexes,
lookups, ranges, planner and autovacuum, joins, arrays, index
types, sorting and the plan cache. `evidence.py` makes of their results what claims are judged by,
`charts.py` draws, `sentences.py` says what only this chapter says.
"""

from pgrerun.chapters.access_paths import accounts, charts, evidence, experiments, sentences

__all__ = ["accounts", "charts", "evidence", "experiments", "sentences"]
