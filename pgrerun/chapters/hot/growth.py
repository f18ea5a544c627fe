"""Sizes after many updates: the thread's two set-ups, the steady state, its theory, and autovacuum's part.

Time is counted in updates per account, so that growth compares across machines. One client and
fixed seeds: the sizes are the same in every run.
"""

import time
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import psycopg

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.bank import (
    AS_BEFORE, BALANCES, FULL, HOT, NO_HOT, PAGE, REDUCED, SIZED, TELLERS, Bank, bank, blocks, churn, counted, drive, printed_updates, replay, snapshot, vacuum,
)  # fmt: skip
from pgrerun.relations import loading

PAGE_HEADER, LINE_POINTER = 24, 4
MOST_POINTERS = 291  # of a page of a table (MaxHeapTuplesPerPage)

# The full script updates single tuples so often that an old snapshot would make every lookup visit hundreds of versions.
RUNS = ((REDUCED, HOT), (REDUCED, NO_HOT), (REDUCED, AS_BEFORE), (FULL, HOT), (FULL, NO_HOT))


def growth(chapter: Chapter) -> pd.DataFrame:
    """The thread's two set-ups, as many updates per account as in print: a row per script, arm and relation or index.

    Columns: script, arm, relation, before, after (pages), updates, hot, newpage (of the table; an index has none),
    transactions (in the first run, which is pgbench's, as it reported), history (tuples inserted).
    """
    server, here = chapter.server, bank(chapter)
    rows, load = [], {"seed": chapter.parameters.seed}
    for script, arm in RUNS:
        here.load(server, arm)
        with server.connect() as connection, snapshot(server, arm == AS_BEFORE):
            before = blocks(connection, *SIZED)
            transactions = here.updates(printed_updates())
            if (script, arm) == RUNS[0]:
                transactions = drive(server, here, script, transactions, waiting=False, **load).transactions
            else:
                replay(connection, here, script, transactions, **load)
            history = connection.execute("SELECT count(*) FROM history").fetchone()[0]
            for relation, start, end in zip(SIZED, before, blocks(connection, *SIZED)):
                counts = counted(connection, relation) if relation in BALANCES else {}
                rows.append(
                    {"script": script, "arm": arm, "relation": relation, "before": start, "after": end}
                    | counts | {"transactions": transactions, "history": history}
                )  # fmt: skip
    return pd.DataFrame(rows)


def pick(grown: pd.DataFrame, script: str, arm: str, relation: str) -> pd.Series:
    """One row of `growth`."""
    return grown.set_index(["script", "arm", "relation"]).loc[(script, arm, relation)]


_PRINTED_ARMS = (("head", "without"), ("hot", HOT))


def _grown(before: float, added: float) -> str:
    return f"{before:,.0f} + {added:,.0f}"


def beside_print(grown: pd.DataFrame | None, script: str) -> pd.DataFrame | None:
    """Pages before and after of one set-up, a row per relation and index: in print and here, each without and with HOT."""
    if grown is None:
        return None
    printed = published.derived("hot_growth")
    rows = []
    for relation in SIZED[: 2 if script == REDUCED else None]:
        then = printed.loc[f"{'reduced' if script == REDUCED else 'full'}_{relation}"]
        row = {"relation": relation} | {f"2007 {words}": _grown(then[f"initial_{arm}"], then[f"increase_{arm}"]) for arm, words in _PRINTED_ARMS}
        for arm in (arm for one, arm in reversed(RUNS) if one == script):
            now = pick(grown, script, arm, relation)
            row[f"here, {arm}"] = _grown(now["before"], now["after"] - now["before"])
        rows.append(row)
    return pd.DataFrame(rows)


def over_hot(grown: pd.DataFrame | None, relation: str, arm: str = AS_BEFORE, script: str = REDUCED) -> float | None:
    """Pages afterwards in an arm, over those with HOT."""
    if grown is None:
        return None
    return float(pick(grown, script, arm, relation)["after"] / pick(grown, script, HOT, relation)["after"])


ENTRIES_PER_LEAF = 407  # of an integer key: (8192 - header 24 - special 16) / 20 bytes
PAGES_PER_PARENT = 285  # of an index after loading, when inner pages are filled to 70 per cent


def _unsplit(pages: int) -> int:
    """Pages of an index that needn't split: its meta page, and the last of each level, the root included."""
    return 3 + (pages > PAGES_PER_PARENT) + (pages > PAGES_PER_PARENT**2)


def index_facts(grown: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the primary key of accounts grows without HOT only, and as in print: each full page splits once."""
    if grown is None:
        return None
    with_hot, without = (pick(grown, REDUCED, arm, "accounts_pkey") for arm in (HOT, AS_BEFORE))
    return {
        "accounts_pkey doesn't grow with HOT": bool(with_hot["after"] == with_hot["before"]),
        "with neither HOT nor pruning each of its full pages splits, which doubles a large index": bool(
            without["after"] - without["before"] >= without["before"] - _unsplit(without["before"])
        ),
    }


def stock_facts(grown: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether pgbench as it is ran both statements of the reduced script, every time."""
    if grown is None:
        return None
    run = pick(grown, REDUCED, HOT, "accounts")
    return {
        "pgbench ran the reduced script from a file": bool(run["transactions"] > 0),
        "each transaction updated one account and inserted one tuple": bool(run["updates"] == run["history"] == run["transactions"]),
    }


def worth_facts(grown: pd.DataFrame | None) -> dict[str, bool] | None:
    """What HOT does for pgbench's own transaction, in counts."""
    if grown is None:
        return None
    tables = [pick(grown, FULL, HOT, name) for name in BALANCES]
    share = sum(row["hot"] for row in tables) / sum(row["updates"] for row in tables)
    relations = [(pick(grown, FULL, HOT, name), pick(grown, FULL, NO_HOT, name)) for name in SIZED]
    return {
        "nine of ten updates of pgbench's transaction are HOT": bool(share >= 0.9),
        "no relation or index grows more with HOT than without": all(h["after"] <= n["after"] for h, n in relations),
        "without HOT accounts or its index would have grown": any(
            pick(grown, FULL, NO_HOT, name)["after"] > pick(grown, FULL, NO_HOT, name)["before"] for name in SIZED[:2]
        ),
    }


# ---- small tables

SMALL = SIZED[2:]
TOGETHER = 30  # updates of either table that commit at once: with ninety clients many are under way at any time
_UPDATE_SMALL = f"""DO $$ DECLARE b int; t int; BEGIN FOR n IN 1..{{updates}} / {TOGETHER} LOOP
    b := floor(random() * {{branches}}); t := floor(random() * {{tellers}});
    UPDATE branches SET bbalance = bbalance + 1
        WHERE bid = ANY (ARRAY(SELECT (b + i * {{branches}} / {TOGETHER}) % {{branches}} + 1 FROM generate_series(1, {TOGETHER}) AS i));
    UPDATE tellers SET tbalance = tbalance + 1
        WHERE tid = ANY (ARRAY(SELECT (t + i * {{tellers}} / {TOGETHER}) % {{tellers}} + 1 FROM generate_series(1, {TOGETHER}) AS i)); COMMIT;
END LOOP; END $$"""


def between_vacuums() -> int:
    """Transactions of the print's full script without HOT while its autovacuum slept once; a multiple of `TOGETHER`."""
    seconds, tps = published.cell("hot_setup", "autovacuum_naptime", "value"), published.cell("hot_throughput", "full_head", "tps_including")
    return round(seconds * tps / TOGETHER) * TOGETHER


def small(chapter: Chapter) -> pd.DataFrame:
    """Pages of branches and tellers, as many as in print, after the updates between two of the print's vacuums.

    `TOGETHER` tuples of each table are updated at a time, evenly spread from one drawn at random. A row per arm (HOT, NO_HOT) and relation or index: arm, relation, before, after, updates (of the table), hot.
    """
    there, rows = Bank(int(published.cell("hot_setup", "scale", "value")), 1), []
    for arm in (HOT, NO_HOT):
        there.load(chapter.server, arm)
        with chapter.server.connect() as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute("SELECT setseed(%s::float8 / 2147483648)", [chapter.parameters.seed])
            before = blocks(connection, *SMALL)
            drawn = {"updates": between_vacuums(), "branches": there.branches, "tellers": TELLERS * there.branches}
            connection.execute(_UPDATE_SMALL.format(**drawn))
            for relation, start, end in zip(SMALL, before, blocks(connection, *SMALL)):
                done = counted(connection, relation.removesuffix("_pkey"))
                rows.append((arm, relation, start, end, done["updates"], done["hot"]))
    return pd.DataFrame(rows, columns=["arm", "relation", "before", "after", "updates", "hot"])


def small_beside_print(found: pd.DataFrame | None) -> pd.DataFrame | None:
    """Growth of the small relations, a row each: in print and here, without HOT and with it."""
    if found is None:
        return None
    printed = published.derived("hot_growth")
    rows = []
    for relation in SMALL:
        then = printed.loc[f"full_{relation}"]
        row = {"relation": relation} | {f"2007 {words}": _grown(then[f"initial_{arm}"], then[f"increase_{arm}"]) for arm, words in _PRINTED_ARMS}
        for arm in (NO_HOT, HOT):
            now = _small(found, arm, relation)
            row[f"here, {arm}"] = _grown(now["before"], now["after"] - now["before"])
        rows.append(row)
    return pd.DataFrame(rows)


def _small(found: pd.DataFrame, arm: str, relation: str) -> pd.Series:
    return found.set_index(["arm", "relation"]).loc[(arm, relation)]


def small_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether HOT keeps the small tables much smaller."""
    if found is None:
        return None
    added = {(row.arm, row.relation): row.after - row.before for row in found.itertuples()}
    return {f"{name} grows less than half as much with HOT": bool(2 * added[HOT, name] < added[NO_HOT, name]) for name in ("tellers", "branches")}


def small_index_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the primary key of branches grows without HOT only."""
    if found is None:
        return None
    with_hot, without = (_small(found, arm, "branches_pkey") for arm in (HOT, NO_HOT))
    return {
        "branches_pkey grows without HOT": bool(without["after"] > without["before"]),
        "branches_pkey doesn't grow with HOT": bool(with_hot["after"] == with_hot["before"]),
    }


# ---- the steady state, measured and computed

VACUUMED, BEFORE_VACUUMED = "no HOT, vacuumed as in print", "neither, vacuumed as in print"
STEADY = (HOT, VACUUMED, NO_HOT, BEFORE_VACUUMED, AS_BEFORE)
LOADED_AS = {VACUUMED: NO_HOT, BEFORE_VACUUMED: AS_BEFORE}
LONGEST_SNAPSHOT = 2.0  # updates per account: an old snapshot keeps every version, and every lookup passes them


def steady(chapter: Chapter) -> pd.DataFrame:
    """Sizes over the number of updates: columns arm, updates (per account), accounts, accounts_pkey (pages).

    Accounts are drawn at random by one session. Arms "vacuumed as in print" vacuum whenever the updates since the
    last time reach the print's scale factor, which is when autovacuum would if it came at once.
    """
    here, rows = bank(chapter), []
    for arm in STEADY:
        kept = LOADED_AS.get(arm, arm) == AS_BEFORE
        here.load(chapter.server, LOADED_AS.get(arm, arm))
        with chapter.server.connect() as connection, snapshot(chapter.server, kept) as old:
            rows.append((arm, 0.0, *blocks(connection, *SIZED[:2])))
            done = 0.0
            for number, look in enumerate(_looks(chapter, arm)):
                churn(connection, here, here.updates(look.until) - here.updates(done), seed=chapter.parameters.seed + number)
                done = look.until
                if look.seen:
                    rows.append((arm, done, *blocks(connection, *SIZED[:2])))
                if look.vacuum:
                    vacuum(connection, "accounts", old)
    return pd.DataFrame(rows, columns=["arm", "updates", *SIZED[:2]])


class Look(NamedTuple):
    """A stretch of updates ends at `until` (updates per account); is the size looked at then, is vacuum run after that?"""

    until: float
    seen: bool
    vacuum: bool


def _looks(chapter: Chapter, arm: str) -> list[Look]:
    """Where the updates of an arm stop: after each half update per account, and where vacuum is due."""
    longest = min(LONGEST_SNAPSHOT, chapter.parameters.rounds) if arm == AS_BEFORE else chapter.parameters.rounds
    every = published.cell("hot_setup", "autovacuum_scale_factor", "value")
    tenths = range(1, round(10 * longest) + 1)  # the print's half and fifth of an update are whole tenths
    seen, due = round(10 * printed_updates()), round(10 * every)
    looks = [Look(n / 10, n % seen == 0, n % due == 0 and arm in LOADED_AS) for n in tenths]
    return [look for look in looks if look.seen or look.vacuum]


@dataclass
class Pages:
    """Pages of a table as byte accounts: what fits, what a dead version leaves behind until vacuum comes.

    `width` is a tuple's length, `fillfactor` how full pages are loaded. A page holds its current tuples (`live`),
    dead versions that nobody may prune (`kept`), line pointers of dead versions that were pruned (`dead`: index
    entries may still point to them), and a line pointer for each tuple.
    """

    tuples: int
    width: int
    fillfactor: int

    def __post_init__(self):
        self.aligned = -(-self.width // 8) * 8
        self.reserve = PAGE * (100 - self.fillfactor) // 100
        full = (PAGE - PAGE_HEADER - self.reserve) // (self.aligned + LINE_POINTER)
        self.home = [number // full for number in range(self.tuples)]  # the page of each tuple
        self.live = np.bincount(self.home).tolist()
        self.kept, self.dead = [0] * len(self.live), [0] * len(self.live)
        self.last = len(self.live) - 1  # where the last version without room on its own page went
        self.spare: list[int] = []  # pages on which vacuum found room

    def room(self, page: int, reserve: int = 0) -> bool:
        """Whether one more version fits beside what is there and a reserve of bytes."""
        tuples = self.live[page] + self.kept[page] + 1
        pointers = tuples + self.dead[page]
        return pointers <= MOST_POINTERS and tuples * self.aligned + pointers * LINE_POINTER + reserve <= PAGE - PAGE_HEADER

    def update(self, number: int, pruning: bool) -> None:
        """Replace a tuple by a version with index entries of its own: on its page if there is room, else elsewhere."""
        page = self.home[number]
        target = page if self.room(page) else self._elsewhere()
        self.home[number] = target
        self.live[target] += 1
        self.live[page] -= 1
        (self.dead if pruning else self.kept)[page] += 1

    def _elsewhere(self) -> int:
        """The page used last, one that vacuum found, or a new one; versions from elsewhere leave the fillfactor's room alone."""
        while not self.room(self.last, self.reserve):
            if not self.spare:
                for counts in (self.live, self.kept, self.dead):
                    counts.append(0)
            self.last = self.spare.pop() if self.spare else len(self.live) - 1
        return self.last

    def vacuum(self) -> None:
        """Give back what dead versions left."""
        self.kept, self.dead = [0] * len(self.live), [0] * len(self.live)
        self.spare = [page for page in range(len(self.live)) if self.room(page, self.reserve)]


ENTRY, FULL_LEAF = 20, 8152  # bytes: of an entry with its line pointer, and of a leaf without its header
LEAF_FILLFACTOR = 0.9


@dataclass
class Leaves:
    """Leaves of the primary key's index as byte accounts: entries of versions of each tuple, which nobody may remove or somebody may.

    A leaf holds the tuples of a range of keys, and a high key. Before it splits, entries of dead versions are
    removed if they may be; else those of the same key are put together (PostgreSQL 14 does the one, 13 the other).
    """

    tuples: int

    def __post_init__(self):
        loaded = int(LEAF_FILLFACTOR * FULL_LEAF) // ENTRY
        self.first = list(range(0, self.tuples, loaded))  # the lowest key of each leaf
        self.entries = [1] * self.tuples
        self.used = [ENTRY * (1 + min(loaded, self.tuples - low)) for low in self.first]

    @property
    def pages(self) -> int:
        """All pages of the index: leaves, the levels above them, the meta page."""
        pages, level = 1 + len(self.first), len(self.first)
        while level > 1:
            level = -(-level // PAGES_PER_PARENT)
            pages += level
        return pages

    def update(self, number: int, pruning: bool) -> None:
        """Add an entry for a new version of a tuple."""
        leaf = self._leaf(number)
        if self.used[leaf] + ENTRY > FULL_LEAF:
            self._make_room(leaf, pruning)
            leaf = self._leaf(number)
        self.entries[number] += 1
        self.used[leaf] += ENTRY

    def _leaf(self, number: int) -> int:
        return bisect_right(self.first, number) - 1

    def _make_room(self, leaf: int, pruning: bool) -> None:
        low, high = (*self.first, self.tuples)[leaf : leaf + 2]
        if pruning:
            self.entries[low:high] = [1] * (high - low)
        sizes = np.cumsum([self._size(count) for count in self.entries[low:high]])
        self.used[leaf] = ENTRY + int(sizes[-1])
        if self.used[leaf] + ENTRY > FULL_LEAF and high - low > 1:
            last = leaf == len(self.first) - 1  # only the last is expected to grow at its end
            cut = min(int(np.searchsorted(sizes, sizes[-1] * (LEAF_FILLFACTOR if last else 0.5))) + 1, high - low - 1)
            self.first.insert(leaf + 1, low + cut)
            self.used[leaf : leaf + 1] = [ENTRY + int(sizes[cut - 1]), ENTRY + int(sizes[-1] - sizes[cut - 1])]

    @staticmethod
    def _size(count: int) -> int:
        """Bytes of so many entries of one key, put together: a key, six bytes for each, aligned, and a line pointer."""
        return ENTRY if count == 1 else -(-(16 + 6 * count) // 8) * 8 + LINE_POINTER

    def vacuum(self) -> None:
        """Remove the entries of dead versions; leaves aren't put together again."""
        self.entries = [1] * self.tuples
        self.used = [ENTRY * (1 + high - low) for low, high in zip(self.first, [*self.first[1:], self.tuples])]


def theory(chapter: Chapter, width: int = 121) -> pd.DataFrame:
    """The same sizes from the layout of pages alone: columns arm, updates, accounts, accounts_pkey (pages).

    `width` is that of pgbench's account. With HOT a dead version leaves nothing behind, so nothing is computed.
    """
    here, rows = bank(chapter), []
    fillfactor = int(published.cell("hot_setup", "fillfactor", "value"))
    for arm in STEADY:
        pages, leaves = Pages(here.tuples, width, fillfactor), Leaves(here.tuples)
        draws, pruning = np.random.default_rng(chapter.parameters.seed), LOADED_AS.get(arm, arm) != AS_BEFORE
        rows.append((arm, 0.0, len(pages.live), leaves.pages))
        done = 0.0
        for look in _looks(chapter, arm):
            updates = 0 if arm == HOT else here.updates(look.until) - here.updates(done)
            for number in draws.integers(here.tuples, size=updates).tolist():
                pages.update(number, pruning)
                leaves.update(number, pruning)
            done = look.until
            if look.seen:
                rows.append((arm, done, len(pages.live), leaves.pages))
            if look.vacuum:
                pages.vacuum()
                leaves.vacuum()
    return pd.DataFrame(rows, columns=["arm", "updates", *SIZED[:2]])


def agreement(measured: pd.DataFrame | None, computed: pd.DataFrame) -> pd.DataFrame | None:
    """The largest difference between measured and computed pages, for accounts and its index in each arm, as a share of the computed."""
    if measured is None:
        return None
    both = sizes(measured).merge(sizes(computed), on=["relation", "arm", "updates"], suffixes=("", "_computed"))
    off = (both["pages"] / both["pages_computed"] - 1).abs()
    frame = both.assign(off=off).groupby(["relation", "arm"], sort=False).agg(
        updates=("updates", "last"), initial_pages=("pages", "first"), pages=("pages", "last"), computed=("pages_computed", "last"),
        largest_difference=("off", "max"),
    )  # fmt: skip
    return frame.reset_index().assign(largest_difference=lambda f: f["largest_difference"].map("{:.1%}".format))


def sizes(found: pd.DataFrame) -> pd.DataFrame:
    """Of `steady` or `theory`, a row per relation: columns relation, arm, updates, pages."""
    return found.melt(["arm", "updates"], list(SIZED[:2]), var_name="relation", value_name="pages")


def grown_although_vacuumed(measured: pd.DataFrame | None) -> float | None:
    """Pages of accounts after the print's updates over those before, nothing being pruned and vacuum coming when it is due."""
    if measured is None:
        return None
    own = measured[measured["arm"] == BEFORE_VACUUMED].set_index("updates")["accounts"]
    return float(own[printed_updates()] / own[0.0])


# ---- where an index without HOT stops to help itself

DELETES_FROM = 6  # pages of a table on which one leaf's deletion looks for dead versions: BOTTOMUP_MAX_NBLOCKS of heapam.c
_PER_LEAF = """
    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY pages) FROM (
        SELECT count(DISTINCT (tid::text::point)[0]) AS pages
        FROM generate_series(1, pg_relation_size('accounts_pkey') / 8192 - 1) AS block,
             LATERAL bt_page_stats('accounts_pkey', block) AS leaf, LATERAL bt_page_items('accounts_pkey', block) AS item,
             LATERAL unnest(coalesce(item.tids, ARRAY[item.htid])) AS tid
        WHERE leaf.type = 'l' AND NOT (item.itemoffset = 1 AND leaf.btpo_next <> 0)  -- the high key leads nowhere
        GROUP BY block) AS leaves"""


def scattered(chapter: Chapter) -> pd.DataFrame:
    """Without HOT and without vacuum, where the entries of a leaf lead: a row per number of updates.

    Columns: updates (per account), accounts, accounts_pkey (pages), per_leaf (pages of accounts to which the entries of a
    leaf lead, the median leaf).
    """
    server, here, rows, done = chapter.server, bank(chapter), [], 0
    server.extension("pageinspect")
    here.load(server, NO_HOT)
    with server.connect() as connection:
        for updates in (0, 1, 2, 3, 4, 5, 6):
            churn(connection, here, here.updates(updates - done), seed=chapter.parameters.seed + updates)
            rows.append((done := updates, *blocks(connection, *SIZED[:2]), connection.execute(_PER_LEAF).fetchone()[0]))
    return pd.DataFrame(rows, columns=["updates", *SIZED[:2], "per_leaf"])


# ---- autovacuum


NAPTIMES = 2.5  # of a second each, the shortest: vacuum is to come more than once
LATER = 4.0  # updates per account: without vacuum dead line pointers have used up the room of most pages by then
AUTOVACUUM = {"off": None, "as in print": {}, "throttled": {"autovacuum_vacuum_cost_delay": 100, "autovacuum_vacuum_cost_limit": 1}}


def autovacuum(chapter: Chapter) -> pd.DataFrame:
    """Without HOT, with autovacuum off, as in print and throttled to a crawl: a row each.

    Three copies of accounts are updated in turn, by one session, as fast as it can but for no less than `NAPTIMES` of
    autovacuum's naps. Columns: autovacuum, before, after (pages; as many updates per account as in print), later
    (after `LATER` updates per account or the chapter's longest run), vacuums (by then).
    """
    here, step = bank(chapter), printed_updates()
    steps = round(min(LATER, chapter.parameters.rounds) / step)
    with chapter.server.reloaded(autovacuum="on", autovacuum_naptime=1), chapter.server.connect() as connection:
        here.load(connection, NO_HOT)
        tables = {name: _copy(connection, f"accounts_{number}", options) for number, (name, options) in enumerate(AUTOVACUUM.items())}
        looks, started = [blocks(connection, *tables.values())], time.monotonic()
        for number in range(1, steps + 1):
            for table in tables.values():
                churn(connection, here, here.updates(step), seed=chapter.parameters.seed + number, table=table)
            time.sleep(max(0.0, started + NAPTIMES * number / steps - time.monotonic()))
            looks.append(blocks(connection, *tables.values()))
        count = "SELECT pg_stat_get_autovacuum_count(%s::text::regclass)"
        vacuums = [connection.execute(count, [table]).fetchone()[0] for table in tables.values()]
    return pd.DataFrame({"autovacuum": list(tables), "before": looks[0], "after": looks[1], "later": looks[-1], "vacuums": vacuums})


def _copy(connection: psycopg.Connection, table: str, options: dict[str, int] | None) -> str:
    """Copy accounts with its indexes; `options` are those of autovacuum beside the print's, None switches it off for the table."""
    with_options = {"fillfactor": int(published.cell("hot_setup", "fillfactor", "value")), "autovacuum_enabled": "off"}
    if options is not None:
        scale = published.cell("hot_setup", "autovacuum_scale_factor", "value")
        with_options |= {"autovacuum_enabled": "on", "autovacuum_vacuum_scale_factor": scale, "autovacuum_vacuum_threshold": 0} | options
    words = ", ".join(f"{option} = {value}" for option, value in with_options.items())
    with connection.transaction():
        loading.replace(connection, table, f"CREATE TABLE {table} (LIKE accounts INCLUDING ALL) WITH ({words})")
        connection.execute(f"INSERT INTO {table} SELECT * FROM accounts ORDER BY aid")
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
    return table


_JOB = "repeat('x', 84)"
_BATCH = f"""DO $$ BEGIN FOR n IN {{first}}..{{last}} LOOP
    INSERT INTO jobs VALUES (n + {{jobs}}, 0, {_JOB}); COMMIT;
    UPDATE jobs SET state = 1 WHERE id = n; COMMIT; UPDATE jobs SET state = 2 WHERE id = n; COMMIT;
    DELETE FROM jobs WHERE id = n; COMMIT;
END LOOP; END $$"""


def queue(chapter: Chapter, jobs: int = 1000, batches: int = 40) -> pd.DataFrame:
    """A queue that is inserted into, updated twice per job, emptied and vacuumed: a row per arm (HOT, NO_HOT, BEFORE_VACUUMED).

    One batch is a tenth of the queue; as many jobs are deleted as come in. Vacuum runs after every second batch, which is
    when autovacuum would by the print's scale factor. Columns: arm, table_halfway, table_end, table_clustered (pages at
    half the batches, at the end, and after CLUSTER), and the same of its index.
    """
    fillfactor = int(published.cell("hot_setup", "fillfactor", "value"))
    batch, rows = jobs // 10, []
    for arm in (HOT, NO_HOT, BEFORE_VACUUMED):
        with chapter.server.connect() as connection, snapshot(chapter.server, arm == BEFORE_VACUUMED) as old:
            connection.execute("SET synchronous_commit = off")
            with connection.transaction():
                create = "CREATE TABLE jobs (id int PRIMARY KEY, state int NOT NULL, pad text)"
                loading.replace(connection, "jobs", f"{create} WITH (autovacuum_enabled = off, fillfactor = {fillfactor})")
                if arm != HOT:
                    connection.execute("CREATE INDEX ON jobs (state) WHERE state IS NULL")
                connection.execute(f"INSERT INTO jobs SELECT n, 0, {_JOB} FROM generate_series(1, {jobs}) AS n")
            looks = []
            for number in range(batches):
                first = number * batch + 1
                connection.execute(_BATCH.format(first=first, last=first + batch - 1, jobs=jobs))
                if number % 2:
                    vacuum(connection, "jobs", old)
                looks.append(blocks(connection, "jobs", "jobs_pkey"))
            if old:
                old.rollback()
            connection.execute("CLUSTER jobs USING jobs_pkey")
            halfway, end, clustered = looks[batches // 2 - 1], looks[-1], blocks(connection, "jobs", "jobs_pkey")
            rows.append((arm, halfway[0], end[0], clustered[0], halfway[1], end[1], clustered[1]))
    looked = ("halfway", "end", "clustered")
    return pd.DataFrame(rows, columns=["arm", *(f"table_{at}" for at in looked), *(f"index_{at}" for at in looked)])


def queue_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a vacuumed queue needs no CLUSTER with HOT, and would need it without."""
    if found is None:
        return None
    row, before = (found.set_index("arm").loc[arm] for arm in (HOT, BEFORE_VACUUMED))
    return {
        "with HOT the table and its index stop growing": bool(row["table_end"] <= row["table_halfway"] and row["index_end"] <= row["index_halfway"]),
        "with HOT CLUSTER wouldn't halve the table": bool(2 * row["table_clustered"] > row["table_end"]),
        "with neither HOT nor pruning it would": bool(2 * before["table_clustered"] <= before["table_end"]),
    }
