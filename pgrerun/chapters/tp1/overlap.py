"""Overlap of computing and waiting: the report's test program, models of it, its disk simulated."""

from functools import partial

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.tp1.ladder import ALONE, TOGETHER, named, printed_ladder
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import overlap
from pgrerun.models import closed_network, workstation
from pgrerun.server.private import base_directory


def overlap_program(chapter: Chapter) -> None:
    """The report's read-compute-write program on one processor: one copy, then two.

    Adjusted on this machine to wait for its I/O about half of the time; runs beside the
    cluster's files, on the disk that the ladder was climbed on.
    """
    folder = base_directory()
    rounds = overlap.calibrate(folder, cycles=chapter.parameters.cycles)

    def copies(number: int, block: Block) -> dict[str, float]:
        ran = overlap.run(folder, copies=number, cycles=chapter.parameters.cycles, rounds=rounds)
        return {"processor": ran.processor, "elapsed": ran.elapsed}

    arms = [Arm(words, measure=partial(copies, number)) for number, words in enumerate(COPIES, start=1)]
    # the calibration has warmed everything up
    chapter.compare("overlap", arms, {"processor": "share of one processor", "elapsed": "s"}, warmup=0)


COPIES = ("one copy", "two copies")
CALIBRATED = 6_000  # cycles of the simulated program that are as good as any more


def program_short_of_perfect(chapter: Chapter) -> statistics.Interval | None:
    """Perfect overlap's processor share of two copies over the measured one."""
    share = chapter.table("overlap", "processor")
    if share.empty:
        return None
    perfect = (2 * share[COPIES[0]]).clip(upper=1)
    return statistics.ratio(perfect, share[COPIES[1]], seed=chapter.parameters.seed)


def short_of_perfect(chapter: Chapter) -> statistics.Interval | None:
    """Throughput under perfect overlap, predicted from the rung of one backend, over that of several."""
    throughput, share = chapter.table("ladder", "throughput"), chapter.table("ladder", "processor")
    if throughput.empty:
        return None
    perfect = [
        closed_network.perfect_overlap({"processor": busy / rate, "disk": (1 - busy) / rate}, chapter.parameters.clients)
        for rate, busy in zip(throughput[ALONE], share[ALONE].clip(upper=1))
    ]
    predicted = [solution.throughput for solution in perfect]
    return statistics.ratio(predicted, throughput[TOGETHER], seed=chapter.parameters.seed)


def overlap_predicted(chapter: Chapter) -> pd.DataFrame:
    """Processor share of two copies as three models predict it, from one copy's share: then and now."""
    program = published.table("tp1_overlap")["cpu_percent"] / 100
    alone = {"1990": program["one"]}
    here = chapter.table("overlap", "processor")
    if not here.empty:
        alone["now"] = here[COPIES[0]].median()
    rows = []
    for when, share in alone.items():
        demands = {"processor": share, "disk": 1 - share}
        models = {
            "perfect overlap": closed_network.perfect_overlap(demands, 2),
            "queueing, disk serves one": closed_network.solve(demands, 2),
            "queueing, disk serves all": closed_network.solve(demands, 2, delays={"disk"}),
        }
        rows += [(when, name, solution.utilization["processor"]) for name, solution in models.items()]
    return pd.DataFrame(rows, columns=["panel", "label", "value"]).assign(kind="simulated")


def simulated_ladder(chapter: Chapter) -> pd.DataFrame:
    """The report's rungs on its own disk, by simulation, for one backend and for two.

    The disk's rate follows from the first rung, the variability of service from the
    report's test program; the throughputs of the later rungs are predicted, not fitted.
    The processor's demand is printed for the first two rungs only; later ones keep the
    second's. Columns: name, backends, printed, simulated (transactions/s), off (relative).
    """
    stages = printed_ladder()
    # What the text doesn't print of a stage, it has from the stage before.
    demands = stages[["cpu_s", "writes"]].ffill()
    program = published.table("tp1_overlap")["cpu_percent"] / 100
    played = chapter.parameters.simulated_transactions
    variability = workstation.calibrate_variability(program["one"], program["two"], transactions=min(4 * played, CALIBRATED))
    rows = []
    for stage, printed in stages.iterrows():
        demand = workstation.Demand(
            processor=demands.at[stage, "cpu_s"],
            reads=printed["reads"],
            writes=demands.at[stage, "writes"],
            force=named(printed["name"]).force,
        )
        for backends in [printed["backends"]] if pd.notna(printed["backends"]) else [1, 2]:
            simulated = workstation.simulate(
                demand,
                backends=int(backends),
                disk_rate=stages.at["one", "implied_disk"],
                variability=variability,
                transactions=played,
                seed=chapter.parameters.seed,
            )
            off = simulated.throughput / printed["tp1"] - 1
            rows.append((printed["name"], int(backends), printed["tp1"], simulated.throughput, off))
    return pd.DataFrame(rows, columns=["name", "backends", "printed", "simulated", "off"])
