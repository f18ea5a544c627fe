"""TP1's scripts, what its experiments count on a live server, and what its rules make of rows."""

import os
import re
from collections.abc import Sequence
from types import SimpleNamespace

import pandas as pd
import pytest

from pgrerun import parameters
from pgrerun.chapters.tp1 import variants
from pgrerun.chapters.tp1.experiments import (
    catalogs,
    commit,
    heap,
    page_counts,
    postgres95,
    simulated,
    slow_disk,
    throughput,
)
from pgrerun.chapters.tp1.variants import INDEXES, RELATIONS, RUNGS, SQL
from pgrerun.lab.instruments import pgbench
from pgrerun.lab.server import builds, bundled
from pgrerun.lab.testbed import Block, Testbed
from pgrerun.lab.university_ingres import PAGE, VARIABLE
from pgrerun.parameters import chapter_parameters
from pgrerun.record import evidence, printed
from tests.judging import judged, word


@pytest.fixture(scope="module")
def bed():
    small = {"pairs": 5, "counted": 10, "cycles": 10, "simulated_transactions": 100}
    found = Testbed(chapter_parameters("tp1", small), bundled())
    yield found
    found.close()


# ---- scripts and driving


def test_every_rung_runs_a_script_that_does_what_its_name_says():
    scripts = {name: SQL.script(rung.script) for name, rung in RUNGS.items()}
    flushed, probed = (
        {name for name, script in scripts.items() if word in script}
        for word in ("\nCHECKPOINT;", "ctid")
    )
    logged = {variants.LOGGED, variants.STABLE, variants.SMALL, variants.LONE, variants.PAIR}
    assert flushed == RUNGS.keys() - logged and probed == flushed - {variants.APPEND}


@pytest.mark.parametrize(
    ("hashed", "said"), [([1, 1, 1], "holds"), ([1, 1, 4], "not so"), ([2, 2, 2], "not so")]
)
def test_a_hashed_relation_is_judged_by_the_fetch_that_takes_most(hashed, said):
    fetches = [("heap", 150)] * 3 + [("hash", reads) for reads in hashed]
    rows = [{"access": access, "reads": reads, "found": 1} for access, reads in fetches]
    assert word("lai-085", "tp1", ingres_lookup=rows) == said


@pytest.mark.skipif(VARIABLE not in os.environ, reason="needs University INGRES of 1981")
def test_ingres_finds_an_entry_of_its_attribute_relation_by_each_access(bed):
    rows = pd.DataFrame(list(catalogs.ingres_lookup(bed)))
    assert (rows["found"] == 1).all() and set(rows["access"]) == set(catalogs.ORGANIZED)
    assert rows.groupby("access")["reads"].median().sort_values().index[-1] == "heap"
    by_heap = rows.loc[rows["access"] == "heap", "reads"].max() * PAGE
    catalog = printed.table("tp1_catalogs").value
    assert by_heap == pytest.approx(catalog.attribute_pages * catalog.page_size * 1024, rel=0.1)


def own_index(read, instead=0):
    """Of a catalog that has a B-tree of one's own so many pages; another ends the backend."""
    pages = {"index_pages": read, "catalog_pages": 6 - instead, "catalog_pages_without": 6}
    found = {"catalog": "pg_proc", "field": "oid", "runs": True, "query_pages": 2} | pages
    ended = {"catalog": "pg_operator", "field": "oid", "runs": False, "catalog_pages_without": 6}
    return [found, ended]


@pytest.mark.parametrize(
    ("rows", "planned", "said"),
    [
        (own_index(0), 1, "holds"),
        (own_index(2, instead=5), 1, "partly"),
        (own_index(0), 90, "partly"),
        (own_index(2, instead=5), 90, "not so"),
    ],
)
def test_an_index_of_ones_own_is_passed_by_where_no_page_of_it_is_read(rows, planned, said):
    plans = [{"command": "retrieve", "planned": planned, "looked_up": 90}]
    found = word("lai-086", "tp1", postgres95_own_index=rows, postgres95_planning=plans)
    assert found == said


def test_a_catalog_gets_an_index_that_is_counted(bed):
    before, after = catalogs.own_catalog_index(bed)
    cluster = bed.cluster(cluster_name="own index", allow_system_table_mods="on")
    made = "SELECT count(*) FROM pg_index WHERE indexrelid::regclass::text LIKE 'own_%'"
    assert cluster.fetch(made) == (len(catalogs.LOOKED_UP),)
    assert before["own_fetches"] == 0 < before["catalog_fetches"] and after["own_fetches"] >= 0


@pytest.mark.skipif(postgres95.BUILD not in builds.registered(), reason="needs Postgres95")
def test_postgres95_plans_queries_alone(bed):
    rows = pd.DataFrame(list(postgres95.postgres95_planning(bed)))
    assert len(rows) == 5 and (rows["planned"] == 1).all() and rows["looked_up"].min() > 1
    assert rows["scans"].max() > 0


@pytest.mark.parametrize("clients", [2, 8])
def test_other_numbers_of_backends_are_not_held_against_the_print(clients):
    # The report ran one and two; a chapter with eight must not call its ratio the report's.
    bed = SimpleNamespace(parameters=chapter_parameters("tp1", {"clients": clients}))
    compared = {name: RUNGS[name] for name in (variants.LONE, variants.PAIR)}
    ran = {name: variants.backends_of(bed, rung) for name, rung in compared.items()}
    assert ran == {variants.LONE: 1, variants.PAIR: 2}
    for claim in ("lai-046", "lai-047"):
        rule = evidence.rules(parameters.folder("tp1"))[claim].text()
        assert set(re.findall("rung = '(.*?)'", rule)) == set(compared)


def test_all_scripts_are_the_same_transaction():
    def work(name):
        lines = SQL.script(name).split("BEGIN;\n")[1].splitlines()
        return [line for line in lines if "ctid" not in line and line != "CHECKPOINT;"]

    assert all(work(name) == work("transaction") for name in ("flushing", "probing"))


@pytest.mark.parametrize(("tps", "transactions"), [(1000.0, 25), (1.0, throughput.TRIED)])
def test_an_observations_length_is_tried_out_once_for_each_variant(
    bed, monkeypatch, tps, transactions
):
    asked = []

    def run(server, *, transactions, clients, seed, **load):
        asked.append(transactions)
        return SimpleNamespace(tps=tps, transactions=transactions * clients)

    monkeypatch.setattr(pgbench, "run", run)
    state = {"checkpoints": 0, "waited": 0.0, "processor": 0.0}
    monkeypatch.setattr(throughput, "_state", lambda server: state)
    driver = throughput.Driver(bed)
    for _ in range(2):
        driver.drive("a rung", bed, backends=2)
    assert asked == [throughput.TRIED, transactions, transactions]


def test_each_command_of_the_report_is_followed_by_computing():
    plain = SQL.script("probing")
    script, added = slow_disk.computing(plain, 7), slow_disk.computing("INSERT;", 7)[7:-1]
    assert "generate_series(1, 7)" in added and script.count(added) == 5
    assert script.replace(added, "") == plain


@pytest.mark.parametrize("client", [0.001, 0.004])  # a run with 4 ms reached 0.36
def test_computing_is_fitted_to_the_printed_share_also_when_the_processor_slows_down(client):
    fitted, wanted = slow_disk.Computing(), 0.42

    def trial(slower):  # of a transaction that waits 10 ms for the disk, and for its client
        computed = 0.001 + 2e-7 * slower * fitted.rows
        elapsed = computed + 0.010 + client
        return computed / elapsed, 0.010 / elapsed

    for slower in (1.0, 1.5):
        for _ in range(3):
            fitted.correct(*trial(slower), wanted)
        assert trial(slower)[0] == pytest.approx(wanted, rel=0.02)


# ---- counts on a live server


def test_pages_are_told_apart_by_where_they_lie():
    touched = pd.DataFrame(
        [
            ("account", "heap", 3),
            ("account", "heap", 9),
            ("account", "heap", 5),
            ("account_index", "btree root", 1),
            ("pg_class", "heap", 0),
            ("account", "vm", 0),
        ],
        columns=["relation", "kind", "block"],
    )
    assert list(page_counts.kinds_of(touched, {"account": 10, "account_index": 5})) == [
        page_counts.OLD_VERSION,
        page_counts.LAST_PAGE,
        page_counts.ROOMY,
        page_counts.ROOT,
        page_counts.CATALOG,
        "visibility_map",
    ]


def test_a_replaced_row_stays_beside_the_new_one_and_appended_ones_share_a_page(bed):
    rows = list(heap.versions_of_one_tuple(bed))
    gone = [row for row in rows if row["moment"] == "before" or row["made_by"]]
    appended = list(heap.appended_versions(bed))
    alone = [row | {"tuples": 1} for row in appended]
    replaced = [word("lai-061", "tp1", versions_of_one_tuple=one) for one in (rows, gone)]
    assert replaced[0] == "holds" != replaced[1]
    shared = [word("lai-060", "tp1", appended_versions=one) for one in (appended, alone)]
    assert shared == ["fixed", "still there"]


def test_a_crash_loses_nothing_and_what_was_undecided_is_not_seen(bed):
    [seen] = commit.crash(bed, transactions=20)
    assert seen["committed"] == seen["kept"] == 20 and seen["balanced"]
    assert 0 < seen["uncommitted_on_disk"] == seen["uncommitted_left"]
    assert (
        seen["uncommitted_visible"] == 0 and seen["former_visible"] == seen["uncommitted_on_disk"]
    )


@pytest.mark.parametrize(
    ("left", "after", "said"),
    [
        (1001, (1001, 0.0), "holds"),
        (1001, (1000, 0.0), "partly"),  # an engine that takes changes back shows as much
        (1001, (1001, 10.0), "partly"),
        (1000, (999, 10.0), "not so"),
    ],
)
def test_what_an_open_transaction_leaves_needs_no_undo(left, after, said):
    states = [("before", 1000, 0.0), ("open", left, 10.0), ("after", *after)]
    rows = [
        {"when": when, "versions": versions, "balance": balance, "bytes": str(versions)}
        for when, versions, balance in states
    ]
    assert word("lai-057", "tp1", postgres95_crash=rows) == said


def of_seeds(**metrics):
    """Rows of sessions with keys of their own, which differ a little, by rung."""
    return [
        {"rung": rung, "block": block, "comparison": 0, "disturbed": "", "left_out": False}
        | {name: value * (1 + block / 1000) for name, value in found.items()}
        for rung, found in metrics.items()
        for block in range(7)
    ]


@pytest.mark.parametrize(
    ("reads", "writes", "said"),
    [
        (4.5, 5.0, "holds"),
        (4.5, 9.0, "partly"),
        (9.0, 9.0, "different now"),
        (4.86, 5.595, "inconclusive"),  # within a tenth of print with some keys, not with others
    ],
)
def test_steady_pages_are_judged_by_several_sets_of_keys(reads, writes, said):
    found = of_seeds(**{postgres95.STABLE: {"reads": reads, "writes": writes}})
    assert word("lai-058", "tp1", postgres95_steady=found) == said


@pytest.mark.parametrize(
    ("anew", "writes", "said"),
    [
        (11.8, 13.8, "holds"),
        (19.0, 13.8, "holds"),  # a larger cache spares more
        (5.0, 13.8, "partly"),
        (19.0, 18.0, "partly"),
        (5.0, 5.0, "not so"),
    ],
)
def test_the_first_stage_is_held_against_print_without_reads_that_a_cache_spares(
    anew, writes, said
):
    first = {"reads": 25.0, "reads_anew": anew, "writes": writes}
    found = of_seeds(**{postgres95.FIRST: first})
    assert word("lai-045", "tp1", postgres95_looks=found) == said


@pytest.mark.parametrize(
    ("packed", "vacuumed", "said"),
    [
        ((9.0, 0.099), (9.0, 0.099), "holds"),
        ((9.0, 0.099), (9.0, 0.01), "partly"),  # they find the room that a vacuum made
        ((9.0, 0.01), (9.0, 0.099), "partly"),
        ((3.0, 0.01), (9.0, 0.0), "partly"),
        ((3.0, 0.01), (3.0, 0.0), "reversed"),
    ],
)
def test_looks_that_take_reads_and_save_little_are_not_worth_while(packed, vacuumed, said):
    found = [
        row | {"vacuumed": late, "left_to_vacuum": 3.0}
        for late, (reads, growth) in ((False, packed), (True, vacuumed))
        for row in of_seeds(
            **{postgres95.LOOKED: {"reads": reads, "growth": growth}},
            **{postgres95.APPENDED: {"reads": 5.0, "growth": 0.1}},
        )
    ]
    assert word("lai-055", "tp1", postgres95_looks=found) == said


def test_a_read_counts_anew_unless_its_transaction_or_the_one_before_asked_for_the_page():
    asked = [
        (0, "account", 1, "reads"),
        (1, "account", 1, "reads"),
        (1, "account", 2, "writes"),
        (2, "account", 2, "reads"),
        (2, "account", 2, "reads"),
        (2, "account", 0, "flushes"),
        (3, "account", 0, "reads"),
        (3, "account", 1, "reads"),
        (3, "teller", 2, "reads"),
    ]
    found = pd.DataFrame(asked, columns=["transaction", "file", "page", "kind"])
    assert postgres95.anew(found, 0) == 4 and postgres95.anew(found, 1) == 3


@pytest.mark.parametrize(
    ("eighty", "unindexed", "scans", "said"),
    [
        (90, ["pg_operator", "pg_amop"], 3, "holds"),
        (40, ["pg_operator", "pg_amop"], 3, "partly"),
        (90, ["pg_amop"], 3, "partly"),  # less than half of what is read
        (90, ["pg_operator", "pg_amop"], 1, "partly"),
        (40, [], 0, "not so"),
    ],
)
def test_scanned_catalogs_are_the_reason_where_most_reads_are_theirs(
    eighty, unindexed, scans, said
):
    catalogs = ["pg_operator", "pg_amop", "pg_class", "pg_attribute", "pg_user"]
    first = {"rung": postgres95.ALONE, "transaction": 0, "steady": False, "command": "retrieve"}
    first |= {"kind": "catalog", "writes": 0, "flushes": 0}
    read = dict.fromkeys(catalogs[:-1], 1) | {"pg_operator": eighty}
    ladder = [first | {"file": name, "reads": pages} for name, pages in read.items()]
    sizes = [
        {"file": name, "kind": "catalog", "index": False, "pages": 9}
        | {"indexed": name not in [*unindexed, "pg_user"]}  # which no transaction reads
        for name in catalogs
    ]
    planning = [{"command": "retrieve", "planned": 1, "looked_up": 9, "scans": scans}]
    tables = {"postgres95_sizes": sizes, "postgres95_planning": planning}
    found = judged("lai-050", "tp1", postgres95_ladder=ladder, **tables)
    assert str(found.verdict) == said
    named = [
        found.evidence[f"{one} is read and has no index"] for one in ("pg_operator", "pg_attribute")
    ]
    assert [part.value for part in named] == ["pg_operator" in unindexed, False]


def _ladder(
    reads: int, flushes: int, changed: Sequence[str] = (*RELATIONS, *INDEXES)
) -> list[dict[str, object]]:
    """A steady transaction on each rung, which writes what is changed, and a first one whose
    catalogs fit into 48 pages."""
    same = {"steady": True, "command": "end", "transaction": 20}
    rungs = {postgres95.ALONE: 8, postgres95.ENLARGED: 8, postgres95.STABLE: 5}
    rows = [
        same
        | {"rung": rung, "file": file, "kind": postgres95.kind(file)}
        | {"reads": reads / len(changed), "writes": pages / len(changed), "flushes": flushes}
        for rung, pages in rungs.items()
        for file in changed
    ]
    first = {"steady": False, "transaction": 0, "file": "pg_class", "kind": "catalog"}
    read = {postgres95.ALONE: 90, postgres95.ENLARGED: 30, postgres95.STABLE: 30}
    nothing = {"command": "account", "writes": 0, "flushes": 0}
    return [*rows, *(first | nothing | {"rung": rung, "reads": n} for rung, n in read.items())]


@pytest.mark.parametrize(
    ("reads", "flushes", "words"),
    [
        (5, 1, ["holds", "holds", "holds"]),
        (9, 0, ["partly", "different now", "partly"]),
    ],
)
def test_a_transaction_of_postgres95_is_held_against_print(reads, flushes, words):
    rows = _ladder(reads, flushes)
    claims = ("lai-049", "lai-054", "lai-056")
    assert [word(claim, "tp1", postgres95_ladder=rows) for claim in claims] == words


@pytest.mark.parametrize("left_out", ["history", "teller_index"])
def test_a_commit_that_leaves_out_what_its_transaction_changes_forces_less(left_out):
    rows = _ladder(5, 1, [name for name in (*RELATIONS, *INDEXES) if name != left_out])
    assert word("lai-056", "tp1", postgres95_ladder=rows) == "partly"


def test_a_first_transaction_reads_what_the_second_has_in_its_caches(bed):
    on = catalogs.stocked(bed, variants.POOL_TODAY)
    with catalogs.watched(on) as watching:
        block = Block(0, 1, 0)
        first, second = (
            catalogs.first(bed, watching, {}, block),
            catalogs.second(bed, watching, block),
        )
    assert first["first_catalog_fetches"] > 10 * second["second_catalog_fetches"]
    assert first["first_reads"] > second["second_reads"] > 0
    assert catalogs.stocked(bed, variants.POOL_TODAY) is on  # not stocked a second time


def test_each_rung_begins_with_relations_loaded_anew(bed, monkeypatch):
    loaded = []
    monkeypatch.setattr(page_counts, "load_anew", lambda bed, cluster: loaded.append(cluster))
    monkeypatch.setattr(page_counts, "per_transaction", lambda *_: {"reads": 1.0})
    monkeypatch.setattr(bed, "_rows", lambda experiment: rows)
    rows = []
    variants.relations(bed).load(variants.pooled(bed, variants.POOL_1990))
    for row in bed.measure(page_counts.io, {}):
        rows.append(row)
        if len(rows) == len(page_counts.COUNTED_RUNGS):
            break
    assert len(loaded) == len(rows)


def test_computing_asks_the_disk_for_nothing(bed):
    ladder = slow_disk.SlowLadder(bed)
    few, many = (ladder.measured(variants.LONE, Block(0, 1, 0), rows) for rows in (2, 100_000))
    assert many["computing"] == 5 * 100_000
    # within what a pool that is filled once more saves or costs
    assert abs(many["reads"] - few["reads"]) < 10 and abs(many["writes"] - few["writes"]) < 10


def test_the_simulation_knows_the_first_rung_and_predicts_the_others(bed):
    rows = pd.DataFrame(list(simulated.simulated_ladder(bed)))
    first = rows.iloc[0]
    assert (first["rung"], first["backends"]) == (variants.ALONE, 1)
    assert first["simulated_tps"] == pytest.approx(first["printed_tps"], rel=0.15)
    assert set(rows.loc[rows["rung"] == variants.STABLE, "backends"]) == {1, 2}


# ---- what the rules make of rows


def repeated(variant, metrics, blocks=7):
    return [
        variant | metrics | {"comparison": 0, "block": block, "disturbed": "", "left_out": False}
        for block in range(blocks)
    ]


def slow_ladder(pair, reads=1.0, used=0.58):
    one = {"tps": 10.0, "processor_share": 0.42, "disk_share": 0.5, "waiting_share": 0.5}
    one |= {"reads": 4.0, "writes": 4.0, "computing": 1.0}
    two = one | {"tps": pair, "reads": 4.0 * reads, "processor_share": used}
    return [
        *repeated({"rung": variants.LONE}, one),
        *repeated({"rung": variants.PAIR}, two),
    ]


@pytest.mark.parametrize(
    ("pair", "reads", "used", "said"),
    [
        (20.0, 1.0, 0.42, "no effect"),
        (12.8, 1.0, 0.58, "holds"),
        (12.8, 1.0, 0.42, "partly"),
        (11.0, 1.0, 0.80, "stronger"),
        (30.0, 1.0, 0.58, "partly"),
        (13.0, 2.0, 0.58, "not tested here"),  # two backends that read more are in another regime
    ],
)
def test_what_two_backends_reach_decides_about_overlap(pair, reads, used, said):
    assert word("lai-046", "tp1", slow_ladder=slow_ladder(pair, reads, used)) == said


def test_perfect_overlap_is_predicted_from_one_backend():
    # at a share of 0.42 a lone backend's disk works for 0.58 of the time: 1 / 0.58 times as many
    found = judged("lai-047", "tp1", slow_ladder=slow_ladder(10.0))
    [part] = found.evidence.values()
    assert part.value.estimate == pytest.approx(1 / 0.58)


@pytest.mark.parametrize(("roomy", "said"), [(1, True), (9, False)])
def test_a_look_fails_where_most_pages_are_full(roomy, said):
    room = [
        {"transactions": 300, "relation": name, "pages": 10, "with_room": roomy, "once_pruned": 9}
        for name in ("branch", "teller", "account")
    ]
    zero = {f"reads_of_{place}": 0.0 for place in page_counts.PLACES}
    io = [
        *repeated({"rung": variants.ENLARGED}, {"reads": 9.0, "writes": 1.0, "wal": 1.0} | zero),
        *repeated({"rung": variants.APPEND}, {"reads": 4.0, "writes": 1.0, "wal": 1.0} | zero),
    ]
    found = judged("lai-053", "tp1", pages_with_room=room, io=io)
    fact = found.evidence["a random page mostly has no room for another version"]
    assert fact.value is said and fact.opposite is not said
