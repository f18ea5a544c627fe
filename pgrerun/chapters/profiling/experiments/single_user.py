"""Single-user backends under callgrind, each on a copy of one cluster's files.

The server is the report's: a single-user backend, each command parsed and planned anew.
"""

import copy
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import pandas as pd

from pgrerun.chapter import Chapter
from pgrerun.chapters.profiling import queries
from pgrerun.chapters.profiling.queries import SCANS, TRANSACTIONS
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import callgrind
from pgrerun.lab.server import Cluster

T = TypeVar("T")
Item = TypeVar("Item")

SEPARATOR = " | "  # between routine, file, directory, subsystem and object in a metric's name
WARM_UP = "warm-up"  # the group of statements that fill catalog caches and buffer pool
BATCH = 5  # transactions where whole sets are counted; instructions per transaction vary little
# Object identifiers of template1 and, since PostgreSQL 15, template0
# (src/include/catalog/pg_database.dat)
TEMPLATES = {"1", "4"}


def loaded_cluster(chapter: Chapter) -> Cluster:
    """A cluster that holds both sets' relations; the buffer pool keeps all of them.

    CannotMeasure for a borrowed server, which can't be run under callgrind.
    """
    cluster = chapter.cluster(shared_buffers="64MB", min_wal_size="32MB", cluster_name="profiled")
    cluster.start()
    cluster.extension("pg_prewarm")
    queries.load_once(chapter, cluster)
    return cluster


@contextmanager
def stopped(cluster: Cluster) -> Iterator[None]:
    """The cluster's files belong to single-user backends for the length of a block."""
    cluster.stop()
    try:
        yield
    finally:
        cluster.start()


@contextmanager
def copied(cluster: Cluster, checksums: bool = True) -> Iterator[Cluster]:
    """A stopped cluster's copy for one single-user backend, so that each begins with the same pages
    and some can run at a time.

    The template databases are the same files as the cluster's: no backend of another database
    opens them, and to make files, not to fill them, is what a copy costs.
    """
    own = copy.copy(cluster)
    source, target = cluster.data_directory, cluster.scratch / f"copy-{uuid.uuid4().hex[:12]}"
    own.data_directory = target
    try:
        subprocess.run(["cp", "-al", source, target], check=True)  # with owners and rights
        for folder, shared in ((".", {"base"}), ("base", TEMPLATES)):
            paths = [path for path in (source / folder).iterdir() if path.name not in shared]
            command = ["cp", "-a", "--remove-destination", *paths, target / folder]
            subprocess.run(command, check=True)
        set_checksums(own, checksums)
        yield own
    finally:
        shutil.rmtree(target, ignore_errors=True)


def set_checksums(cluster: Cluster, on: bool) -> None:
    """Switch a stopped cluster's data checksums; CannotMeasure for programs that can't."""
    if not cluster.programs.has("pg_checksums"):
        raise CannotMeasure(
            "pg_checksums",
            "data checksums can't be switched here: there is no program `pg_checksums` in"
            f" {cluster.programs.source}",
        )
    try:
        cluster.offline("pg_checksums", "--enable" if on else "--disable")
    except ServerError as error:
        if "already" not in str(error):
            raise CannotMeasure(
                "checksums", f"data checksums can't be switched here: {error}"
            ) from None


def three_at_a_time(job: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
    """The job's results in the items' order.

    Counts don't mind busy processors, and two of them don't wait for the last job.
    """
    with ThreadPoolExecutor(3) as few:
        return list(few.map(job, items))


def groups(chapter: Chapter, count: int, *sets: str) -> dict[str, list[str]]:
    """Statements of query sets, so many transactions, with a warm-up before them: catalog caches
    are filled, and the buffer pool, which is empty when a single-user backend begins.
    """
    first = {SCANS: queries.warm_up(), TRANSACTIONS: queries.transactions(chapter, 3, seed=1)}
    work = {SCANS: queries.scans(), TRANSACTIONS: queries.transactions(chapter, count)}
    warm = [command for each in sets for command in first[each]]
    warm.append(queries.one_line("relations.prewarm"))
    return {WARM_UP: warm} | {each: work[each] for each in sets}


def by_command(cluster: Cluster, commands: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Profiles of single commands, each planned once before it is counted.

    The cluster must be running and is stopped meanwhile.
    """
    names = list(commands)

    def count(half: list[str]) -> dict[str, pd.DataFrame]:
        statements = [queries.one_line("relations.prewarm")]
        for name in half:
            statements += [f"EXPLAIN {commands[name]}", commands[name]]
        with copied(cluster) as own:
            profile = callgrind.profile(own, statements)
        by_statement = dict(iter(profile.groupby("statement")))
        return {name: by_statement[2 * number + 2] for number, name in enumerate(half)}

    with stopped(cluster):
        halves = three_at_a_time(count, (names[::2], names[1::2]))
    return {name: profile for half in halves for name, profile in half.items()}


def keep(
    chapter: Chapter,
    experiment: str,
    variant: str,
    metrics: Mapping[str, float],
    units: str | Mapping[str, str],
) -> None:
    """Record what was counted for one variant, unless it is there: a count has neither block nor
    clock.
    """
    finished = chapter.run.finished(experiment)
    if (0, variant) in finished:
        return
    chapter.run.observe(
        experiment,
        variant,
        0,
        metrics,
        units=dict.fromkeys(metrics, units) if isinstance(units, str) else units,
        seed=chapter.parameters.seed,
        position=len(finished),
        started_at="",
        flags={},
    )
