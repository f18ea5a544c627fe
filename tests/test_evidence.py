"""Expressions and queries over rows, and what they make of claims."""

import pandas as pd
import pytest

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.record import evidence, rows, verdicts
from pgrerun.record.database import Database, NotMeasured
from pgrerun.record.evidence import Rule, evaluate

UNITS = {"pages": "pages", "tps": "transactions/s"}
CLAIM = "uuidkeys-001"


@pytest.fixture
def database():
    counted = [{"keys": "a", "pages": 10}, {"keys": "b", "pages": 30}]
    repeated = [
        {
            "keys": key,
            "tps": value * (1 + 0.01 * ((7 * block) % 5)),
            "comparison": 0,
            "block": block,
            "looks": "7,15",
            "disturbed": "",
            "left_out": False,
        }
        for block in range(15)
        for key, value in (("a", 100.0), ("b", 250.0))
    ]
    with Database("uuid_keys") as found:
        for name, table in (("sizes", counted), ("speed", repeated)):
            found.add("run", "uuid_keys", name, rows.frame(table, UNITS), UNITS)
        yield found


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sizes.pages[keys = 'b'] / sizes.pages[keys = 'a']", 3),
        ("sum(sizes.pages) - 2 * 5", 30),
        ("max(sizes.pages)", 30),
        ("geomean(sizes.pages)", 300**0.5),
        ("printed.hot_setup.fillfactor.value", 90),
    ],
)
def test_what_was_counted_once_or_printed_is_exact(database, expression, value):
    found = evaluate(database, expression)
    assert found.exact and found.estimate == pytest.approx(value)


def test_what_was_repeated_is_paired_by_block_and_corrected_for_looks(database):
    found = evaluate(database, "speed.tps[keys = 'b'] / speed.tps[keys = 'a']")
    assert found.estimate == pytest.approx(2.5) and found.n == 15 and found.confidence == 0.95
    many = evaluate(database, "geomean(speed.tps) / speed.tps[keys = 'a']")
    assert many.estimate == pytest.approx(2.5**0.5) and many.n == 15
    one = evaluate(database, "speed.tps[keys = 'a']")
    assert "corrected for looks" in one.method and one.low < one.estimate < one.high


@pytest.mark.parametrize(
    ("expression", "fact"),
    [
        ("sizes.pages[keys = 'b'] > sizes.pages[keys = 'a']", True),
        ("sizes.pages[keys = 'b'] == 31", False),
        ("speed.tps[keys = 'b'] / speed.tps[keys = 'a'] > 2", True),
        ("speed.tps[keys = 'a'] < 90", False),
        ("speed.tps[keys = 'a'] > 102", None),
        ("about(sizes.pages[keys = 'a'], 10.2, 0.05)", True),
        ("every(speed.tps[keys = 'b'] > 200, about(sizes.pages[keys = 'a'], 10, 0.05))", True),
        ("every(speed.tps[keys = 'b'] > 200, speed.tps[keys = 'a'] > 102)", None),
        ("every(speed.tps[keys = 'a'] > 102, speed.tps[keys = 'b'] < 200)", False),
        ("some(speed.tps[keys = 'a'] > 102, speed.tps[keys = 'b'] > 200)", True),
        ("some(speed.tps[keys = 'a'] > 102, speed.tps[keys = 'b'] < 200)", None),
        ("some(speed.tps[keys = 'a'] < 90, speed.tps[keys = 'b'] < 200)", False),
        ("alike(speed.tps[keys = 'b'] > 200, speed.tps[keys = 'a'] > 90)", True),
        ("alike(speed.tps[keys = 'b'] < 200, speed.tps[keys = 'a'] < 90)", False),
        ("alike(speed.tps[keys = 'b'] < 200, speed.tps[keys = 'a'] > 90)", None),
        ("alike(speed.tps[keys = 'b'] > 200, speed.tps[keys = 'a'] > 102)", None),
        ("every(alike(1 > 0, 2 > 0), alike(1 < 0, 2 < 0), alike(1 > 0, 2 < 0))", False),
        ("every(alike(1 > 0, 2 > 0), alike(1 > 0, 2 < 0))", None),
        ("some(speed.tps[keys = 'b'] > 200, None)", True),
        ("some(speed.tps[keys = 'b'] < 200, None)", None),
        ("every(speed.tps[keys = 'b'] > 200, None)", None),
        ("every(speed.tps[keys = 'b'] < 200, None)", False),
    ],
)
def test_comparisons_are_facts_and_open_where_the_interval_cannot_tell(database, expression, fact):
    assert evaluate(database, expression) is fact


@pytest.mark.parametrize(
    "expression",
    [
        "sizes.pages",
        "sizes.pages[keys = 'c']",
        "sizes.pages[keys = 'a'] +",
        "open('x')",
        "speed.tps",
        "every(sizes.pages[keys = 'a'])",
    ],
)
def test_an_expression_that_says_nothing_definite_is_refused(database, expression):
    with pytest.raises(BookError):
        evaluate(database, expression)


def test_rows_that_are_not_there_are_named(database):
    with pytest.raises(NotMeasured) as missing:
        evaluate(database, "elsewhere.pages")
    assert missing.value.table == "elsewhere"


def judged(database, rule, aside=None):
    judge = verdicts.Judge("uuid_keys")
    return evidence.judge(judge, rule, database, aside or {}, {})


@pytest.mark.parametrize(
    "expression, word",
    [
        ("sizes.pages[keys = 'b'] / sizes.pages[keys = 'a']", "holds"),
        ("sizes.pages[keys = 'a'] / sizes.pages[keys = 'b']", "reversed"),
        ("sizes.pages[keys = 'a'] / sizes.pages[keys = 'a']", None),
    ],
)
def test_the_word_follows_from_the_rows(database, expression, word):
    found = judged(database, Rule(CLAIM, {"": expression})).verdict
    assert str(found) == word if word else str(found) not in ("holds", "reversed")


def test_a_claim_whose_experiment_was_set_aside_is_not_tested(database):
    aside = {"speed": CannotMeasure("restart", "it needs a server of ours")}
    rule = Rule(CLAIM, {"": "speed.tps[keys = 'b'] / speed.tps[keys = 'a']"})
    found = judged(database, rule, aside)
    assert found.evidence is None and found.capability == "restart"
    other = Rule(
        CLAIM, {"": "sizes.pages[keys = 'b']"}, beside={"by time": "speed.tps[keys = 'a']"}
    )
    assert judged(database, other, aside).evidence is not None


def test_tables_of_a_rule_are_those_of_its_expressions_and_of_its_query(database):
    rule = Rule(
        CLAIM,
        {"": "sizes.pages[keys = 'a'] / printed.hot_setup.fillfactor.value"},
        query="-- fast\nWITH big AS (FROM speed WHERE tps > 1) FROM big",
    )
    assert evidence.tables_of(rule, database) == {"sizes", "speed"}


def test_a_metric_that_no_row_has_is_null_of_its_type(database):
    # 9.1 has nothing that counts a lone backend's switches, and charts and values ask for them
    database.add(
        "run",
        "uuid_keys",
        "sizes",
        pd.DataFrame(database.query("SELECT keys, pages FROM sizes_all")).assign(
            disturbed="", left_out=False, comparison=None, block=None, alpha=1.0, disk=""
        ),
        UNITS | {"waits": "text", "held": "yes or no"},
    )
    asked = "SELECT median(tps) AS tps, max(waits) AS waits, bool_or(held) AS held FROM sizes"
    [row] = database.query(asked).to_dict("records")
    assert all(pd.isna(value) for value in row.values())
    with pytest.raises(evidence.NoRows):
        evaluate(database, "sizes.tps[keys = 'a']")
