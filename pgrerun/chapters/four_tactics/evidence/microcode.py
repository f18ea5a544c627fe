"""What the profile says of microcode, and what the memorandum's own numbers do."""

import pandas as pd

from pgrerun.chapters.four_tactics.experiments.microcode import AS_TEXT, EACH, PARSED_AHEAD
from pgrerun.chapters.four_tactics.miniature import LONG
from pgrerun.record import printed
from pgrerun.record.verdicts import Part, fact, supporting

# what makes the call of the kernel for a read, and what copies blocks of memory
READING = "pread|FileStartReadV|mdstartreadv|pgaio_io_perform_synchronously"
COPYING = "memcpy|memmove"
LOGARITHM = r"^dlog1$|log_fma$|^log(?:@|$)"
SCANNING = r"^Exec(?:Seq|Index|IndexOnly|BitmapHeap)Scan"
CHECKSUMMING = "pg_checksum|crc32"  # of data pages, and of whatever else has one
DISPOSING = "^(?:Copy|copy_)"  # of a command's answer, into a file
INTERPRETING = "^ExecInterpExpr$"
TRANSLATING = r"^pg_(?:parse_query|analyze_and_rewrite(?:_fixedparams)?|plan_query)$"


def share(
    found: pd.DataFrame, functions: str, runs: tuple[str, ...] = LONG, account: str = "exclusive"
) -> float:
    """The share of some functions (a regular expression) in the instructions of runs.

    account: "exclusive", or "inclusive" of what they call.
    """
    rows = found[found["run"].isin(runs)]
    these = rows["function"].str.contains(functions)
    return float(rows.loc[these, account].sum() / rows["exclusive"].sum())


def one_variable(found: pd.DataFrame) -> float:
    """The share of what INGRES's OVQP did: scans with all that they call, and disposing of output.

    COPY's own routines, without the types' that write a value.
    """
    return share(found, SCANNING, account="inclusive") + share(found, DISPOSING)


def by_function(found: pd.DataFrame) -> pd.Series:
    """The share of each function in the instructions of all long runs, the largest first."""
    total = found[found["run"].isin(LONG)].groupby("function")["exclusive"].sum()
    return (total / total.sum()).sort_values(ascending=False)


def two_hottest(found: pd.DataFrame) -> float:
    """The share of the two functions that take most."""
    return float(by_function(found).iloc[:2].sum())


def in_the_loop(found: pd.DataFrame) -> float:
    """The share of what matches tuples with a qualification, in the scans that have one."""
    return share(found, INTERPRETING, ("c_3360", "d_3360", "e_3360"), "inclusive")


def reading_and_copying(found: pd.DataFrame) -> dict[str, float]:
    """The shares of the routine that calls the kernel for a read, and of copying memory."""
    return {"READ": share(found, READING), "BMOVE": share(found, COPYING)}


def parsed_each_time(found: pd.DataFrame, runs: tuple[str, ...] = LONG) -> float:
    """Instructions of these runs over those without parsing, analyzing and planning."""
    return 1 / (1 - share(found, TRANSLATING, runs, "inclusive"))


def without_checksums(found: pd.DataFrame) -> float:
    """Instructions of the long runs over those without checksums: what an instruction for them
    could gain at most.
    """
    return 1 / (1 - share(found, CHECKSUMMING))


def _over(found: pd.DataFrame, run: str, base: str) -> float:
    total = found.groupby("run")["exclusive"].sum()
    return float(total[run] / total[base])


def folding(found: pd.DataFrame) -> float:
    """Instructions of query d with its logarithm for every tuple over those with it folded."""
    return _over(found, EACH, "d_3360")


def parsed_ahead(found: pd.DataFrame) -> float:
    """Instructions of a lookup as text over those of the same when it is parsed ahead."""
    return _over(found, AS_TEXT, PARSED_AHEAD)


# ---- the print


def table_4() -> pd.DataFrame:
    """Table 4 recomputed: a row per routine, microseconds and percent."""
    columns = {
        "percent": "CPU (%)",
        "saved_us": "saved per call (µs)",
        "net_us": "less the call (µs)",
        "recomputed_routine": "gain of the routine (%)",
        "recomputed_overall": "gain of all (%)",
    }
    found = printed.derived("four_tactics_microcode")
    found["percent"] = printed.table("four_tactics_profile").percent
    found = found[list(columns)].rename(columns=columns)
    return found.rename_axis("routine").reset_index()


def estimate() -> dict[str, bool | Part]:
    """Whether what both routines gain (%), and their microwords, are by Tables 3 and 4 as said.

    A gain is a share of the new time, as in most of the memorandum's tables; as a share of the old
    one it is told.
    """
    found, said = (
        printed.derived("four_tactics_microcode"),
        printed.table("four_tactics_said").value,
    )
    share = printed.table("four_tactics_profile").percent.reindex(found.index)
    saved = found.recomputed_routine / 100
    gain = (share * saved / (1 - saved)).sum()
    return {
        f"the two gains add up to {said.gain_percent:g} %": round(gain, 1) == said.gain_percent,
        "the microwords to about as many": round(found.microwords.sum(), -3) == said.words,
        "as shares of the old time they do, too": supporting(
            round(found.recomputed_overall.sum(), 1) == said.gain_percent
        ),
    }


def losses() -> dict[str, Part]:
    """Whether the call of a microroutine costs more than the microcode saves, or less."""
    net = printed.derived("four_tactics_microcode").net_us
    return {f"{name} would lose": fact(value < 0, value > 0) for name, value in net.items()}
