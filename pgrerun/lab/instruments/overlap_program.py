"""One copy of the report's small program: read, compute, write (see `overlap.py`).

It imports nothing but the standard library, so that a copy is started at once.
"""

import hashlib
import json
import mmap
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = 8192
PAGES = 256  # of each copy's file


def _program(given: Mapping[str, Any]) -> None:
    os.sched_setaffinity(0, {given["cpu"]})
    # O_DIRECT: the disk, not the system's cache; O_DSYNC: a write counts once it is there.
    flags = os.O_RDWR | (os.O_DIRECT | os.O_DSYNC if given["direct"] else 0)
    try:
        descriptor = os.open(given["file"], flags)
    except OSError as error:
        folder = Path(given["file"]).parent
        print(
            f"a file in {folder} can't be written past the system's cache ({error.strerror})",
            flush=True,
        )
        return
    content = mmap.mmap(-1, PAGE)  # O_DIRECT wants an aligned buffer
    rounds, think = range(given["rounds"]), given["think"]
    print("ready", flush=True)
    sys.stdin.readline()
    page, work = memoryview(content), bytes(1024)
    requests, clock = [], time.monotonic
    start, cpu_start = clock(), time.process_time()
    for cycle in range(given["cycles"]):
        place = (cycle * 97 % PAGES) * PAGE
        read = clock()
        os.preadv(descriptor, [page], place)
        requests.append(clock() - read)
        for _ in rounds:
            hashlib.sha256(work)
        if think:
            time.sleep(think)
        written = clock()
        os.pwritev(descriptor, [page], place)
        requests.append(clock() - written)
    took = {"start": start, "end": clock(), "cpu": time.process_time() - cpu_start}
    print(json.dumps(took | {"requests": requests}), flush=True)


if __name__ == "__main__":
    _program(json.loads(sys.argv[1]))
