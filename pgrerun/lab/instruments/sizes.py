"""Sizes of relations in pages, as their files have them now.

Names are as SQL writes them ("accounts", '"Odd name"', "pg_catalog.pg_class"), found by the
connection's search_path. A name that isn't there raises psycopg's UndefinedTable.
"""

import pandas as pd
import psycopg

_BLOCK = "current_setting('block_size')::int"


def pages(connection: psycopg.Connection, relation: str, fork: str = "main") -> int:
    """Pages of one fork of a table, index or other relation; 0 where it has no such fork."""
    return pages_of(connection, [relation], fork)[relation]


def pages_of(
    connection: psycopg.Connection, relations: list[str] | tuple[str, ...], fork: str = "main"
) -> dict[str, int]:
    """Pages of several relations, by name, in the order given."""
    query = f"""
        SELECT name, pg_relation_size(name::regclass, %s) / {_BLOCK}
        FROM unnest(%s::text[]) AS name"""
    found: dict[str, int] = dict(connection.execute(query, [fork, list(relations)]).fetchall())
    return {name: found[name] for name in relations}


def in_schema(connection: psycopg.Connection, schema: str | None = None) -> pd.DataFrame:
    """Sizes of all relations of a schema (default: the connection's current one), largest first.

    Columns: relation, kind ("table", "index", "sequence", "materialized view"), table (that an
    index is on; else the relation itself), pages (main fork), tuples (as VACUUM or ANALYZE last
    found them; below 0 where neither has looked). TOAST lies in a schema of its own, and isn't
    among them.
    """
    query = f"""
        SELECT c.relname AS relation,
               CASE c.relkind WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence'
                              WHEN 'm' THEN 'materialized view' ELSE 'table' END AS kind,
               coalesce(t.relname, c.relname) AS "table",
               pg_relation_size(c.oid) / {_BLOCK} AS pages, c.reltuples::bigint AS tuples
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_index i ON i.indexrelid = c.oid
        LEFT JOIN pg_class t ON t.oid = i.indrelid
        WHERE n.nspname = coalesce(%s, current_schema()) AND c.relkind IN ('r', 'i', 'S', 'm')
        ORDER BY pages DESC, relation"""
    rows = connection.execute(query, [schema]).fetchall()
    return pd.DataFrame(rows, columns=["relation", "kind", "table", "pages", "tuples"])
