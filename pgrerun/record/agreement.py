"""Whether several runs give claims the same words, and which word they give together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pgrerun.record import claims, runs, verdicts
from pgrerun.record.runs import Record
from pgrerun.record.verdicts import Judgement, Verdict

GOAL = 0.95  # the share of claims that all published runs should give the same word


def words(records: Mapping[str, Record]) -> pd.DataFrame:
    """The words that runs give, by today's rules: a row per claim, a column per run by its name.

    Claims that are left out: those that not all runs have judged, and those that none could test.
    """
    columns = {
        name: {kept["claim"]: verdicts.word(kept) for kept in record.verdicts}
        for name, record in records.items()
    }
    found = pd.DataFrame(columns).reindex(list(claims.ledger())).dropna()
    return found[(found != Verdict.NOT_TESTED).any(axis=1)]


def agreed(found: pd.DataFrame) -> pd.Series:
    """Of `words`, by claim whether all runs give the same."""
    return found.nunique(axis=1) == 1


def by_basis(found: pd.DataFrame) -> pd.DataFrame:
    """How often runs give the same word, by what it rests on.

    Columns: basis, claims, agreed (numbers), share; the last row is of all of them.
    """
    ledger, same = claims.ledger(), agreed(found)
    basis = pd.Series([str(ledger[claim].basis) for claim in found.index], found.index, dtype=str)
    counted = same.groupby(basis, sort=False).agg(["size", "sum"])
    counted.loc["all"] = [len(same), same.sum()]
    rows = counted.astype(int).reset_index(names="basis")
    rows.columns = ["basis", "claims", "agreed"]
    return rows.assign(share=rows["agreed"] / rows["claims"].where(rows["claims"] > 0))


def published(chapter: str) -> dict[str, Record]:
    """The published runs' records of a chapter, by the run's name."""
    return {
        name: runs.load(name, chapter)
        for name in runs.published()
        if chapter in runs.chapters(name)
    }


def with_others(record: Record) -> Record:
    """A record of the published run with the words of all published runs, any other as it is."""
    if record.name != runs.PUBLISHED or len(runs.published()) == 1:
        return record
    given: dict[str, list[str]] = {}
    for chapter in record.chapters:
        others = published(chapter) | {record.name: record}
        given |= words(others).T.to_dict("list")
    return replace(record, given=given)


def word(record: Record, kept: Mapping[str, Any]) -> str:
    """The verdict of what a record kept by today's rules; of several runs, the one they share."""
    given = record.given.get(kept["claim"], ())
    return str(Verdict.INCONCLUSIVE) if len(set(given)) > 1 else verdicts.word(kept)


def changes(a: Record, b: Record) -> pd.DataFrame:
    """Claims that two runs judge differently by the rules of today, indexed by claim.

    Columns: chapter, a and b (verdicts; empty where a run of that chapter didn't judge it).
    """
    shared = set(a.chapters) & set(b.chapters)
    chapters = {v["claim"]: v["chapter"] for v in [*a.verdicts, *b.verdicts]}
    left, right = (
        {v["claim"]: word(record, v) for v in record.verdicts if v["chapter"] in shared}
        for record in (a, b)
    )
    rows = [
        (claim, chapter, left.get(claim, ""), right.get(claim, ""))
        for claim, chapter in chapters.items()
        if left.get(claim) != right.get(claim)
    ]
    return pd.DataFrame(rows, columns=["claim", "chapter", "a", "b"]).set_index("claim")


def together(judgement: Judgement, given: Sequence[str]) -> Judgement:
    """The judgement that runs give together which gave these words: theirs, or inconclusive."""
    if len(set(given)) < 2:
        return judgement
    return replace(judgement, verdict=Verdict.INCONCLUSIVE, reason=differing(given))


def differing(given: Sequence[str]) -> str:
    """The verdicts of runs that don't agree, in the order of the runs."""
    return f"{len(given)} runs gave different verdicts: {', '.join(given)}"
