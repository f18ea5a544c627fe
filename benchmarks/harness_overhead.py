"""Does the harness cost throughput? pgbench through it against pgbench by hand.

Same cluster, same script, same settings, interleaved pairs. By hand means
`subprocess.run` on the pgbench program and a regular expression. Through the harness
means what a chapter does: counters around the load, other load watched, the
row kept.

python benchmarks/harness_overhead.py [--pairs N] [--seconds N] [--clients N] [--synchronous-commit
on]

Prints the ratio harness / by hand with its interval; exit status 1 if it is below 0.97.
"""

import argparse
import re
import subprocess
import sys
from types import SimpleNamespace

import pandas as pd

from pgrerun.lab.instruments import pgbench
from pgrerun.lab.instruments.counters import Counters
from pgrerun.lab.server import Cluster, bundled
from pgrerun.lab.testbed import BUSY, Testbed, experiment
from pgrerun.record import statistics

BAR = 0.97
SCRIPT = """\\set aid random(1, 100000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
END;
"""


def by_hand(cluster, path, options) -> float:
    """What somebody would type, and read off."""
    command = [str(cluster._executable("pgbench")), "-n", "-f", str(path), "-M", "prepared"]
    command += ["-c", str(options.clients), "-j", str(options.clients), "-T", str(options.seconds)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        **cluster._server_process() | {"env": cluster.environment()},
    )
    return float(re.search(r"tps = ([\d.]+)", done.stdout)[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--clients", type=int, default=1)
    # off by default: the disk's moods are no part of the question
    parser.add_argument("--synchronous-commit", choices=("on", "off"), default="off")
    options = parser.parse_args()
    settings = {"synchronous_commit": options.synchronous_commit, "max_wal_size": "4GB"}
    load = {
        "clients": options.clients,
        "jobs": options.clients,
        "seconds": options.seconds,
        "protocol": "prepared",
    }
    with Cluster(settings=settings) as cluster:
        cluster.tool("pgbench", "-i", "-q")
        path = cluster.scratch / "by_hand.sql"
        path.write_text(SCRIPT)
        path.chmod(0o644)
        with Counters(cluster) as counters:

            def measure(block, by):
                if by == "hand":
                    return {"tps": by_hand(cluster, path, options)}
                with counters.measured():
                    result = pgbench.run(cluster, SCRIPT, **load)
                return {"tps": result.tps}

            @experiment(units={"tps": "1/s"})
            def overhead(bed):
                yield from bed.compare(measure, {"by": ["harness", "hand"]}, fixed=True)

            kept = []
            given = SimpleNamespace(pairs=options.pairs, seed=1)
            bed = Testbed(given, bundled(), rows=lambda _: kept)
            for row in bed.measure(overhead, {}):
                kept.append(row)
    frame = pd.DataFrame(kept)
    tps = frame.pivot(index="block", columns="by", values="tps")
    busy = (frame["other_load"].fillna(0) > BUSY).sum()
    interval = statistics.ratio(tps["harness"], tps["hand"])
    print(tps.round(0).to_string())
    print(
        f"harness / by hand: {interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}] over"
        f" {options.pairs} pairs, bar {BAR}; {busy} of {len(frame)} observations while others used"
        " more than a tenth of the machine"
    )
    return 0 if interval.estimate >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
