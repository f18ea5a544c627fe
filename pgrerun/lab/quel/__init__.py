"""QUEL and POSTQUEL, the query languages of INGRES and POSTGRES, on today's PostgreSQL.

`reading.py` makes trees (`tree.py`) of text, `sql.py` SQL of trees; `session.py` runs them and
`magic.py` lets a notebook cell do so. `figures` has the queries that the documents print. What
reads trees in another way, an interpreter for one, starts from `read`.
"""

from pgrerun.lab.quel.reading import read
from pgrerun.lab.quel.session import Answer, Session
from pgrerun.lab.quel.sql import Translator

__all__ = ["Answer", "Session", "Translator", "read"]
