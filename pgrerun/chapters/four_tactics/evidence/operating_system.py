"""What switches and messages say about an operating system of one's own, and Table 9 again."""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.four_tactics.experiments.compilation_today import TUPLEWISE
from pgrerun.chapters.four_tactics.experiments.connections import ROUTES
from pgrerun.chapters.four_tactics.experiments.parts import COMMANDS
from pgrerun.lab.instruments.process_costs import COSTS
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval


def cost_ratio(chapter: Chapter, above: str, below: str) -> Interval:
    """One of `COSTS` over another."""
    tables = (chapter.table("costs", name)["here"] for name in (above, below))
    return statistics.ratio(*tables, seed=chapter.parameters.seed)


def today(chapter: Chapter) -> dict[str, Interval]:
    """A switch and a message of a general operating system of today, in microseconds."""
    return {name: chapter.median("costs", name, "here") for name in ("switch", "message")}


def messages(found: pd.DataFrame) -> dict[str, bool]:
    """Whether a command takes as many messages as in print, whatever it answers."""
    total = found["to the server"] + found["from the server"]
    in_print = printed.table("four_tactics_access").messages.iloc[0]
    return {
        "all commands take equally many messages": total.nunique() == 1,
        "without those that carry a tuple they do": (total - found["with a tuple"]).nunique() == 1,
        "the shortest takes four": total.iloc[0] == in_print,
    }


def kernel_share(chapter: Chapter) -> dict[str, Interval]:
    """The kernel's share of the backend's CPU time, short and long commands."""
    return {f"{name} commands": chapter.median("kernel", "kernel", name) for name in COMMANDS}


def without_system(chapter: Chapter) -> dict[str, Interval]:
    """MANGOS's arithmetic with today's numbers: time with over time without switches and messages.

    A command takes as many switches as were counted, and two messages: itself and its answer.
    """
    seconds, switches = chapter.table("kernel", "seconds"), chapter.table("kernel", "switches")
    switch, message = (cost.estimate for cost in today(chapter).values())
    # a message's cost includes the switch to its receiver
    left = seconds - (switches * switch + 2 * (message - switch)) / 1e6
    return {
        f"{name} commands": statistics.ratio(
            seconds[name], left[name], seed=chapter.parameters.seed
        )
        for name in COMMANDS
    }


def short_without_system(chapter: Chapter) -> Interval:
    """The same, of a short command."""
    return without_system(chapter)["short commands"]


# ---- by connection


def per_command(chapter: Chapter, observations: pd.DataFrame | None = None) -> pd.DataFrame:
    """Messages and switches (of both sides) of a command, by variant of `connections`.

    Columns: variant, what ("messages" or "task switches"), cost (an interval); switches only where
    both sides can be watched. `observations` are this run's unless given.
    """
    if observations is None:
        observations = chapter.run.observations("ways")
    messages, client = wide(observations, "messages"), wide(observations, "client")
    switches = client + wide(observations, "server").reindex(columns=client.columns)
    rows = []
    for variant in observations["variant"].unique():
        for what, values in (("messages", messages), ("task switches", switches)):
            if values[variant].notna().all():
                cost = statistics.median(values[variant], seed=chapter.parameters.seed)
                rows.append((variant, what, cost))
    return pd.DataFrame(rows, columns=["variant", "what", "cost"])


def route(chapter: Chapter) -> str:
    """The way of the server under test, a command at a time."""
    found = chapter.table("ways", "time")
    return next(name for name in ROUTES if name in found)


def times(chapter: Chapter) -> dict[str, Interval]:
    """Time of a command by each other variant of `connections` over that by `route`."""
    base = route(chapter)
    others = [name for name in chapter.table("ways", "time") if name != base]
    return {name: chapter.ratio("ways", "time", name, base) for name in others}


def working(chapter: Chapter) -> Interval:
    """Of a command's time by `route`, the share that a processor works on either side."""
    worked, time = (chapter.table("ways", name)[route(chapter)] for name in ("processor", "time"))
    return statistics.ratio(worked, time, seed=chapter.parameters.seed)


# ---- Table 9

RUN = "d_3360"  # the qualification whose evaluation per tuple is measured on PostgreSQL as well


def tuple_then() -> float:
    """Seconds that INGRES took to evaluate query d for one tuple."""
    return printed.cell("four_tactics_mangos_cpu", RUN, "ingres") / int(RUN[2:])


def cheaper(chapter: Chapter) -> dict[str, Interval]:
    """How many times what it costs here it cost in 1981: switch, message, query d for a tuple."""
    said = printed.table("four_tactics_said").value
    switch, message = today(chapter).values()
    seconds = chapter.table("vectors", "seconds")[TUPLEWISE] / chapter.parameters.tuples
    evaluating = statistics.median(seconds / tuple_then(), seed=chapter.parameters.seed)
    return {
        "a task switch": switch.times(1e-3 / said.switch_ms).inverse(),
        "a message": message.times(1e-3 / said.message_ms).inverse(),
        "query d for one tuple": evaluating.inverse(),
    }


def table_9(chapter: Chapter) -> pd.DataFrame:
    """Improvement by MANGOS (%): in print, and at today's costs of switching, sending, evaluating.

    As many reads and messages as in Table 8. What INGRES needed beside these is scaled by what
    evaluating one tuple takes here; MANGOS's own costs are those of a switch of tasks, and of a
    pointer. Columns: run, reads, messages, in print (%), with today's costs (%).
    """
    faster = cheaper(chapter)["query d for one tuple"].estimate
    cost = {name: chapter.median("costs", name, "here").estimate / 1e6 for name in COSTS}
    said, access = printed.table("four_tactics_said").value, printed.table("four_tactics_access")
    rows = []
    for run, row in printed.table("four_tactics_mangos_cpu").iterrows():
        reads, messages = access.loc[
            run if run in access.index else f"bcd_{run[2:]}", ["reads", "messages"]
        ]
        system_then = (reads * said.switch_ms + messages * said.message_ms) / 1e3
        rest = (row.ingres - system_then) / faster
        general = rest + reads * cost["switch"] + messages * cost["message"]
        special = rest + reads * cost["task"] + messages * cost["pointer"]
        gain = 100 * (general / special - 1)
        rows.append((run.replace("_", " "), int(reads), int(messages), row.improvement, gain))
    columns = ["run", "reads", "messages", "in print (%)", "with today's costs (%)"]
    return pd.DataFrame(rows, columns=columns)
