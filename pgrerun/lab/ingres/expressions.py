"""Expressions over the tuples of one relation, compiled: each becomes a function of a page and an
offset.

Values of substituted variables are read from registers that may be refilled, so that a sequence of
commands that differ in constants is compiled once (2.4).
"""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

from pgrerun.errors import QueryError
from pgrerun.lab.ingres.pages import Domain, Layout
from pgrerun.lab.quel import tree

INT, FLOAT, CHAR = "i", "f", "c"
Evaluate = Callable[[bytes, int], Any]
# QUEL's operators in Python; of "and" and "or" both operands are evaluated, as INGRES did
_TRUTHS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "and": "&", "or": "|"}
OPERATORS = _TRUTHS | {"+": "+", "-": "-", "*": "*", "/": "/"}


def operation(sign: str, left: str, right: str) -> str:
    """The kind of what an operator makes of two kinds. QueryError for a text and a number."""
    if (left == CHAR) != (right == CHAR):
        raise QueryError(f"{sign} can't be applied to a text and a number.")
    return INT if sign in _TRUTHS else left if left == right else FLOAT


class Compiler:
    """Compiles expressions over one relation.

    substituted: attributes of other variables, by "variable.name", whose values will stand in
    `registers`, in this order.
    """

    def __init__(self, layout: Layout, substituted: Mapping[str, Domain]):
        self.registers: list[Any] = [None] * len(substituted)
        self._layout = layout
        self._substituted = {
            name: (domain.kind, f"registers[{number}]")
            for number, (name, domain) in enumerate(substituted.items())
        }
        self._names: dict[str, object] = {"registers": self.registers, "log": math.log}

    def function(self, expression: tree.Expression) -> Evaluate:
        """An expression as one function in Python's own byte code.

        QueryError for what the miniature has no operator for, at its place in the text.
        """
        _, source = self._source(expression)
        text = f"lambda page, offset: {source}"
        function: Evaluate = eval(compile(text, "<expression>", "eval"), self._names)
        return function

    def _source(self, node: tree.Expression) -> tuple[str, str]:
        """The kind of a value, and Python that computes it."""
        match node:
            case tree.Number(text):
                value = float(text) if {".", "e"} & set(text.lower()) else int(text)
                return (FLOAT if isinstance(value, float) else INT), repr(value)
            case tree.String(text):
                return CHAR, repr(text)
            case tree.Attribute(variable, name) if f"{variable}.{name}" in self._substituted:
                return self._substituted[f"{variable}.{name}"]
            case tree.Attribute(_, name):
                return self._fetched(*self._layout.place(name))
            case tree.Unary("-", operand):
                return self._operated("-", (INT, "0"), self._source(operand))
            case tree.Binary(sign, left, right) if sign in OPERATORS:
                return self._operated(sign, self._source(left), self._source(right))
            case tree.Call("log", (argument,)):
                return FLOAT, f"log({self._source(argument)[1]})"
        raise QueryError(
            f"The miniature of INGRES can't evaluate {type(node).__name__.lower()} here.", *node.at
        )

    def _fetched(self, domain: Domain, place: int) -> tuple[str, str]:
        """An attribute off the page."""
        if domain.kind == CHAR:
            part = f"page[offset + {place} : offset + {place + domain.length}]"
            return CHAR, f"{part}.rstrip().decode('ascii')"
        self._names[f"fetch_{domain.code}"] = struct.Struct("<" + domain.code).unpack_from
        return domain.kind, f"fetch_{domain.code}(page, offset + {place})[0]"

    def _operated(
        self, sign: str, left: tuple[str, str], right: tuple[str, str]
    ) -> tuple[str, str]:
        (kind, a), (other, b) = left, right
        word = "//" if sign == "/" and kind == other == INT else OPERATORS[sign]
        return operation(sign, kind, other), f"({a} {word} {b})"
