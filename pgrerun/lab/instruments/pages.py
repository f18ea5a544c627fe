"""Pages: which ones are in the buffer pool, which ones a statement touches, what is on them.

Looking at a page brings it into the pool. So the pool's contents are fetched
first, by a statement that was planned beforehand (it calls one function and
reads no relation), and only then are pages opened to say what they are.

Needs the contrib extensions pg_buffercache, pageinspect and pg_freespacemap,
which `server.extension` provides; how often pages were read is `counters.py`.
"""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import psycopg
from psycopg.rows import DictRow, dict_row

from pgrerun.errors import CannotMeasure, RerunError, ServerError
from pgrerun.lab.server import Server, releases, row
from pgrerun.lab.server.queries import Parameters

_POOL = """
    SELECT * FROM (
        SELECT reltablespace, reldatabase, relfilenode, relforknumber, relblocknumber AS block,
               isdirty AS dirty, count(*) OVER () AS buffers
        FROM pg_buffercache) AS pool
    WHERE relfilenode IS NOT NULL"""
_FORKS = {0: "main", 1: "fsm", 2: "vm", 3: "init"}
_LINE_POINTERS = {0: "unused", 1: "normal", 2: "redirect", 3: "dead"}
_LINE_POINTERS_BEFORE_HOT = {0: "unused", 1: "normal", 2: "dead", 3: "dead"}  # used and deleted
_BTREE_PAGES = {
    "r": "btree root",
    "i": "btree inner",
    "l": "btree leaf",
    "d": "btree deleted",
    "e": "btree deleted",
}
# The bits of a tuple's infomask and infomask2, src/include/access/htup_details.h, from the lowest
# on, and pairs of bits that mean something else than either. heap_tuple_infomask_flags says the
# same, from 13 on.
_INFOMASK = (
    *("HEAP_HASNULL", "HEAP_HASVARWIDTH", "HEAP_HASEXTERNAL", "HEAP_HASOID_OLD"),
    *("HEAP_XMAX_KEYSHR_LOCK", "HEAP_COMBOCID", "HEAP_XMAX_EXCL_LOCK", "HEAP_XMAX_LOCK_ONLY"),
    *("HEAP_XMIN_COMMITTED", "HEAP_XMIN_INVALID", "HEAP_XMAX_COMMITTED", "HEAP_XMAX_INVALID"),
    *("HEAP_XMAX_IS_MULTI", "HEAP_UPDATED", "HEAP_MOVED_OFF", "HEAP_MOVED_IN"),
)
_COMBINED = {
    "HEAP_XMAX_SHR_LOCK": ("HEAP_XMAX_KEYSHR_LOCK", "HEAP_XMAX_EXCL_LOCK"),
    "HEAP_XMIN_FROZEN": ("HEAP_XMIN_COMMITTED", "HEAP_XMIN_INVALID"),
    "HEAP_MOVED": ("HEAP_MOVED_OFF", "HEAP_MOVED_IN"),
}
_INFOMASK_2 = {13: "HEAP_KEYS_UPDATED", 14: "HEAP_HOT_UPDATED", 15: "HEAP_ONLY_TUPLE"}
_COLUMNS = ["relation", "fork", "block", "kind", "dirty"]


def evict_all(conn: psycopg.Connection) -> None:
    """Empty the buffer pool, dirty pages being written first.

    Pages in use stay. PostgreSQL 17 and superuser only (CannotMeasure).
    """
    releases.require(conn.info.server_version, "pg_buffercache_evict")
    functions = (
        "SELECT to_regproc('pg_buffercache_evict_all') IS NOT NULL,"
        " to_regproc('pg_buffercache_evict') IS NOT NULL"
    )
    all_at_once, one_by_one = row(conn, functions)
    if not (all_at_once or one_by_one):
        raise CannotMeasure(
            "contrib:pg_buffercache",
            "The buffer pool can't be emptied in place: pg_buffercache isn't installed in this"
            " database, or only as an older release had it.",
        )
    query = """
        SELECT count(*) FILTER (WHERE pg_buffercache_evict(bufferid)) FROM pg_buffercache
        WHERE relfilenode IS NOT NULL"""
    if all_at_once:
        query = "SELECT buffers_evicted FROM pg_buffercache_evict_all()"
    try:
        conn.execute(query)
    except psycopg.errors.InsufficientPrivilege as error:
        raise CannotMeasure("superuser", f"The buffer pool can't be emptied: {error}") from None


def touched(
    server: Server, work: Sequence[str] | Callable[[psycopg.Connection], object]
) -> pd.DataFrame:
    """The distinct pages that some work needs.

    Columns: relation (name, with its schema if it isn't on the search path), fork
    ("main", "fsm", "vm", "init"), block, kind ("heap", "toast", "btree root",
    "btree inner", "btree leaf", "btree meta", another index's "hash page" and so
    on, "catalog " before any of these, "vm", "fsm", "other database"), dirty.
    The root of a B-tree that is one page counts as its leaf.
    The pool is emptied, then the work (statements, each in a transaction of its
    own, or a function of the connection) runs on another connection; what is in
    the pool afterwards is what it touched, dirty if it changed it. The connection has
    done the same work once before, so that its caches of catalogs and plans are full.
    Raises ServerError if the pool is too small to hold them all.
    """
    run = work if callable(work) else lambda conn: [conn.execute(statement) for statement in work]
    releases.require(server.version, "pg_buffercache_evict")
    schemas = [server.extension("pg_buffercache"), server.extension("pageinspect")]
    with server.connect() as probe, server.connect() as worker:
        # on a borrowed server the extensions may lie anywhere
        path = (
            "SELECT set_config('search_path', concat_ws(', ', current_setting('search_path'),"
            " %s::text, %s::text), false)"
        )
        probe.execute(path, schemas)
        _pool(probe)
        worker.execute("SELECT 1")
        run(worker)
        evict_all(probe)
        before = {_identity(page) for page in _pool(probe)}
        run(worker)
        pages = _pool(probe)
        if pages and len(pages) == pages[0]["buffers"]:
            raise ServerError(
                f"All {len(pages)} pages of the buffer pool are in use after the work, so pages it "
                "touched may have left again. Use a server with larger shared_buffers for this."
            )
        pages = [page for page in pages if _identity(page) not in before]
        return _classified(probe, pages)


def heap_page(conn: psycopg.Connection, relation: str, block: int) -> pd.DataFrame:
    """The line pointers of one page of a table, one row each (needs pageinspect).

    Columns: line_pointer (from 1), state ("unused", "normal", "redirect", "dead"),
    offset and length (bytes), points_to (line pointer of a redirect), xmin, xmax,
    ctid ("(block,line pointer)" of the next version), and flags (names of the
    tuple's infomask bits such as "HEAP_HOT_UPDATED", a list). CannotMeasure before PostgreSQL 8.3.
    """
    releases.require(conn.info.server_version, "heap_page_items")
    hot = releases.offers(conn, "pg_stat_get_tuples_hot_updated")
    states = _LINE_POINTERS if hot else _LINE_POINTERS_BEFORE_HOT
    [kind] = _rows(
        conn, "SELECT relkind::text FROM pg_class WHERE oid = %s::text::regclass", [relation]
    )
    if kind["relkind"] not in ("r", "t", "m"):
        raise RerunError(f"{relation} isn't a table, so its pages have no heap tuples to show.")
    rows = _rows(
        conn,
        """
        SELECT lp AS line_pointer, lp_flags AS state, lp_off AS "offset", lp_len AS length,
               t_xmin::text::bigint AS xmin, t_xmax::text::bigint AS xmax, t_ctid::text AS ctid,
               t_infomask, t_infomask2
        FROM heap_page_items(get_raw_page(%s, %s))""",
        [relation, block],
    )
    for pointer in rows:
        pointer["state"] = states[pointer["state"]]
        pointer["points_to"] = pointer["offset"] if pointer["state"] == "redirect" else None
        masks = pointer.pop("t_infomask"), pointer.pop("t_infomask2")
        pointer["flags"] = _flags(*masks)
    numbers = dict.fromkeys(["xmin", "xmax", "points_to"], "Int64")  # integers that may be missing
    return pd.DataFrame(rows).astype(numbers) if rows else pd.DataFrame(rows)


def linked(connection: psycopg.Connection, relation: str, block: int) -> pd.DataFrame:
    """`heap_page` with what links its line pointers.

    Further columns: to (line pointer of a redirect's target or of the next version on this page),
    heap_only, old (a later version was committed).
    """
    page = heap_page(connection, relation, block)
    places = page["ctid"].str.extract(r"\((\d+),(\d+)\)").astype("Int64")
    elsewhere = (places[0] != block).fillna(False).astype(bool)
    onward = ~elsewhere & (places[1] != page["line_pointer"]).fillna(False).astype(bool)
    page["to"] = page["points_to"].fillna(places[1].where(onward))
    page["heap_only"] = page["flags"].map(lambda flags: "HEAP_ONLY_TUPLE" in flags)
    page["old"] = page["xmax"].fillna(0).gt(0) & (page["to"].notna() | elsewhere)
    return page


def longest_chain(page: pd.DataFrame) -> int:
    """Versions of one tuple that can be reached from one line pointer of the page, itself included.

    `page` has line_pointer, state and to as in `linked`.
    """
    onward = page.dropna(subset="to").set_index("line_pointer")["to"].to_dict()
    normal = set(page.loc[page["state"] == "normal", "line_pointer"])
    longest = 0
    for pointer in page["line_pointer"]:
        seen: list[int] = []
        while pointer is not None and pointer not in seen:
            seen.append(pointer)
            pointer = onward.get(pointer)
        longest = max(longest, len(normal.intersection(seen)))
    return longest


def _flags(infomask: int | None, infomask2: int | None) -> list[str]:
    """Names of the bits that are set, a pair's own in its first's place; none without a tuple."""
    bits = [*enumerate(_INFOMASK)] if infomask is not None else []
    low = [name for bit, name in bits if (infomask or 0) >> bit & 1]
    for both, (first, second) in _COMBINED.items():
        if {first, second} <= set(low):
            low[low.index(first)] = both
            low.remove(second)
    return low + [name for bit, name in _INFOMASK_2.items() if (infomask2 or 0) >> bit & 1]


def free_space(conn: psycopg.Connection, relation: str) -> pd.DataFrame:
    """Free bytes of each page of a table: block, recorded (by its free space map), actual.

    `actual` is the gap between line pointers and tuples as the page header gives it.
    Reads every page; needs pageinspect and pg_freespacemap (CannotMeasure before PostgreSQL 8.4).
    """
    releases.require(conn.info.server_version, "pg_freespace")
    rows = _rows(
        conn,
        """
        SELECT block, recorded, (header).upper - (header).lower AS actual
        FROM (SELECT f.blkno AS block, f.avail AS recorded,
                     page_header(get_raw_page(%(relation)s::text, f.blkno::int)) AS header
              FROM pg_freespace(%(relation)s::text::regclass) f OFFSET 0) AS pages
        ORDER BY block""",
        {"relation": relation},
    )
    return pd.DataFrame(rows, columns=["block", "recorded", "actual"])


# -- what a page is ----------------------------------------------------------------


_Node = tuple[int, int, int]  # tablespace, database, relfilenode


def _node(page: DictRow) -> _Node:
    return page["reltablespace"], page["reldatabase"], page["relfilenode"]


def _identity(page: DictRow) -> tuple[_Node, int, int]:
    return _node(page), page["relforknumber"], page["block"]


def _pool(conn: psycopg.Connection) -> list[DictRow]:
    """Every buffer in use, and how many the pool has, read before anything is inspected."""
    try:
        return conn.cursor(row_factory=dict_row).execute(_POOL, prepare=True).fetchall()
    except psycopg.errors.InsufficientPrivilege as error:
        raise CannotMeasure(
            "superuser", f"The buffer pool can't be looked into: {error.diag.message_primary}."
        ) from None
    except psycopg.errors.UndefinedTable:
        raise CannotMeasure(
            "contrib:pg_buffercache",
            "The buffer pool can't be looked into: the extension pg_buffercache isn't installed in"
            " this database.",
        ) from None


def _classified(conn: psycopg.Connection, pages: list[DictRow]) -> pd.DataFrame:
    relations = _relations(conn, {_node(page) for page in pages})
    btrees = [
        (relations[_node(page)]["oid"], page["block"])
        for page in pages
        if _node(page) in relations
        and relations[_node(page)]["method"] == "btree"
        and page["relforknumber"] == 0
        and page["block"] > 0
    ]
    types = _btree_types(conn, btrees)
    for page in pages:
        relation = relations.get(_node(page))
        page["fork"] = _FORKS[page["relforknumber"]]
        page["relation"] = relation and relation["name"]
        page["kind"] = _kind(page["fork"], page["block"], relation, types)
    frame = pd.DataFrame(pages, columns=_COLUMNS)
    return frame.sort_values(["relation", "fork", "block"], ignore_index=True)


def _relations(conn: psycopg.Connection, nodes: set[_Node]) -> dict[_Node, DictRow]:
    """Relations of this database, and shared ones: what a page's kind depends on."""
    found = _rows(
        conn,
        """
        SELECT tablespace, database, node, c.oid::bigint AS oid, c.oid::regclass::text AS name,
               coalesce(am.amname, 'heap') AS method, c.relkind::text AS relkind,
               n.nspname = 'pg_catalog' AS catalog
        FROM (SELECT unnest(%s::oid[]) AS tablespace, unnest(%s::oid[]) AS database,
                     unnest(%s::oid[]) AS node) AS nodes
        JOIN pg_class c ON pg_relation_filenode(c.oid) = node AND tablespace = CASE
            WHEN c.relisshared THEN (SELECT oid FROM pg_tablespace WHERE spcname = 'pg_global')
            ELSE coalesce(nullif(c.reltablespace, 0), (
                SELECT dattablespace FROM pg_database WHERE datname = current_database()
            )) END
        JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_am am ON am.oid = c.relam
        WHERE database IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))""",
        [list(column) for column in zip(*nodes)] or [[], [], []],
    )
    return {(one["tablespace"], one["database"], one["node"]): one for one in found}


def _btree_types(
    conn: psycopg.Connection, blocks: list[tuple[int, int]]
) -> dict[tuple[int, int], str]:
    """The letter that pageinspect gives each page of a B-tree, by the index's OID and block."""
    if not blocks:
        return {}
    found = _rows(
        conn,
        "SELECT relation, block, (bt_page_stats(relation::regclass::text, block)).type::text AS"
        " type FROM (SELECT unnest(%s::oid[]) AS relation, unnest(%s::int[]) AS block) AS pages",
        [list(column) for column in zip(*blocks)],
    )
    return {(one["relation"], one["block"]): one["type"] for one in found}


def _kind(
    fork: str, block: int, relation: DictRow | None, types: Mapping[tuple[int, int], str]
) -> str:
    if fork in ("vm", "fsm"):
        return fork
    if relation is None:
        return "other database"
    if relation["method"] == "btree":
        letter = types.get((relation["oid"], block), "")
        kind = "btree meta" if block == 0 else _BTREE_PAGES.get(letter, "btree deleted")
    elif relation["relkind"] == "i":
        kind = f"{relation['method']} page"
    else:
        kind = {"t": "toast", "S": "sequence"}.get(relation["relkind"], "heap")
    return f"catalog {kind}" if relation["catalog"] else kind


def _rows(conn: psycopg.Connection, sql: str, parameters: Parameters) -> list[DictRow]:
    try:
        return conn.cursor(row_factory=dict_row).execute(sql, parameters).fetchall()
    except psycopg.errors.UndefinedFunction as error:
        raise CannotMeasure(
            "contrib:pageinspect",
            f"Pages can't be inspected here: {error.diag.message_primary}. The extensions"
            " pageinspect and pg_freespacemap (of PostgreSQL 13 or later) have to be installed in"
            " this database.",
        ) from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise CannotMeasure(
            "superuser", f"Pages can't be inspected here: {error.diag.message_primary}."
        ) from None
    except (
        psycopg.errors.UndefinedTable,
        psycopg.errors.WrongObjectType,
        psycopg.errors.InvalidParameterValue,
    ) as error:
        raise RerunError(f"These pages can't be inspected: {error.diag.message_primary}.") from None
