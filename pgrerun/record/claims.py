"""The ledger of claims: what documents say, and how evidence shall decide about it.

`ledger` reads data/claims.csv. What a claim's word rests on stands there: predicate, printed size,
basis and regime. `verdicts` applies it, `history` tells how it has changed; printed effects come
from `printed`.

Columns beside what the document says (id, document, section, chapter, kind, published_value):

    claim      what the document claims, in our words
    quote      the document's own words, at most two sentences; empty where it only prints numbers
    headline   "yes" for the few claims that made the document worth reading
    predicate  how evidence decides (see `verdicts`); empty until the claim's chapter exists
    printed    the printed size as arithmetic over cells of the printed tables, so that no number is
               copied: "tp1_stages.stable.tp1 / tp1_stages.one.tp1". "A to B" is a range, and
               "name: A; other: B to C" gives each part of a claim that prints several its own
    margin     smallest effect of interest, as a share of no effect (0.05: ratios from 1/1.05 to
               1.05 are nothing); for "ratio" and "direction" only, 0.05 if empty
    tolerance  how far from a printed size still counts as that size; 0.1 if empty. Of "ratio" a
               share of the effect (twice as fast: 1.9 to 2.1), of "between" a share of the number
    basis      what the word rests on, see `Basis`
    regime     in which the claim speaks, see data/regimes.csv; several with " and " between them
    needs      a capability of server or machine without which the claim can't be tested, likewise;
               data/out_of_reach.csv has those that no machine of ours has, and why
    quantity   what the number is, as a phrase that goes after "the" and before "is"
    relative_to  of a ratio, what the quantity is divided by, so that a sentence can say that the
               quantity is so many times that
    as_share   of a speed-up if something cost nothing, the share of the whole that goes into it; as
               that share it is told
    unit       "%" where the number is a share, which is told in percent
    plural     "yes" where the quantity takes "are"
    direction_only  of "direction", why the size that the document prints can't be asked for
    note       why it is judged so, where a reader could expect another experiment or another word
"""

import ast
import csv
import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import duckdb
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pgrerun.errors import RecordError
from pgrerun.record import printed

LEDGER = printed.DATA.parent / "claims.csv"

MARGIN = 0.05
"""The smallest effect of interest where a claim declares none."""

TOLERANCE = 0.1
"""What counts as the printed size where a claim declares nothing: documents print two digits."""


class Regime(NamedTuple):
    """Where a claim speaks: a line of data/regimes.csv, whose bounds are arithmetic as sizes are.

    `quantity` is what tells whether a run is there, as a phrase after "the"; it must be `at_least`
    so much, and `at_most`. `reach` says what would reach it. Where a parameter of the chapter
    decides that, `parameter` says which and from what value on, as in "seconds = 60".
    """

    quantity: str
    at_least: float
    reach: str
    parameter: str = ""
    at_most: float = math.inf

    @property
    def bounds(self) -> str:
        """What it must be, after "should be"."""
        if math.isinf(self.at_most):
            return f"at least {self.at_least:g}"
        return f"from {self.at_least:.3g} to {self.at_most:.3g}"


class Reason(StrEnum):
    """Why a claim isn't tested, where more work on this book would not test it."""

    PROCESSORS = "more processors than here"
    SYSTEM = "a system that isn't at hand"
    HARDWARE = "hardware that isn't at hand"
    DOCUMENT = "the document is ambiguous"
    OPINION = "an opinion"


class OutOfReach(NamedTuple):
    """A line of data/out_of_reach.csv: what a claim may need, and why that isn't at hand.

    Either for a `reason`, and then `would_take` says what would test it (with how many
    `processors`), or since it takes `builds` of data/builds.csv, which no package brings.
    """

    why: str
    reason: Reason | None
    would_take: str
    builds: tuple[str, ...] = ()
    processors: int = 0

    def __str__(self) -> str:
        """The reason in words, and what would be needed."""
        if self.builds:
            names = f"build{'s' if len(self.builds) > 1 else ''} {', '.join(self.builds)}"
            return (
                f"{self.why}; it is decided by the {names}, on which nobody has compared this yet"
            )
        return f"{self.why}; it would take {self.would_take}"


_PROCESSORS = re.compile(r"(\d+) processors")


def regime(name: str) -> Regime:
    """The regime of that name, of `REGIMES` or "N processors"; KeyError if there is none."""
    if found := _PROCESSORS.fullmatch(name):
        many = int(found[1])
        return Regime("number of processors", many, f"a machine with at least {many} processors")
    return REGIMES[name]


_PARAMETER = re.compile(r"([a-z_]+) = ([\d.]+)")


def parameter(capability: str) -> tuple[str, float] | None:
    """Which parameter a missing capability asks for, and the least value; None where it's none.

    A capability is such a text itself ("tuples = 1000000"), or a regime that names one.
    """
    known = REGIMES.get(capability)
    found = _PARAMETER.fullmatch(known.parameter if known else capability)
    return (found[1], float(found[2])) if found else None


def is_build(capability: str) -> bool:
    """Whether what is missing is a build of data/builds.csv: "build NAME", or "the build NAME"."""
    return capability.removeprefix("the ").startswith("build ")


class Predicate(StrEnum):
    """How evidence decides about a claim; `verdicts` has the rules."""

    RATIO = "ratio"
    DIRECTION = "direction"
    BETWEEN = "between"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    EQUALS = "equals"
    FACTS = "facts"
    BUG = "bug"


WITH_PRINTED = frozenset(
    {
        Predicate.RATIO,
        Predicate.BETWEEN,
        Predicate.AT_MOST,
        Predicate.AT_LEAST,
        Predicate.EQUALS,
    }
)
BOUNDS = frozenset({Predicate.AT_MOST, Predicate.AT_LEAST})
WITH_MARGIN = frozenset({Predicate.RATIO, Predicate.DIRECTION})
WITH_TOLERANCE = frozenset({Predicate.RATIO, Predicate.BETWEEN})


class Basis(StrEnum):
    """What a verdict rests on.

    The first three speak of a server that ran here and make up the score. The others stand apart:
    a time of this machine without any server, a model's number, arithmetic of what is printed, what
    release notes say, what is true by how the experiment is built, and what no experiment can
    decide.
    """

    TIMED = "timed"
    COUNTED = "counted"
    OBSERVED = "observed"
    MACHINE = "machine"
    SIMULATED = "simulated"
    RECOMPUTED = "recomputed"
    RELEASE_NOTES = "release notes"
    BY_DESIGN = "by design"
    OPINION = "opinion"


SCORED = frozenset({Basis.TIMED, Basis.COUNTED, Basis.OBSERVED})
OWN = "practice"
"""Stands for the document of a claim that none makes: a worked example's."""


class Size(NamedTuple):
    """A printed number (`low` and `high` are it), or a printed range; nan and inf are none."""

    low: float
    high: float

    def inverse(self) -> "Size":
        """Of a printed ratio: the same comparison read the other way round."""
        return Size(1 / self.high, 1 / self.low)


class Claim(BaseModel):
    """One line of the ledger; see the module's docstring for the columns.

    `sizes` are the printed sizes by the name of their part ("" where there is one; empty where the
    predicate has none), `expression` is their source.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z]+-\d{3}$")
    document: str
    section: str = Field(min_length=1)
    chapter: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    kind: Literal["number", "ordering", "mechanism", "prediction", "bug"]
    claim: str = Field(min_length=1)
    quote: str = ""
    published_value: str
    headline: bool
    predicate: Predicate | None
    expression: str
    sizes: Mapping[str, Size]
    margin: float = Field(gt=0, lt=1)
    tolerance: float = Field(TOLERANCE, ge=0, lt=1)
    basis: Basis = Basis.OBSERVED
    regime: str = ""
    needs: str
    quantity: str
    relative_to: str = ""
    as_share: str = ""
    unit: Literal["", "%"] = ""
    plural: bool = False
    direction_only: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> "Claim":
        if self.document not in printed.DOCUMENTS:
            raise ValueError(f"document must be one of {', '.join(printed.DOCUMENTS)}")
        if bool(self.sizes) != (self.predicate in WITH_PRINTED):
            raise ValueError(
                f"predicate {self.predicate or '(none)'}"
                f" {'needs a' if self.predicate in WITH_PRINTED else 'has no'} printed number"
            )
        for size in self.sizes.values():
            self._check_size(size)
        if self.predicate in WITH_PRINTED | WITH_MARGIN and not self.quantity:
            raise ValueError("a measured number needs a quantity to say what it is")
        directed = self.predicate is Predicate.DIRECTION
        if self.direction_only and not directed:
            raise ValueError("direction_only is for the predicate direction")
        if directed and self.published_value and not self.direction_only:
            raise ValueError(
                f"it prints {self.published_value!r}: direction_only says why no size is judged"
            )
        if self.as_share and (self.unit != "%" or self.relative_to):
            raise ValueError("as_share is told in %, and is relative to nothing else")
        if self.predicate and (self.kind == "bug") != (self.predicate is Predicate.BUG):
            raise ValueError("claims of kind bug, and only they, have the predicate bug")
        for name in self.regimes:
            try:
                regime(name)
            except KeyError:
                raise ValueError(
                    f"regime {name!r} is none of {', '.join(REGIMES)}, N processors"
                ) from None
        return self

    def _check_size(self, size: Size) -> None:
        if size.low > size.high:
            raise ValueError("a printed range goes from its smaller to its larger number")
        if size.low < size.high and self.predicate not in WITH_TOLERANCE:
            raise ValueError(f"predicate {self.predicate} takes one number, no range")
        if self.predicate is not Predicate.RATIO:
            return
        if size.low <= 0:
            raise ValueError("a printed ratio must be positive")
        if size.low < 1 < size.high:
            raise ValueError("a printed range of ratios lies on one side of 1")
        if min(abs(math.log(size.low)), abs(math.log(size.high))) <= math.log(1 + self.margin):
            raise ValueError(
                f"the printed effect {size.low:.4g} is within the margin {self.margin:g}:"
                " declare a smaller margin"
            )

    @property
    def printed(self) -> float | None:
        """The one printed number of a claim that has one, else None."""
        sizes = list(self.sizes.values())
        return sizes[0].low if len(sizes) == 1 and sizes[0].low == sizes[0].high else None

    @property
    def scored(self) -> bool:
        """Whether its verdict counts in the score: a server decided what a document says in words.

        What has no quotation this book has read off a figure, or claims itself.
        """
        return self.basis in SCORED and self.document != OWN and bool(self.quote)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What it can't be tested without, in words of `Server.require` and of the instruments."""
        return tuple(self.needs.split(" and ")) if self.needs else ()

    @property
    def regimes(self) -> tuple[str, ...]:
        """Where it speaks: names that `regime` knows."""
        return tuple(self.regime.split(" and ")) if self.regime else ()

    @property
    def comparison(self) -> str:
        """The quantity, and what it is relative to if that is printed of it."""
        return f"{self.quantity} relative to {self.relative_to}".removesuffix(" relative to ")

    @property
    def document_name(self) -> str:
        """The document in words."""
        return printed.DOCUMENTS[self.document][0]

    @property
    def source(self) -> str:
        """Document and section, in words."""
        return f"{self.document_name}, {printed.cited(self.section)}"


OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
"""Arithmetic that expressions may do."""


def evaluate(expression: str) -> float:
    """Arithmetic (+ - * / and parentheses) over numbers and cells TABLE.ROW.COLUMN of the tables.

    ValueError for anything else, RecordError for a cell that doesn't exist or holds no number.
    """

    def value(node: ast.expr) -> float:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return float(OPERATORS[type(op)](value(left), value(right)))
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return float(number)
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=table), attr=row), attr=column
            ):
                return printed.cell(table, row, column)
        raise ValueError(
            f"{ast.unparse(node)!r} is neither a number, a cell TABLE.ROW.COLUMN nor + - * / of"
            " such"
        )

    try:
        found = value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise ValueError(f"{expression!r} can't be evaluated: {error}") from None
    if not math.isfinite(found):
        raise ValueError(f"{expression!r} has no finite value")
    return found


def sizes(text: str) -> dict[str, Size]:
    """The printed sizes by part from a cell of the column `printed`; ValueError for a bad one."""
    found: dict[str, Size] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, expression = part.rpartition(":")
        name = name.strip()
        if name in found:
            raise ValueError(f"printed has two parts called {name!r}")
        low, _, high = expression.partition(" to ")
        found[name] = Size(evaluate(low), evaluate(high or low))
    if "" in found and len(found) > 1:
        raise ValueError("each of several printed parts needs a name: 'name: number'")
    return found


COLUMNS = [
    "id",
    "document",
    "section",
    "chapter",
    "kind",
    "claim",
    "quote",
    "published_value",
    "headline",
    "predicate",
    "printed",
    "margin",
    "tolerance",
    "basis",
    "regime",
    "needs",
    "quantity",
    "relative_to",
    "as_share",
    "unit",
    "plural",
    "direction_only",
    "note",
]


def ledger(path: Path = LEDGER) -> dict[str, Claim]:
    """All claims by id, in the order of the file. RecordError names file and line of a damage."""
    return dict(_ledger(path, path.stat().st_mtime_ns if path.exists() else 0))


@cache
def _ledger(path: Path, changed: int) -> dict[str, Claim]:
    found: dict[str, Claim] = {}
    first_line = 1  # of the row under way; a quoted cell may span lines
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file, strict=True)
            if rows.fieldnames != COLUMNS:
                raise ValueError(f"its columns must be {', '.join(COLUMNS)}")
            first_line = 2
            for row in rows:
                claim = _claim(row)
                if claim.id in found:
                    raise ValueError(f"{claim.id} stands there a second time")
                found[claim.id] = claim
                first_line = rows.line_num + 1
    except (OSError, ValueError, csv.Error, RecordError) as error:
        raise RecordError(
            f"The ledger of claims {path} is damaged at line {first_line}: {_reason(error)}. Mend"
            " that line, or restore the file from version control."
        ) from None
    return found


def _claim(row: Mapping[str, str | None]) -> Claim:
    if None in row or None in row.values():
        raise ValueError(f"it has {'more' if None in row else 'fewer'} cells than the header")
    for name in ("headline", "plural"):
        if row[name] not in ("", "yes"):
            raise ValueError(f"{name} is 'yes' or empty, not {row[name]!r}")
    predicate = _word(row, "predicate", Predicate) if row["predicate"] else None
    cells = {name: value for name, value in row.items() if name not in ("printed", "headline")}
    return Claim.model_validate(
        {
            **cells,
            "headline": row["headline"] == "yes",
            "plural": row["plural"] == "yes",
            "predicate": predicate,
            "basis": _word(row, "basis", Basis),
            "expression": row["printed"],
            "sizes": sizes(row["printed"] or ""),
            "margin": _share(row, "margin", WITH_MARGIN, MARGIN),
            "tolerance": _share(row, "tolerance", WITH_TOLERANCE, TOLERANCE),
        }
    )


Word = TypeVar("Word", bound=StrEnum)


def _word(row: Mapping[str, str | None], column: str, words: type[Word]) -> Word:
    """What a cell says, of the words that its column knows. ValueError for another."""
    given = row[column] or ""
    if given in list(words):
        return words(given)
    close = difflib.get_close_matches(given, list(words), n=1)
    raise ValueError(
        f"{row['id']}: {column} is {given!r} and none of {', '.join(words)}"
        + (f"; did you mean {close[0]}" if close else "")
    )


def _share(
    row: Mapping[str, str | None], name: str, predicates: frozenset[Predicate], default: float
) -> str | float:
    if row[name] and row["predicate"] not in predicates:
        raise ValueError(f"only the predicates {' and '.join(sorted(predicates))} have a {name}")
    return row[name] or default


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            ".".join(map(str, e["loc"]))
            + (": " if e["loc"] else "")
            + e["msg"].removeprefix("Value error, ")
            for e in error.errors()
        )
    return str(error).rstrip(".")


OUT_OF_REACH: Mapping[str, OutOfReach] = {
    row["capability"]: OutOfReach(
        row["why"],
        Reason(row["reason"]) if row["reason"] else None,
        row["would_take"],
        tuple(row["builds"].split()),
        int(row["processors"] or 0),
    )
    for row in printed.lines(LEDGER.with_name("out_of_reach.csv"))
}
"""What a claim may need that no release that can be installed has, and why."""


def reason(capability: str) -> str:
    """For which of the five reasons nobody here can test what needs that, "" for another.

    With the number of processors that it takes. A run may lack much else: a right, a program, a
    regime. `capability` may be a regime, also one of so many processors unless something else is.
    """
    known = OUT_OF_REACH.get(capability)
    found = _PROCESSORS.match(capability)
    many = int(found[1]) if found else known.processors if known else 0
    if many:
        return f"{Reason.PROCESSORS} ({many})"
    return str(known.reason or "") if known else ""


REGIMES: Mapping[str, Regime] = {
    row["regime"]: Regime(
        row["quantity"],
        evaluate(row["at_least"]),
        row["reach"],
        row["parameter"],
        evaluate(row["at_most"]) if row["at_most"] else math.inf,
    )
    for row in printed.lines(LEDGER.with_name("regimes.csv"))
}
"""Regimes that a run measures; "N processors" is another, which the machine answers."""


def load(connection: duckdb.DuckDBPyConnection) -> None:
    """Make schema `claims`: `ledger`, `sizes`, `regimes` and `out_of_reach`, NULL where empty.

    `ledger` has the columns of the CSV file. `headline` and `plural` are BOOLEAN; `margin` and
    `tolerance` are what a claim is judged with, NULL where its predicate has none. `sizes` has the
    printed sizes: id, part ("" where a claim has one), low and high, which are the same for a
    number. `verdicts` is empty: what runs said is added to it.
    """
    known = ledger().values()  # which names the line of a damage
    connection.execute(
        "ATTACH ':memory:' AS claims;"
        " CREATE TABLE claims.sizes (id text, part text, low double, high double);"
        " CREATE TABLE claims.regimes (regime text, quantity text, at_least double, reach text,"
        " parameter text, at_most double);"
        " CREATE TABLE claims.verdicts (run text, chapter text, claim text, verdict text,"
        " basis text, evidence text)"
    )
    connection.execute(
        "CREATE TABLE claims.ledger AS SELECT * REPLACE (coalesce(headline = 'yes', false) AS"
        " headline, coalesce(plural = 'yes', false) AS plural, CASE WHEN list_contains(?,"
        " predicate) THEN coalesce(margin::DOUBLE, ?) END AS margin, CASE WHEN list_contains(?,"
        " predicate) THEN coalesce(tolerance::DOUBLE, ?) END AS tolerance) FROM read_csv(?,"
        " all_varchar = true)",
        [sorted(WITH_MARGIN), MARGIN, sorted(WITH_TOLERANCE), TOLERANCE, str(LEDGER)],
    )
    connection.executemany(
        "INSERT INTO claims.sizes VALUES (?, ?, ?, ?)",
        [[claim.id, part, *size] for claim in known for part, size in claim.sizes.items()],
    )
    connection.executemany(
        "INSERT INTO claims.regimes VALUES (?, ?, ?, ?, ?, ?)",
        [[name, *found] for name, found in REGIMES.items()],
    )
    connection.execute(
        "CREATE TABLE claims.history AS FROM read_csv(?, all_varchar = true)",
        [str(LEDGER.with_name("history.csv"))],
    )
    connection.execute(
        "CREATE TABLE claims.out_of_reach AS SELECT * REPLACE (processors::INT AS processors)"
        " FROM read_csv(?, all_varchar = true)",
        [str(LEDGER.with_name("out_of_reach.csv"))],
    )
