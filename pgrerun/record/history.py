"""How the ledger's rules and the published words came to be what they are: data/history.csv.

A line for each change of a claim's published word, or of its rule once a word was published:

    claim, date
    old, new   the published word before and after, the same where only the rule changed; old is
               empty where it was published first. In the words of today (see `verdicts.today`)
    changed    "rule", "measurement", or "both" where the rule changed since the last word; "frozen"
               where neither did when the ledger was frozen
    commit     which one changed it; empty where the line came with the change itself
    why        in a sentence; up to November 2026 the commit's subject, and the ledger's columns
    rule       the rule's digest from then on (see `verdicts.rule_digest`); known of last lines

The published word is the one that all published runs gave. A test holds the last line of each claim
to it, and from the freeze on to the digest of today's rule; `pgrerun history` writes the lines that
are missing. With `--freeze` it writes one for each claim: what changed since its last line, or that
nothing did.
"""

import csv
import datetime
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from pgrerun.errors import RecordError
from pgrerun.record import agreement, claims, runs, verdicts

FILE = claims.LEDGER.with_name("history.csv")
FROZEN = "frozen"


@dataclass(frozen=True)
class Change:
    """A line of the history; see the module's docstring."""

    claim: str
    date: str
    old: str
    new: str
    changed: str
    commit: str
    why: str
    rule: str = ""


def load(file: Path = FILE) -> dict[str, list[Change]]:
    """The changes of each claim, the oldest first. RecordError if the file is damaged."""
    found: dict[str, list[Change]] = {}
    for change in _lines(file):
        found.setdefault(change.claim, []).append(change)
    return found


def _lines(file: Path) -> list[Change]:
    try:
        with open(file, newline="", encoding="utf-8") as lines:
            return [Change(**row) for row in csv.DictReader(lines, strict=True)]
    except (OSError, TypeError, csv.Error) as error:
        raise RecordError(f"The history of claims {file} is damaged: {error}.") from None


def published_words() -> dict[str, str]:
    """The word that all published runs give each claim together, by the rules of today."""
    found: dict[str, str] = {}
    for chapter in runs.chapters(runs.PUBLISHED):
        record = agreement.with_others(runs.load(runs.PUBLISHED, chapter))
        found |= {kept["claim"]: agreement.word(record, kept) for kept in record.verdicts}
    return found


def digests() -> dict[str, str]:
    """The digest of each claim's rule as it is today."""
    known = claims.ledger().values()
    return {claim.id: verdicts.rule_digest(claim, verdicts.rule_text(claim)) for claim in known}


def missing(
    history: Mapping[str, list[Change]],
    words: Mapping[str, str],
    rules: Mapping[str, str],
    why: str = "",
    freeze: bool = False,
) -> list[Change]:
    """The lines that the history lacks: of claims whose word or rule isn't that of their last.

    To `freeze` one for each claim. Before there is such a line rules may change without one.
    """
    frozen = any(one.changed == FROZEN for changes in history.values() for one in changes)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = []
    for claim, rule in rules.items():
        last = next(reversed(history.get(claim, [])), Change(claim, "", "", "", "", "", ""))
        word = words.get(claim, last.new)
        other = last.rule not in ("", rule) and (frozen or freeze)
        if word != last.new or other or freeze:
            changed = "both" if other else "measurement"
            if word == last.new:
                changed = "rule" if other else FROZEN
            found.append(Change(claim, today, last.new, word, changed, "", why, rule))
    return found


def append(why: str, freeze: bool = False, file: Path = FILE) -> list[Change]:
    """Write the lines that are missing, for this reason, and return them; see `missing`."""
    lacking = missing(load(file), published_words(), digests(), why, freeze)
    every = [*_lines(file), *lacking]
    with open(file, "w", newline="", encoding="utf-8") as lines:
        written = csv.writer(lines, lineterminator="\n")
        written.writerow([field.name for field in fields(Change)])
        written.writerows(map(astuple, every))
    return lacking
