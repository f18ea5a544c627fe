"""The book of all chapters as `pgrerun book` builds it in a checkout where one was never run: what
is run for it, and each page as a reader and as assistive software meet it.

Seconds depend on the machine; `benchmarks/first_paint.py` measures them.
"""

import json
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup
from checkouts import LIVE, command, pages

from pgrerun import parameters
from pgrerun.lab.testbed import experiments_of
from pgrerun.record import claims
from pgrerun.site import gates, scoreboard
from pgrerun.site.book import Book

# ---- in a browser

PHONE, DESK = 360, 1440
# One page of each form. What is in all of them alike is looked at here in the dark as well, on a
# phone, between the theme's breakpoints, and by axe, which takes longer than all else.
FORMS = ("index", "results/tp1", "scoreboard", "all-runs", "what-to-do", "laboratory-hot")


@pytest.mark.browser
@pytest.mark.parametrize(
    ("names", "dark", "widths", "axe"),
    [
        ((), False, (DESK,), False),
        pytest.param((), False, (DESK,), True, marks=pytest.mark.long),
        (FORMS, False, (DESK,), True),
        (FORMS, True, (1600, 1000, 800, 600, PHONE), True),
    ],
)
def test_a_page_is_complete_quiet_and_accessible_and_fits(
    browser, real_site, names, dark, widths, axe
):
    """The widths after a phone's; axe looks at the last."""
    found = {}
    with browser.page(width=PHONE, dark=dark) as page:
        for path in [real_site / f"{name}.html" for name in names] or pages(real_site):
            page.resize(PHONE).open(path).drawn().fits()
            charts = page.run(
                "[...document.querySelectorAll('.vl-chart')].map(c => [c.scrollWidth -"
                " c.clientWidth, !!c.querySelector('.vl-live:not([hidden]) svg')])"
            )
            assert all(drawn and excess <= 1 for excess, drawn in charts), (path.name, charts)
            for width in widths:
                page.resize(width).fits()
            found[path.name] = page.violations() if axe else []
            assert page.noise() == [], path.name
    serious = {name: one for name, one in found.items() if one}
    assert not serious, json.dumps(serious, indent=1)


# ---- what was run for it


def test_what_was_never_run_is_run_and_the_rest_is_not(real_book):
    said = (real_book / "said").read_text()
    for chapter in parameters.chapters():
        told = "never run." if chapter == LIVE else "nothing it is made from has changed"
        assert f"{chapter}: {told}" in said
    assert "site: building (never built)." in said
    # and nothing is out of date then
    said = command(real_book, "status")
    assert said.count(": up to date, profile ci.") == len(parameters.chapters())


def test_a_chapter_that_was_run_is_on_its_page_with_its_own_verdicts(real_book):
    book, ledger = Book(real_book), claims.ledger()
    executed = nbformat.read(book.result(LIVE), as_version=4)
    assert executed.metadata.papermill.parameters.profile == "ci"
    gates.check_chapter(book.result(LIVE))
    judged = json.loads((book.record(LIVE) / "verdicts.json").read_text())
    said = {one["claim"]: one["verdict"] for one in judged}
    assert set(said) == {one.id for one in ledger.values() if one.chapter == LIVE}
    page, board = (soup(book.site / f"{name}.html") for name in (f"results/{LIVE}", "scoreboard"))
    assert all(page.find(id=claim) for claim in said)
    assert {claim: board.find(id=claim)["data-verdict"] for claim in said} == {
        claim: word if ledger[claim].scored else scoreboard.APART for claim, word in said.items()
    }


# ---- how much of a chapter a reader meets with everything folded, and that nothing is missing

WORDS = 4500
# These are longer than a page should be, two of them since they run the systems of their documents.
# They are to be shortened, not the limits raised: what is here may only get less.
LONGER = {"four_tactics": 4800, "hot": 4800}
_FOLDED = "details:not([open]) > :not(summary), .dropdown > :not(.admonition-title)"
# the last is what the line of a folded cell says once it is unfolded
_UNSEEN = (
    "script, style, template, noscript, svg, .vl-tools, .vl-table, a.headerlink,"
    " details.hide:not([open]) > summary > p.expanded"
)


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_bytes(), "html.parser")


def article(site: Path, chapter: str) -> BeautifulSoup:
    return soup(site / "results" / f"{chapter}.html").select_one("article")


def test_no_chapter_has_too_many_words(real_site):
    counted = {}
    for chapter in parameters.chapters():
        page = article(real_site, chapter)
        for unseen in (*page.select(_FOLDED), *page.select(_UNSEEN)):
            unseen.extract()
        counted[chapter] = len(page.get_text(" ").split())
    most = {name: LONGER.get(name, WORDS) for name in counted}
    assert not {name: number for name, number in counted.items() if not 200 < number <= most[name]}
    assert all(counted[name] > WORDS for name in LONGER), "short enough by now: drop it there"


@pytest.mark.parametrize("chapter", sorted(parameters.chapters()))
def test_no_experiment_without_its_statements(real_site, chapter):
    archive = real_site / "results" / f"{chapter}-record.zip"
    if not archive.exists():
        pytest.skip(f"no run of {chapter} is shown")
    with zipfile.ZipFile(archive) as record:
        made = json.loads(record.read(f"{chapter}/environment.json"))["tables"]
    page = article(real_site, chapter)
    cells = [one.parent.get_text() for one in page.select("details.what-was-run")]
    assert "was set aside" in page.get_text() or not any("reason" in one for one in made.values())
    for name, about in made.items():
        # a record may have one that the chapter has no more, as another measures it better now
        if "reason" not in about and name in experiments_of(chapter):
            [told] = [cell for cell in cells if f"pgrerun run {chapter} --only {name}\n" in cell]
            run = [*about["files"].values(), about["function"]]
            assert [text for text in run if text.strip() not in told] == [], name


# ---- what a reader waits for

# Bytes of a page with everything that it loads; of styles and scripts that a browser must have read
# before it paints; of a page's own text before its first paragraph.
MOST = (2_550_000, 700_000, 60_000)


ASKED_FOR = (
    "script[src], img[src], link[rel~=stylesheet], link[rel~=icon], link[rel~=preload],"
    " link[rel~=modulepreload]"
)
# the search index is what the search page shows
BLOCKING = (
    "link[rel~=stylesheet], script[src]:not([defer], [async], [type=module], [src*='searchindex'])"
)


def loaded(page: BeautifulSoup, path: Path, selector: str) -> int:
    """Bytes of the files that these tags of a page ask for by themselves."""
    addresses = {urlsplit(tag.get("src") or tag["href"]) for tag in page.select(selector)}
    files = {
        (path.parent / unquote(one.path)).resolve()
        for one in addresses
        if one.path and not one.scheme
    }
    return sum(file.stat().st_size for file in files)


def weight(path: Path) -> tuple[int, int, int]:
    text, page = path.read_text(encoding="utf-8"), soup(path)
    whole = path.stat().st_size + loaded(page, path, ASKED_FOR)
    return whole, loaded(page, path, BLOCKING), text.find("<p>", text.find("<article"))


def test_no_page_is_heavy_and_none_keeps_its_words_back(real_site):
    found = {path.name: weight(path) for path in pages(real_site)}
    assert not {
        name: one for name, one in found.items() if any(n > most for n, most in zip(one, MOST))
    }
    # what is heaviest is among what was weighed, and is nothing to wait for
    bundle = next((real_site / "_static").glob("vega-bundle-*.js")).stat().st_size
    assert found["hot.html"][0] > bundle > found["hot.html"][1] > 0
