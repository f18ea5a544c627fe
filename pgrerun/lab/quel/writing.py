"""Trees to QUEL text, with no more parentheses than it takes to read the same tree again."""

import re
from collections.abc import Iterable

from pgrerun.lab.quel import tree

# How strongly an operator binds, loosest first; a comparison takes no comparison beside it.
_LEVELS = (
    ("or",),
    ("and",),
    ("not",),
    ("=", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/"),
    ("sign",),
    ("**",),
    ("::",),
)
LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_ATOM = len(_LEVELS)
_COMPARISON = LEVEL["="]


class Writer:
    """Writes expressions; statements are `quel`'s here and `sql.Translator`'s in SQL."""

    operators: dict[str, str] = {}  # where the language calls an operator otherwise

    def expression(self, node: tree.Expression) -> str:
        """The text of an expression."""
        match node:
            case tree.Number(text):
                return text
            case tree.String(value):
                return self.string(value)
            case tree.Parameter(number):
                return self.parameter(number)
            case tree.Attribute():
                return self.attribute(node)
            case tree.Unary(operator, operand):
                below = self._below(operand, _level(node), signed=operator != "not")
                return f"{self._operator(operator)}{' ' if operator == 'not' else ''}{below}"
            case tree.Binary():
                return self.binary(node)
            case tree.Call(function, arguments):
                return self.call(function, arguments)
            case tree.Aggregate():
                return self.aggregate(node)
            case tree.Cast(operand, type):
                return f"{self._below(operand, LEVEL['::'] + 1)}::{self.type(type)}"

    def binary(self, node: tree.Binary) -> str:
        level = _level(node)
        # Operators group from the left, except ** and comparisons, which don't group at all.
        left = self._below(node.left, level + (node.operator == "**" or level == _COMPARISON))
        right = self._below(
            node.right, level + (node.operator != "**"), signed=node.operator == "**"
        )
        return f"{left} {self._operator(node.operator)} {right}"

    def _operator(self, operator: str) -> str:
        return self.operators.get(operator, operator)

    def _below(self, node: tree.Expression, least: int, signed: bool = False) -> str:
        """The operand, in parentheses if it binds less than `least`; a sign may follow ** and a
        sign.
        """
        level = _level(node)
        bare = level >= least or (signed and level == LEVEL["sign"])
        return self.expression(node) if bare else f"({self.expression(node)})"

    def list(self, nodes: Iterable[tree.Expression]) -> str:
        return ", ".join(self.expression(node) for node in nodes)

    # what differs between the languages

    def string(self, value: str) -> str:
        return '"' + re.sub(r'["\\](?![*?\[])|"', lambda found: "\\" + found[0], value) + '"'

    def parameter(self, number: int) -> str:
        return f"${number}"

    def attribute(self, node: tree.Attribute) -> str:
        return f"{node.variable}.{node.name}"

    def call(self, function: str, arguments: tuple[tree.Expression, ...]) -> str:
        return f"{function}({self.list(arguments)})"

    def aggregate(self, node: tree.Aggregate) -> str:
        by = f" by {self.list(node.by)}" if node.by else ""
        return f"{node.function}({self.expression(node.argument)}{by}{self._where(node.where)})"

    def type(self, node: tree.Type) -> str:
        return f"{node.name}{'' if node.length is None else f'({node.length})'}{node.array}"

    def _where(self, condition: tree.Expression | None) -> str:
        return f" where {self.expression(condition)}" if condition else ""


def _level(node: tree.Expression) -> int:
    match node:
        case tree.Unary(operator):
            return LEVEL["not"] if operator == "not" else LEVEL["sign"]
        case tree.Binary(operator):
            return LEVEL[operator]
        case tree.Cast():
            return LEVEL["::"]
    return _ATOM


def quel(statement: tree.Statement) -> str:
    """The statement as QUEL text; reading it gives an equal tree."""
    return _Quel().statement(statement)


class _Quel(Writer):
    def statement(self, node: tree.Statement) -> str:
        match node:
            case tree.Range(variable, relation):
                return f"range of {variable} is {relation}"
            case tree.Retrieve():
                words = (
                    f"retrieve{' unique' * node.unique}{f' into {node.into}' if node.into else ''}"
                )
                sort = ", ".join(
                    f"{key.name}:{'descending' if key.descending else 'ascending'}"
                    for key in node.sort
                )
                return f"{words} {self._rest(node)}{f' sort by {sort}' if sort else ''}"
            case tree.Append():
                return f"append {node.relation} {self._rest(node)}"
            case tree.Replace():
                return f"replace {node.variable} {self._rest(node)}"
            case tree.Delete():
                return f"delete {node.variable}{self._ranges(node)}{self._where(node.where)}"
            case tree.Create(relation, attributes):
                return (
                    f"create {relation}"
                    f" ({', '.join(f'{a.name} = {self.type(a.type)}' for a in attributes)})"
                )
            case tree.Destroy(relations):
                return f"destroy {', '.join(relations)}"
            case tree.DefineIndex(name, relation, method, keys):
                listed = ", ".join(f"{key.name} {key.operators}".rstrip() for key in keys)
                return (
                    f"define index {name} on {relation} using {method} ({listed})"
                    if method
                    else f"index on {relation} is {name} ({listed})"
                )
            case tree.Copy():
                way = "from" if node.incoming else "to"
                return (
                    f"copy {'binary ' * node.binary}{node.relation} ({', '.join(node.attributes)})"
                    f" {way} {self.string(node.file)}"
                )
        return type(node).__name__.lower()

    def _rest(self, node: tree.Retrieve | tree.Append | tree.Replace) -> str:
        targets = ", ".join(map(self._target, node.targets))
        return f"({targets}){self._ranges(node)}{self._where(node.where)}"

    def _ranges(self, node: tree.Query) -> str:
        members = ", ".join(f"{member.variable} in {member.relation}" for member in node.ranges)
        return f" from {members}" if members else ""

    def _target(self, target: tree.Target) -> str:
        match target:
            case tree.Assignment(name, expression):
                return f"{name} = {self.expression(expression)}"
            case tree.All(variable):
                return f"{variable}.all"
        return self.expression(target)
