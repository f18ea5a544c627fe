"""Jobs in processes that are forked from one that has imported, or made, what all of them need.

That one is a module of ours in a process of its own, which `answers` asks.
"""

import json
import multiprocessing
import multiprocessing.connection
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

Job = TypeVar("Job")

_FORK = multiprocessing.get_context("fork")
_LOCK = _FORK.Lock()


def answers(module: str, asked: Any) -> Iterator[Any]:
    """What `python -m module` tells, line by line, when it finds this as JSON on standard input.

    It ends with the iterator. ChildProcessError once it has told all, if it ends with a status
    other than 0.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout
    try:
        with process.stdin as pipe:
            json.dump(asked, pipe)
        yield from map(json.loads, process.stdout)
        if status := process.wait():
            raise ChildProcessError(f"it ended with status {status}")
    finally:  # also when whoever asks is stopped
        process.terminate()
        process.wait()


def tell(answer: Any) -> None:
    """Print a line of JSON that no other process writes into."""
    with _LOCK:  # a line longer than a pipe's buffer isn't written at once
        print(json.dumps(answer), flush=True)


def run_each(
    jobs: Iterable[Job], at_once: int, run: Callable[[Job], None]
) -> Iterator[tuple[Job, int]]:
    """Run each job in a process of its own, so many at a time; each with its exit status, as it
    ends.

    Jobs are taken as processes become free. All that run end if this process gets a SIGTERM; it has
    to have no other threads, as a fork copies the calling one alone.
    """
    running: dict[Any, tuple[Job, BaseProcess]] = {}  # by what tells of their end

    def end(*_: Any) -> None:
        for _job, process in running.values():
            process.terminate()
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    waiting = iter(jobs)
    while True:
        while len(running) < at_once and (job := next(waiting, None)) is not None:
            process = _FORK.Process(target=_start, args=(run, job))
            process.start()
            running[process.sentinel] = (job, process)
        if not running:
            return
        for sentinel in multiprocessing.connection.wait(list(running)):
            job, process = running.pop(sentinel)
            process.join()
            yield job, process.exitcode or 0


def _start(run: Callable[[Job], None], job: Job) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # instead of `run_each`'s
    run(job)
