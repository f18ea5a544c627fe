"""How much disk does a chapter take while it runs?

Runs chapters one after the other, each with a folder of its own for all that its servers write, and
looks again and again how much the files in there take. What is shorter than a look is missed.

    python benchmarks/disk_space.py uuid_keys tp1 --profile laptop

The most that was seen goes into data/disk_space.csv, from which the site's tables of durations tell
it: a line for each chapter and profile, in the place of an older one.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from pgrerun.lab.server import fetched
from pgrerun.lab.server.private import base_directory
from pgrerun.site.durations import SPACE

COLUMNS = ("chapter", "profile", "bytes", "postgresql", "date")
PAUSE = 0.5  # seconds between two looks
CLUSTER = 10**6  # bytes that no cluster is smaller than


def taken(folder: Path) -> int:
    """Bytes on the disk of all files below a folder, some of which may be gone by now."""
    blocks, waiting = 0, [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        blocks += entry.stat(follow_symlinks=False).st_blocks
        except FileNotFoundError:
            continue
    return 512 * blocks


def most_taken(chapter: str, profile: str) -> int:
    """The most that a run of a chapter had on the disk at once, in bytes."""
    with tempfile.TemporaryDirectory(dir=base_directory()) as name:
        folder = Path(name)
        folder.chmod(0o711)  # its servers run as another account where we are root
        command = [sys.executable, "-m", "pgrerun", "run", chapter, "--profile", profile]
        command += ["--out", str(folder / "page.ipynb")]
        environment = os.environ | {"PGRERUN_TMPDIR": name, "PGRERUN_RUNS": str(folder / "runs")}
        running, most = subprocess.Popen(command, env=environment), 0
        while running.poll() is None:
            most = max(most, taken(folder))
            time.sleep(PAUSE)
        if running.returncode:
            sys.exit(f"{chapter} didn't run to its end.")
        if most < CLUSTER:
            sys.exit(f"{chapter} started no server here, so that nothing is known of its disk.")
        return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="none unless named")
    parser.add_argument("--profile", default="ci")
    given = parser.parse_args()
    release = fetched.chosen("").version
    for chapter in given.chapters:
        most = most_taken(chapter, given.profile)
        line = (chapter, given.profile, str(most), release, f"{datetime.now(UTC):%Y-%m-%d}")
        kept = {}
        if SPACE.exists():
            with SPACE.open(newline="", encoding="utf-8") as rows:
                kept = {(row["chapter"], row["profile"]): row for row in csv.DictReader(rows)}
        kept[chapter, given.profile] = dict(zip(COLUMNS, line))
        with SPACE.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept[key] for key in sorted(kept))
        print(f"{chapter}, {given.profile}: {most / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
