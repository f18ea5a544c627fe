"""The charts of the chapter: frames from the print, the published run and this run."""

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.evidence import differences, times
from pgrerun.chapters.hot.experiments import eligibility
from pgrerun.chapters.hot.experiments.growth import UNPRUNED_VACUUMED, VACUUMED
from pgrerun.chapters.hot.experiments.side_effects import OLD_SNAPSHOT, WAITS
from pgrerun.chapters.hot.experiments.throughput import pavans
from pgrerun.chapters.hot.sentences import DELETES_FROM
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FULL,
    HOT,
    NO_HOT,
    REDUCED,
    UNPRUNED,
    UPDATES,
)
from pgrerun.page import charts, narrate
from pgrerun.record import printed
from pgrerun.record.claims import MARGIN


def the_print() -> charts.Figure:
    """What the thread prints of throughput."""
    variant = {True: "with HOT", False: "without HOT"}
    rows = []
    for row in printed.table("hot_throughput").itertuples():
        label, series = f"Pavan, {row.script} script", variant[row.hot]
        rows.append(charts.row(label, "printed", row.tps_including, series=series))
    for row in printed.table("hot_abalance").itertuples():
        index = "index" if row.index_on_abalance else "no index"
        label, series = f"{index}, {narrate.count(row.clients, 'client')}", variant[row.hot]
        rows.append(charts.row(label, "printed", row.tps, series=series))
    return charts.compare(
        rows,
        charts.Words(
            question="What did the patch do to throughput in 2007?",
            caption=(
                "Pavan's reduced script updates accounts and inserts into history; the lines that"
                " name an index, on abalance, are Merlin's."
            ),
            name="hot-print",
        ),
        charts.Axis("throughput", "transactions/s", zero=True),
        joined=True,
    )


def page_by_page(states: pd.DataFrame) -> charts.Figure:
    """The page after every step."""
    return charts.heap_pages(
        states,
        charts.Words(
            question="What becomes of a page while its tuples are updated, read and vacuumed?",
            caption=(
                f"{_pages_result(states)} One page after each step, a box for each line pointer."
                " Arrows lead from a version to the next and from a redirect to its target; a"
                " dashed box is a heap-only tuple; a triangle marks a line pointer that the primary"
                " key points to."
            ),
            name="hot-page",
            description=" ".join(
                f"After step {title}: {_in_words(page)}."
                for title, page in states.groupby("page", sort=False)
            ),
        ),
    )


def _pages_result(states: pd.DataFrame) -> str:
    """How many of the new versions are heap-only, and what is left of line pointers at the end."""
    normal = states[states["state"] == "normal"]
    first, last = states["page"].iloc[0], states["page"].iloc[-1]
    loaded = normal.loc[normal["page"] == first, "tuple"]
    new = normal[~normal["tuple"].isin(loaded)].drop_duplicates("tuple")
    left = states.loc[states["page"] == last, "state"].value_counts()
    return (
        f"Of {narrate.count(len(new), 'new version')}"
        f" {narrate.number(int(new['heap_only'].sum()))} are heap-only and have no index entry; at"
        f" the end {narrate.number(int(left.get('unused', 0)))} of"
        f" {narrate.count(int(left.sum()), 'line pointer')} are free again and"
        f" {narrate.number(int(left.get('redirect', 0)))} redirect."
    )


def _in_words(page: pd.DataFrame) -> str:
    """The line pointers of a page, read aloud."""
    parts = []
    for row in page.itertuples():
        what = row.tuple if row.state == "normal" else row.state
        heap_only = " heap-only" if row.state == "normal" and row.heap_only else ""
        leads = "" if pd.isna(row.to) else f" to {row.to}"
        parts.append(f"{row.line_pointer} {what}{heap_only}{leads}")
    return ", ".join(parts)


PLACES = {
    "heap_only": "heap-only (HOT)",
    "same_page": "new index entries, same page",
    "other_page": "new index entries, another page",
    "other_partition": "deleted and inserted again",
}


def by_case(cases: pd.DataFrame) -> charts.Figure:
    """Where the new version went, by kind of update."""
    placed = cases.set_index("case")[list(PLACES)].rename(columns=PLACES)
    whole = (placed[PLACES["heap_only"]] == eligibility.ROWS).sum()
    frame = placed.rename_axis(columns="part").stack().reset_index(name="value")
    return charts.stacked(
        frame[frame["value"] > 0].rename(columns={"case": "label"}).assign(kind="measured"),
        charts.Words(
            question="Which updates are heap-only?",
            caption=(
                f"Where the new versions of {eligibility.ROWS} updates went, by what was updated."
            ),
            result=lambda _: f"Of {len(placed)} kinds of update {whole} are heap-only throughout.",
            name="hot-ways",
        ),
        charts.Axis("updates"),
    )


def by_fillfactor(found: pd.DataFrame) -> charts.Figure:
    """Share of HOT updates over fillfactor."""
    shares = found.set_index("fillfactor")
    at_once = "all in one statement"
    return charts.lines(
        [
            *charts.points(shares["one_by_one"], "measured", series="one transaction each"),
            *charts.points(shares["at_once"], "measured", series=at_once),
            *charts.points(shares["at_once_expected"], "simulated", series=at_once),
        ],
        charts.Words(
            question="How much room do first updates need to be heap-only?",
            caption=(
                "Share of HOT updates when every account is updated once. Simulated is the number"
                " of further tuples that fit on a page, over those that are there."
            ),
            name="hot-fillfactor",
        ),
        charts.Axis("fillfactor", "%"),
        charts.Axis("share of HOT updates", zero=True),
    )


def growth(sizes: pd.DataFrame) -> charts.Figure:
    """Growth of accounts and its index in the reduced set-up, as a ratio of sizes."""
    in_print, rows = printed.derived("hot_growth"), []
    for relation in ACCOUNTS:
        then = in_print.loc[f"reduced_{relation}"]
        in_2007 = {UNPRUNED: then["times_head"], HOT: then["times_hot"]}
        for variant in (UNPRUNED, NO_HOT, HOT):
            if variant in in_2007:
                rows.append(charts.row(variant, "printed", in_2007[variant], panel=relation))
            now = times(sizes, variant, relation)
            rows.append(charts.row(variant, "measured", now, panel=relation))
    return charts.compare(
        rows,
        charts.Words(
            question="How much do accounts and its index grow, with HOT and without?",
            caption=(
                f"Pages after the reduced script over pages before it, at {UPDATES:g}"
                " updates per account as in 2007."
            ),
            name="hot-growth",
        ),
        charts.Axis("size afterwards, relative to before"),
        reference=charts.Reference(1, "no growth"),
    )


_RELATIONS = {"accounts": "accounts", "accounts_pkey": "its index"}


def steady_state(measured: pd.DataFrame, computed: pd.DataFrame) -> charts.Figure:
    """Sizes of accounts and its index over updates, measured and computed, and the print's."""
    frame = pd.concat(
        [_sizes_of(relation, measured, computed) for relation in _RELATIONS], ignore_index=True
    )
    return charts.lines(
        frame,
        charts.Words(
            question=(
                "What sizes do accounts and its index settle at, and does the layout of a page"
                " predict them?"
            ),
            caption=(
                "Simulated is an account of bytes on each page: tuples or entries, line pointers,"
                " and what dead versions leave."
            ),
            result=lambda _: _steady_result(measured, computed),
            name="hot-steady",
        ),
        charts.Axis("updates", "per account"),
        charts.Axis("size, relative to after loading"),
        keyed=True,
    )


def _steady_result(measured: pd.DataFrame, computed: pd.DataFrame) -> str:
    """What grows most and what keeps its size, and before them whether the model predicts it."""
    grown = {
        variant: sizes[list(_RELATIONS)].iloc[-1] / sizes[list(_RELATIONS)].iloc[0]
        for variant, sizes in measured.groupby("variant", sort=False)
    }
    ends = pd.DataFrame(grown).T
    kept = [f"“{variant}”" for variant in ends.index[(ends <= 1 + MARGIN).all(axis=1)]]
    most = [
        f"{name} grows most in “{ends[relation].idxmax()}”, to"
        f" {narrate.number(ends[relation].max(), 2)} times its size"
        for relation, name in _RELATIONS.items()
        if ends[relation].max() > 1 + MARGIN
    ]
    said = [_predicted(differences(measured, computed))]
    said += [f"In this run {narrate.listed(most)}."] if most else []
    said += [f"In {narrate.listed(kept)} both keep their sizes."] if kept else []
    return " ".join(said)


def _predicted(found: pd.DataFrame) -> str:
    """Whether the computed sizes are the measured ones; where not, what the model leaves out."""
    rule = f"within {narrate.number(100 * MARGIN)} % or a page of the computed ones"
    missed = found[~found["predicted"]]
    named = {"accounts": "accounts", "accounts_pkey": "the index of accounts"}
    if missed.empty:
        return f"The layout of a page predicts the sizes: all measured ones lie {rule}."
    off = ", ".join(
        f"of {named[row.relation]} in “{row.variant}”, which lies"
        f" {narrate.number(100 * row.share, 1)} % off"
        for row in missed.itertuples()
    )
    if set(missed["relation"]) != {"accounts_pkey"}:
        return f"The layout of a page does not predict the sizes {off}; all others lie {rule}."
    return (
        f"The layout of a page does not predict the size {off}; all others lie {rule}. The model"
        " leaves out that before a split the server looks for entries of dead versions on at most"
        f" {narrate.count(DELETES_FROM, 'page')} of the table: the model finds them all."
    )


def _sizes_of(relation: str, measured: pd.DataFrame, computed: pd.DataFrame) -> pd.DataFrame:
    """The lines of a relation, in a panel with pruning and one without, and the print's points."""
    then = printed.derived("hot_growth").loc[f"reduced_{relation}"]
    times = [then["times_hot"], then["times_head"]]
    points = pd.DataFrame({"x": UPDATES, "value": times, "series": [HOT, UNPRUNED]})
    parts = [points.assign(kind="printed")]
    for kind, sizes in (("measured", measured), ("simulated", computed)):
        loaded = sizes.groupby("variant")[relation].transform("first")
        lines = pd.DataFrame(
            {"x": sizes["updates"], "value": sizes[relation] / loaded, "series": sizes["variant"]}
        )
        parts.insert(0, lines.assign(kind=kind))
    frame = pd.concat(parts, ignore_index=True)
    pruned = ~frame["series"].isin((UNPRUNED, UNPRUNED_VACUUMED))
    panels = {True: "pruned", False: "nothing pruned"}
    frame["panel"] = f"{_RELATIONS[relation]}, " + pruned.map(panels)
    frame = _merged(frame, HOT, VACUUMED, f"{HOT}; {VACUUMED}")
    return _merged(frame, f"{HOT}; {VACUUMED}", NO_HOT, f"{HOT}; {NO_HOT}, vacuumed or not")


def _merged(frame: pd.DataFrame, one: str, other: str, name: str) -> pd.DataFrame:
    """Two series as one line called `name`, if they coincide in all but the printed points."""
    drawn = frame[frame["kind"] != "printed"].sort_values(["kind", "x"])
    lines = {
        series: own.drop(columns="series").to_numpy().tolist()
        for series, own in drawn.groupby("series")
    }
    if one not in lines or lines[one] != lines.get(other):
        return frame
    kept = frame[(frame["series"] != other) | (frame["kind"] == "printed")]
    return kept.replace({"series": {one: name, other: name}}).reset_index(drop=True)


def wal_volume(written: pd.DataFrame) -> charts.Figure:
    """WAL per transaction by what it is for."""
    names = {"variant": "label", "bytes": "value", "phase": "panel"}
    rows = written[written["bytes"] > 0].rename(columns=names).assign(kind="measured")
    return charts.stacked(
        rows[["label", "part", "value", "kind", "panel"]].reset_index(drop=True),
        charts.Words(
            question=(
                "What does a transaction of the reduced script write to the WAL, and what for?"
            ),
            caption=(
                "Bytes of WAL per transaction in two halves of the run, the first of which begins"
                " with a checkpoint."
            ),
            name="hot-log",
        ),
        charts.Axis("WAL per transaction", "bytes"),
    )


def throughput(chapter: Chapter) -> charts.Figure:
    """Ratios of throughput, with the print's; of the full script where it ran."""
    over = printed.derived("hot_throughput")
    reduced, full = f"reduced: {HOT} over", f"full: {HOT} over"
    compared = {
        f"{reduced} neither": ((REDUCED, HOT), (REDUCED, UNPRUNED), "throughput"),
        f"{reduced} {NO_HOT}": ((REDUCED, HOT), (REDUCED, NO_HOT), "throughput"),
        f"{full} {NO_HOT}": ((FULL, HOT), (FULL, NO_HOT), "full"),
        f"{NO_HOT}: reduced over full": ((REDUCED, NO_HOT), (FULL, NO_HOT), "full"),
        f"full, no room left: {HOT} over {NO_HOT}": ((FULL, HOT), (FULL, NO_HOT), "merlin"),
    }
    in_print = [
        over.at["reduced_hot", "over_head"],
        None,
        over.at["full_hot", "over_head"],
        over.at["reduced_head", "over_full"],
        printed.derived("hot_abalance").at["plain_10_hot", "over_head"],
    ]
    frames = [
        pd.DataFrame({"label": list(compared), "value": in_print, "kind": "printed"}).dropna()
    ]
    for label, (one, other, measured) in compared.items():
        if measured == "throughput" or not chapter.run.observations(measured).empty:
            pair = {label: (pavans(*one), pavans(*other))}
            frames.append(chapter.ratios(measured, "throughput", pair))
    order = list(compared)
    unrun = [one for one in compared.values() if one[2] != "throughput"]
    unrun = [one for one in unrun if chapter.run.observations(one[2]).empty]
    lacking = " Rows with a printed mark alone take a longer run than this one." if unrun else ""
    return charts.compare(
        pd.concat(frames).sort_values(
            "label", key=lambda labels: labels.map(order.index), kind="stable"
        ),
        charts.Words(
            question="How much throughput is HOT worth?",
            caption=(
                "Ratios of throughput of the reduced and the full script: median over interleaved"
                f" pairs, with intervals, measured on a {chapter.disk('throughput')}. “Neither” is"
                " without HOT and pruning, as the printed server was before the patch; “no room"
                f" left” is at the stock fillfactor.{lacking}"
            ),
            name="hot-throughput",
            result=lambda frame: _throughput_result(
                frame, f"{reduced} neither", f"{reduced} {NO_HOT}"
            ),
        ),
        charts.Axis("ratio of throughputs", log=True),
        reference=charts.Reference(1, "no difference"),
    )


def _throughput_result(frame: pd.DataFrame, neither: str, pruned: str) -> str:
    """How many times as fast the reduced script is with HOT, with the print's number."""
    whose, rows = charts.own(frame)
    measured = rows.set_index("label")
    printed_ = frame[frame["kind"] == "printed"].set_index("label")["value"]
    told = []
    for label, words in ((neither, "neither HOT nor pruning"), (pruned, "pruning alone")):
        if label in measured.index:
            value = narrate.interval(charts.value_of(measured.loc[label]))
            beside = f" (printed: {narrate.number(printed_[label])})" if label in printed_ else ""
            told.append(f"{value} times that with {words}{beside}")
    if not told:
        return ""
    return f"{whose} the throughput of the reduced script with HOT is {narrate.listed(told)}."


def long_chains(chains: pd.DataFrame) -> charts.Figure:
    """Chain length and pages touched over updates of one tuple."""
    alone, beside, without = "alone", "old snapshot", "no HOT, old snapshot"
    short = {HOT: alone, OLD_SNAPSHOT: beside, UNPRUNED: without}
    some = chains[chains["updates"] > 0].replace({"variant": short}).assign(kind="measured")
    some = some.rename(columns={"updates": "x", "variant": "series"})
    parts = [
        some.assign(value=some[column], panel=panel)[["x", "value", "series", "kind", "panel"]]
        for column, panel in (("chain", "versions in the chain"), ("pages", "pages per lookup"))
    ]
    # without HOT versions are linked as well, but every one has index entries: no chain to follow
    parts[0] = parts[0][parts[0]["series"] != without]
    parts[1] = _merged(parts[1], beside, without, beside)
    return charts.lines(
        pd.concat(parts, ignore_index=True),
        charts.Words(
            question=(
                "How long does a chain grow beside a long transaction, and what does it cost to"
                " follow?"
            ),
            caption=(
                "One account is updated again and again; the pages are those that a lookup of it"
                " touches. Beside an old snapshot they are drawn once where they are the same"
                " without HOT."
            ),
            name="hot-chains",
        ),
        charts.Axis("updates of the account", log=True),
        charts.Axis("", zero=True),
        own_scales=True,
    )


def waiting(waits: pd.DataFrame) -> charts.Figure:
    """What backends wait for on a tiny table."""
    rows = waits[waits["share"] > 0].sort_values("share", ascending=False)
    shares = rows.groupby("waiting", sort=False)["share"].sum() * 100
    of_page = [WAITS[event] for event in ("LWLock:BufferContent", "BufferPin:BufferPin")]
    return charts.compare(
        charts.rows(shares, "measured"),
        charts.Words(
            question="What do backends wait for when all of them update and read one page?",
            caption=(
                "Samples of the backends that were at work on one page, by what they waited for;"
                " logarithmic, as the waits of interest are few."
            ),
            result=lambda _: _waiting_result(*shares.reindex(of_page, fill_value=0)),
            name="hot-waiting",
        ),
        charts.Axis("share of samples", "%", log=True),
    )


def _waiting_result(lock: float, pin: float) -> str:
    """How often backends wait for the page, for each of its two reasons, in percent."""
    lock_in, pin_in = (f"{narrate.number(one, 2)} %" if one > 0 else "none" for one in (lock, pin))
    return (
        f"In {lock_in} of the samples a backend waits for the page's content lock; in {pin_in} for"
        " other backends to leave the page."
    )
