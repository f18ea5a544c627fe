"""The ledger of claims: what documents say, and how evidence shall decide about it.

`ledger` reads data/claims.csv. What a claim's word rests on stands there before anything is
measured: predicate, printed size, basis and regime. `verdicts` applies it; printed effects come
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
    regime     in which the claim speaks, see `REGIMES`; several with " and " between them
    needs      a capability of server or machine without which the claim can't be tested, likewise
    quantity   what the number is, as a phrase that goes after "the" and before "is"; a ratio is
               "A relative to B", so that a sentence can say that A is so many times B
    note       why it is judged so, where a reader could expect another experiment or another word
"""

import ast
import csv
import math
import operator
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pgrerun.errors import RecordError
from pgrerun.record import printed

LEDGER = printed.DATA.parent / "claims.csv"

MARGIN = 0.05
"""The smallest effect of interest where a claim declares none."""

TOLERANCE = 0.1
"""What counts as the printed size where a claim declares nothing: documents print two digits."""


OUT_OF_REACH: Mapping[str, str] = {
    "server without HOT": (
        "HOT came with PostgreSQL 8.3, and no release from before that can be installed here;"
        " without an index on the updated column the code can't be kept from running"
    ),
    "VACUUM FULL of 2007": (
        "it is about a VACUUM FULL that moved tuples within a relation, which 9.0 replaced by one"
        " that rewrites it, and the oldest release that can be installed here is 9.3"
    ),
    "patch of March 2007": (
        "it speaks of a design that put new versions into the places of dead ones, which was given"
        " up before the release"
    ),
    "64 processors": (
        "what it describes lies between a quarter and half of the processors of a large machine"
        " and is credited to Linux's scheduler"
    ),
    "PostgreSQL 9.1": (
        "it is about what 9.1 did on a machine of many processors, and the oldest release that can"
        " be installed here is 9.3"
    ),
    "Linux before 3.2": (
        "it compares with kernels before 3.2 (2012), in which telling a file's size took a lock,"
        " on a machine of 64 processors"
    ),
    "VMware tools": "it is about a program of another virtual machine than the one at hand",
    "a slow disk under load": (
        "it takes a busy server on such a disk; how long a flush takes on one that was made slow on"
        " purpose is how slow it was made"
    ),
    "SELinux": "it takes a kernel with SELinux and a server built with sepgsql",
    "query 32 as it was run": (
        "the report doesn't say what query 32 was. The benchmark's specification of 1993 has its"
        " tuple found by an index, and by the report's times both systems scanned: by the one the"
        " two updates differ in nothing, by the other in how they find a tuple"
    ),
    "INGRES": (
        "the numbers of 1983 aren't printed in the report, were measured on another machine, and"
        " neither release of INGRES runs today"
    ),
    "POSTGRES": (
        "no POSTGRES of 1990 runs on a machine of today, so nothing can be taken out of it, nor its"
        " successor's gain be told from the machine's"
    ),
    "assertions": (
        "it takes one program with its assertions and without: packages of PostgreSQL have none,"
        " and what --enable-cassert brings today is more than assertions, as memory is overwritten"
        " when it is freed and lists, plans and buffers are looked through again"
    ),
    "POSTGRES of 1990": (
        "it says why the optimizer of 1990 chose as it did. That program doesn't run today, and the"
        " planner of today knows no result whose size could be left unset"
    ),
    "POSTGRES's storage manager": (
        "it counts what that storage manager did for itself, three pages looked at for space and"
        " every changed page forced at commit; a script that does so here counts what it was told"
    ),
    "hashed relations": (
        "it takes relations that are stored by hashing, and PostgreSQL has none: a hash index leads"
        " to a tuple's page"
    ),
    "how much of the index was in memory": (
        "where lookups wait for reads, what an index gains is a count: pages that are read without"
        " it and with it. Those read with it depend on how much of it memory held already, and the"
        " talk doesn't say that"
    ),
    "numbers of hashed relations": (
        "of relations stored by hashing it prints neither a number nor how full their pages were,"
        " and what a disk of the time makes of them depends on that"
    ),
    "profilers of 2012": (
        "it compares perf, sampling by events of the hardware on a machine of 64 processors, with"
        " gprof, which takes a server that is built for it, and with oprofile as it was in 2012"
    ),
    "the message's set-up": (
        "the message prints neither how large its relations and its pool were nor how often they"
        " were vacuumed, and what HOT gains depends on each"
    ),
    "a log of status only": (
        "it speaks of storage whose log holds the status of transactions and nothing else;"
        " PostgreSQL logs changes of a relation and forces no page of it, but for one that is made"
        " in the same transaction with wal_level = minimal"
    ),
    "the report's machine": (
        "a third of the printed time is waiting for reads and the rest computing, on a processor"
        " that took tens of milliseconds for what takes microseconds today: here a relation is in"
        " memory, and nothing waits, or isn't, and nearly everything does; a slowed disk could be"
        " set to any share between, and what it is set to would decide"
    ),
    "the thread's disk": (
        "whether missing the pool means waiting is decided by the disk and the memory beside it,"
        " and the thread's can't be had"
    ),
    "release before 9.2": (
        "it compares PostgreSQL 9.2 with what came before, and no release of before can be"
        " installed here"
    ),
    "Itanium": "it takes an Itanium processor, and PostgreSQL no longer supports it",
    "man-months": "what a compiler takes to build can't be measured by running one",
    "catalogs of INGRES": (
        "the miniature keeps its catalogs in memory, and PostgreSQL caches its own before a first"
        " command ends"
    ),
    "disk with a moving head": "storage without a head that moves has no middle to be near to",
    "writable control store": "no processor that one can buy lets its users write microcode",
    "INGRES of 1981": (
        "it compares two INGRES of 1981, one of which resolved types anew for every tuple. No"
        " server of today does: PostgreSQL's own interpreter is the threaded code that the"
        " memorandum built, so what a compiler gains beside it is another comparison"
    ),
    "UNIX of 1981": (
        "it compares a file system of the server's own with that of UNIX in 1981, which read a kB"
        " at a time and copied it; a kernel of today reads ahead and much at once, so that reading"
        " past it saves other things"
    ),
    "VAX": "it is a number of a VAX 11/780, and no server of today runs on one",
    "MANGOS": "it is an estimate of an operating system that was never built",
    "INGRES after 1981": "what became possible in INGRES can't be seen in PostgreSQL",
}
"""What a claim may need that no machine this runs on has, and why."""


class Regime(NamedTuple):
    """Where a claim speaks.

    `quantity` is what tells whether a run is there, as a phrase after "the"; it must be `at_least`
    so much, and `at_most`. `reach` says what would reach it. Where a parameter of the chapter
    decides that, `parameter` says which and from what value on, as in "seconds = 60". `dilutes`:
    outside of it something that all variants share draws a ratio to one. That hides an effect, and
    turns none over: see `verdicts.despite_dilution`.
    """

    quantity: str
    at_least: float
    reach: str
    parameter: str = ""
    at_most: float = math.inf
    dilutes: bool = False

    @property
    def bounds(self) -> str:
        """What it must be, after "should be"."""
        if math.isinf(self.at_most):
            return f"at least {self.at_least:g}"
        return f"from {self.at_least:.3g} to {self.at_most:.3g}"


REGIMES: Mapping[str, Regime] = {
    "waiting for reads": Regime(
        "share of its time that the work waits for reads",
        0.5,
        "a pool smaller than what is read, on storage that makes a backend wait",
    ),
    "waiting for writes": Regime(
        "share of its time that the work waits for writes",
        0.5,
        "more dirty pages than the pool holds, on storage that makes a backend wait",
    ),
    "waiting for pages": Regime(
        "share of its time that the work waits for pages to be read and written",
        0.5,
        "a pool smaller than what is read, on storage that makes a backend wait",
    ),
    "what is compared is most of the time": Regime(
        "share of the time that storing a result and committing leave, where that is least,",
        0.5,
        "a processor that takes longer to find tuples, relative to storing them",
        dilutes=True,
    ),
    "the report's share of the processor": Regime(
        "share of a lone backend's time that it computes",
        0.8 * 0.42,  # the printed share, a fifth less and more: the rest is waiting for the disk
        "transactions that compute for the printed share while their disk works for the rest",
        at_most=1.2 * 0.42,
    ),
    "reads of a second backend": Regime(
        "ratio of requests to read per transaction, of two backends to one",
        0,
        "a pool in which two backends read no more than one, as in the report",
        at_most=1.1,
    ),
    "waiting for flushes": Regime(
        "share of its time that a lone client's transaction waits for the flush of WAL",
        0.5,
        "storage whose flush takes longer than the rest of a transaction",
    ),
    "pool misses": Regime(
        "share of page accesses that the pool doesn't answer",
        0.05,
        "a pool smaller than what is read again and again",
    ),
    "data larger than the pool": Regime(
        "number of times that the data has the pool's pages",
        8,
        "larger relations, or a smaller pool",
    ),
    "small tables in the pool": Regime(
        "number of times that the pool holds the small tables with their keys",
        5,
        "relations so large that autovacuum comes often enough in a run",
        "timed_accounts = 20000",
    ),
    "steady state": Regime(
        "number of whole checkpoint cycles of PostgreSQL's own length that were watched",
        3,
        "a run of several checkpoint cycles, minutes long",
        "seconds = 60",
    ),
    "idle for minutes": Regime(
        "number of seconds for which the server had been idle before it was watched",
        180,  # the talk's few minutes
        "a server left alone for minutes before it is watched",
        "idle_seconds = 105",
    ),
}
"""Regimes that a run measures; "N processors" is another, which the machine answers."""

_PROCESSORS = re.compile(r"(\d+) processors")


def regime(name: str) -> Regime:
    """The regime of that name; KeyError if there is none."""
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
    idea_for_a_retest: str
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
        """Whether its verdict counts in the score: a server decided, and a document claims it."""
        return self.basis in SCORED and self.document != OWN

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What it can't be tested without, in words of `Server.require` and of the instruments."""
        return tuple(self.needs.split(" and ")) if self.needs else ()

    @property
    def regimes(self) -> tuple[str, ...]:
        """Where it speaks: names that `regime` knows."""
        return tuple(self.regime.split(" and ")) if self.regime else ()

    @property
    def document_name(self) -> str:
        """The document in words."""
        return printed.DOCUMENTS[self.document][0]

    @property
    def source(self) -> str:
        """Document and section, in words."""
        return f"{self.document_name}, {printed.cited(self.section)}"


_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluate(expression: str) -> float:
    """Arithmetic (+ - * / and parentheses) over numbers and cells TABLE.ROW.COLUMN of the tables.

    ValueError for anything else, RecordError for a cell that doesn't exist or holds no number.
    """

    def value(node: ast.expr) -> float:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
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
    "idea_for_a_retest",
    "headline",
    "predicate",
    "printed",
    "margin",
    "tolerance",
    "basis",
    "regime",
    "needs",
    "quantity",
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
    if row["headline"] not in ("", "yes"):
        raise ValueError(f"headline is 'yes' or empty, not {row['headline']!r}")
    predicate = row["predicate"]
    if predicate and predicate not in list(Predicate):
        raise ValueError(f"predicate {predicate!r} is none of {', '.join(Predicate)}")
    if row["basis"] not in list(Basis):
        raise ValueError(f"basis {row['basis']!r} is none of {', '.join(Basis)}")
    cells = {name: value for name, value in row.items() if name not in ("printed", "headline")}
    return Claim.model_validate(
        {
            **cells,
            "headline": row["headline"] == "yes",
            "predicate": predicate or None,
            "expression": row["printed"],
            "sizes": sizes(row["printed"] or ""),
            "margin": _share(row, "margin", WITH_MARGIN, MARGIN),
            "tolerance": _share(row, "tolerance", WITH_TOLERANCE, TOLERANCE),
        }
    )


def _share(
    row: Mapping[str, str | None], name: str, predicates: frozenset[Predicate], default: float
) -> float:
    if row[name] and row["predicate"] not in predicates:
        raise ValueError(f"only the predicates {' and '.join(sorted(predicates))} have a {name}")
    try:
        return float(row[name] or default)
    except ValueError:
        raise ValueError(f"{name} {row[name]!r} is no number") from None


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            ".".join(map(str, e["loc"]))
            + (": " if e["loc"] else "")
            + e["msg"].removeprefix("Value error, ")
            for e in error.errors()
        )
    return str(error).rstrip(".")
