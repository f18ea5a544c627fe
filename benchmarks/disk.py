"""Is the slowed disk as slow as it was set to be, and does it make programs queue?

Three questions, each an interval over repetitions:
  - a request's time over the time that was set, one program alone
  - throughput of several programs that read, sleep and write over what mean value analysis
    predicts for one disk and for customers that are away from it for as long as these were
  - the 1990 report's read-compute-write program: share of one processor with one copy, tuned to
    the printed 57 %, and with two (printed: 80 %)

python benchmarks/disk.py [--repeats N] [--seconds N]

Exit status 1 if an interval of the first two lies outside of 5 %. Without a C compiler nothing is
measured, and it says so. The processor's share means something only if nobody else uses it.
"""

import argparse
import sys

from pgrerun.errors import CannotMeasure
from pgrerun.lab import disk
from pgrerun.lab.disk import Disk
from pgrerun.lab.instruments import overlap
from pgrerun.lab.instruments.machine import other_load
from pgrerun.lab.models import closed_network
from pgrerun.lab.server.private import PrivateDirectory, base_directory
from pgrerun.record import printed, statistics

BAR = 0.05
TIMES = (0.0005, 0.001, 0.005, 0.025)  # seconds
THINK, MEAN = 0.010, 0.005
DISKS = {
    "constant": Disk(MEAN, MEAN),
    "drawn": Disk(MEAN, MEAN, drawn=True),
}


def told(what: str, ratios: list[float]) -> bool:
    """Print a ratio with its interval; whether it can be within the bar."""
    found = statistics.median(ratios)
    print(f"{what}: {found.estimate:.3f} (from {found.low:.3f} to {found.high:.3f})", flush=True)
    return found.low <= 1 + BAR and found.high >= 1 - BAR


def service(slow, folder, taken: float, cycles: int) -> float:
    with slow.serving(Disk(taken, taken)):
        return overlap.run(folder, copies=1, cycles=cycles, disk=slow).request / taken


def queueing(slow, folder, copies: int, cycles: int, seed: int) -> float:
    with slow.serving(Disk(MEAN, MEAN, drawn=True, seed=seed)) as stretch:
        ran = overlap.run(folder, copies=copies, cycles=cycles, think=THINK, disk=slow)
    served = stretch.counts().all
    demands = {"disk": 2 * served.busy / served.requests, "between": ran.between}
    predicted = closed_network.solve(demands, copies, delays={"between"}).throughput
    return copies * cycles / ran.elapsed / predicted


def shares(slow, folder, given: Disk, cycles: int, repeats: int) -> None:
    alone = printed.table("tp1_overlap").at["one", "cpu_percent"] / 100
    with slow.serving(given) as stretch:
        worked = lambda: stretch.counts().all.busy
        rounds = overlap.calibrate(folder, cycles=cycles, busy=alone, disk=slow, worked=worked)
        for copies in (1, 2):
            with other_load() as load:
                found = statistics.median(
                    [
                        overlap.run(
                            folder, copies=copies, cycles=cycles, rounds=rounds, disk=slow
                        ).processor
                        for _ in range(repeats)
                    ]
                )
            print(
                f"  {copies} copies: {found.estimate:.1%} of one processor (from {found.low:.1%} to"
                f" {found.high:.1%}); others used {load.fraction:.0%} of the machine",
                flush=True,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one repetition, about")
    options = parser.parse_args()
    kept = True
    with disk.Slowed() as slow, PrivateDirectory(base_directory()) as home:
        for taken in TIMES:
            cycles = max(1, round(options.seconds / 2 / taken))
            ratios = [service(slow, home.path, taken, cycles) for _ in range(options.repeats)]
            kept &= told(f"a request set to {taken * 1e3:g} ms, measured over set", ratios)
        cycles = round(options.seconds / (2 * MEAN + THINK))
        for copies in (1, 2, 4):
            seeds = range(options.repeats)
            ratios = [queueing(slow, home.path, copies, cycles, seed) for seed in seeds]
            kept &= told(f"{copies} programs, throughput over prediction", ratios)
        for name, given in DISKS.items():
            print(f"read, compute, write on a disk that is {name}:")
            shares(slow, home.path, given, round(options.seconds / (4 * MEAN)), options.repeats)
    return int(not kept)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotMeasure as reason:
        print(f"Nothing was measured: {reason}", file=sys.stderr)
