"""What differs between PostgreSQL's releases, from 9.3 to 18, in one place.

Whoever needs a catalog, function or setting whose name or presence depends on the
release asks here, by `server_version_num` (180006, 90304).
"""

import re
from collections.abc import Iterable

from pgrerun.errors import CannotMeasure

# What instruments, experiments and the configuration of our clusters ask for, and the first
# release that has it. Names are PostgreSQL's own, a view's, function's or setting's, or words.
SINCE = {
    # views, functions and their columns, types and roles, contrib's included
    "pg_filenode_relation": 90400,
    "to_regclass": 90400,
    "to_regoperator": 90400,
    "to_regproc": 90400,
    "to_regprocedure": 90400,
    "to_regtype": 90400,
    "jsonb": 90400,
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
    "backend_type": 100000,
    "pg_stats_ext": 120000,
    "pg_stat_gssapi": 120000,
    "gen_random_uuid": 130000,
    "htid": 130000,
    "tids": 130000,
    "heap_tuple_infomask_flags": 130000,
    "xid8": 130000,
    "pg_stat_slru": 130000,
    "pg_stat_get_db_sessions": 140000,
    "pg_stat_wal": 140000,
    "pg_backup_start": 150000,
    "pg_checkpoint": 150000,
    "pg_stat_force_next_flush": 150000,
    "pg_get_wal_records_info": 150000,
    "pg_get_wal_block_info": 160000,
    "pg_stat_io": 160000,
    "pg_stat_get_tuples_newpage_updated": 160000,
    "pg_buffercache_evict": 170000,
    "pg_stat_checkpointer": 170000,
    "pg_buffercache_evict_all": 180000,
    "pg_stat_get_backend_io": 180000,
    "crc32c": 180000,
    "uuidv7": 180000,
    # in words
    "EXPLAIN that times planning": 90400,
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
    "huge_pages": 90400,
    "max_worker_processes": 90400,
    "cluster_name": 90500,
    "max_wal_size": 90500,
    "min_wal_size": 90500,
    "wal_compression": 90500,
    "max_parallel_workers_per_gather": 90600,
    "max_parallel_workers": 100000,
    "min_parallel_table_scan_size": 100000,
    "min_parallel_index_scan_size": 100000,
    "enable_parallel_append": 110000,
    "enable_parallel_hash": 110000,
    "enable_partitionwise_join": 110000,
    "jit": 110000,
    "jit_above_cost": 110000,
    "max_parallel_maintenance_workers": 110000,
    "parallel_leader_participation": 110000,
    "plan_cache_mode": 120000,
    "shared_memory_type": 120000,
    "wal_init_zero": 120000,
    "wal_recycle": 120000,
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
    "io_max_concurrency": 180000,
    "io_method": 180000,
    "io_workers": 180000,
}


# Extensions of contrib that came after 9.3.
CONTRIB_SINCE = {
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
    "a base backup at the default wal_level": (100000, r"WAL level not sufficient"),
    "CREATE STATISTICS": (100000, r"CREATE\s+STATISTICS"),
    "PARTITION BY": (100000, r"PARTITION\s+(BY|OF)"),
    "GENERATED AS IDENTITY": (100000, r"GENERATED\s"),
    "INCLUDE": (110000, r"INCLUDE\s*\("),
    "CALL": (110000, r"CALL\s"),
    "COMMIT in PL/pgSQL": (110000, r"cannot begin/end transactions in PL/pgSQL"),
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
        first = named(SINCE[what])
        raise CannotMeasure(
            f"PostgreSQL {first}",
            f"It needs PostgreSQL {first} or later ({what}), and this is {named(version)}.",
        )


def knows(version: int, setting: str) -> bool:
    """Whether a release knows a setting, as far as the table above goes: others pass."""
    return version >= SETTINGS_SINCE.get(setting.lower(), 0)


def without(version: int, setting: str, wanted: object) -> bool:
    """Whether a release is by itself what a setting that it doesn't know would make it.

    No workers, no JIT, no kind of plan that came later: what isn't there needn't be switched off.
    """
    name = setting.lower()
    counts = ("max_parallel_workers_per_gather", "max_parallel_workers")
    kinds = ("jit", *(one for one in SETTINGS_SINCE if one.startswith("enable_")))
    off = {"0"} if name in counts else {"off", "false"} if name in kinds else set()
    return not knows(version, name) and str(wanted).lower() in off


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


def lacking(version: int, error: BaseException) -> CannotMeasure | None:
    """Why a release can't do what it was asked to, if it came before what the error complains of.

    `error` is the server's, or a tool's that quotes it. None for everything that the tables above
    don't know, or that this release should know: that is nobody's but the asker's fault.
    """
    said = str(error)
    named_there = {name for pattern in _COMPLAINTS for name in pattern.findall(said)}
    first_of = SINCE | SETTINGS_SINCE | CONTRIB_SINCE
    found = {name: first_of[name] for name in named_there if name in first_of}
    found |= {
        name: first
        for name, (first, pattern) in WRITTEN_SINCE.items()
        if re.search(pattern, said, re.IGNORECASE)
    }
    for name, first in found.items():
        if version < first:
            return CannotMeasure(
                f"PostgreSQL {named(first)}",
                f"It needs PostgreSQL {named(first)} or later ({name}), and this is"
                f" {named(version)}.",
            )
    return None


def writes(version: int, what: str) -> bool:
    """Whether a release reads what is written so (a key of `WRITTEN_SINCE`)."""
    return version >= WRITTEN_SINCE[what][0]


def require_options(version: int, options: Iterable[str]) -> None:
    """Raise CannotMeasure for an option of EXPLAIN that the release doesn't know."""
    for option in options:
        if (what := f"EXPLAIN ({option.upper()})") in SINCE:
            require(version, what)


def named(version: int) -> str:
    """The release's name without its minor number: "18", "9.6"."""
    if version >= 100000:
        return str(version // 10000)
    return f"{version // 10000}.{version // 100 % 100}"


def number(release: tuple[int, ...]) -> int:
    """`server_version_num` of a version's numbers: (9, 6, 24) is 90624, (18, 6) is 180006."""
    major, minor, patch = (*release, 0, 0)[:3]
    return major * 10000 + (minor if major >= 10 else minor * 100 + patch)


def wal_position(version: int) -> str:
    """The function that says up to where WAL has been inserted."""
    return "pg_current_wal_insert_lsn" if version >= 100000 else "pg_current_xlog_insert_location"


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
    return "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"
