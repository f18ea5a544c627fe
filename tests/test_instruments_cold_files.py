"""Cold files: what reading them fetches, and places where nothing can be forgotten."""

import os
from functools import partial

import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import cold_files, process_table

BLOCKS = 1024 * 1024 // cold_files.BLOCK


@pytest.fixture
def forgettable(base):
    """The base directory, on a disk whose files the operating system forgets when asked."""
    try:
        cold_files.require_forgettable()
    except CannotMeasure as reason:
        pytest.skip(str(reason))
    return base


def test_a_scratch_file_has_its_size_and_is_gone_afterwards(base):
    with cold_files.scratch(2) as path:
        assert path.is_relative_to(base) and path.stat().st_size == 2 << 20
    with pytest.raises(ValueError, match="told"), cold_files.scratch(1):
        raise ValueError("told")
    assert not any(base.iterdir())


def test_all_of_a_forgotten_file_is_fetched_and_again_next_time(forgettable):
    with cold_files.scratch(1) as path:
        for _ in range(2):
            assert cold_files.fetched(path, range(BLOCKS)) == 1 << 20
        assert cold_files.fetched(path, []) == 0
        assert cold_files.BLOCK <= cold_files.fetched(path, [7]) <= 1 << 20


@pytest.mark.parametrize("direct", [False, True])
def test_all_places_are_read_in_either_way(forgettable, direct):
    with cold_files.scratch(1) as path:
        places = range(0, 1 << 20, 1 << 18)
        read = partial(cold_files.read, path, places, 1 << 18, direct=direct)
        assert fetched_by(read) == 1 << 20
        with cold_files.opened(path, direct=direct) as file:
            assert os.fstat(file).st_size == 1 << 20
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(file)


def test_a_link_is_not_followed_nor_a_pipe_waited_for(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError):
            cold_files.forget(tmp_path / name)
        with pytest.raises(OSError), cold_files.opened(tmp_path / name):
            pass
    cold_files.forget(tmp_path / "file")


def fetched_by(read):
    before = process_table.bytes_fetched()
    read()
    return process_table.bytes_fetched() - before


def test_nothing_is_read_ahead_where_that_is_asked_for(forgettable):
    fetched = {}
    for ahead in (True, False):
        with cold_files.scratch(1) as path:
            read = partial(cold_files.read, path, [0, 16384, 32768], 16384, ahead=ahead)
            fetched[ahead] = fetched_by(read)
    assert fetched[False] == 3 * 16384 < fetched[True]


def test_a_file_system_without_direct_reads_is_told(base, monkeypatch):
    def refuse(path, flags):
        raise OSError(22, "Invalid argument")

    with cold_files.scratch(1) as path, monkeypatch.context() as patch:
        patch.setattr(cold_files.os, "open", refuse)
        with pytest.raises(CannotMeasure, match="Invalid argument"):
            cold_files.read(path, [0], cold_files.BLOCK, direct=True)
        with pytest.raises(OSError, match="Invalid argument"):
            cold_files.read(path, [0], cold_files.BLOCK)


def test_files_in_memory_are_not_forgotten(small_disk):
    small_disk("4m")
    with pytest.raises(CannotMeasure, match="PGRERUN_TMPDIR"):
        cold_files.require_forgettable()
