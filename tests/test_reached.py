"""What code reaches by imports, and the key that is made of it."""

from pathlib import Path

import pytest

from pgrerun.parameters import modules
from pgrerun.record import reached

ROOT = Path(__file__).resolve().parents[1]

FILES = {
    "__init__.py": "",
    "chapter.py": "from pgrerun.lab import clock\n",
    "page.py": "X = 1\n",
    "lab/__init__.py": "",
    "lab/clock.py": '"""A clock."""\n\n\ndef now():\n    """The time."""\n    return 1\n',
    "lab/wide.py": "from importlib import import_module\n\nimport_module(__package__ + '.x')\n",
    "lab/unused.py": "Y = 1\n",
    "chapters/__init__.py": "",
    "chapters/hot/__init__.py": "from . import growth\n",
    "chapters/hot/growth.py": "def f():\n    import pgrerun.chapter\n",
    "chapters/hot/chapter.toml": "title = 'HOT'\n",
    "chapters/hot/sql/load.sql": "SELECT 1\n",
    "chapters/hot/sql/update.pgbench": "SELECT 2;\n",
    "chapters/tp1/__init__.py": "",
    "chapters/tp1/sql/load.sql": "SELECT 3\n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "pgrerun" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def key(root, *modules):
    return reached.key_of(root, modules or ["pgrerun.chapters.hot"])


def change(root, name, text):
    (root / "pgrerun" / name).write_text(text)


def test_imports_are_followed_into_functions_and_data_files_come_along(root):
    found = reached.library(root, ["import pgrerun.chapters.hot"])
    assert list(found) == [
        "library __init__.py",
        "library chapter.py",
        "library chapters/__init__.py",
        "library chapters/hot/__init__.py",
        "library chapters/hot/chapter.toml",
        "library chapters/hot/growth.py",
        "library chapters/hot/sql/load.sql",
        "library chapters/hot/sql/update.pgbench",
        "library lab/__init__.py",
        "library lab/clock.py",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lab/clock.py", "def now():\n    return 2\n"),
        ("chapters/hot/growth.py", "def f():\n    import pgrerun.page\n"),
        ("chapters/hot/chapter.toml", "title = 'Heap-only tuples'\n"),
        ("chapters/hot/sql/load.sql", "SELECT 4\n"),
        ("chapters/hot/sql/more.csv", "a\n1\n"),
    ],
)
def test_the_key_changes_with_what_is_reached(root, name, text):
    before = key(root)
    change(root, name, text)
    assert key(root) != before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lab/clock.py", '"""Another word."""\n\ndef now():\n    # why\n    return (1)\n'),
        ("lab/unused.py", "Y = 2\n"),
        ("page.py", "X = 2\n"),
        ("chapters/tp1/sql/load.sql", "SELECT 5\n"),
        ("chapters/hot/__pycache__/growth.pyc", "x"),
    ],
)
def test_the_key_stays_whatever_else_changes(root, name, text):
    before = key(root)
    (root / "pgrerun" / name).parent.mkdir(exist_ok=True)
    change(root, name, text)
    assert key(root) == before


def test_the_key_does_not_depend_on_the_place_or_on_the_order(root, tmp_path):
    both = ("pgrerun.chapter", "pgrerun.chapters.hot")
    before = key(root, *both)
    moved = root / "elsewhere"
    moved.mkdir()
    (root / "pgrerun").rename(moved / "pgrerun")
    assert key(moved, *reversed(both)) == before


def test_modules_differ_in_their_keys_and_more_files_count(root):
    assert key(root, "pgrerun.chapters.tp1") != key(root)
    more = root / "printed.csv"
    more.write_text("1")
    first = reached.key_of(root, ["pgrerun.chapter"], [more])
    more.write_text("2")
    assert (
        reached.key_of(root, ["pgrerun.chapter"], [more]) != first != key(root, "pgrerun.chapter")
    )


def test_a_module_that_imports_by_name_reaches_its_whole_folder(root):
    assert "library lab/unused.py" in reached.library(root, ["from pgrerun.lab import wide"])


def test_a_module_that_is_not_there_is_refused(root):
    with pytest.raises(ModuleNotFoundError, match="hott"):
        key(root, "pgrerun.chapters.hott")


def test_a_real_chapter_reaches_the_laboratory_and_neither_the_site_nor_its_siblings():
    own = [label for name in modules("hot") for label in library_of(name)]
    found = {label.removeprefix("library ") for label in own}
    assert {"lab/testbed.py", "lab/server/cluster.py", "chapters/hot/sql/page.sql"} <= found
    assert not any(name.startswith(("site/", "report_card/", "cli")) for name in found)
    assert not any(name.startswith("chapters/tp1") for name in found)


def library_of(module):
    return reached.library(ROOT, [f"import {module}"])


def test_what_is_skipped_changes_no_key(root):
    def skipping():
        return reached.key_of(root, ["pgrerun.chapters.hot"], skip=["chapters/*/growth*", "page*"])

    before = skipping()
    change(root, "chapters/hot/growth.py", "def f():\n    import pgrerun.chapter\n    return 2\n")
    assert skipping() == before
    change(root, "chapters/hot/sql/load.sql", "SELECT 4\n")
    assert skipping() != before
