"""The Wisconsin benchmark at a million tuples: loading, index building and the 32 queries, on
PostgreSQL and on DuckDB.

Everything as the chapter does it, on a cluster of its own with PostgreSQL's defaults: the
relations in all states of their indices, each query once with its result stored, and
its answer's number of tuples and checksum, which both engines must agree on.

    python benchmarks/wisconsin_million.py [--tuples N] [--seconds BAR]

Prints what took how long; exit status 1 if all of it took longer than the bar, or if answers
differ.
"""

import argparse
import sys
from contextlib import ExitStack

from pgrerun.chapters.wisconsin.contenders import DuckDB, PostgreSQL, Sql
from pgrerun.chapters.wisconsin.queries import BY_KEY, KEYS, instance
from pgrerun.lab.instruments import clock
from pgrerun.lab.server import Cluster

BAR = 240  # seconds on two cores


def lap(
    contender: Sql, tuples: int
) -> tuple[dict[str, float], dict[str, float], dict[str, tuple[int, int]]]:
    """Seconds of loading, queries and the rest; seconds by query; answers by query."""
    each, answers = {}, {}
    with clock.stopwatch() as whole:
        with clock.stopwatch() as load:
            contender.load(tuples)
        for key in KEYS:
            one = instance(BY_KEY[key], tuples)
            each[key] = contender.run(one)
            answers[key] = contender.answer(one)
            contender.tidy(one)
    queries = sum(each.values())
    spent = {
        "loading and indices": load.seconds,
        "queries": queries,
        "answers and tidying": whole.seconds - load.seconds - queries,
    }
    return spent, each, answers


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--tuples", type=int, default=1_000_000)
    arguments.add_argument("--seconds", type=float, default=BAR)
    given = arguments.parse_args()
    total, answers = 0.0, []
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster())
        for contender in (PostgreSQL(cluster), DuckDB()):
            with contender:
                spent, each, found = lap(contender, given.tuples)
            answers.append(found)
            total += sum(spent.values())
            slowest = ", ".join(
                f"{key} {seconds:.2f} s"
                for key, seconds in sorted(each.items(), key=lambda item: -item[1])[:5]
            )
            print(
                f"{contender.name}:"
                f" {', '.join(f'{what} {seconds:.1f} s' for what, seconds in spent.items())};"
                f" slowest {slowest}",
                flush=True,
            )
    differing = [key for key in KEYS if answers[0][key] != answers[1][key]]
    print(
        f"all of it with {given.tuples} tuples: {total:.0f} s, at most {given.seconds:g}; answers"
        f" differ in {', '.join(differing) or 'no query'}"
    )
    return int(total > given.seconds or bool(differing))


if __name__ == "__main__":
    sys.exit(main())
