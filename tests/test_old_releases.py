"""Every chapter runs on old releases: what one can't show is set aside, with the release that can.

At the smallest parameters: numbers mean nothing here, only that there are reasons in place of
errors. Releases that weren't fetched are skipped. All chapters on four releases take half an hour,
so that without PGRERUN_ALL_RELEASES=1 each runs on the oldest that is here, which lacks most, and a
few on each of the others.
"""

import json
import os
import re

import pytest

from pgrerun.lab.server import bundled, fetched, releases
from pgrerun.parameters import chapter_parameters, chapters, info
from pgrerun.record import claims
from pgrerun.site import gates
from pgrerun.site.book import RUN_NAME, Book
from pgrerun.site.execution import ChapterFailed, execute

NEWEST = fetched.table()[-1].release if fetched.table() else ""
# Every chapter runs on the bundled release wherever the book is made: not here once more.
OWN = releases.named(bundled().number)
RELEASES = ["9.3", "11", "14", *([NEWEST] if NEWEST != OWN else [])]
# `since_when` compares releases itself, whatever programs it is given; `wisconsin_cluster` asks
# PostgreSQL for three of the queries of `wisconsin`, and takes its time for Spark.
CHAPTERS = [one for one in chapters() if one not in ("since_when", "wisconsin_cluster")]
_EACH = 6  # of so many chapters one runs on a release that isn't the oldest
# What a reason must not show: a place on this machine, a statement, an error of the code.
_RAW = re.compile(r"/(tmp|var|home|root)/|LINE \d+:|Traceback|Error\b")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def smallest(chapter: str) -> dict[str, int | float]:
    """The least value of each parameter of the chapter's own, and of the repeats."""
    own = info(chapter).parameters.items()
    return {"pairs": 5} | {name: one.range[0] for name, one in own if one.range is not None}


def chosen(chapter: str, release: str, here: list[str]) -> bool:
    """Whether a chapter runs on a release of those that are `here`, in the order of `RELEASES`."""
    place = here.index(release)
    turn = CHAPTERS.index(chapter) % _EACH
    return place == 0 or turn == place or bool(os.environ.get("PGRERUN_ALL_RELEASES"))


def test_each_chapter_is_tried_on_the_oldest_release_and_each_release_on_some(monkeypatch):
    monkeypatch.delenv("PGRERUN_ALL_RELEASES", raising=False)
    here = RELEASES[1:]
    tried = {one: [chapter for chapter in CHAPTERS if chosen(chapter, one, here)] for one in here}
    assert tried["11"] == CHAPTERS and all(0 < len(some) < 4 for some in list(tried.values())[1:])
    monkeypatch.setenv("PGRERUN_ALL_RELEASES", "1")
    assert all(chosen(chapter, one, here) for chapter in CHAPTERS for one in here)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_runs_on_a_release(chapter, release, tmp_path):
    fetched_ones = {one.release for one in fetched.here()}
    here = [one for one in RELEASES if one in fetched_ones]
    if release not in here:
        pytest.skip(f"PostgreSQL {release} wasn't fetched (`pgrerun releases fetch`)")
    if not chosen(chapter, release, here):
        pytest.skip(f"{chapter} runs on {here[0]} here; PGRERUN_ALL_RELEASES=1 runs all on all")
    given = chapter_parameters(chapter, smallest(chapter) | {"programs": release})
    runs = tmp_path / "runs"
    environment = {"PGRERUN_RUNS": str(runs), RUN_NAME: "old"}
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
    aside = [one for one in record if one["verdict"] == "not testable here"]
    assert [one for one in aside if _RAW.search(one["note"])] == []
