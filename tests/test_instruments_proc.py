"""What Linux counts of one process: its words are read right, and they count what they say."""

import os
import time

import pytest

from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import proc

STATUS = "Name:\tpostgres\nvoluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t4\n"
IO = """rchar: 1
wchar: 2
syscr: 30
syscw: 4
read_bytes: 8192
write_bytes: 4096
cancelled_write_bytes: 5
"""


@pytest.fixture
def process(tmp_path):
    """A process as the kernel would describe it."""
    (tmp_path / "status").write_text(STATUS)
    (tmp_path / "io").write_text(IO)
    (tmp_path / "schedstat").write_text("2500000000 77 30\n")
    return tmp_path


def test_the_kernels_words_are_read(process):
    assert proc.switches(process) == 34
    assert proc.calls(process) == 34
    assert proc.fetched(process) == 8192
    assert proc.processor_seconds(process) == 2.5


def test_counts_are_those_of_every_process_in_a_text():
    assert proc.counts("syscr", IO + IO.replace("30", "31")) == [30, 31]
    assert proc.counts("sysc[rw]", IO) == [30, 4]
    assert proc.counts("nothing", IO) == []


def test_a_kernel_that_does_not_say_is_told(process):
    (process / "io").write_text(IO.replace("read_bytes", "others"))
    with pytest.raises(CannotMeasure, match="fetched from storage"):
        proc.fetched(process)
    (process / "io").unlink()
    with pytest.raises(CannotMeasure, match="fetched from storage"):
        proc.fetched(process)


def test_a_system_without_a_process_table_is_told(process, monkeypatch):
    monkeypatch.setattr(proc, "THREAD", process)
    proc.require()
    (process / "io").unlink()
    with pytest.raises(CannotMeasure, match="process table"):
        proc.require()


def test_a_threads_reads_are_counted_each():
    def calls_of(reads: int) -> int:
        before = proc.calls(proc.THREAD)
        for _ in range(reads):
            os.read(zeros, 1)
        return proc.calls(proc.THREAD) - before

    zeros = os.open("/dev/zero", os.O_RDONLY)
    try:
        assert calls_of(25) - calls_of(0) == 25  # looking is a call or two itself
    finally:
        os.close(zeros)


def test_whoever_sleeps_gives_up_the_processor():
    waits, switches = proc.waits(), proc.switches(proc.THREAD)
    time.sleep(0.001)
    assert proc.waits() > waits and proc.switches(proc.THREAD) > switches
