"""The files around the code: they are valid, agree with each other, and name what exists."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))

# The schema comes with the package, and nothing is fetched.
LINTERS = {
    "schema": [
        *(sys.executable, "-m", "check_jsonschema"),
        *("--builtin-schema", "vendor.github-workflows"),
    ],
    "zizmor": [
        Path(sys.executable).with_name("zizmor"),
        *("--offline", "--no-config", "--no-progress"),
    ],
}


@pytest.mark.parametrize("linter", LINTERS)
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_linter_finds_nothing_in_a_workflow(path, linter):
    found = subprocess.run([*LINTERS[linter], path], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").glob("*.md"))]


@pytest.mark.parametrize("path", [*WORKFLOWS, *PAGES], ids=lambda path: path.name)
def test_every_target_of_make_that_is_named_exists(path):
    named = set(re.findall(r"(?:^|[`$]\s?|run: |    )make ([a-z]+)", path.read_text(), re.M))
    assert named <= TARGETS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_file_that_is_named_exists(path):
    named = re.findall(r"`((?:pgrerun|tests|data|book|notebooks|\.ci)/[\w./]*)`", path.read_text())
    theirs = "NAME|CHAPTER|^data/runs/mine$"  # the reader's
    assert [one for one in named if not re.search(theirs, one) and not (ROOT / one).exists()] == []


LONGEST = 60  # lines of a function, from the first decorator to the last statement


def test_no_function_is_long():
    long = []
    for path in (ROOT / "pgrerun").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                if node.end_lineno - first >= LONGEST:
                    long.append(f"{path}:{first}: {node.name}")
    assert not long, f"at most {LONGEST} lines a function; make two of it"
