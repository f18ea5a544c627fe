"""Claims judged on other releases: by the cells of their chapters, and compared with the notes."""

import ast
import csv
import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from pgrerun import replay
from pgrerun.chapter import Chapter
from pgrerun.chapters.since_when import charts as drawn
from pgrerun.chapters.since_when import evidence, experiments, sentences
from pgrerun.errors import BookError, CannotMeasure
from pgrerun.page import charts
from pgrerun.record import claims, lives
from pgrerun.record.claims import Basis
from pgrerun.record.statistics import Interval
from pgrerun.site import scoreboard

CHOSEN = experiments.judged()


def test_claims_are_chosen_that_counts_or_plans_decide():
    ledger = claims.ledger()
    assert len(CHOSEN) >= 60 and len(experiments.judged(thorough=False)) >= 35
    for id, chapter in CHOSEN.items():
        claim = ledger[id]
        assert claim.chapter == chapter and claim.basis in (Basis.COUNTED, Basis.OBSERVED), id
        assert not set(claim.capabilities) & set(claims.OUT_OF_REACH), id


@pytest.mark.parametrize("chapter", dict.fromkeys(CHOSEN.values()))
def test_the_steps_of_a_chapter_judge_the_claims_and_use_nothing_that_is_missing(chapter):
    wanted = [id for id, own in CHOSEN.items() if own == chapter]
    steps = replay.steps(chapter, wanted)
    assert sorted(step.claim for step in steps if step.claim) == sorted(wanted)
    known = {"chapter"}
    for step in steps:
        tree = ast.parse(step.source)
        bound = {arg.arg for node in ast.walk(tree) if isinstance(node, ast.arg) for arg in [node]}
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        assert used - bound - known - set(dir(__builtins__)) - set(__builtins__) == set(), step
        known |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                known |= {(one.asname or one.name).partition(".")[0] for one in node.names}


def test_a_claim_of_another_chapter_is_judged_nowhere():
    with pytest.raises(BookError, match="lai-058"):
        replay.steps("hot", ["hot-006", "lai-058"])


def test_steps_leave_out_what_other_claims_need():
    few = [step.source for step in replay.steps("hot", ["hot-006"])]
    assert not any("throughput" in source for source in few)
    assert len(few) < len(replay.steps("hot", ["hot-006", "hot-027"]))


def test_notes_name_claims_that_there_are_and_where_their_words_were_read():
    ledger = claims.ledger()
    with lives.NOTES.open(encoding="utf-8", newline="") as lines:
        assert all(row["read_in"] for row in csv.DictReader(lines))
    for note in lives.notes():
        assert set(note.claims) <= set(ledger), note
        assert note.words and note.section and experiments.number(note.release) > 90300
    quoted = {note.words for note in lives.notes()}
    own = [claim for claim in ledger.values() if claim.chapter == "since_when"]
    assert {claim.quote for claim in own} <= quoted
    for claim in own:  # and each count says the release that its claim's section says
        [one] = [one for one in experiments.COUNTS if one.claim == claim.id]
        assert claim.section == f"Release {one.since}"


class Recorded:
    """A chapter with a record of claims on releases, by claim: a word for each release."""

    def __init__(self, words):
        places = list(CHOSEN)
        self.rows = [
            {
                "experiment": "lives",
                "variant": release,
                "block": places.index(claim),
                "metric": "word",
                "value": experiments.WORDS.index(word),
                "flags": json.dumps({"claim": claim, "verdict": word, "note": "why", "reason": ""}),
            }
            for claim, by_release in words.items()
            for release, word in by_release.items()
        ]
        self.run = self

    def observations(self, name):
        frame = pd.DataFrame(self.rows)
        return frame[frame["experiment"] == name] if len(frame) else frame

    def published_run(self, name):
        return pd.DataFrame()


WORDS = {
    "hot-014": {"18": "gone", "9.3": "holds", "13": "holds"},
    "haas-029": {"9.3": "holds", "13": "not testable here", "18": "gone"},
    "hot-010": {"9.3": "holds", "13": "holds", "18": "holds"},
}


def test_a_change_lies_between_the_releases_on_which_a_claim_could_be_tested():
    changes = evidence.changes(Recorded(WORDS)).set_index("claim")
    assert set(changes.index) == {"hot-014", "haas-029"}
    assert list(changes.loc["hot-014", ["until", "since", "agrees"]]) == ["13", "18", "yes"]
    assert list(changes.loc["haas-029", ["before", "until", "since"]]) == ["holds", "9.3", "18"]


def test_a_change_elsewhere_than_the_notes_say_is_a_disagreement():
    words = {"hot-014": {"9.3": "holds", "9.5": "gone", "18": "gone"}}
    [row] = evidence.changes(Recorded(words)).to_dict("records")
    assert row["agrees"] == "no" and "14" in row["notes"]
    assert lives.compared_with_notes("hot-010", "9.3", "18")[0] == ""


def test_the_chart_has_a_row_for_each_claim_and_a_column_for_each_release():
    frame = evidence.lives(Recorded(WORDS))
    assert list(dict.fromkeys(frame["release"])) == ["9.3", "13", "18"]
    figure = charts.lives(frame, charts.Words("Since when?", "A caption."))
    spec = figure.spec()
    assert spec["encoding"]["x"]["sort"] == ["9.3", "13", "18"]
    assert set(spec["encoding"]["y"]["sort"]) == set(WORDS)
    own = drawn.lives(Recorded(WORDS))
    assert own.caption.startswith(
        "The verdict on 2 of 3 claims changes from one release to another; these are drawn."
    )
    with pytest.raises(ValueError, match="word"):
        charts.lives(frame.drop(columns="word"), charts.Words("Since when?", "A caption."))
    many = pd.concat([frame.assign(claim=frame["claim"] + f"-{n}") for n in range(80)])
    many = many[many["claim"].isin(sorted(set(many["claim"]))[:80])]
    tall = charts.lives(many, charts.Words("Since when?", "A caption."))
    assert float(re.search(r' height="([0-9.]+)"', charts.svg(tall, 760))[1]) <= 700
    picture = charts.svg(tall, 760)
    assert all(picture.count(f">{claim}<") == 1 for claim in many["claim"])


def test_the_page_opens_with_the_claims_whose_word_changes():
    observations = pd.DataFrame(Recorded(WORDS).rows)
    record = SimpleNamespace(observations=observations)
    page = BeautifulSoup(scoreboard.what_changed(record, "board#{}".format), "html.parser")
    assert page.p.get_text() == (
        "3 claims of other chapters were judged on 3 releases, 9.3 to 18. The verdict on 2"
        " claims changes on the way."
    )
    told = {item.a.get_text(): item for item in page.select("li")}
    assert set(told) == {"hot-014", "haas-029"}
    assert told["hot-014"].select_one(".chip").get_text() == "gone"
    assert "Since 18: " in told["hot-014"].get_text()
    assert told["haas-029"].a["href"] == "board#haas-029"
    record.observations = observations[observations["experiment"] == "other"]
    assert scoreboard.what_changed(record, str) == ""


def test_what_agrees_with_the_notes_is_told_without_zeros():
    said = str(sentences.unlike_the_notes(Recorded(WORDS)))
    assert said.startswith("Of 2 changes, ") and " 0" not in said


def test_without_any_run_on_releases_the_reason_is_given():
    with pytest.raises(CannotMeasure, match="none is published"):
        evidence.lives(Recorded({}))


@pytest.mark.parametrize(
    ("chapter", "told"), [("hot", "1 verdict changed"), ("tp1", "None of this")]
)
def test_a_chapter_tells_of_its_own_claims_changes(monkeypatch, chapter, told):
    found = lives.read(pd.DataFrame(Recorded(WORDS).rows)), "2026-11-22T10:00:00"
    monkeypatch.setattr(lives, "recorded", lambda run: found)
    said = Chapter.changes(SimpleNamespace(name=chapter, run=SimpleNamespace(name="mine")))
    assert told in repr(said) and "3 releases, 9.3 to 18" in repr(said)


def test_without_a_record_of_releases_a_chapter_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(lives.runs, "PUBLISHED", "nothing")
    assert lives.recorded("nothing either") is None
    said = Chapter.changes(SimpleNamespace(name="hot", run=SimpleNamespace(name="nothing either")))
    assert "pgrerun run since_when" in said


def test_throughput_of_ten_releases_is_no_taller_than_a_screen_and_says_what_changed():
    releases = ("9.6", *map(str, range(10, 19)))
    rows = [
        charts.row(release, "measured", Interval(100.0 + n, 90, 120, 9), panel=load)
        for load in experiments.LOADS
        for n, release in enumerate(releases)
    ]
    whole = SimpleNamespace(
        medians=lambda *_: pd.DataFrame(rows),
        table=lambda *_: dict.fromkeys(releases),
        ratio=lambda name, load, last, first: Interval(1.09, 1.01, 1.2, 9),
    )
    figure = drawn.throughput(whole)
    assert float(re.search(r' height="([0-9.]+)"', charts.svg(figure, 760))[1]) <= 600
    assert figure.caption.startswith(
        "Throughput of release 18 over that of 9.6; faster: lookups 1.09 [1.01, 1.20]"
    )
    told = sentences.hardly(whole)
    assert told.startswith(
        "Hardly a difference was expected. 18 is significantly faster than 9.6 for look"
    )
    whole.ratio = lambda name, load, last, first: Interval(1.09, 0.9, 1.2, 9)
    assert sentences.hardly(whole).endswith("expected, and none is sure.")


def test_which_loads_a_newer_release_does_faster_is_said_as_far_as_it_is_sure():
    found = (1.2, 1.1, 1.3), (0.8, 0.7, 0.96), (1.0, 0.9, 1.1), (1.01, 0.99, 1.02)
    ratios = dict(zip("abcd", (Interval(*ends, 9) for ends in found)))
    assert evidence.faster(ratios) == {
        "faster": ["a"],
        "slower": ["b"],
        "alike within a twentieth": ["d"],
        "not sure": ["c"],
    }


def test_a_step_lies_between_the_releases_that_ran():
    one = next(one for one in experiments.COUNTS if one.what == experiments.LOG)
    rows = [
        {"experiment": "counts", "variant": release, "block": 0, "metric": one.what, "value": value}
        for release, value in {"18": 320.0, "9.3": 451.0, "9.5": 323.0}.items()
    ]

    class Counted(Recorded):
        def observations(self, name):
            return pd.DataFrame(rows).assign(flags="{}")

    said = sentences.mechanism(Counted({}), one.what)
    assert said.endswith("The largest step lies between 9.3 and 9.5; the notes name 9.4.")
    assert evidence.between("9.3", "11") == ["9.3", "9.4", "9.5", "9.6", "10", "11"]
    rows[1:] = []
    assert "step" not in sentences.mechanism(Counted({}), one.what)


def test_the_releases_of_a_run_have_their_versions_and_gaps(monkeypatch):
    monkeypatch.setattr(sentences, "compared", lambda chapter: {"16": "", "18": ""})
    told = sentences.releases(None)
    assert told.caption.endswith("not run: 17")
    assert told.frame["version"].str.match(r"\d+\.\d+").all() and len(told.frame) == 2

    def none(chapter):
        raise CannotMeasure("releases side by side", "none was fetched")

    monkeypatch.setattr(sentences, "compared", none)
    assert "No other release" in sentences.releases(None)


def test_verdicts_that_change_are_counted_by_release():
    said = sentences.summary(Recorded(WORDS))
    assert "The verdict on 2 changes, first seen with 18 (2)." in said


def test_beside_a_change_stand_the_notes_of_its_span_alone():
    [row] = evidence.changes(Recorded({"expl-011": {"17": "holds", "18": "gone"}})).itertuples()
    assert row.agrees == "yes" and row.notes.startswith("18, ") and "13, " not in row.notes
    [row] = evidence.changes(Recorded({"expl-011": {"9.6": "holds", "10": "gone"}})).itertuples()
    assert row.agrees == "no" and row.notes.startswith("13, ") and "; 18, " in row.notes


def test_what_a_count_shows_is_told_with_its_numbers():
    one = next(one for one in experiments.COUNTS if one.claim == "since-001")
    table = pd.DataFrame([{"9.3": 55.0, "13": 54.0, "14": 0.0, "18": 0.0}])
    counted = SimpleNamespace(table=lambda experiment, what: table if what == one.what else None)
    assert evidence.shown_since(counted, "since-001") == {
        f"each release that ran shows it from 14 on, as its notes say ({one.what}: 0)": True,
        "none before it does (54 to 55)": True,
    }


def test_only_claims_whose_verdict_changes_are_drawn_if_any_does():
    drawn_ones = drawn.lives(Recorded(WORDS)).spec()["encoding"]["y"]["sort"]
    assert [words.partition(":")[0] for words in drawn_ones] == ["hot-014", "haas-029"]
    assert all(words.endswith("…") for words in drawn_ones)
    same = {claim: {"9.3": "holds", "18": "holds"} for claim in WORDS}
    assert set(drawn.lives(Recorded(same)).spec()["encoding"]["y"]["sort"]) == set(WORDS)
