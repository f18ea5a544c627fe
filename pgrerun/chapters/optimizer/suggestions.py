"""Section 4: what the report asked for, and what of it is there today."""

import time
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer import scans
from pgrerun.chapters.optimizer.faults import set_statistics
from pgrerun.chapters.optimizer.queries import INDEX, forced, large_tuples, method_of, session, small_tuples
from pgrerun.chapters.optimizer.scans import CLUSTERED, COLD, SHUFFLED, TIMED, WARM
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.instruments import plans
from pgrerun.relations import Wisconsin, loading

# ---- statistics: at index creation, by the daemon, by hand

_FRESH = "fresh"  # relation


def _fresh(connection: psycopg.Connection, tuples: int) -> None:
    """A relation with one attribute, never analyzed."""
    with connection.transaction():
        loading.replace(connection, _FRESH, f"CREATE TABLE {_FRESH} (key int4) WITH (autovacuum_enabled = off)")
        connection.execute(f"INSERT INTO {_FRESH} SELECT generate_series(0, {tuples - 1})")
    connection.execute(f"VACUUM {_FRESH}")  # its size is known, its values aren't


def _known(connection: psycopg.Connection, relation: str = _FRESH) -> int:
    """Attributes of a relation that have statistics."""
    return connection.execute("SELECT count(*) FROM pg_stats WHERE schemaname = current_schema() AND tablename = %s", [relation]).fetchone()[0]


def _estimate(connection: psycopg.Connection, where: str, relation: str = _FRESH) -> int:
    return int(plans.explain(connection, f"SELECT * FROM {relation} WHERE {where}").rows_estimated)


def index_creation(chapter: Chapter) -> pd.DataFrame:
    """What CREATE INDEX tells the optimizer: step, statistics (attributes that have them), rows, estimated.

    The rows are those above the greatest value that was there when the relation was analyzed.
    """
    tuples, found = large_tuples(), []
    with session(chapter.server) as connection:
        _fresh(connection, tuples)

        def look(step: str, where: str) -> None:
            actual = connection.execute(f"SELECT count(*) FROM {_FRESH} WHERE {where}").fetchone()[0]
            found.append((step, _known(connection), actual, _estimate(connection, where)))

        # Half as many rows again above the greatest value known, so that they can't be missed.
        half = f"key >= {tuples // 2}"
        look("loaded", half)
        connection.execute(f"CREATE INDEX {_FRESH}_key ON {_FRESH} (key)")
        look("CREATE INDEX", half)
        connection.execute(f"DROP INDEX {_FRESH}_key")
        connection.execute(f"ANALYZE {_FRESH}")
        look("ANALYZE", half)
        connection.execute(f"INSERT INTO {_FRESH} SELECT generate_series({tuples}, {3 * tuples // 2 - 1})")
        above = f"key >= {tuples + tuples // 4}"
        look("rows added above, no index", above)
        connection.execute(f"CREATE INDEX {_FRESH}_key ON {_FRESH} (key)")
        look("rows added above, CREATE INDEX", above)
    return pd.DataFrame(found, columns=["step", "statistics", "rows", "estimated"])


def creation_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether an index brings the least and the greatest value with it."""
    if found is None:
        return None
    rows = found.set_index("step")
    far = lambda step: abs(rows.at[step, "estimated"] / rows.at[step, "rows"] - 1)  # noqa: E731
    return {
        "CREATE INDEX gathers statistics": bool(rows.at["CREATE INDEX", "statistics"] > 0),
        "the optimizer takes the greatest value from an index": bool(far("rows added above, CREATE INDEX") < far("rows added above, no index")),
    }


def daemon(chapter: Chapter, patience: float = 30) -> pd.DataFrame:
    """Statistics after loading and after a change, gathered by nobody but the daemon: event, known (the greatest value), seconds.

    An own server whose daemon wakes up every second. ServerError if it never comes.
    """
    server, found = chapter.cluster(autovacuum="on", autovacuum_naptime=1), []
    with session(server) as connection:
        with connection.transaction():
            loading.replace(connection, _FRESH, f"CREATE TABLE {_FRESH} (key int4) WITH (autovacuum_analyze_threshold = 10)")
        for event, first in (("loaded", 0), ("as many rows added", large_tuples())):
            connection.execute(f"INSERT INTO {_FRESH} SELECT generate_series({first}, {first + large_tuples() - 1})")
            started, most = time.monotonic(), first + large_tuples() - 1
            while (known := _greatest(connection)) != most:
                if time.monotonic() - started > patience:
                    raise ServerError(f"The autovacuum daemon of {server.name} gathered no statistics in {patience:g} s.")
                time.sleep(0.05)
            found.append((event, most, known, time.monotonic() - started))
    return pd.DataFrame(found, columns=["event", "greatest value", "known to the optimizer", "seconds"])


def _greatest(connection: psycopg.Connection) -> int | None:
    """The end of the histogram of a key."""
    query = "SELECT (histogram_bounds::text::int[])[array_upper(histogram_bounds::text::int[], 1)] FROM pg_stats WHERE tablename = %s AND schemaname = current_schema()"
    row = connection.execute(query, [_FRESH]).fetchone()
    return row[0] if row else None


def daemon_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the daemon gathers statistics and keeps them up."""
    if found is None:
        return None
    known = (found["greatest value"] == found["known to the optimizer"]).tolist()
    return {"the daemon gathers the extremes of a new relation": known[0], "it gathers them again after a change": known[1]}


@dataclass(frozen=True)
class ByHand:
    """Statistics of one attribute written by hand: how many values that takes, and what a mistake does.

    `fed`, `analyzed`, `mistaken`: rows estimated for the same range of `rows` rows; `warnings`: what the server said about the mistake.
    """

    values: int
    rows: int
    unknown: int
    fed: int
    mistaken: int
    analyzed: int
    warnings: tuple[str, ...]


def by_hand(chapter: Chapter) -> ByHand:
    """Feed the optimizer the extremes of a relation by hand, then with a wrong greatest value, then by ANALYZE."""
    tuples, warnings = large_tuples(), []
    where = f"key >= {tuples // 4}"
    with session(chapter.server) as connection:
        _fresh(connection, tuples)
        connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary))
        unknown = _estimate(connection, where)
        values = {"attname": "'key'", "inherited": "false", "null_frac": "0::real", "avg_width": "4", "n_distinct": "-1::real"}
        set_statistics(connection, "attribute", _FRESH, **values, histogram_bounds=f"'{{0,{tuples - 1}}}'::text")
        fed = _estimate(connection, where)
        set_statistics(connection, "attribute", _FRESH, **values, histogram_bounds=f"'{{0,{tuples // 8}}}'::text")
        mistaken = _estimate(connection, where)
        connection.execute(f"ANALYZE {_FRESH}")
        analyzed = _estimate(connection, where)
    return ByHand(len(values) + 3, 3 * tuples // 4, unknown, fed, mistaken, analyzed, tuple(warnings))


def burden(found: ByHand | None) -> pd.DataFrame | None:
    """The same, a row per finding."""
    if found is None:
        return None
    rows = {
        "values to be given for one attribute": found.values, "rows of the range": found.rows, "estimated, nothing known": found.unknown,
        "estimated, fed by hand": found.fed, "estimated, fed a wrong greatest value": found.mistaken,
        "warnings about it": ", ".join(found.warnings) or "none", "estimated after ANALYZE": found.analyzed,
    }  # fmt: skip
    return pd.DataFrame({"finding": list(rows), "value": list(rows.values())}, dtype=object)


def burden_facts(found: ByHand | None) -> dict[str, bool] | None:
    """What makes it a burden: much to say, nobody checks it, and a command knows it all."""
    if found is None:
        return None
    near = lambda rows: abs(rows / found.rows - 1) < 0.05  # noqa: E731
    return {
        "as much has to be given as in 1990, five values or more": found.values >= 5,
        "a wrong value is believed without a warning": not near(found.mistaken) and not found.warnings,
        "ANALYZE finds the same without being told anything": near(found.analyzed) and near(found.fed),
    }


# ---- clustering


def clustering(chapter: Chapter) -> pd.DataFrame:
    """What the optimizer thinks of the order of tuples: relation ("analyzed" or "never analyzed"), layout, correlation, cost of an index scan of a tenth.

    The range and its tuples are the same; only their order in the relation differs.
    """
    found = []
    with session(chapter.server) as connection:
        for layout, order in ((CLUSTERED, "n"), (SHUFFLED, "n * 4871 % 10007")):
            with connection.transaction():
                loading.replace(connection, _LAID_OUT, f"CREATE TABLE {_LAID_OUT} (key int4, string text) WITH (autovacuum_enabled = off)")
                connection.execute(
                    f"INSERT INTO {_LAID_OUT} SELECT n, repeat('x', 200) FROM generate_series(0, {large_tuples() - 1}) AS n ORDER BY {order}"
                )
                connection.execute(f"CREATE INDEX {_LAID_OUT}_key ON {_LAID_OUT} (key)")
            for state, command in (("never analyzed", "VACUUM"), ("analyzed", "ANALYZE")):
                connection.execute(f"{command} {_LAID_OUT}")
                known = connection.execute("SELECT correlation FROM pg_stats WHERE schemaname = current_schema() AND tablename = %s AND attname = 'key'", [_LAID_OUT]).fetchone()
                with forced(connection, INDEX):
                    plan = plans.explain(connection, f"SELECT * FROM {_LAID_OUT} WHERE key < {large_tuples() // 10}")
                found.append((state, layout, round(known[0], 2) if known else None, plan.rows_estimated, plan.total_cost))
    return pd.DataFrame(found, columns=["relation", "layout", "correlation", "rows", "cost"])


_LAID_OUT = "laid_out"  # relation


def clustering_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether clustered and shuffled tuples cost the same."""
    if found is None:
        return None
    cost = found.set_index(["relation", "layout"])["cost"]
    return {
        f"{state}: the clustered relation costs what the other one does": bool(0.95 <= cost[state, CLUSTERED] / cost[state, SHUFFLED] <= 1.05)
        for state in ("analyzed", "never analyzed")
    }


def clusterable(chapter: Chapter) -> pd.DataFrame:
    """CLUSTER on every attribute in turn: attribute, correlation and pages that a scan of all its tuples by the index touches, before and after."""
    found = []
    relation = Wisconsin("reordered", small_tuples(), attributes="1990")
    with session(chapter.server) as connection:
        for attribute in relation.integers + relation.texts:
            relation.load(connection)
            connection.execute(f"CREATE INDEX reordered_key ON reordered ({attribute})")
            before = _order(connection, attribute)
            connection.execute("CLUSTER reordered USING reordered_key")
            connection.execute("ANALYZE reordered")
            found.append((attribute, *before, *_order(connection, attribute)))
        connection.execute("DROP TABLE reordered")
    return pd.DataFrame(found, columns=["attribute", "correlation before", "jumps before", "correlation after", "jumps after"])


def _order(connection: psycopg.Connection, attribute: str) -> tuple[float, int]:
    """The correlation that the optimizer knows, and how often a walk in the attribute's order goes to another page."""
    known = connection.execute("SELECT correlation FROM pg_stats WHERE tablename = 'reordered' AND attname = %s AND schemaname = current_schema()", [attribute]).fetchone()
    jumps = connection.execute(
        f"SELECT count(*) FROM (SELECT page, lag(page) OVER () AS previous FROM"
        f" (SELECT (ctid::text::point)[0] AS page FROM reordered ORDER BY {attribute}, ctid) AS walk) AS steps WHERE page <> previous"
    ).fetchone()[0]
    return round(known[0], 2), jumps


def cluster_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether any attribute can be clustered on, and whether the optimizer hears of it."""
    if found is None:
        return None
    return {
        f"CLUSTER orders the relation by each of its {len(found)} attributes": bool((found["jumps after"] == found["jumps after"].min()).all()),
        "the optimizer knows the order afterwards": bool((found["correlation after"] > 0.99).all()),
    }


@dataclass(frozen=True)
class Declared:
    """A relation loaded in order without saying so: `correlation` found by ANALYZE; whether an order can be `declarable`
    and is believed; whether the optimizer trusts it enough to leave a sort out (`unsorted`)."""

    correlation: float
    declarable: bool
    unsorted: bool


def declared(chapter: Chapter) -> Declared:
    """Load a relation in order, look what ANALYZE makes of it; then declare an order that isn't there."""
    with session(chapter.server) as connection:
        _fresh(connection, large_tuples())
        connection.execute(f"ANALYZE {_FRESH}")
        query = "SELECT correlation FROM pg_stats WHERE tablename = %s AND schemaname = current_schema()"
        found = connection.execute(query, [_FRESH]).fetchone()[0]
        unsorted = not plans.explain(connection, f"SELECT * FROM {_FRESH} ORDER BY key").find("Sort")
        try:
            with connection.transaction(force_rollback=True):
                set_statistics(connection, "attribute", _FRESH, attname="'key'", inherited="false", correlation="-0.25::real")
                declarable = round(connection.execute(query, [_FRESH]).fetchone()[0], 2) == -0.25
        except CannotMeasure:
            declarable = False
    return Declared(round(found, 2), declarable, unsorted)


def declared_facts(found: Declared | None) -> dict[str, bool] | None:
    """What became of the wish for a declaration."""
    if found is None:
        return None
    return {
        "an order can be declared": found.declarable,
        "without a declaration the order goes unnoticed": found.correlation < 0.99,
    }


def seen_of_declared(found: Declared) -> pd.DataFrame:
    """The same, a row per finding."""
    rows = {
        "correlation that ANALYZE finds in a relation loaded in order": found.correlation, "can another one be declared?": found.declarable,
        "is the relation read in order without a sort?": found.unsorted,
    }  # fmt: skip
    return pd.DataFrame({"finding": list(rows), "value": list(rows.values())}, dtype=object)


# ---- only one default


def assumed(chapter: Chapter) -> pd.DataFrame:
    """The scans that the planner takes when it is told the wrong order: layout, selectivity, right, wrong (methods).

    The correlation of the timed relation's two attributes is exchanged by hand, and that rolled back.
    """
    def chosen() -> pd.Series:
        found = scans.planned_with(chapter, connection, TIMED, list(scans.ATTRIBUTES))
        return found[found["chosen"]].set_index(["layout", "selectivity"])["method"]

    with session(chapter.server) as connection:
        right = chosen()
        with connection.transaction(force_rollback=True):
            for attribute, correlation in ((scans.ATTRIBUTES[CLUSTERED], 0), (scans.ATTRIBUTES[SHUFFLED], 1)):
                set_statistics(connection, "attribute", TIMED, attname=f"'{attribute}'", inherited="false", correlation=f"{correlation}::real")
            wrong = chosen()
    return pd.DataFrame({"right": right, "wrong": wrong}).reset_index()


def price(chapter: Chapter, found: pd.DataFrame | None, layout: str, cache: str) -> statistics.Interval | None:
    """Time of the whole sweep with the plans of the wrong assumption over that with the right ones; None if it wasn't timed."""
    times = scans.times(chapter, layout, cache)
    if found is None or times is None:
        return None
    rows = found[found["layout"] == layout]
    total = lambda which: sum(times[method, selectivity] for method, selectivity in zip(rows[which], rows["selectivity"]))  # noqa: E731
    return statistics.ratio(total("wrong"), total("right"), seed=chapter.parameters.seed)


# ---- the rest of the list


def became(chapter: Chapter) -> pd.DataFrame:
    """What of section 4 exists on this server: suggestion, looked at, found."""
    with session(chapter.server) as connection:
        one = lambda sql: connection.execute(sql).fetchone()[0]  # noqa: E731
        catalogs = "FROM pg_class c WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'"
        indexed = one(f"SELECT count(*) {catalogs} AND EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid)")
        all_catalogs = one(f"SELECT count(*) {catalogs}")
        hashed = one(
            f"SELECT count(*) {catalogs} AND EXISTS (SELECT FROM pg_index JOIN pg_class i ON i.oid = indexrelid"
            " JOIN pg_am ON pg_am.oid = i.relam WHERE indrelid = c.oid AND amname = 'hash')"
        )
        noticed = one("SELECT count(*) FROM pg_stats WHERE schemaname = current_schema() AND attname = 'unique2' AND correlation > 0.99")
        lookup = plans.explain(connection, "SELECT * FROM pg_attribute WHERE attrelid = 1259 AND attnum = 1")
        rows = [
            ("indices on system catalogs", "catalogs with an index", f"{indexed} of {all_catalogs}"),
            ("the same, used", "plan that finds an attribute", method_of(lookup)),
            ("hash access to system catalogs", "hash indices on catalogs", hashed),
            ("checks that can be left out", "assertions in this build", one("SHOW debug_assertions")),
            ("extremes found by the daemon", "default of autovacuum", one("SELECT boot_val FROM pg_settings WHERE name = 'autovacuum'")),
            ("clustering", "relations in order that ANALYZE noticed", noticed),
        ]
    return pd.DataFrame(rows, columns=["suggestion", "looked at", "found"])


def dearest(chapter: Chapter, found: pd.DataFrame | None) -> statistics.Interval | None:
    """The dearer of the two wrong assumptions, cold where that was timed, as on the report's machine, else warm."""
    for cache in (COLD, WARM):
        prices = [interval for layout in (CLUSTERED, SHUFFLED) if (interval := price(chapter, found, layout, cache)) is not None]
        if prices:
            return max(prices, key=lambda interval: interval.estimate)
    return None
