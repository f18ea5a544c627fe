"""What the experiments say: lives of claims, where a word changes, and counts by release."""

import csv
import json
from dataclasses import dataclass
from functools import cache

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.since_when.experiments import COUNTS, Count, number
from pgrerun.errors import CannotMeasure
from pgrerun.record import claims, printed
from pgrerun.record.verdicts import Verdict

NOTES = printed.DATA.parent / "release_notes.csv"
_BY_ID = {one.claim: one for one in COUNTS if one.claim}


@dataclass(frozen=True)
class Note:
    """What the notes of a release say, in their words, and the claims that it explains."""

    release: str
    section: str
    words: str
    claims: tuple[str, ...]


@cache
def notes() -> tuple[Note, ...]:
    """The sentences of PostgreSQL's release notes that this chapter compares with."""
    with NOTES.open(encoding="utf-8", newline="") as lines:
        return tuple(
            Note(row["release"], row["section"], row["words"], tuple(row["claims"].split()))
            for row in csv.DictReader(lines)
        )


def observed(chapter: Chapter, experiment: str) -> pd.DataFrame:
    """This run's observations; the published run's where nothing was run here.

    CannotMeasure where there are neither.
    """
    own = chapter.run.observations(experiment)
    found = chapter.published_run(experiment) if own.empty else own
    if found.empty:
        raise CannotMeasure(
            "releases side by side",
            "it needs a run on several releases: this one had none, and none is published",
        )
    return found


# ---- claims


def lives(chapter: Chapter) -> pd.DataFrame:
    """A row for each claim on each release, by document, the releases from the oldest.

    Columns: claim, says, document, release, word, why (of what could not be tested).
    """
    found = observed(chapter, "lives")
    words = found[found["metric"] == "word"]
    ledger, rows = claims.ledger(), []
    for release, flags in zip(words["variant"], words["flags"].map(json.loads), strict=True):
        claim = ledger.get(flags["claim"])
        if claim is not None:
            aside = flags["verdict"] == Verdict.NOT_TESTABLE
            why = flags["note"] or flags["reason"] if aside else ""
            rows.append((claim.id, claim.claim, claim.document, release, flags["verdict"], why))
    frame = pd.DataFrame(rows, columns=["claim", "says", "document", "release", "word", "why"])
    places = {claim: place for place, claim in enumerate(ledger)}
    order = frame["document"].map({one: place for place, one in enumerate(_documents())}) * 1e9
    order = order + frame["claim"].map(places) * 1e6 + frame["release"].map(number)
    return frame.loc[order.sort_values().index].reset_index(drop=True)


def _documents() -> list[str]:
    return list(dict.fromkeys(claim.document for claim in claims.ledger().values()))


def by_claim(chapter: Chapter) -> pd.DataFrame:
    """The words of `lives`: a row for each claim, a column for each release."""
    found = lives(chapter)
    releases = sorted(set(found["release"]), key=number)
    table = found.pivot(index="claim", columns="release", values="word")[releases]
    table = table.loc[list(dict.fromkeys(found["claim"]))].fillna("")
    says = found.drop_duplicates("claim").set_index("claim")["says"]
    table.insert(0, "what it says", says)
    return table.reset_index()


def changes(chapter: Chapter) -> pd.DataFrame:
    """Where a claim's word differs from the release before on which it could be tested.

    Columns: claim, what_it_says, before, until (the last release with that word), since (the first
    with the next), after, notes (what we know release notes to say of that claim), agrees.
    """
    rows = []
    for claim, own in lives(chapter).groupby("claim", sort=False):
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


def compared_with_notes(claim: str, until: str, since: str) -> tuple[str, str]:
    """What the notes that explain a claim say, and whether they name a release of that span."""
    known = [note for note in notes() if claim in note.claims]
    if not known:
        return "", "no sentence of theirs is linked with it"
    said = "; ".join(f"{note.release}, {note.section}: “{note.words}”" for note in known)
    within = any(number(until) < number(note.release) <= number(since) for note in known)
    return said, "yes" if within else "no"


def beside(chapter: Chapter, document: str, release: str) -> pd.DataFrame:
    """A document's claims whose word on one release differs from the newest's, tested on both.

    Columns: claim, what_it_says, the two releases. CannotMeasure if the release did not run.
    """
    table = by_claim(chapter)
    newest = table.columns[-1]
    if release not in table or release == newest:
        raise CannotMeasure(f"PostgreSQL {release}", f"PostgreSQL {release} did not run here")
    ledger = claims.ledger()
    own = table[[ledger[claim].document == document for claim in table["claim"]]]
    tested = (own[[release, newest]] != Verdict.NOT_TESTABLE).all(axis=1)
    differ = own[tested & (own[release] != own[newest])]
    return differ[["claim", "what it says", release, newest]]


# ---- counts


def counted(chapter: Chapter) -> pd.DataFrame:
    """What was counted: a row for each count, a column for each release, from the oldest."""
    found = observed(chapter, "counts")
    releases = sorted(set(found["variant"]), key=number)
    rows = []
    for one in COUNTS:
        values = wide(found, one.what)
        row = {"count": one.what, "unit": one.unit, "notes": one.since}
        rows.append(
            row
            | {
                name: float(values[name].iloc[0]) if name in values else float("nan")
                for name in releases
            }
        )
    return pd.DataFrame(rows)


def shown_since(chapter: Chapter, claim: str) -> dict[str, bool]:
    """Whether a count changes with the release whose notes tell of it.

    CannotMeasure unless a release before it and one from it on were counted in this run.
    """
    one = _BY_ID[claim]
    values = chapter.table("counts", one.what).iloc[0].dropna()
    first = number(one.since)
    before = [one.shows(value) for name, value in values.items() if number(str(name)) < first]
    after = [one.shows(value) for name, value in values.items() if number(str(name)) >= first]
    if not before or not after:
        raise CannotMeasure(
            f"releases before and from {one.since}",
            f"it needs a release before {one.since} and one from then on; `pgrerun releases fetch`"
            " brings them",
        )
    return {
        "each release that ran, from the one on whose notes tell of it, shows it": all(after),
        "none before it does": not any(before),
    }


def first_shown(chapter: Chapter, one: Count) -> tuple[str, str]:
    """The last release that doesn't show a count's change and the first that does; "" for none."""
    row = counted(chapter).set_index("count").loc[one.what].drop(["unit", "notes"]).dropna()
    until, since = "", ""
    for release, value in row.items():
        if one.shows(float(value)):
            since = since or str(release)
        else:
            until, since = str(release), ""
    return until, since
