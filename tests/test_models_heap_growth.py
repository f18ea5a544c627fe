"""Pages of a table and of its index under updates, computed from bytes."""

import pytest

from pgrerun.lab.models.heap_growth import (
    ENTRY,
    LEAF,
    MAX_LINE_POINTERS,
    Heap,
    Index,
    Size,
    grow,
    posting_list_size,
)

ACCOUNT = {"width": 121, "fillfactor": 90}  # pgbench's
LOADED = 55  # of them on a page
LAYOUT = ACCOUNT | {"pruning": True, "seed": 1}


def test_a_page_takes_six_more_versions_and_then_sends_them_away():
    heap = Heap(2 * LOADED, **ACCOUNT)
    assert heap.live == [LOADED, LOADED]
    for _ in range(6):
        heap.update(0, pruning=False)
    assert (heap.live, heap.kept, heap.page_of[0]) == ([LOADED, LOADED], [6, 0], 0)
    heap.update(0, pruning=False)  # 61 tuples of 132 bytes, pointer included, leave less than that
    assert heap.page_of[0] == 2 and heap.pages == 3  # the last page's reserve is for its own


def test_versions_from_elsewhere_leave_the_fillfactors_room_alone():
    heap = Heap(LOADED + 10, **ACCOUNT)
    heap.dead[0] = MAX_LINE_POINTERS - LOADED  # no line pointer left on the first page
    for number in range(46):
        heap.update(number, pruning=True)
    assert heap.live == [9, 10 + 45, 1]


def test_a_pruned_version_costs_a_line_pointer_and_a_kept_one_a_tuple():
    heap, updates = Heap(2 * LOADED, **ACCOUNT), 0
    while heap.page_of[0] == 0:
        heap.update(0, pruning=True)
        updates += 1
    # as many pointers of 4 bytes as leave room for one version of 132
    assert updates - 1 == (8192 - 24 - LOADED * 132 - 132) // 4 + 1
    assert heap.kept == [0, 0, 0] and heap.dead[0] == updates


def test_every_full_leaf_splits_once_and_then_duplicates_are_put_together():
    tuples = 3 * 366 + 72
    index = Index(tuples)
    for key in (0, 1, 2) * 14:  # more than the forty free places of the first leaf
        index.update(key, pruning=False)
    assert index.leaves == 4 and index.used[0] < LEAF - ENTRY
    for key in range(tuples):
        index.update(key, pruning=False)
    assert index.leaves == 7
    for _ in range(3):
        for key in range(0, tuples, 12):
            index.update(key, pruning=False)
    assert index.leaves == 7 and all(used <= LEAF for used in index.used)


def test_a_leaf_whose_dead_entries_may_go_never_splits_and_vacuum_empties_without_merging():
    pruned, kept = Index(1000), Index(1000)
    for key in list(range(1000)) * 5:
        pruned.update(key, pruning=True)
        kept.update(key, pruning=False)
    before = kept.pages
    kept.vacuum()
    assert pruned.pages == Index(1000).pages < kept.pages == before
    assert sum(kept.used) == ENTRY * (1000 + kept.leaves)


@pytest.mark.parametrize(("count", "size"), [(1, 20), (2, 36), (3, 44), (4, 44), (5, 52)])
def test_the_size_of_a_posting_list(count, size):
    assert posting_list_size(count) == size


@pytest.mark.parametrize("tuples", [300, 1000, 3000])
def test_a_loaded_table_and_its_index_are_as_large_as_the_servers(connection, tuples):
    connection.execute(
        "CREATE TABLE loaded (aid integer NOT NULL, bid integer, abalance integer,"
        " filler character(84)) WITH (fillfactor = 90)"
    )
    connection.execute(
        "INSERT INTO loaded SELECT aid, 1, 0, '' FROM generate_series(1, %s) AS aid", [tuples]
    )
    connection.execute("ALTER TABLE loaded ADD PRIMARY KEY (aid)")
    size = "SELECT pg_relation_size('loaded') / 8192, pg_relation_size('loaded_pkey') / 8192"
    assert next(grow(tuples, [], **LAYOUT)) == Size(*connection.execute(size).fetchone())
