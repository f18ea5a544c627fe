"""What belongs to what: of each claim the experiments, the rule, the chart, the sentence and the
place where the notebook judges it; made of the chapters' own declarations.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from pgrerun import parameters
from pgrerun.errors import ParameterError
from pgrerun.lab.testbed import experiments_of
from pgrerun.page import declared
from pgrerun.record import claims, evidence
from pgrerun.record.database import Database

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


@dataclass(frozen=True)
class Chain:
    """The chain from a claim to its word.

    `experiments` are those whose rows its rule looks at, `charts` those that show rows of one of
    them, `sentences` are outcomes that findings.toml has a sentence for, `section` is the heading
    below which the notebook judges it.
    """

    claim: claims.Claim
    experiments: tuple[str, ...]
    rule: str
    charts: tuple[str, ...]
    sentences: tuple[str, ...]
    section: str


def chains(chapter: str) -> Iterator[Chain]:
    """The chain of every claim of a chapter."""
    folder = parameters.folder(chapter)
    rules, drawn = evidence.rules(folder), declared.charts_of(folder)
    told = declared.findings_of(folder).entries
    with Database(chapter) as database:
        shows = {name: database.tables_in(one.query) for name, one in drawn.items() if one.query}
        for claim in claims.ledger().values():
            if claim.chapter != chapter:
                continue
            rule = rules.get(claim.id)
            asked = evidence.tables_of(rule, database) if rule else set()
            yield Chain(
                claim,
                tuple(name for name in experiments_of(chapter) if name in asked),
                rule.text() if rule else "",
                tuple(name for name, tables in shows.items() if tables & asked),
                tuple(word for word in told.get(claim.id, {}) if word != "values"),
                section_of(chapter, claim.id),
            )


def chain(claim: str) -> Chain:
    """The chain of one claim; ParameterError for one that isn't in the ledger."""
    known = claims.ledger()
    if claim not in known:
        raise ParameterError(f"There is no claim {parameters.unknown(claim, list(known))}.")
    return next(one for one in chains(known[claim].chapter) if one.claim.id == claim)


def claims_of(chapter: str, experiments: Collection[str]) -> list[str]:
    """The claims whose rules look at rows of one of these experiments."""
    asked = set(experiments)
    return [one.claim.id for one in chains(chapter) if asked.intersection(one.experiments)]


def section_of(chapter: str, claim: str) -> str:
    """The heading below which the chapter's notebook judges a claim; "" where it doesn't."""
    heading = ""
    for cell in nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4).cells:
        for line in cell.source.splitlines():
            if cell.cell_type == "markdown" and line.startswith("#"):
                heading = line.lstrip("# ")
            elif cell.cell_type == "code" and f'"{claim}"' in line:
                return heading
    return ""
