"""What the linter can't hold: no long function."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 60  # lines, from the first decorator to the last statement


def test_no_function_is_long():
    long = []
    for path in (ROOT / "pgrerun").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                if node.end_lineno - first >= LONGEST:
                    long.append(f"{path}:{first}: {node.name}")
    assert not long, f"at most {LONGEST} lines a function; make two of it"
