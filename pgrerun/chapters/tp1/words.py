"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

import pandas as pd

from pgrerun import narrate, published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.tp1.ladder import AGAIN, ALONE, TOGETHER, printed_ladder


def noise(chapter: Chapter) -> narrate.Sentence | None:
    """The noise floor from the rung that was climbed twice."""
    throughput = chapter.table("ladder", "throughput")
    if throughput.empty:
        return None
    return narrate.noise(statistics.noise_floor(throughput[TOGETHER], throughput[AGAIN]))


def forced(chapter: Chapter) -> narrate.Sentence | None:
    """The counter behind the forced rungs: checkpoints per transaction, alone and together."""
    counted = [chapter.median("ladder", "checkpoints per transaction", rung) for rung in (ALONE, TOGETHER)]
    if None in counted:
        return None
    alone, together = counted
    said = f"Checkpoints per forced commit: {narrate.interval(alone)} with one backend and {narrate.interval(together)} with several"
    shared = "several backends share some" if together.high < alone.low else "several share none to speak of"
    return narrate.Sentence(f"{said}; {shared}.")


def simulation(simulated: pd.DataFrame) -> narrate.Sentence:
    """How close the simulated disk of 1990 comes to the printed ladder, and what that says."""
    stages, machine = printed_ladder(), published.table("tp1_machine")["value"]
    later = simulated[simulated["name"] != simulated["name"].iloc[0]]
    best = later.loc[later["off"].abs().groupby(later["name"]).idxmin()]
    worst = best["off"].abs().max()
    unsaid = best[best["name"].isin(stages.loc[stages["backends"].isna(), "name"])]
    rate = stages.at["one", "implied_disk"]
    slower = "slower than" if rate < machine["disk_low"] else "within" if rate <= machine["disk_high"] else "faster than"
    sentences = [
        f"The first stage implies a disk of {rate:.1f} requests per second, {slower} the "
        f"{machine['disk_low']:g} to {machine['disk_high']:g} that the report gives for it.",
        f"With that disk the simulation comes within {worst:.0%} of every later printed throughput"
        + (", always from above." if (best["off"] > 0).all() else "."),
    ]
    if (best["off"] > 0).all():
        sentences.append(
            "What it leaves out would slow it down: the paging that the report saw with two processes, and waiting for locks."
        )
    if unsaid["backends"].nunique() == 1:
        sentences.append(
            "The report doesn't say how many backends ran in its last two stages. "
            f"The simulation is nearer with {narrate.count(int(unsaid['backends'].iloc[0]), 'backend')}."
        )
    return narrate.Sentence(" ".join(sentences))
