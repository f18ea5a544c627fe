"""The page about all runs says what was gathered, and a stranger's words are text on it."""

import dataclasses

import pytest
import thousand
from bs4 import BeautifulSoup
from thousand import CLAIMS

from pgrerun.record import machines
from pgrerun.record.gather import Machine
from pgrerun.site import all_runs

HOSTILE = '<script>boom()</script>"><img src=x onerror=boom()>'


def made(number, model="A CPU"):
    """Machines that give another word to the first claim for having many cores."""
    many = [dataclasses.replace(one, model=model) for one in thousand.machines(number)]
    return thousand.gathered(many, {CLAIMS[0]: thousand.many_cores})


@pytest.fixture(scope="module")
def gathered():
    return made(80)


def page(text):
    return BeautifulSoup(text, "html.parser")


def address(claim):
    return f"scoreboard.html#{claim}"


def test_a_dependent_claim_is_told_drawn_and_linked(gathered):
    found = machines.findings(gathered)
    told = page(all_runs.dependences(gathered, found, address))
    [row] = told.select("tbody tr")
    assert row.a["href"] == address(CLAIMS[0]) and "processors" in row.get_text()
    (drawn,) = told.select("figure")
    assert CLAIMS[0] in drawn.get_text() and "%" in drawn.select_one("img")["alt"]


def test_every_claim_has_its_words_counted_and_drawn(gathered):
    rows = page(all_runs.board(gathered, address)).select("tbody tr")
    assert [row["id"] for row in rows] == [f"all-{claim}" for claim in CLAIMS]
    for row, claim in zip(rows, CLAIMS):
        counted = machines.tally(gathered, claim)
        assert sum(counted.values()) == 80
        assert all(f"{number} {word}" in row.get_text() for word, number in counted.items())
        named = [picture["aria-label"] for picture in row.select("svg")]
        assert len(named) == 1 + len(machines.CIRCUMSTANCES) and all(named)


def test_a_machine_that_says_nothing_is_no_stumbling_block():
    silent = made(30)
    silent.machines = [Machine() for _ in silent.machines]
    found = machines.findings(silent)
    assert not found.dependences and "unknown" in all_runs.summary(silent)
    assert "doesn't say" in page(all_runs.unlike(silent, found, address)).get_text()
    assert all_runs.board(silent, address)


def test_a_stranger_s_words_are_text():
    hostile = made(40, model=HOSTILE)
    hostile.refused = [f"{HOSTILE}: it is none"] * 30
    found = machines.findings(hostile)
    told = [
        all_runs.summary(hostile),
        all_runs.unlike(hostile, found, address),
        all_runs.dependences(hostile, found, address),
        all_runs.board(hostile, address),
    ]
    assert not [text for text in told if page(text).find_all(src="x") or "<script>boom" in text]
    assert all(HOSTILE in page(text).get_text() for text in told[:2])
    assert len(page(told[0]).select(".refused li")) == 21
