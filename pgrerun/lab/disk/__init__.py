"""What makes reads, writes and flushes take the time of another disk.

    slowed    what a disk takes for a request, constant or drawn; a disk that clusters are started
              on, and that can be slowed while they run
    library   disk.c, compiled

Most documents speak of machines that waited for a disk. Here the kernel answers nearly every
request from memory; so each request that leaves the buffer pool is made to wait, whoever answers
it, in a queue of one that all processes share; where a document's machine had memory beside its
pool, the disk may have as much. What is measured on such a disk is measured, but on a disk that
doesn't exist: it has a mark and a word of its own wherever it is shown.
"""

from pgrerun.lab.disk.slowed import Counts, Disk, Slowed, told

__all__ = ["Counts", "Disk", "Slowed", "told"]
