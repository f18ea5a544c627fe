"""University INGRES of 1981 in miniature, as the memorandum describes it: for counts of pages, and
for no time.

`pages.py` pages and the cache in front of them, `relation.py` heaps, hashed and ISAM relations and
indices; `processor.py` the one-variable query processor and decomposition, `qualification.py` what
it finds in a command. QUEL comes from `pgrerun.lab.quel`.
"""

from pgrerun.lab.ingres.processor import DataBase
from pgrerun.lab.ingres.relation import Heap, Isam

__all__ = ["DataBase", "Heap", "Isam"]
