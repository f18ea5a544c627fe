"""The words that evidence earns claims, one rule for each predicate, and a chapter's account.

`claims` says what each claim's word rests on, `statistics` makes intervals, `narrate` sentences. A
chapter's `Judge` sees that every claim of the chapter gets exactly one verdict.

Words. A printed size E is one number, or a range [E1, E2]. A single number counts as reached within
the claim's tolerance: of a ratio a share of the effect, so with a tenth "twice as fast" is 1.9 to
2.1, of another number a share of the number. Let [low, high] be the interval measured, in the
claimed direction (a printed effect below 1 turns both over), and m the margin. The first line that
fits decides:

    ratio       the interval of a ratio, or an exact number, against a printed effect
                1. gone            it lies inside [1/(1+m), 1+m]: no effect of interest
                2. reversed        high < 1/(1+m): surely the other direction
                3. stronger        low > 1+m and low > E: surely more of the claimed direction
                4. weaker          low > 1+m and high < E: the claimed direction, surely less of it
                5. holds           low > 1+m: the claimed direction and, as 3 and 4 don't fit, E
                6. not reproduced  high < E: not the printed effect, perhaps none of interest
                7. inconclusive    neither no effect nor the printed one is excluded
    direction   likewise; there is no E: lines 1, 2, holds for low > 1+m, else inconclusive
    between     a number against a printed size: holds inside of it, gone where the interval lies
                wholly outside, else inconclusive
    at most     a bound that the document itself states: holds for high <= E, gone for low > E, else
                inconclusive. A printed point value is no bound
    at least    the mirror image
    equals      an exact number: holds if it equals E, else gone
    facts       statements, each yes, no or unresolved (None), essential or supporting. All
                essential ones yes: holds; all no: gone, or reversed if each declares an opposite
                and it is shown; one unresolved: inconclusive; else weaker. A supporting fact is
                told and never changes the word
    bug         whether it is still there: still there or fixed

A claim that prints several sizes, or whose evidence comes in several parts, has a word for each;
its own is that of the essential parts. Where they differ: inconclusive as long as one is, holds
where all of them hold or are stronger, weaker where some reach the claimed direction and some
don't, else the one nearest to the claim.

Whatever the predicate, an interval from too few pairs (see `statistics.ENOUGH`) decides nothing. A
claim whose experiment can't run here, or whose regime isn't reached, is not testable here; so is
one that is only an opinion. A simulation decides nothing about a claim of another basis. Where what
is compared is hidden behind something that all variants do, ratios are drawn to one: none is
testable but those that this can't explain, see `despite_dilution`.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.record import claims, statistics
from pgrerun.record.claims import Basis, Claim, Predicate, Size
from pgrerun.record.statistics import Interval


class Verdict(StrEnum):
    """What evidence makes of a claim; the module's docstring says when."""

    HOLDS = "holds"
    STRONGER = "stronger"
    WEAKER = "weaker"
    NOT_REPRODUCED = "not reproduced"
    GONE = "gone"
    REVERSED = "reversed"
    STILL_THERE = "still there"
    FIXED = "fixed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTABLE = "not testable here"


_ABOUT_EFFECTS = frozenset(
    {
        Verdict.HOLDS,
        Verdict.STRONGER,
        Verdict.WEAKER,
        Verdict.NOT_REPRODUCED,
        Verdict.GONE,
        Verdict.REVERSED,
        Verdict.INCONCLUSIVE,
    }
)
_WITHIN = {Verdict.HOLDS, Verdict.WEAKER, Verdict.GONE, Verdict.INCONCLUSIVE}  # weaker: of parts
VERDICTS: Mapping[Predicate, frozenset[Verdict]] = {
    predicate: frozenset(words) | {Verdict.NOT_TESTABLE}
    for predicate, words in {
        Predicate.RATIO: _ABOUT_EFFECTS,
        Predicate.DIRECTION: _ABOUT_EFFECTS - {Verdict.STRONGER, Verdict.NOT_REPRODUCED},
        Predicate.BETWEEN: _WITHIN,
        Predicate.AT_MOST: _WITHIN,
        Predicate.AT_LEAST: _WITHIN,
        Predicate.EQUALS: _WITHIN - {Verdict.INCONCLUSIVE},
        Predicate.FACTS: _WITHIN | {Verdict.REVERSED},
        Predicate.BUG: {Verdict.STILL_THERE, Verdict.FIXED},
    }.items()
}
"""The verdicts that each predicate can give."""


# ---- evidence


@dataclass(frozen=True)
class Part:
    """One of several facts or numbers that a claim consists of.

    `value` is an interval, or of a fact True, False, or None where it is unresolved. A part that
    isn't `essential` is told and decides nothing. `opposite` says of a fact whether its opposite
    was shown; None where it has none.
    """

    value: Interval | bool | None
    essential: bool = True
    opposite: bool | None = None


Evidence = Interval | bool | Mapping[str, Part] | None


def supporting(value: Any) -> Part:
    """A fact or number that the document doesn't claim, or that isn't what it is about."""
    return Part(value, essential=False)


def fact(value: bool | None, opposite: bool | None) -> Part:
    """An essential fact, and whether its opposite was shown."""
    return Part(value, opposite=opposite)


def greater(x: Interval | float, than: float = 1.0, margin: float = 0.0) -> bool | None:
    """Whether a measured number is greater: yes, no, or None where the interval can't tell.

    `than` is positive where there is a `margin`, the smallest excess of interest as a share: what
    is greater by less than that isn't.
    """
    found = x if isinstance(x, Interval) else statistics.exact(float(x))
    bound = than * (1 + margin)
    if not found.enough or found.low <= bound < found.high:
        return None
    return found.low > bound


def less(x: Interval | float, than: float = 1.0, margin: float = 0.0) -> bool | None:
    """The mirror image of `greater`, for positive numbers."""
    found = x if isinstance(x, Interval) else statistics.exact(float(x))
    bound = than / (1 + margin)
    if not found.enough or found.low < bound <= found.high:
        return None
    return found.high < bound


def about(x: Interval | float, value: float, share: float) -> bool | None:
    """Whether a positive number is within a share of `value`, both ways; None if it can't tell."""
    found = x if isinstance(x, Interval) else statistics.exact(float(x))
    if not found.enough:
        return None
    low, high = value / (1 + share), value * (1 + share)
    if low <= found.low and found.high <= high:
        return True
    return False if found.high < low or found.low > high else None


def every(facts: Iterable[bool | None]) -> bool | None:
    """Whether all are so: one no is no, else one unresolved is unresolved."""
    known = list(facts)
    return False if False in known else None if None in known else True


def some(facts: Iterable[bool | None]) -> bool | None:
    """Whether one is so: one yes is yes, else one unresolved is unresolved."""
    known = list(facts)
    return True if True in known else None if None in known else False


@dataclass(frozen=True)
class Judgement:
    """A claim, its verdict and what it rests on.

    `evidence` is as given, numbers as intervals; None where nothing could be tested, and
    `capability` then names what is missing. `reason` is what the predicate says of its own
    decision, `note` what the chapter adds. `beside` holds other judgements by the words that tell
    them apart ("at 100,000 tuples", "in the simulation"), which decide nothing. `regime` is what
    was measured of the claim's regimes.
    """

    claim: Claim
    verdict: Verdict
    evidence: Evidence
    note: str = ""
    capability: str = ""
    reason: str = ""
    beside: Mapping[str, "Judgement"] = field(default_factory=dict)
    regime: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def remarks(self) -> str:
        """What the word alone doesn't say."""
        return "; ".join(filter(None, (self.reason, self.note)))

    @property
    def parts(self) -> "Mapping[str, Part]":
        """The parts of the evidence by name; what has none is one part, called ""."""
        return self.evidence if isinstance(self.evidence, Mapping) else {"": Part(self.evidence)}

    def as_dict(self) -> dict[str, Any]:
        """For the run record: plain values."""
        return {
            "claim": self.claim.id,
            "chapter": self.claim.chapter,
            "verdict": str(self.verdict),
            "predicate": str(self.claim.predicate),
            "basis": str(self.claim.basis),
            "printed": {name: list(size) for name, size in self.claim.sizes.items()},
            "evidence": plain(self.evidence),
            "note": self.note,
            "reason": self.reason,
            "capability": self.capability,
            "beside": {
                words: {"verdict": str(other.verdict), "evidence": plain(other.evidence)}
                for words, other in self.beside.items()
            },
            "regime": {name: plain(value) for name, value in self.regime.items()},
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Judgement | None":
        """The judgement that `as_dict` wrote, with the word that today's rules give its evidence.

        None if the ledger has no such claim, or its predicate or regime can't use that evidence:
        then the claim is judged otherwise now, and the record doesn't answer it.
        """
        claim = claims.ledger().get(kept["claim"])
        if claim is None or kept["predicate"] != str(claim.predicate):
            return None
        try:
            return cls._from(claim, kept)
        except (TypeError, ValueError, AttributeError, KeyError):  # anybody may have written it
            return None

    @classmethod
    def _from(cls, claim: Claim, kept: Mapping[str, Any]) -> "Judgement | None":
        note, evidence = kept["note"], _restored(kept["evidence"])
        gone = next((c for c in claim.capabilities if c in claims.OUT_OF_REACH), None)
        if gone and kept["verdict"] != Verdict.NOT_TESTABLE:
            return set_aside(claim, gone, claims.OUT_OF_REACH[gone])
        if kept["verdict"] == Verdict.NOT_TESTABLE:
            found = set_aside(claim, kept["capability"], note)
            if evidence is not None:
                found = replace(judge(claim, evidence, note), capability=kept["capability"])
            found = replace(found, verdict=Verdict.NOT_TESTABLE, reason=kept.get("reason", ""))
        elif set(claim.regimes) - set(kept.get("regime", ())):
            return None
        else:
            regime = {name: _restored(value) for name, value in kept.get("regime", {}).items()}
            found = _despite(judge(claim, evidence, note), regime)
        if found.reason and note.startswith(found.reason):  # up to format 2 they were one text
            note = note.removeprefix(found.reason).removeprefix("; ")
        return cls(
            claim,
            found.verdict,
            found.evidence,
            note,
            found.capability,
            found.reason,
            {
                words: cls(claim, Verdict(other["verdict"]), _restored(other["evidence"]))
                for words, other in kept.get("beside", {}).items()
            },
            {name: _restored(value) for name, value in kept.get("regime", {}).items()},
        )


def word(kept: Mapping[str, Any]) -> str:
    """The verdict that today's rules give to what a record kept; its own where they don't apply."""
    known = Judgement.from_dict(kept)
    return str(known.verdict) if known else str(kept["verdict"])


def _restored(evidence: Any) -> Any:
    """The inverse of `plain`; numbers that JSON can't hold are kept as texts."""
    if not isinstance(evidence, Mapping):
        return evidence
    if {"estimate", "low", "high"} <= set(evidence):
        ends = {name: float(evidence[name]) for name in ("estimate", "low", "high")}
        return Interval(**{**evidence, **ends})
    if {"value", "essential"} <= set(evidence):
        return Part(_restored(evidence["value"]), evidence["essential"], evidence["opposite"])
    return {name: _restored(value) for name, value in evidence.items()}


def plain(evidence: Any) -> Any:
    if isinstance(evidence, Interval):
        kept = ("estimate", "low", "high", "n", "confidence", "method")
        return {name: getattr(evidence, name) for name in kept}
    if isinstance(evidence, Part):
        return {
            "value": plain(evidence.value),
            "essential": evidence.essential,
            "opposite": evidence.opposite,
        }
    if isinstance(evidence, Mapping):
        return {name: plain(value) for name, value in evidence.items()}
    return evidence


def _interval(evidence: Any, claim: Claim) -> Interval:
    """The evidence as an interval. TypeError: the chapter gave what the predicate can't use."""
    if isinstance(evidence, Interval):
        found = evidence
    elif isinstance(evidence, (bool, str)) or not hasattr(evidence, "__float__"):
        raise TypeError(
            f"{claim.id}: predicate {claim.predicate!r} needs an interval or a number, not"
            f" {evidence!r}"
        )
    elif math.isnan(float(evidence)):  # nothing could be measured: no pairs, no verdict
        found = statistics.nothing()
    else:
        found = statistics.exact(float(evidence))
    if found.simulated and claim.basis is not Basis.SIMULATED:
        raise TypeError(
            f"{claim.id}: a simulation decides nothing about a claim whose basis is"
            f" {claim.basis!r}. Give it `beside`."
        )
    return found


def _truth(value: Any, claim: Claim) -> bool | None:
    """Yes, no or unresolved; numpy's truth values too, but never 0, "" or an interval."""
    if value is not None and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(
            f"{claim.id}: predicate {claim.predicate!r} needs True, False or None (unresolved), not"
            f" {value!r}"
        )
    return None if value is None else bool(value)


# ---- the rules

Word = tuple[Verdict, str]
"""A verdict and what the predicate notes about it."""


def _too_few(found: Interval) -> str:
    if found.disturbed:
        return "what was measured was disturbed"
    return "" if found.enough else f"only {found.n} of at least {statistics.ENOUGH} pairs"


def reached(claim: Claim, size: Size) -> Size:
    """What counts as the printed size of a claim: the size itself, a point with its tolerance."""
    if size.low < size.high or claim.predicate not in claims.WITH_TOLERANCE:
        return size
    reach = claim.tolerance * abs(size.low - (claim.predicate is Predicate.RATIO))
    return Size(size.low - reach, size.high + reach)


def _ratio(claim: Claim, found: Interval, size: Size | None) -> Word:
    inverted = size is not None and size.high < 1
    x = found.inverse() if inverted else found
    band = None
    if size is not None:
        band = reached(claim, size.inverse() if inverted else size)
    some = 1 + claim.margin
    if statistics.within(x, claim.margin):
        return Verdict.GONE, ""
    if x.high < 1 / some:
        return Verdict.REVERSED, ""
    if x.low > some:
        if band and x.low > band.high:
            return Verdict.STRONGER, ""
        return (Verdict.WEAKER if band and x.high < band.low else Verdict.HOLDS), ""
    none = "the interval includes effects too small to be of interest"
    if band and x.high < band.low:
        return Verdict.NOT_REPRODUCED, f"{none} and not the printed one"
    return Verdict.INCONCLUSIVE, f"{none}{' and the printed one' if band else ''}"


def _between(claim: Claim, found: Interval, size: Size | None) -> Word:
    assert size is not None  # held when the ledger is read
    band = reached(claim, size)
    if band.low <= found.low and found.high <= band.high:
        return Verdict.HOLDS, ""
    if found.high < band.low or found.low > band.high:
        return Verdict.GONE, f"it is {'less' if found.high < band.low else 'more'} than printed"
    return Verdict.INCONCLUSIVE, "an end of what is claimed lies inside the interval"


def _bound(claim: Claim, found: Interval, size: Size | None) -> Word:
    assert size is not None
    low, high, bound = found.low, found.high, size.low
    if claim.predicate is Predicate.AT_LEAST:
        low, high, bound = -high, -low, -bound
    if high <= bound:
        return Verdict.HOLDS, ""
    if low > bound:
        return Verdict.GONE, ""
    return Verdict.INCONCLUSIVE, "the bound lies inside the interval"


def _equals(claim: Claim, found: Interval, size: Size | None) -> Word:
    assert size is not None
    if not found.exact:
        raise TypeError(f"{claim.id}: predicate 'equals' is for exact facts, not for {found}")
    same = math.isclose(found.estimate, size.low, rel_tol=1e-9)
    return (Verdict.HOLDS if same else Verdict.GONE), ""


_NUMBER: Mapping[Predicate, Callable[[Claim, Interval, Size | None], Word]] = {
    Predicate.RATIO: _ratio,
    Predicate.DIRECTION: _ratio,
    Predicate.BETWEEN: _between,
    Predicate.AT_MOST: _bound,
    Predicate.AT_LEAST: _bound,
    Predicate.EQUALS: _equals,
}


def of_part(claim: Claim, name: str, found: Interval) -> Word:
    """The word of one measured number of a claim; `name` is that of its part, "" of an only one."""
    if few := _too_few(found):
        return Verdict.INCONCLUSIVE, few
    size = claim.sizes.get(name, claim.sizes.get(""))
    return _NUMBER[_predicate(claim)](claim, found, size)


def _numbers(claim: Claim, given: Any) -> tuple[Verdict, Evidence, str]:
    if not isinstance(given, Mapping):
        if set(claim.sizes) - {""}:
            raise TypeError(f"{claim.id} prints several sizes: {', '.join(claim.sizes)}")
        found = _interval(given, claim)
        verdict, reason = of_part(claim, "", found)
        return verdict, found, reason
    parts = {str(name): _part(value, claim) for name, value in given.items()}
    named = set(claim.sizes) - {""}
    if not any(part.essential for part in parts.values()) or (named and named - set(parts)):
        wanted = ", ".join(sorted(named)) or "at least one that is essential"
        raise TypeError(f"{claim.id}: of its parts ({wanted}) the evidence has {list(parts)}")
    words = {
        name: of_part(claim, name, part.value)
        for name, part in parts.items()
        if isinstance(part.value, Interval)
    }
    verdict = combined(words[name][0] for name, part in parts.items() if part.essential)
    told = "; ".join(
        f"{name}: {own}{f' ({why})' if why else ''}" for name, (own, why) in words.items()
    )
    return verdict, parts, told if len({own for own, _ in words.values()}) > 1 else ""


def _part(value: Any, claim: Claim) -> Part:
    if isinstance(value, Part):
        return Part(_interval(value.value, claim), value.essential)
    return Part(_interval(value, claim))


RANK = {
    Verdict.REVERSED: 0,
    Verdict.GONE: 1,
    Verdict.NOT_REPRODUCED: 2,
    Verdict.WEAKER: 3,
    Verdict.HOLDS: 4,
    Verdict.STRONGER: 5,
}


def combined(words: Iterable[Verdict]) -> Verdict:
    """The word of a claim with several essential parts; see the module's docstring."""
    found = set(words)
    if len(found) == 1:
        return found.pop()
    if Verdict.INCONCLUSIVE in found:
        return Verdict.INCONCLUSIVE
    ranks = {RANK[word] for word in found}
    if min(ranks) >= RANK[Verdict.HOLDS]:
        return Verdict.HOLDS
    if max(ranks) >= RANK[Verdict.WEAKER]:
        return Verdict.WEAKER
    return max(found, key=RANK.__getitem__)


def _facts(claim: Claim, given: Any) -> tuple[Verdict, Evidence, str]:
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            f"{claim.id}: predicate 'facts' needs a mapping from statements to True, False or None"
            f" (unresolved), not {given!r}"
        )
    parts = {
        str(name): Part(_truth(value.value, claim), value.essential, _truth(value.opposite, claim))
        if isinstance(value, Part)
        else Part(_truth(value, claim))
        for name, value in given.items()
    }
    essential = [part for part in parts.values() if part.essential]
    if not essential:
        raise TypeError(f"{claim.id}: at least one fact must be essential")
    values = {part.value for part in essential}
    if None in values:
        return Verdict.INCONCLUSIVE, parts, "an essential fact is unresolved"
    if values == {False}:
        shown = all(part.opposite for part in essential)
        return (Verdict.REVERSED if shown else Verdict.GONE), parts, ""
    return (Verdict.HOLDS if values == {True} else Verdict.WEAKER), parts, ""


def _bug(claim: Claim, given: Any) -> tuple[Verdict, Evidence, str]:
    there = _truth(given, claim)
    if there is None:
        raise TypeError(f"{claim.id}: a bug is there or it isn't")
    return (Verdict.STILL_THERE if there else Verdict.FIXED), there, ""


def _predicate(claim: Claim) -> Predicate:
    if claim.predicate is None:
        raise BookError(
            f"The ledger declares no predicate for {claim.id}, so nothing can judge it. Fill the"
            f" column in {claims.LEDGER.name}."
        )
    return claim.predicate


OPINION = "a question that an experiment decides"
"""What an opinion lacks, in place of a capability."""


def judge(claim: Claim, evidence: Any, note: str = "") -> Judgement:
    """Apply the claim's predicate to the evidence (see the module's docstring for both).

    An opinion is not testable, whatever the evidence, which is kept. BookError when the ledger
    declares no predicate for the claim; TypeError when the evidence isn't what it takes.
    """
    predicate = _predicate(claim)
    decide = {Predicate.FACTS: _facts, Predicate.BUG: _bug}.get(predicate, _numbers)
    verdict, kept, reason = decide(claim, evidence)
    if claim.basis is Basis.OPINION:
        why = "it is an opinion; what was measured stands beside it"
        return Judgement(claim, Verdict.NOT_TESTABLE, kept, note, OPINION, why)
    return Judgement(claim, verdict, kept, note, "", reason)


def set_aside(claim: Claim, capability: str, reason: str) -> Judgement:
    """The claim can't be tested here: `capability` is missing, `reason` says it in a sentence."""
    return Judgement(claim, Verdict.NOT_TESTABLE, None, reason, capability)


DESPITE = "what all variants do alike draws the ratio to one, and can't turn it over or enlarge it"
"""Why a ratio is judged although most of its time is something else."""


def despite_dilution(claim: Claim, evidence: Evidence) -> bool:
    """Whether every essential ratio says what a dilution of the printed effect can't.

    Undiluted it lies farther from one on the same side. So it is told from the printed effect if it
    is surely on the other side of one, or surely more of the claimed direction than printed.
    """
    if claim.predicate is not Predicate.RATIO:
        return False
    many = evidence if isinstance(evidence, Mapping) else {"": Part(_interval(evidence, claim))}

    def told(name: str, value: Any) -> bool:
        size = claim.sizes.get(name, claim.sizes.get(""))
        if size is None or not value.enough:
            return False
        x = value.inverse() if size.high < 1 else value
        band = reached(claim, size.inverse() if size.high < 1 else size)
        return bool(x.high < 1 or x.low > band.high)

    return all(told(name, part.value) for name, part in many.items() if part.essential)


class Outside(NamedTuple):
    """A regime that isn't shown to be reached: its name, whether that is open, and why."""

    name: str
    open: bool
    why: str

    @property
    def beside(self) -> str:
        """What the verdict is called that the claim would have had."""
        return "if this is that regime" if self.open else "outside of that regime"


def out_of_regime(
    claim: Claim, measured: Mapping[str, Interval], evidence: Evidence = None
) -> Outside | None:
    """A regime of the claim that isn't shown to be reached, and why; None if all are.

    The first that isn't reached, before one of which that is open. One that only dilutes doesn't
    matter to `evidence` that stands despite that. BookError when one of them wasn't measured.
    """
    unmet = []
    for name in claim.regimes:
        if name not in measured:
            raise BookError(
                f"Claim {claim.id} speaks of the regime {name!r}, and nobody measured whether this"
                " run is in it. Give `regime` where the claim is judged."
            )
        wanted, found = claims.regime(name), measured[name]
        inside = wanted.at_least <= found.low and found.high <= wanted.at_most
        stands = wanted.dilutes and evidence is not None and despite_dilution(claim, evidence)
        if not (found.enough and inside or stands):
            unmet.append(_outside(name, found))
    return min(unmet, key=lambda one: one.open, default=None)


def _outside(name: str, found: Interval) -> Outside:
    wanted = claims.regime(name)
    ends = "" if found.exact else f" [{found.low:.3g}, {found.high:.3g}]"
    open_ = wanted.at_least <= found.estimate <= wanted.at_most
    said = "whether this is its regime is open" if open_ else "it speaks of another regime"
    takes = ", and more blocks would tell" if open_ else f", which takes {wanted.reach}"
    return Outside(
        name,
        open_,
        f"{said}: the {wanted.quantity} is {found.estimate:.3g}{ends} here and should be"
        f" {wanted.bounds}{takes}",
    )


def _despite(found: Judgement, measured: Mapping[str, Interval]) -> Judgement:
    """The same judgement, whose reason says so where it was judged in spite of its regime."""
    if found.verdict is Verdict.NOT_TESTABLE or not out_of_regime(found.claim, measured):
        return found
    return replace(found, reason="; ".join(filter(None, (found.reason, DESPITE))))


class Judge:
    """Judges the claims of one chapter and keeps account of them.

    `run` (anything with `add_verdict`) gets each judgement; `can` tells whether a capability in
    the ledger's `needs` is there, and a claim that needs a missing one is set aside by itself.
    `elsewhere` says of what is missing in which profile it would be there, "" if in none.
    """

    def __init__(
        self,
        chapter: str,
        run: Any = None,
        can: Callable[[str], bool] | None = None,
        file: Path = claims.LEDGER,
        elsewhere: Callable[[str], str] = lambda capability: "",
    ):
        """`file` is the ledger that has the chapter's claims."""
        self.chapter = chapter
        known = claims.ledger(file).values()
        self._claims = {claim.id: claim for claim in known if claim.chapter == chapter}
        if not self._claims:
            chapters = sorted({claim.chapter for claim in known})
            raise BookError(
                f"The ledger has no claims of chapter {chapter!r}. Chapters: {', '.join(chapters)}."
            )
        self._run, self._can, self._elsewhere = run, can, elsewhere
        self._judgements: list[Judgement] = []

    def _claim(self, id: str) -> Claim:
        if id not in self._claims:
            where = claims.ledger().get(id)
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

    def judge(
        self,
        id: str,
        evidence: Any,
        note: str = "",
        *,
        beside: Mapping[str, Any] | None = None,
        regime: Mapping[str, Interval | float] | None = None,
    ) -> Judgement:
        """Judge a claim of this chapter by its declared predicate; see `judge`.

        `beside` is other evidence, by the words that tell it apart, judged by the same predicate
        and deciding nothing. `regime` is what was measured of the claim's regimes, by name.
        """
        claim = self._claim(id)
        can = self._can
        missing = [capability for capability in claim.capabilities if can and not can(capability)]
        if missing:
            why = f"it needs {missing[0]}, which is missing here"
            return self._keep(set_aside(claim, missing[0], why))
        others = {words: _beside(claim, given) for words, given in (beside or {}).items()}
        measured = {
            name: value if isinstance(value, Interval) else statistics.exact(float(value))
            for name, value in (regime or {}).items()
        }
        found = judge(claim, evidence, note)
        if outside := out_of_regime(claim, measured, found.evidence):
            others = {outside.beside: found} | others
            why = self._why(outside.name, outside.why)
            found = Judgement(claim, Verdict.NOT_TESTABLE, None, note, outside.name, why)
        found = _despite(found, measured)
        kept = (found.claim, found.verdict, found.evidence, found.note, found.capability)
        return self._keep(Judgement(*kept, found.reason, others, measured))

    def set_aside(
        self, id: str, reason: CannotMeasure, *, beside: Mapping[str, Any] | None = None
    ) -> Judgement:
        """Record that a claim of this chapter can't be tested here; `beside` as in `judge`."""
        claim = self._claim(id)
        others = {words: _beside(claim, given) for words, given in (beside or {}).items()}
        found = set_aside(claim, reason.capability, self._why(reason.capability, str(reason)))
        return self._keep(replace(found, beside=others))

    def _why(self, capability: str, reason: str) -> str:
        return "; ".join(filter(None, (self._elsewhere(capability), reason)))

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
        estimate, low, high, n (NaN without an interval), basis, verdict, note.
        """
        last = {judgement.claim.id: judgement for judgement in self._judgements}
        columns = ["claim", "headline", "section", "printed", "quantity"]
        columns += ["estimate", "low", "high", "n", "basis", "verdict", "note"]
        rows = {}
        for id in self._claims:
            if id in last:
                claim, evidence = last[id].claim, last[id].evidence
                rows[id] = [
                    *(claim.claim, claim.headline, claim.section, claim.published_value),
                    claim.quantity,
                    *(getattr(evidence, x, math.nan) for x in ("estimate", "low", "high", "n")),
                    *(str(claim.basis), str(last[id].verdict), last[id].remarks),
                ]
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


def _beside(claim: Claim, evidence: Any) -> Judgement:
    """Judged as if it could decide: a simulation as one."""
    simulated = claim.model_copy(update={"basis": Basis.SIMULATED})
    found = judge(simulated if _is_simulated(evidence) else claim, evidence)
    return Judgement(claim, found.verdict, found.evidence, reason=found.reason)


def _is_simulated(evidence: Any) -> bool:
    many = evidence.values() if isinstance(evidence, Mapping) else [evidence]
    values = [one.value if isinstance(one, Part) else one for one in many]
    return any(isinstance(value, Interval) and value.simulated for value in values)
