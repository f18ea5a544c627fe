"""Sentences that only this chapter says."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.since_when import evidence
from pgrerun.chapters.since_when.experiments import COUNTS, compared, number
from pgrerun.errors import CannotMeasure
from pgrerun.lab.server import fetched
from pgrerun.page import narrate
from pgrerun.page.tables import Table, table


def summary(chapter: Chapter) -> narrate.Sentence:
    """How many claims changed their verdict, and with which releases."""
    judged, changed = evidence.by_claim(chapter), evidence.changes(chapter)
    releases = list(judged.columns[2:])
    different = changed["claim"].nunique()
    found = (
        f"{narrate.count(len(judged), 'claim')} were judged on"
        f" {narrate.count(len(releases), 'release')} of PostgreSQL, {releases[0]} to"
        f" {releases[-1]}. {len(judged) - different} have one verdict wherever they could be"
        " tested."
    )
    if different:
        many = changed["since"].value_counts()
        first = {since: many[since] for since in sorted(many.index, key=number)}
        by_release = ", ".join(f"{since} ({times})" for since, times in first.items())
        found += f" The verdict on {different} changes, first seen with {by_release}."
    return narrate.Sentence(found)


def unlike_the_notes(chapter: Chapter) -> narrate.Sentence:
    """Where what ran and what the release notes say disagree."""
    changed = evidence.changes(chapter)
    apart = changed[changed["agrees"] == "no"]
    silent = changed[~changed["agrees"].isin(["yes", "no"])]
    agree = len(changed) - len(apart) - len(silent)
    names = f" ({', '.join(dict.fromkeys(apart['claim']))})" if len(apart) else ""
    said = {
        f"the notes of a release between the two tell of {agree}": agree,
        f"those of another release tell of {len(apart)}{names}": len(apart),
        f"of {len(silent)} we know no sentence of theirs": len(silent),
    }
    told = ", ".join(words for words, number in said.items() if number)
    return narrate.Sentence(
        f"Of {narrate.count(len(changed), 'change')}, {told}." if told else "No verdict changes."
    )


def mechanism(chapter: Chapter, what: str) -> narrate.Sentence:
    """One count from the oldest release to the newest, and when it changed."""
    [one] = [one for one in COUNTS if one.what == what]
    row = evidence.by_release(chapter, what)
    if row.empty:
        raise CannotMeasure(what, "no release that ran can show it")
    unit = "" if one.unit in what else f" ({one.unit})"
    said = (
        f"{what[0].upper()}{what[1:]}{unit}: {narrate.number(float(row.iloc[0]))} on"
        f" {row.index[0]}, {narrate.number(float(row.iloc[-1]))} on {row.index[-1]}."
    )
    if one.shows is None:
        until, since = evidence.largest_step(chapter, what)
        said += f" The largest step lies between {until} and {since}" if since else ""
        said += f"; the notes name {one.since}." if since else ""
    else:
        until, since = evidence.first_shown(chapter, one)
        if since and until:
            said += f" The change lies between {until} and {since}; the notes name {one.since}."
        elif since:
            said += f" Every release that ran shows the change that the notes of {one.since} name."
        else:
            said += f" No release that ran shows the change that the notes of {one.since} name."
    return narrate.Sentence(said)


def faster(chapter: Chapter) -> narrate.Sentence:
    """The newest release over the oldest of one builder: which loads are faster, and all ratios."""
    newest, oldest, ratios = evidence.newest_over_oldest(chapter)
    said = [
        f"{how}: {', '.join(f'{x} {narrate.interval(ratios[x])}' for x in loads)}"
        for how, loads in evidence.faster(ratios).items()
    ]
    return narrate.Sentence(
        f"Throughput of release {newest} over that of {oldest}; {'; '.join(said)}."
    )


def hardly(chapter: Chapter) -> narrate.Sentence:
    """What became of the expectation that releases hardly differ."""
    newest, oldest, ratios = evidence.newest_over_oldest(chapter)
    found = evidence.faster(ratios)
    sure = [
        f"{newest} is significantly {how} than {oldest} for {narrate.listed(found[how])}"
        for how in ("faster", "slower")
        if how in found
    ]
    told = f". {'; '.join(sure)}" if sure else ", and none is sure"
    return narrate.Sentence(f"Hardly a difference was expected{told}.")


def releases(chapter: Chapter) -> Table | narrate.Sentence | None:
    """The releases that this run compares, and which of those between it doesn't."""
    try:
        chosen = compared(chapter)
    except CannotMeasure:
        return narrate.Sentence("No other release is on this machine; the published run has some.")
    builders = {one.release: one.builder for one in fetched.here()}
    rows = []
    for name, spec in chosen.items():
        programs = fetched.chosen(spec)
        rows.append((name, programs.version, builders.get(name, programs.source)))
    between = evidence.between(min(chosen, key=number), max(chosen, key=number))
    missing = [name for name in between if name not in chosen]
    not_run = f"; not run: {', '.join(missing)}" if missing else ""
    frame = pd.DataFrame(rows, columns=["release", "version", "compiled by"])
    return table(frame, f"The releases of this run{not_run}")
