"""What must not be published, found before and after the site is built.

`jupyter-book build -W` succeeds on a notebook without outputs, on one that papermill died in, and
on pages that fetch scripts from elsewhere; so four gates of our own: `check_chapter` on an executed
notebook, `check_prose` on what people wrote, `check_site` on the built pages, `check_epub` on the
printed book. Each collects everything it finds into one BookError. `book.py` calls them.

The rule for numbers in prose: a digit in running text is refused, since a number
there is either a result, which must be computed by a cell (`narrate.py`), or an
input, which belongs in a parameter. Allowed, because they name something:

- references: "section 3.2.2", "Figures 2.2 and 2.3", "page 14", "Table 8"
- years from 1970 to 2030, and dates with a month
- versions: "PostgreSQL 18", "Python 3.11", "INGRES 5"; names with a digit in them: "TP1"
- DOIs, the number before a heading's words, and numbered lists
- code, formulas, roles and citations, and the targets of links

Anything else needs a reason, right behind the number:
`95<!-- typed: the confidence level is a convention -->`. Numbers in words
("six reads") are not looked for.
"""

import json
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import nbformat
from bs4 import BeautifulSoup
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.site import printing

CHART_MIME = re.compile(r"application/vnd\.vegalite\.v\d+\+json")
#: a cell tagged so promises a chart; the chart verbs are in `charts.py`
CHART_TAG = "chart"
_HIDDEN = {"remove-cell", "remove-output", "remove_cell", "remove_output"}
_SHOWN = 12  # findings told at once


# --- an executed chapter ------------------------------------------------------------


def check_chapter(path: Path) -> None:
    """Refuse an executed notebook that failed, is incomplete or lacks a promised chart.

    BookError unless papermill finished without an exception, every code cell ran
    and none shows an error, each cell tagged `chart` has a chart, and the charts
    are as many as `metadata.pgrerun.page.charts` says (where it says so). A cell that shows
    nothing but that an experiment was set aside, or nothing after one was, needs none.
    """
    notebook = _read(path)
    findings = []
    if notebook.metadata.get("papermill", {}).get("exception", "unknown") is not None:
        findings.append("papermill did not finish it (metadata.papermill.exception is not null)")
    charts, excused = 0, False
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        where = f"cell {number} ({_first_line(cell.source)})"
        if cell.source.strip() and cell.execution_count is None:
            findings.append(f"{where} was not executed")
        for output in cell.outputs:
            if output.output_type == "error":
                findings.append(f"{where} raised {output.ename}: {output.evalue}")
        drawn = sum(map(_is_chart, cell.outputs))
        excused = excused or any(map(_is_set_aside, cell.outputs))
        if (
            CHART_TAG in cell.metadata.get("tags", [])
            and not drawn
            and not (excused and all(map(_is_set_aside, cell.outputs)))
        ):
            findings.append(f"{where} is tagged {CHART_TAG} but shows no chart")
        charts += drawn
    promised = notebook.metadata.get("pgrerun", {}).get("charts")
    if promised is not None and charts != promised:
        findings.append(f"it has {charts} charts, and its metadata promises {promised}")
    _refuse(
        findings,
        f"{path.name} can't be published. Run the chapter again, and mend what its cells say.",
    )


def _read(path: Path) -> nbformat.NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except (
        Exception
    ) as error:  # nbformat lets through whatever a malformed file makes it stumble over
        raise BookError(
            f"{path} can't be read as a notebook ({type(error).__name__}: {error}). Run the chapter"
            " again."
        ) from None


def _is_chart(output: nbformat.NotebookNode) -> bool:
    return any(CHART_MIME.fullmatch(mime) for mime in output.get("data", {}))


def _is_set_aside(output: nbformat.NotebookNode) -> bool:
    """Whether the output tells why an experiment did not run, as `Chapter.attempt` marks it."""
    return CannotMeasure.METADATA in output.get("metadata", {})


def _first_line(source: str) -> str:
    line = (source.strip().splitlines() or [""])[0]
    return line if len(line) <= 60 else line[:57] + "..."


# --- prose ---------------------------------------------------------------------------

_TYPED = re.compile(r"<!--\s*typed:\s*\S.*?-->", re.DOTALL)
_MARK = "\x00"
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_NUMBER = r"\d+(?:\.\d+)*"
_UNIT = (
    r"%|percent|per\b|times\b|[kMG]?B\b|[kMGT]iB\b|m?s\b|seconds?\b|pages?\b|tuples?\b|rows?\b"
    r"|transactions?\b"
)
_ALLOWED = [
    # DOI
    r"\b10\.\d{4,9}/\S+",
    # the number that the author has given a reason for, with its sign, thousands and decimals
    rf"[-+−]?\d[\d\s,.\u202f\u00a0]*(?:%|\s?\w+)?{_MARK}",
    # references
    rf"(?i:\b(?:sections?|figures?|fig\.|tables?|pages?|pp\.|chapters?|appendix|equations?|eq\.|experiments?|expectations?|"
    rf"volumes?|issues?|steps?|claims?|line|lines|slides?)\s*|§\s*){_NUMBER}[a-z]?(?:\s*(?:,|and|to|or|-|–|,\s*and)\s*{_NUMBER}[a-z]?)*",
    # dates and years, unless a unit follows
    rf"\b\d{{1,2}}\s+(?:{_MONTH})\b|\b(?:{_MONTH})\s+\d{{1,2}}\b(?=,)",
    rf"(?<![\d.,])(?:19[7-9]\d|20[0-2]\d|2030)s?(?![\d])(?!\.\d|,\d)(?!\s*(?:{_UNIT}))",
    # versions of what has versions
    rf"\b(?:PostgreSQL|POSTGRES|Postgres|INGRES|Python|DuckDB|Linux|Ubuntu|Debian|SunOS|UNIX|Vega-Lite|Sun|VAX|DECstation|SPARCstation|[Vv]ersion|"
    rf"CPython|GCC|LLVM|glibc)(?:\s+(?:release\s+)?|-|/){_NUMBER}(?:/{_NUMBER})?(?:\s*(?:,|and|to|or|-|–)\s*{_NUMBER})*",
    # names that have a digit in them
    r"\b[A-Za-z_][A-Za-z_/-]*\d[\w/-]*",
]
_ALLOWED_PROSE = re.compile("|".join(f"(?:{one})" for one in _ALLOWED))
_HEADING_NUMBER = re.compile(rf"^\s*{_NUMBER}\.?(?=\s)")
# A number that may not stand: for the message, with a word on either side.
_REFUSED = re.compile(r"(?:[^\s]+\s+)?[^\s\d]*\d[^\s]*(?:\s+[^\s]+)?")
_OPTIONS = re.compile(r"\A(?:\s*:[\w-]+:.*\n|---\n(?:.*\n)*?---\n)+")
_NO_PROSE = ("code", "math", "eval-rst", "bibliography", "toctree", "image", "glue")
_PARSER = create_md_parser(
    MdParserConfig(
        enable_extensions={
            "amsmath",
            "attrs_inline",
            "colon_fence",
            "deflist",
            "dollarmath",
            "tasklist",
        }
    ),
    RendererHTML,
)


def check_prose(path: Path) -> None:
    """Refuse a number typed into prose: a notebook, a Markdown page, or a folder of both.

    The rule is in this module's docstring. BookError lists each number with its place.
    """
    findings = [
        f"{where}: “{words}”" for file in _written(path) for where, words in _typed_numbers(file)
    ]
    _refuse(
        findings,
        "A number stands in prose that no cell computed. Let the chapter compute it and write the"
        " sentence, name it in a parameter, or give the reason behind it: 95<!-- typed: why -->.",
    )


def _written(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    # below "_": extensions, static files, builds
    found = (file for kind in ("*.md", "*.ipynb") for file in path.rglob(kind))
    return sorted(
        f for f in found if not any(part[0] in "_." for part in f.relative_to(path).parts)
    )


def _typed_numbers(file: Path) -> Iterator[tuple[str, str]]:
    if file.suffix == ".ipynb":
        cells = enumerate(_read(file).cells)
        texts = [(f", cell {n}", cell.source) for n, cell in cells if cell.cell_type == "markdown"]
    else:
        texts = [("", file.read_text("utf-8"))]
    for where, text in texts:
        for line, words in _numbers_in(text):
            yield f"{file.name}{where}, line {line}", words


def _numbers_in(markdown: str) -> Iterator[tuple[int, str]]:
    for line, text, heading in _prose(markdown, 1):
        text = _HEADING_NUMBER.sub(" ", text) if heading else text
        text = _ALLOWED_PROSE.sub(" ", text)
        for found in _REFUSED.finditer(text):
            yield line, " ".join(found.group().replace(_MARK, "").split())


def _prose(markdown: str, first_line: int) -> Iterator[tuple[int, str, bool]]:
    """Line number and running text of each block, without code, formulas, roles and targets; and
    whether it is a heading.
    """
    before = ""
    for token in _PARSER.parse(markdown):
        line = first_line + (token.map[0] if token.map else 0)
        if token.type == "inline":
            heading = before == "heading_open"
            yield line, "".join(_running_text(token.children or [])), heading
        elif token.type == "html_block":
            yield line, BeautifulSoup(token.content, "html.parser").get_text(" "), False
        elif token.type in ("fence", "colon_fence") and (
            directive := re.match(r"\{([\w:-]+)\}\s*(.*)", token.info.strip())
        ):
            # An admonition, a list table or a glossary is prose as well; its options are not.
            name, title = directive.groups()
            if name.startswith(_NO_PROSE):
                continue
            body = _OPTIONS.sub(lambda options: "\n" * options.group().count("\n"), token.content)
            if title and name != "figure":  # whose title is a file
                yield line, title, False
            yield from _prose(body, line + 1)
        before = token.type


def _running_text(tokens: Iterable) -> Iterator[str]:
    for token in tokens:
        if token.type == "text":
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type == "html_inline":
            yield _MARK if _TYPED.fullmatch(token.content.strip()) else ""
        elif token.type == "image":
            yield token.content
        elif token.type not in (
            "em_open",
            "em_close",
            "strong_open",
            "strong_close",
            "link_open",
            "link_close",
        ):
            yield " \u2026 "  # code, a formula, a role: something stands here, and it isn't prose


# --- the built site -------------------------------------------------------------------

_FETCHED = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "use": ("href",),
}
_NOT_FETCHED = {"canonical", "license", "author", "next", "prev", "index", "search"}
_CSS_ADDRESS = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')\s]+)""")


def check_site(html: Path) -> None:
    """Refuse a built site with a page that lacks a chart, reaches out, or leads nowhere.

    BookError if a page has fewer or more charts than the notebook it was made
    from, a chart has no text description, a script, style, picture or frame comes
    from another host or is missing, a link or anchor inside the site is dead, or a picture has no
    alternative text (Jupyter Book's default, the file's name, counts as none).
    """
    files = {file.relative_to(html).as_posix(): file for file in html.rglob("*") if file.is_file()}
    pages = {
        name: BeautifulSoup(file.read_bytes(), "html.parser")
        for name, file in sorted(files.items())
        if name.endswith(".html") and "_static" not in name.split("/")
    }
    if not pages:
        raise BookError(f"There are no pages in {html}: the site was not built.")
    anchors = {name: {tag["id"] for tag in page.find_all(id=True)} for name, page in pages.items()}
    findings = []
    for name, page in pages.items():
        source = html / "_sources" / Path(name).with_suffix(".ipynb")
        found = [
            *_miscounted(len(page.select(".vl-chart")), source),
            *_undescribed(page),
            *_outside(page),
            *_lost(page, name, files, anchors),
            *_unnamed_pictures(page),
        ]
        findings += [f"{name}: {one}" for one in found]
    for name, file in sorted(files.items()):
        if name.endswith(".css"):
            addresses = _CSS_ADDRESS.findall(file.read_text("utf-8"))
            findings += [f"{name}: fetches {address}" for address in addresses]
    _refuse(findings, "The built site must not be published.")


def _miscounted(shown: int, notebook: Path) -> Iterator[str]:
    """Whether a page shows other charts than its notebook has, if it was made from one."""
    if notebook.exists() and shown != (expected := _charts_of(notebook)):
        yield f"shows {shown} charts, its notebook has {expected}"


def _undescribed(page: BeautifulSoup) -> Iterator[str]:
    for place in page.select(".vl-chart"):
        script = place.parent.select_one("script.vl-spec")
        try:
            spec = json.loads(script.string)
        except (AttributeError, TypeError, json.JSONDecodeError):
            yield "a chart has lost its specification"
            continue
        if not str(spec.get("description", "")).strip():
            yield (
                f"the chart “{spec.get('usermeta', {}).get('question', '')}” has no text"
                " description"
            )


def _charts_of(notebook: Path) -> int:
    """How many charts an executed notebook shows."""
    shown = [cell for cell in _read(notebook).cells if cell.cell_type == "code"]
    shown = [cell for cell in shown if not _HIDDEN & set(cell.metadata.get("tags", []))]
    return sum(_is_chart(output) for cell in shown for output in cell.outputs)


def _outside(page: BeautifulSoup) -> Iterator[str]:
    for name, address in _fetched(page):
        if re.match(r"(?i)(?:https?:)?//", address):
            yield f"<{name}> fetches {address}"


def _fetched(page: BeautifulSoup) -> Iterator[tuple[str, str]]:
    """What a page has the browser fetch: name of the tag, and address."""
    for tag in page.find_all(list(_FETCHED)):
        if tag.name == "link" and _NOT_FETCHED & set(tag.get("rel", [])):
            continue
        for attribute in _FETCHED[tag.name]:
            value = tag.get(attribute, "")
            if attribute == "srcset" and not value.startswith("data:"):  # which has a comma in it
                yield from ((tag.name, one.split()[0]) for one in value.split(",") if one.strip())
            else:
                yield tag.name, value.strip()


def _lost(
    page: BeautifulSoup, name: str, files: Collection[str], anchors: Mapping[str, set[str]]
) -> Iterator[str]:
    """What the page `name` fetches or leads to that is none of the files, or on none of them."""
    for tag, address in _fetched(page):
        target, _ = printing.place_of(address, name) or (name, "")
        if target not in files:
            yield f"<{tag}> fetches {address}, which is not there"
    for link in page.find_all("a", href=True):
        target, anchor = printing.place_of(link["href"], name) or (name, "")
        if target not in files:
            yield f"the link to {link['href']} leads nowhere"
        elif anchor and target in anchors and unquote(anchor) not in anchors[target]:
            yield f"the anchor in {link['href']} does not exist"


def _unnamed_pictures(page: BeautifulSoup) -> Iterator[str]:
    for picture in page.find_all("img"):
        # the logo stands beside the title, which already says it
        if picture.get("role") == "presentation" or "logo__image" in picture.get("class", []):
            continue
        alternative = picture.get("alt", "").strip()
        source = picture.get("src", "")
        if (
            not alternative
            or alternative in (source, Path(unquote(source)).name)
            or source.endswith("/" + alternative)
        ):
            yield f"the picture {source[:80]} has no alternative text"


# --- the ePub -------------------------------------------------------------------------

_XML = (".xhtml", ".opf", ".ncx", ".xml", ".svg")
_PARTS = {
    "mimetype",
    "META-INF/container.xml",
    "content.opf",
}  # which the package itself doesn't list


def check_epub(epub: Path, source: Path) -> None:
    """Refuse an ePub that a reader may stumble over, or that lacks a chart of a chapter in
    `source`/results.

    BookError unless `mimetype` stands first and uncompressed, every XML file is well-formed, the
    package lists the files that there are, nothing is fetched or leads nowhere, no page has a
    script, every picture has a text, and each chapter shows its charts as pictures.
    """
    with zipfile.ZipFile(epub) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
        first = packed.infolist()[0]
    findings = []
    if (first.filename, first.compress_type, files.get("mimetype")) != (
        "mimetype",
        zipfile.ZIP_STORED,
        b"application/epub+zip",
    ):
        findings.append("its mimetype is not its first, uncompressed file")
    for name in (name for name in files if name.endswith(_XML)):
        try:
            ElementTree.fromstring(files[name])
        except ElementTree.ParseError as error:
            findings.append(f"{name} is not well-formed: {error}")
    listed = {
        unquote(href)
        for href in re.findall(r'<item [^>]*href="([^"]+)"', files["content.opf"].decode())
    }
    findings += [
        f"{name} is in the package but not listed" for name in sorted(set(files) - listed - _PARTS)
    ]
    findings += [f"{name} is listed but not in the package" for name in sorted(listed - set(files))]
    pages = {
        name: BeautifulSoup(content, "html.parser")
        for name, content in files.items()
        if name.endswith(".xhtml")
    }
    anchors = {name: {tag["id"] for tag in page.find_all(id=True)} for name, page in pages.items()}
    for name, page in pages.items():
        found = [
            *_miscounted(
                len(page.select(".vl-chart > img")), source / Path(name).with_suffix(".ipynb")
            ),
            *_outside(page),
            *_lost(page, name, files, anchors),
            *_unnamed_pictures(page),
        ]
        found += ["has a script"] if page.find("script") else []
        findings += [f"{name}: {one}" for one in found]
    _refuse(findings, f"{epub.name} must not be published.")


def _refuse(findings: list[str], what: str) -> None:
    if not findings:
        return
    more = f"\n- and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    raise BookError(what + "\n" + "\n".join(f"- {one}" for one in findings[:_SHOWN]) + more)
