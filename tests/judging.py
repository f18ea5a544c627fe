"""What a chapter's rules make of rows that a test makes up, or changes after they were measured."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pgrerun import notebook, parameters
from pgrerun.lab.testbed import experiments_of
from pgrerun.record import claims, evidence, rows, verdicts
from pgrerun.record.database import Database

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


def changed_word(chapter: notebook.Notebook, claim: str, **changes: Change) -> str:
    """The verdict on a claim where a function has changed the rows of some of its experiments."""
    chapter.run_for(claim)
    database, rule = chapter.database, chapter.rules[claim]
    kept = {name: (database.query(f"FROM {name}"), database.units(name)) for name in changes}
    try:
        for name, change in changes.items():
            database.add("run", chapter.name, name, change(kept[name][0].copy()), kept[name][1])
        judge = verdicts.Judge(chapter.name)
        return str(evidence.judge(judge, rule, database, chapter.aside, {}).verdict)
    finally:
        for name, (frame, units) in kept.items():
            database.add("run", chapter.name, name, frame, units)


def word(
    claim: str, chapter: str, *, processors: int = 0, **tables: Iterable[Mapping[str, Any]]
) -> str:
    """The verdict on a claim, where the chapter's experiments have these rows."""
    return str(judged(claim, chapter, processors=processors, **tables).verdict)


@functools.lru_cache(maxsize=1)
def _database(chapter: str, names: frozenset[str]) -> Database:
    """A database for rows of these experiments: the cases of a test, which follow each other, put
    theirs into the place of the last one's.
    """
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
    database = _database(chapter, frozenset(tables))
    for name, found in tables.items():
        units = experiments_of(chapter)[name].units
        checked = [rows.check(name, row, units) for row in found]
        database.add("run", chapter, name, rows.frame(checked, units), units)
    rule = evidence.rules(parameters.folder(chapter))[claim]
    rule = dataclasses.replace(rule, query=query(rule.query))
    regimes = claims.ledger()[claim].regimes
    machine = {name: processors for name in regimes if name.endswith(" processors")}
    return evidence.judge(verdicts.Judge(chapter), rule, database, {}, machine)
