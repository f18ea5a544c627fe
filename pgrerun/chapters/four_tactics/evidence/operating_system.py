"""What switches and messages say about an operating system of one's own, and Table 9 again."""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.four_tactics.experiments.compilation_today import TUPLEWISE
from pgrerun.chapters.four_tactics.experiments.connections import ALONE, ROUTES
from pgrerun.chapters.four_tactics.experiments.parts import COMMANDS
from pgrerun.lab.instruments.process_costs import COSTS
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, greater, supporting


def cost_ratio(chapter: Chapter, above: str, below: str) -> Interval:
    """One of `COSTS` over another."""
    tables = (chapter.table("costs", name)["here"] for name in (above, below))
    return statistics.ratio(*tables, seed=chapter.parameters.seed)


def today(chapter: Chapter, factor: float = 1.0) -> dict[str, Interval]:
    """A switch and a message of a general operating system of today, in us times `factor`."""
    names = {"task switch": "switch", "message": "message"}
    return {
        said: chapter.median("costs", name, "here").times(factor) for said, name in names.items()
    }


def milliseconds(chapter: Chapter) -> dict[str, Interval]:
    """The same in milliseconds, as printed."""
    return today(chapter, 1e-3)


def instructions(chapter: Chapter) -> dict[str, Interval]:
    """The same in instructions, at one for each cycle: no processor of today executes so few."""
    costs, cycles = (
        {name: chapter.table("costs", name)["here"] for name in names}
        for names in (("switch", "message"), ("cycles",))
    )
    return {
        said: statistics.median(costs[name] * cycles["cycles"], seed=chapter.parameters.seed)
        for said, name in (("task switch", "switch"), ("message", "message"))
    }


def messages(found: pd.DataFrame) -> dict[str, bool | Part]:
    """Whether a command takes as many messages as in print, whatever it answers."""
    total = found["to the server"] + found["from the server"]
    in_print = printed.table("four_tactics_access").messages.iloc[0]
    return {
        "all commands take equally many messages": total.nunique() == 1,
        f"the shortest takes {in_print:g}": total.iloc[0] == in_print,
        "without those that carry a tuple, all take equally many": supporting(
            (total - found["with a tuple"]).nunique() == 1
        ),
    }


def kernel_share(chapter: Chapter) -> dict[str, bool | None]:
    """Whether the kernel takes more than half of a backend's CPU time, short and long commands."""
    shares = {name: chapter.median("kernel", "kernel", name) for name in COMMANDS}
    return {
        f"of {name} commands the kernel takes more than half of the CPU time": greater(share, 0.5)
        for name, share in shares.items()
    }


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


def without_client(chapter: Chapter) -> Interval:
    """Processor time of a command by `route`, both sides, over its time in a single-user backend.

    The latter is all a processor's: nobody is waited for.
    """
    both = chapter.table("ways", "processor")[route(chapter)]
    alone = chapter.table("ways", "time")[ALONE]
    return statistics.ratio(both, alone, seed=chapter.parameters.seed)


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
