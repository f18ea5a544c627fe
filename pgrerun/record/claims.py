"""The ledger of claims, and the verdict on each from evidence.

`ledger` reads data/claims.csv. A claim declares its predicate there, before anything is measured;
`judge` applies it, `set_aside` says why it can't, and a chapter's `Judge` sees that every claim
of the chapter gets exactly one verdict. Intervals come from `statistics`, printed effects from
`published`, sentences about judgements from `narrate`.

Columns of the ledger beside what the document says (id, document, section, chapter, kind, claim,
published_value) and an idea_for_a_retest:

    headline   "yes" for the few claims that made the document worth reading
    predicate  how evidence decides, see below; empty until the claim's chapter exists
    printed    the printed effect or bound, as arithmetic over cells of the published tables:
               "tp1_stages.stable.tp1 / tp1_stages.one.tp1", so that no number is copied
    margin     smallest effect of interest, as a share of no effect (0.05: ratios from 1/1.05 to
               1.05 are nothing); for "ratio" and "direction" only, 0.05 if empty
    needs      a capability of server or machine without which the claim can't be tested, or
               several with " and " between them
    quantity   what the number is, as a phrase that goes after "the"

Predicates. Let [low, high] be the interval of a ratio in the claimed direction (a printed effect
below 1 turns both over), m the margin, E the printed effect. The first line that fits decides:

    ratio       evidence: interval of a ratio, or an exact number
                1. gone          the interval lies inside [1/(1+m), 1+m]: no effect of interest
                2. holds         low > 1+m and high >= E: an effect, and E isn't too large for it
                3. weaker        low > 1 and high < E: the claimed direction, surely less of it
                4. reversed      high < 1/(1+m)
                5. not resolved  everything else: 1 is inside, or an end is inside the margin
                An interval that lies above E altogether holds, and the note says so.
    direction   evidence as for ratio; there is no E: lines 1, 4 and 5, and holds for low > 1+m
    at most     evidence: an interval, a number, or a mapping from names to such; E is the bound
                holds for high <= E, reversed for low > E, not resolved where E lies between. Of
                a mapping: all hold, all reversed, else not resolved as long as one is, else weaker
    at least    the mirror image: holds for low >= E, reversed for high < E
    equals      evidence: an exact number; holds if it equals E, else gone
    facts       evidence: a mapping from statements to whether they are true; all true holds,
                none gone, some weaker
    bug         evidence: whether it is still there: still there or fixed

Whatever the predicate, an interval from too few pairs (see `statistics.ENOUGH`) decides nothing:
not resolved. A claim whose experiment can't run here is not testable here.
"""

import ast
import csv
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pgrerun.errors import BookError, CannotMeasure, RecordError
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval

LEDGER = printed.DATA.parent / "claims.csv"

MARGIN = 0.05
"""The smallest effect of interest where a claim declares none."""


OUT_OF_REACH: Mapping[str, str] = {
    "server without HOT": (
        "HOT came with PostgreSQL 8.3, and no release from before that can be installed here;"
        " without an index on the updated column the code can't be kept from running"
    ),
    "64 processors": (
        "what it describes lies between a quarter and half of the processors of a large machine"
        " and is credited to Linux's scheduler, of which the simulation has no model"
    ),
    "SELinux": "it takes a kernel with SELinux and a server built with sepgsql",
    "INGRES": (
        "the numbers of 1983 aren't printed in the report, were measured on another machine, and"
        " neither release of INGRES runs today"
    ),
    "Itanium": "it takes an Itanium processor, and PostgreSQL no longer supports it",
}
"""What a claim may need that no machine this runs on has, and why."""


class Verdict(StrEnum):
    """What evidence makes of a claim."""

    HOLDS = "holds"
    WEAKER = "weaker"
    GONE = "gone"
    REVERSED = "reversed"
    NOT_RESOLVED = "not resolved"
    NOT_TESTABLE = "not testable here"
    STILL_THERE = "still there"
    FIXED = "fixed"


class Predicate(StrEnum):
    """How evidence decides about a claim."""

    RATIO = "ratio"
    DIRECTION = "direction"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    EQUALS = "equals"
    FACTS = "facts"
    BUG = "bug"


WITH_PRINTED = frozenset({Predicate.RATIO, Predicate.AT_MOST, Predicate.AT_LEAST, Predicate.EQUALS})
WITH_MARGIN = frozenset({Predicate.RATIO, Predicate.DIRECTION})

VERDICTS: Mapping[Predicate, frozenset[Verdict]] = {
    predicate: frozenset(verdicts) | {Verdict.NOT_TESTABLE}
    for predicate, verdicts in {
        Predicate.RATIO: {
            Verdict.HOLDS,
            Verdict.WEAKER,
            Verdict.GONE,
            Verdict.REVERSED,
            Verdict.NOT_RESOLVED,
        },
        Predicate.DIRECTION: {Verdict.HOLDS, Verdict.GONE, Verdict.REVERSED, Verdict.NOT_RESOLVED},
        Predicate.AT_MOST: {Verdict.HOLDS, Verdict.WEAKER, Verdict.REVERSED, Verdict.NOT_RESOLVED},
        Predicate.AT_LEAST: {Verdict.HOLDS, Verdict.WEAKER, Verdict.REVERSED, Verdict.NOT_RESOLVED},
        Predicate.EQUALS: {Verdict.HOLDS, Verdict.GONE},
        Predicate.FACTS: {Verdict.HOLDS, Verdict.WEAKER, Verdict.GONE},
        Predicate.BUG: {Verdict.STILL_THERE, Verdict.FIXED},
    }.items()
}
"""The verdicts that each predicate can give."""


class Claim(BaseModel):
    """One line of the ledger; see the module's docstring for the columns.

    `printed` is the evaluated number (None where the predicate has none), `expression` its source.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z]+-\d{3}$")
    document: str
    section: str = Field(min_length=1)
    chapter: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    kind: Literal["number", "ordering", "mechanism", "prediction", "bug"]
    claim: str = Field(min_length=1)
    published_value: str
    idea_for_a_retest: str
    headline: bool
    predicate: Predicate | None
    expression: str
    printed: float | None
    margin: float = Field(gt=0, lt=1)
    needs: str
    quantity: str

    @model_validator(mode="after")
    def _consistent(self) -> "Claim":
        if self.document not in printed.DOCUMENTS:
            raise ValueError(f"document must be one of {', '.join(printed.DOCUMENTS)}")
        if (self.printed is not None) != (self.predicate in WITH_PRINTED):
            raise ValueError(
                f"predicate {self.predicate or '(none)'}"
                f" {'needs a' if self.predicate in WITH_PRINTED else 'has no'} printed number"
            )
        if self.predicate is Predicate.RATIO and self.printed is not None:
            if self.printed <= 0:
                raise ValueError("a printed ratio must be positive")
            if abs(math.log(self.printed)) <= math.log(1 + self.margin):
                raise ValueError(
                    f"the printed effect {self.printed:.4g} is within the margin {self.margin:g}:"
                    " declare a smaller margin"
                )
        if self.predicate in WITH_PRINTED | WITH_MARGIN and not self.quantity:
            raise ValueError("a measured number needs a quantity to say what it is")
        if self.predicate and (self.kind == "bug") != (self.predicate is Predicate.BUG):
            raise ValueError("claims of kind bug, and only they, have the predicate bug")
        return self

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What it can't be tested without, in words of `Server.require` and of the instruments."""
        return tuple(self.needs.split(" and ")) if self.needs else ()

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


COLUMNS = [
    "id",
    "document",
    "section",
    "chapter",
    "kind",
    "claim",
    "published_value",
    "idea_for_a_retest",
    "headline",
    "predicate",
    "printed",
    "margin",
    "needs",
    "quantity",
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
    if row["margin"] and predicate not in WITH_MARGIN:
        raise ValueError(f"only the predicates {' and '.join(sorted(WITH_MARGIN))} have a margin")
    try:
        margin = float(row["margin"] or MARGIN)
    except ValueError:
        raise ValueError(f"margin {row['margin']!r} is no number") from None
    return Claim.model_validate(
        {
            **row,
            "headline": row["headline"] == "yes",
            "predicate": predicate or None,
            "expression": row["printed"],
            "printed": evaluate(row["printed"]) if row["printed"] else None,
            "margin": margin,
        }
    )


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            ".".join(map(str, e["loc"]))
            + (": " if e["loc"] else "")
            + e["msg"].removeprefix("Value error, ")
            for e in error.errors()
        )
    return str(error).rstrip(".")


# ---- judging

Evidence = Interval | float | bool | Mapping[str, Any] | None


@dataclass(frozen=True)
class Judgement:
    """A claim, its verdict and what it rests on.

    `evidence` is as given, numbers as exact intervals; None where nothing could be tested, and
    `capability` then names what is missing. `note` says what the verdict alone doesn't.
    """

    claim: Claim
    verdict: Verdict
    evidence: Evidence
    note: str = ""
    capability: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For the run record: plain values."""
        return {
            "claim": self.claim.id,
            "chapter": self.claim.chapter,
            "verdict": str(self.verdict),
            "predicate": str(self.claim.predicate),
            "printed": self.claim.printed,
            "evidence": _plain(self.evidence),
            "note": self.note,
            "capability": self.capability,
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Judgement | None":
        """The judgement that `as_dict` wrote.

        None if the ledger has no such claim, or judges it by another predicate now.
        """
        claim = ledger().get(kept["claim"])
        if claim is None or kept["predicate"] != str(claim.predicate):
            return None
        return cls(
            claim,
            Verdict(kept["verdict"]),
            _restored(kept["evidence"]),
            kept["note"],
            kept["capability"],
        )


def _restored(evidence: Mapping[str, Any] | float | bool | None) -> Evidence:
    """The inverse of `_plain`; numbers that JSON can't hold are kept as texts."""
    if not isinstance(evidence, Mapping):
        return evidence
    if {"estimate", "low", "high"} <= set(evidence):
        ends = {name: float(evidence[name]) for name in ("estimate", "low", "high")}
        return Interval(**{**evidence, **ends})
    return {name: _restored(value) for name, value in evidence.items()}


def _plain(evidence: Evidence) -> Any:
    if isinstance(evidence, Interval):
        kept = ("estimate", "low", "high", "n", "confidence", "method")
        return {name: getattr(evidence, name) for name in kept}
    if isinstance(evidence, Mapping):
        return {name: _plain(value) for name, value in evidence.items()}
    return evidence


def _interval(evidence: Any, claim: Claim) -> Interval:
    """The evidence as an interval. TypeError: the chapter gave what the predicate can't use."""
    if isinstance(evidence, Interval):
        return evidence
    if isinstance(evidence, (bool, str)) or not hasattr(evidence, "__float__"):
        raise TypeError(
            f"{claim.id}: predicate {claim.predicate!r} needs an interval or a number, not"
            f" {evidence!r}"
        )
    value = float(evidence)
    if math.isnan(value):  # nothing could be measured: no pairs, so no verdict
        return Interval(value, -math.inf, math.inf, 0, method=statistics.DISTURBED)
    return statistics.exact(value)


def _truth(value: Any, claim: Claim) -> bool:
    if type(value).__name__ not in (
        "bool",
        "bool_",
    ):  # numpy's, too; but never 0, "" or an interval
        raise TypeError(
            f"{claim.id}: predicate {claim.predicate!r} needs True or False, not {value!r}"
        )
    return bool(value)


def _too_few(evidence: Interval) -> str:
    return "" if evidence.enough else f"only {evidence.n} of at least {statistics.ENOUGH} pairs"


def _effect(claim: Claim, given: Any) -> tuple[Verdict, Interval, str]:
    """`ratio` and `direction`."""
    interval = _interval(given, claim)
    if few := _too_few(interval):
        return Verdict.NOT_RESOLVED, interval, few
    inverted = claim.printed is not None and claim.printed < 1
    claimed = interval.inverse() if inverted else interval
    effect = math.inf if claim.printed is None else max(claim.printed, 1 / claim.printed)
    beyond = 1 + claim.margin
    if statistics.within(claimed, claim.margin):
        return Verdict.GONE, interval, ""
    if claimed.low > beyond and (claim.printed is None or claimed.high >= effect):
        return (
            Verdict.HOLDS,
            interval,
            "the effect is larger than printed" if claimed.low > effect else "",
        )
    if claimed.low > 1 and claimed.high < effect and claim.printed is not None:
        return Verdict.WEAKER, interval, ""
    if claimed.high < 1 / beyond:
        return Verdict.REVERSED, interval, ""
    if claimed.low > 1:
        return (
            Verdict.NOT_RESOLVED,
            interval,
            "the direction is the claimed one, but the effect may be too small to matter",
        )
    if claimed.high < 1:
        return (
            Verdict.NOT_RESOLVED,
            interval,
            "the direction isn't the claimed one, but the effect may be too small to matter",
        )
    less = claim.printed is not None and claimed.high < effect
    return (
        Verdict.NOT_RESOLVED,
        interval,
        "no effect can't be excluded" + (", the full printed effect can" if less else ""),
    )


def _bound(claim: Claim, given: Any) -> tuple[Verdict, Evidence, str]:
    """`at most` and `at least`."""
    many = given if isinstance(given, Mapping) else {"": given}
    if not many:
        raise TypeError(f"{claim.id}: no evidence in the mapping")
    intervals = {str(name): _interval(value, claim) for name, value in many.items()}
    each = {name: _side(claim, interval) for name, interval in intervals.items()}
    verdicts = {verdict for verdict, _ in each.values()}
    if not isinstance(given, Mapping):
        return each[""][0], intervals[""], each[""][1]
    if len(verdicts) == 1:
        note = "; ".join(dict.fromkeys(note for _, note in each.values() if note))
        return verdicts.pop(), intervals, note
    parts = "; ".join(
        f"{name}: {verdict}{f' ({note})' if note else ''}" for name, (verdict, note) in each.items()
    )
    return (
        Verdict.NOT_RESOLVED if Verdict.NOT_RESOLVED in verdicts else Verdict.WEAKER,
        intervals,
        parts,
    )


def _printed(claim: Claim) -> float:
    """The printed number of a claim whose predicate has one."""
    assert claim.printed is not None  # held when the ledger is read
    return claim.printed


def _side(claim: Claim, interval: Interval) -> tuple[Verdict, str]:
    if few := _too_few(interval):
        return Verdict.NOT_RESOLVED, few
    low, high, bound = interval.low, interval.high, _printed(claim)
    if claim.predicate is Predicate.AT_LEAST:
        low, high, bound = -high, -low, -bound
    if high <= bound:
        return Verdict.HOLDS, ""
    if low > bound:
        return Verdict.REVERSED, ""
    return Verdict.NOT_RESOLVED, "the bound lies inside the interval"


def _equals(claim: Claim, given: Any) -> tuple[Verdict, Interval, str]:
    interval = _interval(given, claim)
    if not interval.exact:
        raise TypeError(f"{claim.id}: predicate 'equals' is for exact facts, not for {interval}")
    same = math.isclose(interval.estimate, _printed(claim), rel_tol=1e-9)
    return (Verdict.HOLDS if same else Verdict.GONE), interval, ""


def _facts(claim: Claim, given: Any) -> tuple[Verdict, Mapping[str, bool], str]:
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            f"{claim.id}: predicate 'facts' needs a mapping from statements to True or False, not"
            f" {given!r}"
        )
    facts = {str(name): _truth(value, claim) for name, value in given.items()}
    true = sum(facts.values())
    return (
        (Verdict.HOLDS if true == len(facts) else Verdict.WEAKER if true else Verdict.GONE),
        facts,
        "",
    )


def _bug(claim: Claim, given: Any) -> tuple[Verdict, bool, str]:
    there = _truth(given, claim)
    return (Verdict.STILL_THERE if there else Verdict.FIXED), there, ""


_DECIDE: Mapping[Predicate, Callable[[Claim, Any], tuple[Verdict, Evidence, str]]] = {
    Predicate.RATIO: _effect,
    Predicate.DIRECTION: _effect,
    Predicate.AT_MOST: _bound,
    Predicate.AT_LEAST: _bound,
    Predicate.EQUALS: _equals,
    Predicate.FACTS: _facts,
    Predicate.BUG: _bug,
}


def judge(claim: Claim, evidence: Any, note: str = "") -> Judgement:
    """Apply the claim's predicate to the evidence (see the module's docstring for both).

    `note` is said in addition to what the predicate notes. BookError when the ledger declares no
    predicate for the claim; TypeError when the evidence isn't what the predicate takes.
    """
    if claim.predicate is None:
        raise BookError(
            f"The ledger declares no predicate for {claim.id}, so nothing can judge it. Fill the"
            f" column in {LEDGER.name}."
        )
    verdict, kept, own = _DECIDE[claim.predicate](claim, evidence)
    return Judgement(claim, verdict, kept, "; ".join(part for part in (own, note) if part))


def set_aside(claim: Claim, capability: str, reason: str) -> Judgement:
    """The claim can't be tested here: `capability` is missing, `reason` says it in a sentence."""
    return Judgement(claim, Verdict.NOT_TESTABLE, None, reason, capability)


class Judge:
    """Judges the claims of one chapter and keeps account of them.

    `run` (anything with `add_verdict`) gets each judgement; `can` tells whether a capability in
    the ledger's `needs` is there, and a claim that needs a missing one is set aside by itself.
    """

    def __init__(
        self,
        chapter: str,
        run: Any = None,
        can: Callable[[str], bool] | None = None,
        file: Path = LEDGER,
    ):
        """`file` is the ledger that has the chapter's claims."""
        self.chapter = chapter
        known = ledger(file).values()
        self._claims = {claim.id: claim for claim in known if claim.chapter == chapter}
        if not self._claims:
            chapters = sorted({claim.chapter for claim in known})
            raise BookError(
                f"The ledger has no claims of chapter {chapter!r}. Chapters: {', '.join(chapters)}."
            )
        self._run, self._can = run, can
        self._judgements: list[Judgement] = []

    def _claim(self, id: str) -> Claim:
        if id not in self._claims:
            where = ledger().get(id)
            raise BookError(
                f"Claim {id} is no claim of chapter {self.chapter!r}: "
                + (
                    f"it belongs to {where.chapter!r}."
                    if where
                    else f"the ledger has none of that id. Its claims: {', '.join(self._claims)}."
                )
            )
        return self._claims[id]

    def _keep(self, judgement: Judgement) -> Judgement:
        self._judgements.append(judgement)
        if self._run is not None:
            self._run.add_verdict(judgement.as_dict())
        return judgement

    def judge(self, id: str, evidence: Any, note: str = "") -> Judgement:
        """Judge a claim of this chapter by its declared predicate; see `judge`."""
        claim = self._claim(id)
        can = self._can
        missing = [capability for capability in claim.capabilities if can and not can(capability)]
        if missing:
            why = f"it needs {missing[0]}, which is missing here"
            return self._keep(set_aside(claim, missing[0], why))
        return self._keep(judge(claim, evidence, note))

    def set_aside(self, id: str, reason: CannotMeasure) -> Judgement:
        """Record that a claim of this chapter can't be tested here."""
        return self._keep(set_aside(self._claim(id), reason.capability, str(reason)))

    @property
    def judgements(self) -> list[Judgement]:
        """In the order they were given."""
        return list(self._judgements)

    def unjudged(self) -> list[str]:
        """Ids of this chapter's claims that have no verdict yet, in the ledger's order."""
        done = {judgement.claim.id for judgement in self._judgements}
        return [id for id in self._claims if id not in done]

    def table(self) -> pd.DataFrame:
        """The verdicts in the ledger's order, indexed by claim id.

        Columns: claim, headline (bool), section, printed (the document's words), quantity,
        estimate, low, high, n (NaN without an interval), verdict, note.
        """
        last = {judgement.claim.id: judgement for judgement in self._judgements}
        columns = [
            "claim",
            "headline",
            "section",
            "printed",
            "quantity",
            "estimate",
            "low",
            "high",
            "n",
            "verdict",
            "note",
        ]
        rows = {}
        for id in self._claims:
            if id in last:
                claim, evidence = last[id].claim, last[id].evidence
                numbers = [
                    getattr(evidence, name, math.nan) for name in ("estimate", "low", "high", "n")
                ]
                facts = [
                    claim.claim,
                    claim.headline,
                    claim.section,
                    claim.published_value,
                    claim.quantity,
                ]
                rows[id] = [*facts, *numbers, str(last[id].verdict), last[id].note]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("id")

    def close(self) -> None:
        """BookError if a claim of the chapter is unjudged or was judged more than once."""
        problems = []
        if left := self.unjudged():
            problems.append(f"{len(left)} of its claims were left unjudged: {', '.join(left)}")
        counted = Counter(judgement.claim.id for judgement in self._judgements)
        if twice := [id for id, times in counted.items() if times > 1]:
            problems.append(f"claims were judged more than once: {', '.join(twice)}")
        if problems:
            raise BookError(
                f"Chapter {self.chapter!r} isn't complete: {'; '.join(problems)}. Judge each claim"
                " once, or set it aside with its reason."
            )
