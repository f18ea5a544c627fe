"""Claims judged on other releases: by the cells of their chapters, and compared with the notes."""

import contextlib
from types import SimpleNamespace

import pytest

from pgrerun import parameters
from pgrerun.chapters.since_when import here
from pgrerun.chapters.since_when.experiments import counts as counting
from pgrerun.chapters.since_when.experiments import lives as judging_lives
from pgrerun.errors import CannotMeasure
from pgrerun.notebook import lives_table
from pgrerun.record import claims, lives
from pgrerun.record.claims import Basis
from tests.judging import UNTESTED, word

CHOSEN = judging_lives.judged()


def test_claims_are_chosen_that_counts_or_plans_decide():
    ledger, left_out = claims.ledger(), judging_lives.left_out()
    decided = [claim for claim in ledger.values() if claim.basis in (Basis.COUNTED, Basis.OBSERVED)]
    reachable = {
        claim.id: claim.chapter
        for claim in decided
        if not set(claim.capabilities) & set(claims.OUT_OF_REACH)
    }
    assert CHOSEN.items() <= reachable.items()
    # what a build of its own decides has one word, whatever release it is asked on
    assert not [claim for claim in CHOSEN if "build " in ledger[claim].needs]
    # and none is forgotten that asks for nothing but a server and its restart
    able = {
        claim.id
        for claim in decided
        if set(claim.capabilities) <= {"restart"} and claim.chapter != "since_when"
    }
    forgotten = able - set(CHOSEN) - set(left_out)
    assert not forgotten, "name it in claims.toml, or there in left_out with the reason"
    assert set(left_out) <= able - set(CHOSEN) and all(left_out.values())


def test_what_is_asked_of_a_chapter_are_parameters_that_it_has():
    for chapter, given in judging_lives.asked().items():
        assert parameters.chapter_parameters(chapter, given["parameters"] | {"pairs": 5})


def test_notes_name_claims_that_there_are_and_where_their_words_were_read():
    ledger, notes = claims.ledger(), lives.notes()
    assert {claim for note in notes for claim in note["claims"].split()} <= set(ledger)
    assert all(note["words"] and note["section"] and note["read_in"] for note in notes)
    assert all(here.version(note["release"]) > 80300 for note in notes)
    own = {claim.id: claim for claim in ledger.values() if claim.chapter == "since_when"}
    assert {claim.quote for claim in own.values()} <= {note["words"] for note in notes}
    # and each count says the release that its claim's section says
    counts = [(one.claim, f"Release {one.since}") for one in counting.COUNTS if one.claim in own]
    assert sorted(counts) == sorted((id, claim.section) for id, claim in own.items())


def changes(words):
    """What changed where `lives` has, by claim, a word for each release."""
    rows = [
        {"claim": claim, "release": release, "version": here.version(release), "block": 0}
        | {"word": said, "why": "why" if said == UNTESTED else "", "seconds": 0.1}
        for claim, by_release in words.items()
        for release, said in by_release.items()
    ]
    return lives.changes(lives.read(lives.frame(rows))).set_index("claim")


STEADY = {"hot-010": {"9.3": "holds", "13": "holds", "18": "holds"}}


@pytest.mark.parametrize(
    ("claim", "words", "told"),
    [
        (
            "hot-014",
            {"18": "not so", "9.3": "holds", "13": "holds"},
            {"until": "13", "since": "18", "agrees": "yes"},
        ),
        (
            "haas-029",
            {"9.3": "holds", "13": UNTESTED, "18": "different now"},
            {"before": "holds", "until": "9.3", "since": "18"},
        ),
        # elsewhere than the notes say
        ("hot-014", {"9.3": "holds", "9.5": "not so", "18": "not so"}, {"agrees": "no"}),
        ("expl-011", {"17": "holds", "18": "not so"}, {"agrees": "yes"}),
        ("expl-011", {"9.6": "holds", "10": "not so"}, {"agrees": "no"}),
    ],
)
def test_a_change_lies_between_the_releases_on_which_a_claim_could_be_tested(claim, words, told):
    found = changes({claim: words} | STEADY)
    assert list(found.index) == [claim]
    assert told.items() <= found.loc[claim].to_dict().items()


def test_beside_a_change_stand_the_notes_of_its_span_or_else_all():
    within = changes({"expl-011": {"17": "holds", "18": "not so"}}).loc["expl-011", "notes"]
    outside = changes({"expl-011": {"9.6": "holds", "10": "not so"}}).loc["expl-011", "notes"]
    assert within.startswith("18, ") and "13, " not in within
    assert outside.startswith("13, ") and "; 18, " in outside
    assert lives.compared_with_notes("hot-010", "9.3", "18")[0] == ""


def test_a_chapter_without_a_record_of_its_claims_lives_tells_how_to_get_one(monkeypatch):
    monkeypatch.setattr(lives.runs, "PUBLISHED", "nothing")
    assert "pgrerun run since_when" in lives_table("hot", "nothing either")


def test_a_claim_that_got_no_answer_is_said_to_have_none(monkeypatch):
    monkeypatch.setattr(judging_lives, "compared", lambda bed: {"9.3": "9.3", "18": ""})
    monkeypatch.setattr(judging_lives, "judged", lambda thorough=True: {"hot-010": "hot"})
    answered = {"claim": "hot-010", "verdict": "holds", "note": "", "reason": ""}
    answers = [("18", {"verdict": answered, "seconds": 1.0})]
    answers += [("9.3", {"chapter": "hot", "failed": "KeyError: x"})]
    monkeypatch.setattr(judging_lives.replay, "answers", lambda asked, at_once: iter(answers))
    bed = SimpleNamespace(rows_of=lambda name: [], parameters=SimpleNamespace(thorough=0))
    found = {row["release"]: row for row in judging_lives.lives(bed)}
    assert found["18"]["word"] == "holds" and found["9.3"]["word"] == UNTESTED
    assert "KeyError" in found["9.3"]["why"]
    bed.rows_of = lambda name: list(found.values())
    assert list(judging_lives.lives(bed)) == [], "what is judged isn't judged again"


# ---- counts and throughput


def counted(by_release, claim="since-001", shown=lambda n: n == 0, since="14"):
    return [
        {"counted": "pages that the primary key gains", "unit": "pages", "claim": claim}
        | {"notes": since, "release": release, "version": here.version(release)}
        | {"from_then_on": here.version(release) >= here.version(since)}
        | {"number": number, "shown": shown(number)}
        for release, number in by_release.items()
    ]


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ({"9.3": 55.0, "13": 54.0, "14": 0.0, "18": 0.0}, "holds"),
        ({"9.3": 55.0, "13": 0.0, "14": 0.0}, "partly"),
        ({"9.3": 0.0, "14": 54.0}, "not so"),
        ({"14": 0.0, "18": 0.0}, "inconclusive"),
    ],
)
def test_a_change_is_one_where_the_notes_tell_of_it_and_only_from_then_on(pages, said):
    assert word("since-001", "since_when", counts=counted(pages)) == said


def test_each_claim_of_the_notes_has_a_count_that_can_tell():
    for one in counting.COUNTS:
        if one.claim:
            told = {one.shows(number): number for number in (0.0, 1.0, 1e6)}
            made = counted({"9.2": told[False], "18": told[True]}, one.claim, one.shows, one.since)
            assert word(one.claim, "since_when", counts=made) == "holds"


TUPLES = 10_000


@pytest.fixture
def numbers(connection):
    """A connection to a server with the relation that is counted."""
    counting.SQL.run(connection, "counts.numbers", tuples=TUPLES)
    return connection


def test_keys_that_have_a_leaf_each_are_looked_up_one_by_one(numbers):
    adjacent, apart = (counting.listed(n, numbers, TUPLES) for n in (1, counting.APART))
    assert adjacent < TUPLES / counting.APART <= apart


def test_a_scan_runs_in_several_processes_only_where_a_setting_allows_it(numbers):
    assert counting.processes("summed", "", numbers, TUPLES) == 1
    assert counting.processes("summed", "parallel", numbers, TUPLES) > 1


def test_a_fence_reads_all_rows_for_one(numbers):
    assert counting.scanned("named", numbers, TUPLES) == 1
    text = counting.SQL.text("counts.named").replace("AS (", "AS MATERIALIZED (")
    *_, scan = counting.plans.explain(numbers, text.rstrip(";\n"), execute=True).walk()
    assert scan.rows_actual == TUPLES


def test_of_half_sorted_rows_few_are_read_unless_all_are_sorted_at_once(numbers):
    assert counting.scanned("ordered", numbers, TUPLES) < 100
    numbers.execute("SET enable_incremental_sort = off")
    assert counting.scanned("ordered", numbers, TUPLES) == TUPLES


def test_what_a_release_cannot_count_is_left_out(monkeypatch):
    def lacking(connection, tuples):
        raise CannotMeasure("an access method", "it has none")

    some = (
        counting.Count("a", "pages", lambda c, n: 3.0, "14", "", None),
        counting.Count("b", "pages", lacking, "14", "", None),
        counting.Count("c", "pages", lambda c, n: None, "14", "", None),
    )
    monkeypatch.setattr(counting, "COUNTS", some)
    monkeypatch.setattr(counting, "updated", lambda server, tuples, seed: {})
    monkeypatch.setattr(counting.SQL, "run", lambda *arguments, **more: None)

    server = SimpleNamespace(version=90300, connect=contextlib.nullcontext)
    assert [(one.what, n) for one, n in counting.counted(server, 10, 1)] == [("a", 3.0)]


@pytest.mark.parametrize(
    ("many", "taken"),
    [
        (2, ["8.2", "18"]),
        (3, ["8.2", "9.6", "18"]),
        (20, ["8.2", "9.3", "9.6", "13", "18"]),
    ],
)
def test_releases_are_taken_evenly_from_the_oldest_to_the_newest(many, taken):
    there = {name: name for name in ("8.2", "9.3", "9.6", "13", "18")}
    assert list(here.evenly(there, many)) == taken


def test_without_other_releases_nothing_is_compared(monkeypatch):
    monkeypatch.setattr(here.fetched, "comparable", dict)
    with pytest.raises(CannotMeasure, match="none was fetched"):
        here.here()
