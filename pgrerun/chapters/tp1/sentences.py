"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.tp1 import evidence
from pgrerun.chapters.tp1.experiments import slow_disk
from pgrerun.chapters.tp1.variants import AGAIN, ALONE, LONE, PAIR, TOGETHER, printed_ladder
from pgrerun.page import narrate
from pgrerun.record import printed, statistics


def noise(chapter: Chapter) -> narrate.Sentence:
    """The noise floor from the rung that was climbed twice."""
    throughput = chapter.table("ladder", "throughput")
    return narrate.noise(statistics.noise_floor(throughput[TOGETHER], throughput[AGAIN]))


def forced(chapter: Chapter) -> narrate.Sentence:
    """The counter behind the forced rungs: checkpoints per transaction, alone and together."""
    alone, together = (
        chapter.median("ladder", "checkpoints per transaction", rung) for rung in (ALONE, TOGETHER)
    )
    shared = "some" if together.high < alone.low else "none to speak of"
    return narrate.Sentence(
        f"Checkpoints per forced commit: {narrate.interval(alone)} with one backend and"
        f" {narrate.interval(together)} with several; several backends share {shared}."
    )


def reads_of_a_second(chapter: Chapter) -> narrate.Sentence:
    """Reads per transaction with one backend and with several, on the slowed disk and as printed.

    Whether part of what several fall short by is that they read more, and not missing overlap.
    """
    lone, pair = (chapter.median(slow_disk.LADDER, "reads", rung) for rung in (LONE, PAIR))
    ratio = evidence.reads_of_a_second(chapter)
    stages = printed_ladder().set_index("name")["reads"]
    one, two = stages[ALONE], stages[TOGETHER]
    told = (
        f"Requests to read per transaction on the slowed disk, on the rungs “{LONE}” and “{PAIR}”:"
        f" {narrate.interval(lone)} with one backend and {narrate.interval(pair)} with several,"
        f" {narrate.interval(ratio)} times as many. In the report a second backend brought"
        f" them from {one:g} to {two:g}."
    )
    if ratio.enough and ratio.low > 1 > two / one:
        told += (
            " So a part of what several backends fall short by comes from reading more in the"
            " shared pool, not from missing overlap; the report's two didn't read more."
        )
    return narrate.Sentence(told)


def simulation(simulated: pd.DataFrame) -> narrate.Sentence:
    """How close the simulated disk of 1990 comes to the printed ladder, and what that says."""
    stages, machine = printed_ladder(), printed.table("tp1_machine")["value"]
    later = simulated[simulated["name"] != simulated["name"].iloc[0]]
    best = later.loc[later["off"].abs().groupby(later["name"]).idxmin()]
    off = dict(iter(later.groupby("backends")["off"]))
    told = [f"{_aside(off[n])} with {narrate.count(n, 'backend')}" for n in sorted(off)[::-1]]
    many = max(off)
    unsaid = best[best["name"].isin(stages.loc[stages["backends"].isna(), "name"])]
    rate, slower = stages.at["one", "implied_disk"], "within"
    if rate < machine["disk_low"]:
        slower = "slower than"
    elif rate > machine["disk_high"]:
        slower = "faster than"
    sentences = [
        f"The first stage implies a disk of {rate:.1f} requests per second, {slower} the"
        f" {machine['disk_low']:g} to {machine['disk_high']:g} that the report gives for it.",
        "With that disk the later throughputs are, against the printed ones,"
        f" {narrate.listed(told)}.",
    ]
    if many > 1 and (off[many] > 0).all():
        sentences.append(
            "What the simulation leaves out would slow several backends down: the paging that the"
            " report saw with two processes, and waiting for locks."
        )
    if unsaid["backends"].nunique() == 1:
        sentences.append(
            "The report doesn't say how many backends ran in its last two stages. The simulation"
            f" is nearer with {narrate.count(int(unsaid['backends'].iloc[0]), 'backend')}."
        )
    return narrate.Sentence(" ".join(sentences))


def _aside(off: pd.Series) -> str:
    """On which side of the print simulated throughputs lie, and how far."""
    low, high = off.min(), off.max()
    if low < 0 < high:
        return f"from {-low:.0%} below to {high:.0%} above"
    ends = dict.fromkeys(f"{abs(end):.0%}" for end in (low, high))
    return f"{' to '.join(ends)} {'below' if low < 0 else 'above'}"
