"""Every chapter runs on old releases: what one can't show is set aside, with the release that can.

At the smallest parameters: numbers mean nothing here, only that there are reasons in place of
errors. Releases that were neither fetched nor registered are skipped. All chapters on four of them
take half an hour, so that `make releases` alone runs them, and `make test` one chapter on one.
"""

import itertools
import json
import os
import re

import pytest
from servers import builds_here, smallest

from pgrerun.lab.server import bundled, fetched, releases
from pgrerun.parameters import chapter_parameters, chapters
from pgrerun.record import claims
from pgrerun.site import gates
from pgrerun.site.book import RUN_NAME, Book
from pgrerun.site.execution import ChapterFailed, execute

NEWEST = fetched.table()[-1].release if fetched.table() else ""
# Every chapter runs on the bundled release wherever the book is made: not here once more.
OWN = releases.named(bundled().number)
RELEASES = ["8.2", "8.3", "9.1", "9.2", "9.3", "11", "14", *([NEWEST] if NEWEST != OWN else [])]
PLACES = {name: str(programs.bindir) for name, programs in builds_here().items()}
PLACES |= {one.release: str(one.programs.bindir) for one in fetched.here()}
# `since_when` compares releases itself, whatever programs it is given; `wisconsin_cluster` asks
# PostgreSQL for three of the queries of `wisconsin`, and takes its time for Spark.
CHAPTERS = [one for one in chapters() if one not in ("since_when", "wisconsin_cluster")]
# What a reason must not show: a place on this machine, a statement, an error of the code.
_RAW = re.compile(r"/(tmp|var|home|root)/|LINE \d+:|Traceback|Error\b")


@pytest.mark.parametrize(
    ("chapter", "release"),
    itertools.product(CHAPTERS, RELEASES)
    if os.environ.get("PGRERUN_ALL_RELEASES")  # by `make releases`
    else [("hot", "11")],
)
def test_a_chapter_runs_on_a_release(chapter, release, tmp_path):
    if release not in PLACES:
        pytest.skip(f"PostgreSQL {release} is neither fetched nor registered (`pgrerun releases`)")
    given = chapter_parameters(chapter, smallest(chapter) | {"programs": PLACES[release]})
    runs, out, scratch = (tmp_path / name for name in ("runs", "executed.ipynb", "scratch"))
    scratch.mkdir()
    environment = {
        "PGRERUN_RUNS": str(runs),
        RUN_NAME: "old",
        # no system of then beside it, which would be run once more for each release
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    how = {"title": chapter, "scratch": scratch, "environment": environment}
    try:
        execute(Book().notebook(chapter), out, given.model_dump(), **how)
    except ChapterFailed as failure:  # which says where, but only in its notebook
        pytest.fail(f"{failure.traceback[-3000:]}\n{failure}", pytrace=False)
    gates.check_chapter(out)
    record = json.loads((runs / "old" / chapter / "verdicts.json").read_text())
    of_chapter = {claim.id for claim in claims.ledger().values() if claim.chapter == chapter}
    assert {one["claim"] for one in record} == of_chapter
    aside = [one["note"] for one in record if one["verdict"] == "not tested here"]
    assert [note for note in aside if _RAW.search(note)] == []
