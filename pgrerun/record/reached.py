"""What code can reach by imports: the files on which a result depends, and a digest of each.

Imports inside functions count. Comments, docstrings and layout don't: they can't change a result.
A module that is reached takes along the data files of its folder, and of folders below it that
hold no modules (`sql/`). `key_of` makes one key of all this, by which a run that was killed
is taken up again only by the same code; the site compares the digests file by file.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

PACKAGE = "pgrerun"
_BY_NAME = {"import_module", "__import__"}


def digest(content: bytes | str) -> str:
    """The first 16 hexadecimal digits of the content's SHA-256."""
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:16]


def key_of(
    root: Path, modules: Iterable[str], files: Iterable[Path] = (), skip: Iterable[str] = ()
) -> str:
    """One digest of all that these modules ("pgrerun.chapters.hot") reach, and of more files.

    `root` is the folder of the package `pgrerun`; `skip` are patterns of files below the package
    ("page/*") that don't count although they are reached. The key is the same as long as no digest
    of `library` changes, wherever the folder lies. ModuleNotFoundError for a module without a file.
    """
    modules = sorted(modules)
    for name in modules:
        if not _is_module(root, name):
            raise ModuleNotFoundError(f"There is no module {name} in {root}.", name=name)
    found = library(root, [f"import {name}" for name in modules])
    patterns = [f"library {pattern}" for pattern in skip]
    kept = {
        label: value
        for label, value in found.items()
        if not any(fnmatchcase(label, pattern) for pattern in patterns)
    }
    parts = [*modules, *(f"{label} {value}" for label, value in kept.items())]
    parts += [f"{path.name} {digest(path.read_bytes())}" for path in sorted(files)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def library(root: Path, sources: Iterable[str]) -> dict[str, str]:
    """One entry per file of the package that `sources` (Python code) can reach: label to digest.

    A label is "library lab/experiment.py". A module that imports by a name made up at run
    time (`import_module`) reaches all modules of its folder.
    """
    reached: dict[Path, str] = {}
    waiting = [name for source in sources for name in _read(source.encode(), ()).imported]
    while waiting:
        for path in _files_of(root, waiting.pop()):
            if path not in reached:
                inside = path.parent.relative_to(root).parts
                module = _read(path.read_bytes(), inside)
                reached[path] = module.digest
                waiting += module.imported
                if module.imports_by_name:
                    siblings = path.parent.glob("*.py")
                    waiting += [".".join((*inside, sibling.stem)) for sibling in siblings]
    found = dict(reached)
    for folder in {path.parent for path in reached}:
        found |= {path: digest(path.read_bytes()) for path in _data_files(folder)}
    return {
        f"library {path.relative_to(root / PACKAGE)}": value
        for path, value in sorted(found.items())
    }


def _data_files(folder: Path) -> Iterator[Path]:
    """What stands beside modules, and in folders below that hold no modules."""
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            yield path
        elif path.is_dir() and path.name != "__pycache__" and not any(path.glob("*.py")):
            yield from _data_files(path)


@dataclass(frozen=True)
class _Module:
    """A module's digest, without docstrings and layout, the dotted names that it imports, of which
    some name a function rather than a module, and whether it imports by names made up at run time.
    """

    digest: str
    imported: tuple[str, ...]
    imports_by_name: bool


@lru_cache(maxsize=2048)  # the site asks chapter after chapter, and each reaches the same library
def _read(content: bytes, inside: tuple[str, ...]) -> _Module:
    """What counts of a module of package `inside`."""
    tree = ast.parse(content)
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                del node.body[0]
    called = (node.func for node in nodes if isinstance(node, ast.Call))
    return _Module(
        digest(ast.dump(tree)),
        tuple(_imported(nodes, inside)),
        any(getattr(of, "attr", getattr(of, "id", "")) in _BY_NAME for of in called),
    )


def _imported(nodes: Iterable[ast.AST], inside: tuple[str, ...]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) - node.level + 1] if node.level else ()
            base = ".".join((*above, *filter(None, [node.module])))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _files_of(root: Path, name: str) -> Iterator[Path]:
    """The files that run when `name` is imported: each package on the way, then the module."""
    first, *rest = name.split(".")
    if first != PACKAGE:
        return
    place = root / first
    for part in [*rest, ""]:
        if (place / "__init__.py").is_file():
            yield place / "__init__.py"
        elif place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")
        place = place / part


def _is_module(root: Path, name: str) -> bool:
    place = root.joinpath(*name.split("."))
    return (place / "__init__.py").is_file() or place.with_suffix(".py").is_file()
