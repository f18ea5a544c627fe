"""What the linter can't hold: no long function, and no passage that the formatter leaves out."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pgrerun"
LONGEST = 60  # lines, from the first decorator to the last statement
LEFT_OUT = re.compile(r"#\s*fmt:\s*(skip|off)")


def functions(source: str) -> Iterator[tuple[str, int, int]]:
    """(name, first line, lines) of each function in a module, those inside others included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            assert node.end_lineno is not None  # parsed from a text
            yield node.name, first, node.end_lineno - first + 1


def too_long(folder: Path) -> list[str]:
    """Each function of a folder's modules over `LONGEST` lines, as "path:line: name, lines"."""
    return [
        f"{path.relative_to(folder)}:{first}: {name}, {lines} lines"
        for path in sorted(folder.rglob("*.py"))
        for name, first, lines in functions(path.read_text("utf-8"))
        if lines > LONGEST
    ]


def skipped(folder: Path) -> list[str]:
    """Each line of a folder's modules that the formatter is told to leave out, as "path:line"."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if LEFT_OUT.search(line):
                found.append(f"{path.relative_to(folder)}:{number}")
    return found


def test_no_function_is_long():
    assert not too_long(PACKAGE), f"at most {LONGEST} lines a function; make two of it"


@pytest.mark.parametrize("folder", ["pgrerun", "tests", "benchmarks", "book/_ext"])
def test_the_formatter_leaves_nothing_out(folder):
    assert not skipped(ROOT / folder)


def test_a_long_function_and_a_skipped_line_are_found(tmp_path):
    longest = "def longest():\n" + "    pass\n" * (LONGEST - 1)
    decorated = "class A:\n    @property\n    def decorated(self):\n"
    decorated += "        pass\n" * (LONGEST - 1)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "long.py").write_text(longest + decorated)
    for word in ("off", "skip"):
        (tmp_path / f"{word}.py").write_text(f"ONE = 1\nTWO  =  2  # fmt: {word}\n")
    assert too_long(tmp_path) == [f"inner/long.py:{LONGEST + 2}: decorated, {LONGEST + 1} lines"]
    assert skipped(tmp_path) == ["off.py:2", "skip.py:2"]


def private(source: str) -> list[str]:
    """What a test module takes or replaces of the package that is the package's own business."""
    tree = ast.parse(source)
    found = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "os"))
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("pgrerun"):
            found += [one.name for one in node.names]
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr":
            texts = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
            found += [str(text).rpartition(".")[2] for text in texts]
    own = re.compile(r"_(?!_)\w*(?<!_)")
    return sorted({name for name in found if own.fullmatch(name)} - NAMED_TUPLES)


NAMED_TUPLES = {"_replace", "_fields"}  # public, with an underscore to be no field


def test_tests_call_public_functions():
    modules = sorted((ROOT / "tests").rglob("*.py"))
    found = {path.name: private(path.read_text("utf-8")) for path in modules}
    assert {name: names for name, names in found.items() if names} == {}


def test_a_private_function_in_a_test_is_found():
    calls = "from pgrerun.lab import _one\nlab._two()\nmonkeypatch.setattr(lab, '_three', 1)\n"
    calls += "monkeypatch.setattr('pgrerun.lab._four', 1)\nlab.five._repr_markdown_(self._six)\n"
    assert private(calls) == ["_four", "_one", "_three", "_two"]
