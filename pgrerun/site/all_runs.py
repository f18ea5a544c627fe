"""The page "All runs": what the records of many machines say together.

Everything is computed from what was gathered (`pgrerun/record/gather.py`, `machines.py`) when the
site is built; `book/_ext/run_pages.py` puts it into the page. Models, releases and names are a
stranger's words: the macros of `page/templates/all_runs.html` escape them.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from pgrerun.page import charts, narrate
from pgrerun.page.markup import Markup, macros
from pgrerun.record import claims, machines
from pgrerun.record.gather import Gathered, Machine
from pgrerun.record.machines import Bin, Dependence, Findings
from pgrerun.record.statistics import ENOUGH
from pgrerun.site import scoreboard

Address = Callable[[str], str]
"""From a claim's id to its place on the scoreboard."""

_HTML = macros("all_runs")
NOTHING = _HTML.nothing()
_MOST_CHARTS = 6
_MOST_WORDS = 8
_MOST_REFUSED = 20
_WIDTH, _HEIGHT = 132.0, 14.0

_UNITS = {"cores": ("", 1.0), "release": ("", 1.0), "flush": ("ms", 1e3), "memory": ("GiB", 2**-30)}
_QUANTITIES = {
    "cores": "processors",
    "release": "release of PostgreSQL",
    "flush": "time of a flush of 8 kB",
    "memory": "memory",
}


# ---- who handed in


def summary(gathered: Gathered) -> str:
    """How much was gathered, from what machines, and what was refused."""
    many = len(gathered.machines)
    said = [
        f"{narrate.count(gathered.records, 'record')} (a chapter's run each) of"
        f" {narrate.count(many, 'machine')} {'was' if gathered.records == 1 else 'were'} read, with"
        f" {narrate.count(gathered.observations, 'observation')}."
    ]
    if gathered.superseded:
        said.append(
            f"{narrate.number(gathered.superseded)} of them don't count, since the same machine has"
            " a newer one of the same chapter or it was handed in twice."
        )
    if gathered.unanswered:
        said.append(
            f"{narrate.count(gathered.unanswered, 'verdict')} can't be judged by the rules of today"
            " from what the record keeps, and"
            f" {'is' if gathered.unanswered == 1 else 'are'} left out."
        )
    rows = [({}, [name, *_spread(gathered, key)]) for key, name in _QUANTITIES.items()]
    table = scoreboard.table("The machines", ["what", "from, median, to", "machines"], rows)
    return scoreboard.paragraph(" ".join(said)) + table + _refused(gathered)


def _spread(gathered: Gathered, name: str) -> tuple[str, str]:
    """From which to which value a circumstance goes, and of how many machines that is known."""
    known = machines.values(gathered, name)
    known = known[~np.isnan(known)]
    if not known.size:
        return "unknown", narrate.number(0)
    low, middle, high = (_said(name, x) for x in (known.min(), np.median(known), known.max()))
    spread = low if low == high else f"{low}, {middle}, {high}"
    return f"{spread} {_UNITS[name][0]}".rstrip(), narrate.number(known.size)


def _said(name: str, value: float) -> str:
    """A circumstance's value in its unit, which isn't said."""
    if name == "release":
        return f"{value:g}"
    return narrate.number(float(f"{value * _UNITS[name][1]:.3g}"))


def _refused(gathered: Gathered) -> str:
    if not gathered.refused:
        return ""
    shown = gathered.refused[:_MOST_REFUSED]
    more = len(gathered.refused) - len(shown)
    words = narrate.count(len(gathered.refused), "source or record", "sources or records")
    return _HTML.refused(words, shown, narrate.number(more) if more else "")


# ---- which claims depend on the machine


def dependences(gathered: Gathered, found: Findings, address: Address) -> str:
    """The claims whose word depends on what the machine is, the clearest first, and charts."""
    many = len(gathered.machines)
    if many < machines.FEW:
        return scoreboard.paragraph(
            f"With {narrate.count(many, 'machine')} nothing can be said about that; it takes at"
            f" least {machines.FEW}, and five that give each of two words."
        )
    number = len(found.dependences)
    said = (
        f"{narrate.count(found.tests, 'test')}, one for each claim that has two words and each"
        f" circumstance, find that the word of {narrate.count(number, 'claim')} depends on the"
        " machine"
        + (
            f"; about one in {1 / machines.CHANCE:.0f} of such findings is chance."
            if number
            else "."
        )
    )
    rows = [_dependence_row(gathered, one, address) for one in found.dependences]
    heads = ["claim", "depends on", "words", "clear by"]
    table = scoreboard.table("Claims that depend on the machine", heads, rows) if rows else ""
    drawn = [
        Markup(figure(gathered, one)._repr_mimebundle_()["text/html"])
        for one in found.dependences[:_MOST_CHARTS]
    ]
    return scoreboard.paragraph(said) + table + Markup("").join(drawn)


def _dependence_row(
    gathered: Gathered, one: Dependence, address: Address
) -> tuple[dict, list[str]]:
    also = [_QUANTITIES[name] for name in one.others]
    beside = f"; among machines alike in that, also on {' and '.join(also)}" if also else ""
    cells = [
        _claim(one.claim, address),
        _QUANTITIES[one.circumstance] + beside,
        _counted(gathered, one.claim),
        (
            f"{narrate.number(100 * one.found.effect, 0)} % of the ranks' variance, expected share"
            f" of chance findings {'below 0.0001' if one.q < 1e-4 else f'{one.q:.2g}'}"
        ),
    ]
    return {}, cells


def _claim(claim: str, address: Address) -> str:
    entry = claims.ledger().get(claim)
    return _HTML.claim(claim, address(claim), entry.claim if entry else "")


def _counted(gathered: Gathered, claim: str) -> str:
    return ", ".join(f"{number} {word}" for word, number in machines.tally(gathered, claim).items())


def figure(gathered: Gathered, one: Dependence) -> charts.Figure:
    """The share of machines that give each word, over the circumstance that it depends on."""
    name = one.circumstance
    told = [word for word, n in machines.tally(gathered, one.claim).items() if n >= ENOUGH]
    shares = [
        (place, word, share)
        for place, word, share in machines.shares(gathered, one.claim, name)
        if word in told
    ]
    rows = pd.DataFrame(
        [
            {"x": place.middle * _UNITS[name][1], "series": word, "kind": "gathered"}
            | {key: 100 * getattr(share, end) for key, end in _ENDS.items()}
            for place, word, share in shares
        ]
    )
    words = charts.Words(
        question=f"{one.claim}: which word do machines give it, by their {_QUANTITIES[name]}?",
        caption=_caption(gathered, one, shares),
        name=f"all-runs-{one.claim}",
        description=_described_shares(one, shares),
    )
    x_axis = charts.Axis(_QUANTITIES[name], _UNITS[name][0], log=name != "release")
    return charts.lines(rows, words, x_axis, charts.Axis("share of machines", "%", zero=True))


_ENDS = {"value": "estimate", "low": "low", "high": "high"}


def _caption(gathered: Gathered, one: Dependence, shares: Sequence) -> str:
    name = one.circumstance
    places = list(dict.fromkeys(_range(name, place) for place, *_ in shares))
    word = next(iter(machines.tally(gathered, one.claim)))
    mine = [(place, share) for place, other, share in shares if other == word]
    (first, low), (last, high) = mine[0], mine[-1]
    return (
        f"The shares of machines that give each word, in {len(places)} groups, with intervals at"
        f" {100 * low.confidence:g} %. Of the machines with {_range(name, first)}"
        f" {_percent(low)} say “{word}”, of those with {_range(name, last)} {_percent(high)}."
    )


def _described_shares(one: Dependence, shares: Sequence) -> str:
    """The chart's data in words."""
    said = [
        f"{_range(one.circumstance, place)}: {_percent(share)} {word}"
        for place, word, share in shares
    ]
    return f"Lines of the share of machines that give each word. {'; '.join(said)}."


def _percent(share) -> str:
    low, high = (f"{100 * end:.0f}" for end in (share.low, share.high))
    return f"{100 * share.estimate:.0f} % [{low}, {high}]"


def _range(name: str, place: Bin) -> str:
    low, high = _said(name, place.low), _said(name, place.high)
    values = low if low == high else f"{low} to {high}"
    return {
        "cores": f"{values} processors",
        "release": f"PostgreSQL {values}",
        "flush": f"a flush of {values} ms",
        "memory": f"{values} GiB",
    }[name]


# ---- every claim

_COMPARED = machines.FEW  # machines from which on it is drawn what they have in common
_STRIPS = (
    "Of the small pictures the first is for processors, then come the release, the time of a flush,"
    " and memory, each growing from left to right; a column is a group of machines, and its parts"
    " are the words that they give."
)


def board(gathered: Gathered, address: Address) -> str:
    """All claims that were judged: the words, and how they lie over each circumstance.

    Of too few machines to compare, the words alone, folded: the scoreboard has them, too.
    """
    compared = len(gathered.machines) >= _COMPARED
    rows = []
    for claim in gathered.words:
        counted = machines.tally(gathered, claim)
        if counted:
            cells = [
                _claim(claim, address),
                narrate.number(sum(counted.values())),
                _bar(counted, [_counted(gathered, claim), *gathered.differing.get(claim, [])]),
            ]
            if compared:
                strips = [_strip(gathered, claim, name) for name in machines.CIRCUMSTANCES]
                cells.append(Markup("").join(strips) if len(counted) > 1 else "")
            rows.append(({"id": f"all-{claim}"}, cells))
    heads = ["claim", "machines", "words", "by processors, release, flush, memory"]
    caption, heads = "How many machines give which word", heads[: 3 + compared]
    folded = f"{caption} ({narrate.count(len(rows), 'row')})"
    return _HTML.board(caption, heads, rows, _STRIPS, "" if compared else folded)


def _bar(counted: dict[str, int], details: Sequence[str]) -> str:
    """One bar, whose parts are the words, the most frequent first, above `details`."""
    total, x, parts = sum(counted.values()), 0.0, []
    for word, number in counted.items():
        width = _WIDTH * number / total
        parts.append((_colour(word), x, width))
        x += width
    label = ", ".join(f"{word} {100 * n / total:.0f} %" for word, n in counted.items())
    return _HTML.bar(label, _WIDTH, _HEIGHT, parts, "; ".join(details))


def _colour(word: str) -> str:
    return scoreboard.COLOURS.get(word, scoreboard.COLOURS[scoreboard.NOT_RUN])


_STRIP, _COLUMN, _TALL = 62.0, 10.0, 22.0


def _strip(gathered: Gathered, claim: str, name: str) -> str:
    """A small picture for a circumstance: a column per group of machines, of shares of words."""
    given = machines.words(gathered, claim)
    groups = machines.bins(np.where(given >= 0, machines.values(gathered, name), np.nan))
    paths = dict.fromkeys(machines.tally(gathered, claim), "")
    first = next(iter(paths))
    told = []
    for number, group in enumerate(groups):
        words, y = pd.Series(given[group.machines]).value_counts(normalize=True), _TALL
        shares = {word: words.get(gathered.vocabulary.index(word), 0.0) for word in paths}
        for word, share in shares.items():
            if share:
                y -= share * _TALL
                paths[word] += f"M{number * _COLUMN:g} {y:.1f}h9v{share * _TALL:.1f}h-9z"
        told.append(f"{_range(name, group)} {100 * shares[first]:.0f} %")
    label = f"share of {first} by {_QUANTITIES[name]}: {'; '.join(told)}"
    drawn = [(_colour(word), path) for word, path in paths.items() if path]
    return _HTML.strip(label, _STRIP, _TALL, drawn) if groups else ""


# ---- the machine most unlike its peers


def unlike(gathered: Gathered, found: Findings, address: Address) -> str:
    """Which machine gives the least expected words, and whether chance would do."""
    one = found.unlike
    if one is None:
        return scoreboard.paragraph(
            f"With {narrate.count(len(gathered.machines), 'machine')} none can be told from its"
            " peers."
        )
    surely = one.p <= machines.CHANCE
    said = (
        f"{_described(gathered.machines[one.machine])} gives the least expected words:"
        f" {one.score:.1f} standard deviations from what its peers' words make expected. "
        + (
            "Chance alone puts no machine that far from so many others"
            if surely
            else "Chance alone puts one of so many that far"
        )
        + f" ({100 * one.p:.2g} % of {machines.DEALS + 1} deals of the same words, this one"
        " included, have one as far)."
    )
    rows = [
        ({}, [_claim(claim, address), _HTML.word(word), f"{same} of {of}"])
        for claim, word, same, of in one.words[:_MOST_WORDS]
    ]
    heads = ["claim", "its word", "machines that give it"]
    table = scoreboard.table("Its rarest words", heads, rows) if rows else ""
    return scoreboard.paragraph(said) + table


def _described(machine: Machine) -> str:
    parts = [machine.model or machine.architecture or "A machine that doesn't say what it is"]
    if machine.cores:
        parts.append(narrate.count(machine.cores, "processor"))
    if machine.memory:
        parts.append(f"{_said('memory', machine.memory)} GiB")
    if machine.flush and math.isfinite(machine.flush):
        parts.append(f"a flush of {_said('flush', machine.flush)} ms")
    if machine.release:
        parts.append(f"PostgreSQL {machine.release}")
    return ", ".join(parts)
