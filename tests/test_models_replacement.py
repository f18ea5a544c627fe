"""Page replacement: the clock against cases worked out by hand, and against LRU."""

import pytest

from pgrerun.lab.models.replacement import LRU, MAX_USAGE, Clock


def after(strategy, size, pages, watched):
    pool = strategy(size)
    for page in pages:
        pool.use(page)
    return [page for page in watched if pool.kept([page])]


def test_the_clock_takes_the_first_page_whose_count_has_run_out():
    # a is used twice: the hand lowers a, b and c to 1, 0 and 0, goes round, lowers a to 0, and
    # takes b
    assert after(Clock, 3, "aabcd", "abcd") == ["a", "c", "d"]
    # the next victim is c, under the hand, at once
    assert after(Clock, 3, "aabcde", "abcde") == ["a", "d", "e"]


def test_lru_takes_the_page_last_used_longest_ago_however_often_it_was_used():
    assert after(LRU, 3, "aaaabcd", "abcd") == ["b", "c", "d"]
    assert after(LRU, 3, "abcad", "abcd") == ["a", "c", "d"]


@pytest.mark.parametrize("strategy", [Clock, LRU])
def test_a_pool_never_holds_more_than_its_size_and_fills_it(strategy):
    pool = strategy(7)
    for page in range(100):
        pool.use(page % 13)
        assert pool.kept(range(13)) == min(7, page + 1)


def test_more_uses_than_the_largest_count_buy_no_more_time():
    def turns(uses):
        pool = Clock(10)
        for _ in range(uses):
            pool.use("often")
        for page in range(1000):
            if not pool.kept(["often"]):
                return page
            pool.use(page)

    assert turns(1) < turns(3) < turns(MAX_USAGE) == turns(MAX_USAGE + 7)


def test_a_pool_as_it_was_found_is_taken_up_where_the_hand_stands():
    found = [("a", 1), ("b", 0), None, ("c", 2)]
    clock = Clock.holding(found, hand=3)
    clock.use("d")  # passes c and a, takes b
    assert [clock.kept([page]) for page in "abcd"] == [1, 0, 1, 1]
    clock.use("e"), clock.use("f")  # the empty one, and then a, since c has a use left
    assert [clock.kept([page]) for page in "acdef"] == [0, 1, 1, 1, 1]
    lru = LRU.holding(found, hand=3)
    lru.use("d"), lru.use("e")
    assert [lru.kept([page]) for page in "abcde"] == [1, 1, 0, 1, 1]
