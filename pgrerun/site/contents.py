"""What the list of chapters puts into the pages' sources: the contents, and the front page's list.

`book.py` calls `write` when it has laid out the sources, so that a new chapter needs no change to
any page. In `_toc.yml` the part called Reruns becomes a part for each document, with its chapters
in their order; in `index.md`

- `<!-- chapters of DOCUMENT -->` becomes links to the chapters that rerun it;
- `<!-- other documents -->` becomes a row for each document that has no such place yet,
  the oldest first.
"""

import re
from pathlib import Path

import yaml

from pgrerun import parameters
from pgrerun.record import printed

PART = "Reruns"
_CHAPTERS_OF = re.compile(r"<!-- chapters of ([\w-]+) -->")
_OTHERS = re.compile(r"^<!-- other documents -->\n", re.MULTILINE)


def write(source: Path, chapters: list[str]) -> None:
    """List `chapters` in the sources at `source`, where they have a place for the list."""
    toc = source / "_toc.yml"
    contents = yaml.safe_load(toc.read_text("utf-8"))
    reruns = [
        {"caption": _caption(document), "chapters": [{"file": f"results/{n}"} for n in names]}
        for document, names in _documents(chapters).items()
    ]
    if parts := contents.get("parts"):
        contents["parts"] = [
            one for part in parts for one in (reruns if part["caption"] == PART else [part])
        ]
    toc.write_text(yaml.safe_dump(contents, sort_keys=False), "utf-8")
    index = source / "index.md"
    index.write_text(_listed(index.read_text("utf-8"), chapters), "utf-8")


def _documents(chapters: list[str]) -> dict[str, list[str]]:
    """The chapters that rerun each document, that of the first chapter first."""
    found: dict[str, list[str]] = {}
    for name in chapters:
        found.setdefault(parameters.info(name).document, []).append(name)
    return found


def _caption(document: str) -> str:
    """ "HOT thread of 2007"."""
    name = printed.DOCUMENTS[document].name.removeprefix("the ")
    return name[:1].upper() + name[1:]


def _listed(text: str, chapters: list[str]) -> str:
    documents = _documents(chapters)
    others = [one for one in documents if one not in _CHAPTERS_OF.findall(text)]
    text = _CHAPTERS_OF.sub(lambda found: _links(documents.get(found[1], [])), text)
    others.sort(key=lambda one: printed.DOCUMENTS[one].year)
    rows = "".join(_row(one, documents[one]) for one in others)
    return _OTHERS.sub(lambda found: rows, text)


def _row(document: str, chapters: list[str]) -> str:
    found = printed.DOCUMENTS[document]
    return f"* - {found.year}\n  - {found.title}\n  - {_links(chapters)}\n"


def _links(chapters: list[str]) -> str:
    titles = [parameters.info(name).title.partition(":")[0] for name in chapters]
    return ", ".join(f"[{title}](results/{n}.ipynb)" for title, n in zip(titles, chapters))
