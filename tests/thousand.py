"""What many made-up machines say, with differences planted on purpose."""

import random
from collections.abc import Callable, Mapping, Sequence

from pgrerun.record import claims
from pgrerun.record.gather import Gathered, Machine

CLAIMS = list(claims.ledger())[:30]
GIB = 2**30


def machines(number: int, seed: int = 1) -> list[Machine]:
    """Each circumstance is drawn by itself, so that none stands for another."""
    dice = random.Random(seed)
    return [
        Machine(
            architecture="x86_64",
            model="A CPU",
            cores=dice.choice((2, 4, 8, 16, 32, 64)),
            memory=round(GIB * 2 ** dice.uniform(2, 8)),
            release=dice.choice(("13", "14", "15", "16", "17", "18")),
            flush=10 ** dice.uniform(-4, -1.5),
        )
        for _ in range(number)
    ]


def gathered(
    made: Sequence[Machine], planted: Mapping[str, Callable[[Machine], float]]
) -> Gathered:
    """Each machine gives one of two words for each claim: the other one with a probability of the
    claim's own, or with that which is `planted` for a machine.
    """
    words: dict[str, list[int | None]] = {}
    for claim in CLAIMS:
        dice = random.Random(claim)
        own = dice.uniform(0.1, 0.6)
        chances = [planted[claim](one) if claim in planted else own for one in made]
        words[claim] = [int(dice.random() < chance) for chance in chances]
    return Gathered(list(made), words, ["holds", "weaker", "reversed"], len(made), 10 * len(made))


def many_cores(machine: Machine) -> float:
    return 0.85 if machine.cores >= 16 else 0.1


def old_release(machine: Machine) -> float:
    return 0.85 if int(machine.release) < 16 else 0.1
