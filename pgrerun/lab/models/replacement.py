"""Page replacement: what a clock and an LRU list keep of the same requests for pages.

The clock is PostgreSQL's (src/backend/storage/buffer/README, "Normal Buffer Replacement Strategy"):
a use adds one to a page's usage count, up to five; whoever needs a buffer moves the hand on, which
takes one away from each page that it passes, and takes the first that has none left.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence

MAX_USAGE = 5
"""BM_MAX_USAGE_COUNT of src/include/storage/buf_internals.h."""


class Clock:
    """A pool of `size` buffers under PostgreSQL's clock sweep."""

    def __init__(self, size: int):
        self._buffers: list[Hashable | None] = [None] * size
        self._usage: dict[Hashable, int] = {}
        self._hand = 0

    @classmethod
    def holding(cls, buffers: Sequence[tuple[Hashable, int] | None], hand: int = 0) -> "Clock":
        """A pool as somebody left it: each buffer's page and usage count (None for an empty one),
        and where the hand stands.
        """
        pool = cls(len(buffers))
        pool._buffers = [held and held[0] for held in buffers]
        pool._usage = dict(held for held in buffers if held)
        pool._hand = hand
        return pool

    def use(self, page: Hashable) -> None:
        """Request one page: a hit, or a read that displaces another page."""
        if page in self._usage:
            self._usage[page] = min(MAX_USAGE, self._usage[page] + 1)
            return
        while self._usage.get(victim := self._buffers[self._hand], 0):
            self._usage[victim] -= 1
            self._advance()
        self._usage.pop(victim, None)
        self._buffers[self._hand] = page
        self._usage[page] = 1
        self._advance()

    def _advance(self) -> None:
        self._hand = (self._hand + 1) % len(self._buffers)

    def kept(self, pages: Iterable[Hashable]) -> int:
        """How many of `pages` are in the pool."""
        return sum(page in self._usage for page in pages)


class LRU:
    """A pool of `size` buffers that displaces the page whose last use is longest ago."""

    def __init__(self, size: int):
        self._size = size
        self._pages: OrderedDict[Hashable, None] = OrderedDict()

    @classmethod
    def holding(cls, buffers: Sequence[tuple[Hashable, int] | None], hand: int = 0) -> "LRU":
        """The same pool as `Clock.holding`; the page at the hand counts as the one whose use is
        longest ago.
        """
        pool = cls(len(buffers))
        for held in (*buffers[hand:], *buffers[:hand]):
            if held:
                pool.use(held[0])
        return pool

    def use(self, page: Hashable) -> None:
        """Request one page: a hit, or a read that displaces another page."""
        self._pages[page] = None
        self._pages.move_to_end(page)
        if len(self._pages) > self._size:
            self._pages.popitem(last=False)

    def kept(self, pages: Iterable[Hashable]) -> int:
        """How many of `pages` are in the pool."""
        return sum(page in self._pages for page in pages)
