"""The lives of claims: their words from release to release, as chapter `since_when` records them.

That chapter judges claims of the others on releases side by side. Here its record is read, by
itself and by the chapters whose claims these are, beside what the release notes say.
"""

import csv
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from pgrerun.record import claims, printed, runs
from pgrerun.record.verdicts import Verdict

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
            found = record.observations
            found = found[found["experiment"] == EXPERIMENT]
            if len(found):
                return read(found), record.finished
    return None


def read(observations: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim on each release, by document, the releases from the oldest.

    Columns: claim, says, chapter, document, release, word, why (of what could not be tested).
    """
    words = observations[observations["metric"] == "word"]
    ledger, rows = claims.ledger(), []
    for release, flags in zip(words["variant"], words["flags"].map(json.loads), strict=True):
        claim = ledger.get(flags["claim"])
        if claim is not None:
            aside = flags["verdict"] == Verdict.NOT_TESTABLE
            why = flags["note"] or flags["reason"] if aside else ""
            told = (claim.id, claim.claim, claim.chapter, claim.document)
            rows.append((*told, release, flags["verdict"], why))
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
        tested = own[own["word"] != Verdict.NOT_TESTABLE]
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


@dataclass(frozen=True)
class Note:
    """What the notes of a release say, in their words, and the claims that it explains."""

    release: str
    section: str
    words: str
    claims: tuple[str, ...]


@cache
def notes() -> tuple[Note, ...]:
    """The sentences of PostgreSQL's release notes that lives are compared with."""
    with NOTES.open(encoding="utf-8", newline="") as lines:
        return tuple(
            Note(row["release"], row["section"], row["words"], tuple(row["claims"].split()))
            for row in csv.DictReader(lines)
        )


def compared_with_notes(claim: str, until: str, since: str) -> tuple[str, str]:
    """What the notes that explain a claim say, and whether they name a release of that span.

    Those of a release of the span, or all where there is none.
    """
    known = [note for note in notes() if claim in note.claims]
    if not known:
        return "", "no sentence of theirs is linked with it"
    within = [note for note in known if place(until) < place(note.release) <= place(since)]
    said = "; ".join(f"{note.release}, {note.section}: “{note.words}”" for note in within or known)
    return said, "yes" if within else "no"
