"""The miniature of 1981: pages as printed, PostgreSQL's answers, and damaged files."""

import contextlib
import itertools
import math

import pytest

from pgrerun.chapters.wisconsin.contenders import Miniature
from pgrerun.errors import QueryError, RerunError
from pgrerun.lab.ingres import (
    PAGE,
    Cache,
    DataBase,
    Domain,
    Hash,
    Heap,
    Isam,
    Layout,
    UnixFile,
)
from pgrerun.lab.quel import Session
from pgrerun.lab.relations import Parts

NARROW = Layout(
    (
        Domain("pnum", "i", 2),
        Domain("pname", "c", 20),
        Domain("color", "c", 8),
        Domain("weight", "i", 2),
        Domain("qoh", "i", 2),
    )
)
WIDE = Layout((*NARROW.domains, Domain("filler", "c", 166)))
RANGES = "range of p is parts range of q is parts "
JOINS = {
    "f": "retrieve (p.qoh, q.qoh) where p.pnum = q.pnum",
    "g": 'retrieve (p.qoh, q.qoh) where p.pnum = q.pnum and p.color = "black"',
    "h": "retrieve (p.qoh) where p.pnum = q.pnum and p.pnum < 2500",
    "i": (
        'retrieve (p.qoh, q.qoh) where p.pnum = q.pnum and p.color = "black" and p.qoh < log(9.5) *'
        " p.weight and q.qoh < log(9.5) * p.weight"
    ),
}
QUERIES = {
    "b": "retrieve (p.pnum)",
    "c": (
        'retrieve (p.pname, p.pnum) where p.pnum > 3 or p.pname = "processor" or p.color = "black"'
    ),
    "d": "retrieve (p.pnum) where p.qoh < log(9.5) * p.weight",
    "e": "retrieve (p.qoh) where p.pnum < 2500",
    **JOINS,
}


@pytest.fixture
def files(tmp_path):
    """Makes files behind one cache; closes them."""
    cache, number, made = Cache(64), itertools.count(), []

    def new():
        made.append(UnixFile(tmp_path / f"relation{next(number)}", cache))
        return made[-1]

    new.cache = cache
    yield new
    for file in made:
        with contextlib.suppress(OSError):  # a temporary one that its command has closed
            file.close()


def isam(file) -> Isam:
    parts = Parts(wide=True)
    rows = list(parts.rows())
    relation = Isam.build(file, WIDE, "pnum", rows[: parts.loaded])
    for row in rows[parts.loaded :]:
        relation.insert(row)
    return relation


def test_the_layout_gives_the_sizes_that_are_printed(files):
    assert (NARROW.width, NARROW.per_page, WIDE.width, WIDE.per_page) == (34, 28, 200, 5)
    assert [Heap.build(files(), NARROW, Parts(n).rows()).pages for n in (1, 210)] == [1, 8]
    keyed = isam(files())
    assert (keyed.main, keyed.overflow, keyed.directory) == (646, 130, 4)


def test_answers_are_postgresqls(cluster, files):
    base = DataBase(files.cache, files, {"parts": isam(files())})
    with cluster.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute(f"CREATE TABLE parts AS {Parts(wide=True).select()}")
        session = Session(connection)
        for query in QUERIES.values():
            theirs = session.run(RANGES + query)[-1].tuples
            assert sorted(base.run(RANGES + query)) == sorted(theirs), query


def test_pages_read_are_those_that_the_structure_implies(files):
    base = DataBase(files.cache, files, {"parts": isam(files())})
    reads = {}
    for name in ("b", "e", "f", "h"):
        files.cache.empty()
        base.run(RANGES + QUERIES[name])
        reads[name] = files.cache.reads.requests
    below = 500 + sum((row[0] - 1) // 5 < 500 for row in list(Parts(wide=True).rows())[3230:])
    assert reads["b"] == 776
    assert reads["e"] == below + 2  # the root and one page of the directory
    # twice all of the relation, the directory, and those of the temporary relation's 20 pages that
    # were thrown out
    assert 2 * 776 + 4 <= reads["f"] <= 2 * 776 + 4 + 20
    assert 2 * below + 4 <= reads["h"] <= 2 * below + 4 + 16


def test_a_key_in_an_overflow_chain_is_found_wherever_it_went(files):
    layout = Layout((Domain("k", "i", 4), Domain("v", "c", 100)))
    relation = Isam.build(files(), layout, "k", ((n * 10, str(n)) for n in range(100)))
    for extra in range(30):
        relation.insert((505, f"x{extra}"))
    base = DataBase(files.cache, files, relations={"r": relation})
    assert len(base.run("range of r is r retrieve (r.v) where r.k = 505")) == 30
    assert len(base.run("range of r is r retrieve (r.v) where r.k > 500 and r.k <= 510")) == 31
    assert len(base.run("range of r is r retrieve (r.v) where r.k < 0")) == 0
    assert len(base.run("range of r is r retrieve (r.v)")) == 130


@pytest.mark.parametrize("filling", [1.0, 0.5])
def test_a_hashed_relation_finds_what_it_holds_on_the_pages_of_one_chain(files, filling):
    layout = Layout((Domain("k", "i", 4), Domain("v", "c", 100)))
    relation = Hash.build(files(), layout, "k", ((n, str(n)) for n in range(500)), filling)
    for extra in range(30):
        relation.insert((77, f"x{extra}"))
    base = DataBase(files.cache, files, relations={"r": relation})
    assert (
        relation.main == math.ceil(500 / layout.per_page / filling)
        and relation.main + relation.overflow == relation.pages
    )
    assert sorted(values[0] for values in relation.rows()) == sorted([*range(500), *[77] * 30])
    files.cache.empty()
    assert (
        base.run("retrieve (r.v) where r.k = 123") == [("123",)] and files.cache.reads.touched < 5
    )
    assert len(base.run("retrieve (r.v) where r.k = 77")) == 31
    assert len(base.run("retrieve (r.v) where r.k < 77")) == 77
    assert (
        base.run("retrieve (r.v) where r.k = 1.5")
        == []
        == base.run("retrieve (r.v) where r.k = 9999999999")
    )


def test_an_index_leads_to_the_pages_of_its_tuples_and_follows_every_change():
    with Miniature() as one:
        one.load(200)
        base, relation = one.base, one.base.relations["tenk1_with"]
        one.cache.empty()
        assert len(base.run("retrieve (tenk1_with.unique2) where tenk1_with.unique1 = 17")) == 1
        assert one.cache.reads.touched <= 4  # directory, one or two of entries, tuples
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
        assert base.run("retrieve (n = count(tenk1_with.unique2))") == [(198,)]
        assert all(len(list(index.entries.rows())) == 198 for index in relation.indices.values())


def test_a_deleted_tuples_place_is_taken_again_and_others_stay_where_they_are(files):
    relation = Heap.build(files(), NARROW, Parts(28).rows())
    base = DataBase(files.cache, files, relations={"parts": relation})
    base.run("delete parts where parts.pnum = 3 delete parts where parts.pnum = 28")
    base.run('append parts (pnum = 99, pname = "one") append parts (pnum = 98)')
    assert relation.pages == 1 and [row[0] for row in relation.rows()] == [
        1,
        2,
        99,
        *range(4, 28),
        98,
    ]
    assert base.run("retrieve (parts.pname, parts.qoh) where parts.pnum >= 98") == [
        ("one", 0),
        ("", 0),
    ]
    base.run("append parts (pnum = 97)")
    assert relation.pages == 2 and len(list(relation.rows())) == 29


def test_aggregates_are_computed_first_and_of_nothing_they_are_zero(files):
    base = DataBase(files.cache, files, {"parts": Heap.build(files(), NARROW, Parts(210).rows())})
    rows = list(Parts(210).rows())
    assert base.run(RANGES + "retrieve (p.pnum) where p.qoh = max(q.qoh)") == [
        (row[0],) for row in rows if row[4] == max(each[4] for each in rows)
    ]
    black = [row[3] for row in rows if row[2] == "black"]
    assert base.run(
        RANGES
        + 'retrieve (a = avg(p.weight where p.color = "black"), n = count(p.weight where p.color ='
        ' "pink"))'
    ) == [(pytest.approx(sum(black) / len(black)), 0)]
    found = dict(
        base.run(
            RANGES + "retrieve unique (p.color, n = count(p.pnum by p.color where p.weight > 1000))"
        )
    )
    assert found == {
        colour: sum(row[2] == colour and row[3] > 1000 for row in rows)
        for colour in {row[2] for row in rows}
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("range of p is nothing", "no relation nothing"),
        ("retrieve (z.pnum)", "z ranges over nothing"),
        (RANGES + "retrieve (p.size)", "no attribute size"),
        (RANGES + "retrieve (p.pnum) sort by pnum", "not sorted"),
        (RANGES + "retrieve into parts (p.pnum)", "already"),
        (RANGES + "delete p where p.pnum = q.pnum", "not by q"),
        (RANGES + "replace p (size = 3)", "no attribute size"),
        (RANGES + "append parts (pnum = 40000)", "doesn't fit"),
        (RANGES + "retrieve (p.pnum) where p.pname < 3", "text and a number"),
        (RANGES + "retrieve (x = sqrt(p.pnum))", "can't evaluate"),
    ],
)
def test_what_it_cannot_run_is_said(files, text, told):
    base = DataBase(files.cache, files, {"parts": Heap.build(files(), NARROW, Parts(10).rows())})
    with pytest.raises(QueryError, match=told):
        base.run(text)


def test_a_damaged_file_is_noticed(files, tmp_path):
    relation = Heap.build(files(), NARROW, Parts(210).rows())
    files.cache.empty()
    (tmp_path / "relation0").write_bytes((tmp_path / "relation0").read_bytes()[: 3 * PAGE + 5])
    with pytest.raises(RerunError, match="Page 3 of relation0 is missing"):
        list(relation.scan())


def test_a_key_is_a_number_and_no_other_tuple_s(files):
    with pytest.raises(QueryError, match="is text"):
        Isam.build(files(), WIDE, "pname", [])
    with pytest.raises(QueryError, match="insert those that repeat"):
        Isam.build(files(), NARROW, "pnum", Parts(1).rows() * 2)
