"""Text to trees: the grammar is in `grammar.lark`, errors point at line and column."""

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken, VisitError
from lark.tree import Meta

from pgrerun.errors import QueryError
from pgrerun.lab.quel import tree

AGGREGATES = frozenset({"count", "countu", "sum", "sumu", "avg", "avgu", "min", "max", "any"})


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


@lru_cache(maxsize=256)  # an experiment reads the same text again and again
def read(text: str) -> tuple[tree.Statement, ...]:
    """The statements of a text, in order; QueryError with line and column where it is no QUEL."""
    try:
        statements: tuple[tree.Statement, ...] = _Trees().transform(_parser().parse(text))
        return statements
    except UnexpectedInput as error:
        raise _unreadable(error, text) from None
    except VisitError as error:
        if isinstance(error.orig_exc, QueryError):
            raise pointed(error.orig_exc, text) from None
        raise


def written(text: str) -> list[tuple[tree.Statement, str]]:
    """Each statement of a text, and how it stands there, on one line. QueryError as `read`."""
    statements = read(text)
    lines = text.splitlines(keepends=True)
    starts = [
        sum(map(len, lines[: line - 1])) + column - 1
        for line, column in (statement.at for statement in statements)
    ]
    ends = [*starts[1:], len(text)]
    return [
        (statement, " ".join(text[start:end].split()))
        for statement, start, end in zip(statements, starts, ends)
    ]


def pointed(error: QueryError, text: str) -> QueryError:
    """The same error with the line it is about and a mark below the place."""
    lines = text.splitlines() or [""]
    line = lines[min(error.line, len(lines)) - 1]
    mark = " " * (error.column - 1) + "^"
    return QueryError(
        f"Line {error.line}, column {error.column}: {error}\n\n    {line}\n    {mark}",
        error.line,
        error.column,
    )


def _unreadable(error: UnexpectedInput, text: str) -> QueryError:
    if isinstance(error, UnexpectedCharacters):
        line, column, found = error.line, error.column, f"{text[error.pos_in_stream or 0]!r}"
        expected: Iterable[str] = error.allowed or ()
    elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
        line, column = _place(error.token)
        found, expected = f"{str(error.token)!r}", error.expected
    else:
        (line, column), found = _end(text), "the end of the text"
        expected = error.expected if isinstance(error, UnexpectedToken | UnexpectedEOF) else ()
    words = _expected(expected)
    return pointed(
        QueryError(
            f"{found} can't stand here{f'; expected is {words}' if words else ''}.", line, column
        ),
        text,
    )


def _place(token: Token) -> tuple[int, int]:
    return token.line or 1, token.column or 1


def _end(text: str) -> tuple[int, int]:
    """The place just behind the last character that isn't white space."""
    kept = text.rstrip()
    return kept.count("\n") + 1, len(kept) - (kept.rfind("\n") + 1) + 1


_WORDS = {
    "NAME": "a name",
    "INTEGER": "a number",
    "REAL": "a number",
    "STRING": 'a string in "quotes"',
    "PARAMETER": "a parameter",
    "ORDER": "a comparison",
    "UNEQUAL": "a comparison",
    "EQUAL": "=",
    "SIGN": "+ or -",
    "TIMES": "* or /",
    "POWER": "**",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": "a comma",
    "DOT": "a full stop",
    "COLON": "a colon",
    "$END": "the end",
    "__ANON_0": "::",
    "LSQB": "[",
    "RSQB": "]",
}


def _expected(terminals: Iterable[str]) -> str:
    words = sorted({_WORDS.get(name, name.lower()) for name in terminals})
    return (
        words[0]
        if len(words) == 1
        else f"{', '.join(words[:-1])} or {words[-1]}"
        if 0 < len(words) <= 9
        else ""
    )


def _plain(part: Any) -> Any:
    return str(part) if isinstance(part, Token) else part


def _node(kind: Callable[..., Any]) -> Callable[..., Any]:
    """For a rule whose parts are the fields of a node, in their order, and clauses by name."""

    def made(self: Transformer[Token, Any], meta: Meta, *parts: Any) -> tree.Node:
        clauses: dict[str, Any] = dict(part for part in parts if isinstance(part, tuple))
        fields = (_plain(part) for part in parts if not isinstance(part, tuple))
        node: tree.Node = kind(*fields, **clauses, at=_at(meta))
        return node

    return made


def _clause(name: str) -> Callable[..., tuple[str, Any]]:
    """For a rule all of whose parts are one field of the node around it."""

    def made(self: Transformer[Token, Any], meta: Meta, *parts: Any) -> tuple[str, Any]:
        return name, tuple(map(_plain, parts))

    return made


@v_args(inline=True, meta=True)
class _Trees(Transformer[Token, Any]):
    """Makes a node of `tree` from each rule of the grammar."""

    def start(self, meta: Meta, *statements: tree.Statement) -> tuple[tree.Statement, ...]:
        return statements

    def NAME(self, token: Token) -> Token:
        return token.update(value=token.lower())

    retrieve, append, delete = _node(tree.Retrieve), _node(tree.Append), _node(tree.Delete)
    create, destroy, copy = _node(tree.Create), _node(tree.Destroy), _node(tree.Copy)
    begin, end, abort = _node(tree.Begin), _node(tree.End), _node(tree.Abort)
    range = member = _node(tree.Range)
    define_index, declaration, key = map(_node, (tree.DefineIndex, tree.Declaration, tree.Key))
    assignment, all = _node(tree.Assignment), _node(tree.All)
    attribute, cast, number = _node(tree.Attribute), _node(tree.Cast), _node(tree.Number)

    def replace(self, meta: Meta, variable: Token, *clauses: Any) -> tree.Replace:
        node = tree.Replace(str(variable), **dict(clauses), at=_at(meta))
        for target in node.targets:
            if not isinstance(target, tree.Assignment):
                raise QueryError(
                    "replace takes targets of the form name = expression only.", *target.at
                )
        return node

    def index_on(self, meta: Meta, relation: Token, name: Token, keys: Any) -> tree.DefineIndex:
        return tree.DefineIndex(str(name), str(relation), "", keys[1], at=_at(meta))

    # clauses: (which, value)

    targets, ranges, sort = _clause("targets"), _clause("ranges"), _clause("sort")
    attributes, relations, keys = _clause("attributes"), _clause("relations"), _clause("keys")
    names, arguments = _clause("attributes"), _clause("arguments")

    def unique(self, meta: Meta) -> tuple[str, bool]:
        return "unique", True

    def into(self, meta: Meta, relation: Token) -> tuple[str, str]:
        return "into", str(relation)

    def where(self, meta: Meta, condition: tree.Expression) -> tuple[str, tree.Expression]:
        return "where", condition

    def by(self, meta: Meta, arguments: tuple[str, Any]) -> tuple[str, Any]:
        return "by", arguments[1]

    def binary(self, meta: Meta) -> tuple[str, bool]:
        return "binary", True

    def direction(self, meta: Meta, token: Token) -> tuple[str, bool]:
        return "incoming", token.lower() == "from"

    def file(self, meta: Meta, token: Token) -> tuple[str, str]:
        return "file", _unquoted(token)

    def sort_key(self, meta: Meta, name: Token, order: Token | None = None) -> tree.SortKey:
        if order is not None and not any(
            word.startswith(order) for word in ("ascending", "descending")
        ):
            raise QueryError(f"A sort is ascending or descending, not {order!r}.", *_place(order))
        return tree.SortKey(str(name), order is not None and order.startswith("d"), at=_at(meta))

    def sort_using(self, meta: Meta, name: Token, order: Token) -> tree.SortKey:
        return tree.SortKey(str(name), order.startswith(">"), at=_at(meta))

    def array(self, meta: Meta, *length: Token) -> str:
        return f"[{''.join(length)}]"

    def type(self, meta: Meta, name: Token, *rest: Any) -> tree.Type:
        length = next((int(part) for part in rest if isinstance(part, Token)), None)
        array = next((part for part in rest if not isinstance(part, Token)), "")
        return tree.Type(str(name), length, array, at=_at(meta))

    # expressions

    def binary_operation(
        self, meta: Meta, left: tree.Expression, operator: Token, right: tree.Expression
    ) -> tree.Binary:
        return tree.Binary(operator.lower(), left, right, at=_at(meta))

    def unary_operation(self, meta: Meta, operator: Token, operand: tree.Expression) -> tree.Unary:
        return tree.Unary(operator.lower(), operand, at=_at(meta))

    def call(self, meta: Meta, function: Token, *parts: Any) -> tree.Call | tree.Aggregate:
        found = dict(parts)
        arguments = found.get("arguments", ())
        if function not in AGGREGATES:
            if "by" in found or "where" in found:
                raise QueryError(
                    f"{str(function)!r} is no aggregate, and only aggregates have by or where."
                    f" Aggregates: {', '.join(sorted(AGGREGATES))}.",
                    *_at(meta),
                )
            return tree.Call(str(function), arguments, at=_at(meta))
        if len(arguments) != 1:
            raise QueryError(
                f"The aggregate {function} takes one expression, not {len(arguments)}.", *_at(meta)
            )
        return tree.Aggregate(
            str(function), arguments[0], found.get("by", ()), found.get("where"), at=_at(meta)
        )

    def string(self, meta: Meta, token: Token) -> tree.String:
        return tree.String(_unquoted(token), at=_at(meta))

    def parameter(self, meta: Meta, token: Token) -> tree.Parameter:
        return tree.Parameter(int(token[1:]), at=_at(meta))


def _at(meta: Meta) -> tree.Position:
    return (meta.line, meta.column)


def _unquoted(token: str) -> str:
    return re.sub(r"\\(?![*?\[])(.)", r"\1", token[1:-1], flags=re.DOTALL)
