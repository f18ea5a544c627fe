"""What "How we measure" says of the published runs: how far they agree, and how quiet it was."""

import html
from collections.abc import Mapping

import pandas as pd

from pgrerun.page import narrate
from pgrerun.record import agreement, runs
from pgrerun.record.schema import busy
from pgrerun.site import scoreboard


def agreeing() -> str:
    """How many claims all published runs give the same word, by basis."""
    names = runs.published()
    chapters = runs.chapters(runs.PUBLISHED)
    each = [agreement.published(chapter) for chapter in chapters]
    complete = [found for found in each if len(found) == len(names)]
    if len(names) == 1 or not complete:
        return (
            "<p>One run is published, so that nothing can be said here about whether another one"
            " on the same machine would give the same words.</p>"
        )
    rows = agreement.by_basis(pd.concat([agreement.words(found) for found in complete]))
    lines = [
        ("", [html.escape(basis), narrate.number(claims), narrate.number(same), _percent(share)])
        for basis, claims, same, share in rows.itertuples(index=False)
    ]
    *_, total = rows.itertuples(index=False)
    goal = "and the goal is" if total.share >= agreement.GOAL else "short of the goal of"
    said = (
        f"{narrate.count(len(names), 'run')} of {narrate.count(len(complete), 'chapter')} are"
        f" published. They give {narrate.number(total.agreed)} of"
        f" {narrate.count(total.claims, 'claim')} the same word, {_percent(total.share)}, {goal}"
        f" {_percent(agreement.GOAL)}. The others are published as inconclusive, with the words of"
        " all runs."
    )
    heads = ["basis", "claims", "same word in all runs", "share"]
    return f"<p>{html.escape(said)}</p>{scoreboard.table('Words by basis', heads, lines)}"


def quiet(titles: Mapping[str, str] | None = None) -> str:
    """How many measurements of the published runs others disturbed, and in which chapters.

    `titles` has what a reader knows the chapters by.
    """
    said, several = [], len(runs.published()) > 1
    for name in runs.published():
        marked, number, where = 0, 0, []
        for chapter in runs.chapters(name):
            some, of, _ = busy(runs.load(name, chapter).observations)
            marked, number = marked + some, number + of
            title = (titles or {}).get(chapter, chapter)
            where += [f"{narrate.number(some)} in the chapter “{title}”"] if some else []
        places = f": {', '.join(where)}" if where else ""
        of_run = f"the run {name}" if several else "the published run"
        said.append(
            f"Of {narrate.count(number, 'measurement')} of {of_run},"
            f" {narrate.number(marked) if marked else 'none'}"
            f" {'was' if marked < 2 else 'were'} made while others used more than a tenth of the"
            f" machine{places}."
        )
    return f"<p>{html.escape(' '.join(said))}</p>"


def _percent(share: float) -> str:
    return f"{narrate.number(100 * share, 1)} %"
