"""What a disk takes for a request."""

from dataclasses import dataclass

PAGE = 8192
MOST = 65536 * PAGE  # `PLACES` in disk.c


@dataclass(frozen=True)
class Disk:
    """Seconds that a disk takes for a read, a write and a flush; it serves one at a time.

    read, write, flush  0 passes the disk by, and waits for nobody
    drawn               times are drawn: exponential, with those as means
    seed                of the draws
    only                only files whose path below the data directory begins so ("base/")
    flushed             flushes of such files alone
    offset              only requests at this place (bytes) of a file
    memory              bytes beside it, as of a kernel's: pages of relations that were used last
                        lie there, of all before as many as fit. What is there is read at once, and
                        what is written stays there until its place is needed: then the disk writes
                        it, and nobody waits. All else (catalogs, WAL) costs flushes alone
    ahead, gathering    of the processes whose title has this, so many reads and so many writes are
                        served as one: as a kernel reads ahead for who goes through a file, and
                        gathers what he writes
    """

    read: float = 0.0
    write: float = 0.0
    flush: float = 0.0
    drawn: bool = False
    seed: int = 0
    only: str = ""
    flushed: str = ""
    offset: int | None = None
    memory: int = 0
    ahead: int = 1
    gathering: str = ""

    def __post_init__(self) -> None:
        if min(self.read, self.write, self.flush) < 0:
            raise ValueError("a disk takes no negative time")
        if not 0 <= self.memory <= MOST:
            raise ValueError(f"memory beside a disk has {MOST} bytes at most")

    @property
    def words(self) -> str:
        """How it differs from the machine's own: "disk slowed to 40 requests/s". Empty if not."""
        times = {"reads": self.read, "writes": self.write, "flushes": self.flush}
        if self.read and len(set(times.values())) == 1:
            times = {"requests": self.read}
        rates = [f"{_per_second(taken)} {kind}/s" for kind, taken in times.items() if taken]
        place = f" of {self.only.strip('/')}" if self.only else ""
        beside = f" beside {self.memory / 2**20:.3g} MB of memory" if self.memory else ""
        return f"disk slowed to {' and '.join(rates)}{place}{beside}" if rates else ""


def _per_second(seconds: float) -> str:
    """How often something of so many seconds fits into one."""
    return f"{1 / seconds:,.0f}" if seconds <= 0.01 else f"{1 / seconds:.3g}"
