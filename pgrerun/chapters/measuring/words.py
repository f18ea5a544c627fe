"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun import narrate, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring import reasons, steadiness, twins, watching


def _percent(share: float) -> str:
    return f"{narrate.number(100 * share, 1)} %".replace(".0 %", " %")


def floor(chapter: Chapter) -> narrate.Sentence:
    """The noise floor of the two equal scans."""
    time = chapter.table("twins", "time")
    return narrate.noise(statistics.noise_floor(time[twins.OTHER], time[twins.ONE], chapter.parameters.seed))


def needed(chapter: Chapter, found: pd.DataFrame) -> narrate.Sentence:
    """How many pairs it takes, and how often nothing is taken for something."""
    least, most = twins.pairs_needed(found).set_index("effect")["pairs"], found["pairs"].max()
    said = []
    for effect in twins.EFFECTS:
        planted = f"{100 * (effect - 1):.0f} %"
        said.append(f"{planted} takes {narrate.count(int(least[effect]), 'pair')}" if pd.notna(least[effect]) else f"{planted} takes more than {narrate.count(int(most), 'pair')}")
    given = chapter.parameters
    reach = twins.smallest(twins.equal_ratios(chapter), given.pairs, given.resamples, given.seed)
    return narrate.Sentence(
        f"To be found in {_percent(twins.POWER)} of experiments on this machine today, with runs of this length, an effect of {', one of '.join(said)}. "
        f"A comparison of {narrate.count(given.pairs, 'pair')}, as this chapter makes below, finds effects from {100 * (reach - 1):.0f} % on so often."
    )


def alarms(found: pd.DataFrame) -> narrate.Sentence:
    """False alarms by the number of pairs, and why five pairs have more than one in twenty."""
    nothing = found[found["effect"] == 1].set_index("pairs")
    few = int(nothing.index.min())
    often = ", ".join(f"{_percent(row.found)} with {pairs} pairs" for pairs, row in nothing.iterrows())
    return narrate.Sentence(
        f"Where there is no effect, the interval excludes 1 in {often}; at most one in twenty is intended. With {few} pairs nothing narrower than the whole range of the ratios "
        f"is an interval at all, and it misses 1 whenever all ratios fall on one side: {_percent(twins.unavoidable(few))} of the time, whatever the noise. "
        f"A verdict needs more than that, an interval outside the margin of interest: that happens in {_percent(nothing['verdict'].max())} of these experiments at most."
    )


def beside_neighbour(chapter: Chapter) -> narrate.Sentence:
    """What pairs and series make of the same runs."""
    found = twins.pairs_and_series(chapter)
    said = " and, ".join(f"compared {way}, {narrate.interval(x)} times" for way, x in found.items())
    return narrate.Sentence(f"The same scan seems to take, {said} as long as itself.")


def dips(shown: pd.DataFrame | None) -> narrate.Sentence | None:
    """Writes after a checkpoint began."""
    found = steadiness.after_checkpoints(shown)
    if found is None:
        return None
    return narrate.Sentence(
        f"In the drawn runs {narrate.count(found['checkpoints'], 'checkpoint')} began; in the {narrate.number(steadiness.AFTER)} s after each, a transaction writes {narrate.number(found['log'], 2)} times as much log as at all other times, and throughput is {narrate.number(found['throughput'], 2)} times as high."
    )


def lengths(chapter: Chapter) -> narrate.Sentence | None:
    """How long runs must be here for one per cent."""
    found = [chapter.median("over time", "length", load) for load in steadiness.LOADS]
    if None in found:
        return None
    said = " and ".join(f"{narrate.number(x.estimate / 60, 1)} minutes for {load}" for load, x in zip(steadiness.LOADS, found))
    return narrate.Sentence(
        f"By the scatter within a run, its mean throughput would be within {_percent(steadiness.WITHIN)} of the truth after {said} (medians over {found[0].n} runs of each). "
        "That is a lower bound: swings slower than the run itself don't show in it."
    )


def counting(shown: pd.DataFrame | None) -> narrate.Sentence | None:
    """How much of the scatter is that of counting few transactions."""
    if shown is None:
        return None
    rate = shown.groupby("load", sort=False)["throughput"]
    said = " and ".join(f"{_percent((mean * steadiness.SLOT) ** -0.5)} ({load})" for load, mean in rate.mean().items())
    return narrate.Sentence(
        f"Throughput is counted in slots of {narrate.number(steadiness.SLOT)} s. Transactions that end independently of each other would scatter by {said} because only so many fall into a slot; what goes beyond that is the machine's and the server's."
    )


def perf_cost(chapter: Chapter) -> narrate.Sentence | None:
    """What perf costs by itself, and the others beside it."""
    found = watching.cost(chapter, watching.SLOW)
    if found is None:
        return None
    others = [name for name in watching.PROFILERS if name not in (watching.PLAIN, watching.SLOW)]
    said = "; ".join(f"{name}, {narrate.interval(watching.cost(chapter, name), against=(1,))}" for name in others)
    return narrate.ratio_sentence(found, "time", "the scan under perf with call graphs", "the scan alone") + f"The same ratio for each of the others: {said}."


def mechanism(chapter: Chapter) -> narrate.Sentence | None:
    """The index beside the statistics alone."""
    found = chapter.ratio("fixes", "time", reasons.INDEXED, reasons.STATISTICS)
    return None if found is None else narrate.ratio_sentence(found, "time", "the query beside the index", "the query with statistics alone")
