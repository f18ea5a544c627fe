"""The charts of the chapter: frames from the print, the published run and this run, and their words."""

from collections.abc import Sequence

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.wisconsin import machines, race, scans
from pgrerun.chapters.wisconsin.contenders import CONFINED, DUCKDB, POSTGRESQL
from pgrerun.chapters.wisconsin.queries import KEYS, SPECIFIED


def _printed() -> pd.DataFrame:
    return published.derived("wisconsin_figure_3_11")


def the_print() -> charts.Figure:
    """Figure 3.11 as ratios."""
    rows = [charts.row(race.label(key), "printed", value) for key, value in _printed().ratio.dropna().items()]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="How much slower than university INGRES was POSTGRES in 1990?",
        caption="Time of POSTGRES over that of university INGRES, query by query, as printed in Figure 3.11. Right of the rule INGRES is faster. Queries 20 to 25 are missing: POSTGRES had no aggregates.",
        description=narrate.described(frame),
        quantity="time of POSTGRES over that of INGRES",
        unit="",
        reference=1,
        log=True,
        name="wisconsin-print",
    )


def _over(chapter: Chapter, one: str, other: str, keys: Sequence[str], n: int) -> list[dict]:
    rows = []
    for kind, observed in chapter.by_provenance(race.at(n)):
        a, b = (race.times(observed, name) for name in (one, other))
        if not (a.empty or b.empty):
            rows += [charts.row(race.label(key), kind, statistics.ratio(a[key], b[key])) for key in keys]
    return rows


def over_duckdb(chapter: Chapter) -> charts.Figure | None:
    """PostgreSQL over DuckDB at the report's size, beside POSTGRES over INGRES."""
    rows = _over(chapter, POSTGRESQL, DUCKDB, KEYS, SPECIFIED)
    if not rows:
        return None
    printed = _printed().ratio
    frame = pd.DataFrame(sorted([*(charts.row(race.label(key), "printed", printed[key]) for key in KEYS if pd.notna(printed[key])), *rows], key=lambda row: int(row["label"].split(":")[0])))
    return charts.compare_to_print(
        frame,
        question="Who wins which query, then and now?",
        caption="At the report's size. Printed: POSTGRES over university INGRES. Measured: PostgreSQL as it chooses over DuckDB, with 95 % intervals. Right of the rule PostgreSQL is the slower one.",
        description=narrate.described(frame),
        quantity="time over that of the opponent",
        unit="",
        reference=1,
        log=True,
        name="wisconsin-duckdb",
    )


def joins(chapter: Chapter) -> charts.Figure | None:
    """What confinement to nested loops costs, join by join."""
    rows = _over(chapter, CONFINED, POSTGRESQL, scans.JOINS, SPECIFIED)
    if not rows:
        return None
    printed = _printed().ratio
    frame = pd.DataFrame(sorted([*(charts.row(race.label(key), "printed", 1 / printed[key]) for key in scans.JOINS), *rows], key=lambda row: int(row["label"].split(":")[0])))
    return charts.compare_to_print(
        frame,
        question="What do hash and merge join gain over nested loops?",
        caption="At the report's size. Printed: INGRES, which had nested loops only, over POSTGRES. Measured: PostgreSQL confined to nested loops over PostgreSQL as it chooses. Right of the rule nested loops are slower.",
        description=narrate.described(frame),
        quantity="time of nested loops over the other's",
        unit="",
        reference=1,
        log=True,
        name="wisconsin-joins",
    )


def pages_and_seconds(pages: pd.DataFrame) -> charts.Figure:
    """The miniature's pages and INGRES's printed seconds, each relative to query 1."""
    first = pages.iloc[0]
    rows = []
    for one in pages.itertuples(index=False):
        rows.append(charts.row(one.query, "printed", one.seconds_1990 / first.seconds_1990))
        rows.append(charts.row(one.query, "measured", one.touched / first.touched))
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Do pages explain the seconds of INGRES?",
        caption="Relative to query 1. Printed: the seconds of university INGRES with ten thousand tuples. Measured: pages that the miniature touches with a tenth of them, "
        "so that joins without an index, where every tuple of one relation meets every page of another, lie lower than they would at the report's size.",
        description=narrate.described(frame),
        quantity="relative to query 1",
        unit="",
        reference=1,
        log=True,
        name="wisconsin-miniature",
    )


# label, queries above, queries below
_EFFECTS = (
    ("1 %: no index / clustered", ("q1",), ("q3",)),
    ("10 %: no index / clustered", ("q2",), ("q4",)),
    ("1 %: non-clustered / clustered", ("q5",), ("q3",)),
    ("10 %: non-clustered / clustered", ("q6",), ("q4",)),
    ("10 %: non-clustered / no index", ("q6",), ("q2",)),
    ("joins: clustered / no index", ("q12", "q13", "q14"), ("q9", "q10", "q11")),
    ("joinABprime: clustered / non-clustered", ("q13",), ("q16",)),
    ("delete: no index / index", ("q27",), ("q30",)),
    ("update: no index / index", ("q28",), ("q31",)),
    ("insert: no index / index", ("q26",), ("q29",)),
    ("update: other attribute / key", ("q32",), ("q31",)),
)  # fmt: skip


def index_effects(chapter: Chapter) -> charts.Figure | None:
    """What an index does to PostgreSQL's times, beside what it did to POSTGRES's."""
    printed, rows = _printed().postgres.to_frame().T, []
    for n in (SPECIFIED, race.sizes(chapter)[-1]):
        panel = f"{n:,} tuples"
        for label, above, below in _EFFECTS:
            print_value = float(race.mean(printed, above).iloc[0] / race.mean(printed, below).iloc[0])
            rows.append(charts.row(label, "printed", print_value, panel=panel))
            for kind, observed in chapter.by_provenance(race.at(n)):
                frame = race.times(observed, POSTGRESQL)
                rows.append(charts.row(label, kind, statistics.ratio(race.mean(frame, above), race.mean(frame, below)), panel=panel))
    frame = pd.DataFrame(rows)
    if set(frame["kind"]) == {"printed"}:
        return None
    return charts.compare_to_print(
        frame,
        question="What is an index worth, and to whom?",
        caption="Times of PostgreSQL in pairs of queries that differ in the index alone, beside the same pairs of POSTGRES in print (whose relations had ten thousand tuples in either panel). Several queries: their geometric mean.",
        description=narrate.described(frame),
        quantity="time of the first over the second",
        unit="",
        reference=1,
        facet="panel",
        log=True,
        name="wisconsin-indices",
    )


def three_scans(chapter: Chapter) -> charts.Figure | None:
    """The index scans over the sequential scan, by selectivity."""
    rows = []
    for kind, observed in chapter.by_provenance(scans.FORCED):
        for key, panel in (("q5", "1 % of the tuples"), ("q6", "10 % of the tuples")):
            frame = wide(observed, key)
            rows += [charts.row(name, kind, statistics.ratio(frame[name], frame[scans.SEQUENTIAL]), panel=panel) for name in (scans.PLAIN, scans.BITMAP)]
    if not rows:
        return None
    printed = _printed().postgres
    rows = [charts.row(scans.PLAIN, "printed", printed[one] / printed[other], panel=panel) for one, other, panel in (("q5", "q1", "1 % of the tuples"), ("q6", "q2", "10 % of the tuples"))] + rows
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Is an index that isn't clustered worth using?",
        caption="The same selection by each kind of scan, forced, relative to a sequential scan, at the largest size. Left of the rule the index is faster. Printed: POSTGRES, queries 5 and 6 over 1 and 2.",
        description=narrate.described(frame),
        quantity="time over that of a sequential scan",
        unit="",
        reference=1,
        facet="panel",
        log=True,
        name="wisconsin-scans",
    )


_GROWING = {"q1": "1: no index", "q3": "3: clustered index", "q9": "9: join, no index", "q18": "18: project, few groups", "q27": "27: delete, no index"}


def growth(chapter: Chapter) -> charts.Figure | None:
    """How times grow with the relation."""
    rows = []
    for n in race.sizes(chapter):
        for kind, observed in chapter.by_provenance(race.at(n)):
            for contender in (POSTGRESQL, DUCKDB):
                frame = race.times(observed, contender)
                for key, panel in _GROWING.items():
                    found = statistics.median(1000 * frame[key])
                    rows.append({"x": n, "series": contender, "kind": kind, "value": found.estimate, "low": found.low, "high": found.high, "panel": panel})
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.lines(
        frame,
        question="Which queries feel the size of the relation?",
        caption="Median times of some queries over the size of the large relations; both axes are logarithmic.",
        description=narrate.described(frame.assign(label=frame["series"] + " at " + frame["x"].map("{:,} tuples".format))),
        x_quantity="large relations",
        x_unit="tuples",
        quantity="time",
        unit="ms",
        facet="panel",
        own_scales=True,
        log_x=True,
        log_y=True,
        name="wisconsin-growth",
    )


def conversion(chapter: Chapter) -> charts.Figure | None:
    """The factor between two machines, query by query."""
    rows = []
    for kind, observed in chapter.by_provenance(machines.MACHINES):
        for key in machines.CONVERTED:
            frame = wide(observed, key)
            rows.append(charts.row(race.label(key), kind, statistics.ratio(frame[machines.UNCACHED], frame[POSTGRESQL])))
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Would one factor convert the times of one machine into those of another?",
        caption="PostgreSQL at the report's size: time on a machine without memory for the data (a pool of one megabyte, no cache of the operating system's) over the time on this machine.",
        description=narrate.described(frame),
        quantity="time there over time here",
        unit="",
        reference=1,
        log=True,
        name="wisconsin-machines",
    )
