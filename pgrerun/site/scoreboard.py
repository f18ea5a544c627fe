"""The book's own pages about all chapters at once: scoreboard, headline, what differs.

Everything here is computed from run records, one folder per chapter below `results`, as `book.py`
lays them out beside the executed notebooks; nothing is measured and nothing typed. What a page
shows is HTML that reads without a script, from the macros of `page/templates/scoreboard.html`;
`book/_ext/run_pages.py` puts it into the pages.
Words come from `narrate`.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pandas as pd

from pgrerun import parameters
from pgrerun.page import charts, narrate, provenance, shown
from pgrerun.page.markup import macros
from pgrerun.record import agreement, claims, history, printed, runs
from pgrerun.record.claims import Basis, Claim, Predicate
from pgrerun.record.statistics import Interval, NoiseFloor
from pgrerun.record.verdicts import Judgement, Part, Verdict

NOT_RUN = "not run"
"""Stands for the verdict of a claim whose chapter has no results here."""

APART = "outside of the score"
"""Stands for the verdict of a claim whose basis is no server that ran here."""

ORDER = (*map(str, Verdict), APART, NOT_RUN)

_HOLLOW = (APART, NOT_RUN)
COLOURS: Mapping[str, str] = charts.VERDICTS | dict.fromkeys(
    _HOLLOW, charts.VERDICTS[Verdict.NOT_TESTED]
)

_HTML, _PARTS = macros("scoreboard"), macros("table")
table, paragraph = _PARTS.table, _PARTS.paragraph

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
    return _HTML.headline(said.strip(), counted, COLOURS)


def _printed_year(claim: Claim) -> int:
    return printed.DOCUMENTS[claim.document].year


# ---- a picture of it, for a page that isn't ours

_PICTURE_WIDTH, _NAMES, _STEP, _KEYS = 760, 110, 14.5, 4


def picture(found: Mapping[str, runs.Record]) -> str:
    """The headline as an SVG that stands alone: each claim a square in the colour of its verdict, a
    row or more per chapter.

    `found` are a run's records by chapter. The same records give the same text.
    """
    judged, ledger = judgements(found), claims.ledger()
    counted = tally(judged)
    printed_in = [_printed_year(claim) for claim in ledger.values()]
    years = f"{min(printed_in)} to {max(printed_in)}"
    legend = [
        (n % _KEYS * _PICTURE_WIDTH / _KEYS, 36 + n // _KEYS * 22, name, count)
        for n, (name, count) in enumerate(counted.items())
    ]
    y = 52 + -(-len(counted) // _KEYS) * 22
    across = int((_PICTURE_WIDTH - _NAMES) / _STEP)
    chapters = []
    for chapter, ours in _by_chapter(judged).items():
        squares = [
            (_NAMES + n % across * _STEP, y + n // across * _STEP, name)
            for n, (_, name) in enumerate(_by_name(ours))
        ]
        chapters.append((y, chapter.replace("_", " "), squares))
        y += -(-len(ours) // across) * _STEP + 7
    return _HTML.poster(
        f"{narrate.summary(judged.values())} {_where_from(found)}",
        f"{narrate.count(len(ledger), 'claim')} about database performance, {years}, rerun",
        _where_from(found),
        _PICTURE_WIDTH,
        y + 20,
        legend,
        chapters,
        COLOURS,
        _HOLLOW,
    )


def _by_chapter(judged: Judgements) -> dict[str, list[tuple[Claim, str]]]:
    """Each chapter's claims with the name that they are counted by; chapters in the order of the
    book's contents.
    """
    found: dict[str, list[tuple[Claim, str]]] = {name: [] for name in parameters.chapters()}
    for claim in claims.ledger().values():
        found.setdefault(claim.chapter, []).append((claim, counted_as(judged, claim)))
    return {chapter: ours for chapter, ours in found.items() if ours}


def _by_name(ours: Sequence[tuple[Claim, str]]) -> list[tuple[Claim, str]]:
    return sorted(ours, key=lambda one: ORDER.index(one[1]))


def overview(judged: Judgements, titles: Mapping[str, str]) -> str:
    """The same above the board: each square leads to its claim, each chapter to its table."""
    rows = [
        (chapter, titles.get(chapter, chapter), _by_name(ours))
        for chapter, ours in _by_chapter(judged).items()
    ]
    return _HTML.overview(tally(judged), rows, COLOURS, _HOLLOW)


def measured_on(found: Mapping[str, runs.Record]) -> dict[str, str]:
    """Release, machine and date of each chapter's run."""
    return {chapter: _where_from({chapter: record}) for chapter, record in found.items()}


def _where_from(found: Mapping[str, runs.Record]) -> str:
    environments = [record.environment for record in found.values()]
    releases = sorted({environment["server"]["version"] for environment in environments})
    machines = sorted({provenance.processor(one["machine"]) for one in environments})
    finished = max((record.finished[:10] for record in found.values()), default="")
    return (
        f"PostgreSQL {', '.join(releases)} on {', '.join(machines)}, {finished}"
        if found
        else "No chapter was run."
    )


# ---- the scoreboard


def board(
    judged: Judgements,
    link: Link,
    titles: Mapping[str, str],
    measured_on: Mapping[str, str],
    advice: Mapping[str, Mapping[str, str]],
) -> str:
    """All claims, a table for each chapter, with the filters that the page's script uses.

    `link` gives the address where a claim is judged, `titles` a chapter's name in words,
    `measured_on` on what it ran, `advice` the settings that a claim concerns, each with the address
    of what to do about it.
    """
    alone, changes = _only_apart(judged), history.load()
    tested = _tested(judged)
    groups = []
    for chapter, ours in _by_chapter(judged).items():
        title, rows = titles.get(chapter, chapter), []
        for claim, _ in sorted(ours, key=lambda one: one[0].id not in tested):
            j, told = judged.get(claim.id), changes.get(claim.id, [])
            attributes, cells = _row(claim, j, link(claim), title, advice.get(claim.id, {}), told)
            word = verdict(judged, claim.id)  # of those that the filter finds no other way
            rows.append((attributes | ({"data-word": word} if word in alone else {}), cells))
        groups.append((chapter, title, measured_on.get(chapter, ""), rows))
    return _HTML.board(narrate.untested(judged.values()), _choices(judged, groups, alone), groups)


def _tested(judged: Judgements) -> set[str]:
    return {claim for claim, j in judged.items() if j.verdict is not Verdict.NOT_TESTED}


def _choices(
    judged: Judgements, groups: Sequence[tuple], alone: Sequence[str]
) -> dict[str, dict[str, str]]:
    """What each filter offers, in the order in which the script sorts by it; `alone` are verdicts
    of claims outside of the score only.
    """
    ledger = sorted(claims.ledger().values(), key=_printed_year)
    bases = {claim.basis for claim in ledger}
    return {
        "document": {c.document: c.document_name.removeprefix("the ") for c in ledger},
        "chapter": {chapter: title for chapter, title, *_ in groups},
        "kind": {c.kind: c.kind for c in ledger},
        "basis": {str(basis): str(basis) for basis in Basis if basis in bases},
        "verdict": {name: name for name in [*tally(judged), *alone]},
    }


def _only_apart(judged: Judgements) -> list[str]:
    """Words that only claims outside of the score have."""
    counted = tally(judged)
    given = {verdict(judged, claim) for claim in claims.ledger()}
    return [name for name in ORDER if name in given and name not in counted]


def _row(
    claim: Claim,
    judged: Judgement | None,
    address: str,
    title: str,
    advice: Mapping[str, str],
    changes: Sequence[history.Change],
) -> tuple[dict[str, str], list[str]]:
    """A row's attributes, by which the script filters, and its cells."""
    name = str(judged.verdict) if judged else NOT_RUN
    word = narrate.word(judged) if judged else NOT_RUN
    rests_on = "; ".join(
        [narrate.basis_in_words(claim), *(narrate.cautions(judged) if judged else [])]
    )
    attributes = {
        "id": claim.id,
        "data-document": claim.document,
        "data-chapter": claim.chapter,
        "data-kind": claim.kind,
        "data-basis": str(claim.basis),
        "data-verdict": counted_as({claim.id: judged} if judged else {}, claim),
        "data-headline": "yes" if claim.headline else "",
    }
    where = f"{claim.source.removeprefix('the ')}, {claim.kind}; {title}"
    told = [(one, _told_change(one)) for one in changes]
    quantity = narrate.quantity(claim).rstrip(",")  # which some have for the verb after them
    cells = [
        _HTML.claim_cell(claim, address, where, advice, told),
        _HTML.with_aside(narrate.printed_value(claim), more_than_printed(claim)),
        _found(judged, quantity) if judged else "",
        effect(judged) if judged else "",
        _HTML.verdict_cell(word, COLOURS[name], rests_on),
    ]
    return attributes, cells


def _told_change(one: history.Change) -> str:
    if one.changed == history.FROZEN:
        return "rule frozen"
    if not one.old:
        return f"first published: {one.new}"
    if one.old == one.new:
        return f"another rule, still {one.new}"
    by = "rule and measurement" if one.changed == "both" else one.changed
    return f"{one.old}, then {one.new}, by another {by}"


def _found(j: Judgement, quantity: str) -> str:
    """What was found, and why it decides nothing where it doesn't; without a find, the reason."""
    if j.evidence is None and j.remarks:
        return _HTML.with_aside(shown.untold(j), narrate.found(j))
    open_ = j.verdict is Verdict.INCONCLUSIVE and j.evidence is not None
    return _HTML.with_aside(narrate.evidence(j), quantity, j.reason if open_ else "")


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


def _squares(j: Judgement, facts: Mapping[str, Part]) -> str:
    """Facts as claimed are filled, unresolved ones dashed, supporting ones small."""
    step = min(14.0, (WIDTH - 2) / len(facts))
    squares = [
        (part, 1.5 + n * step, (step - 4) * (1 if part.essential else 0.6), tall)
        for n, part in enumerate(facts.values())
        for tall in (10.0 if part.essential else 6.0,)
    ]
    return _HTML.fact_squares(narrate.evidence(j), WIDTH, charts.MARKS["measured"].colour, squares)


def _intervals(j: Judgement, several: list[Interval]) -> str:
    none = [1.0] if j.claim.predicate in claims.WITH_MARGIN else []
    print_ = sorted({end for size in j.claim.sizes.values() for end in size})
    place = axis_place(
        [x for interval in several for x in (interval.low, interval.high)] + print_ + none
    )
    height = max(_LANE * len(several), _LANE) + 4
    found = [(interval, 2 + _LANE * (n + 0.5)) for n, interval in enumerate(several)]
    words = [f"printed {narrate.number(x)}" for x in print_] + [f"found {narrate.evidence(j)}"]
    return _HTML.intervals(
        "; ".join(words), WIDTH, height, place, none, found, print_, charts.MARKS
    )


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
        f"{narrate.count(len(rows), 'disagreement')} in"
        f" {narrate.count(rows['document'].nunique(), 'document')}."
    )
    columns = ["where", "printed", "recomputed", "note"]
    tables = [
        (
            group["document"].iloc[0],
            page(chapter),
            titles.get(chapter, chapter),
            [({}, row) for row in group[columns].itertuples(index=False)],
        )
        for chapter, group in rows.groupby("chapter", sort=False)
    ]
    return _HTML.disagreements(said, tables)


# ---- noise


def noise_floors(judged: Judgements, titles: Mapping[str, str]) -> str:
    """What each chapter's A/A comparisons let be seen, and which claims they were held against.

    "" where no verdict was held against one.
    """
    held: dict[tuple[str, Interval], list[str]] = {}
    for claim, j in judged.items():
        if j.noise is not None:
            held.setdefault((j.claim.chapter, j.noise), []).append(claim)
    rows = [
        (
            {},
            [
                titles.get(chapter, chapter),
                narrate.interval(ratio),
                NoiseFloor(ratio).reach,
                ", ".join(named),
            ],
        )
        for (chapter, ratio), named in held.items()
    ]
    heads = ["chapter", "A/A ratio", "hides effects up to", "claims held against it"]
    return table("The noise floors of this run", heads, rows) if rows else ""


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
        return paragraph(
            "These pages are made from the published run itself."
            if published
            else "Nothing was published that these pages could be compared with."
        )
    rows = [
        (change.Index, change.a, change.b)
        for chapter, record in others.items()
        for change in agreement.changes(record, ours[chapter]).itertuples()
    ]
    here, there = judgements(found), judgements(ours)
    tested = _tested(here) & _tested(there)
    differing = {claim for claim, _, _ in rows}
    same = [
        claim
        for claim in here
        if claim in tested - differing and here[claim].claim.chapter in others
    ]
    both = [row for row in rows if row[0] in tested]
    one = [row for row in rows if row[0] not in tested]
    of_both = f"{narrate.count(len(both) + len(same), 'claim')} that both runs have tested,"
    said = (
        f"Of {of_both} {narrate.count(len(both), 'verdict')}"
        f" {'differs' if len(both) == 1 else 'differ'}."
        if both
        else f"On {of_both} the verdicts agree."
    )

    def side_by_side(caption: str, some: Sequence[tuple[str, str, str]]) -> str:
        lines = [
            (
                {},
                [
                    _HTML.link(address(claim), claim),
                    _told(claim, a, here),
                    _told(claim, b, there),
                    _why(claim, here, there),
                ],
            )
            for claim, a, b in some
        ]
        return table(caption, ["claim", "here", "published", "why"], lines) if some else ""

    alone = _folded(
        len(one),
        "claim",
        "that can't be compared",
        side_by_side("Claims that can't be compared", one),
    )
    alike = _alike(same, here, there, address, opened=not both)
    unlike = side_by_side("Verdicts that differ", both)
    return paragraph(said) + unlike + alone + alike + _surroundings(others, ours)


def _folded(many: int, noun: str, said: str, shown: str, opened: bool = False) -> str:
    return _HTML.folded(f"{narrate.count(many, noun)} {said}", shown, opened) if many else ""


def _alike(
    same: Sequence[str],
    here: Judgements,
    there: Judgements,
    address: Callable[[str], str],
    opened: bool,
) -> str:
    """What both runs give the same verdict, with both numbers; folded unless there is no more."""
    lines = [
        (
            {},
            [
                _HTML.link(address(claim), claim),
                narrate.word(here[claim]),
                narrate.wanted(here[claim].claim).removeprefix("printed "),
                narrate.found(here[claim]),
                narrate.found(there[claim]),
            ],
        )
        for claim in same
    ]
    heads = ["claim", "verdict of both", "printed", "found here", "published"]
    alike = table("Verdicts that are the same", heads, lines)
    return _folded(len(same), "verdict", "the same in both", alike, opened)


def published_records() -> dict[str, runs.Record]:
    """The committed run, by chapter."""
    return {
        chapter: agreement.with_others(runs.load(runs.PUBLISHED, chapter))
        for chapter in runs.chapters(runs.PUBLISHED)
    }


def _told(claim: str, name: str, judged: Judgements) -> str:
    tested = claim in judged and judged[claim].verdict is not Verdict.NOT_TESTED
    found = narrate.wanted_and_found(judged[claim]) if tested else ""
    return f"{name} ({found})" if found else name or NOT_RUN


def _why(claim: str, here: Judgements, there: Judgements) -> str:
    """What the verdicts' own evidence says about their difference."""
    if claim not in here or claim not in there:
        return "only one of the runs has judged it by the rule of today"
    sides = {"here": here[claim], "published": there[claim]}
    for side, j in sides.items():
        if j.verdict is Verdict.NOT_TESTED:
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
        return paragraph(
            "Machine, versions and settings are the same, so that what differs is chance or the"
            " state of the machine."
        )
    grouped = rows.groupby(["entry", "a", "b"], sort=False)["chapter"].agg(
        lambda names: "all" if len(names) == len(others) else ", ".join(names)
    )
    lines = [
        ({}, [_spoken(entry), a or "-", b or "-", which])
        for (entry, a, b), which in grouped.items()
    ]
    return table(
        "What else differs: machine, versions, settings",
        ["what", "here", "published", "chapters"],
        sorted(lines, key=lambda line: line[1]),
    )


def _spoken(entry: str) -> str:
    """ "machine.filesystem_type" as "machine: file system"."""
    words = entry.replace(".", " ").replace("_", " ")
    first, _, rest = entry.partition(".")
    said = provenance.name(words)
    return said if said != words or not rest else f"{first}: {words.removeprefix(first).strip()}"


# ---- the end of a chapter


def page_record(record: runs.Record, downloads: Mapping[str, str]) -> str:
    """What a chapter's page was made from, in a sentence, and its downloads (address by name)."""
    environment = record.environment
    machine, server, given = (environment[part] for part in ("machine", "server", "parameters"))
    commit = environment.get("commit", "")
    took = ""
    if record.started:
        began, ended = map(datetime.fromisoformat, (record.started, record.finished))
        took = f" after {narrate.number((ended - began).total_seconds(), 0)} s"
    said = (
        f"This page shows the run “{record.name}” (profile {given['profile']}), finished on"
        f" {provenance.when(record.finished)}{took}, on PostgreSQL {server['version']}"
        f" ({server['name']}),"
        f" {provenance.processor(machine)} with"
        f" {narrate.count(machine['cpus'], 'processor')} and"
        f" {narrate.number(machine['memory_bytes'] / 2**30, 1)} GiB,"
        f" {machine['distribution'] or machine['system']}"
        + (f"; commit {commit[:10]}{commit[40:]}." if commit else ".")
    )
    return _HTML.page_record(said, downloads)
