"""Sentences that only this chapter says."""

from pgrerun.chapter import Chapter
from pgrerun.chapters.since_when import evidence
from pgrerun.chapters.since_when.experiments import COUNTS, LOADS, one_builder
from pgrerun.errors import CannotMeasure
from pgrerun.page import narrate


def summary(chapter: Chapter) -> narrate.Sentence:
    """How many claims changed their word, and with which releases."""
    table, changed = evidence.by_claim(chapter), evidence.changes(chapter)
    releases = list(table.columns[2:])
    different = changed["claim"].nunique()
    found = (
        f"{narrate.count(len(table), 'claim')} were judged on"
        f" {narrate.count(len(releases), 'release')} of PostgreSQL, {releases[0]} to"
        f" {releases[-1]}. {len(table) - different} have one word wherever they could be tested."
    )
    if different:
        since = changed["since"].value_counts()
        found += (
            f" The word of {different} changes; most changes"
            f" ({since.iloc[0]}) are first seen with {since.index[0]}."
        )
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
        f"Of {narrate.count(len(changed), 'change')}, {told}." if told else "No word changes."
    )


def mechanism(chapter: Chapter, what: str) -> narrate.Sentence:
    """One count from the oldest release to the newest, and when it changed."""
    [one] = [one for one in COUNTS if one.what == what]
    row = evidence.counted(chapter).set_index("count").loc[what].drop(["unit", "notes"]).dropna()
    if row.empty:
        raise CannotMeasure(what, "no release that ran can show it")
    unit = "" if one.unit in what else f" ({one.unit})"
    said = (
        f"{what[0].upper()}{what[1:]}{unit}: {narrate.number(float(row.iloc[0]))} on"
        f" {row.index[0]}, {narrate.number(float(row.iloc[-1]))} on {row.index[-1]}."
    )
    if one.since:
        until, since = evidence.first_shown(chapter, one)
        if since and until:
            said += f" The change lies between {until} and {since}; the notes name {one.since}."
        elif since:
            said += f" Every release that ran shows the change that the notes of {one.since} name."
        else:
            said += f" No release that ran shows the change that the notes of {one.since} name."
    else:
        ratios = row.astype(float).pct_change().abs()
        said += f" The largest step comes with {ratios.idxmax()}."
    return narrate.Sentence(said)


def faster(chapter: Chapter) -> narrate.Sentence:
    """The newest release over the oldest of one builder, load by load."""
    names = list(one_builder(chapter))
    parts = [
        f"{what} {narrate.interval(chapter.ratio('throughput', what, names[-1], names[0]))}"
        for what in LOADS
    ]
    return narrate.Sentence(
        f"Throughput on {names[-1]} over that on {names[0]}, both by one builder:"
        f" {'; '.join(parts)}."
    )
