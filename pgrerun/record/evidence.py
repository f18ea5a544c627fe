"""What the rows of experiments say about a claim: expressions and queries, and their values.

A chapter's `evidence.toml` has an entry for each claim that is tested here:

    [hot-001]
    evidence = "throughput.tps[variant='HOT'] / throughput.tps[variant='no HOT']"
    regime."waiting for pages" = "throughput.waiting[variant='no HOT']"
    noise = "throughput.tps[variant='HOT, again'] / throughput.tps[variant='HOT']"
    beside."in instructions" = "counted.instructions[variant='HOT'] / ..."

    [hot-013]
    evidence."tellers" = "..."           # a claim that prints several sizes: one for each

    [hot-005]
    facts."it waits for pages" = "pools.reads > 0"
    supporting."it writes as well" = "pools.written > 0"

and `claims/ID.sql` holds a query with a fact a row, for what is counted or observed: columns `fact`
(a sentence), `so` (true, false, or NULL where it is unresolved), and where wanted `essential`
(default true) and `opposite`; or `part`, `value` and `essential` for numbers, with `low` and `high`
where what was counted leaves a number open between these; or `still_there` for a bug. A query
without a row sets its claim aside, and nothing is told as found: the machine is another than the
claim's, or this run lacks the sizes that it asks for.

An expression is arithmetic over TABLE.METRIC[CONDITION, ...] (SQL conditions on the table's rows),
numbers, cells `printed.TABLE.ROW.COLUMN` of what documents print, and `min`, `max`, `sum`,
`median`, `geomean` (the geometric mean) and `count` over rows. What was repeated in blocks is
paired by block and gives an interval; what was counted once is exact. `A < B` and `A > B` are
facts: yes, no, or unresolved where the interval can't tell. `about(A, B, SHARE)` is whether A is
within that share of B, `every(FACT, ...)` whether all of them are so: one no is no, whatever the
others are; `some(FACT, ...)` whether one is so: one yes is yes; `alike(FACT, ...)` is what they all
are, and unresolved where they differ. `None` in the place of a fact is one that nobody can tell
here: `some(FACT, None)` is yes or unresolved, `every(FACT, None)` no or unresolved.
"""

import ast
import math
import operator
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from pgrerun.errors import BookError, CannotMeasure
from pgrerun.record import claims, statistics, verdicts
from pgrerun.record.database import Database, NotMeasured
from pgrerun.record.statistics import Interval, Sample
from pgrerun.record.verdicts import Part

_REFERENCE = re.compile(r"\b(?!printed\b)([a-z]\w*)\.([A-Za-z]\w*)(?:\[([^\]]*)\])?")
_PRINTED = re.compile(r"\bprinted\.(\w+)\.(\w+)\.(\w+)")
_EXACT: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
    ast.NotEq: operator.ne,
}


_OVER_ROWS: Mapping[str, str | Callable[["pd.Series[float]"], float]] = {
    **{name: name for name in ("min", "max", "sum", "median", "count")},
    "geomean": lambda values: float(np.exp(np.log(values.astype(float)).mean())),
}
_OVER_FACTS = {"every": verdicts.every, "some": verdicts.some, "alike": verdicts.alike}
Value = float | Sample


class NoRows(BookError):
    """An experiment ran, and has none of the rows that a query or a reference asks for."""


@dataclass(frozen=True)
class Rule:
    """How a claim is judged, beside what the ledger says; see the module's docstring."""

    claim: str
    evidence: Mapping[str, str] = field(default_factory=dict)  # by part; "" for an only one
    supporting_evidence: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    supporting: Mapping[str, str] = field(default_factory=dict)
    opposite: Mapping[str, str] = field(default_factory=dict)
    regime: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    noise: str = ""  # the ratio of the run's A/A comparison
    note: str = ""
    query: str = ""

    @property
    def tests(self) -> bool:
        """Whether there is anything to judge by."""
        return bool(self.evidence or self.facts or self.query)

    def texts(self) -> Iterator[str]:
        """All expressions and queries, for what they refer to."""
        for many in (
            self.evidence,
            self.supporting_evidence,
            self.facts,
            self.supporting,
            self.opposite,
            self.regime,
            self.beside,
        ):
            for text in many.values():
                yield from text.values() if isinstance(text, Mapping) else [text]
        yield from filter(None, (self.noise, self.query))

    def text(self) -> str:
        """What a reader is shown: the query, or the expressions by what they are for."""
        lines = [self.query] if self.query else []
        for name, text in self.evidence.items():
            lines.append(f"{name}: {text}" if name else text)
        lines += [f"{fact}: {text}" for fact, text in {**self.facts, **self.supporting}.items()]
        lines += [f"regime, {name}: {text}" for name, text in self.regime.items()]
        lines += [f"noise: {self.noise}"] if self.noise else []
        for name, given in self.beside.items():
            each = given.items() if isinstance(given, Mapping) else [("", given)]
            lines += [f"beside, {name}{part and f', {part}'}: {one}" for part, one in each]
        return "\n".join(lines)


@cache
def rules(folder: Path) -> Mapping[str, Rule]:
    """The rules of the chapter in `folder` by claim; BookError where one can't be used."""
    file = folder / "evidence.toml"
    queries = {
        path.stem: path.read_text("utf-8").strip() for path in sorted(folder.glob("claims/*.sql"))
    }
    try:
        given = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
        found = {
            claim: _rule(claim, dict(given.get(claim, {})), queries.get(claim, ""))
            for claim in sorted({*given, *queries})
        }
    except (OSError, tomllib.TOMLDecodeError, TypeError) as error:
        raise BookError(f"{file} can't be used: {error}") from None
    return MappingProxyType(found)


def _rule(claim: str, given: dict[str, Any], query: str) -> Rule:
    evidence = given.pop("evidence", {})
    evidence = {"": evidence} if isinstance(evidence, str) else evidence
    return Rule(claim, evidence, query=query, **given)


def tables_of(rule: Rule, database: Database) -> set[str]:
    """The experiments whose rows a rule looks at."""
    return {name for text in rule.texts() for name in experiments_in(text, database)}


def is_query(text: str) -> bool:
    """Whether what stands for a value is a query and not an expression."""
    return bool(re.match(r"(?i)\s*(--|(select|with|from)\b)", text))


def experiments_in(text: str, database: Database) -> set[str]:
    """The experiments that an expression or a query refers to."""
    if is_query(text):
        return database.tables_in(text)
    return {name for name, _, _ in _REFERENCE.findall(_PRINTED.sub("0", text))}


def evaluate(database: Database, expression: str, seed: int = 0) -> Interval | bool | str | None:
    """The value of an expression: an interval, exact where nothing was repeated, or a fact.

    Of a query it is the first row's first value, which may be a text. BookError for an expression
    that can't be read; `NotMeasured` where a table has no rows.
    """
    if is_query(expression):
        found = database.query(expression)
        if found.empty:
            raise NoRows(f"A query for a value gave no rows: {expression}")
        value = found.iloc[0, 0]
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, str | bool):
            return value
        return None if pd.isna(value) else interval(float(value))
    given = _Expression(database, expression).value()
    return given if given is None or isinstance(given, bool) else interval(given, seed)


def interval(value: Value | tuple[Sample, Sample], seed: int = 0) -> Interval:
    """The interval of a number, of a sample (its median), or of paired samples (their ratio)."""
    if isinstance(value, tuple):
        disks = sorted({one.disk for one in value} - {""})
        return statistics.on_disk(statistics.ratio(*value, seed=seed), " and ".join(disks))
    if isinstance(value, Sample):
        return statistics.on_disk(statistics.median(value, seed=seed), value.disk)
    return statistics.exact(value) if math.isfinite(value) else statistics.nothing()


def _called(tree: ast.expr) -> str:
    """The name of the function that is called, "" where none is."""
    return getattr(tree.func, "id", "") if isinstance(tree, ast.Call) else ""


class _Expression:
    """One expression, whose references are replaced by names before Python reads it."""

    def __init__(self, database: Database, text: str):
        self.database, self.text = database, text
        self.values: dict[str, tuple[str, str, str]] = {}
        plain = _PRINTED.sub(lambda cell: repr(claims.evaluate(".".join(cell.groups()))), text)
        plain = _REFERENCE.sub(self._reference, plain)
        try:
            self.tree = ast.parse(plain.strip(), mode="eval").body
        except SyntaxError as error:
            raise BookError(f"The expression {text!r} can't be read: {error.msg}.") from None

    def _reference(self, found: re.Match[str]) -> str:
        name = f"_{len(self.values)}"
        self.values[name] = (found[1], found[2], found[3] or "")
        return name

    def value(self) -> Value | tuple[Sample, Sample] | bool | None:
        """Its value; of a quotient of samples both, as a ratio is taken pair by pair."""
        tree = self.tree
        if isinstance(tree, ast.Compare) or _called(tree) in ("about", *_OVER_FACTS):
            return self._fact(tree)
        return self._quotient(tree)

    def _fact(self, tree: ast.expr) -> bool | None:
        if isinstance(tree, ast.Call) and (several := _OVER_FACTS.get(_called(tree))):
            return several([self._fact(one) for one in tree.args])
        if isinstance(tree, ast.Constant) and tree.value is None:
            return None
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            return self._compared(tree)
        if isinstance(tree, ast.Call) and _called(tree) == "about":
            x, size, share = map(self._number, tree.args)
            assert isinstance(size, float) and isinstance(share, float)
            return verdicts.about(interval(x), size, share)
        raise BookError(f"In the expression {self.text!r} {ast.unparse(tree)!r} is no fact.")

    def _quotient(self, tree: ast.expr) -> Value | tuple[Sample, Sample]:
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div):
            left, right = self._number(tree.left), self._number(tree.right)
            if isinstance(left, Sample) and isinstance(right, Sample):
                one, other = left.values.align(right.values, join="inner")
                if len(one) == 0:
                    raise BookError(f"{self.text!r} compares what has no block in common.")
                share = min(left.share, right.share)
                return Sample(one, share, left.disk), Sample(other, share, right.disk)
        return self._number(tree)

    def _compared(self, tree: ast.Compare) -> bool | None:
        left, right = self._quotient(tree.left), self._quotient(tree.comparators[0])
        if isinstance(left, float) and isinstance(right, float):
            return bool(_EXACT[type(tree.ops[0])](left, right))
        if isinstance(left, Sample) and isinstance(right, Sample):  # by the ratio of each pair
            left, right = (left, right), 1.0
        if isinstance(left, float):
            raise BookError(f"{self.text!r}: what was measured stands on the left.")
        bound = interval(right).estimate if not isinstance(right, float) else right
        if isinstance(tree.ops[0], ast.Gt):
            return verdicts.greater(interval(left), bound)
        if isinstance(tree.ops[0], ast.Lt):
            return verdicts.less(interval(left), bound)
        raise BookError(f"{self.text!r}: intervals are compared by < and >.")

    def _number(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name) if name in self.values:
                return self._rows(*self.values[name], over="")
            case ast.Call(func=ast.Name(id=over), args=[ast.Name(id=name)]) if (
                over in _OVER_ROWS and name in self.values
            ):
                return self._rows(*self.values[name], over=over)
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return float(number)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self._arithmetic(operator.sub, 0.0, self._number(inner))
            case ast.Call(func=ast.Name(id="min" | "max" as over), args=[first, second]):
                pick = {"min": np.minimum, "max": np.maximum}[over]
                return self._arithmetic(pick, self._number(first), self._number(second))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in claims.OPERATORS:
                both = self._number(left), self._number(right)
                return self._arithmetic(claims.OPERATORS[type(op)], *both)
        raise BookError(f"In the expression {self.text!r} {ast.unparse(node)!r} can't be used.")

    def _arithmetic(self, how: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
        try:
            if isinstance(left, Sample):
                return left.combined(right, how)
            if isinstance(right, Sample):
                return right.combined(left, lambda x, y: how(y, x))
            return float(how(left, right))
        except ZeroDivisionError:
            return math.nan
        except ValueError as error:
            raise BookError(f"{self.text!r}: {error}.") from None

    def _rows(self, table: str, metric: str, condition: str, over: str) -> Value:
        """The values that a reference stands for: a sample by block, or one number."""
        found = self.database.metric(table, metric, condition)
        if found.empty:
            raise NoRows(f"{self.text!r}: no row of {table} has {condition or 'any value'}.")
        if found["block"].notna().all():
            grouped = found.groupby("block")["value"]
            if not over and (grouped.size() > 1).any():
                raise BookError(
                    f"{self.text!r}: {table}.{metric}[{condition}] has several rows of a block."
                )
            values = grouped.agg(_OVER_ROWS[over]) if over else grouped.first()
            disks = " and ".join(sorted(set(found["disk"].dropna()) - {""}))
            return Sample(values.astype(float), float(found["alpha"].min()), disks)
        if over:
            return float(found["value"].agg(_OVER_ROWS[over]))
        if len(found) > 1:
            raise BookError(f"{self.text!r}: {table}.{metric}[{condition}] has {len(found)} rows.")
        return float(found["value"].iloc[0])


def judge(
    judge_: verdicts.Judge,
    rule: Rule,
    database: Database,
    aside: Mapping[str, CannotMeasure],
    measured: Mapping[str, Any],
    seed: int = 0,
) -> verdicts.Judgement:
    """Judge a claim by its rule; set it aside if an experiment that it looks at was.

    `aside` are reasons by experiment, `measured` regimes that need no rows (processors).
    """
    others = dict(beside(rule, database, seed))
    reason = next((aside[name] for name in sorted(needed(rule, database)) if name in aside), None)
    if reason is None:
        try:
            found = _found(rule, database, seed)
            regime: dict[str, Any] = {
                name: evaluate(database, text, seed) for name, text in rule.regime.items()
            }
            noise = evaluate(database, rule.noise, seed) if rule.noise else None
        except NotMeasured as missing:
            reason = CannotMeasure(missing.table, str(missing))
        except NoRows:
            elsewhere = judge_.without_evidence(rule.claim, measured, rule.note, beside=others)
            if elsewhere is not None:
                return elsewhere
            reason = _without_rows(judge_.claim(rule.claim))
    if reason is not None:
        return judge_.set_aside(rule.claim, reason, beside=others)
    return judge_.judge(
        rule.claim,
        found,
        rule.note,
        beside=others,
        regime={**measured, **regime},
        noise=statistics.NoiseFloor(noise) if isinstance(noise, Interval) else None,
    )


def _without_rows(claim: claims.Claim) -> CannotMeasure:
    """Why an experiment that ran has none of the rows that a claim asks for.

    Where it asks for a size it is that: without a build the experiment would be set aside.
    """
    sizes = [one for one in claim.capabilities if claims.parameter(one)]
    builds = [one for one in claim.capabilities if claims.is_build(one)]
    if sizes or not builds:
        why = "this run has no rows of the sizes that the claim asks for"
        return CannotMeasure(sizes[0] if sizes else "larger relations", why)
    return CannotMeasure(
        builds[0],
        f"it takes {' and '.join(builds)}, and this run didn't have each of them: `pgrerun"
        " releases` says what has to be compiled, and `pgrerun releases add NAME FOLDER`"
        " registers it",
    )


def needed(rule: Rule, database: Database) -> set[str]:
    """The experiments without which a claim can't be judged: what stands beside needs none."""
    return tables_of(Rule(**{**vars(rule), "beside": {}}), database)


def beside(rule: Rule, database: Database, seed: int) -> Iterator[tuple[str, Any]]:
    """What stands beside a verdict: one value, or one for each part."""
    for words, text in rule.beside.items():
        try:
            value: Any = (
                evaluate(database, text, seed)
                if isinstance(text, str)
                else {name: evaluate(database, part, seed) for name, part in text.items()}
            )
        except (NotMeasured, NoRows, CannotMeasure):
            continue
        # a fact by itself is a claim's evidence of one part
        yield words, {words: value} if isinstance(value, bool) or value is None else value


def _found(rule: Rule, database: Database, seed: int) -> Any:
    parts: dict[str, Any] = _queried(rule.query, database) if rule.query else {}
    if set(parts) == {"still_there"}:
        return parts["still_there"]
    value: Callable[[str], Any] = lambda text: evaluate(database, text, seed)
    parts |= {name: value(text) for name, text in {**rule.evidence, **rule.facts}.items()}
    for name, text in rule.opposite.items():
        parts[name] = Part(parts[name], opposite=value(text))
    for name, text in {**rule.supporting_evidence, **rule.supporting}.items():
        parts[name] = Part(value(text), essential=False)
    return parts[""] if set(parts) == {""} else parts


_ENDS = ("value", "low", "high")


def _queried(query: str, database: Database) -> dict[str, Any]:
    """Facts, parts or a bug, from the rows of a query."""
    found = database.query(query)
    if found.empty:
        raise NoRows(f"A claim's query gave no rows: {query}")
    if "still_there" in found:
        return {"still_there": _truth(found["still_there"].iloc[0])}
    parts: dict[str, Any] = {}
    for row in found.to_dict("records"):
        essential = bool(row.get("essential", True))
        if "fact" in row:
            opposite = _truth(row["opposite"]) if "opposite" in row else None
            parts[str(row["fact"])] = Part(_truth(row["so"]), essential, opposite)
        else:
            value = statistics.read_off(*(float(row.get(end, row["value"])) for end in _ENDS))
            name = "" if row.get("part") is None else str(row["part"])
            parts[name] = value if essential else Part(value, essential=False)
    return parts


def _truth(value: Any) -> bool | None:
    return None if value is None or pd.isna(value) else bool(value)
