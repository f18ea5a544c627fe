"""Chapter `access_paths`: how PostgreSQL 9.2 finds rows, from the talk of 2012.

`accounts.py` has pgbench's accounts and what every statement on it is held to, `visibility.py` the visibility map, `covering.py`
covering indexes and the pages that scans touch, `lookups.py` what index-only scans gain and lose, `planner.py` what planner and
autovacuum know of them, `joins.py` the talk's join, `arrays.py` arrays as keys, in columns and in PL/pgSQL, `trees.py` GiST, SP-GiST
and B-trees, `sorting.py` sort support, `opclass.py` operator classes that lack it, `plan_cache.py` prepared queries; `drawn.py` draws,
`words.py` says what only this chapter says.
"""

from pgrerun.chapters.access_paths import (
    accounts, arrays, covering, drawn, joins, lookups, opclass, plan_cache, planner, sorting, trees, visibility, words,
)  # fmt: skip

__all__ = [
    "accounts", "arrays", "covering", "drawn", "joins", "lookups", "opclass", "plan_cache", "planner", "sorting", "trees", "visibility", "words",
]  # fmt: skip
