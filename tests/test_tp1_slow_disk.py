"""TP1's ladder and the report's program on a disk that makes them wait: counts, not times."""

import pytest
from servers import small_chapter

from pgrerun.chapters.tp1 import charts
from pgrerun.chapters.tp1.experiments import slow_disk
from pgrerun.chapters.tp1.experiments.overlap import COPIES
from pgrerun.chapters.tp1.variants import ALONE, APPEND, LONE, PAIR, SQL, STABLE, TOGETHER
from pgrerun.lab.experiment import Block


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    with small_chapter("tp1", folder, pairs=5, counted=10, cycles=10) as opened:
        yield opened


def test_each_command_of_the_report_is_followed_by_computing():
    plain = SQL.script("probing")
    script = slow_disk.computing(plain, 7).splitlines()
    added = [line for line in script if "generate_series(1, 7)" in line]
    assert len(added) == 5
    assert [line for line in script if line not in added] == plain.splitlines()


def test_computing_asks_the_disk_for_nothing(chapter):
    ladder = slow_disk.SlowLadder(chapter)
    few, many = (ladder.measured(LONE, Block(0, 1, 0), rows) for rows in (2, 250_000))
    assert many["computing"] == 5 * 250_000
    # within what a pool that is filled once more saves or costs
    assert abs(many["reads"] - few["reads"]) < 10 and abs(many["writes"] - few["writes"]) < 10


def test_one_trial_that_is_far_off_does_not_take_the_rows_to_the_most():
    fitted, wanted = slow_disk.Computing(), 0.42
    fitted.correct(0.01, 0.6, wanted)
    fitted.correct(0.01, 0.6, wanted)  # nothing more, although thousands of rows are computed
    assert fitted.rows <= 4 * 20_000


def test_the_slowed_ladder_asks_the_disk_for_fewer_and_fewer_requests(chapter):
    slow_disk.ladder(chapter)
    reads, writes = (chapter.table(slow_disk.LADDER, of).median() for of in ("reads", "writes"))
    assert reads[ALONE] > reads[APPEND] and reads[ALONE] > reads[LONE] > reads[STABLE]
    assert writes[APPEND] > writes[STABLE] > 0 and writes[TOGETHER] > 0
    disk, tps = (chapter.table(slow_disk.LADDER, of) for of in ("disk", "throughput"))
    assert (disk <= 1.01).all().all()  # one request at a time
    most = slow_disk.RATE / (reads + writes)
    assert (tps.median() <= 1.2 * most).all()
    assert chapter.disk(slow_disk.LADDER) == "disk slowed to 2,000 reads/s and 2,000 writes/s"
    assert chapter.disk(slow_disk.LADDER) in charts.slowed_ladder(chapter).caption
    rows = chapter.table(slow_disk.LADDER, "computing")
    assert (rows > 0).all().all()  # fitted anew in each block, and the same for all of its rungs
    assert (rows[PAIR] == rows[LONE]).all() and (rows[STABLE] == rows[APPEND]).all()


def test_computing_is_fitted_to_the_printed_share_also_when_the_processor_slows_down():
    fitted, wanted, slower = slow_disk.Computing(), 0.42, 1.0

    def trial():  # of a transaction that waits 10 ms for the disk and 1 ms for its client
        computed = 0.001 + 2e-7 * slower * fitted.rows
        elapsed = computed + 0.011
        return computed / elapsed, 0.010 / elapsed

    for _ in range(3):
        fitted.correct(*trial(), wanted)
    assert trial()[0] == pytest.approx(wanted, rel=0.02)
    slower = 1.5
    assert trial()[0] > 1.1 * wanted
    for _ in range(3):
        fitted.correct(*trial(), wanted)
    assert trial()[0] == pytest.approx(wanted, rel=0.02)


def test_two_copies_of_the_program_take_the_slowed_disk_twice_as_long_or_less(chapter):
    slow_disk.read_compute_write(chapter)
    shares = chapter.table(slow_disk.PROGRAM, "disk")
    assert list(shares) == list(COPIES) and (shares > 0).all().all() and (shares <= 1).all().all()
    assert "slowed disk" in charts.slowed_program(chapter).description
    assert (chapter.table(slow_disk.PROGRAM, "processor") > 0).all().all()
    assert chapter.disk(slow_disk.PROGRAM) == "disk slowed to 500 reads/s and 500 writes/s"
