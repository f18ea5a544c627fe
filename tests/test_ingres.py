"""The miniature of 1981: pages as printed and as its structures imply, and tuples that change.

That it answers as other systems do is in `test_wisconsin.py`.
"""

import pytest

from pgrerun.chapters.wisconsin.contenders import miniature
from pgrerun.errors import QueryError
from pgrerun.lab.ingres import DataBase, Heap, Isam
from pgrerun.lab.ingres.pages import Cache, per_page
from pgrerun.lab.relations import Parts

NARROW = {"pnum": 2, "pname": 20, "color": 8, "weight": 2, "qoh": 2}
WIDE = NARROW | {"filler": 166}


def heap(cache, tuples):
    return Heap(cache, NARROW, [dict(zip(NARROW, row)) for row in Parts(tuples).rows()])


def isam(cache):
    parts = Parts(wide=True)
    rows = [dict(zip(WIDE, row)) for row in parts.rows()]
    relation = Isam(cache, WIDE, "pnum", rows[: parts.loaded])
    for row in rows[parts.loaded :]:
        relation.insert(row)
    return relation


def test_the_layout_gives_the_sizes_that_are_printed():
    assert (per_page(34), per_page(200)) == (28, 5)
    assert [len(heap(Cache(), n).file) for n in (1, 210)] == [1, 8]
    keyed = isam(Cache())
    # main pages, of overflow, and of the directory
    assert keyed.main == 646 and len(keyed.file) == 646 + 130 + 4


def test_pages_read_are_those_that_the_structure_implies():
    base = DataBase()
    parts = isam(base.cache)
    base.relations = {"p": parts, "q": parts}
    queries = {
        "b": "retrieve (p.pnum)",
        "e": "retrieve (p.qoh) where p.pnum < 2500",
        "f": "retrieve (p.qoh, q.qoh) where p.pnum = q.pnum",
        "h": "retrieve (p.qoh) where p.pnum = q.pnum and p.pnum < 2500",
    }
    read = {}
    for name, query in queries.items():
        base.cache.empty()
        base.run(query)
        read[name] = base.cache.read
    below = 500 + sum((row[0] - 1) // 5 < 500 for row in list(Parts(wide=True).rows())[3230:])
    assert read["b"] == 776
    assert read["e"] == below + 2  # the root and one page of the directory
    # twice all of the relation, the directory, and those of the temporary relation's 20 pages that
    # were thrown out
    assert 2 * 776 + 4 <= read["f"] <= 2 * 776 + 4 + 20
    assert 2 * below + 4 <= read["h"] <= 2 * below + 4 + 16


def test_a_key_in_an_overflow_chain_is_found_wherever_it_went():
    base = DataBase()
    rows = [{"k": n * 10, "v": str(n)} for n in range(100)]
    base.relations["r"] = relation = Isam(base.cache, {"k": 4, "v": 100}, "k", rows)
    for extra in range(30):
        relation.insert({"k": 505, "v": f"x{extra}"})
    assert len(base.run("retrieve (r.v) where r.k = 505")) == 30
    assert len(base.run("retrieve (r.v) where r.k > 500 and r.k <= 510")) == 31
    assert len(base.run("retrieve (r.v) where r.k < 0")) == 0
    assert len(base.run("retrieve (r.v)")) == 130


def test_an_index_leads_to_the_pages_of_its_tuples_and_follows_every_change():
    base = miniature(200)
    relation = base.relations["tenk1_with"]
    base.cache.empty()
    assert len(base.run("retrieve (tenk1_with.unique2) where tenk1_with.unique1 = 17")) == 1
    assert base.cache.touched <= 4  # directory, one or two of entries, tuples
    assert len(base.run("retrieve (tenk1_with.unique2) where tenk1_with.onepercent = 17")) == 2
    base.run(
        "replace tenk1_with (onepercent = 250, unique2 = tenk1_with.unique2 + 1000) where"
        " tenk1_with.onepercent = 17"
    )
    assert base.run("retrieve (tenk1_with.unique2) where tenk1_with.onepercent = 17") == []
    moved = base.run("retrieve (tenk1_with.unique2) where tenk1_with.onepercent = 250")
    by_key = base.run("retrieve (tenk1_with.unique2) where tenk1_with.unique2 >= 1000")
    assert len(moved) == 2 and sorted(moved) == sorted(by_key)
    base.run("delete tenk1_with where tenk1_with.unique2 >= 1000")
    assert len(base.run("retrieve (tenk1_with.unique2)")) == 198
    assert all(len(list(index.entries.rows())) == 198 for index in relation.indices.values())


def test_a_deleted_tuples_place_is_taken_again_and_others_stay_where_they_are():
    base = DataBase()
    base.relations["parts"] = relation = heap(base.cache, 28)
    more = "append parts (pnum = {}, pname = parts.pname, color = parts.color, weight = 1, qoh = 2)"
    more += " where parts.pnum = 1"
    base.run("delete parts where parts.pnum = 3 delete parts where parts.pnum = 28")
    base.run(more.format(99) + " " + more.format(98))
    numbers = [row["pnum"] for row in relation.rows()]
    assert len(relation.file) == 1 and numbers == [1, 2, 99, *range(4, 28), 98]
    base.run(more.format(97))
    assert len(relation.file) == 2 and len(list(relation.rows())) == 29


def test_a_condition_without_a_variable_is_asked_as_well():
    found = [
        DataBase().run(f"retrieve (x = 1) where {condition}") for condition in ("1 = 1", "1 = 2")
    ]
    assert found == [[(1,)], []]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("retrieve (p.pnum) sort by pnum", "not sorted"),
        ("retrieve (x = sqrt(p.pnum))", "can't evaluate call"),
        ("retrieve (x = sum(p.pnum where p.qoh > 3))", "can't evaluate aggregate"),
    ],
)
def test_what_it_cannot_run_is_said(text, told):
    base = DataBase()
    base.relations["p"] = heap(base.cache, 10)
    with pytest.raises(QueryError, match=told):
        base.run(text)
