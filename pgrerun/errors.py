"""The errors that a reader can mend.

Every message is one paragraph: what happened, to what, and what to do about it.
The command prints the message alone and exits with `exit_status`; notebooks show
the same paragraph in place of a traceback (see `chapter.py`).
Anything that is not a `RerunError` is a bug of ours and keeps its traceback.
"""


def printable(text: str) -> str:
    """Somebody's text on one line, with an escape for each character that can't be printed."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class RerunError(Exception):
    """Base of everything that is reported to the reader without a traceback."""

    exit_status = 1


class ParameterError(RerunError):
    """A parameter or a command-line word that can't be used; nothing was started."""

    exit_status = 2


class ServerError(RerunError):
    """A PostgreSQL server that can't be found, started, reached or trusted, or that fails."""


class Refused(ServerError):
    """A statement or a tool of ours that a server didn't carry out; it may carry out others."""


class FetchError(RerunError):
    """A package that can't be fetched, or isn't what was asked for; nothing of it is kept."""


class RecordError(RerunError):
    """A run record that can't be read or written."""


class QueryError(RerunError):
    """A query in QUEL or POSTQUEL that can't be read, translated or run.

    `line` and `column`, counted from 1, say where in the text it starts to go wrong.
    """

    def __init__(self, reason: str, line: int = 1, column: int = 1):
        super().__init__(reason)
        self.line, self.column = line, column


class BookError(RerunError):
    """A chapter or a page that must not be published as it is."""


class CannotMeasure(RerunError):
    """This machine or server lacks what an experiment needs.

    Claims behind the experiment are set aside with `str(error)` as the reason.
    `capability` names what is missing, in the words that `pgrerun doctor` prints.
    The output that says so in an executed notebook has it in its metadata, below `METADATA`.
    """

    METADATA = "pgrerun_set_aside"

    def __init__(self, capability: str, reason: str):
        super().__init__(reason)
        self.capability = capability
