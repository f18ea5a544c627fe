"""Several runs: which words they share, which word they give together, how quiet they were."""

import pytest

from pgrerun.record import agreement, claims, runs, verdicts
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Verdict
from pgrerun.site import published_runs, scoreboard

pytestmark = pytest.mark.usefixtures("own_runs")
LEDGER = claims.ledger()
RATIOS = [
    one
    for one in LEDGER.values()
    if one.predicate == "direction" and one.scored and not one.regimes and not one.capabilities
][:3]


def make(name, *effects, busy=0):
    """A run that finds these effects, one a claim of `RATIOS`, all in the first one's chapter."""
    with runs.Run.open(name, "tp1", key="k", environment={}) as run:
        for block in range(4):
            used = 0.5 if block < busy else 0.0
            run.append("ladder", {"block": block, "tps": 1.0, "other_load": used})
        run.complete("ladder", {"units": {"tps": "1/s"}})
        for claim, effect in zip(RATIOS, effects, strict=True):
            found = (
                verdicts.set_aside(claim, "perf", "there is none")
                if effect is None
                else verdicts.judge(claim, Interval(effect, 0.99 * effect, 1.01 * effect, 7))
            )
            run.add_verdict(found.as_dict())
    return runs.load(name)


def test_words_are_those_that_all_runs_gave_by_the_rules_of_today():
    found = agreement.words(
        {"a": make("a", 3, 3, None), "b": make("b", 3, 1, None), "c": make("c", 3, 3, None)}
    )
    first, second, third = (claim.id for claim in RATIOS)
    assert set(found.index) == {first, second} and third not in found.index  # tested by none
    assert found.loc[second].tolist() == [Verdict.HOLDS, Verdict.NO_EFFECT, Verdict.HOLDS]
    assert agreement.agreed(found).to_dict() == {first: True, second: False}


def test_a_claim_that_one_run_has_not_judged_is_not_compared():
    kept = make("b", 3, 3, 3)
    del kept.verdicts[0]
    assert RATIOS[0].id not in agreement.words({"a": make("a", 3, 3, 3), "b": kept}).index


def published_words():
    judged = scoreboard.judgements(scoreboard.published_records())
    return [str(judged[claim.id].verdict) for claim in RATIOS], judged[RATIOS[1].id].remarks


def test_the_published_word_is_the_one_that_all_published_runs_gave():
    make("published", 3, 1, 3)  # alone it speaks for itself
    assert published_words()[0] == [Verdict.HOLDS, Verdict.NO_EFFECT, Verdict.HOLDS]
    assert "nothing can be" in published_runs.agreeing()
    make("published-2", 3, 3, 3)
    make("published-3", 3, 3, 3)
    make("published-2x", 1, 1, 1)  # a reader's, and no published one
    words, remarks = published_words()
    assert runs.published() == ["published", "published-2", "published-3"]
    assert words == [Verdict.HOLDS, Verdict.INCONCLUSIVE, Verdict.HOLDS]
    assert "no effect, holds, holds" in remarks
    said = published_runs.agreeing()
    assert "2 of 3" in said and "66.7 %" in said and "goal" in said


def test_what_was_measured_on_a_busy_machine_is_counted_once_a_measurement():
    make("published", 3, 3, 3, busy=3)
    said = published_runs.quiet({"tp1": "The TP1 benchmark"})
    assert "3 of 4 measurements" in said and "“The TP1" in said
    make("published", 3, 3, 3)
    make("published-2", 3, 3, 3, busy=1)
    said = published_runs.quiet({})
    assert "none of 4" in said and "“published-2”, 1 of 4" in said
