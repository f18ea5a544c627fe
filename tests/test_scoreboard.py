"""The scoreboard is complete, says what the records say, and draws what they hold."""

import dataclasses
import math
from collections import Counter
from pathlib import Path
from types import MappingProxyType

import pytest
from bs4 import BeautifulSoup

from pgrerun.page import narrate, shown
from pgrerun.record import agreement, claims, history, printed, runs, statistics, verdicts
from pgrerun.record.statistics import Interval
from pgrerun.site import scoreboard

ROOT = Path(__file__).resolve().parent.parent
LEDGER = claims.ledger()
ENVIRONMENT = {
    "parameters": {"profile": "ci", "pairs": 7},
    "server": {"name": "the wheel", "version": "18.6"},
    "commit": "c" * 40,
    "machine": {"cpu_model": "A CPU", "cpus": 2, "memory_bytes": 2**33, "distribution": "Debian"},
}


def planted(id, predicate, size=None, kind="number"):
    """A claim of tp1 that is judged so, whatever the ledger says of it."""
    sizes = {} if size is None else {"": claims.Size(size, size)}
    changes = {"predicate": predicate, "sizes": sizes, "kind": kind, "basis": claims.Basis.TIMED}
    changes |= {"quantity": "size of b" if sizes else "", "as_share": "", "unit": ""}
    changes["relative_to"] = "that of a" if sizes else ""
    return LEDGER[id].model_copy(update=changes | {"regime": "", "needs": "", "margin": 0.05})


IDS = [claim.id for claim in LEDGER.values() if claim.chapter == "tp1"]
RATIO, OTHER, FACTS, BUG = (
    planted(IDS[0], claims.Predicate.RATIO, 2.0),
    planted(IDS[1], claims.Predicate.RATIO, 1.6),
    planted(IDS[2], claims.Predicate.FACTS),
    planted(IDS[3], claims.Predicate.BUG, kind="bug"),
)
CLAIMS = LEDGER
LEDGER = CLAIMS | {claim.id: claim for claim in (RATIO, OTHER, FACTS, BUG)}
APART = next(claim for claim in LEDGER.values() if not claim.scored)
FOUND = {
    RATIO.id: verdicts.judge(RATIO, Interval(1.2, 1.1, 1.3, 7)),
    OTHER.id: verdicts.judge(OTHER, Interval(1.0, 0.5, 90.0, 7)),
    FACTS.id: verdicts.judge(FACTS, {"it <is>": True, "it was": False}),
    BUG.id: verdicts.set_aside(BUG, "perf", "there is no perf"),
}
GIVEN = {RATIO.id: ["weaker", "holds"], FACTS.id: ["partly", "partly"]}


@pytest.fixture(autouse=True)
def ledger(monkeypatch):
    """The ledger with four claims whose judging these tests know."""
    monkeypatch.setattr(claims, "ledger", lambda *file: LEDGER)


@pytest.fixture
def record(own_runs):
    """Makes the record of a run of tp1 with these judgements, and returns its folder."""

    def make(name, found, environment=ENVIRONMENT):
        with runs.Run.open(name, "tp1", key="k", environment=environment) as run:
            for judgement in found.values():
                run.add_verdict(judgement.as_dict())
        return own_runs / name

    return make


def board(judged, advice=MappingProxyType({})):
    def link(claim):
        return f"results/{claim.chapter}.html#{claim.id}"

    text = scoreboard.board(judged, link, {"tp1": "TP1"}, {"tp1": "on a machine"}, advice)
    return BeautifulSoup(text, "html.parser")


@pytest.mark.parametrize("other", [{"predicate": "facts"}, {"claim": "lai-999"}])
def test_a_verdict_by_another_rule_than_the_ledger_s_counts_as_not_run(other):
    assert verdicts.Judgement.from_dict(FOUND[RATIO.id].as_dict() | other) is None


def test_the_tally_has_every_claim_once_and_the_score_only_what_a_server_answers():
    assert scoreboard.tally({}) == {scoreboard.NOT_RUN: len(LEDGER)}
    apart = verdicts.set_aside(APART, "x", "y")
    assert scoreboard.tally(FOUND | {APART.id: apart}) == {
        "weaker": 1,
        "partly": 1,
        "inconclusive": 1,
        "not tested here": 1,
        scoreboard.APART: 1,
        scoreboard.NOT_RUN: len(LEDGER) - 5,
    }
    assert set(map(str, scoreboard.COLOURS)) == set(scoreboard.ORDER)


def test_every_claim_is_on_the_board_with_its_verdict_and_its_place():
    page = board(FOUND)
    rows = page.select("tbody tr")
    assert sorted(row["id"] for row in rows) == sorted(LEDGER)
    assert Counter(row["data-verdict"] for row in rows) == scoreboard.tally(FOUND)
    for row in rows:
        claim = LEDGER[row["id"]]
        for field in ("document", "chapter", "kind", "basis"):  # what the filters go by
            assert row[f"data-{field}"] == getattr(claim, field)
        assert row.select_one("a.id")["href"] == f"results/{claim.chapter}.html#{claim.id}"
        assert claim.claim in row.get_text() and ("★" in row.get_text()) == claim.headline
    cells = [cell.get_text() for cell in page.select(f"#{RATIO.id} td")]
    assert cells[1:3] == [
        f"{RATIO.published_value}judged against {RATIO.printed:.4g}",
        f"1.20 [1.10, 1.30] times{RATIO.comparison}",
    ]
    assert "there is no perf" in page.select_one(f"#{BUG.id}").get_text()


def test_the_overview_leads_to_every_claim_and_to_every_table():
    text = scoreboard.overview(FOUND, {"tp1": "TP1"})
    page, whole = BeautifulSoup(text, "html.parser"), board(FOUND)
    titles = {one["href"]: one["title"] for one in page.select("a.square")}
    assert titles == {
        f"#{row['id']}": f"{row['id']}, {row['data-verdict']}: {LEDGER[row['id']].claim}"
        for row in whole.select("tbody tr")
    }
    places = [one["href"] for one in page.select("table a")]
    assert [place for place in places if not whole.find(id=place[1:])] == []


@pytest.mark.parametrize(
    "values",
    [
        [1.0],
        [0.0, 0.0],
        [2.0, 2.0, 2.0],
        [-1.0, 5.0],
        [0.0, float("inf")],
        [float("-inf"), float("inf")],
        [1e-9, 1e9],
        [1.0, float("inf")],
    ],
)
def test_any_numbers_have_a_place_in_their_order(values):
    place = scoreboard.axis_place(values)
    at = [place(x) for x in sorted(values)]
    assert all(0 < x < scoreboard.WIDTH for x in at) and at == sorted(at)


def test_the_disagreements_are_all_there():
    page = BeautifulSoup(
        scoreboard.disagreement_tables({"tp1": "TP1"}, lambda chapter: f"results/{chapter}.html"),
        "html.parser",
    )
    assert page.select_one("caption a[href='results/tp1.html']").get_text() == "TP1"
    rows = [
        row for chapter in printed.CHAPTERS for row in printed.disagreements(chapter).itertuples()
    ]
    assert len(page.select("tbody tr")) == len(scoreboard.disagreements()) == len(rows)
    said = page.get_text()
    assert [row for row in rows if row.recomputed not in said or row.where not in said] == []


# ---- a run beside the published one


def words(found):
    return BeautifulSoup(
        scoreboard.your_run(found, lambda claim: f"scoreboard.html#{claim}"), "html.parser"
    )


def test_a_claim_s_name_in_somebody_s_record_is_no_markup(record):
    mine = scoreboard.records(record("mine", FOUND))["tp1"]
    record("published", FOUND)
    name = '<img src="x" onerror="alert()">'
    verdict = next(kept for kept in mine.verdicts if kept["claim"] == RATIO.id) | {"claim": name}
    spoilt = dataclasses.replace(
        mine, finished="2099-01-01T00:00:00+00:00", verdicts=[*mine.verdicts, verdict]
    )
    page = words({"tp1": spoilt})
    assert page.select_one("tbody td").get_text() == name and not page.find_all("img")
    assert set(page.select_one("tbody a").attrs) == {"href"}


def test_verdicts_that_differ_are_told_with_a_reason(record):
    changed = {
        RATIO.id: verdicts.judge(RATIO, Interval(90.0, 80.0, 100.0, 7)),
        OTHER.id: verdicts.judge(OTHER, Interval(50.0, 40.0, 60.0, 7)),
        BUG.id: verdicts.judge(BUG, False),
    }
    record("published", FOUND | changed)
    machine = ENVIRONMENT["machine"] | {"cpus": 64, "load_average": [9.0]}
    mine = scoreboard.records(record("mine", FOUND, ENVIRONMENT | {"machine": machine}))["tp1"]
    # the clock's second may be the same
    page = words({"tp1": dataclasses.replace(mine, finished="2099-01-01T00:00:00+00:00")})
    differing, alone, same, surroundings = (
        [[cell.get_text() for cell in row.find_all("td")] for row in table.tbody.find_all("tr")]
        for table in page.find_all("table")
    )
    why = {id: rest for id, *rest in differing}
    assert set(why) == {RATIO.id, OTHER.id} and surroundings == [
        ["machine: logical processors", "64", "2", "all"]
    ]
    assert [one.split()[0] for one in why[RATIO.id][:2]] == ["weaker", "stronger"]
    assert "interval" in why[OTHER.id][2]
    # one of the runs hasn't tested it, which is no other verdict
    assert [(row[0], "perf" in row[-1]) for row in alone] == [(BUG.id, True)]
    # the rest stands folded, with the numbers of both
    tested = {j.claim.id for j in FOUND.values() if j.verdict is not verdicts.Verdict.NOT_TESTED}
    assert {row[0] for row in same} == tested - set(changed)
    assert all(here == there for *_, here, there in same)


def test_the_published_run_is_not_compared_with_itself(record):
    found = scoreboard.records(record("published", FOUND))
    page = words(found)
    assert not page.find("table") and "published run itself" in page.get_text()


# ---- the README's picture


def test_the_picture_has_a_square_for_each_claim_in_its_verdicts_colour(record):
    text = scoreboard.picture(scoreboard.records(record("mine", FOUND)))
    picture = BeautifulSoup(text, "html.parser")
    squares = picture.find_all("rect")
    numbers = [int(one.get_text()) for one in picture.find_all("tspan")]
    assert sum(numbers) == len(LEDGER) == len(squares) - len(numbers)
    weaker = [
        one for one in squares if one.get("fill") == scoreboard.COLOURS[verdicts.Verdict.WEAKER]
    ]
    assert len(weaker) == 1 + 1  # and its key
    assert "A CPU" in picture.get_text() and "PostgreSQL 18.6" in picture.title.get_text()


def test_the_readmes_picture_counts_what_is_published(monkeypatch):
    monkeypatch.setattr(claims, "ledger", lambda *file: CLAIMS)
    kept = BeautifulSoup((ROOT / ".github" / "scoreboard.svg").read_text("utf-8"), "html.parser")
    judged = scoreboard.judgements(scoreboard.published_records())
    counts = [int(one.get_text()) for one in kept.find_all("tspan")]
    assert counts == list(scoreboard.tally(judged).values()), "make picture draws it again"


# ---- a verdict in its chapter


def test_a_verdict_is_one_line_with_word_number_print_and_basis():
    page = BeautifulSoup(shown.Verdict(FOUND[RATIO.id], "a / b", "So.").html(), "html.parser")
    line = page.select_one(f"div.verdict-line#{RATIO.id} > details > summary").get_text()
    numbers = "printed 2, found 1.20 [1.10, 1.30] times"
    assert [one for one in ("weaker", numbers, "timed", RATIO.claim) if one not in line] == []
    value = statistics.on_disk(Interval(1.2, 1.1, 1.3, 7), "disk slowed to 9 reads/s")
    assert "timed, slowed disk" in shown.Verdict(verdicts.judge(RATIO, value), "", "").html()
    assert "not tested here" in shown.Verdict(FOUND[BUG.id], "", "").html()


def test_of_many_verdicts_the_headline_claims_are_in_sight_and_none_is_lost():
    claimed = [RATIO.model_copy(update={"headline": n == 2, "id": f"x-{n}"}) for n in range(5)]
    judged = [dataclasses.replace(FOUND[RATIO.id], claim=claim) for claim in claimed]
    lines = shown.Verdicts([shown.Verdict(one, "", "") for one in judged])
    page = BeautifulSoup(lines._repr_html_(), "html.parser")
    first, *folded = [line["id"] for line in page.select(".verdict-line")]
    assert first == "x-2" and sorted(folded) == ["x-0", "x-1", "x-3", "x-4"]
    assert len(page.select("details.more-verdicts .verdict-line")) == len(folded)


def test_the_table_of_all_verdicts_has_the_words_of_the_rest_of_the_page():
    together = {id: agreement.together(one, GIVEN.get(id, [])) for id, one in FOUND.items()}
    text = shown.Summary(list(together.values()))._repr_html_()
    page = BeautifulSoup(text, "html.parser")
    cells = {row.b.get_text().split()[0]: row.find_all("td") for row in page.select("tbody tr")}
    told = {id: (row[0].select_one(".chip").get_text(), row[3]) for id, row in cells.items()}
    assert {id: (word, found.get_text()) for id, (word, found) in told.items()} == {
        RATIO.id: ("inconclusive", "1.20 [1.10, 1.30] times"),
        OTHER.id: ("inconclusive", narrate.found(FOUND[OTHER.id])),
        FACTS.id: ("partly", "1 of 2 facts"),
        BUG.id: ("not tested here", ""),
    }
    why = {RATIO.id: "weaker, holds", BUG.id: "there is no perf"}
    assert all(said in cells[id][1].get_text() for id, said in why.items())
    assert page.div["aria-label"] == page.caption.get_text()
    assert why[RATIO.id] in board(together).select_one(f"#{RATIO.id}").get_text()


@pytest.mark.parametrize("rule", ["", "0" * 16])
def test_a_rule_that_changed_after_measuring_is_told_wherever_the_word_is(rule):
    j = dataclasses.replace(FOUND[RATIO.id], **({"rule": rule} if rule else {}))
    told_of = [
        shown.Verdict(j, "", "").html(),
        str(board({RATIO.id: j}).select_one(f"#{RATIO.id}")),
        shown.Summary([j])._repr_html_(),
        repr(shown.Verdict(j, "", "")),
    ]
    assert [verdicts.STALE in one for one in told_of] == [bool(rule)] * len(told_of)


def test_a_size_that_is_not_asked_for_is_said_where_the_word_is():
    why = {"direction_only": "the table is smaller", "published_value": "31", "quantity": "pages"}
    claim = planted(IDS[0], claims.Predicate.DIRECTION).model_copy(update=why)
    j = verdicts.judge(claim, 2.0)
    assert "holds (direction only)" in shown.Verdict(j, "", "").html()
    assert "the table is smaller" in shown.Verdict(j, "", "").html()
    assert board({claim.id: j}).select_one(f"#{claim.id}")["data-verdict"] == j.verdict


def test_the_board_counts_why_claims_are_not_tested():
    names = ("64 processors", "16 processors", "the build hot")
    found = [verdicts.set_aside(FACTS, name, "it is so") for name in names]
    said = narrate.untested([*found, FOUND[RATIO.id]])
    assert "3 claims" in said and "processors than here: 2;" in said
    assert narrate.untested([FOUND[RATIO.id]]) == ""


def test_a_claim_s_row_unfolds_its_history(monkeypatch):
    told = [("", "holds", "measurement"), ("holds", "holds", "rule"), ("holds", "weaker", "both")]
    changes = [history.Change("x", "2026-11-21", *one, "", "<So> it is.") for one in told]
    monkeypatch.setattr(history, "load", lambda: {RATIO.id: changes, OTHER.id: changes[:1]})
    page = board(FOUND)
    told = [one.get_text() for one in page.select(f"#{RATIO.id} details.history li")]
    assert len(told) == 3 and all("2026-11-21" in one and "<So> it is." in one for one in told)
    assert "holds, then weaker" in told[2] and not page.select(f"#{OTHER.id} details")


@pytest.mark.parametrize(("high", "reach"), [(3.84, "280 %"), (math.inf, "any size")])
def test_the_noise_floors_of_all_chapters_stand_in_one_table(high, reach):
    """A run's page said "2.8e+02 %" and "inf %"."""
    noise = statistics.NoiseFloor(Interval(1.0, 0.96, high, 7))
    held = {
        claim.id: verdicts.judge(claim, Interval(1.2, 1.1, 1.3, 7), noise=noise)
        for claim in (RATIO, OTHER)
    }
    page = BeautifulSoup(scoreboard.noise_floors(FOUND | held, {"tp1": "TP1"}), "html.parser")
    cells = [cell.get_text() for cell in page.select("tbody tr td")]
    named = f"{RATIO.id}, {OTHER.id}"
    assert cells == ["TP1", narrate.interval(noise.ratio), reach, named]
    assert scoreboard.noise_floors(FOUND, {}) == ""


def test_what_was_found_in_another_regime_is_told_beside_why_nothing_is_judged():
    there = verdicts.judge(RATIO, Interval(1.2, 1.1, 1.3, 7))
    j = verdicts.set_aside(RATIO, "waiting for reads", "it speaks of another regime")
    j = dataclasses.replace(j, beside={"outside of “waiting for reads”": there})
    told = "1.20 [1.10, 1.30] times outside of “waiting for reads” (weaker there)"
    line = BeautifulSoup(shown.Verdict(j, "", "").html(), "html.parser")
    assert line.select_one(".numbers").get_text() == f"printed 2, found {told}"
    assert told in board({RATIO.id: j}).select_one(f"#{RATIO.id}").select("td")[2].get_text()
