"""The book as `pgrerun book` builds it in a checkout where two chapters were never run."""

import json

import nbformat
import pytest
from bs4 import BeautifulSoup
from checkouts import LIVE, command

from pgrerun import parameters
from pgrerun.record import claims
from pgrerun.site import gates, scoreboard
from pgrerun.site.book import Book


def test_what_was_never_run_is_run_and_the_rest_is_not(real_book):
    said = (real_book / "said").read_text()
    for chapter in parameters.chapters():
        assert (f"{chapter}: never run." in said) == (chapter in LIVE)
        assert (f"{chapter}: nothing it is made from has changed" in said) == (chapter not in LIVE)
    assert "site: building (never built)." in said


@pytest.mark.parametrize("chapter", LIVE)
def test_a_chapter_that_was_run_is_on_its_page_with_its_own_verdicts(real_book, chapter):
    book = Book(real_book)
    executed = nbformat.read(book.result(chapter), as_version=4)
    assert executed.metadata.papermill.parameters.profile == "ci"
    gates.check_chapter(book.result(chapter))
    state = book.state(chapter)
    assert state.reasons == [] and state.seconds > 0
    judged = json.loads((book.record(chapter) / "verdicts.json").read_text())
    expected = {one.id for one in claims.ledger().values() if one.chapter == chapter}
    assert {one["claim"] for one in judged} == expected
    page = BeautifulSoup((book.site / "results" / f"{chapter}.html").read_bytes(), "html.parser")
    board = BeautifulSoup((book.site / "scoreboard.html").read_bytes(), "html.parser")
    for one in judged:
        assert page.find(id=one["claim"]), one["claim"]
    shown = {one["claim"]: board.find(id=one["claim"])["data-verdict"] for one in judged}
    inside = {claim: word for claim, word in shown.items() if word != scoreboard.APART}
    said = {one["claim"]: one["verdict"] for one in judged}
    assert inside.items() <= said.items()
    assert set(inside) == {claim for claim in said if claims.ledger()[claim].scored}


def test_nothing_is_out_of_date_then(real_book):
    said = command(real_book, "status")
    assert said.count(": up to date, profile ci.") == len(parameters.chapters())
