"""How the tables of an executed chapter are laid out on its page.

A run stores its tables as `tables.Table` draws them. The site draws them again when it is built:
rows of many words as cards on a phone, and numbers that stay with their units. What any of these
functions isn't for it returns as it is.
"""

import re
from itertools import groupby

from bs4 import BeautifulSoup, Tag

from pgrerun.site.scoreboard import COLOURS

_LINE, _TEXT, _GAP = 48, 22, 3  # letters: of a phone's line, of a column of words, between columns
_MOST_COLUMNS = 9  # with more a card would be a column of numbers
_RELEASE = re.compile(r"\d+(\.\d+)?")
_LEAST_RELEASES = 5
_WORDS_OF_A_TAG = re.compile(r"<pre\b.*?</pre>|(?<=>)[^<>]+", re.DOTALL)
_PARTED = re.compile(r"(?<=\d) (?=(?:%|[kMG]i?B|TB|bytes?|s|ms|µs|ns|min|MB/s|tps)(?![\w-]))")


# ---- many words, many releases


def stacked(text: str) -> str:
    """A table of many words as one whose rows are cards where its columns have no room."""
    page = BeautifulSoup(text, "html.parser")
    if "cards" in page.div["class"]:
        return text
    heads = [one.get_text() for one in page.select("thead th")]
    rows = [row.find_all("td") for row in page.select("tbody tr")]
    merged = _by_release(page, heads, rows)
    if not merged and not _is_wordy(heads, rows):
        return text
    page.div["class"] = [*page.div["class"], "stacked", *(["by-release"] if merged else [])]
    roles = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "td": "cell"}
    for tag in page.find_all([*roles, "th"]):
        tag["role"] = roles.get(tag.name, "columnheader")
    for row in page.select("tbody tr"):
        unsaid = iter(heads)
        for cell in row.find_all("td"):
            label = next(unsaid)
            if "data-label" not in cell.attrs:
                cell["data-label"] = label
            for _ in range(int(cell.get("colspan", 1)) - 1):
                next(unsaid)
    return str(page)


def _is_wordy(heads: list[str], rows: list[list[Tag]]) -> bool:
    """Whether the columns take more than a phone's line, and one of them is of words."""
    if not 3 <= len(heads) <= _MOST_COLUMNS:
        return False
    columns = [[cell.get_text() for cell in column] for column in zip(*rows)]
    longest = [max(map(len, column), default=0) for column in columns]
    least = [max(map(len, head.split()), default=0) for head in heads]
    need = [max(min(a, _TEXT + 2), b) + _GAP for a, b in zip(longest, least)]
    numbers = ["number" in cell.get("class", []) for cell in rows[0]] if rows else []
    words = [a for a, number in zip(longest, numbers) if not number]
    return sum(need) > _LINE and max(words, default=0) > _TEXT


def _by_release(page: BeautifulSoup, heads: list[str], rows: list[list[Tag]]) -> bool:
    """Make one cell of neighbours that say the same of several releases; whether there were any."""
    places = [n for n, head in enumerate(heads) if _RELEASE.fullmatch(head)]
    words = [row[n].get_text() for row in rows for n in places]
    if len(places) < _LEAST_RELEASES or not set(words) & set(COLOURS):
        return False
    for row in rows:
        for word, same in groupby(places, key=lambda n: row[n].get_text()):
            first, *others = same
            last = others[-1] if others else first
            row[first]["data-label"] = " to ".join(dict.fromkeys((heads[first], heads[last])))
            row[first]["class"] = "word"
            row[first]["style"] = f"--verdict:{COLOURS.get(word, 'transparent')}"
            if others:
                row[first]["colspan"] = str(len(others) + 1)
            for n in others:
                row[n].decompose()
    return True


# ---- numbers and their units


def unparted(words: str) -> str:
    """Words in which no line ends between a number and its unit."""
    return _PARTED.sub("\u00a0", words)


def unparted_markup(text: str) -> str:
    """HTML whose words are `unparted`, its tags and its code as they are: PostgreSQL refuses the
    statement `SELECT 37 % 201` with a space that doesn't break.
    """
    return _WORDS_OF_A_TAG.sub(
        lambda words: words.group() if words.group().startswith("<") else unparted(words.group()),
        text,
    )
