"""The printed book: an ePub that every reader can open and a PDF with text, pictures and an
outline.
"""

import re
import shutil
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pypdf
import pytest
from bs4 import BeautifulSoup

from pgrerun import parameters
from pgrerun.errors import BookError
from pgrerun.record import claims
from pgrerun.site import gates, printing

needs_browser = pytest.mark.skipif(
    printing.browser() is None, reason="Chromium prints the PDF, and there is none on PATH"
)
XHTML = "{http://www.w3.org/1999/xhtml}"
OPF = "{http://www.idpf.org/2007/opf}"


@pytest.fixture(scope="module")
def pages(real_epub) -> dict[str, BeautifulSoup]:
    with zipfile.ZipFile(real_epub) as packed:
        return {
            name: BeautifulSoup(packed.read(name), "html.parser")
            for name in packed.namelist()
            if name.endswith(".xhtml")
        }


def reading_order(epub: Path) -> list[str]:
    """The files of an ePub's pages."""
    with zipfile.ZipFile(epub) as packed:
        opf = ElementTree.fromstring(packed.read("content.opf"))
    files = {item.get("id"): item.get("href") for item in opf.iter(f"{OPF}item")}
    return [files[one.get("idref")] for one in opf.iter(f"{OPF}itemref")]


def charts(pages) -> list:
    return [
        picture
        for page in pages.values()
        for picture in page.select("figure.vl-figure .vl-chart > img")
    ]


def words(text: str) -> str:
    """Text as it is compared: lines are broken anywhere in print."""
    return re.sub(r"[\s\u00ad-]+", "", text)


# ---- the ePub


def test_it_passes_its_gate(toy_book, toy_epub):
    gates.check_epub(toy_epub, toy_book / "book")


def test_its_chapters_are_in_the_order_of_the_contents(pages, real_epub):
    order = reading_order(real_epub)
    chapters = [name for name in order if name.startswith("results/")]
    assert order[0] == "index.xhtml"
    documents = dict.fromkeys(parameters.info(name).document for name in parameters.chapters())
    grouped = [
        name
        for document in documents
        for name in parameters.chapters()
        if parameters.info(name).document == document
    ]
    assert chapters == [f"results/{name}.xhtml" for name in grouped]
    assert {name for name in pages if name != "nav.xhtml"} == set(order)


def test_charts_are_pictures_in_files_with_words(pages, real_epub):
    with zipfile.ZipFile(real_epub) as packed:
        files = set(packed.namelist())
    assert charts(pages)
    for picture in charts(pages):
        assert (
            re.fullmatch(r"(\.\./)?_images/chart-[0-9a-f]+\.svg", picture["src"])
            and picture["src"].removeprefix("../") in files
        )
        assert len(picture["alt"]) > 20


def test_nothing_waits_for_a_script(pages):
    for name, page in pages.items():
        assert not page.select("script, form, button, input, details, [hidden]"), name
        assert "vega" not in page.get_text(), name


def test_no_page_says_its_specification_aloud(pages):
    assert not [
        name
        for name, page in pages.items()
        if '"$schema"' in page.get_text() or "data:image" in str(page)
    ]


def test_the_scoreboard_is_whole_and_leads_to_the_verdicts(pages):
    rows = pages["scoreboard.xhtml"].select(".scoreboard tbody tr")
    assert [row["id"] for row in rows] == list(claims.ledger())
    assert all(
        row.select_one("a.verdict")["href"].partition("#")[0]
        == f"results/{row['data-chapter']}.xhtml"
        for row in rows
    )


def test_folded_solutions_are_unfolded(toy_epub):
    body = (
        "<details class='x'><summary>Solution</summary><p>It is <b hidden>so</b>.</p></details><svg"
        " viewBox='0 0 1 1'><path/></svg>"
    )
    text = printing.readable(body, "results/tp1.xhtml", toy_epub.parent)
    assert '<div class="x folded"><p class="summary">Solution</p>' in text
    assert '<svg viewBox="0 0 1 1" xmlns="http://www.w3.org/2000/svg"><path></path></svg>' in text


@pytest.mark.parametrize(
    "written, printed",
    [
        ("scoreboard.html?verdict=not+tested+here", "scoreboard.xhtml"),
        ("../glossary.html#term-page", "../glossary.xhtml#term-page"),
        ("scoreboard.xhtml#lai-047", "scoreboard.xhtml#lai-047"),
        (
            "https://www.postgresql.org/docs/18/index.html",
            "https://www.postgresql.org/docs/18/index.html",
        ),
    ],
)
def test_links_follow_the_pages(tmp_path, written, printed):
    assert (
        printing.readable(f'<a href="{written}">x</a>', "index.xhtml", tmp_path)
        == f'<a href="{printed}">x</a>'
    )


# ---- damaged ones

TOY = "results/tp1.xhtml"
DAMAGES = {
    "compressed mimetype": (None, None, None, "mimetype is not its first"),
    "not well-formed": ("index.xhtml", "</body>", "<br></body>", "index.xhtml is not well-formed"),
    "a dead link": (
        "index.xhtml",
        "</body>",
        '<a href="nowhere.xhtml">x</a></body>',
        "index.xhtml: nowhere.xhtml leads nowhere",
    ),
    "a dead anchor": (
        "index.xhtml",
        "</body>",
        '<a href="glossary.xhtml#no">x</a></body>',
        "the anchor in glossary.xhtml#no",
    ),
    "a lost chart": (TOY, 'class="vl-chart"', 'class="gone"', "shows 4 charts, its notebook has 5"),
    "a script": (TOY, "</body>", "<script>1</script></body>", "has a script"),
    "a picture from elsewhere": (
        TOY,
        "</body>",
        '<img alt="x" src="https://a.test/p"/></body>',
        "<img> fetches https://a.test/p",
    ),
    "a picture without words": (
        TOY,
        "</body>",
        '<img alt="" src="../_static/print.css"/></body>',
        "no alternative text",
    ),
    "a file that isn't listed": (
        "content.opf",
        '<item id="ncx" href="toc.ncx"',
        '<item id="ncx" href="other.ncx"',
        "toc.ncx is in the package but not listed",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_epub_is_refused(toy_book, toy_epub, tmp_path, damage):
    page, old, new, complaint = DAMAGES[damage]
    broken = tmp_path / "broken.epub"
    with zipfile.ZipFile(toy_epub) as whole, zipfile.ZipFile(broken, "w") as target:
        for entry in whole.infolist():
            content = whole.read(entry)
            if entry.filename == page:
                assert old in content.decode()
                content = content.decode().replace(old, new, 1).encode()
            compressed = entry.filename == "mimetype" and page is None
            target.writestr(
                entry.filename, content, zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            )
    with pytest.raises(BookError) as error:
        gates.check_epub(broken, toy_book / "book")
    assert complaint in str(error.value)


# ---- the PDF

MOST_PAGES = 160


@pytest.fixture(scope="module")
def pdf(real_epub) -> pypdf.PdfReader:
    return pypdf.PdfReader(real_epub.with_suffix(".pdf"))


def text_of(pages) -> str:
    return words("".join(page.extract_text() for page in pages))


def outlined(entries, level: int = 1):
    """(level, title, entry) of an outline as pypdf gives it, nested."""
    for entry in entries:
        if isinstance(entry, list):
            yield from outlined(entry, level + 1)
        else:
            yield level, words(entry.title), entry


def test_the_pdf_is_no_longer_than_a_book(pdf):
    assert 40 < len(pdf.pages) <= MOST_PAGES


def test_the_outline_of_the_pdf_leads_to_every_page_and_section(pdf, pages, real_epub):
    order = reading_order(real_epub)
    headings = [
        (int(tag.name[1]), words(tag.get_text()))
        for name in order
        for tag in pages[name].select("section > h1, section > h2, section > h3")
    ]
    outline = list(outlined(pdf.outline))
    assert [(level, title) for level, title, _ in outline] == [(1, "Contents"), *headings]
    text = [text_of([page]) for page in pdf.pages]  # each once: it takes longer than all else
    places = [pdf.get_destination_page_number(entry) for _, _, entry in outline[1:]]
    lost = [
        title
        for (_, title, _), place in zip(outline[1:], places, strict=True)
        if title not in "".join(text[place : place + 2])
    ]
    assert not lost and pdf.metadata.title == "Postgres, Rerun"


@needs_browser
def test_the_pdf_says_what_the_pages_say(toy_epub):
    pdf = pypdf.PdfReader(toy_epub.with_suffix(".pdf"))
    tops = [entry for level, _, entry in outlined(pdf.outline) if level == 1][1:]
    starts = [pdf.get_destination_page_number(entry) for entry in tops]
    place = reading_order(toy_epub).index(TOY)
    whole = text_of(pdf.pages[starts[place] : starts[place + 1] + 1])
    with zipfile.ZipFile(toy_epub) as packed:
        shown = BeautifulSoup(packed.read(TOY), "html.parser")
    found = [
        (one.get_text(), one.find_parent(class_="folded") is not None)
        for one in shown.select(".vl-question, figcaption, h2, td")
    ]
    said = [text for text, folded in found if not folded]
    assert (
        len(said) > 20
        and len(said) < len(found)
        and not [one for one in said if words(one) not in whole]
    )


def test_the_pdf_has_its_charts_drawn_with_their_words(pdf, pages):
    found = [
        tag
        for tag in structure(pdf.trailer["/Root"]["/StructTreeRoot"])
        if tag.get("/S") == "/Figure" and tag.get("/Alt")
    ]
    described = {words(str(tag["/Alt"])) for tag in found}
    shown = [picture for picture in charts(pages) if not picture.find_parent(class_="folded")]
    assert shown and {words(picture["alt"]) for picture in shown} <= described


def structure(node):
    """All elements of a PDF's structure, which a screen reader reads."""
    waiting = [node]
    while waiting:
        element = waiting.pop().get_object()
        if isinstance(element, pypdf.generic.DictionaryObject):
            yield element
            children = element.get("/K", [])
            waiting += children if isinstance(children, list) else [children]
        elif isinstance(element, list):
            waiting += element


def test_links_of_the_pdf_lead_inside_it(pdf):
    notes = [note.get_object() for page in pdf.pages for note in page.get("/Annots") or []]
    targets = [str(note["/A"].get("/URI", "")) for note in notes if "/A" in note]
    assert any("/Dest" in note for note in notes) and not [
        one for one in targets if one.startswith("file:")
    ]


def test_names_that_two_pages_share_are_told_apart(toy_epub, tmp_path):
    with zipfile.ZipFile(toy_epub) as packed:
        packed.extractall(tmp_path)
    one = ElementTree.parse(printing.whole(tmp_path)).getroot()
    ids = [
        tag.get("id")
        for tag in one.iter()
        if tag.get("id") and not tag.tag.startswith("{http://www.w3.org/2000/svg}")
    ]
    assert len(ids) == len(set(ids))
    inside = {
        link.get("href")[1:]
        for link in one.iter(f"{XHTML}a")
        if link.get("href", "").startswith("#")
    }
    assert inside and inside <= set(ids)


def test_without_a_browser_the_epub_is_there_and_the_error_says_so(toy_epub, monkeypatch):
    monkeypatch.setattr(printing, "BROWSERS", ("no-such-browser",))
    with pytest.raises(BookError, match="looked for no-such-browser.*The ePub is complete"):
        printing.pdf(toy_epub)


EMPTY = (
    'for word in "$@"; do case $word in --print-to-pdf=*) echo "%PDF /Type /Page" > "${word#*=}";;'
    " esac; done"
)


@pytest.mark.parametrize(
    "does, complaint",
    [
        ("echo no display >&2; exit 3", "failed and said: no display"),
        ("exit 0", "said: nothing"),
        (EMPTY, "printed 1 pages where there are at least"),
    ],
)
def test_a_browser_that_fails_leaves_no_pdf_and_is_quoted(
    toy_epub, tmp_path, monkeypatch, does, complaint
):
    program, epub = tmp_path / "chromium", shutil.copy(toy_epub, tmp_path / "book.epub")
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(printing, "BROWSERS", (str(program),))
    with pytest.raises(BookError, match=complaint):
        printing.pdf(epub)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["book.epub", "chromium"]


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
    (tmp_path / "results" / "a.ipynb").write_text("{}")
    before = printing.fingerprint(tmp_path)
    (tmp_path / "picture.png").write_bytes(b"x")  # not what a page is written in
    assert printing.fingerprint(tmp_path) == before
    (tmp_path / "results" / "a.ipynb").write_text("[]")
    assert printing.fingerprint(tmp_path) != before
