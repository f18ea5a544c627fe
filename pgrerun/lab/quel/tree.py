"""QUEL statements as trees: what the reader makes, and what is translated or interpreted.

Names are in lower case. `at` is (line, column) in the text, counted from 1; trees that
differ only there are equal. `pgrerun.lab.ingres` interprets these trees, `sql.py` translates them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

Position = tuple[int, int]
_NOWHERE: Position = (1, 1)


@dataclass(frozen=True)
class Node:
    """Anything that stands in the text."""

    at: Position = field(default=_NOWHERE, compare=False, repr=False, kw_only=True)

    def nodes(self) -> Iterator["Node"]:
        """This node and all below, in the order of the text."""
        yield self
        for part in fields(self):
            value = getattr(self, part.name)
            for child in value if isinstance(value, tuple) else (value,):
                if isinstance(child, Node):
                    yield from child.nodes()


# ---- expressions


@dataclass(frozen=True)
class Number(Node):
    """A numeric constant, as written."""

    text: str


@dataclass(frozen=True)
class String(Node):
    """A text constant; a backslash before * ? [ is kept, as these match patterns without it."""

    value: str


@dataclass(frozen=True)
class Parameter(Node):
    """$1, $2, ...: to be replaced by a value."""

    number: int


@dataclass(frozen=True)
class Attribute(Node):
    """variable.name; the variable is a range variable, or in POSTQUEL also a relation."""

    variable: str
    name: str


@dataclass(frozen=True)
class Unary(Node):
    """operator: "-", "+" or "not"."""

    operator: str
    operand: "Expression"


@dataclass(frozen=True)
class Binary(Node):
    """operator: "or", "and", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/" or "**"."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Call(Node):
    """function(arguments) of one tuple's values."""

    function: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True)
class Aggregate(Node):
    """function(argument by groups where condition) over all tuples that its variables range over.

    Without `by` its variables are its own. With `by` it has a value for each group, and the
    variables in `by` link it to the query around it.
    """

    function: str
    argument: "Expression"
    by: tuple["Expression", ...] = ()
    where: "Expression | None" = None


@dataclass(frozen=True)
class Type(Node):
    """A type's name with its length, if it has one, and dimension ("", "[]" or "[7]")."""

    name: str
    length: int | None = None
    array: str = ""


@dataclass(frozen=True)
class Cast(Node):
    """operand::type"""

    operand: "Expression"
    type: Type


Expression = Number | String | Parameter | Attribute | Unary | Binary | Call | Aggregate | Cast


# ---- targets


@dataclass(frozen=True)
class Assignment(Node):
    """name = expression"""

    name: str
    expression: Expression


@dataclass(frozen=True)
class All(Node):
    """variable.all"""

    variable: str


Target = Assignment | Attribute | All


# ---- statements


@dataclass(frozen=True)
class Range(Node):
    """range of variable is relation: holds until the variable is declared again."""

    variable: str
    relation: str


@dataclass(frozen=True)
class SortKey(Node):
    """An attribute of the result; descending or not."""

    name: str
    descending: bool = False


@dataclass(frozen=True)
class Retrieve(Node):
    """retrieve [unique] [into relation] (targets) [from ranges] [where condition] [sort by keys]"""

    targets: tuple[Target, ...]
    into: str = ""
    unique: bool = False
    ranges: tuple[Range, ...] = ()
    where: Expression | None = None
    sort: tuple[SortKey, ...] = ()


@dataclass(frozen=True)
class Append(Node):
    """append [to] relation (targets) [from ranges] [where condition]"""

    relation: str
    targets: tuple[Target, ...]
    ranges: tuple[Range, ...] = ()
    where: Expression | None = None


@dataclass(frozen=True)
class Replace(Node):
    """replace variable (targets) [from ranges] [where condition]"""

    variable: str
    targets: tuple[Assignment, ...]
    ranges: tuple[Range, ...] = ()
    where: Expression | None = None


@dataclass(frozen=True)
class Delete(Node):
    """delete variable [from ranges] [where condition]"""

    variable: str
    ranges: tuple[Range, ...] = ()
    where: Expression | None = None


@dataclass(frozen=True)
class Declaration(Node):
    """An attribute of a relation to be created."""

    name: str
    type: Type


@dataclass(frozen=True)
class Create(Node):
    """create relation (attributes)"""

    relation: str
    attributes: tuple[Declaration, ...]


@dataclass(frozen=True)
class Destroy(Node):
    """destroy relations"""

    relations: tuple[str, ...]


@dataclass(frozen=True)
class Key(Node):
    """An attribute of an index, with its operator class, if one is named."""

    name: str
    operators: str = ""


@dataclass(frozen=True)
class DefineIndex(Node):
    """define index name on relation using method (keys); INGRES's "index on ... is ..." has method
    "".
    """

    name: str
    relation: str
    method: str
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Copy(Node):
    """copy [binary] relation (attributes) from|to "file"; no attributes: all of them."""

    relation: str
    attributes: tuple[str, ...]
    incoming: bool
    file: str
    binary: bool = False


@dataclass(frozen=True)
class Begin(Node):
    """begin: of a transaction."""


@dataclass(frozen=True)
class End(Node):
    """end: commit."""


@dataclass(frozen=True)
class Abort(Node):
    """abort: roll back."""


Query = Retrieve | Append | Replace | Delete
Statement = (
    Range
    | Retrieve
    | Append
    | Replace
    | Delete
    | Create
    | Destroy
    | DefineIndex
    | Copy
    | Begin
    | End
    | Abort
)
