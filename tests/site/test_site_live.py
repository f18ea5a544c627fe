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
        told = "never run." if chapter in LIVE else "nothing it is made from has changed"
        assert f"{chapter}: {told}" in said
    assert "site: building (never built)." in said
    # and nothing is out of date then
    said = command(real_book, "status")
    assert said.count(": up to date, profile ci.") == len(parameters.chapters())


@pytest.mark.parametrize("chapter", LIVE)
def test_a_chapter_that_was_run_is_on_its_page_with_its_own_verdicts(real_book, chapter):
    book, ledger = Book(real_book), claims.ledger()
    executed = nbformat.read(book.result(chapter), as_version=4)
    assert executed.metadata.papermill.parameters.profile == "ci"
    gates.check_chapter(book.result(chapter))
    state = book.state(chapter)
    assert state.reasons == [] and state.seconds > 0
    judged = json.loads((book.record(chapter) / "verdicts.json").read_text())
    said = {one["claim"]: one["verdict"] for one in judged}
    assert set(said) == {one.id for one in ledger.values() if one.chapter == chapter}
    page, board = (
        BeautifulSoup((book.site / name).read_bytes(), "html.parser")
        for name in (f"results/{chapter}.html", "scoreboard.html")
    )
    assert all(page.find(id=claim) for claim in said)
    assert {claim: board.find(id=claim)["data-verdict"] for claim in said} == {
        claim: word if ledger[claim].scored else scoreboard.APART for claim, word in said.items()
    }
