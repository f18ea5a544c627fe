"""The printed book: an ePub that every reader can open and a PDF with text, pictures and an
outline. What must not be in one is for test_site_gates.py.
"""

import re
import shutil
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pypdf
import pytest
from bs4 import BeautifulSoup
from servers import script

from pgrerun.errors import BookError
from pgrerun.record import claims
from pgrerun.site import printing

needs_browser = pytest.mark.skipif(
    printing.browser() is None, reason="Chromium prints the PDF, and there is none on PATH"
)
XHTML = "{http://www.w3.org/1999/xhtml}"
OPF = "{http://www.idpf.org/2007/opf}"


@pytest.fixture(scope="module", params=["toy", pytest.param("real", marks=pytest.mark.long)])
def epub(request) -> Path:
    """The toy's for `make test`, and for `make long` the real chapters' as well."""
    return request.getfixturevalue(f"{request.param}_epub")


@pytest.fixture(scope="module")
def pages(epub) -> dict[str, BeautifulSoup]:
    with zipfile.ZipFile(epub) as packed:
        return {
            name: BeautifulSoup(packed.read(name), "html.parser")
            for name in packed.namelist()
            if name.endswith(".xhtml")
        }


def reading_order(epub: Path) -> list[str]:
    with zipfile.ZipFile(epub) as packed:
        opf = ElementTree.fromstring(packed.read("content.opf"))
    files = {item.get("id"): item.get("href") for item in opf.iter(f"{OPF}item")}
    return [files[one.get("idref")] for one in opf.iter(f"{OPF}itemref")]


def words(text: str) -> str:
    """Text as it is compared: lines are broken anywhere in print."""
    return re.sub(r"[\s\u00ad-]+", "", text)


# ---- the ePub


def test_nothing_waits_for_a_script_or_says_its_specification_aloud(pages):
    waits = "script, form, button, input, details, [hidden], [src^='data:image']"
    assert not [name for name, page in pages.items() if page.select(waits)]
    aloud = "".join(page.get_text() for page in pages.values())
    assert "vega" not in aloud and '"$schema"' not in aloud


def test_the_scoreboard_is_whole_and_leads_to_the_verdicts(pages):
    rows = pages["scoreboard.xhtml"].select(".scoreboard tbody tr")
    found = {row["id"]: row.select_one("a.id")["href"].partition("#")[0] for row in rows}
    ledger = claims.ledger().values()
    assert found == {claim.id: f"results/{claim.chapter}.xhtml" for claim in ledger}


@pytest.mark.parametrize(
    "written, printed",
    [
        *(
            (f'<a href="{written}">x</a>', f'<a href="{printed}">x</a>')
            for written, printed in (
                ("scoreboard.html?verdict=not+tested+here", "scoreboard.xhtml"),
                ("../glossary.html#term-page", "../glossary.xhtml#term-page"),
                ("https://www.postgresql.org/docs/18/index.html",) * 2,
            )
        ),
        (
            "<details class='x'><summary>Solution</summary><p>So.</p></details>",
            '<div class="x folded"><p class="summary">Solution</p><p>So.</p></div>',
        ),
        (
            "<svg viewBox='0 0 1 1'><path/></svg>",
            '<svg viewBox="0 0 1 1" xmlns="http://www.w3.org/2000/svg"><path></path></svg>',
        ),
    ],
)
def test_links_follow_the_pages_and_what_is_folded_is_unfolded(tmp_path, written, printed):
    assert printing.readable(written, "index.xhtml", tmp_path) == printed


# ---- the PDF


@pytest.fixture(scope="module")
def pdf(epub) -> pypdf.PdfReader:
    return pypdf.PdfReader(epub.with_suffix(".pdf"))


def outline(pdf: pypdf.PdfReader) -> list[tuple[int, str, int]]:
    """Level, title and page of each entry; pypdf gives them nested."""

    def flat(entries, level=1):
        for entry in entries:
            if isinstance(entry, list):
                yield from flat(entry, level + 1)
            else:
                yield level, words(entry.title), pdf.get_destination_page_number(entry)

    return list(flat(pdf.outline))


@pytest.mark.long
def test_the_pdf_is_no_longer_than_a_book(real_epub):
    assert 40 < len(pypdf.PdfReader(real_epub.with_suffix(".pdf")).pages) <= 160


@needs_browser
def test_the_outline_of_the_pdf_leads_to_every_page_and_section(pdf, pages, epub):
    headings = [
        (int(tag.name[1]), words(tag.get_text()))
        for name in reading_order(epub)
        for tag in pages[name].select("section > h1, section > h2, section > h3")
    ]
    entries = outline(pdf)
    assert [(level, title) for level, title, _ in entries] == [(1, "Contents"), *headings]
    # each once: it takes longer than all else
    texts = [words(page.extract_text()) for page in pdf.pages]
    lost = [title for _, title, at in entries[1:] if title not in "".join(texts[at : at + 2])]
    assert not lost and pdf.metadata.title == "Postgres, Rerun"


@needs_browser
def test_the_pdf_says_what_the_pages_say(toy_epub):
    pdf, chapter = pypdf.PdfReader(toy_epub.with_suffix(".pdf")), "results/tp1.xhtml"
    tops = [at for level, _, at in outline(pdf) if level == 1][1:]
    place = reading_order(toy_epub).index(chapter)
    whole = "".join(
        words(page.extract_text()) for page in pdf.pages[tops[place] : tops[place + 1] + 1]
    )
    with zipfile.ZipFile(toy_epub) as packed:
        shown = BeautifulSoup(packed.read(chapter), "html.parser")
    found = shown.select(".vl-question, figcaption, h2, td")
    said = [one.get_text() for one in found if one.find_parent(class_="folded") is None]
    assert 20 < len(said) < len(found) and not [one for one in said if words(one) not in whole]


@needs_browser
def test_the_pdf_has_its_charts_drawn_with_their_words(pdf, pages):
    described = {
        words(str(tag["/Alt"]))
        for tag in structure(pdf.trailer["/Root"]["/StructTreeRoot"])
        if tag.get("/S") == "/Figure" and tag.get("/Alt")
    }
    shown = {
        words(picture["alt"])
        for page in pages.values()
        for picture in page.select("figure.vl-figure .vl-chart > img")
        if not picture.find_parent(class_="folded")
    }
    assert shown and shown <= described


def structure(node):
    """All elements of a PDF's structure, which a screen reader reads."""
    node = node.get_object()
    if isinstance(node, dict):  # as all of pypdf's dictionaries are
        yield node
        node = [node["/K"]] if "/K" in node else []
    if isinstance(node, list):
        for child in node:
            yield from structure(child)


@needs_browser
def test_links_of_the_pdf_lead_inside_it(pdf):
    notes = [note.get_object() for page in pdf.pages for note in page.get("/Annots") or []]
    targets = [str(note["/A"].get("/URI", "")) for note in notes if "/A" in note]
    assert any("/Dest" in note for note in notes)
    assert not [one for one in targets if one.startswith("file:")]


def test_names_that_two_pages_share_are_told_apart(toy_epub, tmp_path):
    with zipfile.ZipFile(toy_epub) as packed:
        packed.extractall(tmp_path)
    one = ElementTree.parse(printing.whole(tmp_path)).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    ids = [tag.get("id") for tag in one.iter() if tag.get("id") and not tag.tag.startswith(svg)]
    links = [link.get("href", "") for link in one.iter(f"{XHTML}a")]
    inside = {link[1:] for link in links if link.startswith("#")}
    assert len(ids) == len(set(ids)) and inside and inside <= set(ids)


EMPTY = (
    'for word in "$@"; do case $word in --print-to-pdf=*) echo "%PDF /Type /Page" > "${word#*=}";;'
    " esac; done"
)


@pytest.mark.parametrize(
    "does, complaint",
    [
        ("echo no display >&2; exit 3", "failed and said: no display"),
        (EMPTY, "printed 1 pages where there are at least"),
        (None, "looked for .*chromium.*The ePub is complete"),
    ],
)
def test_a_browser_that_fails_leaves_no_pdf_and_is_quoted(
    toy_epub, tmp_path, monkeypatch, does, complaint
):
    program, epub = tmp_path / "chromium", shutil.copy(toy_epub, tmp_path / "book.epub")
    if does:
        script(program, does)
    monkeypatch.setattr(printing, "BROWSERS", (str(program),))
    with pytest.raises(BookError, match=complaint):
        printing.pdf(epub)
    kept = {"book.epub", "chromium"} if does else {"book.epub"}
    assert {path.name for path in tmp_path.iterdir()} == kept


# ---- on the site


@needs_browser
def test_the_site_offers_what_was_printed(toy_site):
    links = BeautifulSoup((toy_site / "index.html").read_bytes(), "html.parser").select(
        ".printed a[download]"
    )
    assert [link["href"] for link in links] == ["postgres-rerun.pdf", "postgres-rerun.epub"]
    assert all((toy_site / link["href"]).stat().st_size > 10_000 for link in links)


def test_another_book_has_another_fingerprint(tmp_path):
    (tmp_path / "results").mkdir()
    seen = []
    for name, text in (("results/a.ipynb", "{}"), ("picture.png", "x"), ("results/a.ipynb", "[]")):
        (tmp_path / name).write_text(text)
        seen.append(printing.fingerprint(tmp_path))
    assert seen[0] == seen[1] != seen[2]  # a picture is not what a page is written in
