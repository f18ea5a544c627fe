"""Whichever process of a run is killed, at whatever moment: nothing stays, and nothing is lost."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import psutil
import pytest
from servers import left, mapped, smallest, until

from pgrerun.lab.server.processes import has_ended
from pgrerun.record import runs

ROOT = Path(__file__).resolve().parents[2]
SEED = 1990
SECONDS = 120  # of killing
CHAPTERS = ("tp1", "measuring", "profiling", "scalability")
# The command of a checkout of its own: the runs of one checkout wait for each other.
COMMAND = """
import sys
from pathlib import Path
from pgrerun import cli
from pgrerun.site import book
root = Path(sys.argv.pop(1))
cli.Book = lambda: book.Book(root)
cli.main()
"""


@dataclass
class Machine:
    """What runs have had of the machine so far, as far as it was seen before each kill."""

    folders: list[Path]
    processes: set[psutil.Process] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)

    def look(self, run: subprocess.Popen) -> list[psutil.Process]:
        """The processes of a run that are alive now, itself included, its orphans as well."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(run.pid)
            self.processes |= {process, *process.children(recursive=True)}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("PGRERUN_TMPDIR") == str(self.folders[0]):
                    self.processes.add(process)
        # servers write their title over their environment: those that were seen before
        alive = [one for one in self.processes if not has_ended(one)]
        self.shared |= mapped(*(one.pid for one in alive))
        return alive

    def left(self) -> list[object]:
        return [
            *(one for one in self.processes if not has_ended(one)),
            *left(self.shared),
            *(path for folder in self.folders for path in folder.iterdir()),
        ]


@dataclass(frozen=True)
class Checkout:
    """A copy of the notebooks with results, records and temporary files of its own."""

    root: Path
    environment: dict[str, str]

    def start(self, *words: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, str(self.root), *words],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.root,
        )

    def run(self, chapter: str) -> subprocess.Popen:
        given = [f"{name}={value}" for name, value in smallest(chapter).items()]
        return self.start("run", chapter, *(word for one in given for word in ("-p", one)))

    def finished(self, chapter: str) -> set[tuple[str, str, int]]:
        """Experiment, time and block of each repeated measurement so far that counts.

        What isn't repeated starts over with its experiment.
        """
        records = Path(self.environment["PGRERUN_RUNS"]) / "ci"
        if (records / chapter / runs.ENVIRONMENT).exists():
            tables = runs.load(records / chapter).tables[chapter]
            found = [
                (name, row) for name, rows in tables.items() for row in rows.to_dict("records")
            ]
        else:
            journal = records / f"{chapter}.partial" / runs.JOURNAL
            lines = journal.read_bytes().splitlines(True)[1:] if journal.exists() else []
            entries = [json.loads(line) for line in lines if line.endswith(b"\n")]
            found = [(one["table"], one["row"]) for one in entries if "row" in one]
        return {
            (name, row["started_at"], int(row["block"]))
            for name, row in found
            if not pd.isna(row.get("block")) and not row["disturbed"]
        }


@pytest.fixture
def checkout(base, tmp_path) -> Checkout:
    root = tmp_path / "checkout"
    for folder in ("notebooks", "data"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("runs"))
    (root / "pgrerun").symlink_to(ROOT / "pgrerun")
    shutil.copy(ROOT / "requirements.txt", root)
    places = {name: tmp_path / name for name in ("runs", "tmp", "home")}
    for place in places.values():
        place.mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PGRERUN_TMPDIR": str(base),
        "PGRERUN_RUNS": str(places["runs"]),
        "TMPDIR": str(places["tmp"]),
        "HOME": str(places["home"]),
    }
    return Checkout(root, environment)


def test_kills_at_random_leave_the_machine_as_it_was_and_lose_nothing(checkout, base, tmp_path):
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    machine = Machine([base, tmp_path / "tmp"])
    end, kills = time.monotonic() + SECONDS, []
    while time.monotonic() < end:
        chapter = chance.choice(CHAPTERS)
        run = checkout.run(chapter)
        # while it starts, while its kernel or a server does, or while it measures
        time.sleep(chance.uniform(0, 15))
        kills += killed_one_by_one(run, checkout, chapter, machine, chance)
    print(*kills, sep="\n")
    cleaned = checkout.start("clean")
    assert cleaned.wait(600) == 0, cleaned.stderr.read()
    assert machine.left() == [], kills
    assert not (checkout.root / "_build").exists()
    assert not list((tmp_path / "runs").rglob(".*")), "half a record"
    assert not (tmp_path / "home" / ".debug").exists()
    assert kills, "the runs were over before anything was killed"
    assert any(", 0 observations" not in one for one in kills), "nothing was there to be lost"


def killed_one_by_one(run, checkout, chapter, machine, chance) -> list[str]:
    """Kill one process of a run after another, at random moments, until it ends; who was killed."""
    killed = []
    while run.poll() is None:
        time.sleep(chance.uniform(0, 3))
        before, kinds = checkout.finished(chapter), {}
        for one in machine.look(run):
            with contextlib.suppress(psutil.Error):
                kinds.setdefault(one.name(), []).append(one)
        if not kinds:
            continue
        kind = chance.choice(sorted(kinds))  # else it would be a backend nearly every time
        with contextlib.suppress(psutil.Error):
            chance.choice(kinds[kind]).send_signal(signal.SIGKILL)
            killed.append(f"{chapter}, {len(before)} observations: {kind}")
        machine.look(run)
        assert before <= checkout.finished(chapter), killed
    said = run.communicate()[1]
    assert run.returncode in (0, 1, -signal.SIGKILL) and "Traceback" not in said, (killed, said)
    until(lambda: not machine.look(run))  # its kernel and servers need a moment
    return killed
