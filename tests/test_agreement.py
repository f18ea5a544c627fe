"""Several runs: which words they share, which word they give together, how quiet they were."""

import json

import pytest

from pgrerun.record import agreement, claims, runs, verdicts
from pgrerun.record.runs import Run
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Verdict
from pgrerun.site import published_runs, scoreboard

LEDGER = claims.ledger()
RATIOS = [
    one
    for one in LEDGER.values()
    if one.predicate == "direction" and one.scored and not one.regimes and not one.capabilities
][:3]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path))
    monkeypatch.setattr(runs, "CHECKOUT", tmp_path)
    return tmp_path


def make(name, *effects, busy=0):
    """A run that finds these effects, one a claim of `RATIOS`, all in the first one's chapter."""
    with Run.open(name, "tp1", key="k", environment={}) as run:
        for block in range(4):
            run.observe(
                "ladder",
                "one",
                block,
                {"tps": 1.0, "reads": 2.0},
                units={"tps": "1/s", "reads": ""},
                seed=1,
                position=0,
                started_at="",
                flags={"busy": True} if block < busy else {},
            )
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


def test_how_often_runs_agree_is_counted_by_basis():
    found = agreement.words({"a": make("a", 3, 3, 0.2), "b": make("b", 3, 1, 0.2)})
    rows = agreement.by_basis(found).set_index("basis")
    assert rows.loc["all"].tolist() == [3, 2, pytest.approx(2 / 3)]
    assert rows["claims"].drop("all").sum() == 3 and rows["agreed"].drop("all").sum() == 2


def test_a_claim_that_one_run_has_not_judged_is_not_compared():
    make("a", 3, 3, 3)
    make("b", 3, 3, 3)
    kept = runs.load("b")
    del kept.verdicts[0]
    assert RATIOS[0].id not in agreement.words({"a": runs.load("a"), "b": kept}).index


def test_the_published_word_is_the_one_that_all_published_runs_gave():
    for name, effects in (("", (3, 3, 3)), ("-2", (3, 1, 3)), ("-3", (3, 3, 3))):
        make(f"published{name}", *effects)
    assert runs.published() == ["published", "published-2", "published-3"]
    judged = scoreboard.judgements(scoreboard.published_records())
    words = [str(judged[claim.id].verdict) for claim in RATIOS]
    assert words == [Verdict.HOLDS, Verdict.INCONCLUSIVE, Verdict.HOLDS]
    assert "holds, no effect, holds" in judged[RATIOS[1].id].remarks
    said = published_runs.agreeing()
    assert "3 runs of 1 chapter" in said and "2 of 3 claims" in said and "66.7 %" in said
    assert "short of the goal" in said


def test_one_published_run_speaks_for_itself():
    make("published", 3, 1, 3)
    judged = scoreboard.judgements(scoreboard.published_records())
    assert [str(judged[claim.id].verdict) for claim in RATIOS] == ["holds", "no effect", "holds"]
    assert "nothing can be said" in published_runs.agreeing()


def test_runs_of_the_reader_are_no_published_ones():
    for name in ("published", "published-again", "published-2x", "mine", "published-3"):
        make(name, 3, 3, 3)
    assert runs.published() == ["published", "published-3"]


def test_what_was_measured_on_a_busy_machine_is_counted_once_a_measurement():
    make("published", 3, 3, 3, busy=3)
    said = published_runs.quiet({"tp1": "The TP1 benchmark"})
    assert "Of the published run, 3 of 4 measurements were made while others used" in said
    assert said.endswith(" (all in the chapter “The TP1 benchmark”).</p>")
    make("published-2", 3, 3, 3, busy=1)
    assert "; of the run “published-2”, 1 of 4 (all in the" in published_runs.quiet()
    make("published", 3, 3, 3)
    assert "“published”, none of 4 measurements was made while" in published_runs.quiet()


def test_the_page_tells_every_mark_of_the_committed_runs(monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("PGRERUN_RUNS", raising=False)
    said = published_runs.quiet()
    for name in runs.published():
        marked = {
            (chapter, row.experiment, row.block, row.variant)
            for chapter in runs.chapters(name)
            for row in runs.load(name, chapter).observations.itertuples()
            if "busy" in json.loads(row.flags)
        }
        of_run = f"of the run “{name}”" if len(runs.published()) > 1 else "of the published run"
        assert f"{of_run}, {len(marked) or 'none'} of ".lower() in said.lower()
        assert all(chapter in said for chapter, *_ in marked)
