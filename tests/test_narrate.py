"""Every verdict of every predicate has its words, and the words carry the numbers."""

import dataclasses
import math
import re

import pandas as pd
import pytest
from test_claims import claim, interval

from pgrerun.errors import CannotMeasure
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
    (Predicate.RATIO, Verdict.GONE): interval(0.971, 1.032),
    (Predicate.RATIO, Verdict.REVERSED): interval(0.71, 0.83),
    (Predicate.RATIO, Verdict.INCONCLUSIVE): interval(0.81, 1.63),
    (Predicate.DIRECTION, Verdict.HOLDS): interval(1.41, 1.63),
    (Predicate.DIRECTION, Verdict.WEAKER): {"reads": 2, "writes": interval(0.71, 0.83)},
    (Predicate.DIRECTION, Verdict.GONE): interval(0.971, 1.032),
    (Predicate.DIRECTION, Verdict.REVERSED): interval(0.71, 0.83),
    (Predicate.DIRECTION, Verdict.INCONCLUSIVE): interval(0.81, 1.63),
    (Predicate.BETWEEN, Verdict.HOLDS): interval(1.41, 1.63),
    (Predicate.BETWEEN, Verdict.WEAKER): {"reads": 1.5, "writes": interval(0.71, 0.83)},
    (Predicate.BETWEEN, Verdict.GONE): interval(1.71, 1.93),
    (Predicate.BETWEEN, Verdict.INCONCLUSIVE): interval(1.31, 1.93),
    (Predicate.AT_MOST, Verdict.HOLDS): 1,
    (Predicate.AT_MOST, Verdict.WEAKER): {"reads": 1, "writes": interval(1.71, 1.93)},
    (Predicate.AT_MOST, Verdict.GONE): interval(1.71, 1.93),
    (Predicate.AT_MOST, Verdict.INCONCLUSIVE): interval(1.31, 1.93),
    (Predicate.AT_LEAST, Verdict.HOLDS): interval(1.71, 1.93),
    (Predicate.AT_LEAST, Verdict.WEAKER): {"reads": 1, "writes": 2},
    (Predicate.AT_LEAST, Verdict.GONE): 1,
    (Predicate.AT_LEAST, Verdict.INCONCLUSIVE): interval(1.31, 1.93),
    (Predicate.EQUALS, Verdict.HOLDS): 1.5,
    (Predicate.EQUALS, Verdict.WEAKER): {"reads": 1.5, "writes": 2.5},
    (Predicate.EQUALS, Verdict.GONE): 2.5,
    (Predicate.FACTS, Verdict.HOLDS): {"pages fill up": True, "fast": supporting(False)},
    (Predicate.FACTS, Verdict.WEAKER): {"pages fill up": True, "none is new": False},
    (Predicate.FACTS, Verdict.GONE): {"pages fill up": False, "none is new": False},
    (Predicate.FACTS, Verdict.REVERSED): {"pages fill up": fact(False, opposite=True)},
    (Predicate.FACTS, Verdict.INCONCLUSIVE): {"pages fill up": None, "none is new": False},
    (Predicate.BUG, Verdict.STILL_THERE): True,
    (Predicate.BUG, Verdict.FIXED): False,
}
CASES = [(p, v) for p in Predicate for v in sorted(VERDICTS[p])]


def well_formed(text):
    """What we wrote; what stands in quotation marks is a document's."""
    whole, text = text, re.sub("“[^”]*”", "“x.”", text)
    assert isinstance(whole, narrate.Sentence) and whole._repr_markdown_() == str(whole)
    assert text[0].isupper() or text[0] == "*"
    assert text.endswith("."), text
    assert not re.search(r"  | \.|\.\.|\( |\(\)|\bnan\b|\bNone\b|\{|\}| ,|;\.|ii", text), text
    assert (
        text.count("(") == text.count(")")
        and text.count("**") % 2 == 0
        and text.count("“") == text.count("”")
    ), text


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
    if verdict is Verdict.NOT_TESTABLE:
        judged, evidence = verdicts.set_aside(subject, "restart", "the server isn't ours."), True
    else:
        evidence = EVIDENCE[predicate, verdict]
        judged = verdicts.judge(subject, evidence)
    assert judged.verdict is verdict
    said = narrate.judgement(judged)
    well_formed(said)
    assert f"**{verdict}**" in said and said.count("**") == 2
    assert said.startswith("The POSTGRES report of 1990 (section 3.2.2; lai-001): It is faster. ")
    for text in numbers(evidence):
        assert text in said, (text, said)
    if verdict is Verdict.NOT_TESTABLE:
        assert "the server isn't ours" in said and "missing: restart" in said
    elif subject.printed is not None:
        assert "1.5" in said
    if predicate in (Predicate.RATIO, Predicate.DIRECTION) and verdict is Verdict.GONE:
        assert "5 %" in said
    assert said.count(". ") <= 3  # the claim's own full stop is one


def test_too_few_pairs_and_notes_are_said():
    said = narrate.judgement(
        verdicts.judge(claim(Predicate.RATIO, 1.5), interval(1.4, 1.6, n=3), "one core only")
    )
    well_formed(said)
    assert "only 3 of at least 5 pairs; one core only" in said and "**inconclusive**" in said
    single = narrate.judgement(
        verdicts.judge(claim(Predicate.RATIO, 1.5), statistics.ratio([3], [2]))
    )
    well_formed(single)
    assert "measured once" in single and "inf" not in single


@pytest.mark.parametrize("id", [c.id for c in claims.ledger().values() if c.chapter == "tp1"])
def test_every_tp1_claim_reads_well_with_every_verdict(id):
    subject = claims.ledger()[id]
    for predicate, verdict in CASES:
        if predicate is subject.predicate:
            evidence = EVIDENCE.get((predicate, verdict))
            if set(subject.sizes) - {""}:
                evidence = dict.fromkeys(subject.sizes, 1.5)
            well_formed(
                narrate.judgement(
                    verdicts.Judgement(subject, verdict, _as_judged(evidence), "", "restart")
                )
                if verdict is not Verdict.NOT_TESTABLE
                else narrate.judgement(verdicts.set_aside(subject, "restart", "no restart"))
            )


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
    assert barely.verdict is Verdict.GONE and "[6.0004, " in narrate.judgement(barely)


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
    well_formed(said)
    assert part in said and "two backends" in said


@pytest.mark.parametrize(
    ("printed", "measured", "part"),
    [
        (1.28, interval(1.2, 1.4), "which includes it"),
        (1.28, interval(1.3, 1.4), ", above it."),
        (1.28, interval(1.1, 1.2), ", below it."),
        (6, 6, ", the same."),
        (6, 7.5, "7.5, more."),
        (6, statistics.exact(5), "5 (exact), less."),
        ("over eighty", 12, "is over eighty; here it is 12."),
        (1.28, Interval(2.0, 0.0, math.inf, 1), "measured once"),
    ],
)
def test_then_and_now(printed, measured, part):
    said = narrate.then_and_now(printed, measured, "number of reads")
    well_formed(said)
    assert part in said and ("1.28" in said or "6" in said or "eighty" in said)


def test_noise_prediction_and_set_aside():
    for floor in (
        statistics.NoiseFloor(interval(0.98, 1.03), 1.03),
        statistics.NoiseFloor(interval(1.01, 1.03), 1.03),
    ):
        said = narrate.noise(floor)
        well_formed(said)
        assert "below 3 %" in said and ("one comparison in twenty" in said) == floor.false_alarm
    well_formed(narrate.noise(statistics.noise_floor([1], [2])))
    assert (
        narrate.prediction("It doubles to {x}, {{really}}.", x=2.0)
        == "**Prediction.** It doubles to 2, {really}."
    )
    assert narrate.prediction("Sets {a, b} stay.") == "**Prediction.** Sets {a, b} stay."
    said = narrate.set_aside("catalog_reads", CannotMeasure("restart", "The server isn't ours."))
    well_formed(said)
    assert "catalog reads" in said and "missing: restart" in said


def test_summary_counts_every_verdict_and_what_stands_apart():
    judged = [
        verdicts.judge(claim(p, 1.5 if p in claims.WITH_PRINTED else None), e)
        for (p, _), e in EVIDENCE.items()
    ]
    judged.append(verdicts.set_aside(claim(Predicate.BUG), "x", "y"))
    said = narrate.summary(judged)
    well_formed(said)
    scored = len(EVIDENCE) + 1
    assert said.startswith(f"Of {scored} claims that are put to a server: 7 hold, 1 is stronger, ")
    assert "1 is not testable here" in said and "Outside" not in said
    assert sum(map(int, re.findall(r"\b(\d+) (?:hold|is|are)", said))) == scored
    for basis in claims.Basis:
        if basis not in claims.SCORED:
            judged.append(verdicts.judge(claim(Predicate.FACTS, basis=basis), {"a": True}))
    said = narrate.summary(judged)
    well_formed(said)
    assert said.startswith(f"Of {scored} claims")
    assert said.endswith(
        "Outside of the score: 1 timed on this machine without a server, 1 simulated, 1 recomputed"
        " from printed numbers, 1 known from release notes, 1 true by how the experiment is built,"
        " 1 opinion."
    )
    judged.append(verdicts.judge(claim(Predicate.FACTS, document=claims.OWN), {"a": True}))
    said = narrate.summary(judged)
    well_formed(said)
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
        well_formed(said)
        assert r"It is faster. In its words: “It \*runs\* faster.”" in said
        assert narrate.BASES[basis] in said or basis is claims.Basis.OPINION


def test_a_share_is_told_in_percent_as_documents_print_it():
    share = claim(Predicate.BETWEEN, 0.3).model_copy(update={"quantity": "share of the reads"})
    judged = verdicts.judge(share, interval(0.25, 0.35))
    assert narrate.evidence(judged) == "30 [25, 35] %"
    assert "is 30 [25, 35] %" in narrate.finding(judged)
    said = narrate.judgement(judged)
    assert "The share of the reads should be about 30 %" in said and "it is 30 [25, 35] %" in said


def test_what_a_cost_is_printed_as_is_told_as_its_share():
    cost = claims.ledger()["lai-009"]
    judged = verdicts.judge(cost, statistics.exact(1.25))
    assert narrate.finding(judged).startswith(
        "The share of the run that goes into the rule manager, where no rule exists, is 20 %,"
    )
    assert narrate.evidence(judged) == "20 %"
    assert narrate.claimed_size(cost, cost.sizes[""]) == "15.64 %"  # as the report prints it
    assert narrate.printed_value(cost) == "15.64 %"  # where the ledger has the number alone


def test_the_range_that_counts_as_a_printed_number_is_told():
    near = claim(Predicate.BETWEEN, 0.7).model_copy(update={"tolerance": 0.1})
    assert narrate.judged_size(near, near.sizes[""]) == "0.7, taken as 0.63 to 0.77"


def test_what_stands_beside_is_told():
    subject = claim(Predicate.RATIO, 1.5)
    here = verdicts.judge(subject, interval(1.41, 1.63))
    there = {"at 100,000 tuples": verdicts.judge(subject, interval(0.71, 0.83))}
    said = narrate.judgement(dataclasses.replace(here, beside=there))
    well_formed(said)
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


def said_numbers(judged):
    """The numbers of a finding that stand neither in the quantity nor in a part's name.

    Nor in a bug, which the finding repeats.
    """
    text = narrate.finding(judged)
    if judged.claim.predicate is Predicate.BUG:
        text = text.replace(judged.claim.claim.removeprefix("Bug: "), "")
    what, _, other = judged.claim.quantity.rstrip(",").partition(" relative to ")
    names = judged.evidence if isinstance(judged.evidence, dict) else ()
    for known in (what, other, judged.capability, *names):
        text = text.replace(known, "") if known else text
    return set(re.findall(r"\d[\d.,]*(?<![.,])", text))


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


@pytest.mark.parametrize("subject", scored(), ids=lambda c: c.id)
def test_every_word_of_every_scored_claim_has_a_finding(subject):
    for verdict, evidence in (
        (v, e) for v in sorted(VERDICTS[subject.predicate]) for e in planted(subject)
    ):
        judged = verdicts.Judgement(subject, verdict, evidence)
        if verdict is Verdict.NOT_TESTABLE:
            judged = verdicts.set_aside(subject, "restart", "the server isn't ours.")
        said = narrate.finding(judged)
        well_formed(said)
        assert len(said.split()) <= 45, said
        assert said_numbers(judged) <= known_numbers(judged), said
        if verdict is Verdict.INCONCLUSIVE:
            own = said.replace(subject.quantity.partition(" relative to ")[0], "")
            assert said.startswith("Not decided here: ") and not DIRECTED.search(own), said


def test_a_finding_begins_with_what_was_measured_and_ends_with_the_print():
    quantity = {"quantity": "pages of b relative to those of a, both cold,"}
    ratio = claim(Predicate.RATIO, 1.5).model_copy(update=quantity)
    weaker = verdicts.judge(ratio, interval(1.21, 1.43))
    assert narrate.finding(weaker).endswith(" a smaller effect than the printed 1.5.")
    assert re.match(
        r"The pages of b are [^ ]+ \[.*\] times those of a, both cold, ", narrate.finding(weaker)
    )
    same = verdicts.judge(ratio, 1.0)
    assert (
        "The pages of b are the same as those of a, both cold, so there is no"
        in narrate.finding(same)
    )
    facts = claim(Predicate.FACTS)
    refuted = verdicts.judge(facts, {"pages fill up": True, "none is new": False})
    assert narrate.finding(refuted) == "Confirmed: pages fill up. Refuted: none is new."
    beside = verdicts.judge(facts, {"pages fill up": True, "fast": supporting(False)})
    assert narrate.finding(beside) == "Confirmed: pages fill up."
    bug = claim(Predicate.BUG).model_copy(update={"claim": "Bug: a page is lost."})
    assert narrate.finding(verdicts.judge(bug, False)) == "Fixed: a page is lost."
    assert narrate.finding(verdicts.judge(bug, True)) == "Still there: a page is lost."


def test_a_direction_is_told_beside_the_size_that_is_printed():
    ours = {"published_value": "1007.451264 -> 20000; 206.86 on 9.2.24", "quantity": "pages"}
    said = narrate.finding(
        verdicts.judge(claim(Predicate.DIRECTION).model_copy(update=ours), interval(2, 3))
    )
    print_ = "1,007 → 20,000; 206.86 on 9.2.24"
    assert said.endswith(f", in the claimed direction (printed: {print_}).")
    parts = {"small": interval(2, 3), "large": interval(4, 5)}
    bare = verdicts.judge(claim(Predicate.DIRECTION), parts)
    assert narrate.finding(bare).endswith(", in the claimed direction.")


def test_a_share_that_is_gone_is_called_too_small():
    cost = claim(Predicate.RATIO, 1.1).model_copy(update={"quantity": "speed-up if x cost nothing"})
    gone = verdicts.judge(cost, interval(1.001, 1.002))
    assert gone.verdict is Verdict.GONE
    assert "%, which is too small a share to matter, though" in narrate.finding(gone)
    assert "too small to matter (it would be from 4.8 % on)" in narrate.judgement(gone)


def test_a_ratio_says_what_it_is_relative_to():
    for subject in claims.ledger().values():
        assert not subject.quantity.startswith("ratio of"), subject.id
        assert subject.quantity.count(" relative to ") <= 1 or not subject.scored, subject.id


@pytest.mark.parametrize("foretold", [True, False])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_became_of_a_prediction_is_true_for_every_verdict(verdict, foretold):
    judged = {"a-001": verdicts.Judgement(claim(Predicate.FACTS), verdict, None, "", "")}
    said = narrate.outcome({"a-001": foretold}, judged)
    held = {Verdict.HOLDS, Verdict.STRONGER, Verdict.STILL_THERE}
    refuted = {Verdict.NOT_REPRODUCED, Verdict.GONE, Verdict.REVERSED, Verdict.FIXED}
    expected = {Verdict.WEAKER: "Came true in part", Verdict.INCONCLUSIVE: "Undecided"}
    expected[Verdict.NOT_TESTABLE] = "Not testable here"
    expected |= dict.fromkeys(held, "Came true" if foretold else "Failed")
    expected |= dict.fromkeys(refuted, "Failed" if foretold else "Came true")
    decided = verdict not in (Verdict.INCONCLUSIVE, Verdict.NOT_TESTABLE)
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
        "a-002": verdicts.Judgement(claim(Predicate.FACTS), Verdict.GONE, None),
    }
    said = narrate.outcome({"a-001": True, "a-002": True, "a-003": True}, judged)
    assert re.fullmatch(r"Not testable here: a-001; failed: a-002; not run: a-003\.", said)


def test_an_opinion_is_told_as_one_with_what_is_shown_beside_it():
    subject = claim(Predicate.FACTS, basis=Basis.OPINION)
    found = {"pages fill up": True, "none is new": False, "fast": supporting(True)}
    said = narrate.evidence(verdicts.judge(subject, found))
    assert said == (
        "an opinion, which nothing decides; beside it found: pages fill up; refuted: none is new"
    )
    number = verdicts.judge(claim(Predicate.DIRECTION, basis=Basis.OPINION), interval(1.2, 1.4))
    assert "opinion" in narrate.evidence(number) and "[1.20, 1.40]" in narrate.evidence(number)
