"""How rows, verdicts and provenance are shown in a notebook and on its page."""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pgrerun.page import charts, narrate, provenance
from pgrerun.page.markup import Markup, macros
from pgrerun.page.tables import table
from pgrerun.record import rows, verdicts
from pgrerun.record.verdicts import Judgement

_PREVIEW = 5  # rows that a page shows of an experiment
_LINES = 3  # verdicts that a page shows one below the other before it folds some
_HTML, _PARTS = macros("scoreboard"), macros("table")


@dataclass(frozen=True)
class Rows:
    """The rows of one experiment; the last value of a notebook cell.

    `frame` has them, `about` is what the record tells of how they came about, `commands` run it
    again and ask its rows. On a page all of it is folded below one line.
    """

    experiment: str
    frame: pd.DataFrame
    units: Mapping[str, str]
    about: Mapping[str, Any]
    commands: str

    def __repr__(self) -> str:
        return f"{self._line()}\n{self._medians().to_string(index=False)}"

    def _line(self) -> str:
        blocks = self.frame["block"].dropna()
        several = f", in {narrate.count(blocks.nunique(), 'block')}" if len(blocks) else ""
        return f"{self.experiment}: {narrate.count(len(self.frame), 'row')}{several}"

    def _scripts(self) -> dict[str, list[str]]:
        """Each script that ran, and in which file and loads."""
        found: dict[str, list[str]] = {}
        for name, text in self.about.get("files", {}).items():
            found.setdefault(text.strip(), []).append(name)
        for load in self.about.get("loads", ()):
            found.setdefault(load["script"].strip(), []).append(f"pgbench, {load['length']}")
        return found

    def _medians(self) -> pd.DataFrame:
        """The rows, of what was repeated the medians, with units in the heads."""
        shown = [name for name in self.frame if name not in rows.HOW]
        found = self.frame[shown]
        numbers = [n for n in self.units if n in found and pd.api.types.is_numeric_dtype(found[n])]
        if self.frame["block"].notna().any() and numbers:
            medians = dict.fromkeys(numbers, "median")
            factors = [name for name in shown if name not in self.units]
            every = self.frame.astype(dict.fromkeys(numbers, float))
            found = (
                every.groupby(factors, sort=False, dropna=False).agg(medians).reset_index()
                if factors
                else every.agg(medians).to_frame().T
            )
        heads = {n: f"{n} ({unit})" for n, unit in self.units.items() if unit and n in found}
        kept = found.rename(columns=heads)
        return kept.astype(object).where(kept.notna(), None)

    def _repr_html_(self) -> str:
        medians = self._medians()
        caption = f"{self._line()}" + (f"; the first {_PREVIEW}" if len(medians) > _PREVIEW else "")
        shown = table(medians.head(_PREVIEW), caption)
        parts = [shown._repr_html_() if shown else ""]
        if changed := self.about.get("changed"):
            told = ", ".join(f"{name} = {value}" for name, value in changed.items())
            parts.append(f"<p>It ran with {html.escape(told)}.</p>")
        sent = narrate.run(self.about) if "statements" in self.about else ""
        parts += [f"<p>{html.escape(sent)}</p>"] if sent else []
        parts.append(f"<p>To run it again, or to ask its rows:</p>{_code(self.commands)}")
        for text, names in self._scripts().items():
            parts.append(f"<p>{html.escape('; '.join(names))}</p>{_code(text)}")
        if settings := self.about.get("settings"):
            parts.append(f"<p>Settings that differ from PostgreSQL's: {html.escape(settings)}.</p>")
        if function := self.about.get("function"):
            parts.append(f"<p>The function that measures it:</p>{_code(function)}")
        line = html.escape(self._line())
        return (
            f'<details class="what-was-run"><summary>{line}: what was sent, and what came back'
            f"</summary>{''.join(parts)}</details>"
        )


def _code(text: str) -> str:
    return f'<pre class="statement">{html.escape(text.strip())}</pre>'


@dataclass(frozen=True)
class Verdict:
    """A judgement, the rule that gave it, and the author's sentence for it ("" for none)."""

    judgement: Judgement
    rule: str
    sentence: str

    def __repr__(self) -> str:
        j = self.judgement
        told = self.sentence or "; ".join(f"{what}: {said}" for what, said in narrate.account(j))
        return f"{j.claim.id}: {narrate.word(j)}. {told}"

    def html(self) -> str:
        """One line that unfolds: word, claim, wanted and found; below it quote and rule."""
        j, claim = self.judgement, self.judgement.claim
        colour, word = charts.VERDICTS[str(j.verdict)], narrate.word(j)
        numbers = html.escape(narrate.wanted_and_found(j))
        numbers = f' <span class="numbers">{numbers}</span>' if numbers else ""
        rests_on = ", ".join([str(claim.basis), *narrate.cautions(j)])
        rule = f"<p>Judged by:</p>{_code(self.rule)}" if self.rule else ""
        sentence = f"<p><strong>{html.escape(self.sentence)}</strong></p>" if self.sentence else ""
        account = "".join(
            f"<div><dt>{html.escape(what)}</dt><dd>{html.escape(said)}</dd></div>"
            for what, said in narrate.account(j)
        )
        return (
            f'<div class="verdict-line" id="{claim.id}" style="--verdict:{colour}"><details>'
            f'<summary><span class="chip">{word}</span> {html.escape(claim.claim)}{numbers}'
            f' <span class="basis">{html.escape(rests_on)}</span></summary>'
            f"{sentence}<dl>{account}</dl>{rule}</details>"
            f'<a href="../scoreboard.html#{claim.id}">{claim.id}</a></div>'
        )


@dataclass(frozen=True)
class Verdicts:
    """Several verdicts below each other; the last value of a notebook cell."""

    each: Sequence[Verdict]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.each))

    def _repr_html_(self) -> str:
        """All lines, or of many the headline claims' (or the first); the others unfold below."""
        first = [one for one in self.each if one.judgement.claim.headline] or self.each[:1]
        first = list(self.each if len(self.each) <= _LINES else first[:_LINES])
        rest = [one for one in self.each if one not in first]
        lines = "".join(one.html() for one in first)
        if not rest:
            return lines
        words = Counter(str(one.judgement.verdict) for one in rest)
        told = ", ".join(f"{many} {word}" for word, many in words.most_common())
        return (
            f'{lines}<details class="more-verdicts"><summary>{len(rest)} more: {told}</summary>'
            f"{''.join(one.html() for one in rest)}</details>"
        )


@dataclass(frozen=True)
class Summary:
    """All verdicts of a chapter in a table; the last value of a notebook cell.

    The verdict comes first, as it is what a phone shows of a row. What was found instead of a
    number stands as a sentence below the claim, whose column is wide.
    """

    judgements: Sequence[Judgement]

    def __repr__(self) -> str:
        lines = [f"{j.claim.id}: {narrate.word(j)}. {narrate.found(j)}" for j in self.judgements]
        return "\n".join([narrate.summary(self.judgements), *lines])

    def _repr_html_(self) -> str:
        rows = [({}, _cells(j)) for j in self.judgements]
        number = "The claim" if len(rows) == 1 else f"All {narrate.count(len(rows), 'claim')}"
        caption = f"{number}; a star marks a headline claim"
        heads = ["verdict", "claim", "printed", "found here"]
        begin = (
            '<div class="result-table cards verdicts" tabindex="0" role="region"'
            f' aria-label="{html.escape(caption)}">'
        )
        made = str(_PARTS.table(caption, heads, rows))
        return made.replace('<div class="cards">', begin, 1)


def _cells(j: Judgement) -> list[str]:
    name = f"{j.claim.id}{' ★' if j.claim.headline else ''}"
    claim = Markup('<b class="id">{}</b> {}{}').format(name, j.claim.claim, _why(j))
    colour = charts.VERDICTS[str(j.verdict)]
    verdict = _HTML.verdict_cell(narrate.word(j), colour, narrate.basis(j))
    return [verdict, claim, narrate.printed_value(j.claim), narrate.found(j)]


def _why(j: Judgement) -> str:
    """Why there is nothing to be found, or why it decides nothing."""
    if j.evidence is None:
        return _PARTS.aside(untold(j)) if j.remarks else ""
    open_ = j.verdict is verdicts.Verdict.INCONCLUSIVE and j.reason
    return _PARTS.aside(f"{j.reason.rstrip('.')}.") if open_ else ""


def untold(j: Judgement) -> str:
    """Why there is nothing to tell: it wasn't tested, or several runs found different things."""
    why = narrate.untold(j)
    said = why if j.verdict is verdicts.Verdict.INCONCLUSIVE else f"Not tested: {why}"
    return _HTML.untold(said)


def as_rows(values: Mapping[str, Any]) -> pd.DataFrame:
    """What and its value, in units that are read: names end on their unit, as in "memory_bytes"."""
    found = []
    for name, value in values.items():
        plain, _, unit = name.rpartition("_")
        if unit == "bytes" and isinstance(value, int):
            name, said = plain, f"{narrate.number(value / 2**30, 1)} GiB"
        elif unit == "seconds" and isinstance(value, int | float):
            power = 0 if value >= 1 else 1 if value >= 1e-3 else 2 if value >= 1e-6 else 3
            name = plain
            said = f"{narrate.number(value * 1000**power)} {('s', 'ms', 'µs', 'ns')[power]}"
        elif isinstance(value, list):
            said = ", ".join(narrate.number(x) if isinstance(x, float) else str(x) for x in value)
        else:
            said = narrate.number(value) if isinstance(value, float) else str(value)
        found.append((name.replace("_", " "), said))
    return pd.DataFrame(provenance.named(dict(found)).items(), columns=["what", "value"])
