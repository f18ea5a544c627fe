"""The ledger is whole, agrees with the documents, and damage in it is named."""

import csv
import os
import re
from pathlib import Path

import document_text
import pytest

from pgrerun.errors import RecordError
from pgrerun.record import claims, printed
from pgrerun.record.claims import Claim, Predicate
from pgrerun.record.statistics import Interval


def claim(predicate, printed=None, margin=0.05, **more):
    kind = "bug" if predicate is Predicate.BUG else "number"
    sizes = printed if isinstance(printed, dict) else {"": printed}
    pairs = {
        name: size if isinstance(size, tuple) else (size, size) for name, size in sizes.items()
    }
    return Claim(
        **{
            "id": "lai-001",
            "document": "postgres-1990",
            "section": "3.2.2",
            "chapter": "tp1",
            "kind": kind,
            "claim": "It is faster.",
            "quote": "It was faster.",
            "published_value": "",
            "headline": False,
            "predicate": predicate,
            "expression": "",
            "sizes": {} if printed is None else pairs,
            "margin": margin,
            "needs": "",
            "quantity": "size of b",
            "relative_to": "that of a",
            **more,
        }
    )


def interval(low, high, n=7):
    return Interval((low + high) / 2, low, high, n)


# ---- the ledger


def test_each_claim_can_be_judged_and_says_why_a_printed_size_is_not():
    for c in claims.ledger().values():
        assert c.predicate is not None, c.id
        if c.predicate is Predicate.DIRECTION and c.published_value:
            assert c.direction_only, c.id


def test_what_is_out_of_reach_is_needed_and_has_a_reason_or_a_build_that_is_named():
    # A name with " and " in it falls apart where needs are read, and its reason is never given.
    needed = {one for claim in claims.ledger().values() for one in claim.capabilities}
    assert not set(claims.OUT_OF_REACH) - needed
    table = claims.LEDGER.with_name("builds.csv").read_text("utf-8")
    builds = {row["name"] for row in csv.DictReader(table.splitlines())}
    for capability, known in claims.OUT_OF_REACH.items():
        assert bool(known.reason and known.would_take) != bool(known.builds), capability
        assert set(known.builds) <= builds, capability
        assert (known.reason is claims.Reason.PROCESSORS) == (known.processors > 0), capability


PRINTED = {
    "lai-046": {"throughput": (2 / (0.893 / 0.699),) * 2, "processor": (58 / 42,) * 2},
    "lai-048": {"": (100 / 80,) * 2},
    "lai-049": {"": (6, 6)},
    "lai-085": {"": (1, 1)},
    "hot-001": {"": (2006.098739 / 1007.451264,) * 2},
    "hot-012": {"": (1024 / 976,) * 2},
    "hot-024": {"": (659.870628 / 321.88984,) * 2},
    "hot-035": {"": (1007.451264 / 976,) * 2},
    "haas-029": {"": (1, 1)},
    "expl-002": {"": (218.2118 / 210.9082,) * 2},
    "expl-004": {"": (1, 1)},
    "expl-017": {"": (191.674 / 108.167,) * 2},
    "expl-020": {"": (100_000,) * 2},
    "expl-022": {"": (127298.392 / 76.759,) * 2},
}


@pytest.mark.parametrize("id", PRINTED)
def test_printed_sizes_come_from_the_tables(id):
    found = claims.ledger()[id]
    assert {name: tuple(size) for name, size in found.sizes.items()} == {
        name: pytest.approx(size) for name, size in PRINTED[id].items()
    }


def test_no_printed_number_is_copied_into_the_ledger():
    numerals = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
    for claim in claims.ledger().values():
        if claim.chapter in ("tp1", "hot"):
            # the double of one, the whole, a share from per cent
            assert set(numerals.findall(claim.expression)) <= {"1", "2", "100"}, claim.id


@pytest.fixture
def damaged(tmp_path):
    """Write a ledger of the first three claims, with changed cells in line 3, the second."""

    def write(**cells):
        with open(claims.LEDGER, newline="", encoding="utf-8") as file:
            kept = {row["id"]: row for row in csv.DictReader(file)}
        rows = [kept[id] for id in ("lai-045", "lai-048", "lai-061")]
        rows[1].update(cells)
        path = tmp_path / "claims.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ({"id": "lai-045"}, "second time"),
        ({"id": "46"}, "id"),
        ({"document": "oracle"}, "document must be one of"),
        ({"kind": "hearsay"}, "kind"),
        ({"claim": ""}, "claim"),
        ({"headline": "perhaps"}, "headline"),
        ({"predicate": "rato"}, "lai-048: predicate is 'rato' and none of .*; did you mean ratio"),
        ({"predicate": "bug", "printed": "", "margin": "", "tolerance": ""}, "kind bug"),
        ({"predicate": "direction", "tolerance": ""}, "has no printed number"),
        ({"printed": ""}, "needs a printed number"),
        ({"printed": "1.02"}, "within the margin"),
        ({"printed": "1 - 3"}, "positive"),
        ({"printed": "1/0"}, "evaluated"),
        ({"printed": "tp1_stages.two.tps"}, "no cell two.tps"),
        ({"printed": "tp1_stages.pool.tp1"}, "doesn't print"),
        ({"printed": "__import__('os').getpid()"}, "neither a number"),
        ({"printed": "2 **"}, "evaluated"),
        ({"margin": "tiny"}, "margin: Input should be a valid number"),
        ({"margin": "0"}, "margin"),
        ({"predicate": "at most"}, "have a margin"),
        ({"predicate": "at most", "margin": "", "tolerance": "0.2"}, "have a tolerance"),
        ({"tolerance": "much"}, "tolerance: Input should be a valid number"),
        ({"basis": "hearsay"}, "lai-048: basis is 'hearsay' and none of timed, counted"),
        ({"basis": "conted"}, "; did you mean counted"),
        ({"basis": ""}, "lai-048: basis is '' and none of timed"),
        ({"regime": "winter"}, "regime 'winter' is none of"),
        ({"printed": "3 to 2"}, "smaller to its larger"),
        ({"printed": "0.5 to 2"}, "one side of 1"),
        ({"printed": "a: 2; a: 3"}, "two parts"),
        ({"printed": "2; b: 3"}, "needs a name"),
        ({"predicate": "at least", "margin": "", "tolerance": "", "printed": "2 to 3"}, "no range"),
        ({"quantity": ""}, "quantity"),
        ({"as_share": "share of the run that goes into a"}, "told in %"),
    ],
)
def test_a_damaged_line_is_named(damaged, cells, complaint):
    path = damaged(**cells)
    with pytest.raises(RecordError, match=complaint) as caught:
        claims.ledger(path)
    assert f"{path} is damaged at line 3" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("quantity", "quality", 1),
        lambda t: t + "lai-099,short\n",
        lambda t: t + 'x,"open',
        lambda t: "",
    ],
)
def test_a_ledger_of_another_shape_is_refused(damaged, change):
    path = damaged()
    path.write_text(change(path.read_text()))
    with pytest.raises(RecordError, match="damaged at line"):
        claims.ledger(path)


def test_a_missing_ledger_is_a_record_error(tmp_path):
    with pytest.raises(RecordError, match="claims.csv"):
        claims.ledger(tmp_path / "claims.csv")


@pytest.mark.parametrize(
    "expression, value",
    [("1.25/0.5", 2.5), ("(1 + 2) * 3 - 4", 5), ("tp1_stages.two.tp1", 0.893), (" 7 ", 7)],
)
def test_printed_arithmetic(expression, value):
    assert claims.evaluate(expression) == value


@pytest.mark.parametrize(
    "expression",
    ["", "x", "x.y", "a.b.c.d", "-1", "True", "1e308*10", "'1'", "[1]", "2**3", "max(1,2)"],
)
def test_printed_arithmetic_can_do_nothing_else(expression):
    with pytest.raises((ValueError, RecordError)):
        claims.evaluate(expression)


@pytest.fixture(scope="module")
def documents():
    """The documents' texts by name."""
    folder = os.environ.get("PGRERUN_DOCUMENTS")
    if not folder:
        pytest.skip("PGRERUN_DOCUMENTS names no folder with the documents' texts")
    files = {name: one.file for name, one in printed.DOCUMENTS.items() if one.file}
    return {name: (Path(folder) / file).read_text("utf-8") for name, file in files.items()}


def test_the_ledger_agrees_with_the_documents_where_they_are_at_hand(documents):
    sections = {name: document_text.sections(text) for name, text in documents.items()}
    for c in claims.ledger().values():
        if c.document not in sections or c.chapter not in ("tp1", "hot", "access_paths"):
            continue
        parts = sections[c.document]
        cited = [place.strip() for place in c.section.split(";")]
        text = " ".join(parts[one] for one in (cited if c.document == "hot-2007" else parts))
        values = re.split("; | vs | -> | on | to | / ", c.published_value.lower())
        assert [value for value in values if value not in text.lower()] == [], c.id


# ---- the documents' own words

QUOTES = str.maketrans("“”‘’`", "\"\"''" + "'")


def solid(text):
    """Text without what typesetting and text recognition add: spaces and lines of a table, hyphens,
    kinds of quotes, and the marks of bold and italic type.
    """
    return re.sub(r"<br>|[\s*\-\u2010-\u2015\u00ad]", "", text.lower().translate(QUOTES))


def test_quotes_are_short_and_only_numbers_have_none():
    for c in claims.ledger().values():
        sentences = 1 + len(re.findall(r"[.!?][\"”]? +[A-Z]", c.quote))
        assert len(c.quote) <= 500 and sentences <= 2, c.id
        own = c.document == "practice"  # which prints nothing
        assert own or c.quote or c.sizes or c.published_value, f"{c.id}: no quote and no number"


def test_quotes_are_the_documents_own_words_where_they_are_at_hand(documents):
    # as they are, and without the times of day that divide a talk's sentences
    texts = {
        name: solid(text) + "\0" + solid(" ".join(document_text.sections(text).values()))
        for name, text in documents.items()
    }
    wrong = [
        f"{c.id}: {piece.strip()}"
        for c in claims.ledger().values()
        for piece in re.split(r"\.\.\.|…|\[[^]]*\]", c.quote)
        # release notes have no file here
        if c.document in texts and solid(piece).strip(".") not in texts[c.document]
    ]
    assert not wrong, "\n".join(wrong)
