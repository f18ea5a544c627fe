"""Sphinx extension: what only supports a chapter's findings is folded below its verdicts.

A chapter writes `<!-- supporting -->`, which no reader sees, as a paragraph of its own, mostly
below a heading. What follows, up to the next heading, is folded below one line that says what is
in it: experiments, charts, tables. The lines of verdicts stay in sight above it, and a laboratory
below. Where there is nothing to count, the line is the chapter's:
`<!-- supporting: Release by release -->`. Notebooks and print have all of it unfolded.
"""

import html
import re
from collections.abc import Iterator
from itertools import takewhile

from docutils import nodes

from pgrerun.page import narrate

_MARK = re.compile(r"<!-- supporting(?:: (.+))? -->")
_VERDICT, _FIGURE, _TABLE = '<div class="verdict-line"', '<figure class="vl-figure"', "result-table"
_RUN = 'class="what-was-run"'
_LABORATORY = '<div class="laboratory"'


def setup(app):
    # when predictions are closed, verdicts have their lines and experiments their statements
    app.connect("doctree-read", fold_support, priority=600)


def fold_support(app, doctree) -> None:
    for mark in list(doctree.findall(nodes.raw)):
        if found := _MARK.fullmatch(mark.astext().strip()):
            _fold(mark, found.group(1))


def _fold(mark: nodes.raw, words: str | None) -> None:
    """Put what follows a mark in its section below a line of `words`, or of what is in it."""
    section, place = mark.parent, mark.parent.index(mark)
    is_below = lambda node: not isinstance(node, nodes.section)
    below = list(takewhile(is_below, section.children[place + 1 :]))
    kept = [node for one in below for node in [*_verdicts(one), *_outcomes(one, below)]]
    laboratories = [one for one in below if _holds(one, _LABORATORY)]
    folded = [one for one in below if one not in laboratories]
    said = html.escape(words or _contents(folded))
    begin = _raw(f'<details class="supporting"><summary>{said}</summary>')
    section[place : place + 1 + len(below)] = [
        *kept,
        begin,
        *folded,
        _raw("</details>"),
        *laboratories,
    ]


def _verdicts(node: nodes.Node) -> Iterator[nodes.Node]:
    """The lines of verdicts, taken out of `node`."""
    for line in [raw for raw in node.findall(nodes.raw) if _VERDICT in raw.astext()]:
        line.parent.remove(line)
        yield line


def _outcomes(node: nodes.Node, below: list[nodes.Node]) -> list[nodes.Node]:
    """What became of predictions that stand in sight, taken out of `node`."""
    if any("Prediction (" in one.astext() for one in below):
        return []
    found = [one for one in node.findall(nodes.paragraph) if "outcome" in one["classes"]]
    for one in found:
        one.parent.remove(one)
    return found


def _contents(folded: list[nodes.Node]) -> str:
    """What stands below the line, counted."""
    numbers = {
        "experiment": sum(_holds(one, _RUN) for one in _raws(folded)),
        "chart": sum(_holds(one, _FIGURE) for one in _raws(folded)),
        "table": sum(_holds(one, _TABLE) for one in _raws(folded)),
    }
    told = [str(narrate.count(number, noun)) for noun, number in numbers.items() if number]
    return f"How this was found: {', '.join(told)}" if told else "More about this"


def _raws(folded: list[nodes.Node]) -> list[nodes.raw]:
    found = [raw for node in folded for raw in node.findall(nodes.raw)]
    return [raw for raw in found if raw.get("format") == "html"]


def _holds(node: nodes.Node, markup: str) -> bool:
    return any(markup in raw.astext() for raw in node.findall(nodes.raw))


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")
