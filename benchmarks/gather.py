"""How long does it take to read the runs of a thousand machines, and what does it take of memory?

Records are made from the published ones as in tests/thousand.py, of one chapter each or with
`--runs` of all chapters; a quarter and all of them are gathered in processes of their own, and what
they tell is concluded from them.

python benchmarks/gather.py [--records N] [--runs]

Prints seconds, the processors' seconds, and the memory of all processes together at its highest;
exit status 1 if four times as many records take the processors more than four times and a half as
long, if all take more than 30 s or 2 GB, or if anything else is found than what was planted.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import thousand

PLANTED = {"cores": thousand.many_cores, "release": thousand.old_release}
SECONDS, MEMORY, GROWTH = 30, 2e9, 4.5

GATHER = """
import json, sys, tempfile, time
from pathlib import Path
from pgrerun.record import gather, machines
if __name__ == "__main__":
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        found = gather.gather([sys.argv[1]], Path(scratch))
    read = time.perf_counter() - began
    told = machines.findings(found)
    print(json.dumps({
        "read": read, "concluded": time.perf_counter() - began - read,
        "records": found.records, "refused": found.refused, "machines": len(found.machines),
        "found": {one.claim: one.circumstance for one in told.dependences},
    }))
"""


def watched(process: subprocess.Popen, peak: list[float]) -> None:
    """The memory of a process and its children that no other shares, at its highest so far."""
    while process.poll() is None:
        try:
            one = psutil.Process(process.pid)
            used = [p.memory_full_info().uss for p in [one, *one.children(recursive=True)]]
            peak[0] = max(peak[0], sum(used))
        except psutil.Error:
            pass
        time.sleep(0.05)


def gathered(place: Path) -> dict:
    peak = [0.0]
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(GATHER)
        script.flush()
        began, busy = time.perf_counter(), processors_seconds()
        command = [sys.executable, script.name, str(place)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        watcher = threading.Thread(target=watched, args=(process, peak))
        watcher.start()
        out, _ = process.communicate()
        seconds = time.perf_counter() - began
        watcher.join()
    if process.returncode:
        raise SystemExit("gathering failed")
    busy = processors_seconds() - busy
    return json.loads(out) | {"seconds": seconds, "busy": busy, "memory": peak[0]}


def processors_seconds() -> float:
    """What all processes that this one has started and seen end took of the processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--runs", action="store_true", help="whole runs, of all chapters")
    asked = parser.parse_args()
    names = sorted(path.name for path in thousand.PUBLISHED.iterdir())
    chapters = names if asked.runs else ["scalability"]
    claims = list(thousand.Chapter("scalability").others)
    planted = dict(zip((claims[1], claims[4]), PLANTED.values()))
    expected = dict(zip((claims[1], claims[4]), PLANTED))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in (asked.records // 4, asked.records):
            place = Path(folder) / f"{number}"
            thousand.make(place, number, chapters, planted)
            found[number] = one = gathered(place)
            times = f"reading {one['read']:.1f}, concluding {one['concluded']:.1f}"
            print(
                f"{one['records']} records of {one['machines']} machines: {one['seconds']:.1f} s"
                f" ({times}; {one['busy']:.1f} of the processors),"
                f" {one['memory'] / 1e6:.0f} MB, found {one['found']}"
            )
    small, large = found.values()
    growth = large["busy"] / small["busy"]
    print(f"four times as many records take the processors {growth:.2f} times as long")
    right = large["found"] == expected and not large["refused"]
    return (
        0
        if right
        and large["seconds"] <= SECONDS
        and large["memory"] <= MEMORY
        and (growth <= GROWTH)
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
