"""The front page's findings and the advice by setting: all of it rests on the record."""

import re
import tomllib
from pathlib import Path

import pytest

from pgrerun import parameters
from pgrerun.lab.statements import Statements
from pgrerun.lab.testbed import experiments_of
from pgrerun.page import declared
from pgrerun.record import claims, evidence, runs
from pgrerun.record.database import Database
from pgrerun.record.verdicts import Judgement
from pgrerun.site import advice

ROOT = Path(__file__).resolve().parent.parent
FILES = [ROOT / "book" / name for name in ("findings.toml", "settings.toml")]
DATABASE = Database()
ENTRIES = [entry for file in FILES for entry in advice.entries(file).values()]


# What a reader is given to ask a server of their own.
FOR_READERS = re.findall(r"```sql\n(.*?)```", (ROOT / "book/what-to-do.md").read_text(), re.DOTALL)
FOR_READERS += [
    Statements(file.parent).text(f"{file.stem}.{name}")
    for file in sorted((ROOT / "pgrerun/chapters").glob("*/sql/*.sql"))
    for name in re.findall(r"^-- name: (\w+_of_yours)$", file.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize("statement", FOR_READERS)
def test_what_readers_are_given_to_ask_their_server_runs(cluster, statement):
    with cluster.connect() as connection:
        connection.execute(statement)


@pytest.fixture(scope="module")
def told():
    record = runs.load("published", "uuid_keys")
    judged = {one.claim.id: one for one in map(Judgement.from_dict, record.verdicts) if one}
    return advice.Teller({"uuid_keys": record}, judged)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_sentence_is_a_finding_and_each_number_of_an_experiment(entry):
    for text in entry.findings:
        chapter, _, name = text.partition("/")
        known = declared.findings_of(parameters.folder(chapter)).entries
        assert name in known, f"{chapter} has no sentence {name}"
    for chapter, expression in entry.references():
        if expression in claims.ledger() or f"{chapter}/{expression}" in entry.findings:
            continue
        asked = evidence.experiments_in(expression, DATABASE)
        assert asked and asked <= set(experiments_of(chapter))


def test_what_is_advised_rests_on_a_fact_of_the_record_and_stands_once_on_the_page():
    assert all(one.holds_if and bool(one.title) == bool(one.question) for one in ENTRIES)
    page = (ROOT / "book" / "what-to-do.md").read_text("utf-8")
    settings = tomllib.loads(FILES[1].read_text("utf-8"))
    assert {page.count(f"```{{advice}} {name}\n") for name in settings} == {1}


def test_a_fact_that_fails_takes_title_and_advice_along(told):
    size = "uuid_keys/insert.index_pages[keys = 'random']"
    given = {
        "name": "keys",
        "title": "Random keys are dear",
        "question": "Are random keys dear?",
        "findings": ["uuid_keys/uuidkeys-001"],
        "so": "make them ascend.",
        "bars": [
            {"label": key, "value": f"{size[:-9]}'{key}']"} for key in ("random", "sequential")
        ],
    }
    yes = told.told(advice.Entry(**given, holds_if=[f"{size} > 1"]))
    no = told.told(advice.Entry(**given, holds_if=[f"{size} < 1"]))
    assert (yes.title, yes.so) == ("Random keys are dear", "make them ascend.")
    assert (no.title, no.so) == ("Are random keys dear?", "")
    assert [share for _, _, share in yes.bars][0] == 1 > yes.bars[1][2] > 0
    # and without the rows there is nothing to tell
    without = advice.Teller(told.records, {})
    assert without.told(advice.Entry(**given, holds_if=[f"{size} > 1"])) is None
