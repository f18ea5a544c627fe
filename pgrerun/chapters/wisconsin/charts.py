"""The charts of the chapter: frames from the print, the published run and this run."""

from collections.abc import Sequence

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.wisconsin import evidence, experiments, sentences
from pgrerun.chapters.wisconsin.contenders import (
    BITMAP,
    CONFINED,
    DUCKDB,
    PLAIN,
    POSTGRESQL,
    SEQUENTIAL,
)
from pgrerun.chapters.wisconsin.queries import KEYS, SPECIFIED, label
from pgrerun.page import charts, narrate
from pgrerun.record import printed, statistics


def _ratios(
    rows: charts.Rows, axis: str, question: str, caption: str, name: str, result: str = ""
) -> charts.Figure:
    """Ratios on a logarithmic scale, with a rule where both sides are equal."""
    told = {"result": lambda _: result} if result else {}
    words = charts.Words(question=question, caption=caption, name=name, **told)
    return charts.compare(rows, words, charts.Axis(axis, log=True), reference=charts.Reference(1))


def _printed() -> pd.DataFrame:
    return printed.table(evidence.FIGURE)


def the_print() -> charts.Figure:
    """Figure 3.11 as ratios."""
    return _ratios(
        charts.rows(_printed().ratio.dropna().rename(label), "printed"),
        "time of POSTGRES over that of INGRES",
        question="How much slower than university INGRES was POSTGRES in 1990?",
        caption=(
            "Time of POSTGRES over that of university INGRES, query by query, as printed in"
            " Figure 3.11. Right of the rule INGRES is faster. Queries 20 to 25 are missing:"
            " POSTGRES had no aggregates."
        ),
        name="wisconsin-print",
    )


def _query_by_query(
    chapter: Chapter, name: str, keys: Sequence[str], pair: tuple[str, str], in_print: pd.Series
) -> charts.Rows:
    """Rows for a chart: times of one contender over another's, after what is printed."""
    rows = []
    for key in keys:
        if pd.notna(in_print.get(key)):
            rows.append(charts.row(label(key), "printed", in_print[key]))
        rows.append(chapter.ratios(name, key, {label(key): pair}))
    return rows


def over_duckdb(chapter: Chapter) -> charts.Figure:
    """PostgreSQL over DuckDB at the report's size, beside POSTGRES over INGRES."""
    pair, in_print = (POSTGRESQL, DUCKDB), _printed().ratio
    return _ratios(
        _query_by_query(chapter, experiments.REPORT, KEYS, pair, in_print),
        "time over that of the opponent",
        question="Who wins which query, then and now?",
        caption=(
            "Printed: POSTGRES over INGRES. Measured: PostgreSQL over DuckDB, at the report's size;"
            " right of the rule PostgreSQL is slower."
        ),
        name="wisconsin-duckdb",
        result=_who_wins(chapter),
    )


def _who_wins(chapter: Chapter) -> str:
    """Who wins at each size; nothing where only the report's size was measured, or none."""
    summaries = chapter.show(evidence.summaries)
    return "" if summaries is None else sentences.who_wins(summaries)


def joins(chapter: Chapter) -> charts.Figure:
    """What confinement to nested loops costs, join by join."""
    pair, in_print = (CONFINED, POSTGRESQL), 1 / _printed().ratio
    return _ratios(
        _query_by_query(chapter, experiments.REPORT, evidence.JOINS, pair, in_print),
        "time of nested loops over the other's",
        question="What do hash and merge join gain over nested loops?",
        caption=(
            "At the report's size. Printed: INGRES, which had nested loops only, over POSTGRES."
            " Measured: PostgreSQL confined to nested loops over PostgreSQL as it chooses."
            " Right of the rule nested loops are slower."
        ),
        name="wisconsin-joins",
    )


def conversion(chapter: Chapter) -> charts.Figure:
    """The factor between two machines, query by query."""
    pairs = {key: {label(key): (experiments.UNCACHED, POSTGRESQL)} for key in experiments.CONVERTED}
    return _ratios(
        [chapter.ratios(experiments.MACHINES, key, pair) for key, pair in pairs.items()],
        "time there over time here",
        question="Would one factor convert the times of one machine into those of another?",
        caption=(
            "PostgreSQL at the report's size: time on a machine without memory for the data (a"
            " pool of one megabyte, no cache of the operating system's) over the time on this"
            " machine."
        ),
        name="wisconsin-machines",
    )


def pages_and_seconds(pages: pd.DataFrame) -> charts.Figure:
    """The miniature's pages and INGRES's printed seconds, each relative to query 1."""
    first, rows = pages.iloc[0], []
    for row in pages.itertuples(index=False):
        seconds, touched = row.seconds_1990 / first.seconds_1990, row.touched / first.touched
        rows.append(charts.row(row.query, "measured", seconds, x=touched))
    agreement = sentences.agreement(pages)
    return charts.scatter(
        rows,
        charts.Words(
            question="Do pages explain the seconds of INGRES?",
            caption=(
                "A point for each query, relative to query 1: the printed seconds of university"
                " INGRES with ten thousand tuples over the pages that the miniature touches with a"
                " tenth of them. Joins without an index, where every tuple of one relation meets"
                " every page of another, lie farther left than they would at the report's size. On"
                " the dashed line seconds would grow as pages do; the points farthest from it have"
                " their queries' numbers."
            ),
            name="wisconsin-miniature",
            result=lambda _: (
                "The rank correlation between the pages that a query touches here and its printed"
                f" seconds is {narrate.number(agreement, 2)}, where one would be the same order."
            ),
        ),
        charts.Axis("pages touched, relative to query 1"),
        charts.Axis("printed seconds, relative to query 1"),
    )


# label, queries above, queries below
_EFFECTS = (
    ("1 %: no index / clustered", ["q1"], ["q3"]),
    ("10 %: no index / clustered", ["q2"], ["q4"]),
    ("1 %: non-clustered / clustered", ["q5"], ["q3"]),
    ("10 %: non-clustered / clustered", ["q6"], ["q4"]),
    ("10 %: non-clustered / no index", ["q6"], ["q2"]),
    ("joins: clustered / no index", ["q12", "q13", "q14"], ["q9", "q10", "q11"]),
    ("joinABprime: clustered / non-clustered", ["q13"], ["q16"]),
    ("delete: no index / index", ["q27"], ["q30"]),
    ("update: no index / index", ["q28"], ["q31"]),
    ("insert: no index / index", ["q26"], ["q29"]),
    ("update: other attribute / key", ["q32"], ["q31"]),
)


def index_effects(chapter: Chapter) -> charts.Figure:
    """What an index does to PostgreSQL's times, beside what it did to POSTGRES's."""
    in_print, rows = _printed().postgres.to_frame().T, []
    for n in (SPECIFIED, experiments.all_sizes(chapter)[-1]):
        seconds = [("printed", in_print)]
        for kind, observed in chapter.by_provenance(experiments.at(n)):
            by_query = {key: wide(observed, key)[POSTGRESQL] for key in KEYS}
            seconds.append((kind, pd.DataFrame(by_query)))
        for text, above, below in _EFFECTS:
            for kind, frame in seconds:
                a, b = (evidence.mean(frame[keys]) for keys in (above, below))
                value = (a / b).iloc[0] if kind == "printed" else statistics.ratio(a, b)
                rows.append(charts.row(text, kind, value, panel=f"{n:,} tuples"))
    return _ratios(
        rows,
        "time of the first over the second",
        question="What is an index worth, and to whom?",
        caption=(
            "Times of PostgreSQL in pairs of queries that differ in the index alone, beside the"
            " same pairs of POSTGRES as printed (whose relations had ten thousand tuples in"
            " either panel). Several queries: their geometric mean."
        ),
        name="wisconsin-indices",
    )


def three_scans(chapter: Chapter) -> charts.Figure:
    """The index scans over the sequential scan, by selectivity."""
    in_print, rows = _printed().postgres, []
    for key, full, panel in (("q5", "q1", "1 % of the tuples"), ("q6", "q2", "10 % of the tuples")):
        rows.append(charts.row(PLAIN, "printed", in_print[key] / in_print[full], panel=panel))
        pairs = {scan: (scan, SEQUENTIAL) for scan in (PLAIN, BITMAP)}
        rows.append(chapter.ratios(experiments.forced_at(SPECIFIED), key, pairs, panel=panel))
    return _ratios(
        rows,
        "time over that of a sequential scan",
        question="Is an index that isn't clustered worth using?",
        caption=(
            "The same selection by each kind of scan, forced, relative to a sequential scan, at"
            " the report's size. Left of the rule the index is faster. Printed: POSTGRES,"
            " queries 5 and 6 over 1 and 2."
        ),
        name="wisconsin-scans",
        result=worth(charts.together(rows)),
    )


def worth(frame: pd.DataFrame) -> str:
    """Whether each index scan takes less time than the sequential one, by selectivity.

    Nothing where only the print is drawn.
    """
    run, rows = charts.own(frame)
    told = []
    for panel, scans in rows.groupby("panel", sort=False):
        each = []
        for _, row in scans.iterrows():
            beyond = "faster" if row["high"] < 1 else "slower" if row["low"] > 1 else "not resolved"
            value = narrate.interval(charts.value_of(row), against=(1,))
            each.append(f"{value} by a {row['label']} ({beyond})")
        told.append(f"{panel}, {narrate.listed(each)}")
    if not told:
        return ""
    return f"{run}, the time over that of a sequential scan is, for {'; for '.join(told)}."
