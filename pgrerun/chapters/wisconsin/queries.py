"""The 32 queries of the Wisconsin benchmark in POSTQUEL, at any size of the relations.

After DeWitt's specification of 1993, with the report's result relations: `retrieve into` makes one, which
is destroyed outside the clock. Constants grow with the relations. Where the specification slips:

- Query 11 names a relation in its qualification that it doesn't range over; here it does (14 and 17, too).
- Query 15 restricts unique2 in one printing and unique1 in another; here unique1, which is indexed.
- Query 18 has 400 groups at any size, not one in a hundred tuples: string4 goes by the tuple's number.
- Queries 21 to 25 name their group, so that an answer is a set of tuples like any other.

Each block runs a variant: relations alternate, and ranges are shifted.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pgrerun.experiment import Block
from pgrerun.quel import Translator, read, tree
from pgrerun.relations import Wisconsin, checksum_sql
from pgrerun.relations.checksum import checksum

SPECIFIED = 10_000  # tuples of the large relations in the specification, and in the report
ROLES = ("tenk1", "tenk2", "onek", "bprime")
STATES: Mapping[str, tuple[str, ...]] = {
    "none": (), "clustered": ("unique2",), "non-clustered": ("unique1",), "with": ("unique2", "unique1", "onepercent"),
}  # fmt: skip
"""The attributes that are indexed, by what Figure 3.11 calls the state."""
RESULT = "tmp"
# Letters cost most of a checksum's time, and a tuple's integers determine them, so they are looked at in the queries as
# specified, and once where relations are small. The first tells the string4 apart; the last three of seven, the strings
# of numbers below 26^3.
LETTERS = (1, 5, 6, 7)
_ANY = Wisconsin("any", SPECIFIED)
_ATTRIBUTES = (*_ANY.integers, *_ANY.texts)


def relation(role: str, state: str) -> str:
    """The name of a relation in a state: relations are there once for each."""
    return role if state == "none" else f"{role}_{state.replace('-', '')}"


@dataclass(frozen=True)
class Query:
    """One query of Figure 3.11, or one beside them.

    key: its row in the published table; text: POSTQUEL with names in braces for relations and
    constants; before, after: what makes the change possible and undoes it, outside the clock.
    """

    key: str
    state: str
    text: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Answer:
    """What counts of an answer: the tuples of an SQL source once the statement has run, and these attributes of them.

    sums: the integers that may be too large for int4; among: if given, only tuples count whose unique1
    or unique2 is one of these.
    """

    source: str
    integers: tuple[str, ...]
    texts: tuple[str, ...]
    sums: tuple[str, ...] = ()
    among: tuple[int, ...] = ()

    @property
    def sql(self) -> str:
        """The query that gives (tuples, checksum)."""
        return checksum_sql(self._tuples, [self._small(name) for name in self.integers], self.texts, LETTERS)

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
        return f"(SELECT * FROM {self.source} WHERE unique1 IN ({keys}) OR unique2 IN ({keys})) AS changed"


@dataclass(frozen=True)
class Variant:
    """A query with everything put in: POSTQUEL text for the three steps, and what its answer is."""

    query: Query
    text: str
    before: str
    after: str
    answer: Answer

    @property
    def statement(self) -> tree.Statement:
        return read(self.text)[0]


def _joined(one: str, other: str) -> str:
    return ", ".join(f"{name}{number} = {{{role}}}.{name}" for number, role in ((1, one), (2, other)) for name in _ATTRIBUTES)


def _select(key: str, state: str, attribute: str, bounds: str, into: str = "into tmp ") -> Query:
    low, high = f"{{low{bounds}}}", f"{{high{bounds}}}"
    return Query(key, state, f"retrieve {into}({{tenk1}}.all) where {{tenk1}}.{attribute} >= {low} and {{tenk1}}.{attribute} <= {high}")


def _joins(first: int, state: str, key: str) -> list[Query]:
    two = f"{{tenk1}}.{key} = {{tenk2}}.{key}"
    return [
        Query(f"q{first}", state, f"retrieve into tmp ({_joined('tenk1', 'tenk2')}) where {two} and {{tenk2}}.{key} < {{tenth}}"),
        Query(f"q{first + 1}", state, f"retrieve into tmp ({_joined('tenk1', 'bprime')}) where {{tenk1}}.{key} = {{bprime}}.{key}"),
        Query(f"q{first + 2}", state, f"retrieve into tmp ({_joined('onek', 'tenk1')}) where {{onek}}.{key} = {{tenk1}}.{key} and {two} and {{tenk1}}.{key} < {{tenth}}"),
    ]  # fmt: skip


_SMALL = ("two", "four", "ten", "twenty", "onepercent", "string4")
_LARGE = tuple(name for name in _ATTRIBUTES if name not in ("two", "four"))  # the other 14
_LISTED = lambda role, names: ", ".join(f"{{{role}}}.{name}" for name in names)
_INSERT = (
    "append {tenk1} (unique1 = {new}, unique2 = {place}, two = 0, four = 2, ten = 0, twenty = 10, onepercent = 50, tenpercent = 0, twentypercent = 0,"
    ' fiftypercent = 0, unique3 = {new}, evenonepercent = 100, oddonepercent = 101, stringu1 = "MXXX", stringu2 = "GXXX", string4 = "OXXX")'
)
_DELETE = "delete {tenk1} where {tenk1}.unique1 = {new}"


def _replaced(attribute: str, old: str, new: str) -> str:
    return f"replace {{tenk1}} ({attribute} = {new}) where {{tenk1}}.{attribute} = {old}"


def _aggregates(first: int, state: str) -> list[Query]:
    grouped = "retrieve unique into tmp ({{tenk1}}.onepercent, found = {0}({{tenk1}}.unique3 by {{tenk1}}.onepercent))"
    return [
        Query(f"q{first}", state, "retrieve into tmp (found = min({tenk1}.unique2))"),
        Query(f"q{first + 1}", state, grouped.format("min")),
        Query(f"q{first + 2}", state, grouped.format("sum")),
    ]


def _changes(state: str, insert: str, delete: str, update: str) -> list[Query]:
    return [
        Query(insert, state, _INSERT, after=_DELETE),
        Query(delete, state, _DELETE, before=_INSERT),
        Query(update, state, _replaced("unique2", "{moved}", "{new}"), after=_replaced("unique2", "{new}", "{moved}")),
    ]


QUERIES: tuple[Query, ...] = (
    _select("q1", "none", "unique2", "1"), _select("q2", "none", "unique2", "10"),
    _select("q3", "clustered", "unique2", "1"), _select("q4", "clustered", "unique2", "10"),
    _select("q5", "non-clustered", "unique1", "1"), _select("q6", "non-clustered", "unique1", "10"),
    Query("q7", "clustered", "retrieve ({tenk1}.all) where {tenk1}.unique2 = {one}"), _select("q8", "clustered", "unique2", "1", into=""),
    *_joins(9, "none", "unique2"), *_joins(12, "clustered", "unique2"), *_joins(15, "non-clustered", "unique1"),
    Query("q18", "none", f"retrieve unique into tmp ({_LISTED('tenk1', _SMALL)})"),
    Query("q19", "none", f"retrieve unique into tmp ({_LISTED('tenk1', _LARGE)})"),
    *_aggregates(20, "none"), *_aggregates(23, "clustered"),
    *_changes("none", "q26", "q27", "q28"), *_changes("with", "q29", "q30", "q31"),
    Query("q32", "with", _replaced("unique1", "{moved}", "{new}"), after=_replaced("unique1", "{new}", "{moved}")),
    # beside the 32: the projection as Figure 2.1 has it, and a change that no index knows of
    Query("onek", "none", "retrieve unique into tmp ({onek}.all)"),
    Query("plain", "with", "replace {tenk1} (fiftypercent = 7) where {tenk1}.unique1 = {moved}", after="replace {tenk1} (fiftypercent = {half}) where {tenk1}.unique1 = {moved}"),
)  # fmt: skip
KEYS = tuple(f"q{number}" for number in range(1, 33))
RUNNABLE_IN_1990 = tuple(key for key in KEYS if not 20 <= int(key[1:]) <= 25)
BY_KEY = {query.key: query for query in QUERIES}


def variant(query: Query, n: int, block: Block | None = None) -> Variant:
    """The query for relations of n tuples as one block runs it; without a block as the specification has it."""
    constants = _constants(n, block)
    swapped = block is not None and block.index % 2
    roles = dict(zip(ROLES, ("tenk2", "tenk1", "onek", "bprime"))) if swapped else {role: role for role in ROLES}
    names = {role: relation(actual, query.state) for role, actual in roles.items()}
    values = constants | names
    text, before, after = (part.format(**values) for part in (query.text, query.before, query.after))
    lettered = block is None or (block.index == 0 and n < SPECIFIED)
    return Variant(query, text, before, after, _answer(read(text)[0], values, _ANY.texts if lettered else ()))


def _constants(n: int, block: Block | None) -> dict[str, int]:
    one, ten = max(1, n // 100), max(1, n // 10)
    low, low10, single = 0, 792 * n // SPECIFIED, 2001 * n // SPECIFIED
    if block is not None:
        drawn = random.Random(block.seed)
        low, low10, single = drawn.randrange(n - one), drawn.randrange(n - ten), drawn.randrange(n)
    moved = 1491 * n // SPECIFIED
    return {
        "low1": low, "high1": low + one - 1, "low10": low10, "high10": low10 + ten - 1, "one": single, "tenth": ten,
        "new": n + 1, "place": 74 * n // SPECIFIED, "moved": moved, "half": moved % 2,
    }  # fmt: skip


def _answer(statement: tree.Statement, values: Mapping[str, object], lettered: tuple[str, ...]) -> Answer:
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


def printed_form(key: str) -> str:
    """The query at the specification's size, for the page; long target lists abbreviated."""
    text = variant(BY_KEY[key], SPECIFIED).text
    for role in ROLES:
        for state in STATES:
            text = text.replace(relation(role, state), role)
    head, _, rest = text.partition("(")
    inside, _, tail = rest.partition(")")
    return f"{head}({inside[:40]}…){tail}" if len(inside) > 60 else text
