"""Two small checkouts in which the book is built once: one of a toy, one of the real chapters.

Nothing here needs or touches the book that a reader has built in this checkout.
"""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import checkouts
import chromium
import pytest

from pgrerun.site import printing


@pytest.fixture(scope="session")
def made_once(tmp_path_factory, worker_id) -> Callable[[str, Callable[[Path], None]], Path]:
    """A function that returns the folder of a name, which another function fills: once, however
    many processes share the tests.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent

    def folder(name: str, fill: Callable[[Path], None]) -> Path:
        place, filled = shared / name, shared / f"{name}.filled"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not filled.exists():
                shutil.rmtree(place, ignore_errors=True)  # of another process that failed
                place.mkdir()
                fill(place)
                filled.touch()
        return place

    return folder


@pytest.fixture(scope="session")
def pglite(made_once) -> Path:
    """A folder with `.pglite` in it, or without where it can't be had."""
    return made_once("pglite", checkouts.fetch_pglite)


@pytest.fixture(scope="session")
def toy_book(made_once, pglite) -> Path:
    """The book of a toy, printed and as a site; the folder holds
    `_build/print` and `_build/html`.
    """
    return made_once("toys", lambda root: checkouts.build_toys(root, pglite))


@pytest.fixture(scope="session")
def toy_site(toy_book) -> Path:
    """For all tests: who changes something there takes `copied_site`."""
    return toy_book / "_build" / "html"


@pytest.fixture(scope="session")
def toy_epub(toy_book) -> Path:
    return toy_book / "_build" / "print" / "postgres-rerun.epub"


@pytest.fixture
def copied_site(toy_site, tmp_path) -> Path:
    """A copy of the toy's site, to be changed."""
    return shutil.copytree(toy_site, tmp_path / "html")


@pytest.fixture(scope="session")
def real_book(made_once, pglite) -> Path:
    """A checkout with the book of all chapters, as `pgrerun book` has built it. It takes minutes:
    one file alone of those that `make test` runs asks for it, so that no other process waits.
    """
    return made_once("real", lambda root: checkouts.build_book(root, pglite))


@pytest.fixture(scope="session")
def real_site(real_book) -> Path:
    return real_book / "_build" / "html"


@pytest.fixture(scope="session")
def real_epub(real_book) -> Path:
    """The same, printed; its PDF lies beside it."""
    if printing.browser() is None:
        pytest.skip("Chromium prints the PDF, and there is none on PATH")
    checkouts.command(real_book, "print")
    return real_book / "_build" / "print" / "postgres-rerun.epub"


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if printing.browser() is None:
        pytest.skip(f"no browser on PATH (looked for {', '.join(printing.BROWSERS)})")
    with chromium.browser(tmp_path_factory.mktemp("profile")) as running:
        yield running
