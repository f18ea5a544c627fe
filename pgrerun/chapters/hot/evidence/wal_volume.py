"""What HOT saves in WAL, and what pruning costs."""

import pandas as pd

from pgrerun.chapters.hot.evidence import eligibility
from pgrerun.chapters.hot.experiments.eligibility import BTREE
from pgrerun.chapters.hot.experiments.wal_volume import (
    AT_EVERY_VISIT,
    ENTRIES,
    FRESH,
    LATER,
    PRUNED,
    REMOVED,
    WITHOUT_ROOM,
    Written,
)
from pgrerun.chapters.hot.variants import HOT, INDEXED, VARIANTS


def bytes_of(written: Written, variant: str, phase: str = LATER) -> float:
    """Bytes of WAL per transaction of a variant in a phase."""
    return written.wal.groupby(["variant", "phase"])["bytes"].sum()[variant, phase]


def changed_pages(written: Written) -> pd.DataFrame:
    """Distinct pages that a transaction changes, by variant and relation or index."""
    return written.pages


def per_variant(written: Written) -> pd.DataFrame:
    """In short: bytes of WAL per transaction in each phase, those later over HOT's, and records."""
    later = written.wal[written.wal["phase"] == LATER]
    records = later.pivot(index="variant", columns="part", values="records")
    rows = []
    for variant in VARIANTS:
        row = {"variant": variant}
        row |= {f"bytes {phase}": bytes_of(written, variant, phase) for phase in (FRESH, LATER)}
        row["bytes later, HOT = 1"] = row[f"bytes {LATER}"] / bytes_of(written, HOT)
        row["records"] = records.loc[variant].sum()
        rows.append(row | records.loc[variant, [PRUNED, ENTRIES, REMOVED]].to_dict())
    return pd.DataFrame(rows)


def indicative_facts(written: Written, cases: pd.DataFrame) -> dict[str, bool]:
    """Whether there is a workload that HOT does nothing for, and that pruning costs something."""
    by_part = written.wal.set_index(["variant", "phase", "part"])["bytes"]
    return {
        "with the updated column indexed no update is HOT": (
            eligibility.of(cases, BTREE)["heap_only"] == 0
        ),
        "pruning, which came with HOT, writes WAL there nevertheless": (
            by_part[INDEXED, LATER, PRUNED] > 0
        ),
    }


def eager_over_lazy(pruning: pd.DataFrame) -> float:
    """WAL per update with pruning at every visit over that with pruning only without room."""
    by_when = pruning.set_index("pruned")["bytes"]
    return by_when[AT_EVERY_VISIT] / by_when[WITHOUT_ROOM]
