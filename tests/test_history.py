"""The history of claims is whole: its last lines are the words and the rules of today."""

import csv
from dataclasses import replace

import pytest

from pgrerun.errors import RecordError
from pgrerun.record import claims, history
from pgrerun.record.verdicts import Verdict

LINE = history.Change("lai-001", "2026-11-21", "", "holds", "measurement", "abc", "Published first")


def test_the_last_line_of_each_claim_is_its_published_word_and_its_rule():
    words, rules = history.published_words(), history.digests()
    lacking = history.missing(history.load(), words, rules)
    assert lacking == [], "`pgrerun history --why REASON` writes them"
    assert len(words) > 300 and set(words) <= set(claims.ledger())


def test_each_line_goes_on_from_the_one_before():
    for claim, changes in history.load().items():
        assert changes[0].old == "" and changes[0].changed in ("measurement", "frozen"), claim
        for before, after in zip(changes, changes[1:]):
            assert before.new == after.old and before.date <= after.date, claim
        for change in changes:
            assert change.new in {"", *Verdict} and change.why, claim
            assert (change.old == change.new) == (change.changed in ("rule", "frozen")), claim


@pytest.mark.parametrize(
    ("word", "last", "before", "freezing", "after"),
    [
        ("holds", LINE, None, "frozen", None),
        ("holds", replace(LINE, rule="1"), None, "frozen", None),
        ("weaker", LINE, "measurement", "measurement", "measurement"),
        ("weaker", replace(LINE, rule="1"), "measurement", "measurement", "measurement"),
        ("holds", replace(LINE, rule="0"), None, "rule", "rule"),
        ("weaker", replace(LINE, rule="0"), "measurement", "both", "both"),
    ],
)
def test_what_the_history_lacks_is_told(word, last, before, freezing, after):
    other = {"lai-002": [replace(LINE, claim="lai-002", rule="1", changed="frozen")]}
    given = {"lai-001": word, "lai-002": "holds"}, {"lai-001": "1"}, "So."
    told = [
        history.missing({"lai-001": [LINE, last]}, *given),
        history.missing({"lai-001": [LINE, last]}, *given, freeze=True),
        history.missing({"lai-001": [LINE, last], **other}, *given),
    ]
    line = ("holds", word, "1", "So.")
    assert [[(one.changed, one.old, one.new, one.rule, one.why) for one in f] for f in told] == [
        [(changed, *line)] if changed else [] for changed in (before, freezing, after)
    ]


def test_missing_lines_are_appended_and_rules_are_frozen(tmp_path, monkeypatch):
    file = tmp_path / "history.csv"
    with open(file, "w", newline="") as lines:
        csv.writer(lines).writerows([LINE.__dict__.keys(), LINE.__dict__.values()])
    monkeypatch.setattr(history, "published_words", lambda: {"lai-001": "weaker"})
    monkeypatch.setattr(history, "digests", lambda: {"lai-001": "1"})
    assert len(history.append("Measured anew.", file=file)) == 1
    assert history.append("Again.", file=file) == []
    before, after = history.load(file)["lai-001"]
    assert before == LINE and (after.new, after.why) == ("weaker", "Measured anew.")
    history.append("So be it.", freeze=True, file=file)
    assert [one.rule for one in history.load(file)["lai-001"]] == ["", "1", "1"]


def test_a_damaged_history_is_named(tmp_path):
    file = tmp_path / "history.csv"
    file.write_text("claim,date,colour\nlai-001,2026-11-21,red\n")
    with pytest.raises(RecordError, match="history.csv is damaged"):
        history.load(file)
