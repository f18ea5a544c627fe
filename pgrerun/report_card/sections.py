"""The sections of the card: each is one function that measures, and returns what there is to tell,
the finding first.

A function's docstring says what it does, its `@section` what it touches, and which share of the
card's time is its own. Sections stand here in the order of the page. Measuring happens inside
`visit.watchdog.measuring()`, which ends it at its limit; what follows tells what there is.
"""

import inspect
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import pandas as pd

from pgrerun.chapters.scalability import load
from pgrerun.chapters.scalability.experiments import clients, commits, idle
from pgrerun.chapters.tp1.experiments.page_counts import OURS
from pgrerun.errors import CannotMeasure, printable
from pgrerun.lab.instruments import off_cpu
from pgrerun.lab.server import Borrowed
from pgrerun.lab.testbed import Row, Testbed, experiment
from pgrerun.page import charts, declared, narrate, tables
from pgrerun.page.narrate import Sentence, percent
from pgrerun.record import printed, statistics
from pgrerun.record.database import Database
from pgrerun.report_card import catalogs, page_accesses, switch_over
from pgrerun.report_card.visit import Visit

Piece = Sentence | charts.Figure | tables.Table | None
OWN = "relations in a schema of its own, which is dropped afterwards"


@dataclass(frozen=True)
class Section:
    """One experiment of the card; `share` is of the card's time, `chapter` whose parameters its
    verbs take.
    """

    title: str
    chapter: str
    touches: str
    share: float
    experiment: Callable[[Visit], list[Piece]]
    undisturbed: bool = False

    @property
    def name(self) -> str:
        return self.experiment.__name__

    @property
    def does(self) -> str:
        return " ".join(inspect.getdoc(self.experiment).split())


SECTIONS: list[Section] = []


def section(
    title: str, chapter: str, touches: str, share: float, undisturbed: bool = False
) -> Callable:
    """Make a function a section of the card. One that is `undisturbed` runs before those that put
    load on the server.
    """

    def register(experiment: Callable[[Visit], list[Piece]]) -> Callable[[Visit], list[Piece]]:
        SECTIONS.append(Section(title, chapter, touches, share, experiment, undisturbed))
        return experiment

    return register


def named(name: str) -> str:
    """A name out of somebody's catalogs as code, so that nothing in it is taken for markup.

    Code in Markdown ends at a run of backticks as long as the one before it, or with its
    paragraph; control characters are shown as their escapes.
    """
    shown = printable(name)
    runs_inside = [len(run) for run in re.findall("`+", shown)]
    fence = "`" * (max(runs_inside, default=0) + 1)
    return f"{fence} {shown} {fence}" if runs_inside else f"`{shown}`"


@section("Where the planner switches", "optimizer", f"{OWN}; temporary relations", share=0.26)
def planner_switch(visit: Visit) -> list[Piece]:
    """Times sequential, index and bitmap scans at several selectivities, and asks the planner where
    it switches and which random_page_cost would fit.
    """
    switch_over.measure(visit, fitting=not visit.far)
    with visit.database(published=False) as found:
        return [
            switch_over.sides(visit, found),
            _NOT_FITTED if visit.far else switch_over.fitting(found),
            switch_over.dearest(visit, found),
            switch_over.cold(visit),
            visit.declared(found, "optimizer-switch"),
            visit.declared(found, "optimizer-scans-warm"),
        ]


_NOT_FITTED = Sentence(
    "Which `random_page_cost` would fit is not asked over a network: it takes hundreds of plans."
)


@section("I/O per transaction", "tp1", OWN, share=0.12)
def accesses(visit: Visit) -> list[Piece]:
    """Counts the pages that debit-credit transactions look at and read, and the WAL that they
    write, against the least that is possible.
    """
    with visit.watchdog.measuring():
        visit.measure(page_accesses.as_it_is)
    visit.require("as_it_is")
    with visit.database() as found:
        looked, read = (visit.value(found, " + ".join(_metrics(verb))) for verb in _VERBS)
        wal, others = (visit.value(found, f"as_it_is.{metric}") for metric in ("wal", "others"))
        places = _places(visit, found)
    least = printed.cell("tp1_bound", "total", "reads")
    page = int(visit.read(catalogs.setting, "block_size"))
    return [
        Sentence(
            f"A debit-credit transaction can't do with fewer than {narrate.count(least, 'page')},"
            " the leaf and the tuple of each of its three updates. Here it looks at"
            f" {narrate.interval(looked)} pages, {narrate.interval(looked.times(1 / least))} times"
            f" as many, and reads {narrate.interval(read)} of them from outside the buffer pool."
        ),
        Sentence(
            f"What it has to write before it commits is {narrate.interval(wal, 'bytes')} of WAL;"
            f" the {narrate.count(least, 'page')} themselves, which a forced commit would write,"
            f" are {narrate.number(least * page / wal.estimate, 1)} times that."
        ),
        _crowd(others, visit.parameters.counted),
        places,
    ]


_VERBS = (page_accesses.LOOKED_AT, page_accesses.READ)


def _metrics(verb: str) -> list[str]:
    return [f"as_it_is.{page_accesses.metric(verb, place)}" for place in OURS]


def _crowd(others: statistics.Interval, ours: int) -> Sentence | None:
    """A word of warning where others wrote into the same log."""
    if others.estimate <= ours:  # the probe's own, and those of vacuum workers
        return None
    return Sentence(
        f"Meanwhile others committed {narrate.interval(others)} transactions for our {ours}, and"
        " their log is in these bytes."
    )


def _places(visit: Visit, found: Database) -> charts.Figure:
    bound = printed.table("tp1_bound").query("kind in ('leaf', 'heap')")
    leaf = bound["relation"] + "_index"
    least = pd.DataFrame({"part": bound["relation"].where(bound["kind"] == "heap", leaf)})
    parts = [least.assign(label="least possible", kind="printed", value=bound["reads"])]
    for verb in _VERBS:
        values = [visit.value(found, metric).estimate for metric in _metrics(verb)]
        counted = {"label": verb.replace("_", " "), "kind": "measured", "value": values}
        parts.append(pd.DataFrame({"part": list(OURS)} | counted))
    frame = pd.concat(parts, ignore_index=True)
    bars = frame[frame["kind"] == "measured"].groupby("label", sort=False)["value"].sum()
    quantity = "pages per transaction"
    return charts.stacked(
        frame,
        charts.Words(
            question="How many pages does a transaction look at, and how many does it read?",
            caption=(
                f"{_ranged(bars, quantity)}Pages per debit-credit transaction, by relation and"
                " index: the 1990 report's bound, which takes roots of B-trees and last pages to be"
                " in the pool; pages looked at in the buffer pool; and pages read from outside of"
                " it."
            ),
            name="card-pages",
        ),
        charts.Axis(quantity),
    )


def _ranged(values: pd.Series, quantity: str) -> str:
    """What a chart's caption says first: the least and the greatest of values by their labels."""
    least, most = values.idxmin(), values.idxmax()
    low, high = narrate.number(values[least]), narrate.number(values[most])
    if len(values) == 1:
        return f"In this run, {quantity} came to {low}. "
    if low == high:
        return ""
    return f"In this run, {quantity} ranged from {low} ({least}) to {high} ({most}). "


def _by_table(rows: pd.DataFrame, share: str, quantity: str, words: charts.Words) -> charts.Figure:
    """A share of each table, of those that a chart has room for."""
    shown = rows.head(SHOWN)
    frame = pd.DataFrame({"label": shown["table"], "kind": "measured", "value": shown[share]})
    said = _ranged(frame.set_index("label")["value"], quantity)
    words = replace(words, caption=said + words.caption)
    return charts.compare(frame, words, charts.Axis(quantity, zero=True))


SHOWN = 12  # tables that a chart has room for


@section(
    "Heap-only updates",
    "scalability",
    "nothing: it reads statistics of the chosen schema",
    share=0.04,
)
def hot_share(visit: Visit) -> list[Piece]:
    """Reads from pg_stat_user_tables which share of each table's updates was heap-only (HOT), and
    what kept the others from it.
    """
    found = pd.DataFrame()
    with visit.watchdog.measuring():
        found = visit.read(catalogs.updates, visit.schema)
    if found.empty:
        raise CannotMeasure(
            "updates", f"no table of the schema {visit.schema} has had an update counted"
        )
    every = found["updates"].sum()
    said = (
        f"Of {narrate.count(every, 'update')} of {narrate.count(len(found), 'table')} in this"
        f" schema, {percent(found['hot'].sum() / every)} were heap-only."
    )
    worst = found.iloc[0]
    most = (
        f"Most of the others are {named(worst.table)}'s,"
        f" {narrate.number(worst.updates - worst.hot)} of its {narrate.number(worst.updates)}."
    )
    return [
        Sentence(said if found["hot"].sum() == every else f"{said} {most}"),
        _kept_from_it(found),
        _since(visit),
        _by_table(
            found,
            "share",
            "share of updates that were heap-only",
            charts.Words(
                question="Which share of each table's updates was heap-only?",
                caption=(
                    "Tables with the most updates that were not heap-only, as the server has"
                    " counted them."
                ),
                name="card-hot",
            ),
        ),
        tables.table(
            found.rename(
                columns={
                    "moved": "without room on the page",
                    "indices": "indexes",
                    "share": "heap-only share",
                }
            ),
            "Updates by table",
        ),
    ]


def _kept_from_it(found: pd.DataFrame) -> Sentence | None:
    """Whether room or an indexed attribute is what heap-only updates lacked."""
    others = (found["updates"] - found["hot"]).sum()
    if others == 0 or found["moved"].isna().any():
        return None
    moved = found["moved"].sum()
    return Sentence(
        f"Of the updates that weren't, {percent(moved / others)} found no room on their page,"
        " which a lower fillfactor or more frequent vacuum would give them"
        + (
            "; the others stayed on it and changed a column that is indexed."
            if moved < others
            else "."
        )
    )


def _since(visit: Visit) -> Sentence:
    since = visit.read(catalogs.counted_since)
    return Sentence(
        f"Counted since {since}."
        if since
        else "Counted since the database was made: its statistics were never reset."
    )


ENOUGH = 0.9  # share of pages that are marked from which on an index-only scan is called one


@section(
    "Index-only scans that aren't",
    "scalability",
    "nothing: it reads statistics and catalogs of the chosen schema",
    share=0.04,
)
def index_only(visit: Visit) -> list[Piece]:
    """Reads from pg_stat_user_indexes how many tuples index scans fetched from the heap, and from
    pg_class how much of each table its visibility map has marked.
    """
    found = pd.DataFrame()
    with visit.watchdog.measuring():
        found = visit.read(catalogs.scanned, visit.schema)
    if found.empty:
        raise CannotMeasure(
            "index scans",
            f"no index of the schema {visit.schema} that could answer by itself has been scanned",
        )
    by_table = (
        found.groupby("table", sort=False)
        .agg(
            visible=("visible", "first"), entries=("entries", "sum"), vacuumed=("vacuumed", "first")
        )
        .reset_index()
    )
    bad = by_table[by_table["visible"] < ENOUGH]
    return [
        Sentence(
            f"Of {narrate.count(len(by_table), 'table')} whose indexes are scanned,"
            f" {len(bad) or 'none'} {'have' if len(bad) > 1 else 'has'} less than"
            f" {percent(ENOUGH)} of {'their' if len(bad) > 1 else 'its'} pages marked as visible to"
            " all. For each row on another page an index-only scan goes to the heap, like any index"
            " scan."
        ),
        _most_read(bad),
        Sentence(
            f"Scans returned {narrate.number(found['entries'].sum())} entries of these indexes, and"
            f" fetched {narrate.number(found['fetched'].sum())} rows from the heap for them. The"
            " server doesn't count which scans were index-only; one that is fetches nothing."
            " Marked pages are those of the last vacuum or analyze."
        ),
        _since(visit),
        _by_table(by_table, "visible", "share of pages marked all-visible", _VISIBLE),
        tables.table(
            found.drop(columns="marked").rename(columns={"visible": "share marked"}),
            "Indexes that could answer by themselves",
        ),
    ]


_VISIBLE = charts.Words(
    question="Which share of each table's pages spares an index-only scan the heap?",
    caption=(
        "Share of pages that the visibility map marks as visible to all, for the tables whose"
        " indices returned the most entries."
    ),
    name="card-visible",
)


def _most_read(bad: pd.DataFrame) -> Sentence | None:
    """Where vacuum would help most."""
    if bad.empty:
        return None
    worst = bad.iloc[0]
    when = (
        f"was last vacuumed on {worst.vacuumed}"
        if pd.notna(worst.vacuumed)
        else "was never vacuumed"
    )
    return Sentence(
        f"Most entries were returned for {named(worst.table)}, of which {percent(worst.visible)}"
        f" are marked; it {when}."
    )


@section("Group commit", "scalability", OWN, share=0.14)
def group_commit(visit: Visit) -> list[Piece]:
    """Commits single inserts by one client, by some and by many, and counts how many commits a
    flush of the WAL carries.
    """
    with visit.watchdog.measuring():
        visit.measure(commits.commits)
    visit.require("commits")
    with visit.database() as found:
        most = int(found.query("SELECT max(clients) FROM commits").iloc[0, 0])
        few, many, gain = (
            visit.value(found, text)
            for text in (
                "commits.per_flush[clients = 1]",
                f"commits.per_flush[clients = {most}]",
                f"commits.tps[clients = {most}] / commits.tps[clients = 1]",
            )
        )
        those = narrate.count(most, "client")
        gained = narrate.ratio_sentence(gain, "throughput of single inserts", those, "one")
        return [
            Sentence(
                f"A flush of the WAL carries {narrate.interval(few)} commits of one client, and"
                f" {narrate.interval(many)} with {those}. {gained}"
            ),
            _WAITS_FOR_NOTHING
            if visit.read(catalogs.setting, "synchronous_commit") == "off"
            else None,
            Sentence(
                "Flushes are the whole server's: what others commit meanwhile shares them, or adds"
                " its own."
            ),
            _COMMITS.figure(found, lambda claim: "", visit.parameters.seed),
        ]


_COMMITS = declared.Chart(
    name="card-commits",
    form="lines",
    own_scales=True,
    question="How many commits does one flush of the WAL carry?",
    how="Single inserts over clients, under the server's own settings: medians with intervals.",
    query="""
SELECT 'commits per flush' AS panel, clients AS x, per_flush AS value, block
FROM commits WHERE waits
UNION ALL SELECT 'commits per second', clients, tps, block FROM commits WHERE waits
ORDER BY panel, x""",
    x_axis=charts.Axis(quantity="clients", log=True),
    axis=charts.Axis(quantity="commits", zero=True),
)


_WAITS_FOR_NOTHING = Sentence(
    "This server's synchronous_commit is off: commits don't wait for a flush at all."
)


NEAR = 0.9  # share of the greatest throughput at which the curve has bent


@section("Clients at the knee", "scalability", OWN, share=0.26)
def knee(visit: Visit) -> list[Piece]:
    """Looks up primary keys by more and more clients until throughput no longer grows, fits the
    universal scalability law, and samples what backends wait for.
    """
    with visit.watchdog.measuring():
        visit.measure(clients.lookups)
        visit.measure(clients.lookup_waits)
    visit.require("lookups")
    with suppress(CannotMeasure):
        visit.measure(clients.law_of_lookups)
    with visit.database() as found:
        swept = found.query(
            "SELECT clients, median(tps) AS tps FROM lookups WHERE NOT again GROUP BY 1 ORDER BY 1"
        ).set_index("clients")["tps"]
        bend = int(swept.index[swept >= NEAR * swept.max()][0])
        law = clients.law_of_lookups.name in found.experiments()
        waited = clients.lookup_waits.name in found.experiments()
        told = filter(None, (visit.told(found, name) for name in ("law-lookups", "law-misses")))
        return [
            Sentence(
                "Throughput of primary key lookups is greatest with"
                f" {narrate.count(int(swept.idxmax()), 'client')},"
                f" {narrate.number(swept.max(), 0)} per second; {narrate.count(bend, 'client')}"
                f" {'reaches' if bend == 1 else 'reach'} {percent(NEAR)} of that."
            ),
            _LAW if law else None,
            *map(Sentence, told if law else ()),
            _waits(found.query("FROM lookup_waits")) if waited else None,
            Sentence(
                "The clients are pgbench's, on the machine that made this page and its"
                f" {narrate.count(visit.read(_processors), 'processor')}: "
                + (
                    "the server shares them."
                    if visit.read(_runs_here)
                    else "the knee may be theirs, or the network's, rather than the server's."
                )
            ),
            visit.declared(found, "scalability-read") if law else None,
        ]


_LAW = Sentence(
    "What follows is the universal scalability law, fitted to these throughputs:"
    " contention is the share of the work that one client at a time can do, coherence what each"
    " pair of clients costs."
)


def _processors(server: Borrowed) -> int:
    """Those of the machine that the clients run on."""
    return load.processors()


def _runs_here(server: Borrowed) -> bool:
    return server.can("processes")


def _waits(found: pd.DataFrame) -> Sentence:
    """What active backends do with the most clients."""
    rows = found[found["clients"] == found["clients"].max()].sort_values(
        "backends", ascending=False
    )
    running, waits = (
        rows[rows["type"] == "CPU"]["backends"].sum(),
        rows[rows["type"] != "CPU"].head(2),
    )
    said = (
        f"With {narrate.count(int(found['clients'].max()), 'client')},"
        f" {narrate.number(rows['backends'].sum(), 1)} backends are active on average, and"
        f" {narrate.number(running, 1)} of them are on CPU or runnable"
    )
    most = " and ".join(
        f"{row.type}:{row.event} ({narrate.number(row.backends, 2)})" for row in waits.itertuples()
    )
    return Sentence(f"{said}; the others wait, most for {most}." if most else f"{said}.")


@section(
    "Idle wake-ups",
    "scalability",
    "nothing: it watches the server's processes from outside, if they run on this machine",
    share=0.14,
    undisturbed=True,
)
def idle_wakeups(visit: Visit) -> list[Piece]:
    """Leaves the server alone, and counts how often its background processes wake up."""
    seconds = visit.parameters.idle_seconds
    needs, has = idle.SETTLE + seconds, visit.watchdog.measurable
    processes = visit.read(_processes)
    if needs > has:
        raise CannotMeasure(
            "time",
            f"it takes {narrate.number(needs, 0)} s of rest and watching, and has"
            f" {narrate.number(has, 0)} s; give it more minutes",
        )
    before = visit.read(catalogs.committed)
    with visit.watchdog.measuring():
        visit.measure(wakeups)
    after = visit.read(catalogs.committed)
    others = (after[0] - before[0]) / (after[1] - before[1])
    visit.require("wakeups")
    with visit.database() as found:
        rate = visit.value(found, "wakeups.per_second[role = 'all together']")
        each = found.query(
            f"SELECT role, avg(per_second) AS rate FROM wakeups WHERE role <> '{idle.EVERYBODY}'"
            " GROUP BY role ORDER BY role"  # of equal ones the same comes first each time
        ).set_index("role")["rate"]
        return [
            Sentence(
                f"{narrate.count(processes, 'background process', 'background processes')} of this"
                f" server wake up {narrate.interval(rate)} times per second together; the"
                f" {each.idxmax()} does most of it, {narrate.number(each.max(), 1)} times."
            ),
            Sentence(
                f"In this time the server committed {narrate.number(others, 1)}"
                " transactions per second: it is idle only as far as others leave it so."
            ),
            visit.declared(found, "scalability-idle"),
        ]


def _processes(server: Borrowed) -> int:
    return len(server.background())


@experiment(units=idle.UNITS)
def wakeups(bed: Testbed) -> Iterator[Row]:
    """Wake-ups of somebody's server on this machine, under its own settings.

    Whatever others have it do counts as well. CannotMeasure if it runs elsewhere.
    """
    roles = bed.guest.background()
    time.sleep(idle.SETTLE)
    readings = [off_cpu.read_wakeups(roles)]
    for _ in range(idle.LEAST_WINDOWS):
        time.sleep(bed.parameters.idle_seconds / idle.LEAST_WINDOWS)
        readings.append(off_cpu.read_wakeups(roles))
    yield from idle.windows(bed, readings, idle.SETTLE)
