"""The data of the experiments, made by rule so that every run and every engine has the same.

`wisconsin.py` makes the relations of the Wisconsin benchmark, `debit_credit.py` the relations and
the transaction of TP1, `pgbench.py` those of pgbench, `parts.py` the relation of 1981.
`checksum.py` checks answers the same way on every engine, `loading.py` says through which
connection a relation is loaded and which relations may be replaced. What runs on the data is in
`instruments/`.
"""

from pgrerun.lab.relations.checksum import checksum_sql
from pgrerun.lab.relations.debit_credit import DebitCredit
from pgrerun.lab.relations.parts import Parts
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.relations.wisconsin import Wisconsin

__all__ = ["DebitCredit", "Parts", "Pgbench", "Wisconsin", "checksum_sql"]
