"""Charts and sentences that a chapter declares: charts.toml and findings.toml.

charts.toml has a table per chart, whose name is its anchor:

    [uuid-keys]
    form = "compare"              # compare, lines, stacked, observations, scatter
    query = "SELECT ..."          # over this chapter's experiments; asked of the published run and
                                  # of the reader's, each drawn with its own mark
    printed = "SELECT ..."        # over printed.*, drawn as what the document prints
    simulated = "SELECT ..."      # over an experiment that is a model
    question = "..."              # the title where the outcome is open
    claim = "uuidkeys-001"        # whose word chooses among titles
    titles.holds = "..."          # what the chart then shows, with {values}
    outcome = "..."               # without a claim: the expression whose value chooses among titles
    titles.yes = "..."            # ("yes", "no" or "undecided" of a comparison, or a query's text)
    titles.found = "..."          # with neither: the same title for whatever was found
    shows = "..."                 # caption: first what it shows, with {values}
    how = "..."                   # then how that was measured
    values.index = "..."          # expressions for the {values}; see `record.evidence`
    axis = { quantity = "...", unit = "pages", zero = true }
    x_axis = { ... }              # of lines and scatter
    reference = { value = 1, label = "no difference" }
    as_measured = true            # places in the query's order, not in that of what is printed

A query gives `label` and `value` (compare, stacked, observations), or `x` and `value` (lines,
scatter), and where wanted `panel`, `series`, `part` (stacked), `base` (what the value is divided by
in each block), `block` and `alpha`. Rows with a block are drawn as their median (with `base` that
of the paired ratios) and its interval, rows without one as they are.

findings.toml has for claims, and for findings that belong to none, a sentence for each outcome:

    [uuidkeys-001]
    holds = "Random keys make the index {found} times as large."
    values.found = "..."          # `found` and `printed` of a claim are there without being named

    [what-it-costs]
    text = "..."
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pgrerun.errors import BookError
from pgrerun.page import charts, narrate
from pgrerun.record import evidence, statistics
from pgrerun.record.database import Database, NotMeasured
from pgrerun.record.statistics import Interval, Sample
from pgrerun.record.verdicts import Judgement

_PLACES = ("panel", "series", "label", "x", "part")
Values = Callable[[str], Any]


class Chart(BaseModel):
    """One entry of charts.toml; see the module's docstring."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    form: str = Field(pattern="^(compare|lines|stacked|observations|scatter)$")
    query: str = ""
    printed: str = ""
    simulated: str = ""
    question: str = Field(min_length=1)
    claim: str = ""
    outcome: str = ""
    titles: dict[str, str] = {}
    shows: str = ""
    how: str = Field("", pattern="^[^{}]*$")  # the same for every run: values are shown, not told
    values: dict[str, str] = {}
    axis: charts.Axis
    x_axis: charts.Axis = charts.Axis()
    reference: charts.Reference | None = None
    own_scales: bool = False
    joined: bool = False
    keyed: bool = False
    as_measured: bool = False

    def figure(
        self, database: Database, word: Callable[[str], str], seed: int = 0
    ) -> charts.Figure:
        """The chart over the published run, the run of the database, and what is printed.

        `word` gives the verdict of a claim. NotMeasured where neither run has the rows.
        """
        frame = self.frame(database, seed)
        values = filled(
            self.values | ({"outcome": self.outcome} if self.outcome else {}),
            lambda text: evidence.evaluate(database, text, seed),
        )
        default = "" if self.outcome else "found"
        chosen = word(self.claim) if self.claim else values.get("outcome", default)
        shows = said(self.shows, values)
        words = charts.Words(
            said(self.titles.get(chosen.replace(" ", "_"), ""), values) or self.question,
            " ".join(filter(None, [shows, self.how])) or self.question,
            self.name,
        )
        match self.form:
            case "compare":
                return charts.compare(
                    frame,
                    words,
                    self.axis,
                    reference=self.reference,
                    own_scales=self.own_scales,
                    joined=self.joined,
                )
            case "lines":
                return charts.lines(
                    frame,
                    words,
                    self.x_axis,
                    self.axis,
                    own_scales=self.own_scales,
                    reference=self.reference,
                    keyed=self.keyed,
                )
            case "stacked":
                frame = _told_apart(frame)
                return charts.stacked(frame, words, self.axis, reference=self.reference)
            case "scatter":
                return charts.scatter(frame, words, self.x_axis, self.axis)
            case _:
                return charts.observations(frame, words, self.axis)

    def frame(self, database: Database, seed: int = 0) -> pd.DataFrame:
        """The chart's rows of every provenance, with their intervals."""
        parts = []
        if self.printed:
            parts.append(self._summed(database.query(self.printed), "printed", seed))
        if self.query:
            measured = self._measured(database, seed)
            parts = [*measured, *parts] if self.as_measured else [*parts, *measured]
        if self.simulated:
            parts.append(self._summed(database.latest(self.simulated)[0], "simulated", seed))
        if self.query and not any(
            part["kind"].iloc[0] not in ("printed", "simulated") for part in parts if len(part)
        ):
            database.query(self.query)  # which says what is missing
        found = [part for part in parts if len(part)]
        return pd.concat(found, ignore_index=True)

    def _measured(self, database: Database, seed: int) -> list[pd.DataFrame]:
        """The rows of the published run and of this one, those of a slowed disk apart."""
        found = []
        runs = [("published", "published", "published-slowed"), ("run", "measured", "slowed")]
        for run, kind, on_slow_disk in runs:
            try:
                queried = database.query(self.query, run)
            except NotMeasured:
                continue
            slow = any(
                len(database.query(f"FROM {table} WHERE disk <> '' LIMIT 1", run))
                for table in database.tables_in(self.query)
            )
            if len(queried):
                found.append((queried, on_slow_disk if slow else kind))
        if len(found) == 2 and _without_order(found[0][0]) == _without_order(found[1][0]):
            del found[0]  # the page of the published run itself
        return [self._summed(queried, kind, seed) for queried, kind in found]

    def _summed(self, queried: pd.DataFrame, kind: str, seed: int) -> pd.DataFrame:
        """Rows of one kind, with the median and its interval of what was repeated."""
        if self.form == "observations":
            return queried.assign(kind=kind)
        places = [name for name in _PLACES if name in queried]
        if "block" not in queried:
            return _exact(queried, places).assign(kind=kind)
        once, blocks = queried["block"].isna(), queried["block"].notna()
        parts = [_exact(queried[once], places).assign(kind=kind)]
        found = []
        for at, group in queried[blocks].groupby(places, sort=False, dropna=False):
            value = _of_sample(group.dropna(subset=["value"]), seed)
            place = dict(zip(places, at))
            found.append(
                {
                    **place,
                    "kind": kind,
                    "value": value.estimate,
                    "low": value.low,
                    "high": value.high,
                }
            )
        return pd.concat([*parts, pd.DataFrame(found)], ignore_index=True)


def _without_order(queried: pd.DataFrame) -> list[tuple[object, ...]]:
    """The rows as texts: DuckDB's threads give rows, and add floats, in one order or another."""
    rows = queried.itertuples(index=False, name=None)
    return sorted(
        tuple(f"{v:.9g}" if isinstance(v, float) else str(v) for v in row) for row in rows
    )


def _exact(queried: pd.DataFrame, places: list[str]) -> pd.DataFrame:
    """What wasn't repeated: its value, divided by its base where it has one."""
    kept = queried.dropna(subset=["value"])
    value = kept["value"].astype(float)
    if "base" in kept:
        value = value / kept["base"].astype(float).fillna(1)
    ends = kept[[name for name in ("low", "high") if name in kept]]
    return pd.concat([kept[places], value.rename("value"), ends], axis=1)


def _told_apart(frame: pd.DataFrame) -> pd.DataFrame:
    """Bars of one label and several kinds by labels of their own: a bar has one kind."""
    if frame["kind"].nunique() == 1:
        return frame
    names = frame["kind"].map(narrate.KINDS).str.lower()
    return frame.assign(label=frame["label"] + ", " + names)


def _of_sample(group: pd.DataFrame, seed: int) -> Interval:
    share = float(group["alpha"].min()) if "alpha" in group else 1.0
    by_block = group.set_index("block").sort_index()
    value = Sample(by_block["value"].astype(float), share)
    if "base" in group:
        return statistics.ratio(value, Sample(by_block["base"].astype(float), share), seed=seed)
    return statistics.median(value, seed=seed)


@cache
def charts_of(folder: Path) -> Mapping[str, Chart]:
    """The charts that the chapter in `folder` declares; BookError where one can't be used."""
    file = folder / "charts.toml"
    try:
        given = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
        found = {name: Chart(name=name, **entry) for name, entry in given.items()}
    except (OSError, TypeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise BookError(f"{file} can't be used: {error}") from None
    return MappingProxyType(found)


@dataclass(frozen=True)
class Findings:
    """The sentences of a chapter's findings.toml."""

    entries: Mapping[str, Mapping[str, Any]]

    def sentence(self, j: Judgement, value: Values) -> str:
        """The author's sentence for the outcome of a claim; "" where there is none."""
        entry = self.entries.get(j.claim.id, {})
        text = str(entry.get(str(j.verdict).replace(" ", "_"), ""))
        own = {"found": narrate.evidence(j), "printed": narrate.printed_value(j.claim)}
        return said(text, own | filled(entry.get("values", {}), value))

    def told(self, name: str, value: Values) -> str:
        """A finding that belongs to no claim; "" where a value of it wasn't measured."""
        if name not in self.entries:
            raise BookError(f"findings.toml has no {name!r}; it has {', '.join(self.entries)}.")
        entry = self.entries[name]
        return said(str(entry["text"]), filled(entry.get("values", {}), value))

    def experiments(self, names: Sequence[str], database: Database) -> set[str]:
        """The experiments whose rows findings' values are of."""
        entries = [self.entries.get(name, {}).get("values", {}) for name in names]
        texts = [text.partition(" | ")[0] for values in entries for text in values.values()]
        return {one for text in texts for one in evidence.experiments_in(text, database)}


@cache
def findings_of(folder: Path) -> Findings:
    """The sentences that the chapter in `folder` declares."""
    file = folder / "findings.toml"
    try:
        return Findings(tomllib.loads(file.read_text("utf-8")) if file.exists() else {})
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BookError(f"{file} can't be used: {error}") from None


def filled(values: Mapping[str, str], value: Values) -> dict[str, str]:
    """Values in the form in which prose has them, without those that weren't measured or found.

    An expression may say its form: "expression | percent", "| count rows", "| unit".
    """
    found = {}
    for name, text in values.items():
        expression, _, form = text.partition(" | ")
        try:
            number = value(expression)
        except (NotMeasured, evidence.NoRows):
            continue
        if isinstance(number, Interval) and _tells_nothing(number):
            continue
        if number is None and evidence.is_query(expression):  # an aggregate over no rows
            continue
        found[name] = _formed(number, form.strip())
    return found


def _tells_nothing(value: Interval) -> bool:
    """Whether it may be anything: a ratio to what may be nothing, or measured while disturbed.

    A single pair, as at profile ci, is told with its endless interval: it is to be seen to work.
    """
    endless = value.n != 1 and math.isfinite(value.low) and math.isinf(value.high)
    return endless or not math.isfinite(value.estimate)


def _formed(number: Any, form: str) -> str:
    if isinstance(number, str):
        return number
    if isinstance(number, bool) or number is None:
        return {True: "yes", False: "no", None: "undecided"}[number]
    if form == "percent":
        if number.exact:
            return narrate.percent(number.estimate)
        return str(narrate.interval(number.times(100), "%"))
    if form == "rounded":  # without an interval, for a headline
        return str(narrate.number(float(f"{number.estimate:.2g}")))
    if form.startswith("count "):
        return str(narrate.count(number.estimate, form.removeprefix("count ")))
    return str(narrate.interval(number, form))


def said(text: str, values: Mapping[str, str]) -> str:
    """A sentence with its values; "" where one of them is missing."""
    try:
        return text.format(**values)
    except KeyError:
        return ""
    except (IndexError, ValueError) as error:
        raise BookError(f"The sentence {text!r} can't be filled in: {error}.") from None
