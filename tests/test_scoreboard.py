"""The scoreboard is complete, says what the records say, and draws what they hold."""

import dataclasses
import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from pgrerun.page import charts, narrate, provenance, tables
from pgrerun.record import agreement, claims, printed, runs, statistics, verdicts
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
    changes["quantity"] = "size of b relative to that of a" if sizes else ""
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
GIVEN = {RATIO.id: ["weaker", "holds"], FACTS.id: ["weaker", "weaker"]}


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
        "weaker": 2,
        "inconclusive": 1,
        "not testable here": 1,
        scoreboard.APART: 1,
        NOT_RUN: len(LEDGER) - 5,
    }
    assert set(map(str, scoreboard.COLOURS)) == set(scoreboard.ORDER)


def test_the_headline_counts_in_words_and_bars():
    page = BeautifulSoup(scoreboard.headline(FOUND), "html.parser")
    assert page.p.get_text() == (
        "Of 4 claims that are put to a server: 2 are weaker, 1 is inconclusive, 1 is not testable"
        f" here. {len(LEDGER) - 4} claims of {len(LEDGER)} have not been run here."
    )
    assert [bar.get_text() for bar in page.find_all("li")] == [
        "2 weaker",
        "1 inconclusive",
        "1 not testable here",
        f"{len(LEDGER) - 4} not run",
    ]
    assert page.find_all("a")[1]["href"] == "scoreboard.html?verdict=inconclusive"
    assert page.find_all("a")[2]["href"] == "scoreboard.html?verdict=not+testable+here"


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
        and found == f"1.20 [1.10, 1.30] times{RATIO.quantity}"
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


def test_small_pictures_have_their_marks_explained():
    [said] = BeautifulSoup(scoreboard.marks(list(FOUND.values())), "html.parser").select(".marks")
    assert "a diamond is the printed number" in said.get_text() and "fact" in said.get_text()
    assert "simulated" not in said.get_text()
    assert scoreboard.marks([FOUND[BUG.id]]) == ""


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


def test_simulated_and_measured_share_no_mark():
    found = statistics.simulated(FOUND[RATIO.id].evidence)
    simulated = Judgement(RATIO, Verdict.WEAKER, found)
    picture = scoreboard.effect(simulated)
    assert (
        charts.MARKS["measured"].colour not in picture
        and "circle" not in picture
        and charts.MARKS["simulated"].colour in picture
    )


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


def contrast(a, b):
    def luminance(colour):
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return sum(
            w * (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4)
            for w, p in zip((0.2126, 0.7152, 0.0722), parts)
        )

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "verdict, page", list(itertools.product(scoreboard.ORDER, ["#ffffff", "#121212"]))
)
def test_verdicts_are_seen_in_both_themes(verdict, page):
    assert contrast(scoreboard.COLOURS[verdict], page) >= 3


def test_then_and_now_has_both_ends_of_every_measured_ratio(record):
    found = scoreboard.records(record("mine", FOUND))
    spec = scoreboard.then_and_now(found).spec()
    rows = next(iter(spec["datasets"].values()))
    assert len(rows) == 4
    then, now = (row for row in rows if row["label"].startswith(RATIO.id))
    assert (then["kind"], then["value"]) == ("printed", max(RATIO.printed, 1 / RATIO.printed))
    assert now["kind"] == "measured"
    wide, narrow = sorted(
        (FOUND[RATIO.id].evidence.estimate, FOUND[RATIO.id].evidence.inverse().estimate),
        reverse=True,
    )
    assert now["value"] == (wide if RATIO.printed > 1 else narrow)
    assert scoreboard.then_and_now({}) is None


def test_then_and_now_leaves_out_what_the_published_runs_differ_on(record):
    found = scoreboard.records(record("mine", FOUND))
    (chapter,) = (name for name, one in found.items() if RATIO.id in str(one.verdicts))
    split = {RATIO.id: ["weaker", "holds", "holds"]}
    found[chapter] = dataclasses.replace(found[chapter], given=split)
    spec = scoreboard.then_and_now(found).spec()
    rows = next(iter(spec["datasets"].values()))
    assert rows and not any(row["label"].startswith(RATIO.id) for row in rows)
    assert "Left out: 1 more" in spec["usermeta"]["caption"]


def test_an_effect_printed_below_one_is_turned_round_with_its_interval():
    claim = planted(IDS[0], Predicate.RATIO, 0.4)
    judged = Judgement(claim, Verdict.HOLDS, Interval(0.5, 0.4, 0.8, 7))
    then, now = scoreboard.ends(judged, "name")
    assert then["value"] == 1 / claim.printed and (now["low"], now["value"], now["high"]) == (
        1.25,
        2.0,
        2.5,
    )


def test_names_that_are_cut_differ_by_more_than_the_id():
    ledger = claims.ledger()
    pair = [ledger["expl-016"], ledger["expl-017"]]  # the same, but for their last words
    names = scoreboard.drawn_names([*pair, RATIO])
    words = {one: name.removeprefix(one) for one, name in names.items()}
    assert words["expl-016"] != words["expl-017"]
    assert all(
        len(name) < len(f"{one.id}: {one.quantity}") for one in pair for name in [names[one.id]]
    )


def test_a_long_name_is_cut_before_what_it_is_relative_to():
    long = claims.ledger()["ston-040"]
    assert long.quantity.split(" relative")[0] in scoreboard.drawn_names([long])["ston-040"]
    assert scoreboard.drawn_names([long])["ston-040"].endswith("files…")


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
        "weaker (1.20 [1.10, 1.30] times)",
        "stronger (90 [80, 100] times)",
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
    assert squares[scoreboard.COLOURS[Verdict.WEAKER]] == 2 + 1  # and its key
    assert "A CPU" in picture.get_text() and "PostgreSQL 18.6" in picture.title.get_text()
    width, height = (float(picture.svg[name]) for name in ("width", "height"))
    assert all(
        float(square["x"]) + 11 <= width and float(square["y"]) + 11 <= height
        for square in picture.find_all("rect")
    )


def test_the_picture_of_no_run_says_so():
    assert "No chapter was run." in scoreboard.picture({})


def test_the_readmes_picture_shows_the_published_run(monkeypatch):
    monkeypatch.setattr(claims, "ledger", lambda *file: CLAIMS)
    kept = ROOT / ".github" / "scoreboard.svg"
    assert kept.read_text(encoding="utf-8") == scoreboard.picture(scoreboard.published_records()), (
        "make picture draws it again"
    )
    assert ".github/scoreboard.svg" in (ROOT / "README.md").read_text()


# ---- a verdict in its chapter


def test_a_verdict_is_one_line_with_word_number_print_and_basis():
    begin, end = scoreboard.verdict_line(FOUND[RATIO.id], "../scoreboard.html")
    page = BeautifulSoup(f"{begin}<p>The sentence.</p>{end}", "html.parser")
    line = page.select_one(f"div.verdict-line#{RATIO.id} > details > summary")
    assert line.select_one(".chip").get_text() == "weaker"
    assert line.select_one(".numbers").get_text() == "1.20 [1.10, 1.30] times; printed 2"
    assert line.select_one(".basis").get_text() == "timed" and RATIO.claim in line.get_text()
    assert page.details.p.get_text() == "The sentence." and not line.find("a")
    assert page.select_one("div > a")["href"] == f"../scoreboard.html#{RATIO.id}"
    same, differing = (
        scoreboard.verdict_line(FOUND[RATIO.id], "../scoreboard.html", words)[0]
        for words in (["holds", "holds"], ["holds", "weaker"])
    )
    assert same == begin and "2 runs gave different verdicts: holds, weaker." in differing
    basis = BeautifulSoup(differing, "html.parser").select_one("summary .basis")
    assert basis.get_text() == "timed, runs differ"
    value = statistics.on_disk(Interval(1.2, 1.1, 1.3, 7), "disk slowed to 9 reads/s")
    slowed = verdicts.judge(RATIO, value)
    begin, _ = scoreboard.verdict_line(slowed, "../scoreboard.html")
    assert '<span class="basis">timed, slowed disk</span>' in begin
    listed = [scoreboard.finding_list([j], lambda c: "#") for j in (FOUND[RATIO.id], slowed)]
    assert ["slowed disk" in one for one in listed] == [False, True]
    begin, _ = scoreboard.verdict_line(FOUND[BUG.id], "../scoreboard.html")
    assert "printed" not in begin and "not testable here" in begin


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
        "weaker",
        "not testable here",
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


def test_the_board_says_why_a_number_decides_nothing():
    together = {id: agreement.together(one, GIVEN.get(id, [])) for id, one in FOUND.items()}
    found = board(together).select_one(f"#{RATIO.id}").select("td")[2].get_text()
    assert found.endswith("2 runs gave different verdicts: weaker, holds")


# ---- what was found, first


def test_a_chapter_of_no_document_tells_what_it_found():
    own = FACTS.model_copy(update={"document": claims.OWN, "basis": Basis.COUNTED})
    judged = {own.id: verdicts.judge(own, {"it is so": True})}
    assert not own.scored
    page = BeautifulSoup(scoreboard.what_we_found(judged), "html.parser")
    assert page.li.select_one(".chip").get_text() == "holds"
    assert not scoreboard.findings(judged | {BUG.id: FOUND[BUG.id]}, most=5, of_a_chapter=5)


def test_findings_are_decided_scored_and_headlines_come_first():
    def judged(id, size, found, **more):
        claim = planted(id, Predicate.RATIO, size).model_copy(update={"headline": False} | more)
        return id, verdicts.judge(claim, Interval(found, 0.98 * found, 1.02 * found, 7))

    found = dict(
        [
            judged(IDS[0], 2.0, 2.0),
            judged(IDS[1], 2.0, 0.5),
            judged(IDS[2], 2.0, 1.6),
            judged(IDS[6], 1.9, 1.6),  # the same numbers are told once
            judged(IDS[3], 2.0, 1.3),
            judged(IDS[4], 2.0, 2.01, headline=True),
            judged(IDS[5], 2.0, 0.5, basis=Basis.BY_DESIGN),
        ]
    )
    found[IDS[7]] = verdicts.set_aside(LEDGER[IDS[7]], "perf", "there is none")
    order = [j.claim.id for j in scoreboard.findings(found, most=9, of_a_chapter=9)]
    assert order == [IDS[4], IDS[1], IDS[3], IDS[2], IDS[0]]
    assert len(scoreboard.findings(found, most=9, of_a_chapter=2)) == 2
    assert len(scoreboard.findings(found, most=3, of_a_chapter=9)) == 3


def test_a_chapter_opens_with_what_was_found_also_if_that_is_nothing():
    page = BeautifulSoup(scoreboard.what_we_found(FOUND), "html.parser")
    lines = {line.a["href"]: line for line in page.select("ul.findings > li")}
    assert set(lines) == {f"#{RATIO.id}", f"#{FACTS.id}"}
    line = lines[f"#{RATIO.id}"]
    found, claimed = (one.get_text() for one in line.select("p"))
    assert found.startswith(
        "The size of b is 1.20 [1.10, 1.30] times that of a, which is a smaller"
    )
    assert line.svg
    assert claimed == f"The POSTGRES report of 1990: {RATIO.claim} {RATIO.id}"
    assert "Of 4 claims that are put to a server" in page.get_text()
    nothing = {BUG.id: FOUND[BUG.id]}
    page = BeautifulSoup(scoreboard.what_we_found(nothing), "html.parser")
    assert not page.select("li") and "1 is not testable here" in page.get_text()
    assert "was decided here" in page.get_text()
    outside = {
        "toy-001": dataclasses.replace(
            FOUND[RATIO.id], claim=RATIO.model_copy(update={"basis": Basis.BY_DESIGN})
        )
    }
    page = BeautifulSoup(scoreboard.what_we_found(outside), "html.parser")
    assert page.li and "decided" not in page.get_text()  # where no other claim is answered


def test_what_was_found_is_told_before_what_was_only_refuted():
    denied = planted(IDS[0], Predicate.FACTS, 2.0).model_copy(update={"headline": True})
    found = planted(IDS[1], Predicate.RATIO, 2.0).model_copy(update={"headline": True})
    other = planted(IDS[2], Predicate.RATIO, 2.0).model_copy(update={"headline": False})
    judged = {
        denied.id: verdicts.judge(denied, {"it grows": False}),
        found.id: verdicts.judge(found, Interval(2.0, 1.96, 2.04, 7)),
        other.id: verdicts.judge(other, Interval(2.0, 1.97, 2.03, 7)),
    }
    told = scoreboard.findings(judged, most=9, of_a_chapter=9)
    assert [j.claim.id for j in told] == [found.id, denied.id, other.id]


def test_findings_whose_facts_are_the_same_are_told_by_their_claims():
    one = FOUND[FACTS.id]
    claim = one.claim.model_copy(update={"id": "toy-999", "claim": "The other grows."})
    other = dataclasses.replace(one, claim=claim)
    listed = scoreboard.finding_list([one, other], lambda claim: f"#{claim.id}")
    lines = [line.p.get_text() for line in BeautifulSoup(listed, "html.parser").select("li")]
    assert lines[1].startswith("The other grows.") and lines[0].startswith(FACTS.claim)
