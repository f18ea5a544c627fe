"""The charts: what the report printed, the published run and this run, and their words."""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.tp1 import evidence
from pgrerun.chapters.tp1.experiments import (
    catalogs,
    overlap,
    page_counts,
    slow_disk,
    throughput,
)
from pgrerun.chapters.tp1.variants import (
    AGAIN,
    ALONE,
    APPEND,
    ENLARGED,
    LONE,
    PAIR,
    RUNGS,
    STABLE,
    TOGETHER,
    printed_ladder,
)
from pgrerun.lab.instruments import PAGE
from pgrerun.lab.models import closed_network
from pgrerun.page import charts, narrate
from pgrerun.record import printed

_WHEN = {"published": "published run", "measured": "now"}


def printed_stages() -> charts.Figure:
    """What the report claims: throughput and I/O of its stages."""
    stages = printed_ladder()
    panels = {
        "tp1": "throughput (transactions/s)",
        "reads": "pages read per transaction",
        "writes": "pages written per transaction",
    }
    rows = []
    for column, panel in panels.items():
        rows += charts.rows(stages.set_index("name")[column].dropna(), "printed", panel=panel)
    return charts.compare(
        rows,
        charts.Words(
            question="How much faster did each change make POSTGRES, and what did it save?",
            caption=(
                "The printed stages of TP1: throughput, and pages read and written per transaction."
                " Where a stage has no mark, the report prints no number."
            ),
            name="tp1-print",
        ),
        charts.Axis("", zero=True),
        own_scales=True,
    )


def ladder(chapter: Chapter, simulated: pd.DataFrame) -> charts.Figure:
    """Throughput of every rung relative to the first, by provenance.

    simulated: of `evidence.simulated_ladder`; of each rung the run with most backends is drawn.
    """
    in_print = printed_ladder().set_index("name")["relative"]
    of_model = simulated.sort_values("backends").groupby("name")["simulated"].last()
    of_model /= simulated["simulated"].iloc[0]
    pairs = {name: (name, ALONE) for name in RUNGS if name not in (ALONE, AGAIN, LONE, PAIR)}
    parts = [
        *charts.rows(in_print, "printed"),
        *charts.rows(of_model, "simulated"),
        chapter.ratios("ladder", "throughput", pairs),
    ]
    return charts.compare(
        charts.together(parts, order=RUNGS),
        charts.Words(
            question=(
                "How far does each of the report's changes lift throughput above one backend with"
                " sixteen pages?"
            ),
            caption=(
                "Throughput of each rung over that of the first, with intervals where they were"
                " measured. The simulation plays the report's own demands on a disk of 1990; it"
                " knows the first rung and predicts the others."
            ),
            name="tp1-ladder",
        ),
        charts.Axis("throughput relative to the first rung", log=True),
        reference=charts.Reference(1, "first rung"),
    )


def every_repetition(chapter: Chapter) -> charts.Figure:
    """Every repetition of every rung."""
    every = chapter.repetitions("ladder", "throughput")
    return charts.observations(
        charts.together(every, order=RUNGS),
        charts.Words(
            question="How much do the repetitions of one rung differ?",
            caption=(
                f"Throughput of every repetition ({_WHEN[every['kind'].iloc[0]]}), with the median"
                " of each rung and its interval."
            ),
            name="tp1-repetitions",
        ),
        charts.Axis("throughput", "transactions/s", log=True),
    )


def reads_by_place(chapter: Chapter) -> charts.Figure:
    """Pages read per transaction on each rung, by relation and index, beside the print's totals."""
    in_print = printed_ladder().set_index("name")["reads"]
    in_print = in_print.rename(lambda name: f"{name}, 1990")
    rows = charts.rows(in_print, "printed", part="not told apart in 1990")
    kind, frame = chapter.by_provenance("io")[-1]
    for place in page_counts.PLACES:
        means = wide(frame, f"reads of {place}").mean()
        part = f"index of {place.removesuffix('_index')}" if place.endswith("_index") else place
        rows += charts.rows(means.rename(lambda name: f"{name}, {_WHEN[kind]}"), kind, part=part)
    rows = [row for row in rows if row["value"] > 0]
    labels = [f"{name}, {when}" for name in RUNGS for when in ("1990", _WHEN[kind])]
    return charts.stacked(
        charts.together(rows, order=labels),
        charts.Words(
            question=(
                "Which pages does a transaction read from disk, and is that near the least"
                " possible?"
            ),
            caption=(
                "Pages read into the buffer pool per transaction, by relation and index: means,"
                " whose parts add up, where verdicts have medians. The line is the report's bound"
                " for a steady state."
            ),
            name="tp1-reads",
        ),
        charts.Axis("pages read per transaction"),
        reference=charts.Reference(printed.cell("tp1_bound", "total", "reads"), "bound of 1990"),
    )


def needed(chapter: Chapter) -> charts.Figure:
    """The pages one transaction touches from an empty pool, by kind, beside the report's bound."""
    bound = printed.table("tp1_bound").loc["total"]
    kind, frame = chapter.by_provenance("touched")[-1]
    label = f"PostgreSQL, {_WHEN[kind]}"
    panels = {"read": ("reads", "read"), "changed": ("writes", "changed, so to be written")}
    rows = []
    for verb, (column, panel) in panels.items():
        for page in (page_counts.LEAF, page_counts.OLD_VERSION):
            half = bound[column] / 2
            rows.append(charts.row("bound of 1990", "printed", half, part=page, panel=panel))
        for page in page_counts.KINDS:
            mean = wide(frame, f"{verb}: {page}")[page_counts.ONE].mean()
            if mean:
                rows.append(charts.row(label, kind, mean, part=page, panel=panel))
    written = dict(chapter.by_provenance("io")).get(kind)
    if written is not None:  # on the rung that doesn't force a checkpoint
        pages = wide(written, "wal")[STABLE].mean() / PAGE
        rows.append(charts.row(label, kind, pages, part="WAL", panel=panel))
    return charts.stacked(
        rows,
        charts.Words(
            question="Which pages does a transaction need when nothing but the catalogs is cached?",
            caption=(
                f"The bound counts “{page_counts.LEAF}” and “{page_counts.OLD_VERSION}”;"
                f" it takes “{page_counts.ROOT}” and “{page_counts.LAST_PAGE}” to stay in the pool,"
                " and knows no visibility map, no free space map and no WAL of changes. The WAL"
                " counts as the bytes that a transaction adds to it, in pages."
            ),
            result=lambda _: _needed(frame, bound),
            name="tp1-pages",
        ),
        charts.Axis("pages per transaction"),
        reference=charts.Reference(bound["reads"], "bound of 1990"),
    )


def _needed(touched: pd.DataFrame, bound: pd.Series) -> str:
    """The pages that a transaction reads and changes, and the report's bound for them."""
    read, changed = (
        sum(wide(touched, f"{verb}: {page}")[page_counts.ONE].mean() for page in page_counts.KINDS)
        for verb in ("read", "changed")
    )
    return (
        f"From an empty pool a transaction reads {narrate.number(read, 1)} distinct pages and"
        f" changes {narrate.number(changed, 1)} (means over the sample); the report's bound is"
        f" {narrate.number(bound['reads'])} and {narrate.number(bound['writes'])}."
    )


def _printed_shares() -> pd.Series:
    """Of the processor, by copies of the test program."""
    percent = printed.table("tp1_overlap").loc[["one", "two"], "cpu_percent"]
    return (percent / 100).set_axis(overlap.COPIES)


def overlapping(chapter: Chapter) -> charts.Figure:
    """Processor share of one and two copies of the test program: printed, measured, predicted."""
    return charts.compare(
        [
            *charts.rows(_printed_shares(), "printed", panel="1990"),
            chapter.medians("overlap", {"processor": "now"}),
            evidence.overlap_predicted(chapter),
        ],
        charts.Words(
            question="How much of one copy's waiting does a second copy's computing fill?",
            caption=(
                "Share of one processor used by the read-compute-write program. The models predict"
                " two copies from the share of one: nobody ever waits for another; a disk that"
                " serves one request at a time; a disk that serves any number."
            ),
            name="tp1-overlap",
        ),
        charts.Axis("share of one processor"),
    )


def first_reads(chapter: Chapter) -> charts.Figure:
    """Pages read by a connection's first transaction against its second, by size of the pool."""
    in_print = printed.table("tp1_catalogs")["value"]
    label = f"pool of {in_print['default_buffers']:.0f} pages"
    reads, panel = in_print["first_transaction_reads"], "first transaction"
    metrics = {f"{which}: pages read": f"{which} transaction" for which in ("first", "second")}
    pools = {name: name for name in catalogs.POOLS}
    return charts.compare(
        [
            charts.row(label, "printed", reads, panel=panel),
            chapter.medians("first transaction", metrics, pools),
        ],
        charts.Words(
            question="What does a connection's first transaction read that its second doesn't?",
            caption=(
                "Pages read by the first and the second transaction of a new connection, each"
                " starting with an empty pool."
            ),
            name="tp1-first-transaction",
        ),
        charts.Axis("pages read", log=True),
    )


def catalogs_reached(chapter: Chapter) -> charts.Figure:
    """Catalog pages fetched by a first transaction with and without the catalogs' indexes."""
    frames = []
    for size in catalogs.MORE:
        labels = {f"{access}, {size}": access for access in (catalogs.BY_INDEX, catalogs.BY_SCAN)}
        fetched = {"first: catalog pages fetched": narrate.with_commas(size)}
        frames.append(chapter.medians("catalog access", fetched, labels))
    return charts.compare(
        frames,
        charts.Words(
            question="What would the catalogs cost without their indexes, and how does that grow?",
            caption=(
                "Catalog pages that a connection's first transaction fetches, from the pool or the"
                " disk."
            ),
            name="tp1-catalogs",
        ),
        charts.Axis("catalog pages fetched", zero=True),
    )


def reused(chapter: Chapter) -> charts.Figure:
    """Throughput and growth with and without reuse of space within pages."""
    panels = {
        "accesses": "page accesses per transaction",
        "wal": "WAL (bytes per transaction)",
        "growth": "growth (pages per transaction)",
        "throughput": "throughput (transactions/s)",
    }
    labels = {name: name for name in (throughput.REUSED, throughput.NOT_REUSED)}
    return charts.compare(
        chapter.medians("reuse", panels, labels),
        charts.Words(
            question="Is it worth reusing the space of dead versions while transactions run?",
            caption=(
                "The report's transaction with dead versions pruned within their page, and with an"
                " old snapshot that forbids it."
            ),
            name="tp1-reuse",
        ),
        charts.Axis("", zero=True),
        own_scales=True,
    )


def slowed_ladder(chapter: Chapter) -> charts.Figure:
    """The rungs on a disk that makes them wait, beside the printed ones."""
    stages = printed_ladder().set_index("name")
    panels = {
        "reads": ("reads", "requests to read, per transaction"),
        "writes": ("writes", "requests to write, per transaction"),
        "processor": ("cpu_percent", "share of the processor"),
    }
    throughput_panel = "throughput relative to the first rung"
    rows = charts.rows(stages["relative"], "printed", panel=throughput_panel)
    for column, panel in panels.values():
        in_print = stages[column].dropna() / (100 if column == "cpu_percent" else 1)
        rows += charts.rows(in_print, "printed", panel=panel)
    pairs = {name: (name, ALONE) for name in slow_disk.CLIMBED if name != ALONE}
    parts = [
        *rows,
        chapter.ratios(slow_disk.LADDER, "throughput", pairs, panel=throughput_panel),
        chapter.medians(slow_disk.LADDER, {name: panel for name, (_, panel) in panels.items()}),
    ]
    return charts.compare(
        charts.together(parts, order=slow_disk.CLIMBED),
        charts.Words(
            question=(
                "How much did each of the report's changes gain, where backends wait for a disk?"
            ),
            caption=(
                f"A rung is one state of the report's work, down to “{STABLE}” each with the"
                f" changes of those above it. They are climbed on a"
                f" {chapter.disk(slow_disk.LADDER)}, in a queue of one."
                f" On two rungs, “{ALONE}” and “{LONE}”, computing was set so that its share is the"
                " printed one; all else is measured. Where a rung has no diamond, the report prints"
                " no number."
            ),
            result=lambda frame: _climbed(frame[frame["panel"] == throughput_panel]),
            name="tp1-slowed-ladder",
        ),
        charts.Axis("", zero=True),
        own_scales=True,
    )


def _climbed(rows: pd.DataFrame) -> str:
    """What the rungs gain over the first, as printed and as measured."""
    slowed = rows[rows["kind"].isin(["slowed", "published-slowed"])]
    told = []
    for said, kind in (("as printed", "printed"), ("as measured", slowed["kind"].max())):
        own = rows[rows["kind"] == kind].set_index("label")["value"]
        steps = [
            f"{narrate.number(own[name], 2)} with “{name}”"
            for name in (TOGETHER, ENLARGED, APPEND, STABLE)
            if name in own
        ]
        if steps:
            told.append(f"{said} it is {narrate.listed(steps)}")
    return f"Throughput relative to “{ALONE}”: {'; '.join(told)}."


def slowed_program(chapter: Chapter) -> charts.Figure:
    """Processor share of the test program on a disk that makes it wait: printed and measured."""
    one, two = overlap.COPIES
    share = _printed_shares()[one]
    predicted = closed_network.solve({"processor": share, "disk": 1 - share}, 2)
    return charts.compare(
        [
            *charts.rows(_printed_shares(), "printed"),
            charts.row(two, "simulated", predicted.utilization["processor"]),
            chapter.medians(slow_disk.PROGRAM, "processor"),
        ],
        charts.Words(
            question="How much of a slow disk's time does a second copy's computing fill?",
            caption=(
                f"Share of one processor used by the read-compute-write program on a"
                f" {chapter.disk(slow_disk.PROGRAM)}, in a queue of one. One copy was fitted to the"
                " printed share. Simulated: queueing theory, with computing as irregular as the"
                " disk's requests."
            ),
            name="tp1-slowed-overlap",
        ),
        charts.Axis("share of one processor"),
    )
