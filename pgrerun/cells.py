"""The statements of a chapter's notebook, read and not executed.

Who judges a claim elsewhere and who runs one experiment alone both ask which statement assigns a
name that another uses, and which modules the names in a cell stand for.
"""

import ast
from collections.abc import Iterator
from types import CodeType
from typing import Any

import nbformat


def statements(notebook: nbformat.NotebookNode) -> Iterator[ast.stmt]:
    """The statements of the code cells, but for magics, the parameters and the opening."""
    for cell in notebook.cells:
        magic = cell.source.lstrip().startswith("%")
        if cell.cell_type != "code" or magic or "parameters" in cell.metadata.get("tags", []):
            continue
        for statement in ast.parse(cell.source).body:
            if "chapter" not in names(statement, ast.Store):
                yield statement


def names(node: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """The names in it; with `ast.Store` those that it assigns, with `ast.Load` those it uses."""
    return {
        found.id
        for found in ast.walk(node)
        if isinstance(found, ast.Name) and isinstance(found.ctx, context)
    }


def learn(statement: ast.stmt, known: dict[str, Any]) -> bool:
    """Execute in `known` what imports something or gives what is known a shorter name.

    Whether it does; nothing else is executed.
    """
    if isinstance(statement, ast.Assign):
        named = all(map(_is_path, [statement.value, *statement.targets]))
        found = named and names(statement, ast.Load) <= set(known)
    else:
        found = isinstance(statement, ast.Import | ast.ImportFrom)
    if found:
        exec(compiled(statement), known)  # of our own notebook
    return found


def _is_path(node: ast.AST) -> bool:
    """Whether it is a name, or names joined by dots, or several of those."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_path, node.elts))
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_path(node.value))


def compiled(statement: ast.stmt) -> CodeType:
    """The statement's code."""
    return compile(ast.Module([statement], []), "<notebook>", "exec")


def value(expression: ast.expr, known: dict[str, Any]) -> Any:
    """What an expression over `known` stands for."""
    return eval(compile(ast.Expression(expression), "<notebook>", "eval"), dict(known))
