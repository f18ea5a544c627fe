"""The documents' texts by section, and whether a number stands in the section that it cites."""

import re
from collections.abc import Iterator
from pathlib import Path

from pgrerun.record.printed import DOCUMENTS, printed, source

WORDS = {
    0.5: "half",
    1: "single|one",
    2: "two|doubled",
    3: "three",
    4: r"four\b",
    5: r"five\b",
    6: r"six\b",
    7: r"seven\b",
    8: r"eight\b",
    9: r"nine\b",
    10: "ten",
    16: "sixteen",
    25: "twenty-five",
    48: "forty-eight",
    80: "eighty",
}
"""The numbers that the documents write as words."""

# A report's headings: "3.2.2 Results", "4. Suggestions", "### 1.1 Compilation", "VI CONCLUSIONS".
# "3.4. Note that" at the start of a line is a sentence's end: numbers of several levels have no dot
# behind them.
_HEADING = re.compile(
    r"^[\s#]*(?:(Abstract|\d\.?|\d(?:\.\d+)+)(?:\s+[A-Z]|\s*$)|([IVX]{1,4})(?:\s+[A-Z][A-Z-]*)+\s*$)"
)
_MESSAGE = re.compile(r"^From\n.+\nDate:$", re.MULTILINE)
_MINUTE = re.compile(r"^(\d\d:\d\d(?::\d\d)?)$", re.MULTILINE)
# The slides' titles, and what the ledger calls the parts that they begin.
_SLIDE = re.compile(r"^(?:(Exp)eriment (\d)\b|(Conclusions|Appendix)$|(Lessons) Learned)")


def sections(text: str) -> dict[str, str]:
    """A document's text by what the ledger cites of it, with broken lines and words joined.

    Of a report the section number ("3.2.2", "VI", "Abstract"); of a mail thread the message ("msg
    4", counted from one), without what it quotes of others; of a talk the time at which a piece of
    its transcript begins ("24:44"); of slides the experiment ("Exp 1"), what comes before being
    "Setup".
    """
    if thread := _MESSAGE.split(text)[1:]:
        lines = [
            (f"msg {number}", line)
            for number, part in enumerate(thread, 1)
            for line in part.splitlines()
            if not line.startswith(">")
        ]
    elif passages := _MINUTE.split(text.partition("Transcript")[2])[1:]:
        lines = [
            (minute, line)
            for minute, part in zip(passages[::2], passages[1::2])
            for line in part.splitlines()
        ]
    elif re.search(r"^Experiment 1\b", text, re.MULTILINE):
        titled = [
            (" ".join(filter(None, title.groups())) if (title := _SLIDE.match(line)) else "", line)
            for line in text.splitlines()
        ]
        lines = [("Setup", ""), *titled]
    else:
        lines = list(_headed(text.splitlines()))
    found: dict[str, list[str]] = {}
    current = found.setdefault("", [])
    for section, line in lines:
        current = found.setdefault(section, []) if section else current
        current.append(line.strip())
    return {
        k: re.sub(r"\s+", " ", re.sub(r"(\w)-\n(?=[a-z])", r"\1-", "\n".join(v)))
        for k, v in found.items()
    }


def _headed(lines: list[str]) -> Iterator[tuple[str, str]]:
    before = ""
    for line in lines:
        heading = _HEADING.match(line)
        # "shown in Figure" and then "3.15. The results": a figure's number
        number = (
            (heading[1] or heading[2]).rstrip(".")
            if heading and not before.endswith("Figure")
            else ""
        )
        yield number, line
        before = line.strip() or before


def missing_from_text(name: str, folder: Path) -> list[str]:
    """Cells of the table whose number or wording isn't in the cited section of the document's text.

    `folder` holds the documents' texts. A number counts as found as a numeral or as one of
    `WORDS`; the table's `printed` column must occur literally (case aside).
    """
    where = source(name)
    parts = sections((folder / DOCUMENTS[where.document].file).read_text("utf-8"))
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
                found = states(row["printed"].lower(), float(value)) or states(text, float(value))
            elif re.fullmatch(r"[\d:.]+", value):
                found = value in text if ":" in value else states(text, float(value), value)
            else:
                continue
            if not found:
                missing.append(f"{key}.{column} = {value}")
    return missing


def states(text: str, number: float, numeral: str = "") -> bool:
    """Whether the text has this number, as a numeral, behind an option's letter ("-c10"), in
    thousands ("10-K", "2,142"), or as a word.
    """
    plain = re.escape(numeral or f"{number:.12g}")
    forms = [
        plain.removeprefix("0") + "0*" if plain.startswith("0\\.") else plain + r"(?:\.0+)?"
    ]  # ".012", "0.270"
    if number >= 1000 and number % 1000 == 0:
        forms.append(f"{number / 1000:g}-?k")
    if number >= 1000 and number % 1 == 0:
        forms.append(f"{number:,.0f}")
    forms += [WORDS[number]] if number in WORDS else []
    return any(
        re.search(rf"(?<![\w.])(?:-[a-z]|0(?=\.))?(?:{form})(?!\d|\.\d)", text) for form in forms
    )
