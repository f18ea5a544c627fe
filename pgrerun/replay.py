"""Claims of the chapters judged again, elsewhere, by the experiments and rules that judge them.

So there is one experiment and one rule for a claim, whoever asks; what a chapter displays on the
way goes nowhere.
"""

import contextlib
import importlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pgrerun import forking, parameters
from pgrerun.errors import RerunError
from pgrerun.lab.server import Cluster, fetched, private
from pgrerun.notebook import Notebook


def judged(
    chapter: str,
    claims: Collection[str],
    given: Mapping[str, Any],
    records: Path,
) -> Iterator[dict[str, Any]]:
    """Judge claims of one chapter with these parameters; each as soon as it is.

    Of each the `verdict` as the run record keeps it, and the `seconds` since the claim judged
    before, so that a sum of several is what all of them took.

    `given` are parameters that differ from those of profile ci, such as `programs`; `records` is a
    folder for the run record, which is of no use afterwards. Only the experiments run whose rows
    the claims ask for. A claim that this release can't show counts as not tested here, as on the
    chapter's page.
    """
    chosen = parameters.chapter_parameters(chapter, given)
    opened = Notebook(chapter, chosen, records=records)
    try:
        for claim in claims:
            began = time.monotonic()
            with contextlib.redirect_stdout(io.StringIO()):
                opened.run_for(claim)
            verdict = opened.judge(claim).as_dict()
            yield {"verdict": verdict, "seconds": time.monotonic() - began}
    finally:
        opened.leave()


def answers(
    requests: Mapping[str, Mapping[str, Any]], at_once: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and answer, as they come, of requests by their names, so many chapters at a time.

    A request: {"release": what `programs` takes, "pairs": blocks, "chapters": {NAME: {"parameters":
    {...}, "claims": [...]}}}. An answer is a judgement with `verdict` and `seconds`, or, with
    `failed`, what became of the `chapter` instead. All that runs for them ends with the iterator.
    """
    asked = {"at_once": at_once, "requests": requests}
    try:
        yield from map(tuple, forking.answers("pgrerun.replay", asked))
    except ChildProcessError as ended:
        yield "all releases", _failed("", str(ended))


def _failed(chapter: str, why: str) -> dict[str, Any]:
    return {"chapter": chapter, "failed": why}


def _judge(name: str, chapter: str, request: Mapping[str, Any]) -> None:
    """Tell the judgements of one chapter of a request, in a process of its own."""
    wanted = request["chapters"][chapter]
    given = wanted["parameters"] | {"programs": request["release"], "pairs": request["pairs"]}
    try:
        with tempfile.TemporaryDirectory(prefix="pgrerun-replay-") as records:
            for done in judged(chapter, wanted["claims"], given, Path(records)):
                forking.tell([name, done])
    except Exception as error:  # of one chapter; the others go on
        forking.tell([name, _failed(chapter, f"{type(error).__name__}: {error}")])
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
    prepared: set[str] = set()

    def jobs() -> Iterator[tuple[str, str]]:
        for chapter in chapters:
            for name in (one for one in requests if chapter in requests[one]["chapters"]):
                if name not in prepared:  # while the first of the others run
                    prepared.add(name)
                    _prepare(requests[name]["release"])
                yield name, chapter

    for (name, chapter), status in forking.run_each(
        jobs(), asked["at_once"], lambda job: _judge(*job, requests[job[0]])
    ):
        if status:
            forking.tell([name, _failed(chapter, f"it ended with status {status}")])


if __name__ == "__main__":
    _main()
