"""What switches and messages say about an operating system of one's own."""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.four_tactics.experiments.connections import ALONE, ROUTES
from pgrerun.chapters.four_tactics.experiments.parts import COMMANDS
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Part, greater, supporting

# what the memorandum calls two of `process_costs.COSTS`
NAMED = {"task switch": "switch", "message": "message"}


def cost_ratio(chapter: Chapter, above: str, below: str) -> Interval:
    """One of `process_costs.COSTS` over another."""
    tables = (chapter.table("costs", name)["here"] for name in (above, below))
    return statistics.ratio(*tables, seed=chapter.parameters.seed)


def milliseconds(chapter: Chapter) -> dict[str, Interval]:
    """A switch and a message of a general operating system of today."""
    return {said: chapter.median("costs", name, "here").times(1e-3) for said, name in NAMED.items()}


def instructions(chapter: Chapter) -> dict[str, Interval]:
    """The same in instructions, at one for each cycle: no processor of today executes so few."""
    cycles = chapter.table("costs", "cycles")["here"]
    return {
        said: statistics.median(
            chapter.table("costs", name)["here"] * cycles, seed=chapter.parameters.seed
        )
        for said, name in NAMED.items()
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
    """Processor time of a command by `route`, both sides, over that in a single-user backend."""
    return chapter.ratio("ways", "processor", route(chapter), ALONE)
