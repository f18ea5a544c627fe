"""Every chapter runs on old releases: what one can't show is set aside, with the release that can.

At the smallest parameters: numbers mean nothing here, only that there are reasons in place of
errors. Releases that were neither fetched nor registered are skipped. All chapters on four of them
take half an hour, so that `make releases` alone runs them, and `make test` one chapter on one.
"""

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
BUILDS = {name: str(programs.bindir) for name, programs in builds_here().items()}
RELEASES = ["8.2", "8.3", "9.1", "9.2", "9.3", "11", "14", *([NEWEST] if NEWEST != OWN else [])]
# `since_when` compares releases itself, whatever programs it is given; `wisconsin_cluster` asks
# PostgreSQL for three of the queries of `wisconsin`, and takes its time for Spark.
CHAPTERS = [one for one in chapters() if one not in ("since_when", "wisconsin_cluster")]
# What a reason must not show: a place on this machine, a statement, an error of the code.
_RAW = re.compile(r"/(tmp|var|home|root)/|LINE \d+:|Traceback|Error\b")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def chosen(chapter: str, release: str) -> bool:
    """Whether a chapter runs on a release: one on one, with PGRERUN_ALL_RELEASES=1 all on all."""
    return (chapter, release) == ("hot", "11") or bool(os.environ.get("PGRERUN_ALL_RELEASES"))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_runs_on_a_release(chapter, release, tmp_path):
    places = BUILDS | {one.release: str(one.programs.bindir) for one in fetched.here()}
    if not chosen(chapter, release):
        pytest.skip(
            "hot runs on 11; `make releases` runs all chapters on all releases that are here"
        )
    if release not in places:
        pytest.skip(f"PostgreSQL {release} is neither fetched nor registered (`pgrerun releases`)")
    given = chapter_parameters(chapter, smallest(chapter) | {"programs": places[release]})
    runs = tmp_path / "runs"
    # no system of then beside it, which would be run once more for each release
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment = {"PGRERUN_RUNS": str(runs), RUN_NAME: "old"} | cache
    out = tmp_path / "executed.ipynb"
    source = Book().notebook(chapter)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    given = given.model_dump()
    try:
        execute(source, out, given, title=chapter, scratch=scratch, environment=environment)
    except ChapterFailed as failure:  # which says where, but only in its notebook
        pytest.fail(_COLOURS.sub("", f"{failure.traceback[-3000:]}\n{failure}"), pytrace=False)
    gates.check_chapter(out)
    record = json.loads((runs / "old" / chapter / "verdicts.json").read_text())
    assert {one["claim"] for one in record} == {
        claim.id for claim in claims.ledger().values() if claim.chapter == chapter
    }
    aside = [one for one in record if one["verdict"] == "not tested here"]
    assert [one for one in aside if _RAW.search(one["note"])] == []
