"""The talk's join of a small relation with two large ones, in the order of 9.1 and in that of 9.2."""

from functools import partial

import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import KEYED, Accounts, timed
from pgrerun.chapters.access_paths.lookups import DIRECT, filled
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import pages, plans
from pgrerun.server import Server, set_session

SMALL = "generate_series({first}, {last}, {step}) AS g"
FREE = "SELECT * FROM {small} LEFT JOIN ({a} AS a JOIN {b} AS b USING (aid)) ON g = aid"
# OFFSET 0 keeps what is outside from being pushed inside: the large tables are joined first, as every release before 9.2 had to.
FENCED = "SELECT * FROM {small} LEFT JOIN (SELECT * FROM {a} AS a JOIN {b} AS b USING (aid) OFFSET 0) AS j ON g = aid"
_SELF = "enable_self_join_elimination"

PARAMETERIZED, DEFAULT, BEFORE, FENCE = "index probes, as in 9.2", "today's own plan", "merge joins, as in 9.1", "large tables first, today's joins"
EARLY = "merge joins, all keys at the table's beginning"
_MERGE = ("enable_nestloop", "enable_hashjoin", "enable_seqscan", "enable_bitmapscan")
ARMS = {
    PARAMETERIZED: (FREE, ()),
    DEFAULT: (FREE, None),
    BEFORE: (FREE, _MERGE),
    EARLY: (FREE, _MERGE),
    FENCE: (FENCED, ()),
}
"""The query, and what is switched off for it; a table joined to itself stays two tables except in today's own plan."""


def sizes(chapter: Chapter) -> tuple[int, ...]:
    """Rows of the large relation, over which the join is measured."""
    return tuple(chapter.parameters.accounts // part for part in (10, 3, 1))


def relation(rows: int) -> str:
    """The large relation of so many rows."""
    return f"joined_{rows}"


def query(form: str, a: str, b: str, step: int = 1) -> str:
    """A form of the query with its relations; the small one has as many keys as in print, every `step`th from `step` on."""
    keys = int(published.cell("access_paths_join", "rows", "value"))
    return form.format(small=SMALL.format(first=step, last=step * keys, step=step), a=a, b=b)


def _of(arm: str, name: str, rows: int) -> str:
    """An arm's query: its keys are spread over the whole table, or its first ones."""
    keys = int(published.cell("access_paths_join", "rows", "value"))
    return query(ARMS[arm][0], name, name, 1 if arm == EARLY else rows // keys)


def _set(connection: psycopg.Connection, off: tuple[str, ...] | None) -> None:
    connection.execute("RESET ALL")
    connection.execute("SET max_parallel_workers_per_gather = 0")
    for name in off or ():
        connection.execute(f"SET {name} = off")
    if off is not None and connection.execute("SELECT current_setting(%s, true)", [_SELF]).fetchone()[0]:
        connection.execute(f"SET {_SELF} = off")


CLAIMS = ("haas-050", "haas-051", "haas-052")


def load(chapter: Chapter) -> None:
    """The large relation in every size."""
    for rows in sizes(chapter):
        Accounts(rows).load(chapter.server, relation(rows))


def times(chapter: Chapter) -> None:
    """9.1's plan and 9.2's at every size."""
    server = chapter.server
    with server.connect() as connection:
        path = connection.execute("SHOW search_path").fetchone()[0]
        for rows in sizes(chapter):
            arms = [Arm(arm, partial(_joined, connection, path, arm, relation(rows), rows)) for arm in (BEFORE, PARAMETERIZED)]
            chapter.compare(f"join_{rows}", arms, {"seconds": "s"})


def _joined(connection: psycopg.Connection, path: str, arm: str, name: str, rows: int, block: Block) -> dict[str, float]:
    _set(connection, ARMS[arm][1])
    set_session(connection, {"search_path": path})
    return {"seconds": timed(connection, _of(arm, name, rows))}


SHORT = "join_short_of_memory"
FIRST = "index probes, first execution"


def short_of_memory(chapter: Chapter) -> None:
    """The same where the table doesn't fit into memory, as in print: 9.1's plan, and 9.2's for the first time and again.

    Before the first execution the pool is emptied and the session is a new one.
    """
    server, rows = filled(chapter, DIRECT, KEYED), chapter.parameters.accounts
    server.extension("pg_buffercache")
    with server.connect() as connection:
        path = connection.execute("SHOW search_path").fetchone()[0]
        arms = [Arm(arm, partial(_joined, connection, path, arm, KEYED, rows), prepare=partial(_warm, connection, path, arm, rows)) for arm in (BEFORE, PARAMETERIZED)]
        chapter.compare(SHORT, [*arms, Arm(FIRST, partial(_first, server, path, rows))], {"seconds": "s"}, warmup=0)


def _warm(connection: psycopg.Connection, path: str, arm: str, rows: int, block: Block) -> None:
    """The probes have been made before; the merge join leaves nothing useful behind in a pool that is too small."""
    if arm == PARAMETERIZED:
        _joined(connection, path, arm, KEYED, rows, block)


def _first(server: Server, path: str, rows: int, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        pages.evict_all(connection)
    with server.connect() as connection:
        return _joined(connection, path, PARAMETERIZED, KEYED, rows, block)


def speedup(chapter: Chapter, arm: str = PARAMETERIZED) -> statistics.Interval | None:
    """Time of 9.1's plan over that of 9.2's, short of memory, per million rows of the large table: one time grows with the table, the other doesn't."""
    ratio = chapter.ratio(SHORT, "seconds", BEFORE, arm)
    return ratio and ratio.times(1e6 / chapter.parameters.accounts)


def growth(chapter: Chapter, arm: str) -> statistics.Interval | None:
    """Exponent of the time over the size of the large table."""
    pairs = [(rows, seconds) for rows in sizes(chapter) for seconds in chapter.table(f"join_{rows}", "seconds").get(arm, [])]
    return statistics.exponent(*zip(*pairs)) if pairs else None


# ---- plans


def shapes(chapter: Chapter) -> pd.DataFrame:
    """The plan of every arm at the largest size. Columns: arm, plan (in one line), rows_read (of the large tables, all loops), joins (types)."""
    size, rows = max(sizes(chapter)), []
    with chapter.server.connect() as connection:
        path = connection.execute("SHOW search_path").fetchone()[0]
        for arm, (_, off) in ARMS.items():
            _set(connection, off)
            set_session(connection, {"search_path": path})
            plan = plans.explain(connection, _of(arm, relation(size), size), execute=True)
            rows.append((arm, _words(plan), _rows_read(plan), tuple(node.node_type for node in plan.walk() if "Join Type" in node.properties)))
    return pd.DataFrame(rows, columns=["arm", "plan", "rows_read", "joins"])


def _words(plan: plans.Plan) -> str:
    """The shape without what only EXPLAIN's readers care for."""
    return plan.shape().replace(" using ", " by ")


def _rows_read(plan: plans.Plan) -> int:
    return round(sum(node.rows_actual * node.loops for node in plan.walk() if node.relation))


def seen_of_shapes(found: pd.DataFrame | None) -> pd.DataFrame | None:
    """Rows read and plan, for the page."""
    return None if found is None else found[["arm", "rows_read", "plan"]]


def order_facts(found: pd.DataFrame | None, rows: int) -> dict[str, bool] | None:
    """Whether joining the large tables first means to read them whole, and whether that is what made the query slow."""
    if found is None:
        return None
    read = found.set_index("arm")["rows_read"]
    few = 2 * published.cell("access_paths_join", "rows", "value")
    return {
        "with the large tables joined first the planner finds no way around reading them": bool(read[FENCE] >= rows),
        "free to choose, it reads no more of them than is asked for": bool(read[PARAMETERIZED] <= few),
    }


def plan_facts(found: pd.DataFrame | None, rows: int) -> dict[str, bool] | None:
    """Whether the two plans are those that the talk shows."""
    if found is None:
        return None
    at = found.set_index("arm")
    return {
        "9.2's plan is a nested loop of index probes": bool(set(at.at[PARAMETERIZED, "joins"]) == {"Nested Loop"} and "Seq Scan" not in at.at[PARAMETERIZED, "plan"]),
        "9.1's plan merge-joins two whole indexes": bool(set(at.at[BEFORE, "joins"]) == {"Merge Join"} and at.at[BEFORE, "rows_read"] >= 2 * rows),
        "it does so wherever the keys lie": bool(at.at[EARLY, "rows_read"] >= 2 * rows),
        "joined first, the large tables are merge-joined today as well": bool(set(at.at[FENCE, "joins"]) == {"Merge Join"}),
    }


# ---- who needs it

FORMS = {
    "left join over an inner join": FREE,
    "inner joins only": "SELECT * FROM {small} JOIN ({a} AS a JOIN {b} AS b USING (aid)) ON g = aid",
    "left joins in a row": "SELECT * FROM {small} LEFT JOIN {a} AS a ON a.aid = g LEFT JOIN {b} AS b ON b.aid = a.aid",
    "NOT EXISTS over an inner join": "SELECT * FROM {small} WHERE NOT EXISTS (SELECT FROM {a} AS a JOIN {b} AS b USING (aid) WHERE aid = g)",
    "LATERAL over an inner join": "SELECT * FROM {small} LEFT JOIN LATERAL (SELECT * FROM {a} AS a JOIN {b} AS b USING (aid) WHERE aid = g OFFSET 0) AS j ON true",
}
TALKS = "left join over an inner join"


def forms(chapter: Chapter) -> pd.DataFrame:
    """Queries of several forms over the same tables. Columns: form, rows_read, through (whether a key is handed through a join: a nested loop has a join on its inner side)."""
    first, second = (relation(rows) for rows in sorted(sizes(chapter))[-2:])
    rows = []
    with chapter.server.connect() as connection:
        for name, form in FORMS.items():
            plan = plans.explain(connection, query(form, first, second), execute=True)
            rows.append((name, _rows_read(plan), _through(plan)))
    return pd.DataFrame(rows, columns=["form", "rows_read", "through"])


def _through(plan: plans.Plan) -> bool:
    loops = [node for node in plan.find("Nested Loop")]
    return any("Join Type" in below.properties for loop in loops for below in loop.children[1].walk())


def form_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the talk's kind of query is the only one whose plan has to hand a key through a join."""
    if found is None:
        return None
    through = found.set_index("form")["through"]
    return {
        "a left join over an inner join hands its key through a join": bool(through[TALKS]),
        "inner joins alone don't": not through["inner joins only"],
        "left joins in a row don't": not through["left joins in a row"],
        "no other form does": not through[["NOT EXISTS over an inner join", "LATERAL over an inner join"]].any(),
    }
