"""The optimizer chapter: what its experiments tell of a server, and what its rules make of rows."""

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from servers import SMALL

from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments import faults, joins, ranges, scans, suggestions
from pgrerun.errors import CannotMeasure
from pgrerun.lab.instruments import plans
from pgrerun.lab.server import Borrowed, bundled
from pgrerun.lab.testbed import Testbed
from pgrerun.parameters import chapter_parameters
from pgrerun.record import claims
from tests.judging import UNTESTED, judged, word

CHAPTER = "optimizer"
PARAMETERS = {"points": 5, "tuples": 10_000, "times": 10, "grid": 10, "pairs": 5}

# ---- numbers


STEPS = np.arange(0.1, 1, 0.1)


@pytest.mark.parametrize(
    ("difference", "at"),
    [
        (2 * STEPS - 1, pytest.approx(0.5)),
        (2 * STEPS - 3, pytest.approx(1.0)),
        (STEPS + 0.5, pytest.approx(0.0)),
        (-STEPS - 1, pytest.approx(1.0)),
        (2 - STEPS, pytest.approx(0.0)),
        # one disturbed time does not move it
        (2 * STEPS - 1 + 40 * (np.arange(len(STEPS)) == 3), pytest.approx(0.5, abs=0.05)),
    ],
)
def test_the_crossing_of_two_scans(difference, at):
    assert scans.crossing(STEPS, difference) == at


@pytest.mark.parametrize(
    ("first", "at"), [(1, 0.002), (2, 0.002), (777, 0.777), (1000, 1), (1001, 1)]
)
def test_the_switch_is_found_to_the_tuple(first, at):
    assert scans.switch(first.__le__, 1000) == at


# ---- what is made of scans that were timed

HOW = {"comparison": 0, "position": 0, "disturbed": "", "left_out": False, "disk": ""}


def swept(cross):
    """Rows of `timed_scans` in which the rival takes longer than the sequential scan from a
    selectivity on: `cross` of the block.
    """
    return [
        {"layout": queries.CLUSTERED, "selectivity": at, "method": method, "stored": False}
        | {"seconds": 1.0 if method == variants.SEQUENTIAL else 1 + at - cross(block)}
        | {"block": block, "looks": "7,15"}
        | HOW
        for block in range(7)
        for at in (0.1, 0.5, 0.9)
        for method in scans.FORCED
    ]


def bed_of(**kept):
    """A testbed whose experiments have these rows, and no server."""
    found = defaultdict(list, {name: list(rows) for name, rows in kept.items()})
    long = PARAMETERS | {"tuples": 100_000, "milliseconds": 600}
    return Testbed(chapter_parameters(CHAPTER, long), bundled(), rows=found.__getitem__)


def as_printed(block):
    return 0.7 + block / 1000


def earlier(block):
    return 0.4 + block / 1000


def scattered(block):
    return 0.3 + 0.1 * block


@pytest.mark.parametrize(
    ("in_memory", "cold", "verdict"),
    [
        (as_printed, as_printed, "holds"),
        (as_printed, earlier, "partly"),
        (earlier, as_printed, "partly"),
        (earlier, earlier, "different now"),
        (as_printed, scattered, "inconclusive"),
        (scattered, earlier, "inconclusive"),
    ],
)
def test_the_best_switch_is_judged_in_memory_and_read_from_storage(in_memory, cold, verdict):
    found = list(scans.crossings(bed_of(timed_scans=swept(in_memory))))
    others = scans.crossings(bed_of(timed_scans=swept(cold)))
    found += [row | {"cache": "cold"} for row in others]
    assert {row["looks"] for row in found} == {"7,15"}, "which an interval has to account for"
    assert word("lai-062", CHAPTER, crossings=found) == verdict
    short = [row | {"milliseconds": 1} for row in found]
    assert word("lai-062", CHAPTER, crossings=short) == "not tested here"
    with pytest.raises(CannotMeasure, match="timed here"):
        list(scans.crossings(bed_of()))


def test_the_price_of_a_choice_is_one_where_the_fastest_scan_is_planned():
    planned = [
        {"relation": queries.TIMED, "layout": queries.CLUSTERED, "selectivity": at, "method": one}
        | {"chosen": one == variants.SEQUENTIAL, "obeyed": True, "rows": 1, "cost": 1.0}
        for at in (0.1, 0.5, 0.9)
        for one in scans.FORCED
    ]
    bed = bed_of(timed_scans=swept(lambda block: 0.5), planned_scans=planned)
    found = pd.DataFrame(scans.price_of_choice(bed)).groupby("selectivity")
    price = (found["planned"].first() / found["fastest"].first()).to_dict()
    assert price == pytest.approx({0.1: 1 / 0.6, 0.5: 1, 0.9: 1})
    assert set(found["planned_scan"].first()) == {variants.SEQUENTIAL}


def told(costs):
    """Rows of `told_order` of the clustered attribute, by range and order: the costs of the scans.

    Those of the other attribute don't differ.
    """
    return [
        {"layout": layout, "wrong": wrong, "selectivity": at, "method": method}
        | {"chosen": False, "obeyed": True, "rows": 1}
        | {"cost": cost if layout == queries.CLUSTERED else 1.0}
        for layout in queries.ATTRIBUTES
        for (wrong, at), given in costs.items()
        for method, cost in zip(scans.FORCED, given)
    ]


def test_the_range_that_a_wrong_order_harms_most_is_told_by_costs():
    costs = {
        (False, 0.01): (10.0, 1.0, 2.0),  # of a sequential scan, an index scan, a bitmap scan
        (True, 0.01): (10.0, 9.0, 8.0),
        (False, 0.1): (10.0, 2.0, 3.0),
        (True, 0.1): (10.0, 90.0, 9.0),
        (False, 0.9): (10.0, 9.0, 9.5),
        (True, 0.9): (10.0, 810.0, 11.0),
    }
    found = pd.DataFrame(suggestions.misled(bed_of(told_order=told(costs))))
    found = found[found["layout"] == queries.CLUSTERED].set_index(["choice", "told"])
    assert found["selectivity"].tolist() == [0.1, 0.1, 0.01, 0.01]
    assert found["method"].tolist() == [
        *(variants.INDEX, variants.SEQUENTIAL),
        *(variants.INDEX, variants.BITMAP),
    ]
    right = {key: given for key, given in costs.items() if not key[0]}
    with pytest.raises(CannotMeasure, match="PostgreSQL 18"):
        suggestions.misled(bed_of(told_order=told(right)))


@pytest.mark.parametrize(
    ("clustered", "scattered", "stored", "milliseconds", "verdict"),
    [
        *((20.0, 2.0, 2.0, 600, "holds"), (20.0, 2.0, 1.0, 600, "partly")),
        *((20.0, 1.0, 2.0, 600, "partly"), (1.0, 2.0, 1.0, 600, "partly")),
        *((1.0, 1.0, 1.0, 600, "no effect"), (0.5, 0.5, 0.5, 600, "reversed")),
        (20.0, 2.0, 2.0, 1, "not tested here"),
    ],
)
def test_a_wrong_order_is_judged_without_bitmap_scans(
    clustered, scattered, stored, milliseconds, verdict
):
    longer = {
        (queries.CLUSTERED, "without bitmaps"): clustered,
        (queries.SHUFFLED, "without bitmaps"): scattered,
        (queries.CLUSTERED, "with bitmaps"): 1.0,
        (queries.SHUFFLED, "with bitmaps"): 1.0,
    }
    asked = {"tuples": 100_000, "milliseconds": milliseconds}
    found = [
        {"layout": layout, "choice": choice, "told": told, "block": block, "seconds": seconds}
        | asked
        for block in range(7)
        for (layout, choice), many in longer.items()
        for told, seconds in (("right", 1.0), ("wrong", many), ("right, again", 1.0))
        if told != "right, again" or (layout, choice) == (queries.CLUSTERED, "without bitmaps")
    ]
    cold = [
        {key: value for key, value in row.items() if key not in asked}
        | {"seconds": stored if row["told"] == "wrong" else 1.0}
        for row in found
        if row["told"] != "right, again"
    ]
    tables = {"price_of_order": found, "cold_price_of_order": cold}
    assert word("lai-094", CHAPTER, **tables) == verdict


# ---- on a server


@pytest.fixture(scope="module")
def bed():
    """A throwaway server, small, whose relations are loaded when an experiment asks."""
    found = Testbed(chapter_parameters(CHAPTER, PARAMETERS), bundled())
    small = found.cluster
    found.cluster = lambda **settings: small(**SMALL | settings)
    yield found
    found.close()


def rows_of(bed, wanted, **changed):
    return list(bed.measure(wanted, changed))


def test_every_method_can_be_forced_and_leaves_no_trace(bed):
    queries.load_joined(bed, queries.SMALL)
    changed = "SELECT name FROM pg_settings WHERE name LIKE 'enable%' AND setting <> boot_val"
    with variants.session(queries.load_scanned(bed, queries.REPORT)) as connection:
        scan = queries.discarded(queries.scan_of(bed, queries.REPORT, queries.CLUSTERED, 0.5))
        join = queries.selected(queries.join(bed, 2, queries.SMALL))
        for methods, statement in ((variants.SCANS, scan), (variants.JOINS, join)):
            for method in methods:
                with variants.forced(connection, method):
                    plan = plans.explain(connection, statement)
                assert variants.method_of(plan) == method
        with pytest.raises(ZeroDivisionError), variants.forced(connection, variants.INDEX):
            raise ZeroDivisionError
        assert connection.execute(changed).fetchall() == []


def test_a_method_is_forced_however_often_its_statement_was_sent(bed):
    """Three forced scans were one: psycopg prepares the sixth sending, which keeps its plan."""
    server = queries.load_scanned(bed, queries.TIMED)
    statement = queries.discarded(queries.scan_of(bed, queries.TIMED, queries.SHUFFLED, 0.5))
    with variants.session(server) as connection, connection.transaction():
        for method in [*variants.SCANS] * 4:
            with variants.forced(connection, method):
                connection.execute(statement)
        counted = "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = %s"
        assert connection.execute(counted, [queries.TIMED]).fetchone() == (4,)


def test_stored_results_are_temporary_and_go(bed):
    with variants.session(queries.load_scanned(bed, queries.REPORT)) as connection:
        queries.store_in_memory(connection)
        connection.execute(queries.scan_of(bed, queries.REPORT, queries.CLUSTERED, 0.1))
        kind = "SELECT relpersistence FROM pg_class WHERE relname = 'temp1'"
        assert connection.execute(kind).fetchone()[0] == "t"
        queries.destroy(connection)
        assert connection.execute("SELECT to_regclass('temp1')").fetchone() == (None,)


def test_the_planned_switch_lies_where_the_costs_cross(bed):
    found = pd.DataFrame(rows_of(bed, scans.planned_scans, relations=(queries.REPORT,)))
    taken = found[found["chosen"]].set_index(["layout", "selectivity"])["method"]
    for row in rows_of(bed, scans.switches, relations=(queries.REPORT,)):
        for selectivity in queries.steps():
            sequential = taken[row["layout"], selectivity] == variants.SEQUENTIAL
            assert sequential == (selectivity >= row["selectivity"])


@pytest.mark.parametrize(
    ("last", "said"),
    [(5, "holds"), (6, "holds"), (4, "partly"), (7, "partly"), (9, "not so"), (0, "not so")],
)
def test_the_switch_is_asked_at_the_tenths_of_the_report(last, said):
    """A sequential scan costs the pages, and POSTGRES's weight for each of the report's tuples."""
    pages, of_all = 345, 345 + 0.065 * 10_000
    found = [
        {"fault": variants.MENDED, "bounds": bounds, "pages": pages, "selectivity": tenth / 10}
        | {"cost": of_all + (-1 if tenth <= last else 1) + pages * (1 - tenth / 10)}
        for tenth in range(1, 10)
        for bounds in queries.BOUNDS[1:]
    ]
    assert word("lai-068", CHAPTER, scans_of_postgres95=found) == said


@pytest.mark.parametrize(
    ("switches", "varies", "said"),
    [(True, True, "fixed"), (False, True, "still there"), (True, False, "still there")],
)
def test_one_scan_or_one_cost_of_an_index_scan_is_the_fault(switches, varies, said):
    planned = [
        {"relation": queries.REPORT, "layout": queries.CLUSTERED, "selectivity": tenth / 10}
        | {"method": method, "chosen": (method == variants.INDEX) == (tenth < 7 or not switches)}
        | {"cost": 60.0 * tenth if varies and method == variants.INDEX else 445.0}
        for tenth in range(1, 10)
        for method in (variants.INDEX, variants.SEQUENTIAL)
    ]
    assert word("lai-063", CHAPTER, planned_scans=planned) == said


def test_dearer_random_pages_move_the_switch_down_and_a_fitting_cost_puts_it_in_its_place(bed):
    server = queries.load_scanned(bed, queries.REPORT, queries.TIMED)
    with variants.session(server) as connection:
        at = lambda cost, *relation: scans.planned_switch(
            bed, connection, queries.SHUFFLED, *relation, random_page_cost=cost
        )
        assert at(1) > at(4) > at(16)
        assert connection.execute("SHOW random_page_cost").fetchone()[0] == "4"
        cost = scans.fitting_cost(bed, connection, queries.SHUFFLED, 0.3)
        assert at(cost, queries.TIMED) == pytest.approx(0.3, abs=0.01)
        assert scans.fitting_cost(bed, connection, queries.CLUSTERED, 0.99) is None


def test_a_fault_is_there_inside_and_gone_outside(bed):
    query = f"SELECT * FROM {queries.REPORT} WHERE unique2 > 4999 AND unique2 < 5001"
    with variants.session(queries.load_scanned(bed, queries.REPORT)) as connection:
        rows = lambda: plans.explain(connection, query).rows_estimated
        before = rows()
        with variants.fault(connection, variants.MULTIPLIED):
            assert rows() == pytest.approx(2500, rel=0.01)
        assert before == rows() == 1


def test_faults_of_1990_are_seen_where_they_are_put_back(bed):
    constant = [
        {key: value for key, value in row.items() if key != "fault"} | {"relation": queries.REPORT}
        for row in rows_of(bed, faults.first_set)
        if row["fault"] == variants.CONSTANT
    ]
    registered, hidden = rows_of(bed, faults.registered), rows_of(bed, ranges.hidden_constant)
    wrong = [row | {"estimator": "scalarltsel"} for row in registered]
    estimates = rows_of(bed, faults.greater_than)
    blind = [row | {"seen": not row["seen"]} for row in hidden]
    found, faulty = rows_of(bed, ranges.ranges), rows_of(bed, ranges.multiplied_ranges)
    put_back = {
        "lai-063": {"planned_scans": constant},
        "lai-064": {"registered": wrong, "greater_than": estimates},
        "lai-065": {"hidden_constant": blind},
        "lai-081": {"ranges": found, "multiplied_ranges": found},
    }
    moved = rows_of(bed, ranges.moved_range)
    for claim in ("lai-079", "lai-080", "lai-082"):
        put_back[claim] = {"ranges": faulty, "moved_range": moved}
    words = {claim: word(claim, CHAPTER, **rows) for claim, rows in put_back.items()}
    assert words == dict.fromkeys(put_back, "still there") | {"lai-081": "partly"}
    assert word("lai-064", CHAPTER, registered=registered, greater_than=estimates) == "fixed"


@pytest.mark.parametrize(
    ("claim", "experiment"),
    [("lai-064", faults.greater_than), ("lai-081", ranges.multiplied_ranges)],
)
def test_a_claim_for_which_a_fault_is_put_back_says_that_it_needs_a_server_of_ours(
    claim, experiment
):
    """The doctor told nobody that these two can't be tested on somebody's server."""
    lent = SimpleNamespace(name="the borrowed server", changed={})
    bed = Testbed(chapter_parameters(CHAPTER, PARAMETERS), bundled(), lent)
    with pytest.raises(CannotMeasure) as lacking:
        rows_of(bed, experiment)
    assert lacking.value.capability in claims.ledger()[claim].capabilities


@pytest.mark.parametrize(
    ("mended", "selectivity", "size", "both", "verdict"),
    [  # what the loop costs more than the hash join
        # each changes the choice alone, the other's beside it changes nothing more
        *((900, -1, -1, -2, "holds"), (900, 10, 10, -2, "holds")),
        # one alone decides, however near the other brings the loop
        *((900, 10, -1, -2, "partly"), (900, 10, -1, -1, "partly"), (900, -1, 10, -1, "partly")),
        # they change it, but not to the loop, or not from another join
        *((900, -1, -1, 10, "partly"), (-1, 10, -1, -1, "partly")),
        *((900, 800, 800, 800, "not so"), (-1, -1, -1, -1, "not so")),
    ],
)
def test_a_fault_has_a_part_in_a_choice_that_it_changes_alone_or_beside_the_other(
    mended, selectivity, size, both, verdict
):
    more = dict(zip(variants.BUILDS, (mended, selectivity, size, mended, both)))
    found = []
    for fault in variants.BUILDS:
        for query in queries.EQUAL:
            loop = 100 + (more[fault] if query == 3 else 50)
            cost = {variants.HASH: 100, variants.MERGE: 200, variants.NESTED: loop}
            found += [
                {"fault": fault, "query": query, "method": method, "cost": float(cost[method])}
                | {"chosen": cost[method] == min(cost.values())}
                for method in variants.JOINS
            ]
    assert word("lai-076", CHAPTER, joins_of_postgres95=found) == verdict


STRAIGHT, BENT, FLAT = (483, 620, 757, 894, 1031), (483, 600, 757, 914, 1031), (483,) * 5
STEEP = (483, 757, 1031, 1305, 1579)


@pytest.mark.parametrize(
    ("as_printed", "upper", "verdict"),
    [  # with both bounds the line decides nothing
        *((STRAIGHT, STRAIGHT, "holds"), (FLAT, STRAIGHT, "holds"), (STRAIGHT, BENT, "partly")),
        *((STRAIGHT, STEEP, "partly"), (STRAIGHT, FLAT, "not so"), (FLAT, FLAT, "not so")),
    ],
)
def test_a_line_is_straight_where_each_tenth_adds_as_much(as_printed, upper, verdict):
    found = [
        {"fault": variants.MENDED, "bounds": bounds, "pages": 345}
        | {"selectivity": tenth / 10, "cost": cost}
        for bounds, costs in zip(queries.BOUNDS, (as_printed, upper))
        for tenth, cost in enumerate(costs, start=1)
    ]
    assert word("lai-071", CHAPTER, scans_of_postgres95=found) == verdict


@pytest.mark.parametrize(
    ("as_it_is", "put_back", "verdict"),
    [
        *((1.0, 3.0, "fixed"), (1.2, 3.0, "still there"), (0.8, 0.3, "still there")),
        (1.0, 1.0, UNTESTED),  # what is expected tells nothing
    ],
)
def test_a_wrong_function_is_told_by_what_it_expects(as_it_is, put_back, verdict):
    right = {"<": "scalarltsel", "<=": "scalarlesel", ">": "scalargtsel", ">=": "scalargesel"}
    names = [{"operator": sign, "estimator": name} for sign, name in right.items()]
    expected = [
        {"fault": fault, "selectivity": 0.5, "rows": 5000, "expected": 5000 * share}
        for fault, share in ((variants.NONE, as_it_is), (variants.EXCHANGED, put_back))
    ]
    assert word("lai-064", CHAPTER, registered=names, greater_than=expected) == verdict


@pytest.mark.parametrize(
    ("free", "forbidden", "verdict"),
    [
        (variants.NESTED, variants.NESTED, "holds"),
        (variants.NESTED, variants.MERGE, "partly"),
        (variants.HASH, variants.HASH, "not so"),
    ],
)
def test_a_join_by_less_than_is_judged_by_what_postgres95_plans(free, forbidden, verdict):
    found = [
        {"fault": fault, "query": query, "forbidden": what, "join_by": join}
        for fault in (variants.MENDED, variants.BOTH)
        for query in (3, *queries.UNEQUAL)
        for what, join in ((joins.NOTHING, free), (variants.NESTED, forbidden))
    ]
    assert word("lai-077", CHAPTER, non_equal_joins_of_postgres95=found) == verdict


def test_extended_statistics_are_gone_afterwards(bed):
    assert rows_of(bed, ranges.two_attributes)
    assert bed.server.fetch("SELECT count(*) FROM pg_statistic_ext") == (0,)


def test_a_loop_that_is_chosen_again_is_the_fault_of_1990(bed):
    planned = rows_of(bed, joins.planned_joins, sizes=(queries.SMALL,))
    looped = [row | {"chosen": row["method"] == variants.NESTED} for row in planned]
    words = [word("lai-074", CHAPTER, planned_joins=rows) for rows in (planned, looped)]
    assert words == ["fixed", "still there"]


def joined(query, alone, stored):
    """Rows of a query's joins, by method: instructions with nothing stored, seconds with storing.

    Times don't differ but for their methods.
    """
    counts = [
        {"query": query, "method": method, "instructions": round(1000 * many)}
        for method, many in alone.items()
    ]
    again = {(1, variants.HASH): 1.0, (1, variants.HASH + joins.AGAIN): 1.0}
    times = again | {(query, method): many for method, many in stored.items()}
    blocks = [
        {"size": queries.SMALL, "query": of, "stored": True, "method": method}
        | {"seconds": many, "block": block}
        for block in range(7)
        for (of, method), many in times.items()
    ]
    return {"join_instructions": counts, "timed_joins": blocks}


@pytest.mark.parametrize(
    ("alone", "stored", "verdict"),
    [
        *((1.0, 2.87, "holds"), (2.87, 1.25, "weaker"), (2.87, 1.0, "no effect")),
        *((1.0, 4.0, "stronger"), (2.87, 0.8, "reversed")),
    ],
)
def test_the_hash_join_is_judged_by_the_time_with_the_result_stored(alone, stored, verdict):
    both = ({variants.HASH: 1.0, variants.MERGE: many} for many in (alone, stored))
    assert word("lai-072", CHAPTER, **joined(1, *both)) == verdict


@pytest.mark.parametrize(
    ("hashed", "merged", "verdict"),
    [  # with the result stored, each against its own printed distance
        *((1.77, 3.54, "holds"), (9.0, 9.0, "stronger"), (1.3, 1.77, "weaker")),
        *((1.77, 1.77, "partly"), (1.77, 0.4, "partly"), (0.95, 1.0, "no effect")),
        *((1.0, 0.8, "no effect"), (0.8, 0.4, "reversed")),
    ],
)
def test_the_nested_loop_is_held_against_either_other_join(hashed, merged, verdict):
    alone = {variants.NESTED: 1.0, variants.HASH: 2.0, variants.MERGE: 4.0}  # decides nothing
    stored = {variants.NESTED: 1.0, variants.HASH: hashed, variants.MERGE: merged}
    assert word("lai-075", CHAPTER, **joined(4, alone, stored)) == verdict


@pytest.mark.parametrize(
    ("nested", "merged", "without", "verdict"),
    [
        *((1.0, 2.06, 2.06, "holds"), (1.0, 2.06, 4.0, "holds"), (1.0, 1.1, 1.1, "partly")),
        (1.5, 1.1, 2.06, "different now"),
    ],
)
def test_distances_from_the_hash_join_are_judged_with_the_result_stored(
    nested, merged, without, verdict
):
    alone = {variants.HASH: 1.0, variants.NESTED: 3.0, variants.MERGE: 3.0}  # which decides nothing
    stored = {variants.HASH: 1.0, variants.NESTED: nested, variants.MERGE: merged}
    found = joined(2, alone, stored)
    plain = joined(1, alone, alone | {variants.MERGE: without})
    counts = found["join_instructions"] + plain["join_instructions"]
    times = [row for row in plain["timed_joins"] if row["method"] == variants.MERGE]
    times += found["timed_joins"]
    assert word("lai-073", CHAPTER, join_instructions=counts, timed_joins=times) == verdict


@pytest.mark.parametrize(
    ("alone", "stored", "verdict"),
    [
        *((1.0, 6.2, "holds"), (6.2, 1.3, "weaker"), (6.2, 1.0, "no effect")),
        *((1.0, 9.0, "stronger"), (6.2, 0.8, "reversed")),
    ],
)
def test_an_index_is_judged_by_the_time_with_the_result_stored(alone, stored, verdict):
    found = joined(5, {variants.NESTED: alone}, {variants.NESTED: stored})
    indexed = joined(6, {variants.NESTED: 1.0}, {variants.NESTED: 1.0})
    counts = found["join_instructions"] + indexed["join_instructions"]
    times = found["timed_joins"] + [row for row in indexed["timed_joins"] if row["query"] == 6]
    assert word("lai-078", CHAPTER, join_instructions=counts, timed_joins=times) == verdict


def test_an_estimate_that_is_off_is_none_of_figure_3_13(bed):
    found = rows_of(bed, ranges.interpolation)
    mistaken = [row | {"expected": 2 * row["expected"]} for row in found]
    assert word("lai-066", CHAPTER, interpolation=mistaken) == "not so"


def test_clustering_is_believed_where_it_is_declared(bed):
    found = rows_of(bed, suggestions.clustering)
    alike = [row | {"cost": 100.0} for row in found]
    assert word("lai-091", CHAPTER, clustering=alike) == "still there"
    unheard = [row for row in found if row["relation"] != suggestions.DECLARED]
    facts = [
        list(judged("lai-093", CHAPTER, clustering=rows).evidence.values())
        for rows in (found, unheard)
    ]
    assert [one[0].value for one in facts] == [True, False]


def test_a_false_order_is_believed_and_taken_back(bed):
    found = rows_of(bed, suggestions.told_order)
    planned = [
        [row["method"] for row in found if row["chosen"] and row["wrong"] == wrong]
        for wrong in (False, True)
    ]
    assert planned[0] != planned[1] and rows_of(bed, suggestions.told_order) == found


def test_on_a_borrowed_server_faults_are_set_aside(borrowed_url):
    with Borrowed(borrowed_url, bundled()) as guest:
        bed = Testbed(chapter_parameters(CHAPTER, PARAMETERS), bundled(), guest)
        for verb in (
            *(faults.first_set, faults.greater_than, faults.third_query),
            *(ranges.multiplied_ranges, scans.cold_scans, suggestions.daemon),
        ):
            with pytest.raises(CannotMeasure):
                rows_of(bed, verb)


def moved(clustered: float, scattered: float):
    """Rows of `moved_switches`, if all CPU costs move the switch-over so far in each relation."""
    ends = {
        (queries.CLUSTERED, scans.RANDOM_PAGE): (0.9, 0.3),
        (queries.CLUSTERED, scans.CPU): (0.7, 0.7 + clustered),
        (queries.SHUFFLED, scans.RANDOM_PAGE): (1, 0.1),
        (queries.SHUFFLED, scans.CPU): (0.1, 0.1 + scattered),
    }
    return [
        {"layout": layout, "knob": knob, "factor": factor, "selectivity": float(at)}
        for (layout, knob), both in ends.items()
        for factor, at in zip((0.1, 8.0), both)
    ]


@pytest.mark.parametrize(
    ("charged", "clustered", "verdict"),
    [("2", 0.01, "holds"), ("2", 0.2, "holds"), ("0.5", 0.01, "not so")],
)
def test_where_the_switch_moves_depends_on_how_often_an_index_is_charged(
    charged, clustered, verdict
):
    """By the printed costs: what is measured today stands beside."""

    def charging(query):
        assert "2 * computing" in query
        return query.replace("2 * computing", f"{charged} * computing")

    rows = moved(clustered, scattered=0.5)
    found = judged("lai-069", CHAPTER, query=charging, moved_switches=rows)
    assert str(found.verdict) == verdict
