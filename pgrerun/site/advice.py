"""What the book's own pages tell a reader of the record: findings, and what to do about them.

`book/findings.toml` has the front page's findings, `book/settings.toml` the advice of the page
"What to do". Neither holds a number: each entry names sentences of chapters' findings.toml, whose
values are filled in from the record that the site shows, and leaves out what that record lacks.

    [accounts-to-the-block]
    title = "..."                       # what the reader will remember, where `holds_if` holds
    question = "..."                    # the title where it doesn't
    part = "own-code"                   # of the front page; none in settings.toml
    findings = ["hot/on-their-own-code"]            # CHAPTER/NAME, or CHAPTER/CLAIM for its word's
    so = "..."                          # what to do, or what it means
    holds_if = ["hot/fillfactors.at_once[...] < 1"] # facts that `title` and `so` rest on
    unit = "pages"
    bars = [{ label = "...", value = "hot/..." }]   # a small chart
    see = "hot#chart-hot-servers"       # CHAPTER#ANCHOR, where it was measured
    since = "8.3"                       # the release that brought it
    caveat = "..."
    documentation = { "CREATE TABLE" = "https://..." }
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pgrerun import parameters
from pgrerun.errors import BookError
from pgrerun.page import charts, declared, narrate, provenance
from pgrerun.page.markup import macros
from pgrerun.record import claims, evidence, runs
from pgrerun.record.database import Database, NotMeasured
from pgrerun.record.statistics import Interval
from pgrerun.record.verdicts import Judgement, Verdict

_HTML = macros("advice")


class Bar(BaseModel):
    """One bar of an entry's small chart."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    value: str


class Entry(BaseModel):
    """One entry of findings.toml or settings.toml; see the module's docstring."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str = ""
    question: str = ""
    part: str = ""
    findings: list[str] = Field(min_length=1)
    so: str = ""
    holds_if: list[str]
    unit: str = ""
    bars: list[Bar] = []
    see: str = ""
    since: str = ""
    caveat: str = ""
    documentation: dict[str, str] = {}

    def references(self) -> Iterator[tuple[str, str]]:
        """Chapter and the rest of all that the entry takes from chapters."""
        for text in (*self.findings, *self.holds_if, *(bar.value for bar in self.bars)):
            chapter, _, rest = text.partition("/")
            yield chapter, rest

    @property
    def names(self) -> list[str]:
        """The settings that it speaks of; its own name where there are none."""
        said = " ".join([self.so, self.since, *self.documentation])
        return list(dict.fromkeys(_SETTING.findall(said))) or [self.name]


_SETTING = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def entries(file: Path) -> Mapping[str, Entry]:
    """The entries of a file by name, in their order; BookError where one can't be used."""
    try:
        given = tomllib.loads(file.read_text("utf-8"))
        return {name: Entry(name=name, **entry) for name, entry in given.items()}
    except (OSError, TypeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise BookError(f"{file} can't be used: {error}") from None


@dataclass(frozen=True)
class Told:
    """An entry as a page shows it: sentences with their numbers, and bars with theirs."""

    entry: Entry
    title: str
    sentences: list[str]
    bars: list[tuple[str, str, float]]  # label, number in words, share of the longest
    so: str


class Teller:
    """Fills entries with the numbers and words of records, which it loads into databases once."""

    def __init__(self, found: Mapping[str, runs.Record], judged: Mapping[str, Judgement]):
        """`found` are the records that the site shows by chapter, `judged` verdicts by claim."""
        self.records, self._judged = found, judged
        self._databases: dict[str, Database] = {}

    def database(self, chapter: str) -> Database:
        """The database over a chapter's record, as `run`; without rows where there is none."""
        if chapter not in self._databases:
            found = self._databases[chapter] = Database(chapter)
            if chapter in self.records:
                found.add_record("run", self.records[chapter])
        return self._databases[chapter]

    def told(self, entry: Entry) -> Told | None:
        """The entry filled in; None where the records have none of its sentences."""
        sentences = [one for text in entry.findings if (one := self._sentence(text))]
        if not sentences:
            return None
        holds = all(self.value(fact) is True for fact in entry.holds_if)
        title, so = (entry.title, entry.so) if holds else (entry.question, "")
        return Told(entry, title, sentences, self._bars(entry), so)

    def _sentence(self, text: str) -> str:
        chapter, _, name = text.partition("/")
        findings = declared.findings_of(parameters.folder(chapter))
        if name in claims.ledger():
            found = self._judged.get(name)
            return findings.sentence(found, self._value(chapter)) if found else ""
        return findings.told(name, self._value(chapter))

    def decided(self, chapter: str) -> list[tuple[Judgement, str]]:
        """Claims of a chapter with a verdict and the author's sentence for it, in their order."""
        ours = [j for j in self._judged.values() if j.claim.chapter == chapter]
        told = [(j, self._sentence(f"{chapter}/{j.claim.id}")) for j in ours]
        return [(j, text) for j, text in told if text and j.verdict is not Verdict.NOT_TESTED]

    def _value(self, chapter: str) -> Callable[[str], Any]:
        return lambda expression: evidence.evaluate(self.database(chapter), expression)

    def value(self, text: str) -> Interval | bool | str | None:
        """The value of CHAPTER/EXPRESSION; None where its rows weren't measured."""
        chapter, _, expression = text.partition("/")
        try:
            return evidence.evaluate(self.database(chapter), expression)
        except (NotMeasured, evidence.NoRows):
            return None

    def _bars(self, entry: Entry) -> list[tuple[str, str, float]]:
        """Of the bars that have a value; none where that leaves nothing to compare."""
        found = [(bar.label, self.value(bar.value)) for bar in entry.bars]
        measured = [(label, one) for label, one in found if isinstance(one, Interval)]
        longest = max((one.estimate for _, one in measured), default=0)
        if len(measured) < 2 or longest <= 0:
            return []
        return [
            (label, str(narrate.interval(one, entry.unit)), max(0.0, one.estimate / longest))
            for label, one in measured
        ]


def concerned(teller: Teller, file: Path) -> dict[str, dict[str, str]]:
    """Of each claim that advice concerns: the advice's settings, and its anchor on its page.

    Of an entry's chapters these are the claims that it tells of, those whose rule names such a
    setting, and those whose rule looks at an experiment that the advice rests on or whose code
    names the setting.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for entry in entries(file).values():
        for chapter in dict.fromkeys(chapter for chapter, _ in entry.references()):
            for claim in _claims_of(teller, entry, chapter):
                found[claim][", ".join(entry.names)] = f"advice-{entry.name}"
    return found


def _claims_of(teller: Teller, entry: Entry, chapter: str) -> set[str]:
    if chapter not in teller.records:
        return set()
    folder, database = parameters.folder(chapter), teller.database(chapter)
    told = declared.findings_of(folder)
    texts = [rest for of, rest in entry.references() if of == chapter]
    rests_on = told.experiments(texts, database).union(
        *(evidence.experiments_in(one, database) for one in texts if one not in told.entries)
    )
    settings = re.compile(rf"\b({'|'.join(filter(_SETTING.fullmatch, entry.names)) or '(?!)'})\b")
    rules = evidence.rules(folder)
    claims_of = {one for one in rules if one in texts or settings.search(rules[one].text())}
    for experiment, about in teller.records[chapter].about.get(chapter, {}).items():
        code = "\n".join([about.get("function", ""), *about.get("files", {}).values()])
        if experiment in rests_on or settings.search(code):
            claims_of.update(about.get("rules", ()))
    return claims_of & claims.ledger().keys()


def findings(teller: Teller, file: Path, part: str, address: Callable[[str], str]) -> str:
    """The findings of one part of the front page as HTML; `address` leads to CHAPTER#ANCHOR."""
    wanted = [entry for entry in entries(file).values() if entry.part == part]
    told = [one for entry in wanted if (one := teller.told(entry))]
    if not told:  # a heading stands above it
        return _HTML.not_measured()
    return _HTML.findings([(one, address(one.entry.see)) for one in told])


def setting(teller: Teller, file: Path, name: str, address: Callable[[str], str]) -> str:
    """What to do about one setting as HTML, with the numbers that say so."""
    known = entries(file)
    if name not in known:
        raise BookError(f"{file.name} has no entry {parameters.unknown(name, list(known))}.")
    told = teller.told(known[name])
    if told is None:
        return _HTML.not_measured(name)
    return _HTML.setting(told, address(told.entry.see))


MOST = 5  # sentences at the head of a chapter


def what_we_found(teller: Teller, chapter: str) -> str:
    """The head of a chapter as HTML: an author's sentence for each headline claim that was decided.

    Of a chapter without headline claims those of the others; "" where nothing was decided.
    """
    decided = teller.decided(chapter)
    told = [one for one in decided if one[0].claim.headline] or decided
    colours = {str(j.verdict): charts.VERDICTS[str(j.verdict)] for j, _ in told}
    return _HTML.what_we_found(told[:MOST], colours, narrate) if told else ""


def made_from(found: Mapping[str, runs.Record], judged: Mapping[str, Judgement]) -> str:
    """One line: PostgreSQL, machine, date, and what the verdicts were decided by."""
    if not found:
        return ""
    undecided = (Verdict.NOT_TESTED, Verdict.INCONCLUSIVE)
    decided = [j for j in judged.values() if j.claim.scored and j.verdict not in undecided]
    by = Counter(str(j.claim.basis) for j in decided)
    words = {"timed": "a clock", "counted": "a count", "observed": "an observation"}
    basis = ", ".join(f"{by[one]} by {how}" for one, how in words.items() if by[one])
    environments = [record.environment for record in found.values()]
    releases = sorted({one["server"]["version"] for one in environments})
    machines = sorted(
        {
            f"{provenance.processor(one['machine'])} with"
            f" {narrate.count(one['machine']['cpus'], 'processor')}"
            for one in environments
        }
    )
    when = provenance.days(record.finished for record in found.values())
    return _HTML.made_from(releases, machines, when, len(decided), basis)
