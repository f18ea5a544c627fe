"""Where the CPU time goes: samples of the server's processes taken by perf.

The CPU clock is sampled, not hardware events, which virtual machines often lack.
Shares of few samples are rough: n samples leave a standard error of sqrt(p(1-p)/n).
For exact counts of instructions see `callgrind.py`.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path

import pandas as pd

from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.server.private import PrivateDirectory, base_directory

COLUMNS = ["comm", "dso", "symbol", "samples", "share"]
# Else perf goes through the kernel's BPF programs as it ends, for half a second.
# --no-buildid-cache: it copies every program that is sampled into the user's home, to stay there.
RECORD = ("record", "--no-bpf-event", "--no-buildid-cache")


@lru_cache
def unavailable() -> str | None:
    """Why processes can't be sampled here; None if they can. Tries it once."""
    if not shutil.which("perf"):
        return (
            "Processes can't be sampled: perf isn't installed (Debian's package is `linux-perf`)."
        )
    with PrivateDirectory(base_directory()) as place:
        done = perf(*RECORD, "-e", "cpu-clock", "-o", place.path / "data", "--", "true")
    if done.returncode:
        return (
            "Processes can't be sampled: perf is installed but refuses"
            f" ({done.stderr.strip()[:300]}). It needs a matching kernel and"
            " /proc/sys/kernel/perf_event_paranoid of at most 2."
        )
    return None


def require(borrowed: bool = False) -> None:
    """Raise CannotMeasure unless perf works here, and on a server that isn't `borrowed`."""
    if reason := unavailable():
        raise CannotMeasure("perf", reason)
    if borrowed:
        raise CannotMeasure(
            "processes",
            "perf needs the process ids of a server's backends, and this server isn't ours to look"
            " into",
        )


def sample(pids: Iterable[int], seconds: float, *, frequency: int = 999) -> pd.DataFrame:
    """Sample processes for some seconds while something else keeps them busy.

    Columns: comm (process name), dso (program, library or "[kernel.kallsyms]"),
    symbol, samples, share (of all samples, 0 to 1); most samples first. Empty if
    the processes were idle. CannotMeasure without perf, ServerError if they are gone.
    """
    require()
    listed = ",".join(map(str, pids))
    with PrivateDirectory(base_directory()) as place:
        data = place.path / "data"
        what = ("-e", "cpu-clock", "-F", frequency, "-p", listed)
        done = perf(*RECORD, *what, "-o", data, "--", "sleep", seconds)
        if done.returncode or not data.exists():
            raise ServerError(
                f"The processes {listed} can't be sampled: {done.stderr.strip()[-300:]}"
            )
        # one line a function, its fields separated by bars, without call chains
        shape = ("--stdio", "-q", "-t", "|", "-n", "--no-children", "-g", "none")
        report = perf("report", "-i", data, "--sort", "comm,dso,symbol", *shape)
    return read_samples(report.stdout)


@contextmanager
def attached(
    pid: int, data: Path, *options: str
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Attach perf to a process, and to what it starts.

    Gives a function whose context is recorded, and nothing else is.

    To come up takes perf longer than many a measurement; attached, with its events off, it costs
    nothing that can be measured. `options` name the event and its rate, e.g. "-e", "cpu-clock",
    "-F", "99"; `data` is perf's file, complete afterwards. CannotMeasure if perf can't.
    """
    require()
    commands, ours = os.pipe()
    said, theirs = os.pipe()

    def told(command: bytes) -> bool:
        os.write(ours, command + b"\n")
        return os.read(said, 16).startswith(b"ack")  # nothing where perf has ended

    @contextmanager
    def counting() -> Iterator[None]:
        if not told(b"enable"):
            raise ServerError(f"perf, which recorded process {pid}, has ended.")
        try:
            yield
        finally:
            told(b"disable")

    control = f"fd:{commands},{theirs}"
    command = ["perf", *RECORD, "--no-buildid", *options, "-D", "-1", "--control", control]
    try:
        with subprocess.Popen(
            [*command, "-p", str(pid), "-o", str(data)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(commands, theirs),
        ) as recorder:
            os.close(theirs)  # so that its end ends what is read from it
            if not told(b"disable"):
                _, said_of_it = recorder.communicate()
                raise CannotMeasure(
                    "perf", f"perf can't follow process {pid} ({said_of_it.strip()[-300:]})"
                )
            try:
                yield counting
            finally:
                recorder.terminate()
                recorder.communicate()  # it says a word of farewell before its file is complete
    finally:
        for end in (commands, ours, said):
            os.close(end)


def perf(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run perf to its end; its exit status is the caller's to judge."""
    return subprocess.run(
        ["perf", *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def read_samples(report: str) -> pd.DataFrame:
    """perf's report with "|" between fields: overhead, samples, comm, dso, symbol."""
    rows = []
    for line in report.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) >= 5 and fields[1].isdigit():
            _, samples, comm, dso, symbol, *_ = fields  # some releases append columns for branches
            # "[.] ExecScan" is user space, "[k] ..." the kernel
            rows.append(
                {
                    "comm": comm,
                    "dso": dso,
                    "symbol": symbol.partition("] ")[2] or symbol,
                    "samples": int(samples),
                }
            )
    frame = pd.DataFrame(rows, columns=COLUMNS[:-1])
    frame["share"] = (
        frame["samples"] / frame["samples"].sum() if len(frame) else pd.Series(dtype=float)
    )
    return frame.sort_values("samples", ascending=False, ignore_index=True)
