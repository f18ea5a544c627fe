"""A new chapter: one experiment with two variants, one claim, one chart, one sentence.

`in_the_book` puts it among the book's chapters; `here` makes a folder that needs nothing of the
book's but the library, and that plain papermill runs. Both fill in `template/`.
"""

import shutil
from pathlib import Path

from pgrerun import parameters
from pgrerun.errors import ParameterError

TEMPLATE = Path(__file__).parent / "template"
_LEAVE_OUT = shutil.ignore_patterns("__pycache__")


def here(name: str, place: Path) -> Path:
    """Make the folder `name` in `place`, with a notebook, a ledger of its own and its SQL."""
    folder = place / name
    _fill_in(name, folder, number=1, opening="open_folder")
    (folder / "notebook.ipynb").rename(folder / f"{name}.ipynb")
    return folder


def in_the_book(name: str, root: Path) -> list[Path]:
    """Make a chapter of the checkout at `root`; the files that were made or added to."""
    folder = root / "pgrerun" / "chapters" / name
    notebook = root / "notebooks" / f"{name}.ipynb"
    ledger = root / "data" / "claims.csv"
    if notebook.exists():
        raise ParameterError(f"{notebook} exists already. Nothing was written.")
    number = len(list(folder.parent.glob("*/chapter.toml"))) + 1
    _fill_in(name, folder, number, opening="open_chapter")
    title = _title(name)
    (folder / "__init__.py").write_text(f'"""Chapter `{name}`: {title.lower()}."""\n', "utf-8")
    claims = folder / "claims.csv"
    _, claim = claims.read_text("utf-8").splitlines()
    claims.unlink()
    with ledger.open("a", encoding="utf-8", newline="") as file:
        file.write(f"{claim}\n")
    (folder / "notebook.ipynb").rename(notebook)
    return [folder, notebook, ledger]


def _fill_in(name: str, folder: Path, number: int, opening: str) -> None:
    """The template in `folder`, its placeholders filled in.

    ParameterError, before anything is written, for a name that can't be or is taken.
    """
    if not name.isidentifier() or not name.isascii() or name != name.lower() or len(name) > 40:
        raise ParameterError(
            f"{name[:60]!r} can't name a chapter: use at most 40 lower-case letters, digits and"
            " '_', and start with a letter."
        )
    if name in parameters.chapters():
        raise ParameterError(f"There is a chapter {name} already. Nothing was written.")
    if folder.exists():
        raise ParameterError(f"{folder} exists already. Nothing was written.")
    shutil.copytree(TEMPLATE, folder, ignore=_LEAVE_OUT)
    claim = f"{''.join(filter(str.isalpha, name))}-001"
    filling = {"TITLE": _title(name), "PLACE": str(number), "CLAIM": claim, "NAME": name}
    filling["OPEN"] = opening
    for path in filter(Path.is_file, folder.rglob("*")):
        text = path.read_text("utf-8")
        for placeholder, value in filling.items():
            text = text.replace(placeholder, value)
        path.write_text(text, "utf-8")


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
