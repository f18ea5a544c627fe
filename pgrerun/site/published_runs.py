"""What "How we measure" says of the published runs: how far they agree, and how quiet it was."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.page import narrate
from pgrerun.page.narrate import percent
from pgrerun.record import agreement, rows, runs
from pgrerun.site import scoreboard


def agreeing() -> str:
    """How many claims all published runs give the same word, by basis."""
    names = runs.published()
    each = map(agreement.published, runs.chapters(runs.PUBLISHED))
    complete = [found for found in each if len(found) == len(names)]
    if len(names) == 1 or not complete:
        return scoreboard.paragraph(
            "One run is published, so that nothing can be said here about whether another one"
            " on the same machine would give the same words."
        )
    counted = agreement.by_basis(pd.concat([agreement.words(found) for found in complete]))
    lines = [
        ({}, [basis, narrate.number(claims), narrate.number(same), percent(share)])
        for basis, claims, same, share in counted.itertuples(index=False)
    ]
    *_, total = counted.itertuples(index=False)
    goal = "and the goal is" if total.share >= agreement.GOAL else "short of the goal of"
    said = (
        f"{narrate.count(len(names), 'run')} of {narrate.count(len(complete), 'chapter')} are"
        f" published. They give the same word to {narrate.number(total.agreed)} of"
        f" {narrate.count(total.claims, 'claim')} that any of them could test:"
        f" {percent(total.share)}, {goal}"
        f" {percent(agreement.GOAL)}. The others are published as inconclusive, with the words of"
        " all runs."
    )
    heads = ["basis", "claims", "same word in all runs", "share"]
    return scoreboard.paragraph(said) + scoreboard.table("Words by basis", heads, lines)


def quiet(titles: Mapping[str, str]) -> str:
    """How many measurements of the published runs others disturbed, and in which chapters.

    `titles` has what a reader knows the chapters by.
    """
    said, several = [], len(runs.published()) > 1
    for name in runs.published():
        busy = pd.DataFrame(
            [
                (titles.get(chapter, chapter), *rows.busy(table))
                for chapter in runs.chapters(name)
                for table in runs.load(name, chapter).tables[chapter].values()
            ],
            columns=["title", "marked", "of"],
        )
        marked, number = int(busy["marked"].sum()), int(busy["of"].sum())
        where = busy[busy["marked"] > 0].groupby("title", sort=False)["marked"].sum()
        places = ", ".join(
            f"{'all' if len(where) == 1 else narrate.number(some)} in the chapter “{title}”"
            for title, some in where.items()
        )
        of_run = f"of the run “{name}”" if several else "of the published run"
        so_many = narrate.number(marked) if marked else "none"
        what = narrate.number(number) if said else _made(number, marked)
        said.append(f"{of_run}, {so_many} of {what}{f' ({places})' if places else ''}")
    told = "; ".join(said)
    return scoreboard.paragraph(f"{told[:1].upper()}{told[1:]}.")


def _made(number: int, marked: int) -> str:
    """Of so many measurements, so many of them, when they were made."""
    return (
        f"{narrate.count(number, 'measurement')} {'was' if marked < 2 else 'were'} made while"
        " others used more than a tenth of the machine"
    )
