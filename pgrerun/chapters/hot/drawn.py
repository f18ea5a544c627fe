"""The charts of the chapter: frames from the print, the published run and this run, and their words."""

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.hot import ways as kinds
from pgrerun.chapters.hot.bank import AS_BEFORE, FULL, HOT, INDEXED, NO_HOT, REDUCED, SIZED, printed_updates
from pgrerun.chapters.hot.budget import Written
from pgrerun.chapters.hot.growth import BEFORE_VACUUMED, VACUUMED, pick
from pgrerun.chapters.hot.speed import PAVAN, merlins, name
from pgrerun.chapters.hot.worries import BESIDE


def the_print() -> charts.Figure:
    """What the thread prints of throughput."""
    pavan, merlin = published.table("hot_throughput"), published.table("hot_abalance")
    arm = {True: "with HOT", False: "without HOT"}
    rows = [charts.row(arm[row.hot], "printed", row.tps_including, panel=f"Pavan, {row.script} script") for row in pavan.itertuples()]
    for row in merlin.itertuples():
        again = f", run {row.repeat:.0f}" if row.repeat > 0 else ""
        panel = f"{'index' if row.index_on_abalance else 'no index'}, {narrate.count(row.clients, 'client')}"
        rows.append(charts.row(arm[row.hot] + again, "printed", row.tps, panel=panel))
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What did the patch do to throughput in 2007?",
        caption="Transactions per second as the thread prints them. Pavan runs ninety clients; his reduced script updates accounts and inserts into history. "
        "The panels that name an index, on abalance, are Merlin's.",
        description=narrate.described(frame),
        quantity="throughput",
        unit="transactions/s",
        facet="panel",
        zero=True,
        name="hot-print",
    )


def page_by_page(told: pd.DataFrame | None) -> charts.Figure | None:
    """The story of one page."""
    if told is None:
        return None
    return charts.heap_pages(
        told,
        question="What becomes of a page while its tuples are updated, read and vacuumed?",
        caption="One page of a small table after each step, a box for each line pointer. An arrow leads from a version to the next, and from "
        "a redirect to where it leads; a dashed box is a heap-only tuple; a triangle marks a line pointer that the primary key points to.",
        description=_in_words(told),
        name="hot-page",
    )


def _in_words(told: pd.DataFrame) -> str:
    """The pages, read aloud."""
    sentences = []
    for title, page in told.groupby("page", sort=False):
        parts = []
        for row in page.itertuples():
            what = {"normal": row.tuple + (" heap-only" if row.heap_only else "")}.get(row.state, row.state)
            parts.append(f"{row.line_pointer} {what}" + ("" if pd.isna(row.to) else f" to {row.to}"))
        sentences.append(f"After step {title}: {', '.join(parts)}.")
    return " ".join(sentences)


def by_way(found: pd.DataFrame | None) -> charts.Figure | None:
    """Where the new version went, by kind of update."""
    if found is None:
        return None
    places = {"heap_only": kinds.HEAP_ONLY, "same_page": kinds.SAME_PAGE, "other_page": kinds.OTHER_PAGE, "other_partition": kinds.OTHER_PARTITION}
    rows = [
        {"label": row.way, "pages": words, "value": getattr(row, column), "kind": "measured"}
        for row in found.itertuples() for column, words in places.items() if getattr(row, column)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return charts.stacked_pages(
        frame,
        question="Which updates are heap-only?",
        caption=f"Where the new versions of {kinds.ROWS} updates went, by what was updated.",
        description=narrate.described(frame.assign(label=frame["label"] + ", " + frame["pages"])),
        quantity="updates",
        facet=None,
        name="hot-ways",
    )


def by_fillfactor(found: pd.DataFrame | None) -> charts.Figure | None:
    """Share of HOT updates over fillfactor."""
    if found is None:
        return None
    series = {"one_by_one": ("one transaction each", "measured"), "at_once": ("all in one statement", "measured"), "at_once_expected": ("all in one statement", "simulated")}
    frame = pd.concat(
        pd.DataFrame({"x": found["fillfactor"], "value": found[column], "kind": kind, "series": words}) for column, (words, kind) in series.items()
    )
    return charts.lines(
        frame.reset_index(drop=True),
        question="How much room do first updates need to be heap-only?",
        caption="Share of HOT updates when every account is updated once. Simulated is the number of further tuples that fit on a page, over those that are there.",
        description=narrate.described(frame.assign(label=frame["series"] + " at " + frame["x"].astype(str))),
        x_quantity="fillfactor",
        x_unit="%",
        quantity="share of HOT updates",
        unit="",
        zero=True,
        name="hot-fillfactor",
    )


def beside_print(grown: pd.DataFrame | None) -> charts.Figure | None:
    """Growth of accounts and its index in the reduced set-up, as a ratio of sizes."""
    if grown is None:
        return None
    printed, rows = published.derived("hot_growth"), []
    for relation in SIZED[:2]:
        then = printed.loc[f"reduced_{relation}"]
        rows += [charts.row(label, "printed", then[f"times_{arm}"], panel=relation) for label, arm in ((AS_BEFORE, "head"), (HOT, "hot"))]
        for arm in (AS_BEFORE, NO_HOT, HOT):
            now = pick(grown, REDUCED, arm, relation)
            rows.append(charts.row(arm, "measured", now["after"] / now["before"], panel=relation))
    frame = pd.DataFrame(rows)
    order = [AS_BEFORE, NO_HOT, HOT]
    frame = frame.sort_values(["panel", "label"], key=lambda column: column.map(order.index) if column.name == "label" else column, kind="stable")
    return charts.compare_to_print(
        frame.reset_index(drop=True),
        question="How much do accounts and its index grow, with HOT and without?",
        caption=f"Pages after the reduced script over pages before it, at {printed_updates():g} updates per account as in print.",
        description=narrate.described(frame),
        quantity="size afterwards, relative to before",
        unit="",
        reference=1,
        reference_label="no growth",
        facet="panel",
        name="hot-growth",
    )


# a line's name stands inside its panel, which on a phone is narrow
_SHORT = {VACUUMED: "no HOT, vacuumed", BEFORE_VACUUMED: "vacuumed", AS_BEFORE: "never vacuumed"}
_RELATIONS = {"accounts": "accounts", "accounts_pkey": "its index"}
PRUNED_PANEL, KEPT_PANEL = "pruned", "nothing pruned"


def steady_state(measured: pd.DataFrame | None, computed: pd.DataFrame) -> charts.Figure | None:
    """Sizes of accounts and its index over updates per account, measured and computed, and the print's points."""
    if measured is None:
        return None
    frame = pd.concat([_sizes_of(relation, measured, computed) for relation in _RELATIONS], ignore_index=True)
    return charts.lines(
        frame,
        question="What sizes do accounts and its index settle at, and does the layout of a page predict them?",
        caption="Pages relative to those after loading, with dead versions pruned and without. Simulated is an account of bytes on each page: "
        "tuples or entries, line pointers and what dead versions leave.",
        description=narrate.described(frame.assign(label=frame["series"] + " after " + frame["x"].map("{:g}".format))),
        x_quantity="updates",
        x_unit="per account",
        quantity="size, relative to after loading",
        unit="",
        facet="panel",
        own_scales=True,
        name="hot-steady",
    )


def _sizes_of(relation: str, measured: pd.DataFrame, computed: pd.DataFrame) -> pd.DataFrame:
    """The lines of accounts or its index, in a panel with pruning and one without, and the print's points."""
    rows = []
    for kind, frame in (("simulated", computed), ("measured", measured)):
        for arm, own in frame.groupby("arm", sort=False):
            relative = own[relation] / own[relation].iloc[0]
            rows.append(pd.DataFrame({"x": own["updates"], "value": relative, "kind": kind, "series": arm}))
    then = published.derived("hot_growth").loc[f"reduced_{relation}"]
    points = {HOT: then["times_hot"], AS_BEFORE: then["times_head"]}
    rows.append(pd.DataFrame([{"x": printed_updates(), "value": value, "kind": "printed", "series": arm} for arm, value in points.items()]))
    frame = pd.concat(rows, ignore_index=True)
    pruned = ~frame["series"].isin((AS_BEFORE, BEFORE_VACUUMED))
    frame["panel"] = pruned.map({True: f"{_RELATIONS[relation]}, {PRUNED_PANEL}", False: f"{_RELATIONS[relation]}, {KEPT_PANEL}"})
    frame = _merged(frame.replace({"series": _SHORT}), HOT, _SHORT[VACUUMED])
    with_both = f"{HOT}; {_SHORT[VACUUMED]}"
    return _merged(frame, with_both, NO_HOT, "all three") if with_both in set(frame["series"]) else frame


def _merged(frame: pd.DataFrame, one: str, other: str, name: str = "") -> pd.DataFrame:
    """The two series as one line with both names (or `name`), if they coincide in everything but the print."""
    drawn = frame[frame["kind"] != "printed"]
    values = [drawn[drawn["series"] == series].drop(columns="series").sort_values(["kind", "x"]).to_numpy().tolist() for series in (one, other)]
    if values[0] != values[1]:
        return frame
    kept = frame[(frame["series"] != other) | (frame["kind"] == "printed")]
    return kept.replace({"series": {one: name or f"{one}; {other}", other: name or f"{one}; {other}"}}).reset_index(drop=True)


def log_budget(found: Written | None) -> charts.Figure | None:
    """Log per transaction by what it is for."""
    if found is None:
        return None
    rows = found.log[found.log["bytes"] > 0].rename(columns={"arm": "label", "part": "pages", "bytes": "value"}).assign(kind="measured")
    frame = rows[["label", "pages", "value", "kind", "phase"]].reset_index(drop=True)
    return charts.stacked_pages(
        frame,
        question="What does a transaction of the reduced script write to the log, and what for?",
        caption="Bytes of log per transaction in two halves of the run, the first of which begins with a checkpoint.",
        description=narrate.described(frame.assign(panel=frame["phase"], label=frame["label"] + ", " + frame["pages"])),
        quantity="log per transaction",
        unit="bytes",
        facet="phase",
        name="hot-log",
    )


def faster(chapter: Chapter) -> charts.Figure | None:
    """Ratios of throughput, with the print's."""
    over_head, over_full = (published.derived("hot_throughput")[column] for column in ("over_head", "over_full"))
    merlin, clients = published.derived("hot_abalance")["over_head"], chapter.parameters.clients
    reduced, full = f"reduced: {HOT} over", f"full: {HOT} over"
    many = f"no fsync, {narrate.count(clients, 'client')}: {HOT} over {NO_HOT}"
    one = f"no fsync, {narrate.count(1, 'client')}: {HOT} over {NO_HOT}"
    rows = [
        charts.row(f"{reduced} neither", "printed", over_head["reduced_hot"]),
        charts.row(f"{full} {NO_HOT}", "printed", over_head["full_hot"]),
        charts.row(f"{NO_HOT}: reduced over full", "printed", over_full["reduced_head"]),
    ]
    if clients == 10:
        rows.append(charts.row(many, "printed", merlin["plain_10_hot"]))
    pairs = [
        ("throughput", f"{reduced} neither", name(REDUCED, HOT), name(REDUCED, AS_BEFORE)),
        ("throughput", f"{reduced} {NO_HOT}", name(REDUCED, HOT), name(REDUCED, NO_HOT)),
        ("throughput", f"{full} {NO_HOT}", name(FULL, HOT), name(FULL, NO_HOT)),
        ("throughput", f"{NO_HOT}: reduced over full", name(REDUCED, NO_HOT), name(FULL, NO_HOT)),
        ("merlin", one, merlins(1, HOT), merlins(1, NO_HOT)),
        ("merlin", many, merlins(clients, HOT), merlins(clients, NO_HOT)),
        *(("merlin", f"{narrate.count(number, 'client')}: {NO_HOT} over an index", merlins(number, NO_HOT), merlins(number, INDEXED)) for number in (1, clients)),
    ]
    for experiment, label, arm, base in pairs:
        for kind, frame in chapter.by_provenance(experiment):
            table = wide(frame, "throughput")
            if {arm, base} <= set(table):
                rows.append(charts.row(label, kind, statistics.ratio(table[arm], table[base], seed=chapter.parameters.seed)))
    order = [label for _, label, *_ in pairs]
    frame = pd.DataFrame(rows).sort_values("label", key=lambda labels: labels.map(order.index), kind="stable").reset_index(drop=True)
    if set(frame["kind"]) == {"printed"}:
        return None
    return charts.compare_to_print(
        frame,
        question="How much throughput is HOT worth?",
        caption="Ratios of throughput of the reduced and the full script: median over interleaved pairs, with intervals. "
        "“Neither” is without HOT and pruning; the runs without fsync, and those with an index on abalance, are of the full script. "
        "In print, “without” is the server before the patch, which neither had HOT nor pruned.",
        description=narrate.described(frame),
        quantity="ratio of throughputs",
        unit="",
        reference=1,
        reference_label="no difference",
        log=True,
        name="hot-throughput",
    )


def every_run(chapter: Chapter) -> charts.Figure | None:
    """Every repetition of Pavan's two set-ups."""
    found = chapter.by_provenance("throughput")
    if not found:
        return None
    kind, frame = found[-1]
    # the arms' names in the record are too long for a phone
    short = {name(script, arm): f"{'reduced' if script == REDUCED else 'full'}: {arm}" for script, arm in PAVAN}
    table = wide(frame, "throughput").rename(columns=short)
    order = list(short.values())
    medians = pd.DataFrame([charts.row(arm, kind, statistics.median(table[arm])) for arm in order])
    every = table[order].melt(ignore_index=False, var_name="label").rename_axis("block").reset_index().assign(kind=kind)
    return charts.observations(
        every,
        question="How much do runs of the same arm differ?",
        caption="Throughput of every repetition of the reduced and the full script, with the median of each arm and its interval.",
        description=narrate.described(medians),
        quantity="throughput",
        unit="transactions/s",
        intervals=medians,
        zero=True,
        name="hot-repetitions",
    )


def long_chains(found: pd.DataFrame | None) -> charts.Figure | None:
    """Chain length and pages touched over updates of one tuple."""
    if found is None:
        return None
    panels = {"chain": "versions in the chain", "pages": "pages per lookup"}
    short = {HOT: "alone", BESIDE: "old snapshot", AS_BEFORE: "no HOT, old snapshot"}
    some = found[found["updates"] > 0].replace({"arm": short})
    parts = []
    for column, panel in panels.items():
        own = pd.DataFrame({"x": some["updates"], "value": some[column], "series": some["arm"], "kind": "measured", "panel": panel})
        # without HOT versions are linked as well, but every one has index entries: that is no chain to follow
        heap_only = own[own["series"] != short[AS_BEFORE]]
        parts.append(heap_only if column == "chain" else _merged(own, short[BESIDE], short[AS_BEFORE], short[BESIDE]))
    frame = pd.concat(parts, ignore_index=True)
    return charts.lines(
        frame,
        question="How long does a chain grow beside a long transaction, and what does it cost to follow?",
        caption="One account is updated again and again. The chain is what its line pointer on the first page leads to; the pages are those that a lookup of it touches. "
        "Beside an old snapshot there is one line of pages where HOT makes no difference.",
        description=narrate.described(frame.assign(label=frame["series"] + " after " + frame["x"].astype(str))),
        x_quantity="updates of the account",
        x_unit="",
        quantity="number",
        unit="",
        facet="panel",
        own_scales=True,
        log_x=True,
        zero=True,
        name="hot-chains",
    )


def waiting(found: pd.DataFrame | None) -> charts.Figure | None:
    """What backends wait for on a tiny table."""
    if found is None:
        return None
    rows = found[found["share"] > 0]
    frame = pd.DataFrame({"label": "samples", "pages": rows["waiting"], "value": 100 * rows["share"], "kind": "measured"}).reset_index(drop=True)
    return charts.stacked_pages(
        frame,
        question="What do backends wait for when all of them update and read one page?",
        caption="Samples of the backends that were at work on a table of ten tuples, by what they waited for.",
        description=narrate.described(frame.assign(label=frame["pages"])),
        quantity="share of samples",
        unit="%",
        facet=None,
        name="hot-waiting",
    )
