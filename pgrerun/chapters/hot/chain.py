"""One page, line pointer by line pointer, while its tuples are updated, read and vacuumed.

The relation has so few and so wide tuples that a page can be drawn: four rows, and room for
three more versions. Everything happens in one session without autovacuum, so every run sees
the same pages.
"""

from contextlib import contextmanager
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.bank import PAGE
from pgrerun.instruments import pages
from pgrerun.relations import loading

ROWS = "ABCD"
WIDTH = 1080  # characters that pad a tuple: seven tuples fill a page
NEARLY_FULL = 0.10  # of a page: with less free, a visit prunes (heap_page_prune_opt), or with less than the fillfactor leaves

# What happens between one picture of the page and the next.
STORY = (
    ("loaded", None),
    ("UPDATE A", "UPDATE page SET v = v + 1 WHERE id = 1"),
    ("UPDATE A", "UPDATE page SET v = v + 1 WHERE id = 1"),
    ("UPDATE B", "UPDATE page SET v = v + 1 WHERE id = 2"),
    ("SELECT D", "SELECT * FROM page WHERE id = 4"),
    ("UPDATE A", "UPDATE page SET v = v + 1 WHERE id = 1"),
    ("UPDATE C (indexed)", "UPDATE page SET v = v + 1, w = w + 1 WHERE id = 3"),
    ("UPDATE B", "UPDATE page SET v = v + 1 WHERE id = 2"),
    ("SELECT D", "SELECT * FROM page WHERE id = 4"),
    ("VACUUM", "VACUUM page"),
)


@contextmanager
def one_page(chapter: Chapter, fillfactor: int = 100):
    """The relation `page` in its first state, and a connection that has it to itself."""
    server = chapter.server
    server.extension("pageinspect")
    with server.connect() as connection:
        load(connection, fillfactor)
        yield connection


def load(connection: psycopg.Connection, fillfactor: int = 100) -> None:
    """Four rows on one page: id (primary key), v (not indexed), w (indexed), and padding."""
    with connection.transaction():
        create = "CREATE TABLE page (id int PRIMARY KEY, v int, w int, pad text)"
        loading.replace(connection, "page", f"{create} WITH (autovacuum_enabled = off, fillfactor = {fillfactor})")
        connection.execute("ALTER TABLE page ALTER pad SET STORAGE PLAIN")
        connection.execute("CREATE INDEX page_w ON page (w)")
        connection.execute(f"INSERT INTO page SELECT n, 1, 0, repeat('x', {WIDTH}) FROM generate_series(1, {len(ROWS)}) AS n")
    connection.execute("VACUUM (FREEZE, ANALYZE) page")
    connection.execute("SET enable_seqscan = off")


def look(connection: psycopg.Connection, block: int = 0) -> pd.DataFrame:
    """The line pointers of a page of `page`: a row each.

    Columns: line_pointer, state, tuple ("A v2"), to (line pointer of a redirect's target or of the next
    version on this page), heap_only, old (a later version was committed), entries (of the primary key's
    index that point here).
    """
    page = linked(connection, "page", block)
    data = connection.execute(
        "SELECT t_data FROM heap_page_items(get_raw_page('page', %s)) ORDER BY lp", [block]
    ).fetchall()
    page["tuple"] = [_named(value) for (value,) in data]
    entries = pd.Series(_entries(connection, block), dtype=int).value_counts()
    page["entries"] = page["line_pointer"].map(entries).fillna(0).astype(int)
    return page[["line_pointer", "state", "tuple", "to", "heap_only", "old", "entries"]]


def linked(connection: psycopg.Connection, relation: str, block: int) -> pd.DataFrame:
    """`pages.heap_page` with what links its line pointers: to, heap_only and old (see `look`)."""
    page = pages.heap_page(connection, relation, block)
    places = page["ctid"].str.extract(r"\((\d+),(\d+)\)").astype("Int64")
    elsewhere = (places[0] != block).fillna(False).astype(bool)
    onward = ~elsewhere & (places[1] != page["line_pointer"]).fillna(False).astype(bool)
    page["to"] = page["points_to"].fillna(places[1].where(onward))
    page["heap_only"] = page["flags"].map(lambda flags: "HEAP_ONLY_TUPLE" in flags)
    page["old"] = page["xmax"].fillna(0).gt(0) & (page["to"].notna() | elsewhere)
    return page


def _named(data: bytes | None) -> str:
    """"A v2" of a tuple of `page`; its two integers are below 256, so any byte order will do."""
    if data is None:
        return ""
    row, version = (sum(data[start : start + 4]) for start in (0, 4))
    return f"{ROWS[row - 1]} v{version}"


def _entries(connection: psycopg.Connection, block: int) -> list[int]:
    """Line pointers of a heap page that entries of the primary key's only leaf point to."""
    items = connection.execute("SELECT coalesce(tids, ARRAY[htid])::text[] FROM bt_page_items('page_pkey', 1)").fetchall()
    places = [place.strip("()").split(",") for (tids,) in items for place in tids if place]
    return [int(pointer) for at, pointer in places if int(at) == block]


def story(chapter: Chapter) -> pd.DataFrame:
    """The page after every step of `STORY`: the columns of `look`, and page (number and name of the step)."""
    with one_page(chapter) as connection:
        return _told(connection, STORY)


def _told(connection: psycopg.Connection, steps) -> pd.DataFrame:
    pictures = []
    for number, (title, statement) in enumerate(steps, start=1):
        if statement:
            connection.execute(statement)
        pictures.append(look(connection).assign(page=f"{number} {title}"))
    return pd.concat(pictures, ignore_index=True)


def summary(told: pd.DataFrame | None) -> pd.DataFrame | None:
    """One row per step: how many line pointers of each state, heap-only tuples, the longest chain."""
    if told is None:
        return None
    rows = []
    for title, page in told.groupby("page", sort=False):
        states = page["state"].value_counts()
        counts = {state: int(states.get(state, 0)) for state in ("normal", "redirect", "dead", "unused")}
        more = {"heap_only": int(page["heap_only"].sum()), "index_entries": int(page["entries"].sum())}
        rows.append({"step": title} | counts | more | {"longest_chain": longest_chain(page)})
    return pd.DataFrame(rows)


def longest_chain(page: pd.DataFrame) -> int:
    """Versions of one tuple that can be reached from one line pointer of the page, itself included if it is one."""
    onward = page.dropna(subset="to").set_index("line_pointer")["to"].to_dict()
    normal = set(page.loc[page["state"] == "normal", "line_pointer"])

    def length(pointer: int) -> int:
        seen = []
        while pointer is not None and pointer not in seen:
            seen.append(pointer)
            pointer = onward.get(pointer)
        return sum(one in normal for one in seen)

    return max((length(pointer) for pointer in page["line_pointer"]), default=0)


# ---- pruning: when, under which lock, and what it leaves

NARROW = 40  # tuples of pgbench's width on a page that is two thirds full


def pruned_when(chapter: Chapter, updates: int = 60) -> pd.DataFrame:
    """One row of a page with room to spare is updated until updates have pruned twice.

    A row per update: update (from 1), free (bytes of the page before it), needed (bytes of the new version
    and its line pointer), pruned (whether the update pruned first).
    """
    server = chapter.server
    server.extension("pageinspect")
    rows = []
    with server.connect() as connection:
        with connection.transaction():
            loading.replace(connection, "narrow", "CREATE TABLE narrow (id int PRIMARY KEY, v int, pad text) WITH (autovacuum_enabled = off)")
            connection.execute(f"INSERT INTO narrow SELECT n, 0, repeat('x', 84) FROM generate_series(1, {NARROW}) AS n")
        connection.execute("VACUUM (FREEZE, ANALYZE) narrow")
        connection.execute("SET enable_seqscan = off")
        needed = -(-pages.heap_page(connection, "narrow", 0)["length"].iloc[0] // 8) * 8 + 4
        for number in range(1, updates + 1):
            free, before = _free(connection, "narrow"), _versions(connection)
            connection.execute("UPDATE narrow SET v = v + 1 WHERE id = 1")
            rows.append((number, free, needed, _versions(connection) <= before))
    return pd.DataFrame(rows, columns=["update", "free", "needed", "pruned"])


def _free(connection: psycopg.Connection, relation: str) -> int:
    header = "SELECT upper - lower FROM page_header(get_raw_page(%s, 0))"
    return connection.execute(header, [relation]).fetchone()[0]


def _versions(connection: psycopg.Connection) -> int:
    normal = "SELECT count(*) FROM heap_page_items(get_raw_page('narrow', 0)) WHERE lp_flags = 1"
    return connection.execute(normal).fetchone()[0]


def seen_of_pruning(when: pd.DataFrame | None) -> pd.DataFrame | None:
    """The same in five numbers, for the page."""
    if when is None:
        return None
    first = when[when["pruned"]].iloc[0]
    rows = {
        "updates of one row before the first that pruned": int(first["update"]) - 1,
        "free bytes at the last update that pruned nothing": int(when["free"][when["update"] == first["update"] - 1].iloc[0]),
        "free bytes at the first update that pruned": int(first["free"]),
        "a tenth of a page, in bytes": int(NEARLY_FULL * PAGE),
        "bytes that a new version needs": int(first["needed"]),
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())})


def when_facts(when: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether updates leave dead versions alone while there is room, and until nothing fits any more."""
    if when is None:
        return None
    pruned = when[when["pruned"]]
    roomy = when["free"] >= NEARLY_FULL * PAGE
    return {
        "an update of a page with room to spare prunes nothing": not when["pruned"][roomy].any(),
        "it prunes only when the new version doesn't fit": bool((pruned["free"] < pruned["needed"]).all()),
    }


def all_chains_facts(told: pd.DataFrame | None) -> dict[str, bool] | None:
    """Of the first SELECT of the story, which reads another row: whether every chain was shortened by it."""
    if told is None:
        return None
    titles = list(dict.fromkeys(told["page"]))
    at = next(number for number, title in enumerate(titles) if "SELECT" in title)
    before, after = (told[told["page"] == titles[number]].set_index("line_pointer") for number in (at - 1, at))
    roots = before.index[before["old"] & ~before["heap_only"]]
    inside = before.index[before["old"] & before["heap_only"]]
    return {
        "the first line pointer of every chain became a redirect": bool((after.loc[roots, "state"] == "redirect").all() and len(roots) > 1),
        "the dead versions inside the chains are gone": bool((after.loc[inside, "state"] == "unused").all()),
    }


@dataclass(frozen=True)
class Repair:
    """What a SELECT did to a page with dead versions of different sizes between its tuples.

    `hole`: bytes between the current versions before the SELECT, `hole_left` after it; `locks`: the lock
    modes it held on the table; `pinned`: whether it pruned while another session had the page pinned;
    `waited`: whether it then had to wait (it would have been cancelled after two seconds).
    """

    hole: int
    hole_left: int
    locks: tuple[str, ...]
    pinned: bool
    waited: bool


def repaired(chapter: Chapter) -> Repair:
    """Fill a page with versions of different sizes, then SELECT: beside another session's pin, and alone."""
    server = chapter.server
    with one_page(chapter) as connection, server.connect(autocommit=False) as other:

        def update(row: int, width: int) -> None:
            connection.execute(f"UPDATE page SET v = v + 1, pad = repeat('x', {width}) WHERE id = %s", [row])

        update(1, WIDTH - 100)
        update(2, WIDTH)
        # From here on the page is pinned, by a reader to whom the versions replaced so far are dead.
        other.execute("DECLARE holding CURSOR FOR SELECT * FROM page")
        other.execute("FETCH holding")
        update(1, WIDTH - 200)
        hole = _hole(connection)
        waited = _waited(connection, "SELECT * FROM page WHERE id = 4")
        pinned = _hole(connection) < hole
        other.rollback()
        connection.execute("SELECT pg_current_xact_id()")  # a backend looks again who may still see what when there is a new xid
        with connection.transaction():
            connection.execute("SELECT * FROM page WHERE id = 4")
            query = "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'page'::regclass"
            locks = tuple(sorted(mode for (mode,) in connection.execute(query)))
        return Repair(hole, _hole(connection), locks, pinned, waited)


def _waited(connection: psycopg.Connection, statement: str) -> bool:
    connection.execute("SET statement_timeout = '2s'")
    try:
        connection.execute(statement)
        return False
    except psycopg.errors.QueryCanceled:
        return True
    finally:
        connection.execute("RESET statement_timeout")


def _hole(connection: psycopg.Connection) -> int:
    """Bytes from the first tuple to the end of the page that no current version fills."""
    page = pages.heap_page(connection, "page", 0)
    current = page[(page["state"] == "normal") & ~page["xmax"].fillna(0).gt(0)]
    upper = connection.execute("SELECT upper FROM page_header(get_raw_page('page', 0))").fetchone()[0]
    return PAGE - upper - int((-(-current["length"] // 8) * 8).sum())


def seen_of_repair(found: Repair | None) -> pd.DataFrame | None:
    """The same, a row per finding."""
    if found is None:
        return None
    rows = {
        "bytes that dead versions fill between the tuples": found.hole,
        "did a SELECT prune while another session had the page pinned?": found.pinned,
        "did it wait for that session?": found.waited,
        "bytes left between the tuples after a SELECT that had the page alone": found.hole_left,
        "its locks on the table": ", ".join(found.locks),
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())}, dtype=object)


def repair_facts(found: Repair | None) -> dict[str, bool] | None:
    """Whether row-level fragmentation goes without a lock that keeps anybody out."""
    if found is None:
        return None
    return {
        "a SELECT leaves no holes": found.hole > 0 and found.hole_left == 0,
        "all it holds on the table is what any SELECT holds": found.locks == ("AccessShareLock",),
    }
