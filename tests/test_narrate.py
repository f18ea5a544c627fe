"""Every verdict of every predicate has its words, and the words carry the numbers."""

import math
import re

import pytest
from test_claims import claim, interval

from pgrerun.page import narrate, shown
from pgrerun.record import claims, statistics, verdicts
from pgrerun.record.claims import Predicate
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import VERDICTS, Part, Verdict

EVIDENCE = {
    (Predicate.RATIO, Verdict.HOLDS): interval(1.41, 1.63),
    (Predicate.RATIO, Verdict.STRONGER): interval(1.71, 1.93),
    (Predicate.RATIO, Verdict.WEAKER): interval(1.21, 1.43),
    (Predicate.RATIO, Verdict.NOT_REPRODUCED): interval(0.91, 1.23),
    (Predicate.RATIO, Verdict.NO_EFFECT): interval(0.971, 1.032),
    (Predicate.RATIO, Verdict.REVERSED): interval(0.71, 0.83),
    (Predicate.RATIO, Verdict.INCONCLUSIVE): interval(0.81, 1.63),
    (Predicate.RATIO, Verdict.PARTLY): {"reads": 1.5, "writes": interval(0.71, 0.83)},
    (Predicate.DIRECTION, Verdict.HOLDS): interval(1.41, 1.63),
    (Predicate.DIRECTION, Verdict.PARTLY): {"reads": 2, "writes": interval(0.71, 0.83)},
    (Predicate.DIRECTION, Verdict.NO_EFFECT): interval(0.971, 1.032),
    (Predicate.DIRECTION, Verdict.REVERSED): interval(0.71, 0.83),
    (Predicate.DIRECTION, Verdict.INCONCLUSIVE): interval(0.81, 1.63),
    (Predicate.BETWEEN, Verdict.HOLDS): interval(1.41, 1.63),
    (Predicate.BETWEEN, Verdict.PARTLY): {"reads": 1.5, "writes": interval(0.71, 0.83)},
    (Predicate.BETWEEN, Verdict.DIFFERENT_NOW): interval(1.71, 1.93),
    (Predicate.BETWEEN, Verdict.INCONCLUSIVE): interval(1.31, 1.93),
    (Predicate.AT_MOST, Verdict.HOLDS): 1,
    (Predicate.AT_MOST, Verdict.PARTLY): {"reads": 1, "writes": interval(1.71, 1.93)},
    (Predicate.AT_MOST, Verdict.NOT_SO): interval(1.71, 1.93),
    (Predicate.AT_MOST, Verdict.INCONCLUSIVE): interval(1.31, 1.93),
    (Predicate.AT_LEAST, Verdict.HOLDS): interval(1.71, 1.93),
    (Predicate.AT_LEAST, Verdict.PARTLY): {"reads": 1, "writes": 2},
    (Predicate.AT_LEAST, Verdict.NOT_SO): 1,
    (Predicate.AT_LEAST, Verdict.INCONCLUSIVE): interval(1.31, 1.93),
    (Predicate.EQUALS, Verdict.HOLDS): 1.5,
    (Predicate.EQUALS, Verdict.PARTLY): {"reads": 1.5, "writes": 2.5},
    (Predicate.EQUALS, Verdict.DIFFERENT_NOW): 2.5,
    (Predicate.FACTS, Verdict.HOLDS): {"pages fill up": True, "fast": Part(False, essential=False)},
    (Predicate.FACTS, Verdict.PARTLY): {"pages fill up": True, "none is new": False},
    (Predicate.FACTS, Verdict.NOT_SO): {"pages fill up": False, "none is new": False},
    (Predicate.FACTS, Verdict.REVERSED): {"pages fill up": Part(False, opposite=True)},
    (Predicate.FACTS, Verdict.INCONCLUSIVE): {"pages fill up": None, "none is new": False},
    (Predicate.BUG, Verdict.STILL_THERE): True,
    (Predicate.BUG, Verdict.FIXED): False,
}


def named(evidence):
    """What a sentence must name of its evidence: its parts, and of an interval its size."""
    if isinstance(evidence, dict):
        return [text for name, value in evidence.items() for text in [name, *named(value)]]
    if isinstance(evidence, bool | Part | None):
        return []
    return [f"n = {evidence.n}" if isinstance(evidence, Interval) else f"{evidence:g}"]


def accounted(judged):
    return "; ".join(f"{what}: {said}" for what, said in narrate.account(judged))


@pytest.mark.parametrize(
    ("predicate", "verdict"),
    [(p, v) for p in Predicate for v in sorted(VERDICTS[p] - {Verdict.NOT_TESTED})],
)
def test_every_verdict_is_accounted_for(predicate, verdict):
    subject = claim(predicate, 1.5 if predicate in claims.WITH_PRINTED else None)
    judged = verdicts.judge(subject, EVIDENCE[predicate, verdict])
    expected = [*named(EVIDENCE[predicate, verdict]), "of 1990, section 3.2.2; "]
    expected += ["1.5"] if subject.printed is not None else []
    expected += ["within 5 % of 1"] if predicate in (Predicate.RATIO, Predicate.DIRECTION) else []
    assert judged.verdict is verdict
    assert [text for text in expected if text not in accounted(judged)] == []


def test_what_was_not_tested_is_told_with_what_is_missing():
    aside = verdicts.set_aside(claim(Predicate.BUG), "restart", "the server isn't ours.")
    assert "not tested here: the server isn't ours" in accounted(aside)
    assert "missing: restart" in accounted(aside)


def test_rounding_never_hides_the_side_that_decided():
    weaker = verdicts.judge(claim(Predicate.RATIO, 1.5), Interval(1.4, 1.2, 1.4498, 9))
    assert weaker.verdict is Verdict.WEAKER and "1.4498]" in accounted(weaker)
    barely = verdicts.judge(claim(Predicate.AT_MOST, 6), Interval(6.5, 6.0004, 7.0, 9))
    assert barely.verdict is Verdict.NOT_SO and "[6.0004, " in accounted(barely)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (Interval(1.3146, 1.2871, 1.3422, 9), "1.31 [1.29, 1.34] s"),
        (Interval(1.3146, 1.2146, 1.4146, 9), "1.31 [1.21, 1.41] s"),
        (Interval(12345, 11876, 12834, 9), "12,300 [11,900, 12,800] s"),
        (Interval(0.00123, 0.00111, 0.00132, 9), "0.00123 [0.00111, 0.00132] s"),
        (Interval(0.0, -0.004, 0.004, 9), "0.000 [-0.004, 0.004] s"),
        (statistics.exact(6), "6 s"),
        (statistics.ratio([3, 3], [2, 2]), "1.5 s"),
        (Interval(2.0, 0.0, math.inf, 1), "2 [0, ∞] s"),
        (1234.5678, "1,235 s"),
    ],
)
def test_digits_follow_the_interval(x, text):
    assert narrate.interval(x, "s") == text


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0, "0"),
        (7.0, "7"),
        (1 / 3, "0.3333"),
        (0.699, "0.699"),
        (72.413793, "72.41"),
        (1e6, "1,000,000"),
        (1.23e-5, "0.0000123"),
        (1.5e-7, "1.500e-07"),
        (math.nan, "no number"),
        (-0.25, "-0.25"),
    ],
)
def test_numbers(x, text):
    assert narrate.number(x) == text


@pytest.mark.parametrize(
    ("x", "part"),
    [
        (interval(1.2, 1.4), "1.30 [1.20, 1.40] times that of one backend (95 % interval, n = 7)"),
        (interval(0.97, 1.04), "equal within 5 %"),
        (interval(0.9, 1.2), "can't be told from"),
        (interval(1.2, 1.4, n=3), "too few pairs"),
    ],
)
def test_a_ratio_is_told_with_what_it_cannot_tell(x, part):
    assert part in narrate.ratio_sentence(x, "throughput", "two backends", "one backend")


def test_summary_counts_every_verdict_and_what_stands_apart():
    judged = [
        verdicts.judge(claim(p, 1.5 if p in claims.WITH_PRINTED else None), e)
        for (p, _), e in EVIDENCE.items()
    ]
    judged.append(verdicts.set_aside(claim(Predicate.BUG), "x", "y"))
    said = narrate.summary(judged)
    counted = re.findall(r"\b(\d+) (?:hold|show|is|are|was)", said)
    assert sum(map(int, counted)) == len(judged) and "not scored" not in said
    apart = [basis for basis in claims.Basis if basis not in claims.SCORED]
    judged += [verdicts.judge(claim(Predicate.FACTS, basis=basis), {"a": True}) for basis in apart]
    own = verdicts.judge(claim(Predicate.FACTS, document=claims.OWN), {"a": True})
    inside, outside = narrate.summary([*judged, own]).split(f" {len(apart) + 1} more are ")
    assert inside in said and len(re.findall(r"\b1 ", outside)) == len(apart) + 1


def test_document_words_are_no_markup():
    subject = claim(Predicate.BUG, claim="<b> of it", quote="<i> & more")
    said = shown.Verdict(verdicts.judge(subject, False), "", "").html()
    assert "&lt;b&gt; of it" in said and "&lt;i&gt; &amp; more" in said


# ---- findings


OUTCOMES = {
    "Came true": {Verdict.HOLDS, Verdict.STRONGER, Verdict.STILL_THERE},
    "Came true in part": {Verdict.WEAKER, Verdict.PARTLY},
    "Failed": {
        *(Verdict.NOT_REPRODUCED, Verdict.REVERSED, Verdict.FIXED),
        *(Verdict.NO_EFFECT, Verdict.NOT_SO, Verdict.DIFFERENT_NOW),
    },
    "Undecided": {Verdict.INCONCLUSIVE},
    "Not tested here": {Verdict.NOT_TESTED},
}
OPPOSITE = {"Came true": "Failed", "Failed": "Came true"}


@pytest.mark.parametrize("foretold", [True, False])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_became_of_a_prediction_is_true_for_every_verdict(verdict, foretold):
    judged = {"a-001": verdicts.Judgement(claim(Predicate.FACTS), verdict, None, "", "")}
    [outcome] = [word for word, given in OUTCOMES.items() if verdict in given]
    decided = verdict not in (Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)
    named = "a-001" if foretold or not decided else "that a-001 doesn't hold"
    outcome = outcome if foretold else OPPOSITE.get(outcome, outcome)
    assert narrate.outcome({"a-001": foretold}, judged).startswith(f"{outcome}: {named}")


@pytest.mark.parametrize(
    ("foretold", "word"), [(True, "Failed: a-001"), (False, "Came true: a-001")]
)
def test_a_prediction_that_a_bug_is_fixed_came_true_if_it_is(foretold, word):
    judged = {"a-001": verdicts.Judgement(claim(Predicate.BUG), Verdict.FIXED, Part(False))}
    assert narrate.outcome({"a-001": foretold}, judged) == f"{word} (the bug is fixed)."


def test_a_prediction_about_several_claims_is_told_by_outcome():
    judged = {
        "a-001": verdicts.set_aside(claim(Predicate.FACTS), "x", "y"),
        "a-002": verdicts.Judgement(claim(Predicate.FACTS), Verdict.NOT_SO, None),
    }
    said = narrate.outcome({"a-001": True, "a-002": True, "a-003": True}, judged)
    assert re.fullmatch(
        r"Not tested here: a-001; failed: a-002; not measured by today's rule: a-003\.", said
    )
