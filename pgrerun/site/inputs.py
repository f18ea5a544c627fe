"""What a chapter and the site are made from, and which of it has changed.

Everything a result depends on is written down beside it as a flat mapping from a
readable label ("library statistics.py", "parameter pairs") to a value or digest, so
that the difference between two such mappings is itself the reason for a rerun.
`book.py` stores the mappings and acts on the difference.
"""

import ast
import csv
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat

from pgrerun.record import reached
from pgrerun.record.reached import digest


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In words, sorted: "data claims.csv changed", "parameter pairs 7 → 15", "library usl.py is
    new".
    """
    words = []
    for label in sorted(before.keys() | now.keys()):
        if label not in before:
            words.append(f"{label} is new")
        elif label not in now:
            words.append(f"{label} is gone")
        elif before[label] != now[label]:
            spoken = label.startswith(("parameter", "PostgreSQL", "Python"))
            words.append(
                f"{label} {before[label]!s} → {now[label]!s}" if spoken else f"{label} changed"
            )
    return words


def code(notebook: nbformat.NotebookNode) -> str:
    """Digest of what is executed: code cells in order, without comments and outputs."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    bare = [
        one if one.lstrip().startswith("%") else ast.unparse(ast.parse(plain(one))) for one in cells
    ]
    return digest("\0".join(bare))


def prose(notebook: nbformat.NotebookNode) -> str:
    """Digest of the rest that reaches the page: prose, tags, captions, the cells' order and ids."""
    rest = [
        (
            cell.cell_type,
            cell.get("id"),
            cell.source if cell.cell_type != "code" else "",
            sorted(cell.metadata.items()),
        )
        for cell in notebook.cells
    ]
    return digest(repr(rest))


def environment(root: Path) -> dict[str, str]:
    """The pins and the Python that both chapters and the site are made with."""
    return {
        "requirements.txt": digest((root / "requirements.txt").read_bytes()),
        "Python": platform.python_version(),
    }


def files(folder: Path, label: str, skip: Iterable[str] = ()) -> dict[str, str]:
    """One entry per file below `folder`; `skip` names folders directly below it."""
    skipped = [folder / name for name in skip]
    return {
        f"{label} {path.relative_to(folder)}": digest(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and "__pycache__" not in path.parts
        and not any(s in path.parents for s in skipped)
    }


def claims(data: Path, chapter: str) -> dict[str, str]:
    """One entry per claim of this chapter, and one for each file that all claims refer to.

    A change to another chapter's claims is none of its business.
    """
    others = [data / "regimes.csv", data / "out_of_reach.csv"]
    found = {f"claims {path.stem}": digest(path.read_bytes()) for path in others if path.exists()}
    with open(data / "claims.csv", newline="", encoding="utf-8") as rows:
        return found | {
            f"claim {row.get('id')}": digest(repr(sorted(row.items())))
            for row in csv.DictReader(rows)
            if row.get("chapter") == chapter
        }


def library(root: Path, sources: Iterable[str]) -> dict[str, str]:
    """One entry per file of the package that these cells can reach by imports (see `reached`)."""
    return reached.library(root, map(plain, sources))


def plain(source: str) -> str:
    """A cell's code without IPython's magics and shell lines, which are not Python."""
    if source.startswith("%%postquel"):  # a cell in another language altogether
        return "pass"
    return "\n".join(
        "pass" if line.startswith(("%", "!")) else line for line in source.splitlines()
    )
