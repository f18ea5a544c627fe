"""Chapter `tp1`: the debit-credit benchmark of the 1990 report, section 3.2.2.

Experiments record their observations in the chapter's run; frames for charts and
evidence for claims are read back from there.

`ladder.py` has the report's steps and the load, `accounting.py` pages per transaction,
`catalogs.py` a connection's first transaction, `space.py` free space, `commit.py`
what commit and crash ask for, `overlap.py` the disk and the processor; `drawn.py` draws,
`words.py` says what only this chapter says.
"""

from pgrerun.chapters.tp1 import accounting, catalogs, commit, drawn, ladder, overlap, space, words

__all__ = ["accounting", "catalogs", "commit", "drawn", "ladder", "overlap", "space", "words"]

# Claims behind the ladder and behind its page counts: both need a server that may be restarted.
LADDER_CLAIMS = ladder.BACKEND_CLAIMS
IO_CLAIMS = ("lai-045", "lai-049", "lai-052", "lai-053")
