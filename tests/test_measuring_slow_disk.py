"""The measuring chapter's checks of the slowed disk: what is recorded and drawn."""

import pytest
from servers import small_chapter

from pgrerun.chapters.measuring import charts
from pgrerun.chapters.measuring.experiments import slow_disk


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    with small_chapter("measuring", folder, pairs=5, milliseconds=50) as opened:
        yield opened


def test_no_request_is_faster_than_it_was_set_to_be(chapter):
    slow_disk.service(chapter)
    found = chapter.table(slow_disk.SERVICE, "over set")
    assert set(found) == {slow_disk.as_set(seconds) for seconds in slow_disk.SET}
    assert (found >= 1).all().all()
    assert "slowed disk" in charts.slowed_as_set(chapter).description


def test_programs_do_not_outrun_the_disk(chapter):
    slow_disk.queue(chapter)
    measured = chapter.table(slow_disk.QUEUE, "measured")
    predicted = chapter.table(slow_disk.QUEUE, "predicted")
    assert list(measured) == ["1 program", "2 programs", "4 programs"]
    # of so few requests the mean that was drawn is off by a third at most
    assert (measured <= 1.5 / (2 * slow_disk.MEAN)).all().all()
    assert (predicted["4 programs"] > predicted["1 program"]).all()
    drawn = charts.queue_of_one(chapter).description
    assert "Simulated" in drawn and "slowed disk" in drawn
