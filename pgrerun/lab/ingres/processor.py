"""The one-variable query processor (OVQP), and decomposition of commands over several relations
into such commands.

`DataBase` holds relations and runs QUEL trees; pages are counted by its cache.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgrerun.errors import QueryError
from pgrerun.lab.ingres import qualification
from pgrerun.lab.ingres.pages import Cache, Row
from pgrerun.lab.ingres.qualification import Clauses, Tuples, clauses
from pgrerun.lab.ingres.relation import Found, Hash, Heap, Place, Relation
from pgrerun.lab.quel import read, tree

NUMBER = 4  # bytes of a number, and of what an aggregate makes of several
_AGGREGATES: dict[str, Callable[[list[int]], int]] = {"sum": sum, "min": min}


@dataclass
class DataBase:
    """Relations by name, and the commands on them. The names are the variables, as in POSTQUEL."""

    cache: Cache = field(default_factory=Cache)
    relations: dict[str, Relation] = field(default_factory=dict)

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """Run QUEL; the tuples of its last retrieve.

        QueryError with line and column for what the miniature can't run.
        """
        answer: list[tuple[Any, ...]] = []
        for statement in read(text):
            match statement:
                case tree.Retrieve(sort=()):
                    answer = self._retrieve(statement)
                case tree.Append():
                    self._append(statement)
                case tree.Replace() | tree.Delete():
                    self._change(statement)
                case tree.Destroy(names):
                    for name in names:
                        del self.relations[name]
                case _:
                    raise QueryError(
                        "The miniature of INGRES runs retrieve (not sorted), append, replace,"
                        " delete and destroy.",
                        *statement.at,
                    )
        return answer

    def _retrieve(self, command: tree.Retrieve) -> list[tuple[Any, ...]]:
        query = _Query(self)
        targets = query.targets(command.targets)
        rows = list(query.answer([*targets.values()], clauses(command.where)))
        if command.unique:
            rows = sorted(set(rows))
        if not command.into:
            return rows
        lengths = {name: query.length(target) for name, target in targets.items()}
        stored = [dict(zip(targets, row)) for row in rows]
        self.relations[command.into] = Heap(self.cache, lengths, stored)
        return []

    # ---- changes: what is to be changed is determined first, then it is changed

    def _append(self, command: tree.Append) -> None:
        relation, query = self.relations[command.relation], _Query(self)
        targets = query.targets(command.targets)
        for row in list(query.answer([*targets.values()], clauses(command.where))):
            given = dict(zip(targets, row))
            relation.insert({name: given[name] for name in relation.lengths})

    def _change(self, command: tree.Replace | tree.Delete) -> None:
        variable = command.variable
        relation = self.relations[variable]
        one = _OneVariable(variable, relation, clauses(command.where))
        targets = command.targets if isinstance(command, tree.Replace) else ()
        changes = {one.name: qualification.function(one.expression) for one in targets}
        for place, tuples in list(one.found({})):
            if isinstance(command, tree.Delete):
                relation.delete(place)
                continue
            new = {name: change(tuples) for name, change in changes.items()}
            relation.replace(place, tuples[variable] | new)


class _Query:
    """The relations over which a command's variables range: its aggregates' results as well."""

    def __init__(self, base: DataBase):
        self._cache = base.cache
        self._relations = dict(base.relations)

    def targets(self, targets: Sequence[tree.Target]) -> dict[str, tree.Expression]:
        """Expressions by name; `all` is every attribute."""
        named: dict[str, tree.Expression] = {}
        for target in targets:
            match target:
                case tree.All(variable):
                    for name in self._relations[variable].lengths:
                        named[name] = tree.Attribute(variable, name)
                case tree.Assignment(name, expression):
                    named[name] = expression
                case tree.Attribute(_, name):
                    named[name] = target
        return named

    def length(self, expression: tree.Expression) -> int:
        """Bytes of the attribute that holds values of an expression."""
        if isinstance(expression, tree.Attribute):
            return self._relations[expression.variable].lengths[expression.name]
        return NUMBER

    def answer(
        self, targets: Sequence[tree.Expression], clauses: Clauses
    ) -> Iterator[tuple[Any, ...]]:
        """The tuples of a retrieve."""
        targets, links = self._without_aggregates(targets)
        functions = [qualification.function(target) for target in targets]
        for tuples in self._qualified(targets, [*clauses, *links]):
            yield tuple([one(tuples) for one in functions])

    def _qualified(self, targets: Sequence[tree.Expression], clauses: Clauses) -> Iterator[Tuples]:
        """Tuples of all variables that qualify together.

        Of several variables the first is detached into a temporary relation, and its tuples are
        substituted, then those of one variable after another.
        """
        named = qualification.variables_of([*targets, *clauses])
        variables = {variable: self._relations[variable] for variable in named}
        if not variables and not all(qualification.function(one)({}) for one in clauses):
            return
        if len(variables) < 2:
            steps = [_OneVariable(*one, clauses) for one in variables.items()]
            yield from _substituted(steps, {})
            return
        first, *others = qualification.order(clauses, variables)
        own = [clause for clause in clauses if set(qualification.variables_of([clause])) <= {first}]
        pending = [clause for clause in clauses if clause not in own]
        detached = self._detached(first, own, [*targets, *pending])
        steps, bound = [], {first}
        for variable in others:
            bound.add(variable)
            now = [
                clause for clause in pending if set(qualification.variables_of([clause])) <= bound
            ]
            pending = [clause for clause in pending if clause not in now]
            steps.append(_OneVariable(variable, variables[variable], now))
        for row in detached.rows():
            yield from _substituted(steps, {first: row})

    def _detached(self, variable: str, own: Clauses, parts: Sequence[tree.Expression]) -> Heap:
        """A variable's tuples that meet its own clauses, with what the parts name of them."""
        relation = self._relations[variable]
        named = qualification.attributes_of(parts)
        needed = {attribute.name for attribute in named if attribute.variable == variable}
        lengths = {name: size for name, size in relation.lengths.items() if name in needed}
        found = _OneVariable(variable, relation, own).found({})
        rows = [{name: tuples[variable][name] for name in lengths} for _, tuples in found]
        return Heap(self._cache, lengths, rows)

    # ---- aggregates

    def _without_aggregates(
        self, targets: Sequence[tree.Expression]
    ) -> tuple[list[tree.Expression], Clauses]:
        """The same with every aggregate's value in its place: a constant, or with `by` an attribute
        of a relation of its groups, linked by further clauses.
        """
        values: list[tree.Expression] = []
        links: Clauses = []
        for target in targets:
            match target:
                case tree.Aggregate(name, argument, by=(), where=None) if name in _AGGREGATES:
                    found = [value for (value,) in self.answer([argument], [])]
                    values.append(tree.Number(str(_AGGREGATES[name](found))))
                case tree.Aggregate(name, argument, by=(by,), where=None) if name in _AGGREGATES:
                    variable = self._grouped(name, argument, by)
                    values.append(tree.Attribute(variable, "value"))
                    links.append(tree.Binary("=", tree.Attribute(variable, "by"), by))
                case _:
                    values.append(target)
        return values, links

    def _grouped(self, name: str, argument: tree.Expression, by: tree.Expression) -> str:
        """The variable that ranges over the groups of an aggregate."""
        groups: dict[int, list[int]] = defaultdict(list)
        for group, value in self.answer([by, argument], []):
            groups[group].append(value)
        rows: list[Row] = [
            {"by": group, "value": _AGGREGATES[name](values)} for group, values in groups.items()
        ]
        lengths = {"by": self.length(by), "value": self.length(argument)}
        variable = f"aggregate {len(self._relations)}"  # which no variable of a command is called
        self._relations[variable] = Hash(self._cache, lengths, "by", rows)
        return variable


class _OneVariable:
    """A command over one relation; with tuples of other variables substituted, a sequence of
    commands that differ in them.
    """

    def __init__(self, variable: str, relation: Relation, clauses: Clauses):
        self._variable = variable
        self._relation = relation
        key, said = qualification.bounds(clauses, variable, relation)
        self._way = relation.by(key) if key else None
        self._bounds = {name: qualification.function(bound) for name, bound in said.items()}
        self._conditions = [qualification.function(clause) for clause in clauses]

    def found(self, before: Tuples) -> Iterator[tuple[Place, Tuples]]:
        """Tuples that qualify beside those of other variables, and where they are."""
        for place, row in self._candidates(before):
            tuples = {**before, self._variable: row}
            if all(condition(tuples) for condition in self._conditions):
                yield place, tuples

    def _candidates(self, before: Tuples) -> Found:
        bounds = {name: bound(before) for name, bound in self._bounds.items()}
        if self._way is None:
            return self._relation.scan()
        if "equal" in bounds:
            found: Found = self._way.lookup(bounds["equal"])
        else:
            found = self._way.range(bounds.get("low"), bounds.get("high"))
        return found


def _substituted(steps: Sequence[_OneVariable], before: Tuples) -> Iterator[Tuples]:
    """Run each step with the tuples of those before it."""
    if not steps:
        yield before
        return
    step, *rest = steps
    for _, tuples in step.found(before):
        yield from _substituted(rest, tuples)
