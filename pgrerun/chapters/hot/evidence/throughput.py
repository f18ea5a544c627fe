"""How much throughput HOT is worth, and what explains it; what growth costs readers."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.evidence.growth import over_hot
from pgrerun.chapters.hot.evidence.wal_volume import bytes_of
from pgrerun.chapters.hot.experiments.throughput import AGAIN, LARGE, SMALL, merlins, pavans
from pgrerun.chapters.hot.experiments.wal_volume import Written
from pgrerun.chapters.hot.variants import HOT, NO_HOT, REDUCED
from pgrerun.page import narrate
from pgrerun.record import statistics
from pgrerun.record.claims import MARGIN
from pgrerun.record.statistics import Interval


def over(chapter: Chapter, variant: tuple[str, str], base: tuple[str, str]) -> Interval:
    """Throughput of one of `PAVAN` (script and variant) over another's."""
    return chapter.ratio("throughput", "throughput", pavans(*variant), pavans(*base))


def equal_sizes(chapter: Chapter) -> Interval:
    """Throughput with HOT over that of updates without it whose relations don't grow: pruned."""
    return over(chapter, (REDUCED, HOT), (REDUCED, NO_HOT))


def merlin_over(chapter: Chapter, clients: int, variant: str = HOT, base: str = NO_HOT) -> Interval:
    """Throughput of one variant over another's in Merlin's runs."""
    return chapter.ratio("merlin", "throughput", merlins(clients, variant), merlins(clients, base))


def improvements(chapter: Chapter) -> dict[str, Interval]:
    """HOT over no HOT in Merlin's set-up, by clients."""
    clients = (1, chapter.parameters.clients)
    return {narrate.count(number, "client"): merlin_over(chapter, number) for number in clients}


def aa_runs(chapter: Chapter) -> pd.DataFrame:
    """Throughput of the two identical variants, a row per block."""
    found = chapter.table("throughput", "throughput")
    return found[[pavans(REDUCED, HOT), pavans(REDUCED, AGAIN)]]


def volatility(chapter: Chapter) -> Interval:
    """The faster of two identical runs over the slower."""
    both = aa_runs(chapter)
    return statistics.ratio(both.max(axis=1), both.min(axis=1), seed=chapter.parameters.seed)


def jump_facts(chapter: Chapter, sizes: pd.DataFrame, written: Written) -> dict[str, bool]:
    """What has to be true if stable sizes explain the jump of throughput.

    The ratio at equal sizes counts only if it is resolved.
    """
    facts = {
        "with neither HOT nor pruning accounts grows": over_hot(sizes, "accounts") > 1,
        "apart from sizes both do the same: HOT writes no less WAL": (
            bytes_of(written, HOT) >= bytes_of(written, NO_HOT)
        ),
    }
    if not jump_note(chapter):
        not_faster = statistics.equivalent(equal_sizes(chapter), MARGIN)
        facts["where sizes are stable without HOT, HOT isn't faster"] = not_faster
    return facts


def jump_note(chapter: Chapter) -> str:
    """Says that the ratio at equal sizes doesn't decide, or nothing."""
    speed = equal_sizes(chapter)
    decided = statistics.equivalent(speed, MARGIN) or speed.low > 1 + MARGIN
    if speed.enough and decided:
        return ""
    return "whether HOT is faster where sizes are stable without it isn't resolved in this run"


def bound_facts(pools: pd.DataFrame) -> dict[str, bool]:
    """Whether the thread's pool makes transactions read, and whether they then wait for that.

    That all of it fitted into the thread's memory is recomputed in `printed.disagreements`.
    """
    by_pool = pools.set_index("pool")
    small, large = by_pool.loc[SMALL], by_pool.loc[LARGE]
    return {
        "from the thread's share of pool a transaction reads a page and more": small["reads"] >= 1,
        "from a pool that holds everything it reads less than a tenth of that": (
            large["reads"] < 0.1 * small["reads"]
        ),
        "reading takes most of the time that backends are at work": small["waiting"] > 0.5,
    }
