"""Which updates are heap-only, and whether the thread knew."""

import pandas as pd

from pgrerun.chapters.hot.experiments.eligibility import BRIN_INDEX, BTREE, PLAIN, ROWS
from pgrerun.chapters.hot.experiments.page import Defragmented
from pgrerun.chapters.hot.variants import FILLFACTOR

UNSEEN = (
    "what its code costs there can't be measured without a server that lacks it, as for the next"
    " claim"
)


def counts(cases: pd.DataFrame) -> pd.DataFrame:
    """The counts alone, which are the same in every run."""
    return cases.drop(columns="wal_bytes").rename(columns={"case": "what is updated"})


def of(cases: pd.DataFrame, case: str) -> pd.Series:
    """The row of one kind of update."""
    return cases.set_index("case").loc[case]


def overhead_facts(cases: pd.DataFrame) -> dict[str, bool]:
    """If indexed columns change: HOT unused, and more work per update."""
    plain, btree = of(cases, PLAIN), of(cases, BTREE)
    return {
        "no update of an indexed column is HOT": btree["heap_only"] == 0,
        "it writes more WAL than a HOT update": btree["wal_bytes"] > plain["wal_bytes"],
    }


def index_facts(cases: pd.DataFrame) -> dict[str, bool]:
    """Whether an index on the updated column leaves nothing of HOT."""
    btree = of(cases, BTREE)
    return {
        "with a B-tree on the updated column no update is HOT": btree["heap_only"] == 0,
        "each new version has index entries of its own, as without the patch": (
            btree["same_page"] + btree["other_page"] == ROWS
        ),
    }


def worst_facts(cases: pd.DataFrame) -> dict[str, bool]:
    """Whether the index on the updated column is the worst case for HOT, whatever its kind."""
    others = cases[cases["case"] != BTREE]
    return {
        "with a B-tree no update is HOT": of(cases, BTREE)["heap_only"] == 0,
        "with a BRIN index neither": of(cases, BRIN_INDEX)["heap_only"] == 0,
        "nothing else tried here leaves so few": (others["heap_only"] > 0).all(),
    }


def room_facts(fillfactors: pd.DataFrame) -> dict[str, bool]:
    """Whether first updates have room at the thread's fillfactor, and none without it."""
    share = fillfactors.set_index("fillfactor")["one_by_one"]
    return {
        f"at a fillfactor of {FILLFACTOR} every first update is HOT": share[FILLFACTOR] == 1,
        "on pages filled to the brim most are not": share[100] < 0.5,
    }


def width_facts(widths: pd.DataFrame, defragmented: Defragmented) -> dict[str, bool]:
    """Whether changing widths cost HOT updates, and whether they leave holes that stay."""
    same, *_, much = widths["hot"]
    return {
        "with changing widths fewer updates are HOT": much < same,
        "holes between the tuples stay": defragmented.hole_left > 0,
    }
