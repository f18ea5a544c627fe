"""What the experiments say: lives of claims, where a verdict changes, and counts by release."""

from collections.abc import Mapping

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.since_when.experiments import COUNTS, LOADS, Count, number
from pgrerun.errors import CannotMeasure
from pgrerun.page import narrate
from pgrerun.record import claims
from pgrerun.record import lives as record
from pgrerun.record.statistics import Interval, equivalent
from pgrerun.record.verdicts import Verdict, greater, less

_BY_ID = {one.claim: one for one in COUNTS if one.claim and one.shows}
_MARGIN = 0.05  # between throughputs, up to which they are alike


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
    """The verdicts of `lives`: a row for each claim, a column for each release."""
    found = lives(chapter)
    releases = sorted(set(found["release"]), key=number)
    table = found.pivot(index="claim", columns="release", values="word")[releases]
    table = table.loc[list(dict.fromkeys(found["claim"]))].fillna("")
    says = found.drop_duplicates("claim").set_index("claim")["says"]
    table.insert(0, "what it says", says)
    return table.reset_index()


def changes(chapter: Chapter) -> pd.DataFrame:
    """Where a claim's verdict differs from the release before: see `record.lives.changes`."""
    return record.changes(lives(chapter))


def beside(chapter: Chapter, document: str, release: str) -> pd.DataFrame:
    """A document's claims whose verdict on one release differs from the newest's, tested on both.

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


def between(oldest: str, newest: str) -> list[str]:
    """All releases that PostgreSQL made between two, both among them."""
    majors = range(10, int(newest.split(".")[0]) + 1)
    every = [*(f"9.{minor}" for minor in range(7)), *map(str, majors)]
    return [one for one in every if number(oldest) <= number(one) <= number(newest)]


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
    earlier, later = (
        values[[(number(str(name)) >= first) is so for name in values.index]]
        for so in (False, True)
    )
    return {
        f"each release that ran shows it from {one.since} on, as its notes say ({one.what}:"
        f" {_spread(later)})": all(after),
        f"none before it does ({_spread(earlier)})": not any(before),
    }


def _spread(values: pd.Series) -> str:
    """The least and the greatest of some counts."""
    return " to ".join(dict.fromkeys(map(narrate.number, (values.min(), values.max()))))


def by_release(chapter: Chapter, what: str) -> pd.Series:
    """What was counted of one thing, by release from the oldest, where it was."""
    row = counted(chapter).set_index("count").loc[what].drop(["unit", "notes"])
    return row.dropna().astype(float)


def largest_step(chapter: Chapter, what: str) -> tuple[str, str]:
    """The neighbouring releases between which a count changes most, as a share; "" for none."""
    row = by_release(chapter, what)
    steps = row.pct_change().abs().iloc[1:]
    if steps.empty:
        return "", ""
    place = int(steps.argmax()) + 1
    return str(row.index[place - 1]), str(row.index[place])


def first_shown(chapter: Chapter, one: Count) -> tuple[str, str]:
    """The last release that doesn't show a count's change and the first that does; "" for none."""
    until, since = "", ""
    for release, value in by_release(chapter, one.what).items():
        if one.shows and one.shows(value):
            since = since or str(release)
        else:
            until, since = str(release), ""
    return until, since


# ---- throughput


def newest_over_oldest(chapter: Chapter) -> tuple[str, str, dict[str, Interval]]:
    """The newest and the oldest release whose throughput was measured, and the ratios by load.

    Of this run: the published one may have more releases.
    """
    releases = sorted(chapter.table("throughput", next(iter(LOADS))), key=number)
    newest, oldest = releases[-1], releases[0]
    return newest, oldest, {x: chapter.ratio("throughput", x, newest, oldest) for x in LOADS}


def faster(ratios: Mapping[str, Interval]) -> dict[str, list[str]]:
    """The loads by what their ratio says, in words; what none is said of is left out."""
    found: dict[str, list[str]] = {
        "faster": [],
        "slower": [],
        "alike within a twentieth": [],
        "not sure": [],
    }
    for load, ratio in ratios.items():
        if equivalent(ratio, _MARGIN):
            words = "alike within a twentieth"
        elif greater(ratio):
            words = "faster"
        else:
            words = "slower" if less(ratio) else "not sure"
        found[words].append(load)
    return {words: loads for words, loads in found.items() if loads}
