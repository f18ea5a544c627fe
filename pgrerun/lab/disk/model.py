"""What a disk takes for a request."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Heads:
    """The moving parts of a disk: cylinders, tracks (bytes), seek times and revolution (seconds).

    A seek over d cylinders takes near_base + near_root * sqrt(d) up to `near_most` cylinders, and
    far_base + far_each * d beyond. Then the place has to come round.
    """

    cylinders: int
    tracks: int  # of a cylinder
    track_bytes: int
    revolution: float
    near_most: int
    near_base: float
    near_root: float
    far_base: float
    far_each: float


# Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994:
# 72 sectors of 512 bytes, 4 002 revolutions per minute. Its controller takes 2.2 ms per request.
HP_97560 = Heads(
    cylinders=1962,
    tracks=19,
    track_bytes=72 * 512,
    revolution=60 / 4002,
    near_most=383,
    near_base=3.24e-3,
    near_root=0.4e-3,
    far_base=8e-3,
    far_each=0.008e-3,
)


@dataclass(frozen=True)
class Disk:
    """Seconds that a disk takes for a read, a write and a flush; it serves one at a time.

    read, write, flush  0 passes the disk by, and waits for nobody
    drawn               times are drawn: exponential, with those as means
    seed                of the draws
    heads               a seek and a rotation come on top for reads and writes, by the distance to
                        the request before
    only                only files whose path below the data directory begins so ("base/")
    offset              only requests at this place (bytes) of a file
    """

    read: float = 0.0
    write: float = 0.0
    flush: float = 0.0
    drawn: bool = False
    seed: int = 0
    heads: Heads | None = None
    only: str = ""
    offset: int | None = None

    def __post_init__(self) -> None:
        if min(self.read, self.write, self.flush) < 0:
            raise ValueError("a disk takes no negative time")

    @classmethod
    def of_rate(cls, requests: float, *, drawn: bool = False, seed: int = 0) -> "Disk":
        """One that does so many requests per second, reads, writes and flushes alike."""
        return cls(1 / requests, 1 / requests, 1 / requests, drawn=drawn, seed=seed)

    @property
    def words(self) -> str:
        """How it differs from the machine's own: "disk slowed to 40 requests/s". Empty if not."""
        if self.heads:
            return "disk slowed by seeks and rotation"
        times = {"reads": self.read, "writes": self.write, "flushes": self.flush}
        if self.read and len(set(times.values())) == 1:
            times = {"requests": self.read}
        per_second = {kind: 1 / taken for kind, taken in times.items() if taken}
        rates = [
            f"{rate:,.0f} {kind}/s" if rate >= 100 else f"{rate:.3g} {kind}/s"
            for kind, rate in per_second.items()
        ]
        place = f" of {self.only.strip('/')}" if self.only else ""
        return f"disk slowed to {' and '.join(rates)}{place}" if rates else ""
