"""Trees to SQL for PostgreSQL.

What QUEL means, and how it is said in SQL:

- A range variable ranges over a relation until it is declared again; without a declaration
  a variable is the relation of that name, as in POSTQUEL.
- `retrieve` keeps duplicates unless it is `unique`; `retrieve into` makes a relation.
- A simple aggregate is a query of its own: its variables aren't those around it. An aggregate
  with `by` is joined to the query around it by the values of its groups; where a group has
  no tuples, `count` and `any` are 0, and the others null as in SQL. Where the query retrieves
  nothing but groups and their aggregates, GROUP BY does instead.
- Compared with a text constant, * ? and [ ] match patterns, as in INGRES; a backslash prevents it.
- `log` is the natural logarithm.
"""

import re
from collections.abc import Sequence
from typing import Any

from pgrerun.errors import QueryError
from pgrerun.lab.quel import tree

# Words that PostgreSQL 18 takes as names of columns or tables in quotation marks only.
RESERVED = frozenset(
    [
        "all",
        "analyse",
        "analyze",
        "and",
        "any",
        "array",
        "as",
        "asc",
        "asymmetric",
        "authorization",
        "binary",
        "both",
        "case",
        "cast",
        "check",
        "collate",
        "collation",
        "column",
        "concurrently",
        "constraint",
        "create",
        "cross",
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "default",
        "deferrable",
        "desc",
        "distinct",
        "do",
        "else",
        "end",
        "except",
        "false",
        "fetch",
        "for",
        "foreign",
        "freeze",
        "from",
        "full",
        "grant",
        "group",
        "having",
        "ilike",
        "in",
        "initially",
        "inner",
        "intersect",
        "into",
        "is",
        "isnull",
        "join",
        "lateral",
        "leading",
        "left",
        "like",
        "limit",
        "localtime",
        "localtimestamp",
        "natural",
        "not",
        "notnull",
        "null",
        "offset",
        "on",
        "only",
        "or",
        "order",
        "outer",
        "overlaps",
        "placing",
        "primary",
        "references",
        "returning",
        "right",
        "select",
        "session_user",
        "similar",
        "some",
        "symmetric",
        "system_user",
        "table",
        "tablesample",
        "then",
        "to",
        "trailing",
        "true",
        "union",
        "unique",
        "user",
        "using",
        "variadic",
        "verbose",
        "when",
        "where",
        "window",
        "with",
    ]
)

_FUNCTIONS = {"log": "ln"}
_TYPES = {"i1": "int2", "i2": "int2", "i4": "int4", "f4": "float4", "f8": "float8"}
_AGGREGATES = {
    "countu": "count(DISTINCT {})",
    "sumu": "sum(DISTINCT {})",
    "avgu": "avg(DISTINCT {})",
    "any": "(count({}) > 0)::int4",
}
_OF_NOTHING = {"count": "0", "countu": "0", "any": "0"}


def name(word: str) -> str:
    """A name as SQL takes it."""
    return f'"{word}"' if word in RESERVED else word


class Translator:
    """Translates statements one after another and remembers the range variables.

    values: what $1, $2, ... stand for; a parameter without a value stays as it is.
    """

    def __init__(self, values: Sequence[str | int | float] = ()):
        self.values = values
        self.ranges: dict[str, str] = {}

    def sql(self, statement: tree.Statement) -> str:
        """The statement in SQL; empty for `range of`, which only declares.

        Raises QueryError for what has no meaning, at its place in the text.
        """
        match statement:
            case tree.Range(variable, relation):
                self.ranges[variable] = relation
                return ""
            case tree.Retrieve():
                return self._retrieve(statement)
            case tree.Append():
                return self._append(statement)
            case tree.Replace():
                return self._replace(statement)
            case tree.Delete():
                return self._delete(statement)
            case tree.Create(relation, attributes):
                listed = ", ".join(f"{name(a.name)} {_type(a.type)}" for a in attributes)
                return f"CREATE TABLE {name(relation)} ({listed})"
            case tree.Destroy(relations):
                return f"DROP TABLE {', '.join(map(name, relations))}"
            case tree.DefineIndex(index, relation, method, keys):
                listed = ", ".join(f"{name(key.name)} {key.operators}".rstrip() for key in keys)
                return (
                    f"CREATE INDEX {name(index)} ON {name(relation)} USING {method or 'btree'}"
                    f" ({listed})"
                )
            case tree.Copy():
                listed = (
                    f" ({', '.join(map(name, statement.attributes))})"
                    if statement.attributes
                    else ""
                )
                way = "FROM STDIN" if statement.incoming else "TO STDOUT"
                return (
                    f"COPY {name(statement.relation)}{listed}"
                    f" {way}{' (FORMAT binary)' * statement.binary}"
                )
        return {tree.Begin: "BEGIN", tree.End: "COMMIT", tree.Abort: "ROLLBACK"}[type(statement)]

    def _block(self, node: tree.Query) -> "_Block":
        return _Block(
            self.ranges | {member.variable: member.relation for member in node.ranges}, self.values
        )

    def _retrieve(self, node: tree.Retrieve) -> str:
        block = self._block(node)
        if by := _groups(node):
            select = block.grouped(node.targets, by)
        else:
            select = block.select(
                ", ".join(map(block.target, node.targets)), node.where, distinct=node.unique
            )
        if node.sort:
            keys = ", ".join(f"{name(key.name)}{' DESC' * key.descending}" for key in node.sort)
            select += f" ORDER BY {keys}"
        return f"CREATE TABLE {name(node.into)} AS {select}" if node.into else select

    def _append(self, node: tree.Append) -> str:
        block = self._block(node)
        whole = [isinstance(target, tree.All) for target in node.targets]
        if any(whole) and not all(whole):
            raise QueryError(
                "append takes either whole tuples (variable.all) or single attributes, not both.",
                *node.at,
            )
        named = [target.name for target in node.targets if not isinstance(target, tree.All)]
        columns = f" ({', '.join(map(name, named))})" if named else ""
        values = [block.target(target, named=False) for target in node.targets]
        if not block.variables and node.where is None:
            return f"INSERT INTO {name(node.relation)}{columns} VALUES ({', '.join(values)})"
        return (
            f"INSERT INTO {name(node.relation)}{columns}"
            f" {block.select(', '.join(values), node.where)}"
        )

    def _replace(self, node: tree.Replace) -> str:
        block = self._block(node)
        block.use(node.variable)
        sources = [block.expression(target.expression) for target in node.targets]
        condition = block.expression(node.where) if node.where else ""
        columns = [name(target.name) for target in node.targets]
        update = f"UPDATE {block.relation(node.variable)} SET "
        if not block.joins:
            assigned = ", ".join(f"{column} = {source}" for column, source in zip(columns, sources))
            beside = block.beside(node.variable, "FROM")
            return f"{update}{assigned}{beside}{_where(condition)}"
        # Aggregates with groups can't be joined to the relation that is changed, so the tuples are
        # found first.
        assigned = ", ".join(
            f"{column} = found.value_{number}" for number, column in enumerate(columns, 1)
        )
        listed = ", ".join(
            [
                f"{name(node.variable)}.ctid AS place",
                *(f"{source} AS value_{number}" for number, source in enumerate(sources, 1)),
            ]
        )
        return (
            f"{update}{assigned} FROM ({block.select(listed, node.where)}) AS found WHERE"
            f" {name(node.variable)}.ctid = found.place"
        )

    def _delete(self, node: tree.Delete) -> str:
        block = self._block(node)
        block.use(node.variable)
        condition = block.expression(node.where) if node.where else ""
        delete = f"DELETE FROM {block.relation(node.variable)}"
        if not block.joins:
            beside = block.beside(node.variable, "USING")
            return f"{delete}{beside}{_where(condition)}"
        found = block.select(f"{name(node.variable)}.ctid AS place", node.where)
        return f"{delete} USING ({found}) AS found WHERE {name(node.variable)}.ctid = found.place"


def _where(condition: str) -> str:
    return f" WHERE {condition}" if condition else ""


def _groups(node: tree.Retrieve) -> tuple[tree.Expression, ...]:
    """What to group by, if the retrieve is of groups and their aggregates alone: the join may then
    be left out.
    """
    sources = [
        target.expression if isinstance(target, tree.Assignment) else target
        for target in node.targets
    ]
    aggregates = [source for source in sources if isinstance(source, tree.Aggregate)]
    if not (node.unique and aggregates and node.where is None):
        return ()
    by = aggregates[0].by
    of_the_groups = {
        part.variable for group in by for part in group.nodes() if isinstance(part, tree.Attribute)
    }
    plain = all(
        one.by == by
        and one.where is None
        and all(not isinstance(part, tree.Aggregate) for part in one.argument.nodes())
        and {part.variable for part in one.argument.nodes() if isinstance(part, tree.Attribute)}
        <= of_the_groups
        for one in aggregates
    )
    whole = set(by) <= set(sources) and all(
        source in by for source in sources if source not in aggregates
    )
    return by if plain and whole and of_the_groups else ()


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
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_OPERATORS = {"or": "OR", "and": "AND", "not": "NOT", "!=": "<>", "**": "^"}


def _level(node: tree.Expression) -> int:
    match node:
        case tree.Unary(operator):
            return _LEVEL["not"] if operator == "not" else _LEVEL["sign"]
        case tree.Binary(operator):
            return _LEVEL[operator]
        case tree.Cast():
            return _LEVEL["::"]
    return len(_LEVELS)


class _Block:
    """One query block: writes expressions, with no more parentheses than it takes, and notes the
    variables and joined aggregates that it needs.
    """

    def __init__(self, ranges: dict[str, str], values: Sequence[Any]):
        self.ranges, self.values = ranges, values
        self.variables: list[str] = []
        self.joins: dict[tree.Aggregate, str] = {}
        self.own_groups = False  # whether aggregates are this block's own, behind its GROUP BY

    def use(self, variable: str) -> None:
        if variable not in self.variables:
            self.variables.append(variable)

    def relation(self, variable: str) -> str:
        """The relation with its variable, as it stands behind FROM."""
        relation = self.ranges.get(variable, variable)
        return name(relation) if relation == variable else f"{name(relation)} AS {name(variable)}"

    def beside(self, variable: str, word: str) -> str:
        """FROM or USING with all variables but this one."""
        others = ", ".join(self.relation(other) for other in self.variables if other != variable)
        return f" {word} {others}" if others else ""

    def select(self, listed: str, where: tree.Expression | None, distinct: bool = False) -> str:
        condition = f" WHERE {self.expression(where)}" if where else ""
        tables = (" CROSS JOIN " if self.joins else ", ").join(map(self.relation, self.variables))
        tables = " ".join([tables, *self.joins.values()])
        return (
            "SELECT"
            f" {'DISTINCT ' * distinct}{listed}{f' FROM {tables}' if tables else ''}{condition}"
        )

    def grouped(self, targets: tuple[tree.Target, ...], by: tuple[tree.Expression, ...]) -> str:
        """SELECT ... GROUP BY, of targets that are groups or aggregates over them."""
        self.own_groups = True
        listed = ", ".join(map(self.target, targets))
        return f"{self.select(listed, None)} GROUP BY {', '.join(map(self.expression, by))}"

    def target(self, target: tree.Target, named: bool = True) -> str:
        match target:
            case tree.All(variable):
                self.use(variable)
                return f"{name(variable)}.*"
            case tree.Assignment(label, expression):
                return self.expression(expression) + (f" AS {name(label)}" if named else "")
        return self.expression(target)

    # --- expressions --------------------------------------------------------------------------

    def expression(self, node: tree.Expression) -> str:
        """The text of an expression."""
        match node:
            case tree.Number(text):
                return text
            case tree.String(value):
                return _literal(re.sub(r"\\([*?\[])", r"\1", value))
            case tree.Parameter(number):
                return self.parameter(number)
            case tree.Attribute(variable, attribute):
                self.use(variable)
                return f"{name(variable)}.{name(attribute)}"
            case tree.Unary(operator, operand):
                below = self._below(operand, _level(node))
                return f"NOT {below}" if operator == "not" else f"{operator}{below}"
            case tree.Binary():
                return self.binary(node)
            case tree.Call(function, arguments):
                listed = ", ".join(map(self.expression, arguments))
                return f"{_FUNCTIONS.get(function, name(function))}({listed})"
            case tree.Aggregate():
                return self.aggregate(node)
            case tree.Cast(operand, type):
                return f"{self._below(operand, len(_LEVELS))}::{_type(type)}"

    def parameter(self, number: int) -> str:
        if not 1 <= number <= len(self.values):
            return f"${number}"
        value = self.values[number - 1]
        return _literal(value) if isinstance(value, str) else str(value)

    def binary(self, node: tree.Binary) -> str:
        if node.operator in ("=", "!="):
            for constant, other in ((node.right, node.left), (node.left, node.right)):
                if isinstance(constant, tree.String) and _PATTERN.search(constant.value):
                    return (
                        f"{self._below(other, _LEVEL['+'])} {'~' if node.operator == '=' else '!~'}"
                        f" {_literal(_regex(constant.value))}"
                    )
        # Operators group from the left, except ** and comparisons, which don't group at all.
        level, power = _level(node), node.operator == "**"
        left = self._below(node.left, level + (power or level == _LEVEL["="]))
        right = self._below(node.right, level + (not power))
        return f"{left} {_OPERATORS.get(node.operator, node.operator)} {right}"

    def _below(self, node: tree.Expression, least: int) -> str:
        """The operand, in parentheses if it binds less than `least`."""
        # In SQL a sign binds more strongly than ^, which groups from the left, and two signs begin
        # a comment.
        least = _LEVEL["::"] if least in (_LEVEL["sign"], _LEVEL["**"]) else least
        text = self.expression(node)
        return text if _level(node) >= least else f"({text})"

    def aggregate(self, node: tree.Aggregate) -> str:
        inner = self if self.own_groups else _Block(self.ranges, self.values)
        value = _AGGREGATES.get(node.function, f"{node.function}({{}})").format(
            inner.expression(node.argument)
        )
        if self.own_groups:
            return value
        if not node.by:
            return f"({inner.select(value, node.where)})"
        if node not in self.joins:
            self._join(node, inner, value)
        value = f"aggregate_{[*self.joins].index(node) + 1}.value"
        return (
            f"coalesce({value}, {_OF_NOTHING[node.function]})"
            if node.function in _OF_NOTHING
            else value
        )

    def _join(self, node: tree.Aggregate, inner: "_Block", value: str) -> None:
        groups = [inner.expression(by) for by in node.by]
        if not all(any(isinstance(part, tree.Attribute) for part in by.nodes()) for by in node.by):
            raise QueryError("An expression after by must have an attribute in it.", *node.at)
        here = [self.expression(by) for by in node.by]
        numbers = range(1, len(groups) + 1)
        listed = ", ".join(
            [
                *(f"{group} AS by_{number}" for number, group in zip(numbers, groups)),
                f"{value} AS value",
            ]
        )
        select = f"{inner.select(listed, node.where)} GROUP BY {', '.join(map(str, numbers))}"
        label = f"aggregate_{len(self.joins) + 1}"
        links = " AND ".join(
            f"{label}.by_{number} = {outer}" for number, outer in zip(numbers, here)
        )
        self.joins[node] = f"LEFT JOIN ({select}) AS {label} ON {links}"


_PATTERN = re.compile(r"(?<!\\)[*?\[]")


def _regex(pattern: str) -> str:
    """An INGRES pattern as a regular expression for the whole text."""
    parts = re.findall(r"\\[*?\[]|\[[^\]]*\]|.", pattern, flags=re.DOTALL)
    known = {"*": ".*", "?": "."}
    return (
        "^"
        + "".join(known.get(part) or (part if len(part) > 1 else re.escape(part)) for part in parts)
        + "$"
    )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _type(node: tree.Type) -> str:
    fixed = re.fullmatch(r"c(?:har)?(\d+)", node.name)
    word = f"char({fixed[1]})" if fixed else _TYPES.get(node.name, node.name)
    return f"{word}{'' if node.length is None else f'({node.length})'}{node.array}"
