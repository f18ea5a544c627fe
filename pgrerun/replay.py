"""Claims of the chapters judged again, elsewhere, by the cells that judge them.

A chapter's notebook holds the statements that measure and those that judge. `steps` cuts out what
a few claims need of them, and `judged` executes that on another release, with other parameters.
So there is one experiment and one predicate for a claim, whoever asks; what the cells display on
the way goes nowhere.
"""

import ast
import contextlib
import importlib
import io
import json
import multiprocessing
import multiprocessing.connection
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Lock
from pathlib import Path
from types import CodeType
from typing import Any

import nbformat

from pgrerun import cells, parameters
from pgrerun.chapter import Chapter, Declaration
from pgrerun.errors import BookError, RerunError
from pgrerun.lab.server import Cluster, fetched, private

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
_ASKED = frozenset({"attempt", "judge"})  # the methods of a chapter that matter here
_PREPARING = frozenset({"load", "prepared"})  # what chapters call functions that load relations


@dataclass(frozen=True)
class Step:
    """A statement of a notebook that is executed.

    `claim` is the one that it judges, "" if none; `code` what is executed.
    """

    source: str
    claim: str
    code: CodeType


@dataclass(frozen=True)
class Done:
    """What became of a claim: the judgement as the run record keeps it, and what it took.

    `seconds` are those of the steps since the claim judged before, so that a sum of several is what
    all of them took.
    """

    verdict: Mapping[str, Any]
    seconds: float


def steps(chapter: str, claims: Collection[str]) -> list[Step]:
    """The statements of the chapter's notebook that judging these claims needs, in its order.

    These are the imports, what loads relations, each statement that judges one of the claims (but
    for other evidence `beside`, which decides nothing), each experiment that is declared for one of
    them, and, backwards from there, whatever assigns a name that one of those uses. BookError if
    the notebook judges a claim nowhere.
    """
    notebook = nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    body = [_bare(one) for one in cells.statements(notebook)]
    known: dict[str, Any] = {}
    for statement in body:
        cells.learn(statement, known)
    needed: set[str] = set()
    kept: list[Step] = []
    missing = set(claims)
    for statement in reversed(body):
        claim = _judges(statement)
        assigned = cells.names(statement, ast.Store)
        declared = set(claims).intersection(_declared_for(statement, known))
        imports = isinstance(statement, ast.Import | ast.ImportFrom)
        if claim in missing or assigned & needed or declared or imports or _prepares(statement):
            needed = (needed - assigned) | cells.names(statement, ast.Load)
            missing.discard(claim)
            kept.append(Step(ast.unparse(statement), claim, cells.compiled(statement)))
    if missing:
        raise BookError(f"Chapter {chapter!r} judges {', '.join(sorted(missing))} nowhere.")
    return kept[::-1]


def judged(
    chapter: str,
    claims: Collection[str],
    given: Mapping[str, Any],
    records: Path,
) -> Iterator[Done]:
    """Judge claims of one chapter with these parameters; each as soon as it is.

    `given` are parameters that differ from those of profile ci, such as `programs`; `records` is a
    folder for the run record, which is of no use afterwards. A claim that this release can't show
    is judged as not testable, as on the chapter's page.
    """
    parts = steps(chapter, claims)
    opened = Chapter(
        chapter, parameters.chapter_parameters(chapter, given), records=records, resumed=False
    )
    namespace: dict[str, Any] = {"chapter": opened}
    try:
        began = time.monotonic()
        for step in parts:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(step.code, namespace)
            if step.claim:
                [judgement] = [j for j in opened.evidence.judgements if j.claim.id == step.claim]
                now = time.monotonic()
                yield Done(judgement.as_dict(), now - began)
                began = now
    finally:
        opened.leave()


def _asked(statement: ast.stmt) -> ast.Call | None:
    """The call of `chapter.attempt` or `chapter.judge` that a statement is or assigns."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        owner = value.func.value
        if isinstance(owner, ast.Name) and owner.id == "chapter" and value.func.attr in _ASKED:
            return value
    return None


def _bare(statement: ast.stmt) -> ast.stmt:
    """The statement without the evidence that it gives `beside`."""
    if (call := _asked(statement)) is not None:
        call.keywords = [one for one in call.keywords if one.arg != "beside"]
    return statement


def _prepares(statement: ast.stmt) -> bool:
    """Whether all that a statement does is to call or attempt what loads relations."""
    call = getattr(statement, "value", None)
    if not isinstance(statement, ast.Expr) or not isinstance(call, ast.Call):
        return False
    called = call.args[0] if _asked(statement) is not None else call.func
    return isinstance(called, ast.Attribute) and called.attr in _PREPARING


def _judges(statement: ast.stmt) -> str:
    call = _asked(statement)
    if call is None or call.func.attr != "judge":  # type: ignore[attr-defined]
        return ""
    return str(ast.literal_eval(call.args[0]))


def _declared_for(statement: ast.stmt, known: dict[str, Any]) -> tuple[str, ...]:
    """The claims that the experiment which a statement attempts is declared for."""
    call = _asked(statement)
    if call is None or call.func.attr != "attempt":  # type: ignore[attr-defined]
        return ()
    return getattr(cells.value(call.args[0], known), "declared", Declaration((), ())).claims


def answers(
    requests: Mapping[str, Mapping[str, Any]], at_once: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and answer, as they come, of requests by their names, so many chapters at a time.

    A request: {"release": what `programs` takes, "pairs": blocks, "chapters": {NAME: {"parameters":
    {...}, "claims": [...]}}}. An answer is a judgement with `verdict` and `seconds`, or, with
    `failed`, what became of the `chapter` instead. All that runs for them ends with the iterator.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "pgrerun.replay"],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout
    try:
        with process.stdin as pipe:
            json.dump({"at_once": at_once, "requests": requests}, pipe)
        for line in process.stdout:
            name, answer = json.loads(line)
            yield name, answer
        if process.wait() != 0:
            yield "all releases", _failed("", f"it ended with status {process.returncode}")
    finally:  # also when the notebook is stopped
        process.terminate()
        process.wait()


def _failed(chapter: str, why: str) -> dict[str, Any]:
    return {"chapter": chapter, "failed": why}


def _tell(lock: Lock, name: str, answer: Mapping[str, Any]) -> None:
    with lock:  # a line longer than a pipe's buffer isn't written at once
        print(json.dumps([name, answer]), flush=True)


def _judge(lock: Lock, name: str, chapter: str, request: Mapping[str, Any]) -> None:
    """Tell the judgements of one chapter of a request, in a process of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # instead of `_main`'s
    wanted = request["chapters"][chapter]
    given = wanted["parameters"] | {"programs": request["release"], "pairs": request["pairs"]}
    try:
        with tempfile.TemporaryDirectory(prefix="pgrerun-replay-") as records:
            for done in judged(chapter, wanted["claims"], given, Path(records)):
                _tell(lock, name, {"verdict": done.verdict, "seconds": done.seconds})
    except Exception as error:  # of one chapter; the others go on
        _tell(lock, name, _failed(chapter, f"{type(error).__name__}: {error}"))
    finally:
        private.close_all()  # a process that was forked ends without `atexit`


def _prepare(release: str) -> None:
    """Make a cluster of a release whose new files all processes copy that are forked from here.

    It ends with this process. One that can't be made is the chapters' to tell of.
    """
    with contextlib.suppress(RerunError, OSError):
        Cluster(fetched.chosen(release)).stop("immediate")


def _main() -> None:
    """Do what `answers` asks for on standard input: a line of JSON for each answer.

    What chapters import, and what initdb makes of a release, each of which takes seconds, is
    imported and made once, and each process begins with it.
    """
    asked = json.load(sys.stdin)
    requests = asked["requests"]
    chapters = list(dict.fromkeys(name for one in requests.values() for name in one["chapters"]))
    for chapter in chapters:
        importlib.import_module(f"pgrerun.chapters.{chapter}")
    context = multiprocessing.get_context("fork")
    lock = context.Lock()
    running: dict[Any, tuple[str, str, BaseProcess]] = {}  # by what tells of their end
    prepared: set[str] = set()

    def end(*_: Any) -> None:
        for _name, _chapter, process in running.values():
            process.terminate()
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    waiting = [
        (name, one) for one in chapters for name in requests if one in requests[name]["chapters"]
    ]
    while waiting or running:
        while waiting and len(running) < asked["at_once"]:
            name, chapter = waiting.pop(0)
            if name not in prepared:  # while the first of the others run
                prepared.add(name)
                _prepare(requests[name]["release"])
            begun = context.Process(target=_judge, args=(lock, name, chapter, requests[name]))
            begun.start()
            running[begun.sentinel] = (name, chapter, begun)
        for sentinel in multiprocessing.connection.wait(list(running)):
            name, chapter, process = running.pop(sentinel)
            process.join()
            if process.exitcode:
                _tell(lock, name, _failed(chapter, f"it ended with status {process.exitcode}"))


if __name__ == "__main__":
    _main()
