"""What the table of releases says is what the releases installed here say themselves."""

import ast
import re
from pathlib import Path

import psycopg
import pytest
from servers import builds_here

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import (
    counters,
    pages,
    pgbench,
    plans,
    process_table,
    server_load,
    sessions,
    sizes,
    wal,
)
from pgrerun.lab.relations import Pgbench
from pgrerun.lab.server import Cluster, bundled, fetched, installed, releases

HERE = {releases.named(programs.number): programs for programs in [*installed(), bundled()]}
HERE = {release.release: release.programs for release in fetched.here()} | HERE
for build, programs in builds_here().items():  # of each version one, as all read the same SQL
    if programs.version not in {one.version for one in HERE.values()}:
        HERE[build] = programs
ALL = list(dict.fromkeys([*(release.release for release in fetched.table()), *HERE]))


def test_nobody_else_compares_a_server_with_a_release_s_number():
    others = Path(releases.__file__).parents[2].rglob("*.py")
    found = [
        f"{path.name}:{node.lineno}"
        for path in others
        if path != Path(releases.__file__)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(one, ast.Constant) and type(one.value) is int and 80200 <= one.value < 10**6
            for one in (node.left, *node.comparators)
        )
    ]
    assert found == []


@pytest.fixture(scope="module", params=ALL)
def server(request):
    """A server of each release that is here, fetched, installed or bundled."""
    if request.param not in HERE:
        pytest.skip(f"PostgreSQL {request.param} isn't here (`pgrerun releases fetch`)")
    with Cluster(HERE[request.param], {"shared_buffers": "16MB"}) as cluster:
        yield cluster


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


@pytest.fixture
def of_a_release(connection):
    """Only a release has all that came with it, and nothing else: no commit on the way to one.

    A beta neither: enable_memoize had another name in 14beta1.
    """
    if re.search("devel|beta", connection.info.parameter_status("server_version")):
        pytest.skip("a development version has some of what came with its release")


@pytest.mark.usefixtures("of_a_release")
def test_settings_are_known_from_the_release_on_that_the_table_names(server, connection):
    query = "SELECT name FROM pg_settings WHERE name = ANY(%s)"
    there = {name for (name,) in connection.execute(query, [list(releases.SETTINGS_SINCE)])}
    expected = {name for name in releases.SETTINGS_SINCE if releases.knows(server.version, name)}
    assert there == expected


@pytest.mark.usefixtures("of_a_release")
def test_views_and_functions_are_there_from_the_release_on_that_the_table_names(server, connection):
    for extension in ("pageinspect", "pg_buffercache", "pg_freespacemap", "pg_walinspect"):
        if server.can(f"contrib:{extension}"):
            server.extension(extension)
    names = [name for name in releases.SINCE if " " not in name]
    query = """
        SELECT name FROM unnest(%s::text[]) AS name WHERE name IN (
            SELECT proname FROM pg_proc UNION SELECT relname FROM pg_class
            UNION SELECT typname FROM pg_type UNION SELECT rolname FROM pg_roles
            UNION SELECT unnest(proargnames) FROM pg_proc WHERE proname NOT LIKE 'gin%%'
            UNION SELECT attname FROM pg_attribute
                WHERE attrelid IN (SELECT oid FROM pg_class WHERE relname LIKE 'pg\\_%%'))"""
    there = {name for (name,) in connection.execute(query, [names])}
    assert there == {name for name in names if releases.has(server.version, name)}


def test_options_of_explain_are_known_from_the_release_on_that_the_table_names(server, connection):
    for option in ("summary", "settings", "wal", "generic_plan", "memory", "serialize"):
        analyze = option in ("wal", "serialize")
        if releases.has(server.version, f"EXPLAIN ({option.upper()})"):
            value = "TEXT" if option == "serialize" else True
            plans.explain(connection, "SELECT 1", execute=analyze, **{option: value})
        else:
            with pytest.raises(CannotMeasure, match="or later"):
                plans.explain(connection, "SELECT 1", execute=analyze, **{option: True})
            with pytest.raises(psycopg.Error):
                connection.execute(f"EXPLAIN ({'ANALYZE, ' * analyze}{option.upper()}) SELECT 1")


# A statement for each way of writing that the table names, and what it needs first.
WRITTEN = {
    "CLUSTER ... USING": "CREATE INDEX by_b ON written (b); CLUSTER written USING by_b",
    "WITH": "WITH x AS (SELECT 1) SELECT * FROM x",
    "OVER": "SELECT count(*) OVER () FROM written",
    "numbers of 2 and of 8 bytes together": "SELECT 1::int8 + 1::int2",
    "TRUNCATE RESTART": "TRUNCATE written RESTART IDENTITY",
    "storage parameters of a table": "ALTER TABLE written SET (autovacuum_enabled = off)",
    "type that is cast to text": "SELECT '(1,1)'::point::text",
    "VACUUM (...)": "VACUUM (FREEZE) pg_class",
    "EXPLAIN (...)": "EXPLAIN (VERBOSE) SELECT 1",
    "DO": "DO $$BEGIN END$$",
    "CREATE INDEX without a name": "CREATE INDEX ON written (a)",
    "a base backup that doesn't wait": "SELECT pg_start_backup('some', true)",
    "aggregate in an order": "SELECT array_agg(a ORDER BY b) FROM written",
    "IF NOT EXISTS": "CREATE TABLE IF NOT EXISTS written (a int)",
    "UNLOGGED": "CREATE UNLOGGED TABLE unlogged (a int)",
    "CREATE EXTENSION": "CREATE EXTENSION IF NOT EXISTS plpgsql",
    "changing statement in WITH": "WITH x AS (DELETE FROM written RETURNING *) SELECT * FROM x",
    "COLLATE": "SELECT 'a' < 'b' COLLATE \"C\"",
    "column that GROUP BY needn't name": (
        "CREATE TABLE keyed (a int PRIMARY KEY, b int); SELECT a, b FROM keyed GROUP BY a"
    ),
    "access method spgist": "CREATE INDEX ON written USING spgist (t)",
    "COPY (FREEZE)": "TRUNCATE written; COPY written FROM '/dev/null' (FREEZE)",
    "LATERAL": "SELECT * FROM written, LATERAL (SELECT a) AS x",
    "MATERIALIZED VIEW": "CREATE MATERIALIZED VIEW seen AS SELECT 1 AS a",
    "SELECT without columns": "SELECT FROM pg_class",
    "FILTER": "SELECT count(*) FILTER (WHERE true)",
    "WITHIN GROUP": "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a) FROM written",
    "WITH ORDINALITY": "SELECT * FROM generate_series(1, 2) WITH ORDINALITY",
    "ALTER SYSTEM": "ALTER SYSTEM SET work_mem = DEFAULT",
    "unnest of several arrays": "SELECT * FROM unnest(ARRAY[1], ARRAY[2])",
    "ON CONFLICT": "INSERT INTO written VALUES (1) ON CONFLICT DO NOTHING",
    "TABLESAMPLE": "SELECT * FROM written TABLESAMPLE SYSTEM (1)",
    "SKIP LOCKED": "SELECT 1 FROM written FOR UPDATE SKIP LOCKED",
    "CREATE INDEX IF NOT EXISTS": "CREATE INDEX IF NOT EXISTS by_a ON written (a)",
    "ALTER OPERATOR ... SET": "ALTER OPERATOR pg_catalog.< (int4, int4) SET (RESTRICT = NONE)",
    "access method brin": "CREATE INDEX ON written USING brin (a)",
    "current_setting of one that may be missing": "SELECT current_setting('some.thing', true)",
    "autovacuum_vacuum_insert_threshold of a table": (
        "ALTER TABLE written SET (autovacuum_vacuum_insert_threshold = 2)"
    ),
    "parallel_workers of a table": "ALTER TABLE written SET (parallel_workers = 2)",
    "VACUUM (DISABLE_PAGE_SKIPPING)": "VACUUM (DISABLE_PAGE_SKIPPING) pg_class",
    "backup beside others": "SELECT pg_start_backup('some', true, false)",
    "a base backup at the default wal_level": "SELECT pg_start_backup('some', true)",
    "CREATE STATISTICS": "CREATE STATISTICS of_written ON a, b FROM written",
    "PARTITION BY": "CREATE TABLE parted (a int) PARTITION BY RANGE (a)",
    "GENERATED AS IDENTITY": "CREATE TABLE made (a int GENERATED ALWAYS AS IDENTITY)",
    "INCLUDE": "CREATE INDEX ON written (a) INCLUDE (b)",
    "CALL": "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; DO 'BEGIN END'; CALL f()",
    "COMMIT in PL/pgSQL": "DO 'BEGIN COMMIT; END'",
    "partitions' indexes": "CREATE TABLE parts (a int) PARTITION BY RANGE (a);"
    " CREATE INDEX ON parts (a)",
    "statistics of most common values": "CREATE STATISTICS of_values (mcv) ON a, b FROM written",
    "AS MATERIALIZED": "WITH x AS MATERIALIZED (SELECT 1) SELECT * FROM x",
    "deduplicate_items of an index": "CREATE INDEX ON written (a) WITH (deduplicate_items = off)",
    "statistics on expressions": "CREATE STATISTICS of_sums ON (a + b), (a - b) FROM written",
    "operator class int4_bloom_ops": "CREATE INDEX ON written USING brin (a int4_bloom_ops)",
    "subquery without an alias": "SELECT * FROM (SELECT 1)",
}


@pytest.mark.parametrize("name", releases.WRITTEN_SINCE)
def test_what_is_written_is_read_from_the_release_on_that_the_table_names(server, name):
    first, _ = releases.WRITTEN_SINCE[name]
    if "devel" in server.version_text:
        pytest.skip("a development version has some of what came with its release")
    with server.connect(autocommit=False) as connection:
        connection.cursor_factory = psycopg.Cursor  # which says it as it is
        connection.execute("CREATE TABLE written (a int, b int, t text)")
        if name.startswith(("ALTER SYSTEM", "COMMIT", "VACUUM")):  # in no transaction
            connection.rollback()
            connection.autocommit = True
        error = None
        try:
            connection.execute(WRITTEN[name])
        except psycopg.Error as met:
            error = met
        connection.autocommit or connection.rollback()
    lacking = error and releases.lacking(server.version, error)
    if server.version >= first:
        # there is no such procedure, and from 15 on the start of a backup has another name
        assert error is None or name == "CALL" or "backup" in name
        assert lacking is None or name not in str(lacking)  # 9.6 lacks another thing for a backup
    else:
        assert lacking is not None and lacking.capability.startswith("PostgreSQL ")
        assert releases.lacking(first, error) is None  # it isn't blamed on one that has it


@pytest.mark.parametrize(
    ("version", "written", "read"),
    [
        (80400, "VACUUM (ANALYZE, FREEZE) t", "VACUUM FREEZE ANALYZE t"),
        (90000, "VACUUM (ANALYZE, FREEZE) t", "VACUUM (ANALYZE, FREEZE) t"),
        (80300, "VACUUM (DISABLE_PAGE_SKIPPING) t", "VACUUM (DISABLE_PAGE_SKIPPING) t"),
        (80300, "CREATE TABLE t WITH (autovacuum_enabled = off) AS SELECT 1", None),
        (
            80300,
            "CREATE INDEX ON t USING hash (a, b)",
            "CREATE INDEX t_a_b_idx ON t USING hash (a, b)",
        ),
        (80400, "EXPLAIN CREATE TABLE t AS SELECT 1", "EXPLAIN SELECT 1"),
        (80200, "CLUSTER t USING t_pkey", "CLUSTER t_pkey ON t"),
        (80300, "CREATE INDEX ON t ((a + 1))", "CREATE INDEX ON t ((a + 1))"),
        (
            80300,
            "CREATE TABLE t (a int) WITH (fillfactor = 50, autovacuum_enabled = off)",
            "CREATE TABLE t (a int) WITH (fillfactor = 50)",
        ),
    ],
)
def test_old_releases_are_told_in_words_that_they_read(version, written, read):
    assert releases.readable(version, written) == (read or "CREATE TABLE t AS SELECT 1")


ASKED = {"max_wal_size": "480MB", "min_wal_size": "32MB", "cluster_name": "x", "jit": "off"}
POOL = {"shared_buffers": "160kB"}
MANY = POOL | {"max_connections": "2"}
WAITS = {"synchronous_commit": "off", "enable_indexonlyscan": "off"}


@pytest.mark.parametrize(
    ("version", "asked", "given"),
    [
        (90400, ASKED, {"checkpoint_segments": "10"}),
        (180000, ASKED, ASKED),
        (80200, WAITS, {"fsync": "off"}),
        (80300, WAITS, {"synchronous_commit": "off"}),
        (80300, POOL, POOL | {"max_connections": "6"}),
        (80300, {"shared_buffers": "1MB"}, {"shared_buffers": "1MB", "max_connections": "60"}),
        (80300, MANY, MANY),
        (80400, POOL, POOL),
    ],
)
def test_settings_have_the_names_of_the_release(version, asked, given):
    assert releases.configured(version, asked) == given


NAMED = Exception('syntax error at or near "WITH named"\nLINE 1: EXPLAIN WITH named AS (...)')
# a commit before a release need have nothing of it
UNFINISHED = ValueError("function txid_current() does not exist")


@pytest.mark.parametrize(
    ("version", "error", "development", "said"),
    [
        (90300, ValueError("function of something"), False, None),
        (80300, UNFINISHED, False, None),
        (80300, UNFINISHED, True, "this is 8.3 in development"),
        # a plan of a named query is asked of no release that has none
        (80300, NAMED, False, "8.4"),
        (80400, NAMED, False, None),
    ],
)
def test_what_a_release_lacks_is_told_by_its_error(version, error, development, said):
    found = releases.lacking(version, error, development=development)
    assert found is None if said is None else said in str(found)


@pytest.mark.parametrize(
    "mistake",
    ["SELECT nothing_at_all()", "SELECT FROM WHERE", "SELECT no_column FROM pg_class"],
)
def test_a_mistake_of_ours_is_no_lack_of_a_release(connection, mistake):
    with pytest.raises(psycopg.Error) as told:
        connection.execute(mistake)
    assert releases.lacking(180000, told.value) is None


def test_settings_of_the_whole_server_change_and_come_back(server):
    shown = lambda: server.fetch("SHOW work_mem")
    before = shown()
    with server.reloaded(work_mem="7MB"):
        assert shown() == ("7MB",) != before
    assert shown() == before and server.programs.number == server.version


def test_a_release_without_it_is_told_with_the_first_that_has_it():
    releases.require(160000, "pg_stat_io")
    with pytest.raises(CannotMeasure, match="PostgreSQL 16 or later .*this is 15") as told:
        releases.require(150014, "pg_stat_io")
    assert told.value.capability == "PostgreSQL 16"
    releases.require_settings(90300, {"work_mem": "1MB", "no such setting": 1})
    with pytest.raises(CannotMeasure, match="WAL_compression, which PostgreSQL has from 9.5 on"):
        releases.require_settings(90324, ["WAL_compression"])


@pytest.mark.parametrize(
    ("version", "name", "value", "needless"),
    [
        (90300, "jit", "off", True),
        (90300, "JIT", False, True),
        (90300, "max_parallel_workers_per_gather", 0, True),
        (130000, "enable_memoize", "off", True),
        (140000, "enable_memoize", "off", False),
        (90300, "max_parallel_workers_per_gather", 2, False),
        (90300, "plan_cache_mode", "off", False),
    ],
)
def test_what_a_release_does_not_have_need_not_be_switched_off(version, name, value, needless):
    assert bool(releases.without(version, name, value)) == needless


def test_wal_and_sizes(server, connection):
    assert server.programs.number == server.version
    # row by row: since 16 a table that is filled by CREATE TABLE AS may get pages beforehand
    connection.execute('CREATE TABLE "Odd name" (n int, t text)')
    rows = "SELECT g, repeat('x', 500) FROM generate_series(1, 150) g"
    connection.execute(f'INSERT INTO "Odd name" {rows}')
    with wal.written(connection) as found:
        connection.execute('DELETE FROM "Odd name"')
    assert found.bytes > 150 * 40 and sizes.pages(connection, '"Odd name"') in (10, 11)
    assert sizes.in_schema(connection, "public")["relation"].tolist() == ["Odd name"]
    connection.execute('DROP TABLE "Odd name"')


def or_set_aside(version, what, act, *given):
    """What `act` returns where the release has it; None where it is set aside for that."""
    if releases.has(version, what):
        return act(*given)
    with pytest.raises(CannotMeasure, match=f"{releases.named(releases.SINCE[what])} or later"):
        act(*given)
    return None


def test_what_the_wal_says(server, connection):
    if server.can("contrib:pg_walinspect"):
        server.extension("pg_walinspect")
    with wal.written(connection) as found:
        connection.execute("CREATE TABLE logged AS SELECT 1")
    ends = found.start, found.end
    records = lambda: wal.records(connection, *ends)["records"].sum() > 0
    assert or_set_aside(server.version, "pg_get_wal_records_info", records) in (None, True)
    marks = lambda: wal.marks(connection, "logged", *ends)
    seen = or_set_aside(server.version, "pg_get_wal_block_info", marks)
    assert seen in (None, {"set": 0, "cleared": 0})
    connection.execute("DROP TABLE logged")


def test_what_is_on_pages_and_which_are_touched(server, connection):
    for extension in ("pg_buffercache", "pageinspect", "pg_freespacemap"):
        if not server.can(f"contrib:{extension}"):
            pytest.skip(server.missing(f"contrib:{extension}"))
        server.extension(extension)
    connection.execute("CREATE TABLE seen (id int PRIMARY KEY, v int)")
    connection.execute("INSERT INTO seen SELECT g, 0 FROM generate_series(1, 1000) g")
    connection.execute("UPDATE seen SET v = 1 WHERE id = 1000")
    page = pages.heap_page(connection, "seen", sizes.pages(connection, "seen") - 1)
    flags = [name for names in page["flags"] for name in names]
    hot = int(releases.offers(connection, "pg_stat_get_tuples_hot_updated"))
    assert flags.count("HEAP_HOT_UPDATED") == flags.count("HEAP_ONLY_TUPLE") == hot
    if releases.has(server.version, "heap_tuple_infomask_flags"):
        query = """SELECT raw_flags FROM heap_page_items(get_raw_page('seen', 0)),
                   LATERAL heap_tuple_infomask_flags(t_infomask, t_infomask2) ORDER BY lp"""
        theirs = [sorted(names) for (names,) in connection.execute(query)]
        first = pages.heap_page(connection, "seen", 0)["flags"]
        assert [sorted(names) for names in first] == theirs
    free = or_set_aside(server.version, "pg_freespace", pages.free_space, connection, "seen")
    assert free is None or len(free) == sizes.pages(connection, "seen")
    or_set_aside(server.version, "pg_buffercache_evict", pages.evict_all, connection)
    work = ["SELECT * FROM seen WHERE id = 1"]
    touched = or_set_aside(server.version, "pg_buffercache_evict", pages.touched, server, work)
    assert touched is None or {"heap", "btree root", "btree leaf"} <= set(touched["kind"])
    connection.execute("DROP TABLE seen")


def test_sessions_that_wait(server, connection):
    connection.execute("CREATE TABLE locked AS SELECT 1 AS v")
    with server.connect(autocommit=False) as holder:
        holder.execute("LOCK TABLE locked")
        with sessions.waiting(server, "SELECT * FROM locked"):
            waiting = releases.waits_for(server.version, "Lock")
            query = f"SELECT count(*) FROM pg_stat_activity WHERE {waiting}"
            assert connection.execute(query).fetchone() == (1,)
            holder.rollback()

    if releases.knows(server.version, "synchronous_commit"):
        assert len(sessions.at_once(server, ["SELECT 1", "SELECT 2"])) == 2
    else:
        with pytest.raises(CannotMeasure, match="synchronous_commit"):
            sessions.at_once(server, ["SELECT 1"])
    connection.execute("DROP TABLE locked")


def test_counts_are_complete_when_the_block_ends(server):
    with server.connect() as connection, counters.Counters(server) as counting:
        connection.execute("CREATE TABLE counted (id int PRIMARY KEY, v int)")
        connection.execute("INSERT INTO counted SELECT g, 0 FROM generate_series(1, 100) g")
        with counting.measured(connection) as delta:
            connection.execute("UPDATE counted SET v = v + 1")
            connection.execute("CHECKPOINT")
        [row] = delta.relations.query("relation == 'counted'").to_dict("records")
        assert row["updated"] == 100 and delta.wal_bytes > 0
        if "buffers_backend" in (delta.bgwriter or {}) or delta.io is not None:
            assert delta.writes.sum() >= 0
        else:  # before 8.3, and in 8.3's development when HOT came
            assert server.version < 80300 or "devel" in server.version_text
            with pytest.raises(CannotMeasure, match="8.3 or later"):
                delta.writes.sum()
        assert (delta.io is None) == (server.version < 160000)
        assert delta.io is not None or list(delta.reads.index) == ["all"]
        flushes = or_set_aside(server.version, "pg_stat_wal", lambda: delta.wal_flushes)
        assert flushes is None or flushes[0] > 0
        found = counters.counts(connection, "counted")
        assert (found["inserted"], found["updated"]) == (100, 100)
        assert (found["newpage_updated"] is None) == (server.version < 160000)
        connection.execute("DROP TABLE counted")


def test_loads_plans_and_processes(server, connection):
    bank = Pgbench(accounts_per_branch=1000)
    bank.load(connection)
    script = (
        "\\set aid random(1, :accounts)\n"
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
    )
    server_load.run(connection, script, 50, variables=bank.variables, seed=1)
    done = pgbench.run(server, script, transactions=50, variables=bank.variables)
    assert done.transactions == 50
    with pytest.raises(ServerError, match="division by zero"):
        pgbench.run(server, "SELECT 1 / (:client_id - 1);", clients=2, transactions=3)
    query = "SELECT sum(abalance) FROM pgbench_accounts"
    assert connection.execute(query).fetchone() == (100,)
    plan = plans.explain(connection, query, execute=True)
    assert plan.scan_of("pgbench_accounts").rows_actual == 1000
    pages_used = or_set_aside(server.version, "EXPLAIN (BUFFERS)", lambda: plan.page_accesses)
    assert pages_used is None or pages_used > 10
    assert process_table.usage(server).cpu_seconds > 0
    connection.execute(f"DROP TABLE {', '.join(bank.relations.values())}")
