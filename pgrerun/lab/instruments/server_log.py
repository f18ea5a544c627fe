"""What a server's log (`Cluster.log`) tells of checkpoints and of waits for locks."""

import re
from datetime import datetime


def checkpoints(log: str) -> list[float]:
    """When checkpoints began, in seconds since the epoch; the log's times are UTC."""
    stamps = re.findall(r"^(\S+ \S+) UTC \[\d+\] LOG:  checkpoint starting", log, re.MULTILINE)
    return [datetime.fromisoformat(f"{stamp}+00:00").timestamp() for stamp in stamps]


def lock_waits(log: str) -> list[float]:
    """How long each wait for a lock took that the log tells the end of, in ms.

    With log_lock_waits on these are the waits longer than deadlock_timeout.
    """
    found = re.findall(r"LOG:  process \d+ acquired \w+ on .* after ([\d.]+) ms", log)
    return [float(milliseconds) for milliseconds in found]
