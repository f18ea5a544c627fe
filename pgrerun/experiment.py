"""Arms, blocks, repeats: how observations are made comparable.

An experiment compares arms. Each block measures every arm once, in an order that
rotates from block to block, so that whatever drifts on the machine falls on all
arms alike and pairs can be compared within a block. Warm-up blocks run first and
are discarded. An answer that differs between arms stops the experiment, because a
fast wrong answer is no result. Every finished measurement goes to the run record
at once: an interrupted experiment continues where it stopped.

What is measured is `instruments/`, what is stored `runs.py`, what is concluded
`statistics.py` and `claims.py`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import numpy as np
import pandas as pd

from pgrerun.errors import ParameterError, RerunError
from pgrerun.instruments import machine
from pgrerun.progress import track

BUSY = 0.10  # share of the machine used by others above which an observation is flagged
CHECKPOINTS = "checkpoints"  # the metric that becomes a flag instead


@dataclass(frozen=True)
class Block:
    """One round of an experiment, as an arm sees it.

    index     from 0; negative in warm-up
    seed      of this block, the same for all its arms: fits pgbench's and numpy's generators
    position  of the arm in this block's order, from 0
    """

    index: int
    seed: int
    position: int


@dataclass(frozen=True)
class Arm:
    """One of the things compared.

    `measure` returns metrics by name; "checkpoints", the number of checkpoints
    inside the window, is stored as a flag. `prepare` runs before it, outside of it.
    """

    name: str
    measure: Callable[[Block], Mapping[str, float]]
    prepare: Callable[[Block], None] | None = None


def interleave(
    run,
    experiment: str,
    arms: Sequence[Arm],
    *,
    pairs: int,
    units: Mapping[str, str],
    seed: int,
    warmup: int = 1,
    answer: Callable[[Block], object] | None = None,
    server=None,
) -> pd.DataFrame:
    """Measure all arms in `pairs` interleaved blocks; the experiment's observations.

    `run` is the open record (`runs.Run`). `units` gives the unit of every metric. `answer`, called after each measurement,
    returns what must be equal for all arms of a block (row counts, checksums); if
    it isn't, RerunError names both arms and nothing is stored for the second.
    (Block, arm) pairs that the run holds already are skipped. `server`, if given,
    isn't counted as other load. Flags stored with an observation: "warmup"
    (blocks discarded before), "other_load" (share of the machine; and "busy" if it
    is above 0.10), "checkpoint" (how many fell into the window), "answer" (digest).
    Ctrl-C loses the measurement under way and nothing else.
    """
    _check(arms, pairs, warmup)
    finished = run.finished(experiment)
    todo = [
        (Block(index, _seed(seed, index), position), arm)
        for index in range(pairs)
        for position, arm in enumerate(_order(arms, index))
        if (index, arm.name) not in finished
    ]
    if todo:
        _warm_up(arms, warmup, seed)
    answers = _stored_answers(run, experiment) if answer and finished else {}
    for block, arm in track(todo, experiment):
        if arm.prepare:
            arm.prepare(block)
        started_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        with machine.other_load(server) as load:
            metrics = dict(arm.measure(block))
        flags = {"warmup": warmup} | _load_flags(load)
        if count := metrics.pop(CHECKPOINTS, 0):
            flags["checkpoint"] = int(count)
        _check_metrics(metrics, units, arm, experiment)
        if answer:
            flags["answer"] = _digest(answer(block))
            _compare(answers.setdefault(block.index, {}), arm, flags["answer"], experiment, block)
        run.observe(
            experiment, arm.name, block.index, metrics,
            units=units, seed=block.seed, position=block.position, started_at=started_at, flags=flags,
        )  # fmt: skip
    return run.observations(experiment)


def _check(arms: Sequence[Arm], pairs: int, warmup: int) -> None:
    if pairs < 1 or warmup < 0:
        raise ParameterError(f"An experiment needs at least one pair and no fewer than 0 warm-up blocks, not {pairs} and {warmup}.")
    names = [arm.name for arm in arms]
    if len(set(names)) != len(names) or not names:
        raise ParameterError(f"The arms of an experiment need names that differ, not {', '.join(names) or 'none at all'}.")


def _order(arms: Sequence[Arm], index: int) -> list[Arm]:
    """The arms rotated by one per block, and backwards in every second full turn.

    Two arms thus alternate AB BA BA AB, which cancels a linear drift; with more,
    none is always preceded by the same other.
    """
    turn, shift = divmod(index, len(arms))
    arms = list(arms) if turn % 2 == 0 else list(reversed(arms))
    return arms[shift:] + arms[:shift]


def _seed(seed: int, index: int) -> int:
    """The block's own seed, 31 bits: blocks differ, reruns repeat them."""
    # warm-up blocks are numbered from -1 down; SeedSequence takes no negative numbers
    return int(np.random.SeedSequence([seed, index % 2**32]).generate_state(1)[0] >> 1)


def _warm_up(arms: Sequence[Arm], blocks: int, seed: int) -> None:
    for number in range(blocks):
        for position, arm in enumerate(arms):
            block = Block(number - blocks, _seed(seed, number - blocks), position)
            if arm.prepare:
                arm.prepare(block)
            arm.measure(block)


def _load_flags(load: machine.Load) -> dict:
    if load.fraction is None:
        return {}
    return {"other_load": round(load.fraction, 3)} | ({"busy": True} if load.fraction > BUSY else {})


def _check_metrics(metrics: Mapping[str, float], units: Mapping[str, str], arm: Arm, experiment: str) -> None:
    if unknown := sorted(set(metrics) - set(units)):
        raise ParameterError(f"Arm {arm.name} of {experiment} measured {', '.join(unknown)}, for which no unit is given.")
    if broken := sorted(name for name, value in metrics.items() if not np.isfinite(value)):
        raise RerunError(f"Arm {arm.name} of {experiment} measured no finite number for {', '.join(broken)}.")


def _digest(answer: object) -> str:
    if hasattr(answer, "__array__"):  # frames and arrays abbreviate themselves in repr
        answer = np.asarray(answer).tolist()
    return hashlib.sha256(repr(answer).encode()).hexdigest()[:16]


def _stored_answers(run, experiment: str) -> dict[int, dict[str, str]]:
    """Digests of the answers stored by an earlier, interrupted call: block to arm to digest."""
    answers: dict[int, dict[str, str]] = {}
    for row in run.observations(experiment).itertuples():
        digest = json.loads(row.flags or "{}").get("answer")
        if digest:
            answers.setdefault(row.block, {})[row.arm] = digest
    return answers


def _compare(answers: dict[str, str], arm: Arm, digest: str, experiment: str, block: Block) -> None:
    for other, theirs in answers.items():
        if theirs != digest:
            raise RerunError(
                f"In block {block.index} of {experiment}, {arm.name} gives another answer than {other}, so their "
                "times can't be compared. What was finished before is kept; the arms have to be mended first."
            )
    answers[arm.name] = digest
