"""What a reader may change about a chapter, and what each profile sets.

One pydantic model per chapter; `VALUES` holds the three profiles side by side.
The first code cell of a chapter's notebook (tagged `parameters`) repeats the `ci`
column. Everything is checked here, before any server starts; `chapter.py` calls
`from_namespace` for that, and the command calls `chapter_parameters`.
"""

import ast
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pgrerun.errors import ParameterError

PROFILES = ("ci", "laptop", "overnight")

_NOT_OURS = {"In", "Out", "exit", "quit", "get_ipython"}  # what IPython itself puts into a notebook's globals
_PLAIN = (int, float, str, bool, list, dict, type(None))  # what papermill can inject
_PASSWORD = (
    "The server must be given without a password, because papermill stores parameters in the executed notebook. "
    "Leave the password out and put it where libpq finds it by itself: a password file (~/.pgpass, or the file that "
    "PGPASSFILE names), a connection service file (then server is service=NAME), or the environment variable PGPASSWORD"
)


def _without_password(server: str) -> str:
    if not server:
        return server
    try:
        words = conninfo_to_dict(server)
    except ProgrammingError:
        # The text itself is never repeated: it may hold a password.
        raise ValueError(
            "server must be a URL such as postgresql://user@host:5432/database, or a connection string such as "
            "'host=… dbname=…' or 'service=NAME'; what was given is neither"
        ) from None
    if {"password", "sslpassword"} & words.keys():
        raise ValueError(_PASSWORD)
    return server


def _folder(programs: str) -> str:
    if "://" in programs:
        raise ValueError("programs must be a folder with PostgreSQL's programs; for a server's URL use server")
    if programs and not Path(programs).expanduser().is_dir():
        raise ValueError(
            f"programs must be a folder with PostgreSQL's programs (postgres, initdb, pg_ctl), and {programs!r} is none"
        )
    return programs


def _unit(unit: str) -> dict[str, Any]:
    return {"json_schema_extra": {"unit": unit}}


class ChapterParameters(BaseModel):
    """What every chapter has. Values are strict: 2.0 or "2" is no whole number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    profile: Literal["ci", "laptop", "overnight"] = Field(description="How much time to spend")
    server: Annotated[str, AfterValidator(_without_password)] = Field(
        description="URL or connection string of a running server, without a password; empty for a throwaway one"
    )
    programs: Annotated[str, AfterValidator(_folder)] = Field(
        description="Folder with another PostgreSQL's programs; empty for the pip wheel's"
    )
    seed: int = Field(ge=0, le=2**31 - 1, description="Start of every random choice")
    pairs: int = Field(ge=5, le=200, description="Interleaved repeats of each comparison", **_unit("blocks"))


class TP1(ChapterParameters):
    """Debit-credit transactions and their page I/O."""

    scale: int = Field(ge=1, le=1000, description="Size of the relations", **_unit("× 1 000 branches, 10 000 accounts"))
    clients: int = Field(ge=2, le=64, description="Backends from the ladder's second rung on", **_unit("connections"))
    milliseconds: int = Field(ge=50, le=600_000, description="Length of one throughput observation", **_unit("ms"))
    counted: int = Field(ge=10, le=1_000, description="Transactions whose pages are counted", **_unit("transactions"))
    cycles: int = Field(
        ge=10, le=10_000, description="Length of one run of the report's test program", **_unit("reads and writes")
    )
    simulated_transactions: int = Field(
        ge=100, le=100_000, description="Length of the simulated disk's run", **_unit("transactions")
    )


class HOT(ChapterParameters):
    """Heap-only tuples: pages, growth, and what an update costs."""

    clients: int = Field(ge=2, le=64, description="Backends where there are several, and branches", **_unit("connections"))
    accounts: int = Field(ge=200, le=1_000_000, description="Size of the relations", **_unit("accounts of each branch"))
    timed_accounts: int = Field(ge=10, le=1_000_000, description="Size of the relations on which throughput is timed", **_unit("accounts of each branch"))
    rounds: int = Field(ge=1, le=1000, description="Longest run, for the steady state", **_unit("updates per account"))


class FourTactics(ChapterParameters):
    """Compilation, microcode, a file system and an operating system under INGRES."""

    clients: int = Field(ge=2, le=64, description="Backends where there are several", **_unit("connections"))
    tuples: int = Field(ge=10_000, le=100_000_000, description="Size of PARTS on PostgreSQL", **_unit("tuples"))
    megabytes: int = Field(ge=4, le=4_000, description="Size of the file that is read raw", **_unit("MB"))
    milliseconds: int = Field(ge=100, le=60_000, description="Length of one observation of CPU time", **_unit("ms"))


class Measuring(ChapterParameters):
    """How to run a benchmark: noise, power, repeats, what watching costs."""

    clients: int = Field(ge=2, le=64, description="Backends where there are several, and branches", **_unit("connections"))
    milliseconds: int = Field(ge=50, le=600_000, description="Length of one observation in a pair", **_unit("ms"))
    blocks: int = Field(ge=8, le=1000, description="Repeats of the runs that don't differ", **_unit("blocks"))
    seconds: float = Field(ge=0.5, le=3600, description="Length of one run over time, about", **_unit("s"))
    resamples: int = Field(ge=50, le=10_000, description="Experiments drawn from the recorded ones", **_unit("experiments"))


class Optimizer(ChapterParameters):
    """The optimizer's choice of scans and joins, its estimates, and plan diagrams."""

    points: int = Field(ge=5, le=81, description="Selectivities at which scans are timed", **_unit("points"))
    tuples: int = Field(ge=10_000, le=10_000_000, description="Size of the relation whose scans are timed", **_unit("tuples"))
    times: int = Field(ge=10, le=1000, description="Size of the larger relations that are joined", **_unit("× 1 000 tuples"))
    grid: int = Field(ge=10, le=200, description="Edge of a plan diagram", **_unit("points"))


class AccessPaths(ChapterParameters):
    """Access paths of PostgreSQL 9.2: index-only scans, parameterized joins, index types, sorting, the plan cache."""

    clients: int = Field(ge=1, le=64, description="Sessions that look up accounts", **_unit("connections"))
    accounts: int = Field(ge=20_000, le=100_000_000, description="Size of accounts, where index-only scans and joins run", **_unit("rows"))
    lookups: int = Field(ge=500, le=10_000_000, description="Length of one throughput observation", **_unit("lookups, all sessions together"))
    objects: int = Field(ge=10_000, le=10_000_000, description="Size of the sets that are indexed by GiST and SP-GiST, and sorted", **_unit("rows"))
    crashes: int = Field(ge=1, le=100, description="Times that a server is killed to test the visibility map", **_unit("crashes"))


class Scalability(ChapterParameters):
    """Throughput over clients: lock manager, commits, idle servers; large machines by simulation."""

    scale: int = Field(ge=1, le=1000, description="Size of pgbench's relations", **_unit("× 100 000 accounts"))
    most_clients: int = Field(ge=16, le=2000, description="Clients where the sweep over clients ends", **_unit("connections"))
    transactions: int = Field(
        ge=500, le=10_000_000, description="Length of one throughput observation, all clients together", **_unit("transactions")
    )
    commits: int = Field(ge=100, le=10_000_000, description="The same where every transaction waits for a flush", **_unit("transactions"))
    commit_clients: int = Field(ge=8, le=2000, description="Clients that wait for flushes together", **_unit("connections"))
    idle_connections: int = Field(ge=8, le=5000, description="Connections that do nothing while others work", **_unit("connections"))
    flush_delay: int = Field(ge=100, le=100_000, description="What the slowed flush takes longer", **_unit("µs"))
    idle_seconds: int = Field(ge=5, le=3600, description="Least time for which the idle server is watched", **_unit("s"))
    simulated_transactions: int = Field(
        ge=100, le=1_000_000, description="Length of one simulated run, as many again for as many clients as the talk had processors", **_unit("transactions")
    )


class Explorations(ChapterParameters):
    """Dirty pages, work_mem, size-up, and the join that ignores memory."""

    tuples: int = Field(ge=5_000, le=2_000_000, description="Size of the relations that are updated and read", **_unit("tuples"))
    timed_pools: int = Field(ge=3, le=5, description="Buffer pools in which the read is timed", **_unit("sizes"))
    largest: int = Field(ge=1_000_000, le=100_000_000, description="Largest relation of the size-up", **_unit("tuples"))
    per_decade: int = Field(ge=1, le=5, description="Sizes of the size-up, down to a hundredth of the largest", **_unit("for each power of ten"))
    wait: int = Field(ge=1, le=900, description="Delay between a large update and a read", **_unit("s"))


class Wisconsin(ChapterParameters):
    """The 32 queries of the Wisconsin benchmark, between contenders and across sizes."""

    largest: int = Field(ge=20_000, le=10_000_000, description="Size of the largest relations", **_unit("tuples"))
    sizes: int = Field(ge=3, le=10, description="From the report's size to the largest", **_unit("sizes"))
    repeats: int = Field(ge=1, le=20, description="Runs of a short query in each block, whose median counts", **_unit("runs"))
    miniature: int = Field(ge=100, le=5_000, description="Size of the large relations of the miniature of INGRES", **_unit("tuples"))


class Profiling(ChapterParameters):
    """Where instructions and time go, routine by routine."""

    scale: int = Field(ge=1, le=100, description="Size of onek, tenk1 and tenk2", **_unit("× 1 000 and 10 000 tuples"))
    transactions: int = Field(ge=5, le=3_000, description="Length of the batch whose instructions are counted", **_unit("transactions"))
    seconds: int = Field(ge=1, le=600, description="Length of one sampling of a live server", **_unit("s"))


CHAPTERS: dict[str, type[ChapterParameters]] = {
    "four_tactics": FourTactics, "profiling": Profiling, "wisconsin": Wisconsin, "tp1": TP1, "optimizer": Optimizer,
    "hot": HOT, "scalability": Scalability, "access_paths": AccessPaths, "measuring": Measuring, "explorations": Explorations,
}  # fmt: skip

#                          ci, laptop, overnight
_EVERYWHERE = {
    "server": ("", "", ""),
    "programs": ("", "", ""),
    "seed": (1990, 1990, 1990),
}
VALUES: dict[str, dict[str, tuple]] = {
    "tp1": _EVERYWHERE
    | {
        "pairs": (7, 11, 41),
        "scale": (1, 1, 10),
        "clients": (2, 2, 2),
        "milliseconds": (50, 1_500, 20_000),
        "counted": (10, 50, 100),
        "cycles": (40, 500, 5_000),
        "simulated_transactions": (300, 10_000, 100_000),
    },
    "hot": _EVERYWHERE
    | {
        "seed": (2007, 2007, 2007),
        "pairs": (7, 11, 15),
        "clients": (10, 10, 10),
        "accounts": (300, 2_000, 50_000),
        "timed_accounts": (60, 800, 20_000),
        "rounds": (4, 6, 20),
    },
    "four_tactics": _EVERYWHERE
    | {
        "seed": (1981, 1981, 1981),
        "pairs": (7, 11, 21),
        "clients": (4, 4, 8),
        "tuples": (20_000, 200_000, 5_000_000),
        "megabytes": (8, 128, 1_024),
        "milliseconds": (200, 1_000, 5_000),
    },
    "measuring": _EVERYWHERE
    | {
        "seed": (2012, 2012, 2012),
        "pairs": (7, 11, 15),
        "clients": (4, 4, 4),
        "milliseconds": (50, 400, 10_000),
        "blocks": (10, 30, 60),
        "seconds": (0.5, 4.0, 300.0),
        "resamples": (80, 600, 2_000),
    },
    "optimizer": _EVERYWHERE
    | {
        "pairs": (7, 9, 21),
        "points": (5, 17, 33),
        "tuples": (20_000, 100_000, 1_000_000),
        "times": (10, 100, 1000),
        "grid": (30, 100, 200),
    },
    "access_paths": _EVERYWHERE
    | {
        "seed": (2012, 2012, 2012),
        "pairs": (7, 11, 21),
        "clients": (4, 8, 8),
        "accounts": (60_000, 500_000, 20_000_000),
        "lookups": (600, 10_000, 400_000),
        "objects": (10_000, 150_000, 3_000_000),
        "crashes": (2, 8, 20),
    },
    "scalability": _EVERYWHERE
    | {
        "seed": (2012, 2012, 2012),
        "pairs": (7, 11, 15),
        "scale": (1, 10, 100),
        "most_clients": (32, 128, 1000),
        "transactions": (600, 8_000, 1_000_000),
        "commits": (120, 1_500, 100_000),
        "commit_clients": (16, 250, 250),
        "idle_connections": (30, 300, 2_000),
        "flush_delay": (2_000, 5_000, 5_000),
        "idle_seconds": (6, 120, 600),
        "simulated_transactions": (100, 700, 50_000),
    },
    "explorations": _EVERYWHERE
    | {
        "seed": (2020, 2020, 2020),
        "pairs": (7, 11, 31),
        "tuples": (6_000, 50_000, 1_000_000),
        "timed_pools": (3, 5, 5),
        "largest": (1_000_000, 10_000_000, 30_000_000),
        "per_decade": (1, 1, 2),
        "wait": (1, 10, 320),
    },
    "wisconsin": _EVERYWHERE
    | {
        "pairs": (7, 11, 15),
        "largest": (20_000, 1_000_000, 4_000_000),
        "sizes": (3, 3, 4),
        "repeats": (1, 3, 3),
        "miniature": (200, 500, 2_000),
    },
    "profiling": _EVERYWHERE
    | {
        "pairs": (7, 15, 41),
        "scale": (1, 1, 10),
        "transactions": (10, 300, 300),
        "seconds": (1, 15, 60),
    },
}
# Until this machine has run a chapter once, the command announces these.
MINUTES: dict[str, tuple[float, float, float]] = {
    "tp1": (1, 5, 180),
    "hot": (1, 6, 240),
    "four_tactics": (1, 3, 120),
    "measuring": (1, 5, 240),
    "optimizer": (1, 4, 300),
    "access_paths": (1, 5, 240),
    "scalability": (1, 6, 240),
    "explorations": (1, 5, 180),
    "wisconsin": (1, 7, 40),
    "profiling": (1, 2, 30),
}


def nearest(word: str, words: Sequence[str]) -> str:
    """A clause that names the most similar of `words`, if any is, and then all of them."""
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return (f"did you mean {close[0]}? " if close else "") + "There are: " + ", ".join(words)


def chapter_model(chapter: str) -> type[ChapterParameters]:
    """The model of a chapter's parameters; ParameterError for a name that is no chapter."""
    if chapter not in CHAPTERS:
        raise ParameterError(f"There is no chapter {chapter!r}; {nearest(chapter, list(CHAPTERS))}.")
    return CHAPTERS[chapter]


def profile_values(chapter: str, profile: str) -> dict[str, Any]:
    """All parameters of a chapter as a profile sets them."""
    chapter_model(chapter)
    if profile not in PROFILES:
        raise ParameterError(f"There is no profile {profile!r}; {nearest(str(profile), PROFILES)}.")
    column = PROFILES.index(profile)
    return {"profile": profile} | {name: values[column] for name, values in VALUES[chapter].items()}


def chapter_parameters(chapter: str, given: Mapping[str, Any], profile: str = "ci") -> ChapterParameters:
    """Check `given` and fill in the rest from the profile (`given["profile"]` wins over `profile`).

    ParameterError names every parameter that can't be used, what it may be, and
    the nearest valid name of an unknown one. Values of `server` are never repeated.
    """
    model = chapter_model(chapter)
    values = profile_values(chapter, given.get("profile", profile)) | dict(given)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        faults = [_fault(model, fault) for fault in error.errors()]
    raise ParameterError(f"Chapter {chapter}: {'; '.join(faults)}. Nothing was started.") from None


def from_namespace(chapter: str, namespace: Mapping[str, Any]) -> ChapterParameters:
    """The parameters of a chapter, out of its notebook's globals.

    papermill injects a misspelt name as one more variable, so every plain global
    that is no parameter is refused; call this before a notebook makes variables
    of its own. A value that differs from the `ci` column, or that papermill
    injected, was given; the rest comes from `profile`.
    """
    model = chapter_model(chapter)
    plain = {
        name: value
        for name, value in namespace.items()
        if type(value) in _PLAIN and not name.startswith("_") and name not in _NOT_OURS
    }
    ci = profile_values(chapter, "ci")
    injected = _injected(namespace)
    missing = model.model_fields.keys() - plain.keys()
    if missing:
        raise ParameterError(
            f"Chapter {chapter}: the notebook sets no {', '.join(sorted(missing))}. Its cell tagged `parameters` must "
            "run first and set every parameter."
        )
    given = {n: v for n, v in plain.items() if n in injected or n not in ci or (v, type(v)) != (ci[n], type(ci[n]))}
    try:
        return chapter_parameters(chapter, given)
    except ParameterError as error:
        if _PASSWORD in str(error) and injected:
            raise ParameterError(
                f"{error} The notebook that papermill has written holds the password now: delete that file."
            ) from None
        raise


def _injected(namespace: Mapping[str, Any]) -> set[str]:
    """Names that papermill's own cell sets; IPython keeps the source of every cell it ran in `In`."""
    names: set[str] = set()
    for source in namespace.get("In", ()):
        if source.startswith("# Parameters\n"):
            targets = [t for node in ast.parse(source).body if isinstance(node, ast.Assign) for t in node.targets]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


def _fault(model: type[ChapterParameters], fault: Mapping[str, Any]) -> str:
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return f"there is no parameter {name!r}; {nearest(name, list(model.model_fields))}"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    given = "" if name == "server" else f"; {fault['input']!r} was given"
    return f"{name} must be {_expected(model, name)}{given}"


def _expected(model: type[ChapterParameters], name: str) -> str:
    """In words: "a whole number from 1 to 64 (connections)"."""
    schema = model.model_json_schema()["properties"][name]
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    kind = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "True or False"}
    words = kind[schema["type"]]
    if "minimum" in schema:
        words += f" from {schema['minimum']} to {schema['maximum']}"
    return words + (f" ({schema['unit']})" if "unit" in schema else "")


def time_to_run(chapter: str) -> str:
    """How long the chapter takes with each profile on two processors, in words."""
    return ", ".join(f"{minutes} min ({profile})" for profile, minutes in zip(PROFILES, MINUTES[chapter]))


def table(chapter: str) -> list[dict[str, Any]]:
    """One row per parameter: name, description, expected (range and unit in words), and each profile's value."""
    model = chapter_model(chapter)
    columns = {profile: profile_values(chapter, profile) for profile in PROFILES}
    return [
        {"name": name, "description": field.description, "expected": _expected(model, name)}
        | {profile: values[name] for profile, values in columns.items()}
        for name, field in model.model_fields.items()
    ]


def assignments(words: Sequence[str]) -> dict[str, Any]:
    """{"rows": 100000} from ["rows=100000"], with the types that papermill's -p would give."""
    values = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            # What was given is not repeated unless it is one word: it may hold a password.
            given = f", not as {word!r}" if word.isidentifier() else ""
            raise ParameterError(f"A parameter is given as name=value, for example -p pairs=15{given}.")
        values[name] = _typed(text)
    return values


def _typed(text: str) -> Any:
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
