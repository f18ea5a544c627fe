"""Evidence that the two profiles give: shares of subsystems and routines, phases of a command."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import counted, queries
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS

# Claims that need instructions by routine.
COUNTED_CLAIMS = (
    "lai-002", "lai-003", "lai-005", "lai-006", "lai-007", "lai-009", "lai-011", "lai-012", "lai-014", "lai-016",
    "lai-019", "lai-020", "lai-021", "lai-022", "lai-023", "lai-024", "lai-025",
)  # fmt: skip

FORMATTING = frozenset(
    {"dopr", "dostr", "fmtint", "fmtfloat", "fmtchar", "fmtstr", "fmtptr", "dopr_outch", "pg_vsnprintf", "pg_snprintf", "pg_vsprintf", "pg_sprintf",
     "pg_vfprintf", "pg_fprintf", "pg_printf", "appendStringInfo", "appendStringInfoVA", "psprintf", "pvsnprintf", "pg_ltoa", "pg_ultoa_n", "pg_lltoa",
     "pg_ulltoa_n", "float8out_internal", "double_to_shortest_decimal_buf", "double_to_shortest_decimal_bufn", "__vfprintf_internal", "__printf_fp"}
)  # fmt: skip
"""Routines that make text out of values: _doprnt's heirs."""

ALLOCATION = frozenset(
    {"malloc", "calloc", "realloc", "_int_malloc", "free", "_int_free", "MemoryContextAlloc", "MemoryContextAllocZero", "MemoryContextAllocExtended", "palloc",
     "palloc0", "pfree", "repalloc", "AllocSetAlloc", "AllocSetFree", "AllocSetRealloc", "AllocSetAllocFromNewBlock", "AllocSetAllocLarge", "AllocSetReset",
     "AllocSetDelete", "AllocSetContextCreateInternal", "MemoryContextReset", "MemoryContextDelete", "GenerationAlloc", "SlabAlloc", "BumpAlloc"}
)  # fmt: skip
"""Routines that give memory out and take it back."""


def _ready(chapter: Chapter) -> bool:
    return counted.measured(chapter)


def data_over_overhead(chapter: Chapter) -> float | None:
    """Figure 2.1: instructions of executing over those of parsing, planning and everything else."""
    if not _ready(chapter):
        return None
    phases = counted.phases(chapter, SCANS)
    return phases["execute"] / (phases.sum() - phases["execute"])


def all_over_executing(chapter: Chapter) -> float | None:
    """Figure 2.3: instructions of all phases of a command over those of executing it."""
    if not _ready(chapter):
        return None
    phases = counted.phases(chapter, TRANSACTIONS)
    return phases.sum() / phases["execute"]


def node_type_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether a routine that works on nodes, as NodeIsType did, still leads the profiles."""
    if not _ready(chapter):
        return None
    leaders = {workload: counted.routines(chapter, workload).head(2) for workload in (SCANS, TRANSACTIONS)}
    return {f"a routine for nodes is first or second in the profile of the {workload}": bool((frame["directory"] == "nodes").any()) for workload, frame in leaders.items()}


def optimizer_shares(chapter: Chapter) -> dict[str, float] | None:
    """Percent of the instructions in the optimizer, by query set."""
    if not _ready(chapter):
        return None
    return {workload: counted.shares(chapter, workload)["optimizer"] for workload in (SCANS, TRANSACTIONS)}


def parse_and_plan_share(chapter: Chapter) -> float | None:
    """Percent of a transaction's instructions that are spent before anything is executed."""
    if not _ready(chapter):
        return None
    phases = counted.phases(chapter, TRANSACTIONS)
    return 100 * phases[["parse", "plan"]].sum() / phases.sum()


def phase_table(chapter: Chapter) -> pd.DataFrame:
    """Instructions per command by phase: a row per phase, a column per query set."""
    found = {workload: counted.phases(chapter, workload) for workload in (SCANS, TRANSACTIONS)}
    if any(series.empty for series in found.values()):
        return pd.DataFrame()
    commands = {SCANS: len(queries.scans()), TRANSACTIONS: counted.batch_commands(chapter)}
    frame = pd.DataFrame({workload: (series / commands[workload]).round().astype(int) for workload, series in found.items()})
    for workload in found:
        frame[f"{workload} (%)"] = 100 * frame[workload] / frame[workload].sum()
    return frame.rename_axis("phase").reset_index()


def shift_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Which shares rise, and which fall, from scans to transactions."""
    if not _ready(chapter):
        return None
    before, after = (counted.shares(chapter, workload) for workload in (SCANS, TRANSACTIONS))
    rising = {f"the share of {name} rises": bool(after[key] > before[key]) for key, name in (("parser", "the parser"), ("optimizer", "the optimizer"), ("system_functions", "system functions"))}
    falling = {f"the share of {name} falls": bool(after[key] < before[key]) for key, name in (("storage_manager", "the storage manager"), ("executor", "the executor"))}
    return rising | falling


def system_functions_ratio(chapter: Chapter) -> float | None:
    """Share of system functions in the transactions over that in the scans."""
    if not _ready(chapter):
        return None
    return counted.shares(chapter, TRANSACTIONS)["system_functions"] / counted.shares(chapter, SCANS)["system_functions"]


def formatting_gain(chapter: Chapter) -> float | None:
    """How much faster the transactions would be if making text cost nothing."""
    return counted.gain(counted.share_of(chapter, TRANSACTIONS, FORMATTING)) if _ready(chapter) else None


def dispatch_gain(chapter: Chapter) -> float | None:
    """How much faster Figure 2.1's commands would be if the function manager cost nothing."""
    if not _ready(chapter):
        return None
    frame = counted.routines(chapter, SCANS)
    return counted.gain(frame.loc[frame["directory"] == "utils/fmgr", "share"].sum())


def allocation_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether memory allocation is among the first ten routines."""
    if not _ready(chapter):
        return None
    return {
        f"a routine for memory is in the top ten of the {workload}": bool(counted.routines(chapter, workload)["routine"].head(10).isin(ALLOCATION).any())
        for workload in (SCANS, TRANSACTIONS)
    }
