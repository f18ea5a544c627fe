"""Why something gets faster: an index that helps without being used, and a sort by the general mechanism."""

from functools import partial

import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring.load import drive, lasting
from pgrerun.experiment import Arm, Block
from pgrerun.relations import loading

# ---- a fix that works for another reason

ORDERS, CUSTOMERS = 8_000, 60
BEFORE, INDEXED, STATISTICS = "as it was", "an index on the expressions", "statistics on them, no index"
TABLES = {BEFORE: "orders_before", INDEXED: "orders_indexed", STATISTICS: "orders_statistics"}
# Nearly all orders fit. Of an expression the planner knows nothing and guesses that one row in two hundred does.
QUERY = (
    "SELECT sum(c.discount) FROM {orders} AS o JOIN customers AS c ON c.id = o.customer"
    " WHERE lower(o.state) = 'open' AND lower(o.kind) = 'web';\n"
)
_COLUMNS = "id int PRIMARY KEY, customer int, state text, kind text"
_ROWS = f"n, n % {CUSTOMERS}, CASE WHEN n % 20 = 0 THEN 'Done' ELSE 'Open' END, CASE WHEN n % 20 = 1 THEN 'Shop' ELSE 'Web' END"
_FIX = {INDEXED: "CREATE INDEX {0}_fix ON {0} (lower(state), lower(kind))", STATISTICS: "CREATE STATISTICS {0}_fix ON (lower(state)), (lower(kind)) FROM {0}"}


def orders(chapter: Chapter) -> None:
    """Three equal tables of orders, two of them with a fix, and the customers that all three are joined to."""
    with loading.session(chapter.server) as connection:
        with connection.transaction():
            loading.replace(connection, "customers", "CREATE TABLE customers (id int, discount int) WITH (autovacuum_enabled = off)")
            connection.execute(f"INSERT INTO customers SELECT n, n FROM generate_series(0, {CUSTOMERS - 1}) AS n")
            for arm, name in TABLES.items():
                loading.replace(connection, name, f"CREATE TABLE {name} ({_COLUMNS}) WITH (autovacuum_enabled = off)")
                connection.execute(f"INSERT INTO {name} SELECT {_ROWS} FROM generate_series(1, {ORDERS}) AS n")
                if arm in _FIX:
                    connection.execute(_FIX[arm].format(name))
        for name in ("customers", *TABLES.values()):
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {name}")


def witnessed(chapter: Chapter) -> pd.DataFrame:
    """What happens in each arm: the plan's joins and scans, rows expected and found, how often the new index is scanned.

    The registered prediction is the last column: who builds an index expects it to be scanned.
    """
    orders(chapter)
    rows = []
    with chapter.server.connect() as connection:
        for arm, name in TABLES.items():
            index = f"{name}_fix" if arm == INDEXED else None
            before = _scans(connection, index)
            answer, = connection.execute(QUERY.rstrip(";\n").format(orders=name)).fetchone()
            shape, expected, found = _plan(connection, name)
            rows.append((arm, answer, shape, expected, found, _scans(connection, index) - before))
    return pd.DataFrame(rows, columns=["arm", "answer", "plan", "orders expected", "orders found", "scans of the new index"])


def _scans(connection, index: str | None) -> int:
    """How often an index has been scanned so far; 0 without one. Makes this session hand in its counts."""
    if index is None:
        return 0
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.execute("SELECT pg_stat_clear_snapshot()")
    return connection.execute("SELECT pg_stat_get_numscans(%s::regclass)", (index,)).fetchone()[0]


def _plan(connection, name: str) -> tuple[str, int, int]:
    """Joins and scans of a query's plan from the top, and of the orders' scan the rows expected and found."""
    [[tree]] = connection.execute(f"EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, FORMAT JSON) {QUERY.format(orders=name)}").fetchone()
    nodes = list(_nodes(tree["Plan"]))
    scan = next(node for node in nodes if node.get("Relation Name") == name)
    shape = [node["Node Type"] for node in nodes if "Join" in node["Node Type"] or node["Node Type"] == "Nested Loop"]
    return ", ".join([*shape, scan["Node Type"]]), scan["Plan Rows"], round(scan["Actual Rows"])


def _nodes(node: dict):
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)


def fixes(chapter: Chapter) -> None:
    """The query on all three; `witnessed` must have run."""
    server = chapter.server
    many = lasting(chapter, server, QUERY.format(orders=TABLES[BEFORE]))
    arms = [Arm(arm, partial(_query, chapter, server, QUERY.format(orders=name), many)) for arm, name in TABLES.items()]
    chapter.compare("fixes", arms, {"time": "ms per query"}, warmup=0)


def _query(chapter: Chapter, server, script: str, many: int, block: Block) -> dict[str, float]:
    return {"time": 1000 / drive(chapter, server, script, transactions=many, seed=block.seed).tps}


def fix_facts(chapter: Chapter, seen: pd.DataFrame | None) -> dict[str, bool] | None:
    """The claim that a fix can work for a reason unrelated to its hypothesis."""
    gain = chapter.ratio("fixes", "time", BEFORE, INDEXED)
    if gain is None or seen is None:
        return None
    without = chapter.ratio("fixes", "time", BEFORE, STATISTICS)
    return {
        "the index makes the query faster": gain.low > 1.05,
        "the index is never scanned": int(seen.set_index("arm").at[INDEXED, "scans of the new index"]) == 0,
        "without the index, what it brought along makes the query faster, too": without.low > 1.05,
    }


# ---- a general mechanism beside a specific one

NUMBERS = 30_000
SPECIFIC, GENERAL = "sort support", "the general comparison"
SORTS = {SPECIFIC: "<", GENERAL: "OPERATOR({schema}.<#)"}
_SORT = "SELECT n FROM numbers ORDER BY n USING {operator} OFFSET {last};\n"


def comparisons(chapter: Chapter) -> pd.DataFrame:
    """Make an order of integers that lacks sort support, and show what the catalog says of both.

    The same function compares, called the way that any data type's function is called.
    """
    server = chapter.server
    server.require("superuser")
    with loading.session(server) as connection:
        with connection.transaction():
            loading.replace(connection, "numbers", "CREATE TABLE numbers (n int) WITH (autovacuum_enabled = off)")
            connection.execute(f"INSERT INTO numbers SELECT hashint4(n) FROM generate_series(1, {NUMBERS}) AS n")
            exists = connection.execute("SELECT to_regoperator('<#(int4,int4)') IS NOT NULL").fetchone()[0]
            for statement in () if exists else _OPERATORS:
                connection.execute(statement)
        connection.execute("VACUUM (FREEZE, ANALYZE) numbers")
        query = (
            "SELECT c.opcname, o.oprname, p1.prosrc, p2.prosrc FROM pg_opclass c JOIN pg_amop a ON a.amopfamily = c.opcfamily AND a.amopstrategy = 1"
            " AND a.amoplefttype = 'int4'::regtype AND a.amoprighttype = 'int4'::regtype JOIN pg_operator o ON o.oid = a.amopopr"
            " JOIN pg_amproc f1 ON f1.amprocfamily = c.opcfamily AND f1.amprocnum = 1 AND f1.amproclefttype = 'int4'::regtype AND f1.amprocrighttype = 'int4'::regtype"
            " JOIN pg_proc p1 ON p1.oid = f1.amproc LEFT JOIN pg_amproc f2 ON f2.amprocfamily = c.opcfamily AND f2.amprocnum = 2"
            " AND f2.amproclefttype = 'int4'::regtype LEFT JOIN pg_proc p2 ON p2.oid = f2.amproc"
            " WHERE c.opcname IN ('int4_ops', 'general_ops') AND c.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree') ORDER BY c.opcname DESC"
        )
        found = connection.execute(query).fetchall()
    return pd.DataFrame(found, columns=["operator class", "operator", "compares by", "sort support"])


_OPERATORS = (
    "CREATE FUNCTION general_lt(int4, int4) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt'",
    "CREATE FUNCTION general_eq(int4, int4) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq'",
    "CREATE OPERATOR <# (leftarg = int4, rightarg = int4, function = general_lt)",
    "CREATE OPERATOR =# (leftarg = int4, rightarg = int4, function = general_eq)",
    "CREATE OPERATOR CLASS general_ops FOR TYPE int4 USING btree AS OPERATOR 1 <#, OPERATOR 3 =#, FUNCTION 1 btint4cmp(int4, int4)",
)


def sorts(chapter: Chapter) -> None:
    """The same integers sorted by either; `comparisons` must have run."""
    server = chapter.server
    server.require("superuser")
    scripts = {arm: _SORT.format(operator=operator.format(schema=server.schema), last=NUMBERS - 1) for arm, operator in SORTS.items()}
    many = lasting(chapter, server, scripts[SPECIFIC])
    arms = [Arm(arm, partial(_query, chapter, server, script, many)) for arm, script in scripts.items()]
    chapter.compare("sorts", arms, {"time": "ms per query"}, warmup=0)


def general_over_specific(chapter: Chapter) -> statistics.Interval | None:
    """Time of the sort by the general mechanism over that with sort support."""
    return chapter.ratio("sorts", "time", GENERAL, SPECIFIC)
