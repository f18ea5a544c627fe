"""Sentences written from judgements and measured values, so that no number in prose is typed.

Every function returns a `Sentence`, a text that a notebook shows as Markdown. Verdicts come
from `verdicts` and intervals from `statistics`; this module only finds words, one wording for every
verdict that can occur. Pictures are drawn by `charts`.

Numbers carry the digits that their interval supports: the width's first two digits if it starts
with 1, 2 or 3, else its first one, four significant ones at most, and more where rounding would
hide which side of a printed number an interval ends on.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from pgrerun.errors import CannotMeasure
from pgrerun.record import claims, printed, statistics
from pgrerun.record.claims import BOUNDS, OWN, SCORED, Basis, Claim, Predicate, Size
from pgrerun.record.statistics import READINGS, Interval
from pgrerun.record.verdicts import STALE, Judgement, Part, Verdict, reached


class Sentence(str):
    """Prose that Jupyter shows as Markdown."""

    def _repr_markdown_(self) -> str:
        return str(self)


# ---- numbers

_DIGITS = 4  # significant ones of a number, and the most of one with an interval


def number(x: float, decimals: int | None = None) -> str:
    """A number for prose: four significant digits, or so many `decimals`; commas for thousands."""
    if math.isnan(x):
        return "no number"
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    if decimals is None:
        if x == int(x) and abs(x) < 1e15:
            return f"{int(x):,}"
        if x != 0 and not 1e-6 <= abs(x) < 1e15:
            return f"{x:.3e}"
        decimals = _most_decimals(x)
        text = f"{x:,.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = f"{round(x, decimals):,.{max(decimals, 0)}f}"
    return text.removeprefix("-") if not re.search("[1-9]", text) else text  # no "-0.00"


def _most_decimals(x: float) -> int:
    """Decimal places of a lone number that has `_DIGITS` significant digits, if they fit."""
    return max(0, _DIGITS - 1 - math.floor(math.log10(abs(x))))


def _decimals(x: Interval, against: Iterable[float] = ()) -> int | None:
    """Decimal places that the interval supports, and that keep its ends apart from others."""
    width = x.high - x.low
    if not math.isfinite(width) or width <= 0:
        return None
    place = math.floor(math.log10(width))
    decimals = -place + (1 if width / 10**place < 3.5 else 0)
    if most := max(abs(x.low), abs(x.high)):  # no more than a lone number has
        decimals = min(decimals, _most_decimals(most))
    least = decimals
    for end in (x.low, x.high):
        for other in against:
            while (
                end != other
                and round(end, decimals) == round(other, decimals)
                and decimals < least + 6
            ):
                decimals += 1
    return decimals


def _spaced(unit: str) -> str:
    return f" {unit}" if unit else ""


def interval(x: Interval | float, unit: str = "", against: Iterable[float] = ()) -> Sentence:
    """ "1.31 [1.29, 1.34] s": estimate and interval; an exact fact or a lone value has no brackets.

    `against` are numbers that the interval is compared with, whose side must stay visible.
    """
    if not isinstance(x, Interval):
        return Sentence(number(float(x)) + _spaced(unit))
    decimals = _decimals(x, against)
    if x.exact or x.low == x.high or not (math.isfinite(x.low) or math.isfinite(x.high)):
        return Sentence(number(x.estimate) + _spaced(unit))
    low, high = (number(end, decimals) for end in (x.low, x.high))
    return Sentence(f"{number(x.estimate, decimals)} [{low}, {high}]{_spaced(unit)}")


def _measured(x: Interval | float, unit: str = "", against: Iterable[float] = ()) -> str:
    """`interval` and, in parentheses, how sure it is."""
    if not isinstance(x, Interval):
        return interval(x, unit)
    if x.exact:
        return f"{interval(x, unit)} (exact)"
    if x.n == 1:
        return f"{number(x.estimate)}{_spaced(unit)} (measured once, so without an interval)"
    if x.method == READINGS:
        return f"{interval(x, unit, against)} ({READINGS})"
    return f"{interval(x, unit, against)} ({100 * x.confidence:g} % interval, n = {x.n})"


def _plural(noun: str) -> str:
    if re.search("[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search("(s|x|z|ch|sh)$", noun) else "s")


def lives(judged: int, changed: int, releases: Sequence[str], finished: str) -> Sentence:
    """How many of a chapter's claims have another verdict on another of these releases.

    `finished` is when the run ended that judged them, in ISO 8601.
    """
    where = (
        f"{count(len(releases), 'release')}, {releases[0]} to {releases[-1]}, by the chapter “Since"
        f" when?” in its run of {finished[:10]}"
    )
    if not judged:
        return Sentence(f"None of this chapter's claims is among those judged on {where}.")
    verdicts = count(changed, "verdict") if changed or judged > 1 else "its verdict never"
    return Sentence(
        f"{count(judged, 'claim')} of this chapter {'was' if judged == 1 else 'were'} judged on"
        f" {where}; {verdicts} changed from one to the next."
    )


def count(n: float, noun: str, plural: str = "") -> Sentence:
    """ "no pages", "1 page", "12,345 pages"; the plural is formed unless given."""
    if n == 1:
        return Sentence(f"1 {noun}")
    return Sentence(f"{'no' if n == 0 else number(n)} {plural or _plural(noun)}")


def percent(share: float) -> str:
    """A share in percent, to a tenth; of less than a hundredth to two digits.

    What a fit leaves of nothing is nothing.
    """
    if abs(share) < 1e-9:
        return "0 %"
    return f"{100 * share:.2g} %" if share < 0.01 else f"{number(round(100 * share, 1))} %"


# ---- measured values


def ratio_sentence(x: Interval, what: str, a: str, b: str, margin: float = 0.05) -> Sentence:
    """Compare two variants: "The throughput of two backends is 1.31 [1.29, 1.34] times that of …"

    `what` goes after "the"; `margin` is the smallest effect of interest.
    """
    value = _measured(x, against=(1, 1 + margin, 1 / (1 + margin)))
    if not x.enough:
        return Sentence(
            f"The {what} of {a} relative to that of {b} is {value}, from too few pairs for a"
            " verdict."
        )
    if statistics.equivalent(x, margin):
        return Sentence(
            f"The {what} of {a} and that of {b} are equal within {percent(margin)}: their ratio is"
            f" {value}."
        )
    if x.low <= 1 <= x.high:
        return Sentence(
            f"The {what} of {a} can't be told from that of {b}: their ratio is {value}."
        )
    return Sentence(f"The {what} of {a} is {value.replace(' (', ' times that of ' + b + ' (', 1)}.")


KINDS = {
    "printed": "Printed",
    "published": "Published run",
    "measured": "This run",
    "published-slowed": "Published run, slowed disk",
    "slowed": "This run, slowed disk",
    "simulated": "Simulated",
}


def described(frame: pd.DataFrame) -> Sentence:
    """A chart's data in words, for readers who don't see it.

    Columns: label, kind (see KINDS), value; where present low and high (the interval), panel.
    """
    parts = []
    panels = frame.groupby("panel", sort=False) if "panel" in frame else [("", frame)]
    for panel, rows in panels:
        for kind, group in rows.groupby("kind", sort=False):
            values = ", ".join(f"{row.label} {_row_value(row)}" for row in group.itertuples())
            parts.append(f"{KINDS.get(kind, kind)}{f', {panel}' if panel else ''}: {values}.")
    return Sentence(" ".join(parts))


def _row_value(row) -> str:
    low, high = getattr(row, "low", math.nan), getattr(row, "high", math.nan)
    if not (low <= row.value <= high):  # also where an end is missing
        return number(float(row.value))
    return interval(Interval(float(row.value), float(low), float(high), n=0))


# ---- judgements


def _escape(text: str) -> str:
    """Document text for Markdown: nothing in it is markup."""
    return re.sub(r"([\\*_`$|\[\]])", r"\\\1", text).replace("<", "&lt;")


def quantity(claim: Claim) -> str:
    """What a claim is about; of what would be gained without a cost, the cost's share."""
    return claim.as_share or claim.comparison


def _in_unit(claim: Claim, x: float) -> float:
    """A number of the claim's as a reader is told it: a share in percent."""
    share = 1 - 1 / x if claim.as_share else x
    return 100 * share if claim.unit == "%" else share


def printed_value(claim: Claim) -> str:
    """What the document prints, as the ledger has it, its numbers in the form of all others.

    With its unit where it is no more than the number that the claim is judged against.
    """
    long = re.compile(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w.]*\d)")
    said = long.sub(lambda found: _shortened(found[0]), claim.published_value)
    return said.replace("->", "→") + (_spaced(claim.unit) if prints_its_size(claim) else "")


def prints_its_size(claim: Claim) -> bool:
    """Whether what the document prints is the number that the claim is judged against."""
    size = claim.printed
    try:
        return size is not None and math.isclose(
            float(claim.published_value), _in_unit(claim, size)
        )
    except ValueError:  # more than a number
        return False


def _shortened(digits: str) -> str:
    """A number of more digits than are read; "2007" and "206.86" stay what they are."""
    whole, _, decimals = digits.partition(".")
    return number(float(digits)) if len(whole) > 4 or len(whole + decimals) > 5 else digits


def claimed_size(claim: Claim, printed_size: Size) -> str:
    """A claim's printed number, or its range, in its unit."""
    low, high = sorted(_in_unit(claim, end) for end in printed_size)
    said = number(low) if low == high else f"{number(low)} to {number(high)}"
    return said + _spaced(claim.unit)


def judged_size(claim: Claim, printed_size: Size) -> str:
    """A printed number, and the range that counts as it where the word is about a range."""
    counts = Size(*(float(f"{end:.3g}") for end in reached(claim, printed_size)))
    taken = claim.predicate is Predicate.BETWEEN and counts != printed_size
    return claimed_size(claim, printed_size) + (
        f", taken as {claimed_size(claim, counts)}" if taken else ""
    )


def _as_told(j: Judgement, part: str, x: Interval | float) -> tuple[Interval | float, str, list]:
    """A number in the unit of the claim's, that unit, and what it is held against."""
    told = partial(_in_unit, j.claim)
    if isinstance(x, Interval):
        x = replace(x, estimate=told(x.estimate), low=told(x.low), high=told(x.high))
    else:
        x = told(x)
    return x, j.claim.unit, [told(side) for side in _sides(j, part)]


def _sides(j: Judgement, part: str) -> list[float]:
    """The numbers that decided about a part, so that rounding doesn't blur them."""
    claim = j.claim
    sides = []
    if claim.predicate in _COMPARING:
        sides = [1.0, 1 + claim.margin, 1 / (1 + claim.margin)]
    against = claim.sizes.get(part, claim.sizes.get(""))
    return sides if against is None else [*sides, *against, *reached(claim, against)]


_TRUTHS = {True: "as claimed", False: "not so", None: "unresolved"}
_COMPARING = (Predicate.RATIO, Predicate.DIRECTION)
BASES: Mapping[Basis, str] = {
    Basis.TIMED: "timed",
    Basis.COUNTED: "counted",
    Basis.OBSERVED: "observed",
    Basis.MACHINE: "timed on this machine without a server",
    Basis.SIMULATED: "simulated",
    Basis.RECOMPUTED: "recomputed from printed numbers",
    Basis.RELEASE_NOTES: "known from release notes",
    Basis.BY_DESIGN: "true by how the experiment is built",
    Basis.OPINION: "an opinion",
}
"""What a verdict rests on, in words."""
READ_OFF = "read off a figure or a table by this book"
"""Of a claim that its document doesn't say in words."""


def basis_in_words(claim: Claim) -> str:
    """What the claim's verdict rests on, and that it is outside of the score where it is."""
    of_whom = "no document claims it" if claim.document == OWN else READ_OFF
    own = f"; {of_whom}" if claim.basis in SCORED else ""
    return BASES[claim.basis] + ("" if claim.scored else f"{own}, so outside of the score")


def basis(j: Judgement) -> str:
    """What a verdict rests on, in short, and what to be wary of: a slowed disk, another rule."""
    return _with_cautions(j, str(j.claim.basis))


def _with_cautions(j: Judgement, words: str) -> str:
    return ", ".join([words, *_disks(j), *([STALE] if j.stale_rule else [])])


def _disks(j: Judgement) -> list[str]:
    values = [part.value for part in j.parts.values() if isinstance(part.value, Interval)]
    return list(dict.fromkeys(value.disk for value in values if value.disk))


def account(j: Judgement) -> list[tuple[str, str]]:
    """What a verdict is made of, each with what it is: ("found", "1.8 [1.7, 1.9] times").

    The document's words and number, what was found, what it rests on, what stands beside.
    """
    claim = j.claim
    told = [("claimed by", f"{claim.document_name}, {printed.cited(claim.section)}")]
    told += [("in its words", f"“{claim.quote}”")] if claim.quote else []
    word, _, number_of_it = wanted(claim).partition(" ")  # "printed 1.99"
    told += [(word, number_of_it)] if word else []
    if claim.predicate is Predicate.FACTS and isinstance(j.evidence, Mapping):
        told += _facts(j.evidence)
    elif j.evidence is not None and claim.predicate is not Predicate.BUG:
        told += [("measured", quantity(claim)), ("found", _numbers(j, _measured))]
    if claim.predicate in _COMPARING and not claim.unit:
        told.append(("no effect would be", f"one within {percent(claim.margin)} of 1"))
    told.append(("rests on", _with_cautions(j, basis_in_words(claim))))
    if claim.direction_only:
        told.append(("direction only, since", claim.direction_only))
    if j.verdict is Verdict.NOT_TESTED:
        told.append(("not tested here", untold(j)))
        told += [] if j.untested else [("missing", j.capability)]
    elif j.remarks:
        told.append(("note", j.remarks))
    for words, other in j.beside.items():
        opinion = other.claim.basis is Basis.OPINION
        told.append((words, evidence(other) + ("" if opinion else f" ({other.verdict})")))
    return told


def _facts(facts: Mapping[str, Part]) -> list[tuple[str, str]]:
    """Facts by what was found of them, those first that decide."""
    told = []
    for essential, apart in ((True, ""), (False, ", and decides nothing")):
        for truth, words in _TRUTHS.items():
            which = [n for n, p in facts.items() if p.essential is essential and p.value is truth]
            told += [(f"{words}{apart}", "; ".join(which))] if which else []
    return told


def untold(j: Judgement) -> str:
    """Why there is nothing to tell, with which of the five reasons it is; no full stop.

    A reason of data/out_of_reach.csv is told as it stands there today: records keep older ones.
    """
    known = claims.OUT_OF_REACH.get(j.capability)
    reason = str(known) if known else j.remarks
    return ": ".join(filter(None, (j.untested, reason.rstrip("."))))


def untested(judgements: Iterable[Judgement]) -> Sentence:
    """How many claims are not tested for which reason; "" where all are."""
    left = [j for j in judgements if j.verdict is Verdict.NOT_TESTED]
    unscored = sum(not j.claim.scored for j in left)
    why = Counter(j.untested.partition(" (")[0] or _lacking(j.capability) for j in left)
    told = "; ".join(f"{reason}: {n}" for reason, n in why.most_common())
    them = f"{count(len(left), 'claim')} {'is' if len(left) == 1 else 'are'}"
    outside = f" ({unscored} of them outside of the score)" if unscored else ""
    return Sentence(f"Why {them} not tested here{outside}: {told}." if left else "")


def _lacking(capability: str) -> str:
    known = claims.OUT_OF_REACH.get(capability)
    builds = claims.is_build(capability) or bool(known and known.builds)
    return (
        "a comparison of builds that nobody has made yet"
        if builds
        else "something else that this run lacks"
    )


def word(j: Judgement) -> str:
    """The verdict, and that only a direction is judged where a size is printed."""
    directed = j.verdict is Verdict.HOLDS and j.claim.direction_only
    return f"{j.verdict} (direction only)" if directed else str(j.verdict)


def cautions(j: Judgement) -> list[str]:
    """What stands beside a word that isn't what it seems: a slowed disk, a rule that changed."""
    disk = ["slowed disk"] if _disks(j) else []
    return [*disk, *([STALE] if j.stale_rule else [])]


def wanted(claim: Claim) -> str:
    """ "printed 1.99", "claimed at most 6": what a claim says that its number is, "" for none."""
    if claim.predicate is Predicate.BUG:
        return ""
    sizes = ", ".join(
        f"{name} {claimed_size(claim, size)}".strip() for name, size in claim.sizes.items()
    )
    if claim.predicate in BOUNDS:
        return f"claimed {claim.predicate} {sizes}"
    said = sizes or printed_value(claim)
    return f"printed {said}" if said else ""


def found(j: Judgement) -> str:
    """What was found, of what was found in another regime that, and its word there."""
    if j.evidence is not None:
        return evidence(j)
    other = next((one for one in j.beside.items() if one[1].evidence is not None), None)
    if other is None or other[1].claim.basis is Basis.OPINION:
        return ""
    words, apart = other
    return f"{evidence(apart)} {words} ({apart.verdict} there)"


def wanted_and_found(j: Judgement) -> str:
    """ "printed 1.99, found 1.77 [1.65, 1.81]", as far as there are such numbers."""
    here = found(j)
    return ", ".join(filter(None, (wanted(j.claim), f"found {here}" if here else "")))


def evidence(j: Judgement) -> str:
    """What a verdict rests on, short enough for a table."""
    found = j.evidence
    if found is None:
        return j.remarks
    if j.claim.predicate is Predicate.BUG:
        return ""
    if j.claim.basis is Basis.OPINION:
        return f"an opinion; measured beside it: {_beside_opinion(j)}"
    if j.claim.predicate is Predicate.FACTS and isinstance(found, Mapping):
        essential = [part.value for part in found.values() if part.essential]
        return f"{essential.count(True)} of {count(len(essential), 'fact')}"
    return _numbers(j, interval)


def _beside_opinion(j: Judgement) -> str:
    """What is shown beside an opinion: numbers, or the essential facts by what was found."""
    if j.claim.predicate is not Predicate.FACTS or not isinstance(j.evidence, Mapping):
        return _numbers(j, interval)
    essential = {name: part for name, part in j.evidence.items() if part.essential}
    return ", ".join(f"“{names}”: {words}" for words, names in _facts(essential))


def _numbers(j: Judgement, told_as: Callable[..., str]) -> str:
    """The intervals of a judgement, each with its name if it has one."""
    values = {
        name: part.value
        for name, part in j.parts.items()
        if isinstance(part.value, Interval | float | int) and not isinstance(part.value, bool)
    }
    said = {name: told_as(*_as_told(j, name, value)) for name, value in values.items()}
    # a name that has a number itself is kept apart from what was found
    apart = {name: ": " if re.search("[0-9]", name) else " " for name in said}
    between = "; " if any("," in name for name in said) else ", "
    told = between.join(f"{name}{apart[name]}{text}".strip() for name, text in said.items())
    times = " times" if told and j.claim.relative_to else ""
    return f"{told}{times}"


def listed(told: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(told[:-1]), *told[-1:]]))


def run(account: Mapping[str, Any]) -> Sentence:
    """What an experiment sent in its untimed pass, counted; `account` as a run record keeps it.

    Empty where none was recorded, as of a model, or of a program that asks servers of its own.
    """
    statements, left_out = account["statements"], account["left_out"]
    kept = sum(times for _, times in statements)
    said = [f"{count(len(statements) + left_out, 'distinct statement')}"] if kept else []
    if kept and left_out and "times" not in account:  # of those left out nothing is known
        said[0] += f", of which the first {len(statements)} were sent {count(kept, 'time')}"
    elif kept:
        said[0] += f", sent {count(account.get('times', kept), 'time')}"
    said += [f"pgbench with {loads(account['loads'])}"] if account["loads"] else []
    return Sentence(f"What was run: {'; '.join(said)}." if said else "")


_CAME_TRUE = {Verdict.HOLDS, Verdict.STRONGER, Verdict.STILL_THERE}
_FAILED = {
    Verdict.NOT_REPRODUCED,
    Verdict.NO_EFFECT,
    Verdict.NOT_SO,
    Verdict.DIFFERENT_NOW,
    Verdict.REVERSED,
    Verdict.FIXED,
}


def loads(called: Iterable[Mapping[str, Any]]) -> str:
    """Clients, protocol and length of pgbench's loads, once where loads differ in one of them."""
    lengths: dict[tuple[str, int], dict[str, None]] = {}
    for load in called:
        lengths.setdefault((load["protocol"], load["clients"]), {})[load["length"]] = None
    alike: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for (protocol, clients), long in lengths.items():
        alike.setdefault((protocol, tuple(long)), []).append(clients)
    told = []
    for (protocol, long), clients in alike.items():
        units: dict[str, list[str]] = {}
        for length in long:
            amount, _, unit = length.partition(" ")
            units.setdefault(unit, []).append(amount)
        each = listed([f"{listed(amounts)} {unit}" for unit, amounts in units.items()])
        *others, last = clients
        who = listed([*map(number, others), count(last, "client")])
        told.append(f"{who}, protocol {protocol}, {each}")
    return "; ".join(told)


def outcome(foretold: Mapping[str, bool], judged: Mapping[str, Judgement]) -> Sentence:
    """What became of a prediction: `foretold` says of each claim whether it was to hold or not.

    Of a bug, whether it was to be still there or to be fixed. True for every verdict: what isn't
    decided, or was measured by another rule, has failed no prediction.
    """
    groups: dict[str, list[str]] = {}
    for claim, holds in foretold.items():
        j = judged.get(claim)
        verdict = j.verdict if j else None
        if verdict in _CAME_TRUE | _FAILED:
            word = "came true" if (verdict in _CAME_TRUE) is holds else "failed"
        elif verdict in (Verdict.WEAKER, Verdict.PARTLY):
            word = "came true in part"
        elif verdict is Verdict.NOT_TESTED:
            word = "not tested here"
        else:
            word = "undecided" if j else "not measured by today's rule"
        decided = word in ("came true", "came true in part", "failed")
        found = _closing(j) if j and decided else ""
        denied = not holds and j and decided and j.claim.predicate is not Predicate.BUG
        named = f"that {claim} doesn't hold" if denied else claim
        groups.setdefault(word, []).append(f"{named} ({found})" if found else named)
    said = "; ".join(f"{word}: {', '.join(claims)}" for word, claims in groups.items())
    return Sentence(f"{said[:1].upper()}{said[1:]}.")


def _closing(j: Judgement) -> str:
    """What closes a prediction: of a bug, which has no number, what became of it."""
    bug = j.claim.predicate is Predicate.BUG and j.verdict is not Verdict.INCONCLUSIVE
    return f"the bug is {j.verdict}" if bug else wanted_and_found(j)


def set_aside(name: str, reason: CannotMeasure) -> Sentence:
    """Why an experiment did not run; `name` may be the name of its function."""
    return Sentence(
        f"The experiment “{name.replace('_', ' ').strip()}” was set aside:"
        f" {_escape(str(reason).rstrip('.'))} (missing: {_escape(reason.capability)})."
    )


def none(caption: str) -> Sentence:
    """What stands in place of a table whose query found no row."""
    return Sentence(f"{_escape(caption.rstrip('.'))}: none.")


_TALLY = {
    Verdict.HOLDS: ("holds", "hold"),
    Verdict.STRONGER: ("is stronger", "are stronger"),
    Verdict.WEAKER: ("is weaker", "are weaker"),
    Verdict.PARTLY: ("holds partly", "hold partly"),
    Verdict.NOT_REPRODUCED: ("is not reproduced", "are not reproduced"),
    Verdict.NO_EFFECT: ("shows no effect", "show no effect"),
    Verdict.NOT_SO: ("is not so", "are not so"),
    Verdict.DIFFERENT_NOW: ("is different now", "are different now"),
    Verdict.REVERSED: ("is reversed", "are reversed"),
    Verdict.STILL_THERE: ("is a bug that is still there", "are bugs that are still there"),
    Verdict.FIXED: ("is a bug that was fixed", "are bugs that were fixed"),
    Verdict.INCONCLUSIVE: ("is inconclusive", "are inconclusive"),
    Verdict.NOT_TESTED: ("was not tested here", "were not tested here"),
}


def summary(judgements: Iterable[Judgement]) -> Sentence:
    """How many of the claims hold that a server here can answer, and how many stand apart."""
    known = list(judgements)
    if not known:
        return Sentence("No claim was judged.")
    scored = Counter(j.verdict for j in known if j.claim.scored)
    left = [j for j in known if not j.claim.scored]
    own = Counter(j.verdict for j in left if j.claim.basis in SCORED and j.claim.document == OWN)
    told, who = (scored, "are put to a server") if scored else (own, "no document makes")
    parts = [f"{told[v]} {_TALLY[v][told[v] > 1]}" for v in _TALLY if told[v]]
    said = f"Of {count(told.total(), 'claim')} that {who}: {', '.join(parts)}."
    if not parts:
        said = "No claim of this chapter is scored."
    if not scored:  # then those of no document are told already
        left = [j for j in left if j.claim.basis not in SCORED or j.claim.document != OWN]
    order = list(Basis)
    apart = Counter(_apart(j.claim) for j in sorted(left, key=lambda j: order.index(j.claim.basis)))
    if apart:
        each = ", ".join(
            f"{many} {'opinions' if many > 1 and why == 'opinion' else why}"
            for why, many in apart.items()
        )
        number = apart.total()
        said += f" {number} more {'is' if number == 1 else 'are'} not scored: {each}."
    return Sentence(said)


def _apart(claim: Claim) -> str:
    """Why a claim stands outside of the score, in words."""
    if claim.basis not in SCORED:
        return BASES[claim.basis].removeprefix("an ")
    return "of no document" if claim.document == OWN else READ_OFF
