"""Instruction counts by function: `postgres --single` under valgrind's callgrind.

Counts, unlike samples and times, are the same in every run to within a fraction of a
percent, so a difference of few instructions per tuple shows. They say nothing of
caches and waiting: that is what `perf.py` and the plain timings are for.
"""

import shutil
import subprocess
import uuid
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pgrerun.errors import CannotMeasure, RerunError

# one call per statement read; it is static, so a stripped program doesn't have the name
_STATEMENT = "exec_simple_query"
COLUMNS = ["statement", "function", "file", "object", "inclusive", "exclusive", "calls"]


def unavailable() -> str | None:
    """Why instructions can't be counted here; None if they can."""
    if not shutil.which("valgrind"):
        return "Instructions can't be counted: valgrind isn't installed (Debian's package is `valgrind`)."
    return None


def require() -> None:
    """Raise CannotMeasure unless valgrind is installed."""
    if reason := unavailable():
        raise CannotMeasure("callgrind", reason)


def profile(cluster, statements: Sequence[str], *, settings: dict | None = None) -> pd.DataFrame:
    """Instructions that each statement executes, by function.

    `cluster` is an own, stopped Cluster; the statements run in one single-user
    backend, in order, so the first of a kind pays for filling catalog caches:
    list it twice and read the second. Columns: statement (from 0), function, file
    (None if unknown), object (name of program or library), inclusive and exclusive
    (instructions; of recursive functions, inclusive is an upper bound), calls.
    CannotMeasure without valgrind or for a stripped program, RerunError if a
    statement fails or the cluster is running.
    """
    require()
    if cluster.pids():
        raise RerunError("A single-user backend needs its cluster stopped: call stop() before counting instructions.")
    stem = f"callgrind-{uuid.uuid4().hex[:12]}"
    command = [
        "valgrind", "--tool=callgrind", "--quiet",
        f"--toggle-collect={_STATEMENT}", f"--dump-after={_STATEMENT}",
        f"--callgrind-out-file={cluster.scratch / stem}",
        str(cluster._executable("postgres")), "--single", "-D", str(cluster.data_directory),
    ]  # fmt: skip
    for name, value in (settings or {}).items():
        command += ["-c", f"{name}={value}"]
    # single-user mode ends a statement at the newline
    lines = "".join(" ".join(statement.split()) + "\n" for statement in statements)
    try:
        done = subprocess.run(
            [*command, "postgres"], input=lines, capture_output=True, text=True, **cluster._server_process()
        )
        _raise_if_failed(done)
        names: dict[str, dict[str, str]] = {"ob": {}, "fl": {}, "fn": {}}
        parts = [cluster.scratch / f"{stem}.{number + 1}" for number in range(len(statements))]
        if not all(part.exists() for part in parts):
            raise CannotMeasure(
                "callgrind",
                f"Instructions can't be told apart by statement: {cluster.name} is stripped of its symbols. "
                "The bundled release isn't.",
            )
        frames = [_read(part.read_text(errors="replace"), names).assign(statement=i) for i, part in enumerate(parts)]
        return pd.concat(frames, ignore_index=True)[COLUMNS]
    finally:
        for path in cluster.scratch.glob(f"{stem}*"):
            path.unlink(missing_ok=True)


def _raise_if_failed(done) -> None:
    errors = [line for line in done.stderr.splitlines() if "ERROR:" in line or "FATAL:" in line]
    if errors:
        raise RerunError(f"A statement failed while its instructions were counted: {errors[0]}")
    if done.returncode:
        raise RerunError(f"postgres under valgrind ended with status {done.returncode}: {done.stderr.strip()[-500:]}")


def _read(text: str, names: dict[str, dict[str, str]]) -> pd.DataFrame:
    """One callgrind dump (valgrind manual, "Callgrind Format Specification") by function.

    `names` holds what the format's (number) abbreviations stand for.
    """
    exclusive, inclusive, calls = defaultdict(int), defaultdict(int), defaultdict(int)
    files: dict[tuple, str] = {}
    here = callee = None
    program = callee_program = file = ""
    pending = None  # calls whose cost the next line gives; 0 for one that began in an earlier part
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key in ("ob", "cob"):
            callee_program = _name(names["ob"], value)
            program = callee_program if key == "ob" else program
        elif equals and key in ("fl", "fi", "fe", "cfi", "cfl"):
            name = _name(names["fl"], value)
            file = name if key == "fl" else file
        elif equals and key == "fn":
            here = (program, _name(names["fn"], value))
            files.setdefault(here, file)
            callee_program = program
        elif equals and key == "cfn":
            callee = (callee_program, _name(names["fn"], value))
        elif equals and key == "calls":
            pending = int(value.split()[0])
        elif line[:1] in set("0123456789+-*") and here:
            cost = int(line.split()[1])
            if pending is not None:
                calls[callee] += pending
                inclusive[here] += 0 if callee == here else cost
                pending, callee_program = None, program
            else:
                exclusive[here] += cost
    total = sum(exclusive.values())
    rows = [
        {
            "function": function,
            "file": None if files[program, function] in ("", "???") else files[program, function],
            "object": Path(program).name,
            "inclusive": min(total, exclusive[program, function] + inclusive[program, function]),
            "exclusive": exclusive[program, function],
            "calls": calls[program, function],
        }
        for program, function in files
    ]
    frame = pd.DataFrame(rows, columns=[name for name in COLUMNS if name != "statement"])
    return frame.sort_values("exclusive", ascending=False, ignore_index=True)


def _name(known: dict[str, str], value: str) -> str:
    """A name, spelt out or abbreviated: "(3) ExecScan" defines what "(3)" means later."""
    if not value.startswith("("):
        return value
    number, _, name = value.partition(")")
    if name.strip():
        known[number] = name.strip()
    return known[number]
