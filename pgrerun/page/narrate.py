"""Sentences written from judgements and measured values, so that no number in prose is typed.

Every function returns a `Sentence`, a text that a notebook shows as Markdown. Verdicts come
from `claims` and intervals from `statistics`; this module only finds words, one wording for every
verdict that can occur. Pictures are drawn by `charts`.

Numbers carry the digits that their interval supports: the width's first two digits if it starts
with 1, 2 or 3, else its first one, and more where rounding would hide which side of a printed
number an interval ends on.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

import pandas as pd

from pgrerun.errors import CannotMeasure
from pgrerun.record import printed, statistics
from pgrerun.record.claims import Claim, Judgement, Predicate, Verdict
from pgrerun.record.statistics import Interval, NoiseFloor


class Sentence(str):
    """Prose that Jupyter shows as Markdown; several are joined with a space by `+`."""

    def _repr_markdown_(self) -> str:
        return str(self)

    def __add__(self, other: str) -> "Sentence":
        return Sentence(f"{self!s} {other!s}")


# ---- numbers


def number(x: float, decimals: int | None = None) -> str:
    """A number for prose: four significant digits, or so many `decimals`; commas for thousands."""
    if math.isnan(x):
        return "no number"
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    if decimals is None:
        if x == int(x) and abs(x) < 1e15:
            return f"{int(x):,}"
        if x != 0 and not 1e-4 <= abs(x) < 1e15:
            return f"{x:.3e}"
        decimals = max(0, 3 - math.floor(math.log10(abs(x))))
        text = f"{x:,.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = f"{round(x, decimals):,.{max(decimals, 0)}f}"
    return text.removeprefix("-") if not re.search("[1-9]", text) else text  # no "-0.00"


def _decimals(x: Interval, against: Iterable[float] = ()) -> int | None:
    """Decimal places that the interval supports, and that keep its ends apart from others."""
    width = x.high - x.low
    if not math.isfinite(width) or width <= 0:
        return None
    place = math.floor(math.log10(width))
    decimals = -place + (1 if width / 10**place < 3.5 else 0)
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
    return f"{interval(x, unit, against)} ({100 * x.confidence:g} % interval, n = {x.n})"


def _plural(noun: str) -> str:
    if re.search("[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search("(s|x|z|ch|sh)$", noun) else "s")


def count(n: float, noun: str, plural: str = "") -> Sentence:
    """ "no pages", "1 page", "12,345 pages"; the plural is formed unless given."""
    if n == 1:
        return Sentence(f"1 {noun}")
    return Sentence(f"{'no' if n == 0 else number(n)} {plural or _plural(noun)}")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


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
            f"The {what} of {a} and that of {b} are equal within {_percent(margin)}: their ratio is"
            f" {value}."
        )
    if x.low <= 1 <= x.high:
        return Sentence(
            f"The {what} of {a} can't be told from that of {b}: their ratio is {value}."
        )
    return Sentence(f"The {what} of {a} is {value.replace(' (', ' times that of ' + b + ' (', 1)}.")


def then_and_now(
    printed: float | str, measured: Interval | float, what: str, unit: str = ""
) -> Sentence:
    """Put a printed value beside a measured one; `what` is a phrase that goes after "the".

    `printed` may be the document's words, which are then only quoted.
    """
    if isinstance(printed, str):
        return Sentence(
            f"In print the {what} is {_escape(printed)}; here it is {_measured(measured, unit)}."
        )
    x = measured if isinstance(measured, Interval) else statistics.exact(measured)
    value = _measured(measured, unit, (printed,))
    said = f"In print the {what} is {number(printed)}{_spaced(unit)}; here it is {value}"
    if x.n == 1 and not x.exact:
        return Sentence(f"{said}.")
    if x.exact:
        where = (
            "the same"
            if math.isclose(x.estimate, printed, rel_tol=1e-9)
            else "more"
            if x.estimate > printed
            else "less"
        )
    elif x.low <= printed <= x.high:
        where = "which agrees with the print"
    else:
        where = "above the print" if x.low > printed else "below the print"
    return Sentence(f"{said}, {where}.")


def noise(floor: NoiseFloor) -> Sentence:
    """What an A/A comparison allows to be seen."""
    if not math.isfinite(floor.floor):
        return Sentence(
            "Two variants that do the same were compared too few times to know the noise."
        )
    said = f"Two variants that do the same have the ratio {_measured(floor.ratio, against=(1,))}"
    alarm = (
        ", although they can't differ: one comparison in twenty misses 1 by chance, and this is one"
        if floor.false_alarm
        else ""
    )
    return Sentence(
        f"{said}{alarm}; an effect below {_percent(floor.floor - 1)} can't be told from noise in"
        " this run."
    )


def prediction(text: str, **numbers: Interval | float | str) -> Sentence:
    """What is expected before the result is seen; {names} in the text become formatted numbers."""
    filled = {
        name: value if isinstance(value, str) else str(interval(value))
        for name, value in numbers.items()
    }
    return Sentence(f"**Prediction.** {text.format(**filled) if filled else text}")


KINDS = {
    "printed": "In print",
    "published": "Published run",
    "measured": "This run",
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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sides(j: Judgement) -> list[float]:
    """The numbers that decided, so that rounding doesn't blur them."""
    claim = j.claim
    margin = (
        [1.0, 1 + claim.margin, 1 / (1 + claim.margin)]
        if claim.printed is None or claim.predicate is Predicate.RATIO
        else []
    )
    return margin + ([claim.printed] if claim.printed is not None else [])


def _found(j: Judgement) -> str:
    """What was measured, beside what was printed."""
    claim, evidence = j.claim, j.evidence
    if claim.predicate is Predicate.FACTS:
        return _facts_found(evidence)
    if claim.predicate is Predicate.BUG:
        return ""
    several = isinstance(evidence, Mapping)
    each = {
        name: _measured(x, against=_sides(j))
        for name, x in (evidence if several else {"": evidence}).items()
    }
    values = evidence.values() if several else [evidence]
    how = (
        "simulated" if all(isinstance(x, Interval) and x.simulated for x in values) else "measured"
    )
    here = (
        f"{how} here: {', '.join(f'{_escape(name)} {value}' for name, value in each.items())}"
        if several
        else f"{how} here it is {each['']}"
    )
    match claim.predicate:
        case Predicate.DIRECTION:
            return (
                f"{_capital(here.replace(' it is', f', the {claim.quantity} is'))}; 1 would be no"
                " difference."
            )
        case Predicate.AT_MOST | Predicate.AT_LEAST:
            return (
                f"The {claim.quantity} should be {claim.predicate} {number(claim.printed)}; {here}."
            )
        case _:
            return f"In print, the {claim.quantity} is {number(claim.printed)}; {here}."


def _facts_found(facts: Mapping[str, bool]) -> str:
    true = [_escape(name) for name, value in facts.items() if value]
    false = [_escape(name) for name, value in facts.items() if not value]
    said = (
        f"Of {count(len(facts), 'fact')} checked here, {len(true) or 'none'}"
        f" {'is' if len(true) == 1 else 'are'} as claimed"
    )
    said += f" ({'; '.join(true)})" if true else ""
    return said + (f"; otherwise: {'; '.join(false)}." if false else ".")


_EFFECT = {
    Verdict.HOLDS: "The effect is there and reaches the print: the claim **holds**",
    Verdict.WEAKER: (
        "The direction is as claimed, the effect smaller than in print: the claim is **weaker**"
    ),
    Verdict.GONE: (
        "That is no difference of interest (within {margin} of 1): the effect is **gone**"
    ),
    Verdict.REVERSED: "That is the opposite of what was claimed: the effect is **reversed**",
}
_WORDS: Mapping[Predicate, Mapping[Verdict, str]] = {
    Predicate.RATIO: _EFFECT,
    Predicate.DIRECTION: (
        _EFFECT | {Verdict.HOLDS: "The difference has the claimed direction: the claim **holds**"}
    ),
    Predicate.AT_MOST: {
        Verdict.HOLDS: "That keeps within the bound: the claim **holds**",
        Verdict.WEAKER: "The bound is kept only in part: the claim is **weaker**",
        Verdict.REVERSED: "That is more than the bound allows: the claim is **reversed**",
    },
    Predicate.AT_LEAST: {
        Verdict.HOLDS: "That reaches the bound: the claim **holds**",
        Verdict.WEAKER: "The bound is reached only in part: the claim is **weaker**",
        Verdict.REVERSED: "That stays below the bound: the claim is **reversed**",
    },
    Predicate.EQUALS: {
        Verdict.HOLDS: "The number is the same: the claim **holds**",
        Verdict.GONE: "The number is another one: the claim is **gone**",
    },
    Predicate.FACTS: {
        Verdict.HOLDS: "The claim **holds**",
        Verdict.WEAKER: "The claim holds only in part: it is **weaker**",
        Verdict.GONE: "Nothing of the claim is left: it is **gone**",
    },
    Predicate.BUG: {
        Verdict.STILL_THERE: "Checked here, the bug is **still there**",
        Verdict.FIXED: "Checked here, the bug is **fixed**",
    },
}


def _concluded(j: Judgement) -> str:
    """What the evidence makes of the claim."""
    note = f" ({_escape(j.note)})" if j.note else ""
    if j.verdict is Verdict.NOT_RESOLVED:
        return f"This run can't decide{note}: the claim is **not resolved**."
    return _WORDS[j.claim.predicate][j.verdict].format(margin=_percent(j.claim.margin)) + note + "."


def _claimed(claim: Claim) -> str:
    where = f"{_escape(printed.cited(claim.section))}; {claim.id}"
    return f"{_capital(claim.document_name)} ({where}) says: “{_escape(claim.claim)}”"


def judgement(j: Judgement) -> Sentence:
    """What was claimed and where, what was measured here, and what that makes of the claim."""
    if j.verdict is Verdict.NOT_TESTABLE:
        reason = _escape(j.note.rstrip("."))
        return Sentence(
            f"{_claimed(j.claim)} That is **not testable here**: {reason} (missing:"
            f" {_escape(j.capability)})."
        )
    return Sentence(" ".join(filter(None, [_claimed(j.claim), _found(j), _concluded(j)])))


def evidence(j: Judgement) -> str:
    """What a verdict rests on, short enough for a table."""
    found = j.evidence
    if found is None:
        return j.note
    if j.claim.predicate is Predicate.BUG:
        return ""
    if j.claim.predicate is Predicate.FACTS:
        return f"{sum(found.values())} of {count(len(found), 'fact')}"
    several = found if isinstance(found, Mapping) else {"": found}
    how = " (simulated)" if all(value.simulated for value in several.values()) else ""
    return ", ".join(f"{name} {interval(value)}".strip() for name, value in several.items()) + how


def set_aside(name: str, reason: CannotMeasure) -> Sentence:
    """Why an experiment did not run; `name` may be the name of its function."""
    return Sentence(
        f"The experiment “{name.replace('_', ' ').strip()}” was set aside:"
        f" {_escape(str(reason).rstrip('.'))} (missing: {_escape(reason.capability)})."
    )


def summary(judgements: Iterable[Judgement]) -> Sentence:
    """How many of the claims hold, in one sentence."""
    found = Counter(j.verdict for j in judgements)
    words = {
        Verdict.HOLDS: ("holds", "hold"),
        Verdict.WEAKER: ("is weaker", "are weaker"),
        Verdict.GONE: ("is gone", "are gone"),
        Verdict.REVERSED: ("is reversed", "are reversed"),
        Verdict.STILL_THERE: ("is a bug that is still there", "are bugs that are still there"),
        Verdict.FIXED: ("is a bug that was fixed", "are bugs that were fixed"),
        Verdict.NOT_RESOLVED: ("is not resolved", "are not resolved"),
        Verdict.NOT_TESTABLE: ("is not testable here", "are not testable here"),
    }
    parts = [f"{found[v]} {words[v][found[v] > 1]}" for v in words if found[v]]
    return Sentence(
        f"Of {count(found.total(), 'claim')}: {', '.join(parts)}."
        if parts
        else "No claim was judged."
    )
