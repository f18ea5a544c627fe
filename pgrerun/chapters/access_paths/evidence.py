"""What claims are judged by: facts and intervals made of the experiments' results."""

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.experiments import (
    arrays,
    covering,
    joins,
    planner,
    ranges,
    sorting,
    trees,
    visibility,
)
from pgrerun.chapters.access_paths.experiments.visibility import MapSize
from pgrerun.lab.instruments import PAGE
from pgrerun.page import narrate
from pgrerun.record import printed, statistics
from pgrerun.record.verdicts import Part, greater, less, some, supporting

# ---- the visibility map

_MIB = 2**20


def bits_per_page(size: MapSize) -> float:
    """Bits of the map per page of its table."""
    return size.bits


def size_table(size: MapSize) -> pd.DataFrame:
    """Bits and coverage beside the print, then the sizes. Columns: what, printed, here."""
    said = printed.table("access_paths_said")["value"]
    covered = size.covered / _MIB
    rows = [
        ("bits of the map per page of the table", said["bits"], size.bits),
        ("MB of table that a page of the map covers", said["covered"] * 1024, covered),
    ]
    for row in size.sizes.itertuples():
        table = f"{row.pages:,} pages of table ({row.pages * PAGE / _MIB:,.0f} MB)"
        rows.append((f"pages of the map at {table}", None, row.map_pages))
    return pd.DataFrame(rows, columns=["what", "printed", "here"])


def map_bits(steps: pd.DataFrame) -> dict[str, bool | Part]:
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
        "reading and locking leave the bits alone": supporting(at["one row locked"] and at["read"]),
    }


def wrong_after_crash(crashes: pd.DataFrame) -> bool:
    """Whether the map was wrong anywhere."""
    return crashes[["wrong_visible", "wrong_frozen", "differing"]].to_numpy().any()


def unsafe(crashes: pd.DataFrame, logged: pd.DataFrame) -> bool:
    """Whether the map was wrong anywhere, or a change of it isn't in the log for recovery."""
    return wrong_after_crash(crashes) or bool((logged["records"] < logged["bits"]).any())


def skipped(vacuums: pd.DataFrame) -> float:
    """Pages scanned without the map over those scanned with it, which are one at least."""
    scanned = vacuums.set_index("vacuum")["scanned"]
    return scanned[visibility.WITHOUT] / max(1, scanned[visibility.SKIPPING])


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
        "the length of an entry is the data's, aligned": one == two == 16,
        "a third integer makes them longer": three == 24 > two,
    }


def widths(found: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether wider keys enlarge an index, and whether it can outgrow its table."""
    grows = found.sort_values("columns").groupby("way")["index"].diff().dropna() > 0
    larger = (found["index"] > found["table"]).groupby(found["way"]).any()
    return {
        "every 8 bytes more of key make the index larger": grows.all(),
        "an index can be larger than its table": larger.any(),
        "one that was built at once can": supporting(larger[covering.BUILT]),
    }


def pages_of_table(reads: pd.DataFrame) -> dict[str, bool]:
    """Whether an index-only scan leaves the table alone as long as its pages are all-visible."""
    table = reads.set_index("scan")["table"]
    return {
        "on a vacuumed table an index-only scan touches no page of it": table[covering.ONLY] == 0,
        "a plain index scan touches pages of the table": table[covering.PLAIN] > 0,
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
        "an index-only scan brings as many of them there as a plain one": (
            index[covering.ONLY] == index[covering.PLAIN]
        ),
    }


def explained(reads: pd.DataFrame) -> dict[str, bool]:
    """Whether EXPLAIN ANALYZE names the scan and counts the rows looked up in the table."""
    fetches = reads.set_index("scan")["heap_fetches"]
    nodes = ["Index Only Scan", "Index Scan", "Index Only Scan"]
    return {
        "EXPLAIN names an index-only scan": list(reads["node"]) == nodes,
        "EXPLAIN counts no heap fetches where all pages are all-visible": (
            fetches[covering.ONLY] == 0
        ),
        "EXPLAIN counts a heap fetch for every row where no page is all-visible": (
            fetches[covering.STALE] == covering.RANGE
        ),
    }


# ---- what they gain


def suited(chapter: Chapter, spoiled: pd.DataFrame) -> dict[str, bool | None | Part]:
    """Whether a range of scattered rows gains more where reads are waited for than in memory.

    `spoiled` is what `ranges.updates` returns.
    """
    gains = _gains(chapter)
    waiting, memory = gains[ranges.FAR], gains[ranges.ANYWHERE]
    apart = waiting.low > memory.high or waiting.high < memory.low
    return {
        "scattered rows gain more where reads are waited for than where all is in memory": (
            waiting.estimate > memory.estimate if apart else None
        ),
        "in memory they gain nothing": supporting(memory.high < 1.05),
        **updates(spoiled),
    }


def _gains(chapter: Chapter) -> dict[str, statistics.Interval]:
    """Time of a plain index scan over that of an index-only one, by where the rows lie."""
    return {
        name: chapter.ratio(
            f"ranges {name}", "seconds", f"{ranges.PLAIN}, {name}", f"{ranges.ONLY}, {name}"
        )
        for name in ranges.RANGES
    }


def spread(chapter: Chapter, executed: pd.Series) -> dict[str, bool | None | Part]:
    """Whether an index-only scan may lose as well as gain much.

    The least is counted (see `more_instructions`), the largest timed.
    """
    gains = _gains(chapter).values()
    least = printed.cell("access_paths_said", "most", "value") / 1.1
    return {
        "with no page all-visible an index-only scan executes more instructions than a plain one": (
            more_instructions(executed) > 1.05
        ),
        "somewhere an index-only scan is more than twice as fast": (
            some(greater(gain, 2) for gain in gains)
        ),
        f"somewhere an index-only scan is at least {narrate.number(round(least))} times as fast": (
            supporting(some(greater(gain, least) for gain in gains))
        ),
    }


def largest_gain(chapter: Chapter, executed: pd.Series) -> str:
    """The largest gain that was timed, in words; and the largest loss in instructions."""
    name, most = max(_gains(chapter).items(), key=lambda found: found[1].estimate)
    return (
        f"the largest gain is {narrate.interval(most)} times ({name}), and where no page is"
        f" all-visible it executes {narrate.number(more_instructions(executed))} times as much"
    )


def order(chapter: Chapter) -> dict[str, bool | None]:
    """What the advice warns of: rows that neighbour in the index and lie anywhere in the table."""
    times = [
        chapter.table(f"ranges {name}", "seconds")[f"{ranges.PLAIN}, {name}"]
        for name in (ranges.ANYWHERE, ranges.TOGETHER)
    ]
    slower = statistics.ratio_of_medians(*times, chapter.parameters.seed)
    return {"an index scan is slower where its rows lie anywhere in the table": greater(slower)}


def more_instructions(executed: pd.Series) -> float:
    """Instructions of an index-only scan without all-visible pages over those of a plain one."""
    return executed[ranges.ONLY] / executed[ranges.PLAIN]


def only_over_plain(chapter: Chapter, percent: int = 0) -> statistics.Interval:
    """Time of an index-only scan over that of a plain one, so many per cent all-visible."""
    only, plain = (ranges.marked(percent, scan) for scan in (ranges.ONLY, ranges.PLAIN))
    return chapter.ratio(f"fractions_{percent}", "seconds", only, plain)


def updates(found: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether updates make an index-only scan visit the table again for nearly every row."""
    fetched = found["fetched"]
    return {
        f"{found['updates'].iloc[-1]:g} updates per page after a vacuum, more than nine rows in ten"
        " have to be looked up in the table": fetched.iloc[-1] > 0.9,
        "right after it none has to be": supporting(fetched.iloc[0] == 0),
        "they are as many as there are rows on pages hit at random": supporting(
            ((fetched - found["computed"]).abs() < 0.05).all()
        ),
    }


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


def join_plans(shapes: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether the two plans are those that the talk shows."""
    at, keys = shapes.set_index("variant"), printed.cell("access_paths_join", "rows", "value")
    read, kinds = at["rows_read"], at["joins"].map(set)
    return {
        "left alone, the planner takes a nested loop of index probes": (
            kinds[joins.PARAMETERIZED] == {"Nested Loop"}
            and "Seq Scan" not in at.at[joins.PARAMETERIZED, "plan"]
        ),
        "the nested loop reads no rows of the large tables but those asked for": (
            read[joins.PARAMETERIZED] <= 2 * keys
        ),
        "9.1's plan, forced, merge-joins what it reads": supporting(
            kinds[joins.BEFORE] == {"Merge Join"}
        ),
    }


def join_forms(found: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether few kinds of queries, the talk's among them, hand a key through a join."""
    through = found.set_index("form")["through"]
    return {
        "a left join over an inner join hands its key through a join": through[joins.TALKS],
        "inner joins alone don't": not through[joins.INNER],
        "left joins in a row don't": not through[joins.IN_A_ROW],
        "NOT EXISTS and LATERAL don't": supporting(not through[list(joins.OTHERS)].any()),
    }


def speedups(chapter: Chapter) -> dict[str, statistics.Interval]:
    """Time of 9.1's plan over that of 9.2's, short of memory, on this run's table."""
    variants = {"first execution": joins.FIRST, "later executions": joins.PARAMETERIZED}
    return {
        name: chapter.ratio(joins.SHORT, "seconds", joins.BEFORE, variant)
        for name, variant in variants.items()
    }


def growth(chapter: Chapter, variant: str) -> statistics.Interval:
    """Exponent of the time over the size of the large table."""
    sizes = joins.large_relations(chapter)
    times = [chapter.table(f"join_{size}", "seconds")[variant] for size in sizes]
    rows = np.repeat(list(sizes), [len(one) for one in times])
    return statistics.exponent(rows, pd.concat(times))


# ---- arrays


def lists(found: pd.DataFrame) -> dict[str, bool]:
    """Whether a list of keys can be looked up by a plain index scan, in order, and its use."""
    plain = found[found["way"] == arrays.PLAIN]
    few = found[found["asked"] == arrays.FEW].pivot(index="keys", columns="way")
    return {
        "a plain index scan looks up a list of keys": (plain["node"] == "Index Scan").all(),
        "a plain index scan returns them in order, without a sort": not plain["sorts"].any(),
        "for the first few a plain index scan touches fewer pages than a bitmap": (
            (few["pages", arrays.PLAIN] < few["pages", arrays.BITMAP]).all()
        ),
        "for the first few the planner prefers the plain index scan": (
            (few["node", arrays.EITHER] == "Index Scan").all()
        ),
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


# ---- GiST, SP-GiST, B-trees


def prefixes(chapter: Chapter, executed: pd.Series) -> dict[str, bool | None | Part]:
    """Whether SP-GiST gains anything over a B-tree in searches by prefix."""
    faster = less(chapter.ratio("texts", "search", trees.SPACE, trees.BTREE), margin=0.05)
    fewer = chapter.ratio("texts", "accesses", trees.SPACE, trees.BTREE).low < 1
    return {
        "searches by SP-GiST are no faster than by a B-tree": (
            None if faster is None else not faster
        ),
        "they take as many instructions, or more": supporting(
            executed[trees.SPACE] >= executed[trees.BTREE]
        ),
        "they visit as many pages, or more": supporting(not fewer),
    }


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


def btrees(found: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether a B-tree is as good however it came about."""
    at = found.set_index("way")
    built, grown = at.loc[trees.BUILT], at.loc[trees.RANDOM]
    return {
        "a lookup visits as many pages however the tree was made": at["lookup"].nunique() == 1,
        "a tree grown in random order is as full as one built at once": supporting(
            grown["density"] > built["density"] - 5
        ),
        "a range visits as few pages in it": supporting(grown["range"] <= 1.1 * built["range"]),
        "its leaves lie in the order of the keys": supporting(grown["fragmentation"] < 5),
    }


# ---- sorting


def sorting_only(times: pd.DataFrame) -> pd.DataFrame:
    """Times of all variants, a column each, without the time to read the rows.

    That is the least there was: on a busy machine a single block may read more slowly than another
    sorts. NaN where a sort took no longer: two such would make a ratio that looks possible.
    """
    found = times.drop(columns=sorting.UNSORTED) - times[sorting.UNSORTED].min()
    return found.where(found > 0)


def fewer_instructions(executed: pd.Series) -> float:
    """Instructions to sort doubles without sort support over those with it, reading left out."""
    without, supported = (
        executed[name] - executed[sorting.UNSORTED]
        for name in (sorting.UNSUPPORTED, sorting.SUPPORTED)
    )
    return without / supported


def sorting_gain(chapter: Chapter, key: str = sorting.DOUBLE) -> statistics.Interval:
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
