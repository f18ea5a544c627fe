"""Experiment 1 on a slowed disk: the pages that the reader asks for, counted by the disk."""

from servers import small_chapter

from pgrerun.chapters.explorations import charts
from pgrerun.chapters.explorations.experiments import buffer_pool, slow_disk
from pgrerun.record.printed.explorations import heap_pages


def test_the_reader_writes_what_the_update_left_and_waits_for_it(tmp_path):
    with small_chapter("explorations", tmp_path, pairs=5, slowed_tuples=5000) as chapter:
        slow_disk.readers(chapter)
        reads, writes, time = (
            chapter.table(slow_disk.NAME, metric) for metric in ("reads", "writes", "time")
        )
        clean, dirty = (
            f"{buffer_pool.BELOW}: {variant}" for variant in (buffer_pool.CLEAN, buffer_pool.DIRTY)
        )
        pages = heap_pages(5000)
        assert (reads[[clean, dirty]].median() <= pages + 10).all()
        assert (writes[dirty] > 0).all() and writes[clean].median() == 0
        assert (time >= 1000 * (reads + writes) / slow_disk.RATE).all().all()
        large = [f"{buffer_pool.ABOVE}: {x}" for x in (buffer_pool.CLEAN, buffer_pool.DIRTY)]
        assert (writes[large].median() == 0).all() and (reads[large].median() == 0).all()
        assert "slowed disk" in charts.slowed_readers(chapter).description
