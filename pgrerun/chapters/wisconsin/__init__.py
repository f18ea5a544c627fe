"""Chapter `wisconsin`: the Wisconsin benchmark of the 1990 report, sections 2.3 and 3.2.1.

`queries.py` has the 32 queries in POSTQUEL, `contenders.py` who runs them, `miniature.py` seats the
INGRES of 1981 among them, `race.py` runs them and compares answers, `scans.py` looks at plans, pages and versions, `machines.py` at other machines;
`drawn.py` draws, `words.py` says what only this chapter says.
"""

from pgrerun.chapters.wisconsin import contenders, drawn, machines, miniature, queries, race, scans, words

__all__ = ["contenders", "drawn", "machines", "miniature", "queries", "race", "scans", "words"]
