"""What a chapter and the site are made from, and which of it has changed.

Everything a result depends on is written down beside it as a flat mapping from a
readable label ("library statistics.py", "parameter pairs") to a value or digest, so
that the difference between two such mappings is itself the reason for a rerun.
`book.py` stores the mappings and acts on the difference.
"""

import ast
import csv
import inspect
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat

from pgrerun import cells
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
    return digest(_executed(notebook))


def same_code(source: nbformat.NotebookNode, executed: nbformat.NotebookNode) -> bool:
    """Whether a page was executed from a chapter's notebook, whose code is our own.

    The notebook may show arguments of experiments that the page's lacks, with the values that they
    have anyway, and its tables may have other captions. Nothing of the page is executed: it may be
    anybody's.
    """
    try:
        was = _executed(executed, captions=False)
        return was in (_executed(source, shorter, captions=False) for shorter in (False, True))
    except SyntaxError:
        return False


def captions(source: str) -> list[str]:
    """The captions of the tables that a cell's code shows."""
    return [] if source.lstrip().startswith("%") else _captions(ast.parse(plain(source)))


def _captions(tree: ast.Module, take: bool = False) -> list[str]:
    """The captions in the code; if `take` it loses them."""
    found = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "table":
            texts = [one.value for one in call.args[1:] if isinstance(one, ast.Constant)]
            found += [text for text in texts if isinstance(text, str)]
            if take and texts:
                del call.args[1:]
    return found


def _executed(
    notebook: nbformat.NotebookNode, shorter: bool = False, *, captions: bool = True
) -> str:
    """The code without comments, if `shorter` without arguments that change nothing, and without
    `captions` of tables if so asked.
    """
    known: dict[str, Any] = {}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and not cell.source.lstrip().startswith("%"):
            tree = ast.parse(plain(cell.source))
            for statement in tree.body if shorter else ():
                cells.learn(statement, known)
                _shorten(statement, known)
            if not captions:
                _captions(tree, take=True)
            parts.append(ast.unparse(tree))
        elif cell.cell_type == "code":
            parts.append(cell.source)
    return "\0".join(parts)


def _shorten(statement: ast.stmt, known: Mapping[str, Any]) -> None:
    """Leave out the arguments of experiments whose values are the experiments' own."""
    for call in ast.walk(statement):
        if not isinstance(call, ast.Call) or not call.keywords:
            continue
        if ast.unparse(call.func) != "chapter.attempt":
            continue
        own = inspect.signature(cells.value(call.args[0], dict(known))).parameters
        call.keywords = [
            one
            for one in call.keywords
            if one.arg not in own or own[one.arg].default != ast.literal_eval(one.value)
        ]


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
    """One entry per claim of this chapter: a change to another chapter's claims is none of its
    business.
    """
    ledger = data / "claims.csv"
    if not ledger.exists():
        return {}
    with open(ledger, newline="", encoding="utf-8") as rows:
        return {
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
