"""HOT: what the printed numbers of the 2007 thread imply, and where they disagree."""

import pandas as pd

from pgrerun.published.reading import cell, table

# Pages of a 32-bit PostgreSQL in March 2007, in bytes: the printed block counts fit no other layout.
_PAGE, _PAGE_HEADER, _LINE_POINTER, _TUPLE_HEADER, _TREE_SPECIAL, _TREE_TUPLE = 8192, 20, 4, 24, 16, 12
_PGBENCH = {"accounts": (100_000, 100), "tellers": (10, 12), "branches": (1, 8)}
"""Of pgbench's relations, tuples per unit of scale, and bytes of attributes; the filler of the last two is null."""


def _per_page(attribute_bytes: int, fillfactor: float = 100) -> int:
    """Tuples that a page of a table takes until its fillfactor is reached."""
    reserved = int(_PAGE * (100 - fillfactor) / 100)
    return (_PAGE - _PAGE_HEADER - reserved) // (_TUPLE_HEADER + attribute_bytes + _LINE_POINTER)


def _tree(tuples: int) -> tuple[int, int, int, int]:
    """Of a B-tree built over so many integers: leaves, those of them that are full, and the same of the level above."""
    space = _PAGE - _PAGE_HEADER - _TREE_SPECIAL - 2 * _LINE_POINTER  # the first pointer is the high key's
    leaf, inner = ((space - int(_PAGE * free)) // (_TREE_TUPLE + _LINE_POINTER) for free in (0.1, 0.3))
    leaves = -(-tuples // leaf)
    return leaves, tuples // leaf, -(-leaves // inner), leaves // inner


def _growth() -> pd.DataFrame:
    """Adds, per relation and run: tuples, size afterwards (blocks, and MB of 2^20 bytes), growth (%, and size
    afterwards over size before), the increase without HOT over that with it (infinite where that is none), and,
    computed from scale and page layout: the initial blocks, and how many blocks full pages of an index gain if each splits once."""
    t = table("hot_growth")
    scale, fillfactor = (cell("hot_setup", name, "value") for name in ("scale", "fillfactor"))
    for arm in ("head", "hot"):
        t[f"final_{arm}"] = t[f"initial_{arm}"] + t[f"increase_{arm}"]
        t[f"megabytes_{arm}"] = t[f"final_{arm}"] * _PAGE / 2**20
        t[f"growth_percent_{arm}"] = 100 * t[f"increase_{arm}"] / t[f"initial_{arm}"]
        t[f"times_{arm}"] = t[f"final_{arm}"] / t[f"initial_{arm}"]
    t["increase_ratio"] = t.increase_head / t.increase_hot  # to infinity where HOT prints none
    for key, row in t.iterrows():
        per_scale, attribute_bytes = _PGBENCH[row["name"].removesuffix("_pkey")]
        tuples = int(per_scale * scale)
        t.loc[key, "tuples"] = tuples
        if row.kind == "table":
            full = _per_page(attribute_bytes, fillfactor if row["name"] == "accounts" else 100)
            t.loc[key, ["per_page", "recomputed_initial"]] = full, -(-tuples // full)
        else:
            leaves, full_leaves, inner, full_inner = _tree(tuples)
            above = inner + (inner > 1) if leaves > 1 else 0  # a root above several pages
            t.loc[key, ["recomputed_initial", "one_split_each"]] = 1 + leaves + above, full_leaves + full_inner
    return t


def _throughput() -> pd.DataFrame:
    """Adds, per run: its throughput over that of the same script without HOT, over that of the full script with the
    same server, the time that all transactions take (s), and the part of it that establishing connections took (s)."""
    t = table("hot_throughput")
    tps, transactions = t.tps_including, cell("hot_setup", "transactions", "value")
    t["over_head"] = tps / t.script.map(tps[~t.hot].set_axis(t.script[~t.hot]))
    t["over_full"] = tps / t.hot.map(tps[t.script == "full"].set_axis(t.hot[t.script == "full"]))
    t["elapsed_s"] = transactions / tps
    t["connecting_s"] = t.elapsed_s - transactions / t.tps_excluding
    return t


def _abalance() -> pd.DataFrame:
    """Adds, per run, its throughput over that without HOT, index and number of clients being the same."""
    t = table("hot_abalance")
    alike = t.set_index(["index_on_abalance", "clients"])
    without = alike.tps[~alike.hot]
    t["over_head"] = [row.tps / without[row.index_on_abalance, row.clients] for row in t.itertuples()]
    return t


DERIVED = {"hot_growth": _growth, "hot_throughput": _throughput, "hot_abalance": _abalance}


def checks() -> list[tuple]:
    """Print against print for the HOT chapter: (where, printed, recomputed, agrees, note)."""
    growth, throughput, abalance = (DERIVED[f"hot_{x}"]() for x in ("growth", "throughput", "abalance"))
    setup, said = table("hot_setup").value, table("hot_said").value
    accounts, pkey, tellers, branches = (growth.loc[f"full_{x}"] for x in ("accounts", "accounts_pkey", "tellers", "branches"))
    reduced, reduced_pkey = growth.loc["reduced_accounts"], growth.loc["reduced_accounts_pkey"]
    head, hot = throughput.loc["reduced_head"], throughput.loc["reduced_hot"]
    small = growth[growth.index.str.startswith("full_") & ~growth.name.str.startswith("accounts")]
    plain, indexed = abalance.loc["plain_10_head"], abalance.loc["indexed_10_head"]
    repeats = abalance[abalance.repeat.notna()].tps
    over_head = 100 * (abalance.over_head["plain_10_hot"] - 1)
    over_indexed = 100 * (abalance.tps["plain_10_hot"] / indexed.tps - 1)
    before = (reduced.initial_head + reduced_pkey.initial_head) * _PAGE / 2**20
    after = {arm: reduced[f"megabytes_{arm}"] + reduced_pkey[f"megabytes_{arm}"] for arm in ("head", "hot")}
    threshold = setup.autovacuum_scale_factor * accounts.tuples
    crowded = _per_page(_PGBENCH["accounts"][1])
    versions = tellers.increase_head * tellers.per_page
    return [
        ("message 1, transactions", f"{setup.transactions:,.0f}", f"{setup.clients * setup.transactions_per_client:,.0f}",
         setup.transactions == setup.clients * setup.transactions_per_client, "Clients times transactions per client."),
        ("message 1, the two throughputs of a run", f"{hot.tps_excluding - hot.tps_including:.2f} apart with HOT",
         f"{hot.connecting_s:.2f} s and {head.connecting_s:.2f} s", abs(hot.connecting_s / head.connecting_s - 1) < 0.2,
         f"The time that {setup.clients:g} connections took, implied by the throughputs with and without it: much the same in both runs, "
         "as it should be."),
        ("message 1, “a good jump”", f"{said.jump:g} %", f"{100 * (hot.over_head - 1):.1f} %", abs(100 * (hot.over_head - 1) - said.jump) < 1,
         "The reduced script, with HOT against without."),
        ("message 1, blocks of accounts", f"{accounts.initial_head:,.0f}", f"{accounts.recomputed_initial:,.0f}",
         accounts.initial_head == accounts.recomputed_initial,
         f"{accounts.tuples:,.0f} tuples of pgbench, {accounts.per_page:.0f} on each page filled to {setup.fillfactor:g} %: to the block the "
         "layout of a 32-bit server, where a tuple with its line pointer takes 128 bytes."),
        ("message 1, blocks of accounts_pkey", f"{pkey.initial_head:,.0f}", f"{pkey.recomputed_initial:,.0f}",
         pkey.initial_head == pkey.recomputed_initial, "Leaves, the level above them, the root and the page in front of it."),
        ("message 1, blocks of the small relations", ", ".join(f"{x:g}" for x in small.initial_head),
         ", ".join(f"{x:g}" for x in small.recomputed_initial), bool((small.initial_head == small.recomputed_initial).all()),
         f"{', '.join(small.name)}; in the first and third pgbench leaves the filler null."),
        ("message 1, accounts_pkey without HOT", f"{pkey.increase_head:,.0f} more blocks, in both runs", f"{pkey.one_split_each:,.0f}",
         pkey.increase_head == reduced_pkey.increase_head == pkey.one_split_each,
         f"{setup.transactions / accounts.tuples:g} updates per tuple add half as many entries again to every leaf, more than a full one takes and "
         "less than two: each full page, of the leaves and of the level above, splits exactly once."),
        ("message 1, accounts without HOT", f"{reduced.increase_head:,.0f} more blocks",
         f"at most {setup.transactions / crowded:,.0f}", reduced.increase_head <= setup.transactions / crowded,
         f"The pages that as many new versions fill, {crowded} on each, if no space is found on old ones. The difference is what autovacuum and "
         f"the room left by the fillfactor were worth. The run without HOT took {head.elapsed_s / 60:.0f} minutes."),
        ("message 1, “to make the tests IO bound”", f"{setup.memory:g} GB of memory", f"{before:,.0f} MB",
         before > 1024 * setup.memory,
         f"accounts and its index before the runs: they fit into memory, only not into {setup.shared_buffers:g} MB of buffers. Afterwards they are "
         f"{after['head']:,.0f} MB without HOT and {after['hot']:,.0f} MB with it, history not counted: perhaps only one of the two runs outgrew the memory."),
        ("message 1, “this easily explains the significant jump”", f"{said.jump:g} %",
         f"{100 * (throughput.over_head['full_hot'] - 1):.1f} %", False,
         f"In the full script HOT keeps accounts as stable ({accounts.increase_hot:,.0f} against {accounts.increase_head:,.0f} blocks, as "
         f"{reduced.increase_hot:,.0f} against {reduced.increase_head:,.0f}), and the jump isn't there: either something "
         "else limits the full script, or size isn't all that limited the reduced one."),
        ("message 1, “removed other UPDATEs and SELECT”", f"{100 * (throughput.over_full['reduced_head'] - 1):.1f} % without HOT",
         f"{100 * (throughput.over_full['reduced_hot'] - 1):.1f} % with HOT", False,
         "Throughput gained by leaving them out: nearly nothing without HOT, twofold with it."),
        ("message 1, “keeping the small table size stable”", "stable", f"{branches.times_hot:g} and {tellers.times_hot:g} times", False,
         f"The size of branches and of tellers afterwards, with HOT. Without it: {branches.times_head:g} and {tellers.times_head:g} times."),
        ("message 1, branches beside tellers without HOT", f"{branches.increase_head:,.0f} more blocks", f"{versions / branches.per_page:,.0f}",
         False, "Each transaction updates one tuple of both; so many blocks branches would have gained if as many of its new versions "
         "had found no room. Why they did is not said."),
        ("message 1, autovacuum", f"every {setup.autovacuum_naptime:g} s", f"every {threshold / head.tps_including:,.0f} s",
         False, f"Not the naptime decides how often accounts is vacuumed but the scale factor: {threshold:,.0f} updates, which take so long "
         f"without HOT. In the {head.elapsed_s:,.0f} s of that run that is {int(head.elapsed_s * head.tps_including / threshold)} times."),
        ("message 4, what the index on abalance costs", f"at most {plain.tps:.2f} tps", f"{indexed.tps:.2f} tps", indexed.tps <= plain.tps,
         f"Ten clients without HOT: {100 * (indexed.tps / plain.tps - 1):.0f} % faster with one more index to maintain than without it. Against this "
         f"run, HOT without the index gains {over_indexed:.0f} % instead of {over_head:.0f} %."),
        ("message 4, “improvements in most cases”", f"{said.improvement_low:g} to {said.improvement_high:g} %", f"{over_head:.0f} %",
         said.improvement_low <= over_head <= said.improvement_high, "The only pair of runs without the index that is printed."),
        ("message 4, “they should be close”", "close", f"{100 * (repeats.max() / repeats.min() - 1):.0f} %", False,
         "Two runs of the same, and all that is printed of the noise. The effect to be seen is "
         f"{100 * (1 - repeats.max() / indexed.tps):.1f} % in one of them and {100 * (1 - repeats.min() / indexed.tps):.0f} % in the other."),
    ]
