"""The charts of the chapter: frames from the print, the published run and this run, and their words."""

import pandas as pd

from pgrerun import charts, narrate, published, statistics
from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.four_tactics.compilation import printed_gains
from pgrerun.chapters.four_tactics.files import LONG_JOINS, TIMED, printed
from pgrerun.chapters.four_tactics.miniature import ALONE, PAGES, TRACKS
from pgrerun.chapters.four_tactics.profile import NAMES, OTHERS, TACTICS
from pgrerun.chapters.four_tactics.reading import DIRECT, IN_ORDER, LARGE, SHUFFLED, SMALL, SYNC_ONE, WAYS
from pgrerun.chapters.four_tactics.travel import by_way
from pgrerun.ingres import INTERPRETER, THREADED


def _words(run: str) -> str:
    """"c_210" as a reader says it."""
    query, size = run.split("_")
    return query if size == "0" else f"{query}, {narrate.count(int(size), 'tuple')}"


def _ratios(chapter: Chapter, experiment: str, metrics: dict[str, str], above: str, below: str) -> list[dict]:
    """Rows of the paired ratio above/below of several metrics, by their labels, of each run that has them."""
    rows = []
    for kind, observations in chapter.by_provenance(experiment):
        for label, metric in metrics.items():
            table = wide(observations, metric)
            if {above, below} <= set(table):
                rows.append(charts.row(label, kind, statistics.ratio(table[above], table[below], seed=chapter.parameters.seed)))
    return rows


def the_print() -> charts.Figure:
    """The closing table's tactics, as the tables behind it have them: old time over new."""
    tactics = {"compiled_cpu": "compilation, CPU", "files_cpu": "file system, CPU", "files_wall": "file system, response", "mangos_cpu": "operating system, CPU"}
    rows = [
        charts.row(_words(run), "printed", row.speed_up, panel=words)
        for table, words in tactics.items() for run, row in published.derived(f"four_tactics_{table}").iterrows() if run.endswith(("_0", "_3360"))
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What did three of the four tactics gain in 1981?",
        caption="Time without the tactic over time with it, for the shortest command and for those on all tuples. For microcode the memorandum prints estimates only; those for the operating system are estimates, too.",
        description=narrate.described(frame),
        quantity="old time over new", unit="", reference=1, reference_label="no gain", facet="panel", name="four-tactics-print",
    )  # fmt: skip


def compiled(chapter: Chapter) -> charts.Figure | None:
    """Interpreted over compiled CPU time, run by run, beside Table 2."""
    gains = printed_gains()
    rows = [charts.row(_words(run), "printed", gain) for run, gain in gains.items()]
    rows += _ratios(chapter, "engines", {_words(run): run for run in gains}, INTERPRETER, THREADED)
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What does compiling a qualification gain?",
        caption="CPU time interpreted over CPU time compiled (threaded code), for each run of the print's Table 2.",
        description=narrate.described(frame),
        quantity="interpreted over compiled", unit="", reference=1, reference_label="no gain", log=True, name="four-tactics-compiled",
    )  # fmt: skip


def file_systems(chapter: Chapter) -> charts.Figure | None:
    """UNIX over tracks, wall clock, with read-ahead and without, beside Table 5."""
    then = {run: gain for run, gain in printed().items() if run in TIMED and run.endswith("_3360")}
    panels = {PAGES: "with read-ahead", ALONE: "without read-ahead"}
    rows = [
        charts.row(f"query {run[0]}", "printed", gain, panel=panel)
        for system, panel in panels.items() for run, gain in then.items() if system == PAGES or run not in LONG_JOINS
    ]  # fmt: skip
    for system, panel in panels.items():
        rows += [row | {"panel": panel} for row in _ratios(chapter, "cold files", {f"query {run[0]}": f"wall {run}" for run in then}, system, TRACKS)]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Does reading a track at a time still beat the operating system's files?",
        caption="Response time on UNIX files over that a track at a time, cold and compiled, with today's read-ahead and with none. The print's UNIX fetched one page ahead. Queries f and h, mostly their joins' CPU time, are run with read-ahead only.",
        description=narrate.described(frame),
        quantity="UNIX files over tracks", unit="", reference=1, reference_label="the same", facet="panel", log=True, name="four-tactics-files",
    )  # fmt: skip


def fetched_ahead(found: pd.DataFrame | None) -> charts.Figure | None:
    """What the kernel fetches for a few reads."""
    if found is None:
        return None
    rows = [charts.row(row.pattern, "measured", value, panel=words) for words, column in (("asked for", "asked"), ("fetched", "fetched")) for row in found.itertuples() for value in [getattr(row, column)]]
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="When does the operating system read ahead?",
        caption="Reads of 4 kB on a cold file: what was asked for, and what the kernel fetched from storage. The jumps lead away after every fifth block, and back.",
        description=narrate.described(frame),
        quantity="data", unit="kB", facet="panel", zero=True, name="four-tactics-ahead",
    )  # fmt: skip


def profiled(chapter: Chapter) -> charts.Figure | None:
    """Shares of the routines, beside Table 3."""
    percent = published.table("four_tactics_profile").percent
    names = [name for name in NAMES if name != OTHERS]
    rows = [charts.row(name, "printed", percent[name]) for name in names if name in percent]
    for kind, observations in chapter.by_provenance("profile"):
        for name in names:
            rows.append(charts.row(name, kind, statistics.median(100 * wide(observations, name)["interpreter"], seed=chapter.parameters.seed)))
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Where does an interpreter of queries spend its time?",
        caption="Share of CPU time by routine while all queries run on the miniature, under the names of the print's Table 3.",
        description=narrate.described(frame),
        quantity="share of CPU time", unit="%", zero=True, name="four-tactics-profile",
    )  # fmt: skip


def raw(chapter: Chapter) -> charts.Figure | None:
    """Ways to read a cold file."""
    rows = []
    for kind, observations in chapter.by_provenance("raw files"):
        for metric, panel in (("wall", "response"), ("cpu", "CPU")):
            table = wide(observations, metric)
            rows += [charts.row(way, kind, statistics.median(table[way], seed=chapter.parameters.seed), panel=panel) for way in (IN_ORDER, SHUFFLED, SMALL, LARGE, DIRECT)]
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="What do order, block size and copying cost?",
        caption="Time for a MB of a file that the operating system has forgotten, read whole.",
        description=narrate.described(frame),
        quantity="time", unit="ms per MB", facet="panel", own_scales=True, zero=True, name="four-tactics-raw",
    )  # fmt: skip


def asynchronous(chapter: Chapter) -> charts.Figure | None:
    """PostgreSQL's ways to read."""
    rows = []
    for kind, observations in chapter.by_provenance("asynchronous"):
        for metric, panel in (("scan", "scan in order"), ("scattered", "scattered pages")):
            table = wide(observations, metric)
            rows += [charts.row(way, kind, statistics.ratio(table[SYNC_ONE], table[way], seed=chapter.parameters.seed), panel=panel) for way in WAYS if way != SYNC_ONE]
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Which part of the file system's gain is PostgreSQL's own today?",
        caption="Time of synchronous reads of one page each over the time of other ways, with nothing cached and the operating system's cache left out.",
        description=narrate.described(frame),
        quantity="a page a read over this way", unit="", reference=1, reference_label="the same", facet="panel", name="four-tactics-asynchronous",
    )  # fmt: skip


def costs(chapter: Chapter) -> charts.Figure | None:
    """Switch, message and pointer then, as planned, and now."""
    said = published.table("four_tactics_said").value
    rows = [
        charts.row("task switch, UNIX", "printed", 1000 * said.switch_ms), charts.row("message, UNIX", "printed", 1000 * said.message_ms),
        charts.row("task switch, MANGOS", "printed", said.mangos_switch_us), charts.row("message, MANGOS", "printed", said.mangos_message_us),
    ]  # fmt: skip
    names = {"switch": "task switch, today", "message": "message, today", "call": "call into the kernel, today", "pointer": "pointer on a list, today", "task": "switch of tasks, today"}
    for kind, observations in chapter.by_provenance("costs"):
        rows += [
            charts.row(words, kind, statistics.median(wide(observations, name)["here"], seed=chapter.parameters.seed))
            for name, words in names.items() if name in set(observations["metric"])
        ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="How far are task switches and messages from what a special operating system promised?",
        caption="Cost of a task switch and of a message, on a logarithmic scale: UNIX on a VAX, the estimate for MANGOS, and here.",
        description=narrate.described(frame),
        quantity="cost", unit="microseconds", log=True, name="four-tactics-costs",
    )  # fmt: skip


def ways(chapter: Chapter) -> charts.Figure | None:
    """Messages and switches of a command by each way, beside what INGRES took for one tuple."""
    printed = published.table("four_tactics_access").loc["bcd_1"]
    panels = {"messages": ("messages", printed.messages), "switches": ("task switches", printed.reads)}
    rows = [charts.row("INGRES, one tuple", "printed", value, panel=panel) for panel, value in panels.values()]
    for kind, observations in chapter.by_provenance("ways"):
        for way, costs in by_way(chapter, observations).items():
            rows += [charts.row(way, kind, cost, panel=panels[what][0]) for what, cost in costs.items()]
    if len(rows) == len(panels):
        return None
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="How many messages and task switches does a command take?",
        caption=(
            "For a command that looks up one tuple: calls that hand over commands or answers, and switches of client and server together. "
            "For INGRES, queries b, c and d on a relation of one tuple, with a task switch for each read."
        ),
        description=narrate.described(frame),
        quantity="for each command", unit="", facet="panel", zero=True, name="four-tactics-ways",
    )  # fmt: skip


def closing(effort: dict[str, statistics.Interval | None]) -> charts.Figure | None:
    """The closing table, then and now."""
    table = published.table("four_tactics_conclusions")
    names = dict(zip(effort, TACTICS))
    rows = []
    for tactic, key in names.items():
        row = table.loc[key]
        rows.append(charts.row(tactic, "printed", 1 + (row.low + row.high) / 200, low=1 + row.low / 100, high=1 + row.high / 100))
        if effort[tactic] is not None:
            rows.append(charts.row(tactic, "measured", effort[tactic]))
    frame = pd.DataFrame(rows)
    return charts.compare_to_print(
        frame,
        question="Which tactics pay?",
        caption="Time without a tactic over time with it: the range that the memorandum concludes with, and what stands for the tactic here.",
        description=narrate.described(frame),
        quantity="gain", unit="", reference=1, reference_label="no gain", log=True, name="four-tactics-closing",
    )  # fmt: skip
