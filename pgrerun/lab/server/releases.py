"""What differs between PostgreSQL's releases, from 8.2 to 18, in one place.

Whoever needs a catalog, function or setting whose name or presence depends on the
release asks here, by `server_version_num` (180006, 90304). A development version, one commit
between two releases, has the number of the release that it became ("8.3devel" is 80300), and so
not yet all that the number promises: where that matters it is asked (`offers`, `activity`).
"""

import re
from collections.abc import Iterable, Mapping

import psycopg

from pgrerun.errors import CannotMeasure

# What instruments, experiments and the configuration of our clusters ask for, and the first
# release that has it. Names are PostgreSQL's own, a view's, function's or setting's, or words.
SINCE = {
    # views, functions and their columns, types and roles, contrib's included
    "pg_stat_get_tuples_hot_updated": 80300,
    "n_live_tup": 80300,
    "n_dead_tup": 80300,
    "pg_stat_get_db_tuples_inserted": 80300,
    "pg_stat_get_db_tuples_updated": 80300,
    "pg_stat_get_db_tuples_deleted": 80300,
    "pg_stat_bgwriter": 80300,
    "txid_current": 80300,
    "heap_page_items": 80300,
    "indcheckxmin": 80300,
    "uuid": 80300,
    "convert_to": 80300,
    "get_raw_page": 80300,
    "page_header": 80300,
    "pg_stat_clear_snapshot": 80300,
    "regexp_matches": 80300,
    "pg_opfamily": 80300,
    "opcmethod": 80300,
    "opcfamily": 80300,
    "amopfamily": 80300,
    "amprocfamily": 80300,
    "amproclefttype": 80300,
    "amoplefttype": 80300,
    "n_tup_hot_upd": 80300,
    "virtualxid": 80300,
    "array_agg": 80400,
    "pg_terminate_backend": 80400,
    "pg_conf_load_time": 80400,
    "pg_stat_get_activity": 80400,
    "pg_freespace": 80400,
    "pg_stat_user_functions": 80400,
    "div": 80400,
    "lag": 80400,
    "row_number": 80400,
    "rank": 80400,
    "pg_options_to_table": 80400,
    "relforknumber": 80400,
    "string_agg": 90000,
    "pg_table_size": 90000,
    "pg_indexes_size": 90000,
    "pg_relation_filenode": 90000,
    "pg_is_in_recovery": 90000,
    "pg_relation_filepath": 90000,
    "amopsortfamily": 90100,
    "concat": 90100,
    "concat_ws": 90100,
    "format": 90100,
    "left": 90100,
    "right": 90100,
    "pg_describe_object": 90100,
    "pg_stat_get_autovacuum_count": 90100,
    "pg_extension": 90100,
    "extname": 90100,
    "extnamespace": 90100,
    "pg_stat_get_db_temp_bytes": 90200,
    "pg_stat_get_db_deadlocks": 90200,
    "fastpath": 90200,
    "relallvisible": 90200,
    "json": 90200,
    "int4range": 90200,
    "pg_tablespace_location": 90200,
    "array_to_json": 90200,
    "blk_read_time": 90200,
    "blk_write_time": 90200,
    "pg_stat_get_db_blk_read_time": 90200,
    "array_remove": 90300,
    "pg_filenode_relation": 90400,
    "pg_replication_slots": 90400,
    "to_regclass": 90400,
    "to_regoperator": 90400,
    "to_regproc": 90400,
    "to_regprocedure": 90400,
    "to_regtype": 90400,
    "jsonb": 90400,
    "percentile_disc": 90400,
    "to_jsonb": 90500,
    "regnamespace": 90500,
    "regrole": 90500,
    "pg_stat_get_snapshot_timestamp": 90500,
    "t_data": 90600,
    "wait_event": 90600,
    "wait_event_type": 90600,
    "pg_blocking_pids": 90600,
    "pg_size_bytes": 90600,
    "pg_logical_emit_message": 90600,
    "pg_index_column_has_property": 90600,
    "backend_type": 100000,
    "pg_publication": 100000,
    "pg_xact_status": 130000,
    "sha256": 110000,
    "pg_jit_available": 110000,
    "pg_stats_ext": 120000,
    "pg_stat_gssapi": 120000,
    "log10": 120000,
    "gen_random_uuid": 130000,
    "htid": 130000,
    "tids": 130000,
    "heap_tuple_infomask_flags": 130000,
    "xid8": 130000,
    "pg_stat_slru": 130000,
    "pg_stat_get_db_sessions": 140000,
    "pg_stat_wal": 140000,
    "bit_count": 140000,
    "pg_backup_start": 150000,
    "pg_checkpoint": 150000,
    "pg_stat_force_next_flush": 150000,
    "pg_get_wal_records_info": 150000,
    "pg_backup_stop": 150000,
    "pg_get_wal_block_info": 160000,
    "pg_stat_io": 160000,
    "pg_stat_get_tuples_newpage_updated": 160000,
    "any_value": 160000,
    "n_tup_newpage_upd": 160000,
    "pg_buffercache_evict": 170000,
    "pg_stat_checkpointer": 170000,
    "pg_buffercache_evict_all": 180000,
    "pg_stat_get_backend_io": 180000,
    "crc32c": 180000,
    "uuidv7": 180000,
    "pg_restore_attribute_stats": 180000,
    "pg_restore_relation_stats": 180000,
    # in words
    "EXPLAIN (FORMAT)": 90000,
    "EXPLAIN (BUFFERS)": 90000,
    "EXPLAIN (TIMING)": 90200,
    "window functions": 80400,
    "blocks that aren't stored (DO)": 90000,
    "PL/pgSQL from the start": 90000,
    "CREATE EXTENSION": 90100,
    "application_name": 90000,
    "initdb that needn't wait for the disk": 90300,
    "autovacuum_enabled of a table": 80400,
    "settings that are gone from a file are reset": 80300,
    "DEALLOCATE ALL": 80300,
    "counts that are written when asked for": 80400,
    "WAL positions without gaps": 90300,
    "EXPLAIN that times planning": 90400,
    "spaces in options": 90500,
    "connections beside those of walsenders": 120000,
    "EXPLAIN (SUMMARY)": 100000,
    "EXPLAIN (SETTINGS)": 120000,
    "EXPLAIN (WAL)": 130000,
    "EXPLAIN (GENERIC_PLAN)": 160000,
    "EXPLAIN (MEMORY)": 170000,
    "EXPLAIN (SERIALIZE)": 170000,
    "VACUUM of several tables": 110000,
    "password check by SCRAM": 100000,
    "ALTER SYSTEM": 90400,
    "commit in a block": 110000,
    "hash aggregation that spills": 130000,
}

# Settings that experiments ask for by name, and the first release that knows them.
SETTINGS_SINCE = {
    "archive_mode": 80300,
    "autovacuum_max_workers": 80300,
    "bgwriter_lru_multiplier": 80300,
    "checkpoint_completion_target": 80300,
    "log_autovacuum_min_duration": 80300,
    "log_checkpoints": 80300,
    "log_lock_waits": 80300,
    "log_temp_files": 80300,
    "log_timezone": 80300,
    "session_replication_role": 80300,
    "synchronize_seqscans": 80300,
    "synchronous_commit": 80300,
    "temp_tablespaces": 80300,
    "track_activities": 80300,
    "track_counts": 80300,
    "wal_writer_delay": 80300,
    "cursor_tuple_fraction": 80400,
    "effective_io_concurrency": 80400,
    "track_activity_query_size": 80400,
    "track_functions": 80400,
    "vacuum_freeze_table_age": 80400,
    "application_name": 90000,
    "bytea_output": 90000,
    "enable_material": 90000,
    "hot_standby": 90000,
    "max_wal_senders": 90000,
    "wal_level": 90000,
    "max_pred_locks_per_transaction": 90100,
    "quote_all_identifiers": 90100,
    "restart_after_crash": 90100,
    "enable_indexonlyscan": 90200,
    "temp_file_limit": 90200,
    "track_io_timing": 90200,
    "lock_timeout": 90300,
    "huge_pages": 90400,
    "max_worker_processes": 90400,
    "cluster_name": 90500,
    "max_wal_size": 90500,
    "min_wal_size": 90500,
    "row_security": 90500,
    "wal_compression": 90500,
    "idle_in_transaction_session_timeout": 90600,
    "max_parallel_workers_per_gather": 90600,
    "parallel_setup_cost": 90600,
    "parallel_tuple_cost": 90600,
    "wal_writer_flush_after": 90600,
    "max_parallel_workers": 100000,
    "min_parallel_index_scan_size": 100000,
    "min_parallel_table_scan_size": 100000,
    "enable_parallel_append": 110000,
    "enable_parallel_hash": 110000,
    "enable_partitionwise_join": 110000,
    "jit": 110000,
    "jit_above_cost": 110000,
    "jit_inline_above_cost": 110000,
    "jit_optimize_above_cost": 110000,
    "max_parallel_maintenance_workers": 110000,
    "parallel_leader_participation": 110000,
    "plan_cache_mode": 120000,
    "shared_memory_type": 120000,
    "wal_init_zero": 120000,
    "wal_recycle": 120000,
    "autovacuum_vacuum_insert_threshold": 130000,
    "enable_incremental_sort": 130000,
    "hash_mem_multiplier": 130000,
    "wal_skip_threshold": 130000,
    "compute_query_id": 140000,
    "enable_memoize": 140000,
    "idle_session_timeout": 140000,
    "track_wal_io_timing": 140000,
    "recovery_prefetch": 150000,
    "stats_fetch_consistency": 150000,
    "debug_io_direct": 160000,
    "vacuum_buffer_usage_limit": 160000,
    "io_combine_limit": 170000,
    "subtransaction_buffers": 170000,
    "transaction_buffers": 170000,
    "transaction_timeout": 170000,
    "enable_self_join_elimination": 180000,
    "io_max_concurrency": 180000,
    "io_method": 180000,
    "io_workers": 180000,
}


# Extensions of contrib that came after 8.2.
CONTRIB_SINCE = {
    "pageinspect": 80300,
    "pg_stat_statements": 80400,
    "pg_prewarm": 90400,
    "pg_visibility": 90600,
    "bloom": 90600,
    "amcheck": 100000,
    "pg_surgery": 140000,
    "pg_walinspect": 150000,
    "pg_logicalinspect": 180000,
}


# What statements are written with: the first release that can read it, and how it looks in the
# part of the statement that a server quotes when it stumbles over it.
WRITTEN_SINCE = {
    "CLUSTER ... USING": (80300, r"CLUSTER\s+\S+\s+USING"),
    "WITH": (80400, r"(^|LINE \d+:)\s*(EXPLAIN\s+(ANALYZE\s+)?)?WITH\s|AS\s*\(\s*WITH\s"),
    "OVER": (80400, r"OVER\s*\("),
    "numbers of 2 and of 8 bytes together": (
        80400,
        r"operator is not unique: (bigint \S+ smallint|smallint \S+ bigint)",
    ),
    "TRUNCATE RESTART": (80400, r"RESTART\s+IDENTITY"),
    "storage parameters of a table": (80400, r'"(autovacuum|toast)[\w.]*"'),
    "type that is cast to text": (80300, r"cannot cast type \S+ to text"),
    "VACUUM (...)": (90000, r"VACUUM\s*\("),
    "EXPLAIN (...)": (90000, r"EXPLAIN\s*\("),
    "DO": (90000, r"DO\s+(\$|LANGUAGE|')"),
    "CREATE INDEX without a name": (90000, r"INDEX\s+(CONCURRENTLY\s+)?ON\s"),
    "a base backup that doesn't wait": (80400, r"function pg_start_backup\(\S+, boolean\)"),
    "aggregate in an order": (90000, r"\w+\([^()]*\sORDER\s+BY"),
    "IF NOT EXISTS": (90100, r"IF\s+NOT"),
    "UNLOGGED": (90100, r"UNLOGGED"),
    "CREATE EXTENSION": (90100, r"EXTENSION"),
    "changing statement in WITH": (90100, r"AS\s*\(\s*(INSERT|UPDATE|DELETE)\s"),
    "COLLATE": (90100, r"COLLATE\s"),
    "column that GROUP BY needn't name": (90100, r"must appear in the GROUP BY clause"),
    "access method spgist": (90200, r'"spgist"'),
    "COPY (FREEZE)": (90300, r'COPY\s[^;]*FREEZE|option "freeze"'),
    "LATERAL": (90300, r"LATERAL"),
    "MATERIALIZED VIEW": (90300, r"MATERIALIZED\s+VIEW"),
    "SELECT without columns": (90400, r"SELECT\s+FROM"),
    "FILTER": (90400, r"FILTER\s*\("),
    "WITHIN GROUP": (90400, r"WITHIN\s+GROUP"),
    "WITH ORDINALITY": (90400, r"WITH\s+ORDINALITY"),
    "ALTER SYSTEM": (90400, r"ALTER\s+SYSTEM"),
    "unnest of several arrays": (90400, r"function unnest\(\S+, "),
    "ON CONFLICT": (90500, r"ON\s+CONFLICT"),
    "TABLESAMPLE": (90500, r"TABLESAMPLE"),
    "SKIP LOCKED": (90500, r"SKIP\s+LOCKED"),
    "CREATE INDEX IF NOT EXISTS": (90500, r"INDEX\s+IF\s+NOT"),
    "ALTER OPERATOR ... SET": (90600, r"ALTER\s+OPERATOR[^;]*SET\s*\("),
    "access method brin": (90500, r'"brin"'),
    "current_setting of one that may be missing": (
        90600,
        r"function current_setting\(\S+, boolean\)",
    ),
    "autovacuum_vacuum_insert_threshold of a table": (130000, r'"autovacuum_vacuum_insert_'),
    "parallel_workers of a table": (90600, r'"parallel_workers"'),
    "VACUUM (DISABLE_PAGE_SKIPPING)": (90600, r"DISABLE_PAGE_SKIPPING"),
    "backup beside others": (90600, r"function pg_start_backup\(\S+, boolean, boolean\)"),
    "a base backup at the default wal_level": (
        100000,
        r"WAL level not sufficient|WAL archiving is not active",
    ),
    "CREATE STATISTICS": (100000, r"CREATE\s+STATISTICS"),
    "PARTITION BY": (100000, r"PARTITION\s+(BY|OF)"),
    "GENERATED AS IDENTITY": (100000, r"GENERATED\s"),
    "INCLUDE": (110000, r"INCLUDE\s*\("),
    "CALL": (110000, r"CALL\s"),
    "COMMIT in PL/pgSQL": (
        110000,
        r"cannot begin/end transactions in PL/pgSQL|SPI_ERROR_TRANSACTION",
    ),
    "partitions' indexes": (110000, r"cannot create index on partitioned table"),
    "statistics of most common values": (120000, r'statistics kind "mcv"'),
    "AS MATERIALIZED": (120000, r"AS\s+(NOT\s+)?MATERIALIZED"),
    "deduplicate_items of an index": (130000, r'"deduplicate_items"'),
    "statistics on expressions": (
        140000,
        r"only simple column references are allowed in CREATE STAT",
    ),
    "operator class int4_bloom_ops": (140000, r'"int4_bloom_ops"'),
    "subquery without an alias": (160000, r"subquery in FROM must have an alias"),
}
# How a server names what it doesn't have.
_COMPLAINTS = (
    re.compile(r"function (?:\w+\.)?(\w+)\("),
    re.compile(r"(?:relation|column|type|parameter|extension) \"(?:\w+\.)?(\w+)\""),
    re.compile(r"column (?:\w+\.)?(\w+) does not exist"),
)


def has(version: int, what: str) -> bool:
    """Whether a release has what is named (a key of the table above)."""
    return version >= SINCE[what]


def require(version: int, what: str) -> None:
    """Raise CannotMeasure, naming the first release that has it, unless `has(version, what)`."""
    if not has(version, what):
        raise too_old(version, SINCE[what], what)


def too_old(version: int, first: int, what: str, development: bool = False) -> CannotMeasure:
    """That it needs what came with the release `first`, and this one is older, or on the way."""
    return CannotMeasure(
        f"PostgreSQL {named(first)}",
        f"It needs PostgreSQL {named(first)} or later ({what}), and this is {named(version)}"
        f"{' in development' if development else ''}.",
    )


def knows(version: int, setting: str) -> bool:
    """Whether a release knows a setting, as far as the table above goes: others pass."""
    return version >= SETTINGS_SINCE.get(setting.lower(), 0)


def without(version: int, setting: str, wanted: object) -> bool:
    """Whether a release is by itself what a setting that it doesn't know would make it.

    No workers, no JIT, no kind of plan that came later: what isn't there needn't be switched off.
    A commit always waits for its flush. And a cluster's name is but a label.
    """
    name = setting.lower()
    if name == "cluster_name":
        return not knows(version, name)
    counts = ("max_parallel_workers_per_gather", "max_parallel_workers", "max_wal_senders")
    kinds = ("jit", *(one for one in SETTINGS_SINCE if one.startswith("enable_")))
    off = {"0"} if name in counts else {"off", "false"} if name in kinds else set()
    off |= {"on", "true", "local"} if name == "synchronous_commit" else set()
    return not knows(version, name) and str(wanted).lower() in off


def configured(version: int, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a server as a release names them.

    What it is by itself is left out. Before 9.5 the WAL between checkpoints was said in segments of
    16 MB, a third of its size (release notes of 9.5), which decided as well how many were kept.
    Before 8.3 nothing but fsync says that a commit shall not wait for the disk; a checkpoint then
    doesn't either. Before 8.4 (d9384a4b73) a pool had to hold two pages for each connection, or
    worker of autovacuum, that is allowed.
    """
    known = {name: value for name, value in settings.items() if not without(version, name, value)}
    if not knows(version, "max_wal_size"):
        known.pop("min_wal_size", None)
        if size := _kilobytes(known.get("max_wal_size", "")):
            del known["max_wal_size"]
            known["checkpoint_segments"] = str(max(1, round(size / 1024 / 48)))
    if not knows(version, "synchronous_commit") and known.get("synchronous_commit") == "off":
        del known["synchronous_commit"]
        known["fsync"] = "off"
    if version < 80400 and (size := _kilobytes(known.get("shared_buffers", ""))):
        allowed = min(100, max(1, size // 8 // 2 - 4))
        known.setdefault("max_connections", str(allowed))
    return known


def _kilobytes(size: str) -> int | None:
    """A size as settings write it ("160kB", "48MB", "1GB")."""
    found = re.fullmatch(r"(\d+)\s*(kB|MB|GB)", size)
    return int(found[1]) * {"kB": 1, "MB": 1024, "GB": 1024**2}[found[2]] if found else None


def require_settings(version: int, settings: Iterable[str]) -> None:
    """Raise CannotMeasure, naming the first release that knows it, for a setting that isn't known.

    Left out of the configuration it would change what is measured without a word.
    """
    for name in settings:
        if not knows(version, name):
            first = named(SETTINGS_SINCE[name.lower()])
            raise CannotMeasure(
                f"PostgreSQL {first}",
                f"It needs the setting {name}, which PostgreSQL has from {first} on, and this is"
                f" {named(version)}.",
            )


def without_contrib(version: int, extension: str) -> str | None:
    """Why a release can't have an extension; None if it can, as far as the table above goes.

    A package may hold another release's extensions, which this one can't load.
    """
    first = CONTRIB_SINCE.get(extension, 0)
    if version >= first:
        return None
    return (
        f"It needs the extension {extension}, which PostgreSQL has from {named(first)} on, and this"
        f" is {named(version)}."
    )


def lacking(version: int, error: BaseException, development: bool = False) -> CannotMeasure | None:
    """Why a release can't do what it was asked to, if it came before what the error complains of.

    `error` is the server's, or a tool's that quotes it, with the statement in a note if it had one.
    None for everything that the tables above don't know, or that this release should know: that is
    nobody's but the asker's fault. A version in `development` need have nothing that came with its
    release.
    """
    said = "\n".join([str(error), *getattr(error, "__notes__", ())])
    named_there = {name for pattern in _COMPLAINTS for name in pattern.findall(said)}
    first_of = SINCE | SETTINGS_SINCE | CONTRIB_SINCE
    found = {name: first_of[name] for name in named_there if name in first_of}
    found |= {
        name: first
        for name, (first, pattern) in WRITTEN_SINCE.items()
        if re.search(pattern, said, re.IGNORECASE)
    }
    if not found or max(found.values()) <= version - development:
        return None
    name, first = max(found.items(), key=lambda one: one[1])
    return too_old(version, first, name, development)


def writes(version: int, what: str) -> bool:
    """Whether a release reads what is written so (a key of `WRITTEN_SINCE`)."""
    return version >= WRITTEN_SINCE[what][0]


def require_options(version: int, options: Iterable[str]) -> None:
    """Raise CannotMeasure for an option of EXPLAIN that the release doesn't know."""
    for option in options:
        if (what := f"EXPLAIN ({option.upper()})") in SINCE:
            require(version, what)


def least_number(version: int, version_text: str) -> int:
    """The number of the release whose features a server has for sure.

    A version in development need have none of its own: a list of folders for sockets came to 9.3
    with c9b0cbe98b, in August 2012.
    """
    return version - ("devel" in version_text)


def named(version: int) -> str:
    """The release's name without its minor number: "18", "9.6"."""
    if version >= 100000:
        return str(version // 10000)
    return f"{version // 10000}.{version // 100 % 100}"


def number(release: tuple[int, ...]) -> int:
    """`server_version_num` of a version's numbers: (9, 6, 24) is 90624, (18, 6) is 180006."""
    major, minor, patch = (*release, 0, 0)[:3]
    return major * 10000 + (minor if major >= 10 else minor * 100 + patch)


def old_defaults(version: int, version_text: str) -> dict[str, str]:
    """Settings by which an old server does what later ones do by default.

    It counts, and it flushes its WAL by fdatasync, as it did on Linux in its time: compiled with
    today's C library it would open the WAL's files with O_DSYNC, which then wasn't there.
    """
    settings = {} if version >= 90100 else {"wal_sync_method": "fdatasync"}
    if version < 80300 or version_text == "8.3devel":
        settings |= {"stats_block_level": "on", "stats_row_level": "on"}
    return settings


def socket_folder(version: int, folder: str) -> dict[str, str]:
    """The setting that says in which folder a server makes its socket."""
    if version >= 90300:
        return {"unix_socket_directories": f'"{folder}"'}  # a list
    return {"unix_socket_directory": folder}


# Functions that our statements call, and the first release that brings them: an own cluster of an
# older one gets them in SQL. Relations of 8.3 and before have but one fork.
ADDED = (
    (90000, "CREATE LANGUAGE plpgsql"),
    (
        80400,
        """CREATE FUNCTION pg_catalog.unnest(anyarray) RETURNS SETOF anyelement IMMUTABLE STRICT AS
           'SELECT $1[i] FROM generate_series(array_lower($1, 1), array_upper($1, 1)) AS i'
           LANGUAGE sql""",
    ),
    (
        80400,
        """CREATE FUNCTION pg_catalog.pg_relation_size(regclass, text) RETURNS bigint AS
           'SELECT CASE $2 WHEN ''main'' THEN pg_relation_size($1::oid) ELSE 0 END' LANGUAGE sql""",
    ),
    *(
        (80300, statement)
        for name in ("regclass", "tid", "xid", "bool")
        for statement in (
            f"""CREATE FUNCTION pg_catalog.text({name}) RETURNS text STABLE STRICT AS
                'SELECT textin({name}out($1))' LANGUAGE sql""",
            f"CREATE CAST ({name} AS text) WITH FUNCTION pg_catalog.text({name})",
        )
    ),
    (
        80300,
        """CREATE FUNCTION pg_catalog.point(text) RETURNS point STABLE STRICT AS
           'SELECT point_in(textout($1))' LANGUAGE sql""",
    ),
    (80300, "CREATE CAST (text AS point) WITH FUNCTION pg_catalog.point(text)"),
)


def added(version: int) -> list[str]:
    """The statements of `ADDED` that a cluster of this release needs."""
    return [statement for since, statement in ADDED if version < since]


def copied(connection: psycopg.Connection, binary: bool = False) -> str:
    """What stands after COPY ... FROM STDIN to have the rows frozen as they come.

    Before 9.3 they aren't, and a VACUUM FREEZE has to follow.
    """
    text = connection.info.parameter_status("server_version") or ""
    if writes(least_number(connection.info.server_version, text), "COPY (FREEZE)"):
        return " (FORMAT binary, FREEZE)" if binary else " (FREEZE)"
    return " WITH BINARY" if binary else ""


def routine(version: int, name: str) -> str:
    """The server's own routine that newer and older releases call `name`."""
    renamed = name == "PageIsVerified" and 140000 <= version < 180000
    return f"{name}Extended" if renamed else name


def wal_position(version: int) -> str:
    """The function that says up to where WAL has been inserted."""
    return "pg_current_wal_insert_lsn" if version >= 100000 else "pg_current_xlog_insert_location"


def commit_log(version: int) -> str:
    """The directory of transactions' status in a data directory, renamed in release 10."""
    return "pg_xact" if version >= 100000 else "pg_clog"


def commit_log_buffers(version: int, pool: int) -> int:
    """Pages of it that a release up to 16 keeps, with so many pages of shared_buffers: eight, and
    since 9.2 by CLOGShmemBuffers.
    """
    return min(32, max(4, pool // 512)) if version >= 90200 else 8


def wal_resetter(version: int) -> str:
    """The program that moves a stopped server's counters on, renamed in release 10."""
    return "pg_resetwal" if version >= 100000 else "pg_resetxlog"


def wal_bytes(version: int, position: str) -> int:
    """Bytes of WAL before a position that a server prints.

    Until 9.2 the last segment of every 4 GB was left out.
    """
    high, low = (int(part, 16) for part in position.split("/"))
    return high * (2**32 if has(version, "WAL positions without gaps") else 0xFF000000) + low


_CLUSTER = re.compile(r"\bCLUSTER\s+(\w+)\s+USING\s+(\w+)", re.IGNORECASE)
_VACUUM = re.compile(r"\bVACUUM\s*\(([\w\s,]*)\)", re.IGNORECASE)
_STORED = re.compile(r"^(EXPLAIN(?:\s+ANALYZE)?)\s+CREATE\s+(?:TEMP\s+)?TABLE\s+\S+\s+AS\s", re.I)
_STORAGE = re.compile(r"\s+WITH\s*\(([^()]*\bautovacuum_enabled\b[^()]*)\)", re.IGNORECASE)
_NAMELESS = re.compile(
    r"\bINDEX\s+ON\s+(?P<table>\w+)\s*(?P<method>USING\s+\w+\s*)?\((?P<columns>\w+(,\s*\w+)*)\)",
    re.IGNORECASE,
)


def rewrites(version: int) -> bool:
    """Whether `readable` may change a statement for a release."""
    return not writes(version, "VACUUM (...)")


def readable(version: int, statement: str) -> str:
    """A statement as a release before 9.0 reads it, where it can say the same in another way.

    VACUUM's options in brackets, plans of queries whose rows are stored, indexes that get a name by
    themselves, CLUSTER, and tables that autovacuum leaves alone, which before 8.4 none of ours
    needs to be told, as it is off.
    """
    if not writes(version, "VACUUM (...)"):
        statement = _VACUUM.sub(_vacuum_in_order, statement)
        statement = _STORED.sub(r"\1 ", statement)
    if not writes(version, "CREATE INDEX without a name"):
        statement = _NAMELESS.sub(_with_name, statement)
    if not writes(version, "CLUSTER ... USING"):
        statement = _CLUSTER.sub(r"CLUSTER \2 ON \1", statement)
    if not has(version, "autovacuum_enabled of a table"):
        statement = _STORAGE.sub(_without_autovacuum, statement)
    return statement


def _vacuum_in_order(found: re.Match[str]) -> str:
    asked = {option.strip().upper() for option in found[1].split(",")}
    order = ("FULL", "FREEZE", "VERBOSE", "ANALYZE")
    if asked - set(order):
        return found[0]
    return " ".join(["VACUUM", *(option for option in order if option in asked)])


def _with_name(found: re.Match[str]) -> str:
    columns = [column.strip() for column in found["columns"].split(",")]
    name = "_".join([found["table"], *columns, "idx"])  # as later releases name it
    return found[0].replace("ON", f"{name} ON", 1)


def _without_autovacuum(found: re.Match[str]) -> str:
    rest = [one.strip() for one in found[1].split(",") if "autovacuum_enabled" not in one]
    return f" WITH ({', '.join(rest)})" if rest else ""


def is_development(connection: psycopg.Connection) -> bool:
    """Whether the server is of no release, but of a commit between two."""
    return "devel" in (connection.info.parameter_status("server_version") or "")


def offers(connection: psycopg.Connection, function: str) -> bool:
    """Whether a server has a function or a view; of those not in the table above every one has.

    A development version may or may not have what came with its release, so it is asked.
    """
    version = connection.info.server_version
    if function not in SINCE or version < SINCE[function] or not is_development(connection):
        return version >= SINCE.get(function, 0)
    query = """SELECT (SELECT count(*) FROM pg_proc WHERE proname = %(name)s) +
                      (SELECT count(*) FROM pg_class WHERE relname = %(name)s) AS found"""
    found = connection.execute(query, {"name": function}).fetchone()
    return found is not None and found != (0,)


def has_late(connection: psycopg.Connection, name: str) -> bool:
    """Whether the server has what came late in the making of its release ("EXPLAIN (TIMING)").

    A commit of that making has the release's number, and counts as one from before it came.
    """
    version = connection.info.server_version
    return has(version, name) and not (is_development(connection) and version == SINCE[name])


# pg_stat_activity with the columns that it has had since 9.2
_ACTIVITY = """(
    SELECT datid, datname, procpid AS pid, usesysid, usename, client_addr, backend_start,
           query_start, waiting,
           CASE current_query WHEN '<IDLE>' THEN 'idle'
                WHEN '<IDLE> in transaction' THEN 'idle in transaction' ELSE 'active' END AS state,
           current_query AS query
    FROM pg_stat_activity) AS pg_stat_activity"""


def activity(connection: psycopg.Connection) -> str:
    """What stands after FROM to read pg_stat_activity with the names of columns of 9.2 and later.

    datid, datname, pid, usesysid, usename, client_addr, backend_start, query_start, state, query;
    before 9.6 also waiting.
    """
    return _ACTIVITY if _has_procpid(connection) else "pg_stat_activity"


def _has_procpid(connection: psycopg.Connection) -> bool:
    """Whether pg_stat_activity has the columns that it had until 9.1."""
    version = connection.info.server_version
    if version >= 90300 or not (version < 90200 or is_development(connection)):
        return False
    query = """SELECT 1 FROM pg_attribute
        WHERE attrelid = 'pg_stat_activity'::regclass AND attname = 'procpid'"""
    return connection.execute(query).fetchone() is not None


def working_backends(connection: psycopg.Connection) -> str:
    """The query for backends that work, or have since a time: column pid.

    Parameters: the database's OID, process ids that don't count, the time. It calls functions
    alone, unlike the view pg_stat_activity, which joins catalogs. Before 9.2 the time is that at
    which a backend's last statement began.
    """
    if not _has_procpid(connection):
        return (
            "SELECT pid FROM pg_stat_get_activity(NULL) WHERE datid = %s AND pid <> ALL(%s)"
            " AND usesysid IS NOT NULL AND (state_change >= %s::timestamptz OR state <> 'idle')"
        )
    return """
        SELECT pid FROM (
            SELECT pg_stat_get_backend_pid(id) AS pid, pg_stat_get_backend_dbid(id) AS datid,
                   pg_stat_get_backend_activity(id) AS query,
                   pg_stat_get_backend_activity_start(id) AS query_start
            FROM (SELECT pg_stat_get_backend_idset() AS id) AS ids) AS backends
        WHERE datid = %s AND pid <> ALL(%s)
          AND (query_start >= %s::timestamptz OR query <> '<IDLE>')"""


def clients(version: int) -> str:
    """The condition by which a row of pg_stat_activity is a client's."""
    if has(version, "backend_type"):
        return "backend_type = 'client backend'"
    return "true"  # until 10 the view had no others, except autovacuum's, which is off


def waits_for(version: int, wait_type: str) -> str:
    """The condition by which a row of pg_stat_activity waits for something of this type.

    Before 9.6 only heavyweight locks ("Lock") can be told: else CannotMeasure.
    """
    if wait_type == "Lock" and not has(version, "wait_event"):
        return "waiting"
    require(version, "wait_event")
    return f"wait_event_type = '{wait_type}'"


def checkpoints_done(version: int) -> str:
    """The statement that counts checkpoints since the statistics were reset.

    Those that were carried out; before 18 those that were due or asked for.
    """
    if version >= 180000:
        return "SELECT num_done FROM pg_stat_checkpointer"
    if has(version, "pg_stat_checkpointer"):
        return "SELECT num_timed + num_requested FROM pg_stat_checkpointer"
    require(version, "pg_stat_bgwriter")
    return "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"
