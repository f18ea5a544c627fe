"""The 32 queries of the Wisconsin benchmark in POSTQUEL, at any size of the relations.

They stand in `queries.toml`, after DeWitt's specification of 1993, with the report's result
relations: `retrieve into` makes one, which is destroyed outside the clock. Constants grow with the
relations. Where the specification slips:

- Query 11 names a relation in its qualification that it doesn't range over; here it does (14 and
  17, too).
- Query 15 restricts unique2 in one printing and unique1 in another; here unique1, which is indexed.
- Query 18 has 400 groups at any size, not one in a hundred tuples: string4 goes by the tuple's
  number.
- Queries 21 to 25 name their group, so that an answer is a set of tuples like any other.

Each block runs an instance: relations alternate, and ranges are shifted.
"""

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from pgrerun.lab.quel import Translator, read, tree
from pgrerun.lab.relations import Wisconsin, checksum_sql
from pgrerun.lab.relations.checksum import checksum
from pgrerun.lab.testbed import Block
from pgrerun.record import printed

SPECIFIED = 10_000  # tuples of the large relations in the specification, and in the report
ROLES = ("tenk1", "tenk2", "onek", "bprime")
# The attributes that are indexed, by what Figure 3.11 calls the state.
STATES: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "clustered": ("unique2",),
    "non-clustered": ("unique1",),
    "with": ("unique2", "unique1", "onepercent"),
}
RESULT = "tmp"
# Letters cost most of a checksum's time, and a tuple's integers determine them, so they are looked
# at in the queries as specified, and once where relations are small. The first tells the string4
# apart; the last three of seven, the strings of numbers below 26^3.
LETTERS = (1, 5, 6, 7)
_ANY = Wisconsin("any", SPECIFIED)
_ATTRIBUTES = (*_ANY.integers, *_ANY.texts)
_SIX = ("two", "four", "ten", "twenty", "onepercent", "string4")
_FOURTEEN = tuple(name for name in _ATTRIBUTES if name not in ("two", "four"))
_JOINED = (("tenk1", "tenk2"), ("tenk1", "bprime"), ("onek", "tenk1"))
# of the tuple that is inserted, besides its two numbers
_FILLING = (
    "two = 0, four = 2, ten = 0, twenty = 10, onepercent = 50, tenpercent = 0, twentypercent = 0,"
    " fiftypercent = 0, unique3 = {new}, evenonepercent = 100, oddonepercent = 101,"
    ' stringu1 = "MXXX", stringu2 = "GXXX", string4 = "OXXX"'
)


def relation(role: str, state: str) -> str:
    """The name of a relation in a state: relations are there once for each."""
    return role if state == "none" else f"{role}_{state.replace('-', '')}"


@dataclass(frozen=True)
class Query:
    """One query of Figure 3.11, or one beside them.

    key: its row in the published table; query: POSTQUEL with names in braces for relations,
    constants and lists of attributes; before, after: what makes the change possible and undoes it,
    outside the clock.
    """

    key: str
    state: str
    query: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Answer:
    """What counts of an answer: tuples of an SQL source once the statement has run.

    integers, texts: the attributes that count; sums: the integers that may be too large for int4;
    among: if given, only tuples count whose unique1 or unique2 is one of these.
    """

    source: str
    integers: tuple[str, ...]
    texts: tuple[str, ...]
    sums: tuple[str, ...] = ()
    among: tuple[int, ...] = ()

    @property
    def sql(self) -> str:
        """The query that gives (tuples, checksum)."""
        return checksum_sql(
            self._tuples, [self._small(name) for name in self.integers], self.texts, LETTERS
        )

    @property
    def columns_sql(self) -> str:
        """The query that gives what counts, for `checksum` to be computed of it."""
        listed = [*(f"{self._small(name)} AS {name}" for name in self.integers), *self.texts]
        return f"SELECT {', '.join(listed)} FROM {self._tuples}"

    def checksum(self, column: Callable[[str], Sequence]) -> tuple[int, int]:
        """(tuples, checksum) of an answer whose attributes are in memory."""
        return checksum(list(map(column, self.integers)), list(map(column, self.texts)), LETTERS)

    def _small(self, name: str) -> str:
        return f"({name} % {2**31 - 1})::bigint" if name in self.sums else name

    @property
    def _tuples(self) -> str:
        if not self.among:
            return self.source
        keys = ", ".join(map(str, self.among))
        return (
            f"(SELECT * FROM {self.source} WHERE unique1 IN ({keys}) OR unique2 IN ({keys})) AS"
            " changed"
        )


@dataclass(frozen=True)
class Instance:
    """A query with everything put in: POSTQUEL for its three steps, and what its answer is."""

    query: Query
    text: str
    before: str
    after: str
    answer: Answer

    @property
    def statement(self) -> tree.Statement:
        return read(self.text)[0]


QUERIES: tuple[Query, ...] = tuple(
    Query(key, **{name: " ".join(text.split()) for name, text in parts.items()})
    for key, parts in tomllib.loads(Path(__file__).with_name("queries.toml").read_text()).items()
)
KEYS = tuple(f"q{number}" for number in range(1, 33))
JOINS = KEYS[8:17]
BY_KEY = {query.key: query for query in QUERIES}


def instance(query: Query, n: int, block: Block | None = None) -> Instance:
    """The query for relations of n tuples as a block runs it; without one, as it is specified."""
    swapped = block is not None and block.index % 2
    actual = dict(zip(ROLES, ("tenk2", "tenk1", "onek", "bprime") if swapped else ROLES))
    names = {role: relation(actual[role], query.state) for role in ROLES}
    values = names | _constants(n, block)
    values |= _attributes(names) | {"filling": _FILLING.format(**values)}
    text, before, after = (
        part.format(**values) for part in (query.query, query.before, query.after)
    )
    lettered = block is None or (block.index == 0 and n < SPECIFIED)
    answer = _answer(read(text)[0], values, _ANY.texts if lettered else ())
    return Instance(query, text, before, after, answer)


def _attributes(names: Mapping[str, str]) -> dict[str, str]:
    """Lists of attributes for a query's targets; `names` are the relations' by their roles."""
    lists = {
        "six": ", ".join(f"{names['tenk1']}.{attribute}" for attribute in _SIX),
        "fourteen": ", ".join(f"{names['tenk1']}.{attribute}" for attribute in _FOURTEEN),
    }
    for one, other in _JOINED:
        lists[f"{one}_and_{other}"] = ", ".join(
            f"{attribute}{number} = {names[role]}.{attribute}"
            for number, role in ((1, one), (2, other))
            for attribute in _ATTRIBUTES
        )
    return lists


def _constants(n: int, block: Block | None) -> dict[str, int]:
    one, ten = max(1, n // 100), max(1, n // 10)
    low, low10, single = 0, 792 * n // SPECIFIED, 2001 * n // SPECIFIED
    if block is not None:
        drawn = random.Random(block.seed)
        low, low10, single = drawn.randrange(n - one), drawn.randrange(n - ten), drawn.randrange(n)
    moved = 1491 * n // SPECIFIED
    return {
        "low1": low,
        "high1": low + one - 1,
        "low10": low10,
        "high10": low10 + ten - 1,
        "one": single,
        "tenth": ten,
        "new": n + 1,
        "place": 74 * n // SPECIFIED,
        "moved": moved,
        "half": moved % 2,
    }


def _answer(
    statement: tree.Statement, values: Mapping[str, object], lettered: tuple[str, ...]
) -> Answer:
    """What counts of the statement's answer; `lettered` texts do."""
    if not isinstance(statement, tree.Retrieve):
        keys = tuple(int(values[name]) for name in ("new", "moved", "place"))
        return Answer(str(values["tenk1"]), _ANY.integers, lettered, among=keys)
    integers, texts, sums = [], [], []
    for target in statement.targets:
        if isinstance(target, tree.All):
            integers += _ANY.integers
            texts += lettered
            continue
        of = target.expression if isinstance(target, tree.Assignment) else target
        if isinstance(of, tree.Aggregate):
            sums.append(target.name)
            integers.append(target.name)
        else:
            kind = integers if of.name in _ANY.integers else texts if of.name in lettered else []
            kind.append(target.name)
    source = statement.into or f"({Translator().sql(statement)}) AS seen"
    return Answer(source, tuple(integers), tuple(texts), tuple(sums))


def as_specified(key: str) -> str:
    """The POSTQUEL of a query for the page, a long list of attributes cut."""
    text = instance(BY_KEY[key], SPECIFIED).text
    for role, state in product(ROLES, STATES):
        text = text.replace(relation(role, state), role)
    head, _, rest = text.partition("(")
    inside, _, tail = rest.partition(")")
    return f"{head}({inside[:40]}…){tail}" if len(inside) > 60 else text


# What the page calls the queries that are none of the 32.
BESIDE = {
    "onek": "project 100% of the 1-K relation",
    "plain": "update of an attribute without an index",
}


def label(key: str) -> str:
    """What the page calls a query: "1: select 1% into temp, no index"."""
    if key in BESIDE:
        return BESIDE[key]
    return f"{key[1:]}: {printed.table('wisconsin_figure_3_11').label[key]}"
