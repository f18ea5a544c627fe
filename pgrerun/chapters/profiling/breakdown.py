"""From routine to subsystem: the symbol table says the file, a committed map the directory.

`sources.csv` lists PostgreSQL 18's source files by directory of src/backend (src/common and src/port
where the server uses them), and for each directory the subsystem of the 1990 report that does its
work. `routines.csv` names the file of routines that the symbol table leaves between two subsystems.
"""

from functools import cache
from os.path import commonprefix
from pathlib import Path

import pandas as pd

from pgrerun.instruments import symbols

SUBSYSTEMS = {
    "access_methods": "access methods",
    "system_functions": "system functions",
    "lib": "lib",
    "rule_manager": "rule manager",
    "storage_manager": "storage manager",
    "utilities": "utilities",
    "executor": "executor",
    "optimizer": "optimizer",
    "parser": "parser",
    "others": "others",
    "kernel": "operating system",
    "unknown": "not placed",
}
"""Names in words: the report's nine, then those that its figures don't list."""

_HERE = Path(__file__).parent


@cache
def _sources() -> pd.DataFrame:
    """directory, subsystem, file: one row per source file."""
    frame = pd.read_csv(_HERE / "sources.csv")
    return frame.assign(file=frame["files"].str.split()).explode("file")[["directory", "subsystem", "file"]]


@cache
def _by_hand() -> dict[str, str]:
    return dict(pd.read_csv(_HERE / "routines.csv").itertuples(index=False))


@cache
def _directories(program: Path) -> dict[str, tuple[str | None, str | None, str]]:
    """Routine to (file, directory, subsystem) for one program; None and "unknown" where it can't be told."""
    frame = symbols.routines(program)
    subsystem = dict(_sources().drop_duplicates("directory")[["directory", "subsystem"]].itertuples(index=False))
    places: dict = {}
    order = sorted({file for column in ("before", "after") for file in frame[column].dropna()}, key=lambda file: file[1])
    candidates = _sources().groupby("file")["directory"].agg(list).to_dict()
    for number, file in enumerate(order):
        near = [candidates.get(other[0], []) for other in order[max(0, number - 1) : number + 2] if other != file]
        places[file] = _nearest(candidates.get(file[0], []), [d for found in near if len(found) == 1 for d in found])
    found: dict[str, set] = {}
    for row in frame.itertuples(index=False):
        directories = {places.get(file) for file in (row.before, row.after)} if row.file is None else {places.get(row.file)}
        parts = {subsystem.get(directory, "unknown") for directory in directories}
        directory = directories.pop() if len(directories) == 1 else None
        name = row.file[0] if row.file else None
        if len(parts) > 1 and row.routine in _by_hand():
            name = _by_hand()[row.routine]
            directory = _nearest(candidates.get(name, []), [])
            parts = {subsystem.get(directory, "unknown")}
        found.setdefault(row.routine, set()).add((name, directory, parts.pop() if len(parts) == 1 else "unknown"))
    return {routine: _agreed(places) for routine, places in found.items()}


def _nearest(candidates: list[str], near: list[str]) -> str | None:
    """The directory of a file; of several with such a file the one that its neighbours among the files lie in."""
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    return max(candidates, key=lambda candidate: max((len(commonprefix([candidate, other])) for other in near), default=0))


def _agreed(places: set[tuple]) -> tuple[str | None, str | None, str]:
    """What holds of all routines of one name."""
    if len(places) == 1:
        return next(iter(places))
    subsystems = {subsystem for *_, subsystem in places}
    return None, None, subsystems.pop() if len(subsystems) == 1 else "unknown"


def placed(frame: pd.DataFrame, program: Path) -> pd.DataFrame:
    """`frame` (with function and object) with its file, directory and subsystem.

    Routines of other objects than the program are system functions; a library's file is left
    out, the kernel is a subsystem of its own.
    """
    known = _directories(program)
    rows = [
        known.get(function.partition(".")[0] if function not in known else function, (None, None, "unknown"))
        if obj == program.name
        else (None, None, "kernel" if obj.startswith("[kernel") else "system_functions" if ".so" in obj or obj == "[vdso]" else "unknown")
        for function, obj in zip(frame["function"], frame["object"])
    ]
    return frame.assign(**dict(zip(("file", "directory", "subsystem"), zip(*rows)))) if rows else frame
