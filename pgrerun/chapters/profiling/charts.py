"""The charts of the chapter: frames from the print, the published run and this run."""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.profiling import evidence, subsystems
from pgrerun.chapters.profiling.experiments import instructions, samples
from pgrerun.chapters.profiling.queries import SCANS, SETS, TRANSACTIONS
from pgrerun.page import charts, narrate
from pgrerun.record import printed


def _printed_stages() -> pd.DataFrame:
    """The report's six stages of Figure 2.1: label, cycles, gain_in_all (of the first over it)."""
    return printed.derived("profiling_totals").dropna(subset="gain_in_all")


def the_print() -> charts.Figure:
    """What the report claims: cycles of Figure 2.1's commands after each change."""
    stages = _printed_stages()
    return charts.compare(
        stages.assign(kind="printed", value=stages["cycles"] / 1e6)[["label", "kind", "value"]],
        charts.Words(
            question="How many cycles did each change save?",
            caption=(
                "Total cycles of the queries of Figure 2.1 in the six profiles of the report, each"
                " with the changes of those above it."
            ),
            name="profiling-print",
        ),
        charts.Axis("cycles", "million", zero=True),
    )


def subsystem_shares(chapter: Chapter) -> charts.Figure:
    """Shares by subsystem of both query sets, printed and counted."""
    in_print = printed.table("profiling_subsystems")
    rows = []
    for column, panel in (("second", SCANS), ("transactions", TRANSACTIONS)):
        rows += _by_subsystem(in_print[column].dropna(), "printed", panel)
    for kind, _ in chapter.by_provenance(instructions.INSTRUCTIONS):
        for workload in SETS:
            rows += _by_subsystem(evidence.shares(chapter, workload, kind), kind, workload)
    return charts.compare(
        _in_order(rows),
        charts.Words(
            question="Which parts of the system do the work, then and now?",
            caption=(
                "Share of each subsystem, of printed cycles (the scans of Figure 3.4, the"
                " transactions of Figure 3.6) and of instructions counted. Two of the report's"
                " figures don't add up to a hundred. Others are commands, catalogs and dispatch,"
                " which the report's figures don't list."
            ),
            name="profiling-subsystems",
            result=_largest,
        ),
        charts.Axis("share", "%", zero=True),
    )


def two_instruments(chapter: Chapter) -> charts.Figure:
    """Instructions counted beside samples of a live server, user space only, by subsystem."""
    counted, _ = evidence.latest(chapter, instructions.INSTRUCTIONS)
    sampled, _ = evidence.latest(chapter, samples.SAMPLES)
    rows = []
    for workload in SETS:
        counts = evidence.shares(chapter, workload)
        rows += _by_subsystem(counts, counted, f"{workload}: instructions")
        shares = evidence.sampled_shares(chapter, workload, user_only=True)
        for row in _by_subsystem(shares["value"], sampled, f"{workload}: samples"):
            interval = shares.rename(index=subsystems.NAMES).loc[row["label"], ["low", "high"]]
            rows.append(row | interval.to_dict())
    return charts.compare(
        _in_order(rows),
        charts.Words(
            question="Do instructions and time agree on where the work is?",
            caption=(
                "Share of each subsystem in user space: instructions of a single-user backend, and"
                " samples of a live one with their binomial error."
            ),
            name="profiling-instruments",
            result=_largest,
        ),
        charts.Axis("share", "%", zero=True),
    )


def _by_subsystem(shares: pd.Series, kind: str, panel: str) -> list[dict[str, object]]:
    """A chart's rows of a share for each subsystem, the kernel left out."""
    shown = shares.drop("kernel", errors="ignore").rename(subsystems.NAMES)
    return charts.rows(shown, kind, panel=panel)


def _largest(frame: pd.DataFrame) -> str:
    """The subsystem with the largest share of each panel, beside what is printed of it."""
    kind = next((kind for kind in ("measured", "published") if (frame["kind"] == kind).any()), "")
    said = []
    for panel, shares in frame[frame["kind"] == kind].groupby("panel", sort=False):
        largest = shares.loc[shares["value"].idxmax()]
        then = frame[
            (frame[["kind", "panel", "label"]] == ["printed", panel, largest["label"]]).all(axis=1)
        ]
        numbers = [f"{narrate.number(largest['value'], 1)} %"]
        numbers += [f"printed {narrate.number(share, 1)} %" for share in then["value"]]
        said.append(f"{largest['label']} in “{panel}” ({', '.join(numbers)})")
    return f"The largest shares are those of {narrate.listed(said)}." if said else ""


def _in_order(rows: list[dict[str, object]]) -> pd.DataFrame:
    return charts.together(rows, order=subsystems.NAMES.values())


def flame(chapter: Chapter, workload: str) -> charts.Figure:
    """Who calls whom in one query set, by instructions."""
    stacks = evidence.recorded(chapter, instructions.FLAME, workload)
    part_of = evidence.subsystem_of(chapter, workload)
    last = stacks.index.str.rpartition(";").get_level_values(2)
    rows = pd.DataFrame({"stack": stacks.index, "value": stacks.to_numpy()})
    rows["group"] = [part_of.get(name, subsystems.NAMES["unknown"]) for name in last]
    told = [
        f"{row.function} ({narrate.number(round(row.share, 1))} %)"
        for row in evidence.routines(chapter, workload).head(5).itertuples()
    ]
    # of all routines, and not of the frames: those too small to be drawn are their callers'
    parts = evidence.shares(chapter, workload).nlargest(3)
    shares = [f"{subsystems.NAMES[part]} ({narrate.number(x, 1)} %)" for part, x in parts.items()]
    return charts.flame(
        rows,
        charts.Words(
            question=f"Who calls whom in the {workload}, and what does it cost?",
            caption=(
                f"By their routines' own instructions the largest shares of the {workload} are"
                f" those of {narrate.listed(shares)}; the costliest routines by themselves are"
                f" {narrate.listed(told[:3])}. A frame is as"
                " wide as its share of the instructions, with all that it calls. Click a frame to"
                " look into it, click twice to see all again. Frames too small to be seen are drawn"
                " as their caller's own."
            ),
            name=f"profiling-flame-{workload}",
            description=(
                f"A flame graph of the instructions of the {workload}. The routines with most"
                f" instructions of their own: {', '.join(told)}."
            ),
        ),
        charts.Axis("of all instructions"),
        groups=subsystems.NAMES.values(),
    )


def attributes(chapter: Chapter) -> charts.Figure:
    """Instructions to fetch an attribute by its place, and by how often a condition uses it."""
    panels = (
        ("by place in the tuple", "attribute {}", instructions.PLACES),
        ("by number of uses", "{} uses", instructions.USES),
    )
    rows = []
    for kind, frame in chapter.by_provenance(instructions.ATTRIBUTES):
        per_tuple = wide(frame, "in routine").iloc[0]
        for panel, variant, numbers in panels:
            for number in numbers:
                point = {number: per_tuple[variant.format(number)]}
                rows += charts.points(point, kind, series="", panel=panel)
    return charts.lines(
        rows,
        charts.Words(
            question="What does it cost to fetch an attribute?",
            caption=(
                "Instructions per tuple in the routines that fetch attributes: for one attribute by"
                " its place in the tuple, and for the thirteenth by how many conditions use it."
            ),
            name="profiling-attributes",
        ),
        charts.Axis("place, or number of uses"),
        charts.Axis("instructions per tuple", zero=True),
    )
