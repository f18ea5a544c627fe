"""HOT: what the printed numbers of the 2007 thread imply, and where they disagree."""

import pandas as pd

from pgrerun.record.printed.reading import Check, cell, table

# Pages of a 32-bit PostgreSQL in March 2007, in bytes: the printed block counts fit no other
# layout.
_PAGE, _PAGE_HEADER, _LINE_POINTER, _TUPLE_HEADER, _TREE_SPECIAL, _TREE_TUPLE = (
    8192,
    20,
    4,
    24,
    16,
    12,
)
_PGBENCH = {"accounts": (100_000, 100), "tellers": (10, 12), "branches": (1, 8)}
"""Of pgbench's relations, tuples per unit of scale, and bytes of attributes; the filler of the last
two is null.
"""


def per_page(attribute_bytes: int, fillfactor: float = 100) -> int:
    """Tuples that a page of a table takes until its fillfactor is reached."""
    reserved = int(_PAGE * (100 - fillfactor) / 100)
    return (_PAGE - _PAGE_HEADER - reserved) // (_TUPLE_HEADER + attribute_bytes + _LINE_POINTER)


def tree(tuples: int) -> tuple[int, int, int, int]:
    """Of a B-tree built over so many integers: leaves, those of them that are full, and the same of
    the level above.
    """
    space = (
        _PAGE - _PAGE_HEADER - _TREE_SPECIAL - 2 * _LINE_POINTER
    )  # the first pointer is the high key's
    leaf, inner = (
        (space - int(_PAGE * free)) // (_TREE_TUPLE + _LINE_POINTER) for free in (0.1, 0.3)
    )
    leaves = -(-tuples // leaf)
    return leaves, tuples // leaf, -(-leaves // inner), leaves // inner


def _growth() -> pd.DataFrame:
    """Adds, per relation and run: tuples, size afterwards (blocks, and MB of 2^20 bytes), growth
    (%, and size afterwards over size before), the increase without HOT over that with it (infinite
    where that is none), and, computed from scale and page layout: the initial blocks, and how many
    blocks full pages of an index gain if each splits once.
    """
    t = table("hot_growth")
    scale, fillfactor = (cell("hot_setup", name, "value") for name in ("scale", "fillfactor"))
    for variant in ("head", "hot"):
        t[f"final_{variant}"] = t[f"initial_{variant}"] + t[f"increase_{variant}"]
        t[f"megabytes_{variant}"] = t[f"final_{variant}"] * _PAGE / 2**20
        t[f"growth_percent_{variant}"] = 100 * t[f"increase_{variant}"] / t[f"initial_{variant}"]
        t[f"times_{variant}"] = t[f"final_{variant}"] / t[f"initial_{variant}"]
    t["increase_ratio"] = t.increase_head / t.increase_hot  # to infinity where HOT prints none
    for key, row in t.iterrows():
        per_scale, attribute_bytes = _PGBENCH[row["name"].removesuffix("_pkey")]
        tuples = int(per_scale * scale)
        t.loc[key, "tuples"] = tuples
        if row.kind == "table":
            full = per_page(attribute_bytes, fillfactor if row["name"] == "accounts" else 100)
            t.loc[key, ["per_page", "recomputed_initial"]] = full, -(-tuples // full)
        else:
            leaves, full_leaves, inner, full_inner = tree(tuples)
            above = inner + (inner > 1) if leaves > 1 else 0  # a root above several pages
            t.loc[key, ["recomputed_initial", "one_split_each"]] = (
                1 + leaves + above,
                full_leaves + full_inner,
            )
    return t


def _throughput() -> pd.DataFrame:
    """Adds, per run: its throughput over that of the same script without HOT, over that of the full
    script with the same server, the time that all transactions take (s), and the part of it that
    establishing connections took (s).
    """
    t = table("hot_throughput")
    tps, transactions = t.tps_including, cell("hot_setup", "transactions", "value")
    t["over_head"] = tps / t.script.map(tps[~t.hot].set_axis(t.script[~t.hot]))
    t["over_full"] = tps / t.hot.map(tps[t.script == "full"].set_axis(t.hot[t.script == "full"]))
    t["elapsed_s"] = transactions / tps
    t["connecting_s"] = t.elapsed_s - transactions / t.tps_excluding
    return t


def _abalance() -> pd.DataFrame:
    """Adds, per run, its throughput over that without HOT, index and number of clients being the
    same.
    """
    t = table("hot_abalance")
    alike = t.set_index(["index_on_abalance", "clients"])
    without = alike.tps[~alike.hot]
    t["over_head"] = [
        row.tps / without[row.index_on_abalance, row.clients] for row in t.itertuples()
    ]
    return t


DERIVED = {"hot_growth": _growth, "hot_throughput": _throughput, "hot_abalance": _abalance}


def checks() -> list[Check]:
    """Print against print for the HOT chapter."""
    return [
        *_check_throughputs(),
        *_check_initial_blocks(),
        *_check_growth_without_hot(),
        *_check_memory(),
        *_check_small_relations(),
        *_check_autovacuum(),
        *_check_index_on_abalance(),
    ]


def _check_throughputs() -> list[Check]:
    throughput = _throughput()
    setup = table("hot_setup").value
    said = table("hot_said").value
    head = throughput.loc["reduced_head"]
    hot = throughput.loc["reduced_hot"]
    return [
        Check(
            "message 1, transactions",
            f"{setup.transactions:,.0f}",
            f"{setup.clients * setup.transactions_per_client:,.0f}",
            agrees=setup.transactions == setup.clients * setup.transactions_per_client,
            note="Clients times transactions per client.",
        ),
        Check(
            "message 1, the two throughputs of a run",
            f"{hot.tps_excluding - hot.tps_including:.2f} apart with HOT",
            f"{hot.connecting_s:.2f} s and {head.connecting_s:.2f} s",
            agrees=abs(hot.connecting_s / head.connecting_s - 1) < 0.2,
            note=(
                f"The time that {setup.clients:g} connections took, implied by the throughputs with"
                " and without it: much the same in both runs, as it should be."
            ),
        ),
        Check(
            "message 1, “a good jump”",
            f"{said.jump:g} %",
            f"{100 * (hot.over_head - 1):.1f} %",
            agrees=abs(100 * (hot.over_head - 1) - said.jump) < 1,
            note="The reduced script, with HOT against without.",
        ),
    ]


def _check_initial_blocks() -> list[Check]:
    growth = _growth()
    setup = table("hot_setup").value
    accounts = growth.loc["full_accounts"]
    pkey = growth.loc["full_accounts_pkey"]
    small = growth[growth.index.str.startswith("full_") & ~growth.name.str.startswith("accounts")]
    return [
        Check(
            "message 1, blocks of accounts",
            f"{accounts.initial_head:,.0f}",
            f"{accounts.recomputed_initial:,.0f}",
            agrees=accounts.initial_head == accounts.recomputed_initial,
            note=(
                f"{accounts.tuples:,.0f} tuples of pgbench, {accounts.per_page:.0f} on each page"
                f" filled to {setup.fillfactor:g} %: to the block the layout of a 32-bit server,"
                " where a tuple with its line pointer takes 128 bytes."
            ),
        ),
        Check(
            "message 1, blocks of accounts_pkey",
            f"{pkey.initial_head:,.0f}",
            f"{pkey.recomputed_initial:,.0f}",
            agrees=pkey.initial_head == pkey.recomputed_initial,
            note="Leaves, the level above them, the root and the page in front of it.",
        ),
        Check(
            "message 1, blocks of the small relations",
            ", ".join(f"{x:g}" for x in small.initial_head),
            ", ".join(f"{x:g}" for x in small.recomputed_initial),
            agrees=bool((small.initial_head == small.recomputed_initial).all()),
            note=f"{', '.join(small.name)}; in the first and third pgbench leaves the filler null.",
        ),
    ]


def _check_growth_without_hot() -> list[Check]:
    growth = _growth()
    throughput = _throughput()
    setup = table("hot_setup").value
    accounts = growth.loc["full_accounts"]
    pkey = growth.loc["full_accounts_pkey"]
    reduced = growth.loc["reduced_accounts"]
    reduced_pkey = growth.loc["reduced_accounts_pkey"]
    head = throughput.loc["reduced_head"]
    crowded = per_page(_PGBENCH["accounts"][1])
    return [
        Check(
            "message 1, accounts_pkey without HOT",
            f"{pkey.increase_head:,.0f} more blocks, in both runs",
            f"{pkey.one_split_each:,.0f}",
            agrees=pkey.increase_head == reduced_pkey.increase_head == pkey.one_split_each,
            note=(
                f"{setup.transactions / accounts.tuples:g} updates per tuple add half as many"
                " entries again to every leaf, more than a full one takes and less than two: each"
                " full page, of the leaves and of the level above, splits exactly once."
            ),
        ),
        Check(
            "message 1, accounts without HOT",
            f"{reduced.increase_head:,.0f} more blocks",
            f"at most {setup.transactions / crowded:,.0f}",
            agrees=reduced.increase_head <= setup.transactions / crowded,
            note=(
                f"The pages that as many new versions fill, {crowded} on each, if no space is found"
                " on old ones. The difference is what autovacuum and the room left by the"
                f" fillfactor were worth. The run without HOT took {head.elapsed_s / 60:.0f}"
                " minutes."
            ),
        ),
    ]


def _check_memory() -> list[Check]:
    growth = _growth()
    throughput = _throughput()
    setup = table("hot_setup").value
    said = table("hot_said").value
    accounts = growth.loc["full_accounts"]
    reduced = growth.loc["reduced_accounts"]
    reduced_pkey = growth.loc["reduced_accounts_pkey"]
    before = (reduced.initial_head + reduced_pkey.initial_head) * _PAGE / 2**20
    after = {
        variant: reduced[f"megabytes_{variant}"] + reduced_pkey[f"megabytes_{variant}"]
        for variant in ("head", "hot")
    }
    return [
        Check(
            "message 1, “to make the tests IO bound”",
            f"{setup.memory:g} GB of memory",
            f"{before:,.0f} MB",
            agrees=before > 1024 * setup.memory,
            note=(
                "accounts and its index before the runs: they fit into memory, only not into"
                f" {setup.shared_buffers:g} MB of buffers. Afterwards they are {after['head']:,.0f}"
                f" MB without HOT and {after['hot']:,.0f} MB with it, history not counted: perhaps"
                " only one of the two runs outgrew the memory."
            ),
        ),
        Check(
            "message 1, “this easily explains the significant jump”",
            f"{said.jump:g} %",
            f"{100 * (throughput.over_head['full_hot'] - 1):.1f} %",
            agrees=False,
            note=(
                f"In the full script HOT keeps accounts as stable ({accounts.increase_hot:,.0f}"
                f" against {accounts.increase_head:,.0f} blocks, as {reduced.increase_hot:,.0f}"
                f" against {reduced.increase_head:,.0f}), and the jump isn't there: either"
                " something else limits the full script, or size isn't all that limited the"
                " reduced one."
            ),
        ),
    ]


def _check_small_relations() -> list[Check]:
    growth = _growth()
    throughput = _throughput()
    tellers = growth.loc["full_tellers"]
    branches = growth.loc["full_branches"]
    versions = tellers.increase_head * tellers.per_page
    return [
        Check(
            "message 1, “removed other UPDATEs and SELECT”",
            f"{100 * (throughput.over_full['reduced_head'] - 1):.1f} % without HOT",
            f"{100 * (throughput.over_full['reduced_hot'] - 1):.1f} % with HOT",
            agrees=False,
            note=(
                "Throughput gained by leaving them out: nearly nothing without HOT, twofold with"
                " it."
            ),
        ),
        Check(
            "message 1, “keeping the small table size stable”",
            "stable",
            f"{branches.times_hot:g} and {tellers.times_hot:g} times",
            agrees=False,
            note=(
                "The size of branches and of tellers afterwards, with HOT. Without it:"
                f" {branches.times_head:g} and {tellers.times_head:g} times."
            ),
        ),
        Check(
            "message 1, branches beside tellers without HOT",
            f"{branches.increase_head:,.0f} more blocks",
            f"{versions / branches.per_page:,.0f}",
            agrees=False,
            note=(
                "Each transaction updates one tuple of both; so many blocks branches would have"
                " gained if as many of its new versions had found no room. Why they did is not"
                " said."
            ),
        ),
    ]


def _check_autovacuum() -> list[Check]:
    growth = _growth()
    throughput = _throughput()
    setup = table("hot_setup").value
    accounts = growth.loc["full_accounts"]
    head = throughput.loc["reduced_head"]
    threshold = setup.autovacuum_scale_factor * accounts.tuples
    return [
        Check(
            "message 1, autovacuum",
            f"every {setup.autovacuum_naptime:g} s",
            f"every {threshold / head.tps_including:,.0f} s",
            agrees=False,
            note=(
                "Not the naptime decides how often accounts is vacuumed but the scale factor:"
                f" {threshold:,.0f} updates, which take so long without HOT. In the"
                f" {head.elapsed_s:,.0f} s of that run that is"
                f" {int(head.elapsed_s * head.tps_including / threshold)} times."
            ),
        ),
    ]


def _check_index_on_abalance() -> list[Check]:
    abalance = _abalance()
    said = table("hot_said").value
    plain = abalance.loc["plain_10_head"]
    indexed = abalance.loc["indexed_10_head"]
    repeats = abalance[abalance.repeat.notna()].tps
    over_head = 100 * (abalance.over_head["plain_10_hot"] - 1)
    over_indexed = 100 * (abalance.tps["plain_10_hot"] / indexed.tps - 1)
    return [
        Check(
            "message 4, what the index on abalance costs",
            f"at most {plain.tps:.2f} tps",
            f"{indexed.tps:.2f} tps",
            agrees=indexed.tps <= plain.tps,
            note=(
                f"Ten clients without HOT: {100 * (indexed.tps / plain.tps - 1):.0f} % faster with"
                " one more index to maintain than without it. Against this run, HOT without the"
                f" index gains {over_indexed:.0f} % instead of {over_head:.0f} %."
            ),
        ),
        Check(
            "message 4, “improvements in most cases”",
            f"{said.improvement_low:g} to {said.improvement_high:g} %",
            f"{over_head:.0f} %",
            agrees=said.improvement_low <= over_head <= said.improvement_high,
            note="The only pair of runs without the index that is printed.",
        ),
        Check(
            "message 4, “they should be close”",
            "close",
            f"{100 * (repeats.max() / repeats.min() - 1):.0f} %",
            agrees=False,
            note=(
                "Two runs of the same, and all that is printed of the noise. The effect to be seen"
                f" is {100 * (1 - repeats.max() / indexed.tps):.1f} % in one of them and"
                f" {100 * (1 - repeats.min() / indexed.tps):.0f} % in the other."
            ),
        ),
    ]
