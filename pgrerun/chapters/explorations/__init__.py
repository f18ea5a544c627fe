"""Chapter `explorations`: the slides on PostgreSQL's buffer manager and planner, about 2020.

`relations.py` loads; `pools.py` times Experiment 1, `dirt.py` counts what is behind it,
`clock.py` watches which pages stay;
`grouping.py`, `sizeup.py` and `joins.py` are Experiments 2, 3 and 4;
`releases.py` sets another release beside the one under test; `drawn.py` draws,
`words.py` says what only this chapter says.
"""

from pgrerun.chapters.explorations import clock, dirt, drawn, grouping, joins, pools, relations, releases, sizeup, words

__all__ = ["clock", "dirt", "drawn", "grouping", "joins", "pools", "relations", "releases", "sizeup", "words"]
