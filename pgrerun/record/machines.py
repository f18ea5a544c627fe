"""What the words of many machines tell: which claims depend on the machine, and who is unlike all.

A claim depends on a circumstance (processors, release, flush, memory) where the machines that give
one word differ in it from those that give another: Kruskal and Wallis's test of the circumstance by
word, for every claim and circumstance, corrected for their number after Benjamini and Hochberg.
"Not tested here" is no word in this sense, nor is one that fewer than five machines give.
Circumstances go together: machines with many processors have much memory. So beside the clearest
one another counts only if it tells words apart among machines that are alike in that one.

The machine most unlike its peers is the one whose words are the least expected: each word's
surprise, the logarithm of its share among the machines (those alike in what the claim depends on),
summed up and compared with what such a machine's sum would be by chance. How far the farthest of
so many machines lies by chance alone is found by dealing each claim's words out anew.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pgrerun.record import statistics
from pgrerun.record.gather import Gathered
from pgrerun.record.statistics import Difference, Interval
from pgrerun.record.verdicts import Verdict

Numbers = NDArray[np.float64]
Words = NDArray[np.int64]

CHANCE = 0.01
"""The share of chance findings that is accepted among those that are told."""

DEALS = 199
"""How often words are dealt out anew."""

MOST_BINS = 6
FEW = 10
"""Machines below which nothing is said about dependence or peers."""

CIRCUMSTANCES = ("cores", "release", "flush", "memory")
"""What claims may depend on."""


@dataclass(frozen=True)
class Bin:
    """Machines that are about alike in a circumstance, whose values go from `low` to `high`."""

    low: float
    high: float
    middle: float
    machines: NDArray[np.int64]


@dataclass(frozen=True)
class Dependence:
    """A claim whose word depends on a circumstance; `q` is its false discovery rate.

    `others` are further circumstances that tell the words apart among machines alike in this one.
    """

    claim: str
    circumstance: str
    found: Difference
    q: float
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unlike:
    """The machine most unlike its peers: its number, how many standard deviations its words are
    from what is expected, the share of deals in which one was as far, and its rarest words as
    (claim, word, how many gave it, of how many).
    """

    machine: int
    score: float
    p: float
    words: list[tuple[str, str, int, int]]


@dataclass(frozen=True)
class Findings:
    """What many machines' words tell; `tests` were made, and `unlike` is None below FEW."""

    tests: int
    dependences: list[Dependence] = field(default_factory=list)
    unlike: Unlike | None = None


def values(gathered: Gathered, name: str) -> Numbers:
    """A circumstance of each machine; NaN where its records don't say.

    A release of old by its first two numbers.
    """
    found = (getattr(machine, name) for machine in gathered.machines)
    return np.array([float(value) if value else math.nan for value in found])


def words(gathered: Gathered, claim: str) -> Words:
    """Of each machine the place of its word in the vocabulary, -1 for none."""
    return np.array([-1 if word is None else word for word in gathered.words[claim]])


def tally(gathered: Gathered, claim: str) -> dict[str, int]:
    """How many machines give which word, the most frequent first."""
    counted = Counter(word for word in gathered.words[claim] if word is not None)
    order = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return {gathered.vocabulary[word]: number for word, number in order}


def bins(known: Numbers) -> list[Bin]:
    """Machines by the value of a circumstance: each value by itself if there are few, else in
    groups of about equal size.
    """
    present = known[~np.isnan(known)]
    if not present.size:
        return []
    distinct = np.unique(present)
    if distinct.size > MOST_BINS:
        edges = np.quantile(present, np.linspace(0, 1, MOST_BINS)[1:-1])
        group = np.searchsorted(edges, known, side="right")
    else:
        group = np.searchsorted(distinct, known)
    found = []
    for number in np.unique(group[~np.isnan(known)]):
        members = np.flatnonzero((group == number) & ~np.isnan(known))
        x = known[members]
        found.append(Bin(float(x.min()), float(x.max()), float(np.median(x)), members))
    return found


def shares(gathered: Gathered, claim: str, name: str) -> list[tuple[Bin, str, Interval]]:
    """For each bin and word the share of the bin's machines that give it."""
    given, found = words(gathered, claim), []
    for one in bins(np.where(given >= 0, values(gathered, name), np.nan)):
        inside = given[one.machines]
        for word in tally(gathered, claim):
            number = int((inside == gathered.vocabulary.index(word)).sum())
            found.append((one, word, statistics.share(number, inside.size)))
    return found


def findings(gathered: Gathered) -> Findings:
    """Which claims depend on the machine, and which machine is most unlike its peers."""
    if len(gathered.machines) < FEW:
        return Findings(0)
    known = {name: values(gathered, name) for name in CIRCUMSTANCES}
    tested = [
        (claim, name, found)
        for claim in gathered.words
        for name in CIRCUMSTANCES
        if (found := statistics.difference(_by_word(gathered, claim, known[name])))
    ]
    rates = statistics.false_discoveries([found.p for *_, found in tested])
    clear: dict[str, list[tuple[str, Difference, float]]] = {}
    for (claim, name, found), q in zip(tested, rates):
        if q <= CHANCE:
            clear.setdefault(claim, []).append((name, found, float(q)))
    dependences = [_dependence(gathered, claim, clear[claim], known) for claim in clear]
    dependences.sort(key=lambda one: (-one.found.effect, one.claim))
    return Findings(len(tested), dependences, _unlike(gathered, dependences, known))


def _by_word(gathered: Gathered, claim: str, known: Numbers) -> list[Numbers]:
    """The circumstance's values of the machines that give each word, by which it was tested."""
    given = words(gathered, claim)
    return [
        known[(given == word) & ~np.isnan(known)]
        for word in np.unique(given[given >= 0])
        if gathered.vocabulary[word] != Verdict.NOT_TESTED
    ]


def _dependence(
    gathered: Gathered,
    claim: str,
    clear: Sequence[tuple[str, Difference, float]],
    known: Mapping[str, Numbers],
) -> Dependence:
    name, found, q = max(clear, key=lambda one: one[1].effect)
    alike = bins(known[name])
    others = []
    for other in (circumstance for circumstance, *_ in clear if circumstance != name):
        every = np.arange(known[other].size)
        inside = (np.where(np.isin(every, one.machines), known[other], np.nan) for one in alike)
        within = statistics.difference_within([_by_word(gathered, claim, x) for x in inside])
        if within and within.p <= CHANCE:
            others.append(other)
    return Dependence(claim, name, found, q, tuple(others))


# ---- the machine most unlike its peers


def _unlike(
    gathered: Gathered, dependences: Sequence[Dependence], known: Mapping[str, Numbers]
) -> Unlike | None:
    depends = {one.claim: known[one.circumstance] for one in dependences}
    groups = [
        (claim, given, members)
        for claim in gathered.words
        for given in [words(gathered, claim)]
        for members in _peers(given, depends.get(claim))
    ]
    size = len(gathered.machines)
    sums = np.zeros((DEALS + 1, size))
    spread = np.zeros(size)
    random = np.random.default_rng(1974)
    for _, given, members in groups:
        surprise = _surprise(given[members])
        spread[members] += surprise.var()
        surprise = surprise - surprise.mean()
        sums[0, members] += surprise
        dealt = random.permuted(np.tile(surprise, (DEALS, 1)), axis=1)
        sums[1:, members] += dealt
    if not spread.any():
        return None
    scores = np.divide(sums, np.sqrt(spread), out=np.zeros_like(sums), where=spread > 0)
    machine = int(scores[0].argmax())
    farthest = scores.max(axis=1)
    p = float((farthest >= farthest[0]).sum()) / (DEALS + 1)
    return Unlike(machine, float(scores[0, machine]), p, _rarest(gathered, groups, machine))


def _peers(given: Words, depends: Numbers | None) -> list[NDArray[np.int64]]:
    """The machines that gave a word, apart by what the claim depends on."""
    groups = [np.flatnonzero(given >= 0)]
    if depends is not None:
        groups = [one.machines for one in bins(np.where(given >= 0, depends, np.nan))]
    return [members for members in groups if members.size > 1]


def _surprise(given: Words) -> Numbers:
    """Bits: the logarithm of the share of the machines that gave the same word, turned over."""
    _, places, number = np.unique(given, return_inverse=True, return_counts=True)
    found: Numbers = -np.log2(number[places] / given.size)
    return found


def _rarest(
    gathered: Gathered, groups: Sequence[tuple[str, Words, NDArray[np.int64]]], machine: int
) -> list[tuple[str, str, int, int]]:
    found = []
    for claim, given, members in groups:
        if machine in members:
            same = int((given[members] == given[machine]).sum())
            if same * 2 < members.size:
                found.append((claim, gathered.vocabulary[given[machine]], same, members.size))
    return sorted(found, key=lambda one: one[2] / one[3])
