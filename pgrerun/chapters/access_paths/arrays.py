"""Arrays: as a list of keys, in a column, and in a PL/pgSQL variable."""

from functools import partial

import numpy as np
import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import KEYED, accounts, only
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, plans
from pgrerun.relations import loading

# ---- indexcol = ANY (array)

_KEYS = 500
_WANTED = 10  # the first few of them, in order
LISTS = {"keys far apart": "SELECT n * {step} + 1 FROM generate_series(0, {keys} - 1) AS n", "neighbouring keys": "SELECT n + 1 FROM generate_series(0, {keys} - 1) AS n"}
ALL, FEW = "all of them", "the first few in order"


def lists(chapter: Chapter) -> pd.DataFrame:
    """Accounts by a list of keys, by a plain index scan and by a bitmap.

    A row per list, question and way. Columns: keys, asked, way (what was allowed), node (what the plan has), sorts (whether it
    sorts), searches (descents of the tree; None before PostgreSQL 18), pages (touched).
    """
    server, rows = chapter.server, []
    accounts(chapter).ready(server, KEYED)
    with server.connect() as connection:
        for keys, series in LISTS.items():
            series = series.format(step=chapter.parameters.accounts // _KEYS, keys=_KEYS)
            literal = "{" + ",".join(str(key) for (key,) in connection.execute(series)) + "}"
            for asked, limit in ((ALL, ""), (FEW, f" LIMIT {_WANTED}")):
                for way in ("indexscan", "bitmapscan", "either"):
                    only(connection, *(("indexscan", "bitmapscan") if way == "either" else (way,)))
                    plan = plans.explain(connection, f"SELECT aid, bid FROM {KEYED} WHERE aid = ANY ('{literal}') ORDER BY aid{limit}", execute=True)
                    rows.append((keys, asked, way, *_summary(plan)))
    return pd.DataFrame(rows, columns=["keys", "asked", "way", "node", "sorts", "searches", "pages"])


def _summary(plan: plans.Plan) -> tuple:
    node = next(node for node in plan.walk() if node.relation)
    searches = [n.properties["Index Searches"] for n in plan.walk() if "Index Searches" in n.properties]
    return node.node_type, bool(plan.find("Sort")), sum(searches) if searches else None, plan.buffers["shared_hit"] + plan.buffers["shared_read"]


def list_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a list of keys can be looked up by a plain index scan, in order, and what that is good for."""
    if found is None:
        return None
    at = found.set_index(["keys", "asked", "way"])
    plain = at.xs("indexscan", level="way")
    few = at.xs(FEW, level="asked")
    return {
        "a plain index scan looks up a list of keys": bool((plain["node"] == "Index Scan").all()),
        "it returns them in order, without a sort": not plain["sorts"].any(),
        "for the first few it touches fewer pages than a bitmap": bool((few.xs("indexscan", level="way")["pages"] < few.xs("bitmapscan", level="way")["pages"]).all()),
        "the planner then prefers it": bool((few.xs("either", level="way")["node"] == "Index Scan").all()),
    }


# ---- selectivity

_ROWS, _TAGS = 20_000, 200  # few enough rows for ANALYZE to see all of them
_PER_ROW = 5
WITH, WITHOUT = "with the most common elements", "without"
OPERATORS = {"&&": "overlaps", "<@": "is contained by"}
_ASKED = {"&&": [[1], [3, 8], [20], [50, 60, 70], [120], [180, 190]], "<@": [range(1, 4), range(1, 9), range(1, 17), range(1, 33), range(1, 65), range(1, 129)]}


def selectivity(chapter: Chapter) -> pd.DataFrame:
    """Estimated and true rows of conditions on a column of small arrays, whose elements are drawn by Zipf's law.

    Columns: operator, condition (number), elements (of its constant), statistics (WITH or WITHOUT), estimated, true, q_error.
    """
    server, rows = chapter.server, []
    generator = np.random.default_rng(chapter.parameters.seed)
    weights = 1 / np.arange(1, _TAGS + 1)
    drawn = generator.choice(np.arange(1, _TAGS + 1), size=(_ROWS, _PER_ROW), p=weights / weights.sum())
    with server.connect() as connection:
        with connection.transaction():
            loading.replace(connection, "tagged", "CREATE TABLE tagged (tags int[]) WITH (autovacuum_enabled = off)")
            with connection.cursor().copy("COPY tagged FROM STDIN") as copy:
                for row in drawn:
                    copy.write_row((sorted({int(tag) for tag in row}),))
        for known, command in ((WITHOUT, "VACUUM tagged"), (WITH, "ANALYZE tagged")):
            connection.execute(command)  # both leave the true number of rows behind, vacuum no more than that
            rows += [
                (operator, number, len(constant), known, *_estimate(connection, operator, constant))
                for operator, constants in _ASKED.items() for number, constant in enumerate(constants)
            ]  # fmt: skip
        connection.execute("DROP TABLE tagged")
    return pd.DataFrame(rows, columns=["operator", "condition", "elements", "statistics", "estimated", "true", "q_error"])


def _estimate(connection: psycopg.Connection, operator: str, constant) -> tuple[float, float, float]:
    literal = "{" + ",".join(map(str, constant)) + "}"
    plan = plans.explain(connection, f"SELECT FROM tagged WHERE tags {operator} '{literal}'", execute=True)
    return plan.rows_estimated, plan.rows_actual, plan.q_error


def q_errors(found: pd.DataFrame | None) -> pd.DataFrame | None:
    """Median and largest q-error. Columns: operator, without (median, largest), with (median, largest)."""
    if found is None:
        return None
    table = found.groupby(["operator", "statistics"])["q_error"].agg(["median", "max"]).unstack("statistics")
    columns = {f"{word} {known}": table[name, known] for known in (WITHOUT, WITH) for name, word in (("median", "median"), ("max", "largest"))}
    return pd.DataFrame(columns).rename(index=OPERATORS).rename_axis("operator").reset_index()


def selectivity_gain(found: pd.DataFrame | None, seed: int = 0) -> statistics.Interval | None:
    """Q-error without statistics on elements over that with them, over all conditions."""
    if found is None:
        return None
    by = found.pivot(index=["operator", "condition"], columns="statistics", values="q_error")
    return statistics.ratio(by[WITHOUT], by[WITH], seed=seed)


# ---- assignment in PL/pgSQL

IN_PLACE, COPIED = "assigned in place", "copied at every assignment"
ELEMENTS = {IN_PLACE: (4_000, 16_000, 64_000), COPIED: (500, 1_200, 3_000)}
_LOOP = {
    IN_PLACE: "DO $$ DECLARE a int[] := array_fill(0, ARRAY[{n}]); BEGIN FOR i IN 1..{n} LOOP a[i] := i; END LOOP; END $$",
    COPIED: "DO $$ DECLARE a int[] := array_fill(0, ARRAY[{n}]); BEGIN FOR i IN 1..{n} LOOP a := pgrerun_set(a, i); END LOOP; END $$",
}

# What it returns is assigned anew, as a whole.
SETTER = "CREATE OR REPLACE FUNCTION pgrerun_set(a int[], i int) RETURNS int[] LANGUAGE plpgsql AS $$ BEGIN a[i] := i; RETURN a || '{}'::int[]; END $$"


def assignments(chapter: Chapter) -> None:
    """Fill an array element by element, in place and by a function that hands a flat copy back each time."""
    with chapter.server.connect() as connection:
        connection.execute(SETTER)
        arms = [Arm(f"{way}, {elements}", partial(_assigned, connection, way, elements)) for way, sizes in ELEMENTS.items() for elements in sizes]
        chapter.compare("assignments", arms, {"seconds": "s"})
        connection.execute("DROP FUNCTION pgrerun_set")


def _assigned(connection: psycopg.Connection, way: str, elements: int, block: Block) -> dict[str, float]:
    with clock.stopwatch() as watch:
        connection.execute(_LOOP[way].format(n=elements))
    return {"seconds": watch.seconds}


def exponent(chapter: Chapter, way: str) -> statistics.Interval | None:
    """Of the time to fill an array, over its length: 1 if an assignment costs the same in a long array, 2 if it costs in proportion."""
    table = chapter.table("assignments", "seconds")
    if table.empty:
        return None
    pairs = [(n, seconds) for n in ELEMENTS[way] for seconds in table[f"{way}, {n}"]]
    return statistics.exponent(*zip(*pairs))


def assignment_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether an assignment's cost depends on the array's length."""
    place, copied = exponent(chapter, IN_PLACE), exponent(chapter, COPIED)
    if None in (place, copied):
        return None
    return {"the time to fill an array grows no faster than its length": place.low <= 1.05, "it would if the array were copied at every assignment": copied.low > place.high}
