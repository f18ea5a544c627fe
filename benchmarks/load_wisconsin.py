"""Loading a Wisconsin relation against a bare binary COPY of the same, already encoded tuples.

Both variants create the relation and fill it by COPY ... FREEZE in one transaction on one own
cluster; they alternate in blocks of rotated order, a checkpoint before each. The bare variant
sends what the loader's records were, encoded beforehand and held in memory.

Exit status 1 if loading takes more than BAR times as long (median of the paired ratios).
"""

import argparse
import sys
import time

import numpy as np
import psycopg

from pgrerun.lab.relations.wisconsin import COPY_HEADER, COPY_TRAILER, Wisconsin
from pgrerun.lab.server import Cluster
from pgrerun.record.statistics import ratio

BAR = 1.25
SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "4GB", "autovacuum": "off"}
WRITE = 2**20  # bytes handed to COPY at once


def encoded(relation: Wisconsin) -> list[bytes]:
    """The whole COPY stream, in pieces of about WRITE bytes."""
    stream = (
        COPY_HEADER + b"".join(records.tobytes() for records in relation.records()) + COPY_TRAILER
    )
    return [stream[at : at + WRITE] for at in range(0, len(stream), WRITE)]


def bare(connection: psycopg.Connection, relation: Wisconsin, stream: list[bytes]) -> None:
    with connection.transaction():
        connection.execute(relation.create_sql)
        with connection.cursor().copy(
            f"COPY {relation.name} FROM STDIN (FORMAT binary, FREEZE)"
        ) as copy:
            for piece in stream:
                copy.write(piece)


def seconds(connection: psycopg.Connection, relation: Wisconsin, load) -> float:
    connection.execute(f"DROP TABLE IF EXISTS {relation.name}")
    connection.execute("CHECKPOINT")
    started = time.perf_counter()
    load()
    took = time.perf_counter() - started
    return took


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--pairs", type=int, default=9)
    given = arguments.parse_args()
    relation = Wisconsin("tenk1", given.rows)
    stream = encoded(relation)
    with Cluster(settings=SETTINGS) as cluster, cluster.connect() as connection:
        variants = {
            "loader": lambda: relation.load(connection, vacuum=False),
            "bare COPY": lambda: bare(connection, relation, stream),
        }
        answers = set()
        for load in variants.values():  # also the warm-up: a cluster's first load extends its WAL
            seconds(connection, relation, load)
            answers.add(connection.execute(relation.checksum_sql).fetchone())
        assert len(answers) == 1, f"the variants loaded different tuples: {answers}"
        times = {name: [] for name in variants}
        for pair in range(given.pairs):
            for name in sorted(variants, reverse=bool(pair % 2)):
                times[name].append(seconds(connection, relation, variants[name]))
            print(
                f"pair {pair + 1}: "
                + ", ".join(f"{name} {times[name][-1]:.2f} s" for name in variants),
                flush=True,
            )
    found = ratio(times["loader"], times["bare COPY"])
    rows_per_second = given.rows / np.median(times["loader"])
    print(
        f"loader / bare COPY of {given.rows} tuples: {found.estimate:.3f} [{found.low:.3f},"
        f" {found.high:.3f}], {found.n} pairs, {rows_per_second:,.0f} tuples/s; at most {BAR}"
    )
    return int(found.estimate > BAR)


if __name__ == "__main__":
    sys.exit(main())
