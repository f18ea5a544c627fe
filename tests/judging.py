"""What a chapter's rules make of rows that a test makes up, or changes after they were measured."""

import ast
import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pgrerun import notebook, parameters
from pgrerun.lab.testbed import Experiment, Testbed, experiments_of
from pgrerun.record import claims, evidence, rows, verdicts
from pgrerun.record.database import Database

UNTESTED = "not tested here"
Change = Callable[[pd.DataFrame], pd.DataFrame]


@contextlib.contextmanager
def opened(runs: Path, chapter: str, given: Mapping[str, Any]) -> Iterator[notebook.Notebook]:
    """A chapter with these parameters that measures into the folder `runs`; left at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGRERUN_RUNS", str(runs))
        patch.delenv(notebook.RECORD, raising=False)
        found = notebook.Notebook(chapter, parameters.chapter_parameters(chapter, given))
        try:
            yield found
        finally:
            found.leave()
            found.record.release()


def measured(bed: Testbed, wanted: Experiment, **changed: Any) -> list[dict[str, Any]]:
    """The rows of an experiment, which finds those that it has, as in a notebook."""
    found: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bed, "_rows", lambda name: found if name == wanted.name else [])
        for row in bed.measure(wanted, changed):
            found.append(row)
    return found


def changed_word(chapter: notebook.Notebook, claim: str, **changes: Change) -> str:
    """The verdict on a claim where a function has changed the rows of some of its experiments."""
    chapter.run_for(claim)
    database, rule = chapter.database, chapter.rules[claim]
    kept = {name: database.query(f"FROM {name}") for name in changes}
    units = {name: chapter.experiments[name].units for name in changes}
    try:
        for name, change in changes.items():
            database.add("run", chapter.name, name, change(kept[name].copy()), units[name])
        judge = verdicts.Judge(chapter.name)
        return str(evidence.judge(judge, rule, database, chapter.aside, {}).verdict)
    finally:
        for name, frame in kept.items():
            database.add("run", chapter.name, name, frame, units[name])


def word(
    claim: str, chapter: str, *, processors: int = 0, **tables: Iterable[Mapping[str, Any]]
) -> str:
    """The verdict on a claim, where the chapter's experiments have these rows."""
    return str(judged(claim, chapter, processors=processors, **tables).verdict)


@functools.cache
def _database(chapter: str) -> Database:
    """The documents' tables and the ledger, which take longer to load than a claim to judge."""
    return Database(chapter)


def judged(
    claim: str,
    chapter: str,
    *,
    processors: int = 0,
    query: Callable[[str], str] = str,
    **tables: Iterable[Mapping[str, Any]],
) -> verdicts.Judgement:
    """The judgement of a claim, where the chapter's experiments have these rows.

    `processors` are the machine's, of a claim that speaks of many; `query` changes what is asked,
    where that is of what is printed, which no test can make up.
    """
    database = _database(chapter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_units", {})  # without what was measured for others
        for name, found in tables.items():
            units = experiments_of(chapter)[name].units
            checked = [rows.check(name, row, units) for row in found]
            database.add("run", chapter, name, rows.frame(checked, units), units)
        rule = evidence.rules(parameters.folder(chapter))[claim]
        rule = dataclasses.replace(rule, query=query(rule.query))
        regimes = claims.ledger()[claim].regimes
        machine = {name: processors for name in regimes if name.endswith(" processors")}
        return evidence.judge(verdicts.Judge(chapter), rule, database, {}, machine)


def counted(text: str, *values: object) -> list[dict[str, Any]]:
    """Rows from a table in text: a line of names, then a line for each row.

    Two spaces or more lie between what is in a line, and `values` take the places of {0}, {1}.
    Numbers, truth values and texts in quotes are written as in Python, other texts as they are; a
    row has nothing where it has a dash.
    """
    lines = text.format(*values).strip().splitlines()
    names, *found = (re.split("  +", line.strip()) for line in lines)
    return [
        {name: _value(cell) for name, cell in zip(names, row, strict=True) if cell != "-"}
        for row in found
    ]


def _value(cell: str) -> Any:
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(cell)
    return cell


def repeated(variants: Iterable[Mapping[str, Any]], blocks: int = 5) -> list[dict[str, Any]]:
    """Rows of a comparison that finds these values in every block, or nearly.

    Numbers with a fraction were measured, and are a thousandth larger in each next block.
    """
    return [
        {
            name: value * (1 + block / 1000) if isinstance(value, float) else value
            for name, value in variant.items()
        }
        | {"block": block, "disturbed": "", "left_out": False}
        for variant in variants
        for block in range(blocks)
    ]


def timed(text: str, *values: object, blocks: int = 5) -> list[dict[str, Any]]:
    """Rows of a comparison, `repeated`, from a table in text as in `counted`."""
    return repeated(counted(text, *values), blocks)


def where(factors: Mapping[str, Any], **values: Any) -> Change:
    """A change of rows: those whose factors have these values get others in these columns."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        chosen = (frame[list(factors)] == list(factors.values())).all(axis=1)
        frame.loc[chosen, list(values)] = list(values.values())
        return frame

    return change
