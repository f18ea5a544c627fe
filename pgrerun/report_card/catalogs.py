"""What a server has counted about somebody's relations: read from its statistics and catalogs,
touching none of them.
"""

import pandas as pd

from pgrerun.errors import ParameterError
from pgrerun.lab.server import Server, read_any_bytes, releases
from pgrerun.parameters import unknown

_SCHEMAS = """
    SELECT nspname FROM pg_namespace
    WHERE nspname !~ '^pg_(toast|temp)'
      AND nspname <> ALL (ARRAY['pg_catalog', 'information_schema', current_schema()])
    ORDER BY 1"""
_UPDATES = """
    SELECT s.relname AS "table", s.n_tup_upd AS updates, s.n_tup_hot_upd AS hot, {newpage} AS moved,
           coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions)
                     WHERE option_name = 'fillfactor'), '100')::int AS fillfactor,
           (SELECT count(*) FROM pg_index WHERE indrelid = c.oid) AS indices
    FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
    WHERE s.schemaname = %s AND s.n_tup_upd > 0
    ORDER BY s.n_tup_upd - s.n_tup_hot_upd DESC, s.relname"""
# An index has something to return where its access method keeps the values; a table that was never
# vacuumed has no map.
_SCANNED = """
    SELECT i.relname AS "table", i.indexrelname AS "index", i.idx_scan AS scans,
           i.idx_tup_read AS entries, i.idx_tup_fetch AS fetched,
           pg_relation_size(c.oid) / current_setting('block_size')::int AS pages,
           c.relallvisible AS marked,
           greatest(t.last_vacuum, t.last_autovacuum)::date AS vacuumed
    FROM pg_stat_user_indexes i
    JOIN pg_class c ON c.oid = i.relid
    JOIN pg_stat_user_tables t ON t.relid = i.relid
    WHERE i.schemaname = %s AND i.idx_scan > 0
      AND pg_index_column_has_property(i.indexrelid, 1, 'returnable')
    ORDER BY i.idx_tup_read DESC, i.indexrelname"""


def require_schema(server: Server, name: str) -> None:
    """ParameterError, with those that there are, unless the database has a schema of this name that
    isn't ours.
    """
    with server.connect() as connection:
        read_any_bytes(connection)
        names = [found for (found,) in connection.execute(_SCHEMAS)]
    if name not in names:
        raise ParameterError(f"{server.address} has no schema {unknown(name, names)}.")


def counted_since(server: Server) -> str:
    """Since when the database's statistics have been counted, as a date; "" if they were never
    reset.
    """
    [since] = server.fetch(
        "SELECT stats_reset::date FROM pg_stat_database WHERE datname = current_database()"
    )
    return str(since or "")


def setting(server: Server, name: str) -> str:
    """A setting as SHOW tells it to our sessions."""
    [value] = server.fetch("SELECT current_setting(name) FROM pg_settings WHERE name = %s", name)
    return str(value)


def committed(server: Server) -> tuple[float, float]:
    """How many transactions all databases have committed so far, and the server's time in s."""
    return server.fetch(
        "SELECT sum(xact_commit)::float, extract(epoch FROM clock_timestamp())::float"
        " FROM pg_stat_database"
    )


def updates(server: Server, schema: str) -> pd.DataFrame:
    """Updates of each table of a schema that has had any, those first that weren't heap-only most
    often.

    Columns: table, updates, hot, moved (updates that found no room on their page; missing before
    PostgreSQL 16), fillfactor (%), indices (their number), share (of the updates that were
    heap-only).
    """
    moves = releases.has(server.version, "pg_stat_get_tuples_newpage_updated")
    frame = _read(
        server,
        _UPDATES.format(newpage="s.n_tup_newpage_upd" if moves else "NULL::bigint"),
        schema,
    )
    return frame.assign(share=frame["hot"] / frame["updates"])


def scanned(server: Server, schema: str) -> pd.DataFrame:
    """Indices of a schema that have been scanned and could answer by themselves, those first that
    returned most entries.

    Columns: table, index, scans, entries (that scans returned), fetched (tuples that index and
    index-only scans fetched from the heap for them; a bitmap scan's aren't counted here), pages (of
    the table), marked (of these, as all-visible, at the last VACUUM or ANALYZE), vacuumed (date),
    visible (share of the pages that are marked).
    """
    frame = _read(server, _SCANNED, schema)
    return frame.assign(visible=(frame["marked"] / frame["pages"].clip(lower=1)).clip(upper=1))


def _read(server: Server, query: str, schema: str) -> pd.DataFrame:
    with server.connect() as connection:
        read_any_bytes(connection)
        cursor = connection.execute(query, [schema])
        return pd.DataFrame(
            cursor.fetchall(), columns=[column.name for column in cursor.description]
        )
