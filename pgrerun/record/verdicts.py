"""The words that evidence earns claims, one rule for each predicate, and a chapter's account.

`claims` says what each claim's word rests on, `statistics` makes intervals, `narrate` sentences. A
chapter's `Judge` sees that every claim of the chapter gets exactly one verdict.

Words. A printed size E is one number, or a range [E1, E2]. A single number counts as reached within
the claim's tolerance: of a ratio a share of the effect, so with a tenth "twice as fast" is 1.9 to
2.1, of another number a share of the number. Let [low, high] be the interval measured, in the
claimed direction (a printed effect below 1 turns both over), and m the margin. The first line that
fits decides:

    ratio       the interval of a ratio, or an exact number, against a printed effect
                1. no effect       it lies inside [1/(1+m), 1+m]: no effect of interest
                2. reversed        high < 1/(1+m): surely the other direction
                3. stronger        low > 1+m and low > E: surely more of the claimed direction
                4. weaker          low > 1+m and high < E: the claimed direction, surely less of it
                5. holds           low > 1+m: the claimed direction and, as 3 and 4 don't fit, E
                6. not reproduced  high < E: not the printed effect, perhaps none of interest
                7. inconclusive    neither no effect nor the printed one is excluded
    direction   likewise; there is no E: lines 1, 2, holds for low > 1+m, else inconclusive
    between     a number against a printed size: holds inside of it, different now where the
                interval lies wholly outside, else inconclusive
    at most     a bound that the document itself states: holds for high <= E, not so for low > E,
                else inconclusive: a bound is a statement, which is so or isn't, and a number that
                breaks it may be any. A printed point value is no bound
    at least    the mirror image
    equals      an exact number: holds if it equals E, else different now
    facts       statements, each yes, no or unresolved (None), essential or supporting. All
                essential ones yes: holds; all no: not so, or reversed if each declares an opposite
                and it is shown; one unresolved: inconclusive; else partly. A supporting fact is
                told and never changes the word
    bug         whether it is still there: still there or fixed

A claim that prints several sizes, or whose evidence comes in several parts, has a word for each;
its own is that of the essential parts. Where they differ: inconclusive as long as one is, partly
where some of them reach at least the claimed direction, else the one nearest to the claim.

Whatever the predicate, an interval from too few pairs (see `statistics.ENOUGH`) decides nothing,
nor does an effect that is smaller than what the run's A/A comparison shows, but for a printed one
that is larger than that and excluded: it is not reproduced. What is timed is inconclusive at
profile ci, whatever its interval: that profile is for counts. A claim whose experiment can't run
here, or whose regime isn't reached, is not tested here; so is one that is only an opinion.
"""

import hashlib
import json
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.record import claims, statistics
from pgrerun.record.claims import Basis, Claim, Predicate, Size
from pgrerun.record.statistics import Interval, NoiseFloor


class Verdict(StrEnum):
    """What evidence makes of a claim; the module's docstring says when."""

    HOLDS = "holds"
    STRONGER = "stronger"
    WEAKER = "weaker"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"
    NO_EFFECT = "no effect"
    NOT_SO = "not so"
    DIFFERENT_NOW = "different now"
    REVERSED = "reversed"
    STILL_THERE = "still there"
    FIXED = "fixed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested here"


_SOME = {Verdict.HOLDS, Verdict.PARTLY, Verdict.INCONCLUSIVE}
_DIRECTION = _SOME | {Verdict.NO_EFFECT, Verdict.REVERSED}
_BOUND = _SOME | {Verdict.NOT_SO}
VERDICTS: Mapping[Predicate, frozenset[Verdict]] = {
    predicate: frozenset(words) | {Verdict.NOT_TESTED}
    for predicate, words in {
        Predicate.RATIO: _DIRECTION | {Verdict.STRONGER, Verdict.WEAKER, Verdict.NOT_REPRODUCED},
        Predicate.DIRECTION: _DIRECTION,
        Predicate.BETWEEN: _SOME | {Verdict.DIFFERENT_NOW},
        Predicate.AT_MOST: _BOUND,
        Predicate.AT_LEAST: _BOUND,
        Predicate.EQUALS: {Verdict.HOLDS, Verdict.PARTLY, Verdict.DIFFERENT_NOW},
        Predicate.FACTS: _BOUND | {Verdict.REVERSED},
        Predicate.BUG: {Verdict.STILL_THERE, Verdict.FIXED},
    }.items()
}
"""The verdicts that each predicate can give."""

_FORMERLY: Mapping[str, Sequence[Verdict]] = {
    "not testable here": [Verdict.NOT_TESTED],
    "weaker": [Verdict.WEAKER, Verdict.PARTLY],
    "gone": [Verdict.NO_EFFECT, Verdict.DIFFERENT_NOW, Verdict.NOT_SO],
}


def today(word: str, predicate: str | None) -> str:
    """What a record's word for a claim with this predicate is called today.

    "Gone" was no effect, another number or a statement that isn't so, and "weaker" was also what
    holds partly. A word that never was stays what it is: anybody may have written a record.
    """
    possible = VERDICTS.get(predicate, frozenset())  # type: ignore[call-overload]
    return next((str(new) for new in _FORMERLY.get(word, ()) if new in possible), word)


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


def greater(x: Interval, than: float) -> bool | None:
    """Whether a measured number is greater: yes, no, or None where the interval can't tell."""
    if not x.enough or x.low <= than < x.high:
        return None
    return x.low > than


def less(x: Interval, than: float) -> bool | None:
    """The mirror image of `greater`."""
    if not x.enough or x.low < than <= x.high:
        return None
    return x.high < than


def about(x: Interval, value: float, share: float) -> bool | None:
    """Whether a positive number is within a share of `value`, both ways; None if it can't tell."""
    low, high = value / (1 + share), value * (1 + share)
    if x.enough and low <= x.low and x.high <= high:
        return True
    return False if x.enough and (x.high < low or x.low > high) else None


def every(facts: Iterable[bool | None]) -> bool | None:
    """Whether all are so: one no is no, else one unresolved is unresolved."""
    known = list(facts)
    return False if False in known else None if None in known else True


def some(facts: Iterable[bool | None]) -> bool | None:
    """Whether one is so: one yes is yes, else one unresolved is unresolved."""
    known = list(facts)
    return True if True in known else None if None in known else False


def alike(facts: Iterable[bool | None]) -> bool | None:
    """What all are, if they are alike: one that differs from another leaves it unresolved."""
    known = set(facts)
    return known.pop() if len(known) == 1 else None


@dataclass(frozen=True)
class Judgement:
    """A claim, its verdict and what it rests on.

    `evidence` is as given, numbers as intervals; None where nothing could be tested, and
    `capability` then names what is missing. `reason` is what the predicate says of its own
    decision, `note` what the chapter adds. `beside` holds other judgements by the words that tell
    them apart ("at 100,000 tuples", "in the simulation"), which decide nothing. `regime` is what
    was measured of the claim's regimes, `noise` the ratio of the A/A comparison that it was held
    against. `rule` is `rule_digest` as of when its rows were measured, "" where nobody kept it.
    """

    claim: Claim
    verdict: Verdict
    evidence: Evidence
    note: str = ""
    capability: str = ""
    reason: str = ""
    beside: Mapping[str, "Judgement"] = field(default_factory=dict)
    regime: Mapping[str, Interval] = field(default_factory=dict)
    noise: Interval | None = None
    rule: str = ""

    @property
    def stale_rule(self) -> bool:
        """Whether its rule was changed after its rows were measured: see `STALE`."""
        return self.rule not in ("", rule_digest(self.claim, rule_text(self.claim)))

    @property
    def untested(self) -> str:
        """For which of the five reasons it is not tested, "" for another (see `claims.reason`)."""
        if self.verdict is not Verdict.NOT_TESTED:
            return ""
        if self.claim.basis is Basis.OPINION:
            return str(claims.Reason.OPINION)
        lacking = [self.capability]
        if self.capability in claims.OUT_OF_REACH:  # where that is had, the regime is asked for
            lacking += self.claim.regimes
        return next(filter(None, map(claims.reason, lacking)), "")

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
            "noise": plain(self.noise),
            "rule": self.rule,
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
        aa = _restored(kept.get("noise"))
        noise = NoiseFloor(aa) if aa else None
        # a run that had the builds has judged it
        lacking = (c for c in claim.capabilities if c in claims.OUT_OF_REACH)
        gone = next((c for c in lacking if not claims.OUT_OF_REACH[c].builds), None)
        aside = today(kept["verdict"], claim.predicate) == Verdict.NOT_TESTED
        if gone and not aside:
            return set_aside(claim, gone, str(claims.OUT_OF_REACH[gone]))
        if aside:
            found = set_aside(claim, kept["capability"], note)
            if evidence is not None:
                found = replace(judge(claim, evidence, note), capability=kept["capability"])
            found = replace(found, verdict=Verdict.NOT_TESTED, reason=kept.get("reason", ""))
        elif set(claim.regimes) - set(kept.get("regime", ())):
            return None
        else:
            found = judge(claim, evidence, note, noise)
            if kept.get("reason") == TOO_SHORT:
                found = _undecided(found)
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
                words: cls(
                    claim,
                    Verdict(today(other["verdict"], claim.predicate)),
                    _restored(other["evidence"]),
                )
                for words, other in kept.get("beside", {}).items()
            },
            {name: _restored(value) for name, value in kept.get("regime", {}).items()},
            aa,
            kept.get("rule", ""),
        )


STALE = "rule changed after measuring"
"""What stands beside the word of a claim whose rule is another one than its rows were measured for.

It is judged by today's rule, and marked until there are new rows, with new seeds.
"""
_RULE = (
    "predicate expression margin tolerance basis regime needs quantity relative_to as_share unit"
)


def rule_digest(claim: Claim, rule_text: str) -> str:
    """What tells a claim's rule from any other: of the ledger's columns that judge, and its text.

    `rule_text` is what a chapter's expressions and query say, see `rule_text`.
    """
    columns = [str(getattr(claim, name) or "") for name in _RULE.split()]
    return hashlib.sha256(json.dumps([*columns, rule_text]).encode()).hexdigest()[:16]


def rule_text(claim: Claim) -> str:
    """By what the claim's chapter judges it today: its query, and what `evidence.toml` has of it.

    But for notes and what stands beside, which decide nothing. "" where the chapter has neither.
    """
    return _rule_texts(claim.chapter).get(claim.id, "")


@cache
def _rule_texts(chapter: str) -> Mapping[str, str]:
    folder = Path(__file__).parents[1] / "chapters" / chapter
    file = folder / "evidence.toml"
    found = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
    told = {
        claim: json.dumps({k: v for k, v in rule.items() if k not in ("note", "beside")})
        for claim, rule in found.items()
    }
    for query in sorted(folder.glob("claims/*.sql")):
        told[query.stem] = told.get(query.stem, "") + query.read_text("utf-8").strip()
    return told


def word(kept: Mapping[str, Any]) -> str:
    """The verdict that today's rules give to what a record kept; its own where they don't apply."""
    known = Judgement.from_dict(kept)
    return str(known.verdict) if known else today(kept["verdict"], kept.get("predicate"))


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
    if isinstance(evidence, Interval | Part):
        return asdict(evidence)
    if isinstance(evidence, Mapping):
        return {name: plain(value) for name, value in evidence.items()}
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
    if math.isnan(float(evidence)):  # nothing could be measured: no pairs, no verdict
        return statistics.nothing()
    return statistics.exact(float(evidence))


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


def reached(claim: Claim, size: Size) -> Size:
    """What counts as the printed size of a claim: the size itself, a point with its tolerance."""
    if size.low < size.high or claim.predicate not in claims.WITH_TOLERANCE:
        return size
    reach = claim.tolerance * abs(size.low - (claim.predicate is Predicate.RATIO))
    return Size(size.low - reach, size.high + reach)


def _ratio(claim: Claim, found: Interval, size: Size | None) -> Word:
    inverted = size is not None and size.high < 1
    x = found.inverse() if inverted else found
    band = reached(claim, size.inverse() if inverted else size) if size else None
    some = 1 + claim.margin
    if statistics.within(x, claim.margin):
        return Verdict.NO_EFFECT, ""
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


def _between(claim: Claim, found: Interval, size: Size) -> Word:
    band = reached(claim, size)
    if band.low <= found.low and found.high <= band.high:
        return Verdict.HOLDS, ""
    if found.high < band.low or found.low > band.high:
        return (
            Verdict.DIFFERENT_NOW,
            f"it is {'less' if found.high < band.low else 'more'} than printed",
        )
    return Verdict.INCONCLUSIVE, "an end of what is claimed lies inside the interval"


def _bound(claim: Claim, found: Interval, size: Size) -> Word:
    low, high, bound = found.low, found.high, size.low
    if claim.predicate is Predicate.AT_LEAST:
        low, high, bound = -high, -low, -bound
    if high <= bound:
        return Verdict.HOLDS, ""
    if low > bound:
        return Verdict.NOT_SO, ""
    return Verdict.INCONCLUSIVE, "the bound lies inside the interval"


def _equals(claim: Claim, found: Interval, size: Size) -> Word:
    if not found.exact:
        raise TypeError(f"{claim.id}: predicate 'equals' is for exact facts, not for {found}")
    same = math.isclose(found.estimate, size.low, rel_tol=1e-9)
    return (Verdict.HOLDS if same else Verdict.DIFFERENT_NOW), ""


_SIZED: Mapping[Predicate, Callable[[Claim, Interval, Size], Word]] = {
    Predicate.BETWEEN: _between,
    Predicate.AT_MOST: _bound,
    Predicate.AT_LEAST: _bound,
    Predicate.EQUALS: _equals,
}


def _of_part(claim: Claim, name: str, found: Interval, noise: NoiseFloor | None) -> Word:
    """The word of one measured number of a claim; `name` is that of its part, "" of an only one."""
    if not found.enough:
        few = f"only {found.n} of at least {statistics.ENOUGH} pairs"
        return Verdict.INCONCLUSIVE, "what was measured was disturbed" if found.disturbed else few
    size = claim.sizes.get(name, claim.sizes.get(""))
    if claim.predicate in claims.WITH_MARGIN:
        word, reason = _ratio(claim, found, size)
    elif size is None:  # an older record's, of a part that decided then
        raise TypeError(f"{claim.id} prints no size of {name!r}")
    else:
        word, reason = _SIZED[_predicate(claim)](claim, found, size)
    timed = claim.predicate in claims.WITH_MARGIN and claim.basis in (Basis.TIMED, Basis.MACHINE)
    if noise is None or not timed or found.exact:
        return word, reason
    # a floor within the margin hides only what is of no interest anyway
    if noise.floor <= 1 + claim.margin or not noise.hides(found.estimate):
        return word, reason
    hidden = (
        "the effect is smaller than what the same work differs by in this run's A/A comparison (up"
        f" to {noise.reach})"
    )
    less = (Verdict.NO_EFFECT, Verdict.REVERSED, Verdict.WEAKER, Verdict.NOT_REPRODUCED)
    if word in less and size and not any(map(noise.hides, size)):
        return Verdict.NOT_REPRODUCED, f"{hidden}; the printed one, which is larger, isn't there"
    return Verdict.INCONCLUSIVE, hidden


def _numbers(claim: Claim, given: Any, noise: NoiseFloor | None) -> tuple[Verdict, Evidence, str]:
    if not isinstance(given, Mapping):
        if set(claim.sizes) - {""}:
            raise TypeError(f"{claim.id} prints several sizes: {', '.join(claim.sizes)}")
        found = _interval(given, claim)
        verdict, reason = _of_part(claim, "", found, noise)
        return verdict, found, reason
    parts = {
        name: Part(_interval(part.value, claim), part.essential)
        for name, part in _parts(given).items()
    }
    named = set(claim.sizes) - {""}
    if not any(part.essential for part in parts.values()) or (named and named - set(parts)):
        wanted = ", ".join(sorted(named)) or "at least one that is essential"
        raise TypeError(f"{claim.id}: of its parts ({wanted}) the evidence has {list(parts)}")
    words = {
        name: _of_part(claim, name, part.value, noise)
        for name, part in parts.items()
        if isinstance(part.value, Interval)
    }
    verdict = combined(words[name][0] for name, part in parts.items() if part.essential)
    told = "; ".join(
        f"{name}: {own}{f' ({why})' if why else ''}" for name, (own, why) in words.items()
    )
    return verdict, parts, told if len({own for own, _ in words.values()}) > 1 else ""


def _parts(given: Mapping[str, Any]) -> dict[str, Part]:
    return {str(n): one if isinstance(one, Part) else Part(one) for n, one in given.items()}


RANK = {
    Verdict.REVERSED: 0,
    Verdict.NO_EFFECT: 1,
    Verdict.NOT_SO: 1,
    Verdict.DIFFERENT_NOW: 1,
    Verdict.NOT_REPRODUCED: 2,
    Verdict.WEAKER: 3,
    Verdict.PARTLY: 3,
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
    if max(RANK[word] for word in found) >= RANK[Verdict.WEAKER]:
        return Verdict.PARTLY
    return max(found, key=RANK.__getitem__)


def _facts(claim: Claim, given: Any) -> tuple[Verdict, Evidence, str]:
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            f"{claim.id}: predicate 'facts' needs a mapping from statements to True, False or None"
            f" (unresolved), not {given!r}"
        )
    parts = {
        name: Part(_truth(part.value, claim), part.essential, _truth(part.opposite, claim))
        for name, part in _parts(given).items()
    }
    essential = [part for part in parts.values() if part.essential]
    if not essential:
        raise TypeError(f"{claim.id}: at least one fact must be essential")
    values = {part.value for part in essential}
    if None in values:
        return Verdict.INCONCLUSIVE, parts, "an essential fact is unresolved"
    if values == {False}:
        shown = all(part.opposite for part in essential)
        return (Verdict.REVERSED if shown else Verdict.NOT_SO), parts, ""
    return (Verdict.HOLDS if values == {True} else Verdict.PARTLY), parts, ""


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


def judge(
    claim: Claim, evidence: Any, note: str = "", noise: NoiseFloor | None = None
) -> Judgement:
    """Apply the claim's predicate to the evidence (see the module's docstring for both).

    `noise` is what the run's A/A comparison says of such times. An opinion is not tested, whatever
    the evidence, which is kept. BookError when the ledger declares no predicate for the claim;
    TypeError when the evidence isn't what it takes.
    """
    match _predicate(claim):
        case Predicate.FACTS:
            verdict, kept, reason = _facts(claim, evidence)
        case Predicate.BUG:
            verdict, kept, reason = _bug(claim, evidence)
        case _:
            verdict, kept, reason = _numbers(claim, evidence, noise)
    rule, ratio = rule_digest(claim, rule_text(claim)), noise.ratio if noise else None
    if claim.basis is Basis.OPINION:
        verdict, reason = Verdict.NOT_TESTED, "what was measured stands beside it"
    capability = OPINION if claim.basis is Basis.OPINION else ""
    return Judgement(claim, verdict, kept, note, capability, reason, noise=ratio, rule=rule)


TOO_SHORT = "profile ci measures too shortly for a time to decide anything"
"""Why a claim that is timed is inconclusive at that profile."""


def _undecided(found: Judgement) -> Judgement:
    """The same evidence of a claim that is timed, of a run whose times decide nothing."""
    if found.claim.basis is not Basis.TIMED or found.verdict is Verdict.NOT_TESTED:
        return found
    return replace(found, verdict=Verdict.INCONCLUSIVE, reason=TOO_SHORT)


def set_aside(claim: Claim, capability: str, reason: str) -> Judgement:
    """The claim can't be tested here: `capability` is missing, `reason` says it in a sentence."""
    rule = rule_digest(claim, rule_text(claim))
    return Judgement(claim, Verdict.NOT_TESTED, None, reason, capability, rule=rule)


class Outside(NamedTuple):
    """A regime that isn't shown to be reached: its name, whether that is open, and why."""

    name: str
    open: bool
    why: str

    @property
    def beside(self) -> str:
        """What the verdict is called that the claim would have had."""
        return f"if this is “{self.name}”" if self.open else f"outside of “{self.name}”"


def out_of_regime(claim: Claim, measured: Mapping[str, Interval]) -> Outside | None:
    """A regime of the claim that isn't shown to be reached, and why; None if all are.

    The first that isn't reached, before one of which that is open. BookError when one of them
    wasn't measured.
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
        if not (found.enough and inside):
            unmet.append(_outside(name, found))
    return min(unmet, key=lambda one: one.open, default=None)


def _outside(name: str, found: Interval) -> Outside:
    wanted = claims.regime(name)
    ends = "" if found.exact else f" [{found.low:.3g}, {found.high:.3g}]"
    open_ = found.low <= wanted.at_most and found.high >= wanted.at_least
    said = "whether this is its regime is open" if open_ else "it speaks of another regime"
    more = ", and more blocks would tell (the parameter pairs)"
    takes = more if open_ else f", which takes {wanted.reach}"
    return Outside(
        name,
        open_,
        f"{said}: the {wanted.quantity} is {found.estimate:.3g}{ends} here and should be"
        f" {wanted.bounds}{takes}",
    )


class Judge:
    """Judges the claims of one chapter and keeps account of them.

    `run` (anything with `add_verdict`) gets each judgement. `elsewhere` says of what is missing in
    which profile it would be there, "" if in none.
    """

    def __init__(
        self,
        chapter: str,
        run: Any = None,
        file: Path = claims.LEDGER,
        elsewhere: Callable[[str], str] = lambda capability: "",
        rules: Mapping[str, str] | None = None,
        times_decide: bool = True,
    ):
        """`file` is the ledger that has the chapter's claims.

        `rules` are their digests as of when the rows were measured, if that was before; whoever
        measures may add to them. `times_decide` is whether what is timed was measured long enough.
        """
        self.chapter = chapter
        known = claims.ledger(file).values()
        self._claims = {claim.id: claim for claim in known if claim.chapter == chapter}
        if not self._claims:
            chapters = sorted({claim.chapter for claim in known})
            raise BookError(
                f"The ledger has no claims of chapter {chapter!r}. Chapters: {', '.join(chapters)}."
            )
        self._run, self._elsewhere = run, elsewhere
        self._rules = {} if rules is None else rules
        self._times_decide = times_decide
        self._judgements: list[Judgement] = []

    def claim(self, id: str) -> Claim:
        """The claim of this chapter; BookError for another's."""
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

    def _keep(self, found: Judgement, beside: Mapping[str, Any] | None) -> Judgement:
        others = {  # judged as if they could decide
            words: replace(judge(found.claim, given), capability="", rule="")
            for words, given in (beside or {}).items()
        }
        as_of = self._rules.get(found.claim.id, found.rule)
        judgement = replace(found, beside={**found.beside, **others}, rule=as_of)
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
        noise: NoiseFloor | None = None,
    ) -> Judgement:
        """Judge a claim of this chapter by its declared predicate; see `judge`.

        `beside` is other evidence, by the words that tell it apart, judged by the same predicate
        and deciding nothing. `regime` is what was measured of the claim's regimes, by name.
        """
        claim, measured = self.claim(id), _intervals(regime or {})
        found = judge(claim, evidence, note, noise)
        if not self._times_decide:
            found = _undecided(found)
        if outside := out_of_regime(claim, measured):
            other = {outside.beside: replace(found, noise=None, rule="")}
            found = replace(self._outside(claim, outside, note), noise=found.noise, beside=other)
        return self._keep(replace(found, regime=measured), beside)

    def without_evidence(
        self,
        id: str,
        regime: Mapping[str, Interval | float],
        note: str = "",
        *,
        beside: Mapping[str, Any] | None = None,
    ) -> Judgement | None:
        """Record that a claim has no evidence here, as it speaks of another machine or run.

        None where it doesn't: of its regimes those count that are in `regime`.
        """
        claim, measured = self.claim(id), _intervals(regime)
        known = claim.model_copy(update={"regime": " and ".join(measured)})
        if (outside := out_of_regime(known, measured)) is None:
            return None
        return self._keep(replace(self._outside(claim, outside, note), regime=measured), beside)

    def _outside(self, claim: Claim, outside: Outside, note: str) -> Judgement:
        why = self._why(outside.name, outside.why)
        return replace(set_aside(claim, outside.name, note), reason=why)

    def set_aside(
        self, id: str, reason: CannotMeasure, *, beside: Mapping[str, Any] | None = None
    ) -> Judgement:
        """Record that a claim of this chapter can't be tested here; `beside` as in `judge`."""
        why = self._why(reason.capability, str(reason))
        return self._keep(set_aside(self.claim(id), reason.capability, why), beside)

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


def _intervals(measured: Mapping[str, Interval | float]) -> dict[str, Interval]:
    return {
        name: value if isinstance(value, Interval) else statistics.exact(float(value))
        for name, value in measured.items()
    }
