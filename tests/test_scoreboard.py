"""The scoreboard is complete, says what the records say, and draws what they hold."""

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from pgrerun.page import narrate, provenance, shown, tables
from pgrerun.record import agreement, claims, history, printed, runs, statistics, verdicts
from pgrerun.record.claims import Basis, Predicate
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Judgement, Verdict
from pgrerun.site import layout, scoreboard
from pgrerun.site.scoreboard import NOT_RUN

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
    changes = {"predicate": predicate, "sizes": sizes, "kind": kind, "basis": Basis.TIMED}
    changes |= {"quantity": "size of b" if sizes else "", "as_share": "", "unit": ""}
    changes["relative_to"] = "that of a" if sizes else ""
    return LEDGER[id].model_copy(update=changes | {"regime": "", "needs": "", "margin": 0.05})


IDS = [claim.id for claim in LEDGER.values() if claim.chapter == "tp1"]
RATIO, OTHER, FACTS, BUG = (
    planted(IDS[0], Predicate.RATIO, 2.0),
    planted(IDS[1], Predicate.RATIO, 1.6),
    planted(IDS[2], Predicate.FACTS),
    planted(IDS[3], Predicate.BUG, kind="bug"),
)
CLAIMS = LEDGER
LEDGER = CLAIMS | {claim.id: claim for claim in (RATIO, OTHER, FACTS, BUG)}
USED = {claim.basis for claim in LEDGER.values()}
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
def record(tmp_path, monkeypatch):
    """Makes the record of a run of tp1 with these judgements, and returns its folder."""
    monkeypatch.setenv("PGRERUN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(runs, "CHECKOUT", tmp_path / "runs")

    def make(name, found, environment=ENVIRONMENT):
        with runs.Run.open(name, "tp1", key="k", environment=environment) as run:
            for judgement in found.values():
                run.add_verdict(judgement.as_dict())
        return tmp_path / "runs" / name

    return make


def board(judged):
    return BeautifulSoup(
        scoreboard.board(
            judged, lambda claim: f"results/{claim.chapter}.html#{claim.id}", {"tp1": "TP1"}
        ),
        "html.parser",
    )


def test_a_size_that_is_what_is_printed_is_told_once():
    told = {id: scoreboard.more_than_printed(CLAIMS[id]) for id in ("lai-009", "lai-013")}
    assert told == {"lai-009": "", "lai-013": "judged against 20.75 %"}


def test_a_record_gives_back_the_judgements_that_went_in(record):
    found = scoreboard.records(record("mine", FOUND))
    assert list(found) == ["tp1"] and scoreboard.judgements(found) == FOUND


def test_infinite_ends_survive_the_record(record):
    endless = {RATIO.id: verdicts.judge(RATIO, Interval(9.0, 1.2, float("inf"), 7, 0.95, "BCa"))}
    assert scoreboard.judgements(scoreboard.records(record("mine", endless))) == endless


def test_a_verdict_by_another_rule_than_the_ledger_s_counts_as_not_run():
    kept = FOUND[RATIO.id].as_dict()
    assert Judgement.from_dict(kept) == FOUND[RATIO.id]
    assert Judgement.from_dict(kept | {"predicate": "facts"}) is None
    assert Judgement.from_dict(kept | {"claim": "lai-999"}) is None


def test_the_tally_has_every_claim_once_and_the_score_only_what_a_server_answers():
    assert scoreboard.tally({}) == {NOT_RUN: len(LEDGER)}
    apart = verdicts.set_aside(APART, "x", "y")
    assert scoreboard.tally(FOUND | {APART.id: apart}) == {
        "weaker": 1,
        "partly": 1,
        "inconclusive": 1,
        "not tested here": 1,
        scoreboard.APART: 1,
        NOT_RUN: len(LEDGER) - 5,
    }
    assert set(map(str, scoreboard.COLOURS)) == set(scoreboard.ORDER)


def test_every_claim_is_on_the_board_with_its_verdict_and_its_place():
    page = board(FOUND)
    rows = page.select("tbody tr")
    assert [row["id"] for row in rows] == list(LEDGER)
    assert Counter(row["data-verdict"] for row in rows) == scoreboard.tally(FOUND)
    for row, claim in zip(rows, LEDGER.values()):
        assert (row["data-document"], row["data-chapter"], row["data-kind"]) == (
            claim.document,
            claim.chapter,
            claim.kind,
        )
        assert row.select_one("a.verdict")["href"] == f"results/{claim.chapter}.html#{claim.id}"
        cells = [cell.get_text() for cell in row.select("td")]
        assert (
            claim.claim in cells[0]
            and cells[1].startswith(narrate.printed_value(claim))
            and cells[4] == row["data-verdict"] + narrate.basis_in_words(claim)
            and row["data-basis"] == claim.basis
        )
        assert ("★" in cells[0]) == claim.headline
    printed, found = (cell.get_text() for cell in page.select_one(f"#{RATIO.id}").select("td")[1:3])
    assert (
        printed == f"{RATIO.published_value}judged against {RATIO.printed:.4g}"
        and found == f"1.20 [1.10, 1.30] times{RATIO.comparison}"
    )
    assert (
        page.select_one(f"#{BUG.id}").select("td")[2].get_text() == "Not tested: there is no perf."
    )


def test_the_filters_offer_what_there_is():
    page = board(FOUND)
    choices = {
        select["name"]: [option["value"] for option in select.find_all("option")][1:]
        for select in page.select("select")
    }
    assert set(choices["document"]) == set(printed.DOCUMENTS)
    assert set(choices["chapter"]) == {claim.chapter for claim in LEDGER.values()}
    assert choices["verdict"] == list(scoreboard.tally(FOUND))
    assert choices["basis"] == [basis for basis in Basis if basis in USED]
    assert page.form.has_attr("hidden")  # nothing can filter without the script


def test_a_word_that_stands_outside_of_the_score_alone_has_a_filter():
    apart = dataclasses.replace(FOUND[RATIO.id], claim=APART)
    for word, offered in (("weaker", False), ("reversed", True)):
        page = board(FOUND | {APART.id: dataclasses.replace(apart, verdict=Verdict(word))})
        options = [one["value"] for one in page.select("select[name=verdict] option")]
        assert (options.count(word), options[-1] == word) == (1, offered)
        marked = [row["id"] for row in page.select(f'tr[data-word="{word}"]')]
        assert marked == [APART.id] * offered


def places(picture, kind):
    mark = {
        "measured": r'cx="([\d.]+)"',
        "printed": r"M([\d.]+) [\d.]+l5",
        "nothing": r'class="nothing" d="M([\d.]+)',
    }[kind]
    return [float(x) for x in re.findall(mark, picture)]


def test_an_effect_is_drawn_in_order_and_inside_its_picture():
    picture = scoreboard.effect(FOUND[RATIO.id])
    (none,), (found,), (printed,) = (
        places(picture, kind) for kind in ("nothing", "measured", "printed")
    )
    assert 0 < none < found < printed < 132  # 1, 1.2 and the printed effect, which is larger
    assert f"printed {RATIO.printed:.4g}" in picture and "1.20 [1.10, 1.30]" in picture


def test_facts_are_squares_and_a_bug_is_nothing():
    facts = {"a": True, "b": False, "c": None, "d": verdicts.supporting(True)}
    picture = scoreboard.effect(verdicts.judge(FACTS, facts))
    assert picture.count("<rect") == 4 and picture.count('fill="none"') == 2
    assert picture.count("stroke-dasharray") == 1 and 'height="6"' in picture
    assert "1 of 3 facts" in picture
    assert scoreboard.effect(FOUND[BUG.id]) == ""
    assert scoreboard.effect(Judgement(BUG, Verdict.FIXED, False)) == ""


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
    rows = scoreboard.disagreements()
    assert len(rows) == sum(len(printed.disagreements(chapter)) for chapter in printed.CHAPTERS)
    page = BeautifulSoup(
        scoreboard.disagreement_tables({"tp1": "TP1"}, lambda chapter: f"results/{chapter}.html"),
        "html.parser",
    )
    assert len(page.select("tbody tr")) == len(rows)
    assert page.select_one("caption a[href='results/tp1.html']").get_text() == "TP1"
    for row in printed.disagreements("tp1").itertuples():
        assert row.recomputed in page.get_text() and row.where in page.get_text()


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
    changed = FOUND | {
        RATIO.id: verdicts.judge(RATIO, Interval(90.0, 80.0, 100.0, 7)),
        OTHER.id: verdicts.judge(OTHER, Interval(50.0, 40.0, 60.0, 7)),
        BUG.id: verdicts.judge(BUG, False),
    }
    record("published", changed)
    other = json.loads(json.dumps(ENVIRONMENT))
    other["machine"] |= {"cpus": 64, "load_average": [9.0]}
    mine = scoreboard.records(record("mine", FOUND, other))
    later = dataclasses.replace(
        mine["tp1"], finished="2099-01-01T00:00:00+00:00"
    )  # the clock's second may be the same
    page = words({"tp1": later})
    differing, surroundings = page.find_all("table")
    why = {
        row.td.get_text(): [cell.get_text() for cell in row.find_all("td")][1:]
        for row in differing.tbody.find_all("tr")
    }
    assert set(why) == {RATIO.id, OTHER.id, BUG.id}
    assert why[RATIO.id] == [
        "weaker (printed 2, found 1.20 [1.10, 1.30] times)",
        "stronger (printed 2, found 90 [80, 100] times)",
        "the measured effects differ",
    ]
    assert why[OTHER.id][2].startswith("here, the interval includes effects too small")
    assert why[BUG.id][2] == "here, perf is missing"
    assert [
        [cell.get_text() for cell in row.find_all("td")]
        for row in surroundings.tbody.find_all("tr")
    ] == [["machine: logical processors", "64", "2", "all"]]
    assert "3 verdicts differ" in page.p.get_text()


def test_a_run_is_compared_with_the_word_of_all_published_runs(record):
    other = FOUND | {RATIO.id: verdicts.judge(RATIO, Interval(90.0, 80.0, 100.0, 7))}
    for name, found in (("published", FOUND), ("published-2", other)):
        record(name, found)
    mine = scoreboard.records(record("mine", FOUND))["tp1"]
    page = words({"tp1": dataclasses.replace(mine, finished="2099-01-01T00:00:00+00:00")})
    (row,) = page.select("tbody tr")
    assert row.td.get_text() == RATIO.id and "inconclusive" in row.get_text()
    assert "2 runs gave different verdicts: weaker, stronger" in row.get_text()


def test_the_published_run_is_not_compared_with_itself(record):
    found = scoreboard.records(record("published", FOUND))
    page = words(found)
    assert not page.find("table") and "published run itself" in page.get_text()


# ---- the end of a chapter


def test_a_page_says_what_it_was_made_from(record):
    found = scoreboard.records(record("mine", FOUND))["tp1"]
    page = BeautifulSoup(scoreboard.page_record(found, {"Data": "tp1-charts.zip"}), "html.parser")
    said = page.p.get_text()
    for word in (
        "“mine”",
        "profile ci",
        "PostgreSQL 18.6 (the wheel)",
        "A CPU with 2 processors and 8.0 GiB",
        "commit cccccccccc.",
        provenance.when(found.finished),
    ):
        assert word in said
    assert page.a["href"] == "tp1-charts.zip" and page.a.has_attr("download")


# ---- the README's picture


def test_the_picture_has_a_square_for_each_claim_in_its_verdicts_colour(record):
    picture = BeautifulSoup(
        scoreboard.picture(scoreboard.records(record("mine", FOUND))), "html.parser"
    )
    squares = Counter(
        square.get("fill") if square.get("fill") != "none" else square["stroke"]
        for square in picture.find_all("rect")
    )
    names = [one.get_text() for one in picture.find_all("tspan")]
    assert sum(squares.values()) == len(LEDGER) + len(names) and sum(map(int, names)) == len(LEDGER)
    assert squares[scoreboard.COLOURS[Verdict.WEAKER]] == 1 + 1  # and its key
    assert "A CPU" in picture.get_text() and "PostgreSQL 18.6" in picture.title.get_text()
    width, height = (float(picture.svg[name]) for name in ("width", "height"))
    assert all(
        float(square["x"]) + 11 <= width and float(square["y"]) + 11 <= height
        for square in picture.find_all("rect")
    )


def test_the_readmes_picture_counts_what_is_published(monkeypatch):
    monkeypatch.setattr(claims, "ledger", lambda *file: CLAIMS)
    kept = BeautifulSoup((ROOT / ".github" / "scoreboard.svg").read_text("utf-8"), "html.parser")
    judged = scoreboard.judgements(scoreboard.published_records())
    counts = [int(one.get_text()) for one in kept.find_all("tspan")]
    assert counts == list(scoreboard.tally(judged).values()), "make picture draws it again"


# ---- a verdict in its chapter


def test_a_verdict_is_one_line_with_word_number_print_and_basis():
    page = BeautifulSoup(shown.Verdict(FOUND[RATIO.id], "a / b", "So.").html(), "html.parser")
    line = page.select_one(f"div.verdict-line#{RATIO.id} > details > summary")
    assert line.select_one(".chip").get_text() == "weaker"
    assert line.select_one(".numbers").get_text() == "printed 2, found 1.20 [1.10, 1.30] times"
    assert line.select_one(".basis").get_text() == "timed" and RATIO.claim in line.get_text()
    assert page.details.p.get_text() == "So." and page.details.pre.get_text() == "a / b"
    assert page.select_one("div > a")["href"] == f"../scoreboard.html#{RATIO.id}"
    value = statistics.on_disk(Interval(1.2, 1.1, 1.3, 7), "disk slowed to 9 reads/s")
    slowed = shown.Verdict(verdicts.judge(RATIO, value), "", "").html()
    assert '<span class="basis">timed, slowed disk</span>' in slowed
    aside = shown.Verdict(FOUND[BUG.id], "", "").html()
    assert "printed" not in aside and "not tested here" in aside


def test_of_many_verdicts_the_headline_claims_are_in_sight():
    lines = []
    for number in range(5):
        claim = RATIO.model_copy(update={"headline": number == 2, "id": f"x-{number}"})
        lines.append(shown.Verdict(dataclasses.replace(FOUND[RATIO.id], claim=claim), "", ""))
    page = BeautifulSoup(shown.Verdicts(lines)._repr_html_(), "html.parser")
    folded = page.select("details.more-verdicts .verdict-line")
    assert page.select_one(".verdict-line")["id"] == "x-2" and len(folded) == 4
    assert page.select_one(".more-verdicts > summary").get_text() == "4 more: 4 weaker"
    few = BeautifulSoup(shown.Verdicts(lines[:3])._repr_html_(), "html.parser")
    assert len(few.select(".verdict-line")) == 3 and not few.select(".more-verdicts")


def test_the_table_of_all_verdicts_has_the_words_of_the_rest_of_the_page():
    ids = [RATIO.id, f"{FACTS.id} ★", BUG.id, "none-001"]
    columns = ["claim", "what it says", "printed", "found here", "basis", "verdict"]
    rows = [(id, "says", "so much", "by one run", "timed", "reversed") for id in ids]
    text = tables.Table(pd.DataFrame(rows, columns=columns), "Of one run")._repr_html_()
    together = {id: agreement.together(one, GIVEN.get(id, [])) for id, one in FOUND.items()}
    page = BeautifulSoup(layout.verdicts(text, together), "html.parser")
    cells = [row.find_all("td") for row in page.select("tbody tr")]
    assert [row[1].b.get_text() for row in cells] == ids
    chips = [row[0].select_one(".chip") for row in cells]
    assert [one.get_text() for one in chips] == [
        "inconclusive",
        "partly",
        "not tested here",
        "reversed",
    ]
    assert all(scoreboard.COLOURS[one.get_text()] in one["style"] for one in chips)
    found = ["1.20 [1.10, 1.30] times", "1 of 2 facts", "", "by one run"]
    assert [row[3].get_text() for row in cells] == found
    assert "2 runs gave different verdicts: weaker, holds." in cells[0][1].get_text()
    assert cells[2][1].get_text().endswith("Not tested: there is no perf.")
    assert cells[1][1].get_text() == f"{FACTS.id} ★ says" and cells[1][2].get_text() == "so much"
    assert page.caption.get_text() == "All 4 claims; a star marks a headline claim"
    assert page.div["aria-label"] == page.caption.get_text()
    other = text.replace(">verdict<", ">word<")
    assert layout.verdicts(other, together) == other


def test_a_rule_that_changed_after_measuring_is_told_wherever_the_word_is():
    fresh, stale = FOUND[RATIO.id], dataclasses.replace(FOUND[RATIO.id], rule="0" * 16)
    rows = [(RATIO.id, "says", "", "", "timed", "weaker")]
    columns = ["claim", "what it says", "printed", "found here", "basis", "verdict"]
    text = tables.Table(pd.DataFrame(rows, columns=columns), "x")._repr_html_()
    for j, told in ((fresh, False), (stale, True)):
        told_of = [
            shown.Verdict(j, "", "").html(),
            str(board({RATIO.id: j}).select_one(f"#{RATIO.id}")),
            layout.verdicts(text, {RATIO.id: j}),
            narrate.judgement(j),
        ]
        assert [verdicts.STALE in one for one in told_of] == [told] * len(told_of)


def test_a_size_that_is_not_asked_for_is_said_where_the_word_is():
    why = {"direction_only": "the table is smaller", "published_value": "31"}
    claim = planted(IDS[0], Predicate.DIRECTION).model_copy(update=why | {"quantity": "pages"})
    for evidence, word in ((2.0, "holds (direction only)"), (0.5, "reversed")):
        j = verdicts.judge(claim, evidence)
        line = BeautifulSoup(shown.Verdict(j, "", "").html(), "html.parser")
        assert line.select_one(".chip").get_text() == word
        assert line.select_one(".numbers").get_text() == f"printed 31, found {evidence:g}"
        assert ("the table is smaller" in narrate.judgement(j)) == (word != "reversed")
        row = board({claim.id: j}).select_one(f"#{claim.id}")
        assert row["data-verdict"] == j.verdict and row.select_one(".verdict").get_text() == word


def test_a_claim_s_row_unfolds_its_history(monkeypatch):
    told = [("", "holds", "measurement"), ("holds", "holds", "rule"), ("holds", "weaker", "both")]
    changes = [history.Change("x", "2026-11-21", *one, "", "<So> it is.") for one in told]
    monkeypatch.setattr(history, "load", lambda: {RATIO.id: changes, OTHER.id: changes[:1]})
    page = board(FOUND)
    found = page.select_one(f"#{RATIO.id} details.history")
    assert found.summary.get_text() == "Its rule and word so far"
    assert [one.get_text() for one in found.find_all("li")] == [
        "2026-11-21: first published: holds. <So> it is.",
        "2026-11-21: another rule, still holds. <So> it is.",
        "2026-11-21: holds, then weaker, by another rule and measurement. <So> it is.",
    ]
    assert not page.select(f"#{OTHER.id} details")


def test_the_noise_floors_of_all_chapters_stand_in_one_table():
    noise = statistics.NoiseFloor.of(Interval(1.0, 0.96, 1.03, 7))
    held = {
        claim.id: verdicts.judge(claim, Interval(1.2, 1.1, 1.3, 7), noise=noise)
        for claim in (RATIO, OTHER)
    }
    page = BeautifulSoup(scoreboard.noise_floors(FOUND | held, {"tp1": "TP1"}), "html.parser")
    [row] = page.select("tbody tr")
    assert [cell.get_text() for cell in row.find_all("td")] == [
        "TP1",
        "1.00 [0.96, 1.03]",
        "4.2 %",
        "2",
    ]
    assert scoreboard.noise_floors(FOUND, {}) == ""


def test_what_was_found_in_another_regime_is_told_beside_why_nothing_is_judged():
    there = verdicts.judge(RATIO, Interval(1.2, 1.1, 1.3, 7))
    j = verdicts.set_aside(RATIO, "waiting for reads", "it speaks of another regime")
    j = dataclasses.replace(j, beside={"outside of “waiting for reads”": there})
    told = "1.20 [1.10, 1.30] times outside of “waiting for reads”, where it would be weaker"
    line = BeautifulSoup(shown.Verdict(j, "", "").html(), "html.parser")
    assert line.select_one(".numbers").get_text() == f"printed 2, found {told}"
    assert told in board({RATIO.id: j}).select_one(f"#{RATIO.id}").select("td")[2].get_text()


def test_the_board_counts_why_claims_are_not_tested():
    def aside(capability, basis=Basis.TIMED):
        return verdicts.set_aside(FACTS.model_copy(update={"basis": basis}), capability, "it is so")

    capabilities = ["VAX", "64 processors", "16 processors", "the build hot", "perf"]
    found = [*map(aside, capabilities), aside("x", Basis.OPINION), FOUND[RATIO.id]]
    assert narrate.untested(found) == (
        "Why 6 claims are not tested here: more processors than here: 2; hardware that nobody has:"
        " 1; a build that no run here has used: 1; something else that this run lacks: 1; an"
        " opinion: 1."
    )
    assert narrate.untested([FOUND[RATIO.id]]) == ""
    assert "more processors than here (64): it is so" in scoreboard.untold(found[1])


def test_the_board_says_why_a_number_decides_nothing():
    together = {id: agreement.together(one, GIVEN.get(id, [])) for id, one in FOUND.items()}
    found = board(together).select_one(f"#{RATIO.id}").select("td")[2].get_text()
    assert found.endswith("2 runs gave different verdicts: weaker, holds")
