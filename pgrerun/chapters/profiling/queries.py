"""The report's two query sets (Figures 2.1 and 2.3), in SQL and with the printed POSTQUEL beside it."""

import random
import re

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.relations.debit_credit import DebitCredit
from pgrerun.relations.wisconsin import Wisconsin
from pgrerun.server import Server

SCANS, TRANSACTIONS = "scans", "transactions"
COMMANDS = 7  # of one transaction, Figure 2.3
REPORT_TRANSACTIONS = 300  # section 2.2

_NUMBERS = (
    "unique1 = 10001, unique2 = 10001, two = 0, four = 0, ten = 0, twenty = 0, hundred = 0, thousand = 0, "
    "twothousand = 0, fivethousand = 0, tenthousand = 0, odd = 1, even = 0"
)
_STRINGS = (("stringu1", "MGC"), ("stringu2", "GCA"), ("string4", "OOO"))


def _letters(three: str) -> str:
    """The printed strings: three letters, 25 X between the first two and 24 before the last, 52 in all."""
    return f"{three[0]}{'X' * 25}{three[1]}{'X' * 24}{three[2]}"


def _append(relation: str) -> tuple[str, str]:
    values = dict(part.split(" = ") for part in _NUMBERS.split(", "))
    texts = {name: _letters(three) for name, three in _STRINGS}
    said = ", ".join([_NUMBERS, *(f'{name} = "{text}"' for name, text in texts.items())])
    sql = f"INSERT INTO {relation} ({', '.join([*values, *texts])}) VALUES ({', '.join([*values.values(), *(repr(t) for t in texts.values())])})"
    return f"append {relation} ({said})", sql


def _into(temp: str, relation: str, low: int, high: int) -> list[tuple[str, str]]:
    return [
        (
            f"retrieve into {temp} ({relation}.all) where ({relation}.unique2 > {low}) and ({relation}.unique2 < {high})",
            f"CREATE TABLE {temp} AS SELECT * FROM {relation} WHERE unique2 > {low} AND unique2 < {high}",
        ),
        _destroy(temp),
    ]


def _destroy(temp: str) -> tuple[str, str]:
    return f"destroy {temp}", f"DROP TABLE {temp}"


def _one(relation: str, key: int) -> tuple[str, str]:
    return f"retrieve ({relation}.all) where {relation}.unique2 = {key}", f"SELECT * FROM {relation} WHERE unique2 = {key}"


def _delete(relation: str) -> tuple[str, str]:
    return f"delete {relation} where {relation}.unique2 = 10001", f"DELETE FROM {relation} WHERE unique2 = 10001"


def _replace(relation: str) -> tuple[str, str]:
    return (
        f"replace {relation} (unique2 = 10011) where {relation}.unique2 = 1491",
        f"UPDATE {relation} SET unique2 = 10011 WHERE unique2 = 1491",
    )


FIGURE_2_1: tuple[tuple[str, str], ...] = (
    *_into("temp0", "tenk1", 1, 102),
    *_into("temp2", "tenk2", 101, 202),
    *_into("temp11", "tenk1", 1, 1002),
    *_into("temp12", "tenk2", 101, 1102),
    _one("tenk1", 1),
    _one("tenk2", 1001),
    ("retrieve into temp71 (onek.all)", "CREATE TABLE temp71 AS SELECT * FROM onek"),
    _destroy("temp71"),
    _append("tenk1"),
    _append("tenk2"),
    _delete("tenk1"),
    _delete("tenk2"),
    _replace("tenk1"),
    _replace("tenk2"),
)
"""Each command of Figure 2.1 as printed and in SQL."""

# The last two commands change a tuple for good; a second run would find nothing to replace.
UNDO = tuple(f"UPDATE {relation} SET unique2 = 1491 WHERE unique2 = 10011" for relation in ("tenk1", "tenk2"))


def scans() -> list[str]:
    """Figure 2.1's commands in SQL, in their order."""
    return [sql for _, sql in FIGURE_2_1]


def warm_up() -> list[str]:
    """Commands of the same kinds on the small relation, and a look at the large ones: they fill the catalog caches."""
    small = [sql.replace("tenk1", "onek").replace("tenk2", "onek") for sql in scans()]
    undo = ["UPDATE onek SET unique2 = 491 WHERE unique2 = 10011"]
    return [*(sql.replace("1491", "491") for sql in small[:-1]), *undo, *(f"SELECT unique1 FROM {name} LIMIT 1" for name in ("tenk1", "tenk2"))]


def transactions(chapter: Chapter, count: int, seed: int = 0) -> list[str]:
    """The commands of `count` of Figure 2.3's transactions, keys drawn independently and uniformly."""
    bank, draws = relations(chapter), random.Random(chapter.parameters.seed + seed)
    lines = [line for line in bank.script().splitlines() if not line.startswith("\\")]
    commands = []
    for _ in range(count):
        keys = {"aid": draws.randint(1, bank.accounts), "tid": draws.randint(1, bank.tellers), "bid": draws.randint(1, bank.branches)}
        commands += [re.sub(r":(\w+)", lambda found: str(keys[found[1]]), line).rstrip(";") for line in lines]
    return commands


# Figure 2.3's commands by their first word and relation, with the types of their parameters in SQL.
_PREPARED = {
    "SELECT account": ("(int4) AS SELECT account.* FROM account WHERE aid = $1", r"aid = (\d+)"),
    "UPDATE account": ("(int4) AS UPDATE account SET balance = balance + 10.0 WHERE aid = $1", r"aid = (\d+)"),
    "UPDATE teller": ("(int4) AS UPDATE teller SET balance = balance + 10.0 WHERE tid = $1", r"tid = (\d+)"),
    "UPDATE branch": ("(int4) AS UPDATE branch SET balance = balance + 10.0 WHERE bid = $1", r"bid = (\d+)"),
    "INSERT history": (
        "(int4, int4, int4) AS INSERT INTO history (bid, tid, aid, amount, string) VALUES ($1, $2, $3, 10.0, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')",
        r"VALUES \((\d+), (\d+), (\d+)",
    ),
}


def prepare() -> list[str]:
    """PREPARE statements for Figure 2.3's commands."""
    return [f"PREPARE {key.replace(' ', '_').lower()} {definition}" for key, (definition, _) in _PREPARED.items()]


def executed(commands: list[str]) -> list[str]:
    """The same commands as EXECUTEs of what `prepare` prepared."""
    found = []
    for command in commands:
        key = next((key for key in _PREPARED if re.match(rf"{key.split()[0]}\b.*\b{key.split()[1]}\b", command)), None)
        values = re.search(_PREPARED[key][1], command).groups() if key else ()
        found.append(f"EXECUTE {key.replace(' ', '_').lower()} ({', '.join(values)})" if key else command)
    return found


def relations(chapter: Chapter) -> DebitCredit:
    """The report's branch, teller, account and history (section 2.2)."""
    return DebitCredit.report()


def load(chapter: Chapter, server: Server) -> None:
    """Load onek, tenk1 and tenk2 (no index) and the relations of the transactions."""
    scale = chapter.parameters.scale
    for name, tuples, order in (("onek", 1_000, 1), ("tenk1", 10_000, 1), ("tenk2", 10_000, 2)):
        Wisconsin(name, tuples * scale, attributes="1990", order=order).load(server)
    relations(chapter).load(server)


def printed() -> pd.DataFrame:
    """Figure 2.1 as printed, and each command in SQL."""
    short = [(said if len(said) < 110 else said[:100] + " …", sql if len(sql) < 110 else sql[:100] + " …") for said, sql in FIGURE_2_1]
    return pd.DataFrame(short, columns=["POSTQUEL, as printed", "SQL"])
