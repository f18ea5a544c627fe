"""A qualification as INGRES had it: a list of symbols in postfix order (Figure 1), and the stack
that interprets it.

A symbol is a type, a length and a value. `getsymbol` fetches the next one and checks it;
`interpret` takes symbols until the list is exhausted, in nested switches, deciding for each tuple
anew of which type its operands are and what has to be converted (2.1, 3.1). Both count nothing and
know nothing of pages: a tuple is a page and an offset.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pgrerun.errors import QueryError
from pgrerun.lab.ingres.pages import Layout
from pgrerun.lab.quel import tree

INT, FLOAT, CHAR, VAR, PARAM, OPERATOR, FUNCTION = "i", "f", "c", "v", "p", "o", "u"
LENGTHS = {
    INT: (1, 2, 4),
    FLOAT: (4, 8),
    CHAR: range(1, 256),
    VAR: (0,),
    PARAM: (0,),
    OPERATOR: (0,),
    FUNCTION: (0,),
}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/")


class Symbol(NamedTuple):
    """kind, length and value; of a VAR the value is (kind, length, offset) of the attribute."""

    kind: str
    length: int
    value: Any


@dataclass(frozen=True)
class Program:
    """Symbols in postfix order.

    `parameters` are the substituted values, by number, that PARAM symbols stand for.
    """

    symbols: tuple[Symbol, ...]
    parameters: tuple[Any, ...] = ()


def program(
    expression: tree.Expression, layout: Layout, parameters: Mapping[str, int] | None = None
) -> Program:
    """The symbols of an expression over one relation.

    `parameters`: attributes of substituted variables ("p.pnum") to their numbers. QueryError for
    what the miniature has no operator for, at its place in the text.
    """
    return Program(tuple(_symbols(expression, layout, parameters or {})))


def _symbols(node: tree.Expression, layout: Layout, parameters: Mapping[str, int]) -> list[Symbol]:
    def below(part: tree.Expression) -> list[Symbol]:
        return _symbols(part, layout, parameters)

    match node:
        case tree.Number(text):
            value = float(text) if {".", "e"} & set(text.lower()) else int(text)
            return [
                (
                    Symbol(FLOAT, 8, value)
                    if isinstance(value, float)
                    else Symbol(INT, 2 if abs(value) < 2**15 else 4, value)
                )
            ]
        case tree.String(value):
            return [Symbol(CHAR, len(value), value)]
        case tree.Attribute(variable, name) if f"{variable}.{name}" in parameters:
            return [Symbol(PARAM, 0, parameters[f"{variable}.{name}"])]
        case tree.Attribute(_, name):
            domain, offset = layout.place(name)
            return [Symbol(VAR, 0, (domain.kind, domain.length, offset))]
        case tree.Unary("-", operand):
            return [Symbol(INT, 2, 0), *below(operand), Symbol(OPERATOR, 0, "-")]
        case tree.Binary(operator, left, right) if operator in (
            *COMPARISONS,
            *ARITHMETIC,
            "and",
            "or",
        ):
            return [*below(left), *below(right), Symbol(OPERATOR, 0, operator)]
        case tree.Call("log", (argument,)):
            return [*below(argument), Symbol(FUNCTION, 0, "log")]
    raise QueryError(
        f"The miniature of INGRES can't evaluate {type(node).__name__.lower()} here.", *node.at
    )


class _List:
    """The list while it is interpreted: where it stands."""

    __slots__ = ("symbols", "next")

    def __init__(self, symbols: Sequence[Symbol]):
        self.symbols, self.next = symbols, 0


def getsymbol(state: _List) -> Symbol | None:
    """The next symbol, its type and length checked; None at the end of the list."""
    if state.next >= len(state.symbols):
        return None
    symbol = state.symbols[state.next]
    state.next += 1
    if symbol.kind not in LENGTHS or symbol.length not in LENGTHS[symbol.kind]:
        raise QueryError(f"A symbol of type {symbol.kind} and length {symbol.length} isn't legal.")
    return symbol


def interpret(program: Program, page: bytes, offset: int) -> Any:
    """Evaluate a program for one tuple: whether it qualifies, or a value.

    An expression is evaluated whole, `and` and `or` too: the interpreter meets them after both
    operands.
    """
    state = _List(program.symbols)
    stack: list[tuple[str, Any]] = []
    while (symbol := getsymbol(state)) is not None:
        match symbol.kind:
            case "i" | "f" | "c":
                stack.append((symbol.kind, symbol.value))
            case "v":
                kind, length, place = symbol.value
                stack.append((kind, _fetch(kind, length, page, offset + place)))
            case "p":
                stack.append(_typed(program.parameters[symbol.value]))
            case "u":
                kind, value = stack.pop()
                stack.append((FLOAT, math.log(float(value) if kind == INT else value)))
            case "o":
                right, left = stack.pop(), stack.pop()
                stack.append(_operate(symbol.value, left, right))
    return stack.pop()[1]


def _fetch(kind: str, length: int, page: bytes, place: int) -> Any:
    """An attribute's value off the page, by its type and length."""
    match kind, length:
        case "i", 2:
            return _I2.unpack_from(page, place)[0]
        case "i", 4:
            return _I4.unpack_from(page, place)[0]
        case "f", 4:
            return _F4.unpack_from(page, place)[0]
        case "f", 8:
            return _F8.unpack_from(page, place)[0]
        case "i", 1:
            return _I1.unpack_from(page, place)[0]
    return page[place : place + length].rstrip().decode("ascii")


_I1, _I2, _I4, _F4, _F8 = (struct.Struct("<" + code) for code in "bhifd")


def _typed(value: Any) -> tuple[str, Any]:
    return (CHAR if isinstance(value, str) else FLOAT if isinstance(value, float) else INT), value


def _operate(operator: str, left: tuple[str, Any], right: tuple[str, Any]) -> tuple[str, Any]:
    """One operator on two typed operands: decide the type, convert, compute."""
    (left_kind, a), (right_kind, b) = left, right
    if left_kind != right_kind:
        if CHAR in (left_kind, right_kind):
            raise QueryError(f"{operator} can't be applied to a text and a number.")
        if left_kind == INT:
            left_kind, a = FLOAT, float(a)
        else:
            b = float(b)
    match operator:
        case "and":
            return INT, a and b
        case "or":
            return INT, a or b
        case "=":
            return INT, a == b
        case "!=":
            return INT, a != b
        case "<":
            return INT, a < b
        case "<=":
            return INT, a <= b
        case ">":
            return INT, a > b
        case ">=":
            return INT, a >= b
        case "+":
            return left_kind, a + b
        case "-":
            return left_kind, a - b
        case "*":
            return left_kind, a * b
        case "/":
            return left_kind, (a // b if left_kind == INT else a / b)
    raise QueryError(f"There is no operator {operator}.")
