"""University INGRES of 1981 in miniature, as the memorandum describes it: for ratios and page
counts, never for absolute speed.

`pages.py` tuples on pages, `relation.py` heaps, hashed and ISAM relations and indices, `files.py`
where pages live and the cache in front; `expressions.py` what is evaluated for a tuple;
`processor.py` the one-variable query processor and decomposition, `qualification.py` what it finds
in a command. QUEL comes from `pgrerun.lab.quel`.
"""

from pgrerun.lab.ingres.files import Cache, UnixFile
from pgrerun.lab.ingres.pages import PAGE, Domain, Layout
from pgrerun.lab.ingres.processor import DataBase
from pgrerun.lab.ingres.relation import Hash, Heap, Isam

__all__ = [
    "PAGE",
    "Cache",
    "DataBase",
    "Domain",
    "Hash",
    "Heap",
    "Isam",
    "Layout",
    "UnixFile",
]
