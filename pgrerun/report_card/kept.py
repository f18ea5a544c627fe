"""A card kept as lines of JSON, and drawn again without its server.

The first line says what was measured where and when; each other holds a row of an experiment, the
reason why one was set aside, or what a section read off the server. Nothing that is told is kept:
the sections tell it anew. The server's address is left out.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pgrerun.errors import CannotMeasure
from pgrerun.lab.server import Borrowed, passwords
from pgrerun.lab.testbed import Experiment
from pgrerun.record import runs
from pgrerun.report_card.limits import TimeIsUp
from pgrerun.report_card.visit import Visit

if TYPE_CHECKING:
    from pgrerun.report_card import Card

Lines = Mapping[str, list[dict[str, Any]]]


class KeptVisit(Visit):
    """A visit that measures nothing: a section gets what it got when its card was made."""

    def __init__(self, card: "Card", name: str, given: Mapping[str, Any], lines: Lines):
        self.far = card.far
        self._open(name, given, card.schema)
        self._kept = lines

    def measure(self, wanted: Experiment, **changed: Any) -> None:
        """The rows as they were kept; what has none was not reached in its section's time."""
        found = self._kept.get(wanted.name, [])
        for line in found:
            if "aside" in line:
                raise CannotMeasure(*line["aside"])
        if not found:
            raise TimeIsUp
        self.rows[wanted.name] = [line["row"] for line in found]
        self._units[wanted.name] = wanted.units

    def read(self, what: Any, *given: Any) -> Any:
        """What a function read off the server, as often as it was called and in that order."""
        again = self.reads.setdefault(what.__name__, [])
        again.append(_thawed(self._kept[what.__name__][len(again)]["read"]))
        return again[-1]


def write(card: "Card", visits: Iterable[Visit], guest: Borrowed, file: Path) -> None:
    """Keep a card: text, a line for each row."""
    visits = list(visits)
    head = {name: value for name, value in vars(card).items() if name not in ("outcomes", "said")}
    head["given"] = {visit.name: visit.given for visit in visits}
    head["sections"] = {
        one.section.name: {
            "limit": one.limit,
            "seconds": one.seconds,
            "ended": one.ended,
            "reason": "" if one.pieces else one.reason,
        }
        for one in card.outcomes
    }
    lines = [head, *(line for visit in visits for line in _lines(visit))]
    text = "".join(json.dumps(runs.scrub(line), ensure_ascii=False) + "\n" for line in lines)
    file.write_text(_without_address(text, guest), "utf-8")


def _without_address(text: str, guest: Borrowed) -> str:
    """The text without where the server is; a reason may hold its host or socket alone."""
    name, _, where = guest.address.partition(" at ")
    host = where.partition(",")[0]
    text = text.replace(json.dumps(guest.address, ensure_ascii=False)[1:-1], name)
    for part in filter(None, (where, host, host.rpartition(":")[0])):
        text = text.replace(json.dumps(part, ensure_ascii=False)[1:-1], passwords.LEFT_OUT)
    return text


def _lines(visit: Visit) -> Iterator[dict[str, Any]]:
    for name, rows in visit.rows.items():
        of = {"chapter": visit.name, "of": name}
        if name in visit.aside:
            yield of | {"aside": [visit.aside[name].capability, str(visit.aside[name])]}
        else:
            yield from (of | {"row": row} for row in rows)
    for name, reads in visit.reads.items():
        yield from ({"chapter": visit.name, "of": name, "read": _frozen(one)} for one in reads)


def read(file: Path) -> tuple[dict[str, Any], dict[str, Lines]]:
    """What a kept card says of itself, and its other lines by chapter and by what they are of."""
    head, *lines = map(json.loads, file.read_text("utf-8").splitlines())
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        found[line["chapter"]][line["of"]].append(line)
    return head, found


def _frozen(found: Any) -> Any:
    """What was read, as JSON has it."""
    if not isinstance(found, pd.DataFrame):
        return found
    plain = found.astype(object).where(found.notna(), None)
    return {"columns": list(plain), "rows": plain.values.tolist()}


def _thawed(kept: Any) -> Any:
    if isinstance(kept, dict):
        return pd.DataFrame(kept["rows"], columns=kept["columns"])
    return kept
