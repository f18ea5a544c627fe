"""What code reaches by imports, and the key that is made of it."""

import pytest

from pgrerun.record import reached

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
    left = {"lab/wide.py", "lab/unused.py", "page.py", "chapters/tp1/__init__.py"}
    left |= {"chapters/tp1/sql/load.sql"}
    assert list(found) == [f"library {name}" for name in sorted(set(FILES) - left)]


@pytest.mark.parametrize(
    ("name", "text", "changes"),
    [
        ("lab/clock.py", "def now():\n    return 2\n", True),
        ("chapters/hot/growth.py", "def f():\n    import pgrerun.page\n", True),
        ("chapters/hot/chapter.toml", "title = 'Heap-only tuples'\n", True),
        ("chapters/hot/sql/load.sql", "SELECT 4\n", True),
        ("chapters/hot/sql/more.csv", "a\n1\n", True),
        (
            "lab/clock.py",
            '"""Another word."""\n\ndef now():\n    # why\n    return (1)\n',
            False,
        ),
        ("lab/unused.py", "Y = 2\n", False),
        ("page.py", "X = 2\n", False),
        ("chapters/tp1/sql/load.sql", "SELECT 5\n", False),
        ("chapters/hot/__pycache__/growth.pyc", "x", False),
    ],
)
def test_the_key_changes_with_what_is_reached_and_with_nothing_else(root, name, text, changes):
    before = key(root)
    (root / "pgrerun" / name).parent.mkdir(exist_ok=True)
    change(root, name, text)
    assert (key(root) != before) == changes


def test_the_key_is_of_modules_and_more_files_and_of_no_place_or_order(root):
    more = root / "printed.csv"
    more.write_text("1")
    both = ["pgrerun.chapter", "pgrerun.chapters.hot"]
    asked = [(["pgrerun.chapters.tp1"], []), (both[1:], []), (both, []), (both, [more])]
    keys = [reached.key_of(root, *one) for one in asked]
    more.write_text("2")
    assert len({*keys, reached.key_of(root, both, [more])}) == 5
    (root / "pgrerun").rename((root / "elsewhere").mkdir() or root / "elsewhere" / "pgrerun")
    assert reached.key_of(root / "elsewhere", both[::-1]) == keys[2]


def test_an_import_by_name_reaches_a_whole_folder_and_no_module_is_refused(root):
    assert "library lab/unused.py" in reached.library(root, ["from pgrerun.lab import wide"])
    with pytest.raises(ModuleNotFoundError, match="hott"):
        key(root, "pgrerun.chapters.hott")


def test_what_is_skipped_changes_no_key(root):
    def skipping():
        return reached.key_of(root, ["pgrerun.chapters.hot"], skip=["chapters/*/growth*", "page*"])

    before = skipping()
    change(root, "chapters/hot/growth.py", "def f():\n    import pgrerun.chapter\n    return 2\n")
    assert skipping() == before
    change(root, "chapters/hot/sql/load.sql", "SELECT 4\n")
    assert skipping() != before
