"""From routine to subsystem: the symbol table says the file, a committed map the directory.

`sources.csv` lists PostgreSQL 18's source files by directory of src/backend (src/common and
src/port where the server uses them), and for each directory the subsystem of the 1990 report that
does its work. `routines.csv` names the file of routines that the symbol table leaves between two
subsystems.
`routine_groups.csv` names routines that do one kind of work, wherever their source is.
"""

from functools import cache
from os.path import commonprefix
from pathlib import Path

import pandas as pd

from pgrerun.lab.instruments import symbols

# Names in words: the report's nine, then those that its figures don't list.
NAMES = {
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

Place = tuple[str | None, str | None, str]  # file, directory, subsystem
UNKNOWN: Place = (None, None, "unknown")
_HERE = Path(__file__).parent


# directory, subsystem, file: one row per source file.
SOURCES = pd.read_csv(_HERE / "sources.csv")
SOURCES = SOURCES.assign(file=SOURCES["files"].str.split()).explode("file").drop(columns="files")

# Routine to file, for those that the symbol table leaves between two subsystems.
BY_HAND = pd.read_csv(_HERE / "routines.csv").set_index("routine")["file"].to_dict()

# The subsystem of each directory.
SUBSYSTEMS = SOURCES.drop_duplicates("directory").set_index("directory")["subsystem"]

_DIRECTORIES_OF = SOURCES.groupby("file")["directory"].agg(list).to_dict()
_GROUPS = pd.read_csv(_HERE / "routine_groups.csv", index_col="group")["routines"]
# The routines of each group of `routine_groups.csv`.
GROUPS = {name: frozenset(routines.split()) for name, routines in _GROUPS.items()}
GROUP_OF = {routine: name for name, routines in GROUPS.items() for routine in routines}


@cache
def _places(program: Path) -> dict[str, Place]:
    """Routine to its place in one program, as far as it can be told."""
    frame = symbols.routines(program)
    directory_of = _directories(frame)
    found: dict[str, set[Place]] = {}
    for row in frame.itertuples(index=False):
        between = (row.before, row.after) if row.file is None else (row.file,)
        directories = {directory_of.get(file) for file in between}
        parts = {SUBSYSTEMS.get(directory, "unknown") for directory in directories}
        directory = directories.pop() if len(directories) == 1 else None
        name = row.file[0] if row.file else None
        if len(parts) > 1 and row.routine in BY_HAND:
            name = BY_HAND[row.routine]
            directory = _nearest(_DIRECTORIES_OF.get(name, []), [])
            parts = {SUBSYSTEMS.get(directory, "unknown")}
        part = parts.pop() if len(parts) == 1 else "unknown"
        found.setdefault(row.routine, set()).add((name, directory, part))
    return {routine: _agreed(places) for routine, places in found.items()}


def _directories(frame: pd.DataFrame) -> dict[tuple[str, int], str | None]:
    """Directory of each file of a symbol table; a file is its name and its place in the table."""
    files = pd.concat([frame["before"], frame["after"]]).dropna().unique()
    order = sorted(files, key=lambda file: file[1])
    directory = {}
    for number, file in enumerate(order):
        near: list[str] = []
        for other in order[max(0, number - 1) : number + 2]:
            known = _DIRECTORIES_OF.get(other[0], [])
            near += known if other != file and len(known) == 1 else []
        directory[file] = _nearest(_DIRECTORIES_OF.get(file[0], []), near)
    return directory


def _nearest(candidates: list[str], near: list[str]) -> str | None:
    """The directory of a file; of several with such a file the one that its neighbours lie in."""

    def closeness(candidate: str) -> int:
        return max((len(commonprefix([candidate, other])) for other in near), default=0)

    return max(candidates, key=closeness, default=None)


def _agreed(places: set[Place]) -> Place:
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
    known = _places(program)

    def place(function: str, object_name: str) -> Place:
        if object_name == program.name:
            return known.get(function) or known.get(function.partition(".")[0], UNKNOWN)
        if object_name.startswith("[kernel"):
            return None, None, "kernel"
        if ".so" in object_name or object_name == "[vdso]":
            return None, None, "system_functions"
        return UNKNOWN

    rows = [place(*names) for names in zip(frame["function"], frame["object"], strict=True)]
    places = pd.DataFrame(rows, columns=["file", "directory", "subsystem"], index=frame.index)
    return frame.drop(columns="file", errors="ignore").join(places)
