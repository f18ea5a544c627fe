"""What the documents printed: one CSV in `data/published/` per table, with its source.

`table` reads one as it was printed, `derived` adds columns that code computed from printed ones,
`recomputed` checks print against print. `claims` takes its printed effects from here by name,
charts and notebooks the tables.

A file starts with comment lines (`# document:`, `# section:`, `# note:`); its first column is a
key of plain names, so that any cell has an address: `tp1_stages.two.tp1`. A cell is empty where
the text prints nothing. Each table was typed a second time into `second_entry/`, and a test
compares the two cell by cell; another holds every number against the document where the reader
has its text (see `missing_from_text`).
"""

import re
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

import pandas as pd

from pgrerun.errors import RecordError

DATA = Path(__file__).resolve().parent.parent / "data" / "published"

DOCUMENTS = {
    "ingres-1981": ("the INGRES memorandum of 1981", "1981-ingres-performance-enhancements.txt"),
    "postgres-1990": ("the POSTGRES report of 1990", "1990-postgres-performance-report.txt"),
    "hot-2007": ("the HOT thread of 2007", "2007-hot-preliminary-results.txt"),
    "postgres92-2012": ("the PostgreSQL 9.2 talk of 2012", "2012-postgresql-9.2-scalability-talk.txt"),
    "explorations-2020": ("the PostgreSQL Explorations of 2020", "2020-postgresql-explorations.txt"),
}
"""Name in a sentence, and file name of the text, by the ledger's `document`."""

WORDS = {1: "single|one", 2: "two|doubled", 3: "three", 6: "six", 7: "seven", 9: "nine", 10: "ten",
         16: "sixteen", 25: "twenty-five", 48: "forty-eight", 80: "eighty"}
"""The numbers that the documents write as words."""


@dataclass(frozen=True)
class Source:
    """Where a table was printed: the ledger's name of the document, its section(s), our remarks."""

    document: str
    section: str
    note: str

    def __str__(self) -> str:
        return f"{DOCUMENTS[self.document][0]}, {cited(self.section)}"


def cited(section: str) -> str:
    """A place as the ledger and the tables write it, in words: "3.2.2; 5" is "section 3.2.2 and section 5", "msg 4" is "message 4"."""
    parts = [re.sub(r"^msg(?= \d)", "message", part.strip()) for part in section.split(";")]
    return " and ".join(f"section {part}" if part[0].isdigit() else part for part in parts)


def _path(name: str) -> Path:
    path = DATA / f"{name}.csv"
    if not re.fullmatch(r"\w+", name) or not path.is_file():
        have = ", ".join(names()) or "none"
        raise RecordError(f"There is no published table {name!r} in {DATA}. Tables: {have}.")
    return path


def names(chapter: str = "") -> list[str]:
    """Names of the published tables, of one chapter or of all."""
    prefix = f"{chapter}_" if chapter else ""
    return sorted(p.stem for p in DATA.glob("*.csv") if p.stem.startswith(prefix))


@cache
def source(name: str) -> Source:
    """Where the table was printed. RecordError where the file doesn't say."""
    header = [line[1:].strip() for line in _path(name).read_text("utf-8").splitlines() if line.startswith("#")]
    fields = [line.split(":", 1) for line in header if ":" in line]
    found = lambda key: " ".join(value.strip() for k, value in fields if k == key)
    if found("document") not in DOCUMENTS or not found("section"):
        raise RecordError(
            f"{_path(name)} doesn't name its source. It must start with the lines '# document: NAME' "
            f"(one of {', '.join(DOCUMENTS)}) and '# section: …'."
        )
    return Source(found("document"), found("section"), found("note"))


def _read(path: Path) -> pd.DataFrame:
    """The table as text, keyed by its first column, comment lines left out."""
    lines = path.read_text("utf-8").splitlines()
    body = "\n".join(line for line in lines if not line.startswith("#"))
    # The parser would take a cell too many for an unnamed index and a missing one for an empty cell.
    try:
        frame = pd.read_csv(StringIO(body), dtype=str, keep_default_na=False, index_col=False)
    except ValueError as error:
        raise RecordError(f"{path} is not a readable table: {error}. Restore it from version control.") from None
    frame = frame.set_index(frame.columns[0])
    bad = [key for key in frame.index if not str(key).isidentifier()]
    if bad or not frame.index.is_unique:
        raise RecordError(f"{path}: the first column must hold unique plain names; look at {bad or 'its repeats'}.")
    return frame


def second_entry(name: str) -> pd.DataFrame:
    """The independently typed transcription of the table, as text."""
    return _read(DATA / "second_entry" / f"{name}.csv")


@cache
def _table(name: str) -> pd.DataFrame:
    frame = _read(_path(name))
    for column in frame:
        filled = frame[column][frame[column] != ""]
        if set(filled) and set(filled) <= {"yes", "no"}:
            frame[column] = frame[column].map({"yes": True, "no": False})
        elif len(filled) and pd.to_numeric(filled, errors="coerce").notna().all() and column != "printed":
            frame[column] = pd.to_numeric(frame[column])  # empty becomes NaN
    return frame


def table(name: str) -> pd.DataFrame:
    """The table as printed, indexed by its key; numbers as float or int, an empty number as NaN.

    `frame.attrs` holds `source` (in words) and `note`. RecordError where there is no such table.
    """
    frame = _table(name).copy()
    frame.attrs = {"source": str(source(name)), "note": source(name).note}
    return frame


def cell(name: str, key: str, column: str) -> float:
    """One printed number. RecordError where the table has no such cell or no number in it."""
    frame = _table(name) if name in names() else table(name)
    if key not in frame.index or column not in frame.columns:
        raise RecordError(
            f"Table {name} has no cell {key}.{column}. Rows: {', '.join(frame.index)}; columns: {', '.join(frame.columns)}."
        )
    value = frame.at[key, column]
    if isinstance(value, str) or pd.isna(value):
        raise RecordError(f"Cell {name}.{key}.{column} holds no number: the document doesn't print one.")
    return float(value)


def seconds(elapsed: str) -> float:
    """'7:44' (minutes:seconds) as seconds."""
    minutes, rest = elapsed.split(":")
    return 60.0 * int(minutes) + float(rest)


def _stages() -> pd.DataFrame:
    """Adds, per stage: throughput against stage one and against twice it, pool size (kB), time per
    transaction (s; all backends together), its CPU and its other part (s), I/O requests per
    transaction and per second, and the disk's speed (I/O per second) that a run of one backend implies when it
    waits for the disk in all time that isn't CPU time.
    """
    t = table("tp1_stages")
    t["relative"] = t.tp1 / t.tp1["one"]
    t["pool_kb"] = t.buffers * cell("tp1_catalogs", "page_size", "value")
    t["elapsed_s"] = 1 / t.tp1
    t["cpu_s"] = t.elapsed_s * t.cpu_percent / 100
    t["wait_s"] = t.elapsed_s - t.cpu_s
    t["ios"] = t.reads + t.writes
    t["ios_per_s"] = t.ios * t.tp1
    t["implied_disk"] = (t.ios / t.wait_s).where(t.backends == 1)
    # Two backends that overlap perfectly keep the busier of CPU and disk busy all the time.
    one = t.loc["one"]
    busier = max(one.cpu_s, one.wait_s)
    ideal = min(2 * one.tp1, 1 / busier)
    t.loc["two", "recomputed_perfect_tp1"] = ideal
    t.loc["two", "recomputed_perfect_cpu_percent"] = 100 * one.cpu_s * ideal
    t["shortfall_of_doubling"] = (2 * one.tp1 / t.tp1).where(t.index == "two")
    return t


def _overlap() -> pd.DataFrame:
    """Adds, per run: elapsed, CPU and other time (s), CPU per copy (s), the elapsed time (s) and the
    CPU use (%) of perfect overlap, how far the run falls short of it, and I/O requests (each iteration
    reads once and writes once), the disk speed that one copy implies, and requests per second of elapsed time."""
    t = table("tp1_overlap")
    t["elapsed_s"] = t.elapsed.map(seconds)
    t["cpu_s"] = t.elapsed_s * t.cpu_percent / 100
    t["wait_s"] = t.elapsed_s - t.cpu_s
    t["cpu_s_per_copy"] = t.cpu_s / t.copies
    one = t.loc["one"]
    # Copies overlap with each other, never one with itself.
    t["perfect_s"] = [max(one.elapsed_s, n * one.cpu_s, n * one.wait_s) for n in t.copies]
    t["recomputed_perfect_cpu_percent"] = 100 * t.copies * one.cpu_s / t.perfect_s
    t["shortfall"] = t.elapsed_s / t.perfect_s
    t["ios"] = 2 * t.iterations * t.copies
    t["implied_disk"] = (t.ios / t.wait_s).where(t.copies == 1)
    t["ios_per_s"] = t.ios / t.elapsed_s
    return t


def _relations() -> pd.DataFrame:
    """Adds size (MB of 10^6 bytes), the fewest pages that the tuples' bytes fill, and the pages at
    as many stored bytes per tuple as the printed 218 pages of a 10-K relation imply."""
    t = table("tp1_relations")
    page = 1024 * cell("tp1_catalogs", "page_size", "value")
    stored = cell("tp1_catalogs", "relation_pages", "value") * page / t.tuples.max()
    t["megabytes"] = t.tuples * t.tuple_bytes / 1e6
    t["least_pages"] = t.tuples * t.tuple_bytes / page
    t["implied_pages"] = t.tuples * stored / page
    t["implied_tuple_bytes"] = stored
    return t


def _bound() -> pd.DataFrame:
    """Adds what the parts sum to, in the total row."""
    t = table("tp1_bound")
    for column in ("reads", "writes"):
        t.loc["total", f"recomputed_{column}"] = t[column].drop("total").sum()
    return t


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


_DERIVED = {
    "tp1_stages": _stages, "tp1_overlap": _overlap, "tp1_relations": _relations, "tp1_bound": _bound,
    "hot_growth": _growth, "hot_throughput": _throughput, "hot_abalance": _abalance,
}  # fmt: skip


def derived(name: str) -> pd.DataFrame:
    """The table with its computed columns (see the private function of that table), or as printed."""
    return _DERIVED[name]() if name in _DERIVED else table(name)


def _tp1() -> list[tuple]:
    """Print against print for the TP1 chapter: (where, printed, recomputed, agrees, note)."""
    stages, overlap, relations, bound = (derived(f"tp1_{x}") for x in ("stages", "overlap", "relations", "bound"))
    one, two, append, stable = (stages.loc[x] for x in ("one", "two", "append", "stable"))
    alone, both = overlap.loc["one"], overlap.loc["two"]
    catalogs, transaction, machine = (table(f"tp1_{x}").value for x in ("catalogs", "transaction", "machine"))
    slow, fast = machine.disk_low, machine.disk_high
    disk = f"{slow:g} to {fast:g} I/O per second"
    factor = cell("tp1_summary", "rating_factor", "value")
    total = bound.loc["total"]
    tails = relations.shape[0]
    # CPU seconds as far as whole percentages can tell them.
    least_alone = 2 * alone.elapsed_s * (alone.cpu_percent - 0.5) / 100
    most_both = both.elapsed_s * (both.cpu_percent + 0.5) / 100
    user_s = transaction.cycles / transaction.transactions / (machine.processor * 1e6)
    all_pages = relations.implied_pages.sum()
    megabytes = all_pages * catalogs.page_size / 1024
    return [
        ("3.2.2, perfect overlap, throughput", f"{two.perfect_tp1:g}", f"{two.recomputed_perfect_tp1:.3f}",
         abs(two.recomputed_perfect_tp1 - two.perfect_tp1) <= 0.005,
         "The disk, busy all the time, allows one transaction per wait time of the single backend."),
        ("3.2.2, perfect overlap, CPU", f"{two.perfect_cpu_percent:g} %", f"{two.recomputed_perfect_cpu_percent:.2f} %",
         abs(two.recomputed_perfect_cpu_percent - two.perfect_cpu_percent) <= 0.005,
         "It is the ratio of CPU to wait time of the single backend; two of its four digits come from a CPU "
         "use printed as a whole percentage."),
        ("Abstract and 5, “doubled”", f"{factor:g}", f"{stable.relative:.2f}", abs(stable.relative - factor) <= 0.05,
         "Last stage over first. If the last stage ran two backends, which the text doesn't say, the fair "
         f"comparison is with the second stage: {stable.tp1 / two.tp1:.2f}."),
        ("2.1 against 3.2.2, one backend", disk, f"{one.implied_disk:.1f}", slow <= one.implied_disk <= fast,
         f"{one.ios:.2f} requests in the {one.wait_s:.3f} s per transaction that aren't CPU time: slower than the disk."),
        ("2.1 against 3.2.2, the program alone", disk, f"{alone.implied_disk:.1f}", slow <= alone.implied_disk <= fast,
         f"{alone.ios:.0f} requests (one read, one write per iteration) in {alone.wait_s:.0f} s that aren't CPU time: "
         "faster than the disk, so that many a write can't have waited for it."),
        ("2.1 against 3.2.2, two backends", f"at most {fast:g} I/O per second", f"{two.ios_per_s:.1f}",
         two.ios_per_s <= fast, "Requests per second of elapsed time."),
        ("2.1 against 3.2.2, last stage", f"at most {fast:g} I/O per second", f"{stable.ios_per_s:.1f}",
         stable.ios_per_s <= fast, "Requests per second of elapsed time: the disk isn't what limits the last stage."),
        ("3.2.2, last stage with one backend", disk, f"{stable.ios / (stable.elapsed_s - one.cpu_s):.1f}",
         slow <= stable.ios / (stable.elapsed_s - one.cpu_s) <= fast,
         f"If it ran one backend with the first stage's {one.cpu_s:.2f} s of CPU per transaction, its {stable.ios:.2f} "
         "requests would have had to be this fast: either two backends ran, or CPU time fell as well."),
        ("3.2.2, the program's share of I/O", f"around {alone.intended_io_percent:g} %",
         f"{100 - alone.cpu_percent:g} %", abs(alone.intended_io_percent - (100 - alone.cpu_percent)) <= 5,
         "What its CPU use leaves over."),
        ("3.2.2, CPU of two programs in perfect overlap", f"{both.perfect_cpu_percent:g} %",
         f"{both.recomputed_perfect_cpu_percent:.0f} %",
         abs(both.recomputed_perfect_cpu_percent - both.perfect_cpu_percent) < 0.5,
         f"The CPU is the busier device, so perfect overlap would take {both.perfect_s:.0f} s instead of {both.elapsed_s:.0f} s."),
        ("3.2.2, CPU time of two programs", f"{both.cpu_s:.0f} s", f"{2 * alone.cpu_s:.0f} s", least_alone <= most_both,
         f"Twice the program alone. Two copies used less CPU than that, also within rounding (at most {most_both:.0f} s "
         f"against at least {least_alone:.0f} s), although the text has them paging more."),
        ("3.2.2, six reads", f"{total.reads:g}", f"{total.recomputed_reads:g}", total.reads == total.recomputed_reads,
         "Leaf and heap page of three relations."),
        ("3.2.2, six writes", f"{total.writes:g}", f"{total.writes + tails:g}", False,
         f"The bound lets the last page of a relation stay in the pool, while the same section has every dirty page "
         f"flushed at commit: the tails of {tails} relations have to be added (the status log isn't counted)."),
        ("2.2 against 3.2.2, pages of a 10-K relation", f"{catalogs.relation_pages:g}", f"{relations.least_pages.max():.0f}",
         abs(relations.least_pages.max() / catalogs.relation_pages - 1) < 0.1,
         f"100-byte tuples fill fewer pages; {catalogs.relation_pages:g} pages mean {relations.implied_tuple_bytes.iloc[0]:.0f} "
         "bytes stored per tuple, so the printed size leaves out the tuple's header."),
        ("2.2 against 3.2.2, pages of branch", f"{catalogs.relation_pages:g} per relation",
         f"{relations.implied_pages['branch']:.0f}", False,
         "At the same stored bytes per tuple; branch has a tenth of the tuples of the others."),
        ("2.1 against 3.2.2, “the database used is large”", f"{machine.memory:g} MB of memory", f"{megabytes:.1f} MB",
         megabytes > machine.memory,
         "The three relations together: they fit into main memory, only not into the buffer pool."),
        ("2.2, commands", f"{transaction.commands_total:g}", f"{transaction.transactions * transaction.commands:g}",
         transaction.commands_total == transaction.transactions * transaction.commands,
         "Figure 2.3 has seven commands, begin and end counted."),
        ("2.2, “each requiring the fetching of a single record”", f"{transaction.commands_total:g}",
         f"{transaction.transactions * 4:g}", False,
         "Of the seven commands of Figure 2.3 four find a tuple through a B-tree: begin, end and append find none."),
        ("2.1 and 3.1.3 against 3.2.2, CPU per transaction", f"{one.cpu_s:.2f} s", f"{user_s:.2f} s",
         user_s / one.cpu_s > 0.5,
         f"{transaction.cycles / transaction.transactions / 1e6:.2f} million profiled cycles per transaction at "
         f"{machine.processor:g} MIPS (at about one cycle per instruction). The profiler saw user mode only: by the print, most CPU "
         "time of a transaction was spent outside it."),
        ("3.2.2, reads of the fourth stage", f"at most {total.reads:g}", f"{append.reads:g}", append.reads <= total.reads,
         "Below the bound, as some pages are still in the pool."),
    ]


def _hot() -> list[tuple]:
    """Print against print for the HOT chapter, as `_tp1`."""
    growth, throughput, abalance = (derived(f"hot_{x}") for x in ("growth", "throughput", "abalance"))
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


_CHECKED = {"tp1": _tp1, "hot": _hot}


def recomputed(chapter: str) -> pd.DataFrame:
    """Every figure of a chapter that can be recomputed from other printed figures.

    Columns: where, printed, recomputed (both texts with units), agrees (bool), note.
    """
    if chapter not in _CHECKED:
        raise RecordError(f"Nothing is recomputed for chapter {chapter!r}. Chapters: {', '.join(_CHECKED)}.")
    return pd.DataFrame(_CHECKED[chapter](), columns=["where", "printed", "recomputed", "agrees", "note"]).astype({"agrees": bool})


def disagreements(chapter: str) -> pd.DataFrame:
    """Where the print disagrees with itself: where, printed, recomputed, note."""
    rows = recomputed(chapter)
    return rows[~rows.agrees].drop(columns="agrees").reset_index(drop=True)


_HEADING = re.compile(r"^\s*(Abstract|\d(?:\.\d+)*\.?)(?:\s+[A-Z]|\s*$)")
_MESSAGE = re.compile(r"^From\n.+\nDate:$", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """A report's text by section number ("3.2.2", "Abstract"), with broken lines and words joined;
    a mail thread's by message ("msg 4", counted from one), without what a message quotes of others."""
    found: dict[str, list[str]] = {}
    current = found.setdefault("", [])
    if thread := _MESSAGE.split(text)[1:]:
        lines = [(f"msg {number}", line) for number, part in enumerate(thread, 1) for line in part.splitlines() if not line.startswith(">")]
    else:
        lines = [(heading[1].rstrip(".") if (heading := _HEADING.match(line)) else "", line) for line in text.splitlines()]
    for section, line in lines:
        current = found.setdefault(section, []) if section else current
        current.append(line.strip())
    return {k: re.sub(r"\s+", " ", re.sub(r"(\w)-\n(?=[a-z])", r"\1-", "\n".join(v))) for k, v in found.items()}


def missing_from_text(name: str, folder: Path) -> list[str]:
    """Cells of the table whose number or wording isn't in the cited section of the document's text.

    `folder` holds the documents' texts. A number counts as found as a numeral or as one of
    `WORDS`; the table's `printed` column must occur literally (case aside).
    """
    where = source(name)
    parts = sections((folder / DOCUMENTS[where.document][1]).read_text("utf-8"))
    cited = [parts.get(s.strip(), "") for s in where.section.split(";")]
    # A word broken at the line's end may or may not keep its hyphen: look for both.
    text = " ".join(cited).lower()
    text += " " + re.sub(r"([a-z])-([a-z])", r"\1\2", text)
    solid = "".join(text.split())  # the text recognition left gaps inside words ("lev els")
    frame, missing = _read(_path(name)), []
    for key, row in frame.iterrows():
        for column, value in row.items():
            if column == "printed":
                found = "".join(value.lower().split()) in solid
            elif "printed" in frame and column == "value":
                found = _states(row["printed"].lower(), float(value)) or _states(text, float(value))
            elif re.fullmatch(r"[\d:.]+", value):
                found = value in text if ":" in value else _states(text, float(value), value)
            else:
                continue
            if not found:
                missing.append(f"{key}.{column} = {value}")
    return missing


def _states(text: str, number: float, numeral: str = "") -> bool:
    """Whether the text has this number, as a numeral, behind an option's letter ("-c10"), in thousands ("10-K"), or as a word."""
    forms = [re.escape(numeral or f"{number:.12g}") + r"(?:\.0+)?"]
    if number >= 1000 and number % 1000 == 0:
        forms.append(f"{number / 1000:g}-?k")
    forms += [WORDS[number]] if number in WORDS else []
    return any(re.search(rf"(?<![\w.])(?:-[a-z])?(?:{form})(?!\d|\.\d)", text) for form in forms)
