"""University INGRES of 1981 in miniature, as the memorandum describes it: for ratios and page
counts, never for absolute speed.

`pages.py` tuples on pages, `relation.py` heaps, hashed and ISAM relations and indices, `files.py`
where pages live and the cache in front; `symbols.py` the interpreter, `compiled.py` DC-INGRES and
code in line; `processor.py` the one-variable query processor and decomposition, `qualification.py`
what it finds in a command. QUEL comes from `pgrerun.lab.quel`.
"""

from pgrerun.lab.ingres.files import Cache, Reads, UnixFile
from pgrerun.lab.ingres.pages import PAGE, Domain, Layout
from pgrerun.lab.ingres.processor import ENGINES, INLINE, INTERPRETER, THREADED, DataBase
from pgrerun.lab.ingres.relation import Hash, Heap, Isam

__all__ = [
    "ENGINES",
    "INLINE",
    "INTERPRETER",
    "PAGE",
    "THREADED",
    "Cache",
    "DataBase",
    "Domain",
    "Hash",
    "Heap",
    "Isam",
    "Layout",
    "Reads",
    "UnixFile",
]
