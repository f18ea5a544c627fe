"""Text to trees: the grammar is in `grammar.lark`, errors point at line and column."""

import re
from functools import cache, lru_cache
from pathlib import Path

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, VisitError

from pgrerun.errors import QueryError
from pgrerun.quel import tree

AGGREGATES = frozenset({"count", "countu", "sum", "sumu", "avg", "avgu", "min", "max", "any"})


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


@cache
def keywords() -> frozenset[str]:
    """The words that start or join clauses. They are names, too, wherever no clause could start or go on."""
    words = (re.sub(r"\W", "", str(terminal.pattern.value)) for terminal in _parser().terminals if terminal.name.isidentifier())
    return frozenset(word.lower() for word in words if word.isalpha())


@lru_cache(maxsize=256)  # an experiment reads the same text again and again
def read(text: str) -> tuple[tree.Statement, ...]:
    """The statements of a text, in order; QueryError with line and column where it is no QUEL."""
    try:
        return _Trees().transform(_parser().parse(text))
    except UnexpectedInput as error:
        raise _unreadable(error, text) from None
    except VisitError as error:
        if isinstance(error.orig_exc, QueryError):
            raise pointed(error.orig_exc, text) from None
        raise


def pointed(error: QueryError, text: str) -> QueryError:
    """The same error with the line it is about and a mark below the place."""
    lines = text.splitlines() or [""]
    line = lines[min(error.line, len(lines)) - 1]
    mark = " " * (error.column - 1) + "^"
    return QueryError(f"Line {error.line}, column {error.column}: {error}\n\n    {line}\n    {mark}", error.line, error.column)


def _unreadable(error: UnexpectedInput, text: str) -> QueryError:
    if isinstance(error, UnexpectedCharacters):
        line, column, found = error.line, error.column, f"{text[error.pos_in_stream]!r}"
        expected = error.allowed or set()
    else:
        token = error.token
        ended = isinstance(error, UnexpectedEOF) or token.type == "$END"
        line, column = _end(text) if ended else (token.line, token.column)
        found = "the end of the text" if ended else f"{str(token)!r}"
        expected = error.expected
    words = _expected(expected)
    return pointed(QueryError(f"{found} can't stand here{f'; expected is {words}' if words else ''}.", line, column), text)


def _end(text: str) -> tuple[int, int]:
    """The place just behind the last character that isn't white space."""
    kept = text.rstrip()
    return kept.count("\n") + 1, len(kept) - (kept.rfind("\n") + 1) + 1


_WORDS = {
    "NAME": "a name", "INTEGER": "a number", "REAL": "a number", "STRING": 'a string in "quotes"', "PARAMETER": "a parameter",
    "ORDER": "a comparison", "UNEQUAL": "a comparison", "EQUAL": "=", "SIGN": "+ or -", "TIMES": "* or /", "POWER": "**",
    "LPAR": "(", "RPAR": ")", "COMMA": "a comma", "DOT": "a full stop", "COLON": "a colon", "$END": "the end",
    "__ANON_0": "::", "LSQB": "[", "RSQB": "]",
}  # fmt: skip


def _expected(terminals) -> str:
    words = sorted({_WORDS.get(name, name.lower()) for name in terminals})
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}" if 0 < len(words) <= 9 else ""


@v_args(inline=True, meta=True)
class _Trees(Transformer):
    """Makes a node of `tree` from each rule of the grammar."""

    def start(self, meta, *statements):
        return statements

    def NAME(self, token: Token) -> Token:  # noqa: N802 - named like the terminal
        return token.update(value=token.lower())

    def range(self, meta, variable, relation):
        return tree.Range(str(variable), str(relation), at=_at(meta))

    member = range

    def retrieve(self, meta, *parts):
        found = dict(parts)
        return tree.Retrieve(
            found["targets"], found.get("into", ""), "unique" in found, found.get("ranges", ()), found.get("where"), found.get("sort", ()), at=_at(meta)
        )

    def append(self, meta, relation, *parts):
        found = dict(parts)
        return tree.Append(str(relation), found["targets"], found.get("ranges", ()), found.get("where"), at=_at(meta))

    def replace(self, meta, variable, *parts):
        found = dict(parts)
        for target in found["targets"]:
            if not isinstance(target, tree.Assignment):
                raise QueryError("replace takes targets of the form name = expression only.", *target.at)
        return tree.Replace(str(variable), found["targets"], found.get("ranges", ()), found.get("where"), at=_at(meta))

    def delete(self, meta, variable, *parts):
        found = dict(parts)
        return tree.Delete(str(variable), found.get("ranges", ()), found.get("where"), at=_at(meta))

    def create(self, meta, relation, *attributes):
        return tree.Create(str(relation), attributes, at=_at(meta))

    def destroy(self, meta, *relations):
        return tree.Destroy(tuple(map(str, relations)), at=_at(meta))

    def define_index(self, meta, name, relation, method, *keys):
        return tree.DefineIndex(str(name), str(relation), str(method), keys, at=_at(meta))

    def index_on(self, meta, relation, name, *keys):
        return tree.DefineIndex(str(name), str(relation), "", keys, at=_at(meta))

    def copy(self, meta, *parts):
        *binary, relation, names, direction, file = parts
        return tree.Copy(str(relation), names, direction == "from", _unquoted(file), bool(binary), at=_at(meta))

    def begin(self, meta):
        return tree.Begin(at=_at(meta))

    def end(self, meta):
        return tree.End(at=_at(meta))

    def abort(self, meta):
        return tree.Abort(at=_at(meta))

    # clauses: (which, value)

    def unique(self, meta):
        return "unique", True

    def into(self, meta, relation):
        return "into", str(relation)

    def targets(self, meta, *targets):
        return "targets", targets

    def ranges(self, meta, *members):
        return "ranges", members

    def where(self, meta, condition):
        return "where", condition

    def sort(self, meta, *keys):
        return "sort", keys

    def by(self, meta, expressions):
        return "by", expressions[1]

    def arguments(self, meta, *expressions):
        return "arguments", expressions

    def binary(self, meta):
        return True

    def names(self, meta, *names):
        return tuple(map(str, names))

    def direction(self, meta, token):
        return token.lower()

    def sort_key(self, meta, name, order=None):
        if order is not None and not any(word.startswith(order) for word in ("ascending", "descending")):
            raise QueryError(f"A sort is ascending or descending, not {order!r}.", order.line, order.column)
        return tree.SortKey(str(name), order is not None and order.startswith("d"), at=_at(meta))

    def sort_using(self, meta, name, order):
        return tree.SortKey(str(name), order.startswith(">"), at=_at(meta))

    def declaration(self, meta, name, _, type):
        return tree.Declaration(str(name), type, at=_at(meta))

    def array(self, meta, *length):
        return f"[{''.join(length)}]"

    def type(self, meta, name, *rest):
        length = next((int(part) for part in rest if isinstance(part, Token)), None)
        array = next((part for part in rest if not isinstance(part, Token)), "")
        return tree.Type(str(name), length, array, at=_at(meta))

    def key(self, meta, name, operators=""):
        return tree.Key(str(name), str(operators), at=_at(meta))

    # expressions

    def assignment(self, meta, name, _, expression):
        return tree.Assignment(str(name), expression, at=_at(meta))

    def all(self, meta, variable):
        return tree.All(str(variable), at=_at(meta))

    def attribute(self, meta, variable, name):
        return tree.Attribute(str(variable), str(name), at=_at(meta))

    def binary_operation(self, meta, left, operator, right):
        return tree.Binary(operator.lower(), left, right, at=_at(meta))

    def unary_operation(self, meta, operator, operand):
        return tree.Unary(operator.lower(), operand, at=_at(meta))

    def cast(self, meta, operand, type):
        return tree.Cast(operand, type, at=_at(meta))

    def call(self, meta, function, *parts):
        found = dict(parts)
        arguments = found.get("arguments", ())
        if function not in AGGREGATES:
            if "by" in found or "where" in found:
                raise QueryError(f"{str(function)!r} is no aggregate, and only aggregates have by or where. Aggregates: {', '.join(sorted(AGGREGATES))}.", *_at(meta))
            return tree.Call(str(function), arguments, at=_at(meta))
        if len(arguments) != 1:
            raise QueryError(f"The aggregate {function} takes one expression, not {len(arguments)}.", *_at(meta))
        return tree.Aggregate(str(function), arguments[0], found.get("by", ()), found.get("where"), at=_at(meta))

    def number(self, meta, token):
        return tree.Number(str(token), at=_at(meta))

    def string(self, meta, token):
        return tree.String(_unquoted(token), at=_at(meta))

    def parameter(self, meta, token):
        return tree.Parameter(int(token[1:]), at=_at(meta))


def _at(meta) -> tree.Position:
    return (meta.line, meta.column)


def _unquoted(token: str) -> str:
    return re.sub(r"\\(?![*?\[])(.)", r"\1", token[1:-1], flags=re.DOTALL)
