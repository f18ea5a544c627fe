"""What the report's own numbers predict: its ladder on its disk, and its program run twice.

And that program itself, by which the report shows how much of computing and waiting overlaps.
"""

from collections.abc import Iterator

import pandas as pd

from pgrerun.chapters.tp1.variants import FLUSHING, PROBING, RUNGS
from pgrerun.lab.instruments import overlap
from pgrerun.lab.models import closed_network, workstation
from pgrerun.lab.server.private import base_directory
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

CALIBRATED = 6_000  # cycles of the simulated program that are as good as any more


@experiment(units={"printed_tps": "transactions/s", "simulated_tps": "transactions/s"})
def simulated_ladder(bed: Testbed) -> Iterator[Row]:
    """The report's rungs on its own disk, by simulation, for one backend and for two.

    The disk's rate follows from the first rung, the variability of service from the
    report's test program; the throughputs of the later rungs are predicted, not fitted.
    The processor's demand is printed for the first two rungs only; later ones keep the
    second's.
    """
    stages = printed.derived("tp1_stages").dropna(subset="tp1")
    names = {rung.stage: name for name, rung in RUNGS.items() if rung.stage}
    # What the text doesn't print of a stage, it has from the stage before.
    demands = stages[["cpu_s", "writes"]].ffill()
    program = printed.table("tp1_overlap")["cpu_percent"] / 100
    transactions = bed.parameters.simulated_transactions
    variability = workstation.calibrate_variability(
        program["one"], program["two"], transactions=min(4 * transactions, CALIBRATED)
    )
    for stage, in_print in stages.iterrows():
        rung = names[stage]
        demand = workstation.Demand(
            processor=demands.at[stage, "cpu_s"],
            reads=in_print["reads"],
            writes=demands.at[stage, "writes"],
            force=RUNGS[rung].script in (PROBING, FLUSHING),
        )
        for backends in [in_print["backends"]] if pd.notna(in_print["backends"]) else [1, 2]:
            simulated = workstation.simulate(
                demand,
                backends=int(backends),
                disk_rate=stages.at["one", "implied_disk"],
                variability=variability,
                transactions=transactions,
                seed=bed.parameters.seed,
            )
            yield {
                "rung": rung,
                "backends": int(backends),
                "printed_tps": float(in_print["tp1"]),
                "simulated_tps": float(simulated.throughput),
            }


@experiment(units={"processor_share": "share of one processor", "elapsed": "s"})
def program(bed: Testbed) -> Iterator[Row]:
    """The report's read-compute-write program on one processor: one copy, then two.

    Adjusted on this machine to wait for its I/O about half of the time; runs beside the
    cluster's files, on the disk that the ladder was climbed on.
    """
    folder, cycles = base_directory(), bed.parameters.cycles
    rounds = overlap.calibrate(folder, cycles=cycles)

    def measure(block: Block, copies: int) -> dict[str, float]:
        ran = overlap.run(folder, copies=copies, cycles=cycles, rounds=rounds)
        return {"processor_share": ran.processor, "elapsed": ran.elapsed}

    # a run takes a second, and the calibration has warmed it up
    yield from bed.compare(measure, {"copies": [1, 2]}, pairs=bed.fewer_pairs, warmup=0)


@experiment(units={"processor_share": "share of one processor"})
def predicted_overlap(bed: Testbed) -> Iterator[Row]:
    """Processor share of two copies of the program, as three models predict it from one copy's.

    From the share that is printed, and from the median of what `program` measured, if it has.
    """
    measured = [row["processor_share"] for row in bed.rows_of("program") if row["copies"] == 1]
    alone = {"1990": printed.cell("tp1_overlap", "one", "cpu_percent") / 100}
    if measured:
        alone["now"] = float(pd.Series(measured).median())
    for when, share in alone.items():
        demands = {"processor": share, "disk": 1 - share}
        models = {
            "perfect overlap": closed_network.perfect_overlap(demands, 2),
            "queueing, disk serves one": closed_network.solve(demands, 2),
            "queueing, disk serves all": closed_network.solve(demands, 2, delays={"disk"}),
        }
        for name, solution in models.items():
            yield {
                "of": when,
                "model": name,
                "processor_share": float(solution.utilization["processor"]),
            }
