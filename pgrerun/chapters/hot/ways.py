"""What lets an update be heap-only and what doesn't: columns and indexes, room on the page, width of tuples.

Everything here is counted in one session with a throwaway relation for each case, so every run
finds the same numbers. The counters are PostgreSQL's own; `reconciled` holds them against the pages.
"""

from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.bank import HOT, PAGE, Bank, bank, counted, require_newpage, snapshot
from pgrerun.relations import loading

ROWS = 100  # of the relation of each case; every row is updated once, in a transaction of its own
COLUMNS = "id int, v int, pad text STORAGE EXTERNAL"
_VALUES = f"SELECT n, n, repeat('x', 84) FROM generate_series(1, {ROWS}) AS n"
_TOASTED = f"SELECT n, n, repeat('x', 3000) FROM generate_series(1, {ROWS}) AS n"
_NEXT = "UPDATE way SET v = v + 1 WHERE id = %s"

HEAP_ONLY, SAME_PAGE, OTHER_PAGE, OTHER_PARTITION = (
    "heap-only (HOT)", "new index entries, same page", "new index entries, another page", "deleted and inserted again",
)  # fmt: skip


@dataclass(frozen=True)
class Way:
    """One kind of update: what is indexed beside the primary key, how full pages are, which statement."""

    name: str
    index: str = ""
    update: str = _NEXT
    values: str = _VALUES
    fillfactor: int = 50  # room for a second version of every tuple
    old_snapshot: bool = False
    partitioned: bool = False


PLAIN, BTREE, BRIN_INDEX = "a column without index", "a column in a B-tree", "a column in a BRIN index"
GROWS, OUTGROWS, FULL_PAGE = "a tuple that grows a little", "a tuple that outgrows its page", "a full page, an old snapshot open"
NEW_TOAST, MOVED = "a value in TOAST is replaced", "the partition key, to another partition"
WAYS = (
    Way(PLAIN),
    Way(BRIN_INDEX, "CREATE INDEX ON way USING brin (v)"),
    Way("a column in a BRIN index of Bloom filters", "CREATE INDEX ON way USING brin (v int4_bloom_ops)"),
    Way("a column in a B-tree, to the value it has", "CREATE INDEX ON way (v)", "UPDATE way SET v = v WHERE id = %s"),
    Way(BTREE, "CREATE INDEX ON way (v)"),
    Way("a column in a hash index", "CREATE INDEX ON way USING hash (v)"),
    Way("a column in an index's INCLUDE", "CREATE INDEX ON way (id) INCLUDE (v)"),
    Way("a column in an index's WHERE", "CREATE INDEX ON way (id) WHERE v > 0"),
    Way("an index expression whose value stays", "CREATE INDEX ON way ((v > 0))"),
    Way(GROWS, update="UPDATE way SET pad = pad || 'xxxxxxxx' WHERE id = %s"),
    Way(OUTGROWS, update="UPDATE way SET pad = repeat('x', 1500) WHERE id = %s", fillfactor=100),
    Way(FULL_PAGE, fillfactor=100, old_snapshot=True),
    Way("beside a value in TOAST", values=_TOASTED),
    Way(NEW_TOAST, update="UPDATE way SET pad = repeat('y', 3000) WHERE id = %s", values=_TOASTED),
    Way(MOVED, update=f"UPDATE way SET v = v + {ROWS} WHERE id = %s", partitioned=True),
)


def ways(chapter: Chapter) -> pd.DataFrame:
    """Where the new versions of `ROWS` updates went, and what they cost: a row per kind of update.

    Columns: way; heap_only, same_page, other_page, other_partition (counts); wal_bytes per update.
    """
    rows = []
    for way in WAYS:
        with chapter.server.connect() as connection, snapshot(chapter.server, way.old_snapshot):
            require_newpage(connection)
            rows.append({"way": way.name} | _one_way(connection, way))
    return pd.DataFrame(rows)


def _one_way(connection: psycopg.Connection, way: Way) -> dict[str, float]:
    parts = ("way_low", "way_high") if way.partitioned else ("way",)
    with connection.transaction():
        _create(connection, way)
        connection.execute(f"INSERT INTO way {way.values}")
        if way.index:
            connection.execute(way.index)
    connection.execute("VACUUM (FREEZE, ANALYZE) way")
    position = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
    start = connection.execute(position).fetchone()[0]
    for row in range(1, ROWS + 1):
        connection.execute(way.update, [row])
    log = int(connection.execute(position).fetchone()[0] - start)
    found = pd.DataFrame([counted(connection, part) for part in parts]).sum()
    there = {"heap_only": found["hot"], "same_page": found["updates"] - found["hot"] - found["newpage"], "other_page": found["newpage"]}
    return {name: int(count) for name, count in there.items()} | {"other_partition": ROWS - int(found["updates"]), "wal_bytes": log / ROWS}


def _create(connection: psycopg.Connection, way: Way) -> None:
    options = f"WITH (autovacuum_enabled = off, fillfactor = {way.fillfactor})"
    if not way.partitioned:
        loading.replace(connection, "way", f"CREATE TABLE way ({COLUMNS}, PRIMARY KEY (id)) {options}")
        return
    loading.replace(connection, "way", f"CREATE TABLE way ({COLUMNS}, PRIMARY KEY (id, v)) PARTITION BY RANGE (v)")
    for part, bounds in (("way_low", f"(0) TO ({ROWS + 1})"), ("way_high", f"({ROWS + 1}) TO ({2 * ROWS + 1})")):
        connection.execute(f"CREATE TABLE {part} PARTITION OF way FOR VALUES FROM {bounds} {options}")


def shares(found: pd.DataFrame | None) -> pd.DataFrame | None:
    """The counts alone, which are the same in every run."""
    return None if found is None else found.drop(columns="wal_bytes").rename(columns={"way": "what is updated"})


def of(found: pd.DataFrame, way: str) -> pd.Series:
    """The row of one kind of update."""
    return found.set_index("way").loc[way]


def overhead_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """If indexed columns change: HOT unused, and more work per update."""
    if found is None:
        return None
    plain, btree = of(found, PLAIN), of(found, BTREE)
    return {
        "no update of an indexed column is HOT": btree["heap_only"] == 0,
        "it writes more log than a HOT update": bool(btree["wal_bytes"] > plain["wal_bytes"]),
    }


UNSEEN = "what its code costs there can't be measured without a server that lacks it, as for the next claim"


def index_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether an index on the updated column leaves nothing of HOT."""
    if found is None:
        return None
    btree = of(found, BTREE)
    return {
        "with a B-tree on the updated column no update is HOT": btree["heap_only"] == 0,
        "each new version has index entries of its own, as without the patch": btree["same_page"] + btree["other_page"] == ROWS,
    }


def worst_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the index on the updated column is the worst case for HOT among those tried here, whatever its kind."""
    if found is None:
        return None
    others = found[found["way"] != BTREE]
    return {
        "with a B-tree no update is HOT": of(found, BTREE)["heap_only"] == 0,
        "with a BRIN index neither": of(found, BRIN_INDEX)["heap_only"] == 0,
        "nothing else tried here leaves so few": bool((others["heap_only"] > 0).all()),
    }


# ---- room: the fillfactor, and tuples that change their width

FILLFACTORS = (100, 98, 95, 90, 80, 50)


def fillfactors(chapter: Chapter) -> pd.DataFrame:
    """Share of HOT updates when every account is updated once, by fillfactor: a row each.

    Columns: fillfactor; tuples (on a full page), room (for so many further versions on it); one_by_one
    (share of HOT updates, each in a transaction of its own, in random order); at_once (all in one
    statement), at_once_expected (room over tuples).
    """
    here = Bank(1, bank(chapter).tuples)
    rows = []
    with chapter.server.connect() as connection:
        connection.execute("SET synchronous_commit = off")
        for fillfactor in FILLFACTORS:
            here.load(connection, HOT, fillfactor)
            tuples, room = _layout(connection)
            connection.execute(_shuffled("UPDATE accounts SET abalance = abalance + 1 WHERE aid = key", here.tuples))
            one_by_one = _hot_share(connection, "accounts")
            here.load(connection, HOT, fillfactor)
            connection.execute("UPDATE accounts SET abalance = abalance + 1")
            rows.append((fillfactor, tuples, room, one_by_one, _hot_share(connection, "accounts"), min(1.0, room / tuples)))
    return pd.DataFrame(rows, columns=["fillfactor", "tuples", "room", "one_by_one", "at_once", "at_once_expected"])


def _shuffled(statement: str, keys: int, times: int = 0) -> str:
    """A block that runs a statement for `times` keys (default: once for each), drawn in an order without a pattern, committing each time."""
    step = next(prime for prime in (7_919, 104_729, 1_299_709) if keys % prime)
    return (
        f"DO $$ DECLARE key int; BEGIN FOR n IN 1..{times or keys} LOOP"
        f" key := ((n::bigint * {step}) % {keys})::int + 1; {statement}; COMMIT; END LOOP; END $$"
    )


def _layout(connection: psycopg.Connection) -> tuple[int, int]:
    """Tuples on the first page of accounts, and how many more would fit; from sizes, not by looking."""
    tuples = connection.execute("SELECT count(*) FROM accounts WHERE ctid < '(1,0)'").fetchone()[0]
    width = connection.execute("SELECT pg_column_size(a.*) FROM accounts a LIMIT 1").fetchone()[0]
    each = -(-width // 8) * 8 + 4  # and its line pointer
    return tuples, (PAGE - 24) // each - tuples


def _hot_share(connection: psycopg.Connection, relation: str) -> float:
    found = counted(connection, relation)
    return found["hot"] / found["updates"]


def room_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the print's fillfactor gives first updates room on their page, and whether without it they have none."""
    if found is None:
        return None
    share = found.set_index("fillfactor")["one_by_one"]
    printed = int(published.cell("hot_setup", "fillfactor", "value"))
    return {
        f"at a fillfactor of {printed} every first update is HOT": bool(share[printed] == 1),
        "on pages filled to the brim most are not": bool(share[100] < 0.5),
    }


WIDTHS = {"as wide as before": "110", "a little wider or narrower": "100 + (n % 21)", "anything from narrow to twice as wide": "20 + (n * 37) % 201"}


def widths(chapter: Chapter, rows: int = 1000, rounds: int = 3) -> pd.DataFrame:
    """Share of HOT updates while tuples keep their width or don't, and the pages of the relation afterwards.

    Every row is updated three times, at the print's fillfactor. Columns: new_width, hot (share of the
    updates), newpage (share), pages_before, pages_after.
    """
    fillfactor = int(published.cell("hot_setup", "fillfactor", "value"))
    found = []
    with chapter.server.connect() as connection:
        require_newpage(connection)
        connection.execute("SET synchronous_commit = off")
        for name, width in WIDTHS.items():
            with connection.transaction():
                create = "CREATE TABLE wide (id int PRIMARY KEY, v int, pad text)"
                loading.replace(connection, "wide", f"{create} WITH (autovacuum_enabled = off, fillfactor = {fillfactor})")
                connection.execute(f"INSERT INTO wide SELECT n, 0, repeat('x', {width}) FROM generate_series(1, {rows}) AS n")
            connection.execute("VACUUM (FREEZE, ANALYZE) wide")
            pages = f"SELECT pg_relation_size('wide') / {PAGE}"
            before = connection.execute(pages).fetchone()[0]
            update = f"UPDATE wide SET v = v + 1, pad = repeat('x', {width.replace('n ', '(n + key) ')}) WHERE id = key"
            connection.execute(_shuffled(update, rows, rounds * rows))
            done = counted(connection, "wide")
            after = connection.execute(pages).fetchone()[0]
            found.append((name, done["hot"] / done["updates"], done["newpage"] / done["updates"], before, after))
    return pd.DataFrame(found, columns=["new_width", "hot", "newpage", "pages_before", "pages_after"])


def width_facts(found: pd.DataFrame | None, hole_left: int | None) -> dict[str, bool] | None:
    """Whether changing widths cost HOT updates, and whether they leave holes that stay."""
    if found is None or hole_left is None:
        return None
    same, *_, wild = found["hot"]
    return {"with changing widths fewer updates are HOT": bool(wild < same), "holes between the tuples stay": hole_left > 0}


# ---- do the counters tell the truth?


def reconciled(chapter: Chapter, updates: int = 400) -> pd.DataFrame:
    """Counters of updates beside what lies on the pages: finding, counted, on the pages.

    Another session's old snapshot keeps every version where it is, so that all can be found.
    """
    server, here = chapter.server, Bank(1, 300)
    server.extension("pageinspect")
    here.load(server)
    with server.connect() as connection, snapshot(server):
        require_newpage(connection)
        connection.execute(_shuffled("UPDATE accounts SET abalance = abalance + 1 WHERE aid = key", here.tuples, updates))
        done = counted(connection, "accounts")
        query = """
            SELECT count(*) FILTER (WHERE lp_flags = 1) - %s AS versions,
                   count(*) FILTER (WHERE t_infomask2 & 32768 <> 0) AS heap_only,
                   count(*) FILTER (WHERE t_xmax <> '0' AND split_part(trim('(' FROM t_ctid::text), ',', 1)::int <> block) AS moved
            FROM generate_series(0, pg_relation_size('accounts') / 8192 - 1) AS block,
                 LATERAL heap_page_items(get_raw_page('accounts', block::int))"""
        versions, heap_only, moved = connection.execute(query, [here.tuples]).fetchone()
    rows = [
        ("updates; versions beside the first", done["updates"], versions),
        ("HOT updates (n_tup_hot_upd); heap-only tuples", done["hot"], heap_only),
        ("updates to another page (n_tup_newpage_upd); chains that leave their page", done["newpage"], moved),
    ]
    return pd.DataFrame(rows, columns=["what", "counted", "on the pages"])
