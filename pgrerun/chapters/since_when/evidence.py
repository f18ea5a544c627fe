"""What the experiments say: lives of claims, where a word changes, and counts by release."""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.since_when.experiments import COUNTS, Count, number
from pgrerun.errors import CannotMeasure
from pgrerun.record import claims
from pgrerun.record import lives as record
from pgrerun.record.verdicts import Verdict

_BY_ID = {one.claim: one for one in COUNTS if one.claim}


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
    """A row for each claim on each release: see `record.lives.read`."""
    return record.read(observed(chapter, record.EXPERIMENT))


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
    """Where a claim's word differs from the release before: see `record.lives.changes`."""
    return record.changes(lives(chapter))


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
