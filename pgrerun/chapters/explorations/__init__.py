"""Chapter `explorations`: the slides on PostgreSQL's buffer manager and planner, about 2020.

`relations.py` loads; `pools.py` times Experiment 1, `dirt.py` counts what is behind it;
`grouping.py`, `sizeup.py` and `joins.py` are Experiments 2, 3 and 4; `drawn.py` draws,
`words.py` says what only this chapter says.
"""

from pgrerun.chapters.explorations import dirt, drawn, grouping, joins, pools, relations, sizeup, words

__all__ = ["dirt", "drawn", "grouping", "joins", "pools", "relations", "sizeup", "words"]
