"""Chapter `four_tactics`: the memorandum of 1981 on making INGRES faster.

`miniature.py` has the benchmark on the miniature of INGRES, `compilation.py` its interpreter against compiled
qualifications, `files.py` its files against extents, `profile.py` where its time goes and what special
instructions give; `heirs.py` what became of compilation, `reading.py` of the file system, `system.py` of the
operating system, with `travel.py` on how a command gets to the engine and `mangos.py` on Table 9; `drawn.py` draws, `words.py` says what only this chapter says.
"""

from pgrerun.chapters.four_tactics import compilation, drawn, files, heirs, mangos, miniature, profile, reading, system, travel, words

__all__ = ["compilation", "drawn", "files", "heirs", "mangos", "miniature", "profile", "reading", "system", "travel", "words"]
