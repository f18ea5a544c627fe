"""The chapters there are, and what a reader may change about each.

A chapter is a folder with a `chapter.toml`: its title, document and place in the contents, what
each profile takes in minutes, and its parameters with unit, range and a value for each profile
(`Info` and `chapter_model` say what may stand there). The first code cell of the chapter's
notebook (tagged `parameters`) repeats the values of `ci`. Everything is checked here, before any
server starts; `chapter.py` calls `from_namespace` for that, the command `chapter_parameters`.

Chapters of the book lie in `pgrerun/chapters/`; `at` adds one that lies elsewhere.
"""

import ast
import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)

from pgrerun.errors import BookError, FetchError, ParameterError, ServerError
from pgrerun.lab.server import fetched, passwords

PROFILES = ("ci", "laptop", "overnight")
FOLDER = Path(__file__).parent / "chapters"
_FILE = "chapter.toml"

_NOT_OURS = {
    "In",
    "Out",
    "exit",
    "quit",
    "get_ipython",
}  # what IPython itself puts into a notebook's globals
_PLAIN = (int, float, str, bool, list, dict, type(None))  # what papermill can inject
_NOTEBOOK_HAS_IT = (
    "The notebook that papermill has written holds what was given now: delete that file."
)


def _without_password(server: str) -> str:
    try:
        if server:
            passwords.parse(server)
    except ParameterError as error:
        raise ValueError(str(error).rstrip(".")) from None
    return server


# a release's name is a text: the command and papermill make numbers of 13 and 9.6
_AS_NAME = BeforeValidator(lambda name: str(name) if type(name) in (int, float) else name)


def _chosen(programs: str) -> str:
    if "://" in programs:
        raise ValueError(
            "programs must be a folder with PostgreSQL's programs; for a server's URL use server"
        )
    if fetched.is_named(programs):
        try:
            fetched.chosen(programs)
        except (ParameterError, FetchError, ServerError) as error:
            raise ValueError(f"programs: {str(error).rstrip('.')}") from None
        return programs
    try:
        known = not programs or Path(programs).expanduser().is_dir()
    except (OSError, RuntimeError, ValueError):  # a name too long, no such account, a NUL
        known = False
    if not known:
        raise ValueError(
            "programs must be a folder with PostgreSQL's programs (postgres, initdb, pg_ctl) or a"
            " release that was fetched or registered (`pgrerun releases`), and"
            f" {programs[:200]!r} is none"
        )
    return programs


class ChapterParameters(BaseModel):
    """What every chapter has. Values are strict: 2.0 or "2" is no whole number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    profile: Literal["ci", "laptop", "overnight"] = Field(description="How much time to spend")
    server: Annotated[str, AfterValidator(_without_password)] = Field(
        description=(
            "URL or connection string of a running server, without a password; empty for a"
            " throwaway one"
        )
    )
    programs: Annotated[str, _AS_NAME, AfterValidator(_chosen)] = Field(
        description=(
            "Folder with another PostgreSQL's programs, or the name of a fetched release or a"
            " registered build; empty for the pip wheel's"
        )
    )
    seed: int = Field(ge=0, le=2**31 - 1, description="Start of every random choice")
    pairs: int = Field(
        ge=5,
        le=200,
        description="Interleaved repeats of each comparison, at most",
        json_schema_extra={"unit": "blocks"},
    )


class Parameter(BaseModel):
    """A table `[parameters.NAME]` of a chapter.toml.

    `range` are the least and the greatest value; two whole numbers make it a whole number.
    A text has a `pattern` instead, and `allowed` says in words what fits it; such a text is an
    address, which is kept out of records like a server's. `profiles` has a value for each profile.
    What every chapter has needs nothing but `profiles`.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    description: str = ""
    unit: str = ""
    range: list[int | float] | None = Field(default=None, min_length=2, max_length=2)
    pattern: str = ""
    allowed: str = ""
    profiles: dict[str, Any]

    @property
    def own(self) -> bool:
        """Whether it is the chapter's own."""
        return self.range is not None or bool(self.pattern)

    def field(self) -> tuple[type, Any]:
        """Type and field of the chapter's model."""
        if self.pattern:
            words = {"allowed": self.allowed}
            return str, Field(
                pattern=f"^(?:{self.pattern})$",
                description=self.description,
                json_schema_extra=words,
            )
        least, greatest = self.range or (0, 0)
        kind = int if isinstance(least, int) and isinstance(greatest, int) else float
        extra = {"unit": self.unit} if self.unit else {}
        return kind, Field(
            ge=least, le=greatest, description=self.description, json_schema_extra=extra
        )


class Info(BaseModel):
    """A chapter.toml.

    title       as the contents and the page say it
    document    the ledger's name of the document that the chapter reruns
    place       in the book's contents, from 1
    about       the chapter in a sentence, for the command's lists
    opens_with  the chart that stands at the head of its page, by name; no chart if empty
    minutes     how long it takes on two processors, by profile
    parameters  what the reader may change, beside what every chapter has
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    title: str = Field(min_length=1)
    document: str = Field(min_length=1)
    place: int = Field(ge=1)
    about: str = Field(min_length=1)
    opens_with: str = ""
    minutes: dict[str, int | float]
    parameters: dict[str, Parameter] = {}


_PAIRS = dict(zip(PROFILES, (7, 15, 21)))
elsewhere: dict[str, Path] = {}


def at(name: str, folder: Path) -> None:
    """From now on `name` is a chapter that lies in `folder`, which holds its chapter.toml."""
    if not (folder / _FILE).is_file():
        raise ParameterError(
            f"{folder} holds no {_FILE}, so there is no chapter to open. "
            "`pgrerun new NAME --here` makes a folder that does."
        )
    elsewhere[name] = folder
    info.cache_clear()
    chapter_model.cache_clear()


def chapters() -> list[str]:
    """The names of all chapters, in the order of the book's contents; those from elsewhere last."""
    ours = [path.parent.name for path in FOLDER.glob(f"*/{_FILE}")]
    return sorted(ours, key=lambda name: (info(name).place, name)) + sorted(elsewhere)


def folder(chapter: str) -> Path:
    """Where a chapter's files lie; ParameterError for a name that is no chapter."""
    found = elsewhere.get(chapter, FOLDER / chapter)
    if not chapter.isidentifier() or not (found / _FILE).is_file():
        raise ParameterError(f"There is no chapter {unknown(chapter, chapters())}.")
    return found


def modules(chapter: str) -> list[str]:
    """The modules of a chapter of the book, by their dotted names."""
    place = folder(chapter)
    parts = (path.relative_to(place).with_suffix("").parts for path in place.rglob("*.py"))
    dotted = (".".join(("pgrerun", "chapters", chapter, *some)) for some in parts)
    return sorted(name.removesuffix(".__init__") for name in dotted)


@cache
def info(chapter: str) -> Info:
    """What the chapter's chapter.toml says; BookError where it is damaged."""
    file = folder(chapter) / _FILE
    try:
        found = Info.model_validate(tomllib.loads(file.read_text("utf-8")))
        own = {f"parameters.{name}": one.profiles for name, one in found.parameters.items()}
        for name, values in {"minutes": found.minutes, **own}.items():
            if set(values) != set(PROFILES):
                raise ValueError(f"{name} needs a value for each of {', '.join(PROFILES)}")
        for name, parameter in found.parameters.items():
            known = name in ChapterParameters.model_fields
            if not name.isidentifier() or parameter.own == known:
                raise ValueError(
                    f"parameter {name} needs a range or a pattern if it is the chapter's own"
                )
    except (OSError, ValueError) as error:
        raise BookError(f"{file} can't be used: {error}") from None
    return found


def unknown(word: object, words: Sequence[str]) -> str:
    """A word that is none of `words`, quoted and not at any length, and which there are."""
    return f"{word!r:.100}; {nearest(str(word), words)}"


def nearest(word: str, words: Sequence[str]) -> str:
    """A clause that names the most similar of `words`, if any is, and then all of them."""
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return (f"did you mean {close[0]}? There" if close else "there") + f" are: {', '.join(words)}"


@cache
def chapter_model(chapter: str) -> type[ChapterParameters]:
    """The model of a chapter's parameters; ParameterError for a name that is no chapter."""
    found = info(chapter)
    own = {name: one.field() for name, one in found.parameters.items() if one.own}
    return create_model(chapter, __base__=ChapterParameters, __doc__=found.about, **own)


def profile_values(chapter: str, profile: str) -> dict[str, Any]:
    """All parameters of a chapter as a profile sets them."""
    chapter_model(chapter)
    if profile not in PROFILES:
        raise ParameterError(f"There is no profile {unknown(profile, PROFILES)}.")
    common = {"server": "", "programs": "", "seed": 1990, "pairs": _PAIRS[profile]}
    own = {name: one.profiles[profile] for name, one in info(chapter).parameters.items()}
    return {"profile": profile} | common | own


def reaching(chapter: str, name: str, least: float) -> list[str]:
    """The profiles that set a parameter of the chapter to `least` or more."""
    values = {profile: profile_values(chapter, profile).get(name) for profile in PROFILES}
    return [profile for profile, value in values.items() if value is not None and value >= least]


def chapter_parameters(
    chapter: str, given: Mapping[str, Any], profile: str = "ci"
) -> ChapterParameters:
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


def recorded(given: ChapterParameters) -> dict[str, Any]:
    """The values as a run record keeps them: addresses only where the reader wants them kept."""
    values = given.model_dump()
    if not passwords.keeps_address():
        values |= dict.fromkeys(addresses(given), passwords.LEFT_OUT)
    return values


def addresses(given: ChapterParameters) -> dict[str, str]:
    """The parameters that name somebody's server or storage, where they aren't empty."""
    schema = type(given).model_json_schema()["properties"]
    return {
        name: value
        for name, value in given.model_dump().items()
        if value and (name == "server" or "pattern" in schema[name])
    }


def from_namespace(chapter: str, namespace: Mapping[str, Any]) -> ChapterParameters:
    """The parameters of a chapter, out of its notebook's globals.

    papermill injects a misspelt name as one more variable, so every plain global
    that is no parameter is refused; call this before a notebook makes variables
    of its own. A value that differs from the `ci` column, or that papermill
    injected, was given; the rest comes from `profile`.
    """
    model = chapter_model(chapter)
    injected = _injected(namespace)
    plain = {
        name: value
        for name, value in namespace.items()
        if name in injected
        or (type(value) in _PLAIN and not name.startswith("_") and name not in _NOT_OURS)
    }
    ci = profile_values(chapter, "ci")
    missing = model.model_fields.keys() - plain.keys()
    if missing:
        raise ParameterError(
            f"Chapter {chapter}: the notebook sets no {', '.join(sorted(missing))}. Its cell tagged"
            " `parameters` must run first and set every parameter."
        )
    given = {
        n: v
        for n, v in plain.items()
        if n in injected or n not in ci or (v, type(v)) != (ci[n], type(ci[n]))
    }
    try:
        return chapter_parameters(chapter, given)
    except ParameterError as error:
        if "server" in injected and "password" in str(error):
            raise ParameterError(f"{error} {_NOTEBOOK_HAS_IT}") from None
        raise


def _injected(namespace: Mapping[str, Any]) -> set[str]:
    """Names that papermill's own cell sets; IPython keeps the source of every cell in `In`."""
    history = namespace.get("In", [])
    if not isinstance(history, list):
        raise ParameterError("There is no parameter 'In': it is a name of the notebook's own.")
    injected = [ast.parse(cell) for cell in history if cell.startswith("# Parameters\n")]
    return {
        node.id
        for tree in injected
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _fault(model: type[ChapterParameters], fault: Mapping[str, Any]) -> str:
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return f"there is no parameter {unknown(name, list(model.model_fields))}"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    secret = name == "server" or fault["type"] == "string_pattern_mismatch"
    given = "" if secret else f"; {fault['input']!r:.100} was given"
    return f"{name} must be {_expected(model, name)}{given}"


def _expected(model: type[ChapterParameters], name: str) -> str:
    """In words: "a whole number from 1 to 64 (connections)"."""
    schema = model.model_json_schema()["properties"][name]
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if "pattern" in schema:
        return str(schema["allowed"])
    kind = {
        "integer": "a whole number",
        "number": "a number",
        "string": "text",
        "boolean": "True or False",
    }
    words = kind[schema["type"]]
    if "minimum" in schema:
        least, most = (str(schema[end]).removesuffix(".0") for end in ("minimum", "maximum"))
        words += f" from {least} to {most}"
    return words + (f" ({schema['unit']})" if "unit" in schema else "")


def table(chapter: str) -> list[dict[str, Any]]:
    """A row per parameter: name, description, expected (range, unit), each profile's value."""
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
            given = f", not as {word!r:.100}" if word.isidentifier() else ""
            raise ParameterError(
                f"A parameter is given as name=value, for example -p pairs=15{given}."
            )
        values[name] = _typed(text)
    return values


def _typed(text: str) -> Any:
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    if not text.isascii() or "_" in text:  # Python takes more for a number than a reader does
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def require_writable(out: Path, what: str) -> None:
    """ParameterError, before anything is started, unless `what` can be put there in one step."""
    folder, problem = out.absolute().parent, ""
    if out.is_dir():
        problem = "it is a folder"
    elif not folder.is_dir():
        problem = f"there is no folder {folder}"
    elif not all(os.access(place, os.W_OK) for place in (folder, out) if place.exists()):
        problem = "this account may not write there"
    if problem:
        raise ParameterError(
            f"{what} can't be written to {out}: {problem}. Name another place with --out."
        )
