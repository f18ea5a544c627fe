"""The same symbols compiled: to specialised operators as DC-INGRES did, or to code in line as it
did not.

`threaded` builds the tree of Figure 2: each node is code for operands of known types, conversions
are nodes of their own, and expressions of constants are computed while the tree is built. `inline`
writes one Python expression and has Python compile it: what a compiler to machine language would
gain beyond threaded code. Both return a function of a page and an offset, and take parameters from
a list that may be refilled, so that a sequence of commands that differ in constants is compiled
once (2.4).
"""

import math
import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pgrerun.errors import QueryError
from pgrerun.lab.ingres.pages import _CODES
from pgrerun.lab.ingres.symbols import CHAR, COMPARISONS, FLOAT, INT, Program

Evaluate = Callable[[bytes, int], Any]
_OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    # both operands are evaluated, as the interpreter does: what is compared is compilation alone
    "and": operator.and_,
    "or": operator.or_,
}


@dataclass(frozen=True)
class _Node:
    """Code for a subexpression: `threaded` a function, `inline` its source; `constant` where it is
    one.
    """

    kind: str
    threaded: Evaluate
    inline: str
    constant: Any = None


class Compiler:
    """Compiles programs whose parameters have the kinds given, reading them from `registers`."""

    def __init__(self, kinds: Sequence[str] = ()):
        self._kinds = kinds
        self.registers: list[Any] = [None] * len(kinds)
        self._names: dict[str, object] = {"registers": self.registers, "log": math.log}

    def threaded(self, program: Program) -> Evaluate:
        """A tree of specialised functions."""
        return self._build(program).threaded

    def inline(self, program: Program) -> Evaluate:
        """One function in Python's own byte code."""
        source = self.source(program)
        function: Evaluate = eval(compile(source, "<inline>", "eval"), self._names)
        return function

    def source(self, program: Program) -> str:
        """The text of `inline`'s function."""
        return f"lambda page, offset: {self._build(program).inline}"

    def _build(self, program: Program) -> _Node:
        stack: list[_Node] = []
        for symbol in program.symbols:
            match symbol.kind:
                case "i" | "f" | "c":
                    stack.append(self._constant(symbol.kind, symbol.value))
                case "v":
                    stack.append(self._variable(*symbol.value))
                case "p":
                    stack.append(self._parameter(symbol.value))
                case "u":
                    stack.append(self._log(self._float(stack.pop())))
                case "o":
                    right, left = stack.pop(), stack.pop()
                    stack.append(self._operation(symbol.value, left, right))
        [root] = stack
        return root

    def _constant(self, kind: str, value: object) -> _Node:
        return _Node(kind, lambda page, offset: value, repr(value), value)

    def _variable(self, kind: str, length: int, place: int) -> _Node:
        if kind == CHAR:
            end = place + length

            def text(page: bytes, offset: int) -> str:
                return page[offset + place : offset + end].rstrip().decode("ascii")

            return _Node(
                CHAR, text, f"page[offset + {place} : offset + {end}].rstrip().decode('ascii')"
            )
        code = _CODES[kind, length]
        fetch = struct.Struct("<" + code).unpack_from
        self._names[f"fetch_{code}"] = fetch
        return _Node(
            kind,
            lambda page, offset: fetch(page, offset + place)[0],
            f"fetch_{code}(page, offset + {place})[0]",
        )

    def _parameter(self, number: int) -> _Node:
        registers = self.registers
        return _Node(
            self._kinds[number], lambda page, offset: registers[number], f"registers[{number}]"
        )

    def _float(self, node: _Node) -> _Node:
        if node.kind == FLOAT:
            return node
        if node.constant is not None:
            return self._constant(FLOAT, float(node.constant))
        below = node.threaded
        return _Node(
            FLOAT, lambda page, offset: float(below(page, offset)), f"float({node.inline})"
        )

    def _log(self, node: _Node) -> _Node:
        if node.constant is not None:
            return self._constant(FLOAT, math.log(node.constant))
        below = node.threaded
        return _Node(
            FLOAT, lambda page, offset: math.log(below(page, offset)), f"log({node.inline})"
        )

    def _operation(self, sign: str, left: _Node, right: _Node) -> _Node:
        if CHAR in (left.kind, right.kind) and left.kind != right.kind:
            raise QueryError(f"{sign} can't be applied to a text and a number.")
        if left.kind != right.kind:
            left, right = self._float(left), self._float(right)
        apply = operator.floordiv if sign == "/" and left.kind == INT else _OPERATORS[sign]
        kind = INT if sign in (*COMPARISONS, "and", "or") else left.kind
        if left.constant is not None and right.constant is not None:
            return self._constant(kind, apply(left.constant, right.constant))
        a, b = left.threaded, right.threaded
        word = {"=": "==", "/": "//" if left.kind == INT else "/", "and": "&", "or": "|"}.get(
            sign, sign
        )
        source = f"({left.inline} {word} {right.inline})"
        if right.constant is not None:  # an operand in a register need not be called for
            value = right.constant
            return _Node(kind, lambda page, offset: apply(a(page, offset), value), source)
        return _Node(kind, lambda page, offset: apply(a(page, offset), b(page, offset)), source)
