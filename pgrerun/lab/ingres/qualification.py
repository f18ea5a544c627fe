"""What a command's expressions say: the parts of a qualification, what they evaluate to, whose
attributes they name, and which way they show to tuples.

Functions of trees; the processor works by what they find.
"""

import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pgrerun.errors import QueryError
from pgrerun.lab.ingres.pages import Row
from pgrerun.lab.ingres.relation import Relation
from pgrerun.lab.quel import tree

Clauses = list[tree.Expression]
Tuples = Mapping[str, Row]
"""A tuple of each variable that has one by now."""

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
}


def function(node: tree.Expression) -> Callable[[Tuples], Any]:
    """An expression over tuples.

    QueryError for what the miniature has no operator for, at its place in the text.
    """
    match node:
        case tree.Number(text):
            number = int(text)
            return lambda tuples: number
        case tree.String(value):
            return lambda tuples: value
        case tree.Attribute(variable, name):
            return lambda tuples: tuples[variable][name]
        case tree.Binary(sign, left, right) if sign in _OPERATORS:
            one, other, apply = function(left), function(right), _OPERATORS[sign]
            return lambda tuples: apply(one(tuples), other(tuples))
    raise QueryError(
        f"The miniature of INGRES can't evaluate {type(node).__name__.lower()} here.", *node.at
    )


def clauses(where: tree.Expression | None) -> Clauses:
    """The parts of a conjunction."""
    match where:
        case None:
            return []
        case tree.Binary("and", left, right):
            return [*clauses(left), *clauses(right)]
    return [where]


def attributes_of(parts: Sequence[tree.Expression]) -> list[tree.Attribute]:
    """The attributes that the parts refer to."""
    nodes = (node for part in parts for node in part.nodes())
    return [node for node in nodes if isinstance(node, tree.Attribute)]


def variables_of(parts: Sequence[tree.Expression]) -> list[str]:
    """Variables in the order in which they are named."""
    return list(dict.fromkeys(attribute.variable for attribute in attributes_of(parts)))


def order(clauses: Clauses, variables: Mapping[str, Relation]) -> list[str]:
    """In which order variables are substituted.

    First one that clauses of its own make smaller, or else one whose tuples lead into another
    relation by its key or index, the one of the fewest pages if there are several. Then those that
    can be reached by a key or index, and by any clause.
    """

    def reached(variable: str, others: set[str]) -> bool:
        return any(
            attribute.variable == variable and variables[variable].by(attribute.name)
            for clause in _linked(clauses, variable, others)
            if isinstance(clause, tree.Binary) and clause.operator == "="
            for attribute in attributes_of([clause])
        )

    def leads(variable: str) -> bool:
        return any(reached(other, {variable}) for other in variables if other != variable)

    named = [variables_of([clause]) for clause in clauses]
    alone = {of[0] for of in named if len(of) == 1}
    first = min(
        variables, key=lambda one: (one not in alone, not leads(one), len(variables[one].file))
    )
    chosen = [first]
    while rest := [variable for variable in variables if variable not in chosen]:
        following = min(
            rest,
            key=lambda one: (
                not reached(one, set(chosen)),
                not _linked(clauses, one, set(chosen)),
                len(variables[one].file),
            ),
        )
        chosen.append(following)
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


def bounds(
    clauses: Clauses, variable: str, relation: Relation
) -> tuple[str, dict[str, tree.Expression]]:
    """What the clauses say of the relation's key, or else of an attribute with an index: its name,
    and what it equals ("equal": a number, or an attribute of another variable) or by which numbers
    it is limited ("low", "high"). No name if nothing leads to tuples.
    """
    found: dict[str, dict[str, tree.Expression]] = defaultdict(dict)
    for clause in clauses:
        if not isinstance(clause, tree.Binary) or clause.operator not in _MIRRORED:
            continue
        for key, sign, other in (
            (clause.left, clause.operator, clause.right),
            (clause.right, _MIRRORED[clause.operator], clause.left),
        ):
            if not isinstance(key, tree.Attribute) or key.variable != variable:
                continue
            if not (way := relation.by(key.name)):
                continue
            elsewhere = isinstance(other, tree.Attribute) and other.variable != variable
            if sign == "=" and (elsewhere or isinstance(other, tree.Number)):
                found[key.name]["equal"] = other
            elif way.ordered and isinstance(other, tree.Number):
                found[key.name]["high" if sign in ("<", "<=") else "low"] = other
    # an equality before a range, the key before an index
    best = min(
        found, key=lambda name: ("equal" not in found[name], name != relation.key), default=""
    )
    return best, found[best]
