"""Every verdict of every predicate has its words, and the words carry the numbers."""

import dataclasses
import math
import re

import pandas as pd
import pytest
from test_claims import claim, interval

from pgrerun.page import narrate
from pgrerun.record import claims, statistics, verdicts
from pgrerun.record.claims import Basis, Predicate
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import VERDICTS, Part, Verdict, fact, supporting

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
    (Predicate.FACTS, Verdict.HOLDS): {"pages fill up": True, "fast": supporting(False)},
    (Predicate.FACTS, Verdict.PARTLY): {"pages fill up": True, "none is new": False},
    (Predicate.FACTS, Verdict.NOT_SO): {"pages fill up": False, "none is new": False},
    (Predicate.FACTS, Verdict.REVERSED): {"pages fill up": fact(False, opposite=True)},
    (Predicate.FACTS, Verdict.INCONCLUSIVE): {"pages fill up": None, "none is new": False},
    (Predicate.BUG, Verdict.STILL_THERE): True,
    (Predicate.BUG, Verdict.FIXED): False,
}
CASES = [(p, v) for p in Predicate for v in sorted(VERDICTS[p])]


def numbers(evidence):
    if isinstance(evidence, Interval):
        decimals = 2 if evidence.high - evidence.low < 0.35 else 1
        return [
            f"{evidence.low:.{decimals}f}",
            f"{evidence.high:.{decimals}f}",
            f"n = {evidence.n}",
        ]
    if isinstance(evidence, dict):
        return [text for name, value in evidence.items() for text in [name, *numbers(value)]]
    if isinstance(evidence, Part):
        return numbers(evidence.value)
    return [] if evidence is None or isinstance(evidence, bool) else [f"{evidence:g}"]


@pytest.mark.parametrize(("predicate", "verdict"), CASES, ids=lambda x: str(x).replace(" ", "-"))
def test_every_verdict_has_its_words(predicate, verdict):
    subject = claim(predicate, 1.5 if predicate in claims.WITH_PRINTED else None)
    if verdict is Verdict.NOT_TESTED:
        judged, evidence = verdicts.set_aside(subject, "restart", "the server isn't ours."), True
    else:
        evidence = EVIDENCE[predicate, verdict]
        judged = verdicts.judge(subject, evidence)
    assert judged.verdict is verdict
    said = narrate.judgement(judged)
    assert f"**{verdict}**" in said and said.count("**") == 2
    assert said.startswith("The POSTGRES report of 1990 (section 3.2.2; lai-001): It is faster. ")
    for text in numbers(evidence):
        assert text in said, (text, said)
    if verdict is Verdict.NOT_TESTED:
        assert "the server isn't ours" in said and "missing: restart" in said
    elif subject.printed is not None:
        assert "1.5" in said
    if predicate in (Predicate.RATIO, Predicate.DIRECTION) and verdict is Verdict.NO_EFFECT:
        assert "5 %" in said
    assert said.count(". ") <= 3  # the claim's own full stop is one


def _as_judged(evidence):
    if isinstance(evidence, dict):
        parts = {k: v if isinstance(v, Part) else Part(v) for k, v in evidence.items()}
        return {k: Part(_as_judged(v.value), v.essential, v.opposite) for k, v in parts.items()}
    if evidence is None or isinstance(evidence, (bool, Interval)):
        return evidence
    return statistics.exact(evidence)


def test_rounding_never_hides_the_side_that_decided():
    weaker = verdicts.judge(claim(Predicate.RATIO, 1.5), Interval(1.4, 1.2, 1.4498, 9))
    assert weaker.verdict is Verdict.WEAKER and "1.4498]" in narrate.judgement(weaker)
    barely = verdicts.judge(claim(Predicate.AT_MOST, 6), Interval(6.5, 6.0004, 7.0, 9))
    assert barely.verdict is Verdict.NOT_SO and "[6.0004, " in narrate.judgement(barely)


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
    ("n", "noun", "text"),
    [
        (0, "page", "no pages"),
        (1, "page", "1 page"),
        (12345, "query", "12,345 queries"),
        (2, "index", "2 indexes"),
        (2, "key", "2 keys"),
        (2.5, "page", "2.5 pages"),
    ],
)
def test_counts(n, noun, text):
    assert narrate.count(n, noun) == text
    assert narrate.count(3, "index", "indices") == "3 indices"


def test_parts_whose_names_have_commas_are_told_apart():
    parts = {name: Part(statistics.exact(2)) for name in ("tellers", "tellers, pruned")}
    judged = verdicts.Judgement(claim(Predicate.RATIO, 2.0), Verdict.HOLDS, parts)
    assert narrate.evidence(judged) == "tellers 2; tellers, pruned 2 times"


@pytest.mark.parametrize(
    ("x", "part"),
    [
        (interval(1.2, 1.4), "1.30 [1.20, 1.40] times that of one backend (95 % interval, n = 7)"),
        (interval(0.97, 1.04), "equal within 5 %"),
        (interval(0.9, 1.2), "can't be told from"),
        (interval(1.2, 1.4, n=3), "too few pairs"),
    ],
)
def test_ratio_sentence(x, part):
    said = narrate.ratio_sentence(x, "throughput", "two backends", "one backend")
    assert part in said and "two backends" in said


def test_summary_counts_every_verdict_and_what_stands_apart():
    judged = [
        verdicts.judge(claim(p, 1.5 if p in claims.WITH_PRINTED else None), e)
        for (p, _), e in EVIDENCE.items()
    ]
    judged.append(verdicts.set_aside(claim(Predicate.BUG), "x", "y"))
    said = narrate.summary(judged)
    scored = len(EVIDENCE) + 1
    assert said.startswith(f"Of {scored} claims that are put to a server: 7 hold, 1 is stronger, ")
    assert "1 was not tested here" in said and "Outside" not in said
    assert sum(map(int, re.findall(r"\b(\d+) (?:hold|show|is|are|was)", said))) == scored
    for basis in claims.Basis:
        if basis not in claims.SCORED:
            judged.append(verdicts.judge(claim(Predicate.FACTS, basis=basis), {"a": True}))
    said = narrate.summary(judged)
    assert said.startswith(f"Of {scored} claims")
    assert said.endswith(
        "Outside of the score: 1 timed on this machine without a server, 1 simulated, 1 recomputed"
        " from printed numbers, 1 known from release notes, 1 true by how the experiment is built,"
        " 1 opinion."
    )
    judged.append(verdicts.judge(claim(Predicate.FACTS, document=claims.OWN), {"a": True}))
    said = narrate.summary(judged)
    assert said.startswith(f"Of {scored} claims") and "score: 1 of no document, 1 timed on" in said
    own = [judged[-1], judged[-2]]
    assert narrate.summary(own) == (
        "Of 1 claim that no document makes: 1 holds. Outside of the score: 1 opinion."
    )
    assert narrate.summary(own[1:]).startswith("No claim here is put to a server. ")
    assert narrate.summary([]) == "No claim was judged."


def test_the_basis_stands_beside_every_word_and_the_quote_beside_our_words():
    for basis in claims.Basis:
        subject = claim(Predicate.FACTS, basis=basis, quote="It *runs* faster.")
        said = narrate.judgement(verdicts.judge(subject, {"a": True}))
        assert r"It is faster. In its words: “It \*runs\* faster.”" in said
        assert narrate.BASES[basis] in said or basis is claims.Basis.OPINION


def test_the_range_that_counts_as_a_printed_number_is_told():
    near = claim(Predicate.BETWEEN, 0.7).model_copy(update={"tolerance": 0.1})
    assert narrate.judged_size(near, near.sizes[""]) == "0.7, taken as 0.63 to 0.77"


def test_what_stands_beside_is_told():
    subject = claim(Predicate.RATIO, 1.5)
    here = verdicts.judge(subject, interval(1.41, 1.63))
    there = {"at 100,000 tuples": verdicts.judge(subject, interval(0.71, 0.83))}
    said = narrate.judgement(dataclasses.replace(here, beside=there))
    assert "At 100,000 tuples, it would be reversed (0.77 [0.71, 0.83] times)." in said
    thought = subject.model_copy(update={"basis": Basis.OPINION})
    there = {"of two tactics": verdicts.judge(thought, interval(1.41, 1.63))}
    said = narrate.judgement(dataclasses.replace(here, beside=there))
    assert "Of two tactics: an opinion, which nothing decides; beside it 1.52 [1.41, 1.63]" in said


def test_document_words_are_no_markup():
    subject = claim(Predicate.BUG, claim="`a` *b* pg_class $1 [x](y) <z>")
    said = narrate.judgement(verdicts.judge(subject, False))
    assert r"\`a\` \*b\* pg\_class \$1 \[x\](y) &lt;z>" in said


def test_a_chart_is_described_row_by_row():
    frame = pd.DataFrame(
        [
            ("one", "printed", 0.699, math.nan, math.nan),
            ("two", "printed", 0.893, math.nan, math.nan),
            ("one", "measured", 1.0, 0.95, 1.05),
        ],
        columns=["label", "kind", "value", "low", "high"],
    )
    said = narrate.described(frame)
    assert said == "Printed: one 0.699, two 0.893. This run: one 1.00 [0.95, 1.05]."
    panels = narrate.described(frame[["label", "kind", "value"]].assign(panel="reads"))
    assert panels.startswith("Printed, reads: one 0.699") and "[" not in panels


def test_sentences_join_with_a_space():
    both = narrate.Sentence("One.") + narrate.Sentence("Two.")
    assert both == "One. Two." and isinstance(both, narrate.Sentence)


# ---- findings

NUMERIC = (1.41, 0.62, 1.0)


def scored():
    return [c for c in claims.ledger().values() if c.scored and c.predicate]


def planted(subject):
    """Evidence that the claim's predicate takes; `finding` is asked for it with every word."""
    if subject.predicate is Predicate.BUG:
        return [True]
    if subject.predicate is Predicate.FACTS:
        return [
            {"pages fill up": Part(True), "none is new": Part(value)} for value in (False, None)
        ]
    parts = set(subject.sizes) - {""}
    one = [Interval(x, 0.9 * x, 1.1 * x, 7) for x in NUMERIC] + [statistics.exact(1.0)]
    return one if not parts else [{name: Part(x) for name in parts} for x in one]


def known_numbers(judged):
    given = judged.evidence if isinstance(judged.evidence, dict) else {"": Part(judged.evidence)}
    values = [part.value for part in given.values() if isinstance(part.value, Interval)]
    told = [
        narrate.evidence(judged),
        narrate.printed_value(judged.claim),
        *(narrate.judged_size(judged.claim, one) for one in judged.claim.sizes.values()),
    ]
    told += [narrate.number(end, 3) for x in values for end in (x.low, x.high, x.estimate)]
    told += [narrate.number(end, 2) for x in values for end in (x.low, x.high, x.estimate)]
    return set(re.findall(r"\d[\d.,]*(?<![.,])", " ".join(told)))


DIRECTED = re.compile("larger|smaller|agree|opposite|claimed|no difference|refuted|confirmed", re.I)


def test_a_ratio_says_what_it_is_relative_to():
    for subject in claims.ledger().values():
        assert not subject.quantity.startswith("ratio of"), subject.id
        assert " relative to " not in subject.quantity or not subject.scored, subject.id


@pytest.mark.parametrize("foretold", [True, False])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_became_of_a_prediction_is_true_for_every_verdict(verdict, foretold):
    judged = {"a-001": verdicts.Judgement(claim(Predicate.FACTS), verdict, None, "", "")}
    said = narrate.outcome({"a-001": foretold}, judged)
    held = {Verdict.HOLDS, Verdict.STRONGER, Verdict.STILL_THERE}
    refuted = {Verdict.NOT_REPRODUCED, Verdict.REVERSED, Verdict.FIXED}
    refuted |= {Verdict.NO_EFFECT, Verdict.NOT_SO, Verdict.DIFFERENT_NOW}
    expected = dict.fromkeys((Verdict.WEAKER, Verdict.PARTLY), "Came true in part")
    expected[Verdict.INCONCLUSIVE] = "Undecided"
    expected[Verdict.NOT_TESTED] = "Not tested here"
    expected |= dict.fromkeys(held, "Came true" if foretold else "Failed")
    expected |= dict.fromkeys(refuted, "Failed" if foretold else "Came true")
    decided = verdict not in (Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)
    named = "a-001" if foretold or not decided else "that a-001 doesn't hold"
    assert said.startswith(f"{expected[verdict]}: {named}")


@pytest.mark.parametrize(
    ("foretold", "word"), [(True, "Failed: a-001"), (False, "Came true: a-001")]
)
def test_a_prediction_that_a_bug_is_fixed_came_true_if_it_is(foretold, word):
    bug = claim(Predicate.BUG)
    judged = {"a-001": verdicts.Judgement(bug, Verdict.FIXED, Part(False))}
    assert narrate.outcome({"a-001": foretold}, judged) == f"{word} (the bug is fixed)."
    judged = {"a-001": verdicts.Judgement(bug, Verdict.INCONCLUSIVE, None)}
    assert narrate.outcome({"a-001": foretold}, judged) == "Undecided: a-001."


def test_a_prediction_about_several_claims_is_told_by_outcome():
    judged = {
        "a-001": verdicts.set_aside(claim(Predicate.FACTS), "x", "y"),
        "a-002": verdicts.Judgement(claim(Predicate.FACTS), Verdict.NOT_SO, None),
    }
    said = narrate.outcome({"a-001": True, "a-002": True, "a-003": True}, judged)
    assert re.fullmatch(r"Not tested here: a-001; failed: a-002; not run: a-003\.", said)


def test_an_opinion_is_told_as_one_with_what_is_shown_beside_it():
    subject = claim(Predicate.FACTS, basis=Basis.OPINION)
    found = {"pages fill up": True, "none is new": False, "fast": supporting(True)}
    said = narrate.evidence(verdicts.judge(subject, found))
    assert said == (
        "an opinion, which nothing decides; beside it found: pages fill up; refuted: none is new"
    )
    number = verdicts.judge(claim(Predicate.DIRECTION, basis=Basis.OPINION), interval(1.2, 1.4))
    assert "opinion" in narrate.evidence(number) and "[1.20, 1.40]" in narrate.evidence(number)
