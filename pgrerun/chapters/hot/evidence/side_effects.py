"""Which of the thread's fears came true."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.experiments.page import Defragmented
from pgrerun.chapters.hot.experiments.side_effects import (
    CLUSTERED,
    FULL_VACUUM,
    LOOKS,
    OLD_SNAPSHOT,
    WAITS,
    BrokenChains,
)
from pgrerun.chapters.hot.variants import HOT, UNPRUNED


def chain_facts(chains: pd.DataFrame) -> dict[str, bool]:
    """Whether an old snapshot makes chains as long as there are updates, and lookups worse."""
    last = chains[chains["updates"] == max(LOOKS)].set_index("variant")
    beside = last.loc[OLD_SNAPSHOT]
    return {
        "beside an old snapshot a chain grows": beside["chain"] > last.at[HOT, "chain"],
        "it grows with every update": beside["chain"] == max(LOOKS) + 1,
        "a lookup touches no more pages than without HOT": (
            beside["pages"] <= last.at[UNPRUNED, "pages"]
        ),
    }


def contention_facts(waits: pd.DataFrame, beside_pin: Defragmented) -> dict[str, bool]:
    """Whether pruning takes the page for itself, and whether anybody is seen to wait for that."""
    share = waits.set_index("waiting")["share"]
    return {
        "pruning needs the page for itself": not beside_pin.pinned,
        "a SELECT that can't have it waits": beside_pin.waited,
        "backends wait until others have left the page": share[WAITS["BufferPin:BufferPin"]] > 0,
    }


def broken_chains(found: BrokenChains) -> pd.DataFrame:
    """`experiments.side_effects.broken_chains`, a row per finding."""
    rows = {
        "warnings of CREATE INDEX": ", ".join(found.warnings) or "none",
        "is the index marked as not for old snapshots (indcheckxmin)?": found.marked,
        "does the old session's plan use it?": found.old_uses,
        "does the old session find the old version by its value?": found.old_finds,
        "does a new session's plan use it?": found.new_uses,
        "does the new session find the new version by its value?": found.new_finds,
        "is an index marked when nobody has an old snapshot?": not found.unmarked_without_snapshot,
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())}, dtype=object)


def index_bug(found: BrokenChains) -> bool:
    """Whether CREATE INDEX on HOT-updated tuples warns or gives wrong answers."""
    return bool(found.warnings) or not (found.old_finds and found.new_finds)


def change_facts(found: BrokenChains, rewrites: pd.DataFrame) -> dict[str, bool]:
    """Whether CREATE INDEX and VACUUM FULL treat HOT chains in a way of their own."""
    heap_only = rewrites.set_index("command")["heap_only"]
    return {
        "CREATE INDEX marks an index over broken chains": found.marked,
        "old snapshots are kept from it": not found.old_uses and found.old_finds,
        "VACUUM FULL dissolves the chains": heap_only[FULL_VACUUM] == 0,
    }


def loses_rows(rewrites: pd.DataFrame, command: str = CLUSTERED) -> bool:
    """Whether an old snapshot misses rows after the command."""
    row = rewrites.set_index("command").loc[command]
    return bool(row["old_sees"] < row["committed"])


def compaction_facts(chapter: Chapter, rewrites: pd.DataFrame) -> dict[str, bool]:
    """Whether CLUSTER compacts better, and still gives up versions that others need."""
    table = chapter.table("compaction", "table")
    return {
        "CLUSTER leaves fewer pages than VACUUM FULL": (
            (table[CLUSTERED] < table[FULL_VACUUM]).all()
        ),
        "CLUSTER gives up versions that an old snapshot needs": loses_rows(rewrites),
    }


def pages_after(chapter: Chapter) -> pd.DataFrame:
    """Median pages that each command leaves: command, table, index."""
    rows = [
        (name, *(chapter.median("compaction", what, name).estimate for what in ("table", "index")))
        for name in (CLUSTERED, FULL_VACUUM)
    ]
    return pd.DataFrame(rows, columns=["command", "table", "index"])


def second_best(chapter: Chapter) -> float:
    """Pages of accounts and its index that VACUUM FULL leaves, over those that CLUSTER leaves."""
    total = pages_after(chapter).set_index("command").sum(axis=1)
    return total[FULL_VACUUM] / total[CLUSTERED]
