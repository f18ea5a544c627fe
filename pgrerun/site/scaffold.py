"""A new chapter: one experiment with two variants, one claim, one chart, one sentence.

`in_the_book` puts it among the book's chapters; `here` makes a folder that needs nothing of the
book's but the library, and that plain papermill runs. Both fill in `template/`.
"""

import csv
import io
import shutil
from pathlib import Path

import nbformat

from pgrerun import parameters
from pgrerun.errors import ParameterError
from pgrerun.record import claims

TEMPLATE = Path(__file__).parent / "template"
_LEAVE_OUT = shutil.ignore_patterns("__pycache__")


def here(name: str, place: Path) -> Path:
    """Make the folder `name` in `place`, with a notebook, a ledger of its own and its SQL."""
    _check(name)
    folder = place / name
    _copy(name, folder, number=1)
    (folder / "claims.csv").write_text(_row(name, header=True), "utf-8")
    _write(_notebook(name, opening=_OPEN_HERE), folder / f"{name}.ipynb")
    return folder


def in_the_book(name: str, root: Path) -> list[Path]:
    """Make a chapter of the checkout at `root`; the files that were made or added to."""
    _check(name)
    folder = root / "pgrerun" / "chapters" / name
    notebook = root / "notebooks" / f"{name}.ipynb"
    ledger = root / "data" / "claims.csv"
    if notebook.exists():
        raise ParameterError(f"{notebook} exists already. Nothing was written.")
    _copy(name, folder, number=len(list(folder.parent.glob("*/chapter.toml"))) + 1)
    title = _title(name)
    (folder / "__init__.py").write_text(f'"""Chapter `{name}`: {title.lower()}."""\n', "utf-8")
    with ledger.open("a", encoding="utf-8", newline="") as file:
        file.write(_row(name, header=False))
    _write(_notebook(name, opening=_OPEN), notebook)
    return [folder, notebook, ledger]


def _check(name: str) -> None:
    if not name.isidentifier() or not name.isascii() or name != name.lower() or len(name) > 40:
        raise ParameterError(
            f"{name[:60]!r} can't name a chapter: use at most 40 lower-case letters, digits and"
            " '_', and start with a letter."
        )
    if name in parameters.chapters():
        raise ParameterError(f"There is a chapter {name} already. Nothing was written.")


def _copy(name: str, folder: Path, number: int) -> None:
    """The template in `folder`, its placeholders filled in; ParameterError where that exists."""
    if folder.exists():
        raise ParameterError(f"{folder} exists already. Nothing was written.")
    shutil.copytree(TEMPLATE, folder, ignore=_LEAVE_OUT)
    filling = {"TITLE": _title(name), "PLACE": str(number), "CLAIM": claim_of(name), "NAME": name}
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8")
            for placeholder, value in filling.items():
                text = text.replace(placeholder, value)
            path.write_text(text, "utf-8")


def claim_of(name: str) -> str:
    """The id of a new chapter's one claim."""
    return f"{''.join(filter(str.isalpha, name))}-001"


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _row(name: str, header: bool) -> str:
    """The claim as a line of the ledger."""
    values = dict.fromkeys(claims.COLUMNS, "") | {
        "id": claim_of(name),
        "document": "practice",
        "section": "experience",
        "chapter": name,
        "kind": "ordering",
        "claim": "A table with half of each page left free is larger.",
        "predicate": "direction",
        "margin": "0.05",
        "basis": "counted",
        "quantity": "size of the second variant",
        "relative_to": "that of the first",
    }
    text = io.StringIO()
    writer = csv.DictWriter(text, claims.COLUMNS, lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerow(values)
    return text.getvalue()


_OPEN = """\
from pgrerun.notebook import open_chapter

chapter = open_chapter("NAME", globals())"""
_OPEN_HERE = """\
from pgrerun.notebook import open_folder

chapter = open_folder("NAME", globals())"""

_IGNORED = "nbval-ignore-output"
_CELLS: tuple[tuple[str, str, list[str]], ...] = (
    ("text", "What is claimed, by whom, and when it matters.", []),
    ("open", "", [_IGNORED]),
    ("text", "## The experiment\n\n**Prediction.** What you expect, before you see it.", []),
    ("text", "The variants and the load stand in `sql/variants.sql`:", []),
    ("code", 'chapter.sql("variants.first", "variants.second")', ["fact"]),
    (
        "code",
        "# Change rows in the first cell, or first or second in sql/variants.sql\n"
        'chapter.run("load")',
        [_IGNORED],
    ),
    ("code", 'chapter.chart("NAME-pages")', ["chart", _IGNORED]),
    ("code", 'chapter.verdicts("CLAIM")', [_IGNORED]),
    ("text", "## Verdicts", []),
    ("code", "chapter.summary()", [_IGNORED]),
    ("text", "## Provenance", []),
    ("code", "chapter.close()\nchapter.provenance()", [_IGNORED]),
)


def _notebook(name: str, opening: str) -> nbformat.NotebookNode:
    """The notebook; its parameters cell sets what profile `ci` does."""
    values = {"profile": "ci", "server": "", "programs": "", "seed": 1990, "pairs": 7, "rows": 2000}
    source = "\n".join(f"{key} = {value!r}" for key, value in values.items())
    cells = [
        nbformat.v4.new_markdown_cell(f"# {_title(name)}", id="title"),
        nbformat.v4.new_code_cell(
            source, id="parameters", metadata={"tags": ["parameters", _IGNORED]}
        ),
    ]
    for number, (kind, text, tags) in enumerate(_CELLS):
        text = (opening if kind == "open" else text).replace("CLAIM", claim_of(name))
        text = text.replace("NAME", name)
        identity = f"{name}-{number}"
        if kind == "text":
            cells.append(nbformat.v4.new_markdown_cell(text, id=identity))
        else:
            cells.append(nbformat.v4.new_code_cell(text, id=identity, metadata={"tags": tags}))
    kernel = {"name": "python3", "language": "python", "display_name": "Python 3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _write(notebook: nbformat.NotebookNode, path: Path) -> None:
    path.write_text(nbformat.writes(notebook) + "\n", "utf-8")
