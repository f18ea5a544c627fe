"""How much of a chapter a reader meets with everything folded, and that nothing is missing from it.

Words are counted in the page, screens in Chromium at the width of a desktop.
"""

import json
import re
import zipfile
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from pgrerun import parameters

WORDS, SCREENS = 4500, 18
WIDTH, HEIGHT = 1400, 900
_ATTEMPTED = re.compile(r"\battempt\(\s*(?:\w+\.)*(\w+)")
# the last is what the line of a folded cell says once it is unfolded
_UNSEEN = (
    "script, style, template, noscript, svg, .vl-tools, .vl-table, a.headerlink,"
    " details.hide:not([open]) > summary > p.expanded"
)


def chapters(site: Path) -> list[Path]:
    found = sorted((site / "results").glob("*.html"))
    assert [path.stem for path in found] == sorted(parameters.chapters())
    return found


def article(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_bytes(), "html.parser").select_one("article")


def words(page: BeautifulSoup) -> int:
    """Of what a reader sees before unfolding anything: of a folded part, its one line."""
    for folded in page.select(
        "details:not([open]) > :not(summary), .dropdown > :not(.admonition-title)"
    ):
        folded.extract()
    for unseen in page.select(_UNSEEN):
        unseen.extract()
    return len(page.get_text(" ").split())


def test_no_chapter_has_too_many_words(real_site):
    counted = {path.stem: words(article(path)) for path in chapters(real_site)}
    assert not {name: number for name, number in counted.items() if number > WORDS}


def test_no_chapter_has_too_many_screens(browser, real_site):
    long = {}
    with browser.page(width=WIDTH, height=HEIGHT) as page:
        for path in chapters(real_site):
            page.open(path).drawn()
            tall = page.run("document.querySelector('article').getBoundingClientRect().height")
            if tall > SCREENS * HEIGHT:
                long[path.stem] = tall / HEIGHT
    assert not long


def test_a_page_opens_with_its_chart_and_says_so_where_that_comes_from(real_site):
    opened = []
    for path in chapters(real_site):
        page, name = article(path), parameters.info(path.stem).opens_with
        charts = page.select(f"#chart-{name}")
        at_the_head = page.select(".what-we-found + figure.vl-figure")
        # a run that set the experiment aside has no chart to open with
        assert at_the_head == charts and len(charts) <= 1, path.stem
        links = page.select(f'p > a[href="#chart-{name}"]')
        assert len(links) == len(charts), path.stem
        opened += charts
    assert len(opened) > len(parameters.chapters()) / 2


def test_the_table_of_verdicts_has_all_that_its_page_opens_with(real_site):
    for path in chapters(real_site):
        page = article(path)
        captions = [one for one in page.select("caption") if "a star marks" in one.get_text()]
        (caption,) = captions
        (opened,) = page.select(".what-we-found > p:last-child")
        told = re.sub("No claim here", "Of 0 claims", opened.get_text())
        (scored,), apart = (
            re.findall(r"^Of (\d+)", told),
            told.partition("Outside of the score:")[2],
        )
        counted = int(scored) + sum(map(int, re.findall(r"(?:^|, )\s*(\d+) ", apart)))
        assert counted == len(caption.parent.select("tbody tr")), path.stem


def test_what_is_folded_is_not_counted_and_the_rest_is(toy_site):
    counted = words(article(toy_site / "results" / "tp1.html"))
    for added, more in (("<p>two words</p>", 2), ("<details><summary>a</summary>b</details>", 1)):
        page = article(toy_site / "results" / "tp1.html")
        page.append(BeautifulSoup(added.replace("b<", "<p>b c</p><"), "html.parser"))
        assert words(page) == counted + more


@pytest.mark.parametrize("chapter", sorted(parameters.chapters()))
def test_no_experiment_without_its_statements(real_site, chapter):
    archive = real_site / "results" / f"{chapter}-record.zip"
    if not archive.exists():
        pytest.skip(f"no run of {chapter} is shown")
    with zipfile.ZipFile(archive) as record:
        made = json.loads(record.read(f"{chapter}/environment.json"))["environment"]
    sent = made["sent"]
    page = article(real_site / "results" / f"{chapter}.html")
    cells = [one.parent for one in page.select("details.what-was-run")]
    shown = {
        name
        for name, account in sent.items()
        if any(_tells(cell, chapter, name, account) for cell in cells)
    }
    assert shown == set(sent)
    notebook = json.loads((real_site / "_sources" / "results" / f"{chapter}.ipynb").read_text())
    run = {name.partition(",")[0].rpartition(".")[2] for name in sent}
    told = page.get_text()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            attempted = set(_ATTEMPTED.findall("".join(cell["source"])))
            for name in attempted:
                assert re.search(rf"pgrerun run {chapter} --only (\w+\.)?{name}\n", told), name
            assert attempted <= run or "was set aside" in json.dumps(cell["outputs"])


def _tells(cell: BeautifulSoup, chapter: str, name: str, account: dict) -> bool:
    """Whether a cell says how to run the experiment again, what it is and what it sent."""
    said = cell.get_text()
    statements = [text.strip()[:60] for text, _ in account["statements"][:3]]
    parts = [f"--only {name.partition(',')[0]}\n", *account["files"].values(), *statements]
    squeezed = " ".join(said.split())
    return all(" ".join(part.split()) in squeezed for part in [*parts, account["function"]])
