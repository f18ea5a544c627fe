"""The one-variable query processor (OVQP), and decomposition of commands over several relations
into such commands.

`DataBase` holds relations and runs QUEL trees; pages are counted by its cache.
"""

import dataclasses
import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

from pgrerun.errors import QueryError
from pgrerun.lab.ingres import qualification
from pgrerun.lab.ingres.expressions import CHAR, FLOAT, INT, Compiler, operation
from pgrerun.lab.ingres.files import Cache, UnixFile
from pgrerun.lab.ingres.pages import Domain, Layout
from pgrerun.lab.ingres.qualification import Clauses, Relation
from pgrerun.lab.ingres.relation import Found, Hash, Heap, Place
from pgrerun.lab.quel import read, tree

Targets = list[tuple[str, tree.Expression]]


@dataclass
class DataBase:
    """Relations by name, and the commands on them.

    cache: through which all pages are read. temporary: makes an empty file for a relation that a
    command needs for itself, or leaves.
    """

    cache: Cache
    temporary: Callable[[], UnixFile]
    relations: dict[str, Relation] = field(default_factory=dict)
    _ranges: dict[str, str] = field(default_factory=dict)

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """Run QUEL; the tuples of its last retrieve.

        QueryError with line and column for what can't be run.
        """
        return self.execute(read(text))

    def execute(self, statements: Sequence[tree.Statement]) -> list[tuple[Any, ...]]:
        """The same for statements that have been parsed.

        A relation's name serves as a variable, too, as in POSTQUEL.
        """
        answer: list[tuple[Any, ...]] = []
        for statement in statements:
            match statement:
                case tree.Range(variable, relation):
                    self._relation(relation, statement)
                    self._ranges[variable] = relation.lower()
                case tree.Retrieve(sort=()):
                    answer = self._retrieve(statement)
                case tree.Append():
                    self._append(statement)
                case tree.Replace() | tree.Delete():
                    self._change(statement)
                case tree.Destroy(names):
                    for name in names:
                        self._relation(name, statement).close()
                        del self.relations[name.lower()]
                case _:
                    raise QueryError(
                        "The miniature of INGRES runs range, retrieve (not sorted), append,"
                        " replace, delete and destroy.",
                        *statement.at,
                    )
        return answer

    def _relation(self, name: str, node: tree.Node) -> Relation:
        if name.lower() not in self.relations:
            raise QueryError(
                f"There is no relation {name}; there are {', '.join(self.relations)}.", *node.at
            )
        return self.relations[name.lower()]

    def _retrieve(self, command: tree.Retrieve) -> list[tuple[Any, ...]]:
        query = _Query(self, command)
        targets = query.targets(command.targets)
        rows: Iterable[tuple[Any, ...]] = query.answer(
            _expressions(targets), qualification.clauses(command.where)
        )
        if command.unique:  # sorted, and neighbours compared
            rows = (row for row, _ in itertools.groupby(sorted(rows)))
        if not command.into:
            return list(rows)
        if command.into in self.relations or len(dict(targets)) < len(targets):
            raise QueryError(
                f"There is a relation {command.into} already, or two of its attributes have one"
                " name.",
                *command.at,
            )
        self.relations[command.into] = query.stored(targets, list(rows))
        return []

    # ---- changes: what is to be changed is determined first, then it is changed

    def _append(self, command: tree.Append) -> None:
        relation, query = self._relation(command.relation, command), _Query(self, command)
        targets = query.targets(command.targets)
        _known(targets, relation, command)
        for row in list(query.answer(_expressions(targets), qualification.clauses(command.where))):
            given = dict(zip((name for name, _ in targets), row))
            relation.insert(
                [given.get(domain.name, domain.empty) for domain in relation.layout.domains]
            )

    def _change(self, command: tree.Replace | tree.Delete) -> None:
        query = _Query(self, command)
        relation = query.relation(command.variable)
        targets = query.targets(command.targets) if isinstance(command, tree.Replace) else []
        _known(targets, relation, command)
        for place, old, new in query.found(
            command.variable, _expressions(targets), qualification.clauses(command.where)
        ):
            if isinstance(command, tree.Delete):
                relation.delete(place)
            else:
                changed = dict(zip((name for name, _ in targets), new))
                relation.replace(
                    place,
                    [
                        changed.get(domain.name, value)
                        for domain, value in zip(relation.layout.domains, old)
                    ],
                )


def _expressions(targets: Targets) -> list[tree.Expression]:
    return [expression for _, expression in targets]


def _known(targets: Targets, relation: Relation, command: tree.Statement) -> None:
    names = [domain.name for domain in relation.layout.domains]
    for name, _ in targets:
        if name not in names:
            raise QueryError(
                f"The relation has no attribute {name}; it has {', '.join(names)}.", *command.at
            )


class _Query:
    """A command's variables, and the relations over which they range while it runs: its aggregates'
    results as well.
    """

    def __init__(self, base: DataBase, command: tree.Query):
        self._base, self._command = base, command
        self._ranges = base._ranges | {
            each.variable: each.relation.lower() for each in command.ranges
        }
        self._aggregated: dict[str, Relation] = {}

    def relation(self, variable: str) -> Relation:
        """What a variable ranges over."""
        if variable in self._aggregated:
            return self._aggregated[variable]
        if variable in self._ranges:
            return self._base._relation(self._ranges[variable], self._command)
        if variable.lower() not in self._base.relations:
            raise QueryError(
                f"{variable} ranges over nothing yet: say range of {variable} is ...",
                *self._command.at,
            )
        return self._base.relations[variable.lower()]

    def targets(self, targets: Sequence[tree.Target]) -> Targets:
        """Names and expressions; `all` is every attribute."""
        named: Targets = []
        for target in targets:
            match target:
                case tree.All(variable):
                    named += [
                        (domain.name, tree.Attribute(variable, domain.name))
                        for domain in self.relation(variable).layout.domains
                    ]
                case tree.Assignment(name, expression):
                    named.append((name, expression))
                case tree.Attribute(_, name):
                    named.append((name, target))
        return named

    def stored(self, targets: Targets, rows: Sequence[tuple[Any, ...]]) -> Heap:
        """The relation that an answer makes."""
        return Heap.build(
            self._base.temporary(),
            Layout(tuple(self._domain(name, target) for name, target in targets)),
            rows,
        )

    def _domain(self, name: str, expression: tree.Expression) -> Domain:
        """The attribute that holds values of an expression."""
        match expression:
            case tree.Attribute(variable, attribute):
                return dataclasses.replace(
                    self.relation(variable).layout.place(attribute)[0], name=name
                )
            case tree.String(value):
                return Domain(name, CHAR, max(1, len(value)))
            case tree.Aggregate("min" | "max" | "sum" | "sumu", argument):
                return self._domain(name, argument)
            case tree.Aggregate("avg" | "avgu") | tree.Call():
                return Domain(name, FLOAT, 8)
            case tree.Number(text):
                whole = not {".", "e"} & set(text.lower())
                return Domain(name, INT, 4) if whole else Domain(name, FLOAT, 8)
            case tree.Binary(sign, left, right):
                kinds = (self._domain(name, operand).kind for operand in (left, right))
                kind = operation(sign, *kinds)
                return Domain(name, kind, 8 if kind == FLOAT else 4)
            case tree.Unary(_, operand):
                return self._domain(name, operand)
        return Domain(name, INT, 4)

    def answer(
        self, targets: Sequence[tree.Expression], clauses: Clauses
    ) -> Iterator[tuple[Any, ...]]:
        """The tuples of a retrieve."""
        targets, clauses = self._without_aggregates(targets, clauses)
        variables = {
            variable: self.relation(variable)
            for variable in qualification.variables_of([*targets, *clauses])
        }
        if not variables:
            return _OneVariable(_Nothing(), targets, clauses).run(())
        if len(variables) == 1:
            [relation] = variables.values()
            return _OneVariable(relation, targets, clauses).run(())
        return self._decompose(targets, clauses, variables)

    def found(
        self, variable: str, targets: Sequence[tree.Expression], clauses: Clauses
    ) -> list[tuple[Place, tuple[Any, ...], tuple[Any, ...]]]:
        """Of every tuple of one variable that qualifies: place, values, values of the targets."""
        if others := set(qualification.variables_of([*targets, *clauses])) - {variable}:
            raise QueryError(
                f"The miniature of INGRES changes tuples of {variable} by what they hold"
                f" themselves, and not by {', '.join(others)}.",
                *self._command.at,
            )
        targets, clauses = self._without_aggregates(targets, clauses)
        relation = self.relation(variable)
        return [
            ((number, offset), relation.layout.unpack(page, offset), row)
            for number, page, offset, row in _OneVariable(relation, targets, clauses).found(())
        ]

    # ---- several variables

    def _decompose(
        self, targets: Sequence[tree.Expression], clauses: Clauses, variables: dict[str, Relation]
    ) -> Iterator[tuple[Any, ...]]:
        """One-variable detachment into a temporary relation, then tuple substitution, one variable
        after another.
        """
        first, *others = qualification.order(clauses, variables)
        own = [clause for clause in clauses if set(qualification.variables_of([clause])) <= {first}]
        pending = [clause for clause in clauses if clause not in own]
        needed = qualification.attributes_of(first, [*targets, *pending])
        domains = {f"{first}.{node.name}": self._domain(node.name, node) for node in needed}
        detached = Heap.build(
            self._base.temporary(),
            Layout(tuple(domains.values())),
            _OneVariable(variables[first], needed, own).run(()),
        )
        steps, bound = [], {first}
        for variable in others:
            bound.add(variable)
            now = [
                clause for clause in pending if set(qualification.variables_of([clause])) <= bound
            ]
            pending = [clause for clause in pending if clause not in now]
            relation = variables[variable]
            if variable == others[-1]:
                steps.append(_OneVariable(relation, targets, now, domains))
                continue
            wanted = qualification.attributes_of(variable, [*targets, *pending])
            steps.append(_OneVariable(relation, wanted, now, domains))
            domains = domains | {
                f"{variable}.{node.name}": self._domain(node.name, node) for node in wanted
            }
        for _, page, offsets in detached.scan():
            for offset in offsets:
                yield from _substituted(steps, detached.layout.unpack(page, offset))
        detached.close()

    # ---- aggregates

    def _without_aggregates(
        self, targets: Sequence[tree.Expression], clauses: Clauses
    ) -> tuple[list[tree.Expression], Clauses]:
        """The same with every aggregate's value in its place: a constant, or with `by` an attribute
        of a relation of its groups, linked by further clauses.
        """
        values: dict[tree.Expression, tree.Expression] = {}
        links: Clauses = []
        for node in qualification.aggregates_of([*targets, *clauses]):
            if node not in values:
                values[node], more = self._grouped(node) if node.by else (self._constant(node), [])
                links += more
        return [qualification.replaced(values, target) for target in targets], [
            qualification.replaced(values, clause) for clause in clauses
        ] + links

    def _constant(self, node: tree.Aggregate) -> tree.Expression:
        value = _AGGREGATES[node.function](
            [value for (value,) in self.answer([node.argument], qualification.clauses(node.where))]
        )
        return tree.String(value) if isinstance(value, str) else tree.Number(repr(value))

    def _grouped(self, node: tree.Aggregate) -> tuple[tree.Expression, Clauses]:
        groups: dict[tuple[Any, ...], list[Any]] = (
            {by: [] for by in self.answer(node.by, [])} if node.where else defaultdict(list)
        )
        for *by, value in self.answer([*node.by, node.argument], qualification.clauses(node.where)):
            groups[tuple(by)].append(value)
        names = [f"by_{number}" for number in range(len(node.by))]
        domains = (
            *(self._domain(name, by) for name, by in zip(names, node.by)),
            self._domain("value", node),
        )
        rows = [(*by, _AGGREGATES[node.function](values)) for by, values in groups.items()]
        file, layout = self._base.temporary(), Layout(domains)
        relation = (
            Heap.build(file, layout, rows)
            if domains[0].kind == CHAR
            else Hash.build(file, layout, names[0], rows, filling=0.1)
        )  # a lookup meets few other groups
        variable = f"aggregate {len(self._aggregated)}"  # which no variable of a command is called
        self._aggregated[variable] = relation
        return tree.Attribute(variable, "value"), [
            tree.Binary("=", tree.Attribute(variable, name), by) for name, by in zip(names, node.by)
        ]


_AGGREGATES: dict[str, Callable[[list[Any]], object]] = {
    "count": len,
    "countu": lambda values: len(set(values)),
    "sum": sum,
    "sumu": lambda values: sum(set(values)),
    "any": lambda values: int(bool(values)),
    "avg": lambda values: statistics.fmean(values) if values else 0.0,
    "avgu": lambda values: statistics.fmean(set(values)) if values else 0.0,
    "min": lambda values: min(values, default=0),
    "max": lambda values: max(values, default=0),
}


class _Nothing:
    """What a command without variables ranges over: one tuple without attributes."""

    layout = Layout(())

    def scan(self) -> Iterator[Found]:
        yield 0, b"", (0,)

    def by(self, attribute: str) -> None:
        return None


class _OneVariable:
    """A command over one relation; with substituted values, a sequence of commands that differ in
    them.

    substituted: the attributes whose values are given when it runs, by "variable.name", in the
    order of the values.
    """

    def __init__(
        self,
        relation: Relation | _Nothing,
        targets: Sequence[tree.Expression],
        clauses: Clauses,
        substituted: Mapping[str, Domain] | None = None,
    ):
        substituted = substituted or {}
        self._relation = relation
        self._numbers = {name: number for number, name in enumerate(substituted)}
        self._bounds = (
            None
            if isinstance(relation, _Nothing)
            else qualification.bounds(clauses, relation, self._numbers)
        )
        where = [reduce(partial(tree.Binary, "and"), clauses)] if clauses else []
        compiler = Compiler(relation.layout, substituted)
        self._registers = compiler.registers
        self._evaluate = [compiler.function(part) for part in [*where, *targets]]
        self._qualified = bool(where)

    def run(self, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """The tuples of one command, with these values substituted."""
        for *_, row in self.found(values):
            yield row

    def found(self, values: tuple[Any, ...]) -> Iterator[tuple[int, bytes, int, tuple[Any, ...]]]:
        """The same, each with the number of the page, the page and the offset of its tuple."""
        self._registers[:] = values
        evaluate = self._evaluate
        qualifies, targets = (evaluate[0], evaluate[1:]) if self._qualified else (None, evaluate)
        for number, page, offsets in self._candidates(values):
            for offset in offsets:
                if qualifies is None or qualifies(page, offset):
                    yield number, page, offset, tuple([target(page, offset) for target in targets])

    def _candidates(self, values: tuple[Any, ...]) -> Iterator[Found]:
        if (bounds := self._bounds) is None:
            return self._relation.scan()
        way = self._relation.by(bounds.attribute)
        assert way is not None  # bounds are those of attributes that lead to tuples
        if bounds.equal is None:
            return way.range(bounds.low, bounds.high)
        return way.lookup(
            values[self._numbers[qualification.name_of(bounds.equal)]]
            if isinstance(bounds.equal, tree.Attribute)
            else float(bounds.equal.text)
        )


def _substituted(
    steps: Sequence[_OneVariable], values: tuple[Any, ...]
) -> Iterator[tuple[Any, ...]]:
    """Run each step with the values of those before it."""
    step, *rest = steps
    if not rest:
        yield from step.run(values)
        return
    for row in step.run(values):
        yield from _substituted(rest, (*values, *row))
