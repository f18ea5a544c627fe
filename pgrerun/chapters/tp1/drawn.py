"""The charts of the chapter: frames from the print, the published run and this run, and their words."""

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.errors import BookError
from pgrerun.chapters.tp1.accounting import IO_RUNGS, KINDS, LAST_PAGE, LEAF, OLD_VERSION, PLACES, ROOT
from pgrerun.chapters.tp1.catalogs import BY_INDEX, BY_SCAN, GROWN, SMALL
from pgrerun.chapters.tp1.ladder import AGAIN, ALONE, RUNGS, STABLE, printed_ladder
from pgrerun.chapters.tp1.overlap import COPIES, overlap_predicted
from pgrerun.chapters.tp1.space import BRANCH_RULE, NOT_REUSED, REUSED, TPCB_LIKE

PAGE = 8192  # bytes


def _runs(chapter: Chapter, experiment: str) -> list[tuple[str, pd.DataFrame]]:
    runs = chapter.by_provenance(experiment)
    if not runs:
        raise BookError(f"There is nothing to draw of {experiment!r}: neither this run nor the published one has measured it.")
    return runs


def _medians(chapter: Chapter, experiment: str, metrics: dict[str, str], arm: str) -> list[dict]:
    """One row per metric (label by metric name) and run: the arm's median with its interval."""
    return [
        charts.row(label, kind, statistics.median(wide(frame, metric)[arm]))
        for kind, frame in _runs(chapter, experiment)
        for metric, label in metrics.items()
    ]


def the_print() -> charts.Figure:
    """What the report claims: throughput and I/O of its stages."""
    stages = printed_ladder()
    panels = {"tp1": "transactions per second", "reads": "pages read", "writes": "pages written"}
    rows = [
        charts.row(name, "printed", value, panel=panels[column])
        for column in panels
        for name, value in zip(stages["name"], stages[column])
        if pd.notna(value)
    ]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="How much faster did each change make POSTGRES, and what did it save?",
        caption="The printed stages of TP1: throughput, and pages read and written per transaction. Where a stage has no mark, the report prints no number.",
        description=narrate.described(frame),
        quantity="printed value",
        unit="",
        facet="panel",
        own_scales=True,
        zero=True,
        name="tp1-print",
    )


def climbed(chapter: Chapter, simulated: pd.DataFrame) -> charts.Figure:
    """Throughput of every rung relative to the first, by provenance."""
    stages = printed_ladder()
    rows = [charts.row(name, "printed", value) for name, value in zip(stages["name"], stages["relative"])]
    two = simulated[simulated["backends"] == simulated.groupby("name")["backends"].transform("max")]
    first = simulated["simulated"].iloc[0]
    rows += [charts.row(name, "simulated", value / first) for name, value in zip(two["name"], two["simulated"])]
    for kind, frame in _runs(chapter, "ladder"):
        table = wide(frame, "throughput")
        rows += [
            charts.row(rung.name, kind, statistics.ratio(table[rung.name], table[ALONE], seed=chapter.parameters.seed))
            for rung in RUNGS
            if rung.name not in (ALONE, AGAIN)
        ]
    frame = _in_order(pd.DataFrame(rows))
    return charts.compare_to_print(
        frame,
        question="How far does each of the report's changes lift throughput above one backend with sixteen pages?",
        caption="Throughput of each rung over that of the first, with intervals where they were measured. "
        "The simulation plays the report's own demands on a disk of 1990; it knows the first rung and predicts the others.",
        description=narrate.described(frame),
        quantity="throughput relative to the first rung",
        unit="",
        reference=1,
        reference_label="first rung",
        log=True,
        name="tp1-ladder",
    )


def every_climb(chapter: Chapter) -> charts.Figure:
    """Every repetition of every rung."""
    kind, frame = _runs(chapter, "ladder")[-1]
    table = wide(frame, "throughput")
    medians = pd.DataFrame([charts.row(rung.name, kind, statistics.median(table[rung.name])) for rung in RUNGS])
    every = table.melt(ignore_index=False, var_name="label").rename_axis("block").reset_index().assign(kind=kind)
    return charts.observations(
        _in_order(every),
        question="How much do the repetitions of one rung differ?",
        caption=f"Throughput of every repetition ({_WHEN[kind]}), with the median of each rung and its interval.",
        description=narrate.described(medians),
        quantity="throughput",
        unit="transactions/s",
        intervals=medians,
        log=True,
        name="tp1-repetitions",
    )


def three_scripts(chapter: Chapter) -> charts.Figure:
    """Throughput and reads of the report's draws, the branch rule and pgbench's own transaction."""
    rows = []
    for kind, frame in _runs(chapter, "reuse"):
        table = wide(frame, "throughput")
        names = {REUSED: "independent draws", BRANCH_RULE: BRANCH_RULE, TPCB_LIKE: TPCB_LIKE}
        rows += [charts.row(name, kind, statistics.median(table[arm])) for arm, name in names.items() if arm in table]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Does it matter which bank transaction is run?",
        caption="Throughput in the server's own pool and under its own settings: the report's independent draws, the rule that keeps most "
        "accounts in the teller's branch, and pgbench's built-in transaction on its own relations.",
        description=narrate.described(frame),
        quantity="throughput",
        unit="transactions/s",
        zero=True,
        name="tp1-scripts",
    )


def reads_by_place(chapter: Chapter) -> charts.Figure:
    """Pages read per transaction on each rung, by relation and index, beside the print's totals."""
    stages = printed_ladder()
    rows = [
        charts.row(f"{name}, 1990", "printed", value, pages="not told apart in 1990")
        for name, value in zip(stages["name"], stages["reads"])
    ]
    for kind, frame in _runs(chapter, "io")[-1:]:
        for place in PLACES:
            table = wide(frame, f"reads of {place}")
            rows += [charts.row(f"{rung}, {_WHEN[kind]}", kind, table[rung].mean(), pages=place) for rung in IO_RUNGS]
    order = [f"{rung.name}, {when}" for rung in RUNGS for when in ("1990", *_WHEN.values())]
    frame = _in_order(pd.DataFrame(rows), order)
    frame = frame[frame["value"] > 0]
    return charts.stacked_pages(
        frame,
        question="Which pages does a transaction read from disk, and is that near the least possible?",
        caption="Pages read into the buffer pool per transaction, by relation and index. The line is the report's bound for a steady state.",
        description=narrate.described(frame.assign(label=frame["label"] + ", " + frame["pages"])),
        quantity="pages read per transaction",
        reference=published.cell("tp1_bound", "total", "reads"),
        reference_label="bound of 1990",
        facet=None,
        name="tp1-reads",
    )


_WHEN = {"published": "published run", "measured": "now"}


def needed(chapter: Chapter) -> charts.Figure:
    """The pages one transaction touches from an empty pool, by kind, beside the report's bound."""
    bound = published.table("tp1_bound").loc["total"]
    rows = []
    for verb, column, words in (("read", "reads", "read"), ("changed", "writes", "changed, so to be written")):
        share = bound[column] / 2
        rows += [charts.row("bound of 1990", "printed", share, pages=kind, operation=words) for kind in (LEAF, OLD_VERSION)]
        for kind, frame in _runs(chapter, "touched")[-1:]:
            means = {page: wide(frame, f"{verb}: {page}")["one transaction"].mean() for page in KINDS}
            label = f"PostgreSQL, {_WHEN[kind]}"
            rows += [charts.row(label, kind, value, pages=page, operation=words) for page, value in means.items() if value]
            if verb == "changed":
                rows += _log_pages(chapter, label, kind, operation=words)
    frame = pd.DataFrame(rows)
    return charts.stacked_pages(
        frame,
        question="Which pages does a transaction need when nothing but the catalogs is cached?",
        caption="Distinct pages of a transaction that starts with an empty pool (mean over the sample). "
        f"The bound counts {LEAF} and {OLD_VERSION}; it takes {ROOT} and {LAST_PAGE} to stay in the pool, and knows no visibility map, no free space map and no log of changes. The log counts as what it adds, in pages.",
        description=narrate.described(frame.assign(panel=frame["operation"], label=frame["label"] + ", " + frame["pages"])),
        quantity="pages per transaction",
        reference=bound["reads"],
        reference_label="bound of 1990",
        name="tp1-pages",
    )


def _log_pages(chapter: Chapter, label: str, kind: str, **more) -> list[dict]:
    """What a transaction adds to the log, in pages, on the rung that doesn't force a checkpoint."""
    frames = [frame for provenance, frame in _runs(chapter, "io") if provenance == kind]
    return [charts.row(label, kind, wide(frame, "wal")[STABLE].mean() / PAGE, pages="log (WAL)", **more) for frame in frames]


def overlapping(chapter: Chapter) -> charts.Figure:
    """Processor share of one and two copies of the test program: printed, measured, predicted."""
    program = published.table("tp1_overlap")
    rows = [
        charts.row(label, "printed", program.at[run, "cpu_percent"] / 100, panel="1990")
        for label, run in zip(COPIES, ("one", "two"))
    ]
    for kind, frame in _runs(chapter, "overlap"):
        table = wide(frame, "processor")
        rows += [charts.row(label, kind, statistics.median(table[label]), panel="now") for label in COPIES]
    frame = pd.concat([pd.DataFrame(rows), overlap_predicted(chapter)], ignore_index=True)
    return charts.compare_to_print(
        frame,
        question="How much of one copy's waiting does a second copy's computing fill?",
        caption="Share of one processor used by the read-compute-write program. The models predict two copies from the share of one: "
        "nobody ever waits for another; a disk that serves one request at a time; a disk that serves any number.",
        description=narrate.described(frame),
        quantity="share of one processor",
        unit="",
        facet="panel",
        name="tp1-overlap",
    )


def first_reads(chapter: Chapter) -> charts.Figure:
    """Pages read by a connection's first transaction against its second, by size of the pool."""
    catalogs = published.table("tp1_catalogs")["value"]
    rows = [charts.row(f"pool of {catalogs['default_buffers']:.0f} pages", "printed", catalogs["first_transaction_reads"], panel="first transaction")]
    for kind, frame in _runs(chapter, "first transaction"):
        for which in ("first", "second"):
            table = wide(frame, f"{which}: pages read")
            rows += [charts.row(arm, kind, statistics.median(table[arm]), panel=f"{which} transaction") for arm in _by_number(table)]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What does a connection's first transaction read that its second doesn't?",
        caption="Pages read by the first and the second transaction of a new connection, each starting with an empty pool.",
        description=narrate.described(frame),
        quantity="pages read",
        unit="",
        facet="panel",
        log=True,
        name="tp1-first-transaction",
    )


def catalogs_reached(chapter: Chapter) -> charts.Figure:
    """Catalog pages fetched by a first transaction with and without the catalogs' indexes."""
    rows = []
    for kind, frame in _runs(chapter, "catalog access"):
        table = wide(frame, "first: catalog pages fetched")
        rows += [
            charts.row(way, kind, statistics.median(table[f"{way}, {size}"]), panel=size)
            for size in (SMALL, GROWN)
            for way in (BY_INDEX, BY_SCAN)
        ]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What would the catalogs cost without their indexes, and how does that grow?",
        caption="Catalog pages that a connection's first transaction fetches, from the pool or the disk.",
        description=narrate.described(frame),
        quantity="catalog pages fetched",
        unit="",
        facet="panel",
        zero=True,
        name="tp1-catalogs",
    )


def reused(chapter: Chapter) -> charts.Figure:
    """Throughput and growth with and without reuse of space within pages."""
    panels = {"throughput": "throughput (transactions/s)", "growth": "growth (pages/transaction)"}
    rows = []
    for kind, frame in _runs(chapter, "reuse"):
        for metric, panel in panels.items():
            table = wide(frame, metric)
            rows += [charts.row(arm, kind, statistics.median(table[arm]), panel=panel) for arm in (REUSED, NOT_REUSED)]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Is it worth reusing the space of dead versions while transactions run?",
        caption="The report's transaction with dead versions pruned within their page, and with an old snapshot that forbids it.",
        description=narrate.described(frame),
        quantity="median",
        unit="",
        facet="panel",
        own_scales=True,
        zero=True,
        name="tp1-reuse",
    )


def _in_order(frame: pd.DataFrame, order: list[str] | None = None) -> pd.DataFrame:
    """Rows in the order of the rungs: charts draw labels as they first occur."""
    order = order or [rung.name for rung in RUNGS]
    return frame.sort_values("label", key=lambda labels: labels.map(order.index), kind="stable").reset_index(drop=True)


def _by_number(names) -> list[str]:
    return sorted(names, key=lambda name: int("".join(filter(str.isdigit, name))))
