"""Sentences that only this chapter says; judgements are put into words by `narrate`."""

from pgrerun import narrate, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring import twins


def floor(chapter: Chapter) -> narrate.Sentence:
    """The noise floor of the two equal scans."""
    time = chapter.table("twins", "time")
    return narrate.noise(statistics.noise_floor(time[twins.OTHER], time[twins.ONE], chapter.parameters.seed))
