"""The Wisconsin relations: the random order, the attributes, loading, and the checksum."""

import tracemalloc
from math import isqrt

import duckdb
import numpy as np
import pytest

from pgrerun.errors import ParameterError, ServerError
from pgrerun.lab.relations import Wisconsin, checksum_sql, citus, wisconsin
from pgrerun.lab.relations.checksum import checksum, weights
from pgrerun.lab.relations.wisconsin import unique1, unique1_of

CYCLES = [(order, n, g, p) for order, cycles in wisconsin.CYCLES.items() for n, g, p in cycles]


@pytest.fixture
def connection(cluster):
    """A connection with a schema of its own on the session's cluster."""
    with cluster.connect() as connection:
        connection.execute("CREATE SCHEMA wisconsin_test; SET search_path = wisconsin_test")
        yield connection
        connection.execute("DROP SCHEMA wisconsin_test CASCADE")


# --- the random order -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n, first", [(1_000, [147, 931, 714, 711, 883]), (10_000, [8800, 1891, 3420, 9850, 7164])]
)
def test_golden_first_tuples(n, first):
    """The same as onek.data and tenk.data of PostgreSQL's regression tests."""
    assert unique1(n)[:5].tolist() == first
    assert Wisconsin("t", n).columns(0, 5)["unique1"].tolist() == first


@pytest.mark.parametrize("order, n, g, p", CYCLES)
def test_every_cycle_is_full(order, n, g, p):
    """p is prime and g a primitive root: every seed occurs once before the cycle closes."""

    def prime(x):
        return all(x % divisor for divisor in range(2, isqrt(x) + 1))

    factors = [f for f in range(2, isqrt(p) + 1) if (p - 1) % f == 0]
    factors += [(p - 1) // f for f in factors]
    assert n < p and prime(p)
    assert all(pow(g, (p - 1) // f, p) != 1 for f in factors if prime(f))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 999, 1_000, 1_001, 33_333, 100_000, 131_072])
def test_order_is_a_permutation(n, order):
    assert (np.sort(unique1(n, order=order)) == np.arange(n)).all()


def test_largest_relation_is_addressable_without_its_beginning():
    n, g, p = 10**8, 21, 100_000_007
    seed, around = pow(g, p - 1 - 2, p), []  # the last four tuples and the first four
    while len(around) < 8:
        if seed <= n:
            around.append(seed - 1)
        seed = seed * g % p
    assert unique1_of(n, n - 4, 4).tolist() == around[:4]
    assert unique1_of(n, 0, 4).tolist() == around[4:]
    assert unique1_of(n, 0, 8, start=n - 4).tolist() == around


def test_second_order_is_unrelated_where_rolling_is_not():
    """Trap 2: from one tuple of relation 1 to the next, how far the join partner moves in relation
    2.
    """
    n = 10_000

    def median_step(second):
        place = np.empty(n, int)
        place[second] = np.arange(n)
        return np.median(np.abs(np.diff(place[unique1(n)])))

    assert median_step(unique1(n, start=n // 2)) == 1
    # of random places the median distance is (1 - sqrt(1/2)) n = 0.29 n
    assert 0.25 * n < median_step(unique1(n, order=2)) < 0.33 * n


# --- attributes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "n", "place", "named"),
    [
        (
            "1993",
            1_000,
            0,  # the first of PostgreSQL's onek.data
            {"unique1": 147, "unique2": 0, "two": 1, "four": 3, "ten": 7, "twenty": 7}
            | {"onepercent": 47, "tenpercent": 7, "twentypercent": 2, "fiftypercent": 1}
            | {"unique3": 147, "evenonepercent": 94, "oddonepercent": 95},
        ),
        (
            "1990",
            10_000,
            1,  # the second of its tenk.data, where odd and even change places
            {"unique1": 1891, "unique2": 1, "two": 1, "four": 3, "ten": 1, "twenty": 11}
            | {"hundred": 91, "thousand": 891, "twothousand": 1891, "fivethousand": 1891}
            | {"tenthousand": 1891, "odd": 183, "even": 182},
        ),
    ],
)
def test_attributes(attributes, n, place, named):
    columns = Wisconsin("t", n, attributes).columns()
    assert list(columns) == [*named, "stringu1", "stringu2", "string4"]
    assert {name: int(columns[name][place]) for name in named} == named


def test_right_justified_strings_are_unique_and_count_in_base_26():
    columns = Wisconsin("t", 100_000).columns()
    assert len(np.unique(columns["stringu1"])) == len(np.unique(columns["stringu2"])) == 100_000
    assert [columns["stringu2"][k] for k in (0, 1, 26, 27, 26**3)] == [
        start + b"x" * 45 for start in (b"AAAAAAA", b"AAAAAAB", b"AAAAABA", b"AAAAABB", b"AAABAAA")
    ]
    assert (np.argsort(columns["stringu1"]) == np.argsort(columns["unique1"])).all()


@pytest.mark.parametrize("attributes", ["1993", "1990"])
@pytest.mark.parametrize("roll, order", [(17, 2), (999, 1)])
@pytest.mark.parametrize(
    "n, first, count", [(70_000, 65_530, 11), (1_000, 3, 5), (1_000, 1_000, 0)]
)
def test_a_slice_of_columns_equals_that_slice(attributes, roll, order, n, first, count):
    relation = Wisconsin("t", n, attributes, roll=roll, order=order)
    whole, part = relation.columns(), relation.columns(first, count)
    for name in whole:
        assert (part[name] == whole[name][first : first + count]).all(), name


def test_memory_does_not_grow_with_the_relation():
    def peak(n):
        tracemalloc.start()
        for _ in Wisconsin("t", n).records():
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(200_000)  # fills the caches of the generator
    assert peak(200_000) < 16e6 < 200_000 * 208


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("t", 0), "1 to 100000000 tuples, not 0"),
        (("t", 10**8 + 1), "not 100000001"),
        (("drop table x", 10), "'drop table x'"),
        (("Tenk1", 10), "'Tenk1'"),
        (("t", 10, "1983"), "'1983'"),
        (("t", 10, "1993", 0, 3), "order 1 or 2, not 3"),
    ],
)
def test_bad_relations_and_tuples_beyond_the_end_are_refused(arguments, said):
    with pytest.raises(ParameterError, match=said):
        Wisconsin(*arguments)
    for first, count in ((0, 1_001), (-1, 1), (1_000, 1)):
        with pytest.raises(IndexError):
            Wisconsin("t", 1_000).columns(first, count)


# --- engines ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "relation",
    [
        Wisconsin("tenk1", 10_000),
        Wisconsin("tenk2", 10_000, "1990", order=2),
        Wisconsin("onek", 999, "1993", roll=500),
    ],
    ids=lambda relation: relation.name,
)
def test_both_engines_hold_the_generated_tuples(connection, relation):
    duck = duckdb.connect()
    relation.load(connection)
    relation.load_duckdb(duck)
    columns = relation.columns()
    texts = {name: columns[name].astype(str) for name in relation.texts}
    # every value of every tuple, in the order of unique2
    generated = list(zip(*(column.tolist() for column in (columns | texts).values()), strict=True))
    expected = checksum([columns[name] for name in relation.integers], list(texts.values()))
    for engine in (connection, duck):
        assert engine.execute(f"SELECT * FROM {relation.name}").fetchall() == generated
        assert engine.execute(relation.checksum_sql).fetchone() == expected


def test_a_checksum_takes_the_letters_that_it_is_told():
    ask = "(VALUES (1, '{}')) AS answer (a, t)"
    told = {
        text: duckdb.execute(checksum_sql(ask.format(text), ["a"], ["t"], (1, 3))).fetchone()
        for text in ("ABC", "AXC", "ABX", "AB")
    }
    assert told["ABC"] == told["AXC"] != told["ABX"]
    assert told == {text: checksum([[1]], [[text]], (1, 3)) for text in told}


def test_a_sum_beyond_int4_counts_by_its_remainder():
    sums = (7, 2**31 - 1, 2**31 + 5, 10**15)
    values = ", ".join(f"({one}::bigint)" for one in sums)
    in_sql = checksum_sql(f"(VALUES {values}) AS answer (s)", [f"(s % {2**31 - 1})"])
    assert duckdb.connect().execute(in_sql).fetchone() == checksum([sums])
    assert checksum([[], []]) == (0, 0)


def test_loaded_relation_is_vacuumed_and_33_to_a_page(connection):
    Wisconsin("tenk1", 10_000).load(connection, indexes=True)
    pages = -(-10_000 // 33)
    known = "relpages, reltuples, relallvisible FROM pg_class WHERE oid = 'tenk1'::regclass"
    assert connection.execute(f"SELECT {known}").fetchall() == [(pages, 10_000, pages)]
    assert indexes_of(connection, "tenk1") == ["onepercent", "unique1", "unique2"]


def indexes_of(connection, relation):
    query = "SELECT indexname FROM pg_indexes WHERE tablename = %s ORDER BY 1"
    found = connection.execute(query, [relation]).fetchall()
    return [name.removeprefix(f"{relation}_") for (name,) in found]


def test_indexes_may_be_chosen(connection):
    relation = Wisconsin("onek", 1_000, "1990")
    relation.load(connection, indexes=["hundred"], logged=False)
    relation.create_indexes(connection, "string4")
    assert indexes_of(connection, "onek") == ["hundred", "string4"]
    kind = "SELECT relpersistence::text FROM pg_class WHERE oid = 'onek'::regclass"
    assert connection.execute(kind).fetchone() == ("u",)
    with pytest.raises(ParameterError, match="no attribute 'onepercent'"):
        relation.create_indexes(connection, "onepercent")


def test_a_relation_of_somebody_else_is_left_alone(connection):
    connection.execute("CREATE TABLE onek (precious int); INSERT INTO onek VALUES (42)")
    with pytest.raises(ServerError, match="already holds a relation onek"):
        Wisconsin("onek", 1_000).load(connection)
    assert connection.execute("TABLE onek").fetchall() == [(42,)]


def test_a_failed_load_leaves_the_earlier_relation(connection, monkeypatch):
    Wisconsin("onek", 1_000).load(connection)
    count = lambda: connection.execute("SELECT count(*) FROM onek").fetchone()[0]
    fill = Wisconsin.fill

    def break_off(self, out, first, count):
        if first:
            raise KeyboardInterrupt
        fill(self, out, first, count)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Wisconsin, "fill", break_off)
        Wisconsin("onek", 10_000).load(connection)
    assert count() == 1_000
    Wisconsin("onek", 100).load(connection)
    assert count() == 100


# --- the checksum -----------------------------------------------------------------------------


def test_checksum_tells_answers_apart():
    def of(*tuples):
        values = ", ".join(str(one).replace("None", "NULL") for one in tuples)
        asked = checksum_sql(f"(VALUES {values}) AS answer (a, b, t)", ["a", "b"], ["t"])
        return duckdb.execute(asked).fetchone()

    answer = of((1, 2, "AAA"), (3, 4, "AAB"))
    assert answer == of((3, 4, "AAB"), (1, 2, "AAA"))
    different = [
        of((1, 4, "AAA"), (3, 2, "AAB")),  # the same values, other partners
        of((2, 1, "AAA"), (3, 4, "AAB")),  # the same values, other attributes
        of((1, 2, "AAB"), (3, 4, "AAA")),
        of((1, 2, "AAA"), (1, 2, "AAA")),
        of((1, 2, "AAA"), (3, None, "AAB")),
        of((1, 2, "AAA")),
        of((1, 2, "AAA"), (3, 4, "AAB"), (3, 4, "AAB")),
    ]
    assert len({answer, *different}) == 8
    nothing = checksum_sql("(SELECT 1 AS a WHERE false) AS none", ["a"])
    assert duckdb.execute(nothing).fetchone() == (0, 0)


@pytest.mark.parametrize("engine", ["postgresql", "duckdb"])
def test_checksum_of_the_widest_tuple_does_not_overflow(connection, engine):
    run = connection.execute if engine == "postgresql" else duckdb.connect().execute
    names = [f"c{number}" for number in range(32)]
    for extreme in (2**31 - 1, -(2**31)):
        source = (
            "(SELECT " + ", ".join(f"({extreme})::int AS {name}" for name in names) + ") AS widest"
        )
        expected = (extreme * sum(weights(32))) ** 2 % (2**31 - 1)
        assert run(checksum_sql(source, names)).fetchone() == (1, expected)
    with pytest.raises(ValueError, match="at most 32"):
        checksum_sql("t", [*names, "one_more"])


# ---- servers that spread relations

STAND_IN = """
CREATE SCHEMA spread;
CREATE TABLE spread.asked (relation text, attribute text);
CREATE FUNCTION spread.create_distributed_table(relation regclass, attribute text) RETURNS void
LANGUAGE sql AS 'INSERT INTO spread.asked VALUES ($1::text, $2)'
"""


def test_a_relation_is_spread_where_the_server_can(connection):
    """A stand-in for Citus: what is said to it, not what it does."""
    assert not citus.spread(connection, "pg_class", "oid")
    connection.execute(STAND_IN)
    connection.execute("SET search_path = wisconsin_test, spread")
    Wisconsin("spreading", 10).load(connection)
    assert citus.spread(connection, "spreading", "unique2")
    asked = connection.execute("SELECT * FROM spread.asked").fetchall()
    connection.execute("DROP SCHEMA spread CASCADE")
    assert asked == [("spreading", "unique2")]
