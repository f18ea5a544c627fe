"""Chapter `scalability`: many clients at once, from the 2012 talk on PostgreSQL 9.2.

Experiments record their observations in the chapter's run; frames for charts and evidence for
claims are read back from there.

`bench.py` has servers, relations and loads; `reading.py` lookups over clients, `locks.py` the lock
manager, `turns.py` context switches, `cores.py` the simulated large machines, `memory.py` cache lines and the buffer pool,
`writing.py` what writers meet, `commit.py` group commit, `idle.py` an idle server; `drawn.py`
draws, `words.py` says what only this chapter says.
"""

from pgrerun.chapters.scalability import bench, commit, cores, drawn, idle, locks, memory, reading, turns, words, writing

__all__ = ["bench", "commit", "cores", "drawn", "idle", "locks", "memory", "reading", "turns", "words", "writing"]
