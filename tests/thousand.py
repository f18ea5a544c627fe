"""Records of many machines, made from the published ones with differences planted on purpose.

Each claim whose evidence can be made undecided has two words: the published one and the other one.
Where nothing is planted a machine gives the other with a probability of the claim's own, whatever
the machine is; where something is, what the machine is decides most of it.
"""

import copy
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgrerun.record import runs, verdicts
from pgrerun.record.schema import ENVIRONMENT, VERDICTS

PUBLISHED = runs.CHECKOUT / runs.PUBLISHED
CORES = (2, 4, 8, 16, 32, 64)
RELEASES = ("13.22", "14.19", "15.14", "16.10", "17.6", "18.0")
GIB = 2**30


@dataclass(frozen=True)
class Machine:
    cores: int
    release: str
    memory: int
    flush: float

    @classmethod
    def drawn(cls, dice: random.Random) -> "Machine":
        """Each circumstance by itself, so that none stands for another."""
        memory = round(2 ** dice.uniform(2, 8) * GIB)
        flush = 10 ** dice.uniform(-4, -1.5)
        return cls(dice.choice(CORES), dice.choice(RELEASES), memory, flush)


class Chapter:
    """A published chapter as a template, with the rows of its smallest experiment alone: words
    depend on none, and reading those of all is what took the time.
    """

    def __init__(self, name: str):
        place = PUBLISHED / name
        self.name = name
        self.head = json.loads((place / ENVIRONMENT).read_text("utf-8"))
        tables = (place / f"{name}.parquet" for name in self.head["tables"])
        least = min(filter(Path.exists, tables), key=lambda path: path.stat().st_size)
        self.rows = {least.name: least.read_bytes()}
        self.head["tables"] = {least.stem: self.head["tables"][least.stem]}
        kept = json.loads((place / VERDICTS).read_text("utf-8"))
        # a claim that is judged otherwise since then is left out until it is measured again
        self.verdicts = [one for one in kept if verdicts.Judgement.from_dict(one) is not None]
        self.others = {
            kept["claim"]: other for kept in self.verdicts if (other := undecided(kept)) is not None
        }

    def write(
        self,
        folder: Path,
        machine: Machine,
        chances: Mapping[str, float],
        dice: Mapping[str, random.Random],
    ) -> None:
        """The record of this chapter by a machine; `chances` are of the other word, by claim."""
        told = [
            self.others[kept["claim"]]
            if kept["claim"] in self.others
            and dice[kept["claim"]].random() < chances[kept["claim"]]
            else kept
            for kept in self.verdicts
        ]
        folder.mkdir(parents=True)
        for name, content in self.rows.items():
            (folder / name).write_bytes(content)
        (folder / VERDICTS).write_text(json.dumps(told), "utf-8")
        environment = dict(self.head["environment"])
        environment["machine"] = environment["machine"] | {
            "architecture": "x86_64",
            "cpu_model": "Planted",  # chapters may have been published from several machines
            "cpus": machine.cores,
            "memory_bytes": machine.memory,
            "fdatasync_8k_seconds": machine.flush,
        }
        environment["server"] = environment["server"] | {"version": machine.release}
        head = self.head | {"environment": environment}
        head["sha256"] = {
            name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
            for name in (*self.rows, VERDICTS)
        }
        (folder / ENVIRONMENT).write_text(json.dumps(head), "utf-8")


def undecided(kept: Mapping[str, Any]) -> dict[str, Any] | None:
    """A verdict whose evidence is too wide to tell; None where that doesn't change its word."""
    other = copy.deepcopy(dict(kept))
    other["evidence"] = _widened(other["evidence"])
    other["verdict"] = "inconclusive"
    before, after = (verdicts.Judgement.from_dict(one) for one in (kept, other))
    if before is None or after is None or after.verdict == before.verdict:
        return None
    return other


def _widened(evidence: Any) -> Any:
    if not isinstance(evidence, dict):
        return evidence
    if {"estimate", "low", "high"} <= evidence.keys():
        return evidence | {"low": -1e9, "high": 1e9, "method": "widened", "n": 7}
    if {"value", "essential"} <= evidence.keys():
        value = evidence["value"]
        inner = None if isinstance(value, bool) else _widened(value)
        return evidence | {"value": inner, "opposite": None}
    return {name: _widened(inner) for name, inner in evidence.items()}


def many_cores(machine: Machine) -> float:
    return 0.85 if machine.cores >= 16 else 0.1


def old_release(machine: Machine) -> float:
    return 0.85 if int(machine.release.split(".")[0]) < 16 else 0.1


def make(
    place: Path,
    number: int,
    chapters: Sequence[str],
    planted: Mapping[str, Any],
    *,
    seed: int = 1,
    machines: Sequence[Machine] = (),
) -> list[Machine]:
    """Write the runs of `number` machines below `place`, one folder each, and return the machines.

    `planted` gives for some claims the probability of the other word as a function of the machine.
    """
    templates = [Chapter(name) for name in chapters]
    # a die for each claim, so that the words of one don't hang on what is published of others
    dice = {c: random.Random(f"{seed} {c}") for template in templates for c in template.others}
    base = {claim: die.uniform(0.1, 0.6) for claim, die in dice.items()}
    assert set(planted) <= set(base), "a planted claim has no other word"
    drawn = random.Random(seed)
    made = list(machines) or [Machine.drawn(drawn) for _ in range(number)]
    for place_of, machine in enumerate(made):
        chances = base | {claim: chance(machine) for claim, chance in planted.items()}
        for template in templates:
            template.write(place / f"{place_of:04d}" / template.name, machine, chances, dice)
    return made
