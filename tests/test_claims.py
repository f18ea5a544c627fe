"""The ledger is whole, damage is named, every predicate decides every case and boundary."""

import csv
import json
import math
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgrerun.errors import BookError, CannotMeasure, RecordError, RerunError
from pgrerun.record import claims, printed, statistics
from pgrerun.record.claims import VERDICTS, Claim, Judge, Predicate, Verdict
from pgrerun.record.runs import Run, load
from pgrerun.record.statistics import Interval

CHAPTERS = {
    "profiling": 27,
    "wisconsin": 18,
    "tp1": 20,
    "optimizer": 30,
    "four_tactics": 60,
    "hot": 35,
    "explorations": 37,
    "scalability": 40,
    "access_paths": 33,
    "measuring": 12,
}


def claim(predicate, printed=None, margin=0.05, **more):
    kind = "bug" if predicate is Predicate.BUG else "number"
    return Claim(
        **{
            "id": "lai-001",
            "document": "postgres-1990",
            "section": "3.2.2",
            "chapter": "tp1",
            "kind": kind,
            "claim": "It is faster.",
            "published_value": "",
            "idea_for_a_retest": "",
            "headline": False,
            "predicate": predicate,
            "expression": "",
            "printed": printed,
            "margin": margin,
            "needs": "",
            "quantity": "ratio of b to a",
            **more,
        }
    )


def interval(low, high, n=7):
    return Interval((low + high) / 2, low, high, n)


# ---- the ledger


def test_the_ledger_has_every_claim_in_its_chapter():
    counted = Counter(claim.chapter for claim in claims.ledger().values())
    assert counted.items() >= CHAPTERS.items()


def test_each_chapter_has_a_few_headlines():
    found = claims.ledger().values()
    for chapter in CHAPTERS:
        assert 3 <= sum(c.headline for c in found if c.chapter == chapter) <= 7, chapter


def test_every_tp1_claim_can_be_judged_and_printed_effects_come_from_the_tables():
    tp1 = [c for c in claims.ledger().values() if c.chapter == "tp1"]
    assert all(c.predicate for c in tp1)
    printed = {c.id: c.printed for c in tp1 if c.printed is not None}
    assert printed == pytest.approx(
        {
            "lai-045": 11.86 / 6,
            "lai-046": 2 / (0.893 / 0.699),
            "lai-047": 1.21 / 0.893,
            "lai-048": 100 / 80,
            "lai-049": 6,
            "lai-051": 25 / 16,
            "lai-054": 0.99 / 0.699,
            "lai-058": 1.25 / 0.699,
            "lai-059": 2,
            "lai-085": 1,
        }
    )
    assert not any(
        character.isdigit()
        for c in tp1
        for character in c.expression.replace("tp1", "").replace("2 *", "")
    )


def test_every_hot_claim_can_be_judged_and_printed_effects_come_from_the_tables():
    hot = [c for c in claims.ledger().values() if c.chapter == "hot"]
    assert all(c.predicate for c in hot)
    printed = {c.id: c.printed for c in hot if c.printed is not None}
    assert printed == pytest.approx(
        {
            "hot-001": 2006.098739 / 1007.451264,
            "hot-002": (157895 + 49284) / (157895 + 43),
            "hot-012": 1024 / 976,
            "hot-015": 1 + 49284 / 157895,
            "hot-021": 1.05,
            "hot-023": 363.444429 / 416.659906,
            "hot-024": 659.870628 / 321.88984,
            "hot-026": 415.854569 / 363.444429,
            "hot-035": 1007.451264 / 976,
        }
    )
    numerals = re.compile(r"(?<![\w.])\d+(?![\w.])")
    assert {n for c in hot for n in numerals.findall(c.expression)} <= {
        "1",
        "100",
    }  # a share from per cent


def test_sources_are_said_in_words():
    assert claims.ledger()["hot-027"].source == "the HOT thread of 2007, message 4 and message 5"
    assert (
        claims.ledger()["lai-059"].source == "the POSTGRES report of 1990, Abstract and section 5"
    )


@pytest.fixture
def damaged(tmp_path):
    """Write a ledger of the first three claims, with changed cells in line 3, the second."""

    def write(**cells):
        with open(claims.LEDGER, newline="", encoding="utf-8") as file:
            rows = [
                row
                for row in csv.DictReader(file)
                if row["id"] in ("lai-045", "lai-046", "lai-060")
            ]
        rows[1].update(cells)
        path = tmp_path / "claims.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


def test_the_undamaged_excerpt_is_read(damaged):
    assert list(claims.ledger(damaged())) == ["lai-045", "lai-046", "lai-060"]


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ({"id": "lai-045"}, "second time"),
        ({"id": "46"}, "id"),
        ({"document": "oracle"}, "document must be one of"),
        ({"kind": "hearsay"}, "kind"),
        ({"claim": ""}, "claim"),
        ({"headline": "perhaps"}, "headline"),
        ({"predicate": "rato"}, "'rato' is none of"),
        ({"predicate": "bug", "printed": "", "margin": ""}, "kind bug"),
        ({"predicate": "direction"}, "has no printed number"),
        ({"printed": ""}, "needs a printed number"),
        ({"printed": "1.02"}, "within the margin"),
        ({"printed": "1 - 3"}, "positive"),
        ({"printed": "1/0"}, "evaluated"),
        ({"printed": "tp1_stages.two.tps"}, "no cell two.tps"),
        ({"printed": "tp1_stages.pool.tp1"}, "doesn't print"),
        ({"printed": "__import__('os').getpid()"}, "neither a number"),
        ({"printed": "2 **"}, "evaluated"),
        ({"margin": "tiny"}, "margin 'tiny'"),
        ({"margin": "0"}, "margin"),
        ({"predicate": "at most"}, "have a margin"),
        ({"quantity": ""}, "quantity"),
    ],
)
def test_a_damaged_line_is_named(damaged, cells, complaint):
    path = damaged(**cells)
    with pytest.raises(RecordError, match=complaint) as caught:
        claims.ledger(path)
    assert f"{path} is damaged at line 3" in str(caught.value)


def test_lines_are_counted_through_cells_that_span_lines(damaged):
    path = damaged(claim="two\nlines")
    path.write_text(path.read_text().replace("lai-060", "lai-045"))
    with pytest.raises(RecordError, match="line 5: lai-045 stands there a second time"):
        claims.ledger(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("quantity", "quality", 1),
        lambda t: t + "lai-099,short\n",
        lambda t: t + 'x,"open',
        lambda t: "",
    ],
)
def test_a_ledger_of_another_shape_is_refused(damaged, change):
    path = damaged()
    path.write_text(change(path.read_text()))
    with pytest.raises(RecordError, match="damaged at line"):
        claims.ledger(path)


def test_a_missing_ledger_is_a_record_error(tmp_path):
    with pytest.raises(RecordError, match="claims.csv"):
        claims.ledger(tmp_path / "claims.csv")


def test_a_changed_ledger_is_read_again(damaged):
    path = damaged()
    before = claims.ledger(path)["lai-046"].claim
    damaged(claim="Other words.")
    os.utime(path, ns=(1, 1))
    assert claims.ledger(path)["lai-046"].claim == "Other words." != before


# ---- predicates: E = 1.5 or its inverse, band [1/1.05, 1.05]

EFFECTS = [
    (1.6, 1.8, Verdict.HOLDS),  # larger than printed
    (1.4, 1.6, Verdict.HOLDS),
    (1.4, 1.5, Verdict.HOLDS),  # reaching E is enough
    (1.06, 1.5, Verdict.HOLDS),
    (1.05, 1.6, Verdict.NOT_RESOLVED),  # the end of the margin is still inside it
    (1.01, 1.6, Verdict.NOT_RESOLVED),
    (1.2, 1.4999, Verdict.WEAKER),
    (1.01, 1.3, Verdict.WEAKER),
    (1.01, 1.05, Verdict.GONE),  # significant, but of no interest
    (0.96, 1.05, Verdict.GONE),
    (1 / 1.05, 1.05, Verdict.GONE),
    (1.0, 1.3, Verdict.NOT_RESOLVED),  # 1 belongs to the interval
    (0.96, 1.06, Verdict.NOT_RESOLVED),
    (0.9, 1.6, Verdict.NOT_RESOLVED),
    (0.9, 0.99, Verdict.NOT_RESOLVED),
    (0.9, 1 / 1.05, Verdict.NOT_RESOLVED),
    (0.9, 0.95, Verdict.REVERSED),
    (0.5, 0.7, Verdict.REVERSED),
]


@pytest.mark.parametrize(("low", "high", "verdict"), EFFECTS)
def test_ratio(low, high, verdict):
    assert claims.judge(claim(Predicate.RATIO, 1.5), interval(low, high)).verdict is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [e for e in EFFECTS if e[:2] not in [(1.4, 1.5), (0.9, 1 / 1.05), (1.05, 1.6)]],
)
def test_a_printed_effect_below_one_reads_the_other_way_round(low, high, verdict):
    found = claims.judge(claim(Predicate.RATIO, 1 / 1.5), interval(low, high).inverse())
    assert found.verdict is verdict
    assert found.evidence == interval(low, high).inverse()  # shown as measured


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.06, 9, Verdict.HOLDS),
        (1.06, 1.07, Verdict.HOLDS),
        (1.05, 2, Verdict.NOT_RESOLVED),
        (1.01, 1.04, Verdict.GONE),
        (0.9, 1.1, Verdict.NOT_RESOLVED),
        (0.5, 0.95, Verdict.REVERSED),
        (0.5, 0.96, Verdict.NOT_RESOLVED),
    ],
)
def test_direction(low, high, verdict):
    assert claims.judge(claim(Predicate.DIRECTION), interval(low, high)).verdict is verdict


@given(st.floats(0.2, 5), st.floats(1.0, 2.0), st.floats(1.2, 4), st.floats(0.01, 0.15))
def test_ratio_verdicts_mean_what_they_say(low, width, effect, margin):
    high = low * width
    verdict = claims.judge(
        claim(Predicate.RATIO, effect, margin), Interval(low, low, high, 7)
    ).verdict
    assert verdict in VERDICTS[Predicate.RATIO]
    if verdict is Verdict.HOLDS:
        assert high >= effect and low > 1 + margin
    if verdict is Verdict.WEAKER:
        assert low > 1 and high < effect
    if verdict is Verdict.REVERSED:
        assert high < 1 / (1 + margin)
    if verdict is Verdict.GONE:
        assert statistics.equivalent(Interval(low, low, high, 7), margin)
    if low <= 1 <= high:
        assert verdict in (Verdict.GONE, Verdict.NOT_RESOLVED)


def test_notes_say_what_the_verdict_leaves_open():
    judge = lambda low, high: claims.judge(claim(Predicate.RATIO, 1.5), interval(low, high)).note
    assert "larger than printed" in judge(1.6, 1.8) and judge(1.4, 1.6) == ""
    assert "claimed one" in judge(1.01, 1.6) and "isn't the claimed" in judge(0.9, 0.99)
    assert (
        "printed effect can" in judge(0.9, 1.2) and judge(0.9, 1.6) == "no effect can't be excluded"
    )
    assert claims.judge(
        claim(Predicate.DIRECTION), interval(0.9, 1.2), "on a busy machine"
    ).note.endswith("; on a busy machine")


@pytest.mark.parametrize(
    "predicate", [Predicate.RATIO, Predicate.DIRECTION, Predicate.AT_MOST, Predicate.AT_LEAST]
)
def test_too_few_pairs_decide_nothing(predicate):
    printed = None if predicate is Predicate.DIRECTION else 1.5
    found = claims.judge(claim(predicate, printed), interval(1.6, 1.8, n=4))
    assert found.verdict is Verdict.NOT_RESOLVED and "4 of at least 5" in found.note


@pytest.mark.parametrize(
    ("evidence", "at_most", "at_least"),
    [
        (6, Verdict.HOLDS, Verdict.HOLDS),  # the bound belongs to both sides
        (5.99, Verdict.HOLDS, Verdict.REVERSED),
        (6.01, Verdict.REVERSED, Verdict.HOLDS),
        (np.int64(7), Verdict.REVERSED, Verdict.HOLDS),
        (interval(4, 6), Verdict.HOLDS, Verdict.NOT_RESOLVED),
        (interval(6, 7), Verdict.NOT_RESOLVED, Verdict.HOLDS),
        (interval(5, 7), Verdict.NOT_RESOLVED, Verdict.NOT_RESOLVED),
        (interval(7, 8), Verdict.REVERSED, Verdict.HOLDS),
        ({"reads": 5, "writes": 6}, Verdict.HOLDS, Verdict.WEAKER),
        ({"reads": 5, "writes": 7}, Verdict.WEAKER, Verdict.WEAKER),
        ({"reads": 8, "writes": 7}, Verdict.REVERSED, Verdict.HOLDS),
        ({"reads": 8, "writes": interval(5, 7)}, Verdict.NOT_RESOLVED, Verdict.NOT_RESOLVED),
        ({"reads": 5, "writes": interval(1, 2, n=3)}, Verdict.NOT_RESOLVED, Verdict.NOT_RESOLVED),
    ],
)
def test_bounds(evidence, at_most, at_least):
    assert claims.judge(claim(Predicate.AT_MOST, 6), evidence).verdict is at_most
    assert claims.judge(claim(Predicate.AT_LEAST, 6), evidence).verdict is at_least


def test_a_mixed_bound_names_its_parts():
    assert (
        claims.judge(claim(Predicate.AT_MOST, 6), {"reads": 5, "writes": 7}).note
        == "reads: holds; writes: reversed"
    )


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.3, Verdict.HOLDS), (0.1 + 0.2, Verdict.HOLDS), (0.31, Verdict.GONE)]
)
def test_equals(value, verdict):
    assert claims.judge(claim(Predicate.EQUALS, 0.3), value).verdict is verdict


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        ({"a": True, "b": np.True_}, Verdict.HOLDS),
        ({"a": True, "b": False}, Verdict.WEAKER),
        ({"a": False}, Verdict.GONE),
    ],
)
def test_facts(facts, verdict):
    found = claims.judge(claim(Predicate.FACTS), facts)
    assert found.verdict is verdict and json.dumps(found.as_dict())


@pytest.mark.parametrize(
    ("there", "verdict"),
    [(True, Verdict.STILL_THERE), (False, Verdict.FIXED), (np.False_, Verdict.FIXED)],
)
def test_bug(there, verdict):
    assert claims.judge(claim(Predicate.BUG), there).verdict is verdict


@pytest.mark.parametrize(
    ("predicate", "evidence"),
    [
        (Predicate.RATIO, True),
        (Predicate.RATIO, "1.5"),
        (Predicate.RATIO, None),
        (Predicate.RATIO, {"a": 1.0}),
        (Predicate.AT_MOST, {}),
        (Predicate.AT_MOST, {"a": True}),
        (Predicate.EQUALS, interval(1, 2)),
        (Predicate.FACTS, {}),
        (Predicate.FACTS, True),
        (Predicate.FACTS, {"a": 1}),
        (Predicate.FACTS, {"a": interval(1, 2)}),
        (Predicate.BUG, 0),
        (Predicate.BUG, "no"),
        (Predicate.BUG, None),
    ],
)
def test_evidence_of_the_wrong_kind_is_a_bug_of_the_chapter(predicate, evidence):
    printed = 2.0 if predicate in claims.WITH_PRINTED else None
    with pytest.raises(TypeError, match="lai-001"):
        claims.judge(claim(predicate, printed), evidence)


def test_a_claim_without_predicate_has_no_judge():
    with pytest.raises(BookError, match="declares no predicate"):
        claims.judge(claim(None), 1.0)


def test_set_aside_names_the_capability():
    found = claims.set_aside(claim(Predicate.BUG), "restart", "it needs a restart")
    assert (found.verdict, found.capability, found.evidence) == (
        Verdict.NOT_TESTABLE,
        "restart",
        None,
    )


@pytest.mark.parametrize(
    "expression, value",
    [("1.25/0.5", 2.5), ("(1 + 2) * 3 - 4", 5), ("tp1_stages.two.tp1", 0.893), (" 7 ", 7)],
)
def test_printed_arithmetic(expression, value):
    assert claims.evaluate(expression) == value


@pytest.mark.parametrize(
    "expression",
    ["", "x", "x.y", "a.b.c.d", "-1", "True", "1e308*10", "'1'", "[1]", "2**3", "max(1,2)"],
)
def test_printed_arithmetic_can_do_nothing_else(expression):
    with pytest.raises((ValueError, RecordError)):
        claims.evaluate(expression)


# ---- a chapter's judge

TP1 = {
    "lai-045": interval(1.5, 2.2),
    "lai-046": 1.1,
    "lai-047": interval(1.0, 1.2),
    "lai-048": interval(1.2, 1.3),
    "lai-049": {"reads": 5.5, "writes": 7.0},
    "lai-050": {"a": True, "b": False},
    "lai-051": 20.0,
    "lai-052": {"a": True},
    "lai-053": {"a": False},
    "lai-054": interval(1.4, 1.5),
    "lai-055": interval(0.5, 0.6),
    "lai-056": {"a": True, "b": False},
    "lai-057": {"a": True},
    "lai-058": interval(3, 4),
    "lai-059": interval(1.6, 1.8),
    "lai-060": False,
    "lai-061": {"a": True},
    "lai-084": interval(2, 3),
    "lai-085": 3,
    "lai-086": {"a": True},
}


def test_a_whole_chapter_is_judged_once_and_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    claimed = [id for id, claim in claims.ledger().items() if claim.chapter == "tp1"]
    with Run.open("mine", "tp1", key="k", environment={}) as run:
        judge = Judge("tp1", run)
        assert judge.unjudged() == claimed and judge.table().empty
        for id in reversed(claimed):
            if id in TP1 and id != "lai-056":
                judge.judge(id, TP1[id])
            else:
                judge.set_aside(id, CannotMeasure("restart", "it needs a restart"))
        assert judge.unjudged() == []
        judge.close()
    table = judge.table()
    assert list(table.index) == claimed
    assert (
        table.verdict["lai-059"] == "weaker"
        and table.high["lai-059"] == 1.8
        and table.headline["lai-059"]
    )
    assert math.isnan(table.estimate["lai-060"]) and table.verdict["lai-056"] == "not testable here"
    stored = {v["claim"]: v for v in load("mine", "tp1").verdicts}
    assert (
        stored["lai-059"]["evidence"]["high"] == 1.8
        and stored["lai-056"]["capability"] == "restart"
    )
    assert stored["lai-049"]["evidence"]["writes"]["estimate"] == 7.0


def test_an_incomplete_chapter_is_refused():
    judge = Judge("tp1")
    judge.judge("lai-059", 2.0)
    judge.judge("lai-059", 2.0)
    others = CHAPTERS["tp1"] - 1
    with pytest.raises(
        RerunError, match=f"{others} of its claims were left unjudged: lai-045"
    ) as caught:
        judge.close()
    assert "more than once: lai-059" in str(caught.value)


def test_claims_of_others_are_refused():
    judge = Judge("tp1")
    with pytest.raises(BookError, match="belongs to 'hot'"):
        judge.judge("hot-001", 2.0)
    with pytest.raises(BookError, match="none of that id"):
        judge.set_aside("lai-999", CannotMeasure("x", "y"))
    with pytest.raises(BookError, match="no claims of chapter 'tp2'"):
        Judge("tp2")


def test_a_declared_need_that_is_missing_sets_the_claim_aside(monkeypatch):
    needy = claim(Predicate.FACTS, id="lai-052", needs="contrib:pg_buffercache")
    monkeypatch.setattr(claims, "ledger", lambda *file: {needy.id: needy})
    assert (
        Judge("tp1", can=lambda capability: True).judge("lai-052", {"a": True}).verdict
        is Verdict.HOLDS
    )
    found = Judge("tp1", can=lambda capability: False).judge("lai-052", {"a": True})
    assert found.verdict is Verdict.NOT_TESTABLE and found.capability == "contrib:pg_buffercache"
    needy = claim(Predicate.FACTS, id="lai-052", needs="restart and direct I/O")
    assert (
        needy.capabilities == ("restart", "direct I/O")
        and claim(Predicate.FACTS).capabilities == ()
    )
    found = Judge("tp1", can=lambda capability: capability == "restart").judge(
        "lai-052", {"a": True}
    )
    assert found.verdict is Verdict.NOT_TESTABLE and found.capability == "direct I/O"


def test_the_ledger_agrees_with_the_documents_where_they_are_at_hand():
    folder = os.environ.get("PGRERUN_DOCUMENTS")
    if not folder:
        pytest.skip("PGRERUN_DOCUMENTS names no folder with the documents' texts")
    files = {name: Path(folder) / one.file for name, one in printed.DOCUMENTS.items() if one.file}
    sections = {name: printed.sections(path.read_text("utf-8")) for name, path in files.items()}
    for c in claims.ledger().values():
        if c.document not in sections:
            continue
        text = " ".join(sections[c.document].values()).lower()
        if c.document == "hot-2007":
            text = " ".join(
                sections[c.document][place.strip()] for place in c.section.split(";")
            ).lower()
        if c.chapter in ("tp1", "hot"):
            for value in filter(
                None, re.split("; | vs | -> | on | to | / ", c.published_value.lower())
            ):
                assert value in text, (c.id, value)


def test_a_number_that_is_none_decides_nothing():
    found = claims.judge(claim(Predicate.RATIO, printed=2.0), math.nan)
    assert found.verdict is Verdict.NOT_RESOLVED
