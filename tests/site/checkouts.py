"""What fills the two checkouts of conftest.py: the sources, the toys, the book as it is run."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import nbformat
import pytest
import toy_chapter

from pgrerun import parameters
from pgrerun.site import contents, printing
from pgrerun.site.book import PUBLISHED, Book

ROOT = Path(__file__).resolve().parents[2]
# Run as `pgrerun book` runs it, and short; the others are shown as they were published. nbval runs
# every chapter, so that running more here would be once more.
LIVE = "uuid_keys"


def pages(site: Path) -> list[Path]:
    """The pages of a built site that a reader gets to."""
    return sorted(
        page
        for page in site.rglob("*.html")
        if "_static" not in page.parts and "genindex" not in page.name
    )


def fetch_pglite(root: Path) -> None:
    """Put `.pglite` into `root`: this checkout's own, or from where its build would get it; nothing
    where that can't be had.
    """
    here = ROOT / "_build" / ".pglite"
    if here.exists():
        shutil.copytree(here, root / ".pglite")
        return
    laboratories().vendor(building(root))


def laboratories() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "book" / "_ext")
        return importlib.import_module("laboratories")


def building(root: Path, builder: str = "html") -> SimpleNamespace:
    return SimpleNamespace(
        outdir=root / builder,
        builder=SimpleNamespace(name=builder),
        config=SimpleNamespace(html_static_path=[]),
    )


def _copy_sources(root: Path, pglite: Path, *names: str) -> None:
    for name in names:
        if (ROOT / name).is_dir():
            left = shutil.ignore_patterns("__pycache__", "results")
            shutil.copytree(ROOT / name, root / name, ignore=left)
        else:
            shutil.copy(ROOT / name, root)
    if (pglite / ".pglite").exists():
        shutil.copytree(pglite / ".pglite", root / "_build" / ".pglite")


def build_toys(root: Path, pglite: Path) -> None:
    """The book with the toy in place of TP1 and its title in place of each other chapter, printed
    and then as a site.
    """
    _copy_sources(root, pglite, "_config.yml", "book")
    results = root / "book" / "results"
    results.mkdir()
    contents.write(root / "book", parameters.chapters())
    toy, title = toy_chapter.chapter(), toy_chapter.chapter()
    toy.cells += toy_chapter.verdict_cells()
    del title.cells[1:]
    for chapter in parameters.chapters():
        nbformat.write(toy if chapter == "tp1" else title, results / f"{chapter}.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGRERUN_RUNS", str(root / "runs"))
        toy_chapter.record(results / "tp1")
    book = Book(root)
    book.sphinx("ePub", book.source, "--builder", "custom", "--custom-builder", "print")
    if printing.browser():
        printing.pdf(next(book.printed.glob("*.epub")))
    book.sphinx("site", book.source)


def build_book(root: Path, pglite: Path) -> None:
    """A copy of this checkout whose book `pgrerun book` has built, running LIVE for it; `said` is
    what it said.
    """
    sources = ("book", "data", "notebooks", "pgrerun")
    _copy_sources(root, pglite, "_config.yml", "requirements.txt", "CITATION.cff", *sources)
    book = Book(root)
    (book.lay_out(PUBLISHED) / "results").rename(book.results)
    for chapter in book.chapters():
        if chapter == LIVE:
            book.result(chapter).unlink()
            shutil.rmtree(book.record(chapter))
        else:  # as if it had been run here
            book.write_stamp(book.state(chapter, {}), None)
    (root / "said").write_text(command(root, "book"))


def command(root: Path, *words: str) -> str:
    """What `pgrerun` says in a checkout, as from a terminal there; it must succeed."""
    environment = {name: value for name, value in os.environ.items() if name != "PGRERUN_RUNS"}
    done = subprocess.run(
        [sys.executable, "-m", "pgrerun", *words],
        cwd=root,
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
