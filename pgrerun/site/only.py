"""One experiment of a chapter, with those that it goes on from, as its notebook attempts them.

An experiment goes on from another if it is given what came of it, if it names it in `after` where
it is declared, or if that one is declared to prepare the chapter. `Chapter.attempt` leaves out all
that the environment's `PGRERUN_ONLY` doesn't name.
"""

import ast
from pathlib import Path
from typing import Any

import nbformat

from pgrerun import cells
from pgrerun.errors import ParameterError
from pgrerun.lab import sent
from pgrerun.page import narrate
from pgrerun.parameters import unknown
from pgrerun.record import runs
from pgrerun.record.verdicts import Verdict
from pgrerun.site import scoreboard


def needed(notebook: Path, name: str) -> list[str]:
    """An experiment and all that it goes on from, "module.function"; ParameterError if unknown.

    `name` may leave the module out where no other experiment has the same function's name.
    """
    found = experiments(nbformat.read(notebook, as_version=4))
    same = [one for one in found if name in (one, one.partition(".")[2])]
    if len(same) != 1:
        many = "Several experiments" if same else "No experiment"
        words = same or [*found]
        raise ParameterError(
            f"{many} of chapter {notebook.stem!r} {'have' if same else 'has'} the name"
            f" {unknown(name, words)}."
        )
    wanted, left = [], same
    while left:
        one, *left = left
        if one not in wanted:
            wanted.append(one)
            left += found.get(one, [])
    return wanted


def experiments(notebook: nbformat.NotebookNode) -> dict[str, list[str]]:
    """Experiments that a notebook attempts, in its order, and which others each goes on from."""
    known: dict[str, Any] = {}
    made: dict[str, set[str]] = {}  # experiments behind each variable
    found: dict[str, list[str]] = {}
    preparing: list[str] = []
    for statement in cells.statements(notebook):
        if cells.learn(statement, known):
            continue
        behind = {one for name in cells.names(statement) for one in made.get(name, ())}
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "chapter.attempt":
                measure = cells.value(call.args[0], known)
                name = sent.name_of(measure)
                given = {one for part in call.args[1:] for one in cells.names(part)}
                before = [e for e in found if any(e in made.get(one, ()) for one in given)]
                declared = getattr(measure, "declared", None)
                after = getattr(declared, "after", ())
                found.setdefault(name, [*preparing, *before, *after])
                if getattr(declared, "prepares", False):
                    preparing.append(name)
                behind.add(name)
        if isinstance(statement, ast.Assign):
            made |= {one: behind for target in statement.targets for one in cells.names(target)}
    return found


def verdicts(run: str, chapter: str) -> list[dict[str, str]]:
    """What a run of some experiments alone decides: claim, verdict and what was found."""
    judged = scoreboard.judgements({chapter: runs.load(run, chapter)}).values()
    return [
        {"claim": j.claim.id, "verdict": str(j.verdict), "found": narrate.evidence(j)}
        for j in judged
        if j.verdict is not Verdict.NOT_TESTABLE
    ]
