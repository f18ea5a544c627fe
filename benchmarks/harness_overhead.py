"""Does the harness cost throughput? pgbench through it against pgbench by hand.

Same cluster, same script, same settings, interleaved pairs. By hand means
`subprocess.run` on the pgbench program and a regular expression. Through the harness
means what a chapter does: counters around the load, other load watched, the
observation stored.

python benchmarks/harness_overhead.py [--pairs N] [--seconds N] [--clients N] [--synchronous-commit
on]

Prints the ratio harness / by hand with its interval; exit status 1 if it is below 0.97.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

from pgrerun.lab.experiment import Variant, interleave
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.instruments.counters import Counters
from pgrerun.lab.server import Cluster
from pgrerun.record import statistics
from pgrerun.record.runs import Run

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
    with tempfile.TemporaryDirectory() as folder, Cluster(settings=settings) as cluster:
        os.environ["PGRERUN_RUNS"] = folder
        cluster.tool("pgbench", "-i", "-q")
        path = cluster.scratch / "by_hand.sql"
        path.write_text(SCRIPT)
        path.chmod(0o644)
        with (
            Run.open("bench", "harness", key="-", environment={}) as run,
            Counters(cluster) as counters,
        ):

            def harness(block):
                with counters.measured() as delta:
                    result = pgbench.run(cluster, SCRIPT, **load)
                return {"tps": result.tps, "checkpoints": delta.checkpoints}

            frame = interleave(
                run,
                "overhead",
                [
                    Variant("harness", harness),
                    Variant("by hand", lambda block: {"tps": by_hand(cluster, path, options)}),
                ],
                pairs=options.pairs,
                units={"tps": "1/s"},
                seed=1,
                server=cluster,
            )
    tps = frame.pivot(index="block", columns="variant", values="value")
    busy = frame["flags"].str.contains('"busy"').sum()
    interval = statistics.ratio(tps["harness"], tps["by hand"])
    print(tps.round(0).to_string())
    print(
        f"harness / by hand: {interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}] over"
        f" {options.pairs} pairs, bar {BAR}; {busy} of {len(frame)} observations while others used"
        " more than a tenth of the machine"
    )
    return 0 if interval.estimate >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
