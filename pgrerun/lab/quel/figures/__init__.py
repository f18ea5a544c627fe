"""The queries that the documents print, word for word, one file for each figure, with its source.

`queries("2.4", X=3)` gives a figure's queries, ready for a `Session`; `translated` gives text and
SQL of each statement, for an experiment that sends them itself. What a figure says in prose is done
here: a label before each query, "same as query1, except that Btree indices were defined", and a
letter in place of a digit.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgrerun.errors import ParameterError
from pgrerun.lab.quel.reading import written
from pgrerun.lab.quel.sql import Translator

_FOLDER = Path(__file__).parent
_FILES = {f"2.{number}": f"figure_2_{number}.quel" for number in range(1, 7)} | {
    "1981": "benchmark_1981.quel"
}
_LABEL = re.compile(r"^(?:query ?(\d):|\(([a-i])\))[ \n]", re.MULTILINE)
_SAME = re.compile(r"same as query(\d), except that Btree indices were defined on .*\s*")


@dataclass(frozen=True)
class Query:
    """One query of a figure.

    label: its number or letter in print, "" where the figure has one text only;
    indexed: whether it is to be run with B-trees on the attributes that it joins or restricts.
    """

    label: str
    text: str
    indexed: bool = False


def printed(figure: str) -> str:
    """The figure's text as printed."""
    return "\n".join(line for line in _read(figure).splitlines() if not line.startswith("#"))


def queries(figure: str, **letters: int) -> list[Query]:
    """The figure's queries in print's order; `letters` are put in place, as X in Figure 2.4.

    ParameterError for a figure that isn't there and for a letter that stays open.
    """
    text = printed(figure)
    for letter, digit in letters.items():
        text = re.sub(rf"\b{letter}(?=\d)", str(digit), text)
    if re.search(r"\bX(?=\d)", text):
        raise ParameterError(
            f"Figure {figure} has the letter X in place of a digit: say which, for example"
            f" queries({figure!r}, X=1)."
        )
    parts = _LABEL.split(text)
    if len(parts) == 1:
        return [Query("", text)]
    found: dict[str, Query] = {}
    for number, letter, body in zip(parts[1::3], parts[2::3], parts[3::3]):
        label = number or letter
        same = _SAME.fullmatch(body)
        found[label] = (
            Query(label, found[same[1]].text, indexed=True) if same else Query(label, body)
        )
    return list(found.values())


def translated(
    text: str, values: Sequence[str | int | float] = (), **ranges: str
) -> list[tuple[str, str]]:
    """Each statement of a text: as written, on one line, and in SQL ("" for one that only
    declares).

    `values` stand for $1, $2, ..., which stay where there are none. `ranges`: the relation that a
    variable ranges over, as if the text began with `range of variable is relation`. QueryError as
    `read`.
    """
    translator = Translator(values)
    translator.ranges |= ranges
    return [(line, translator.sql(statement)) for statement, line in written(text)]


def _read(figure: str) -> str:
    if figure not in _FILES:
        raise ParameterError(
            f"There is no figure {figure!r} with queries; there are {', '.join(_FILES)}."
        )
    return (_FOLDER / _FILES[figure]).read_text("utf-8")
