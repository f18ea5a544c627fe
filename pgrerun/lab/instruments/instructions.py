"""What instructions are for: those that a workload executes, told by the program's own code.

callgrind counts how often every instruction was executed, objdump (binutils) says what it is. So
checks can be counted that are no routines but a comparison and a jump in the middle of one: a
conditional jump one side of which goes straight to an error report is an error check, and a
comparison of the first word of a structure with a node tag is the test of a node's type.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pandas as pd

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import callgrind
from pgrerun.lab.server import Cluster

COLUMNS = ["group", "kind", "function", "executed", "instructions"]
THREADED = ["group", "steps", "leading", "fetching", "instructions"]
ERROR_CHECK, TYPE_TEST, OTHER = "error check", "type test", "other"

# ereport and elog call this where the level is ERROR or worse for certain
# (src/include/utils/elog.h)
_REPORTS = ("errstart_cold", "ExceptionalCondition")
_NODE_TAGS = range(1, 1024)  # src/include/nodes/nodetags.h ends well below
_PATH = 40  # instructions that an error report's arguments take at most
_WINDOW = 6  # instructions between loading a tag and comparing it
_JUMP = re.compile(r"^\*\((%\w+)\)$")  # to where the step points that a register points to
_COMPARED = re.compile(r"^\$0x([0-9a-f]+),(\(%\w+\)|%e\w+|%r\d+d)$")
_NO_OBJDUMP = "objdump isn't installed (Debian's package is `binutils`)"


def unavailable() -> str | None:
    """Why instructions can't be told apart here; None if they can."""
    if not shutil.which("objdump"):
        return f"Instructions can't be told apart: {_NO_OBJDUMP}."
    return callgrind.unavailable()


def callers(program: Path, routines: Collection[str]) -> pd.DataFrame:
    """Calls of these routines that stand in a program's code, executed or not.

    Columns: function, file (as its debug information has it, "" without), calls. CannotMeasure
    without objdump, and where it can't read the program.
    """
    if not shutil.which("objdump"):
        raise CannotMeasure("objdump", _NO_OBJDUMP)
    call = re.compile(rf"\b(?:call|jmp) .*<(?:{'|'.join(routines)})>$")
    found, function, file = Counter[tuple[str, str]](), "", ""
    for line in _disassembled(program, "--line-numbers").splitlines():
        if line.endswith(">:"):
            function, file = line.partition("<")[2].removesuffix(">:"), ""
        elif line.startswith("/"):
            file = line.rpartition(":")[0]
        elif call.search(line):
            found[function, file] += 1
    rows = [(*key, number) for key, number in found.items()]
    return pd.DataFrame(rows, columns=["function", "file", "calls"])


def kinds(
    cluster: Cluster,
    groups: Mapping[str, Sequence[str]],
    *,
    unreported: Collection[str] = (),
) -> pd.DataFrame:
    """Instructions that groups of statements execute in the server program, by kind and function.

    As `callgrind.stacks`, but by what an instruction does. Columns: group, kind (ERROR_CHECK,
    TYPE_TEST, OTHER), function, executed (checks or tests made; instructions for OTHER),
    instructions (of a check: the jump, and the comparison before it). A type test is any comparison
    that looks like one, so their number is an upper bound. Libraries are left out. The groups
    `unreported` run, and are left out of the result. CannotMeasure without valgrind or objdump, for
    a stripped program, for other processors than x86-64, and for a program that is loaded at
    changing addresses.
    """
    counted = _counted(cluster, groups, None, unreported)
    frames = [code.told_apart(executed).assign(group=group) for group, code, executed in counted]
    return pd.concat(frames, ignore_index=True)[COLUMNS]


def threaded(
    cluster: Cluster,
    groups: Mapping[str, Sequence[str]],
    function: str,
    *,
    settings: Mapping[str, str | int] | None = None,
    unreported: Collection[str] = (),
) -> pd.DataFrame:
    """Steps that groups of statements take in a function whose code is threaded.

    Such a function has a pointer to the step under way in a register, and ends each step with a
    jump to where the next one points. Columns: group, steps (such jumps), leading (they, and the
    instructions that set the register), fetching (those that load what a step holds), instructions
    (all of the program). Otherwise as `kinds`; CannotMeasure also where the function has no such
    jumps, as a compiler may put them otherwise.
    """
    rows = []
    for group, code, executed in _counted(cluster, groups, settings, unreported):
        steps, leading, fetching = code.steps(
            {place: count for place, (name, count) in executed.items() if name == function}
        )
        if not steps:
            raise CannotMeasure("objdump", f"{function} isn't seen to jump from step to step here")
        total = sum(count for _, count in executed.values())
        rows.append((group, steps, leading, fetching, total))
    return pd.DataFrame(rows, columns=THREADED)


def _counted(
    cluster: Cluster,
    groups: Mapping[str, Sequence[str]],
    settings: Mapping[str, str | int] | None,
    unreported: Collection[str],
) -> list[tuple[str, "_Code", dict[int, tuple[str, int]]]]:
    """Each reported group, the program's code, and what of it was executed how often."""
    if reason := unavailable():
        raise CannotMeasure("callgrind" if callgrind.unavailable() else "objdump", reason)
    program = cluster._executable("postgres")
    statements, options = callgrind._separated(groups, unreported)
    names = callgrind.Names(dict)
    with callgrind.counting(cluster) as stem:
        with ThreadPoolExecutor(1) as beside:
            reading = beside.submit(_code_of, program)
            options += ["--dump-instr=yes", "--dump-line=no"]
            callgrind._run(cluster, statements, settings, stem, options)
            code = reading.result()
        return [
            (group, code, _executed(text, program.name, names))
            for group, text in callgrind._dumps(cluster, stem, groups, unreported)
        ]


def _executed(text: str, program: str, names: callgrind.Names) -> dict[int, tuple[str, int]]:
    """Address to (function, executions) for the program's own instructions (one callgrind dump with
    --dump-instr).
    """
    found: dict[int, tuple[str, int]] = {}
    address = 0
    for (where, function), _, position, cost, called in callgrind.costs(text, names):
        if position[0] in "+-":
            address += int(position)
        elif position != "*":
            address = int(position, 0)
        if called is None and where.rpartition("/")[2] == program:
            found[address] = (function, found.get(address, ("", 0))[1] + cost)
    return found


def _disassembled(program: Path, *options: str) -> str:
    """What objdump prints of a program's code. CannotMeasure where it can't read it."""
    command = ["objdump", "-d", "-w", "--no-show-raw-insn", *options, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise _unreadable(program, done.stderr.strip()[:200] or "objdump doesn't say why")
    return done.stdout


def _unreadable(program: Path, why: str) -> CannotMeasure:
    return CannotMeasure("objdump", f"the instructions of {program.name} can't be read here: {why}")


class _Code:
    def __init__(self, program: Path):
        printed = _disassembled(program)
        if "elf64-x86-64" not in printed[:300]:
            raise _unreadable(program, "they are not for x86-64")
        # "  837970:\tpush   %r12"; most are never executed, so the words are taken apart when they
        # are asked for
        self._lines = [line for line in printed.splitlines() if line[:1] == " "]
        self._at = {
            int(line[: line.index(":")], 16): number for number, line in enumerate(self._lines)
        }

    def _words(self, number: int) -> tuple[str, str]:
        """An instruction's name and operands."""
        word, _, operands = self._lines[number].partition(":\t")[2].partition(" ")
        return word, operands.strip()

    def told_apart(self, executed: Mapping[int, tuple[str, int]]) -> pd.DataFrame:
        """Executions by kind and function."""
        if not executed or sum(address in self._at for address in executed) < 0.99 * len(executed):
            raise CannotMeasure(
                "objdump", "the program is loaded at addresses that differ from those in its file"
            )
        made, cost = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for address, (function, count) in executed.items():
            kind, instructions = (
                self._kind(self._at[address]) if address in self._at else (OTHER, 1)
            )
            made[kind, function] += count
            cost[kind, function] += count * instructions
            if instructions > 1:  # the comparison before a check is met on its own as well
                made[OTHER, function] -= count * (instructions - 1)
                cost[OTHER, function] -= count * (instructions - 1)
        rows = [(*key, number, cost[key]) for key, number in made.items()]
        return pd.DataFrame(rows, columns=COLUMNS[1:])

    def steps(self, executed: Mapping[int, int]) -> tuple[int, int, int]:
        """Of a threaded function's executions by address: its steps, what leads from one to the
        next, and what loads from one.
        """
        known = [(*self._words(self._at[at]), n) for at, n in executed.items() if at in self._at]
        jumps = Counter[str]()
        for word, operands, count in known:
            if word == "jmp" and (to := _JUMP.match(operands)):
                jumps[to[1]] += count
        if not jumps:
            return 0, 0, 0
        [(pointer, taken)] = jumps.most_common(1)
        held = re.compile(rf"^-?0x[0-9a-f]+\({pointer}\),")
        leading, fetching = taken, 0
        for word, operands, count in known:
            if word != "pop" and operands.endswith(f",{pointer}"):
                leading += count
            elif word.startswith("mov") and held.match(operands):
                fetching += count
        return taken, leading, fetching

    def _kind(self, number: int) -> tuple[str, int]:
        """What the instruction is, and how many instructions are for the same purpose."""
        word, operands = self._words(number)
        if not word.startswith("j") or word.startswith("jmp"):
            return OTHER, 1
        before, compared = self._words(number - 1)
        pair = 2 if before.startswith(("cmp", "test", "bt")) else 1
        address = re.match(r"[0-9a-f]+", operands)
        target = self._at.get(int(address[0], 16)) if address else None
        if any(side is not None and self._reports(side) for side in (number + 1, target)):
            return ERROR_CHECK, pair
        return (
            (TYPE_TEST, 2)
            if before in ("cmp", "cmpl") and self._first_word(number - 1, compared)
            else (OTHER, 1)
        )

    def _first_word(self, number: int, compared: str) -> bool:
        """Whether a comparison is one of a structure's first word with what may be a node tag."""
        found = _COMPARED.match(compared)
        if not found or int(found[1], 16) not in _NODE_TAGS:
            return False
        if found[2].startswith("("):
            return True
        for word, operands in map(self._words, range(number - 1, max(0, number - _WINDOW) - 1, -1)):
            if operands.endswith(f",{found[2]}"):  # what the register holds comes from here
                return word == "mov" and re.match(r"^\(%\w+\),", operands) is not None
        return False

    def _reports(self, number: int) -> bool:
        """Whether the code from here goes straight to an error report."""
        for _ in range(_PATH):
            word, operands = self._words(number)
            if word == "call":
                return any(f"<{name}>" in operands for name in _REPORTS)
            if word == "jmp" and (to := re.match(r"[0-9a-f]+", operands)):
                number = self._at.get(int(to[0], 16), -1)
                if number < 0:
                    return False
                continue
            if word.startswith(("j", "ret", "ud2")):
                return False
            number += 1
        return False


_code_of = cache(_Code)  # objdump takes some seconds, so once is enough
