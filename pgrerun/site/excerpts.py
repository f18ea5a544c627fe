"""The first statements of a long text of SQL, which a page shows before the rest is unfolded."""

import re

_COMMENT = re.compile("--.*")
_BEGINS = re.compile(r"(?:begin|start transaction)\s*;", re.IGNORECASE)
_ENDS = re.compile(r"(?:end|commit|rollback)\s*;", re.IGNORECASE)
_QUOTE = re.compile(r"\$\w*\$")


def units(text: str) -> list[str]:
    """What a reader must see whole: a statement with the comments before it and the variables that
    pgbench sets for it, a block between $$ and $$, a transaction, what stands between \\if and
    \\endif. Comments that end a file are left out: they tell of what comes next there.
    """
    found: list[str] = []
    lines: list[str] = []
    quote, within, deep = "", False, 0
    for line in text.splitlines():
        lines.append(line)
        code = _code(line)
        for tag in _QUOTE.findall(code):
            quote = tag if not quote else "" if tag == quote else quote
        if quote:
            continue
        within = bool(_BEGINS.match(code)) or (within and not _ENDS.match(code))
        deep += code.startswith("\\if") - code.startswith("\\endif")
        if within or deep:
            continue
        if code.endswith(";") or (code.startswith("\\") and not code.startswith("\\set")):
            found.append("\n".join(lines).strip("\n"))
            lines = []
    left = "\n".join(lines).strip("\n")
    return [*found, left] if _code(left) else found


def begin(text: str, most: int) -> str:
    """The statements that a text begins with, in no more than so many lines; empty if the first one
    takes more.
    """
    ends = [text.index(unit) + len(unit) for unit in units(text)]
    return next((part for end in reversed(ends) if _lines(part := text[:end]) <= most), "")


def _code(text: str) -> str:
    """Without comments."""
    return _COMMENT.sub("", text).strip()


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())
