"""What switches and messages say about an operating system of one's own."""

import pandas as pd

from pgrerun.chapter import Chapter, wide
from pgrerun.chapters.four_tactics.experiments.connections import ROUTES
from pgrerun.chapters.four_tactics.experiments.parts import COMMANDS
from pgrerun.chapters.four_tactics.miniature import BRIEF, LONG
from pgrerun.record import printed, statistics
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import greater


def cost_ratio(chapter: Chapter, above: str, below: str) -> Interval:
    """One of `process_costs.COSTS` over another."""
    tables = (chapter.table("costs", name)["here"] for name in (above, below))
    return statistics.ratio(*tables, seed=chapter.parameters.seed)


def messages(chapter: Chapter) -> dict[str, bool]:
    """Whether each of the benchmark's commands takes as many messages as in print."""
    nine = (BRIEF[0], *LONG)
    counted = {run: chapter.table("commands", f"messages {run}")["here"] for run in nine}
    in_print = printed.table("four_tactics_access").messages.iloc[0]
    return {
        "all commands take equally many messages": pd.concat(counted).nunique() == 1,
        f"the shortest takes {in_print:g}": bool((counted[nine[0]] == in_print).all()),
    }


def without_messages(chapter: Chapter) -> dict[str, Interval]:
    """CPU time of the short and of the long commands over that without their messages.

    A message costs the backend half of what it does between two processes, the switch to its
    receiver included; for other switches there is no reason, as all pages are in the pool. Its cost
    is the least of the blocks': it is told by the clock, and whatever else ran can only have made
    it longer.
    """
    cost = 0.5e-6 * float(chapter.table("costs", "message")["here"].min())
    found = {}
    for name, runs in {"short": BRIEF, "long": LONG}.items():
        cpu, sent = (
            sum(chapter.table("commands", f"{what} {run}")["here"] for run in runs)
            for what in ("cpu", "messages")
        )
        found[name] = statistics.ratio(cpu, cpu - cost * sent, seed=chapter.parameters.seed)
    return found


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
