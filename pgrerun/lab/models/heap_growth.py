"""Pages of a table and of its primary key's index under updates, from the layout of pages alone.

Nothing is measured here: bytes are added up as PostgreSQL lays tuples and index entries out
(src/include/storage/bufpage.h, access/htup_details.h, access/nbtree.h). Every update makes a
version with index entries of its own, as without HOT. With `pruning`, a dead version leaves a line
pointer on its page, and its index entry may go when a leaf is full; without, as under an old
snapshot, both stay whole until vacuum. A HOT update whose versions are pruned at once leaves
nothing behind, so there is nothing to compute for it.

    sizes = grow(100_000, [Step(50_000), Step(20_000, vacuum=True)],
                 width=121, fillfactor=90, pruning=True, seed=1)

gives the sizes after loading and after each step. What comes out is simulated.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

PAGE = 8192  # bytes
PAGE_HEADER, LINE_POINTER, ALIGNMENT = 24, 4, 8
MAX_LINE_POINTERS = 291
"""Line pointers of a page of a table: MaxHeapTuplesPerPage."""

ENTRY = 20
"""Bytes of an index entry of an integer key with its line pointer."""

LEAF = PAGE - PAGE_HEADER - 16
"""Bytes of a leaf without its header and its special space."""

LEAF_FILLFACTOR = 0.9
PAGES_PER_PARENT = 285
"""Leaves below a page of the next level after loading, when that is filled to 70 per cent."""

POSTING_LIST = 16
"""Bytes of the key and header before the row addresses of a posting list."""

ROW_ADDRESS = 6


def aligned(size: int) -> int:
    """Bytes that something of this size takes on a page (MAXALIGN)."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Heap:
    """Pages of a table as byte accounts: what fits, and what dead versions leave until vacuum.

    `width` is a tuple's length in bytes, header included, `fillfactor` the percentage to which
    pages are loaded. Lists with one number per page: `live`, its current tuples; `kept`, dead
    versions that nobody may prune; `dead`, line pointers of pruned versions, to which index entries
    may still point. `page_of` has the page of each tuple's current version, `spare` the pages on
    which vacuum found room.
    """

    def __init__(self, tuples: int, *, width: int, fillfactor: int):
        self._width = aligned(width)
        self._reserve = PAGE * (100 - fillfactor) // 100
        loaded = (PAGE - PAGE_HEADER - self._reserve) // (self._width + LINE_POINTER)
        self.page_of = [number // loaded for number in range(tuples)]
        self.live: list[int] = np.bincount(self.page_of).tolist()
        self.kept = [0] * self.pages
        self.dead = [0] * self.pages
        self.spare: list[int] = []
        self._last = self.pages - 1  # took the last version that had no room on its own page

    @property
    def pages(self) -> int:
        return len(self.live)

    def has_room(self, page: int, reserve: int = 0) -> bool:
        """Whether one more version fits beside what is there and `reserve` bytes."""
        tuples = self.live[page] + self.kept[page] + 1
        pointers = tuples + self.dead[page]
        used = tuples * self._width + pointers * LINE_POINTER
        return pointers <= MAX_LINE_POINTERS and used + reserve <= PAGE - PAGE_HEADER

    def update(self, number: int, *, pruning: bool) -> None:
        """Replace tuple `number` (from 0): on its page if there is room, else elsewhere."""
        old = self.page_of[number]
        new = old if self.has_room(old) else self._elsewhere()
        self.page_of[number] = new
        self.live[new] += 1
        self.live[old] -= 1
        (self.dead if pruning else self.kept)[old] += 1

    def _elsewhere(self) -> int:
        """The page used last, one that vacuum found, or a new one.

        Versions from elsewhere leave alone the room that the fillfactor keeps free.
        """
        while not self.has_room(self._last, self._reserve):
            if self.spare:
                self._last = self.spare.pop()
            else:
                for counts in (self.live, self.kept, self.dead):
                    counts.append(0)
                self._last = self.pages - 1
        return self._last

    def vacuum(self) -> None:
        """Give back what dead versions left, and remember the pages with room."""
        self.kept = [0] * self.pages
        self.dead = [0] * self.pages
        self.spare = [page for page in range(self.pages) if self.has_room(page, self._reserve)]


class Index:
    """Leaves of a unique B-tree on an integer key as byte accounts.

    A leaf holds the entries of a range of keys and a high key. Before it splits, entries of dead
    versions are removed if they may be (bottom-up deletion, PostgreSQL 14), else those of one key
    are put together in a posting list (deduplication, PostgreSQL 13). `used` has the bytes of each
    leaf that are taken.
    """

    def __init__(self, tuples: int):
        loaded = int(LEAF_FILLFACTOR * LEAF) // ENTRY
        self._tuples = tuples
        self._first = list(range(0, tuples, loaded))  # the lowest key of each leaf
        self._entries = [1] * tuples
        self.used = [ENTRY * (1 + min(loaded, tuples - low)) for low in self._first]

    @property
    def leaves(self) -> int:
        return len(self._first)

    @property
    def pages(self) -> int:
        """All pages: the leaves, the levels above them, the meta page."""
        pages, level = 1 + self.leaves, self.leaves
        while level > 1:
            level = -(-level // PAGES_PER_PARENT)
            pages += level
        return pages

    def update(self, number: int, *, pruning: bool) -> None:
        """Add an entry for a new version of tuple `number` (from 0, its key)."""
        leaf = self._leaf(number)
        if self.used[leaf] + ENTRY > LEAF:
            self._make_room(leaf, pruning)
            leaf = self._leaf(number)
        self._entries[number] += 1
        self.used[leaf] += ENTRY

    def vacuum(self) -> None:
        """Remove the entries of dead versions; leaves aren't put together again."""
        self._entries = [1] * self._tuples
        ends = [*self._first[1:], self._tuples]
        self.used = [ENTRY * (1 + high - low) for low, high in zip(self._first, ends)]

    def _leaf(self, number: int) -> int:
        return bisect_right(self._first, number) - 1

    def _make_room(self, leaf: int, pruning: bool) -> None:
        """Remove or put together a full leaf's entries; split it if that gave no room."""
        low, high = (*self._first, self._tuples)[leaf : leaf + 2]
        if pruning:
            self._entries[low:high] = [1] * (high - low)
        sizes = np.cumsum([posting_list_size(count) for count in self._entries[low:high]])
        self.used[leaf] = ENTRY + int(sizes[-1])
        if self.used[leaf] + ENTRY > LEAF and high - low > 1:
            last = leaf == self.leaves - 1  # only the last is expected to grow at its end
            left = sizes[-1] * (LEAF_FILLFACTOR if last else 0.5)
            cut = min(int(np.searchsorted(sizes, left)) + 1, high - low - 1)
            below = int(sizes[cut - 1])
            self._first.insert(leaf + 1, low + cut)
            self.used[leaf : leaf + 1] = [ENTRY + below, ENTRY + int(sizes[-1]) - below]


def posting_list_size(count: int) -> int:
    """Bytes of so many entries of one key, put together, with their line pointer."""
    if count == 1:
        return ENTRY
    return aligned(POSTING_LIST + ROW_ADDRESS * count) + LINE_POINTER


@dataclass(frozen=True)
class Step:
    """So many updates of tuples drawn at random, then perhaps a vacuum."""

    updates: int
    vacuum: bool = False


@dataclass(frozen=True)
class Size:
    """Pages of the table and of its primary key's index."""

    heap: int
    index: int


def grow(
    tuples: int,
    steps: Iterable[Step],
    *,
    width: int,
    fillfactor: int,
    pruning: bool,
    seed: int,
) -> Iterator[Size]:
    """Sizes after loading, and after the updates of each step (before its vacuum).

    `width` is a tuple's length in bytes, header included; for `pruning` see the module. The same
    `seed` draws the same tuples.
    """
    heap, index = Heap(tuples, width=width, fillfactor=fillfactor), Index(tuples)
    draws = np.random.default_rng(seed)
    yield Size(heap.pages, index.pages)
    for step in steps:
        for number in draws.integers(tuples, size=step.updates).tolist():
            heap.update(number, pruning=pruning)
            index.update(number, pruning=pruning)
        yield Size(heap.pages, index.pages)
        if step.vacuum:
            heap.vacuum()
            index.vacuum()
