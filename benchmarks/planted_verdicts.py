"""Do planted effects get the right verdict when they are timed? A statement run k times or so.

On a throwaway cluster a statement runs a number of times in one variant and so many times as often
in the other, so that the ratio of their times is known: no effect, the printed one, half of it,
its opposite, its double. Each world is 21 interleaved pairs, judged as a chapter judges a printed
ratio of two. tests/test_verdicts.py does the same with drawn noise.

python benchmarks/planted_verdicts.py [--worlds N]

Prints for each planted effect how many worlds got the right verdict; exit status 1 if fewer than 95
in 100 did.
"""

import argparse
import sys
import time
from collections import Counter

import psycopg

from pgrerun.lab.server import Cluster
from pgrerun.progress import track
from pgrerun.record import claims, statistics, verdicts
from pgrerun.record.claims import Basis, Claim, Predicate, Size
from pgrerun.record.verdicts import Verdict

STATEMENT = "SELECT sum(g) FROM generate_series(1, 2000) AS g"
OFTEN, PAIRS = 12, 21
PRINTED = 2.0
WORLDS = {
    "no effect": (1.0, {Verdict.NO_EFFECT, Verdict.NOT_REPRODUCED}),
    "the printed effect": (2.0, {Verdict.HOLDS}),
    "half of it": (1.5, {Verdict.WEAKER}),
    "its opposite": (0.5, {Verdict.REVERSED}),
    "double": (3.0, {Verdict.STRONGER}),
}


def timed(connection: psycopg.Connection, often: int) -> float:
    """Seconds of the statement, run so often."""
    began = time.perf_counter()
    for _ in range(often):
        connection.execute(STATEMENT)
    return time.perf_counter() - began


def world(connection: psycopg.Connection, claim: Claim, effect: float) -> Verdict:
    """The verdict on the claim where the effect is planted."""
    times = ([], [])
    for pair in range(PAIRS):
        for variant in (0, 1) if pair % 2 else (1, 0):
            times[variant].append(timed(connection, round(OFTEN * (effect, 1.0)[variant])))
    return verdicts.judge(claim, statistics.ratio(*times)).verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=100)
    worlds = parser.parse_args().worlds
    known = next(c for c in claims.ledger().values() if c.predicate is Predicate.RATIO)
    size = {"": Size(PRINTED, PRINTED)}
    claim = known.model_copy(update={"sizes": size, "basis": Basis.TIMED, "margin": 0.05})
    enough = True
    with Cluster() as cluster, cluster.connect() as connection:
        timed(connection, 100)
        for name, (effect, right) in WORLDS.items():
            found = Counter(world(connection, claim, effect) for _ in track(range(worlds), name))
            share = sum(found[word] for word in right) / worlds
            enough = enough and share >= 0.95
            words = ", ".join(f"{n} {word}" for word, n in found.most_common())
            print(f"{name}: {share:.0%} right ({words})")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
