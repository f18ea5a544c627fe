"""The documents' texts by section, and whether a transcribed number stands in the section it cites."""

import re
from pathlib import Path

from pgrerun.published.reading import DOCUMENTS, printed, source

WORDS = {1: "single|one", 2: "two|doubled", 3: "three", 6: "six", 7: "seven", 9: "nine", 10: "ten",
         16: "sixteen", 25: "twenty-five", 48: "forty-eight", 80: "eighty"}
"""The numbers that the documents write as words."""

# "3.4. Note that" at the start of a line is a sentence's end: numbers of several levels have no dot behind them.
_HEADING = re.compile(r"^\s*(Abstract|\d\.?|\d(?:\.\d+)+)(?:\s+[A-Z]|\s*$)")
_MESSAGE = re.compile(r"^From\n.+\nDate:$", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """A report's text by section number ("3.2.2", "Abstract"), with broken lines and words joined;
    a mail thread's by message ("msg 4", counted from one), without what a message quotes of others."""
    found: dict[str, list[str]] = {}
    current = found.setdefault("", [])
    if thread := _MESSAGE.split(text)[1:]:
        lines = [(f"msg {number}", line) for number, part in enumerate(thread, 1) for line in part.splitlines() if not line.startswith(">")]
    else:
        lines = [(heading[1].rstrip(".") if (heading := _HEADING.match(line)) else "", line) for line in text.splitlines()]
    for section, line in lines:
        current = found.setdefault(section, []) if section else current
        current.append(line.strip())
    return {k: re.sub(r"\s+", " ", re.sub(r"(\w)-\n(?=[a-z])", r"\1-", "\n".join(v))) for k, v in found.items()}


def missing_from_text(name: str, folder: Path) -> list[str]:
    """Cells of the table whose number or wording isn't in the cited section of the document's text.

    `folder` holds the documents' texts. A number counts as found as a numeral or as one of
    `WORDS`; the table's `printed` column must occur literally (case aside).
    """
    where = source(name)
    parts = sections((folder / DOCUMENTS[where.document][1]).read_text("utf-8"))
    cited = [parts.get(s.strip(), "") for s in where.section.split(";")]
    # A word broken at the line's end may or may not keep its hyphen: look for both.
    text = " ".join(cited).lower()
    text += " " + re.sub(r"([a-z])-([a-z])", r"\1\2", text)
    solid = "".join(text.split())  # the text recognition left gaps inside words ("lev els")
    frame, missing = printed(name), []
    for key, row in frame.iterrows():
        for column, value in row.items():
            if column == "printed":
                found = "".join(value.lower().split()) in solid
            elif "printed" in frame and column == "value":
                found = _states(row["printed"].lower(), float(value)) or _states(text, float(value))
            elif re.fullmatch(r"[\d:.]+", value):
                found = value in text if ":" in value else _states(text, float(value), value)
            else:
                continue
            if not found:
                missing.append(f"{key}.{column} = {value}")
    return missing


def _states(text: str, number: float, numeral: str = "") -> bool:
    """Whether the text has this number, as a numeral, behind an option's letter ("-c10"), in thousands ("10-K"), or as a word."""
    forms = [re.escape(numeral or f"{number:.12g}") + r"(?:\.0+)?"]
    if number >= 1000 and number % 1000 == 0:
        forms.append(f"{number / 1000:g}-?k")
    forms += [WORDS[number]] if number in WORDS else []
    return any(re.search(rf"(?<![\w.])(?:-[a-z])?(?:{form})(?!\d|\.\d)", text) for form in forms)
