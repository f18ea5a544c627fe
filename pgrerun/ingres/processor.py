"""The one-variable query processor (OVQP), and decomposition of commands over several relations into such commands.

`DataBase` holds relations, runs QUEL trees, and counts: pages by its cache, and here commands,
compilations, and tuples that were evaluated. Three engines evaluate qualifications: "interpreter"
(INGRES), "threaded" (DC-INGRES), "inline" (beyond it).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pgrerun.errors import QueryError
from pgrerun.ingres.compiled import Compiler
from pgrerun.ingres.files import Cache
from pgrerun.ingres.pages import Layout
from pgrerun.ingres.relation import Found, Heap, Isam
from pgrerun.ingres.symbols import Program, interpret, program
from pgrerun.quel import read, tree

INTERPRETER, THREADED, INLINE = "interpreter", "threaded", "inline"
ENGINES = (INTERPRETER, THREADED, INLINE)
Relation = Heap | Isam


@dataclass
class Work:
    """What the processor did: commands over one variable, compilations, tuples evaluated."""

    commands: int = 0
    compilations: int = 0
    tuples: int = 0


@dataclass(frozen=True)
class _Bounds:
    """What a qualification says of the key: a value that it equals (an expression of substituted ones), or a range."""

    equal: tree.Expression | None = None
    low: float | None = None
    high: float | None = None


@dataclass
class DataBase:
    """Relations by name, and the commands on them.

    cache: through which all pages are read. temporary: makes an empty file for a relation that a command
    needs for itself. engine: one of `ENGINES`.
    """

    cache: Cache
    temporary: Callable[[], object]
    engine: str = INTERPRETER
    relations: dict[str, Relation] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    _ranges: dict[str, str] = field(default_factory=dict)

    def run(self, text: str) -> list[tuple]:
        """Run QUEL; the tuples of its last retrieve. QueryError with line and column for what can't be run."""
        return self.execute(read(text))

    def execute(self, statements: Sequence[tree.Statement]) -> list[tuple]:
        """The same for statements that have been parsed."""
        answer: list[tuple] = []
        for statement in statements:
            match statement:
                case tree.Range(variable, relation):
                    self._relation(relation, statement)
                    self._ranges[variable] = relation.lower()
                case tree.Retrieve(unique=False, into="", sort=()):
                    answer = list(self._retrieve(statement))
                case _:
                    raise QueryError("The miniature of INGRES runs range and retrieve (not unique, into or sorted).", *statement.at)
        return answer

    def _relation(self, name: str, node: tree.Node) -> Relation:
        if name.lower() not in self.relations:
            raise QueryError(f"There is no relation {name}; there are {', '.join(self.relations)}.", *node.at)
        return self.relations[name.lower()]

    # ---- one variable

    def _retrieve(self, command: tree.Retrieve) -> Iterator[tuple]:
        targets = [self._target(target) for target in command.targets]
        clauses = _clauses(command.where)
        variables = {variable: self._ranged(variable, command) for variable in _variables([*targets, *clauses])}
        if not variables:
            yield from _OneVariable(self, _Nothing(), targets, clauses, {}).run(())
        elif len(variables) == 1:
            [(_, relation)] = variables.items()
            yield from _OneVariable(self, relation, targets, clauses, {}).run(())
        else:
            yield from self._decompose(targets, clauses, variables)

    def _ranged(self, variable: str, node: tree.Node) -> Relation:
        if variable not in self._ranges:
            raise QueryError(f"{variable} ranges over nothing yet: say range of {variable} is ...", *node.at)
        return self._relation(self._ranges[variable], node)

    def _target(self, target: tree.Target) -> tree.Expression:
        if isinstance(target, tree.All):
            raise QueryError("The miniature of INGRES wants the attributes of a target by name.", *target.at)
        return target.expression if isinstance(target, tree.Assignment) else target

    # ---- several variables

    def _decompose(self, targets: list, clauses: list, variables: dict[str, Relation]) -> Iterator[tuple]:
        """One-variable detachment into temporary relations, then tuple substitution, the smallest variable first."""
        if len(variables) > 2:
            raise QueryError("The miniature of INGRES decomposes commands over two variables.")
        own = {variable: [clause for clause in clauses if set(_variables([clause])) == {variable}] for variable in variables}
        joining = [clause for clause in clauses if len(set(_variables([clause]))) == 2]
        # substituted is the variable whose detached part is smaller; without clauses, the one that is named first
        first, second = sorted(variables, key=lambda variable: (not own[variable], list(variables).index(variable)))
        needed = [node for part in [*targets, *joining] for node in part.nodes() if isinstance(node, tree.Attribute) and node.variable == first]
        needed = list({node.name: node for node in needed}.values())
        detached = self._detach(variables[first], needed, own[first])
        numbers = {f"{first}.{node.name}": number for number, node in enumerate(needed)}
        inner = _OneVariable(self, variables[second], targets, [*joining, *own[second]], numbers, detached.layout)
        for page, offset in detached.scan():
            yield from inner.run(detached.layout.unpack(page, offset))
        detached.file.close()

    def _detach(self, relation: Relation, attributes: Sequence[tree.Attribute], clauses: list) -> Heap:
        """retrieve into a temporary relation (attributes) where clauses."""
        layout = Layout(tuple(relation.layout.place(node.name)[0] for node in attributes))
        return Heap.build(self.temporary(), layout, _OneVariable(self, relation, list(attributes), clauses, {}).run(()))


class _Nothing:
    """What a command without variables ranges over: one tuple without attributes."""

    key, layout = "", Layout(())

    def scan(self) -> Iterator[Found]:
        yield b"", 0


class _OneVariable:
    """A command over one relation; with substituted values, a sequence of commands that differ in them.

    substituted: attributes of the other variable to their place among the values; layout: of those.
    """

    def __init__(self, base: DataBase, relation: Relation, targets: list, clauses: list, substituted: Mapping[str, int], layout: Layout = Layout(())):
        self._base, self._relation, self._substituted = base, relation, substituted
        self._bounds = _bounds(clauses, relation, substituted)
        self._kinds = tuple(domain.kind for domain in layout.domains)
        where = [_conjunction(clauses)] if clauses else []
        self._programs = [program(part, relation.layout, substituted) for part in [*where, *targets]]
        self._qualified = bool(where)
        self._compiled: list | None = None
        self._registers: list = []

    def run(self, values: tuple) -> Iterator[tuple]:
        """The tuples of one command, with these values substituted."""
        base = self._base
        base.work.commands += 1
        evaluate = self._evaluators(values)
        qualifies, targets = (evaluate[0], evaluate[1:]) if self._qualified else (None, evaluate)
        for page, offset in self._candidates(values):
            base.work.tuples += 1
            if qualifies is None or qualifies(page, offset):
                yield tuple([target(page, offset) for target in targets])

    def _evaluators(self, values: tuple) -> list[Callable[[bytes, int], object]]:
        if self._base.engine == INTERPRETER:
            filled = [Program(each.symbols, values) for each in self._programs]
            return [lambda page, offset, each=each: interpret(each, page, offset) for each in filled]
        if self._compiled is None:
            self._base.work.compilations += 1
            compiler = Compiler(self._kinds)
            self._registers = compiler.registers
            self._compiled = [getattr(compiler, self._base.engine)(each) for each in self._programs]
        self._registers[:] = values
        return self._compiled

    def _candidates(self, values: tuple) -> Iterator[Found]:
        relation, bounds = self._relation, self._bounds
        if bounds is None:
            return relation.scan()
        if bounds.equal is not None:
            value = values[self._substituted[_name(bounds.equal)]] if isinstance(bounds.equal, tree.Attribute) else float(bounds.equal.text)
            return relation.lookup(value)
        return relation.range(bounds.low, bounds.high)


# ---- qualifications


def _clauses(where: tree.Expression | None) -> list[tree.Expression]:
    """The parts of a conjunction."""
    match where:
        case None:
            return []
        case tree.Binary("and", left, right):
            return [*_clauses(left), *_clauses(right)]
    return [where]


def _conjunction(clauses: Sequence[tree.Expression]) -> tree.Expression:
    first, *others = clauses
    for other in others:
        first = tree.Binary("and", first, other)
    return first


def _variables(parts: Sequence[tree.Expression]) -> list[str]:
    """Variables in the order in which they are named."""
    return list(dict.fromkeys(node.variable for part in parts for node in part.nodes() if isinstance(node, tree.Attribute)))


def _name(attribute: tree.Attribute) -> str:
    return f"{attribute.variable}.{attribute.name}"


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _bounds(clauses: Sequence[tree.Expression], relation: Relation, substituted: Mapping[str, int]) -> _Bounds | None:
    """What the clauses say of the relation's key; None if nothing, or if it has no key."""
    equal, low, high = None, None, None
    for clause in clauses:
        if not relation.key or not isinstance(clause, tree.Binary) or clause.operator not in _MIRRORED:
            continue
        for key, sign, other in ((clause.left, clause.operator, clause.right), (clause.right, _MIRRORED[clause.operator], clause.left)):
            if not (isinstance(key, tree.Attribute) and key.name == relation.key and _name(key) not in substituted):
                continue
            known = isinstance(other, tree.Number) or (isinstance(other, tree.Attribute) and _name(other) in substituted)
            if sign == "=" and known:
                equal = other
            elif isinstance(other, tree.Number) and sign in ("<", "<="):
                high = float(other.text)
            elif isinstance(other, tree.Number):
                low = float(other.text)
    return None if equal is None and low is None and high is None else _Bounds(equal, low, high)
