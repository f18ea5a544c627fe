"""When a comparison has pairs enough: a few planned looks at it, and what looking costs.

Whoever stops as soon as an interval pleases is wrong more often than the interval says. So looks
are planned before anything is measured (`looks`), and the 5 % in which an interval may be wrong are
divided among them (`share`). By Boole's inequality the intervals of all looks are then right
together in 95 % of experiments, whatever is estimated and whatever made one stop: they are repeated
confidence intervals (Jennison and Turnbull 1989, "Interim analyses: the repeated confidence
interval approach"), and what each look spends of the error is fixed beforehand (Lan and DeMets
1983). Boundaries that use how looks depend on each other would be a little narrower, and right for
normal errors and one rule of stopping alone.

One stops where the comparison is plain: no interval holds a ratio at which a claim's word changes
(`bounds`), unless it is narrow anyway. The first look is at seven pairs. All of their ratios lie on
one side of the true one in one experiment of 64, so that the whole range of them is wrong in 1.6 %;
that is what this look spends, and what is left falls to the later ones in equal parts.
"""

import math
from collections.abc import Collection, Iterable, Sequence, Set
from itertools import combinations

import pandas as pd

from pgrerun.record import claims, statistics
from pgrerun.record.claims import Claim
from pgrerun.record.verdicts import reached

FIRST = 7
SPENT = 2.0 ** (1 - FIRST) / 0.05  # of the error, by the first of several looks
THRICE = 4 * FIRST  # from so many pairs on a look between the first and the last pays


def looks(pairs: int) -> tuple[int, ...]:
    """After how many pairs one looks, the last at `pairs`, the most there may be.

    At most three times, since each costs certainty; up to `FIRST` pairs once.
    """
    if pairs <= FIRST:
        return (pairs,)
    return (FIRST, *([round(math.sqrt(FIRST * pairs))] if pairs >= THRICE else []), pairs)


def share(planned: Sequence[int], blocks: int) -> float:
    """The share of the error that the look spends at which an experiment of `blocks` ended."""
    if len(planned) < 2:
        return 1.0
    return SPENT if blocks <= planned[0] else (1 - SPENT) / (len(planned) - 1)


def bounds(declared: Iterable[Claim]) -> frozenset[float]:
    """Ratios above 1 at which the word of one of these claims changes, read either way round."""
    found = set()
    for claim in declared:
        found.add(1 + claim.margin)
        for size in claim.sizes.values():
            found |= {end if end > 1 else 1 / end for end in reached(claim, size) if end > 0}
    return frozenset(found or {1 + claims.MARGIN})


def settled(
    rows: pd.DataFrame,
    metrics: Iterable[str],
    planned: Sequence[int],
    bounds: Collection[float],
    against: Set[str] = frozenset(),
) -> bool:
    """Whether more pairs could change no word: variants are told apart, by each of these metrics.

    `rows` are an experiment's at one of its `planned` looks, with the columns block, variant, and
    one for each metric. Compared are each two variants, or all others with those that are
    `against`. A metric with values that aren't positive has no ratios, and says nothing.
    """
    for metric in metrics:
        spent = share(planned, int(rows["block"].max()) + 1)
        wide = rows.pivot(index="block", columns="variant", values=metric).astype(float).dropna()
        if len(wide) < FIRST:  # blocks were left out
            return False
        for one, other in combinations(wide, 2):
            if against and not {one, other} & against:
                continue
            a, b = (statistics.Sample(wide[name], spent) for name in (one, other))
            ratio = statistics.ratio(a, b)
            if not (ratio.disturbed or plain(ratio, bounds)):
                return False
    return True


def plain(ratio: statistics.Interval, bounds: Collection[float]) -> bool:
    """Whether no bound lies inside, or the interval is no wider than the least of them."""
    if ratio.high <= ratio.low * min(bounds):
        return True
    return not any(ratio.low < x < ratio.high for bound in bounds for x in (bound, 1 / bound))
