"""Variants, blocks, repeats: how observations are made comparable.

An experiment compares variants. Each block measures every variant once, in an order that
rotates from block to block, so that whatever drifts on the machine falls on all
variants alike and pairs can be compared within a block. Warm-up blocks run first and
are discarded. An answer that differs between variants stops the experiment, because a
fast wrong answer is no result. A value that can't be (a time below zero) is disturbed: it
is kept as such and measured again, within a budget. Every finished measurement goes to the
run record at once: an interrupted experiment continues where it stopped.

What is measured is `instruments/`, what is stored `runs.py`, what is concluded
`statistics.py` and `claims.py`.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pandas as pd

from pgrerun.errors import CannotMeasure, ParameterError, RerunError
from pgrerun.lab import disk, sent
from pgrerun.lab.instruments import machine
from pgrerun.progress import track

BUSY = 0.10  # share of the machine used by others above which an observation is flagged
DISK = "disk"  # the flag of what was measured on another disk than the machine's: which
LOOKS = "looks"  # the flag of what could have ended early: after how many pairs one looked
CHECKPOINTS = "checkpoints"  # the metric that becomes a flag instead
ATTEMPTS = 3  # at one measurement, if it is disturbed and the experiment's budget lasts


@dataclass(frozen=True)
class Block:
    """One round of an experiment, as a variant sees it.

    index     from 0; negative in warm-up
    seed      of this block, the same for all its variants: fits pgbench's and numpy's generators
    position  of the variant in this block's order, from 0
    """

    index: int
    seed: int
    position: int


@dataclass(frozen=True)
class Variant:
    """One of the things compared.

    `measure` returns metrics by name; "checkpoints", the number of checkpoints
    inside the window, is stored as a flag. `prepare` runs before it, outside of it.
    """

    name: str
    measure: Callable[[Block], Mapping[str, float]]
    prepare: Callable[[Block], None] | None = None


class OpenRun(Protocol):
    """Where observations go: what an experiment needs of a `runs.Run`."""

    def finished(self, experiment: str) -> set[tuple[int, str]]: ...

    def left_out(self, experiment: str) -> set[int]: ...

    def disturbances(self, experiment: str) -> int: ...

    def observations(self, experiment: str) -> pd.DataFrame: ...

    def observe(
        self,
        experiment: str,
        variant: str,
        block: int,
        metrics: Mapping[str, float],
        *,
        units: Mapping[str, str],
        seed: int,
        position: int,
        started_at: str,
        flags: Mapping[str, Any],
        disturbed: str,
        leaves_out: bool,
    ) -> None: ...


def interleave(
    run: OpenRun,
    experiment: str,
    variants: Sequence[Variant],
    *,
    pairs: int,
    units: Mapping[str, str],
    seed: int,
    warmup: int = 1,
    answer: Callable[[Block], object] | None = None,
    server: Any = None,
    positive: Collection[str] = (),
    budget: int | None = None,
    quiet: bool = False,
    looks: Sequence[int] = (),
    settled: Callable[[pd.DataFrame], bool] = lambda observations: False,
    flags: Mapping[str, Any] = MappingProxyType({}),
) -> pd.DataFrame:
    """Measure all variants in `pairs` interleaved blocks; the experiment's observations.

    Or in fewer: `looks` are numbers of blocks, rising to `pairs`, after which the experiment ends
    if the observations so far are `settled`. They are planned and kept with each observation, since
    intervals have to be wider for them (see `record/sequential.py`).

    `run` is the open record. `units` gives the unit of every metric. `answer`, called after each
    measurement, returns what must be equal for all variants of a block (row counts, checksums);
    if it isn't, RerunError names both variants and nothing is stored for the second.
    (Block, variant) pairs that the run holds already are skipped. `server`, if given,
    isn't counted as other load. Ctrl-C loses the measurement under way and nothing else.

    A measurement is disturbed if a value isn't finite, or is below zero, or is zero where the
    metric is in `positive`. It is kept as disturbed and repeated at once, `ATTEMPTS` times at
    most, and while the experiment has fewer than `budget` disturbed ones (default: `pairs`).
    Then its block is left out, so that claims rest on fewer pairs. CannotMeasure if that leaves
    none. With `quiet` what is flagged as "busy" is repeated likewise, but the last try is kept.
    What is returned holds neither disturbed measurements nor blocks left out.

    Flags stored with an observation: "warmup" (blocks discarded before), "other_load" (share of
    the machine; and "busy" if it is above 0.10), "checkpoint" (how many fell into the window),
    "answer" (digest), "disk" (in words, if it was slowed), "looks" (if there are several), and
    whatever `flags` has; if disturbed also "attempt" (from 1) and "budget".
    """
    budget = pairs if budget is None else budget
    looks = tuple(looks) or (pairs,)
    _check(variants, pairs, warmup, budget, looks)
    answers = _stored_answers(run, experiment) if answer and run.finished(experiment) else {}
    told = run, experiment, units, positive, warmup, answer, answers, server
    measuring = _Measuring(*told, budget, quiet, looks, flags)
    warm = False
    for end in looks:
        todo = _todo(run, experiment, variants, end, seed)
        if todo and not warm:
            _warm_up(variants, warmup, seed)
            warm = True
        measuring.store_all(todo)
        found = run.observations(experiment)
        # of a run that was interrupted there may be later blocks than those looked at
        if end < pairs and settled(found[found["block"] < end]):
            break
    return found


@dataclass
class _Measuring:
    """One call of `interleave`; the fields are its arguments, and the answers known so far."""

    run: OpenRun
    experiment: str
    units: Mapping[str, str]
    positive: Collection[str]
    warmup: int
    answer: Callable[[Block], object] | None
    answers: dict[int, dict[str, str]]
    server: Any
    budget: int
    quiet: bool
    looks: tuple[int, ...]
    flags: Mapping[str, Any]

    def store_all(self, todo: Sequence[tuple[Block, Variant]]) -> None:
        """Measure what is to do, up to a block's being left out; CannotMeasure if all are."""
        left_out: set[int] = set()
        with sent.unrecorded() if self.warmup else nullcontext():
            for block, variant in track(todo, self.experiment):
                if block.index not in left_out and not self.store(block, variant):
                    left_out.add(block.index)
        if self.run.observations(self.experiment).empty:
            raise CannotMeasure(
                "undisturbed measurements",
                f"every block of {self.experiment!r} was disturbed:"
                f" {self.run.disturbances(self.experiment)} measurements gave values that can't be",
            )

    def store(self, block: Block, variant: Variant) -> bool:
        """Measure, again if disturbed; False if the budget is spent and the block is left out."""
        for attempt in range(1, ATTEMPTS + 1):
            started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
            metrics, flags = self._measure(block, variant)
            disturbed = self._impossible(metrics) or self._busy(flags, attempt)
            leaves_out = False
            if disturbed:
                flags |= {"attempt": attempt, "budget": self.budget}
                spent = self.run.disturbances(self.experiment) + 1
                leaves_out = attempt == ATTEMPTS or spent > self.budget
            elif self.answer:
                flags["answer"] = _digest(self.answer(block))
                known = self.answers.setdefault(block.index, {})
                _compare(known, variant, flags["answer"], self.experiment, block)
            self.run.observe(
                self.experiment,
                variant.name,
                block.index,
                metrics,
                units=self.units,
                seed=block.seed,
                position=block.position,
                started_at=started_at,
                flags=flags,
                disturbed=disturbed,
                leaves_out=leaves_out,
            )
            if leaves_out or not disturbed:
                return not disturbed
        raise AssertionError("the last attempt stores or leaves out")

    def _measure(self, block: Block, variant: Variant) -> tuple[dict[str, float], dict[str, Any]]:
        """Metrics and flags of one measurement."""
        if variant.prepare:
            variant.prepare(block)
        with machine.other_load(self.server) as load, disk.told() as slowed:
            metrics = dict(variant.measure(block))
        flags: dict[str, Any] = {"warmup": self.warmup, **self.flags} | _load_flags(load)
        if len(self.looks) > 1:
            flags[LOOKS] = list(self.looks)
        if slowed:
            flags[DISK] = "; ".join(sorted(slowed))
        if count := metrics.pop(CHECKPOINTS, 0):
            flags["checkpoint"] = int(count)
        if unknown := sorted(set(metrics) - set(self.units)):
            raise ParameterError(
                f"Variant {variant.name} of {self.experiment} measured {', '.join(unknown)}, for"
                " which no unit is given."
            )
        return metrics, flags

    def _busy(self, flags: Mapping[str, Any], attempt: int) -> str:
        """In words how much others used, if that is to be measured again; else empty."""
        spent = self.run.disturbances(self.experiment) >= self.budget
        if not self.quiet or "busy" not in flags or attempt == ATTEMPTS or spent:
            return ""
        return f"others used {100 * flags['other_load']:.0f} % of the machine"

    def _impossible(self, metrics: Mapping[str, float]) -> str:
        """In words which values can't be; empty if all can.

        What is measured here (times, rates, counts, sizes, shares) is never below zero.
        """
        return "; ".join(
            f"{name} = {float(value):g} {self.units[name]}".strip()
            for name, value in metrics.items()
            if not math.isfinite(value) or value < 0 or (value == 0 and name in self.positive)
        )


def _check(
    variants: Sequence[Variant], pairs: int, warmup: int, budget: int, looks: tuple[int, ...]
) -> None:
    if pairs < 1 or warmup < 0 or budget < 0:
        raise ParameterError(
            "An experiment needs at least one pair, and no fewer than 0 warm-up blocks and"
            f" repeats, not {pairs}, {warmup} and {budget}."
        )
    if sorted(set(looks)) != list(looks) or looks[0] < 1 or looks[-1] != pairs:
        raise ParameterError(f"Looks rise to the last of {pairs} pairs, and are not {looks}.")
    names = [variant.name for variant in variants]
    if len(set(names)) != len(names) or not names:
        raise ParameterError(
            "The variants of an experiment need names that differ, not"
            f" {', '.join(names) or 'none at all'}."
        )


def _todo(
    run: OpenRun, experiment: str, variants: Sequence[Variant], blocks: int, seed: int
) -> list[tuple[Block, Variant]]:
    """What the run doesn't hold yet of so many blocks, in the order in which it is measured."""
    finished, left_out = run.finished(experiment), run.left_out(experiment)
    return [
        (Block(index, _seed(seed, index), position), variant)
        for index in range(blocks)
        for position, variant in enumerate(_order(variants, index))
        if (index, variant.name) not in finished and index not in left_out
    ]


def _order(variants: Sequence[Variant], index: int) -> list[Variant]:
    """The variants rotated by one per block, and backwards in every second full turn.

    Two variants thus alternate AB BA BA AB, which cancels a linear drift; with more,
    none is always preceded by the same other.
    """
    turn, shift = divmod(index, len(variants))
    variants = list(variants) if turn % 2 == 0 else list(reversed(variants))
    return variants[shift:] + variants[:shift]


def _seed(seed: int, index: int) -> int:
    """The block's own seed, 31 bits: blocks differ, reruns repeat them."""
    # warm-up blocks are numbered from -1 down; SeedSequence takes no negative numbers
    return int(np.random.SeedSequence([seed, index % 2**32]).generate_state(1)[0] >> 1)


def _warm_up(variants: Sequence[Variant], blocks: int, seed: int) -> None:
    for number in range(blocks):
        for position, variant in enumerate(variants):
            block = Block(number - blocks, _seed(seed, number - blocks), position)
            if variant.prepare:
                variant.prepare(block)
            variant.measure(block)


def _load_flags(load: machine.Load) -> dict[str, Any]:
    if load.fraction is None:
        return {}
    return {"other_load": round(load.fraction, 3)} | (
        {"busy": True} if load.fraction > BUSY else {}
    )


def _digest(answer: object) -> str:
    if hasattr(answer, "__array__"):  # frames and arrays abbreviate themselves in repr
        answer = np.asarray(answer).tolist()
    return hashlib.sha256(repr(answer).encode()).hexdigest()[:16]


def _stored_answers(run: OpenRun, experiment: str) -> dict[int, dict[str, str]]:
    """Digests of the answers stored by an earlier, interrupted call: block to variant to digest."""
    answers: dict[int, dict[str, str]] = {}
    for row in run.observations(experiment).itertuples():
        digest = json.loads(row.flags or "{}").get("answer")
        if digest:
            answers.setdefault(row.block, {})[row.variant] = digest
    return answers


def _compare(
    answers: dict[str, str], variant: Variant, digest: str, experiment: str, block: Block
) -> None:
    for other, theirs in answers.items():
        if theirs != digest:
            raise RerunError(
                f"In block {block.index} of {experiment}, {variant.name} gives another answer than"
                f" {other}, so their times can't be compared. What was finished before is kept; the"
                " variants have to be mended first."
            )
    answers[variant.name] = digest
