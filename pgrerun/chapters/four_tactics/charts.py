"""The charts of the chapter: printed numbers, the published run and this run."""

from collections.abc import Mapping
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.four_tactics.evidence import (
    compilation_today,
    files,
    microcode,
    operating_system,
)
from pgrerun.chapters.four_tactics.evidence.tactics import COMPILATION, FILES, LOSS, PRINTED, pays
from pgrerun.chapters.four_tactics.experiments.compilation_today import INTERPRETED, JITTED
from pgrerun.chapters.four_tactics.experiments.files import READINGS
from pgrerun.chapters.four_tactics.experiments.reading import METHODS, RAW, SYNC_ONE, UNIX
from pgrerun.chapters.four_tactics.miniature import LONG, RUNS, in_words
from pgrerun.page import charts, narrate
from pgrerun.record import printed
from pgrerun.record.statistics import Interval


def published() -> charts.Figure:
    """The closing table's tactics, as the tables behind it have them: old time over new."""
    tactics = {
        "compiled_cpu": "compilation, CPU",
        "files_cpu": "file system, CPU",
        "files_wall": "file system, response",
        "mangos_cpu": "operating system, CPU",
    }
    rows = []
    for table, tactic in tactics.items():
        for run, gain in printed.derived(f"four_tactics_{table}").speed_up.items():
            if run.endswith(("_0", "_3360")):
                rows.append(charts.row(f"query {run[0]}", "printed", gain, series=tactic))
    return charts.compare(
        rows,
        charts.Words(
            question="What did three of the four tactics gain in 1981?",
            caption=(
                "Time without the tactic over time with it, of the shortest command (a) and of the"
                " others on all tuples. Those of the operating system are estimates; for microcode"
                " nothing else is printed."
            ),
            name="four-tactics-print",
        ),
        charts.Axis("old time over new"),
        reference=charts.Reference(1, "no gain"),
        joined=True,
    )


def compiled(chapter: Chapter, counted: pd.DataFrame) -> charts.Figure:
    """Interpreted over compiled, run by run: Table 1, the miniature, PostgreSQL's JIT."""
    gains = printed.derived("four_tactics_compiled_wall").speed_up
    rows = charts.rows(gains.rename(in_words), "printed")
    ran = counted.set_index("run").rename(in_words)
    rows += charts.rows(ran["interpreted"] / ran["compiled"], "simulated")
    measured = [
        chapter.ratios("jit", f"wall {run}", {in_words(run): (INTERPRETED, JITTED)}) for run in RUNS
    ]
    elsewhere = compilation_today.elsewhere(chapter)
    return charts.compare(
        [*rows, *measured],
        charts.Words(
            question="What does compiling a qualification gain?",
            caption=(
                "The costs are response time of INGRES (printed), instructions of the"
                " miniature (simulated), and response time of PostgreSQL, whose interpreter is"
                " threaded code already, over that with its JIT."
                f"{f' {elsewhere}.' if elsewhere else ''}"
            ),
            name="four-tactics-compiled",
            result=partial(_quicker, new="with JIT"),
        ),
        charts.Axis("cost interpreted over cost compiled", log=True),
        reference=charts.Reference(1, "no gain"),
    )


def _quicker(frame: pd.DataFrame, new: str) -> str:
    """How many commands are quicker in the new way and how many slower, and by how much in print.

    `frame` has the old cost over the new one, by command.
    """
    whose, rows = charts.own(frame)
    told = []
    if len(rows):
        quick, slow = ((rows["low"] > 1).sum(), (rows["high"] < 1).sum())
        many = narrate.count(rows["label"].nunique(), "command")
        told.append(
            f"{whose} {quick or 'none'} of {many} {'is' if quick == 1 else 'are'} quicker {new} and"
            f" {slow or 'none'} slower: the ratios go {_ends(rows)}."
        )
    told.append(f"In print they go {_ends(frame[frame['kind'] == 'printed'])}.")
    return " ".join(told)


def _ends(rows: pd.DataFrame) -> str:
    """The least and the greatest number, each with what it is of."""
    ends = (rows.loc[rows["value"] == rows["value"].agg(end)].iloc[0] for end in ("min", "max"))
    least, most = (f"{narrate.number(row['value'])} (query {_query(row['label'])})" for row in ends)
    return f"from {least} to {most}"


def _query(label: str) -> str:
    return label.removeprefix("query ")


def file_systems(chapter: Chapter, requested: files.Requested) -> charts.Figure:
    """UNIX over tracks: printed, on the simulated disk, and what stands for both here."""
    found = files.simulated(requested)
    rows, measured = [], []
    for run in LONG:
        label = f"query {run[0]}"
        rows.append(charts.row(label, "printed", found["printed gain"][run]))
        rows.append(charts.row(label, "simulated", found["gain"][run]))
        measured.append(chapter.ratios("file systems", f"wall {run}", {label: (UNIX, RAW)}))
    return charts.compare(
        [*rows, *measured],
        charts.Words(
            question="Does reading a track at a time still beat the operating system's files?",
            caption=(
                "Response time on the operating system's files over that of raw reads a track at a"
                " time, with nothing cached: INGRES (printed), its requests on a disk that is"
                " simulated so that query e takes the printed time on files, and PostgreSQL here."
            ),
            name="four-tactics-files",
            result=partial(_quicker, new="by tracks"),
        ),
        charts.Axis("time on files over time on tracks", log=True),
        reference=charts.Reference(1, "the same"),
    )


def fetched_ahead(found: pd.DataFrame) -> charts.Figure:
    """What the kernel fetches for a few reads (`experiments.files.read_ahead`)."""
    frame = found.rename(columns={"pattern": "label", "asked": "asked for"})
    frame = frame.melt("label", ["asked for", "fetched"], var_name="panel")
    return charts.compare(
        frame.assign(kind="measured"),
        charts.Words(
            question="When does the operating system read ahead?",
            caption=(
                "Reads of 4 kB on a cold file: what was asked for, and what the kernel fetched from"
                " storage. The jumps lead away after every fifth block, and back."
            ),
            name="four-tactics-ahead",
        ),
        charts.Axis("data", "kB", zero=True),
    )


def profiled(found: pd.DataFrame, most: int = 8) -> charts.Figure:
    """The functions that take most, beside the routines of Table 3."""
    shares = 100 * microcode.by_function(found).head(most)
    return charts.compare(
        [
            *charts.rows(printed.table("four_tactics_profile").percent, "printed"),
            *charts.rows(shares, "measured"),
        ],
        charts.Words(
            question="Which routines of a database system do most of the work?",
            caption=(
                "Routines of INGRES by share of CPU time, as far as they are printed, and the"
                f" {most} functions of PostgreSQL with the largest share of the instructions"
                " outside of the kernel, for the benchmark's long commands."
            ),
            name="four-tactics-profile",
            result=_hottest,
        ),
        charts.Axis("share", "%", zero=True),
    )


def _hottest(frame: pd.DataFrame) -> str:
    """The largest share in print and the largest of this run."""
    first = frame.loc[frame.groupby("kind")["value"].idxmax()].set_index("kind")
    now, then = (
        f"{first.at[kind, 'label']} ({narrate.number(first.at[kind, 'value'], 1)} %)"
        for kind in ("measured", "printed")
    )
    return f"The largest share in this run is that of {now}, in print that of {then}."


def raw(chapter: Chapter) -> charts.Figure:
    """Ways to read a cold file."""
    labels = {name: name for name in READINGS}
    medians = chapter.medians("raw files", {"wall": "response", "cpu": "CPU"}, labels)
    return charts.compare(
        medians.rename(columns={"panel": "series"}),
        charts.Words(
            question="What do order, block size and copying cost?",
            caption="Time for a MB of a file that is read whole, cold if not from the cache.",
            name="four-tactics-raw",
        ),
        charts.Axis("time", "ms per MB", log=True),
        joined=True,
    )


def asynchronous(chapter: Chapter) -> charts.Figure:
    """PostgreSQL's ways to read."""
    pairs = {name: (SYNC_ONE, name) for name in METHODS if name != SYNC_ONE}
    return charts.compare(
        [
            chapter.ratios("asynchronous", "scan", pairs, panel="scan in order"),
            chapter.ratios("asynchronous", "scattered", pairs, panel="scattered pages"),
        ],
        charts.Words(
            question="Which part of the file system's gain is PostgreSQL's own today?",
            caption=(
                "Time of synchronous reads of one page each over the time of other ways, with"
                " nothing cached and the operating system's cache left out."
            ),
            name="four-tactics-asynchronous",
        ),
        charts.Axis("time of single pages over time of this way"),
        reference=charts.Reference(1, "the same"),
    )


def costs(chapter: Chapter) -> charts.Figure:
    """Switch, message and pointer then, as planned, and now."""
    said = printed.table("four_tactics_said").value
    in_print = {
        "task switch, UNIX": 1000 * said.switch_ms,
        "message, UNIX": 1000 * said.message_ms,
        "task switch, MANGOS": said.mangos_switch_us,
        "message, MANGOS": said.mangos_message_us,
    }
    names = {
        "switch": "switch of processes, today",
        "message": "message, today",
        "call": "call into the kernel, today",
        "pointer": "pointer on a list, today",
        "task": "switch inside one process, today",
    }
    rows = charts.rows(in_print, "printed")
    measured = [chapter.medians("costs", name, {"here": label}) for name, label in names.items()]
    return charts.compare(
        [*rows, *measured],
        charts.Words(
            question=(
                "How far are task switches and messages from what a special operating system"
                " promised?"
            ),
            caption=(
                "On a logarithmic scale: UNIX on a VAX, the estimate for MANGOS, and here, where"
                " the kernel switches processes, and a language its own tasks inside one."
            ),
            name="four-tactics-costs",
            result=_what_they_cost,
        ),
        charts.Axis("cost", "µs", log=True),
    )


def _what_they_cost(frame: pd.DataFrame) -> str:
    """Each cost here, beside the print's of the same."""
    whose, rows = charts.own(frame)
    now = rows.set_index("label")["value"].map(narrate.number)
    told = narrate.listed(
        [f"{label.removesuffix(', today')} {cost}" for label, cost in now.items()]
    )
    then = frame[frame["kind"] == "printed"].set_index("label")["value"].map(narrate.number)
    before = narrate.listed([f"{label} {cost}" for label, cost in then.items()])
    here = f"{whose}, in µs: {told}. " if told else ""
    return f"{here}In print: {before}."


def connections(chapter: Chapter) -> charts.Figure:
    """Messages and switches of a command by each way, beside what INGRES took for one tuple."""
    in_print = printed.table("four_tactics_access").loc["bcd_1"]
    rows = [
        charts.row("INGRES, one tuple", "printed", value, panel=panel)
        for panel, value in (("messages", in_print.messages), ("task switches", in_print.reads))
    ]
    for kind, observations in chapter.by_provenance("ways"):
        for row in operating_system.per_command(chapter, observations).itertuples():
            rows.append(charts.row(row.variant, kind, row.cost, panel=row.what))
    return charts.compare(
        rows,
        charts.Words(
            question="How many messages and task switches does a command take?",
            caption=(
                "For a command that looks up one tuple: calls that hand over commands or answers,"
                " and switches of client and server together. For INGRES with a task switch for"
                " each read."
            ),
            name="four-tactics-ways",
            result=_by_way,
        ),
        charts.Axis("calls or switches for each command", zero=True),
    )


def _by_way(frame: pd.DataFrame) -> str:
    """What a command takes by each way; task switches only where they could be watched."""
    whose, rows = charts.own(frame)
    here, then = (_each_way(some) for some in (rows, frame[frame["kind"] == "printed"]))
    said = [f"{whose} a command takes {'; '.join(here)}."] if here else []
    return " ".join([*said, f"In print it takes {'; '.join(then)}."])


def _each_way(rows: pd.DataFrame) -> list[str]:
    """ "2 messages and 2 task switches (Unix socket)", way by way."""
    told = []
    for way, both in rows.groupby("label", sort=False):
        costs = both.set_index("panel")["value"]
        each = [f"{narrate.number(cost)} {what}" for what, cost in costs.items()]
        told.append(f"{narrate.listed(each)} ({way})")
    return told


def closing(chapter: Chapter, effort: Mapping[str, Interval | float]) -> charts.Figure:
    """The closing table, then and now (`evidence.tactics.effort`)."""
    table = printed.table("four_tactics_conclusions")
    rows = []
    for tactic, key in PRINTED.items():
        # response time where that is printed beside CPU time
        ends = ["low", "high"] if tactic != FILES else ["response_low", "response_high"]
        low, high = (1 + percent / 100 for percent in table.loc[key, ends])
        rows.append(charts.row(tactic, "printed", (low + high) / 2, low=low, high=high))
    elsewhere = chapter.show(compilation_today.elsewhere) if COMPILATION in effort else ""
    return charts.compare(
        [*rows, *charts.rows(effort, "measured")],
        charts.Words(
            question="Which tactics pay?",
            caption=(
                "What commands take without a tactic over what they take with it, beside the range"
                " that the memorandum concludes with. Compilation (here PostgreSQL's JIT) and file"
                " system are response time, the operating system is CPU time without what messages"
                " cost, and microcode all instructions over those without checksums, more than"
                " an instruction of their own could gain."
                f"{f' {elsewhere}.' if elsewhere else ''}"
            ),
            name="four-tactics-closing",
            result=lambda _: _which_pay(effort),
        ),
        charts.Axis("gain", "times", log=True),
        reference=charts.Reference(1, "no gain"),
    )


def _which_pay(effort: Mapping[str, Interval | float]) -> str:
    """What became of each tactic, in the order of the memorandum's gains."""
    said = [
        f"{tactic.replace(' (', ', ').rstrip(')')}: {_gained(gain)}"
        for tactic, gain in effort.items()
    ]
    return f"In this run, {'; '.join(said)}." if said else ""


def _gained(gain: Interval | float) -> str:
    """A gain in times, or how many times as much it takes where it's a loss."""
    if pays(gain) != LOSS:
        return f"{narrate.interval(gain)} times, {pays(gain)}"
    inverse = gain.inverse() if isinstance(gain, Interval) else 1 / gain
    return f"{LOSS}, {narrate.interval(inverse)} times as much with it as without"
