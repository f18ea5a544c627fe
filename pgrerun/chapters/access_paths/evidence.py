"""What claims are judged by: facts and intervals made of the experiments' results."""

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.access_paths.accounts import AMPLE, DIRECT
from pgrerun.chapters.access_paths.experiments import (
    arrays,
    breakeven,
    covering,
    joins,
    planner,
    ranges,
    sorting,
    trees,
)
from pgrerun.chapters.access_paths.experiments.lookups import COVERING, KEY, variant
from pgrerun.chapters.access_paths.experiments.visibility import MapSize
from pgrerun.lab.instruments import PAGE
from pgrerun.record import printed, statistics

# ---- the visibility map

_MIB = 2**20


def bits_per_page(size: MapSize) -> float:
    """Bits of the map per page of its table."""
    return size.bits


def size_table(size: MapSize) -> pd.DataFrame:
    """Bits and coverage beside the print, then the sizes. Columns: what, in print, here."""
    said = printed.table("access_paths_said")["value"]
    covered = size.covered / _MIB
    rows = [
        ("bits of the map per page of the table", said["bits"], size.bits),
        ("MB of table that a page of the map covers", said["covered"] * 1024, covered),
    ]
    for row in size.sizes.itertuples():
        table = f"{row.pages:,} pages of table ({row.pages * PAGE / _MIB:,.0f} MB)"
        rows.append((f"pages of the map at {table}", None, row.map_pages))
    return pd.DataFrame(rows, columns=["what", "in print", "here"])


def map_bits(steps: pd.DataFrame) -> dict[str, bool]:
    """Whether each step leaves the bits that the talk's rule says."""
    lacking = steps["expected"].map({"all": 0, "one less": 1, "two less": 2})
    expected = (steps["pages"] - lacking).fillna(0)
    right = steps["all_visible"] == expected
    at = dict(zip(steps["step"], right, strict=True))
    return {
        "vacuum sets the bit of every page that all can see": (
            right.iloc[0] and right.iloc[1] and right.iloc[-1]
        ),
        "changing a tuple clears its page's bit, even if it is rolled back": (
            at["one row updated"] and at["one row of another page deleted, rolled back"]
        ),
        "no bit is set while somebody may still need an older version": (
            at["one row updated, vacuumed beside an old snapshot"]
        ),
        "reading and locking leave the bits alone": at["one row locked"] and at["read"],
    }


def wrong_after_crash(crashes: pd.DataFrame) -> bool:
    """Whether the map was wrong anywhere."""
    return crashes[["wrong_visible", "wrong_frozen", "differing"]].to_numpy().any()


def upgrade(upgraded: pd.DataFrame) -> dict[str, bool]:
    """Whether an upgrade leaves the map behind, so that everything has to be vacuumed again."""
    found = upgraded.set_index("what")["found"]
    return {
        "pg_upgrade discards the map": found["marked after"] == 0,
        "the planner forgets which share of the pages is all-visible": (
            found["relallvisible after"] == 0
        ),
    }


# ---- what they are made of


def size_ratio(sizes: pd.DataFrame) -> float:
    """Bytes of the index over two columns, over those of the index over one."""
    size = sizes.set_index("index")["bytes"]
    return size[covering.PAIR] / size[covering.SINGLE]


def padding(sizes: pd.DataFrame) -> dict[str, bool]:
    """Whether alignment explains the equal size.

    8 bytes of header and 4 or 8 of data end at the same multiple of 8; with 12 at the next.
    """
    entry = sizes.set_index("index")["tuple_bytes"]
    one, two, three = (entry[name] for name in (covering.SINGLE, covering.PAIR, covering.THREE))
    return {
        "entries of one and of two integers have the same length": one == two,
        "that length is the data's, aligned": one == two == 16,
        "a third integer makes them longer": three == 24 > two,
    }


def widths(found: pd.DataFrame) -> dict[str, bool]:
    """Whether every column more enlarges the index, and whether it can outgrow its table."""
    grows = found.sort_values("columns").groupby("way")["index"].diff().dropna() > 0
    larger = (found["index"] > found["table"]).groupby(found["way"]).any()
    return {
        "every column more makes the index larger": grows.all(),
        "an index built at once can be larger than its table": larger[covering.BUILT],
        "an index grown by inserts can be larger than its table": larger[covering.GROWN],
    }


def pages_of_table(reads: pd.DataFrame) -> dict[str, bool]:
    """Whether an index-only scan leaves the table alone as long as its pages are all-visible."""
    table = reads.set_index("scan")["table"]
    return {
        "on a vacuumed table an index-only scan touches no page of it": table[covering.ONLY] == 0,
        "a plain index scan does": table[covering.PLAIN] > 0,
        "without all-visible pages an index-only scan touches as many": (
            table[covering.STALE] == table[covering.PLAIN]
        ),
    }


def pages_of_index(reads: pd.DataFrame) -> dict[str, bool]:
    """Whether an index-only scan brings the same index pages into the pool as a plain one."""
    index = reads.set_index("scan")["index"]
    return {
        "after an index-only scan the index's pages are in the buffer pool": (
            index[covering.ONLY] > 0
        ),
        "they are as many as after a plain index scan": (
            index[covering.ONLY] == index[covering.PLAIN]
        ),
    }


def explained(reads: pd.DataFrame) -> dict[str, bool]:
    """Whether EXPLAIN ANALYZE names the scan and counts the rows looked up in the table."""
    fetches = reads.set_index("scan")["heap_fetches"]
    nodes = ["Index Only Scan", "Index Scan", "Index Only Scan"]
    return {
        "EXPLAIN names an index-only scan": list(reads["node"]) == nodes,
        "it counts no heap fetches where all pages are all-visible": fetches[covering.ONLY] == 0,
        "it counts one for every row where none is": fetches[covering.STALE] == covering.RANGE,
    }


# ---- what they gain


def short_over_ample(chapter: Chapter, lookups: pd.DataFrame) -> statistics.Interval:
    """The covering index's gain where the table doesn't fit into memory, over that where it does.

    `lookups` are the experiment's observations.
    """
    throughput = wide(lookups, "throughput")
    short, ample = (
        throughput[variant(where, COVERING)] / throughput[variant(where, KEY)]
        for where in (DIRECT, AMPLE)
    )
    return statistics.ratio(short, ample, seed=chapter.parameters.seed)


def only_over_plain(chapter: Chapter, percent: int = 0) -> statistics.Interval:
    """Time of an index-only scan over that of a plain one, so many per cent all-visible."""
    only, plain = (ranges.marked(percent, scan) for scan in (ranges.ONLY, ranges.PLAIN))
    return chapter.ratio(f"fractions_{percent}", "seconds", only, plain)


def updates(found: pd.DataFrame) -> dict[str, bool]:
    """Whether updates make an index-only scan visit the table again for nearly every row."""
    fetched = found["fetched"]
    return {
        "on a vacuumed table no row has to be looked up in the table": fetched.iloc[0] == 0,
        "a few updates per page later more than nine rows in ten have to be": (
            fetched.iloc[-1] > 0.9
        ),
        "they are as many as there are rows on pages hit at random": (
            ((fetched - found["computed"]).abs() < 0.05).all()
        ),
    }


# ---- the break-even of index scans


def measured_breakeven(chapter: Chapter, where: str) -> statistics.Interval:
    """The share of rows from which on the index scan is slower.

    Interpolated in each block between the shares measured, on a logarithmic scale.
    """
    table = chapter.table(f"breakeven {where}", "seconds")
    shares = breakeven.SHARES[where]
    ratios = np.array(
        [table[f"{breakeven.INDEX}, {share:g}"] / table[breakeven.SEQUENTIAL] for share in shares]
    )
    return statistics.median([crossing(np.log(shares), np.log(block)) for block in ratios.T])


def crossing(x: np.ndarray, y: np.ndarray) -> float:
    """exp of where y passes 0, extended linearly beyond the ends."""
    after = next((i for i in range(1, len(x)) if y[i] >= 0), len(x) - 1)
    slope = (y[after] - y[after - 1]) / (x[after] - x[after - 1])
    return float(np.exp(x[after] - y[after] / slope))


def over_planned(chapter: Chapter, known: breakeven.BreakEven) -> dict[str, statistics.Interval]:
    """The break-even measured over the planner's, by place."""
    factor = 1 / known.planned
    return {where: measured_breakeven(chapter, where).times(factor) for where in breakeven.SHARES}


# ---- planner and autovacuum


def costs(found: pd.DataFrame) -> dict[str, bool]:
    """Whether the planner uses the share of all-visible pages in pg_class, and only that."""
    only, plain, sequential = (found[path] for path in planner.PATHS)
    return {
        "the estimated cost of an index-only scan falls with that share": (
            only.is_monotonic_decreasing and only.is_unique
        ),
        "a false share changes the plan": found["chosen"].nunique() > 1,
        "other scans' costs don't depend on it": plain.nunique() == sequential.nunique() == 1,
    }


def refined(found: pd.DataFrame) -> dict[str, bool]:
    """Whether the cost is anything else than that of a plain index scan with fewer pages.

    That it was in 9.2 (cost_index in costsize.c): a straight line from 0 to 100 per cent. Pages
    are counted in whole ones.
    """
    at = found.set_index("percent")
    only, plain, _ = (at[path] for path in planner.PATHS)
    fallen = (only - only[100]) / (only[0] - only[100])
    straight = ((fallen - (1 - at.index / 100)).abs() < 0.01).all()
    return {
        "the cost is no longer that of a plain index scan minus the all-visible share of its"
        " pages": not straight,
        "what a look into the map and a vain visit cost is estimated": only[0] != plain[0],
    }


def autovacuum(found: pd.DataFrame) -> dict[str, bool]:
    """Whether tables are left whose index-only scans would gain by a vacuum."""
    at = found.set_index("table")
    unmarked = at["marked"] < 0.1 * at["pages"]
    return {
        "a table that only grows stays unmarked": unmarked[planner.GROWING],
        "a table with an update on every page stays unmarked": unmarked[planner.CHANGED],
    }


# ---- joins


def join_order(chapter: Chapter, shapes: pd.DataFrame) -> dict[str, bool]:
    """Whether joining the large tables first means to read them whole."""
    read = shapes.set_index("variant")["rows_read"]
    few = 2 * printed.cell("access_paths_join", "rows", "value")
    return {
        "with the large tables joined first the planner finds no way around reading them": (
            read[joins.FENCE] >= chapter.parameters.accounts
        ),
        "free to choose, it reads no more of them than is asked for": read[joins.PARAMETERIZED]
        <= few,
    }


def join_plans(chapter: Chapter, shapes: pd.DataFrame) -> dict[str, bool]:
    """Whether the two plans are those that the talk shows."""
    whole = 2 * chapter.parameters.accounts
    at = shapes.set_index("variant")
    read, kinds = at["rows_read"], at["joins"].map(set)
    return {
        "9.2's plan is a nested loop of index probes": (
            kinds[joins.PARAMETERIZED] == {"Nested Loop"}
            and "Seq Scan" not in at.at[joins.PARAMETERIZED, "plan"]
        ),
        "9.1's plan merge-joins two whole indexes": (
            kinds[joins.BEFORE] == {"Merge Join"} and read[joins.BEFORE] >= whole
        ),
        "it does so wherever the keys lie": read[joins.EARLY] >= whole,
        "joined first, the large tables are merge-joined today as well": (
            kinds[joins.FENCE] == {"Merge Join"}
        ),
    }


def join_forms(found: pd.DataFrame) -> dict[str, bool]:
    """Whether only the talk's kind of query has a plan that hands a key through a join."""
    through = found.set_index("form")["through"]
    return {
        "a left join over an inner join hands its key through a join": through[joins.TALKS],
        "inner joins alone don't": not through[joins.INNER],
        "left joins in a row don't": not through[joins.IN_A_ROW],
        "no other form does": not through[list(joins.OTHERS)].any(),
    }


def speedup(chapter: Chapter, variant: str = joins.PARAMETERIZED) -> statistics.Interval:
    """Time of 9.1's plan over that of 9.2's, short of memory, per million rows of the large table.

    One time grows with the table, the other doesn't.
    """
    ratio = chapter.ratio(joins.SHORT, "seconds", joins.BEFORE, variant)
    return ratio.times(1e6 / chapter.parameters.accounts)


def growth(chapter: Chapter, variant: str) -> statistics.Interval:
    """Exponent of the time over the size of the large table."""
    rows, seconds = [], []
    for size in joins.large_relations(chapter):
        times = chapter.table(f"join_{size}", "seconds")[variant]
        rows += [size] * len(times)
        seconds += list(times)
    return statistics.exponent(rows, seconds)


# ---- arrays


def lists(found: pd.DataFrame) -> dict[str, bool]:
    """Whether a list of keys can be looked up by a plain index scan, in order, and its use."""
    plain = found[found["way"] == "indexscan"]
    few = found[found["asked"] == arrays.FEW].pivot(index="keys", columns="way")
    return {
        "a plain index scan looks up a list of keys": (plain["node"] == "Index Scan").all(),
        "it returns them in order, without a sort": not plain["sorts"].any(),
        "for the first few it touches fewer pages than a bitmap": (
            (few["pages", "indexscan"] < few["pages", "bitmapscan"]).all()
        ),
        "the planner then prefers it": (few["node", "either"] == "Index Scan").all(),
    }


def q_errors(estimates: pd.DataFrame) -> pd.DataFrame:
    """By what factor estimates are off.

    Columns: operator, and for each of arrays.STATISTICS "median …" and "largest …".
    """
    rows = []
    for operator in arrays.OPERATORS:
        row = {"operator": operator}
        for known in arrays.STATISTICS:
            own = (estimates["operator"] == operator) & (estimates["statistics"] == known)
            errors = estimates.loc[own, "q_error"]
            row |= {f"median {known}": errors.median(), f"largest {known}": errors.max()}
        rows.append(row)
    return pd.DataFrame(rows)


def selectivity_gain(estimates: pd.DataFrame) -> statistics.Interval:
    """Q-error without statistics on elements over that with them, over all conditions."""
    by = estimates.pivot(index=["operator", "condition"], columns="statistics", values="q_error")
    return statistics.ratio(by[arrays.WITHOUT], by[arrays.WITH])


def assignments(observations: pd.DataFrame) -> dict[str, bool]:
    """Whether an assignment's cost depends on the array's length.

    By the exponent of the time to fill an array over its length: 1 if an assignment costs the same
    in a long array, 2 if it costs in proportion.
    """
    seconds, exponents = wide(observations, "seconds"), {}
    for way, lengths in arrays.LENGTHS.items():
        names = {length: f"{way}, {length}" for length in lengths}
        pairs = [(length, time) for length, name in names.items() for time in seconds[name]]
        exponents[way] = statistics.exponent(*zip(*pairs, strict=True))
    place, copied = exponents[arrays.IN_PLACE], exponents[arrays.COPIED]
    return {
        "the time to fill an array grows no faster than its length": place.low <= 1.05,
        "it would if the array were copied at every assignment": copied.low > place.high,
    }


# ---- GiST, SP-GiST, B-trees


def gist(chapter: Chapter) -> dict[str, statistics.Interval]:
    """The index that CREATE INDEX makes today, over one made row by row."""
    return {
        words: chapter.ratio("points", metric, trees.SORTED, trees.ONE_BY_ONE)
        for metric, words in (("build", "time to build"), ("accesses", "pages visited by a search"))
    }


def space_partitioned(chapter: Chapter) -> dict[str, statistics.Interval]:
    """Time of a search with the index that the talk prefers, over that with the other."""
    points = chapter.ratio("points", "search", trees.SPACE, trees.SORTED)
    prefixes = chapter.ratio("texts", "search", trees.BTREE, trees.SPACE)
    return {"points, SP-GiST over GiST": points, "prefixes, B-tree over SP-GiST": prefixes}


def medians(observations: pd.DataFrame) -> pd.DataFrame:
    """Medians over the blocks, a row per index in the order of the tables of variants.

    Columns: index, build (ms), pages, searches (ms, of all of them), page accesses per search.
    """
    names = {
        "build": "build (ms)",
        "pages": "pages",
        "search": "searches (ms)",
        "accesses": "page accesses per search",
    }
    found = observations.groupby(["variant", "metric"])["value"].median().unstack()[list(names)]
    found[["build", "search"]] *= 1000
    order = dict.fromkeys([*trees.POINT_INDEXES, *trees.TEXT_INDEXES])
    found = found.loc[[name for name in order if name in found.index]]
    return found.rename(columns=names).rename_axis(index="index", columns=None).reset_index()


def btrees(found: pd.DataFrame) -> dict[str, bool]:
    """Whether a B-tree is as good however it came about."""
    at = found.set_index("way")
    built, grown = at.loc[trees.BUILT], at.loc[trees.RANDOM]
    return {
        "a lookup visits as many pages however the tree was made": at["lookup"].nunique() == 1,
        "a tree grown in random order is as full as one built at once": (
            grown["density"] > built["density"] - 5
        ),
        "a range visits as few pages in it": grown["range"] <= 1.1 * built["range"],
        "its leaves lie in the order of the keys": grown["fragmentation"] < 5,
    }


# ---- sorting


def sorting_only(times: pd.DataFrame) -> pd.DataFrame:
    """Times of all variants, a column each, without the time to read the rows.

    That is the least there was: on a busy machine a single block may read more slowly than another
    sorts.
    """
    return times.drop(columns=sorting.UNSORTED) - times[sorting.UNSORTED].min()


def sorting_gain(chapter: Chapter, key: str = sorting.INTEGER) -> statistics.Interval:
    """Time to sort without sort support over that with it, for one type of key."""
    times = sorting_only(chapter.table("sorting", "seconds"))
    without, supported = (
        times[sorting.variant(key, sorting.UNSUPPORTED)],
        times[sorting.variant(key, sorting.SUPPORTED)],
    )
    return statistics.ratio(without, supported, seed=chapter.parameters.seed)


def abbreviated(chapter: Chapter) -> statistics.Interval:
    """The gain for text that differs from its first byte on, over that behind one beginning.

    Both are compared by the same function, called in the same way; only abbreviated keys are
    useless for the second.
    """
    times = sorting_only(chapter.table("sorting", "seconds"))
    bytewise, alike = (
        times[sorting.variant(key, sorting.UNSUPPORTED)]
        / times[sorting.variant(key, sorting.SUPPORTED)]
        for key in (sorting.BYTES, sorting.ALIKE)
    )
    return statistics.ratio(bytewise, alike, seed=chapter.parameters.seed)
