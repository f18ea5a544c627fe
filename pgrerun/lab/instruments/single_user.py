"""Commands to a single-user backend: no client, no socket, no other process.

It works on the files of a stopped cluster, or on a copy of them that it may spoil.
"""

import copy
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab import statement_log
from pgrerun.lab.server import Cluster

T = TypeVar("T")
Item = TypeVar("Item")

# Object identifiers of template1 and, since PostgreSQL 15, template0
# (src/include/catalog/pg_database.dat)
TEMPLATES = {"1", "4"}


def run(cluster: Cluster, lines: Sequence[str]) -> str:
    """What the backend prints on a stopped cluster's files, a command a line.

    Commands come from a file and answers go into one. ServerError if a command fails.
    """
    for line in lines:
        statement_log.log_statement(line)
    with tempfile.TemporaryFile("w+") as commands, tempfile.TemporaryFile("w+") as answers:
        commands.writelines(f"{line}\n" for line in lines)
        commands.seek(0)
        done = cluster.single_user(stdin=commands, stdout=answers, stderr=subprocess.PIPE)
        answers.seek(0)
        printed = answers.read()
    if done.returncode:
        said = done.stderr.strip()
    elif error := re.search("ERROR: .*", done.stderr):
        said = error[0]
    else:
        return printed
    raise ServerError(f"A single-user backend failed: {said[-500:]}")


@contextmanager
def stopped(cluster: Cluster) -> Iterator[None]:
    """The cluster's files belong to single-user backends for the length of a block."""
    cluster.stop()
    try:
        yield
    finally:
        cluster.start()


@contextmanager
def copied(cluster: Cluster) -> Iterator[Cluster]:
    """A stopped cluster's copy for one single-user backend, so that each begins with the same pages
    and some can run at a time.

    Its data checksums are on where they can be. The template databases are the same files as the
    cluster's: no backend of another database opens them, and to make files, not to fill them, is
    what a copy costs.
    """
    own = copy.copy(cluster)
    source, target = cluster.data_directory, cluster.scratch / f"copy-{uuid.uuid4().hex[:12]}"
    own.data_directory = target
    try:
        cluster.copy_files("-al", str(source), str(target))  # with owners and rights
        for folder, shared in ((".", {"base"}), ("base", TEMPLATES)):
            paths = [path for path in (source / folder).iterdir() if path.name not in shared]
            to = str(target / folder)
            cluster.copy_files("-a", "--remove-destination", *map(str, paths), to)
        _enable_checksums(own)
        yield own
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _enable_checksums(cluster: Cluster) -> None:
    """As PostgreSQL has them by default since 18, where the release can switch them on.

    Without them a page that was read is still verified, by its header alone, so what is counted is
    what the release does by default.
    """
    if not cluster.programs.has("pg_checksums"):
        return
    try:
        cluster.offline("pg_checksums", "--enable")
    except ServerError as error:
        if "already" not in str(error):
            raise CannotMeasure(
                "checksums", f"data checksums can't be switched on here: {error}"
            ) from None


def three_at_a_time(job: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
    """The job's results in the items' order.

    Counts don't mind busy processors, and two of them don't wait for the last job.
    """
    with ThreadPoolExecutor(3) as few:
        return list(few.map(job, items))
