"""The charts of the chapter: frames from the print, the published run and this run, and their words."""

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.profiling import attributes, breakdown, counted, ladder, sampled
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS


def the_print() -> charts.Figure:
    """What the report claims: cycles of Figure 2.1's commands after each change."""
    totals = ladder.printed()
    frame = pd.DataFrame({"label": totals["label"], "kind": "printed", "value": totals["cycles"] / 1e6})
    return charts.compare_to_print(
        frame, question="How many cycles did each change save?", name="profiling-print", zero=True,
        caption="Total cycles of the queries of Figure 2.1 in the six profiles of the report, each with the changes of those above it.",
        description=narrate.described(frame), quantity="cycles", unit="millions",
    )  # fmt: skip


def subsystems(chapter: Chapter) -> charts.Figure:
    """Shares by subsystem of both query sets, printed and counted."""
    printed = published.table("profiling_subsystems")
    rows = [
        {"label": breakdown.SUBSYSTEMS[key], "kind": "printed", "value": value, "panel": panel}
        for column, panel in (("second", SCANS), (TRANSACTIONS, TRANSACTIONS))
        for key, value in printed[column].dropna().items()
    ]
    for kind, _ in chapter.by_provenance(counted.EXPERIMENT):
        for workload in (SCANS, TRANSACTIONS):
            shares = counted.shares(chapter, workload, kind)
            rows += [{"label": breakdown.SUBSYSTEMS[key], "kind": kind, "value": value, "panel": workload} for key, value in shares.items() if key != "kernel"]
    frame = _ordered(pd.DataFrame(rows))
    return charts.compare_to_print(
        frame, question="Which parts of the system do the work, then and now?", name="profiling-subsystems", facet="panel", zero=True,
        caption="Share of each subsystem, of cycles in print (the scans of Figure 3.4, the transactions of Figure 3.6) and of instructions counted. "
        "Two of the report's figures don't add up to a hundred. Others are commands, catalogs and dispatch, which the report's figures don't list.",
        description=narrate.described(frame), quantity="share", unit="percent",
    )  # fmt: skip


def two_instruments(chapter: Chapter) -> charts.Figure | None:
    """Instructions counted beside samples of a live server, user space only, by subsystem."""
    rows = []
    for workload in (SCANS, TRANSACTIONS):
        counts, samples = counted.shares(chapter, workload), sampled.shares(chapter, workload, user_only=True)
        rows += [_measured(chapter, counted.EXPERIMENT, breakdown.SUBSYSTEMS[key], f"{workload}: instructions", value) for key, value in counts.items() if key != "kernel"]
        rows += [
            _measured(chapter, sampled.EXPERIMENT, breakdown.SUBSYSTEMS[row.Index], f"{workload}: samples", row.value, low=row.low, high=row.high)
            for row in samples.itertuples()
        ]
    if not rows:
        return None
    frame = _ordered(pd.DataFrame(rows))
    return charts.compare_to_print(
        frame, question="Do instructions and time agree on where the work is?", name="profiling-instruments", facet="panel", zero=True,
        caption="Share of each subsystem in user space: instructions of a single-user backend, and samples of a live one with their binomial error.",
        description=narrate.described(frame), quantity="share", unit="percent",
    )  # fmt: skip


def _measured(chapter: Chapter, experiment: str, label: str, panel: str, value: float, **more) -> dict:
    kind = "published" if chapter.run.observations(experiment).empty else "measured"
    return {"label": label, "kind": kind, "value": value, "panel": panel} | more


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    order = list(breakdown.SUBSYSTEMS.values())
    return frame.sort_values("label", key=lambda labels: labels.map(order.index), kind="stable").reset_index(drop=True)


def flame(chapter: Chapter, workload: str) -> charts.Figure | None:
    """Who calls whom in one query set, by instructions."""
    stacks = counted._of(chapter, "flame", workload)
    if stacks.empty:
        return None
    frame = counted.routines(chapter, workload)
    names = frame.assign(routine=frame["routine"].str.partition(".")[0]).drop_duplicates("routine").set_index("routine")["subsystem"]
    group = [breakdown.SUBSYSTEMS[names.get(stack.rpartition(";")[2], "unknown")] for stack in stacks.index]
    rows = pd.DataFrame({"stack": stacks.index, "value": stacks.to_numpy(), "group": group})
    top = frame.head(5)
    said = ", ".join(f"{row.routine} {narrate.number(round(row.share, 1))} %" for row in top.itertuples())
    return charts.flame(
        rows, question=f"Who calls whom in the {workload}, and what does it cost?", name=f"profiling-flame-{workload}",
        caption="A frame is as wide as its share of the instructions, with all that it calls. Click a frame to look into it, click twice to see all again. "
        "Frames too small to be seen are drawn as their caller's own.",
        description=f"A flame graph of the instructions of the {workload}. The routines with most instructions of their own: {said}.",
        quantity="of all instructions",
    )  # fmt: skip


def places(chapter: Chapter) -> charts.Figure | None:
    """Instructions to fetch an attribute by its place, and by how often a condition uses it."""
    rows = []
    for kind, frame in chapter.by_provenance(attributes.EXPERIMENT):
        wide = frame.pivot(index="arm", columns="metric", values="value")
        rows += [{"panel": "by place in the tuple", "series": "", "kind": kind, "x": place, "value": wide.at[f"attribute {place}", "in routine"]} for place in attributes.PLACES]
        rows += [{"panel": "by number of uses", "series": "", "kind": kind, "x": uses, "value": wide.at[f"{uses} uses", "in routine"]} for uses in attributes.USES]
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.lines(
        frame, question="What does it cost to fetch an attribute?", name="profiling-attributes", facet="panel", zero=True,
        caption="Instructions per tuple in the routines that fetch attributes: for one attribute by its place in the tuple, and for the thirteenth by how many conditions use it.",
        description=narrate.described(frame.assign(label=frame["x"].map("{:g}".format))),
        x_quantity="place, or number of uses", x_unit="", quantity="instructions per tuple", unit="",
    )  # fmt: skip


def climbed_down(chapter: Chapter) -> charts.Figure:
    """The report's ladder and today's: what is left of the first rung."""
    totals = ladder.printed()
    rows = [{"label": f"1990: {label}", "kind": "printed", "value": 1 / gain, "panel": "1990, cycles"} for label, gain in zip(totals["label"], totals["gain_in_all"])]
    for kind, frame in chapter.by_provenance(ladder.EXPERIMENT):
        wide = frame.pivot(index="arm", columns="metric", values="value").reindex([step.name for step in ladder.STEPS])
        for workload in (SCANS, TRANSACTIONS):
            rows += [{"label": f"{workload}: {step}", "kind": kind, "value": value, "panel": workload} for step, value in (wide[workload] / wide[workload].iloc[0]).items()]
    frame = pd.DataFrame(rows)
    order = list(dict.fromkeys(frame["label"]))
    frame = frame.sort_values("label", key=lambda labels: labels.map(order.index), kind="stable").drop(columns="panel").reset_index(drop=True)
    return charts.compare_to_print(
        frame, question="What is left when checks and bookkeeping are taken away, one after the other?", name="profiling-ladder", zero=True,
        caption="Cycles (1990) or instructions (today) of each rung relative to the first of its ladder. Rungs keep what those above them changed.",
        description=narrate.described(frame), quantity="relative to the first rung", unit="",
        reference=1, reference_label="first rung",
    )  # fmt: skip


def timed_down(chapter: Chapter) -> charts.Figure | None:
    """Today's ladder by the clock: time of each rung relative to the first."""
    rows = []
    for kind, frame in chapter.by_provenance(ladder.TIMED):
        for workload in (SCANS, TRANSACTIONS):
            times = wide(frame, workload)
            for step in ladder.STEPS[1:]:
                if step.name not in times:  # a published run may have other rungs
                    continue
                ratio = statistics.ratio(times[step.name], times[ladder.EVERYTHING], seed=chapter.parameters.seed)
                rows.append({"panel": workload, "label": step.name, "kind": kind, "value": ratio.estimate, "low": ratio.low, "high": ratio.high})
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame, question="And what is left of the time, on a live server?", name="profiling-ladder-timed", facet="panel",
        caption="Time of each rung over that of the first, where everything is on: median and interval over the blocks. Rungs keep what those above them changed.",
        description=narrate.described(frame), quantity="time relative to the first rung", unit="",
        reference=1, reference_label="first rung",
    )  # fmt: skip


def contrasts(chapter: Chapter) -> charts.Figure | None:
    """Attributes and rules: instructions and time of a whole command, in contrasts."""
    frame = attributes.contrasts(chapter)
    if frame.empty:
        return None
    return charts.compare_to_print(
        frame, question="What do an attribute's place and somebody else's rules cost a whole command?", name="profiling-contrasts", facet="panel",
        caption="A scan that counts, in one form over the other: a condition on the last attribute over one on the first; many conditions on an attribute over one; "
        "an attribute behind a string over one behind a number; a relation with rules for other commands over one without. Instructions are those of a "
        "single-user backend, times those of a live server with their intervals.",
        description=narrate.described(frame), quantity="ratio of the two", unit="", reference=1, reference_label="no difference",
    )  # fmt: skip
