"""Access paths: what the printed numbers of the 2012 talk imply, and where they disagree."""

import pandas as pd

from pgrerun.record.printed.reading import Check, cell, table

# Pages of a 64-bit PostgreSQL, in bytes. An index tuple of one or of two integers takes 16 bytes: a
# header of 8, then 4 or 8 of data, aligned to 8. pgbench's accounts is 4 + 4 + 4 + 85 bytes behind
# a tuple header of 24.
_PAGE, _PAGE_HEADER, _LINE_POINTER, _TUPLE_HEADER, _TREE_SPECIAL, _TREE_TUPLE = (
    8192,
    24,
    4,
    24,
    16,
    16,
)
_ACCOUNT = 104  # bytes of attributes, aligned to 8
ACCOUNTS_PER_SCALE = 100_000
_MB = 2**20


def accounts() -> int:
    """Rows of the talk's accounts."""
    return int(cell("access_paths_setup", "scale", "value") * ACCOUNTS_PER_SCALE)


def tree_pages(tuples: int) -> tuple[int, int]:
    """Of a B-tree built over so many integers, or pairs of them: all its pages, and its leaves."""
    space = (
        _PAGE - _PAGE_HEADER - _TREE_SPECIAL - 2 * _LINE_POINTER
    )  # the first pointer is the high key's
    leaf, inner = (
        (space - int(_PAGE * free)) // (_TREE_TUPLE + _LINE_POINTER) for free in (0.1, 0.3)
    )
    level = leaves = -(-tuples // leaf)
    pages = 1 + leaves  # the page in front of the root
    while level > 1:
        level = -(-level // inner)
        pages += level
    return pages, leaves


def table_pages(tuples: int) -> int:
    """Pages of accounts after loading."""
    return -(-tuples // ((_PAGE - _PAGE_HEADER) // (_TUPLE_HEADER + _ACCOUNT + _LINE_POINTER)))


def map_coverage(bits: float) -> float:
    """Bytes of a table that one page of its visibility map covers, at so many bits per page."""
    return (_PAGE - _PAGE_HEADER) * 8 / bits * _PAGE


def _lookups() -> pd.DataFrame:
    """Adds, per run: its throughput over that with the primary key alone; the size of its index
    computed from the layout (MB); lookups in the whole run; leaves of the index; and how many reads
    per lookup a disk allows that serves the run with the primary key alone with two reads per
    lookup (a leaf and a page of the table).
    """
    t = table("access_paths_lookups")
    pages, leaves = tree_pages(accounts())
    t["over_primary_key"] = t.tps / t.tps["primary_key"]
    t["recomputed_megabytes"] = pages * _PAGE / _MB
    t["lookups"] = t.tps * 60 * cell("access_paths_setup", "minutes", "value")
    t["leaves"] = leaves
    t["reads_per_lookup"] = 2 * t.tps["primary_key"] / t.tps
    return t


def _join() -> pd.DataFrame:
    """Adds the time before PostgreSQL 9.2 in ms, and that over the row's own, where it is one."""
    t = table("access_paths_join")
    before = 1000 * (60 * t.value["minutes_before"] + t.value["seconds_before"])
    t["before_ms"] = before
    t["before_over"] = (before / t.value).where(t.unit == "ms")
    return t


DERIVED = {"access_paths_lookups": _lookups, "access_paths_join": _join}


def checks() -> list[Check]:
    """Print against print for the access paths."""
    return [*_check_sizes(), *_check_times()]


def _check_sizes() -> list[Check]:
    lookups = _lookups()
    setup = table("access_paths_setup").value
    said = table("access_paths_said").value
    key = lookups.loc["primary_key"]
    covering = lookups.loc["covering"]
    heap = table_pages(accounts()) * _PAGE / _MB
    memory = setup.memory * 1024
    covered = map_coverage(said.bits) / 2**30
    return [
        Check(
            "minute 20:22, a page of the visibility map",
            f"{said.covered:g} GB",
            f"{covered:.4f} GB",
            agrees=abs(covered / said.covered - 1) < 0.01,
            note="Eight pages to the byte; the page's own header takes the difference.",
        ),
        Check(
            "minute 24:44, size of either index",
            f"{key.index_megabytes:,.0f} MB",
            f"{key.recomputed_megabytes:,.0f} MB",
            agrees=round(key.recomputed_megabytes)
            == key.index_megabytes
            == covering.index_megabytes,
            note=(
                f"{accounts():,} entries of {_TREE_TUPLE} bytes, leaves filled to nine tenths: to"
                " the megabyte."
            ),
        ),
        Check(
            "minute 24:44, “smaller than RAM”",
            f"{setup.memory:g} GB",
            f"{key.recomputed_megabytes:,.0f} MB of index, {heap:,.0f} MB of table",
            agrees=key.recomputed_megabytes < memory < heap,
            note="One of the two indexes fits into memory, both of them and the table don't.",
        ),
    ]


def _check_times() -> list[Check]:
    lookups = _lookups()
    join = _join()
    setup = table("access_paths_setup").value
    said = table("access_paths_said").value
    covering = lookups.loc["covering"]
    return [
        Check(
            "minute 25:02, “about five times faster”",
            f"{said.times:g}",
            f"{covering.over_primary_key:.2f}",
            agrees=abs(covering.over_primary_key / said.times - 1) < 0.1,
            note="The two throughputs.",
        ),
        Check(
            "minute 25:02, “fit the entire test case in memory”",
            f"{covering.leaves:,.0f} leaves",
            f"{covering.lookups:,.0f} lookups",
            agrees=covering.lookups > covering.leaves,
            note=(
                f"In {setup.minutes:g} minutes the faster run makes fewer lookups than the index"
                " has leaves, so it can't have brought the index into memory itself. A disk that"
                " serves two reads for each lookup of the slower run has"
                f" {covering.reads_per_lookup:.2f} reads for each of the faster: part of the index"
                " was in memory when the run began, perhaps because it had just been built."
            ),
        ),
        Check(
            "minute 38:44, before and after",
            f"{join.value['first_ms']:g} ms at first",
            f"{join.before_over['first_ms']:,.0f} times less",
            agrees=join.before_over["first_ms"] > 1,
            note=f"Later executions: {join.before_over['later_ms']:,.0f} times less than before.",
        ),
    ]
