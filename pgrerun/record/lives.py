"""The lives of claims: their words from release to release, as chapter `since_when` records them.

That chapter judges claims of the others on releases side by side. Here its record is read, by
itself and by the chapters whose claims these are, beside what the release notes say.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from pgrerun.record import claims, printed, runs
from pgrerun.record.verdicts import Verdict, today

CHAPTER, EXPERIMENT = "since_when", "lives"
NOTES = printed.DATA.parent / "release_notes.csv"


def place(release: str) -> tuple[int, ...]:
    """The release's place in time: (9, 3) for "9.3", which is before (10,)."""
    return tuple(map(int, release.split(".")))


def recorded(run: str) -> tuple[pd.DataFrame, str] | None:
    """The lives in the record of this run, else of the published one, and when that was finished.

    None where neither has judged a claim on releases.
    """
    # the last by its place, for whoever makes a published run in a folder of their own
    places: tuple[str | Path, ...] = (run, runs.PUBLISHED, runs.CHECKOUT / runs.PUBLISHED)
    for name in dict.fromkeys(places):
        if CHAPTER in runs.chapters(name):
            record = runs.load(name, CHAPTER)
            table = record.tables.get(CHAPTER, {}).get(EXPERIMENT)
            found = read(_of_old(record.observations) if table is None else table)
            if len(found):
                return found, record.finished
    return None


def _of_old(observations: pd.DataFrame) -> pd.DataFrame:
    """The rows of a record from before experiments yielded any."""
    words = observations[
        (observations["experiment"] == EXPERIMENT) & (observations["metric"] == "word")
    ]
    told = words["flags"].map(json.loads)
    return frame(
        {"claim": one["claim"], "word": one["verdict"], "why": one["note"] or one["reason"]}
        | {"release": release}
        for one, release in zip(told, words["variant"], strict=True)
    )


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A table of rows of the experiment `lives`, also of none."""
    return pd.DataFrame(rows, columns=["claim", "release", "word", "why"])


def read(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim on each release, by document, the releases from the oldest.

    Columns: claim, says, chapter, document, release, word, why (of what could not be tested).
    """
    ledger, rows = claims.ledger(), []
    for claim, release, word, why in table[["claim", "release", "word", "why"]].to_numpy():
        if (known := ledger.get(claim)) is not None:
            said = today(word, known.predicate)
            told = (known.id, known.claim, known.chapter, known.document)
            rows.append((*told, release, str(said), why if said == Verdict.NOT_TESTED else ""))
    documents = list(dict.fromkeys(claim.document for claim in ledger.values()))
    places = {claim: number for number, claim in enumerate(ledger)}
    rows.sort(key=lambda row: (documents.index(row[3]), places[row[0]], place(row[4])))
    columns = ["claim", "says", "chapter", "document", "release", "word", "why"]
    return pd.DataFrame(rows, columns=columns)


def changes(lives: pd.DataFrame) -> pd.DataFrame:
    """Where a claim's word differs from the release before on which it could be tested.

    Columns: claim, what_it_says, before, until (the last release with that word), since (the first
    with the next), after, notes (what we know release notes to say of that claim), agrees.
    """
    rows = []
    for claim, own in lives.groupby("claim", sort=False):
        tested = own[own["word"] != Verdict.NOT_TESTED]
        for before, after in zip(tested.iloc[:-1].itertuples(), tested.iloc[1:].itertuples()):
            if before.word != after.word:
                said, agrees = compared_with_notes(str(claim), before.release, after.release)
                rows.append(
                    (claim, before.says, before.word, before.release, after.release, after.word)
                    + (said, agrees)
                )
    columns = ["claim", "what_it_says", "before", "until", "since", "after", "notes", "agrees"]
    return pd.DataFrame(rows, columns=columns)


# ---- release notes


@cache
def notes() -> list[dict[str, str]]:
    """The sentences of PostgreSQL's release notes that lives are compared with.

    Of each its release, section, words, and the claims that it explains, with spaces between them.
    """
    return printed.lines(NOTES)


def compared_with_notes(claim: str, until: str, since: str) -> tuple[str, str]:
    """What the notes that explain a claim say, and whether they name a release of that span.

    Those of a release of the span, or all where there is none.
    """
    known = [note for note in notes() if claim in note["claims"].split()]
    if not known:
        return "", "no sentence of theirs is linked with it"
    within = [note for note in known if place(until) < place(note["release"]) <= place(since)]
    said = "; ".join("{release}, {section}: “{words}”".format_map(note) for note in within or known)
    return said, "yes" if within else "no"
