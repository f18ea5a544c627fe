"""The book to be read away from a browser: what an ePub needs of a page, and a PDF of all pages.

`book/_ext/printed` is the Sphinx builder that makes the ePub; it hands each page to `readable`. The
PDF is the same ePub put in one page (`whole`) and printed by Chromium, so that neither LaTeX nor a
second build is needed. Sphinx's own `singlehtml` would be that second build, of pages whose charts
and mathematics still wait for scripts and whose outline the browser makes of every heading; the
pages of an ePub are made anyway, and are finished. `book.py` says which chapters are printed,
`gates.check_epub` what must not be. Nothing is fetched.
"""

import os
import posixpath
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pypdf
from bs4 import BeautifulSoup, Comment, Tag
from pypdf.generic import Fit

from pgrerun.errors import BookError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 300  # seconds for the browser, which takes a few for the whole book on a quiet machine

# Neither has a script, so nothing that only a script fills or needs may stay, nor what only opens.
_LIVE = (
    "script, style, template, noscript, form, button, input, a.headerlink, .page-record ul,"
    " details.hide > summary"
)
# E-readers have pages of their own, and some stumble over the boxes in a margin.
_PAPER = """
@page {
  size: A4;
  margin: 13mm 14mm 15mm;
  @bottom-center { content: counter(page); font: 9pt sans-serif; color: #555; }
}
@page :first { @bottom-center { content: none; } }
"""
_CONTENTS = "contents"  # the anchor of the table of contents
_SVG_DATA = "data:image/svg+xml,"
_XHTML, _SVG, _MATHML = (
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1998/Math/MathML",
)
_OPF, _CONTAINER, _DC = (
    "http://www.idpf.org/2007/opf",
    "urn:oasis:names:tc:opendocument:xmlns:container",
    "http://purl.org/dc/elements/1.1/",
)


# ---- a page


def readable(body: str, page: str, book: Path) -> str:
    """The HTML of a page's body as XHTML for a reader without scripts.

    `page` is the page's address in the book ("results/tp1.xhtml"), `book` the folder of all pages,
    which gets the charts' pictures as files below `_images`. Folded parts are unfolded, but marked
    as `folded` for the PDF, which has their one line only. Links follow the pages' new names.
    """
    soup = BeautifulSoup(body, "html5lib")  # which knows that SVG's names have capitals
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    for place in soup.select(".laboratory"):
        place.select_one(".laboratory-start").string = place.get("data-on-paper", "")
    for tag in soup.select(_LIVE):
        tag.decompose()
    for folded in soup.find_all("details"):
        folded.name = "div"
        if not folded.has_attr("open"):
            folded["class"] = [*folded.get("class", []), "folded"]
        del folded["open"]
    for summary in soup.find_all("summary"):
        summary.name, summary["class"] = "p", "summary"
    for namespace, name in ((_SVG, "svg"), (_MATHML, "math")):
        for tag in soup.find_all(name):
            tag["xmlns"] = namespace
    for link in soup.find_all("a", href=True):
        link["href"] = _renamed(link["href"])
    for picture in soup.find_all("img", src=True):
        if picture["src"].startswith(_SVG_DATA):
            _into_a_file(picture, page, book)
    return soup.body.decode_contents(formatter="minimal")


def _renamed(address: str) -> str:
    """The site's address of a page as it is in an ePub, which has no queries."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or not parts.path.endswith(".html"):
        return address
    return parts._replace(path=parts.path.removesuffix(".html") + ".xhtml", query="").geturl()


def _into_a_file(picture: Tag, page: str, book: Path) -> None:
    content = unquote(picture["src"].removeprefix(_SVG_DATA)).encode()
    file = f"_images/chart-{sha256(content).hexdigest()[:20]}.svg"
    (book / file).parent.mkdir(exist_ok=True)
    (book / file).write_bytes(content)
    picture["src"] = posixpath.relpath(file, posixpath.dirname(page) or ".")


# ---- all pages as one


def whole(book: Path) -> Path:
    """One page of all pages of an unpacked ePub, written beside them: title, contents, pages in
    reading order.

    Names that several pages have are told apart, and links lead to their place in the one page.
    """
    package = book / ElementTree.parse(book / "META-INF" / "container.xml").find(
        f".//{{{_CONTAINER}}}rootfile"
    ).get("full-path")
    opf = ElementTree.parse(package).getroot()
    items = {item.get("id"): item for item in opf.iter(f"{{{_OPF}}}item")}
    files = [items[one.get("idref")].get("href") for one in opf.iter(f"{{{_OPF}}}itemref")]
    styles = [item.get("href") for item in items.values() if item.get("media-type") == "text/css"]
    contents = next(
        item.get("href") for item in items.values() if "nav" in item.get("properties", "").split()
    )
    root = ElementTree.Element(f"{{{_XHTML}}}html", lang="en")
    head = ElementTree.SubElement(root, f"{{{_XHTML}}}head")
    for style in styles:
        ElementTree.SubElement(
            head, f"{{{_XHTML}}}link", rel="stylesheet", type="text/css", href=style
        )
    ElementTree.SubElement(head, f"{{{_XHTML}}}style").text = _PAPER
    body = ElementTree.SubElement(root, f"{{{_XHTML}}}body", {"class": "whole"})
    _title(opf, head, body)
    keys = {file: f"page-{number}" for number, file in enumerate(files)}
    nav = ElementTree.parse(book / contents).find(f".//{{{_XHTML}}}nav")
    _relinked(nav, contents, keys)
    nav.set("id", _CONTENTS)
    body.append(nav)
    for file, key in keys.items():
        page = ElementTree.parse(book / file).find(f".//{{{_XHTML}}}body")
        _relinked(page, file, keys)
        section = ElementTree.SubElement(body, f"{{{_XHTML}}}section", {"id": key, "class": "page"})
        section.text = page.text
        section.extend(page)
    _lead_to_headings(body)
    target = package.parent / "whole.xhtml"
    for prefix, namespace in (("", _XHTML), ("svg", _SVG), ("m", _MATHML)):
        ElementTree.register_namespace(prefix, namespace)
    ElementTree.ElementTree(root).write(target, encoding="utf-8", xml_declaration=True)
    return target


def _title(opf: ElementTree.Element, head: ElementTree.Element, body: ElementTree.Element) -> None:
    """The title page, from what the ePub says about itself."""
    said = {
        name: opf.findtext(f".//{{{_DC}}}{name}", "")
        for name in ("title", "description", "creator", "date", "rights")
    }
    ElementTree.SubElement(head, f"{{{_XHTML}}}title").text = said["title"]
    page = ElementTree.SubElement(body, f"{{{_XHTML}}}header", {"class": "title"})
    ElementTree.SubElement(page, f"{{{_XHTML}}}p", {"class": "book-title"}).text = said["title"]
    for words in (said["description"], said["creator"], f"{said['date'][:10]}, {said['rights']}"):
        ElementTree.SubElement(page, f"{{{_XHTML}}}p").text = words


def _relinked(tree: ElementTree.Element, file: str, keys: dict[str, str]) -> None:
    """Names, links and pictures of the page `file` as they are in the one page."""
    for tag in _outside_of_pictures(tree):
        if "id" in tag.attrib and file in keys:
            tag.set("id", f"{keys[file]}--{tag.get('id')}")
        for attribute in {"href", "src"} & tag.attrib.keys():
            if place := place_of(tag.get(attribute), file):
                path, anchor = place
                within = f"--{anchor}" if anchor else ""
                tag.set(attribute, f"#{keys[path]}{within}" if path in keys else path)


def place_of(address: str, page: str) -> tuple[str, str] | None:
    """The file and the anchor there to which an address leads on a page; None on another host."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    path = posixpath.join(posixpath.dirname(page), unquote(parts.path)) if parts.path else page
    return posixpath.normpath(path), parts.fragment


def headings(body: ElementTree.Element) -> list[tuple[int, str, str]]:
    """What the outline of the PDF lists of the one page: contents, pages, their sections.

    Level (1 is a page, 2 and 3 are its sections), title, and the anchor in `whole`.
    """
    found = [(1, "Contents", _CONTENTS)]
    levels = {f"{{{_XHTML}}}h{level}": level for level in (1, 2, 3)}
    for section in body.iter(f"{{{_XHTML}}}section"):
        for tag in section:
            if tag.tag in levels and section.get("id"):
                title = " ".join("".join(tag.itertext()).split())
                found.append((levels[tag.tag], title, section.get("id")))
    return found


def _lead_to_headings(body: ElementTree.Element) -> None:
    """Links to all headings, unseen: Chromium writes down only the places that a link leads to."""
    unseen = ElementTree.SubElement(body, f"{{{_XHTML}}}div", {"class": "places"})
    for _, _, anchor in headings(body):
        ElementTree.SubElement(unseen, f"{{{_XHTML}}}a", href=f"#{anchor}").text = "."


def _outside_of_pictures(tree: ElementTree.Element) -> Iterator[ElementTree.Element]:
    yield tree
    for child in tree:
        if not str(child.tag).startswith(f"{{{_SVG}}}"):
            yield from _outside_of_pictures(child)


# ---- the PDF


def browser() -> str | None:
    """The Chromium on PATH, by whichever of its names."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def pdf(epub: Path) -> Path:
    """Print an ePub as a PDF beside it. BookError without a Chromium, or with what it said when it
    failed.
    """
    program = browser()
    if program is None:
        raise BookError(
            "The PDF can't be made: Chromium prints it, and there is none on PATH (looked for"
            f" {', '.join(BROWSERS)}). Install it and print again. The ePub is complete: {epub}"
        )
    target = epub.with_suffix(".pdf")
    # Beside the ePub: a Chromium in a sandbox of its own sees no /tmp but its own. Its last
    # processes may outlive it for a moment.
    with tempfile.TemporaryDirectory(
        dir=epub.resolve().parent, ignore_cleanup_errors=True
    ) as folder:
        with zipfile.ZipFile(epub) as packed:
            packed.extractall(folder)
        page = whole(Path(folder))
        command = [
            program,
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder}/profile",
            "--no-pdf-header-footer",
            f"--print-to-pdf={folder}/whole.pdf",
            page.as_uri(),
        ]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # without which Chromium refuses to run as root
        if said := _failure(
            command,
            made := Path(folder) / "whole.pdf",
            least=page.read_text(encoding="utf-8").count('class="page"'),
        ):
            raise BookError(
                f"The PDF can't be made: {program} {said}. The ePub is complete: {epub}"
            )
        _outlined(made, headings(ElementTree.parse(page).getroot()), target)
    return target


def _outlined(printed: Path, entries: list[tuple[int, str, str]], target: Path) -> None:
    """Give a printed PDF its outline, and write it to `target`.

    Chromium can make one itself, but takes it from the text as drawn: whether spaces at a line's
    end stay and a heading comes once or twice differs from release to release.
    """
    writer = pypdf.PdfWriter(clone_from=printed)
    places = writer.named_destinations
    above: dict[int, Any] = {}  # the latest entry of each level
    for level, title, anchor in entries:
        place = places.get(f"/{anchor}")
        if place is None:
            raise BookError(
                f"The PDF can't be made: Chromium left out the place of “{title}”, so that"
                " the outline can't lead there."
            )
        above = {upper: item for upper, item in above.items() if upper < level}
        above[level] = writer.add_outline_item(
            title=title,
            page_number=writer.get_destination_page_number(place),
            parent=above[max(above)] if above else None,
            fit=Fit.xyz(top=place.top),
        )
    writer.write(target)


def _failure(command: list[str], made: Path, least: int) -> str:
    """Print, and say what went wrong; "" if nothing did. `least` is the number of pages that there
    must be.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return f"didn't finish within {_PATIENCE} s"
    if done.returncode or not made.is_file():
        return f"failed and said: {done.stderr.strip()[-400:] or 'nothing'}"
    # It prints its own complaint where it can't open a page, and is content.
    found = len(re.findall(rb"/Type\s*/Page\b", made.read_bytes()))
    return f"printed {found} pages where there are at least {least}" if found < least else ""


# ---- does it still fit the site?


def fingerprint(source: Path) -> str:
    """Of everything that a site or a printed book is made from in `source`; the same for both."""
    files = {
        path.relative_to(source).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(source.rglob("*"))
        if path.is_file() and path.suffix in (".md", ".ipynb", ".yml", ".bib")
    }
    return sha256(repr(files).encode()).hexdigest()
