"""A small site, built once, from the real configuration, extensions and pages."""

import shutil
import subprocess
import sys
from pathlib import Path

import chromium
import nbformat
import pytest
import toy_chapter

from pgrerun import parameters
from pgrerun.site import contents, printing

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def toy_book(tmp_path_factory) -> Path:
    """The book with the toy in place of each chapter, printed and as a site; the folder holds
    `_build/print` and `_build/html`.
    """
    root = tmp_path_factory.mktemp("book")
    shutil.copy(ROOT / "_config.yml", root)
    shutil.copytree(
        ROOT / "book", root / "book", ignore=shutil.ignore_patterns("results", "__pycache__")
    )
    results = root / "book" / "results"
    results.mkdir()
    contents.write(root / "book", parameters.chapters())
    for name in (f"results/{chapter}" for chapter in parameters.chapters()):
        toy = toy_chapter.chapter()
        for cell in toy.cells:  # an equation has one label in a whole book
            cell.source = (
                cell.source
                if name == "results/tp1"
                else cell.source.replace("usl", name.rpartition("/")[2].replace("_", "-"))
            )
        toy.cells += toy_chapter.verdict_cells() if name == "results/tp1" else []
        nbformat.write(toy, root / "book" / f"{name}.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGRERUN_RUNS", str(root / "runs"))
        toy_chapter.record(results / "tp1")
    fetched = ROOT / "_build" / ".pglite"  # by the book's own build: not again for each test
    if fetched.exists():
        shutil.copytree(fetched, root / "_build" / ".pglite")
    build(root, "--builder", "custom", "--custom-builder", "print")
    if printing.browser():
        printing.pdf(next((root / "_build" / "print").glob("*.epub")))
    build(root)
    return root


def build(root: Path, *options: str) -> None:
    command = "from jupyter_book.cli.main import main; main()"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            command,
            "build",
            "book",
            "--all",
            "-W",
            "-n",
            "--keep-going",
            *options,
        ],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture(scope="session")
def toy_site(toy_book) -> Path:
    return toy_book / "_build" / "html"


@pytest.fixture(scope="session")
def toy_epub(toy_book) -> Path:
    return toy_book / "_build" / "print" / "postgres-rerun.epub"


@pytest.fixture(scope="session")
def real_epub(real_site) -> Path:
    """The whole book as it is built here, printed anew; its PDF lies beside it if there is a
    Chromium.
    """
    done = subprocess.run(
        [sys.executable, "-m", "pgrerun.cli", "print"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 or not printing.browser(), done.stderr[-3000:]
    return ROOT / "_build" / "print" / "postgres-rerun.epub"


@pytest.fixture(scope="session")
def real_site() -> Path:
    site = ROOT / "_build" / "html"
    if not (site / "index.html").exists():
        pytest.skip("the book is not built here (make book)")
    return site


@pytest.fixture(scope="session", params=["toy", "real"])
def site(request) -> Path:
    """Both sites, one after the other."""
    return request.getfixturevalue(f"{request.param}_site")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if printing.browser() is None:
        pytest.skip(f"no browser on PATH (looked for {', '.join(printing.BROWSERS)})")
    with chromium.browser(tmp_path_factory.mktemp("profile")) as running:
        yield running
