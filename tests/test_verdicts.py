"""Every rule of judging: its cases, what no evidence may lead to, and planted worlds."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_claims import claim, interval

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.record import claims, runs, statistics, verdicts
from pgrerun.record.claims import Basis, Predicate
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Judge, Judgement, Part, Verdict

# ---- effects: E = 1.5 with its tolerance [1.45, 1.55], or its inverse; band [1/1.05, 1.05]

EFFECTS = [
    (1.6, 1.8, Verdict.STRONGER),
    (1.551, 9, Verdict.STRONGER),
    (1.54, 9, Verdict.HOLDS),
    (1.4, 1.6, Verdict.HOLDS),
    (1.4, 1.46, Verdict.HOLDS),  # reaching the tolerance is enough
    (1.06, 1.6, Verdict.HOLDS),
    (1.05, 1.6, Verdict.INCONCLUSIVE),  # the end of the margin is still inside it
    (1.2, 1.4499, Verdict.WEAKER),
    (1.06, 1.3, Verdict.WEAKER),
    (1.01, 1.3, Verdict.NOT_REPRODUCED),  # perhaps too small to matter
    (1.01, 1.05, Verdict.NO_EFFECT),  # significant, but of no interest
    (0.96, 1.05, Verdict.NO_EFFECT),
    (1 / 1.05, 1.05, Verdict.NO_EFFECT),
    (1.0, 1.3, Verdict.NOT_REPRODUCED),  # 1 belongs to the interval, the print doesn't
    (0.97, 1.18, Verdict.NOT_REPRODUCED),
    (0.96, 1.06, Verdict.NOT_REPRODUCED),
    (0.9, 1.6, Verdict.INCONCLUSIVE),
    (0.9, 1.46, Verdict.INCONCLUSIVE),
    (0.9, 0.99, Verdict.NOT_REPRODUCED),
    (0.9, 1 / 1.05, Verdict.NOT_REPRODUCED),
    (0.9, 0.95, Verdict.REVERSED),
    (0.5, 0.7, Verdict.REVERSED),
]


# A range has two sides: [1.25, 2], and in the other direction [0.5, 0.8].
SIDES = [
    (1.1, 1.2, Verdict.WEAKER),
    (1.1, 1.25, Verdict.HOLDS),
    (1.5, 1.6, Verdict.HOLDS),
    (1.9, 4, Verdict.HOLDS),
    (2.01, 4, Verdict.STRONGER),
    (0.9, 1.2, Verdict.NOT_REPRODUCED),
    (0.9, 1.3, Verdict.INCONCLUSIVE),
]
# Where the inverse of an end is not exactly the end of the inverse.
ROUNDED = [(1 / 1.05, 1.05), (1.05, 1.6), (0.9, 1 / 1.05)]
TURNED = [effect for effect in EFFECTS if effect[:2] not in ROUNDED]


@pytest.mark.parametrize(
    ("printed", "turned", "low", "high", "verdict"),
    [
        *((1.5, False, *effect) for effect in EFFECTS),
        *((1 / 1.5, True, *effect) for effect in TURNED),
        *(((1.25, 2.0), False, *side) for side in SIDES),
        *(((0.5, 0.8), True, *side) for side in SIDES),
    ],
)
def test_ratio_in_either_direction(printed, turned, low, high, verdict):
    given = interval(low, high).inverse() if turned else interval(low, high)
    found = verdicts.judge(claim(Predicate.RATIO, printed), given)
    assert found.verdict is verdict and found.evidence == given  # shown as measured


ONE = claim(Predicate.BETWEEN, 1, tolerance=0.05)
# Evidence, and whether it is at most and at least six.
BOUNDS = [
    (6, Verdict.HOLDS, Verdict.HOLDS),  # the bound belongs to both sides
    (5.99, Verdict.HOLDS, Verdict.NOT_SO),
    (np.int64(7), Verdict.NOT_SO, Verdict.HOLDS),
    (interval(4, 6), Verdict.HOLDS, Verdict.INCONCLUSIVE),
    (interval(6, 7), Verdict.INCONCLUSIVE, Verdict.HOLDS),
    (interval(5, 7), Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    (interval(7, 8), Verdict.NOT_SO, Verdict.HOLDS),
    ({"reads": 5, "writes": 6}, Verdict.HOLDS, Verdict.PARTLY),
    ({"reads": 5, "writes": 7}, Verdict.PARTLY, Verdict.PARTLY),
    ({"reads": 8, "writes": 7}, Verdict.NOT_SO, Verdict.HOLDS),
    ({"reads": 8, "writes": interval(5, 7)}, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ({"reads": 5, "writes": interval(1, 2, n=3)}, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ({"reads": 5, "writes": Part(9, essential=False)}, Verdict.HOLDS, Verdict.NOT_SO),
]
OPPOSITE = Part(False, opposite=True)
FACTS = [
    ({"a": True, "b": np.True_}, Verdict.HOLDS),
    ({"a": True, "b": False}, Verdict.PARTLY),
    ({"a": False}, Verdict.NOT_SO),
    ({"a": True, "b": None}, Verdict.INCONCLUSIVE),
    ({"a": False, "b": None}, Verdict.INCONCLUSIVE),
    (
        {"a": True, "b": Part(False, essential=False), "c": Part(None, essential=False)},
        Verdict.HOLDS,
    ),
    ({"a": False, "b": Part(True, essential=False)}, Verdict.NOT_SO),
    ({"a": OPPOSITE}, Verdict.REVERSED),
    ({"a": OPPOSITE, "b": OPPOSITE}, Verdict.REVERSED),
    ({"a": OPPOSITE, "b": False}, Verdict.NOT_SO),
    ({"a": Part(False, opposite=None)}, Verdict.NOT_SO),
    ({"a": Part(True, opposite=True)}, Verdict.HOLDS),
]


@pytest.mark.parametrize(
    ("subject", "evidence", "verdict"),
    [
        (claim(Predicate.DIRECTION), interval(1.06, 9), Verdict.HOLDS),
        (claim(Predicate.DIRECTION), interval(1.01, 2), Verdict.INCONCLUSIVE),
        (claim(Predicate.DIRECTION), interval(1.01, 1.04), Verdict.NO_EFFECT),
        (claim(Predicate.DIRECTION), interval(0.9, 1.1), Verdict.INCONCLUSIVE),
        (claim(Predicate.DIRECTION), interval(0.5, 0.95), Verdict.REVERSED),
        (claim(Predicate.BETWEEN, 57), interval(54, 60), Verdict.HOLDS),
        (claim(Predicate.BETWEEN, 57), interval(51.3, 62.7), Verdict.HOLDS),
        (claim(Predicate.BETWEEN, 57), interval(40, 51), Verdict.DIFFERENT_NOW),
        (claim(Predicate.BETWEEN, 57), interval(63, 70), Verdict.DIFFERENT_NOW),
        (claim(Predicate.BETWEEN, 57), interval(50, 60), Verdict.INCONCLUSIVE),
        (claim(Predicate.BETWEEN, 57), interval(20, 90), Verdict.INCONCLUSIVE),
        (claim(Predicate.BETWEEN, (2, 5)), interval(2, 5), Verdict.HOLDS),
        (claim(Predicate.BETWEEN, (2, 5)), 5.01, Verdict.DIFFERENT_NOW),
        (claim(Predicate.BETWEEN, (2, 5)), interval(1, 3), Verdict.INCONCLUSIVE),
        (ONE, interval(0.97, 1.04), Verdict.HOLDS),
        (ONE, interval(0.5, 0.8), Verdict.DIFFERENT_NOW),
        (claim(Predicate.EQUALS, 0.3), 0.3, Verdict.HOLDS),
        (claim(Predicate.EQUALS, 0.3), 0.1 + 0.2, Verdict.HOLDS),
        (claim(Predicate.EQUALS, 0.3), 0.31, Verdict.DIFFERENT_NOW),
        (claim(Predicate.BUG), True, Verdict.STILL_THERE),
        (claim(Predicate.BUG), False, Verdict.FIXED),
        (claim(Predicate.BUG), np.False_, Verdict.FIXED),
        *((claim(Predicate.AT_MOST, 6), evidence, most) for evidence, most, _ in BOUNDS),
        *((claim(Predicate.AT_LEAST, 6), evidence, least) for evidence, _, least in BOUNDS),
        *((claim(Predicate.FACTS), facts, verdict) for facts, verdict in FACTS),
    ],
)
def test_each_other_predicate_has_its_words(subject, evidence, verdict):
    assert verdicts.judge(subject, evidence).verdict is verdict


RATIOS = st.tuples(st.floats(0.2, 5), st.floats(1.0, 2.0)).map(lambda x: (x[0], x[0] * x[1]))


@given(RATIOS, st.floats(1.2, 4), st.floats(0.01, 0.15), st.floats(0, 0.3))
def test_a_ratio_gets_each_word_where_its_definition_fits_and_nowhere_else(
    ends, effect, margin, tolerance
):
    low, high = ends
    subject = claim(Predicate.RATIO, effect, margin, tolerance=tolerance)
    least, most = verdicts.reached(subject, claims.Size(effect, effect))
    there, other_way = low > 1 + margin, high < 1 / (1 + margin)
    gone = statistics.equivalent(Interval(low, low, high, 7), margin)
    open_ = not (there or other_way or gone)
    definitions = {
        Verdict.NO_EFFECT: gone,
        Verdict.REVERSED: other_way,
        Verdict.STRONGER: there and low > most,
        Verdict.WEAKER: there and high < least,
        Verdict.HOLDS: there and low <= most and high >= least,
        Verdict.NOT_REPRODUCED: open_ and high < least,
        Verdict.INCONCLUSIVE: open_ and high >= least,
    }
    verdict = verdicts.judge(subject, Interval(low, low, high, 7)).verdict
    assert [word for word, fits in definitions.items() if fits] == [verdict]


# ---- numbers, bounds, exact facts


@pytest.mark.parametrize("predicate", sorted(claims.WITH_PRINTED - {Predicate.EQUALS}))
def test_too_few_pairs_decide_nothing(predicate):
    found = verdicts.judge(claim(predicate, 1.5), interval(1.6, 1.8, n=4))
    assert found.verdict is Verdict.INCONCLUSIVE and "4 of at least 5" in found.reason
    nothing = verdicts.judge(claim(predicate, 1.5), math.nan)
    assert nothing.verdict is Verdict.INCONCLUSIVE and "disturbed" in nothing.reason


# ---- several parts


def test_each_part_is_judged_by_its_own_print():
    subject = claim(Predicate.RATIO, {"reads": 2.0, "writes": 4.0})
    found = verdicts.judge(subject, {"reads": 2.0, "writes": interval(2, 3)})
    assert found.verdict is Verdict.PARTLY and found.reason == "reads: holds; writes: weaker"
    with pytest.raises(TypeError, match="reads, writes"):
        verdicts.judge(subject, {"reads": 2.0})
    with pytest.raises(TypeError, match="several sizes"):
        verdicts.judge(subject, 2.0)
    assert subject.printed is None


@pytest.mark.parametrize(
    ("words", "together"),
    [
        ("weaker, weaker", "weaker"),
        ("holds, stronger", "partly"),
        ("holds, weaker", "partly"),
        ("stronger, reversed", "partly"),
        ("partly, no effect", "partly"),
        ("not reproduced, no effect", "not reproduced"),
        ("reversed, no effect", "no effect"),
        ("holds, stronger, inconclusive", "inconclusive"),
    ],
)
def test_parts_with_several_words_give_one_together(words, together):
    assert verdicts.combined(map(Verdict, words.split(", "))) == together


# ---- facts


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        *((verdicts.greater(interval(*x), 1), y) for x, y in (((1.1, 2), True), ((0.5, 1), False))),
        *((verdicts.less(interval(*x), 1), y) for x, y in (((0.5, 0.9), True), ((1, 2), False))),
        (verdicts.greater(interval(0.9, 1.1), 1), None),
        (verdicts.less(interval(0.9, 1.1), 1), None),
        (verdicts.about(interval(1.9, 2.1), 2, 0.1), True),
        (verdicts.about(interval(2.3, 3), 2, 0.1), False),
        (verdicts.about(interval(1.9, 3), 2, 0.1), None),
        # too few pairs
        (verdicts.greater(interval(2, 3, n=4), 1), None),
        (verdicts.less(interval(2, 3, n=4), 9), None),
        (verdicts.about(interval(2, 3, n=4), 2.5, 1), None),
        (verdicts.greater(statistics.exact(5), 4), True),
    ],
)
def test_facts_of_intervals_are_yes_no_or_unresolved(found, answer):
    assert found is answer


@pytest.mark.parametrize(
    ("predicate", "evidence"),
    [
        (Predicate.RATIO, True),
        (Predicate.RATIO, "1.5"),
        (Predicate.RATIO, None),
        (Predicate.RATIO, {"a": Part(1.0, essential=False)}),
        (Predicate.AT_MOST, {}),
        (Predicate.AT_MOST, {"a": True}),
        (Predicate.EQUALS, interval(1, 2)),
        (Predicate.FACTS, {}),
        (Predicate.FACTS, True),
        (Predicate.FACTS, {"a": 1}),
        (Predicate.FACTS, {"a": interval(1, 2)}),
        (Predicate.FACTS, {"a": Part(True, essential=False)}),
        (Predicate.BUG, 0),
        (Predicate.BUG, "no"),
        (Predicate.BUG, None),
        (None, 1.0),  # a claim that declares none
    ],
)
def test_evidence_of_the_wrong_kind_is_a_bug_of_the_chapter(predicate, evidence):
    printed = 2.0 if predicate in claims.WITH_PRINTED else None
    with pytest.raises((TypeError, BookError), match="lai-001"):
        verdicts.judge(claim(predicate, printed), evidence)


# ---- basis and regime


def test_an_opinion_is_not_testable_and_keeps_what_was_found():
    found = verdicts.judge(claim(Predicate.FACTS, basis=Basis.OPINION), {"a": True})
    assert found.verdict is Verdict.NOT_TESTED and found.capability == verdicts.OPINION
    assert found.evidence == {"a": Part(True)}


@pytest.fixture
def known(monkeypatch):
    def only(subject):
        monkeypatch.setattr(claims, "ledger", lambda *file: {subject.id: subject})
        return subject

    return only


@pytest.fixture
def judge_of(known):
    return lambda subject, **more: Judge(known(subject).chapter, **more)


@pytest.mark.parametrize(
    ("basis", "word"), [(Basis.TIMED, Verdict.INCONCLUSIVE), (Basis.COUNTED, Verdict.HOLDS)]
)
def test_where_times_decide_nothing_only_counts_get_a_word(judge_of, basis, word):
    subject = claim(Predicate.DIRECTION, basis=basis)
    judge = judge_of(subject, times_decide=False)
    found = judge.judge(subject.id, interval(2, 3), beside={"in pages": interval(2, 3)})
    assert found.verdict is word and found.evidence == interval(2, 3)
    assert found.beside["in pages"].verdict is Verdict.HOLDS
    again = Judgement.from_dict(found.as_dict())
    assert again is not None and (again.verdict, again.reason) == (word, found.reason)
    assert judge_of(subject).judge(subject.id, interval(2, 3)).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("waiting", "processors", "missing", "beside", "said"),
    [
        (interval(0.1, 0.4), 64, "waiting for reads", "outside of", "it speaks of another regime"),
        (interval(0.6, 0.9), 2, "16 processors", "outside of", "it speaks of another regime"),
        # one that isn't reached goes before one that may be: more blocks would tell nothing then
        (interval(0.4, 0.8), 2, "16 processors", "outside of", "it speaks of another regime"),
        (interval(0.4, 0.8), 64, "waiting for reads", "if this is", "is open"),
    ],
)
def test_outside_of_its_regime_a_claim_is_not_testable(
    judge_of, waiting, processors, missing, beside, said
):
    subject = claim(Predicate.DIRECTION, regime="waiting for reads and 16 processors")
    there = {"waiting for reads": interval(0.6, 0.9), "16 processors": 64}
    judge = judge_of(subject)
    with pytest.raises(BookError, match="nobody measured"):
        judge.judge("lai-001", interval(2, 3))
    assert judge.judge("lai-001", interval(2, 3), regime=there).verdict is Verdict.HOLDS
    here = {"waiting for reads": waiting, "16 processors": processors}
    found = judge.judge("lai-001", interval(2, 3), regime=here)
    assert (found.verdict, found.capability, found.evidence) == (Verdict.NOT_TESTED, missing, None)
    assert said in found.reason
    assert found.beside[f"{beside} “{missing}”"].verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.40, 0.45, Verdict.HOLDS),
        (0.27, 0.34, Verdict.NOT_TESTED),  # a backend that computes too little
        (0.30, 0.45, Verdict.NOT_TESTED),
        (0.40, 0.60, Verdict.NOT_TESTED),
    ],
)
def test_a_regime_may_end_above_as_well(judge_of, low, high, word):
    name = "the report's share of the processor"
    judge, here = judge_of(claim(Predicate.DIRECTION, regime=name)), {name: interval(low, high)}
    assert judge.judge("lai-001", interval(2, 3), regime=here).verdict is word


def test_what_stands_beside_decides_nothing(judge_of):
    subject = claim(Predicate.RATIO, 1.5)
    others = {
        "at 100,000 tuples": interval(0.5, 0.7),
        "in another way": interval(9, 10),
    }
    found = judge_of(subject).judge("lai-001", interval(1.4, 1.6), beside=others)
    assert found.verdict is Verdict.HOLDS
    assert [one.verdict for one in found.beside.values()] == [Verdict.REVERSED, Verdict.STRONGER]


# ---- planted worlds


def blocks(rng, effect, noise=0.03, n=21):
    """Pairs of values with this ratio, lognormal with that coefficient of variation."""
    a, b = rng.lognormal(0, noise, (2, n))
    return statistics.ratio(effect * a, b, seed=int(rng.integers(2**31)))


def counts(rng, effect):
    """Pages of two relations, one of which is so many times as large: Poisson noise on 1,000."""
    return statistics.ratio(rng.poisson(1000 * effect, 21), rng.poisson(1000, 21))


def slower(rng, effect):
    found = blocks(rng, effect, 0.02)
    faster = verdicts.less(found, 1 / 1.05)
    return {"b is slower": Part(verdicts.greater(found, 1.05), opposite=faster)}


RIGHT = [
    (1.0, {Verdict.NO_EFFECT, Verdict.NOT_REPRODUCED}),
    (2.0, {Verdict.HOLDS}),
    (1.5, {Verdict.WEAKER}),  # half of the effect
    (0.5, {Verdict.REVERSED}),
    (3.0, {Verdict.STRONGER}),  # double the effect
]


@pytest.mark.parametrize(
    ("subject", "planted", "effect", "right"),
    [
        *((claim(Predicate.RATIO, 2.0), blocks, *one) for one in RIGHT),
        *((claim(Predicate.RATIO, 2.0, basis=Basis.COUNTED), counts, *one) for one in RIGHT),
        (claim(Predicate.DIRECTION), blocks, 1.0, {Verdict.NO_EFFECT}),
        (claim(Predicate.DIRECTION), blocks, 1.5, {Verdict.HOLDS}),
        (claim(Predicate.DIRECTION), blocks, 0.7, {Verdict.REVERSED}),
        (claim(Predicate.BETWEEN, 1.0), blocks, 1.0, {Verdict.HOLDS}),
        (claim(Predicate.BETWEEN, (0.9, 1.1)), blocks, 1.0, {Verdict.HOLDS}),
        (claim(Predicate.BETWEEN, 1.0), blocks, 1.5, {Verdict.DIFFERENT_NOW}),
        (claim(Predicate.AT_MOST, 1.2), blocks, 1.0, {Verdict.HOLDS}),
        (claim(Predicate.AT_MOST, 1.2), blocks, 1.5, {Verdict.NOT_SO}),
        (claim(Predicate.AT_LEAST, 1.2), blocks, 1.5, {Verdict.HOLDS}),
        (claim(Predicate.AT_LEAST, 1.2), blocks, 1.0, {Verdict.NOT_SO}),
        (claim(Predicate.FACTS), slower, 1.3, {Verdict.HOLDS}),
        (claim(Predicate.FACTS), slower, 1.0, {Verdict.NOT_SO}),
        (claim(Predicate.FACTS), slower, 0.7, {Verdict.REVERSED}),
    ],
)
def test_planted_worlds_get_the_right_word(subject, planted, effect, right):
    rng = np.random.default_rng(1990)
    words = [verdicts.judge(subject, planted(rng, effect)).verdict for _ in range(100)]
    assert sum(word in right for word in words) >= 95


# ---- noise


@pytest.mark.parametrize(
    ("found", "floor", "word"),
    [
        (interval(1.2, 1.3), 1.1, Verdict.WEAKER),
        (interval(1.06, 1.12), 1.1, Verdict.NOT_REPRODUCED),  # 1.5 would have been seen
        (interval(1.06, 1.12), 1.6, Verdict.INCONCLUSIVE),
        (interval(1.06, 1.12), 1.04, Verdict.WEAKER),  # noise within the margin hides nothing
        (interval(0.88, 0.94), 1.1, Verdict.NOT_REPRODUCED),
        (interval(0.88, 0.94), 1.6, Verdict.INCONCLUSIVE),
        (interval(0.98, 1.02), 1.1, Verdict.NOT_REPRODUCED),
        (interval(0.98, 1.02), 1.6, Verdict.INCONCLUSIVE),
        (interval(0.98, 1.02), 1.04, Verdict.NO_EFFECT),
        (interval(0.95, 1.15), 1.1, Verdict.NOT_REPRODUCED),
        (interval(0.95, 1.15), 1.6, Verdict.INCONCLUSIVE),
        (statistics.exact(1.06), 1.1, Verdict.WEAKER),
    ],
)
def test_an_effect_within_the_noise_gets_no_word(found, floor, word, known):
    noise = statistics.NoiseFloor(interval(1 / floor, floor))
    timed = known(claim(Predicate.RATIO, 1.5, basis=Basis.TIMED))
    judged = verdicts.judge(timed, found, noise=noise)
    assert judged.verdict is word
    hidden = word in (Verdict.INCONCLUSIVE, Verdict.NOT_REPRODUCED)
    assert ("A/A comparison" in judged.reason) == hidden
    counted = verdicts.judge(claim(Predicate.RATIO, 1.5, basis=Basis.COUNTED), found, noise=noise)
    assert counted.verdict is verdicts.judge(timed, found).verdict
    assert Judgement.from_dict(json.loads(json.dumps(judged.as_dict()))) == judged


# ---- rules that change


def test_a_rule_is_told_from_any_other():
    subject = claim(Predicate.RATIO, 1.5)
    digest = verdicts.rule_digest(subject, "a < b")
    assert digest == verdicts.rule_digest(subject.model_copy(update={"note": "x"}), "a < b")
    changes = {"predicate": Predicate.BETWEEN, "expression": "1.6", "margin": 0.1, "regime": "x"}
    changes |= {"tolerance": 0.2, "basis": Basis.TIMED, "needs": "y", "quantity": "z", "unit": "%"}
    others = [subject.model_copy(update={name: new}) for name, new in changes.items()]
    digests = [verdicts.rule_digest(other, "a < b") for other in others]
    digests.append(verdicts.rule_digest(subject, "a > b"))
    assert len({digest, *digests}) == len(changes) + 2


def test_a_rule_that_changed_after_measuring_marks_the_judgement(known):
    subject = claim(Predicate.RATIO, 1.5)
    kept = verdicts.judge(subject, interval(1.4, 1.6)).as_dict()
    aside = verdicts.set_aside(subject, "perf", "none").as_dict()
    # up to format 2 nobody kept the rule
    unknown = {name: value for name, value in kept.items() if name != "rule"}
    stale = []
    for ruled in (subject, subject.model_copy(update={"margin": 0.1})):
        known(ruled)
        found = [Judgement.from_dict(row) for row in (kept, aside, unknown)]
        # what is kept anew is not measured anew
        found += [Judgement.from_dict(found[0].as_dict())]
        stale.append([one.stale_rule for one in found])
    assert stale == [[False] * 4, [True, True, False, True]]


# ---- records


@pytest.mark.parametrize(
    ("subject", "evidence"),
    [
        (claim(Predicate.RATIO, 1.5), interval(1.2, 1.3)),
        (claim(Predicate.RATIO, 1.5), {"reads": 5.0, "writes": Part(7.0, essential=False)}),
        (claim(Predicate.RATIO, 1.5), Interval(9, 2, math.inf, 7)),
        (claim(Predicate.DIRECTION, regime="16 processors"), interval(2, 3)),
        (claim(Predicate.FACTS, basis=Basis.OPINION), {"a": True}),
    ],
)
def test_a_judgement_survives_its_record(judge_of, subject, evidence):
    here = dict.fromkeys(subject.regimes, 2)
    found = judge_of(subject).judge("lai-001", evidence, regime=here)
    assert Judgement.from_dict(json.loads(json.dumps(runs.scrub(found.as_dict())))) == found


OLD = {"claim": "lai-001", "chapter": "tp1", "capability": "", "printed": 1.5}


@pytest.mark.parametrize(
    ("predicate", "kept", "verdict"),
    [
        (Predicate.RATIO, ("holds", interval(2, 3), "the effect is larger"), Verdict.STRONGER),
        (Predicate.RATIO, ("not resolved", interval(0.9, 1.2), "x"), Verdict.NOT_REPRODUCED),
        (Predicate.FACTS, ("weaker", {"a": True, "b": False}, ""), Verdict.PARTLY),
        (Predicate.BUG, ("fixed", False, ""), Verdict.FIXED),
        (Predicate.BUG, ("not testable here", None, "no perf"), Verdict.NOT_TESTED),
    ],
)
def test_an_old_record_is_judged_by_the_rules_of_today(predicate, kept, verdict, known):
    known(claim(predicate, 1.5 if predicate in claims.WITH_PRINTED else None))
    word, evidence, note = kept
    row = OLD | {"predicate": str(predicate), "verdict": word, "note": note}
    row["evidence"] = verdicts.plain(evidence)
    assert Judgement.from_dict(row).verdict is verdict and verdicts.word(row) == verdict


@pytest.mark.parametrize(
    ("word", "predicate", "now"),
    [
        ("gone", "ratio", "no effect"),
        ("gone", "direction", "no effect"),
        ("gone", "between", "different now"),
        ("gone", "equals", "different now"),
        ("gone", "at most", "not so"),
        ("gone", "facts", "not so"),
        ("weaker", "ratio", "weaker"),
        ("weaker", "direction", "partly"),
        ("weaker", "facts", "partly"),
        ("not testable here", "bug", "not tested here"),
        ("gone", "bug", "gone"),
        ("splendid", "ratio", "splendid"),
        ("gone", "no predicate", "gone"),
    ],
)
def test_old_words_become_what_they_meant(word, predicate, now):
    assert verdicts.today(word, predicate) == now


def test_a_part_that_decided_once_and_has_no_printed_size_now_judges_nothing(known):
    subject = known(claim(Predicate.BETWEEN, {"one": 1, "two": 2}))
    row = verdicts.judge(
        subject, {"one": statistics.exact(1), "two": statistics.exact(2)}
    ).as_dict()
    row["evidence"]["three"] = row["evidence"]["two"]
    assert Judgement.from_dict(row) is None and verdicts.word(row) == "holds"


@pytest.mark.parametrize(
    "damage",
    [
        {"evidence": {"a": {"value": "yes", "essential": True, "opposite": None}}},
        {"evidence": {"estimate": "x", "low": 1, "high": 2}},
        {"evidence": 7},
        {"evidence": {}},
        {"beside": {"a": {"verdict": "splendid", "evidence": None}}},
        {"beside": {"a": 7}},
        {"regime": {"a": {"estimate": 1, "low": 2, "high": 3}}},
    ],
)
def test_what_anybody_may_have_written_is_no_judgement(damage, known):
    subject = known(claim(Predicate.FACTS))
    row = verdicts.judge(subject, {"a": True}).as_dict()
    assert Judgement.from_dict(row) is not None
    assert Judgement.from_dict(row | damage) is None
    assert verdicts.word(row | damage) == "holds"


# ---- a chapter's judge


def test_a_chapter_is_judged_whole_and_each_claim_once_and_by_its_own_judge(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    first, *others, twice = (one.id for one in claims.ledger().values() if one.chapter == "tp1")
    with runs.Run.open("mine", "tp1", key="k", environment={}) as run:
        judge = Judge("tp1", run)
        for id in (*others, twice, twice):
            judge.set_aside(id, CannotMeasure("restart", "it needs a restart"))
        left = f"1 of its claims were left unjudged: {first}"
        with pytest.raises(BookError, match=rf"(?s){left}.*more than once: {twice}"):
            judge.close()
    stored = {kept["claim"]: kept["capability"] for kept in runs.load("mine", "tp1").verdicts}
    assert stored == dict.fromkeys([*others, twice], "restart")
    with pytest.raises(BookError, match="belongs to 'hot'"):
        judge.judge("hot-001", 2.0)
    with pytest.raises(BookError, match="none of that id"):
        judge.set_aside("lai-999", CannotMeasure("x", "y"))
    with pytest.raises(BookError, match="no claims of chapter 'tp2'"):
        Judge("tp2")


def test_what_is_out_of_reach_by_now_is_not_judged_by_what_was_measured_once(known):
    subject = claim(Predicate.DIRECTION)
    row = verdicts.judge(subject, interval(2, 3)).as_dict()
    known(claim(Predicate.DIRECTION, needs="INGRES"))
    found = Judgement.from_dict(row)
    assert (found.verdict, found.capability) == (Verdict.NOT_TESTED, "INGRES")
