"""Instruction counts by function: `postgres --single` under valgrind's callgrind.

Counts, unlike samples and times, are the same in every run to within a fraction of a
percent, so a difference of few instructions per tuple shows. They say nothing of
caches and waiting: that is what `perf.py` and the plain timings are for.
"""

import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from pgrerun.errors import CannotMeasure, RerunError, ServerError
from pgrerun.lab import statement_log
from pgrerun.lab.instruments import single_user
from pgrerun.lab.server import Cluster, private

# one call per statement read; it is static, so a stripped program doesn't have the name
_STATEMENT = "exec_simple_query"
# called once for each statement read, from another file, so that no compiler puts it elsewhere
_PARSE = "raw_parser"
# called by DISCARD and by nothing else: a statement that separates one group from the next
_SEPARATOR, _SEPARATING = "DISCARD PLANS", "DiscardCommand"
# the same for a group that nobody asks for: told apart by their callers, the routines of a first
# command of each kind make a long dump
_FORGET, _FORGETTING = "UNLISTEN *", "Async_UnlistenAll"
# run by the backend itself, whose process it names: valgrind's own command, limited in time. What
# the backend sends is read first, since a pipe that nobody reads any more is an error to it.
_SWITCH = (
    "COPY (SELECT 1) TO PROGRAM"
    " 'cat >/dev/null; exec timeout 60 {vgdb} --pid=$PPID instrumentation on'"
)
# what the (number) abbreviations of a dump stand for, by kind of name: "ob", "fl", "fn"
Names = defaultdict[str, dict[str, str]]
_Place = tuple[str, str]  # a program or library, and a function in it
COLUMNS = ["statement", "function", "file", "object", "inclusive", "exclusive", "calls"]
STACKS = ["group", "stack", "function", "file", "object", "exclusive", "calls"]


class NotSwitchedOn(RerunError):
    """callgrind can't be told to begin: `vgdb` is missing, or processes mustn't be traced here."""


def unavailable() -> str | None:
    """Why instructions can't be counted here; None if they can."""
    if not shutil.which("valgrind"):
        return (
            "Instructions can't be counted: valgrind isn't installed (Debian's package is"
            " `valgrind`)."
        )
    return None


def require() -> None:
    """Raise CannotMeasure unless valgrind is installed."""
    if reason := unavailable():
        raise CannotMeasure("callgrind", reason)


@contextmanager
def counting(cluster: Cluster) -> Iterator[Path]:
    """Where callgrind puts its dumps, numbered; they are gone after the block.

    CannotMeasure without valgrind, RerunError if the cluster is running.
    """
    require()
    if cluster.pids():
        raise RerunError(
            "A single-user backend needs its cluster stopped: call stop() before counting"
            " instructions."
        )
    with private.passing(cluster.scratch, "callgrind") as stem:
        yield stem


def profile(
    cluster: Cluster,
    statements: Sequence[str],
    *,
    settings: Mapping[str, str | int] | None = None,
) -> pd.DataFrame:
    """Instructions that each statement executes, by function.

    `cluster` is an own, stopped Cluster; the statements run in one single-user
    backend, in order, so the first of a kind pays for filling catalog caches:
    list it twice and read the second. Columns: statement (from 0), function, file
    (None if unknown), object (name of program or library), inclusive and exclusive
    (instructions; of recursive functions, inclusive is an upper bound), calls.
    CannotMeasure without valgrind or for a stripped program, RerunError if a
    statement fails or the cluster is running.
    """
    with counting(cluster) as stem:
        _run(cluster, statements, settings, stem, [f"--dump-after={_STATEMENT}"])
        names = Names(dict)
        frames = [
            read_dump(_text(cluster, stem, number + 1), names).assign(statement=number)
            for number in range(len(statements))
        ]
        return pd.concat(frames, ignore_index=True)[COLUMNS]


def repeated(
    cluster: Cluster,
    first: Sequence[str],
    statement: str,
    times: int = 8,
    callers: Sequence[str] = (),
) -> pd.DataFrame:
    """What one execution of a statement takes by function, of `times` after each other.

    For any build: a compiler may have put into its caller what `profile` looks for. It counts from
    the parsing of one execution to that of the next, with all that a backend does in between.
    `first` are statements that prepare it, in the same backend. Functions that `callers` names are
    told apart by who calls them, "callee'caller". Columns as of `profile`, without statement.
    """
    statements = [*first, *[statement] * times]
    settings = {"search_path": cluster.schema}
    with counting(cluster) as stem:
        options = [f"--dump-before={_PARSE}", *(f"--separate-callers1={one}" for one in callers)]
        _run(cluster, statements, settings, stem, options, collecting="")
        # the first is of the start
        return read_dump(_text(cluster, stem, len(statements)))


def by_command(
    cluster: Cluster, commands: Mapping[str, str], first: str
) -> dict[str, pd.DataFrame]:
    """Profiles of single commands, each planned once before it is counted, after a first one.

    They run in two backends, each on a copy of the cluster's files. The cluster must be running and
    is stopped meanwhile.
    """
    names = list(commands)

    def count(half: list[str]) -> dict[str, pd.DataFrame]:
        statements = [first]
        for name in half:
            statements += [f"EXPLAIN {commands[name]}", commands[name]]
        with single_user.copied(cluster) as own:
            found = profile(own, statements)
        by_statement = dict(iter(found.groupby("statement")))
        return {name: by_statement[2 * number + 2] for number, name in enumerate(half)}

    with single_user.stopped(cluster):
        halves = single_user.three_at_a_time(count, (names[::2], names[1::2]))
    return {name: found for half in halves for name, found in half.items()}


def executed(
    cluster: Cluster, statements: Mapping[Hashable, tuple[Mapping[str, str | int], str]]
) -> pd.Series:
    """Instructions of statements, each under settings of its own, by their names.

    A statement's second execution counts, as the first fills caches of its session. The server is
    stopped meanwhile, and started again. CannotMeasure as `profile`.
    """
    require()
    lines: list[str] = []
    second: dict[int, Hashable] = {}
    for name, (settings, statement) in statements.items():
        lines += [f"SET {setting} = '{value}'" for setting, value in settings.items()]
        lines += [statement, statement]
        second[len(lines) - 1] = name
    with single_user.stopped(cluster):
        found = profile(cluster, lines, settings={"search_path": cluster.schema})
    total = found.groupby("statement")["exclusive"].sum()
    return pd.Series({name: total[number] for number, name in second.items()})


def stacks(
    cluster: Cluster,
    groups: Mapping[str, Sequence[str]],
    *,
    callers: int = 48,
    unreported: Collection[str] = (),
    late: bool = False,
) -> pd.DataFrame:
    """Instructions by function and by who called it, for groups of statements.

    As `profile`, but a group's statements are added up, so that a group may be long, and every
    function is told apart by up to `callers` of its callers. The groups run in order in one
    backend, so an earlier group can warm up a later one. Columns: group, stack (function names from
    the outermost to the function itself, joined by ";"), function, file (None if unknown), object,
    exclusive (instructions), calls. A group contains the instructions of one DISCARD PLANS, which
    ends it. The groups `unreported` run, and are left out of the result. With `late` the first
    group, an unreported one, runs before callgrind begins, which saves time: first commands are
    dear to follow through all their callers (jumps through the linkage table aren't counted then,
    some parts in a thousand). NotSwitchedOn if that can't be done here. CannotMeasure without
    valgrind or for a stripped program, RerunError if a statement fails or the cluster is running.
    """
    statements, options = _separated(groups, unreported)
    options += [f"--separate-callers={callers}", "--separate-recs=1"]
    if late:
        statements.insert(
            statements.index(_FORGET), _SWITCH.format(vgdb=shutil.which("vgdb") or "vgdb")
        )
        options += ["--instr-atstart=no"]
    with counting(cluster) as stem:
        _run(cluster, statements, None, stem, options)
        names = Names(dict)
        frames = [
            stacked(read_dump(text, names), group)
            for group, text in _dumps(cluster, stem, groups, unreported)
        ]
        return pd.concat(frames, ignore_index=True)[STACKS]


def _separated(
    groups: Mapping[str, Sequence[str]], unreported: Collection[str]
) -> tuple[list[str], list[str]]:
    """The groups' statements, each group with the one that ends it, and the options that make a
    dump of each reported group.
    """
    ends = {name: _FORGET if name in unreported else _SEPARATOR for name in groups}
    statements = [statement for name, group in groups.items() for statement in [*group, ends[name]]]
    return statements, [f"--dump-before={_SEPARATING}", f"--zero-before={_FORGETTING}"]


def _dumps(
    cluster: Cluster, stem: Path, groups: Mapping[str, Sequence[str]], unreported: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Each reported group and the text of its dump, which explains its own abbreviations.

    CannotMeasure for a stripped program.
    """
    for number, name in enumerate((name for name in groups if name not in unreported), start=1):
        yield name, _text(cluster, stem, number)


def _text(cluster: Cluster, stem: Path, number: int) -> str:
    try:
        with open(private.opened(f"{stem}.{number}"), errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        raise CannotMeasure(
            "callgrind",
            f"Instructions can't be told apart by statement: {cluster.name} is stripped of its"
            " symbols. The bundled release isn't.",
        ) from None


def stacked(frame: pd.DataFrame, group: str) -> pd.DataFrame:
    """Callgrind's names of separated functions, "callee'caller'caller's caller", as stacks.

    A number in between counts a recursion and is no name.
    """
    names = [[part for part in name.split("'") if not part.isdigit()] for name in frame["function"]]
    stacks = [";".join(reversed(parts)) for parts in names]
    return frame.assign(group=group, stack=stacks, function=[parts[0] for parts in names])


def _run(
    cluster: Cluster,
    statements: Sequence[str],
    settings: Mapping[str, str | int] | None,
    out: Path,
    options: Sequence[str],
    collecting: str = _STATEMENT,
) -> None:
    """Run statements in a single-user backend under callgrind. RerunError if one fails.

    Without fsync (-F), which is waiting and the kernel's work: neither is counted, and the cluster
    is a throwaway one.
    """
    valgrind = [
        "valgrind",
        "--tool=callgrind",
        "--quiet",
        *([f"--toggle-collect={collecting}"] if collecting else []),
        *options,
        f"--callgrind-out-file={out}",
    ]
    given = [word for name, value in (settings or {}).items() for word in ("-c", f"{name}={value}")]
    # single-user mode ends a statement at the newline
    if any("--" in line for one in statements for line in one.strip().splitlines()[:-1]):
        raise ValueError("a comment would swallow the lines after it: a backend is given one")
    for statement in statements:
        if not statement.startswith(_SWITCH.partition("{")[0]):  # it names where a program is
            statement_log.log_statement(statement)
    lines = "".join(" ".join(statement.split()) + "\n" for statement in statements)
    done = cluster.single_user("-F", *given, under=valgrind, input=lines, capture_output=True)
    errors = [line for line in done.stderr.splitlines() if "ERROR:" in line or "FATAL:" in line]
    if errors and "instrumentation on" in errors[0]:
        raise NotSwitchedOn(
            f"callgrind can't be switched on in a process that runs already: {errors[0]}"
            f" {done.stderr.strip()[-500:]}"
        )
    if errors:
        raise ServerError(f"A statement failed while its instructions were counted: {errors[0]}")
    if done.returncode:
        raise RerunError(
            f"postgres under valgrind ended with status {done.returncode}:"
            f" {done.stderr.strip()[-500:]}"
        )


def costs(
    text: str, names: Names
) -> Iterator[tuple[_Place, str, str, int, tuple[_Place, int] | None]]:
    """The costs in a callgrind dump (valgrind manual, "Callgrind Format Specification").

    Each with its function, the function's file, and the position; of a call also who is called and
    how often, 0 times where that began in an earlier part. `names` is shared by the dumps of one
    run, of which later ones use what earlier ones define.
    """
    here = callee = called = None
    program = callee_program = file = ""
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
            callee_program = program
        elif equals and key == "cfn":
            callee = (callee_program, _name(names["fn"], value))
        elif equals and key == "calls" and callee:
            called = callee, int(value.split()[0])  # the next line is what the call cost
        elif line[:1] in set("0123456789+-*") and here:
            position, cost = line.split()[:2]
            yield here, file, position, int(cost), called
            if called:
                called, callee_program = None, program


def read_dump(text: str, names: Names | None = None) -> pd.DataFrame:
    """One callgrind dump by function; for `names` see `costs`."""
    exclusive, inclusive, calls = Counter[_Place](), Counter[_Place](), Counter[_Place]()
    files: dict[_Place, str] = {}
    for here, file, _, cost, called in costs(text, Names(dict) if names is None else names):
        files.setdefault(here, file)
        if called is None:
            exclusive[here] += cost
        else:
            callee, times = called
            calls[callee] += times
            inclusive[here] += 0 if callee == here else cost
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
