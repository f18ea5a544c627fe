"""The book's own pages about all chapters at once: scoreboard, headline, then and now, what
differs.

Everything here is computed from run records, one folder per chapter below `results`, as `book.py`
lays them out beside the executed notebooks; nothing is measured and nothing typed. What a page
shows is HTML that reads without a script; `book/_ext/run_pages.py` puts it into the pages.
Words come from `narrate`, the front page's chart from `charts`.
"""

import html
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pandas as pd

from pgrerun.page import charts, narrate, provenance
from pgrerun.record import agreement, claims, lives, printed, runs
from pgrerun.record.claims import Basis, Claim, Predicate
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Judgement, Part, Verdict

NOT_RUN = "not run"
"""Stands for the verdict of a claim whose chapter has no results here."""

APART = "outside of the score"
"""Stands for the verdict of a claim whose basis is no server that ran here."""

ORDER = (*map(str, Verdict), APART, NOT_RUN)

COLOURS: Mapping[str, str] = charts.VERDICTS | dict.fromkeys(
    (APART, NOT_RUN), charts.VERDICTS[Verdict.NOT_TESTABLE]
)

Judgements = Mapping[str, Judgement]
Link = Callable[[Claim], str]


def records(results: Path) -> dict[str, runs.Record]:
    """The run record beside each executed chapter, by chapter. RecordError where one is damaged."""
    return {
        folder.parent.name: agreement.with_others(runs.load(folder.parent))
        for folder in sorted(results.glob(f"*/{runs.ENVIRONMENT}"))
    }


def judgements(found: Mapping[str, runs.Record]) -> dict[str, Judgement]:
    """The verdicts of the records by claim; one that the ledger has changed its mind about counts
    as not run. Of the published run those that all published runs give together.
    """
    kept = (
        Judgement.from_dict(verdict) for record in found.values() for verdict in record.verdicts
    )
    judged = {judgement.claim.id: judgement for judgement in kept if judgement}
    given = [record.given for record in found.values()]
    return {
        claim: agreement.together(one, next((each[claim] for each in given if claim in each), []))
        for claim, one in judged.items()
    }


def verdict(judged: Judgements, claim: str) -> str:
    return str(judged[claim].verdict) if claim in judged else NOT_RUN


def counted_as(judged: Judgements, claim: Claim) -> str:
    """Its verdict, or that it stands outside of the score."""
    return verdict(judged, claim.id) if claim.scored or claim.id not in judged else APART


def tally(judged: Judgements) -> dict[str, int]:
    """How many of all claims have which verdict, in the order that they are told in; no zeros."""
    count = Counter(counted_as(judged, claim) for claim in claims.ledger().values())
    return {name: count[name] for name in ORDER if count[name]}


# ---- the front page

_DRAWN, _LONGEST = 12, 76  # published effects on its chart, and the letters of a name there


def headline(judged: Judgements) -> str:
    """The scoreboard in one glance: a bar per verdict, each a link to its claims."""
    counted = tally(judged)
    all_claims = sum(counted.values())
    said = f"{narrate.summary(judged.values())} " if judged else ""
    left = counted.get(NOT_RUN, 0)
    said += (
        f"{narrate.count(left, 'claim')} of {narrate.number(all_claims)}"
        f" {'has' if left == 1 else 'have'} not been run here."
        if left
        else ""
    )
    bars = "".join(
        f'<li style="--share:{count / max(counted.values()):.3f};--verdict:{COLOURS[name]}"><a'
        f' href="scoreboard.html?verdict={html.escape(name.replace(" ", "+"))}"><b>{count}</b>'
        f" {name}</a></li>"
        for name, count in counted.items()
    )
    return f'<p class="tally-words">{html.escape(said.strip())}</p><ul class="tally">{bars}</ul>'


def then_and_now(found: Mapping[str, runs.Record]) -> charts.Figure | None:
    """Every claim with a printed and a measured ratio as a line from the one to the other.

    None where there is none. Effects are read in the claimed direction, so that 1 is no effect and
    less than 1 the opposite. Drawn are headline claims and those that have moved farthest, as many
    as a reader takes in at once; not those on which the published runs differ.
    """
    split = {
        claim
        for record in found.values()
        for claim, given in record.given.items()
        if len(set(given)) > 1
    }
    measured = {claim: j for claim, j in judgements(found).items() if _measured_ratio(j)}
    ratios = [j for claim, j in measured.items() if claim not in split]
    if not ratios:
        return None
    drawn = sorted(ratios, key=lambda j: (not j.claim.headline, -abs(math.log(_change(j)))))
    drawn = sorted(drawn[:_DRAWN], key=_change)
    turned = sum(j.verdict is Verdict.REVERSED for j in ratios)
    less = sum(_claimed(j).high < _effect_of(j.claim) for j in ratios) - turned
    more = sum(_claimed(j).low > _effect_of(j.claim) for j in ratios)
    result = (
        f"Of {narrate.count(len(ratios), 'effect')} judged by their printed size,"
        f" {less or 'none'} {'is' if less == 1 else 'are'} significantly smaller today,"
        f" {turned or 'none'} reversed and {more or 'none'} significantly larger."
    )
    if apart := len(measured) - len(ratios):
        result += f" Left out: {apart} more, on which the published runs differ."
    shown = (
        f"Drawn are {len(drawn)} of them: headline claims, then those that have moved farthest. "
        if len(drawn) < len(ratios)
        else ""
    )
    names = drawn_names([j.claim for j in drawn])
    return charts.compare(
        [row for j in drawn for row in ends(j, names[j.claim.id])],
        charts.Words(
            question="What has become of the published effects?",
            caption=(
                f"{shown}A line leads from the printed effect to the one that this run found,"
                " with its interval. An effect of 1 is none; left of it the claim is turned round."
            ),
            name="then-and-now",
            result=lambda _: result,
        ),
        charts.Axis("effect, as a ratio", log=True),
        reference=charts.Reference(1, "no effect"),
        joined=True,
    )


def _measured_ratio(j: Judgement) -> bool:
    """Whether it prints one effect and the score has a measured one."""
    found = j.evidence
    positive = isinstance(found, Interval) and found.low > 0 and math.isfinite(found.high)
    one = j.claim.predicate is Predicate.RATIO and j.claim.printed is not None
    return j.claim.scored and one and positive and j.verdict is not Verdict.NOT_TESTABLE


def _effect_of(claim: Claim) -> float:
    return max(claim.printed, 1 / claim.printed)


def _claimed(j: Judgement) -> Interval:
    """The interval in the direction that the claim has."""
    return j.evidence.inverse() if j.claim.printed < 1 else j.evidence


def drawn_names(drawn: Sequence[Claim]) -> dict[str, str]:
    """Names by claim: id and quantity, cut before what it is relative to, in the middle if only the
    ends differ.
    """
    whole = {claim.id: f"{claim.id}: {claim.quantity}".rstrip(",") for claim in drawn}
    short = {one: _cut(name) for one, name in whole.items()}
    said = Counter(name.removeprefix(one) for one, name in short.items())
    half = _LONGEST // 2
    for one, name in whole.items():
        if said[short[one].removeprefix(one)] > 1 and len(name) > _LONGEST:
            begin, end = name[:half].rpartition(" ")[0], name[-half:].partition(" ")[2]
            short[one] = f"{begin} … {end}"
    return short


def _cut(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    head = textwrap.shorten(name, _LONGEST, placeholder="")
    return f"{head.partition(' relative')[0].rstrip(',')}…"


def ends(j: Judgement, name: str) -> Iterator[dict]:
    """A claim's printed and measured effect as a chart's rows."""
    yield charts.row(name, "printed", _effect_of(j.claim))
    yield charts.row(name, "measured", _claimed(j))


def _change(j: Judgement) -> float:
    """The effect found over the printed one."""
    return _claimed(j).estimate / _effect_of(j.claim)


def _printed_year(claim: Claim) -> int:
    return printed.DOCUMENTS[claim.document].year


# ---- a picture of it, for a page that isn't ours

_PICTURE_STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI','Liberation"
    " Sans',sans-serif;fill:#1c2024}.said{font-size:17px;font-weight:600}"
    ".small{font-size:11.5px;fill:#59616b}@media(prefers-color-scheme:dark){text{fill:#e8eaed}.small{fill:#a5adb8}}"
)
_PICTURE_WIDTH, _NAMES, _STEP, _KEYS = 760, 110, 14.5, 4


def picture(found: Mapping[str, runs.Record]) -> str:
    """The headline as an SVG that stands alone: each claim a square in the colour of its verdict, a
    row or more per chapter.

    `found` are a run's records by chapter. The same records give the same text.
    """
    judged, ledger = judgements(found), list(claims.ledger().values())
    counted = tally(judged)
    first = {claim.chapter: _printed_year(claim) for claim in reversed(ledger)}
    years = f"{min(first.values())} to {max(first.values())}"
    parts = [
        f'<text class="said" x="0" y="20">{narrate.count(len(ledger), "claim")} about database'
        f" performance, {years}, rerun</text>"
    ]
    for n, (name, count) in enumerate(counted.items()):
        x, y = n % _KEYS * _PICTURE_WIDTH / _KEYS, 36 + n // _KEYS * 22
        parts.append(
            f'{_square(x, y, name)}<text x="{x + 18:g}" y="{y + 11:g}"><tspan'
            f' font-weight="700">{count}</tspan> {html.escape(name)}</text>'
        )
    y = 52 + -(-len(counted) // _KEYS) * 22
    across = int((_PICTURE_WIDTH - _NAMES) / _STEP)
    for chapter in sorted(first, key=first.get):
        parts.append(
            '<text class="small" x="0"'
            f' y="{y + 10:g}">{html.escape(chapter.replace("_", " "))}</text>'
        )
        verdicts = sorted(
            (counted_as(judged, claim) for claim in ledger if claim.chapter == chapter),
            key=ORDER.index,
        )
        parts += [
            _square(_NAMES + n % across * _STEP, y + n // across * _STEP, name)
            for n, name in enumerate(verdicts)
        ]
        y += -(-len(verdicts) // across) * _STEP + 7
    said = f"{narrate.summary(judged.values())} {_where_from(found)}"
    parts.append(
        f'<text class="small" x="0" y="{y + 12:g}">{html.escape(_where_from(found))}</text>'
    )
    size = f'width="{_PICTURE_WIDTH}" height="{y + 20:g}" viewBox="0 0 {_PICTURE_WIDTH} {y + 20:g}"'
    body = "\n".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img"'
        f" {size}><title>{html.escape(said)}</title><style>{_PICTURE_STYLE}</style>\n"
        f"{body}\n</svg>\n"
    )


def _square(x: float, y: float, name: str) -> str:
    """Of a claim that is in no score only the outline, dashed if it was not run."""
    fill = f'fill="{COLOURS[name]}"'
    if name in (APART, NOT_RUN):
        dashes = ' stroke-dasharray="2 2"' if name == NOT_RUN else ""
        fill = f'fill="none" stroke="{COLOURS[name]}"{dashes}'
    return f'<rect x="{x + 0.5:g}" y="{y + 0.5:g}" width="11" height="11" rx="1.5" {fill}/>'


def _where_from(found: Mapping[str, runs.Record]) -> str:
    environments = [record.environment for record in found.values()]
    releases = sorted({environment["server"]["version"] for environment in environments})
    machines = sorted(
        {
            environment["machine"]["cpu_model"] or environment["machine"]["architecture"]
            for environment in environments
        }
    )
    finished = max((record.finished[:10] for record in found.values()), default="")
    return (
        f"PostgreSQL {', '.join(releases)} on {', '.join(machines)}, {finished}"
        if found
        else "No chapter was run."
    )


# ---- the scoreboard


def board(judged: Judgements, link: Link, titles: Mapping[str, str]) -> str:
    """All claims as a table, with the filters that the page's script uses.

    `link` gives the address where a claim is judged, `titles` a chapter's name in words.
    """
    ledger = claims.ledger().values()
    rows = [_row(claim, judged.get(claim.id), link(claim), titles) for claim in ledger]
    alone = _only_apart(judged)
    rows = [
        (attributes + _findable_by(verdict(judged, claim.id), alone), cells)
        for claim, (attributes, cells) in zip(ledger, rows)
    ]
    heads = ["claim", "printed", "found here", "effect", "verdict"]
    every = table("All claims", heads, rows)
    return f'<div class="scoreboard">{_filters(judged, titles)}{every}</div>'


def _filters(judged: Judgements, titles: Mapping[str, str]) -> str:
    ledger = list(claims.ledger().values())
    choices = {
        "document": {c.document: c.document_name.removeprefix("the ") for c in ledger},
        "chapter": {c.chapter: titles.get(c.chapter, c.chapter) for c in ledger},
        "kind": {c.kind: c.kind for c in ledger},
        "basis": {str(c.basis): str(c.basis) for c in sorted(ledger, key=_basis_order)},
        "verdict": {name: name for name in [*tally(judged), *_only_apart(judged)]},
    }
    selects = "".join(
        f'<label>{name}<select name="{name}"><option value="">all</option>'
        + "".join(
            f'<option value="{html.escape(value)}">{html.escape(words)}</option>'
            for value, words in options.items()
        )
        + "</select></label>"
        for name, options in choices.items()
    )
    search = '<label>search<input type="search" name="search" autocomplete="off"></label>'
    only = (
        '<label class="only"><input type="checkbox" name="headline" value="yes"> headline claims'
        " only</label>"
    )
    # Shown by the script: without one there is nothing that could filter.
    return (
        f'<form class="filters" hidden>{selects}{search}{only}<p class="shown"'
        ' role="status"></p></form>'
    )


def _only_apart(judged: Judgements) -> list[str]:
    """Words that only claims outside of the score have."""
    counted = tally(judged)
    given = {verdict(judged, claim) for claim in claims.ledger()}
    return [name for name in ORDER if name in given and name not in counted]


def _findable_by(word: str, alone: Sequence[str]) -> str:
    """The attribute by which the filter finds a word of those that stand `alone`."""
    return f' data-word="{html.escape(word)}"' if word in alone else ""


def _basis_order(claim: Claim) -> int:
    return list(Basis).index(claim.basis)


def _row(
    claim: Claim, judged: Judgement | None, address: str, titles: Mapping[str, str]
) -> tuple[str, list[str]]:
    """A row's attributes, by which the script filters, and its cells."""
    name = str(judged.verdict) if judged else NOT_RUN
    facts = {
        "document": claim.document,
        "chapter": claim.chapter,
        "kind": claim.kind,
        "basis": str(claim.basis),
        "verdict": counted_as({claim.id: judged} if judged else {}, claim),
        "headline": "yes" if claim.headline else "",
    }
    data = "".join(f' data-{key}="{html.escape(value)}"' for key, value in facts.items())
    star = (
        ' <span class="star" title="headline claim" role="img" aria-label="headline claim">★</span>'
        if claim.headline
        else ""
    )
    where = (
        f"{claim.source.removeprefix('the ')}, {claim.kind};"
        f" {titles.get(claim.chapter, claim.chapter)}"
    )
    quantity = narrate.quantity(claim).rstrip(",")  # which some have for the verb after them
    cells = [
        (
            f'<a class="id" href="{html.escape(address)}">{claim.id}</a>{star}'
            f" {html.escape(claim.claim)}{_quoted(claim)}{aside(where)}"
        ),
        html.escape(narrate.printed_value(claim)) + aside(more_than_printed(claim)),
        _found(judged, quantity) if judged else "",
        effect(judged) if judged else "",
        (
            f'<a class="verdict" style="--verdict:{COLOURS[name]}" href="{html.escape(address)}"'
            f' aria-label="{name}: {claim.id}">{name}</a>{aside(narrate.basis_in_words(claim))}'
        ),
    ]
    return f' id="{claim.id}"{data}', cells


def aside(words: str) -> str:
    return f'<span class="where">{html.escape(words)}</span>' if words else ""


def _found(j: Judgement, quantity: str) -> str:
    """What was found, and why it decides nothing where it doesn't; without a find, the reason."""
    if j.evidence is None and j.remarks:
        return untold(j)
    open_ = j.verdict is Verdict.INCONCLUSIVE and j.evidence is not None
    why = aside(j.reason) if open_ else ""
    return html.escape(narrate.evidence(j)) + aside(quantity) + why


def untold(j: Judgement) -> str:
    """Why there is nothing to tell: it wasn't tested, or several runs found different things."""
    why = j.remarks.rstrip(".")
    said = why if j.verdict is Verdict.INCONCLUSIVE else f"Not tested: {why}"
    return f'<span class="untested">{html.escape(said)}.</span>'


def _quoted(claim: Claim) -> str:
    return f'<q class="quote">{html.escape(claim.quote)}</q>' if claim.quote else ""


def more_than_printed(claim: Claim) -> str:
    """What a claim is judged against, where what the document prints doesn't say it."""
    alone = claim.predicate not in claims.BOUNDS and narrate.prints_its_size(claim)
    sizes = claim.sizes.values()
    exact = all(narrate.judged_size(claim, x) == narrate.claimed_size(claim, x) for x in sizes)
    return "" if alone and exact else _printed(claim)


def _printed(claim: Claim) -> str:
    """The sizes that the claim is judged against, which the document may print in other words."""
    bound = f"{claim.predicate} " if claim.predicate in claims.BOUNDS else ""
    sizes = ", ".join(
        f"{name} {narrate.judged_size(claim, size)}".strip() for name, size in claim.sizes.items()
    )
    return f"judged against {bound}{sizes}" if sizes else ""


# ---- an effect, drawn small

WIDTH, _EDGE, _LANE = 132.0, 8.0, 12.0
_MOST_LANES = 8


def effect(j: Judgement) -> str:
    """The evidence as a small picture: intervals beside the print, or a square per fact; "" where
    there is nothing to draw.
    """
    if j.claim.predicate is Predicate.FACTS and isinstance(j.evidence, Mapping):
        return _squares(j, j.evidence)
    if j.claim.predicate is Predicate.BUG or j.evidence is None:
        return ""
    values = [part.value for part in j.parts.values() if isinstance(part.value, Interval)]
    return _intervals(j, values[:_MOST_LANES])


def _picture(label: str, height: float, body: str) -> str:
    size = f'width="{WIDTH:g}" height="{height:g}" viewBox="0 0 {WIDTH:g} {height:g}"'
    return f'<svg role="img" aria-label="{html.escape(label)}" {size}>{body}</svg>'


def _squares(j: Judgement, facts: Mapping[str, Part]) -> str:
    """Facts as claimed are filled, unresolved ones dashed, supporting ones small."""
    colour = charts.MARKS["measured"].colour
    step = min(14.0, (WIDTH - 2) / len(facts))
    body = ""
    for n, part in enumerate(facts.values()):
        size = (step - 4) * (1 if part.essential else 0.6)
        tall = 10.0 if part.essential else 6.0
        dashes = ' stroke-dasharray="2 2"' if part.value is None else ""
        body += (
            f'<rect x="{1.5 + n * step:.1f}" y="{12.5 - tall:g}" width="{size:.1f}"'
            f' height="{tall:g}" fill="{colour if part.value else "none"}" stroke="{colour}"'
            f' stroke-width="1.5"{dashes}/>'
        )
    return _picture(narrate.evidence(j), 15, body)


def _intervals(j: Judgement, several: list[Interval]) -> str:
    none = [1.0] if j.claim.predicate in claims.WITH_MARGIN else []
    print_ = sorted({end for size in j.claim.sizes.values() for end in size})
    place = axis_place(
        [x for interval in several for x in (interval.low, interval.high)] + print_ + none
    )
    height = max(_LANE * len(several), _LANE) + 4
    body = "".join(
        f'<path class="nothing" d="M{place(x):.1f} 0V{height:g}"'
        f' stroke="{charts.MARKS["published"].colour}" stroke-dasharray="3 2"/>'
        for x in none
    )
    body += "".join(
        _mark(interval, place, 2 + _LANE * (n + 0.5)) for n, interval in enumerate(several)
    )
    colour = charts.MARKS["printed"].colour
    body += "".join(
        f'<path d="M{place(x):.1f} {height / 2 - 5:g}l5 5-5 5-5-5z" fill="none" stroke="{colour}"'
        ' stroke-width="1.6"/>'
        for x in print_
    )
    words = [f"printed {narrate.number(x)}" for x in print_] + [f"found {narrate.evidence(j)}"]
    return _picture("; ".join(words), height, body)


def _mark(found: Interval, place: Callable[[float], float], y: float) -> str:
    mark = charts.MARKS["simulated" if found.simulated else "measured"]
    low, middle, high = (place(x) for x in (found.low, found.estimate, found.high))
    rule = (
        f'<path d="M{low:.1f} {y:g}H{high:.1f}" stroke="{mark.colour}" stroke-width="2"/>'
        if high > low
        else ""
    )
    if found.simulated:
        return (
            rule + f'<rect x="{middle - 3.5:.1f}" y="{y - 3.5:g}" width="7" height="7" fill="none"'
            f' stroke="{mark.colour}" stroke-width="1.5" stroke-dasharray="2.5 1.8"/>'
        )
    return rule + f'<circle cx="{middle:.1f}" cy="{y:g}" r="3.6" fill="{mark.colour}"/>'


def axis_place(values: list[float]) -> Callable[[float], float]:
    """From a number to its place: logarithmic where all are positive, wide enough that nothing lies
    on the edge.
    """
    finite = [x for x in values if math.isfinite(x)]
    logarithmic = min(finite, default=0) > 0
    scale = math.log if logarithmic else float
    low, high = scale(min(finite, default=0.0)), scale(max(finite, default=1.0))
    least = (
        math.log(1.5) if logarithmic else 1e-9 + 0.1 * abs(high)
    )  # two equal numbers stay in the middle
    if high - low < least:
        low, high = (low + high - least) / 2, (low + high + least) / 2

    def place(x: float) -> float:
        share = (
            (scale(x) - low) / (high - low)
            if math.isfinite(x) and not (logarithmic and x <= 0)
            else float(x > 0)
        )
        return _EDGE + (WIDTH - 2 * _EDGE) * min(max(share, 0.0), 1.0)

    return place


# ---- the documents against themselves


def disagreements() -> pd.DataFrame:
    """Where print disagrees with print, all chapters, oldest document first: chapter, document,
    where, printed, recomputed, note.
    """
    first = {claim.chapter: claim for claim in reversed(claims.ledger().values())}
    chapters = sorted(printed.CHAPTERS, key=lambda chapter: _printed_year(first[chapter]))
    names = {chapter: first[chapter].document_name.removeprefix("the ") for chapter in chapters}
    frames = [
        printed.disagreements(chapter).assign(chapter=chapter, document=names[chapter])
        for chapter in chapters
    ]
    return pd.concat(frames, ignore_index=True)


def disagreement_tables(titles: Mapping[str, str], page: Callable[[str], str]) -> str:
    """A table per chapter, the document and the place of each figure in it; `page` gives a
    chapter's address.
    """
    rows = disagreements()
    said = (
        f"<p>{narrate.count(len(rows), 'disagreement')} in"
        f" {narrate.count(rows['document'].nunique(), 'document')}.</p>"
    )
    tables = []
    for chapter, group in rows.groupby("chapter", sort=False):
        name = html.escape(titles.get(chapter, chapter))
        caption = (
            f"{html.escape(group['document'].iloc[0])}, in <a"
            f' href="{html.escape(page(chapter))}">{name}</a>'
        )
        lines = [
            (
                "",
                [html.escape(row[column]) for column in ("where", "printed", "recomputed", "note")],
            )
            for _, row in group.iterrows()
        ]
        tables.append(
            table(caption, ["where", "printed", "recomputed from other figures", "how"], lines)
        )
    return said + "".join(tables)


def table(caption: str, heads: list[str], rows: list[tuple[str, list[str]]]) -> str:
    """A table of HTML cells, whose rows become cards on a phone; roles are said since such rows
    lose their own.
    """
    head = "".join(f'<th role="columnheader" scope="col">{one}</th>' for one in heads)
    lines = (f'<tr role="row"{attributes}>{_cells(heads, row)}</tr>' for attributes, row in rows)
    return (
        f'<div class="cards"><table role="table"><caption>{caption}</caption><thead'
        f' role="rowgroup"><tr role="row">{head}</tr></thead><tbody'
        f' role="rowgroup">{"".join(lines)}</tbody></table></div>'
    )


def _cells(heads: list[str], row: list[str]) -> str:
    return "".join(
        f'<td role="cell" data-label="{head}">{cell}</td>'
        for head, cell in zip(heads, row, strict=True)
    )


# ---- a run beside the published one


def your_run(found: Mapping[str, runs.Record], address: Callable[[str], str]) -> str:
    """Which verdicts differ from the published run's, and what may explain it; `address` gives a
    claim's place on the scoreboard.
    """
    ours = published_records()
    others = {
        chapter: record
        for chapter, record in found.items()
        if chapter in ours and record.finished != ours[chapter].finished
    }
    if not others:
        published = found and found.keys() <= ours.keys()
        return (
            "<p>These pages are made from the published run itself.</p>"
            if published
            else "<p>Nothing was published that these pages could be compared with.</p>"
        )
    rows = [
        (change.Index, change.a, change.b)
        for chapter, record in others.items()
        for change in runs.verdict_changes(record, ours[chapter], agreement.word).itertuples()
    ]
    here, there = judgements(found), judgements(ours)
    judged = sum(claim.chapter in others for claim in claims.ledger().values())
    said = (
        f"Of {narrate.count(judged, 'claim')} that both runs have judged,"
        f" {narrate.count(len(rows), 'verdict')} {'differs' if len(rows) == 1 else 'differ'}."
    )
    lines = [
        (
            "",
            [
                f'<a href="{html.escape(address(claim))}">{html.escape(claim)}</a>',
                _told(claim, a, here),
                _told(claim, b, there),
                html.escape(_why(claim, here, there)),
            ],
        )
        for claim, a, b in rows
    ]
    differing = (
        table("Verdicts that differ", ["claim", "here", "published", "why"], lines) if lines else ""
    )
    return f"<p>{html.escape(said)}</p>{differing}{_surroundings(others, ours)}"


def published_records() -> dict[str, runs.Record]:
    """The committed run, by chapter."""
    return {
        chapter: agreement.with_others(runs.load(runs.PUBLISHED, chapter))
        for chapter in runs.chapters(runs.PUBLISHED)
    }


def _told(claim: str, name: str, judged: Judgements) -> str:
    found = narrate.evidence(judged[claim]) if claim in judged else ""
    return html.escape(f"{name} ({found})" if found else name or NOT_RUN)


def _why(claim: str, here: Judgements, there: Judgements) -> str:
    """What the verdicts' own evidence says about their difference."""
    if claim not in here or claim not in there:
        return "only one of the runs has judged it by the rule of today"
    sides = {"here": here[claim], "published": there[claim]}
    for side, j in sides.items():
        if j.verdict is Verdict.NOT_TESTABLE:
            return f"{side}, {j.capability} is missing"
    for side, j in sides.items():
        if j.verdict is Verdict.INCONCLUSIVE:
            return f"{side}, {j.remarks}" if j.remarks else f"{side}, the interval is too wide"
    if all(isinstance(j.evidence, Interval) for j in sides.values()):
        a, b = (j.evidence for j in sides.values())
        return (
            "the intervals overlap: chance may be enough"
            if a.low <= b.high and b.low <= a.high
            else "the measured effects differ"
        )
    return "what was found differs"


def _surroundings(others: Mapping[str, runs.Record], ours: Mapping[str, runs.Record]) -> str:
    """The differences between machines, versions and settings, each once with the chapters that it
    concerns.
    """
    frames = [
        runs.explanations(record, ours[chapter]).reset_index() for chapter, record in others.items()
    ]
    rows = pd.concat(frames, ignore_index=True)
    if rows.empty:
        return (
            "<p>Machine, versions and settings are the same, so that what differs is chance or the"
            " state of the machine.</p>"
        )
    grouped = rows.groupby(["entry", "a", "b"], sort=False)["chapter"].agg(
        lambda names: "all" if len(names) == len(others) else ", ".join(names)
    )
    lines = [
        ("", [html.escape(text) for text in (_spoken(entry), a or "-", b or "-", which)])
        for (entry, a, b), which in grouped.items()
    ]
    return table(
        "What else differs: machine, versions, settings",
        ["what", "here", "published", "chapters"],
        sorted(lines),
    )


def _spoken(entry: str) -> str:
    """ "machine.filesystem_type" as "machine: file system"."""
    words = entry.replace(".", " ").replace("_", " ")
    first, _, rest = entry.partition(".")
    said = provenance.name(words)
    return said if said != words or not rest else f"{first}: {words.removeprefix(first).strip()}"


# ---- what was found, first

# How much a verdict surprises somebody who has read the document.
_SURPRISE = {
    Verdict.REVERSED: 5,
    Verdict.GONE: 4,
    Verdict.NOT_REPRODUCED: 4,
    Verdict.STRONGER: 2,
    Verdict.WEAKER: 2,
    Verdict.STILL_THERE: 2,
    Verdict.HOLDS: 1,
    Verdict.FIXED: 1,
}


def findings(
    judged: Judgements, most: int, of_a_chapter: int, numbered: bool = False
) -> list[Judgement]:
    """The verdicts worth telling first, at most so many in all and `of_a_chapter`.

    Only decided ones that are in the score, or those of no document where there are no others, or
    else those that stand apart from both.
    Headline claims come before others, then those whose verdict surprises more, then those whose
    effect has moved farther from the printed one; of those that are told, what was found comes
    before what was only refuted. Of several that rest on the same numbers the first is told. With
    `numbered` only those that a number decides, which a picture can show beside the printed one.
    """
    answered = (
        [j for j in judged.values() if j.claim.scored]
        or [j for j in judged.values() if j.claim.basis in claims.SCORED]
        or list(judged.values())
    )
    decided = [j for j in answered if j.verdict in _SURPRISE and (not numbered or _numbered(j))]
    decided.sort(key=lambda j: (not j.claim.headline, -_SURPRISE[j.verdict], -_moved(j)))
    told: Counter[str] = Counter()
    kept = []
    for j in decided:
        room = len(kept) < most and told[j.claim.chapter] < of_a_chapter
        if room and not any(_same_numbers(j, other) for other in kept):
            told[j.claim.chapter] += 1
            kept.append(j)
    return sorted(kept, key=lambda j: (not j.claim.headline, narrate.is_denial(j)))


def _numbered(j: Judgement) -> bool:
    return any(isinstance(part.value, Interval) for part in j.parts.values())


def _same_numbers(one: Judgement, other: Judgement) -> bool:
    """Whether both rest on the same measured numbers; counts may be the same by chance."""
    ours, theirs = _measured_ends(one), _measured_ends(other)
    return bool(ours) and ours == theirs


def _measured_ends(j: Judgement) -> set[tuple[float, float, float]]:
    values = [part.value for part in j.parts.values()]
    return {(x.low, x.estimate, x.high) for x in values if isinstance(x, Interval) and not x.exact}


def _moved(j: Judgement) -> float:
    """How far a measured effect lies from the printed one, as a logarithm of their ratio."""
    return abs(math.log(j.evidence.estimate / j.claim.printed)) if _measured_ratio(j) else 0.0


def marks(found: Sequence[Judgement]) -> str:
    """What the marks mean that are in the small pictures of these; "" where there is no picture."""
    values = [part.value for j in found for part in j.parts.values()]
    intervals = [value for value in values if isinstance(value, Interval)]
    facts = [j for j in found if j.claim.predicate is Predicate.FACTS and effect(j)]
    told = [
        (any(j.claim.sizes and _numbered(j) for j in found), "a diamond is the printed number"),
        (
            any(not one.simulated for one in intervals),
            "a dot is the measured one, with its interval",
        ),
        (any(one.simulated for one in intervals), "a dashed square is a simulated one"),
        (
            any(j.claim.predicate in claims.WITH_MARGIN and _numbered(j) for j in found),
            "the dashed line is no effect",
        ),
        (facts, "a square is a fact, filled if it is as claimed, small if it only supports that"),
    ]
    said = "; ".join(words for holds, words in told if holds)
    return f'<p class="marks">In the small pictures: {said}.</p>' if said else ""


def finding_list(found: list[Judgement], link: Link) -> str:
    """Findings as a list: what was measured, its verdict, a small picture; then what the document
    says, and a link to the place. Above it is what the pictures' marks are.
    """
    items, told = [], Counter(narrate.finding(j) for j in found)
    for j in found:
        color, word = COLOURS[str(j.verdict)], str(j.verdict)
        sentence = narrate.finding(j)
        source = f"{j.claim.document_name[:1].upper()}{j.claim.document_name[1:]}"
        if told[sentence] > 1:  # facts that several claims share tell none of them
            sentence = narrate.Sentence(j.claim.claim)
        elif j.claim.predicate is not Predicate.BUG:  # which the finding has told
            source += f": {j.claim.claim}"
        slowed = "".join(f' <span class="basis">{one}</span>' for one in narrate.slowed(j))
        items.append(
            f'<li style="--verdict:{color}"><div><p>{html.escape(sentence)} <span'
            f' class="chip">{word}</span>{slowed}</p>'
            f'<p class="claimed">{html.escape(source)}'
            f' <a href="{html.escape(link(j.claim))}">{j.claim.id}</a></p></div>{effect(j)}</li>'
        )
    return f'{marks(found)}<ul class="findings">{"".join(items)}</ul>'


def what_changed(record: runs.Record, link: Callable[[str], str]) -> str:
    """Which claims have another word on another release, of a record that has claims' lives.

    HTML as `finding_list` makes it, empty where no claim was judged on releases.
    """
    seen = record.observations
    found = lives.read(seen[seen["experiment"] == lives.EXPERIMENT])
    if found.empty:
        return ""
    releases = sorted(set(found["release"]), key=lives.place)
    changed = lives.changes(found)
    different = changed["claim"].nunique()
    said = (
        f"{narrate.count(found['claim'].nunique(), 'claim')} of other chapters were judged on"
        f" {narrate.count(len(releases), 'release')}, {releases[0]} to {releases[-1]}. The"
        f" verdict on {narrate.count(different, 'claim')} changes on the way."
    )
    items = "".join(
        f'<li style="--verdict:{COLOURS[row.after]}"><div><p>Since {row.since}:'
        f' {html.escape(row.what_it_says)} <span class="chip">{row.after}</span></p>'
        f'<p class="claimed">Until {row.until}: {row.before}.'
        f' <a href="{html.escape(link(row.claim))}">{row.claim}</a></p></div></li>'
        for row in changed.itertuples()
    )
    return f"<p>{html.escape(said)}</p>" + (f'<ul class="findings">{items}</ul>' if items else "")


_FOUND = 5  # findings at the head of a chapter


def what_we_found(judged: Judgements, changed: str = "") -> str:
    """The head of a chapter: how its claims fared, and the verdicts worth telling first.

    `changed` is what is told before those, of which there are then fewer.
    """
    most = max(1, _FOUND - changed.count("<li "))
    told = findings(judged, most, of_a_chapter=most)
    listed = finding_list(told, lambda claim: f"#{claim.id}") if told else ""
    if not told and any(j.claim.scored for j in judged.values()):
        listed = "<p>No claim of this chapter that is put to a server was decided here.</p>"
    said = f"<p>{html.escape(narrate.summary(judged.values()))}</p>"
    head = f'<p class="heading">What we found</p>{changed}'
    return f'<div class="what-we-found">{head}{listed}{said}</div>'


def _numbers(j: Judgement) -> str:
    """What was found beside what is printed."""
    found = narrate.evidence(j) if j.evidence is not None else ""
    said = _printed(j.claim)
    if j.claim.published_value and j.claim.predicate not in claims.BOUNDS:
        said = said.replace("judged against", "printed", 1)
    print_ = f"; {html.escape(said)}" if said and found else ""
    return f"<b>{html.escape(found)}</b>{print_}" if found else ""


# ---- a verdict in its chapter


def verdict_line(j: Judgement, board: str, given: Sequence[str] = ()) -> tuple[str, str]:
    """HTML before and after the sentence about a verdict: its line, below which that is folded.

    `board` is the scoreboard's address. The line has word, claim, number beside print, and basis.
    `given` are the words of several runs, of which the sentence is the first one's.
    """
    claim, name = j.claim, str(j.verdict)
    differ = len(set(given)) > 1
    several = (
        f"<p>{html.escape(agreement.differing(given))}. What follows is the first run's.</p>"
        if differ
        else ""
    )
    # beside a number of one run the word of several would read as a mistake
    rests_on = ", ".join([claim.basis, *narrate.slowed(j), *(["runs differ"] if differ else [])])
    begin = (
        f'<div class="verdict-line" id="{claim.id}" style="--verdict:{COLOURS[name]}"><details>'
        f'<summary><span class="chip">{name}</span> {html.escape(claim.claim)}'
        f' <span class="numbers">{_numbers(j)}</span> <span class="basis">{rests_on}</span>'
        f"</summary>{several}"
    )
    end = f'</details><a href="{html.escape(board)}#{claim.id}">{claim.id}</a></div>'
    return begin, end


# ---- the end of a chapter


def page_record(record: runs.Record, downloads: Mapping[str, str]) -> str:
    """What a chapter's page was made from, in a sentence, and its downloads (address by name)."""
    environment = record.environment
    machine, server, given = (environment[part] for part in ("machine", "server", "parameters"))
    commit = environment.get("commit", "")
    took = f" after {narrate.number(_seconds(record), 0)} s" if record.started else ""
    said = (
        f"This page shows the run “{record.name}” (profile {given['profile']}), finished on"
        f" {provenance.when(record.finished)}{took}, on PostgreSQL {server['version']}"
        f" ({server['name']}),"
        f" {machine['cpu_model'] or machine['architecture']} with"
        f" {narrate.count(machine['cpus'], 'processor')} and"
        f" {narrate.number(machine['memory_bytes'] / 2**30, 1)} GiB,"
        f" {machine['distribution'] or machine['system']}"
        + (f"; commit {commit[:10]}{commit[40:]}." if commit else ".")
    )
    links = "".join(
        f'<li><a href="{html.escape(address)}" download>{html.escape(name)}</a></li>'
        for name, address in downloads.items()
    )
    return f'<div class="page-record"><p>{html.escape(said)}</p><ul>{links}</ul></div>'


def _seconds(record: runs.Record) -> float:
    return (
        datetime.fromisoformat(record.finished) - datetime.fromisoformat(record.started)
    ).total_seconds()
