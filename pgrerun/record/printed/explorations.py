"""Explorations: what the slides' numbers imply, and where slides disagree.

Averages are recomputed from the single readings, sizes from the layout of a Wisconsin tuple.
"""

import numpy as np
import pandas as pd

from pgrerun.record.printed.reading import Check, cell, table

_PAGE, _PAGE_HEADER, _LINE_POINTER = 8192, 24, 4
_TUPLE = 24 + 8 * -(-(13 * 4 + 3 * 53) // 8)
"""A tuple on its page: header, thirteen int4, three strings of 52 letters with a byte of length
each, padded to 8.
"""
TUPLES = {"hundredktup": 100_000, "miltup": 1_000_000, "tenmiltup": 10_000_000}
"""The relations, by the slides' names for them."""
POOLS = {"mb128": "pool_small", "mb208": "pool_equal", "mb500": "pool_large"}


def heap_pages(tuples: int) -> int:
    """Pages of a freshly loaded Wisconsin relation."""
    return -(-tuples // ((_PAGE - _PAGE_HEADER) // (_TUPLE + _LINE_POINTER)))


def megabytes(pages: float) -> float:
    """MB of 2^20 bytes, as PostgreSQL's settings count."""
    return pages * _PAGE / 2**20


def _pool_averages() -> pd.DataFrame:
    """Adds the mean of the five rounds of each group, by pool ("recomputed_mb128" and so on)."""
    t, rounds = table("explorations_pool_averages"), table("explorations_pool_rounds")
    means = rounds.groupby("group")[list(POOLS)].mean()
    return t.join(means.add_prefix("recomputed_"))


def _trimmed(runs: pd.DataFrame) -> pd.Series:
    """Mean of each column without its least and its greatest value."""
    ordered = np.sort(runs.to_numpy(float), axis=0)
    return pd.Series(ordered[1:-1].mean(axis=0), index=runs.columns)


def _grouping_averages() -> pd.DataFrame:
    """Adds the recomputed averages ("recomputed_q1_64kb" and so on)."""
    return _with_trimmed("grouping")


def _sizeup_averages() -> pd.DataFrame:
    """Adds the recomputed averages ("recomputed_q1" and so on)."""
    return _with_trimmed("sizeup")


def _with_trimmed(name: str) -> pd.DataFrame:
    t = table(f"explorations_{name}_averages")
    for column, value in _trimmed(table(f"explorations_{name}_runs")).items():
        t[f"recomputed_{column}"] = value
    return t


def _pool_rounds() -> pd.DataFrame:
    """Adds the pools' share of the relation ("share_mb128" and so on), the relation being as large
    as its layout makes it.
    """
    t = table("explorations_pool_rounds")
    for pool, share in shares().items():
        t[f"share_{pool}"] = share
    return t


def shares() -> dict[str, float]:
    """The slides' pools as multiples of miltup's heap, by column of the rounds."""
    size = megabytes(heap_pages(TUPLES["miltup"]))
    return {
        pool: cell("explorations_setup", quantity, "value") / size
        for pool, quantity in POOLS.items()
    }


DERIVED = {
    "explorations_pool_averages": _pool_averages,
    "explorations_pool_rounds": _pool_rounds,
    "explorations_grouping_averages": _grouping_averages,
    "explorations_sizeup_averages": _sizeup_averages,
}


def checks() -> list[Check]:
    """Print against print for this chapter."""
    return [
        *_check_averages(),
        *_check_pools(),
        *_check_plans(),
        *_check_sizes(),
        *_check_words_on_grouping(),
        *_check_words_on_sizeup(),
    ]


def _check_averages() -> list[Check]:
    rows = []
    for name, kind in (
        ("pool", "mean of all five"),
        ("grouping", "mean without the fastest and the slowest"),
        ("sizeup", "mean without the fastest and the slowest"),
    ):
        t = DERIVED[f"explorations_{name}_averages"]()
        columns = [c for c in t if not c.startswith("recomputed_")]
        worst = max(
            abs(t.at[key, c] - t.at[key, f"recomputed_{c}"]) for key in t.index for c in columns
        )
        experiment = {"pool": 1, "grouping": 2, "sizeup": 3}[name]
        rows.append(
            Check(
                f"Experiment {experiment}, averages",
                f"{len(columns) * len(t)} averages",
                f"at most {worst:.4f} ms off",
                agrees=worst < 0.002,
                note=f"Each is the {kind} readings.",
            )
        )
    return rows


def _slower_rounds() -> dict[str, int]:
    """By pool, the rounds whose reading after the update is slower than the control's."""
    rounds = table("explorations_pool_rounds")
    dirty = rounds[rounds.group == "dirty"].set_index("number")
    clean = rounds[rounds.group == "clean"].set_index("number")
    return {pool: int((dirty[pool] > clean[pool]).sum()) for pool in POOLS}


def _check_pools() -> list[Check]:
    slower = _slower_rounds()
    return [
        Check(
            "Experiment 1, “a small but consistent delta”",
            "consistent at 128 MB and 208 MB",
            f"{slower['mb128']} and {slower['mb208']} of 5 rounds",
            agrees=slower["mb128"] == slower["mb208"] == 5,
            note=(
                "Rounds whose reading after the update is slower than the control's of the same"
                " number; by chance alone half of them would be."
            ),
        ),
        Check(
            "Experiment 1, “the 500 MB data are suspect”",
            "slower after an update",
            f"{slower['mb500']} of 5 rounds",
            agrees=slower["mb500"] > 2,
            note="At the largest pool the control group is the slower one on average.",
        ),
    ]


def _check_plans() -> list[Check]:
    plans = table("explorations_plans")
    grouping = table("explorations_grouping_runs")
    sizeup = table("explorations_sizeup_runs")
    n = len(grouping)
    averaged = cell("explorations_setup", "averaged", "value")
    ms = plans.execution_ms
    return [
        Check(
            "Experiment 2, number of runs",
            f"{averaged:g} runs",
            f"{n} runs, {n - 2} of them averaged",
            agrees=False,
            note=(
                "The charts' titles count what is left after the fastest and the slowest reading"
                " were dropped."
            ),
        ),
        Check(
            "Appendix against Experiment 2, group by unique2",
            f"{ms['group_unique']:g} ms",
            f"{grouping.q1_4mb['run1']:g} ms",
            agrees=ms["group_unique"] == grouping.q1_4mb["run1"],
            note="The plan is that of the first run at 4 MB.",
        ),
        Check(
            "Appendix against Experiment 2, group by twenty",
            f"{ms['group_twenty']:g} ms",
            f"{grouping.q2_4mb['run1']:g} ms",
            agrees=ms["group_twenty"] in set(grouping.q2_4mb) | set(grouping.q2_64kb),
            note="No run of the table took as long as the plan of the appendix says.",
        ),
        Check(
            "Appendix against Experiment 3, indexed point query",
            f"{ms['point_small']:g} ms",
            f"{sizeup.q1['run1']:g} ms",
            agrees=ms["point_small"] == sizeup.q1["run1"],
            note="Two digits changed places in one of them.",
        ),
        Check(
            "Appendix against Experiment 3, the other point queries",
            "three plans",
            "three first runs",
            agrees=(ms["point_large"], ms["scan_small"], ms["scan_large"])
            == tuple(sizeup.loc["run1", ["q2", "q3", "q4"]]),
            note="The plans of the other three are those of the first run.",
        ),
    ]


def _check_sizes() -> list[Check]:
    setup = table("explorations_setup").value
    small, large = (megabytes(heap_pages(TUPLES[name])) for name in ("hundredktup", "miltup"))
    huge = megabytes(heap_pages(TUPLES["tenmiltup"]))
    attributes = TUPLES["hundredktup"] * (13 * 4 + 3 * 52) / 1e6
    slow, fast = (
        table("explorations_sizeup_averages").loc["average", c] / 1000 for c in ("q4", "q3")
    )
    ratio = slow / fast
    return [
        Check(
            "Experiment 4, size of the smaller table",
            f"{setup.small_mb:g} MB",
            f"{attributes:g} MB of attributes",
            agrees=setup.small_mb == attributes,
            note="The slides count the bytes of the attributes, 208 a tuple.",
        ),
        Check(
            "Experiment 1, a pool of the relation's size",
            f"{setup.pool_equal:g} MB",
            f"{large:.0f} MB",
            agrees=abs(setup.pool_equal / large - 1) < 0.05,
            note=(
                "With tuple headers, padding and line pointers miltup fills"
                f" {heap_pages(TUPLES['miltup']):,} pages, so that the pool said to be as large as"
                f" the relation is {setup.pool_equal / large:.2f} of it, and of the {2 * large:.0f}"
                " MB that the updated copy of it fills, less than half."
            ),
        ),
        Check(
            "Experiment 2 against Experiment 4, size of hundredktup",
            f"{setup.table_mb:g} MB",
            f"{small:.1f} MB",
            agrees=abs(setup.table_mb / small - 1) < 0.05,
            note=(
                f"{heap_pages(TUPLES['hundredktup']):,} pages by its layout; Experiment 4 says"
                f" {setup.small_mb:g} MB."
            ),
        ),
        Check(
            "Experiment 3, reading tenmiltup",
            f"{slow:.1f} s",
            f"{huge / slow:.1f} MB/s",
            agrees=huge / slow > 0.5 * small / fast,
            note=(
                f"{huge:,.0f} MB in that time; hundredktup was read at {small / fast:.0f} MB/s,"
                f" from memory. A hundred times the data took {ratio:,.0f} times as long,"
                f" {ratio / 100:.1f} times more than in proportion, as it came from a disk."
            ),
        ),
    ]


def _check_words_on_grouping() -> list[Check]:
    setup = table("explorations_setup").value
    plans = table("explorations_plans")
    g = table("explorations_grouping_averages").loc["average"]
    groups = 100 * plans["rows"]["group_twenty"] / TUPLES["hundredktup"]
    return [
        Check(
            "Experiment 2, “20% selection”",
            f"{setup.share_twenty:g} %",
            f"{groups:g} %",
            agrees=setup.share_twenty == groups,
            note=(
                "Both statements read every tuple; of the tuples that are read, the groups that"
                " come out are this share."
            ),
        ),
        Check(
            "Experiment 2, “almost double”",
            "2",
            f"{g.q1_30mb / g.q2_30mb:.2f}",
            agrees=abs(g.q1_30mb / g.q2_30mb - 2) < 0.1,
            note="Averages at 30 MB, both by hashing.",
        ),
        Check(
            "Experiment 2, “better when working memory is 4 MB”",
            "both faster",
            (
                f"{100 * (g.q1_64kb / g.q1_4mb - 1):.1f} % and"
                f" {100 * (g.q2_64kb / g.q2_4mb - 1):.1f} %"
            ),
            agrees=g.q1_4mb < g.q1_64kb and g.q2_4mb < g.q2_64kb,
            note=(
                "By the averages, which leave out a reading of 250.324 ms; the plans are the same."
            ),
        ),
        Check(
            "Experiment 2, “a query plan that is optimal”",
            f"{g.q1_4mb:g} ms at 4 MB",
            f"{g.q1_30mb:g} ms at 30 MB",
            agrees=g.q1_30mb <= g.q1_4mb,
            note=(
                "With more memory the planner chose hashing, and the statement got slower: the plan"
                " was not the optimal one."
            ),
        ),
    ]


def _check_words_on_sizeup() -> list[Check]:
    u = table("explorations_sizeup_averages").loc["average"]
    return [
        Check(
            "Experiment 3, expectations",
            "a significant difference",
            "run time will be close",
            agrees=False,
            note=(
                "One slide expects a non-indexed query to take much longer on more data, the next"
                " one the contrary."
            ),
        ),
        Check(
            "Experiment 3, “orders of magnitude”",
            "larger",
            f"{u.q4 / u.q3:,.0f} times",
            agrees=u.q4 / u.q3 > 100,
            note="Three orders of magnitude, for two orders more data.",
        ),
    ]
