"""What a reader waits for: the weight of each page, and what stands before its first words.

Seconds depend on the machine; `benchmarks/first_paint.py` measures them.
"""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup
from checkouts import pages

MOST = 2_500_000  # bytes of a page with everything that it loads
BEFORE = 700_000  # of styles and scripts that a browser must have read before it paints
WORDS = 60_000  # of a page's own text, before its first paragraph


def loaded(page, path: Path, only) -> int:
    """Bytes of the files that a page asks for by itself, and that `only` is true for."""
    tags = [tag for tag in page.find_all(["script", "link", "img"]) if only(tag)]
    addresses = {urlsplit(tag.get("src") or tag.get("href") or "") for tag in tags}
    files = {
        (path.parent / unquote(one.path)).resolve()
        for one in addresses
        if one.path and not one.scheme
    }
    return sum(file.stat().st_size for file in files)


def asked_for(tag) -> bool:
    return tag.name != "link" or bool(
        {"stylesheet", "icon", "preload", "modulepreload"} & set(tag.get("rel", []))
    )


def blocking(tag) -> bool:
    late = (
        tag.has_attr("defer")
        or tag.has_attr("async")
        or tag.get("type") in ("module", "application/json")
    )
    late = late or "searchindex.js" in tag.get("src", "")  # which is what the search page shows
    return (tag.name == "script" and not late) or (
        tag.name == "link" and "stylesheet" in tag.get("rel", [])
    )


def test_no_page_is_heavy_and_none_keeps_its_words_back(site):
    heavy = {}
    for path in pages(site):
        page = BeautifulSoup(path.read_bytes(), "html.parser")
        whole = path.stat().st_size + loaded(page, path, asked_for)
        before = loaded(page, path, blocking)
        words = path.read_text(encoding="utf-8").find(
            "<p>", path.read_text(encoding="utf-8").find("<article")
        )
        if whole > MOST or before > BEFORE or words > WORDS:
            heavy[path.name] = {
                "bytes": whole,
                "before it is painted": before,
                "before its first words": words,
            }
    assert not heavy


def test_the_weight_of_what_a_page_loads_is_seen(toy_site):
    path = toy_site / "results" / "tp1.html"
    page = BeautifulSoup(path.read_bytes(), "html.parser")
    bundle = next((toy_site / "_static").glob("vega-bundle-*.js")).stat().st_size
    assert (
        loaded(page, path, asked_for)
        > bundle
        > loaded(page, path, blocking) - loaded(page, path, lambda tag: tag.name == "link")
    )
    page.head.append(
        page.new_tag(
            "script", src=f"../_static/{next((toy_site / '_static').glob('vega-bundle-*.js')).name}"
        )
    )
    assert loaded(page, path, blocking) > bundle


def test_every_icon_of_a_page_has_its_outline(site):
    style = (site / "_static" / "icons.css").read_text()
    drawn = set(
        re.findall(
            r"^\.(fa-[\w-]+) \{ --icon: url\(\"data:image/svg\+xml,%3Csvg [^\"]+ d='M[^']+'",
            style,
            re.M,
        )
    )
    used = {
        name
        for path in pages(site)
        for name in re.findall(r"\b(fa-[a-z-]+)", path.read_text(encoding="utf-8"))
    }
    used |= set(
        re.findall(
            r"\b(fa-[a-z-]+)", (site / "_static" / "scripts" / "pydata-sphinx-theme.js").read_text()
        )
    )
    assert used - {"fa-solid", "fa-lg", "fa-brands", "fa-regular"} <= drawn and len(drawn) > 9
