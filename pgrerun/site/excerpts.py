"""The SQL that a page shows of an experiment: its files in the order in which it sent them, and
their first statements, which are never cut.

A file is a section of a chapter's `sql/` or a script for pgbench, as a run record keeps it: the
text with its variables, by its name there. What was sent has values in their place.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from pgrerun.lab import sent

MORE = "-- and more, below"
_OVER = 2  # lines more than it should, where that shows one more statement
_NAMED = 3  # files shown above that a line names
_VARIABLE = re.compile(r"""(?<![:\w\]]):(?:"\w+"|'\w+'|[A-Za-z_]\w*)""")
_COMMENT = re.compile("--.*")
_SPACE = re.compile(r"\s+")
_BOUNDARY = re.compile(r"(?:begin|end|commit|start transaction|rollback)\s*;?", re.IGNORECASE)
_BEGINS = re.compile(r"(?:begin|start transaction)\s*;", re.IGNORECASE)
_ENDS = re.compile(r"(?:end|commit|rollback)\s*;", re.IGNORECASE)
_QUOTE = re.compile(r"\$\w*\$")
_READ_FROM = re.compile(r"\b(?:from|join)\s+(?!lateral\b|\()(\w+)", re.IGNORECASE)
_OF_THE_SYSTEM = re.compile(r"pg_|pgstat|heap_page|bt_", re.IGNORECASE)
_CHANGES = re.compile(r"set_config|_evict|_reset|prewarm", re.IGNORECASE)


def in_order(
    files: Mapping[str, str], statements: Sequence[str], scripts: Sequence[str] = ()
) -> list[str]:
    """The names of files in the order in which the first statement of each was sent.

    `scripts` are what pgbench ran, in their order: they follow, and before them the files of
    which nothing is among `statements`. A script that the server ran itself is among those.
    Files that only ask the system about itself come last: a reader looks for what is measured
    before what measures it.
    """
    ran = [script.strip() for script in scripts]
    said = [_SPACE.sub(" ", sent.kind(_COMMENT.sub("", text))) for text in statements]

    def place(name: str) -> tuple[bool, int, int]:
        text = files[name].strip()
        if text in ran:
            return False, len(said), 1 + ran.index(text)
        found = (
            number
            for pattern in map(_pattern, _bare(text))
            for number, one in enumerate(said)
            if pattern.search(one)
        )
        return _measures(text), next(found, len(said)), 0

    return sorted(files, key=place)


def _measures(text: str) -> bool:
    """Whether every statement of a file reads nothing but the system's own relations, and doesn't
    change what it reads of.
    """
    return all(
        statement.lower().startswith("select")
        and not _CHANGES.search(statement)
        and (read := _READ_FROM.findall(statement))
        and all(_OF_THE_SYSTEM.match(one) for one in read)
        for statement in _bare(text)
    )


def _bare(text: str) -> Iterator[str]:
    """The statements of a file, without comments, pgbench's own lines, and what bounds them."""
    lines = [_COMMENT.sub("", line) for line in text.splitlines()]
    for part in units("\n".join(line for line in lines if not line.strip().startswith("\\"))):
        for statement in [part] if _QUOTE.search(part) else part.split(";\n"):
            if statement.strip() and not _BOUNDARY.fullmatch(statement.strip()):
                yield statement.strip().rstrip(";")


def _pattern(statement: str) -> re.Pattern[str]:
    """What a statement looks like when it is sent, with any values, maybe inside another."""
    fixed = [re.escape(_SPACE.sub(" ", sent.kind(part))) for part in _VARIABLE.split(statement)]
    return re.compile(rf"(?<!\w){'.+?'.join(fixed)}(?!\w)")


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


def excerpt(
    files: Mapping[str, str], names: Sequence[str], above: Collection[str], most: int
) -> str:
    """The first statements of files, in so many lines or in as many as the first one takes, and
    whether more follow; of files that the page shows `above`, their names in their places.

    Empty if nothing is new.
    """
    if above >= set(names):
        return ""
    parts: list[list[str]] = []
    for is_above, group in groupby(names, key=lambda name: name in above):
        own = list(group)
        parts += [[_above(own)]] if is_above else [units(files[name]) for name in own]
    return _cut(parts, most)


def begin(text: str, most: int) -> str:
    """The statements that a text begins with, in no more than so many lines; empty if the first one
    takes more.
    """
    ends = [text.index(unit) + len(unit) for unit in units(text)]
    return next((part for end in reversed(ends) if _lines(part := text[:end]) <= most), "")


def _above(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    told = ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"-- shown above: {told}"


def _cut(parts: Sequence[Sequence[str]], most: int) -> str:
    """A line is empty between parts, and doesn't count."""
    if sum(_lines(unit) for part in parts for unit in part) <= most:
        return "\n\n".join("\n".join(part) for part in parts)
    shown: list[list[str]] = [[]]
    room, begun = most - 1, False
    for first, unit in ((one is part[0], one) for part in parts for one in part):
        says = bool(_code(unit))
        if room < 1 or (_lines(unit) > room + _OVER and (begun or not says)):
            break
        room -= _lines(unit)
        begun = begun or says
        shown += [[]] if first else []
        shown[-1].append(unit)
    return "\n".join(["\n\n".join("\n".join(part) for part in shown if part), MORE])


def _code(text: str) -> str:
    """Without comments."""
    return _COMMENT.sub("", text).strip()


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())
