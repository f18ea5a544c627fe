"""What a command's expressions say: the parts of a qualification, whose attributes they name, and
which way they show to tuples.

Functions of trees; the processor works by what they find.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgrerun.lab.ingres.relation import Hash, Heap, Isam
from pgrerun.lab.quel import tree

Relation = Heap | Hash | Isam
"""Any structure."""
Clauses = list[tree.Expression]


@dataclass(frozen=True)
class Bounds:
    """What a qualification says of an attribute that leads to tuples: a value that it equals (of a
    substituted variable, or a number), or a range.
    """

    attribute: str
    equal: tree.Attribute | tree.Number | None = None
    low: float | None = None
    high: float | None = None


def clauses(where: tree.Expression | None) -> Clauses:
    """The parts of a conjunction."""
    match where:
        case None:
            return []
        case tree.Binary("and", left, right):
            return [*clauses(left), *clauses(right)]
    return [where]


def variables_of(parts: Sequence[tree.Expression]) -> list[str]:
    """Variables in the order in which they are named."""
    return list(
        dict.fromkeys(
            node.variable
            for part in parts
            for node in part.nodes()
            if isinstance(node, tree.Attribute)
        )
    )


def attributes_of(variable: str, parts: Sequence[tree.Expression]) -> list[tree.Attribute]:
    """The attributes of a variable that the parts refer to."""
    nodes = [
        node
        for part in parts
        for node in part.nodes()
        if isinstance(node, tree.Attribute) and node.variable == variable
    ]
    return list({node.name: node for node in nodes}.values())


def aggregates_of(parts: Sequence[tree.Expression]) -> Iterator[tree.Aggregate]:
    """The aggregates that are in no other."""
    for part in parts:
        if isinstance(part, tree.Aggregate):
            yield part
        else:
            yield from aggregates_of(_children(part))


def _children(node: tree.Expression) -> tuple[tree.Expression, ...]:
    match node:
        case tree.Binary(_, left, right):
            return left, right
        case tree.Unary(_, operand):
            return (operand,)
        case tree.Call(_, arguments):
            return arguments
    return ()


def replaced(
    values: Mapping[tree.Expression, tree.Expression], node: tree.Expression
) -> tree.Expression:
    """The expression with some of its parts replaced."""
    if node in values:
        return values[node]
    match node:
        case tree.Binary(_, left, right):
            return dataclasses.replace(
                node, left=replaced(values, left), right=replaced(values, right)
            )
        case tree.Unary(_, operand):
            return dataclasses.replace(node, operand=replaced(values, operand))
        case tree.Call(_, arguments):
            return dataclasses.replace(
                node, arguments=tuple(replaced(values, argument) for argument in arguments)
            )
    return node


def name_of(attribute: tree.Attribute) -> str:
    """Variable and attribute, as the numbers of substituted values are kept by."""
    return f"{attribute.variable}.{attribute.name}"


def order(clauses: Clauses, variables: Mapping[str, Relation]) -> list[str]:
    """In which order variables are substituted.

    First one that clauses of its own make smaller, or else one whose tuples lead into another
    relation by its key or index, the one of the fewest pages if there are several. Then those that
    can be reached by a key or index, and by any clause.
    """

    def reached(variable: str, others: set[str]) -> bool:
        return any(
            isinstance(part, tree.Attribute)
            and part.variable == variable
            and variables[variable].by(part.name)
            for clause in _linked(clauses, variable, others)
            if isinstance(clause, tree.Binary) and clause.operator == "="
            for part in (clause.left, clause.right)
        )

    def leads(variable: str) -> bool:
        return any(reached(other, {variable}) for other in variables if other != variable)

    alone = {
        variable
        for clause in clauses
        if len(named := variables_of([clause])) == 1
        for variable in named
    }
    chosen = [
        min(
            variables,
            key=lambda variable: (
                variable not in alone,
                not leads(variable),
                variables[variable].pages,
            ),
        )
    ]
    while rest := [variable for variable in variables if variable not in chosen]:
        chosen.append(
            min(
                rest,
                key=lambda variable: (
                    not reached(variable, set(chosen)),
                    not _linked(clauses, variable, set(chosen)),
                    variables[variable].pages,
                ),
            )
        )
    return chosen


def _linked(clauses: Clauses, variable: str, others: set[str]) -> Clauses:
    """The clauses that say something of the variable and of nothing but it and some others."""
    found = []
    for clause in clauses:
        named = set(variables_of([clause]))
        if variable in named and len(named) > 1 and named <= others | {variable}:
            found.append(clause)
    return found


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def bounds(clauses: Clauses, relation: Relation, substituted: Mapping[str, int]) -> Bounds | None:
    """What the clauses say of the relation's key, or else of an attribute with an index; None if
    nothing that leads to tuples.
    """
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for clause in clauses:
        if not isinstance(clause, tree.Binary) or clause.operator not in _MIRRORED:
            continue
        for key, sign, other in (
            (clause.left, clause.operator, clause.right),
            (clause.right, _MIRRORED[clause.operator], clause.left),
        ):
            if (
                not isinstance(key, tree.Attribute)
                or name_of(key) in substituted
                or (way := relation.by(key.name)) is None
            ):
                continue
            known = isinstance(other, tree.Number) or (
                isinstance(other, tree.Attribute) and name_of(other) in substituted
            )
            if sign == "=" and known:
                found[key.name]["equal"] = other
            elif way.ordered and isinstance(other, tree.Number):
                found[key.name]["high" if sign in ("<", "<=") else "low"] = float(other.text)
    # an equality before a range, the key before an index
    best = min(
        found, key=lambda name: ("equal" not in found[name], name != relation.key), default=None
    )
    return None if best is None else Bounds(best, **found[best])
